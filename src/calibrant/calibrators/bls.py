"""BLS, Bayesian-averaged logit splines: many smooth maps, averaged by their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.base import WEIGHTS, Calibrator, inner_interval
from calibrant.estimators.limits import Each, Limit, Number, OneOf
from calibrant.kernels.blas_threads import one_thread
from calibrant.kernels.bls_average import (
    MOST_ODDS,
    MemberAverage,
    expected_rate,
    rising,
    shift_to_rate,
    spread_out,
    thinned,
)
from calibrant.kernels.bls_members import (
    FURTHEST,
    AxisCells,
    Coordinates,
    MemberFit,
    ScoreAxis,
    between,
    fit_members,
)
from calibrant.losses import logit, sigmoid
from calibrant.maps import Interval, Map, Piecewise
from calibrant.maps.approximate import refine
from calibrant.maps.checks import in_blocks

#: at most this many cells are fitted: BY_WEIGHT of equal weight, the others of equal width. An odd
#: prime, so that no cut falls into the middle of one of equal rows
CELLS, BY_WEIGHT = 600, 401
#: how far beyond the outermost scores a map goes on, in log-odds
BEYOND = 3.0
#: prior weights of members that count more than 1: scores are not to be changed without a reason
PRIOR = {"identity": 2.0, "near identity": 2.0}
#: members of less weight than this are left out of the average
NEGLIGIBLE = 1e-6
#: members count in bands by evidence^(power · this), so that more of them have a say
BAND_POWER = 0.5
#: the largest difference of log-odds between the map and the average
MAP_ERROR = 1e-3
#: a larger total weight counts as this much
MOST_WEIGHT = 1e9
#: scores that differ by less than this share of the score (of the largest margin) are one score
ROUNDING = 2.0**-48


@dataclass(frozen=True)
class BLSMember:
    """One of the maps that `BLS` averages.

    Attributes
    ----------
    name : {"identity", "near identity", "platt", "quadratic", "beta", "bending", "rough"}
        Its shape.
    coordinate : {"logit", "margin", "rank"}
        What it is a function of; ranks are turned into normal scores.
    freedom : float or None
        For lines, the prior standard deviation of the change at their nodes, per unit.
    log_evidence : float
        ln of the probability of the labels under this member, by Laplace's approximation.
    weight : float
        Its share in the average.
    coefficients : tuple of float
        The posterior mode: value and slope (per standard deviation) at the middle of the
        coordinate, and what the shape adds.
    nodes : tuple of float
        For lines, where the slope may change, in standard deviations of the coordinate.
    """

    name: str
    coordinate: str
    freedom: float | None
    log_evidence: float
    weight: float
    coefficients: tuple[float, ...]
    nodes: tuple[float, ...]


class BLS(Calibrator):
    """Bayesian-averaged logit splines: our default. Smooth, monotone, nothing to choose.

    Some twenty maps are fitted with priors and averaged by how well each explains the labels. They
    range from the scores as they are, over sigmoids, to broken lines with sixty knots. With few
    rows the average is near the identity or a sigmoid; with many it follows whatever shape there
    is. There is no cross-validation and nothing random.

    Parameters
    ----------
    monotone : bool, default=True
        Whether a higher score never gets a lower probability. The average then passes through
        isotonic regression, so scores that run the wrong way give an almost constant map.
    levels : tuple of float, default=()
        Credible levels such as ``(0.9,)``: the map becomes an Interval with a band for each.
    power : float, default=0.5
        Members have weights ∝ evidence^power: 1 is Bayes' rule, 0 gives all the same weight. The
        members resemble each other and none is true, so that a power below 1 predicts better.
    moderation : float, default=0.25
        How far uncertain log-odds are drawn towards those of the base rate: 0 not at all, 1 as
        far as the posterior mean is.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    members_ : tuple of BLSMember
        The maps: name, coordinate, evidence, weight, coefficients.
    evidences_, weights_ : ndarrays of shape (m,)
        The members' log evidences, and their weights in the average.
    n_cells_ : int
        The number of cells fitted: the distinct scores, or at most 600 groups of neighbours.
    map_error_ : float
        The largest difference between the map and the average: 0.001 in log-odds, which is at
        most 0.00025 in probability, and a thousandth of p.

    Notes
    -----
    Each member is a function f of the logit of the score (of a margin itself), or of its rank. It
    is fitted by Newton's method on its posterior, and has the weight w ∝ evidence^power by
    Laplace's approximation [1]_. With v the posterior variance of f and b the log-odds of the base
    rate,

        p = Σ w·σ(b + (f − b)/√(1 + moderation·πv/8)).

    At last all log-odds are shifted alike, so that the probabilities of the fitted rows sum to the
    number of positives. With fewer than 30 events (rows of the rarer class) the members have a say
    in that sum: one positive in 300,000 rows gives a sum of about 1.05, none about 0.1.

    The map goes on for 3 log-odds beyond the outermost scores (for margins: one range), and is flat
    from there. It is never 0 or 1. Ties are never split. The members do not care which class is
    the positive one. But the average is drawn as straight pieces, from the lowest score on: with
    labels and signs of margins swapped, other knots are kept, and the two maps differ by up to
    ``map_error_`` in log-odds, some 0.0001 in probability.

    Bands are quantiles of the members' posteriors, exact at some 256 places. They leave out the
    member that takes the scores as they are, which is certain of itself, weigh the others by
    evidence^(power/2), and need not rise where the map does: so they hold truths near the identity,
    and show where the truth may fall. They hold at a place, not everywhere at once, and promise
    nothing for a staircase: with few rows no member is one (the page on BLS has a table).

    O(N) after the table, then O(1), since at most 600 cells are fitted. The page on BLS lists the
    members with their priors, and says what happens at 0 and 1 and with few events.

    References
    ----------
    .. [1] D. MacKay, "The evidence framework applied to classification networks", 1992,
       doi:10.1162/neco.1992.4.5.720.
    .. [2] J. Hoeting, D. Madigan, A. Raftery, C. Volinsky, "Bayesian model averaging: a tutorial",
       1999, doi:10.1214/ss/1009212519.
    .. [3] C. Holmes, S. Walker, "Assigning a value to a power likelihood in a general Bayesian
       model", 2017, doi:10.1093/biomet/asx010.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> c = BLS(levels=(0.9,)).fit(p, y)
    >>> c.calibrate([0.3, 0.7]).round(2).tolist()
    [0.09, 0.47]
    >>> [bound.round(2).tolist() for bound in c.map_.bounds([0.7])]
    [[0.43], [0.51]]
    >>> max(c.members_, key=lambda member: member.weight).name
    'platt'
    """

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "monotone": (OneOf((True, False)),),
        "levels": (Each(Number(0, 0.999999, open=True)),),
        "power": (Number(0, 10),),
        "moderation": (Number(0, 1),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        monotone: bool = True,
        levels: tuple[float, ...] = (),
        power: float = 0.5,
        moderation: float = 0.25,
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.monotone = monotone
        self.levels = levels
        self.power = power
        self.moderation = moderation
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    @one_thread()
    def _fit(self, table: ScoreTable) -> Map:
        axis = _axis(table)
        places = _places(table, axis)
        cells = _cells(table, axis, places, min(table.total, MOST_WEIGHT))
        where = Coordinates.of(cells, axis)
        fits = fit_members(cells, where)
        self.evidences_ = np.array([fit.log_evidence for fit in fits])
        self.weights_ = _weights(fits, self.power)
        self.members_ = tuple(map(_member, fits, self.weights_.tolist()))
        self.n_cells_, self.map_error_ = len(cells.a), MAP_ERROR
        average = MemberAverage(
            where, *_that_count(fits, self.weights_), self.moderation, cells.base
        )
        drawn, at, point = self._draw(average, cells, places, table.weight / table.total)
        kind = "logit" if average.where.axis.on_logit else "score"
        # the identity is certain of itself, and would leave a band without any width
        others = [fit for fit in fits if fit.name != "identity"]
        counted, shares = _that_count(others, _weights(others, BAND_POWER * self.power))
        doubting = average._replace(fits=counted, weights=shares)
        for level in sorted(float(level) for level in self.levels):
            low, high = (doubting.quantile(at, (1.0 + side * level) / 2.0) for side in (-1.0, 1.0))
            bounds = np.minimum(low, point), np.maximum(high, point)
            lower, upper = (Piecewise.linear(at, bound, kind, "logit") for bound in bounds)
            drawn = Interval(lower, upper, drawn, level)
        return drawn

    def _draw(
        self, average: MemberAverage, cells: AxisCells, places: Array, share: Array
    ) -> tuple[Map, Array, Array]:
        """The average as straight pieces; the places where bands are given, and it is there.

        ``places`` are those of all scores on the axis, ``share`` their shares of the weight.
        """
        axis = average.where.axis
        kind = "logit" if axis.on_logit else "score"
        ends = _ends(axis)
        a = np.unique(np.concatenate((ends, average.corners())))
        a = a[(a >= ends[0]) & (a <= ends[-1])]
        v = average(a)
        a, _, v = refine(average.__call__, a, v, v, MAP_ERROR / 2)
        if self.monotone:
            v = rising(a, v, cells)
        kept = thinned(a, v, MAP_ERROR / 2)
        drawn_at = in_blocks(lambda part: between(part, a[kept], v[kept]), places)
        shift = shift_to_rate(drawn_at, share, expected_rate(average, cells))
        v = np.clip(v + shift, -MOST_ODDS, MOST_ODDS)
        drawn: Map = Piecewise.linear(a[kept], v[kept], kind, "logit")
        at = spread_out(a, cells)
        return drawn, at, np.interp(at, a, v)


def _weights(fits: Sequence[MemberFit], power: float) -> Array:
    """Prior times evidence^power, summing to 1."""
    evidence = np.array([fit.log_evidence for fit in fits])
    prior = np.array([PRIOR.get(fit.name, 1.0) for fit in fits])
    share = prior * np.exp(power * (evidence - evidence.max()))
    return np.asarray(share / share.sum())


def _that_count(fits: Sequence[MemberFit], weights: Array) -> tuple[tuple[MemberFit, ...], Array]:
    """The members of more than a negligible weight, and their weights."""
    used = np.flatnonzero(weights > NEGLIGIBLE)
    return tuple(fits[int(i)] for i in used), weights[used] / weights[used].sum()


def _member(fit: MemberFit, weight: float) -> BLSMember:
    theta = () if fit.posterior is None else tuple(fit.posterior.theta.tolist())
    nodes = () if fit.band is None else tuple(fit.band.nodes.tolist())
    return BLSMember(fit.name, fit.coordinate, fit.freedom, fit.log_evidence, weight, theta, nodes)


# --- from the table to cells ----------------------------------------------------------------------


def _axis(table: ScoreTable) -> ScoreAxis:
    low, high = float(table.scores[0]), float(table.scores[-1])
    inner = inner_interval(table)
    if inner is None:
        return ScoreAxis(False, low, high, (-1.0, 2.0))
    first, last = logit(np.clip([low, high], *inner))
    least = first if low == 0.0 else first - BEYOND
    most = last if high == 1.0 else last + BEYOND
    bounds = np.clip([least, most], -FURTHEST, FURTHEST)
    ends = logit(np.array([low, high]))
    return ScoreAxis(True, float(ends[0]), float(ends[1]), (float(bounds[0]), float(bounds[1])))


def _places(table: ScoreTable, axis: ScoreAxis) -> Array:
    """Where the scores are on the axis."""
    return in_blocks(logit, table.scores) if axis.on_logit else table.scores


def _ends(axis: ScoreAxis) -> Array:
    """The ends of the map, and where the linear coordinate stops; ascending."""
    if axis.on_logit:
        return np.sort([*logit(np.array([0.0, 1.0])), *axis.bounds])
    most = np.finfo(float).max
    with np.errstate(over="ignore"):
        width = axis.high - axis.low
        return np.unique(np.clip([axis.low - width, axis.high + width], -most, most))


def _cells(table: ScoreTable, axis: ScoreAxis, a: Array, size: float) -> AxisCells:
    """The table's cells at places a on the axis, weights scaled to the given sum; of many,
    neighbours are merged."""
    n0, n1, scale = table.negative, table.positive, size / table.total
    share = table.weight / table.total
    starts = _apart_from_rounding(table.scores, a, axis)
    few = len(starts) <= CELLS
    starts = starts if few else _starts(table, axis)
    ends = np.append(starts[1:], len(a)) - 1
    whole = np.add.reduceat(share, starts)
    n0, n1 = (np.add.reduceat(n, starts) * scale for n in (n0, n1))
    if few:
        a = a[starts]
        return AxisCells(a, axis.linear(a), axis.even(a), whole, n0, n1)

    def mean(value: Array) -> Array:
        return np.clip(np.add.reduceat(value * share, starts) / whole, value[starts], value[ends])

    linear, even = mean(in_blocks(axis.linear, a)), mean(in_blocks(axis.even, a))
    return AxisCells(axis.of_even(even), linear, even, whole, n0, n1)


def _apart_from_rounding(s: Array, a: Array, axis: ScoreAxis) -> Index:
    """First indices of scores s that are equal but for rounding, such as .3 and .1 + .2.

    Places a on the axis are equal where the logit made them so. A long chain of close neighbours is
    cut where it becomes wider than rounding.
    """
    size = np.abs(s[1:]) if axis.on_logit else max(abs(axis.low), abs(axis.high))
    with np.errstate(over="ignore"):
        new = np.append(True, (s[1:] - s[:-1] > ROUNDING * size) & (a[1:] > a[:-1]))
    if not new.all():
        first = s[np.flatnonzero(new)][np.cumsum(new) - 1]
        wide = ROUNDING * (np.abs(first) if axis.on_logit else size)
        step = np.floor((s - first) / np.maximum(wide, 5e-324))
        new[1:] |= (step[1:] > step[:-1]) & (a[1:] > a[:-1])
    return np.flatnonzero(new)


def _starts(table: ScoreTable, axis: ScoreAxis) -> Index:
    """Where cells begin: some of equal weight, some of equal width in the linear coordinate."""
    upto = np.cumsum(table.weight)
    middle = upto - table.weight / 2.0
    by_weight = np.searchsorted(middle, upto[-1] * np.arange(1, BY_WEIGHT) / BY_WEIGHT)
    widths = CELLS - BY_WEIGHT
    low, high = axis.linear(np.array([axis.low, axis.high]))
    along = np.arange(1, widths) / widths
    edges = axis.of_linear(low * (1.0 - along) + high * along)
    by_width = np.searchsorted(table.scores, sigmoid(edges) if axis.on_logit else edges)
    starts = np.unique(np.concatenate(([0], by_weight, by_width)))
    return np.asarray(starts[starts < len(table)])
