"""Labels redrawn from their predictions: of cells and bins, of rows, and of several classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Rows
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.chance import batches
from calibrant.metrics.tables import effective_rows, squares, whole_power

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
    """The rows behind each cell, guessed from Σw and Σw²: ``size`` rows, all of weight ``common``
    but one of weight ``other``.

    Σw and Σw² are those of the cell: exact for one or two rows, and for rows of equal weight.
    """

    p: Array
    size: Array
    common: Array
    other: Array

    @classmethod
    def of(cls, table: ScoreTable) -> CellRows:
        """The rows behind the cells of a table."""
        weight, square = table.weight, squares(table)
        effective = effective_rows(weight, square)
        whole = np.abs(effective - np.rint(effective)) <= 1e-9 * effective  # up to rounding
        count = np.maximum(np.where(whole, np.rint(effective), np.ceil(effective)), 1.0)
        mean = weight / count
        spread = np.maximum(square / count - mean**2, 0.0)
        spread = np.where(spread > 1e-14 * mean**2, spread, 0.0)  # equal weights, up to rounding
        rest = np.maximum(count - 1.0, 1.0)
        common = np.where(count > 1.0, np.maximum(mean - np.sqrt(spread / rest), 0.0), 0.0)
        return cls(table.scores, count, common, mean + np.sqrt(spread * (count - 1.0)))

    def part(self, place: Any) -> CellRows:
        """The rows of some cells."""
        return CellRows(*(column[place] for column in self))

    @property
    def expected(self) -> float:
        """The expected weight of positives, Σwp over all rows."""
        return float(self.moment(1) @ self.p)

    def moment(self, power: int) -> Array:
        """Σwᵏ of each cell, k the ``power``."""
        return (self.size - 1.0) * whole_power(self.common, power) + whole_power(self.other, power)


def redraw(rows: CellRows, starts: Index, replicates: int, random: np.random.Generator) -> Array:
    """Redraw labels y* ~ Bernoulli(p), and sum w(y* − p) over each bin.

    Shape (replicates, bins).
    """
    ends = np.append(starts[1:], len(rows.p))
    sums = np.empty((replicates, len(starts)))
    exact = replicates * len(rows.p) <= EXACT
    for b, (start, end) in enumerate(zip(starts, ends, strict=True)):
        part = rows.part(slice(int(start), int(end)))
        draw = _draw_cell_by_cell if exact or end - start == 1 else _choose_sampler(part)
        sums[:, b] = draw(part, replicates, random)
    return sums


def _choose_sampler(rows: CellRows) -> Callable[[CellRows, int, np.random.Generator], Array]:
    """The fastest way that is exact enough to draw the sum of many cells."""
    chance = rows.p * (1.0 - rows.p)
    if rows.moment(3) @ chance <= SMALL * (rows.moment(2) @ chance) ** 1.5 * (1.0 + 1e-12):
        return _draw_refined_normal
    inner = (rows.p > 0.0) & (rows.p < 1.0)
    smaller = np.minimum(rows.p, 1.0 - rows.p)[inner]
    events = float(-np.log1p(-smaller) @ rows.size[inner])
    return _draw_by_thinning if events <= min(EVENTS, len(rows.p) / DEAR) else _draw_cell_by_cell


def _draw_cell_by_cell(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """The sum of all cells in each redrawing, drawn cell by cell."""
    blocks = _redrawn_cells(rows, replicates, random)
    return np.concatenate([block.sum(axis=1) for block in blocks]) - rows.expected


def redrawn_residuals(
    table: ScoreTable, replicates: int, random: np.random.Generator
) -> Iterator[Array]:
    """Σw(y* − p) of each cell, y* redrawn: blocks of shape (some redrawings, cells)."""
    rows = CellRows.of(table)
    expected = rows.moment(1) * rows.p
    for drawn in _redrawn_cells(rows, replicates, random):
        yield drawn - expected


def _redrawn_cells(rows: CellRows, replicates: int, random: np.random.Generator) -> Iterator[Array]:
    """Σwy* of each cell, y* redrawn: blocks of shape (some redrawings, cells)."""
    for one, many, hits in redrawn_hits(rows, replicates, random):
        drawn = one * rows.other
        if len(many):
            drawn[:, many] += hits * rows.common[many]
        yield drawn


def redrawn_hits(
    rows: CellRows, replicates: int, random: np.random.Generator
) -> Iterator[tuple[Flags, Index, NDArray[np.int64]]]:
    """Redraw the labels of the rows behind each cell, some redrawings at a time.

    Each time: whether the row of weight ``other`` is positive, shape (some, cells); the cells with
    more rows than that; and how many of those rows are positive, shape (some, such cells).
    """
    many = np.flatnonzero(rows.size > 1.0)
    trials = (rows.size[many] - 1.0).astype(np.int64)
    for size in batches(replicates, BLOCK // len(rows.p)):
        one = random.random((size, len(rows.p))) < rows.p
        yield one, many, random.binomial(trials, rows.p[many], (size, len(many)))


def redrawn_p_value(drawn: Array, value: float, slack: float | None = None) -> float:
    """The p-value of a statistic by redrawings: the share of them that are at least as large, the
    data among them.

    Equal values may differ from rounding: by ``slack``, or by 10⁻¹² and that part of the value.

    >>> redrawn_p_value(np.array([0.1, 0.2, 0.3]), 0.2)
    0.75
    """
    least = value * (1.0 - ROUNDING) - ROUNDING if slack is None else value - slack
    above = int((drawn >= least).sum())
    return (1 + above) / (1 + len(drawn))


def _draw_refined_normal(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """The sum of all cells in each redrawing, from a normal distribution with the right
    skewness."""
    chance = rows.p * (1.0 - rows.p)
    sd = np.sqrt(rows.moment(2) @ chance)
    skewness = rows.moment(3) @ (chance * (1.0 - 2.0 * rows.p)) / sd**3
    z = random.standard_normal(replicates)
    drawn = sd * (z + skewness * (z**2 - 1.0) / 6.0)
    if (rows.other == 1.0).all() and (rows.common[rows.size > 1.0] == 1.0).all():
        drawn = np.rint(drawn + rows.expected) - rows.expected
    return np.asarray(drawn)


def _draw_by_thinning(rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """The sum of all cells in each redrawing, drawn exactly. Only rows with the less likely label
    are drawn, as events of a Poisson process of rate −ln(1 − q) at each row.

    q is the smaller of p and 1 − p. A row is hit, by one event or more, with probability q: exact,
    and the work grows with the variance of the sum, not with the number of rows.
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


# --- rows one by one, of two classes and of several ---------------------------------------------


def redrawn_rows(
    rows: Rows, counted: bool, random: np.random.Generator, part: slice, size: int
) -> NDArray[Any]:
    """The weight of each row that is redrawn as a positive, else 0: shape (rows, size). Its type is
    the smallest that holds the sums of a block.

    Where rows are ``counted``, each of the rows that a weight stands for has a label of its own.
    """
    p = rows.scores[part, None]
    weight = None if rows.weight is None else rows.weight[part, None]
    shape = (len(p), size)
    if counted and weight is not None:
        return random.binomial(weight.astype(np.int64), p, shape).astype(np.float64)
    hit = random.random(shape) < p
    if weight is None:
        return hit.astype(np.uint16)
    return np.where(hit, weight, 0.0).astype(np.float32)


def redrawn_classes(p: Array, size: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Redraw the class of each row from its probabilities: shape (rows, size)."""
    upto = np.cumsum(p, axis=1)
    upto /= upto[:, -1:]
    place = random.random((len(p), size))
    codes = np.zeros(place.shape, dtype=np.int32)
    for column in range(p.shape[1] - 1):
        codes += place >= upto[:, column, None]
    return codes
