"""Labels as files hold them: text with a type behind it → two classes and who is positive."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from calibrant.data.labels import plain, read_labels
from calibrant.data.lazy_checks import Coding
from calibrant.engines.duckdb.files import MISSING
from calibrant.errors import InputError

__all__ = ["classes_of", "typed"]

Label = str | int | float | bool

WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)$")
TRUTH = {"true": True, "false": False}
#: partners of one label alone, as at the library's other door
ALONE = (0, 1, -1)


def typed(spellings: list[str]) -> dict[str, Label]:
    """What the distinct words of a text column mean: booleans, whole numbers, numbers, or words.

    >>> typed(["0", "1"]), typed(["TRUE", "false"])
    ({'0': 0, '1': 1}, {'TRUE': True, 'false': False})
    >>> typed(["1.0", "0"]), typed(["007", "1"])
    ({'1.0': 1.0, '0': 0.0}, {'007': '007', '1': '1'})
    """
    if all(word.lower() in TRUTH for word in spellings):
        return {word: TRUTH[word.lower()] for word in spellings}
    if all(WHOLE.match(word) for word in spellings):
        return {word: int(word) for word in spellings}
    numbers = {word: _number(word) for word in spellings}
    if all(math.isfinite(value) for value in numbers.values()):
        return dict(numbers)
    return {word: word for word in spellings}


def _number(word: str) -> float:
    # 007 is a name, and so are 1_0 and other digits, which Python would take for numbers
    if re.match(r"[+-]?0[0-9]", word) or not re.fullmatch(r"[-+.eE0-9]+", word):
        return math.nan
    try:
        return float(word)
    except ValueError:
        return math.nan


def from_json(documents: Mapping[str, str]) -> dict[str, Label]:
    """The typed value of each spelling, from the JSON that the database made of it."""
    values = {spelling: json.loads(document) for spelling, document in documents.items()}
    nested = [value for value in values.values() if isinstance(value, (dict, list))]
    if nested:
        raise InputError(f"labels must be plain values, but {nested[0]!r} came.")
    return values


def missing_words(spellings: list[str]) -> list[str]:
    """Words such as NA among labels that are otherwise numbers or booleans.

    >>> missing_words(["0", "1", "NA"]), missing_words(["NA", "EU"])
    (['NA'], [])
    """
    words = [word for word in spellings if word.lower() in MISSING]
    rest = [word for word in spellings if word not in words]
    values = typed(rest).values()
    return words if rest and not any(isinstance(value, str) for value in values) else []


def classes_of(values: Mapping[str, Label], column: str, pos_label: Any = None) -> Coding:
    """Two classes from the distinct labels of a column, or an InputError that shows them.

    >>> classes_of({"no": "no", "yes": "yes"}, "bought", "no")
    Coding(classes=('no', 'yes'), pos_label='no', negative=('yes',), positive=('no',))
    """
    labels = list(dict.fromkeys(values.values()))
    fraction = next((v for v in labels if isinstance(v, float) and v != math.floor(v)), None)
    if fraction is not None:
        raise InputError(
            f"label column {column!r} must hold two classes, but fractions (soft labels) came, "
            f"such as {fraction!r}. Is it the score column? Otherwise give each row twice, as a "
            "positive of weight y and a negative of weight 1 − y."
        )
    if len(labels) > 2:
        shown = ", ".join(repr(label) for label in labels[:5])
        more = ", ..." if len(labels) > 5 else ""
        raise InputError(
            f"label column {column!r} must hold two classes, but at least {len(labels)} came: "
            f"{shown}{more}. Keep two, or make a column that says whether a row is of the class of "
            "interest."
        )
    if len(labels) == 1 and (isinstance(labels[0], str) or labels[0] not in ALONE):
        raise InputError(
            f"label column {column!r} must hold two classes, but only one class came: "
            f"{labels[0]!r}. Add rows of the other class."
        )
    coded = read_labels(labels, pos_label=_match(labels, pos_label, column))
    positive = plain(coded.pos_label)
    low, high = (plain(label) for label in coded.classes)
    words = tuple(word for word, value in values.items() if value == positive)
    others = tuple(word for word, value in values.items() if value != positive)
    if len(labels) == 2 and not (words and others):  # as numbers they are not what they were
        raise InputError(
            f"label column {column!r} must hold labels of at most 63 bits, but {labels[0]!r} and "
            f"{labels[1]!r} came. Convert them to text."
        )
    return Coding((low, high), positive, others, words)


def _match(labels: list[Any], asked: Any, column: str) -> Any:
    """The label that is meant by ``asked``, which may be its text."""
    if asked is None:
        return None
    known = _with_partner(labels)
    word = str(asked).strip()
    for label in known:
        if label == asked or str(label).lower() == word.lower():
            return label
    meant = typed([word])[word]
    for label in known:
        if label == meant and isinstance(label, bool) == isinstance(meant, bool):
            return label
    raise InputError(
        f"the positive label must be one of {known} (column {column!r}), but {asked!r} came."
    )


def _with_partner(labels: list[Any]) -> list[Any]:
    if len(labels) != 1:
        return labels
    return [plain(label) for label in read_labels(labels).classes]
