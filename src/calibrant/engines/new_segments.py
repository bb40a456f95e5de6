"""Rows of segments that a calibrator has not seen: count them, refuse them, or warn of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.data.segment_column import NewSegments
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.errors import InputError

__all__ = ["ON_NEW_SEGMENT", "count_new", "judge_new"]

ON_NEW_SEGMENT = ("warn", "error", "allow")


def count_new(frame: nw.LazyFrame[Any], segment: nw.Expr, keys: Sequence[Any]) -> NewSegments:
    """One aggregate of a column of segments, an expression of the type of the ``keys``."""
    builder = FrameBuilder(frame)
    column = builder.keep(segment)
    values = np.array(keys, dtype=np.int64) if isinstance(keys[0], int) else list(keys)
    known = builder.look_up(column, values, {"known": np.ones(len(keys))})["known"]
    there = ~column.is_null()
    flags = {"n": there & known.is_null(), "rows": there}
    marked = builder.frame.select(
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
    if on_new_segment == "error":
        raise InputError(
            f"{found.words()}. Those it has seen are such as {keys[0]!r}. Correct column "
            f"{column!r}, or let them have the map that is common to all: "
            'on_new_segment="allow".'
        )
    advice = f'Is column {column!r} spelled as in the fit? If so, on_new_segment="allow" says'
    found.warn_of_most(keys, f"{advice} nothing.")
