"""Plans as ONNX graphs: of one score, shape (n,), or of rows of scores, shape (n, k).

The borders of a plan are on the scale of the number that comes in. So comparisons decide as NumPy
does, even if the runtime's logarithm differs in the last bit. The runtime's ln and exp only change
the last digits of values within a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.export.onnx import formulas
from calibrant.export.onnx.combine import combined
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.piece_search import value_by_piece
from calibrant.losses import LARGEST, log_p, logit
from calibrant.plan import nodes, row_nodes
from calibrant.plan.map_input import PlanTarget
from calibrant.plan.nodes import Node, Number, PlanColumn, PlanPrinter, values_of
from calibrant.plan.segment_places import column_steps
from calibrant.plan.stacked_plans import stacked

#: the domain of operators for classical models
ML = "ai.onnx.ml"
ONNX = PlanTarget("ONNX", "Apply it in memory: calibrate, or predict_proba for several classes.")
#: logits of rows are cut at ± this in float32
LARGEST_LOGIT_32 = 1e15
#: the largest coefficient or end of a line whose products float32 can hold
LARGEST_IN_FLOAT32 = 1e18


def refuse_large(graph: Graph, *values: Array) -> None:
    """Refuse numbers whose products or differences would overflow in a graph of float32."""
    if graph.dtype == np.float64:
        return
    largest = max(float(np.abs(part).max(initial=0.0)) for part in values)
    if largest > LARGEST_IN_FLOAT32:
        raise InputError(
            f"the coefficients of a formula, and the knots and logits of lines, must be at most "
            f"{LARGEST_IN_FLOAT32:g} in float32, but {largest:g} came. Export with float=64."
        )


def segment_inputs(plan: Node) -> dict[str, np.dtype[Any]]:
    """The inputs that say which segment a row is in, and their types: int64, or object for
    strings. None where there are no segments."""
    if not isinstance(plan, nodes.BySegment) or not plan.keys:
        return {}
    kinds = (plan.key_type("of an ONNX graph", i) for i in range(plan.columns))
    types = (np.dtype(object if kind is str else np.int64) for kind in kinds)
    return dict(zip(plan.column_names, types, strict=True))


class OnnxPrinter(PlanPrinter[Tensor]):
    """Writes plans of a tensor into its graph.

    Parameters
    ----------
    score : the tensor that comes in, (n,) or (n, k)
    segments : the tensors of segments, one for each column, for plans that have them
    code : for stacked plans, the number of each row's own plan
    known : nodes that have tensors already
    """

    def __init__(
        self,
        score: Tensor,
        segments: Sequence[Tensor] = (),
        code: Tensor | None = None,
        known: dict[Node, Tensor] | None = None,
    ) -> None:
        self.score, self.segments, self.code = score, segments, code
        self.graph = score.graph
        self.known = dict(known or {})

    def number(self, number: Number) -> Tensor:
        """A parameter: a constant, or that of each row's own plan."""
        if isinstance(number, PlanColumn) and self.code is not None:
            return self.graph.gather(number.values, self.code)
        return self.graph.constant(values_of(number)[0])

    def input(self, node: nodes.Input) -> Tensor:
        return self.score

    def constant(self, node: nodes.Constant) -> Tensor:
        if isinstance(node.value, PlanColumn):
            return self.number(node.value)
        return self.score.like(node.value)

    def clip(self, node: nodes.Clip) -> Tensor:
        return self._within(self.write(node.x), node.low, node.high)

    def _within(self, x: Tensor, low: Number, high: Number) -> Tensor:
        return x.within(self.number(low), self.number(high))

    def linear(self, node: nodes.Linear) -> Tensor:
        refuse_large(self.graph, values_of(node.base), *(values_of(c) for c, _ in node.terms))
        terms = [self.number(c) * self.write(term) for c, term in node.terms]
        return formulas.sum_of(terms if node.base == 0.0 else [self.number(node.base), *terms])

    # A function of a sigmoid is written as a function of the sigmoid's argument, which keeps what
    # rounding to 1 would lose. And the function of a clipped value is clipped itself: float32 has
    # no 1 − 1e-9, but it has the logit of it.

    def logit(self, node: nodes.Logit) -> Tensor:
        x = _opened(node.x)
        if isinstance(x, nodes.Sigmoid):
            return formulas.between_logits(self.write(x.x))
        return self._clipped(x, nodes.Logit, logit) or formulas.logit_of(self.write(node.x))

    def log(self, node: nodes.Log) -> Tensor:
        x = _opened(node.x)
        if isinstance(x, nodes.Input):
            return formulas.log_of(self.write(x), most=LARGEST)
        clipped = self._clipped(x, nodes.Log, log_p)
        return clipped or -formulas.softplus_of(-self.write(nodes.Logit(node.x)))

    def minus_log_rest(self, node: nodes.MinusLogRest) -> Tensor:
        x = _opened(node.x)
        if isinstance(x, nodes.Input):
            return formulas.neg_log_rest_of(self.write(x))
        clipped = self._clipped(x, nodes.MinusLogRest, lambda p: -np.log1p(-np.minimum(p, LARGEST)))
        return clipped or formulas.softplus_of(self.write(nodes.Logit(node.x)))

    def _clipped(
        self, x: Node, kind: Callable[[Node], Node], function: Callable[[Array], Array]
    ) -> Tensor | None:
        """A rising function of a clipped value: clipped after it."""
        if not isinstance(x, nodes.Clip):
            return None
        low, high = (_mapped(function, end) for end in (x.low, x.high))
        return self._within(self.write(kind(x.x)), low, high)

    def square(self, node: nodes.Square) -> Tensor:
        z = self.write(node.x)
        return z * z

    def sigmoid(self, node: nodes.Sigmoid) -> Tensor:
        return formulas.sigmoid_of(self.write(node.x))

    def softplus(self, node: nodes.Softplus) -> Tensor:
        return formulas.softplus_of(self.write(node.x))

    def step_pieces(self, node: nodes.StepPieces) -> Tensor:
        return value_by_piece(node, self.score, self.code, lambda: self.score)

    def line_pieces(self, node: nodes.LinePieces) -> Tensor:
        place = node.places[0]
        refuse_large(self.graph, *(v for own in node.pieces for v in (own.left, own.right)))
        # knots that the number itself is compared with may be anywhere
        if place.function is not None and place.by_input:
            refuse_large(self.graph, *(own.x for own in node.pieces))
        chooser = self.score if place.by_input else self.write(node.x)
        return value_by_piece(node, chooser, self.code, lambda: self.write(node.x))

    def by_segment(self, node: nodes.BySegment) -> Tensor:
        """The value of each row by its segment's plan; of other segments, the common one."""
        graph, common = self.graph, self.write(node.common)
        if not node.keys or not self.segments:
            return common
        code, count = _segment_code(node, self.segments), len(node.keys)
        own = common
        for members, plan in stacked(node.members, shared=(node.common,)):
            # rows of other groups read the first table, but their result is not used
            place, here = np.zeros(count + 1, dtype=np.int32), np.zeros(count + 1, dtype=bool)
            place[members], here[members] = np.arange(len(members)), True
            mine = graph.gather(place, code) if len(members) > 1 else None
            printer = OnnxPrinter(self.score, code=mine, known=self.known)
            own = graph.gather(here, code).choose(printer.write(plan), own)
        shares = np.append(node.shares, 1.0)
        if (shares == 1.0).all():
            return own
        mixed = graph.gather(shares, code) * own + graph.gather(1.0 - shares, code) * common
        return graph.gather(shares == 1.0, code).choose(own, mixed)

    # --- rows -------------------------------------------------------------------------------------

    def row_input(self, node: row_nodes.RowInput) -> Tensor:
        return self.score

    def each_column(self, node: row_nodes.EachColumn) -> Tensor:
        parts = [OnnxPrinter(self._column(node.row, j)).write(own) for j, own in node.members]
        return self.graph.columns(parts)

    def _column(self, row: row_nodes.Row, j: int) -> Tensor:
        if isinstance(row, row_nodes.Among):
            return self._among(row, j)
        return self.write(row).column(j)

    def _among(self, node: row_nodes.Among, j: int) -> Tensor:
        """z_j − ln Σ_{i≠j} exp(z_i)."""
        graph, z = self.graph, self.write(node.row)
        others = graph.gather(z, np.delete(np.arange(node.k), j), axis=1)
        greatest = others.greatest()
        total = (others - greatest).exp().total()
        rest = (greatest + total.log()).squeeze(1)
        return z.column(j) - rest

    def within(self, node: row_nodes.Within) -> Tensor:
        most = np.inf if self.graph.dtype == np.float64 else LARGEST_LOGIT_32
        low, high = (float(np.clip(end, -most, most)) for end in (node.low, node.high))
        return self.write(node.row).within(low, high)

    def affine(self, node: row_nodes.Affine) -> Tensor:
        refuse_large(self.graph, node.matrix, np.zeros(1) if node.bias is None else node.bias)
        x = self.write(node.row)
        scaled = x @ node.matrix.T if node.matrix.ndim == 2 else x * node.matrix
        return scaled if node.bias is None else scaled + node.bias

    def softmax_row(self, node: row_nodes.SoftmaxRow) -> Tensor:
        return formulas.softmax_of(self.write(node.row))

    def logarithms(self, node: row_nodes.Logarithms) -> Tensor:
        return formulas.log_of(self.write(node.row), node.floor)

    def log_softmax(self, node: row_nodes.LogSoftmax) -> Tensor:
        return formulas.log_softmax(self.write(node.row))

    def combined(self, node: row_nodes.Combined) -> Tensor:
        return combined(node, self.write(node.row))

    def relative_power(self, node: row_nodes.RelativePower) -> Tensor:
        positive = self.write(node.row).at_least(0.0)
        shares = _share(positive, positive.greatest())
        return self.graph.op("Pow", shares, node.power)

    def normalised(self, node: row_nodes.Normalised) -> Tensor:
        x = self.write(node.row)
        return _share(x, x.total())

    def largest_mapped(self, node: row_nodes.LargestMapped) -> Tensor:
        """The formula of `row_nodes.with_largest`."""
        p = self.write(node.row)
        top = p.greatest()
        below = p < top
        others = below.choose(p, p.like(0.0))
        ties = float(node.k) - below.number().total()
        second, rest = others.greatest(), others.total()
        some = rest > 0.0
        whole = some.choose(rest, 1.0)
        equal = some.choose(second / (whole + ties * second), 1.0 / node.k)
        mapped = OnnxPrinter(top.squeeze(1)).write(node.member).expand(1)
        first = mapped.within(equal * row_nodes.AHEAD, 1.0 / ties)
        left = (1.0 - ties * first).at_least(0.0)
        even = 1.0 / (float(node.k) - ties).at_least(1.0)
        share = some.choose(others / whole, even)
        return below.choose(share * left, first)

    def row_average(self, node: row_nodes.RowAverage) -> Tensor:
        return formulas.sum_of([self.write(row) * weight for weight, row in node.terms])


