"""An export to SQL: what was asked for, its checks, and the whole text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from calibrant.data.naming import check_segment_names, class_column_names
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.map_given import fingerprint
from calibrant.export.sql.layout import (
    DBT_MARKS,
    DBT_TABLE,
    case,
    column_name,
    comment,
    inside,
    label,
    name,
    shifted,
    table_name,
)
from calibrant.export.sql.overflow import guarded
from calibrant.export.sql.printer import SQL, SqlPrinter
from calibrant.export.sql.row_printer import HEADS, QuerySteps, SqlRowPrinter
from calibrant.export.sql.script import NEW, OLD, Sql, script, tables
from calibrant.export.sql.segment_printer import write_segmented
from calibrant.export.sql.writer import SqlWriter
from calibrant.maps import Map, VectorMap
from calibrant.plan.nodes import BySegment, Node
from calibrant.plan.row_nodes import Row

#: the most characters of one expression or query: parsers are not made for more
LONGEST = 1_000_000
#: the most characters of a view or column in the name of a lookup table: with what comes before and
#: after them they stay within the 63 bytes that Postgres reads of a name
LONGEST_PART = 30
#: from this length on, users of a database that compiles queries are told to turn that off
COMPILED = 2_000


class TooLongError(InputError):
    """SQL that parsers do not take."""


@dataclass(frozen=True)
class Request:
    """A map, the names of tables and columns in its SQL, and the writer that collects joins.

    ``decision`` is the map of 0 and 1 that stands for the comparison with the threshold.
    """

    map: Map
    fitted: Fitted | None
    writer: SqlWriter
    columns: tuple[str, ...]
    table: str
    into: str
    lookup: str | None
    segment: tuple[str, ...]
    keep: tuple[str, ...] | None
    view: str | None
    threshold: float | None
    decision: Map | None

    @property
    def printed(self) -> Map:
        """The map that is written."""
        return self.map if self.decision is None else self.decision

    @cached_property
    def lookup_name(self) -> str:
        """The table that a script creates: as asked, or one that no other map has."""
        if self.lookup is not None:
            return self.lookup
        return f"{self._lookup_stem}{fingerprint(self.printed)}"

    @property
    def _lookup_stem(self) -> str:
        """What the names of a view's or column's lookup tables of all fits begin with."""
        own = re.sub(r"[^a-z0-9]+", "_", str(self.view or self.into).lower())
        own = own[-LONGEST_PART:].strip("_")
        return f"calibrant_{own}_" if own else "calibrant_"

    def check(self) -> None:
        """Refuse what does not fit the map."""
        if self.view is not None and _parts(self.view) in (
            _parts(self.table),
            _parts(self.lookup_name),
        ):
            raise InputError(
                f"the view must have a name of its own, but {self.view!r} is that of the rows or "
                "of the lookup table. Rename the view."
            )
        wanted = self.map.n_columns if isinstance(self.map, VectorMap) else 1
        if len(self.columns) != wanted:
            raise InputError(
                f"column must name {wanted} column{'s' if wanted > 1 else ''} of scores, but "
                f"{len(self.columns)} came: {list(self.columns)}."
            )
        if self.map.segments is not None and not self.segment:
            raise InputError(
                "this calibrator has a map per segment: name the column of segments with segment=."
            )
        if self.map.segments is None and self.segment:
            raise InputError(
                "segment= is only for calibrators with a map per segment; this has one for all."
            )
        check_segment_names(self.segment, self.map.n_segment_columns)

    def check_tables(self) -> None:
        """Refuse to replace the table of rows by a lookup; for scripts that make tables.

        Schemas count only where both names have them: the database may add the other's.
        """
        *schema, own = _parts(self.lookup_name)
        *its_schema, rows = _parts(self.table)
        ends = zip(reversed(schema), reversed(its_schema), strict=False)
        numbered = rf"{re.escape(own)}(_[0-9]+)?({NEW}|{OLD})?"
        if all(one == other for one, other in ends) and re.fullmatch(numbered, rows):
            raise InputError(
                f"the lookup table must be another one than that of the rows: the script replaces "
                f"it. But lookup is {self.lookup_name!r} and table {self.table!r}. Rename the "
                "lookup."
            )

    def check_dbt(self, sql: str) -> None:
        """Refuse SQL for a table that dbt names where dbt would read more of it as its own."""
        own = DBT_TABLE.fullmatch(str(self.table))
        marks = [mark for mark in DBT_MARKS if mark in sql.replace(self.table, "")] if own else []
        if marks:
            raise InputError(
                "the SQL of a table that dbt names must hold nothing else that dbt would read, but "
                f"{marks[0]} is in the name of a column or the key of a segment. Rename it, or "
                "give table= the plain name of the table."
            )

    def written(self) -> Sql:
        """The SQL: an expression, or a query with the tables that it needs, or a view."""
        plan, dialect = self.printed.plan(SQL), self.writer.dialect
        if isinstance(plan, Row):
            return self._several(plan)
        if not self.writer.lookup and self.view is None:
            text = _checked(self._one(plan, ""))
            return Sql(self._header(text) + text)
        value = _checked(self._one(plan, "r"))
        query = self._steps(self.keep).query([f"{value} AS {name(self.into, dialect)}"])
        new = "calibrated probability" if self.threshold is None else "decision"
        return self._script(query, f"The query: every row as it is, and its {new}.")

    def _several(self, plan: Row) -> Sql:
        """The query of a plan of several scores."""
        steps = self._steps(self.columns if self.keep is None else self.keep)
        scores = [self._score(own, "r") for own in self.columns]
        found = SqlRowPrinter(scores, steps).probabilities(plan)
        last = [f"{p} AS {own}" for p, own in zip(found, self._names(len(found)), strict=True)]
        query = _checked(steps.query(last))
        return self._script(query, "The query: a probability for every class.")

    def _steps(self, kept: Sequence[str] | None) -> QuerySteps:
        """The query in the making. It keeps some columns of the table, or all."""
        dialect = self.writer.dialect
        keep = ["r.*"] if kept is None else [column_name(own, "r", dialect) for own in kept]
        is_dbt = isinstance(self.table, str) and DBT_TABLE.fullmatch(self.table)
        table = self.table if is_dbt else table_name(self.table, dialect)
        prefix = _prefix((*(kept or ()), self.table))
        return QuerySteps(self.writer, table, self.lookup_name, keep, prefix)

    def _score(self, own: str, source: str) -> str:
        dialect = self.writer.dialect
        return dialect.column.format(column_name(own, source, dialect))

    def _one(self, plan: Node, source: str) -> str:
        """The map of one score as SQL: NULL where the score is no number."""
        dialect = self.writer.dialect
        score = self._score(self.columns[0], source)
        known = dialect.is_finite(score)
        printer = SqlPrinter(self.writer, score, whole=self._whole)
        if isinstance(plan, BySegment):
            segments = [column_name(own, source, dialect) for own in self.segment]
            text = write_segmented(plan, segments, printer)
            known = " AND ".join([known, *(f"{own} IS NOT NULL" for own in segments)])
        else:
            text = printer.write(guarded(plan, dialect))
        text = self._compared(text)
        whole = f"CASE WHEN {known} THEN\n{shifted(text)}\nEND"
        return whole if self.threshold is not None else dialect.result.format(whole)

    @property
    def _whole(self) -> bool:
        """Whether the values are written as 0 and 1; a lookup table holds them as doubles."""
        return self.decision is not None and not self.writer.lookup

    def _compared(self, text: str) -> str:
        """1 or 0 for a threshold: the text itself where it is that, else a comparison."""
        if self.threshold is None or self._whole:
            return text
        least = self.threshold if self.decision is None else 1.0
        reached = inside("(", text, f") >= {self.writer.dialect.number(least)}")
        return case([(reached, "1")], "0")

    def _names(self, count: int) -> list[str]:
        """The names of the columns of several classes: by their labels, if all of those differ."""
        labels = self.fitted.classes if self.fitted else range(count)
        ends = [text.replace("${", "_{") for text in class_column_names("", labels)]
        return [name(f"{self.into}{end}", self.writer.dialect) for end in ends]

    def _script(self, query: str, about: str) -> Sql:
        """The statements that make tables, and the query or the view of it."""
        dialect, header = self.writer.dialect, self._header(query)
        made = tables(self.writer.joins, self.lookup_name, dialect)
        if self.view is None:
            return script(header, made, [comment(about) + query], dialect)
        own = table_name(self.view, dialect)
        last = [text.format(own=own, query=header + query) for text in dialect.view]
        return script(header if made else "", made, last, dialect)

    def _header(self, query: str) -> str:
        """A comment that says what this is, with the map's fingerprint."""
        text = f"A map of kind {self.map.kind}, written by calibrant"
        if self.fitted is not None:
            positive = self.fitted.pos_label
            of = "" if positive is None else f" of {label(positive)}"
            method = f" by {label(self.fitted.method)}" if self.fitted.method else ""
            text = f"The calibrated probability{of}{method}{_when(self.fitted)}"
        text += f", fingerprint {fingerprint(self.map)}."
        if self.threshold is not None:
            text = f"1 where the probability is at least {self.threshold!r}, else 0. {text}"
        if self.fitted is not None and self.fitted.score_range is not None:
            text += f" For scores that are {self.fitted.score_range.words()}."
        if self.lookup is None and self.writer.joins:
            text += f" {self._about_tables()}"
        slow = len(query) > COMPILED and not self.writer.joins
        return comment(f"{text} {self.writer.dialect.advice * slow}".strip())

    def _about_tables(self) -> str:
        """What to know of lookup tables whose names were not asked for."""
        names = [self.lookup_name + join.suffix for join in self.writer.joins]
        own = f"Its tables are {', '.join(names)}" if len(names) > 1 else f"Its table is {names[0]}"
        return (
            f"{own}. Every fit has its own, and older ones stay: when no view or query reads them "
            f"any more, DROP TABLE {self._lookup_stem}<their fingerprint>."
        )


