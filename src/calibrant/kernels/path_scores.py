"""Which models of a near-isotonic path matter, their log-likelihoods, and their weighted average.

The log-likelihood of a model sums S ln p + (W − S) ln(1 − p) over its bins, p = (S + λd)/W.
Computed model by model, this costs the number of bins for each. But a bin exists in many models,
and its term is smooth in λ. So each bin is added as a Taylor polynomial to the largest dyadic
blocks of models in which it exists and its series converges fast. Only a few models at both ends
are computed singly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.kernels._jit import jit, part
from calibrant.kernels.near_isotonic import PathBins, Tree, bins_at

Index = NDArray[np.signedinteger[Any]]
#: (log-likelihood, number of bins) → the criterion, smaller is better
Criterion = Callable[[Any, Any], Any]

#: models in a block of the lowest level, 2^THREE
THREE = 3
#: terms of a polynomial. |λ − centre| is at most REACH of the way to the singularity of the
#: logarithm, so that the remainder is below S·8⁻¹⁴
TERMS = 14
REACH = 0.125
#: with fewer bins than this, the whole path is quicker than finding the part of it that matters
FEW = 256
#: halving intervals of the grid may take as long as so many solutions at its lowest point
HALVINGS = 4
#: the fewest models scored in a round that only looks for where the good ones are
PROBES = 32


# --- log-likelihoods ----------------------------------------------------------------------------


def log_likelihoods(
    s: Array, w: Array, d: NDArray[np.int8], low: Index, high: Index, lambdas: Array
) -> Array:
    """The log-likelihood at ascending λ; bin i exists at the λ of indices low[i] to high[i] − 1.

    In practice O((K + T) log T) for K bins and T values of λ; memory O(T).
    """
    s, w = np.require(s, requirements="W"), np.require(w, requirements="W")
    d = np.require(d, requirements="W")  # frozen arrays would be compiled for once more
    offset, centre, half = _blocks(lambdas)
    series, result = np.zeros((offset[-1], TERMS)), np.zeros(len(lambdas))
    _add_bins(s, w, d, low, high, lambdas, offset, centre, half, series, result)
    _add_series(series, lambdas, offset, centre, half, np.empty(TERMS), result)
    return result


def _blocks(lambdas: Array) -> tuple[Index, Array, Array]:
    """Where each level's blocks begin in one list, and every block's centre and half width."""
    size, width, offset, ends = len(lambdas), 1 << THREE, [0], []
    while True:
        first = np.arange(0, size, width)
        offset.append(offset[-1] + len(first))
        ends.append(lambdas[np.array((first, np.minimum(first + width, size) - 1))])
        if width >= size:
            break
        width *= 2
    low, high = np.concatenate(ends, axis=1)
    return np.array(offset), 0.5 * (low + high), 0.5 * (high - low)


@part
def _term(s: float, w: float, d: int, lambda_: float) -> float:
    """A bin's part of the log-likelihood at one λ."""
    up, down, result = s + lambda_ * d, (w - s) - lambda_ * d, 0.0
    if s > 0.0:
        result += s * math.log(max(up / w, 1e-300))
    if w - s > 0.0:
        result += (w - s) * math.log(max(down / w, 1e-300))
    return result


@part
def _converges(s: float, w: float, d: int, centre: float, half: float) -> bool:
    up, down = s + centre * d, (w - s) - centre * d
    return (s == 0.0 or half <= REACH * up) and (w - s == 0.0 or half <= REACH * down)


