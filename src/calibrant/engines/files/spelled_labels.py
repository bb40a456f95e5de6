"""Labels as files hold them: text with a type behind it → two classes and who is positive."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from calibrant.data.labels import read_labels, read_many
from calibrant.data.lazy_checks import Coding, coding_of, refuse_classes, refuse_soft
from calibrant.data.to_numpy import plain
from calibrant.engines.files.data_files import MISSING
from calibrant.engines.files.yes_no_words import Label, partner_of
from calibrant.errors import InputError
from calibrant.shell_words import quoted

WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)$")
#: words for truth values, in lower case
TRUTH = {"true": True, "false": False}
#: words for "no value" that may be labels as well; "none" is one of three labels, rather
UNSURE = ("-", "none")


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


def missing_words(spellings: list[str]) -> list[str]:
    """Words such as NA among labels that are otherwise numbers, booleans, or two other words.

    >>> missing_words(["0", "1", "NA"]), missing_words(["no", "yes", "?"])
    (['NA'], ['?'])
    >>> missing_words(["NA", "EU"]), missing_words(["-", "+", "?"])
    ([], ['?'])
    """
    words = [word for word in spellings if word.lower() in MISSING]
    rest = [word for word in spellings if word not in words]
    values = typed(rest).values()
    if rest and not any(isinstance(value, str) for value in values):
        return words
    for unsure in (UNSURE, ("none",)):  # only as few as need be are no labels
        some = [word for word in words if word.lower() not in unsure]
        if some and len(spellings) - len(some) == 2:
            return some
    return []


def typed_present(spellings: list[str]) -> dict[str, Label]:
    """What the distinct words of a text column mean, without those that mean no value.

    >>> typed_present(["1", "0", "NA"])
    {'0': 0, '1': 1}
    """
    absent = missing_words(spellings)
    return typed(sorted(word for word in spellings if word not in absent))


def classes_of(values: Mapping[Any, Label], column: str, pos_label: Any = None) -> Coding:
    """Two classes from the labels of a column by their spellings; ``pos_label`` may be a label, its
    text, or a function that picks one of them or None (then it is the larger).

    A single word is one of two classes if it is a yes or a no, or if ``pos_label`` is said: the
    word itself, or the other class, of which there are no rows.

    >>> classes_of({"0": 0, "1": 1}, "bought", "0").pos_label
    0
    >>> classes_of({"stayed": "stayed"}, "churn", "left").classes
    ('left', 'stayed')
    """
    labels = list(values.values())
    asked: Label | None = None
    pair = _pair_of_one(labels, column, None if callable(pos_label) else pos_label)
    refuse_classes(labels, column, known=pair is not None)
    known = list(dict.fromkeys(labels)) if pair is None else list(pair)
    if callable(pos_label):
        pick: Callable[[list[Label]], Label | None] = pos_label
        asked = pick(known)
    elif pos_label is not None:
        if pair is None:
            known = [plain(label) for label in read_labels(labels).classes]
        asked = match_label(known, pos_label)
        if asked is None:
            raise InputError(
                f"the positive label must be one of {known} (column {column!r}), but "
                f"{pos_label!r} came."
            )
    return coding_of(list(values), labels, column, pos_label=asked, classes=pair)


def _pair_of_one(labels: Sequence[Label], column: str, said: Any) -> tuple[Label, Label] | None:
    """The class of a column of one word, and the other class; None where there are two, or where
    numbers tell it. ``said`` is the positive label, if it is known."""
    if len(set(labels)) != 1 or not isinstance(labels[0], str):
        return None
    word = labels[0]
    partner = partner_of(word)
    if partner is not None and (said is None or match_label((word, partner), said) is not None):
        return word, partner
    if said is None:
        option = f"--pos-label {quoted(word)}"
        raise InputError(
            f"label column {column!r} must hold two classes, but only one class came: {word!r}, "
            f"and nothing tells whether that is the positive label. If it is, add {option}; if the "
            "other label is, which no row has, add --pos-label with its name. Better: add rows of "
            "the other label."
        )
    return word, (f"not {word}" if match_label((word,), said) is not None else str(said).strip())


def match_label(known: Sequence[Label], asked: Any) -> Label | None:
    """The label that is meant by ``asked``, which may be its text; None where there is none.

    >>> match_label([0, 1], "1"), match_label(["no", "yes"], "YES"), match_label([0, 1], "2")
    (1, 'yes', None)
    """
    word = str(asked).strip()
    for same in (str, str.lower):
        for label in known:
            if label == asked or same(str(label)) == same(word):
                return label
    meant = typed([word])[word]
    for label in known:
        if label == meant and isinstance(label, bool) == isinstance(meant, bool):
            return label
    return None


def sorted_classes(labels: Iterable[Label], column: str) -> tuple[Label, ...]:
    """The different labels of a column in sorted order, any number of them.

    >>> sorted_classes(["b", "a", "b"], "kind")
    ('a', 'b')
    """
    values = list(labels)
    refuse_soft(values, column)
    found, _ = read_many(values)
    return tuple(plain(label) for label in found)
