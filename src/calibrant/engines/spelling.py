"""Words and numbers as files hold them: numbers, labels, yes and no, typed features."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calibrant.data.columns import plain
from calibrant.data.door import read_labels, read_sorted_classes
from calibrant.data.lazy import Coding, make_coding, refuse_classes, refuse_soft
from calibrant.errors import InputError, import_extra, shell_quoted

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
    return make_coding(list(values), labels, column, pos_label=asked, classes=pair)


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
        option = f"--pos-label {shell_quoted(word)}"
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
    found, _ = read_sorted_classes(values)
    return tuple(plain(label) for label in found)


# --- Which of two words is the yes: pairs that people write into files, in several languages ------


Label = str | int | float | bool

#: the yes and its no; pairs that some use one way and some the other, such as good and bad, are out
_WORDS = """
yes/no y/n true/false t/f positive/negative pos/neg +/-
ja/nein j/n wahr/falsch positiv/negativ ja/nee ja/nej ja/nei
oui/non o/n vrai/faux positif/négatif
si/no sí/no s/n verdadero/falso positivo/negativo sì/no vero/falso sim/não sim/nao verdadeiro/falso
tak/nie ano/ne áno/nie da/ne da/nu igen/nem kyllä/ei evet/hayır да/нет так/ні ναι/όχι
はい/いいえ 是/否 예/아니요 예/아니오
"""
PAIRS = tuple(tuple(pair.split("/")) for pair in _WORDS.split())


def yes_of(labels: Iterable[Label]) -> Label | None:
    """The one of two labels that says yes; None where they are no such pair.

    >>> yes_of(["Ja", "Nein"]), yes_of(["no", "yes"]), yes_of(["good", "bad"])
    ('Ja', 'yes', None)
    """
    words = {str(label).strip().casefold(): label for label in labels if isinstance(label, str)}
    return next((words[yes] for yes, no in PAIRS if words.keys() == {yes, no}), None)


def partner_of(label: Label) -> Label | None:
    """The other word of a yes or a no that came alone, in the same case; None for all other labels.
    Of several partners, as of "ja", it is the first.

    >>> partner_of("Yes"), partner_of("no"), partner_of("bought")
    ('No', 'yes', None)
    """
    word = label.strip() if isinstance(label, str) else ""
    for pair in PAIRS:
        if word.casefold() in pair:
            other = pair[word.casefold() == pair[0]]
            styles = (str.lower, str.title, str.upper)
            return next((style(other) for style in styles if style(word) == word), other)
    return None


# --- How numbers are spelled in text: ``0,75``, ``1.234,5``, ``1,234.5`` and ``12.3 %`` -----------
# A plain number, ``0.75`` or ``1e-3``, needs no spelling. The others are read by one spelling for a
# whole column, the one that reads every value. Where two read every value, and not as the same
# numbers, the column is refused: ``1,234`` alone may be 1234 or 1.234.


#: blanks that stand between thousands, the narrow and the unbroken one of typesetters among them
BLANK = "[ \u00a0\u202f]"
#: marks between thousands beside the one that is no decimal mark
MARKS = (BLANK, "['\u2019]")
#: what follows a percentage
PERCENT = f"{BLANK}?%"


@dataclass(frozen=True)
class NumberSpelling:
    """One way to write numbers.

    Parameters
    ----------
    decimal : {".", ","}
        The mark before decimals; the other one may stand between thousands, and so may a blank or
        an apostrophe.
    percent : bool, default=False
        Whether each number is followed by a percent sign, and is divided by 100.

    Examples
    --------
    >>> NumberSpelling(",").read("1.234,5"), NumberSpelling(".", percent=True).read("12.3 %")
    (1234.5, 0.123)
    >>> NumberSpelling(",").read("0.5") is None
    True
    """

    decimal: str
    percent: bool = False

    @cached_property
    def pattern(self) -> str:
        """A regular expression of the whole text, for Python and for databases."""
        mark = re.escape(self.decimal)
        between = (re.escape("," if self.decimal == "." else "."), *MARKS)
        groups = "|".join(f"(?:{one}[0-9]{{3}})+" for one in between)
        whole = f"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{groups}))"
        number = f"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)"
        # no power of ten before a percent sign: nobody writes it, and -2 is put there
        return number + (PERCENT if self.percent else "(?:[eE][+-]?[0-9]+)?")

    @property
    def dropped(self) -> str:
        """A regular expression of what is not a part of the number itself."""
        return f"[% '\u00a0\u202f\u2019{',' if self.decimal == '.' else '.'}]"

    @property
    def ending(self) -> str:
        """What follows the digits, so that a percentage is rounded once."""
        return "e-2" if self.percent else ""

    def read(self, text: str) -> float | None:
        """The number, None where the text is none."""
        bare = text.strip()
        if not re.fullmatch(self.pattern, bare):
            return None
        return float(re.sub(self.dropped, "", bare).replace(",", ".") + self.ending)

    def __str__(self) -> str:
        """How numbers are written, in words.

        >>> print(NumberSpelling(","))
        with a decimal comma
        """
        mark = "with a decimal comma" if self.decimal == "," else ""
        if self.percent:
            return f"as percentages {mark}".strip()
        return mark or "with marks between thousands"


#: all there are, the likeliest first
SPELLINGS = tuple(NumberSpelling(mark, percent) for percent in (False, True) for mark in ".,")


def choose_spelling(
    read: Mapping[NumberSpelling | None, int], unsure: Mapping[bool, str], name: str
) -> NumberSpelling | None:
    """The spelling that reads most values of a column; None for plain numbers.

    Parameters
    ----------
    read : how many values each of the allowed spellings reads, None for plain numbers
    unsure : a value that is one number with a point and another with a comma, if there is one;
        by whether it is a percentage
    name : what the column is called in an error

    >>> counts = {None: 1, NumberSpelling("."): 1, NumberSpelling(","): 9}
    >>> choose_spelling(counts, {}, "score column 'p'")
    NumberSpelling(decimal=',', percent=False)
    """
    best = max(read, key=lambda one: read[one])  # the first of equals
    if best is None:
        return None
    other = NumberSpelling("," if best.decimal == "." else ".", best.percent)
    if read.get(other, -1) < read[best] or best.percent not in unsure:
        return best
    text = unsure[best.percent]
    point, comma = (NumberSpelling(mark, best.percent).read(text) for mark in ".,")
    raise InputError(
        f"{name} can be read in two ways: {text!r} is {point!r} with a decimal point, and "
        f"{comma!r} with a decimal comma. Say which it is: --decimal . or --decimal ,"
    )


# --------------------------------------------------------------------------------------------------
# Columns of features from files: text becomes numbers or truth values where all of it is such


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


#: words for "no value" in a column of numbers, in lower case
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")
