"""An ensemble of near-isotonic regressions: maps that rise, and maps that fall here and there."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.door import Limit, OneOf
from calibrant.data.frozen import Frozen, read_only
from calibrant.data.isotonic_blocks import SMOOTHING
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import DIRECTIONS, WEIGHTS, Calibrator
from calibrant.losses import sigmoid
from calibrant.methods.near_isotonic._kernel import (
    AnyIndex,
    PathBins,
    Tree,
    average_leaves,
    bins_at,
    log_likelihood_at,
    log_likelihoods,
    merge_path,
    pool_equal,
)
from calibrant.rules.base import Map
from calibrant.rules.chain import after_sigmoid
from calibrant.rules.piecewise import Piecewise, flat_runs
from calibrant.solvers.weights import CRITERIA, SELECT_ENIR, criterion_weights

#: (log-likelihood, number of bins) → the criterion, smaller is better
Criterion = Callable[[Any, Any], Any]

#: models whose criterion is this much (and 2 ln of their number) above the least have, all
#: together, a weight below e⁻⁴⁰
SLACK = 80.0


#: what "auto" means in each variant
PRESETS = {
    "default": {"interpolation": "linear", "smoothing": "jeffreys", "penalty": "bic"},
    "paper": {"interpolation": "step", "smoothing": "none", "penalty": "bic"},
    "authors": {"penalty": "authors"},
}


@dataclass(kw_only=True, eq=False, repr=False)
class ENIR(Calibrator):
    """An average over near-isotonic regressions of all strengths, weighted by their BIC.

    Parameters
    ----------
    variant : {"default", "paper", "authors"}, default="default"
        What ``"auto"`` means below. ``"default"``: the best of our study, with Jeffreys' smoothing
        of bins (so that 0 and 1 are never returned) and lines between scores. ``"paper"``: the text
        [1]_ to the letter, with steps of raw bin values (end bins may be 0 or 1). ``"authors"``:
        what the authors' program computes; see docs/understand/methods/near_isotonic.md. It reads
        probabilities: margins become σ of them, and those above 36 are one score.
    criterion : {"bic", "aic", "aicc"}, default="bic"
        What weighs the models: ∝ exp(−½·criterion).
    penalty : {"auto", "bic", "authors"}, default="auto"
        With BIC: ln N for each bin, or ln N + ln 2π as the authors' program has it.
    models : {"all", "elbow", "best"}, default="all"
        Average over all models, over those ranked before the weights fall off, or take the best.
    interpolation : {"auto", "step", "linear"}, default="auto"
        Steps cut halfway between scores, or straight lines between the averages at the scores.
    smoothing : {"auto", "none", "laplace", "jeffreys"}, default="auto"
        Adds nothing, 1 or ½ of each class to every bin of every model, after it is scored.
    weights, direction, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    path_ : NearIsotonicPath
        The models; where they are many, only the part of the path that can matter.
        `near_isotonic_path` gives all.
    weights_ : ndarray of shape (T,)
        The weight of each of ``path_.lambdas``, of sum 1; 0 for those left out.
    n_models_scored_ : int
        The number of models scored. All others together have a weight below e⁻⁴⁰.

    Notes
    -----
    A model is the near-isotonic fit at a breakpoint λ > 0 of the path. With df its number of bins
    and N the effective number of rows, BIC = −2 ln L + df·ln N. Without breakpoints the isotonic
    fit is the only model. ln L and df both fall along the path, which bounds the BIC between two λ:
    only the part of the path that can matter is followed, and only the models that can matter are
    scored. Sums over the tree of merges give their average. O(N log N) for the table, then O(D) and
    little more, in O(D) memory. The value of a smoothed bin is (S + λd + a)/(W + 2a). AICc leaves
    out models with df ≥ N − 1; if these are all, it takes the last one. The map need not be
    monotone. Ties are never split.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.
    .. [2] R. Tibshirani, H. Höfling, R. Tibshirani, "Nearly-isotonic regression", 2011,
       doi:10.1198/TECH.2010.10111.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(2000)
    >>> y = rng.random(2000) < 0.2 + 2.4 * (s - 0.5) ** 2  # falls, then rises
    >>> c = ENIR().fit(s, y)
    >>> c.calibrate([0.1, 0.5, 0.9]).round(2).tolist()
    [0.57, 0.24, 0.62]
    >>> c.n_models_scored_ < len(near_isotonic_path(ScoreTable.from_arrays(s, y)))
    True
    """

    variant: str = "default"
    criterion: str = "bic"
    penalty: str = "auto"
    models: str = "all"
    interpolation: str = "auto"
    smoothing: str = "auto"
    weights: str = "importance"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "variant": (OneOf(tuple(PRESETS)),),
        "criterion": (OneOf(tuple(CRITERIA)),),
        "penalty": (OneOf(("auto", "bic", "authors")),),
        "models": (OneOf(("all", "elbow", "best")),),
        "interpolation": (OneOf(("auto", "step", "linear")),),
        "smoothing": (OneOf(("auto", *SMOOTHING)),),
        "weights": (WEIGHTS,),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        if self.variant == "authors":
            return self._fit_authors(table)
        cells = _ScaledWeights.of(table)
        criterion = self._criterion(table.total, cells.unit)
        bins = pool_equal(cells.negative, cells.positive)
        slack, part = SLACK + 2.0 * float(np.log(len(bins.s))), PathPart.whole(bins)
        if not criterion(0.0, 2) > criterion(0.0, 1):
            slack = np.inf  # more bins cost nothing, so that nothing bounds a model from below
        elif self.models != "elbow":  # the elbow depends on the number of models
            part = part_near_best(bins, criterion, slack)
        tree = merge_path(part.begin, part.end)
        self.path_ = cells.path(tree)
        scores = score_models(tree, criterion, slack, part)
        self.weights_ = self._weights(scores)
        self.n_models_scored_ = int(np.isfinite(scores).sum())
        pseudo = SMOOTHING[self._option("smoothing")] / cells.unit
        values = average_leaves(tree, self.weights_, pseudo)[: len(part.begin.s)]
        kind = self._option("interpolation")
        return map_of_bins(table, part.begin.first, np.clip(values, 0.0, 1.0), kind)

    def _option(self, name: str) -> str:
        """The value of an option, with "auto" replaced by what the variant takes."""
        value: str = getattr(self, name)
        return PRESETS[self.variant][name] if value == "auto" else value

    def _criterion(self, total: float, unit: float = 1.0) -> Criterion:
        """The criterion as a function of the log-likelihood (in units of weight) and df."""
        of_authors = (self._option("penalty"), self.criterion) == ("authors", "bic")
        more = np.log(2.0 * np.pi) if of_authors else 0.0
        score = CRITERIA[self.criterion]
        return lambda log, df: score(np.multiply(log, unit), np.asarray(df), total) + more * df

    def _weights(self, scores: Array) -> Array:
        if not np.isfinite(scores).any():  # every model has too many bins for AICc
            scores = np.full(len(scores), np.inf)
            scores[-1] = 0.0
        return SELECT_ENIR[self.models](criterion_weights(scores))

    def _fit_authors(self, table: ScoreTable) -> Map:
        for name in ("interpolation", "smoothing"):
            if getattr(self, name) != "auto":
                raise ParameterError(
                    f"{name} of ENIR must be 'auto' with variant='authors', which has its own, but "
                    f"{getattr(self, name)!r} came."
                )
        link = not table.looks_like_probabilities
        if link:  # σ may make far scores equal
            table = table.through(sigmoid)
        self.path_ = near_isotonic_path(table)
        lambdas, models = _AuthorsPath(table.negative, table.positive).models(table.scores)
        logs = np.array([model.log_likelihood for model in models])
        bins = np.array([len(model.starts) for model in models])
        weights = self._weights(self._criterion(table.total)(logs, bins))
        exact = self.path_.lambdas  # to which those of the program are rounded
        nearest = np.searchsorted((exact[1:] + exact[:-1]) / 2.0, lambdas)
        of_path = np.bincount(nearest, weights, minlength=len(exact))
        self.weights_, self.n_models_scored_ = of_path.astype(np.float64), len(models)
        values = np.zeros(len(table))
        for weight, model in zip(weights, models, strict=True):
            values += weight * model.value
        line = map_of_bins(table, np.arange(len(table)), np.clip(values, 0.0, 1.0), "linear")
        return after_sigmoid(line) if link else line


def map_of_bins(table: ScoreTable, first: AnyIndex, values: Array, kind: str) -> Map:
    """The map of bins that begin at the scores ``first``; neighbours of equal value are one.

    A "step" map has cuts halfway between scores, a "linear" one straight lines between them.
    """
    new = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    if kind == "step":
        return Piecewise.step(table.cuts(first[new[1:]] - 1), values[new])
    return flat_runs(table.scores, first[new], values[new])


# --- The part of the path that can matter, and the models in it ----------------------------------


#: with fewer bins than this, the whole path is quicker than finding the part of it that matters
FEW = 256
#: halving intervals of the grid may take as long as so many solutions at its lowest point
HALVINGS = 4
#: the fewest models scored in a round that only looks for where the good ones are
PROBES = 32


class PathPart(NamedTuple):
    """The part of a path that can matter.

    It holds the bins where the part begins, the λ where it ends, the least criterion found so far,
    and the log-likelihoods at some λ.
    """

    begin: PathBins
    end: float
    best: float
    lambdas: Array
    logs: Array

    @classmethod
    def whole(cls, bins: PathBins) -> PathPart:
        return cls(bins, np.inf, np.inf, np.zeros(1), np.zeros(1))


class _PathPoint(NamedTuple):
    """The bins at a λ, and their log-likelihood."""

    bins: PathBins
    log: float

    @classmethod
    def of(cls, bins: PathBins) -> _PathPoint:
        return cls(bins, log_likelihood_at(*bins[2:], bins.lambda_))

    def __len__(self) -> int:
        return len(self.bins.s)


def _sampled_meetings(bins: PathBins) -> Array:
    """The λ at which neighbours meet, for about a thousand pairs of them, ascending."""
    at = np.arange(0, len(bins.s) - 1, (len(bins.s) + 998) // 1000)
    s, w, d = bins.s, bins.w, bins.d.astype(np.float64)
    den = d[at + 1] * w[at] - d[at] * w[at + 1]
    at, den = at[den != 0.0], den[den != 0.0]
    with np.errstate(over="ignore"):
        return np.sort((s[at] * w[at + 1] - s[at + 1] * w[at]) / den)


def part_near_best(bins: PathBins, criterion: Criterion, slack: float) -> PathPart:
    """The part of the path that holds all models within ``slack`` of the least criterion.

    Both the log-likelihood L and the number of bins fall along the path. So between two λ the
    criterion is at least that of the larger L with the smaller number of bins. This bound is
    computed on a geometric grid; each of its points starts from the bins of the one before.
    """
    meetings = _sampled_meetings(bins) if len(bins.s) > FEW else np.empty(0)
    if not len(meetings):
        return PathPart.whole(bins)
    step, lambda_ = 2.0, 2.3457 * float(np.median(meetings))
    best, grid = np.inf, [bins]
    while grid[-1].d.any():  # until the isotonic fit
        grid.append(bins_at(grid[-1], lambda_))
        with np.errstate(all="ignore"):
            p = (grid[-1].s + lambda_ * grid[-1].d) / grid[-1].w
        if not (p.min() > -1e-9 and p.max() < 1.0 + 1e-9):
            return PathPart.whole(bins)  # weights of very different size may defeat `bins_at`
        if best == np.inf:
            end = bins_at(grid[-1], 2.0 * float(bins.w.sum()))
            best = criterion(log_likelihood_at(end.s, end.w, end.d * np.int8(0), 0.0), len(end.s))
        while len(grid) > 1 and criterion(0.0, len(grid[1].s)) > best + slack:
            del grid[0]
        # where weights have heavy tails few bins meet in an octave, so take larger steps
        step = step * step if len(grid) > 1 and len(grid[-1].s) > 0.7 * len(grid[-2].s) else 2.0
        lambda_ *= min(step, 1e6)
    return _narrow_to_best([_PathPoint.of(b) for b in grid], len(bins.s), best, criterion, slack)


def _narrow_to_best(
    points: list[_PathPoint], most: int, best: float, criterion: Criterion, slack: float
) -> PathPart:
    """The part from the first to the last interval of the grid that can matter.

    These two intervals are halved as long as that saves enough merges.
    """
    budget = HALVINGS * len(points[0])
    while True:
        for point in points:
            if len(point) < most:  # below the first breakpoint there is no model
                best = min(best, criterion(point.log, len(point)))
        matter = [
            i
            for i, (low, high) in enumerate(pairwise(points))
            if len(low) > len(high) and not criterion(low.log, len(high)) > best + slack
        ]
        if not matter:
            return PathPart.whole(points[0].bins)
        first, last = matter[0], matter[-1]
        drops = {i: len(points[i]) - len(points[i + 1]) for i in (last, first)}
        at = max(drops, key=lambda i: drops[i])
        low, high = points[at].bins, points[at + 1].bins
        small = drops[at] <= FEW + len(low.s) // 16
        middle = 0.0 if small or budget < len(low.s) else _lambda_between(low, high.lambda_)
        if not middle:
            known = points[first : last + 2]
            end = known[-1].bins.lambda_ if last + 2 < len(points) else np.inf
            lambdas, logs = [p.bins.lambda_ for p in known], [p.log for p in known]
            return PathPart(known[0].bins, end, best, np.array(lambdas), np.array(logs))
        points.insert(at + 1, _PathPoint.of(bins_at(low, middle)))
        budget -= len(low.s)


def _lambda_between(low: PathBins, high: float) -> float:
    """A λ between that of the bins and ``high`` that separates their meetings; 0 if all meet at
    once."""
    inside = _sampled_meetings(low)
    inside = inside[(inside > low.lambda_) & (inside < high)]
    if len(inside) > 100 and inside[-1] <= inside[0] * (1.0 + 1e-9):
        return 0.0
    return math.sqrt(max(low.lambda_, high / 4.0) * high)


def score_models(tree: Tree, criterion: Criterion, slack: float, part: PathPart) -> Array:
    """The criterion of every model within ``slack`` of the least; infinite for those left out.

    The log-likelihood falls along the path, so a model's criterion is at least that of its number
    of bins with the log-likelihood of any model before it. First, rounds of a few models spread
    over the candidates narrow these down; then all that remain are scored.
    """
    lambdas, df, best = tree.lambdas, tree.df, part.best
    scores, todo = np.full(len(lambdas), np.inf), np.ones(len(lambdas), dtype=bool)
    above = part.logs[np.searchsorted(part.lambdas, lambdas, side="right") - 1]
    left = 4 * len(lambdas)
    while True:
        bound = criterion(above, df)
        candidates = np.flatnonzero(todo & ~(bound > best + slack))
        if not len(candidates):
            return scores
        chosen, probes = candidates, PROBES + len(candidates) // 512
        if 2 * probes < len(candidates) <= left // 2:
            chosen = candidates[np.linspace(0, len(candidates) - 1, probes).astype(np.intp)]
        left = len(candidates)
        low, high = np.searchsorted(chosen, tree.birth), np.searchsorted(chosen, tree.death)
        logs = log_likelihoods(tree.s, tree.w, tree.d, low, high, lambdas[chosen])
        scores[chosen] = criterion(logs, df[chosen])
        best = min(best, float(scores[chosen].min()))
        todo[chosen] = False
        above[chosen] = logs
        above = np.minimum.accumulate(above)


# --- The path of near-isotonic regressions --------------------------------------------------------


def near_isotonic_path(table: ScoreTable) -> NearIsotonicPath:
    """All near-isotonic regressions of a table, from the data themselves to the isotonic fit.

    Parameters
    ----------
    table : ScoreTable
        What to fit. The result has the fit ``at`` any λ, and the BIC at each breakpoint.

    Notes
    -----
    The fit at λ minimises ½Σw(p − z)² + λΣ(p_i − p_{i+1})₊, with z the rate and w the weight at
    each distinct score: only falls are penalised. The fit is piecewise linear in λ, and bins that
    have met never part again, so that all fits together are one tree of merges. O(D log D) time,
    O(D) memory. Ties are never split. λ is in units of the table's weights. Breakpoints closer than
    1e-12 (relative) are one. Weights that span ten decades lose ten digits.

    References
    ----------
    .. [1] R. Tibshirani, H. Höfling, R. Tibshirani, "Nearly-isotonic regression", 2011,
       doi:10.1198/TECH.2010.10111.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> path = near_isotonic_path(table)
    >>> path.lambdas.tolist(), path.df.tolist()
    ([0.5], [3])
    >>> path.at(0.2).tolist()
    [0.0, 0.8, 0.2, 1.0]
    """
    if not isinstance(table, ScoreTable):
        raise InputError(f"table must be a ScoreTable, but {type(table).__name__} came.")
    if not table:
        raise InputError("table must hold at least one score, but it is empty.")
    cells = _ScaledWeights.of(table)
    return cells.path(merge_path(pool_equal(cells.negative, cells.positive)))


@dataclass(frozen=True, eq=False, repr=False)
class NearIsotonicPath(Frozen):
    """The near-isotonic fits of a table for every λ: made by `near_isotonic_path`.

    Parameters
    ----------
    start, end : float
        The λ between which the path is known: 0 and infinity, except for the path of an ENIR.
    lambdas : array of shape (T,)
        The breakpoints λ > 0, ascending, at which neighbouring bins meet; the last fit is the
        isotonic one. A single 0 where there are none (the data are isotonic already).
    df : array of shape (T,)
        The number of bins at each breakpoint.
    first, positive, weight, direction : arrays of shape (m,)
        All bins of all fits: the index of their first score, their positives S, their weight W,
        and d ∈ {−1, 0, 1}. The value of a bin is (S + λd)/W.
    birth, death, parent : arrays of shape (m,)
        Bin i exists in the fits birth[i] ≤ t < death[i] (a birth of −1: from the start), and then
        becomes a part of bin parent[i] (−1: of none).
    total, size : float, int
        The total weight N, and the number D of distinct scores.

    Notes
    -----
    Bins never change, they only join, so that all fits together take O(D) memory.
    `log_likelihood` and `bic` are computed when they are asked for.
    """

    start: float
    end: float
    lambdas: Array
    df: AnyIndex
    first: AnyIndex
    positive: Array
    weight: Array
    direction: NDArray[np.int8]
    birth: AnyIndex
    death: AnyIndex
    parent: AnyIndex
    total: float
    size: int

    def at(self, lambda_: float) -> Array:
        """The probabilities at the distinct scores for any λ, exactly, also between breakpoints."""
        number = isinstance(lambda_, (int, float, np.number)) and not isinstance(lambda_, bool)
        if not number or not lambda_ >= 0.0:
            raise InputError(f"lambda_ must be a number of at least 0, but {lambda_!r} came.")
        if not self.start <= lambda_ <= self.end:
            raise InputError(
                f"lambda_ must be in [{self.start:g}, {self.end:g}], the part of the path that is "
                f"known here, but {lambda_:g} came. near_isotonic_path(table) gives the whole path."
            )
        t = int(np.searchsorted(self.lambdas, lambda_, side="right")) - 1
        alive = np.flatnonzero((self.birth <= t) & (t < self.death))
        alive = alive[np.argsort(self.first[alive])]
        price = float(lambda_) if lambda_ < np.inf else 0.0  # in the end no bin moves
        value = (self.positive[alive] + price * self.direction[alive]) / self.weight[alive]
        length = np.diff(np.append(self.first[alive], self.size))
        return np.repeat(np.clip(value, 0.0, 1.0), length)

    @functools.cached_property
    def log_likelihood(self) -> Array:
        """The Bernoulli log-likelihood of the fit at each breakpoint."""
        low, high = (np.maximum(end, 0).astype(np.intp) for end in (self.birth, self.death))
        bins = self.positive, self.weight, self.direction
        return read_only(log_likelihoods(*bins, low, high, self.lambdas))

    @functools.cached_property
    def bic(self) -> Array:
        """−2 log-likelihood + df·ln N at each breakpoint."""
        return read_only(CRITERIA["bic"](self.log_likelihood, self.df.astype(float), self.total))

    def __len__(self) -> int:
        """The number T of breakpoints."""
        return len(self.lambdas)

    def __repr__(self) -> str:
        plural = "s" if len(self) != 1 else ""
        return (
            f"NearIsotonicPath({len(self)} fit{plural} of {self.size} scores, λ from "
            f"{self.lambdas[0]:.4g} to {self.lambdas[-1]:.4g}, {self.df[0]} to {self.df[-1]} bins)"
        )


class _ScaledWeights(NamedTuple):
    """The table's weights, in units in which their products cannot overflow."""

    negative: Array
    positive: Array
    unit: float
    total: float

    @classmethod
    def of(cls, table: ScoreTable) -> _ScaledWeights:
        """The weights of a table."""
        n0, n1, total = table.negative, table.positive, table.total
        if 1e-100 < total < 1e100:
            return cls(n0, n1, 1.0, total)
        power = float(np.floor(np.log2(total)))
        unit = 2.0 ** (power - 450.0 if total > 1.0 else power)
        return cls(n0 / unit, n1 / unit, unit, total)

    def path(self, tree: Tree) -> NearIsotonicPath:
        """The path of a tree of merges, in the table's own units."""
        if self.unit != 1.0:
            names = ("start", "end", "lambdas", "s", "w")
            tree = tree._replace(**{name: getattr(tree, name) * self.unit for name in names})
        columns: list[Any] = [read_only(column) for column in tree[2:]]
        values = [*tree[:2], *columns, self.total, len(self.negative)]
        return NearIsotonicPath(*values)


