"""Data files before an engine reads them: names and kinds, sheets, the records of CSV files, and
what the words and numbers in them mean."""

from __future__ import annotations

import codecs
import csv
import difflib
import glob
import gzip
import io
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cached_property
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Flags
from calibrant.data.columns import plain, unknown_column
from calibrant.data.door import check_word, read_labels, read_sorted_classes
from calibrant.data.lazy import Coding, make_coding, refuse_classes, refuse_soft
from calibrant.errors import InputError, ParameterError, import_extra, shell_quoted
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
    """The number of a column, by its name; an InputError with the names there are if it is missing.

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
    elif kind == "csv" and all(number_in_word(name) is not None for name in names):
        hint = " These look like data: the file needs a header line with the columns' names."
    elif kind == "csv" and len(names) == 1:
        hint = " Only one column was found: separate fields by a comma, semicolon, tab or |."
    raise InputError(said + hint)


def nameless(names: Sequence[str]) -> str:
    """Advice where columns have no name, as below a title; empty where all have one.

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
    """The files that names and globs stand for, each once. Globs are sorted.

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
            near: list[str] = []
            with suppress(OSError):
                names = [entry.name for entry in path.parent.iterdir()]
                near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
            hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
            raise InputError(f"there is no file {name}.{hint}")
        for match in matches:
            if not match.is_dir():
                seen = match.stat()
                if not stat.S_ISREG(seen.st_mode):  # columns, rows and their number are asked for
                    raise InputError(
                        f"data must be in a file, but {match} is a pipe or a device, and data are "
                        f"read more than once. Save them first, for example: cat {match} > rows.csv"
                    )
                if own := _own_format(match):
                    what = f"one of calibrant's own files ({own})"
                    what = "a calibrator" if is_calibrator(match) else what
                    raise InputError(
                        f"rows of data are needed here, but {match.name} is {what}. Name the file "
                        "with the scores."
                    )
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
    """The format that a JSON file of calibrant names; empty for other files."""
    try:
        with path.open("rb") as stream:
            start = stream.read(256)
    except (OSError, ValueError):
        return ""
    found = re.match(rb'\s*\{\s*"format":\s*"(calibrant[a-z-]*)"', start)
    return "" if found is None else found[1].decode()


def refuse_url(name: str) -> None:
    """Refuse a URL: files must be on this machine."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        raise InputError(
            f"files must be on this machine, but {name} came. Copy it here, or use the engine "
            "spark, which reads and writes URLs."
        )


def file_kind(path: Path) -> tuple[str, str, bool]:
    """The kind of a file, its ending, and whether it is compressed, by its name.

    >>> file_kind(Path("scores.TSV.gz"))
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


def output_file_kind(path: Path) -> tuple[str, str, bool]:
    """`file_kind` for a file to be written. Sheets are refused.

    >>> output_file_kind(Path("scores.xlsx"))
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: scores.xlsx must end in one of .csv, .tsv, .txt, .dat, .data, \
.jsonl, .ndjson, .json, .parquet, .pq (text also with .gz): sheets are read, not written.
    """
    found = file_kind(path)
    if found[0] == "excel":
        written = (ending for ending, kind in KINDS.items() if kind != "excel")
        raise InputError(
            f"{path.name} must end in one of {', '.join(written)} (text also with .gz): sheets are "
            "read, not written."
        )
    return found


def one_file_kind(kinds: Mapping[str, str]) -> str:
    """The one kind that all files have; several kinds are refused."""
    if len(kinds) > 1:
        raise InputError(
            f"files must be of one kind, but {' and '.join(kinds.values())} came. Run once for "
            "each kind, or convert them."
        )
    return next(iter(kinds))


def refuse_different(files: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse files that do not all have the same columns."""
    for name, others in files[1:]:
        first, names = files[0]
        if sorted(others) != sorted(names):
            odd = sorted(set(others) ^ set(names)) or sorted(others)
            raise InputError(
                f"all files must have the same columns, but {first} and {name} differ in "
                f"{', '.join(map(repr, odd[:8]))}. Use one by one."
            )


# --- Sheets of Excel and OpenDocument files as CSV text, which is then read like any other --------


