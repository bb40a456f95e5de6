"""What chance does to measures: intervals by formula, by tables drawn again, and a rising band.

A ``sample`` is a table whose weights are in units of rows (`calibrant.data.score_table`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import betaincinv, ndtri, stdtrit

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import CellColumns, ScoreTable, table_in_rows, weight_in_rows
from calibrant.errors import ParameterError
from calibrant.metrics.tables import (
    Bins,
    chance_variance,
    check_number,
    check_weights,
    check_whole,
    effective_rows,
    group_starts,
    last_cells,
    run_means,
    squared_residuals,
    squares,
    whole_power,
)
from calibrant.solvers.knots import interpolate

Span = tuple[float, float]

#: E|x| of a standard normal x
_FOLDED = math.sqrt(2.0 / math.pi)
#: binomial limits are computed for no more rows: beyond, the inverse of the beta integral fails
MOST_ROWS = 1e12


# --- weights ------------------------------------------------------------------------------------


class RowWeights(NamedTuple):
    """The weights of rows and their squares, in units of rows; and which rows belong to one
    cluster."""

    weight: Array
    squares: Array
    cluster: Index | None = None

    @classmethod
    def of(cls, given: Array | None, rows: int, weights: str) -> RowWeights:
        """The weights as ``weights`` says they are meant; without any, each row counts once."""
        weight = weight_in_rows(given, weights)
        if weight is None:
            weight = np.ones(rows)
        return cls(weight, weight if weights == "counts" else weight**2)

    @property
    def size(self) -> float:
        """How many rows of equal weight carry as much information: (Σw)²/Σw².

        Where rows belong together, w is the weight of a cluster, and clusters are counted.
        """
        squares = float(self.squares.sum())
        if self.cluster is not None:
            squares = float(np.square(np.bincount(self.cluster, self.weight)).sum())
        return float(self.weight.sum()) ** 2 / squares if squares else 0.0

    def by_class(self, positive: Flags) -> CellColumns:
        """Four columns: w of negatives, w of positives, and w² of both. A row of the other class
        has 0."""
        n0, n1, q0, q1 = (
            np.where(at, w, 0.0)
            for w in (self.weight, self.squares)
            for at in (~positive, positive)
        )
        return CellColumns(n0, n1, q0, q1)

    def error(self, influence: Array) -> float:
        """The standard error of Σw·influence / Σw.

        The size must be above 1. Where squares are too large for floats, the error is infinite.
        """
        total, size = float(self.weight.sum()), self.size
        apart = influence - float(self.weight @ influence) / total
        if self.cluster is None:
            with np.errstate(over="ignore", invalid="ignore"):
                spread = float(self.squares @ apart**2)
        else:
            spread = float(np.square(np.bincount(self.cluster, self.weight * apart)).sum())
        if math.isnan(spread):
            return math.inf
        return math.sqrt(spread * size / (size - 1.0)) / total


# --- means --------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """A mean with its standard error and skewness, and how many rows it is over."""

    mean: float
    error: float
    skew: float
    size: float

    @classmethod
    def of(cls, mean: float, seen: Span, expected: Span, total: float, size: float) -> Moments:
        """Moments from two pairs of sums, Σw²(x − mean)² and Σw³(x − mean)³: of the data as seen,
        and as the predictions expect them.

        The larger variance counts. Where rare events did not come, their absence must not look
        like certainty.
        """
        second, third = seen if seen[0] >= expected[0] else expected
        skew = third / second / math.sqrt(second) if second > 0 else 0.0  # (1e-260)^1.5 would be 0
        return cls(mean, math.sqrt(max(second, 0.0)) / total, skew, size)


def log_losses(p: Array) -> tuple[Array, Array]:
    """What a prediction loses by the log loss: if a negative came, and if a positive came."""
    with np.errstate(divide="ignore"):
        return -np.log1p(-p), -np.log(p)


#: what negatives and positives lose at some predictions
LOSSES: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "log": log_losses,
    "brier": lambda p: (p**2, (1.0 - p) ** 2),
}


def moments(p: Array, columns: CellColumns, losses: tuple[Array, Array]) -> Moments:
    """The mean of a loss and how it varies. ``losses`` are what negatives and positives lose at
    each cell."""
    n0, n1, q0, q1 = columns
    v0, v1 = (np.where(n > 0, v, 0.0) for n, v in zip((n0, n1), losses, strict=True))
    n, q = n0 + n1, q0 + q1
    total = float(n0.sum() + n1.sum())
    mean = float(n0 @ v0 + n1 @ v1) / total
    r0, r1 = v0 - mean, v1 - mean
    size = total**2 / float(q0.sum() + q1.sum())
    seen2 = float(q0 @ r0**2 + q1 @ r1**2) * size / (size - 1.0)
    seen3 = float(cubed_weights(n0, q0) @ whole_power(r0) + cubed_weights(n1, q1) @ whole_power(r1))
    chance = p * (1.0 - p)
    with np.errstate(invalid="ignore"):
        apart = np.where(chance > 0, losses[1] - losses[0], 0.0)
    expected2 = float(q @ (chance * apart**2))
    expected3 = float(cubed_weights(n, q) @ (chance * (1.0 - 2.0 * p) * whole_power(apart)))
    return Moments.of(mean, (seen2, seen3), (expected2, expected3), total, size)


def cubed_weights(n: Array, q: Array) -> Array:
    """Σw³ of each cell, supposing that its weights are equal; n is Σw, q is Σw²."""
    return np.divide(q**2, n, out=np.zeros_like(q), where=n > 0)


def mean_interval(m: Moments, level: float) -> Span:
    """Student's interval of a mean, corrected for skewness by Johnson's method (1978)."""
    t = float(stdtrit(max(m.size - 1.0, 0.5), 0.5 + level / 2))
    move = min(max(m.skew * (1.0 / 6.0 + t**2 / 3.0), -t / 2), t / 2)
    return m.mean + m.error * (move - t), m.mean + m.error * (move + t)


def row_moments(losses: Array, rows: RowWeights, least_variance: float = 0.0) -> Moments:
    """The mean of a loss and how it varies, where the loss of each row is known."""
    weight, squares = rows.weight, rows.squares
    total = float(weight.sum())
    mean = float(weight @ losses) / total
    seen = rows.error(losses)
    error = max(seen, math.sqrt(least_variance))
    if seen <= 0 or rows.cluster is not None:
        return Moments(mean, error, 0.0, rows.size)
    apart = (losses - mean) / (seen * total)
    return Moments(mean, error, float((squares**2 / weight) @ whole_power(apart)), rows.size)


def normal_quantile(level: float) -> float:
    """The z at which a standard normal number lies between −z and z with this probability."""
    return float(ndtri(0.5 + level / 2))


# --- shares and areas ---------------------------------------------------------------------------


def share_interval(share: float, size: float, level: float) -> Span:
    """Wilson's interval of a share that was seen in ``size`` cases."""
    if size < 1e-100:  # next to no row says anything
        return 0.0, 1.0
    extra = normal_quantile(level) ** 2 / size
    middle = (share + extra / 2) / (1.0 + extra)
    half = math.sqrt(max(extra * share * (1.0 - share) + extra**2 / 4, 0.0)) / (1.0 + extra)
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)


