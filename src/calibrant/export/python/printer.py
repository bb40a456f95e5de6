"""Plans of a score, or of a row of scores, as statements of a Python function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from calibrant.export.python.text import Function, Text, number, spread
from calibrant.plan import nodes, row_nodes
from calibrant.plan.nodes import Node, Number, PlanPrinter, uses

#: the most terms of one expression; a longer sum is several statements
MANY = 8
#: the names of variables that hold the value of a node
HINTS: dict[type[Node], str] = {nodes.Logit: "z", nodes.Clip: "x"}
#: nodes that no variable needs to hold; rows are kept by their rules
PLAIN = (nodes.Constant, nodes.Input, row_nodes.Row)
#: the helpers that compute functions
HELPERS: dict[type[Node], str] = {
    nodes.Sigmoid: "_sigmoid",
    nodes.Logit: "_logit",
    nodes.Log: "_ln",
    nodes.MinusLogRest: "_minus_ln_rest",
    nodes.Softplus: "_softplus",
}


def function_of(plan: Node, text: Text) -> str:
    """The name of a private function of one score that evaluates a plan."""
    body = Function(text, ("score: float",))
    body.add(f"return {PythonPrinter(body, plan).write(plan)}")
    return text.function(body)


class PythonPrinter(PlanPrinter[str]):
    """Writes plans into the body of a function of ``score``, or of the list ``scores``.

    ``known`` are nodes that variables hold already.
    """

    def __init__(self, body: Function, *plans: Node, known: dict[Node, str] | None = None) -> None:
        self.body, self.text = body, body.text
        self.known = dict(known or {})
        self.uses: Counter[Node] = uses(plans)

    def write(self, node: Node) -> str:
        """A node as an expression; the body gets the statements that it needs."""
        if node not in self.known:
            written = self.by_rule(node)
            if self.uses[node] < 2 or isinstance(node, PLAIN):
                return written
            self.known[node] = self.body.keep(HINTS.get(type(node), "p"), written)
        return self.known[node]

    def input(self, node: nodes.Input) -> str:
        return "score"

    def constant(self, node: nodes.Constant) -> str:
        return _plain(node.value)

    def let(self, node: nodes.Let) -> str:
        """The variable first, then what is made of it."""
        self.variable(node.variable)
        return self.write(node.body)

    def variable(self, node: nodes.Variable, hint: str = "p") -> str:
        if node not in self.known:
            self.known[node] = self.body.keep(hint, self.write(node.value))
        return self.known[node]

    def clip(self, node: nodes.Clip) -> str:
        return f"min(max({self.write(node.x)}, {_plain(node.low)}), {_plain(node.high)})"

    def linear(self, node: nodes.Linear) -> str:
        base = [_plain(node.base)] if node.base or not node.terms else []
        if len(node.terms) <= MANY:
            return spread(base + [f"{_plain(c)} * {self.write(term)}" for c, term in node.terms])
        total = self.body.name("total")
        self.body.add(f"{total} = {_plain(node.base)}", sets=total)
        for c, term in node.terms:
            self.body.add(f"{total} += {_plain(c)} * {self.write(term)}", sets=total)
        return total

    def rising(self, node: nodes.Rising) -> str:
        return f"{HELPERS[type(node)]}({self.write(node.x)})"

    def square(self, node: nodes.Square) -> str:
        z = self.body.keep("z", self.write(node.x))
        return f"({z} * {z})"

    def step_pieces(self, node: nodes.StepPieces) -> str:
        [place], [values] = node.places, node.values
        low, _, piece = place.regions
        cuts = self.text.numbers("CUTS", low[1:], "the lowest scores of all steps but the first")
        held = self.text.numbers("VALUES", values[piece], "the value of each step")
        return f"{held}[bisect.bisect_right({cuts}, {self.write(node.input)})]"

    def line_pieces(self, node: nodes.LinePieces) -> str:
        [pieces] = node.pieces
        x = self.body.keep("x", self.write(node.x))
        knots = self.text.numbers("KNOTS", pieces.x, "the knots, in ascending order")
        if pieces.jumps:
            left = self.text.numbers("LEFT", pieces.left, "what lines come to just before a knot")
            right = self.text.numbers("RIGHT", pieces.right, "what lines start from at a knot")
            chosen = self._chosen(node)
        else:  # at a knot both lines agree, so any side will do
            left = right = self.text.numbers("VALUES", pieces.left, "the value at each knot")
            chosen = f"bisect.bisect_right({knots}, {x})"
        return f"_on_line({x}, {knots}, {left}, {right}, {chosen})"

    def _chosen(self, node: nodes.LinePieces) -> str:
        """How many knots are at or below x, as an expression of the score."""
        low, _, piece = node.places[0].regions
        cuts = self.text.numbers("CUTS", low[1:], "the scores at which each next piece begins")
        found = f"bisect.bisect_right({cuts}, {self.write(node.input)})"
        if np.array_equal(piece, np.arange(len(piece))):
            return found
        held = self.text.table("PIECES", map(str, piece.tolist()), "the pieces in that order")
        return f"{held}[{found}]"

    # --- rows -------------------------------------------------------------------------------------

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

    def softmax_row(self, node: row_nodes.SoftmaxRow) -> str:
        return f"[math.exp(value) for value in _log_softmax({self.kept(node.row)})]"

    def normalised(self, node: row_nodes.Normalised) -> str:
        return f"_shares({self.write(node.row)})"

    def relative_power(self, node: row_nodes.RelativePower) -> str:
        kept = self.body.keep("x", f"[max(value, 0.0) for value in {self.kept(node.row)}]")
        peak = self.body.keep("peak", f"max({kept}) or 1.0")
        shares = self.body.keep("x", f"[value / {peak} for value in {kept}]")
        return f"[value ** {number(node.power)} for value in {shares}]"

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


def _plain(value: Number) -> str:
    assert isinstance(value, float)  # columns are for targets that print many plans as one
    return number(value)


#: the arguments of each rule of `Combined`
COMBINED: dict[str, Callable[[PythonPrinter, row_nodes.Combined, str], str]] = {
    "normalized": lambda printer, node, r: f"_normalized({r})",
    "projected": PythonPrinter._with_weights,
    "balanced": PythonPrinter._with_weights,
    "least_squares": PythonPrinter._with_columns,
    "coupled": PythonPrinter._with_columns,
}
