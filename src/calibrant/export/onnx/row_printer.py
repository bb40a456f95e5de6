"""Plans of rows as ONNX graphs: (n, k) in, a probability for each class or label out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.export.onnx.combine import combined
from calibrant.export.onnx.formulas import log_of, log_softmax, softmax_of, sum_of
from calibrant.export.onnx.graph import Tensor
from calibrant.export.onnx.printer import OnnxPrinter, refuse_large
from calibrant.plan.row_nodes import (
    Affine,
    Among,
    Combined,
    EachColumn,
    Exponentials,
    Logarithms,
    LogSoftmax,
    Normalised,
    Power,
    Relative,
    Row,
    RowAverage,
    RowInput,
    Within,
)

__all__ = ["OnnxRowPrinter"]

#: logits are cut at ± this in float32
LARGEST_LOGIT_32 = 1e15


class OnnxRowPrinter:
    """Writes plans of rows of scores into the graph of their tensor."""

    def __init__(self, scores: Tensor) -> None:
        self.scores, self.graph = scores, scores.graph
        self.known: dict[Row, Tensor] = {}

    def write(self, node: Row) -> Tensor:
        """The tensor of a node's values."""
        if node not in self.known:
            self.known[node] = RULES[type(node)](self, node)
        return self.known[node]

    def each(self, node: EachColumn) -> Tensor:
        parts = [OnnxPrinter(self._column(node.row, j)).write(own) for j, own in node.members]
        return self.graph.columns(parts)

    def _column(self, row: Row, j: int) -> Tensor:
        if isinstance(row, Among):
            return self._among(row, j)
        return self.graph.column(self.write(row), j)

    def _among(self, node: Among, j: int) -> Tensor:
        """z_j − ln Σ_{i≠j} exp(z_i)."""
        graph, z = self.graph, self.write(node.row)
        others = graph.gather(z, np.delete(np.arange(node.k), j), axis=1)
        greatest = graph.greatest(others, 1)
        total = graph.total(graph.op("Exp", others - greatest), 1)
        rest = graph.squeeze(greatest + graph.op("Log", total), 1)
        return graph.column(z, j) - rest

    def within(self, node: Within) -> Tensor:
        most = np.inf if self.graph.dtype == np.float64 else LARGEST_LOGIT_32
        low, high = (float(np.clip(end, -most, most)) for end in (node.low, node.high))
        return self.graph.within(self.write(node.row), low, high)

    def affine(self, node: Affine) -> Tensor:
        if self.graph.dtype != np.float64:
            refuse_large(node.matrix, np.zeros(1) if node.bias is None else node.bias)
        x = self.write(node.row)
        scaled = x @ node.matrix.T if node.matrix.ndim == 2 else x * node.matrix
        return scaled if node.bias is None else scaled + node.bias

    def exponentials(self, node: Exponentials) -> Tensor:
        if isinstance(node.row, LogSoftmax):
            return softmax_of(self.write(node.row.row))
        return self.graph.op("Exp", self.write(node.row))

    def relative(self, node: Relative) -> Tensor:
        positive = self.graph.at_least(self.write(node.row), 0.0)
        return _share(positive, self.graph.greatest(positive, 1))

    def shares(self, node: Normalised) -> Tensor:
        x = self.write(node.row)
        return _share(x, self.graph.total(x, 1))

    def average(self, node: RowAverage) -> Tensor:
        return sum_of([self.write(row) * weight for weight, row in node.terms])


def _share(x: Tensor, whole: Tensor) -> Tensor:
    """Rows divided by their sum or largest entry, unless that is zero."""
    return x / x.graph.where(whole > 0.0, whole, 1.0)


RULES: dict[type[Row], Callable[..., Tensor]] = {
    RowInput: lambda printer, node: printer.scores,
    EachColumn: OnnxRowPrinter.each,
    Within: OnnxRowPrinter.within,
    Logarithms: lambda printer, node: log_of(printer.write(node.row), node.floor),
    Affine: OnnxRowPrinter.affine,
    LogSoftmax: lambda printer, node: log_softmax(printer.write(node.row)),
    Exponentials: OnnxRowPrinter.exponentials,
    Normalised: OnnxRowPrinter.shares,
    Relative: OnnxRowPrinter.relative,
    Power: lambda printer, node: printer.graph.op("Pow", printer.write(node.row), node.power),
    RowAverage: OnnxRowPrinter.average,
    Combined: lambda printer, node: combined(node, printer.write(node.row)),
}
