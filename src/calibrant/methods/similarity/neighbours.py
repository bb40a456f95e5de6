"""The fitted rule of similarity binning: calibration rows, the nearest of them, and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data import door
from calibrant.data.attributes import MISSING, Schema
from calibrant.data.documents import brief, check_file
from calibrant.rules.base import RowInputs, Rule
from calibrant.running import track

#: the power of a metric's differences
METRICS: dict[str, int] = {"ibk": 2, "manhattan": 1}
#: a neighbour counts by 1/(distance + this), as in IBk; None: all neighbours count alike
NEIGHBOUR_WEIGHTS: dict[str, float | None] = {"uniform": None, "distance": 0.001}
#: what each class starts with, as a multiple of 1/n
START_WEIGHT: dict[str, float] = {"none": 0.0, "ibk": 1.0}
#: the options of a rule that are words
WORDS: dict[str, Mapping[str, Any]] = {
    "metric": METRICS,
    "weights": NEIGHBOUR_WEIGHTS,
    "smoothing": START_WEIGHT,
}
#: the largest sum of attribute weights, whose mean is 1
HEAVIEST = 1e9
#: the arrays of a saved rule, and the kind of their numbers
ARRAYS = {
    "numeric": np.float64,
    "absent": np.bool_,
    "codes": np.int32,
    "counts": np.float64,
    "numeric_weight": np.float64,
    "nominal_weight": np.float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Rule):
    """The class frequencies among the k calibration rows nearest to a row.

    Parameters
    ----------
    schema : Schema
        The attributes of rows.
    numeric : array of shape (m, a)
        Distinct calibration rows: numeric attributes (0 where absent), then score columns.
    absent : bool array of shape (m, a)
    codes : int32 array of shape (m, b)
        The places of nominal attributes among their categories; −1 is missing.
    counts : array of shape (m, classes)
        The weight of each class at each distinct row.
    numeric_weight, nominal_weight : arrays of shape (a,) and (b,)
        Attribute weights; the one score column of two classes counts twice.
    k : int
    metric, weights, smoothing : keys of METRICS, NEIGHBOUR_WEIGHTS and START_WEIGHT
    """

    kind: ClassVar[str] = "neighbours"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})

    schema: Schema
    numeric: Array
    absent: Flags
    codes: NDArray[np.int32]
    counts: Array
    numeric_weight: Array
    nominal_weight: Array
    k: int
    metric: str
    weights: str
    smoothing: str

    @property
    def n_classes(self) -> int:
        return int(self.counts.shape[1])

    @property
    def score_columns(self) -> int:
        """How many of the numeric columns are scores."""
        return int(self.numeric.shape[1]) - int((~self.schema.nominal).sum())

    @cached_property
    def cells(self) -> Array:
        """The distinct calibration rows as `search_points` gives them."""
        codes = np.where(self.codes == MISSING, np.nan, self.codes)
        return np.column_stack((np.where(self.absent, np.nan, self.numeric), codes))

    @cached_property
    def search(self) -> NeighbourSearch:
        """What finds the neighbours; made when first needed, and never saved."""
        weights = self.numeric_weight, self.nominal_weight
        space = MetricSpace(self.cells, *weights, power=METRICS[self.metric])
        return NeighbourSearch(space, self.counts.sum(axis=1))

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probabilities of the classes, shape (n, classes)."""
        attributes = self.schema.read(rows.features)
        door.check_lengths(scores=len(scores), features=len(attributes))
        queries = search_points(self.schema, attributes, scores if self.score_columns else None)
        result = np.empty((len(queries), self.n_classes))
        for found in self.search.find(queries, self.k, progress=rows.progress):
            mass = np.cumsum(self.search.weight[found.index], axis=1)
            inside = found.near <= distance_of_weight(found.near, mass, self.k)[:, None]
            pull = inside * self.weight_by_distance(found.near)
            sums = [(pull * column[found.index]).sum(axis=1) for column in self.counts.T]
            total = np.column_stack(sums) + self.start
            result[found.rows] = total / total.sum(axis=1, keepdims=True)
        return result

    @property
    def start(self) -> float:
        """The weight that each class has before any neighbour is counted (smoothing)."""
        return START_WEIGHT[self.smoothing] / float(self.counts.sum())

    def weight_by_distance(self, near: Array) -> Array | float:
        """The weight of a neighbour, given its distance raised to the metric's power."""
        offset = NEIGHBOUR_WEIGHTS[self.weights]
        if offset is None:
            return 1.0
        attributes = float(self.numeric_weight.sum() + self.nominal_weight.sum())
        near = near if METRICS[self.metric] == 1 else np.sqrt(near)
        return np.asarray(1.0 / (near / np.sqrt(attributes) + offset))

    def __repr__(self) -> str:
        return (
            f"Neighbours({len(self.counts)} distinct rows of {len(self.schema)} attributes, "
            f"{self.n_classes} classes, k={self.k}, {self.metric})"
        )

    # --- saving ---------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return self.schema.to_state() | {name: getattr(self, name) for name in ("k", *WORDS)}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def _of_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        check_file(
            set(arrays) == set(ARRAYS),
            f"its arrays must be {sorted(ARRAYS)}, but {sorted(arrays)} came.",
        )
        for name, kind in ARRAYS.items():
            check_file(arrays[name].dtype == kind, f"{name} holds {arrays[name].dtype}.")
        for name, known in WORDS.items():
            word = state.get(name)
            check_file(isinstance(word, str) and word in known, f"{name} is {brief(word)}.")
        schema = Schema.from_state(state)
        _check_arrays(schema, arrays, state.get("k"))
        fields: dict[str, Any] = {**arrays, **{name: state[name] for name in WORDS}}
        return cls(schema=schema, k=state["k"], **fields)


