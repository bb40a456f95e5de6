"""Segments as keys of maps: text or whole numbers, and which of them each row is in."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.to_numpy import to_column
from calibrant.errors import InputError

__all__ = ["JOIN_COLUMNS", "Key", "find_segments", "refuse_columns", "segment_codes", "segment_key"]

Key = str | int
Index = NDArray[np.intp]

#: what to do with several columns of segments
JOIN_COLUMNS = (
    "Join several columns to one, such as country + ' / ' + product: each combination is then a "
    "segment, and one that was not seen gets the map of all rows."
)
#: rows whose keys are looked up at a time, so that few Python objects exist at once
BLOCK = 1 << 18


def segment_key(value: Any) -> Key:
    """A segment's name as a file can hold it: a string or a whole number.

    Booleans are 0 and 1, and floats must be whole (a column of integers with gaps becomes floats).

    >>> segment_key(np.int64(3)), segment_key(3.0), segment_key(True), segment_key("3")
    (3, 3, 1, '3')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise InputError(
        f"segments must be strings or whole numbers, but {value!r} of type {type(value).__name__} "
        "came. Convert them, for example with astype(str)."
    )


def find_segments(segments: Any, known: Mapping[Key, int]) -> Index:
    """The number of each row's segment; ``len(known)`` for a segment that is not known.

    >>> find_segments(["b", 1, "1"], {"b": 0, 1: 1}).tolist()
    [0, 1, 2]
    """
    column = _column(segments)
    codes = np.empty(column.shape, dtype=np.intp)
    for begin in range(0, len(column), BLOCK):
        values = column[begin : begin + BLOCK].tolist()
        # equal values have equal hashes: 1, 1.0 and True are one key, and "1" another
        found = map(known.get, values, repeat(len(known)))
        codes[begin : begin + BLOCK] = np.fromiter(found, dtype=np.intp, count=len(values))
    return codes


def segment_codes(segments: Any) -> tuple[list[Key], Index]:
    """The different segments in the order in which they come, and which of them each row is in.

    >>> keys, codes = segment_codes(np.array([7.0, 3.0, 7.0]))
    >>> keys, codes.tolist()
    ([7, 3], [0, 1, 0])
    """
    column = _column(segments)
    places: dict[Any, int] = {}
    codes = np.empty(column.shape, dtype=np.intp)
    for begin in range(0, len(column), BLOCK):
        values = column[begin : begin + BLOCK].tolist()
        for value in dict.fromkeys(values):
            places.setdefault(value, len(places))
        found = map(places.__getitem__, values)
        codes[begin : begin + BLOCK] = np.fromiter(found, dtype=np.intp, count=len(values))
    return [segment_key(value) for value in places], codes


def _column(segments: Any) -> NDArray[Any]:
    """A column of segments, complete and of kinds that can be keys."""
    refuse_columns(segments)
    column = to_column(segments, "segments")
    if column.ndim != 1:
        raise InputError(
            "segments must name one segment per score (1-d), but their shape is "
            f"{column.shape}. Pass a column. {JOIN_COLUMNS}"
        )
    if column.dtype.kind == "f":
        _check_whole(column)
    elif column.dtype.kind == "O":
        kinds = {type(value): value for value in column.tolist()}
        for value in kinds.values():
            segment_key(value if not isinstance(value, float) else 0)
        if any(issubclass(kind, float) for kind in kinds):
            _check_whole(np.array([v if isinstance(v, float) else 0.0 for v in column.tolist()]))
    elif column.dtype.kind not in "biuU" and len(column):
        segment_key(column[0])
    return column


def refuse_columns(segments: Any) -> None:
    """Refuse a frame of several columns, a list of columns, and a list of tuples."""
    columns = getattr(segments, "column_names", getattr(segments, "columns", ()))
    first = segments[0] if isinstance(segments, (list, tuple)) and len(segments) else ""
    several = hasattr(first, "__len__") and not isinstance(first, (str, bytes)) and len(first) > 1
    if several or len(columns) > 1:
        raise InputError(f"segments must be one column, but several came. {JOIN_COLUMNS}")


def _check_whole(column: NDArray[Any]) -> None:
    """Floats must be whole, so that they are equal to the integers they stand for."""
    bad = ~np.isfinite(column) | (column != np.floor(column))
    if not bad.any() and len(column) and np.abs(column).max() > 2.0**53:
        raise InputError(
            f"segments beyond 2⁵³, such as {column[np.abs(column).argmax()]:.0f}, must be integers "
            "or strings, but floats came, which cannot tell them apart. Pass an array of integers."
        )
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"segments must be complete, and strings or whole numbers: {int(bad.sum())} of "
            f"{len(column)} are not (first at row {row}: {column[row]}). Give missing ones a name "
            "of their own, and convert fractions to strings."
        )
