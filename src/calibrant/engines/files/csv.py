"""Count the records of a CSV file, apart from the engine that reads it.

An engine may guess a dialect wrong and lose rows without a word. Here the bytes are counted: how
many records, how many fields, which line ends. What can be read in two ways is refused.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Flags
from calibrant.engines.files.files import SEPARATORS, kind_of, partitions_of
from calibrant.errors import InputError

BOM = b"\xef\xbb\xbf"
#: bytes that are looked at together; about what fits into a core's own cache
BLOCK = 2**19
QUOTE, FEED, RETURN = 34, 10, 13


class Above(NamedTuple):
    """What stands above the header: lines, the separators in them, and those that are blank."""

    lines: int = 0
    separators: int = 0
    blank: int = 0


@dataclass
class _Counts:
    """What a CSV file holds, by its bytes.

    Attributes
    ----------
    lines : int
        Records, the header and blank lines among them.
    blank : int
        Lines of no character at all.
    separators : int
        Those outside of quotes.
    feeds, returns, pairs : int
        Line feeds, carriage returns, and the ones after the others, all outside of quotes.
    inside : int
        Whether a quote is open, 0 or 1.
    """

    lines: int = 0
    blank: int = 0
    separators: int = 0
    feeds: int = 0
    returns: int = 0
    pairs: int = 0
    inside: int = 0

    @property
    def line_end(self) -> str | None:
        """The one line end of the file, or None where there are several."""
        if not self.returns:
            return "\n"
        if self.returns == self.pairs == self.feeds:
            return "\r\n"
        return None if self.feeds else "\r"


class _UnusualError(Exception):
    """A quote stands where none should: only one record after another tells what it means."""


def count_records(path: Path, separator: str, columns: int, above: Above) -> tuple[int, str]:
    """How many rows of data a CSV file holds, and how its lines end; an InputError where that
    cannot be told for sure.

    Parameters
    ----------
    path : Path
        May be packed by gzip.
    separator : one character
    columns : how many the header has
    above : what stands above the header

    Notes
    -----
    O(bytes) time in NumPy, a small part of what reading costs; memory is one block. A quote opens a
    field right after a separator or a line end, and closes it right before one; inside it is
    doubled. Where a file has others, as in ``5" pipe``, its records are read one by one. Blank
    lines are no rows, unless there is but one column.
    """
    try:
        counted = _count(path, separator)
    except _UnusualError:
        counted = _one_by_one(path, separator, columns, above)
    if counted.line_end is None:
        raise InputError(
            f"{path.name} mixes line endings, so that it cannot be read safely. Make them alike "
            f"first, for example: tr -d '\\r' < {path.name} > clean.csv"
        )
    records = counted.lines - above.lines
    if columns > 1:
        records -= counted.blank - above.blank
    if counted.separators - above.separators != records * (columns - 1):
        _one_by_one(path, separator, columns, above)  # which says where
        raise InputError(f"{path.name} cannot be read safely: its fields do not add up.")
    return records - 1, counted.line_end


def wrong_fields(name: str, line: Any, found: Any, columns: Any, shown: str = "") -> str:
    """What to say of a line with more or fewer fields than the header."""
    what = f": {shown[:80]!r}" if shown else ""
    return (
        f"{name}: line {line} has {found} fields where the header has {columns}{what}. Quote "
        "fields that hold the separator, and drop lines that are not data."
    )


def open_bytes(path: Path) -> IO[bytes]:
    """A file's bytes, unpacked."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


# --- by blocks ----------------------------------------------------------------------------------


def _count(path: Path, separator: str) -> _Counts:
    counted, mark = _Counts(), ord(separator) if separator.isascii() else -1
    if mark < 0:
        raise _UnusualError
    before, last = FEED, FEED
    for block, after in _blocks(path):
        _add(counted, block, before, after, mark)
        before = last = block[-1]
    if counted.inside:
        raise _UnusualError  # a quote does not end: which one?
    ends = counted.returns if counted.line_end == "\r" else counted.feeds
    counted.lines = ends + (last not in (FEED, RETURN))
    return counted


def _blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    """The bytes in blocks, each with the byte after it; a line end after the last."""
    with open_bytes(path) as stream:
        held = stream.read(BLOCK).removeprefix(BOM)
        while following := stream.read(BLOCK):
            if held:
                yield held, following[0]
            held = following
        if held:
            yield held, FEED


def _add(counted: _Counts, block: bytes, before: int, after: int, mark: int) -> None:
    here = np.frombuffer(block, np.uint8)
    quoted = counted.inside or b'"' in block
    outside = _outside(counted, here, before, after, mark) if quoted else None

    def among(found: Flags) -> Flags:
        return found if outside is None else found & outside

    counted.separators += _number_of(among(here == mark))
    feeds = among(here == FEED)
    counted.feeds += _number_of(feeds)
    counted.blank += _number_of(feeds[1:] & (here[:-1] == FEED))
    counted.blank += bool(feeds[0]) and before == FEED
    if b"\r" in block:
        returns = among(here == RETURN)
        counted.returns += _number_of(returns)
        counted.pairs += _number_of(returns[:-1] & (here[1:] == FEED))
        counted.pairs += bool(returns[-1]) and after == FEED
        ends = (here[:-1] == FEED) | (here[:-1] == RETURN)
        counted.blank += _number_of(returns[1:] & ends)
        counted.blank += bool(returns[0]) and before in (FEED, RETURN)


