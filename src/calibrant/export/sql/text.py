"""SQL text: names, strings, comments, CASE, sums and their indentation."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import HALF, LEAST, Cells
from calibrant.errors import InputError
from calibrant.export.sql.dialects import LARGEST, Dialect
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import (
    LARGEST_DOUBLE,
    LOST,
    Clip,
    Input,
    Linear,
    LinePieces,
    Node,
    Number,
    Pieces,
    PlanColumn,
    Range,
    Regions,
    ends_of,
    reach,
    rebuilt,
    values_of,
)
from calibrant.rules.plan.tables import Grid, grid_of, listed

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


def name(text: str, dialect: Dialect) -> str:
    """One name, in quotes unless it is plain.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> name("score", dialect_of("duckdb")), name("My score", dialect_of("tsql"))
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
    return f"{first}{_escaped(text, dialect.in_names or {last: last * 2})}{last}"


def table_name(text: str, dialect: Dialect, suffix: str = "") -> str:
    """A table, whose name may be qualified: dots separate its parts.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> table_name("Main.scores", dialect_of("duckdb"), "_2")
    '"Main".scores_2'
    """
    if not isinstance(text, str):
        raise InputError(f"names of columns and tables must be text, but {text!r} came.")
    *above, own = text.split(".")
    return ".".join(new_name(part, dialect) for part in (*above, own and own + suffix))


def new_name(text: str, dialect: Dialect) -> str:
    """One name of what may be made: two that the database cuts to the same would be mistaken.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> new_name("p" * 63, dialect_of("postgres")) == "p" * 63
    True
    """
    written, most = name(text, dialect), dialect.name_bytes
    if most is not None and len(text.encode()) > most:
        raise InputError(
            f"names of tables, views and new columns must have at most {most} bytes, since "
            f"{dialect.name} reads no more of them, but {text!r} came. Take a shorter one. (Of a "
            "bare map, as in to_sql(calibrator.map_, ...), classes are numbered.)"
        )
    return written


def column_name(text: str, source: str, dialect: Dialect) -> str:
    """A column of a source of rows (empty: of whatever is being read)."""
    return f"{source}.{name(text, dialect)}" if source else name(text, dialect)


def string(text: str, dialect: Dialect) -> str:
    """A text as a literal.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> string("it's", dialect_of("duckdb")), string("it's", dialect_of("bigquery"))
    ("'it''s'", "'it\\\\'s'")
    """
    if "\0" in text:
        raise InputError(f"SQL has no text with the character 0, but {text!r} holds it.")
    return f"{dialect.text_prefix}'{_escaped(text, dialect.in_text)}'"


def _escaped(text: str, known: Mapping[str, str]) -> str:
    return "".join(known.get(c, c) for c in text)


def comment(text: str) -> str:
    """A comment, and a line break. The text is ours; what it quotes has gone through `label`.

    It is a comment with an end, so that the SQL may be put on one line, and it holds no semicolon,
    at which clients split scripts.

    >>> comment("by 'a */ b'")
    "/* by 'a * / b' */\\n"
    """
    for mark in MARKS:
        text = text.replace(mark, f"{mark[0]} {mark[1]}")
    text = text.replace(";", ",")
    lines = textwrap.wrap(text, LONGEST, break_long_words=False, break_on_hyphens=False)
    inner = "\n   ".join(lines)
    return f"/* {inner} */\n"


def label(value: object) -> str:
    """A label or a name as part of a comment: on one line and without semicolons.

    >>> print(label("a\\nb; DROP TABLE t"))
    'a\\nb\\x3b DROP TABLE t'
    """
    text = repr(value).replace(";", r"\x3b")
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


# --- expressions --------------------------------------------------------------------------------


def shifted(text: str, by: int = 2) -> str:
    """The text with its lines indented. No string that we write holds a line break."""
    return "\n".join(" " * by + line for line in text.split("\n"))


def inside(head: str, text: str, tail: str) -> str:
    """A text between brackets, on lines of its own if it has several."""
    if "\n" not in text and len(head) + len(text) + len(tail) <= WIDTH:
        return f"{head}{text}{tail}"
    return f"{head}\n{shifted(text)}\n{tail}"