def sheet_as_csv(path: Path, to: IO[str], wanted: Sequence[str] = ()) -> str:
    """Write a sheet of a workbook as CSV: the one that has most of the wanted columns. Returns a
    note if there are other sheets.

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
    calamine = import_extra("python_calamine", extra="cli")
    try:
        book = calamine.CalamineWorkbook.from_path(path)
    except calamine.PasswordError as wrong:
        raise InputError(
            f"{path.name} is locked by a password. Save it without one, or as CSV UTF-8."
        ) from wrong
    except (calamine.CalamineError, calamine.ZipError, calamine.XmlError) as wrong:
        raise InputError(
            f"{path.name} cannot be read as an Excel or OpenDocument file: {wrong}. Is it whole, "
            "and of the kind that its ending says?"
        ) from wrong
    found = {name: rows for name in book.sheet_names if (rows := _sheet_rows(book, name))}
    if not found:
        raise InputError(f"{path.name} is empty. It must hold a row of names and rows of data.")
    asked = {name.strip() for name in wanted}

    def fits(name: str) -> tuple[int, int]:
        return len(asked.intersection(map(str.strip, found[name][0]))), len(found[name])

    chosen = max(found, key=fits)  # the first of equals
    rows = found[chosen]
    kept = [i for i in range(len(rows[0])) if any(row[i].strip() for row in rows)]
    csv.writer(to).writerows([row[i] for i in kept] for row in rows)
    others = len(found) - 1
    return f"{path.name}: the sheet {chosen!r} was read, of {others + 1}" if others else ""


def _sheet_rows(book: Any, name: str) -> list[list[str]]:
    """The rows of a sheet as text, without empty ones."""
    cells = book.get_sheet_by_name(name).to_python()
    rows = ([_cell_text(cell) for cell in row] for row in cells)
    return [row for row in rows if any(text.strip() for text in row)]


def _cell_text(cell: Any) -> str:
    """The value of a cell as text.

    >>> [_cell_text(cell) for cell in (7.0, 0.25, True, "007", date(2026, 3, 1))]
    ['7', '0.25', 'true', '007', '2026-03-01']
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


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
    """How files are read: decimal mark, missing values, standard input, encoding.

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
    encoding : str, optional
        Of CSV files without a byte order mark, by any name that Python knows. By default UTF-8, or
        cp1252 where a file is not UTF-8.
    """

    decimal: str | None = None
    missing: str = "error"
    standard_input: BufferedIOBase | None = None
    format: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.decimal is not None and self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be . or , but {self.decimal!r} came.")
        check_word("missing", self.missing, ON_MISSING)
        if self.format is not None and self.format not in FORMATS:
            raise ParameterError(
                f"format must be {' or '.join(FORMATS)}, but {self.format!r} came."
            )

    @property
    def spelling(self) -> NumberSpelling | None:
        """How numbers are spelled, if that was said; else None."""
        return None if self.decimal is None else NumberSpelling(self.decimal)

    @property
    def drop(self) -> bool:
        """Whether rows without a score or label are left out."""
        return self.missing == "drop"


PLAIN_READING = ReadOptions()


def save_standard_input(reading: ReadOptions, path: Path) -> Path:
    """Copy standard input to a file, so that it can be read more than once; its path.

    ``path`` is where the file goes, without an ending, in a folder that is removed by its owner.
    """
    if reading.standard_input is None:
        raise InputError("there is no standard input to read (-). Name a file.")
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


# --- Folders named NAME=VALUE: columns that stand in the path of a file and not in the file -------


#: how a missing value is written
ABSENT = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})$")


def folder_columns(path: Path) -> dict[str, str | None]:
    """The names and values in folders called NAME=VALUE, as {name: value}.

    >>> folder_columns(Path("sales/day=2024-05-01/land=fr%2Fca/x.parquet"))
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
    """What is known of a CSV file before its rows are read: names, separator, and where the rows
    begin.

    ``above`` counts what stands above the header. ``rows`` and ``line_end`` are known where the
    wanted columns were found, else None.
    """

    names: tuple[str, ...]
    separator: str
    above: CsvCounts
    rows: int | None = None
    line_end: str | None = None


def read_csv_header(path: Path, wanted: Sequence[str] = (), *, counted: bool = True) -> CsvHeader:
    """Read the header of a CSV file. The separator is the one that finds most of the wanted
    columns.

    Where all of them are found, the records are counted as well, if that is asked for.
    """
    with _open_text(path) as stream:  # spreadsheets write a first line like sep=;
        first = stream.readline(16).rstrip("\r\n")
    if len(first) > 3 and any(set(first[side::2]) == {"\0"} for side in (0, 1)):
        raise InputError(
            f"{path.name} looks like UTF-16 without a byte order mark: say --encoding utf-16-le, "
            "or utf-16-be."
        )
    told = first[4] if len(first) == 5 and first.lower().startswith("sep=") else ""
    likely = ("\t", *SEPARATORS) if file_kind(path)[1] == ".tsv" else SEPARATORS
    asked = {name.strip() for name in wanted}

    def fits(header: CsvHeader) -> tuple[int, int]:
        names = [name.strip() for name in header.names]
        return len(asked.intersection(names)), len(names)

    headers = [_csv_header(path, separator, bool(told)) for separator in (told or likely)]
    found = max(headers, key=fits)  # the first of equals
    separator, names = found.separator, {name.strip() for name in found.names}
    if not asked <= {*names, *folder_columns(path)}:
        return found  # an error: there is no such column
    with open_bytes(path) as start:
        marked = start.read(len(BOM) + 1) == BOM + b'"'
    name = found.names[0]
    if marked and (name.endswith(separator) or any(c in name for c in '"\r\n')):
        # after a byte order mark DuckDB takes a quote for a part of the name, up to its separator
        raise InputError(
            f"{path.name} begins with a byte order mark, and its first column's name {name[:40]!r} "
            "holds a quote or a line break, or ends in the separator: this cannot be read safely. "
            f"Rename the column, or drop the mark: tail -c +4 {path.name} > unmarked.csv"
        )
    if not counted:
        return found
    with _readable(path):
        rows, line_end = count_csv_rows(path, separator, len(found.names), found.above)
    return found._replace(rows=rows, line_end=line_end)


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    """A text file in UTF-8, open for reading."""
    with (
        _readable(path),
        open_bytes(path) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream,
    ):
        yield stream


def _csv_header(path: Path, separator: str, told: bool) -> CsvHeader:
    """The header by one separator: the first line that is not blank."""
    above = CsvCounts()
    with _open_text(path) as stream:
        for fields in csv.reader(stream, delimiter=separator):
            if any(field.strip() for field in fields) and not (told and above.lines == 0):
                return CsvHeader(tuple(fields), separator, above)
            above.add_record(fields)
    raise InputError(f"{path.name} is empty. It must hold a header line and rows of data.")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn errors of reading a text file into an InputError."""
    try:
        yield
    except UnicodeDecodeError as wrong:
        raise NotUtf8Error(not_utf8_message(path.name)) from wrong
    except (gzip.BadGzipFile, EOFError, zlib.error) as wrong:
        raise InputError(f"{path.name} cannot be read: {wrong}") from wrong
    except csv.Error as wrong:
        raise InputError(
            f"{path.name} has a header with a name of more than {csv.field_size_limit():,} "
            "characters. If a quote was not closed, close it; otherwise shorten the name."
        ) from wrong


