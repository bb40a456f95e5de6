"""The choice in words."""

from __future__ import annotations

import math

from calibrant.auto.leaderboard import Leaderboard, Standing
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.held_out_choice import LEVEL
from calibrant.estimators.named_methods import BEFORE
from calibrant.estimators.registry import in_plain_words
from calibrant.metrics.measure import SAME_ORDER
from calibrant.result_tables import rows_in_words, shown_loss, shown_percent, sure_p

#: what is different where scores are points
POINTS = f"the scores are points, which stand for no probability: {BEFORE} is one rate for all"
#: what is different where labels are probabilities
SOFT = (
    "some labels are probabilities, whose noise is not known: no test asks whether the scores are "
    "right, and only the gain on rows held out counts"
)


def refusal(
    board: Leaderboard, scores_are: str = "probabilities", p_value: float | None = None
) -> str:
    """Why the scores are kept as they are; of points: why all rows get one rate.

    ``p_value`` is that of the test that the scores are right, where there was one.
    """
    others = [row for row in board.rows if row.name != BEFORE]
    best = next((row for row in others if not row.certain), others[0] if others else None)
    kept = _NO_GAIN if scores_are == "points" else "The scores are kept as they are"
    if best is None or not math.isfinite(best.log_loss):
        return f"{kept}: no candidate has a finite log loss on rows that it has not seen."
    gained = f"the best candidate, {best.name}, {_gained(best, board, scores_are)}"
    if best.gain <= 0:
        return f"{kept}: {gained}."
    if p_value is None or p_value <= LEVEL:
        return f"{kept}: {gained}, which may be noise."
    return f"{kept}: nothing shows that they are wrong ({sure_p(p_value)}). Out of fold, {gained}."


_NO_GAIN = "No map of these scores is better than one rate for all rows"


def taken_unchanged(scores_are: str) -> str:
    """What is given where no map is taken: the scores, or of points one rate for all rows.

    >>> taken_unchanged("points")
    'All rows get one rate'
    """
    return "All rows get one rate" if scores_are == "points" else "The scores are kept as they are"


def too_few(table: ScoreTable, scores_are: str) -> str:
    """Why the scores are kept where a class has a single row."""
    rarer = "positives" if table.total_positive <= table.total_negative else "negatives"
    return (
        f"{taken_unchanged(scores_are)}: there are fewer than two {rarer}, so that nothing can "
        "be judged on rows that were not learned from."
    )


def explanation(
    board: Leaderboard,
    refused: str | None,
    scores_are: str,
    p_value: float | None,
    *,
    useless: bool = False,
) -> str:
    """What was chosen, how much it gains, what it does to the ranking, and what else did well; of
    ``useless`` scores only what was fitted all the same.

    ``p_value`` is that of the test that the scores are right, where there was one.
    """
    soft = f"{SOFT[:1].upper()}{SOFT[1:]}." if SOFT in board.notes else ""
    if useless:
        return f"{_all_the_same(board, refused, scores_are)} {soft}".strip()
    before, chosen = board[BEFORE], board.chosen
    if refused is not None:
        parts = [refused]
    else:
        gained = _gained(chosen, board, scores_are, _share(chosen, before))
        name = in_plain_words(chosen.name)
        parts = [f"{name[:1].upper()}{name[1:]} was chosen. {_how(board)}, it {gained}."]
        parts.append(_why_all_the_same(before, chosen, p_value))
    parts.append(_order(chosen))
    best = next(row for row in board.rows if row is chosen or not row.certain)
    if best is not chosen and refused is None:
        parts.append(
            f"The log loss of {best.name} was smaller still, {shown_loss(best.log_loss)}, but by "
            "less than two standard errors."
        )
    parts.append(soft)
    if board.left_out:
        parts.append(f"Left out: {'; '.join(board.left_out)}.")
    return " ".join(part for part in parts if part)


def _why_all_the_same(before: Standing, chosen: Standing, p_value: float | None) -> str:
    """Why the scores are not kept, where the gain by itself may be noise."""
    if chosen.gain_low > 0.0 or not math.isfinite(before.log_loss):
        return ""
    if before.certain:
        return (
            "That may be noise, but the scores hold exact 0 or 1, and a single wrong one "
            "would make the log loss infinite."
        )
    if p_value is not None and p_value <= LEVEL:
        return f"That may be noise, but a test says that the scores are wrong ({sure_p(p_value)})."
    return "Noise alone is that far ahead in fewer than 5 % of samples." if p_value else ""


def _how(board: Leaderboard) -> str:
    return (
        f"On rows it had not seen ({rows_in_words(board.weight)}, {board.folds} "
        f"fold{'s' * (board.folds != 1)})"
    )


def _all_the_same(board: Leaderboard, refused: str | None, scores_are: str) -> str:
    """What was taken where nothing is worth taking: no praise, only the figures."""
    before, chosen = board[BEFORE], board.chosen
    if refused is not None:
        return f"{taken_unchanged(scores_are)}."
    losses = f"{shown_loss(before.log_loss)} before, {shown_loss(chosen.log_loss)} after"
    return f"All the same, {chosen.name} was fitted (log loss on rows it had not seen: {losses})."


def _gained(row: Standing, board: Leaderboard, scores_are: str, share: str = "") -> str:
    before = board[BEFORE].log_loss
    if math.isinf(before):
        return (
            f"has a log loss of {row.log_loss:.4f}, where that of the scores as they are is "
            "infinite (a 0 or 1 was wrong)"
        )
    word = "gains" if row.gain >= 0 else "loses"
    low, high = (shown_loss(value) for value in (row.gain_low, row.gain_high))
    loss = f"log loss{_OVER.get(scores_are, '')}"
    return (
        f"{word} {shown_loss(abs(row.gain))} in {loss} ({share}{shown_loss(before)} → "
        f"{shown_loss(row.log_loss)}; {100 * board.level:g} % interval of the gain {low} to {high})"
    )


_OVER = {"points": " over one rate for all rows"}


def _share(row: Standing, before: Standing) -> str:
    if not math.isfinite(row.gain) or before.log_loss <= 0:
        return ""
    return f"{shown_percent(row.gain / before.log_loss, 2)}: "


def _order(row: Standing) -> str:
    if row.auc is None or row.auc_change is None:
        return ""
    old, new = f"{row.auc - row.auc_change:.3f}", f"{row.auc:.3f}"
    if abs(row.auc_change) < SAME_ORDER or old == new:
        return f"The ranking is kept: AUC {new}."
    return f"AUC {'rose' if row.auc_change > 0 else 'fell'} from {old} to {new}."
