"""Data files by name: which there are, what kind each is, and where a column is."""

from __future__ import annotations

import difflib
import glob
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibrant.data.naming import unknown_column
from calibrant.errors import InputError

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
#: words for "no value" in a column of numbers, in lower case
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")


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
