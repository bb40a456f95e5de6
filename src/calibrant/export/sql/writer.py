"""What the text being written needs: the dialect, the form, and the tables to join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.export.sql.cell_key import cell
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import name
from calibrant.export.sql.literals import LARGEST
from calibrant.plan.borders import Regions
from calibrant.plan.grids import Grid, grid_of, listed

Index = NDArray[np.int64]

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LookupJoin:
    """A table to be created and filled, and how it is joined: at most one row of it is found.

    Parameters
    ----------
    about : what its rows are, for a comment
    suffix : what is added to the name of the lookup table
    alias : what the query calls it
    columns : values by name; text, whole numbers or doubles
    key : how many of the first columns tell its rows apart
    conditions : SQL that holds for the row that is found
    """

    about: str
    suffix: str
    alias: str
    columns: Mapping[str, Array | Index | list[str]]
    key: int
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
    joins: list[LookupJoin] = field(default_factory=list)

    def look_up(
        self,
        found: Sequence[Regions],
        columns: Sequence[Mapping[str, Array]],
        score: str,
        code: str = "",
    ) -> dict[str, str]:
        """The columns of the row's own region, joined by cell: SQL by name.

        Where there are several tables of regions, ``code`` is SQL of the number of the row's own.
        """
        low = np.sort(np.concatenate([own.low for own in found]))
        grid = grid_of(low, owners=len(found), lean=True)
        parts = [self.rows(grid, *pair) for pair in zip(found, columns, strict=True)]
        table = {own: np.concatenate([part[own] for part in parts]) for own in parts[0]}
        equal = {"cell": cell(grid, score, self.dialect)}
        what, each = "pieces", "cell"
        if code:
            what, each = "pieces of maps", "segment and cell"
            codes = np.repeat(np.arange(len(parts)), [len(part["cell"]) for part in parts])
            table, equal = {"code": codes, **table}, {"code": code, **equal}
        about = f"{len(low):,} {what}, each once for every {each} of scores that it touches"
        return self.join(about, table, equal, score)

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
        equal: Mapping[str, str],
        score: str = "",
    ) -> dict[str, str]:
        """Join a new table where its first columns equal SQL and the score, if there is one, lies
        in the row's region; return its columns as SQL by name."""
        count = len(self.joins) + 1
        alias, suffix = (f"l{count}", f"_{count}") if count > 1 else ("l", "")
        found = {own: f"{alias}.{name(own, self.dialect)}" for own in columns}
        conditions = [f"{found[own]} = {value}" for own, value in equal.items()]
        if score:
            conditions.append(f"{score} BETWEEN {alias}.score_from AND {alias}.score_to")
        self.joins.append(
            LookupJoin(about, suffix, alias, columns, len(conditions), tuple(conditions))
        )
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
