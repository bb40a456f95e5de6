"""Maps in fewer kinds: bands by their point, mixtures and chains by steps if they can."""

from __future__ import annotations

import functools

from calibrant.export.known import collapsed
from calibrant.losses import sigmoid
from calibrant.maps import Chain, Interval, Map, Mixture, Piecewise, Segmented

__all__ = ["folded", "simple"]


@functools.singledispatch
def simple(map_: Map) -> Map:
    """The same function as a simpler map.

    Segments within other maps are those of the default, as where they are evaluated.

    >>> from calibrant.maps import Logistic
    >>> step, shift = Piecewise.step([0.5], [0.25, 0.75]), Logistic(1.0, (("z", 1.0),))
    >>> simple(Chain((step, shift)))
    Piecewise(1 knots at 0.5, steps)
    """
    return map_


@simple.register
def _(map_: Interval) -> Map:
    return simple(map_.point)


@simple.register
def _(map_: Segmented) -> Map:
    return simple(map_.default)


@simple.register
def _(map_: Mixture) -> Map:
    opened = Mixture(map_.weights, tuple(simple(member) for member in map_.members))
    return collapsed(opened) or opened


@simple.register
def _(map_: Chain) -> Map:
    steps: list[Map] = []
    for step in map(simple, map_.steps):
        steps.extend(step.steps if isinstance(step, Chain) else (step,))
    for i, step in enumerate(steps[:-1]):
        if isinstance(step, Piecewise) and step.is_step:
            steps[i:] = [folded(step, Chain(tuple(steps[i + 1 :])))]
            break
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def folded(step: Piecewise, later: Map) -> Piecewise:
    """later(step(s)) as steps: later sees only the few values that the step takes."""
    link = sigmoid if step.output == "logit" else lambda p: p
    return Piecewise(step.x, later(link(step.left)), later(link(step.right)), step.input)
