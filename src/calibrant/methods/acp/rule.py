"""Frequencies inside intervals of scores: what a fitted ACP is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import to_matrix
from calibrant.data.documents import brief, check_file
from calibrant.data.door import HEAVIEST, check_lengths
from calibrant.data.frozen import Frozen
from calibrant.errors import CalibrationWarning, InputError, caller_level
from calibrant.rules.base import RowInputs, Rule

#: gives the weight of each class in ranges of cells, by the first and the stop of each range
Sums = Callable[[Index, Index], tuple[Array, Array]]

#: the weight of the nearest scores that stand in for an empty interval
NEAREST = 10.0
#: distances, and sums of weights, within this relative difference are equal
TIE = 1e-12
ENOUGH = NEAREST * (1.0 - TIE)


@dataclass(frozen=True, eq=False, repr=False)
class RowBins(Frozen):
    """The bin of each row.

    Parameters
    ----------
    probability : array of shape (n,)
        The frequency of the positive class in the bin (smoothed, if asked for).
    weight : array of shape (n,)
        The calibration weight that it rests on.
    empty : bool array of shape (n,)
        Whether no calibration score lies in the row's interval, so that the nearest ones were used.

    Examples
    --------
    >>> RowBins(np.array([0.5, 0.2]), np.array([8.0, 10.0]), np.array([False, True]))
    RowBins(2 rows, 1 of them with an empty interval, weights from 8 to 10, median 9)
    """

    probability: Array
    weight: Array
    empty: Flags

    def __repr__(self) -> str:
        n, empty = len(self.weight), int(self.empty.sum())
        w = self.weight
        return (
            f"RowBins({n} row{'' if n == 1 else 's'}, {empty or 'none'} of them with an empty "
            f"interval, weights from {w.min():g} to {w.max():g}, median {np.median(w):g})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IntervalBins(Rule):
    """The frequency of the positive class among the calibration scores in each row's interval.

    Parameters
    ----------
    scores : array of shape (D,)
        Distinct calibration scores, ascending.
    negative, positive : arrays of shape (D,)
        The weight of each class at each score.
    pseudo : float
        What is added to the weight of each class in a bin.

    Notes
    -----
    A row takes two binary searches. Sums of whole weights are differences of cumulative sums: O(1),
    and exact. With fractions such differences would lose digits. So partial sums are added up from
    a tree instead, in O(log D) with as many roundings. An empty interval that needs k scores costs
    O(log k) times as much. Memory is O(D).
    """

    kind: ClassVar[str] = "bins"
    needs: ClassVar[frozenset[str]] = frozenset({"lower", "upper"})

    scores: Array
    negative: Array
    positive: Array
    pseudo: float = 0.0

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probability of the positive class of each row, shape (n,)."""
        bins = self.bins(scores, rows)
        if bins.empty.any():
            empty, n = int(bins.empty.sum()), len(bins.empty)
            warnings.warn(
                f"{empty} of {n} intervals {'holds' if empty == 1 else 'hold'} no calibration "
                f"score (first at row {int(np.argmax(bins.empty))}): the nearest scores, to a "
                f"weight of {NEAREST:g}, were used there; `bins` tells where. Use wider intervals "
                "or more calibration rows.",
                CalibrationWarning,
                stacklevel=caller_level(),
            )
        return bins.probability

    def bins(self, scores: Array, rows: RowInputs) -> RowBins:
        """The bin of each row, given its score and the ends of its interval."""
        lower, upper = read_interval(rows, len(scores))
        first = np.searchsorted(self.scores, lower, side="left")
        stop = np.searchsorted(self.scores, upper, side="right")
        empty = first == stop
        if empty.any():
            first[empty], stop[empty] = self._nearest_range(scores[empty])
        negative, positive = self._range_sums(first, stop)
        weight = negative + positive
        p = (positive + self.pseudo) / (weight + 2.0 * self.pseudo)
        return RowBins(p, weight, empty)

    def _state(self) -> dict[str, Any]:
        return {"pseudo": float(self.pseudo)}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"scores": self.scores, "negative": self.negative, "positive": self.positive}

    @classmethod
    def _of_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        pseudo: Any = state.get("pseudo")
        number = isinstance(pseudo, Real) and not isinstance(pseudo, bool)
        check_file(
            number and 0.0 <= pseudo <= HEAVIEST,
            f"pseudo must be a number from 0 to {HEAVIEST:g}, but {brief(pseudo)} came.",
        )
        check_file(
            set(arrays) == {"scores", "negative", "positive"},
            f"its arrays must be scores, negative and positive, but {brief(sorted(arrays))} came.",
        )
        columns = [arrays[name] for name in ("scores", "negative", "positive")]
        scores, negative, positive = columns
        check_file(
            all(c.dtype == np.float64 and c.ndim == 1 and len(c) == len(scores) for c in columns),
            "scores, negative and positive must be columns of float64 numbers of one length.",
        )
        check_file(len(scores), "there must be at least one score.")
        check_file(all(np.isfinite(c).all() for c in columns), "all numbers must be finite.")
        check_file((scores[1:] > scores[:-1]).all(), "scores must be ascending.")
        inside = [((w >= 0) & (w <= HEAVIEST)).all() for w in (negative, positive)]
        check_file(all(inside), f"weights must be at least 0 and at most {HEAVIEST:g}.")
        check_file(((negative > 0) | (positive > 0)).all(), "each score must have a weight.")
        return cls(scores, negative, positive, float(pseudo))

    def __repr__(self) -> str:
        n0, n1 = float(self.negative.sum()), float(self.positive.sum())
        return (
            f"Bins({len(self.scores)} score{'' if len(self.scores) == 1 else 's'} from "
            f"{self.scores[0]:g} to {self.scores[-1]:g}, weight {n0 + n1:g}: {n1:g} positive, "
            f"{n0:g} negative{f', pseudo-count {self.pseudo:g}' if self.pseudo else ''})"
        )

    # --- sums over ranges -----------------------------------------------------------------------

    @cached_property
    def _range_sums(self) -> Sums:
        """A function that sums the weight of each class over ranges of cells.

        It subtracts cumulative sums if these are exact. Otherwise it adds the cells of each range.
        """
        cells = np.column_stack((self.negative, self.positive))
        if bool((cells == np.floor(cells)).all()) and cells.sum() < 2.0**53:
            upto = np.zeros((len(cells) + 1, 2))
            np.cumsum(cells, axis=0, out=upto[1:])

            def differences(first: Index, stop: Index) -> tuple[Array, Array]:
                total = np.take(upto, stop, axis=0)
                total -= np.take(upto, first, axis=0)
                return total[:, 0], total[:, 1]

            return differences
        levels = [cells]  # sums of blocks of 1, 2, 4, … cells
        while len(levels[-1]) > 1:
            last = levels[-1]
            pairs = last[0 : len(last) - 1 : 2] + last[1::2]
            levels.append(np.vstack((pairs, last[-1:])) if len(last) % 2 else pairs)

        def sums_of_blocks(first: Index, stop: Index) -> tuple[Array, Array]:
            total = np.zeros((len(first), 2))
            first, stop = first.copy(), stop.copy()
            for level in levels:
                rows = np.flatnonzero((first & 1) & (first < stop))
                total[rows] += level[first[rows]]
                first[rows] += 1
                rows = np.flatnonzero((stop & 1) & (first < stop))
                stop[rows] -= 1
                total[rows] += level[stop[rows]]
                first >>= 1
                stop >>= 1
            return total[:, 0], total[:, 1]

        return sums_of_blocks

    # --- the nearest scores ---------------------------------------------------------------------

    def _nearest_range(self, s: Array) -> tuple[Index, Index]:
        """The range of the nearest cells whose weight is at least 10; cells as near as the last are
        included.

        The furthest cell may be on the left or on the right of the score. Each side gives a
        distance, and the smaller one is taken. If all cells together weigh less than 10, all are
        taken.
        """
        x = self.scores
        middle = np.searchsorted(x, s, side="left")
        far = np.full(len(s), np.inf)
        with np.errstate(over="ignore"):  # an infinite end is beyond all cells
            for left, most in ((True, middle), (False, len(x) - middle)):
                some = np.flatnonzero(most)
                distance = self._nearest_distance(s[some], middle[some], most[some], left)
                far[some] = np.minimum(far[some], distance)
            far *= 1.0 + TIE
            first = np.searchsorted(x, s - far, side="left")
            return first, np.searchsorted(x, s + far, side="right")

    def _nearest_distance(self, s: Array, middle: Index, most: Index, left: bool) -> Array:
        """The distance to the nearest cell of one side within which cells weigh enough.

        Found by doubling and bisection; infinite if there is none.
        """
        x = self.scores

        def distance(count: Index) -> Array:
            return np.asarray(s - x[middle - count] if left else x[middle + count - 1] - s)

        def enough(count: Index) -> Flags:
            d = distance(count)
            if left:
                first, stop = middle - count, np.searchsorted(x, s + d, side="right")
            else:
                first, stop = np.searchsorted(x, s - d, side="left"), middle + count
            negative, positive = self._range_sums(first, stop)
            return np.asarray(negative + positive >= ENOUGH)

        low, high = np.ones_like(most), np.ones_like(most)
        while not (over := (high == most) | enough(high)).all():
            low, high = np.where(over, low, high + 1), np.where(over, high, 2 * high)
            high = np.minimum(high, most)
        while (low < high).any():
            count = (low + high) // 2
            near = enough(count)
            high = np.where(near, count, high)
            low = np.where(near, low, np.minimum(count + 1, high))
        return np.where(enough(low), distance(low), np.inf)


