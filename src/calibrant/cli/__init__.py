"""The command line: parse, call, print."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from calibrant.errors import MissingExtraError, import_extra

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run ``calibrant`` with these arguments (default: those of the process) and exit.

    Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 130 interrupted, 143 terminated.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace"
            )  # a character that the terminal lacks is no reason to fail
    try:
        import_extra("typer", extra="cli")
        import_extra("rich", extra="cli")
        from calibrant.cli.app import app

        with _terminable():
            app(args=None if argv is None else list(argv), prog_name="calibrant")
    except MissingExtraError as missing:
        sys.stderr.write(f"error: {missing}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    sys.exit(0)


@contextmanager
def _terminable() -> Iterator[None]:
    """Make SIGTERM an exception, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
