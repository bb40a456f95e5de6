"""The interval of each measure of several classes and of its change, from the rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from calibrant.arrays import Array
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.weighing import table_in_rows
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.change_intervals import (
    ChangeIntervals,
    Losses,
    RowChangeIntervals,
    RowPredictions,
    placements,
)
from calibrant.metrics.interval_formulas import (
    Moments,
    RowWeights,
    Span,
    area_span,
    bin_sums,
    largest_gap_interval,
    normal,
    row_moments,
)
from calibrant.metrics.intervals import IntervalOptions, MeasureIntervals, TableIntervals
from calibrant.metrics.probability_matrix import (
    class_table,
    log_losses_of_rows,
    square_losses_of_rows,
    top_labels,
    top_table,
)
from calibrant.metrics.ranking import area


class ClassIntervals(MeasureIntervals):
    """The intervals of a matrix of probabilities of several classes.

    ``top`` are the probabilities of the most probable classes; a row is positive there if that
    class came.
    """

    largest_square = 2.0

    def __init__(
        self,
        matrix: ScoreMatrix,
        values: dict[str, float],
        bins: Bins,
        options: IntervalOptions,
    ) -> None:
        self.matrix, self.columns = matrix, matrix.n_classes
        self.rows = RowWeights.of(matrix.weight, len(matrix), options.weights)
        super().__init__(values, self.rows.size, bins, options)
        self.log_losses = (log_losses_of_rows(matrix),)
        self.square_losses = (square_losses_of_rows(matrix),)
        label, confidence = top_labels(matrix)
        table, self.right = top_table(matrix), label == matrix.codes
        of_top = TableIntervals(table, table, {}, bins, options, {})
        self.top = RowPredictions(of_top, confidence, confidence, self.right)

    @property
    def intervals(self) -> MeasureIntervals:
        return self

    @cached_property
    def _promised(self) -> tuple[float, float]:
        """The variance of the mean log loss and of the mean square, if the predictions are right.

        Where rare events did not come, their absence must not look like certainty.
        """
        variances, first = np.zeros(2), 0
        for p, codes, _ in self.matrix.blocks():
            squares = self.rows.squares[first : first + len(codes)]
            first += len(codes)
            length = np.einsum("ij,ij->i", p, p)
            log = -np.log(np.maximum(p, np.finfo(float).tiny))  # p·ln²p is 0 there
            expected = np.einsum("ij,ij->i", p, log)
            variances[0] += squares @ (np.einsum("ij,ij,ij->i", p, log, log) - expected**2)
            variances[1] += squares @ (4.0 * (np.einsum("ij,ij,ij->i", p, p, p) - length**2))
        log_loss, square = np.maximum(variances, 0.0) / float(self.rows.weight.sum()) ** 2
        return float(log_loss), float(square)

    @cached_property
    def log_moments(self) -> Moments:
        return row_moments(*self.log_losses, self.rows, self._promised[0])

    @cached_property
    def square_moments(self) -> Moments:
        return row_moments(*self.square_losses, self.rows, self._promised[1])

    @property
    def moves_auc(self) -> Array:
        """How far each row moves the mean AUC of the classes that came."""
        return self._over_classes[1]

    @cached_property
    def _over_classes(self) -> tuple[dict[str, Span], Array]:
        """The intervals of measures over all classes, and how far each row moves the mean AUC.

        Columns are read one at a time. A row moves the measures of all classes at once, so its
        moves are added up before their spread is taken.
        """
        matrix, values = self.matrix, self.values
        pull, moved, pure, bins = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0, []
        came = int((matrix.class_weight > 0).sum())
        k, z = matrix.n_classes, normal(self.level)
        for column in range(k):
            table, own = class_table(matrix, column), matrix.codes == column
            p = matrix.scores[:, column].astype(np.float64) + 0.0
            binned = bin_sums(table_in_rows(table, self.options.weights), self.bins)
            bins.append((binned.size, binned.rate, binned.predicted))
            pull += binned.pull(p, own) / k
            pure += binned.pure / k
            if "auc" in values and 0 < table.total_positive < table.total:
                moved += placements(table, p, own, area(table)) / came
        half = z * self.rows.error(pull)
        value = values["classwise_ece"]
        found = {"classwise_ece": (max(pure - half, 0.0), min(value + half, 1.0))}
        size, rate, predicted = (np.concatenate(column) for column in zip(*bins, strict=True))
        found["classwise_mce"] = largest_gap_interval(size, rate, predicted, self.level)
        if "auc" in values:
            variance = self.rows.error(moved) ** 2
            sizes = self.size / 2, self.size / 2
            found["auc"] = area_span(values["auc"], variance, *sizes, self.level)
        return found, moved

    def classwise_ece(self) -> Span:
        """The interval from the normal distribution of what each row moves in all classes."""
        return self._over_classes[0]["classwise_ece"]

    def classwise_mce(self) -> Span:
        """The interval from the binomial limits of all bins of all classes."""
        return self._over_classes[0]["classwise_mce"]

    def auc(self) -> Span:
        """Wilson's interval, with DeLong's variance over all classes."""
        return self._over_classes[0]["auc"]


class ClassChangeIntervals(ChangeIntervals):
    """The intervals of changes for several classes."""

    def __init__(self, after: ClassIntervals, before: ClassIntervals) -> None:
        super().__init__(after, before, after.rows)
        self.top = RowChangeIntervals(after.top, before.top, after.rows)

    def _moments(self, differences: Losses) -> Moments:
        (difference,) = differences
        return row_moments(difference, self.rows)
