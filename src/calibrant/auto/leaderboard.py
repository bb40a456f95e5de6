"""How the candidates did, side by side, on rows that they had not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from calibrant.data.provenance import OUT_OF_FOLD
from calibrant.estimators.named_methods import BEFORE
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    frame_of,
    json_ready,
    plain_fields,
    rows_in_words,
    shown_value,
)

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
        The share of pairs in the right order, and what that gained over the scores as they came;
        None with one class. The gain is counted within the folds, and added to the AUC that the
        scores have over all pairs. One rate for all rows has an AUC of ½.
    distinct : int
        How many different probabilities (with several classes: distributions) the scores become.
        If these are fewer than the scores, the map makes ties.
    seconds : float
        The time of a fit to all rows.
    tied : bool
        Whether the best is ahead by at most one standard error of the difference.
    chosen : bool
    certain : bool
        Whether it gave exactly 0 or 1 to rows held out. If such a row is wrong, the log loss is
        infinite, so such a candidate is taken only if there is no other.
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

    @property
    def scores_auc(self) -> float | None:
        """The AUC of the scores as they came."""
        if self.auc is None or self.auc_change is None:
            return None
        return self.auc - self.auc_change


@dataclass(frozen=True, repr=False)
class Leaderboard(PrintsAsTable):
    """All candidates, the one of least log loss first.

    Attributes
    ----------
    rows : tuple of Standing
    folds : int
        How often rows were held out.
    level : float
        The level of the intervals.
    weight : float
        The total weight of the rows that were held out.
    notes : tuple of str
        What a reader should know of the figures.
    left_out : tuple of str
        Methods that were not tried, and why.

    Examples
    --------
    >>> losses, gain = (0.31, 0.01, 0.1, 0.01), (0.02, 0.01, 0.03)
    >>> one = Standing("BLS", *losses, *gain, 0.9, 0.0, 50, 0.2, True, True)
    >>> print(Leaderboard((one,), 5, 0.95, 400.0))
    method  log loss     ±   Brier     ±          gain (95 %)     AUC  change  values      s
    ──────  ────────  ────  ──────  ────  ───────────────────  ──────  ──────  ──────  ─────
    BLS *     0.3100  0.01  0.1000  0.01  0.02 (0.01 to 0.03)  0.9000       0      50  0.200
    * chosen; judged out of fold (400 rows, 5 folds); gain: in log loss over uncalibrated; ±: \
standard error
    """

    rows: tuple[Standing, ...]
    folds: int
    level: float
    weight: float
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

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
        """Plain values, ready for JSON; infinity becomes "inf". Seconds are left out on demand."""
        found = plain_fields(self)
        for row in () if times else found["rows"]:
            del row["seconds"]
        if not self.left_out:
            del found["left_out"]
        return found

    def measures(self) -> dict[str, Any]:
        """The figures before and after on rows held out, and their change, as `save` keeps them.

        >>> losses, gain = (0.3, 0.01, 0.1, 0.01), (0.0, 0.0, 0.0)
        >>> one = Standing("uncalibrated", *losses, *gain, None, None, 50, 0.2, True, True)
        >>> Leaderboard((one,), 5, 0.95, 400.0).measures()["after"]
        {'log_loss': 0.3, 'brier': 0.1}
        """
        old, new = self[BEFORE], self.chosen
        names, gains = ("difference", "low", "high"), (new.gain, new.gain_high, new.gain_low)
        change = {name: json_ready(0.0 - gain) for name, gain in zip(names, gains, strict=True)}
        return {
            "how": OUT_OF_FOLD,
            "folds": self.folds,
            "weight": self.weight,
            "before": _figures(old, old.scores_auc),
            "after": _figures(new, new.auc),
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
        columns = {name: [getattr(row, name) for row in self.rows] for name in _FIELDS}
        return frame_of(columns, backend)

    # --- printing -------------------------------------------------------------------------------

    def _table(self) -> ResultTable:
        gain = f"gain ({100 * self.level:g} %)"
        titles = ("log loss", "±", "Brier", "±", gain, "AUC", "change", "values", "s")
        numbers = [
            TableColumn(title, may_break=False, expendable=_EXPENDABLE.get(place))
            for place, title in enumerate(titles, start=1)
        ]
        method = TableColumn("method", "left", may_break=False, widest=LONGEST)
        rows = [TableRow(_row(row), bold=row.chosen) for row in self.rows]
        return ResultTable([method, *numbers], rows, self._below())

    def _below(self) -> list[str]:
        how = (
            f"* chosen; judged out of fold ({rows_in_words(self.weight)}, {self.folds} "
            f"fold{'s' * (self.folds != 1)}); gain: in log loss over {BEFORE}; ±: standard error"
        )
        notes = [f"note: {note}" for note in self.notes]
        notes += [f"left out: {one}" for one in self.left_out]
        sure = [row.name for row in self.rows if row.certain]
        if sure and not any(row.certain and row.chosen for row in self.rows):
            give, was = ("gives", "was") if len(sure) == 1 else ("give", "were")
            notes.append(f"note: {', '.join(sure)} {give} exact 0 or 1, and so {was} not chosen")
        return [how, *notes]


_FIELDS = tuple(Standing.__dataclass_fields__)
#: columns that a narrow terminal leaves out, in this order: the standard errors (the gain has an
#: interval anyway), seconds, the number of values, AUC, Brier score
_EXPENDABLE = {place: order for order, place in enumerate((4, 2, 9, 8, 6, 3))}


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
    """A number to so many significant digits, with a true minus sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 5e-7:
        return "0"
    text = f"{value:.{digits}g}"
    return (f"{value:.6f}".rstrip("0") if "e" in text else text).replace("-", "−")


def _short(value: float) -> str:
    return "–" if not math.isfinite(value) else f"{value:.2g}"


def _figures(row: Standing, auc: float | None) -> dict[str, Any]:
    values = {"log_loss": row.log_loss, "brier": row.brier, "auc": auc}
    return {name: json_ready(value) for name, value in values.items() if value is not None}
