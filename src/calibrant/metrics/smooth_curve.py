"""ICI, E50, E90 and Emax: how far predictions are from a smooth calibration curve.

The curve is a restricted cubic spline:
logit P(y) = a + b·z + Σ c_j·s_j(z), z = logit p, where s_j are Harrell's restricted cubic splines:
cubic between the knots, straight beyond them. Right predictions, a = c = 0 and b = 1, are one of
its curves, so that the fit is not drawn away from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.errors import ConvergenceError
from calibrant.losses import logit, sigmoid
from calibrant.metrics.chance import (
    CELLS,
    MOST_CASES,
    Chance,
    DrawnModel,
    IntervalOptions,
    chance_from_models,
)
from calibrant.metrics.redraws import BLOCK
from calibrant.metrics.tables import read_table, squares, whole_power
from calibrant.metrics.tests import inner_cells
from calibrant.result_tables import Readable
from calibrant.solvers.logistic import fit_logistic

#: where the knots are, as shares of the weight (Harrell's); fewer where predictions are tied
KNOTS = (
    (0.05, 0.275, 0.5, 0.725, 0.95),
    (0.05, 0.35, 0.65, 0.95),
    (0.1, 0.5, 0.9),
)
#: sums of weights that differ by less than this share are equal
ROUNDING = 1e-12
#: information below this share of the largest says nothing about a direction
SINGULAR = 1e-10


@dataclass(frozen=True, repr=False)
class ICI(Readable):
    """The result of `ici`.

    Attributes
    ----------
    ici : float
        The mean of |p − curve(p)| over all rows: the integrated calibration index.
    e50, e90 : float
        The median of those distances, and the one that 90 % of the rows do not exceed.
    emax : float
        The largest of them, over the predictions that came.
    knots : tuple of float
        Where the pieces of the curve meet, as probabilities. Empty: it is a line in log-odds.
    coefficients : tuple of float
        Those of the curve in log-odds: of 1, logit p and each restricted cubic spline.
    """

    ici: float
    e50: float
    e90: float
    emax: float
    knots: tuple[float, ...]
    coefficients: tuple[float, ...]

    def curve(self, p: Any) -> Array:
        """The curve at predictions between 0 and 1; NaN elsewhere."""
        at = np.asarray(p, dtype=np.float64)
        inner = (at > 0.0) & (at < 1.0)
        made = SmoothCurve(logit(np.array(self.knots)), np.array(self.coefficients))
        found = np.full(at.shape, np.nan)
        found[inner] = sigmoid(made.log_odds(logit(at[inner])))
        return found


def ici(
    y: Any,
    p: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ICI:
    """Integrated calibration index: the mean distance from a smooth calibration curve.

    Smaller is better; minimum 0, maximum 1. E50, E90 and Emax come with it, and the curve.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    The curve is a logistic regression of the label on a restricted cubic spline of logit p [2]_:
    cubic between five knots, straight beyond them. Knots are the predictions up to which 5, 27.5,
    50, 72.5 and 95 % of the weight lie; four (5, 35, 65, 95 %) or three (10, 50, 90 %) where ties
    make some of them equal, then a line. Austin and Steyerberg [1]_ define the measures with loess;
    R's ``CalibrationCurves`` has this spline as ``smooth="rcs"``. Figures differ between smoothers:
    compare like with like. Rows of equal p share a distance. A prediction of exactly 0 or 1 has no
    log-odds: it is compared with its own frequency. E50 and E90 are quantiles of the weighted rows,
    midway where two distances are such.

    Chance makes these measures larger, above all Emax: right predictions have an ICI above 0. The
    intervals of ``evaluate(..., measures="clinical")`` tell how far. O(D) a Newton step.

    References
    ----------
    .. [1] P. Austin, E. Steyerberg, "The integrated calibration index (ICI) and related metrics for
       quantifying the calibration of logistic regression models", 2019, doi:10.1002/sim.8281.
    .. [2] F. Harrell, "Regression modeling strategies", 2015, doi:10.1007/978-3-319-19425-7.

    Examples
    --------
    >>> p = np.linspace(0.05, 0.95, 400)
    >>> found = ici(np.arange(400) * 37 % 100 < 100 * p**2, p)
    >>> round(found.ici, 3), round(found.e50, 3), round(found.e90, 3), round(found.emax, 3)
    (0.172, 0.21, 0.237, 0.241)
    >>> found.curve([0.5]).round(2).tolist()
    [0.27]
    """
    table = read_table(y, p, sample_weight, pos_label)
    curve = smooth_curve(table)
    gaps = curve_gaps(table, curve)
    return ICI(
        float(gaps.mean()[0]),
        float(gaps.quantile(0.5)[0]),
        float(gaps.quantile(0.9)[0]),
        float(gaps.largest()[0]),
        tuple(sigmoid(curve.knots).tolist()),
        tuple(curve.coefficients.tolist()),
    )


# --- the curve ----------------------------------------------------------------------------------


class SmoothCurve(NamedTuple):
    """A calibration curve in log-odds: a spline, given by its knots and coefficients.

    No knots: a straight line; with one coefficient alone a constant.
    """

    knots: Array
    coefficients: Array

    def log_odds(self, z: Array) -> Array:
        """The log-odds of the curve at predictions of log-odds z."""
        found = np.full(len(z), self.coefficients[0])
        for each, column in zip(self.coefficients[1:], spline_columns(z, self.knots), strict=False):
            found += each * column
        return found


def spline_columns(z: Array, knots: Array) -> list[Array]:
    """The columns of the regression: z, and Harrell's restricted cubic splines of z."""
    columns = [z]
    if not len(knots):
        return columns
    last, end = knots[-2:].tolist()
    unit = (end - float(knots[0])) ** 2

    def cubed(knot: float) -> Array:
        return whole_power(np.maximum(z - knot, 0.0))

    for knot in knots[:-2].tolist():
        tail = (end - knot) * cubed(last) - (last - knot) * cubed(end)
        columns.append((cubed(knot) - tail / (end - last)) / unit)
    return columns


