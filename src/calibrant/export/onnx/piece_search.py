"""Pieces of a map as tables in the graph's own type, and the search for a row's piece.

The graph compares numbers of its own type with borders of that type. A border that is no float32
is moved up to the next float32. No float32 lies between the two, so every float32 finds the piece
that its double would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.export.onnx.graph import Tensor
from calibrant.plan.line_pieces import Pieces
from calibrant.plan.nodes import LinePieces, PieceChoice, StepPieces

Float = np.dtype[Any]


class PieceTable(NamedTuple):
    """The pieces that a number of the type can lie in: the first number of each, and its columns.

    Steps have the column ``value``. Lines have ``low``, ``high``, ``start``, ``width`` and
    ``scale``: low + (s · scale − start) / width · (high − low), never beyond low and high, which
    is how NumPy computes it, bit for bit. In float32 a line that reads the number itself starts
    and ends at the first and last float32 of its piece, however steep it is between them.
    """

    first: NDArray[Any]
    columns: dict[str, Array]


def up(values: Array, dtype: Float) -> NDArray[Any]:
    """The smallest numbers of a type that are not below these doubles.

    >>> up(np.array([0.5, 0.1]), np.dtype(np.float32)).astype(float) >= [0.5, 0.1]
    array([ True,  True])
    """
    with np.errstate(over="ignore"):
        near = values.astype(dtype)
        return np.where(near < values, np.nextafter(near, dtype.type(np.inf)), near)


def down(values: Array, dtype: Float) -> NDArray[Any]:
    """The largest numbers of a type that are not above these doubles."""
    return -up(-values, dtype)


def _rows(place: PieceChoice, own: Array | Pieces, dtype: Float) -> PieceTable:
    """The pieces of one table that numbers of the type lie in."""
    low, high, piece = place.regions
    first, last = up(low, dtype), down(high, dtype)
    some = first <= last
    first, last, piece = first[some], last[some], piece[some]
    if not isinstance(own, Pieces):
        return PieceTable(first, {"value": own[piece]})
    direct = not place.by_input or place.function is None
    if direct and dtype != np.float64:
        return PieceTable(first, _between_numbers(own, first, last))
    return PieceTable(first, _lines(own, piece, dtype))


def _lines(own: Pieces, piece: NDArray[np.int64], dtype: Float) -> dict[str, Array]:
    """The lines of `Pieces`. The outer ones, which are flat, start at 0 and are wide, so that no
    product on them overflows."""
    start, width, low, high, _, _, scale = own.table
    limits = np.finfo(dtype)
    width = np.maximum(width, limits.smallest_subnormal)
    columns = {
        "start": np.where(own.outer, 0.0, start),
        "width": np.where(own.outer, float(limits.max), width),
        "low": low,
        "high": high,
        "scale": scale,
    }
    return {name: column[piece] for name, column in columns.items()}


def _between_numbers(own: Pieces, first: NDArray[Any], last: NDArray[Any]) -> dict[str, Array]:
    """Lines from the first to the last float32 of their pieces."""
    begin, end = first.astype(np.float64), last.astype(np.float64)
    low, high = own.value(begin), own.value(end)
    flat, largest = low == high, float(np.finfo(first.dtype).max)
    width = np.where(flat, largest, end - begin)
    scale = np.where(width > largest, 0.5, 1.0)
    start = np.where(flat, 0.0, begin) * scale
    return {"start": start, "width": width * scale, "low": low, "high": high, "scale": scale}


# --- in the graph -------------------------------------------------------------------------------


def find(tables: Sequence[PieceTable], chooser: Tensor, code: Tensor | None) -> Tensor:
    """The row of each finite number among the rows of all tables, one after the other.

    ``code`` is the number of each row's own table, if there are several. The binary search is
    unrolled: the place moves ahead by 2ᵇ, …, 2, 1 rows wherever that row does not begin too high.
    """
    graph = chooser.graph
    sizes = np.array([len(table.first) for table in tables])
    bits = int(sizes.max() - 1).bit_length()
    first = np.concatenate([table.first for table in tables])
    if code is None:  # rows that no number reaches spare the search an end
        first = np.append(first, np.full((1 << bits) - len(first), np.inf, dtype=first.dtype))
        at = chooser.like(np.int32(0)) if not bits else graph.constant(np.int32(0))
    else:
        begin = (np.cumsum(sizes) - sizes).astype(np.int32)
        at, end = graph.gather(begin, code), graph.gather(begin + sizes.astype(np.int32) - 1, code)
    for bit in reversed(range(bits)):
        ahead = at + np.int32(1 << bit)
        if code is not None:
            ahead = ahead.at_most(end)
        at = (chooser >= graph.gather(first, ahead)).choose(ahead, at)
    return at


def value_by_piece(
    node: StepPieces | LinePieces,
    chooser: Tensor,
    code: Tensor | None,
    value: Callable[[], Tensor],
) -> Tensor:
    """The value of each number by its piece; ``value`` makes the tensor that lines are lines of."""
    graph = chooser.graph
    held: Sequence[Any] = node.values if isinstance(node, StepPieces) else node.pieces
    tables = [_rows(place, own, graph.dtype) for place, own in zip(node.places, held, strict=True)]
    at = find(tables, chooser, code)
    columns = {
        name: np.concatenate([table.columns[name] for table in tables])
        for name in tables[0].columns
    }
    own = {name: graph.gather(column, at) for name, column in columns.items()}
    if "value" in own:
        return own["value"]
    s, low, high = value(), own["low"], own["high"]
    if (columns["scale"] != 1.0).any():
        s = s * own["scale"]
    reached = low + (s - own["start"]) / own["width"] * (high - low)
    if (columns["low"] <= columns["high"]).all():
        return reached.within(low, high)
    return reached.within(low.at_most(high), low.at_least(high))
