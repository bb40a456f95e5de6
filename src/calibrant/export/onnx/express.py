"""Maps of one score as graphs, each kind in its own way.

A comparison decides as NumPy decides, whatever the last bit of a runtime's logarithm: knots are
moved to the scale of the tensor that comes from outside, to the exact number (`plan.borders`).
What a runtime's ln and exp change is the value within a piece, in its last digits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.onnx.axis import Axis, Made
from calibrant.export.onnx.formulas import (
    between_logits,
    log_of,
    logit_of,
    neg_log_rest_of,
    sigmoid_of,
    softplus_of,
    sum_of,
)
from calibrant.export.onnx.graph import Tensor
from calibrant.export.onnx.tables import read, tables_of
from calibrant.losses import LARGEST
from calibrant.maps import Chain, Identity, Logistic, Map, Mixture, Piecewise
from calibrant.maps.logistic import FEATURES, FEATURES_OF_LOGIT, clip_logits

__all__ = ["after", "express", "logistic", "piecewise", "probability", "refuse_large"]

Array = NDArray[np.float64]

#: the largest coefficient or end of a line whose products float32 can hold
LARGEST_IN_FLOAT32 = 1e18


def probability(map_: Map, axis: Axis) -> Tensor:
    """The map's probability of what an axis holds."""
    return express(map_.simple, axis).score()


@functools.singledispatch
def express(map_: Map, axis: Axis) -> Made:
    """A simple map of an axis."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as ONNX. Apply it in memory: calibrate, or "
        "predict_proba for several classes."
    )


@express.register
def _(map_: Identity, axis: Axis) -> Made:
    return Made(
        lambda: axis.chooser.graph.within(axis.score.make(), 0.0, 1.0),
        lambda: between_logits(axis.logit.make()),
    )


@express.register
def _(map_: Logistic, axis: Axis) -> Made:
    return logistic([map_], axis, None)


@express.register
def _(map_: Piecewise, axis: Axis) -> Made:
    return piecewise([map_], axis, None)


@express.register
def _(map_: Chain, axis: Axis) -> Made:
    *first, last = map_.steps
    for step in first:
        axis = after(step, axis)
    return express(last, axis)


@express.register
def _(map_: Mixture, axis: Axis) -> Made:
    parts = [
        express(member, axis).score() * float(weight)
        for weight, member in zip(map_.weights, map_.members, strict=True)
        if weight > 0.0
    ]
    return _given(axis.chooser.graph.within(sum_of(parts), 0.0, 1.0))


def _given(p: Tensor) -> Made:
    return Made(lambda: p, lambda: logit_of(p))


def after(step: Map, axis: Axis) -> Axis:
    """The axis that the next map of a chain reads."""
    return axis.then(step, express(step, axis), step.trend)


# --- pieces -------------------------------------------------------------------------------------


def piecewise(maps: Sequence[Piecewise], axis: Axis, code: Tensor | None) -> Made:
    """Piecewise maps of the same scales, steps or lines; ``code`` numbers each row's own."""
    graph, scale = axis.chooser.graph, axis.logit if maps[0].input == "logit" else axis.score
    chooser, function = axis.chooser, scale.function
    if axis.trend == 0:
        _refuse_jumps(maps)
        chooser, function = scale.make(), None
    if graph.dtype != np.float64 and not maps[0].is_step:
        _refuse_large_lines(maps, function is None)
    tables = tables_of(maps, function, axis.trend < 0, graph.dtype)
    value = read(tables, chooser, code, scale.make)
    if maps[0].output == "logit" and not maps[0].is_step:
        return Made(lambda: sigmoid_of(value), lambda: between_logits(value))
    return _given(value)


def _refuse_jumps(maps: Sequence[Piecewise]) -> None:
    """After maps that neither rise nor fall only lines do: neighbours agree at a shared knot."""
    if any(not np.array_equal(map_.left, map_.right) for map_ in maps):
        raise InputError(
            "a chain whose first maps neither rise nor fall and whose last one jumps cannot be "
            "written as ONNX: a runtime's rounding could choose the wrong side of a jump. Apply it "
            "in memory: calibrate."
        )


