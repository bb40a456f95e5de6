"""Which bin each cell of a table lies in, also where bins of equal mass divide ties."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import Array
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import group_starts, mass_borders
from calibrant.metrics.cell_runs import to_cells
from calibrant.metrics.weighted_cells import residuals


class Places:
    """Which cells lie in one bin, and how the others are shared between bins.

    ``first`` is the bin in which each cell begins. ``whole`` are the numbers of the cells that end
    in it, too, ``shared`` those of the others, and ``shares`` how much of these lies in each bin.
    """

    def __init__(self, table: ScoreTable, bins: Bins, binning: str) -> None:
        if binning == "mass" and not isinstance(bins, str):
            self.bins = bins
            self._by_mass(table)
            return
        starts = group_starts(table, bins)
        self.bins = len(starts)
        self.first = to_cells(np.arange(self.bins), starts, len(table))
        self.whole, self.shared = np.arange(len(table)), np.arange(0)
        self.shares = np.zeros((0, self.bins))

    def _by_mass(self, table: ScoreTable) -> None:
        """Bins of equal mass: a cell that a border divides is shared in proportion."""
        mass = np.append(0.0, np.cumsum(table.weight))
        borders = mass_borders(mass[-1], table.is_whole, self.bins)
        last = np.searchsorted(borders, mass[1:], side="left") - 1
        self.first = np.minimum(np.searchsorted(borders, mass[:-1], side="right") - 1, last)
        self.whole, self.shared = (
            np.flatnonzero(at) for at in (self.first == last, self.first < last)
        )
        low, high = mass[self.shared, None], mass[self.shared + 1, None]
        inside = np.minimum(borders[1:], high) - np.maximum(borders[:-1], low)
        self.shares = np.maximum(inside, 0.0) / (high - low)

    def sums(self, column: Array, power: int = 1) -> Array:
        """The sum of a column of cells over each bin; a shared cell counts with its share^power."""
        sums = np.bincount(self.first[self.whole], column[self.whole], minlength=self.bins)
        return np.asarray(sums + column[self.shared] @ self.shares**power, dtype=np.float64)

    def gaps(self, table: ScoreTable) -> Array:
        """Each bin's share |Σ w(y − p)|/n of the ECE."""
        return np.asarray(np.abs(self.sums(residuals(table))) / table.total)
