"""Maps of one score as SQL: formulas, and pieces chosen by comparisons or by a join.

What follows a map in a chain is written into its branches: a step becomes its final number, and a
line knows where it lies. So a comparison is always with the score itself, whose bits every engine
has in common, and takes the side that NumPy takes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.pieces import pieces
from calibrant.export.sql.axis import Axis
from calibrant.export.sql.folded import applied
from calibrant.export.sql.formulas import (
    STEEPEST,
    constant,
    factor_of,
    logit_of,
    regimes,
    sigmoid_of,
    total_at,
    total_of,
)
from calibrant.export.sql.layout import case, clamp, inside
from calibrant.export.sql.lines import beyond, bounds, is_steep, line, linked, numbered_line
from calibrant.export.sql.page import Page
from calibrant.losses import LARGEST, SMALLEST, logit, sigmoid
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.plan.borders import LARGEST_DOUBLE

__all__ = ["refuse_jumps", "tree", "write"]

Array = NDArray[np.float64]
Then = tuple[Map, ...]

#: branches of one CASE; more are a tree
WIDE = 8
#: the largest intercept of a sigmoid
FARTHEST = 1e290
UNIT = Piecewise.linear([0.0, 1.0], [0.0, 1.0])


@functools.singledispatch
def write(map_: Map, axis: Axis, then: Then, page: Page) -> str:
    """The map of an axis, and then other maps of that, as SQL."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as SQL of one column. Apply it in memory: "
        "calibrate, or predict_proba for several classes."
    )


@write.register
def _(map_: Identity, axis: Axis, then: Then, page: Page) -> str:
    return write(UNIT, axis, then, page)


@write.register
def _(map_: Interval, axis: Axis, then: Then, page: Page) -> str:
    return write(map_.point, axis, then, page)


@write.register
def _(map_: Segmented, axis: Axis, then: Then, page: Page) -> str:
    return write(map_.default, axis, then, page)  # as within other maps; see `segments`


@write.register
def _(map_: Chain, axis: Axis, then: Then, page: Page) -> str:
    first, *rest = map_.steps
    return write(first, axis, (*rest, *then), page)


@write.register
def _(map_: Mixture, axis: Axis, then: Then, page: Page) -> str:
    whole = map_.collapsed
    if whole is not None:
        return write(whole, axis, then, page)
    number, own = page.dialect.number, page.precise if then else page
    pairs = zip(map_.weights.tolist(), map_.members, strict=True)
    terms = [
        inside(f"{number(w)} * (", write(member, axis, (), own), ")")
        for w, member in pairs
        if w > 0.0
    ]
    text = clamp("\n+ ".join(terms), page.dialect, high=1.0)
    return follow(text, map_, map_.trend, axis, then, page)


@write.register
def _(map_: Logistic, axis: Axis, then: Then, page: Page) -> str:
    if then and page.lookup:  # a join sees the whole value, not one branch of it
        return follow(write(map_, axis, (), page), map_, map_.trend, axis, then, page)
    if _keeps_rising(map_) and not 0.0 <= axis.range[0] <= axis.range[1] <= 1.0:
        return _in_three(map_, axis, then, page)
    low, high, bounded = regimes(map_, page.dialect)
    least, most = axis.range
    number, own = page.dialect.number, axis.value
    ends = [("<=", low)] if least <= low else []
    ends += [(">=", high)] if most >= high else []
    branches = [
        (f"{own} {mark} {number(end)}", _number(constant(map_, end), then, page))
        for mark, end in ends
    ]
    text = sigmoid_of(total_of(map_, axis, page.dialect), page.dialect, bounded)
    text = follow(text, map_, map_.trend, axis.valued(low, high), then, page)
    return case(branches, text) if branches else text


def _keeps_rising(map_: Logistic) -> bool:
    """Whether logarithms end at 0 and 1, but the score itself does not."""
    names = {name for name, c in map_.terms if c}
    return map_.clip is None and "x" in names and len(names) > 1


def _in_three(map_: Logistic, axis: Axis, then: Then, page: Page) -> str:
    """Below 0 and above 1 only the term of the score changes: a sigmoid of its own."""
    steady = Logistic(map_.intercept, tuple(term for term in map_.terms if term[0] != "x"))
    levels = total_at(steady, np.array([0.0, 1.0]))
    # beyond what a map takes a sigmoid is a jump: a power of two less of all does not move it
    share = 2.0 ** -max(0, int(np.frexp(np.abs(levels).max() / FARTHEST)[1]))
    slope = ("x", dict(map_.terms)["x"] * share)
    below, above = (Logistic(level, (slope,)) for level in (levels * share).tolist())
    number, own = page.dialect.number, axis.value
    branches = [
        (f"{own} <= {number(0.0)}", write(below, axis.valued(-LARGEST_DOUBLE, 0.0), then, page)),
        (f"{own} >= {number(1.0)}", write(above, axis.valued(1.0, LARGEST_DOUBLE), then, page)),
    ]
    inner = Logistic(map_.intercept, map_.terms, clip=(0.0, 1.0))
    return case(branches, write(inner, axis.valued(SMALLEST, LARGEST), then, page))


