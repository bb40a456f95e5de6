"""The average over all binnings (Naeini, Cooper and Hauskrecht 2015, eq. 2.8) as a Markov chain.

A bin's parameter θ has the uniform prior, and the prior on boundaries is a Poisson process on the
score axis. So θ walks along the scores: over a gap of intensity h it stays with probability e^{−h},
else it is drawn anew from U(0, 1). The sum over all 2^(D−1) binnings is the forward–backward
recursion of that chain, on Gauss–Legendre nodes of θ:

    F_i = (e^{−h} F̄_{i−1} + 1 − e^{−h}) · L_i ,   F̄_i = F_i / ∫F_i ,   ln evidence = Σ ln ∫F_i ,
    B_i = (e^{−h} B̄_{i+1} + 1 − e^{−h}) · L_i ,   B̄_i = B_i / ∫B_i ,

with L_i = θ^{n₁}(1−θ)^{n₀}. A query that splits the gap between i and i+1 into a + b = h has

    p ∝ ∫ θ (e^{−a} F̄_i + 1 − e^{−a}) (e^{−b} B̄_{i+1} + 1 − e^{−b}) dθ ,

for which four numbers per gap are enough: ∫F̄B̄, ∫θF̄B̄, ∫θF̄ and ∫θB̄.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.errors import InputError
from calibrant.kernels._jit import jit, part

#: the forward rows of so many cells are kept at a time: they fit into the cache
INNER = 32
#: powers of θ up to this are products; larger or fractional ones take an exponential
FEW = 8
#: the largest total weight; every cell then takes 31,000 nodes
HEAVIEST = 1e8
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
    _find_nodes(n, size, theta, weight)
    return theta, weight


@jit
def _find_nodes(n: int, size: float, theta: Array, weight: Array) -> None:
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
    return _walk(n0, n1, gaps, _with_room(nodes), weight, len(n0))[2]


def _walk(
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
def _replay(
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
    mass, kept, evidence = _walk(n0, n1, gaps, nodes, weight, outer)
    moments, back_mass = np.zeros((4, size)), np.ones(size + 1)
    middle, rows = np.empty((outer // INNER + 1, g)), np.empty((INNER, g))
    # whether a single row across the gap tells the mean; this saves a sum over the nodes
    left, right = np.zeros(size, np.bool_), np.ones(size, np.bool_)
    left[:-1] = _tells_mean(n0[1:], n1[1:], gaps)
    right[:-1] = _tells_mean(n0[:-1], n1[:-1], gaps)
    arguments: list[Any] = [n0, n1, gaps, nodes, weight, weight * nodes[0], np.ones(g), mass, kept]
    arguments += [moments, back_mass, left, right, middle, rows]
    arguments += [np.array([INNER, 1]), *np.zeros((2, g))]
    _backward(*arguments)
    moments[:2, :-1] /= mass[:-1] * back_mass[1:-1]
    left, right = left[:-1], right[:-1]
    moments[2, :-1][left] = _mean_told(mass[1:][left], n1[1:][left], gaps[left])
    moments[3, :-1][right] = _mean_told(back_mass[:-2][right], n1[:-1][right], gaps[right])
    return moments, evidence


def _tells_mean(n0: Array, n1: Array, gap: Array) -> Flags:
    """Whether the cell across the gap is a single row, and likely of the same bin."""
    return np.asarray((n0 + n1 == 1.0) & ((n0 == 1.0) | (n1 == 1.0)) & (gap < 0.5))


def _mean_told(mass: Array, n1: Array, gap: Array) -> Array:
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
        _replay(low, high, spacings[0], middle, n0, n1, gaps, mass, nodes)
        for section in range((high - low - 1) // INNER, -1, -1):
            begin = low + section * INNER
            end = min(begin + INNER, high)
            for j in range(len(back)):
                rows[0, j] = middle[section, j]
            _replay(begin, end, spacings[1], rows, n0, n1, gaps, mass, nodes)
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