def smooth_curve(table: ScoreTable) -> SmoothCurve:
    """The calibration curve of a table, by logistic regression on splines of log-odds. O(D) a
    Newton step.

    Knots are predictions that came, so that the splines are independent. There are fewer knots
    where quantiles are tied, and where weights are so unequal that floats do not tell the
    coefficients.
    """
    table, _ = inner_cells(table)
    if not len(table):
        return SmoothCurve(np.array([]), np.array([np.nan]))
    if not table.total_positive or not table.total_negative:
        return SmoothCurve(np.array([]), np.array([np.inf if table.total_positive else -np.inf]))
    z = logit(table.scores)
    weight = table.weight
    upto = np.cumsum(weight) / float(weight.sum())
    for shares in (*KNOTS, ()):
        knots = z[np.searchsorted(upto, np.array(shares) * (1.0 - ROUNDING))]
        if len(z) < max(len(knots), 2) or (np.diff(knots) <= 0.0).any():
            continue
        try:
            fit = fit_logistic(spline_columns(z, knots), table.negative, table.positive)
        except ConvergenceError:
            continue
        return SmoothCurve(knots, fit.coefficients)
    rate = np.array([table.total_positive / table.total])
    return SmoothCurve(np.array([]), logit(rate))


# --- distances from the curve -------------------------------------------------------------------


class CurveGaps(NamedTuple):
    """The distance of each cell from a curve, and the cell's weight. There is a line for each
    curve."""

    gap: Array
    weight: Array

    def mean(self) -> Array:
        """The ICI: the mean distance."""
        return np.asarray((self.gap * self.weight).sum(axis=1) / self.weight.sum(axis=1))

    def largest(self) -> Array:
        """Emax: the largest distance."""
        return np.asarray(self.gap.max(axis=1))

    def quantile(self, share: float) -> Array:
        """The distance that a share of the weight does not exceed."""
        order = np.argsort(self.gap, axis=1, kind="stable")
        gap = np.take_along_axis(self.gap, order, axis=1)
        upto = np.cumsum(np.take_along_axis(self.weight, order, axis=1), axis=1)
        wanted, last = share * upto[:, -1:], self.gap.shape[1] - 1
        low = (upto < wanted * (1.0 - ROUNDING)).sum(axis=1, keepdims=True)
        high = (upto <= wanted * (1.0 + ROUNDING)).sum(axis=1, keepdims=True)
        ends = [np.take_along_axis(gap, np.minimum(at, last), axis=1)[:, 0] for at in (low, high)]
        return np.asarray((ends[0] + ends[1]) / 2.0)


