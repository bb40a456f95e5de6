"""Labels redrawn from their predictions, and tables redrawn from their rows, by their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.metrics.cells import raised, run_means, squares
from calibrant.solvers.knots import interpolate

if TYPE_CHECKING:
    from calibrant.metrics.intervals import IntervalOptions


#: up to this many single draws, everything is drawn cell by cell
EXACT = 20_000_000
#: the refined normal approximation of a bin's sum is used where Σw³p(1 − p) is at most this part
#: of σ³: for weights of one, from σ² = 100 on
SMALL = 0.1
#: thinning is used up to this many events
EVENTS = 500.0
#: and only where there are so many cells for each event: an event costs as much as so many cells
DEAR = 8.0
#: equal values of a statistic may differ by this much from rounding
ROUNDING = 1e-12
#: single draws that are in memory at a time
BLOCK = 1 << 20


class CellRows(NamedTuple):
    """Rows behind each cell: ``size`` of them, all of weight ``common`` but one of ``other``.

    Σw and Σw² are those of the cell: exact for one or two rows, and for rows of equal weight.
    """

    p: Array
    size: Array
    common: Array
    other: Array

    @classmethod
    def of(cls, table: ScoreTable) -> CellRows:
        weight, square = table.weight, squares(table)
        some = square > 0.0  # else it was too small for a float: taken as one row
        effective = np.where(some, weight * (weight / np.where(some, square, 1.0)), 1.0)
        whole = np.abs(effective - np.rint(effective)) <= 1e-9 * effective  # up to rounding
        count = np.maximum(np.where(whole, np.rint(effective), np.ceil(effective)), 1.0)
        mean = weight / count
        spread = np.maximum(square / count - mean**2, 0.0)
        spread = np.where(spread > 1e-14 * mean**2, spread, 0.0)  # equal weights, up to rounding
        rest = np.maximum(count - 1.0, 1.0)
        common = np.where(count > 1.0, np.maximum(mean - np.sqrt(spread / rest), 0.0), 0.0)
        return cls(table.scores, count, common, mean + np.sqrt(spread * (count - 1.0)))

    def part(self, place: Any) -> CellRows:
        """Some of the cells, by slice, index or mask."""
        return CellRows(*(column[place] for column in self))

    @property
    def expected(self) -> float:
        """Σ wp of all rows."""
        return float(self.moment(1) @ self.p)

    def moment(self, power: int) -> Array:
        """Σ wᵏ of each cell."""
        return (self.size - 1.0) * raised(self.common, power) + raised(self.other, power)


def batches(replicates: int, most: int) -> Iterator[int]:
    """How many redrawings to make at a time: at most so many, and one at least.

    >>> list(batches(10, 4))
    [4, 4, 2]
    """
    most = max(most, 1)
    return (min(most, replicates - first) for first in range(0, replicates, most))


def redraw(rows: CellRows, starts: Index, replicates: int, random: np.random.Generator) -> Array:
    """Σ w(y* − p) of each bin (a run of cells from each start on), y* ~ Bernoulli(p).

    Shape (replicates, bins).
    """
    ends = np.append(starts[1:], len(rows.p))
    sums = np.empty((replicates, len(starts)))
    exact = replicates * len(rows.p) <= EXACT
    for b, (start, end) in enumerate(zip(starts, ends, strict=True)):
        part = rows.part(slice(int(start), int(end)))
        draw = _cell_by_cell if exact or end - start == 1 else _cheapest(part)
        sums[:, b] = draw(part, replicates, random)
    return sums


def _cheapest(rows: CellRows) -> Callable[[CellRows, int, np.random.Generator], Array]:
    """How to draw the sum of many cells."""
    chance = rows.p * (1.0 - rows.p)
    if rows.moment(3) @ chance <= SMALL * (rows.moment(2) @ chance) ** 1.5 * (1.0 + 1e-12):
        return _refined_normal
    inner = (rows.p > 0.0) & (rows.p < 1.0)
    smaller = np.minimum(rows.p, 1.0 - rows.p)[inner]
    events = float(-np.log1p(-smaller) @ rows.size[inner])
    return _thinned if events <= min(EVENTS, len(rows.p) / DEAR) else _cell_by_cell


def _cell_by_cell(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """A binomial draw for the equal rows of each cell, and one draw for the other row."""
    blocks = _redrawn_cells(rows, replicates, random)
    return np.concatenate([block.sum(axis=1) for block in blocks]) - rows.expected


def redrawn_residuals(
    table: ScoreTable, replicates: int, random: np.random.Generator
) -> Iterator[Array]:
    """Σ w(y* − p) of each cell, some redrawings at a time: blocks of shape (some, cells)."""
    rows = CellRows.of(table)
    expected = rows.moment(1) * rows.p
    for drawn in _redrawn_cells(rows, replicates, random):
        yield drawn - expected


def _redrawn_cells(rows: CellRows, replicates: int, random: np.random.Generator) -> Iterator[Array]:
    """Σ wy* of each cell, some redrawings at a time."""
    for one, many, hits in redrawn_hits(rows, replicates, random):
        drawn = one * rows.other
        if len(many):
            drawn[:, many] += hits * rows.common[many]
        yield drawn


def redrawn_hits(
    rows: CellRows, replicates: int, random: np.random.Generator
) -> Iterator[tuple[Flags, Index, NDArray[np.int64]]]:
    """Labels y* ~ Bernoulli(p) of the rows behind each cell, some redrawings at a time.

    Each time: whether the row of weight ``other`` is positive, shape (some, cells); the cells with
    more rows than that; and how many of those rows are positive, shape (some, such cells).
    """
    many = np.flatnonzero(rows.size > 1.0)
    trials = (rows.size[many] - 1.0).astype(np.int64)
    for size in batches(replicates, BLOCK // len(rows.p)):
        one = random.random((size, len(rows.p))) < rows.p
        yield one, many, random.binomial(trials, rows.p[many], (size, len(many)))


def share_as_far(drawn: Array, value: float, slack: float | None = None) -> float:
    """(1 + how many redrawn values are at least as large)/(1 + how many there are): a p-value.

    Equal values may differ from rounding: by ``slack``, or by 10⁻¹² and that part of the value.

    >>> share_as_far(np.array([0.1, 0.2, 0.3]), 0.2)
    0.75
    """
    least = value * (1.0 - ROUNDING) - ROUNDING if slack is None else value - slack
    above = int((drawn >= least).sum())
    return (1 + above) / (1 + len(drawn))


def _refined_normal(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """σ·(z + γ(z² − 1)/6), z standard normal and γ the skewness: rounded where sums are whole."""
    chance = rows.p * (1.0 - rows.p)
    sd = np.sqrt(rows.moment(2) @ chance)
    skewness = rows.moment(3) @ (chance * (1.0 - 2.0 * rows.p)) / sd**3
    z = random.standard_normal(replicates)
    drawn = sd * (z + skewness * (z**2 - 1.0) / 6.0)
    if (rows.other == 1.0).all() and (rows.common[rows.size > 1.0] == 1.0).all():
        drawn = np.rint(drawn + rows.expected) - rows.expected
    return np.asarray(drawn)


def _thinned(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """Events of a Poisson process of rate −ln(1 − q) at each row; a row is hit by one or more.

    q is the smaller of p and 1 − p, so a row is hit with probability q: exact, and the work grows
    with the variance of the sum, not with the number of rows.
    """
    rows = rows.part((rows.p > 0.0) & (rows.p < 1.0))
    if not len(rows.p):
        return np.zeros(replicates)
    q = np.minimum(rows.p, 1.0 - rows.p)
    sign = np.where(rows.p <= 0.5, 1.0, -1.0)
    rate = -np.log1p(-q)
    upto = np.cumsum(rate * rows.size)
    events = random.poisson(upto[-1], replicates)
    replicate = np.repeat(np.arange(replicates), events)
    place = random.random(len(replicate)) * upto[-1]
    cell = np.minimum(np.searchsorted(upto, place, side="right"), len(q) - 1)
    before = upto[cell] - rate[cell] * rows.size[cell]
    row = np.clip(np.floor((place - before) / rate[cell]), 0.0, rows.size[cell] - 1.0)
    group = replicate * len(q) + cell
    order = np.lexsort((row, group))
    group, row = group[order], row[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (np.diff(group) != 0) | (np.diff(row) != 0)
    cell, row, replicate = cell[order][new], row[new], replicate[order][new]
    size = sign[cell] * np.where(row == 0.0, rows.other[cell], rows.common[cell])
    expected = float(rows.moment(1) @ (sign * q))
    return np.asarray(np.bincount(replicate, size, minlength=replicates) - expected, dtype=float)


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
    """What chance does to a measure."""

    bias: float  # by how much it is too large on average, at most
    half: float  # half the width of the interval
    noise: float  # standard deviation if the predictions are right


class RedrawnTables:
    """Tables drawn from one: its predictions, and Σw of either class, a line for each table.

    Each measure is an array with one value for each table.
    """

    def __init__(self, p: Array, negative: Array, positive: Array) -> None:
        self.p, self.negative, self.positive = p, negative, positive
        self.n = negative + positive
        self.total: Array = self.n.sum(axis=1)
        self.base_rate = positive.sum(axis=1) / self.total

    @cached_property
    def _fits(self) -> tuple[Index, Index, Array]:
        """The isotonic fits of all tables: the first cell of each block, its table, its value.

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
        """The mean of the fit times a value of the cases; ``values`` are its sums in the cells."""
        starts, table, fit = self._fits
        each = fit * np.add.reduceat(values.ravel(), starts)
        return np.asarray(np.bincount(table, each, minlength=len(self.n)) / self.total)

    @cached_property
    def resolved(self) -> Array:
        """The mean square of the fit."""
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


