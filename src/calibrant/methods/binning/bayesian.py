"""Bayesian binning: ABB averages over all binnings, SBB takes the best, BBQ averages histograms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Each, Limit, Number, OneOf
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.losses import sigmoid
from calibrant.methods.binning._kernel import (
    average_of_maxima,
    best_binning,
    chain_moments,
    gauss_legendre,
    log_evidence,
    posterior_rows,
)
from calibrant.rules.base import Map
from calibrant.rules.chain import Interval
from calibrant.rules.mixture import Mixture
from calibrant.rules.piecewise import Piecewise, refined_lines
from calibrant.solvers._kernel import simplify
from calibrant.solvers.weights import SELECT, criterion_weights

#: the largest total weight; every cell then takes 31,000 nodes
HEAVIEST = 1e8
#: the λ that are averaged: half a decade apart, of equal prior weight
GRID = 10.0 ** np.arange(-1.0, 4.25, 0.5)
#: λ with less weight than this are left out of the average
LEAST = 1e-4
#: the largest difference aimed at between ABB's map and the exact average
MAP_ERROR = 1e-6
#: the most knots, beyond the scores, that this may take
MOST_KNOTS = 300_000
#: a larger difference than this is warned of
COARSE = 1e-4
#: the band is computed at no more scores than this
BAND_SCORES = 1024


@dataclass(kw_only=True, eq=False, repr=False)
class ABB(Calibrator):
    """The exact average over all 2^(D−1) binnings, each weighted by its posterior probability.

    Parameters
    ----------
    lambda_ : float, "empirical" or "average", default="average"
        λ, the expected number of bin boundaries between the lowest and the highest score.
        ``"empirical"``: the λ of the largest evidence. ``"average"``: an average over a grid of λ,
        uniform in ln λ, weighted by evidence.
    tol : float, default=1e-10
        The quadrature error aimed at; it sets the number of nodes.
    levels : tuple of float, default=()
        Credible levels such as ``(0.9,)``: the map becomes an Interval with a band for each.
    variant : {"exact", "text"}, default="exact"
        For comparison with the paper: ``"text"`` takes the *highest* scores of the sub-binnings in
        place of their sums (eq. 2.8), as the text says. O(D²).
    cache : int or None, default=None
        Store the result in this many cells of equal width, as in the paper's §2.4, so that the map
        has a fixed size. The cells divide [0, 1], or the range of scores where these leave it.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    log_evidence_ : float
        ln of the summed score of all binnings (averaged over λ).
    lambdas_, lambda_weights_ : ndarrays
        The λ used, and their weights.
    n_nodes_ : int
        Quadrature nodes.
    error_ : float
        Estimated quadrature error: how the log evidence changes when a sixth of the nodes is left
        out.
    cache_error_ : float or None
        With ``cache``: the largest change that the cells make at the training scores.
    map_error_ : float
        The largest difference between the map (before ``cache``) and the exact average: 1e-6, or
        more where a large λ would take too many knots. Above 1e-4 there is a warning.

    Notes
    -----
    The probability θ of a bin is uniform a priori. Boundaries are a Poisson process on the score
    axis, λ of them expected between the extremes. So θ is a Markov chain along the scores, and its
    forward–backward recursion on Gauss–Legendre nodes sums over all binnings: O(D·G) time with
    G ≈ 3√N nodes, O(D) memory. (The paper's programme is O(D²) per λ.) Predictions between training
    scores are exact as well, and the average is continuous; the map is straight pieces within
    ``map_error_`` of it, flat beyond the extremes. It is never 0 or 1. Ties are never split. N is
    the effective number of rows; fractional weights take half as many nodes again. Bands are exact
    at up to 512 of the scores and at 512 places between the extremes, and straight between those.
    In simulations bands of 90 % hold staircases at 91 to 93 % of places, slopes at 84 to 90 %.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Binary classifier calibration using a
       Bayesian non-parametric approach", 2015, doi:10.1137/1.9781611974010.24.

    Examples
    --------
    >>> s = [0.1, 0.15, 0.2, 0.25, 0.3, 0.6, 0.7, 0.75, 0.8, 0.9]
    >>> c = ABB(lambda_=2, levels=(0.9,)).fit(s, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    >>> c.calibrate([0.2, 0.45, 0.8]).round(3).tolist()
    [0.164, 0.49, 0.832]
    >>> [bound.round(2).tolist() for bound in c.map_.bounds([0.2])]
    [[0.01], [0.45]]
    """

    lambda_: float | str = "average"
    tol: float = 1e-10
    levels: tuple[float, ...] = ()
    variant: str = "exact"
    cache: int | None = None
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "lambda_": (Number(0, open=True), OneOf(("empirical", "average"))),
        "tol": (Number(0, 0.1, open=True),),
        "levels": (Each(Number(0, 1 - 1e-9, open=True)),),
        "variant": (OneOf(("exact", "text")),),
        "cache": (Number(1, whole=True), OneOf((None,))),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        n0, n1, whole = table.negative, table.positive, table.is_whole
        nodes, weight = quadrature(table.total, whole, self.tol)
        self.n_nodes_ = len(weight)
        self.lambdas_, _ = _choose_lambdas(table, self.lambda_)  # weighed anew below, exactly
        gaps = [unit_gaps(table.scores) * value for value in self.lambdas_]
        chains = [_Chain(gap, *chain_moments(n0, n1, gap, nodes, weight)) for gap in gaps]
        logs = np.array([chain.log_evidence for chain in chains])
        share = np.exp(logs - logs.max())
        self.lambda_weights_ = share / share.sum()
        among = len(GRID) if self.lambda_ == "average" else 1
        self.log_evidence_ = float(logs.max() + np.log(share.sum() / among))
        heaviest = chains[int(np.argmax(logs))]
        fewer = quadrature(table.total, whole, self.tol, share=5 / 6)
        self.error_ = abs(log_evidence(n0, n1, heaviest.gaps, *fewer) - heaviest.log_evidence)
        average = _ChainAverage(table.scores, chains, self.lambda_weights_)
        if self.variant == "exact":
            point, self.map_error_ = average.straight_pieces()
        else:
            value = average.of(average_of_maxima(n0, n1, gap) for gap in gaps)
            point, self.map_error_ = Piecewise.linear(table.scores, np.clip(value, 0.0, 1.0)), 0.0
        self.cache_error_ = None
        if self.cache is not None:
            point, self.cache_error_ = _steps_of_cells(point, table.scores, self.cache)
        return self._with_bands(point, table, nodes, weight) if self.levels else point

    def _with_bands(self, point: Map, table: ScoreTable, nodes: Array, weight: Array) -> Map:
        """The point map inside an equal-tailed band for each level, the widest outermost.

        Bands are computed at scores at equal steps of the rank, and at as many places at equal
        distances, where cells without rows are added.
        """
        half = BAND_SCORES // 2
        along = np.linspace(0.0, 1.0, half)
        places = table.scores[0] * (1 - along) + table.scores[-1] * along
        x = np.union1d(table.scores, np.clip(places, table.scores[0], table.scores[-1]))
        n0, n1 = np.zeros(len(x)), np.zeros(len(x))
        mine = np.searchsorted(x, table.scores)
        n0[mine], n1[mine] = table.negative, table.positive
        ranks = np.unique(np.linspace(0, len(table) - 1, half).astype(np.intp))
        at = np.union1d(mine[ranks], np.searchsorted(x, places).clip(0, len(x) - 1))
        rows = np.zeros((len(at), len(weight)))
        for part, value in zip(self.lambda_weights_, self.lambdas_, strict=True):
            rows += part * posterior_rows(n0, n1, unit_gaps(x) * value, nodes, weight, at)
        levels = sorted(float(level) for level in self.levels)
        tails = np.array([(1 + side * level) / 2 for level in levels for side in (-1.0, 1.0)])
        angle = 2.0 * np.arctan2(np.sqrt(nodes[0]), np.sqrt(nodes[1]))
        bounds = np.array([_quantiles(row, angle, weight, tails) for row in rows])
        for k, level in enumerate(levels):
            low, high = (Piecewise.linear(x[at], bounds[:, 2 * k + side]) for side in (0, 1))
            point = Interval(low, high, point, level)
        return point


def _choose_lambdas(table: ScoreTable, wanted: float | str) -> tuple[Array, Array]:
    """The λ to use: the one given, the likeliest, or those of the grid; and their weights.

    The weights are those of a table pooled to 2,000 scores.
    """
    if not isinstance(wanted, str):
        return np.array([float(wanted)]), np.ones(1)
    table = table.pool(2000)  # the evidence of λ hardly depends on the exact scores
    nodes = quadrature(table.total, table.is_whole, 1e-4)
    gaps = unit_gaps(table.scores)

    def evidence(value: float) -> float:
        return log_evidence(table.negative, table.positive, gaps * value, *nodes)

    logs = np.array([evidence(float(value)) for value in GRID])
    if wanted == "average":
        weights = criterion_weights(-2.0 * logs)
        kept = weights >= LEAST
        return GRID[kept], weights[kept] / weights[kept].sum()
    # the grid's best, then Brent's method between its neighbours
    best = int(np.argmax(logs))
    low, high = np.log10(GRID[max(best - 1, 0)]), np.log10(GRID[min(best + 1, len(GRID) - 1)])
    found = minimize_scalar(
        lambda exponent: -evidence(float(10.0**exponent)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-3},
    )
    value = 10.0**found.x if -found.fun >= logs[best] else GRID[best]
    return np.array([float(value)]), np.ones(1)


def unit_gaps(scores: Array) -> Array:
    """(x_{k+1} − x_k) / (x_D − x_1), safe from overflow.

    >>> unit_gaps(np.array([0.0, 1.0, 4.0])).tolist()
    [0.25, 0.75]
    """
    with np.errstate(over="ignore"):
        span = scores[-1] - scores[0]
    if np.isinf(span):
        return np.asarray(np.diff(scores / 2.0) / (scores[-1] / 2.0 - scores[0] / 2.0))
    return np.asarray(np.diff(scores) / span)


def quadrature(total: float, whole: bool, tol: float, share: float = 1.0) -> tuple[Array, Array]:
    """Rows θ, 1−θ, ln θ, ln(1−θ) at the nodes, and their weights, for an error of about ``tol``.

    The narrowest posterior, of one bin with all the weight N, has the width 1/√N in the angle
    2·arcsin √θ, in which the nodes are π/G apart: the error falls as e^{−2G²/N}/40. For whole
    weights all integrands are polynomials of degree N+1 at most, so that N/2+2 nodes are exact.
    Fractional weights put roots of θ and 1−θ into the integrand. The substitution θ = t²(3−2t)
    smooths them, and takes half as many nodes again, at least 200. ``share`` takes only this share
    of the nodes, to estimate the error.
    """
    if total > HEAVIEST:
        raise InputError(
            f"averaging over binnings takes √N nodes, so the total weight N must be at most "
            f"{HEAVIEST:g}, but it is {total:g}. Divide weights that are no counts by their mean; "
            "for more rows than that use BBQ or Isotonic, or SBB with a number for lambda_."
        )
    wanted = math.sqrt(max(math.log(1.0 / tol) - math.log(40.0), 4.0) / 2.0) * math.sqrt(total)
    count = share * (min(wanted, total / 2.0 + 2.0) if whole else max(1.5 * wanted, 192.0)) + 8.0
    t, weight = gauss_legendre(8 * math.ceil(count / 8.0))
    theta, rest = t, t[::-1].copy()  # the nodes are symmetric, so that 1 − θ needs no subtraction
    if not whole:
        weight = weight * 6.0 * theta * rest
        theta, rest = t * t * (1.0 + 2.0 * rest), rest * rest * (1.0 + 2.0 * t)
    return np.stack((theta, rest, np.log(theta), np.log(rest))), weight


class _Chain(NamedTuple):
    """The Markov chain of binnings for one λ: expected boundaries between scores, and
    `chain_moments`."""

    gaps: Array
    moments: Array
    log_evidence: float

    def probability(self, i: Index, share: Array | float) -> Array:
        """The exact P at a place between score i and the next; ``share`` is how far along it
        lies."""
        h = self.gaps[i]
        a = h * share
        b = h - a
        joint, theta_joint, theta_left, theta_right = self.moments[:, i]
        # no boundary in the gap; one on the right, on the left, or on both sides of the query
        same = np.exp(-h)
        to_left, to_right = -np.exp(-a) * np.expm1(-b), -np.exp(-b) * np.expm1(-a)
        alone = np.expm1(-a) * np.expm1(-b)
        theta = same * theta_joint + to_left * theta_left + to_right * theta_right + 0.5 * alone
        return np.asarray(theta / (same * joint + to_left + to_right + alone))

    def at_scores(self) -> Array:
        """The exact P at all scores."""
        inner = np.arange(len(self.gaps))
        return np.append(self.probability(inner, 0.0), self.moments[2, -1])

    def is_curved(self, tol: float) -> Flags:
        """Flags of the gaps in which P may differ from a straight line by more than ``tol``.

        To first order in h, P is linear across the gap: its numerator is linear in a, and its
        denominator constant. Terms of higher order are at most h²/4 in both.
        """
        h, joint = self.gaps, self.moments[0, :-1]
        return np.asarray(h * h > 4.0 * tol * (np.exp(-h) * joint + h))


class _ChainAverage(NamedTuple):
    """The chains of several λ with their weights, as one function of the score."""

    scores: Array
    chains: list[_Chain]
    weights: Array

    def __call__(self, x: Array) -> Array:
        i = np.clip(np.searchsorted(self.scores, x, side="right") - 1, 0, len(self.scores) - 2)
        low, high = self.scores[i] / 2, self.scores[i + 1] / 2  # a gap could overflow
        share = np.clip((x / 2 - low) / np.maximum(high - low, 5e-324), 0.0, 1.0)
        return self.of(chain.probability(i, share) for chain in self.chains)

    def of(self, parts: Iterable[Array]) -> Array:
        """The weighted average of arrays, one for each λ."""
        return np.asarray(
            sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
        )

    def straight_pieces(self) -> tuple[Piecewise, float]:
        """The average as straight pieces, and the largest difference that this makes.

        Half of the error comes from refining, and a quarter from thinning. With a λ of thousands
        every gap is curved, and the map would need millions of knots. Then a larger error is
        allowed.
        """
        x, error = self.scores, MAP_ERROR
        v = self.of(chain.at_scores() for chain in self.chains)
        while len(x) > 1:
            curved = np.logical_or.reduce([chain.is_curved(error / 8) for chain in self.chains])
            try:
                x, _, v = refined_lines(self.__call__, x, v, v, error / 2, MOST_KNOTS, curved)
            except ParameterError:  # too many knots
                error *= 4.0
                continue
            with np.errstate(over="ignore"):
                scale = 1.0 if np.isfinite(x[-1] - x[0]) else 0.5
            kept = simplify(x * scale, v, error / 4)
            x, v = x[kept], v[kept]
            break
        if error > COARSE:
            warnings.warn(
                f"the map would need more than {MOST_KNOTS} knots to be within {MAP_ERROR:g} of "
                f"the exact average, so it is within {error:.2g}. More boundaries are expected "
                "than there are scores: a smaller lambda_ is likely to be better.",
                CalibrationWarning,
                stacklevel=caller_level(),
            )
        return Piecewise.linear(x, np.clip(v, 0.0, 1.0)), error


def _quantiles(mass: Array, angle: Array, weight: Array, tails: Array) -> Array:
    """Quantiles of a posterior whose mass is known at the nodes.

    Its log density is close to a parabola in the angle 2·arcsin √θ, so a spline in this angle
    is summed up on a finer grid.
    """
    inside = np.flatnonzero(mass > 1e-12 * mass.max())
    low, high = max(inside[0] - 2, 0), min(inside[-1] + 3, len(mass))
    density = np.log(np.maximum(mass[low:high] / weight[low:high], 1e-280))
    begin = 0.0 if low == 0 else angle[low]
    end = np.pi if high == len(mass) else angle[high - 1]
    fine = np.linspace(begin, end, 16 * (high - low))
    height = np.exp(CubicSpline(angle[low:high], density)(fine)) * np.sin(fine)
    upto = np.append(0.0, np.cumsum(height[1:] + height[:-1]))
    return np.asarray(np.sin(np.interp(tails, upto / upto[-1], fine) / 2.0) ** 2)


def _steps_of_cells(point: Piecewise, scores: Array, cells: int) -> tuple[Piecewise, float]:
    """Steps with the values of a map in the middle of cells of equal width (§2.4), and the largest
    error at the scores.

    The cells divide [0, 1], or the range of the scores if that is wider.
    """
    low, high = 0.0, 1.0
    if scores[0] < 0.0 or scores[-1] > 1.0:
        low, high = float(scores[0]), float(scores[-1])
    if low == high:
        return point, 0.0
    shares = np.arange(cells + 1) / cells
    edges = np.unique(low * (1.0 - shares) + high * shares)  # cells may be finer than floats
    step = Piecewise.step(edges[1:-1], point(edges[1:] / 2 + edges[:-1] / 2))
    return step, float(np.abs(step(scores) - point(scores)).max())


# --- SBB: the best binning of all -----------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class SBB(Calibrator):
    """The binning of highest posterior probability among all 2^(D−1), found exactly for each λ.

    Parameters
    ----------
    lambda_ : float, "empirical" or "average", default="average"
        λ, the expected number of bin boundaries between the lowest and the highest score; a number
        gives one binning, as in the paper. ``"empirical"`` takes the λ of the largest evidence
        (summed over all binnings). ``"average"`` averages the best binnings of a grid of λ,
        weighted by evidence, which beats any single λ out of sample.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    bins_ : Binning
        Edges, counts and values of the bins (of the heaviest λ for ``"average"``). The outer edges
        are the lowest and the highest score.
    log_score_ : float
        ln of the score of that binning (eq. 2.7).
    lambdas_, lambda_weights_ : ndarrays
        The λ used, and their weights.

    Notes
    -----
    A boundary lies between x_k and x_{k+1} with probability 1 − exp(−λ(x_{k+1}−x_k)/(x_D−x_1)), and
    a bin with n₀ negatives and n₁ positives has the marginal likelihood n₀!n₁!/(n+1)! (with Γ for
    weights that are not whole) [1]_. The bin's value is (n₁+1)/(n+2), so 0 and 1 are never
    returned. Cuts lie halfway between scores; ties are never split. Weights count in units of rows.

    The dynamic programme of the paper is O(D²); branch and bound finds the same optimum in time
    close to O(D log D), O(D) memory.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Binary classifier calibration using a
       Bayesian non-parametric approach", 2015, doi:10.1137/1.9781611974010.24.

    Examples
    --------
    >>> s = [0.1, 0.15, 0.2, 0.25, 0.3, 0.6, 0.7, 0.75, 0.8, 0.9]
    >>> c = SBB(lambda_=2).fit(s, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    >>> c.bins_.edges.round(3).tolist(), c.bins_.value.round(3).tolist()
    ([0.1, 0.45, 0.9], [0.143, 0.857])
    """

    lambda_: float | str = "average"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "lambda_": (Number(0, open=True), OneOf(("empirical", "average"))),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        gaps = unit_gaps(table.scores)
        self.lambdas_, self.lambda_weights_ = _choose_lambdas(table, self.lambda_)
        binnings = [Binning.most_probable(table, gaps * value) for value in self.lambdas_]
        self.bins_, self.log_score_ = binnings[int(np.argmax(self.lambda_weights_))]
        maps = tuple(Piecewise.step(bins.edges[1:-1], bins.value) for bins, _ in binnings)
        return maps[0] if len(maps) == 1 else Mixture(self.lambda_weights_, maps).collapse()


class Binning(NamedTuple):
    """The bins of a binning. Bin j is [edges[j], edges[j+1]), with its counts and its value."""

    edges: Array
    negative: Array
    positive: Array
    value: Array

    @classmethod
    def most_probable(cls, table: ScoreTable, gaps: Array) -> tuple[Binning, float]:
        """The binning of highest posterior probability for the expected boundaries in each gap, and
        the log of its score."""
        with np.errstate(divide="ignore"):
            log_cut = np.log(-np.expm1(-gaps))
        lookup = table.is_whole and table.total < 1e6 + 20 * len(table)
        factorials = log_factorials(table.total) if lookup else np.empty(0)
        starts, score = best_binning(table.negative, table.positive, gaps, log_cut, factorials)
        n0, n1 = np.add.reduceat(table.negative, starts), np.add.reduceat(table.positive, starts)
        cuts = table.cuts(starts[1:] - 1)
        edges = np.concatenate((table.scores[:1], cuts, table.scores[-1:]))
        return cls(edges, n0, n1, (n1 + 1.0) / (n0 + n1 + 2.0)), score


def log_factorials(total: float) -> Array:
    """ln 0! … ln (total+1)!, for whole weights."""
    return np.asarray(gammaln(np.arange(2.0, total + 4.0) - 1.0))


# --- BBQ: an average over binnings of equal frequency ---------------------------------------------


#: the most bins; this matters for totals beyond 1e9 only
MOST_BINS = 10_000


@dataclass(kw_only=True, eq=False, repr=False)
class BBQ(Calibrator):
    """Histograms with equal-frequency bins of many sizes, weighted by their Bayesian score.

    Parameters
    ----------
    models : {"elbow", "all", "best"}, default="elbow"
        Average over the models ranked before the weights fall off (the authors' choice), over all,
        or take the best one alone.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    n_bins_ : ndarray of shape (m,)
        The numbers of bins B that were tried.
    log_scores_ : ndarray of shape (m,)
        The log marginal likelihood of each.
    weights_ : ndarray of shape (m,)
        Their weights in the map, of sum 1; 0 for models left out.

    Notes
    -----
    The number of bins B runs from max(1, ⌊N^⅓/10⌋) to min(⌈N/5⌉, ⌈10·N^⅓⌉), with a uniform prior.
    Bin k ends after k·⌊N/B⌋ cases, and the last takes the rest (for fractional weights of sum W:
    k·W/B). A cut inside a tie moves to its end; bins that this empties are dropped. With p the
    midpoint of a bin, clipped to [.005, .995], the score of a binning is
    Σ lnΓ(n₁+2p) + lnΓ(n₀+2(1−p)) − lnΓ(n+2) − lnΓ(2p) − lnΓ(2(1−p)). The value of a bin is
    (n₁+p₀)/(n+1) with p₀ = (Σ scores of its positives + midpoint)/(n₁+1), never 0 or 1. N is the
    effective number of rows. If any score lies outside [0, 1], all are logits: these formulas see
    their σ, but bins are cut halfway between the logits, which differ where σ rounds to 1. All B at
    once from prefix sums: O(D + N^⅔ log D) after the table.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities
       using Bayesian binning", 2015.
    .. [2] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> c = BBQ().fit(p, y)
    >>> c.calibrate([0.3, 0.7]).round(2).tolist()
    [0.09, 0.47]
    """

    models: str = "elbow"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "models": (OneOf(("elbow", "all", "best")),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        binnings = _Binnings(table)
        self.n_bins_, self.log_scores_ = binnings.numbers, binnings.log_scores()
        self.weights_ = SELECT[self.models](criterion_weights(-2.0 * self.log_scores_))
        return binnings.average(self.weights_)


class _Binnings:
    """All equal-frequency binnings in one list: model m has the bins first[m] to first[m+1] − 1."""

    def __init__(self, table: ScoreTable) -> None:
        p = table.scores if table.scale.probabilities else sigmoid(table.scores)
        total = table.total
        root = total ** (1 / 3)
        low = min(max(1, int(root / 10 + 1e-9)), MOST_BINS)
        high = int(min(np.ceil(total / 5), np.ceil(10 * root - 1e-9), MOST_BINS))
        self.numbers = np.arange(low, max(low, high) + 1)
        size = total / self.numbers
        size = np.floor(size) if table.is_whole else size
        model, last = bin_ends(np.cumsum(table.weight), self.numbers, size)
        self.first = np.searchsorted(model, np.arange(len(self.numbers) + 1))
        starts = np.append(0, last[:-1])
        starts[self.first[:-1]] = 0
        above = np.where(last == len(p), 1.0, p[np.minimum(last, len(p) - 1)] / 2 + p[last - 1] / 2)
        below = np.append(0.0, above[:-1])
        below[self.first[:-1]] = 0.0
        self.middle = (below + above) / 2
        self.table, self.last = table, last
        positive = np.append(0.0, np.cumsum(table.positive))
        weight = np.append(0.0, np.cumsum(table.weight))
        moment = np.append(0.0, np.cumsum(table.positive * p))
        self.n = np.maximum(weight[last] - weight[starts], 0.0)
        self.n1 = np.clip(positive[last] - positive[starts], 0.0, self.n)  # sums are rounded
        self.moment = moment[last] - moment[starts]

    def log_scores(self) -> Array:
        """The log marginal likelihood of each binning."""
        p = np.clip(self.middle, 0.005, 0.995)
        terms = gammaln(self.n1 + 2 * p) + gammaln(self.n - self.n1 + 2 * (1 - p))
        terms -= gammaln(self.n + 2) + gammaln(2 * p) + gammaln(2 * (1 - p))
        return np.asarray(np.add.reduceat(terms, self.first[:-1]))

    def average(self, weights: Array) -> Piecewise:
        """Σ weight · histogram, from the jumps at all cuts."""
        prior = (self.moment + self.middle) / (self.n1 + 1)
        value = (self.n1 + prior) / (self.n + 1)
        used = np.repeat(weights, np.diff(self.first))
        final = np.zeros(len(value), dtype=bool)
        final[self.first[1:] - 1] = True
        jump = (np.append(value[1:], 0.0) - value) * used
        kept = ~final & (used > 0)
        base = float(weights @ value[self.first[:-1]])
        last, at = np.unique(self.last[kept], return_inverse=True)
        steps = base + np.cumsum(np.bincount(at, jump[kept], minlength=len(last)))
        values = np.clip(np.append(base, steps), 0.0, 1.0)
        return Piecewise.step(self.table.cuts(last - 1), values)


def bin_ends(mass: Array, numbers: Index, size: Array) -> tuple[Index, Index]:
    """For every bin of every model: the number of the model, and one past the bin's last cell. No
    bin is empty.

    With fewer cells than bins, it is quicker to go through the cells. A cell ends a bin if its
    cumulative weight reaches more edges than that of the cell before it.
    """
    if len(mass) * len(numbers) < numbers.sum():
        wide = size[:, None]
        reached = np.floor(mass / _just_below_end(1.0, wide))
        reached += _just_below_end(reached + 1.0, wide) <= mass  # the quotient was rounded
        reached -= _just_below_end(reached, wide) > mass
        reached = np.minimum(reached, numbers[:, None] - 1.0)
        ends = np.diff(reached, axis=1, prepend=0.0) > 0.0
        ends[:, -1] = True
        model, cell = np.nonzero(ends)
        return model, cell + 1
    model = np.repeat(np.arange(len(numbers)), numbers)
    place = np.arange(len(model)) - np.repeat(np.cumsum(numbers) - numbers, numbers) + 1
    last = np.searchsorted(mass, _just_below_end(place, np.repeat(size, numbers))) + 1
    last[np.cumsum(numbers) - 1] = len(mass)
    last = np.minimum(last, len(mass))
    # a bin that ends where the bin before it in the same model does is empty
    same = np.append(False, (last[1:] == last[:-1]) & (model[1:] == model[:-1]))
    return model[~same], last[~same]


def _just_below_end(place: Array | Index | float, size: Array) -> Array:
    """A weight slightly below the end of a bin, since sums of weights are rounded."""
    return np.asarray(place * size * (1 - 1e-12))
