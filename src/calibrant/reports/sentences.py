"""What came of a calibration, in two sentences."""

from __future__ import annotations

import math

from calibrant.estimators.registry import in_plain_words
from calibrant.metrics import Evaluation, MulticlassEvaluation
from calibrant.metrics.evaluation_words import from_to
from calibrant.metrics.measure import SAME_ORDER, Verdict
from calibrant.reports.report_value import Method
from calibrant.result_tables import short_value

#: what the page calls the scores without a calibrator
AS_THEY_ARE = "scores as they are"
#: and where they are points, which stand for no probability
ONE_RATE = "points (one rate for all rows)"


def word_of(evaluation: Evaluation | MulticlassEvaluation) -> Verdict | None:
    """What the table of measures says of the log loss; None where there is nothing to compare."""
    known = evaluation.before is not None and "log_loss" in evaluation.before
    return evaluation.verdict("log_loss") if known else None


def under(
    headline: str, found: tuple[str, str], methods: tuple[Method, ...], *, useless: bool
) -> tuple[str, str]:
    """The verdict where a headline comes before it; of ``useless`` scores only the figures."""
    if not useless:
        return headline, " ".join(found)
    raw, chosen = methods[0], next(m for m in methods if m.chosen)
    if chosen is raw:
        return headline, f"The log loss of the {raw.name} is {short_value(raw.log_loss)}."
    losses = f"log loss {from_to(raw.log_loss, chosen.log_loss)}"
    return headline, f"All the same, {chosen.name} was fitted ({losses})."


def verdict_of(
    methods: tuple[Method, ...],
    *,
    level: float = 0.95,
    where: str = "On rows it had not seen",
    single: bool = True,
    word: Verdict | None = None,
) -> tuple[str, str]:
    """Two sentences on the chosen method against the scores as they are: what to do, and why.

    The first of the methods is the scores as they are. With ``single`` the chosen one stands there
    because nothing else was asked about; else it was preferred to them, and so is to be used.
    ``word`` is what the table of measures says of the log loss; without it the gain decides.
    """
    raw, chosen = methods[0], next(m for m in methods if m.chosen)
    if chosen is raw:
        return _keep(raw, methods[1:], level, where)
    over = "" if raw.name == AS_THEY_ARE else f", against {raw.name}"
    facts = f"log loss {_went(raw.log_loss, chosen.log_loss)}{_gained(chosen, level)}{over}"
    certain = _certain(chosen) if word is None else _CERTAIN.get(word, 0)
    known = _TO_DO_OF_POINTS if raw.name == ONE_RATE else _TO_DO
    to_do = _LIKELY if certain == 0 and not single else known[certain]
    name = in_plain_words(chosen.name) if to_do.startswith("Calibrate") else chosen.name
    return to_do.format(name), f"{where}, {facts}; {_order(raw, chosen)}."


_CERTAIN = {"better": 1, "worse": -1}
_TO_DO = {
    1: "Calibrate these scores with {} before using them as probabilities.",
    0: "Keep the scores as they are: {} shows no gain beyond noise.",
    -1: "Keep the scores as they are: {} makes them worse.",
}
_TO_DO_OF_POINTS = {
    1: _TO_DO[1],
    0: "Use one rate for all rows: {} shows no gain beyond noise.",
    -1: "Use one rate for all rows: {} is worse.",
}
_LIKELY = "Calibrate these scores with {}, although the gain alone may be noise."


def _keep(raw: Method, rest: tuple[Method, ...], level: float, where: str) -> tuple[str, str]:
    others = [m for m in rest if m.gain is not None]
    first = "Keep the scores as they are: no method improves on them beyond noise."
    if raw.name == ONE_RATE:
        first = "Use one rate for all rows: no method improves on it beyond noise."
    if not others:
        its = "Its" if raw.name == ONE_RATE else "Their"
        return first, f"{its} log loss is {short_value(raw.log_loss)}."
    best = max(others, key=lambda m: m.gain if m.gain is not None else -math.inf)
    return first, (
        f"{where}, the best of them, {best.name}, had log loss "
        f"{short_value(best.log_loss)} against {short_value(raw.log_loss)}{_gained(best, level)}."
    )


def _certain(method: Method) -> int:
    """1 if surely better than the scores as they are, −1 if surely worse, 0 if nobody can tell."""
    if method.gain is None:
        return 0
    low = method.gain if method.gain_low is None else method.gain_low
    high = method.gain if method.gain_high is None else method.gain_high
    return (low > 0) - (high < 0)


def _went(old: float, new: float) -> str:
    if short_value(old) == short_value(new):
        return f"stayed at {short_value(new)}"
    return f"{'fell' if new < old else 'rose'} {from_to(old, new)}"


def _gained(method: Method, level: float) -> str:
    if method.gain is None or method.gain_low is None or method.gain_high is None:
        return ""
    if not math.isfinite(method.gain):
        return ", since a probability of 0 or 1 was wrong"
    better = method.gain >= 0
    ends = (method.gain_low, method.gain_high) if better else (-method.gain_high, -method.gain_low)
    return (
        f", {short_value(abs(method.gain))} {'better' if better else 'worse'} "
        f"({100 * level:g} % interval {short_value(ends[0])} to {short_value(ends[1])})"
    )


def _order(raw: Method, chosen: Method) -> str:
    if raw.auc is None or chosen.auc is None:
        return "the ranking cannot be judged"
    old = raw.auc - (raw.auc_change or 0.0)  # that of the scores, not of one rate for all rows
    if abs(old - chosen.auc) < SAME_ORDER:
        return f"the ranking is kept (AUC {chosen.auc:.3f})"
    return f"AUC moved {from_to(old, chosen.auc)}"
