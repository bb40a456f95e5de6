"""What differs between databases: one `Dialect` for each. A new one is an entry in `DIALECTS`.

Below them is how all of them lay out names, texts, comments, CASE and sums.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from calibrant.errors import InputError, ParameterError

# --- Doubles as text that a database reads as the same double, to the last bit --------------------


LARGEST = 1.7976931348623157e308
SMALLEST_NORMAL = 2.2250738585072014e-308
#: up to which whole number, and which power of ten, doubles are exact
WHOLE, TENS = 2**53, 22
#: the largest power of two that is written as one number
POWER = 62


def plain_number(x: float) -> str:
    """The shortest digits of a double, with an exponent so that it is not read as a DECIMAL.

    >>> plain_number(0.1), plain_number(1e-9), plain_number(-0.0)
    ('0.1e0', '1e-09', '0e0')
    """
    text = repr(float(x) + 0.0).removesuffix(".0")
    return text if "e" in text else f"{text}e0"


def quoted_number(x: float) -> str:
    """The number in quotes, as a column of doubles accepts it.

    >>> quoted_number(0.1)
    "'0.1e0'"
    """
    return f"'{plain_number(x)}'"


def cast_number(x: float) -> str:
    """The number with a cast, for databases that may read it as fixed-point.

    >>> cast_number(0.1)
    "'0.1e0'::FLOAT"
    """
    return f"{quoted_number(x)}::FLOAT"


def normal_number(x: float) -> str:
    """The number, for databases without subnormal numbers: such a number becomes the next larger
    normal one.

    A comparison with it is right for all scores that such a database can hold.

    >>> normal_number(5e-324), normal_number(-5e-324)
    ('2.2250738585072014e-308', '0e0')
    """
    if 0.0 < abs(x) < SMALLEST_NORMAL:
        x = SMALLEST_NORMAL if x > 0.0 else 0.0
    return plain_number(x)


def quotient_number(x: float) -> str:
    """The number as a quotient, for databases that misread long digits.

    IEEE 754 rounds one division right: of digits below 2⁵³ and a power of ten up to 10²², or else
    of the double's own integer and a power of two.

    >>> quotient_number(0.5), quotient_number(0.1), quotient_number(0.1 + 0.2)
    ('0.5e0', '(1e0 / 1e1)', '(1351079888211149e0 / 4503599627370496e0)')
    """
    x = float(x) + 0.0
    if math.isinf(x):
        return "9e999" if x > 0.0 else "-9e999"
    _, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    whole = int("".join(map(str, digits)))
    sign = "-" if x < 0.0 else ""
    small = whole < WHOLE and isinstance(exponent, int) and abs(exponent) <= TENS
    if small and Decimal(repr(x)) == Decimal(x):
        return plain_number(x)
    if small:
        return f"({sign}{whole}e0 {'/' if int(exponent) < 0 else '*'} 1e{abs(int(exponent))})"
    top, bottom = abs(x).as_integer_ratio()
    raised = max(top.bit_length() - 53, 0)
    times, divided = _binary_factors("*", raised), _binary_factors("/", bottom.bit_length() - 1)
    return f"({sign}{top >> raised}e0{times}{divided})"


def _binary_factors(mark: str, power: int) -> str:
    """SQL that multiplies or divides by a power of two."""
    whole, rest = divmod(power, POWER)
    return f" {mark} {2**POWER}e0" * whole + (f" {mark} {2**rest}e0" if rest else "")


# --- Words that are no names unless they are quoted -----------------------------------------------


#: reserved by at least one database; where a word is not reserved, quotes do no harm
_ANY = """
accessible add all alter analyse analyze and anti any array as asc assert_rows_modified
asymmetric at authorization backup before begin between bigint binary blob both break browse
bulk by call cascade case cast change char character check checkpoint close cluster clustered
coalesce collate collation column commit compute concurrently condition connect constraint
contains containstable continue convert create cross cube cume_dist current current_catalog
current_date current_role current_schema current_time current_timestamp current_user cursor
database databases day_hour day_microsecond day_minute day_second dbcc deallocate dec decimal
declare default deferrable define delayed delete dense_rank deny desc describe deterministic
disk distinct distinctrow distributed div do double drop dual dump each else elseif empty
enclosed end enum errlvl escape escaped except exclude exec execute exists exit explain external
extract false fetch file fillfactor first_value float float4 float8 following for force foreign
freetext freetexttable freeze from full fulltext function generated get goto grant group
grouping groups hash having high_priority holdlock hour_microsecond hour_minute hour_second
identity identity_insert identitycol if ignore ilike in index infile initially inner inout
insensitive insert int int1 int2 int3 int4 int8 integer intersect interval into is isnull
iterate join json_table key keys kill lag lambda last_value lateral lead leading leave left like
limit linear lineno lines load local localtime localtimestamp lock long longblob longtext
lookup loop low_priority match maxvalue mediumblob mediumint mediumtext merge
minute_microsecond minute_second minus mod modifies national natural new no nocheck
nonclustered not notnull nth_value ntile null nullif nulls numeric of off offset offsets on only
open opendatasource openquery openrowset openxml optimize option optionally or order out outer
outfile over overlaps partition percent percent_rank pivot placing plan preceding precision
primary print proc procedure proto public purge qualify raiserror range rank read reads
readtext real reconfigure recursive references regexp release rename repeat replace replication
require resignal respect restore restrict return returning revert revoke right rlike rollback
rollup row row_number rowcount rowguidcol rows rule save schema schemas second_microsecond
securityaudit select semi semantickeyphrasetable sensitive separator session_user set setuser
show shutdown signal similar smallint some spatial specific sql sqlexception sqlstate
sqlwarning ssl starting statistics stored straight_join struct summarize symmetric system
system_user table tablesample terminated textsize then tinyblob tinyint tinytext to top
trailing tran transaction treat trigger true truncate try_convert tsequal unbounded undo union
unique unlock unnest unpivot unsigned update updatetext usage use user using utc_date utc_time
utc_timestamp values varbinary varchar varcharacter variadic varying verbose view virtual
waitfor when where while window with within write writetext xor year_month zerofill
"""

#: where quotes change which name is meant, only what must be quoted is
_SNOWFLAKE = """
account all alter and any as between by case cast check column connect connection constraint
create cross current current_date current_time current_timestamp current_user database delete
distinct drop else exists false following for from full grant group gscluster having ilike in
increment inner insert intersect into is issue join lateral left like localtime localtimestamp
minus natural not null of on or order organization qualify regexp revoke right rlike row rows
sample schema select set some start table tablesample then to trigger true try_cast union
unique update using values view when whenever where with
"""

RESERVED, SNOWFLAKE = frozenset(_ANY.split()), frozenset(_SNOWFLAKE.split())


# --------------------------------------------------------------------------------------------------
# What differs between databases: one `Dialect` for each. A new one is an entry in `DIALECTS`


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
    """How one database writes names, texts, numbers, functions and tables.

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
    number: Callable[[float], str] = plain_number
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
        """The condition that a score is a finite number."""
        if self.finite:
            return self.finite.format(score)
        return f"{score} BETWEEN {self.number(-LARGEST)} AND {self.number(LARGEST)}"

    def cells(self, value: str) -> str:
        """SQL of a value rounded down to a whole number."""
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
            number=quotient_number,
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
            number=cast_number,
            stored=quoted_number,
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
            number=normal_number,
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
            number=cast_number,
            stored=quoted_number,
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
    """The dialect of this name; unknown names are refused with a guess.

    >>> dialect_of("tsql").ln
    'LOG'
    """
    if name in DIALECTS:
        return DIALECTS[name]
    said = str(name).lower().strip().replace(" ", "").replace("_", "").replace("-", "")
    near = [KNOWN_AS.get(said, said), *difflib.get_close_matches(said, DIALECTS, 1)]
    guess = next((f" Did you mean {n!r}?" for n in near if n in DIALECTS), "")
    raise ParameterError(f"dialect must be one of {', '.join(DIALECTS)}, but {name!r} came.{guess}")


