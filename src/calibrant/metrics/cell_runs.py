"""Runs of neighbouring cells of a table: bins, groups and blocks are such runs.

A run is given by the number of its first cell, and ends where the next one begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array, Index
from calibrant.data.score_table import ScoreTable


def starts_at(cells: NDArray[Any], size: int) -> Index:
    """The first cell of each run, from cells at which runs begin; the first run begins at 0.

    >>> starts_at(np.array([2, 2, 5]), 5).tolist()
    [0, 2]
    """
    starts = np.unique(np.append(0, cells))
    return starts[starts < size]


def last_cells(starts: Index, size: int) -> Index:
    """The last cell of each run.

    >>> last_cells(np.array([0, 2]), 5).tolist()
    [1, 4]
    """
    return np.append(starts[1:], size) - 1


def to_cells(values: NDArray[Any], starts: Index, size: int) -> NDArray[Any]:
    """For each cell the value of its run.

    >>> to_cells(np.array([0.1, 0.7]), np.array([0, 2]), 5).tolist()
    [0.1, 0.1, 0.7, 0.7, 0.7]
    """
    return np.repeat(values, np.diff(np.append(starts, size)))


def run_means(table: ScoreTable, starts: Index) -> Array:
    """The weighted mean score of each run, never outside its scores."""
    mean = np.add.reduceat(table.weight * table.scores, starts)
    mean = mean / np.add.reduceat(table.weight, starts)
    return np.clip(mean, table.scores[starts], table.scores[last_cells(starts, len(table))])
