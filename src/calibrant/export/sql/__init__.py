"""Calibrators as SQL: one expression, or a lookup table and the query that joins it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrant.data.columns import (
    check_segment_columns,
    class_column_names,
    names_as_in_fit,
    segment_columns_of,
)
from calibrant.errors import InputError, ParameterError, did_you_mean
from calibrant.export.sql.dialects import (
    DBT_MARKS,
    DBT_TABLE,
    Dialect,
    case,
    column_name,
    comment,
    comment_label,
    dialect_of,
    in_brackets,
    indented,
    new_name,
    quoted_name,
    table_name,
    text_literal,
)
from calibrant.export.sql.printer import (
    HEADS,
    SQL,
    LookupJoin,
    QuerySteps,
    SqlPrinter,
    SqlRowPrinter,
    SqlWriter,
    without_overflow,
    write_segments,
)
from calibrant.fitting.fitted import (
    Fitted,
    FittedCalibrator,
    fingerprint,
    map_of,
    to_fitted_map,
    tree_parts_of,
)
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.piecewise import read_probability
from calibrant.rules.plan.nodes import BySegment, Node, Row

__all__ = ["Sql", "to_sql"]

FORMS = ("auto", "expression", "lookup")
#: the fewest characters that a knot takes, and about how many it takes with several classes
LEAST, USUAL = 20, 100


def to_sql(
    calibrator: FittedCalibrator | Map,
    *,
    dialect: str = "duckdb",
    column: str | Sequence[str] = "score",
    form: str = "auto",
    table: str = "scores",
    into: str | None = None,
    lookup: str | None = None,
    segment: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    view: str | None = None,
    threshold: float | None = None,
) -> Sql:
    """A calibrator as plain SQL that gives what ``calibrate`` gives, on any row of any database.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted, or Map
        One that needs more of a row than its scores (and segment) is refused.
    dialect : str, default="duckdb"
        "duckdb", "sqlite", "spark", "databricks", "bigquery", "snowflake", "postgres", "mysql",
        "tsql", "clickhouse", "trino" or "redshift".
    column : str, or one for each class, default="score"
        The column of scores, of any type of numbers; for calibrators of several scores their
        columns, in the order in which they were fitted (the names of the fit may come in any
        order). Names are written as they are, in quotes where they need them.
    form : {"auto", "expression", "lookup"}, default="auto"
        ``"expression"``: one expression of the column: a formula, or a CASE that is a balanced
        tree of comparisons. ``"lookup"``: a script that creates and fills a table of pieces, and
        the query that joins it. ``"auto"``: an expression where it is short, and a lookup where
        that is faster, by dialect: beyond 4,000 characters on Spark, 5,000 on
        DuckDB, 400,000 on SQLite, 800,000 on MySQL, 20,000 elsewhere. On Postgres with
        ``SET jit = off`` an expression is faster at any length.
        Calibrators of several scores have several results: their expression is a whole SELECT.
    table : str, default="scores"
        The table of rows, for queries. Dots separate schema and table. For dbt
        ``{{ ref('name') }}`` and ``{{ source('name', 'table') }}``, of letters, digits and ``_``,
        are written as they are.
    into : str, optional
        The new column of a query; by default "probability", or "decision" with a threshold. With
        several classes its name is followed by their labels: ``probability_cat``, or by numbers
        from 0 where labels are not known. New names that Postgres or Redshift would cut (beyond 63
        and 127 bytes) are refused.
    lookup : str, optional
        The table that a script creates; further ones get a number at the end. By default its name
        is "calibrant_", the view or else the new column, and the fingerprint of the map: each
        calibrator and each fit has its own, and those of older fits stay until you drop them. A
        table of the name that you give is replaced, so that there is one for all fits; two
        calibrators need two names.
    segment : str or list of str, optional
        The column of segments, of the type of their keys, for calibrators that have a map for
        each. Other segments get the common map. Several columns in the order of the fit: a row
        gets the map of the finest segment that is known.
    keep : sequence of str, optional
        The columns of the table that a query gives beside the new ones: its key, say. By default
        all of them; with several scores, where a query takes several steps, those scores.
    view : str, optional
        The name of a view to make, or to replace, of the whole query: the table's rows and their
        probabilities. The comment that says where it came from is part of the view.
    threshold : float in [0, 1], optional
        Write the decision in place of the probability: 1 where ``calibrate`` gives at least this, 0
        where it gives less, NULL where there is no finite score. For calibrators of one score.

    Returns
    -------
    Sql
        A `str`. Its ``statements`` are those of a script, to be run one after another; empty for
        an expression. It opens with a comment: the label and the method, when it was fitted and
        by which version, as far as that is known, and a fingerprint of the map.

    Notes
    -----
    Probabilities agree with ``calibrate`` to 1e-12: engines differ in the last bits of ln and exp.
    At a jump the side is always the same: comparisons are with scores, and numbers are written to
    the last bit. The exceptions are maps that jump at what is computed of several classes, the
    members of a mixture and the map of a top label: there the engine's last bits decide. NULL, NaN
    and infinite scores give NULL, and so does a segment that is NULL. With several classes one such
    score makes the whole row NULL; with labels that do not exclude each other, only its own label.
    Probabilities below 1e-250 may be given as 0. On a very steep line the last bits of a logarithm
    change the value, but never beyond the values at the line's ends.

    A decision compares the raw score with the exact doubles at which ``calibrate`` passes the
    threshold: one comparison for a map that rises or falls, one for each crossing otherwise. So
    it is that of ``calibrate(score) >= threshold`` on every row. The exception is `Quadratic`,
    whose crossings cannot be found exactly: there the probability is computed and compared.

    A band is written as its point. Integers and decimals are compared as doubles, as databases do.
    SQLite needs its mathematical functions, which most builds have, for formulas and lookups, and
    old versions of its parser (3.40) may refuse what is nested deeply ("parser stack overflow"):
    chains of four maps, or of three within a mixture. In Postgres, where a product that underflows
    is an error, scores below 1e-280 count as 0 in products. A query with a lookup joins by equality
    of cells and never changes the number of rows. It belongs to its table: a view of an older
    query must be made anew with it. Takes O(m) time and text for m knots.

    Examples
    --------
    >>> from calibrant.maps import Logistic, Piecewise
    >>> decision = to_sql(Piecewise.step([0.25, 0.5], [0.1, 0.3, 0.8]), threshold=0.2)
    >>> print(decision.partition("*/")[2].strip())
    CASE WHEN score BETWEEN -1.7976931348623157e+308 AND 1.7976931348623157e+308 THEN
      CASE WHEN score < 0.25e0 THEN 0 ELSE 1 END
    END
    """
    if form not in FORMS:
        hint = did_you_mean(form, FORMS)
        raise ParameterError(f"form must be one of {FORMS}, but {form!r} came.{hint}")
    if tree_parts_of(calibrator) is not None:
        raise InputError(
            "this calibrator corrects scores by trees on the columns of a row, which cannot be "
            "written as SQL. Export it as ONNX or Python, or apply it with "
            "calibrant.load(...).calibrate(scores, features=...)."
        )
    map_ = map_of(calibrator)
    at_least = None if threshold is None else read_probability(threshold, "threshold")
    fitted = to_fitted_map(calibrator)
    columns = (column,) if isinstance(column, str) else tuple(column)
    if fitted is not None and isinstance(map_, VectorMap):
        columns = names_as_in_fit(columns, fitted.provenance, fitted.classes)
    request = SqlRequest(
        map=map_,
        fitted=fitted,
        writer=SqlWriter(dialect_of(dialect), lookup=form == "lookup"),
        columns=columns,
        table=table,
        into=("probability" if at_least is None else "decision") if into is None else into,
        lookup=lookup,
        segment=segment_columns_of(segment),
        keep=None if keep is None else tuple(keep),
        view=view,
        threshold=at_least,
        decision=None if at_least is None else map_.decision(at_least),
    )
    request.check()
    sql = _choose_form(request) if form == "auto" else request.written()
    request.check_dbt(sql)
    return sql


def _choose_form(request: SqlRequest) -> Sql:
    """The SQL in the faster of both forms, expression or lookup."""
    dialect = request.writer.dialect
    other = replace(request, writer=SqlWriter(dialect, lookup=True))
    several = isinstance(request.map, VectorMap)
    long = request.printed.size * (USUAL if several else LEAST) > dialect.longest
    plain = None if long else _sql_if_short_enough(request)
    if plain is not None and (several or len(plain) <= dialect.longest):
        return plain
    looked_up = _sql_if_short_enough(other)
    if looked_up is None:  # none is short enough for one query: the error of the first says so
        return request.written() if plain is None else plain
    return looked_up if plain is None or other.writer.joins else plain


def _sql_if_short_enough(request: SqlRequest) -> Sql | None:
    """The SQL of a request; None where it would be too long."""
    try:
        return request.written()
    except TooLongError:
        return None


# --- An export to SQL: what was asked for, its checks, and the whole text -------------------------


#: the most characters of one expression or query: parsers are not made for more
LONGEST = 1_000_000
#: the most characters of a view or column in the name of a lookup table: with what comes before and
#: after them they stay within the 63 bytes that Postgres reads of a name
LONGEST_PART = 30
#: from this length on, users of a database that compiles queries are told to turn that off
COMPILED = 2_000


class TooLongError(InputError):
    """The error of SQL that is longer than databases take."""


@dataclass(frozen=True)
class SqlRequest:
    """What to write as SQL: the map, and the names of tables and columns.

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
        """The map that is written: the calibrator's, or that of its decision."""
        return self.map if self.decision is None else self.decision

    @cached_property
    def lookup_name(self) -> str:
        """The name of the lookup table: as asked, or one that no other map has."""
        if self.lookup is not None:
            return self.lookup
        return f"{self._lookup_prefix}{fingerprint(self.printed)}"

    @property
    def _lookup_prefix(self) -> str:
        """The name of the lookup table up to the fingerprint."""
        own = re.sub(r"[^a-z0-9]+", "_", str(self.view or self.into).lower())
        own = own[-LONGEST_PART:].strip("_")
        return f"calibrant_{own}_" if own else "calibrant_"

    def check(self) -> None:
        """Refuse columns, segments and views that do not fit the map."""
        if self.view is not None and _name_parts(self.view) in (
            _name_parts(self.table),
            _name_parts(self.lookup_name),
        ):
            raise InputError(
                f"the view must have a name of its own, but {self.view!r} is that of the rows or "
                "of the lookup table. Rename the view."
            )
        wanted = self.map.n_columns
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
        check_segment_columns(self.segment, self.map.n_segment_columns)

    def check_lookup_name(self) -> None:
        """Refuse a name for the lookup table that is the table of rows.

        Schemas count only where both names have them: the database may add the other's.
        """
        *schema, own = _name_parts(self.lookup_name)
        *its_schema, rows = _name_parts(self.table)
        ends = zip(reversed(schema), reversed(its_schema), strict=False)
        numbered = rf"{re.escape(own)}(_[0-9]+)?({NEW}|{OLD})?"
        if all(one == other for one, other in ends) and re.fullmatch(numbered, rows):
            raise InputError(
                f"the lookup table must be another one than that of the rows: the script replaces "
                f"it. But lookup is {self.lookup_name!r} and table {self.table!r}. Rename the "
                "lookup."
            )

    def check_dbt(self, sql: str) -> None:
        """Refuse SQL of which dbt would read more than the table as its own."""
        if not DBT_TABLE.fullmatch(str(self.table)):
            return
        rest = sql.replace(f"FROM {self.table} AS r", "")
        if marks := [mark for mark in DBT_MARKS if mark in rest]:
            raise InputError(
                "the SQL of a table that dbt names must hold nothing else that dbt would read, but "
                f"{marks[0]} is in the name of a column or the key of a segment. Rename it, or "
                "give table= the plain name of the table."
            )

    def written(self) -> Sql:
        """The whole SQL text: an expression, a query, or a view."""
        plan, dialect = self.printed.plan(SQL), self.writer.dialect
        if isinstance(plan, Row):
            steps = self._new_query(self.columns if self.keep is None else self.keep)
            scores = [self._score_column(own, "r") for own in self.columns]
            found = SqlRowPrinter(scores, steps).probabilities(plan)
            names = self._class_columns(len(found))
            last = [f"{p} AS {own}" for p, own in zip(found, names, strict=True)]
            query = _check_length(steps.query(last))
            return self._script(query, "The query: a probability for every class.")
        if not self.writer.lookup and self.view is None:
            text = _check_length(self._expression(plan, ""))
            return Sql(self._header(text) + text)
        value = _check_length(self._expression(plan, "r"))
        query = self._new_query(self.keep).query([f"{value} AS {new_name(self.into, dialect)}"])
        new = "calibrated probability" if self.threshold is None else "decision"
        return self._script(query, f"The query: every row as it is, and its {new}.")

    def _new_query(self, kept: Sequence[str] | None) -> QuerySteps:
        """An empty query that keeps some columns of the table, or all."""
        dialect = self.writer.dialect
        keep = ["r.*"] if kept is None else [column_name(own, "r", dialect) for own in kept]
        is_dbt = isinstance(self.table, str) and DBT_TABLE.fullmatch(self.table)
        table = self.table if is_dbt else table_name(self.table, dialect)
        prefix, heads, taken = "", "|".join(HEADS), (*(kept or ()), self.table)
        while any(re.fullmatch(rf"{prefix}({heads})[0-9_]*", own.lower()) for own in taken):
            prefix += "c_"
        return QuerySteps(self.writer, table, self.lookup_name, keep, prefix)

    def _score_column(self, own: str, source: str) -> str:
        """SQL of a column of scores, read as doubles."""
        dialect = self.writer.dialect
        return dialect.column.format(column_name(own, source, dialect))

    def _expression(self, plan: Node, source: str) -> str:
        """SQL of the probability of one score; NULL where the score is no number."""
        dialect = self.writer.dialect
        score = self._score_column(self.columns[0], source)
        known = dialect.is_finite(score)
        # decisions are written as 0 and 1, but a lookup table holds doubles
        whole = self.decision is not None and not self.writer.lookup
        printer = SqlPrinter(self.writer, score, whole=whole)
        if isinstance(plan, BySegment):
            segments = [column_name(own, source, dialect) for own in self.segment]
            text = write_segments(plan, segments, printer)
            known = " AND ".join([known, *(f"{own} IS NOT NULL" for own in segments)])
        else:
            text = printer.write(without_overflow(plan, dialect))
        if self.threshold is not None and not whole:
            least = self.threshold if self.decision is None else 1.0
            text = case([(in_brackets("(", text, f") >= {dialect.number(least)}"), "1")], "0")
        text = f"CASE WHEN {known} THEN\n{indented(text)}\nEND"
        return text if self.threshold is not None else dialect.result.format(text)

    def _class_columns(self, count: int) -> list[str]:
        """The names of the new columns of several classes."""
        labels = self.fitted.classes if self.fitted else range(count)
        ends = [text.replace("${", "_{") for text in class_column_names("", labels)]
        return [new_name(f"{self.into}{end}", self.writer.dialect) for end in ends]

    def _script(self, query: str, about: str) -> Sql:
        """The whole script: a comment, statements that make lookup tables, and the query or
        view."""
        dialect, header = self.writer.dialect, self._header(query)
        made = lookup_statements(self.writer.joins, self.lookup_name, dialect)
        if made:
            self.check_lookup_name()
        head, last = header, [comment(about) + query]
        if self.view is not None:
            own, head = table_name(self.view, dialect), header if made else ""
            last = [text.format(own=own, query=header + query) for text in dialect.view]
        text = statements = [*made, *last]
        if made and not dialect.swap:
            first, *rest = last
            batch = dialect.batch if first.startswith("CREATE") else ""
            text = [*dialect.begin, *made, dialect.commit, batch + first, *rest]
        return Sql(head + ";\n\n".join(text) + ";\n", [head + statements[0], *statements[1:]])

    def _header(self, query: str) -> str:
        """The comment at the top, with the method and the map's fingerprint."""
        text = f"A map of kind {self.map.kind}, written by calibrant"
        if self.fitted is not None:
            positive = self.fitted.pos_label
            of = "" if positive is None else f" of {comment_label(positive)}"
            method = f" by {comment_label(self.fitted.method)}" if self.fitted.method else ""
            facts = self.fitted.provenance
            moment, version = facts.get("fitted_at"), facts.get("calibrant")
            day = f" on {comment_label(moment[:10])[1:-1]}" if isinstance(moment, str) else ""
            by = ""
            if isinstance(version, str):
                by = f" with calibrant {comment_label(version)[1:-1]}"
            made = f"fitted{day}{by}" if day or by else "written by calibrant"
            text = f"The calibrated probability{of}{method}, {made}"
        text += f", fingerprint {fingerprint(self.map)}."
        if self.threshold is not None:
            text = f"1 where the probability is at least {self.threshold!r}, else 0. {text}"
        if self.fitted is not None and self.fitted.score_range is not None:
            text += f" For scores that are {self.fitted.score_range.words()}."
        if self.lookup is None and self.writer.joins:
            names = [self.lookup_name + join.suffix for join in self.writer.joins]
            are = "tables are" if len(names) > 1 else "table is"
            text += (
                f" Its {are} {', '.join(names)}. Every fit has its own, and older ones stay: when "
                f"no view or query reads them any more, DROP TABLE {self._lookup_prefix}<their "
                "fingerprint>."
            )
        slow = len(query) > COMPILED and not self.writer.joins
        return comment(f"{text} {self.writer.dialect.advice * slow}".strip())


