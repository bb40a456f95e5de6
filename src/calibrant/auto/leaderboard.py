"""How the candidates stand, side by side, on rows that they had not seen."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.data.provenance import OUT_OF_FOLD
from calibrant.errors import import_extra
from calibrant.metrics.printing import shown_value

__all__ = ["BEFORE", "Leaderboard", "Standing"]

#: what the scores are called as they came
BEFORE = "identity"
#: the longest name that a terminal shows whole
LONGEST = 30


@dataclass(frozen=True)
class Standing:
    """One candidate, judged out of fold.

    Attributes
    ----------
    name : str
    log_loss, log_loss_se, brier, brier_se : float
        Means over the rows held out, and their standard errors. Smaller is better.
    gain, gain_low, gain_high : float
        Log loss of the scores as they came minus its own, on the same rows, with an interval;
        above 0 is better.
    auc, auc_change : float or None
        The share of pairs in the right order within the folds, and what it gained over the scores
        as they came; None with one class.
    distinct : int
        Different probabilities that the scores become; fewer than there are scores: ties are new.
        Of several classes: different distributions.
    seconds : float
        Time of a fit to all rows.
    tied : bool
        Whether the best is ahead by at most one standard error of the difference.
    chosen : bool
    certain : bool
        Whether it gave exactly 0 or 1 to rows held out. One that is wrong costs an infinite log
        loss, so that such a candidate is not taken while there is another.
    """

    name: str
    log_loss: float
    log_loss_se: float
    brier: float
    brier_se: float
    gain: float
    gain_low: float
    gain_high: float
    auc: float | None
    auc_change: float | None
    distinct: int
    seconds: float
    tied: bool = False
    chosen: bool = False
    certain: bool = False


@dataclass(frozen=True)
class Leaderboard:
    """All candidates, the one of least log loss first.

    Attributes
    ----------
    rows : tuple of Standing
    folds : int
        How often rows were held out.
    level : float
        That of the intervals.
    weight : float
        Total weight of the rows that were held out.
    notes : tuple of str
        What deserves a look.

    Examples
    --------
    >>> losses, gain = (0.31, 0.01, 0.1, 0.01), (0.02, 0.01, 0.03)
    >>> one = Standing("BLS", *losses, *gain, 0.9, 0.0, 50, 0.2, True, True)
    >>> print(Leaderboard((one,), 5, 0.95, 400.0))
    method  log loss     ±   Brier     ±          gain (95 %)     AUC  change  values      s
    ──────  ────────  ────  ──────  ────  ───────────────────  ──────  ──────  ──────  ─────
    BLS *     0.3100  0.01  0.1000  0.01  0.02 (0.01 to 0.03)  0.9000       0      50  0.200
    * chosen; out of fold, 5 folds, weight 400; gain in log loss over identity, ± standard errors
    """

    rows: tuple[Standing, ...]
    folds: int
    level: float
    weight: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Standing:
        """The standing of a candidate by name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def chosen(self) -> Standing:
        """The standing of the candidate that was chosen."""
        return next(row for row in self.rows if row.chosen)

    def to_dict(self, *, times: bool = True) -> dict[str, Any]:
        """Plain values, ready for JSON (which has no infinity: "inf"); perhaps without seconds."""
        names = [name for name in _FIELDS if times or name != "seconds"]
        rows = [{name: _plain(getattr(row, name)) for name in names} for row in self.rows]
        return {
            "rows": rows,
            "folds": self.folds,
            "level": self.level,
            "weight": self.weight,
            "notes": list(self.notes),
        }

    def measures(self) -> dict[str, Any]:
        """What the choice did on rows held out, as `save` keeps it: before, after and the change.

        >>> losses, gain = (0.3, 0.01, 0.1, 0.01), (0.0, 0.0, 0.0)
        >>> one = Standing("identity", *losses, *gain, None, None, 50, 0.2, True, True)
        >>> Leaderboard((one,), 5, 0.95, 400.0).measures()["after"]
        {'log_loss': 0.3, 'brier': 0.1}
        """
        old, new = self[BEFORE], self.chosen
        names, gains = ("difference", "low", "high"), (new.gain, new.gain_high, new.gain_low)
        change = {name: _plain(0.0 - gain) for name, gain in zip(names, gains, strict=True)}
        return {
            "how": OUT_OF_FOLD,
            "folds": self.folds,
            "weight": self.weight,
            "before": _figures(old),
            "after": _figures(new),
            "level": self.level,
            "change": {"log_loss": change},
        }

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A frame with a row for each candidate: pandas, polars or Arrow, whichever is there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        """
        import narwhals as nw

        columns = {name: [getattr(row, name) for row in self.rows] for name in _FIELDS}
        return nw.from_dict(columns, backend=_backend(backend)).to_native()

    # --- printing -------------------------------------------------------------------------------

    def _head(self) -> tuple[str, ...]:
        gain = f"gain ({100 * self.level:g} %)"
        return ("method", "log loss", "±", "Brier", "±", gain, "AUC", "change", "values", "s")

    def _cells(self) -> list[tuple[str, ...]]:
        return [_row(row) for row in self.rows]

    def _below(self) -> list[str]:
        how = (
            f"* chosen; out of fold, {self.folds} fold{'s' * (self.folds != 1)}, weight "
            f"{self.weight:.10g}; gain in log loss over {BEFORE}, ± standard errors"
        )
        notes = [f"note: {note}" for note in self.notes]
        sure = [row.name for row in self.rows if row.certain]
        if sure and not any(row.certain and row.chosen for row in self.rows):
            word = "gives" if len(sure) == 1 else "give"
            notes.append(f"note: {', '.join(sure)} {word} exact 0 or 1, and so was not chosen")
        return [how, *notes]

    def __str__(self) -> str:
        table = [self._head(), *self._cells()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(_set(i, c, w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in table
        ]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join([*(line.rstrip() for line in lines), *self._below()])

    __repr__ = __str__

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """A rich table, for terminals; a narrow one has fewer columns."""
        text = import_extra("rich.text", extra="cli").Text
        table = import_extra("rich.table", extra="cli").Table()
        columns = self._fitting(options.max_width)
        head = self._head()
        for column in columns:
            table.add_column(
                head[column],
                justify=_side(column),
                no_wrap=True,
                max_width=None if column else LONGEST,
            )
        for row, cells in zip(self.rows, self._cells(), strict=True):
            table.add_row(*(text(cells[c]) for c in columns), style="bold" if row.chosen else "")
        yield table
        yield text("\n".join(self._below()))

    def _fitting(self, width: int) -> list[int]:
        """The columns that there is room for; the least telling go first."""
        table = [self._head(), *self._cells()]
        needs = [max(len(row[i]) for row in table) + 3 for i in range(len(table[0]))]
        needs[0] = min(needs[0], LONGEST + 3)
        kept = list(range(len(needs)))
        for column in _DISPENSABLE:
            if sum(needs[c] for c in kept) + 1 <= width:
                break
            kept.remove(column)
        return kept

    def _repr_html_(self) -> str:
        """A small table that needs no style sheet, for notebooks."""
        head = "".join(_cell("th", i, title) for i, title in enumerate(self._head()))
        rows = zip(self.rows, self._cells(), strict=True)
        body = "".join(
            f"<tr{_BOLD if row.chosen else ''}>"
            f"{''.join(_cell('td', i, cell) for i, cell in enumerate(cells))}</tr>"
            for row, cells in rows
        )
        below = "<br>".join(html.escape(line) for line in self._below())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{below}</div>"
        )


_FIELDS = tuple(Standing.__dataclass_fields__)
#: standard errors (the gain has an interval), seconds, number of values, AUC, Brier score
_DISPENSABLE = (4, 2, 9, 8, 6, 3)
_BOLD = ' style="font-weight:bold"'


def _backend(name: str | None) -> Any:
    import importlib.util

    known = ("pandas", "polars", "pyarrow")
    if name is not None:
        return name
    found = [package for package in known if importlib.util.find_spec(package)]
    return found[0] if found else import_extra("pyarrow", extra="cli").__name__


def _row(row: Standing) -> tuple[str, ...]:
    if row.name == BEFORE:
        gain = "–"
    elif not math.isfinite(row.gain):
        gain = "∞" if row.gain > 0 else "−∞"
    else:
        low, high = _signed(row.gain_low, 2), _signed(row.gain_high, 2)
        gain = f"{_signed(row.gain, 3)} ({low} to {high})"
    return (
        f"{row.name} *" if row.chosen else row.name,
        shown_value(row.log_loss),
        _short(row.log_loss_se),
        shown_value(row.brier),
        _short(row.brier_se),
        gain,
        "–" if row.auc is None else f"{row.auc:.4f}",
        "–" if row.auc_change is None else _signed(row.auc_change, 2),
        f"{row.distinct:,}",
        f"{row.seconds:.3f}" if row.seconds < 10 else f"{row.seconds:.0f}",
    )


def _signed(value: float, digits: int) -> str:
    """So many significant digits, and a true minus."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 5e-7:
        return "0"
    text = f"{value:.{digits}g}"
    return (f"{value:.6f}".rstrip("0") if "e" in text else text).replace("-", "−")


def _short(value: float) -> str:
    return "–" if not math.isfinite(value) else f"{value:.2g}"


def _figures(row: Standing) -> dict[str, Any]:
    names = ("log_loss", "brier", "auc")
    values = {name: getattr(row, name) for name in names}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value


def _side(column: int) -> Literal["left", "right"]:
    return "left" if column == 0 else "right"


def _set(column: int, cell: str, width: int) -> str:
    return cell.ljust(width) if _side(column) == "left" else cell.rjust(width)


def _cell(tag: str, column: int, content: str) -> str:
    return f'<{tag} style="text-align:{_side(column)}">{html.escape(content)}</{tag}>'
