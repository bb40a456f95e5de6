"""Score tables of lazy frames, by a GROUP BY that runs where the data are.

One code path through narwhals: DuckDB relations, Polars lazy frames, Spark DataFrames, Ibis tables.
Nothing but sums per score, or per cell of scores, comes back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.columns import (
    as_double,
    first_row,
    is_finite,
    is_infinite,
    is_missing,
    is_nan,
    plain,
    segment_columns_of,
    to_narwhals,
    unknown_column,
)
from calibrant.data.door import HEAVIEST, read_labels, spelling_advice
from calibrant.data.score_table import (
    SUMS,
    Cells,
    ScoreTable,
    cells_for,
    segment_cells_for,
    sums_of,
)
from calibrant.errors import InputError, ParameterError, counts_in_words, import_extra

T = TypeVar("T")
Lazy = nw.LazyFrame[Any]
Column = NDArray[Any] | Sequence[str]
Columns = dict[str, NDArray[Any]]
CellsOption = int | Literal["auto", "exact"]
Run = Callable[[Callable[[], Any]], Any]

#: roles of columns that hold numbers
NUMBERS = ("score", "weight", "raw")
#: "auto" keeps all distinct scores up to EXACT; the first SEEN rows may show that there are more
EXACT = 1_000_000
SEEN = EXACT + EXACT // 4


def lazy_frame(frame: Any) -> Lazy | None:
    """Any frame as a lazy frame of narwhals; None for what is no frame."""
    if isinstance(frame, (str, bytes, np.ndarray, list, tuple, ScoreTable)):
        return None
    wrapped = to_narwhals(frame)
    return wrapped.lazy() if isinstance(wrapped, (nw.DataFrame, nw.LazyFrame)) else None


def frame_beside_label(frame: Any) -> Lazy:
    """The lazy frame that came beside ``label=``; anything but a frame is refused."""
    lazy = lazy_frame(frame)
    if lazy is None:
        raise InputError(
            "label names a column, so y must be a frame (DuckDB, Polars, Spark, Ibis, pandas, "
            f"Arrow), but {type(frame).__name__} came. Pass a frame, or leave label out."
        )
    return lazy


def read_lazy(
    frame: Lazy,
    names: Names,
    *,
    pos_label: Any = None,
    classes: Any = None,
    run: Run = lambda ask: ask(),
) -> LazyRows:
    """The rows of a lazy frame with these columns, which are checked, as are the labels.

    ``run`` is called with each query, for a caller who wants to watch it.
    """
    refuse_streams(frame)
    source = columns_by_role(frame, names)
    found = distinct_labels(source.head(HEAD), run)
    if len(found) < 2:  # the first rows do not show both classes
        found = distinct_labels(source, run)
    if not found:
        refuse_labels(source, names.label, run)
    labels = [json_number(value) for value in found]
    coding = make_coding(found, labels, names.label, pos_label=pos_label, classes=classes)
    return LazyRows(source, names, coding, run, explains=True)


def columns_by_role(frame: Lazy, names: Names) -> Lazy:
    """The frame's columns, checked and renamed to their roles. Scores and weights become
    doubles."""
    check_columns(frame.collect_schema(), names)
    frame, called = with_safe_names(frame)
    columns = (
        (as_double(frame, called[name]) if role in NUMBERS else nw.col(called[name])).alias(role)
        for role, name in names.roles().items()
    )
    return frame.select(*columns)


@dataclass(frozen=True)
class LazyRows:
    """Rows of (score, label, weight) in an engine, and the queries that sum them.

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

    source: Lazy
    names: Names
    coding: Coding
    run: Run
    explains: bool = False
    score: str = "score"
    bare: bool = False

    # --- rows as columns ------------------------------------------------------------------------

    def rows(self, *others: nw.Expr) -> Lazy:
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

    def coded(self, *others: nw.Expr) -> Lazy:
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
        """An expression: 1 for positives, 0 for negatives, NULL for other labels."""
        is_negative, is_positive = self._classes()
        known = nw.when(is_positive).then(1).otherwise(0)  # whole numbers: pandas needs no others
        return nw.when(is_positive | is_negative).then(known)

    def _classes(self) -> tuple[nw.Expr, nw.Expr]:
        """Two expressions: whether a row is negative, and whether it is positive."""
        label = nw.col("label")
        return is_one_of(label, self.coding.negative), is_one_of(label, self.coding.positive)

    def sums(self) -> dict[str, nw.Expr]:
        """Expressions to group by: Σw and Σw² of each class, and the number of rows.

        They are made of columns alone, since pandas and Arrow tables cannot group by more.
        """
        sums = {"negative": nw.col("w0").sum(), "positive": nw.col("w1").sum()}
        if self.names.weight and not self.bare:
            squares = {"negative_sq": nw.col("q0").sum(), "positive_sq": nw.col("q1").sum()}
            sums |= {**squares, "rows": nw.len()}
        return sums

    def mean_row_weight(self) -> float:
        """Σw²/Σw, the unit in which importance weights are numbers of rows; one pass."""
        if not self.names.weight:
            return 1.0
        squares, total = nw.col("q0").sum() + nw.col("q1").sum(), nw.col("w0") + nw.col("w1")
        found = first_row(self.fetch(self.rows().select(squares=squares, total=total.sum())))
        return float(found[0]) / float(found[1])

    def score_and_raw(self) -> tuple[LazyRows, LazyRows | None]:
        """The rows with their score; and with the raw score in its place, where there is one."""
        names = self.names._replace(raw=None)
        rows = replace(self, names=names)
        if self.names.raw is None:
            return rows, None
        return rows, replace(rows, names=names._replace(score=self.names.raw), score="raw")

    @property
    def keys(self) -> list[str]:
        """The columns of segments, which come first in a GROUP BY."""
        return segment_keys(len(self.names.segments))

    def fetch(self, frame: Lazy) -> nw.DataFrame[Any]:
        """The result of a query, as a frame in memory."""
        return self.run(frame.collect)  # type: ignore[no-any-return]

    def checked(self, ask: Callable[[], T]) -> T:
        """The result of a query. If it fails because of wrong rows, an InputError says which are
        wrong."""
        try:
            return ask()
        except BadRowsError:
            if self.explains:
                self.refuse()
            raise

    def refuse(self) -> None:
        """Raise the InputError that says what is wrong with the rows, after a query failed."""
        names, score, weight = self.names, nw.col(self.score), nw.col("weight")
        checks = {
            "missing": score.is_null(),
            "NaN": is_nan(score),
            "infinite": is_infinite(score),
        }
        must = f"score column {names.score!r} must be finite"
        refuse_flagged(self.source, must, checks, "Drop or impute them first.", self.run)
        if names.weight:
            checks = {
                "missing": weight.is_null(),
                "NaN": is_nan(weight),
                "negative": weight < 0.0,
                f"above {HEAVIEST:g}": (weight > HEAVIEST) & ~is_nan(weight),  # in SQL NaN is above
            }
            must = f"weight column {names.weight!r} must be from 0 to {HEAVIEST:g}"
            refuse_flagged(self.source, must, checks, "Correct or drop those rows.", self.run)
        refuse_labels(self.source, names.label, self.run)
        found = [json_number(value) for value in distinct_labels(self.source, self.run)]
        refuse_classes(found, names.label, known=True)
        read_labels(found, classes=self.coding.classes)

    # --- grouping -------------------------------------------------------------------------------

    def grouped(
        self, cells: CellsOption = "auto", count: Callable[[float], int] = cells_for
    ) -> tuple[Cells | None, Columns]:
        """The cells that rows are grouped by (None: grouped by score), and the sums of each group.

        With "auto", rows are grouped by score if there are few scores. Otherwise there are as many
        cells as ``count`` gives for the number of rows.
        """
        found = self.checked(lambda: self.by_score_or_cells(cells, count))
        if not isinstance(found, Cells):
            return None, found
        (best,) = run_steps((self, zoomed(found, SumsByCell)))
        return best

    def by_score_or_cells(
        self, cells: CellsOption, count: Callable[[float], int]
    ) -> Columns | Cells:
        """The sums of each score where there are few scores; else the first cells to group by."""
        check_cells(cells)
        if cells == "exact":
            return self.by_score()
        if cells != "auto":
            return self._cells(lambda rows: int(cells))
        first = distinct_frame(self.source.head(SEEN), self.score)
        if self.fetch(first.select(n=nw.len())).item() <= EXACT:
            exact = self.by_score(EXACT)
            if len(exact["x"]) <= EXACT:
                return exact
        if not self.names.segment:
            return self._cells(count)
        segments = self.source.group_by(*self.keys).agg(nw.len().alias("n"))
        number = self.fetch(segments.select(n=nw.len())).item()
        return self._cells(lambda rows: segment_cells_for(number))

    def by_score(self, most: int | None = None) -> Columns:
        """The sums of each score (and segment). If there are more than ``most`` scores, only their
        number."""
        return self.group(self.rows(), [*self.keys, "x"], self.sums(), most)

    def by_key(
        self,
        rows: Lazy,
        moment: tuple[str, str] = ("x", "moment"),
        others: Sequence[str] = (),
    ) -> Columns:
        """Sums of `coded` rows, and their lowest and highest score, for each value of a column k.

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
        frame: Lazy,
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
        columns = {}
        for column in found.iter_columns():
            complete = column.fill_null(math.nan) if column.null_count() else column
            columns[column.name] = complete.to_numpy()
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

    def extent(self) -> tuple[int, float, float]:
        """The number of rows, the smallest score and the largest score, found in one pass."""
        score = nw.col(self.score)
        asked = self.source.select(low=score.min(), high=score.max(), rows=nw.len())
        low, high, rows = first_row(self.fetch(asked))
        if rows and not all(end is not None and math.isfinite(end) for end in (low, high)):
            raise BadRowsError
        return int(rows), low or 0.0, high or 0.0

    def _cells(self, count: Callable[[int], int]) -> Cells:
        """As many cells as ``count`` gives for the number of rows, around their scores."""
        rows, low, high = self.extent()
        wanted, score = count(rows), nw.col(self.score)
        if low >= 0.0 and high <= 1.0:
            return Cells(wanted)
        with np.errstate(over="ignore", invalid="ignore"):  # of frames in memory
            moments = self.source.select(mean=score.mean(), spread=score.std())
            centre, spread = first_row(self.fetch(moments))
        if centre is None or spread is None or not 0.0 < spread < math.inf:
            centre, spread = low / 2 + high / 2, high / 2 - low / 2
        return Cells(wanted, centre, max(spread, 1e-300))


# --- Columns of a lazy frame: their names, and what may be wrong with them ------------------------


#: rows that are looked at first to learn the labels, and labels that are fetched before giving up
HEAD, MANY = 10_000, 1_000
#: the fewest cells that are worth it, and the most
FEW, LOTS = 16, 2**26


class BadRowsError(Exception):
    """Some row has no usable score, label or weight. Which one is found by further queries."""


class Names(NamedTuple):
    """The names of the columns that are read; several of segments are a tuple, coarse to fine."""

    score: str
    label: str
    weight: str | None = None
    segment: str | tuple[str, ...] | None = None
    raw: str | None = None

    @property
    def segments(self) -> tuple[str, ...]:
        """The columns of segments: none, one or several."""
        return segment_columns_of(self.segment)

    def roles(self) -> dict[str, str]:
        """The names of the columns by role: score, label, weight, raw, g1, g2, …"""
        known = {r: n for r, n in self._asdict().items() if n is not None and r != "segment"}
        return known | dict(zip(segment_keys(len(self.segments)), self.segments, strict=True))

    def facts(self) -> dict[str, Any]:
        """The names as facts for the provenance of a fit."""
        known = {role: name for role, name in self._asdict().items() if name}
        return {f"{r}_column": list(n) if isinstance(n, tuple) else n for r, n in known.items()}


@dataclass(frozen=True)
class Coding:
    """The two classes in ascending order, the positive class, and the values in the column that
    stand for each."""

    classes: tuple[Any, Any]
    pos_label: Any
    negative: tuple[Any, ...]
    positive: tuple[Any, ...]


def refuse_streams(frame: Lazy) -> None:
    """Refuse a stream, which has no end: nothing can be said of all its rows."""
    if getattr(frame.to_native(), "isStreaming", False) is True:
        raise InputError(
            "the frame must have an end, but it is a stream. Take a batch of it to fit and to "
            'measure. Only add_probabilities works on a stream, with on_missing="null" and '
            'on_range="allow".'
        )


def check_cells(cells: Any) -> None:
    """Refuse anything but "auto", "exact" or an even number of cells."""
    whole = isinstance(cells, Integral) and not isinstance(cells, (bool, np.bool_))
    if whole and FEW <= cells <= LOTS and cells % 2 == 0:
        return
    if not isinstance(cells, str) or cells not in ("auto", "exact"):
        raise ParameterError(
            f'cells must be "auto", "exact" or an even number from {FEW} to {LOTS:,}, but '
            f"{cells!r} came."
        )


def check_label_apart(names: Names) -> None:
    """Refuse scores, weights and segments that are the column of labels."""
    if names.label in names.segments:
        raise InputError(
            f"segments must be known before the outcome, but {names.label!r} is the column of "
            "labels. Pick another column of segments."
        )
    for role in ("score", "weight", "raw"):
        if getattr(names, role) == names.label:
            raise InputError(
                f"{role} and label must be different columns, but both are {names.label!r}. Name "
                "the column that holds each."
            )


def check_columns(schema: nw.Schema, names: Names) -> None:
    """Refuse columns that are not there, cannot be numbers, or are the labels as well."""
    given = [(role, getattr(names, role)) for role in ("score", "label", "weight", "raw")]
    for role, name in given + [("segment", name) for name in names.segments]:
        if name is None and role in ("weight", "raw"):
            continue
        if not isinstance(name, str):
            raise InputError(f"{role} must be the name of a column, but {name!r} came.")
        if name not in schema.names():
            raise InputError(unknown_column(name, role, schema.names(), "the frame"))
        kind = schema[name]
        if role in ("score", "weight", "raw") and not (kind.is_numeric() or str(kind) == "Boolean"):
            raise InputError(
                f"{role} column {name!r} must be numbers, but its type is {kind}. Pick another "
                "column or cast it."
            )
        if role == "segment" and (kind.is_nested() or kind.is_float() or kind.is_decimal()):
            raise InputError(
                f"segment column {name!r} must hold words or whole numbers, but its type is "
                f"{kind}. Pick another column or cast it."
            )
        if kind.is_nested():
            raise InputError(
                f"{role} column {name!r} must hold plain values, but its type is {kind}."
            )
    check_label_apart(names)


# --- Labels: the two classes, and what may be wrong with them -------------------------------------


def distinct_labels(frame: Lazy, run: Run) -> list[Any]:
    """The different labels of a frame, `MANY` at most; missing ones are left out."""
    found = run(distinct_frame(frame, "label").head(MANY).collect).get_column("label").to_list()
    return [value for value in found if not is_missing(value)]


def make_coding(
    found: Sequence[Any],
    labels: Sequence[Any],
    column: str,
    *,
    pos_label: Any = None,
    classes: Any = None,
) -> Coding:
    """The coding of a column that holds the values ``found``, which stand for the ``labels``.

    >>> make_coding(["no", "yes"], ["no", "yes"], "bought", pos_label="no")
    Coding(classes=('no', 'yes'), pos_label='no', negative=('yes',), positive=('no',))
    """
    refuse_classes(labels, column, known=classes is not None)
    coded = read_labels(labels, pos_label=pos_label, classes=classes)
    low, high = (plain(value) for value in coded.classes)
    if any(isinstance(label, int) and label not in (low, high) for label in labels):
        raise InputError(
            f"label column {column!r} must hold labels of at most 63 bits, but "
            f"{' and '.join(map(repr, dict.fromkeys(labels)))} came. Convert them to text."
        )
    sides: dict[bool, list[Any]] = {False: [], True: []}
    for value, positive in zip(found, coded.positive, strict=True):
        sides[bool(positive)].append(value)
    return Coding((low, high), plain(coded.pos_label), tuple(sides[False]), tuple(sides[True]))


def json_number(label: Any) -> Any:
    """The label, as an int or a float if it is a decimal number."""
    if not isinstance(label, Decimal) or not label.is_finite():
        return label
    return int(label) if label == label.to_integral_value() else float(label)


def refuse_nested(labels: Iterable[Any], column: str) -> None:
    """Refuse labels that hold other values."""
    for label in labels:
        if isinstance(label, (dict, list, tuple, np.ndarray)):
            raise InputError(f"label column {column!r} must hold plain values, but {label!r} came.")


def refuse_soft(
    labels: Sequence[Any], column: str, *, must: str = "classes", advice: str = "Pick another."
) -> None:
    """Refuse labels that are fractions."""
    soft = [v for v in labels if isinstance(v, float) and math.isfinite(v) and v != math.floor(v)]
    if soft:
        raise InputError(
            f"label column {column!r} must hold {must}, but fractions (soft labels) came, such as "
            f"{min(soft)!r}. Is it the score column? {advice}"
        )


def refuse_classes(labels: Sequence[Any], column: str, *, known: bool = False) -> None:
    """Refuse the labels of a column that are not two classes; one will do if its partner is
    ``known``."""
    refuse_nested(labels, column)
    refuse_soft(
        labels,
        column,
        must="two classes",
        advice="Labels that are probabilities are taken in memory: ScoreTable.from_soft_labels.",
    )
    labels = list(dict.fromkeys(labels))
    if len(labels) > 2:
        shown = ", ".join(sorted(map(repr, labels))[:5])
        more = ", ..." if len(labels) > 5 else ""
        advice = spelling_advice(labels) or (
            "Keep two, or make a column that says whether a row is of the class of interest; with "
            "a column of scores for each class, name all of those."
        )
        raise InputError(
            f"label column {column!r} must hold two classes, but at least {len(labels)} came: "
            f"{shown}{more}. {advice}"
        )
    alone = len(labels) == 1 and not known
    if alone and not (isinstance(labels[0], (bool, int, float)) and labels[0] in (0, 1, -1)):
        raise InputError(
            f"label column {column!r} must hold two classes, but only one class came: "
            f"{labels[0]!r}. Nothing can be learned of the other class: add rows of it."
        )


def distinct_frame(frame: Lazy, column: str) -> Lazy:
    """A frame of the distinct values of a column.

    On Spark and Ibis it is a GROUP BY: Spark would sort otherwise, and some engines of Ibis lack
    what narwhals would use.
    """
    if not (frame.implementation.is_spark_like() or frame.implementation.is_ibis()):
        return frame.select(column).unique()
    counted = frame.select(nw.col(column).alias("v")).group_by("v").agg(nw.len().alias("n"))
    return counted.select(nw.col("v").alias(column))


def is_one_of(column: nw.Expr, values: Sequence[Any]) -> nw.Expr:
    """An expression: whether a column holds one of these values."""
    if not values:
        return nw.lit(False)
    return column == values[0] if len(values) == 1 else column.is_in(values)


# --- Rows that are wrong, counted -----------------------------------------------------------------


def refuse_labels(frame: Lazy, column: str, run: Run) -> None:
    """Refuse missing labels, and a frame without rows; errors call the labels ``column``."""
    label = nw.col("label")
    checks = {"missing": label.is_null()}
    if frame.collect_schema()["label"].is_float():
        checks["NaN"] = is_nan(label.cast(nw.Float64))
    advice = "Drop those rows."
    if not refuse_flagged(frame, f"label column {column!r} must be complete", checks, advice, run):
        raise InputError("the frame must hold at least one row, but it is empty (0 rows).")


def refuse_flagged(
    frame: Lazy, must: str, checks: dict[str, nw.Expr], advice: str, run: Run
) -> int:
    """Refuse rows that a check flags, with an error that begins with ``must``. Returns the number
    of rows."""
    counts, rows = count_rows(frame, checks, run)
    if any(counts.values()):
        raise InputError(f"{must}: {counts_in_words(counts, rows)}. {advice}")
    return rows


def count_rows(frame: Lazy, flags: Mapping[str, nw.Expr], run: Run) -> tuple[dict[str, int], int]:
    """For each flag the number of rows where it is true, and the number of all rows, in one
    pass."""
    names = [f"n{i}" for i in range(len(flags))]
    marks = (nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)) for flag in flags.values())
    marked = frame.select(*(mark.alias(name) for mark, name in zip(marks, names, strict=True)))
    sums = [nw.col(name).sum().cast(nw.Float64).alias(name) for name in names]
    asked = marked.select(*sums, nw.len().cast(nw.Float64).alias("rows"))
    *counts, rows = (int(value or 0) for value in first_row(run(asked.collect)))
    return dict(zip(flags, counts, strict=True)), rows


# --- Operations that differ between engines: names, functions, tables from memory, joins ----------


#: engines whose frames are lazy by nature
LAZY = {
    nw.Implementation.DUCKDB,
    nw.Implementation.POLARS,
    nw.Implementation.PYSPARK,
    nw.Implementation.PYSPARK_CONNECT,
    nw.Implementation.IBIS,
    nw.Implementation.DASK,
}
#: names that mean nothing else to any engine
PLAIN = re.compile(r"\w[\w \-]*")


def with_safe_names(frame: Lazy) -> tuple[Lazy, dict[str, str]]:
    """The frame with names that every engine reads alike, and the new name for each old one.

    Polars takes ``^x$`` for a pattern, DuckDB ``*`` for all columns, Spark a dot for the way into a
    structure, and most of them ``S`` and ``s`` for the same.

    >>> import polars as pl
    >>> frame = nw.from_native(pl.LazyFrame({"*": [1], "s": [2]}))
    >>> with_safe_names(frame)[1]
    {'*': 'c0', 's': 'c1'}
    """
    names = frame.collect_schema().names()
    alike = len({str(name).lower() for name in names}) < len(names)
    if not alike and all(isinstance(name, str) and PLAIN.fullmatch(name) for name in names):
        return frame, {name: name for name in names}
    plain = [f"c{i}" for i in range(len(names))]
    return rename_columns(frame, plain), dict(zip(names, plain, strict=True))


def rename_columns(frame: Lazy, names: Sequence[str]) -> Lazy:
    """The frame with these names for its columns, in their order."""
    native: Any = frame.to_native()
    if frame.implementation.is_spark_like():
        return _to_lazy(native.toDF(*names))
    if frame.implementation.is_duckdb():
        new = (name.replace('"', '""') for name in names)
        places = (f'#{i} AS "{name}"' for i, name in enumerate(new, start=1))
        return _to_lazy(native.project(", ".join(places)))
    old = frame.collect_schema().names()
    if frame.implementation.is_ibis():
        return _to_lazy(native.rename(dict(zip(names, old, strict=True))))
    return frame.rename(dict(zip(old, names, strict=True)))


def with_ln_or_sqrt(frame: Lazy, function: str, into: Mapping[str, str]) -> Lazy:
    """The frame with ln or sqrt of columns of positive numbers (or 0, for sqrt).

    ``into`` gives the column of each new name.

    The functions of DuckDB and Ibis are called themselves: narwhals tests for negative numbers
    first, whose result is a NaN that SQL Server and MySQL do not know, and divides two logarithms
    to the base 10 on DuckDB, slower and less exact.
    """
    native: Any = frame.to_native()
    if frame.implementation.is_ibis():
        made = {name: getattr(native[column], function)() for column, name in into.items()}
        return _to_lazy(native.mutate(**made))
    if not frame.implementation.is_duckdb():
        own = {"ln": nw.Expr.log, "sqrt": nw.Expr.sqrt}[function]
        return frame.with_columns(
            *(own(nw.col(column)).alias(name) for column, name in into.items())
        )
    duckdb = import_extra("duckdb", extra="cli")
    values = (
        duckdb.FunctionExpression(function, duckdb.ColumnExpression(column)).alias(name)
        for column, name in into.items()
    )
    return _to_lazy(native.select(duckdb.StarExpression(), *values))


def to_backend(table: Mapping[str, Column], like: Lazy) -> Lazy:
    """Columns in memory as a lazy frame of the same engine (and session) as another.

    On DuckDB it is a scan of the Arrow table on the relation's own connection, the only one it
    joins with: the relation keeps the table alive, and nothing is left in the catalog.

    >>> import numpy as np
    >>> import polars as pl
    >>> like = nw.from_native(pl.LazyFrame({"a": [1]}))
    >>> to_backend({"b": np.array([2.0])}, like).collect().to_dict(as_series=False)
    {'b': [2.0]}
    """
    native: Any = like.to_native()
    if like.implementation not in LAZY:  # a table in memory that was made lazy
        return nw.from_dict(dict(table), backend=like.implementation).lazy()
    if like.implementation.is_dask():
        return nw.from_dict(dict(table), backend="pandas").lazy("dask")
    if like.implementation.is_polars():
        return _to_lazy(import_extra("polars", extra="cli").DataFrame(dict(table)).lazy())
    pyarrow = import_extra("pyarrow", extra="cli")
    arrow = pyarrow.table({name: pyarrow.array(column) for name, column in table.items()})
    if like.implementation.is_duckdb():
        __calibrant_pieces_of_a_map = arrow  # found by its name, as DuckDB finds variables
        query = "SELECT * FROM __calibrant_pieces_of_a_map"
        return _to_lazy(native.query("__calibrant_frame", query))
    if like.implementation.is_ibis():
        return _to_lazy(import_extra("ibis", extra="cli").memtable(arrow))
    return _to_lazy(native.sparkSession.createDataFrame(arrow))


def _to_lazy(native: Any) -> Lazy:
    """An engine's own frame as a lazy frame of narwhals."""
    opened: Lazy = nw.from_native(native)
    return opened


