"""Sums over all points for trend filtering: moments, prices, and a certificate.

The programme itself, and how it is solved, is in `calibrant.kernels.broken_lines`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels._jit import jit

#: points per block; the sums of a block often save a pass over its points
BLOCK = 32


def block_sums(x: Array, w: Array, z: Array) -> Array:
    """Per block of points: Σw, Σwd, Σwd², Σwz, Σwzd with d the distance from its first point."""
    first = np.arange(0, len(x), BLOCK)
    d, wz = x - np.repeat(x[first], BLOCK)[: len(x)], w * z
    columns = w, w * d, w * d * d, wz, wz * d
    return np.column_stack([np.add.reduceat(column, first) for column in columns])


class Programme(NamedTuple):
    """The arguments of `solve_rows` for values at the candidates."""

    hess: Array
    grad: Array
    coef: Array
    start: Index
    low: Array
    high: Array


def programme(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    old: Index,
    known: Array,
    lam: float,
    mu: float,
) -> tuple[Array, Programme]:
    """Moments of the intervals between candidates, and the programme for values at the candidates.

    The moments are Σw(1−t)², Σwt(1−t), Σwt², Σwz(1−t), Σwzt with t from 0 to 1. An interval
    contains its left end; only the last contains its right end. Those of intervals that are among
    the old ones are known. Inside the others, whole blocks are taken from their sums.

    There is a row for each bend and, if mu > 0, one for each step. The row of a bend says how far
    the chord of its neighbours lies above it: so no coefficient exceeds 1, however close they are.
    """
    n = len(at)
    bends = n - 2
    rows = bends + (n - 1 if mu > 0.0 else 0)
    moments = np.empty((n - 1, 5))
    hess, coef, start = np.zeros((n, 2)), np.zeros((rows, 3)), np.arange(rows)
    grad, low, high = np.zeros(n), np.full(rows, mu), np.zeros(rows)
    _write(x, w, z, sums, at, old, known, moments, lam, hess, grad, coef, low, high)
    if mu > 0.0:
        start[bends:] -= bends
        coef[bends:, 0], coef[bends:, 1] = -1.0, 1.0
    return moments, Programme(hess, grad, coef, start, low, high)


@jit
def _write(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    old: Index,
    known: Array,
    moments: Array,
    lam: float,
    hess: Array,
    grad: Array,
    coef: Array,
    low: Array,
    high: Array,
) -> None:
    """All but the rows of steps."""
    k = 0
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        width = x[b] - x[a]
        while k < len(old) - 1 and old[k] < a:
            k += 1
        if k < len(old) - 1 and old[k] == a and old[k + 1] == b and b < len(x) - 1:
            for m in range(5):
                moments[j, m] = known[k, m]
        else:
            unit = 1.0 / width
            h00, h01, h11, g0, g1 = 0.0, 0.0, 0.0, 0.0, 0.0
            i, end = a, b + 1 if j == len(at) - 2 else b
            while i < end:
                t, r = (x[i] - x[a]) * unit, (x[b] - x[i]) * unit
                s0, t0 = w[i], w[i] * z[i]
                block = i // BLOCK
                i += 1
                if block * BLOCK == i - 1 and block * BLOCK + BLOCK <= end:
                    i += BLOCK - 1
                    s0, t0 = sums[block, 0], sums[block, 3]
                    s1, s2 = sums[block, 1] * unit, sums[block, 2] * unit * unit
                    h00 += s2 - 2.0 * r * s1
                    h01 += (r - t) * s1 - s2
                    h11 += s2 + 2.0 * t * s1
                    g0 -= sums[block, 4] * unit
                    g1 += sums[block, 4] * unit
                h00 += s0 * r * r
                h01 += s0 * r * t
                h11 += s0 * t * t
                g0 += t0 * r
                g1 += t0 * t
            moments[j, 0] = h00
            moments[j, 1] = h01
            moments[j, 2] = h11
            moments[j, 3] = g0
            moments[j, 4] = g1
        hess[j, 0] += moments[j, 0]
        hess[j + 1, 1] = moments[j, 1]
        hess[j + 1, 0] = moments[j, 2]
        grad[j] += moments[j, 3]
        grad[j + 1] = moments[j, 4]
        if j < len(at) - 2:
            after = x[at[j + 2]] - x[b]
            coef[j, 0] = after / (width + after)
            coef[j, 1] = -1.0
            coef[j, 2] = width / (width + after)
            low[j] = high[j] = lam * (1.0 / width + 1.0 / after)


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
    where, worst = np.full(len(at) - 1, -1), np.zeros(len(at) - 1)
    _sweep(x, w, z, sums, at, moments, f, u, lam, where, worst)
    return where, worst


@jit
def _sweep(
    x: Array,
    w: Array,
    z: Array,
    sums: Array,
    at: Index,
    moments: Array,
    f: Array,
    u: Array,
    lam: float,
    where: Index,
    worst: Array,
) -> None:
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        if b - a < 2:
            continue
        width = x[b] - x[a]
        slope = (f[j + 1] - f[j]) / width
        least, most = (f[j], f[j + 1]) if slope > 0.0 else (f[j + 1], f[j])
        plain = least >= 0.0 and most <= 1.0
        inner = moments[j, 3] - moments[j, 0] * f[j] - moments[j, 1] * f[j + 1]
        q = (u[j + 1] - u[j]) / width - inner + w[a] * (z[a] - f[j])
        price, before = u[j], x[a]
        i = a + 1
        while i < b:
            if plain and i % BLOCK == 0 and i + BLOCK <= b:
                block = i // BLOCK
                weight, wz = sums[block, 0], sums[block, 3]
                reach = x[i + BLOCK - 1] - before
                # q can rise by Σw(z − p)⁺ ≤ Σwz(1 − p) and fall by Σw(p − z)⁺ ≤ Σw(1 − z)p
                rise, fall = wz * (1.0 - least), (weight - wz) * most
                turn = rise if rise > fall else fall
                if abs(price) + reach * (abs(q) + turn) <= lam:
                    value = f[j] + slope * (x[i] - x[a])
                    pull = wz - value * weight - slope * sums[block, 1]  # Σw(z − p)
                    lever = sums[block, 4] - value * sums[block, 1] - slope * sums[block, 2]
                    # and Σw(z − p)d is the lever
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


@jit
def bounded(
    x: Array,
    w: Array,
    z: Array,
    a: int,
    b: int,
    p: float,
    q: float,
    begin: float,
    end: float,
    lam: float,
    mu: float,
) -> bool:
    """Whether a flat stretch from point a to b at height p has prices within their bounds.

    On a flat stretch each fall has a price v of its own in [−μ, 0], and u_{i+1} = u_i +
    (x_{i+1} − x_i)(q_i + v_i). The question is whether some choice of v leads from u_a to u_b
    (begin and end) within [−λ, λ]. q is Σw(z − p) of the points before a.
    """
    low, high = begin, begin
    slack = 1e-9 * lam
    for i in range(a, b):
        q += w[i] * (z[i] - p)
        step = x[i + 1] - x[i]
        high = min(high + step * q, lam)
        low = max(low + step * (q - mu), -lam) if mu < np.inf else -lam
        if low > high + slack:
            return False
    return low - slack <= end <= high + slack


@jit
def objective(
    x: Array, at: Index, f: Array, hess: Array, grad: Array, lam: float, mu: float
) -> tuple[float, float, float]:
    """For values f at the candidates: gᵀf, fᵀHf, and the penalty."""
    fit, square = grad[0] * f[0], hess[0, 0] * f[0] * f[0]
    bent, fallen, before = 0.0, 0.0, 0.0
    for j in range(1, len(at)):
        fit += grad[j] * f[j]
        square += (hess[j, 0] * f[j] + 2.0 * hess[j, 1] * f[j - 1]) * f[j]
        step = f[j] - f[j - 1]
        slope = step / (x[at[j]] - x[at[j - 1]])
        if j > 1:
            bent += abs(slope - before)
        if step < 0.0:
            fallen -= step
        before = slope
    return fit, square, lam * bent + (mu * fallen if mu < np.inf else 0.0)
