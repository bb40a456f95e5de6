"""The interval of each measure of one set of predictions, and the options of all intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Rows
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import CellColumns, ScoreTable, table_in_rows
from calibrant.metrics.chance import (
    FEWEST,
    LOSSES,
    Binned,
    Chance,
    IntervalOptions,
    Moments,
    OfRedrawn,
    RowWeights,
    Span,
    area_interval,
    auc_influence,
    bin_sums,
    chance_of_tables,
    isotonic_curve,
    largest_gap_interval,
    mean_interval,
    moments,
    normal_quantile,
    row_moments,
    share_interval,
    wilson_area,
)
from calibrant.metrics.point_measures import TableFacts, area, losses_of_rows
from calibrant.metrics.smooth_curve import OfCurve, chance_of_curve
from calibrant.metrics.tables import Bins, class_sizes, class_table, top_labels, top_table

#: the total weight and the effective number of rows may differ by this factor without a note
WORTH_SAYING = 1.25


Losses = tuple[Array, ...]


class MeasureIntervals:
    """The intervals of the measures of one set of predictions. A measure's interval is the method
    of its name.

    Subclasses know how the two mean losses vary, and add the measures that only they have.

    Attributes
    ----------
    values : dict of str to float
        The measures themselves.
    size : float
        How many rows of equal weight carry as much information.
    chance : dict of str to Chance
        What chance does to the measures whose intervals come from tables or curves drawn again.
    notes : list of str
        Which intervals are missing, and why.
    """

    #: how many columns the squared error of a row is summed over, and the largest such sum
    columns = 1
    largest_square = 1.0

    def __init__(
        self, values: dict[str, float], size: float, bins: Bins, options: IntervalOptions
    ) -> None:
        self.values, self.size, self.bins, self.options = values, size, bins, options
        self.level = options.level
        self.chance: dict[str, Chance] = {}
        self.notes: list[str] = []
        if not self.enough:
            self.notes.append(f"no intervals: {size:.3g} rows are too few")

    @property
    def enough(self) -> bool:
        """Whether there are at least two rows, without which there is no interval."""
        return self.size >= 2.0 - 1e-9

    def _moments(self, loss: str) -> Moments:
        """Mean, error and skewness of the log loss, or of the Brier score."""
        raise NotImplementedError

    def log_loss(self) -> Span:
        """Student's interval, corrected for skewness."""
        return mean_interval(self._moments("log"), self.level)

    def brier(self) -> Span:
        """Student's interval, corrected for skewness."""
        return mean_interval(self._moments("brier"), self.level)

    def rmse(self) -> Span:
        """The square roots of the ends of the Brier score's interval."""
        low, high = self.brier()
        high = min(high, self.largest_square)
        return math.sqrt(max(low, 0.0) / self.columns), math.sqrt(high / self.columns)

    def accuracy(self) -> Span:
        """Wilson's interval."""
        return share_interval(self.values["accuracy"], self.size, self.level)

    def redrawn(self, name: str) -> Span | None:
        """The interval of a measure whose tables or curves were drawn again; None for other
        measures.

        The bias is taken off the lower end only, so that both ends are safe.
        """
        if name not in self.chance:
            return None
        value, (bias, half, _) = self.values[name], self.chance[name]
        return value - bias - half, value + half


class TableIntervals(MeasureIntervals):
    """The intervals of a table of predictions for two classes.

    ``table`` holds the predictions as probabilities, ``ranked`` the scores as they came,
    and ``sample`` the table with its weights in units of rows, of which the ``facts`` are.
    ``redrawn`` are the measures whose intervals come from tables drawn again, ``of_curve`` those
    of curves drawn again.
    """

    def __init__(
        self,
        table: ScoreTable,
        ranked: ScoreTable,
        values: dict[str, float],
        bins: Bins,
        options: IntervalOptions,
        redrawn: Mapping[str, OfRedrawn],
        of_curve: Mapping[str, OfCurve],
    ) -> None:
        self.table, self.ranked = table, ranked
        self.sample = table_in_rows(table, options.weights)
        self.facts = TableFacts(self.sample, bins)
        super().__init__(values, self.sample.effective_size, bins, options)
        drawn = ", ".join((*redrawn, *of_curve))
        if not self.enough or not drawn:
            return
        negatives, positives = class_sizes(self.sample)
        for word, size in (("positives", positives), ("negatives", negatives)):
            if size < FEWEST - 1e-9:
                self.notes.append(
                    f"no interval for {drawn}: it takes {FEWEST:g} {word} or more, and {size:.3g} "
                    "came; the others may be too narrow"
                )
                return
        if redrawn:
            self.chance = chance_of_tables(redrawn, table, options)
        if of_curve:
            self.chance |= chance_of_curve(of_curve, table, options)

    def _moments(self, loss: str) -> Moments:
        losses = LOSSES[loss](self.sample.scores)
        return moments(self.sample.scores, self.sample.columns, losses)

    @cached_property
    def binned(self) -> Binned:
        """The sums of each bin."""
        return bin_sums(self.sample, self.bins)

    def ece(self) -> Span:
        """The interval of the ECE, as if the gaps of the bins were normal.

        Chance is taken off the lower end only: both ends are safe.
        """
        b, half = self.binned, normal_quantile(self.level) * self.binned.ece_error
        return min(max(b.cautious_ece - half, 0.0), b.ece), min(b.ece + half, 1.0)

    def mce(self) -> Span:
        """The interval of the MCE, from the binomial limits of all bins."""
        b = self.binned
        return largest_gap_interval(b.size, b.rate, b.predicted, self.level)

    def auc(self) -> Span:
        """Wilson's interval, with DeLong's variance."""
        return area_interval(table_in_rows(self.ranked, self.options.weights), self.level)


