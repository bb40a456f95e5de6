"""What a map reads: a score, the logit of one, or what other maps have made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.export.onnx.formulas import logit_of, sigmoid_of
from calibrant.export.onnx.graph import Tensor
from calibrant.losses import logit, sigmoid
from calibrant.maps import Map

__all__ = [
    "Axis",
    "Made",
    "Scale",
    "of_logits",
    "of_scores",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]


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
            return map_.of_logit
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