class World(Protocol):
    """A model that tables or curves are drawn from, and what they truly are in it."""

    @property
    def at_a_time(self) -> int:
        """How many drawings fit into the memory set aside."""

    def drawn(self, count: int, random: np.random.Generator) -> Any:
        """So many drawings, a line for each, as measures take them."""

    def true(self) -> Any:
        """The model itself, as a single drawing without chance."""


class TableWorld(NamedTuple):
    """Tables whose cells have these rates of positives."""

    sample: ScoreTable
    rate: Array

    @property
    def at_a_time(self) -> int:
        return TABLE_BLOCK // len(self.rate)

    def drawn(self, count: int, random: np.random.Generator) -> RedrawnTables:
        """A Poisson number of cases of either class in each cell.

        A cell stands for n²/Σw² cases of weight Σw²/n each.
        """
        n, square = self.sample.weight, squares(self.sample)
        cases = np.minimum(n**2 / square, MOST_CASES) * self._shares
        columns = random.poisson(cases, (count, *cases.shape)) * (square / n)
        columns[columns.sum(axis=(1, 2)) == 0.0] = n * self._shares  # none was drawn
        return RedrawnTables(self.sample.scores, columns[:, 0], columns[:, 1])

    def true(self) -> RedrawnTables:
        """The table of the rates themselves."""
        columns = self.sample.weight * self._shares
        return RedrawnTables(self.sample.scores, *columns[:, None])

    @property
    def _shares(self) -> Array:
        return np.array([1.0 - self.rate, self.rate])


