"""A fitted model together with what calibrates its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.arrays import Array, Flags, Index
from calibrant.auto import AutoCalibrator
from calibrant.classifier.fold_models import ModelToKeep
from calibrant.classifier.segment_columns import fit_segments, segments_of
from calibrant.data.score_range import ScoreRange
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fit_params import take
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.model_folds import (
    Method,
    ModelRows,
    may_be_probabilities,
    model_scores,
    score_method,
    unseen,
)
from calibrant.estimators.pooling import Part, fit_calibrator, fit_pooled
from calibrant.estimators.registry import calibrator_of
from calibrant.local.base import LocalCalibrator
from calibrant.local.rule import LocalFitted, RowInputs
from calibrant.multiclass.coded_calibrator import CodedCalibrator
from calibrant.multiclass.codes import one_vs_rest, read_code
from calibrant.scaling.base import VectorCalibrator
from calibrant.segment import SegmentedCalibrator

#: what can calibrate a model: of one score, of all classes' scores, or of more than scores
AnyCalibrator = (
    Calibrator | VectorCalibrator | CodedCalibrator | LocalCalibrator | SegmentedCalibrator
)
_ANY = (Calibrator, VectorCalibrator, CodedCalibrator, LocalCalibrator)


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
    companion : function from rows to `RowInputs`, optional
        With a local calibrator: finds what it needs beside the scores.
    margins : bool
        With two classes and a calibrator of all classes' scores: whether the model's scores were
        margins at fit, so that the pair of columns is (−s/2, s/2) and not (1 − s, s).
    segments : column or list of columns, optional
        With a `SegmentedCalibrator`: the columns of rows that hold their segments.
    """

    estimator: Any
    calibrator: AnyCalibrator
    classes: NDArray[Any]
    positive: int
    method: Method
    companion: Callable[[Any], RowInputs] | None = None
    margins: bool = False
    segments: Any = None
    takes_rows: ClassVar[bool] = True

    @property
    def calibrators(self) -> tuple[Any, ...]:
        """The calibrator, or those of the classes where each has its own."""
        if isinstance(self.calibrator, CodedCalibrator):
            return tuple(self.calibrator.calibrators_)
        return (self.calibrator,)

    @property
    def input(self) -> str:
        """What gives the model's scores: the name of its method, or "function"."""
        return score_method(self.estimator, self.method) or "function"

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of the classes, in their order."""
        scores = model_scores(self.estimator, X, self.classes, self.positive, self.method)
        if isinstance(self.calibrator, LocalCalibrator):
            if self.companion is None:
                raise InputError("a member with a local calibrator must have a companion.")
            local = self.calibrator.predict_rows(scores, self.companion(X))
            return _without(local, unseen(self.estimator, self.classes))
        if isinstance(self.calibrator, SegmentedCalibrator):
            found = segments_of(X, self.segments)
            p = self.calibrator.predict_proba(scores, found, on_range="allow")
            return _without(p, unseen(self.estimator, self.classes))
        if scores.ndim == 1 and not isinstance(self.calibrator, Calibrator):
            scores = _pair(scores, self.margins)
        # the same model's scores as in the fit
        p = self.calibrator.predict_proba(scores, on_range="allow")
        return _without(p, unseen(self.estimator, self.classes))

    def to_fitted(self) -> Fitted | LocalFitted:
        """What calibrates the scores, as a plain value; the model is not in it."""
        fitted = self.calibrator.to_fitted()
        if not may_be_probabilities(self.estimator, self.method):
            fitted = replace(fitted, score_range=_numbers(fitted.score_range))
        inner = self.calibrator.calibrator if isinstance(self.calibrator, CodedCalibrator) else None
        if inner is None:
            return fitted
        one = next(c for c in self.calibrators if c is not None).to_fitted()
        return replace(fitted, method=one.method, params=one.params)


def _numbers(known: ScoreRange | None) -> ScoreRange | None:
    """The same range, of scores that need not lie in [0, 1] although those of the fit did."""
    return None if known is None else ScoreRange("number", known.low, known.high)


def fit_member(
    calibrator: AnyCalibrator,
    data: ModelRows,
    fitted_model: ModelToKeep,
    trained: ModelRows | None,
    segments: Any = None,
) -> Member:
    """Calibrate a fitted model on its pooled parts.

    ``trained`` is the data whose rows the models learned; None means that nobody knows.
    """
    (model, rows), parts, _ = fitted_model
    if isinstance(calibrator, LocalCalibrator):
        local = _fit_local(calibrator, data, fitted_model, trained)
        companion = local.companion(model, trained, rows)
        return Member(model, local, data.classes, data.positive, data.method, companion)
    if isinstance(calibrator, SegmentedCalibrator):
        by_segment = fit_segments(calibrator, data, parts, segments)
        labels = data.classes, data.positive, data.method
        return Member(model, by_segment, *labels, segments=segments)
    if isinstance(calibrator, Calibrator) and len(data.classes) == 2:
        fitted = fit_calibrator(calibrator, data, parts)
        return Member(model, fitted, data.classes, data.positive, data.method)
    return _fit_all(calibrator, data, model, parts)


def _fit_all(
    calibrator: Calibrator | VectorCalibrator | CodedCalibrator,
    data: ModelRows,
    model: Any,
    parts: list[Part],
) -> Member:
    """Fitted to the scores of all classes: to all at once, or to each class against the rest."""
    whole: AnyCalibrator = clone(calibrator)
    if isinstance(whole, Calibrator) and not whole.multiclass:
        whole = CodedCalibrator(whole.set_params(classes=None))
    if isinstance(whole, CodedCalibrator):
        _check_one_each(whole, len(data.classes))
    whole.set_params(classes=list(data.classes))
    one_column = parts[0][0].ndim == 1
    margins = one_column and any(s.min() < 0.0 or s.max() > 1.0 for s, _ in parts)

    def fit(scores: Array, rows: Index, weight: Array | None) -> None:
        columns = _pair(scores, margins) if one_column else scores
        whole.fit(columns, data.classes[data.codes[rows]], weight)

    fit_pooled(whole, data.weight, parts, fit, len(data.codes))
    return Member(model, whole, data.classes, 1, data.method, margins=margins)


def _without(p: Array, absent: Flags) -> Array:
    """Probability 0 for the classes that a fold's model has not seen, as in scikit-learn."""
    if not absent.any():
        return p
    known = np.where(absent, 0.0, p)
    total = known.sum(axis=1, keepdims=True)
    even = ~absent / np.count_nonzero(~absent)
    return np.where(total > 0.0, known / np.where(total > 0.0, total, 1.0), even)


