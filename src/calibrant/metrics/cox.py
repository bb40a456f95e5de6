"""Cox's line through the log-odds: slope, intercept, observed by expected, and a test of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc

from calibrant.data.score_table import ScoreTable
from calibrant.kernels.logistic import fit_logistic
from calibrant.losses import logit, sigmoid
from calibrant.metrics.arguments import check_number, read_table
from calibrant.metrics.interval_formulas import Span, normal, share_interval
from calibrant.metrics.weighted_cells import impossible, residuals, squares, table_for_test
from calibrant.result_tables import Readable

__all__ = ["Cox", "cox"]

Array = NDArray[np.float64]

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
    The slope is b of logit P(y) = a + b·logit p [1]_, the intercept a of logit P(y) = a + logit p.
    Intervals are Wald's, with the variance J⁻¹VJ⁻¹, V = Σw²p(1 − p)·uuᵀ; that of observed/expected
    is Wilson's of the rate, divided by the mean prediction. The test is the score test of a = 0 and
    b = 1: S = Σw(y − p)·(1, logit p), SᵀV⁻¹S against χ² with two degrees of freedom. Nothing is
    fitted for it, so its level holds also with few events. It looks at lines only: errors that bend
    pass it. O(D) a Newton step.

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
    expected = float(given.weight @ given.scores) / given.total
    rate = given.total_positive / given.total
    low, high = share_interval(rate, given.effective_size, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, *ends = (np.array([rate, low, high]) / expected).tolist()
    certain = (given.scores == 0.0) | (given.scores == 1.0)
    left_out = float(given.weight[certain].sum())
    table = _without(given, certain) if left_out else given
    statistic, df = _score_test(table)
    if impossible(given):
        statistic = math.inf
    slope, slope_span = _slope(table, level)
    intercept, intercept_span = _intercept(table, level)
    return Cox(
        slope,
        slope_span,
        intercept,
        intercept_span,
        ratio,
        (ends[0], ends[1]),
        statistic,
        df,
        float(chdtrc(df, statistic)) if df else 1.0,
        left_out,
    )


def _without(table: ScoreTable, cells: NDArray[np.bool_]) -> ScoreTable:
    columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
    return ScoreTable.from_counts(table.scores[~cells], *(column[~cells] for column in columns))


def _score_test(table: ScoreTable) -> tuple[float, int]:
    """SᵀV⁻¹S of the residuals along 1 and the log-odds, and its degrees of freedom."""
    if not len(table):
        return 0.0, 0
    p = table.scores
    variance = squares(table) * p * (1.0 - p)
    z = logit(p)
    z = z - float(variance @ z) / float(variance.sum())  # then the two sums are independent
    left = residuals(table)
    first = float(left.sum()) ** 2 / float(variance.sum())
    spread = float(variance @ z**2)
    if spread <= 1e-18 * float(variance.sum()) * (1.0 + float(np.abs(logit(p)).max()) ** 2):
        return first, 1
    return first + float(left @ z) ** 2 / spread, 2


def _slope(table: ScoreTable, level: float) -> tuple[float, Span]:
    nothing = (-math.inf, math.inf)
    if len(table) < 2:
        return math.nan, nothing
    if not table.total_positive or not table.total_negative:
        return math.nan, nothing
    z = logit(table.scores)
    positive, negative = z[table.positive > 0], z[table.negative > 0]
    if positive.min() >= negative.max():
        return math.inf, nothing
    if positive.max() <= negative.min():
        return -math.inf, nothing
    a, b = fit_logistic([z], table.negative, table.positive).coefficients.tolist()
    p = sigmoid(a + b * z)
    u = np.vstack((np.ones(len(z)), z))
    information = (u * (table.weight * p * (1.0 - p))) @ u.T
    variance = (u * (squares(table) * p * (1.0 - p))) @ u.T
    inverse = np.linalg.inv(information)
    half = normal(level) * math.sqrt(float((inverse @ variance @ inverse)[1, 1]))
    return b, (b - half, b + half)


def _intercept(table: ScoreTable, level: float) -> tuple[float, Span]:
    if not len(table) or not table.total_positive:
        return -math.inf, (-math.inf, math.inf)
    if not table.total_negative:
        return math.inf, (-math.inf, math.inf)
    z, weight = logit(table.scores), table.weight

    def short(a: float) -> float:
        return float(weight @ sigmoid(a + z)) - table.total_positive

    a = float(brentq(short, -FURTHEST - z.max(), FURTHEST - z.min(), xtol=1e-14, rtol=1e-14))
    p = sigmoid(a + z)
    information = float(weight @ (p * (1.0 - p)))
    half = normal(level) * math.sqrt(float(squares(table) @ (p * (1.0 - p)))) / information
    return a, (a - half, a + half)
