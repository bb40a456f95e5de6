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

from calibrant.array_types import Array
from calibrant.kernels._jit import jit, part

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


def _joined(lambda_: float, value: Array, first: Index, s: Array, w: Array) -> PathBins:
    """The bins at λ, where neighbours of equal value are one."""
    value, first, s, w = value.copy(), first.copy(), s.copy(), w.copy()
    d = np.zeros(len(s), np.int8)
    n = _join(value, first, s, w, d)
    return PathBins(lambda_, first[:n].copy(), s[:n].copy(), w[:n].copy(), d[:n].copy())


@jit
def _join(value: Array, first: Index, s: Array, w: Array, d: NDArray[np.int8]) -> int:
    """Bring the columns to the bins, in place; their number.

    A violation on its left lifts a bin, one on its right lowers it.
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
    return _joined(0.0, n1 / w, np.arange(len(w), dtype=np.int32), n1, w)


# --- one λ ----------------------------------------------------------------------------------------


def bins_at(bins: PathBins, lambda_: float) -> PathBins:
    """The bins at a λ above that of the given ones. O(K)."""
    size = len(bins.s)
    low, value = np.empty((2, size))
    x, bend = np.empty((2, 2 * size + 2))
    _solve(bins.s, bins.w, lambda_, low, value, x, bend)
    return _joined(lambda_, value, bins.first, bins.s, bins.w)


@jit
def _solve(
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


def _meetings(bins: PathBins) -> Array:
    """The λ at which neighbours are of one value; infinite if they never are (eq. 8)."""
    s, w, d = bins.s, bins.w, bins.d.astype(np.float64)
    ours, theirs = s[:-1] * w[1:], s[1:] * w[:-1]
    den = d[1:] * w[:-1] - d[:-1] * w[1:]
    same = np.abs(ours - theirs) <= SAME_VALUE * ours
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        met = np.maximum((ours - theirs) / den, bins.lambda_)
    return np.where(den != 0.0, met, np.where(same, bins.lambda_, np.inf))


@part
def _meeting(a: int, b: int, s: Array, w: Array, d: NDArray[np.int8], now: float) -> float:
    """`_meetings` of neighbours a and b."""
    ours, theirs = s[a] * w[b], s[b] * w[a]
    den = d[b] * w[a] - d[a] * w[b]
    if den != 0.0:
        return float(max(now, (ours - theirs) / den))
    return now if abs(ours - theirs) <= SAME_VALUE * ours else np.inf


@part
def _push(key: Array, left: Index, right: Index, count: int, lam: float, a: int, b: int) -> None:
    """Add a meeting to the heap of this many."""
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
def _drop(key: Array, left: Index, right: Index, count: int) -> None:
    """Take the first meeting off the heap, in which this many remain."""
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
def _merge(
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
    """Fill the tree after its first bins; the numbers of models and of bins.

    A merge takes one meeting off the heap and adds at most two.
    """
    bins = len(lambdas)
    model, new, last = -1, bins, now
    while count > 0 and key[0] <= end:
        lam, a, b = key[0], left[0], right[0]
        count -= 1
        _drop(key, left, right, count)
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
            met = _meeting(one, other, s, w, d, lam) if min(one, other) >= 0 else np.inf
            if met < np.inf:
                _push(key, left, right, count, met, one, other)
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
    heap = _first_heap(bins)
    arguments = [*heap, before, after, lambdas, df, *columns, bins.lambda_, float(end)]
    models, used = _merge(*arguments)
    if not models:
        lambdas[0], df[0], models = bins.lambda_, 2 * n - used, 1
    death[:used][parent[:used] < 0] = models
    trimmed = [column[:used] for column in columns]
    return Tree(bins.lambda_, end, lambdas[:models].copy(), df[:models].copy(), *trimmed)


def _first_heap(bins: PathBins) -> tuple[Array, Index, Index, int]:
    """The meetings of neighbours with their left and right bins, ascending, and their number.

    There is room for all meetings to come.
    """
    met = _meetings(bins)
    order = np.argsort(met, kind="stable")
    count = int(np.count_nonzero(met < np.inf))
    key = np.empty(2 * len(bins.s))
    left, right = np.empty((2, len(key)), np.int32)
    key[:count] = met[order[:count]]
    left[:count] = order[:count]
    right[:count] = order[:count] + 1
    return key, left, right, count
