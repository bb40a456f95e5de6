"""How results are printed: as text, in colour, as HTML, as frames and as JSON.

A result gives its `ResultTable`; `PrintsAsTable` turns that into everything else.
"""

from __future__ import annotations

import html
import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple

from calibrant.errors import ParameterError, import_extra

Side = Literal["left", "right"]

#: the packages that a frame can be made with, the preferred one first
FRAMES = ("pandas", "polars", "pyarrow")
#: how a verdict is shown in a coloured column
COLOURS = {"better": "green", "worse": "red"}


class TableColumn(NamedTuple):
    """A column of a printed table.

    ``may_break``: a narrow terminal may show its cells in two lines. ``coloured``: its words
    "better" and "worse" are green and red. ``widest``: a terminal shows no more letters of a cell.
    ``expendable``: a terminal that is too narrow leaves the column out, the smallest number first.
    """

    title: str
    side: Side = "right"
    may_break: bool = True
    coloured: bool = False
    widest: int | None = None
    expendable: int | None = None


class TableRow(NamedTuple):
    """A row of a printed table: its cells, its tooltip in a notebook, and whether it is bold."""

    cells: tuple[str, ...]
    tooltip: str = ""
    bold: bool = False


class ResultTable(NamedTuple):
    """A table that is ready to be printed, and the lines below it."""

    columns: Sequence[TableColumn]
    rows: Sequence[TableRow]
    below: Sequence[str] = ()

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The titles, and the cells of each row."""
        return [tuple(column.title for column in self.columns), *(row.cells for row in self.rows)]

    def fitted_to(self, width: int) -> ResultTable:
        """The table without expendable columns that do not fit into a terminal of this width."""
        needs = [max(map(len, cells)) + 3 for cells in zip(*self.lines, strict=True)]
        for place, column in enumerate(self.columns):
            if column.widest is not None:
                needs[place] = min(needs[place], column.widest + 3)
        kept = list(range(len(needs)))
        order = {c.expendable: i for i, c in enumerate(self.columns) if c.expendable is not None}
        for number in sorted(order):
            if sum(needs[place] for place in kept) + 1 <= width:
                break
            kept.remove(order[number])
        rows = [row._replace(cells=tuple(row.cells[place] for place in kept)) for row in self.rows]
        return ResultTable([self.columns[place] for place in kept], rows, self.below)


class PrintsAsTable:
    """Base of results that print as a table: as text, in a terminal and in a notebook."""

    def _table(self) -> ResultTable:
        """The table that shows this result."""
        raise NotImplementedError

    def __str__(self) -> str:
        table = self._table()
        lines = aligned(table.lines, [column.side for column in table.columns])
        return "\n".join([*lines, *table.below])

    __repr__ = __str__

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """For terminals. Where columns may be missing, the lines below take the whole width."""
        table = self._table()
        text = import_extra("rich.text", extra="cli").Text
        below = "\n".join(table.below)
        if all(column.expendable is None for column in table.columns):
            yield rich_table(table, caption=text(below, justify="left", style="not italic"))
        else:
            yield rich_table(table.fitted_to(options.max_width))
            yield text(below)

    def _repr_html_(self) -> str:
        """A small table that needs no style sheet, for notebooks."""
        table = self._table()
        sides = [column.side for column in table.columns]
        head = _html_cells("th", table.lines[0], sides)
        body = ""
        for row in table.rows:
            tooltip = f' title="{html.escape(row.tooltip)}"' if row.tooltip else ""
            bold = ' style="font-weight:bold"' if row.bold else ""
            body += f"<tr{tooltip}{bold}>{_html_cells('td', row.cells, sides)}</tr>"
        below = "<br>".join(html.escape(line) for line in table.below)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{below}</div>"
        )


def aligned(
    lines: Sequence[Sequence[str]], sides: Sequence[Side], *, rule: bool = True
) -> list[str]:
    """Lines of cells as lines of text, the first one underlined if a ``rule`` is wanted.

    >>> print("\\n".join(aligned([("name", "value"), ("one", "10")], ("left", "right"))))
    name  value
    ────  ─────
    one      10
    """
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    shown = []
    for line in lines:
        cells = zip(line, sides, widths, strict=True)
        parts = (cell.ljust(w) if side == "left" else cell.rjust(w) for cell, side, w in cells)
        shown.append("  ".join(parts).rstrip())
    if rule:
        shown.insert(1, "  ".join("─" * width for width in widths))
    return shown


def rich_table(table: ResultTable, **style: Any) -> Any:
    """The table as rich draws it; ``style`` goes to rich's Table."""
    text = import_extra("rich.text", extra="cli").Text
    made = import_extra("rich.table", extra="cli").Table(**style)
    for title, side, may_break, _, widest, _ in table.columns:
        made.add_column(title, justify=side, no_wrap=not may_break, max_width=widest)
    for row in table.rows:
        cells = (
            text(cell, style=COLOURS.get(cell, "") if column.coloured else "")
            for cell, column in zip(row.cells, table.columns, strict=True)
        )
        made.add_row(*cells, style="bold" if row.bold else "")
    return made


