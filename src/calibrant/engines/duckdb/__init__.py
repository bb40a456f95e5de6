"""DuckDB, the embedded default: CSV, JSON lines and Parquet files of any size, out of core."""

from calibrant.engines.duckdb.apply import apply_file
from calibrant.engines.duckdb.rows import class_rows, column_names, file_rows, first_rows
from calibrant.engines.duckdb.session import Session

__all__ = [
    "Session",
    "apply_file",
    "class_rows",
    "column_names",
    "file_rows",
    "first_rows",
]
