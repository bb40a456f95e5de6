"""Lazy frames → a score table, by a GROUP BY that runs where the data are.

One code path through narwhals: DuckDB relations, Polars lazy frames, Spark DataFrames, Ibis tables.
Nothing but sums per score, or per cell of scores, comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cells import Cells, cells_for
from calibrant.data.door import HEAVIEST
from calibrant.data.labels import plain
from calibrant.data.lazy_checks import (
    BadRowsError,
    CellsOption,
    Coding,
    Names,
    check_cells,
    check_columns,
    find_coding,
    refuse_rows,
    within,
)
from calibrant.data.naming import plain_names
from calibrant.data.table import ScoreTable
from calibrant.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["Grouped", "LazyRows", "Look", "columns_of", "lazy_frame", "read_lazy"]

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
T = TypeVar("T")

#: distinct scores up to which "auto" keeps them all, and rows that are looked at to see if there
#: are more
EXACT = 1_000_000
SEEN = EXACT + EXACT // 4
#: Σw and Σw² of negatives and positives, as the columns of grouped rows are called
SUMS = ("negative", "positive", "negative_sq", "positive_sq")


def lazy_frame(frame: Any) -> nw.LazyFrame[Any] | None:
    """The narwhals wrapper of any frame, eager ones made lazy; None for anything else."""
    import narwhals as nw

    if isinstance(frame, (str, bytes, np.ndarray, list, tuple, ScoreTable)):
        return None
    wrapped = nw.from_native(frame, pass_through=True)
    if isinstance(wrapped, nw.DataFrame):
        return wrapped.lazy()
    return wrapped if isinstance(wrapped, nw.LazyFrame) else None


def read_lazy(
    frame: nw.LazyFrame[Any],
    names: Names,
    *,
    pos_label: Any = None,
    classes: Any = None,
    coding: Coding | None = None,
    run: Callable[[Callable[[], Any]], Any] | None = None,
) -> LazyRows:
    """The rows of a lazy frame, ready to be grouped; columns and labels are checked.

    ``coding`` says what the labels are where the caller knows; ``run`` runs a query for a caller
    who wants to watch it.
    """
    check_columns(frame.collect_schema(), names)
    frame, called = plain_names(frame)
    names = names._replace(**{r: called[name] for r, name in names._asdict().items() if name})
    run = run or _at_once
    if coding is None:
        coding = find_coding(frame, names.label, pos_label, classes, run)
    return LazyRows(frame, names, coding, run, _refuse)


def _refuse(rows: LazyRows) -> None:
    refuse_rows(rows.source, rows.names, rows.coding, rows.run)


def _at_once(ask: Callable[[], Any]) -> Any:
    return ask()


@dataclass(frozen=True)
class LazyRows:
    """Rows of (score, label, weight) somewhere else, and the questions that are asked of them.

    Parameters
    ----------
    source : narwhals LazyFrame
    names : Names
    coding : Coding
    run : callable
        Runs a query; one that shows progress, perhaps.
    refuse : callable, optional
        Says what is wrong with the rows, once it is known that something is. Without it the caller
        gets the BadRowsError.
    said : Names, optional
        What the columns are called in messages, where ``names`` are not the user's.
    """

    source: nw.LazyFrame[Any]
    names: Names
    coding: Coding
    run: Callable[[Callable[[], Any]], Any]
    refuse: Callable[[LazyRows], None] | None = None
    said: Names | None = None

    # --- rows as columns ------------------------------------------------------------------------

    def rows(self, *others: nw.Expr) -> nw.LazyFrame[Any]:
        """The columns x, the score, NULL where anything of the row is wrong; w0 and w1, its weight
        as a negative and as a positive, with the squares q0 and q1; g, its segment."""
        import narwhals as nw

        score, label = nw.col(self.names.score).cast(nw.Float64), nw.col(self.names.label)
        is_negative, is_positive = (
            within(label, values) for values in (self.coding.negative, self.coding.positive)
        )
        weight: Any = nw.col(self.names.weight).cast(nw.Float64) if self.names.weight else 1.0
        nothing = nw.when(is_negative).then(0.0)  # NULL for a third label
        columns = [
            score.alias("x"),
            nw.when(is_negative).then(weight).otherwise(0.0).alias("w0"),
            nw.when(is_positive).then(weight).otherwise(nothing).alias("w1"),
        ]
        if self.names.segment:
            columns.append(nw.col(self.names.segment).alias("g"))
        x, w0, w1 = nw.col("x"), nw.col("w0"), nw.col("w1")
        good = x.is_finite() & (w0 + w1 >= 0.0) & (w0 + w1 <= HEAVIEST)
        checked: list[nw.Expr] = [nw.when(good).then(x + 0.0).alias("x")]
        if self.names.weight:
            checked += [(w0 * w0).alias("q0"), (w1 * w1).alias("q1")]
        return self.source.select(*columns, *others).with_columns(*checked)

    def sums(self) -> dict[str, nw.Expr]:
        """Σw and Σw² of each class, and the number of rows, as expressions to group by.

        Of columns alone: pandas and Arrow tables cannot group by more.
        """
        import narwhals as nw

        sums = {"negative": nw.col("w0").sum(), "positive": nw.col("w1").sum()}
        if self.names.weight:
            squares = {"negative_sq": nw.col("q0").sum(), "positive_sq": nw.col("q1").sum()}
            sums |= {**squares, "rows": nw.len()}
        return sums

    @property
    def keys(self) -> list[str]:
        """What comes before the score or the cell in a GROUP BY."""
        return ["g"] if self.names.segment else []

    def fetch(self, frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        """Run a query."""
        return self.run(frame.collect)  # type: ignore[no-any-return]

    def checked(self, ask: Callable[[], T]) -> T:
        """The answer to a question, or what is wrong with the rows."""
        try:
            return ask()
        except BadRowsError:
            if self.refuse is not None:
                self.refuse(self)
            raise

    # --- grouping -------------------------------------------------------------------------------

    def grouped(self, cells: CellsOption = "auto") -> Grouped:
        """The rows by score or by cell, as asked; "auto": by score while there are few."""
        check_cells(cells)
        return self.checked(lambda: self._grouped(cells))

    def _grouped(self, cells: CellsOption) -> Grouped:
        if cells == "exact":
            return self.by_score()
        if cells != "auto":
            return self.by_cell(self.cells_over(self.look(), int(cells)))
        exact = None if self._surely_many() else self.by_score(EXACT)
        if exact is not None and exact.size <= EXACT:
            return exact
        look = self.look()
        return self.by_cell(self.cells_over(look, cells_for(look.rows)))

    def by_score(self, most: int | None = None) -> Grouped:
        """Sums of each score (of each segment); of one more than ``most``, if there are so many."""
        frame = self.rows()
        return Grouped(None, self.group(frame, [*self.keys, "x"], self.sums(), most))

    def by_cell(self, cells: Cells, frame: nw.LazyFrame[Any] | None = None) -> Grouped:
        """Sums of each cell, the ends of its scores, and Σw·score."""
        import narwhals as nw

        x, weight = nw.col("x"), nw.col("w0") + nw.col("w1")
        present = nw.when(weight > 0.0).then(x) if self.names.weight else x
        rows = cells.add_to(self.rows() if frame is None else frame, "x", "k")
        rows = rows.with_columns(present.alias("at"), (x * weight).alias("wx"))
        sums = {
            "low": nw.col("at").min(),
            "high": nw.col("at").max(),
            "moment": nw.col("wx").sum(),
            **self.sums(),
        }
        return Grouped(cells, self.group(rows, [*self.keys, "k"], sums))

    def group(
        self,
        frame: nw.LazyFrame[Any],
        by: Sequence[str],
        sums: Mapping[str, nw.Expr],
        most: int | None = None,
    ) -> Columns:
        """The columns of a GROUP BY, ordered by its keys; BadRowsError if the last key is NULL."""
        called = self.said or self.names
        with np.errstate(over="ignore", invalid="ignore"):  # of frames in memory
            lazy = frame.group_by(*by).agg(*(e.alias(name) for name, e in sums.items()))
            found = self.fetch(lazy if most is None else lazy.head(most + 1))
        if most is not None and len(found) > most:
            return {by[-1]: np.empty(len(found))}
        if found.get_column(by[-1]).null_count():
            raise BadRowsError
        if any(found.get_column(key).null_count() for key in by):
            raise InputError(
                f"segment column {called.segment!r} must be complete, but some of it is "
                "missing. Give those rows a segment of their own."
            )
        found = found.sort(*by)
        columns = {name: _array(found.get_column(name)) for name in found.columns}
        if not len(found):
            raise InputError("the frame must hold at least one row, but it is empty (0 rows).")
        if not (columns["negative"].any() or columns["positive"].any()):
            raise InputError(
                f"weight column {called.weight!r} must be positive for at least one row, but "
                "all are zero. A zero weight means that the row is absent."
            )
        return columns

    # --- which cells ----------------------------------------------------------------------------

    def look(self) -> Look:
        """How many rows there are, and the ends of their scores; one pass over one column."""
        import narwhals as nw

        score = nw.col(self.names.score)
        if self.source.collect_schema()[self.names.score] != nw.Float64:
            score = score.cast(nw.Float64)
        ends = (score.min().alias("low"), score.max().alias("high"), nw.len().alias("rows"))
        low, high, rows = self.fetch(self.source.select(*ends)).row(0)
        if rows and not all(end is not None and math.isfinite(end) for end in (low, high)):
            raise BadRowsError
        return Look(int(rows), low or 0.0, high or 0.0)

    def cells_over(self, look: Look, count: int) -> Cells:
        """Cells for scores with these ends."""
        import narwhals as nw

        if look.low >= 0.0 and look.high <= 1.0:
            return Cells(count)
        score = nw.col(self.names.score).cast(nw.Float64)
        moments = (score.mean().alias("mean"), score.std().alias("spread"))
        with np.errstate(over="ignore", invalid="ignore"):  # of frames in memory
            centre, spread = self.fetch(self.source.select(*moments)).row(0)
        if centre is None or spread is None or not 0.0 < spread < math.inf:
            centre, spread = look.low / 2 + look.high / 2, look.high / 2 - look.low / 2
        return Cells(count, centre, max(spread, 1e-300))

    def _surely_many(self) -> bool:
        """Whether the first rows alone hold more different scores than are kept."""
        import narwhals as nw

        first = self.source.head(SEEN).select(self.names.score).unique()
        return bool(self.fetch(first.select(nw.len().alias("n"))).item() > EXACT)


class Look(NamedTuple):
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
        """The score table of each segment."""
        keys = self.columns["g"]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        ends = np.append(starts[1:], len(keys))
        return {plain(keys[a]): self.table(slice(a, b)) for a, b in zip(starts, ends, strict=True)}


def _array(column: nw.Series[Any]) -> NDArray[Any]:
    """A column of sums, NaN where there is none."""
    return column.fill_null(math.nan).to_numpy() if column.null_count() else column.to_numpy()


def columns_of(found: Columns) -> tuple[Array, Array, Array, Array]:
    """Σw and Σw² of both classes; without weights Σw² is Σw."""
    known = SUMS if SUMS[2] in found else (*SUMS[:2], *SUMS[:2])
    n0, n1, q0, q1 = (np.asarray(found[name], dtype=np.float64) for name in known)
    return n0, n1, q0, q1
