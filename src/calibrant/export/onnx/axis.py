"""What a map reads: a score, the logit of one, or what other maps have made of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.export.onnx.formulas import logit_of, sigmoid_of
from calibrant.export.onnx.graph import Tensor
from calibrant.losses import logit, sigmoid
from calibrant.maps import Chain, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.maps.logistic import FEATURES_OF_LOGIT

__all__ = [
    "Axis",
    "Made",
    "Scale",
    "clip_logits",
    "of_logit",
    "of_logits",
    "of_scores",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

#: what formulas read of logits is cut at ± this: z² and its products are still finite there
LARGEST_LOGIT = 1e8


class Made(NamedTuple):
    """A probability that a map gives, as tensors made on demand on either scale."""

    score: Callable[[], Tensor]
    logit: Callable[[], Tensor]


class Scale(NamedTuple):
    """A number as the graph makes it, and as NumPy's function of the chooser.

    The function is None where the number is the chooser itself.
    """

    make: Callable[[], Tensor]
    function: Function | None


@dataclass(frozen=True)
class Axis:
    """What a map reads, on the scale of scores and on that of their logits.

    Parameters
    ----------
    chooser : tensor that comes from outside
        Comparisons are of it, so no rounding of a runtime's logarithm decides between pieces.
    score, logit : the two scales
    trend : 1 or −1 where both rise or fall with the chooser, 0 where they do neither
    """

    chooser: Tensor
    score: Scale
    logit: Scale
    trend: int = 1

    def function_of(self, map_: Map) -> Function:
        """The map as NumPy's function of the chooser."""
        if self.logit.function is None:
            return functools.partial(of_logit, map_)
        before = self.score.function
        return map_ if before is None else lambda s: map_(before(s))

    def then(self, map_: Map, made: Made, trend: int) -> Axis:
        """The axis after a map."""
        function = self.function_of(map_)
        return Axis(
            self.chooser,
            Scale(made.score, function),
            Scale(made.logit, lambda s: logit(function(s))),
            self.trend * trend,
        )


def of_scores(s: Tensor) -> Axis:
    """The axis of scores."""
    return Axis(s, Scale(lambda: s, None), Scale(lambda: logit_of(s), logit))


def of_logits(z: Tensor) -> Axis:
    """The axis of scores whose logits are given."""
    return Axis(z, Scale(lambda: sigmoid_of(z), sigmoid), Scale(lambda: z, None))


@functools.singledispatch
def of_logit(map_: Map, z: Array) -> Array:
    """map(σ(z)) as NumPy computes it, but for maps that read logits: they read z itself, which
    goes on where σ(z) has already been rounded to 1.

    >>> temperature = Logistic(0.0, (("z", 0.25),))
    >>> temperature(sigmoid(np.array([100.0]))).round(6).tolist()
    [0.999897]
    >>> of_logit(temperature, np.array([100.0])).round(6).tolist()
    [1.0]
    """
    return map_(sigmoid(z))


@of_logit.register
def _(map_: Logistic, z: Array) -> Array:
    return map_._evaluate(np.clip(z, *clip_logits(map_.clip)), FEATURES_OF_LOGIT)


@of_logit.register
def _(map_: Piecewise, z: Array) -> Array:
    if map_.input == "score":
        return map_(sigmoid(z))
    return Piecewise(map_.x, map_.left, map_.right, "score", map_.output)(z)


@of_logit.register
def _(map_: Interval, z: Array) -> Array:
    return of_logit(map_.point, z)


@of_logit.register
def _(map_: Segmented, z: Array) -> Array:
    return of_logit(map_.default, z)


@of_logit.register
def _(map_: Chain, z: Array) -> Array:
    first, *rest = map_.steps
    value = of_logit(first, z)
    return Chain(tuple(rest))(value) if rest else value


@of_logit.register
def _(map_: Mixture, z: Array) -> Array:
    total = np.zeros(z.shape)
    for weight, member in zip(map_.weights, map_.members, strict=True):
        total += weight * of_logit(member, z)
    return np.clip(total, 0.0, 1.0)


def clip_logits(clip: tuple[float, float] | None) -> tuple[float, float]:
    """The logits of the ends of an interval; of 0 and 1, ends where all formulas are finite."""
    low, high = (0.0, 1.0) if clip is None else clip
    inner = logit(np.array([low, high]))
    return (
        float(inner[0]) if low > 0.0 else -LARGEST_LOGIT,
        float(inner[1]) if high < 1.0 else LARGEST_LOGIT,
    )
