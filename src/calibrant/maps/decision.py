"""Where a map reaches a threshold, as a map that is 0 or 1: the same side at every double."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.arrays import Array
from calibrant.maps.base import Map
from calibrant.maps.piecewise import Piecewise
from calibrant.plan.borders import on_stretches
from calibrant.plan.map_input import PlanTarget, stretches

DECISION = PlanTarget("a decision", "Compare what calibrate gives with the threshold.")


def decided_by(
    map_: Map, threshold: float, function: Callable[[Array], Array] | None = None
) -> Piecewise | None:
    """Steps of 0 and 1 on the raw score: 1 where the map gives at least ``threshold``.

    None where it is not known on which intervals the map rises and falls. ``function`` is what
    computes the probabilities, if that is not the map itself.

    >>> decided_by(Piecewise.linear([0.0, 0.5, 1.0], [0.0, 0.8, 0.0]), 0.4)([0.2, 0.25, 0.75, 0.8])
    array([0., 1., 1., 0.])
    """
    found = stretches(map_.plan(DECISION))
    if found is None:
        return None
    low, _, piece = on_stretches(np.array([threshold]), function or map_, found)
    changes = np.flatnonzero(np.diff(piece)) + 1
    values = piece[np.append(0, changes)].astype(np.float64)
    return Piecewise.step(low[changes], values)
