"""Which rows of several columns are no distributions. Used only on failure."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.data.distributions import sum_tolerance
from calibrant.engines.duckdb.column_sql import number
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source
from calibrant.errors import InputError

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
        counted, wrong, row, values = session.query(_survey(source, columns, role))[0]
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


def _survey(source: Source, columns: Sequence[str], role: str) -> str:
    """SQL: rows, rows that are no distributions, the first of these, and its values."""
    given = ", ".join(number(source, source.find(name, role), role) for name in columns)
    near = sum_tolerance(len(columns))
    wrong = f"list_min(x) < 0 OR list_max(x) > 1 OR abs(list_sum(x) - 1) > {near!r}"
    return (
        f"SELECT count(*), count(*) FILTER ({wrong}), min(r) FILTER ({wrong}), "
        f"arg_min(x, r) FILTER ({wrong}) FROM (SELECT row_number() OVER () AS r, "
        f"[{given}] AS x FROM {source.relation})"
    )
