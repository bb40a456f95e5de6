"""Errors over bins, without what chance adds to them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from calibrant.arrays import Array
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_flag
from calibrant.metrics.bin_places import Places
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import check_bins
from calibrant.metrics.weighted_cells import (
    check_weights,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
)

#: equal errors may differ by this much from rounding
ROUNDING = 1e-12


class ErrorRule(NamedTuple):
    """Which error over bins is asked for: see `calibrant.metrics.ece`."""

    bins: Bins
    binning: str
    ties: str
    norm: int
    debias: bool
    weights: str

    def checked(self) -> ErrorRule:
        """The rule itself, if there is such an error; else it is refused."""
        check_bins(self.bins, self.binning, self.ties)
        check_weights(self.weights)
        if isinstance(self.norm, (bool, str)) or self.norm not in (1, 2):
            raise ParameterError(_norm_error(self.norm))
        check_flag("debias", self.debias)
        if self.debias and self.ties != "together":
            raise ParameterError(
                f'ties must be "together" beside debias=True, but {self.ties!r} came: what chance '
                "adds is known only where the order inside a tie plays no part."
            )
        return self

    def debiased_power(self, table: ScoreTable) -> float:
        """The mean |gap|^norm over the cases of a table, without what chance adds."""
        share, gap, variance = _gaps(table, self)
        if self.norm == 2:
            return float(share @ (gap**2 - variance))
        return float(share @ (2.0 * gap - folded_mean(gap, np.sqrt(np.maximum(variance, 0.0)))))

    def root(self, mean_power: float) -> float:
        """The error; what was debiased may have fallen below 0, and is 0 then."""
        power = max(mean_power, 0.0)
        return power if self.norm == 1 else math.sqrt(power)


def _norm_error(norm: Any) -> str:
    wanted = f"norm must be 1 (mean) or 2 (root mean square), but {norm!r} came."
    largest = norm in ("max", "inf") or (isinstance(norm, float) and math.isinf(norm))
    return f"{wanted} The largest error of a bin is mce." if largest else wanted


def _gaps(table: ScoreTable, rule: ErrorRule) -> tuple[Array, Array, Array]:
    """For each bin its share of the weight, |mean of y − p|, and the variance of that mean.

    A row that a border divides counts in each bin with its part of the weight. With such weights a
    and d = y − p, (Σad)² − Σa²d² has the expectation ((Σa)² − Σa²)·(E d)²: from that the variance
    is unbiased (and may be below 0 where weights differ). A bin of one row tells nothing of it:
    the square of its gap is taken for chance.
    """
    places, sample = Places(table, rule.bins, rule.binning), table_for_test(table, rule.weights)
    weight, apart = places.sums(sample.weight), places.sums(residuals(sample))
    square, noise = places.sums(squares(sample), 2), places.sums(squared_residuals(sample), 2)
    some = weight > 0.0
    weight, gap = weight[some], np.abs(apart[some]) / weight[some]
    single, noise = square[some] / weight**2, noise[some] / weight**2
    rest = 1.0 - single
    known = rest > 1e-9
    variance = np.where(known, (noise - gap**2 * single) / np.where(known, rest, 1.0), gap**2)
    return weight / weight.sum(), gap, variance


def folded_mean(mean: Array, sd: Array) -> Array:
    """E|m + σZ| = m·erf(m/σ√2) + σ√(2/π)·exp(−m²/2σ²), Z standard normal and m ≥ 0.

    >>> folded_mean(np.array([0.0, 3.0, 2.0]), np.array([1.0, 0.0, 1.0])).round(4).tolist()
    [0.7979, 3.0, 2.017]
    """
    some = sd > 0.0
    far = np.where(some, np.minimum(mean, 100.0 * sd), 1.0) / np.where(some, sd, 1e-2)
    tail = np.exp(-0.5 * far**2)  # beyond 100 σ it adds nothing
    return np.asarray(mean * erf(far / math.sqrt(2.0)) + sd * math.sqrt(2.0 / math.pi) * tail)


def without_chance(value: float, gaps: Array, chance: Array) -> float:
    """The error without what chance adds: c·error, c between 0 and 1.

    c is such that true gaps of c times those seen, blurred by chance, would on average give the
    error seen. ``gaps`` and ``chance`` are each bin's part of the error, and of the mean error of
    redrawn labels. Chance is taken to be normal, with the standard deviation chance·√(π/2).
    """
    if value <= chance.sum() * (1.0 + ROUNDING):  # taking the root would turn 1e-16 into 1e-7
        return 0.0
    some = chance > 0.0
    fixed, g, e = gaps[~some].sum(), gaps[some], chance[some]

    def above(scale: float) -> float:
        blurred = folded_mean(scale * g, e * np.sqrt(np.pi / 2.0))
        return float(blurred.sum() + scale * fixed - value)

    return float(value * brentq(above, 0.0, 1.0)) if above(1.0) > 0.0 else value
