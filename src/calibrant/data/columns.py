"""Any common column or frame as a NumPy array; missing values are noticed before they turn NaN."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.errors import InputError, counts_in_words
from calibrant.tensors import library_of, on_host

if TYPE_CHECKING:
    import narwhals as nw


#: what an object array of numbers may hold
NUMBERS = (Real, Decimal, np.bool_)
#: views of a dict keep its order, so that they say what they hold row by row
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()))


def to_matrix(values: Any, name: str) -> NDArray[Any]:
    """The numbers of a column or a table as an array, in their own type. Missing values are
    refused.

    Frames become (n, columns). Values that are not numbers are returned too, and the caller refuses
    them.
    """
    values = _from_device(values, name)
    native = _wrapped_in_narwhals(values, name)
    if native is None:
        return _objects_as_doubles(_to_array(values, name), name)
    if hasattr(native, "columns"):
        columns = [_series_numbers(native.get_column(c), name) for c in native.columns]
        return np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return _series_numbers(native, name)


def to_column(values: Any, name: str) -> NDArray[Any]:
    """One column of any type, such as labels, as an array. Missing values are refused."""
    values = _from_device(values, name)
    native = _wrapped_in_narwhals(values, name)
    if native is None:
        array = _to_array(values, name)
        if array.dtype.kind in "mM":
            _refuse_missing(np.asarray(np.isnat(array)), name)
        return (
            _long_floats_as_doubles(array, name)
            if array.dtype.kind != "O"
            else _without_missing(array, name)
        )
    if hasattr(native, "columns"):
        if len(native.columns) != 1:
            raise InputError(
                f"{name} must be one column, but a frame with {len(native.columns)} came: "
                f"{list(native.columns)[:8]}. Pick one."
            )
        native = native.get_column(native.columns[0])
    _refuse_missing(null_mask(native), name)
    return np.asarray(native.to_numpy())


def to_gappy_matrix(values: Any, name: str) -> tuple[Array, list[str] | None]:
    """Numbers as an array with NaN for missing values, and the names of a frame's columns (else
    None)."""
    values = _from_device(values, name)
    native = _wrapped_in_narwhals(values, name)
    if native is None or not hasattr(native, "columns"):
        array = _to_array(values, name)
        return _doubles_with_nan(array, name), None
    columns = [
        _doubles_with_nan(np.asarray(native.get_column(c).to_numpy()), name) for c in native.columns
    ]
    filled = np.column_stack(columns) if columns else np.empty((native.shape[0], 0))
    return filled, list(native.columns)


def _doubles_with_nan(array: NDArray[Any], name: str) -> Array:
    """The numbers as float64, with NaN for each missing value."""
    if array.dtype.kind == "O":
        known = [float("nan") if is_missing(v) else v for v in array.flat]
        if all(isinstance(v, NUMBERS) for v in known):
            return _to_doubles(object_array(known), name).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be numbers or missing values, but values of type {array.dtype} came."
        )
    return _long_floats_as_doubles(array, name).astype(np.float64)


def as_same_series(given: Any, values: NDArray[Any]) -> Any:
    """The values as a series with the index and name of the given one.

    Where something other than a series was given (a list, an array of NumPy or Arrow, a frame),
    they stay a NumPy array.
    """
    native = _wrapped_in_narwhals(given, "scores")
    if native is None or hasattr(native, "columns") or native.implementation.is_pyarrow():
        return values
    import narwhals as nw

    made = nw.new_series(native.name, values, backend=native.implementation)
    index = nw.maybe_get_index(native)
    return (made if index is None else nw.maybe_set_index(made, index=index)).to_native()


def refuse_unordered(values: Any, name: str) -> None:
    """Refuse a dict, of which only the keys would be read, and a set, which has no order.

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


def is_lazy_frame(values: Any) -> bool:
    """Whether this is a lazy frame of any library."""
    import narwhals as nw

    try:
        return isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # two columns of one name: said where it is read
        return False


