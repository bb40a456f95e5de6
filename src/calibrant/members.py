"""A fitted model together with what calibrates its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.base import Calibrator
from calibrant.errors import InputError
from calibrant.fitted import Fitted
from calibrant.folds.models import (
    Method,
    ModelRows,
    Part,
    fit_calibrators,
    model_scores,
    pool,
    take,
)
from calibrant.local.base import LocalCalibrator
from calibrant.local.rule import LocalFitted, Rows
from calibrant.maps import Coded, Map

__all__ = ["Member", "fit_member"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Member:
    """A fitted model and what calibrates its scores.

    Parameters
    ----------
    estimator : fitted model or function of rows
    calibrators : tuple of fitted calibrators
        One for two classes, else one per class; a local calibrator is always one.
    classes : ndarray of shape (k,), sorted
    positive : int
        With two classes: the one of them that a high score means.
    method : where the model's scores come from
    companion : function from rows to `Rows`, optional
        With a local calibrator: finds what it needs beside the scores.
    """

    estimator: Any
    calibrators: tuple[Any, ...]
    classes: NDArray[Any]
    positive: int
    method: Method
    companion: Callable[[Any], Rows] | None = None

    @property
    def map(self) -> Map:
        """From the model's scores to probabilities: of the positive class, or of all classes."""
        if self.companion is not None:
            raise InputError(
                f"{type(self.calibrators[0]).__name__} looks at more than the score, so it is not "
                "a map of scores. Use predict_proba."
            )
        maps = tuple(calibrator.map_ for calibrator in self.calibrators)
        return maps[0] if len(maps) == 1 else Coded.one_vs_rest(maps)

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of the classes, in their order."""
        scores = model_scores(self.estimator, X, self.classes, self.positive, self.method)
        if self.companion is not None:
            local: Array = self.calibrators[0].predict_rows(scores, self.companion(X))
            return local
        p = self.map(scores)
        if p.ndim == 2:
            return p
        return np.column_stack((1.0 - p, p) if self.positive == 1 else (p, 1.0 - p))

    def to_fitted(self) -> Fitted | LocalFitted:
        """What calibrates the scores, as a plain value; the model is not in it."""
        single: Fitted | LocalFitted = self.calibrators[0].to_fitted()
        if len(self.calibrators) == 1:
            return single
        provenance = dict(single.provenance)
        del provenance["positive_weight"], provenance["distinct_scores"]
        labels = tuple(label.item() if hasattr(label, "item") else label for label in self.classes)
        return Fitted(self.map, labels, None, single.method, single.params, provenance)


def fit_member(
    calibrator: Calibrator | LocalCalibrator,
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
    if isinstance(calibrator, Calibrator):
        fitted: tuple[Any, ...] = fit_calibrators(calibrator, data, parts)
        return Member(model, fitted, data.classes, data.positive, data.method)
    local = _fit_local(calibrator, data, parts)
    companion = local.companion(model, trained, rows)
    return Member(model, (local,), data.classes, data.positive, data.method, companion)


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
