"""Is a base rate of its own all that is wrong with the scores?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from calibrant.advice.piece import Advice
from calibrant.array_types import Array
from calibrant.calibrators.bls import BLS
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.table_folds import HeldOutCells, TableFolds, possible_folds
from calibrant.losses import logit, sigmoid
from calibrant.metrics.first_look import FEW, Face
from calibrant.metrics.ranking import one_class
from calibrant.result_tables import shown_percent

#: base rate and mean score must be further apart than this: in standard errors, and in logits
FAR, FAR_LOGIT = 4.0, 0.4
#: a shift is advised if it mends at least this share of what BLS mends
MOST_OF_IT = 0.75
#: folds, and the most scores, of the measurement
FOLDS, MOST_CELLS = 5, 10_000


def shifted(table: ScoreTable, face: Face = "python") -> Iterator[Advice]:
    """A base rate far from the mean score, where a constant on the logit mends it.

    In Python the text ends in the map that adds the constant; elsewhere nobody could use it.

    What it mends is measured out of fold, beside what `BLS` mends on the same rows: by the Brier
    score, and by the log loss of probabilities of at least 1/(2n + 2), so that scores of exactly 0
    and 1, which a shift cannot move, cost what they cost and not infinity.
    """
    if not table.looks_like_probabilities or table.rarest < FEW:
        return
    p, n = table.scores, table.weight
    mean, rate = float(n @ p) / table.total, table.total_positive / table.total
    squares = table.negative_sq + table.positive_sq
    error = math.sqrt(float(squares @ (p * (1.0 - p)))) / table.total
    gap = _logit(rate) - _logit(mean)
    if abs(rate - mean) <= FAR * error or abs(gap) <= FAR_LOGIT:
        return
    mended = _mended(table.pool(MOST_CELLS) if len(table) > MOST_CELLS else table)
    if mended is None or mended < MOST_OF_IT:
        return
    shift = _shift(table)
    yield Advice(
        "prior_shift",
        f"the scores expect {shown_percent(mean)} positives, but {shown_percent(rate)} came: the "
        "model was probably trained at another base rate (undersampling, class weights), or the "
        f"population has moved. Adding {shift:+.3f} to the logit mends "
        f"{shown_percent(min(mended, 1.0), 2)} of what BLS mends{_as_map(shift, face)}.",
        {"mean": mean, "rate": rate, "shift": shift, "mended": mended},
    )


def _as_map(shift: float, face: Face) -> str:
    return f': calibrant.maps.Logistic({shift:.6g}, (("z", 1.0),))' if face == "python" else ""


def _mended(table: ScoreTable) -> float | None:
    """The share of what BLS mends out of fold that a shift mends, too: the smaller one of two
    losses. None where nothing can be held out, or BLS mends nothing."""
    folds = possible_folds(FOLDS, table.rarest)
    if not folds:
        return None
    deal = TableFolds(table, folds, seed=0)
    p, z = table.scores, logit(table.scores)
    before, shift, best = np.zeros(2), np.zeros(2), np.zeros(2)
    least = 0.5 / (table.effective_size + 1.0)
    for fold in range(folds):
        held = deal.held(fold)
        rest = deal.rest(held)
        if not rest or one_class(rest):
            continue
        before += _losses(p, held, least)
        shift += _losses(sigmoid(z + _shift(rest)), held, least)
        best += _losses(BLS().fit_table(rest).map_(p), held, least)
    gains = before - best
    return float(((before - shift) / gains).min()) if (gains > 0.0).all() else None


def _losses(p: Array, held: HeldOutCells, least: float) -> Array:
    """The Brier score and the log loss of rows held out, as sums."""
    inside = np.clip(p, least, 1.0 - least)
    brier = held.negative @ p**2 + held.positive @ (1.0 - p) ** 2
    log = -(held.negative @ np.log1p(-inside) + held.positive @ np.log(inside))
    return np.array([brier, log])


def _shift(table: ScoreTable) -> float:
    """The constant on the logit that makes the mean prediction the base rate, as near as it can:
    scores of 0 and 1 stay where they are."""
    z, n, rate = logit(table.scores), table.weight, table.total_positive / table.total

    def beyond(b: float) -> float:
        return float(n @ sigmoid(z + b)) / table.total - rate

    low, high = -800.0, 800.0
    if beyond(low) >= 0.0 or beyond(high) <= 0.0:
        return low if beyond(low) >= 0.0 else high
    return float(brentq(beyond, low, high))


def _logit(p: float) -> float:
    return float(logit(np.array([p]))[0])
