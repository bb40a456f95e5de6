"""Data files by name: which there are, what kind each is, its columns, and how SQL reads it.

The dialect of a CSV file is not guessed from its rows. Its header alone decides the separator, and
every field is then read as text, so that ``007`` and ``1e3`` stay as they came.
"""

from __future__ import annotations

import csv
import difflib
import glob
import gzip
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from calibrant.data.naming import unknown_column
from calibrant.errors import InputError

__all__ = [
    "KINDS",
    "Source",
    "csv_source",
    "find_files",
    "identifier",
    "kind_of",
    "literal",
    "whole_file",
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
    """

    path: Path
    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    relation: str
    separator: str = ","

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
    """The files that names and globs stand for, each once, in the order given (globs sorted)."""
    found: dict[Path, None] = {}
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
        found.update(dict.fromkeys(match for match in matches if not match.is_dir()))
    if not found:
        raise InputError("at least one data file must be given, but none came.")
    return list(found)


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


# --- CSV ----------------------------------------------------------------------------------------


def csv_source(path: Path, wanted: Sequence[str] = ()) -> Source:
    """Read the header of a CSV file; the separator is the one that finds the columns wanted."""
    ending = kind_of(path)[1]
    candidates = ("\t", *SEPARATORS) if ending == ".tsv" else SEPARATORS
    told, skip = _preamble(path)
    read = {s: _header(path, s, skip) for s in ((told,) if told else candidates)}
    asked = {name.strip() for name in wanted}

    def fits(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in read[separator][0]]
        return len(asked.intersection(names)), len(names)

    separator = max(read, key=fits)  # the first of equals
    names, blank = read[separator]
    columns = tuple(f"c{i}" for i in range(len(names)))
    fields = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
    relation = (
        f"read_csv({pattern(path)}, auto_detect=false, header=true, skip={skip + blank}, "
        f"delim={literal(separator)}, quote='\"', escape='\"', columns={{{fields}}})"
    )
    types = ("VARCHAR",) * len(names)
    return Source(path, "csv", names, columns, types, relation, separator)


def _open_text(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=None)
    return path.open(encoding="utf-8-sig", newline=None)


def _preamble(path: Path) -> tuple[str, int]:
    """The separator of a first line like ``sep=;`` (spreadsheets write it), and lines to skip."""
    with _readable(path), _open_text(path) as stream:
        first = stream.readline(16).rstrip("\n")
    if len(first) == 5 and first.lower().startswith("sep="):
        return first[4], 1
    return "", 0


def _header(path: Path, separator: str, skip: int) -> tuple[tuple[str, ...], int]:
    """The names in the first line that is not blank, and how many blank ones came before it."""
    with _readable(path), _open_text(path) as stream:
        for _ in range(skip):
            stream.readline()
        for blank, fields in enumerate(csv.reader(stream, delimiter=separator)):
            if any(field.strip() for field in fields):
                return tuple(fields), blank
    raise InputError(f"{path.name} is empty. It must hold a header line and rows of data.")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as wrong:
        raise InputError(not_utf8(path.name)) from wrong
    except (gzip.BadGzipFile, EOFError, csv.Error) as wrong:
        raise InputError(f"{path.name} cannot be read: {wrong}") from wrong


def not_utf8(name: str, line: str = "", was: str = "latin1") -> str:
    """What to say of a text file in another encoding."""
    where = f" (line {line})" if line else ""
    return (
        f"{name} must be UTF-8 text, but it is not{where}. Save it as 'CSV UTF-8', or convert it: "
        f"iconv -f {was} -t utf8 {name} > utf8.csv"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- writing ------------------------------------------------------------------------------------


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place at the end, or vanishes on any error.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp()) / "out.txt"
    >>> with whole_file(out) as temporary:
    ...     _ = temporary.write_text("done")
    >>> out.read_text(), len(list(out.parent.iterdir()))
    ('done', 1)
    """
    final = Path(path)
    if final.is_dir():
        raise InputError(f"the output must be a file, but {final} is a folder.")
    if not final.parent.is_dir():
        raise InputError(f"the output's folder {final.parent} does not exist. Make it first.")
    temporary = final.with_name(f".{final.name[:60]}.{secrets.token_hex(4)}.tmp{final.suffix}")
    try:
        yield temporary
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
