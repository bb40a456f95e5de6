"""Files of any size → a score table, and a fitted map → a new column in them, through DuckDB."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from calibrant.data.lazy_checks import BadRowsError, CellsOption, Coding, Names
from calibrant.data.lazy_rows import LazyRows
from calibrant.engines.duckdb.column_sql import document, number, segment, spelling
from calibrant.engines.duckdb.diagnose import (
    HEAVY,
    INFINITE,
    MISSING,
    NEGATIVE,
    OUTSIDE,
    TEXT,
    Check,
    refuse,
)
from calibrant.engines.duckdb.file_labels import Label, classes_of, from_json, missing_words, typed
from calibrant.engines.duckdb.files import Source, find_files, kind_of
from calibrant.engines.duckdb.session import Session, given_or_new
from calibrant.engines.rows_of_files import FileTable, RowsOfFiles, read_rows
from calibrant.errors import InputError

__all__ = ["FileRows", "FileTable", "file_rows", "look_at", "read_table"]

#: rows looked at first to learn the labels' spellings; a later surprise costs one more pass
HEAD = 10_000
#: distinct labels that are fetched before giving up
MANY = 1_000


def read_table(
    files: Sequence[str | os.PathLike[str]],
    *,
    score: str,
    label: str,
    weight: str | None = None,
    pos_label: Any = None,
    probabilities: bool = False,
    cells: CellsOption = "exact",
    session: Session | None = None,
) -> FileTable:
    """The score table of files, by one GROUP BY that never holds the rows in memory.

    Parameters
    ----------
    files : paths or globs of CSV, TSV, JSON lines (also .gz) or Parquet
    score, label, weight : names of columns
    pos_label : label or its text, default: the larger class
    probabilities : bool, default=False
        Refuse scores outside [0, 1].
    cells : "exact", "auto" or int
        Whether scores are kept one by one (see `calibrant.table`).
    session : Session, optional
        Sets threads, memory limit and progress.

    Notes
    -----
    Equal to ``ScoreTable.from_arrays`` of the rows: exactly for whole weights, else up to the order
    of additions (1e-12 relative). The result takes O(D) memory for D distinct scores or cells; the
    grouping spills to disk beyond the session's limit. Labels of text files are typed by all their
    values: true/false are booleans, then whole numbers, numbers, or words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("p;bought\\n0.2;no\\n0.7;yes\\n0.2;yes\\n")
    >>> read = read_table([file], score="p", label="bought")
    >>> read.table, read.classes, read.pos_label
    (ScoreTable(2 scores from 0.2 to 0.7, weight 3: 2 positive, 1 negative), ('no', 'yes'), 'yes')
    """
    names = Names(score, label, weight)
    with given_or_new(session) as open_session:
        rows = file_rows(open_session, files, names, "probability" if probabilities else "score")
        return read_rows(rows, cells=cells, pos_label=pos_label)


def file_rows(
    session: Session, files: Sequence[str | os.PathLike[str]], names: Names, role: str = "score"
) -> FileRows:
    """The rows behind names and globs."""
    wanted = [name for name in names if name]
    return FileRows(session, look_at(session, files, wanted), names, role)


def look_at(
    session: Session,
    files: Sequence[str | os.PathLike[str]],
    wanted: list[str],
    *,
    every: bool = False,
) -> list[Source]:
    """The sources behind names and globs, all of one kind; see `Session.look`."""
    paths = find_files(files)
    kinds = {kind_of(path)[0]: path.name for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"files must be of one kind, but {' and '.join(kinds.values())} came. Run once for "
            "each kind."
        )
    return [session.look(path, wanted, every=every) for path in paths]


@dataclass
class FileRows(RowsOfFiles):
    """The rows of files as DuckDB reads them."""

    session: Session
    sources: list[Source]
    names: Names
    role: str = "score"
    absent: list[str] = field(default_factory=list)

    @property
    def file_names(self) -> list[str]:
        return [source.path.name for source in self.sources]

    @property
    def expected(self) -> list[int | None]:
        return [source.rows for source in self.sources]

    # --- the rows -------------------------------------------------------------------------------

    @functools.cached_property
    def rows(self) -> str:
        """SQL of all rows as (x, y, w, g, r): score, label's spelling, weight, segment, raw."""
        return " UNION ALL ".join(map(self._part, self.sources))

    def _part(self, source: Source) -> str:
        names = self.names
        columns = {
            "x": number(source, source.find(names.score, self.role), self.role),
            "y": spelling(source, source.find(names.label, "label")),
        }
        if names.weight:
            columns["w"] = number(source, source.find(names.weight, "weight"), "weight")
        if names.segment:
            columns["g"] = segment(source, source.find(names.segment, "segment"))
        if names.raw:
            columns["r"] = number(source, source.find(names.raw, "score"), "score")
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return f"SELECT {listed} FROM {source.relation}"

    def lazy(self, coding: Coding) -> LazyRows:
        own = self.names
        names = Names("x", "y", own.weight and "w", own.segment and "g", own.raw and "r")
        frame = nw.from_native(self.session.relation(self.rows))
        return LazyRows(frame, names, coding, self._run, said=self.names)

    def _run(self, ask: Callable[[], Any]) -> Any:
        """Run a query; BadRowsError where the reader itself stumbles over a value.

        DuckDB moves a TRY_CAST into its reader of CSV, and there it fails.
        """
        try:
            return self.session.call(ask)
        except InputError as wrong:
            if type(wrong.__cause__).__name__ == "ConversionException":
                raise BadRowsError from wrong
            raise

    # --- labels ---------------------------------------------------------------------------------

    def coding(self, pos_label: Any, *, all_rows: bool) -> Coding:
        values = {} if all_rows else self._values(f"LIMIT {HEAD}")
        if len(set(values.values())) < 2:  # the file may be sorted by label
            values = self._values()
        if not values:
            self._refuse_labels()
        return classes_of(values, self.names.label, pos_label)

    def _values(self, limit: str = "") -> dict[str, Label]:
        """The distinct spellings of labels (in the first rows only, or in all) and their values."""
        if self.sources[0].kind == "csv":
            query = f"SELECT DISTINCT y FROM (SELECT y FROM ({self.rows}) {limit}) LIMIT {MANY}"
            words = sorted(row[0] for row in self.session.query(query) if row[0] is not None)
            self.absent = missing_words(words)
            return typed([word for word in words if word not in self.absent])
        parts = " UNION ALL ".join(
            f"SELECT {spelling(s, i)} AS y, {document(s, i)} AS j FROM {s.relation}"
            for s in self.sources
            for i in [s.find(self.names.label, "label")]
        )
        query = f"SELECT DISTINCT y, j FROM (SELECT y, j FROM ({parts}) {limit}) LIMIT {MANY}"
        rows = sorted(row for row in self.session.query(query) if row[0] is not None)
        return from_json(dict(rows))

    # --- refusals -------------------------------------------------------------------------------

    def refuse(self, coding: Coding) -> None:
        self._check(self.names.score, self.role, TEXT, MISSING, INFINITE)
        if self.names.raw:
            self._check(self.names.raw, "score", TEXT, MISSING, INFINITE)
        if self.names.weight:
            self._check(self.names.weight, "weight", TEXT, MISSING, INFINITE, NEGATIVE, HEAVY)
        self._refuse_labels()

    def refuse_outside(self) -> None:
        self._check(self.names.score, self.role, OUTSIDE)

    def _check(self, column: str, role: str, *checks: Check) -> None:
        refuse(self.session, self.sources, column, role=role, checks=checks)

    def _refuse_labels(self) -> None:
        """Labels are missing, or there are no rows at all."""
        label, absent = self.names.label, tuple(self.absent)
        refuse(self.session, self.sources, label, role="label", checks=(MISSING,), absent=absent)
        names = ", ".join(self.file_names[:5])
        raise InputError(f"{names} must hold rows of data, but only column names came.")
