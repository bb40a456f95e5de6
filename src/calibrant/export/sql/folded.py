"""What can be done with maps before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.maps import Map

__all__ = ["applied"]

Array = NDArray[np.float64]


def applied(maps: Sequence[Map], values: Array) -> Array:
    """What maps, one after another, make of values.

    >>> from calibrant.maps import Identity
    >>> applied((Identity(),), np.array([2.0])).tolist()
    [1.0]
    """
    for map_ in maps:
        values = map_(values)
    return values
