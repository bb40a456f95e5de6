"""Fitted models, each together with what calibrates its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from calibrant.array_types import Array, Flags, Index
from calibrant.auto.auto import AutoCalibrator
from calibrant.data.door import are_distributions
from calibrant.data.scale import ScoreRange, ScoreScale
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import Calibrator
from calibrant.fitting.base_classes import VectorCalibrator
from calibrant.fitting.base_rows import LocalCalibrator
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.folds import SPLITTING, check_calibrating, row_pairs, warn_of_missing
from calibrant.fitting.model_scores import (
    Method,
    ModelRows,
    Part,
    fit_and_score,
    may_be_probabilities,
    model_scores,
    pooled,
    score_method,
    take,
    unseen,
)
from calibrant.fitting.registry import calibrator_of
from calibrant.methods.codes.calibrator import CodedCalibrator
from calibrant.methods.codes.codes import one_vs_rest, read_code
from calibrant.methods.segments.calibrator import SegmentedCalibrator
from calibrant.rules.base import RowInputs

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
        return _without(self._calibrated(scores, X), unseen(self.estimator, self.classes))

    def _calibrated(self, scores: Array, X: Any) -> Array:
        """The calibrator's probabilities; scores of the same model as in the fit may be any."""
        if isinstance(self.calibrator, LocalCalibrator):
            if self.companion is None:
                raise InputError("a member with a local calibrator must have a companion.")
            return self.calibrator.predict_rows(scores, self.companion(X))
        if isinstance(self.calibrator, SegmentedCalibrator):
            segments = segments_of(X, self.segments)
            return self.calibrator.predict_proba(scores, segments, on_range="allow")
        if scores.ndim == 1 and not isinstance(self.calibrator, Calibrator):
            scores = _pair(scores, self.margins)
        return self.calibrator.predict_proba(scores, on_range="allow")

    def to_fitted(self) -> Fitted:
        """What calibrates the scores, as a plain value; the model is not in it."""
        fitted = self.calibrator.to_fitted()
        known = fitted.score_range
        if known is not None and not may_be_probabilities(self.estimator, self.method):
            # new scores need not lie in [0, 1], although those of the fit may do
            fitted = replace(fitted, score_range=ScoreRange("number", known.low, known.high))
        if not isinstance(self.calibrator, CodedCalibrator):
            return fitted
        one = next(c for c in self.calibrators if c is not None).to_fitted()
        return replace(fitted, method=one.method, params=one.params)


# --- models ---------------------------------------------------------------------------------------


class FittedModel(NamedTuple):
    """A fitted model and the rows that it learned (None: all of them)."""

    model: Any
    learned: Index | None


class ModelToKeep(NamedTuple):
    """A model that predicts, and the scores to calibrate it on, part by part.

    Each part was scored by the model of ``scored_by`` at its place.
    """

    kept: FittedModel
    parts: list[Part]
    scored_by: list[FittedModel]


def fit_models(
    classifier: Any, data: ModelRows, estimator: Any, kind: str, groups: Any
) -> list[ModelToKeep]:
    """The models to keep. ``kind`` is that of the classifier's cv."""
    if kind == "prefit":
        whole = FittedModel(estimator, None)
        return [ModelToKeep(whole, [(data.scores(estimator), None)], [whole])]
    pairs = row_pairs(classifier.cv, data, groups, classifier.random_state)
    if kind in SPLITTING:
        warn_of_missing(pairs, data, estimator)
    if classifier.ensemble:
        check_calibrating(pairs, data)
    scored = Parallel(n_jobs=classifier.n_jobs)(
        delayed(fit_and_score)(data, estimator, train, test) for train, test in pairs
    )
    parts = [(scores, test) for (_, scores), (_, test) in zip(scored, pairs, strict=True)]
    models = [
        FittedModel(model, train) for (model, _), (train, _) in zip(scored, pairs, strict=True)
    ]
    if kind == "folds" and not classifier.ensemble:
        again = FittedModel(data.fit_again(estimator, [model for model, _ in models]), None)
        return [ModelToKeep(again, parts, models)]
    return [ModelToKeep(model, [part], [model]) for model, part in zip(models, parts, strict=True)]


# --- calibrators ----------------------------------------------------------------------------------


def scale_of_scores(data: ModelRows, found: list[ModelToKeep]) -> ScoreScale:
    """What the scores are that any of the models gave to rows that count."""
    parts = [part for kept in found for part in kept.parts]
    if data.weight is None:
        scores = [s for s, _ in parts if s.size]
    else:
        counts = data.weight > 0.0
        scores = [s[counts if rows is None else counts[rows]] for s, rows in parts]
        scores = [s for s in scores if s.size]
    if not scores:  # the calibrator says so
        return ScoreScale(0.0, 1.0)
    low, high = min(float(s.min()) for s in scores), max(float(s.max()) for s in scores)
    if scores[0].ndim == 1:
        return ScoreScale(low, high)
    distributions = [are_distributions(s) for s in scores]
    if not any(distributions):  # each part says by itself what else it looks like
        return ScoreScale(low, high)
    return ScoreScale(low, high, "probability" if all(distributions) else "logit")


