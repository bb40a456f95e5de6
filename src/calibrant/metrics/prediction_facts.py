"""What measures are made of: facts of a table, of groups of rows, or of several classes."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.data.score_kinds import as_probabilities
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import Groups, class_groups, group
from calibrant.metrics.calbin_windows import not_whole, too_many, window_error
from calibrant.metrics.cox_line import (
    Coefficient,
    CoxLine,
    cox_line,
    offset_intercept,
    uncertain,
)
from calibrant.metrics.decompose import FlachMatsubara, split_on_hull
from calibrant.metrics.lazy_sums import Sums
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
    def offset(self) -> Coefficient:
        return offset_intercept(self.table)

    @cached_property
    def certain(self) -> float:
        """The weight of predictions of exactly 0 or 1."""
        return uncertain(self.table)[1]

    @cached_property
    def curve_gaps(self) -> CurveGaps:
        return curve_gaps(self.table, smooth_curve(self.table))


class Hull(NamedTuple):
    """The Brier score split on the ROC hull (``parts``), and the table of the scores in order.

    Inside some groups the order is not known: the AUC may be off by ``hidden``.
    """

    parts: FlachMatsubara
    ranked: ScoreTable
    hidden: float


class GroupFacts:
    """The facts of rows that were grouped where they are (`calibrant.metrics.evaluating_lazy`).

    They are those of a table but for the ``table`` itself, all predictions one by one, and for what
    is fitted to it. ``hidden_area`` says by how much the AUC of ``ranked`` may be off, since the
    order in groups is not known.
    """

    table: None = None

    def __init__(self, g: Sums, hull: Hull, fine: int, bins: Bins) -> None:
        self.hull, self.ranked, self.hidden_area = hull
        self.groups = _bins(g, fine, bins)
        total, positive = float(g.n.sum()), float(g.n1.sum())
        self.base_rate = positive / total
        self.log_loss = float(g.loss.sum()) / total + 0.0
        rest = 1.0 - g.c
        square = g.e + 2.0 * (g.c * g.d0 - rest * g.d1) + g.c**2 * g.n0 + rest**2 * g.n1
        self.square = float(square.sum()) / total
        upper = g.f >= fine // 2
        self.share_correct = float(g.n0[~upper].sum() + g.n1[upper].sum()) / total
        self._sums = g

    def why_infinite(self) -> str:
        return infinite_because(self._sums.at(self._sums.mean))


def _bins(g: Sums, fine: int, bins: Bins) -> Groups:
    """The sums of each bin of equal width; for ``"auto"``, groups of rows count as ties."""
    if isinstance(bins, str):
        return group(g.at(g.mean), bins)
    number = np.clip(g.f, 0, fine - 1) // (fine // bins)
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(number[order]) > 0))
    columns = (g.n, g.n1, g.c * g.n + g.d0 + g.d1)
    return Groups(*(np.add.reduceat(column[order], starts) for column in columns))


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
