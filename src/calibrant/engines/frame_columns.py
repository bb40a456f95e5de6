"""Columns of a frame: those that scores are read from, and those that probabilities become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.arrays import Array
from calibrant.data.doubles import series_of_doubles
from calibrant.data.naming import unknown_column
from calibrant.data.validation import read_scores
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.backends import any_case
from calibrant.errors import InputError

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def check_columns(frame: Frame, options: ApplyOptions, new: Sequence[str]) -> None:
    """Refuse a frame that lacks a column, has a new one already, or has scores of another type."""
    schema = frame.collect_schema()
    names = schema.names()
    scores, segments = dict.fromkeys(options.scores, "score"), options.segments
    for name, role in (scores | dict.fromkeys(segments, "segment")).items():
        if name not in names:
            raise InputError(unknown_column(name, role, names, "the frame"))
    same = str.lower if any_case(frame) else str
    there = {same(name) for name in names}
    taken = [name for name in new if same(name) in there]
    if taken:
        raise InputError(
            f"the frame already has a column {taken[0]!r}. Give the new "
            f"one{'s' * (len(new) > 1)} another name with into=."
        )
    for name in scores:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise InputError(
                f"score column {name!r} must be numbers, but its type is {schema[name]}. Pick "
                "another column or cast it."
            )


def scores_in_memory(frame: nw.DataFrame[Any], name: str, on_missing: str) -> Array:
    """A column of scores; those that are missing are refused, or are NaN."""
    column = frame.get_column(name)
    if on_missing == "error" and len(column):
        return read_scores(column.to_native(), name=f"score column {name!r}")
    scores: Array = series_of_doubles(column).to_numpy() + 0.0
    return scores


def as_series(frame: nw.DataFrame[Any], name: str, p: Array) -> nw.Series[Any]:
    """Probabilities as a column beside a frame; NULL where they are NaN."""
    made = nw.new_series(name, p, nw.Float64, backend=frame.implementation)
    if not np.isnan(p).any():
        return made
    known = nw.when(~nw.col(name).is_nan()).then(name).alias(name)
    return made.to_frame().select(known).get_column(name)
