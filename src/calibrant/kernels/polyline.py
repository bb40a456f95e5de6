"""Points that are all but equal, and points on a broken line."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels._jit import jit

__all__ = ["line_values", "spread"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@jit
def spread(x: Array, least: float) -> Index:
    """First indices of groups of ascending x; all points of a group are within ``least`` of its
    first."""
    out = np.empty(len(x), np.intp)
    out[0] = 0
    count = 1
    for i in range(1, len(x)):
        if x[i] - x[out[count - 1]] >= least:
            out[count] = i
            count += 1
    return out[:count]


@jit
def line_values(x: Array, at: Index, value: Array) -> Array:
    """p at all points of the line through (x[at], value)."""
    out = np.full(len(x), value[0])
    for j in range(len(at) - 1):
        a, b = at[j], at[j + 1]
        slope = (value[j + 1] - value[j]) / (x[b] - x[a])
        for i in range(a, b + 1):
            out[i] = value[j] + slope * (x[i] - x[a])
    return out
