"""Groups of rows that overlap, as sums, and what redrawn labels make of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from calibrant.array_types import Array, Flags
from calibrant.metrics.crossed_groups import Crossings

#: rows that are looked at a time, and numbers that are held for all groups
BLOCK, HELD = 8192, 1 << 22
#: drawings at a time
MOST_DRAWN, FEWEST_DRAWN = 256, 16
#: equal values of the statistic may differ by this part from rounding
ROUNDING = 1e-6


class WeighedRows(NamedTuple):
    """Predictions, who is positive, and weights in units of rows (None: all one).

    ``counts``: a weight is a number of rows, each with a label of its own when redrawn.
    """

    p: Array
    positive: Flags
    weight: Array | None
    counts: bool


@dataclass(frozen=True)
class GroupSums:
    """Sums over the rows of each group, d = y − p.

    ``rows`` counts rows, ``weight`` is Σw, ``size`` the effective number of rows, ``expected`` Σwp,
    ``events`` Σwy, ``chance`` the variance of Σwy if predictions are right, ``spread`` the variance
    of Σwd as the rows show it.
    """

    rows: Array
    weight: Array
    size: Array
    expected: Array
    events: Array
    chance: Array
    spread: Array

    def take(self, which: Any) -> GroupSums:
        """Some of the groups."""
        return GroupSums(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def predicted(self) -> Array:
        return self.expected / self.weight

    @property
    def observed(self) -> Array:
        return self.events / self.weight

    @property
    def trials(self) -> Array:
        """How many equal rows of the mean prediction would have the same variance by chance."""
        some, share = self.chance > 0.0, self.predicted
        variance = np.where(some, self.chance, 1.0)
        return np.where(some, self.weight**2 * (share * (1.0 - share)) / variance, self.size)

    @property
    def safe_trials(self) -> Array:
        """`trials` by the variance that the rows show, where that makes them fewer."""
        shown = np.where(
            self.spread > 0.0,
            self.weight**2
            * (self.observed * (1.0 - self.observed))
            / np.where(self.spread > 0.0, self.spread, 1.0),
            np.inf,
        )
        inner = (self.observed > 0.0) & (self.observed < 1.0)
        return np.minimum(self.trials, np.where(inner, shown, np.inf))


def sum_groups(rows: WeighedRows, crossings: Crossings) -> GroupSums:
    """The sums of all cells; O(n · crossings), a block of rows at a time."""
    p, y = rows.p, rows.positive.astype(np.float64)
    w = np.ones(len(p)) if rows.weight is None else rows.weight
    square = w if rows.counts else w * w
    gap = y - p
    columns = (np.ones(len(p)), w, square, w * p, w * y, square * (p * (1.0 - p)))
    values = np.column_stack((*columns, square * gap, square * gap**2))
    sums = np.zeros((len(crossings.place), values.shape[1]))
    for start in range(0, len(p), BLOCK):
        part = slice(start, start + BLOCK)
        crossings.sums(values[part], part, sums)
    count, weight, squares, expected, events, chance, first, second = sums.T.copy()
    mean = (events - expected) / np.where(weight > 0.0, weight, 1.0)
    spread = np.maximum(second - 2.0 * mean * first + mean**2 * squares, 0.0)
    size = weight**2 / np.where(squares > 0.0, squares, 1.0)
    return GroupSums(count, weight, size, expected, events, np.maximum(chance, 0.0), spread)


def signed_root(share: Array, expected: Array, trials: Array) -> Array:
    """The signed root of the deviance of a binomial share: near normal also where it is skewed.

    >>> signed_root(np.array([0.0, 0.5]), np.array([0.1, 0.5]), np.array([10.0, 10.0])).round(3)
    array([-1.452,  0.   ])
    """
    divergence = rel_entr(share, expected) + rel_entr(1.0 - share, 1.0 - expected)
    size = np.sqrt(2.0 * trials * np.maximum(divergence, 0.0))
    return np.asarray(np.copysign(size, share - expected))


class RedrawnGroups(NamedTuple):
    """What redrawing shows.

    For each drawing the largest ``statistic`` of a group and the ``largest`` |difference|; for each
    group its ``mean`` |difference|.
    """

    statistic: Array
    largest: Array
    mean: Array


def redraw_groups(
    rows: WeighedRows,
    crossings: Crossings,
    sums: GroupSums,
    replicates: int,
    random: np.random.Generator,
) -> RedrawnGroups:
    """Redraw the labels of all rows from their predictions, and look at all groups each time.

    Every drawing is one set of labels, so the groups depend on each other as in the data.
    O(n · crossings · replicates), in memory O(groups) for some drawings at a time.
    """
    groups = len(sums.weight)
    at_a_time = int(np.clip(HELD // groups, FEWEST_DRAWN, MOST_DRAWN))
    statistic, largest, mean = np.empty(replicates), np.empty(replicates), np.zeros(groups)
    expected, trials = sums.predicted[:, None], sums.trials[:, None]
    fixed = sums.chance <= 0.0
    for begin in range(0, replicates, at_a_time):
        size = min(at_a_time, replicates - begin)
        share = _drawn_events(rows, crossings, groups, size, random) / sums.weight[:, None]
        share = np.clip(share, 0.0, 1.0)
        share[fixed] = expected[fixed]  # nothing is left to chance
        statistic[begin : begin + size] = np.abs(signed_root(share, expected, trials)).max(axis=0)
        gap = np.abs(share - expected)
        largest[begin : begin + size] = gap.max(axis=0)
        mean += gap.sum(axis=1)
    return RedrawnGroups(statistic, largest, mean / replicates)


def _drawn_events(
    rows: WeighedRows, crossings: Crossings, groups: int, size: int, random: np.random.Generator
) -> Array:
    """Σwy* of each group, for as many sets of redrawn labels."""
    events = np.zeros((groups, size))
    for start in range(0, len(rows.p), BLOCK):
        part = slice(start, start + BLOCK)
        drawn = _drawn(rows, part, size, random)
        some = np.zeros((groups, size), dtype=drawn.dtype)
        crossings.sums(drawn, part, some)
        events += some
    return events


def _drawn(rows: WeighedRows, part: slice, size: int, random: np.random.Generator) -> NDArray[Any]:
    """w·y* of some rows, in the smallest type that holds the sums of a block."""
    p = rows.p[part, None]
    weight = None if rows.weight is None else rows.weight[part, None]
    shape = (len(p), size)
    if rows.counts and weight is not None:
        return random.binomial(weight.astype(np.int64), p, shape).astype(np.float64)
    hit = random.random(shape) < p
    if weight is None:
        return hit.astype(np.uint16)
    return np.where(hit, weight, 0.0).astype(np.float32)
