"""Plans computed with NumPy: what every printed plan must give, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array
from calibrant.plan.nodes import (
    BySegment,
    Clip,
    Constant,
    Input,
    Linear,
    LinePieces,
    Node,
    Number,
    PieceChoice,
    PlanColumn,
    PlanPrinter,
    Rising,
    Square,
    StepPieces,
)
from calibrant.plan.segment_places import finest

Index = NDArray[np.int64]


def evaluate(
    node: Node, scores: Array, segments: Sequence[object] | None = None, owner: int = 0
) -> Array:
    """The values of a plan. Every target must give the same.

    Where several plans are stacked, ``owner`` says which of them is computed.

    >>> from calibrant.plan.nodes import Sigmoid
    >>> s = Input()
    >>> evaluate(Sigmoid(Linear(1.0, ((2.0, s),))), np.array([-0.5])).tolist()
    [0.5]
    """
    with np.errstate(all="ignore"):
        return _Evaluation(np.asarray(scores, dtype=np.float64), segments, owner).write(node)


class _Evaluation(PlanPrinter[Array]):
    """One evaluation with NumPy."""

    def __init__(self, scores: Array, segments: Sequence[object] | None, owner: int) -> None:
        self.scores, self.segments, self.owner = scores, segments, owner
        self.known = {}

    def number(self, number: Number) -> Array:
        """A parameter, repeated for all rows."""
        own = number.values[self.owner] if isinstance(number, PlanColumn) else number
        return np.full(self.scores.shape, own)

    def input(self, node: Input) -> Array:
        return self.scores

    def constant(self, node: Constant) -> Array:
        return self.number(node.value)

    def clip(self, node: Clip) -> Array:
        return np.clip(self.write(node.x), self.number(node.low), self.number(node.high))

    def linear(self, node: Linear) -> Array:
        total = self.number(node.base)
        for coefficient, term in node.terms:
            total = total + self.number(coefficient) * self.write(term)
        return total

    def rising(self, node: Rising) -> Array:
        return node.function(self.write(node.x))

    def square(self, node: Square) -> Array:
        return np.square(self.write(node.x))

    def step_pieces(self, node: StepPieces) -> Array:
        own = self.owner if len(node.places) > 1 else 0
        return np.asarray(node.values[own][self._piece(node.places[own])])

    def line_pieces(self, node: LinePieces) -> Array:
        own, x = self.owner if len(node.places) > 1 else 0, self.write(node.x)
        if not node.places[own].by_input:
            return node.pieces[own].value(x)
        return node.pieces[own].on(x, self._piece(node.places[own]))

    def _piece(self, place: PieceChoice) -> Index:
        low, _, piece = place.regions
        return piece[np.searchsorted(low, self.scores, side="right") - 1]

    def by_segment(self, node: BySegment) -> Array:
        result = self.write(node.common).copy()
        places = {path: i for i, path in enumerate(node.paths)}
        for i, row in enumerate(self.segments or ()):
            at = finest(row if isinstance(row, tuple) else (row,), places)
            if at < len(places):
                own, share = float(self.write(node.members[at])[i]), float(node.shares[at])
                result[i] = own if share == 1.0 else share * own + (1.0 - share) * result[i]
        return result
