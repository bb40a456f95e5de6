"""The best of all binnings (Naeini, Cooper and Hauskrecht 2015, §2.3), by branch and bound.

Cells are 0 … D−1. With the prefix sums N₀, N₁ of the two classes, a bin of cells l … u−1 has the
log marginal likelihood B(l, u) = ln n₀! + ln n₁! − ln (n+1)! (eq. 2.4). The dynamic programme is

    V_u = max_l [A_l + B(l, u)] − H_u,    A_l = V_l + ln(1 − e^{−h_l}) + H_l ,    A_0 = 0,

where h_l is the prior intensity of the gap below cell l and H its running sum. With MLL(l, s) the
largest log likelihood of cells l … s−1,

    B(l, u) = ln ∫ L(l, s)·L(s, u) dθ ≤ MLL(l, s) + B(s, u)                                  (*)

so (i) a start l can be dropped for good once A_l + MLL(l, s) ≤ A_s, and (ii) a group of starts that
ends at s cannot beat `best` at u if max_l [A_l + MLL(l, s)] + B(s, u) ≤ best.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels._jit import jit, part

LEAF = 16


def log_factorials(total: float) -> Array:
    """ln 0! … ln (total+1)!, for whole weights; empty asks for lnΓ at every use."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(2.0, total + 4.0) - 1.0))


@part
def _factorial(n: float, table: Array) -> float:
    """ln n!, looked up where n is whole and the table reaches that far."""
    if len(table):
        return float(table[int(n)])
    return math.lgamma(n + 1.0)


@part
def _marginal(n0: float, n1: float, table: Array) -> float:
    """Eq. 2.4: ln n₀! n₁! / (n+1)!."""
    return _factorial(n0, table) + _factorial(n1, table) - _factorial(n0 + n1 + 1.0, table)


@part
def _likelihood(n0: float, n1: float) -> float:
    """MLL: ln of the largest likelihood, n₀ ln(n₀/n) + n₁ ln(n₁/n)."""
    if n0 <= 0.0 or n1 <= 0.0:
        return 0.0
    n = n0 + n1
    return n0 * math.log(n0 / n) + n1 * math.log(n1 / n)


