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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.lazy import (
    FEW_CELLS,
    CellsOption,
    Columns,
    LazyRows,
    Question,
    Steps,
    grouped_table,
    left_join,
    run_steps,
)
from calibrant.data.score_table import SUMS, Cells, ScoreTable, fine_cells_for, run_starts, sums_of

Link = Callable[[Array], Array]

#: rows that may be fetched score by score; above that, cells are divided into pieces of about EACH
#: rows, about MOST in one pass and in at most so many PASSES
FEW, EACH, MOST, PASSES = 2**20, 32, 2**20, 4
#: what becomes of the groups of one cell
JOINED = {"low": np.fmin, "high": np.fmax} | dict.fromkeys((*SUMS[:2], "rows", "moment"), np.add)
#: the largest number below 1: the place of a score whose place in its cell is rounded up to 1
LAST = 1.0 - 2.0**-53
#: what is kept of a piece, and in how many numbers: one line of the processor's cache
HELD, LINE = (*SUMS[:2], "moment", "rows", "low", "high"), 8


def refined_table(rows: LazyRows, cells: CellsOption = "auto") -> ScoreTable:
    """A small table of lazy rows that has exactly their isotonic fit, found in a few passes.

    It is the exact table where that is small. It serves isotonic regression only, since its Σw² are
    not those of the rows.
    """
    rows = replace(rows, bare=True)
    by, found = rows.grouped(cells, fine_cells_for)
    if by is None:
        return grouped_table(None, found)
    (pieces,) = run_steps((rows, narrowed(by, found)))
    return pieces.table()


def may_hold_corner(negative: Array, positive: Array) -> Flags:
    """Flags of the cells that may hold a corner of the convex minorant; cells are in order of
    score.

    O(D). The comparison has a margin for rounding, so that a doubtful cell is flagged.

    >>> may_hold_corner(np.array([9.0, 5.0, 5.0, 1.0]), np.array([1.0, 5.0, 6.0, 9.0])).tolist()
    [True, True, True, True]
    >>> may_hold_corner(np.array([0.0, 9.0, 0.0]), np.array([9.0, 1.0, 9.0])).tolist()
    [False, True, False]
    """
    from scipy.optimize import isotonic_regression

    n = negative + positive
    # PAV of the rates has the corners of the minorant
    hull = np.asarray(isotonic_regression(positive / n, weights=n).blocks, dtype=np.intp)
    weight, height = np.append(0.0, np.cumsum(n)), np.append(0.0, np.cumsum(positive))
    across = weight[:-1] + negative
    floor = np.interp(across, weight[hull], height[hull])
    spare = 1e-12 * height[-1] + 1e-12 * weight[-1]
    return np.asarray((height[:-1] < floor + spare) & (negative > 0) & (positive > 0))


# --- Pieces of the line of scores -----------------------------------------------------------------


class Narrowed(NamedTuple):
    """Pieces that hold no corner, in order of score, and the single scores of all other rows.

    ``k`` is the number of a piece, or of its cell where its ``depth`` is 0. There the ``moment`` is
    unknown.
    """

    kept: Columns
    scores: Columns

    def table(self) -> ScoreTable:
        """A table with the same isotonic fit as the exact table.

        A piece without a corner is put at its lowest and its highest score, half of its weight at
        each. Both lie in the same block, so the neighbours of the block see the same ends.
        """
        kept, single = sums_of(self.kept), sums_of(self.scores)
        x = np.concatenate((self.kept["low"], self.kept["high"], self.scores["x"]))
        halves = [0.5 * column for column in kept]
        sums = map(np.concatenate, zip(halves, halves, single, strict=True))
        return ScoreTable.from_counts(x, *sums)


def narrowed(
    cells: Cells,
    grouped: Columns,
    link: Link = np.asarray,
    predict: Callable[[nw.Expr], nw.Expr] | None = None,
) -> Steps[Narrowed]:
    """Divide the cells that may hold a corner into pieces, again and again, until few rows are left
    in such pieces. Then ask for the single scores of those rows.

    ``link`` makes predictions of scores; scores of equal prediction stay together. ``predict`` does
    the same in the engine, if Σw·prediction of each piece is wanted.
    """
    finder = PieceFinder(cells)
    pieces = finder.pieces(grouped)
    unsettled = finder.unsettled(pieces, link)
    for _ in range(PASSES):
        rows = pieces["rows"][unsettled]
        if rows.sum() <= FEW:
            break
        each = max(EACH / 4 ** len(finder.steps), rows.sum() / MOST)
        parts = 2.0 ** np.round(np.log2(np.maximum(rows / each, 1.0)))
        finder = finder.divided(pieces["k"][unsettled], parts)
        new = finder.pieces((yield PieceSums(finder, link, predict)))
        pieces = {name: np.append(own[~unsettled], new[name]) for name, own in pieces.items()}
        order = np.argsort(pieces["low"], kind="stable")
        pieces = {name: column[order] for name, column in pieces.items()}
        unsettled = finder.unsettled(pieces, link)
    kept = {name: column[~unsettled] for name, column in pieces.items()}
    if not unsettled.any():
        return Narrowed(kept, {"x": np.empty(0), **{name: np.empty(0) for name in SUMS}})
    finder = finder.divided(pieces["k"][unsettled], np.ones(int(unsettled.sum())))
    return Narrowed(kept, (yield PieceScores(finder)))


