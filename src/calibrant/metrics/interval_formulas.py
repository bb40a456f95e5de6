"""Intervals by formula, from a table: means, shares, AUC, and errors over bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.binned import group_starts

__all__ = [
    "Binned",
    "Moments",
    "SampleCells",
    "Span",
    "area_interval",
    "area_span",
    "binned",
    "brier_losses",
    "clopper_pearson",
    "gap_interval",
    "gap_parts",
    "largest_gap_interval",
    "log_losses",
    "mean_interval",
    "moments",
    "normal",
    "row_error",
    "row_moments",
    "row_weights",
    "share_interval",
    "weighing",
    "width_bins",
    "without_chance",
]

Array = NDArray[np.float64]
Span = tuple[float, float]

#: E|x| of a standard normal x
_FOLDED = math.sqrt(2.0 / math.pi)
#: below it numbers lose digits
_TINY = np.finfo(np.float64).tiny
#: binomial limits of more rows are those of so many: beyond, the inverse of the beta integral fails
MOST_ROWS = 1e12


class SampleCells(NamedTuple):
    """The cells of a table with Σw and Σw² of each class, the latter as the weights are meant."""

    p: Array
    negative: Array
    positive: Array
    negative_sq: Array
    positive_sq: Array

    @property
    def total(self) -> float:
        return float(self.negative.sum() + self.positive.sum())

    @property
    def size(self) -> float:
        """How many cases of equal weight carry as much information: (Σw)²/Σw²."""
        return self.total**2 / float(self.negative_sq.sum() + self.positive_sq.sum())


def _as_counts(t: ScoreTable) -> SampleCells:
    return SampleCells(t.scores, t.negative, t.positive, t.negative, t.positive)


def _as_importance(t: ScoreTable) -> SampleCells:
    # intervals do not change with the scale of such weights; mean 1 keeps products in range
    power = -int(np.frexp(t.weight.max())[1])
    n0, n1 = np.ldexp(t.negative, power), np.ldexp(t.positive, power)
    q0, q1 = (
        np.where(q >= _TINY, np.ldexp(q, 2 * power), n**2)  # 1e-200² is 0: as one row
        for n, q in ((n0, t.negative_sq), (n1, t.positive_sq))
    )
    scale = float(q0.sum() + q1.sum()) / float(n0.sum() + n1.sum())
    return SampleCells(t.scores, n0 / scale, n1 / scale, q0 / scale**2, q1 / scale**2)


#: what a weight may mean: that many rows, or one row that matters that much
weighing = {"counts": _as_counts, "importance": _as_importance}


def row_weights(given: Array | None, rows: int, weights: str) -> tuple[Array, Array]:
    """w and w² of each row, the latter as the weights are meant; ``given`` may be None."""
    weight = np.ones(rows) if given is None else given
    if weights == "importance":  # their scale does not matter, and squares must stay in range
        weight = weight / weight.mean()
    return weight, _ROW_SQUARES[weights](weight)


_ROW_SQUARES: dict[str, Callable[[Array], Array]] = {
    "counts": lambda weight: weight,
    "importance": lambda weight: weight**2,
}


# --- means --------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """A mean, its standard error, its skewness, and the number of cases it is over."""

    mean: float
    error: float
    skew: float
    size: float


def log_losses(p: Array) -> tuple[Array, Array]:
    """−ln of the probability of a negative and of a positive."""
    with np.errstate(divide="ignore"):
        return -np.log1p(-p), -np.log(p)


def brier_losses(p: Array) -> tuple[Array, Array]:
    """(y − p)² of a negative and of a positive."""
    return p**2, (1.0 - p) ** 2


def moments(sample: SampleCells, losses: tuple[Array, Array]) -> Moments:
    """Moments of the mean of a loss that negatives and positives have at each cell.

    The error is the larger of what was seen and what the predictions themselves expect: where
    rare events did not come, their absence must not look like certainty.
    """
    n0, n1, q0, q1 = sample[1:]
    v0, v1 = (np.where(n > 0, v, 0.0) for n, v in zip((n0, n1), losses, strict=True))
    total = sample.total
    mean = float(n0 @ v0 + n1 @ v1) / total
    r0, r1 = v0 - mean, v1 - mean
    size = sample.size
    seen2 = float(q0 @ r0**2 + q1 @ r1**2) * size / max(size - 1.0, 0.5)
    seen3 = float(_cubes(n0, q0) @ r0**3 + _cubes(n1, q1) @ r1**3)
    n, q = n0 + n1, q0 + q1
    chance = sample.p * (1.0 - sample.p)
    with np.errstate(invalid="ignore"):
        apart = np.where(chance > 0, losses[1] - losses[0], 0.0)
    expected2 = float(q @ (chance * apart**2))
    expected3 = float(_cubes(n, q) @ (chance * (1.0 - 2.0 * sample.p) * apart**3))
    second, third = (seen2, seen3) if seen2 >= expected2 else (expected2, expected3)
    skew = third / second / math.sqrt(second) if second > 0 else 0.0  # 1e-260^1.5 is 0
    return Moments(mean, math.sqrt(second) / total, skew, size)


def _cubes(n: Array, q: Array) -> Array:
    """Σw³ of each cell, if its weights are equal."""
    return np.divide(q**2, n, out=np.zeros_like(q), where=n > 0)


def mean_interval(m: Moments, level: float) -> Span:
    """Student's interval, moved by Johnson's correction for skewness (1978)."""
    t = _student(m.size, level)
    move = min(max(m.skew * (1.0 / 6.0 + t**2 / 3.0), -t / 2), t / 2)
    return m.mean + m.error * (move - t), m.mean + m.error * (move + t)


def row_error(influence: Array, weight: Array, squares: Array) -> float:
    """The standard error of a quantity that each row moves by its weight · influence / Σw."""
    total = float(weight.sum())
    apart = influence - float(weight @ influence) / total
    size = total**2 / float(squares.sum())
    return math.sqrt(float(squares @ apart**2) * size / max(size - 1.0, 0.5)) / total


def row_moments(
    losses: Array, weight: Array, squares: Array, least_variance: float = 0.0
) -> Moments:
    """Moments of the mean of a loss that is known row by row."""
    total = float(weight.sum())
    mean = float(weight @ losses) / total
    seen = row_error(losses, weight, squares)
    error = max(seen, math.sqrt(least_variance))
    size = total**2 / float(squares.sum())
    if seen <= 0:
        return Moments(mean, error, 0.0, size)
    apart = (losses - mean) / (seen * total)
    return Moments(mean, error, float((squares**2 / weight) @ apart**3), size)


def _student(size: float, level: float) -> float:
    return float(stdtrit(max(size - 1.0, 0.5), 0.5 + level / 2))


def normal(level: float) -> float:
    """The two-sided quantile of the normal distribution."""
    return float(ndtri(0.5 + level / 2))


# --- shares and areas ---------------------------------------------------------------------------


def share_interval(share: float, size: float, level: float) -> Span:
    """Wilson's interval of a share of ``size`` cases; inside [0, 1], also at its ends."""
    if size <= 0.0:
        return 0.0, 1.0
    extra = normal(level) ** 2 / size
    middle = (share + extra / 2) / (1.0 + extra)
    half = math.sqrt(max(extra * share * (1.0 - share) + extra**2 / 4, 0.0)) / (1.0 + extra)
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)


