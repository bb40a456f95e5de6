"""Maps as expressions of a database column: arithmetic, a few comparisons, or a lookup by join.

A comparison decides as NumPy decides, whatever the last bit of an engine's logarithm: knots are
moved to the scale of the column that is compared, to the exact double (`plan.borders`). What an
engine's ln and exp change is the value within a piece, in its last digits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.engines.sheet import Sheet
from calibrant.errors import InputError
from calibrant.export.pieces import pieces
from calibrant.losses import LARGEST, SMALLEST, logit
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.plan.borders import Regions, regions
from calibrant.plan.grids import Grid, grid_of, packed

__all__ = ["Axis", "express", "line", "logistic", "start"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: up to so many steps, and lines, are chosen by comparisons, more by a join
FEW, VERY_FEW = 16, 4
#: so many pieces of a cell share a row of the table
WIDE = 2


@dataclass(frozen=True)
class Axis:
    """What a map reads: the score, or what other maps have made of it.

    Parameters
    ----------
    value : expression, as the engine computes it
    chooser : name of a column whose bits are the same in every engine
    function : NumPy's function from chooser to value, or None where they are the same
    trend : 1 or −1 where the function rises or falls, 0 where it does neither
    """

    value: nw.Expr
    chooser: str
    function: Callable[[Array], Array] | None = None
    trend: int = 1

    def then(self, value: nw.Expr, step: Callable[[Array], Array], trend: int) -> Axis:
        """The axis after one more function, given as expression and in NumPy."""
        before = self.function
        composed = step if before is None else lambda s: step(before(s))
        return Axis(value, self.chooser, composed, self.trend * trend)


def start(column: str) -> Axis:
    """The axis of a column itself."""
    return Axis(nw.col(column), column)


# --- each kind of map ---------------------------------------------------------------------------


@functools.singledispatch
def express(map_: Map, axis: Axis, sheet: Sheet) -> nw.Expr:
    """The map of an axis as an expression; lookups are joined to the sheet's frame on the way."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as an expression of one column. Apply it "
        "in memory: calibrate, or predict_proba for several classes."
    )


@express.register
def _(map_: Identity, axis: Axis, sheet: Sheet) -> nw.Expr:
    return axis.value.clip(0.0, 1.0)


@express.register
def _(map_: Interval, axis: Axis, sheet: Sheet) -> nw.Expr:
    return express(map_.point, axis, sheet)


@express.register
def _(map_: Segmented, axis: Axis, sheet: Sheet) -> nw.Expr:
    return express(map_.default, axis, sheet)  # as within other maps; see `by_segment`


@express.register
def _(map_: Logistic, axis: Axis, sheet: Sheet) -> nw.Expr:
    terms = {name: sheet.constant(c) for name, c in map_.terms if c}
    clip = None if map_.clip is None else tuple(sheet.constant(end) for end in map_.clip)
    return logistic(axis.value, sheet.constant(map_.intercept), terms, clip, sheet)


@express.register
def _(map_: Chain, axis: Axis, sheet: Sheet) -> nw.Expr:
    *first, last = map_.steps
    for step in first:
        axis = after(step, axis, sheet)
    return express(last, axis, sheet)


@express.register
def _(map_: Mixture, axis: Axis, sheet: Sheet) -> nw.Expr:
    whole = map_.collapsed
    if whole is not None:
        return express(whole, axis, sheet)
    total = sheet.constant(0.0)
    for weight, member in zip(map_.weights, map_.members, strict=True):
        if weight > 0.0:
            total = total + sheet.constant(weight) * express(member, axis, sheet)
    return total.clip(0.0, 1.0)


@express.register
def _(map_: Piecewise, axis: Axis, sheet: Sheet) -> nw.Expr:
    axis = on_scale(map_, axis, sheet)
    found = regions(map_.x, axis.function, falling=axis.trend < 0)
    columns = pieces(map_)
    few = FEW if "value" in columns else VERY_FEW
    if len(found.low) <= few:
        value = _tree(found, columns, axis, sheet)
    else:
        knots = map_.x if np.array_equal(map_.left, map_.right) else None
        value = _look_up(found, columns, knots, axis, sheet)
    return linked(value, map_, sheet)


def linked(value: nw.Expr, map_: Piecewise, sheet: Sheet) -> nw.Expr:
    """The probability of a piece's value."""
    if map_.is_step:  # done in NumPy
        return value
    return sigmoid_of(value, sheet) if map_.output == "logit" else value.clip(0.0, 1.0)


