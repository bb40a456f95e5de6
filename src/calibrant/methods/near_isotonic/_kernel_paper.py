"""Kernels of the papers' own variants: fused steps, and parabolas."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.solvers._jit import jit


@jit
def quadratic_b_splines(t: Array, j: int, x: float) -> tuple[float, float, float]:
    """The three B-splines that are not zero on [t_j, t_{j+1}], at x."""
    before, after = t[max(j - 1, 0)], t[min(j + 2, len(t) - 1)]
    width = t[j + 1] - t[j]
    first = (t[j + 1] - x) ** 2 / ((t[j + 1] - before) * width)
    third = (x - t[j]) ** 2 / ((after - t[j]) * width)
    return first, 1.0 - first - third, third


@jit
def normal_equations(x: Array, w: Array, z: Array, at: Index) -> tuple[Array, Array]:
    """H as a lower band, and g, on the B-splines."""
    n = len(at) + 1
    hess, grad = np.zeros((n, 3)), np.zeros(n)
    t = x[at]
    for j in range(len(at) - 1):
        for i in range(at[j], at[j + 1] + 1 if j == len(at) - 2 else at[j + 1]):
            b = quadratic_b_splines(t, j, x[i])
            for k in range(3):
                grad[j + k] += w[i] * z[i] * b[k]
                for m in range(k + 1):
                    hess[j + k, k - m] += w[i] * b[k] * b[m]
    return hess, grad


@jit
def curvatures(t: Array, coef: Array) -> Array:
    """The second derivative of a curve between its knots."""
    out = np.empty(len(t) - 1)
    for j in range(len(t) - 1):
        width = t[j + 1] - t[j]
        first = 2.0 / ((t[j + 1] - t[max(j - 1, 0)]) * width)
        third = 2.0 / ((t[min(j + 2, len(t) - 1)] - t[j]) * width)
        out[j] = first * coef[j] - (first + third) * coef[j + 1] + third * coef[j + 2]
    return out


@jit
def jump_rows(t: Array) -> tuple[Array, Index, Array]:
    """For each inner knot: the coefficients of its jump of p″, scaled to a largest of 1, where they
    begin, and the scale."""
    rows = len(t) - 2
    coef, start, scale = np.zeros((rows, 4)), np.empty(rows, np.intp), np.empty(rows)
    unit = np.zeros(len(t) + 1)
    for r in range(rows):
        start[r] = r
        for k in range(4):
            unit[r + k] = 1.0
            near = curvatures(t[max(r - 1, 0) : r + 4], unit[max(r - 1, 0) : r + 5])
            place = r - max(r - 1, 0)
            coef[r, k] = near[place + 1] - near[place]
            unit[r + k] = 0.0
        scale[r] = np.max(np.abs(coef[r]))
        coef[r] /= scale[r]
    return coef, start, scale


@jit
def curve_values(x: Array, at: Index, coef: Array) -> Array:
    """The values of a curve at all points."""
    out = np.empty(len(x))
    t = x[at]
    for j in range(len(at) - 1):
        for i in range(at[j], at[j + 1] + 1):
            b = quadratic_b_splines(t, j, x[i])
            out[i] = b[0] * coef[j] + b[1] * coef[j + 1] + b[2] * coef[j + 2]
    return out


@jit
def largest_curve_prices(
    x: Array, w: Array, z: Array, p: Array, at: Index, u: Array, lam: float
) -> tuple[Index, Array]:
    """Between candidates, the point of the largest |u| (−1 where none exceeds λ), and this |u|.

    u(x_j) = ½Σ_{i<j} w(p − z)(x_j − x_i)² is summed up step by step, and set to the known price at
    each candidate.
    """
    where, worst = np.full(len(at) - 1, -1, np.intp), np.zeros(len(at) - 1)
    q, m, price = 0.0, 0.0, 0.0
    for j in range(len(at) - 1):
        price = u[j]
        for i in range(at[j], at[j + 1]):
            if i > at[j] and abs(price) > worst[j]:
                worst[j] = abs(price)
                if abs(price) > lam:
                    where[j] = i
            q += w[i] * (p[i] - z[i])
            step = x[i + 1] - x[i]
            price += step * (m + 0.5 * step * q)
            m += step * q
    return where, worst


# --- Steps of least squares with a price on every rise and every fall, exactly, in O(n) -----------


@jit
def fused(w: Array, z: Array, rise: float, fall: float) -> Array:
    """p minimising ½Σw(p − z)² + Σ[rise·(p_{i+1} − p_i)₊ + fall·(p_i − p_{i+1})₊].

    Johnson's dynamic programme. The derivative of the least cost up to i, as a function of p_i, is
    an increasing broken line; the next point sees it clipped to [−fall, rise]. The line is stored
    as a deque of its kinks (place, change of slope, change of intercept): each point adds two kinks
    and removes those that are clipped. Prices may be infinite.
    """
    n = len(z)
    place, slope, shift = np.empty(2 * n + 2), np.empty(2 * n + 2), np.empty(2 * n + 2)
    low, high = np.empty(n), np.empty(n)
    first, last = n + 1, n  # the deque is empty
    # left of all kinks the derivative is a·p + b, and so it is, with other numbers, right of them
    left_a, left_b, right_a, right_b = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        left_a, left_b = left_a + w[i], left_b - w[i] * z[i]
        right_a, right_b = right_a + w[i], right_b - w[i] * z[i]
        if i == n - 1:
            break
        a, b = left_a, left_b
        low[i] = -np.inf
        if fall < np.inf:
            while first <= last and a * place[first] + b < -fall:
                a, b = a + slope[first], b + shift[first]
                first += 1
            low[i] = (-fall - b) / a
            first -= 1
            place[first], slope[first], shift[first] = low[i], a, b + fall
            left_a, left_b = 0.0, -fall
        c, d = right_a, right_b
        while first <= last and place[last] > low[i] and c * place[last] + d > rise:
            c, d = c - slope[last], d - shift[last]
            last -= 1
        high[i] = max((rise - d) / c, low[i])
        last += 1
        place[last], slope[last], shift[last] = high[i], -c, rise - d
        right_a, right_b = 0.0, rise
    p = np.empty(n)
    a, b = left_a, left_b
    while first <= last and a * place[first] + b < 0.0:
        a, b = a + slope[first], b + shift[first]
        first += 1
    p[n - 1] = -b / a
    for i in range(n - 2, -1, -1):
        p[i] = min(max(p[i + 1], low[i]), high[i])
    return p


@jit
def fused_lambda(w: Array, z: Array, mu: float) -> float:
    """The least λ at which the prices λ on rises and λ + μ on falls leave a constant."""
    mean = np.sum(w * z) / np.sum(w)
    u, top = 0.0, 0.0
    for i in range(len(z) - 1):
        u += w[i] * (mean - z[i])
        top = max(top, u, -u - mu)
    return top
