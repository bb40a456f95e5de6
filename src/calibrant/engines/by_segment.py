"""A map per segment as an expression: parameters are joined by segment, pieces by segment and cell.

Members of the same form share a column for each parameter, so that thousands of segments cost as
many joins as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from calibrant.errors import InputError
from calibrant.export.known import collapsed, trend
from calibrant.export.pieces import pieces
from calibrant.export.regions import Regions, between, borders, grid_of
from calibrant.losses import logit
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.maps.logistic import FEATURES

__all__ = ["by_segment"]

Array = NDArray[np.float64]

#: what a logistic map without a clip counts as
ALL = (-float(np.finfo(np.float64).max), float(np.finfo(np.float64).max))


@dataclass(frozen=True)
class Leaf:
    """A part of one segment's map: sigmoids one after another, and then a sigmoid or pieces."""

    segment: int
    weight: float
    first: tuple[Logistic, ...]
    last: Any  # Logistic or Piecewise, the same in all leaves of a form

    @property
    def form(self) -> tuple[Any, ...]:
        """What leaves must have in common to be written as one expression."""
        if isinstance(self.last, Logistic):
            return (len(self.first), "logistic")
        return (len(self.first), self.last.input, self.last.output, *pieces(self.last))


def by_segment(map_: Segmented, segment: nw.Expr, kind: type, axis: Axis, sheet: Sheet) -> nw.Expr:
    """The map of a score and a segment, a column of values of the ``kind`` str or int."""
    common = sheet.keep(express(map_.default, axis, sheet))
    own_axis = axis
    if map_.input == "default":
        own_axis = after(map_.default, axis, sheet)
    shares = np.ones(len(map_.keys)) if map_.weights is None else map_.weights
    used = [i for i, key in enumerate(map_.keys) if type(key) is kind and shares[i] > 0.0]
    used = [i for i in used if kind is str or abs(map_.keys[i]) < 2**63]
    if not used:
        return common
    slots = _slots([leaf for i in used for leaf in _leaves(map_.maps[i], i)])
    table: dict[str, Any] = {"code": np.arange(len(used)), "share": shares[used]}
    place = {segment_: i for i, segment_ in enumerate(used)}
    for s, slot in enumerate(slots):
        table |= {f"{s}.{name}": c for name, c in _parameters(slot, place).items()}
    keys = [map_.keys[i] for i in used]
    values = keys if kind is str else np.array(keys, dtype=np.int64)
    joined = sheet.look_up(segment, values, table)
    total = sheet.constant(0.0)
    for s, slot in enumerate(slots):
        mine = {n.split(".", 1)[1]: c for n, c in joined.items() if n.startswith(f"{s}.")}
        value = _value(slot, place, mine, joined["code"], own_axis, sheet)
        total = total + (mine["weight"] * value).fill_null(0.0)
    share = joined["share"]
    mixed = share * total.clip(0.0, 1.0) + (1.0 - share) * common
    return nw.when(share.is_null()).then(common).otherwise(mixed)


# --- taking maps apart --------------------------------------------------------------------------


def _leaves(
    map_: Map, segment: int, weight: float = 1.0, first: tuple[Logistic, ...] = ()
) -> list[Leaf]:
    """The weighted parts of one segment's map."""
    if isinstance(map_, Interval):
        return _leaves(map_.point, segment, weight, first)
    if isinstance(map_, Segmented):
        return _leaves(map_.default, segment, weight, first)
    if isinstance(map_, Identity):
        map_ = Piecewise.linear([0.0, 1.0], [0.0, 1.0])
    if isinstance(map_, (Logistic, Piecewise)):
        return [Leaf(segment, weight, first, map_)]
    if isinstance(map_, Mixture):
        whole = collapsed(map_)
        if whole is not None:
            return [Leaf(segment, weight, first, whole)]
        pairs = zip(map_.weights.tolist(), map_.members, strict=True)
        return [x for w, m in pairs if w > 0.0 for x in _leaves(m, segment, weight * w, first)]
    if isinstance(map_, Chain):
        *before, last = map_.steps
        sigmoids = tuple(step for step in before if isinstance(step, Logistic))
        if len(sigmoids) == len(before):
            return _leaves(last, segment, weight, first + sigmoids)
    raise InputError(
        f"a segment's map of kind {map_.kind!r} cannot be written as an expression (chains may "
        "only begin with sigmoids). Apply it in memory: calibrate."
    )


def _slots(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Leaves of the same form together, at most one of each segment."""
    slots: dict[tuple[Any, ...], list[Leaf]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for leaf in leaves:
        owner = (leaf.segment, leaf.form)
        slots.setdefault((leaf.form, seen[owner]), []).append(leaf)
        seen[owner] += 1
    return list(slots.values())


# --- columns of parameters ----------------------------------------------------------------------


def _parameters(slot: Sequence[Leaf], place: Mapping[int, int]) -> dict[str, Array]:
    """Weights and the sigmoids' coefficients, a row per segment, NaN-free: 0 where it has none."""
    rows = [place[leaf.segment] for leaf in slot]

    def column(values: list[float], missing: float = 0.0) -> Array:
        filled = np.full(len(place), missing)
        filled[rows] = values
        return filled

    found = {"weight": column([leaf.weight for leaf in slot])}
    for step, maps in enumerate(_sigmoids(slot)):
        found[f"{step}.intercept"] = column([m.intercept for m in maps])
        terms = [dict(m.terms) for m in maps]
        for name in FEATURES:
            if any(t.get(name) for t in terms):
                found[f"{step}.{name}"] = column([t.get(name, 0.0) for t in terms])
        if any(m.clip is not None for m in maps):
            for end, side in enumerate(("least", "most")):
                found[f"{step}.{side}"] = column([(m.clip or ALL)[end] for m in maps], ALL[end])
    return found


def _sigmoids(slot: Sequence[Leaf]) -> list[tuple[Logistic, ...]]:
    """For each step that is a sigmoid, the map of every leaf."""
    steps = zip(*((*leaf.first, leaf.last) for leaf in slot), strict=True)
    return [maps for maps in steps if isinstance(maps[0], Logistic)]


def _sigmoid(s: nw.Expr, step: int, mine: Mapping[str, nw.Expr], sheet: Sheet) -> nw.Expr:
    own = {n.split(".", 1)[1]: c for n, c in mine.items() if n.startswith(f"{step}.")}
    clip = (own["least"], own["most"]) if "least" in own else None
    terms = {name: own[name] for name in FEATURES if name in own}
    return logistic(s, own["intercept"], terms, clip, sheet)


# --- the value of a slot ------------------------------------------------------------------------


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
        axis = axis.then(axis.value, step, trend(step))
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
