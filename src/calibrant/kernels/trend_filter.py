"""Sums over all points for trend filtering: moments, prices, and a certificate.

The programme itself, and how it is solved, is in `calibrant.kernels.broken_lines`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels._jit import jit

__all__ = ["block_sums", "bounded", "interval_moments", "objective", "programme", "sweep"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: points per block; the sums of a block often save a pass over its points
BLOCK = 32


@jit
def block_sums(x: Array, w: Array, z: Array) -> Array:
    """Per block of points: Σw, Σwd, Σwd², Σwz, Σwzd with d the distance from its first point."""
    blocks = (len(x) + BLOCK - 1) // BLOCK
    out = np.zeros((blocks, 5))
    for k in range(blocks):
        first = k * BLOCK
        s0, s1, s2, t0, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(first + BLOCK, len(x))):
            d = x[i] - x[first]
            wd, wz = w[i] * d, w[i] * z[i]
            s0 += w[i]
            s1 += wd
            s2 += wd * d
            t0 += wz
            t1 += wz * d
        out[k, 0], out[k, 1], out[k, 2], out[k, 3], out[k, 4] = s0, s1, s2, t0, t1
    return out


@jit
def interval_moments(
    x: Array, w: Array, z: Array, sums: Array, at: Index, old: Index, known: Array
) -> Array:
    """Per interval between candidates: Σw(1−t)², Σwt(1−t), Σwt², Σwz(1−t), Σwzt with t from 0 to 1.

    An interval contains its left end; only the last contains its right end. Intervals that are
    among the old ones are copied. Inside the others, whole blocks are taken from their sums.
    """
    out = np.empty((len(at) - 1, 5))
    k = 0
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        while k < len(old) - 1 and old[k] < a:
            k += 1
        if k < len(old) - 1 and old[k] == a and old[k + 1] == b and b < len(x) - 1:
            out[j] = known[k]
            continue
        width = x[b] - x[a]
        h00, h01, h11, g0, g1 = 0.0, 0.0, 0.0, 0.0, 0.0
        i, end = a, b + 1 if j == len(at) - 2 else b
        while i < end:
            if i % BLOCK == 0 and i + BLOCK <= end:
                s = sums[i // BLOCK]
                t, unit = (x[i] - x[a]) / width, 1.0 / width
                r = (x[b] - x[i]) / width
                first, second = s[1] * unit, s[2] * unit * unit
                h00 += r * r * s[0] - 2.0 * r * first + second
                h01 += r * t * s[0] + (r - t) * first - second
                h11 += t * t * s[0] + 2.0 * t * first + second
                g0 += r * s[3] - s[4] * unit
                g1 += t * s[3] + s[4] * unit
                i += BLOCK
            else:
                t, r = (x[i] - x[a]) / width, (x[b] - x[i]) / width
                h00 += w[i] * r * r
                h01 += w[i] * r * t
                h11 += w[i] * t * t
                g0 += w[i] * z[i] * r
                g1 += w[i] * z[i] * t
                i += 1
        out[j, 0], out[j, 1], out[j, 2], out[j, 3], out[j, 4] = h00, h01, h11, g0, g1
    return out


@jit
def programme(
    x: Array, at: Index, moments: Array, lam: float, mu: float
) -> tuple[Array, Array, Array, Index, Array, Array]:
    """The arguments of `solve_rows` for values at the candidates.

    There is a row for each bend and, if mu > 0, one for each step. The row of a bend says how far
    the chord of its neighbours lies above it: so no coefficient exceeds 1, however close they are.
    """
    n = len(at)
    hess, grad = np.zeros((n, 2)), np.zeros(n)
    for j in range(n - 1):
        hess[j, 0] += moments[j, 0]
        hess[j + 1, 1] = moments[j, 1]
        hess[j + 1, 0] += moments[j, 2]
        grad[j] += moments[j, 3]
        grad[j + 1] += moments[j, 4]
    rows = n - 2 + (n - 1 if mu > 0.0 else 0)
    coef, start = np.zeros((rows, 3)), np.empty(rows, np.intp)
    low, high = np.empty(rows), np.empty(rows)
    for j in range(n - 2):
        a, b = x[at[j + 1]] - x[at[j]], x[at[j + 2]] - x[at[j + 1]]
        coef[j, 0], coef[j, 1], coef[j, 2] = b / (a + b), -1.0, a / (a + b)
        start[j] = j
        low[j] = high[j] = lam * (1.0 / a + 1.0 / b)
    for j in range(n - 2, rows):
        start[j] = j - (n - 2)
        coef[j, 0], coef[j, 1] = -1.0, 1.0
        low[j], high[j] = mu, 0.0
    return hess, grad, coef, start, low, high


@jit
def sweep(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    moments: Array,
    f: Array,
    u: Array,
    lam: float,
) -> tuple[Index, Array]:
    """In each interval, the point of the largest |u| (−1 where no price exceeds λ), and this u.

    Between candidates u_{i+1} = u_i + (x_{i+1} − x_i)·q_i and q_{i+1} = q_i + w(z − p); the first q
    is chosen so that u has its known value at both ends. A block in which |u| cannot reach λ is
    passed over in one step.
    """
    where, worst = np.full(len(at) - 1, -1, np.intp), np.zeros(len(at) - 1)
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        if b - a < 2:
            continue
        width = x[b] - x[a]
        slope = (f[j + 1] - f[j]) / width
        least, most = min(f[j], f[j + 1]), max(f[j], f[j + 1])
        plain = least >= 0.0 and most <= 1.0
        inner = moments[j, 3] - moments[j, 0] * f[j] - moments[j, 1] * f[j + 1]
        q = (u[j + 1] - u[j]) / width - inner + w[a] * (z[a] - f[j])
        price, before = u[j], x[a]
        i = a + 1
        while i < b:
            if i % BLOCK == 0 and i + BLOCK <= b:
                s = sums[i // BLOCK]
                reach = x[i + BLOCK - 1] - before
                # q can rise by Σw(z − p)⁺ ≤ Σwz(1 − p) and fall by Σw(p − z)⁺ ≤ Σw(1 − z)p
                turn = max(s[3] * (1.0 - least), (s[0] - s[3]) * most)
                if not plain:
                    turn = s[3] + max(abs(least), abs(most)) * s[0]
                if abs(price) + reach * (abs(q) + turn) <= lam:
                    value = f[j] + slope * (x[i] - x[a])
                    pull = s[3] - value * s[0] - slope * s[1]  # Σw(z − p)
                    lever = s[4] - value * s[1] - slope * s[2]  # Σw(z − p)d
                    price += reach * q + (x[i + BLOCK - 1] - x[i]) * pull - lever
                    q += pull
                    before = x[i + BLOCK - 1]
                    i += BLOCK
                    continue
            price += (x[i] - before) * q
            before = x[i]
            q += w[i] * (z[i] - f[j] - slope * (before - x[a]))
            if abs(price) > abs(worst[j]):
                worst[j] = price
                if abs(price) > lam:
                    where[j] = i
            i += 1
    return where, worst


@jit
def bounded(
    x: Array,
    w: Array,
    z: Array,
    a: int,
    b: int,
    p: float,
    q: float,
    ends: tuple[float, float],
    lam: float,
    mu: float,
) -> bool:
    """Whether a flat stretch from point a to b at height p has prices within their bounds.

    On a flat stretch each fall has a price v of its own in [−μ, 0], and u_{i+1} = u_i +
    (x_{i+1} − x_i)(q_i + v_i). The question is whether some choice of v leads from u_a to u_b
    within [−λ, λ]. q is Σw(z − p) of the points before a.
    """
    low, high = ends[0], ends[0]
    slack = 1e-9 * lam
    for i in range(a, b):
        q += w[i] * (z[i] - p)
        step = x[i + 1] - x[i]
        high = min(high + step * q, lam)
        low = max(low + step * (q - mu), -lam) if mu < np.inf else -lam
        if low > high + slack:
            return False
    return low - slack <= ends[1] <= high + slack


@jit
def objective(
    x: Array, at: Index, f: Array, hess: Array, grad: Array, lam: float, mu: float
) -> tuple[float, float, float]:
    """For values f at the candidates: gᵀf, fᵀHf, and the penalty."""
    fit, square, penalty, before = 0.0, 0.0, 0.0, 0.0
    for j in range(len(at)):
        fit += grad[j] * f[j]
        square += hess[j, 0] * f[j] * f[j]
        if j == 0:
            continue
        square += 2.0 * hess[j, 1] * f[j] * f[j - 1]
        slope = (f[j] - f[j - 1]) / (x[at[j]] - x[at[j - 1]])
        if j > 1:
            penalty += lam * abs(slope - before)
        if mu < np.inf:
            penalty += mu * max(f[j - 1] - f[j], 0.0)
        before = slope
    return fit, square, penalty
