"""Bins of predictions, of two classes or of several: how they are cut, and the sums of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_word
from calibrant.errors import ParameterError
from calibrant.metrics.bin_sweep import AUTO, Bins, check_bin_count, sweep_starts
from calibrant.metrics.probability_matrix import class_rows
from calibrant.metrics.weighted_cells import starts_at

#: predictions in order, their weights and those of positives, and whether weights are whole
Cells = tuple[Array, Array, Array, bool]


class Groups(NamedTuple):
    """Per non-empty bin: its weight, the weight of its positives, and Σ weight · prediction."""

    weight: Array
    positive: Array
    predicted: Array

    def mean_gap(self) -> float:
        """Σ |predicted − positive| over the bins, divided by the total weight."""
        return self.mean_power(1)

    def mean_power(self, norm: int) -> float:
        """The mean over all cases of |mean prediction − frequency|^norm of their bin."""
        apart, total = np.abs(self.predicted - self.positive), self.weight.sum()
        if norm == 1:
            return float(apart.sum() / total)
        return float((apart / self.weight) ** norm @ (self.weight / total))

    def largest_gap(self) -> float:
        """The largest |mean prediction − frequency| of a bin."""
        return float((np.abs(self.predicted - self.positive) / self.weight).max())


def check_bins(bins: Any, binning: str, ties: str) -> None:
    """Refuse a number of bins, a binning or a treatment of ties that does not exist."""
    count = check_bin_count(bins)
    check_word("binning", binning, BINNINGS)
    check_word("ties", ties, _CELLS)
    if count == AUTO and ties != "together":
        raise ParameterError(
            f'ties must be "together" where bins="auto", which keeps ties whole, but {ties!r} came.'
        )


def group(
    seen: ScoreTable | Rows, bins: Bins, binning: str = "width", ties: str = "together"
) -> Groups:
    """The sums of each bin, ties divided as ``ties`` says; ``"auto"`` divides none."""
    if binning == "mass" and not isinstance(bins, str):
        return _by_mass(*_CELLS[ties](seen), bins)
    table = as_table(seen)
    starts = group_starts(table, bins)
    columns = (table.weight, table.positive, table.weight * table.scores)
    return Groups(*(np.add.reduceat(column, starts) for column in columns))


def as_table(seen: ScoreTable | Rows) -> ScoreTable:
    """The table of some rows, or the table itself."""
    return seen if isinstance(seen, ScoreTable) else ScoreTable.from_rows(seen)


def class_groups(
    matrix: ScoreMatrix, bins: Bins, binning: str = "width", ties: str = "together"
) -> list[Groups]:
    """The sums of each bin, for each class against the rest."""
    if binning == "width" and not isinstance(bins, str):
        return _equal_width(matrix, bins)
    columns = range(matrix.n_classes)
    return [group(class_rows(matrix, column), bins, binning, ties) for column in columns]


def _equal_width(matrix: ScoreMatrix, bins: int) -> list[Groups]:
    """All classes at once, a block of rows at a time: bins of equal width need no sorting."""
    k = matrix.n_classes
    edges = np.arange(1, bins) / bins
    offset = bins * np.arange(k)
    sums = np.zeros((3, k * bins))
    for p, codes, weight in matrix.blocks():
        cell = np.searchsorted(edges, p.ravel(), side="right").reshape(p.shape) + offset
        own = cell[np.arange(len(codes)), codes]
        each = np.repeat(weight, k)
        size = k * bins
        sums[0] += np.bincount(cell.ravel(), each, minlength=size)
        sums[1] += np.bincount(own, weight, minlength=size)
        sums[2] += np.bincount(cell.ravel(), each * p.ravel(), minlength=size)
    classes = np.moveaxis(sums.reshape(3, k, bins), 1, 0)
    return [Groups(*columns[:, columns[0] > 0]) for columns in classes]


def _by_mass(scores: Array, weight: Array, positive: Array, whole: bool, bins: int) -> Groups:
    """Groups of equal mass: a cell that a border divides is divided in proportion."""
    mass = np.append(0.0, np.cumsum(weight))
    borders = mass_borders(mass[-1], whole, bins)
    columns = (weight, positive, weight * scores)
    upto = (np.interp(borders, mass, np.append(0.0, np.cumsum(column))) for column in columns)
    groups = Groups(*(np.diff(sums) for sums in upto))
    present = groups.weight > 0  # fewer cases than bins
    return Groups(*(sums[present] for sums in groups))


def _tied_cells(seen: ScoreTable | Rows) -> Cells:
    table = as_table(seen)
    return table.scores, table.weight, table.positive, table.is_whole


def _split_cells(seen: ScoreTable | Rows) -> Cells:
    """Every score twice, its negatives before its positives."""
    table = as_table(seen)
    weight = np.column_stack((table.negative, table.positive)).ravel()
    positive = np.column_stack((np.zeros(len(table)), table.positive)).ravel()
    present = weight > 0
    scores = np.repeat(table.scores, 2)
    return scores[present], weight[present], positive[present], table.is_whole


def _row_cells(rows: Any) -> Cells:
    """Each row by itself, those of equal predictions in the order in which they came."""
    order = np.argsort(rows.scores, kind="stable")
    weight = np.ones(len(order)) if rows.weight is None else rows.weight
    whole = bool((weight == np.floor(weight)).all())
    return rows.scores[order], weight[order], (weight * rows.positive)[order], whole


#: how bins may be cut
BINNINGS = ("width", "mass")
#: the cells for each treatment of ties: "rows" needs rows, not a table, and "authors" is an older
#: word for "labels"
_CELLS: dict[str, Callable[[Any], Cells]] = {
    "together": _tied_cells,
    "labels": _split_cells,
    "authors": _split_cells,
    "rows": _row_cells,
}


def group_starts(table: ScoreTable, bins: Bins, binning: str = "width") -> Index:
    """The first cell of every non-empty bin. A border inside a tie moves to the end of the tie."""
    if isinstance(bins, str):
        return sweep_starts(table)
    if binning == "width":
        inner = np.searchsorted(table.scores, np.arange(1, bins) / bins, side="left")
    else:
        mass = np.cumsum(table.weight)
        borders = mass_borders(mass[-1], table.is_whole, bins)[1:-1]
        # a cumulative sum that is below its border by a rounding error has reached it
        inner = np.searchsorted(mass, borders - 1e-12 * mass[-1], side="left") + 1
    return starts_at(inner, len(table))


def mass_borders(total: float, whole: bool, bins: int) -> Array:
    """Where groups of equal mass begin and end, from 0 to the total weight."""
    if not whole:
        return np.asarray(np.linspace(0.0, total, bins + 1), dtype=np.float64)
    size, larger = divmod(total, bins)
    k = np.arange(bins + 1, dtype=np.float64)
    return k * size + np.minimum(k, larger)
