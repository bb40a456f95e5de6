"""Folders named NAME=VALUE, as Spark reads them: columns that the files themselves do not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from calibrant.engines.files.partitions import ABSENT, WHOLE, partitions_of
from calibrant.engines.spark import functions
from calibrant.engines.spark.failures import name_of
from calibrant.engines.spark.file_frame import quoted
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError


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
    path = _decoded(functions.col("_metadata.file_path"))
    found = functions.regexp_extract(path, f"(?s)^.*/(?:{spelled})=([^/]*)/", 1)
    return functions.when(found != ABSENT, _decoded(found))


def _decoded(text: Any) -> Any:
    plain = functions.replace(text, functions.lit("+"), functions.lit("%2B"))  # no blank here
    return functions.coalesce(functions.try_url_decode(plain), text)


def _refuse_other(spark: Spark, frame: Any, name: str, value: Any) -> None:
    found, empty = functions.col(quoted(name)).cast("string"), functions.lit("")
    numbers = found.try_cast("double") == value.try_cast("double")
    same = (functions.coalesce(found, empty) == functions.coalesce(value, empty)) | (
        functions.coalesce(numbers, functions.lit(False))
    )
    other = frame.filter(~same).select(found.alias("found"), value.alias("said"))
    first = spark.call(lambda: other.head(1))
    if first:
        raise InputError(
            f"the column {name!r} must be what the files' folders say, but {first[0][0]!r} came "
            f"below {name}={first[0][1]}: either may be meant. Rename the folder or the column."
        )
