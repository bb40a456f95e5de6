"""The cells of a table: weights, labels minus predictions, what chance does, and runs of cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.frozen import own
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.data.weighing import WEIGHTS, table_in_rows
from calibrant.errors import InputError

ClassColumns = tuple[Array, Array, Array, Array]

NOT_WHOLE = (
    'weights="counts" reads weights as numbers of rows, but they are not whole. Pass '
    'weights="importance" if each row was seen once and its weight says how much it matters.'
)


def raised(x: Array, power: int = 3) -> Array:
    """x to a small whole power, by products: NumPy's own power takes a hundred times as long.

    >>> raised(np.array([2.0, -3.0])).tolist()
    [8.0, -27.0]
    """
    return np.asarray(math.prod((x,) * power))


def check_weights(weights: str) -> None:
    """Refuse a reading of weights that does not exist."""
    check_word("weights", weights, WEIGHTS)


def check_counts(weight: Array | None, weights: str) -> None:
    """Refuse weights of rows that are read as numbers of rows and are not whole."""
    if weights == "counts" and weight is not None and (weight != np.floor(weight)).any():
        raise InputError(NOT_WHOLE)


def table_for_test(table: ScoreTable, weights: str) -> ScoreTable:
    """The table with its weights in units of rows; counts must be whole."""
    check_weights(weights)
    if weights == "counts" and not table.is_whole:
        raise InputError(NOT_WHOLE)
    return table_in_rows(table, weights)


def class_columns(table: ScoreTable) -> ClassColumns:
    """Σw of negatives and of positives, and Σw² of both, at each cell."""
    return table.negative, table.positive, table.negative_sq, table.positive_sq


def take_cells(table: ScoreTable, which: Flags) -> ScoreTable:
    """Some of the cells, by True and False for each; the table itself where all are taken.

    >>> table = ScoreTable.from_counts([0.1, 0.5, 1.0], [1, 0, 2], [0, 1, 3])
    >>> take_cells(table, table.scores < 1.0)
    ScoreTable(2 scores from 0.1 to 0.5, weight 2: 1 positive, 1 negative)
    """
    if which.all():
        return table
    n0, n1, q0, q1 = (own(column[which]) for column in class_columns(table))
    return ScoreTable(own(table.scores[which]), n0, n1, q0, q1)


def class_sizes(table: ScoreTable) -> tuple[float, float]:
    """How many rows of equal weight negatives and positives are worth: (Σw)²/Σw² of each.

    >>> class_sizes(ScoreTable.from_arrays([0.1, 0.2, 0.2, 0.3], [1, 0, 0, 0], [2, 3, 1, 2]))
    (2.5714285714285716, 1.0)
    """
    n0, n1, q0, q1 = (float(column.sum()) for column in class_columns(table))
    return n0**2 / (q0 or 1.0), n1**2 / (q1 or 1.0)


def squares(table: ScoreTable) -> Array:
    """Σw² of each cell."""
    return table.negative_sq + table.positive_sq


def residuals(table: ScoreTable) -> Array:
    """Σ w(y − p) of each cell; the smaller of the two expectations is the more precise."""
    p, weight = table.scores, table.weight
    return np.where(p < 0.5, table.positive - weight * p, weight * (1.0 - p) - table.negative)


def squared_residuals(table: ScoreTable) -> Array:
    """Σ w²(y − p)² of each cell."""
    p = table.scores
    return table.negative_sq * p**2 + table.positive_sq * (1.0 - p) ** 2


def chance_variance(table: ScoreTable) -> Array:
    """p(1 − p)·Σw² of each cell: the variance of Σwy if the predictions are right."""
    return squares(table) * table.scores * (1.0 - table.scores)


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


# --- runs of neighbouring cells: bins, groups and blocks ---------------------------------------
#
# A run is given by the number of its first cell, and ends where the next one begins.


def starts_at(cells: NDArray[Any], size: int) -> Index:
    """The first cell of each run, from cells at which runs begin; the first run begins at 0.

    >>> starts_at(np.array([2, 2, 5]), 5).tolist()
    [0, 2]
    """
    starts = np.unique(np.append(0, cells))
    return starts[starts < size]


def last_cells(starts: Index, size: int) -> Index:
    """The last cell of each run.

    >>> last_cells(np.array([0, 2]), 5).tolist()
    [1, 4]
    """
    return np.append(starts[1:], size) - 1


def to_cells(values: NDArray[Any], starts: Index, size: int) -> NDArray[Any]:
    """For each cell the value of its run.

    >>> to_cells(np.array([0.1, 0.7]), np.array([0, 2]), 5).tolist()
    [0.1, 0.1, 0.7, 0.7, 0.7]
    """
    return np.repeat(values, np.diff(np.append(starts, size)))


def run_means(table: ScoreTable, starts: Index) -> Array:
    """The weighted mean score of each run, never outside its scores."""
    mean = np.add.reduceat(table.weight * table.scores, starts)
    mean = mean / np.add.reduceat(table.weight, starts)
    return np.clip(mean, table.scores[starts], table.scores[last_cells(starts, len(table))])
