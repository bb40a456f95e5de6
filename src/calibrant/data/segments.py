"""Segments of rows: how their columns are read, and which segment each row is in.

A segment is text or a whole number. Of several columns, from coarse to fine, it is a tuple:
("fr", "card") is a part of ("fr",).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Index
from calibrant.data.columns import distinct_values, plain, to_column, to_narwhals
from calibrant.errors import CalibrationWarning, InputError, caller_level

Key = str | int
#: a segment of several columns: its value in the first of them, or in the first two, ...
KeyPath = tuple[Key, ...]
SegmentKey = Key | KeyPath

#: what to do with several columns of segments where only one can be used
JOIN_COLUMNS = (
    "Join several columns to one, such as country + ' / ' + product: each combination is then a "
    "segment."
)
#: rows whose keys are looked up at a time, so that few Python objects exist at once
BLOCK = 1 << 18


def segment_key(value: Any) -> Key:
    """A segment as text or a whole number, as files hold it.

    Booleans are 0 and 1, and floats must be whole (a column of integers with gaps becomes floats).

    >>> segment_key(np.int64(3)), segment_key(3.0), segment_key(True), segment_key("3")
    (3, 3, 1, '3')
    """
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise InputError(
        f"segments must be strings or whole numbers, but {value!r} of type {type(value).__name__} "
        "came. Convert them, for example with astype(str)."
    )


def segment_path(value: Any) -> SegmentKey:
    """A segment as files hold it: one value (see `segment_key`), or a tuple with a value for each
    column.

    >>> segment_path(np.int64(3)), segment_path((np.int64(3), "a"))
    (3, (3, 'a'))
    """
    return tuple(map(segment_key, value)) if isinstance(value, tuple) else segment_key(value)


def segment_column_names(segments: Any) -> tuple[str, ...]:
    """The names of several columns of segments; () if there is one column, or if columns have no
    names.

    >>> segment_column_names({"country": ["fr"], "product": ["card"]}), segment_column_names(["fr"])
    (('country', 'product'), ())
    """
    names = tuple(segments) if isinstance(segments, Mapping) else tuple(_frame_columns(segments))
    return names if len(names) > 1 and all(isinstance(name, str) for name in names) else ()


def segment_columns(segments: Any, fitted: Sequence[str] = ()) -> list[Any]:
    """The columns of segments as a list, from coarse to fine.

    Several columns come as a frame, a dict of columns, a list of columns, an (n, j) array, or one
    tuple for each row. If they have the names of the ``fitted`` columns, they are put into that
    order.

    >>> segment_columns(["fr", "de"]), segment_columns([("fr", "card"), ("de", "loan")])
    ([['fr', 'de']], [['fr', 'de'], ['card', 'loan']])
    >>> segment_columns({"product": ["card"], "country": ["fr"]}, ["country", "product"])
    [['fr'], ['card']]
    """
    names = segment_column_names(segments)
    columns = _columns_as_given(segments)
    if len(names) != len(columns) or len(fitted) != len(names) or names == tuple(fitted):
        return columns
    if set(names) == set(fitted):
        return [columns[names.index(name)] for name in fitted]
    if set(names) & set(fitted):
        raise InputError(
            f"segments must be the columns {', '.join(map(repr, fitted))}, as in the fit, but "
            f"{', '.join(map(repr, names))} came. Pass those columns, or a list of columns in that "
            "order."
        )
    return columns  # other names altogether: by place


def _columns_as_given(segments: Any) -> list[Any]:
    """The columns of segments in the order in which they came."""
    if isinstance(segments, Iterator):  # read once
        segments = to_column(segments, "segments")
    if isinstance(segments, Mapping):
        return list(segments.values()) or [[]]
    array = isinstance(segments, np.ndarray)
    if array and segments.ndim != 1:
        return list(segments.T) if segments.ndim == 2 and segments.shape[1] > 1 else [segments]
    if array or isinstance(segments, (list, tuple)):
        first = segments[0] if len(segments) else ""
        if isinstance(first, tuple):
            return _columns_of_tuples(list(segments))
        plural = hasattr(first, "__len__") and not isinstance(first, (str, bytes))
        return list(segments) if plural and not array else [segments]
    names = _frame_columns(segments)
    frame = to_narwhals(segments) if len(names) > 1 else segments
    if frame is segments:
        return [segments]
    return [frame.get_column(name).to_native() for name in names]


def _frame_columns(frame: Any) -> Sequence[Any]:
    """The names of a frame's columns; () if it is no frame."""
    names: Sequence[Any] = getattr(frame, "column_names", getattr(frame, "columns", ()))
    return names


