"""Which error over bins is asked for, the bin of each cell, and what chance adds to errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from calibrant.arrays import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_flag
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import as_table, check_bins, group, group_starts, mass_borders
from calibrant.metrics.cell_runs import to_cells
from calibrant.metrics.weighted_cells import (
    check_weights,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
)

#: equal errors may differ by this much from rounding
ROUNDING = 1e-12


class Places:
    """Which cells lie in one bin, and how the others are shared between bins.

    ``first`` is the bin in which each cell begins. ``whole`` are the numbers of the cells that end
    in it, too, ``shared`` those of the others, and ``shares`` how much of these lies in each bin.
    """

    def __init__(self, table: ScoreTable, bins: Bins, binning: str) -> None:
        if binning == "mass" and not isinstance(bins, str):
            self.bins = bins
            self._by_mass(table)
            return
        starts = group_starts(table, bins)
        self.bins = len(starts)
        self.first = to_cells(np.arange(self.bins), starts, len(table))
        self.whole, self.shared = np.arange(len(table)), np.arange(0)
        self.shares = np.zeros((0, self.bins))

    def _by_mass(self, table: ScoreTable) -> None:
        """Bins of equal mass: a cell that a border divides is shared in proportion."""
        mass = np.append(0.0, np.cumsum(table.weight))
        borders = mass_borders(mass[-1], table.is_whole, self.bins)
        last = np.searchsorted(borders, mass[1:], side="left") - 1
        self.first = np.minimum(np.searchsorted(borders, mass[:-1], side="right") - 1, last)
        self.whole, self.shared = (
            np.flatnonzero(at) for at in (self.first == last, self.first < last)
        )
        low, high = mass[self.shared, None], mass[self.shared + 1, None]
        inside = np.minimum(borders[1:], high) - np.maximum(borders[:-1], low)
        self.shares = np.maximum(inside, 0.0) / (high - low)

    def sums(self, column: Array, power: int = 1) -> Array:
        """The sum of a column of cells over each bin; a shared cell counts with its share^power."""
        sums = np.bincount(self.first[self.whole], column[self.whole], minlength=self.bins)
        return np.asarray(sums + column[self.shared] @ self.shares**power, dtype=np.float64)

    def gaps(self, table: ScoreTable) -> Array:
        """Each bin's share |Σ w(y − p)|/n of the ECE."""
        return np.asarray(np.abs(self.sums(residuals(table))) / table.total)


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

    def mean_power(self, seen: ScoreTable | Rows) -> float:
        """The mean |gap|^norm over the cases, without what chance adds if that is asked for."""
        if not self.debias:
            return group(seen, self.bins, self.binning, self.ties).mean_power(self.norm)
        share, gap, variance = _gaps(as_table(seen), self)
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
