"""Exact nearest calibration rows: an index finds them, and they are measured again.

Where that leaves a doubt, the index is asked for more.

Memory: the embedded calibration rows, and blocks of at most 2^21 pairs of rows (16 MiB per array,
a handful of arrays), whatever the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.attributes import CodedRows
from calibrant.methods.similarity.distance import Space
from calibrant.running import track

#: distances, and sums of weights, within this relative difference are equal
TIE = 1e-12
#: the most pairs of rows at a time: of queries with candidates, and with all calibration rows
PAIRS, ALL_PAIRS = 1 << 21, 1 << 18
#: beyond this many candidates per query all rows are measured
CANDIDATES = 4096
#: columns whose smallest values are found together
GROUP = 64
#: up to this many columns a tree is faster than comparing all pairs
TREE_WIDTH = 7
#: rounding of the index's distances, per column and unit of squared length
ROUNDING = 1e-15


@dataclass(frozen=True)
class FoundRows:
    """The candidates of some queries, in order of distance: those that count come first.

    Every calibration row that is as near as the last needed one, or tied with it, is a candidate.
    """

    rows: Index
    index: Index
    near: Array


def reach(near: Array, mass: Array, need: float) -> Array:
    """The distance up to which rows count: where their cumulated weight reaches what is needed."""
    last = np.argmax(mass >= need * (1 - TIE), axis=1)
    radius: Array = near[np.arange(len(near)), last] * (1 + TIE)
    return radius


@dataclass(frozen=True, eq=False)
class Search:
    """Calibration rows that can be searched.

    Parameters
    ----------
    space : Space
    weight : array of shape (rows,)
        How many times each calibration row counts.
    """

    space: Space
    weight: Array

    @cached_property
    def _indexes(self) -> dict[bytes, tuple[Asked, float]]:
        return {}

    def find(self, rows: CodedRows, need: float, *, progress: bool = False) -> Iterator[FoundRows]:
        """The calibration rows nearest to each query, in blocks of queries.

        There are as many as it takes for their weights to reach ``need``, and all that tie with the
        last of them.
        """
        share = need * len(self.space) / self.weight.sum()
        first = int(np.ceil(share * 1.25)) + 4
        height = max(1, PAIRS // max(min(first, len(self.space)), 64))
        points = self.space.points(rows)
        blocks = list(_blocks(points, self.space, height))
        for block, gaps in track(blocks, len(blocks), "searching neighbours", show=progress):
            yield from self._settle(points, block, gaps, first, need)

    def _settle(
        self, points: CodedRows, block: Index, gaps: Flags, first: int, need: float
    ) -> Iterator[FoundRows]:
        """The same for one block: queries that are not settled ask for twice as many candidates."""
        waiting = [(block, first)]
        while waiting:
            rows, count = waiting.pop()
            if count > CANDIDATES or 2 * count > len(self.space) or not self.space.embeds(gaps):
                yield from self._measure_all(points, rows, need)
                continue
            height = max(1, PAIRS // count)
            if len(rows) > height:
                waiting += [(rows[height:], count)]
                rows = rows[:height]
            found, settled = self._candidates(points, rows, gaps, count, need)
            if settled.any():
                yield FoundRows(rows[settled], found.index[settled], found.near[settled])
            if not settled.all():
                waiting.append((rows[~settled], 2 * count))

    def _candidates(
        self, points: CodedRows, rows: Index, gaps: Flags, count: int, need: float
    ) -> tuple[FoundRows, Flags]:
        """Candidates from the index, and for which queries no other row can matter."""
        index, longest = self._index(gaps)
        some = points.take(rows)
        embedded = self.space.embed_queries(some, gaps)
        found = index(embedded, some.codes[:, self.space.wide], count)
        near = self.space.distances(some, found)
        error = ROUNDING * (embedded.shape[1] + 8) * (self._length(embedded) + longest)
        beyond = near.max(axis=1) - error
        order = np.argsort(near, axis=1)
        near = np.take_along_axis(near, order, axis=1)
        found = np.take_along_axis(found, order, axis=1)
        mass = np.cumsum(self.weight[found], axis=1)
        enough = mass[:, -1] >= need * (1 - TIE)
        settled = enough & (beyond > reach(near, mass, need))
        return FoundRows(rows, found, near), settled

    def _index(self, gaps: Flags) -> tuple[Asked, float]:
        """An index of the calibration rows, and the largest length among them."""
        key = gaps.tobytes()
        known = self._indexes.get(key)
        if known is not None:
            return known
        cells = self.space.embed_cells(gaps)
        length = self._length(cells)
        wide = self.space.wide
        index: Asked
        if wide.any() or not cells.shape[1]:
            codes = np.asfortranarray(self.space.cells.codes[:, wide])
            index = AllPairs(cells, length, codes, self.space.nominal_weight[wide])
        else:
            index = IndexSearch.of(cells, self.space.power, tree=not gaps.any())
        weight = float(self.space.nominal_weight[wide].sum())
        made = index, float(length.max()) + weight
        for older in list(self._indexes)[1:]:  # keep the first, and the one for these gaps
            self._indexes.pop(older, None)  # another thread may just have done so
        self._indexes[key] = made
        return made

    def _length(self, embedded: Array) -> Array:
        length: Array = (np.abs(embedded) ** self.space.power).sum(axis=1)
        return length

    def _measure_all(self, points: CodedRows, rows: Index, need: float) -> Iterator[FoundRows]:
        """Every calibration row is measured."""
        n = len(self.space)
        height = max(1, ALL_PAIRS // n)
        for start in range(0, len(rows), height):
            part = rows[start : start + height]
            near = self.space.all_distances(points.take(part))
            count = min(n, int(np.ceil(need * n / self.weight.sum() * 1.25)) + 4)
            while True:
                index = _smallest(near, count)
                some = np.take_along_axis(near, index, axis=1)
                mass = np.cumsum(self.weight[index], axis=1)
                if count == n or (mass[:, -1] >= need * (1 - TIE)).all():
                    break
                count = min(n, 2 * count)
            within = near <= reach(some, mass, need)[:, None]
            index = _smallest(near, int(within.sum(axis=1).max()))
            yield FoundRows(part, index, np.take_along_axis(near, index, axis=1))


@dataclass(frozen=True)
class IndexSearch:
    """scikit-learn's index of embedded rows."""

    index: Any

    @classmethod
    def of(cls, cells: Array, power: int, *, tree: bool) -> IndexSearch:
        """A k-d tree if ``tree`` allows it and columns are few, else brute force."""
        from sklearn.neighbors import NearestNeighbors

        algorithm = "kd_tree" if tree and cells.shape[1] <= TREE_WIDTH else "brute"
        return cls(NearestNeighbors(algorithm=algorithm, p=power).fit(cells))

    def __call__(self, queries: Array, codes: NDArray[np.int32], count: int) -> Index:
        """Which rows are the nearest, in any order."""
        return np.asarray(self.index.kneighbors(queries, count, return_distance=False))


