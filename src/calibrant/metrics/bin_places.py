"""Which bin each cell of a table lies in, also where bins of equal mass divide ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import group_starts, mass_borders
from calibrant.metrics.weighted_cells import residuals

__all__ = ["Places"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Places:
    """Which cells lie in one bin, and how the others are shared between bins.

    ``first`` and ``last``: the bins in which each cell begins and ends.
    """

    def __init__(self, table: ScoreTable, bins: Bins, binning: str) -> None:
        if binning == "mass" and not isinstance(bins, str):
            self.first, self.last = _by_mass(table, bins)
            self.bins = bins
        else:
            self.first = self.last = _whole(table, group_starts(table, bins))
            self.bins = int(self.first[-1]) + 1
        self.whole = np.flatnonzero(self.first == self.last)
        self.shared = np.flatnonzero(self.first < self.last)
        self.shares = np.zeros((len(self.shared), self.bins))
        if len(self.shared):
            self._share(table)

    def _share(self, table: ScoreTable) -> None:
        mass = np.append(0.0, np.cumsum(table.weight))
        borders = mass_borders(mass[-1], table.is_whole, self.bins)
        low, high = mass[self.shared, None], mass[self.shared + 1, None]
        inside = np.minimum(borders[1:], high) - np.maximum(borders[:-1], low)
        self.shares = np.maximum(inside, 0.0) / (high - low)

    def sums(self, column: Array, power: int = 1) -> Array:
        """The sum of a column of cells over each bin; of a shared cell its share^power."""
        sums = np.bincount(self.first[self.whole], column[self.whole], minlength=self.bins)
        return np.asarray(sums + column[self.shared] @ self.shares**power, dtype=np.float64)

    def gaps(self, table: ScoreTable) -> Array:
        """Each bin's share |Σ w(y − p)|/n of the ECE."""
        return np.asarray(np.abs(self.sums(residuals(table))) / table.total)


def _whole(table: ScoreTable, starts: Index) -> Index:
    """The bin of each cell, where none is shared."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(table))))


def _by_mass(table: ScoreTable, bins: int) -> tuple[Index, Index]:
    mass = np.append(0.0, np.cumsum(table.weight))
    borders = mass_borders(mass[-1], table.is_whole, bins)
    first = np.searchsorted(borders, mass[:-1], side="right") - 1
    last = np.searchsorted(borders, mass[1:], side="left") - 1
    return np.minimum(first, last), last