class NotUtf8Error(InputError):
    """The error of a text file that is not UTF-8."""


def not_utf8_message(name: str, line: str = "") -> str:
    """The error text for a file that is not UTF-8."""
    where = f" (line {line})" if line else ""
    return (
        f"{name} must be UTF-8 text, but it is not{where}. Name its encoding, for example "
        "--encoding cp1250, or save it as 'CSV UTF-8'."
    )


# --- CSV files in other encodings: a copy in UTF-8 is what is read --------------------------------


#: Windows' encoding of Western Europe and America, in which Excel there writes CSV
WINDOWS = "cp1252"
#: byte order marks, the longer ones first, and the encodings that they tell
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: letters of several bytes in UTF-8
SEQUENCES = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
#: bytes of no letter in latin-1, where cp1252 has the euro sign and quotation marks
CONTROLS = re.compile("[\x80-\x9f]")


class Encoding(NamedTuple):
    """The encoding of a text file: its name in Python, and the byte order mark."""

    name: str
    mark: bytes = b""

    @property
    def utf8(self) -> bool:
        """Whether it is UTF-8."""
        return self.name == "utf-8"

    def __str__(self) -> str:
        """The encoding for people.

        >>> print(Encoding("utf-16-le", codecs.BOM_UTF16_LE), Encoding("cp1252"))
        UTF-16 cp1252
        """
        return self.name.upper().removesuffix("-LE").removesuffix("-BE") if self.mark else self.name


UTF8 = Encoding("utf-8")


def check_encoding(name: str) -> None:
    """Refuse an encoding of text that Python does not know."""
    try:
        "a".encode(name)
    except (LookupError, ValueError) as wrong:
        raise ParameterError(
            "encoding must be one that Python knows, such as cp1252, cp1250, utf-16 or shift_jis, "
            f"but {name!r} came."
        ) from wrong


def file_encoding(path: Path, asked: str | None) -> Encoding | None:
    """The encoding of a text file: by its byte order mark, else as asked for, else None."""
    with _readable(path), open_bytes(path) as stream:
        start = stream.read(4)
    for mark, name in BYTE_ORDER_MARKS:
        if start.startswith(mark):
            return Encoding(name, mark)
    return None if asked is None else Encoding(codecs.lookup(asked).name.removesuffix("-sig"))


def decode_file(path: Path, encoding: Encoding, to: IO[bytes], *, guessed: bool = False) -> str:
    """Copy a text file to UTF-8. Returns a note for the user.

    ``guessed``: an InputError where the text is UTF-8 for the most part, with a few wrong bytes.
    """
    decoder = codecs.getincrementaldecoder(encoding.name)()
    high, right, example, odd = 0, 0, "", False
    with _readable(path), open_bytes(path) as stream:
        stream.seek(len(encoding.mark))
        ended = False
        while not ended:
            block = stream.read(BLOCK)
            ended = not block
            try:
                text = decoder.decode(block, ended)
            except UnicodeDecodeError as wrong:
                said = (
                    f"{path.name} must be {encoding} text, but some bytes are none. Is it whole, "
                    "and is that its encoding? Name another with --encoding."
                )
                raise InputError(not_utf8_message(path.name) if guessed else said) from wrong
            if not block.isascii():
                if guessed:
                    found = SEQUENCES.findall(block)
                    right += len(found)
                    high += len(block.translate(None, bytes(range(128)))) - len(b"".join(found))
                odd = odd or (encoding.name == "iso8859-1" and bool(CONTROLS.search(text)))
                if not example and (letters := re.search(r"\w*[^\W\x00-\x7f]\w*", text)):
                    example = letters[0][:40]
            to.write(text.encode())
    if guessed and right >= high:
        raise InputError(not_utf8_message(path.name))
    shown = f", as in {example!r}" if example else ""
    if guessed:
        return (
            f"{path.name} is not UTF-8: it was read as {encoding}, Windows' Western encoding"
            f"{shown}; name another with --encoding"
        )
    if odd:
        return (
            f"{path.name} holds signs that latin-1 lacks, such as € or quotation marks of Windows: "
            "--encoding cp1252 reads them"
        )
    return f"{path.name} was read as {encoding}{shown}" if encoding.mark else ""


