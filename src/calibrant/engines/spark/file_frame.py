"""Columns of files as Spark holds them: numbers, labels and segments, or a clear refusal."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

from calibrant.engines.files.data_files import MISSING, find_column
from calibrant.engines.rows_of_files import not_in_json
from calibrant.engines.spark import functions
from calibrant.engines.spark.failures import RAISED
from calibrant.engines.spark.session import Spark
from calibrant.errors import InputError, import_extra

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
    parts = [functions.lit(word) if isinstance(word, str) else word for word in words]
    return functions.raise_error(functions.concat(functions.lit(RAISED), *parts)).cast(kind)


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
        word = functions.lower(functions.trim(value))
        missing = word.isin(*MISSING)
        return (
            functions.when(functions.lower(value).rlike(NUMBER), value.try_cast("double"))
            .when(word.isin("true", "false"), (word == "true").cast("double"))
            .when(value.isNull() | missing, functions.lit(None).cast("double"))
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
        texts = [
            functions.col(quoted(name)) for name, kind in self.frame.dtypes if kind == "string"
        ]
        return functions.concat_ws("", *texts).contains(GARBLED)

    def _column(self, column: str, role: str) -> tuple[str, str, Any]:
        name = self.find(column, role)
        return name, dict(self.frame.dtypes)[name], functions.col(quoted(name))


def finite(value: Any, kind: Any, name: str) -> Any:
    """A column for JSON; a NaN or an infinite number, however deep, makes the job fail."""
    found = _infinite(value, kind)
    if found is None:
        return value
    wrong = functions.coalesce(found, functions.lit(False))
    return functions.when(wrong, failure(kind, not_in_json(name))).otherwise(value)


def _infinite(value: Any, kind: Any) -> Any:
    """Whether a value of a type of Spark holds NaN or infinity; None where the type cannot."""
    types = import_extra("pyspark.sql.types", extra="spark")
    if isinstance(kind, (types.FloatType, types.DoubleType)):
        return functions.isnan(value) | (functions.abs(value) == float("inf"))
    if isinstance(kind, types.MapType):
        return _infinite(functions.map_values(value), types.ArrayType(kind.valueType))
    if isinstance(kind, types.ArrayType):
        if _infinite(value, kind.elementType) is None:
            return None
        return functions.exists(
            value,
            lambda one: functions.coalesce(_infinite(one, kind.elementType), functions.lit(False)),
        )
    if isinstance(kind, types.StructType):
        inner = [_infinite(value[field.name], field.dataType) for field in kind.fields]
        wrong = [functions.coalesce(one, functions.lit(False)) for one in inner if one is not None]
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
    word = functions.trim(value)
    return functions.when(value.contains(GARBLED), not_text(what)).when(word != "", word)
