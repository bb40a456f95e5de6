"""The rows of files of any size, read by DuckDB."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.door import HEAVIEST, sum_tolerance
from calibrant.data.lazy import (
    MANY,
    NUMBERS,
    BadRowsError,
    Coding,
    LazyRows,
    Names,
    distinct_labels,
    refuse_nested,
)
from calibrant.engines.duckdb import (
    NumberColumns,
    Session,
    Source,
    column_text_sql,
    is_one_of_sql,
    label_sql,
    number_sql,
    segment_sql,
)
from calibrant.engines.files import MISSING as MISSING_WORDS
from calibrant.engines.files import (
    Label,
    NumberSpelling,
    missing_label_words,
    typed_feature,
    typed_present,
)
from calibrant.engines.open_engine import (
    OUTSIDE_ADVICE,
    RowsOfFiles,
)
from calibrant.errors import InputError, import_extra


@dataclass
class FileRows(RowsOfFiles):
    """The rows of files as DuckDB reads them."""

    session: Session
    sources: list[Source]
    names: Names
    role: str = "score"
    columns: Sequence[str] = ()
    numbers: NumberColumns = field(init=False)

    def __post_init__(self) -> None:
        names = self.names
        roles = {names.score: "", names.raw: "score", names.weight: "weight"}
        roles |= dict.fromkeys((names.score, *self.columns), self.role)
        known = {name: role for name, role in roles.items() if name}
        self.numbers = NumberColumns(self.session, self.sources, known)
        self.file_names = [source.path.name for source in self.sources]
        self.expected = [source.rows for source in self.sources]

    # --- the rows -------------------------------------------------------------------------------

    @functools.cached_property
    def frame(self) -> nw.LazyFrame[Any]:
        """All rows as a lazy frame, its columns named by their roles. Labels are text."""
        rows = " UNION ALL ".join(map(self._rows_of_source, self.sources))
        frame: nw.LazyFrame[Any] = nw.from_native(self.session.relation(rows))
        return frame

    def _rows_of_source(self, source: Source) -> str:
        """SQL of the rows of one file, its columns named by their roles."""
        columns = {}
        for role, name in self.names.roles().items():
            if role == "label":
                columns[role] = self.label(source)
            elif role in NUMBERS:
                columns[role] = self.numbers.sql(source, name)
            else:
                columns[role] = segment_sql(source, source.find(name, "segment"))
        return self.selected(source, columns)

    def selected(self, source: Source, columns: Mapping[str, str]) -> str:
        """SQL of some columns of a file, without the rows that are left out."""
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        kept = f" WHERE NOT ({self._lacks_a_value(source)})" if self.session.reading.drop else ""
        return f"SELECT {listed} FROM {source.relation}{kept}"

    def label(self, source: Source) -> str:
        """SQL of the label as text."""
        return label_sql(source, source.find(self.names.label, "label"))

    def respell(self) -> bool:
        self.__dict__.pop("frame", None)
        return self.numbers.respell()

    # --- rows without a value -------------------------------------------------------------------

    def _lacks_a_value(self, source: Source) -> str:
        """SQL of whether a row has no label, score or weight."""
        label = self.label(source)
        missing = [f"{label} IS NULL"]
        if self.absent:
            missing.append(f"coalesce({is_one_of_sql(label, self.absent)}, true)")
        for column in self.numbers.roles:
            nan = f"coalesce(isnan({self.numbers.sql(source, column)}), false)"
            missing += [self.numbers.missing(source, column), nan]
        return " OR ".join(missing)

    @functools.cached_property
    def absent(self) -> list[str]:
        """The words that mean "no label" in these CSV files."""
        if self.sources[0].kind != "csv":
            return []
        parts = (f"SELECT {self.label(s)} AS label FROM {s.relation}" for s in self.sources)
        rows: nw.LazyFrame[Any] = nw.from_native(self.session.relation(" UNION ALL ".join(parts)))
        return missing_label_words(distinct_labels(rows, self._run))

    @functools.cached_property
    def dropped(self) -> int:
        return self._count_lacking() if self.session.reading.drop else 0

    def _count_lacking(self) -> int:
        """How many rows have no label, score or weight."""
        counts = (
            f"(SELECT count(*) FROM {s.relation} WHERE {self._lacks_a_value(s)})"
            for s in self.sources
        )
        return int(self.session.query(f"SELECT {' + '.join(counts)}")[0][0])

    @property
    def _needed_roles(self) -> str:
        """What a row must have, in words: score, weight, label."""
        return " or no ".join(dict.fromkeys((*self.numbers.roles.values(), "label")))

    def facts(self, rows: int | None) -> dict[str, Any]:
        found = super().facts(rows)
        if self.dropped:
            total = "" if rows is None else f" of {rows + self.dropped:,}"
            were = "was" if self.dropped == 1 else "were"
            self.session.note(
                f"{self.dropped:,}{total} rows {were} dropped: no {self._needed_roles} there"
            )
        if self.columns:
            del found["score_column"]
        written = [f"{column!r} {how}" for column, how in self.numbers.written.items() if how]
        return found | ({"numbers_written": written} if written else {})

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self.names, coding, self._run)

    def _run(self, ask: Callable[[], Any]) -> Any:
        """Run a query. BadRowsError where DuckDB's reader fails on a value.

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
            f"SELECT {label_sql(s, i)} AS y, to_json({s.columns[i]})::VARCHAR AS j "
            f"FROM {s.relation}"
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
        """Raise an InputError if some scores or weights are wrong; return if all are right."""
        missing = () if self.session.reading.drop else (MISSING,)
        for column, role in self.numbers.roles.items():
            of_weights = (NEGATIVE, HEAVY) if column == self.names.weight else ()
            self._refuse_values(column, role, TEXT, *missing, INFINITE, *of_weights)

    def refuse_outside(self) -> None:
        self._refuse_values(self.names.score, self.role, OUTSIDE)

    def refuse_missing_labels(self) -> None:
        """Raise an InputError if some labels are missing; return if none is."""
        self._refuse_values(self.names.label, "label", MISSING, absent=self.absent)

    def _refuse_values(
        self, column: str, role: str, *checks: Check, absent: Sequence[str] = MISSING_WORDS
    ) -> None:
        """Raise an InputError if values of a column fail one of these checks."""
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
        """Advice for rows without a value, where other columns lack more; else nothing."""
        rows = self._count_lacking()
        if rows <= seen:
            return ""
        return (
            f"In all, {rows:,} rows have no {self._needed_roles}: drop them with --missing drop, "
            "or fill them in first."
        )

    def refuse_labels(self) -> None:
        names = ", ".join(self.file_names[:5])
        if self.dropped:
            raise InputError(
                f"{names} must hold rows with a {self.role} and a label: none is left."
            )
        self.refuse_missing_labels()
        raise InputError(f"{names} must hold rows of data, but only column names came.")

    # --- rows that are held in memory -----------------------------------------------------------

    def classes(self) -> dict[Any, Label]:
        """The different labels of all rows, by their spelling in the file."""
        values = self.labels(None)
        if not values:
            self.refuse_labels()
        if len(values) >= MANY:
            raise InputError(
                f"label column {self.names.label!r} must hold fewer than {MANY:,} classes, but "
                "more came. Is it the right column?"
            )
        return values

    def with_scores(self, columns: Sequence[str]) -> FileRows:
        """The same rows with other columns of scores, one for each class."""
        return replace(self, names=self.names._replace(score=columns[0]), columns=columns)

    def read(self, codes: Mapping[Any, int], features: Sequence[str] = ()) -> RowsRead:
        """Read all rows into memory; an InputError says which rows are wrong."""
        self.numbers.respell()
        try:
            return self.session.call(lambda: self._read(codes, features))
        except BadRowsError as wrong:
            said = wrong.__cause__ or "some labels are not among the classes"
        self.refuse_numbers()
        self.refuse_missing_labels()
        raise InputError(f"the rows cannot be read: {said}.")

    def _read(self, codes: Mapping[Any, int], features: Sequence[str]) -> RowsRead:
        columns, weight = self.columns, self.names.weight
        asked = [
            self.selected(
                source,
                {
                    **{f"x{i}": self.numbers.sql(source, one) for i, one in enumerate(columns)},
                    **({"w": self.numbers.sql(source, weight)} if weight else {}),
                    "y": self.label(source),
                    **{
                        f"f{i}": column_text_sql(source, source.find(name, "feature"))
                        for i, name in enumerate(features)
                    },
                },
            )
            for source in self.sources
        ]
        reader = self.session.relation(" UNION ALL ".join(asked)).to_arrow_reader(BATCH)
        scores, weights, labels, count = [], [], [], 0
        others: list[list[Any]] = [[] for _ in features]
        try:
            while (batch := _next_batch(reader)) is not None:
                rest = batch.columns
                scores.append(_finite_columns([rest.pop(0) for _ in columns]))
                if weight:
                    weights.append(_finite_columns([rest.pop(0)])[:, 0])
                    if ((weights[-1] < 0.0) | (weights[-1] > HEAVIEST)).any():
                        raise BadRowsError
                labels.append(_codes_of_labels(rest.pop(0), codes))
                for parts, column in zip(others, rest, strict=True):
                    parts.append(column)
                count += len(batch)
                refuse_rows_beyond_memory(count, len(columns) + len(features))
        finally:
            reader.close()
        if not count:
            raise BadRowsError
        frame = None
        if features:
            told, pairs = self.session.reading.spelling, zip(features, others, strict=True)
            typed = {name: typed_feature(parts, name, told) for name, parts in pairs}
            frame = import_extra("pyarrow", extra="cli").table(typed)
        weighed = np.concatenate(weights) if weights else None
        return RowsRead(np.concatenate(scores), np.concatenate(labels), weighed, frame)

    def refuse_sums(self, columns: Sequence[str]) -> None:
        """An InputError for rows of these columns that are no distributions, if there are some."""
        refuse_sums(self.session, self.sources, columns, role=self.role, advice=SUMS_TO_MEASURE)