def encode_file(path: Path, encoding: Encoding, to: IO[bytes]) -> None:
    """Copy a text file from UTF-8 to another encoding, with its byte order mark."""
    to.write(encoding.mark)
    encoder = codecs.getincrementalencoder(encoding.name)()
    with path.open(encoding="utf-8", newline="") as stream:
        while text := stream.read(BLOCK):
            try:
                to.write(encoder.encode(text))
            except UnicodeEncodeError as wrong:
                raise InputError(
                    not_encodable_message(wrong.object[wrong.start], encoding)
                ) from wrong
    to.write(encoder.encode("", True))


def not_encodable_message(letter: str, encoding: Encoding) -> str:
    """The error text for a letter that the output's encoding lacks."""
    return (
        f"the output is in {encoding}, as the file that is read, and {encoding} has no {letter!r}. "
        "Choose another name with --into, write .parquet or .jsonl, or save the file as 'CSV "
        "UTF-8' first."
    )


# --- The records of a CSV file, counted apart from the engine that reads them ---------------------
# An engine may guess a dialect wrong and lose rows without a word. Here the bytes are counted: how
# many records, how many fields, which line ends. What can be read in two ways is refused.


BOM = b"\xef\xbb\xbf"
#: bytes that are looked at together; about what fits into a core's own cache
BLOCK = 2**19
QUOTE, FEED, RETURN = 34, 10, 13


@dataclass
class CsvCounts:
    """Counts of lines, separators and line ends in a CSV file, by its bytes.

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

    def add_record(self, fields: Sequence[str]) -> None:
        """Count one more record, given by its fields."""
        self.lines += 1
        self.blank += not fields
        self.separators += max(len(fields) - 1, 0)

    @property
    def line_end(self) -> str | None:
        """The line end of the file; None where it has several kinds."""
        if not self.returns:
            return "\n"
        if self.returns == self.pairs == self.feeds:
            return "\r\n"
        return None if self.feeds else "\r"


class _UnusualError(Exception):
    """A quote stands at an unusual place, so that records must be read one by one."""


def count_csv_rows(path: Path, separator: str, columns: int, above: CsvCounts) -> tuple[int, str]:
    """The number of data rows of a CSV file, and its line end. A file that is ambiguous is refused.

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
        counted = _count_by_blocks(path, separator)
    except _UnusualError:
        counted = _count_by_records(path, separator, columns, above)
    if counted.line_end is None:
        raise InputError(
            f"{path.name} mixes line endings, so that it cannot be read safely. Make them alike "
            f"first, for example: tr -d '\\r' < {path.name} > clean.csv"
        )
    records = counted.lines - above.lines
    if columns > 1:
        records -= counted.blank - above.blank
    if counted.separators - above.separators != records * (columns - 1):
        _count_by_records(path, separator, columns, above)  # which says where
        raise InputError(f"{path.name} cannot be read safely: its fields do not add up.")
    return records - 1, counted.line_end


def wrong_fields_message(name: str, line: Any, found: Any, columns: Any, shown: str = "") -> str:
    """The error text for a line with too many or too few fields."""
    what = f": {shown[:80]!r}" if shown else ""
    return (
        f"{name}: line {line} has {found} fields where the header has {columns}{what}. Quote "
        "fields that hold the separator, and drop lines that are not data."
    )