@jit
def _add_bins(
    s: Array,
    w: Array,
    d: NDArray[np.int8],
    low: Index,
    high: Index,
    lambdas: Array,
    offset: Index,
    centre: Array,
    half: Array,
    series: Array,
    result: Array,
) -> None:
    """Add every bin's Taylor coefficients in (λ − centre)/half to the blocks that it fills, and its
    terms to the single models in between."""
    size = len(lambdas)
    for i in range(len(s)):
        at = low[i]
        while at < high[i]:
            level = -1  # of the largest block from here on that the bin fills and converges in
            while level + 1 < len(offset) - 1:
                width = 1 << (THREE + level + 1)
                if at & (width - 1) or min(at + width, size) > high[i]:
                    break
                level += 1
            while level >= 0 and d[i] != 0:
                block = offset[level] + (at >> (THREE + level))
                if _converges(s[i], w[i], d[i], centre[block], half[block]):
                    break
                level -= 1
            where = lambdas[at]
            block = 0
            if level >= 0:
                block = offset[level] + (at >> (THREE + level))
                where = centre[block]
            term = _term(s[i], w[i], d[i], where)
            if level < 0:
                result[at] += term
                at += 1
                continue
            series[block, 0] += term
            at += 1 << (THREE + level)
            a, b = d[i] * half[block], -d[i] * half[block]
            a = a / (s[i] + where * d[i]) if s[i] > 0.0 else 0.0
            b = b / (w[i] - s[i] - where * d[i]) if w[i] - s[i] > 0.0 else 0.0
            powers_a, powers_b = -s[i], -(w[i] - s[i])
            for k in range(1, TERMS if d[i] != 0 else 1):
                powers_a *= -a
                powers_b *= -b
                series[block, k] += (powers_a + powers_b) / k


@jit
def _add_series(
    series: Array,
    lambdas: Array,
    offset: Index,
    centre: Array,
    half: Array,
    moved: Array,
    result: Array,
) -> None:
    """Give every block's polynomial to its two halves, and the lowest ones to their models."""
    for level in range(len(offset) - 2, 0, -1):
        for block in range(offset[level + 1] - offset[level]):
            at = offset[level] + block
            for child in range(2 * block, 2 * block + 2):
                to = offset[level - 1] + child
                if to >= offset[level]:
                    continue
                shift = scale = 0.0
                if half[at] > 0.0:
                    shift, scale = (centre[to] - centre[at]) / half[at], half[to] / half[at]
                for k in range(TERMS):
                    moved[k] = series[at, k]
                for k in range(TERMS - 1):  # x = shift + y, by repeated division
                    for j in range(TERMS - 2, k - 1, -1):
                        moved[j] += shift * moved[j + 1]
                power = 1.0
                for k in range(TERMS):
                    series[to, k] += moved[k] * power
                    power *= scale
    for t in range(len(lambdas)):
        block = t >> THREE
        x = (lambdas[t] - centre[block]) / half[block] if half[block] > 0.0 else 0.0
        value = 0.0
        for k in range(TERMS - 1, -1, -1):
            value = value * x + series[block, k]
        result[t] += value


@jit
def _log_likelihood(s: Array, w: Array, d: NDArray[np.int8], lambda_: float) -> float:
    total = 0.0
    for i in range(len(s)):
        total += _term(s[i], w[i], d[i], lambda_)
    return total


# --- averages -----------------------------------------------------------------------------------


def average_leaves(tree: Tree, weights: Array, pseudo: float) -> Array:
    """For each bin, Σ weight · value over its models and those of all bins that it becomes part of.

    For the first bins this is the average over all models. ``pseudo`` of each class is added to
    every bin. With PW and PL the prefix sums of weight and of weight · λ, a bin that exists in the
    models b to e − 1 adds ((S + a)·ΔPW + d·ΔPL)/(W + 2a). Sums are passed on from parent to child.
    O(K).
    """
    sums, moments = (np.append(0.0, np.cumsum(v)) for v in (weights, weights * tree.lambdas))
    begin, end = np.maximum(tree.birth, 0), np.maximum(tree.death, 0)
    share, moment = sums[end] - sums[begin], moments[end] - moments[begin]
    result = ((tree.s + pseudo) * share + tree.d * moment) / (tree.w + 2.0 * pseudo)
    _pass_on(tree.parent, result)
    return np.asarray(result)


