"""BLS, Bayesian-averaged logit splines: many smooth maps, averaged by their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import isotonic_regression
from scipy.special import expit, ndtr, ndtri

from calibrant.array_types import Array, Index
from calibrant.data.door import Each, Limit, Number, OneOf
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.losses import logit, sigmoid
from calibrant.rules.base import Map, in_blocks
from calibrant.rules.chain import Interval
from calibrant.rules.piecewise import Piecewise, refined_lines
from calibrant.solvers.knots import few_knots, interpolate, piece_of
from calibrant.solvers.newton import descend
from calibrant.solvers.threads import one_thread

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


@dataclass(kw_only=True, eq=False, repr=False)
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
    weights, direction, pos_label, classes : see `Calibrator`

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
    number of positives. The members have a say in that sum as far as the scores may be right (by
    the weight of the two members at the identity where power is 1), since an exact sum would follow
    the noise of the labels, too. They also have a say with fewer than 30 events (rows of the rarer
    class): one positive in 300,000 rows gives a sum of about 1.05, none about 0.1.

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

    monotone: bool = True
    levels: tuple[float, ...] = ()
    power: float = 0.5
    moderation: float = 0.25
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "monotone": (OneOf((True, False)),),
        "levels": (Each(Number(0, 0.999999, open=True)),),
        "power": (Number(0, 10),),
        "moderation": (Number(0, 1),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    @one_thread()
    def _fit(self, table: ScoreTable) -> Map:
        axis = ScoreAxis.of(table)
        places = axis.places(table)
        cells = AxisCells.of(table, axis, places, min(table.total, MOST_WEIGHT))
        fits = fit_members(cells)
        self.evidences_ = np.array([fit.log_evidence for fit in fits])
        self.weights_ = _member_weights(fits, self.power)
        self.members_ = tuple(
            fit.member(weight) for fit, weight in zip(fits, self.weights_.tolist(), strict=True)
        )
        self.n_cells_, self.map_error_ = len(cells.a), MAP_ERROR
        average = MemberAverage(cells, *_main_members(fits, self.weights_), self.moderation)
        # the average as straight pieces: places on the axis, and the log-odds there
        ends = axis.ends
        a = np.unique(np.concatenate((ends, average.corners())))
        a = a[(a >= ends[0]) & (a <= ends[-1])]
        v = average(a)
        a, _, v = refined_lines(average.__call__, a, v, v, MAP_ERROR / 2)
        v = isotonic_log_odds(a, v, cells) if self.monotone else v
        size = float(np.abs(a).max()) or 1.0  # widths could overflow
        kept = few_knots((a / size).tolist(), v.tolist(), MAP_ERROR / 2)
        drawn_at = in_blocks(lambda part: interpolate(part, a[kept], v[kept]), places)
        at_identity = np.array([fit.name in PRIOR for fit in fits])
        rate = expected_rate(average, right=float(_member_weights(fits, 1.0)[at_identity].sum()))
        shift = shift_to_rate(drawn_at, table.weight / table.total, rate)
        v = np.clip(v + shift, -MOST_ODDS, MOST_ODDS)
        kind = "logit" if axis.on_logit else "score"
        drawn: Map = Piecewise.linear(a[kept], v[kept], kind, "logit")
        at = _band_places(a, cells)
        point = np.interp(at, a, v)
        # the identity is certain of itself, and would leave a band without any width
        others = [fit for fit in fits if fit.name != "identity"]
        counted, shares = _main_members(others, _member_weights(others, BAND_POWER * self.power))
        doubting = average._replace(fits=counted, weights=shares)
        for level in sorted(float(level) for level in self.levels):
            low, high = (doubting.quantile(at, (1.0 + side * level) / 2.0) for side in (-1.0, 1.0))
            bounds = np.minimum(low, point), np.maximum(high, point)
            lower, upper = (Piecewise.linear(at, bound, kind, "logit") for bound in bounds)
            drawn = Interval(lower, upper, drawn, level)
        return drawn


def _member_weights(fits: Sequence[MemberFit], power: float) -> Array:
    """The weights of members: prior times evidence^power, of sum 1."""
    evidence = np.array([fit.log_evidence for fit in fits])
    prior = np.array([PRIOR.get(fit.name, 1.0) for fit in fits])
    share = prior * np.exp(power * (evidence - evidence.max()))
    return np.asarray(share / share.sum())


def _main_members(fits: Sequence[MemberFit], weights: Array) -> tuple[tuple[MemberFit, ...], Array]:
    """The members of more than a negligible weight, and their weights."""
    used = np.flatnonzero(weights > NEGLIGIBLE)
    return tuple(fits[int(i)] for i in used), weights[used] / weights[used].sum()


# --- From the table to cells on the axis ----------------------------------------------------------
# The *axis* is what the map's knots are on: log-odds of probabilities, or margins as they are.
# Members are functions of one of two coordinates of the axis: a *linear* one, and the normal score
# of the mid-*rank*. All of them are symmetric: if scores and labels are turned round, so is the
# member. (The map then keeps other knots, see `BLS`.)


#: log-odds are cut here in the members that are linear or smooth in them
FURTHEST = 15.0
#: the least standard deviation of log-odds (closer scores are all but one score), and of the term
#: that the beta map adds
LEAST_SPREAD, LEAST_BOWL = 0.25, 0.05


class ScoreAxis(NamedTuple):
    """The axis: whether it has log-odds, its ends in the data, and the bounds of the linear
    coordinate."""

    on_logit: bool
    low: float
    high: float
    bounds: tuple[float, float]

    @classmethod
    def of(cls, table: ScoreTable) -> ScoreAxis:
        """The axis of a table's scores."""
        low, high = float(table.scores[0]), float(table.scores[-1])
        inner = table.inner_interval
        if inner is None:
            return cls(False, low, high, (-1.0, 2.0))
        first, last = logit(np.clip([low, high], *inner))
        least = first if low == 0.0 else first - BEYOND
        most = last if high == 1.0 else last + BEYOND
        bounds = np.clip([least, most], -FURTHEST, FURTHEST)
        ends = logit(np.array([low, high]))
        return cls(True, float(ends[0]), float(ends[1]), (float(bounds[0]), float(bounds[1])))

    def places(self, table: ScoreTable) -> Array:
        """The places of a table's scores."""
        return in_blocks(logit, table.scores) if self.on_logit else table.scores

    @property
    def ends(self) -> Array:
        """The ends of the map, and where the linear coordinate stops; ascending."""
        if self.on_logit:
            return np.sort([*logit(np.array([0.0, 1.0])), *self.bounds])
        most = np.finfo(float).max
        with np.errstate(over="ignore"):
            width = self.high - self.low
            return np.unique(np.clip([self.low - width, self.high + width], -most, most))

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
        return _rescale_tails(a, np.log1p) if self.on_logit else a

    def of_even(self, e: Array) -> Array:
        """The inverse of `even`."""
        return _rescale_tails(e, np.expm1) if self.on_logit else e


