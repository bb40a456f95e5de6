"""Means over rows that were held out, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from calibrant.array_types import Array, Index


@dataclass(frozen=True)
class Sample:
    """The weights of what every candidate was judged on: cells of equal rows, or single rows.

    Parameters
    ----------
    weight, square : arrays of shape (m,)
        Σw and Σw² of each cell. All rows of a cell have the same loss.
    cluster : array of shape (m,), optional
        Which cells belong together: groups, or the repeated judgements of one row.

    Examples
    --------
    >>> s = Sample(np.ones(4), np.ones(4))
    >>> s.mean(np.array([1.0, 2.0, 3.0, 4.0])), round(s.error(np.array([1.0, 2.0, 3.0, 4.0])), 4)
    (2.5, 0.6455)
    """

    weight: Array
    square: Array
    cluster: Index | None = None

    @cached_property
    def total(self) -> float:
        """Σw."""
        return float(self.weight.sum())

    @cached_property
    def size(self) -> float:
        """The number of independent units of equal weight that tell as much: (Σw)²/Σw² (Kish)."""
        squares = self.square.sum()
        if self.cluster is not None:
            squares = np.square(np.bincount(self.cluster, self.weight)).sum()
        return self.total**2 / float(squares)

    def mean(self, values: Array) -> float:
        """Σwv / Σw; infinite where any value is."""
        return float(self.weight @ values) / self.total

    def error(self, values: Array) -> float:
        """The standard error of the mean; infinite if the mean is, or if there is only one unit."""
        mean = self.mean(values)
        if not np.isfinite(mean) or self.size <= 1.0 + 1e-9:
            return float("inf")
        apart = values - mean
        if self.cluster is None:
            squares = self.square @ np.square(apart)
        else:
            squares = np.square(np.bincount(self.cluster, self.weight * apart)).sum()
        return float(np.sqrt(squares / (1.0 - 1.0 / self.size))) / self.total

    def interval(self, mean: float, error: float, level: float) -> tuple[float, float]:
        """mean ± t · error, for the level and the number of units."""
        if not np.isfinite(mean):
            return mean, mean
        if not np.isfinite(error):
            return float("-inf"), float("inf")
        t = float(stdtrit(max(self.size - 1.0, 1.0), 0.5 + 0.5 * level))
        return mean - t * error, mean + t * error
