"""Statements: a lookup table, its rows, and the query that joins it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import comment, name, shifted, string, table_name
from calibrant.export.sql.writer import LookupJoin

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
