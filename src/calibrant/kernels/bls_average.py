"""The average over the members of `BLS`, made to rise and to keep the base rate, with few knots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, ndtr, ndtri

from calibrant.array_types import Array, Index
from calibrant.kernels.bls_members import AxisCells, AxisPlaces, Coordinates, MemberFit
from calibrant.kernels.few_knots import few_knots

#: log-odds of members and bands are cut here, where floats can still tell p from 0 and from 1
MOST_ODDS = 36.0
#: a band is computed at about so many places
BAND_PLACES = 256
#: into how many parts what lies between two places beyond the cells is cut, for a band
FINER = 16
#: what a place without data weighs in the isotonic regression, beside a total of 1
NO_WEIGHT = 1e-9
#: with so many events the members have a quarter of the say in the base rate, the data the rest
PSEUDO_EVENTS = 3.0
#: sums over more scores than this are taken over so many groups of nearly equal log-odds
SUMMED = 1 << 15


class MemberAverage(NamedTuple):
    """Members with their weights, how much they are moderated, and towards which log-odds."""

    where: Coordinates
    fits: tuple[MemberFit, ...]
    weights: Array
    moderation: float
    base: float

    def __call__(self, a: Array) -> Array:
        """ln p/(1 − p) of p = Σ weight·σ(b + (f − b)/√(1 + moderation·πv/8)) at places on the axis,
        with b the log-odds of the base rate."""
        p, q = np.zeros(len(a)), np.zeros(len(a))
        for weight, (mean, v) in zip(self.weights, self.moments(a), strict=True):
            f = self.base + (mean - self.base) / np.sqrt(1.0 + self.moderation * (np.pi / 8.0) * v)
            f = np.minimum(np.maximum(f, -MOST_ODDS), MOST_ODDS)
            p += weight * expit(f)
            q += weight * expit(-f)
        return np.asarray(np.log(p) - np.log(q))

    def moments(self, a: Array) -> Iterator[tuple[Array, Array]]:
        """Mean and variance of the log-odds, member after member."""
        at = AxisPlaces(self.where, a)
        return (fit.moments(at) for fit in self.fits)

    def corners(self) -> Array:
        """Places on the axis; between neighbouring ones the average is smooth."""
        return np.concatenate((self.where.a, *(fit.corners(self.where) for fit in self.fits)))

    def quantile(self, a: Array, tail: float) -> Array:
        """Quantile of the log-odds, a mixture of normals, by bisection to a part in 10¹² of the
        distance between the members' own quantiles."""
        f, variance = map(np.array, zip(*self.moments(a), strict=True))
        sd = np.sqrt(np.maximum(variance, 1e-18))
        own = f + ndtri(tail) * sd
        low, high = own.min(axis=0), own.max(axis=0)
        for _ in range(40):
            middle = low / 2.0 + high / 2.0
            below = self.weights @ ndtr((middle - f) / sd) < tail
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.clip(low / 2.0 + high / 2.0, -MOST_ODDS, MOST_ODDS))


def rising(a: Array, v: Array, cells: AxisCells) -> Array:
    """Isotonic regression of the probabilities at places on the axis, as log-odds.

    Every place has the weight of the cells nearest to it. So places beyond the data, or between
    distant scores, hardly count.
    """
    weight = np.full(len(a), NO_WEIGHT / len(a))
    weight += np.bincount(_nearest(a, cells.a), cells.share, len(a))
    found = isotonic_regression(expit(v), weights=weight)
    starts, sizes = found.blocks[:-1], np.diff(found.blocks)
    whole = np.add.reduceat(weight, starts)
    p, q = (np.add.reduceat(weight * expit(side * v), starts) / whole for side in (1.0, -1.0))
    block = np.where(sizes > 1, np.log(p) - np.log(q), v[starts])
    return np.maximum.accumulate(np.repeat(block, sizes))


def expected_rate(average: MemberAverage, cells: AxisCells) -> float:
    """The mean probability that the map is to have on the fitted rows.

    With many events (rows of the rarer class) it is the share of positives. With few, what the
    members say (without moderation) counts as well: so no event does not mean a probability of 0.
    """
    n = cells.n0 + cells.n1
    seen, events = float(cells.n1.sum()), float(min(cells.n0.sum(), cells.n1.sum()))
    said = float(n @ expit(average._replace(moderation=0.0)(cells.a)))
    share = (PSEUDO_EVENTS / (PSEUDO_EVENTS + events)) ** 2
    return (seen + share * (said - seen)) / float(n.sum())


def shift_to_rate(f: Array, share: Array, rate: float) -> float:
    """What must be added to all log-odds f so that the mean of σ(f), weighted by share, is a rate.

    The mean rises with the shift, so that Newton's method within a bracket finds it.

    >>> round(shift_to_rate(np.zeros(1), np.ones(1), 0.25), 6)  # −ln 3
    -1.098612
    """
    if len(f) > SUMMED:
        f, share = _grouped(f, share, SUMMED)
    shift, low, high = 0.0, -2.0 * MOST_ODDS, 2.0 * MOST_ODDS
    for _ in range(100):
        p = expit(f + shift)
        excess = float(share @ p) - rate
        low, high = (low, shift) if excess > 0.0 else (shift, high)
        slope = float(share @ (p * expit(-f - shift)))
        step = excess / slope if slope > 0.0 else np.inf
        after = shift - step if low < shift - step < high else (low + high) / 2.0
        if abs(after - shift) <= 1e-13 * (1.0 + abs(shift)):
            break
        shift = after
    return shift


def _grouped(f: Array, share: Array, groups: int) -> tuple[Array, Array]:
    """Means of f over groups of equal width, and the weight of each group."""
    low, high = float(f.min()), float(f.max())
    if not high > low:
        return f[:1], np.ones(1)
    group = ((f - low) * ((groups - 1) / (high - low))).astype(np.intp)
    weight = np.asarray(np.bincount(group, share, groups), dtype=np.float64)
    some = weight > 0.0
    return np.bincount(group, share * f, groups)[some] / weight[some], weight[some]


def spread_out(a: Array, cells: AxisCells) -> Array:
    """Some 256 of the places among the cells; all places beyond them, and more between those.

    There the map is all but straight, and its band need not be.
    """
    first, last = cells.a[[0, -1]]
    low, high = np.searchsorted(a, (first, last))
    among = np.linspace(low, min(high, len(a) - 1), BAND_PLACES).astype(np.intp)
    places = a[np.unique(np.concatenate((np.arange(low), among, np.arange(high, len(a)))))]
    left, right = places[:-1], places[1:]
    outside = ((left < first) | (right > last)) & (right / 2 - left / 2 > 1e-290)
    part = np.arange(1, FINER) / FINER
    between = left[outside, None] * (1.0 - part) + right[outside, None] * part
    return np.unique(np.concatenate((places, between.ravel())))


def _nearest(a: Array, places: Array) -> Index:
    """The index of the entry of a nearest to each place."""
    after = np.clip(np.searchsorted(a, places), 1, max(len(a) - 1, 1)).clip(max=len(a) - 1)
    before = np.maximum(after - 1, 0)
    closer = places / 2 - a[before] / 2 < a[after] / 2 - places / 2
    return np.where(closer, before, after)


def thinned(x: Array, v: Array, tol: float) -> list[int]:
    """Indices of knots whose polygon stays within ``tol`` of the one through all points (x, v)."""
    size = float(np.abs(x).max()) or 1.0  # widths could overflow
    return few_knots((x / size).tolist(), v.tolist(), tol)
