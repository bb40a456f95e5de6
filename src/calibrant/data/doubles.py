"""Numbers of any type as doubles, each rounded to the nearest: not every engine's cast does so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import narwhals as nw


#: whole numbers beyond are not all doubles
EXACT = 2**53
#: half of any finite double is less; no engine's reading of this number can make it infinite
HALF = 9e307


def as_double(frame: nw.LazyFrame[Any], column: str) -> nw.Expr:
    """A column of numbers or truth values as an expression of doubles.

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
        large = _large(*first_row(frame.select(*ends).collect()))
    if _through_text(kind, engine, large=large):
        value = value.cast(nw.String)
    return value.cast(nw.Float64)


def is_finite(value: nw.Expr) -> nw.Expr:
    """Whether doubles are finite, by comparisons alone: some engines of Ibis know no other test.

    It does not matter whether an engine holds NaN for larger than all numbers or for unequal to
    all; of NULL it is NULL or false.
    """
    half = value * 0.5
    return (half > -HALF) & (half < HALF)


def is_infinite(value: nw.Expr) -> nw.Expr:
    """Whether doubles are infinite: below all numbers, or below them with the sign turned."""
    return (value * 0.5 < -HALF) | (value * -0.5 < -HALF)


def is_nan(value: nw.Expr) -> nw.Expr:
    """Whether doubles are NaN: not NULL, and no number."""
    import narwhals as nw

    # comparisons with NaN are NULL in pandas' frames of Arrow
    number = nw.when(is_finite(value) | is_infinite(value)).then(nw.lit(1)).otherwise(nw.lit(0))
    return ~value.is_null() & (number == 0)


def first_row(frame: nw.DataFrame[Any]) -> tuple[Any, ...]:
    """The values of a frame's first row: of Arrow, too, as numbers and not as its own scalars."""
    return tuple(value.as_py() if hasattr(value, "as_py") else value for value in frame.row(0))


def series_of_doubles(series: nw.Series[Any]) -> nw.Series[Any]:
    """A series of numbers or truth values as doubles."""
    import narwhals as nw

    kind = series.dtype
    large = kind.is_integer() and len(series) > 0 and _large(series.min(), series.max())
    if _through_text(kind, series.implementation, large=large):
        series = series.cast(nw.String)
    return series.cast(nw.Float64)


def _through_text(kind: nw.dtypes.DType, engine: nw.Implementation, *, large: bool) -> bool:
    """Whether numbers of a type must become text first to be rounded to the nearest double.

    Arrow and Polars 1 multiply decimals by a rounded power of ten, and Arrow refuses whole
    numbers that are ``large``, beyond 2⁵³. DuckDB rounds each half of a whole number of 128 bits.
    """
    import narwhals as nw

    if engine.is_pyarrow() or engine.is_pandas_like():
        return kind.is_decimal() or (kind.is_integer() and large)
    if engine.is_polars():
        return kind.is_decimal()
    return engine.is_duckdb() and kind in (nw.Int128, nw.UInt128)


def _large(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and (low < -EXACT or high > EXACT)
