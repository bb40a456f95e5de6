"""Any common column or frame → a NumPy array; missing values are noticed before they turn NaN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.doubles import series_of_doubles
from calibrant.data.naming import open_any
from calibrant.errors import InputError, how_many
from calibrant.tensors import on_host

#: what an object array of numbers may hold
NUMBERS = (Real, Decimal, np.bool_)
#: views of a dict keep its order, so that they say what they hold row by row
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()))


def to_matrix(values: Any, name: str) -> NDArray[Any]:
    """Numbers as they are, in a NumPy array of their own kind; frames as (n, columns)."""
    values = on_host(values)
    native = _narwhals(values, name)
    if native is None:
        return _numbers(_plain(values, name), name)
    if hasattr(native, "columns"):
        columns = [_series(native.get_column(c), name) for c in native.columns]
        return np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return _series(native, name)


def to_column(values: Any, name: str) -> NDArray[Any]:
    """Labels (or any one column) as a NumPy array; a one-column frame is a column."""
    values = on_host(values)
    native = _narwhals(values, name)
    if native is None:
        array = _plain(values, name)
        if array.dtype.kind in "mM":
            _refuse_missing(np.asarray(np.isnat(array)), name)
        return _doubles(array, name) if array.dtype.kind != "O" else _without_missing(array, name)
    if hasattr(native, "columns"):
        if len(native.columns) != 1:
            raise InputError(
                f"{name} must be one column, but a frame with {len(native.columns)} came: "
                f"{list(native.columns)[:8]}. Pick one."
            )
        native = native.get_column(native.columns[0])
    _refuse_missing(null_mask(native), name)
    return np.asarray(native.to_numpy())


def to_incomplete(values: Any, name: str) -> tuple[Array, list[str] | None]:
    """Numbers of shape (n, columns) with NaN where a value is missing, and a frame's names."""
    values = on_host(values)
    native = _narwhals(values, name)
    if native is None or not hasattr(native, "columns"):
        array = _plain(values, name)
        return _with_nan(array, name), None
    columns = [_with_nan(np.asarray(native.get_column(c).to_numpy()), name) for c in native.columns]
    filled = np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return filled, list(native.columns)


def _with_nan(array: NDArray[Any], name: str) -> Array:
    if array.dtype.kind == "O":
        known = [float("nan") if is_missing(v) else v for v in array.flat]
        if all(isinstance(v, NUMBERS) for v in known):
            boxed = np.empty(len(known), dtype=object)
            boxed[:] = known
            return _floats(boxed, name).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be numbers or missing values, but values of type {array.dtype} came."
        )
    return _doubles(array, name).astype(np.float64)


def like_series(given: Any, values: NDArray[Any]) -> Any:
    """One value per row of a series, as a series with its index and name.

    Where something other than a series was given (a list, an array of NumPy or Arrow, a frame),
    the values stay a NumPy array.
    """
    native = _narwhals(given, "scores")
    if native is None or hasattr(native, "columns") or native.implementation.is_pyarrow():
        return values
    import narwhals as nw

    made = nw.new_series(native.name, values, backend=native.implementation)
    index = nw.maybe_get_index(native)
    return (made if index is None else nw.maybe_set_index(made, index=index)).to_native()


def refuse_unordered(values: Any, name: str) -> None:
    """Refuse what has no rows in order: a dict, whose keys would be taken, and a set.

    >>> refuse_unordered([0.1], "scores")
    """
    if isinstance(values, Mapping):
        raise InputError(
            f"{name} must be a column of values, but a {type(values).__name__} came, of which only "
            "the keys would be read. Pass the values themselves, such as list(d.values())."
        )
    if isinstance(values, Set) and not isinstance(values, VIEWS):
        raise InputError(
            f"{name} must be a column of values in the order of the rows, but a "
            f"{type(values).__name__} came, which has no order and drops repeats. Pass a list."
        )


def is_lazy(values: Any) -> bool:
    """Whether this is a lazy frame."""
    import narwhals as nw

    try:
        return isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # two columns of one name: said where it is read
        return False


