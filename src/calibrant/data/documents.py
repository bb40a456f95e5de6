"""JSON files of ours: how they are read, what they may hold, and the facts of a fit in them."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calibrant.data.columns import plain
from calibrant.errors import InputError, ParameterError

LARGEST_FILE = 1 << 30
#: the first bytes of files that are not UTF-8 text, and what to do about them
FOREIGN = {
    b"\x1f\x8b": "it is compressed by gzip. Unpack it first",
    b"PK\x03\x04": "it is a zip archive. Unpack it first",
    b"\x80": "it may be a pickle, which is never loaded. Save the calibrator with calibrant.save",
    b"\xff\xfe": "it is UTF-16. Convert it to UTF-8",
    b"\xfe\xff": "it is UTF-16. Convert it to UTF-8",
    b"\xef\xbb\xbf": "it begins with a byte order mark. Convert it to UTF-8 without one",
}
#: the escape of a surrogate; only two of them in the right order are a character
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_document(file: Path, what: str = "a calibrator file") -> Any:
    """The content of a JSON file. A file that two readers could read differently is refused.

    ``what`` is what the file should be, for errors.
    """
    if "\0" in str(file):
        raise InputError(f"{brief(str(file))} cannot be the name of a file.")
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise InputError(f"{file} is larger than 1 GiB: this is not {what}.")
    for start, reason in FOREIGN.items():
        if content.startswith(start):
            raise InputError(f"{file} is not {what}: {reason}.")
    try:
        text = content.decode("utf-8")
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_names
        )
        if SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except InputError as wrong:
        raise InputError(f"{file}: {wrong}") from wrong
    except RecursionError as wrong:
        raise InputError(f"{file} is not {what}: it nests too deeply.") from wrong
    except ValueError as wrong:  # of JSON, of UTF-8, of integers with too many digits
        raise InputError(f"{file} is not {what}: {wrong}") from wrong
    return document


def check_file(fine: object, reason: str) -> None:
    """Raise an error that the file is damaged, with the reason, unless ``fine``."""
    if not fine:
        raise InputError(f"the file is damaged: {reason}")


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict. A repeated name is refused: some readers take its first value,
    others its last."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in made if names.count(name) > 1)
        raise InputError(f"the file is damaged: {brief(twin)} occurs twice in one object.")
    return made


def _refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which are no JSON."""
    raise InputError(f"the file is damaged: numbers must be finite, but {name} came.")


# --- Facts: values that JSON can hold, read-only at any depth ------------------------------------


