"""Plans: what maps become for other systems. Every target prints these nodes, and `interpreter`
computes them.

A plan is a graph of values: the score that comes in, arithmetic, a few functions, and tables in
which a score finds its piece. Parameters are numbers, or columns of numbers (`PlanColumn`) where
many plans of the same form are printed as one and each row has its own. Where pieces begin and end
is known to the exact double.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, dataclass_transform

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.errors import InputError
from calibrant.losses import SMALLEST, log_p, logit, minus_log_rest, sigmoid, softplus

Function = Callable[[Array], Array]

LARGEST_DOUBLE = float(np.finfo(np.float64).max)

# --- Nodes: values that depend on the score -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlanColumn:
    """One number for each of several plans."""

    values: Array


Number = float | PlanColumn


def values_of(number: Number) -> Array:
    """The number, or the numbers, of a parameter as an array."""
    return number.values if isinstance(number, PlanColumn) else np.array([number])


@dataclass_transform(eq_default=False, frozen_default=True)
@dataclass(frozen=True, eq=False)
class Node:
    """A value that depends on the score. Every kind of node is a frozen dataclass, and two nodes
    are equal only if they are one."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Input(Node):
    """The number that comes in. It chooses the pieces, since its bits are the same in every
    system."""


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
        """Whether the input itself chooses the piece. Otherwise the value compared with the knots
        does."""
        return self.stretches is not None

    @functools.cached_property
    def regions(self) -> Regions:
        """The intervals of scores on which each piece holds, to the exact double."""
        if self.stretches is None:
            return regions(self.knots, None, falling=False)
        return regions_on_stretches(self.knots, self.function, self.stretches)


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
        """The keys as tuples, also if there is one column."""
        return tuple(key if isinstance(key, tuple) else (key,) for key in self.keys)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns of segments in exports: segment, or segment_1, segment_2 and so
        on."""
        numbers = range(1, self.columns + 1)
        return ["segment"] if self.columns == 1 else [f"segment_{i}" for i in numbers]

    def values(self, column: int) -> list[str | int]:
        """The different values of the keys in a column."""
        return list(dict.fromkeys(path[column] for path in self.paths if len(path) > column))

    def key_type(self, where: str, column: int) -> type[str | int]:
        """The type of all keys in a column, for targets whose columns have one type; text if no key
        has a value there."""
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


# --- Nodes of rows, for maps of several scores: the value of each is an array of shape (n, k) -----


#: logits are cut at ± this, and no parameter may be larger: their products stay finite
LARGEST_LOGIT = 1e100
#: an entry that must stay the largest is at least this factor above the value at which it would
#: equal the second: float32 can still tell the two apart
AHEAD = 1.0 + 1e-6


class Row(Node):
    """A value for each row and column."""


class RowInput(Row):
    """The k numbers that come in."""

    k: int


class RowOf(Row):
    """A value computed from another row."""

    row: Row


class EachColumn(RowOf):
    """For each column of the result, the column that it reads and the plan for that score."""

    members: tuple[tuple[int, Node], ...]


class Among(RowOf):
    """z_j − ln Σ_{i≠j} exp z_i: the logit of each of k classes against all others."""

    k: int


class Within(RowOf):
    """Values moved into an interval."""

    low: float
    high: float


class Logarithms(RowOf):
    """ln of values moved into [floor, 1]."""

    floor: float


class Affine(RowOf):
    """W·x + b. W is a factor, one factor for each column, or a matrix; b may be left out."""

    matrix: Array
    bias: Array | None = None


class LogSoftmax(RowOf):
    """x − ln Σ exp x."""


class SoftmaxRow(RowOf):
    """exp x / Σ exp x."""


class Normalised(RowOf):
    """Values divided by their sum, unless that is zero."""


class RelativePower(RowOf):
    """(x / largest)^power of values of which none is below zero; the largest counts as 1 if it is
    zero."""

    power: float


class RowAverage(Row):
    """Σ weight · row."""

    terms: tuple[tuple[float, Row], ...]


class LargestMapped(RowOf):
    """A row of sum one whose largest entry is mapped, and whose others share what is left; see
    `with_largest`.

    Parameters
    ----------
    row : the distribution
    member : the plan of one score, the largest entry
    k : how many entries there are
    """

    member: Node
    k: int


class Combined(RowOf):
    """Class probabilities of columns' probabilities.

    Parameters
    ----------
    row : the columns that count; where each of them singles out a class, in the order of classes
    rule : "normalized", "projected" and "balanced" for columns that single out a class each;
        "least_squares" and "coupled" for any other code
    code, weights : of the columns that count; the code has only classes that these columns know
    known : which classes those are; the others get no probability
    solve : NumPy's function of the columns' probabilities
    """

    rule: str
    code: Array
    weights: Array
    known: Flags
    solve: Callable[[Array], Array]


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
        """The result for a node. A node that is used twice is written once."""
        if node not in self.known:
            self.known[node] = self.by_rule(node)
        return self.known[node]

    def by_rule(self, node: Node) -> Result:
        """The result for a node, by the method for its kind."""
        kinds: tuple[Any, Any] = type(self), type(node)
        result: Result = _rule_for_node(*kinds)(self, node)
        return result

    def variable(self, node: Variable) -> Result:
        return self.write(node.value)

    def let(self, node: Let) -> Result:
        return self.write(node.body)


@functools.cache
def _rule_for_node(printer: Any, kind: Any) -> Callable[[Any, Any], Any]:
    """The method of a printer for a kind of node; if it has none, that for the kind's base
    class."""
    names = [re.sub(r"\B([A-Z])", r"_\1", own.__name__).lower() for own in kind.__mro__]
    found = [getattr(printer, name) for name in names if hasattr(printer, name)]
    if not found:
        raise NotImplementedError(f"{printer.__name__} must have a rule called {names[0]}.")
    rule: Callable[[Any, Any], Any] = found[0]
    return rule


# --- What a plan is made of -----------------------------------------------------------------------


def field_names(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a kind of node."""
    return tuple(kind.__dataclass_fields__)