def open_bytes(path: Path) -> IO[bytes]:
    """A file, open for reading bytes; .gz is unpacked."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


def open_packed(path: Path, packed: bool) -> IO[bytes]:
    """A file, open for writing bytes; compressed if ``packed``."""
    return gzip.open(path, "wb") if packed else path.open("wb")  # type: ignore[return-value]


# --- by blocks ----------------------------------------------------------------------------------


def _count_by_blocks(path: Path, separator: str) -> CsvCounts:
    """Count a CSV file in blocks of bytes, which is fast."""
    if not separator.isascii():
        raise _UnusualError
    counted, before, mark = CsvCounts(), FEED, ord(separator)
    decoder: codecs.IncrementalDecoder | None = None

    def number(found: Flags) -> int:
        return int(np.count_nonzero(found))

    for block, after in _byte_blocks(path):
        if decoder is not None or not block.isascii():  # the text must be UTF-8
            decoder = decoder or codecs.getincrementaldecoder("utf-8")()
            decoder.decode(block)
        around = np.frombuffer(bytes([before]) + block + bytes([after]), np.uint8)
        left, here, right = around[:-2], around[1:-1], around[2:]
        outside: Any = True
        if counted.inside or b'"' in block:
            outside = _outside_quotes(counted, around, mark)
        counted.separators += number((here == mark) & outside)
        feeds = (here == FEED) & outside
        counted.feeds += number(feeds)
        counted.blank += number(feeds & (left == FEED))
        if b"\r" in block:
            returns = (here == RETURN) & outside
            counted.returns += number(returns)
            counted.pairs += number(returns & (right == FEED))
            counted.blank += number(returns & ((left == FEED) | (left == RETURN)))
        before = block[-1]
    if decoder is not None:
        decoder.decode(b"", True)
    if counted.inside:
        raise _UnusualError  # a quote does not end: which one?
    ends = counted.returns if counted.line_end == "\r" else counted.feeds
    counted.lines = ends + (before not in (FEED, RETURN))
    return counted


def _byte_blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    """The bytes of a file in blocks, each with the first byte of the next block."""
    with open_bytes(path) as stream:
        held = stream.read(BLOCK).removeprefix(BOM)
        while following := stream.read(BLOCK):
            if held:
                yield held, following[0]
            held = following
        if held:
            yield held, FEED


def _outside_quotes(counted: CsvCounts, around: NDArray[np.uint8], mark: int) -> Flags:
    """Which bytes of a block are outside of quotes. _UnusualError where a quote stands at an
    unusual place."""
    quotes = around[1:-1] == QUOTE
    inside = (np.cumsum(quotes, dtype=np.uint8) + np.uint8(counted.inside)) & 1
    places = np.flatnonzero(quotes)
    opening = inside[places] == 1
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


def _count_by_records(path: Path, separator: str, columns: int, above: CsvCounts) -> CsvCounts:
    """Count a CSV file record by record, with Python's reader. It finds the line of a mistake."""
    counted, start = CsvCounts(), 1
    record: list[str] = []  # the lines of the record that is read

    def kept(line: str) -> str:
        record.append(line)
        return line

    with open_bytes(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as stream:
        reader = csv.reader(map(kept, stream), delimiter=separator, strict=True)
        try:
            for fields in reader:
                counted.add_record(fields)
                if counted.lines > above.lines:
                    _check_fields(path.name, start, fields, columns, record)
                last = record[-1]
                counted.feeds += last.endswith("\n")
                counted.returns += last.endswith(("\r", "\r\n"))
                counted.pairs += last.endswith("\r\n")
                start = reader.line_num + 1
                record.clear()
        except csv.Error as wrong:
            said = _csv_mistake(str(wrong), _start_of_record(record))
            raise InputError(f"{path.name}: line {start} has a {said}") from wrong
    return counted


def _csv_mistake(wrong: str, record: str) -> str:
    """What Python's CSV reader found wrong, in our words."""
    if "larger than" in wrong:
        return (
            f"field of more than {csv.field_size_limit():,} characters: {record!r}. If a quote was "
            "not closed, close it. Otherwise put fields that hold a quote into quotes, and double "
            'it, as in "5"" pipe": then longer fields can be read.'
        )
    where = "that does not end" if "end of data" in wrong else "within a field"
    return f"quote {where}: {record!r}. Close or double it."


def _check_fields(name: str, line: int, fields: list[str], columns: int, record: list[str]) -> None:
    """Refuse a record with the wrong number of fields, or with a blank before a quote."""
    odd = [text for text in fields if text.startswith(" ") and text.lstrip(" ").startswith('"')]
    for text in odd:  # right only if all of it is in quotes
        quoted = '"' + text.replace('"', '""') + '"'
        if "".join(record).count(quoted) < odd.count(text):
            raise InputError(
                f"{name}: line {line} has a blank between a separator and a quote, so that it can "
                f"be read in two ways: {_start_of_record(record)!r}. Take the blank away."
            )
    if fields and len(fields) != columns:
        raise InputError(
            wrong_fields_message(name, line, len(fields), columns, _start_of_record(record))
        )


def _start_of_record(record: list[str]) -> str:
    """The beginning of a record, for messages."""
    return record[0].rstrip("\r\n")[:80]


# --- Words as files hold them: what labels mean ---------------------------------------------------


INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)$")
#: words for truth values, in lower case
TRUTH = {"true": True, "false": False}
#: words for "no value" that may be labels as well; "none" is one of three labels, rather
UNSURE = ("-", "none")


def typed(spellings: list[str]) -> dict[str, Label]:
    """The value of each spelling of a label: all truth values, all whole numbers, all numbers, or
    words.

    >>> typed(["0", "1"]), typed(["TRUE", "false"])
    ({'0': 0, '1': 1}, {'TRUE': True, 'false': False})
    >>> typed(["1.0", "0"]), typed(["007", "1"])
    ({'1.0': 1.0, '0': 0.0}, {'007': '007', '1': '1'})
    """
    if all(word.lower() in TRUTH for word in spellings):
        return {word: TRUTH[word.lower()] for word in spellings}
    if all(INTEGER.match(word) for word in spellings):
        return {word: int(word) for word in spellings}
    numbers = {word: _number_in_label(word) for word in spellings}
    if all(math.isfinite(value) for value in numbers.values()):
        return dict(numbers)
    return {word: word for word in spellings}


