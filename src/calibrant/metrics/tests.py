"""Tests of calibration: goodness of fit, Cox's line, a combination, cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, erfc, ndtr

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import check_word
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.errors import ConvergenceError, InputError, refuse_foreign_names
from calibrant.losses import logit, sigmoid
from calibrant.metrics.chance import Span, normal_quantile
from calibrant.metrics.redraws import EXACT, CellRows, redraw, redrawn_p_value, redrawn_residuals
from calibrant.metrics.tables import (
    BINNINGS,
    chance_variance,
    check_number,
    check_weights,
    check_whole,
    deviation,
    group_starts,
    impossible,
    last_cells,
    read_generator,
    read_table,
    residuals,
    squares,
    table_for_test,
    take_cells,
)
from calibrant.result_tables import Readable
from calibrant.solvers.logistic import fit_logistic

#: an intercept beyond this says that a class is absent
FURTHEST = 100.0
#: a class with less than this part of the weight is absent: floats cannot hold its squares
TINY = 1e-150


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
    table, left_out = inner_cells(given)
    along = [float(residuals(table) @ each) for each in score_directions(table)]
    statistic, df = float(sum(each * each for each in along)), len(along)  # each**2 may overflow
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
    """The ratio of observed to expected positives, and its interval."""
    expected = float(table.weight @ table.scores)
    if expected > 0.0:
        return table.total_positive / expected, ratio_interval(table, level)
    return (math.inf if table.total_positive else math.nan), (0.0, math.inf)


def score_directions(table: ScoreTable) -> list[Array]:
    """The directions of Cox's test: weights for the residuals, of which the squared sums add up to
    the statistic.

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


def inner_cells(table: ScoreTable) -> tuple[ScoreTable, float]:
    """The table without predictions of exactly 0 or 1, and the weight of those."""
    certain = (table.scores == 0.0) | (table.scores == 1.0)
    return take_cells(table, ~certain), float(table.weight[certain].sum())


class Coefficient(NamedTuple):
    """A coefficient of Cox's line, with its standard error and how far each row moves it.

    ``influence`` says how far each row moves it, times a total weight, from p and who is positive.
    ``missing`` says why the value is not finite, if it is not.
    """

    value: float
    error: float = math.inf
    influence: Callable[[Array, Flags, float], Array] = lambda p, positive, total: np.zeros(len(p))
    missing: str = ""

    def interval(self, level: float) -> Span:
        """Wald's interval; everything where the value is not finite."""
        if not math.isfinite(self.value):
            return -math.inf, math.inf
        half = normal_quantile(level) * self.error
        return self.value - half, self.value + half


class CoxLine(NamedTuple):
    """The line logit P(y) = intercept + slope · logit p, fitted to rows with 0 < p < 1."""

    intercept: Coefficient
    slope: Coefficient


def cox_line(table: ScoreTable) -> CoxLine:
    """Cox's line of a table. O(D) a Newton step.

    The slope is infinite where a threshold tells the classes apart. It is NaN where there is one
    class or one prediction, and where weights are so unequal that floats do not tell it.
    """
    table, _ = inner_cells(table)
    slope = _slope_without_line(table)
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
    if not information > TINY * table.total:
        return _no_line(math.nan)
    middle = float(each @ z) / information
    spread = float(each @ (z - middle) ** 2)
    if not spread > 1e-18 * information * (1.0 + float(np.abs(z).max()) ** 2):
        return _no_line(math.nan)
    off = -middle / spread
    inverse = np.array([[1.0 / information - middle * off, off], [off, 1.0 / spread]])
    _, _, q0, q1 = table.columns
    # labels that the line does not explain vary more than it says; rare ones may seem not to
    parts = squares(table) * chance, q0 * q**2 + q1 * (1.0 - q) ** 2
    pulls = [(first + second * z) ** 2 for first, second in inverse]
    first, second = (math.sqrt(max(float(part @ pull) for part in parts)) for pull in pulls)
    return CoxLine(
        Coefficient(a, first, partial(_line_moves, a, b, inverse[0])),
        Coefficient(b, second, partial(_line_moves, a, b, inverse[1])),
    )


def _no_line(slope: float) -> CoxLine:
    """What stands for the line where there is none; the slope is infinite, or NaN."""
    missing = "needs two different predictions between 0 and 1"
    if math.isinf(slope):
        missing = "was left out: a threshold tells the classes apart"
    return CoxLine(Coefficient(math.nan, missing=missing), Coefficient(slope, missing=missing))


