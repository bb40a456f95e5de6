"""The nodes of a plan. Every target prints these, and `evaluate` computes them with NumPy.

A plan is a graph of values: the score that comes in, arithmetic, a few functions, and tables in
which a score finds its piece. Parameters are numbers, or columns of numbers (`PlanColumn`) where
many plans of the same form are printed as one and each row has its own.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.losses import LARGEST, SMALLEST, logit, sigmoid
from calibrant.plan.borders import Regions, Stretches, on_stretches
from calibrant.plan.line_pieces import Pieces

__all__ = [
    "BySegment",
    "Clip",
    "Constant",
    "Input",
    "Let",
    "LinePieces",
    "Linear",
    "Log",
    "Logit",
    "MinusLogRest",
    "Node",
    "Number",
    "PieceChoice",
    "PlanColumn",
    "Sigmoid",
    "Softplus",
    "Square",
    "StepPieces",
    "Variable",
    "columns_of",
    "evaluate",
    "names_of",
    "operands",
    "rebuilt",
    "uses",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Function = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class PlanColumn:
    """One number for each of several plans."""

    values: Array


Number = float | PlanColumn


@dataclass(frozen=True, eq=False)
class Node:
    """A value that depends on the score."""


@dataclass(frozen=True, eq=False)
class Input(Node):
    """The number that comes in: comparisons are with it, since its bits are the same everywhere."""


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """The same number for every score."""

    value: Number


@dataclass(frozen=True, eq=False)
class Clip(Node):
    """A value moved into an interval."""

    x: Node
    low: Number
    high: Number


@dataclass(frozen=True, eq=False)
class Linear(Node):
    """base + Σ coefficient · value, summed from left to right."""

    base: Number
    terms: tuple[tuple[Number, Node], ...]


@dataclass(frozen=True, eq=False)
class Sigmoid(Node):
    """1 / (1 + exp(−x))."""

    x: Node


@dataclass(frozen=True, eq=False)
class Logit(Node):
    """ln p − ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    x: Node


@dataclass(frozen=True, eq=False)
class Log(Node):
    """ln p of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    x: Node


@dataclass(frozen=True, eq=False)
class MinusLogRest(Node):
    """−ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    x: Node


@dataclass(frozen=True, eq=False)
class Softplus(Node):
    """ln(1 + exp x): −ln(1 − p) of a p whose logit is x, and −ln p of one whose logit is −x."""

    x: Node


@dataclass(frozen=True, eq=False)
class Square(Node):
    """x²."""

    x: Node


@dataclass(frozen=True, eq=False)
class PieceChoice:
    """How the input chooses among the pieces above and below some knots.

    Parameters
    ----------
    knots : ascending
    function : NumPy's function from the input to what is compared with the knots; None: the same
    stretches : where that function rises and falls; None where it is not known: then only what is
        compared can choose, and only where neighbours agree at every knot
    """

    knots: Array
    function: Function | None
    stretches: Stretches | None

    @functools.cached_property
    def found(self) -> Regions | None:
        """The piece that holds on each interval of the input, exactly; see `borders`."""
        if self.stretches is None:
            return None
        return on_stretches(self.knots, self.function, self.stretches)


@dataclass(frozen=True, eq=False)
class StepPieces(Node):
    """A number for each piece, of one table or of one for each of several plans."""

    input: Input
    places: tuple[PieceChoice, ...]
    values: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class LinePieces(Node):
    """A line of x on each piece, of one table or of one for each of several plans."""

    input: Input
    x: Node
    places: tuple[PieceChoice, ...]
    pieces: tuple[Pieces, ...]


@dataclass(frozen=True, eq=False)
class Variable(Node):
    """A value that is computed once and used in several places."""

    value: Node


@dataclass(frozen=True, eq=False)
class Let(Node):
    """A body that depends on the score only through a variable (and through comparisons)."""

    variable: Variable
    body: Node


@dataclass(frozen=True, eq=False)
class BySegment(Node):
    """share · own + (1 − share) · common in known segments, ``common`` in all others.

    Parameters
    ----------
    common : a variable, which members may use
    keys : the segments, text or whole numbers
    members : the value of each segment's own plan
    shares : how much each counts, in [0, 1]
    whole : the plan of segment i on its own, ``common`` mixed in
    """

    common: Variable
    keys: tuple[str | int, ...]
    members: tuple[Node, ...]
    shares: Array
    whole: Callable[[int], Node]


#: the names of the fields of each kind of node that has been met
NAMES: dict[type[Node], tuple[str, ...]] = {}


