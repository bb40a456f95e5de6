"""Where the pieces of a map begin and end on the scale of the score, to the exact double.

The bits of doubles, read as integers, are in the order of the numbers. So the smallest double with
a property is found by bisection of these integers (ranks) in at most 64 steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags

Index = NDArray[np.int64]

LARGEST_DOUBLE = float(np.finfo(np.float64).max)


class Regions(NamedTuple):
    """Intervals [low, high] of doubles, both ends included, and the piece that holds on each."""

    low: Array
    high: Array
    piece: Index

    def within(self, first: float, last: float) -> Regions:
        """The intervals that meet [first, last], cut to it."""
        here = (self.low <= last) & (self.high >= first)
        low, high = np.maximum(self.low, first), np.minimum(self.high, last)
        return Regions(low[here], high[here], self.piece[here])


def rank(values: Array) -> Index:
    """The rank of each finite double among all doubles; 0.0 and −0.0 have the same rank.

    >>> rank(np.array([-5e-324, 0.0, 5e-324])).tolist()
    [-1, 0, 1]
    """
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def number(ranks: Index) -> Array:
    """The doubles of these ranks.

    >>> number(np.array([-1, 0, 1])).tolist()
    [-5e-324, 0.0, 5e-324]
    """
    bits = np.where(ranks < 0, np.iinfo(np.int64).min - ranks, ranks)
    return bits.astype(np.int64).view(np.float64)


FIRST, LAST = (int(rank(np.array([end]))[0]) for end in (-LARGEST_DOUBLE, LARGEST_DOUBLE))


def regions(knots: Array, function: Callable[[Array], Array] | None, falling: bool) -> Regions:
    """The intervals of scores on which a function lies between two neighbouring knots, exactly.

    Parameters
    ----------
    knots : array of shape (m,), ascending
    function : monotone function of an array of scores, or None for the score itself
    falling : bool
        Whether the function falls.

    Notes
    -----
    Piece i holds where i of the knots are at or below the function's value. The border of a knot
    is the first double at which the comparison with it changes. So a database that compares scores
    with borders decides as NumPy does, even if its logarithm differs in the last bit. Takes O(m)
    space, and 64 evaluations of the function at m points.

    Examples
    --------
    >>> found = regions(np.array([0.25]), np.sqrt, falling=False)
    >>> found.low.tolist(), found.high[0] < 0.0625, found.piece.tolist()
    ([-1.7976931348623157e+308, 0.0625], np.True_, [0, 1])
    """
    return regions_between(borders(knots, function, falling), falling)


def regions_between(first: Index, falling: bool) -> Regions:
    """The regions between the borders of ascending knots; empty ones are left out."""
    pieces = np.arange(len(first) + 1)
    if falling:  # a later knot is passed at a smaller score
        first, pieces = first[::-1], pieces[::-1]
    start = np.concatenate(([FIRST], np.maximum.accumulate(first)))
    some = start <= _ends(start)
    return _regions(start[some], pieces[some])


def _regions(start: Index, piece: Index) -> Regions:
    """The regions that begin at ascending ranks, each up to the next."""
    return Regions(number(start), number(_ends(start)), piece)


def _ends(start: Index) -> Index:
    """The last ranks of intervals that begin at ascending ranks, each up to the next."""
    return np.append(start[1:], LAST + 1) - 1


def borders(knots: Array, function: Callable[[Array], Array] | None, falling: bool) -> Index:
    """The rank of the first score from which on function ≥ knot (function < knot if falling)."""
    if function is None:
        return rank(knots)
    low = np.full(len(knots), FIRST, dtype=np.int64)
    high = np.full(len(knots), LAST + 1, dtype=np.int64)
    return first_beyond(knots, function, np.array(falling), low, high)


def first_beyond(
    knots: Array,
    function: Callable[[Array], Array],
    falling: Flags,
    low: Index,
    high: Index,
) -> Index:
    """The first ranks from ``low`` to ``high`` at which a function has passed knots, by bisection.

    A rising function has passed a knot where it is at least the knot, a falling one where it is
    below. Where it has not passed before ``high``, the answer is ``high``.
    """
    with np.errstate(all="ignore"):
        while (open_ := low < high).any():
            # halves are added apart: the sum of two ranks may be too long for an integer
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            passed = (function(number(middle)) >= knots) != falling
            high = np.where(open_ & passed, middle, high)
            low = np.where(open_ & ~passed, middle + 1, low)
    return low


# --- functions that rise and fall -----------------------------------------------------------------


class Stretches(NamedTuple):
    """Intervals of doubles, each up to the next one, on which a function only rises or only falls.

    ``first`` are the ranks of their first doubles, beginning with the smallest double. ``sign`` is
    1 where the function rises, −1 where it falls and 0 where it stays the same.
    """

    first: Index
    sign: Index

    @property
    def last(self) -> Index:
        """The ranks of their last doubles."""
        return _ends(self.first)

    def at(self, ranks: Index) -> Index:
        """The sign of the stretch that each rank lies in."""
        return self.sign[np.searchsorted(self.first, ranks, side="right") - 1]


#: the stretch of the score itself, which rises everywhere
WHOLE = Stretches(np.array([FIRST]), np.array([1]))


def on_stretches(
    knots: Array, function: Callable[[Array], Array] | None, stretches: Stretches
) -> Regions:
    """As `regions`, for a function that rises on some stretches and falls on others.

    Costs 64 evaluations at each place where the function passes a knot.

    >>> halves = Stretches(np.array([FIRST, 0]), np.array([-1, 1]))
    >>> found = on_stretches(np.array([4.0]), np.square, halves)
    >>> number(rank(found.low[1:])).tolist(), found.piece.tolist()
    ([-1.9999999999999998, 0.0, 2.0], [1, 0, 0, 1])
    """
    if len(stretches.first) == 1:
        return regions(knots, function, falling=bool(stretches.sign[0] < 0))
    own = (lambda s: s) if function is None else function
    first, last = stretches.first, stretches.last
    with np.errstate(all="ignore"):
        begin, end = (
            np.searchsorted(knots, own(number(ends)), side="right") for ends in (first, last)
        )
        passed = np.abs(end - begin)
        stretch = np.repeat(np.arange(len(first)), passed)
        nth = np.arange(len(stretch)) - np.repeat(np.cumsum(passed) - passed, passed)
        falls = (end < begin)[stretch]
        knot = np.where(falls, begin[stretch] - 1 - nth, begin[stretch] + nth)
        found = first_beyond(knots[knot], own, falls, first[stretch], last[stretch] + 1)
    start = np.concatenate((first, found))
    piece = np.concatenate((begin, np.where(falls, knot, knot + 1)))
    # where several borders are at one place, the one passed last counts
    order = np.lexsort((np.concatenate((np.full(len(first), -1), nth)), start))
    start, piece = start[order], piece[order]
    kept = np.append(start[1:] != start[:-1], True)
    return _regions(start[kept], piece[kept])