def _slope_without_line(table: ScoreTable) -> float | None:
    """The slope where no line can be fitted, ±∞ or NaN; None where one can."""
    if len(table) < 2 or not table.total_positive or not table.total_negative:
        return math.nan
    positive, negative = table.scores[table.positive > 0], table.scores[table.negative > 0]
    if positive.min() >= negative.max():
        return math.inf
    return -math.inf if positive.max() <= negative.min() else None


def _line_moves(
    a: float, b: float, inverse: Array, p: Array, positive: Flags, total: float
) -> Array:
    """How far each row moves the intercept, or the slope, of Cox's line.

    ``inverse`` is its row of the inverse information: that of Σw·q(1 − q)·uuᵀ, u = (1, logit p) and
    q the fitted probabilities.
    """
    inner = (p > 0.0) & (p < 1.0)
    z = logit(np.where(inner, p, 0.5))
    left = positive - sigmoid(a + b * z)
    first, second = inverse
    return np.where(inner, total * left * (first + second * z), 0.0)


def offset_intercept(table: ScoreTable) -> Coefficient:
    """The intercept a of logit P(y) = a + logit p: what the log-odds lack on average.

    It is fitted to all predictions but 0 and 1, and infinite where there is one class. O(D) a step.
    """
    table, _ = inner_cells(table)
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

    low, high = -FURTHEST - z.max(), FURTHEST - z.min()
    for end, absent in ((low, short(low) >= 0.0), (high, short(high) <= 0.0)):
        if absent:  # a class has so little weight
            return Coefficient(math.copysign(math.inf, end), missing="needs both classes")
    a = float(brentq(short, low, high, xtol=1e-14, rtol=1e-14))
    q, rest = sigmoid(a + z), sigmoid(-a - z)
    information = float(weight @ (q * rest))
    _, _, q0, q1 = table.columns
    promised, seen = squares(table) @ (q * rest), q0 @ q**2 + q1 @ rest**2
    error = math.sqrt(float(max(promised, seen))) / information

    def influence(p: Array, positive: Flags, total: float) -> Array:
        inner = (p > 0.0) & (p < 1.0)
        q = sigmoid(a + logit(np.where(inner, p, 0.5)))
        return np.where(inner, total / information * (positive - q), 0.0)

    return Coefficient(a, error, influence)


# --- observed by expected -----------------------------------------------------------------------


def ratio_interval(sample: ScoreTable, level: float) -> Span:
    """The interval of observed/expected positives, by inverting a score test.

    (O − rE)² = z²·c·V(r) with O = Σwy, E = Σwp and V(r) = Σw²·rp(1 − rp); above r = 1, where rates
    may exceed 1, Σw²·rp(1 − p). c ≥ 1 is how much more the labels vary around r·p than V says at
    their own ratio. With one prediction, c = 1 and r ≤ 1 it is Wilson's of the rate, divided by
    the prediction. E must be above 0; weights are in units of rows.
    """
    q, (_, _, q0, q1) = squares(sample), sample.columns
    observed, expected = sample.total_positive, float(sample.weight @ sample.scores)
    share = sample.scores / expected  # of all that is expected: the unknown is r·E
    first, second = float(q @ share), float(q @ share**2)
    promised = observed * (first - min(observed, expected) * second)
    seen = float(q0 @ (observed * share) ** 2 + q1 @ (1.0 - observed * share) ** 2)
    spread = normal_quantile(level) ** 2 * (max(seen / promised, 1.0) if promised > 0.0 else 1.0)

    def ends(linear: float, square: float) -> Span:
        """The roots x = r·E of (O − x)² = linear·x − square·x²."""
        outer, middle = 1.0 + square, observed + linear / 2.0
        half = math.sqrt(max(middle**2 - outer * observed**2, 0.0))
        return (middle - half) / outer, (middle + half) / outer

    below = ends(spread * first, spread * second)
    above = ends(spread * (first - expected * second), 0.0)
    low, high = (one if one <= expected else other for one, other in zip(below, above, strict=True))
    return max(min(low, observed), 0.0) / expected, max(high, observed) / expected


# --- Cumulative differences between labels and predictions: calibration without bins or kernels ---


