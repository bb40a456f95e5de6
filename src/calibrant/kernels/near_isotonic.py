"""The path of near-isotonic regression (Tibshirani, Höfling and Tibshirani 2011; Naeini and Cooper
2018, §3): minimise ½Σw(p − z)² + λΣ(p_i − p_{i+1})₊ for every λ ≥ 0.

Neighbours of equal value are one bin, and stay so as λ grows. A bin has S positives and weight W;
d is the violation on its left (0 or 1) less the one on its right. Its value is p(λ) = (S + λd)/W
from the λ at which it is made to the λ at which it meets a neighbour (eq. 6–8):

    p_a = p_b  at  λ = (S_a W_b − S_b W_a) / (d_b W_a − d_a W_b) .

`merge_path` follows all of these meetings with a heap; `bins_at` solves for one λ in O(K) by
dynamic programming, from the bins of any smaller λ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels._jit import jit

__all__ = ["PathBins", "Tree", "bins_at", "merge_path", "pool_equal"]

Array = NDArray[np.float64]
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


@jit
def _pool(n0: Array, n1: Array) -> tuple[Index, Array, Array]:
    size = len(n0)
    first, s, w = np.empty(size, np.int32), np.empty(size), np.empty(size)
    k, sum1, weight = -1, 0.0, 0.0
    for i in range(size):
        mine = n0[i] + n1[i]
        ours, theirs = sum1 * mine, n1[i] * weight
        if k >= 0 and abs(ours - theirs) <= SAME_VALUE * ours:
            sum1 += n1[i]
            weight += mine
        else:
            k += 1
            first[k], sum1, weight = i, n1[i], mine
        s[k], w[k] = sum1, weight
    return first[: k + 1].copy(), s[: k + 1].copy(), w[: k + 1].copy()


@jit
def _directions(value: Array) -> NDArray[np.int8]:
    """d of every bin: a violation on its left lifts it, one on its right lowers it."""
    d = np.zeros(len(value), np.int8)
    for i in range(len(value) - 1):
        if value[i] > value[i + 1]:
            d[i] -= 1
            d[i + 1] += 1
    return d


def pool_equal(n0: Array, n1: Array) -> PathBins:
    """The bins at λ = 0: neighbouring cells of equal rate are one."""
    first, s, w = _pool(n0, n1)
    return PathBins(0.0, first, s, w, _directions(s / w))


# --- one λ ----------------------------------------------------------------------------------------


@jit
def _solve(s: Array, w: Array, lambda_: float) -> Array:
    """The values at λ, by messages from left to right.

    The derivative of the least cost of all bins up to i, as a function g_i of the value of bin i,
    is piecewise linear and rising; the next bin sees clip(g_i, −λ, 0). Its kinks are a queue of
    places x and changes of slope. Left of all kinks g + λ is stored in place of g: so a large λ
    loses no digits.
    """
    size = len(s)
    low, high = np.empty(size), np.empty(size)
    x, bend = np.empty(2 * size + 2), np.empty(2 * size + 2)
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
        x[head], bend[head] = low[i], a
        a, c = w[i], -s[i]
        while tail > head and a * x[tail - 1] + c >= 0.0:
            tail -= 1
            a -= bend[tail]
            c += bend[tail] * x[tail]
        high[i] = -c / a
        x[tail], bend[tail] = high[i], -a
        tail += 1
    value = high[size - 1]
    for i in range(size - 1, -1, -1):
        value = min(max(value, low[i]), high[i])
        high[i] = value
    return high


@jit
def _regroup(
    first: Index, s: Array, w: Array, value: Array
) -> tuple[Index, Array, Array, NDArray[np.int8]]:
    """Bins of equal value become one."""
    size = len(s)
    to, sums, weights = np.empty(size, np.int32), np.empty(size), np.empty(size)
    kept = np.empty(size)
    k = -1
    for i in range(size):
        if k >= 0 and abs(value[i] - kept[k]) <= SAME_VALUE * abs(kept[k]):
            sums[k] += s[i]
            weights[k] += w[i]
        else:
            k += 1
            to[k], sums[k], weights[k], kept[k] = first[i], s[i], w[i], value[i]
    n = k + 1
    return to[:n].copy(), sums[:n].copy(), weights[:n].copy(), _directions(kept[:n])


def bins_at(bins: PathBins, lambda_: float) -> PathBins:
    """The bins at a λ above that of the given ones. O(K)."""
    value = _solve(bins.s, bins.w, lambda_)
    return PathBins(lambda_, *_regroup(bins.first, bins.s, bins.w, value))


# --- every λ --------------------------------------------------------------------------------------


@jit
def _meeting(a: int, b: int, s: Array, w: Array, d: NDArray[np.int8], now: float) -> float:
    """The λ at which neighbours a, b are of one value; infinite if they never are (eq. 8)."""
    ours, theirs = s[a] * w[b], s[b] * w[a]
    den = d[b] * w[a] - d[a] * w[b]
    if den != 0.0:
        return float(max(now, (ours - theirs) / den))
    return now if abs(ours - theirs) <= SAME_VALUE * ours else np.inf


@jit
def _push(key: Array, left: Index, right: Index, count: int, lam: float, a: int, b: int) -> int:
    """Add a meeting to the heap, if it ever comes; the new size."""
    if lam == np.inf:
        return count
    at = count
    while at > 0:
        up = (at - 1) >> 1
        if key[up] <= lam:
            break
        key[at], left[at], right[at] = key[up], left[up], right[up]
        at = up
    key[at], left[at], right[at] = lam, a, b
    return count + 1


@jit
def _drop(key: Array, left: Index, right: Index, count: int) -> int:
    """Take the first meeting off the heap; the new size."""
    count -= 1
    lam, a, b = key[count], left[count], right[count]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= count:
            break
        if down + 1 < count and key[down + 1] < key[down]:
            down += 1
        if key[down] >= lam:
            break
        key[at], left[at], right[at] = key[down], left[down], right[down]
        at = down
    key[at], left[at], right[at] = lam, a, b
    return count


@jit
def _merge(
    lambdas: Array,
    df: Index,
    first: Index,
    s: Array,
    w: Array,
    d: NDArray[np.int8],
    birth: Index,
    death: Index,
    parent: Index,
    bins: int,
    now: float,
    end: float,
) -> tuple[int, int]:
    """Fill the tree after its first ``bins`` entries; the numbers of models and of bins.

    A merge takes one meeting off the heap and adds at most two.
    """
    before, after = np.empty(2 * bins, np.int32), np.empty(2 * bins, np.int32)
    left, right, key = np.empty_like(before), np.empty_like(before), np.empty(2 * bins)
    count, model, new, alive, last = 0, -1, bins, bins, now
    before[0] = after[bins - 1] = -1
    for i in range(bins - 1):
        before[i + 1], after[i] = i, i + 1
        count = _push(key, left, right, count, _meeting(i, i + 1, s, w, d, now), i, i + 1)
    while count > 0 and key[0] <= end:
        lam, a, b = key[0], left[0], right[0]
        count = _drop(key, left, right, count)
        if parent[a] >= 0 or parent[b] >= 0:
            continue  # one of the two has become part of another bin
        if lam > last * (1.0 + SAME_LAMBDA):
            model += 1
            lambdas[model] = last = lam
        alive -= 1
        df[model] = alive  # before the first model, −1 writes to the unused last place
        first[new], birth[new] = first[a], model
        s[new], w[new], d[new] = s[a] + s[b], w[a] + w[b], d[a] + d[b]
        death[a], death[b], parent[a], parent[b] = model, model, new, new
        low, high = before[a], after[b]
        before[new], after[new] = low, high
        if low >= 0:
            after[low] = new
            count = _push(key, left, right, count, _meeting(low, new, s, w, d, lam), low, new)
        if high >= 0:
            before[high] = new
            count = _push(key, left, right, count, _meeting(new, high, s, w, d, lam), new, high)
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
    lambdas, df = np.empty(n), np.empty(n, np.int32)
    columns += [birth, death, parent]
    arguments = [lambdas, df, *columns, n, bins.lambda_, float(end)]
    models, used = _merge(*arguments)
    if not models:
        lambdas[0], df[0], models = bins.lambda_, 2 * n - used, 1
    death[:used][parent[:used] < 0] = models
    trimmed = [column[:used] for column in columns]
    return Tree(bins.lambda_, end, lambdas[:models].copy(), df[:models].copy(), *trimmed)
