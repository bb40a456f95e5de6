"""What a map reads while it is lowered: the score, or what other maps have made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.errors import InputError
from calibrant.losses import SMALLEST, logit, sigmoid
from calibrant.rules.plan.borders import WHOLE, Pieces, Stretches, rank, trend_of
from calibrant.rules.plan.nodes import (
    Clip,
    Constant,
    Function,
    Input,
    Linear,
    LinePieces,
    Log,
    Logit,
    MinusLogRest,
    Node,
    PieceChoice,
    PlanPrinter,
    Rising,
    Sigmoid,
    Softplus,
    Square,
    StepPieces,
    Variable,
    values_of,
)


class PlanTarget(NamedTuple):
    """What a plan is printed as: its name, what to do instead where a map cannot be printed, and
    whether the target has loops."""

    name: str
    advice: str
    iterates: bool = True

    def refuses(self, what: str, why: str = "") -> InputError:
        """The error that says what the target cannot hold, why, and what to do instead."""
        reason = f": {why}" if why else ""
        return InputError(f"{what} cannot be written as {self.name}{reason}. {self.advice}")


class Scale(NamedTuple):
    """A number as a node, and as a NumPy function of the input; None where it is the input
    itself."""

    node: Node
    function: Function | None


@dataclass(frozen=True)
class MapInput:
    """What a map reads, on the scale of scores and on that of their logits.

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
        """Whether the input is the logit of what the map is for."""
        return self.logit.function is None

    def after(self, node: Node, function: Function, of_logit: Function) -> MapInput:
        """What a later map reads: the value of a map, given as a node and as functions of the score
        and of its logit."""
        before = self.score.function
        composed = function
        if self.on_logits:
            composed = of_logit
        elif before is not None:

            def composed(s: Array) -> Array:
                return function(before(s))

        variable = node if isinstance(node, Variable) else Variable(node)
        return replace(
            self,
            score=Scale(variable, composed),
            logit=Scale(Logit(variable), lambda s: logit(composed(s))),
            stretches=stretches(node),
        )

    def features(
        self, clip: tuple[float, float] | None, logits: tuple[float, float]
    ) -> dict[str, Node]:
        """The features of `maps.logistic` by name, of scores moved into the interval ``clip``;
        where logits come in, of logits moved into the interval ``logits``."""
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
        """A value between each two knots, which are on the scale "score" or "logit"."""
        if (values == values[0]).all():
            return Constant(float(values[0]))
        return StepPieces(self.input, (self._place(knots, on, jumps=True),), (values,))

    def lines(self, pieces: Pieces, on: str) -> Node:
        """Lines between knots, which are on the scale "score" or "logit"."""
        place = self._place(pieces.x, on, pieces.jumps)
        return LinePieces(self.input, self._scale(on).node, (place,), (pieces,))

    def _scale(self, on: str) -> Scale:
        return self.logit if on == "logit" else self.score

    def _place(self, knots: Array, on: str, jumps: bool) -> PieceChoice:
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
    """What the first map reads: scores that come in, or scores whose logits come in."""
    s = Input()
    if input == "logit":
        return MapInput(s, Scale(Sigmoid(s), sigmoid), Scale(s, None), WHOLE, target)
    return MapInput(s, Scale(s, None), Scale(Logit(s), logit), WHOLE, target)


# --- Where values rise and fall -------------------------------------------------------------------


