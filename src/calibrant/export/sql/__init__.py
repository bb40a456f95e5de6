"""Calibrators as SQL: one expression, or a lookup table and the query that joins it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibrant.data.naming import names_as_in_fit, segment_names
from calibrant.errors import InputError, ParameterError
from calibrant.export.map_given import fitted_of, map_of
from calibrant.export.sql.dialects import dialect_of
from calibrant.export.sql.request import Request, TooLongError
from calibrant.export.sql.script import Sql
from calibrant.export.sql.writer import SqlWriter
from calibrant.export.thresholds import decision_of, read_threshold
from calibrant.export.tree_parts import tree_parts_of
from calibrant.maps import VectorMap
from calibrant.other_words import did_you_mean

__all__ = ["Sql", "to_sql"]

FORMS = ("auto", "expression", "lookup")
#: the fewest characters that a knot takes, and about how many it takes with several classes
LEAST, USUAL = 20, 100


def to_sql(
    calibrator: Any,
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
        from 0 where labels are not known.
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
    the last bit. The one exception is a mixture over several classes whose members see scores
    divided by their sum: there the engine's sum decides. NULL, NaN and infinite scores give NULL,
    and so does a segment that is NULL. With several classes one such score makes the whole row
    NULL; with labels that do not exclude each other, only its own label. Probabilities below 1e-250
    may be given as 0. On a very steep line the last bits of a logarithm change the value, but never
    beyond the values at the line's ends.

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
    map_, at_least = map_of(calibrator), read_threshold(threshold)
    fitted, columns = fitted_of(calibrator), (column,) if isinstance(column, str) else tuple(column)
    if fitted is not None and isinstance(map_, VectorMap):
        columns = names_as_in_fit(columns, fitted.provenance, fitted.classes)
    request = Request(
        map=map_,
        fitted=fitted,
        writer=SqlWriter(dialect_of(dialect), lookup=form == "lookup"),
        columns=columns,
        table=table,
        into=("probability" if at_least is None else "decision") if into is None else into,
        lookup=lookup,
        segment=segment_names(segment),
        keep=None if keep is None else tuple(keep),
        view=view,
        threshold=at_least,
        decision=decision_of(map_, at_least),
    )
    request.check()
    sql = _faster(request) if form == "auto" else request.written()
    last = 1 if view is None else len(request.writer.dialect.view)
    if len(sql.statements) > last:  # it makes tables
        request.check_tables()
    request.check_dbt(sql)
    return sql


def _faster(request: Request) -> Sql:
    """An expression; or a lookup, where there is one and it is faster."""
    dialect = request.writer.dialect
    other = replace(request, writer=SqlWriter(dialect, lookup=True))
    several = isinstance(request.map, VectorMap)
    long = request.printed.size * (USUAL if several else LEAST) > dialect.longest
    plain = None if long else _if_short(request)
    if plain is not None and (several or len(plain) <= dialect.longest):
        return plain
    looked_up = _if_short(other)
    if looked_up is None:  # none is short enough for one query: the error of the first says so
        return request.written() if plain is None else plain
    return looked_up if plain is None or other.writer.joins else plain


def _if_short(request: Request) -> Sql | None:
    """The SQL, None where it would be too long for one query."""
    try:
        return request.written()
    except TooLongError:
        return None
