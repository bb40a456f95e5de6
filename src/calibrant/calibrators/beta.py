"""Beta calibration: sigmoids, their inverses, and the identity in one family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import WEIGHTS, Calibrator, inner_interval
from calibrant.estimators.limits import Limit, OneOf
from calibrant.kernels.logistic import fit_logistic
from calibrant.maps import Logistic, Map
from calibrant.maps.checks import in_blocks
from calibrant.maps.logistic import FEATURES, FEATURES_OF_LOGIT

#: precision of the prior on standardised slopes: invisible unless the classes separate
RIDGE = 1e-6
LN_2 = float(np.log(2.0))
#: the features of each choice as functions of p, and what is added to them
CHOICES = {
    "abm": (("ln_p", 0.0), ("neg_ln_1mp", 0.0)),
    "am": (("z", 0.0),),
    "ab": (("ln_p", LN_2), ("neg_ln_1mp", -LN_2)),
}


class Beta(Calibrator):
    """P = 1 / (1 + 1 / (e^c · p^a / (1−p)^b)) with a, b ≥ 0, fitted by maximum likelihood.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        All three parameters; a = b (a logistic fit on the logit); or midpoint ½ fixed,
        c = (a − b)·ln 2.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    a_, b_, c_ : float
        The parameters; a = b = 1, c = 0 is the identity.

    Notes
    -----
    A logistic regression on ln p and −ln(1−p) [1]_. The map is monotone: where the unconstrained
    optimum has a negative a or b, the exact best fit with a, b ≥ 0 is taken (it lies on an edge). A
    ridge of 1e-6 on the standardised slopes keeps separable data finite. c has no ridge, so that
    the probabilities of the training rows sum to the number of positives (not with
    ``parameters="ab"``, which has no c). With rows of one class only the map is a constant: the
    odds with half a case of the other class (again not with "ab"). Scores outside [0, 1] are read
    as logits x, with p = σ(x): ln p = −ln(1 + e⁻ˣ) and −ln(1−p) = ln(1 + eˣ) are computed from x
    itself, so that the map still rises where σ(x) rounds to 1. Scores of exactly 0 and 1 count as
    half as far from the end as the outermost score inside (0, 1). O(D) per Newton step after the
    table.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho, P. Flach, "Beyond sigmoids: how to obtain well-calibrated
       probabilities from binary classifiers with beta calibration", 2017, doi:10.1214/17-EJS1338SI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> c = Beta().fit(p, y)
    >>> c.calibrate([0.25, 0.5, 0.75]).round(2).tolist()
    [0.07, 0.25, 0.55]
    """

    events_needed: ClassVar[int] = 15
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "parameters": (OneOf(("abm", "am", "ab")),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        parameters: str = "abm",
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.parameters = parameters
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        margins = not table.looks_like_probabilities
        clip = inner_interval(table)
        features = FEATURES_OF_LOGIT if margins else FEATURES

        def fit(part: ScoreTable, start: Array | None) -> Array:
            scores = part.scores if clip is None else np.clip(part.scores, *clip)
            chosen = CHOICES[self.parameters]
            columns = [_column(features[name], shift, scores) for name, shift in chosen]
            return _nonnegative(columns, part, self.parameters != "ab", start)

        theta = table.coarse_to_fine(fit)
        c, a, b = (*theta, theta[-1])[:3]  # one slope stands for both
        self.a_, self.b_ = float(a), float(b)
        self.c_ = float((a - b) * LN_2) if self.parameters == "ab" else float(c)
        if not margins:
            return Logistic(self.c_, (("ln_p", self.a_), ("neg_ln_1mp", self.b_)), clip)
        if self.parameters == "am":
            return Logistic(self.c_, (("x", self.a_),))
        return Logistic(self.c_, (("ln_sigmoid", self.a_), ("softplus", self.b_)))


def _column(feature: Callable[[Array], Array], shift: float, scores: Array) -> Array:
    return in_blocks(lambda s: feature(s) + shift, scores)


def _nonnegative(
    columns: list[Array], table: ScoreTable, intercept: bool, start: Array | None
) -> Array:
    """Intercept (0 if none) and slopes of the best fit whose slopes are not negative.

    The problem is convex: if the free optimum has a negative slope, the best fit lies on an edge of
    the quadrant, where one slope is 0, and if neither edge has a positive slope, at its corner.
    """
    if intercept and min(table.total_negative, table.total_positive) == 0.0:
        return _constant(len(columns), table, intercept)

    def fit(used: list[int], warm: Array | None = None) -> tuple[float, Array]:
        chosen = [columns[j] for j in used]
        found = fit_logistic(
            chosen, table.negative, table.positive, intercept=intercept, ridge=RIDGE, start=warm
        )
        theta = np.zeros(1 + len(columns))
        theta[[1 + j for j in used]] = found.coefficients[-len(used) :]
        theta[0] = found.coefficients[0] if intercept else 0.0
        return found.loss, theta

    everything = list(range(len(columns)))
    _, theta = fit(everything, start)
    if (theta[1:] >= 0).all():
        return theta
    edges = [fit([j]) for j in everything] if len(columns) > 1 else []
    inside = [(loss, theta) for loss, theta in edges if (theta >= 0)[1:].all()]
    if inside:
        return min(inside, key=lambda edge: edge[0])[1]
    return _constant(len(columns), table, intercept)


def _constant(count: int, table: ScoreTable, intercept: bool) -> Array:
    """The coefficients of the base rate. Half a case of an absent class keeps them finite."""
    corner = np.zeros(1 + count)
    if intercept:
        n0, n1 = table.total_negative, table.total_positive
        half = 0.0 if min(n0, n1) > 0 else 0.5
        corner[0] = np.log(n1 + half) - np.log(n0 + half)
    return corner
