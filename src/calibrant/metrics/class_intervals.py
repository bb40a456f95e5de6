"""The interval of each measure of several classes and of its change, from the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.matrix import ScoreMatrix
from calibrant.metrics.binned import group_starts
from calibrant.metrics.change_intervals import Pairs, Side, ece_change, placements, share_change
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

__all__ = [
    "ByRow",
    "ClassIntervalCase",
    "ClassPairs",
    "by_row",
    "class_accuracy_change",
    "class_accuracy_interval",
    "class_brier_change",
    "class_brier_interval",
    "class_log_loss_change",
    "class_log_loss_interval",
    "class_rmse_change",
    "class_rmse_interval",
    "over_classes",
    "top_label_ece_change",
    "top_label_ece_interval",
    "top_label_mce_interval",
]

Array = NDArray[np.float64]


class ByRow(NamedTuple):
    """What each row adds to the measures of a matrix."""

    weight: Array
    squares: Array
    surprise: Array
    square: Array
    right: NDArray[np.bool_]
    top: Side
    told: tuple[float, float]  # variance of mean surprise and square, as the predictions expect

    @property
    def size(self) -> float:
        """How many rows of equal weight carry as much information."""
        return float(self.weight.sum()) ** 2 / float(self.squares.sum())

    def mean_surprise(self) -> Moments | None:
        """Of the log loss, if it is finite."""
        if not np.isfinite(self.surprise).all():
            return None
        return row_moments(self.surprise, self.weight, self.squares, self.told[0])

    def mean_square(self) -> Moments:
        """Of the Brier score."""
        return row_moments(self.square, self.weight, self.squares, self.told[1])


def by_row(matrix: ScoreMatrix, options: IntervalOptions) -> ByRow:
    """One pass over blocks of rows, and the table of the most probable class."""
    weight, squares = row_weights(matrix.weight, len(matrix), options.weights)
    parts, told, first = [], np.zeros(2), 0
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
        told[0] += float(here @ (np.einsum("ij,ij,ij->i", p, log, log) - expected**2))
        told[1] += float(here @ (4.0 * (np.einsum("ij,ij,ij->i", p, p, p) - length**2)))
    surprise, square = (np.concatenate(column) for column in zip(*parts, strict=True))
    top, confidence = top_labels(matrix)
    table, right = top_table(matrix), top == matrix.codes
    sample = weighing[options.weights](table)
    side = Side(confidence, confidence, right, table, table, sample, {}, {})
    total = float(weight.sum())
    variances = np.maximum(told, 0.0) / total / total
    return ByRow(
        weight, squares, surprise, square, right, side, (float(variances[0]), float(variances[1]))
    )


# --- the interval of each measure ----------------------------------------------------------------


class ClassIntervalCase:
    """What the interval of a measure of several classes may be made of.

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
        self.bins, self.options = bins, options

    @cached_property
    def square(self) -> Span:
        """The ends for the Brier score, in its range."""
        low, high = mean_interval(self.rows.mean_square(), self.options.level)
        return max(low, 0.0), min(high, 2.0)

    @cached_property
    def top(self) -> Binned:
        """The bins of the most probable class."""
        return width_bins(self.rows.top.table, self.rows.top.sample, self.bins)

    @cached_property
    def over_classes(self) -> dict[str, Span]:
        """The ends of all measures of each class against the rest."""
        return _over_classes(self)


def class_log_loss_interval(case: ClassIntervalCase) -> Span | None:
    """Student's, moved for skewness."""
    surprise = case.rows.mean_surprise()
    return None if surprise is None else mean_interval(surprise, case.options.level)


def class_brier_interval(case: ClassIntervalCase) -> Span:
    """Student's, moved for skewness."""
    return case.square


def class_rmse_interval(case: ClassIntervalCase) -> Span:
    """The roots of the ends for the Brier score per class."""
    low, high = case.square
    k = case.matrix.n_classes
    return math.sqrt(low / k), math.sqrt(high / k)


def class_accuracy_interval(case: ClassIntervalCase) -> Span:
    """Wilson's."""
    return share_interval(case.values["accuracy"], case.rows.size, case.options.level)


def top_label_ece_interval(case: ClassIntervalCase) -> Span:
    """From the normal distribution of the bins' gaps."""
    return gap_interval(case.top, case.options.level)


