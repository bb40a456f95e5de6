"""How many neighbours to take: each k of a grid is judged by leaving out one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.local.nearest_rows import PAIRS, TIE, FoundRows, reach

if TYPE_CHECKING:
    from calibrant.local.neighbours import Neighbours


#: the largest k that is tried
LARGEST = 512
#: the paper's k, which is always tried
USUAL = 10


def grid(total: float) -> list[int]:
    """The k to try, for a total weight n: 10, and powers of √2.

    They go up to 2√n (or 10, if that is more), but not beyond 512, and stay below n.

    >>> grid(200.0)
    [1, 2, 3, 4, 6, 8, 10, 11, 16, 23]
    """
    most = min(max(2.0 * np.sqrt(total), USUAL), LARGEST, np.floor(total * (1 + TIE)) - 1)
    powers = {int(np.floor(2 ** (half / 2) + 0.5)) for half in range(20)}
    return sorted(k for k in powers | {USUAL} if k <= most)


def best(losses: dict[int, float]) -> int:
    """The k of the smallest loss, on ties the largest of them; 1 if none was tried."""
    least = min(losses.values(), default=0.0)
    return max((k for k, loss in losses.items() if loss <= least * (1 + TIE)), default=1)


@dataclass(frozen=True)
class NeighbourShares:
    """The weight of distinct rows in shares, in the order of these rows.

    Each share has a class and an owner. The shares of one owner are left out together: a row that
    was scored several times owns shares of several distinct rows.
    """

    cell: Index
    code: Index
    weight: Array
    owner: Index

    @classmethod
    def of_counts(cls, counts: Array) -> NeighbourShares:
        """One share, with an owner of its own, for each class of each distinct row."""
        cell, code = np.nonzero(counts)
        return cls(cell, code, counts[cell, code], np.arange(len(cell)))

    @classmethod
    def of_rows(
        cls, cell: Index, code: Index, weight: Array, groups: NDArray[Any]
    ) -> NeighbourShares:
        """One share for each row; rows of one group have the same owner."""
        order = np.argsort(cell, kind="stable")
        owner = np.unique(groups, return_inverse=True)[1]
        return cls(cell[order], code[order], weight[order], owner[order])

    @property
    def owners(self) -> int:
        """How many owners there are."""
        return int(self.owner.max()) + 1

    @cached_property
    def most(self) -> int:
        """The largest number of shares that an owner has."""
        return int(np.bincount(self.owner).max())

    @cached_property
    def _total(self) -> Array:
        """The weight of all shares that the owner of each share has."""
        total = np.bincount(self.owner, weights=self.weight).astype(np.float64)
        return total[self.owner]

    @cached_property
    def left_out(self) -> Array:
        """How much of each share is left out at a time; for one owner this sums to `unit`."""
        return self.weight / np.maximum(self._total, 1.0)

    @cached_property
    def unit(self) -> Array:
        """How much the owner of each share leaves out at a time: 1, or all if it has less."""
        return np.minimum(self._total, 1.0)

    @cached_property
    def _by_owner(self) -> Index:
        return np.argsort(self.owner, kind="stable")

    def siblings(self, shares: Index) -> tuple[Index, Index]:
        """All shares of the owners of some shares: places in ``shares``, and the shares found."""
        ordered = self._by_owner
        place, run = _runs(self.owner[ordered], self.owner[shares])
        return place, ordered[run]


def _runs(ordered: Index, wanted: Index) -> tuple[Index, Index]:
    """Where wanted values are in an ordered array: places in ``wanted``, and in the array."""
    first = np.searchsorted(ordered, wanted, side="left")
    many = np.searchsorted(ordered, wanted, side="right") - first
    place = np.repeat(np.arange(len(wanted)), many)
    before = np.cumsum(many) - many
    return place, np.arange(len(place)) + (first - before)[place]


def leave_one_out(
    rule: Neighbours,
    ks: list[int],
    shares: NeighbourShares | None = None,
    *,
    progress: bool = False,
) -> dict[int, float]:
    """The Brier score (summed over classes) of each k, one search for all of them.

    One unit of a row's weight is left out at a time (all of it, if it is less), as if whole weights
    were repeated rows. If ``shares`` gives several rows to one owner, one unit of their weight
    together is left out. Ranges and attribute weights stay those of all rows.
    """
    if not ks:
        return {}
    shares = NeighbourShares.of_counts(rule.counts) if shares is None else shares
    total = np.zeros(len(ks))
    for found in rule.search.find(rule.cells, max(ks) + 1.0, progress=progress):
        place, held = _runs(shares.cell, found.rows)
        height = max(1, PAIRS // (found.near.shape[1] * shares.most))
        for start in range(0, len(held), height):
            some = slice(start, start + height)
            total += _losses(rule, found, place[some], shares, held[some], ks)
    return dict(zip(ks, (total / rule.counts.sum()).tolist(), strict=True))


def _losses(
    rule: Neighbours,
    found: FoundRows,
    rows: Index,
    shares: NeighbourShares,
    held: Index,
    ks: list[int],
) -> Array:
    """The sum of w·Brier over some shares, for each k; ``rows`` are their places in ``found``."""
    index, near = found.index[rows], found.near[rows]
    which, sibling = shares.siblings(held)
    own = index[which] == shares.cell[sibling][:, None]
    which, sibling, column = (a[own.any(axis=1)] for a in (which, sibling, own.argmax(axis=1)))
    out = shares.left_out[sibling]
    weight = rule.search.weight[index]
    np.subtract.at(weight, (which, column), out)
    mass = np.cumsum(np.maximum(weight, 0.0), axis=1)
    ends = np.column_stack([(near <= reach(near, mass, k)[:, None]).sum(axis=1) - 1 for k in ks])
    pull = np.broadcast_to(rule.pull(near), near.shape)
    sums = np.empty((*ends.shape, rule.n_classes))
    for j, counts in enumerate(rule.counts.T):
        weight = counts[index]
        mine = shares.code[sibling] == j
        np.subtract.at(weight, (which[mine], column[mine]), out[mine])
        cumulated = np.cumsum(pull * np.maximum(weight, 0.0), axis=1)
        sums[:, :, j] = np.take_along_axis(cumulated, ends, axis=1)
    # what each class starts with, for the weight that is left
    total = rule.counts.sum()
    sums += (rule.start * total / (total - shares.unit[held]))[:, None, None]
    sums /= sums.sum(axis=2, keepdims=True)
    sums[np.arange(len(held)), :, shares.code[held]] -= 1.0
    loss: Array = shares.weight[held] @ np.square(sums).sum(axis=2)
    return loss
