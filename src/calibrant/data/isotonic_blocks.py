"""Isotonic regression of a table: its blocks, and where to cut between them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import ScoreTable

#: how far sums of weights in a table may be from the true ones, as a share (see `ScoreTable`)
TABLE_ROUNDING = 1e-12
#: pseudo-count that each class gets in a bin, by the name of the smoothing
SMOOTHING = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}


def isotonic_blocks(table: ScoreTable, pseudo: float = 0.0) -> tuple[Index, Array]:
    """The first index of each block of equal isotonic values, and the values n₁/n, strictly rising.
    O(D).

    With ``pseudo``, that count is added to each class in every block. Blocks that no longer rise
    are joined.

    >>> table = ScoreTable.from_arrays([0.1, 0.3, 0.4, 0.6], [0, 1, 0, 1])
    >>> [part.tolist() for part in isotonic_blocks(table)]
    [[0, 1, 3], [0.0, 0.5, 1.0]]
    """
    negative, positive = table.negative, table.positive
    rate = positive / (negative + positive)
    # a stretch that nowhere rises is one block or part of one: pool it before PAV
    starts = np.append(0, np.flatnonzero(rate[1:] > rate[:-1]) + 1)
    del rate
    n0, n1 = np.add.reduceat(negative, starts), np.add.reduceat(positive, starts)
    pooled = isotonic_regression(n1 / (n0 + n1), weights=n0 + n1).blocks[:-1]
    starts, n0, n1 = starts[pooled], np.add.reduceat(n0, pooled), np.add.reduceat(n1, pooled)
    # the means that PAV compares are rounded, so that neighbours of one rate may be left apart
    rises = np.append(0, np.flatnonzero(_rises(n0, n1, np.diff(starts, append=len(negative)))) + 1)
    starts, n0, n1 = starts[rises], np.add.reduceat(n0, rises), np.add.reduceat(n1, rises)
    n = n0 + n1
    if pseudo:
        n1, n = n1 + pseudo, n + 2 * pseudo
        again = isotonic_regression(n1 / n, weights=n).blocks[:-1]
        starts, n1, n = starts[again], np.add.reduceat(n1, again), np.add.reduceat(n, again)
    values = np.maximum.accumulate(n1 / n)  # rounding may cross neighbours by one bit
    new = np.append(True, values[1:] > values[:-1])
    return starts[new], values[new]


def _rises(n0: Array, n1: Array, cells: Index) -> Flags:
    """Whether the rate of each block is above that of the one before, by more than rounding.

    Whole numbers of rows are summed exactly, and so are compared exactly. Other weights are sums in
    the table, right to `TABLE_ROUNDING`, and each of the additions that made a block of its cells
    rounds by half an ulp at most: a block's n₀ and n₁ are right to that share, and so the odds of
    two blocks differ by four such errors at most. Odds, not rates: near 1 a rate has no digits
    left, and a block of one class is never equal to one of both.
    """
    rate = n1 / (n0 + n1)
    rises = rate[1:] > rate[:-1]
    if all(bool((n == np.floor(n)).all()) and n.sum() < 2.0**53 for n in (n0, n1)):
        return rises
    share = TABLE_ROUNDING + 0.5 * np.finfo(np.float64).eps * np.maximum(cells[1:], cells[:-1])
    n0, n1 = n0 / (n0 + n1).max(), n1 / (n0 + n1).max()  # products stay in the range of floats
    before, after = n1[:-1] * n0[1:], n1[1:] * n0[:-1]
    return np.asarray(rises & ~((before > 0.0) & (after <= before * (1.0 + 4.0 * share))))


def isotonic_cuts(table: ScoreTable, last: Index, where: str = "mid") -> Array:
    """The cut after each block: halfway to the next score, at it, or just behind the last score of
    the block."""
    if where == "mid":
        return table.cuts(last)
    if where == "left":
        return table.scores[last + 1]
    return np.nextafter(table.scores[last], np.inf)
