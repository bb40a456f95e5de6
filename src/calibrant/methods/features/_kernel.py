"""Sums of small decision trees over many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.solvers._jit import jit, part

Index = NDArray[np.int32]

#: rows that are taken through all trees together, so that they stay in the processor's memory
BLOCK = 512


@part
def _fill(out: Array, size: int, value: float) -> None:
    for i in range(size):
        out[i] = value


@part
def _split_numbers(x: Array, size: int, most: float, left: Array, right: Array, out: Array) -> None:
    for i in range(size):
        a, b = left[i], right[i]
        out[i] = a if x[i] <= most else b  # a missing one is not: it goes right


@part
def _split_missing(x: Array, size: int, most: float, left: Array, right: Array, out: Array) -> None:
    for i in range(size):
        a, b = left[i], right[i]
        out[i] = b if x[i] > most else a


@part
def _split_categories(
    x: Array, size: int, inside: NDArray[Any], left: Array, right: Array, out: Array
) -> None:
    for i in range(size):
        known = x[i] < inside.shape[0]  # neither missing, nor beyond all sets
        code = int(x[i]) if known else 0
        out[i] = left[i] if known and inside[code] else right[i]


@jit
def add_leaves(
    columns: Array,
    starts: Index,
    left: Index,
    right: Index,
    column: Index,
    threshold: Array,
    missing_left: NDArray[Any],
    subset: Index,
    members: NDArray[Any],
    leaves: Array,
    buffer: Array,
    total: Array,
) -> None:
    """Add to ``total`` the value of the leaf that each row reaches, tree after tree.

    The splits of tree t are those from ``starts[t]`` to ``starts[t + 1]``, parents before their
    children; ``left`` and ``right`` are places among them, or −1 − i for the leaf i. From the last
    split to the first, every row gets the value of the side that it goes to: loops without a guess,
    over rows that lie side by side. ``buffer`` has room for two rows of `BLOCK` numbers more than
    the largest tree has splits.
    """
    n, spare = columns.shape[1], buffer.shape[0] - 2
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for tree in range(starts.shape[0] - 1):
            begin = starts[tree]
            for k in range(starts[tree + 1] - 1, begin - 1, -1):
                a, b = left[k], right[k]
                if a < 0:
                    _fill(buffer[spare], size, leaves[-1 - a])
                    a = spare
                if b < 0:
                    _fill(buffer[spare + 1], size, leaves[-1 - b])
                    b = spare + 1
                x, out = columns[column[k], first : first + size], buffer[k - begin]
                if subset[k] >= 0:
                    _split_categories(x, size, members[subset[k]], buffer[a], buffer[b], out)
                elif missing_left[k]:
                    _split_missing(x, size, threshold[k], buffer[a], buffer[b], out)
                else:
                    _split_numbers(x, size, threshold[k], buffer[a], buffer[b], out)
            for i in range(size):
                total[first + i] += buffer[0, i]
