"""Spark, for those who outgrow one machine: tables from files, and whole folders of results."""

from calibrant.engines.spark.apply import apply_file
from calibrant.engines.spark.file_rows import file_rows, first_rows
from calibrant.engines.spark.read import read_files
from calibrant.engines.spark.session import Spark
from calibrant.engines.spark.write import write_file

__all__ = [
    "Spark",
    "apply_file",
    "file_rows",
    "first_rows",
    "read_files",
    "write_file",
]
