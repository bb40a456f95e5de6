"""Labels drawn at random from given probabilities, for the bands of curves.

A table of many scores is merged to about two thousand cells first, so that a thousand draws for a
million rows take a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.weighted_cells import run_means, squares, starts_at

Band = tuple[Array, Array]

#: cells of equal weight, and as many of equal width, that a larger table is merged to
HALF = 1000
#: no place has a scale below this part of the largest, or a rare curve there would widen all
LEAST_SCALE = 0.02
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
    square = np.add.reduceat(squares(table), starts)
    return MergedCells(run_means(table, starts), weight, square, starts)


def spread_places(x: Array, weight: Array, parts: int, also: Index) -> Index:
    """Places of the sorted x: the first, where parts of equal weight or width end, and others."""
    inner = np.arange(1, parts) / parts
    mass = np.cumsum(weight)
    by_mass = np.searchsorted(mass, mass[-1] * inner)
    by_width = np.searchsorted(x, x[0] * (1 - inner) + x[-1] * inner)
    return starts_at(np.concatenate((by_mass, by_width, also)), len(x))


def band_of_drawn(values: Array, level: float, everywhere: bool) -> Band:
    """The band of curves that were drawn, shape (draws, places): where ``level`` of them lie.

    Place by place it has the percentiles for its ends. Everywhere at once: above and below the
    median, each place has a scale of its own (the root mean square of what is drawn on that side,
    of the angles arcsin √value, so that places near 0 and 1 are like others), and the band is as
    many scales wide as hold ``level`` of the drawn curves as a whole. Half of the draws give the
    scales, the others the size.

    >>> drawn = np.random.default_rng(0).random((1000, 20))
    >>> low, high = band_of_drawn(drawn, 0.9, True)
    >>> round(float(((drawn >= low) & (drawn <= high)).all(axis=1)[500:].mean()), 2)
    0.9
    """
    if not everywhere:
        tail = (1.0 - level) / 2.0
        lower, upper = np.quantile(values, (tail, 1.0 - tail), axis=0)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    angle = np.arcsin(np.sqrt(np.clip(values, 0.0, 1.0)))
    # scales from one half and sizes from the other: to its own scales a curve is never far off
    first, second = np.array_split(angle, 2) if len(angle) > 1 else (angle, angle)
    middle = np.median(first, axis=0)
    ends, reach = [], np.zeros(len(second))
    for side in (-1.0, 1.0):
        scale = np.sqrt((np.maximum(side * (first - middle), 0.0) ** 2).mean(axis=0))
        scale = np.maximum(scale, LEAST_SCALE * scale.max())
        some = np.where(scale > 0.0, scale, 1.0)
        reach = np.maximum(reach, (side * (second - middle) / some).max(axis=1))
        ends.append(side * scale)
    # the data are one more curve of this kind, so that one more is held than the share says
    held = min(math.ceil(level * (len(reach) + 1)), len(reach))
    size = float(np.partition(reach, held - 1)[held - 1]) * (1.0 + 1e-12)
    lower, upper = (np.clip(middle + size * end, 0.0, np.pi / 2.0) for end in ends)
    return np.sin(lower) ** 2, np.sin(upper) ** 2
