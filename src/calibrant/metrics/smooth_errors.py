"""ICI, E50, E90 and Emax: how far predictions are from a smooth calibration curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import Array
from calibrant.losses import logit, sigmoid
from calibrant.metrics.arguments import read_table
from calibrant.metrics.smooth_curve import SmoothCurve, curve_gaps, smooth_curve
from calibrant.result_tables import Readable


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
