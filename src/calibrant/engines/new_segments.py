"""Rows of segments that a calibrator has not seen: count them, refuse them, or warn of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.data.doubles import first_row
from calibrant.data.engine_frames import plain_names
from calibrant.data.lazy_checks import refuse_streams
from calibrant.data.segment_column import NewSegments, finest_of
from calibrant.data.to_numpy import is_missing
from calibrant.engines.by_segment import (
    SegmentColumn,
    segment_columns,
    segment_place,
    usable_keys,
)
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.errors import InputError
from calibrant.maps import Map, Segmented

ON_NEW_SEGMENT = ("warn", "error", "allow")


def judge_new(
    map_: Map,
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any],
    columns: Sequence[str],
    on_new_segment: str,
) -> None:
    """Count the rows of new segments; refuse them if asked to, and warn where they are the most."""
    # without any, all have one map, and which were seen is not known
    if not isinstance(map_, Segmented) or not map_.seen or on_new_segment == "allow":
        return
    if isinstance(frame, nw.DataFrame):
        found = NewSegments()
        found.look(_complete(frame, columns), set(map_.seen))
    else:
        refuse_streams(frame)
        frame, called = plain_names(frame)
        found = _count_new(frame, segment_columns(map_, frame, called, columns), map_)
    if not found.new:
        return
    column = " and ".join(map(repr, columns))
    what = "column" if len(columns) == 1 else "columns"
    if on_new_segment == "error":
        raise InputError(
            f"{found.words()}. Those it has seen are such as {finest_of(map_.seen)!r}. Correct "
            f"{what} {column}, or let them have {found.their_map}: "
            'on_new_segment="allow".'
        )
    advice = f"{'Is' if len(columns) == 1 else 'Are'} {what} {column} spelled as in the fit?"
    found.warn_of_most(map_.seen, f'{advice} If so, on_new_segment="allow" says nothing.')


def _complete(frame: nw.DataFrame[Any], segments: Sequence[str]) -> list[Any]:
    """The segments of rows that have one; of several columns as tuples."""
    columns = [frame.get_column(name).to_list() for name in segments]
    if len(columns) == 1:
        return [value for value in columns[0] if not is_missing(value)]
    rows = zip(*columns, strict=True)
    return [row for row in rows if not any(map(is_missing, row))]


def _count_new(
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
    places, values = usable_keys(spelled(map_.values(0)), kind)
    if not places:
        return None
    return builder.look_up(column, values, {"known": np.ones(len(places))})["known"]