def area_interval(sample: ScoreTable, level: float) -> Span:
    """The interval of the AUC of a table, with DeLong's variance."""
    n0, n1, q0, q1 = sample.columns
    total0, total1 = float(n0.sum()), float(n1.sum())
    if not (q0.any() and q1.any()):  # a class has next to no weight
        return 0.0, 1.0
    above = (total1 - np.cumsum(n1) + n1 / 2) / total1  # of positives, for a negative
    below = (np.cumsum(n0) - n0 / 2) / total0
    area = float(n1 @ below / total1)
    size0, size1 = total0**2 / float(q0.sum()), total1**2 / float(q1.sum())
    spread0 = float(q0 @ (above - area) ** 2) / total0**2 * size0 / max(size0 - 1.0, 0.5)
    spread1 = float(q1 @ (below - area) ** 2) / total1**2 * size1 / max(size1 - 1.0, 0.5)
    return wilson_area(area, spread0 + spread1, size0, size1, level)


def wilson_area(area: float, variance: float, size0: float, size1: float, level: float) -> Span:
    """Wilson's interval of an AUC. It counts as the share in as many cases as have this variance.

    The number is at most the one behind Hanley and McNeil's variance near an area of 1: a perfect
    order of few cases is no certainty.
    """
    most = 2.0 * size0 * size1 / ((size0 + size1) / 2 + 1.0)
    size = min(area * (1.0 - area) / variance, most) if variance > 0 else most
    return share_interval(area, size, level)


