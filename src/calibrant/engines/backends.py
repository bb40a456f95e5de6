"""What differs between engines: the kinds of frame, names of columns, limits and functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import narwhals as nw

from calibrant.data.engine_frames import LAZY
from calibrant.data.naming import open_any
from calibrant.errors import InputError

Lazy = nw.LazyFrame[Any]

#: how many pieces a tree of comparisons may choose among: on Spark, and elsewhere
SHORT, MANY = 8, 256
#: the kinds of frame by narwhals' name for their engine
EAGER = ("pandas", "polars", "pyarrow", "modin", "cudf")


def open_frame(frame: Any) -> nw.DataFrame[Any] | Lazy:
    """A frame of any kind that we know as narwhals sees it, or an InputError that names them."""
    paths = frame if isinstance(frame, (list, tuple)) else [frame]
    if paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise InputError(_open_it(os.fspath(paths[0])))
    opened = open_any(frame)
    if isinstance(opened, nw.LazyFrame) and opened.implementation in LAZY:
        return opened
    if isinstance(opened, nw.DataFrame) and opened.implementation.value in EAGER:
        return opened
    kind = f"{type(frame).__module__}.{type(frame).__name__}"
    raise InputError(
        "frame must be a DuckDB relation, a Polars LazyFrame, a PySpark DataFrame or an Ibis table "
        f"(or a pandas, Polars or Arrow table in memory), but {kind} came."
    )


def _open_it(path: str) -> str:
    """How to come from a file to a frame, or to another file.

    >>> print(_open_it("new.csv"))
    frame must be a frame, but the path of a file came: 'new.csv'. Open it, for example with \
duckdb.read_csv('new.csv'), and pass what that returns. To write another file with the new \
column: calibrant apply calibrator.json new.csv -o calibrated.csv
    """
    name, packed = (path[: -len(".gz")], ".gz") if path.endswith(".gz") else (path, "")
    ending = os.path.splitext(name)[1]
    readers = {".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}
    reader = readers.get(ending, "read_parquet")
    return (
        f"frame must be a frame, but the path of a file came: {path!r}. Open it, for example with "
        f"duckdb.{reader}({path!r}), and pass what that returns. To write another file with the "
        f"new column: calibrant apply calibrator.json {path} -o calibrated{ending}{packed}"
    )


def any_case(frame: Lazy | nw.DataFrame[Any]) -> bool:
    """Whether the engine takes names that differ only in case for the same."""
    return isinstance(frame, nw.LazyFrame) and not frame.implementation.is_polars()


def literals_lose_bits(frame: Lazy) -> bool:
    """Whether numbers reach the engine as the text of a decimal, whose last bit may be lost."""
    return frame.implementation.is_ibis()


def most_branches(frame: Lazy) -> int:
    """How many pieces of a map a tree of whens may choose among, beside a join.

    Zero on Polars, which computes all branches for all rows. Few on Spark, where the tree becomes
    one Java method, and long methods are not compiled.
    """
    if frame.implementation.is_polars():
        return 0
    return SHORT if is_spark(frame) else MANY


def is_spark(frame: Lazy) -> bool:
    """Whether it is a frame of Spark, of a session here or of a server's."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def set_apart(frame: Lazy, into: Mapping[str, str]) -> Lazy:
    """The frame with copies of columns that say nothing of how they were computed.

    For Spark, which otherwise writes the formula of a join's key out to its first inputs: with
    many classes a formula of millions of terms.
    """
    if not is_spark(frame):
        return frame.with_columns(*(nw.col(own).alias(name) for own, name in into.items()))
    fields = ", ".join(f"`{own}` AS `{name}`" for own, name in into.items())
    rows: Any = frame.to_native()
    opened: Lazy = nw.from_native(rows.selectExpr("*", f"inline(array(struct({fields})))"))
    return opened