def _rescale_tails(x: Array, scale: Callable[[Array], Array]) -> Array:
    """Numbers with what lies beyond ±15 put on another scale."""
    inner = np.clip(x, -FURTHEST, FURTHEST)
    rest = x - inner
    return np.asarray(inner + np.sign(rest) * scale(np.abs(rest)))


class AxisCells(NamedTuple):
    """Cells: places on the axis, two coordinates there (means over each cell), shares of the
    weight, weights of the classes, and mid-ranks as normal scores.

    Beside them mean and spread of the linear coordinate, and of the term that the beta map adds.
    """

    axis: ScoreAxis
    a: Array
    linear: Array
    even: Array
    share: Array
    n0: Array
    n1: Array
    rank: Array
    mean: float = 0.0
    spread: float = 1.0
    bowl_mean: float = 0.0
    bowl_spread: float = 1.0

    @classmethod
    def of(cls, table: ScoreTable, axis: ScoreAxis, a: Array, size: float) -> AxisCells:
        """The table as cells on the axis, where ``a`` are the places of its scores.

        Weights are scaled to the sum ``size``. Where there are too many, neighbours are merged.
        """
        share = table.weight / table.total
        starts = _equal_starts(table.scores, a, axis)
        few = len(starts) <= CELLS
        starts = starts if few else _cell_starts(table, axis)
        ends = np.append(starts[1:], len(a)) - 1
        whole = np.add.reduceat(share, starts)
        n0, n1 = (
            np.add.reduceat(n, starts) * (size / table.total)
            for n in (table.negative, table.positive)
        )

        def mean(value: Array) -> Array:
            total = np.add.reduceat(value * share, starts)
            return np.clip(total / whole, value[starts], value[ends])

        if few:
            a = a[starts]
            linear, even = axis.linear(a), axis.even(a)
        else:
            linear, even = mean(in_blocks(axis.linear, a)), mean(in_blocks(axis.even, a))
            a = axis.of_even(even)
        plain = cls(axis, a, linear, even, whole, n0, n1, ndtri(_mid_ranks(whole)))
        middle, spread = _mean_and_sd(linear, whole)
        spread = max(spread, LEAST_SPREAD) if axis.on_logit else spread or 1.0
        plain = plain._replace(mean=middle, spread=spread)
        middle, spread = _mean_and_sd(plain.bowl(linear), whole)
        return plain._replace(bowl_mean=middle, bowl_spread=max(spread, LEAST_BOWL))

    @property
    def base(self) -> float:
        """The log-odds of the base rate, with half a row added to each class."""
        return float(np.log((self.n1.sum() + 0.5) / (self.n0.sum() + 0.5)))

    def standard(self, linear: Array) -> Array:
        """The linear coordinate with mean 0 and spread 1."""
        return (linear - self.mean) / self.spread

    def ranks(self, a: Array) -> Array:
        """The normal score of the mid-rank, straight between cells and flat beyond them."""
        return interpolate(self.axis.even(a), self.even, self.rank)

    def bowl(self, linear: Array) -> Array:
        """ln(e^{z/2} + e^{−z/2}), with mean 0 and spread 1: what the beta map adds to a sigmoid.

        a·ln p − b·ln(1 − p) is the sum of (a + b)/2 times z and (b − a) times this.
        """
        half = 0.5 * (linear if self.axis.on_logit else self.standard(linear))
        bent = np.logaddexp(half, -half)
        return np.asarray((bent - self.bowl_mean) / self.bowl_spread)


