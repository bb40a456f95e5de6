"""Fewer knots for a polygonal line, within a tolerance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels._jit import jit

__all__ = ["simplify"]


@jit
def simplify(x: NDArray[np.float64], v: NDArray[np.float64], tol: float) -> NDArray[np.intp]:
    """Indices of knots whose polygon stays within ``tol`` of the one through all points (x, v).

    From the last knot kept, the slopes that pass within tol of every point since form a cone; the
    furthest point whose own slope lies in it is the next knot. O(n) for smooth lines.
    """
    n = len(x)
    kept = np.empty(n, np.intp)
    kept[0] = 0
    count, anchor = 1, 0
    while anchor < n - 1:
        low, high, good = -np.inf, np.inf, anchor + 1
        i = anchor + 1
        while i < n:
            width = x[i] - x[anchor]
            slope = (v[i] - v[anchor]) / width
            if low <= slope <= high:
                good = i
            low = max(low, slope - tol / width)
            high = min(high, slope + tol / width)
            if low > high:
                break
            i += 1
        anchor = good
        kept[count] = anchor
        count += 1
    return kept[:count]
