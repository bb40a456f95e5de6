"""Cox's line through the log-odds, its intercept at slope 1, and observed by expected."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from calibrant.arrays import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ConvergenceError
from calibrant.kernels.logistic import fit_logistic
from calibrant.losses import logit, sigmoid
from calibrant.metrics.interval_formulas import Span, normal, wald
from calibrant.metrics.weighted_cells import class_columns, squares, take_cells

#: an intercept beyond this says that a class is absent
FURTHEST = 100.0


def uncertain(table: ScoreTable) -> tuple[ScoreTable, float]:
    """The table without predictions of exactly 0 or 1, which have no log-odds; their weight."""
    certain = (table.scores == 0.0) | (table.scores == 1.0)
    return take_cells(table, ~certain), float(table.weight[certain].sum())


class CoxLine(NamedTuple):
    """logit P(y) = intercept + slope · logit p, fitted to the rows with 0 < p < 1.

    ``inverse`` is the inverse of the information Σw·q(1 − q)·uuᵀ, u = (1, logit p) and q the fitted
    probabilities; ``variances`` are those of intercept and slope.
    """

    intercept: float
    slope: float
    inverse: Array
    variances: tuple[float, float]

    @property
    def known(self) -> bool:
        """Whether there is a line: two predictions, two classes, and no threshold between them."""
        return math.isfinite(self.slope)

    def value(self, which: int) -> float:
        """The intercept (0) or the slope (1)."""
        return (self.intercept, self.slope)[which]

    def interval(self, which: int, level: float) -> Span:
        """Wald's interval of the intercept (0) or the slope (1)."""
        return wald(self.value(which), math.sqrt(self.variances[which]), level)

    def pull(self, which: int, p: Array, positive: Flags, total: float) -> Array:
        """How far each row moves the intercept (0) or the slope (1), times ``total`` weight."""
        inner = (p > 0.0) & (p < 1.0)
        z = logit(np.where(inner, p, 0.5))
        left = positive - sigmoid(self.intercept + self.slope * z)
        first, second = self.inverse[which]
        return np.where(inner, total * left * (first + second * z), 0.0)


def cox_line(table: ScoreTable) -> CoxLine:
    """Cox's line through all predictions but those of 0 and 1. O(D) a Newton step.

    The slope is infinite where a threshold tells the classes apart. It is NaN where there is one
    class or one prediction, and where weights are so unequal that floats do not tell it.
    """
    table, _ = uncertain(table)
    slope = _no_slope(table)
    z = logit(table.scores)
    if slope is None:
        try:
            a, b = fit_logistic([z], table.negative, table.positive).coefficients.tolist()
        except ConvergenceError:
            slope = math.nan
    if slope is not None:
        return CoxLine(math.nan, slope, np.zeros((2, 2)), (math.inf, math.inf))
    q = sigmoid(a + b * z)
    chance = q * (1.0 - q)
    each = table.weight * chance
    information = float(each.sum())
    middle = float(each @ z) / information
    spread = float(each @ (z - middle) ** 2)
    if not spread > 1e-18 * information * (1.0 + float(np.abs(z).max()) ** 2):
        return CoxLine(math.nan, math.nan, np.zeros((2, 2)), (math.inf, math.inf))
    off = -middle / spread
    inverse = np.array([[1.0 / information - middle * off, off], [off, 1.0 / spread]])
    _, _, q0, q1 = class_columns(table)
    # labels that the line does not explain vary more than it says; rare ones may seem not to
    parts = squares(table) * chance, q0 * q**2 + q1 * (1.0 - q) ** 2
    pulls = [(first + second * z) ** 2 for first, second in inverse]
    first, second = (max(float(part @ pull) for part in parts) for pull in pulls)
    return CoxLine(a, b, inverse, (first, second))


def _no_slope(table: ScoreTable) -> float | None:
    """What the slope is where no line can be fitted; None if one can."""
    if len(table) < 2 or not table.total_positive or not table.total_negative:
        return math.nan
    positive, negative = table.scores[table.positive > 0], table.scores[table.negative > 0]
    if positive.min() >= negative.max():
        return math.inf
    return -math.inf if positive.max() <= negative.min() else None


