"""What rows say of P(y | score): a band that holds the whole curve, if the curve rises.

If P(y | score) rises, the number of positives among rows whose scores are all below s is no larger,
in distribution, than a binomial with the probability at s. So its binomial lower limit is a lower
limit at s, for each run of such rows; the same holds above. The level is shared by all runs.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.binned import group_starts
from calibrant.metrics.interval_formulas import clopper_pearson
from calibrant.metrics.weighted_cells import last_cells, squares

#: groups of rows; runs of them are compared
GROUPS = 60


class RisingBand(NamedTuple):
    """Limits of P(y | score) from each of some scores up to the next.

    Attributes
    ----------
    scores : array
        Where the pieces of the band begin; the first is −∞.
    p, low, high : array
        In each piece: the share of positives, moved into the band, and the ends of the band.
    """

    scores: Array
    p: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, table: ScoreTable, level: float) -> Self:
        """The band that holds the whole rising curve with probability ``1 − level`` at least.

        Where rows are weighted, their effective sizes count, and it does so approximately.
        """
        starts = group_starts(table, GROUPS, "mass")
        weight, square = (np.add.reduceat(each, starts) for each in (table.weight, squares(table)))
        n = weight * (weight / square)
        came = np.add.reduceat(table.positive, starts) * (n / weight)
        first, last = table.scores[starts], table.scores[last_cells(starts, len(table))]
        lower, upper = _limits(n, came, level)
        # a group limits the curve at scores from its last one up, and from its first one down
        scores = np.unique(np.concatenate(([-np.inf], last, np.nextafter(first, np.inf))))
        largest = np.nextafter(np.append(scores[1:], np.inf), -np.inf)  # of each piece
        ended = np.searchsorted(last, scores, side="right")
        begun = np.searchsorted(first, largest, side="left")
        low = np.append(0.0, np.maximum.accumulate(lower))[ended]
        high = np.append(np.minimum.accumulate(upper[::-1])[::-1], 1.0)[begun]
        rate = ((came + 0.5) / (n + 1.0))[np.clip(ended, 0, len(n) - 1)]
        return cls(scores, np.clip(rate, low, high), low, high)

    def at(self, scores: Array) -> tuple[Array, Array, Array]:
        """p, low and high at some scores."""
        place = np.searchsorted(self.scores, scores, side="right") - 1
        return self.p[place], self.low[place], self.high[place]


def _limits(n: Array, came: Array, level: float) -> tuple[Array, Array]:
    """The best lower limit of all runs that end with a group, and the best upper limit of all runs
    that begin with it, for each group."""
    size = np.append(0.0, np.cumsum(n))
    positives = np.append(0.0, np.cumsum(came))
    first, last = np.triu_indices(len(n))
    rows, found = size[last + 1] - size[first], positives[last + 1] - positives[first]
    below, above = clopper_pearson(rows, found / rows, level / 2.0 / len(first))
    lower, upper = np.zeros(len(n)), np.ones(len(n))
    np.maximum.at(lower, last, below)
    np.minimum.at(upper, first, above)
    return lower, upper
