"""Rows that an engine has grouped: their sums by score or by cell."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.cells import Cells
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain

Columns = dict[str, NDArray[Any]]

#: a cell of margins is crowded if it holds more than the share CROWDED of the weight, and more than
#: DUE times what an average cell holds; ZOOMS is how often cells may be narrowed to a crowded one
CROWDED, DUE, ZOOMS = 1 / 16, 8, 4
#: Σw and Σw² of negatives and positives, as the columns of grouped rows are called
SUMS = ("negative", "positive", "negative_sq", "positive_sq")

#: how the two classes of a cell are put together: columns that become one for each class (APART),
#: and columns of which both classes' values become one (REDUCED)
APART = {"weight": SUMS[:2], "square": SUMS[2:], "d": ("d0", "d1")}
REDUCED = {"low": np.fmin, "high": np.fmax} | dict.fromkeys(
    ("moment", "rows", "e", "loss", "part"), np.add
)


class ScoreExtent(NamedTuple):
    """The number of rows, and their smallest and largest score."""

    rows: int
    low: float
    high: float


@dataclass(frozen=True)
class Grouped:
    """Sums of rows by score (``cells`` is None) or by cell, in the order of the scores."""

    cells: Cells | None
    columns: Columns

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.columns["x" if self.cells is None else "k"])

    @property
    def rows(self) -> int:
        """The number of rows."""
        counts = ("rows",) if "rows" in self.columns else SUMS[:2]
        return int(sum(self.columns[name].sum() for name in counts))

    def crowd(self) -> float:
        """The share of the weight that is in crowded cells of different scores."""
        crowded, share = self._crowded()
        return float(share[crowded].sum())

    def closer(self) -> Cells | None:
        """Cells that are finest inside the most crowded cell; None if no cell is crowded."""
        crowded, share = self._crowded()
        if self.cells is None or not crowded.any():
            return None
        worst = self.columns["k"] == self.columns["k"][np.argmax(np.where(crowded, share, 0.0))]
        low = float(np.nanmin(self.columns["low"][worst]))
        high = float(np.nanmax(self.columns["high"][worst]))
        spread = max(high / 2 - low / 2, 1e-300)
        return Cells(self.cells.count, low / 2 + high / 2, spread)

    def _crowded(self) -> tuple[Flags, Array]:
        """Which groups are in crowded cells, and the share of the weight that each group holds."""
        n0, n1, _, _ = columns_of(self.columns)
        share = (n0 + n1) / (n0 + n1).sum()
        if self.cells is None or self.cells.centre is None:
            return np.zeros(len(share), dtype=bool), share
        _, place = np.unique(self.columns["k"], return_inverse=True)
        held = np.bincount(place, share)[place]
        mixed = np.bincount(place, self.columns["low"] < self.columns["high"])[place] > 0
        return mixed & (held > max(CROWDED, DUE / self.cells.count)), share

    def table(self, part: slice = slice(None)) -> ScoreTable:
        """The score table (of a part of the groups)."""
        n0, n1, q0, q1 = (column[part] for column in columns_of(self.columns))
        if self.cells is None:
            return ScoreTable.from_counts(self.columns["x"][part], n0, n1, q0, q1)
        present = n0 + n1 > 0  # a cell of rows without weight has no ends
        low, high, moment = (
            self.columns[name][part][present] + 0.0 for name in ("low", "high", "moment")
        )
        sums = (n0[present], n1[present], q0[present], q1[present])
        return ScoreTable.from_cells(low, high, moment, sums, str(self.cells))

    def tables(self) -> dict[Any, ScoreTable]:
        """The score table of each segment; segments of several columns are tuples."""
        names = _segments_in(self.columns)
        starts = np.flatnonzero(_changes(self.columns, names))
        ends = np.append(starts[1:], self.size)
        values = [[plain(value) for value in self.columns[name][starts]] for name in names]
        keys = values[0] if len(values) == 1 else zip(*values, strict=True)
        parts = zip(keys, starts, ends, strict=True)
        return {key: self.table(slice(a, b)) for key, a, b in parts}


def segment_keys(count: int) -> list[str]:
    """What the columns of segments are called in grouped rows.

    >>> segment_keys(2)
    ['g1', 'g2']
    """
    return [f"g{i}" for i in range(1, count + 1)]


def _segments_in(found: Columns) -> list[str]:
    return [name for name in segment_keys(len(found)) if name in found]


def _changes(found: Columns, names: Sequence[str]) -> Flags:
    """At which groups, in order, one of the columns has another value than before."""
    new = np.zeros(len(found[names[0]]), dtype=bool)
    new[:1] = True
    for name in names:
        new[1:] |= found[name][1:] != found[name][:-1]
    return new


def zoomed(cells: Cells) -> Generator[Cells, Grouped, Grouped]:
    """Find the cells to group by: where a few far scores crowd the others into one cell, narrow the
    cells to that one.

    Yields cells, and is sent the rows grouped by them. Returns the best grouping.
    """
    grouped = yield cells
    for _ in range(ZOOMS):
        closer = grouped.closer()
        if closer is None:
            break
        again = yield closer
        if again.crowd() > 0.5 * grouped.crowd():
            break
        grouped = again
    return grouped


def zoomed_grouping(cells: Cells, by_cell: Callable[[Cells], Grouped]) -> Grouped:
    """The grouping that `zoomed` ends with; ``by_cell`` groups rows by cells."""
    search = zoomed(cells)
    asked = next(search)
    while True:
        try:
            asked = search.send(by_cell(asked))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def side_by_side(found: Columns) -> Columns:
    """The two classes of each cell side by side; keys are 2 · cell + class, in order."""
    key = found["k"].astype(np.int64)
    cell, positive = key >> 1, (key & 1).astype(bool)
    segments = _segments_in(found)
    new = _changes({**found, "k": cell}, ["k", *segments])
    starts = np.flatnonzero(new)
    place = np.cumsum(new) - 1
    columns = {name: found[name][starts] for name in segments} | {"k": cell[starts]}
    for source, names in APART.items():
        for name, own in zip(names, (~positive, positive), strict=True):
            if source in found:
                columns[name] = np.zeros(len(starts))
                columns[name][place[own]] = found[source][own]
    with np.errstate(over="ignore", invalid="ignore"):  # of scores near the largest number
        for name, put in REDUCED.items():
            if name in found:
                columns[name] = put.reduceat(np.asarray(found[name], dtype=np.float64), starts)
    return columns


def columns_of(found: Columns) -> tuple[Array, Array, Array, Array]:
    """Σw and Σw² of both classes; without weights Σw² is Σw."""
    known = SUMS if SUMS[2] in found else (*SUMS[:2], *SUMS[:2])
    n0, n1, q0, q1 = (np.asarray(found[name], dtype=np.float64) for name in known)
    return n0, n1, q0, q1
