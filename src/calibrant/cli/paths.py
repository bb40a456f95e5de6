"""Where a command reads and writes: no file is both, and none is written twice.

A result on standard output (``-``) is there whole or not at all; words for people go to stderr.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.errors import InputError, ParameterError
from calibrant.outputs import (
    STANDARD,
    Name,
    TemporaryFolder,
    check_folder,
    find_target,
    follow,
    keep_apart,
    look,
    path_of_url,
)

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


class OutputOption(NamedTuple):
    """What an option names: a file to be written, with one of some endings.

    Parameters
    ----------
    path : path, or a URL, of which the engine knows more; None if the option was not given
    endings : those that are allowed; any by default
    folder : whether a folder of that name is written
    stream : whether ``-`` stands for standard output
    """

    path: Name | None
    endings: Sequence[str] = ()
    folder: bool = False
    stream: bool = False

    @property
    def named(self) -> bool:
        """Whether it is a file, and not standard output."""
        return self.path is not None and not (self.stream and is_standard(self.path))


def check_places(outputs: Mapping[str, OutputOption], read: Iterable[Name | None]) -> None:
    """Refuse outputs that cannot be written, that are read, or that are one: before any work.

    Parameters
    ----------
    outputs : by the option that names each
    read : files, globs, folders and URLs that the command reads
    """
    written: dict[str, Path] = {}
    for option, output in outputs.items():
        path = _local(output.path) if output.path is not None and output.named else None
        if path is not None:
            _check(path, output)
            written[option] = path
    # what is not there yet is no input: then there is no need to look into folders
    there = any(look(path) is not None for path in written.values())
    names = [path for name in read if name is not None and (path := _local(name)) is not None]
    keep_apart(written, (file for path in names for file in (_files(path) if there else [path])))


def _check(path: Path, output: OutputOption) -> None:
    if output.folder and (os.path.isdir(path) or not os.path.exists(path)):
        final = follow(path)
        check_folder(final.parent)
        look(final)
    else:
        slash = str(output.path).endswith(("/", os.sep))  # which a Path drops
        find_target(f"{path}/" if slash else path)
    if output.endings and path.suffix.lower() not in output.endings:
        raise InputError(f"{path.name} must end in {' or '.join(output.endings)}.")


def _local(name: Name) -> Path | None:
    """The path of a file on this machine, also of a URL of one; None for one elsewhere.

    A Path is never a URL: only words are.
    """
    if not isinstance(name, str) or os.path.exists(name):
        return Path(name)
    scheme, colon, rest = name.partition(":")
    if not (colon and rest.startswith("/") and re.fullmatch("[A-Za-z][A-Za-z0-9+.-]+", scheme)):
        return Path(name)
    return path_of_url(rest) if scheme.lower() == "file" else None


def _files(path: Path) -> Iterator[Path]:
    """The files that a name, a glob or a folder stands for."""
    if os.path.isdir(path):
        yield from (file for file in path.rglob("*") if not file.is_dir())
    elif os.path.exists(path):
        yield path
    else:
        patterns = {str(path), *_braces(str(path))}  # braces may also be a part of the name
        found = [Path(file) for one in patterns for file in glob.iglob(one, recursive=True)]
        yield from found or [path]


def _braces(pattern: str) -> list[str]:
    """The patterns that one with alternatives, as Spark knows them, stands for.

    >>> _braces("day-{1,2}.csv")
    ['day-1.csv', 'day-2.csv']
    """
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [one for word in found[1].split(",") for one in _braces(before + word + after)]


# --- standard output ----------------------------------------------------------------------------


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
    with TemporaryFolder() as folder:
        place = Path(folder) / f"stdout.{ending}"
        yield str(place)
        with place.open("rb") as whole:
            shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


def write_standard(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the terminal's letters are."""
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
