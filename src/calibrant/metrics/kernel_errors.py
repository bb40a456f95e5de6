"""The squared kernel calibration error: no bins, any number of classes, and a test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.optimize import brentq
from scipy.spatial.distance import cdist, pdist

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, weight_in_rows
from calibrant.errors import InputError, ParameterError, refuse_foreign_names
from calibrant.metrics.chance import batches
from calibrant.metrics.redraws import (
    BLOCK,
    CellRows,
    redrawn_classes,
    redrawn_hits,
    redrawn_p_value,
)
from calibrant.metrics.tables import (
    LabelledMatrix,
    check_counts,
    check_number,
    check_weights,
    check_whole,
    impossible,
    read_generator,
    read_predictions,
    read_table,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
)
from calibrant.result_tables import Readable

#: equal values of the statistic may differ by this part of its spread from rounding
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class SKCETest(Readable):
    """The result of `skce_test`.

    Attributes
    ----------
    value : float
        The squared kernel calibration error, as `skce` gives it.
    quantile : float
        Its ``level`` quantile if the predictions are right. (Its mean is then 0.)
    p_value : float
        The chance of at least this value if the predictions are right.
    bandwidth : float
        The distance at which the kernel has fallen to 1/e.
    level : float
        Which quantile.
    replicates : int
        How many times the labels were redrawn.
    """

    value: float
    quantile: float
    p_value: float
    bandwidth: float
    level: float
    replicates: int


@refuse_foreign_names
def skce(
    y: Any,
    p: Any = None,
    *,
    bandwidth: float | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Squared kernel calibration error (SKCE): do rows of near predictions err in one direction?

    Smaller is better. 0 is expected of right predictions, so that about half of all values are
    then below 0; at most 2.

    Parameters
    ----------
    y : array-like of shape (n,), ScoreTable or ScoreMatrix
        Labels; or a table or matrix of the probabilities with their labels (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    bandwidth : float, optional
        The distance between predictions at which the kernel has fallen to 1/e. Default: the median
        distance between distinct predictions (of at most 1,000 of them).
    random_state : int, Generator or None, default=0
        The seed of blocks; it plays no part for two classes, nor while all pairs are taken.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, or as a number of equal rows.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    The mean over all pairs i ≠ j of exp(−d(pᵢ, pⱼ)/γ)·⟨e_{yᵢ} − pᵢ, e_{yⱼ} − pⱼ⟩ (with weights: of
    wᵢwⱼ times that), where e_y is 1 at the class that came, d is the total variation ½ Σ_c |p_c −
    p'_c|, and γ the bandwidth. This is the unbiased quadratic estimate of [1]_ with a Laplacian
    kernel times the identity. For two classes the product is 2(y − p)(y' − p') and d = |p − p'|.
    It asks for calibration of the whole distribution, where `top_label_ece` asks for that of its
    largest entry and `classwise_ece` for that of its columns.

    Two classes: all pairs in O(D) after the table. k ≥ 3: O(n²k) up to n = 4,000; beyond, rows
    are put by chance into blocks of 1.6·10⁷/n rows, at least 50, and the mean is over pairs within
    blocks, which is unbiased too, and less precise. At most a block's kernel is in memory
    (128 MB). Rows of p are divided by their sums.

    It misleads as a number: it is on no scale that people know, depends on the bandwidth, and is
    the square of an error, so that 0.001 may be much. Use it in `skce_test`.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten, D. Zachariah, "Calibration tests in multi-class classification:
       a unifying framework", 2019, arXiv:1910.11385.

    Examples
    --------
    >>> skce([1, 1, 0, 0], [0.25, 0.25, 0.25, 0.75], bandwidth=1e-9)
    0.0625
    >>> p = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
    >>> skce(["a", "b"], p, classes=["a", "b", "c"]), skce(["b", "b"], p, classes=["a", "b", "c"])
    (-0.375, 0.875)
    """
    random, bandwidth = read_generator(random_state), _read_bandwidth(bandwidth)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    return _pairs_of(seen, weights, bandwidth, random).value()