def area_interval(sample: SampleCells, level: float) -> Span:
    """Of the AUC: DeLong's variance, Wilson's form."""
    n0, n1, q0, q1 = sample[1:]
    total0, total1 = float(n0.sum()), float(n1.sum())
    above = (total1 - np.cumsum(n1) + n1 / 2) / total1  # of positives, for a negative
    below = (np.cumsum(n0) - n0 / 2) / total0
    area = float(n1 @ below / total1)
    size0, size1 = total0**2 / float(q0.sum()), total1**2 / float(q1.sum())
    spread0 = float(q0 @ (above - area) ** 2) / total0**2 * size0 / max(size0 - 1.0, 0.5)
    spread1 = float(q1 @ (below - area) ** 2) / total1**2 * size1 / max(size1 - 1.0, 0.5)
    return area_span(area, spread0 + spread1, size0, size1, level)


def area_span(area: float, variance: float, size0: float, size1: float, level: float) -> Span:
    """Wilson's interval for as many cases as would give this variance, at most those of Hanley
    and McNeil's variance near an area of 1: a perfect order of few cases is no certainty."""
    most = 2.0 * size0 * size1 / ((size0 + size1) / 2 + 1.0)
    size = min(area * (1.0 - area) / variance, most) if variance > 0 else most
    return share_interval(area, size, level)


# --- errors over bins ---------------------------------------------------------------------------


