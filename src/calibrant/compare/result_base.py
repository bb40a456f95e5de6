"""What the results of comparisons share: how they print, and how they become values and frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    Readable,
    ResultTable,
    TableColumn,
    TableRow,
    first_left,
    frame_of,
)


class Result(PlainFields, Readable):
    """Base of frozen results: they print with four digits and turn into plain values."""


class Tabular(PrintsAsTable, Result):
    """A result that prints as a table."""

    def _head(self) -> tuple[str, ...]:
        """The titles of the columns; `SHOWN` says how the values below each are printed."""
        raise NotImplementedError

    def _rows(self) -> list[tuple[Any, ...]]:
        """The values of the table; the first of each row is a name."""
        raise NotImplementedError

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    def to_frame(self, backend: str | None = None) -> Any:
        """The table as a frame: pandas, polars or Arrow, whichever is there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        """
        columns = map(list, zip(*self._rows(), strict=True))
        return frame_of(dict(zip(self._head(), columns, strict=True)), backend)

    def _table(self) -> ResultTable:
        head = self._head()
        columns = list(map(TableColumn, head, first_left(len(head))))
        shown = [SHOWN.get(title, str) for title in head]
        rows = [
            TableRow(tuple(show(value) for show, value in zip(shown, row, strict=True)))
            for row in self._rows()
        ]
        return ResultTable(columns, rows, self._below())


def shown_number(value: float | None, digits: int = 3) -> str:
    """So many decimals, a true minus, and a dash for what is not there."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    small = 0.0 < abs(value) < 0.5 * 10.0**-digits
    text = f"{value:.{digits}g}" if small else f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) != 0.0 else text.lstrip("-")


def shown_p(value: float | None) -> str:
    """Three decimals, and more for small ones."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 or value == 0.0 else f"{value:.1e}"


def percent(level: float) -> str:
    return f"{100 * level:g} %"


#: how the values of a column are printed, by its title; all others as text
SHOWN: dict[str, Callable[[Any], str]] = {
    "mean rank": shown_number,
    "median difference": lambda value: shown_number(value, 4),
    "z": lambda value: shown_number(value, 2),
    "p": shown_p,
    "Holm's p": shown_p,
    "better": lambda name: name or "not shown",
}
