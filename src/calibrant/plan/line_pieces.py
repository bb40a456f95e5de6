"""One table of lines between knots, with jumps at the knots and flat ends: its arithmetic."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags

Index = NDArray[np.int64]

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
