"""The map that changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.maps.base import Map
from calibrant.maps.logistic import rising_line
from calibrant.plan.map_input import MapInput
from calibrant.plan.nodes import Clip, Node


@dataclass(frozen=True, eq=False)
class Identity(Map):
    """p ↦ p, clipped to [0, 1].

    >>> Identity()([0.2, 1.5]).tolist()
    [0.2, 1.0]
    """

    kind: ClassVar[str] = "identity"

    def __call__(self, scores: ArrayLike) -> Array:
        return np.clip(np.asarray(scores, dtype=np.float64), 0.0, 1.0)

    takes_probabilities = looks_like_probabilities = True
    trend = size = 1
    span = (0.0, 1.0)

    def knots(self, low: float, high: float) -> Array:
        return np.array([0.0, 1.0])

    def lowered(self, axis: MapInput) -> Node:
        return Clip(axis.score.node, 0.0, 1.0)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        return rising_line(intercept, slope)
