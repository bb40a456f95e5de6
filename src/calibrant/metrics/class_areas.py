"""AUCs of the classes of a matrix, by each class's own column and by those of the others."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri_exp

from calibrant.arrays import Array, Flags, Index
from calibrant.data.frozen import own as frozen
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.change_intervals import placed
from calibrant.metrics.first_look import ALPHA, LEVEL
from calibrant.metrics.interval_formulas import RowWeights, Span, area_interval, area_span
from calibrant.metrics.ranking import area

#: the most scores that are looked at, but at least so many rows: of more rows, every second,
#: third, … is taken
MOST_SCORES, LEAST_ROWS = 2**22, 1000
#: with more classes than this no column is compared with another class
MOST_COMPARED = 200
#: what swapping must gain in AUC, for each class
LEAST_GAIN = 0.05
#: the chance that any class is wrongly said to run the wrong way, and that any columns are wrongly
#: said to be swapped
CHANCE = 1e-3


def rows_to_rank(matrix: ScoreMatrix) -> ScoreMatrix:
    """Rows enough, in numbers that rank as probabilities do: logits as their logarithms."""
    most = max(MOST_SCORES // matrix.n_classes, LEAST_ROWS)
    if len(matrix) > most:
        matrix = matrix.take(np.arange(0, len(matrix), -(-len(matrix) // most)))
    if matrix.looks_like_probabilities:
        return matrix
    z = matrix.scores.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    return ScoreMatrix(z, matrix.codes, matrix.weight)


class SortedColumn:
    """A column of scores, sorted once: the cell of each row, and tables for any class."""

    def __init__(self, matrix: ScoreMatrix, column: int, rows: RowWeights) -> None:
        p = matrix.scores[:, column].astype(np.float64) + 0.0
        self.order = np.argsort(p)
        self.scores = p[self.order]
        new = np.append(True, self.scores[1:] != self.scores[:-1])
        self.starts = np.flatnonzero(new)
        self.cell = np.empty(len(p), dtype=np.intp)
        self.cell[self.order] = np.cumsum(new) - 1
        self.rows = rows

    def table(self, positive: Flags) -> ScoreTable:
        """The column against the rows that count as positive."""
        n0, n1, q0, q1 = (
            frozen(np.add.reduceat(column[self.order], self.starts))
            for column in self.rows.by_class(positive)
        )
        return ScoreTable(frozen(self.scores[self.starts]), n0, n1, q0, q1)

    def placed(self, positive: Flags) -> Array:
        """How far each row moves the AUC of the rows that count as positive."""
        table = self.table(positive)
        return placed(table, self.cell, positive, area(table))

    def by_class(self, codes: Index, k: int) -> Array:
        """The AUC of this column for each class against the rest.

        Ranks are among all rows: that a class's rows beat half of themselves is taken off.
        """
        weight = self.rows.weight
        mass = np.add.reduceat(weight[self.order], self.starts)
        below = (np.cumsum(mass) - mass / 2)[self.cell]
        total = np.bincount(codes, weight, minlength=k)
        ranks = np.bincount(codes, weight * below, minlength=k)
        with np.errstate(invalid="ignore"):  # a class that did not come
            return np.asarray((ranks - total**2 / 2) / (total * (weight.sum() - total)))


class ClassAreas:
    """The AUCs of a matrix: of each class that came by its own column, and by the others."""

    def __init__(self, matrix: ScoreMatrix, weights: str) -> None:
        self.matrix = matrix
        rows = RowWeights.of(matrix.weight, len(matrix), weights)
        unit = float(rows.weight.max())  # squares of very small weights would leave the floats
        square = unit if weights == "counts" else unit * unit
        self.rows = RowWeights(rows.weight / unit, rows.squares / square)
        self.size = rows.size
        self.came = np.flatnonzero(matrix.class_weight > 0)
        self.areas: list[float] = []
        self.spans: list[Span] = []
        self.moved = np.zeros(len(matrix))
        self.cross: list[Array] = []
        for number in self.came.tolist():
            column, own = SortedColumn(matrix, number, self.rows), matrix.codes == number
            table = column.table(own)
            self.areas.append(area(table))
            self.spans.append(area_interval(table, 1.0 - 2.0 * CHANCE / len(self.came)))
            self.moved += placed(table, column.cell, own, self.areas[-1]) / len(self.came)
            if len(self.came) <= MOST_COMPARED:
                self.cross.append(column.by_class(matrix.codes, matrix.n_classes)[self.came])

    def span(self, place: int) -> Span:
        """The interval of one class's AUC at the level of headlines."""
        number = int(self.came[place])
        table = SortedColumn(self.matrix, number, self.rows).table(self.matrix.codes == number)
        return area_interval(table, LEVEL)

    def mean(self) -> tuple[float, float, float]:
        """The mean AUC and its interval."""
        value = float(np.mean(self.areas))
        if self.size <= 1.0:
            return value, 0.0, 1.0
        variance = self.rows.error(self.moved) ** 2
        low, high = area_span(value, variance, self.size / 2, self.size / 2, LEVEL)
        return value, low, high

    def swapped(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Columns that go with other classes, beyond chance; and the class of each."""
        k = len(self.came)
        if not self.cross or self.size <= 1.0:
            return None
        by = np.column_stack(self.cross)  # class, column
        if (by.argmax(axis=1) == np.arange(k)).all():
            return None
        from scipy.optimize import linear_sum_assignment

        _, column_of = linear_sum_assignment(by, maximize=True)
        found: list[tuple[int, int]] = []
        for cycle in _cycles(column_of.tolist()):
            if self._beyond_chance(cycle, by):
                found += [(column, one) for one, column in cycle]
        pairs = sorted((int(self.came[a]), int(self.came[b])) for a, b in found)
        return (tuple(a for a, _ in pairs), tuple(b for _, b in pairs)) if pairs else None

    def _beyond_chance(self, cycle: list[tuple[int, int]], by: Array) -> bool:
        """Whether the columns of a cycle of classes are surely those of others among them."""
        k, m = len(self.came), len(cycle)
        new = [by[one, column] for one, column in cycle]
        old = [by[one, one] for one, _ in cycle]
        gain = float(np.sum(new) - np.sum(old))
        if gain < LEAST_GAIN * m or np.sum(new) <= np.sum([max(a, 1.0 - a) for a in old]):
            return False
        moved = np.zeros(len(self.matrix))
        for one, column in cycle:
            own = self.matrix.codes == self.came[one]
            for place, sign in ((column, 1.0), (one, -1.0)):
                moved += sign * SortedColumn(self.matrix, int(self.came[place]), self.rows).placed(
                    own
                )
        # all cycles of so many of the classes, and all lengths
        count = math.lgamma(k + 1) - math.lgamma(k - m + 1) - math.log(m) + math.log(k - 1)
        z = -float(ndtri_exp(math.log(CHANCE) - count))
        return gain > z * self.rows.error(moved)

    def differ(self) -> bool:
        """Whether any column differs between a class and the rest, by Wilcoxon's test."""
        if not self.cross:
            return False
        total, squares = (
            np.bincount(self.matrix.codes, column, minlength=self.matrix.n_classes)[self.came]
            for column in (self.rows.weight, self.rows.squares)
        )
        size = total**2 / squares
        rest = (total.sum() - total) ** 2 / (squares.sum() - squares)
        error = np.sqrt((size + rest + 1.0) / (12.0 * size * rest))
        z = np.abs(np.column_stack(self.cross) - 0.5) / error[:, None]
        least = -float(ndtri_exp(math.log(ALPHA / 2 / z.size)))
        return bool((z > least)[size >= 10.0].any())


def _cycles(column_of: list[int]) -> list[list[tuple[int, int]]]:
    """The cycles of an order of columns that moves some: pairs of a class and its column."""
    left, found = {one for one, column in enumerate(column_of) if one != column}, []
    while left:
        one, cycle = min(left), []
        while one in left:
            left.remove(one)
            cycle.append((one, column_of[one]))
            one = column_of[one]
        found.append(cycle)
    return found
