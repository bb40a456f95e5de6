"""Kernels of the near-isotonic path: the path, its models' likelihoods, and their average."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.solvers._jit import jit, part

AnyIndex = NDArray[np.signedinteger[Any]]

#: models in a block of the lowest level, 2^THREE
THREE = 3
#: terms of a polynomial. |λ − centre| is at most REACH of the way to the singularity of the
#: logarithm, so that the remainder is below S·8⁻¹⁴
TERMS = 14
REACH = 0.125


# --- log-likelihoods ----------------------------------------------------------------------------


def log_likelihoods(
    s: Array, w: Array, d: NDArray[np.int8], low: AnyIndex, high: AnyIndex, lambdas: Array
) -> Array:
    """The log-likelihood at ascending λ; bin i exists at the λ of indices low[i] to high[i] − 1.

    In practice O((K + T) log T) for K bins and T values of λ; memory O(T).
    """
    s, w = np.require(s, requirements="W"), np.require(w, requirements="W")
    d = np.require(d, requirements="W")  # frozen arrays would be compiled for once more
    # where each level's blocks begin in one list, and every block's centre and half width
    size, width, offsets, ends = len(lambdas), 1 << THREE, [0], []
    while True:
        first = np.arange(0, size, width)
        offsets.append(offsets[-1] + len(first))
        ends.append(lambdas[np.array((first, np.minimum(first + width, size) - 1))])
        if width >= size:
            break
        width *= 2
    least, most = np.concatenate(ends, axis=1)
    offset, centre, half = np.array(offsets), 0.5 * (least + most), 0.5 * (most - least)
    series, result = np.zeros((offset[-1], TERMS)), np.zeros(len(lambdas))
    _add_bins(s, w, d, low, high, lambdas, offset, centre, half, series, result)
    _add_series(series, lambdas, offset, centre, half, np.empty(TERMS), result)
    return result


@part
def _bin_log_likelihood(s: float, w: float, d: int, lambda_: float) -> float:
    """A bin's part of the log-likelihood at one λ."""
    up, down, result = s + lambda_ * d, (w - s) - lambda_ * d, 0.0
    if s > 0.0:
        result += s * math.log(max(up / w, 1e-300))
    if w - s > 0.0:
        result += (w - s) * math.log(max(down / w, 1e-300))
    return result


@part
def _series_converges(s: float, w: float, d: int, centre: float, half: float) -> bool:
    up, down = s + centre * d, (w - s) - centre * d
    return (s == 0.0 or half <= REACH * up) and (w - s == 0.0 or half <= REACH * down)


