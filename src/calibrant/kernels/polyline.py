"""Points that are all but equal, and points on a broken line."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.kernels._jit import jit


def spread(x: Array, least: float) -> Index:
    """First indices of groups of ascending x; all points of a group are within ``least`` of its
    first."""
    out = np.arange(len(x))
    if np.diff(x).min(initial=np.inf) >= least:
        return out
    return out[: _spread(x, least, out)]


@jit
def _spread(x: Array, least: float, out: Index) -> int:
    count = 1
    for i in range(1, len(x)):
        if x[i] - x[out[count - 1]] >= least:
            out[count] = i
            count += 1
    return count


def line_values(x: Array, at: Index, value: Array) -> Array:
    """p at all points of the line through (x[at], value), at[0] = 0 and at[-1] the last point."""
    first, count = at[:-1], np.diff(at)
    count[-1] += 1  # the last piece contains its right end
    slope = np.diff(value) / np.diff(x[at])
    out = x - np.repeat(x[first], count)
    out *= np.repeat(slope, count)
    out += np.repeat(value[:-1], count)
    return out
