"""The command line: parse, call, print."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import NoReturn

from calibrant.errors import MissingExtraError, import_extra
from calibrant.running import exit_with, stoppable

__all__ = ["main"]

#: what to print for letters that a terminal lacks; for all others it is a question mark
PLAIN = str.maketrans(
    dict(zip("−–─│└↑≈×·", "---|+^~x*", strict=True))
    | {"→": "->", "≥": ">=", "≤": "<=", "≠": "!=", "±": "+/-"}
    | {"…": "...", "½": "1/2", "∞": "inf"}
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run ``calibrant`` with these arguments (default: those of the process) and exit.

    Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 130 interrupted, 141 the reader of the
    output went away, 143 terminated.
    """
    codecs.register_error("calibrant-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that is lacking is no reason to fail
            stream.reconfigure(errors="calibrant-plain")
    try:
        with stoppable():
            import_extra("typer", extra="cli")
            import_extra("rich", extra="cli")
            from calibrant.cli.app import parser

            # globs are ours: on Windows, click would make file names of --score p_*
            words = None if argv is None else list(argv)
            parser()(args=words, prog_name="calibrant", windows_expand_args=False)
        code = 0
    except MissingExtraError as missing:
        sys.stderr.write(f"error: {missing}\n")
        code = 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    except SystemExit as end:
        # so rich and typer end with 1, and only they, where the reader went away
        code = 141 if end.code == 1 else int(end.code or 0)
    finally:
        # Python that was started with -m dies of SIGINT, whatever the exit code, once an interrupt
        # has passed through code that was a text (as of a named tuple); more such code undoes that
        exec("")
    exit_with(code)


def _plain(wrong: UnicodeError) -> tuple[str, int]:
    """Other words for letters that a terminal lacks, as those of Windows do in files and pipes.

    >>> _plain(UnicodeEncodeError("ascii", "0.42 → ½ λ", 5, 6, ""))
    ('->', 6)
    """
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    lacking = wrong.object[wrong.start : wrong.end]
    plain = lacking.translate(PLAIN)
    return "".join(letter if letter.isascii() else "?" for letter in plain), wrong.end
