"""Plans of one score as statements of a Python function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.export.python.text import Function, Text, number, spread
from calibrant.plan.nodes import (
    Clip,
    Constant,
    Input,
    Let,
    Linear,
    LinePieces,
    Log,
    Logit,
    MinusLogRest,
    Node,
    Number,
    Sigmoid,
    Square,
    StepPieces,
    Variable,
    uses,
)

__all__ = ["PythonPrinter", "function_of"]

#: terms of one expression; a longer sum is several statements
MANY = 8
#: what variables are called that hold a node's value
HINTS: dict[type[Node], str] = {Logit: "z", Clip: "x"}


def function_of(plan: Node, text: Text) -> str:
    """The name of a private function of one score that evaluates a plan."""
    body = Function(text, ("score: float",))
    body.add(f"return {PythonPrinter(body, plan).write(plan)}")
    return text.function(body)


class PythonPrinter:
    """Writes plans into the body of a function; ``known`` are nodes that variables hold already."""

    def __init__(self, body: Function, *plans: Node, known: dict[Node, str] | None = None) -> None:
        self.body, self.text = body, body.text
        self.known = dict(known or {})
        self.uses: Counter[Node] = uses(plans)

    def write(self, node: Node) -> str:
        """A node as an expression; the body gets the statements that it needs."""
        if node not in self.known:
            written = RULES[type(node)](self, node)
            if self.uses[node] < 2 or isinstance(node, (Constant, Input)):
                return written
            self.known[node] = self.body.keep(HINTS.get(type(node), "p"), written)
        return self.known[node]

    def let(self, node: Let) -> str:
        """The variable first, then what is made of it."""
        self.variable(node.variable)
        return self.write(node.body)

    def variable(self, node: Variable, hint: str = "p") -> str:
        if node not in self.known:
            self.known[node] = self.body.keep(hint, self.write(node.value))
        return self.known[node]

    def clip(self, node: Clip) -> str:
        return f"min(max({self.write(node.x)}, {_plain(node.low)}), {_plain(node.high)})"

    def linear(self, node: Linear) -> str:
        base = [_plain(node.base)] if node.base or not node.terms else []
        if len(node.terms) <= MANY:
            return spread(base + [f"{_plain(c)} * {self.write(term)}" for c, term in node.terms])
        total = self.body.name("total")
        self.body.add(f"{total} = {_plain(node.base)}", sets=total)
        for c, term in node.terms:
            self.body.add(f"{total} += {_plain(c)} * {self.write(term)}", sets=total)
        return total

    def square(self, node: Square) -> str:
        z = self.body.keep("z", self.write(node.x))
        return f"({z} * {z})"

    def steps(self, node: StepPieces) -> str:
        [place], [values] = node.places, node.values
        assert place.found is not None
        cuts = self.text.numbers(
            "CUTS", place.found.low[1:], "the lowest scores of all steps but the first"
        )
        held = self.text.numbers("VALUES", values[place.found.piece], "the value of each step")
        return f"{held}[bisect.bisect_right({cuts}, {self.write(node.input)})]"

    def lines(self, node: LinePieces) -> str:
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

    def _chosen(self, node: LinePieces) -> str:
        """How many knots are at or below x, as an expression of the score."""
        [place] = node.places
        assert place.found is not None
        low, piece = place.found.low[1:], place.found.piece
        cuts = self.text.numbers("CUTS", low, "the scores at which each next piece begins")
        found = f"bisect.bisect_right({cuts}, {self.write(node.input)})"
        if np.array_equal(piece, np.arange(len(piece))):
            return found
        held = self.text.table("PIECES", map(str, piece.tolist()), "the pieces in that order")
        return f"{held}[{found}]"


def _plain(value: Number) -> str:
    assert isinstance(value, float)  # columns are for targets that print many plans as one
    return number(value)


def _call(function: str) -> Callable[[PythonPrinter, Any], str]:
    return lambda printer, node: f"{function}({printer.write(node.x)})"


RULES: dict[type[Node], Callable[..., str]] = {
    Input: lambda printer, node: "score",
    Constant: lambda printer, node: _plain(node.value),
    Clip: PythonPrinter.clip,
    Linear: PythonPrinter.linear,
    Sigmoid: _call("_sigmoid"),
    Logit: _call("_logit"),
    Log: _call("_ln"),
    MinusLogRest: _call("_minus_ln_rest"),
    Square: PythonPrinter.square,
    StepPieces: PythonPrinter.steps,
    LinePieces: PythonPrinter.lines,
    Variable: PythonPrinter.variable,
    Let: PythonPrinter.let,
}
