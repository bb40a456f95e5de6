"""A map with a band around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map, maps_of_one_score
from calibrant.maps.checks import finite_float
from calibrant.plan.map_input import MapInput
from calibrant.plan.nodes import Node

__all__ = ["Interval"]


@dataclass(frozen=True, eq=False)
class Interval(Map):
    """A point map between a lower and an upper one (Venn–Abers, credible bands).

    Parameters
    ----------
    lower, upper, point : maps of one score
    level : float or None
        The probability that the band is meant to hold, if it has one.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> c = Piecewise.constant
    >>> band = Interval(c(0.1), c(0.4), c(0.2), 0.9)
    >>> band([7.0]).tolist(), [b.tolist() for b in band.bounds([7.0])]
    ([0.2], [[0.1], [0.4]])
    """

    kind: ClassVar[str] = "interval"

    lower: Map
    upper: Map
    point: Map
    level: float | None = None

    def __post_init__(self) -> None:
        maps_of_one_score((self.lower, self.upper, self.point), "lower, upper and point")
        if self.level is not None:
            level = finite_float(self.level, "level")
            if not 0 < level < 1:
                raise InputError(f"level must lie between 0 and 1, but {level:g} came.")
            object.__setattr__(self, "level", level)
        super().__post_init__()

    def __call__(self, scores: ArrayLike) -> Array:
        return self.point(scores)

    @property
    def band(self) -> tuple[Map, Map, float | None]:
        return self.lower, self.upper, self.level

    @property
    def takes_probabilities(self) -> bool:
        return self.point.takes_probabilities

    @property
    def looks_like_probabilities(self) -> bool:
        return self.point.looks_like_probabilities

    @property
    def trend(self) -> int:
        return self.point.trend

    @property
    def size(self) -> int:
        return self.point.size

    @property
    def span(self) -> tuple[float, float]:
        return self.point.span

    def knots(self, low: float, high: float) -> Array:
        return np.concatenate([child.knots(low, high) for child in self.children])

    @property
    def simple(self) -> Map:
        return self.point.simple

    @property
    def stages(self) -> tuple[Map, ...]:
        return self.point.stages

    def lowered(self, axis: MapInput) -> Node:
        return self.point.lowered(axis)

    def of_logit(self, z: Array) -> Array:
        return self.point.of_logit(z)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        low, high, at = (child.corrected(intercept, slope) for child in self.children)
        return Interval(low, high, at, self.level)

    def shifted(self, factor: Array) -> Map:
        low, high, at = (child.shifted(factor) for child in self.children)
        return Interval(low, high, at, self.level)

    def bounds(self, scores: ArrayLike) -> tuple[Array, Array]:
        """The lower and the upper probability of each score; the point is never outside."""
        s = np.asarray(scores, dtype=np.float64)
        p = self.point(s)
        return np.minimum(self.lower(s), p), np.maximum(self.upper(s), p)