#: the terms of a series are numbered 1 to 40; where a series is used, the 40th is below 1e-300
TERMS = np.arange(1, 41, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class ECCE(Readable):
    """The result of `ecce`.

    Attributes
    ----------
    range : float
        ECCE-R: the largest |mean over an interval of predictions of w(y − p)|, as a share of all
        weight. Smaller is better; between 0 and 1.
    maximum : float
        ECCE-MAD: the same over intervals that begin at the lowest prediction.
    sigma : float
        The standard deviation of the sum of all differences if the predictions are right, in the
        same unit.
    range_p_value, maximum_p_value : float
        The chance of at least this range, or maximum, if the predictions are right.
    replicates : int or None
        How many times the labels were redrawn for that; None where a Brownian motion tells it.
    mean : float
        The mean over all rows of |F|, the error accumulated up to each: between 0 and ``maximum``.
    """

    range: float
    maximum: float
    sigma: float
    range_p_value: float
    maximum_p_value: float
    replicates: int | None = None
    mean: float = math.nan

    @property
    def range_statistic(self) -> float:
        """The range in standard deviations (Kuiper's statistic)."""
        return _in_sigmas(self.range, self.sigma)

    @property
    def maximum_statistic(self) -> float:
        """The maximum in standard deviations (Kolmogorov's and Smirnov's statistic)."""
        return _in_sigmas(self.maximum, self.sigma)

    @property
    def p_value(self) -> float:
        """The p-value of the range, which finds errors wherever they begin."""
        return self.range_p_value


def ecce(
    y: Any,
    p: Any = None,
    *,
    replicates: int | None = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> ECCE:
    """Empirical cumulative calibration error: the worst sum of errors over an interval of p.

    Smaller is better; small p-values say that the predictions are not right.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    replicates : int or None, default=1000
        How many times labels are redrawn from p for the p-values, which are at least
        1/(replicates + 1). None: the p-values of a Brownian motion, without chance.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    In the order of p, F_k = Σ_{i ≤ k} wᵢ(yᵢ − pᵢ)/Σw with F₀ = 0; range = max F − min F and maximum
    = max |F|; mean = Σ wₖ|F_k|/Σw, in which every row of a tie has the F at its end. Ties are taken
    together: F is only looked at between distinct predictions.

    Labels are redrawn y*ᵢ ~ Bernoulli(pᵢ), and p-value = (1 + #{range* ≥ range})/(R + 1), valid for
    every n and distribution of p; the same for the maximum. O(R·D), so that with R·D above 2·10⁷
    (more than 20,000 distinct predictions) or ``replicates=None`` the limit is taken instead. If
    the predictions are right, F/σ with σ² = Σw²p(1 − p)/(Σw)² comes near a Brownian motion, and

    P(range/σ > x) → 8 Σ_k (−1)^{k−1} k Q(kx), P(maximum/σ > x) → 4 Σ_k (−1)^k Q((2k + 1)x),

    Q the upper tail of the normal distribution; for small x the equivalent series that converges
    there is taken, so that both are exact to 1e-12 everywhere. A walk of few steps reaches less far
    than a Brownian motion: by the limit, few distinct predictions give p-values that are too large
    (with three of them 1.4 % of false alarms at the 5 % level). They are too small
    where less than one positive (or negative) is expected in all: with 0.1 expected, a single one
    that comes gives 9 % of false alarms. Something that happened at probability 0 or 1 makes both
    p-values 0.

    It misleads: errors of one sign that are spread thinly over all predictions weigh as much as
    a large error in a narrow interval; and it says that something is wrong, not where. Look at the
    reliability diagram.

    References
    ----------
    .. [1] I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu, "Metrics of calibration for
       probabilistic predictions", 2022, arXiv:2205.09680.
    .. [2] W. Feller, "The asymptotic distribution of the range of sums of independent random
       variables", 1951, doi:10.1214/aoms/1177729589.

    Examples
    --------
    >>> result = ecce([0, 1, 1, 0], [0.25, 0.5, 0.5, 0.75])
    >>> result.range, result.maximum, result.mean
    (0.25, 0.1875, 0.109375)
    >>> result.p_value > 0.05
    True
    """
    if replicates is not None:
        check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    table = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    total, cells = table.total, len(table)
    left = residuals(table)
    reach, top = (float(found[0]) / total for found in _range_and_maximum(left[None, :]))
    mean = float(table.weight @ np.abs(np.cumsum(left))) / total / total
    sigma = deviation(table) / total
    redrawn = replicates if replicates is not None and replicates * cells <= EXACT else None
    if impossible(table):
        beyond = 0.0, 0.0
    elif redrawn is None:
        beyond = (range_beyond(_in_sigmas(reach, sigma)), maximum_beyond(_in_sigmas(top, sigma)))
    else:
        found = [_range_and_maximum(left) for left in redrawn_residuals(table, redrawn, random)]
        ranges, tops = (np.concatenate(each) for each in zip(*found, strict=True))
        beyond = redrawn_p_value(ranges / total, reach), redrawn_p_value(tops / total, top)
    return ECCE(reach, top, sigma, *beyond, redrawn, mean)


def _range_and_maximum(left: Array) -> tuple[Array, Array]:
    """The range and the largest absolute value of each row's cumulative sums."""
    path = np.cumsum(left, axis=1)
    high, low = np.maximum(path.max(axis=1), 0.0), np.minimum(path.min(axis=1), 0.0)
    return high - low, np.maximum(high, -low)


def _in_sigmas(value: float, sigma: float) -> float:
    """A value in standard deviations; infinite where there is a value and no deviation."""
    if sigma > 0.0:
        return value / sigma
    return math.inf if value > 0.0 else 0.0


def range_beyond(x: float) -> float:
    """The chance that the range of a Brownian motion on [0, 1] is above x (Feller 1951).

    >>> round(range_beyond(2.4977), 4)
    0.05
    """
    if x > 2.0:
        signs = np.where(TERMS % 2 == 1, 8.0, -8.0)
        return min(1.0, float((signs * TERMS) @ ndtr(-TERMS * x)))
    if x < 0.1:
        return 1.0
    odd = (2.0 * TERMS - 1.0) ** 2
    inside = (8.0 / x**2 + 8.0 / (np.pi**2 * odd)) @ np.exp(-odd * np.pi**2 / (2.0 * x**2))
    return max(0.0, 1.0 - float(inside))


def maximum_beyond(x: float) -> float:
    """The chance that the largest |value| of a Brownian motion on [0, 1] is above x.

    >>> round(maximum_beyond(2.2414), 4)
    0.05
    """
    odd = 2.0 * TERMS - 1.0
    signs = np.where(TERMS % 2 == 1, 4.0, -4.0)
    if x > 1.5:
        return min(1.0, float(signs @ ndtr(-odd * x)))
    if x < 0.1:
        return 1.0
    inside = (signs / (np.pi * odd)) @ np.exp(-((odd * np.pi) ** 2) / (8.0 * x**2))
    return max(0.0, 1.0 - float(inside))


# --- One test of calibration from three, with an exact level --------------------------------------


#: groups of risk
GROUPS = 10
#: a table that is too large to be redrawn cell by cell is redrawn in so many runs of neighbours
RUNS = 200
#: a larger statistic counts as this
LARGEST = 1e300
#: values of a statistic that differ by this part of the largest are equal but for rounding
ROUNDING = 1e-10


@dataclass(frozen=True, repr=False)
class CalibrationTest(Readable):
    """The result of `calibration_test`.

    Attributes
    ----------
    p_value : float
        The chance of evidence as strong as this, of all three together, if the predictions are
        right.
    cox, spiegelhalter, hosmer_lemeshow : float
        The p-value of each alone. The smallest says what kind of error it is; they are no verdict
        by themselves, since three were asked.
    replicates : int
        How many times the labels were redrawn.
    """

    p_value: float
    cox: float
    spiegelhalter: float
    hosmer_lemeshow: float
    replicates: int


def calibration_test(
    y: Any,
    p: Any = None,
    *,
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> CalibrationTest:
    """Are the predictions right? One answer from the tests of Cox, Spiegelhalter and Hosmer.

    A small p-value says that the predictions are not right. The one to use if you use one: its
    level is exact, and it finds wrong rates, wrong slopes and local errors.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    The statistics are those of `cox` (a wrong rate or slope), `spiegelhalter` (too extreme or too
    timid) and `hosmer_lemeshow` (ten groups of equal weight; anything else). Labels are redrawn
    y*ᵢ ~ Bernoulli(pᵢ), R times. The data and the R redrawings are R + 1 samples that no order
    tells apart if the predictions are right; so the rank of each of them in each statistic gives
    it three p-values. They are combined as Σ cot(π·p-value) [1]_, and the rank of the data in this
    sum is the p-value: valid for every n and distribution of p, however the three depend on each
    other.

    Up to R·D = 2·10⁷ (20,000 distinct predictions) everything is drawn cell by cell. Beyond, cells
    are taken together to about 200 runs of neighbours, in the data and in the redrawings alike, and
    the sums of runs are drawn as in `ece_test`: Cox's and Spiegelhalter's statistics then see the
    mean of each run. Something that happened at probability 0 (or did not at 1) makes all p-values
    0. Ties are never split.

    It misleads where p was fitted to these rows, and with much data, where every model is found
    wrong, by however little: ``ece_test(...).debiased`` says by how much.

    References
    ----------
    .. [1] Y. Liu, J. Xie, "Cauchy combination test: a powerful test with analytic p-value
       calculation under arbitrary dependency structures", 2020,
       doi:10.1080/01621459.2018.1554485.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.random(400)
    >>> calibration_test(rng.random(400) < p, p).p_value > 0.05
    True
    >>> calibration_test(rng.random(400) < p**2, p).p_value < 0.01
    True
    """
    replicates = check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    given = read_table(y, p, sample_weight, pos_label)
    return _three_tests(given, weights, replicates, random)


def _three_tests(
    given: ScoreTable, weights: str, replicates: int, random: np.random.Generator
) -> CalibrationTest:
    """The three tests and their combination, with at most so many single draws."""
    table = table_for_test(given, weights)
    if impossible(table):
        return CalibrationTest(0.0, 0.0, 0.0, 0.0, replicates)
    three = _ThreeStatistics.of(given, table, one_by_one=replicates * len(table) <= EXACT)
    drawn: Iterable[Array] = redrawn_residuals(table, replicates, random)
    if len(three.starts) < len(table):
        drawn = [redraw(CellRows.of(table), three.starts, replicates, random)]
    seen = np.concatenate([three.statistics(left) for left in (three.left(table), *drawn)])
    each = np.column_stack([_p_values(column) for column in seen.T])
    # from the middle of the steps, so that no p-value is 1
    together = (1.0 / np.tan(np.pi * (each - 0.5 / (replicates + 1)))).sum(axis=1)
    cox, spiegelhalter, grouped = each[0].tolist()
    return CalibrationTest(float(_p_values(together)[0]), cox, spiegelhalter, grouped, replicates)


class _ThreeStatistics(NamedTuple):
    """Turns residuals into the statistics of Cox, Spiegelhalter, and Hosmer and Lemeshow.

    ``starts`` are the first cells of the runs; ``lines`` has a column for each direction of Cox's
    test, then one for Spiegelhalter's; ``groups`` begin at some of the runs.
    """

    starts: Index
    lines: Array
    groups: RiskGroups

    @classmethod
    def of(cls, given: ScoreTable, table: ScoreTable, *, one_by_one: bool) -> _ThreeStatistics:
        """What the statistics of a table need; large tables in runs of neighbouring cells."""
        deciles = group_starts(given, GROUPS, "mass")
        starts = np.arange(len(table))
        if not one_by_one:
            starts = np.union1d(group_starts(given, RUNS, "mass"), deciles)
        tilt = 1.0 - 2.0 * table.scores
        spread = deviation(table, tilt)
        tilt = tilt / spread if spread > 0.0 else np.zeros(len(table))
        lines = np.column_stack((*score_directions(table), tilt))
        variance = chance_variance(table)
        whole = np.add.reduceat(variance, starts)[:, None]
        summed = np.add.reduceat(variance[:, None] * lines, starts)
        lines = np.divide(summed, whole, out=np.zeros_like(summed), where=whole > 0.0)
        groups = RiskGroups.of(table, deciles)
        return cls(starts, lines, groups._replace(starts=np.searchsorted(starts, deciles)))

    def left(self, table: ScoreTable) -> Array:
        """Σw(y − p) of each run of the data, as a matrix of one line."""
        return np.add.reduceat(residuals(table), self.starts)[None, :]

    def statistics(self, left: Array) -> Array:
        """The three statistics of each sample of residuals: shape (samples, 3)."""
        along = left @ self.lines
        grouped = self.groups.parts(np.add.reduceat(left, self.groups.starts, axis=1))
        with np.errstate(over="ignore"):
            line = (along[:, :-1] ** 2).sum(axis=1)
        found = np.column_stack((line, np.abs(along[:, -1]), grouped.sum(axis=1)))
        return np.asarray(np.minimum(found, LARGEST))


def _p_values(values: Array) -> Array:
    """The p-value of each value among all of them: the share of values that are at least as large.

    >>> _p_values(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [0.5, 1.0, 0.5, 0.75]
    """
    largest = float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))
    steps = np.rint(values / (largest or 1.0) / ROUNDING)
    smaller = np.searchsorted(np.sort(steps), steps)
    return np.asarray((len(values) - smaller) / len(values))  # 10 of 200 are 0.05, to the bit


# --- Tests of calibration by one statistic: Hosmer–Lemeshow and Spiegelhalter ---------------------


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Readable):
    """The result of `hosmer_lemeshow`.

    Attributes
    ----------
    statistic : float
        Smaller is better; infinite where something impossible happened (a positive at p = 0, a
        negative at p = 1).
    df : int
        Degrees of freedom.
    p_value : float
        The chance of at least this statistic if the probabilities are right.
    groups : int
        Groups used.
    dropped : int
        Groups left out: empty, or with nothing to test (all p exactly 0 or all 1, and right).
    replicates : int or None
        How many times the labels were redrawn for the p-value; None where it is that of χ².
    chi2_p_value : float
        The p-value of χ² with ``df`` degrees of freedom, as it is published.
    """

    statistic: float
    df: int
    p_value: float
    groups: int
    dropped: int
    replicates: int | None = None
    chi2_p_value: float = math.nan


