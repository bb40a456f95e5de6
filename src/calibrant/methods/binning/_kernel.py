"""Kernels of binning: the average over all binnings, and the best of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.solvers._jit import jit, part

#: the forward rows of so many cells are kept at a time: they fit into the cache
INNER = 32
#: powers of θ up to this are products; larger or fractional ones take an exponential
FEW = 8
#: more than MANY nodes are found by a series, except near the ends, where n·sin φ is below AWAY
MANY, AWAY = 1000, 60.0


def gauss_legendre(n: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss–Legendre quadrature on (0, 1), by Newton's method in the angle.

    O(n) for many nodes: then Legendre's polynomial is summed by its asymptotic series, except at
    the few nodes next to the ends.
    """
    theta, weight = np.empty(n), np.empty(n)
    # 4/π · Π j/(j + ½) up to n
    size = 4.0 / math.pi * math.exp(-math.fsum(np.log1p(0.5 / np.arange(1, n + 1))))
    _gauss_nodes(n, size, theta, weight)
    return theta, weight


@jit
def _gauss_nodes(n: int, size: float, theta: Array, weight: Array) -> None:
    for k in range((n + 1) // 2):
        phi = math.pi * (k + 0.75) / (n + 0.5)
        slope = 1.0  # of P_n(cos φ)
        for _ in range(6):
            if n > MANY and n * math.sin(phi) > AWAY:
                value, slope = _legendre(n, phi, size)
            else:
                x = math.cos(phi)
                before, value = 1.0, x
                for j in range(2, n + 1):
                    before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
                slope = n * (x * value - before) / math.sin(phi)
            change = value / slope
            phi -= change
            if abs(change) < 1e-15:
                break
        s = math.sin(0.5 * phi)
        theta[k], theta[n - 1 - k] = s * s, 1.0 - s * s
        weight[k] = 1.0 / (slope * slope)
        weight[n - 1 - k] = weight[k]


@part
def _legendre(n: int, phi: float, size: float) -> tuple[float, float]:
    """P_n(cos φ) and its slope in φ, by Stieltjes' series: the error is at most twice the first
    term left out."""
    width, lean = 2.0 * math.sin(phi), math.cos(phi) / math.sin(phi)
    factor = size / math.sqrt(width)
    value = slope = 0.0
    for m in range(60):
        half = m + 0.5
        phase = (n + half) * phi - half * 0.5 * math.pi
        value += factor * math.cos(phase)
        slope -= factor * ((n + half) * math.sin(phase) + half * lean * math.cos(phase))
        factor *= half * half / ((m + 1.0) * (n + m + 1.5)) / width
        if factor < 1e-18 * size:
            break
    return value, slope


@part
def _likelihood(n0: float, n1: float, nodes: Array) -> tuple[int, float]:
    """The row of ``nodes`` with θ^{n₁}(1−θ)^{n₀}, and ln of the factor that scales it down.

    nodes: θ, 1−θ, ln θ, ln(1−θ), and a row to write to.
    """
    if n0 == 0.0 and n1 == 1.0:
        return 0, 0.0
    if n0 == 1.0 and n1 == 0.0:
        return 1, 0.0
    if n0 + n1 <= FEW and n0 == math.floor(n0) and n1 == math.floor(n1):
        for j in range(nodes.shape[1]):
            power = 1.0
            for _ in range(int(n1)):
                power *= nodes[0, j]
            for _ in range(int(n0)):
                power *= nodes[1, j]
            nodes[4, j] = power
        return 4, 0.0
    top = 0.0
    if n0 > 0.0 and n1 > 0.0:
        top = n0 * math.log(n0 / (n0 + n1)) + n1 * math.log(n1 / (n0 + n1))
    for j in range(nodes.shape[1]):
        nodes[4, j] = math.exp(n1 * nodes[2, j] + n0 * nodes[3, j] - top)
    return 4, top


def _with_room(nodes: Array) -> Array:
    """The nodes, with a row that `_likelihood` may write to."""
    return np.concatenate((nodes, np.empty((1, nodes.shape[1]))))


def log_evidence(n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array) -> float:
    """ln of the sum over all binnings of prior times marginal likelihood."""
    return _forward_pass(n0, n1, gaps, _with_room(nodes), weight, len(n0))[2]


def _forward_pass(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array, outer: int
) -> tuple[Array, Array, float]:
    """Masses ∫F_i, the rows F at every outer-th cell, and the log evidence."""
    mass, kept = np.empty(len(n0)), np.empty((-(-len(n0) // outer), len(weight)))
    total = _forward(n0, n1, gaps, nodes, weight, outer, mass, kept, np.ones(len(weight)))
    return mass, kept, total


@jit
def _forward(
    n0: Array,
    n1: Array,
    gaps: Array,
    nodes: Array,
    weight: Array,
    outer: int,
    mass: Array,
    kept: Array,
    row: Array,
) -> float:
    """Write the masses and the rows to keep; the log evidence."""
    total = keep = 0.0
    leave = 1.0
    for i in range(len(n0)):
        if i > 0:
            keep, leave = math.exp(-gaps[i - 1]) / mass[i - 1], -math.expm1(-gaps[i - 1])
        k, top = _likelihood(n0[i], n1[i], nodes)
        for j in range(len(row)):
            row[j] = (keep * row[j] + leave) * nodes[k, j]
        mass[i] = np.dot(weight, row)
        total += math.log(mass[i]) + top
        if i % outer == 0:
            for j in range(len(row)):
                kept[i // outer, j] = row[j]
    return total


@part
def _repeat_forward(
    first: int,
    last: int,
    every: int,
    rows: Array,
    n0: Array,
    n1: Array,
    gaps: Array,
    mass: Array,
    nodes: Array,
) -> None:
    """Write F_{first + k·every} into rows[k], up to before ``last``; F_first is in rows[0]."""
    source = 0
    for i in range(first + 1, last):
        keep, leave = math.exp(-gaps[i - 1]) / mass[i - 1], -math.expm1(-gaps[i - 1])
        k, _ = _likelihood(n0[i], n1[i], nodes)
        target = (i - first + every - 1) // every  # the rows on the way are written there, too
        if target == source:  # apart, both loops use vector instructions
            for j in range(nodes.shape[1]):
                rows[target, j] = (keep * rows[target, j] + leave) * nodes[k, j]
        else:
            for j in range(nodes.shape[1]):
                rows[target, j] = (keep * rows[source, j] + leave) * nodes[k, j]
        source = target


def chain_moments(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array
) -> tuple[Array, float]:
    """Per cell i, for the gap above it: ∫F̄B̄, ∫θF̄B̄, ∫θF̄_i, ∫θB̄_{i+1}; and the log evidence.

    Time O(D·G) for G nodes: one pass forward, and one backward that computes the forward rows again
    from rows kept at two spacings. Memory O(D + √D·G). The backward row includes the quadrature
    weights.
    """
    size, g = len(n0), len(weight)
    outer = INNER * max(1, math.isqrt(size) // INNER)
    nodes = _with_room(nodes)
    mass, kept, evidence = _forward_pass(n0, n1, gaps, nodes, weight, outer)
    moments, back_mass = np.zeros((4, size)), np.ones(size + 1)
    middle, rows = np.empty((outer // INNER + 1, g)), np.empty((INNER, g))
    # whether a single row across the gap tells the mean; this saves a sum over the nodes
    left, right = np.zeros(size, np.bool_), np.ones(size, np.bool_)
    left[:-1] = _is_single_row(n0[1:], n1[1:], gaps)
    right[:-1] = _is_single_row(n0[:-1], n1[:-1], gaps)
    arguments: list[Any] = [n0, n1, gaps, nodes, weight, weight * nodes[0], np.ones(g), mass, kept]
    arguments += [moments, back_mass, left, right, middle, rows]
    arguments += [np.array([INNER, 1]), *np.zeros((2, g))]
    _backward(*arguments)
    moments[:2, :-1] /= mass[:-1] * back_mass[1:-1]
    left, right = left[:-1], right[:-1]
    moments[2, :-1][left] = _single_mean(mass[1:][left], n1[1:][left], gaps[left])
    moments[3, :-1][right] = _single_mean(back_mass[:-2][right], n1[:-1][right], gaps[right])
    return moments, evidence


def _is_single_row(n0: Array, n1: Array, gap: Array) -> Flags:
    """Whether the cell across the gap is a single row, and likely of the same bin."""
    return np.asarray((n0 + n1 == 1.0) & ((n0 == 1.0) | (n1 == 1.0)) & (gap < 0.5))


def _single_mean(mass: Array, n1: Array, gap: Array) -> Array:
    """∫θF̄, from the mass of a single row across the gap.

    The mass is e^{−h}·∫θF̄ + ½(1 − e^{−h}) if the row is positive, else 1 less that.
    """
    mean = (mass + 0.5 * np.expm1(-gap)) / np.exp(-gap)
    return np.where(n1 == 1.0, mean, 1.0 - mean)


@jit
def _backward(
    n0: Array,
    n1: Array,
    gaps: Array,
    nodes: Array,
    weight: Array,
    weight_theta: Array,
    ones: Array,
    mass: Array,
    kept: Array,
    moments: Array,
    back_mass: Array,
    left: Flags,
    right: Flags,
    middle: Array,
    rows: Array,
    spacings: Index,
    back: Array,
    back_theta: Array,
) -> None:
    """Write the moments that are sums over the nodes, and the masses ∫B_i."""
    size, outer = len(n0), INNER * (len(middle) - 1)
    for block in range(len(kept) - 1, -1, -1):
        low, high = block * outer, min((block + 1) * outer, size)
        for j in range(len(back)):
            middle[0, j] = kept[block, j]
        _repeat_forward(low, high, spacings[0], middle, n0, n1, gaps, mass, nodes)
        for section in range((high - low - 1) // INNER, -1, -1):
            begin = low + section * INNER
            end = min(begin + INNER, high)
            for j in range(len(back)):
                rows[0, j] = middle[section, j]
            _repeat_forward(begin, end, spacings[1], rows, n0, n1, gaps, mass, nodes)
            for i in range(end - 1, begin - 1, -1):
                now = rows[i - begin]
                if not left[i]:
                    moments[2, i] = np.dot(weight_theta, now) / mass[i]
                if not right[i]:
                    moments[3, i] = np.dot(ones, back_theta) / back_mass[i + 1]
                moments[0, i] = np.dot(now, back)
                moments[1, i] = np.dot(now, back_theta)
                last = i == size - 1
                keep = 0.0 if last else math.exp(-gaps[i]) / back_mass[i + 1]
                leave = 1.0 if last else -math.expm1(-gaps[i])
                _step_back(n0[i], n1[i], keep, leave, nodes, weight, back, back_theta)
                back_mass[i] = np.dot(ones, back)


@part
def _step_back(
    n0: float,
    n1: float,
    keep: float,
    leave: float,
    nodes: Array,
    weight: Array,
    back: Array,
    back_theta: Array,
) -> None:
    """Bring B and θB, which include the weights, from one cell to the one below."""
    k, _ = _likelihood(n0, n1, nodes)
    for j in range(len(back)):
        back[j] = (keep * back[j] + leave * weight[j]) * nodes[k, j]
        back_theta[j] = back[j] * nodes[0, j]


def posterior_rows(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array, at: Index
) -> Array:
    """The posterior mass of θ at the nodes, for some of the scores (by ascending indices)."""
    g = len(weight)
    result, ones = np.empty((len(at), g)), np.ones(g)
    rows = ones, ones.copy(), np.zeros(g)
    _posterior(n0, n1, gaps, _with_room(nodes), weight, at, *rows, result)
    return np.asarray(result / result.sum(axis=1, keepdims=True))


@jit
def _posterior(
    n0: Array,
    n1: Array,
    gaps: Array,
    nodes: Array,
    weight: Array,
    at: Index,
    ones: Array,
    row: Array,
    back: Array,
    result: Array,
) -> None:
    """Write the products of the forward and the backward rows."""
    size, g = len(n0), len(weight)
    mass, k = 1.0, 0
    for i in range(size):
        keep = math.exp(-gaps[i - 1]) / mass if i else 0.0
        leave = -math.expm1(-gaps[i - 1]) if i else 1.0
        power, _ = _likelihood(n0[i], n1[i], nodes)
        for j in range(g):
            row[j] = (keep * row[j] + leave) * nodes[power, j]
        mass = np.dot(weight, row)
        if k < len(at) and at[k] == i:
            for j in range(g):
                result[k, j] = row[j] / mass
            k += 1
    mass, k = 1.0, len(at) - 1
    for i in range(size - 1, -1, -1):
        keep = math.exp(-gaps[i]) / mass if i < size - 1 else 0.0
        leave = -math.expm1(-gaps[i]) if i < size - 1 else 1.0
        if k >= 0 and at[k] == i:
            for j in range(g):
                result[k, j] *= keep * back[j] + leave * weight[j]
            k -= 1
        _step_back(n0[i], n1[i], keep, leave, nodes, weight, back, row)
        mass = np.dot(ones, back)


# --- ABB's average as its paper's text has it (eq. 2.9): highest sub-scores in place of sums ------


@jit
def _bin_score(low: int, u: int, sum0: Array, sum1: Array, height: Array) -> float:
    """ln of eq. 2.6 (without the cut above) times eq. 2.4, for the bin of cells low … u−1."""
    n0, n1 = sum0[u] - sum0[low], sum1[u] - sum1[low]
    marginal = math.lgamma(n0 + 1.0) + math.lgamma(n1 + 1.0) - math.lgamma(n0 + n1 + 2.0)
    return float(marginal - (height[u - 1] - height[low]))


@jit
def average_of_maxima(n0: Array, n1: Array, gaps: Array) -> Array:
    """P at every score: bins weighted by the best binnings to their left and right. O(D²)."""
    size = len(n0)
    sum0, sum1, height = np.zeros(size + 1), np.zeros(size + 1), np.zeros(size)
    for i in range(size):
        sum0[i + 1], sum1[i + 1] = sum0[i] + n0[i], sum1[i] + n1[i]
        if i:
            height[i] = height[i - 1] + gaps[i - 1]
    cut = np.zeros(size + 1)  # ln of the chance of a boundary below cell u
    for u in range(1, size):
        cut[u] = math.log(-math.expm1(-gaps[u - 1]))
    left, right = np.full(size + 1, -np.inf), np.full(size + 1, -np.inf)
    left[0] = right[size] = 0.0
    for u in range(1, size + 1):
        for low in range(u):
            left[u] = max(left[u], left[low] + _bin_score(low, u, sum0, sum1, height) + cut[u])
    for low in range(size - 1, -1, -1):
        for u in range(low + 1, size + 1):
            right[low] = max(right[low], right[u] + _bin_score(low, u, sum0, sum1, height) + cut[u])
    above, below = np.zeros(size + 1), np.zeros(size + 1)  # differences from cell to cell
    for low in range(size):
        for u in range(low + 1, size + 1):
            log = (
                left[low] + _bin_score(low, u, sum0, sum1, height) + cut[u] + right[u] - left[size]
            )
            weight = math.exp(log)
            value = (sum1[u] - sum1[low] + 1.0) / (sum0[u] - sum0[low] + sum1[u] - sum1[low] + 2.0)
            above[low] += weight * value
            above[u] -= weight * value
            below[low] += weight
            below[u] -= weight
    return np.cumsum(above)[:size] / np.cumsum(below)[:size]


# --- The best of all binnings (Naeini, Cooper and Hauskrecht 2015, §2.3), by branch and bound -----
# Cells are 0 … D−1. With the prefix sums N₀, N₁ of the two classes, a bin of cells l … u−1 has the
# log marginal likelihood B(l, u) = ln n₀! + ln n₁! − ln (n+1)! (eq. 2.4). The dynamic programme is
#
#     V_u = max_l [A_l + B(l, u)] − H_u,    A_l = V_l + ln(1 − e^{−h_l}) + H_l ,    A_0 = 0,
#
# where h_l is the prior intensity of the gap below cell l and H its running sum. With MLL(l, s) the
# largest log likelihood of cells l … s−1,
#
#     B(l, u) = ln ∫ L(l, s)·L(s, u) dθ ≤ MLL(l, s) + B(s, u)                                  (*)
#
# so (i) a start l can be dropped for good once A_l + MLL(l, s) ≤ A_s, and (ii) a group of starts
# that ends at s cannot beat `best` at u if max_l [A_l + MLL(l, s)] + B(s, u) ≤ best.


LEAF = 16


@part
def _factorial(n: float, table: Array) -> float:
    """ln n!, looked up where n is whole and the table reaches that far."""
    if len(table):
        return float(table[int(n)])
    return math.lgamma(n + 1.0)


@part
def _log_marginal(n0: float, n1: float, table: Array) -> float:
    """Eq. 2.4: ln n₀! n₁! / (n+1)!."""
    return _factorial(n0, table) + _factorial(n1, table) - _factorial(n0 + n1 + 1.0, table)


@part
def _largest_likelihood(n0: float, n1: float) -> float:
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
        ln 0! … ln (N+1)!, or empty for weights that are not whole: lnΓ is then asked at every use.
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
    best = _best_splits(gaps, log_cut, value, back, alive, count, top, stack, sum0, sum1, table)
    starts, u = [], size
    while u > 0:
        u = int(back[u])
        starts.append(u)
    return np.array(starts[::-1], np.intp), best - float(gaps.sum())


@jit
def _best_splits(
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
        best, back[u] = _best_start(
            u, back[u - 1], value, alive, count, top, stack, sum0, sum1, table
        )
        if u < size:
            value[u] = best + log_cut[u - 1] + gaps[u - 1]
            if u % LEAF == 0:
                _drop_beaten(u, leaf, value, alive, count, top, sum0, sum1)
    return best


@part
def _best_start(
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
    best, where = value[guess] + _log_marginal(a - sum0[guess], b - sum1[guess], table), guess
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
        if top[level, node] + _log_marginal(a - sum0[end], b - sum1[end], table) <= best:
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
    """The best of a leaf's live starts, the newest first, if it beats the best so far."""
    for i in range(leaf * LEAF + count[leaf] - 1, leaf * LEAF - 1, -1):
        start = alive[i]
        here = value[start] + _log_marginal(a - sum0[start], b - sum1[start], table)
        if here > best:
            best, where = here, start
    return best, where


@part
def _drop_beaten(
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
                bound = value[start] + _largest_likelihood(
                    sum0[u] - sum0[start], sum1[u] - sum1[start]
                )
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