# --- The models of the authors' program, with its roundings ---------------------------------------
# Where several pairs of bins meet at one λ, rounding makes the program see breakpoints that differ
# in the last bits, and its ensemble then counts one model several times. To repeat its figures, its
# order of operations is repeated: a bin is stored by its value and slope at the λ where it was
# made; meetings are taken in the order (λ, found first); a merged bin takes its value from its
# older part; and values within 1e-10 meet at once. This was inferred from the program's figures,
# which it gives to the last bit except for a few λ in a hundred (β to 2⁻⁵³). For all else there is
# `merge_path`.


#: values closer than this meet at once
NEAR = 1e-10
#: the most models that the program uses
MOST = 100


class AuthorsModel(NamedTuple):
    """A model: the value at each cell, where its bins begin, and their log-likelihood."""

    value: Array
    starts: Index
    log_likelihood: float


class _AuthorsPath:
    """λ = 0 and all breakpoints, all bins, and the meetings to come. O(D log D), in plain Python.

    At lambdas[t], before the merges there, bin i has the value value + slope·(λ − made) for
    birth[i] < t ≤ death[i].
    """

    def __init__(self, n0: Array, n1: Array) -> None:
        self.counts = n0, n1
        weight = n0 + n1
        rate = n1 / weight
        falls = np.concatenate(([0], rate[:-1] > rate[1:], [0])).astype(int)
        n = len(rate)
        self.value: list[float] = rate.tolist()
        self.weight: list[float] = weight.tolist()
        self.rise: list[int] = (falls[:-1] - falls[1:]).tolist()
        self.slope: list[float] = [d / w for d, w in zip(self.rise, self.weight, strict=True)]
        self.made, self.first = [0.0] * n, list(range(n))
        self.before, self.after = list(range(-1, n - 1)), [*range(1, n), -1]
        self.birth, self.death = [-1] * n, [np.inf] * n
        self.heap: list[tuple[float, int, int, int]] = []
        self.meetings, self.size, self.lambdas = 0, n, [0.0]
        for i in range(n - 1):
            self.meet(i, i + 1, 0.0)
        while self.heap:
            now, _, a, b = heapq.heappop(self.heap)
            if self.death[a] < np.inf or self.death[b] < np.inf:
                continue
            if now > self.lambdas[-1]:
                self.lambdas.append(now)
            self.merge(a, b)

    def models(self, x: Array) -> tuple[Array, list[AuthorsModel]]:
        """At most 100 of the breakpoints, spread evenly by rank, and their models. O(100·D).

        Each bin moves towards its mean score: the closer that is to the rate of the bin, the
        further.
        """
        n0, n1 = self.counts
        last = len(self.lambdas) - 1
        spread = np.round(np.arange(MOST) / (MOST - 1) * last).astype(int)
        chosen = [t for t in (spread if last >= MOST else range(last + 1)) if t] or [0]
        models = []
        for fit in self.fits(chosen):
            beta = np.clip(np.round(fit, 6), 0.0, 1.0)
            starts = np.append(0, np.flatnonzero(np.diff(beta)) + 1)
            log = -np.inf
            if not (((beta == 0.0) & (n1 > 0.0)) | ((beta == 1.0) & (n0 > 0.0))).any():
                up, down = np.where(n1 > 0.0, beta, 1.0), np.where(n0 > 0.0, beta, 0.0)
                log = float(np.sum(n1 * np.log(up) + n0 * np.log1p(-down)))
            count = np.add.reduceat(n0 + n1, starts)
            score = np.add.reduceat((n0 + n1) * x, starts) / count
            rate = np.add.reduceat(n1, starts) / count
            trust = 1.0 - np.abs(rate - score)
            value = (beta[starts] * count + score * trust) / (count + trust)
            value = np.repeat(value, np.diff(np.append(starts, len(x))))
            models.append(AuthorsModel(value, starts, log))
        return np.array(self.lambdas)[chosen], models

    def fits(self, chosen: Iterable[int]) -> Iterator[Array]:
        """The fits at some of the breakpoints, per cell."""
        columns = (self.first, self.value, self.slope, self.made, self.birth, self.death)
        first, value, slope, made, birth, death = map(np.array, columns)
        for t in chosen:
            alive = np.flatnonzero((birth < t) & (t <= death))
            alive = alive[np.argsort(first[alive])]
            fit = value[alive] + slope[alive] * (self.lambdas[t] - made[alive])
            yield np.repeat(fit, np.diff(np.append(first[alive], self.size)))

    def at(self, i: int, now: float) -> float:
        """The value of a bin."""
        return self.value[i] + self.slope[i] * (now - self.made[i])

    def meet(self, a: int, b: int, now: float) -> None:
        """Add the meeting of neighbours a and b to the heap, if they ever meet (eq. 8)."""
        if a < 0 or b < 0:
            return
        gap, closing = self.at(a, now) - self.at(b, now), self.slope[b] - self.slope[a]
        wait = 0.0
        if abs(gap) > NEAR:
            if closing == 0.0 or gap / closing < 0.0:
                return
            wait = gap / closing
        heapq.heappush(self.heap, (now + wait, self.meetings, a, b))
        self.meetings += 1

    def merge(self, a: int, b: int) -> None:
        """Make one bin of the neighbours a and b, which meet at the last λ reached."""
        new, model, now = len(self.value), len(self.lambdas) - 1, self.lambdas[-1]
        self.value.append(self.at(min(a, b), now))
        self.weight.append(self.weight[a] + self.weight[b])
        self.rise.append(self.rise[a] + self.rise[b])
        self.slope.append(self.rise[new] / self.weight[new])
        self.made.append(now)
        self.first.append(self.first[a])
        self.birth.append(model)
        self.death.append(np.inf)
        self.death[a] = self.death[b] = model
        low, high = self.before[a], self.after[b]
        self.before.append(low)
        self.after.append(high)
        if low >= 0:
            self.after[low] = new
        if high >= 0:
            self.before[high] = new
        self.meet(low, new, now)
        self.meet(new, high, now)