def case(branches: Sequence[tuple[str, str]], otherwise: str = "", operand: str = "") -> str:
    """CASE … END, on one line if that is short.

    >>> case([("s < 0e0", "0e0")], "s")
    'CASE WHEN s < 0e0 THEN 0e0 ELSE s END'
    """
    head = f"CASE {operand}" if operand else "CASE"
    parts = [(f"WHEN {condition} THEN", value) for condition, value in branches]
    parts += [("ELSE", otherwise)] if otherwise else []
    line = " ".join((head, *(f"{start} {value}" for start, value in parts), "END"))
    if "\n" not in line and len(line) <= WIDTH and len(branches) < 3:
        return line
    rows = [_row(start, value) for start, value in parts]
    if not operand and (more := _opened(otherwise)) and len(branches) + len(more) < LONGEST_CASE:
        rows[-1:] = more
    return "\n".join((head, *rows, "END"))


def _row(start: str, value: str) -> str:
    start = start.replace("\n", "\n    ")
    if "\n" in start + value or len(start) + len(value) > WIDTH:
        return f"  {start}\n{shifted(value, 4)}"
    return f"  {start} {value}"


def _opened(text: str) -> list[str]:
    """The lines of a CASE without its first and last, if it is one and has several lines."""
    first, *lines = text.split("\n")
    whole = first == "CASE" and lines and lines[-1] == "END"
    return lines[:-1] if whole and all(line.startswith("  ") for line in lines[:-1]) else []


def tree(chooser: str, low: Sequence[float], leaves: Sequence[str], dialect: Dialect) -> str:
    """A balanced tree of comparisons with the lower ends of regions, a leaf for each region."""
    kept = [i for i, text in enumerate(leaves) if i == 0 or text != leaves[i - 1]]
    return _branch(chooser, [float(low[i]) for i in kept], [leaves[i] for i in kept], dialect)


