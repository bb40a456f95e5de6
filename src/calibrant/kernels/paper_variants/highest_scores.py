"""ABB's average as its paper's text has it (eq. 2.9): highest sub-scores in place of sums."""

from __future__ import annotations

import math

import numpy as np

from calibrant.array_types import Array
from calibrant.kernels._jit import jit


@jit
def _score(low: int, u: int, sum0: Array, sum1: Array, height: Array) -> float:
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
            left[u] = max(left[u], left[low] + _score(low, u, sum0, sum1, height) + cut[u])
    for low in range(size - 1, -1, -1):
        for u in range(low + 1, size + 1):
            right[low] = max(right[low], right[u] + _score(low, u, sum0, sum1, height) + cut[u])
    above, below = np.zeros(size + 1), np.zeros(size + 1)  # differences from cell to cell
    for low in range(size):
        for u in range(low + 1, size + 1):
            log = left[low] + _score(low, u, sum0, sum1, height) + cut[u] + right[u] - left[size]
            weight = math.exp(log)
            value = (sum1[u] - sum1[low] + 1.0) / (sum0[u] - sum0[low] + sum1[u] - sum1[low] + 2.0)
            above[low] += weight * value
            above[u] -= weight * value
            below[low] += weight
            below[u] -= weight
    return np.cumsum(above)[:size] / np.cumsum(below)[:size]