@dataclass(frozen=True)
class RowPredictions:
    """The predictions of two classes, row by row, and the intervals of their table.

    ``scores`` are the predictions as they came: the sigmoid may have merged large margins.
    """

    intervals: TableIntervals
    p: Array
    scores: Array
    positive: Flags

    def losses(self, loss: str) -> Losses:
        """The loss of each row if it were a negative, and if it were a positive."""
        return LOSSES[loss](self.p)

    @property
    def right(self) -> Flags:
        """Whether the likelier class came, for each row."""
        return np.asarray((self.p >= 0.5) == self.positive)

    @property
    def auc_influence(self) -> Array:
        """How far each row moves the AUC."""
        of = self.intervals
        return auc_influence(of.ranked, self.scores, self.positive, of.values["auc"])

    @cached_property
    def curve(self) -> Array:
        """The isotonic curve of the table, at the prediction of each row."""
        return isotonic_curve(self.intervals.sample, self.p)


class ClassIntervals(MeasureIntervals):
    """The intervals of a matrix of probabilities for several classes.

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
        self._losses = {loss: losses_of_rows(matrix, loss) for loss in LOSSES}
        label, confidence = top_labels(matrix)
        table, self.right = top_table(matrix), label == matrix.codes
        of_top = TableIntervals(table, table, {}, bins, options, {}, {})
        self.top = RowPredictions(of_top, confidence, confidence, self.right)

    @property
    def intervals(self) -> ClassIntervals:
        return self

    def losses(self, loss: str) -> Losses:
        """What each row loses."""
        return (self._losses[loss],)

    def _moments(self, loss: str) -> Moments:
        return row_moments(self._losses[loss], self.rows, self._expected_variances[loss])

    @cached_property
    def _expected_variances(self) -> dict[str, float]:
        """The variance of the mean log loss, and of the Brier score, if the predictions are right.

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
        least = np.maximum(variances, 0.0) / float(self.rows.weight.sum()) ** 2
        return dict(zip(("log", "brier"), least.tolist(), strict=True))

    @property
    def auc_influence(self) -> Array:
        """How far each row moves the mean AUC of the classes that came."""
        return self._over_classes[1]

    def over_classes(self, name: str) -> Span:
        """The interval of a measure that is made of all classes, such as the class-wise ECE."""
        return self._over_classes[0][name]

    @cached_property
    def _over_classes(self) -> tuple[dict[str, Span], Array]:
        """The intervals of all such measures, and how far each row moves the mean AUC.

        Columns are read one at a time. A row moves the measures of all classes at once, so its
        moves are added up before their spread is taken. For the largest gap, all bins of all
        classes count.
        """
        matrix, values = self.matrix, self.values
        of_error, of_auc, surely, bins = np.zeros(len(matrix)), np.zeros(len(matrix)), 0.0, []
        came = int((matrix.class_weight > 0).sum())
        k, z = matrix.n_classes, normal_quantile(self.level)
        for column in range(k):
            table, own = class_table(matrix, column), matrix.codes == column
            p = matrix.scores[:, column].astype(np.float64) + 0.0
            binned = bin_sums(table_in_rows(table, self.options.weights), self.bins)
            bins.append((binned.size, binned.rate, binned.predicted))
            of_error += binned.influence(p, own) / k
            surely += binned.cautious_ece / k
            if "auc" in values and 0 < table.total_positive < table.total:
                of_auc += auc_influence(table, p, own, area(table)) / came
        found: dict[str, Span] = {}
        if "classwise_ece" in values:
            half = z * self.rows.error(of_error)
            high = min(values["classwise_ece"] + half, 1.0)
            found["classwise_ece"] = (max(surely - half, 0.0), high)
        size, rate, predicted = (np.concatenate(column) for column in zip(*bins, strict=True))
        found["classwise_mce"] = largest_gap_interval(size, rate, predicted, self.level)
        if "auc" in values:
            variance = self.rows.error(of_auc) ** 2
            sizes = self.size / 2, self.size / 2
            found["auc"] = wilson_area(values["auc"], variance, *sizes, self.level)
        return found, of_auc