def fields_of_node(node: Node) -> list[Any]:
    """All fields of a node; tuples among them are opened."""
    found: list[Any] = []
    open_ = [getattr(node, name) for name in field_names(type(node))]
    while open_:
        part = open_.pop(0)
        if isinstance(part, tuple):
            open_[:0] = part
        else:
            found.append(part)
    return found


def operands(node: Node) -> list[Node]:
    """The nodes that a node is made of."""
    return [part for part in fields_of_node(node) if isinstance(part, Node)]


def rebuilt_plan(node: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with ``change`` applied to every node, inner nodes first. Shared nodes stay
    shared."""
    known: dict[Node, Node] = {}

    def value(own: Any) -> Any:
        if isinstance(own, Node):
            if own not in known:
                parts = {name: value(getattr(own, name)) for name in field_names(type(own))}
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


def use_counts(plans: Sequence[Node]) -> Counter[Node]:
    """How often each node is used in some plans.

    >>> s = Input()
    >>> use_counts([Linear(0.0, ((1.0, s), (2.0, s)))])[s]
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


# --- Pieces: lines between knots, with jumps at the knots and flat ends ---------------------------


#: how far rounding may move a line written as base + slope · s
LOST = 2.5e-13
#: below this width 1/width may overflow; scores on such a piece are multiplied by the second number
NARROW, WIDER = 2.0**-960, 2.0**600


def trend_of_values(values: Array) -> int:
    """1 if values never fall, −1 if they never rise, 0 if some rise and some fall."""
    if (values[1:] >= values[:-1]).all():
        return 1
    return -1 if (values[1:] <= values[:-1]).all() else 0


@dataclass(frozen=True, eq=False)
class Pieces:
    """On [x_i, x_{i+1}) a line from right_i to left_{i+1}; left_0 below, the last right above.

    Piece i lies above i knots, so there is one more piece than there are knots.

    >>> Pieces(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 3.0])).value(
    ...     np.array([-1.0, 0.25, 1.0])
    ... ).tolist()
    [0.0, 0.25, 3.0]
    """

    x: Array
    left: Array
    right: Array

    @functools.cached_property
    def is_step(self) -> bool:
        """Whether every piece is flat."""
        return bool(np.array_equal(self.right[:-1], self.left[1:]))

    @property
    def jumps(self) -> bool:
        """Whether the function jumps at some knot."""
        return not np.array_equal(self.left, self.right)

    @functools.cached_property
    def are_shares(self) -> bool:
        """Whether all values are in [0, 1]."""
        both = np.concatenate((self.left, self.right))
        return bool(both.min() >= 0.0 and both.max() <= 1.0)

    @functools.cached_property
    def outer(self) -> Flags:
        """Flags of the first and the last piece, which are flat and unbounded."""
        return np.asarray(np.arange(len(self.x) + 1) % len(self.x) == 0)

    @functools.cached_property
    def low(self) -> Array:
        """The value at the start of each piece."""
        return np.concatenate((self.left[:1], self.right))

    @functools.cached_property
    def high(self) -> Array:
        """The value at the end of each piece."""
        return np.concatenate((self.left, self.right[-1:]))

    @property
    def trend(self) -> int:
        """1 if the function never falls, −1 if it never rises, 0 if it does both."""
        return trend_of_values(np.column_stack((self.left, self.right)).ravel())

    @functools.cached_property
    def table(self) -> tuple[Array, ...]:
        """Columns with an entry per piece: start, width, value at the start, value at the end, the
        smaller of the two, the larger, and a scale (½ where the width would overflow)."""
        low, high = self.low, self.high
        with np.errstate(over="ignore"):
            scale = np.where(np.isinf(np.diff(self.x)), 0.5, 1.0)
        width = self.x[1:] * scale - self.x[:-1] * scale
        scale, width = (np.concatenate(([1.0], inner, [1.0])) for inner in (scale, width))
        start = np.concatenate((self.x[:1], self.x)) * scale
        return start, width, low, high, np.minimum(low, high), np.maximum(low, high), scale

    def value(self, s: Array) -> Array:
        """The value at points, by one binary search each."""
        return self.on(s, np.searchsorted(self.x, s, side="right"))

    def on(self, s: Array, piece: Index) -> Array:
        """The values at points whose pieces are known. They never leave the range of their
        piece."""
        if self.is_step:
            return np.asarray(self.low[piece])
        start, width, low, high, least, most, scale = self.table
        base = low[piece]
        with np.errstate(over="ignore"):  # only in the outer pieces, whose value is set below
            along = (s * scale[piece] - start[piece]) / width[piece]
        value = base + np.where(self.outer[piece], 0.0, along) * (high[piece] - base)
        return np.clip(value, least[piece], most[piece])

    def limits(self, at: Array) -> tuple[Array, Array]:
        """The limit from below, and the value, at points."""
        value = self.value(at)
        knot = np.minimum(np.searchsorted(self.x, at), len(self.x) - 1)
        return np.where(self.x[knot] == at, self.left[knot], value), value

    def columns(self, relative: bool = False) -> dict[str, Array]:
        """The columns that a line is computed from, an entry per piece.

        ``base`` and ``slope`` for base + slope · s, if that loses no digits. Else ``start``,
        ``low`` and ``slope`` for low + slope · (s − start). Where a slope would overflow, or small
        values must keep their digits (``relative``), those of `ends`: then a line is computed by
        the same operations as here.
        """
        start_, width, low, high, _, _, scale = self.table
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (high - low) / width
            base = low - start_ * slope
            lost = (np.abs(base) + np.abs(low)).max() * 2.0**-52
        whole = bool((scale == 1.0).all())
        if whole and lost <= LOST and not relative:
            return {"base": base, "slope": slope}
        ends = self.ends()
        if whole and np.isfinite(slope).all() and not relative:
            return {"start": ends["start"] / ends["scale"], "low": low, "slope": slope}
        if relative and (ends["scale"] == 1.0).all():
            del ends["scale"]
        return ends

    def ends(self) -> dict[str, Array]:
        """Both ends of each line: low + (s · scale − start) / width · (high − low)."""
        start_, width, low, high, _, _, scale = self.table
        # on the outer pieces the way from their start must not overflow
        start_, width = np.where(self.outer, 0.0, start_), np.where(self.outer, 1.0, width)
        # exact, and an engine that multiplies by 1/width in place of dividing must not find ∞
        wider = np.where(width < NARROW, WIDER, 1.0)
        both = {"start": start_ * wider, "low": low, "high": high, "width": width * wider}
        return both | {"scale": scale * wider}


def line_columns(tables: Sequence[Pieces], relative: bool = False) -> list[dict[str, Array]]:
    """`Pieces.columns` of several tables, in the same form for all of them."""
    columns = [own.columns(relative) for own in tables]
    same = len({tuple(own) for own in columns}) == 1
    return columns if same else [own.ends() for own in tables]


def on_line(s: Any, line: Mapping[str, Any]) -> Any:
    """The value of a line at s. The line is given in any form of `Pieces.columns`.

    s and the parameters are numbers, arrays, or anything else with the operators + − · /.

    >>> on_line(2.0, {"start": 1.0, "low": 0.25, "slope": 0.5})
    0.75
    """
    if "base" in line:
        return line["base"] + line["slope"] * s
    if "slope" in line:
        return line["low"] + line["slope"] * (s - line["start"])
    scaled = s * line["scale"] if "scale" in line else s
    return line["low"] + (scaled - line["start"]) / line["width"] * (line["high"] - line["low"])


def flat_value(line: Mapping[str, float]) -> float | None:
    """The value of a flat line; None for a line that rises or falls."""
    rise = line["slope"] if "slope" in line else line["high"] - line["low"]
    return line.get("base", line.get("low")) if rise == 0.0 else None


# --- Where pieces begin and end on the scale of the score, to the exact double --------------------
# The bits of doubles, read as integers, are in the order of the numbers. So the smallest double
# with a property is found by bisection of these integers (ranks) in at most 64 steps.


class Regions(NamedTuple):
    """Intervals [low, high] of doubles, with both ends included, and the piece on each."""

    low: Array
    high: Array
    piece: Index

    def within(self, first: float, last: float) -> Regions:
        """The parts of the intervals that lie in [first, last]."""
        here = (self.low <= last) & (self.high >= first)
        low, high = np.maximum(self.low, first), np.minimum(self.high, last)
        return Regions(low[here], high[here], self.piece[here])


def double_rank(values: Array) -> Index:
    """The rank of each finite double among all doubles; 0.0 and −0.0 have the same rank.

    >>> double_rank(np.array([-5e-324, 0.0, 5e-324])).tolist()
    [-1, 0, 1]
    """
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def double_at(ranks: Index) -> Array:
    """The doubles that have these ranks.

    >>> double_at(np.array([-1, 0, 1])).tolist()
    [-5e-324, 0.0, 5e-324]
    """
    bits = np.where(ranks < 0, np.iinfo(np.int64).min - ranks, ranks)
    return bits.astype(np.int64).view(np.float64)


FIRST, LAST = (int(double_rank(np.array([end]))[0]) for end in (-LARGEST_DOUBLE, LARGEST_DOUBLE))


def regions(knots: Array, function: Callable[[Array], Array] | None, falling: bool) -> Regions:
    """The intervals of scores on which a function lies between two neighbouring knots, exactly.

    Parameters
    ----------
    knots : array of shape (m,), ascending
    function : monotone function of an array of scores, or None for the score itself
    falling : bool
        Whether the function falls.

    Notes
    -----
    Piece i holds where i of the knots are at or below the function's value. The border of a knot
    is the first double at which the comparison with it changes. So a database that compares scores
    with borders decides as NumPy does, even if its logarithm differs in the last bit. Takes O(m)
    space, and 64 evaluations of the function at m points.

    Examples
    --------
    >>> found = regions(np.array([0.25]), np.sqrt, falling=False)
    >>> found.low.tolist(), found.high[0] < 0.0625, found.piece.tolist()
    ([-1.7976931348623157e+308, 0.0625], np.True_, [0, 1])
    """
    return regions_between(borders(knots, function, falling), falling)


def regions_between(first: Index, falling: bool) -> Regions:
    """The regions between the borders of ascending knots; empty ones are left out."""
    pieces = np.arange(len(first) + 1)
    if falling:  # a later knot is passed at a smaller score
        first, pieces = first[::-1], pieces[::-1]
    start = np.concatenate(([FIRST], np.maximum.accumulate(first)))
    some = start <= _last_ranks(start)
    return _regions_from_ranks(start[some], pieces[some])


def _regions_from_ranks(start: Index, piece: Index) -> Regions:
    """The regions that begin at ascending ranks, each up to the next."""
    return Regions(double_at(start), double_at(_last_ranks(start)), piece)


def _last_ranks(start: Index) -> Index:
    """The last rank of each interval; intervals begin at ascending ranks, each ends before the
    next."""
    return np.append(start[1:], LAST + 1) - 1


def borders(knots: Array, function: Callable[[Array], Array] | None, falling: bool) -> Index:
    """For each knot, the rank of the first score with function ≥ knot (of a falling function: <
    knot)."""
    if function is None:
        return double_rank(knots)
    low = np.full(len(knots), FIRST, dtype=np.int64)
    high = np.full(len(knots), LAST + 1, dtype=np.int64)
    return first_rank_beyond(knots, function, np.array(falling), low, high)


def first_rank_beyond(
    knots: Array,
    function: Callable[[Array], Array],
    falling: Flags,
    low: Index,
    high: Index,
) -> Index:
    """For each knot, the first rank between ``low`` and ``high`` at which a function has passed the
    knot.

    A rising function has passed a knot where it is at least the knot. A falling one has passed it
    where it is below. If it has not passed before ``high``, the answer is ``high``. Found by
    bisection.
    """
    with np.errstate(all="ignore"):
        while (open_ := low < high).any():
            # halves are added apart: the sum of two ranks may be too long for an integer
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            passed = (function(double_at(middle)) >= knots) != falling
            high = np.where(open_ & passed, middle, high)
            low = np.where(open_ & ~passed, middle + 1, low)
    return low


# --- Functions that rise and fall -----------------------------------------------------------------


class Stretches(NamedTuple):
    """Intervals of doubles on each of which a function only rises, only falls, or stays the same.

    ``first`` are the ranks of their first doubles, from the smallest double on. ``sign`` is 1 where
    the function rises, −1 where it falls and 0 where it stays the same.
    """

    first: Index
    sign: Index

    def at(self, ranks: Index) -> Index:
        """The sign at each of these ranks."""
        return self.sign[np.searchsorted(self.first, ranks, side="right") - 1]


#: the stretch of the score itself, which rises everywhere
WHOLE = Stretches(np.array([FIRST]), np.array([1]))


def regions_on_stretches(
    knots: Array, function: Callable[[Array], Array] | None, stretches: Stretches
) -> Regions:
    """As `regions`, for a function that rises on some stretches and falls on others.

    Costs 64 evaluations for each crossing of a knot.

    >>> halves = Stretches(np.array([FIRST, 0]), np.array([-1, 1]))
    >>> found = regions_on_stretches(np.array([4.0]), np.square, halves)
    >>> double_at(double_rank(found.low[1:])).tolist(), found.piece.tolist()
    ([-1.9999999999999998, 0.0, 2.0], [1, 0, 0, 1])
    """
    if len(stretches.first) == 1:
        return regions(knots, function, falling=bool(stretches.sign[0] < 0))
    own = (lambda s: s) if function is None else function
    first, last = stretches.first, _last_ranks(stretches.first)
    with np.errstate(all="ignore"):
        begin, end = (
            np.searchsorted(knots, own(double_at(ends)), side="right") for ends in (first, last)
        )
        passed = np.abs(end - begin)
        stretch = np.repeat(np.arange(len(first)), passed)
        nth = np.arange(len(stretch)) - np.repeat(np.cumsum(passed) - passed, passed)
        falls = (end < begin)[stretch]
        knot = np.where(falls, begin[stretch] - 1 - nth, begin[stretch] + nth)
        found = first_rank_beyond(knots[knot], own, falls, first[stretch], last[stretch] + 1)
    start = np.concatenate((first, found))
    piece = np.concatenate((begin, np.where(falls, knot, knot + 1)))
    # where several borders are at one place, the one passed last counts
    order = np.lexsort((np.concatenate((np.full(len(first), -1), nth)), start))
    start, piece = start[order], piece[order]
    kept = np.append(start[1:] != start[:-1], True)
    return _regions_from_ranks(start[kept], piece[kept])


# --- What a map reads while it is lowered: the score, or what other maps have made of it ----------


class PlanTarget(NamedTuple):
    """What a plan is printed as.

    ``name`` is what errors call it, ``advice`` what to do for maps that it cannot hold, and
    ``iterates`` whether it has loops.
    """

    name: str
    advice: str
    iterates: bool = True

    def refuses(self, what: str, why: str = "") -> InputError:
        """The error for a map that the target cannot hold, with a reason and advice."""
        reason = f": {why}" if why else ""
        return InputError(f"{what} cannot be written as {self.name}{reason}. {self.advice}")


class Scale(NamedTuple):
    """A number in two forms: as a node, and as a NumPy function of the input (None: the input
    itself)."""

    node: Node
    function: Function | None


@dataclass(frozen=True)
class MapInput:
    """What a map reads in a plan: the score, and its logit.

    Parameters
    ----------
    input : the number that comes in
    score, logit : the two scales
    stretches : where they rise and fall with the input; None where that is not known
    target : what the plan is for
    """

    input: Input
    score: Scale
    logit: Scale
    stretches: Stretches | None
    target: PlanTarget

    @property
    def on_logits(self) -> bool:
        """Whether the input is the logit of the score, and not the score."""
        return self.logit.function is None

    def after(self, variable: Variable, map_: Any) -> MapInput:
        """What the next map reads: the value of ``map_``, held by the variable."""
        before = self.score.function
        composed: Function = map_.of_logit if self.on_logits else map_
        if before is not None and not self.on_logits:

            def composed(s: Array) -> Array:
                return map_(before(s))  # type: ignore[no-any-return]

        return replace(
            self,
            score=Scale(variable, composed),
            logit=Scale(Logit(variable), lambda s: logit(composed(s))),
            stretches=stretches(variable),
        )

    def features(
        self, clip: tuple[float, float] | None, logits: tuple[float, float]
    ) -> dict[str, Node]:
        """The nodes of the features of `calibrant.maps.Logistic`, by name.

        They are of scores moved into the interval ``clip``; where logits come in, of logits moved
        into the interval ``logits``.
        """
        s, z = self.score.node, self.logit.node
        if self.on_logits:
            z = Clip(z, *logits)
            s = Sigmoid(z)
            found = {"ln_p": _log_sigmoid(z), "neg_ln_1mp": Softplus(z)}
        else:
            if clip is not None:
                s = Clip(s, *clip)
                z = Logit(s)
            found = {"ln_p": Log(s), "neg_ln_1mp": MinusLogRest(s)}
        found |= {"ln_sigmoid": _log_sigmoid(s), "softplus": Softplus(s)}
        return found | {"x": s, "z": z, "z2": Square(z)}

    def steps(self, knots: Array, values: Array, on: str) -> Node:
        """The node of steps: a value between each two knots, which are on the scale "score" or
        "logit"."""
        if (values == values[0]).all():
            return Constant(float(values[0]))
        return StepPieces(self.input, (self._place(knots, on, jumps=True),), (values,))

    def lines(self, pieces: Pieces, on: str) -> Node:
        """The node of lines between knots, which are on the scale "score" or "logit"."""
        place = self._place(pieces.x, on, pieces.jumps)
        return LinePieces(self.input, self._scale(on).node, (place,), (pieces,))

    def _scale(self, on: str) -> Scale:
        """The scale of scores or that of logits, by its name."""
        return self.logit if on == "logit" else self.score

    def _place(self, knots: Array, on: str, jumps: bool) -> PieceChoice:
        """How the piece is chosen. An InputError if rounding could choose the wrong side of a
        jump."""
        if self.stretches is None and jumps:
            raise self.target.refuses(
                "a chain whose first maps neither rise nor fall and whose last one jumps",
                "rounding could choose the wrong side of a jump",
            )
        return PieceChoice(knots, self._scale(on).function, self.stretches)


def _log_sigmoid(x: Node) -> Node:
    """ln σ(x) = −ln(1 + exp(−x))."""
    return Linear(0.0, ((-1.0, Softplus(Linear(0.0, ((-1.0, x),)))),))


def first_input(target: PlanTarget, input: str) -> MapInput:
    """What the first map reads: scores, or the logits of scores."""
    s = Input()
    if input == "logit":
        return MapInput(s, Scale(Sigmoid(s), sigmoid), Scale(s, None), WHOLE, target)
    return MapInput(s, Scale(s, None), Scale(Logit(s), logit), WHOLE, target)


# --- Where values rise and fall -------------------------------------------------------------------


def stretches(node: Node) -> Stretches | None:
    """Where a value rises and falls with the input; None where that is not known.

    Rounding never makes sums and products of rising numbers fall. Exponentials and logarithms of
    the C library may fall by their last bit: then the value passes a knot several times within a
    few rounding errors, and the border is one of these places.

    >>> stretches(Linear(0.0, ((-2.0, Input()),))).sign.tolist()
    [-1]
    """
    return _Stretching().write(node)


class _Stretching(PlanPrinter[Stretches | None]):
    """The stretches of nodes, None where they are not known."""

    def input(self, node: Input) -> Stretches:
        return WHOLE

    def constant(self, node: Constant) -> Stretches:
        return Stretches(WHOLE.first, np.zeros(1, dtype=np.int64))

    def rising(self, node: Rising | Clip) -> Stretches | None:
        """The stretches of the argument: a rising function keeps them."""
        return self.write(node.x)

    clip = rising

    def square(self, node: Square) -> None:
        return None

    def linear(self, node: Linear) -> Stretches | None:
        """The stretches of a sum, if no term rises where another falls; else None."""
        parts = [(c, self.write(term)) for c, term in node.terms]
        known = [(np.unique(np.sign(values_of(c))), part) for c, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        first = np.unique(np.concatenate([part.first for _, part in known]))
        signs = np.array([sign * part.at(first) for [sign], part in known], dtype=np.int64)
        least, most = signs.min(axis=0), signs.max(axis=0)
        return None if (least * most < 0).any() else Stretches(first, np.sign(least + most))

    def step_pieces(self, node: StepPieces) -> Stretches | None:
        [place], [values] = node.places, node.values
        return _stretches_of_pieces(place, np.zeros(len(values)), trend_of_values(values))

    def line_pieces(self, node: LinePieces) -> Stretches | None:
        [place], [pieces] = node.places, node.pieces
        return _stretches_of_pieces(place, pieces.high - pieces.low, pieces.trend)


def _stretches_of_pieces(place: PieceChoice, rise: Array, trend: int) -> Stretches | None:
    """The stretches of a table of pieces.

    If the whole table rises or falls, they are those of its argument. Otherwise each piece is one.
    """
    before = place.stretches
    if before is None:
        return None
    if trend:
        return Stretches(before.first, before.sign * trend)
    first = double_rank(place.regions.low)
    sign = np.sign(rise[place.regions.piece]).astype(np.int64)
    return Stretches(first, before.at(first) * sign)


# --- What a map of rows reads while it is lowered -------------------------------------------------


@dataclass(frozen=True)
class RowAxis:
    """What a map of rows reads in a plan: scores, or their logits.

    Logits are those of the softmax of a row or, if columns stand for themselves, of each column's
    sigmoid.
    """

    row: Row
    k: int
    logits: bool
    target: PlanTarget

    def scores(self) -> Row:
        """The scores themselves."""
        return SoftmaxRow(self.row) if self.logits else self.row

    def log(self, floor: float) -> Row:
        """The node of the logarithms of the scores, each at least ln ``floor``."""
        if not self.logits:
            return Logarithms(self.row, floor)
        # the smallest number is no floor: it only says where a double is rounded to zero
        logs = LogSoftmax(self.row)
        return logs if floor <= SMALLEST else Within(logs, float(np.log(floor)), 0.0)

    def to_the_power(self, power: float) -> RowAxis:
        """What is read if the scores are raised to a power and divided by their sum."""
        if power == 1.0:
            return self
        if self.logits:
            return replace(self, row=Affine(self.row, np.array(power)))
        return replace(self, row=Normalised(RelativePower(self.row, power)))

    def each(
        self, lowered: list[tuple[int, Callable[[MapInput], Node]]], among: bool = False
    ) -> Row:
        """The node that applies a map to each column. With ``among`` the columns are probabilities
        of sum one."""
        row = Among(self.row, self.k) if among and self.logits else self.row
        kind = "logit" if self.logits else "score"
        return EachColumn(
            row, tuple((j, lower(first_input(self.target, kind))) for j, lower in lowered)
        )


def first_row_axis(k: int, target: PlanTarget, input: str) -> RowAxis:
    """What the first map of rows reads: k scores, or the logits of k scores."""
    if input == "logit":
        return RowAxis(Within(RowInput(k), -LARGEST_LOGIT, LARGEST_LOGIT), k, True, target)
    return RowAxis(RowInput(k), k, False, target)


# --- Rows in NumPy --------------------------------------------------------------------------------


def shares_of_sum(x: Array) -> Array:
    """Rows divided by their sum, unless that is zero."""
    return _divided_by(x, x.sum(axis=1, keepdims=True))


def shares_of_largest(x: Array) -> Array:
    """Rows, none below zero, divided by their largest entry, unless that is zero."""
    return _divided_by(np.maximum(x, 0.0), x.max(axis=1, keepdims=True))


def with_largest(p: Array, q: Array) -> Array:
    """Distributions whose largest entry becomes q, while the others share the rest in proportion.

    q is first raised to where it is just above the second, so that the order of a row stays. Of m
    entries that are the largest together each becomes q, which is at most 1/m. Where all others are
    zero, they share evenly.

    >>> p = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    >>> with_largest(p, np.array([0.8, 0.8])).round(3).tolist()
    [[0.8, 0.12, 0.08], [0.8, 0.1, 0.1]]
    >>> with_largest(p[:1], np.array([0.1])).round(3).tolist()
    [[0.375, 0.375, 0.25]]
    """
    k = p.shape[1]
    is_top = p == p.max(axis=1, keepdims=True)
    ties = is_top.sum(axis=1, keepdims=True)
    others = np.where(is_top, 0.0, p)
    second, rest = others.max(axis=1, keepdims=True), others.sum(axis=1, keepdims=True)
    some = rest > 0.0
    equal = np.where(some, second / np.where(some, rest + ties * second, 1.0), 1.0 / k)
    top = np.minimum(np.maximum(q[:, None], AHEAD * equal), 1.0 / ties)
    left = np.maximum(1.0 - ties * top, 0.0)
    share = np.where(some, others / np.where(some, rest, 1.0), 1.0 / np.maximum(k - ties, 1))
    return np.asarray(np.where(is_top, top, share * left))


def _divided_by(x: Array, whole: Array) -> Array:
    """Each row divided by its number; a row whose number is 0 stays the same."""
    return np.asarray(x / np.where(whole > 0.0, whole, 1.0))
