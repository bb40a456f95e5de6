"""A Spark frame → a folder of part files, which appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from calibrant.engines.files.data_files import output_kind
from calibrant.engines.rows_of_files import check_rows
from calibrant.engines.spark import functions
from calibrant.engines.spark.failures import name_of
from calibrant.engines.spark.read import is_url, local_url
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError, import_extra
from calibrant.outputs import (
    check_folder,
    find_target,
    follow,
    keep_apart,
    keep_mode,
    look,
    path_of_url,
)

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
    counted = frame.observe(seen, functions.count(functions.lit(1)).alias("rows"))
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
    if look(path) is not None and not path.is_dir() and find_target(path).stream:
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

    def check_parent(self) -> None:
        check_folder(self.path.parent)
        _refuse_stream(self.path)

    def keep_apart(self, urls: list[str]) -> None:
        keep_apart({"the output": self.path}, _paths(urls))

    def temporary(self) -> str:
        return local_url(self.new)

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
