"""How far rows are from the calibration rows: the distance itself, and a space to search in.

The distance is computed from the values as they came, only brought to a common exponent. So two
rows that differ from a third by the same amounts come out equally far. The embedding is used for
the search only. It may be off by rounding, so what it finds is measured again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.attributes import CodedRows
from calibrant.data.columns import to_matrix
from calibrant.errors import InputError

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
class Space:
    """Calibration rows with a metric.

    Parameters
    ----------
    cells : CodedRows
        The calibration rows.
    numeric_weight, nominal_weight : arrays
        The weight of each column.
    power : 1 or 2
        Distances are Σ w·diff^power: Manhattan, or squared Euclidean.
    """

    cells: CodedRows
    numeric_weight: Array
    nominal_weight: Array
    power: int

    def __len__(self) -> int:
        return len(self.cells)

    # --- units: each numeric column is divided by a power of two; its range is 0 or in [½, 1) ----

    @cached_property
    def _units(self) -> tuple[NDArray[np.intc], Array, Array]:
        """For each column: its exponent, and in this unit its lowest value and 1/range (or 0)."""
        known = ~self.cells.absent
        low = np.where(known, self.cells.numeric, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, self.cells.numeric, -np.inf).max(axis=0, initial=-np.inf)
        flat = ~(high > low)
        low = np.where(known.any(axis=0), low, 0.0)
        half = np.where(flat, 0.0, high / 2 - low / 2)
        tiny = (half == 0.0) & ~flat  # the range is the smallest float, whose half is 0
        exponent = np.where(tiny, -1073, np.frexp(half)[1] + 1).astype(np.intc)
        exponent[flat] = np.frexp(low[flat])[1]
        low, high = np.ldexp(low, -exponent), np.ldexp(np.where(flat, low, high), -exponent)
        inverse = np.divide(1.0, high - low, out=np.zeros(len(low)), where=~flat)
        return exponent, low, inverse

    def points(self, rows: CodedRows) -> CodedRows:
        """Query rows in these units."""
        with np.errstate(over="ignore"):
            numeric = np.ldexp(rows.numeric, -self._units[0])
        numeric = np.clip(numeric, -FARTHEST, FARTHEST)
        codes = np.where(rows.codes < 0, np.int32(UNSEEN), rows.codes)
        return CodedRows(numeric, rows.absent, codes)

    @cached_property
    def _own(self) -> CodedRows:
        """The calibration rows in these units, stored column by column."""
        numeric = np.ldexp(self.cells.numeric, -self._units[0])
        fortran = (np.asfortranarray(a) for a in (numeric, self.cells.absent, self.cells.codes))
        return CodedRows(*fortran)

    def _scaled(self, points: CodedRows) -> Array:
        """Min–max scaled values."""
        _, low, inverse = self._units
        scaled: Array = (points.numeric - low) * inverse
        return scaled

    # --- the distance ---------------------------------------------------------------------------

    def all_distances(self, points: CodedRows) -> Array:
        """From each query to every calibration row."""
        shape = len(points), len(self)
        return self._distances(points, shape, lambda column: column[None, :])

    def distances(self, points: CodedRows, index: Index) -> Array:
        """From each query to its own candidates, index of shape (queries, candidates)."""
        return self._distances(points, index.shape, lambda column: column[index])

    def _distances(self, points: CodedRows, shape: tuple[int, ...], pick: Pick) -> Array:
        own, total = self._own, np.zeros(shape)
        for a in np.flatnonzero(self.numeric_weight):
            diff = np.abs(points.numeric[:, a, None] - pick(own.numeric[:, a]))
            diff *= self._units[2][a]
            if own.absent[:, a].any() or points.absent[:, a].any():
                diff = self._with_gaps(diff, points, int(a), pick)
            term = diff if self.power == 1 else np.square(diff, out=diff)
            term *= self.numeric_weight[a]
            total += term
        for b in np.flatnonzero(self.nominal_weight):
            total += (points.codes[:, b, None] != pick(own.codes[:, b])) * self.nominal_weight[b]
        return total

    def _with_gaps(self, diff: Array, points: CodedRows, a: int, pick: Pick) -> Array:
        """Differences where values are missing.

        If one is, it is the largest difference that the other can have; if both are, it is 1.
        """
        here, there = points.absent[:, a, None], pick(self._own.absent[:, a])
        diff = np.where(there, self._far(points)[:, a, None], diff)
        diff = np.where(here, pick(self._far_own[:, a]), diff)
        diff[here & there] = 1.0
        return diff

    def _far(self, points: CodedRows) -> Array:
        scaled = self._scaled(points)
        far: Array = np.maximum(scaled, 1.0 - scaled)
        return far

    @cached_property
    def _far_own(self) -> Array:
        return np.asfortranarray(self._far(self._own))

    # --- the embedding --------------------------------------------------------------------------

    @cached_property
    def gaps(self) -> Flags:
        """Which numeric columns of the calibration rows have missing values."""
        gaps: Flags = self.cells.absent.any(axis=0) & (self.numeric_weight > 0)
        return gaps

    @cached_property
    def _levels(self) -> list[NDArray[np.int32]]:
        """The codes that occur in each nominal column."""
        return [np.unique(codes) for codes in self.cells.codes.T]

    @cached_property
    def wide(self) -> Flags:
        """Which nominal columns have too many categories for the embedding."""
        levels = np.array([len(v) for v in self._levels], dtype=np.intp)
        levels[self.nominal_weight == 0] = 0
        attributes = len(self.numeric_weight) + len(levels)
        too_wide = levels.sum() > max(WIDTH, WIDTH_TIMES * attributes)
        wide: Flags = (levels > LEVELS) & too_wide
        return wide

    def embeds(self, gaps: Flags) -> bool:
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
        parts = [self._flat(own), *self._one_hot(own.codes)]
        if gaps.any():
            lost = -np.sqrt(w / 2) * own.absent[:, gaps]
            penalty = -self._penalty(own, gaps) / np.sqrt(2 * w)
            length = np.square(lost).sum(axis=1) + np.square(penalty).sum(axis=1)
            parts += [lost, penalty, np.sqrt(length.max() - length)]
        return np.column_stack(parts)

    def embed_queries(self, points: CodedRows, gaps: Flags) -> Array:
        """Query rows as points of the same space."""
        w = self.numeric_weight[gaps]
        parts = [self._flat(points), *self._one_hot(points.codes)]
        if gaps.any():
            penalty = self._penalty(points, gaps) / np.sqrt(2 * w)
            parts += [penalty, np.sqrt(w / 2) * points.absent[:, gaps], np.zeros(len(points))]
        return np.column_stack(parts)

    def _flat(self, points: CodedRows) -> Array:
        used = self.numeric_weight > 0
        z = (self._scaled(points)[:, used] - 0.5) * self.numeric_weight[used] ** (1 / self.power)
        z[points.absent[:, used]] = 0.0
        return z

    def _one_hot(self, codes: NDArray[np.int32]) -> list[Array]:
        """Columns in which different categories are w apart.

        A query that matches none of them is equally far from all.
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

    def _penalty(self, points: CodedRows, gaps: Flags) -> Array:
        """w·max(v, 1−v)² − z² where present; w/2 where absent, so that two absent are w apart."""
        w = self.numeric_weight[gaps]
        z = np.abs(self._scaled(points)[:, gaps] - 0.5)
        return np.where(points.absent[:, gaps], w / 2, w * (0.25 + z))


