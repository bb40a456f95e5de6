"""Temperature scaling: one positive factor on the logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.score_tensor import read_where_it_is
from calibrant.estimators.base import SCALES, inner_interval, on_logit_scale
from calibrant.estimators.limits import Limit, check_parameters
from calibrant.kernels.logistic import STEEPEST, fit_logistic
from calibrant.kernels.temperature import RIDGE
from calibrant.losses import logit
from calibrant.maps import Logistic, Map, VectorMap
from calibrant.maps.checks import in_blocks
from calibrant.scaling.base import (
    LABEL_SMOOTHING,
    OneOrMany,
    count_columns,
    reading,
)

#: the flattest map: 1/T times the logits' root mean square is at least this
FLATTEST = 1e-3


class Temperature(OneOrMany):
    """P = σ(z / T), or softmax(z / T), with one temperature T > 0, by maximum likelihood.

    Scores of one column, or the two of a binary predict_proba, calibrate two classes; a column for
    each of three or more classes calibrates them together.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        Whether z is the logit of the score (of several classes: the logarithm of each probability)
        or the score itself; ``"auto"`` takes the logit when all scores lie in [0, 1] (and the rows
        of several classes sum to one), and reads anything else as logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    pos_label : see `Calibrator`
        With two classes only.
    classes : see `Calibrator`
        With several classes all of them, in sorted order: that of the columns.

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.

    Notes
    -----
    Convex in 1/T. T is always positive, so the order of scores never turns. Where the data ask for
    a negative slope, T is the largest allowed: 1000 times the root mean square of z (for several
    classes, of the differences between a row's logits), and all probabilities come close to 1/k. A
    ridge of 1e-7·Σw keeps separable data finite. Only the ratios of weights matter. Equal scores
    stay equal: temperature cannot move the base rate. Scores of exactly 0 and 1 count as half as
    far from the end as the outermost score inside (0, 1); with several classes a zero counts as
    half the smallest positive entry.

    O(D) per Newton step after the table; O(n·k) for several classes, block by block. Float32 scores
    and memory maps are never copied as a whole, neither here nor by ``map_``, which can write into
    a given array. (Rows of weight zero are an exception: leave them out yourself where memory is
    short.) Logits of several classes in a tensor are fitted on the tensor's device.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017.

    Examples
    --------
    >>> p = [0.99, 0.99, 0.99, 0.99, 0.01, 0.01, 0.01, 0.01]
    >>> c = Temperature().fit(p, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> round(c.temperature_, 3), c.calibrate([0.99]).round(3).tolist()
    (4.183, [0.75])
    >>> c = Temperature().fit([[3, 0, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0]], list("abcb"))
    >>> round(c.temperature_, 3), c.predict_proba([[3, 0, 0]]).round(3).tolist()
    (1.674, [[0.75, 0.125, 0.125]])
    """

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "label_smoothing": (LABEL_SMOOTHING,),
    }

    def __init__(
        self,
        *,
        scale: str = "auto",
        label_smoothing: float = 0.0,
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.scale = scale
        self.label_smoothing = label_smoothing
        self.pos_label = pos_label
        self.classes = classes

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
            Scores of any kind, a binary predict_proba, or logits or probabilities of k classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        if y is None or count_columns(scores) < 3:
            super().fit(scores, y, sample_weight)
            return self
        check_parameters(self, self._limits)
        self._refuse_pos_label()
        matrix, classes = read_where_it_is(scores, y, sample_weight, self.classes)
        self._learn_rows(self._fit_matrix(matrix), matrix, classes, scores)
        return self

    def _fit(self, table: ScoreTable) -> Map:
        on_logit = on_logit_scale(self.scale, table)
        clip = inner_interval(table) if on_logit else None
        low = 0.5 * self.label_smoothing

        def fit(part: ScoreTable, start: Array | None) -> Array:
            scores = part.scores if clip is None else np.clip(part.scores, *clip)
            z = in_blocks(logit, scores) if on_logit else scores
            found = fit_logistic(
                [z],
                part.negative,
                part.positive,
                intercept=False,
                ridge=RIDGE * part.total,
                smoothing=(low, low),
                start=start,
            )
            with np.errstate(over="ignore"):
                flattest = FLATTEST / _size(z, part.weight)
            return np.clip(found.coefficients, min(flattest, STEEPEST), STEEPEST)

        slope = float(table.coarse_to_fine(fit)[0])
        self.temperature_ = 1.0 / slope
        return Logistic(0.0, (("z" if on_logit else "x", slope),), clip)

    def _fit_matrix(self, matrix: ScoreMatrix) -> VectorMap:
        read = reading(matrix, self.scale)
        found = read.temperature(smoothing=self.label_smoothing)
        self.temperature_ = 1.0 / found.factor
        return read.map(found.factor, np.zeros(matrix.n_classes))


def _size(z: Array, weight: Array) -> float:
    """Weighted root mean square, safe from overflow; 1 where all are zero."""
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return 1.0
    square = z / largest
    square *= square
    return largest * float(np.sqrt(square @ weight / weight.sum()))
