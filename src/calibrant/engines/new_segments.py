"""Rows of segments that a calibrator has not seen: count them, refuse them, or warn of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.data.doubles import first_row
from calibrant.data.segment_column import NewSegments, finest_of
from calibrant.engines.by_segment import SegmentColumn, UsableKeys, segment_place
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.errors import InputError
from calibrant.maps import Segmented

ON_NEW_SEGMENT = ("warn", "error", "allow")


def count_new(
    frame: nw.LazyFrame[Any], segments: Sequence[SegmentColumn], map_: Segmented
) -> NewSegments:
    """One aggregate of the columns of segments."""
    builder = FrameBuilder(frame)
    columns = [builder.keep(column.value) for column in segments]
    given = [column._replace(value=value) for column, value in zip(segments, columns, strict=True)]
    known = _known(given, map_, builder)
    if known is None:
        return NewSegments()
    there = ~columns[0].is_null()
    for column in columns[1:]:
        there = there & ~column.is_null()
    flags = {"n": there & known.is_null(), "rows": there}
    marked = builder.frame.select(
        *(nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias(n) for n, flag in flags.items()),
        nw.when(flags["n"]).then(columns[0]).alias("example"),
    )
    sums = [nw.col(name).sum().cast(nw.Float64).alias(name) for name in flags]
    asked = marked.select(*sums, nw.col("example").min().alias("example"))
    row = first_row(asked.collect())
    found = NewSegments(int(row[1] or 0), int(row[0] or 0), row[2])
    if found.new and len(columns) > 1:  # the least values of two columns need not be of one row
        some = builder.frame.filter(flags["n"]).select(*columns).head(1).collect()
        found.example = first_row(some)
    return found


def _known(
    segments: Sequence[SegmentColumn], map_: Segmented, builder: FrameBuilder
) -> nw.Expr | None:
    """A number where the segment of a row has been seen, in all of its columns, else NULL; None
    where no column can hold what was seen."""
    if len(segments) > 1:
        whole = [key for key in map_.seen if isinstance(key, tuple) and len(key) == map_.columns]
        return segment_place(whole, segments, builder, whole_only=True)
    [(column, kind, spelled)] = segments
    usable = UsableKeys.of(spelled(map_.values(0)), kind)
    if not usable.places:
        return None
    return builder.look_up(column, usable.values, {"known": np.ones(len(usable.places))})["known"]


def judge_new(
    found: NewSegments, seen: Sequence[Any], columns: Sequence[str], on_new_segment: str
) -> None:
    """Refuse rows of new segments if asked to; warn where they are the most."""
    if not found.new:
        return
    column = " and ".join(map(repr, columns))
    what = "column" if len(columns) == 1 else "columns"
    if on_new_segment == "error":
        raise InputError(
            f"{found.words()}. Those it has seen are such as {finest_of(seen)!r}. Correct {what} "
            f"{column}, or let them have {found.their_map}: "
            'on_new_segment="allow".'
        )
    advice = f"{'Is' if len(columns) == 1 else 'Are'} {what} {column} spelled as in the fit?"
    found.warn_of_most(seen, f'{advice} If so, on_new_segment="allow" says nothing.')
