"""Spark, for those who outgrow one machine: tables from files, and whole folders of results."""

from calibrant.engines.spark.apply import apply_file
from calibrant.engines.spark.files import file_rows, first_rows, read_files, write_file
from calibrant.engines.spark.session import Spark

__all__ = [
    "Spark",
    "apply_file",
    "file_rows",
    "first_rows",
    "read_files",
    "write_file",
]
