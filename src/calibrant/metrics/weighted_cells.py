"""Labels minus predictions at each cell of a table, and how far chance moves their sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import WEIGHTS, table_in_rows
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_word

__all__ = [
    "NOT_WHOLE",
    "check_weights",
    "deviation",
    "impossible",
    "residuals",
    "squares",
    "table_for_test",
]

Array = NDArray[np.float64]

NOT_WHOLE = (
    'weights="counts" reads weights as numbers of rows, but they are not whole. Pass '
    'weights="importance" if each row was seen once and its weight says how much it matters.'
)


def check_weights(weights: str) -> None:
    """Refuse a reading of weights that does not exist."""
    check_word("weights", weights, WEIGHTS)


def table_for_test(table: ScoreTable, weights: str) -> ScoreTable:
    """The table with its weights in units of rows; counts must be whole."""
    check_weights(weights)
    if weights == "counts" and not table.is_whole:
        raise InputError(NOT_WHOLE)
    return table_in_rows(table, weights)


def squares(table: ScoreTable) -> Array:
    """Σw² of each cell."""
    return table.negative_sq + table.positive_sq


def residuals(table: ScoreTable) -> Array:
    """Σ w(y − p) of each cell; the smaller of the two expectations is the more precise."""
    p, weight = table.scores, table.weight
    return np.where(p < 0.5, table.positive - weight * p, weight * (1.0 - p) - table.negative)


def deviation(table: ScoreTable, tilt: Array | float = 1.0) -> float:
    """√Σ tilt² p(1 − p)Σw²: the standard deviation of Σ tilt·wy if the predictions are right.

    Roots come first: 10⁻³⁰⁰ squared is 0.
    """
    p = table.scores
    each = np.sqrt(squares(table)) * np.sqrt(p) * np.sqrt(1.0 - p) * np.abs(tilt)
    largest = float(each.max())
    return largest * float(np.linalg.norm(each / largest)) if largest > 0.0 else 0.0


def impossible(table: ScoreTable) -> bool:
    """Whether something happened that had been given probability 0."""
    never, always = table.scores == 0.0, table.scores == 1.0
    return bool(table.positive[never].any() or table.negative[always].any())
