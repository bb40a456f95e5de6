"""Any common table of attributes → its columns, each with a mask of what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Flags, Index
from calibrant.data.doubles import series_of_doubles
from calibrant.data.naming import open_any
from calibrant.data.to_numpy import is_missing, null_mask, plain, refuse_unordered
from calibrant.errors import InputError

Name = str | int

#: what to do about a column that is neither numbers nor categories
CONVERT = (
    "Convert it to numbers (dates for example to ages in days) or to strings, or leave it out."
)


@dataclass(frozen=True)
class AttributeColumn:
    """Values, who is missing, and whether they are categories."""

    values: NDArray[Any]
    missing: Flags
    nominal: bool

    def take(self, rows: Any) -> AttributeColumn:
        return AttributeColumn(self.values[rows], self.missing[rows], self.nominal)

    def distinct(self) -> tuple[list[Any], Index]:
        """The different values present, and the place of each row's (the last plus 1: missing)."""
        inverse = np.empty(len(self.values), dtype=np.intp)
        present = self.values[~self.missing]
        if present.dtype.kind == "O":
            listed = present.tolist()  # "1" is not 1, but 1 is 1.0
            found = {value: place for place, value in enumerate(dict.fromkeys(listed))}
            places = np.fromiter(map(found.__getitem__, listed), np.intp, count=len(listed))
            values = list(found)
        else:
            unique, places = np.unique(present, return_inverse=True)
            values = [plain(v) for v in unique]
        inverse[~self.missing] = places
        inverse[self.missing] = len(values)
        return values, inverse

    def example(self) -> str:
        """One of the values, for an error message."""
        present = self.values[~self.missing]
        return f" (such as {plain(present[0])!r})" if len(present) else ""


@dataclass(frozen=True)
class AttributeTable:
    """Columns of the same rows; names only where all are words, or all whole numbers."""

    names: tuple[Name, ...] | None
    columns: list[AttributeColumn]
    rows: int

    def __len__(self) -> int:
        return self.rows

    @property
    def labels(self) -> list[Name]:
        """What to call the columns."""
        if self.names is not None:
            return list(self.names)
        return [title(j) for j in range(len(self.columns))]

    def take(self, rows: slice | Flags | Index) -> AttributeTable:
        """A stretch of rows, not copied; or the rows of a mask, or those with these numbers."""
        count = len(np.broadcast_to(0, self.rows)[rows])
        return AttributeTable(self.names, [c.take(rows) for c in self.columns], count)


def read_table(features: Any, only: Sequence[Name] | None = None) -> AttributeTable:
    """Arrays, lists of rows and frames (through narwhals) as columns; the rest is refused.

    Of a frame whose columns have names like ``only``, no other columns are looked at.
    """
    if isinstance(features, AttributeTable):
        return features
    if features is None:
        raise InputError(
            "features must be passed: this calibrator looks at the attributes of each row beside "
            "its score. Give features=X."
        )
    if hasattr(features, "tocsr"):
        raise InputError(
            "features must be dense, but a sparse matrix came. Convert it with .toarray(), or "
            "reduce it to fewer columns."
        )
    refuse_unordered(features, "features")
    frame = None if isinstance(features, (np.ndarray, list, tuple)) else _frame(features)
    return _from_array(features) if frame is None else _from_frame(frame, only)


# --- frames -------------------------------------------------------------------------------------


def _frame(features: Any) -> Any:
    import narwhals as nw

    try:
        wrapped = open_any(features, series=True)
    except nw.exceptions.NarwhalsError as wrong:
        raise InputError(f"features cannot be read as a frame: {wrong}") from wrong
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError("features must be in memory, but a lazy frame came. Collect it first.")
    if isinstance(wrapped, nw.Series):
        raise InputError(
            "features must be a table with rows and columns, but one column came. Pass a frame of "
            "one column."
        )
    return wrapped if isinstance(wrapped, nw.DataFrame) else None


def _from_frame(frame: Any, only: Sequence[Name] | None = None) -> AttributeTable:
    names, rows = [plain(name) for name in frame.columns], frame.shape[0]
    if len({(type(name), name) for name in names}) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise InputError(f"features must have one column of each name, but {twice!r} came twice.")
    alike = any(all(type(name) is kind for name in names) for kind in (str, int))
    if only is not None and {*map(type, names)} == {*map(type, only)}:
        frame = frame.select([own for own in frame.columns if plain(own) in only])
        names = [plain(name) for name in frame.columns]
    columns = [
        _series(series, title(name))
        for name, series in zip(names, frame.iter_columns(), strict=True)
    ]
    return AttributeTable(tuple(names) if alike else None, columns, rows)


