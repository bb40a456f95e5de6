"""The leaderboard of the automatic choice, and the choice in words."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

from calibrant.data.documents import OUT_OF_FOLD
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.held_out import Standing
from calibrant.fitting.registry import BEFORE, describe_method
from calibrant.metrics.measures import SAME_ORDER
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    fields_as_dict,
    frame_of,
    json_ready,
    rows_in_words,
    shown_loss,
    shown_percent,
    shown_value,
)

#: the longest name that a terminal shows whole
LONGEST = 30


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
        fields = fields_as_dict(self)
        for row in () if times else fields["rows"]:
            del row["seconds"]
        if not self.left_out:
            del fields["left_out"]
        return fields

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
            "before": _saved_figures(old, old.scores_auc),
            "after": _saved_figures(new, new.auc),
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
        rows = [TableRow(_cells_of_row(row), bold=row.chosen) for row in self.rows]
        return ResultTable([method, *numbers], rows, self._below())

    def _below(self) -> list[str]:
        how = (
            f"* chosen; judged out of fold ({_held_out(self)}); gain: in log loss over {BEFORE}; "
            "±: standard error"
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


def _cells_of_row(row: Standing) -> tuple[str, ...]:
    if row.name == BEFORE:
        gain = "–"
    elif not math.isfinite(row.gain):
        gain = "∞" if row.gain > 0 else "−∞"
    else:
        low, high = _shown_signed(row.gain_low, 2), _shown_signed(row.gain_high, 2)
        gain = f"{_shown_signed(row.gain, 3)} ({low} to {high})"
    return (
        f"{row.name} *" if row.chosen else row.name,
        shown_value(row.log_loss),
        _shown_error(row.log_loss_se),
        shown_value(row.brier),
        _shown_error(row.brier_se),
        gain,
        "–" if row.auc is None else f"{row.auc:.4f}",
        "–" if row.auc_change is None else _shown_signed(row.auc_change, 2),
        f"{row.distinct:,}",
        f"{row.seconds:.3f}" if row.seconds < 10 else f"{row.seconds:.0f}",
    )


def _shown_signed(value: float, digits: int) -> str:
    """A number to so many significant digits, with a true minus sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 5e-7:
        return "0"
    text = f"{value:.{digits}g}"
    return (f"{value:.6f}".rstrip("0") if "e" in text else text).replace("-", "−")


def _shown_error(value: float) -> str:
    return "–" if not math.isfinite(value) else f"{value:.2g}"


def _saved_figures(row: Standing, auc: float | None) -> dict[str, Any]:
    values = {"log_loss": row.log_loss, "brier": row.brier, "auc": auc}
    return {name: json_ready(value) for name, value in values.items() if value is not None}


def with_verdict(box: str, said: str, board: Leaderboard | None = None) -> str:
    """scikit-learn's box of an estimator with what came of its fit below it, for notebooks."""
    table = "" if board is None else board._repr_html_()
    return f'{box}<p style="max-width:60em">{html.escape(said)}</p>{table}'


# --- The choice in words --------------------------------------------------------------------------


#: what is different where scores are points
POINTS = f"the scores are points, which stand for no probability: {BEFORE} is one rate for all"
#: what is different where labels are probabilities
SOFT = (
    "some labels are probabilities, whose noise is not known: what speaks against the scores is "
    "compared with how much it varies from row to row"
)


def why_refused(board: Leaderboard, scores_are: str = "probabilities") -> str:
    """Why the scores are kept as they are, or, for points, why all rows get one rate."""
    others = [row for row in board.rows if row.name != BEFORE]
    best = next((row for row in others if not row.certain), others[0] if others else None)
    no_map = "No map of these scores is better than one rate for all rows"
    kept = no_map if scores_are == "points" else "The scores are kept as they are"
    if best is None or not math.isfinite(best.log_loss):
        return f"{kept}: no candidate has a finite log loss on rows that it has not seen."
    gained = f"the best candidate, {best.name}, {_gain_in_words(best, board, scores_are)}"
    if best.gain <= 0:
        return f"{kept}: {gained}."
    return f"{kept}: {gained}, which may be noise."


def kept_in_words(scores_are: str) -> str:
    """What rows get if the scores are kept, in words; for points it is one rate.

    >>> kept_in_words("points")
    'All rows get one rate'
    """
    return "All rows get one rate" if scores_are == "points" else "The scores are kept as they are"


def why_too_few(table: ScoreTable, scores_are: str) -> str:
    """Why the scores are kept where a class has a single row."""
    rarer = "positives" if table.total_positive <= table.total_negative else "negatives"
    return (
        f"{kept_in_words(scores_are)}: there are fewer than two {rarer}, so that nothing can "
        "be judged on rows that were not learned from."
    )