def stretches(node: Node) -> Stretches | None:
    """Where a value rises and falls with the input; None where that is not known.

    This holds to the last bit: rounding never makes sums and products of rising numbers fall.

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
        return self.write(node.x)

    clip = rising

    def square(self, node: Square) -> None:
        return None

    def linear(self, node: Linear) -> Stretches | None:
        parts = [(c, self.write(term)) for c, term in node.terms]
        known = [(_sign(values_of(c)), part) for c, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        first = np.unique(np.concatenate([part.first for _, part in known]))
        signs = np.array([sign * part.at(first) for sign, part in known], dtype=np.int64)
        least, most = signs.min(axis=0), signs.max(axis=0)
        return None if (least * most < 0).any() else Stretches(first, np.sign(least + most))

    def step_pieces(self, node: StepPieces) -> Stretches | None:
        [place], [values] = node.places, node.values
        return _of_pieces(place, np.zeros(len(values)), trend_of(values))

    def line_pieces(self, node: LinePieces) -> Stretches | None:
        [place], [pieces] = node.places, node.pieces
        return _of_pieces(place, pieces.high - pieces.low, pieces.trend)


def _of_pieces(place: PieceChoice, rise: Array, trend: int) -> Stretches | None:
    """The stretches of a table: those of what chooses, if the whole table rises or falls; else one
    for each piece."""
    before = place.stretches
    if before is None:
        return None
    if trend:
        return Stretches(before.first, before.sign * trend)
    first = rank(place.regions.low)
    sign = np.sign(rise[place.regions.piece]).astype(np.int64)
    return Stretches(first, before.at(first) * sign)


def _sign(coefficients: Array) -> int:
    """The sign that all coefficients have."""
    [sign] = np.unique(np.sign(coefficients))
    return int(sign)


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
    """A value that is made of another row."""

    row: Row


class EachColumn(RowOf):
    """For each column of the result, which column it reads, and the plan of that one score."""

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


# --- What a map of rows reads while it is lowered -------------------------------------------------


@dataclass(frozen=True)
class RowAxis:
    """What a map of rows reads: scores, or logits of scores. The scores are the softmax of such
    logits, or, where columns stand for themselves, their sigmoids."""

    row: Row
    k: int
    logits: bool
    target: PlanTarget

    def scores(self) -> Row:
        """The scores themselves."""
        return SoftmaxRow(self.row) if self.logits else self.row

    def log(self, floor: float) -> Row:
        """The logarithms of the scores, which are first raised to a floor."""
        if not self.logits:
            return Logarithms(self.row, floor)
        # the smallest number is no floor: it only says where a double is rounded to zero
        logs = LogSoftmax(self.row)
        return logs if floor <= SMALLEST else Within(logs, float(np.log(floor)), 0.0)

    def to_the_power(self, power: float) -> RowAxis:
        """The axis of the distributions that are proportional to a power of the scores."""
        if power == 1.0:
            return self
        if self.logits:
            return replace(self, row=Affine(self.row, np.array(power)))
        return replace(self, row=Normalised(RelativePower(self.row, power)))

    def each(
        self, lowered: list[tuple[int, Callable[[MapInput], Node]]], among: bool = False
    ) -> Row:
        """A map for each column. With ``among`` the columns are probabilities of sum one."""
        row = Among(self.row, self.k) if among and self.logits else self.row
        kind = "logit" if self.logits else "score"
        return EachColumn(
            row, tuple((j, lower(first_input(self.target, kind))) for j, lower in lowered)
        )


def start_row(k: int, target: PlanTarget, input: str) -> RowAxis:
    """What the first map reads: rows of k scores that come in, or of scores whose logits come
    in."""
    if input == "logit":
        return RowAxis(Within(RowInput(k), -LARGEST_LOGIT, LARGEST_LOGIT), k, True, target)
    return RowAxis(RowInput(k), k, False, target)


# --- Rows in NumPy --------------------------------------------------------------------------------


def shares_of_sum(x: Array) -> Array:
    """Rows divided by their sum, unless that is zero."""
    return _divided(x, x.sum(axis=1, keepdims=True))


def shares_of_largest(x: Array) -> Array:
    """Rows, none below zero, divided by their largest entry, unless that is zero."""
    return _divided(np.maximum(x, 0.0), x.max(axis=1, keepdims=True))


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


def _divided(x: Array, whole: Array) -> Array:
    return np.asarray(x / np.where(whole > 0.0, whole, 1.0))


# --- Segments of several columns as numbers: a row is followed from column to column --------------
# For targets that look up one value at a time. A segment is a number, and a row that is in it is in
# a part of it by the value in the next column.


KeyPath = tuple[str | int, ...]


class ColumnStep(NamedTuple):
    """What the value in one column says.

    Parameters
    ----------
    values : the values that are known in the column; their numbers are their places here
    pairs : numbers of segments of the columns before, times ``len(values)``, plus that of a value
    numbers : the number of the segment that each of the ``pairs`` means
    places : which of the keys that segment has: its own, or that of a coarser segment; the number
        of keys where it has none
    """

    values: list[str | int]
    pairs: list[int]
    numbers: list[int]
    places: list[int]


def column_steps(keys: Sequence[KeyPath]) -> list[ColumnStep]:
    """A step for each column that keys have values in; before the first all rows are in segment 0.

    >>> for step in column_steps([("fr",), ("fr", "card"), ("de", "card")]):
    ...     print(*step)
    ['fr', 'de'] [0, 1] [0, 1] [0, 3]
    ['card'] [0, 1] [0, 1] [1, 2]
    """
    places = {path: i for i, path in enumerate(keys)}
    before: dict[KeyPath, int] = {(): 0}
    steps = []
    for column in range(max(map(len, keys), default=0)):
        long = [path[: column + 1] for path in keys if len(path) > column]
        values = list(dict.fromkeys(path[-1] for path in long))
        at = {value: i for i, value in enumerate(values)}
        here = {path: i for i, path in enumerate(dict.fromkeys(long))}
        pairs = [before[path[:-1]] * len(values) + at[path[-1]] for path in here]
        found = [finest(path, places) for path in here]
        steps.append(ColumnStep(values, pairs, list(here.values()), found))
        before = here
    return steps


def finest(path: KeyPath, places: dict[KeyPath, int]) -> int:
    """The place of the finest segment on a path that has one; how many places there are if none."""
    sizes = range(len(path), 0, -1)
    return next((places[path[:size]] for size in sizes if path[:size] in places), len(places))
