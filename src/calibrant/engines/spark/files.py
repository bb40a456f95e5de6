"""Spark frames of files: the same kinds, names and words as on one machine."""

from __future__ import annotations

import functools
import json
import mmap
import operator
import os
import re
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import narwhals as nw

from calibrant.data.columns import first_row
from calibrant.data.lazy import Coding, LazyRows, Names, distinct_labels, refuse_labels
from calibrant.engines.files.csv import CsvHeader, best_separator, read_csv_header, separators
from calibrant.engines.files.files import (
    ABSENT,
    WHOLE,
    find_column,
    find_files,
    kind_of,
    one_kind,
    output_kind,
    partitions_of,
    refuse_different,
    refuse_empty,
)
from calibrant.engines.files.spelling import MISSING, Label, typed_present
from calibrant.engines.rows import OUTSIDE_ADVICE, RowsOfFiles, check_rows, not_in_json
from calibrant.engines.spark import session
from calibrant.engines.spark.session import RAISED, Spark, name_of
from calibrant.errors import InputError, import_extra
from calibrant.outputs import (
    check_folder,
    find_target,
    follow,
    keep_apart,
    keep_mode,
    own_place,
    path_of_url,
    stat_of,
)

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


# --- The rows of files, read by Spark; labels are read as the other engine reads them -------------


def file_rows(
    spark: Spark, files: Sequence[str | os.PathLike[str]], names: Names, role: str = "score"
) -> SparkRows:
    """The rows behind names, globs, folders and URLs."""
    wanted = list(names.roles().values())
    return SparkRows(read_files(spark, files, wanted), names, role)


