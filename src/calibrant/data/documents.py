"""JSON files, read strictly: no value that two readers could take for two things; and facts."""

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
    """What a JSON file holds, read strictly: anything doubtful is refused with the reason.

    ``what`` is what the file should be.
    """
    if "\0" in str(file):
        raise InputError(f"{shown(str(file))} cannot be the name of a file.")
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
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_twins
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


def check_saved(fine: object, reason: str) -> None:
    """Refuse a file as damaged, with a reason, unless what was found in it is ``fine``."""
    if not fine:
        raise InputError(f"the file is damaged: {reason}")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated names, of which readers may take the first or the last."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in made if names.count(name) > 1)
        raise InputError(f"the file is damaged: {shown(twin)} occurs twice in one object.")
    return made


def _refuse_constant(name: str) -> float:
    raise InputError(f"the file is damaged: numbers must be finite, but {name} came.")


# --- What a file may hold beside the map: JSON values, frozen to the bottom, and words for them ---


#: the deepest nesting of facts: people read them
DEEPEST = 20

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def freeze_facts(facts: Any, where: str) -> Mapping[str, Any]:
    """Facts by name, as `freeze` makes them.

    >>> freeze_facts({"rows": 3}, "provenance")
    mappingproxy({'rows': 3})
    """
    if not isinstance(facts, Mapping):
        raise InputError(f"{where} must be facts by name, but {shown(facts)} came.")
    frozen: Mapping[str, Any] = freeze(facts, where)
    return frozen


def freeze(value: Any, where: str, depth: int = 0) -> Any:
    """The value as JSON can hold it and nobody can change it.

    Objects become read-only mappings and lists tuples. As everywhere in our files, an infinite
    number is the text "inf"; a date is its ISO text. What JSON cannot hold is an InputError.

    >>> facts = freeze({"folds": [1, 2.5], "loss": float("inf")}, "provenance")
    >>> facts["folds"], facts["loss"]
    ((1, 2.5), 'inf')
    >>> facts["folds"] = None
    Traceback (most recent call last):
    ...
    TypeError: 'mappingproxy' object does not support item assignment
    """
    if depth > DEEPEST:
        raise InputError(f"{where} may nest at most {DEEPEST} deep, but this goes deeper.")
    value = plain(value)
    if isinstance(value, Mapping):
        return MappingProxyType(
            {
                _key(key, where): freeze(item, f"{where}[{shown(key)}]", depth + 1)
                for key, item in value.items()
            }
        )
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item, where, depth + 1) for item in value)
    if isinstance(value, str):
        return as_text(value)
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
        f"{shown(value)} of type {type(value).__name__} came."
    )


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return as_text(key)
    raise InputError(f"the keys of {where} must be text, but {shown(key)} came.")


def is_text(value: str) -> bool:
    """Whether a file can hold the text: half of a surrogate pair is no character.

    >>> is_text("日本"), is_text("\\ud800")
    (True, False)
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_text(value: str) -> str:
    """The text, with what is no character escaped (Linux lets file names be any bytes).

    >>> as_text("b\\udcffd.csv")
    'b\\\\udcffd.csv'
    """
    return value if is_text(value) else value.encode("utf-8", "backslashreplace").decode("utf-8")


def fits_64_bits(value: int) -> bool:
    """Whether a signed or an unsigned integer of 64 bits can be this number.

    >>> fits_64_bits(2**64 - 1), fits_64_bits(2**64)
    (True, False)
    """
    return -(2**63) <= value < 2**64


def shown(value: Any) -> str:
    """The value for an error message, cut short: whoever sends a megabyte need not read it again.

    >>> shown("x" * 1000)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    """
    try:
        return as_text(_SHORT.repr(value))
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "a number of thousands of digits"


# --- What is remembered of a fit for audits: measures, periods and notes, but no data -------------


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


def measures_of(evaluation: Any, how: str, folds: int | None = None) -> dict[str, Any]:
    """The numbers and intervals of an evaluation, and how they came about.

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
    >>> measures_of(Half(), "on the rows of June")
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
    """The time that the data are from: text as it is, or the first and the last day in ISO form.

    >>> from datetime import date
    >>> read_period((date(2024, 1, 1), "2024-03-31")), read_period("first quarter of 2024")
    (['2024-01-01', '2024-03-31'], 'first quarter of 2024')
    """
    if isinstance(period, str) and period.strip():
        return period
    if not isinstance(period, (tuple, list)) or len(period) != 2:
        raise ParameterError(
            "period must be text, or a pair of dates or of their ISO texts, such as "
            f"('2024-01-01', '2024-03-31'), but {shown(period)} came."
        )
    (first, begin), (last, end) = (_day(value) for value in period)
    if first > last:
        raise ParameterError(f"period must begin before it ends, but it is {begin} to {end}.")
    return [begin, end]


def _day(value: Any) -> tuple[date, str]:
    """The day of a date, or of ISO text, and the text."""
    value = plain(value)
    text = value.isoformat() if isinstance(value, date) else value  # a datetime is one, too
    try:
        return datetime.fromisoformat(text).date(), text
    except (TypeError, ValueError):
        raise ParameterError(
            "each end of a period must be a date or its ISO text, such as '2024-03-31', but "
            f"{shown(value)} came. Text of another form can be the whole period: period='...'."
        ) from None


def records(facts: Mapping[str, Any], name: str) -> list[Any]:
    """What a provenance has recorded under a name, the earliest first.

    >>> records({"prior": ({"kept": 0.1},)}, "prior"), records({}, "prior")
    ([{'kept': 0.1}], [])
    """
    found = facts.get(name, [])
    return list(found) if isinstance(found, (list, tuple)) else [found]


def read_notes(notes: Any) -> str | list[str]:
    """Text, or a list of texts, for whoever reads the file.

    >>> read_notes(["approved by risk", "refit in May"])
    ['approved by risk', 'refit in May']
    """
    if isinstance(notes, str):
        return notes
    if isinstance(notes, (list, tuple)) and all(isinstance(note, str) for note in notes):
        return list(notes)
    raise ParameterError(f"notes must be text or a list of texts, but {shown(notes)} came.")