def _refuse_large_lines(maps: Sequence[Piecewise], direct: bool) -> None:
    """Refuse lines of which float32 cannot hold the ends. Knots that the number itself is compared
    with may be anywhere: lines of it end where float32 ends."""
    refuse_large(*(v for map_ in maps for v in (map_.left, map_.right)))
    if not direct:
        refuse_large(*(map_.x for map_ in maps))


# --- formulas -----------------------------------------------------------------------------------


#: φ by name, from what an axis holds; z² is z times z
FROM_SCORE: dict[str, Callable[[Axis], Tensor]] = {
    "x": lambda axis: axis.score.make(),
    "z": lambda axis: axis.logit.make(),
    "ln_p": lambda axis: log_of(axis.score.make(), most=LARGEST),
    "neg_ln_1mp": lambda axis: neg_log_rest_of(axis.score.make()),
}
#: the same where the score has been computed: its logit keeps what rounding to 1 has lost
FROM_LOGIT: dict[str, Callable[[Axis], Tensor]] = {
    **FROM_SCORE,
    "ln_p": lambda axis: -softplus_of(-axis.logit.make()),
    "neg_ln_1mp": lambda axis: softplus_of(axis.logit.make()),
}


def logistic(maps: Sequence[Logistic], axis: Axis, code: Tensor | None) -> Made:
    """σ(intercept + Σ coefficient · φ), with the coefficients of each row's own map.

    Either all of the maps clip scores, or none does.
    """
    graph = axis.chooser.graph
    intercepts = np.array([map_.intercept for map_ in maps])
    terms = [dict(map_.terms) for map_ in maps]
    used = dict.fromkeys(name for term in terms for name, c in term.items() if c)
    coefficients = {name: np.array([term.get(name, 0.0) for term in terms]) for name in used}
    if graph.dtype != np.float64:
        refuse_large(intercepts, *coefficients.values())
    total = graph.chosen(intercepts, code)
    if not used and code is None:
        total = graph.like(axis.chooser, intercepts[0])
    for name, values in coefficients.items():
        total = total + graph.chosen(values, code) * _feature(name, maps, axis, code)
    return Made(lambda: sigmoid_of(total), lambda: between_logits(total))


def refuse_large(*values: Array) -> None:
    """Refuse numbers whose products or differences would overflow in float32."""
    largest = max(float(np.abs(part).max(initial=0.0)) for part in values)
    if largest > LARGEST_IN_FLOAT32:
        raise InputError(
            f"the coefficients of a formula, and the knots and logits of lines, must be at most "
            f"{LARGEST_IN_FLOAT32:g} in float32, but {largest:g} came. Export with float=64."
        )


def _feature(name: str, maps: Sequence[Logistic], axis: Axis, code: Tensor | None) -> Tensor:
    """φ of the clipped score.

    All but z² rise, so it is they that are clipped, not the score: there is no 1 − 1e-9 among
    float32, but there is its logit.
    """
    if name == "z2":
        z = _feature("z", maps, axis, code)
        return z * z
    graph, made = axis.chooser.graph, FROM_SCORE if axis.score.function is None else FROM_LOGIT
    value = made[name](axis)
    on_logit = axis.logit.function is None
    if maps[0].clip is None and not on_logit:
        return value
    ends = np.array([_ends(name, map_.clip, on_logit) for map_ in maps])
    return graph.within(value, graph.chosen(ends[:, 0], code), graph.chosen(ends[:, 1], code))


def _ends(name: str, clip: tuple[float, float] | None, on_logit: bool) -> Array:
    """φ of both ends of an interval."""
    if on_logit:
        return FEATURES_OF_LOGIT[name](np.array(clip_logits(clip)))
    return FEATURES[name](np.array(clip))
