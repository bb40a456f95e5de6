"""The nodes of a plan. Every target prints these, and `interpreter` computes them.

A plan is a graph of values: the score that comes in, arithmetic, a few functions, and tables in
which a score finds its piece. Parameters are numbers, or columns of numbers (`PlanColumn`) where
many plans of the same form are printed as one and each row has its own.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.losses import log_p, logit, minus_log_rest, sigmoid, softplus
from calibrant.rules.plan.borders import (
    LARGEST_DOUBLE,
    Pieces,
    Regions,
    Stretches,
    on_stretches,
    regions,
)

Index = NDArray[np.int64]
Function = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class PlanColumn:
    """One number for each of several plans."""

    values: Array


Number = float | PlanColumn


def values_of(number: Number) -> Array:
    """The numbers that a parameter is, one or several."""
    return number.values if isinstance(number, PlanColumn) else np.array([number])


@dataclass_transform(eq_default=False, frozen_default=True)
@dataclass(frozen=True, eq=False)
class Node:
    """A value that depends on the score. Every kind of node is a frozen dataclass, and two nodes
    are equal only if they are one."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Input(Node):
    """The number that comes in. Pieces are chosen by it, for its bits are the same everywhere."""


class Constant(Node):
    """The same number for every score."""

    value: Number


class Clip(Node):
    """A value moved into an interval."""

    x: Node
    low: Number
    high: Number


class Linear(Node):
    """base + Σ coefficient · value, summed from left to right."""

    base: Number
    terms: tuple[tuple[Number, Node], ...]


class Rising(Node):
    """A function of one value that rises with it."""

    x: Node

    @staticmethod
    def function(x: Array, /) -> Array:
        """The function in NumPy."""
        raise NotImplementedError


class Sigmoid(Rising):
    """1 / (1 + exp(−x))."""

    function = staticmethod(sigmoid)


class Logit(Rising):
    """ln p − ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    function = staticmethod(logit)


class Log(Rising):
    """ln p of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    function = staticmethod(log_p)


class MinusLogRest(Rising):
    """−ln(1 − p) of p clipped to [5e-324, 1 − 2⁻⁵³]."""

    function = staticmethod(minus_log_rest)


class Softplus(Rising):
    """ln(1 + exp x): −ln(1 − p) of a p whose logit is x, and −ln p of one whose logit is −x."""

    function = staticmethod(softplus)


class Square(Node):
    """x²."""

    x: Node


@dataclass(frozen=True, eq=False)
class PieceChoice:
    """How the input chooses among the pieces above and below some knots.

    Parameters
    ----------
    knots : ascending
    function : NumPy's function from the input to what is compared with the knots; None where the
        input itself is
    stretches : where that function rises and falls; None where it is not known. Then what is
        compared must choose itself, which is safe only if neighbours agree at every knot.
    """

    knots: Array
    function: Function | None
    stretches: Stretches | None

    @property
    def by_input(self) -> bool:
        """Whether the input itself chooses; else what is compared with the knots does."""
        return self.stretches is not None

    @functools.cached_property
    def regions(self) -> Regions:
        """The piece that holds on each interval of the number that chooses, to the exact double."""
        if self.stretches is None:
            return regions(self.knots, None, falling=False)
        return on_stretches(self.knots, self.function, self.stretches)


class StepPieces(Node):
    """A number for each piece, of one table or of one for each of several plans."""

    input: Input
    places: tuple[PieceChoice, ...]
    values: tuple[Array, ...]


class LinePieces(Node):
    """A line of x on each piece, of one table or of one for each of several plans."""

    input: Input
    x: Node
    places: tuple[PieceChoice, ...]
    pieces: tuple[Pieces, ...]


class Variable(Node):
    """A value that is computed once and used in several places."""

    value: Node


class Let(Node):
    """A body that reads a variable; beside it, the score only chooses pieces."""

    variable: Variable
    body: Node


