"""Labels drawn at random from given probabilities, for the bands of curves.

A table of many scores is merged to about two thousand cells first, so that a thousand draws for a
million rows take a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable

__all__ = ["MergedCells", "cells_of", "spread_places"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: cells of equal weight, and as many of equal width, that a larger table is merged to
HALF = 1000
#: NumPy's samplers refuse larger numbers; the fraction of so many rows hardly varies anyway
LARGEST = 1e15


@dataclass(frozen=True)
class MergedCells:
    """Neighbouring scores taken together, without their labels.

    ``p`` is the mean score of each cell, ``weight`` and ``square`` its Σw and Σw², ``starts`` its
    first score's place in the table.
    """

    p: Array
    weight: Array
    square: Array
    starts: Index

    @property
    def effective(self) -> Array:
        """(Σw)²/Σw² (Kish)."""
        return self.weight * (self.weight / self.square)

    def draw(self, probability: Array, n: int, random: np.random.Generator) -> Array:
        """n draws of each cell's fraction of positives, shape (n, cells).

        A cell of effective size m draws Binomial(m)/m; an m that is no whole number is rounded
        up or down at random, in the right proportion.
        """
        size = np.minimum(self.effective, LARGEST)
        whole = np.floor(size * (1 + 1e-12))
        part = np.clip(size - whole, 0.0, 1.0)
        trials = np.broadcast_to(whole, (n, len(size)))
        if part.any():
            trials = whole + (random.random((n, len(size))) < part)
        hits = random.binomial(trials.astype(np.int64), np.clip(probability, 0.0, 1.0))
        return np.asarray(hits / trials, dtype=np.float64)


def cells_of(table: ScoreTable, keep: Index | None = None, half: int = HALF) -> MergedCells:
    """At most 2·half cells, and those that begin in ``keep``; of few scores, a cell for each.

    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.9], [1, 0, 0], [0, 2, 1])
    >>> cells_of(table).p.tolist(), cells_of(table, half=1).p.round(3).tolist()
    ([0.1, 0.2, 0.9], [0.35])
    """
    starts = np.arange(len(table))
    if len(table) > 2 * half:
        kept = starts[:0] if keep is None else keep
        starts = spread_places(table.scores, table.weight, half, kept)
    weight = np.add.reduceat(table.weight, starts)
    square = np.add.reduceat(table.negative_sq + table.positive_sq, starts)
    last = np.append(starts[1:], len(table)) - 1
    mean = np.add.reduceat(table.weight * table.scores, starts) / weight
    return MergedCells(
        np.clip(mean, table.scores[starts], table.scores[last]), weight, square, starts
    )


def spread_places(x: Array, weight: Array, parts: int, also: Index) -> Index:
    """Places of the sorted x: the first, where parts of equal weight or width end, and others."""
    inner = np.arange(1, parts) / parts
    mass = np.cumsum(weight)
    by_mass = np.searchsorted(mass, mass[-1] * inner)
    by_width = np.searchsorted(x, x[0] * (1 - inner) + x[-1] * inner)
    places = np.unique(np.concatenate(([0], by_mass, by_width, also)))
    return places[places < len(x)]
