"""Why columns were refused: how many rows, the first of them, what to do. Used only on failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calibrant.data.distributions import sum_tolerance
from calibrant.data.score_range import WHAT_TO_DO
from calibrant.data.validation import HEAVIEST
from calibrant.engines.duckdb.column_sql import is_one_of, number, spelling, text
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.engines.files.data_files import MISSING as MISSING_WORDS
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.engines.range_watch import AS_FITTED
from calibrant.engines.rows_of_files import OUTSIDE_ADVICE
from calibrant.errors import InputError


@dataclass(frozen=True)
class Check:
    """One thing that can be wrong with a value: the SQL that says so, and the words for it."""

    sql: str
    must: str
    came: str
    advice: str


# in these, t is the value's text, x its number, m whether it is a word for "no value"
TEXT = Check(
    "x IS NULL AND NOT m", "be numbers", "hold something else", "Correct or drop those rows."
)
MISSING = Check(
    "m OR isnan(x)",
    "be complete",
    "are missing",
    "Drop those rows with --missing drop, or fill them in first.",
)
LEFT_OUT = replace(
    MISSING, advice="Leave their probability empty with --on-missing null, or fill them in first."
)
INFINITE = Check("isinf(x)", "be finite", "are infinite", "Correct or drop those rows.")
NEGATIVE = Check("x < 0", "be at least 0", "are negative", "Correct or drop those rows.")
HEAVY = Check(
    f"x > {HEAVIEST!r}", f"be at most {HEAVIEST:g}", "are more", "Divide all weights by their mean."
)
OUTSIDE = Check("x < 0 OR x > 1", "be probabilities in [0, 1]", "are not", OUTSIDE_ADVICE)
BEYOND = replace(OUTSIDE, must=AS_FITTED, advice=WHAT_TO_DO)


def refuse(
    session: Session,
    sources: Sequence[Source],
    column: str,
    *,
    role: str,
    checks: Sequence[Check],
    absent: Sequence[str] = MISSING_WORDS,
    written: NumberSpelling | None = None,
    missing_advice: Callable[[int], str] | None = None,
) -> None:
    """Raise an InputError for the first of the checks that some row fails; return if none does.

    ``missing_advice`` is told how many values of the column are missing. It says what to do where
    other columns lack more, and nothing where the advice of the check will do.
    """
    seen, total = dict.fromkeys(checks, 0), 0
    first: dict[Check, tuple[str, int, str]] = {}
    for source in sources:
        counted, *found = session.query(_survey(source, column, role, checks, absent, written))[0]
        total += counted
        for check, (count, row, value) in zip(checks, _triples(found), strict=True):
            seen[check] += count
            if count and check not in first:
                first[check] = (source.path.name, row, value)
    for check in checks:
        if check in first:
            file, row, value = first[check]
            told = missing_advice(seen[check]) if check is MISSING and missing_advice else ""
            raise InputError(
                f"{role} column {column!r} must {check.must}: {seen[check]:,} of {total:,} rows "
                f"{check.came} (first: {_shown(value)}data row {row:,} of {file}). "
                f"{told or _advice(check, value)}"
            )


def _survey(
    source: Source,
    column: str,
    role: str,
    checks: Sequence[Check],
    absent: Sequence[str],
    written: NumberSpelling | None,
) -> str:
    """SQL: the number of rows, then for each check its count, first row and the value there."""
    place = source.find(column, role)
    if role in ("label", "segment"):
        raw, value = spelling(source, place), "NULL::DOUBLE"
    else:
        raw, value = f"{text(source, place)}::VARCHAR", number(source, place, role, written)
    missing = f"coalesce({is_one_of(raw, ('', *absent))}, true)"
    wanted = ("count(*)", "min(r)", "arg_min(coalesce(t, ''), r)")
    counts = ", ".join(f"{what} FILTER ({check.sql})" for check in checks for what in wanted)
    return (
        f"SELECT count(*), {counts} FROM (SELECT row_number() OVER () AS r, {raw} AS t, "
        f"{value} AS x, {missing} AS m FROM {source.relation})"
    )


def _triples(values: list[object]) -> list[tuple[int, int, str]]:
    return [tuple(values[i : i + 3]) for i in range(0, len(values), 3)]  # type: ignore[misc]


def _shown(value: str | None) -> str:
    return "" if value is None or not value.strip() else f"{value[:40]!r} in "


def _advice(check: Check, value: str | None) -> str:
    if check is TEXT and value and value.strip().endswith("%"):
        return "Write a percent sign after all of them, or after none: 0.5 for 50%."
    if check is TEXT and value and re.match(r"\s*[-+]?[0-9.,]*[.,][0-9]+\s*$", value):
        return "Write all decimals alike: with a point, as 0.5, or all with a comma."
    return check.advice


# --- rows that must sum to one ------------------------------------------------------------------

#: what to do about rows that are to be calibrated
SUMS_TO_APPLY = (
    "The calibrator was fitted on such rows: divide percentages by 100, and make sure that there "
    "is a column for every class; if the rows are right, say on-range allow."
)
#: and about rows that are to be measured
SUMS_TO_MEASURE = (
    "Divide percentages by 100, name a column for every class, and calibrate margins or logits "
    "first."
)
#: values of a row that are shown
SHOWN = 6


def refuse_sums(
    session: Session, sources: Sequence[Source], columns: Sequence[str], *, role: str, advice: str
) -> None:
    """Raise an InputError if some rows are not in [0, 1] with the sum 1; return if all are."""
    bad, total, first = 0, 0, ""
    for source in sources:
        counted, wrong, row, values = session.query(_survey_of_sums(source, columns, role))[0]
        total, bad = total + counted, bad + wrong
        if wrong and not first:
            shown = ", ".join(f"{value:g}" for value in values[:SHOWN])
            more = ", …" if len(values) > SHOWN else ""
            first = f"data row {row:,} of {source.path.name}: {shown}{more}, sum {sum(values):g}"
    if bad:
        named = ", ".join(map(repr, columns[:SHOWN])) + (", …" if len(columns) > SHOWN else "")
        raise InputError(
            f"{role} columns {named} must be probabilities in [0, 1] that sum to 1 in each row: "
            f"{bad:,} of {total:,} rows {'is' if bad == 1 else 'are'} not (first: {first}). "
            f"{advice}"
        )


def _survey_of_sums(source: Source, columns: Sequence[str], role: str) -> str:
    """SQL: rows, rows that are no distributions, the first of these, and its values."""
    given = ", ".join(number(source, source.find(name, role), role) for name in columns)
    near = sum_tolerance(len(columns))
    wrong = f"list_min(x) < 0 OR list_max(x) > 1 OR abs(list_sum(x) - 1) > {near!r}"
    return (
        f"SELECT count(*), count(*) FILTER ({wrong}), min(r) FILTER ({wrong}), "
        f"arg_min(x, r) FILTER ({wrong}) FROM (SELECT row_number() OVER () AS r, "
        f"[{given}] AS x FROM {source.relation})"
    )
