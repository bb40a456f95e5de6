"""The interval of each measure of several classes and of its change, from the rows."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.metrics.binned import group_starts
from calibrant.metrics.change_intervals import Pairs, Side, placements, share_change
from calibrant.metrics.interval_formulas import (
    Binned,
    Moments,
    Span,
    area_span,
    gap_interval,
    largest_gap_interval,
    mean_interval,
    normal,
    row_error,
    row_moments,
    row_weights,
    share_interval,
    weighing,
    width_bins,
    without_chance,
)
from calibrant.metrics.intervals import IntervalOptions
from calibrant.metrics.probability_matrix import class_table, top_labels, top_table
from calibrant.metrics.ranking import area

__all__ = ["ByRow", "ClassIntervalCase", "ClassPairs", "by_row"]

Array = NDArray[np.float64]


class ByRow(NamedTuple):
    """What each row adds to the measures of a matrix."""

    weight: Array
    squares: Array
    surprise: Array
    square: Array
    right: NDArray[np.bool_]
    top: Side
    expected: tuple[float, float]  # variance of mean surprise and square if p is right

    @property
    def size(self) -> float:
        """How many rows of equal weight carry as much information."""
        return float(self.weight.sum()) ** 2 / float(self.squares.sum())

    def mean_surprise(self) -> Moments | None:
        """Of the log loss, if it is finite."""
        if not np.isfinite(self.surprise).all():
            return None
        return row_moments(self.surprise, self.weight, self.squares, self.expected[0])

    def mean_square(self) -> Moments:
        """Of the Brier score."""
        return row_moments(self.square, self.weight, self.squares, self.expected[1])


def by_row(matrix: ScoreMatrix, options: IntervalOptions) -> ByRow:
    """One pass over blocks of rows, and the table of the most probable class."""
    weight, squares = row_weights(matrix.weight, len(matrix), options.weights)
    parts, variances, first = [], np.zeros(2), 0
    for p, codes, _ in matrix.blocks():
        own = p[np.arange(len(codes)), codes]
        with np.errstate(divide="ignore"):
            surprise = -np.log(own)
        length = np.einsum("ij,ij->i", p, p)
        parts.append((surprise, length - 2.0 * own + 1.0))
        here = squares[first : first + len(codes)]
        first += len(codes)
        log = -np.log(np.maximum(p, np.finfo(float).tiny))  # p·ln²p is 0 there
        expected = np.einsum("ij,ij->i", p, log)
        variances[0] += float(here @ (np.einsum("ij,ij,ij->i", p, log, log) - expected**2))
        variances[1] += float(here @ (4.0 * (np.einsum("ij,ij,ij->i", p, p, p) - length**2)))
    surprise, square = (np.concatenate(column) for column in zip(*parts, strict=True))
    top, confidence = top_labels(matrix)
    table, right = top_table(matrix), top == matrix.codes
    sample = weighing[options.weights](table)
    side = Side(confidence, confidence, right, table, table, sample, {}, {})
    total = float(weight.sum())
    variances = np.maximum(variances, 0.0) / total / total
    return ByRow(
        weight, squares, surprise, square, right, side, (float(variances[0]), float(variances[1]))
    )


class ClassIntervalCase:
    """What the interval of a measure of several classes may be made of, and a method for each.

    ``rows`` says what each row adds; parts that several measures share are computed once.
    """

    def __init__(
        self,
        matrix: ScoreMatrix,
        rows: ByRow,
        values: dict[str, float],
        bins: int,
        options: IntervalOptions,
    ) -> None:
        self.matrix, self.rows, self.values = matrix, rows, values
        self.bins, self.weights, self.level = bins, options.weights, options.level

    @cached_property
    def _top(self) -> Binned:
        return width_bins(self.rows.top.table, self.rows.top.sample, self.bins)

    @cached_property
    def _over_classes(self) -> dict[str, Span]:
        return _over_classes(self)

    def log_loss(self) -> Span | None:
        """Student's, moved for skewness."""
        surprise = self.rows.mean_surprise()
        return None if surprise is None else mean_interval(surprise, self.level)

    def brier(self) -> Span:
        """Student's, moved for skewness."""
        return mean_interval(self.rows.mean_square(), self.level)

    def rmse(self) -> Span:
        """The roots of the ends for the Brier score per class."""
        low, high = self.brier()
        k = self.matrix.n_classes
        return math.sqrt(max(low, 0.0) / k), math.sqrt(min(high, 2.0) / k)

    def accuracy(self) -> Span:
        """Wilson's."""
        return share_interval(self.values["accuracy"], self.rows.size, self.level)

    def top_label_ece(self) -> Span:
        """From the normal distribution of the bins' gaps."""
        return gap_interval(self._top, self.level)

    def top_label_mce(self) -> Span:
        """From the binomial limits of all bins."""
        return largest_gap_interval(self._top, self.level)

    def classwise_ece(self) -> Span:
        """From the normal distribution of what each row moves in all classes."""
        return self._over_classes["classwise_ece"]

    def classwise_mce(self) -> Span:
        """From the binomial limits of all bins of all classes."""
        return self._over_classes["classwise_mce"]

    def auc(self) -> Span:
        """Wilson's, with DeLong's variance over all classes."""
        return self._over_classes["auc"]


