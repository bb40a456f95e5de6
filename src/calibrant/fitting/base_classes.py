"""The base of calibrators of several classes at once: fit is written once, here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.columns import plain, score_column_facts, to_matrix
from calibrant.data.door import Number
from calibrant.data.scale import OnRange, ScoreRange
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_table import weight_in_rows
from calibrant.errors import InputError
from calibrant.fitting.base import Calibrator, ScoreEstimator, ScoreTransformer
from calibrant.losses import SMALLEST
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.softmax import Softmax
from calibrant.solvers.softmax import BlockSums, TemperatureFit, TemperatureSums, fit_temperature
from calibrant.version import __version__

#: limits of ``label_smoothing``
LABEL_SMOOTHING: Number = Number(0.0, 0.999)
#: features of up to so many numbers are kept between the passes of a fit; more are made anew
KEPT = 1 << 22
#: a matrix of more numbers than this gets a first, rough temperature from some of its rows
ROUGH = 1 << 20


class ClassViews:
    """Two views of predicted distributions: the top label, and the probability of one class."""

    classes_: NDArray[Any]
    predict_proba: Callable[..., Array]

    def top_label(self, scores: Any, *, on_range: OnRange = "error") -> tuple[NDArray[Any], Array]:
        """The most probable class of each row, and its probability: the confidence."""
        p = self.predict_proba(scores, on_range=on_range)
        best = np.argmax(p, axis=1)
        return self.classes_[best], p[np.arange(len(p)), best]

    def class_wise(self, scores: Any, label: Any, *, on_range: OnRange = "error") -> Array:
        """The probability of one class, shape (n,)."""
        known = [plain(c) for c in self.classes_]
        if label not in known:
            raise InputError(f"label must be one of the classes {known[:20]}, but {label!r} came.")
        return self.predict_proba(scores, on_range=on_range)[:, known.index(label)]


class KeepsClassMap(ClassViews):
    """A calibrator whose map takes a column of scores for each class."""

    map_: Any

    def _learn_rows(
        self, fitted: VectorMap, matrix: ScoreMatrix, classes: NDArray[Any], scores: Any
    ) -> None:
        """Set the fitted attributes: the map, the classes, and facts about the scores."""
        self.map_, self.classes_ = fitted, classes
        self.score_range_ = score_range_of_matrix(matrix, fitted)
        self._provenance = matrix_provenance(matrix) | score_column_facts(scores)


class VectorCalibrator(ScoreTransformer, ScoreEstimator, KeepsClassMap):
    """Turns (n, k) scores and labels of k classes into a map to distributions.

    A subclass declares its parameters in ``__init__``, their limits in ``_limits``, and gives
    ``_fit(matrix) -> VectorMap``. All else (labels, weights, checks, scikit-learn's contract,
    saving) is here.

    Parameters
    ----------
    weights : {"importance", "counts"}, default="importance"
        See `Calibrator`.
    classes : k labels, default: those found in y, sorted
        Column j of the scores is the j-th class. Needed where columns have another order, or where
        y may lack some classes, unless labels are whole numbers from 0 to k − 1.

    Attributes
    ----------
    map_ : VectorMap
        The fitted function, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted or as ``classes`` names them; the columns of the scores and of
        `predict_proba`.
    score_range_ : ScoreRange
        The scores that it was fitted on: whether they are probabilities, and from where to where.
    """

    multiclass: ClassVar[bool] = True
    _one_column: ClassVar[bool] = False

    weights: str | None = None
    classes: Any
    map_: VectorMap

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            A score of each row for each of two or more classes, such as the logits of a network or
            a predict_proba; column j belongs to the j-th of ``classes_``.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        self._check_fit(scores, y)
        matrix, classes = self._read(scores, y, sample_weight)
        if self._whole is not None:
            matrix = replace(matrix, whole=self._whole)
        weight = weight_in_rows(matrix.weight, self.weights)
        fitted = self._fit(replace(matrix, weight=weight))
        self._learn_rows(fitted, matrix, classes, scores)
        self.n_features_in_ = matrix.n_classes
        return self

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        """The matrix of the rows, and the classes; a subclass may leave tensors on their device."""
        return read_matrix(scores, y, sample_weight, self.classes)

    @abstractmethod
    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        """The map for a matrix whose weights are in units of rows.

        May set further ``name_`` attributes.
        """


class OneScoreOrMany(Calibrator, KeepsClassMap):
    """A calibrator of one score, or of a column for each of three or more classes."""

    multiclass: ClassVar[bool] = True

    def _learn_rows(
        self, fitted: VectorMap, matrix: ScoreMatrix, classes: NDArray[Any], scores: Any
    ) -> None:
        super()._learn_rows(fitted, matrix, classes, scores)
        self.pos_label_ = None

    def _refuse_pos_label(self) -> None:
        """Refuse ``pos_label`` beside several classes."""
        if self.pos_label is not None:
            raise InputError(
                "pos_label must be None for scores of several classes, but "
                f"{self.pos_label!r} came."
            )


def count_columns(scores: Any) -> int:
    """The number of columns of scores; 1 for scores in one dimension."""
    shape = getattr(scores, "shape", None)
    if not isinstance(shape, tuple):
        shape = to_matrix(scores, "scores").shape
    return int(shape[1]) if len(shape) == 2 else 1


def score_range_of_matrix(matrix: ScoreMatrix, fitted: Map) -> ScoreRange:
    """The range of the scores that a map was fitted to; logits are never probabilities."""
    logits = isinstance(fitted, VectorMap) and fitted.reads == "logit"
    return ScoreRange.between(*matrix.ends, probabilities=not logits)


def matrix_provenance(matrix: ScoreMatrix) -> dict[str, Any]:
    """Facts about the matrix of a fit, for its provenance."""
    return {
        "calibrant": __version__,
        "weight": matrix.total,
        "class_weights": matrix.class_weight.tolist(),
        "rows": len(matrix),
        "effective_size": matrix.effective_size,
    }


@dataclass(frozen=True)
class RowReading:
    """How the rows of a matrix are read: ``input`` is "logit" or "probability", and probabilities
    are raised to at least ``floor``.

    `calibrant.maps.Softmax` reads new rows the same way, and explains ``inner``.
    """

    matrix: ScoreMatrix
    input: str
    floor: float

    def map(self, matrix: Any, bias: Any, inner: float | None = None) -> Softmax:
        """The map softmax(matrix·x + bias) that reads rows x this way."""
        return Softmax(matrix, bias, self.input, self.floor, inner)

    def source(
        self, *, inner: float | None = None, size: float = 1.0
    ) -> Callable[[], Iterator[tuple[Array, Index, Array]]]:
        """A function that gives the rows block by block: (features / size, codes, weights)."""
        reader = self.map(1.0, np.zeros(self.matrix.n_classes), inner)
        matrix, totals = self.matrix, None
        small = matrix.size <= KEPT
        if inner is not None and not small:  # found once, and not again in each pass
            totals = np.concatenate([reader.log_totals(x) for x, _, _ in matrix.blocks()])

        def blocks() -> Iterator[tuple[Array, Index, Array]]:
            start = 0
            for scores, codes, weight in matrix.blocks():
                stop = start + len(codes)
                x = reader.features(scores, None if totals is None else totals[start:stop])
                if size != 1.0:
                    x /= size
                start = stop
                yield x, codes, weight

        if not small:
            return blocks
        kept = list(blocks())
        return lambda: iter(kept)

    def temperature(self, *, smoothing: float = 0.0) -> TemperatureFit:
        """The fit of a temperature to the rows."""
        step, start = -(-self.matrix.size // ROUGH), None
        if step > 1:  # a pass over all rows takes long: begin near the optimum
            some = replace(self, matrix=self.matrix.every(step))
            start = fit_temperature(some.sums(), smoothing=smoothing).factor
        return fit_temperature(self.sums(), smoothing=smoothing, start=start)

    def sums(self) -> TemperatureSums:
        """The sums over rows that a fit of a temperature needs."""
        fused = self.matrix.temperature_sums() if self.input == "logit" else None
        return BlockSums(self.source()) if fused is None else fused


def read_as(matrix: ScoreMatrix, scale: str) -> RowReading:
    """How the rows of a matrix are read where the parameter ``scale`` has this value.

    ``"logit"``: as probabilities, whose logarithm is taken; ``"raw"``: as logits; ``"auto"``: as
    what they look like. Probabilities are raised to at least half the smallest positive one: so a
    zero, which a model may have rounded to, costs no more than the finest step the model can make.
    """
    if scale == "logit":
        matrix.check_distributions()
    if scale == "raw" or (scale == "auto" and matrix.kind() == "logit"):
        return RowReading(matrix, "logit", SMALLEST)
    return RowReading(matrix, "probability", max(0.5 * matrix.smallest_positive, SMALLEST))