class OffsetIntercept(NamedTuple):
    """The intercept a of logit P(y) = a + logit p: what the log-odds lack on average.

    ``information`` is Σw·q(1 − q) with q = σ(a + logit p), ``deviation`` the standard error.
    """

    value: float
    information: float
    deviation: float

    def interval(self, level: float) -> Span:
        """Wald's interval."""
        return wald(self.value, self.deviation, level)

    def pull(self, p: Array, positive: Flags, total: float) -> Array:
        """How far each row moves it, times ``total`` weight."""
        inner = (p > 0.0) & (p < 1.0)
        q = sigmoid(self.value + logit(np.where(inner, p, 0.5)))
        return np.where(inner, total / self.information * (positive - q), 0.0)


def offset_intercept(table: ScoreTable) -> OffsetIntercept:
    """The intercept at slope 1, from all predictions but 0 and 1. O(D) a step.

    It is infinite where there is one class.
    """
    table, _ = uncertain(table)
    if not len(table):
        return OffsetIntercept(math.nan, 0.0, math.inf)
    if not table.total_positive or not table.total_negative:
        return OffsetIntercept(math.inf if table.total_positive else -math.inf, 0.0, math.inf)
    z, weight = logit(table.scores), table.weight

    def short(a: float) -> float:
        """Expected minus observed: rows that are nearly certain count by what they lack."""
        high = a + z > 0.0
        lacking = np.where(high, -sigmoid(-a - z), sigmoid(a + z))
        return float(weight[high].sum() - table.total_positive) + float(weight @ lacking)

    a = float(brentq(short, -FURTHEST - z.max(), FURTHEST - z.min(), xtol=1e-14, rtol=1e-14))
    q, rest = sigmoid(a + z), sigmoid(-a - z)
    information = float(weight @ (q * rest))
    _, _, q0, q1 = class_columns(table)
    promised, seen = squares(table) @ (q * rest), q0 @ q**2 + q1 @ rest**2
    return OffsetIntercept(a, information, math.sqrt(float(max(promised, seen))) / information)


# --- observed by expected -----------------------------------------------------------------------


def ratio_interval(sample: ScoreTable, level: float) -> Span:
    """The interval of observed/expected: all ratios r for which a score test allows rates r·p.

    (O − rE)² = z²·c·V(r) with O = Σwy, E = Σwp and V(r) = Σw²·rp(1 − rp); above r = 1, where rates
    may exceed 1, Σw²·rp(1 − p). c ≥ 1 is how much more the labels vary around r·p than V says at
    their own ratio. With one prediction, c = 1 and r ≤ 1 it is Wilson's of the rate, divided by
    the prediction. E must be above 0; weights are in units of rows.
    """
    q, (_, _, q0, q1) = squares(sample), class_columns(sample)
    observed, expected = sample.total_positive, float(sample.weight @ sample.scores)
    share = sample.scores / expected  # of all that is expected: the unknown is r·E
    first, second = float(q @ share), float(q @ share**2)
    promised = observed * (first - min(observed, expected) * second)
    seen = float(q0 @ (observed * share) ** 2 + q1 @ (1.0 - observed * share) ** 2)
    spread = normal(level) ** 2 * (max(seen / promised, 1.0) if promised > 0.0 else 1.0)

    def ends(linear: float, square: float) -> Span:
        """The roots x = r·E of (O − x)² = linear·x − square·x²."""
        outer, middle = 1.0 + square, observed + linear / 2.0
        half = math.sqrt(max(middle**2 - outer * observed**2, 0.0))
        return (middle - half) / outer, (middle + half) / outer

    below = ends(spread * first, spread * second)
    above = ends(spread * (first - expected * second), 0.0)
    low, high = (one if one <= expected else other for one, other in zip(below, above, strict=True))
    return max(min(low, observed), 0.0) / expected, max(high, observed) / expected