class Binned(NamedTuple):
    """Per non-empty bin: share of the weight, Σ(p − y)w/Σw and its error, cases, frequency, p."""

    share: Array
    gap: Array
    error: Array
    size: Array
    rate: Array
    predicted: Array
    together: float  # standard error of Σ|gap|


def binned(sample: SampleCells, starts: NDArray[np.intp]) -> Binned:
    """The sums of each bin, of which ``starts`` are the first cells."""
    p, n0, n1, q0, q1 = sample
    total = sample.total

    def add(column: Array) -> Array:
        return np.asarray(np.add.reduceat(column, starts))

    n, q = n0 + n1, q0 + q1
    weight, squares = add(n), add(q)
    gap = add(n * p - n1) / total
    seen = add(q0 * p**2 + q1 * (1.0 - p) ** 2)
    expected = add(q * p * (1.0 - p))
    pull = add(q0 * p - q1 * (1.0 - p))
    whole = float(q.sum())
    variance = np.maximum(seen - 2.0 * gap * pull + gap**2 * whole, expected) / total**2
    mean = float(np.abs(gap).sum())
    spread = float(np.maximum(seen, expected).sum()) - 2.0 * mean * float(np.sign(gap) @ pull)
    together = max(spread + mean**2 * whole, 0.0) / total**2
    rate, predicted = add(n1) / weight, add(n * p) / weight
    return Binned(
        weight / total,
        gap,
        np.sqrt(variance),
        weight**2 / squares,
        rate,
        predicted,
        math.sqrt(together),
    )


def width_bins(table: ScoreTable, sample: SampleCells, bins: int) -> Binned:
    """Bins of equal width."""
    return binned(sample, group_starts(table, bins, "width"))


def without_chance(gap: Array, error: Array) -> Array:
    """|gap| less what chance adds to it: its expectation is never above the true |gap|.

    E|x| exceeds |δ| by at most √(2/π)·e^(−δ²/2) errors, and τ(x) = √(4/π)·e^(−x²/2) has the
    expectation √(2/π)·e^(−δ²/4).
    """
    x = np.divide(gap, error, out=np.full_like(gap, np.inf), where=error > 0)
    return np.abs(gap) - error * (_FOLDED * math.sqrt(2.0)) * np.exp(-(x**2) / 2)


class GapParts(NamedTuple):
    """Σ|gap| over the bins, the same without its chance part, and how far each row moves it."""

    full: float
    pure: float
    pull: Array
    bins: Binned


def gap_parts(
    table: ScoreTable, sample: SampleCells, p: Array, positive: NDArray[np.bool_], bins: int
) -> GapParts:
    """What the ECE of rows is made of; ``sample`` are the table's cells."""
    b = width_bins(table, sample, bins)
    borders = table.scores[group_starts(table, bins, "width")[1:]]
    sign = np.sign(b.gap)[np.searchsorted(borders, p, side="right")]
    pure = float(without_chance(b.gap, b.error).sum())
    return GapParts(float(np.abs(b.gap).sum()), max(pure, 0.0), sign * (p - positive), b)


def gap_interval(b: Binned, level: float) -> Span:
    """Of Σ|gap|: its chance part taken off below and left on above, so both ends are safe."""
    half = normal(level) * b.together
    value = float(np.abs(b.gap).sum())
    low = float(without_chance(b.gap, b.error).sum()) - half
    return min(max(low, 0.0), value), min(value + half, 1.0)


def largest_gap_interval(size: Array, rate: Array, predicted: Array, level: float) -> Span:
    """Of max |mean prediction − frequency| over the bins that came, by exact binomial limits.

    Above, the bin with the largest true gap must keep its own limit, whichever it is; below, all
    bins must keep theirs at once (Bonferroni).
    """
    tail = (1.0 - level) / 2
    value = float(np.abs(predicted - rate).max())
    low, high = clopper_pearson(size, rate, tail)
    above = np.maximum(np.abs(predicted - low), np.abs(high - predicted)).max()
    low, high = clopper_pearson(size, rate, tail / (2 * len(rate)))
    below = np.maximum(low - predicted, predicted - high).max()
    return min(max(float(below), 0.0), value), min(max(float(above), value), 1.0)


def clopper_pearson(size: Array, share: Array, tail: float) -> tuple[Array, Array]:
    """Clopper and Pearson's limits of a share of ``size`` rows, with ``tail`` left out at each end.

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
