"""What `evaluate` returns: a value that prints as a table."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from calibrant.data.frozen import Frozen
from calibrant.errors import import_extra

__all__ = ["MEASURES", "Evaluation", "Measure"]


class Measure(NamedTuple):
    """How a measure is called, which way is better, and what it tells."""

    label: str
    better: str
    meaning: str


#: every measure of an evaluation, in the order of the table
MEASURES = {
    "log_loss": Measure("log loss", "smaller", "mean surprise, in nats"),
    "brier": Measure("Brier score", "smaller", "mean squared error, mean (y − p)²"),
    "ece": Measure("ECE", "smaller", "mean |prediction − frequency| over bins of equal width"),
    "mce": Measure("MCE", "smaller", "the largest of those distances"),
    "rmse": Measure("RMSE", "smaller", "root of the Brier score"),
    "auc": Measure("AUC", "larger", "chance that a positive ranks above a negative"),
    "accuracy": Measure("accuracy", "larger", "share of right decisions at p ≥ ½"),
    "calbin": Measure("CalBin", "smaller", "mean |p − frequency| over sliding windows"),
    "calibration_loss": Measure(
        "calibration loss", "smaller", "mean squared distance from the frequency on the ROC hull"
    ),
    "miscalibration": Measure(
        "miscalibration", "smaller", "part of the Brier score that an increasing map could remove"
    ),
    "discrimination": Measure(
        "discrimination", "larger", "Brier score gained over the base rate if well calibrated"
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Frozen):
    """The measures of a set of probabilities, after calibration and perhaps before it.

    Attributes
    ----------
    after : dict of str to float
        Value of each measure, by name. A measure that the data do not allow is left out, and a
        note says why.
    before : dict of str to float, or None
        The same for the raw scores, if they were given.
    weight, positive_weight : float
        Total weight (the number of rows, without weights), and that of the positives.
    distinct, distinct_before : int
        Different predictions, and different raw scores (None if they were not given).
    notes : tuple of str
        What deserves a look.

    Notes
    -----
    Smaller is better for ``log_loss``, ``brier``, ``ece``, ``mce``, ``rmse``, ``calbin``,
    ``calibration_loss`` and ``miscalibration``; larger is better for ``auc``, ``accuracy`` and
    ``discrimination``.
    """

    after: dict[str, float]
    before: dict[str, float] | None
    weight: float
    positive_weight: float
    distinct: int
    distinct_before: int | None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite value is the string "inf"."""
        return {
            "after": _plain(self.after),
            "before": None if self.before is None else _plain(self.before),
            "weight": self.weight,
            "positive_weight": self.positive_weight,
            "distinct": self.distinct,
            "distinct_before": self.distinct_before,
            "notes": list(self.notes),
        }

    def _head(self) -> tuple[str, ...]:
        if self.before is None:
            return ("measure", "good is", "value")
        return ("measure", "good is", "before", "after", "change")

    def _rows(self) -> dict[str, tuple[str, ...]]:
        """The cells of the table by measure: label, which way is good, values, the verdict."""
        rows: dict[str, tuple[str, ...]] = {}
        for name, measure in MEASURES.items():
            if name not in self.after:
                continue
            value, cells = self.after[name], (measure.label, measure.better)
            if self.before is None:
                rows[name] = (*cells, _shown(value))
            else:
                old = self.before[name]
                verdict = _verdict(old, value, measure.better)
                rows[name] = (*cells, _shown(old), _shown(value), verdict)
        return rows

    def _below(self) -> list[str]:
        """The lines under the table."""
        distinct = f"{self.distinct} distinct prediction{'s' if self.distinct != 1 else ''}"
        if self.distinct_before is not None:
            distinct += f", {self.distinct_before} before"
        weights = f"weight {self.weight:.10g}, of it {self.positive_weight:.10g} positive"
        return [f"{weights}; {distinct}", *(f"note: {note}" for note in self.notes)]

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
            f'<tr title="{html.escape(MEASURES[name].meaning)}">'
            f"{''.join(_cell('td', c, cell) for c, cell in enumerate(row))}</tr>"
            for name, row in self._rows().items()
        )
        below = "<br>".join(html.escape(line) for line in self._below())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{below}</div>"
        )


_COLOURS = {"better": "green", "worse": "red"}


def _plain(values: dict[str, float]) -> dict[str, float | str]:
    return {name: "inf" if math.isinf(value) else value for name, value in values.items()}


def _shown(value: float) -> str:
    if not math.isfinite(value):
        return "∞"
    return f"{value:.4f}" if value == 0 or value >= 0.001 else f"{value:.2e}"


def _verdict(old: float, new: float, better: str) -> str:
    if math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12) or _shown(old) == _shown(new):
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