def _look_up(
    found: Regions,
    columns: Mapping[str, Array],
    knots: Array | None,
    axis: Axis,
    sheet: Sheet,
) -> nw.Expr:
    """By a join with the cells: one row for each if all hold few pieces, but for some pieces in
    crowded cells, which comparisons choose; else a row for each piece in each cell."""
    grid = grid_of(found.low)
    cell, region = sheet.listed(grid, found)
    pack = packed(cell, region, WIDE)
    low, high, piece = found
    crowded = Regions(low[pack.crowded], high[pack.crowded], piece[pack.crowded])
    if len(pack.crowded) > sheet.most_branches:
        return _look_up_each(found, columns, grid, axis, sheet)
    hinges = _hinges(columns, knots, [found.piece[own] for own in pack.regions])
    table: dict[str, Array] = {} if hinges is None else hinges
    for i, own in enumerate(pack.regions if hinges is None else ()):
        table |= {f"{name}.{i}": c[found.piece[own]] for name, c in columns.items()}
        table |= {f"border.{i}": found.low[own]} if i else {}
    key = sheet.cell(axis.chooser, grid)
    joined = sheet.look_up(key, pack.cell.astype(np.int32), table)
    if hinges is not None and knots is not None:
        # flat beyond the knots: there the two slopes would cancel
        ends = (sheet.constant(float(knots[end])) for end in (0, -1))
        at = sheet.keep(between_ends(axis.value, *ends))
        bend = nw.max_horizontal(at - joined["knot"], sheet.constant(0.0))
        value = line(at, {n: joined[f"{n}.0"] for n in columns}) + joined["bend"] * bend
    else:
        value = _chosen(joined, columns, axis, len(pack.regions))
    if not len(pack.crowded):
        return value
    known = joined[f"{next(iter(columns))}.0"]
    return nw.when(known.is_null()).then(_tree(crowded, columns, axis, sheet)).otherwise(value)


def _chosen(
    joined: Mapping[str, nw.Expr], columns: Mapping[str, Array], axis: Axis, wide: int
) -> nw.Expr:
    """The piece among those of a cell that the borders between them choose."""
    at = [line(axis.value, {name: joined[f"{name}.{i}"] for name in columns}) for i in range(wide)]
    value = at[0]
    for i, later in enumerate(at[1:], start=1):
        value = nw.when(nw.col(axis.chooser) < joined[f"border.{i}"]).then(value).otherwise(later)
    return value


def _hinges(
    columns: Mapping[str, Array], knots: Array | None, pair: list[Index]
) -> dict[str, Array] | None:
    """Two lines that meet as one that bends: base + slope · s + bend · max(s − knot, 0).

    None where pieces are no such lines, or a cell holds two that are no neighbours.
    """
    if knots is None or set(columns) != {"base", "slope"} or len(pair) != 2:
        return None
    first, second = np.minimum(*pair), np.maximum(*pair)
    if (second - first > 1).any():
        return None
    base, slope = columns["base"], columns["slope"]
    knot = knots[np.minimum(first, len(knots) - 1)]
    bend = slope[second] - slope[first]
    return {"base.0": base[first], "slope.0": slope[first], "knot": knot, "bend": bend}


def _look_up_each(
    found: Regions, columns: Mapping[str, Array], grid: Grid, axis: Axis, sheet: Sheet
) -> nw.Expr:
    cell, region = sheet.listed(grid, found)
    table = {"low_": found.low[region], "high_": found.high[region]}
    table |= {name: column[found.piece[region]] for name, column in columns.items()}
    # NULL must find no row, of which there may be several
    known = ~nw.col(axis.chooser).is_null()
    key = nw.when(known).then(sheet.cell(axis.chooser, grid))
    joined = sheet.look_up(key, cell.astype(np.int32), table)
    sheet.within(axis.chooser, joined.pop("low_"), joined.pop("high_"))
    return line(axis.value, joined)


def after(step: Map, axis: Axis, sheet: Sheet) -> Axis:
    """The axis that the next map of a chain reads."""
    name = sheet.add(express(step, axis, sheet))
    if _exact(step, axis):
        return start(name)
    return axis.then(nw.col(name), step, step.trend)


def _exact(map_: Map, axis: Axis) -> bool:
    """Whether every engine gives the same bits: no ln or exp between the chooser and the value."""
    if isinstance(map_, Interval):
        return _exact(map_.point, axis)
    if isinstance(map_, Identity):
        return axis.function is None
    return isinstance(map_, Piecewise) and map_.is_step


