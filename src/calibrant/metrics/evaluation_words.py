"""What an evaluation says, in two sentences."""

from __future__ import annotations

import math

from calibrant.metrics.evaluation_results import Evaluation, MulticlassEvaluation
from calibrant.metrics.measure import SAME_ORDER
from calibrant.result_tables import short_value


def in_words(evaluation: Evaluation | MulticlassEvaluation) -> str:
    """What changed, in two sentences: the size of the errors, and the ranking.

    Nothing where log loss or ECE were not asked for.

    >>> from calibrant.metrics import evaluate
    >>> e = evaluate([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9], raw=[0.4, 0.5, 0.6, 0.7])
    >>> in_words(e).split(". ")[0]
    'Log loss fell from 0.518 to 0.338 (−35 %) and ECE from 0.400 to 0.275'
    """
    after, before = evaluation.after, evaluation.before
    ece = "ece" if "ece" in after else "top_label_ece"
    if "log_loss" not in after or ece not in after:
        return ""  # others were asked for
    word = "ECE" if ece == "ece" else "top-label ECE"
    if before is None or "log_loss" not in before:
        return f"Log loss is {short_value(after['log_loss'])}, {word} {short_value(after[ece])}."
    parts = [_loss(before["log_loss"], after["log_loss"])]
    parts[0] += f"{_error(parts[0], word, before[ece], after[ece])}."
    if "auc" in after and "auc" in before:
        parts.append(_ranking(before["auc"], after["auc"]))
    if math.isinf(after["log_loss"]):
        parts.append("A probability of 0 or 1 was wrong: smooth the map, or try another method.")
    elif evaluation.verdict("log_loss") == "worse":
        parts.append("This made the scores worse: keep them as they are, or try another method.")
    elif evaluation.verdict("log_loss") == "unclear":
        parts.append("The change of the log loss may be chance.")
    return " ".join(parts)


def _loss(old: float, new: float) -> str:
    if math.isinf(new) or math.isinf(old):
        return f"Log loss went {from_to(old, new)}"
    if math.isclose(old, new, rel_tol=5e-4):
        return f"Log loss stayed at {short_value(new)}"
    change = f" ({100 * (new - old) / old:+.0f} %)".replace("-", "−") if old else ""
    return f"Log loss {'fell' if new < old else 'rose'} {from_to(old, new)}{change}"


def _error(loss: str, word: str, old: float, new: float) -> str:
    """What the error did, without a verb where it did what the sentence on the ``loss`` says."""
    stayed = short_value(old) == short_value(new)
    did = "stayed" if stayed else "fell" if new < old else "rose"
    ends = f"at {short_value(new)}" if stayed else from_to(old, new)
    if f" {did} " in loss or (" went " in loss and not stayed):
        return f" and {word} {ends}"
    return f", and {word} {'stayed' if stayed else 'went'} {ends}"


def _ranking(old: float, new: float) -> str:
    if abs(new - old) < SAME_ORDER:
        return f"The ranking is kept: AUC {new:.3f}."
    return f"AUC moved {from_to(old, new)}."


def from_to(old: float, new: float) -> str:
    """Two values, as sentences have them."""
    return f"from {short_value(old)} to {short_value(new)}"