# --- Rows that are read into memory ---------------------------------------------------------------


#: rows that are fetched together, and scores that are held at most, 8 bytes each
BATCH, MOST_NUMBERS = 100_000, 2**29


class RowsRead(NamedTuple):
    """Rows in memory: scores, the code of each label, weights, and a frame of features. The last
    two may be None."""

    scores: Array
    codes: Index
    weight: Array | None
    features: Any


def refuse_rows_beyond_memory(rows: int, columns: int) -> None:
    """Refuse more scores than fit into memory."""
    if rows * columns > MOST_NUMBERS:
        raise InputError(
            "scores of several classes are held in memory, so there must be at most "
            f"{MOST_NUMBERS:,} of them, but more than {rows:,} rows of {columns} columns came. "
            "Use a sample of the rows; apply takes any number of rows."
        )


def _next_batch(reader: Any) -> Any:
    """The next batch of rows; None at the end."""
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except Exception as error:  # Arrow's words for what the engine says better
        raise BadRowsError from error


def _finite_columns(columns: Sequence[Any]) -> Array:
    """Arrow columns as an array. BadRowsError where a value is no finite number."""
    made = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    if not np.isfinite(made).all():
        raise BadRowsError
    return made.astype(np.float64, copy=False)


def _codes_of_labels(spelled: Any, codes: Mapping[Any, int]) -> Index:
    """The code of each label. BadRowsError where one is missing or not known."""
    if spelled.null_count:
        raise BadRowsError
    words = spelled.dictionary_encode()
    known = [codes.get(word, -1) for word in words.dictionary.to_pylist()]
    if -1 in known:
        raise BadRowsError
    places: Index = np.asarray(known, dtype=np.intp)[words.indices.to_numpy()]
    return places