def on_scale(map_: Piecewise, axis: Axis, sheet: Sheet) -> Axis:
    """The axis on the scale of the knots, where its function can be followed to them."""
    if axis.trend == 0:
        refuse_jumps(map_)
        axis = start(sheet.add(axis.value))
    if map_.input == "logit":
        axis = axis.then(sheet.keep(logit_of(axis.value, sheet)), logit, 1)
    return axis


def refuse_jumps(map_: Any) -> None:
    """After maps that neither rise nor fall only lines do: neighbours agree at a shared knot."""
    if not np.array_equal(map_.left, map_.right):
        raise InputError(
            "a chain whose first maps neither rise nor fall and whose last one jumps cannot be "
            "written as an expression: an engine's rounding could choose the wrong side of a "
            "jump. Apply it in memory: calibrate."
        )


# --- formulas -----------------------------------------------------------------------------------


def sigmoid_of(f: nw.Expr, sheet: Sheet) -> nw.Expr:
    """σ(f) = 1 / (1 + exp(−f)), with all digits of tiny ones; where exp is infinite it is 0.

    The divisor is a column: a division is written as a CASE that names it several times.
    """
    return 1.0 / sheet.keep(1.0 + (0.0 - f).exp())


def logit_of(p: nw.Expr, sheet: Sheet) -> nw.Expr:
    """ln p − ln(1 − p) of the clipped p, as `losses.logit`."""
    return features(p, {"z"}, sheet)["z"]


def features(s: nw.Expr, wanted: Collection[str], sheet: Sheet) -> dict[str, nw.Expr]:
    """φ by name, as in `maps.logistic`."""
    found = {"x": s}
    if set(wanted) <= {"x"}:
        return found
    p = sheet.keep(between_ends(s, sheet.constant(SMALLEST), sheet.constant(LARGEST)))
    # ln(1 − p) and not log1p: what is lost is below 1e-16
    if "ln_p" in wanted:
        found["ln_p"] = sheet.ln(p)
    if "neg_ln_1mp" in wanted:
        found["neg_ln_1mp"] = 0.0 - sheet.ln(1.0 - p)
    if {"z", "z2"} & set(wanted):
        z = sheet.ln(p / (1.0 - p))
        found |= {"z": z, "z2": z * z}
    return found


def logistic(
    s: nw.Expr,
    intercept: nw.Expr,
    terms: Mapping[str, nw.Expr],
    clip: tuple[nw.Expr, ...] | None,
    sheet: Sheet,
) -> nw.Expr:
    """σ(intercept + Σ coefficient · φ(s)), coefficients being constants or columns."""
    if clip is not None:
        s = between_ends(s, clip[0], clip[1])
    phi = features(s, terms, sheet)
    total = intercept
    for name, coefficient in terms.items():
        total = total + coefficient * phi[name]
    return sigmoid_of(total, sheet)


def between_ends(value: nw.Expr, least: nw.Expr, most: nw.Expr) -> nw.Expr:
    """The value moved into an interval; what becomes of NULL is up to the engine."""
    return nw.min_horizontal(nw.max_horizontal(value, least), most)


def line(s: nw.Expr, piece: Mapping[str, nw.Expr]) -> nw.Expr:
    """The value of a step, or at s on a line."""
    if "value" in piece:
        return piece["value"]
    if "base" in piece:
        return piece["base"] + s * piece["slope"]
    if "slope" in piece:
        return piece["low"] + (s - piece["start"]) * piece["slope"]
    low, high = piece["low"], piece["high"]
    value = low + (s * piece["scale"] - piece["start"]) / piece["width"] * (high - low)
    return between_ends(value, nw.min_horizontal(low, high), nw.max_horizontal(low, high))


def _tree(found: Regions, columns: Mapping[str, Array], axis: Axis, sheet: Sheet) -> nw.Expr:
    """A balanced tree of comparisons with the borders, a formula at each leaf."""

    def leaf(i: int) -> nw.Expr:
        piece = {name: float(column[found.piece[i]]) for name, column in columns.items()}
        if piece.get("slope") == 0.0:
            piece = {"value": piece.get("base", piece.get("low", 0.0))}
        return line(axis.value, {name: sheet.constant(v) for name, v in piece.items()})

    def branch(first: int, last: int) -> nw.Expr:
        if last - first == 1:
            return leaf(first)
        middle = (first + last) // 2
        below = nw.col(axis.chooser) < sheet.constant(found.low[middle])
        return nw.when(below).then(branch(first, middle)).otherwise(branch(middle, last))

    return branch(0, len(found.low))
