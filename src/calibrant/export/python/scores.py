"""Maps of one score as statements of a function.

A comparison decides as NumPy decides, whatever the last bit of a logarithm: where a map jumps, its
knots are moved to the scale of a variable whose bits are sure (`plan.borders`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.python.text import Function, Text, number, spread
from calibrant.losses import logit, sigmoid
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.plan.borders import regions

__all__ = ["Axis", "after", "function_of", "write"]

Array = NDArray[np.float64]

#: φ by name, of the variable that holds the score, as in `maps.logistic`
FEATURES: dict[str, Callable[[Function, str], str]] = {
    "x": lambda body, x: x,
    "z": lambda body, x: body.keep("z", f"_logit({x})"),
    "z2": lambda body, x: "({0} * {0})".format(FEATURES["z"](body, x)),
    "ln_p": lambda body, x: f"_ln({x})",
    "neg_ln_1mp": lambda body, x: f"_minus_ln_rest({x})",
}


@dataclass(frozen=True)
class Axis:
    """What a map reads: the score, or what other maps have made of it.

    Parameters
    ----------
    value : name of the variable that holds it
    chooser : name of a variable whose bits are NumPy's
    function : NumPy's function from chooser to value, or None where they are the same
    trend : 1 or −1 where the function rises or falls, 0 where it does neither
    """

    value: str = "score"
    chooser: str = "score"
    function: Callable[[Array], Array] | None = None
    trend: int = 1

    @property
    def sure(self) -> bool:
        """Whether the value's own bits are NumPy's."""
        return self.function is None

    def then(self, value: str, step: Callable[[Array], Array], trend: int) -> Axis:
        """The axis after one more function, of which the variable holds the value."""
        before = self.function
        composed = step if before is None else lambda s: step(before(s))
        return Axis(value, self.chooser, composed, self.trend * trend)


def function_of(map_: Map, text: Text) -> str:
    """The name of a private function of one score that evaluates the map."""
    body = Function(text, ("score: float",))
    body.add(f"return {write(map_, Axis(), body)}")
    return text.function(body)


def after(step: Map, axis: Axis, body: Function, hint: str = "p") -> Axis:
    """The axis that the next map of a chain reads: a variable that holds the step's value."""
    name = body.keep(hint, write(step, axis, body))
    return Axis(name, name) if _sure(step, axis.sure) else axis.then(name, step, step.trend)


# --- whether the bits are NumPy's ---------------------------------------------------------------


@functools.singledispatch
def _sure(map_: Map, given: bool) -> bool:
    """Whether the text gives NumPy's bits, if what the map is given has them.

    Sums, products, quotients and comparisons are the same everywhere; ln and exp are not.
    """
    return False


@_sure.register
def _(map_: Identity, given: bool) -> bool:
    return given


@_sure.register
def _(map_: Interval, given: bool) -> bool:
    return _sure(map_.point, given)


@_sure.register
def _(map_: Segmented, given: bool) -> bool:
    return _sure(map_.default, given)


@_sure.register
def _(map_: Piecewise, given: bool) -> bool:
    return map_.is_step or (given and (map_.input, map_.output) == ("score", "probability"))


@_sure.register
def _(map_: Logistic, given: bool) -> bool:
    return not any(c for _, c in map_.terms)


@_sure.register
def _(map_: Mixture, given: bool) -> bool:
    if map_.collapsed is None:
        return all(_sure(member, given) for member in map_.members)
    # a collapsed sum of steps has the same terms in the same order
    return all(isinstance(member, Piecewise) and member.is_step for member in map_.members)


@_sure.register
def _(map_: Chain, given: bool) -> bool:
    for step in map_.steps:
        given = _sure(step, given)
    return given


# --- each kind of map ---------------------------------------------------------------------------


