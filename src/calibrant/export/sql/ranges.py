"""The range of values that a node of a plan can have: what SQL need not guard against."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.array_types import Array
from calibrant.rules.plan.nodes import (
    LARGEST_DOUBLE,
    Clip,
    Constant,
    Input,
    Linear,
    LinePieces,
    Node,
    Number,
    PieceChoice,
    PlanPrinter,
    Rising,
    Sigmoid,
    Square,
    StepPieces,
    values_of,
)

Range = tuple[float, float]

#: how far from what NumPy gives an engine's value may be, as a share of it, or of 1
MARGIN = 1e-9
EVERYWHERE = (-LARGEST_DOUBLE, LARGEST_DOUBLE)


def value_range(
    node: Node, score: Range = EVERYWHERE, known: Mapping[Node, Range] | None = None
) -> Range:
    """The least and the largest value of a node, as any engine may compute it.

    Parameters
    ----------
    node : Node
    score : the least and the largest score that comes in
    known : ranges of variables, where they are known better

    Notes
    -----
    By interval arithmetic, so never too narrow. A value that cannot be negative has no negative
    numbers in its range.

    >>> from calibrant.rules.plan.nodes import Clip, Input, Linear, Sigmoid
    >>> value_range(Sigmoid(Input()))
    (0.0, 1.0)
    >>> value_range(Linear(1.0, ((-2.0, Clip(Input(), 0.0, 0.25)),)))[0] > 0.49
    True
    """
    with np.errstate(all="ignore"):
        low, high = _Reach(score, known or {}).write(node)
    return float(low), float(high)


def ends_of(number: Number) -> Range:
    """The least and the largest of a parameter."""
    values = values_of(number)
    return float(values.min()), float(values.max())


def widened(low: float, high: float) -> Range:
    """A range a little wider, but not across zero: rounding does not change a sign."""
    below = low - MARGIN * max(1.0, abs(low))
    above = high + MARGIN * max(1.0, abs(high))
    return max(below, 0.0) if low >= 0.0 else below, min(above, 0.0) if high <= 0.0 else above


class _Reach(PlanPrinter[Range]):
    """The ranges of nodes, by interval arithmetic."""

    def __init__(self, score: Range, known: Mapping[Node, Range]) -> None:
        self.score, self.known = score, dict(known)

    def input(self, node: Input) -> Range:
        return self.score

    def constant(self, node: Constant) -> Range:
        return ends_of(node.value)

    def clip(self, node: Clip) -> Range:
        (low, _), (_, high) = ends_of(node.low), ends_of(node.high)
        least, most = self.write(node.x)
        return min(max(least, low), high), max(min(most, high), low)

    def linear(self, node: Linear) -> Range:
        """The range of a sum, from the ranges of its terms."""
        low, high = ends_of(node.base)
        for coefficient, term in node.terms:
            products = [c * v for c in ends_of(coefficient) for v in self.write(term)]
            low, high = low + min(products), high + max(products)
        return widened(low, high)

    def rising(self, node: Rising) -> Range:
        """The function at both ends."""
        low, high = node.function(np.array(self.write(node.x))).tolist()
        return widened(low, high)

    def sigmoid(self, node: Sigmoid) -> Range:
        low, high = self.rising(node)
        return low, min(high, 1.0)

    def square(self, node: Square) -> Range:
        low, high = self.write(node.x)
        squares = (low * low, high * high)
        return widened(0.0 if low <= 0.0 <= high else min(squares), max(squares))

    def step_pieces(self, node: StepPieces) -> Range:
        """The range of all steps that scores can lie on."""
        tables = zip(node.places, node.values, strict=True)
        return _span_of([v for place, own in tables for v in self._met(place, own)])

    def line_pieces(self, node: LinePieces) -> Range:
        """The range of the ends of all lines that scores can lie on."""
        tables = zip(node.places, node.pieces, strict=True)
        return widened(
            *_span_of([v for place, own in tables for v in self._met(place, own.low, own.high)])
        )

    def _met(self, place: PieceChoice, *columns: Array) -> list[Array]:
        """The entries of columns for the pieces that scores can lie on."""
        if not place.by_input:
            return list(columns)
        here = place.regions.within(*self.score).piece
        return [column[here] for column in columns]


def _span_of(values: list[Array]) -> Range:
    """The least and the largest entry of some columns."""
    whole = np.concatenate(values)
    return float(whole.min()), float(whole.max())
