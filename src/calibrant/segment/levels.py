"""Maps of segments, column after column: each is shrunk to what the coarser segment gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibrant.arrays import Array
from calibrant.data.segment_keys import SegmentKey
from calibrant.maps import Map
from calibrant.segment.fits import Way
from calibrant.segment.segment_cells import SegmentCells

#: the maps of the segments of one column, and how much each counts
Level = dict[SegmentKey, tuple[Map, float]]


class LevelRule(NamedTuple):
    """How the segments of a column are fitted: which of them, and with which κ."""

    wanted: set[SegmentKey]
    shrinkage: float


def shares(rows: Array, shrinkage: float) -> Array:
    """λ = n / (n + κ); 1 for κ = 0 wherever there are rows.

    >>> shares(np.array([0.0, 10.0, 30.0]), 10.0).tolist()
    [0.0, 0.5, 0.75]
    """
    if np.isinf(shrinkage):
        return np.zeros(len(rows))
    return np.asarray(rows / np.where(rows > 0.0, rows + shrinkage, 1.0))


def values_at(way: Way, common: Map, levels: Sequence[Level], stack: SegmentCells) -> Array:
    """What the map of all rows gives for each cell, and after it the maps of coarser segments."""
    p = common(stack.scores)
    for size, level in enumerate(levels, start=1):
        before = p
        taken = before if way.input == "default" else stack.scores
        p = before.copy()
        for i, key in enumerate(stack.keys):
            found = level.get(key[:size]) if isinstance(key, tuple) else None
            if found is not None:
                own, share = found
                cells = stack.cells(i)
                p[cells] = share * own(taken[cells]) + (1.0 - share) * before[cells]
    return p


def fit_level(way: Way, stack: SegmentCells, coarser: Array, rule: LevelRule) -> Level:
    """The maps of the segments of one column, by what the coarser ones give for each cell."""
    share = shares(stack.rows, rule.shrinkage)
    chosen = [i for i, key in enumerate(stack.keys) if key in rule.wanted and share[i] > 0.0]
    maps = way.each(stack, np.array(chosen, dtype=np.intp), coarser) if chosen else []
    return {
        stack.keys[i]: (own, float(share[i]))
        for i, own in zip(chosen, maps, strict=True)
        if own is not None
    }
