"""How many neighbours: every k of a grid judged by leaving out one row at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.local.search import TIE, Found, reach

if TYPE_CHECKING:
    from calibrant.local.neighbours import Neighbours

__all__ = ["best", "grid", "leave_one_out"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: the largest k that is tried
LARGEST = 512
#: the paper's k, which is always tried
USUAL = 10


def grid(total: float) -> list[int]:
    """Powers of √2, and 10, up to 2√n and 512; fewer than n, the total weight.

    >>> grid(200.0)
    [1, 2, 3, 4, 6, 8, 10, 11, 16, 23]
    """
    most = min(max(2.0 * np.sqrt(total), USUAL), LARGEST, np.floor(total * (1 + TIE)) - 1)
    powers = {int(np.floor(2 ** (half / 2) + 0.5)) for half in range(20)}
    return sorted(k for k in powers | {USUAL} if k <= most)


def best(losses: dict[int, float]) -> int:
    """The k of the smallest loss, the largest of those that tie; 1 where there was no choice."""
    least = min(losses.values(), default=0.0)
    return max((k for k, loss in losses.items() if loss <= least * (1 + TIE)), default=1)


def leave_one_out(rule: Neighbours, ks: list[int], *, progress: bool = False) -> dict[int, float]:
    """The Brier score (summed over classes) of each k, one search for all of them.

    Of a row of weight w, one unit (all of it, if less) is left out at a time: whole weights are
    repeated rows. Ranges and attribute weights stay those of all rows.
    """
    if not ks:
        return {}
    total = np.zeros(len(ks))
    for found in rule.search.find(rule.cells, max(ks) + 1.0, progress=progress):
        total += _losses(rule, found, ks)
    return dict(zip(ks, (total / rule.counts.sum()).tolist(), strict=True))


def _losses(rule: Neighbours, found: Found, ks: list[int]) -> Array:
    """The sum of w·Brier over a block of rows, for each k."""
    counts = rule.counts[found.rows]
    own = found.index == found.rows[:, None]
    place = np.where(own.any(axis=1), own.argmax(axis=1), own.shape[1])  # its own copies' place
    pull = np.broadcast_to(rule.pull(found.near), found.near.shape)
    held = {int(j): np.flatnonzero(counts[:, j]) for j in np.flatnonzero(counts.any(axis=0))}
    unit = np.minimum(counts, 1.0)
    ends = {j: _ends(rule, found, ks, place, unit[:, j], rows) for j, rows in held.items()}
    sums = {j: np.empty((*ends[j].shape, rule.n_classes)) for j in held}
    for i, column in enumerate(rule.counts.T):
        cumulated = np.cumsum(pull * column[found.index], axis=1)
        for j, rows in held.items():
            sums[j][:, :, i] = cumulated[rows[:, None], ends[j]]
    loss = np.zeros(len(ks))
    for j, rows in held.items():
        inside = ends[j] >= place[rows, None]
        at = np.minimum(place[rows], own.shape[1] - 1)
        sums[j][:, :, j] -= inside * (unit[rows, j] * pull[rows, at])[:, None]
        # the same n − 1 rows as without the row left out
        left = rule.counts.sum() - unit[rows, j]
        shares = np.maximum(sums[j], 0.0) + (rule.start * rule.counts.sum() / left)[:, None, None]
        shares /= shares.sum(axis=2, keepdims=True)
        shares[:, :, j] -= 1.0
        loss += counts[rows, j] @ np.square(shares).sum(axis=2)
    return loss


def _ends(
    rule: Neighbours, found: Found, ks: list[int], place: Index, unit: Array, rows: Index
) -> Index:
    """The last candidate that counts, for each row and k, with one unit of the row left out."""
    near = found.near[rows]
    mass = np.cumsum(rule.search.weight[found.index[rows]], axis=1)
    mass -= unit[rows, None] * (np.arange(near.shape[1]) >= place[rows, None])
    ends = [(near <= reach(near, mass, k)[:, None]).sum(axis=1) - 1 for k in ks]
    return np.column_stack(ends)