# --------------------------------------------------------------------------------------------------
# Why columns were refused: how many rows, the first of them, what to do. Used only on failure


@dataclass(frozen=True)
class Check:
    """Something that may be wrong with a value: the SQL that finds it, and the words that say
    it."""

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
INFINITE = Check("isinf(x)", "be finite", "are infinite", "Correct or drop those rows.")
NEGATIVE = Check("x < 0", "be at least 0", "are negative", "Correct or drop those rows.")
HEAVY = Check(
    f"x > {HEAVIEST!r}", f"be at most {HEAVIEST:g}", "are more", "Divide all weights by their mean."
)
OUTSIDE = Check("x < 0 OR x > 1", "be probabilities in [0, 1]", "are not", OUTSIDE_ADVICE)


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
    """Raise an InputError for the first check that some row fails; return if none fails.

    ``missing_advice`` is told how many values of the column are missing. It says what to do where
    other columns lack more, and nothing where the advice of the check will do.
    """
    seen, total = dict.fromkeys(checks, 0), 0
    first: dict[Check, tuple[str, int, str]] = {}
    for source in sources:
        survey = _counts_of_wrong(source, column, role, checks, absent, written)
        counted, *found = session.query(survey)[0]
        total += counted
        for check, count, row, value in zip(
            checks, found[::3], found[1::3], found[2::3], strict=True
        ):
            seen[check] += count
            if count and check not in first:
                first[check] = (source.path.name, row, value)
    for check in checks:
        if check in first:
            file, row, value = first[check]
            told = missing_advice(seen[check]) if check is MISSING and missing_advice else ""
            shown = f"{value[:40]!r} in " if value and value.strip() else ""
            raise InputError(
                f"{role} column {column!r} must {check.must}: {seen[check]:,} of {total:,} rows "
                f"{check.came} (first: {shown}data row {row:,} of {file}). "
                f"{told or _advice_on_value(check, value)}"
            )


