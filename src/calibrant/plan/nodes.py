"""The nodes of a plan. Every target prints these, and `evaluate` computes them with NumPy.

A plan is a graph of values: the score that comes in, arithmetic, a few functions, and tables in
which a score finds its piece. Parameters are numbers, or columns of numbers (`Column`) where many
plans of the same form are printed as one and each row has its own.
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
from calibrant.plan.pieces import Pieces

__all__ = [
    "BySegment",
    "Clip",
    "Column",
    "Constant",
    "Input",
    "Let",
    "Linear",
    "Lines",
    "Log",
    "Logit",
    "MinusLogRest",
    "Node",
    "Number",
    "Place",
    "Sigmoid",
    "Softplus",
    "Square",
    "Steps",
    "Variable",
    "evaluate",
    "operands",
    "uses",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Function = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Column:
    """One number for each of several plans."""

    values: Array


Number = float | Column


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
class Place:
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
class Steps(Node):
    """A number for each piece, of one table or of one for each of several plans."""

    input: Input
    places: tuple[Place, ...]
    values: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Lines(Node):
    """A line of x on each piece, of one table or of one for each of several plans."""

    input: Input
    x: Node
    places: tuple[Place, ...]
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
    """

    common: Variable
    keys: tuple[str | int, ...]
    members: tuple[Node, ...]
    shares: Array


def operands(node: Node) -> list[Node]:
    """The nodes that a node is made of."""
    found: list[Node] = []
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            found += [part for part in _parts(item) if isinstance(part, Node)]
    return found


def _parts(item: object) -> tuple[object, ...]:
    return item if isinstance(item, tuple) else (item,)


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


def evaluate(node: Node, scores: Array, segments: Sequence[object] | None = None) -> Array:
    """The values of a plan: what every target must give.

    >>> s = Input()
    >>> evaluate(Sigmoid(Linear(1.0, ((2.0, s),))), np.array([-0.5])).tolist()
    [0.5]
    """
    with np.errstate(all="ignore"):
        return _Run(np.asarray(scores, dtype=np.float64), segments).value(node)


class _Run:
    """One evaluation, in which each node is computed once."""

    def __init__(self, scores: Array, segments: Sequence[object] | None) -> None:
        self.scores, self.segments = scores, segments
        self.known: dict[int, Array] = {}
        self.code: Index = np.zeros(scores.shape, dtype=np.int64)

    def value(self, node: Node) -> Array:
        if id(node) not in self.known:
            self.known[id(node)] = RULES[type(node)](self, node)
        return self.known[id(node)]

    def number(self, number: Number) -> Array:
        """A parameter of each row."""
        if isinstance(number, Column):
            return np.asarray(number.values[self.code])
        return np.full(self.scores.shape, number)

    def constant(self, node: Constant) -> Array:
        return self.number(node.value)

    def clip(self, node: Clip) -> Array:
        return np.clip(self.value(node.x), self.number(node.low), self.number(node.high))

    def linear(self, node: Linear) -> Array:
        total = self.number(node.base)
        for coefficient, term in node.terms:
            total = total + self.number(coefficient) * self.value(term)
        return total

    def steps(self, node: Steps) -> Array:
        result = np.empty(self.scores.shape)
        for i, (place, values) in enumerate(zip(node.places, node.values, strict=True)):
            here = self.code == i
            found = place.found
            assert found is not None  # steps without borders are refused when they are lowered
            result[here] = values[_piece(found, self.scores[here])]
        return result

    def lines(self, node: Lines) -> Array:
        x, result = self.value(node.x), np.empty(self.scores.shape)
        for i, (place, pieces) in enumerate(zip(node.places, node.pieces, strict=True)):
            here = self.code == i
            found = place.found
            if found is None:
                result[here] = pieces.value(x[here])
            else:
                result[here] = pieces.on(x[here], _piece(found, self.scores[here]))
        return result

    def by_segment(self, node: BySegment) -> Array:
        result = self.value(node.common).copy()
        for i, row in enumerate(self.segments or ()):
            if row in node.keys:
                at = node.keys.index(row)
                own, share = float(self.value(node.members[at])[i]), float(node.shares[at])
                result[i] = own if share == 1.0 else share * own + (1.0 - share) * result[i]
        return result


def _piece(found: Regions, scores: Array) -> Index:
    return found.piece[np.searchsorted(found.low, scores, side="right") - 1]


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
    Steps: _Run.steps,
    Lines: _Run.lines,
    Variable: lambda run, node: run.value(node.value),
    Let: lambda run, node: run.value(node.body),
    BySegment: _Run.by_segment,
}