def left_join(frame: Lazy, table: Mapping[str, Column], on: str) -> Lazy:
    """The frame with the columns of a small table joined on; NULL where the table has no row."""
    other = to_backend(table, frame)
    rows: Any = frame.to_native()
    small: Any = other.to_native()
    if frame.implementation.is_polars():  # which keeps the order of rows if it is asked to
        return _to_lazy(rows.join(small, on=on, how="left", maintain_order="left"))
    if frame.implementation.is_spark_like():  # to every executor, instead of sorting the rows
        other = _to_lazy(small.hint("broadcast"))
    return frame.join(other, on=on, how="left")


# --- Rows that an engine has grouped: their sums by score or by cell ------------------------------


#: how often cells may be narrowed to a crowded one
ZOOMS = 4
#: how the two classes of a cell are put together: columns that become one for each class (APART),
#: and columns of which both classes' values become one (REDUCED)
APART = {"weight": SUMS[:2], "square": SUMS[2:], "d": ("d0", "d1")}
REDUCED = {"low": np.fmin, "high": np.fmax} | dict.fromkeys(
    ("moment", "rows", "e", "loss", "part"), np.add
)


def row_count(found: Columns) -> int:
    """The number of rows that were grouped."""
    counts = ("rows",) if "rows" in found else SUMS[:2]
    return int(sum(found[name].sum() for name in counts))