def _branch(chooser: str, low: list[float], leaves: list[str], dialect: Dialect) -> str:
    count = len(leaves)
    if count == 1:
        return leaves[0]
    inner = BRANCHES
    while inner * BRANCHES < count:
        inner *= BRANCHES
    parts = count if count <= BRANCHES else -(-count // inner)
    cuts = [count * i // parts for i in range(parts + 1)]
    values = [_branch(chooser, low[a:b], leaves[a:b], dialect) for a, b in itertools.pairwise(cuts)]
    conditions = [f"{chooser} < {dialect.number(low[cut])}" for cut in cuts[1:-1]]
    return case(list(zip(conditions, values[:-1], strict=True)), values[-1])


def clamp(value: str, dialect: Dialect, low: End = None, high: End = None) -> str:
    """A value moved into an interval, whose ends are numbers or SQL; either may be open.

    >>> from calibrant.export.sql.dialects import dialect_of
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
        return inside(head, value, ")" * len(ends)).replace(", \n", ",\n", 1)
    if len(value) <= REPEATED:
        return case([(f"{value} {mark} {end}", end) for end, _, mark in ends], value)
    moved = case([(f"v {mark} {end}", end) for end, _, mark in ends], "v")
    return inside(f"(SELECT {moved} FROM (VALUES (", value, ")) AS t(v))")


def linear(base: float, terms: Sequence[tuple[float, str]], dialect: Dialect) -> str:
    """base + Σ coefficient · text, with the signs where a reader expects them.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> linear(0.5, [(-2.0, "s"), (1.0, "t")], dialect_of("duckdb"))
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


def total(terms: Sequence[str]) -> str:
    """A sum, in brackets of fifty terms where there are many.

    >>> total(["a", "b", "c"])
    'a + b + c'
    """
    while len(terms) > WIDE:
        terms = [f"({' + '.join(terms[i : i + WIDE])})" for i in range(0, len(terms), WIDE)]
    return " + ".join(terms)


# --- Statements: a lookup table, its rows, and the query that joins it ----------------------------


#: rows of one INSERT
BATCH = 500
#: the ends of the names of tables that are not yet, or no longer, in their place
NEW, OLD = "_new", "_old"


class Sql(str):
    """SQL text.

    Attributes
    ----------
    statements : tuple of str
        The statements without their semicolons, to be run one after another, in a transaction of
        yours: those that begin and end one are in the text only. Empty where the text is an
        expression, to be used within a query.

    Examples
    --------
    >>> Sql("SELECT 1;", ("SELECT 1",)).statements
    ('SELECT 1',)
    """

    statements: tuple[str, ...]

    def __new__(cls, text: str, statements: Sequence[str] = ()) -> Sql:
        made = super().__new__(cls, text)
        made.statements = tuple(statements)
        return made


def script(head: str, made: Sequence[str], last: Sequence[str], dialect: Dialect) -> Sql:
    """A script: a comment, the statements that make tables in one transaction, and the last ones.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> print(script("", ["CREATE TABLE t (a INT)"], ["SELECT 1"], dialect_of("sqlite")), end="")
    BEGIN;
    <BLANKLINE>
    CREATE TABLE t (a INT);
    <BLANKLINE>
    COMMIT;
    <BLANKLINE>
    SELECT 1;
    """
    statements = [*made, *last]
    text = statements
    if made and not dialect.swap:
        first, *rest = last
        batch = dialect.batch if first.startswith("CREATE") else ""
        text = [*dialect.begin, *made, dialect.commit, batch + first, *rest]
    statements = [head + statements[0], *statements[1:]]
    return Sql(head + ";\n\n".join(text) + ";\n", statements)


def from_rows(rows: str, joins: Sequence[LookupJoin], lookup: str, dialect: Dialect) -> str:
    """FROM the rows, with their lookups joined."""
    text = f"FROM {rows} AS r"
    for join in joins:
        table = table_name(lookup, dialect, join.suffix)
        conditions = "\nAND ".join(join.conditions)
        joined = f"{table} AS {join.alias}{dialect.joined}"
        text += f"\nLEFT JOIN {joined}\n{shifted('ON ' + conditions)}"
    return text


# --- tables -------------------------------------------------------------------------------------


def tables(joins: Sequence[LookupJoin], lookup: str, dialect: Dialect) -> list[str]:
    """The statements that create the tables of joins, and fill them; older ones are replaced."""
    made = [text for join in joins for text in _table(join, lookup, dialect)]
    for join in joins if dialect.swap else ():
        ends = {"own": "", "new": NEW, "old": OLD}
        names = {n: table_name(lookup, dialect, join.suffix + e) for n, e in ends.items()}
        made += [text.format(**names) for text in dialect.swap]
    return made


def _table(table: LookupJoin, lookup: str, dialect: Dialect) -> Iterator[str]:
    own = table_name(lookup, dialect, table.suffix + (NEW if dialect.swap else ""))
    names = [name(column, dialect) for column in table.columns]
    spelled = [_spelled(column, dialect) for column in table.columns.values()]
    lines = [f"{column} {type_}" for column, (type_, _) in zip(names, spelled, strict=True)]
    if dialect.indexed:
        lines.append(f"PRIMARY KEY ({', '.join(names[: table.key])})")
    columns = ",\n".join(lines)
    yield f"DROP TABLE IF EXISTS {own}"
    yield (
        f"{comment(f'The table of {table.about}.')}"
        f"CREATE TABLE {own} (\n{shifted(columns)}\n){dialect.storage}"
    )
    rows = [f"({', '.join(row)})" for row in zip(*(values for _, values in spelled), strict=True)]
    for begin in range(0, len(rows), BATCH):
        batch = ",\n".join(rows[begin : begin + BATCH])
        last = min(begin + BATCH, len(rows))
        yield (
            f"{comment(f'Its rows {begin + 1:,} to {last:,} of {len(rows):,}.')}"
            f"INSERT INTO {own} ({', '.join(names)}) VALUES\n{shifted(batch)}"
        )


def _spelled(column: Any, dialect: Dialect) -> tuple[str, list[str]]:
    """The type of a column, and its values as literals."""
    if isinstance(column, list):
        texts = [text + dialect.key_end for text in column]
        longest = max(len(text.encode()) for text in texts)
        return dialect.text.format(max(longest, 1)), [string(text, dialect) for text in texts]
    if column.dtype == np.float64:
        return dialect.double, [*map(dialect.stored or dialect.number, column.tolist())]
    return dialect.integer, [*map(str, column.tolist())]


# --------------------------------------------------------------------------------------------------
# Lines as SQL. Where rounding could carry a value beyond those at the line's ends, it is cut


#: how far values of different engines may differ, as a share of the value
ROUNDING = 2.0**-51


# --- where rounding matters ---------------------------------------------------------------------


def is_steep(pieces: Pieces, x: Node) -> Flags:
    """The pieces that are so steep that the last bits of x change the value of the line.

    >>> from calibrant.rules.plan.nodes import Logit
    >>> rise = np.array([0.0, 1.0])
    >>> is_steep(Pieces(np.array([0.0, 1e-9]), rise, rise), Logit(Input())).tolist()
    [False, True, False]
    """
    if isinstance(x, Input):  # whose bits all engines have in common
        return np.zeros(len(pieces.x) + 1, dtype=bool)
    _, width, low, high, *_ = pieces.table
    size = np.maximum(np.abs(pieces.x), 1.0)
    size = np.maximum(np.append(size, 1.0), np.append(1.0, size))
    with np.errstate(over="ignore"):
        moved = np.abs(high - low) / width * size * ROUNDING
    return np.asarray(moved > LOST)


def bounds(node: LinePieces, i: int, found: Regions) -> dict[str, Array]:
    """The least and the largest value that NumPy gives on each piece of table i."""
    pieces = node.pieces[i]
    if not node.places[i].by_input:
        ends = [pieces.low[found.piece], pieces.high[found.piece]]
    else:
        ends = [evaluate(node, scores, owner=i) for scores in (found.low, found.high)]
    least, most = np.zeros((2, len(pieces.x) + 1))
    least[found.piece], most[found.piece] = np.minimum(*ends), np.maximum(*ends)
    return {"least": least, "most": most}


# --- as SQL -------------------------------------------------------------------------------------


def numbered_line(s: str, piece: Mapping[str, float], writer: SqlWriter) -> str:
    """`plan.line_pieces.on_line` as SQL, of parameters that are numbers.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> piece = {"start": 0.5, "low": 0.0, "high": 0.25, "width": 2.0}
    >>> numbered_line("s", piece, SqlWriter(dialect_of("duckdb")))
    '(s - 0.5e0) / 2e0 * 0.25e0'
    """
    dialect = writer.dialect
    if "base" in piece:
        return linear(piece["base"], [(piece["slope"], s)], dialect)
    if "slope" in piece:
        along = linear(-piece["start"], [(1.0, s)], dialect)
        return linear(piece["low"], [(piece["slope"], f"({along})")], dialect)
    # the operations of the map itself, one after another, but for those that change nothing
    rise, start = piece["high"] - piece["low"], piece["start"]
    text = s if piece.get("scale", 1.0) == 1.0 else f"{s} * {dialect.number(piece['scale'])}"
    if start:
        text = f"({text} {'-' if start > 0.0 else '+'} {dialect.number(abs(start))})"
    for mark, number in (("/", piece["width"]), ("*", abs(rise))):
        text += f" {mark} {dialect.number(number)}" if number != 1.0 else ""
    return linear(piece["low"], [(1.0 if rise > 0.0 else -1.0, text)], dialect)


def line(s: str, piece: Mapping[str, str]) -> str:
    """`plan.line_pieces.on_line` as SQL, of parameters that are SQL."""
    if "base" in piece:
        return f"{piece['base']} + {piece['slope']} * {s}"
    if "slope" in piece:
        return f"{piece['low']} + {piece['slope']} * ({s} - {piece['start']})"
    low, high, width = piece["low"], piece["high"], piece["width"]
    scaled = f"{s} * {piece['scale']}" if "scale" in piece else s
    return f"{low} + ({scaled} - {piece['start']}) / {width} * ({high} - {low})"


# --- What the text being written needs: the dialect, the form, and the tables to join -------------


Index = NDArray[np.int64]

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LookupJoin:
    """A table to be created and filled, and how it is joined: at most one row of it is found.

    Parameters
    ----------
    about : what its rows are, for a comment
    suffix : what is added to the name of the lookup table
    alias : what the query calls it
    columns : values by name; text, whole numbers or doubles
    key : how many of the first columns tell its rows apart
    conditions : SQL that holds for the row that is found
    """

    about: str
    suffix: str
    alias: str
    columns: Mapping[str, Array | Index | list[str]]
    key: int
    conditions: tuple[str, ...]


@dataclass
class SqlWriter:
    """Collects the joins of a script while its expressions are written.

    Parameters
    ----------
    dialect : Dialect
    lookup : bool
        Whether pieces are chosen by joins; by CASE otherwise.
    """

    dialect: Dialect
    lookup: bool = False
    joins: list[LookupJoin] = field(default_factory=list)

    def look_up(
        self,
        found: Sequence[Regions],
        columns: Sequence[Mapping[str, Array]],
        score: str,
        code: str = "",
    ) -> dict[str, str]:
        """The columns of the row's own region, joined by cell: SQL by name.

        Where there are several tables of regions, ``code`` is SQL of the number of the row's own.
        """
        low = np.sort(np.concatenate([own.low for own in found]))
        grid = grid_of(low, owners=len(found), lean=True)
        parts = [self.rows(grid, *pair) for pair in zip(found, columns, strict=True)]
        table = {own: np.concatenate([part[own] for part in parts]) for own in parts[0]}
        equal = {"cell": cell(grid, score, self.dialect)}
        what, each = "pieces", "cell"
        if code:
            what, each = "pieces of maps", "segment and cell"
            codes = np.repeat(np.arange(len(parts)), [len(part["cell"]) for part in parts])
            table, equal = {"code": codes, **table}, {"code": code, **equal}
        about = f"{len(low):,} {what}, each once for every {each} of scores that it touches"
        return self.join(about, table, equal, score)

    def rows(self, grid: Grid, found: Regions, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Regions by cell, with their ends, both included, and the values of their pieces."""
        low, high, piece = found if self.dialect.subnormals else _normal(found)
        cells, region = listed(grid, low, high)
        order = np.lexsort((low[region], cells))
        cells, region = cells[order], region[order]
        first = np.where(low == -LARGEST, -self.dialect.endless, low)
        last = np.where(high == LARGEST, self.dialect.endless, high)
        ends = {"cell": cells, "score_from": first[region], "score_to": last[region]}
        return ends | {own: c[piece[region]] for own, c in columns.items()}

    def join(
        self,
        about: str,
        columns: Mapping[str, Array | Index | list[str]],
        equal: Mapping[str, str],
        score: str = "",
    ) -> dict[str, str]:
        """Join a new table where its first columns equal SQL and the score, if there is one, lies
        in the row's region; return its columns as SQL by name."""
        count = len(self.joins) + 1
        alias, suffix = (f"l{count}", f"_{count}") if count > 1 else ("l", "")
        found = {own: f"{alias}.{name(own, self.dialect)}" for own in columns}
        conditions = [f"{found[own]} = {value}" for own, value in equal.items()]
        if score:
            conditions.append(f"{score} BETWEEN {alias}.score_from AND {alias}.score_to")
        self.joins.append(
            LookupJoin(about, suffix, alias, columns, len(conditions), tuple(conditions))
        )
        return found


def _normal(found: Regions) -> Regions:
    """Regions for databases without subnormal numbers: their ends are moved to normal numbers."""
    low, high = found.low.copy(), found.high.copy()
    for ends, up in ((low, True), (high, False)):
        tiny = (ends != 0.0) & (np.abs(ends) < SMALLEST_NORMAL)
        away = (ends > 0.0) == up
        ends[tiny] = np.where(away, np.sign(ends) * SMALLEST_NORMAL, 0.0)[tiny]
    some = low <= high
    return Regions(low[some], high[some], found.piece[some])


# --- Plans for databases in which an overflow is an error, and not infinity -----------------------


#: beyond ± this a sigmoid is 0 (to 1e-260) or 1; further out some engines refuse the exp in it, or
#: its product with a weight
STEEPEST = 600.0
#: any number in this interval is as good, so a short one is taken
ROUND = (570.0, 630.0)
#: products up to here can be added without overflow
HUGE = 1e300
#: up to here, the sum of an intercept and a term keeps the digits of both
WHERE_SUMS_ARE_SURE = 1e6


def is_bounded(range_: Range) -> bool:
    """Whether the exponential of all values in a range is a number."""
    return range_[0] >= -ROUND[1] and range_[1] <= ROUND[1]


def guarded(node: Node, dialect: Dialect) -> Node:
    """The plan with factors moved to where their products do not overflow, if that is an error.

    Where a product is that large, the sigmoid around it has long been 0 or 1.
    """
    return node if dialect.infinite else rebuilt(node, _with_small_products)


def _with_small_products(node: Node) -> Node:
    if not isinstance(node, Linear) or _is_sign(node):
        return node
    large = [
        max(map(abs, ends_of(c))) * max(map(abs, reach(term))) > HUGE for c, term in node.terms
    ]
    if not any(large):
        return node
    terms = [
        (c, Clip(term, *_limits(node, i)) if large[i] else term)
        for i, (c, term) in enumerate(node.terms)
    ]
    return Linear(node.base, tuple(terms))


def _is_sign(node: Linear) -> bool:
    """Whether a sum only turns the sign of a value, or not even that."""
    return node.base == 0.0 and len(node.terms) == 1 and node.terms[0][0] in (-1.0, 1.0)


def _limits(node: Linear, i: int) -> tuple[Number, Number]:
    """The interval for factor i, at whose ends the term alone decides the sum. If it is the only
    term, the interval in which the sum lies between ± `STEEPEST`."""
    c, base = (values_of(number) for number in (node.terms[i][0], node.base))
    if len(node.terms) == 1 and np.abs(base).max() <= WHERE_SUMS_ARE_SURE:
        both = [_round_ends(level, base, c) for level in (-STEEPEST, STEEPEST)]
        low, high = np.minimum(*both), np.maximum(*both)
    else:
        others = Linear(0.0, node.terms[:i] + node.terms[i + 1 :])
        rest = max(map(abs, reach(others)))
        high = 2.0 * (STEEPEST + rest + np.abs(base)) / np.abs(c)
        # two terms of a margin have no end, but only one of them is large at a time
        high = np.minimum(high, HUGE / np.maximum(np.abs(c), HUGE / LARGEST_DOUBLE))
        low = -high
    if len(high) == 1:
        return float(low[0]), float(high[0])
    return PlanColumn(low), PlanColumn(high)


def _round_ends(level: float, base: Array, c: Array) -> Array:
    """The x at which base + c · x is ``level``, with few digits where those are as good."""
    exact = (level - base) / c
    short = np.array([float(f"{end:.1e}") for end in exact.tolist()])
    size = np.abs(base + c * short)
    return np.where((size >= ROUND[0]) & (size <= ROUND[1]), short, exact)


# --- The cell of a score, only by operations that IEEE 754 fixes to the last bit ------------------


#: scores further out than so many spreads count as this far out: so no product overflows
FAR = 2.0**60


def cell(grid: Grid, score: str, dialect: Dialect) -> str:
    """The cell of a score as SQL. NULL and NaN get some cell, but match no piece in it.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> cell(Grid(4), "s", dialect_of("duckdb"))
    'CAST(FLOOR(4e0 * CASE WHEN s <= 0e0 THEN 0e0 WHEN s < 1e0 THEN s ELSE 1e0 END) AS INTEGER)'
    """
    if grid.cells is not None:
        return inside("", dialect.cells(_place(grid, grid.cells, score, dialect)), "")
    number = dialect.number
    factor = grid.factor
    along, end = score, (grid.last - grid.first) * factor
    if (grid.first, factor) != (0.0, 1.0):
        along = f"({score} - {_negative(number(grid.first))}) * {number(factor)}"
    t = _moved(score, along, (grid.first, 0.0), (grid.last, end), dialect)
    for _ in range(grid.roots):
        t = f"SQRT({t})"
    return dialect.cells(f"{number(float(grid.count))} * {t}")


def _negative(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _moved(
    score: str,
    between: str,
    low: tuple[float, float],
    high: tuple[float, float],
    dialect: Dialect,
) -> str:
    """A value between two scores, and constants beyond them; NaN and NULL are beyond the last."""
    number = dialect.number
    branches = [
        (f"{score} <= {number(low[0])}", number(low[1])),
        (f"{score} < {number(high[0])}", between),
    ]
    return case(branches, number(high[1]))


def _place(grid: Grid, cells: Cells, score: str, dialect: Dialect) -> str:
    """What is rounded down to the cell: `Cells.places` as SQL, of the score less `Grid.first`."""
    number = dialect.number
    one, least = number(1.0), number(LEAST)
    if cells.centre is None:  # even in the logit
        zero, half = number(0.0), number(HALF)
        below = case([(f"{score} > {zero}", score)], zero)
        above = case([(f"{score} < {one}", f"{one} - {score}")], zero)
        lower, upper = (f"SQRT(SQRT(SQRT({p})))" for p in (below, above))
        side, low, high = f"{score} < {number(0.5)}", f"{lower} - {half}", f"{half} - {upper}"
    else:  # finest in the middle
        first, last = (grid.first + side * FAR * cells.spread for side in (-1.0, 1.0))
        near = _moved(score, score, (first, first), (last, last), dialect)
        t = f"({near} - {_negative(number(grid.first))}) * {number(1.0 / cells.spread)}"
        far = f"{one} / ({one} + ABS({t}))"
        side, low, high = f"{t} < {number(0.0)}", f"{far} - {one}", f"{one} - {far}"
    return f"{number(cells._scale)} * {case([(side, f'{low} - {least}')], high)}"
