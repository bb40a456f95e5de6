"""Any common column or frame → a NumPy array; missing values are noticed before they turn NaN."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["is_missing", "to_column", "to_incomplete", "to_matrix"]


def to_matrix(values: Any, name: str) -> NDArray[Any]:
    """Numbers as they are, in a NumPy array of their own kind; frames as (n, columns)."""
    native = _narwhals(values)
    if native is None:
        return _numbers(_plain(values, name), name)
    if hasattr(native, "columns"):
        columns = [_series(native.get_column(c), name) for c in native.columns]
        return np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return _series(native, name)


def to_column(values: Any, name: str) -> NDArray[Any]:
    """Labels (or any one column) as a NumPy array; a one-column frame is a column."""
    native = _narwhals(values)
    if native is None:
        array = _plain(values, name)
        return array if array.dtype.kind != "O" else _without_missing(array, name)
    if hasattr(native, "columns"):
        if len(native.columns) != 1:
            raise InputError(
                f"{name} must be one column, but a frame with {len(native.columns)} came: "
                f"{list(native.columns)[:8]}. Pick one."
            )
        native = native.get_column(native.columns[0])
    _refuse_nulls(native, name)
    return np.asarray(native.to_numpy())


def to_incomplete(values: Any, name: str) -> tuple[NDArray[np.float64], list[str] | None]:
    """Numbers of shape (n, columns) with NaN where a value is missing, and a frame's names."""
    native = _narwhals(values)
    if native is None or not hasattr(native, "columns"):
        array = _plain(values, name)
        return _with_nan(array, name), None
    columns = [_with_nan(np.asarray(native.get_column(c).to_numpy()), name) for c in native.columns]
    filled = np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return filled, list(native.columns)


def _with_nan(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if array.dtype.kind == "O":
        known = [float("nan") if is_missing(v) else v for v in array.flat]
        if all(isinstance(v, (Real, Decimal, np.number, np.bool_)) for v in known):
            return np.array([float(v) for v in known]).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be numbers or missing values, but values of type {array.dtype} came."
        )
    return array.astype(np.float64)


def _narwhals(values: Any) -> Any:
    """The narwhals wrapper of a frame or series, or None for anything else."""
    if isinstance(values, (np.ndarray, list, tuple, range, int, float)):
        return None
    import narwhals as nw

    arrow = type(values).__module__.split(".")[0] == "pyarrow"
    if arrow and hasattr(values, "null_count") and not hasattr(values, "chunks"):
        import pyarrow  # present, since the value is one of its arrays

        values = pyarrow.chunked_array([values])
    wrapped = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError("columns must be in memory, but a lazy frame came. Collect it first.")
    return wrapped if isinstance(wrapped, (nw.DataFrame, nw.Series)) else None


def _plain(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values).reshape(len(values), -1)
        raise InputError(_missing_message(name, mask))
    if hasattr(values, "tocsr"):
        raise InputError(
            f"{name} must be dense, but a sparse matrix came. Convert it with .toarray()."
        )
    if isinstance(values, (str, bytes)) or values is None:
        raise InputError(f"{name} must be a column of values, but {values!r} came.")
    if isinstance(values, Real):
        raise InputError(
            f"{name} must be 1-d, but a single value came. Pass a list: [{values}]. Reshape your "
            "data if it is meant as one column."
        )
    try:
        if not isinstance(values, np.ndarray) and not hasattr(values, "__array__"):
            values = list(values)
        array = np.asarray(values)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"{name} must be a column of values: {wrong}") from wrong
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
        return array
    array = _without_missing(array, name)
    if all(isinstance(value, (Real, Decimal, np.number, np.bool_)) for value in array.flat):
        return array.astype(np.float64)
    return array


def _series(series: Any, name: str) -> NDArray[Any]:
    import narwhals as nw

    _refuse_nulls(series, name)
    if isinstance(series.dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    return _numbers(np.asarray(series.to_numpy()), name)


def _refuse_nulls(series: Any, name: str) -> None:
    if series.null_count():
        mask = np.asarray(series.is_null().to_numpy()).astype(bool)
        raise InputError(_missing_message(name, mask))


def _without_missing(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse None, NaN and NA hidden in an object array."""
    missing = np.fromiter((is_missing(v) for v in array.flat), dtype=bool, count=array.size)
    if missing.any():
        raise InputError(_missing_message(name, missing.reshape(len(array), -1)))
    return array


def is_missing(value: Any) -> bool:
    """None, NaN and NA."""
    if isinstance(value, str):
        return False
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def _missing_message(name: str, mask: NDArray[np.bool_]) -> str:
    rows = mask if mask.ndim == 1 else np.asarray(mask.any(axis=1))
    count = int(rows.sum())
    return (
        f"{name} must be complete: {count} of {len(rows)} {'is' if count == 1 else 'are'} missing, "
        f"None or NaN (first at row {int(np.argmax(rows))}). Drop or impute them first."
    )
