"""What can be done with maps before anything is written."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.export.known import collapsed
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Interval,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    VectorMixture,
)

__all__ = ["applied", "size"]

Array = NDArray[np.float64]


def applied(maps: Sequence[Map], values: Array) -> Array:
    """What maps, one after another, make of values.

    >>> from calibrant.maps import Identity
    >>> applied((Identity(),), np.array([2.0])).tolist()
    [1.0]
    """
    for map_ in maps:
        values = map_(values)
    return values


@functools.singledispatch
def size(map_: Map) -> int:
    """How many knots and formulas an expression of the map would spell out."""
    return 1


@size.register
def _(map_: Piecewise) -> int:
    return len(map_.x)


@size.register
def _(map_: Interval) -> int:
    return size(map_.point)


@size.register
def _(map_: Chain) -> int:
    return sum(size(step) for step in map_.steps)


@size.register
def _(map_: Mixture) -> int:
    whole = collapsed(map_)
    return sum(size(member) for member in map_.members) if whole is None else size(whole)


@size.register
def _(map_: Segmented) -> int:
    shrunk = 0 if map_.weights is None else size(map_.default) * int((map_.weights < 1.0).sum())
    return size(map_.default) + sum(size(member) for member in map_.maps) + shrunk


@size.register(Columns)
@size.register(Coded)
def _(map_: Columns | Coded) -> int:
    return sum(size(member) for member in map_.maps)


@size.register
def _(map_: VectorMixture) -> int:
    return sum(size(member) for member in map_.members)
