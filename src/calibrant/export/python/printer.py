"""Plans of one score as statements of a Python function."""

from __future__ import annotations

from collections import Counter

import numpy as np

from calibrant.export.python.text import Function, Text, number, spread
from calibrant.plan import nodes
from calibrant.plan.nodes import Node, Number, PlanPrinter, uses

#: the most terms of one expression; a longer sum is several statements
MANY = 8
#: the names of variables that hold the value of a node
HINTS: dict[type[Node], str] = {nodes.Logit: "z", nodes.Clip: "x"}
#: the helpers that compute functions
HELPERS: dict[type[Node], str] = {
    nodes.Sigmoid: "_sigmoid",
    nodes.Logit: "_logit",
    nodes.Log: "_ln",
    nodes.MinusLogRest: "_minus_ln_rest",
}


def function_of(plan: Node, text: Text) -> str:
    """The name of a private function of one score that evaluates a plan."""
    body = Function(text, ("score: float",))
    body.add(f"return {PythonPrinter(body, plan).write(plan)}")
    return text.function(body)


class PythonPrinter(PlanPrinter[str]):
    """Writes plans into the body of a function; ``known`` are nodes that variables hold already."""

    def __init__(self, body: Function, *plans: Node, known: dict[Node, str] | None = None) -> None:
        self.body, self.text = body, body.text
        self.known = dict(known or {})
        self.uses: Counter[Node] = uses(plans)

    def write(self, node: Node) -> str:
        """A node as an expression; the body gets the statements that it needs."""
        if node not in self.known:
            written = self.by_rule(node)
            if self.uses[node] < 2 or isinstance(node, (nodes.Constant, nodes.Input)):
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


def _plain(value: Number) -> str:
    assert isinstance(value, float)  # columns are for targets that print many plans as one
    return number(value)
