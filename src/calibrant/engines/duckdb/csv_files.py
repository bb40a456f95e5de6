"""CSV files: what their header says, and how SQL reads them.

The dialect of a CSV file is not guessed from its rows. Its header alone decides the separator, and
every field is then read as text, so that ``007`` and ``1e3`` stay as they came. Its bytes tell the
line end and how many rows there must be.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from calibrant.engines.duckdb.files import SEPARATORS, Source, kind_of, literal, pattern
from calibrant.engines.duckdb.partitions import partitions_of
from calibrant.engines.duckdb.records import BOM, Above, count_records, open_bytes
from calibrant.errors import InputError

__all__ = ["csv_source", "not_utf8"]

#: DuckDB's own words for line ends
LINE_ENDS = {"\n": "'\\n'", "\r\n": "'\\r\\n'", "\r": "'\\r'"}


def csv_source(path: Path, wanted: Sequence[str] = ()) -> Source:
    """Read the header of a CSV file; the separator is the one that finds the columns wanted.

    Where those are found, the records are counted as well.
    """
    ending = kind_of(path)[1]
    candidates = ("\t", *SEPARATORS) if ending == ".tsv" else SEPARATORS
    told = _preamble(path)
    read = {s: _header(path, s, bool(told)) for s in ((told,) if told else candidates)}
    asked = {name.strip() for name in wanted}

    def fits(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in read[separator].names]
        return len(asked.intersection(names)), len(names)

    separator = max(read, key=fits)  # the first of equals
    names, above = read[separator]
    columns = tuple(f"c{i}" for i in range(len(names)))
    fields = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
    options, rows, line_end = "", None, None
    if asked <= {*(name.strip() for name in names), *partitions_of(path)}:  # else it is an error
        _refuse_mark(path, names[0], separator)
        with _readable(path):
            found = count_records(path, separator, len(names), above)
        rows, line_end = found
        options = f", new_line={LINE_ENDS[line_end]}"
    relation = (
        f"read_csv({pattern(path)}, auto_detect=false, header=false, skip={above.lines + 1}, "
        f"delim={literal(separator)}, quote='\"', escape='\"', columns={{{fields}}}, "
        f"hive_partitioning=false{options})"
    )
    types = ("VARCHAR",) * len(names)
    return Source(path, "csv", names, columns, types, relation, separator, line_end, rows)


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


class _Header(NamedTuple):
    names: tuple[str, ...]
    above: Above


def _header(path: Path, separator: str, told: bool) -> _Header:
    """The names in the first line that is not blank, and what stands above it."""
    lines = separators = blank = 0
    with _open_text(path) as stream:
        for fields in csv.reader(stream, delimiter=separator):
            if any(field.strip() for field in fields) and not (told and lines == 0):
                return _Header(tuple(fields), Above(lines, separators, blank))
            lines += 1
            separators += max(len(fields) - 1, 0)
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