def _columns_of_tuples(rows: list[Any]) -> list[Any]:
    """The columns of rows that came as tuples."""
    size = len(rows[0])
    odd = [row for row in rows if not isinstance(row, tuple) or len(row) != size]
    if odd or not size:
        raise InputError(
            f"segments that are tuples must all have as many values as the first ({size}, and at "
            f"least one), but {(odd or rows)[0]!r} came."
        )
    return [list(column) for column in zip(*rows, strict=True)]


def finest_segment(path: KeyPath, known: Mapping[SegmentKey, int]) -> int:
    """The number of the finest known segment that a row is in; ``len(known)`` if none is known.

    >>> known = {("fr",): 0, ("fr", "card"): 1}
    >>> finest_segment(("fr", "card"), known), finest_segment(("fr", "loan"), known)
    (1, 0)
    """
    for size in range(len(path), 0, -1):
        if path[:size] in known:
            return known[path[:size]]
    return len(known)


def find_segments(given: Sequence[Any], known: Mapping[SegmentKey, int], columns: int = 1) -> Index:
    """For each row the number of its segment among the ``known`` ones; ``len(known)`` if it is new.

    ``given`` are the columns of segments. With several columns, a row has its finest known segment.

    >>> find_segments([["b", 1, "1"]], {"b": 0, 1: 1}).tolist()
    [0, 1, 2]
    >>> find_segments([["a", "a", "b"], ["x", "y", "x"]], {("a",): 0, ("a", "x"): 1}, 2).tolist()
    [1, 0, 2]
    """
    if len(given) != columns:
        raise InputError(
            f"segments must be one column, as in the fit, but {len(given)} came. Pass that column."
            if columns == 1
            else f"segments must be {columns} columns, as in the fit and in the same order, but "
            f"{len(given)} came. Pass all of them: a frame, or a list of columns."
        )
    if columns > 1:
        paths, _, codes = combine_segment_columns([_encode_column(column) for column in given])
        return np.array([finest_segment(path, known) for path in paths], dtype=np.intp)[codes]
    # equal values have equal hashes: 1, 1.0 and True are one key, and "1" another
    return _coded_in_blocks(
        _check_column(given[0]), lambda values: map(known.get, values, repeat(len(known)))
    )


def segment_codes(segments: Any) -> tuple[list[Any], Index]:
    """The different segments in order of first appearance, and for each row the number of its
    segment.

    Segments of several columns are tuples. All values must be text or whole numbers, which files
    can hold.

    >>> keys, codes = segment_codes(np.array([7.0, 3.0, 7.0]))
    >>> keys, codes.tolist()
    ([7, 3], [0, 1, 0])
    >>> segment_codes([["fr", "de", "fr"], [1, 1, 2]])[0]
    [('fr', 1), ('de', 1), ('fr', 2)]
    """
    columns = [_encode_column(column) for column in segment_columns(segments)]
    if len(columns) == 1:
        return columns[0]
    paths, first, joint = combine_segment_columns(columns)
    order = np.argsort(first, kind="stable")
    return [paths[i] for i in order], np.argsort(order)[joint]


def coarsen_segments(keys: list[Any], codes: Index, size: int) -> tuple[list[Any], Index]:
    """The coarser segments by the first ``size`` columns, and the number of each row's.

    ``keys`` and ``codes`` are as `segment_codes` gives them; segments of one column stay the same.

    >>> keys, codes = coarsen_segments([("fr", 1), ("de", 1), ("fr", 2)], np.array([0, 1, 2]), 1)
    >>> keys, codes.tolist()
    ([('fr',), ('de',)], [0, 1, 0])
    """
    if not keys or not isinstance(keys[0], tuple) or len(keys[0]) == size:
        return keys, codes
    coarse, coarse_code = distinct_values([key[:size] for key in keys])
    return coarse, coarse_code[codes]


def _encode_column(segments: Any) -> tuple[list[Any], Index]:
    """The different segments of one column as they come, and the number of each row's."""
    known: dict[Any, int] = {}

    def coded(values: list[Any]) -> Iterable[int]:
        for value in dict.fromkeys(values):
            known.setdefault(value, len(known))
        return map(known.__getitem__, values)

    codes = _coded_in_blocks(_check_column(segments), coded)
    return [segment_key(value) for value in known], codes


def _coded_in_blocks(column: NDArray[Any], codes_of: Callable[[list[Any]], Iterable[int]]) -> Index:
    """The codes of a column, found for `BLOCK` values at a time."""
    codes = np.empty(column.shape, dtype=np.intp)
    for begin in range(0, len(column), BLOCK):
        values = column[begin : begin + BLOCK].tolist()
        codes[begin : begin + BLOCK] = np.fromiter(codes_of(values), np.intp, count=len(values))
    return codes


