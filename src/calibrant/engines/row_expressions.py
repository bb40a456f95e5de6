"""Plans of rows as expressions of several columns, one for each class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import narwhals as nw
import numpy as np

from calibrant.engines.expressions import FramePrinter
from calibrant.engines.frame_builder import FrameBuilder, between_ends, or_one
from calibrant.plan import row_nodes
from calibrant.plan.nodes import Node, PlanPrinter

Columns = list[nw.Expr]


class RowFramePrinter(PlanPrinter[Columns]):
    """Writes a plan of rows as an expression for each entry of a row.

    What is read more than once becomes columns of the builder's frame, all of a row in one step.
    """

    def __init__(self, builder: FrameBuilder, scores: Sequence[str]) -> None:
        self.builder, self.scores = builder, list(scores)
        self.known = {}

    def row_input(self, node: row_nodes.RowInput) -> Columns:
        return [nw.col(name) for name in self.scores]

    def each_column(self, node: row_nodes.EachColumn) -> Columns:
        names = self._named(node.row)
        writers = [partial(self._member, own, names[j]) for j, own in node.members]
        return self.builder.keep_all(self.builder.side_by_side(writers))

    def _named(self, row: Node) -> list[str]:
        """The names of the columns of a row."""
        if isinstance(row, row_nodes.RowInput):
            return self.scores
        return self.builder.add_apart(self.write(row))

    def _member(self, node: Node, column: str) -> nw.Expr:
        most = self.builder.most_branches
        return FramePrinter(self.builder, column, comparisons=most).write(node)

    def within(self, node: row_nodes.Within) -> Columns:
        return self.builder.keep_all(self._moved(node.row, node.low, node.high))

    def logarithms(self, node: row_nodes.Logarithms) -> Columns:
        return self.builder.ln_all(self._moved(node.row, node.floor, 1.0))

    def _moved(self, row: Node, low: float, high: float) -> Columns:
        """The entries of a row, moved into an interval."""
        ends = [self.builder.constant(end) for end in (low, high)]
        return [between_ends(x, *ends) for x in self.write(row)]

    def affine(self, node: row_nodes.Affine) -> Columns:
        x, constant = self.write(node.row), self.builder.constant
        bias = np.zeros(len(x)) if node.bias is None else node.bias
        if node.matrix.ndim < 2:
            factors = np.broadcast_to(node.matrix, len(x)).tolist()
            sums = [constant(w) * own for w, own in zip(factors, x, strict=True)]
        else:
            sums = [
                total([constant(w) * own for w, own in zip(row, x, strict=True) if w])
                if any(row)
                else constant(0.0)
                for row in node.matrix.tolist()
            ]
        made = [own + constant(b) if b else own for own, b in zip(sums, bias.tolist(), strict=True)]
        return self.builder.keep_all(made)

    def softmax_row(self, node: row_nodes.SoftmaxRow) -> Columns:
        e, _ = self._relative_powers(node.row)
        whole = self.builder.keep(total(e))
        return [own / whole for own in e]

    def log_softmax(self, node: row_nodes.LogSoftmax) -> Columns:
        e, top = self._relative_powers(node.row)
        log = self.builder.ln(total(e))
        return self.builder.keep_all([x - top - log for x in self.write(node.row)])

    def _relative_powers(self, node: Node) -> tuple[Columns, nw.Expr]:
        """exp(value − largest) for each value, and the largest."""
        z = self.write(node)
        top = self.builder.keep(nw.max_horizontal(*z))
        return self.builder.keep_all([(x - top).exp() for x in z]), top

    def relative_power(self, node: row_nodes.RelativePower) -> Columns:
        x, zero = self.write(node.row), self.builder.constant(0.0)
        top = self.builder.keep(nw.max_horizontal(*x))
        size = self.builder.keep(or_one(top))
        x = self.builder.keep_all([nw.max_horizontal(own, zero) / size for own in x])
        power = self.builder.constant(node.power)
        logs = self.builder.ln_all([or_one(own) for own in x])
        powers = [(power * log).exp() for log in logs]
        some = zip(x, powers, strict=True)
        return self.builder.keep_all(
            [nw.when(own > 0.0).then(raised).otherwise(nw.lit(0.0)) for own, raised in some]
        )

    def normalised(self, node: row_nodes.Normalised) -> Columns:
        x = self.builder.keep_all(self.write(node.row))
        size = self.builder.keep(or_one(total(x)))
        return self.builder.keep_all([own / size for own in x])

    def row_average(self, node: row_nodes.RowAverage) -> Columns:
        weighed = [
            [self.builder.constant(weight) * own for own in self.write(row)]
            for weight, row in node.terms
        ]
        return self.builder.keep_all([total(own) for own in zip(*weighed, strict=True)])

    def largest_mapped(self, node: row_nodes.LargestMapped) -> Columns:
        """The formula of `row_nodes.with_largest`."""
        keep, keep_all, k = self.builder.keep, self.builder.keep_all, float(node.k)
        one, zero = nw.lit(1.0), nw.lit(0.0)
        p = keep_all(self.write(node.row))
        [name] = self.builder.add_apart([nw.max_horizontal(*p)])
        top = nw.col(name)
        ties = keep(total([nw.when(own >= top).then(one).otherwise(zero) for own in p]))
        others = keep_all([nw.when(own < top).then(own).otherwise(zero) for own in p])
        second, rest = keep_all([nw.max_horizontal(*others), total(others)])
        mapped = keep(self._member(node.member, name))
        size = keep(or_one(rest))
        equal = nw.when(rest > 0.0).then(second / (size + ties * second))
        least = keep(row_nodes.AHEAD * equal.otherwise(nw.lit(1.0 / k)))
        first = keep(between_ends(mapped, least, 1.0 / ties))
        left = keep(nw.max_horizontal(1.0 - ties * first, zero))
        even = keep(1.0 / nw.max_horizontal(k - ties, one))
        shares = [nw.when(rest > 0.0).then(own / size).otherwise(even) * left for own in others]
        pairs = zip(p, shares, strict=True)
        return [nw.when(own >= top).then(first).otherwise(share) for own, share in pairs]

    def combined(self, node: row_nodes.Combined) -> Columns:
        """Shares of the sum; the rules that iterate are refused before."""
        r = self.builder.keep_all(self.write(node.row))
        whole = self.builder.keep(total(r))
        size = self.builder.keep(or_one(whole))
        even = self.builder.constant(1.0 / len(r))
        return [nw.when(whole > 0.0).then(own / size).otherwise(even) for own in r]


def total(columns: Sequence[nw.Expr]) -> nw.Expr:
    """The sum of columns; NULL if one of them is. A tree, so that no engine nests too deep."""
    found = list(columns)
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [a + b for a, b in pairs] + found[len(found) // 2 * 2 :]
    return found[0]
