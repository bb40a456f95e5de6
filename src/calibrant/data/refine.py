"""Exact isotonic regression of cells: those that can matter are divided, then fetched by score.

The isotonic fit is the slope of the greatest convex minorant of the cumulative diagram, the points
(Σw, Σw·y) in the order of the scores. The borders of the cells are points of that diagram. What
happens inside a cell cannot lie below the corner that puts all its negatives first, so where that
corner is not below the minorant of the borders, the inside of the cell cannot touch it. Smaller
cells lower the minorant and leave fewer corners below it: where rates rise steadily, the rows of
cells that matter go with the square of the cells' size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array, Flags, Index
from calibrant.data.cell_pieces import PieceFinder, PieceScores, PieceSums
from calibrant.data.cells import Cells, fine_cells_for
from calibrant.data.grouped_sums import SUMS, Columns, Grouped, columns_of
from calibrant.data.lazy_checks import CellsOption
from calibrant.data.lazy_rows import LazyRows
from calibrant.data.passes import Steps, together
from calibrant.data.score_table import ScoreTable

if TYPE_CHECKING:
    import narwhals as nw


Link = Callable[[Array], Array]

#: rows that may be fetched score by score; above that, cells are divided into pieces of about EACH
#: rows, about MOST in one pass and in at most so many PASSES
FEW, EACH, MOST, PASSES = 2**20, 32, 2**20, 4
#: what becomes of the groups of one cell
JOINED = {"low": np.fmin, "high": np.fmax} | dict.fromkeys((*SUMS[:2], "rows", "moment"), np.add)


def matters(negative: Array, positive: Array) -> Flags:
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


def _lower_hull(negative: Array, positive: Array) -> Index:
    """Corners of the greatest convex minorant of the cumulative diagram: PAV of the rates."""
    from scipy.optimize import isotonic_regression

    weight = negative + positive
    blocks = isotonic_regression(positive / weight, weights=weight).blocks
    return np.asarray(blocks, dtype=np.intp)


# --- pieces -------------------------------------------------------------------------------------


class Narrowed(NamedTuple):
    """Pieces without a corner inside, in order, and each score of all others.

    The number ``k`` of a piece is its cell's where its ``depth`` is 0; ``moment`` is then unknown.
    """

    kept: Columns
    scores: Columns


def narrowed(
    grouped: Grouped,
    link: Link = np.asarray,
    predict: Callable[[nw.Expr], nw.Expr] | None = None,
) -> Steps[Narrowed]:
    """Divide cells that may hold a corner until few rows are left there, and ask for their scores.

    ``link`` makes predictions of scores, of which equal ones stay together; so does ``predict``
    where the rows are, if Σw·prediction of each piece is asked for.
    """
    if grouped.cells is None:
        raise ValueError("the rows must be in cells")
    pieces = _Pieces.of(grouped.cells, grouped.columns)
    torn = pieces.torn(link)
    for _ in range(PASSES):
        if pieces.columns["rows"][torn].sum() <= FEW:
            break
        parts = pieces.parts(torn)
        steps = pieces.step(torn, parts)
        found = yield PieceSums(PieceFinder(grouped.cells, steps), link, predict)
        pieces = pieces.divided(torn, steps, found)
        torn = pieces.torn(link)
    kept = {name: column[~torn] for name, column in pieces.columns.items()}
    if not torn.any():
        return Narrowed(kept, {"x": np.empty(0), **{name: np.empty(0) for name in SUMS}})
    steps = pieces.step(torn, np.ones(int(torn.sum())))
    scores = yield PieceScores(PieceFinder(grouped.cells, steps))
    return Narrowed(kept, scores)


def ties(low: Array, high: Array) -> tuple[Index, Index]:
    """Neighbours that share a prediction are one unit: the first of each, and each one's unit."""
    apart = np.append(True, low[1:] > high[:-1])[: len(low)]
    return np.flatnonzero(apart), np.cumsum(apart) - 1


@dataclass(frozen=True)
class _Pieces:
    """Pieces of the line of scores that have weight, in order, and how rows find theirs.

    Each step is a table: the piece with number k becomes ``parts`` pieces from number ``first`` on.
    """

    cells: Cells
    columns: Columns
    steps: tuple[Columns, ...] = ()

    @classmethod
    def of(cls, cells: Cells, found: Columns) -> Self:
        """The cells themselves; several groups of one cell are put together."""
        n0, n1, _, _ = columns_of(found)
        order = np.argsort(found["k"], kind="stable")
        order = order[(n0 + n1)[order] > 0]
        k = np.asarray(found["k"], np.int64)[order]
        starts = np.flatnonzero(np.append(True, k[1:] != k[:-1])[: len(k)])
        known = {"rows": n0 + n1, "moment": np.zeros(len(n0)), **found}
        columns = {
            name: put.reduceat(np.asarray(known[name], np.float64)[order], starts)
            for name, put in JOINED.items()
        }
        return cls(cells, {"k": k[starts], "depth": np.zeros(len(starts)), **columns})

    def torn(self, link: Link) -> Flags:
        """Which pieces may hold a corner. Those that were not divided with others cannot."""
        low, high = link(self.columns["low"]), link(self.columns["high"])
        starts, unit = ties(low, high)
        n0, n1 = (np.add.reduceat(self.columns[name], starts) for name in SUMS[:2])
        ends = np.append(starts[1:], len(low)) - 1
        inside = matters(n0, n1) & (low[starts] < high[ends])
        return np.asarray(inside[unit] & (self.columns["depth"] == len(self.steps)))

    def step(self, torn: Flags, parts: Array) -> tuple[Columns, ...]:
        """All steps and one more, for some pieces alone."""
        wanted = np.asarray(self.columns["k"][torn], np.int32)
        steps: list[Columns] = [{"k": wanted, "parts": parts, "first": np.cumsum(parts) - parts}]
        for step in reversed(self.steps):  # rows elsewhere need not go any further
            place = np.unique(np.searchsorted(step["first"], wanted, side="right") - 1)
            steps.append({name: column[place] for name, column in step.items()})
            wanted = steps[-1]["k"]
        return tuple(reversed(steps))

    def parts(self, torn: Flags) -> Array:
        """How many pieces of about EACH rows some are divided into."""
        count = self.columns["rows"][torn]
        each = max(EACH / 4 ** len(self.steps), count.sum() / MOST)
        return np.asarray(2.0 ** np.round(np.log2(np.maximum(count / each, 1.0))))

    def divided(self, torn: Flags, steps: tuple[Columns, ...], found: Columns) -> Self:
        """The pieces that all steps lead to in place of some."""
        new = type(self).of(self.cells, found).columns
        new["depth"] += len(steps)
        columns = {
            name: np.append(column[~torn], new[name]) for name, column in self.columns.items()
        }
        order = np.argsort(columns["low"], kind="stable")
        return replace(
            self, columns={name: column[order] for name, column in columns.items()}, steps=steps
        )


# --- isotonic regression ------------------------------------------------------------------------


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
    """The passes after the first: fetch the scores of the pieces that matter, and of no others."""
    (found,) = together((replace(rows, bare=True), narrowed(grouped)))
    return Refined(found.kept, found.scores)


def refined_table(rows: LazyRows, cells: CellsOption = "auto") -> ScoreTable:
    """The table of rows, small and yet with their exact isotonic fit, in a few passes.

    It is the exact table where that is small, and of no use for anything but isotonic regression:
    its Σw² are not those of the rows.
    """
    rows = replace(rows, bare=True)
    grouped = rows.grouped(cells, fine_cells_for)
    if grouped.cells is None:
        return grouped.table()
    return refined(rows, grouped).table()