def unit_starts(low: Array, high: Array) -> tuple[Index, Index]:
    """The first piece of each unit, and the unit of each piece.

    A unit is a run of neighbouring pieces that share a prediction. ``low`` and ``high`` are the
    predictions at both ends of each piece.
    """
    first = np.append(True, low[1:] > high[:-1])[: len(low)]
    return np.flatnonzero(first), np.cumsum(first) - 1


# --- How a score finds its piece ------------------------------------------------------------------


@dataclass(frozen=True)
class PieceFinder:
    """Finds the piece of a score: first its cell, then, step by step, the piece within it.

    Each step is a table. The cell or piece with number k becomes ``parts`` pieces, numbered from
    ``first`` on. Rows in cells and pieces that are not in the table are left out.
    """

    cells: Cells
    steps: tuple[Columns, ...] = ()

    def divided(self, wanted: NDArray[Any], parts: Array) -> PieceFinder:
        """A finder with one more step, which divides each of the ``wanted`` pieces into so many
        ``parts``."""
        wanted = np.asarray(wanted, np.int32)
        steps: list[Columns] = [{"k": wanted, "parts": parts, "first": np.cumsum(parts) - parts}]
        for step in reversed(self.steps):  # rows elsewhere need not go any further
            place = np.unique(np.searchsorted(step["first"], wanted, side="right") - 1)
            steps.append({name: column[place] for name, column in step.items()})
            wanted = steps[-1]["k"]
        return PieceFinder(self.cells, tuple(reversed(steps)))

    def pieces(self, found: Columns) -> Columns:
        """The pieces with weight above 0, in order of score. Groups of one piece are put
        together."""
        n0, n1, _, _ = sums_of(found)
        order = np.argsort(found["k"], kind="stable")
        order = order[(n0 + n1)[order] > 0]
        k = np.asarray(found["k"], np.int64)[order]
        starts = run_starts(k)
        known = {"rows": n0 + n1, "moment": np.zeros(len(n0)), **found}
        columns = {
            name: put.reduceat(np.asarray(known[name], np.float64)[order], starts)
            for name, put in JOINED.items()
        }
        return {"k": k[starts], "depth": np.full(len(starts), float(len(self.steps))), **columns}

    def unsettled(self, pieces: Columns, link: Link) -> Flags:
        """Flags of the pieces that may still hold a corner. Only pieces of the last step can."""
        low, high = link(pieces["low"]), link(pieces["high"])
        starts, unit = unit_starts(low, high)
        n0, n1 = (np.add.reduceat(pieces[name], starts) for name in SUMS[:2])
        ends = np.append(starts[1:], len(low)) - 1
        inside = may_hold_corner(n0, n1) & (low[starts] < high[ends])
        return np.asarray(inside[unit] & (pieces["depth"] == len(self.steps)))

    def rows_of(self, rows: LazyRows) -> LazyRows:
        """The rows in the pieces of the last step, with the number k of the piece.

        These rows must have been checked before.
        """
        own = ["label", "weight"] if rows.names.weight else ["label"]
        frame = rows.source.select(*own, x=nw.col(rows.score))
        k, t, first, parts = (nw.col(name) for name in ("k", "t", "first", "parts"))
        frame = self.cells.add_positions(frame, "x", "t")
        frame = frame.with_columns(k=t.floor())
        inside = nw.when(t - k < 1.0).then(t - k).otherwise(LAST)
        frame = frame.with_columns(t=inside, k=k.cast(nw.Int32))
        for step in self.steps:
            frame = left_join(frame, step, "k").filter(~first.is_null())
            frame = frame.with_columns(t=t * parts)
            frame = frame.with_columns(k=t.floor())
            frame = frame.select("x", *own, k=(first + k).cast(nw.Int32), t=t - k)
        return replace(rows, source=frame, score="x")

    @cached_property
    def _arrays(self) -> list[tuple[int, Array, Array]]:
        """Each step as arrays: ``first`` and ``parts`` of k are at k + ``zero``, −1 for none."""
        arrays = []
        zero, size = self.cells.count // 2, self.cells.count + 1
        for step in self.steps:
            columns = np.full((2, size), -1.0)
            columns[:, step["k"] + zero] = step["first"], step["parts"]
            arrays.append((zero, columns[0], columns[1]))
            zero, size = 0, int(step["first"][-1] + step["parts"][-1])
        return arrays

    def chosen(self, x: Array) -> tuple[Index, NDArray[np.int64]]:
        """The indices of the scores that lie in pieces of the last step, and the number of each
        one's piece.

        It gives the same pieces as `rows_of`.
        """
        t = self.cells.positions(x)
        k = np.floor(t)
        at, t = np.arange(len(x)), np.minimum(t - k, LAST)
        for zero, firsts, parts in self._arrays:
            place = k.astype(np.int64) + zero
            first = firsts[place]
            inside = np.flatnonzero(first >= 0.0)
            at = at[inside]
            t = t[inside] * parts[place[inside]]
            k = np.floor(t)
            k, t = first[inside] + k, t - k
        return at, k.astype(np.int64)

    @property
    def ends(self) -> int:
        """The number of pieces after the last step."""
        return int(self.steps[-1]["parts"].sum())


