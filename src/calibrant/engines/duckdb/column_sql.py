"""A file's columns as SQL: numbers, labels, and the text that stands in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibrant.engines.duckdb.source import Source, literal
from calibrant.engines.files.data_files import MISSING
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.engines.rows_of_files import not_in_json
from calibrant.engines.segment_texts import POWER, WHOLE, KeySpelling
from calibrant.errors import InputError

#: a column of these types can be read as numbers
NUMERIC = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|JSON)$"
)
#: and of these not as labels
NESTED = re.compile(r".*\]$|STRUCT|MAP|UNION|BLOB")
#: a column of these types can be one of segments; NULL is a column without a single value
SEGMENTS = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(\d+,0\)|BOOLEAN|VARCHAR|JSON|UUID|ENUM.*|\"NULL\")$"
)
#: whole numbers that Python would get as decimals
WIDE = re.compile(r"U?HUGEINT|DECIMAL")
#: numbers that may be NaN or infinite, alone or within other types
FLOATING = re.compile(r"\b(FLOAT|DOUBLE)\b")
#: a string of JSON
QUOTED = r'"(\\.|[^"\\])*"'
#: the sign and the digits of a whole number
BOTH = r"\1\2"


def text(source: Source, column: int) -> str:
    """SQL of a column's values as they stand: JSON strings unwrapped, all else untouched."""
    expression = source.columns[column]
    return f"({expression} ->> '$')" if source.types[column] == "JSON" else expression


def finite(source: Source, column: int) -> str:
    """SQL of a column's values for JSON; a NaN or an infinite number makes the query fail."""
    expression, kind = source.columns[column], source.types[column]
    if not FLOATING.search(kind):
        return expression
    if kind in ("FLOAT", "DOUBLE"):
        fine = f"isfinite({expression}) IS NOT FALSE"
    else:  # as NaN or Infinity somewhere inside: outside of quotes, JSON has no other N or I
        bare = f"regexp_replace(to_json({expression})::VARCHAR, {literal(QUOTED)}, '', 'g')"
        fine = f"({expression} IS NULL OR NOT regexp_matches({bare}, '[NI]'))"
    wrong = literal(not_in_json(source.names[column]))
    return f"CASE WHEN {fine} THEN {expression} ELSE error({wrong}) END"


def number(source: Source, column: int, role: str, written: NumberSpelling | None = None) -> str:
    """SQL that reads a column as DOUBLE; NULL where it holds no number.

    Truth values count as 1 and 0, also where they are words, as in CSV. ``written`` is how text
    spells numbers; None for plain ones.
    """
    kind = source.types[column]
    if not NUMERIC.match(kind):
        raise InputError(
            f"{role} column {source.names[column]!r} of {source.path.name} must be numbers, but "
            f"its type is {kind}. Pick another column or convert it."
        )
    word = text(source, column)
    if not is_text(source, column):
        return f"TRY_CAST({word} AS DOUBLE)"
    if written is not None:
        return _spelled(word, written)
    odd = f"contains({word}, '_') OR contains({word}, '+-')"  # DuckDB takes 1_0 for 10, +-1 for -1
    truth = f"CASE lower(trim({word})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"CASE WHEN NOT ({odd}) THEN coalesce(TRY_CAST({word} AS DOUBLE), {truth}) END"


def _spelled(word: str, written: NumberSpelling) -> str:
    """SQL of a number that is not a plain one: its digits and decimal mark are cast as such."""
    bare = f"trim({word})"
    digits = f"regexp_replace({bare}, {literal(written.dropped)}, '', 'g')"
    plain = f"replace({digits}, ',', '.') || {literal(written.ending)}"
    fits = f"regexp_full_match({bare}, {literal(written.pattern)})"
    return f"CASE WHEN {fits} THEN TRY_CAST({plain} AS DOUBLE) END"


def is_text(source: Source, column: int) -> bool:
    """Whether a column's numbers are written as text."""
    return source.types[column] in ("VARCHAR", "JSON")


def is_missing(source: Source, column: int) -> str:
    """SQL: whether a column of numbers has no value, or a word for none; never NULL."""
    word = f"({text(source, column)})::VARCHAR"
    return f"coalesce({is_one_of(word, MISSING)}, true)"


def spelling(source: Source, column: int) -> str:
    """SQL of a label as text, NULL where there is none."""
    kind, expression = source.types[column], source.columns[column]
    if NESTED.match(kind):
        raise InputError(
            f"label column {source.names[column]!r} of {source.path.name} must hold plain labels, "
            f"but its type is {kind}. Pick another column."
        )
    if source.kind == "csv":
        return f"nullif(trim({expression}), '')"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isfinite({expression}) THEN {expression}::VARCHAR END"
    if kind == "JSON":  # with its quotes, so that "1" and 1 stay apart
        return f"nullif({expression}::VARCHAR, 'null')"
    return f"{expression}::VARCHAR"


def segment(source: Source, column: int) -> str:
    """SQL of the segment that a row is in, NULL where there is none."""
    kind, expression = source.types[column], source.columns[column]
    if not SEGMENTS.match(kind):
        raise InputError(
            f"segment column {source.names[column]!r} of {source.path.name} must hold words or "
            f"whole numbers, but its type is {kind}. Pick another column or convert it."
        )
    if source.kind == "csv":
        return f"nullif(trim({expression}), '')"
    if WIDE.match(kind):
        wrong = (
            f"segment column {source.names[column]!r} must hold numbers of at most 64 bits, but "
            "larger ones came. Convert it to text."
        )
        larger = f"CASE WHEN {expression} IS NOT NULL THEN error({literal(wrong)})::BIGINT END"
        return f"coalesce(TRY_CAST({expression} AS BIGINT), {larger})"
    return f"{expression}::VARCHAR" if kind == "UUID" else text(source, column)


def segment_text(source: Source, column: int, keys: KeySpelling) -> str:
    """SQL of the segment as text, to be found among the keys of a calibrator.

    Where the keys are whole numbers, truth values are 1 and 0, as they are in a fit, and numbers
    are told by their value: 07, 7.0 and 7 are the same.
    """
    wide = WIDE.match(source.types[column])
    word = f"({source.columns[column] if wide else segment(source, column)})::VARCHAR"
    if keys.trimmed:
        word = f"trim({word})"
    if keys.whole and source.types[column] in ("BOOLEAN", "VARCHAR", "JSON"):
        digits = f"regexp_replace({word}, {literal(WHOLE)}, {literal(BOTH)})"
        power = f"regexp_matches({word}, {literal(POWER)})"
        number_ = f"TRY_CAST({word} AS DOUBLE)"
        power += f" AND abs({number_}) <= 2^53 AND {number_} = floor({number_})"
        known = "WHEN 'true' THEN '1' WHEN 'false' THEN '0' WHEN '-0' THEN '0'"
        word = (
            f"CASE WHEN {power} THEN {number_}::BIGINT::VARCHAR "
            f"ELSE CASE lower({digits}) {known} ELSE {digits} END END"
        )
    return word


def is_one_of(expression: str, words: Sequence[str]) -> str:
    """SQL: whether a text, in small letters and without blanks around it, is one of the words.

    Not by IN or list_contains: either becomes a join, and a join does not keep the order of rows.
    """
    listed = "|".join(re.escape(word.lower()) for word in words)
    return f"regexp_full_match(lower(trim({expression})), {literal(listed)})"


def document(source: Source, column: int) -> str:
    """SQL of a label as JSON, which keeps its type."""
    return f"to_json({source.columns[column]})::VARCHAR"
