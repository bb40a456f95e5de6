"""Words of the command line: quoted as the shell reads them, and options in place of arguments."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

WINDOWS = os.name == "nt"
#: what neither cmd nor PowerShell takes for anything but itself
_PLAIN = re.compile(r"[A-Za-z0-9_+=:./\\-]+")


def quoted(word: str) -> str:
    """A word of a command, in quotes where the shell would read it as something else.

    Windows has two shells, and only double quotes mean the same to both.

    >>> quoted("calibrator.json")
    'calibrator.json'
    """
    if not WINDOWS:
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    # backslashes before a quote, and before the closing one, count twice
    inner = re.sub(r'(\\*)"', r'\1\1\\"', word)
    return '"' + re.sub(r"(\\+)$", r"\1\1", inner) + '"'


#: an argument as messages write it: a name, and a word in quotes, a number or a truth value; files
#: and folders such as level=3.csv are none
_ARGUMENT = re.compile(
    r"""(?<![\w/'"=-])([a-z]\w*)=(?:"([^"]*)"|'([^']*)'|(True|False|[0-9]+(?:\.[0-9]+)?)(?![\w/]|\.\w))"""
)
#: a map that the library makes of a remedy, which on the command line an option does
_MAP = re.compile(
    r"""(?:,? by following its map with|:) calibrant\.maps\.\w+\(.*?\)\)?\)(?=[.;]|$)"""
)
#: an argument beside which the message says the option
_BESIDE = re.compile(r"\b[a-z]\w*=\S+ \((?:on the command line )?(--[^()]+)\)")


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library in the words of a command: its options, not Python's arguments.

    ``options`` are those of the command, by the names that they have in Python. What is no option
    of it stays as it is.

    >>> in_options('say on_range="clip", or fit anew.', {"on_range": "--on-range"})
    'say --on-range clip, or fit anew.'
    >>> in_options("cv must be at least 2, but 1 came.", {"cv": "--cv"})
    '--cv must be at least 2, but 1 came.'
    """

    def option(found: re.Match[str]) -> str:
        name, *values = found.groups()
        if name not in options:
            return found[0]
        value = next(value for value in values if value is not None)
        return options[name] if value == "True" else f"{options[name]} {quoted(value)}"

    said = _MAP.sub("", _BESIDE.sub(r"\1", message))
    said = _ARGUMENT.sub(option, said)
    first, blank, rest = said.partition(" ")
    if first in options and rest.startswith("must "):
        said = f"{options[first]}{blank}{rest}"
    return said
