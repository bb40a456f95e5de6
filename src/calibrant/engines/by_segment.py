"""A map per segment as an expression: parameters are joined by segment, pieces by segment and cell.

Members of the same form share a column for each parameter, so that thousands of segments cost as
many joins as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.engines.expressions import (
    Axis,
    after,
    express,
    line,
    linked,
    logistic,
    logit_of,
    refuse_jumps,
    start,
)
from calibrant.engines.sheet import Sheet
from calibrant.export.leaves import Leaf, leaves, parameters, slots
from calibrant.export.pieces import pieces
from calibrant.losses import logit
from calibrant.maps import Logistic, Segmented
from calibrant.maps.logistic import FEATURES
from calibrant.plan.borders import Regions, between, borders
from calibrant.plan.grids import grid_of

__all__ = ["by_segment", "usable_keys"]

Array = NDArray[np.float64]


def by_segment(map_: Segmented, segment: nw.Expr, kind: type, axis: Axis, sheet: Sheet) -> nw.Expr:
    """The map of a score and a segment, a column of values of the ``kind`` str or int."""
    common = sheet.keep(express(map_.default, axis, sheet))
    own_axis = axis
    if map_.input == "default":
        own_axis = after(map_.default, axis, sheet)
    shares = np.ones(len(map_.keys)) if map_.weights is None else map_.weights
    used = [i for i in usable_keys(map_.keys, kind) if shares[i] > 0.0]
    if not used:
        return common
    parts = [part for i in used for part in leaves(map_.maps[i], Leaf(i, 1.0, (), None))]
    table: dict[str, Any] = {"code": np.arange(len(used)), "share": shares[used]}
    place = {segment_: i for i, segment_ in enumerate(used)}
    for s, slot in enumerate(slots(parts)):
        table |= {f"{s}.{name}": c for name, c in parameters(slot, place).items()}
    keys = [map_.keys[i] for i in used]
    values = keys if kind is str else np.array(keys, dtype=np.int64)
    joined = sheet.look_up(segment, values, table)
    total = sheet.constant(0.0)
    for s, slot in enumerate(slots(parts)):
        mine = {n.split(".", 1)[1]: c for n, c in joined.items() if n.startswith(f"{s}.")}
        value = _value(slot, place, mine, joined["code"], own_axis, sheet)
        total = total + (mine["weight"] * value).fill_null(0.0)
    share = joined["share"]
    mixed = share * total.clip(0.0, 1.0) + (1.0 - share) * common
    return nw.when(share.is_null()).then(common).otherwise(mixed)


def usable_keys(keys: Sequence[Any], kind: type) -> list[int]:
    """The places of the keys that a column of the ``kind`` str or int (of 64 bits) can hold."""
    places = [i for i, key in enumerate(keys) if type(key) is kind]
    return [i for i in places if kind is str or -(2**63) <= keys[i] < 2**63]


# --- the value of a slot ------------------------------------------------------------------------


def _sigmoid(s: nw.Expr, step: int, mine: Mapping[str, nw.Expr], sheet: Sheet) -> nw.Expr:
    own = {n.split("_", 1)[1]: c for n, c in mine.items() if n.startswith(f"{step}_")}
    clip = (own["clip_low"], own["clip_high"]) if "clip_low" in own else None
    terms = {name: own[name] for name in FEATURES if name in own}
    return logistic(s, own["intercept"], terms, clip, sheet)


def _value(
    slot: Sequence[Leaf],
    place: Mapping[int, int],
    mine: Mapping[str, nw.Expr],
    code: nw.Expr,
    axis: Axis,
    sheet: Sheet,
) -> nw.Expr:
    value = axis.value
    for step in range(len(slot[0].first)):
        value = sheet.keep(_sigmoid(value, step, mine, sheet))
    last = slot[0].last
    if isinstance(last, Logistic):
        return _sigmoid(value, len(slot[0].first), mine, sheet)
    axes = [_axis(leaf, axis) for leaf in slot]
    chooser = axis.chooser
    if any(own.trend == 0 for own in axes):
        for leaf in slot:
            refuse_jumps(leaf.last)
        chooser = sheet.add(value)
        axes = [start(chooser)] * len(slot)
    if last.input == "logit":
        value = sheet.keep(logit_of(value, sheet))
        axes = [own.then(value, logit, 1) for own in axes]
    found = _regions(slot, axes)
    joined = _look_up(slot, found, place, code, chooser, sheet)
    return linked(line(value, joined), last, sheet)


def _axis(leaf: Leaf, axis: Axis) -> Axis:
    """What the pieces of one leaf read, as a function of the chooser."""
    for step in leaf.first:
        axis = axis.then(axis.value, step, step.trend)
    return axis


def _regions(slot: Sequence[Leaf], axes: Sequence[Axis]) -> list[Regions]:
    """The regions of each leaf; the borders of all are found together where all read the same."""
    knots = [leaf.last.x for leaf in slot]
    falling = [own.trend < 0 for own in axes]
    if len({leaf.first for leaf in slot}) == 1:
        found = borders(np.concatenate(knots), axes[0].function, falling[0])
        firsts = np.split(found, np.cumsum([len(x) for x in knots])[:-1])
    else:
        triples = zip(knots, axes, falling, strict=True)
        firsts = [borders(x, own.function, falls) for x, own, falls in triples]
    return [between(first, falls) for first, falls in zip(firsts, falling, strict=True)]


def _look_up(
    slot: Sequence[Leaf],
    found: Sequence[Regions],
    place: Mapping[int, int],
    code: nw.Expr,
    chooser: str,
    sheet: Sheet,
) -> dict[str, nw.Expr]:
    """The piece of each row, by a join on one number made of its segment and its cell."""
    grid = grid_of(np.sort(np.concatenate([own.low for own in found])), owners=len(slot))
    least, most = grid.bounds
    stride = most - least + 3  # and one beside the first and the last
    keys, parts = [], []
    for leaf, own in zip(slot, found, strict=True):
        cells, region = sheet.listed(grid, own)
        keys.append(cells + place[leaf.segment] * stride)
        piece = pieces(leaf.last)
        table = {"low_": own.low[region], "high_": own.high[region]}
        parts.append(table | {n: c[own.piece[region]] for n, c in piece.items()})
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    cell = sheet.cell(chooser, grid)
    known = ~nw.col(chooser).is_null()  # what has no score must find no row, or `within` drops it
    key = nw.when(known).then(code * stride + cell)
    joined = sheet.look_up(key, np.concatenate(keys), whole)
    sheet.within(chooser, joined.pop("low_"), joined.pop("high_"))
    return joined