def _number_of(found: Flags) -> int:
    return int(np.count_nonzero(found))


def _outside(
    counted: _Counts, here: NDArray[np.uint8], before: int, after: int, mark: int
) -> Flags:
    """Which bytes are outside of quotes; every quote must stand where one may."""
    quotes = here == QUOTE
    inside = (np.cumsum(quotes, dtype=np.uint8) + np.uint8(counted.inside)) & 1
    places = np.flatnonzero(quotes)
    opening = inside[places] == 1
    around = np.empty(len(here) + 2, np.uint8)
    around[0], around[1:-1], around[-1] = before, here, after
    # a byte before an opening quote, a byte after a closing one; two quotes are one in a field
    neighbours = np.where(opening, around[places], around[places + 2])
    allowed = np.zeros(256, bool)
    allowed[[mark, FEED, RETURN, QUOTE]] = True
    if not allowed[neighbours].all():
        raise _UnusualError
    counted.inside = int(inside[-1])
    outside: Flags = inside == 0
    return outside


# --- one by one ---------------------------------------------------------------------------------


def _one_by_one(path: Path, separator: str, columns: int, above: Above) -> _Counts:
    """The same by Python's own reader, which tells the line of a mistake."""
    counted, start = _Counts(), 1
    record: list[str] = []  # the lines of the record that is read

    def kept(line: str) -> str:
        record.append(line)
        return line

    with open_bytes(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as stream:
        reader = csv.reader(map(kept, stream), delimiter=separator, strict=True)
        try:
            for fields in reader:
                counted.lines += 1
                if counted.lines > above.lines:
                    _check(path.name, start, fields, columns, record)
                counted.blank += not fields
                counted.separators += max(len(fields) - 1, 0)
                last = record[-1]
                counted.feeds += last.endswith("\n")
                counted.returns += last.endswith(("\r", "\r\n"))
                counted.pairs += last.endswith("\r\n")
                start = reader.line_num + 1
                record.clear()
        except csv.Error as wrong:
            said = _words(str(wrong), _shown(record))
            raise InputError(f"{path.name}: line {start} has a {said}") from wrong
    return counted


def _words(wrong: str, record: str) -> str:
    """What Python's reader found wrong, in words of ours."""
    if "larger than" in wrong:
        return (
            f"field of more than {csv.field_size_limit():,} characters: {record!r}. If a quote was "
            "not closed, close it. Otherwise put fields that hold a quote into quotes, and double "
            'it, as in "5"" pipe": then longer fields can be read.'
        )
    where = "that does not end" if "end of data" in wrong else "within a field"
    return f"quote {where}: {record!r}. Close or double it."


def _check(name: str, line: int, fields: list[str], columns: int, record: list[str]) -> None:
    odd = [text for text in fields if text.startswith(" ") and text.lstrip(" ").startswith('"')]
    for text in odd:  # right only if all of it is in quotes
        quoted = '"' + text.replace('"', '""') + '"'
        if "".join(record).count(quoted) < odd.count(text):
            raise InputError(
                f"{name}: line {line} has a blank between a separator and a quote, so that it can "
                f"be read in two ways: {_shown(record)!r}. Take the blank away."
            )
    if fields and len(fields) != columns:
        raise InputError(wrong_fields(name, line, len(fields), columns, _shown(record)))


def _shown(record: list[str]) -> str:
    return record[0].rstrip("\r\n")[:80]


# --- The header of a CSV file: its columns, its separator, and how many rows must follow ----------
# The dialect of a CSV file is not guessed from its rows. Its header alone decides the separator,
# and every field is then read as text, so that ``007`` and ``1e3`` stay as they came. Its bytes
# tell the line end and how many rows there must be.


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
    except (gzip.BadGzipFile, EOFError, zlib.error) as wrong:
        raise InputError(f"{path.name} cannot be read: {wrong}") from wrong
    except csv.Error as wrong:
        raise InputError(
            f"{path.name} has a header with a name of more than {csv.field_size_limit():,} "
            "characters. If a quote was not closed, close it; otherwise shorten the name."
        ) from wrong


def not_utf8(name: str, line: str = "", was: str = "latin1") -> str:
    """What to say of a text file in another encoding."""
    where = f" (line {line})" if line else ""
    return (
        f"{name} must be UTF-8 text, but it is not{where}. Save it as 'CSV UTF-8', or convert it: "
        f"iconv -f {was} -t utf8 {name} > utf8.csv"
    )