def _number_in_label(word: str) -> float:
    # 007 is a name, and so are 1_0 and other digits, which Python would take for numbers
    """The number that a label spells; NaN for names such as 007."""
    if re.match(r"[+-]?0[0-9]", word) or not re.fullmatch(r"[-+.eE0-9]+", word):
        return math.nan
    try:
        return float(word)
    except ValueError:
        return math.nan


def missing_label_words(spellings: list[str]) -> list[str]:
    """The spellings that mean "no label", such as NA among numbers.

    >>> missing_label_words(["0", "1", "NA"]), missing_label_words(["no", "yes", "?"])
    (['NA'], ['?'])
    >>> missing_label_words(["NA", "EU"]), missing_label_words(["-", "+", "?"])
    ([], ['?'])
    """
    words = [word for word in spellings if word.lower() in MISSING]
    rest = [word for word in spellings if word not in words]
    values = typed(rest).values()
    if rest and not any(isinstance(value, str) for value in values):
        return words
    for unsure in (UNSURE, ("none",)):  # only as few as need be are no labels
        some = [word for word in words if word.lower() not in unsure]
        if some and len(spellings) - len(some) == 2:
            return some
    return []


def typed_present(spellings: list[str]) -> dict[str, Label]:
    """The value of each spelling of a label, without those that mean "no label".

    >>> typed_present(["1", "0", "NA"])
    {'0': 0, '1': 1}
    """
    absent = missing_label_words(spellings)
    return typed(sorted(word for word in spellings if word not in absent))


def classes_of(values: Mapping[Any, Label], column: str, pos_label: Any = None) -> Coding:
    """The two classes of a column and which is positive, from the values of its labels.

    A single word is one of two classes if it is a yes or a no, or if ``pos_label`` is said: the
    word itself, or the other class, of which there are no rows.

    >>> classes_of({"0": 0, "1": 1}, "bought", "0").pos_label
    0
    >>> classes_of({"stayed": "stayed"}, "churn", "left").classes
    ('left', 'stayed')
    """
    labels = list(values.values())
    asked: Label | None = None
    pair = _pair_of_one(labels, column, None if callable(pos_label) else pos_label)
    refuse_classes(labels, column, known=pair is not None)
    known = list(dict.fromkeys(labels)) if pair is None else list(pair)
    if callable(pos_label):
        pick: Callable[[list[Label]], Label | None] = pos_label
        asked = pick(known)
    elif pos_label is not None:
        if pair is None:
            known = [plain(label) for label in read_labels(labels).classes]
        asked = match_label(known, pos_label)
        if asked is None:
            raise InputError(
                f"the positive label must be one of {known} (column {column!r}), but "
                f"{pos_label!r} came."
            )
    return make_coding(list(values), labels, column, pos_label=asked, classes=pair)


def _pair_of_one(labels: Sequence[Label], column: str, said: Any) -> tuple[Label, Label] | None:
    """Both classes of a column that has one word only, such as yes; None where that cannot be
    told."""
    if len(set(labels)) != 1 or not isinstance(labels[0], str):
        return None
    word = labels[0]
    partner = partner_of(word)
    if partner is not None and (said is None or match_label((word, partner), said) is not None):
        return word, partner
    if said is None:
        option = f"--pos-label {shell_quoted(word)}"
        raise InputError(
            f"label column {column!r} must hold two classes, but only one class came: {word!r}, "
            f"and nothing tells whether that is the positive label. If it is, add {option}; if the "
            "other label is, which no row has, add --pos-label with its name. Better: add rows of "
            "the other label."
        )
    return word, (f"not {word}" if match_label((word,), said) is not None else str(said).strip())


def match_label(known: Sequence[Label], asked: Any) -> Label | None:
    """The label that is meant by what a user typed; None where there is none.

    >>> match_label([0, 1], "1"), match_label(["no", "yes"], "YES"), match_label([0, 1], "2")
    (1, 'yes', None)
    """
    word = str(asked).strip()
    for same in (str, str.lower):
        for label in known:
            if label == asked or same(str(label)) == same(word):
                return label
    meant = typed([word])[word]
    for label in known:
        if label == meant and isinstance(label, bool) == isinstance(meant, bool):
            return label
    return None


def sorted_classes(labels: Iterable[Label], column: str) -> tuple[Label, ...]:
    """The different labels of a column, sorted.

    >>> sorted_classes(["b", "a", "b"], "kind")
    ('a', 'b')
    """
    values = list(labels)
    refuse_soft(values, column)
    found, _ = read_sorted_classes(values)
    return tuple(plain(label) for label in found)


# --- Which of two words is the yes: pairs that people write into files, in several languages ------


Label = str | int | float | bool