def _from_device(values: Any, name: str) -> Any:
    """A tensor as a NumPy array; any other value unchanged. An array that JAX is tracing is
    refused.

    Traced arrays (in jit, grad and vmap) have no numbers yet.
    """
    if any(kind.__name__ == "Tracer" for kind in type(values).__mro__) and library_of(values):
        raise InputError(
            f"{name} must hold numbers, but an array that JAX is tracing came, which has none yet. "
            "Calibrate outside of jit, grad and vmap, or call back from inside: "
            "jax.pure_callback(calibrator.calibrate, result, scores), where result says the shape "
            "and the type of what comes back."
        )
    return on_host(values)


def _wrapped_in_narwhals(values: Any, name: str) -> Any:
    """A frame or series in memory as narwhals wraps it; None for anything else."""
    if isinstance(values, (np.ndarray, list, tuple, range, int, float)):
        return None
    import narwhals as nw

    arrow = type(values).__module__.split(".")[0] == "pyarrow"
    if arrow and hasattr(values, "null_count") and not hasattr(values, "chunks"):
        import pyarrow  # present, since the value is one of its arrays

        values = pyarrow.chunked_array([values])
    wrapped = to_narwhals(values, series=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError(
            f"{name} must be in memory, but a lazy frame came. Fit to it where it is, by "
            "fit_table(cal.score_table(frame, score=..., label=...)), and calibrate it by "
            "cal.add_probabilities; or collect it first."
        )
    return wrapped if isinstance(wrapped, (nw.DataFrame, nw.Series)) else None


def _to_array(values: Any, name: str) -> NDArray[Any]:
    """A list, an iterator or an array as a NumPy array."""
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
    # NumPy turns [1, "a"] and ["a", None] into strings: look at the values themselves
    words = array.dtype.kind in "US" and isinstance(values, list)
    if words and any(not isinstance(value, (str, bytes)) for value in values):
        return object_array(values)
    return array


def _objects_as_doubles(array: NDArray[Any], name: str) -> NDArray[Any]:
    """An object array of numbers as float64; any other array as it is."""
    if array.dtype.kind != "O":
        return _long_floats_as_doubles(array, name)
    array = _without_missing(array, name)
    return _to_doubles(array, name) if all(isinstance(v, NUMBERS) for v in array.flat) else array


def _long_floats_as_doubles(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Floats of more than 64 bits as float64, if they fit; any other array as it is."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):
        short = array.astype(np.float64)
    _refuse_too_large(array, np.asarray(np.isinf(short) & ~np.isinf(array)), name)
    return short


def _to_doubles(array: NDArray[Any], name: str) -> Array:
    """An object array of numbers as float64. Numbers beyond all doubles are refused."""
    try:
        with np.errstate(over="ignore"):  # they are refused below
            floats = array.astype(np.float64)
    except (OverflowError, TypeError, ValueError, ArithmeticError):
        floats = np.array([as_float(value) for value in array.flat]).reshape(array.shape)
    given = np.asarray((array == np.inf) | (array == -np.inf), dtype=bool)
    _refuse_too_large(array, np.asarray(np.isinf(floats) & ~given), name)
    return floats


def as_float(value: Any) -> float:
    """The nearest float; infinity for a number beyond all floats."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError, ArithmeticError):
        return float("-inf") if value < 0 else float("inf")


def _refuse_too_large(array: NDArray[Any], wrong: Flags, name: str) -> None:
    """Refuse numbers that are infinite only as 64-bit floats; ``wrong`` flags them."""
    if wrong.any():
        rows = np.asarray(wrong.reshape(len(array), -1).any(axis=1))
        came = str(array[wrong][0])
        raise InputError(
            f"{name} must fit in 64-bit floats (up to 1.8e308 in size): {int(rows.sum())} of "
            f"{len(rows)} do not (first at row {int(np.argmax(rows))}: "
            f"{came if len(came) < 30 else f'{came[:12]}…, {len(came)} digits'}). Divide all of "
            "them by a number, or take their logarithm."
        )


def _series_numbers(series: Any, name: str) -> NDArray[Any]:
    """The numbers of a narwhals series as an array; gaps are refused."""
    import narwhals as nw

    _refuse_missing(null_mask(series), name)
    if isinstance(series.dtype, (nw.Decimal, nw.Int128, nw.UInt128)):  # NumPy has no such types
        series = series_of_doubles(series)
    return _objects_as_doubles(np.asarray(series.to_numpy()), name)


def null_mask(series: Any) -> Flags:
    """Flags of the missing values of a narwhals series. A signalling NaN counts as missing."""
    try:
        if not series.null_count():
            return np.zeros(len(series), dtype=bool)
        return np.asarray(series.is_null().to_numpy()).astype(bool)
    except ArithmeticError:
        return np.array([is_missing(value) for value in series.to_list()], dtype=bool)


def _without_missing(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The same object array, after a check that it holds no None, NaN or NA."""
    missing = np.fromiter((is_missing(v) for v in array.flat), dtype=bool, count=array.size)
    _refuse_missing(np.asarray(missing.reshape(array.shape)), name)
    return array


def _refuse_missing(missing: Flags, name: str) -> None:
    """Refuse missing values; ``missing`` flags them."""
    if missing.any():
        rows = np.asarray(missing.reshape(len(missing), -1).any(axis=1))
        what = counts_in_words({"missing, None or NaN": int(rows.sum())}, len(rows))
        raise InputError(
            f"{name} must be complete: {what} (first at row {int(np.argmax(rows))}). Drop or "
            "impute them first."
        )


def plain(value: Any) -> Any:
    """The value as a Python one: a NumPy scalar is unwrapped, any other value is returned
    unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """The values as an array of Python objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def distinct_values(values: list[Any]) -> tuple[list[Any], Index]:
    """The different values in order of first appearance, and for each row the position of its
    value.

    >>> values, codes = distinct_values(["b", "a", "b"])
    >>> values, codes.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    known = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return list(known), np.fromiter(map(known.__getitem__, values), np.intp, count=len(values))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or NA."""
    if isinstance(value, str):
        return False
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA has no truth value, sNaN no order
        return True


# --- Numbers of any type as doubles, each rounded to the nearest (not every engine does so) -------


#: whole numbers beyond are not all doubles
EXACT = 2**53
#: half of any finite double is less; no engine's reading of this number can make it infinite
HALF = 9e307


def as_double(frame: nw.LazyFrame[Any], column: str) -> nw.Expr:
    """An expression for a frame's column of numbers or truth values as doubles.

    >>> from decimal import Decimal
    >>> import narwhals as nw, pyarrow as pa
    >>> frame = nw.from_native(pa.table({"s": [Decimal("0.035")]})).lazy()
    >>> frame.select(as_double(frame, "s")).collect().get_column("s").to_list()
    [0.035]
    """
    import narwhals as nw

    kind, engine, value = frame.collect_schema()[column], frame.implementation, nw.col(column)
    if kind == nw.Float64:
        return value
    large = False
    if kind.is_integer() and _through_text(kind, engine, large=True):
        ends = value.min().alias("low"), value.max().alias("high")
        large = _beyond_exact_doubles(*first_row(frame.select(*ends).collect()))
    if _through_text(kind, engine, large=large):
        value = value.cast(nw.String)
    return value.cast(nw.Float64)


def is_finite(value: nw.Expr) -> nw.Expr:
    """Whether doubles are finite, by comparisons alone, since some engines of Ibis have no other
    test.

    It works whether an engine treats NaN as the largest number or as unequal to all. For NULL the
    result is NULL or false.
    """
    half = value * 0.5
    return (half > -HALF) & (half < HALF)


def is_infinite(value: nw.Expr) -> nw.Expr:
    """Whether doubles are infinite, by comparisons alone (see `is_finite`)."""
    return (value * 0.5 < -HALF) | (value * -0.5 < -HALF)


def is_nan(value: nw.Expr) -> nw.Expr:
    """Whether doubles are NaN: neither NULL nor a number."""
    import narwhals as nw

    # comparisons with NaN are NULL in pandas' frames of Arrow
    number = nw.when(is_finite(value) | is_infinite(value)).then(nw.lit(1)).otherwise(nw.lit(0))
    return ~value.is_null() & (number == 0)


def first_row(frame: nw.DataFrame[Any]) -> tuple[Any, ...]:
    """The values of a frame's first row as Python values."""
    return tuple(value.as_py() if hasattr(value, "as_py") else value for value in frame.row(0))


def series_of_doubles(series: nw.Series[Any]) -> nw.Series[Any]:
    """A series of numbers or truth values as doubles."""
    import narwhals as nw

    kind = series.dtype
    large = (
        kind.is_integer() and len(series) > 0 and _beyond_exact_doubles(series.min(), series.max())
    )
    if _through_text(kind, series.implementation, large=large):
        series = series.cast(nw.String)
    return series.cast(nw.Float64)


def _through_text(kind: nw.dtypes.DType, engine: nw.Implementation, *, large: bool) -> bool:
    """Whether numbers of a type must be cast to text first, to be rounded to the nearest double.

    Arrow and Polars 1 multiply decimals by a rounded power of ten, and Arrow refuses whole numbers
    that are ``large``, beyond 2⁵³. DuckDB rounds each half of a whole number of 128 bits.
    """
    import narwhals as nw

    if engine.is_pyarrow() or engine.is_pandas_like():
        return kind.is_decimal() or (kind.is_integer() and large)
    if engine.is_polars():
        return kind.is_decimal()
    return engine.is_duckdb() and kind in (nw.Int128, nw.UInt128)


def _beyond_exact_doubles(low: int | None, high: int | None) -> bool:
    """Whether a range of whole numbers reaches beyond those that doubles hold exactly."""
    return low is not None and high is not None and (low < -EXACT or high > EXACT)


# --- Columns by name: one that is not there, there twice or in a wrong place; names of new ones ---


def to_narwhals(values: Any, *, series: bool = False) -> Any:
    """A frame (or a series) as narwhals wraps it, anything else as it is.

    A frame with several columns of one name is refused.
    """
    import narwhals as nw

    if type(values).__module__.startswith("pyarrow") and type(values).__name__ == "RecordBatch":
        import pyarrow  # present, since the value is one of its batches

        values = pyarrow.Table.from_batches([values])
    try:
        opened = nw.from_native(values, allow_series=series, pass_through=True)
    except nw.exceptions.DuplicateError:
        native: Any = getattr(values, "column_names", None) or getattr(values, "columns", ())
        _refuse_repeated_columns(list(native))
        raise  # pragma: no cover - narwhals has seen what we have not
    if isinstance(opened, nw.LazyFrame) and opened.implementation.is_spark_like():
        _refuse_repeated_columns(list(values.columns))
    return opened


def _refuse_repeated_columns(names: Sequence[Any]) -> None:
    """Refuse several columns of the same name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:8]))
        raise InputError(
            f"the columns of a frame must have different names, but several are called {shown}. "
            "Rename or drop those first."
        )


def unknown_column(name: str, role: str, names: Sequence[str], of: str) -> str:
    """The error for a missing column, with the columns that exist and the one that may be meant.

    >>> unknown_column("scroe", "score", ["id", "score"], "the frame")
    "the frame has no column 'scroe' (score). Its columns are 'id', 'score'. Did you mean 'score'?"
    """
    lower = {str(known).strip().lower(): known for known in names}
    asked = name.strip().lower()
    near = difflib.get_close_matches(asked, lower, n=1, cutoff=0.5) or [
        known for known in lower if asked and known.startswith(asked)
    ]
    shown = ", ".join(repr(known) for known in names[:30])
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    what = f"column {name!r}{f' ({role})' if role else ''}"
    return f"{of} has no {what}. Its columns are {shown}{more}.{hint}"


def check_class_columns(values: Any, classes: Sequence[Any] | NDArray[Any], name: str) -> None:
    """Refuse a frame whose columns are named by the classes, but in another order than these.

    Names may have a common prefix, such as ``p_no`` and ``p_yes``. Other names are allowed, since
    columns are read by their position (see `as_in_fit`).

    >>> import pandas as pd
    >>> check_class_columns(pd.DataFrame({"yes": [0.9], "no": [0.1]}), ["no", "yes"], "scores")
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: scores must have the columns 'no', 'yes' in this order, but \
they came as 'yes', 'no'. Columns are read by their place: pass frame[['no', 'yes']].
    """
    native = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if native is None or callable(native):
        return
    ordered = _in_class_order(native, classes)
    if ordered is not None and ordered != [str(column) for column in native]:
        right, came = (", ".join(map(repr, each[:8])) for each in (ordered, list(map(str, native))))
        raise InputError(
            f"{name} must have the columns {right} in this order, but they came as {came}. "
            f"Columns are read by their place: pass frame[{ordered[:8]}]."
        )


def _in_class_order(
    names: Sequence[Any], classes: Sequence[Any] | NDArray[Any]
) -> list[str] | None:
    """The names of columns in the order of the classes, if they are the classes' names with a
    common prefix; else None."""
    found, wanted = [str(column) for column in names], [str(label) for label in classes]
    if len(found) != len(wanted) or len(found) < 2:
        return None
    starts = {
        found[0][: -len(end)] if end else found[0] for end in wanted if found[0].endswith(end)
    }
    each = [[start + label for label in wanted] for start in sorted(starts)]
    fitting = [ordered for ordered in each if sorted(ordered) == sorted(found)]
    return found if found in fitting else fitting[0] if fitting else None


# --- Names of columns at the fit, and later -------------------------------------------------------


def column_names(values: Any) -> tuple[str | int, ...]:
    """The names of the columns of a frame in memory, if there are two or more: all text, or all
    whole numbers.

    Other names (of several levels, dates, text beside numbers) become text.

    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"low": [0.3], "high": [0.7]})), column_names([[0.3, 0.7]])
    (('low', 'high'), ())
    """
    frame = _as_dataframe(values)
    if frame is None:
        return ()
    return _unique_names(frame.columns) or _unique_names([str(name) for name in frame.columns])


def column_kinds(values: Any) -> tuple[str, ...]:
    """The kind of each column of a frame in memory: "whole", "number" or "text".

    "whole" are whole numbers without gaps. "number" are all other numbers and truth values. "text"
    is everything else.

    >>> import pandas as pd
    >>> column_kinds(pd.DataFrame({"age": [31, 45], "income": [2.5, 3.0], "region": ["a", "b"]}))
    ('whole', 'number', 'text')
    """
    frame = _as_dataframe(values)
    return () if frame is None else tuple(map(_kind_of, frame.iter_columns()))


def _kind_of(column: Any) -> str:
    if column.dtype.is_integer():
        return "number" if column.null_count() else "whole"
    return "number" if column.dtype.is_numeric() or str(column.dtype) == "Boolean" else "text"


def score_column_facts(scores: Any) -> dict[str, Any]:
    """The names of the columns of scores as facts for a provenance; empty where they have none.

    >>> score_column_facts([[0.3, 0.7]])
    {}
    """
    names = column_names(scores)
    return {"score_columns": list(names)} if names else {}


def as_in_fit(
    scores: Any,
    provenance: Mapping[str, Any],
    classes: Sequence[Any] | NDArray[Any],
) -> Any:
    """Scores with their columns in the order of the fit.

    The names of the columns in the fit are in its ``provenance``. Other names are refused, unless
    they are those of the classes. Columns without names (arrays) keep their order, and so do
    columns of a fit without names.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"high": [0.7], "low": [0.1], "mid": [0.2]})
    >>> as_in_fit(frame, {"score_columns": ["low", "mid", "high"]}, [0, 1, 2]).columns.tolist()
    ['low', 'mid', 'high']
    """
    known = _unique_names(provenance.get("score_columns"))
    found = column_names(scores) if known else ()
    if set(found) != set(known) and _in_class_order(found, classes) is not None:
        check_class_columns(scores, classes, "scores")
        return scores
    return reorder_columns(scores, known, "scores")


def names_as_in_fit(
    names: tuple[str, ...],
    provenance: Mapping[str, Any],
    classes: Sequence[Any] | NDArray[Any],
) -> tuple[str, ...]:
    """Names of columns of scores in the order of the fit, or of the classes. Other names keep their
    order.

    But if only some names are those of the fit, and one of them is in a wrong place, they are
    refused.

    >>> names_as_in_fit(("high", "low"), {"score_columns": ["low", "high"]}, ["a", "b"])
    ('low', 'high')
    >>> names_as_in_fit(("p_b", "p_a"), {}, ["a", "b"]), names_as_in_fit(("x", "u"), {}, ["a", "b"])
    (('p_a', 'p_b'), ('x', 'u'))
    """
    known = tuple(map(str, _unique_names(provenance.get("score_columns"))))
    if sorted(names) == sorted(known):
        return known
    if ordered := _in_class_order(names, classes):
        return tuple(ordered)
    for name, place in zip(names, known, strict=False):
        if name != place and name in known:
            raise InputError(
                f"columns of scores must be those of the fit, {', '.join(map(repr, known[:20]))}, "
                f"in any order, or others in that order, but {name!r} came in the place of "
                f"{place!r}. Name all columns in the order of the fit."
            )
    return names


def reorder_columns(frame: Any, names: Sequence[Any], refused_as: str = "") -> Any:
    """The frame with its columns in the order of these names, if it has exactly these names.

    If ``refused_as`` is given, a frame with other names is refused, and ``refused_as`` is what the
    error calls it. Columns keep their order where this frame, or that of the fit, has no names
    (only 0, 1, …).

    >>> import pandas as pd
    >>> reorder_columns(pd.DataFrame({"b": [1], "a": [2]}), ("a", "b")).columns.tolist()
    ['a', 'b']
    """
    found = column_names(frame) if len(names) else ()
    if found == tuple(names) or len(found) != len(names):
        return frame
    texts = list(map(str, found))  # files may have made words of numbers
    if set(texts) == set(map(str, names)):
        return _as_dataframe(frame)[:, [texts.index(str(name)) for name in names]].to_native()
    unnamed = tuple(range(len(names)))  # what pandas calls columns without names
    if refused_as and (type(found[0]) is type(names[0]) or unnamed not in (found, tuple(names))):
        lacking, other = (
            ", ".join([repr(one) for one in these if one not in those][:8])
            for these, those in ((names, found), (found, names))
        )
        raise InputError(
            f"{refused_as} must have the columns of the fit, in any order: {lacking} missing, "
            f"{other} unexpected. Rename them, or pass an array, whose columns go by their place."
        )
    return frame


def _as_dataframe(values: Any) -> Any:
    """A frame in memory, wrapped by narwhals; None for any other value."""
    kind = type(values)
    if not (hasattr(kind, "columns") or hasattr(kind, "column_names")):
        return None  # and narwhals is not imported for arrays
    import narwhals as nw

    opened = to_narwhals(values)
    return opened if isinstance(opened, nw.DataFrame) else None


def _unique_names(names: Any) -> tuple[str | int, ...]:
    """The names, if there are at least two, all different, and all text or all whole numbers; else
    ()."""
    given = tuple(map(plain, names)) if isinstance(names, (list, tuple)) else ()
    alike = any(all(type(name) is kind for name in given) for kind in (str, int))
    return given if len(given) > 1 and alike and len(set(given)) == len(given) else ()


def class_column_names(into: str, classes: Sequence[Any]) -> list[str]:
    """A name for the new column of each class: by its label, or by its number if two labels look
    alike.

    >>> class_column_names("p", ["ape", "bee"]), class_column_names("p", ["a", "A"])
    (['p_ape', 'p_bee'], ['p_0', 'p_1'])
    """
    labels = ["".join(c if c.isprintable() else "_" for c in str(label)) for label in classes]
    if len({text.lower() for text in labels}) != len(labels):
        labels = [str(i) for i in range(len(labels))]
    return [f"{into}_{text}" for text in labels]


def segment_columns_of(segment: Any) -> tuple[str, ...]:
    """The names of the columns of segments as a tuple, from one name, a list of names or None.

    >>> segment_columns_of(None), segment_columns_of("country"), segment_columns_of(["a", "b"])
    ((), ('country',), ('a', 'b'))
    """
    given = () if segment is None else (segment,) if isinstance(segment, str) else segment
    listed = tuple(given) if isinstance(given, (list, tuple)) else ()
    if segment is not None and not (listed and all(isinstance(name, str) for name in listed)):
        raise InputError(
            f"segment must be the name of a column, or a list of names, but {segment!r} came."
        )
    if len(set(listed)) < len(listed):
        raise InputError(f"the columns of segments must differ, but {list(listed)} came.")
    return listed


def check_segment_columns(names: Sequence[str], columns: int) -> None:
    """Refuse fewer or more columns of segments than a calibrator has."""
    if len(names) != columns:
        need = "one column" if columns == 1 else f"{columns} columns, from coarse to fine"
        raise InputError(
            f"this calibrator has segments of {need}, but {len(names)} came: {list(names)}. Name "
            "those of the fit, in their order."
        )
