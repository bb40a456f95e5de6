"""Write docs/reference/api.txt: every public name and its signature, one a line.

Run: python docs/scripts/make_api.py

A test compares the file with the code, so that each change of the public face is seen in review.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

import calibrant as cal

FILE = Path(__file__).parent.parent / "reference" / "api.txt"
HEADING = """\
The public face of calibrant: every public name and its signature.
Written by `python docs/scripts/make_api.py`; a test fails when the code says something else.
"""


def signature(function: Any) -> str:
    """Parameters with annotations and defaults, as they are written, without ``self``."""
    try:
        found = inspect.signature(function)
    except ValueError:  # errors and warnings take what exceptions take
        return "(...)"
    own = [_unquoted(p) for p in found.parameters.values() if p.name not in ("self", "cls")]
    back = found.return_annotation
    given = "" if back in (found.empty, "None", None) else f" -> {back}"
    return f"{inspect.Signature(own)}{given}"


class _Plain(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _unquoted(parameter: inspect.Parameter) -> inspect.Parameter:
    note = parameter.annotation
    return parameter.replace(annotation=_Plain(note) if isinstance(note, str) else note)


def members(kind: type) -> Iterator[str]:
    """The public methods and attributes that a class of ours defines or gets from one of ours."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("calibrant"):
            continue
        seen |= {name for name in vars(base) if not name.startswith(("_", "set_"))}
    if issubclass(kind, BaseEstimator):  # parameters are in the signature
        seen -= set(inspect.signature(kind).parameters)
    for name in sorted(seen):
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property) or not callable(getattr(kind, name, None)):
            yield f"    .{name}"
        elif inspect.isfunction(function := getattr(member, "__func__", member)):
            yield f"    .{name}{signature(function)}"
        else:
            yield f"    .{name}(...)"


def lines(room: ModuleType, prefix: str) -> Iterator[str]:
    """A line for each public name of a room, and one for each member of its classes."""
    for name in sorted(room.__all__):
        value = getattr(room, name)
        if inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            yield f"{prefix}{name}{signature(value)}"
            yield from members(value)
        elif callable(value):
            yield f"{prefix}{name}{signature(value)}"
        else:
            yield f"{prefix}{name}"


def text() -> str:
    """The whole file."""
    rooms = [(cal, "cal.")] + [
        (getattr(cal, name), f"cal.{name}.")
        for name in cal.__all__
        if inspect.ismodule(getattr(cal, name))
    ]
    parts = ["\n".join(lines(room, prefix)) for room, prefix in rooms]
    return "\n".join((HEADING, "\n\n".join(parts), ""))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
