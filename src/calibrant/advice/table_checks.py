"""Checks of a score table and a map: few cases, direction, 0 and 1, ties, falls, separation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from calibrant.advice.piece import Advice
from calibrant.array_types import Array
from calibrant.data.score_kinds import kind_of
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import too_few
from calibrant.maps import Map
from calibrant.metrics.class_look import ClassLook
from calibrant.metrics.first_look import FEW, FirstLook, LabelNames
from calibrant.metrics.ranking import area, one_class
from calibrant.result_tables import shown_percent

#: an AUC that scores of unseen rows rarely reach
SUSPICIOUS = 0.999
#: fewer rows of a class than this raise no suspicion
ENOUGH = 30
#: what a first look may find that is advice, and its code
SAID_FIRST = {
    "one class": "one_class",
    "wrong way": "upside_down",
    "nothing": "no_separation",
    "no order": "no_order",
    "swapped": "columns_swapped",
}
#: a smaller loss of AUC is not mentioned
AUC_LOST = 1e-3
#: falling rates: the most bins, the fewest rows in each, and the least fall that matters
FALL_BINS, FALL_ROWS, LEAST_FALL = 20, 50, 0.02
#: more rows than this count as so many, since random numbers must be drawn for them
FALL_MOST = 1e12
REPLICATES = 999


def few_cases(
    table: ScoreTable, calibrator: Any, look: FirstLook, names: LabelNames
) -> Iterator[Advice]:
    """Fewer rows of the rarer class than the calibrator wants, or than anything can be told of."""
    needed = getattr(calibrator, "events_needed", 0)
    text = too_few(calibrator, table) if needed else ""
    if not text and look.few:
        text, needed = look.few_words(names), FEW
    if text:
        yield Advice("few_events", text, {"needed": needed, "found": table.rarest})


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


def said_first(look: FirstLook | ClassLook, names: Any) -> Iterator[Advice]:
    """One class, the wrong direction, swapped columns, or scores that say nothing.

    ``names`` are `LabelNames`, or `ClassNames` of several classes.
    """
    if look.found in SAID_FIRST:
        figures = {"auc": look.auc, "low": look.low, "high": look.high}
        known = {name: value for name, value in figures.items() if value is not None}
        yield Advice(SAID_FIRST[look.found], look.headline(names), known)


def not_probabilities(table: ScoreTable) -> Iterator[Advice]:
    """Scores that look like percentages, or like points of some scale."""
    low, high, kind = float(table.scores[0]), float(table.scores[-1]), kind_of(table)
    ends = f"the scores go from {low:.4g} to {high:.4g}"
    told = {
        "percentages": f"{ends} and look like percentages: the figures before calibration are of "
        "score / 100. If the scores are something else, those figures mean nothing.",
        "points": f"{ends}: they are points, not probabilities. As they are, only their order can "
        "be judged.",
    }
    if kind in told:
        yield Advice(kind, told[kind], {"low": low, "high": high})


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
            f"{shown_percent(share)} of these rows get a probability of exactly 0 or 1{cost}: a "
            "single surprise makes the log loss infinite. Use a smoothed method, such as "
            'Isotonic(smoothing="laplace") or BLS.',
            {"share": share, "wrong": wrong},
        )


def lost_order(table: ScoreTable, fitted: Map) -> Iterator[Advice]:
    """Ties that the map makes, where they cost AUC."""
    made = table.through(fitted)
    values = len(made)
    if one_class(table) or values >= len(table):
        return
    before, after = area(table), area(made)
    if before - after > AUC_LOST:
        yield Advice(
            "auc_lost",
            f"{len(table):,} distinct scores become {values:,} probabilities, and AUC falls from "
            f"{before:.4f} to {after:.4f} on these rows. Rank by the scores, or use a map without "
            'ties, such as Isotonic(interpolation="centred") or BLS.',
            {"before": before, "after": after, "distinct": len(table), "values": values},
        )


def falling(table: ScoreTable) -> Iterator[Advice]:
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
    rng = np.random.default_rng(0)
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