def auc_influence(table: ScoreTable, scores: Array, positive: Flags, area: float) -> Array:
    """How far each row moves the AUC. Rows are given by their scores.

    A positive counts the negatives below it, a negative the positives above it.
    """
    return auc_influence_of_cells(table, np.searchsorted(table.scores, scores), positive, area)


def auc_influence_of_cells(table: ScoreTable, cell: Index, positive: Flags, area: float) -> Array:
    """How far each row moves the AUC. Rows are given by their cells in the table."""
    n0, n1 = table.negative, table.positive
    below = (np.cumsum(n0) - n0 / 2) / table.total_negative
    above = 1.0 - (np.cumsum(n1) - n1 / 2) / table.total_positive
    share1 = table.total_positive / table.total
    share0 = 1.0 - share1 or table.total_negative / table.total
    return np.where(positive, (below[cell] - area) / share1, (above[cell] - area) / share0)


# --- errors over bins ---------------------------------------------------------------------------


class Binned(NamedTuple):
    """Per bin that is not empty: Σ(p − y)w/Σw and its standard error, the number of cases, the
    share of positives and the mean prediction.

    ``borders`` are the predictions with which all bins but the first begin, ``ece_error`` is the
    standard error of Σ|gap|.
    """

    borders: Array
    gap: Array
    error: Array
    size: Array
    rate: Array
    predicted: Array
    ece_error: float

    @property
    def ece(self) -> float:
        """The ECE: the sum of |gap| over the bins."""
        return float(np.abs(self.gap).sum())

    @property
    def cautious_ece(self) -> float:
        """An ECE that is on average not above the true one: what chance adds is taken off. At least
        0."""
        return max(float(cautious_gap(self.gap, self.error).sum()), 0.0)

    def influence(self, p: Array, positive: Flags) -> Array:
        """How far each row, by its prediction p, moves the ECE."""
        sign = np.sign(self.gap)[np.searchsorted(self.borders, p, side="right")]
        return sign * (p - positive)


def cautious_gap(gap: Array, error: Array) -> Array:
    """|gap| of each bin without what chance adds; on average never above the true |gap|.

    With x = gap/error and δ its expectation, E|x| exceeds |δ| by at most √(2/π)·e^(−δ²/2), and
    τ(x) = √(4/π)·e^(−x²/2) has the expectation √(2/π)·e^(−δ²/4).
    """
    x = np.divide(gap, error, out=np.full_like(gap, np.inf), where=error > 0)
    x = np.clip(x, -100.0, 100.0)  # the square of more could overflow, and e^(−x²/2) is 0 already
    return np.abs(gap) - error * (_FOLDED * math.sqrt(2.0)) * np.exp(-(x**2) / 2)


def bin_sums(sample: ScoreTable, bins: Bins) -> Binned:
    """The sums of a table over its bins, of equal width or ``"auto"``."""
    starts = group_starts(sample, bins)
    p, total = sample.scores, sample.total
    n0, n1, q0, q1 = sample.columns

    def add(column: Array) -> Array:
        return np.asarray(np.add.reduceat(column, starts))

    n, q = n0 + n1, q0 + q1
    weight, squares = add(n), add(q)
    gap = add(n * p - n1) / total
    seen, expected = add(squared_residuals(sample)), add(chance_variance(sample))
    pull = add(q0 * p - q1 * (1.0 - p))
    whole = float(q.sum())
    variance = np.maximum(seen - 2.0 * gap * pull + gap**2 * whole, expected) / total**2
    mean = float(np.abs(gap).sum())
    spread = float(np.maximum(seen, expected).sum()) - 2.0 * mean * float(np.sign(gap) @ pull)
    ece_error = max(spread + mean**2 * whole, 0.0) / total**2
    rate, predicted = add(n1) / weight, add(n * p) / weight
    return Binned(
        p[starts[1:]],
        gap,
        np.sqrt(variance),
        np.divide(weight**2, squares, out=np.ones_like(weight), where=squares > 0.0),
        rate,
        predicted,
        math.sqrt(ece_error),
    )