def grouped_table(cells: Cells | None, found: Columns) -> ScoreTable:
    """The score table of rows grouped by score (``cells`` is None) or by cell."""
    if cells is None:
        return ScoreTable.from_counts(found["x"], *sums_of(found))
    return cells.table(found)


def grouped_tables(cells: Cells | None, found: Columns) -> dict[Any, ScoreTable]:
    """The score table of each segment, by segment. Segments of several columns are tuples."""
    names = _segments_in(found)
    new = _flag_new_groups(found, names)
    starts = np.flatnonzero(new)
    values = [[plain(value) for value in found[name][starts]] for name in names]
    keys = values[0] if len(values) == 1 else zip(*values, strict=True)
    parts = zip(starts, np.append(starts[1:], len(new)), strict=True)
    columns = ({name: column[a:b] for name, column in found.items()} for a, b in parts)
    return {key: grouped_table(cells, part) for key, part in zip(keys, columns, strict=True)}


def segment_keys(count: int) -> list[str]:
    """The names of the columns of segments in grouped rows.

    >>> segment_keys(2)
    ['g1', 'g2']
    """
    return [f"g{i}" for i in range(1, count + 1)]


def _segments_in(found: Columns) -> list[str]:
    """The columns of segments among these columns."""
    return [name for name in segment_keys(len(found)) if name in found]


