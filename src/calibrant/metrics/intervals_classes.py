"""The intervals of an evaluation of several classes, from its rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.matrix import ScoreMatrix
from calibrant.metrics._classes import class_table, top_labels, top_table
from calibrant.metrics.analytic import (
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
    share_interval,
    weighing,
    width_bins,
    without_chance,
)
from calibrant.metrics.binned import group_starts
from calibrant.metrics.change import Pairs, Side, gap_change, placements, share_change
from calibrant.metrics.intervals import How
from calibrant.metrics.ranking import area

__all__ = ["ByRow", "by_row", "class_changes", "class_intervals"]

Array = NDArray[np.float64]

#: Σw² of one row, as the weights are meant
_SQUARES = {"counts": lambda weight: weight, "importance": lambda weight: weight**2}


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


def by_row(matrix: ScoreMatrix, how: How) -> ByRow:
    """One pass over blocks of rows, and the table of the most probable class."""
    weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
    if how.weights == "importance":  # their scale does not matter, and squares must stay in range
        weight = weight / weight.mean()
    squares = _SQUARES[how.weights](weight)
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
    side = Side(confidence, confidence, right, table, table, weighing[how.weights](table), {}, {})
    total = float(weight.sum())
    variances = np.maximum(told, 0.0) / total / total
    return ByRow(
        weight, squares, surprise, square, right, side, (float(variances[0]), float(variances[1]))
    )


def class_intervals(
    matrix: ScoreMatrix, rows: ByRow, values: dict[str, float], bins: int, how: How
) -> dict[str, Span]:
    """An interval for each measure but CalBin, in the order of the values. O(nk log n)."""
    if rows.size < 2.0 - 1e-9:
        return {}
    level, k = how.level, matrix.n_classes
    low, high = mean_interval(rows.mean_square(), level)
    low, high = max(low, 0.0), min(high, 2.0)
    found = {
        "brier": (low, high),
        "rmse": (math.sqrt(low / k), math.sqrt(high / k)),
        "accuracy": share_interval(values["accuracy"], rows.size, level),
    }
    surprise = rows.mean_surprise()
    if surprise is not None:
        least, most = mean_interval(surprise, level)
        found["log_loss"] = (max(least, 0.0), most)
    top = width_bins(rows.top.table, rows.top.sample, bins)
    found["top_label_ece"] = gap_interval(top, level)
    found["top_label_mce"] = largest_gap_interval(top, level)
    found |= _over_classes(matrix, rows, values, bins, how)
    spans = {}
    for name, value in values.items():
        if name in found and math.isfinite(value):
            spans[name] = (min(found[name][0], value), max(found[name][1], value))
    return spans


def _over_classes(
    matrix: ScoreMatrix, rows: ByRow, values: dict[str, float], bins: int, how: How
) -> dict[str, Span]:
    """Measures of each class against the rest, one column at a time: rows tie them together."""
    pull, moved, pure, each = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0, []
    came = int((matrix.class_weight > 0).sum())
    k, z = matrix.n_classes, normal(how.level)
    for column in range(k):
        table, hit = class_table(matrix, column), matrix.codes == column
        p = matrix.scores[:, column].astype(np.float64) + 0.0
        starts = group_starts(table, bins, "width")
        b = width_bins(table, weighing[how.weights](table), bins)
        each.append(b)
        sign = np.sign(b.gap)[np.searchsorted(table.scores[starts[1:]], p, side="right")]
        pull += sign * (p - hit) / k
        pure += max(float(without_chance(b.gap, b.error).sum()), 0.0) / k
        if "auc" in values and 0 < table.total_positive < table.total:
            moved += placements(table, p, hit, area(table)) / came
    half = z * row_error(pull, rows.weight, rows.squares)
    value = values["classwise_ece"]
    found = {"classwise_ece": (max(pure - half, 0.0), min(value + half, 1.0))}
    found["classwise_mce"] = largest_gap_interval(_together(each), how.level)
    if "auc" in values:
        variance = row_error(moved, rows.weight, rows.squares) ** 2
        sizes = rows.size / 2, rows.size / 2
        found["auc"] = area_span(values["auc"], variance, *sizes, how.level)
    return found


def _together(each: list[Binned]) -> Binned:
    """All bins of all classes in a row."""
    share, gap, error, size, rate, predicted = (
        np.concatenate([b[field] for b in each]) for field in range(6)
    )
    return Binned(share, gap, error, size, rate, predicted, math.nan)


def class_changes(new: ByRow, old: ByRow, k: int, bins: int, how: How) -> dict[str, Span]:
    """After − before on the same rows, where it can be told."""
    weight, squares = new.weight, new.squares
    found = {}
    if np.isfinite(new.surprise).all() and np.isfinite(old.surprise).all():
        apart = row_moments(new.surprise - old.surprise, weight, squares)
        found["log_loss"] = mean_interval(apart, how.level)
    apart = row_moments(new.square - old.square, weight, squares)
    found["brier"] = mean_interval(apart, how.level)
    roots = [
        math.sqrt(float(weight @ rows.square) / float(weight.sum()) / k) for rows in (new, old)
    ]
    if all(roots):
        parts = [rows.square / (2.0 * k * r) for rows, r in zip((new, old), roots, strict=True)]
        m = row_moments(parts[0] - parts[1], weight, squares)
        found["rmse"] = mean_interval(m._replace(mean=roots[0] - roots[1]), how.level)
    pairs = Pairs(new.top, old.top, weight, squares, bins, how.level)
    found["top_label_ece"] = gap_change(new.top, old.top, pairs)
    found["accuracy"] = share_change(new.right, old.right, weight, squares, how.level)
    return found