def names_of(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a kind of node."""
    if kind not in NAMES:
        NAMES[kind] = tuple(field.name for field in fields(kind))
    return NAMES[kind]


def parts_of(node: Node) -> list[Any]:
    """What a node is made of, whether in a tuple or on its own."""
    found: list[Any] = []
    open_ = [getattr(node, name) for name in names_of(type(node))]
    while open_:
        part = open_.pop(0)
        if isinstance(part, tuple):
            open_[:0] = part
        else:
            found.append(part)
    return found


def operands(node: Node) -> list[Node]:
    """The nodes that a node is made of."""
    return [part for part in parts_of(node) if isinstance(part, Node)]


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with every node changed, from the score on; what is shared stays so."""
    known: dict[Node, Node] = {}

    def value(own: Any) -> Any:
        if isinstance(own, Node):
            if own not in known:
                parts = {name: value(getattr(own, name)) for name in names_of(type(own))}
                same = all(part is getattr(own, name) for name, part in parts.items())
                known[own] = change(own if same else type(own)(**parts))
            return known[own]
        if isinstance(own, tuple):
            made = tuple(value(item) for item in own)
            same = all(a is b for a, b in zip(made, own, strict=True))
            return own if same else made
        return own

    made: Node = value(node)
    return made


def columns_of(node: Node) -> list[PlanColumn]:
    """The parameters of which each row has its own, each once."""
    parts = (part for own in uses([node]) for part in parts_of(own))
    return list(dict.fromkeys(part for part in parts if isinstance(part, PlanColumn)))


def uses(plans: Sequence[Node]) -> Counter[Node]:
    """In how many places each node of some plans is used.

    >>> s = Input()
    >>> uses([Linear(0.0, ((1.0, s), (2.0, s)))])[s]
    2
    """
    counts = Counter(plans)
    open_ = list(plans)
    while open_:
        for part in operands(open_.pop()):
            if part not in counts:
                open_.append(part)
            counts[part] += 1
    return counts


# --- in NumPy -------------------------------------------------------------------------------------


def evaluate(
    node: Node, scores: Array, segments: Sequence[object] | None = None, owner: int = 0
) -> Array:
    """The values of a plan: what every target must give; of many plans in one, those of ``owner``.

    >>> s = Input()
    >>> evaluate(Sigmoid(Linear(1.0, ((2.0, s),))), np.array([-0.5])).tolist()
    [0.5]
    """
    with np.errstate(all="ignore"):
        return _Run(np.asarray(scores, dtype=np.float64), segments, owner).value(node)


class _Run:
    """One evaluation, in which each node is computed once."""

    def __init__(self, scores: Array, segments: Sequence[object] | None, owner: int) -> None:
        self.scores, self.segments, self.owner = scores, segments, owner
        self.known: dict[Node, Array] = {}

    def value(self, node: Node) -> Array:
        if node not in self.known:
            self.known[node] = RULES[type(node)](self, node)
        return self.known[node]

    def number(self, number: Number) -> Array:
        """A parameter, for all rows."""
        own = number.values[self.owner] if isinstance(number, PlanColumn) else number
        return np.full(self.scores.shape, own)

    def constant(self, node: Constant) -> Array:
        return self.number(node.value)

    def clip(self, node: Clip) -> Array:
        return np.clip(self.value(node.x), self.number(node.low), self.number(node.high))

    def linear(self, node: Linear) -> Array:
        total = self.number(node.base)
        for coefficient, term in node.terms:
            total = total + self.number(coefficient) * self.value(term)
        return total

    def steps(self, node: StepPieces) -> Array:
        own = self.owner if len(node.places) > 1 else 0
        return np.asarray(node.values[own][self._piece(node.places[own])])

    def lines(self, node: LinePieces) -> Array:
        own, x = self.owner if len(node.places) > 1 else 0, self.value(node.x)
        if node.places[own].found is None:
            return node.pieces[own].value(x)
        return node.pieces[own].on(x, self._piece(node.places[own]))

    def _piece(self, place: PieceChoice) -> Index:
        found = place.found
        assert found is not None  # what jumps where nothing is known is refused when lowered
        return found.piece[np.searchsorted(found.low, self.scores, side="right") - 1]

    def by_segment(self, node: BySegment) -> Array:
        result = self.value(node.common).copy()
        for i, row in enumerate(self.segments or ()):
            if row in node.keys:
                at = node.keys.index(row)
                own, share = float(self.value(node.members[at])[i]), float(node.shares[at])
                result[i] = own if share == 1.0 else share * own + (1.0 - share) * result[i]
        return result


def _of(function: Function) -> Callable[[_Run, Any], Array]:
    return lambda run, node: function(run.value(node.x))


RULES: dict[type[Node], Callable[..., Array]] = {
    Input: lambda run, node: run.scores,
    Constant: _Run.constant,
    Clip: _Run.clip,
    Linear: _Run.linear,
    Sigmoid: _of(sigmoid),
    Logit: _of(logit),
    Log: _of(lambda p: np.log(np.clip(p, SMALLEST, LARGEST))),
    MinusLogRest: _of(lambda p: -np.log1p(-np.clip(p, SMALLEST, LARGEST))),
    Softplus: _of(lambda x: np.logaddexp(0.0, x)),
    Square: _of(np.square),
    StepPieces: _Run.steps,
    LinePieces: _Run.lines,
    Variable: lambda run, node: run.value(node.value),
    Let: lambda run, node: run.value(node.body),
    BySegment: _Run.by_segment,
}