@refuse_foreign_names
def skce_test(
    y: Any,
    p: Any = None,
    *,
    bandwidth: float | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> SKCETest:
    """Are the predictions right, for two or more classes? A test by the kernel calibration error.

    A value near 0 (a large p-value) is good.

    Parameters
    ----------
    y, p, bandwidth, sample_weight, weights, pos_label, classes : see `skce`
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
    level : float, default=0.95
        Which quantile of the redrawn value to return.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.

    Notes
    -----
    Labels are redrawn from their rows of p, which is what "the predictions are right" means, and
    `skce` of each redrawing is compared with that of the data: p-value = (1 + #{SKCE* ≥ SKCE})/
    (R + 1), valid for every n, k and distribution of p. (The bandwidth and the blocks look at p
    only.) [1]_ takes limits for many rows instead, which few rows and many classes are far from.

    Two classes: O(R·D), about 2 s for 10⁵ rows and 20 s for 10⁶. k ≥ 3: O(R·n²) up to 4,000 rows,
    which take about 4 s, as do those in blocks until these are of 50 rows; then in proportion to n.
    Something that happened at probability 0 could never be redrawn: the p-value is then 0. For two
    classes, importance weights of three or more tied rows are redrawn as in `ece_test`.

    It misleads where the error sits in few rows that are near no others, or changes sign within a
    bandwidth: products of both signs cancel. And with much data every model is found wrong.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten, D. Zachariah, "Calibration tests in multi-class classification:
       a unifying framework", 2019, arXiv:1910.11385.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.dirichlet([1, 1, 1], 300)
    >>> right = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> skce_test(right, p).p_value > 0.05
    True
    >>> wrong = np.where(rng.random(300) < 0.3, 0, right)
    >>> skce_test(wrong, p).p_value < 0.01
    True
    """
    replicates = check_whole("replicates", replicates, 1)
    level = check_number("level", level, 0.0, 1.0)
    random, bandwidth = read_generator(random_state), _read_bandwidth(bandwidth)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    pairs = _pairs_of(seen, weights, bandwidth, random)
    value, null = pairs.value(), pairs.redrawn(replicates, random)
    slack = ROUNDING * float(np.abs(null).max())
    return SKCETest(
        value,
        float(np.quantile(null, level)),
        0.0 if pairs.impossible else redrawn_p_value(null, value, slack),
        pairs.bandwidth,
        level,
        replicates,
    )


def _read_bandwidth(bandwidth: Any) -> float | None:
    """A bandwidth above 0; None where it is to be chosen from the predictions."""
    return None if bandwidth is None else check_number("bandwidth", bandwidth, 0.0)


def _pairs_of(
    seen: ScoreTable | LabelledMatrix,
    weights: str,
    bandwidth: float | None,
    random: np.random.Generator,
) -> Pairs:
    """The pairs of rows of a table of two classes, or of a matrix of several."""
    if isinstance(seen, ScoreTable):
        return TablePairs(seen, weights, bandwidth)
    return MatrixPairs(seen.matrix, weights, bandwidth, random)


# --------------------------------------------------------------------------------------------------
# Calibration without bins: errors smoothed by a Gaussian kernel that is reflected at 0 and 1


#: sizes of the grid that errors are put on; the next one is tried where one is too coarse
GRIDS = (1 << 16, 1 << 18, 1 << 20)
#: grid steps per kernel width: wanted for the errors, the fewest allowed, and for the integral
FINE, COARSE, INTEGRAL = 256.0, 4.0, 128.0
#: the most points of the integral
POINTS = 1 << 21
#: a kernel ends after this many widths
REACH = 10.0
#: the narrowest kernel that a caller may ask for: the grids are fine enough for it
NARROWEST = 1e-4


@dataclass(frozen=True, repr=False)
class SmoothECE(Readable):
    """The result of `smooth_ece`.

    Attributes
    ----------
    value : float
        The smooth ECE, which is the width of its own kernel as well, but where ``sigma`` gave one.
        Smaller is better; between 0 and 1.
    error : float
        How far the value may be from that of exact arithmetic.
    """

    value: float
    error: float


def smooth_ece(
    y: Any,
    p: Any = None,
    *,
    sigma: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> SmoothECE:
    """Smooth ECE: mean |smoothed error| at the kernel width that equals it; no bins to choose.

    Smaller is better; minimum 0, maximum 1.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    sigma : float, optional
        A kernel width, at least 0.0001, to compare models at; default: the one that equals the
        error.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    smECE_σ = ∫₀¹ |Σᵢ wᵢ(yᵢ − pᵢ) K_σ(t, pᵢ)| dt / Σw, where K_σ is the Gaussian density of standard
    deviation σ around pᵢ with what lies beyond 0 and 1 folded back. It falls as σ grows, so one σ
    has smECE_σ = σ: that is the smooth ECE. (``sigma=`` gives smECE_σ at that σ instead.) A
    consistent measure: at least a constant times the distance to the nearest perfectly calibrated
    predictor, at most the square root of it. It changes little when predictions change little,
    which the ECE does not promise.

    In the basis cos(mπt) the kernel is diagonal, exp(−σ²π²m²/2), so after one transform of the
    errors every σ costs one transform back: O(D + G log G). Errors are put on a grid of step h by
    linear interpolation and the integral is that of straight pieces; each moves the value by at
    most 0.121·(step/σ)²·Σ|w(y − p)|/Σw, and the sum of both is returned as ``error``: below 10⁻⁵,
    but for values under 0.0003 of the range of p. Ties are together. Weights count linearly, so
    that it makes no difference what they mean.

    It misleads: like every absolute error it is above 0 for perfect predictions, about n^(−1/3)/3
    where these are spread over [0, 1]; small where predictions are all nearly the same; and a mean:
    a large error of few rows does not show.

    References
    ----------
    .. [1] J. Błasiok, P. Nakkiran, "Smooth ECE: principled reliability diagrams via kernel
       smoothing", 2023, arXiv:2309.12236.

    Examples
    --------
    >>> smooth_ece([1, 1, 1, 1], [0.75, 0.75, 0.75, 0.75]).value
    0.25
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p
    >>> round(smooth_ece(y, p).value, 3), round(smooth_ece(y, p, sigma=0.1).value, 3)
    (0.014, 0.005)
    """
    if sigma is not None and check_number("sigma", sigma, 0.0) < NARROWEST:
        raise ParameterError(f"sigma must be at least {NARROWEST:g}, but {sigma!r} came.")
    return smooth_error(read_table(y, p, sample_weight, pos_label), sigma)


def smooth_error(table: ScoreTable, sigma: float | None = None) -> SmoothECE:
    """The smooth ECE of a table."""
    error = residuals(table) / table.total
    low, high = abs(float(error.sum())), float(np.abs(error).sum())
    if high <= low * (1.0 + 1e-12):  # errors of one sign, or none: every kernel gives the same
        return SmoothECE(min(high, 1.0), 0.0)
    if sigma is not None:
        kernels = (_SmoothedErrors(table.scores, error, size, REACH * sigma) for size in GRIDS)
        fine = (kernel for kernel in kernels if sigma >= FINE * kernel.step)
        kernel = next(fine, None) or _SmoothedErrors(table.scores, error, GRIDS[-1], REACH * sigma)
        return SmoothECE(kernel.excess(sigma) + sigma, kernel.bound(sigma))
    for size in GRIDS:
        kernel = _SmoothedErrors(table.scores, error, size, reach=REACH * high)
        start = max(low, FINE * kernel.step)
        if start < high and kernel.excess(start) >= 0.0:
            break
    else:
        start = max(low, COARSE * kernel.step)
        if start >= high or kernel.excess(start) < 0.0:
            value = min(start, high)  # the value lies between low and this
            return SmoothECE(value, value - low)
    if kernel.excess(high) >= 0.0:
        value = high
    else:
        value = float(brentq(kernel.excess, start, high, xtol=1e-12 * high, rtol=1e-12))
    return SmoothECE(value, kernel.bound(value))


class _SmoothedErrors:
    """The errors of all predictions on a grid, smoothed by a kernel of any width. Cosines make that
    cheap.

    The stretch of [0, 1] is long enough that kernels reach its ends at 0 and at 1 only.
    """

    def __init__(self, scores: Array, error: Array, size: int, reach: float) -> None:
        low, high = max(0.0, scores[0] - reach), min(1.0, scores[-1] + reach)
        self.length = float(high - low)
        self.step = self.length / size
        self.mass = float(np.abs(error).sum())
        where = (scores - low) / self.length * size
        left = np.minimum(where.astype(np.intp), size - 1)
        right = where - left
        nodes = np.zeros(size + 1)
        for place, part in ((left, error * (1.0 - right)), (left + 1, error * right)):
            nodes += np.bincount(place, part, minlength=size + 1)
        nodes[[0, -1]] *= 2.0  # the transform takes the ends once, the rest twice
        self.waves = dct(nodes, type=1) / 2.0

    def smoothed(self, sigma: float) -> Array:
        """The error at each point of an even grid, smoothed with the width sigma."""
        width, points = sigma / self.length, self._grid_steps(sigma)
        kept = min(points, len(self.waves))
        damped = np.zeros(points + 1)
        damped[:kept] = self.waves[:kept]
        damped[:kept] *= np.exp(-0.5 * (width * np.pi * np.arange(kept)) ** 2)
        return np.asarray(dct(damped, type=1, overwrite_x=True))

    def excess(self, sigma: float) -> float:
        """The mean |smoothed error| with the width sigma, minus sigma."""
        return _integral_of_absolute(self.smoothed(sigma)) - sigma

    def bound(self, sigma: float) -> float:
        """How far the value may be off, since errors and integral are on grids."""
        points = self.length / self._grid_steps(sigma)
        return 0.121 * self.mass * ((self.step / sigma) ** 2 + (points / sigma) ** 2)

    def _grid_steps(self, sigma: float) -> int:
        """The number of steps of the grid on which the integral is taken."""
        return min(POINTS, 1 << max(6, math.ceil(math.log2(INTEGRAL * self.length / sigma))))


def _integral_of_absolute(values: Array) -> float:
    """The integral of |g| over [0, 1], where g is straight between values on an even grid."""
    size = np.abs(values)
    sides = size[:-1] + size[1:]
    crossing = np.signbit(values[:-1]) != np.signbit(values[1:])
    area = sides / 2.0
    some = crossing & (sides > 0.0)
    both = size[:-1][some] ** 2 + size[1:][some] ** 2
    area[some] = both / (2.0 * sides[some])
    return float(area.mean())


# --- Mean products of residuals over pairs of rows, weighed by how near their predictions are -----
# A residual is the vector e_y − p. Each class here knows the mean for the labels that came, and for
# labels redrawn from the predictions.


Codes = NDArray[np.int32]
Random = np.random.Generator

#: predictions whose distances give the bandwidth
SAMPLE = 1000
#: rows are put into blocks where the square of their number is beyond this
WORK = 1.6e7
#: the most rows that counts may stand for
REPEATED = 1e8
#: the fewest rows of a block
SMALLEST = 50


class TablePairs:
    """All pairs of rows of a table of two classes, by the products of their residuals.

    The Laplace kernel on a line is a product of the steps between neighbours, so all pairs of D
    cells cost O(D).
    """

    def __init__(self, table: ScoreTable, weights: str, bandwidth: float | None) -> None:
        self.table = table_for_test(table, weights)
        self.impossible = impossible(table)
        p = self.table.scores
        even = np.unique(np.linspace(0, len(p) - 1, min(len(p), SAMPLE)).round().astype(np.intp))
        self.bandwidth = _median_gap(p[even, None]) if bandwidth is None else bandwidth
        with np.errstate(over="ignore"):
            self._decay = np.exp(-np.diff(p, prepend=p[0]) / self.bandwidth)
        total = self.table.total
        self.pairs = (total - float(squares(self.table).sum()) / total) * total
        _check_pairs(self.pairs, total)

    def value(self) -> float:
        """The kernel calibration error of the labels that came."""
        apart, own = residuals(self.table), squared_residuals(self.table)
        return float(self._means(apart[None, :], own[None, :])[0])

    def redrawn(self, replicates: int, random: Random) -> Array:
        """The kernel calibration error of labels redrawn from the predictions, for each
        redrawing."""
        rows = CellRows.of(self.table)
        drawn = redrawn_hits(rows, replicates, random)
        return np.concatenate([self._means(*_residual_sums(rows, *hits)) for hits in drawn])

    def _means(self, apart: Array, own: Array) -> Array:
        """The mean product over pairs of rows, from sums of w(y − p) and of its square in each
        cell.

        A row is no pair with itself.
        """
        from calibrant.metrics._kernel import pair_sums

        within = np.einsum("ij,ij->i", apart, apart) - own.sum(axis=1)
        between = pair_sums(np.ascontiguousarray(apart), self._decay)
        return np.asarray(2.0 * (within + 2.0 * between) / self.pairs)


def _residual_sums(
    rows: CellRows, one: Flags, many: Index, hits: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Σw(y* − p) and Σw²(y* − p)² of each cell, for labels y* from `redrawn_hits`."""
    apart = rows.other * (one - rows.p)
    own = apart**2
    rest, q, w = rows.size[many] - 1.0, rows.p[many], rows.common[many]
    apart[:, many] += w * (hits - rest * q)
    own[:, many] += w**2 * (hits * (1.0 - q) ** 2 + (rest - hits) * q**2)
    return apart, own


class MatrixPairs:
    """Pairs of rows of several classes: all pairs, or those within blocks of rows.

    Rows are put into blocks by chance, without a look at the labels. One block at a time is in
    memory.
    """

    def __init__(
        self, matrix: ScoreMatrix, weights: str, bandwidth: float | None, random: Random
    ) -> None:
        self.matrix = matrix
        rows, self._weight = _row_weights(matrix, weights)
        own = matrix.scores[np.arange(len(matrix)), matrix.codes]
        self.impossible = bool((own == 0.0).any())
        if bandwidth is None:
            n = len(matrix)
            some = np.arange(n) if n <= SAMPLE else random.choice(n, SAMPLE, replace=False)
            bandwidth = _median_gap(self._distributions(some))
        self.bandwidth = bandwidth
        self._blocks = [rows[part] for part in _random_blocks(len(rows), random)]
        parts = (self._weight[rows] for rows in self._blocks)
        self.pairs = sum(float(w.sum() ** 2 - w @ w) for w in parts)
        _check_pairs(self.pairs, float(self._weight[rows].sum()))

    def value(self) -> float:
        """The kernel calibration error of the labels that came."""
        total = sum(
            block.sums(self.matrix.codes[rows, None].astype(np.int32))[0]
            for rows, block in zip(self._blocks, self._row_blocks(), strict=True)
        )
        return float(total) / self.pairs

    def redrawn(self, replicates: int, random: Random) -> Array:
        """The kernel calibration error of labels redrawn from the predictions, for each
        redrawing."""
        totals = np.zeros(replicates)
        for block in self._row_blocks():
            sizes = batches(replicates, 4 * BLOCK // len(block.p))
            drawn = (redrawn_classes(block.p, size, random) for size in sizes)
            totals += np.concatenate([block.sums(codes) for codes in drawn])
        return totals / self.pairs

    def _row_blocks(self) -> Iterator[_RowBlock]:
        """The blocks of rows, made one after another to save memory."""
        for rows in self._blocks:
            yield _RowBlock(self._distributions(rows), self._weight[rows], self.bandwidth)

    def _distributions(self, rows: Index) -> Array:
        """The probabilities of some rows, each row divided by its sum."""
        p = self.matrix.scores[rows].astype(np.float64)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


class _RowBlock:
    """A block of rows with the kernel between all of its pairs."""

    def __init__(self, p: Array, weight: Array, bandwidth: float) -> None:
        self.p, self.weight = p, weight
        with np.errstate(over="ignore"):
            near = np.exp(-0.5 * cdist(p, p, "cityblock") / bandwidth)
        np.fill_diagonal(near, 0.0)  # a row is no pair with itself
        near *= weight
        near *= weight[:, None]
        self.near, self.blurred = near, near @ p
        self.constant = float(np.einsum("ij,ij->", p, self.blurred))

    def sums(self, codes: Codes) -> Array:
        """The sum over pairs of rows of kernel · product of residuals, for each column of classes.

        The product is [y = y'] − p'_y − p_y' + ⟨p, p'⟩.
        """
        from calibrant.metrics._kernel import same_class_sums

        crossed = np.take_along_axis(self.blurred, codes, axis=1).sum(axis=0)
        return np.asarray(same_class_sums(self.near, codes) - 2.0 * crossed + self.constant)


Pairs = TablePairs | MatrixPairs


def _row_weights(matrix: ScoreMatrix, weights: str) -> tuple[Index, Array]:
    """Which rows to pair, and the weight of each. Weights that are counts repeat rows."""
    check_weights(weights)
    rows, weight = np.arange(len(matrix)), weight_in_rows(matrix.weight, weights)
    if weight is None or weights != "counts":
        return rows, np.ones(len(matrix)) if weight is None else weight
    check_counts(weight, weights)
    if weight.sum() > REPEATED:
        raise InputError(
            f'weights="counts" repeats rows, {REPEATED:.0e} of them at most, but their sum is '
            f'{weight.sum():.3g}. Pass a part of the rows, or weights="importance".'
        )
    return np.repeat(rows, weight.astype(np.intp)), np.ones(len(matrix))


def _random_blocks(n: int, random: Random) -> list[Index]:
    """The numbers of all rows, dealt at random into blocks where there are too many for one."""
    most = max(SMALLEST, int(WORK / n))
    if n <= most:
        return [np.arange(n)]
    return np.array_split(random.permutation(n), math.ceil(n / most))


def _median_gap(p: Array) -> float:
    """The median distance (total variation) between distinct predictions; 1 where all are equal.

    One column stands for two classes.
    """
    apart = pdist(np.unique(p, axis=0), "cityblock") * (1.0 if p.shape[1] == 1 else 0.5)
    return float(np.median(apart)) if len(apart) else 1.0


def _check_pairs(pairs: float, total: float) -> None:
    """Refuse data of which only one row has weight."""
    if not pairs > 1e-9 * total**2:
        raise InputError(
            "skce compares pairs of rows, so there must be two rows with weight, but one came."
        )
