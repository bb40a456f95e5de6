"""What a monitor remembers of the rows: sums of a few cells of the scale, for windows of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.arrays import Array
from calibrant.data.score_table import ScoreTable
from calibrant.result_tables import plain_fields

#: where cells of probabilities begin, after the first
EDGES = np.concatenate(
    (
        [0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.15],
        [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        [0.85, 0.9, 0.95, 0.98, 0.99, 0.997, 0.999],
    )
)
#: the most windows; if there are more, the older half is joined in pairs
MOST = 120


@dataclass(frozen=True)
class Window:
    """The sums of some batches that came one after another.

    Attributes
    ----------
    first, last : int
        Their numbers.
    since, until : str
        When they were, as the user said; empty if nothing was said.
    evidence : float
        ln of the evidence after the last of them.
    weight, positive, predicted, variance : array
        Σw, Σwy, Σwp and Σwp(1 − p) in each cell of the scale.
    """

    first: int
    last: int
    since: str
    until: str
    evidence: float
    weight: Array
    positive: Array
    predicted: Array
    variance: Array

    @classmethod
    def of(cls, batch: int, when: str, evidence: float, table: ScoreTable) -> Self:
        """The window of one batch, a table of probabilities."""
        p, weight = table.scores, table.weight
        cell = np.searchsorted(EDGES, p, side="right")
        columns = (weight, table.positive, weight * p, weight * p * (1.0 - p))
        sums = (
            np.asarray(np.bincount(cell, column, minlength=len(EDGES) + 1), dtype=np.float64)
            for column in columns
        )
        return cls(batch, batch, when, when, evidence, *sums)

    def table(self) -> ScoreTable:
        """The cells as a table, each at its mean prediction."""
        at = self.weight > 0.0
        n, n1 = self.weight[at], self.positive[at]
        return ScoreTable.from_counts(np.clip(self.predicted[at] / n, 0.0, 1.0), n - n1, n1)

    def to_plain(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return plain_fields(self)


def joined(windows: Sequence[Window]) -> Window:
    """One window of several that came one after another."""
    first, last = windows[0], windows[-1]
    names = ("weight", "positive", "predicted", "variance")
    sums = (np.sum([getattr(window, name) for window in windows], axis=0) for name in names)
    return Window(first.first, last.last, first.since, last.until, last.evidence, *sums)


def thinned(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The windows; if there are too many, the older half is joined in pairs."""
    if len(windows) <= MOST:
        return tuple(windows)
    half = len(windows) // 4 * 2
    pairs = (joined(windows[at : at + 2]) for at in range(0, half, 2))
    return (*pairs, *windows[half:])
