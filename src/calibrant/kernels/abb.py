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

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.kernels._jit import jit

__all__ = ["chain_moments", "gauss_legendre", "log_evidence", "posterior_rows", "quadrature"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: the forward rows of so many cells are kept at a time: they fit into the cache
INNER = 32
#: powers of θ up to this are products; larger or fractional ones take an exponential
FEW = 8
#: the largest total weight; every cell then takes 31,000 nodes
HEAVIEST = 1e8
#: more than MANY nodes are found by a series, except near the ends, where n·sin φ is below AWAY
MANY, AWAY = 1000, 60.0


@jit
def gauss_legendre(n: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss–Legendre quadrature on (0, 1), by Newton's method in the angle.

    O(n) for many nodes: then Legendre's polynomial is summed by its asymptotic series, except at
    the few nodes next to the ends.
    """
    theta, weight = np.empty(n), np.empty(n)
    size = _size_of_legendre(n) if n > MANY else 1.0
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
    return theta, weight


@jit
def _size_of_legendre(n: int) -> float:
    """4/π · Π j/(j + ½) up to n, by a compensated sum of logarithms."""
    total, lost = 0.0, 0.0
    for j in range(1, n + 1):
        term = -math.log1p(0.5 / j) - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return 4.0 / math.pi * math.exp(total)


@jit
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


@jit
def _likelihood(n0: float, n1: float, nodes: Array, scratch: Array) -> tuple[Array, float]:
    """θ^{n₁}(1−θ)^{n₀} at the nodes, and ln of the factor by which large powers are scaled down.

    nodes: θ, 1−θ, ln θ, ln(1−θ).
    """
    if n0 == 0.0 and n1 == 1.0:
        return nodes[0], 0.0
    if n0 == 1.0 and n1 == 0.0:
        return nodes[1], 0.0
    if n0 + n1 <= FEW and n0 == math.floor(n0) and n1 == math.floor(n1):
        scratch[:] = 1.0
        for k, times in ((0, int(n1)), (1, int(n0))):
            factor = nodes[k]
            for _ in range(times):
                for j in range(len(scratch)):
                    scratch[j] *= factor[j]
        return scratch, 0.0
    top = 0.0
    if n0 > 0.0 and n1 > 0.0:
        top = n0 * math.log(n0 / (n0 + n1)) + n1 * math.log(n1 / (n0 + n1))
    for j in range(len(scratch)):
        scratch[j] = math.exp(n1 * nodes[2, j] + n0 * nodes[3, j] - top)
    return scratch, top


@jit
def log_evidence(n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array) -> float:
    """ln of the sum over all binnings of prior times marginal likelihood."""
    return _forward(n0, n1, gaps, nodes, weight, len(n0))[2]


@jit
def _forward(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array, outer: int
) -> tuple[Array, Array, float]:
    """Masses ∫F_i, the rows F at every outer-th cell, and the log evidence."""
    size = len(n0)
    mass, kept = np.empty(size), np.empty(((size + outer - 1) // outer, len(weight)))
    row, scratch = np.ones(len(weight)), np.empty(len(weight))
    total = 0.0
    for i in range(size):
        keep = math.exp(-gaps[i - 1]) / mass[i - 1] if i else 0.0
        leave = -math.expm1(-gaps[i - 1]) if i else 1.0
        factor, top = _likelihood(n0[i], n1[i], nodes, scratch)
        for j in range(len(row)):
            row[j] = (keep * row[j] + leave) * factor[j]
        mass[i] = np.dot(weight, row)
        total += math.log(mass[i]) + top
        if i % outer == 0:
            kept[i // outer] = row
    return mass, kept, total


@jit
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
    scratch: Array,
) -> None:
    """Write F_{first + k·every} into rows[k], up to before ``last``; F_first is in rows[0]."""
    row = rows[0].copy()
    for i in range(first + 1, last):
        keep, leave = math.exp(-gaps[i - 1]) / mass[i - 1], -math.expm1(-gaps[i - 1])
        factor, _ = _likelihood(n0[i], n1[i], nodes, scratch)
        if every == 1:
            source, target = rows[i - first - 1], rows[i - first]
            for j in range(len(row)):
                target[j] = (keep * source[j] + leave) * factor[j]
        else:
            for j in range(len(row)):
                row[j] = (keep * row[j] + leave) * factor[j]
            if (i - first) % every == 0:
                rows[(i - first) // every] = row


@jit
def chain_moments(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array
) -> tuple[Array, float]:
    """Per cell i, for the gap above it: ∫F̄B̄, ∫θF̄B̄, ∫θF̄_i, ∫θB̄_{i+1}; and the log evidence.

    Time O(D·G) for G nodes: one pass forward, and one backward that computes the forward rows again
    from rows kept at two spacings. Memory O(D + √D·G). The backward row includes the quadrature
    weights, and sums over nodes are taken for INNER cells at a time.
    """
    size, g = len(n0), len(weight)
    outer = INNER * max(1, int(math.sqrt(size)) // INNER)
    mass, kept, evidence = _forward(n0, n1, gaps, nodes, weight, outer)
    moments, back_mass = np.zeros((4, size)), np.ones(size + 1)
    middle, rows = np.empty((outer // INNER, g)), np.empty((INNER, g))
    ones, scratch, back = np.ones(g), np.empty(g), np.zeros(g)
    theta, weight_theta = nodes[0], weight * nodes[0]
    for block in range(len(kept) - 1, -1, -1):
        low, high = block * outer, min((block + 1) * outer, size)
        middle[0] = kept[block]
        _replay(low, high, INNER, middle, n0, n1, gaps, mass, nodes, scratch)
        for part in range((high - low - 1) // INNER, -1, -1):
            begin = low + part * INNER
            end = min(begin + INNER, high)
            rows[0] = middle[part]
            _replay(begin, end, 1, rows, n0, n1, gaps, mass, nodes, scratch)
            for i in range(end - 1, begin - 1, -1):
                now = rows[i - begin]
                if i == size - 1 or not _tells_mean(n0[i + 1], n1[i + 1], gaps[i]):
                    moments[2, i] = np.dot(weight_theta, now) / mass[i]
                if i < size - 1 and not _tells_mean(n0[i], n1[i], gaps[i]):
                    moments[3, i] = np.dot(theta, back) / back_mass[i + 1]
                keep = math.exp(-gaps[i]) / back_mass[i + 1] if i < size - 1 else 0.0
                leave = -math.expm1(-gaps[i]) if i < size - 1 else 1.0
                factor, _ = _likelihood(n0[i], n1[i], nodes, scratch)
                for j in range(g):
                    now[j] *= back[j]
                    back[j] = (keep * back[j] + leave * weight[j]) * factor[j]
                back_mass[i] = np.dot(ones, back)
            inner = rows[: end - begin]
            moments[0, begin:end] = np.dot(inner, ones)
            moments[1, begin:end] = np.dot(inner, theta)
    for i in range(size - 1):
        moments[0, i] /= mass[i] * back_mass[i + 1]
        moments[1, i] /= mass[i] * back_mass[i + 1]
        if _tells_mean(n0[i + 1], n1[i + 1], gaps[i]):
            moments[2, i] = _mean_told(mass[i + 1], n1[i + 1], gaps[i])
        if _tells_mean(n0[i], n1[i], gaps[i]):
            moments[3, i] = _mean_told(back_mass[i], n1[i], gaps[i])
    return moments, evidence


@jit
def _tells_mean(n0: float, n1: float, gap: float) -> bool:
    """Whether the cell across the gap is a single row, and likely of the same bin."""
    return n0 + n1 == 1.0 and (n0 == 1.0 or n1 == 1.0) and gap < 0.5


@jit
def _mean_told(mass: float, n1: float, gap: float) -> float:
    """∫θF̄, from the mass of a single row across the gap; this saves a sum over the nodes.

    The mass is e^{−h}·∫θF̄ + ½(1 − e^{−h}) if the row is positive, else 1 less that.
    """
    mean = (mass + 0.5 * math.expm1(-gap)) / math.exp(-gap)
    return mean if n1 == 1.0 else 1.0 - mean


@jit
def posterior_rows(
    n0: Array, n1: Array, gaps: Array, nodes: Array, weight: Array, at: Index
) -> Array:
    """The posterior mass of θ at the nodes, for some of the scores (by ascending indices)."""
    size, g = len(n0), len(weight)
    result = np.empty((len(at), g))
    row, ones, scratch = np.ones(g), np.ones(g), np.empty(g)
    mass, k = 1.0, 0
    for i in range(size):
        keep = math.exp(-gaps[i - 1]) / mass if i else 0.0
        leave = -math.expm1(-gaps[i - 1]) if i else 1.0
        factor, _ = _likelihood(n0[i], n1[i], nodes, scratch)
        for j in range(g):
            row[j] = (keep * row[j] + leave) * factor[j]
        mass = np.dot(weight, row)
        if k < len(at) and at[k] == i:
            result[k] = row
            k += 1
    back, mass, k = np.zeros(g), 1.0, len(at) - 1
    for i in range(size - 1, -1, -1):
        keep = math.exp(-gaps[i]) / mass if i < size - 1 else 0.0
        leave = -math.expm1(-gaps[i]) if i < size - 1 else 1.0
        if k >= 0 and at[k] == i:
            for j in range(g):
                result[k, j] *= keep * back[j] + leave * weight[j]
            result[k] /= result[k].sum()
            k -= 1
        factor, _ = _likelihood(n0[i], n1[i], nodes, scratch)
        for j in range(g):
            back[j] = (keep * back[j] + leave * weight[j]) * factor[j]
        mass = np.dot(ones, back)
    return result


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
