"""What is known of a map without evaluating it: whether it rises, whether its bits are sure, and
what scores it seems to be for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from calibrant.errors import ParameterError
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise

__all__ = ["collapsed", "exact", "of_probabilities", "trend"]


@functools.singledispatch
def trend(map_: Map) -> int:
    """1 where the map never falls, −1 where it never rises, 0 where that is not known."""
    return 0


@trend.register
def _(map_: Identity) -> int:
    return 1


@trend.register
def _(map_: Interval) -> int:
    return trend(map_.point)


@trend.register
def _(map_: Logistic) -> int:
    signs = {int(np.sign(c)) for name, c in map_.terms if c}
    if any(name == "z2" and c for name, c in map_.terms) or len(signs) > 1:
        return 0
    return signs.pop() if signs else 1


@trend.register
def _(map_: Piecewise) -> int:
    values = np.column_stack((map_.left, map_.right)).ravel()
    if (values[1:] >= values[:-1]).all():
        return 1
    return -1 if (values[1:] <= values[:-1]).all() else 0


@trend.register
def _(map_: Mixture) -> int:
    trends = {trend(m) for m, w in zip(map_.members, map_.weights, strict=True) if w > 0.0}
    return trends.pop() if len(trends) == 1 else 0


@trend.register
def _(map_: Chain) -> int:
    return int(np.prod([trend(step) for step in map_.steps]))


@functools.singledispatch
def exact(map_: Map, axis: Any) -> bool:
    """Whether every engine gives the same bits: no ln or exp between the chooser and the value."""
    return False


@exact.register
def _(map_: Identity, axis: Any) -> bool:
    return axis.function is None


@exact.register
def _(map_: Interval, axis: Any) -> bool:
    return exact(map_.point, axis)


@exact.register
def _(map_: Piecewise, axis: Any) -> bool:
    return map_.is_step


def collapsed(map_: Mixture) -> Piecewise | None:
    """The mixture as one piecewise map, if it is one exactly."""
    try:
        return map_.collapse()
    except ParameterError:  # members of several scales, or smooth ones
        return None


@functools.singledispatch
def of_probabilities(map_: Map) -> bool:
    """Whether a map looks like one of scores in [0, 1].

    >>> of_probabilities(Identity()), of_probabilities(Logistic(0.0, (("x", 1.0),)))
    (True, False)
    """
    return False


@of_probabilities.register
def _(map_: Identity) -> bool:
    return True


@of_probabilities.register
def _(map_: Logistic) -> bool:
    return any(name != "x" for name, _ in map_.terms)


@of_probabilities.register
def _(map_: Piecewise) -> bool:
    inside = bool(map_.x[0] >= 0.0 and map_.x[-1] <= 1.0)
    return map_.input == "logit" or (inside and len(map_.x) > 1)


@of_probabilities.register
def _(map_: Chain) -> bool:
    return of_probabilities(map_.steps[0])


@of_probabilities.register
def _(map_: Mixture) -> bool:
    return all(of_probabilities(member) for member in map_.members)


@of_probabilities.register
def _(map_: Interval) -> bool:
    return of_probabilities(map_.point)
