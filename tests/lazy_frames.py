"""The same rows as every kind of frame that a table can be made of."""

from __future__ import annotations

import functools
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa

__all__ = ["KINDS", "LAZY", "frame", "sqlite"]

#: the types of columns that SQLite has
_SQLITE = {"int64": "INTEGER", "double": "REAL", "string": "TEXT", "bool": "BOOLEAN"}


def sqlite(table: pa.Table) -> Any:
    """An Ibis table in SQLite, which knows no NaN and few functions of other engines."""
    database = ibis.sqlite.connect()
    kinds = (f'"{field.name}" {_SQLITE[str(field.type)]}' for field in table.schema)
    database.con.execute(f"CREATE TABLE t ({', '.join(kinds)})")
    marks = ", ".join("?" * table.num_columns)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    database.con.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    return database.table("t")


_MAKERS = {
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(table, connection=_connection()),
    "ibis": ibis.memtable,
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": lambda table: table,
}
#: all but eager Polars, which is the same as lazy
KINDS = tuple(_MAKERS)
LAZY = ("polars", "duckdb", "ibis")


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def frame(kind: str, columns: dict[str, Any]) -> Any:
    """A frame of that kind."""
    return _MAKERS[kind](pa.table(columns))
