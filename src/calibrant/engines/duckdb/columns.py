"""A file's columns as SQL: numbers, labels, and the text that stands in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibrant.engines.duckdb.files import Source, literal
from calibrant.errors import InputError

__all__ = ["document", "is_one_of", "number", "segment", "spelling", "text"]

#: a column of these types can be read as numbers
NUMERIC = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|JSON)$"
)
#: and of these not as labels
NESTED = re.compile(r".*\]$|STRUCT|MAP|UNION|BLOB")


def text(source: Source, column: int) -> str:
    """SQL of a column's values as they stand: JSON strings unwrapped, all else untouched."""
    expression = source.columns[column]
    return f"({expression} ->> '$')" if source.types[column] == "JSON" else expression


def number(source: Source, column: int, role: str) -> str:
    """SQL that reads a column as DOUBLE; NULL where it holds no number."""
    kind = source.types[column]
    if not NUMERIC.match(kind):
        raise InputError(
            f"{role} column {source.names[column]!r} of {source.path.name} must be numbers, but "
            f"its type is {kind}. Pick another column or convert it."
        )
    return f"TRY_CAST({text(source, column)} AS DOUBLE)"


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
    if NESTED.match(kind) or kind in ("FLOAT", "DOUBLE"):
        raise InputError(
            f"segment column {source.names[column]!r} of {source.path.name} must hold words or "
            f"whole numbers, but its type is {kind}. Pick another column."
        )
    if source.kind == "csv":
        return f"nullif(trim({expression}), '')"
    return text(source, column)


def is_one_of(expression: str, words: Sequence[str]) -> str:
    """SQL: whether a text, in small letters and without blanks around it, is one of the words.

    Not by IN or list_contains: either becomes a join, and a join does not keep the order of rows.
    """
    listed = "|".join(re.escape(word.lower()) for word in words)
    return f"regexp_full_match(lower(trim({expression})), {literal(listed)})"


def document(source: Source, column: int) -> str:
    """SQL of a label as JSON, which keeps its type."""
    return f"to_json({source.columns[column]})::VARCHAR"