def fit_member(
    calibrator: AnyCalibrator,
    data: ModelRows,
    kept: ModelToKeep,
    trained: ModelRows | None,
    segments: Any,
    scale: ScoreScale,
) -> Member:
    """Calibrate a fitted model on its pooled parts.

    ``scale`` says what the scores of all models together are.
    ``trained`` is the data whose rows the models learned; None means that nobody knows.
    """
    (model, learned), parts, _ = kept
    more: dict[str, Any] = {}
    fitted: AnyCalibrator
    if isinstance(calibrator, LocalCalibrator):
        fitted = _fit_local(calibrator, data, kept, trained, scale)
        more["companion"] = fitted.companion(model, trained, learned)
    elif isinstance(calibrator, SegmentedCalibrator):
        fitted = _fit_segments(calibrator, data, parts, segments, scale)
        more["segments"] = segments
    elif isinstance(calibrator, Calibrator) and len(data.classes) == 2:
        fitted = _with_labels(calibrator, data)
        labels = data.y if data.share is None else data.share
        with pooled(fitted, data, parts) as (scores, rows, weight), fitted._part_of(scale):
            fitted.fit(scores, labels[rows], weight)
    else:
        fitted, more["margins"] = _fit_all(calibrator, data, parts, scale)
    return Member(model, fitted, data.classes, data.positive, data.method, **more)


def _with_labels(calibrator: Any, data: ModelRows) -> Any:
    """A clone that is told the labels and, with two classes, what a high score means."""
    labels: dict[str, Any] = {"classes": list(data.classes)}
    if len(data.classes) == 2 and hasattr(calibrator, "pos_label"):
        labels["pos_label"] = data.classes[data.positive]
    return clone(calibrator).set_params(**labels)


def _fit_all(
    calibrator: Calibrator | VectorCalibrator | CodedCalibrator,
    data: ModelRows,
    parts: list[Part],
    scale: ScoreScale,
) -> tuple[AnyCalibrator, bool]:
    """Fitted to the scores of all classes: to all at once, or to each class against the rest.

    And whether the single scores of two classes are margins.
    """
    if isinstance(calibrator, Calibrator) and not calibrator.multiclass:
        calibrator = CodedCalibrator(clone(calibrator).set_params(classes=None))
    if isinstance(calibrator, CodedCalibrator):
        _check_one_each(calibrator, len(data.classes))
    whole = _with_labels(calibrator, data)
    one_column = parts[0][0].ndim == 1
    margins = one_column and not scale.probabilities
    told: ScoreScale | None = scale
    if one_column:  # both columns are made of one score
        rows_are = scale._replace(rows="logit" if margins else "probability")
        told = None if isinstance(whole, CodedCalibrator) else rows_are
    with pooled(whole, data, parts) as (scores, rows, weight):
        columns = _pair(scores, margins) if one_column else scores
        with whole._part_of(told):
            whole.fit(columns, data.y[rows], weight)
    return whole, margins


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
    kept: ModelToKeep,
    trained: ModelRows | None,
    scale: ScoreScale,
) -> LocalCalibrator:
    """Fitted to scores together with the rows that they belong to."""
    if len(data.classes) > 2 and not calibrator.multiclass:
        raise InputError(
            f"{type(calibrator).__name__} calibrates two classes, but {len(data.classes)} came."
        )
    local: LocalCalibrator = _with_labels(calibrator, data)
    inputs = None
    if local.judges_inputs:
        inputs = _joined(
            local.companion(model, trained, learned)(take(data.X, rows))
            for (model, learned), (_, rows) in zip(kept.scored_by, kept.parts, strict=True)
        )
    whole = len(kept.parts) == 1 and kept.parts[0][1] is None
    with pooled(local, data, kept.parts) as (scores, rows, weight):
        X = data.X if whole else take(data.X, rows)
        with local._part_of(scale):
            local.fit_rows(scores, data.y[rows], X, weight, groups=rows, inputs=inputs)
    return local


def _joined(parts: Iterable[RowInputs]) -> RowInputs:
    """The intervals of all parts, in their order."""
    ends = [(part.lower, part.upper) for part in parts]
    lower, upper = (
        np.concatenate([np.asarray(end) for end in side]) for side in zip(*ends, strict=True)
    )
    return RowInputs(lower=lower, upper=upper)


def _fit_segments(
    calibrator: SegmentedCalibrator,
    data: ModelRows,
    parts: list[Part],
    columns: Any,
    scale: ScoreScale,
) -> SegmentedCalibrator:
    """Fitted to scores and the segments of the rows that they belong to."""
    if len(data.classes) != 2:
        raise InputError(f"segments are for two classes, but {len(data.classes)} came.")
    one: SegmentedCalibrator = _with_labels(calibrator, data)
    segments = segments_of(data.X, columns)
    with pooled(one, data, parts) as (scores, rows, weight):
        groups = None if len(np.unique(rows)) == len(rows) else rows
        beside = {"segments": take(segments, rows), "groups": groups}
        with one._part_of(scale):
            one.fit(scores, data.y[rows], weight, **beside)
    return one


def segments_of(X: Any, columns: Any) -> Any:
    """The columns of rows that hold their segments."""
    named = list(columns) if isinstance(columns, (list, tuple)) else columns
    try:
        return _safe_indexing(X, named, axis=1)
    except (ValueError, KeyError, IndexError, TypeError) as wrong:
        raise InputError(
            f"segments must name columns of X, or their places, but {columns!r} came: {wrong}"
        ) from wrong


def segmented_of(given: Any) -> SegmentedCalibrator:
    """The calibrator of segments: the one given, or one whose maps are of the kind given."""
    made = None if given is None else calibrator_of(given)
    if isinstance(made, SegmentedCalibrator):
        return made
    if made is None or isinstance(made, Calibrator):
        return SegmentedCalibrator(made)
    raise ParameterError(
        "with segments, calibrator must be one of a single score such as Platt(), or a "
        f"SegmentedCalibrator, but {made!r} came."
    )


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