def _flag_new_groups(found: Columns, names: Sequence[str]) -> Flags:
    """Flags of the groups that differ from the previous group in at least one of these columns."""
    new = np.zeros(len(found[names[0]]), dtype=bool)
    new[:1] = True
    for name in names:
        new[1:] |= found[name][1:] != found[name][:-1]
    return new


def side_by_side(found: Columns) -> Columns:
    """Sums by cell, with a column for each class, from groups whose key is 2 · cell + class."""
    key = found["k"].astype(np.int64)
    cell, positive = key >> 1, (key & 1).astype(bool)
    segments = _segments_in(found)
    new = _flag_new_groups({**found, "k": cell}, ["k", *segments])
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


# --- Questions that are asked of rows, and several of them answered in one pass -------------------
# Most engines answer each question by a GROUP BY where the rows are. An engine that works in this
# process can hand over its rows instead, a batch at a time, and then one pass answers what is asked
# of several columns: a few NumPy sums per batch cost less than a GROUP BY of many cells.


#: up to this many cells, sums are made in this process, in arrays with a place for each cell
FEW_CELLS = 2**20
#: rows of a batch: small enough that a few columns of it stay in the processor's cache
BATCH = 2**15


class Question:
    """A question about all rows, such as sums by cell.

    The engine answers it by a query (`ask`). Or its rows are read in batches and added up here
    (`add`), and `found` gives the answer.
    """

    cells: Cells

    @property
    def few(self) -> bool:
        """Whether the answer is small enough to be added up in this process."""
        return self.cells.count <= FEW_CELLS

    def ask(self, rows: LazyRows) -> Columns:
        """The answer, by a query of the engine."""
        raise NotImplementedError

    def add(self, x: Array, y: NDArray[np.int64], w: Array | None) -> None:
        """Add a batch of rows: finite scores, labels 0 and 1, and weights, if there are any."""
        raise NotImplementedError

    def found(self) -> Columns | None:
        """The answer for all rows that were added; None if the engine must be asked instead."""
        raise NotImplementedError