def read_interval(rows: RowInputs, n: int) -> tuple[Array, Array]:
    """The ends of n intervals; they may be infinite."""
    if rows.lower is None or rows.upper is None:
        missing = " and ".join(k for k in ("lower", "upper") if getattr(rows, k) is None)
        raise InputError(
            f"each row needs the ends of an interval around its score, but {missing} did not come. "
            "Pass lower= and upper=, for example from "
            "`lower, upper = prediction_interval(model, X, train=(X_train,))`, or let "
            "CalibratedClassifier(model, ACP()) find them."
        )
    lower, upper = _read_end(rows.lower, "lower", n), _read_end(rows.upper, "upper", n)
    crossed = lower > upper
    if crossed.any():
        row = int(np.argmax(crossed))
        raise InputError(
            f"lower must be at most upper: {int(crossed.sum())} of {n} are above (first at row "
            f"{row}: {lower[row]:g} > {upper[row]:g}). Were they passed the wrong way round?"
        )
    return lower, upper


def _read_end(values: Any, name: str, n: int) -> Array:
    column = to_matrix(values, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be one number per row, but an array of shape {column.shape} and type "
            f"{column.dtype} came."
        )
    lengths = {"scores": n, name: len(column)}
    check_lengths(**lengths)
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if missing.any():
        raise InputError(
            f"{name} must not be NaN: {int(missing.sum())} of {n} are (first at row "
            f"{int(np.argmax(missing))}). Drop those rows, or give them [-inf, inf]."
        )
    return np.ascontiguousarray(column, dtype=np.float64)