#: the yes and its no; pairs that some use one way and some the other, such as good and bad, are out
_WORDS = """
yes/no y/n true/false t/f positive/negative pos/neg +/-
ja/nein j/n wahr/falsch positiv/negativ ja/nee ja/nej ja/nei
oui/non o/n vrai/faux positif/négatif
si/no sí/no s/n verdadero/falso positivo/negativo sì/no vero/falso sim/não sim/nao verdadeiro/falso
tak/nie ano/ne áno/nie da/ne da/nu igen/nem kyllä/ei evet/hayır да/нет так/ні ναι/όχι
はい/いいえ 是/否 예/아니요 예/아니오
"""
PAIRS = tuple(tuple(pair.split("/")) for pair in _WORDS.split())


def yes_of(labels: Iterable[Label]) -> Label | None:
    """The one of two labels that means yes, in many languages; None for other pairs.

    >>> yes_of(["Ja", "Nein"]), yes_of(["no", "yes"]), yes_of(["good", "bad"])
    ('Ja', 'yes', None)
    """
    words = {str(label).strip().casefold(): label for label in labels if isinstance(label, str)}
    return next((words[yes] for yes, no in PAIRS if words.keys() == {yes, no}), None)


def partner_of(label: Label) -> Label | None:
    """The no to a yes, or the yes to a no, in the same case; None for other words.

    >>> partner_of("Yes"), partner_of("no"), partner_of("bought")
    ('No', 'yes', None)
    """
    word = label.strip() if isinstance(label, str) else ""
    for pair in PAIRS:
        if word.casefold() in pair:
            other = pair[word.casefold() == pair[0]]
            styles = (str.lower, str.title, str.upper)
            return next((style(other) for style in styles if style(word) == word), other)
    return None


# --- How numbers are spelled in text: ``0,75``, ``1.234,5``, ``1,234.5`` and ``12.3 %`` -----------
# A plain number, ``0.75`` or ``1e-3``, needs no spelling. The others are read by one spelling for a
# whole column, the one that reads every value. Where two read every value, and not as the same
# numbers, the column is refused: ``1,234`` alone may be 1234 or 1.234.


#: blanks that stand between thousands, the narrow and the unbroken one of typesetters among them
BLANK = "[ \u00a0\u202f]"
#: marks between thousands beside the one that is no decimal mark
MARKS = (BLANK, "['\u2019]")
#: what follows a percentage
PERCENT = f"{BLANK}?%"


@dataclass(frozen=True)
class NumberSpelling:
    """One way to spell numbers: the decimal mark, and whether a percent sign follows.

    Parameters
    ----------
    decimal : {".", ","}
        The mark before decimals; the other one may stand between thousands, and so may a blank or
        an apostrophe.
    percent : bool, default=False
        Whether each number is followed by a percent sign, and is divided by 100.

    Examples
    --------
    >>> NumberSpelling(",").read("1.234,5"), NumberSpelling(".", percent=True).read("12.3 %")
    (1234.5, 0.123)
    >>> NumberSpelling(",").read("0.5") is None
    True
    """

    decimal: str
    percent: bool = False

    @cached_property
    def pattern(self) -> str:
        """A regular expression that matches a whole number in this spelling."""
        mark = re.escape(self.decimal)
        between = (re.escape("," if self.decimal == "." else "."), *MARKS)
        groups = "|".join(f"(?:{one}[0-9]{{3}})+" for one in between)
        whole = f"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{groups}))"
        number = f"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)"
        # no power of ten before a percent sign: nobody writes it, and -2 is put there
        return number + (PERCENT if self.percent else "(?:[eE][+-]?[0-9]+)?")

    @property
    def dropped(self) -> str:
        """A regular expression of signs to drop before the text is read as a number."""
        return f"[% '\u00a0\u202f\u2019{',' if self.decimal == '.' else '.'}]"

    @property
    def ending(self) -> str:
        """What to append to the digits: e-2 for a percentage."""
        return "e-2" if self.percent else ""

    def read(self, text: str) -> float | None:
        """The number that a text spells; None where it spells none."""
        bare = text.strip()
        if not re.fullmatch(self.pattern, bare):
            return None
        return float(re.sub(self.dropped, "", bare).replace(",", ".") + self.ending)

    def __str__(self) -> str:
        """How numbers are written, in words.

        >>> print(NumberSpelling(","))
        with a decimal comma
        """
        mark = "with a decimal comma" if self.decimal == "," else ""
        if self.percent:
            return f"as percentages {mark}".strip()
        return mark or "with marks between thousands"


#: all there are, the likeliest first
SPELLINGS = tuple(NumberSpelling(mark, percent) for percent in (False, True) for mark in ".,")


