"""What differs between engines: how a small table gets in, how it is joined, what names mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
from numpy.typing import NDArray

from calibrant.errors import InputError, import_extra

__all__ = [
    "EAGER",
    "LAZY",
    "any_case",
    "compute",
    "lazy_branches",
    "left_join",
    "literals_lose_bits",
    "open_frame",
    "to_backend",
]

Column = NDArray[Any] | Sequence[str]
Lazy = nw.LazyFrame[Any]

#: the kinds of frame by narwhals' name for their engine
EAGER = ("pandas", "polars", "pyarrow", "modin", "cudf")


def open_frame(frame: Any) -> nw.DataFrame[Any] | Lazy:
    """A frame of any kind that we know as narwhals sees it, or an InputError that names them."""
    opened = nw.from_native(frame, pass_through=True)
    if isinstance(opened, nw.LazyFrame) and opened.implementation in LAZY:
        return opened
    if isinstance(opened, nw.DataFrame) and opened.implementation.value in EAGER:
        return opened
    kind = f"{type(frame).__module__}.{type(frame).__name__}"
    raise InputError(
        "frame must be a DuckDB relation, a Polars LazyFrame, a PySpark DataFrame or an Ibis table "
        f"(or a pandas, Polars or Arrow table in memory), but {kind} came. For a file, open it "
        "with one of these, for example duckdb.read_parquet(path)."
    )


def any_case(frame: Lazy | nw.DataFrame[Any]) -> bool:
    """Whether the engine takes names that differ only in case for the same."""
    return isinstance(frame, nw.LazyFrame) and not frame.implementation.is_polars()


def literals_lose_bits(frame: Lazy) -> bool:
    """Whether numbers reach the engine as the text of a decimal, whose last bit may be lost."""
    return frame.implementation.is_ibis()


def lazy_branches(frame: Lazy) -> bool:
    """Whether the branches of a when are computed only for the rows that take them."""
    return not frame.implementation.is_polars()


# --- a table into the engine --------------------------------------------------------------------


def to_backend(table: Mapping[str, Column], like: Lazy) -> Lazy:
    """Columns in memory as a lazy frame of the same engine (and session) as another.

    >>> import numpy as np
    >>> import polars as pl
    >>> like = nw.from_native(pl.LazyFrame({"a": [1]}))
    >>> to_backend({"b": np.array([2.0])}, like).collect().to_dict(as_series=False)
    {'b': [2.0]}
    """
    return _lazy(LAZY[like.implementation](table, like.to_native()))


def _lazy(native: Any) -> Lazy:
    opened: Lazy = nw.from_native(native)
    return opened


def _arrow(table: Mapping[str, Column]) -> Any:
    pyarrow = import_extra("pyarrow", extra="cli")
    return pyarrow.table({name: pyarrow.array(column) for name, column in table.items()})


def _into_duckdb(table: Mapping[str, Column], like: Any) -> Any:
    """A scan of the Arrow table on the relation's own connection, the only one it joins with.

    The relation keeps the table alive; nothing is left in the catalog.
    """
    __calibrant_pieces_of_a_map = _arrow(table)  # found by its name, as DuckDB finds variables
    return like.query("__calibrant_frame", "SELECT * FROM __calibrant_pieces_of_a_map")


def _into_polars(table: Mapping[str, Column], like: Any) -> Any:
    return import_extra("polars", extra="cli").DataFrame(dict(table)).lazy()


def _into_spark(table: Mapping[str, Column], like: Any) -> Any:
    return like.sparkSession.createDataFrame(_arrow(table))


def _into_ibis(table: Mapping[str, Column], like: Any) -> Any:
    return import_extra("ibis", extra="cli").memtable(_arrow(table))


LAZY: dict[nw.Implementation, Callable[[Mapping[str, Column], Any], Any]] = {
    nw.Implementation.DUCKDB: _into_duckdb,
    nw.Implementation.POLARS: _into_polars,
    nw.Implementation.PYSPARK: _into_spark,
    nw.Implementation.PYSPARK_CONNECT: _into_spark,
    nw.Implementation.IBIS: _into_ibis,
}


# --- joining ------------------------------------------------------------------------------------


def left_join(frame: Lazy, table: Mapping[str, Column], on: str) -> Lazy:
    """All rows with what a small table has for them, NULL where it has nothing."""
    return JOINS.get(frame.implementation, _join)(frame, table, on)


def _join(frame: Lazy, table: Mapping[str, Column], on: str) -> Lazy:
    return frame.join(to_backend(table, frame), on=on, how="left")


def _join_polars(frame: Lazy, table: Mapping[str, Column], on: str) -> Lazy:
    """Polars keeps the order of rows if it is asked to."""
    rows: Any = frame.to_native()
    other = to_backend(table, frame).to_native()
    return _lazy(rows.join(other, on=on, how="left", maintain_order="left"))


def _join_spark(frame: Lazy, table: Mapping[str, Column], on: str) -> Lazy:
    """The table is sent to every executor, instead of sorting the rows."""
    other: Any = to_backend(table, frame).to_native()
    return frame.join(_lazy(other.hint("broadcast")), on=on, how="left")


JOINS: dict[nw.Implementation, Callable[..., Lazy]] = {
    nw.Implementation.POLARS: _join_polars,
    nw.Implementation.PYSPARK: _join_spark,
    nw.Implementation.PYSPARK_CONNECT: _join_spark,
}


# --- functions ----------------------------------------------------------------------------------


def compute(frame: Lazy, function: str, column: str, into: str) -> Lazy:
    """The frame with ln or sqrt of a column of positive numbers (or 0, for sqrt) as one more."""
    return COMPUTING.get(frame.implementation, _compute)(frame, function, column, into)


def _compute(frame: Lazy, function: str, column: str, into: str) -> Lazy:
    return frame.with_columns(FUNCTIONS[function](nw.col(column)).alias(into))


def _compute_duckdb(frame: Lazy, function: str, column: str, into: str) -> Lazy:
    """By DuckDB's own functions: narwhals tests for negative numbers first, and divides two
    logarithms to the base 10, slower and less exact."""
    duckdb = import_extra("duckdb", extra="cli")
    rows: Any = frame.to_native()
    value = duckdb.FunctionExpression(function, duckdb.ColumnExpression(column))
    return _lazy(rows.select(duckdb.StarExpression(), value.alias(into)))


FUNCTIONS: dict[str, Callable[[nw.Expr], nw.Expr]] = {
    "ln": lambda column: column.log(),
    "sqrt": lambda column: column.sqrt(),
}
COMPUTING: dict[nw.Implementation, Callable[[Lazy, str, str, str], Lazy]] = {
    nw.Implementation.DUCKDB: _compute_duckdb,
}