def search_points(schema: Schema, attributes: Array, scores: Array | None) -> Array:
    """Rows in the form that the search takes: numeric attributes, then scores, then numbers of
    categories.

    NaN is a missing value. ``attributes`` are those of `Schema.matrix`. Without ``scores``, rows
    are compared by their attributes alone.
    """
    parts = [attributes[:, ~schema.nominal]]
    if scores is not None:
        parts.append(scores.reshape(len(scores), -1))
    return np.column_stack((*parts, attributes[:, schema.nominal]))


def _check_arrays(schema: Schema, arrays: Mapping[str, NDArray[Any]], k: Any) -> None:
    """Refuse arrays of a file that do not fit together, with a reason."""
    numeric, absent, codes, counts, numeric_weight, nominal_weight = (arrays[n] for n in ARRAYS)
    nominal = [a for a in schema.attributes if a.categories is not None]
    plain = len(schema) - len(nominal)
    two_d = all(a.ndim == 2 for a in (numeric, absent, codes, counts))
    shapes = two_d and (
        len(counts) >= 1
        and counts.shape[1] >= 2
        and numeric.shape == absent.shape
        and len(numeric) == len(codes) == len(counts)
        and codes.shape[1] == len(nominal)
        and numeric.shape[1] - plain in (0, 1 if counts.shape[1] == 2 else counts.shape[1])
        and numeric_weight.shape == (numeric.shape[1],)
        and nominal_weight.shape == (len(nominal),)
    )
    check_file(shapes, "the shapes of its arrays do not fit together.")
    weights = [counts, numeric_weight, nominal_weight]
    inside = [((a >= 0) & (a <= door.HEAVIEST)).all() for a in weights]
    check_file(np.isfinite(numeric).all() and all(inside), "it holds numbers out of range.")
    gaps = absent[:, plain:].any() or numeric[absent].any() or not counts.sum(axis=1).all()
    check_file(not gaps, "its rows are not complete.")
    most = np.array([len(a.categories or ()) for a in nominal], dtype=np.int64)
    known = (codes >= MISSING) & (codes < most)
    check_file(known.all(), "it holds codes of no category.")
    check_file(
        type(k) is int and 1 <= k <= counts.sum() * (1 + 1e-12),
        f"k must be a whole number from 1 to the weight of its rows, but {brief(k)} came.",
    )
    total = numeric_weight.sum() + nominal_weight.sum()
    check_file(0 < total <= HEAVIEST, "its attribute weights are out of range.")


# --- Exact nearest calibration rows: an index finds them, and they are measured again -------------
# Where that leaves a doubt, the index is asked for more.
#
# Memory: the embedded calibration rows, and blocks of at most 2^21 pairs of rows (16 MiB per array,
# a handful of arrays), whatever the number of queries.


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
class NearestRows:
    """The candidates of some queries, in order of distance; those that count come first.

    Every calibration row that is at least as near as the last needed one is a candidate.
    """

    rows: Index
    index: Index
    near: Array


