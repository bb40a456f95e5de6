"""Plans of a row of scores as statements of a Python function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.export.python.printer import function_of
from calibrant.export.python.text import Function, number
from calibrant.plan import row_nodes
from calibrant.plan.nodes import Node, PlanPrinter


class PythonRowPrinter(PlanPrinter[str]):
    """Writes plans of the variable ``scores`` into the body of a function, as lists."""

    def __init__(self, body: Function) -> None:
        self.body, self.text = body, body.text

    def write(self, node: Node) -> str:
        """A node as an expression of a list; the body gets the statements that it needs."""
        return self.by_rule(node)

    def row_input(self, node: row_nodes.RowInput) -> str:
        return "scores"

    def kept(self, node: Node, hint: str = "x") -> str:
        """The variable that holds a node."""
        return self.body.keep(hint, self.write(node))

    def each_column(self, node: row_nodes.EachColumn) -> str:
        items = [f"({column}, {function_of(own, self.text)})" for column, own in node.members]
        held = self.text.registry("MEMBERS", "(", items, ")", "a column of the row, and its map")
        return f"[member({self.kept(node.row)}[column]) for column, member in {held}]"

    def within(self, node: row_nodes.Within) -> str:
        low, high = number(node.low), number(node.high)
        return f"[min(max(value, {low}), {high}) for value in {self.kept(node.row)}]"

    def logarithms(self, node: row_nodes.Logarithms) -> str:
        cut = f"min(max(value, {number(node.floor)}), 1.0)"
        return f"[math.log({cut}) for value in {self.kept(node.row)}]"

    def affine(self, node: row_nodes.Affine) -> str:
        x, text = self.kept(node.row), self.text
        if node.bias is None:
            return f"[{number(float(node.matrix))} * value for value in {x}]"
        bias = text.numbers("BIAS", node.bias, "what is added to each class")
        if node.matrix.ndim == 0:
            factor = number(float(node.matrix))
            return f"[{factor} * value + b for value, b in zip({x}, {bias})]"
        if node.matrix.ndim == 1:
            own = text.numbers("FACTORS", node.matrix, "the factor of each class")
            return f"[w * value + b for w, value, b in zip({own}, {x}, {bias})]"
        rows = [f"({', '.join(map(repr, row))})" for row in node.matrix.tolist()]
        matrix = text.table("MATRIX", rows, "how much of each logit goes into each class")
        row = f"sum(w * value for w, value in zip(row, {x})) + b"
        return f"[{row} for row, b in zip({matrix}, {bias})]"

    def log_softmax(self, node: row_nodes.LogSoftmax) -> str:
        return f"_log_softmax({self.kept(node.row)})"

    def exponentials(self, node: row_nodes.Exponentials) -> str:
        return f"[math.exp(value) for value in {self.write(node.row)}]"

    def normalised(self, node: row_nodes.Normalised) -> str:
        return f"_shares({self.write(node.row)})"

    def power(self, node: row_nodes.Power) -> str:
        return f"[value ** {number(node.power)} for value in {self.kept(node.row)}]"

    def relative(self, node: row_nodes.Relative) -> str:
        kept = self.body.keep("x", f"[max(value, 0.0) for value in {self.kept(node.row)}]")
        peak = self.body.keep("peak", f"max({kept}) or 1.0")
        return f"[value / {peak} for value in {kept}]"

    def row_average(self, node: row_nodes.RowAverage) -> str:
        pairs = [f"({number(weight)}, {self.kept(row, 'p')})" for weight, row in node.terms]
        rows = self.body.keep("rows", f"[{', '.join(pairs)}]")
        first = self.body.keep("first", f"{rows}[0][1]")
        return f"[sum(weight * p[j] for weight, p in {rows}) for j in range(len({first}))]"

    def largest_mapped(self, node: row_nodes.LargestMapped) -> str:
        p = self.kept(node.row, "p")
        return f"_with_largest({p}, {function_of(node.member, self.text)}(max({p})))"

    def combined(self, node: row_nodes.Combined) -> str:
        r = self.kept(node.row, "r")
        p = COMBINED[node.rule](self, node, r)
        if node.known.all():
            return p
        found = self.body.keep("p", p)
        places = [str(int(node.known[:c].sum())) if k else "None" for c, k in enumerate(node.known)]
        at = self.text.table("PLACES", places, "where each class is; some are never probable")
        return f"[0.0 if i is None else {found}[i] for i in {at}]"

    def _with_weights(self, node: row_nodes.Combined, r: str) -> str:
        own = self.text.numbers("WEIGHTS", node.weights, "how much each class counts")
        return f"_{node.rule}({r}, {own})"

    def _with_columns(self, node: row_nodes.Combined, r: str) -> str:
        """Who is positive and who negative in each column, and its weight."""
        items = []
        for column, weight in zip(node.code.T, node.weights, strict=True):
            plus, minus = (tuple(np.flatnonzero(column == sign).tolist()) for sign in (1.0, -1.0))
            items.append(f"({plus}, {minus}, {number(weight)})")
        says = "of each column the positive and negative classes, weight"
        columns = self.text.table("COLUMNS", items, says)
        return f"_{node.rule}({r}, {columns}, {len(node.code)})"


#: the arguments of each rule of `Combined`
COMBINED: dict[str, Callable[[PythonRowPrinter, row_nodes.Combined, str], str]] = {
    "normalized": lambda printer, node, r: f"_normalized({r})",
    "projected": PythonRowPrinter._with_weights,
    "balanced": PythonRowPrinter._with_weights,
    "least_squares": PythonRowPrinter._with_columns,
    "coupled": PythonRowPrinter._with_columns,
}
