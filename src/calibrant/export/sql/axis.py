"""What a map reads: a column of scores, or what other maps have made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.plan.borders import LARGEST_DOUBLE, Regions, regions

__all__ = ["Axis", "start"]

Array = NDArray[np.float64]

#: how far from a border a value that an engine has computed is surely on its side
MARGIN = 1e-9


@dataclass(frozen=True)
class Axis:
    """What a map reads, where, and how NumPy computes it.

    Parameters
    ----------
    value : SQL, to be used as an operand
    chooser : SQL of the score, whose bits are the same in every engine: comparisons are with it
    function : NumPy's function from chooser to value, or None where they are the same
    trend : 1 or −1 where the function rises or falls, 0 where it does neither or is not known
    low, high : the smallest and the largest chooser that get here
    """

    value: str
    chooser: str
    function: Callable[[Array], Array] | None = None
    trend: int = 1
    low: float = -LARGEST_DOUBLE
    high: float = LARGEST_DOUBLE

    def then(self, value: str, step: Callable[[Array], Array], trend: int) -> Axis:
        """The axis after one more function, given as SQL and in NumPy."""
        before = self.function
        composed = step if before is None else lambda s: step(before(s))
        return replace(self, value=value, function=composed, trend=self.trend * trend)

    def between(self, low: float, high: float) -> Axis:
        """The axis where the chooser is in an interval."""
        return replace(self, low=max(self.low, low), high=min(self.high, high))

    def valued(self, low: float, high: float) -> Axis:
        """The axis where the value is in an interval, as far as that says where the chooser is."""
        return self.between(low, high) if self.function is None else self

    def regions(self, knots: Array, step: Callable[[Array], Array] | None = None) -> Regions:
        """Where the value (or a rising function of it) lies between which knots."""
        function = self.function if step is None else self.then("", step, 1).function
        found = regions(knots, function and self._here(function), falling=self.trend < 0)
        here = (found.low <= self.high) & (found.high >= self.low)
        low, high = np.maximum(found.low, self.low), np.minimum(found.high, self.high)
        return Regions(low[here], high[here], found.piece[here])

    def _here(self, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """A function that is constant where nothing gets: what it does there is not known."""
        return lambda s: function(np.clip(s, self.low, self.high))

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value here, as an engine may compute them."""
        ends = np.array([self.low, self.high])
        if self.function is None:
            return self.low, self.high
        if self.trend == 0:
            return -LARGEST_DOUBLE, LARGEST_DOUBLE
        with np.errstate(all="ignore"):
            low, high = sorted(self.function(ends).tolist())
        return low - MARGIN, high + MARGIN


def start(column: str) -> Axis:
    """The axis of a column itself.

    >>> start("s").range[1] > 1e308
    True
    """
    return Axis(column, column)
