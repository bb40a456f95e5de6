"""Bins of predictions: how they are cut, and the sums of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array, Flags, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.errors import ParameterError
from calibrant.metrics.bin_sweep import AUTO, Bins, check_bin_count, sweep_starts
from calibrant.metrics.cell_runs import starts_at
from calibrant.metrics.probability_matrix import top_labels, top_table


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


def top_groups(matrix: ScoreMatrix, bins: Bins, binning: str, ties: str) -> Groups:
    """The bins of the probability of each row's most probable class."""
    if isinstance(bins, str) or (binning, ties) != ("mass", "rows"):
        return group(top_table(matrix), bins, binning, ties)
    top, confidence = top_labels(matrix)
    return row_groups(confidence, matrix.codes == top, matrix.weight, bins)


def check_bins(bins: Any, binning: str, ties: str) -> None:
    """Refuse a number of bins, a binning or a treatment of ties that does not exist."""
    count = check_bin_count(bins)
    check_word("binning", binning, BINNINGS)
    check_word("ties", ties, TIES)
    if count == AUTO and ties != "together":
        raise ParameterError(
            f'ties must be "together" where bins="auto", which keeps ties whole, but {ties!r} came.'
        )


def group(table: ScoreTable, bins: Bins, binning: str = "width", ties: str = "together") -> Groups:
    """The sums of each bin, ties divided as ``ties`` says; ``"auto"`` divides none."""
    if binning == "mass" and not isinstance(bins, str):
        return _by_mass(*_CELLS[ties](table), table.is_whole, bins)
    starts = group_starts(table, bins)
    columns = (table.weight, table.positive, table.weight * table.scores)
    return Groups(*(np.add.reduceat(column, starts) for column in columns))


def row_groups(p: NDArray[Any], positive: Flags, weight: Array | None, bins: int) -> Groups:
    """Groups of equal mass, rows of equal predictions in the order in which they came."""
    order = np.argsort(p, kind="stable")
    each = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    whole = bool((each == np.floor(each)).all())
    return _by_mass(p[order].astype(np.float64), each[order], (each * positive)[order], whole, bins)


def _by_mass(scores: Array, weight: Array, positive: Array, whole: bool, bins: int) -> Groups:
    """Groups of equal mass: a cell that a border divides is divided in proportion."""
    mass = np.append(0.0, np.cumsum(weight))
    borders = mass_borders(mass[-1], whole, bins)
    columns = (weight, positive, weight * scores)
    upto = (np.interp(borders, mass, np.append(0.0, np.cumsum(column))) for column in columns)
    groups = Groups(*(np.diff(sums) for sums in upto))
    present = groups.weight > 0  # fewer cases than bins
    return Groups(*(sums[present] for sums in groups))


def _tied_cells(table: ScoreTable) -> tuple[Array, Array, Array]:
    return table.scores, table.weight, table.positive


def _split_cells(table: ScoreTable) -> tuple[Array, Array, Array]:
    """Every score twice, its negatives before its positives."""
    weight = np.column_stack((table.negative, table.positive)).ravel()
    positive = np.column_stack((np.zeros(len(table)), table.positive)).ravel()
    present = weight > 0
    return np.repeat(table.scores, 2)[present], weight[present], positive[present]


#: how bins may be cut
BINNINGS = ("width", "mass")
#: the cells of a table for each treatment of ties; "authors" is an older word for "labels"
_CELLS = {"together": _tied_cells, "labels": _split_cells, "authors": _split_cells}
#: all treatments of ties; "rows" needs rows, not a table
TIES = (*_CELLS, "rows")


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
