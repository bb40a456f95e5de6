"""Temperature scaling, and an ensemble of temperatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.score_matrix import ScoreMatrix, read_where_it_is
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import SCALES, on_logit_scale
from calibrant.fitting.base_classes import (
    LABEL_SMOOTHING,
    OneOrMany,
    Reading,
    VectorCalibrator,
    count_columns,
    reading,
)
from calibrant.fitting.limits import Limit, check_parameters
from calibrant.losses import logit
from calibrant.rules.base import Map, VectorMap, in_blocks
from calibrant.rules.sigmoids import Logistic
from calibrant.rules.softmax import VectorMixture
from calibrant.solvers.logistic import STEEPEST, fit_logistic
from calibrant.solvers.softmax import RIDGE
from calibrant.solvers.weights import mixture_weights

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
        With several classes all of them, in the order of the columns (default: sorted).

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
        clip = table.inner_interval if on_logit else None
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


# --- Ensemble temperature scaling: a temperature, the scores as they are and even odds, mixed -----


#: a member of less than this share is left out
LEAST_SHARE = 1e-9


class EnsembleTemperature(VectorCalibrator):
    """A temperature, mixed with the scores as they are and with equal probabilities (ETS).

    P = w₁·softmax(z / T) + w₂·softmax(z) + w₃/k for k classes, with shares w that sum to one.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits z; ``"logit"``: they are probabilities and z = ln p;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.
    shares_ : ndarray of shape (3,)
        w: of the scores at the temperature, of the scores as they are, and of the uniform
        distribution.

    Notes
    -----
    First T is fitted by maximum likelihood, as by `Temperature`; then, with T fixed, the shares
    [1]_. The log loss is convex in the shares. Newton's method finds its minimum, where a share may
    be zero. So the log loss on the rows of the fit is never above that of a temperature alone. No
    row changes the order of its classes, so the most probable class stays what it is. The uniform
    part w₃/k keeps all probabilities above zero. That helps where labels are sometimes wrong,
    however sure the model is.

    Only ratios of weights matter. Zero probabilities are read as half the smallest positive one.
    O(n·k) for each pass of the temperature, and one pass more; float32 scores and memory maps are
    read block by block and never copied as a whole.

    References
    ----------
    .. [1] J. Zhang, B. Kailkhura, T. Han, "Mix-n-match: ensemble and compositional methods for
       uncertainty calibration in deep learning", 2020, doi:10.48550/arXiv.2003.07329.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.normal(size=(3000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> wrong = rng.random(3000) < 0.3
    >>> y[wrong] = rng.integers(0, 3, wrong.sum())
    >>> c = EnsembleTemperature().fit(z, y)
    >>> c.shares_.round(1).tolist(), c.predict_proba([[9, 0, 0]]).round(1).tolist()
    ([0.0, 0.7, 0.3], [[0.8, 0.1, 0.1]])
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"scale": (SCALES,)}

    def __init__(self, *, scale: str = "auto", classes: Any = None) -> None:
        self.scale = scale
        self.classes = classes

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        return read_where_it_is(scores, y, sample_weight, self.classes)

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = reading(matrix, self.scale)
        factor = read.temperature().factor
        own = _own_probabilities(read, factor)
        weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
        found = mixture_weights(own, weight / weight.mean(), 0.0)
        shares = np.where(found < LEAST_SHARE, 0.0, found)
        self.temperature_, self.shares_ = 1.0 / factor, shares / shares.sum()
        none = np.zeros(matrix.n_classes)
        used = [(w, f) for w, f in zip(self.shares_, (factor, 1.0, 0.0), strict=True) if w > 0.0]
        weights = np.array([w for w, _ in used])
        return VectorMixture(weights, tuple(read.map(f, none) for _, f in used))


def _own_probabilities(read: Reading, factor: float) -> Array:
    """The probability of each row's own class, by each of the three members, shape (n, 3)."""
    sums, even = read.sums(), np.full(len(read.matrix), 1.0 / read.matrix.n_classes)
    return np.column_stack((*(np.exp(-sums.own_losses(f)) for f in (factor, 1.0)), even))