class BySegment(Node):
    """share · own + (1 − share) · common in known segments, ``common`` in all others.

    Parameters
    ----------
    common : a variable, which members may use
    keys : the segments, text or whole numbers
        With several columns tuples of these, for the first column or more; a row has the finest
        segment that is known.
    members : the value of each segment's own plan
    shares : how much each counts, in [0, 1]
    whole : the plan of segment i on its own, ``common`` mixed in
    columns : how many columns say which segment a row is in
    """

    common: Variable
    keys: tuple[Any, ...]
    members: tuple[Node, ...]
    shares: Array
    whole: Callable[[int], Node]
    columns: int = 1

    @property
    def paths(self) -> tuple[tuple[str | int, ...], ...]:
        """The keys as tuples, also with one column."""
        return tuple(key if isinstance(key, tuple) else (key,) for key in self.keys)

    @property
    def column_names(self) -> list[str]:
        """What targets call the columns of segments: segment, or segment_1, segment_2 and so on."""
        numbers = range(1, self.columns + 1)
        return ["segment"] if self.columns == 1 else [f"segment_{i}" for i in numbers]

    def values(self, column: int) -> list[str | int]:
        """The values that keys have in a column, each once."""
        return list(dict.fromkeys(path[column] for path in self.paths if len(path) > column))

    def key_type(self, where: str, column: int) -> type[str | int]:
        """The one type of all keys in a column, for targets in which it has one type; text where
        no key has a value there."""
        values = self.values(column)
        if len({type(key) for key in values}) > 1:
            raise InputError(
                f"the segments {where} must be all text or all whole numbers, but this map has "
                "both. Fit the segments as text: segments.astype(str)."
            )
        for key in values:
            if isinstance(key, int) and not -(2**63) <= key < 2**63:  # maps take unsigned ones
                raise InputError(
                    f"the segments {where} must be integers of at most 64 bits with a sign, but "
                    f"{key} came. Fit the segments as text: segments.astype(str)."
                )
        return type(values[0]) if values else str


# --- What a plan becomes --------------------------------------------------------------------------

Result = TypeVar("Result")


class PlanPrinter(Generic[Result]):
    """Turns plans into something else: SQL, a graph, values. It has a rule for each kind of node.

    A rule is a method, called like the class of the node in small letters: `Linear` is written by
    ``linear``, `StepPieces` by ``step_pieces``. Where there is none of that name, the rule of the
    class that the node derives from is taken: ``rising`` for any `Rising`.
    """

    def __init__(self) -> None:
        #: what nodes have become so far
        self.known: dict[Node, Result] = {}

    def write(self, node: Node) -> Result:
        """What a node becomes; a node that is used twice is written once."""
        if node not in self.known:
            self.known[node] = self.by_rule(node)
        return self.known[node]

    def by_rule(self, node: Node) -> Result:
        """What the rule for this kind of node gives."""
        kinds: tuple[Any, Any] = type(self), type(node)
        result: Result = _rule(*kinds)(self, node)
        return result

    def variable(self, node: Variable) -> Result:
        return self.write(node.value)

    def let(self, node: Let) -> Result:
        return self.write(node.body)


@functools.cache
def _rule(printer: Any, kind: Any) -> Callable[[Any, Any], Any]:
    names = [re.sub(r"\B([A-Z])", r"_\1", own.__name__).lower() for own in kind.__mro__]
    found = [getattr(printer, name) for name in names if hasattr(printer, name)]
    if not found:
        raise NotImplementedError(f"{printer.__name__} must have a rule called {names[0]}.")
    rule: Callable[[Any, Any], Any] = found[0]
    return rule


# --- What a plan is made of -----------------------------------------------------------------------


