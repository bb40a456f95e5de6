"""Fewer knots for a polygonal line, within a tolerance: in plain Python, without numba."""

from __future__ import annotations

from typing import Any

import numpy as np


def few_knots(x: Any, v: Any, tol: float) -> list[int]:
    """Indices of knots whose polygon stays within ``tol`` of the one through all points (x, v).

    From the last knot kept, the slopes that pass within tol of every point since form a cone. The
    furthest point whose own slope lies in the cone is the next knot. O(n) for smooth lines. Here x
    and v are best lists; `calibrant.kernels.simplify` takes arrays.

    >>> few_knots([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 0.0], 0.01)
    [0, 2, 3]
    """
    kept, anchor = [0], 0
    while anchor < len(x) - 1:
        low, high, good = -np.inf, np.inf, anchor + 1
        for i in range(anchor + 1, len(x)):
            width = x[i] - x[anchor]
            if width <= 0.0:
                break
            slope = (v[i] - v[anchor]) / width
            if low <= slope <= high:
                good = i
            low, high = max(low, slope - tol / width), min(high, slope + tol / width)
            if low > high:
                break
        anchor = good
        kept.append(anchor)
    return kept
