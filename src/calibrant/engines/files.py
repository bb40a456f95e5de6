"""Data files before an engine reads them: names and kinds, sheets, and the records of CSV files."""

from __future__ import annotations

import csv
import difflib
import glob
import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Flags
from calibrant.data.columns import unknown_column
from calibrant.data.door import check_word
from calibrant.engines.spelling import NumberSpelling
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.outputs import private_file

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
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
SEPARATORS = (",", ";", "\t", "|")


def find_column(
    names: Sequence[str], name: str, role: str = "", *, file: str, kind: str = ""
) -> int:
    """The place of a column among those of a file, or an InputError that lists them.

    Blanks around names do not count unless they tell columns apart.
    """
    for form in (str, str.strip):
        places = [i for i, known in enumerate(names) if form(known) == form(name)]
        if len(places) > 1:
            raise InputError(
                f"{file} has {len(places)} columns named {name!r}. Rename all but one."
            )
        if places:
            return places[0]
    said, hint = unknown_column(name, role, names, file), ""
    if above := nameless(names):
        hint = f" {above}"
    elif kind == "csv" and all(_is_number(known) for known in names):
        hint = " These look like data: the file needs a header line with the columns' names."
    elif kind == "csv" and len(names) == 1:
        hint = " Only one column was found: separate fields by a comma, semicolon, tab or |."
    raise InputError(said + hint)


def nameless(names: Sequence[str]) -> str:
    """What to do about columns without a name, as those below a title are; empty if all have one.

    The first may do without: it is an index, rather.

    >>> nameless(["Scores of March", "", ""])[:24], nameless(["", "score", "label"])
    ('Columns without a name: ', '')
    """
    if all(name.strip() for name in names[1:]):
        return ""
    return (
        "Columns without a name: the names must be in the first row of the sheet or file. Delete "
        "what is above them."
    )


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that names and globs stand for, each once, in the order given (globs sorted).

    A file with two names, by a link or by another spelling, is one.
    """
    found: dict[tuple[int, int] | str, Path] = {}
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
                _refuse_own(match)
                known = (seen.st_dev, seen.st_ino) if seen.st_ino else os.path.realpath(match)
                found.setdefault(known, match)  # some disks do not number their files
    if not found:
        raise InputError("at least one data file must be given, but none came.")
    return list(found.values())


def is_calibrator(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a calibrator, by its first bytes.

    >>> is_calibrator("no such file")
    False
    """
    return _own_format(Path(path)) in ("calibrant", "calibrant-local")


def _own_format(path: Path) -> str:
    """What a JSON file of calibrant's own says that it is; nothing for all other files."""
    try:
        with path.open("rb") as stream:
            start = stream.read(256)
    except (OSError, ValueError):
        return ""
    found = re.match(rb'\s*\{\s*"format":\s*"(calibrant[a-z-]*)"', start)
    return "" if found is None else found[1].decode()


def _refuse_own(path: Path) -> None:
    """Refuse calibrators and the like in place of data."""
    if own := _own_format(path):
        what = "a calibrator" if is_calibrator(path) else f"one of calibrant's own files ({own})"
        raise InputError(
            f"rows of data are needed here, but {path.name} is {what}. Name the file with the "
            "scores."
        )


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
    if kind is None or (packed and kind in ("parquet", "excel")):
        raise InputError(
            f"{path.name} must end in one of {', '.join(KINDS)} (text also with .gz): the ending "
            "tells how to read or write it."
        )
    return kind, ending[0], packed


def output_kind(path: Path) -> tuple[str, str, bool]:
    """The same of a file to be written; sheets are only read.

    >>> output_kind(Path("scores.xlsx"))
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: scores.xlsx must end in one of .csv, .tsv, .txt, .dat, .data, \
.jsonl, .ndjson, .json, .parquet, .pq (text also with .gz): sheets are read, not written.
    """
    found = kind_of(path)
    if found[0] == "excel":
        written = (ending for ending, kind in KINDS.items() if kind != "excel")
        raise InputError(
            f"{path.name} must end in one of {', '.join(written)} (text also with .gz): sheets are "
            "read, not written."
        )
    return found