def _pair(scores: Array, margins: bool) -> Array:
    """Both columns of two classes: probabilities, or margins against each other."""
    return np.column_stack((-0.5 * scores, 0.5 * scores) if margins else (1.0 - scores, scores))


def _check_one_each(coded: CodedCalibrator, classes: int) -> None:
    """A model gives one score per class, which is what a one-against-all code asks for."""
    code = read_code(coded.code, classes)
    if not np.array_equal(code.matrix, one_vs_rest(classes).matrix):
        raise ParameterError(
            'code of the CodedCalibrator must be "one_vs_rest", since the model gives one score '
            "per class, but another code came. CodedClassifier trains a model for each column of "
            "any code."
        )


def _fit_local(
    calibrator: LocalCalibrator,
    data: ModelRows,
    fitted_model: ModelToKeep,
    trained: ModelRows | None,
) -> LocalCalibrator:
    """Fitted to scores together with the rows that they belong to."""
    parts = fitted_model.parts
    labels: dict[str, Any] = {"classes": list(data.classes)}
    if len(data.classes) == 2:
        labels["pos_label"] = data.classes[data.positive]
    elif not calibrator.multiclass:
        raise InputError(
            f"{type(calibrator).__name__} calibrates two classes, but {len(data.classes)} came."
        )
    whole = len(parts) == 1 and parts[0][1] is None
    local: LocalCalibrator = clone(calibrator).set_params(**labels)
    inputs = None
    if local.judges_inputs:
        inputs = _joined(
            local.companion(model, trained, learned)(data.X if rows is None else take(data.X, rows))
            for (model, learned), (_, rows) in zip(fitted_model.scored_by, parts, strict=True)
        )

    def fit(scores: Array, rows: Index, weight: Array | None) -> None:
        X = data.X if whole else take(data.X, rows)
        y = data.classes[data.codes[rows]]
        local.fit_rows(scores, y, X, weight, groups=rows, inputs=inputs)

    fit_pooled(local, data.weight, parts, fit, len(data.codes))
    return local


def _joined(parts: Iterable[RowInputs]) -> RowInputs:
    """The intervals of all parts, in their order."""
    ends = [(part.lower, part.upper) for part in parts]
    lower, upper = (
        np.concatenate([np.asarray(end) for end in side]) for side in zip(*ends, strict=True)
    )
    return RowInputs(lower=lower, upper=upper)


def any_calibrator_of(given: Any) -> AnyCalibrator:
    """The calibrator that was given, by name or left to the default."""
    calibrator = AutoCalibrator() if given is None else calibrator_of(given)
    if isinstance(calibrator, _ANY):
        return calibrator
    if isinstance(calibrator, SegmentedCalibrator):
        raise ParameterError(
            "a SegmentedCalibrator needs the columns of X that hold the segments: "
            'CalibratedClassifier(..., segments=["country", "product"]).'
        )
    raise ParameterError(
        "calibrator must be a Calibrator such as Platt(), a local one such as "
        f"SimilarityBinning(), or a name such as 'isotonic', but {calibrator!r} came."
    )
