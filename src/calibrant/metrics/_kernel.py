"""Kernels of measures: sums over pairs of rows, and over groups of rows that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.solvers._jit import jit

#: columns of codes at a time: few enough that those of all rows stay near the processor
COLUMNS = 128


def pair_sums(values: Array, decay: Array) -> Array:
    """Σ vᵢvⱼ·exp(−(xⱼ − xᵢ)/γ) over i < j, for each row v of values at places x in order.

    ``decay`` is exp(−(xᵢ − xᵢ₋₁)/γ), its first entry any number. Cᵢ = decayᵢ·(Cᵢ₋₁ + vᵢ₋₁) is the
    sum of vⱼ·exp(−(xᵢ − xⱼ)/γ) over j < i. O(n) for each row.

    >>> pair_sums(np.array([[1.0, 2.0, 4.0]]), np.array([1.0, 0.5, 0.25])).tolist()
    [3.5]
    """
    sums = np.empty(len(values))
    _pair_sums(values, decay, sums)
    return sums


@jit
def _pair_sums(values: Array, decay: Array, sums: Array) -> None:
    for r in range(values.shape[0]):
        carried, total = 0.0, 0.0
        for i in range(values.shape[1]):
            carried *= decay[i]
            total += values[r, i] * carried
            carried += values[r, i]
        sums[r] = total


def same_class_sums(near: Array, codes: NDArray[np.int32]) -> Array:
    """Σ near[i, j] over the pairs i ≠ j whose codes are equal, for each column of codes.

    ``near`` is symmetric. O(n²) for each column.

    >>> near = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 4.0], [2.0, 4.0, 0.0]])
    >>> same_class_sums(near, np.array([[0, 1], [1, 1], [0, 1]], dtype=np.int32)).tolist()
    [4.0, 14.0]
    """
    sums = np.zeros(codes.shape[1])
    for first in range(0, len(sums), COLUMNS):
        columns = slice(first, first + COLUMNS)
        _same_class_sums(near, np.ascontiguousarray(codes[:, columns]), sums[columns])
    return 2.0 * sums


@jit
def _same_class_sums(near: Array, codes: NDArray[np.int32], sums: Array) -> None:
    for i in range(codes.shape[0]):
        for j in range(i):
            value = near[i, j]
            for column in range(codes.shape[1]):
                sums[column] += value if codes[i, column] == codes[j, column] else 0.0


# --- Sums over groups of rows that overlap: every crossing of two coded columns in one walk -------


@jit
def add_to_groups(
    codes: Any, first: Any, second: Any, width: Any, offset: Any, place: Any, values: Any, sums: Any
) -> None:
    """Add the values of each row to the sums of all groups that it is in.

    For each crossing j the row i is in its cell codes[first[j], i]·width[j] + codes[second[j], i];
    ``place`` has the group of each cell from offset[j] on, −1 for none. ``values`` has a line for
    each row, ``sums`` one for each group. O(crossings · rows · columns of values).
    """
    rows, columns = values.shape
    for j in range(len(first)):
        a, b, w, start = first[j], second[j], width[j], offset[j]
        for i in range(rows):
            group = place[start + codes[a, i] * w + codes[b, i]]
            if group >= 0:
                for k in range(columns):
                    sums[group, k] += values[i, k]
