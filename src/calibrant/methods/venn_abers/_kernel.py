"""Isotonic regression with one case added, at every place where it may be added, in O(D).

The weights of negatives and positives, summed up, are points (Q_k, P_k), k = 0..D, and isotonic
regression is their greatest convex minorant (read as P against P + Q). A case of weight one and
label c added at score i moves the points from i on by one, and the fit there is the slope of the
bridge between the minorants of the points before and of those from i on:

    F_i = max_{a<i} min_{b≥i} (P_b − P_a + c) / (P_b + Q_b − P_a − Q_a + 1) .

With i both ends of the bridge only move up, so that one pass finds them all (the idea of Vovk,
Petej and Fedorova 2015, algorithms 1–4, with one pass for either label).
"""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.solvers._jit import jit, part


def venn_abers(negative: Array, positive: Array) -> tuple[Array, Array]:
    """F⁰ and F¹: the isotonic fit at every score, with a negative or a positive added there."""
    size = len(negative)
    points, found = np.zeros((size + 1, 4)), np.empty((2, size))
    after, corner = np.empty(size + 1, np.intp), np.empty(size, np.intp)
    _exact_prefix_sums(negative, positive, points)
    _hull_after(points, after)
    for label in (0, 1):
        _added_fits(points, after, float(label), corner, found[label])
    return found[0], found[1]


@jit
def _exact_prefix_sums(negative: Array, positive: Array, points: Array) -> None:
    """Write the sums of the first k weights of each class, and the rounding errors of these sums.

    The weight of a block is a difference of two sums. If the sums are large and the block is small,
    their digits alone would not be enough.
    """
    for i in range(len(negative)):
        for column in range(0, 4, 2):
            before, w = points[i, column], positive[i] if column else negative[i]
            now = before + w
            added = now - before
            lost = (before - (now - added)) + (w - added)
            points[i + 1, column] = now
            points[i + 1, column + 1] = points[i, column + 1] + lost


@part
def _rate_of_cells(points: Array, a: int, b: int, label: float, added: float) -> float:
    """The frequency of positives among the cells a+1 … b and the added weight."""
    q = (points[b, 0] - points[a, 0]) + (points[b, 1] - points[a, 1])
    p = (points[b, 2] - points[a, 2]) + (points[b, 3] - points[a, 3]) + label
    n = p + q + (added - label)
    return p / n if n > 0.0 else 0.0  # weights that vanish beside the others


@jit
def _hull_after(points: Array, after: Index) -> None:
    """For each k, the next corner of the convex minorant of the points from k on."""
    last = len(points) - 1
    after[last] = last
    for k in range(last - 1, -1, -1):
        b = k + 1
        while b < last and _rate_of_cells(points, k, b, 0.0, 0.0) >= _rate_of_cells(
            points, b, after[b], 0.0, 0.0
        ):
            b = after[b]
        after[k] = b


@jit
def _added_fits(points: Array, after: Index, label: float, corner: Index, value: Array) -> None:
    """F_1 … F_D for an added case with this label.

    ``corner`` holds corners of the minorant of the points before i, from the bridge's lower end on.
    """
    size = len(points) - 1
    first, last = 0, -1
    b, height = 0, 0.0
    for i in range(1, size + 1):
        new = i - 1
        while last > first and (
            _rate_of_cells(points, corner[last - 1], corner[last], 0.0, 0.0)
            >= _rate_of_cells(points, corner[last], new, 0.0, 0.0)
        ):
            last -= 1
        last += 1
        corner[last] = new
        b = max(b, i)
        while True:
            a = corner[first]
            slope = _rate_of_cells(points, a, b, label, 1.0)
            # the upper end moves first: else the lower one could go too far
            while b < size and _rate_of_cells(points, b, after[b], 0.0, 0.0) <= slope:
                b = after[b]
                slope = _rate_of_cells(points, a, b, label, 1.0)
            if first == last or _rate_of_cells(points, a, corner[first + 1], 0.0, 0.0) > slope:
                break
            first += 1
        height = max(height, slope)  # rounding may cross neighbours by one bit
        value[i - 1] = height
