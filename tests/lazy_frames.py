"""The same rows as every kind of frame that a table can be made of."""

from __future__ import annotations

import functools
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa

__all__ = ["KINDS", "LAZY", "frame"]

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