def chance_of_tables(
    measures: Mapping[str, OfRedrawn], table: ScoreTable, options: IntervalOptions
) -> dict[str, Chance]:
    """What chance does to measures of tables. O(replicates · min(D, `CELLS`))."""
    sample = table_in_rows(table, options.weights)
    fine = pooled(sample, CELLS)
    right = TableWorld(fine, fine.scores)
    few = math.ceil(CELLS_PER_BLOCK * math.cbrt(sample.effective_size))
    sample = pooled(sample, min(few, CELLS))
    curve = TableWorld(sample, isotonic_curve(sample, sample.scores))
    return chance_between(measures, right, curve, sample.effective_size, options)


def pooled(sample: ScoreTable, cells: int) -> ScoreTable:
    """A table of at most so many cells.

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


def chance_between(
    measures: Mapping[str, Callable[[Any], Array]],
    right: World,
    curve: World,
    size: float,
    options: IntervalOptions,
) -> dict[str, Chance]:
    """What chance does to measures of so many rows, by drawing from two worlds.

    In the world ``right`` the predictions are right, in the other a curve of the data is.
    """
    random = options.rng
    drawn, true = _measured(measures, right, max(options.replicates // 4, 2), random)
    drawn_curve, true_curve = _measured(measures, curve, options.replicates, random)
    centre = drawn_curve.mean(axis=0)
    bias = np.maximum(drawn.mean(axis=0) - true, centre - true_curve)
    tail = (1.0 - options.level) / 2
    low, high = np.quantile(drawn_curve - centre, (tail, 1.0 - tail), axis=0)
    half = np.maximum(-low, high) * np.sqrt(size / (size - 1.0))
    numbers = np.maximum(bias, 0.0).tolist(), half.tolist(), drawn.std(axis=0).tolist()
    return {name: Chance(*each) for name, *each in zip(measures, *numbers, strict=True)}


def _measured(
    measures: Mapping[str, Callable[[Any], Array]],
    world: World,
    replicates: int,
    random: np.random.Generator,
) -> tuple[Array, Array]:
    """A column for each measure of what is drawn from a world, and what it truly is there."""
    sizes = batches(replicates, world.at_a_time)
    drawings = (world.drawn(size, random) for size in sizes)
    values = [np.column_stack([of(each) for of in measures.values()]) for each in drawings]
    true = world.true()
    return np.concatenate(values), np.concatenate([of(true) for of in measures.values()])


def isotonic_curve(sample: ScoreTable, at: Array) -> Array:
    """The isotonic fit, its blocks joined by lines from centre to centre."""
    n = sample.weight
    fit = isotonic_regression(sample.rate, weights=n)
    starts = fit.blocks[:-1]
    centre = np.add.reduceat(n * sample.scores, starts) / np.add.reduceat(n, starts)
    line = np.interp(at, centre, fit.x[starts])
    # the slope between scores that are all but 0 is beyond floats
    return line if np.isfinite(line).all() else interpolate(at, centre, fit.x[starts])
