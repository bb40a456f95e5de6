"""Cox's line through the log-odds: slope, intercepts, observed by expected, and a test of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ConvergenceError
from calibrant.kernels.logistic import fit_logistic
from calibrant.losses import logit, sigmoid
from calibrant.metrics.arguments import check_number, read_table
from calibrant.metrics.interval_formulas import Span, normal, wald
from calibrant.metrics.weighted_cells import (
    chance_variance,
    class_columns,
    impossible,
    residuals,
    squares,
    table_for_test,
    take_cells,
)
from calibrant.result_tables import Readable

#: an intercept beyond this says that a class is absent
FURTHEST = 100.0


@dataclass(frozen=True, repr=False)
class Cox(Readable):
    """The result of `cox`.

    Attributes
    ----------
    slope : float
        1 is best; below 1 predictions are too extreme, above too timid. Infinite where a threshold
        tells all positives from all negatives, NaN where all predictions are equal.
    slope_interval : (float, float)
    intercept : float
        What the log-odds lack on average, the slope being 1 ("calibration in the large"): 0 is
        best, above 0 too little is predicted.
    intercept_interval : (float, float)
    observed_expected : float
        Positives that came for each that was expected: 1 is best.
    observed_expected_interval : (float, float)
    statistic, df, p_value
        The test of intercept 0 and slope 1 together: a small p-value says that one of them is not.
    left_out : float
        The weight of predictions of exactly 0 or 1, which have no log-odds.
    line_intercept : float
        The intercept beside the slope, where both are fitted together; NaN without a line.
    line_intercept_interval : (float, float)
    """

    slope: float
    slope_interval: Span
    intercept: float
    intercept_interval: Span
    observed_expected: float
    observed_expected_interval: Span
    statistic: float
    df: int
    p_value: float
    left_out: float = 0.0
    line_intercept: float = math.nan
    line_intercept_interval: Span = (-math.inf, math.inf)


def cox(
    y: Any,
    p: Any = None,
    *,
    level: float = 0.95,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> Cox:
    """Calibration slope and intercept, observed by expected, and the test that all is well.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    level : float, default=0.95
        Confidence of the intervals.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    The slope is b of logit P(y) = a + b·logit p [1]_, beside its intercept a; the intercept is a of
    logit P(y) = a + logit p. Intervals are Wald's, with the variance J⁻¹VJ⁻¹ and the larger of
    V = Σw²q(1 − q)·uuᵀ and Σw²(y − q)²·uuᵀ, q the fitted probabilities and u = (1, logit p). That
    of observed/expected holds all ratios r that the score test of rates r·p does not refuse:
    (O − rE)² = z²·c·Σw²rp(1 − rp), O = Σwy, E = Σwp (above r = 1: rp(1 − p)), where c ≥ 1 is how
    much more the labels vary around r·p than such rates say.

    The test is the score test of a = 0 and b = 1: S = Σw(y − p)·(1, logit p), SᵀV⁻¹S against χ²
    with two degrees of freedom. Nothing is fitted for it, so its level holds also with few events.
    It looks at lines only: errors that bend pass it. O(D) a Newton step.

    References
    ----------
    .. [1] D. Cox, "Two further applications of a model for binary regression", 1958,
       doi:10.1093/biomet/45.3-4.562.

    Examples
    --------
    >>> found = cox([0, 0, 1, 0, 1, 1] * 50, [0.2, 0.3, 0.4, 0.6, 0.7, 0.8] * 50)
    >>> round(found.slope, 2), round(found.intercept, 2), round(found.observed_expected, 2)
    (1.74, 0.0, 1.0)
    """
    check_number("level", level, 0.0, 1.0)
    given = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    table, left_out = uncertain(given)
    statistic, df = _score_test(table)
    p_value = float(chdtrc(df, statistic)) if df else 1.0
    if impossible(given):  # also where no other prediction is left to test
        statistic, p_value = math.inf, 0.0
    line, offset = cox_line(table), offset_intercept(table)
    ratio, ends = _observed_expected(given, level)
    return Cox(
        line.slope.value,
        line.slope.interval(level),
        offset.value,
        offset.interval(level),
        ratio,
        ends,
        statistic,
        df,
        p_value,
        left_out,
        line.intercept.value,
        line.intercept.interval(level),
    )


def _observed_expected(table: ScoreTable, level: float) -> tuple[float, Span]:
    expected = float(table.weight @ table.scores)
    if expected > 0.0:
        return table.total_positive / expected, ratio_interval(table, level)
    return (math.inf if table.total_positive else math.nan), (0.0, math.inf)


def _score_test(table: ScoreTable) -> tuple[float, int]:
    """SᵀV⁻¹S of the residuals along 1 and the log-odds, and its degrees of freedom."""
    if not len(table):
        return 0.0, 0
    directions = score_directions(table)
    along = [float(residuals(table) @ each) for each in directions]
    return sum(each * each for each in along), len(directions)  # each**2 may be an OverflowError


def score_directions(table: ScoreTable) -> list[Array]:
    """Two directions at most, whose squared products with the residuals sum to SᵀV⁻¹S.

    Each product has variance 1, and they are uncorrelated, if the predictions are right.
    """
    p = table.scores
    variance = chance_variance(table)
    whole = float(variance.sum())
    if whole == 0.0:
        return []
    z = logit(p)
    z = z - float(variance @ z) / whole  # then the two sums are independent
    level = np.full(len(p), 1.0 / math.sqrt(whole))
    spread = float(variance @ z**2)
    inner = variance > 0.0
    if spread <= 1e-18 * whole * (1.0 + float(np.abs(logit(p[inner])).max()) ** 2):
        return [level]
    return [level, z / math.sqrt(spread)]


# --- the line and the intercept -----------------------------------------------------------------


def uncertain(table: ScoreTable) -> tuple[ScoreTable, float]:
    """The table without predictions of exactly 0 or 1, which have no log-odds; their weight."""
    certain = (table.scores == 0.0) | (table.scores == 1.0)
    return take_cells(table, ~certain), float(table.weight[certain].sum())


class Coefficient(NamedTuple):
    """A coefficient of a line through the log-odds, and its standard error.

    ``pull`` says how far each row moves it, times a total weight, from p and who is positive.
    ``missing`` says why the value is not finite, if it is not.
    """

    value: float
    error: float = math.inf
    pull: Callable[[Array, Flags, float], Array] = lambda p, positive, total: np.zeros(len(p))
    missing: str = ""

    def interval(self, level: float) -> Span:
        """Wald's interval."""
        return wald(self.value, self.error, level)


