"""Calibration without bins: errors smoothed by a Gaussian kernel that is reflected at 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.arguments import read_table
from calibrant.metrics.weighted_cells import residuals
from calibrant.result_tables import Readable

#: sizes of the grid that errors are put on; the next one is tried where one is too coarse
GRIDS = (1 << 16, 1 << 18, 1 << 20)
#: grid steps per kernel width: wanted for the errors, the fewest allowed, and for the integral
FINE, COARSE, INTEGRAL = 256.0, 4.0, 128.0
#: the most points of the integral
POINTS = 1 << 21
#: a kernel ends after this many widths
REACH = 10.0


@dataclass(frozen=True, repr=False)
class SmoothECE(Readable):
    """The result of `smooth_ece`.

    Attributes
    ----------
    value : float
        The smooth ECE, which is the width of its own kernel as well. Smaller is better; between 0
        and 1.
    error : float
        How far the value may be from that of exact arithmetic.
    """

    value: float
    error: float


def smooth_ece(
    y: Any, p: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> SmoothECE:
    """Smooth ECE: mean |smoothed error| at the kernel width that equals it; no bins to choose.

    Smaller is better; minimum 0, maximum 1.

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
    smECE_σ = ∫₀¹ |Σᵢ wᵢ(yᵢ − pᵢ) K_σ(t, pᵢ)| dt / Σw, where K_σ is the Gaussian density of standard
    deviation σ around pᵢ with what lies beyond 0 and 1 folded back. It falls as σ grows, so one σ
    has smECE_σ = σ: that is the smooth ECE. A consistent measure: at least a constant times the
    distance to the nearest perfectly calibrated predictor, at most the square root of it. It
    changes little when predictions change little, which the ECE does not promise.

    In the basis cos(mπt) the kernel is diagonal, exp(−σ²π²m²/2), so after one transform of the
    errors every σ costs one transform back: O(D + G log G). Errors are put on a grid of step h by
    linear interpolation and the integral is that of straight pieces; each moves the value by at
    most 0.121·(step/σ)²·Σ|w(y − p)|/Σw, and the sum of both is returned as ``error``: below 10⁻⁵,
    but for values under 0.0003 of the range of p. Ties are together. Weights count linearly, so
    that it makes no difference what they mean.

    It misleads: like every absolute error it is above 0 for perfect predictions, about n^(−1/3)/3
    where these are spread over [0, 1]; small where predictions are all nearly the same; and a mean:
    a large error of few rows does not show.

    References
    ----------
    .. [1] J. Błasiok, P. Nakkiran, "Smooth ECE: principled reliability diagrams via kernel
       smoothing", 2023, arXiv:2309.12236.

    Examples
    --------
    >>> smooth_ece([1, 1, 1, 1], [0.75, 0.75, 0.75, 0.75]).value
    0.25
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> round(smooth_ece(rng.random(10_000) < p, p).value, 3)
    0.014
    """
    return smooth_error(read_table(y, p, sample_weight, pos_label))


def smooth_error(table: ScoreTable) -> SmoothECE:
    """`smooth_ece` of a table."""
    error = residuals(table) / table.total
    low, high = abs(float(error.sum())), float(np.abs(error).sum())
    if high <= low * (1.0 + 1e-12):  # errors of one sign, or none: every kernel gives the same
        return SmoothECE(min(high, 1.0), 0.0)
    for size in GRIDS:
        kernel = _Kernel(table.scores, error, size, reach=REACH * high)
        start = max(low, FINE * kernel.step)
        if start < high and kernel.excess(start) >= 0.0:
            break
    else:
        start = max(low, COARSE * kernel.step)
        if start >= high or kernel.excess(start) < 0.0:
            value = min(start, high)  # the value lies between low and this
            return SmoothECE(value, value - low)
    if kernel.excess(high) >= 0.0:
        value = high
    else:
        value = float(brentq(kernel.excess, start, high, xtol=1e-12 * high, rtol=1e-12))
    return SmoothECE(value, kernel.bound(value))


class _Kernel:
    """Errors in the basis of cosines.

    The stretch of [0, 1] is long enough that kernels reach its ends at 0 and at 1 only.
    """

    def __init__(self, scores: Array, error: Array, size: int, reach: float) -> None:
        low, high = max(0.0, scores[0] - reach), min(1.0, scores[-1] + reach)
        self.length = float(high - low)
        self.step = self.length / size
        self.mass = float(np.abs(error).sum())
        where = (scores - low) / self.length * size
        left = np.minimum(where.astype(np.intp), size - 1)
        right = where - left
        nodes = np.zeros(size + 1)
        for place, part in ((left, error * (1.0 - right)), (left + 1, error * right)):
            nodes += np.bincount(place, part, minlength=size + 1)
        nodes[[0, -1]] *= 2.0  # the transform takes the ends once, the rest twice
        self.waves = dct(nodes, type=1) / 2.0

    def smoothed(self, sigma: float) -> Array:
        """The smoothed error at the points of an even grid, times the length of the stretch."""
        width, points = sigma / self.length, self._points(sigma)
        kept = min(points, len(self.waves))
        damped = np.zeros(points + 1)
        damped[:kept] = self.waves[:kept]
        damped[:kept] *= np.exp(-0.5 * (width * np.pi * np.arange(kept)) ** 2)
        return np.asarray(dct(damped, type=1, overwrite_x=True))

    def excess(self, sigma: float) -> float:
        """smECE_σ − σ."""
        return _integral_of_absolute(self.smoothed(sigma)) - sigma

    def bound(self, sigma: float) -> float:
        """The errors of both grids: (h²/8)·∫|K″| with ∫|K″| ≤ 4φ(1)/σ²."""
        points = self.length / self._points(sigma)
        return 0.121 * self.mass * ((self.step / sigma) ** 2 + (points / sigma) ** 2)

    def _points(self, sigma: float) -> int:
        """Steps of the integral's grid."""
        return min(POINTS, 1 << max(6, math.ceil(math.log2(INTEGRAL * self.length / sigma))))


def _integral_of_absolute(values: Array) -> float:
    """∫ |g| over [0, 1] of the straight pieces between values on an even grid."""
    size = np.abs(values)
    sides = size[:-1] + size[1:]
    crossing = np.signbit(values[:-1]) != np.signbit(values[1:])
    area = sides / 2.0
    some = crossing & (sides > 0.0)
    both = size[:-1][some] ** 2 + size[1:][some] ** 2
    area[some] = both / (2.0 * sides[some])
    return float(area.mean())
