"""What came of a calibration, in two sentences."""

from __future__ import annotations

import math

from calibrant.metrics import Evaluation
from calibrant.reports.report_value import Method

__all__ = ["SAME_AUC", "in_words", "shown", "verdict_of"]

#: AUC is called kept if it moves by less than this
SAME_AUC = 5e-4


def in_words(evaluation: Evaluation) -> str:
    """What changed, in two sentences: the size of the errors, and the ranking.

    >>> from calibrant.metrics import evaluate
    >>> e = evaluate([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9], raw=[0.4, 0.5, 0.6, 0.7])
    >>> in_words(e).split(". ")[0]
    'Log loss fell from 0.518 to 0.338 (−35 %) and ECE from 0.400 to 0.275'
    """
    after, before = evaluation.after, evaluation.before
    if before is None:
        return f"Log loss is {shown(after['log_loss'])}, ECE {shown(after['ece'])}."
    parts = [_loss(before["log_loss"], after["log_loss"])]
    parts[0] += f" and ECE {_error(before['ece'], after['ece'])}."
    if "auc" in after and "auc" in before:
        parts.append(_ranking(before["auc"], after["auc"]))
    if math.isinf(after["log_loss"]):
        parts.append("A probability of 0 or 1 was wrong: smooth the map, or try another method.")
    elif after["log_loss"] > before["log_loss"] * 1.0005:
        parts.append("This made the scores worse: keep them as they are, or try another method.")
    return " ".join(parts)


def _loss(old: float, new: float) -> str:
    if math.isinf(new) or math.isinf(old):
        return f"Log loss went {_from_to(old, new)}"
    if math.isclose(old, new, rel_tol=5e-4):
        return f"Log loss stayed at {shown(new)}"
    change = f" ({100 * (new - old) / old:+.0f} %)".replace("-", "−") if old else ""
    return f"Log loss {'fell' if new < old else 'rose'} {_from_to(old, new)}{change}"


def _error(old: float, new: float) -> str:
    return f"at {shown(new)}" if shown(old) == shown(new) else _from_to(old, new)


def _ranking(old: float, new: float) -> str:
    if abs(new - old) < SAME_AUC:
        return f"The ranking is kept: AUC {new:.3f}."
    return f"AUC moved {_from_to(old, new)}."


def _from_to(old: float, new: float) -> str:
    return f"from {shown(old)} to {shown(new)}"


def shown(value: float) -> str:
    """Three digits, and more for small values.

    >>> shown(0.12345), shown(-0.0012345), shown(float("inf"))
    ('0.123', '−0.0012', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
    return text.replace("-", "−")


# --- the verdict --------------------------------------------------------------------------------


def verdict_of(
    methods: tuple[Method, ...],
    *,
    level: float = 0.95,
    where: str = "On rows it had not seen",
    single: bool = True,
) -> tuple[str, str]:
    """Two sentences on the chosen method against the scores as they are: what to do, and why.

    The first of the methods is the scores as they are. With ``single`` the chosen one stands there
    because nothing else was asked about; else it was preferred to them, and so is to be used.
    """
    raw, chosen = methods[0], next(m for m in methods if m.chosen)
    if chosen is raw:
        return _keep(raw, methods[1:], level, where)
    facts = f"log loss {_went(raw.log_loss, chosen.log_loss)}{_gained(chosen, level)}"
    certain = _certain(chosen)
    to_do = _LIKELY if certain == 0 and not single else _TO_DO[certain]
    return to_do.format(chosen.name), f"{where}, {facts}; {_order(raw, chosen)}."


_TO_DO = {
    1: "Calibrate these scores with {} before using them as probabilities.",
    0: "Keep the scores as they are: {} shows no gain beyond noise.",
    -1: "Keep the scores as they are: {} makes them worse.",
}
_LIKELY = "Calibrate these scores with {}: a gain is likely, though not beyond doubt."


def _keep(raw: Method, rest: tuple[Method, ...], level: float, where: str) -> tuple[str, str]:
    others = [m for m in rest if m.gain is not None]
    first = "Keep the scores as they are: no method improves on them beyond noise."
    if not others:
        return first, f"Their log loss is {shown(raw.log_loss)}."
    best = max(others, key=lambda m: m.gain if m.gain is not None else -math.inf)
    return first, (
        f"{where}, the best of them, {best.name}, had log loss "
        f"{shown(best.log_loss)} against {shown(raw.log_loss)}{_gained(best, level)}."
    )


def _certain(method: Method) -> int:
    """1 if surely better than the scores as they are, −1 if surely worse, 0 if nobody can tell."""
    if method.gain is None:
        return 0
    low = method.gain if method.gain_low is None else method.gain_low
    high = method.gain if method.gain_high is None else method.gain_high
    return (low > 0) - (high < 0)


def _went(old: float, new: float) -> str:
    if shown(old) == shown(new):
        return f"stayed at {shown(new)}"
    return f"{'fell' if new < old else 'rose'} {_from_to(old, new)}"


def _gained(method: Method, level: float) -> str:
    if method.gain is None or method.gain_low is None or method.gain_high is None:
        return ""
    if not math.isfinite(method.gain):
        return ", since a probability of 0 or 1 was wrong"
    better = method.gain >= 0
    ends = (method.gain_low, method.gain_high) if better else (-method.gain_high, -method.gain_low)
    return (
        f", {shown(abs(method.gain))} {'better' if better else 'worse'} "
        f"({100 * level:g} % interval {shown(ends[0])} to {shown(ends[1])})"
    )


def _order(raw: Method, chosen: Method) -> str:
    if raw.auc is None or chosen.auc is None:
        return "the ranking cannot be judged"
    if abs(raw.auc - chosen.auc) < SAME_AUC:
        return f"the ranking is kept (AUC {chosen.auc:.3f})"
    return f"AUC moved {_from_to(raw.auc, chosen.auc)}"
