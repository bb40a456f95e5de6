"""The pieces of a piecewise map as columns of numbers: what a row needs to know of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.losses import sigmoid
from calibrant.maps import Piecewise

__all__ = ["pieces"]

Array = NDArray[np.float64]


def pieces(map_: Piecewise, relative: bool = False) -> dict[str, Array]:
    """What a row needs to know of its piece: its value; or a line as base + slope · s, where that
    is as good as a line from its start, with slope; or both ends, where a slope is no double.

    Where small values must keep their digits (``relative``), lines have both ends, too: from those
    a line is computed as the map does it, operation by operation.
    """
    if map_.is_step:
        return {"value": sigmoid(map_.pieces.low) if map_.output == "logit" else map_.pieces.low}
    return map_.pieces.columns(relative)
