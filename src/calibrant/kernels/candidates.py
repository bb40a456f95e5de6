"""Where a curve may bend: new candidates that are not next to one already there."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Flags, Index


def with_room(x: Array, new: Index, kept: Index, close: float, least: float) -> tuple[Flags, float]:
    """Which of the new places are further than ``close`` from those kept, and ``close`` itself.

    Where none is, ``close`` is divided by ten, and from ``least`` on it is 0. −1 is no place.

    >>> x = np.linspace(0, 1, 11)
    >>> far, close = with_room(x, np.array([1, 5]), np.array([0, 10]), 0.2, 0.01)
    >>> far.tolist(), close
    ([False, True], 0.2)
    """
    right = np.searchsorted(kept, new).clip(1)
    gap = np.minimum(x[new] - x[kept[right - 1]], x[kept[right]] - x[new])
    while True:
        far = (new >= 0) & (gap > close)
        if far.any() or close == 0.0:
            return far, close
        close = 0.1 * close if close > least else 0.0
