"""Sums over groups of rows that overlap: every crossing of two coded columns in one walk."""

from __future__ import annotations

from typing import Any

from calibrant.kernels._jit import jit


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