def weight_note(data: ScoreTable | ScoreMatrix, weights: str) -> list[str]:
    """A note where weights are read as numbers of rows and do not look like such; else nothing."""
    total, size = data.total, data.effective_size
    if weights != "counts" or total / WORTH_SAYING <= size <= total * WORTH_SAYING:
        return []
    return [
        f"intervals take weights for numbers of rows, {total:.4g} in all; if each row is one "
        f'observation they are worth {size:.4g}: then pass weights="importance"'
    ]


# --- The interval of each measure's change, from two sets of predictions for the same rows --------


class ChangeIntervals:
    """The intervals of after − before for the same rows. A measure's interval is the method of its
    name.

    Either side is a `RowPredictions`, or a `ClassIntervals` of several classes. Values on both
    sides are finite where a method is called.
    """

    def __init__(self, after: Any, before: Any, rows: RowWeights) -> None:
        self.after, self.before, self._sides = after, before, (after, before)
        self.rows, self.level = rows, after.intervals.level

    @property
    def top(self) -> ChangeIntervals:
        """The intervals of the change of the confidence, the probability of each row's most
        probable class."""
        return ChangeIntervals(self.after.top, self.before.top, self.rows)

    def _mean(self, new: Losses, old: Losses) -> Moments:
        """The mean difference of the rows' losses, and how it varies."""
        with np.errstate(invalid="ignore"):  # ∞ − ∞, for a label that did not come
            apart = [a - b for a, b in zip(new, old, strict=True)]
        apart = [np.where(np.isfinite(each), each, 0.0) for each in apart]
        if len(apart) == 1:  # several classes
            return row_moments(apart[0], self.rows)
        hit = self.after.positive
        if self.rows.cluster is not None:
            return row_moments(np.where(hit, apart[1], apart[0]), self.rows)
        return moments(self.after.p, self.rows.by_class(hit), (apart[0], apart[1]))

    def log_loss(self) -> Span:
        """Student's interval of the mean of the rows' differences."""
        new, old = (side.losses("log") for side in self._sides)
        return mean_interval(self._mean(new, old), self.level)

    def brier(self) -> Span:
        """Student's interval of the mean of the rows' differences."""
        new, old = (side.losses("brier") for side in self._sides)
        return mean_interval(self._mean(new, old), self.level)

    def rmse(self) -> Span | None:
        """Student's interval. A row moves the root by its loss divided by twice the root."""
        roots = [side.intervals.values["rmse"] for side in self._sides]
        if not all(roots):
            return None
        new, old = (
            tuple(loss / (2 * side.intervals.columns * root) for loss in side.losses("brier"))
            for side, root in zip(self._sides, roots, strict=True)
        )
        mean = self._mean(new, old)._replace(mean=roots[0] - roots[1])
        return _cut(*mean_interval(mean, self.level))

    def accuracy(self) -> Span:
        """Bonett and Price's interval (2012).

        It adds one case in each direction, since few rows without a change do not prove that there
        is none.
        """
        new, old = (side.right for side in self._sides)
        weight, size = self.rows.weight, self.rows.size
        gained, lost = (
            size * float(weight[at].sum()) / float(weight.sum()) for at in (new & ~old, old & ~new)
        )
        up, down = (gained + 1.0) / (size + 2.0), (lost + 1.0) / (size + 2.0)
        half = normal_quantile(self.level) * math.sqrt(
            (up + down - (up - down) ** 2) / (size + 2.0)
        )
        return _cut(up - down - half, up - down + half)

    def auc(self) -> Span:
        """DeLong's interval for correlated areas; of several classes, for their mean."""
        new, old = self._sides
        half = normal_quantile(self.level) * self.rows.error(new.auc_influence - old.auc_influence)
        change = new.intervals.values["auc"] - old.intervals.values["auc"]
        return _cut(change - half, change + half)

    # --- of two classes, or of the most probable of several --------------------------------------

    def ece(self) -> Span:
        """The interval of the change of the ECE, from the gaps of the bins."""
        new, old = self.after.intervals.binned, self.before.intervals.binned
        moves = [s.intervals.binned.influence(s.p, s.positive) for s in (self.after, self.before)]
        half = normal_quantile(self.level) * self.rows.error(moves[0] - moves[1])
        return _cut(new.cautious_ece - old.ece - half, new.ece - old.cautious_ece + half)

    def mean_change(self, name: str, influence: Callable[[RowPredictions], Array]) -> Span | None:
        """Student's interval for a measure that each row moves by w · ``influence`` / Σw.

        None where the numbers get too large for floats.
        """
        change = self.after.intervals.values[name] - self.before.intervals.values[name]
        with np.errstate(over="ignore", invalid="ignore"):
            found = row_moments(influence(self.after) - influence(self.before), self.rows)
        if not math.isfinite(found.error + found.skew):
            return None
        return mean_interval(found._replace(mean=change), self.level)

    def curve(
        self, name: str, influence: Callable[[RowPredictions], Array], noise_of: str = ""
    ) -> Span | None:
        """The interval of the change of a measure that uses isotonic regression.

        At each end, the bias is taken off one of the sides only, so that both ends are safe.

        ``influence`` says how far each row moves the measure. ``noise_of`` names the measure that
        tells how much chance alone moves it, if that is another one.
        """
        new, old = self.after.intervals, self.before.intervals
        if name not in new.chance or name not in old.chance:
            return None
        noise = [side.chance[noise_of or name].noise for side in (new, old)]
        moved = self.rows.error(influence(self.after) - influence(self.before))
        half = normal_quantile(self.level) * math.hypot(moved, *noise)
        change = new.values[name] - old.values[name]
        return _cut(change - new.chance[name].bias - half, change + old.chance[name].bias + half)