def _narwhals(values: Any, name: str) -> Any:
    """The narwhals wrapper of a frame or series, or None for anything else."""
    if isinstance(values, (np.ndarray, list, tuple, range, int, float)):
        return None
    import narwhals as nw

    arrow = type(values).__module__.split(".")[0] == "pyarrow"
    if arrow and hasattr(values, "null_count") and not hasattr(values, "chunks"):
        import pyarrow  # present, since the value is one of its arrays

        values = pyarrow.chunked_array([values])
    wrapped = open_any(values, series=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError(
            f"{name} must be in memory, but a lazy frame came. Fit to it where it is, by "
            "fit_table(cal.score_table(frame, score=..., label=...)), and calibrate it by "
            "cal.add_probabilities; or collect it first."
        )
    return wrapped if isinstance(wrapped, (nw.DataFrame, nw.Series)) else None


def _plain(values: Any, name: str) -> NDArray[Any]:
    refuse_unordered(values, name)
    if isinstance(values, np.ma.MaskedArray) and values.ndim:
        _refuse_missing(np.ma.getmaskarray(values), name)
    if hasattr(values, "tocsr"):
        raise InputError(
            f"{name} must be dense, but a sparse matrix came. Convert it with .toarray()."
        )
    if isinstance(values, (str, bytes)) or values is None:
        raise InputError(f"{name} must be a column of values, but {values!r} came.")
    if isinstance(values, Real) or getattr(values, "shape", None) == ():
        raise InputError(
            f"{name} must be 1-d, but a single value came. Pass a list: [{values}]. Reshape your "
            "data if it is meant as one column."
        )
    once = isinstance(values, Iterator)
    try:
        if not isinstance(values, np.ndarray) and not hasattr(values, "__array__"):
            values = list(values)
        array = np.asarray(values)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"{name} must be a column of values: {wrong}") from wrong
    if once and not values:
        raise InputError(
            f"{name} must have at least one row, but none came (0 samples): an iterator can be "
            "read only once, and this one may have been. Pass a list."
        )
    if array.dtype.kind in "US" and isinstance(values, list):
        # NumPy turns [1, "a"] and ["a", None] into strings: look at the values themselves
        mixed = np.empty(len(values), dtype=object)
        mixed[:] = values
        if any(not isinstance(value, (str, bytes)) for value in values):
            return mixed
    return array


def _numbers(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Object arrays of numbers become float64; anything else keeps its kind, to be refused."""
    if array.dtype.kind != "O":
        return _doubles(array, name)
    array = _without_missing(array, name)
    return _floats(array, name) if all(isinstance(v, NUMBERS) for v in array.flat) else array


def _doubles(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Floats longer than 64 bits as float64, if they fit; anything else as it is."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):
        short = array.astype(np.float64)
    _refuse_too_large(array, np.asarray(np.isinf(short) & ~np.isinf(array)), name)
    return short


def _floats(array: NDArray[Any], name: str) -> Array:
    """Boxed numbers as float64, if they fit."""
    try:
        with np.errstate(over="ignore"):  # they are refused below
            floats = array.astype(np.float64)
    except (OverflowError, TypeError, ValueError, ArithmeticError):
        floats = np.array([_float(value) for value in array.flat]).reshape(array.shape)
    given = np.asarray((array == np.inf) | (array == -np.inf), dtype=bool)
    _refuse_too_large(array, np.asarray(np.isinf(floats) & ~given), name)
    return floats


def _float(value: Any) -> float:
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError, ArithmeticError):  # beyond all floats
        return float("inf")


def _refuse_too_large(array: NDArray[Any], wrong: Flags, name: str) -> None:
    if wrong.any():
        rows = np.asarray(wrong.reshape(len(array), -1).any(axis=1))
        came = str(array[wrong][0])
        raise InputError(
            f"{name} must fit in 64-bit floats (up to 1.8e308 in size): {int(rows.sum())} of "
            f"{len(rows)} do not (first at row {int(np.argmax(rows))}: "
            f"{came if len(came) < 30 else f'{came[:12]}…, {len(came)} digits'}). Divide all of "
            "them by a number, or take their logarithm."
        )


def _series(series: Any, name: str) -> NDArray[Any]:
    import narwhals as nw

    _refuse_missing(null_mask(series), name)
    if isinstance(series.dtype, (nw.Decimal, nw.Int128, nw.UInt128)):  # NumPy has no such types
        series = series_of_doubles(series)
    return _numbers(np.asarray(series.to_numpy()), name)


def null_mask(series: Any) -> Flags:
    """Which values of a narwhals series are missing; a signalling NaN counts as such, too."""
    try:
        if not series.null_count():
            return np.zeros(len(series), dtype=bool)
        return np.asarray(series.is_null().to_numpy()).astype(bool)
    except ArithmeticError:
        return np.array([is_missing(value) for value in series.to_list()], dtype=bool)


def _without_missing(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse None, NaN and NA hidden in an object array."""
    missing = np.fromiter((is_missing(v) for v in array.flat), dtype=bool, count=array.size)
    _refuse_missing(np.asarray(missing.reshape(array.shape)), name)
    return array


def _refuse_missing(missing: Flags, name: str) -> None:
    if missing.any():
        rows = np.asarray(missing.reshape(len(missing), -1).any(axis=1))
        what = how_many({"missing, None or NaN": int(rows.sum())}, len(rows))
        raise InputError(
            f"{name} must be complete: {what} (first at row {int(np.argmax(rows))}). Drop or "
            "impute them first."
        )


def plain(value: Any) -> Any:
    """A label as a Python value: NumPy scalars unwrapped, everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """None, NaN and NA."""
    if isinstance(value, str):
        return False
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA has no truth value, sNaN no order
        return True
