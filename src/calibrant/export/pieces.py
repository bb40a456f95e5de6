"""The pieces of a piecewise map as columns of numbers: what a row needs to know of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.losses import sigmoid
from calibrant.maps import Piecewise

__all__ = ["pieces"]

Array = NDArray[np.float64]

#: how far rounding may move a line written as base + slope · s
LOST = 2.5e-13
#: a piece is so narrow that 1/width may be no double, and what its scores are then multiplied by
NARROW, WIDER = 2.0**-960, 2.0**600


def pieces(map_: Piecewise, relative: bool = False) -> dict[str, Array]:
    """What a row needs to know of its piece: its value; or a line as base + slope · s, where that
    is as good as a line from its start, with slope; or both ends, where a slope is no double.

    Where small values must keep their digits (``relative``), lines have both ends, too: from those
    a line is computed as the map does it, operation by operation.
    """
    start_, *rest = map_._pieces
    if not rest:
        return {"value": sigmoid(start_) if map_.output == "logit" else start_}
    width, low, high, _, _, scale = rest
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (high - low) / width
        base = low - start_ * slope
        lost = (np.abs(base) + np.abs(low)).max() * 2.0**-52
    whole = bool((scale == 1.0).all())
    if whole and lost <= LOST and not relative:
        return {"base": base, "slope": slope}
    # outer pieces are flat: the way from their start must not overflow
    outer = np.arange(len(low)) % (len(low) - 1) == 0
    start_ = np.where(outer, 0.0, start_)
    if whole and np.isfinite(slope).all() and not relative:
        return {"start": start_, "low": low, "slope": slope}
    width = np.where(outer, 1.0, width)
    # exact, and an engine that multiplies by 1/width in place of dividing must not find infinity
    wider = np.where(width < NARROW, WIDER, 1.0)
    both = {"start": start_ * wider, "low": low, "high": high, "width": width * wider}
    scale = scale * wider
    return both if relative and (scale == 1.0).all() else both | {"scale": scale}
