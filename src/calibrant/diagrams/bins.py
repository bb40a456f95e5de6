"""The arithmetic of reliability curves: bins that never split a tie, and their bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.resample import band_of_drawn, cells_of
from calibrant.metrics.arguments import read_generator
from calibrant.metrics.bin_sweep import equal_mass_starts, sweep_starts
from calibrant.metrics.interval_formulas import clopper_pearson
from calibrant.metrics.weighted_cells import class_columns

Band = tuple[Array, Array]

#: predictions that all lie this close to 0 or to 1 are shown enlarged
CORNER = 0.2
#: beyond this mean a Poisson count is all but constant, and NumPy's sampler would overflow
LARGEST_MEAN = 1e15
#: a long sum of weights is rounded, so bins of equal weight end with this tolerance
ROUNDING = 1e-12


# --- bins ---------------------------------------------------------------------------------------


def bins_of(table: ScoreTable, rule: CurveOptions) -> tuple[Index, Array]:
    """Where every non-empty bin begins in the table, and its edges, shape (m, 2).

    >>> table = ScoreTable.from_counts([0.1, 0.25, 0.3], [1, 1, 1], [1, 0, 0])
    >>> starts, edges = bins_of(table, CurveOptions(bins=10))
    >>> starts.tolist(), edges.tolist()
    ([0, 1, 2], [[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]])
    >>> starts, edges = bins_of(table, CurveOptions(bins=2, binning="mass"))
    >>> starts.tolist(), edges.tolist()
    ([0, 1], [[0.0, 0.175], [0.175, 1.0]])
    """
    if rule.binning == "width" and not isinstance(rule.bins, str):
        edges = np.arange(rule.bins + 1) / rule.bins
        upto = np.append(np.searchsorted(table.scores, edges[:-1]), len(table))
        some = np.flatnonzero(np.diff(upto))
        return upto[some], np.column_stack((edges[some], edges[some + 1]))
    if isinstance(rule.bins, str):
        starts = sweep_starts(table)
    else:
        starts = equal_mass_starts(np.cumsum(table.weight), rule.bins)
    # bins of equal mass end halfway between predictions
    cuts = np.concatenate(([0.0], table.cuts(starts[1:] - 1), [1.0]))
    return starts, np.column_stack((cuts[:-1], cuts[1:]))


@dataclass(frozen=True)
class BinSums:
    """Σw and Σw² of either class in each bin."""

    negative: Array
    positive: Array
    negative_sq: Array
    positive_sq: Array

    @classmethod
    def of(cls, table: ScoreTable, starts: Index) -> BinSums:
        return cls(*(np.add.reduceat(column, starts) for column in class_columns(table)))

    @property
    def weight(self) -> Array:
        return self.negative + self.positive

    @property
    def fraction(self) -> Array:
        return self.positive / self.weight

    @property
    def effective(self) -> Array:
        """(Σw)²/Σw² (Kish)."""
        return self.weight * (self.weight / (self.negative_sq + self.positive_sq))


def histogram_of(table: ScoreTable, edges: Array) -> Array:
    """The weight in each cell [edge, next edge); the outer cells take what lies beyond."""
    inner = np.searchsorted(table.scores, edges[1:-1])
    mass = np.append(0.0, np.cumsum(table.weight))
    return np.diff(mass[np.concatenate(([0], inner, [len(table)]))])


def window(low: float, high: float) -> tuple[float, float]:
    """[0, 1], or a corner [0, u] or [1 − u, 1] with a round u ≤ 0.2, whichever holds low and high.

    >>> window(0.001, 0.017), window(0.96, 1.0), window(0.1, 0.3)
    ((0.0, 0.02), (0.96, 1.0), (0.0, 1.0))
    """
    for reach, mirrored in ((high, False), (1.0 - low, True)):
        if 0.0 < reach <= CORNER:
            # next to 1, numbers have too many digits to tell smaller parts of the axis apart
            size = _round_up(max(float(reach), 1e-3 if mirrored else 0.0))
            return (1.0 - size, 1.0) if mirrored else (0.0, size)
    return 0.0, 1.0


def _round_up(reach: float) -> float:
    """The next number of one digit, or 1.5, times a power of ten, up to rounding."""
    power = math.floor(math.log10(reach))
    sizes = (
        float(f"{digit}e{power + up}") for up in (0, 1) for digit in (1, 1.5, 2, 3, 4, 5, 6, 8)
    )
    return next(size for size in sizes if size >= reach * (1 - ROUNDING))


# --- bands --------------------------------------------------------------------------------------


def band_of(
    table: ScoreTable, starts: Index, sums: BinSums, rule: CurveOptions
) -> Band | tuple[None, None]:
    """The lower and the upper end of each bin's fraction, or two Nones."""
    return (None, None) if rule.band is None else BANDS[rule.band](table, starts, sums, rule)


def _exact(table: ScoreTable, starts: Index, sums: BinSums, rule: CurveOptions) -> Band:
    """Clopper–Pearson with the effective sample size; everywhere at once each has its share."""
    bins = len(starts) if rule.everywhere else 1
    return clopper_pearson(sums.effective, sums.fraction, rule.tail / bins)


def _bootstrap(table: ScoreTable, starts: Index, sums: BinSums, rule: CurveOptions) -> Band:
    """Percentiles of the fraction over Poisson replicates of either class's weight."""
    random = read_generator(rule.random_state)
    negative = _replicates(sums.negative, sums.negative_sq, rule.replicates, random)
    positive = _replicates(sums.positive, sums.positive_sq, rule.replicates, random)
    total = negative + positive
    some = total > 0
    fraction = np.where(some, positive / np.where(some, total, 1.0), sums.fraction)
    lower, upper = np.quantile(fraction, (rule.tail, 1 - rule.tail), axis=0)
    return lower, upper


def _replicates(weight: Array, square: Array, n: int, random: np.random.Generator) -> Array:
    """n draws of each bin's weight in a Poisson bootstrap of its rows.

    A draw is unit·Poisson(mean), with unit and mean such that its mean is Σw and its variance Σw².
    """
    some = weight > 0
    mean = np.where(some, weight * (weight / np.where(some, square, 1.0)), 0.0)
    mean = np.minimum(mean, LARGEST_MEAN)
    unit = weight / np.where(some, mean, 1.0)
    return unit * random.poisson(mean, size=(n, len(mean)))


def _consistency(table: ScoreTable, starts: Index, sums: BinSums, rule: CurveOptions) -> Band:
    """The band of fractions of labels drawn with the predictions as probabilities."""
    cells = cells_of(table, keep=starts)
    drawn = cells.draw(cells.p, rule.replicates, read_generator(rule.random_state)) * cells.weight
    inner = np.searchsorted(cells.starts, starts)
    fraction = np.add.reduceat(drawn, inner, axis=1) / sums.weight
    return band_of_drawn(fraction, rule.level, rule.everywhere)


BANDS: dict[str, Callable[[ScoreTable, Index, BinSums, CurveOptions], Band]] = {
    "exact": _exact,
    "bootstrap": _bootstrap,
    "consistency": _consistency,
}