# --- How much an attribute says about the class: mutual information, and weights made of it -------


#: numeric attributes are cut into at most this many bins of equal weight
BINS = 10


def given_weights(weights: Any, features: int, scores: int) -> Array:
    """One weight per feature (scores get 1), or per feature and score column, checked."""
    array = to_matrix(weights, "attribute_weights")
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InputError(
            "attribute_weights must be a list of numbers, one per feature, but "
            f"{array.dtype} of shape {array.shape} came."
        )
    w = array.astype(np.float64)
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("attribute_weights must be finite and at least 0, but others came.")
    if len(w) == features:
        w = np.append(w, np.ones(scores))
    if len(w) != features + scores:
        more = f" or {features + scores} (with the scores)" if scores else ""
        raise InputError(
            f"attribute_weights must hold {features} weights, one per feature,{more} but "
            f"{len(w)} came."
        )
    if not w.any():
        raise InputError("attribute_weights must not all be 0: all rows would be equally near.")
    return w


def relevance(rows: CodedRows, nominal: Flags, y: Index, weight: Array) -> Array:
    """The mutual information of each column with the class: features in their order, then scores.

    If no column says anything, all are 1.
    """
    kinds = np.append(nominal, np.zeros(rows.numeric.shape[1] - int((~nominal).sum()), dtype=bool))
    array = np.empty(len(kinds))
    array[kinds] = [mutual_information(c.astype(np.intp) + 1, y, weight) for c in rows.codes.T]
    columns = zip(rows.numeric.T, rows.absent.T, strict=True)
    array[~kinds] = [mutual_information(_bins(*both, weight), y, weight) for both in columns]
    return array if array.any() else np.ones(len(array))


def mutual_information(levels: Index, y: Index, weight: Array) -> float:
    """I = H(x) + H(y) − H(x, y) in nats, each with Miller and Madow's correction; at least 0.

    The correction adds (number of values that occur − 1) / 2n to each entropy, where n is the total
    weight. Without it, a column that says nothing would seem to say more the more values it has.
    """
    k = int(y.max()) + 1
    joint = np.bincount(levels * k + y, weights=weight, minlength=(int(levels.max()) + 1) * k)
    joint = joint.reshape(-1, k) / weight.sum()
    parts = (joint.sum(axis=1), joint.sum(axis=0), joint.ravel())
    entropies = [-float(p[p > 0] @ np.log(p[p > 0])) for p in parts]
    occurring = [int((p > 0).sum()) - 1 for p in parts]
    plug_in = entropies[0] + entropies[1] - entropies[2]
    correction = (occurring[0] + occurring[1] - occurring[2]) / (2 * float(weight.sum()))
    return max(0.0, plug_in + correction)


def _bins(values: Array, absent: Flags, weight: Array) -> Index:
    """Bins of equal weight that never split equal values, counted from 1; 0 is absent."""
    result = np.zeros(len(values), dtype=np.intp)
    if absent.all():
        return result
    present = ~absent
    distinct, inverse = np.unique(values[present], return_inverse=True)
    mass = np.cumsum(np.bincount(inverse, weights=weight[present]))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, BINS) / BINS * (1 - 1e-12))
    place = np.searchsorted(np.unique(ends), np.arange(len(distinct)))
    result[present] = place[inverse] + 1
    return result
