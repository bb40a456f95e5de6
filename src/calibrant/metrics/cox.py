"""Cox's line through the log-odds: slope, intercept, observed by expected, and a test of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from calibrant.arrays import Array
from calibrant.data.score_table import ScoreTable
from calibrant.losses import logit
from calibrant.metrics.arguments import check_number, read_table
from calibrant.metrics.cox_line import cox_line, offset_intercept, ratio_interval, uncertain
from calibrant.metrics.interval_formulas import Span
from calibrant.metrics.weighted_cells import chance_variance, impossible, residuals, table_for_test
from calibrant.result_tables import Readable


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
        line.slope,
        line.interval(1, level),
        offset.value,
        offset.interval(level),
        ratio,
        ends,
        statistic,
        df,
        p_value,
        left_out,
        line.intercept,
        line.interval(0, level),
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