@dataclass
class SumsByCell(Question):
    """A question: the sums of each cell, its smallest and largest score, and Σw·score.

    Only the engine answers it.
    """

    cells: Cells
    few = False

    def ask(self, rows: LazyRows) -> Columns:
        return rows.by_key(self.cells.add_to(rows.coded(), "x", "k"))


#: a generator that yields one question after the other, and is sent the answer to each
Steps = Generator[Question, Columns, T]


def zoomed(cells: Cells, question: Callable[[Cells], Question]) -> Steps[tuple[Cells, Columns]]:
    """Find the cells to group by, and group the rows by them, as steps for `run_steps`.

    If a few far scores crowd all others into one cell, new cells divide that cell. ``question``
    makes the question that groups the rows by given cells.
    """
    asked = question(cells)
    found = yield asked
    for _ in range(ZOOMS):
        closer = asked.cells.closer(found)
        if closer is None:
            break
        narrow = question(closer)
        again = yield narrow
        if narrow.cells.crowd(again) > 0.5 * asked.cells.crowd(found):
            break
        asked, found = narrow, again
    return asked.cells, found


def run_steps(*asking: tuple[LazyRows, Steps[T]]) -> list[T]:
    """Run several generators of questions side by side, and return the result of each.

    Questions asked at the same time are answered in one pass, if possible. A BadRowsError becomes
    an InputError that says what is wrong with the rows.
    """
    done: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(asking)))
    while answers:
        asked: dict[int, tuple[LazyRows, Question]] = {}
        for i, answer in answers.items():
            rows, steps = asking[i]
            try:
                asked[i] = rows, rows.checked(partial(steps.send, answer))
            except StopIteration as end:
                done[i] = end.value
        answers = dict(zip(asked, _answers(list(asked.values())), strict=True))
    return [done[i] for i in range(len(asking))]


