"""Slow, obvious twins of cells and of the exact isotonic fit from cells."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

__all__ = ["borders", "has_corner", "may_matter", "minorant", "place"]


def place(p: float, count: int) -> Decimal:
    """u·K/2 of a probability, to fifty digits: the cell is its floor."""
    with localcontext() as context:
        context.prec = 1100  # 1 − p of the smallest double
        tail = Decimal(p) if p < 0.5 else 1 - Decimal(p)
        context.prec = 50
        u = (2 * tail).sqrt().sqrt().sqrt() - 1
        return (u if p < 0.5 else -u) * count / 2


def minorant(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Corners of the greatest convex minorant of points in the order of x (Andrew's scan)."""
    hull: list[tuple[Fraction, Fraction]] = []
    for point in points:
        while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_left(a, b, c) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) > (c[0] - a[0]) * (b[1] - a[1])


def borders(negative, positive) -> list[tuple[Fraction, Fraction]]:
    """The cumulative diagram (Σw, Σw of positives), from (0, 0)."""
    points = [(Fraction(0), Fraction(0))]
    for n0, n1 in zip(negative, positive, strict=True):
        x, y = points[-1]
        points.append((x + Fraction(n0) + Fraction(n1), y + Fraction(n1)))
    return points


def has_corner(cells: list[list[tuple[float, float]]]) -> list[bool]:
    """Whether a corner of the minorant of all scores lies strictly inside each cell.

    A cell is a list of (weight of negatives, weight of positives) of its scores in order.
    """
    flat = [score for cell in cells for score in cell]
    diagram = borders([n0 for n0, _ in flat], [n1 for _, n1 in flat])
    corners = set(minorant(diagram))
    found, start = [], 0
    for cell in cells:
        inner = diagram[start + 1 : start + len(cell)]
        found.append(any(point in corners for point in inner))
        start += len(cell)
    return found


def may_matter(negative, positive) -> list[bool]:
    """Whether a cell's corner with all negatives first is not above the minorant of the borders."""
    points = borders(negative, positive)
    hull = minorant(points)
    found = []
    for (x, y), n0, n1 in zip(points, negative, positive, strict=False):
        across = x + Fraction(n0)
        found.append(bool(n0 and n1) and y <= _height(hull, across))
    return found


def _height(hull, x: Fraction) -> Fraction:
    """The minorant at x."""
    for (a, low), (b, high) in itertools.pairwise(hull):
        if a <= x <= b:
            return low + (high - low) * (x - a) / (b - a)
    raise ValueError(x)
