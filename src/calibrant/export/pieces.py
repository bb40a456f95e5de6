"""The pieces of a piecewise map as columns of numbers: what a row needs to know of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.export.regions import LARGEST_DOUBLE
from calibrant.losses import sigmoid
from calibrant.maps import Piecewise

__all__ = ["pieces"]

Array = NDArray[np.float64]

#: how far rounding may move a line written as base + slope · s
LOST = 2.5e-13


def pieces(map_: Piecewise) -> dict[str, Array]:
    """What a row needs to know of its piece: its value; or a line as base + slope · s, where that
    is as good as a line from its start, with slope; or both ends, where a slope is no double."""
    start_, *rest = map_._pieces
    if not rest:
        return {"value": sigmoid(start_) if map_.output == "logit" else start_}
    width, low, high, _, _, scale = rest
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (high - low) / width
        base = low - start_ * slope
        lost = (np.abs(base) + np.abs(low)).max() * 2.0**-52
    if (scale == 1.0).all() and lost <= LOST:
        return {"base": base, "slope": slope}
    # outer pieces are flat: their start must not be so far that the way to it overflows
    outer = np.arange(len(low)) % (len(low) - 1) == 0
    start_ = np.where(outer, 0.0, start_)
    if (scale == 1.0).all() and np.isfinite(slope).all():
        return {"start": start_, "low": low, "slope": slope}
    width = np.where(outer, LARGEST_DOUBLE, width)
    return {"start": start_, "low": low, "high": high, "width": width, "scale": scale}
