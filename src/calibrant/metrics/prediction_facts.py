"""What measures are made of: facts of a table, of groups of rows, or of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from calibrant.data.score_kinds import as_probabilities
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import Groups, class_groups, group
from calibrant.metrics.calbin_windows import not_whole, too_many, window_error
from calibrant.metrics.cox_line import (
    CoxLine,
    OffsetIntercept,
    cox_line,
    offset_intercept,
    uncertain,
)
from calibrant.metrics.decompose import FlachMatsubara, split_on_hull
from calibrant.metrics.probability_matrix import (
    class_tables,
    infinite_for_classes,
    mean_log_loss_of_classes,
    share_right,
    square_sum,
    top_table,
)
from calibrant.metrics.proper import infinite_because, mean_log_loss, mean_square
from calibrant.metrics.ranking import area, one_class, share_correct
from calibrant.metrics.smooth_curve import CurveGaps, curve_gaps, smooth_curve


class TableFacts:
    """The facts of a table, each computed when it is first asked for."""

    hidden_area = 0.0

    def __init__(self, ranked: ScoreTable, bins: Bins) -> None:
        self.ranked = ranked
        self.bins = bins

    @cached_property
    def table(self) -> ScoreTable:
        """The predictions as probabilities; points, which are none, as they are."""
        return as_probabilities(self.ranked) or self.ranked

    @cached_property
    def log_loss(self) -> float:
        return mean_log_loss(self.table)

    def why_infinite(self) -> str:
        return infinite_because(self.table)

    @cached_property
    def square(self) -> float:
        return mean_square(self.table)

    @cached_property
    def groups(self) -> Groups:
        return group(self.table, self.bins)

    @cached_property
    def share_correct(self) -> float:
        return share_correct(self.table)

    @cached_property
    def hull(self) -> FlachMatsubara:
        return split_on_hull(self.table)

    @property
    def base_rate(self) -> float:
        return self.table.total_positive / self.table.total

    @cached_property
    def line(self) -> CoxLine:
        return cox_line(self.table)

    @cached_property
    def offset(self) -> OffsetIntercept:
        return offset_intercept(self.table)

    @cached_property
    def certain(self) -> float:
        """The weight of predictions of exactly 0 or 1."""
        return uncertain(self.table)[1]

    @cached_property
    def curve_gaps(self) -> CurveGaps:
        return curve_gaps(self.table, smooth_curve(self.table))


@dataclass(frozen=True)
class GroupFacts:
    """The facts of rows that were grouped where they are (`calibrant.metrics.evaluating_lazy`).

    Attributes
    ----------
    ranked : ScoreTable
        The scores as they came, in order: the sigmoid may have merged large margins.
    hidden_area : float
        By how much the AUC of ``ranked`` may be off, since the order in groups is not known.
    log_loss : float
        Mean −ln P(what came).
    impossible : ScoreTable
        A table with all cases whose prediction was exactly 0 or 1.
    square : float
        Mean (y − p)².
    groups : Groups
        The sums of each bin.
    share_correct : float
        The share of right decisions at p ≥ ½.
    hull : FlachMatsubara
        The Brier score split on the ROC hull.
    base_rate : float
        The share of positives.
    table : None
        All predictions one by one, which groups do not know.
    """

    ranked: ScoreTable
    hidden_area: float
    log_loss: float
    impossible: ScoreTable
    square: float
    groups: Groups
    share_correct: float
    hull: FlachMatsubara
    base_rate: float
    table: None = None

    def why_infinite(self) -> str:
        return infinite_because(self.impossible)


#: what a measure of two classes is made of
PredictionFacts = TableFacts | GroupFacts


# --- several classes ----------------------------------------------------------------------------


class ClassColumns(NamedTuple):
    """AUC (``areas``) and CalBin (``windows``) of each class against the rest.

    The AUC of a class that did not come is None. Where there is no CalBin ``no_windows`` says why.
    """

    areas: list[float | None]
    windows: list[float]
    no_windows: str


class ClassFacts:
    """The facts of a matrix of probabilities, each computed when it is first asked for."""

    def __init__(self, matrix: ScoreMatrix, bins: Bins) -> None:
        self.matrix = matrix
        self.bins = bins

    @cached_property
    def log_loss(self) -> float:
        return mean_log_loss_of_classes(self.matrix)

    def why_infinite(self) -> str:
        return infinite_for_classes(self.matrix)

    @property
    def share_correct(self) -> float:
        return share_right(self.matrix)

    @cached_property
    def square(self) -> float:
        """The mean over rows of Σ_j (y_j − p_j)²."""
        return square_sum(self.matrix)

    @cached_property
    def top(self) -> Groups:
        """The bins of the probability of each row's most probable class."""
        return group(top_table(self.matrix), self.bins)

    @cached_property
    def each(self) -> list[Groups]:
        """The bins of each class against the rest."""
        return class_groups(self.matrix, self.bins)

    @cached_property
    def columns(self) -> ClassColumns:
        """AUC and CalBin of each class, in one pass over the columns: each has to be sorted."""
        areas: list[float | None] = []
        windows: list[float] = []
        reason = too_many(self.matrix.total * self.matrix.n_classes)
        for table in class_tables(self.matrix):
            areas.append(None if one_class(table) else area(table))
            reason = reason or not_whole(table)
            if not reason:
                windows.append(window_error(table))
        return ClassColumns(areas, windows, reason)