def names_of(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a kind of node."""
    return tuple(kind.__dataclass_fields__)


def parts_of(node: Node) -> list[Any]:
    """The fields of a node, with tuples opened."""
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
    """The plan with every node changed, inner ones first; a node that is shared stays shared."""
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
    """The parameters that differ from row to row, each once."""
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


# --- The range of values that a node can have: what a target need not guard against ---------------


Range = tuple[float, float]

#: how far from what NumPy gives an engine's value may be, as a share of it, or of 1
MARGIN = 1e-9
EVERYWHERE = (-LARGEST_DOUBLE, LARGEST_DOUBLE)


def reach(
    node: Node, score: Range = EVERYWHERE, known: Mapping[Node, Range] | None = None
) -> Range:
    """The least and the largest value of a node, as an engine may compute it.

    Parameters
    ----------
    node : Node
    score : the least and the largest score that comes in
    known : ranges of variables, where they are known better

    Notes
    -----
    By interval arithmetic, so never too narrow. A value that cannot be negative has no negative
    numbers in its range.

    >>> from calibrant.rules.plan.nodes import Clip, Input, Linear, Sigmoid
    >>> reach(Sigmoid(Input()))
    (0.0, 1.0)
    >>> reach(Linear(1.0, ((-2.0, Clip(Input(), 0.0, 0.25)),)))[0] > 0.49
    True
    """
    with np.errstate(all="ignore"):
        low, high = _Reach(score, known or {}).write(node)
    return float(low), float(high)


def ends_of(number: Number) -> Range:
    """The least and the largest of a parameter."""
    values = values_of(number)
    return float(values.min()), float(values.max())


def about(low: float, high: float) -> Range:
    """A little wider, but not across zero: rounding does not change a sign."""
    below = low - MARGIN * max(1.0, abs(low))
    above = high + MARGIN * max(1.0, abs(high))
    return max(below, 0.0) if low >= 0.0 else below, min(above, 0.0) if high <= 0.0 else above


class _Reach(PlanPrinter[Range]):
    """The ranges of nodes, by interval arithmetic."""

    def __init__(self, score: Range, known: Mapping[Node, Range]) -> None:
        self.score, self.known = score, dict(known)

    def input(self, node: Input) -> Range:
        return self.score

    def constant(self, node: Constant) -> Range:
        return ends_of(node.value)

    def clip(self, node: Clip) -> Range:
        (low, _), (_, high) = ends_of(node.low), ends_of(node.high)
        least, most = self.write(node.x)
        return min(max(least, low), high), max(min(most, high), low)

    def linear(self, node: Linear) -> Range:
        low, high = ends_of(node.base)
        for coefficient, term in node.terms:
            products = [c * v for c in ends_of(coefficient) for v in self.write(term)]
            low, high = low + min(products), high + max(products)
        return about(low, high)

    def rising(self, node: Rising) -> Range:
        low, high = node.function(np.array(self.write(node.x))).tolist()
        return about(low, high)

    def sigmoid(self, node: Sigmoid) -> Range:
        low, high = self.rising(node)
        return low, min(high, 1.0)

    def square(self, node: Square) -> Range:
        low, high = self.write(node.x)
        squares = (low * low, high * high)
        return about(0.0 if low <= 0.0 <= high else min(squares), max(squares))

    def step_pieces(self, node: StepPieces) -> Range:
        tables = zip(node.places, node.values, strict=True)
        return _ends([v for place, own in tables for v in self._met(place, own)])

    def line_pieces(self, node: LinePieces) -> Range:
        tables = zip(node.places, node.pieces, strict=True)
        return about(
            *_ends([v for place, own in tables for v in self._met(place, own.low, own.high)])
        )

    def _met(self, place: PieceChoice, *columns: Array) -> list[Array]:
        """The entries of columns for the pieces that scores can lie on."""
        if not place.by_input:
            return list(columns)
        here = place.regions.within(*self.score).piece
        return [column[here] for column in columns]


def _ends(values: list[Array]) -> Range:
    whole = np.concatenate(values)
    return float(whole.min()), float(whole.max())