def largest_gap_interval(size: Array, rate: Array, predicted: Array, level: float) -> Span:
    """The interval of the MCE, from the binomial limits of every bin.

    The upper end needs the limits of one bin only, the one with the largest true gap. The lower
    end needs the limits of all bins to hold at once (Bonferroni).
    """
    tail = (1.0 - level) / 2
    value = float(np.abs(predicted - rate).max())
    low, high = clopper_pearson(size, rate, tail)
    above = np.maximum(np.abs(predicted - low), np.abs(high - predicted)).max()
    low, high = clopper_pearson(size, rate, tail / (2 * len(rate)))
    below = np.maximum(low - predicted, predicted - high).max()
    return min(max(float(below), 0.0), value), min(max(float(above), value), 1.0)


def clopper_pearson(size: Array, share: Array, tail: float) -> tuple[Array, Array]:
    """Clopper and Pearson's limits of a share of ``size`` rows; each end is passed with probability
    ``tail``.

    ``size`` may be an effective one, which need not be whole.

    >>> low, high = clopper_pearson(np.array([10.0]), np.array([0.0]), 0.025)
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.3085)
    """
    size = np.minimum(size, MOST_ROWS)
    hits, misses = size * share, size * (1.0 - share)
    low = betaincinv(np.where(hits > 0, hits, 1.0), misses + 1.0, tail)
    high = betaincinv(hits + 1.0, np.where(misses > 0, misses, 1.0), 1.0 - tail)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


class IntervalOptions(NamedTuple):
    """The options of intervals: level, redrawings, how weights are read, and the seed."""

    level: float
    replicates: int
    weights: str
    seed: int | None

    @property
    def rng(self) -> np.random.Generator:
        """A random generator that starts anew from the seed."""
        return np.random.default_rng(self.seed)


def read_interval_options(
    level: Any, replicates: Any, weights: Any, random_state: Any
) -> IntervalOptions | None:
    """The options of intervals, checked; None where ``level`` is None."""
    check_weights(weights)
    replicates = check_whole("replicates", replicates, 100)
    seed = None if random_state is None else check_whole("random_state", random_state, 0)
    if level is None:
        return None
    if isinstance(level, str):
        raise ParameterError(f"level must be a number such as 0.95, or None, but {level!r} came.")
    return IntervalOptions(check_number("level", level, 0.0, 1.0), replicates, weights, seed)


# --- Intervals from tables drawn again, for measures that use windows or isotonic regression ------
# These measures are too large on average: chance looks like miscalibration, and isotonic regression
# fits it. A bootstrap of rows would add that chance a second time. So tables are drawn from two
# models whose true value is known: in one the predictions are right, in the other the isotonic
# curve of the data is.


#: tables are pooled to at most this many cells before others are drawn from them
CELLS = 2_000
#: and to so many times the cube root of the cases where only the spread of a measure is drawn:
#: blocks of isotonic regression hold about n^⅔ cases, so there are that many cells for each block,
#: whatever n is. The bias needs all cells: pooling hides a tenth of it
CELLS_PER_BLOCK = 20
#: windows of a drawn table start at each fiftieth of the weight, and hold a tenth of it
SHARES = np.linspace(0.0, 1.0, 51)
WIDTH = 5
#: the most cases that are drawn in a cell; beyond, chance plays no part
MOST_CASES = 1e15
#: with fewer (effective) cases of a class there is no interval
FEWEST = 10.0
#: cells of drawn tables that are in memory at a time
TABLE_BLOCK = 1 << 16


class Chance(NamedTuple):
    """What chance does to a measure: bias, interval, and noise."""

    bias: float  # by how much it is too large on average, at most
    half: float  # half the width of the interval
    noise: float  # standard deviation if the predictions are right