def first_rows(
    spark: Spark, files: Sequence[str | os.PathLike[str]], count: int
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The columns of files, and the values of their first rows."""
    frame = read_files(spark, files).frame
    rows = spark.call(lambda: frame.limit(count).collect())
    return tuple(frame.columns), [tuple(row) for row in rows]


@dataclass
class SparkRows(RowsOfFiles):
    """The rows of files as Spark reads them."""

    files: FileFrame
    names: Names
    role: str = "score"
    frame: nw.LazyFrame[Any] = field(init=False)

    def __post_init__(self) -> None:
        files = self.files
        columns = self.by_role(files.number, files.label, files.segment)
        listed = (column.alias(name) for name, column in columns.items())
        self.frame = nw.from_native(files.frame.select(*listed))

    @property
    def file_names(self) -> list[str]:
        return list(self.files.files)

    @property
    def expected(self) -> list[int | None]:
        return list(self.files.rows)

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self.names, coding, self.files.spark.call)

    def refuse(self, coding: Coding) -> None:
        for rows in self.lazy(coding).score_and_raw():
            if rows is not None:
                rows.refuse()

    def refuse_outside(self) -> None:
        column = nw.col("score")
        ends = self.frame.select(column.min().alias("low"), column.max().alias("high"))
        low, high = first_row(self.files.spark.call(ends.collect))
        raise InputError(
            f"probability column {self.names.score!r} must be probabilities in [0, 1], but they "
            f"are from {low:g} to {high:g}. {OUTSIDE_ADVICE}"
        )

    def refuse_labels(self) -> None:
        refuse_labels(self.frame, self.names.label, self.files.spark.call)

    def labels(self, rows: int | None) -> dict[Any, Label]:
        frame = self.frame if rows is None else self.frame.head(rows)
        found = distinct_labels(frame, self.files.spark.call)
        return typed_present(found) if self.files.kind == "csv" else {v: v for v in found}


# --- A Spark frame → a folder of part files, which appears whole or not at all --------------------


#: what Spark leaves in a folder that it has written whole
DONE = "_SUCCESS"


def write_file(
    spark: Spark,
    frame: Any,
    out: str | os.PathLike[str],
    *,
    expected: Sequence[int | None] = (None,),
    lines: bool = False,
) -> int:
    """Write a frame to ``out``, which becomes a folder of part files, as Spark writes.

    Parameters
    ----------
    spark : Spark
    frame : pyspark.sql.DataFrame
    out : path or URL
        Its ending says what is written: .csv, .tsv, .jsonl (each also .gz) or .parquet. A file of
        that name, and a folder that Spark has written, are replaced at the end; another folder,
        a pipe and a device are refused. A link stays: what it leads to is replaced.
    expected : how many rows each file must have given, None where that is not known
        Another number of rows is an InputError, and nothing is written.
    lines : bool, default=False
        The frame has one column, of lines of JSON, which are written as they are.

    Returns
    -------
    rows : int
        How many were written, counted on the way.

    Notes
    -----
    The parts are written to a hidden folder beside ``out``, which takes its name at the end and is
    removed on any failure. Where ``out`` is replaced, the old one is renamed first, since no file
    system that Spark knows exchanges two folders at once: for a moment there is no ``out``, and a
    machine that fails just then leaves both, whole, under hidden names beside it. On object stores,
    where a folder cannot be renamed at once, a whole folder is known by its file ``_SUCCESS``.
    """
    kind, ending, packed = output_kind(Path(name_of(os.fspath(out))))
    place: _Place = _Remote(spark, os.fspath(out)) if is_url(os.fspath(out)) else _Local(Path(out))
    place.check()
    if place.exists(place.path):  # reading what is about to be replaced is refused
        place.keep_apart([unquote(url) for url in frame.inputFiles()])
    seen = import_extra("pyspark.sql", extra="spark").Observation()
    counted = frame.observe(seen, session.count(session.lit(1)).alias("rows"))
    kind = "text" if lines else kind
    options = _options(kind, ending, packed)
    try:
        writer = counted.write.mode("errorifexists").format(kind).options(**options)
        spark.call(lambda: writer.save(place.temporary()))
        rows = int(spark.call(lambda: seen.get)["rows"])
        check_rows(rows, expected, "the input")
        if lines:  # other readers would take the parts for plain text
            place.rename_parts(".txt", ".json")
        if not place.parts():
            raise InputError(
                f"the parts of {place.name} were written on other machines. On a cluster, name a "
                "folder that all of them see, such as hdfs://... or s3a://..."
            )
        place.put()
    finally:
        place.clear()
    return rows


def _options(kind: str, ending: str, packed: bool) -> dict[str, Any]:
    if kind == "parquet":
        return {"compression": "zstd"}
    text: dict[str, dict[str, Any]] = {
        "csv": {
            "header": True,
            "sep": "\t" if ending == ".tsv" else ",",
            "quote": '"',
            "escape": '"',
            "ignoreLeadingWhiteSpace": False,  # which Spark would cut off
            "ignoreTrailingWhiteSpace": False,
        },
        "json": {"ignoreNullFields": False},
        "text": {},
    }
    return {**text[kind], "compression": "gzip"} if packed else text[kind]


# --- where to -----------------------------------------------------------------------------------


class _Place(ABC):
    """Where a folder shall be: on this machine, or wherever Hadoop's file systems reach.

    ``path`` is the folder itself. ``new`` and ``old`` are hidden names beside it: of the one
    that is written, and of the one that is replaced.
    """

    name: str
    path: Any
    new: Any
    old: Any

    @abstractmethod
    def check_parent(self) -> None:
        """Refuse a place where no folder can be made."""

    @abstractmethod
    def keep_apart(self, urls: list[str]) -> None:
        """Refuse to replace what is read."""

    @abstractmethod
    def temporary(self) -> str:
        """The hidden folder as Spark is told it."""

    @abstractmethod
    def exists(self, path: Any) -> bool: ...

    @abstractmethod
    def inside(self, path: Any) -> list[str]:
        """What a folder holds; nothing for a file, or where there is none."""

    @abstractmethod
    def child(self, folder: Any, name: str) -> Any: ...

    @abstractmethod
    def rename(self, path: Any, to: Any) -> None: ...

    @abstractmethod
    def remove(self, path: Any) -> None: ...

    def check(self) -> None:
        """Refuse a place where no folder can be made, or whose files would be lost."""
        self.check_parent()
        inside = self.inside(self.path)
        if inside and DONE not in inside:
            raise InputError(
                f"the output {self.name} is a folder with other files in it, which would be lost. "
                "Name another, or remove it first."
            )

    def parts(self) -> list[str]:
        """The files that Spark has written, some with a file of checksums."""
        return [name for name in self.inside(self.new) if name.startswith(("part-", ".part-"))]

    def rename_parts(self, old: str, new: str) -> None:
        """Give the files another ending."""
        for name in self.parts():
            to = self.child(self.new, name.replace(old, new))
            self.rename(self.child(self.new, name), to)

    def put(self) -> None:
        """Give the new folder its name."""
        if self.exists(self.path):
            self.rename(self.path, self.old)
        self.rename(self.new, self.path)

    def clear(self) -> None:
        """Remove what is hidden; where the new folder did not come, put the old one back."""
        with suppress(Exception):  # it stays under its hidden name
            if self.exists(self.old) and not self.exists(self.path):
                self.rename(self.old, self.path)
        for _ in range(10):  # a task that was told to stop may still make its folders anew
            with suppress(Exception):  # nothing more can be done about it
                if not self.exists(self.new):
                    break
                self.remove(self.new)
                time.sleep(0.05)
        with suppress(Exception):
            if self.exists(self.path) and self.exists(self.old):
                self.remove(self.old)


def _hidden(name: str, ending: str) -> str:
    """A name that Spark's readers pass over."""
    return f".{name[:60]}.{secrets.token_hex(4)}.{ending}"


def _refuse_stream(path: Path) -> None:
    if stat_of(path) is not None and not path.is_dir() and find_target(path).stream:
        raise InputError(
            f"Spark writes a folder, but the output {path} is a pipe or a device. Name another."
        )


def _paths(urls: list[str]) -> list[Path]:
    """Those that are files on this machine, as paths."""
    return [path_of_url(url[5:]) for url in urls if url.startswith("file:")]


class _Local(_Place):
    """A folder on this machine, or one that is mounted on all."""

    def __init__(self, path: Path) -> None:
        self.path = follow(path.absolute())
        self.name = str(path)
        self.new = self.path.with_name(_hidden(path.name, "tmp"))
        self.old = self.path.with_name(_hidden(path.name, "old"))
        self._lock = ExitStack()

    def check_parent(self) -> None:
        check_folder(self.path.parent)
        _refuse_stream(self.path)

    def keep_apart(self, urls: list[str]) -> None:
        keep_apart({"the output": self.path}, _paths(urls))

    def temporary(self) -> str:
        # what a killed process left of the same output is removed
        self.new = self._lock.enter_context(own_place(self.path))
        return local_url(self.new)

    def clear(self) -> None:
        try:
            super().clear()
        finally:
            self._lock.close()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def inside(self, path: Path) -> list[str]:
        return [entry.name for entry in path.iterdir()] if path.is_dir() else []

    def child(self, folder: Path, name: str) -> Path:
        return folder / name

    def rename(self, path: Path, to: Path) -> None:
        path.rename(to)

    def remove(self, path: Path) -> None:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def put(self) -> None:
        if self.path.is_dir():
            keep_mode(self.new, self.path)
        super().put()


class _Remote(_Place):
    """A folder behind a URL, by Hadoop's own file systems."""

    def __init__(self, spark: Spark, url: str) -> None:
        self.spark, self.name = spark, url
        self.here = [follow(path) for path in _paths([url])]
        url = local_url(self.here[0]) if self.here else url
        self._java = spark.session._jvm.org.apache.hadoop.fs
        self.path = self._java.Path(url)
        configuration = spark.session._jsparkSession.sessionState().newHadoopConf()
        self.system = spark.call(lambda: self.path.getFileSystem(configuration))
        self.parent = self.path.getParent()
        if self.parent is None:
            raise InputError(f"the output must name a folder below {url}.")
        self.new = self.child(self.parent, _hidden(self.path.getName(), "tmp"))
        self.old = self.child(self.parent, _hidden(self.path.getName(), "old"))

    def check_parent(self) -> None:
        for path in self.here:
            _refuse_stream(path)
        if not self.exists(self.parent):
            raise InputError(f"the output's folder {self.parent} does not exist. Make it first.")

    def keep_apart(self, urls: list[str]) -> None:
        for path in self.here:
            keep_apart({"the output": path}, _paths(urls))
        mine = self.system.makeQualified(self.path).toUri().getPath().rstrip("/")
        for url in urls:
            other = self._java.Path(url).toUri()
            same = other.getScheme() == self.system.getUri().getScheme()
            if same and f"{other.getPath()}/".startswith(f"{mine}/"):
                raise InputError(
                    f"the output must be another file than {url}, which is read: it would be lost. "
                    "Name another."
                )

    def temporary(self) -> str:
        return str(self.new.toString())

    def exists(self, path: Any) -> bool:
        return bool(self.spark.call(lambda: self.system.exists(path)))

    def inside(self, path: Any) -> list[str]:
        if not self.exists(path) or self.system.getFileStatus(path).isFile():
            return []
        return [status.getPath().getName() for status in self.system.listStatus(path)]

    def child(self, folder: Any, name: str) -> Any:
        return self._java.Path(folder, name)

    def rename(self, path: Any, to: Any) -> None:
        if not self.spark.call(lambda: self.system.rename(path, to)):
            raise InputError(
                f"the output {self.name} could not be written: {path} could not be renamed."
            )

    def remove(self, path: Any) -> None:
        self.system.delete(path, True)


# --- Lines of JSON as they come: columns are taken out of their text, and values put into it ------
# All by Spark's own expressions: its workers need no Python.


#: what Spark would take besides JSON
STRICT = {"allowSingleQuotes": "false"}
BLANKS = " \t\r"
#: the parts of a line of JSON; no group is tried twice, so that long strings need no stack
PART = r'(?s)"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|\s++|[^"{}\[\],:\s]++'


def json_lines(
    spark: Spark, found: list[str], wanted: Sequence[str], files: Sequence[str]
) -> tuple[Any, tuple[str, ...]]:
    """A frame of the lines of files and of the wanted columns, and the keys of all lines.

    Parameters
    ----------
    spark : Spark
    found : the files as Spark is told them
    wanted : names of columns, with or without the blanks around them
    files : the files' names, for messages

    Notes
    -----
    Columns have the types that Spark finds in all lines. Blank lines are left out. A line that is
    no object, or more than one, or has a key twice, makes the job fail with an InputError.
    """
    types = import_extra("pyspark.sql.types", extra="spark")
    reader = spark.session.read.options(lineSep="\n", recursiveFileLookup=True, mode="FAILFAST")
    schema = spark.call(partial(reader.options(**STRICT).json, found)).schema
    reader = spark.session.read.options(lineSep="\n").schema(f"{LINE} STRING")
    text = spark.call(partial(reader.text, found))
    folders = text.columns[1:]
    refuse_both(folders, schema.names, files[0])
    asked = {name.strip() for name in wanted}
    fields = [field for field in schema.fields if field.name.strip() in asked]
    line = session.col(LINE)
    rows = text.filter(session.trim(line, session.lit(BLANKS)) != "")
    rows = rows.withColumn(LINE, _checked(line, files[0] if len(files) == 1 else "the files"))
    if not fields:
        return rows, tuple(schema.names)
    values = session.from_json(line, types.StructType(fields), {**STRICT, "mode": "FAILFAST"})
    kept = [line, *(session.col(quoted(name)) for name in folders)]
    row = f"calibrant_row_{secrets.token_hex(4)}"
    columns = [session.col(row)[field.name].alias(field.name) for field in fields]
    frame = rows.select(*kept, values.alias(row)).select(*kept, *columns)
    return frame, tuple(schema.names)


def _checked(line: Any, what: str) -> Any:
    """The line; one that is not a single object, with every key once, makes the job fail."""
    # Spark reads one value and passes over what comes after it. Here the line is the first of two
    # in an array, and the other has a name that no line holds
    end = f"calibrant_{secrets.token_hex(8)}"
    array = session.concat(session.lit("["), line, session.lit(f',{{"{end}":""}}]'))
    pair = session.from_json(array, "array<map<string,string>>", STRICT)
    keys, last = (session.map_keys(session.get(pair, session.lit(i))) for i in (0, 1))
    alone = keys.isNotNull() & session.array_contains(last, end)
    twice = session.size(keys) != session.size(session.array_distinct(keys))
    start = session.left(line, session.lit(80))
    one = failure(
        "string",
        f'{what} must hold one object in a line, but "',
        start,
        '" came. Drop or correct such lines.',
    )
    once = failure(
        "string",
        f"{what} must have every key once in a row, but one comes twice: ",
        start,
        ". Rename or drop one of them.",
    )
    return (
        session.when(~session.is_valid_utf8(line), not_text(what))
        .when(session.coalesce(~alone, session.lit(True)), one)
        .when(twice, once)
        .otherwise(line)
    )


# --- writing ------------------------------------------------------------------------------------


def with_members(line: Any, members: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """A line with more keys at its end, or other values for those that it has.

    Parameters
    ----------
    line : Column
    members : columns by their keys
    keys : those that some lines have; a value of theirs is replaced in its place

    Notes
    -----
    All other bytes stay.
    """
    added = []
    for name, column in members.items():
        array = session.to_json(session.array(column))  # numbers, words and null as JSON
        value = session.substr(array, session.lit(2), session.length(array) - 2)
        member = session.concat(session.lit(json.dumps(name, ensure_ascii=False) + ":"), value)
        if name in keys:
            line = _set_member(line, name, value, member)
        else:
            added.append(member)
    return _appended(line, session.concat_ws(",", *added)) if added else line


def _appended(line: Any, members: Any) -> Any:
    end = session.length(session.rtrim(line, session.lit(BLANKS)))  # where the brace is
    start = session.left(line, end - 1)
    comma = session.when(start.rlike(r"^\s*\{\s*$"), "").otherwise(",")
    return session.concat(start, comma, members, session.substr(line, end))


def _set_member(line: Any, name: str, value: Any, member: Any) -> Any:
    """The line with one value replaced, or the key at the end where it is not there."""
    keys = session.map_keys(session.from_json(line, "map<string,string>", STRICT))
    place = session.array_position(keys, name)
    parts = session.regexp_extract_all(line, session.lit(PART), session.lit(0))
    # colons and commas of the object itself: after an odd number of them comes a value
    wanted = 2 * place - 1
    names = ("at", "depth", "marks", "first", "last")
    before = session.struct(*(session.lit(0).alias(name) for name in names))
    walked = session.aggregate(parts, before, lambda state, part: _walk(state, part, wanted))
    first, last = walked["first"], walked["last"]
    replaced = session.concat(
        session.array_join(session.slice(parts, session.lit(1), first - 1), ""),
        value,
        session.array_join(session.slice(parts, last + 1, session.size(parts) - last), ""),
    )
    return session.when(place > 0, replaced).otherwise(_appended(line, member))


def _walk(state: Any, part: Any, wanted: Any) -> Any:
    """One part further: how deep it is, and whether it is the first or last of a value."""
    at, depth, marks = state["at"] + 1, state["depth"], state["marks"]
    opened, closed = part.isin("{", "["), part.isin("}", "]")
    own = depth == 1
    inside = (marks == wanted) & (session.trim(part, session.lit(BLANKS)) != "")
    inside = inside & ~(own & (part.isin(",", "}")))
    first = session.when(inside & (state["first"] == 0), at).otherwise(state["first"])
    return session.struct(
        at.alias("at"),
        (depth + opened.cast("int") - closed.cast("int")).alias("depth"),
        (marks + (own & part.isin(",", ":")).cast("int")).alias("marks"),
        first.alias("first"),
        session.when(inside, at).otherwise(state["last"]).alias("last"),
    )


# --------------------------------------------------------------------------------------------------
# Folders named NAME=VALUE, as Spark reads them: columns that the files themselves do not have


def add_folders(spark: Spark, frame: Any, paths: Sequence[Path], kind: str) -> Any:
    """A frame of local files with the columns that their folders' names hold.

    As on one machine: a folder that says something else than the file's own column is an
    InputError, and values are text, or whole numbers but for CSV files.
    """
    said = [partitions_of(path) for path in paths]
    for name in dict.fromkeys(name for one in said for name in one):
        value = _value(name, paths)
        own = [column for column in frame.columns if column.lower() == name.lower()]
        if own:  # Spark would replace a column whose name differs only in case
            _refuse_other(spark, frame, own[0], value)
            continue
        lacking = [path.name for path, one in zip(paths, said, strict=True) if name not in one]
        if lacking:
            raise InputError(
                f"all files must have the same columns, but the folders of {lacking[0]} do not say "
                f"{name}=..., as those of other files do. Use one by one."
            )
        values = [one[name] for one in said]
        whole = all(value is None or WHOLE.match(value) for value in values) and kind != "csv"
        frame = frame.withColumn(name, value.cast("bigint") if whole else value)
    return frame


def refuse_replaced(spark: Spark, frame: Any, urls: Sequence[str]) -> None:
    """Refuse columns of files that Spark has replaced by what the names of their folders say."""
    folders = {
        unquote(part.split("=", 1)[0]).lower()
        for url in spark.call(frame.inputFiles)
        for part in unquote(url).split("/")[:-1]
        if "=" in part
    }
    if folders.isdisjoint(map(str.lower, frame.columns)):
        return
    reader = spark.session.read.option("recursiveFileLookup", True)
    refuse_both(folders, spark.call(lambda: reader.parquet(*urls)).columns, name_of(urls[0]))


def refuse_both(folders: Iterable[str], own: Iterable[str], what: str) -> None:
    """Refuse a column that stands in the files and in the names of their folders."""
    known = {name.lower() for name in folders}
    clash = sorted(name for name in own if name.lower() in known)
    if clash:
        raise InputError(
            f"the files of {what} have a column {clash[0]!r}, and their folders are "
            f"named {clash[0]}=...: either may be meant. Rename the folders or the column."
        )


def _value(name: str, paths: Sequence[Path]) -> Any:
    """What the innermost folder of that name, however it is spelled, says: NULL, or text."""
    heads = {part.split("=", 1)[0] for path in paths for part in path.parent.parts if "=" in part}
    spelled = "|".join(re.escape(head) for head in sorted(heads) if unquote(head) == name)
    path = _decoded(session.col("_metadata.file_path"))
    found = session.regexp_extract(path, f"(?s)^.*/(?:{spelled})=([^/]*)/", 1)
    return session.when(found != ABSENT, _decoded(found))


def _decoded(text: Any) -> Any:
    plain = session.replace(text, session.lit("+"), session.lit("%2B"))  # no blank here
    return session.coalesce(session.try_url_decode(plain), text)


def _refuse_other(spark: Spark, frame: Any, name: str, value: Any) -> None:
    found, empty = session.col(quoted(name)).cast("string"), session.lit("")
    numbers = found.try_cast("double") == value.try_cast("double")
    same = (session.coalesce(found, empty) == session.coalesce(value, empty)) | (
        session.coalesce(numbers, session.lit(False))
    )
    other = frame.filter(~same).select(found.alias("found"), value.alias("said"))
    first = spark.call(lambda: other.head(1))
    if first:
        raise InputError(
            f"the column {name!r} must be what the files' folders say, but {first[0][0]!r} came "
            f"below {name}={first[0][1]}: either may be meant. Rename the folder or the column."
        )


# --- Columns of files as Spark holds them: numbers, labels and segments, or a clear refusal -------


#: the column with the text of a line of JSON
LINE = "calibrant_line"

#: types of Spark, by how their names begin
NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal", "void")
FLOATING = ("float", "double", "decimal")
NESTED = ("array", "map", "struct", "binary", "variant")
PLAIN = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "void")
#: what a number looks like in a file, in small letters: Java also takes 1.0d and 0x1p3
NUMBER = r"^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)\s*$"

#: what bytes that are no UTF-8 are read as
GARBLED = "\ufffd"


def quoted(name: str) -> str:
    """A column's name as Spark's SQL.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def failure(kind: Any, *words: Any) -> Any:
    """A column of some type that makes the job fail; its words are text, or columns of text."""
    parts = [session.lit(word) if isinstance(word, str) else word for word in words]
    return session.raise_error(session.concat(session.lit(RAISED), *parts)).cast(kind)


@dataclass(frozen=True)
class FileFrame:
    """The rows of files as a frame of Spark, and its columns by what they are used for.

    Parameters
    ----------
    spark : Spark
    frame : pyspark.sql.DataFrame
        All columns as the files hold them; those of CSV files are text. Where ``keys`` are given,
        the lines of JSON as they came, the wanted columns and those of the files' folders.
    kind : {"csv", "json", "parquet"}
    files : the files' names, for messages
    rows : how many each must hold, None where only Spark can tell
    keys : all keys of lines of JSON that are kept as they came
    """

    spark: Spark
    frame: Any
    kind: str
    files: tuple[str, ...]
    rows: tuple[int | None, ...] = (None,)
    keys: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What all columns are called: those of the files, and those of their folders."""
        if self.keys is None:
            return tuple(self.frame.columns)
        return (*self.keys, *self.folders)

    @property
    def folders(self) -> tuple[str, ...]:
        """The columns beside lines of JSON that stand in the names of the files' folders."""
        own = (LINE, *(self.keys or ()))
        return tuple(name for name in self.frame.columns if name not in own)

    def find(self, column: str, role: str = "") -> str:
        """A column's name as the files have it, or an InputError that lists those there are."""
        names = self.names
        return names[find_column(names, column, role, file=self.files[0], kind=self.kind)]

    def number(self, column: str, role: str) -> Any:
        """A column as doubles: NULL where it is empty or says so, as NA and null do. Truth values
        count as 1 and 0, also where they are words, as in CSV.

        Text that is neither a number nor missing makes the job fail with an InputError.
        """
        name, kind, value = self._column(column, role)
        if kind.startswith(NUMERIC):
            return value.cast("double")
        if kind != "string":
            raise InputError(
                f"{role} column {name!r} of {self.files[0]} must be numbers, but its type is "
                f"{kind}. Pick another column or convert it."
            )
        advice = (
            "' came. Correct or drop such rows; decimals have a point, fractions no %. The engine "
            "duckdb reads decimal commas and percentages, too."
        )
        must, came = f"{role} column {name!r} must be numbers, but '", value.substr(1, 40)
        word = session.lower(session.trim(value))
        missing = word.isin(*MISSING)
        return (
            session.when(session.lower(value).rlike(NUMBER), value.try_cast("double"))
            .when(word.isin("true", "false"), (word == "true").cast("double"))
            .when(value.isNull() | missing, session.lit(None).cast("double"))
            .otherwise(failure("double", must, came, advice))
        )

    def label(self, column: str) -> Any:
        """A column of labels: the words of CSV files without blanks around them, else the values
        with their types, decimals as numbers and dates as words."""
        name, kind, value = self._column(column, "label")
        if kind.startswith(NESTED):
            raise InputError(
                f"label column {name!r} of {self.files[0]} must hold plain labels, but its type is "
                f"{kind}. Pick another column."
            )
        if self.kind == "csv":
            return _word(value, f"label column {name!r}")
        if kind.startswith("decimal"):
            return value.cast("double")
        return value if kind.startswith(PLAIN) else value.cast("string")

    def segment(self, column: str) -> Any:
        """A column of segments: words without blanks around them, or whole numbers."""
        name, kind, value = self._column(column, "segment")
        if kind.startswith((*NESTED, *FLOATING)):
            raise InputError(
                f"segment column {name!r} of {self.files[0]} must hold words or whole numbers, but "
                f"its type is {kind}. Pick another column."
            )
        return _word(value, f"segment column {name!r}") if self.kind == "csv" else value

    def garbled(self) -> Any:
        """Whether a field of a row holds what Spark puts in the place of bytes that are no text."""
        texts = [session.col(quoted(name)) for name, kind in self.frame.dtypes if kind == "string"]
        return session.concat_ws("", *texts).contains(GARBLED)

    def _column(self, column: str, role: str) -> tuple[str, str, Any]:
        name = self.find(column, role)
        return name, dict(self.frame.dtypes)[name], session.col(quoted(name))


def finite(value: Any, kind: Any, name: str) -> Any:
    """A column for JSON; a NaN or an infinite number, however deep, makes the job fail."""
    found = _infinite(value, kind)
    if found is None:
        return value
    wrong = session.coalesce(found, session.lit(False))
    return session.when(wrong, failure(kind, not_in_json(name))).otherwise(value)


def _infinite(value: Any, kind: Any) -> Any:
    """Whether a value of a type of Spark holds NaN or infinity; None where the type cannot."""
    types = import_extra("pyspark.sql.types", extra="spark")
    if isinstance(kind, (types.FloatType, types.DoubleType)):
        return session.isnan(value) | (session.abs(value) == float("inf"))
    if isinstance(kind, types.MapType):
        return _infinite(session.map_values(value), types.ArrayType(kind.valueType))
    if isinstance(kind, types.ArrayType):
        if _infinite(value, kind.elementType) is None:
            return None
        return session.exists(
            value,
            lambda one: session.coalesce(_infinite(one, kind.elementType), session.lit(False)),
        )
    if isinstance(kind, types.StructType):
        inner = [_infinite(value[field.name], field.dataType) for field in kind.fields]
        wrong = [session.coalesce(one, session.lit(False)) for one in inner if one is not None]
        return functools.reduce(operator.or_, wrong) if wrong else None
    return None


def not_text(what: str, kind: str = "string") -> Any:
    """A column that makes the job fail where bytes are no text."""
    return failure(
        kind,
        f"{what} must be UTF-8 text, but it holds other bytes (or U+FFFD). Convert the file, for "
        "example: iconv -f latin1 -t utf8 old.csv > new.csv",
    )


def _word(value: Any, what: str) -> Any:
    word = session.trim(value)
    return session.when(value.contains(GARBLED), not_text(what)).when(word != "", word)
