"""The rows of files of any size, read by DuckDB."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from calibrant.data.lazy_checks import (
    MANY,
    BadRowsError,
    Coding,
    Names,
    distinct_labels,
    refuse_nested,
)
from calibrant.data.lazy_rows import LazyRows
from calibrant.engines.duckdb.column_sql import document, is_one_of, segment, spelling, text
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
from calibrant.engines.duckdb.number_columns import NumberColumns
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.engines.files.data_files import MISSING as MISSING_WORDS
from calibrant.engines.files.data_files import find_files, kind_of, one_kind
from calibrant.engines.files.spelled_labels import missing_words, typed_present
from calibrant.engines.files.yes_no_words import Label
from calibrant.engines.rows_of_files import RowsOfFiles
from calibrant.errors import InputError


def file_rows(
    session: Session, files: Sequence[str | os.PathLike[str]], names: Names, role: str = "score"
) -> FileRows:
    """The rows behind names and globs."""
    wanted = list(names.roles().values())
    return FileRows(session, look_at(session, files, wanted), names, role)


def column_names(
    session: Session, files: Sequence[str | os.PathLike[str]], wanted: Sequence[str] = ()
) -> tuple[str, ...]:
    """The columns of the first of some files."""
    return look_at(session, files, list(wanted))[0].names


def look_at(
    session: Session,
    files: Sequence[str | os.PathLike[str]],
    wanted: list[str],
    *,
    every: bool = False,
) -> list[Source]:
    """The sources behind names and globs, all of one kind; see `Session.look`."""
    paths = find_files(files)
    one_kind({kind_of(path)[0]: path.name for path in paths})
    return [session.look(path, wanted, every=every) for path in paths]


@dataclass
class FileRows(RowsOfFiles):
    """The rows of files as DuckDB reads them; ``others`` are further columns of the score's role,
    of which each row must have a value."""

    session: Session
    sources: list[Source]
    names: Names
    role: str = "score"
    others: Sequence[str] = ()
    numbers: NumberColumns = field(init=False)

    def __post_init__(self) -> None:
        names = self.names
        roles = {names.score: "", names.raw: "score", names.weight: "weight"}
        roles |= dict.fromkeys((names.score, *self.others), self.role)
        known = {name: role for name, role in roles.items() if name}
        self.numbers = NumberColumns(self.session, self.sources, known)

    @property
    def file_names(self) -> list[str]:
        return [source.path.name for source in self.sources]

    @property
    def expected(self) -> list[int | None]:
        return [source.rows for source in self.sources]

    # --- the rows -------------------------------------------------------------------------------

    @functools.cached_property
    def frame(self) -> nw.LazyFrame[Any]:
        """All rows, their columns called by their roles; labels are spelled as text."""
        rows = " UNION ALL ".join(map(self._part, self.sources))
        frame: nw.LazyFrame[Any] = nw.from_native(self.session.relation(rows))
        return frame

    def _part(self, source: Source) -> str:
        columns = self.by_role(
            lambda name, role: self.numbers.sql(source, name),
            lambda name: self.label(source),
            lambda name: segment(source, source.find(name, "segment")),
        )
        return self.selected(source, columns)

    def selected(self, source: Source, columns: Mapping[str, str]) -> str:
        """SQL of the rows of a file that are kept, with columns by their names."""
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        kept = f" WHERE NOT ({self._lacks(source)})" if self.session.reading.drop else ""
        return f"SELECT {listed} FROM {source.relation}{kept}"

    def label(self, source: Source) -> str:
        """SQL of the label as text."""
        return spelling(source, source.find(self.names.label, "label"))

    def respell(self) -> bool:
        self.__dict__.pop("frame", None)
        return self.numbers.respell()

    # --- rows without a value -------------------------------------------------------------------

    def _lacks(self, source: Source) -> str:
        """SQL: whether a row has no label, score or weight."""
        label = self.label(source)
        missing = [f"{label} IS NULL"]
        if self.absent:
            missing.append(f"coalesce({is_one_of(label, self.absent)}, true)")
        for column in self.numbers.roles:
            nan = f"coalesce(isnan({self.numbers.sql(source, column)}), false)"
            missing += [self.numbers.missing(source, column), nan]
        return " OR ".join(missing)

    @functools.cached_property
    def absent(self) -> list[str]:
        """Words for "no label" in CSV files."""
        if self.sources[0].kind != "csv":
            return []
        parts = (f"SELECT {self.label(s)} AS label FROM {s.relation}" for s in self.sources)
        rows: nw.LazyFrame[Any] = nw.from_native(self.session.relation(" UNION ALL ".join(parts)))
        return missing_words(distinct_labels(rows, self._run))

    @functools.cached_property
    def dropped(self) -> int:
        return self._lacking() if self.session.reading.drop else 0

    def _lacking(self) -> int:
        """How many rows have no label, score or weight: those that --missing drop leaves out."""
        counts = (
            f"(SELECT count(*) FROM {s.relation} WHERE {self._lacks(s)})" for s in self.sources
        )
        return int(self.session.query(f"SELECT {' + '.join(counts)}")[0][0])

    @property
    def _needed(self) -> str:
        """The roles of which a row must have a value, in words."""
        return " or no ".join(dict.fromkeys((*self.numbers.roles.values(), "label")))

    def facts(self, rows: int | None) -> dict[str, Any]:
        found = super().facts(rows)
        if self.dropped:
            total = "" if rows is None else f" of {rows + self.dropped:,}"
            were = "was" if self.dropped == 1 else "were"
            self.session.note(
                f"{self.dropped:,}{total} rows {were} dropped: no {self._needed} there"
            )
        written = [f"{column!r} {how}" for column, how in self.numbers.written.items() if how]
        return found | ({"numbers_written": written} if written else {})

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self.names, coding, self._run)

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

    def labels(self, rows: int | None) -> dict[Any, Label]:
        if self.sources[0].kind == "csv":
            frame = self.frame if rows is None else self.frame.head(rows)
            return typed_present(distinct_labels(frame, self._run))
        parts = " UNION ALL ".join(
            f"SELECT {spelling(s, i)} AS y, {document(s, i)} AS j FROM {s.relation}"
            for s in self.sources
            for i in [s.find(self.names.label, "label")]
        )
        first = "" if rows is None else f"LIMIT {rows}"
        query = f"SELECT DISTINCT y, j FROM (SELECT y, j FROM ({parts}) {first}) LIMIT {MANY}"
        found = sorted(row for row in self.session.query(query) if row[0] is not None)
        values = {spelled: json.loads(value) for spelled, value in found}
        refuse_nested(values.values(), self.names.label)
        return values

    # --- refusals -------------------------------------------------------------------------------

    def refuse(self, coding: Coding) -> None:
        self.refuse_numbers()
        self.refuse_labels()

    def refuse_numbers(self) -> None:
        """An InputError for scores or weights that are no numbers, when there are some."""
        missing = () if self.session.reading.drop else (MISSING,)
        for column, role in self.numbers.roles.items():
            of_weights = (NEGATIVE, HEAVY) if column == self.names.weight else ()
            self._check(column, role, TEXT, *missing, INFINITE, *of_weights)

    def refuse_outside(self) -> None:
        self._check(self.names.score, self.role, OUTSIDE)

    def refuse_missing_labels(self) -> None:
        """An InputError for missing labels, when there are some."""
        self._check(self.names.label, "label", MISSING, absent=self.absent)

    def _check(
        self, column: str, role: str, *checks: Check, absent: Sequence[str] = MISSING_WORDS
    ) -> None:
        refuse(
            self.session,
            self.sources,
            column,
            role=role,
            checks=checks,
            absent=absent,
            written=self.numbers.written.get(column),
            missing_advice=self._missing_advice,
        )

    def _missing_advice(self, seen: int) -> str:
        """What to do about missing values where other columns have more than the ones seen."""
        rows = self._lacking()
        if rows <= seen:
            return ""
        return (
            f"In all, {rows:,} rows have no {self._needed}: drop them with --missing drop, or fill "
            "them in first."
        )

    def refuse_labels(self) -> None:
        names = ", ".join(self.file_names[:5])
        if self.dropped:
            raise InputError(
                f"{names} must hold rows with a {self.role} and a label: none is left."
            )
        self.refuse_missing_labels()
        raise InputError(f"{names} must hold rows of data, but only column names came.")


def first_rows(
    session: Session, files: Sequence[str | os.PathLike[str]], count: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The columns of the first of the files, and the values of its first rows."""
    source = session.look(find_files(files)[0], [], counted=False)
    columns = [text(source, i) for i in range(len(source.names))]
    rows = session.query(f"SELECT {', '.join(columns)} FROM {source.relation} LIMIT {count}")
    return source.names, rows