@jit
def _add_bins(
    s: Array,
    w: Array,
    d: NDArray[np.int8],
    low: AnyIndex,
    high: AnyIndex,
    lambdas: Array,
    offset: AnyIndex,
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
                if _series_converges(s[i], w[i], d[i], centre[block], half[block]):
                    break
                level -= 1
            where = lambdas[at]
            block = 0
            if level >= 0:
                block = offset[level] + (at >> (THREE + level))
                where = centre[block]
            term = _bin_log_likelihood(s[i], w[i], d[i], where)
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
    offset: AnyIndex,
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
def log_likelihood_at(s: Array, w: Array, d: NDArray[np.int8], lambda_: float) -> float:
    """The log-likelihood of bins at one λ."""
    total = 0.0
    for i in range(len(s)):
        total += _bin_log_likelihood(s[i], w[i], d[i], lambda_)
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
    _add_sums_of_parents(tree.parent, result)
    return np.asarray(result)


@jit
def _add_sums_of_parents(parent: AnyIndex, sums: Array) -> None:
    """Add to each bin the sum of its parent."""
    for i in range(len(sums) - 1, -1, -1):
        if parent[i] >= 0:
            sums[i] += sums[parent[i]]


# --------------------------------------------------------------------------------------------------
# The path of near-isotonic regression (Tibshirani, Höfling and Tibshirani 2011; Naeini and Cooper
#
# 2018, §3): minimise ½Σw(p − z)² + λΣ(p_i − p_{i+1})₊ for every λ ≥ 0.
#
# Neighbours of equal value are one bin, and stay so as λ grows. A bin has S positives and weight W;
# d is the violation on its left (0 or 1) less the one on its right. Its value is p(λ) = (S + λd)/W
# from the λ at which it is made to the λ at which it meets a neighbour (eq. 6–8):
#
#     p_a = p_b  at  λ = (S_a W_b − S_b W_a) / (d_b W_a − d_a W_b) .
#
# `merge_path` follows all of these meetings with a heap; `bins_at` solves for one λ in O(K) by
# dynamic programming, from the bins of any smaller λ.


Index = NDArray[np.int32]

#: values as close as this, relatively, are equal: sums of weights are rounded
SAME_VALUE = 1e-13
#: meetings as close as this, relatively, are one breakpoint
SAME_LAMBDA = 1e-12


class PathBins(NamedTuple):
    """The bins at one λ: first cell, S, W and d of each."""

    lambda_: float
    first: Index
    s: Array
    w: Array
    d: NDArray[np.int8]


class Tree(NamedTuple):
    """All bins of the path from λ = start to λ = end.

    Model t is the fit at lambdas[t], with df[t] bins. Bin i exists in the models
    birth[i] ≤ t < death[i], and then becomes a part of bin parent[i] > i. Bins of birth −1 exist
    from ``start`` on, and bins of parent −1 up to ``end`` at least.
    """

    start: float
    end: float
    lambdas: Array
    df: Index
    first: Index
    s: Array
    w: Array
    d: NDArray[np.int8]
    birth: Index
    death: Index
    parent: Index


def _pooled_bins(lambda_: float, value: Array, first: Index, s: Array, w: Array) -> PathBins:
    """The bins at λ, where neighbours of equal value are one."""
    value, first, s, w = value.copy(), first.copy(), s.copy(), w.copy()
    d = np.zeros(len(s), np.int8)
    n = _pool_in_place(value, first, s, w, d)
    return PathBins(lambda_, first[:n].copy(), s[:n].copy(), w[:n].copy(), d[:n].copy())


@jit
def _pool_in_place(value: Array, first: Index, s: Array, w: Array, d: NDArray[np.int8]) -> int:
    """Pool neighbours of equal value in place; returns the number of bins left.

    A violation to the left of a bin lifts it, and one to the right lowers it.
    """
    k = 0
    for i in range(1, len(s)):
        if abs(value[i] - value[k]) <= SAME_VALUE * abs(value[k]):
            s[k] += s[i]
            w[k] += w[i]
            continue
        k += 1
        value[k] = value[i]
        first[k] = first[i]
        s[k] = s[i]
        w[k] = w[i]
        if value[k - 1] > value[k]:
            d[k - 1] -= 1
            d[k] += 1
    return k + 1


def pool_equal(n0: Array, n1: Array) -> PathBins:
    """The bins at λ = 0: neighbouring cells of equal rate are one."""
    w = n0 + n1
    return _pooled_bins(0.0, n1 / w, np.arange(len(w), dtype=np.int32), n1, w)


# --- one λ ----------------------------------------------------------------------------------------


def bins_at(bins: PathBins, lambda_: float) -> PathBins:
    """The bins at a λ above that of the given ones. O(K)."""
    size = len(bins.s)
    low, value = np.empty((2, size))
    x, bend = np.empty((2, 2 * size + 2))
    _values_at_lambda(bins.s, bins.w, lambda_, low, value, x, bend)
    return _pooled_bins(lambda_, value, bins.first, bins.s, bins.w)


@jit
def _values_at_lambda(
    s: Array, w: Array, lambda_: float, low: Array, high: Array, x: Array, bend: Array
) -> None:
    """Write the values at λ to ``high``, by messages from left to right.

    The derivative of the least cost of all bins up to i, as a function g_i of the value of bin i,
    is piecewise linear and rising; the next bin sees clip(g_i, −λ, 0). Its kinks are a queue of
    places x and changes of slope. Left of all kinks g + λ is stored in place of g: so a large λ
    loses no digits.
    """
    size = len(s)
    head = tail = size + 1
    for i in range(size):
        a, c = w[i], -s[i]
        if i == 0:
            c += lambda_
        while head < tail and a * x[head] + c <= 0.0:
            a += bend[head]
            c -= bend[head] * x[head]
            head += 1
        low[i] = -c / a
        head -= 1
        x[head] = low[i]
        bend[head] = a
        a, c = w[i], -s[i]
        while tail > head and a * x[tail - 1] + c >= 0.0:
            tail -= 1
            a -= bend[tail]
            c += bend[tail] * x[tail]
        high[i] = -c / a
        x[tail] = high[i]
        bend[tail] = -a
        tail += 1
    value = high[size - 1]
    for i in range(size - 1, -1, -1):
        value = min(max(value, low[i]), high[i])
        high[i] = value


# --- every λ --------------------------------------------------------------------------------------


@part
def _meeting_lambda(a: int, b: int, s: Array, w: Array, d: NDArray[np.int8], now: float) -> float:
    """The λ at which neighbours a and b reach the same value; infinite if they never do (eq. 8)."""
    ours, theirs = s[a] * w[b], s[b] * w[a]
    den = d[b] * w[a] - d[a] * w[b]
    if den != 0.0:
        return float(max(now, (ours - theirs) / den))
    return now if abs(ours - theirs) <= SAME_VALUE * ours else np.inf


@part
def _heap_push(
    key: Array, left: Index, right: Index, count: int, lam: float, a: int, b: int
) -> None:
    """Add a meeting to a heap that holds ``count`` of them."""
    at = count
    while at > 0:
        up = (at - 1) >> 1
        if key[up] <= lam:
            break
        key[at] = key[up]
        left[at] = left[up]
        right[at] = right[up]
        at = up
    key[at] = lam
    left[at] = a
    right[at] = b


@part
def _heap_pop(key: Array, left: Index, right: Index, count: int) -> None:
    """Remove the first meeting from the heap; ``count`` is the number that remains."""
    lam, a, b = key[count], left[count], right[count]
    at, down = 0, 1
    while down < count:
        if down + 1 < count and key[down + 1] < key[down]:
            down += 1
        if key[down] >= lam:
            break
        key[at] = key[down]
        left[at] = left[down]
        right[at] = right[down]
        at, down = down, 2 * down + 1
    key[at] = lam
    left[at] = a
    right[at] = b


@jit
def _merge_bins(
    key: Array,
    left: Index,
    right: Index,
    count: int,
    before: Index,
    after: Index,
    lambdas: Array,
    df: Index,
    first: Index,
    s: Array,
    w: Array,
    d: NDArray[np.int8],
    birth: Index,
    death: Index,
    parent: Index,
    now: float,
    end: float,
) -> tuple[int, int]:
    """Fill the tree after its first bins; return the numbers of models and of bins.

    A merge takes one meeting off the heap and adds at most two.
    """
    bins = len(lambdas)
    model, new, last = -1, bins, now
    while count > 0 and key[0] <= end:
        lam, a, b = key[0], left[0], right[0]
        count -= 1
        _heap_pop(key, left, right, count)
        if parent[a] >= 0 or parent[b] >= 0:
            continue  # one of the two has become part of another bin
        if lam > last * (1.0 + SAME_LAMBDA):
            model += 1
            lambdas[model] = last = lam
        df[model] = 2 * bins - new - 1  # before the first model, −1 writes to the unused last place
        first[new], birth[new] = first[a], model
        s[new], w[new], d[new] = s[a] + s[b], w[a] + w[b], d[a] + d[b]
        death[a] = death[b] = model
        parent[a] = parent[b] = new
        low, high = before[a], after[b]
        before[new], after[new] = low, high
        if low >= 0:
            after[low] = new
        if high >= 0:
            before[high] = new
        for side in range(2):
            one, other = low, new
            if side == 1:
                one, other = new, high
            met = _meeting_lambda(one, other, s, w, d, lam) if min(one, other) >= 0 else np.inf
            if met < np.inf:
                _heap_push(key, left, right, count, met, one, other)
                count += 1
        new += 1
    return model + 1, new


def merge_path(bins: PathBins, end: float = np.inf) -> Tree:
    """All bins and breakpoints above the λ of the given bins, up to ``end``. O(K log K).

    With no breakpoint the given bins are the only model.
    """
    n = len(bins.s)
    size = 2 * n - 1
    columns: list[Any] = [np.empty(size, column.dtype) for column in bins[1:]]
    for column, given in zip(columns, bins[1:], strict=True):
        column[:n] = given
    birth, death, parent = (np.full(size, -1, np.int32) for _ in range(3))
    columns += [birth, death, parent]
    lambdas, df = np.empty(n), np.empty(n, np.int32)
    before, after = np.arange(-1, size - 1, dtype=np.int32), np.arange(1, size + 1, dtype=np.int32)
    after[n - 1] = -1
    heap = _first_meetings(bins)
    arguments = [*heap, before, after, lambdas, df, *columns, bins.lambda_, float(end)]
    models, used = _merge_bins(*arguments)
    if not models:
        lambdas[0], df[0], models = bins.lambda_, 2 * n - used, 1
    death[:used][parent[:used] < 0] = models
    trimmed = [column[:used] for column in columns]
    return Tree(bins.lambda_, end, lambdas[:models].copy(), df[:models].copy(), *trimmed)


def _first_meetings(bins: PathBins) -> tuple[Array, Index, Index, int]:
    """The λ at which neighbours meet, ascending, with their left and right bins, and the number of
    meetings.

    The arrays have room for all later meetings.
    """
    s, w, d = bins.s, bins.w, bins.d.astype(np.float64)
    ours, theirs = s[:-1] * w[1:], s[1:] * w[:-1]
    den = d[1:] * w[:-1] - d[:-1] * w[1:]
    same = np.abs(ours - theirs) <= SAME_VALUE * ours
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        met = np.maximum((ours - theirs) / den, bins.lambda_)
    met = np.where(den != 0.0, met, np.where(same, bins.lambda_, np.inf))
    order = np.argsort(met, kind="stable")
    count = int(np.count_nonzero(met < np.inf))
    key = np.empty(2 * len(bins.s))
    left, right = np.empty((2, len(key)), np.int32)
    key[:count] = met[order[:count]]
    left[:count] = order[:count]
    right[:count] = order[:count] + 1
    return key, left, right, count


# --- The Bernoulli likelihood of probabilities ----------------------------------------------------


@jit
def log_likelihood(p: Array, n0: Array, n1: Array, least: float) -> float:
    """Σ n₁ ln p + n₀ ln(1−p), p clipped to [least, 1−least].

    Factors of single rows are multiplied, so that one logarithm serves many of them.
    """
    total, product = 0.0, 1.0
    for i in range(len(p)):
        q = p[i] if p[i] > least else least
        q = q if q < 1.0 - least else 1.0 - least
        if n0[i] + n1[i] == 1.0 and n0[i] * n1[i] == 0.0:
            product *= q if n1[i] == 1.0 else 1.0 - q
            if product < 1e-200:
                total += np.log(product)
                product = 1.0
        else:
            if n1[i] > 0.0:
                total += n1[i] * np.log(q)
            if n0[i] > 0.0:
                total += n0[i] * np.log(1.0 - q)
    return float(total + np.log(product))
