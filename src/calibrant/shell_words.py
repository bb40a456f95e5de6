"""Words of commands that people shall copy, quoted as the shell of their system reads them."""

from __future__ import annotations

import os
import re
import shlex

__all__ = ["quoted"]

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
