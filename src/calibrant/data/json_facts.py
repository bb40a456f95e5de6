"""What a file may hold beside the map: JSON values, frozen to the bottom, and words for them."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Any

from calibrant.data.to_numpy import plain
from calibrant.errors import InputError

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