def one_kind(kinds: Mapping[str, str]) -> str:
    """The kind of all files, or an InputError that names a file of each kind."""
    if len(kinds) > 1:
        raise InputError(
            f"files must be of one kind, but {' and '.join(kinds.values())} came. Run once for "
            "each kind, or convert them."
        )
    return next(iter(kinds))


def refuse_different(files: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse files, given as (name, columns), whose columns are not those of the first."""
    for name, others in files[1:]:
        first, names = files[0]
        if sorted(others) != sorted(names):
            odd = sorted(set(others) ^ set(names)) or sorted(others)
            raise InputError(
                f"all files must have the same columns, but {first} and {name} differ in "
                f"{', '.join(map(repr, odd[:8]))}. Use one by one."
            )


def refuse_empty(path: Path) -> None:
    """Refuse a file without a single byte."""
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path.name} is empty. It must hold named columns and rows of data.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- Sheets of Excel and OpenDocument files as CSV text, which is then read like any other --------


def sheet_as_csv(path: Path, to: IO[str], wanted: Sequence[str] = ()) -> str:
    """Write the sheet that has the columns wanted as CSV; what to say of it, if there are others.

    Parameters
    ----------
    path : Path
        An .xlsx, .xlsm, .xlsb, .xls or .ods file.
    to : text stream
    wanted : names of columns
        The sheet that has most of them is taken; of equals the one with most rows, or the first.

    Notes
    -----
    Cells become the text that Python has for their values: ``0.25`` for 25 % of Excel, ``7`` for
    7.0, ``2026-03-01`` for a date. The first row that is not empty holds the columns' names; empty
    rows, and empty columns without a name, are left out. The sheet is held in memory.
    """
    book = _open(path)
    sheets = {name: _rows(book, name) for name in book.sheet_names}
    found = {name: rows for name, rows in sheets.items() if rows}
    if not found:
        raise InputError(f"{path.name} is empty. It must hold a row of names and rows of data.")
    asked = {name.strip() for name in wanted}

    def fits(name: str) -> tuple[int, int]:
        return len(asked.intersection(map(str.strip, found[name][0]))), len(found[name])

    chosen = max(found, key=fits)  # the first of equals
    csv.writer(to).writerows(_without_empty_columns(found[chosen]))
    others = len(found) - 1
    return f"{path.name}: the sheet {chosen!r} was read, of {others + 1}" if others else ""


def _open(path: Path) -> Any:
    calamine = import_extra("python_calamine", extra="cli")
    try:
        return calamine.CalamineWorkbook.from_path(path)
    except calamine.PasswordError as wrong:
        raise InputError(
            f"{path.name} is locked by a password. Save it without one, or as CSV UTF-8."
        ) from wrong
    except (calamine.CalamineError, calamine.ZipError, calamine.XmlError) as wrong:
        raise InputError(
            f"{path.name} cannot be read as an Excel or OpenDocument file: {wrong}. Is it whole, "
            "and of the kind that its ending says?"
        ) from wrong


def _rows(book: Any, name: str) -> list[list[str]]:
    """The rows of a sheet that are not empty, as text."""
    cells = book.get_sheet_by_name(name).to_python()
    rows = ([_text(cell) for cell in row] for row in cells)
    return [row for row in rows if any(text.strip() for text in row)]


def _text(cell: Any) -> str:
    """A cell's value as text.

    >>> _text(7.0), _text(0.25), _text(True), _text("007"), _text(date(2026, 3, 1))
    ('7', '0.25', 'true', '007', '2026-03-01')
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


def _without_empty_columns(rows: list[list[str]]) -> Iterator[list[str]]:
    kept = [i for i in range(len(rows[0])) if any(row[i].strip() for row in rows)]
    return ([row[i] for i in kept] for row in rows)


# --- How files are read, where they can be read in more than one way: options for one job ---------
# Standard input becomes a file: data are read more than once, and a stream only once.


ON_MISSING = ("error", "drop")
#: what standard input and output may be
FORMATS = ("csv", "tsv", "jsonl", "parquet", "xlsx")
#: how a file of each format begins, where that tells; all else is CSV
BEGINNINGS = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}
PACKED = b"\x1f\x8b"


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    Parameters
    ----------
    decimal : {".", ","}, optional
        The mark before decimals. By default it is told from the numbers.
    missing : {"error", "drop"}, default="error"
        What to do with rows that have no score or no label.
    standard_input : stream of bytes, optional
        What the file name ``-`` stands for.
    format : one of FORMATS, optional
        What kind of file standard input is. By default its first bytes tell a Parquet or Excel
        file, and all else is CSV.
    repeatable : bool, default=False
        Whether standard input is a copy, which is read from its beginning each time.
    """

    decimal: str | None = None
    missing: str = "error"
    standard_input: BufferedIOBase | None = None
    format: str | None = None
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.decimal is not None and self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be . or , but {self.decimal!r} came.")
        check_word("missing", self.missing, ON_MISSING)
        if self.format is not None and self.format not in FORMATS:
            raise ParameterError(
                f"format must be {' or '.join(FORMATS)}, but {self.format!r} came."
            )

    @property
    def spelling(self) -> NumberSpelling | None:
        """How numbers are read at first."""
        return None if self.decimal is None else NumberSpelling(self.decimal)

    def close(self) -> None:
        """Close the copy of standard input, if there is one."""
        if self.repeatable and self.standard_input is not None:
            self.standard_input.close()

    @property
    def drop(self) -> bool:
        """Whether rows without a score or label are left out."""
        return self.missing == "drop"


PLAIN_READING = ReadOptions()


def spool(reading: ReadOptions, path: Path) -> Path:
    """Copy standard input to a file that only this user can read; its name has an ending.

    ``path`` is where the file goes, without an ending, in a folder that is removed by its owner.
    """
    if reading.standard_input is None:
        raise InputError("there is no standard input to read (-). Name a file.")
    if reading.repeatable:
        reading.standard_input.seek(0)
    with private_file(path) as copy:
        while block := reading.standard_input.read1(1 << 20):  # what is there: Ctrl-C works
            copy.write(block)
    with path.open("rb") as spooled:
        start = spooled.read(4)
    if not start:
        raise InputError("standard input is empty. It must hold named columns and rows of data.")
    kind = reading.format or BEGINNINGS.get(start, "csv")
    packed = ".gz" if start.startswith(PACKED) else ""
    return path.rename(path.with_suffix(f".{kind}{packed}"))


def repeatable(reading: ReadOptions) -> ReadOptions:
    """The same options with a copy of standard input, which can be spooled more than once.

    The copy has no name: nobody else can read it, and it goes when it is closed, by the options.
    """
    if reading.standard_input is None or reading.repeatable:
        return reading
    copy = tempfile.TemporaryFile(prefix="calibrant-")  # noqa: SIM115 - the options close it
    shutil.copyfileobj(reading.standard_input, copy)
    return replace(reading, standard_input=cast(BufferedIOBase, copy), repeatable=True)


# --- Folders named NAME=VALUE: columns that stand in the path of a file and not in the file -------


#: how a missing value is written
ABSENT = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})$")


def partitions_of(path: Path) -> dict[str, str | None]:
    """What the folders of a path say, by name.

    >>> partitions_of(Path("sales/day=2024-05-01/land=fr%2Fca/x.parquet"))
    {'day': '2024-05-01', 'land': 'fr/ca'}
    """
    pairs = (part.split("=", 1) for part in path.parent.parts if not part.startswith("="))
    said: dict[str, str] = {}
    for name, value in (map(unquote, pair) for pair in pairs if len(pair) == 2):
        if said.setdefault(name, value) != value:
            raise InputError(
                f"the folders of {path} must say one thing of {name!r}, but they say "
                f"{said[name]!r} and {value!r}. Rename one of them."
            )
    return {name: None if value == ABSENT else value for name, value in said.items()}


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


# --- The records of a CSV file, counted apart from the engine that reads them ---------------------
# An engine may guess a dialect wrong and lose rows without a word. Here the bytes are counted: how
# many records, how many fields, which line ends. What can be read in two ways is refused.


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
