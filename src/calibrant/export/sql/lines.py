"""Lines as SQL, kept between the values at their ends where rounding could carry them beyond."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from calibrant.export.sql.axis import Axis
from calibrant.export.sql.formulas import sigmoid_of
from calibrant.export.sql.layout import clamp, linear
from calibrant.export.sql.page import Page
from calibrant.losses import logit
from calibrant.maps import Piecewise
from calibrant.plan.borders import Regions
from calibrant.plan.pieces import LOST

__all__ = ["beyond", "bounds", "is_steep", "line", "linked", "numbered_line"]

Array = NDArray[np.float64]

#: how far engines differ in what they compute, as a share of it
ROUNDING = 2.0**-51
#: how near to 0 or 1 a line must come for rounding to carry it beyond
NEAR = 1e-12


# --- where rounding matters ---------------------------------------------------------------------


def is_steep(map_: Piecewise, axis: Axis) -> NDArray[np.bool_]:
    """The pieces on which the last bits of what a line is a line of change its value.

    >>> map_ = Piecewise.linear([0.0, 1e-9], [0.0, 1.0], "logit")
    >>> is_steep(map_, Axis("s", "s")).tolist()
    [False, True, False]
    """
    if map_.is_step or _exact(map_, axis):
        return np.zeros(len(map_.x) + 1, dtype=bool)
    _, width, low, high, *_ = map_.pieces.table
    size = np.maximum(np.abs(map_.x), 1.0)
    size = np.maximum(np.append(size, 1.0), np.append(1.0, size))
    with np.errstate(over="ignore"):
        moved = np.abs(high - low) / width * size * ROUNDING
    return np.asarray(moved > LOST)


def _exact(map_: Piecewise, axis: Axis) -> bool:
    """Whether lines are of the score itself, whose bits all engines have in common."""
    return axis.function is None and map_.input == "score"


def bounds(map_: Piecewise, axis: Axis, found: Regions) -> dict[str, Array]:
    """The least and the largest value on each region in memory, before the output link."""
    ends = [_value(map_, axis, scores) for scores in (found.low, found.high)]
    least, most = np.zeros((2, len(map_.x) + 1))
    least[found.piece], most[found.piece] = np.minimum(*ends), np.maximum(*ends)
    return {"least": least, "most": most}


def _value(map_: Piecewise, axis: Axis, scores: Array) -> Array:
    values = scores if axis.function is None else axis.function(scores)
    return map_.limits(logit(values) if map_.input == "logit" else values)[1]


def beyond(
    map_: Piecewise, piece: Mapping[str, float], axis: Axis
) -> tuple[float | None, float | None]:
    """Which of 0 and 1 rounding could carry a line beyond, here; None for those it cannot."""
    ends = np.array([axis.low, axis.high])
    if _exact(map_, axis):
        # each operation rises or falls with the score, and is the same in every engine
        values = _on(piece, ends)
        low, high = values.min() < 0.0, values.max() > 1.0
    else:
        values = _value(map_, axis, ends)
        low, high = values.min() <= NEAR, values.max() >= 1.0 - NEAR
    return 0.0 if low else None, 1.0 if high else None


def _on(piece: Mapping[str, float], s: Array) -> Array:
    """A line in NumPy, as `numbered_line` writes it."""
    if "base" in piece:
        return piece["base"] + piece["slope"] * s
    if "slope" in piece:
        return piece["low"] + piece["slope"] * (s - piece["start"])
    along = (s * piece.get("scale", 1.0) - piece["start"]) / piece["width"]
    return piece["low"] + along * (piece["high"] - piece["low"])


# --- as SQL -------------------------------------------------------------------------------------


def numbered_line(s: str, piece: Mapping[str, float], page: Page) -> str:
    """A line whose parameters are numbers.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> piece = {"start": 0.5, "low": 0.0, "high": 0.25, "width": 2.0}
    >>> numbered_line("s", piece, Page(dialect_of("duckdb")))
    '(s - 0.5e0) / 2e0 * 0.25e0'
    """
    dialect = page.dialect
    if "base" in piece:
        return linear(piece["base"], [(piece["slope"], s)], dialect)
    if "slope" in piece:
        along = linear(-piece["start"], [(1.0, s)], dialect)
        return linear(piece["low"], [(piece["slope"], f"({along})")], dialect)
    # the operations of the map itself, one after another, but for those that change nothing
    rise, start = piece["high"] - piece["low"], piece["start"]
    text = s if piece.get("scale", 1.0) == 1.0 else f"{s} * {dialect.number(piece['scale'])}"
    if start:
        text = f"({text} {'-' if start > 0.0 else '+'} {dialect.number(abs(start))})"
    for mark, number in (("/", piece["width"]), ("*", abs(rise))):
        text += f" {mark} {dialect.number(number)}" if number != 1.0 else ""
    return linear(piece["low"], [(1.0 if rise > 0.0 else -1.0, text)], dialect)


def line(s: str, piece: Mapping[str, str], page: Page) -> str:
    """The value of a step, or at s on a line, parameters being SQL."""
    if "value" in piece:
        return piece["value"]
    if "base" in piece:
        return f"{piece['base']} + {piece['slope']} * {s}"
    if "slope" in piece:
        return f"{piece['low']} + {piece['slope']} * ({s} - {piece['start']})"
    low, high, width = piece["low"], piece["high"], piece["width"]
    scaled = f"{s} * {piece['scale']}" if "scale" in piece else s
    return f"{low} + ({scaled} - {piece['start']}) / {width} * ({high} - {low})"


def linked(value: str, map_: Piecewise, piece: Mapping[str, str], page: Page) -> str:
    """The probability of a line's value, parameters being SQL."""
    if "least" in piece:
        value = clamp(value, page.dialect, piece["least"], piece["most"])
    if map_.output == "logit":
        return sigmoid_of(value, page.dialect, bounded=False)
    return value if "least" in piece else clamp(value, page.dialect, 0.0, 1.0)
