"""DuckDB, the embedded default: CSV, JSON lines and Parquet files of any size, out of core."""

from calibrant.engines.duckdb.apply import apply_file
from calibrant.engines.duckdb.file_rows import FileRows, file_rows, first_rows
from calibrant.engines.duckdb.session import Session

__all__ = ["FileRows", "Session", "apply_file", "file_rows", "first_rows"]