def best_binning(
    n0: Array, n1: Array, gaps: Array, log_cut: Array, table: Array
) -> tuple[Index, float]:
    """Where the bins of the highest-scoring binning start, and its log score (eq. 2.7).

    Parameters
    ----------
    n0, n1 : arrays of shape (D,)
        Weight of the classes at each score.
    gaps : array of shape (D − 1,)
        h: the prior intensity λ·(x_{k+1} − x_k)/(x_D − x_1) of each gap.
    log_cut : array of shape (D − 1,)
        ln(1 − e^{−h}).
    table : array
        `log_factorials`, or empty for weights that are not whole.
    """
    size = len(n0)
    leaves = -(-size // LEAF)
    levels = max((leaves - 1).bit_length(), 1)
    sum0, sum1 = np.append(0.0, np.cumsum(n0)), np.append(0.0, np.cumsum(n1))
    value = np.full(size, -np.inf)  # A
    value[0] = 0.0
    back = np.zeros(size + 1, np.intp)  # the start of the last bin that ends at u
    alive = np.empty(size, np.intp)  # the live starts of leaf j: alive[j·LEAF : j·LEAF + count[j]]
    count = np.zeros(leaves, np.intp)
    # top[k, j] = max A_l + MLL(l, end) over the live starts of node j of level k (2^k leaves)
    top = np.full((levels + 1, leaves + 1), -np.inf)
    stack = np.empty((2, 64 + levels), np.intp)
    best = _fill(gaps, log_cut, value, back, alive, count, top, stack, sum0, sum1, table)
    starts, u = [], size
    while u > 0:
        u = int(back[u])
        starts.append(u)
    return np.array(starts[::-1], np.intp), best - float(gaps.sum())


@jit
def _fill(
    gaps: Array,
    log_cut: Array,
    value: Array,
    back: Index,
    alive: Index,
    count: Index,
    top: Array,
    stack: Index,
    sum0: Array,
    sum1: Array,
    table: Array,
) -> float:
    """The dynamic programme: A of every start, and the last bin of every end; V_D + H_D."""
    size, best = len(value), 0.0
    for u in range(1, size + 1):
        leaf = (u - 1) // LEAF
        if value[u - 1] > -np.inf:
            alive[leaf * LEAF + count[leaf]] = u - 1
            count[leaf] += 1
        best, back[u] = _search(u, back[u - 1], value, alive, count, top, stack, sum0, sum1, table)
        if u < size:
            value[u] = best + log_cut[u - 1] + gaps[u - 1]
            if u % LEAF == 0:
                _close(u, leaf, value, alive, count, top, sum0, sum1)
    return best


@part
def _search(
    u: int,
    guess: int,
    value: Array,
    alive: Index,
    count: Index,
    top: Array,
    stack: Index,
    sum0: Array,
    sum1: Array,
    table: Array,
) -> tuple[float, int]:
    """max_l [A_l + B(l, u)] and its l: the last argmax, the open leaf, then the bounded tree."""
    a, b = sum0[u], sum1[u]
    best, where = value[guess] + _marginal(a - sum0[guess], b - sum1[guess], table), guess
    leaf = (u - 1) // LEAF
    best, where = _try_leaf(leaf, best, where, a, b, value, alive, count, sum0, sum1, table)
    # the closed leaves 0 … leaf−1 are the nodes of the binary digits of `leaf`
    depth, rest, level = 0, leaf, 0
    while rest:
        if rest & 1:
            stack[0, depth], stack[1, depth] = level, rest - 1
            depth += 1
        rest >>= 1
        level += 1
    while depth:
        depth -= 1
        level, node = stack[0, depth], stack[1, depth]
        if top[level, node] == -np.inf:
            continue
        end = ((node + 1) << level) * LEAF
        if top[level, node] + _marginal(a - sum0[end], b - sum1[end], table) <= best:
            continue
        if level == 0:
            best, where = _try_leaf(node, best, where, a, b, value, alive, count, sum0, sum1, table)
        else:
            stack[0, depth], stack[1, depth] = level - 1, 2 * node
            stack[0, depth + 1], stack[1, depth + 1] = level - 1, 2 * node + 1
            depth += 2
    return best, where


@part
def _try_leaf(
    leaf: int,
    best: float,
    where: int,
    a: float,
    b: float,
    value: Array,
    alive: Index,
    count: Index,
    sum0: Array,
    sum1: Array,
    table: Array,
) -> tuple[float, int]:
    """The best of a leaf's live starts, the newest first, if it beats what is at hand."""
    for i in range(leaf * LEAF + count[leaf] - 1, leaf * LEAF - 1, -1):
        start = alive[i]
        here = value[start] + _marginal(a - sum0[start], b - sum1[start], table)
        if here > best:
            best, where = here, start
    return best, where


@part
def _close(
    u: int,
    leaf: int,
    value: Array,
    alive: Index,
    count: Index,
    top: Array,
    sum0: Array,
    sum1: Array,
) -> None:
    """Drop the starts that A_u has beaten (i), and bound every node that ends at u (ii)."""
    level, first = 0, leaf
    while True:
        highest = -np.inf
        for node in range(first, leaf + 1):
            kept = node * LEAF
            for i in range(node * LEAF, node * LEAF + count[node]):
                start = alive[i]
                bound = value[start] + _likelihood(sum0[u] - sum0[start], sum1[u] - sum1[start])
                if bound > value[u]:
                    alive[kept] = start
                    kept += 1
                    highest = max(highest, bound)
            count[node] = kept - node * LEAF
        top[level, leaf >> level] = highest
        if ((leaf >> level) & 1) == 0:
            break
        level += 1
        first = leaf + 1 - (1 << level)
