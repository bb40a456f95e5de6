"""Columns of numbers, and how these are written: plainly, or as most of the column tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from calibrant.engines.duckdb.column_sql import is_missing, is_text, number, text
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.engines.files.number_spelling import (
    SPELLINGS,
    NumberSpelling,
    choose_spelling,
)


class NumberColumns:
    """Columns of numbers by name, with the role of each, and how it is written.

    At first as the job was told, or plainly; `respell` finds out once some cannot be read so.
    """

    def __init__(
        self, session: Session, sources: Sequence[Source], roles: Mapping[str, str]
    ) -> None:
        self.session, self.sources, self.roles = session, sources, roles
        self.written = dict.fromkeys(roles, session.reading.spelling)

    def respell(self) -> bool:
        """Read numbers as most of them are written; whether that is another way than before."""
        found = {
            column: _find_spelling(self.session, self.sources, column, role)
            for column, role in self.roles.items()
        }
        changed, self.written = found != self.written, found
        return changed

    def sql(self, source: Source, column: str) -> str:
        """SQL of a column as DOUBLE; NULL where it holds no number."""
        role = self.roles[column]
        return number(source, source.find(column, role), role, self.written[column])

    def missing(self, source: Source, column: str) -> str:
        """SQL: whether a column has no value, or a word for none; never NULL."""
        return is_missing(source, source.find(column, self.roles[column]))

    def checked(self, source: Source, column: str) -> str:
        """SQL of a column: NULL where its value is missing, infinite where it is no number, which
        is always refused."""
        x, missing = self.sql(source, column), self.missing(source, column)
        return f"CASE WHEN {x} IS NOT NULL THEN {x} WHEN NOT {missing} THEN 'inf'::DOUBLE END"


def _find_spelling(
    session: Session, sources: Sequence[Source], column: str, role: str
) -> NumberSpelling | None:
    """The spelling that reads most numbers of a column; None for plain ones.

    It is noted in the session. An InputError says that a column can be read in two ways.

    Notes
    -----
    One pass over the column of each file. A decimal mark that the job was told is the only one.
    """
    told = session.reading.spelling
    if not any(is_text(source, source.find(column, role)) for source in sources):
        return told
    allowed = [one for one in SPELLINGS if told is None or one.decimal == told.decimal]
    tried: list[NumberSpelling | None] = [*([None] if told is None else []), *allowed]
    read: Counter[NumberSpelling | None] = Counter(dict.fromkeys(tried, 0))
    odd: dict[NumberSpelling | None, str] = {}
    unsure: dict[bool, str] = {}
    for source in sources:
        counts, plainless, apart = session.query(_survey(source, column, role, tried))[0]
        read.update(dict(zip(tried, counts, strict=True)))
        odd = {one: text for one, text in zip(tried, plainless, strict=True) if text} | odd
        unsure = {bool(i): text for i, text in enumerate(apart) if text} | unsure
    name = f"{role} column {column!r} of {sources[0].path.name}"
    best = choose_spelling(read, unsure, name)
    if best is not None and best in odd:
        session.note(_words(role, column, best, odd[best]))
    return best


def _survey(source: Source, column: str, role: str, tried: Sequence[NumberSpelling | None]) -> str:
    """SQL of three lists: how many values each spelling reads; one of these that is no plain
    number; and, of fractions and of percentages, one that a point and a comma read differently."""
    place = source.find(column, role)
    columns = {f"s{i}": number(source, place, role, one) for i, one in enumerate(tried)}
    for i, percent in enumerate((False, True)):
        columns[f"p{i}"], columns[f"c{i}"] = (
            number(source, place, role, NumberSpelling(mark, percent)) for mark in ".,"
        )
    columns |= {"x": number(source, place, role), "t": f"({text(source, place)})::VARCHAR"}
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    numbers = range(len(tried))
    counts = ", ".join(f"count(s{i})" for i in numbers)
    odd = ", ".join(f"arg_min(t, r) FILTER (s{i} IS NOT NULL AND x IS NULL)" for i in numbers)
    apart = ", ".join(f"arg_min(t, r) FILTER (p{i} <> c{i})" for i in (0, 1))
    return (
        f"SELECT [{counts}], [{odd}], [{apart}] FROM (SELECT row_number() OVER () AS r, {listed} "
        f"FROM {source.relation} WHERE NOT {is_missing(source, place)})"
    )


def _words(role: str, column: str, written: NumberSpelling, example: str) -> str:
    """What to say of numbers that are no plain ones.

    >>> _words("score", "p", NumberSpelling(","), "0,75")
    "scores (column 'p') are written with a decimal comma: '0,75' is read as 0.75"
    """
    many = "probabilities" if role == "probability" else f"{role}s"
    shown = f"{example.strip()!r} is read as {written.read(example)!r}"
    return f"{many} (column {column!r}) are written {written}: {shown}"
