"""The text of a module: tables, functions that share them, and the helpers that they need."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterable
from textwrap import indent

from calibrant.array_types import Array
from calibrant.export.python import helpers

#: columns of a line
WIDTH = 100
#: modules of the standard library that the text may import
IMPORTS = ("bisect", "math")


def number(value: float) -> str:
    """A number as Python reads it back, bit for bit.

    >>> number(0.1), number(-1)
    ('0.1', '-1.0')
    """
    return repr(float(value))


def in_docstring(words: str) -> str:
    """Words of a docstring, which no name or label in them can end.

    >>> in_docstring('a "b"')
    'a \\\\"b\\\\"'
    """
    return words.replace("\\", "\\\\").replace('"', '\\"')


def spread(parts: list[str]) -> str:
    """A sum of terms, on one line or on one each.

    >>> spread(["1.0", "2.0 * x", "-3.0 * z"])
    '1.0 + 2.0 * x - 3.0 * z'
    """
    first, *rest = parts
    signed = [f"- {part[1:]}" if part.startswith("-") else f"+ {part}" for part in rest]
    line = " ".join([first, *signed])
    if len(line) <= WIDTH - 30:
        return line
    return "\n" + indent("\n".join([first, *signed]), "    ") + "\n"


class Text:
    """The module: tables of numbers, private functions, and tables of those functions."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._tables: dict[str, tuple[str, str]] = {}
        self._functions: dict[str, str] = {}
        self._registries: list[str] = []

    def name(self, hint: str) -> str:
        """A name that nothing else has: ``_KNOTS``, ``_KNOTS_2``, …"""
        self._names[hint] = self._names.get(hint, 0) + 1
        return f"_{hint}" if self._names[hint] == 1 else f"_{hint}_{self._names[hint]}"

    def table(self, hint: str, items: Iterable[str], says: str) -> str:
        """The name of a tuple of these items; equal ones are written once."""
        written = _tuple(list(items))
        if written not in self._tables:
            self._tables[written] = self.name(hint), says
        return self._tables[written][0]

    def numbers(self, hint: str, values: Array, says: str) -> str:
        """The name of a tuple of these numbers."""
        return self.table(hint, map(repr, values.tolist()), says)

    def function(self, made: Function) -> str:
        """The name of a private function; those of equal text are written once."""
        source = made.source("{name}")
        if source not in self._functions:
            self._functions[source] = self.name("map")
        return self._functions[source]

    def registry(
        self, hint: str, opening: str, items: Iterable[str], closing: str, says: str
    ) -> str:
        """The name of a container of functions, one to a line."""
        name = self.name(hint)
        lines = "".join(f"    {item},\n" for item in items)
        self._registries.append(f"# {says}\n{name} = {opening}\n{lines}{closing}\n")
        return name

    def source(self, doc: str, classes: Iterable[object], main: str) -> str:
        """The whole module."""
        functions = [w.replace("{name}", name, 1) for w, name in self._functions.items()]
        code = [*functions, *self._registries, main]
        needed = _needed("\n".join(code))
        imports = [f"import {name}\n" for name in IMPORTS if name in needed]
        labels = [repr(label) for label in classes]
        tables = [f"CLASSES = {_tuple(labels)}\n"] if labels else []
        tables += [
            f"# {says}\n{name} = {written}\n"
            for written, (name, says) in self._tables.items()
            if name in needed
        ]
        helping = [source for name, source in _sources().items() if name in needed]
        head = [f"{doc}\n", "from __future__ import annotations\n", "".join(imports), *tables]
        return "\n".join(filter(None, head)) + "".join(f"\n\n{part}" for part in helping + code)


class Function:
    """A function that is being written: its parameters and statements."""

    def __init__(self, text: Text, parameters: tuple[str, ...], returns: str = "float") -> None:
        self.text = text
        self._parameters, self._returns = parameters, returns
        self._lines: list[tuple[str, str]] = []
        self._names: dict[str, int] = {p.split(":", maxsplit=1)[0]: 1 for p in parameters}
        self._kept: dict[str, str] = {}

    def add(self, statement: str, sets: str = "") -> None:
        """Add a statement. If all that it does is to set a variable, ``sets`` names the
        variable."""
        self._lines.append((statement, sets))

    def name(self, hint: str) -> str:
        """A variable that nothing else uses."""
        self._names[hint] = self._names.get(hint, 0) + 1
        return hint if self._names[hint] == 1 else f"{hint}_{self._names[hint]}"

    def keep(self, hint: str, expression: str) -> str:
        """The variable that holds an expression; the same one whenever it is asked for again."""
        if expression.isidentifier():
            return expression
        if expression not in self._kept:
            self._kept[expression] = self.name(hint)
            self.add(f"{self._kept[expression]} = {expression}", sets=self._kept[expression])
        return self._kept[expression]

    def source(self, name: str, doc: str = "") -> str:
        """Its text, without the variables that nothing reads."""
        lines: list[str] = []
        read: set[str] = set()
        for statement, sets in reversed(self._lines):
            if not sets or sets in read:
                lines.append(statement)
                read |= set(re.findall(r"\w+", statement))
        head = f"def {name}({', '.join(self._parameters)}) -> {self._returns}:"
        return "\n".join(
            [head, indent("\n".join([*filter(None, [doc]), *lines[::-1]]), "    "), ""]
        )


def _tuple(items: list[str]) -> str:
    """A tuple, its items filling lines."""
    short = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if len(short) <= WIDTH - 20:
        return short
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > WIDTH - 4:
            lines.append(line)
            line = ""
        line += f"{' ' if line else ''}{item},"
    return "(\n" + "\n".join(f"    {part}" for part in [*lines, line]) + "\n)"


@functools.cache
def _sources() -> dict[str, str]:
    """The helpers' sources, in the order in which they stand."""
    found = inspect.getmembers(helpers, inspect.isfunction)
    lines = {name: inspect.getsourcelines(function) for name, function in found}
    return {name: "".join(lines[name][0]) for name in sorted(lines, key=lambda n: lines[n][1])}


def _needed(code: str) -> set[str]:
    """The names that code uses, and those that its helpers use in turn."""
    found, new = set[str](), {code}
    while new:
        names = {
            node.id
            for part in new
            for node in ast.walk(ast.parse(part))
            if isinstance(node, ast.Name)
        }
        new = {source for name, source in _sources().items() if name in names - found}
        found |= names
    return found
