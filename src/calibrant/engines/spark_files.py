"""Files by Spark's own readers and writers: tables of their rows, and folders of probabilities."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import narwhals as nw

from calibrant.data.columns import first_row
from calibrant.data.lazy import (
    Coding,
    LazyRows,
    Names,
    columns_by_role,
    distinct_labels,
    refuse_labels,
)
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import (
    ApplyOptions,
    add_probabilities,
    count_new_segments,
    segment_keys,
)
from calibrant.engines.files import Label, file_kind, one_file_kind, output_file_kind, typed_present
from calibrant.engines.open_engine import OUTSIDE_ADVICE, RowsOfFiles
from calibrant.engines.spark import Spark, name_of
from calibrant.errors import InputError, import_extra
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import (
    check_different_files,
    check_output_folder,
    find_target,
    follow_links,
    path_here,
    stat_of,
)

Paths = Sequence[str | os.PathLike[str]]

#: quotes are doubled within quotes, and fields may span lines, as everywhere but in Spark
CSV = {"header": True, "quote": '"', "escape": '"'}
#: errors are a row of another length, a stray quote, one without an end, and another header
STRICT_CSV = {
    "multiLine": True,
    "mode": "FAILFAST",
    "columnPruning": False,
    "unescapedQuoteHandling": "RAISE_ERROR",
    "maxCharsPerColumn": 1_000_000,
    "enforceSchema": False,
    "ignoreLeadingWhiteSpace": True,
    "ignoreTrailingWhiteSpace": True,
}
#: how each kind is written; blanks stay, and so do keys without a value
OPTIONS: dict[str, dict[str, Any]] = {
    "csv": {**CSV, "ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False},
    "json": {"ignoreNullFields": False},
    "parquet": {"compression": "zstd"},
}


def apply_file(
    spark: Spark,
    fitted: Fitted,
    files: Paths,
    out: str | os.PathLike[str],
    options: ApplyOptions,
    new_segments: NewSegments,
) -> int:
    """Copy files to the folder ``out`` with a column of probabilities; the number of rows.

    Parameters
    ----------
    spark : Spark
    fitted : Fitted
    files : names, patterns, folders or URLs; see `read_files`
    out : path or URL; see `write_files`
    options : ApplyOptions
    new_segments : NewSegments
        Counts the rows of segments that the calibrator has not seen.

    Notes
    -----
    The column is that of `add_probabilities`, which counts and refuses wrong rows before anything
    is written. Segments of text files are compared as text.
    """
    frame = read_files(spark, files)
    find_place(spark, frame, out, force=options.force)  # before any work
    columns = frame.columns
    options.check_columns([options.into], columns, name_of(os.fspath(files[0])))
    if _are_text_files(files):
        frame = with_text_as_numbers(frame, options.scores)
        fitted = replace(fitted, rule=segment_keys(fitted.map)[0])
    into = f"calibrant_{secrets.token_hex(4)}" if options.into in columns else options.into
    result = spark.call(
        lambda: add_probabilities(
            fitted,
            frame,
            score=options.scores[0],
            into=into,
            segment=options.segments or None,
            on_missing=options.on_missing,  # type: ignore[arg-type]
            on_new_segment="allow",  # they are counted here
            on_range=options.on_range,  # type: ignore[arg-type]
        )
    )
    if into != options.into:
        result = result.withColumn(options.into, result[into]).drop(into)
    if options.segments:
        rows: nw.LazyFrame[Any] = nw.from_native(frame)
        found = spark.call(lambda: count_new_segments(fitted.map, rows, options.segments))
        vars(new_segments).update(vars(found))
    return write_files(spark, result, out, force=options.force)


# --- reading ------------------------------------------------------------------------------------


def read_files(spark: Spark, files: Paths) -> Any:
    """Files of one kind as a Spark frame, by Spark's own reader.

    Parameters
    ----------
    spark : Spark
    files : names, patterns, folders, or URLs such as ``hdfs://`` and ``s3a://``
        CSV, TSV, JSON lines (also .gz) or Parquet, told by their endings.

    Notes
    -----
    Fields of text files are separated by commas (.tsv: tabs) and stay text. All else, such as
    folders named NAME=VALUE and the types of JSON, is up to Spark.
    """
    if not files:
        raise InputError("at least one data file must be given, but none came.")
    names = [os.fspath(file) for file in files]
    kinds = {_kind_of_pattern(name)[0]: name_of(name) for name in names}
    kind, first = one_file_kind(kinds), name_of(names[0])
    if kind == "excel":
        raise InputError(
            f"{first} is a file of sheets, which the engine duckdb alone reads. Save it as CSV "
            "UTF-8."
        )
    options: dict[str, Any] = {"mode": "FAILFAST"} if kind == "json" else {}
    if kind == "csv":
        options = {
            **CSV,
            **STRICT_CSV,
            "sep": "\t" if _kind_of_pattern(names[0])[1] == ".tsv" else ",",
        }
    reader = spark.session.read.format(kind).options(**options)
    return spark.call(lambda: reader.load([_url_of(name) for name in names]))


def with_text_as_numbers(frame: Any, columns: Sequence[str | None]) -> Any:
    """The frame with columns of text turned into doubles. Other text makes the job fail."""
    for name in columns:
        if dict(frame.dtypes).get(name) == "string":
            quoted = "`" + str(name).replace("`", "``") + "`"
            frame = frame.withColumn(name, frame[quoted].cast("double"))
    return frame


def _kind_of_pattern(name: str) -> tuple[str, str, bool]:
    """`file_kind` for a name that may hold wildcards."""
    end = re.split(r"[?*{\[\]}]", name_of(name))[-1] or name_of(name)
    return file_kind(Path(f"x{end}" if end.startswith(".") else end))


def _are_text_files(files: Paths) -> bool:
    """Whether the files are CSV or TSV."""
    return _kind_of_pattern(os.fspath(files[0]))[0] == "csv"


def _url_of(name: str) -> str:
    """The name of a file as Spark needs it: a URL where the file is on this machine."""
    path = path_here(name)
    if path is None or name.startswith("file:"):
        return name
    url = local_url(path)
    return re.sub(r"([*?\[\]{}\\,])", r"\\\1", url) if path.exists() else url


def local_url(path: Path) -> str:
    """The URL of a file on this machine."""
    whole = path.absolute().as_posix()
    return f"file://{whole}" if whole.startswith("/") else f"file:///{whole}"  # C:/x on Windows


# --- the rows as questions are asked of them ----------------------------------------------------


class SparkRows(RowsOfFiles):
    """The rows of files as Spark reads them."""

    def __init__(self, spark: Spark, files: Paths, names: Names, role: str) -> None:
        self.spark, self.names, self.role = spark, names, role
        self.text = _are_text_files(files) if files else False
        self.file_names = [name_of(os.fspath(file)) for file in files]
        self.expected = [None]
        frame = read_files(spark, files)
        if self.text:
            frame = with_text_as_numbers(frame, [names.score, names.weight, names.raw])
        self.frame = columns_by_role(nw.from_native(frame), names)

    def lazy(self, coding: Coding) -> LazyRows:
        return LazyRows(self.frame, self.names, coding, self.spark.call)

    def labels(self, rows: int | None) -> dict[Any, Label]:
        frame = self.frame if rows is None else self.frame.head(rows)
        found = distinct_labels(frame, self.spark.call)
        return typed_present(found) if self.text else {value: value for value in found}

    def refuse(self, coding: Coding) -> None:
        for rows in self.lazy(coding).score_and_raw():
            if rows is not None:
                rows.refuse()

    def refuse_labels(self) -> None:
        refuse_labels(self.frame, self.names.label, self.spark.call)

    def refuse_outside(self) -> None:
        column = nw.col("score")
        ends = self.frame.select(column.min().alias("low"), column.max().alias("high"))
        low, high = first_row(self.spark.call(ends.collect))
        raise InputError(
            f"probability column {self.names.score!r} must be probabilities in [0, 1], but they "
            f"are from {low:g} to {high:g}. {OUTSIDE_ADVICE}"
        )


# --- writing ------------------------------------------------------------------------------------


def write_files(
    spark: Spark, frame: Any, out: str | os.PathLike[str], *, force: bool = False
) -> int:
    """Write a frame to the folder ``out``, by Spark's own writer; the number of rows.

    Parameters
    ----------
    spark : Spark
    frame : pyspark.sql.DataFrame
    out : path or URL
        Its ending says what is written: .csv, .tsv, .jsonl (each also .gz) or .parquet.
    force : bool, default=False
        Replace what is there. It is removed before the first row is written.

    Notes
    -----
    A folder that is whole has a file ``_SUCCESS``. What is read is never replaced, nor is a pipe,
    a device, or a folder of this machine that holds other files than Spark's.
    """
    kind, ending, packed = output_file_kind(Path(name_of(os.fspath(out))))
    final = find_place(spark, frame, out, force=force)
    options = {**OPTIONS[kind], "compression": "gzip"} if packed else OPTIONS[kind]
    if ending == ".tsv":
        options = {**options, "sep": "\t"}
    functions = import_extra("pyspark.sql.functions", extra="spark")
    seen = import_extra("pyspark.sql", extra="spark").Observation()
    counted = frame.observe(seen, functions.count(functions.lit(1)).alias("rows"))
    writer = counted.write.mode("overwrite" if force else "errorifexists")
    place = os.fspath(out) if final is None else local_url(final)
    spark.call(lambda: writer.format(kind).options(**options).save(place))
    rows = int(spark.call(lambda: seen.get)["rows"])
    if final is not None and not any(final.glob("part-*")):
        raise InputError(
            f"the parts of {out} were written on other machines. On a cluster, name a folder that "
            "all of them see, such as hdfs://... or s3a://..."
        )
    return rows


def find_place(
    spark: Spark, frame: Any, out: str | os.PathLike[str], *, force: bool
) -> Path | None:
    """The local path of the output, None if it is elsewhere. It must not be read, be there, or cost
    other files."""
    name = os.fspath(out)
    output_file_kind(Path(name_of(name)))
    here = path_here(name)
    inputs = {url: path_here(unquote(url)) for url in spark.call(frame.inputFiles)}
    if here is None:
        _refuse_output_that_is_read(name, [url for url, path in inputs.items() if path is None])
        return None
    final = follow_links(here.absolute())
    check_output_folder(final.parent)
    if stat_of(final) is None:
        return final
    check_different_files({"the output": final}, filter(None, inputs.values()))
    if not final.is_dir() and find_target(final).stream:
        raise InputError(
            f"Spark writes a folder, but the output {name} is a pipe or a device. Name another."
        )
    if not force:
        raise InputError(
            f"the output {name} is there already. Name another, or let it be replaced: --force."
        )
    spark_own = ("part-", "_", ".")
    if final.is_dir() and any(not p.name.startswith(spark_own) for p in final.iterdir()):
        raise InputError(
            f"the output {name} is a folder with other files in it, which would be lost. Name "
            "another, or remove it first."
        )
    return final


def _refuse_output_that_is_read(name: str, read: Sequence[str]) -> None:
    """Refuse an output on another machine that is one of the inputs."""
    own = urlsplit(name)
    for url in read:
        other = urlsplit(unquote(url))
        inside = f"{other.path}/".startswith(f"{own.path.rstrip('/')}/")
        if other.scheme == own.scheme and inside:
            raise InputError(
                f"the output must be another file than {url}, which is read: it would be lost. "
                "Name another."
            )
