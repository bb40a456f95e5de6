"""One file as DuckDB reads it: its columns as people call them, and their SQL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibrant.engines.files.data_files import find_column


@dataclass(frozen=True)
class Source:
    """One file: its columns as people call them, and the SQL that reads them.

    Parameters
    ----------
    path : Path
    kind : {"csv", "json", "parquet"}
    names : the columns' names as the file has them
    columns : the SQL expression of each
    types : the SQL type of each
    relation : the table function that reads the file
    separator : between the fields of a CSV file
    rows : how many there must be, where that is known apart from the reader
    folders : how many of the columns, the last ones, stand in the names of the file's folders
    """

    path: Path
    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    relation: str
    separator: str = ","
    rows: int | None = None
    folders: int = 0

    def find(self, name: str, role: str = "") -> int:
        """The place of a column, or an InputError that lists the columns there are."""
        return find_column(self.names, name, role, file=self.path.name, kind=self.kind)


def literal(text: str) -> str:
    """A string as SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column's name as SQL.

    >>> identifier('say "hi"; --')
    '"say ""hi""; --"'
    """
    return '"' + name.replace('"', '""') + '"'


def pattern(path: Path) -> str:
    """A path as SQL that matches this very file, whatever wildcards its name holds."""
    text = "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
    return literal(text)
