"""Pieces of cells: how a row finds its piece, and the sums and scores of some pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array, Index
from calibrant.data.cells import Cells
from calibrant.data.grouped_sums import SUMS, Columns
from calibrant.data.lazy_rows import LazyRows
from calibrant.data.passes import Batch

if TYPE_CHECKING:
    import narwhals as nw


#: up to this many cells, sums are made in this process, in arrays with a place for each cell
FEW = 2**20
#: the largest number below 1: the place of a score whose place in its cell is rounded up to 1
LAST = 1.0 - 2.0**-53
#: what is kept of a piece, and in how many numbers: one line of the processor's cache
HELD, LINE = (*SUMS[:2], "moment", "rows", "low", "high"), 8


class _Step(NamedTuple):
    """A step as arrays: the entry of cell or piece k is at k + ``zero``; −1 where there is none."""

    zero: int
    first: Array
    parts: Array


@dataclass(frozen=True)
class PieceFinder:
    """Finds the piece of a score: first its cell, then one step after the other.

    Each step is a table: the cell or piece with number k becomes ``parts`` pieces, numbered from
    ``first`` on. Rows of cells and pieces that are not in the table are left out.
    """

    cells: Cells
    steps: tuple[Columns, ...]

    def rows_of(self, rows: LazyRows) -> LazyRows:
        """The rows of the pieces that all steps lead to, with the number k of the piece.

        The rows must have been checked before, since they are chosen by score alone.
        """
        import narwhals as nw

        from calibrant.data.joining import left_join

        own = {role: name for role, name in rows.names._asdict().items() if name}
        score = nw.col(rows.names.score).alias("x")
        frame = rows.source.select(score, *(nw.col(name).alias(role) for role, name in own.items()))
        k, t, first, parts = (nw.col(name) for name in ("k", "t", "first", "parts"))
        frame = self.cells.add_place(frame, "x", "t")
        frame = frame.with_columns(k=t.floor())
        inside = nw.when(t - k < 1.0).then(t - k).otherwise(LAST)
        frame = frame.with_columns(t=inside, k=k.cast(nw.Int32))
        for step in self.steps:
            frame = left_join(frame, step, "k").filter(~first.is_null())
            frame = frame.with_columns(t=t * parts)
            frame = frame.with_columns(k=t.floor())
            frame = frame.select("x", *own, k=(first + k).cast(nw.Int32), t=t - k)
        return replace(rows, source=frame, names=rows.names.by_role())

    @cached_property
    def _arrays(self) -> list[_Step]:
        found = []
        zero, size = self.cells.count // 2, self.cells.count + 1
        for step in self.steps:
            columns = np.full((2, size), -1.0)
            columns[:, step["k"] + zero] = step["first"], step["parts"]
            found.append(_Step(zero, *columns))
            zero, size = 0, int(step["first"][-1] + step["parts"][-1])
        return found

    def chosen(self, x: Array) -> tuple[Index, NDArray[np.int64]]:
        """The same for an array: the places of the scores that are in pieces, and their pieces'
        numbers."""
        t = self.cells.places(x)
        k = np.floor(t)
        at, t = np.arange(len(x)), np.minimum(t - k, LAST)
        for step in self._arrays:
            place = k.astype(np.int64) + step.zero
            first = step.first[place]
            inside = np.flatnonzero(first >= 0.0)
            at = at[inside]
            t = t[inside] * step.parts[place[inside]]
            k = np.floor(t)
            k, t = first[inside] + k, t - k
        return at, k.astype(np.int64)

    @property
    def ends(self) -> int:
        """How many pieces the last step leads to."""
        return int(self.steps[-1]["parts"].sum())


def _of(batch: Batch, at: Index) -> Batch:
    return Batch(*(None if column is None else column[at] for column in batch))  # type: ignore[arg-type]


@dataclass
class _OfPieces:
    """A question about the rows of some pieces."""

    finder: PieceFinder

    @property
    def few(self) -> bool:
        """Whether the answer is small enough to be made in this process."""
        return self.finder.cells.count <= FEW


@dataclass
class PieceSums(_OfPieces):
    """For each piece: Σw of each class, its lowest and highest score, and Σw·prediction.

    ``link`` makes predictions of an array of scores, ``predict`` where the rows are. Without
    ``predict`` predictions are not summed.
    """

    link: Callable[[Array], Array]
    predict: Callable[[nw.Expr], nw.Expr] | None
    sums: Array | None = None

    def ask(self, rows: LazyRows) -> Columns:
        """One group per piece, not one per class as for cells: there are so many pieces that the
        number of groups is what costs."""
        import narwhals as nw

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

    def add(self, batch: Batch) -> None:
        if self.sums is None:  # all of a piece side by side, in one line of the cache
            self.sums = np.zeros((self.finder.ends, LINE))
            self.sums[:, HELD.index("low")], self.sums[:, HELD.index("high")] = np.inf, -np.inf
        at, piece = self.finder.chosen(batch.x)
        x, y, w = _of(batch, at)
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
    """For each score in some pieces: Σw and Σw² of each class."""

    parts: list[Batch] = field(default_factory=list)

    def ask(self, rows: LazyRows) -> Columns:
        rows = self.finder.rows_of(rows)
        return rows.group(rows.rows(), ["x"], rows.sums())

    def add(self, batch: Batch) -> None:
        at, _ = self.finder.chosen(batch.x)
        self.parts.append(_of(batch, at))

    def found(self) -> Columns | None:
        if not any(len(part.x) for part in self.parts):
            return None
        x = np.concatenate([part.x for part in self.parts])
        positive = np.concatenate([part.y for part in self.parts]) > 0
        w = [part.w for part in self.parts if part.w is not None]
        self.parts = []
        scores, place = np.unique(x + 0.0, return_inverse=True)
        columns: Columns = {"x": scores}
        weight = np.concatenate(w) if w else np.ones(len(x))
        for names, values in ((SUMS[:2], weight), (SUMS[2:], weight**2))[: 1 + bool(w)]:
            for name, own in zip(names, (~positive, positive), strict=True):
                columns[name] = np.bincount(place[own], values[own], len(scores))
        return columns