def distance_of_weight(near: Array, mass: Array, need: float) -> Array:
    """The distance at which the cumulated weight of the nearest rows reaches what is needed."""
    last = np.argmax(mass >= need * (1 - TIE), axis=1)
    return np.asarray(near[np.arange(len(near)), last] * (1 + TIE))


@dataclass(frozen=True, eq=False)
class NeighbourSearch:
    """Calibration rows, searched for the nearest to a query.

    Parameters
    ----------
    space : MetricSpace
    weight : array of shape (rows,)
        How many times each calibration row counts.
    """

    space: MetricSpace
    weight: Array

    @cached_property
    def _indexes(self) -> dict[bytes, tuple[Asked, float]]:
        return {}

    def find(self, rows: Array, need: float, *, progress: bool = False) -> Iterator[NearestRows]:
        """The calibration rows nearest to each query, in blocks of queries.

        There are as many as it takes for their weights to reach ``need``, and all that tie with the
        last of them.
        """
        share = need * len(self.space) / self.weight.sum()
        first = int(np.ceil(share * 1.25)) + 4
        height = max(1, PAIRS // max(min(first, len(self.space)), 64))
        points = self.space.points(rows)
        blocks = list(_query_blocks(points, self.space, height))
        for block, gaps in track(blocks, len(blocks), "searching neighbours", show=progress):
            yield from self._search_block(points, block, gaps, first, need)

    def _search_block(
        self, points: Array, block: Index, gaps: Flags, first: int, need: float
    ) -> Iterator[NearestRows]:
        """The neighbours of one block of queries. Queries without enough candidates ask for twice
        as many."""
        waiting = [(block, first)]
        while waiting:
            rows, count = waiting.pop()
            if count > CANDIDATES or 2 * count > len(self.space) or not self.space.can_embed(gaps):
                yield from self._measure_all(points, rows, need)
                continue
            height = max(1, PAIRS // count)
            if len(rows) > height:
                waiting += [(rows[height:], count)]
                rows = rows[:height]
            candidates, settled = self._candidates(points, rows, gaps, count, need)
            if settled.any():
                yield NearestRows(
                    rows[settled], candidates.index[settled], candidates.near[settled]
                )
            if not settled.all():
                waiting.append((rows[~settled], 2 * count))

    def _candidates(
        self, points: Array, rows: Index, gaps: Flags, count: int, need: float
    ) -> tuple[NearestRows, Flags]:
        """The candidates that the index gives, and for which queries they suffice."""
        index, longest = self._index(gaps)
        some = points[rows]
        embedded = self.space.embed_queries(some, gaps)
        nearest = index(embedded, self.space.codes(some)[:, self.space.wide], count)
        near = self.space.distances(some, nearest)
        error = ROUNDING * (embedded.shape[1] + 8) * (self._length(embedded) + longest)
        beyond = near.max(axis=1) - error
        order = np.argsort(near, axis=1)
        near = np.take_along_axis(near, order, axis=1)
        nearest = np.take_along_axis(nearest, order, axis=1)
        mass = np.cumsum(self.weight[nearest], axis=1)
        enough = mass[:, -1] >= need * (1 - TIE)
        settled = enough & (beyond > distance_of_weight(near, mass, need))
        return NearestRows(rows, nearest, near), settled

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
            codes = np.asfortranarray(self.space.codes(self.space.cells)[:, wide])
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
        return np.asarray((np.abs(embedded) ** self.space.power).sum(axis=1))

    def _measure_all(self, points: Array, rows: Index, need: float) -> Iterator[NearestRows]:
        """The neighbours of queries by their distances from all calibration rows."""
        n = len(self.space)
        height = max(1, ALL_PAIRS // n)
        for start in range(0, len(rows), height):
            part = rows[start : start + height]
            near = self.space.all_distances(points[part])
            count = min(n, int(np.ceil(need * n / self.weight.sum() * 1.25)) + 4)
            while True:
                index = _places_of_smallest(near, count)
                some = np.take_along_axis(near, index, axis=1)
                mass = np.cumsum(self.weight[index], axis=1)
                if count == n or (mass[:, -1] >= need * (1 - TIE)).all():
                    break
                count = min(n, 2 * count)
            within = near <= distance_of_weight(some, mass, need)[:, None]
            index = _places_of_smallest(near, int(within.sum(axis=1).max()))
            yield NearestRows(part, index, np.take_along_axis(near, index, axis=1))


@dataclass(frozen=True)
class IndexSearch:
    """scikit-learn's index of embedded rows: a k-d tree of few columns, or brute force."""

    index: Any

    @classmethod
    def of(cls, cells: Array, power: int, *, tree: bool) -> IndexSearch:
        """The index; a k-d tree only if ``tree`` allows it."""
        from sklearn.neighbors import NearestNeighbors

        algorithm = "kd_tree" if tree and cells.shape[1] <= TREE_WIDTH else "brute"
        return cls(NearestNeighbors(algorithm=algorithm, p=power).fit(cells))

    def __call__(self, queries: Array, codes: Array, count: int) -> Index:
        """The nearest rows of each query, in any order."""
        return np.asarray(self.index.kneighbors(queries, count, return_distance=False))


@dataclass(frozen=True)
class AllPairs:
    """Embedded rows with further columns of categories, all of them compared."""

    cells: Array
    length: Array
    codes: Array
    weight: Array

    def __call__(self, queries: Array, codes: Array, count: int) -> Index:
        """The nearest rows of each query, in any order."""
        height = max(1, PAIRS // len(self.cells))
        found = []
        for start in range(0, len(queries), height):
            block = slice(start, start + height)
            near = queries[block] @ self.cells.T
            near *= -2.0
            near += self.length
            for asked, own, weight in zip(codes[block].T, self.codes.T, self.weight, strict=True):
                np.subtract(near, weight, out=near, where=asked[:, None] == own)
            found.append(_places_of_smallest(near, count))
        return np.concatenate(found)


Asked = IndexSearch | AllPairs


def _places_of_smallest(near: Array, count: int) -> Index:
    """The columns of the smallest values of each row, smallest first.

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
    return np.asarray(columns[order[first[:, None] + np.arange(count)]])


def _query_blocks(points: Array, space: MetricSpace, height: int) -> Iterator[tuple[Index, Flags]]:
    """Blocks of queries, and which numeric columns may be missing on either side.

    If calibration rows are complete, complete queries get blocks of their own, since a simpler
    index serves them.
    """
    used = space.numeric_weight > 0
    absent = np.isnan(space.numbers(points))
    gaps = space.gaps | (absent.any(axis=0) & used)
    gappy = (absent & used).any(axis=1)
    if space.gaps.any() or not gappy.any():
        groups = [(np.arange(len(points)), gaps)]
    else:
        groups = [(np.flatnonzero(~gappy), space.gaps), (np.flatnonzero(gappy), gaps)]
    for rows, columns in groups:
        for start in range(0, len(rows), height):
            yield rows[start : start + height], columns


# --- How far rows are from the calibration rows: the distance itself, and a space to search in ----
# The distance is computed from the values as they came, only brought to a common exponent. So two
# rows that differ from a third by the same amounts come out equally far. The embedding is used for
# the search only. It may be off by rounding, so what it finds is measured again.


#: the code of a query's category that is missing or unseen: it matches no calibration row's
UNSEEN = -2

Pick = Callable[[NDArray[Any]], NDArray[Any]]

#: queries that are more than this many ranges from zero are moved to there; all calibration rows
#: are then equally far from them
FARTHEST = 1e100
#: an embedding may have WIDTH columns, or WIDTH_TIMES as many as there are attributes if that is
#: more; if it would be wider, nominal attributes of more than LEVELS categories are left out of it
WIDTH, WIDTH_TIMES, LEVELS = 256, 4, 16


@dataclass(frozen=True, eq=False)
class MetricSpace:
    """Calibration rows with a metric.

    Parameters
    ----------
    cells : array of shape (rows, columns)
        The calibration rows: numbers, then categories by number, NaN where missing.
    numeric_weight, nominal_weight : arrays
        The weight of each column.
    power : 1 or 2
        Distances are Σ w·diff^power: Manhattan, or squared Euclidean.
    """

    cells: Array
    numeric_weight: Array
    nominal_weight: Array
    power: int

    def __len__(self) -> int:
        return len(self.cells)

    def numbers(self, points: Array) -> Array:
        """The numeric columns of rows."""
        return points[:, : len(self.numeric_weight)]

    def codes(self, points: Array) -> Array:
        """The nominal columns of rows."""
        return points[:, len(self.numeric_weight) :]

    # --- units: each numeric column is divided by a power of two; its range is 0 or in [½, 1) ----

    @cached_property
    def _units(self) -> tuple[NDArray[np.intc], Array, Array]:
        """For each column: its exponent, and in this unit its lowest value and 1/range (or 0)."""
        numbers = self.numbers(self.cells)
        known = ~np.isnan(numbers)
        low = np.where(known, numbers, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, numbers, -np.inf).max(axis=0, initial=-np.inf)
        flat = ~(high > low)
        low = np.where(known.any(axis=0), low, 0.0)
        half = np.where(flat, 0.0, high / 2 - low / 2)
        tiny = (half == 0.0) & ~flat  # the range is the smallest float, whose half is 0
        exponent = np.where(tiny, -1073, np.frexp(half)[1] + 1).astype(np.intc)
        exponent[flat] = np.frexp(low[flat])[1]
        low, high = np.ldexp(low, -exponent), np.ldexp(np.where(flat, low, high), -exponent)
        inverse = np.divide(1.0, high - low, out=np.zeros(len(low)), where=~flat)
        return exponent, low, inverse

    def points(self, rows: Array) -> Array:
        """Query rows in these units."""
        with np.errstate(over="ignore"):
            numbers = np.ldexp(self.numbers(rows), -self._units[0])
        codes = self.codes(rows)
        codes = np.where(np.isnan(codes), UNSEEN, codes)
        return np.column_stack((np.clip(numbers, -FARTHEST, FARTHEST), codes))

    @cached_property
    def _own(self) -> Array:
        """The calibration rows in these units, stored column by column."""
        numbers = np.ldexp(self.numbers(self.cells), -self._units[0])
        codes = self.codes(self.cells)
        return np.asfortranarray(
            np.column_stack((numbers, np.where(np.isnan(codes), MISSING, codes)))
        )

    def _scaled(self, points: Array) -> Array:
        """The numeric columns, scaled to [0, 1] by the range of the calibration rows."""
        _, low, inverse = self._units
        return np.asarray((self.numbers(points) - low) * inverse)

    # --- the distance ---------------------------------------------------------------------------

    def all_distances(self, points: Array) -> Array:
        """The distances from each query to every calibration row."""
        shape = len(points), len(self)
        return self._distances(points, shape, lambda column: column[None, :])

    def distances(self, points: Array, index: Index) -> Array:
        """The distances from each query to its own candidates, ``index`` (queries, candidates)."""
        return self._distances(points, index.shape, lambda column: column[index])

    def _distances(self, points: Array, shape: tuple[int, ...], pick: Pick) -> Array:
        total = np.zeros(shape)
        own, own_gaps = self.numbers(self._own), self.gaps
        for a in np.flatnonzero(self.numeric_weight):
            diff = np.abs(points[:, a, None] - pick(own[:, a]))
            diff *= self._units[2][a]
            if own_gaps[a] or np.isnan(points[:, a]).any():
                diff = self._with_gaps(diff, points, int(a), pick)
            term = diff if self.power == 1 else np.square(diff, out=diff)
            term *= self.numeric_weight[a]
            total += term
        here, there = self.codes(points), self.codes(self._own)
        for b in np.flatnonzero(self.nominal_weight):
            total += (here[:, b, None] != pick(there[:, b])) * self.nominal_weight[b]
        return total

    def _with_gaps(self, diff: Array, points: Array, a: int, pick: Pick) -> Array:
        """Differences between values of which some are missing.

        If one is missing, the difference is the largest that the other can have. If both are, it is
        1.
        """
        here, there = np.isnan(points[:, a, None]), np.isnan(pick(self._own[:, a]))
        diff = np.where(there, self._largest_difference(points)[:, a, None], diff)
        diff = np.where(here, pick(self._far_own[:, a]), diff)
        diff[here & there] = 1.0
        return diff

    def _largest_difference(self, points: Array) -> Array:
        """The largest difference from each number to any in the range of its column."""
        scaled = self._scaled(points)
        return np.asarray(np.maximum(scaled, 1.0 - scaled))

    @cached_property
    def _far_own(self) -> Array:
        return np.asfortranarray(self._largest_difference(self._own))

    # --- the embedding --------------------------------------------------------------------------

    @cached_property
    def gaps(self) -> Flags:
        """Which numeric columns of the calibration rows have missing values."""
        absent = np.isnan(self.numbers(self.cells)).any(axis=0)
        return np.asarray(absent & (self.numeric_weight > 0))

    @cached_property
    def _levels(self) -> list[Array]:
        """The codes that occur in each nominal column."""
        return [np.unique(codes) for codes in self.codes(self._own).T]

    @cached_property
    def wide(self) -> Flags:
        """Which nominal columns have too many categories for the embedding."""
        levels = np.array([len(v) for v in self._levels], dtype=np.intp)
        levels[self.nominal_weight == 0] = 0
        attributes = len(self.numeric_weight) + len(levels)
        too_wide = levels.sum() > max(WIDTH, WIDTH_TIMES * attributes)
        return np.asarray((levels > LEVELS) & too_wide)

    def can_embed(self, gaps: Flags) -> bool:
        """Whether there is an embedding, given which numeric columns may be missing."""
        return self.power == 2 or not (gaps.any() or self.wide.any())

    def embed_cells(self, gaps: Flags) -> Array:
        """The calibration rows as points of a flat space.

        Their (squared) distances from the points of `embed_queries` are those of `distances`
        without wide columns, plus a number that depends on the query alone. Numeric columns are
        z = w^(1/power)·(v − ½), nominal ones are one-hot. With gaps, z is 0 where a value is
        absent, and d² = |z_q − z_x|² + Σ (absent_x·P_q + absent_q·P_x) with the penalties P of
        `_penalty`. The terms of the sum are inner products. Two more columns for each turn them
        into distances, and one last column evens out the lengths.
        """
        own, w = self._own, self.numeric_weight[gaps]
        parts = [self._embedded_numbers(own), *self._one_hot(self.codes(own))]
        if gaps.any():
            lost = -np.sqrt(w / 2) * np.isnan(self.numbers(own)[:, gaps])
            penalty = -self._penalty(own, gaps) / np.sqrt(2 * w)
            length = np.square(lost).sum(axis=1) + np.square(penalty).sum(axis=1)
            parts += [lost, penalty, np.sqrt(length.max() - length)]
        return np.column_stack(parts)

    def embed_queries(self, points: Array, gaps: Flags) -> Array:
        """Query rows as points of the same space."""
        w = self.numeric_weight[gaps]
        parts = [self._embedded_numbers(points), *self._one_hot(self.codes(points))]
        if gaps.any():
            penalty = self._penalty(points, gaps) / np.sqrt(2 * w)
            absent = np.isnan(self.numbers(points)[:, gaps])
            parts += [penalty, np.sqrt(w / 2) * absent, np.zeros(len(points))]
        return np.column_stack(parts)

    def _embedded_numbers(self, points: Array) -> Array:
        """The used numeric columns, scaled and weighted; 0 where a value is missing."""
        used = self.numeric_weight > 0
        z = (self._scaled(points)[:, used] - 0.5) * self.numeric_weight[used] ** (1 / self.power)
        return np.where(np.isnan(z), 0.0, z)

    def _one_hot(self, codes: Array) -> list[Array]:
        """Columns in which two different categories are at distance w.

        A query without a matching category is equally far from all.
        """
        parts = []
        for b, (levels, w) in enumerate(zip(self._levels, self.nominal_weight, strict=True)):
            if self.wide[b]:
                continue
            if w > 0 and len(levels) == 2:
                side = (codes[:, b] == levels[1]) * 1.0 - (codes[:, b] == levels[0])
                parts.append(side * (w ** (1 / self.power) / 2))
            elif w > 0 and len(levels) > 2:
                parts.append((codes[:, b, None] == levels) * (w / 2) ** (1 / self.power))
        return parts

    def _penalty(self, points: Array, gaps: Flags) -> Array:
        """w·max(v, 1−v)² − z² where present; w/2 where absent, so that two absent are w apart."""
        w = self.numeric_weight[gaps]
        z = np.abs(self._scaled(points)[:, gaps] - 0.5)
        return np.where(np.isnan(z), w / 2, w * (0.25 + z))
