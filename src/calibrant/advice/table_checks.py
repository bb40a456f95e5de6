"""Checks of a score table and a map: few cases, 0 and 1, ties, shift, falls, separation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, isotonic_regression
from scipy.special import xlogy

from calibrant.advice.leaks import auc_error
from calibrant.advice.piece import Advice
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import too_few
from calibrant.losses import logit, sigmoid
from calibrant.maps import Map
from calibrant.metrics.ranking import area, one_class

__all__ = [
    "falling",
    "few_cases",
    "lost_order",
    "percentages",
    "separated",
    "shifted",
    "upside_down",
    "zero_or_one",
]

Array = NDArray[np.float64]

#: an AUC that scores of unseen rows rarely reach
SUSPICIOUS = 0.999
#: fewer rows of a class than this raise no suspicion
ENOUGH = 30
#: scores are called upside down if AUC is below one half by more standard errors than this
BELOW = 4.0
#: scores whose largest is above the first number and at most the second may be percentages
PERCENT = (10.0, 100.0)
#: a smaller loss of AUC is not mentioned
AUC_LOST = 1e-3
#: base rate and mean score must be further apart than this: in standard errors, and in logits
FAR, FAR_LOGIT = 4.0, 0.4
#: a shift is said to be enough if it has this share of the map's gain
MOST_OF_IT = 0.9
#: falling rates: the most bins, the fewest rows in each, and the least fall that matters
FALL_BINS, FALL_ROWS, LEAST_FALL = 20, 50, 0.02
#: more rows than this count as so many, since random numbers must be drawn for them
FALL_MOST = 1e12
REPLICATES = 999


def few_cases(table: ScoreTable, calibrator: Any) -> Iterator[Advice]:
    """Fewer rows of the rarer class than the calibrator wants."""
    if text := too_few(calibrator, table):
        figures = {"needed": calibrator.events_needed, "found": table.rarest}
        yield Advice("few_events", text, figures)


def separated(table: ScoreTable) -> Iterator[Advice]:
    """Scores that tell the classes apart too well to be those of unseen rows."""
    if one_class(table) or table.rarest < ENOUGH:
        return
    auc = area(table)
    if auc >= SUSPICIOUS:
        yield Advice(
            "trained_on_these_rows",
            f"the scores order the classes almost perfectly (AUC {auc:.5f} on weight "
            f"{table.total:.10g}). If the model was trained on these rows, its scores say nothing "
            "about new ones: calibrate on rows that it has not seen, or with cross-validation.",
            {"auc": auc},
        )


def upside_down(table: ScoreTable) -> Iterator[Advice]:
    """Scores that are high for the other class."""
    if one_class(table) or table.rarest < 2:
        return
    auc = area(table)
    errors = (0.5 - auc) / auc_error(auc, table)
    if errors > BELOW:
        yield Advice(
            "upside_down",
            f"the scores are higher for the negatives (AUC {auc:.4f}, {errors:.1f} standard errors "
            "below one half): they are probably those of the other label, which pos_label is to "
            "name. An increasing map can only make all rows alike here; Isotonic(increasing=False) "
            "falls.",
            {"auc": auc, "errors": errors},
        )


def percentages(table: ScoreTable) -> Iterator[Advice]:
    """Scores that were read as margins, but may be percentages."""
    low, high = float(table.scores[0]), float(table.scores[-1])
    if low >= 0.0 and PERCENT[0] < high <= PERCENT[1]:
        yield Advice(
            "percentages",
            f"the scores lie between {low:.4g} and {high:.4g}, and are read as margins, through "
            "the sigmoid. If they are percentages, divide them by 100.",
            {"low": low, "high": high},
        )


def zero_or_one(table: ScoreTable, fitted: Map) -> Iterator[Advice]:
    """Probabilities of exactly 0 or 1, and what they would cost."""
    p = fitted(table.scores)
    zero, one = p == 0.0, p == 1.0
    share = float(table.weight[zero | one].sum()) / table.total
    if share > 0:
        wrong = float(table.positive[zero].sum() + table.negative[one].sum())
        cost = f", and for a weight of {wrong:.4g} that was wrong" if wrong else ""
        yield Advice(
            "zero_or_one",
            f"{100 * share:.3g} % of these rows get a probability of exactly 0 or 1{cost}: a "
            "single surprise makes the log loss infinite. Use a smoothed method, such as "
            'Isotonic(smoothing="laplace") or BLS.',
            {"share": share, "wrong": wrong},
        )


def lost_order(table: ScoreTable, fitted: Map) -> Iterator[Advice]:
    """Ties that the map makes, where they cost AUC."""
    p = fitted(table.scores)
    values = len(np.unique(p))
    if one_class(table) or values >= len(table):
        return
    columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
    before, after = area(table), area(ScoreTable.from_counts(p, *columns))
    if before - after > AUC_LOST:
        yield Advice(
            "auc_lost",
            f"{len(table):,} distinct scores become {values:,} probabilities, and AUC falls from "
            f"{before:.4f} to {after:.4f} on these rows. Rank by the scores, or use a map without "
            'ties, such as Isotonic(interpolation="centred") or BLS.',
            {"before": before, "after": after, "distinct": len(table), "values": values},
        )


def shifted(table: ScoreTable, fitted: Map | None) -> Iterator[Advice]:
    """A base rate far from the mean score, where a constant on the logit mends it."""
    if not table.looks_like_probabilities or one_class(table):
        return
    p, n = table.scores, table.weight
    mean, rate = float(n @ p) / table.total, table.total_positive / table.total
    squares = table.negative_sq + table.positive_sq
    error = math.sqrt(float(squares @ (p * (1.0 - p)))) / table.total
    gap = _logit(rate) - _logit(mean)
    if abs(rate - mean) <= FAR * error or abs(gap) <= FAR_LOGIT:
        return
    shift = _shift(p, n, rate)
    moved = sigmoid(logit(p) + shift)
    if fitted is not None:
        before, best, simple = (_loss(table, q) for q in (p, fitted(p), moved))
        if simple - best > (1.0 - MOST_OF_IT) * (before - best):
            return  # there is more to mend than that
    yield Advice(
        "prior_shift",
        f"the scores expect {100 * mean:.3g} % positives, but {100 * rate:.3g} % came: the model "
        "was probably trained at another base rate (undersampling, class weights), or the "
        f"population has moved. Adding {shift:+.3f} to the logit mends it by itself: "
        f'calibrant.maps.Logistic({shift:.6g}, (("z", 1.0),)).',
        {"mean": mean, "rate": rate, "shift": shift},
    )


def _shift(p: Array, n: Array, rate: float) -> float:
    """The constant on the logit that makes the mean prediction the base rate."""
    z, total = logit(p), float(n.sum())
    return float(brentq(lambda b: float(n @ sigmoid(z + b)) / total - rate, -800.0, 800.0))


def _logit(p: float) -> float:
    return float(logit(np.array([p]))[0])


def _loss(table: ScoreTable, p: Array) -> float:
    with np.errstate(divide="ignore"):
        return -float(xlogy(table.negative, 1.0 - p).sum() + xlogy(table.positive, p).sum())


def falling(table: ScoreTable, seed: int = 0) -> Iterator[Advice]:
    """A rate that falls as scores rise, more than chance and rounding explain.

    Bins of equal mass; twice the gain in log-likelihood of their own rates over the best rising
    ones, against its distribution where the rising ones are true.
    """
    size = min(table.effective_size, FALL_MOST)
    count = min(FALL_BINS, int(size) // FALL_ROWS)
    if count < 3:
        return
    part = np.minimum((np.cumsum(table.weight) - table.weight / 2) / table.total * count, count - 1)
    starts = np.flatnonzero(np.diff(part.astype(np.intp), prepend=-1))
    n = np.add.reduceat(table.weight, starts) * (size / table.total)
    ones = np.add.reduceat(table.positive, starts) * (size / table.total)
    rate = ones / n
    rising = isotonic_regression(rate, weights=n).x
    drop = np.maximum.accumulate(rate) - rate
    worst = int(np.argmax(drop))
    if drop[worst] < LEAST_FALL:
        return
    found = _gain(ones, n, rising)
    rng = np.random.default_rng(seed)
    drawn = rng.binomial(np.rint(n).astype(np.int64), rising, size=(REPLICATES, len(n)))
    whole = np.rint(n)
    null = (
        _gain(draw, whole, isotonic_regression(draw / whole, weights=whole).x) for draw in drawn
    )
    if sum(value >= found for value in null):
        return
    high = int(np.argmax(rate[: worst + 1]))
    at = [float(table.scores[starts[i]]) for i in (high, worst)]
    yield Advice(
        "falling_truth",
        f"the share of positives falls from {rate[high]:.3f} at scores around {at[0]:.4g} to "
        f"{rate[worst]:.3f} around {at[1]:.4g} (p < {1 / (REPLICATES + 1):g}): higher scores do "
        "not always mean higher probability here. Find out why, or use a method that may fall: "
        "ENIR, ABB or BLS(monotone=False).",
        {"high": float(rate[high]), "low": float(rate[worst]), "from": at[0], "to": at[1]},
    )


def _gain(ones: Array, n: Array, rising: Array) -> float:
    own = ones / n
    fit = xlogy(ones, own) + xlogy(n - ones, 1.0 - own)
    return 2.0 * float((fit - xlogy(ones, rising) - xlogy(n - ones, 1.0 - rising)).sum())