def _mean_and_sd(value: Array, share: Array) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = float(value @ share)
    return mean, float(np.sqrt((value - mean) ** 2 @ share))


def _mid_ranks(share: Array) -> Array:
    """The share of weight below each cell, with half of its own; kept inside (0, 1)."""
    return np.clip(np.cumsum(share) - share / 2.0, 1e-300, 1.0 - 2.0**-53)


def _equal_starts(s: Array, a: Array, axis: ScoreAxis) -> Index:
    """Where runs of scores begin that are equal but for rounding, such as .3 and .1 + .2.

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


def _cell_starts(table: ScoreTable, axis: ScoreAxis) -> Index:
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


# --- The average over the members: it rises, keeps the base rate, and has few knots ---------------


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
    """Members with their weights, and how far they are drawn towards the base rate."""

    cells: AxisCells
    fits: tuple[MemberFit, ...]
    weights: Array
    moderation: float

    def __call__(self, a: Array) -> Array:
        """ln p/(1 − p) of p = Σ weight·σ(b + (f − b)/√(1 + moderation·πv/8)) at places on the axis,
        with b the log-odds of the base rate."""
        p, q, base = np.zeros(len(a)), np.zeros(len(a)), self.cells.base
        for weight, (mean, v) in zip(self.weights, self.moments(a), strict=True):
            f = base + (mean - base) / np.sqrt(1.0 + self.moderation * (np.pi / 8.0) * v)
            f = np.minimum(np.maximum(f, -MOST_ODDS), MOST_ODDS)
            p += weight * expit(f)
            q += weight * expit(-f)
        return np.asarray(np.log(p) - np.log(q))

    def moments(self, a: Array) -> Iterator[tuple[Array, Array]]:
        """Mean and variance of the log-odds, member after member."""
        cells, linear = self.cells, self.cells.axis.linear(a)
        coordinates: dict[bool, Array] = {}  # what several members need is computed once
        pieces: dict[int, tuple[Index, Array]] = {}  # lines of one family share their nodes
        for fit in self.fits:
            if fit.band is None:
                yield fit.moments(cells, linear)
                continue
            nodes, ranked = fit.band.nodes, fit.coordinate == "rank"
            if ranked not in coordinates:
                coordinates[ranked] = cells.ranks(a) if ranked else cells.standard(linear)
            if id(nodes) not in pieces:
                pieces[id(nodes)] = piece_and_share(nodes, coordinates[ranked])
            yield fit.band.moments(*pieces[id(nodes)])

    def corners(self) -> Array:
        """Places on the axis; between neighbouring ones the average is smooth."""
        return np.concatenate((self.cells.a, *(fit.corners(self.cells) for fit in self.fits)))

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


def isotonic_log_odds(a: Array, v: Array, cells: AxisCells) -> Array:
    """Isotonic regression of the probabilities at places on the axis, as log-odds.

    Every place has the weight of the cells nearest to it. So places beyond the data, or between
    distant scores, hardly count.
    """
    after = np.clip(np.searchsorted(a, cells.a), 1, max(len(a) - 1, 1)).clip(max=len(a) - 1)
    before = np.maximum(after - 1, 0)
    closer = cells.a / 2 - a[before] / 2 < a[after] / 2 - cells.a / 2
    nearest = np.where(closer, before, after)
    weight = np.full(len(a), NO_WEIGHT / len(a))
    weight += np.bincount(nearest, cells.share, len(a))
    found = isotonic_regression(expit(v), weights=weight)
    starts, sizes = found.blocks[:-1], np.diff(found.blocks)
    whole = np.add.reduceat(weight, starts)
    p, q = (np.add.reduceat(weight * expit(side * v), starts) / whole for side in (1.0, -1.0))
    block = np.where(sizes > 1, np.log(p) - np.log(q), v[starts])
    return np.maximum.accumulate(np.repeat(block, sizes))


def expected_rate(average: MemberAverage, right: float) -> float:
    """The mean probability that the map is to have on the fitted rows.

    Where the scores are wrong, it is the share of positives. That share is noisy, so what the
    members say (without moderation) counts as far as the scores may be ``right``, a probability.
    With few events (rows of the rarer class) it counts as well: so no event does not mean a
    probability of 0.
    """
    cells = average.cells
    n = cells.n0 + cells.n1
    seen, events = float(cells.n1.sum()), float(min(cells.n0.sum(), cells.n1.sum()))
    said = float(n @ expit(average._replace(moderation=0.0)(cells.a)))
    share = max((PSEUDO_EVENTS / (PSEUDO_EVENTS + events)) ** 2, right)
    return (seen + share * (said - seen)) / float(n.sum())


def shift_to_rate(f: Array, share: Array, rate: float) -> float:
    """What must be added to all log-odds f so that the mean of σ(f), weighted by share, is a rate.

    The mean rises with the shift, so that Newton's method within a bracket finds it.

    >>> round(shift_to_rate(np.zeros(1), np.ones(1), 0.25), 6)  # −ln 3
    -1.098612
    """
    bottom, top = float(f.min()), float(f.max())
    if len(f) > SUMMED and top > bottom:
        group = ((f - bottom) * ((SUMMED - 1) / (top - bottom))).astype(np.intp)
        weight = np.asarray(np.bincount(group, share, SUMMED), dtype=np.float64)
        some = weight > 0.0
        f = np.bincount(group, share * f, SUMMED)[some] / weight[some]
        share = weight[some]
    elif len(f) > SUMMED:
        f, share = f[:1], np.ones(1)
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


def _band_places(a: Array, cells: AxisCells) -> Array:
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


# --- The members of `BLS`: their priors and fits --------------------------------------------------


#: prior standard deviations of value and slope, for a map near the identity (the slope as a share
#: of the identity's) and for any other map
TIGHT, LOOSE = (0.3, 0.2), (4.0, 4.0)
#: prior standard deviations of how much bending lines change their slope over one unit, and of how
#: far rough lines leave the straight one
FREEDOMS = {"bending": (0.25, 0.5, 1.0, 2.0, 4.0), "rough": (0.5, 1.0, 2.0)}
#: the prior mean of the slope per standard deviation, where there is no identity
SLOPE = 1.5
#: inner knots of bending lines: FEWEST + √n/2, up to MOST; rough lines have MOST + 2 nodes
FEWEST, MOST = 8, 60
#: knots among the events, where the other knots are too far apart: √events, up to this
MOST_EVENT_KNOTS = 30
#: the least distance of nodes, as a share of their range
APART = 1e-6


#: sigmoids, and the prior standard deviations of value and slope and of what the shape adds
SHAPES = {"platt": LOOSE, "quadratic": (*LOOSE, 1.0), "beta": (*LOOSE, 2.0)}


class MemberFit(NamedTuple):
    """A member: its shape, its coordinate, the prior standard deviation of its bends, its log
    evidence, its posterior (None for the identity) and, for lines, their band."""

    name: str
    coordinate: str
    freedom: float | None
    log_evidence: float
    posterior: Posterior | None = None
    band: Band | None = None

    def moments(self, cells: AxisCells, linear: Array) -> tuple[Array, Array]:
        """Mean and variance of the log-odds of a sigmoid, or of the identity."""
        if self.posterior is None:
            return linear, np.zeros(len(linear))
        phi = _sigmoid_columns(self.name, cells, linear)
        variance = ((self.posterior.covariance @ phi) * phi).sum(axis=0)
        return np.asarray(self.posterior.theta @ phi), np.maximum(variance, 0.0)

    def corners(self, cells: AxisCells) -> Array:
        """Places on the axis where the member bends sharply."""
        if self.band is None:
            return np.empty(0)
        nodes = self.band.nodes
        if self.coordinate == "rank":
            return cells.axis.of_even(interpolate(nodes, cells.rank, cells.even))
        return cells.axis.of_linear(nodes * cells.spread + cells.mean)

    def member(self, weight: float) -> BLSMember:
        """The public record of this member; ``weight`` is its share in the average."""
        theta = () if self.posterior is None else tuple(self.posterior.theta.tolist())
        nodes = () if self.band is None else tuple(self.band.nodes.tolist())
        known = (self.name, self.coordinate, self.freedom, self.log_evidence)
        return BLSMember(*known, weight, theta, nodes)


def _sigmoid_columns(name: str, cells: AxisCells, linear: Array) -> Array:
    """The design of a sigmoid: a row for each parameter."""
    columns = [np.ones(len(linear)), cells.standard(linear)]
    if name == "quadratic":
        columns.append(columns[1] ** 2 - 1.0)
    if name == "beta":
        columns.append(cells.bowl(linear))
    return np.array(columns)


def fit_members(cells: AxisCells) -> list[MemberFit]:
    """The members of the average, fitted to the cells."""
    unknown = (cells.base, SLOPE)
    fits, coordinate, centre, shapes = [], "margin", unknown, SHAPES
    if cells.axis.on_logit:
        coordinate, centre = "logit", (cells.mean, cells.spread)
        likelihood = log_likelihood(cells.linear, cells.n0, cells.n1)
        fits.append(MemberFit("identity", "logit", None, likelihood))
        shapes = {"near identity": (TIGHT[0], TIGHT[1] * cells.spread), **SHAPES}
    for name, sd in shapes.items():
        design = FewColumns(_sigmoid_columns(name, cells, cells.linear))
        mean = np.array([*centre, *(0.0 for _ in sd[2:])])
        posterior = fit_posterior(design, mean, np.array(sd), cells.n0, cells.n1)
        fits.append(MemberFit(name, coordinate, None, posterior.log_evidence, posterior))
    fits += _knot_lines(cells, cells.standard(cells.linear), coordinate, centre)
    fits += _knot_lines(cells, cells.rank, "rank", unknown)
    # lines with a node at every cell; of many cells, at those at equal steps of the rank
    at = np.arange(len(cells.a))
    if len(at) > MOST + 2:
        middle = _mid_ranks(cells.share)
        steps = np.linspace(middle[0], middle[-1], MOST + 2)
        halves = (middle[1:] + middle[:-1]) / 2.0
        at = np.unique(np.searchsorted(halves, steps))  # the nearest cells
    rough = BrokenLine.rough(_distant_nodes(cells.rank[at]), cells.rank)
    fits += _fit_lines(cells, rough, "rank", unknown)
    return fits


def _knot_lines(
    cells: AxisCells, x: Array, coordinate: str, centre: tuple[float, float]
) -> Iterator[MemberFit]:
    """Lines that bend at knots at equal steps of the mid-rank, and among the events."""
    size = float(cells.n0.sum() + cells.n1.sum())
    knots = _weight_quantiles(x, cells.share, int(min(FEWEST + np.sqrt(size) / 2.0, MOST)))
    knots = np.concatenate((x[:1], knots, _event_knots(cells, x, knots), x[-1:]))
    bending = BrokenLine.bending(_distant_nodes(np.sort(knots)), x)
    yield from _fit_lines(cells, bending, coordinate, centre)


def _weight_quantiles(x: Array, share: Array, count: int) -> Array:
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
    more = _weight_quantiles(x[some], rare[some] / events, count)
    gap = np.searchsorted(knots, more)
    return np.asarray(more[np.bincount(gap, minlength=1)[gap] >= 3])


def _fit_lines(
    cells: AxisCells, design: BrokenLine, coordinate: str, centre: tuple[float, float]
) -> Iterator[MemberFit]:
    mean = np.concatenate((centre, np.zeros(len(design.unit))))
    start = None
    for freedom in FREEDOMS[design.name]:
        sd = np.concatenate((LOOSE, freedom * design.unit))
        posterior = fit_posterior(design, mean, sd, cells.n0, cells.n1, start)
        start = posterior.theta
        band = design.band(start, posterior.covariance)
        evidence = posterior.log_evidence
        yield MemberFit(design.name, coordinate, freedom, evidence, posterior, band)


def _distant_nodes(nodes: Array) -> Array:
    """Ascending nodes, without those that are too close to another; at least two.

    If all nodes are within `APART`, they are one place: the slope of a line through two of them
    would be the rounding of its values.
    """
    low, high = float(nodes[0]), float(nodes[-1])
    if not high - low > APART:
        return np.array([low - 0.5, low + 0.5])
    least = APART * (high - low)
    kept = [low]
    for node in np.sort(nodes[1:-1]).tolist():
        if node - kept[-1] > least and high - node > least:
            kept.append(node)
    return np.array([*kept, high])


# --- Bayesian logistic fits of few columns or of broken lines: mode, curvature, evidence ----------
# Every design is a linear map from parameters θ to log-odds f at cells. A priori the parameters are
# independent normals. All work is done in u = (θ − mean)/sd, whose prior is the unit normal: then
# the Hessian is at least the identity, so that every design is well conditioned.

#: a knot within this distance of 0 bends the line on both of its sides
NEAR = 0.1
#: a fit has converged when another step promises less than this, in nats
ENOUGH = 1e-12


class FewColumns(NamedTuple):
    """A design of a few columns: phi has a row for each parameter."""

    phi: Array

    def times(self, theta: Array) -> Array:
        return np.asarray(theta @ self.phi)

    def back(self, g: Array) -> Array:
        return np.asarray(self.phi @ g)

    def gram(self, w: Array) -> Array:
        return np.asarray((self.phi * w) @ self.phi.T)


class BrokenLine:
    """A broken line: straight between nodes, its values there linear in the parameters.

    The first two parameters are the value and the slope at 0, the others say how the line leaves
    the straight one. Sums over cells need only the two nodes beside each cell, not all columns of
    the design. They take O(D) to bring to the nodes; the rest does not depend on D.

    Parameters
    ----------
    name : {"bending", "rough"}
    nodes : array of shape (k,)
        Strictly ascending, at least two. Beyond them the outermost pieces go on.
    shapes : array of shape (k, m − 2)
        The values at the nodes that each further parameter gives.
    unit : array of shape (m − 2,)
        What multiplies the prior standard deviation of each of these parameters.
    x : array of shape (D,)
        The cells.
    """

    def __init__(self, name: str, nodes: Array, shapes: Array, unit: Array, x: Array) -> None:
        self.name, self.nodes, self.unit = name, nodes, unit
        self.basis = np.column_stack((np.ones(len(nodes)), nodes, shapes))
        self.piece, self.along = piece_and_share(nodes, x)

    @classmethod
    def bending(cls, nodes: Array, x: Array) -> BrokenLine:
        """A line that bends at the inner nodes: its parameters are the changes of slope.

        A node above 0 bends what lies above it, (x − k)₊, and a node below 0 what lies below it,
        (k − x)₊. A node near 0 bends both sides, as |x|/2 does at 0. So the line is anchored at 0,
        where the data are, and becomes uncertain away from there on both sides alike. With bends of
        variance ∝ the distance of nodes it is an integrated Brownian motion, seen at the nodes.
        """
        knots = nodes[1:-1]
        away = nodes[:, None] - knots
        below = np.clip(0.5 - knots / (2.0 * NEAR), 0.0, 1.0)
        shapes = np.maximum(away, 0.0) - below * away  # (k − x)₊ is (x − k)₊ − (x − k)
        return cls("bending", nodes, shapes, np.sqrt((nodes[2:] - nodes[:-2]) / 2.0), x)

    @classmethod
    def rough(cls, nodes: Array, x: Array) -> BrokenLine:
        """A line whose slope differs freely from node to node: Brownian motion around a line.

        Its parameters are how much the slope of each piece differs from the common one. These
        differences have a variance ∝ 1 / the length of the piece.
        """
        low, high = nodes[:-1], nodes[1:]
        shapes = np.clip(nodes[:, None], low, high) - np.clip(0.0, low, high)
        return cls("rough", nodes, shapes, 1.0 / np.sqrt(high - low), x)

    def times(self, theta: Array) -> Array:
        value = self.basis @ theta
        low = value[self.piece]
        return np.asarray(low + self.along * (value[self.piece + 1] - low))

    def back(self, g: Array) -> Array:
        upper, size = g * self.along, len(self.nodes)
        total = np.bincount(self.piece, g - upper, size)
        total[1:] += np.bincount(self.piece, upper, size)[:-1]
        return np.asarray(total @ self.basis)

    def gram(self, w: Array) -> Array:
        size, t = len(self.nodes), self.along
        upper = w * t
        mixed = upper * (1.0 - t)
        diagonal = np.bincount(self.piece, w - upper - mixed, size)
        diagonal[1:] += np.bincount(self.piece, upper * t, size)[:-1]
        beside = np.bincount(self.piece, mixed, size)[:-1, None]
        tall = diagonal[:, None] * self.basis
        tall[:-1] += beside * self.basis[1:]
        tall[1:] += beside * self.basis[:-1]
        return np.asarray(self.basis.T @ tall)

    def band(self, theta: Array, covariance: Array) -> Band:
        """Mean and covariance of the line, given those of its parameters."""
        half = self.basis @ covariance
        own = (half * self.basis).sum(axis=1)
        beside = (half[:-1] * self.basis[1:]).sum(axis=1)
        return Band(self.nodes, self.basis @ theta, own, beside)


class Band(NamedTuple):
    """An uncertain broken line: mean and variance at the nodes, covariance of neighbours."""

    nodes: Array
    value: Array
    own: Array
    beside: Array

    def moments(self, i: Index, t: Array) -> tuple[Array, Array]:
        """Mean and variance at places that lie so far along these pieces."""
        s = 1.0 - t
        variance = s * s * self.own[i] + 2.0 * s * t * self.beside[i] + t * t * self.own[i + 1]
        return s * self.value[i] + t * self.value[i + 1], np.maximum(variance, 0.0)


def piece_and_share(nodes: Array, x: Array) -> tuple[Index, Array]:
    """The piece that each x lies on (the outermost have no end), and how far along the piece."""
    piece = piece_of(nodes, x)
    low, high = nodes[piece], nodes[piece + 1]
    return piece, (x - low) / (high - low)


class _PosteriorPoint(NamedTuple):
    """θ in prior standard deviations from its mean, with the objective and its gradient there, and
    the information n·p(1 − p) of each cell."""

    theta: Array
    objective: float
    gradient: Array
    information: Array


class Posterior(NamedTuple):
    """The mode θ, its covariance, the log evidence, and the steps that led to the mode."""

    theta: Array
    covariance: Array
    log_evidence: float
    steps: int


def log_likelihood(f: Array, n0: Array, n1: Array) -> float:
    """Σ n₁·ln σ(f) + n₀·ln σ(−f)."""
    common = np.log1p(np.exp(-np.abs(f)))
    return -float((n0 + n1) @ common + n0 @ np.maximum(f, 0.0) + n1 @ np.maximum(-f, 0.0))


def fit_posterior(
    design: FewColumns | BrokenLine,
    mean: Array,
    sd: Array,
    n0: Array,
    n1: Array,
    start: Array | None = None,
) -> Posterior:
    """The posterior of θ ~ N(mean, sd²) given n₁ positives and n₀ negatives at cells, by Laplace.

    ln evidence ≈ ln L(θ̂) − ½|û|² − ½ ln|H|, with û = (θ̂ − mean)/sd and H the Hessian in u.

    Notes
    -----
    `descend` on a strictly convex function of u. A step costs O(D + m³) for broken lines with m
    parameters, and O(D·m²) for columns. Raises where no optimum is found.
    """
    n = n0 + n1

    def at(u: Array) -> _PosteriorPoint:
        f = design.times(mean + sd * u)
        tail = np.exp(-np.abs(f))
        share = 1.0 / (1.0 + tail)
        p = np.where(f >= 0.0, share, tail * share)
        objective = 0.5 * float(u @ u) - log_likelihood(f, n0, n1)
        return _PosteriorPoint(
            u, objective, u + sd * design.back(n * p - n1), n * (tail * share * share)
        )

    def factor(here: _PosteriorPoint) -> Array:
        hessian = design.gram(here.information) * sd * sd[:, None]
        hessian.flat[:: len(sd) + 1] += 1.0
        return np.asarray(dpotrf(hessian, lower=1)[0])

    def step(here: _PosteriorPoint) -> Array:
        return -np.asarray(dpotrs(factor(here), here.gradient, lower=1)[0])

    begin = at(np.zeros(len(mean)) if start is None else (start - mean) / sd)
    found = descend(at, begin, step, float(n.sum()), 100, enough=ENOUGH).required()
    last = at(found.theta)
    lower = factor(last)
    inverse = dpotri(lower, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    log_det = 2.0 * float(np.log(np.diagonal(lower)).sum())
    covariance = inverse * sd * sd[:, None]
    log_evidence = -last.objective - 0.5 * log_det
    return Posterior(mean + sd * last.theta, covariance, log_evidence, found.steps)
