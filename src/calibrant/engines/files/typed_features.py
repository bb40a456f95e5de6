"""Columns of features from files: text becomes numbers or truth values where all of it is such."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from calibrant.engines.files.data_files import MISSING
from calibrant.engines.files.number_spelling import SPELLINGS, NumberSpelling, choose_spelling
from calibrant.engines.files.spelled_labels import TRUTH
from calibrant.errors import InputError, import_extra

#: words for infinite numbers, in lower case and without sign
INFINITE = ("inf", "infinity")
POINT = NumberSpelling(".")


def number_of(word: str) -> int | float | bool | None:
    """What a word says, if it is a plain number or a truth value.

    >>> number_of("07"), number_of("7.0"), number_of("TRUE"), number_of("7,5"), number_of("x")
    (7, 7.0, True, None, None)
    """
    bare = word.strip()
    if bare.lower() in TRUTH:
        return TRUTH[bare.lower()]
    if re.fullmatch("[+-]?[0-9]{1,300}", bare):
        return int(bare)
    return POINT.read(bare) if _is_plain(bare) else None


def _is_plain(word: str) -> bool:
    return POINT.read(word) is not None and re.search(POINT.dropped, word) is None


def typed_feature(parts: Sequence[Any], name: str, spelling: NumberSpelling | None = None) -> Any:
    """A column that came in Arrow arrays, as one: text that spells numbers as numbers.

    Words such as NA are no value among numbers and truth values; among other words only the empty
    one is.

    >>> import pyarrow
    >>> typed_feature([pyarrow.array(["1", "NA"]), pyarrow.array(["2.5"])], "age").to_pylist()
    [1.0, None, 2.5]
    >>> typed_feature([pyarrow.array(["NA", "EU", ""])], "region").to_pylist()
    ['NA', 'EU', None]
    >>> typed_feature([pyarrow.array(["TRUE", "false", "NA"])], "new").to_pylist()
    [True, False, None]
    """
    arrow = import_extra("pyarrow", extra="cli")
    column = arrow.chunked_array(parts)
    if arrow.types.is_nested(column.type) or arrow.types.is_temporal(column.type):
        raise InputError(
            f"feature column {name!r} must hold numbers or words, but its type is {column.type}. "
            "Leave it out, or convert it (dates for example to days)."
        )
    if not arrow.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()
    words = [word.strip() for word in coded.dictionary.to_pylist()]
    present = [word for word in words if word.lower() not in MISSING]
    if present and all(word.lower() in TRUTH for word in present):
        truths = [TRUTH.get(word.lower()) for word in words]
        return arrow.array(truths, arrow.bool_()).take(coded.indices)
    known = _spelling(present, name, spelling)
    if known is not None:
        numbers = [None if w.lower() in MISSING else known.read(w) for w in words]
        return arrow.array(numbers, arrow.float64()).take(coded.indices)
    return arrow.array([word or None for word in words], arrow.string()).take(coded.indices)


def _spelling(words: list[str], name: str, told: NumberSpelling | None) -> NumberSpelling | None:
    """How all words spell numbers; None where some are no numbers."""
    finite = [word for word in words if word.lower().lstrip("+-") not in INFINITE]
    if told is None and all(map(_is_plain, finite)):
        found: NumberSpelling | None = POINT
    else:
        tried = [one for one in SPELLINGS if told is None or one.decimal == told.decimal]
        read: dict[NumberSpelling | None, int] = {
            one: sum(one.read(word) is not None for word in finite) for one in tried
        }
        found = None
        if max(read.values()) == len(finite):
            found = choose_spelling(read, _unsure(finite), f"feature column {name!r}")
    if found is None or not finite:
        return None
    if len(finite) < len(words):
        first = next(word for word in words if word not in finite)
        raise InputError(
            f"feature column {name!r} must be finite, but {first!r} came. Correct or drop those "
            "rows, or leave the fields empty."
        )
    return found


def _unsure(words: list[str]) -> dict[bool, str]:
    """A word that is one number with a point and another with a comma, by whether in percent."""
    found: dict[bool, str] = {}
    for percent in (False, True):
        point, comma = (NumberSpelling(mark, percent) for mark in ".,")
        for word in words:
            values = point.read(word), comma.read(word)
            if None not in values and values[0] != values[1]:
                found[percent] = word
                break
    return found
