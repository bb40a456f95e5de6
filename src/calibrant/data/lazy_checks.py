"""What may be wrong with a lazy frame: its columns, its labels, its rows; and the words for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from calibrant.data.doubles import first_row, is_nan
from calibrant.data.grouped_sums import segment_keys
from calibrant.data.labels import read_labels, spelled_apart
from calibrant.data.naming import segment_names, unknown_column
from calibrant.data.to_numpy import is_missing, plain
from calibrant.errors import InputError, ParameterError, how_many

CellsOption = int | Literal["auto", "exact"]
Run = Callable[[Callable[[], Any]], Any]

#: rows that are looked at first to learn the labels, and labels that are fetched before giving up
HEAD, MANY = 10_000, 1_000
#: the fewest cells that are worth it, and the most
FEW, LOTS = 16, 2**26


class BadRowsError(Exception):
    """Some row has no usable score, label or weight; which one is found out afterwards."""


class Names(NamedTuple):
    """The columns that are read; several of segments are a tuple, from coarse to fine."""

    score: str
    label: str
    weight: str | None = None
    segment: str | tuple[str, ...] | None = None
    raw: str | None = None

    @property
    def segments(self) -> tuple[str, ...]:
        """The columns of segments: none, one or several."""
        return segment_names(self.segment)

    def roles_of_segments(self) -> dict[str, str]:
        """The columns of segments by what they are called among the columns that are read."""
        return dict(zip(segment_keys(len(self.segments)), self.segments, strict=True))

    def roles(self) -> dict[str, str]:
        """The columns by what they are called among those that are read: by their roles."""
        known = {r: n for r, n in self._asdict().items() if n is not None and r != "segment"}
        return known | self.roles_of_segments()

    def facts(self) -> dict[str, Any]:
        """What is worth remembering of them."""
        known = {role: name for role, name in self._asdict().items() if name}
        return {f"{r}_column": list(n) if isinstance(n, tuple) else n for r, n in known.items()}


@dataclass(frozen=True)
class Coding:
    """The two classes in order, the positive one, and the values of the column for each."""

    classes: tuple[Any, Any]
    pos_label: Any
    negative: tuple[Any, ...]
    positive: tuple[Any, ...]


def refuse_streams(frame: nw.LazyFrame[Any]) -> None:
    """A stream has no end, so that nothing can be known of all its rows."""
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


def check_names(names: Names) -> None:
    """Refuse scores, weights and segments that are the labels: they would tell the answer."""
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
    check_names(names)


# --- labels -------------------------------------------------------------------------------------


def find_coding(
    frame: nw.LazyFrame[Any], column: str, pos_label: Any, classes: Any, run: Run
) -> Coding:
    """The two classes: from the first rows if they show both, else from all; ``column`` is what the
    labels are called in messages."""
    found = distinct_labels(frame.head(HEAD), run)
    if len(found) < 2:
        found = distinct_labels(frame, run)
    if not found:
        refuse_labels(frame, column, run)
    values = [simple_label(value) for value in found]
    return coding_of(found, values, column, pos_label=pos_label, classes=classes)


def distinct_labels(frame: nw.LazyFrame[Any], run: Run) -> list[Any]:
    """The different labels of a frame, `MANY` at most; missing ones are left out."""
    found = run(distinct(frame, "label").head(MANY).collect).get_column("label").to_list()
    return [value for value in found if not is_missing(value)]


def coding_of(
    found: Sequence[Any],
    labels: Sequence[Any],
    column: str,
    *,
    pos_label: Any = None,
    classes: Any = None,
) -> Coding:
    """How a column is read that holds the values ``found``, which stand for the ``labels``.

    >>> coding_of(["no", "yes"], ["no", "yes"], "bought", pos_label="no")
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


def simple_label(label: Any) -> Any:
    """Decimal numbers as the numbers that a file can hold."""
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
        advice = spelled_apart(labels) or (
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


def distinct(frame: nw.LazyFrame[Any], column: str) -> nw.LazyFrame[Any]:
    """The different values of a column; on Spark, which would sort for that, by a GROUP BY."""
    if not frame.implementation.is_spark_like():
        return frame.select(column).unique()
    counted = frame.select(nw.col(column).alias("v")).group_by("v").agg(nw.len().alias("n"))
    return counted.select(nw.col("v").alias(column))


def within(column: nw.Expr, values: Sequence[Any]) -> nw.Expr:
    """Whether a column holds one of a few values."""
    if not values:
        return nw.lit(False)
    return column == values[0] if len(values) == 1 else column.is_in(values)


# --- rows ---------------------------------------------------------------------------------------


def refuse_labels(frame: nw.LazyFrame[Any], column: str, run: Run) -> None:
    """An InputError if labels are missing, or there are no rows at all; ``column`` is what the
    labels are called in messages."""
    label = nw.col("label")
    checks = {"missing": label.is_null()}
    if frame.collect_schema()["label"].is_float():
        checks["NaN"] = is_nan(label.cast(nw.Float64))
    advice = "Drop those rows."
    if not refuse_marked(frame, f"label column {column!r} must be complete", checks, advice, run):
        raise InputError("the frame must hold at least one row, but it is empty (0 rows).")


def refuse_marked(
    frame: nw.LazyFrame[Any], must: str, checks: dict[str, nw.Expr], advice: str, run: Run
) -> int:
    """An InputError if a check marks any row; else how many rows there are."""
    counts, rows = count_rows(frame, checks, run)
    if any(counts.values()):
        raise InputError(f"{must}: {how_many(counts, rows)}. {advice}")
    return rows


def count_rows(
    frame: nw.LazyFrame[Any], flags: Mapping[str, nw.Expr], run: Run
) -> tuple[dict[str, int], int]:
    """For how many rows each flag is true, and how many rows there are; one pass."""
    names = [f"n{i}" for i in range(len(flags))]
    marks = (nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)) for flag in flags.values())
    marked = frame.select(*(mark.alias(name) for mark, name in zip(marks, names, strict=True)))
    sums = [nw.col(name).sum().cast(nw.Float64).alias(name) for name in names]
    asked = marked.select(*sums, nw.len().cast(nw.Float64).alias("rows"))
    *counts, rows = (int(value or 0) for value in first_row(run(asked.collect)))
    return dict(zip(flags, counts, strict=True)), rows
