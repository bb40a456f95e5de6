"""Segments of several columns as numbers: a row is followed from column to column.

For targets that look up one value at a time. A segment is a number, and a row that is in it is in a
part of it by the value in the next column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

KeyPath = tuple[str | int, ...]


class ColumnStep(NamedTuple):
    """What the value in one column says.

    Parameters
    ----------
    values : the values that are known in the column; their numbers are their places here
    pairs : numbers of segments of the columns before, times ``len(values)``, plus that of a value
    numbers : the number of the segment that each of the ``pairs`` means
    places : which of the keys that segment has: its own, or that of a coarser segment; the number
        of keys where it has none
    """

    values: list[str | int]
    pairs: list[int]
    numbers: list[int]
    places: list[int]


def column_steps(keys: Sequence[KeyPath]) -> list[ColumnStep]:
    """A step for each column that keys have values in; before the first all rows are in segment 0.

    >>> for step in column_steps([("fr",), ("fr", "card"), ("de", "card")]):
    ...     print(*step)
    ['fr', 'de'] [0, 1] [0, 1] [0, 3]
    ['card'] [0, 1] [0, 1] [1, 2]
    """
    places = {path: i for i, path in enumerate(keys)}
    before: dict[KeyPath, int] = {(): 0}
    steps = []
    for column in range(max(map(len, keys), default=0)):
        long = [path[: column + 1] for path in keys if len(path) > column]
        values = list(dict.fromkeys(path[-1] for path in long))
        at = {value: i for i, value in enumerate(values)}
        here = {path: i for i, path in enumerate(dict.fromkeys(long))}
        pairs = [before[path[:-1]] * len(values) + at[path[-1]] for path in here]
        found = [finest(path, places) for path in here]
        steps.append(ColumnStep(values, pairs, list(here.values()), found))
        before = here
    return steps


def finest(path: KeyPath, places: dict[KeyPath, int]) -> int:
    """The place of the finest segment on a path that has one; how many places there are if none."""
    sizes = range(len(path), 0, -1)
    return next((places[path[:size]] for size in sizes if path[:size] in places), len(places))
