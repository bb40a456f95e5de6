"""Files → a Spark frame: the same kinds, names and words as on one machine."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.engines.files.csv_header import (
    CsvHeader,
    best_separator,
    read_csv_header,
    separators,
)
from calibrant.engines.files.data_files import (
    find_files,
    kind_of,
    one_kind,
    refuse_different,
    refuse_empty,
)
from calibrant.engines.files.partitions import partitions_of
from calibrant.engines.spark.failures import name_of
from calibrant.engines.spark.file_frame import FileFrame, quoted
from calibrant.engines.spark.folders import add_folders, refuse_replaced
from calibrant.engines.spark.json_lines import json_lines
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError, import_extra

#: CSV files without quotes are cut into pieces of this many bytes, which are read side by side
PIECE = 128 * 2**20
#: frames, and the number of rows that each local file must hold, None where it is not known
Read = tuple[list[Any], list[int | None]]
#: the longest field that is read; a quote that is not closed makes a longer one
LONGEST = 1_000_000


def read_files(
    spark: Spark,
    patterns: Sequence[str | os.PathLike[str]],
    wanted: Sequence[str] = (),
    *,
    lines: bool = False,
) -> FileFrame:
    """Files, globs, folders and URLs, all of one kind and with the same columns, as one frame.

    Parameters
    ----------
    spark : Spark
    patterns : paths, globs, folders of part files, or URLs such as ``hdfs://`` and ``s3a://``
        CSV, TSV, JSON lines (also .gz) or Parquet, told by their endings.
    wanted : names of columns, optional
        They decide between separators of a CSV file.
    lines : bool, default=False
        Keep the lines of JSON as they come, and take only the wanted columns out of them. A file
        that is an array has none, and is refused.

    Notes
    -----
    Fields of CSV files stay text, from which `FileFrame` takes numbers and labels. A CSV file with
    quotes, which may span lines, is read by one task; one without is cut into pieces. Text must be
    UTF-8: a row with other bytes is refused where they matter. JSON numbers in a column that also
    holds words are words, so that 1 and "1" are the same.
    """
    urls = [str(item) for item in patterns if is_url(os.fspath(item))]
    paths = _local([item for item in patterns if not is_url(os.fspath(item))], some=bool(urls))
    given: list[Path | str] = [*paths, *urls]
    kind = one_kind({_kind(item)[0]: name_of(str(item)) for item in given})
    readers = {"csv": _csv, "json": _json, "parquet": _parquet}
    if kind not in readers:
        raise InputError(
            f"{name_of(str(given[0]))} is a file of sheets, which the engine duckdb alone reads. "
            "Save it as CSV UTF-8."
        )
    keys, files = None, tuple(name_of(str(item)) for item in given)
    rows: list[int | None] = [None] * len(paths)
    if lines and kind == "json":
        _refuse_arrays(paths)
        taken = [*wanted, *(name for path in paths for name in partitions_of(path))]
        frame, keys = json_lines(spark, [*map(_escaped, paths), *urls], taken, files)
        frames = [frame]
    else:
        frames, rows = readers[kind](spark, paths, urls, wanted)
    if paths:
        frames = [add_folders(spark, frame, paths, kind) for frame in frames]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    counts = (*rows, *[None] * len(urls))
    return FileFrame(spark, frame, kind, files, counts, keys)


# --- which files --------------------------------------------------------------------------------


def is_url(name: str) -> bool:
    """Whether Spark itself must find it.

    >>> is_url("s3a://bucket/day=*/x.parquet"), is_url("data/x.csv"), is_url("C:/x.csv")
    (True, False, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name) is not None


def local_url(path: Path) -> str:
    """A local file as Spark is told it: not on the cluster's own file system."""
    whole = path.absolute().as_posix()
    return f"file://{whole}" if whole.startswith("/") else f"file:///{whole}"  # C:/x on Windows


def _escaped(path: Path) -> str:
    """The same, where Spark would take the name for a pattern."""
    return "".join(f"\\{c}" if c in "*?[]{}\\," else c for c in local_url(path))


def _local(patterns: Sequence[str | os.PathLike[str]], some: bool) -> list[Path]:
    """Files behind names and globs; a folder stands for its files."""
    found: dict[Path, None] = {}
    for item in patterns:
        path = Path(item)
        files = _within(path) if path.is_dir() else find_files([item])
        found.update(dict.fromkeys(files))
    if not found and not some:
        raise InputError("at least one data file must be given, but none came.")
    for path in found:
        if path.is_file() and path.name.startswith(("_", ".")):
            raise InputError(
                f"Spark does not see files whose names begin with _ or a dot. Rename {path.name}."
            )
        if ":" in path.name:
            raise InputError(f"Spark cannot read names with a colon. Rename {path.name}.")
        refuse_empty(path)
    return list(found)


def _within(folder: Path) -> list[Path]:
    inner = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    seen = [path for path in inner if not any(part[0] in "._" for part in path.parts)]
    if not seen:
        raise InputError(f"the folder {folder} holds no data files.")
    return [folder / path for path in seen]


def _kind(item: Path | str) -> tuple[str, str, bool]:
    """As `kind_of`, of a name that may hold wildcards."""
    name = re.split(r"[?*{\[]", name_of(str(item)))[-1] if isinstance(item, str) else item.name
    return kind_of(Path(f"x{name}" if name.startswith(".") else name))


# --- CSV ----------------------------------------------------------------------------------------