@jit
def _pass_on(parent: Index, sums: Array) -> None:
    """Add to each bin the sum of its parent."""
    for i in range(len(sums) - 1, -1, -1):
        if parent[i] >= 0:
            sums[i] += sums[parent[i]]


# --- the part that matters ----------------------------------------------------------------------


class PathPart(NamedTuple):
    """The part of a path that can matter: the bins where it begins, the λ where it ends, the least
    criterion found so far, and the log-likelihoods at some λ."""

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
        return cls(bins, _log_likelihood(*bins[2:], bins.lambda_))

    def __len__(self) -> int:
        return len(self.bins.s)


def _meetings(bins: PathBins) -> Array:
    """The λ at which neighbours meet, for about a thousand pairs of them, ascending."""
    at = np.arange(0, len(bins.s) - 1, (len(bins.s) + 998) // 1000)
    s, w, d = bins.s, bins.w, bins.d.astype(np.float64)
    den = d[at + 1] * w[at] - d[at] * w[at + 1]
    at, den = at[den != 0.0], den[den != 0.0]
    with np.errstate(over="ignore"):
        return np.sort((s[at] * w[at + 1] - s[at + 1] * w[at]) / den)


def _is_sane(bins: PathBins) -> bool:
    """Whether all values are probabilities: weights of very different size may defeat `bins_at`."""
    with np.errstate(all="ignore"):
        p = (bins.s + bins.lambda_ * bins.d) / bins.w
    return bool(p.min() > -1e-9 and p.max() < 1.0 + 1e-9)


def part_that_matters(bins: PathBins, criterion: Criterion, slack: float) -> PathPart:
    """The part of the path outside of which no model is within ``slack`` of the least criterion.

    Both the log-likelihood L and the number of bins fall along the path. So between two λ the
    criterion is at least that of the larger L with the smaller number of bins. This bound is
    computed on a geometric grid; each of its points starts from the bins of the one before.
    """
    meetings = _meetings(bins) if len(bins.s) > FEW else np.empty(0)
    if not len(meetings):
        return PathPart.whole(bins)
    step, lambda_ = 2.0, 2.3457 * float(np.median(meetings))
    best, grid = np.inf, [bins]
    while grid[-1].d.any():  # until the isotonic fit
        grid.append(bins_at(grid[-1], lambda_))
        if not _is_sane(grid[-1]):
            return PathPart.whole(bins)
        if best == np.inf:
            end = bins_at(grid[-1], 2.0 * float(bins.w.sum()))
            best = criterion(_log_likelihood(end.s, end.w, end.d * np.int8(0), 0.0), len(end.s))
        while len(grid) > 1 and criterion(0.0, len(grid[1].s)) > best + slack:
            del grid[0]
        # where weights have heavy tails few bins meet in an octave, so take larger steps
        step = step * step if len(grid) > 1 and len(grid[-1].s) > 0.7 * len(grid[-2].s) else 2.0
        lambda_ *= min(step, 1e6)
    return _narrow([_PathPoint.of(b) for b in grid], len(bins.s), best, criterion, slack)


def _narrow(
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
        middle = 0.0 if small or budget < len(low.s) else _between(low, high.lambda_)
        if not middle:
            known = points[first : last + 2]
            end = known[-1].bins.lambda_ if last + 2 < len(points) else np.inf
            lambdas, logs = [p.bins.lambda_ for p in known], [p.log for p in known]
            return PathPart(known[0].bins, end, best, np.array(lambdas), np.array(logs))
        points.insert(at + 1, _PathPoint.of(bins_at(low, middle)))
        budget -= len(low.s)


def _between(low: PathBins, high: float) -> float:
    """A λ above that of the bins and below ``high`` that separates their meetings; 0 if there is
    none, since all meet at once."""
    inside = _meetings(low)
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