def explanation(
    board: Leaderboard,
    refused: str | None,
    scores_are: str,
    share: float = 1.0,
    *,
    useless: bool = False,
) -> str:
    """What was chosen, how much it gains, what it does to the ranking, and what else did well.

    If the scores are ``useless``, only what was fitted all the same. ``share`` is how much it
    counts beside the scores as they came.
    """
    soft = f"{SOFT[:1].upper()}{SOFT[1:]}." if SOFT in board.notes else ""
    before, chosen = board[BEFORE], board.chosen
    if useless:
        losses = f"{shown_loss(before.log_loss)} before, {shown_loss(chosen.log_loss)} after"
        fitted = f"{chosen.name} was fitted (log loss on rows it had not seen: {losses})"
        outcome = kept_in_words(scores_are) if refused is not None else f"All the same, {fitted}"
        return f"{outcome}. {soft}".strip()
    if refused is not None:
        parts = [refused]
    else:
        finite = math.isfinite(chosen.gain) and before.log_loss > 0
        part = f"{shown_percent(chosen.gain / before.log_loss, 2)}: " if finite else ""
        gained = _gain_in_words(chosen, board, scores_are, part)
        name = describe_method(chosen.name)
        parts = [
            f"{name[:1].upper()}{name[1:]} was chosen. On rows it had not seen "
            f"({_held_out(board)}), it {gained}.",
            share_in_words(share, points=scores_are == "points"),
            _why_all_the_same(before, chosen),
        ]
    parts.append(_ranking_in_words(chosen))
    if refused is None:
        parts.append(why_preferred(board))
    parts.append(soft)
    if board.left_out:
        parts.append(f"Left out: {'; '.join(board.left_out)}.")
    return " ".join(part for part in parts if part)


def why_preferred(board: Leaderboard) -> str:
    """Why the candidate of least log loss was not chosen; empty if it was, or if the scores were
    kept."""
    chosen = board.chosen
    best = next(row for row in board.rows if row is chosen or not row.certain)
    if best is chosen or BEFORE in (best.name, chosen.name):
        return ""
    return (
        f"The log loss of {best.name} is smaller still, {shown_loss(best.log_loss)}, but "
        f"{chosen.name} is preferred unless another is ahead by more than two standard errors: of "
        "many candidates, one is often ahead by luck."
    )


def share_in_words(share: float, *, points: bool) -> str:
    """How much of the log-odds are the scores as they came (of points: one rate), where they count
    at all."""
    if share >= 1.0:
        return ""
    kept = "one rate for all rows" if points else "the scores as they are"
    return (
        f"It counts {shown_percent(share, 2)}, and {kept} the rest, since what speaks against "
        f"{'it' if points else 'them'} may be noise in part."
    )


def _why_all_the_same(before: Standing, chosen: Standing) -> str:
    """Why the scores are not kept, where the gain by itself may be noise."""
    if chosen.gain_low > 0.0 or not math.isfinite(before.log_loss) or not before.certain:
        return ""
    return (
        "That may be noise, but the scores hold exact 0 or 1, and a single wrong one would make "
        "the log loss infinite."
    )


def _held_out(board: Leaderboard) -> str:
    return f"{rows_in_words(board.weight)}, {board.folds} fold{'s' * (board.folds != 1)}"


def _gain_in_words(row: Standing, board: Leaderboard, scores_are: str, share: str = "") -> str:
    before = board[BEFORE].log_loss
    if math.isinf(before):
        return (
            f"has a log loss of {row.log_loss:.4f}, where that of the scores as they are is "
            "infinite (a 0 or 1 was wrong)"
        )
    word = "gains" if row.gain >= 0 else "loses"
    low, high = (shown_loss(value) for value in (row.gain_low, row.gain_high))
    loss = "log loss over one rate for all rows" if scores_are == "points" else "log loss"
    return (
        f"{word} {shown_loss(abs(row.gain))} in {loss} ({share}{shown_loss(before)} → "
        f"{shown_loss(row.log_loss)}; {100 * board.level:g} % interval of the gain {low} to {high})"
    )


def _ranking_in_words(row: Standing) -> str:
    if row.auc is None or row.auc_change is None:
        return ""
    old, new = f"{row.auc - row.auc_change:.3f}", f"{row.auc:.3f}"
    if abs(row.auc_change) < SAME_ORDER or old == new:
        return f"The ranking is kept: AUC {new}."
    return f"AUC {'rose' if row.auc_change > 0 else 'fell'} from {old} to {new}."
