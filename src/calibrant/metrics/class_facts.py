"""What measures of several classes are made of."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.metrics.binned import Groups, group
from calibrant.metrics.calbin_windows import not_whole, too_many, window_error
from calibrant.metrics.multiclass import class_groups
from calibrant.metrics.probability_matrix import class_tables, square_sum, top_table
from calibrant.metrics.ranking import area

__all__ = ["ClassColumns", "ClassFacts"]


class ClassColumns(NamedTuple):
    """Measures of each class against the rest that need the table of its column.

    ``areas`` has None for a class that did not come. ``windows`` is empty where there is no CalBin,
    and ``no_windows`` says why.
    """

    areas: list[float | None]
    windows: list[float]
    no_windows: str


class ClassFacts:
    """The facts of a matrix of probabilities, each computed when it is first asked for."""

    def __init__(self, matrix: ScoreMatrix, bins: int) -> None:
        self.matrix = matrix
        self.bins = bins

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
            both = table.total_positive > 0 and table.total_negative > 0
            areas.append(area(table) if both else None)
            reason = reason or not_whole(table)
            if not reason:
                windows.append(window_error(table))
        return ClassColumns(areas, windows, reason)