def _counts_of_wrong(
    source: Source,
    column: str,
    role: str,
    checks: Sequence[Check],
    absent: Sequence[str],
    written: NumberSpelling | None,
) -> str:
    """SQL: the number of rows; then for each check how many fail, the first of them, and its
    value."""
    place = source.find(column, role)
    if role in ("label", "segment"):
        raw, value = label_sql(source, place), "NULL::DOUBLE"
    else:
        raw, value = (
            f"{column_text_sql(source, place)}::VARCHAR",
            number_sql(source, place, role, written),
        )
    missing = f"coalesce({is_one_of_sql(raw, ('', *absent))}, true)"
    wanted = ("count(*)", "min(r)", "arg_min(coalesce(t, ''), r)")
    counts = ", ".join(f"{what} FILTER ({check.sql})" for check in checks for what in wanted)
    return (
        f"SELECT count(*), {counts} FROM (SELECT row_number() OVER () AS r, {raw} AS t, "
        f"{value} AS x, {missing} AS m FROM {source.relation})"
    )


def _advice_on_value(check: Check, value: str | None) -> str:
    """What to do about a wrong value."""
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
    """Raise an InputError if the scores of some row do not lie in [0, 1] with the sum 1."""
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
    """SQL: the number of rows, how many are no distributions, the first of these, and its
    values."""
    given = ", ".join(number_sql(source, source.find(name, role), role) for name in columns)
    near = sum_tolerance(len(columns))
    wrong = f"list_min(x) < 0 OR list_max(x) > 1 OR abs(list_sum(x) - 1) > {near!r}"
    return (
        f"SELECT count(*), count(*) FILTER ({wrong}), min(r) FILTER ({wrong}), "
        f"arg_min(x, r) FILTER ({wrong}) FROM (SELECT row_number() OVER () AS r, "
        f"[{given}] AS x FROM {source.relation})"
    )
