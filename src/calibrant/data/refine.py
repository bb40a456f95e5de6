"""Exact isotonic regression in two passes: cells first, then the few scores that can matter.

The isotonic fit is the slope of the greatest convex minorant of the cumulative diagram, the points
(Σw, Σw·y) in the order of the scores. The borders of the cells are points of that diagram. What
happens inside a cell cannot lie below the corner that puts all its negatives first, so where that
corner is not below the minorant of the borders, the inside of the cell cannot touch it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cells import Cells, fine_cells_for
from calibrant.data.grouped import SUMS, Grouped, columns_of
from calibrant.data.lazy import LazyRows
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.table import ScoreTable

__all__ = ["Refined", "matters", "refined", "refined_table", "rows_of_cells"]

Array = NDArray[np.float64]
Columns = tuple[Array, Array, Array, Array]


def matters(negative: Array, positive: Array) -> NDArray[np.bool_]:
    """Which cells, in the order of their scores, may hold a corner of the convex minorant.

    O(D). Sums are compared with a margin for their rounding, on the side of looking twice.

    >>> matters(np.array([9.0, 5.0, 5.0, 1.0]), np.array([1.0, 5.0, 6.0, 9.0])).tolist()
    [True, True, True, True]
    >>> matters(np.array([0.0, 9.0, 0.0]), np.array([9.0, 1.0, 9.0])).tolist()
    [False, True, False]
    """
    weight = np.append(0.0, np.cumsum(negative + positive))
    height = np.append(0.0, np.cumsum(positive))
    hull = _lower_hull(negative, positive)
    across = weight[:-1] + negative
    floor = np.interp(across, weight[hull], height[hull])
    spare = 1e-12 * height[-1] + 1e-12 * weight[-1]
    return np.asarray((height[:-1] < floor + spare) & (negative > 0) & (positive > 0))


def _lower_hull(negative: Array, positive: Array) -> NDArray[np.intp]:
    """Corners of the greatest convex minorant of the cumulative diagram: PAV of the rates."""
    from scipy.optimize import isotonic_regression

    weight = negative + positive
    blocks = isotonic_regression(positive / weight, weights=weight).blocks
    return np.asarray(blocks, dtype=np.intp)


class Refined:
    """Cells whose inside does not matter, and the scores of the others one by one.

    Parameters
    ----------
    cells : dict of arrays
        Sums of the cells that are kept whole, with ``low`` and ``high``.
    scores : dict of arrays
        Sums of each score ``x`` of the other cells.
    """

    def __init__(self, cells: dict[str, NDArray[Any]], scores: dict[str, NDArray[Any]]) -> None:
        self.cells = cells
        self.scores = scores

    def table(self) -> ScoreTable:
        """A table with the same isotonic fit as the exact one, cuts and all.

        A cell that is kept stands at its lowest and its highest score, half of its weight at each:
        the two lie in the same block, whose neighbours see the ends that they would see.
        """
        low, high = self.cells["low"], self.cells["high"]
        kept = columns_of(self.cells)
        single = columns_of(self.scores)
        parts = ((low, 0.5, kept), (high, 0.5, kept), (self.scores["x"], 1.0, single))
        x = np.concatenate([scores for scores, _, _ in parts])
        sums = [
            np.concatenate([share * columns[i] for _, share, columns in parts]) for i in range(4)
        ]
        return ScoreTable.from_counts(x, *sums)


def refined(rows: LazyRows, grouped: Grouped) -> Refined:
    """The second pass: fetch the scores of the cells that matter, and of no others."""
    columns = grouped.columns
    n0, n1, _, _ = columns_of(columns)
    inside = np.zeros(len(n0), dtype=bool)
    present = n0 + n1 > 0
    inside[present] = matters(n0[present], n1[present])
    inside &= columns["low"] < columns["high"]
    kept = {name: column[present & ~inside] for name, column in columns.items()}
    if grouped.cells is None or not inside.any():
        return Refined(kept, {"x": np.empty(0), **{name: np.empty(0) for name in SUMS}})
    few = rows_of_cells(rows, grouped.cells, columns["k"][inside])
    return Refined(kept, few.group(few.rows(), ["x"], few.sums()))


def rows_of_cells(rows: LazyRows, cells: Cells, wanted: NDArray[Any]) -> LazyRows:
    """The rows of some cells alone. All rows are known to be good: they are chosen by their score
    before anything else is computed."""
    import narwhals as nw

    score = nw.col(rows.names.score).cast(nw.Float64).alias("x")
    own = {role: name for role, name in rows.names._asdict().items() if name}
    frame = rows.source.select(score, *(nw.col(name).alias(role) for role, name in own.items()))
    frame = cells.add_to(frame, "x", "k").filter(nw.col("k").is_in(wanted.tolist()))
    return replace(rows, source=frame, names=Names(**{role: role for role in own}))


def refined_table(rows: LazyRows, cells: CellsOption = "auto") -> ScoreTable:
    """The table of rows, small and yet with their exact isotonic fit, in two passes.

    It is the exact table where that is small, and of no use for anything but isotonic regression:
    its Σw² are not those of the rows.
    """
    rows = replace(rows, bare=True)
    grouped = rows.grouped(cells, fine_cells_for)
    if grouped.cells is None:
        return grouped.table()
    return rows.checked(lambda: refined(rows, grouped)).table()