# --- Questions about the rows of some pieces ------------------------------------------------------


@dataclass
class _OfPieces(Question):
    """A question about the rows of some pieces."""

    finder: PieceFinder

    @property
    def few(self) -> bool:
        return self.finder.cells.count <= FEW_CELLS


@dataclass
class PieceSums(_OfPieces):
    """A question: for each piece Σw of each class, its lowest and highest score, and Σw·prediction.

    ``link`` makes predictions of an array of scores, ``predict`` in the engine. Without ``predict``
    predictions are not summed.
    """

    link: Callable[[Array], Array]
    predict: Callable[[nw.Expr], nw.Expr] | None
    sums: Array | None = None

    def ask(self, rows: LazyRows) -> Columns:
        """The answer, by a query with one group for each piece, not one for each class as for
        cells: with so many pieces, the number of groups decides the cost."""
        rows = self.finder.rows_of(rows)
        x, w0, w1 = nw.col("x"), nw.col("w0"), nw.col("w1")
        frame, sums = rows.rows(nw.col("k")), {"negative": w0.sum(), "positive": w1.sum()}
        at = x
        if rows.names.weight:
            frame, at = frame.with_columns(at=nw.when(w0 + w1 > 0.0).then(x)), nw.col("at")
            sums["rows"] = nw.len()
        if self.predict is not None:
            value = (w0 + w1) * self.predict(x) if rows.names.weight else self.predict(x)
            frame, sums["moment"] = frame.with_columns(p=value), nw.col("p").sum()
        return rows.group(frame, ["k"], {**sums, "low": at.min(), "high": at.max()})

    def add(self, x: Array, y: NDArray[np.int64], w: Array | None) -> None:
        if self.sums is None:  # all of a piece side by side, in one line of the cache
            self.sums = np.zeros((self.finder.ends, LINE))
            self.sums[:, HELD.index("low")], self.sums[:, HELD.index("high")] = np.inf, -np.inf
        at, piece = self.finder.chosen(x)
        x, y, w = x[at], y[at], None if w is None else w[at]
        p = self.link(x) if self.predict else x
        put, line = self.sums.reshape(-1), piece * LINE
        np.add.at(put, line + y, 1.0 if w is None else w)
        np.add.at(put, line + HELD.index("moment"), p if w is None else w * p)
        np.add.at(put, line + HELD.index("rows"), 1.0)
        if w is not None:
            x, line = x[w > 0.0], line[w > 0.0]
        np.minimum.at(put, line + HELD.index("low"), x)
        np.maximum.at(put, line + HELD.index("high"), x)

    def found(self) -> Columns | None:
        if self.sums is None:
            return None
        held = np.flatnonzero(self.sums[:, 0] + self.sums[:, 1] > 0.0)
        columns = {name: self.sums[held, place] + 0.0 for place, name in enumerate(HELD)}
        self.sums = None
        return {"k": held, **columns} if len(held) else None


@dataclass
class PieceScores(_OfPieces):
    """A question: for each score in some pieces, Σw and Σw² of each class."""

    parts: list[tuple[Array, NDArray[np.int64], Array | None]] = field(default_factory=list)

    def ask(self, rows: LazyRows) -> Columns:
        rows = self.finder.rows_of(rows)
        return rows.group(rows.rows(), ["x"], rows.sums())

    def add(self, x: Array, y: NDArray[np.int64], w: Array | None) -> None:
        at, _ = self.finder.chosen(x)
        self.parts.append((x[at], y[at], None if w is None else w[at]))

    def found(self) -> Columns | None:
        if not any(len(x) for x, _, _ in self.parts):
            return None
        x = np.concatenate([x for x, _, _ in self.parts])
        positive = np.concatenate([y for _, y, _ in self.parts]) > 0
        w = [w for _, _, w in self.parts if w is not None]
        self.parts = []
        scores, place = np.unique(x + 0.0, return_inverse=True)
        columns: Columns = {"x": scores}
        weight = np.concatenate(w) if w else np.ones(len(x))
        for names, values in ((SUMS[:2], weight), (SUMS[2:], weight**2))[: 1 + bool(w)]:
            for name, own in zip(names, (~positive, positive), strict=True):
                columns[name] = np.bincount(place[own], values[own], len(scores))
        return columns
