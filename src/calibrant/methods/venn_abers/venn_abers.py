"""Venn–Abers predictors: two isotonic fits, one for either label that the case may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import Limit, Number, OneOf
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.fitting.folds import TableFolds
from calibrant.methods.venn_abers._kernel import venn_abers
from calibrant.rules.base import Map
from calibrant.rules.chain import Interval
from calibrant.rules.piecewise import Piecewise


@dataclass(kw_only=True, eq=False, repr=False)
class VennAbers(Calibrator):
    """A lower and an upper probability for every score, and one between them (Venn–Abers).

    The case to be calibrated joins the data, once as a negative and once as a positive. Both times
    isotonic regression is fitted; its values at the case are p₀ and p₁. The one that belongs to the
    true label is perfectly calibrated, whatever the distribution, as long as the rows are
    exchangeable [1]_. If p₀ and p₁ are far apart, there are too few data to tell.

    Parameters
    ----------
    cv : int from 2 to 100, or None, default=None
        None: p₀ and p₁ from all rows together (inductive). A number: rows are dealt into so many
        folds, each gives its own p₀ and p₁, and these are averaged (cross). That gives more
        distinct values and smaller steps, but wider bounds and no guarantee.
    merge : {"log", "brier"}, default="log"
        The loss for which the merged probability is minimax: its regret is the same for either
        label.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    map_ : Interval
        Its ``bounds(scores)`` are p₀ and p₁; called, it gives the merged probability.

    Notes
    -----
    On the table, with the added case of weight one and label c at the score s,

        p_c(s) = max_{a≤s} min_{b≥s} (n₁ + c) / (n₀ + n₁ + 1),  n₀, n₁ counted from a to b.

    Both are steps that never fall. p₀ takes a new value at a training score, and p₁ just above it
    (at the next larger float): so the map is exact at, between and beyond training scores. Below
    all scores p₀ = 0, above all p₁ = 1.

    Merged, for the log loss: p₁ / (1 − p₀ + p₁); for the Brier score: p₁ + p₀²/2 − p₁²/2. Both lie
    strictly between 0 and 1, within [1/(n+2), (n+1)/(n+2)] for n rows.

    With folds, each of them a calibration set [2]_: for the log loss GM(p₁) / (GM(1 − p₀) + GM(p₁))
    with geometric means over the folds, for the Brier score the plain mean of the folds' merged
    probabilities. The bounds are plain means of p₀ and of p₁. Where folds disagree, the merged
    probability may lie beyond them (log loss only), and then the bound is moved there. The deal is
    random with a fixed seed; folds without a row are left out. Scores come from one model. For
    folds with a model each, use
    ``CalibratedClassifier(model, VennAbers(merge="brier"), ensemble=True)``.

    Equal scores are one cell. Weights are in units of rows, and the added case has weight one. The
    guarantee holds for rows of equal weight.

    The added case counts. Where events are rare, the probabilities of the fitted rows sum to some
    7 (of 1,000 rows) to 20 (of 10⁶) more than the events: one positive in 300,000 rows gives a sum
    of about 13, ten give 23. `BLS` keeps the sum.

    O(N log N) for the table, then O(D) for all p₀ and p₁. A query costs O(log m) for m steps, and
    there are far fewer steps than scores.

    References
    ----------
    .. [1] V. Vovk, I. Petej, "Venn–Abers predictors", 2014, doi:10.48550/arXiv.1211.0025.
    .. [2] V. Vovk, I. Petej, V. Fedorova, "Large-scale probabilistic predictors with and without
       guarantees of validity", 2015, doi:10.48550/arXiv.1511.00213.

    Examples
    --------
    >>> s, y = [0.1, 0.3, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1]
    >>> c = VennAbers().fit(s, y)
    >>> c.calibrate([0.0, 0.35, 0.9]).round(3).tolist()
    [0.333, 0.5, 0.75]
    >>> [bound.round(3).tolist() for bound in c.map_.bounds([0.0, 0.35, 0.9])]
    [[0.0, 0.333, 0.667], [0.5, 0.667, 1.0]]
    """

    cv: int | None = None
    merge: str = "log"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "cv": (OneOf((None,)), Number(2, 100, whole=True)),
        "merge": (OneOf(("log", "brier")),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        if self.cv is None:
            return _average_folds(
                [_maps_of_both_labels(table.scores, table.negative, table.positive)], self.merge
            )
        # whole weights are repetitions, so that they must be dealt as such
        deal = TableFolds(table, int(self.cv), repetitions=True)
        pairs = []
        for fold in range(deal.k):
            held = deal.held(fold)
            in_fold = (held.negative > 0) | (held.positive > 0)
            if in_fold.any():
                columns = (table.scores, held.negative, held.positive)
                pairs.append(_maps_of_both_labels(*(column[in_fold] for column in columns)))
        return _average_folds(pairs, self.merge)


def _maps_of_both_labels(
    scores: Array, negative: Array, positive: Array
) -> tuple[Piecewise, Piecewise]:
    """p₀ and p₁ as step maps."""
    p0, p1 = venn_abers(negative, positive)
    with np.errstate(over="ignore"):  # above the largest float
        above = np.nextafter(scores, np.inf) + 0.0
    return _step_map(scores, np.append(0.0, p0)), _step_map(above, np.append(p1, 1.0))


def _average_folds(pairs: list[tuple[Piecewise, Piecewise]], merge: str) -> Interval:
    """One interval of all folds, with steps wherever a fold has one."""
    cuts = np.unique(np.concatenate([piece.x for pair in pairs for piece in pair]))
    p0, p1 = (
        np.array([np.append(step.left[0], step(cuts)) for step in steps])
        for steps in zip(*pairs, strict=True)
    )
    if merge == "log":
        positive, negative = _geometric_mean(p1), _geometric_mean(1.0 - p0)
        between = positive / (negative + positive)
    else:
        between = (p1 + p0 * p0 / 2 - p1 * p1 / 2).mean(axis=0)
    # rounding may cross neighbours by one bit
    low, high, point = (
        np.maximum.accumulate(p) for p in (p0.mean(axis=0), p1.mean(axis=0), between)
    )
    if len(pairs) == 1:
        point = np.clip(point, low, high)
    low, high = np.minimum(low, point), np.maximum(high, point)
    return Interval(_step_map(cuts, low), _step_map(cuts, high), _step_map(cuts, point))


def _geometric_mean(p: Array) -> Array:
    return np.asarray(np.prod(p ** (1.0 / len(p)), axis=0))  # the product of p itself may vanish


def _step_map(cuts: Array, values: Array) -> Piecewise:
    """The step map with cuts only where the value changes."""
    new = (values[1:] != values[:-1]) & np.isfinite(cuts)
    return Piecewise.step(cuts[new], np.append(values[0], values[1:][new]))
