"""One map after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map, maps_of_one_score

__all__ = ["Chain"]


@dataclass(frozen=True, eq=False)
class Chain(Map):
    """steps[-1](… steps[0](score)): a link or rescaling first, then the map proper.

    >>> from calibrant.maps import Logistic, Piecewise
    >>> margin = Logistic(0.0, (("x", 1.0),))
    >>> Chain((margin, Piecewise.step([0.5], [0.1, 0.9])))([-3.0, 3.0]).tolist()
    [0.1, 0.9]
    """

    kind: ClassVar[str] = "chain"

    steps: tuple[Map, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", maps_of_one_score(self.steps, "the steps of a chain"))
        if not self.steps:
            raise InputError("a chain must be a non-empty sequence of maps of one score.")
        super().__post_init__()

    def __call__(self, scores: ArrayLike) -> Array:
        value = np.asarray(scores, dtype=np.float64)
        for step in self.steps:
            value = step(value)
        return value