def _over_classes(case: ClassIntervalCase) -> dict[str, Span]:
    """Measures of each class against the rest, one column at a time: rows tie them together."""
    matrix, rows, values = case.matrix, case.rows, case.values
    pull, moved, pure, each = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0, []
    came = int((matrix.class_weight > 0).sum())
    k, z = matrix.n_classes, normal(case.level)
    for column in range(k):
        table, hit = class_table(matrix, column), matrix.codes == column
        p = matrix.scores[:, column].astype(np.float64) + 0.0
        starts = group_starts(table, case.bins, "width")
        b = width_bins(table, weighing[case.weights](table), case.bins)
        each.append(b)
        sign = np.sign(b.gap)[np.searchsorted(table.scores[starts[1:]], p, side="right")]
        pull += sign * (p - hit) / k
        pure += max(float(without_chance(b.gap, b.error).sum()), 0.0) / k
        if "auc" in values and 0 < table.total_positive < table.total:
            moved += placements(table, p, hit, area(table)) / came
    half = z * row_error(pull, rows.weight, rows.squares)
    value = values["classwise_ece"]
    found = {"classwise_ece": (max(pure - half, 0.0), min(value + half, 1.0))}
    found["classwise_mce"] = largest_gap_interval(_together(each), case.level)
    if "auc" in values:
        variance = row_error(moved, rows.weight, rows.squares) ** 2
        sizes = rows.size / 2, rows.size / 2
        found["auc"] = area_span(values["auc"], variance, *sizes, case.level)
    return found


def _together(each: list[Binned]) -> Binned:
    """All bins of all classes in a row."""
    share, gap, error, size, rate, predicted = (
        np.concatenate([b[field] for b in each]) for field in range(6)
    )
    return Binned(share, gap, error, size, rate, predicted, math.nan)


class ClassPairs(NamedTuple):
    """What each row adds on both sides, and a method for each way to make a change's interval."""

    after: ByRow
    before: ByRow
    n_classes: int
    bins: int
    level: float

    def _moments(self, new: Array, old: Array) -> Moments:
        """Of the mean difference of a loss that is known row by row."""
        return row_moments(new - old, self.after.weight, self.after.squares)

    def log_loss(self) -> Span | None:
        """Student's, of the differences row by row."""
        new, old = self.after.surprise, self.before.surprise
        if not (np.isfinite(new).all() and np.isfinite(old).all()):
            return None
        return mean_interval(self._moments(new, old), self.level)

    def brier(self) -> Span:
        """Student's, of the differences row by row."""
        return mean_interval(self._moments(self.after.square, self.before.square), self.level)

    def rmse(self) -> Span | None:
        """By the slope of the root: each row moves it by its loss / 2√(mean loss)."""
        sides, k, weight = (self.after, self.before), self.n_classes, self.after.weight
        roots = [math.sqrt(float(weight @ rows.square) / float(weight.sum()) / k) for rows in sides]
        if not all(roots):
            return None
        new, old = (rows.square / (2.0 * k * r) for rows, r in zip(sides, roots, strict=True))
        m = self._moments(new, old)
        return mean_interval(m._replace(mean=roots[0] - roots[1]), self.level)

    def top_label_ece(self) -> Span:
        """As that of an ECE of two classes."""
        new, old = self.after, self.before
        return Pairs(new.top, old.top, new.weight, new.squares, self.bins, self.level).ece()

    def accuracy(self) -> Span:
        """Bonett and Price's."""
        new, old = self.after, self.before
        return share_change(new.right, old.right, new.weight, new.squares, self.level)
