"""The members of `BLS`: their coordinates, priors and fits.

The *axis* is what the map's knots are on: log-odds of probabilities, or margins as they are.
Members are functions of one of two coordinates of the axis: a *linear* one, and the normal score of
the mid-*rank*. Everything is symmetric: if scores and labels are turned round, so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from calibrant.array_types import Array, Index
from calibrant.kernels.bls import (
    Band,
    BrokenLine,
    FewColumns,
    Posterior,
    bends,
    fit_posterior,
    log_likelihood,
    piece_of,
    place_on,
    ramps,
)

#: log-odds are cut here in the members that are linear or smooth in them
FURTHEST = 15.0
#: prior standard deviations of value and slope, for a map near the identity (the slope as a share
#: of the identity's) and for any other map
TIGHT, LOOSE = (0.3, 0.2), (4.0, 4.0)
#: prior standard deviations of how much bending lines change their slope over one unit
BENDS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: prior standard deviations of how far rough lines leave the straight one over one unit
ROUGH = (0.5, 1.0, 2.0)
#: the prior mean of the slope per standard deviation, where there is no identity
SLOPE = 1.5
#: the least standard deviation of log-odds (closer scores are all but one score), and of the term
#: that the beta map adds
LEAST_SPREAD, LEAST_BOWL = 0.25, 0.05
#: inner knots of bending lines: FEWEST + √n/2, up to MOST; rough lines have MOST + 2 nodes
FEWEST, MOST = 8, 60
#: knots among the events, where the other knots are too far apart: √events, up to this
MOST_EVENT_KNOTS = 30
#: the least distance of nodes, as a share of their range
APART = 1e-6


class ScoreAxis(NamedTuple):
    """The axis: whether it has log-odds, its ends in the data, and the bounds of the linear
    coordinate."""

    on_logit: bool
    low: float
    high: float
    bounds: tuple[float, float]

    def linear(self, a: Array) -> Array:
        """Log-odds, or for margins the place between the ends, cut at the bounds."""
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
        """The coordinate in which ranks are interpolated: margins as they are, log-odds with a
        logarithmic scale beyond ±15."""
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
    """Cells: places on the axis, two coordinates there (means over each cell), shares of the
    weight, and the weights of negatives and positives."""

    a: Array
    linear: Array
    even: Array
    share: Array
    n0: Array
    n1: Array

    @property
    def base(self) -> float:
        """The log-odds of the base rate, with half a row added to each class."""
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

        a·ln p − b·ln(1 − p) is the sum of (a + b)/2 times z and (b − a) times this.
        """
        half = 0.5 * (linear if self.axis.on_logit else self.standard(linear))
        bent = np.logaddexp(half, -half)
        return np.asarray((bent - self.bowl_mean) / self.bowl_spread)

    def ranked(self, a: Array) -> Array:
        """The normal score of the mid-rank, straight between cells and flat beyond them."""
        return between(self.axis.even(a), self.even, self.rank)


class AxisPlaces:
    """Places on the axis; what several members need to know of them is computed once."""

    def __init__(self, where: Coordinates, a: Array) -> None:
        self.where, self.a = where, a
        self._pieces: dict[int, tuple[Index, Array]] = {}

    @cached_property
    def linear(self) -> Array:
        return self.where.axis.linear(self.a)

    @cached_property
    def standard(self) -> Array:
        return self.where.standard(self.linear)

    @cached_property
    def ranked(self) -> Array:
        return self.where.ranked(self.a)

    def along(self, nodes: Array, ranked: bool) -> tuple[Index, Array]:
        """On which piece of a broken line, and how far along it: the lines of one family share
        their nodes."""
        if id(nodes) not in self._pieces:
            self._pieces[id(nodes)] = place_on(nodes, self.ranked if ranked else self.standard)
        return self._pieces[id(nodes)]


def _moments(value: Array, share: Array) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = float(value @ share)
    return mean, float(np.sqrt((value - mean) ** 2 @ share))


def between(x: Array, places: Array, values: Array) -> Array:
    """Straight lines between (place, value), flat beyond; `np.interp` without its overflow."""
    if len(places) == 1:
        return np.full(len(x), values[0])
    i = piece_of(places, x)
    low, high = places[i], places[i + 1]
    x = np.minimum(np.maximum(x, low), high)
    with np.errstate(over="ignore"):
        wide = np.isinf(places[1:] - places[:-1])
    if wide.any():
        scale = np.where(wide, 0.5, 1.0)[i]
        low, high, x = low * scale, high * scale, x * scale
    t = (x - low) / np.maximum(high - low, 5e-324)  # places may be equal
    return np.asarray((1.0 - t) * values[i] + t * values[i + 1])


def _mid_ranks(share: Array) -> Array:
    """The share of weight below each cell, with half of its own; kept inside (0, 1)."""
    return np.clip(np.cumsum(share) - share / 2.0, 1e-300, 1.0 - 2.0**-53)


# --- fits -----------------------------------------------------------------------------------------

#: what a shape adds to value and slope, and its prior standard deviation
EXTRA: dict[str, tuple[Callable[[Coordinates, Array], Array], float]] = {
    "quadratic": (lambda where, c: where.standard(c) ** 2 - 1.0, 1.0),
    "beta": (lambda where, c: where.bowl(c), 2.0),
}


class MemberFit(NamedTuple):
    """A member: its shape, its coordinate, the prior standard deviation of its bends, its log
    evidence, its posterior (None for the identity) and, for lines, their band."""

    name: str
    coordinate: str
    freedom: float | None
    log_evidence: float
    posterior: Posterior | None = None
    band: Band | None = None

    def moments(self, at: AxisPlaces) -> tuple[Array, Array]:
        """Mean and variance of the log-odds at places on the axis."""
        if self.posterior is None:
            return at.linear, np.zeros(len(at.a))
        if self.band is not None:
            return self.band.moments(*at.along(self.band.nodes, self.coordinate == "rank"))
        design = FewColumns(_columns(self.name, at.where, at.linear))
        return design.moments(self.posterior.theta, self.posterior.covariance)

    def corners(self, where: Coordinates) -> Array:
        """Places on the axis where the member bends sharply."""
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
    """Further knots among the rows of the rarer class.

    Rare events may all lie between the same two knots, or beyond the last, where no line could
    bend. Of knots at equal steps among the events, those are kept of which three or more lie
    between the same two other knots.
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
    """Lines with a node at every cell; of many cells, at those at equal steps of the rank."""
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
    """Ascending nodes, without those that are too close to another; at least two.

    If all nodes are within `APART`, they are one place: the slope of a line through two of them
    would be the rounding of its values.
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
