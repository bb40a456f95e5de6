"""Files → a score table, grouped by Spark; the words and labels are those of the other engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from calibrant.data.lazy_checks import CellsOption, Coding, Names, refuse_rows
from calibrant.data.lazy_rows import LazyRows
from calibrant.engines.duckdb.file_labels import classes_of, missing_words, typed
from calibrant.engines.rows_of_files import FileTable, RowsOfFiles, read_rows
from calibrant.engines.spark.file_frame import FileFrame
from calibrant.engines.spark.read import read_files
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError

__all__ = ["SparkRows", "file_rows", "read_table"]

#: rows looked at first to learn the labels, and distinct labels that are fetched before giving up
HEAD, MANY = 10_000, 1_000


def read_table(
    files: Sequence[str | os.PathLike[str]],
    *,
    score: str,
    label: str,
    weight: str | None = None,
    pos_label: Any = None,
    probabilities: bool = False,
    cells: CellsOption = "auto",
    session: Spark,
) -> FileTable:
    """The score table of files, by a GROUP BY of Spark.

    Parameters
    ----------
    files : paths, globs, folders or URLs; see `read_files`
    score, label, weight : names of columns
    pos_label : label or its text, default: the larger class
    probabilities : bool, default=False
        Refuse scores outside [0, 1].
    cells : "auto", "exact" or int
        Whether scores are kept one by one (see `calibrant.table`).
    session : Spark

    Notes
    -----
    Equal to what DuckDB reads from the same files, up to the order of additions (1e-12 relative).
    """
    names = Names(score, label, weight)
    rows = file_rows(session, files, names, "probability" if probabilities else "score")
    return read_rows(rows, cells=cells, pos_label=pos_label)


def file_rows(
    spark: Spark, files: Sequence[str | os.PathLike[str]], names: Names, role: str = "score"
) -> SparkRows:
    """The rows behind names, globs, folders and URLs."""
    wanted = [name for name in names if name]
    return SparkRows(read_files(spark, files, wanted), names, role)


@dataclass
class SparkRows(RowsOfFiles):
    """The rows of files as Spark reads them."""

    files: FileFrame
    names: Names
    role: str = "score"
    frame: nw.LazyFrame[Any] = field(init=False)

    def __post_init__(self) -> None:
        files, names, plain = self.files, self.names, self._plain
        columns = {
            plain.score: files.number(names.score, self.role),
            plain.label: files.label(names.label),
        }
        if names.weight:
            columns[str(plain.weight)] = files.number(names.weight, "weight")
        if names.segment:
            columns[str(plain.segment)] = files.segment(names.segment)
        if names.raw:
            columns[str(plain.raw)] = files.number(names.raw, "score")
        listed = (column.alias(name) for name, column in columns.items())
        self.frame = nw.from_native(files.frame.select(*listed))

    @property
    def _plain(self) -> Names:
        """The columns' names as the frame has them: their roles."""
        return Names(**{role: role for role, name in self.names._asdict().items() if name})

    @property
    def file_names(self) -> list[str]:
        return list(self.files.files)

    @property
    def expected(self) -> list[int | None]:
        return list(self.files.rows)

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self._plain, coding, self.files.spark.call, said=self.names)

    def refuse(self, coding: Coding) -> None:
        for rows in self.lazy(coding).apart():
            if rows is not None:
                refuse_rows(rows.source, rows.names, coding, rows.run, rows.said)

    def refuse_outside(self) -> None:
        column = nw.col(self._plain.score)
        ends = self.frame.select(column.min().alias("low"), column.max().alias("high"))
        low, high = self.files.spark.call(ends.collect).row(0)
        raise InputError(
            f"probability column {self.names.score!r} must be probabilities in [0, 1], but they "
            f"are from {low:g} to {high:g}. Divide percentages by 100; calibrate margins or logits "
            "first."
        )

    def coding(self, pos_label: Any, *, all_rows: bool) -> Coding:
        frame = self.frame if all_rows else self.frame.head(HEAD)
        label = self._plain.label
        # narwhals would number all rows of a label, in one task, to find it only once
        asked = frame.group_by(label).agg(nw.len().alias("rows")).select(label).head(MANY)
        found = self.files.spark.call(asked.collect).get_column(label).to_list()
        labels = [value for value in found if value is not None and value == value]  # noqa: PLR0124
        values: dict[Any, Any] = {value: value for value in labels}
        if self.files.kind == "csv":
            absent = missing_words(labels)
            values = typed(sorted(word for word in labels if word not in absent))
        if not all_rows and len(set(values.values())) < 2:  # perhaps sorted by label
            return self.coding(pos_label, all_rows=True)
        if not values:
            self.refuse(Coding((0, 1), 1, (), ()))
        return classes_of(values, self.names.label, pos_label)
