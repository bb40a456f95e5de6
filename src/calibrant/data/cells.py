"""Cells of scores: the same cell for the same score in NumPy and in every database."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array

if TYPE_CHECKING:
    import narwhals as nw

    from calibrant.data.score_table import ScoreTable


Frame = TypeVar("Frame", "nw.LazyFrame[Any]", "nw.DataFrame[Any]")

#: cells of a table, at least and at most; and at most where those that matter are divided
FEWEST, MOST = 2**14, 2**20
FINEST = 2**19
#: cells of a segment, at least and at most, and of all segments together, about
OWN, TOGETHER = (2**10, 2**14), 2**20


#: ½^⅛, by the square roots that every engine takes
HALF = math.sqrt(math.sqrt(math.sqrt(0.5)))
#: keeps the last scores below ½, whose roots round to that of ½, out of its cell
LEAST = 1e-300


@dataclass(frozen=True)
class Cells:
    """A number for each score, never smaller for a larger score.

    Probabilities: ⌊u·K/2⌋ with u = (p/½)^⅛ − 1 below ½ and 1 − ((1 − p)/½)^⅛ above, nearly even in
    the logit: from p = 10⁻⁸ to ½ the width of a cell in logits changes less than tenfold. Margins:
    u = ±(1 − 1/(1 + |t|)) with t = (s − centre)/spread, finest at the centre, and no score is too
    far out.

    Parameters
    ----------
    count : int
        K, even. Cell numbers run from −K/2 to K/2, and from 0 if and only if p ≥ ½; from 0 for all
        s ≥ centre.
    centre : float or None
        None for probabilities; scores below 0 and above 1 then count as 0 and 1.
    spread : float
        At least 1e-300.

    Notes
    -----
    Roots and not logarithms: IEEE 754 fixes +, −, ·, ÷ and √ to the last bit, but not ln, so every
    engine puts a score into the same cell, and rounding cannot put a larger one lower. Nothing is
    divided by a constant: some engines multiply by its inverse instead.

    Examples
    --------
    >>> Cells(1000)(np.array([0.0, 1e-6, 0.499, 0.5, 1.0])).tolist()
    [-500, -404, -1, 0, 500]
    >>> Cells(1000, centre=2.0, spread=3.0)(np.array([-1e300, 1.9, 2.0, 5.0])).tolist()
    [-500, -17, 0, 250]
    """

    count: int
    centre: float | None = None
    spread: float = 1.0

    def __call__(self, scores: Array) -> NDArray[np.int64]:
        """The cells of an array of finite scores."""
        return np.asarray(np.floor(self.places(scores)), dtype=np.int64)

    def places(self, scores: Array) -> Array:
        """The same before it is rounded down, as `add_place` has it for frames.

        In one array: new ones for each step would cost more than the roots.
        """
        s = np.asarray(scores, dtype=np.float64)
        place = np.empty_like(s)
        with np.errstate(over="ignore"):
            if self.centre is None:
                np.clip(s, 0.0, 1.0, out=place)
                side, middle = place < 0.5, HALF
                np.minimum(place, 1.0 - place, out=place)
                for _ in range(3):
                    np.sqrt(place, out=place)
            else:
                np.subtract(s, self.centre, out=place)
                place *= 1.0 / self.spread
                side, middle = place < 0.0, 1.0
                np.abs(place, out=place)
                place += 1.0
                np.divide(1.0, place, out=place)
        place -= middle
        np.subtract(place, LEAST, out=place, where=side)
        np.negative(place, out=place, where=~side)
        place *= self._scale
        return place

    def add_to(self, frame: Frame, score: str, into: str) -> Frame:
        """A frame with the cells of a column of finite doubles (or NULL) as one more column."""
        import narwhals as nw

        cell = nw.col(into).floor()
        if not frame.implementation.is_pandas_like():  # where integers cannot be missing
            cell = cell.cast(nw.Int32)
        return self.add_place(frame, score, into).with_columns(cell.alias(into))

    def add_place(self, frame: Frame, score: str, into: str) -> Frame:
        """The same before it is rounded down: a cell's number and the place inside it.

        The same steps as for arrays, one column after another: SQL would repeat an expression at
        each use. Twice as many cells have places twice as large, to the last bit, so each half of a
        cell is one of theirs.
        """
        import narwhals as nw

        s, step = nw.col(score), nw.col(into)
        if self.centre is None:
            lower = nw.when(s > 0.0).then(s).otherwise(0.0)
            upper = nw.when(s >= 1.0).then(0.0).otherwise(1.0 - s)  # NULL for NULL
            frame = frame.with_columns(nw.when(s < 0.5).then(lower).otherwise(upper).alias(into))
            for _ in range(3):
                frame = _with_root(frame, into)
            side, low, high = s < 0.5, step - HALF - LEAST, HALF - step
        else:
            frame = frame.with_columns(((s - self.centre) * (1.0 / self.spread)).alias(into))
            far = 1.0 / (1.0 + step.abs())
            side, low, high = step < 0.0, far - 1.0 - LEAST, 1.0 - far
        place = nw.when(side).then(low).otherwise(high) * self._scale
        return frame.with_columns(place.alias(into))

    @property
    def _scale(self) -> float:
        if self.centre is not None:
            return self.count / 2
        scale = self.count / 2 / HALF
        # rounded down, or 0 and 1 would be one cell too far out
        return scale if scale * HALF <= self.count / 2 else math.nextafter(scale, 0.0)

    def __str__(self) -> str:
        scale = "even in the logit" if self.centre is None else "finest in the middle"
        return f"{self.count:,} cells, {scale}"


def _with_root(frame: Frame, column: str) -> Frame:
    """The frame with the square root of a column of numbers from 0 on in its place."""
    import narwhals as nw

    from calibrant.data.engine_frames import compute

    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_ibis():
        return compute(frame, "sqrt", {column: column})
    return frame.with_columns(nw.col(column).sqrt())


def cells_for(rows: float) -> int:
    """How many cells for a table: a power of two that grows like √rows.

    So the width of a cell shrinks like the noise of a fit, and what cells change, which goes with
    the square of their width, faster than that.

    >>> [cells_for(n) for n in (1e6, 1e7, 1e8, 1e10)]
    [16384, 16384, 32768, 262144]
    """
    return min(max(_power(3.3 * math.sqrt(rows)), FEWEST), MOST)


def fine_cells_for(rows: float) -> int:
    """How many cells where those that matter are divided again: about one for fifty rows.

    >>> [fine_cells_for(n) for n in (1e6, 1e7, 1e8)]
    [16384, 262144, 524288]
    """
    return min(max(_power(rows / 50), FEWEST), FINEST)


def segment_cells_for(segments: float) -> int:
    """How many cells for each of many segments.

    >>> [segment_cells_for(n) for n in (10, 200, 5000)]
    [16384, 4096, 1024]
    """
    return min(max(_power(TOGETHER / max(segments, 1.0)), OWN[0]), OWN[1])


def _power(count: float) -> int:
    """The power of two that is nearest by ratio."""
    power: int = 2 ** round(math.log2(max(count, 1.0)))
    return power


def cell_facts(table: ScoreTable) -> dict[str, Any]:
    """What was done to the scores of a table, and how far any was moved; empty if nothing was."""
    return {"cells": table.made, "moved_by_at_most": table.error} if table.error else {}
