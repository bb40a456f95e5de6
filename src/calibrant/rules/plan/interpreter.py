"""Plans computed with NumPy: what every printed plan must give, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.segments import SegmentKey, finest_segment
from calibrant.losses import log_softmax
from calibrant.rules.plan import nodes
from calibrant.rules.plan.nodes import Node, Number, PlanColumn, PlanPrinter


def evaluate(
    node: Node, scores: Array, segments: Sequence[object] | None = None, owner: int = 0
) -> Array:
    """The values of a plan of one score or of rows of scores. Every target must give the same.

    Where several plans are stacked, ``owner`` says which of them is computed.

    >>> from calibrant.rules.plan.nodes import Input, Linear, Sigmoid
    >>> s = Input()
    >>> evaluate(Sigmoid(Linear(1.0, ((2.0, s),))), np.array([-0.5])).tolist()
    [0.5]
    """
    with np.errstate(all="ignore"):
        return _Evaluation(np.asarray(scores, dtype=np.float64), segments, owner).write(node)


class _Evaluation(PlanPrinter[Array]):
    """One evaluation with NumPy."""

    def __init__(self, scores: Array, segments: Sequence[object] | None, owner: int) -> None:
        super().__init__()
        self.scores, self.segments, self.owner = scores, segments, owner

    def number(self, number: Number) -> Array:
        """A parameter as an array with an entry for each row."""
        own = number.values[self.owner] if isinstance(number, PlanColumn) else number
        return np.full(self.scores.shape, own)

    def input(self, node: nodes.Input) -> Array:
        return self.scores

    def constant(self, node: nodes.Constant) -> Array:
        return self.number(node.value)

    def clip(self, node: nodes.Clip) -> Array:
        return np.clip(self.write(node.x), self.number(node.low), self.number(node.high))

    def linear(self, node: nodes.Linear) -> Array:
        """The sum, added from left to right."""
        total = self.number(node.base)
        for coefficient, term in node.terms:
            total = total + self.number(coefficient) * self.write(term)
        return total

    def rising(self, node: nodes.Rising) -> Array:
        return node.function(self.write(node.x))

    def square(self, node: nodes.Square) -> Array:
        return np.square(self.write(node.x))

    def step_pieces(self, node: nodes.StepPieces) -> Array:
        """The value of the step on which each score lies."""
        own = self.owner if len(node.places) > 1 else 0
        return np.asarray(node.values[own][self._piece(node.places[own])])

    def line_pieces(self, node: nodes.LinePieces) -> Array:
        """The line on which each score lies."""
        own, x = self.owner if len(node.places) > 1 else 0, self.write(node.x)
        if not node.places[own].by_input:
            return node.pieces[own].value(x)
        return node.pieces[own].on(x, self._piece(node.places[own]))

    def _piece(self, place: nodes.PieceChoice) -> Index:
        low, _, piece = place.regions
        return piece[np.searchsorted(low, self.scores, side="right") - 1]

    def by_segment(self, node: nodes.BySegment) -> Array:
        """The value of each row by the plan of its segment, or by the common plan if it has
        none."""
        result = self.write(node.common).copy()
        places: dict[SegmentKey, int] = {path: i for i, path in enumerate(node.paths)}
        for i, row in enumerate(self.segments or ()):
            at = finest_segment(row if isinstance(row, tuple) else (row,), places)
            if at < len(places):
                own, share = float(self.write(node.members[at])[i]), float(node.shares[at])
                result[i] = own if share == 1.0 else share * own + (1.0 - share) * result[i]
        return result

    # --- rows -------------------------------------------------------------------------------------

    def row_input(self, node: nodes.RowInput) -> Array:
        return self.scores

    def each_column(self, node: nodes.EachColumn) -> Array:
        """The plan of each column, evaluated."""
        x = self.write(node.row)
        return np.column_stack([evaluate(member, x[:, j]) for j, member in node.members])

    def among(self, node: nodes.Among) -> Array:
        """The logit of each class against all others."""
        z = self.write(node.row)
        rest = np.where(np.eye(z.shape[1], dtype=bool), -np.inf, z[:, None, :])
        top = rest.max(axis=2)
        return np.asarray(z - top - np.log(np.exp(rest - top[..., None]).sum(axis=2)))

    def within(self, node: nodes.Within) -> Array:
        return np.clip(self.write(node.row), node.low, node.high)

    def logarithms(self, node: nodes.Logarithms) -> Array:
        return np.log(np.clip(self.write(node.row), node.floor, 1.0))

    def affine(self, node: nodes.Affine) -> Array:
        x = self.write(node.row)
        scaled = x @ node.matrix.T if node.matrix.ndim == 2 else x * node.matrix
        return np.asarray(scaled if node.bias is None else scaled + node.bias)

    def log_softmax(self, node: nodes.LogSoftmax) -> Array:
        return log_softmax(self.write(node.row))

    def softmax_row(self, node: nodes.SoftmaxRow) -> Array:
        return np.exp(log_softmax(self.write(node.row)))

    def normalised(self, node: nodes.Normalised) -> Array:
        return nodes.shares_of_sum(self.write(node.row))

    def relative_power(self, node: nodes.RelativePower) -> Array:
        return np.asarray(nodes.shares_of_largest(self.write(node.row)) ** node.power)

    def row_average(self, node: nodes.RowAverage) -> Array:
        return np.asarray(sum(w * self.write(row) for w, row in node.terms))

    def largest_mapped(self, node: nodes.LargestMapped) -> Array:
        p = self.write(node.row)
        return nodes.with_largest(p, evaluate(node.member, p.max(axis=1)))

    def combined(self, node: nodes.Combined) -> Array:
        """Class probabilities by the node's own function; 0 for classes that no column knows."""
        r = self.write(node.row)
        p = np.zeros((len(r), len(node.known)))
        p[:, node.known] = node.solve(r)
        return p
