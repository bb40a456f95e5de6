"""Cumulative differences between labels and predictions: calibration without bins or kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibrant.array_types import Array
from calibrant.metrics.arguments import check_whole, read_generator, read_table
from calibrant.metrics.redrawn_labels import EXACT, redrawn_residuals, share_as_far
from calibrant.metrics.weighted_cells import deviation, impossible, residuals, table_for_test
from calibrant.result_tables import Readable

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
    """

    range: float
    maximum: float
    sigma: float
    range_p_value: float
    maximum_p_value: float
    replicates: int | None = None

    @property
    def range_statistic(self) -> float:
        """``range``/``sigma``: compared with the range of a Brownian motion (Kuiper)."""
        return _ratio(self.range, self.sigma)

    @property
    def maximum_statistic(self) -> float:
        """``maximum``/``sigma``: compared with the maximum of one (Kolmogorov and Smirnov)."""
        return _ratio(self.maximum, self.sigma)

    @property
    def p_value(self) -> float:
        """The p-value of the range, which sees errors wherever they begin."""
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
    = max |F|. Ties are taken together: F is only looked at between distinct predictions.

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
    >>> result.range, result.maximum
    (0.25, 0.1875)
    >>> result.p_value > 0.05
    True
    """
    if replicates is not None:
        check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    table = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    total, cells = table.total, len(table)
    reach, top = (float(found[0]) / total for found in _reaches(residuals(table)[None, :]))
    sigma = deviation(table) / total
    redrawn = replicates if replicates is not None and replicates * cells <= EXACT else None
    if impossible(table):
        beyond = 0.0, 0.0
    elif redrawn is None:
        beyond = range_beyond(_ratio(reach, sigma)), maximum_beyond(_ratio(top, sigma))
    else:
        found = [_reaches(left) for left in redrawn_residuals(table, redrawn, random)]
        ranges, tops = (np.concatenate(each) for each in zip(*found, strict=True))
        beyond = share_as_far(ranges / total, reach), share_as_far(tops / total, top)
    return ECCE(reach, top, sigma, *beyond, redrawn)


def _reaches(left: Array) -> tuple[Array, Array]:
    """The range and the largest absolute value of the cumulative sums of each row, from 0 on."""
    path = np.cumsum(left, axis=1)
    high, low = np.maximum(path.max(axis=1), 0.0), np.minimum(path.min(axis=1), 0.0)
    return high - low, np.maximum(high, -low)


def _ratio(value: float, sigma: float) -> float:
    if sigma > 0.0:
        return value / sigma
    return math.inf if value > 0.0 else 0.0


def range_beyond(x: float) -> float:
    """P(range of a Brownian motion on [0, 1] > x) (Feller 1951).

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
    """P(max |Brownian motion on [0, 1]| > x).

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
