"""The header of a CSV file: its columns, its separator, and how many rows must follow.

The dialect of a CSV file is not guessed from its rows. Its header alone decides the separator, and
every field is then read as text, so that ``007`` and ``1e3`` stay as they came. Its bytes tell the
line end and how many rows there must be.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from calibrant.engines.files.csv_records import BOM, Above, count_records, open_bytes
from calibrant.engines.files.data_files import SEPARATORS, kind_of
from calibrant.engines.files.partitions import partitions_of
from calibrant.errors import InputError


class CsvHeader(NamedTuple):
    """What a CSV file says before its rows are read.

    ``above`` counts what stands above the header. ``rows`` and ``line_end`` are known where the
    wanted columns were found, else None.
    """

    path: Path
    names: tuple[str, ...]
    separator: str
    above: Above
    rows: int | None = None
    line_end: str | None = None


def read_csv_header(path: Path, wanted: Sequence[str] = (), *, counted: bool = True) -> CsvHeader:
    """Read the header of a CSV file; the separator is the one that finds the columns wanted.

    Where those are found, the records are counted as well, if that is asked for.
    """
    ending = kind_of(path)[1]
    candidates = separators(ending)
    told = _preamble(path)
    read = {s: _header(path, s, bool(told)) for s in ((told,) if told else candidates)}
    separator = best_separator({s: header.names for s, header in read.items()}, wanted)
    found = read[separator]
    names = {name.strip() for name in found.names}
    if not {name.strip() for name in wanted} <= {*names, *partitions_of(path)}:
        return found  # an error: there is no such column
    _refuse_mark(path, found.names[0], separator)
    if not counted:
        return found
    with _readable(path):
        rows, line_end = count_records(path, separator, len(found.names), found.above)
    return found._replace(rows=rows, line_end=line_end)


def separators(ending: str) -> tuple[str, ...]:
    """What may separate the fields of a file with this ending, the likeliest first."""
    return ("\t", *SEPARATORS) if ending == ".tsv" else SEPARATORS


def best_separator(names: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> str:
    """The separator by which most of the columns wanted are found; of equals, most columns.

    >>> best_separator({",": ["a;b"], ";": ["a", "b"]}, ["b"])
    ';'
    """
    asked = {name.strip() for name in wanted}

    def fits(separator: str) -> tuple[int, int]:
        found = [name.strip() for name in names[separator]]
        return len(asked.intersection(found)), len(found)

    return max(names, key=fits)  # the first of equals


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with (
        _readable(path),
        open_bytes(path) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream,
    ):
        yield stream


def _preamble(path: Path) -> str:
    """The separator of a first line like ``sep=;``, which spreadsheets write."""
    with _open_text(path) as stream:
        first = stream.readline(16).rstrip("\r\n")
    return first[4] if len(first) == 5 and first.lower().startswith("sep=") else ""


def _header(path: Path, separator: str, told: bool) -> CsvHeader:
    """The names in the first line that is not blank, and what stands above it."""
    lines = marks = blank = 0
    with _open_text(path) as stream:
        for fields in csv.reader(stream, delimiter=separator):
            if any(field.strip() for field in fields) and not (told and lines == 0):
                return CsvHeader(path, tuple(fields), separator, Above(lines, marks, blank))
            lines += 1
            marks += max(len(fields) - 1, 0)
            blank += not fields
    raise InputError(f"{path.name} is empty. It must hold a header line and rows of data.")


def _refuse_mark(path: Path, name: str, separator: str) -> None:
    """After a byte order mark DuckDB takes a quote for a part of the name, up to its separator."""
    with open_bytes(path) as stream:
        marked = stream.read(len(BOM) + 1) == BOM + b'"'
    if marked and (name.endswith(separator) or any(c in name for c in '"\r\n')):
        raise InputError(
            f"{path.name} begins with a byte order mark, and its first column's name {name[:40]!r} "
            "holds a quote or a line break, or ends in the separator: this cannot be read safely. "
            f"Rename the column, or drop the mark: tail -c +4 {path.name} > unmarked.csv"
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as wrong:
        raise InputError(not_utf8(path.name)) from wrong
    except (gzip.BadGzipFile, EOFError, zlib.error, csv.Error) as wrong:
        raise InputError(f"{path.name} cannot be read: {wrong}") from wrong


def not_utf8(name: str, line: str = "", was: str = "latin1") -> str:
    """What to say of a text file in another encoding."""
    where = f" (line {line})" if line else ""
    return (
        f"{name} must be UTF-8 text, but it is not{where}. Save it as 'CSV UTF-8', or convert it: "
        f"iconv -f {was} -t utf8 {name} > utf8.csv"
    )