def _html_cells(tag: str, cells: Sequence[str], sides: Sequence[Side]) -> str:
    """The cells of a row as HTML."""
    return "".join(
        f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )


# --- Numbers, frames and JSON ---------------------------------------------------------------------


class Readable:
    """Base of frozen results: their numbers print with four digits."""

    def __repr__(self) -> str:
        names = [field.name for field in fields(self) if field.repr]  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={_short_repr(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({shown})"


def _short_repr(value: Any) -> str:
    """A value for a repr: floats with four digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_short_repr, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def shown_value(value: float | None) -> str:
    """A number for a table: four decimals, more for small values; a dash for None.

    >>> shown_value(0.12345), shown_value(-1.2345e-4), shown_value(float("inf"))
    ('0.1235', '−1.23e-04', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = f"{abs(value):.4f}" if value == 0 or abs(value) >= 0.001 else f"{abs(value):.2e}"
    return f"−{size}" if value < 0 else size


def short_value(value: float, digits: int = 3) -> str:
    """A number for a sentence: so many decimals, more for small values.

    >>> short_value(0.12345), short_value(-0.0012345), short_value(float("-inf"))
    ('0.123', '−0.0012', '−∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
    return text.replace("-", "−")


def shown_loss(value: float) -> str:
    """A loss, or a gain in it, for a sentence: four decimals.

    >>> shown_loss(0.12345), shown_loss(-0.0012345)
    ('0.1235', '−0.0012')
    """
    return short_value(value, 4)


def shown_p(p: float | None) -> str:
    """A p-value in two digits, and a dash where there is none.

    >>> shown_p(0.0312), shown_p(1e-40), shown_p(None)
    ('0.031', '< 1e-16', '–')
    """
    if p is None:
        return "–"
    return "< 1e-16" if p < 1e-16 else f"{p:.2g}"


def sure_p(p: float) -> str:
    """A p-value as it stands in a sentence.

    >>> sure_p(0.0312), sure_p(1e-40)
    ('p = 0.031', 'p < 1e-16')
    """
    shown = shown_p(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def shown_percent(share: float, digits: int = 3) -> str:
    """A share in percent with so many significant digits.

    >>> shown_percent(0.2384), shown_percent(0.9971, 2), shown_percent(-0.5), shown_percent(1e-7)
    ('23.8 %', '100 %', '−50 %', '1e-05 %')
    """
    value = 100.0 * share
    text = f"{value:.{digits}g}"
    if "e+" in text:
        text = f"{value:,.0f}"
    return f"{text.replace('-', '−') if value < 0 and 'e' not in text else text} %"


def format_count(value: float) -> str:
    """A number of rows or a weight, with commas.

    >>> format_count(12345.0), format_count(0.25)
    ('12,345', '0.25')
    """
    return f"{value:,.10g}"


def format_fact(value: Any) -> str:
    """A fact as text: numbers with commas, the items of lists and mappings in a row.

    >>> format_fact([12345, "a.csv"]), format_fact({"no": 1200, "yes": 300})
    ('12,345, a.csv', 'no 1,200, yes 300')
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_fact, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_fact(item)}" for key, item in value.items())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return format_count(value)
    return str(value)


def rows_in_words(weight: float) -> str:
    """A phrase with the number of rows; with their weight if that is not a whole number.

    >>> rows_in_words(2000.0), rows_in_words(10.5)
    ('2,000 rows', 'rows of weight 10.5')
    """
    if float(weight).is_integer():
        return f"{weight:,.0f} row{'s' * (weight != 1)}"
    return f"rows of weight {weight:.10g}"


def json_ready(value: Any) -> Any:
    """The value as JSON can hold it: infinity as "inf", arrays as lists, results as objects.

    >>> json_ready({"a": (1.0, float("inf"))})
    {'a': [1.0, 'inf']}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return json_ready(value.tolist())
    if is_dataclass(value):
        return fields_as_dict(value)
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def fields_as_dict(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as a dict that JSON can hold."""
    return {field.name: json_ready(getattr(value, field.name)) for field in fields(value)}


class PlainFields:
    """A dataclass whose ``to_dict`` gives its fields as JSON can hold them."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them (infinity as "inf")."""
        return fields_as_dict(self)


def frame_of(columns: Mapping[str, list[Any]], backend: str | None = None) -> Any:
    """The columns as a frame of ``backend``, by default the first installed of pandas, polars and
    Arrow."""
    import narwhals as nw

    if backend is not None and backend not in FRAMES:
        words = " or ".join(map(repr, FRAMES))
        raise ParameterError(f"backend must be {words}, but {backend!r} came.")
    if backend is None:
        found = (package for package in FRAMES if importlib.util.find_spec(package))
        backend = next(found, FRAMES[-1])
    named: Any = import_extra(backend, extra="cli").__name__
    return nw.from_dict(dict(columns), backend=named).to_native()
