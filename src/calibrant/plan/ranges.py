"""The range of values that a node can have: what a target need not guard against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.losses import LARGEST, SMALLEST, logit, sigmoid
from calibrant.plan.borders import LARGEST_DOUBLE
from calibrant.plan.nodes import (
    Clip,
    Constant,
    Input,
    Let,
    Linear,
    LinePieces,
    Log,
    Logit,
    MinusLogRest,
    Node,
    Number,
    PlanColumn,
    Sigmoid,
    Softplus,
    Square,
    StepPieces,
    Variable,
)

__all__ = ["EVERYWHERE", "Range", "about", "ends_of", "reach"]

Array = NDArray[np.float64]
Range = tuple[float, float]

#: how far from what NumPy gives an engine's value may be, as a share of it, or of 1
MARGIN = 1e-9
EVERYWHERE = (-LARGEST_DOUBLE, LARGEST_DOUBLE)


def reach(
    node: Node, score: Range = EVERYWHERE, known: Mapping[Node, Range] | None = None
) -> Range:
    """The least and the largest value of a node, as an engine may compute it.

    Parameters
    ----------
    node : Node
    score : the least and the largest score that comes in
    known : ranges of variables, where they are known better

    Notes
    -----
    By interval arithmetic: never too narrow. What cannot be negative is not said to be so.

    >>> reach(Sigmoid(Input()))
    (0.0, 1.0)
    >>> reach(Linear(1.0, ((-2.0, Clip(Input(), 0.0, 0.25)),)))[0] > 0.49
    True
    """
    if known and node in known:
        return known[node]
    with np.errstate(all="ignore"):
        low, high = RULES[type(node)](node, lambda inner: reach(inner, score, known), score)
    return float(low), float(high)


def ends_of(number: Number) -> Range:
    """The least and the largest of a parameter."""
    if isinstance(number, PlanColumn):
        return float(number.values.min()), float(number.values.max())
    return number, number


Inner = Callable[[Node], Range]


def about(low: float, high: float) -> Range:
    """A little wider, but not across zero: what rounds stays on its side."""
    below = low - MARGIN * max(1.0, abs(low))
    above = high + MARGIN * max(1.0, abs(high))
    return max(below, 0.0) if low >= 0.0 else below, min(above, 0.0) if high <= 0.0 else above


def _clip(node: Clip, inner: Inner, score: Range) -> Range:
    (low, _), (_, high) = ends_of(node.low), ends_of(node.high)
    least, most = inner(node.x)
    return min(max(least, low), high), max(min(most, high), low)


def _linear(node: Linear, inner: Inner, score: Range) -> Range:
    low, high = ends_of(node.base)
    for coefficient, term in node.terms:
        products = [c * v for c in ends_of(coefficient) for v in inner(term)]
        low, high = low + min(products), high + max(products)
    return about(low, high)


def _sigmoid(node: Sigmoid, inner: Inner, score: Range) -> Range:
    low, high = about(*sigmoid(np.array(inner(node.x))).tolist())
    return low, min(high, 1.0)


def _square(node: Square, inner: Inner, score: Range) -> Range:
    low, high = inner(node.x)
    squares = (low * low, high * high)
    return about(0.0 if low <= 0.0 <= high else min(squares), max(squares))


def _steps(node: StepPieces, inner: Inner, score: Range) -> Range:
    return _levels(node, node.values, node.values, score)


def _lines(node: LinePieces, inner: Inner, score: Range) -> Range:
    low = tuple(own.low for own in node.pieces)
    return about(*_levels(node, low, tuple(own.high for own in node.pieces), score))


def _levels(node: Any, low: tuple[Array, ...], high: tuple[Array, ...], score: Range) -> Range:
    """The least and the largest value on the pieces that scores get to."""
    both = []
    for place, *ends in zip(node.places, low, high, strict=True):
        here: Any = slice(None)
        if place.stretches is not None:
            found = place.found
            here = found.piece[(found.low <= score[1]) & (found.high >= score[0])]
        both += [end[here] for end in ends]
    values = np.concatenate(both)
    return float(values.min()), float(values.max())


def _of(function: Callable[[Array], Array]) -> Callable[[Any, Inner, Range], Range]:
    def rule(node: Any, inner: Inner, score: Range) -> Range:
        low, high = function(np.array(inner(node.x))).tolist()
        return about(low, high)

    return rule


RULES: dict[type[Node], Callable[..., Range]] = {
    Input: lambda node, inner, score: score,
    Constant: lambda node, inner, score: ends_of(node.value),
    Clip: _clip,
    Linear: _linear,
    Sigmoid: _sigmoid,
    Logit: _of(logit),
    Log: _of(lambda p: np.log(np.clip(p, SMALLEST, LARGEST))),
    MinusLogRest: _of(lambda p: -np.log1p(-np.clip(p, SMALLEST, LARGEST))),
    Softplus: _of(lambda x: np.logaddexp(0.0, x)),
    Square: _square,
    StepPieces: _steps,
    LinePieces: _lines,
    Variable: lambda node, inner, score: inner(node.value),
    Let: lambda node, inner, score: inner(node.body),
}
