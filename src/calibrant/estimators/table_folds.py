"""Tables dealt into folds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError

#: the rows of a class in a cell are dealt one by one up to this number, beyond it by a single draw
MANY = 50
SMALLEST = np.finfo(np.float64).tiny


class HeldOutCells(NamedTuple):
    """What a fold holds out: Σw and Σw² of the negatives and the positives at each score."""

    negative: Array
    positive: Array
    negative_sq: Array
    positive_sq: Array

    @property
    def filled(self) -> Flags:
        """Where anything is held out."""
        return np.asarray((self.negative > 0.0) | (self.positive > 0.0))

    def take(self, cells: Flags) -> HeldOutCells:
        """Some of the cells."""
        return HeldOutCells(*(column[cells] for column in self))

    def rest_of(self, columns: Iterable[Array]) -> HeldOutCells:
        """What is left of a table's columns when this is held out."""
        return HeldOutCells(*(np.maximum(a - b, 0.0) for a, b in zip(columns, self, strict=True)))


def possible_folds(wanted: int, rarest: float) -> int:
    """As many folds as wanted, at most one for each row of the rarer class; 0 below two.

    >>> possible_folds(5, 3.0), possible_folds(5, 1.0)
    (3, 0)
    """
    folds = min(wanted, int(rarest + 1e-6))
    return folds if folds >= 2 else 0


class TableFolds:
    """A table dealt into k folds at random, class by class.

    Rows are dealt whole, so that a row of weight 100 is in one fold, and independently, so that a
    fold's frequency at a score says nothing about the other folds. A table has no rows, but the
    number of rows of a cell follows from its weights: (Σw)²/Σw², which is exact if all have the
    same weight. So a weight of 2 and two rows of weight 1 are dealt differently, as they must be.
    With ``repetitions`` whole weights are taken as numbers of rows, for methods that promise to
    treat them so; a row of weight 2 may then be on both sides of a split. Where a cell holds less
    than one row of a class, its rows have soft labels: they are dealt with both their halves.

    >>> t = ScoreTable.from_counts([0.1, 0.5], [30, 10], [0, 20])
    >>> deal = TableFolds(t, 2)
    >>> [float(deal.held(fold).negative.sum()) for fold in range(2)]
    [20.0, 20.0]
    """

    def __init__(
        self, table: ScoreTable, k: int, *, repetitions: bool = False, seed: int = 0
    ) -> None:
        if k < 2:
            raise ParameterError(f"the number of folds must be at least 2, but {k} came.")
        self.table, self.k = table, k
        rng = np.random.default_rng(seed)
        squares = (table.negative_sq, table.positive_sq)
        self._whole = table.is_whole
        if repetitions and self._whole:
            squares = (table.negative, table.positive)
        weights = (table.negative, table.positive)
        halved = _halved(*weights, *squares)
        self._hands = [
            _ClassFolds(np.where(halved, 0.0, weight), square, k, rng)
            for weight, square in zip(weights, squares, strict=True)
        ]
        self._halves = None
        if halved.any():
            rows = np.where(halved, table.weight, 0.0)
            self._halves = _ClassFolds(rows, squares[0] + squares[1], k, rng)

    def held(self, fold: int) -> HeldOutCells:
        """The part of the table that a fold holds out."""
        zero, one = (hand.share(fold) for hand in self._hands)
        if self._halves is not None:
            both = self._halves.share(fold)
            zero, one = zero + both, one + both
        table = self.table
        n0, n1 = table.negative * zero, table.positive * one
        if table.negative_sq is table.negative and table.positive_sq is table.positive:
            return self._rounded(HeldOutCells(n0, n1, n0, n1))
        squares = table.negative_sq * zero, table.positive_sq * one
        return self._rounded(HeldOutCells(n0, n1, *squares))

    def _rounded(self, held: HeldOutCells) -> HeldOutCells:
        """Of whole weights: whole numbers, without the rounding errors of shares."""
        if not self._whole:
            return held
        near = [np.rint(column) for column in held]
        pairs = zip(held, near, strict=True)
        return HeldOutCells(*(np.where(np.abs(c - r) < 1e-9 * (1.0 + r), r, c) for c, r in pairs))

    def rest(self, held: HeldOutCells) -> ScoreTable:
        """The table without the cells of a fold."""
        table = self.table
        columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
        rest = ScoreTable.from_counts(table.scores, *held.rest_of(columns))
        return rest.part_of(*table.ends)


def _halved(n0: Array, n1: Array, q0: Array, q1: Array) -> Flags:
    """The cells of both classes that hold less than one row of a class."""
    both = (n0 > 0.0) & (n1 > 0.0)
    found = np.zeros(len(n0), dtype=bool)
    for n, q in ((n0, q0), (n1, q1)):
        found |= both & (q > SMALLEST) & (n * n < q * (1.0 - 1e-9))
    return found


class _ClassFolds:
    """How the rows of one class, or those with halves of both, fall to the folds."""

    def __init__(self, weight: Array, square: Array, k: int, rng: np.random.Generator) -> None:
        present = weight > 0
        rows = np.zeros(len(weight), dtype=np.int64)
        held = np.maximum(square[present], SMALLEST)  # 1e-200² is 0 and counts as one row
        known = np.rint(weight[present] ** 2 / held)
        rows[present] = np.clip(known, 1.0, 2.0**53)  # beyond, integers end and shares are the same
        self.rows = rows
        self.many = np.flatnonzero(rows > MANY)
        self.drawn = rng.multinomial(rows[self.many], np.full(k, 1.0 / k))
        single = np.where(rows > MANY, 0, rows)
        self.cell = np.repeat(np.arange(len(rows), dtype=np.int32), single)
        self.fold = (np.arange(len(self.cell)) % k).astype(np.min_scalar_type(k - 1))
        rng.shuffle(self.fold)

    def share(self, fold: int) -> Array:
        """The share of each cell's rows that the fold holds out."""
        held = np.bincount(self.cell[self.fold == fold], minlength=len(self.rows))
        held[self.many] = self.drawn[:, fold]
        return np.asarray(held / np.maximum(self.rows, 1))
