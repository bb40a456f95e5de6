"""Where the pieces of a map begin and end on the scale of the score, to the exact double.

The bits of doubles, read as integers, are in the order of the numbers. So the smallest double with
a property is found by bisection of these integers (ranks) in at most 64 steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


# --- Functions that rise and fall -----------------------------------------------------------------


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


# --- One table of lines between knots, with jumps at the knots and flat ends: its arithmetic ------


#: how far rounding may move a line written as base + slope · s
LOST = 2.5e-13
#: below this width 1/width may overflow; scores on such a piece are multiplied by the second number
NARROW, WIDER = 2.0**-960, 2.0**600


def trend_of(values: Array) -> int:
    """1 where nothing falls, −1 where nothing rises, 0 where some rise and some fall."""
    if (values[1:] >= values[:-1]).all():
        return 1
    return -1 if (values[1:] <= values[:-1]).all() else 0


@dataclass(frozen=True, eq=False)
class Pieces:
    """On [x_i, x_{i+1}) a line from right_i to left_{i+1}; left_0 below, the last right above.

    Piece i lies above i knots, so there is one more piece than there are knots.

    >>> Pieces(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 3.0])).value(
    ...     np.array([-1.0, 0.25, 1.0])
    ... ).tolist()
    [0.0, 0.25, 3.0]
    """

    x: Array
    left: Array
    right: Array

    @functools.cached_property
    def is_step(self) -> bool:
        """Whether every piece is flat."""
        return bool(np.array_equal(self.right[:-1], self.left[1:]))

    @property
    def jumps(self) -> bool:
        """Whether neighbours differ at some knot."""
        return not np.array_equal(self.left, self.right)

    @functools.cached_property
    def are_shares(self) -> bool:
        """Whether all values are in [0, 1]."""
        both = np.concatenate((self.left, self.right))
        return bool(both.min() >= 0.0 and both.max() <= 1.0)

    @functools.cached_property
    def outer(self) -> Flags:
        """Which pieces are the first and the last, which are flat and have no end."""
        return np.asarray(np.arange(len(self.x) + 1) % len(self.x) == 0)

    @functools.cached_property
    def low(self) -> Array:
        """The value at the start of each piece."""
        return np.concatenate((self.left[:1], self.right))

    @functools.cached_property
    def high(self) -> Array:
        """The value at the end of each piece."""
        return np.concatenate((self.left, self.right[-1:]))

    @property
    def trend(self) -> int:
        """1 where nothing falls, −1 where nothing rises, 0 where some rise and some fall."""
        return trend_of(np.column_stack((self.left, self.right)).ravel())

    @functools.cached_property
    def table(self) -> tuple[Array, ...]:
        """Columns with an entry per piece: start, width, value at the start, value at the end, the
        smaller of the two, the larger, and a scale (½ where the width would overflow)."""
        low, high = self.low, self.high
        with np.errstate(over="ignore"):
            scale = np.where(np.isinf(np.diff(self.x)), 0.5, 1.0)
        width = self.x[1:] * scale - self.x[:-1] * scale
        scale, width = (np.concatenate(([1.0], inner, [1.0])) for inner in (scale, width))
        start = np.concatenate((self.x[:1], self.x)) * scale
        return start, width, low, high, np.minimum(low, high), np.maximum(low, high), scale

    def value(self, s: Array) -> Array:
        """The value at points, by one binary search each."""
        return self.on(s, np.searchsorted(self.x, s, side="right"))

    def on(self, s: Array, piece: Index) -> Array:
        """The value at points that are on these pieces; never beyond the values at their ends."""
        if self.is_step:
            return np.asarray(self.low[piece])
        start, width, low, high, least, most, scale = self.table
        base = low[piece]
        with np.errstate(over="ignore"):  # only in the outer pieces, whose value is set below
            along = (s * scale[piece] - start[piece]) / width[piece]
        value = base + np.where(self.outer[piece], 0.0, along) * (high[piece] - base)
        return np.clip(value, least[piece], most[piece])

    def limits(self, at: Array) -> tuple[Array, Array]:
        """The limit from below, and the value, at points."""
        value = self.value(at)
        knot = np.minimum(np.searchsorted(self.x, at), len(self.x) - 1)
        return np.where(self.x[knot] == at, self.left[knot], value), value

    def columns(self, relative: bool = False) -> dict[str, Array]:
        """The columns that a line is computed from, an entry per piece.

        ``base`` and ``slope`` for base + slope · s, if that loses no digits. Else ``start``,
        ``low`` and ``slope`` for low + slope · (s − start). Where a slope would overflow, or small
        values must keep their digits (``relative``), those of `ends`: then a line is computed by
        the same operations as here.
        """
        start_, width, low, high, _, _, scale = self.table
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (high - low) / width
            base = low - start_ * slope
            lost = (np.abs(base) + np.abs(low)).max() * 2.0**-52
        whole = bool((scale == 1.0).all())
        if whole and lost <= LOST and not relative:
            return {"base": base, "slope": slope}
        ends = self.ends()
        if whole and np.isfinite(slope).all() and not relative:
            return {"start": ends["start"] / ends["scale"], "low": low, "slope": slope}
        if relative and (ends["scale"] == 1.0).all():
            del ends["scale"]
        return ends

    def ends(self) -> dict[str, Array]:
        """Both ends of each line: low + (s · scale − start) / width · (high − low)."""
        start_, width, low, high, _, _, scale = self.table
        # on the outer pieces the way from their start must not overflow
        start_, width = np.where(self.outer, 0.0, start_), np.where(self.outer, 1.0, width)
        # exact, and an engine that multiplies by 1/width in place of dividing must not find ∞
        wider = np.where(width < NARROW, WIDER, 1.0)
        both = {"start": start_ * wider, "low": low, "high": high, "width": width * wider}
        return both | {"scale": scale * wider}


def line_columns(tables: Sequence[Pieces], relative: bool = False) -> list[dict[str, Array]]:
    """`Pieces.columns` of several tables, in the same form for all of them."""
    columns = [own.columns(relative) for own in tables]
    same = len({tuple(own) for own in columns}) == 1
    return columns if same else [own.ends() for own in tables]


def on_line(s: Any, line: Mapping[str, Any]) -> Any:
    """The value at s of a line, given in any of the forms of `Pieces.columns`.

    s and the parameters are numbers, arrays, or whatever else has the operators + − · /.

    >>> on_line(2.0, {"start": 1.0, "low": 0.25, "slope": 0.5})
    0.75
    """
    if "base" in line:
        return line["base"] + line["slope"] * s
    if "slope" in line:
        return line["low"] + line["slope"] * (s - line["start"])
    scaled = s * line["scale"] if "scale" in line else s
    return line["low"] + (scaled - line["start"]) / line["width"] * (line["high"] - line["low"])


def flat_value(line: Mapping[str, float]) -> float | None:
    """The value of a line that neither rises nor falls; None for any other."""
    rise = line["slope"] if "slope" in line else line["high"] - line["low"]
    return line.get("base", line.get("low")) if rise == 0.0 else None
