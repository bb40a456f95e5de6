"""What prints as a table of measures: plain, in colour, and in a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from calibrant.errors import import_extra

__all__ = ["Measure", "Printed", "plain_values", "shown_value"]


class Measure(NamedTuple):
    """How a measure is called, which way is better, and what it tells."""

    label: str
    better: str
    meaning: str


class Printed:
    """What prints as a table: measures before and after, and lines below."""

    after: dict[str, float]
    before: dict[str, float] | None

    @property
    def _measures(self) -> Mapping[str, Measure]:
        """The measures by name, in the order of the table."""
        raise NotImplementedError

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    def _head(self) -> tuple[str, ...]:
        if self.before is None:
            return ("measure", "good is", "value")
        return ("measure", "good is", "before", "after", "change")

    def _rows(self) -> dict[str, tuple[str, ...]]:
        """The cells of the table by measure: label, which way is good, values, the verdict."""
        rows: dict[str, tuple[str, ...]] = {}
        for name, measure in self._measures.items():
            if name not in self.after:
                continue
            value, cells = self.after[name], (measure.label, measure.better)
            if self.before is None:
                rows[name] = (*cells, shown_value(value))
            else:
                old = self.before[name]
                verdict = _verdict(old, value, measure.better)
                rows[name] = (*cells, shown_value(old), shown_value(value), verdict)
        return rows

    def __str__(self) -> str:
        table = [self._head(), *self._rows().values()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [_line(row, widths) for row in table]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([*lines, *self._below()])

    __repr__ = __str__

    def __rich__(self) -> Any:
        """A rich table, for terminals."""
        text = import_extra("rich.text", extra="cli").Text
        table = import_extra("rich.table", extra="cli").Table(
            caption=text("\n".join(self._below()), justify="left", style="not italic")
        )
        for column, title in enumerate(self._head()):
            table.add_column(title, justify=_side(column), no_wrap=True)
        for row in self._rows().values():
            table.add_row(*(text(cell, style=_COLOURS.get(cell, "")) for cell in row))
        return table

    def _repr_html_(self) -> str:
        """A small table that needs no style sheet, for notebooks."""
        head = "".join(_cell("th", c, title) for c, title in enumerate(self._head()))
        body = "".join(
            f'<tr title="{html.escape(self._measures[name].meaning)}">'
            f"{''.join(_cell('td', c, cell) for c, cell in enumerate(row))}</tr>"
            for name, row in self._rows().items()
        )
        below = "<br>".join(html.escape(line) for line in self._below())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{below}</div>"
        )


_COLOURS = {"better": "green", "worse": "red"}


def plain_values(values: dict[str, float]) -> dict[str, float | str]:
    """Values for JSON, which has no infinity."""
    return {name: "inf" if math.isinf(value) else value for name, value in values.items()}


def shown_value(value: float) -> str:
    """Four digits, and more for small values."""
    if not math.isfinite(value):
        return "∞"
    return f"{value:.4f}" if value == 0 or value >= 0.001 else f"{value:.2e}"


def _verdict(old: float, new: float, better: str) -> str:
    if math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12) or shown_value(old) == shown_value(new):
        return "same"
    return "better" if (new < old) == (better == "smaller") else "worse"


def _side(column: int) -> Literal["left", "right"]:
    """Words to the left, numbers to the right."""
    return "right" if column in (2, 3) else "left"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = zip(range(len(row)), row, widths, strict=True)
    aligned = (c.rjust(w) if _side(i) == "right" else c.ljust(w) for i, c, w in cells)
    return "  ".join(aligned).rstrip()


def _cell(tag: str, column: int, content: str) -> str:
    return f'<{tag} style="text-align:{_side(column)}">{html.escape(content)}</{tag}>'
