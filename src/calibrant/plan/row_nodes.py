"""Nodes of rows, for maps of several scores: the value of each is an array of shape (n, k)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.losses import SMALLEST
from calibrant.plan.map_input import MapInput, PlanTarget, start
from calibrant.plan.nodes import Node

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


# --- while maps are lowered -----------------------------------------------------------------------


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
        return EachColumn(row, tuple((j, lower(start(self.target, kind))) for j, lower in lowered))


def start_row(k: int, target: PlanTarget, input: str) -> RowAxis:
    """What the first map reads: rows of k scores that come in, or of scores whose logits come
    in."""
    if input == "logit":
        return RowAxis(Within(RowInput(k), -LARGEST_LOGIT, LARGEST_LOGIT), k, True, target)
    return RowAxis(RowInput(k), k, False, target)


# --- in NumPy -------------------------------------------------------------------------------------


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
