"""What weights mean, said once: how much rows matter, or how often they were repeated.

``weights="importance"``, the default everywhere: only ratios of weights matter. They are divided by
Σw²/Σw, so that their sum is (Σw)²/Σw², the number of rows of equal weight that carry as much
information (Kish). Equal weights, whatever their size, are then as none. ``weights="counts"``: a
row of weight w is w equal rows, so that the sum of weights is the number of rows, at most 2⁵³.
None: weights as they came, for methods to which only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from calibrant.array_types import Array
from calibrant.data.frozen import own
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError

#: how far from equal, or from a whole number, sums of equal weights may be: they are rounded
ROUNDING = 1e-9
#: the most rows that counts may stand for: floats hold every whole number up to here
MOST_ROWS = 2.0**53


def table_in_rows(table: ScoreTable, weights: str | None) -> ScoreTable:
    """The table with its weights in units of rows. O(D).

    >>> seven = ScoreTable.from_arrays([0.2, 0.7, 0.2], [0, 1, 1], [7, 7, 7])
    >>> table_in_rows(seven, "importance")
    ScoreTable(2 scores from 0.2 to 0.7, weight 3: 2 positive, 1 negative)
    >>> table_in_rows(seven, "counts").effective_size
    21.0
    """
    return table if weights is None else WEIGHTS[weights](table)


def rows_count_once(table: ScoreTable) -> bool:
    """Whether every row of a table has weight one: Σw² equals Σw in all cells."""
    n, squares = (table.negative, table.positive), (table.negative_sq, table.positive_sq)
    return all(map(np.array_equal, n, squares))


def matrix_in_rows(matrix: ScoreMatrix, weights: str | None) -> ScoreMatrix:
    """The matrix with its weights in units of rows."""
    return replace(matrix, weight=weight_in_rows(matrix.weight, weights))


def weight_in_rows(weight: Array | None, weights: str | None) -> Array | None:
    """Weights ≥ 0 of rows, in units of rows; None where all rows count once.

    >>> weight_in_rows(np.array([2.0, 2.0]), "importance") is None
    True
    >>> weight_in_rows(np.array([1.0, 3.0, 0.0]), "importance").round(3).tolist()
    [0.4, 1.2, 0.0]
    >>> weight_in_rows(np.array([1.0, 3.0]), "counts").tolist()
    [1.0, 3.0]
    """
    if weight is None or weights is None:
        return weight
    if weights == "counts":
        _check_counts(float(weight.sum()))
        return weight
    least, most = float(weight.min()), float(weight.max())
    if least == most:
        return None
    share = weight / most  # squares of very small or large weights would leave the range of floats
    return np.asarray(share / (float(share @ share) / float(share.sum())))


def _by_importance(table: ScoreTable) -> ScoreTable:
    n0, n1, q0, q1 = table.negative, table.positive, table.negative_sq, table.positive_sq
    if not table or (n0 is q0 and n1 is q1):
        return table
    unit = float(q0.sum() + q1.sum()) / table.total
    if not unit > 0.0:  # squares too small for floats
        return _unsquared(table)
    rows = n0 / unit, n1 / unit
    squares = q0 / unit / unit, q1 / unit / unit
    whole = [np.rint(n) for n in rows]
    if all(map(_near, rows, whole)) and all(map(_near, squares, whole)):  # all weights are equal
        rows = squares = own(whole[0]), own(whole[1])
    elif abs(unit - 1.0) <= 1e-12:  # in units of rows already
        return table
    return replace(
        table,
        negative=own(rows[0]),
        positive=own(rows[1]),
        negative_sq=own(squares[0]),
        positive_sq=own(squares[1]),
    )


def _near(values: Array, whole: Array) -> bool:
    return bool((np.abs(values - whole) <= ROUNDING * whole).all())  # a light row is no absent one


def _as_counts(table: ScoreTable) -> ScoreTable:
    _check_counts(table.total)
    return _unsquared(table)


def _check_counts(total: float) -> None:
    if total > MOST_ROWS:
        raise InputError(
            f'weights="counts" reads weights as numbers of rows, so their sum must be at most '
            f"2⁵³ ≈ {MOST_ROWS:.3g} (beyond that, floats cannot tell one row more), but it is "
            f'{total:.3g}. Weights that say how much a row matters go with weights="importance".'
        )


def _unsquared(table: ScoreTable) -> ScoreTable:
    return replace(table, negative_sq=table.negative, positive_sq=table.positive)


#: what ``weights=`` may say, and the table of rows that this makes of one
WEIGHTS: dict[str, Callable[[ScoreTable], ScoreTable]] = {
    "importance": _by_importance,
    "counts": _as_counts,
}
