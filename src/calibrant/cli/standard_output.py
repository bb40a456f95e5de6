"""Results on standard output (``-``): whole or not at all, with the words for people on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from calibrant.errors import ParameterError
from calibrant.outputs import STANDARD

Name = str | os.PathLike[str]


def is_standard(output: Name | None) -> bool:
    """Whether an output is standard output."""
    return output is not None and os.fspath(output) == STANDARD


def said_name(output: Name) -> str:
    """What an output is called."""
    return "standard output" if is_standard(output) else str(output)


def refuse_two(output: Name, json: bool) -> None:
    """Refuse a result and a JSON document that would both go to standard output."""
    if json and is_standard(output):
        raise ParameterError(
            "--json and --output - would both write to standard output: leave one of them out."
        )


def words_beside(output: Name) -> AbstractContextManager[Any]:
    """Where the result goes to standard output, words for people go to stderr."""
    return redirect_stdout(sys.stderr) if is_standard(output) else nullcontext()


@contextmanager
def place_of(output: str, format: str | None) -> Iterator[str]:
    """The file to write: the output, or one that is copied to standard output at the end.

    Nothing is there before the file is whole. It lies in a folder that no one else can read, and
    is removed. Sheets are only read: their rows are written as CSV.
    """
    if not is_standard(output):
        yield output
        return
    ending = "csv" if format in (None, "xlsx") else format
    with tempfile.TemporaryDirectory(prefix="calibrant-", ignore_cleanup_errors=True) as folder:
        place = Path(folder) / f"stdout.{ending}"
        yield str(place)
        with place.open("rb") as whole:
            shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


def write_standard(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the terminal's letters are."""
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