def _answers(asked: Sequence[tuple[LazyRows, Question]]) -> list[Columns]:
    """The answers to questions: by one pass over the rows if possible, else by queries of the
    engine.

    One pass is possible if all questions are about the same rows, the engine works in this process,
    and the answers are small. If rows are wrong, the engine is asked as well, since its errors say
    what is wrong.
    """
    read: list[Columns | None] = [None] * len(asked)
    source = asked[0][0].source if asked else None
    if (
        source is not None
        and all(rows.source is source and question.few for rows, question in asked)
        and source.implementation.value in READERS
    ):
        with suppress(BadRowsError):
            asked[0][0].run(partial(_add_all, asked))
            read = [question.found() for _, question in asked]
    return [
        rows.checked(partial(question.ask, rows)) if answer is None else answer
        for (rows, question), answer in zip(asked, read, strict=True)
    ]


def _add_all(asked: Sequence[tuple[LazyRows, Question]]) -> None:
    """Read all rows once, and add each batch to the answers of all questions."""
    rows = asked[0][0]
    columns = [
        nw.col(own.score).cast(nw.Float64).alias(f"x{i}") for i, (own, _) in enumerate(asked)
    ]
    if rows.names.weight:
        columns.append(nw.col("weight").alias("w"))
    frame = rows.source.select(rows.label().cast(nw.Int64).alias("y"), *columns)
    for y, *scores in READERS[frame.implementation.value](frame):
        w = scores.pop() if rows.names.weight else None
        if w is not None and not ((w >= 0.0) & (w <= HEAVIEST)).all():
            raise BadRowsError
        for x, (_, question) in zip(scores, asked, strict=True):
            if not np.isfinite(x).all():
                raise BadRowsError
            question.add(x, y, w)


def _read_duckdb(frame: Lazy) -> Iterator[list[NDArray[Any]]]:
    """The columns of a DuckDB relation, batch by batch."""
    reader = frame.to_native().to_arrow_reader(BATCH)
    try:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:  # Arrow's words for what the engine says better
                raise BadRowsError from error
            if any(column.null_count for column in batch.columns):
                raise BadRowsError
            yield [column.to_numpy() for column in batch.columns]
    finally:
        reader.close()


#: engines that work in this process, and how their rows come, by narwhals' name
READERS: dict[str, Callable[[Lazy], Iterator[list[NDArray[Any]]]]] = {"duckdb": _read_duckdb}