#: the deepest nesting of facts: people read them
DEEPEST = 20

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def freeze_facts(value: Any, where: str, depth: int = 0) -> Any:
    """A mapping of facts as a read-only one that JSON can hold; ``where`` names it in errors.

    Dicts in it become read-only mappings and lists tuples. As everywhere in our files, an infinite
    number is the text "inf"; a date is its ISO text. What JSON cannot hold is an InputError.

    >>> facts = freeze_facts({"folds": [1, 2.5], "loss": float("inf")}, "provenance")
    >>> facts["folds"], facts["loss"]
    ((1, 2.5), 'inf')
    >>> facts["folds"] = None
    Traceback (most recent call last):
    ...
    TypeError: 'mappingproxy' object does not support item assignment
    """
    if not depth and not isinstance(value, Mapping):
        raise InputError(f"{where} must be facts by name, but {brief(value)} came.")
    if depth > DEEPEST:
        raise InputError(f"{where} may nest at most {DEEPEST} deep, but this goes deeper.")
    value = plain(value)
    if isinstance(value, Mapping):
        frozen = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise InputError(f"the keys of {where} must be text, but {brief(key)} came.")
            frozen[as_unicode(key)] = freeze_facts(item, f"{where}[{brief(key)}]", depth + 1)
        return MappingProxyType(frozen)
    if isinstance(value, (list, tuple)):
        return tuple(freeze_facts(item, where, depth + 1) for item in value)
    if isinstance(value, str):
        return as_unicode(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= 1023:
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    raise InputError(
        f"{where} must hold text, numbers, booleans, lists and objects, as JSON has them, but "
        f"{brief(value)} of type {type(value).__name__} came."
    )


def is_unicode(value: str) -> bool:
    """Whether UTF-8 can hold the text. It cannot hold half of a surrogate pair.

    >>> is_unicode("日本"), is_unicode("\\ud800")
    (True, False)
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_unicode(value: str) -> str:
    """The text in a form that UTF-8 can hold: invalid characters are escaped. (File names on Linux
    may hold any bytes.)

    >>> as_unicode("b\\udcffd.csv")
    'b\\\\udcffd.csv'
    """
    return value if is_unicode(value) else value.encode("utf-8", "backslashreplace").decode("utf-8")


def fits_64_bits(value: int) -> bool:
    """Whether a signed or an unsigned integer of 64 bits can be this number.

    >>> fits_64_bits(2**64 - 1), fits_64_bits(2**64)
    (True, False)
    """
    return -(2**63) <= value < 2**64


def brief(value: Any) -> str:
    """The repr of a value for an error message, cut to a few dozen letters.

    >>> brief("x" * 1000)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    """
    try:
        return as_unicode(_SHORT.repr(value))
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "a number of thousands of digits"


# --- Facts that `save` adds to a file for audits: measures, the period of the data, notes ---------


#: how measures came about, in their own words
OUT_OF_FOLD = "out of fold: no row was judged by a calibrator that had seen it"
#: what is kept of an evaluation: its numbers, but neither labels nor curves
KEPT = (
    "weight",
    "positive_weight",
    "before",
    "after",
    "micro",
    "macro",
    "level",
    "intervals_before",
    "intervals",
    "change",
)


def evaluation_facts(evaluation: Any, how: str, folds: int | None = None) -> dict[str, Any]:
    """The numbers and intervals of an evaluation as facts for a file, and on which rows they were
    found.

    Parameters
    ----------
    evaluation : what `evaluate` returns
        Or anything else whose ``to_dict()`` has measures by name under ``"after"``.
    how : str
        On which rows, in words.
    folds : int, optional
        How often rows were held out.

    Notes
    -----
    O(measures).

    Examples
    --------
    >>> class Half:
    ...     def to_dict(self):
    ...         return {"after": {"brier": 0.25}, "before": None, "labels": ["a", "b"]}
    >>> evaluation_facts(Half(), "on the rows of June")
    {'how': 'on the rows of June', 'after': {'brier': 0.25}}
    """
    document = evaluation.to_dict() if hasattr(evaluation, "to_dict") else None
    if not isinstance(document, Mapping) or not {"after", "micro"} & set(document):
        raise ParameterError(
            "evaluation must be what calibrant.evaluate returns, but "
            f"{type(evaluation).__name__} came."
        )
    facts: dict[str, Any] = {"how": how} | ({} if folds is None else {"folds": folds})
    return facts | {name: document[name] for name in KEPT if document.get(name) is not None}


def read_period(period: Any) -> str | list[str]:
    """The period that the data are from: text as it is, or the first and the last day in ISO form.

    >>> from datetime import date
    >>> read_period((date(2024, 1, 1), "2024-03-31")), read_period("first quarter of 2024")
    (['2024-01-01', '2024-03-31'], 'first quarter of 2024')
    """
    if isinstance(period, str) and period.strip():
        return period
    if not isinstance(period, (tuple, list)) or len(period) != 2:
        raise ParameterError(
            "period must be text, or a pair of dates or of their ISO texts, such as "
            f"('2024-01-01', '2024-03-31'), but {brief(period)} came."
        )
    (first, begin), (last, end) = (_read_day(value) for value in period)
    if first > last:
        raise ParameterError(f"period must begin before it ends, but it is {begin} to {end}.")
    return [begin, end]


def _read_day(value: Any) -> tuple[date, str]:
    """The day of a date, or of ISO text, and the text."""
    value = plain(value)
    text = value.isoformat() if isinstance(value, date) else value  # a datetime is one, too
    try:
        return datetime.fromisoformat(text).date(), text
    except (TypeError, ValueError):
        raise ParameterError(
            "each end of a period must be a date or its ISO text, such as '2024-03-31', but "
            f"{brief(value)} came. Text of another form can be the whole period: period='...'."
        ) from None


def recorded_entries(facts: Mapping[str, Any], name: str) -> list[Any]:
    """The entries of a provenance under a name, the earliest first.

    >>> recorded_entries({"prior": ({"kept": 0.1},)}, "prior"), recorded_entries({}, "prior")
    ([{'kept': 0.1}], [])
    """
    found = facts.get(name, [])
    return list(found) if isinstance(found, (list, tuple)) else [found]


def read_notes(notes: Any) -> str | list[str]:
    """The notes for a reader of the file, which must be text or a list of texts.

    >>> read_notes(["approved by risk", "refit in May"])
    ['approved by risk', 'refit in May']
    """
    if isinstance(notes, str):
        return notes
    if isinstance(notes, (list, tuple)) and all(isinstance(note, str) for note in notes):
        return list(notes)
    raise ParameterError(f"notes must be text or a list of texts, but {brief(notes)} came.")
