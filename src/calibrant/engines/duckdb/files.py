"""Data files by name: which there are, what kind each is, its columns, and how SQL reads it."""

from __future__ import annotations

import difflib
import glob
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.data.naming import unknown_column
from calibrant.errors import InputError

__all__ = [
    "KINDS",
    "Source",
    "find_files",
    "identifier",
    "kind_of",
    "literal",
]

#: the kind of a file by its ending; CSV, TSV and JSON lines may be followed by .gz
KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".data": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
SEPARATORS = (",", ";", "\t", "|")
#: words for "no value" in a column of numbers, in lower case
MISSING = ("", "na", "n/a", "nan", "null", "none")


@dataclass(frozen=True)
class Source:
    """One file: its columns as people call them, and the SQL that reads them.

    Parameters
    ----------
    path : Path
    kind : {"csv", "json", "parquet"}
    names : the columns' names as the file has them
    columns : the SQL expression of each
    types : the SQL type of each
    relation : the table function that reads the file
    separator : between the fields of a CSV file
    line_end : of a CSV file, where it was looked for
    rows : how many there must be, where that is known apart from the reader
    folders : how many of the columns, the last ones, stand in the names of the file's folders
    """

    path: Path
    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    relation: str
    separator: str = ","
    line_end: str | None = None
    rows: int | None = None
    folders: int = 0

    def find(self, name: str, role: str = "") -> int:
        """The position of a column, or an InputError that lists the columns there are."""
        for form in (str, str.strip):
            places = [i for i, known in enumerate(self.names) if form(known) == form(name)]
            if len(places) > 1:
                raise InputError(
                    f"{self.path.name} has {len(places)} columns named {name!r}. Rename all but "
                    "one."
                )
            if places:
                return places[0]
        raise InputError(self._unknown(name, role))

    def _unknown(self, name: str, role: str) -> str:
        said, hint = unknown_column(name, role, self.names, self.path.name), ""
        if self.kind == "csv" and all(_is_number(known) for known in self.names):
            hint = " These look like data: the file needs a header line with the columns' names."
        elif self.kind == "csv" and len(self.names) == 1:
            hint = " Only one column was found: separate fields by a comma, semicolon, tab or |."
        return said + hint


# --- names --------------------------------------------------------------------------------------


def literal(text: str) -> str:
    """A string as SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column's name as SQL.

    >>> identifier('say "hi"; --')
    '"say ""hi""; --"'
    """
    return '"' + name.replace('"', '""') + '"'


def pattern(path: Path) -> str:
    """A path as SQL that matches this very file, whatever wildcards its name holds."""
    text = "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
    return literal(text)


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that names and globs stand for, each once, in the order given (globs sorted).

    A file with two names, by a link or by another spelling, is one.
    """
    found: dict[tuple[int, int], Path] = {}
    for item in patterns:
        name = os.fspath(item)
        path = Path(name)
        refuse_url(name)
        if path.is_dir():
            raise InputError(f"{name} is a folder. Name its files, for example {name}/*.csv")
        matches = (
            [path] if path.exists() else [Path(p) for p in sorted(glob.glob(name, recursive=True))]
        )
        if not matches:
            if glob.has_magic(name):
                raise InputError(f"no file matches {name}.")
            raise InputError(f"there is no file {name}.{_near_file(path)}")
        for match in matches:
            if not match.is_dir():
                seen = match.stat()
                _refuse_stream(match, seen)
                found.setdefault((seen.st_dev, seen.st_ino), match)
    if not found:
        raise InputError("at least one data file must be given, but none came.")
    return list(found.values())


def _refuse_stream(path: Path, seen: os.stat_result) -> None:
    """Refuse what can be read only once: the columns, the rows and their number are asked for."""
    if not stat.S_ISREG(seen.st_mode):
        raise InputError(
            f"data must be in a file, but {path} is a pipe or a device, and data are read more "
            f"than once. Save them first, for example: cat {path} > rows.csv"
        )


def refuse_url(name: str) -> None:
    """Refuse a place that is not on this machine."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        raise InputError(
            f"files must be on this machine, but {name} came. Copy it here, or use the engine "
            "spark, which reads and writes URLs."
        )


def _near_file(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f" Did you mean {path.with_name(near[0])}?" if near else ""


def kind_of(path: Path) -> tuple[str, str, bool]:
    """The kind of a file, its ending and whether it is compressed, all told from its name.

    >>> kind_of(Path("scores.TSV.gz"))
    ('csv', '.tsv', True)
    """
    endings = [ending.lower() for ending in path.suffixes]
    packed = endings[-1:] == [".gz"]
    ending = (endings[:-1] if packed else endings)[-1:]
    kind = KINDS.get(ending[0]) if ending else None
    if kind is None or (packed and kind == "parquet"):
        raise InputError(
            f"{path.name} must end in one of {', '.join(KINDS)} (text also with .gz): the ending "
            "tells how to read or write it."
        )
    return kind, ending[0], packed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
