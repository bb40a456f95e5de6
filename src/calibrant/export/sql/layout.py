"""SQL text: names, strings, comments, CASE, sums and their indentation."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence

from calibrant.errors import InputError
from calibrant.export.sql.dialects import Dialect

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
    parts = (*above, own and own + suffix)
    most = dialect.name_bytes
    for part in parts:
        if most is not None and len(part.encode("utf-8", "replace")) > most:
            raise InputError(
                f"names of tables and views must have at most {most} bytes, since {dialect.name} "
                f"reads no more of them, but {part!r} came. Take a shorter one."
            )
    return ".".join(name(part, dialect) for part in parts)


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

    It is a comment with an end, so that the SQL may be put on one line.

    >>> comment("by 'a */ b'")
    "/* by 'a * / b' */\\n"
    """
    for mark in MARKS:
        text = text.replace(mark, f"{mark[0]} {mark[1]}")
    lines = textwrap.wrap(text, LONGEST, break_long_words=False, break_on_hyphens=False)
    inner = "\n   ".join(lines)
    return f"/* {inner} */\n"


def label(value: object) -> str:
    """A label or a name as part of a comment: on one line and without the semicolon that clients
    split scripts at, whatever it holds.

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