def _csv(spark: Spark, paths: list[Path], urls: list[str], wanted: Sequence[str]) -> Read:
    sources = [_header(path, wanted) for path in paths]
    # files with the same columns, separator and line ends are read together
    groups: dict[tuple[tuple[str, ...], str, str | None], list[CsvHeader]] = {}
    for source in sources:
        end = source.line_end if _may_span_lines(source.path) else None
        groups.setdefault((source.names, source.separator, end), []).append(source)
    refuse_different([(s.path.name, s.names) for s in sources])
    frames = []
    for (names, separator, end), alike in groups.items():
        options = _csv_options(separator, end is not None)
        if end:  # Spark would take the first line end, which may be one in quotes
            options["lineSep"] = end
        reader = spark.session.read.options(**options).schema(_texts(names))
        found = [_escaped(source.path) for source in alike]
        frames.append(reader.csv(found))
    for url in urls:
        options = _csv_options(_separator(spark, url, wanted), True)
        reader = spark.session.read.options(**options, enforceSchema=False)
        frames.append(spark.call(partial(reader.csv, url)))
    refuse_different([("the first file", frames[0].columns), ("another", frames[-1].columns)])
    # in files of one column, Spark leaves out the blank lines
    return frames, [source.rows if len(source.names) > 1 else None for source in sources]


def _csv_options(separator: str, lines: bool) -> dict[str, Any]:
    return {
        "header": True,
        "sep": separator,
        "quote": '"',
        "escape": '"',
        "multiLine": lines,
        "mode": "FAILFAST",
        "columnPruning": False,  # by which lines of another length would pass
        "unescapedQuoteHandling": "RAISE_ERROR",
        "inferSchema": False,
        "maxCharsPerColumn": LONGEST,
        "encoding": "UTF-8",
    }


def _header(path: Path, wanted: Sequence[str]) -> CsvHeader:
    source = read_csv_header(path, wanted)
    with path.open("rb") as stream:
        if stream.read(7).removeprefix(b"\xef\xbb\xbf")[:4].lower() == b"sep=":
            raise InputError(f"{path.name} begins with a line 'sep=', which is no data. Drop it.")
    twice = sorted({name for name in source.names if source.names.count(name) > 1})
    if twice:
        raise InputError(
            f"Spark needs columns with different names, but {path.name} has several named "
            f"{', '.join(map(repr, twice[:8]))}. Rename all but one."
        )
    return source


def _texts(names: Sequence[str]) -> str:
    """A schema of texts; columns without a name get those that Spark gives them."""
    return ", ".join(f"{quoted(name or f'_c{i}')} STRING" for i, name in enumerate(names))


def _may_span_lines(path: Path) -> bool:
    """Whether a row may hold line breaks, so that the file must be read by one task."""
    if path.suffix.lower() == ".gz" or path.stat().st_size < PIECE:
        return True  # not cut into pieces anyway
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return view.find(b'"') >= 0


def _separator(spark: Spark, url: str, wanted: Sequence[str]) -> str:
    lines = spark.call(lambda: spark.session.read.text(url).head(1))
    if not lines:
        raise InputError(f"{name_of(url)} is empty. It must hold a header line and rows of data.")
    first = lines[0][0]
    candidates = separators(_kind(url)[1])
    read = {s: [name.strip().strip('"') for name in first.split(s)] for s in candidates}
    return best_separator(read, wanted)


# --- JSON and Parquet ---------------------------------------------------------------------------


def _json(spark: Spark, paths: list[Path], urls: list[str], wanted: Sequence[str]) -> Read:
    arrays = [path for path in paths if _is_array(path)]
    lines = [_escaped(path) for path in paths if path not in arrays] + urls
    frames = []
    for found, whole in ((list(map(_escaped, arrays)), True), (lines, False)):
        if found:
            reader = spark.session.read.options(mode="FAILFAST", multiLine=whole)
            frames.append(spark.call(partial(reader.json, found)))
    refuse_different([("some files", frame.columns) for frame in frames])
    return frames, [None] * len(paths)


def _refuse_arrays(paths: list[Path]) -> None:
    """Spark takes the rows of an array apart, and would write other numbers and nulls."""
    for path in filter(_is_array, paths):
        raise InputError(
            f"{path.name} must hold one object in a line, but it is an array, whose rows Spark "
            f"would change. Make lines of it, for example: jq -c '.[]' {path.name} > rows.jsonl; "
            "or use the engine duckdb, which keeps them as they are."
        )


def _is_array(path: Path) -> bool:
    """A .json file may be one array instead of lines."""
    if kind_of(path)[1:] != (".json", False):
        return False
    with path.open("rb") as stream:
        return stream.read(1000).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _parquet(spark: Spark, paths: list[Path], urls: list[str], wanted: Sequence[str]) -> Read:
    parquet = import_extra("pyarrow.parquet", extra="spark")
    names: list[tuple[str, Sequence[str]]] = []
    rows: list[int | None] = []
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                names.append((path.name, file.schema_arrow.names))
                rows.append(file.metadata.num_rows)
        except (OSError, ValueError) as wrong:
            raise InputError(f"{path.name} is not a Parquet file, or is damaged.") from wrong
    refuse_different(names)
    found = [_escaped(path) for path in paths]
    frames = [spark.call(lambda: spark.session.read.parquet(*found))] if found else []
    if urls:
        frames.append(spark.call(lambda: spark.session.read.parquet(*urls)))
        refuse_replaced(spark, frames[-1], urls)
    return frames, rows
