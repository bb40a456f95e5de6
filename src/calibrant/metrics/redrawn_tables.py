"""Intervals from tables drawn again, for measures that use windows or isotonic regression.

These measures are too large on average: chance looks like miscalibration, and isotonic regression
fits it. A bootstrap of rows would add that chance a second time. So tables are drawn from two
models whose true value is known: in one the predictions are right, in the other the isotonic curve
of the data is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import table_in_rows
from calibrant.kernels.bls_members import between

if TYPE_CHECKING:
    from calibrant.metrics.intervals import IntervalOptions

#: tables are pooled to this many cells before others are drawn from them
CELLS = 2_000
#: windows looked at in a drawn table, evenly spaced among all
WINDOWS = 256
#: where they start and end, as shares of the weight
ENDS = (np.arange(WINDOWS) + 0.5) * (0.9 / WINDOWS) + np.array([[0.0], [0.1]])
#: the most cases that are drawn; beyond, chance plays no part
MOST_CASES = 1e15
#: with fewer (effective) cases of a class there is no interval
FEWEST = 10.0


class Chance(NamedTuple):
    """What chance does to a measure."""

    bias: float  # by how much it is too large on average, at most
    half: float  # half the width of the interval
    noise: float  # standard deviation if the predictions are right


class RedrawnTable:
    """A table that was drawn again: its predictions, Σw of either class, and its isotonic fit."""

    def __init__(self, p: Array, negative: Array, positive: Array) -> None:
        there = (negative + positive) > 0
        self.p, self.negative, self.positive = p[there], negative[there], positive[there]
        self.n = self.negative + self.positive
        self.total = float(self.n.sum())
        self.fit = isotonic_regression(self.positive / self.n, weights=self.n).x
        self.base_rate = float(self.positive.sum()) / self.total
        #: the mean square of the fit
        self.resolved = float(self.n @ self.fit**2) / self.total

    def calibration_loss(self) -> float:
        """The mean squared distance of the predictions from the fit."""
        return float(self.n @ (self.p - self.fit) ** 2) / self.total

    def miscalibration(self) -> float:
        """The Brier score less that of the fit."""
        p = self.p
        square = float(self.negative @ p**2 + self.positive @ (1.0 - p) ** 2) / self.total
        return square - self.base_rate + self.resolved

    def discrimination(self) -> float:
        """The Brier score of the base rate less that of the fit."""
        return self.resolved - self.base_rate**2

    def calbin(self) -> float:
        """CalBin over windows of a tenth of the weight, ties divided in proportion."""
        upto = np.zeros((3, len(self.p) + 1))
        np.cumsum((self.n, self.n * self.p, self.positive), axis=1, out=upto[:, 1:])
        upto /= self.total
        mass, upto_p, upto_y = upto
        start, end = ENDS
        p_start, p_end = np.interp(ENDS, mass, upto_p)
        y_start, y_end = np.interp(ENDS, mass, upto_y)
        rate = (y_end - y_start) / 0.1
        cell = self.p.searchsorted(rate)  # predictions before it are below the window's frequency
        middle = np.minimum(np.maximum(mass[cell], start), end)
        p_middle = np.minimum(np.maximum(upto_p[cell], p_start), p_end)
        errors = rate * (2.0 * middle - start - end) - 2.0 * p_middle + p_start + p_end
        return float(errors.mean()) / 0.1


OfRedrawn = Callable[[RedrawnTable], float]
Draw = Callable[[int, np.random.Generator], tuple[Array, Array]]


def chance_of(
    measures: Mapping[str, OfRedrawn], table: ScoreTable, options: IntervalOptions
) -> dict[str, Chance]:
    """What chance does to each of some measures of a table.

    O(replicates · min(D, `CELLS`)), in memory one batch of drawings.
    """
    sample = table_in_rows(table.pool(CELLS), options.weights)
    of = tuple(measures.values())
    right = partial(_draw, of, sample, sample.scores)
    curve = partial(_draw, of, sample, isotonic_curve(sample, sample.scores))
    found = chance_between(right, curve, sample.effective_size, options)
    return dict(zip(measures, found, strict=True))


def chance_between(right: Draw, curve: Draw, size: float, options: IntervalOptions) -> list[Chance]:
    """What chance does to measures, from values drawn in two worlds whose true values are known.

    In the world ``right`` the predictions are right, in the other a curve of the data is. Each is
    a function that draws: it returns the drawn values, a column for each measure, and the true
    ones.
    """
    rng = options.rng
    drawn, true = right(max(options.replicates // 4, 2), rng)
    drawn_curve, true_curve = curve(options.replicates, rng)
    centre = drawn_curve.mean(axis=0)
    bias = np.maximum(drawn.mean(axis=0) - true, centre - true_curve)
    tail = (1.0 - options.level) / 2
    low, high = np.quantile(drawn_curve - centre, (tail, 1.0 - tail), axis=0)
    half = np.maximum(-low, high) * np.sqrt(size / (size - 1.0))
    numbers = np.maximum(bias, 0.0).tolist(), half.tolist(), drawn.std(axis=0).tolist()
    return [Chance(*each) for each in zip(*numbers, strict=True)]


def isotonic_curve(sample: ScoreTable, at: Array) -> Array:
    """The isotonic fit, its blocks joined by lines from centre to centre."""
    n = sample.weight
    fit = isotonic_regression(sample.rate, weights=n)
    starts = fit.blocks[:-1]
    centre = np.add.reduceat(n * sample.scores, starts) / np.add.reduceat(n, starts)
    line = np.interp(at, centre, fit.x[starts])
    # the slope between scores that are all but 0 is beyond floats
    return line if np.isfinite(line).all() else between(at, centre, fit.x[starts])


def _draw(
    of: tuple[OfRedrawn, ...],
    sample: ScoreTable,
    rate: Array,
    replicates: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """The measures of tables drawn with these rates of positives, and of the rates themselves."""
    n, squares = (
        sample.negative + sample.positive,
        sample.negative_sq + sample.positive_sq,
    )
    # a cell stands for n²/Σw² cases of weight Σw²/n each
    cases, each = n**2 / squares, squares / n
    chance = np.concatenate((cases * (1.0 - rate), cases * rate))
    chance /= chance.sum()
    total, cells = max(round(min(float(cases.sum()), MOST_CASES)), 1), len(n)
    found = np.empty((replicates, len(of)))
    batch = max(1, (1 << 20) // cells)
    for first in range(0, replicates, batch):
        drawn = rng.multinomial(total, chance, size=min(batch, replicates - first))
        for i, counts in enumerate(drawn, start=first):
            drawn_table = RedrawnTable(sample.scores, counts[:cells] * each, counts[cells:] * each)
            found[i] = [measure(drawn_table) for measure in of]
    true = RedrawnTable(sample.scores, n * (1.0 - rate), n * rate)
    return found, np.array([measure(true) for measure in of])
