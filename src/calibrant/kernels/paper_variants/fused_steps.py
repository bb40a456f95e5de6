"""Steps of least squares with a price on every rise and every fall, exactly, in O(n)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels._jit import jit

#: a step this small is rounding
LEVEL = 1e-11


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
    """The least λ for which prices λ on rises and λ + μ on falls leave no step."""
    mean = np.sum(w * z) / np.sum(w)
    u, top = 0.0, 0.0
    for i in range(len(z) - 1):
        u += w[i] * (mean - z[i])
        top = max(top, u, -u - mu)
    return top


class FusedFit(NamedTuple):
    """The solution for one λ and μ."""

    at: Index  # the first point of every step
    value: Array  # p there
    df: int
    gap: float  # 0: there is nothing to iterate


class FusedPoints:
    """Weighted points to put steps through."""

    def __init__(self, x: Array, w: Array, z: Array) -> None:
        self.x, self.w, self.z = x, w, z

    def steepest(self, mu: float) -> float:
        """λ_max, from which on there is one step."""
        return float(fused_lambda(self.w, self.z, mu))

    def line(self, lam: float, mu: float, before: FusedFit | None, tol: float) -> FusedFit:
        """The steps for λ and μ; there is nothing to begin from or to tolerate."""
        p = fused(self.w, self.z, lam, lam + mu)
        first = np.append(0, np.flatnonzero(np.abs(np.diff(p)) > LEVEL) + 1)
        return FusedFit(first, p[first], len(first), 0.0)

    def values(self, steps: FusedFit) -> Array:
        """p at all points."""
        return np.repeat(steps.value, np.diff(np.append(steps.at, len(self.x))))
