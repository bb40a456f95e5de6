"""Sheets of Excel and OpenDocument files as CSV text, which is then read like any other."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

from calibrant.errors import InputError, import_extra


def sheet_as_csv(path: Path, to: IO[str], wanted: Sequence[str] = ()) -> str:
    """Write the sheet that has the columns wanted as CSV; what to say of it, if there are others.

    Parameters
    ----------
    path : Path
        An .xlsx, .xlsm, .xlsb, .xls or .ods file.
    to : text stream
    wanted : names of columns
        The sheet that has most of them is taken; of equals the one with most rows, or the first.

    Notes
    -----
    Cells become the text that Python has for their values: ``0.25`` for 25 % of Excel, ``7`` for
    7.0, ``2026-03-01`` for a date. The first row that is not empty holds the columns' names; empty
    rows, and empty columns without a name, are left out. The sheet is held in memory.
    """
    book = _open(path)
    sheets = {name: _rows(book, name) for name in book.sheet_names}
    found = {name: rows for name, rows in sheets.items() if rows}
    if not found:
        raise InputError(f"{path.name} is empty. It must hold a row of names and rows of data.")
    asked = {name.strip() for name in wanted}

    def fits(name: str) -> tuple[int, int]:
        return len(asked.intersection(map(str.strip, found[name][0]))), len(found[name])

    chosen = max(found, key=fits)  # the first of equals
    csv.writer(to).writerows(_without_empty_columns(found[chosen]))
    others = len(found) - 1
    return f"{path.name}: the sheet {chosen!r} was read, of {others + 1}" if others else ""


def _open(path: Path) -> Any:
    calamine = import_extra("python_calamine", extra="cli")
    try:
        return calamine.CalamineWorkbook.from_path(path)
    except calamine.PasswordError as wrong:
        raise InputError(
            f"{path.name} is locked by a password. Save it without one, or as CSV UTF-8."
        ) from wrong
    except (calamine.CalamineError, calamine.ZipError, calamine.XmlError) as wrong:
        raise InputError(
            f"{path.name} cannot be read as an Excel or OpenDocument file: {wrong}. Is it whole, "
            "and of the kind that its ending says?"
        ) from wrong


def _rows(book: Any, name: str) -> list[list[str]]:
    """The rows of a sheet that are not empty, as text."""
    cells = book.get_sheet_by_name(name).to_python()
    rows = ([_text(cell) for cell in row] for row in cells)
    return [row for row in rows if any(text.strip() for text in row)]


def _text(cell: Any) -> str:
    """A cell's value as text.

    >>> _text(7.0), _text(0.25), _text(True), _text("007"), _text(date(2026, 3, 1))
    ('7', '0.25', 'true', '007', '2026-03-01')
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


def _without_empty_columns(rows: list[list[str]]) -> Iterator[list[str]]:
    kept = [i for i in range(len(rows[0])) if any(row[i].strip() for row in rows)]
    return ([row[i] for i in kept] for row in rows)
