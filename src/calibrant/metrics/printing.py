"""What prints as a table of measures: plain, in colour, and in a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from calibrant.errors import import_extra

__all__ = ["Measure", "Printed", "plain_changes", "plain_spans", "plain_values", "shown_value"]

Spans = dict[str, tuple[float, float]]
Changes = dict[str, tuple[float, float | None, float | None]]


class Measure(NamedTuple):
    """How a measure is called, which way is better, and what it tells."""

    label: str
    better: str
    meaning: str


class Printed:
    """What prints as a table: measures before and after, their intervals, and lines below."""

    after: dict[str, float]
    before: dict[str, float] | None
    intervals: Spans | None
    change: Changes | None
    level: float | None

    @property
    def _measures(self) -> Mapping[str, Measure]:
        """The measures by name, in the order of the table."""
        raise NotImplementedError

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    @property
    def _paired(self) -> bool:
        """Whether any change has an interval."""
        return any(low is not None for _, low, _ in (self.change or {}).values())

    def _head(self) -> tuple[str, ...]:
        title = () if self.intervals is None else (f"{100 * (self.level or 0):g} % interval",)
        if self.before is None:
            return ("measure", "good is", "value", *title)
        by = ("by",) if self._paired else ()
        return ("measure", "good is", "before", "after", *title, "change", *by)

    def _rows(self) -> dict[str, tuple[str, ...]]:
        """The cells of the table by measure: label, which way is good, values, the verdict."""
        return {
            name: (measure.label, measure.better, *self._cells(name, measure.better))
            for name, measure in self._measures.items()
            if name in self.after
        }

    def _cells(self, name: str, better: str) -> list[str]:
        value = self.after[name]
        cells = [shown_value(value)]
        if self.intervals is not None:
            cells.append(_shown_span(self.intervals.get(name)))
        if self.before is None:
            return cells
        old = self.before[name]
        _, low, high = (self.change or {}).get(name, (0.0, None, None))
        span = None if low is None or high is None else (low, high)
        cells = [shown_value(old), *cells, _verdict(old, value, better, span)]
        return [*cells, _shown_span(span)] if self._paired else cells

    def __str__(self) -> str:
        table = [self._head(), *self._rows().values()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [_line(row, widths, self._head()) for row in table]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([*lines, *self._below()])

    __repr__ = __str__

    def __rich__(self) -> Any:
        """A rich table, for terminals."""
        text = import_extra("rich.text", extra="cli").Text
        table = import_extra("rich.table", extra="cli").Table(
            caption=text("\n".join(self._below()), justify="left", style="not italic")
        )
        for title in self._head():
            table.add_column(title, justify=_side(title), no_wrap=not _may_break(title))
        for row in self._rows().values():
            table.add_row(*(text(cell, style=_COLOURS.get(cell, "")) for cell in row))
        return table

    def _repr_html_(self) -> str:
        """A small table that needs no style sheet, for notebooks."""
        titles = self._head()
        head = "".join(_cell("th", title, title) for title in titles)
        body = "".join(
            f'<tr title="{html.escape(self._measures[name].meaning)}">'
            f"{''.join(_cell('td', t, cell) for t, cell in zip(titles, row, strict=True))}</tr>"
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


def plain_spans(spans: Spans | None) -> dict[str, list[float]] | None:
    """Intervals for JSON; they are finite."""
    return None if spans is None else {name: list(span) for name, span in spans.items()}


def plain_changes(changes: Changes | None) -> dict[str, dict[str, float | None]] | None:
    """Changes for JSON; an end that is not known is null."""
    if changes is None:
        return None
    words = ("difference", "low", "high")
    return {name: dict(zip(words, parts, strict=True)) for name, parts in changes.items()}


def shown_value(value: float) -> str:
    """Four digits, and more for small values."""
    if not math.isfinite(value):
        return "∞"
    size = f"{abs(value):.4f}" if value == 0 or abs(value) >= 0.001 else f"{abs(value):.2e}"
    return f"−{size}" if value < 0 else size


def _shown_span(span: tuple[float, float] | None) -> str:
    return "–" if span is None else f"{shown_value(span[0])} to {shown_value(span[1])}"


def _verdict(old: float, new: float, better: str, span: tuple[float, float] | None) -> str:
    if math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12) or shown_value(old) == shown_value(new):
        return "same"
    if span is not None and span[0] <= 0.0 <= span[1]:
        return "unclear"
    return "better" if (new < old) == (better == "smaller") else "worse"


def _side(title: str) -> Literal["left", "right"]:
    """Words to the left, numbers to the right."""
    return "left" if title in ("measure", "good is", "change") else "right"


def _may_break(title: str) -> bool:
    """Whether a narrow terminal may show the column's cells in two lines."""
    return title == "by" or "interval" in title


def _line(row: tuple[str, ...], widths: list[int], titles: tuple[str, ...]) -> str:
    cells = zip(titles, row, widths, strict=True)
    aligned = (c.rjust(w) if _side(t) == "right" else c.ljust(w) for t, c, w in cells)
    return "  ".join(aligned).rstrip()


def _cell(tag: str, title: str, content: str) -> str:
    return f'<{tag} style="text-align:{_side(title)}">{html.escape(content)}</{tag}>'
