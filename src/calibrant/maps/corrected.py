"""A map whose logit is moved along a line: the correction becomes a part of the map."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map
from calibrant.maps.chain import Chain
from calibrant.maps.identity import Identity
from calibrant.maps.interval import Interval
from calibrant.maps.logistic import Logistic
from calibrant.maps.piecewise import LARGEST_LOGIT, Piecewise

__all__ = ["corrected"]


@functools.singledispatch
def corrected(map_: Map, intercept: float, slope: float = 1.0) -> Map:
    """The map σ(intercept + slope · logit of what ``map_`` gives), slope above 0.

    A formula of logits takes the correction into its own numbers, and steps into their values;
    anything else is followed by one more step, which later corrections change. So a map does not
    grow with the number of its corrections.

    Notes
    -----
    The logit of a formula is equal to that of the chain, up to the rounding of sums and products:
    2⁻⁵² of the largest term for each correction. A chain also rounds the probability between two
    steps, which costs it up to 2⁻⁵³/(1 − p) in the logit, and takes that of 0 and 1 as −744 and 37;
    a formula has no such step. Values of steps are those of the chain bit for bit. O(size of map).

    >>> corrected(Logistic(0.5, (("x", 2.0),)), 1.0, 0.5)
    Logistic(σ(1.25 +1·x))
    >>> corrected(corrected(Piecewise.linear([0, 1], [0.1, 0.8]), 1.0), 0.5).steps[1]
    Logistic(σ(1.5 +1·z))
    """
    return Chain((map_, _line(intercept, slope)))


def _line(intercept: float, slope: float) -> Logistic:
    if not slope > 0.0:
        raise InputError(f"the slope of a correction must be above 0, but {slope:g} came.")
    return Logistic(intercept, (("z", slope),))


@corrected.register
def _(map_: Identity, intercept: float, slope: float = 1.0) -> Map:
    return _line(intercept, slope)


@corrected.register
def _(map_: Logistic, intercept: float, slope: float = 1.0) -> Map:
    line = _line(intercept, slope)
    try:
        return replace(
            map_,
            intercept=intercept + slope * map_.intercept,
            terms=tuple((name, slope * c) for name, c in map_.terms),
        )
    except InputError:  # numbers beyond what a formula may hold
        return Chain((map_, line))


@corrected.register
def _(map_: Piecewise, intercept: float, slope: float = 1.0) -> Map:
    line = _line(intercept, slope)
    if map_.output == "logit":

        def moved(values: Array) -> Array:
            return np.clip(intercept + slope * values, -LARGEST_LOGIT, LARGEST_LOGIT)

        return replace(map_, left=moved(map_.left), right=moved(map_.right))
    if map_.is_step:
        return replace(map_, left=line(map_.left), right=line(map_.right))
    return Chain((map_, line))  # a line of probabilities is no line after it


@corrected.register
def _(map_: Chain, intercept: float, slope: float = 1.0) -> Map:
    *first, last = _merged(map_)
    after = corrected(last, intercept, slope)
    steps = (*first, *(after.steps if isinstance(after, Chain) else (after,)))
    return steps[0] if len(steps) == 1 else Chain(steps)


def _merged(map_: Chain) -> list[Map]:
    """The steps, without chains in chains and corrections that the step before can take."""
    merged: list[Map] = []
    for step in map_.steps:
        for one in _merged(step) if isinstance(step, Chain) else [step]:
            line = _as_line(one)
            before = merged[-1] if merged else None
            if line is not None and isinstance(before, Logistic):
                taken = corrected(before, *line)
                merged[-1:] = taken.steps if isinstance(taken, Chain) else (taken,)
            else:
                merged.append(one)
    return merged


def _as_line(map_: Map) -> tuple[float, float] | None:
    """Intercept and slope of a rising line on the logit scale, if the map is one."""
    if not isinstance(map_, Logistic) or map_.clip is not None or len(map_.terms) != 1:
        return None
    (name, slope), *_ = map_.terms
    return (map_.intercept, slope) if name == "z" and slope > 0.0 else None


@corrected.register
def _(map_: Interval, intercept: float, slope: float = 1.0) -> Map:
    low, high, at = (corrected(m, intercept, slope) for m in (map_.lower, map_.upper, map_.point))
    return Interval(low, high, at, map_.level)
