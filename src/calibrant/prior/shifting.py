"""A map moved to another base rate: a map again, of the kinds that every export knows."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    VectorMap,
    VectorMixture,
)
from calibrant.maps.combiners import singled_out
from calibrant.maps.corrected import corrected
from calibrant.prior.shifts import shift_odds

__all__ = ["shifted"]

Array = NDArray[np.float64]


@functools.singledispatch
def shifted(map_: Map, factor: Array) -> Map:
    """The map whose odds are ``factor`` times those of ``map_``.

    What one more step on the logit scale after it would give, see `corrected`. Maps
    to classes take a factor of each class's probability, maps to labels one of each label's odds.

    >>> from calibrant.maps import Logistic
    >>> shifted(Logistic(0.5, (("x", 2.0),)), np.array(np.e))
    Logistic(σ(1.5 +2·x))
    >>> shifted(Piecewise.step([0.3], [0.5, 0.75]), np.array(1 / 3))([0.1, 0.4]).tolist()
    [0.25, 0.5]
    """
    return corrected(map_, float(np.log(factor)))


# --- one score ------------------------------------------------------------------------------------


@shifted.register
def _(map_: Piecewise, factor: Array) -> Map:
    if _keeps_ends(map_):
        left, right = (shift_odds(values, factor) for values in (map_.left, map_.right))
        return replace(map_, left=left, right=right)
    return corrected(map_, float(np.log(factor)))


@shifted.register
def _(map_: Chain, factor: Array) -> Map:
    *first, last = map_.steps
    if _keeps_ends(last):
        return Chain((*first, shifted(last, factor)))
    return corrected(map_, float(np.log(factor)))


def _keeps_ends(map_: Map) -> bool:
    """Whether its values are moved one by one: then 0 and 1 stay what they are."""
    return isinstance(map_, Piecewise) and map_.output == "probability" and map_.is_step


@shifted.register
def _(map_: Interval, factor: Array) -> Map:
    lower, upper, point = (shifted(m, factor) for m in (map_.lower, map_.upper, map_.point))
    return Interval(lower, upper, point, map_.level)


@shifted.register
def _(map_: Segmented, factor: Array) -> Map:
    """Each segment's map is moved as mixed: a mixture of moved maps would be another one."""
    members = tuple(shifted(_whole(map_, i), factor) for i in range(len(map_.keys)))
    default = shifted(map_.default, factor)
    return Segmented(default, map_.keys, members, default_keys=map_.default_keys)


def _whole(map_: Segmented, i: int) -> Map:
    """The map of segment i on its own, which holds the default at most once."""
    if map_.input == "score":
        return map_.member(map_.keys[i])
    own, share = map_.maps[i], 1.0 if map_.weights is None else float(map_.weights[i])
    if share == 1.0:
        return Chain((map_.default, own))
    # of what the default says, the default's own part is that itself
    return Chain((map_.default, Mixture(np.array([share, 1.0 - share]), (own, Identity()))))


# --- several classes or labels --------------------------------------------------------------------


@shifted.register
def _(map_: VectorMap, factor: Array) -> Map:
    raise InputError(
        f"a map of kind {map_.kind!r} has no prior shift among the kinds of maps. Adjust what it "
        "gives instead: adjust_prior(calibrator.predict_proba(scores), ...)."
    )


@shifted.register
def _(map_: Softmax, factor: Array) -> Map:
    return replace(map_, bias=map_.bias + np.log(factor))


@shifted.register
def _(map_: Columns, factor: Array) -> Map:
    return Columns(tuple(shifted(m, f) for m, f in zip(map_.maps, factor, strict=True)))


@shifted.register
def _(map_: VectorMixture, factor: Array) -> Map:
    used = np.flatnonzero(map_.weights)
    if len(used) > 1:
        raise InputError(
            "an average of several distributions cannot be moved to other rates as one map: the "
            "average of the moved ones is another one. Adjust what it gives instead: "
            "adjust_prior(calibrator.predict_proba(scores), ...)."
        )
    only: Any = shifted(map_.members[used[0]], factor)
    return replace(map_, weights=np.ones(1), members=(only,))


@shifted.register
def _(map_: Coded, factor: Array) -> Map:
    """p ∝ r: each column of a one-against-all code is scaled, the largest factor counting as 1."""
    order = singled_out(map_.code)
    if map_.combine != "normalize" or order is None:
        raise InputError(
            f"a coded map that combines by {map_.combine!r} cannot be moved to other rates: its "
            "columns are weighed against each other before there are classes. Adjust what it "
            "gives instead: adjust_prior(calibrator.predict_proba(scores), ...); or fit with "
            'combine="normalize".'
        )
    share = np.empty(len(order))
    share[order] = factor / factor.max()
    return replace(map_, maps=tuple(map(_scaled, map_.maps, share.tolist())))


def _scaled(map_: Map, share: float) -> Map:
    """share · map."""
    if share == 1.0:
        return map_
    if isinstance(map_, Piecewise) and map_.output == "probability":
        return replace(map_, left=share * map_.left, right=share * map_.right)
    return Mixture(np.array([share, 1.0 - share]), (map_, Piecewise.constant(0.0)))