class CoxLine(NamedTuple):
    """logit P(y) = intercept + slope · logit p, fitted to the rows with 0 < p < 1."""

    intercept: Coefficient
    slope: Coefficient


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
        return _no_line(slope)
    q = sigmoid(a + b * z)
    chance = q * (1.0 - q)
    each = table.weight * chance
    information = float(each.sum())
    middle = float(each @ z) / information
    spread = float(each @ (z - middle) ** 2)
    if not spread > 1e-18 * information * (1.0 + float(np.abs(z).max()) ** 2):
        return _no_line(math.nan)
    off = -middle / spread
    inverse = np.array([[1.0 / information - middle * off, off], [off, 1.0 / spread]])
    _, _, q0, q1 = class_columns(table)
    # labels that the line does not explain vary more than it says; rare ones may seem not to
    parts = squares(table) * chance, q0 * q**2 + q1 * (1.0 - q) ** 2
    pulls = [(first + second * z) ** 2 for first, second in inverse]
    first, second = (math.sqrt(max(float(part @ pull) for part in parts)) for pull in pulls)
    return CoxLine(
        Coefficient(a, first, partial(_line_pull, a, b, inverse[0])),
        Coefficient(b, second, partial(_line_pull, a, b, inverse[1])),
    )


def _no_line(slope: float) -> CoxLine:
    """The line where there is none: the slope is infinite, or NaN."""
    missing = "needs two different predictions between 0 and 1"
    if math.isinf(slope):
        missing = "was left out: a threshold tells the classes apart"
    return CoxLine(Coefficient(math.nan, missing=missing), Coefficient(slope, missing=missing))


def _no_slope(table: ScoreTable) -> float | None:
    """What the slope is where no line can be fitted; None if one can."""
    if len(table) < 2 or not table.total_positive or not table.total_negative:
        return math.nan
    positive, negative = table.scores[table.positive > 0], table.scores[table.negative > 0]
    if positive.min() >= negative.max():
        return math.inf
    return -math.inf if positive.max() <= negative.min() else None


def _line_pull(
    a: float, b: float, inverse: Array, p: Array, positive: Flags, total: float
) -> Array:
    """How far each row moves a coefficient of the line of intercept a and slope b.

    ``inverse`` is its row of the inverse information: that of Σw·q(1 − q)·uuᵀ, u = (1, logit p) and
    q the fitted probabilities.
    """
    inner = (p > 0.0) & (p < 1.0)
    z = logit(np.where(inner, p, 0.5))
    left = positive - sigmoid(a + b * z)
    first, second = inverse
    return np.where(inner, total * left * (first + second * z), 0.0)


def _offset_pull(a: float, information: float, p: Array, positive: Flags, total: float) -> Array:
    """How far each row moves the intercept at slope 1; ``information`` is Σw·q(1 − q)."""
    inner = (p > 0.0) & (p < 1.0)
    q = sigmoid(a + logit(np.where(inner, p, 0.5)))
    return np.where(inner, total / information * (positive - q), 0.0)


def offset_intercept(table: ScoreTable) -> Coefficient:
    """The intercept a of logit P(y) = a + logit p: what the log-odds lack on average.

    It is fitted to all predictions but 0 and 1, and infinite where there is one class. O(D) a step.
    """
    table, _ = uncertain(table)
    if not table.total_positive or not table.total_negative:
        value = math.inf if table.total_positive else -math.inf
        missing = "needs both classes at predictions between 0 and 1"
        return Coefficient(value if len(table) else math.nan, missing=missing)
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
    error = math.sqrt(float(max(promised, seen))) / information
    return Coefficient(a, error, partial(_offset_pull, a, information))


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