def top_label_mce_interval(case: ClassIntervalCase) -> Span:
    """From the binomial limits of all bins."""
    return largest_gap_interval(case.top, case.options.level)


def over_classes(name: str) -> Callable[[ClassIntervalCase], Span | None]:
    """The interval of a measure that is made of each class against the rest."""
    return lambda case: case.over_classes.get(name)


def _over_classes(case: ClassIntervalCase) -> dict[str, Span]:
    """Measures of each class against the rest, one column at a time: rows tie them together."""
    matrix, rows, values = case.matrix, case.rows, case.values
    pull, moved, pure, each = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0, []
    came = int((matrix.class_weight > 0).sum())
    k, z = matrix.n_classes, normal(case.options.level)
    for column in range(k):
        table, hit = class_table(matrix, column), matrix.codes == column
        p = matrix.scores[:, column].astype(np.float64) + 0.0
        starts = group_starts(table, case.bins, "width")
        b = width_bins(table, weighing[case.options.weights](table), case.bins)
        each.append(b)
        sign = np.sign(b.gap)[np.searchsorted(table.scores[starts[1:]], p, side="right")]
        pull += sign * (p - hit) / k
        pure += max(float(without_chance(b.gap, b.error).sum()), 0.0) / k
        if "auc" in values and 0 < table.total_positive < table.total:
            moved += placements(table, p, hit, area(table)) / came
    half = z * row_error(pull, rows.weight, rows.squares)
    value = values["classwise_ece"]
    found = {"classwise_ece": (max(pure - half, 0.0), min(value + half, 1.0))}
    found["classwise_mce"] = largest_gap_interval(_together(each), case.options.level)
    if "auc" in values:
        variance = row_error(moved, rows.weight, rows.squares) ** 2
        sizes = rows.size / 2, rows.size / 2
        found["auc"] = area_span(values["auc"], variance, *sizes, case.options.level)
    return found


def _together(each: list[Binned]) -> Binned:
    """All bins of all classes in a row."""
    share, gap, error, size, rate, predicted = (
        np.concatenate([b[field] for b in each]) for field in range(6)
    )
    return Binned(share, gap, error, size, rate, predicted, math.nan)


# --- the interval of each change ------------------------------------------------------------------


class ClassPairs(NamedTuple):
    """What each row adds on both sides, and the number of classes."""

    after: ByRow
    before: ByRow
    n_classes: int
    bins: int
    level: float

    def mean_change(self, new: Array, old: Array) -> Moments:
        """Of the mean difference of a loss that is known row by row."""
        return row_moments(new - old, self.after.weight, self.after.squares)


def class_log_loss_change(pairs: ClassPairs) -> Span | None:
    """Student's, of the differences row by row."""
    new, old = pairs.after.surprise, pairs.before.surprise
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        return None
    return mean_interval(pairs.mean_change(new, old), pairs.level)


def class_brier_change(pairs: ClassPairs) -> Span:
    """Student's, of the differences row by row."""
    moments = pairs.mean_change(pairs.after.square, pairs.before.square)
    return mean_interval(moments, pairs.level)


def class_rmse_change(pairs: ClassPairs) -> Span | None:
    """By the slope of the root: each row moves it by its loss / 2√(mean loss)."""
    sides, k, weight = (pairs.after, pairs.before), pairs.n_classes, pairs.after.weight
    roots = [math.sqrt(float(weight @ rows.square) / float(weight.sum()) / k) for rows in sides]
    if not all(roots):
        return None
    new, old = (rows.square / (2.0 * k * r) for rows, r in zip(sides, roots, strict=True))
    moments = pairs.mean_change(new, old)
    return mean_interval(moments._replace(mean=roots[0] - roots[1]), pairs.level)


def top_label_ece_change(pairs: ClassPairs) -> Span:
    """As that of an ECE of two classes."""
    new, old = pairs.after, pairs.before
    return ece_change(Pairs(new.top, old.top, new.weight, new.squares, pairs.bins, pairs.level))


def class_accuracy_change(pairs: ClassPairs) -> Span:
    """Bonett and Price's."""
    new, old = pairs.after, pairs.before
    return share_change(new.right, old.right, new.weight, new.squares, pairs.level)
