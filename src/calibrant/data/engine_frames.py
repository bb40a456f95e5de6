"""What engines of lazy frames do in different ways: names of columns, tables from memory, joins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
from numpy.typing import NDArray

from calibrant.errors import import_extra

Column = NDArray[Any] | Sequence[str]
Lazy = nw.LazyFrame[Any]

#: names that mean nothing else to any engine
PLAIN = re.compile(r"\w[\w \-]*")


# --- names of columns ---------------------------------------------------------------------------


def plain_names(frame: Lazy) -> tuple[Lazy, dict[str, str]]:
    """The frame with names that no engine misreads, and the new name of each column by its old one.

    Polars takes ``^x$`` for a pattern, DuckDB ``*`` for all columns, Spark a dot for the way into a
    structure, and most of them ``S`` and ``s`` for the same.

    >>> import polars as pl
    >>> frame = nw.from_native(pl.LazyFrame({"*": [1], "s": [2]}))
    >>> plain_names(frame)[1]
    {'*': 'c0', 's': 'c1'}
    """
    names = frame.collect_schema().names()
    alike = len({str(name).lower() for name in names}) < len(names)
    if not alike and all(isinstance(name, str) and PLAIN.fullmatch(name) for name in names):
        return frame, {name: name for name in names}
    plain = [f"c{i}" for i in range(len(names))]
    return renamed(frame, plain), dict(zip(names, plain, strict=True))


def renamed(frame: Lazy, names: Sequence[str]) -> Lazy:
    """The frame with other names for all its columns, given in their order."""
    native: Any = frame.to_native()
    if frame.implementation.is_spark_like():
        return _lazy(native.toDF(*names))
    if frame.implementation.is_duckdb():
        new = (name.replace('"', '""') for name in names)
        places = (f'#{i} AS "{name}"' for i, name in enumerate(new, start=1))
        return _lazy(native.project(", ".join(places)))
    old = frame.collect_schema().names()
    if frame.implementation.is_ibis():
        return _lazy(native.rename(dict(zip(names, old, strict=True))))
    return frame.rename(dict(zip(old, names, strict=True)))


# --- functions ----------------------------------------------------------------------------------


def compute(frame: Lazy, function: str, into: Mapping[str, str]) -> Lazy:
    """The frame with ln or sqrt of columns of positive numbers (or 0, for sqrt), under the names
    that ``into`` gives them.

    The functions of DuckDB and Ibis are called themselves: narwhals tests for negative numbers
    first, whose result is a NaN that SQL Server and MySQL do not know, and divides two logarithms
    to the base 10 on DuckDB, slower and less exact.
    """
    native: Any = frame.to_native()
    if frame.implementation.is_ibis():
        made = {name: getattr(native[column], function)() for column, name in into.items()}
        return _lazy(native.mutate(**made))
    if not frame.implementation.is_duckdb():
        own = {"ln": nw.Expr.log, "sqrt": nw.Expr.sqrt}[function]
        return frame.with_columns(
            *(own(nw.col(column)).alias(name) for column, name in into.items())
        )
    duckdb = import_extra("duckdb", extra="cli")
    values = (
        duckdb.FunctionExpression(function, duckdb.ColumnExpression(column)).alias(name)
        for column, name in into.items()
    )
    return _lazy(native.select(duckdb.StarExpression(), *values))


# --- a table into the engine --------------------------------------------------------------------


def to_backend(table: Mapping[str, Column], like: Lazy) -> Lazy:
    """Columns in memory as a lazy frame of the same engine (and session) as another.

    >>> import numpy as np
    >>> import polars as pl
    >>> like = nw.from_native(pl.LazyFrame({"a": [1]}))
    >>> to_backend({"b": np.array([2.0])}, like).collect().to_dict(as_series=False)
    {'b': [2.0]}
    """
    if like.implementation not in LAZY:  # a table in memory that was made lazy
        return nw.from_dict(dict(table), backend=like.implementation).lazy()
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