def _segment_code(node: nodes.BySegment, segments: Sequence[Tensor]) -> Tensor:
    """The number of each row's segment; how many there are for one that is not known.

    With several columns: of the finest segment that is known.
    """
    count = len(node.keys)
    if node.columns == 1:
        return encoded(segments[0], node.keys, range(count), count).cast(np.int32)
    place = before = None
    for segment, step in zip(segments, column_steps(node.paths), strict=False):
        value = encoded(segment, step.values, range(len(step.values)), -1)
        pair = value if before is None else before * len(step.values) + value
        known = value >= 0 if before is None else (value >= 0) & (before >= 0)
        pair = known.choose(pair, -1)
        found = encoded(pair, step.pairs, step.places, -1)
        before = encoded(pair, step.pairs, step.numbers, -1)
        place = found if place is None else (found >= 0).choose(found, place)
    assert place is not None
    return (place >= 0).choose(place, count).cast(np.int32)


def encoded(x: Tensor, keys: Sequence[Any], values: Sequence[int], default: int) -> Tensor:
    """The value of each key, as whole numbers; keys are all text or all whole numbers."""
    strings = all(isinstance(key, str) for key in keys)
    attributes = {
        "keys_strings" if strings else "keys_int64s": list(keys),
        "values_int64s": list(values),
        "default_int64": default,
    }
    return x.graph.op("LabelEncoder", x, attributes=attributes, domain=ML)


def _mapped(function: Callable[[Array], Array], number: Number) -> Number:
    """A function of a parameter."""
    values = function(values_of(number))
    return PlanColumn(values) if isinstance(number, PlanColumn) else float(values[0])


def _opened(node: Node) -> Node:
    while isinstance(node, nodes.Variable):
        node = node.value
    return node


def _share(x: Tensor, whole: Tensor) -> Tensor:
    """Rows divided by their sum or largest entry, unless that is zero."""
    return x / (whole > 0.0).choose(whole, 1.0)