@refuse_foreign_names
def hosmer_lemeshow(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    binning: str = "mass",
    fitted: bool = False,
    replicates: int | None = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> HosmerLemeshow:
    """Hosmer–Lemeshow test: are the deviations of frequencies from predictions just chance?

    A small statistic (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    bins : int, default=10
        How many groups.
    binning : {"mass", "width"}, default="mass"
        Groups of equal weight, the authors' Ĉ (deciles of risk); or of equal width, fixed cuts, Ĥ.
    fitted : bool, default=False
        Whether p comes from a model fitted to these same rows: then df = G − 2 for G groups, else
        G, and the p-value is that of χ².
    replicates : int or None, default=1000
        How many times labels are redrawn from p for the p-value, which is at least
        1/(replicates + 1). None: the p-value of χ², as it is published.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then the p-value means something only for whole weights, and
        rescaling them rescales the statistic).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Σ_g (O_g − E_g)² / (n_g π_g (1 − π_g)) with O_g positives observed, E_g = Σ p expected,
    π_g = E_g/n_g. Labels are redrawn y*ᵢ ~ Bernoulli(pᵢ), and p-value = (1 + #{statistic* ≥
    statistic})/(R + 1), valid for every n, distribution of p and number of groups (how they are
    drawn: see `ece_test`). ``chi2_p_value`` is that of χ² with df degrees of freedom, and with
    ``replicates=None`` it is the p-value, too. With importance weights each part
    is divided by Σw²/Σw of its group, as the variance of a weighted sum asks. Ties are never
    divided: a border inside one moves to its end, and groups emptied that way are dropped and
    counted. O(D + G log D) after the table, without the redrawing.

    It misleads: with little data it rejects nothing, with much data everything; and it depends on
    the number of groups. Where a group expects fewer than about five positives or negatives, χ² is
    not the distribution of the statistic: with rare positives its p-values give 7 to 12 % of false
    alarms at the 5 % level, with U-shaped predictions and 50 rows 7 %. Redrawn labels give 5.

    References
    ----------
    .. [1] D. Hosmer, S. Lemeshow, "Goodness of fit tests for the multiple logistic regression
       model", 1980, doi:10.1080/03610928008827941.

    Examples
    --------
    >>> hosmer_lemeshow([0, 1, 0, 1], [0.25, 0.25, 0.5, 0.5], bins=2).statistic
    0.6666666666666666
    >>> hosmer_lemeshow([0, 1], [0.2, 0.9], binning="width").dropped
    8
    """
    bins = check_whole("bins", bins, 2)
    if replicates is not None:
        check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    check_word("binning", binning, BINNINGS)
    check_weights(weights)
    given = read_table(y, p, sample_weight, pos_label)
    table = table_in_rows(given, weights)
    groups = RiskGroups.of(table, group_starts(given, bins, binning))
    parts = groups.parts(np.add.reduceat(residuals(table), groups.starts))
    statistic = float(parts.sum())
    low, high = table.scores[groups.starts], table.scores[last_cells(groups.starts, len(table))]
    used = int(((high > 0) & (low < 1) | (parts > 0)).sum())
    if fitted and used < 3:
        raise InputError(
            f"with fitted=True at least 3 groups with something to test are needed, but {used} "
            "came. Ask for more bins, or use binning='mass'."
        )
    df = used - 2 if fitted else used
    by_chi2 = p_value = float(chdtrc(df, statistic)) if df else 1.0
    redrawn = None if fitted else replicates
    if redrawn is not None:
        p_value = 0.0
        if not impossible(table):
            drawn = redraw(CellRows.of(table), groups.starts, redrawn, random)
            p_value = redrawn_p_value(groups.parts(drawn).sum(axis=1), statistic)
    return HosmerLemeshow(statistic, df, p_value, used, bins - used, redrawn, by_chi2)


class RiskGroups(NamedTuple):
    """The groups of Hosmer and Lemeshow's test: first cell, weight, and variance of the number of
    positives."""

    starts: Index
    weight: Array
    variance: Array

    @classmethod
    def of(cls, table: ScoreTable, starts: Index) -> RiskGroups:
        """The groups of a table, from their first cells."""
        n, square, expected0, expected1 = (
            np.add.reduceat(column, starts)
            for column in (
                table.weight,
                squares(table),
                table.weight * (1.0 - table.scores),
                table.weight * table.scores,
            )
        )
        return cls(starts, n, expected1 * (expected0 / n) * (square / n))

    def parts(self, residual: Array) -> Array:
        """What each group adds to the statistic, from its Σw(y − p)."""
        rounding = np.where(self.variance == 0.0, 1e-12 * self.weight, 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where(np.abs(residual) <= rounding, 0.0, residual**2 / self.variance)


@dataclass(frozen=True, repr=False)
class Spiegelhalter(Readable):
    """The result of `spiegelhalter`.

    Attributes
    ----------
    statistic : float
        Z: 0 is best; above 0 the Brier score is worse than the predictions promise (they are too
        extreme), below 0 better (too timid). Infinite where something impossible happened.
    p_value : float
        The chance of at least this |Z| if the predictions are right.
    brier : float
        The Brier score.
    expected : float
        What the predictions say it should be, Σw p(1 − p)/Σw.
    """

    statistic: float
    p_value: float
    brier: float
    expected: float


def spiegelhalter(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> Spiegelhalter:
    """Spiegelhalter's test: is the Brier score what the predictions themselves promise?

    Z near 0 (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Z = Σ w(y − p)(1 − 2p) / √Σ w²(1 − 2p)² p(1 − p), compared with the normal distribution, two
    sides. The numerator is Σw times the Brier score minus its expectation Σw p(1 − p)/Σw. Ties
    and order do not matter. O(D) after the table. With nothing to test (all p are ½, or
    certain and right) Z = 0 and the p-value is 1.

    It misleads: it is blind to errors that cancel in the sum, above all to a wrong base rate where
    predictions lie on both sides of ½, and to anything at p = ½; and it is normal only where
    many rows have something to say (not with rare positives and few rows).

    References
    ----------
    .. [1] D. Spiegelhalter, "Probabilistic prediction in patient management and clinical trials",
       1986, doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> spiegelhalter([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    Spiegelhalter(statistic=-0.3273, p_value=0.7434, brier=0.135, expected=0.165)
    >>> spiegelhalter([1, 0] * 50, [0.1, 0.9] * 50).p_value < 1e-9
    True
    """
    table = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    tilt, total = 1.0 - 2.0 * table.scores, table.total
    excess, spread = float(residuals(table) @ tilt), deviation(table, tilt)
    promised = float(table.weight @ (table.scores * (1.0 - table.scores))) / total
    z = excess / spread if spread > 0.0 else 0.0
    if impossible(table):
        z = math.inf
    return Spiegelhalter(
        z, float(erfc(abs(z) / math.sqrt(2.0))), promised + excess / total, promised
    )
