"""The members of `BLS`: their coordinates, priors and fits, and the average over them.

The *axis* is what the map's knots are on: log-odds of probabilities, or margins as they are.
Members are functions of one of two coordinates of the axis: a *linear* one, and the normal score of
the mid-*rank*. Turning scores and labels round turns the result round: nothing here prefers a side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from calibrant.kernels.bls import (
    Band,
    BrokenLine,
    FewColumns,
    Posterior,
    bends,
    fit_posterior,
    log_likelihood,
    ramps,
)

__all__ = [
    "AxisCells",
    "Coordinates",
    "MemberAverage",
    "MemberFit",
    "ScoreAxis",
    "between",
    "fit_members",
]

Array = NDArray[np.float64]

#: log-odds beyond this count as this in the members that are linear or smooth in log-odds
FURTHEST = 15.0
#: prior standard deviations of value and slope: of a map near the identity (its slope as a share
#: of the identity's), and of any map
TIGHT, LOOSE = (0.3, 0.2), (4.0, 4.0)
#: prior standard deviations of what bending lines change their slope by over one unit
BENDS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: prior standard deviations of what rough lines leave the straight one by over one unit
ROUGH = (0.5, 1.0, 2.0)
#: the prior mean of the slope per standard deviation, where the identity says nothing of it
SLOPE = 1.5
#: the least standard deviation of log-odds (scores closer than that are all but one score), and of
#: what the beta map adds
LEAST_SPREAD, LEAST_BOWL = 0.25, 0.05
#: inner knots of bending lines: FEWEST + √n/2, up to MOST; rough lines have MOST + 2 nodes
FEWEST, MOST = 8, 60
#: knots among the events, where the others are too far apart for them: √events, up to this
MOST_EVENT_KNOTS = 30
#: log-odds of a member or of a band are cut here, where floats still tell p from 0 and from 1
MOST_ODDS = 36.0
#: the least distance of nodes, as a share of their range
APART = 1e-6


class ScoreAxis(NamedTuple):
    """The axis: whether it is one of log-odds, its ends in the data, and how far the linear
    coordinate goes."""

    on_logit: bool
    low: float
    high: float
    bounds: tuple[float, float]

    def linear(self, a: Array) -> Array:
        """Log-odds, or of margins the place between the ends; both cut at the bounds."""
        if self.on_logit:
            return np.clip(a, *self.bounds)
        half = self.high / 2 - self.low / 2  # the range could overflow
        if not half > 0.0:
            return np.zeros(len(a))
        with np.errstate(over="ignore"):
            return np.clip((a / 2 - self.low / 2) / half, *self.bounds)

    def of_linear(self, c: Array) -> Array:
        """Where on the axis the linear coordinate has given values."""
        if self.on_logit:
            return c
        with np.errstate(over="ignore", invalid="ignore"):  # such places are beyond all floats
            return self.low * (1.0 - c) + self.high * c

    def even(self, a: Array) -> Array:
        """What ranks are interpolated in: log-odds with logarithms beyond ±15; margins."""
        if not self.on_logit:
            return a
        inner = np.clip(a, -FURTHEST, FURTHEST)
        beyond = a - inner
        return np.asarray(inner + np.sign(beyond) * np.log1p(np.abs(beyond)))

    def of_even(self, e: Array) -> Array:
        """The inverse of `even`."""
        if not self.on_logit:
            return e
        inner = np.clip(e, -FURTHEST, FURTHEST)
        beyond = e - inner
        return np.asarray(inner + np.sign(beyond) * np.expm1(np.abs(beyond)))


class AxisCells(NamedTuple):
    """Cells: places on the axis, both coordinates there (means of what a cell holds), shares of the
    weight, and the weight of negatives and positives."""

    a: Array
    linear: Array
    even: Array
    share: Array
    n0: Array
    n1: Array

    @property
    def base(self) -> float:
        """The log-odds of the base rate, with half a row more in each class."""
        return float(np.log((self.n1.sum() + 0.5) / (self.n0.sum() + 0.5)))


class Coordinates(NamedTuple):
    """The coordinates of the members as functions of the axis."""

    axis: ScoreAxis
    mean: float
    spread: float
    bowl_mean: float
    bowl_spread: float
    a: Array
    even: Array
    rank: Array  # the mid-ranks at `even`, as normal scores

    @classmethod
    def of(cls, cells: AxisCells, axis: ScoreAxis) -> Coordinates:
        mean, spread = _moments(cells.linear, cells.share)
        spread = max(spread, LEAST_SPREAD) if axis.on_logit else spread or 1.0
        middle = _mid_ranks(cells.share)
        plain = cls(axis, mean, spread, 0.0, 1.0, cells.a, cells.even, ndtri(middle))
        bowl_mean, bowl_spread = _moments(plain.bowl(cells.linear), cells.share)
        return plain._replace(bowl_mean=bowl_mean, bowl_spread=max(bowl_spread, LEAST_BOWL))

    def standard(self, linear: Array) -> Array:
        """The linear coordinate with mean 0 and spread 1."""
        return (linear - self.mean) / self.spread

    def bowl(self, linear: Array) -> Array:
        """ln(e^{z/2} + e^{−z/2}), with mean 0 and spread 1: what the beta map adds to a sigmoid.

        a·ln p − b·ln(1 − p) is (a + b)/2 times z, and (b − a) times this.
        """
        half = 0.5 * (linear if self.axis.on_logit else self.standard(linear))
        bent = np.logaddexp(half, -half)
        return np.asarray((bent - self.bowl_mean) / self.bowl_spread)

    def ranked(self, a: Array) -> Array:
        """The normal score of the mid-rank, straight between cells and flat beyond them."""
        return between(self.axis.even(a), self.even, self.rank)


def _moments(value: Array, share: Array) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = float(value @ share)
    return mean, float(np.sqrt((value - mean) ** 2 @ share))


def between(x: Array, places: Array, values: Array) -> Array:
    """Straight lines between (place, value), flat beyond; `np.interp` without its overflow."""
    if len(places) == 1:
        return np.full(len(x), values[0])
    i = np.clip(np.searchsorted(places, x, "right") - 1, 0, len(places) - 2)
    low, high = places[i], places[i + 1]
    with np.errstate(over="ignore"):
        scale = np.where(np.isinf(high - low), 0.5, 1.0)
    low, high, x = low * scale, high * scale, np.clip(x, low, high) * scale
    t = (x - low) / np.maximum(high - low, 5e-324)  # places may be equal
    return np.asarray((1.0 - t) * values[i] + t * values[i + 1])


def _mid_ranks(share: Array) -> Array:
    """The share of weight below each cell, half of its own included; rounding stays inside."""
    return np.clip(np.cumsum(share) - share / 2.0, 1e-300, 1.0 - 2.0**-53)


# --- fits -----------------------------------------------------------------------------------------

#: what a shape adds to value and slope, and its prior standard deviation
EXTRA: dict[str, tuple[Callable[[Coordinates, Array], Array], float]] = {
    "quadratic": (lambda where, c: where.standard(c) ** 2 - 1.0, 1.0),
    "beta": (lambda where, c: where.bowl(c), 2.0),
}


class MemberFit(NamedTuple):
    """A member: its shape, the coordinate it is a function of, the prior standard deviation of its
    bends, and its posterior; without one it is the identity."""

    name: str
    coordinate: str
    freedom: float | None
    log_evidence: float
    posterior: Posterior | None = None
    band: Band | None = None

    def moments(self, where: Coordinates, a: Array) -> tuple[Array, Array]:
        """Mean and variance of the log-odds at places on the axis."""
        linear = where.axis.linear(a)
        if self.posterior is None:
            return linear, np.zeros(len(a))
        if self.band is not None:
            ranked = self.coordinate == "rank"
            return self.band.moments(where.ranked(a) if ranked else where.standard(linear))
        design = FewColumns(_columns(self.name, where, linear))
        return design.moments(self.posterior.theta, self.posterior.covariance)

    def corners(self, where: Coordinates) -> Array:
        """Places on the axis where it bends sharply."""
        if self.band is None:
            return np.empty(0)
        nodes = self.band.nodes
        if self.coordinate == "rank":
            return where.axis.of_even(between(nodes, where.rank, where.even))
        return where.axis.of_linear(nodes * where.spread + where.mean)


def _columns(name: str, where: Coordinates, linear: Array) -> Array:
    columns = [np.ones(len(linear)), where.standard(linear)]
    if name in EXTRA:
        columns.append(EXTRA[name][0](where, linear))
    return np.array(columns)


def fit_members(cells: AxisCells, where: Coordinates) -> list[MemberFit]:
    """All members, fitted to the cells."""
    unknown = (cells.base, SLOPE)
    if not where.axis.on_logit:
        return [
            *_sigmoids(cells, where, "margin", unknown),
            *_bending(cells, where.standard(cells.linear), "margin", unknown),
            *_bending(cells, where.rank, "rank", unknown),
            *_rough(cells, where.rank, unknown),
        ]
    identity = (where.mean, where.spread)
    likelihood = log_likelihood(cells.linear, cells.n0, cells.n1)
    near = (TIGHT[0], TIGHT[1] * where.spread)
    return [
        MemberFit("identity", "logit", None, likelihood),
        _sigmoid(cells, where, "near identity", "logit", identity, near),
        *_sigmoids(cells, where, "logit", identity),
        *_bending(cells, where.standard(cells.linear), "logit", identity),
        *_bending(cells, where.rank, "rank", unknown),
        *_rough(cells, where.rank, unknown),
    ]


def _sigmoids(
    cells: AxisCells, where: Coordinates, coordinate: str, centre: tuple[float, float]
) -> Iterator[MemberFit]:
    yield _sigmoid(cells, where, "platt", coordinate, centre, LOOSE)
    for name, (_, sd) in EXTRA.items():
        yield _sigmoid(cells, where, name, coordinate, centre, (*LOOSE, sd))


def _sigmoid(
    cells: AxisCells,
    where: Coordinates,
    name: str,
    coordinate: str,
    centre: tuple[float, float],
    sd: tuple[float, ...],
) -> MemberFit:
    design = FewColumns(_columns(name, where, cells.linear))
    mean = np.array([*centre, *(0.0 for _ in sd[2:])])
    found = fit_posterior(design, mean, np.array(sd), cells.n0, cells.n1)
    return MemberFit(name, coordinate, None, found.log_evidence, found)


def _bending(
    cells: AxisCells, x: Array, coordinate: str, centre: tuple[float, float]
) -> Iterator[MemberFit]:
    """Lines that bend at knots at equal steps of the mid-rank, and among the events."""
    size = float(cells.n0.sum() + cells.n1.sum())
    knots = _quantiles(x, cells.share, int(min(FEWEST + np.sqrt(size) / 2.0, MOST)))
    knots = np.concatenate((x[:1], knots, _event_knots(cells, x, knots), x[-1:]))
    nodes = _apart(np.sort(knots))
    yield from _lines(cells, x, nodes, bends(nodes), "bending", coordinate, centre, BENDS)


def _quantiles(x: Array, share: Array, count: int) -> Array:
    """Places that cut the weight into count + 1 equal parts."""
    return np.asarray(np.interp(np.arange(1, count + 1) / (count + 1), _mid_ranks(share), x))


def _event_knots(cells: AxisCells, x: Array, knots: Array) -> Array:
    """Knots at equal steps among the rows of the rarer class, where three or more of them lie
    between the same two knots: rare events may all lie beyond the last, where no line could bend.
    """
    rare = min(cells.n0, cells.n1, key=np.sum)
    events, some = float(rare.sum()), rare > 0.0
    if not some.any() or cells.n0.sum() == cells.n1.sum():
        return np.empty(0)
    count = int(min(np.sqrt(events), MOST_EVENT_KNOTS))
    more = _quantiles(x[some], rare[some] / events, count)
    gap = np.searchsorted(knots, more)
    return np.asarray(more[np.bincount(gap, minlength=1)[gap] >= 3])


def _rough(cells: AxisCells, x: Array, centre: tuple[float, float]) -> Iterator[MemberFit]:
    """Lines with a node at every cell, or at cells at equal steps of the rank."""
    at = np.arange(len(x))
    if len(x) > MOST + 2:
        middle = _mid_ranks(cells.share)
        steps = np.linspace(middle[0], middle[-1], MOST + 2)
        halves = (middle[1:] + middle[:-1]) / 2.0
        at = np.unique(np.searchsorted(halves, steps))  # the nearest cells
    nodes = _apart(x[at])
    yield from _lines(cells, x, nodes, ramps(nodes), "rough", "rank", centre, ROUGH)


def _lines(
    cells: AxisCells,
    x: Array,
    nodes: Array,
    shape: tuple[Array, Array],
    name: str,
    coordinate: str,
    centre: tuple[float, float],
    freedoms: tuple[float, ...],
) -> Iterator[MemberFit]:
    basis, unit = shape
    design = BrokenLine(nodes, basis, x)
    mean = np.concatenate((centre, np.zeros(len(unit))))
    start = None
    for freedom in freedoms:
        sd = np.concatenate((LOOSE, freedom * unit))
        found = fit_posterior(design, mean, sd, cells.n0, cells.n1, start)
        start = found.theta
        band = design.band(found.theta, found.covariance)
        yield MemberFit(name, coordinate, freedom, found.log_evidence, found, band)


def _apart(nodes: Array) -> Array:
    """Ascending nodes without those that all but touch; two at least.

    Nodes that all but touch as a whole are one place: a line through two of them would go on beyond
    by the rounding of its values there.
    """
    low, high = float(nodes[0]), float(nodes[-1])
    if not high - low > APART:
        return np.array([low - 0.5, low + 0.5])
    apart = APART * (high - low)
    kept = [low]
    for node in np.sort(nodes[1:-1]).tolist():
        if node - kept[-1] > apart and high - node > apart:
            kept.append(node)
    return np.array([*kept, high])


# --- the average ----------------------------------------------------------------------------------


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
        for weight, fit in zip(self.weights, self.fits, strict=True):
            f, v = fit.moments(self.where, a)
            f = self.base + (f - self.base) / np.sqrt(1.0 + self.moderation * (np.pi / 8.0) * v)
            f = np.clip(f, -MOST_ODDS, MOST_ODDS)
            p += weight * expit(f)
            q += weight * expit(-f)
        return np.asarray(np.log(p) - np.log(q))

    def corners(self) -> Array:
        """Places on the axis between which the average is smooth."""
        return np.concatenate((self.where.a, *(fit.corners(self.where) for fit in self.fits)))

    def quantile(self, a: Array, tail: float) -> Array:
        """Quantile of the log-odds, a mixture of normals, by bisection to a part in 10¹² of the
        distance between the members' own quantiles."""
        moments = [fit.moments(self.where, a) for fit in self.fits]
        f = np.array([mean for mean, _ in moments])
        sd = np.sqrt(np.maximum([variance for _, variance in moments], 1e-18))
        own = f + ndtri(tail) * sd
        low, high = own.min(axis=0), own.max(axis=0)
        for _ in range(40):
            middle = low / 2.0 + high / 2.0
            below = self.weights @ ndtr((middle - f) / sd) < tail
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.clip(low / 2.0 + high / 2.0, -MOST_ODDS, MOST_ODDS))
