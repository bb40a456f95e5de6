"""The interval of each measure's change, from two sets of predictions for the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.metrics.interval_formulas import (
    Moments,
    RowWeights,
    Span,
    mean_interval,
    moments,
    normal,
    row_moments,
)
from calibrant.metrics.intervals import ClassIntervals, RowPredictions
from calibrant.metrics.weighted_cells import ClassColumns

Losses = tuple[Array, ...]


class ChangeIntervals:
    """The intervals of after − before on the same rows: a method for each measure, by name.

    Values on both sides are finite where a method is called.
    """

    def __init__(self, after: Any, before: Any, rows: RowWeights) -> None:
        self.after, self.before, self._sides = after, before, (after, before)
        self.rows, self.level = rows, after.intervals.level

    def _moments(self, differences: Losses) -> Moments:
        """The moments of the mean difference, from what each row loses more than before."""
        raise NotImplementedError

    def _mean(self, new: Losses, old: Losses) -> Moments:
        with np.errstate(invalid="ignore"):  # ∞ − ∞, for a label that did not come
            apart = [a - b for a, b in zip(new, old, strict=True)]
        return self._moments(tuple(np.where(np.isfinite(d), d, 0.0) for d in apart))

    def log_loss(self) -> Span:
        """Student's interval of the mean of the rows' differences."""
        new, old = (side.log_losses for side in self._sides)
        return mean_interval(self._mean(new, old), self.level)

    def brier(self) -> Span:
        """Student's interval of the mean of the rows' differences."""
        new, old = (side.square_losses for side in self._sides)
        return mean_interval(self._mean(new, old), self.level)

    def rmse(self) -> Span | None:
        """Student's interval: each row moves the root by its loss / 2√(mean loss)."""
        roots = [side.intervals.values["rmse"] for side in self._sides]
        if not all(roots):
            return None
        new, old = (
            tuple(loss / (2 * side.intervals.columns * root) for loss in side.square_losses)
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
        half = normal(self.level) * math.sqrt((up + down - (up - down) ** 2) / (size + 2.0))
        return _cut(up - down - half, up - down + half)

    def auc(self) -> Span:
        """DeLong's interval for correlated areas; of several classes, for their mean."""
        new, old = self._sides
        half = normal(self.level) * self.rows.error(new.moves_auc - old.moves_auc)
        change = new.intervals.values["auc"] - old.intervals.values["auc"]
        return _cut(change - half, change + half)


def _cut(low: float, high: float) -> Span:
    """The interval without what no change of a measure within [0, 1] can reach."""
    return max(low, -1.0), min(high, 1.0)


# --- two classes --------------------------------------------------------------------------------


class PairedCells(NamedTuple):
    """Predictions after and scores before of the same rows, in cells of equal rows of one class.

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
        """Each row with weight is a cell of its own."""
        kept = slice(None) if after.weight is None else after.weight > 0
        p = after.scores[kept]
        weight = np.ones(len(p)) if after.weight is None else after.weight[kept]
        return cls(p, scores[kept], after.positive[kept], weight)

    @classmethod
    def of_counts(cls, after: Array, before: Array, columns: ClassColumns) -> PairedCells:
        """Cells from the Σw of both classes, and their Σw², at each pair of predictions."""
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
        """The table of the scores before."""
        squares = self.weight**2 if self.squares is None else self.squares
        columns = RowWeights(self.weight, squares).by_class(self.positive)
        return ScoreTable.from_counts(self.before, *columns)

    def rows(self, weights: str) -> RowWeights:
        """The weights as they are meant; only their ratios matter where they say importance."""
        if weights == "counts":
            return RowWeights(self.weight, self.weight, self.cluster)
        unit = float(self.weight.max())  # squares of very small weights would leave the floats
        share = self.weight / unit
        squares = share**2 if self.squares is None else self.squares / unit / unit
        return RowWeights(share, squares, self.cluster)


class RowChangeIntervals(ChangeIntervals):
    """The intervals of changes for two classes."""

    after: RowPredictions
    before: RowPredictions

    def _moments(self, differences: Losses) -> Moments:
        first, second = differences
        hit = self.after.positive
        if self.rows.cluster is not None:
            return row_moments(np.where(hit, second, first), self.rows)
        return moments(self.after.p, self.rows.by_class(hit), (first, second))

    def ece(self) -> Span:
        """The interval from the gaps of the bins. Each end takes chance off one side only."""
        new, old = self.after.intervals.binned, self.before.intervals.binned
        pulls = [s.intervals.binned.pull(s.p, s.positive) for s in (self.after, self.before)]
        half = normal(self.level) * self.rows.error(pulls[0] - pulls[1])
        return _cut(new.pure - old.full - half, new.full - old.pure + half)

    def moved(self, name: str, pull: Callable[[RowPredictions], Array]) -> Span | None:
        """Student's interval, as of a mean, for a measure that each row moves by w · ``pull`` / Σw.

        None where the numbers get too large for floats.
        """
        change = self.after.intervals.values[name] - self.before.intervals.values[name]
        with np.errstate(over="ignore", invalid="ignore"):
            found = row_moments(pull(self.after) - pull(self.before), self.rows)
        if not math.isfinite(found.error + found.skew):
            return None
        return mean_interval(found._replace(mean=change), self.level)

    def curve(
        self, name: str, influence: Callable[[RowPredictions], Array], noise_of: str = ""
    ) -> Span | None:
        """The interval for a measure that uses isotonic regression.

        At each end, the bias is taken off one of the sides only, so that both ends are safe.

        ``influence`` says how far each row moves the measure. ``noise_of`` names the measure that
        tells how much chance alone moves it, if that is another one.
        """
        new, old = self.after.intervals, self.before.intervals
        if name not in new.chance or name not in old.chance:
            return None
        noise = [side.chance[noise_of or name].noise for side in (new, old)]
        moved = self.rows.error(influence(self.after) - influence(self.before))
        half = normal(self.level) * math.hypot(moved, *noise)
        change = new.values[name] - old.values[name]
        return _cut(change - new.chance[name].bias - half, change + old.chance[name].bias + half)


def against_curve(side: RowPredictions) -> Array:
    """How far each row moves the distance of the predictions from the curve."""
    return (side.p - side.positive) ** 2 - (side.curve - side.positive) ** 2


def curve_against_base(side: RowPredictions) -> Array:
    """How far each row moves what the curve gains over the base rate."""
    table = side.intervals.table
    base = table.total_positive / table.total
    return (base - side.positive) ** 2 - (side.curve - side.positive) ** 2


# --- several classes ----------------------------------------------------------------------------


class ClassChangeIntervals(ChangeIntervals):
    """The intervals of changes for several classes."""

    def __init__(self, after: ClassIntervals, before: ClassIntervals) -> None:
        super().__init__(after, before, after.rows)
        self.top = RowChangeIntervals(after.top, before.top, after.rows)

    def _moments(self, differences: Losses) -> Moments:
        (difference,) = differences
        return row_moments(difference, self.rows)
