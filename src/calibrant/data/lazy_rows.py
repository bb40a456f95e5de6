"""Lazy frames → a score table, by a GROUP BY that runs where the data are.

One code path through narwhals: DuckDB relations, Polars lazy frames, Spark DataFrames, Ibis tables.
Nothing but sums per score, or per cell of scores, comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.cells import Cells, cells_for, segment_cells_for
from calibrant.data.doubles import as_double, first_row, is_finite, is_infinite, is_nan
from calibrant.data.engine_frames import plain_names
from calibrant.data.grouped_sums import (
    SUMS,
    Columns,
    Grouped,
    ScoreExtent,
    segment_keys,
    side_by_side,
    zoomed_grouping,
)
from calibrant.data.labels import read_labels
from calibrant.data.lazy_checks import (
    BadRowsError,
    CellsOption,
    Coding,
    Names,
    Run,
    check_cells,
    check_columns,
    distinct,
    distinct_labels,
    find_coding,
    refuse_classes,
    refuse_labels,
    refuse_marked,
    refuse_streams,
    simple_label,
    within,
)
from calibrant.data.naming import open_any
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import HEAVIEST
from calibrant.errors import InputError

T = TypeVar("T")

#: roles of columns that hold numbers
NUMBERS = ("score", "weight", "raw")
#: "auto" keeps all distinct scores up to EXACT; the first SEEN rows may show that there are more
EXACT = 1_000_000
SEEN = EXACT + EXACT // 4


def lazy_frame(frame: Any) -> nw.LazyFrame[Any] | None:
    """The narwhals wrapper of any frame, eager ones made lazy; None for anything else."""
    if isinstance(frame, (str, bytes, np.ndarray, list, tuple, ScoreTable)):
        return None
    wrapped = open_any(frame)
    if isinstance(wrapped, nw.DataFrame):
        return wrapped.lazy()
    return wrapped if isinstance(wrapped, nw.LazyFrame) else None


def read_lazy(
    frame: nw.LazyFrame[Any],
    names: Names,
    *,
    pos_label: Any = None,
    classes: Any = None,
    run: Run = lambda ask: ask(),
) -> LazyRows:
    """The rows of a lazy frame, ready to be grouped; columns and labels are checked.

    ``run`` runs a query for a caller who wants to watch it.
    """
    refuse_streams(frame)
    check_columns(frame.collect_schema(), names)
    frame, called = plain_names(frame)
    columns = (
        (as_double(frame, called[name]) if role in NUMBERS else nw.col(called[name])).alias(role)
        for role, name in names.roles().items()
    )
    source = frame.select(*columns)
    coding = find_coding(source, names.label, pos_label, classes, run)
    return LazyRows(source, names, coding, run, explains=True)


@dataclass(frozen=True)
class LazyRows:
    """Rows of (score, label, weight) somewhere else, and the questions that are asked of them.

    Parameters
    ----------
    source : narwhals LazyFrame
        Its columns are called by their roles (`Names.roles`); scores and weights are doubles.
    names : Names
        What the user calls the columns.
    coding : Coding
    run : callable
        Runs a query; one that shows progress, perhaps.
    explains : bool, default=False
        Whether an InputError says what is wrong with the rows, once it is known that something is.
        Without it the caller gets the BadRowsError.
    score : str, default="score"
        The column of ``source`` that holds the scores.
    bare : bool, default=False
        Leave out what isotonic regression does not need: Σw², Σw·score.
    """

    source: nw.LazyFrame[Any]
    names: Names
    coding: Coding
    run: Run
    explains: bool = False
    score: str = "score"
    bare: bool = False

    # --- rows as columns ------------------------------------------------------------------------

    def rows(self, *others: nw.Expr) -> nw.LazyFrame[Any]:
        """The rows as columns: x, the score; w0 and w1, the weight as a negative and as a positive;
        q0 and q1, their squares; g1, g2, ..., the segment. x is NULL where a value is wrong."""
        is_negative, is_positive = self._classes()
        weight: Any = nw.col("weight") if self.names.weight else 1.0
        nothing = nw.when(is_negative).then(0.0)  # NULL for a third label
        columns = [
            nw.col(self.score).alias("x"),
            nw.when(is_negative).then(weight).otherwise(0.0).alias("w0"),
            nw.when(is_positive).then(weight).otherwise(nothing).alias("w1"),
        ]
        x, w0, w1 = nw.col("x"), nw.col("w0"), nw.col("w1")
        good = is_finite(x) & (w0 + w1 >= 0.0) & (w0 + w1 <= HEAVIEST)
        checked: dict[str, nw.Expr] = {"x": nw.when(good).then(x + 0.0)}
        if self.names.weight and not self.bare:
            checked |= {"q0": w0 * w0, "q1": w1 * w1}
        return self.source.select(*columns, *self.keys, *others).with_columns(**checked)

    def coded(self, *others: nw.Expr) -> nw.LazyFrame[Any]:
        """The rows as columns: x, the score, NULL where it or the weight is wrong; y, 0 or 1,
        NULL for other labels; w, the weight; g1, g2, ..., the segment."""
        columns = [nw.col(self.score).alias("x"), self.label().alias("y")]
        good = is_finite(nw.col("x"))
        if self.names.weight:
            columns.append(nw.col("weight").alias("w"))
            good = good & (nw.col("w") >= 0.0) & (nw.col("w") <= HEAVIEST)
        checked = nw.when(good).then(nw.col("x"))
        return self.source.select(*columns, *self.keys, *others).with_columns(x=checked)

    def label(self) -> nw.Expr:
        """1 for positives, 0 for negatives, NULL for other labels."""
        is_negative, is_positive = self._classes()
        known = nw.when(is_positive).then(1).otherwise(0)  # whole numbers: pandas needs no others
        return nw.when(is_positive | is_negative).then(known)

    def _classes(self) -> tuple[nw.Expr, nw.Expr]:
        """Who is negative, and who is positive."""
        label = nw.col("label")
        return within(label, self.coding.negative), within(label, self.coding.positive)

    def sums(self) -> dict[str, nw.Expr]:
        """Σw and Σw² of each class, and the number of rows, as expressions to group by.

        Of columns alone: pandas and Arrow tables cannot group by more.
        """
        sums = {"negative": nw.col("w0").sum(), "positive": nw.col("w1").sum()}
        if self.names.weight and not self.bare:
            squares = {"negative_sq": nw.col("q0").sum(), "positive_sq": nw.col("q1").sum()}
            sums |= {**squares, "rows": nw.len()}
        return sums

    def weight_of_a_row(self) -> float:
        """Σw²/Σw, by which importance weights are divided to be in units of rows; one pass."""
        if not self.names.weight:
            return 1.0
        squares, total = nw.col("q0").sum() + nw.col("q1").sum(), nw.col("w0") + nw.col("w1")
        found = first_row(self.fetch(self.rows().select(squares=squares, total=total.sum())))
        return float(found[0]) / float(found[1])

    def apart(self) -> tuple[LazyRows, LazyRows | None]:
        """The rows with their score; and with the raw score in its place, where there is one."""
        names = self.names._replace(raw=None)
        rows = replace(self, names=names)
        if self.names.raw is None:
            return rows, None
        return rows, replace(rows, names=names._replace(score=self.names.raw), score="raw")

    @property
    def keys(self) -> list[str]:
        """The columns before the score or the cell in a GROUP BY."""
        return segment_keys(len(self.names.segments))

    def fetch(self, frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        """Run a query."""
        return self.run(frame.collect)  # type: ignore[no-any-return]

    def checked(self, ask: Callable[[], T]) -> T:
        """The answer to a question, or what is wrong with the rows."""
        try:
            return ask()
        except BadRowsError:
            if self.explains:
                self.refuse()
            raise

    def refuse(self) -> None:
        """An InputError that says what is wrong with how many rows; used only after a failure."""
        names, score, weight = self.names, nw.col(self.score), nw.col("weight")
        checks = {
            "missing": score.is_null(),
            "NaN": is_nan(score),
            "infinite": is_infinite(score),
        }
        must = f"score column {names.score!r} must be finite"
        refuse_marked(self.source, must, checks, "Drop or impute them first.", self.run)
        if names.weight:
            checks = {
                "missing": weight.is_null(),
                "NaN": is_nan(weight),
                "negative": weight < 0.0,
                f"above {HEAVIEST:g}": (weight > HEAVIEST) & ~is_nan(weight),  # in SQL NaN is above
            }
            must = f"weight column {names.weight!r} must be from 0 to {HEAVIEST:g}"
            refuse_marked(self.source, must, checks, "Correct or drop those rows.", self.run)
        refuse_labels(self.source, names.label, self.run)
        found = [simple_label(value) for value in distinct_labels(self.source, self.run)]
        refuse_classes(found, names.label, known=True)
        read_labels(found, classes=self.coding.classes)

    # --- grouping -------------------------------------------------------------------------------

    def grouped(
        self, cells: CellsOption = "auto", count: Callable[[float], int] = cells_for
    ) -> Grouped:
        """The rows by score or by cell, as asked. "auto": by score if there are few scores, else
        in as many cells as ``count`` gives for the number of rows."""
        return self.checked(lambda: self._grouped(cells, count))

    def _grouped(self, cells: CellsOption, count: Callable[[float], int]) -> Grouped:
        found = self.by_score_or_cells(cells, count)
        return found if isinstance(found, Grouped) else zoomed_grouping(found, self.by_cell)

    def by_score_or_cells(
        self, cells: CellsOption, count: Callable[[float], int]
    ) -> Grouped | Cells:
        """The rows by score where `grouped` has them so, else the cells to begin with."""
        check_cells(cells)
        if cells == "exact":
            return self.by_score()
        if cells != "auto":
            return self.cells_over(self.look(), int(cells))
        exact = None if self._surely_many() else self.by_score(EXACT)
        if exact is not None and exact.size <= EXACT:
            return exact
        look = self.look()
        wanted = self._segment_cells() if self.names.segment else count(look.rows)
        return self.cells_over(look, wanted)

    def _segment_cells(self) -> int:
        segments = self.source.group_by(*self.keys).agg(nw.len().alias("n"))
        return segment_cells_for(self.fetch(segments.select(n=nw.len())).item())

    def by_score(self, most: int | None = None) -> Grouped:
        """Sums of each score (and segment); if there are more than ``most``, only how many."""
        frame = self.rows()
        return Grouped(None, self.group(frame, [*self.keys, "x"], self.sums(), most))

    def by_cell(self, cells: Cells) -> Grouped:
        """Sums of each cell, the ends of its scores, and Σw·score."""
        return Grouped(cells, self.by_key(cells.add_to(self.coded(), "x", "k")))

    def by_key(
        self,
        rows: nw.LazyFrame[Any],
        moment: tuple[str, str] = ("x", "moment"),
        others: Sequence[str] = (),
    ) -> Columns:
        """Sums of coded rows for each number k, and their lowest and highest scores.

        ``moment`` is a column and the name under which its Σw·value comes back. ``others`` are
        columns whose plain sums come back. The rows are grouped by one number made of k and class,
        which is cheaper than sums for each class.
        """
        rows = rows.with_columns((nw.col("k") * 2 + nw.col("y")).alias("k"))
        at = x = nw.col("x")
        value, name = nw.col(moment[0]), moment[1]
        sums = {"weight": nw.len(), name: value.sum()}
        if self.names.weight:
            w, at = nw.col("w"), nw.col("at")
            present = nw.when(w > 0.0).then(x).alias("at")
            rows = rows.with_columns(present, (w * w).alias("q"), (w * value).alias("wx"))
            sums = {"weight": w.sum(), name: nw.col("wx").sum()}
            sums |= {"square": nw.col("q").sum(), "rows": nw.len()}
        if self.bare:
            sums = {name: sums[name] for name in ("weight", "rows") if name in sums}
        sums |= {"low": at.min(), "high": at.max(), **{name: nw.col(name).sum() for name in others}}
        return side_by_side(self.group(rows, [*self.keys, "k"], sums))

    def group(
        self,
        frame: nw.LazyFrame[Any],
        by: Sequence[str],
        sums: Mapping[str, nw.Expr],
        most: int | None = None,
    ) -> Columns:
        """The columns of a GROUP BY, ordered by its keys; BadRowsError if the last key is NULL."""
        with np.errstate(over="ignore", invalid="ignore"):  # of frames in memory
            lazy = frame.group_by(*by).agg(*(e.alias(name) for name, e in sums.items()))
            found = self.fetch(lazy if most is None else lazy.head(most + 1))
        if most is not None and len(found) > most:
            return {by[-1]: np.empty(len(found))}
        if found.get_column(by[-1]).null_count():
            raise BadRowsError
        for key, name in zip(self.keys, self.names.segments, strict=True):
            if found.get_column(key).null_count():
                raise InputError(
                    f"segment column {name!r} must be complete, but some of it is missing. Give "
                    "those rows a segment of their own."
                )
        found = found.sort(*by)
        columns = {name: _array(found.get_column(name)) for name in found.columns}
        if not len(found):
            raise InputError("the frame must hold at least one row, but it is empty (0 rows).")
        weights = [columns[name] for name in (*SUMS[:2], "weight") if name in columns]
        if not any(column.any() for column in weights):
            raise InputError(
                f"weight column {self.names.weight!r} must be positive for at least one row, but "
                "all are zero. A zero weight means that the row is absent."
            )
        return columns

    # --- which cells ----------------------------------------------------------------------------

    def look(self) -> ScoreExtent:
        """How many rows there are, and the ends of their scores; one pass over one column."""
        score = nw.col(self.score)
        asked = self.source.select(low=score.min(), high=score.max(), rows=nw.len())
        low, high, rows = first_row(self.fetch(asked))
        if rows and not all(end is not None and math.isfinite(end) for end in (low, high)):
            raise BadRowsError
        return ScoreExtent(int(rows), low or 0.0, high or 0.0)

    def cells_over(self, look: ScoreExtent, count: int) -> Cells:
        """Cells for scores with these ends."""
        if look.low >= 0.0 and look.high <= 1.0:
            return Cells(count)
        score = nw.col(self.score)
        with np.errstate(over="ignore", invalid="ignore"):  # of frames in memory
            moments = self.source.select(mean=score.mean(), spread=score.std())
            centre, spread = first_row(self.fetch(moments))
        if centre is None or spread is None or not 0.0 < spread < math.inf:
            centre, spread = look.low / 2 + look.high / 2, look.high / 2 - look.low / 2
        return Cells(count, centre, max(spread, 1e-300))

    def _surely_many(self) -> bool:
        """Whether the first rows alone hold more different scores than are kept."""
        first = distinct(self.source.head(SEEN), self.score)
        return bool(self.fetch(first.select(n=nw.len())).item() > EXACT)


def _array(column: nw.Series[Any]) -> NDArray[Any]:
    """A column of sums, NaN where there is none."""
    return column.fill_null(math.nan).to_numpy() if column.null_count() else column.to_numpy()