def _name_parts(table: str) -> list[str]:
    """The parts of a table's name, lower case and without quotes."""
    if by_dbt := DBT_TABLE.fullmatch(table):
        return [part.lower() for part in by_dbt.groups() if part]
    return [part.strip('"`[]').lower() for part in table.split(".")]


def _check_length(text: str) -> str:
    """The text; one that is longer than databases take is refused."""
    if len(text) > LONGEST:
        raise TooLongError(
            f"this calibrator would be {len(text):,} characters of SQL in one query, and parsers "
            'take about a million. Use form="lookup" for maps of many knots; others apply in '
            "memory: calibrate."
        )
    return text


# --- Statements: a lookup table, its rows, and the query that joins it ----------------------------


#: rows of one INSERT
BATCH = 500
#: the ends of the names of tables that are not yet, or no longer, in their place
NEW, OLD = "_new", "_old"


class Sql(str):
    """SQL text.

    Attributes
    ----------
    statements : tuple of str
        The statements without their semicolons, to be run one after another, in a transaction of
        yours: those that begin and end one are in the text only. Empty where the text is an
        expression, to be used within a query.

    Examples
    --------
    >>> Sql("SELECT 1;", ("SELECT 1",)).statements
    ('SELECT 1',)
    """

    statements: tuple[str, ...]

    def __new__(cls, text: str, statements: Sequence[str] = ()) -> Sql:
        made = super().__new__(cls, text)
        made.statements = tuple(statements)
        return made


