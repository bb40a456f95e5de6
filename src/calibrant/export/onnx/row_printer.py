"""Plans of rows as ONNX graphs: (n, k) in, a probability for each class or label out."""

from __future__ import annotations

import numpy as np

from calibrant.export.onnx.combine import combined
from calibrant.export.onnx.formulas import log_of, log_softmax, softmax_of, sum_of
from calibrant.export.onnx.graph import Tensor
from calibrant.export.onnx.printer import OnnxPrinter, refuse_large
from calibrant.plan import row_nodes
from calibrant.plan.nodes import PlanPrinter
from calibrant.plan.row_nodes import Row

#: logits are cut at ± this in float32
LARGEST_LOGIT_32 = 1e15


class OnnxRowPrinter(PlanPrinter[Tensor]):
    """Writes plans of rows of scores into the graph of their tensor."""

    def __init__(self, scores: Tensor) -> None:
        self.scores, self.graph = scores, scores.graph
        self.known = {}

    def row_input(self, node: row_nodes.RowInput) -> Tensor:
        return self.scores

    def each_column(self, node: row_nodes.EachColumn) -> Tensor:
        parts = [OnnxPrinter(self._column(node.row, j)).write(own) for j, own in node.members]
        return self.graph.columns(parts)

    def _column(self, row: Row, j: int) -> Tensor:
        if isinstance(row, row_nodes.Among):
            return self._among(row, j)
        return self.graph.column(self.write(row), j)

    def _among(self, node: row_nodes.Among, j: int) -> Tensor:
        """z_j − ln Σ_{i≠j} exp(z_i)."""
        graph, z = self.graph, self.write(node.row)
        others = graph.gather(z, np.delete(np.arange(node.k), j), axis=1)
        greatest = graph.greatest(others, 1)
        total = graph.total(graph.op("Exp", others - greatest), 1)
        rest = graph.squeeze(greatest + graph.op("Log", total), 1)
        return graph.column(z, j) - rest

    def within(self, node: row_nodes.Within) -> Tensor:
        most = np.inf if self.graph.dtype == np.float64 else LARGEST_LOGIT_32
        low, high = (float(np.clip(end, -most, most)) for end in (node.low, node.high))
        return self.graph.within(self.write(node.row), low, high)

    def affine(self, node: row_nodes.Affine) -> Tensor:
        if self.graph.dtype != np.float64:
            refuse_large(node.matrix, np.zeros(1) if node.bias is None else node.bias)
        x = self.write(node.row)
        scaled = x @ node.matrix.T if node.matrix.ndim == 2 else x * node.matrix
        return scaled if node.bias is None else scaled + node.bias

    def exponentials(self, node: row_nodes.Exponentials) -> Tensor:
        if isinstance(node.row, row_nodes.LogSoftmax):
            return softmax_of(self.write(node.row.row))
        return self.graph.op("Exp", self.write(node.row))

    def logarithms(self, node: row_nodes.Logarithms) -> Tensor:
        return log_of(self.write(node.row), node.floor)

    def log_softmax(self, node: row_nodes.LogSoftmax) -> Tensor:
        return log_softmax(self.write(node.row))

    def power(self, node: row_nodes.Power) -> Tensor:
        return self.graph.op("Pow", self.write(node.row), node.power)

    def combined(self, node: row_nodes.Combined) -> Tensor:
        return combined(node, self.write(node.row))

    def relative(self, node: row_nodes.Relative) -> Tensor:
        positive = self.graph.at_least(self.write(node.row), 0.0)
        return _share(positive, self.graph.greatest(positive, 1))

    def normalised(self, node: row_nodes.Normalised) -> Tensor:
        x = self.write(node.row)
        return _share(x, self.graph.total(x, 1))

    def largest_mapped(self, node: row_nodes.LargestMapped) -> Tensor:
        """The formula of `row_nodes.with_largest`."""
        graph, p = self.graph, self.write(node.row)
        top = graph.greatest(p, 1)
        below = p < top
        others = graph.where(below, p, graph.like(p, 0.0))
        ties = float(node.k) - graph.total(graph.number(below), 1)
        second, rest = graph.greatest(others, 1), graph.total(others, 1)
        some = rest > 0.0
        whole = graph.where(some, rest, 1.0)
        equal = graph.where(some, second / (whole + ties * second), 1.0 / node.k)
        mapped = graph.expand(OnnxPrinter(graph.squeeze(top, 1)).write(node.member), 1)
        first = graph.within(mapped, equal * row_nodes.AHEAD, 1.0 / ties)
        left = graph.at_least(1.0 - ties * first, 0.0)
        even = 1.0 / graph.at_least(float(node.k) - ties, 1.0)
        share = graph.where(some, others / whole, even)
        return graph.where(below, share * left, first)

    def row_average(self, node: row_nodes.RowAverage) -> Tensor:
        return sum_of([self.write(row) * weight for weight, row in node.terms])


def _share(x: Tensor, whole: Tensor) -> Tensor:
    """Rows divided by their sum or largest entry, unless that is zero."""
    return x / x.graph.where(whole > 0.0, whole, 1.0)