class RedrawnTables:
    """Tables drawn at random, one in each line: the weight of negatives and of positives at the
    same predictions. Each measure gives a value for each table."""

    def __init__(self, p: Array, negative: Array, positive: Array) -> None:
        self.p, self.negative, self.positive = p, negative, positive
        self.n = negative + positive
        self.total: Array = self.n.sum(axis=1)
        self.base_rate = positive.sum(axis=1) / self.total

    @cached_property
    def _fits(self) -> tuple[Index, Index, Array]:
        """The isotonic fits of all tables: the first cell of each block, the table it is in, and
        its value.

        All tables are fitted in one go. They are put side by side, each two higher than the one
        before, so that no block reaches into the next table.
        """
        cells = np.flatnonzero(self.n.ravel() > 0.0)
        table = cells // len(self.p)
        n, hits = self.n.ravel(), self.positive.ravel()
        raised = hits[cells] / n[cells] + 2.0 * table
        first = isotonic_regression(raised, weights=n[cells]).blocks[:-1]
        starts = cells[first]
        value = np.add.reduceat(hits, starts) / np.add.reduceat(n, starts)
        return starts, table[first], value

    def _mean_over_blocks(self, values: Array) -> Array:
        """For each table the mean over its cases of (isotonic fit · value); ``values`` are sums of
        the value in each cell."""
        starts, table, fit = self._fits
        each = fit * np.add.reduceat(values.ravel(), starts)
        return np.asarray(np.bincount(table, each, minlength=len(self.n)) / self.total)

    @cached_property
    def resolved(self) -> Array:
        """The mean square of each table's isotonic fit."""
        return self._mean_over_blocks(self.positive)

    def calibration_loss(self) -> Array:
        """The mean squared distance of the predictions from the fit."""
        product = self._mean_over_blocks(self.n * self.p)
        return np.maximum(self.n @ self.p**2 / self.total - 2.0 * product + self.resolved, 0.0)

    def miscalibration(self) -> Array:
        """The Brier score less that of the fit."""
        square = (self.negative @ self.p**2 + self.positive @ (1.0 - self.p) ** 2) / self.total
        return np.asarray(square - self.base_rate + self.resolved)

    def discrimination(self) -> Array:
        """The Brier score of the base rate less that of the fit."""
        return np.asarray(self.resolved - self.base_rate**2)

    def calbin(self) -> Array:
        """CalBin over windows of a tenth of the weight, ties divided in proportion."""
        tables, cells = self.n.shape
        upto = np.zeros((3, tables, cells + 1))
        for sums, column in zip(upto, (self.n, self.n * self.p, self.positive), strict=True):
            np.cumsum(column, axis=1, out=sums[:, 1:])
        upto /= self.total[:, None]
        # one search for all tables: the weight of each begins where that of the one before ends
        after = np.arange(tables)[:, None]
        place = np.searchsorted((upto[0] + after).ravel(), (SHARES + after).ravel(), side="right")
        line = after * (cells + 1)
        low = np.clip(place.reshape(tables, -1) - 1, line, line + cells - 1)
        mass, upto_p, upto_y = upto.reshape(3, -1)
        size = mass[low + 1] - mass[low]
        part = np.clip((SHARES - mass[low]) / np.where(size > 0.0, size, 1.0), 0.0, 1.0)
        p_at, y_at = (sums[low] + part * (sums[low + 1] - sums[low]) for sums in (upto_p, upto_y))

        start, end = SHARES[:-WIDTH], SHARES[WIDTH:]
        p_start, p_end = p_at[:, :-WIDTH], p_at[:, WIDTH:]
        rate = (y_at[:, WIDTH:] - y_at[:, :-WIDTH]) / (end - start)
        cell = line + self.p.searchsorted(rate)  # predictions before it are below the frequency
        middle = np.clip(mass[cell], start, end)
        p_middle = np.clip(upto_p[cell], p_start, p_end)
        errors = rate * (2.0 * middle - start - end) - 2.0 * p_middle + p_start + p_end
        errors[:, [0, -1]] /= 2.0  # the trapezoid rule, over all places of a window
        return np.asarray(errors.sum(axis=1) / (errors.shape[1] - 1) / (end[0] - start[0]))


OfRedrawn = Callable[[RedrawnTables], Array]


