"""What the text being written needs: the dialect, the form, and the tables to join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array
from calibrant.export.sql.cell_key import cell
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import name
from calibrant.export.sql.literals import LARGEST
from calibrant.plan.borders import Regions
from calibrant.plan.grids import Grid, grid_of, listed

Index = NDArray[np.int64]

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LookupTable:
    """A table to be created and filled.

    Parameters
    ----------
    about : what its rows are, for a comment
    suffix : what is added to the name of the lookup table
    columns : values by name; text, whole numbers or doubles
    key : how many of the first columns tell its rows apart
    """

    about: str
    suffix: str
    columns: Mapping[str, Array | Index | list[str]]
    key: int


@dataclass(frozen=True)
class Join:
    """A table joined to the rows: at most one of its rows meets the conditions."""

    alias: str
    table: LookupTable
    conditions: tuple[str, ...]


@dataclass
class SqlWriter:
    """Collects the joins of a script while its expressions are written.

    Parameters
    ----------
    dialect : Dialect
    lookup : bool
        Whether pieces are chosen by joins; by CASE otherwise.
    """

    dialect: Dialect
    lookup: bool = False
    joins: list[Join] = field(default_factory=list)

    def look_up(self, found: Regions, columns: Mapping[str, Array], score: str) -> dict[str, str]:
        """The columns of the row's own region, joined by cell: SQL by name."""
        grid = grid_of(found.low, lean=True)
        about = f"{len(found.low):,} pieces, each once for every cell of scores that it touches"
        table = self.rows(grid, found, columns)
        return self.join(about, table, 2, {"cell": cell(grid, score, self.dialect)}, score)

    def look_up_own(
        self,
        found: Sequence[Regions],
        columns: Sequence[Mapping[str, Array]],
        code: str,
        score: str,
    ) -> dict[str, str]:
        """The same where each row has a table of its own, joined by its number and the cell."""
        low = np.sort(np.concatenate([own.low for own in found]))
        grid = grid_of(low, owners=len(found), lean=True)
        parts = [self.rows(grid, *pair) for pair in zip(found, columns, strict=True)]
        codes = np.repeat(np.arange(len(parts)), [len(part["cell"]) for part in parts])
        table = {own: np.concatenate([part[own] for part in parts]) for own in parts[0]}
        about = (
            f"{len(low):,} pieces of maps, each once for every segment and cell of scores that it "
            "touches"
        )
        equal = {"code": code, "cell": cell(grid, score, self.dialect)}
        return self.join(about, {"code": codes, **table}, 3, equal, score)

    def rows(self, grid: Grid, found: Regions, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Regions by cell, with their ends, both included, and the values of their pieces."""
        low, high, piece = found if self.dialect.subnormals else _normal(found)
        cells, region = listed(grid, low, high)
        order = np.lexsort((low[region], cells))
        cells, region = cells[order], region[order]
        first = np.where(low == -LARGEST, -self.dialect.endless, low)
        last = np.where(high == LARGEST, self.dialect.endless, high)
        ends = {"cell": cells, "score_from": first[region], "score_to": last[region]}
        return ends | {own: c[piece[region]] for own, c in columns.items()}

    def join(
        self,
        about: str,
        columns: Mapping[str, Array | Index | list[str]],
        key: int,
        equal: Mapping[str, str],
        score: str = "",
    ) -> dict[str, str]:
        """Join a new table where some of its columns equal SQL and the score lies in the row's
        region; return its columns as SQL by name."""
        count = len(self.joins) + 1
        alias, suffix = (f"l{count}", f"_{count}") if count > 1 else ("l", "")
        found = {own: f"{alias}.{name(own, self.dialect)}" for own in columns}
        conditions = [f"{found[own]} = {value}" for own, value in equal.items()]
        if score:
            conditions.append(f"{score} BETWEEN {alias}.score_from AND {alias}.score_to")
        table = LookupTable(about, suffix, columns, key)
        self.joins.append(Join(alias, table, tuple(conditions)))
        return found


def _normal(found: Regions) -> Regions:
    """Regions for databases without subnormal numbers: their ends are moved to normal numbers."""
    low, high = found.low.copy(), found.high.copy()
    for ends, up in ((low, True), (high, False)):
        tiny = (ends != 0.0) & (np.abs(ends) < SMALLEST_NORMAL)
        away = (ends > 0.0) == up
        ends[tiny] = np.where(away, np.sign(ends) * SMALLEST_NORMAL, 0.0)[tiny]
    some = low <= high
    return Regions(low[some], high[some], found.piece[some])