# --- SQL text: names, strings, comments, CASE, sums and their indentation -------------------------

End = float | str | None

#: names that need no quotes, and mean the same whether a database folds names up or down
PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: what no name may hold: control characters, and ${…}, which some clients replace by a setting
CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|\$\{")
#: what dbt reads as its own
DBT_MARKS = ("{{", "{%", "{#")
#: the table of rows as dbt names it, with a schema or without
DBT_TABLE = re.compile(
    r"\{\{ ?(?:ref\('(\w+)'\)|source\('(\w+)', ?'(\w+)'\)) ?\}\}", flags=re.ASCII
)
#: what begins or ends a comment, or is read by some clients
MARKS = ("*/", "/*", "${", "$(", *DBT_MARKS)
#: the longest line, comment, and label within a comment
WIDTH, LONGEST, LABEL = 88, 96, 60
#: lines of a CASE up to which the CASE in its ELSE becomes part of it
LONGEST_CASE = 12
#: the most branches of one CASE among pieces; more become a tree
BRANCHES = 8
#: the longest value that is written several times to avoid a subquery
REPEATED = 120
#: the most terms of a sum at one level: databases limit how deep an expression may be
WIDE = 50


# --- names, texts, comments ---------------------------------------------------------------------


def quoted_name(text: str, dialect: Dialect) -> str:
    """A name as SQL, in quotes if it needs them.

    >>> quoted_name("score", dialect_of("duckdb")), quoted_name("My score", dialect_of("tsql"))
    ('score', '[My score]')
    """
    if not isinstance(text, str) or not text:
        raise InputError(f"names of columns and tables must be text, but {text!r} came.")
    if CONTROL.search(text):
        raise InputError(
            "names of columns and tables must not hold control characters, halves of characters "
            f"or ${{, but {text!r} came. Rename it, or select it under another name."
        )
    if PLAIN.fullmatch(text) and text not in dialect.reserved:
        return text
    first, last = dialect.quotes[0], dialect.quotes[1]
    return f"{first}{_escaped_text(text, dialect.in_names or {last: last * 2})}{last}"


def table_name(text: str, dialect: Dialect, suffix: str = "") -> str:
    """A table's name as SQL; dots separate its parts.

    >>> table_name("Main.scores", dialect_of("duckdb"), "_2")
    '"Main".scores_2'
    """
    if not isinstance(text, str):
        raise InputError(f"names of columns and tables must be text, but {text!r} came.")
    *above, own = text.split(".")
    return ".".join(new_name(part, dialect) for part in (*above, own and own + suffix))


def new_name(text: str, dialect: Dialect) -> str:
    """The name of a new table or column as SQL; refused if the database would cut it.

    >>> new_name("p" * 63, dialect_of("postgres")) == "p" * 63
    True
    """
    written, most = quoted_name(text, dialect), dialect.name_bytes
    if most is not None and len(text.encode()) > most:
        raise InputError(
            f"names of tables, views and new columns must have at most {most} bytes, since "
            f"{dialect.name} reads no more of them, but {text!r} came. Take a shorter one. (Of a "
            "bare map, as in to_sql(calibrator.map_, ...), classes are numbered.)"
        )
    return written


def column_name(text: str, source: str, dialect: Dialect) -> str:
    """A column's name as SQL, after the name of its source if there is one."""
    return f"{source}.{quoted_name(text, dialect)}" if source else quoted_name(text, dialect)


def text_literal(text: str, dialect: Dialect) -> str:
    """A text as a literal of SQL.

    >>> text_literal("it's", dialect_of("duckdb")), text_literal("it's", dialect_of("bigquery"))
    ("'it''s'", "'it\\\\'s'")
    """
    if "\0" in text:
        raise InputError(f"SQL has no text with the character 0, but {text!r} holds it.")
    return f"{dialect.text_prefix}'{_escaped_text(text, dialect.in_text)}'"


def _escaped_text(text: str, known: Mapping[str, str]) -> str:
    """A text with special characters replaced."""
    return "".join(known.get(c, c) for c in text)


def comment(text: str) -> str:
    """A comment of SQL, ended by a line break. It holds no semicolon.

    It has an end, so that the SQL may be put on one line; and clients split scripts at semicolons.
    What the text quotes has gone through `comment_label`.

    >>> comment("by 'a */ b'")
    "/* by 'a * / b' */\\n"
    """
    for mark in MARKS:
        text = text.replace(mark, f"{mark[0]} {mark[1]}")
    text = text.replace(";", ",")
    lines = textwrap.wrap(text, LONGEST, break_long_words=False, break_on_hyphens=False)
    inner = "\n   ".join(lines)
    return f"/* {inner} */\n"


def comment_label(value: object) -> str:
    """A label as it stands in a comment: on one line, without semicolons.

    >>> print(comment_label("a\\nb; DROP TABLE t"))
    'a\\nb\\x3b DROP TABLE t'
    """
    text = repr(value).replace(";", r"\x3b")
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


# --- expressions --------------------------------------------------------------------------------


def indented(text: str, by: int = 2) -> str:
    """The text with all lines indented."""
    return "\n".join(" " * by + line for line in text.split("\n"))


def in_brackets(head: str, text: str, tail: str) -> str:
    """A text between brackets, on lines of its own if it is long."""
    if "\n" not in text and len(head) + len(text) + len(tail) <= WIDTH:
        return f"{head}{text}{tail}"
    return f"{head}\n{indented(text)}\n{tail}"


def case(branches: Sequence[tuple[str, str]], otherwise: str = "", operand: str = "") -> str:
    """A CASE expression, on one line if it is short.

    >>> case([("s < 0e0", "0e0")], "s")
    'CASE WHEN s < 0e0 THEN 0e0 ELSE s END'
    """
    head = f"CASE {operand}" if operand else "CASE"
    parts = [(f"WHEN {condition} THEN", value) for condition, value in branches]
    parts += [("ELSE", otherwise)] if otherwise else []
    line = " ".join((head, *(f"{start} {value}" for start, value in parts), "END"))
    if "\n" not in line and len(line) <= WIDTH and len(branches) < 3:
        return line
    rows = []
    for start, value in parts:
        own = start.replace("\n", "\n    ")
        several = "\n" in own + value or len(own) + len(value) > WIDTH
        rows.append(f"  {own}\n{indented(value, 4)}" if several else f"  {own} {value}")
    first, *inner = otherwise.split("\n")
    if not operand and (first, inner[-1:]) == ("CASE", ["END"]):  # it becomes part of this one
        inner = inner[:-1]
        short = len(branches) + len(inner) < LONGEST_CASE
        if short and all(line.startswith("  ") for line in inner):
            rows[-1:] = inner
    return "\n".join((head, *rows, "END"))


def comparison_tree(
    chooser: str, low: Sequence[float], leaves: Sequence[str], dialect: Dialect
) -> str:
    """A balanced tree of CASE expressions that finds the region of a value."""
    kept = [i for i, text in enumerate(leaves) if i == 0 or text != leaves[i - 1]]

    def branch(some: list[int]) -> str:
        """The tree of some neighbouring regions."""
        count = len(some)
        if count == 1:
            return leaves[some[0]]
        inner = BRANCHES
        while inner * BRANCHES < count:
            inner *= BRANCHES
        parts = count if count <= BRANCHES else -(-count // inner)
        cuts = [count * i // parts for i in range(parts + 1)]
        values = [branch(some[a:b]) for a, b in itertools.pairwise(cuts)]
        ends = [f"{chooser} < {dialect.number(float(low[some[cut]]))}" for cut in cuts[1:-1]]
        return case(list(zip(ends, values[:-1], strict=True)), values[-1])

    return branch(kept)


def clamp(value: str, dialect: Dialect, low: End = None, high: End = None) -> str:
    """SQL of a value clipped to an interval, of which either end may be open.

    >>> clamp("a + b", dialect_of("duckdb"), 0.0, 1.0)
    'GREATEST(0e0, LEAST(1e0, a + b))'
    >>> clamp("a + b", dialect_of("tsql"), high=1.0)
    'CASE WHEN a + b > 1e0 THEN 1e0 ELSE a + b END'
    """
    both = ((low, dialect.greatest, "<"), (high, dialect.least, ">"))
    ends = [
        (end if isinstance(end, str) else dialect.number(end), function, mark)
        for end, function, mark in both
        if end is not None
    ]
    if dialect.greatest:
        head = "".join(f"{function}({end}, " for end, function, _ in ends)
        return in_brackets(head, value, ")" * len(ends)).replace(", \n", ",\n", 1)
    if len(value) <= REPEATED:
        return case([(f"{value} {mark} {end}", end) for end, _, mark in ends], value)
    moved = case([(f"v {mark} {end}", end) for end, _, mark in ends], "v")
    return in_brackets(f"(SELECT {moved} FROM (VALUES (", value, ")) AS t(v))")


def linear_sum(base: float, terms: Sequence[tuple[float, str]], dialect: Dialect) -> str:
    """SQL of base + Σ coefficient · text, with natural signs.

    >>> linear_sum(0.5, [(-2.0, "s"), (1.0, "t")], dialect_of("duckdb"))
    '0.5e0 - 2e0 * s + t'
    """
    parts = [dialect.number(base)] if base or not terms else []
    for coefficient, factor in terms:
        size = abs(coefficient)
        part = factor if size == 1.0 else f"{dialect.number(size)} * {factor}"
        if parts:
            part = f"- {part}" if coefficient < 0.0 else f"+ {part}"
        elif coefficient < 0.0:
            part = f"-{part}"
        parts.append(part)
    line = " ".join(parts)
    return line if len(line) <= WIDTH else "\n".join(parts)


def sum_of_terms(terms: Sequence[str]) -> str:
    """SQL of a sum; a long one is nested, so that no database refuses it.

    >>> sum_of_terms(["a", "b", "c"])
    'a + b + c'
    """
    while len(terms) > WIDE:
        terms = [f"({' + '.join(terms[i : i + WIDE])})" for i in range(0, len(terms), WIDE)]
    return " + ".join(terms)
