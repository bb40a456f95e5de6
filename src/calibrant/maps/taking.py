"""Whether a map can only be one of probabilities: it takes the logit of its scores."""

from __future__ import annotations

import functools

from calibrant.maps.base import Map
from calibrant.maps.chain import Chain
from calibrant.maps.coded import Coded
from calibrant.maps.columns import Columns
from calibrant.maps.identity import Identity
from calibrant.maps.interval import Interval
from calibrant.maps.logistic import Logistic
from calibrant.maps.mixture import Mixture
from calibrant.maps.piecewise import Piecewise
from calibrant.maps.segmented import Segmented
from calibrant.maps.softmax import Softmax
from calibrant.maps.vector_mixture import VectorMixture

__all__ = ["takes_probabilities"]


@functools.singledispatch
def takes_probabilities(map_: Map) -> bool:
    """Whether scores of the map must lie in [0, 1], since others have no logit.

    >>> takes_probabilities(Logistic(0.0, (("z", 2.0),)))
    True
    >>> takes_probabilities(Piecewise.step([0.5], [0.1, 0.9]))
    False
    """
    return False


@takes_probabilities.register
def _(map_: Identity) -> bool:
    return True


@takes_probabilities.register
def _(map_: Logistic) -> bool:
    return map_.clip is not None or any(name != "x" for name, c in map_.terms if c)


@takes_probabilities.register
def _(map_: Piecewise) -> bool:
    return map_.input == "logit"


@takes_probabilities.register
def _(map_: Chain) -> bool:
    return takes_probabilities(map_.steps[0])


@takes_probabilities.register
def _(map_: Interval) -> bool:
    return takes_probabilities(map_.point)


@takes_probabilities.register
def _(map_: Mixture) -> bool:
    pairs = zip(map_.weights, map_.members, strict=True)
    return any(takes_probabilities(member) for weight, member in pairs if weight > 0.0)


@takes_probabilities.register
def _(map_: Segmented) -> bool:
    own = map_.maps if map_.input == "score" else ()
    return any(takes_probabilities(m) for m in (map_.default, *own))


@takes_probabilities.register
def _(map_: Softmax) -> bool:
    return map_.input == "probability"


@takes_probabilities.register
def _(map_: VectorMixture) -> bool:
    if map_.input == "score":
        return any(takes_probabilities(member) for member in map_.members)
    return map_.input == "probability"


@takes_probabilities.register(Coded)
@takes_probabilities.register(Columns)
def _(map_: Coded | Columns) -> bool:
    return any(takes_probabilities(member) for member in map_.maps)