def choose_number_spelling(
    read: Mapping[NumberSpelling | None, int], unsure: Mapping[bool, str], name: str
) -> NumberSpelling | None:
    """The spelling that reads most values of a column; None for plain numbers.

    Parameters
    ----------
    read : how many values each of the allowed spellings reads, None for plain numbers
    unsure : a value that is one number with a point and another with a comma, if there is one;
        by whether it is a percentage
    name : what the column is called in an error

    >>> counts = {None: 1, NumberSpelling("."): 1, NumberSpelling(","): 9}
    >>> choose_number_spelling(counts, {}, "score column 'p'")
    NumberSpelling(decimal=',', percent=False)
    """
    best = max(read, key=lambda one: read[one])  # the first of equals
    if best is None:
        return None
    other = NumberSpelling("," if best.decimal == "." else ".", best.percent)
    if read.get(other, -1) < read[best] or best.percent not in unsure:
        return best
    text = unsure[best.percent]
    point, comma = (NumberSpelling(mark, best.percent).read(text) for mark in ".,")
    raise InputError(
        f"{name} can be read in two ways: {text!r} is {point!r} with a decimal point, and "
        f"{comma!r} with a decimal comma. Say which it is: --decimal . or --decimal ,"
    )


# --------------------------------------------------------------------------------------------------
# Columns of features from files: text becomes numbers or truth values where all of it is such


#: words for infinite numbers, in lower case and without sign
INFINITE = ("inf", "infinity")
POINT = NumberSpelling(".")


def number_in_word(word: str) -> int | float | bool | None:
    """The plain number or truth value that a word spells; None for other words.

    >>> [number_in_word(word) for word in ("07", "7.0", "TRUE", "7,5", "x")]
    [7, 7.0, True, None, None]
    """
    bare = word.strip()
    if bare.lower() in TRUTH:
        return TRUTH[bare.lower()]
    if re.fullmatch("[+-]?[0-9]{1,300}", bare):
        return int(bare)
    return POINT.read(bare) if _is_plain(bare) else None


def _is_plain(word: str) -> bool:
    """Whether a word is a plain number."""
    return POINT.read(word) is not None and re.search(POINT.dropped, word) is None


def typed_feature(parts: Sequence[Any], name: str, spelling: NumberSpelling | None = None) -> Any:
    """A column of features in Arrow. Text becomes numbers or truth values where all of it spells
    such.

    Words such as NA are no value among numbers and truth values; among other words only the empty
    one is.

    >>> import pyarrow
    >>> typed_feature([pyarrow.array(["1", "NA"]), pyarrow.array(["2.5"])], "age").to_pylist()
    [1.0, None, 2.5]
    >>> typed_feature([pyarrow.array(["NA", "EU", ""])], "region").to_pylist()
    ['NA', 'EU', None]
    >>> typed_feature([pyarrow.array(["TRUE", "false", "NA"])], "new").to_pylist()
    [True, False, None]
    """
    arrow = import_extra("pyarrow", extra="cli")
    column = arrow.chunked_array(parts)
    if arrow.types.is_nested(column.type) or arrow.types.is_temporal(column.type):
        raise InputError(
            f"feature column {name!r} must hold numbers or words, but its type is {column.type}. "
            "Leave it out, or convert it (dates for example to days)."
        )
    if not arrow.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()
    words = [word.strip() for word in coded.dictionary.to_pylist()]
    present = [word for word in words if word.lower() not in MISSING]
    if present and all(word.lower() in TRUTH for word in present):
        truths = [TRUTH.get(word.lower()) for word in words]
        return arrow.array(truths, arrow.bool_()).take(coded.indices)
    known = _spelling_of_words(present, name, spelling)
    if known is not None:
        numbers = [None if w.lower() in MISSING else known.read(w) for w in words]
        return arrow.array(numbers, arrow.float64()).take(coded.indices)
    return arrow.array([word or None for word in words], arrow.string()).take(coded.indices)


def _spelling_of_words(
    words: list[str], name: str, told: NumberSpelling | None
) -> NumberSpelling | None:
    """The spelling that reads all words as numbers; None where there is none."""
    finite = [word for word in words if word.lower().lstrip("+-") not in INFINITE]
    if told is None and all(map(_is_plain, finite)):
        found: NumberSpelling | None = POINT
    else:
        tried = [one for one in SPELLINGS if told is None or one.decimal == told.decimal]
        read: dict[NumberSpelling | None, int] = {
            one: sum(one.read(word) is not None for word in finite) for one in tried
        }
        found = None
        if max(read.values()) == len(finite):
            found = choose_number_spelling(
                read, _ambiguous_word(finite), f"feature column {name!r}"
            )
    if found is None or not finite:
        return None
    if len(finite) < len(words):
        first = next(word for word in words if word not in finite)
        raise InputError(
            f"feature column {name!r} must be finite, but {first!r} came. Correct or drop those "
            "rows, or leave the fields empty."
        )
    return found


def _ambiguous_word(words: list[str]) -> dict[bool, str]:
    """A word that a decimal point and a comma read as different numbers, for fractions and for
    percentages."""
    found: dict[bool, str] = {}
    for percent in (False, True):
        point, comma = (NumberSpelling(mark, percent) for mark in ".,")
        for word in words:
            values = point.read(word), comma.read(word)
            if None not in values and values[0] != values[1]:
                found[percent] = word
                break
    return found


#: words for "no value" in a column of numbers, in lower case
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")
