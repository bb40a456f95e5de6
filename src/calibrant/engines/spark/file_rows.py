"""The rows of files, read by Spark; labels are read as the other engine reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from calibrant.data.doubles import first_row
from calibrant.data.lazy_checks import Coding, Names, distinct_labels, refuse_labels
from calibrant.data.lazy_rows import LazyRows
from calibrant.engines.files.spelled_labels import typed_present
from calibrant.engines.files.yes_no_words import Label
from calibrant.engines.rows_of_files import OUTSIDE_ADVICE, RowsOfFiles
from calibrant.engines.spark.file_frame import FileFrame
from calibrant.engines.spark.read import read_files
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError


def file_rows(
    spark: Spark, files: Sequence[str | os.PathLike[str]], names: Names, role: str = "score"
) -> SparkRows:
    """The rows behind names, globs, folders and URLs."""
    wanted = list(names.roles().values())
    return SparkRows(read_files(spark, files, wanted), names, role)


def first_rows(
    spark: Spark, files: Sequence[str | os.PathLike[str]], count: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The columns of files, and the values of their first rows."""
    frame = read_files(spark, files).frame
    rows = spark.call(lambda: frame.limit(count).collect())
    return tuple(frame.columns), [tuple(row) for row in rows]


@dataclass
class SparkRows(RowsOfFiles):
    """The rows of files as Spark reads them."""

    files: FileFrame
    names: Names
    role: str = "score"
    frame: nw.LazyFrame[Any] = field(init=False)

    def __post_init__(self) -> None:
        files = self.files
        columns = self.by_role(files.number, files.label, files.segment)
        listed = (column.alias(name) for name, column in columns.items())
        self.frame = nw.from_native(files.frame.select(*listed))

    @property
    def file_names(self) -> list[str]:
        return list(self.files.files)

    @property
    def expected(self) -> list[int | None]:
        return list(self.files.rows)

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self.names, coding, self.files.spark.call)

    def refuse(self, coding: Coding) -> None:
        for rows in self.lazy(coding).apart():
            if rows is not None:
                rows.refuse()

    def refuse_outside(self) -> None:
        column = nw.col("score")
        ends = self.frame.select(column.min().alias("low"), column.max().alias("high"))
        low, high = first_row(self.files.spark.call(ends.collect))
        raise InputError(
            f"probability column {self.names.score!r} must be probabilities in [0, 1], but they "
            f"are from {low:g} to {high:g}. {OUTSIDE_ADVICE}"
        )

    def refuse_labels(self) -> None:
        refuse_labels(self.frame, self.names.label, self.files.spark.call)

    def labels(self, rows: int | None) -> dict[Any, Label]:
        frame = self.frame if rows is None else self.frame.head(rows)
        found = distinct_labels(frame, self.files.spark.call)
        return typed_present(found) if self.files.kind == "csv" else {v: v for v in found}