def _series(series: Any, name: str) -> AttributeColumn:
    import narwhals as nw

    dtype = series.dtype
    missing = null_mask(series)
    boolean = isinstance(dtype, nw.Boolean)
    if boolean or dtype.is_numeric():
        if isinstance(dtype, nw.Decimal):
            series = series_of_doubles(series)
        filled = series.fill_null(False if boolean else 0) if missing.any() else series
        values = np.asarray(filled.to_numpy())
        return _plain_column(values.astype(bool) if boolean else values, missing, name)
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum, nw.Object)):
        values = np.empty(len(missing), dtype=object)
        values[:] = series.to_list()
        column = _objects(values, missing, name)
        return column if isinstance(dtype, nw.Object) else replace(column, nominal=True)
    if missing.all():
        return AttributeColumn(np.zeros(len(missing)), missing, nominal=False)
    known = getattr(series.to_native(), "dtype", dtype) if dtype == nw.Unknown else dtype
    raise InputError(
        f"{name} of the features must hold numbers or categories, but its type is {known}. "
        f"{CONVERT}"
    )


# --- arrays -------------------------------------------------------------------------------------


def _from_array(features: Any) -> AttributeTable:
    mask = np.ma.getmaskarray(features) if isinstance(features, np.ma.MaskedArray) else None
    array = _array(features)
    if array.ndim != 2:
        raise InputError(
            f"features must be a table with rows and columns, but their shape is {array.shape}. "
            "Reshape one column with .reshape(-1, 1), one row with .reshape(1, -1)."
        )
    absent = np.zeros(array.shape, dtype=bool) if mask is None else mask
    columns = [_plain_column(array[:, j], absent[:, j], title(j)) for j in range(array.shape[1])]
    return AttributeTable(None, columns, len(array))


def _array(features: Any) -> NDArray[Any]:
    if isinstance(features, np.ndarray):
        return np.asarray(features.data if isinstance(features, np.ma.MaskedArray) else features)
    if isinstance(features, (str, bytes)) or not hasattr(features, "__len__"):
        raise InputError(
            f"features must be a table (an array, a frame, a list of rows), but "
            f"{type(features).__name__} came."
        )
    try:
        array = np.asarray(features)
        if array.dtype.kind in "US" or array.ndim != 2:
            # NumPy turns [[1, "a"]] into words: keep the values themselves
            array = np.array(features, dtype=object)
    except (TypeError, ValueError) as wrong:
        raise InputError(
            f"features must be rows of one length, but they are not a table: {wrong}"
        ) from wrong
    return array


def title(name: Any) -> str:
    """What to call a column in messages, given its name or position."""
    return name if isinstance(name, str) else f"column {name}"


def _plain_column(values: NDArray[Any], missing: Flags, name: str) -> AttributeColumn:
    """A column by the kind of its array."""
    kind = values.dtype.kind
    if kind == "f":
        return AttributeColumn(values, missing | np.isnan(values), nominal=False)
    if kind in "iu":
        return AttributeColumn(values, missing, nominal=False)
    if kind in "bU":
        return AttributeColumn(values, missing, nominal=True)
    if kind == "O":
        return _objects(values, missing, name)
    raise InputError(
        f"{name} of the features must hold numbers or categories, but {values.dtype} came. "
        f"{CONVERT}"
    )


def _objects(values: NDArray[Any], missing: Flags, name: str) -> AttributeColumn:
    """Boxed values: numbers if all present ones are, else categories: words, numbers, booleans."""
    if set(map(type, values[~missing].tolist())) == {str}:
        return AttributeColumn(values, missing, nominal=True)
    boxed = [_category(value) for value in values]
    gone = missing | np.fromiter((is_missing(v) for v in boxed), dtype=bool, count=len(boxed))
    kinds = {type(v) for v, absent in zip(boxed, gone, strict=True) if not absent}
    if not kinds <= {str, bool, int, float}:
        wrong = next(kind for kind in kinds if kind not in (str, bool, int, float))
        raise InputError(
            f"{name} of the features must hold numbers or categories, but values of type "
            f"{wrong.__name__} came. {CONVERT}"
        )
    if kinds <= {int, float}:
        numbers = [0.0 if absent else _number(v) for v, absent in zip(boxed, gone, strict=True)]
        large = any(isinstance(v, int) for v in numbers)
        return AttributeColumn(
            np.array(numbers, dtype=object if large else float), gone, nominal=False
        )
    result = np.empty(len(boxed), dtype=object)
    result[:] = boxed
    return AttributeColumn(result, gone, nominal=True)


def _number(value: Any) -> float:
    """A float, or a whole number that floats cannot tell from others: it may be a category."""
    number = _float(value)
    rounded = isinstance(value, int) and math.isfinite(number) and number != value
    return value if rounded else number


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # beyond all floats
        return -math.inf if value < 0 else math.inf


def _category(value: Any) -> Any:
    value = plain(value)
    if type(value) in (str, int, float, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, (Real, Decimal)) or is_missing(value):
        return None if isinstance(value, Decimal) else value
    return _float(value)