class DrawnModel(NamedTuple):
    """A model to draw tables or curves from, with the true value of what is drawn.

    ``draw`` gives so many drawings, a line for each, as measures take them. ``true`` is the model
    itself, as a single drawing without chance. So many drawings as ``at_a_time`` says fit into the
    memory set aside.
    """

    draw: Callable[[int, np.random.Generator], Any]
    true: Any
    at_a_time: int


def table_model(sample: ScoreTable, rate: Array) -> DrawnModel:
    """A model whose tables have these rates of positives in their cells, and Poisson numbers of
    cases.

    A table has a Poisson number of cases of either class in each cell. A cell stands for n²/Σw²
    cases of weight Σw²/n each.
    """
    n, square = sample.weight, squares(sample)
    shares = np.array([1.0 - rate, rate])
    cases = np.divide(n**2, square, out=np.ones_like(n), where=square > 0.0)
    cases = np.minimum(cases, MOST_CASES) * shares

    def draw(count: int, random: np.random.Generator) -> RedrawnTables:
        columns = random.poisson(cases, (count, *cases.shape)) * (square / n)
        columns[columns.sum(axis=(1, 2)) == 0.0] = n * shares  # none was drawn
        return RedrawnTables(sample.scores, columns[:, 0], columns[:, 1])

    true = RedrawnTables(sample.scores, *(n * shares)[:, None])
    return DrawnModel(draw, true, TABLE_BLOCK // len(rate))


def chance_of_tables(
    measures: Mapping[str, OfRedrawn], table: ScoreTable, options: IntervalOptions
) -> dict[str, Chance]:
    """Bias, interval and noise of measures of a table, from tables drawn at random. O(replicates ·
    min(D, `CELLS`))."""
    sample = table_in_rows(table, options.weights)
    fine = pooled(sample, CELLS)
    right = table_model(fine, fine.scores)
    few = math.ceil(CELLS_PER_BLOCK * math.cbrt(sample.effective_size))
    sample = pooled(sample, min(few, CELLS))
    curve = table_model(sample, isotonic_curve(sample, sample.scores))
    return chance_from_models(measures, right, curve, sample.effective_size, options)


def pooled(sample: ScoreTable, cells: int) -> ScoreTable:
    """The table with neighbouring cells joined, so that there are at most so many.

    Cells are cut where the sum of the share of the weight and the share of the range grows evenly,
    so that neither crowded nor sparse regions are coarse.
    """
    if len(sample) <= cells:
        return sample
    p, n = sample.scores, sample.weight
    width = (p - p[0]) / (p[-1] - p[0])
    mass = np.cumsum(n) / sample.total
    starts = np.flatnonzero(np.diff(np.ceil((width + mass) / 2.0 * cells), prepend=-1.0))
    n0, n1, q0, q1 = (np.add.reduceat(column, starts) for column in sample.columns)
    return ScoreTable(run_means(sample, starts), n0, n1, q0, q1)


def chance_from_models(
    measures: Mapping[str, Callable[[Any], Array]],
    right: DrawnModel,
    curve: DrawnModel,
    size: float,
    options: IntervalOptions,
) -> dict[str, Chance]:
    """Bias, interval and noise of measures, from drawings of two models.

    In the world ``right`` the predictions are right, in the other a curve of the data is.
    """
    random = options.rng
    drawn, true = _values_of_drawings(measures, right, max(options.replicates // 4, 2), random)
    drawn_curve, true_curve = _values_of_drawings(measures, curve, options.replicates, random)
    centre = drawn_curve.mean(axis=0)
    bias = np.maximum(drawn.mean(axis=0) - true, centre - true_curve)
    tail = (1.0 - options.level) / 2
    low, high = np.quantile(drawn_curve - centre, (tail, 1.0 - tail), axis=0)
    half = np.maximum(-low, high) * np.sqrt(size / (size - 1.0))
    numbers = np.maximum(bias, 0.0).tolist(), half.tolist(), drawn.std(axis=0).tolist()
    return {name: Chance(*each) for name, *each in zip(measures, *numbers, strict=True)}


def _values_of_drawings(
    measures: Mapping[str, Callable[[Any], Array]],
    world: DrawnModel,
    replicates: int,
    random: np.random.Generator,
) -> tuple[Array, Array]:
    """The value of each measure (a column) in each drawing (a line), and its true value."""
    sizes = batches(replicates, world.at_a_time)
    drawings = (world.draw(size, random) for size in sizes)
    values = [np.column_stack([of(each) for of in measures.values()]) for each in drawings]
    return np.concatenate(values), np.concatenate([of(world.true) for of in measures.values()])


def batches(replicates: int, most: int) -> Iterator[int]:
    """Numbers of redrawings that sum to ``replicates``, each at most ``most``.

    >>> list(batches(10, 4))
    [4, 4, 2]
    """
    most = max(most, 1)
    return (min(most, replicates - first) for first in range(0, replicates, most))


def isotonic_curve(sample: ScoreTable, at: Array) -> Array:
    """Isotonic regression as a continuous curve, at some predictions: lines join the centres of its
    blocks."""
    n = sample.weight
    fit = isotonic_regression(sample.rate, weights=n)
    starts = fit.blocks[:-1]
    centre = np.add.reduceat(n * sample.scores, starts) / np.add.reduceat(n, starts)
    line = np.interp(at, centre, fit.x[starts])
    # the slope between scores that are all but 0 is beyond floats
    return line if np.isfinite(line).all() else interpolate(at, centre, fit.x[starts])


# --- What rows say of P(y | score): a band that holds the whole curve, if the curve rises ---------
# If P(y | score) rises, the number of positives among rows whose scores are all below s is no
# larger, in distribution, than a binomial with the probability at s. So its binomial lower limit is
# a lower limit at s, for each run of such rows; the same holds above. The level is shared by all
# runs.


#: groups of rows; runs of them are compared
GROUPS = 60


class RisingBand(NamedTuple):
    """A band for P(y | score), in pieces: the limits that hold from each score up to the next.

    Attributes
    ----------
    scores : array
        Where the pieces of the band begin; the first is −∞.
    p, low, high : array
        In each piece: the share of positives, moved into the band, and the ends of the band.
    """

    scores: Array
    p: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, table: ScoreTable, level: float) -> Self:
        """The band that holds the whole curve with probability 1 − level or more, if the curve
        rises.

        Where rows are weighted, their effective sizes count, and it does so approximately.
        """
        starts = group_starts(table, GROUPS, "mass")
        weight, square = (np.add.reduceat(each, starts) for each in (table.weight, squares(table)))
        n = effective_rows(weight, square)
        came = np.add.reduceat(table.positive, starts) * (n / weight)
        first, last = table.scores[starts], table.scores[last_cells(starts, len(table))]
        lower, upper = _limits_of_runs(n, came, level)
        # a group limits the curve at scores from its last one up, and from its first one down
        scores = np.unique(np.concatenate(([-np.inf], last, np.nextafter(first, np.inf))))
        largest = np.nextafter(np.append(scores[1:], np.inf), -np.inf)  # of each piece
        ended = np.searchsorted(last, scores, side="right")
        begun = np.searchsorted(first, largest, side="left")
        low = np.append(0.0, np.maximum.accumulate(lower))[ended]
        high = np.append(np.minimum.accumulate(upper[::-1])[::-1], 1.0)[begun]
        rate = ((came + 0.5) / (n + 1.0))[np.clip(ended, 0, len(n) - 1)]
        return cls(scores, np.clip(rate, low, high), low, high)

    def at(self, scores: Array) -> tuple[Array, Array, Array]:
        """The share of positives, the lower limit and the upper limit at some scores."""
        place = np.searchsorted(self.scores, scores, side="right") - 1
        return self.p[place], self.low[place], self.high[place]


def _limits_of_runs(n: Array, came: Array, level: float) -> tuple[Array, Array]:
    """For each group of rows: the best lower limit of the runs that end with it, and the best upper
    limit of those that begin with it."""
    size = np.append(0.0, np.cumsum(n))
    positives = np.append(0.0, np.cumsum(came))
    first, last = np.triu_indices(len(n))
    rows, found = size[last + 1] - size[first], positives[last + 1] - positives[first]
    below, above = clopper_pearson(rows, found / rows, level / 2.0 / len(first))
    lower, upper = np.zeros(len(n)), np.ones(len(n))
    np.maximum.at(lower, last, below)
    np.minimum.at(upper, first, above)
    return lower, upper
