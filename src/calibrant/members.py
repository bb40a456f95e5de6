"""A fitted model together with what calibrates its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.base import Calibrator
from calibrant.errors import InputError
from calibrant.fitted import Fitted
from calibrant.folds.models import Method, ModelRows, Part, fit_calibrator, model_scores, pool, take
from calibrant.local.base import LocalCalibrator
from calibrant.local.rule import LocalFitted, Rows
from calibrant.maps import Map
from calibrant.multiclass.calibrator import CodedCalibrator
from calibrant.vector_base import VectorCalibrator

__all__ = ["ANY_CALIBRATOR", "AnyCalibrator", "Member", "fit_member"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: what can calibrate a model: of one score, of all classes' scores, or of more than scores
AnyCalibrator = Calibrator | VectorCalibrator | CodedCalibrator | LocalCalibrator
ANY_CALIBRATOR = (Calibrator, VectorCalibrator, CodedCalibrator, LocalCalibrator)


@dataclass(frozen=True)
class Member:
    """A fitted model and what calibrates its scores.

    Parameters
    ----------
    estimator : fitted model or function of rows
    calibrator : fitted calibrator
        For several classes one that takes all of their scores.
    classes : ndarray of shape (k,), sorted
    positive : int
        With two classes: the one of them that a high score means.
    method : where the model's scores come from
    companion : function from rows to `Rows`, optional
        With a local calibrator: finds what it needs beside the scores.
    """

    estimator: Any
    calibrator: AnyCalibrator
    classes: NDArray[Any]
    positive: int
    method: Method
    companion: Callable[[Any], Rows] | None = None

    @property
    def calibrators(self) -> tuple[Any, ...]:
        """The calibrator, or those of the classes where each has its own."""
        if isinstance(self.calibrator, CodedCalibrator):
            return tuple(self.calibrator.calibrators_)
        return (self.calibrator,)

    @property
    def map(self) -> Map:
        """From the model's scores to probabilities: of the positive class, or of all classes."""
        if isinstance(self.calibrator, LocalCalibrator):
            raise InputError(
                f"{type(self.calibrator).__name__} looks at more than the score, so it is not a "
                "map of scores. Use predict_proba."
            )
        return self.calibrator.map_

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of the classes, in their order."""
        scores = model_scores(self.estimator, X, self.classes, self.positive, self.method)
        if isinstance(self.calibrator, LocalCalibrator):
            if self.companion is None:
                raise InputError("a member with a local calibrator must have a companion.")
            return self.calibrator.predict_rows(scores, self.companion(X))
        return self.calibrator.predict_proba(_columns(self.calibrator, scores, self.positive))

    def to_fitted(self) -> Fitted | LocalFitted:
        """What calibrates the scores, as a plain value; the model is not in it."""
        fitted = self.calibrator.to_fitted()
        inner = self.calibrator.calibrator if isinstance(self.calibrator, CodedCalibrator) else None
        if inner is None:
            return fitted
        one = next(c for c in self.calibrators if c is not None).to_fitted()
        return replace(fitted, method=one.method, params=one.params)


def fit_member(
    calibrator: AnyCalibrator,
    data: ModelRows,
    model: Any,
    parts: list[Part],
    trained: ModelRows | None,
    rows: Index | None,
) -> Member:
    """Calibrate a fitted model on pooled (scores, rows).

    ``trained`` and ``rows`` are what the model was fitted on (rows None: all of it), None where
    nobody knows.
    """
    if isinstance(calibrator, LocalCalibrator):
        local = _fit_local(calibrator, data, parts)
        companion = local.companion(model, trained, rows)
        return Member(model, local, data.classes, data.positive, data.method, companion)
    if isinstance(calibrator, Calibrator) and len(data.classes) == 2:
        fitted = fit_calibrator(calibrator, data, parts)
        return Member(model, fitted, data.classes, data.positive, data.method)
    return Member(model, _fit_all(calibrator, data, parts), data.classes, 1, data.method)


def _fit_all(
    calibrator: Calibrator | VectorCalibrator | CodedCalibrator, data: ModelRows, parts: list[Part]
) -> AnyCalibrator:
    """Fitted to the scores of all classes: directly, or one class against the rest."""
    scores, rows, weight = pool(data, parts)
    whole: AnyCalibrator = clone(calibrator)
    if isinstance(whole, Calibrator) and not whole.multiclass:
        whole = CodedCalibrator(whole.set_params(classes=None))
    whole.set_params(classes=list(data.classes))
    columns = _columns(whole, scores, data.positive)
    fitted: AnyCalibrator = whole.fit(columns, data.classes[data.codes[rows]], weight)
    return fitted


def _columns(calibrator: AnyCalibrator, scores: Array, positive: int) -> Array:
    """Scores as the calibrator takes them: one of all classes wants both columns of two."""
    if scores.ndim == 2 or isinstance(calibrator, Calibrator):
        return scores
    if scores.min() < 0.0 or scores.max() > 1.0:
        pair = (np.zeros_like(scores), scores)  # as logits
    else:
        pair = (1.0 - scores, scores)
    return np.column_stack(pair if positive == 1 else pair[::-1])


def _fit_local(calibrator: LocalCalibrator, data: ModelRows, parts: list[Part]) -> LocalCalibrator:
    scores, rows, weight = pool(data, parts)
    labels: dict[str, Any] = {"classes": list(data.classes)}
    if len(data.classes) == 2:
        labels["pos_label"] = data.classes[data.positive]
    elif not calibrator.multiclass:
        raise InputError(
            f"{type(calibrator).__name__} calibrates two classes, but {len(data.classes)} came."
        )
    whole = len(parts) == 1 and parts[0][1] is None
    X = data.X if whole else take(data.X, rows)
    local: LocalCalibrator = clone(calibrator).set_params(**labels)
    return local.fit_rows(scores, data.classes[data.codes[rows]], X, weight)
