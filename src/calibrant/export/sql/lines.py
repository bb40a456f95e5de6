"""Lines as SQL. Where rounding could carry a value beyond those at the line's ends, it is cut."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.export.sql.layout import linear
from calibrant.export.sql.writer import SqlWriter
from calibrant.plan.borders import Regions
from calibrant.plan.interpreter import evaluate
from calibrant.plan.line_pieces import LOST, Pieces
from calibrant.plan.nodes import Input, LinePieces, Node

#: how far values of different engines may differ, as a share of the value
ROUNDING = 2.0**-51


# --- where rounding matters ---------------------------------------------------------------------


def is_steep(pieces: Pieces, x: Node) -> Flags:
    """The pieces that are so steep that the last bits of x change the value of the line.

    >>> from calibrant.plan.nodes import Logit
    >>> rise = np.array([0.0, 1.0])
    >>> is_steep(Pieces(np.array([0.0, 1e-9]), rise, rise), Logit(Input())).tolist()
    [False, True, False]
    """
    if isinstance(x, Input):  # whose bits all engines have in common
        return np.zeros(len(pieces.x) + 1, dtype=bool)
    _, width, low, high, *_ = pieces.table
    size = np.maximum(np.abs(pieces.x), 1.0)
    size = np.maximum(np.append(size, 1.0), np.append(1.0, size))
    with np.errstate(over="ignore"):
        moved = np.abs(high - low) / width * size * ROUNDING
    return np.asarray(moved > LOST)


def bounds(node: LinePieces, i: int, found: Regions) -> dict[str, Array]:
    """The least and the largest value that NumPy gives on each piece of table i."""
    pieces = node.pieces[i]
    if not node.places[i].by_input:
        ends = [pieces.low[found.piece], pieces.high[found.piece]]
    else:
        ends = [evaluate(node, scores, owner=i) for scores in (found.low, found.high)]
    least, most = np.zeros((2, len(pieces.x) + 1))
    least[found.piece], most[found.piece] = np.minimum(*ends), np.maximum(*ends)
    return {"least": least, "most": most}


# --- as SQL -------------------------------------------------------------------------------------


def numbered_line(s: str, piece: Mapping[str, float], writer: SqlWriter) -> str:
    """`plan.line_pieces.on_line` as SQL, of parameters that are numbers.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> piece = {"start": 0.5, "low": 0.0, "high": 0.25, "width": 2.0}
    >>> numbered_line("s", piece, SqlWriter(dialect_of("duckdb")))
    '(s - 0.5e0) / 2e0 * 0.25e0'
    """
    dialect = writer.dialect
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


def line(s: str, piece: Mapping[str, str]) -> str:
    """`plan.line_pieces.on_line` as SQL, of parameters that are SQL."""
    if "base" in piece:
        return f"{piece['base']} + {piece['slope']} * {s}"
    if "slope" in piece:
        return f"{piece['low']} + {piece['slope']} * ({s} - {piece['start']})"
    low, high, width = piece["low"], piece["high"], piece["width"]
    scaled = f"{s} * {piece['scale']}" if "scale" in piece else s
    return f"{low} + ({scaled} - {piece['start']}) / {width} * ({high} - {low})"