def combine_segment_columns(
    columns: Sequence[tuple[list[Any], Index]],
) -> tuple[list[tuple[Any, ...]], Index, Index]:
    """The different combinations of columns, the first row of each, and which one each row has.

    A column is its different values and the code of each row. Combinations come in the order of
    their codes, the first column's before all others.
    """
    lengths = [len(codes) for _, codes in columns]
    if len(set(lengths)) > 1:
        raise InputError(
            "the columns of segments must have one value for each row, but their lengths are "
            f"{lengths}."
        )
    first = joint = np.zeros(lengths[0], dtype=np.intp)
    for values, codes in columns:
        pair = joint * len(values) + codes  # below rows · values, which fits
        _, first, joint = np.unique(pair, return_index=True, return_inverse=True)
    paths = [tuple(values[codes[row]] for values, codes in columns) for row in first.tolist()]
    return paths, first, joint.reshape(-1)


def _check_column(segments: Any) -> NDArray[Any]:
    """A column of segments as an array. Anything but text or whole numbers without gaps is
    refused."""
    column = to_column(segments, "segments")
    if column.ndim != 1:
        raise InputError(
            "segments must name one segment per score (1-d), but their shape is "
            f"{column.shape}. Pass a column, or a list of columns."
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


def refuse_several_columns(segments: Any) -> None:
    """Refuse several columns of segments where only one can be used."""
    if len(segment_columns(segments)) > 1:
        raise InputError(f"segments must be one column here, but several came. {JOIN_COLUMNS}")


def _check_whole(column: NDArray[Any]) -> None:
    """Refuse floats that are no whole numbers, or too large to be exact ones."""
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


# --- Segments of any kind: to divide rows by, not to be stored in files ---------------------------


def read_segments(segments: Any) -> tuple[list[Any], Index]:
    """The different segments in ascending order, and the number of each row's.

    Unlike those of `segment_codes` they may be values of any kind. Those of several columns are
    tuples.

    >>> values, codes = read_segments([7, 3, 7])
    >>> values, codes.tolist()
    ([3, 7], [1, 0, 1])
    >>> read_segments([["fr", "de", "fr"], [1, 1, 2]])[0]
    [('de', 1), ('fr', 1), ('fr', 2)]
    """
    columns = [_read_column(column) for column in segment_columns(segments)]
    if len(columns) == 1:
        return columns[0]
    paths, _, codes = combine_segment_columns(columns)
    return paths, codes


def _read_column(segments: Any) -> tuple[list[Any], Index]:
    """The different values of a column in ascending order, and the number of each row's."""
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
    try:
        values, codes = distinct_values(column.tolist())
    except TypeError as wrong:
        raise InputError(f"segments must be 1-d, a single value per row: {wrong}.") from wrong
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # values of several kinds
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i])))
    return [values[i] for i in order], np.argsort(order)[codes]


def segment_titles(values: list[Any]) -> list[str]:
    """The text of each segment, or its repr where two have the same text.

    >>> segment_titles([1, "1"]), segment_titles([1, 2])
    (['1', "'1'"], ['1', '2'])
    >>> segment_titles([("fr", "card"), ("fr", "loan")])
    ['fr / card', 'fr / loan']
    """
    names = [" / ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values]
    return names if len(set(names)) == len(names) else [repr(value) for value in values]


def finest_example(seen: Sequence[Any]) -> Any:
    """A segment to show as an example: the first with values in the most columns.

    >>> finest_example([("fr",), ("fr", "card")]), finest_example(["fr", "de"])
    (('fr', 'card'), 'fr')
    """
    return max(seen, key=lambda key: len(key) if isinstance(key, tuple) else 1)


@dataclass
class NewSegments:
    """A count of ``rows``, of those with a ``new`` segment, and an ``example`` of these."""

    rows: int = 0
    new: int = 0
    example: Any = None

    @property
    def most(self) -> bool:
        """Whether more than half of the rows are in new segments."""
        return 2 * self.new > self.rows

    @property
    def their_map(self) -> str:
        """A phrase for the map that rows of new segments get."""
        if isinstance(self.example, tuple):
            return "the map of the coarser segment that it has seen, or that of all rows"
        return "the map of all rows"

    def words(self) -> str:
        """A sentence that says how many rows have a new segment.

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
                f"{finest_example(seen)!r}. {advice}",
                CalibrationWarning,
                stacklevel=caller_level(),
            )

    def add(self, segments: Iterable[Any], known: Collection[Any]) -> None:
        """Count the segments of more rows; ``known`` are the segments of the fit."""
        values = list(segments)
        new = [value for value in values if value not in known]
        if new:
            self.example = new[0]
        self.new += len(new)
        self.rows += len(values)
