"""Rows of segments that a calibrator has not seen: how many there are, and what is said of them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.engines.sheet import Sheet
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level

__all__ = ["ON_NEW_SEGMENT", "NewSegments", "check_on_new_segment", "count_new", "judge_new"]

ON_NEW_SEGMENT = ("warn", "error", "allow")


@dataclass
class NewSegments:
    """How many rows have a segment, how many of these one that was not seen, and one of those."""

    rows: int = 0
    new: int = 0
    example: Any = None

    @property
    def most(self) -> bool:
        """Whether that are more than half of the rows."""
        return 2 * self.new > self.rows

    def words(self) -> str:
        """What to say of them.

        >>> NewSegments(1200, 3, "es").words()
        "3 of 1,200 rows have a segment that the calibrator has not seen, such as 'es'"
        """
        verb = "has" if self.new == 1 else "have"
        return (
            f"{self.new:,} of {self.rows:,} rows {verb} a segment that the calibrator has not "
            f"seen, such as {self.example!r}"
        )

    def look(self, segments: Iterable[Any], known: Collection[Any]) -> None:
        """Count some more rows."""
        values = list(segments)
        new = [value for value in values if value not in known]
        if new:
            self.example = new[0]
        self.new += len(new)
        self.rows += len(values)


def check_on_new_segment(on_new_segment: Any) -> None:
    """Refuse what is no way to treat rows of new segments."""
    if on_new_segment not in ON_NEW_SEGMENT:
        raise ParameterError(
            f"on_new_segment must be one of {ON_NEW_SEGMENT}, but {on_new_segment!r} came."
        )


def count_new(frame: nw.LazyFrame[Any], segment: nw.Expr, keys: Sequence[Any]) -> NewSegments:
    """One aggregate of a column of segments, an expression of the type of the ``keys``."""
    sheet = Sheet(frame)
    column = sheet.keep(segment)
    values = np.array(keys, dtype=np.int64) if isinstance(keys[0], int) else list(keys)
    known = sheet.look_up(column, values, {"known": np.ones(len(keys))})["known"]
    there = ~column.is_null()
    flags = {"n": there & known.is_null(), "rows": there}
    marked = sheet.frame.select(
        *(nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias(n) for n, flag in flags.items()),
        nw.when(flags["n"]).then(column).alias("example"),
    )
    sums = [nw.col(name).sum().cast(nw.Float64).alias(name) for name in flags]
    row = marked.select(*sums, nw.col("example").min().alias("example")).collect().row(0)
    return NewSegments(int(row[1] or 0), int(row[0] or 0), row[2])


def judge_new(found: NewSegments, keys: Sequence[Any], column: str, on_new_segment: str) -> None:
    """Refuse rows of new segments if asked to; warn where they are the most."""
    if not found.new:
        return
    seen = f"Those it has seen are such as {keys[0]!r}"
    if on_new_segment == "error":
        raise InputError(
            f"{found.words()}. {seen}. Correct column {column!r}, or let them have the map that is "
            'common to all: on_new_segment="allow".'
        )
    if found.most:
        warnings.warn(
            f"{found.words()}: they get the map that is common to all. {seen}. Is column "
            f'{column!r} spelled as in the fit? If so, on_new_segment="allow" says nothing.',
            CalibrationWarning,
            stacklevel=caller_level(),
        )