# --- pieces -------------------------------------------------------------------------------------


@write.register
def _(map_: Piecewise, axis: Axis, then: Then, page: Page) -> str:
    if axis.trend == 0:
        refuse_jumps(map_, page)
        axis = Axis(axis.value, axis.value, trend=0)  # what comes after must not jump either
    found = axis.regions(map_.x, logit if map_.input == "logit" else None)
    columns = pieces(map_, relative=page.relative or bool(then))
    steep = is_steep(map_, axis)
    bounded = columns | bounds(map_, axis, found) if steep.any() else columns
    if page.lookup and len(found.low) > 1:
        if "value" in columns:
            values = {"value": applied(then, columns["value"])}
            return page.look_up(found, values, axis.chooser)["value"]
        joined = page.look_up(found, bounded, axis.chooser)
        value = line(_input(map_, axis, page), joined, page)
        text = linked(value, map_, joined, page)
        return follow(text, map_, map_.trend, axis, then, page)
    # one sigmoid around all pieces reads better than one in each
    outside = map_.output == "logit" and "value" not in columns and not then
    leaves = []
    for low, high, i in zip(*found, strict=True):
        own = bounded if steep[i] else columns
        piece = {name: float(column[i]) for name, column in own.items()}
        leaves.append(_leaf(map_, piece, axis.between(low, high), then, outside, page))
    text = tree(axis.chooser, found.low, leaves, page)
    if not outside:
        return text
    largest = max(np.abs(map_.left).max(), np.abs(map_.right).max())
    return sigmoid_of(text, page.dialect, bounded=largest <= STEEPEST)


def _input(map_: Piecewise, axis: Axis, page: Page) -> str:
    """What the lines of a map are lines of."""
    own = logit_of if map_.input == "logit" else factor_of
    return own(axis, page.dialect)


def _leaf(
    map_: Piecewise,
    piece: Mapping[str, float],
    axis: Axis,
    then: Then,
    outside: bool,
    page: Page,
) -> str:
    """The value on one piece; without its sigmoid if that is written outside of all of them."""
    rise = piece.get("slope", piece.get("high", 0.0) - piece.get("low", 0.0))
    low, high = piece.get("least"), piece.get("most")
    flat = low if low == high else None
    if "value" in piece or rise == 0.0:
        flat = piece.get("value", piece.get("base", piece.get("low", 0.0)))
    if flat is not None:
        level = np.array([flat])
        if "value" not in piece and map_.output == "logit" and not outside:
            level = sigmoid(level)
        return _number(level, then, page)
    text = numbered_line(_input(map_, axis, page), piece, page)
    if low is None and map_.output == "probability" and not then:
        low, high = beyond(map_, piece, axis)
    text = clamp(text, page.dialect, low, high) if (low, high) != (None, None) else text
    if map_.output == "logit" and not outside:
        text = sigmoid_of(text, page.dialect, bounded=False)
    return follow(text, map_, int(np.sign(rise)), axis, then, page)


def tree(chooser: str, low: Sequence[float] | Array, leaves: Sequence[str], page: Page) -> str:
    """A balanced tree of comparisons with the lower ends of regions, a leaf for each region."""
    kept = [i for i, text in enumerate(leaves) if i == 0 or text != leaves[i - 1]]
    return _branch(chooser, [float(low[i]) for i in kept], [leaves[i] for i in kept], page)


def _branch(chooser: str, low: list[float], leaves: list[str], page: Page) -> str:
    count = len(leaves)
    if count == 1:
        return leaves[0]
    inner = WIDE
    while inner * WIDE < count:
        inner *= WIDE
    parts = count if count <= WIDE else -(-count // inner)
    cuts = [count * i // parts for i in range(parts + 1)]
    values = [_branch(chooser, low[a:b], leaves[a:b], page) for a, b in itertools.pairwise(cuts)]
    conditions = [f"{chooser} < {page.dialect.number(low[cut])}" for cut in cuts[1:-1]]
    return case(list(zip(conditions, values[:-1], strict=True)), values[-1])


# --- one after another --------------------------------------------------------------------------


def follow(
    text: str, step: Callable[[Array], Array], slope: int, axis: Axis, then: Then, page: Page
) -> str:
    """What comes after a map whose value is this text."""
    if not then:
        return text
    return write(then[0], axis.then(inside("(", text, ")"), step, slope), then[1:], page)


def _number(value: Array, then: Then, page: Page) -> str:
    return page.dialect.number(float(applied(then, value)[0]))


def refuse_jumps(map_: Piecewise, page: Page) -> None:
    """After maps that neither rise nor fall only lines do: neighbours agree at a shared knot."""
    if not np.array_equal(map_.left, map_.right):
        way = ', or try form="expression", which takes steps and lines apart' * page.lookup
        raise InputError(
            "a chain whose first maps neither rise nor fall and whose last one jumps cannot be "
            "written as SQL: an engine's rounding could choose the wrong side of a jump. Apply it "
            f"in memory (calibrate){way}."
        )
