"""What differs between databases: one `Dialect` for each. A new one is an entry in `DIALECTS`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from calibrant.errors import ParameterError
from calibrant.export.sql.literals import LARGEST, by_quotient, cast, of_normals, plain, quoted
from calibrant.export.sql.reserved_words import RESERVED, SNOWFLAKE

#: characters that a string must not hold, and what is written instead; strings stay on one line
STANDARD = {"'": "''", "\n": "' || CHR(10) || '", "\r": "' || CHR(13) || '"}
SQLITE = {"'": "''", "\n": "' || CHAR(10) || '", "\r": "' || CHAR(13) || '"}
LINES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
#: for servers that may or may not read backslashes: both read a doubled quote as one quote
BACKSLASH = {"'": "''", **LINES}
#: for servers that read a doubled quote as two strings
ESCAPED = {"'": "\\'", **LINES}
#: Spark replaces ${…} by a setting before it parses anything
SPARK = {**ESCAPED, "$": "\\u0024"}
#: the client may read a line as a command, and $(…) as one of its variables
TSQL = {"'": "''", "\n": "' + NCHAR(10) + N'", "\r": "' + NCHAR(13) + N'", "$": "$' + N'"}


@dataclass(frozen=True)
class Dialect:
    """How a database spells names, texts, numbers and functions.

    Parameters
    ----------
    name : str
    quotes : the two characters around a name
    in_names, in_text : what is written for characters that would end a name or a text; in names
        by default the last of the quotes is doubled
    name_bytes : how many bytes of a name are read, where more are dropped without an error
    text_prefix : what comes before a text
    reserved : words that are no names unless quoted
    number : a double as a literal that is read as that double
    stored : a double as a value of an INSERT
    column : a column of scores, read as doubles
    result : an expression of literals alone, as a double
    finite : the condition that a score is a number; empty for BETWEEN the largest doubles
    endless : the number in tables that no score is beyond
    double, integer, cell, text : types of columns, and of the cast that makes a cell
    ln : the natural logarithm
    greatest, least : the larger and smaller of several; empty where a CASE must do
    key : a column of texts such that = compares them as Python does
    key_end : what is added to the end of such a key
    indexed : whether lookup tables have a primary key
    storage : what ends a CREATE TABLE
    joined : what is written after a lookup table in a join
    step, top, limit : what is written before, in and after the SELECT of a step. It keeps
        optimizers from replacing each use of a column by its whole formula: such SQL grows
        exponentially.
    subnormals : whether there are numbers below 2.2e-308
    infinite : whether a number that overflows becomes infinite; elsewhere it may be an error
    strict : whether a product that underflows is an error
    begin, commit : what opens and ends a transaction, where CREATE TABLE can be part of one
    swap : elsewhere, the statements that put a filled table ``{new}`` in the place of ``{own}``
    view : the statements that make a view ``{own}`` of a ``{query}``, whether or not there is one
    batch : what comes before those statements in a script, where a view needs a batch of its own
    longest : characters of an expression beyond which a lookup is faster
    advice : what to do before long queries
    """

    name: str
    quotes: str = '""'
    in_names: Mapping[str, str] = field(default_factory=dict)
    in_text: Mapping[str, str] = field(default_factory=lambda: STANDARD)
    name_bytes: int | None = None
    text_prefix: str = ""
    reserved: frozenset[str] = RESERVED
    number: Callable[[float], str] = plain
    stored: Callable[[float], str] | None = None
    column: str = "{}"
    result: str = "{}"
    finite: str = ""
    endless: float = LARGEST
    double: str = "DOUBLE"
    integer: str = "BIGINT"
    cell: str = "INTEGER"
    text: str = "VARCHAR"
    ln: str = "LN"
    greatest: str = "GREATEST"
    least: str = "LEAST"
    key: str = "{}"
    key_end: str = ""
    indexed: bool = False
    storage: str = ""
    joined: str = ""
    step: str = "AS"
    top: str = ""
    limit: str = ""
    subnormals: bool = True
    infinite: bool = False
    strict: bool = False
    begin: tuple[str, ...] = ("BEGIN",)
    commit: str = "COMMIT"
    swap: tuple[str, ...] = ()
    view: tuple[str, ...] = ("CREATE OR REPLACE VIEW {own} AS\n{query}",)
    batch: str = ""
    longest: int = 20_000
    advice: str = ""

    def is_finite(self, score: str) -> str:
        """The condition that a score is a number: NaN is above all numbers, or beside them."""
        if self.finite:
            return self.finite.format(score)
        return f"{score} BETWEEN {self.number(-LARGEST)} AND {self.number(LARGEST)}"

    def cells(self, value: str) -> str:
        """⌊value⌋ as a whole number."""
        return f"CAST(FLOOR({value}) AS {self.cell})"


DATABRICKS = Dialect(
    "databricks",
    quotes="``",
    in_text=SPARK,
    cell="INT",
    text="STRING",
    infinite=True,
    swap=("CREATE OR REPLACE TABLE {own} AS SELECT * FROM {new}", "DROP TABLE {new}"),
    longest=4_000,  # a method of more than 8,000 bytes is not compiled, but interpreted
)
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", infinite=True, longest=5_000),
        Dialect(
            "sqlite",
            quotes="``",  # a name in double quotes that is not found would count as text
            in_text=SQLITE,
            number=by_quotient,
            finite="{0} > -9e999 AND {0} < 9e999",  # shorter than the largest double
            endless=math.inf,
            double="REAL",
            integer="INTEGER",
            text="TEXT",
            greatest="MAX",
            least="MIN",
            indexed=True,
            step="AS MATERIALIZED",
            infinite=True,
            view=("DROP VIEW IF EXISTS {own}", "CREATE VIEW {own} AS\n{query}"),
            longest=400_000,
        ),
        replace(
            DATABRICKS,
            name="spark",
            storage=" USING PARQUET",
            swap=("DROP TABLE IF EXISTS {own}", "ALTER TABLE {new} RENAME TO {own}"),
        ),
        DATABRICKS,
        Dialect(
            "bigquery",
            quotes="``",
            in_names={"\\": "\\\\", "`": "\\`"},
            in_text=ESCAPED,
            double="FLOAT64",
            integer="INT64",
            cell="INT64",
            text="STRING",
            swap=("CREATE OR REPLACE TABLE {own} COPY {new}", "DROP TABLE {new}"),
        ),
        Dialect(
            "snowflake",
            in_text=BACKSLASH,
            reserved=SNOWFLAKE,
            number=cast,
            stored=quoted,
            double="FLOAT",
            swap=(
                "CREATE TABLE IF NOT EXISTS {own} LIKE {new}",
                "ALTER TABLE {own} SWAP WITH {new}",
                "DROP TABLE {new}",
            ),
        ),
        Dialect(
            "postgres",  # reads literals as NUMERIC, exactly, and compares doubles with doubles
            name_bytes=63,
            column="{}::float8",
            result="({})::float8",
            double="DOUBLE PRECISION",
            text="TEXT",
            indexed=True,
            step="AS MATERIALIZED",
            strict=True,
            advice="Compiling it takes longer than running it: SET jit = off.",
        ),
        Dialect(
            "mysql",
            quotes="``",
            in_text=BACKSLASH,
            cell="SIGNED",
            text="VARBINARY({})",
            key="CAST(CONVERT({} USING utf8mb4) AS BINARY)",  # else "a" = "A" = "a "
            indexed=True,
            # a table just filled counts as empty for a while, and would be read whole for each row
            joined=" FORCE INDEX (PRIMARY)",
            limit=f"\nLIMIT {2**63 - 1}",
            swap=(
                "DROP TABLE IF EXISTS {old}",
                "CREATE TABLE IF NOT EXISTS {own} LIKE {new}",
                "RENAME TABLE {own} TO {old}, {new} TO {own}",
                "DROP TABLE {old}",
            ),
            longest=800_000,
        ),
        Dialect(
            "tsql",
            quotes="[]",
            in_text=TSQL,
            text_prefix="N",
            number=of_normals,
            double="FLOAT(53)",
            cell="INT",
            text="NVARCHAR({}) COLLATE Latin1_General_100_BIN2",
            ln="LOG",
            greatest="",
            least="",
            key="CONCAT({}, N'|') COLLATE Latin1_General_100_BIN2",  # else "a" = "A" = "a "
            key_end="|",
            indexed=True,
            top=f" TOP ({2**63 - 1})",
            subnormals=False,
            begin=("SET XACT_ABORT ON", "BEGIN TRANSACTION"),
            commit="COMMIT TRANSACTION",
            view=("CREATE OR ALTER VIEW {own} AS\n{query}",),
            batch="GO\n",
        ),
        Dialect(
            "clickhouse",
            in_names={"\\": "\\\\", '"': '""'},
            in_text=ESCAPED,
            column="CAST({} AS Nullable(Float64))",
            double="Nullable(Float64)",  # else a row that finds nothing finds zeros
            integer="Nullable(Int64)",
            cell="Int64",
            text="Nullable(String)",
            storage=" ENGINE = MergeTree ORDER BY tuple()",
            infinite=True,
            swap=("DROP TABLE IF EXISTS {own}", "RENAME TABLE {new} TO {own}"),
        ),
        Dialect(
            "trino",
            cell="BIGINT",
            infinite=True,
            swap=("DROP TABLE IF EXISTS {own}", "ALTER TABLE {new} RENAME TO {own}"),
            longest=4_000,  # as on Spark, a Java method must not be long
        ),
        Dialect(
            "redshift",
            name_bytes=127,
            in_text=BACKSLASH,
            number=cast,
            stored=quoted,
            column="{}::float8",
            result="({})::float8",
            double="DOUBLE PRECISION",
            text="VARCHAR({})",
            strict=True,
        ),
    )
}

#: other names that people use for them
KNOWN_AS = {
    "postgresql": "postgres",
    "pg": "postgres",
    "mariadb": "mysql",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "azure": "tsql",
    "sparksql": "spark",
    "pyspark": "spark",
    "delta": "databricks",
    "googlesql": "bigquery",
    "bq": "bigquery",
    "sqlite3": "sqlite",
    "athena": "trino",
    "presto": "trino",
}


def dialect_of(name: str) -> Dialect:
    """The dialect of that name.

    >>> dialect_of("tsql").ln
    'LOG'
    """
    if name in DIALECTS:
        return DIALECTS[name]
    said = str(name).lower().strip().replace(" ", "").replace("_", "").replace("-", "")
    near = [KNOWN_AS.get(said, said), *difflib.get_close_matches(said, DIALECTS, 1)]
    guess = next((f" Did you mean {n!r}?" for n in near if n in DIALECTS), "")
    raise ParameterError(f"dialect must be one of {', '.join(DIALECTS)}, but {name!r} came.{guess}")
