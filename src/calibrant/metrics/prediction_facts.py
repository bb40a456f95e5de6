"""What measures of two classes are made of: the same facts, from a table or from groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from calibrant.data.table import ScoreTable
from calibrant.metrics.binned import Groups, group
from calibrant.metrics.hull import FlachMatsubara, split_on_hull
from calibrant.metrics.proper import mean_log_loss, mean_square
from calibrant.metrics.ranking import share_correct

__all__ = ["GroupFacts", "PredictionFacts", "TableFacts"]


class PredictionFacts(Protocol):
    """The facts that a measure of two classes may ask for."""

    @property
    def table(self) -> ScoreTable | None:
        """All predictions one by one; None where only sums over groups of them are known."""

    @property
    def ranked(self) -> ScoreTable:
        """The scores as they came, in order: the sigmoid may have merged large margins."""

    @property
    def hidden_area(self) -> float:
        """By how much the AUC of ``ranked`` may be off, since the order in groups is not known."""

    @property
    def log_loss(self) -> float:
        """Mean −ln P(what came)."""

    @property
    def impossible(self) -> ScoreTable:
        """A table with all cases whose prediction was exactly 0 or 1."""

    @property
    def square(self) -> float:
        """Mean (y − p)²."""

    @property
    def groups(self) -> Groups:
        """The sums of each bin of equal width."""

    @property
    def share_correct(self) -> float:
        """The share of right decisions at p ≥ ½."""

    @property
    def hull(self) -> FlachMatsubara:
        """The Brier score split on the ROC hull."""

    @property
    def base_rate(self) -> float:
        """The share of positives."""


class TableFacts:
    """The facts of a table, each computed when it is first asked for.

    ``table`` holds the predictions as probabilities, ``ranked`` as they came.
    """

    hidden_area = 0.0

    def __init__(self, ranked: ScoreTable, bins: int) -> None:
        self.ranked = ranked
        self.bins = bins

    @cached_property
    def table(self) -> ScoreTable:
        ranked = self.ranked
        return ranked if ranked.looks_like_probabilities else ranked.through_sigmoid()

    @property
    def impossible(self) -> ScoreTable:
        return self.table

    @cached_property
    def log_loss(self) -> float:
        return mean_log_loss(self.table)

    @cached_property
    def square(self) -> float:
        return mean_square(self.table)

    @cached_property
    def groups(self) -> Groups:
        return group(self.table, self.bins)

    @property
    def share_correct(self) -> float:
        return share_correct(self.table)

    @cached_property
    def hull(self) -> FlachMatsubara:
        return split_on_hull(self.table)

    @property
    def base_rate(self) -> float:
        return self.table.total_positive / self.table.total


@dataclass(frozen=True)
class GroupFacts:
    """The facts of rows that were grouped where they are (`calibrant.metrics.evaluating_lazy`)."""

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
