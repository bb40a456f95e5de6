"""Intervals by drawing the table again: measures behind which are windows or isotonic regression.

All of them are too large on average: chance looks like miscalibration, and isotonic regression fits
it. Drawing rows again would add that chance a second time. So tables are drawn from two smooth
stories of how the labels came about, for each of which the true value is known: that the
predictions are right, and that the isotonic curve of the data is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from calibrant.data.table import ScoreTable
from calibrant.metrics.analytic import Sample, Span, weighing

__all__ = ["DRAWN", "FEWEST", "Chance", "chance_of", "drawn_interval", "isotonic_curve"]

Array = NDArray[np.float64]

#: the measures, in the order of the columns of a drawing
DRAWN = ("calibration_loss", "miscalibration", "discrimination", "calbin")
#: tables are pooled to this many cells before they are drawn from; values never are
CELLS = 2_000
#: windows looked at in a drawn table, evenly spaced among all
WINDOWS = 256
#: no more are drawn: chance is nothing then
MOST_CASES = 1e15
#: cases of each class (effective) below which curves tell nothing
FEWEST = 10.0


class Chance(NamedTuple):
    """What chance does to a measure."""

    bias: float  # how much too large the measure is on average, at most
    half: float  # half the width of the interval
    noise: float  # standard deviation if the predictions are right


def drawn_interval(value: float, chance: Chance, largest: float) -> Span:
    """The value less its bias below, and with it above, so that both ends are safe."""
    low = max(value - chance.bias - chance.half, 0.0)
    return low, max(min(value + chance.half, largest), value)


def chance_of(
    table: ScoreTable, weights: str, level: float, replicates: int, rng: np.random.Generator
) -> dict[str, Chance]:
    """What chance does to each of the `DRAWN` measures of a table.

    O(replicates · min(D, `CELLS`)), in memory one batch of drawings.
    """
    sample = weighing[weights](table.pool(CELLS))
    told, off = _draw(sample, sample.p, max(replicates // 4, 2), rng)
    curve, off_curve = _draw(sample, isotonic_curve(sample, sample.p), replicates, rng)
    bias = np.maximum(told.mean(axis=0) - off, curve.mean(axis=0) - off_curve)
    apart = curve - curve.mean(axis=0)
    tail = (1.0 - level) / 2
    low, high = np.quantile(apart, (tail, 1.0 - tail), axis=0)
    size = sample.size
    half = np.maximum(-low, high) * np.sqrt(size / (size - 1.0))
    noise = told.std(axis=0)
    columns = zip(DRAWN, np.maximum(bias, 0.0).tolist(), half.tolist(), noise.tolist(), strict=True)
    return {name: Chance(*numbers) for name, *numbers in columns}


def isotonic_curve(sample: Sample, at: Array) -> Array:
    """The isotonic fit, its blocks joined by lines from centre to centre."""
    n = sample.negative + sample.positive
    fit = isotonic_regression(sample.positive / n, weights=n)
    starts = fit.blocks[:-1]
    centre = np.add.reduceat(n * sample.p, starts) / np.add.reduceat(n, starts)
    return np.asarray(np.interp(at, centre, fit.x[starts]))


def _draw(
    sample: Sample, rate: Array, replicates: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The measures of tables drawn with these rates of positives, and of the rates themselves."""
    n, squares = sample.negative + sample.positive, sample.negative_sq + sample.positive_sq
    # a cell holds n²/Σw² cases of weight Σw²/n each
    cases, each = n**2 / squares, squares / n
    chance = np.concatenate((cases * (1.0 - rate), cases * rate))
    chance /= chance.sum()
    total, cells = max(round(min(float(cases.sum()), MOST_CASES)), 1), len(n)
    found = np.empty((replicates, len(DRAWN)))
    batch = max(1, (1 << 20) // cells)
    for first in range(0, replicates, batch):
        drawn = rng.multinomial(total, chance, size=min(batch, replicates - first))
        for i, counts in enumerate(drawn, start=first):
            found[i] = _measures(sample.p, counts[:cells] * each, counts[cells:] * each)
    return found, _measures(sample.p, n * (1.0 - rate), n * rate)


def _measures(p: Array, n0: Array, n1: Array) -> Array:
    """The `DRAWN` measures of one table, which may have empty cells."""
    there = (n0 + n1) > 0
    p, n0, n1 = p[there], n0[there], n1[there]
    n = n0 + n1
    total = float(n.sum())
    fit = isotonic_regression(n1 / n, weights=n).x
    base = float(n1.sum()) / total
    resolved = float(n @ fit**2) / total
    square = float(n0 @ p**2 + n1 @ (1.0 - p) ** 2) / total
    calibration = float(n @ (p - fit) ** 2) / total
    return np.array(
        (calibration, square - base + resolved, resolved - base**2, _windows(p, n, n1, total))
    )


def _windows(p: Array, n: Array, n1: Array, total: float) -> float:
    """CalBin over windows of a tenth of the weight, ties divided in proportion."""
    mass, upto_p, upto_y = (np.append(0.0, np.cumsum(column)) / total for column in (n, n * p, n1))
    start = (np.arange(WINDOWS) + 0.5) * (0.9 / WINDOWS)
    end = start + 0.1
    p_start, p_end = np.interp(start, mass, upto_p), np.interp(end, mass, upto_p)
    rate = (np.interp(end, mass, upto_y) - np.interp(start, mass, upto_y)) / 0.1
    cell = np.searchsorted(p, rate)  # predictions before it are below the window's frequency
    middle = np.clip(mass[cell], start, end)
    p_middle = np.clip(upto_p[cell], p_start, p_end)
    errors = rate * (2.0 * middle - start - end) - 2.0 * p_middle + p_start + p_end
    return float(errors.mean()) / 0.1