def _parts(table: str) -> list[str]:
    """The parts of a table's name, in small letters and without quotes."""
    if by_dbt := DBT_TABLE.fullmatch(table):
        return [part.lower() for part in by_dbt.groups() if part]
    return [part.strip('"`[]').lower() for part in table.split(".")]


def _when(fitted: Fitted) -> str:
    """The day of the fit, and what fitted it, as far as they are known."""
    facts = fitted.provenance
    moment, version = facts.get("fitted_at"), facts.get("calibrant")
    day = f" on {label(moment[:10])[1:-1]}" if isinstance(moment, str) else ""
    by = f" with calibrant {label(version)[1:-1]}" if isinstance(version, str) else ""
    return f", fitted{day}{by}" if day or by else ", written by calibrant"


def _prefix(taken: Sequence[str]) -> str:
    """A prefix for the names of steps, so that none is among the names that are taken."""
    prefix, heads = "", "|".join(HEADS)
    while any(re.fullmatch(rf"{prefix}({heads})[0-9_]*", own.lower()) for own in taken):
        prefix += "c_"
    return prefix


def _checked(text: str) -> str:
    if len(text) > LONGEST:
        raise TooLongError(
            f"this calibrator would be {len(text):,} characters of SQL in one query, and parsers "
            'take about a million. Use form="lookup" for maps of many knots; others apply in '
            "memory: calibrate."
        )
    return text