@functools.singledispatch
def write(map_: Map, axis: Axis, body: Function) -> str:
    """The map of an axis as an expression; the body gets the statements that it needs."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as Python. Save it with calibrant.save and "
        "apply it with calibrant.load."
    )


@write.register
def _(map_: Identity, axis: Axis, body: Function) -> str:
    return f"min(max({axis.value}, 0.0), 1.0)"


@write.register
def _(map_: Interval, axis: Axis, body: Function) -> str:
    return write(map_.point, axis, body)


@write.register
def _(map_: Segmented, axis: Axis, body: Function) -> str:
    return write(map_.default, axis, body)  # as within other maps


@write.register
def _(map_: Chain, axis: Axis, body: Function) -> str:
    *first, last = map_.steps
    for step in first:
        axis = after(step, axis, body)
    return write(last, axis, body)


@write.register
def _(map_: Logistic, axis: Axis, body: Function) -> str:
    terms = [(name, c) for name, c in map_.terms if c]
    if not terms:
        return number(float(sigmoid(np.array(map_.intercept))))
    x = axis.value
    if map_.clip is not None:
        low, high = (number(end) for end in map_.clip)
        x = body.keep("x", f"min(max({x}, {low}), {high})")
    products = [f"{number(c)} * {FEATURES[name](body, x)}" for name, c in terms]
    return f"_sigmoid({spread([number(map_.intercept), *products])})"


@write.register
def _(map_: Mixture, axis: Axis, body: Function) -> str:
    whole = map_.collapsed
    if whole is not None:
        return write(whole, axis, body)
    total, sign = body.name("total"), "="
    for weight, member in zip(map_.weights, map_.members, strict=True):
        if weight > 0.0:
            product = f"{number(weight)} * {write(member, axis, body)}"
            body.add(f"{total} {sign} {product}", sets=total)
            sign = "+="
    return f"min(max({total}, 0.0), 1.0)"


@write.register
def _(map_: Piecewise, axis: Axis, body: Function) -> str:
    if _is_constant(map_):
        return number(_probabilities(map_)[0])
    if map_.is_step:
        return _steps(map_, axis, body)
    jumps = not np.array_equal(map_.left, map_.right)
    chosen = _chosen(map_, axis, body) if jumps else None
    x = axis.value
    if map_.input == "logit":
        x = body.keep("z", f"_logit({x})")
    knots = body.text.numbers("KNOTS", map_.x, "the knots, in ascending order")
    if jumps:
        ends = [
            body.text.numbers("LEFT", map_.left, "what lines come to just before each knot"),
            body.text.numbers("RIGHT", map_.right, "what lines start from at each knot"),
        ]
    else:  # at a knot both lines agree, so any side will do
        ends = [body.text.numbers("VALUES", map_.left, "the value at each knot")] * 2
    piece = chosen or f"bisect.bisect_right({knots}, {x})"
    value = f"_on_line({x}, {knots}, {ends[0]}, {ends[1]}, {piece})"
    return f"_sigmoid({value})" if map_.output == "logit" else value


def _steps(map_: Piecewise, axis: Axis, body: Function) -> str:
    low, piece = _borders(map_, axis)
    cuts = body.text.numbers("CUTS", low, "the lowest scores of all steps but the first")
    values = body.text.numbers("VALUES", _probabilities(map_)[piece], "the value of each step")
    return f"{values}[bisect.bisect_right({cuts}, {axis.chooser})]"


def _chosen(map_: Piecewise, axis: Axis, body: Function) -> str:
    """How many knots are at or below the axis, as an expression of what is sure."""
    low, piece = _borders(map_, axis)
    cuts = body.text.numbers("CUTS", low, "the scores at which each next piece begins")
    found = f"bisect.bisect_right({cuts}, {axis.chooser})"
    if np.array_equal(piece, np.arange(len(piece))):
        return found
    pieces = body.text.table("PIECES", map(str, piece.tolist()), "the pieces in that order")
    return f"{pieces}[{found}]"


def _borders(map_: Piecewise, axis: Axis) -> tuple[Array, NDArray[np.int64]]:
    """The chooser's values at which the piece changes, and the pieces before, between and after."""
    function = axis.function
    if map_.input == "logit":
        function = axis.then("z", logit, 1).function
    if function is not None and axis.trend == 0:
        raise InputError(
            "a chain whose first maps neither rise nor fall and whose last one jumps cannot be "
            "written as Python: the last bit of a logarithm could choose the wrong side of a "
            "jump. Save it with calibrant.save and apply it with calibrant.load."
        )
    found = regions(map_.x, function, falling=axis.trend < 0)
    return found.low[1:], found.piece


def _probabilities(map_: Piecewise) -> Array:
    """The probability of each step, below the first knot and from each knot on."""
    values = np.concatenate((map_.left[:1], map_.right))
    return sigmoid(values) if map_.output == "logit" else values


def _is_constant(map_: Piecewise) -> bool:
    return bool((map_.left == map_.left[0]).all() and (map_.right == map_.left[0]).all())