def curve_gaps(table: ScoreTable, curve: SmoothCurve) -> CurveGaps:
    """The distance of each prediction of a table from its curve.

    Predictions of exactly 0 or 1 have no log-odds: their own frequency stands for the curve.
    """
    gap = np.abs(table.scores - table.rate)
    inner = (table.scores > 0.0) & (table.scores < 1.0)
    p = table.scores[inner]
    gap[inner] = np.abs(p - sigmoid(curve.log_odds(logit(p))))
    return CurveGaps(gap[None], table.weight[None])


# --- what chance does to them -------------------------------------------------------------------


def chance_of_curve(
    measures: Mapping[str, OfCurve], table: ScoreTable, options: IntervalOptions
) -> dict[str, Chance]:
    """Bias, interval and noise of measures of the smooth curve, from curves drawn at random.
    O(replicates · min(D, `CELLS`))."""
    sample = table_in_rows(table.pool(CELLS), options.weights)
    inner = (sample.scores > 0.0) & (sample.scores < 1.0)
    if not inner.any():
        return {}
    z = logit(sample.scores[inner])
    fitted = smooth_curve(sample)
    right, curve = (
        curve_model(sample, inner, eta, fitted.knots) for eta in (z, fitted.log_odds(z))
    )
    return chance_from_models(measures, right, curve, sample.effective_size, options)


def curve_model(sample: ScoreTable, inner: Flags, eta: Array, knots: Array) -> DrawnModel:
    """A model whose curves vary around one of log-odds ``eta`` as fits do.

    Coefficients of a curve are from their normal distribution, and the number of rows of each cell
    is from Poisson's. Predictions of 0 or 1 are not ``inner``: their own frequency stands for the
    curve, and varies.
    """
    p, n, q, rate = sample.scores, sample.weight, squares(sample), sample.rate
    cases = np.divide(n**2, q, out=np.ones_like(n), where=q > 0.0)
    cases = np.minimum(cases, MOST_CASES)  # of weight q/n each
    certain = np.maximum(np.rint(cases[~inner]), 1.0).astype(np.int64)
    deviations = _curve_deviations(sample, inner, eta, knots)

    def draw(count: int, random: np.random.Generator) -> CurveGaps:
        gaps = np.empty((count, len(p)))
        moved = random.standard_normal((count, len(deviations))) @ deviations
        gaps[:, inner] = np.abs(p[inner] - sigmoid(eta + moved))
        seen = random.binomial(certain, rate[~inner], (count, len(certain))) / certain
        gaps[:, ~inner] = np.abs(p[~inner] - seen)
        weight = random.poisson(cases, (count, len(n))) * (q / n)
        weight[weight.sum(axis=1) == 0.0] = n  # none was drawn
        return CurveGaps(gaps, weight)

    gap = np.abs(p - rate)
    gap[inner] = np.abs(p[inner] - sigmoid(eta))
    return DrawnModel(draw, CurveGaps(gap[None], n[None]), BLOCK // len(sample))


def _curve_deviations(sample: ScoreTable, inner: Flags, eta: Array, knots: Array) -> Array:
    """How the curve moves at each cell (column) with each of some independent standard normal
    numbers (line).

    The covariance of the coefficients is H⁻¹VH⁻¹, H = Σwq(1 − q)uuᵀ and V = Σw²q(1 − q)uuᵀ.
    """
    z = logit(sample.scores[inner])
    u = np.vstack((np.ones(len(z)), *(spline_columns(z, knots) if len(z) > 1 else ())))
    scale = np.abs(u).max(axis=1, keepdims=True)
    u = u / np.where(scale > 0.0, scale, 1.0)
    weight = sample.weight[inner]
    root, _ = np.linalg.qr((u * np.sqrt(weight)).T)
    u = root.T / np.sqrt(weight)
    chance = sigmoid(eta) * sigmoid(-eta)
    information = (u * (weight * chance)) @ u.T
    variance = (u * (squares(sample)[inner] * chance)) @ u.T
    values, vectors = np.linalg.eigh(information)
    kept = values > SINGULAR * values[-1]
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    spread, axes = np.linalg.eigh(inverse @ variance @ inverse)
    return np.asarray((axes * np.sqrt(np.maximum(spread, 0.0))).T @ u)


#: a measure of distances from smooth curves, one value for each curve
OfCurve = Callable[["CurveGaps"], "Array"]
