"""The door of segments: a column that says which part each row belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.columns import to_column
from calibrant.data.labels import plain
from calibrant.errors import InputError

__all__ = ["read_segments", "segment_names"]

Index = NDArray[np.intp]


def read_segments(segments: Any) -> tuple[list[Any], Index]:
    """The different segments in order, whatever they are, and which of them each row is in.

    >>> values, codes = read_segments([7, 3, 7])
    >>> values, codes.tolist()
    ([3, 7], [1, 0, 1])
    """
    column = to_column(segments, "segments")
    if column.ndim != 1:
        raise InputError(
            f"segments must be 1-d, one per row, but their shape is {column.shape}. Pass a column."
        )
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise InputError(
            f"segments must not be missing, but {int(np.isnan(column).sum())} of {len(column)} are "
            f"NaN (first at row {int(np.argmax(np.isnan(column)))}). Give them a name of their own."
        )
    if column.dtype.kind != "O":
        found, codes = np.unique(column, return_inverse=True)
        return [plain(value) for value in found], codes.reshape(-1)
    places: dict[Any, int] = {}
    try:
        codes = np.array([places.setdefault(value, len(places)) for value in column.tolist()])
    except TypeError as wrong:
        raise InputError(f"segments must be 1-d, a single value per row: {wrong}.") from wrong
    try:
        order = sorted(places)
    except TypeError:  # values of several kinds
        order = sorted(places, key=lambda value: (type(value).__name__, str(value)))
    rank = np.empty(len(order), dtype=np.intp)
    rank[[places[value] for value in order]] = np.arange(len(order))
    return order, rank[codes]


def segment_names(values: list[Any]) -> list[str]:
    """What the segments are called: their text, or more where that does not tell them apart.

    >>> segment_names([1, "1"]), segment_names([1, 2])
    (['1', "'1'"], ['1', '2'])
    """
    names = [str(value) for value in values]
    return names if len(set(names)) == len(names) else [repr(value) for value in values]