@dataclass(frozen=True)
class AllPairs:
    """Embedded rows with further columns of categories, all of them compared."""

    cells: Array
    length: Array
    codes: NDArray[np.int32]
    weight: Array

    def __call__(self, queries: Array, codes: NDArray[np.int32], count: int) -> Index:
        """Which rows are the nearest."""
        height = max(1, PAIRS // len(self.cells))
        starts = range(0, len(queries), height)
        return np.concatenate(
            [self._some(queries[s : s + height], codes[s : s + height], count) for s in starts]
        )

    def _some(self, queries: Array, codes: NDArray[np.int32], count: int) -> Index:
        near = queries @ self.cells.T
        near *= -2.0
        near += self.length
        for asked, own, weight in zip(codes.T, self.codes.T, self.weight, strict=True):
            np.subtract(near, weight, out=near, where=asked[:, None] == own)
        return _smallest(near, count)


Asked = IndexSearch | AllPairs


def _smallest(near: Array, count: int) -> Index:
    """Where the smallest values of each row are, in order.

    Columns are put into groups. The count-th smallest of the groups' minima is no less than the
    count-th smallest value. So larger values can be dropped, and few are left to be sorted.
    """
    n = near.shape[1]
    groups = n // GROUP
    if groups <= count:
        return np.argsort(near, axis=1)[:, :count]
    least = near[:, : groups * GROUP].reshape(len(near), groups, GROUP).min(axis=2)
    bound = np.partition(least, count - 1, axis=1)[:, count - 1]
    rows, columns = np.nonzero(near <= bound[:, None])
    order = np.lexsort((near[rows, columns], rows))
    first = np.searchsorted(rows, np.arange(len(near)))
    smallest: Index = columns[order[first[:, None] + np.arange(count)]]
    return smallest


def _blocks(points: CodedRows, space: Space, height: int) -> Iterator[tuple[Index, Flags]]:
    """Blocks of queries, and which numeric columns may be missing on either side.

    If calibration rows are complete, complete queries get blocks of their own, since a simpler
    index serves them.
    """
    used = space.numeric_weight > 0
    gaps = space.gaps | (points.absent.any(axis=0) & used)
    gappy = (points.absent & used).any(axis=1)
    if space.gaps.any() or not gappy.any():
        groups = [(np.arange(len(points)), gaps)]
    else:
        groups = [(np.flatnonzero(~gappy), space.gaps), (np.flatnonzero(gappy), gaps)]
    for rows, columns in groups:
        for start in range(0, len(rows), height):
            yield rows[start : start + height], columns
