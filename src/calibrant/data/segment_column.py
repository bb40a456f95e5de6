"""The door of segments: a column that says which part each row belongs to."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.array_types import Index
from calibrant.data.segment_keys import combined, segment_columns
from calibrant.data.to_numpy import plain, to_column
from calibrant.errors import CalibrationWarning, InputError, caller_level


def read_segments(segments: Any) -> tuple[list[Any], Index]:
    """The different segments in order, whatever they are, and which of them each row is in.

    Those of several columns are tuples.

    >>> values, codes = read_segments([7, 3, 7])
    >>> values, codes.tolist()
    ([3, 7], [1, 0, 1])
    >>> read_segments([["fr", "de", "fr"], [1, 1, 2]])[0]
    [('de', 1), ('fr', 1), ('fr', 2)]
    """
    columns = [_read_column(column) for column in segment_columns(segments)]
    if len(columns) == 1:
        return columns[0]
    paths, _, codes = combined(columns)
    return paths, codes


def _read_column(segments: Any) -> tuple[list[Any], Index]:
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
    >>> segment_names([("fr", "card"), ("fr", "loan")])
    ['fr / card', 'fr / loan']
    """
    names = [" / ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values]
    return names if len(set(names)) == len(names) else [repr(value) for value in values]


def finest_of(seen: Sequence[Any]) -> Any:
    """A known segment to show: with several columns the first that has a value in all of them.

    >>> finest_of([("fr",), ("fr", "card")]), finest_of(["fr", "de"])
    (('fr', 'card'), 'fr')
    """
    return max(seen, key=lambda key: len(key) if isinstance(key, tuple) else 1)


@dataclass
class NewSegments:
    """How many rows have a segment, how many of these one that was not seen, and one of those."""

    rows: int = 0
    new: int = 0
    example: Any = None

    @property
    def most(self) -> bool:
        """Whether these are more than half of the rows."""
        return 2 * self.new > self.rows

    @property
    def their_map(self) -> str:
        """Which map they get."""
        if isinstance(self.example, tuple):
            return "the map of the coarser segment that it has seen, or that of all rows"
        return "the map of all rows"

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

    def warn_of_most(self, seen: Sequence[Any], advice: str) -> None:
        """Warn, at the user's line, if most rows are of new segments."""
        if self.most:
            warnings.warn(
                f"{self.words()}: they get {self.their_map}. Those it has seen are such as "
                f"{finest_of(seen)!r}. {advice}",
                CalibrationWarning,
                stacklevel=caller_level(),
            )

    def look(self, segments: Iterable[Any], known: Collection[Any]) -> None:
        """Count some more rows."""
        values = list(segments)
        new = [value for value in values if value not in known]
        if new:
            self.example = new[0]
        self.new += len(new)
        self.rows += len(values)