def lookup_statements(joins: Sequence[LookupJoin], lookup: str, dialect: Dialect) -> list[str]:
    """The statements that create and fill the lookup tables, in place of older ones."""
    made: list[str] = []
    swaps: list[str] = []
    for join in joins:
        ends = {"own": "", "new": NEW, "old": OLD} if dialect.swap else {"new": ""}
        names = {n: table_name(lookup, dialect, join.suffix + end) for n, end in ends.items()}
        made += _table_statements(join, names["new"], dialect)
        swaps += [text.format(**names) for text in dialect.swap]
    return made + swaps


def _table_statements(table: LookupJoin, own: str, dialect: Dialect) -> Iterator[str]:
    """The statements that create and fill one lookup table."""
    names = [quoted_name(column, dialect) for column in table.columns]
    types: list[str] = []
    literals: list[list[str]] = []
    for column in table.columns.values():
        if isinstance(column, list):
            texts = [text + dialect.key_end for text in column]
            longest = max(len(text.encode()) for text in texts)
            types.append(dialect.text.format(max(longest, 1)))
            literals.append([text_literal(text, dialect) for text in texts])
        elif column.dtype == np.float64:
            types.append(dialect.double)
            literals.append([*map(dialect.stored or dialect.number, column.tolist())])
        else:
            types.append(dialect.integer)
            literals.append([*map(str, column.tolist())])
    lines = [f"{name} {type_}" for name, type_ in zip(names, types, strict=True)]
    if dialect.indexed:
        lines.append(f"PRIMARY KEY ({', '.join(names[: table.key])})")
    columns = indented(",\n".join(lines))
    yield f"DROP TABLE IF EXISTS {own}"
    about = comment(f"The table of {table.about}.")
    yield f"{about}CREATE TABLE {own} (\n{columns}\n){dialect.storage}"
    rows = [f"({', '.join(row)})" for row in zip(*literals, strict=True)]
    for begin in range(0, len(rows), BATCH):
        last = min(begin + BATCH, len(rows))
        about = comment(f"Its rows {begin + 1:,} to {last:,} of {len(rows):,}.")
        batch = indented(",\n".join(rows[begin:last]))
        yield f"{about}INSERT INTO {own} ({', '.join(names)}) VALUES\n{batch}"
