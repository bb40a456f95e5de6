"""The arithmetic of the three kinds of curve: in bins, isotonic, and smooth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.bins import BinSums, band_of, bins_of, histogram_of
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.resample import MergedCells, band_of_drawn, cells_of, spread_places
from calibrant.losses import logit
from calibrant.metrics.arguments import read_generator
from calibrant.metrics.interval_formulas import clopper_pearson
from calibrant.metrics.rising_band import RisingBand
from calibrant.metrics.weighted_cells import last_cells, run_means

Band = tuple[Array, Array]

#: a line is given at twice as many places, besides the ends of blocks
GRID = 100
#: the most ends of blocks at which an isotonic line is given
MOST_ENDS = 800
#: so many scores at either end of an isotonic curve are not merged with others
END_ROWS = 200
#: the factor of the kernel's width, see `width_of`
SPAN = 0.9
#: the log-odds of 0 and 1 are taken to be those of this and of 1 − this
CLIP = 1e-9
#: how many standard deviations the middle 80 % of a normal distribution span
MIDDLE = 2.5631


class Shape(NamedTuple):
    """The groups of rows, the line through them, and its band."""

    edges: Array
    mean_p: Array
    fraction: Array
    weight: Array
    effective: Array
    x: Array
    y: Array
    lower: Array | None
    upper: Array | None


def shape_of(table: ScoreTable, rule: CurveOptions) -> Shape:
    """The curve of a table of probabilities."""
    return SHAPES[rule.curve](table, rule)


# --- in bins ------------------------------------------------------------------------------------


def _binned(table: ScoreTable, rule: CurveOptions) -> Shape:
    starts, edges = bins_of(table, rule)
    sums = BinSums.of(table, starts)
    mean = run_means(table, starts)
    groups = (edges, mean, sums.fraction, sums.weight, sums.effective)
    return Shape(*groups, mean, sums.fraction, *band_of(table, starts, sums, rule))


# --- isotonic -----------------------------------------------------------------------------------


def _isotonic(table: ScoreTable, rule: CurveOptions) -> Shape:
    """Pool adjacent violators: the line is level over each block and straight between blocks."""
    starts = isotonic_regression(table.rate, weights=table.weight).blocks[:-1].astype(np.intp)
    sums = BinSums.of(table, starts)
    last = table.scores[last_cells(starts, len(table))]
    edges = np.column_stack((table.scores[starts], last))
    ends, values = edges.ravel(), np.repeat(sums.fraction, 2)
    grid = cells_of(table, half=GRID).p
    x = np.unique(np.concatenate((_some(ends), grid)))
    y = np.interp(x, ends, values)
    mean = run_means(table, starts)
    groups = (edges, mean, sums.fraction, sums.weight, sums.effective)
    if rule.band is None:
        return Shape(*groups, x, y, None, None)
    if rule.band == "confidence" and rule.everywhere:
        _, low, high = RisingBand.of(table, 1.0 - rule.level).at(x)
        return Shape(*groups, x, y, np.minimum(low, y), np.maximum(high, y))
    # at its ends a curve varies row by row: no cells are made there
    few = np.arange(min(END_ROWS, len(table)))
    cells = cells_of(table, keep=np.union1d(few, len(table) - 1 - few))
    guess = {"consistency": cells.p, "confidence": np.interp(cells.p, mean, _careful(sums))}
    lower, upper = _isotonic_band(cells, guess[rule.band], x, rule)
    if rule.band == "confidence":  # it is the band of this line
        lower, upper = np.minimum(lower, y), np.maximum(upper, y)
    return Shape(*groups, x, y, lower, upper)


def _some(ends: Array) -> Array:
    """The ends of blocks; if there are too many, some of them at equal distances."""
    if len(ends) <= MOST_ENDS:
        return ends
    return ends[np.linspace(0, len(ends) - 1, MOST_ENDS).astype(np.intp)]


def _careful(sums: BinSums) -> Array:
    """(n₁ + 1)/(n + 2) of each block: blocks of a single class are not taken for certain."""
    return (sums.effective * sums.fraction + 1.0) / (sums.effective + 2.0)


def _isotonic_band(cells: MergedCells, probability: Array, x: Array, rule: CurveOptions) -> Band:
    """The band of the isotonic curves of labels drawn with these probabilities."""
    drawn = cells.draw(probability, rule.replicates, read_generator(rule.random_state))
    # a drawn curve may be furthest out anywhere, not only at the corners of the data's line
    at = cells.p if rule.everywhere else x
    values = np.empty((rule.replicates, len(at)))
    for row, fraction in zip(values, drawn, strict=True):
        fitted = isotonic_regression(fraction, weights=cells.weight).x
        row[:] = np.interp(at, cells.p, fitted)
    lower, upper = band_of_drawn(values, rule.level, rule.everywhere)
    if rule.everywhere:  # a rising curve that is below an end anywhere is below it before, too
        lower = np.interp(x, at, np.maximum.accumulate(lower))
        upper = np.interp(x, at, np.minimum.accumulate(upper[::-1])[::-1])
    return lower, upper


# --- smooth -------------------------------------------------------------------------------------


def _smooth(table: ScoreTable, rule: CurveOptions) -> Shape:
    """Means of predictions and labels under a kernel that moves along the log-odds."""
    cells = cells_of(table)
    place = logit(np.clip(cells.p, CLIP, 1 - CLIP))
    sigma = width_of(table, place, cells.weight) if rule.sigma is None else float(rule.sigma)
    chosen = _places(place, cells.weight)
    near = kernel(place[chosen], place, sigma)
    weight = near @ cells.weight
    x = np.clip(near @ (cells.weight * cells.p) / weight, cells.p[0], cells.p[-1])
    rate = np.add.reduceat(table.positive, cells.starts) / cells.weight
    y = np.clip(near @ (cells.weight * rate) / weight, 0.0, 1.0)
    effective = weight * (weight / (near**2 @ cells.square))
    grid = cells.p[chosen]
    borders = np.concatenate(([cells.p[0]], grid[:-1] / 2 + grid[1:] / 2, [cells.p[-1]]))
    edges = np.column_stack((borders[:-1], borders[1:]))
    groups = (edges, x, y, histogram_of(table, borders), effective)
    if rule.band is None:
        return Shape(*groups, x, y, None, None)
    if rule.band == "confidence":
        return Shape(*groups, x, y, *clopper_pearson(effective, y, rule.tail))
    drawn = cells.draw(cells.p, rule.replicates, read_generator(rule.random_state)) * cells.weight
    band = band_of_drawn(drawn @ near.T / weight, rule.level, rule.everywhere)
    return Shape(*groups, x, y, *band)


def _places(place: Array, weight: Array) -> Index:
    """The cells at which the line is given: all, or some, spread by weight and along the axis."""
    if len(place) <= 2 * GRID:
        return np.arange(len(place))
    return spread_places(place, weight, GRID, np.array([len(place) - 1]))


def width_of(table: ScoreTable, place: Array, weight: Array) -> float:
    """The kernel's standard deviation, 0.9·s·m^(−1/5), with m = 4n₀n₁/n of n effective rows.

    s is the standard deviation of the log-odds, or what the middle 80 % of them would have if they
    were normal, whichever is smaller.
    """
    share = weight / weight.sum()
    spread = math.sqrt(share @ (place - share @ place) ** 2)
    ends = np.searchsorted(np.cumsum(share), (0.1, 0.9))
    middle = float(np.diff(place[np.minimum(ends, len(place) - 1)])[0]) / MIDDLE
    both = 4 * (table.total_negative / table.total) * (table.total_positive / table.total)
    rows = max(table.effective_size * both, 1.0)
    return float(SPAN * (min(spread, middle) or spread or 1.0) * rows**-0.2)


def kernel(at: Array, places: Array, sigma: float) -> Array:
    """The Gaussian kernel, up to a constant: shape (at, places).

    >>> kernel(np.array([0.0]), np.array([0.0, 0.1]), 0.1).round(4).tolist()
    [[1.0, 0.6065]]
    """
    distance = np.subtract.outer(at, places) / sigma
    return np.asarray(np.exp(-0.5 * distance**2))


SHAPES: dict[str, Callable[[ScoreTable, CurveOptions], Shape]] = {
    "binned": _binned,
    "isotonic": _isotonic,
    "smooth": _smooth,
}