def _cut(low: float, high: float) -> Span:
    """The interval cut to [−1, 1], where all changes of such measures lie."""
    return max(low, -1.0), min(high, 1.0)


def miscalibration_influence(side: RowPredictions) -> Array:
    """How far each row moves the mean squared distance of the predictions from the isotonic
    curve."""
    return (side.p - side.positive) ** 2 - (side.curve - side.positive) ** 2


def discrimination_influence(side: RowPredictions) -> Array:
    """How far each row moves the gain of the isotonic curve over the base rate."""
    table = side.intervals.table
    base = table.total_positive / table.total
    return (base - side.positive) ** 2 - (side.curve - side.positive) ** 2


class PairedCells(NamedTuple):
    """Predictions and raw scores of the same rows. Equal rows of one class are one cell.

    ``weight`` and ``squares`` are Σw and Σw² of each cell, as they came (no ``squares``: each cell
    is one row). Cells to which ``cluster`` gives one number belong together.
    """

    after: Array
    before: Array
    positive: Flags
    weight: Array
    squares: Array | None = None
    cluster: Index | None = None

    @classmethod
    def of_rows(cls, after: Rows, scores: Array) -> PairedCells:
        """The cells of rows, each of which is a cell of its own."""
        kept = slice(None) if after.weight is None else after.weight > 0
        p = after.scores[kept]
        weight = np.ones(len(p)) if after.weight is None else after.weight[kept]
        return cls(p, scores[kept], after.positive[kept], weight)

    @classmethod
    def of_counts(cls, after: Array, before: Array, columns: CellColumns) -> PairedCells:
        """The cells of sums at each pair of prediction and score."""
        n0, n1, q0, q1 = columns
        zero, one = n0 > 0, n1 > 0
        return cls(
            np.concatenate((after[zero], after[one])),
            np.concatenate((before[zero], before[one])),
            np.repeat([False, True], [int(zero.sum()), int(one.sum())]),
            np.concatenate((n0[zero], n1[one])),
            np.concatenate((q0[zero], q1[one])),
        )

    def scored(self) -> ScoreTable:
        """The table of the raw scores."""
        squares = self.weight**2 if self.squares is None else self.squares
        columns = RowWeights(self.weight, squares).by_class(self.positive)
        return ScoreTable.from_counts(self.before, *columns)

    def rows(self, weights: str) -> RowWeights:
        """The weights of the cells, read as ``weights`` says."""
        if weights == "counts":
            return RowWeights(self.weight, self.weight, self.cluster)
        unit = float(self.weight.max())  # squares of very small weights would leave the floats
        share = self.weight / unit
        squares = share**2 if self.squares is None else self.squares / unit / unit
        return RowWeights(share, squares, self.cluster)
