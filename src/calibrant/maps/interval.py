"""A map with a band around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.maps.base import Map
from calibrant.maps.checks import number, one_map


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

    lower: Map = field(metadata=one_map("lower, upper and point"))
    upper: Map = field(metadata=one_map("lower, upper and point"))
    point: Map = field(metadata=one_map("lower, upper and point"))
    level: float | None = field(default=None, metadata=number("level"))

    def _check(self) -> None:
        if self.level is not None and not 0 < self.level < 1:
            raise InputError(f"level must lie between 0 and 1, but {self.level:g} came.")

    def __call__(self, scores: ArrayLike) -> Array:
        return self.point(scores)

    @property
    def band(self) -> tuple[Map, Map, float | None]:
        return self.lower, self.upper, self.level

    @property
    def main(self) -> Map:
        return self.point

    def knots(self, low: float, high: float) -> Array:
        return np.concatenate([child.knots(low, high) for child in self.children])

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
