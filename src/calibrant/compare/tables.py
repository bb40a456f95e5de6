"""Results as text, as HTML, as plain values and as frames."""

from __future__ import annotations

import html
import importlib.util
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from calibrant.errors import ParameterError, import_extra

__all__ = ["Result", "Tabular", "percent", "shown_number", "shown_p"]

FRAMES = ("pandas", "polars", "pyarrow")


class Result:
    """Base of frozen results: they print with four digits and turn into plain values."""

    def __repr__(self) -> str:
        parts = (f"{f.name}={_short(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (which has no infinity: "inf")."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


class Tabular(Result):
    """A result that prints as a table."""

    def _head(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _rows(self) -> list[tuple[Any, ...]]:
        """The values of the table; the first is a name."""
        raise NotImplementedError

    def _cells(self) -> list[tuple[str, ...]]:
        """The same as words."""
        raise NotImplementedError

    def _below(self) -> list[str]:
        raise NotImplementedError

    def to_frame(self, backend: str | None = None) -> Any:
        """The table as a frame: pandas, polars or Arrow, whichever is there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        """
        import narwhals as nw

        columns = zip(*self._rows(), strict=True)
        named = dict(zip(self._head(), map(list, columns), strict=True))
        return nw.from_dict(named, backend=_backend(backend)).to_native()

    def __str__(self) -> str:
        table = [self._head(), *self._cells()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = ["  ".join(map(_set, row, widths, range(len(row)))).rstrip() for row in table]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([*lines, *self._below()])

    __repr__ = __str__

    def __rich__(self) -> Any:
        """A rich table, for terminals."""
        text = import_extra("rich.text", extra="cli").Text
        below = text("\n".join(self._below()), justify="left", style="not italic")
        table = import_extra("rich.table", extra="cli").Table(caption=below)
        for column, title in enumerate(self._head()):
            table.add_column(title, justify="right" if column else "left")
        for row in self._cells():
            table.add_row(*map(text, row))
        return table

    def _repr_html_(self) -> str:
        """A small table that needs no style sheet, for notebooks."""
        head = "".join(_cell("th", i, title) for i, title in enumerate(self._head()))
        body = "".join(
            f"<tr>{''.join(_cell('td', i, cell) for i, cell in enumerate(row))}</tr>"
            for row in self._cells()
        )
        below = "<br>".join(html.escape(line) for line in self._below())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{below}</div>"
        )


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


def _backend(name: str | None) -> Any:
    if name is not None and name not in FRAMES:
        words = " or ".join(map(repr, FRAMES))
        raise ParameterError(f"backend must be {words}, but {name!r} came.")
    if name is not None:
        return import_extra(name, extra="cli").__name__
    found = [package for package in FRAMES if importlib.util.find_spec(package)]
    return found[0] if found else import_extra("pyarrow", extra="cli").__name__


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_short, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) or not isinstance(value, Sequence) or isinstance(value, str):
        return value
    return [_plain(part) for part in value]


def _set(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def _cell(tag: str, column: int, content: str) -> str:
    side = "right" if column else "left"
    return f'<{tag} style="text-align:{side}">{html.escape(content)}</{tag}>'
