"""The one data type: everything a univariate binary calibrator may know about its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array, Index
from calibrant.data.frozen import Frozen, own
from calibrant.data.table_columns import columns_of_rows, columns_of_shares, group_by_score
from calibrant.data.validation import Rows, read_binary, read_grouped, read_soft
from calibrant.errors import InputError, ParameterError
from calibrant.losses import sigmoid


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable(Frozen):
    """Distinct ascending scores with the weight of negatives and of positives at each.

    It is a monoid: the table of two data sets together is ``a + b``, so chunks, threads and
    database partitions all end in the same value. Sums are exact for integer weights and within
    1e-12 (relative) otherwise.

    Parameters
    ----------
    scores : array of shape (D,)
        Distinct finite scores x₁ < … < x_D.
    negative, positive : arrays of shape (D,)
        Σw of the negatives and of the positives at each score; at least one of them is positive.
    negative_sq, positive_sq : arrays of shape (D,)
        Σw², from which intervals take the effective sample size.
    error : float
        The furthest that any score was moved by `pool` or into a cell; 0 for an exact table.
    made : str
        How scores were put together, in words; empty for an exact table.
    whole : two floats, optional
        Of a part of a table, such as the rest of a fold: the least and the largest score of the
        whole, which says what the scores are. See `part_of`.

    Notes
    -----
    Built in O(N log N) by `from_arrays`; added in O(D log D).

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0.2, 0.7, 0.2, 0.9], [0, 1, 1, 1])
    >>> table
    ScoreTable(3 scores from 0.2 to 0.9, weight 4: 3 positive, 1 negative)
    >>> table.positive.tolist()
    [1.0, 1.0, 1.0]
    >>> half = ScoreTable.from_arrays([0.2, 0.7], [0, 1])
    >>> half + ScoreTable.from_arrays([0.2, 0.9], [1, 1]) == table
    True
    """

    scores: Array
    negative: Array
    positive: Array
    negative_sq: Array
    positive_sq: Array
    error: float = 0.0
    made: str = ""
    whole: tuple[float, float] | None = None

    # --- building -------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        scores: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        pos_label: Any = None,
        classes: Any = None,
    ) -> ScoreTable:
        """The table of rows: any two labels, weights ≥ 0 (zero: the row is absent)."""
        rows = read_binary(scores, y, sample_weight, pos_label=pos_label, classes=classes)
        return cls.from_rows(rows)

    @classmethod
    def from_rows(cls, rows: Rows) -> ScoreTable:
        """The table of rows that have already come through the door."""
        return cls(*columns_of_rows(rows))

    @classmethod
    def from_counts(
        cls,
        scores: ArrayLike,
        negative: ArrayLike,
        positive: ArrayLike,
        negative_sq: ArrayLike | None = None,
        positive_sq: ArrayLike | None = None,
    ) -> ScoreTable:
        """The table of already grouped data, in any order; equal scores are added together.

        Without ``negative_sq`` and ``positive_sq`` the counts are taken for numbers of rows of
        weight one, whose Σw² equals Σw.

        >>> ScoreTable.from_counts([0.5, 0.1], [3, 9], [2, 1])
        ScoreTable(2 scores from 0.1 to 0.5, weight 15: 3 positive, 12 negative)
        """
        grouped = read_grouped(scores, negative, positive, negative_sq, positive_sq)
        return cls(*group_by_score(*grouped))

    @classmethod
    def from_soft_labels(cls, scores: Any, share: Any, sample_weight: Any = None) -> ScoreTable:
        """The table of rows with a probability of the positive class, ``share``, as their label.

        A row of share q counts q as a positive and 1 − q as a negative, and stays one row: its Σw²
        is divided alike. Fit it with ``fit_table``, measure it with `evaluate`. The fit of a
        calibrator makes this table of labels that are fractions.

        >>> ScoreTable.from_soft_labels([0.2, 0.7, 0.7], [0.1, 0.8, 1.0])
        ScoreTable(2 scores from 0.2 to 0.7, weight 3: 1.9 positive, 1.1 negative)
        """
        return cls(*columns_of_shares(*read_soft(scores, share, sample_weight)))

    @classmethod
    def empty(cls) -> ScoreTable:
        """The table of no data: the neutral element of ``+``."""
        none = own(np.empty(0))
        return cls(none, none, none, none, none)

    @classmethod
    def from_chunks(cls, chunks: Iterable[tuple[Any, ...]], **options: Any) -> ScoreTable:
        """The table of (scores, y) or (scores, y, weight) chunks, never held in memory together.

        Equal to `from_arrays` of all chunks at once. Chunks are added pairwise like a binary
        counter, so that each score is merged O(log #chunks) times. With labels other than 0/1,
        −1/1 or booleans pass ``classes=``, since a chunk may hold only one of them.

        >>> ScoreTable.from_chunks([([0.1, 0.9], [0, 1]), ([0.1], [1])])
        ScoreTable(2 scores from 0.1 to 0.9, weight 3: 2 positive, 1 negative)
        """
        stack: list[tuple[int, ScoreTable]] = []
        for chunk in chunks:
            level, table = 0, cls.from_arrays(*chunk, **options)
            while stack and stack[-1][0] == level:
                level, table = level + 1, stack.pop()[1] + table
            stack.append((level, table))
        total = cls.empty()
        for _, table in reversed(stack):
            total = table + total
        return total

    @classmethod
    def from_cells(
        cls,
        low: Array,
        high: Array,
        moment: Array,
        columns: tuple[Array, Array, Array, Array],
        made: str,
    ) -> ScoreTable:
        """The table of cells that do not overlap, each at the weighted mean of its scores.

        ``low`` and ``high`` are the smallest and the largest score of each cell, ``moment`` is
        Σw·score, and ``columns`` are Σw and Σw² of negatives and positives. Exact if no cell holds
        two different scores.

        >>> one = np.ones(2)
        >>> cells = np.array([0.1, 0.5]), np.array([0.3, 0.5]), np.array([0.4, 1.0])
        >>> table = ScoreTable.from_cells(*cells, (one, one, one, one), "2 cells")
        >>> table.scores.tolist(), round(table.error, 3)
        ([0.2, 0.5], 0.1)
        """
        weight = columns[0] + columns[1]
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.where(low == high, low, moment / weight)
        mean = np.clip(np.where(np.isfinite(mean), mean, low / 2 + high / 2), low, high)
        table = cls(*group_by_score(mean, columns))
        error = float(np.max(np.maximum(mean - low, high - mean), initial=0.0))
        return replace(table, error=error, made=made) if error else table

    @classmethod
    def gather(cls, tables: Iterable[ScoreTable]) -> ScoreTable:
        """The table of all rows of several, pooled ones too: the last step, like `pool`.

        >>> a = ScoreTable.from_counts([1, 2], [2, 0], [0, 1])
        >>> ScoreTable.gather([a, a]) == a + a
        True
        """
        parts = [table for table in tables if table]
        if not parts:
            return cls.empty()
        columns = tuple(map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))
        if all(part.negative is part.negative_sq for part in parts):  # unit weights: Σw² is Σw
            columns = (columns[0], columns[1], columns[0], columns[1])
        scores = np.concatenate([part.scores for part in parts])
        table = cls(*group_by_score(scores, columns))
        worst = max(parts, key=lambda part: part.error)
        low, high = zip(*(part.ends for part in parts), strict=True)
        return replace(table, error=worst.error, made=worst.made).part_of(min(low), max(high))

    def __add__(self, other: ScoreTable) -> ScoreTable:
        if not isinstance(other, ScoreTable):
            return NotImplemented
        if self.error or other.error:
            raise InputError(
                "tables to be added must be exact, but a pooled one came (its scores were moved by "
                f"up to {max(self.error, other.error):.3g}). Add first, pool last."
            )
        return ScoreTable.gather((self, other))

    # --- reading --------------------------------------------------------------------------------

    def _columns(self) -> tuple[Array, Array, Array, Array]:
        return self.negative, self.positive, self.negative_sq, self.positive_sq

    def __len__(self) -> int:
        """The number D of distinct scores."""
        return len(self.scores)

    def __bool__(self) -> bool:
        return len(self.scores) > 0

    @property
    def weight(self) -> Array:
        """n = n₀ + n₁ at each score."""
        return self.negative + self.positive

    @property
    def rate(self) -> Array:
        """n₁ / n at each score."""
        return self.positive / self.weight

    @property
    def total_negative(self) -> float:
        return float(self.negative.sum())

    @property
    def total_positive(self) -> float:
        return float(self.positive.sum())

    @property
    def total(self) -> float:
        return self.total_negative + self.total_positive

    @property
    def effective_size(self) -> float:
        """(Σw)² / Σw² (Kish): how many rows of equal weight carry as much information."""
        squares = float(self.negative_sq.sum() + self.positive_sq.sum())
        return self.total**2 / squares if squares else 0.0

    @property
    def rarest(self) -> float:
        """How many rows of equal weight the rarer class is worth: (Σw)² / Σw² over its rows.

        >>> ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 1, 0]).rarest
        1.0
        """
        columns = ((self.negative, self.negative_sq), (self.positive, self.positive_sq))
        return min(float(w.sum()) ** 2 / (float(q.sum()) or 1.0) for w, q in columns)

    @property
    def is_whole(self) -> bool:
        """Whether the weight of each class at each score is a whole number, so that it can be
        read as a number of rows (up to 2⁵³, where floats no longer tell)."""
        columns = (self.negative, self.positive)
        return self.total < 2.0**53 and all(bool((c == np.floor(c)).all()) for c in columns)

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether all scores lie in [0, 1], and those of the whole that this is a part of."""
        return not len(self) or (self.ends[0] >= 0.0 and self.ends[1] <= 1.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score; of a part those of the whole."""
        return self.whole or (float(self.scores[0]), float(self.scores[-1]))

    def cuts(self, after: Index) -> Array:
        """A cut between scores i and i+1 for each i in ``after``: x_i < cut ≤ x_{i+1}.

        Halfway, except that between neighbouring floats the cut is the upper one.

        >>> ScoreTable.from_counts([0, 1, 4], [1, 1, 1], [1, 1, 1]).cuts(np.array([0, 1])).tolist()
        [0.5, 2.5]
        """
        low, high = self.scores[after], self.scores[after + 1]
        half = low / 2 + high / 2  # the sum could overflow
        return np.where(half > low, half, high)

    # --- deriving -------------------------------------------------------------------------------

    def part_of(self, low: float, high: float) -> ScoreTable:
        """The table as a part of a whole whose scores go from ``low`` to ``high``.

        A fold or a segment must read scores as the whole does. If a single score lies outside
        [0, 1], all are margins, also in a part without that score.

        >>> part = ScoreTable.from_counts([0.1, 0.9], [3, 1], [1, 3])
        >>> part.looks_like_probabilities, part.part_of(0.1, 1.7).looks_like_probabilities
        (True, False)
        """
        inside = low >= 0.0 and high <= 1.0
        return (
            self
            if not self or inside or self.ends == (low, high)
            else replace(self, whole=(low, high))
        )

    def pool(self, max_cells: int) -> ScoreTable:
        """At most ``max_cells`` cells, each at the weighted mean of its scores.

        Half of the cells hold equal weight, half have equal width, so that neither crowded nor
        sparse regions are coarse. The result carries the largest distance that a score was moved
        as its ``error`` and cannot be added to: add first, pool last.

        >>> t = ScoreTable.from_arrays(np.linspace(0, 1, 1001), np.arange(1001) % 2)
        >>> small = t.pool(100)
        >>> len(small) <= 100, small.total == t.total, small.error < 0.02
        (True, True, True)
        """
        whole = isinstance(max_cells, (int, np.integer)) and not isinstance(max_cells, bool)
        if not whole or max_cells < 2:
            raise ParameterError(
                f"max_cells must be a whole number of at least 2, but {max_cells!r} came."
            )
        if len(self) <= max_cells:
            return self
        edges = max_cells // 2
        inner = np.arange(1, edges) / edges
        mass = np.cumsum(self.weight)
        by_mass = np.searchsorted(mass, mass[-1] * inner)
        low, high = self.scores[0], self.scores[-1]
        by_width = np.searchsorted(self.scores, low * (1 - inner) + high * inner)
        starts = np.unique(np.concatenate(([0], by_mass, by_width)))
        del mass
        return self._merged(starts[starts < len(self)])

    def through_sigmoid(self) -> ScoreTable:
        """The table of σ(score): margins as probabilities; far scores may become equal."""
        return self.through(sigmoid)

    def through(self, function: Callable[[Array], Array]) -> ScoreTable:
        """The table of a function of the scores, as of a map: cells that become equal are joined.

        >>> table = ScoreTable.from_counts([-0.5, 0.5, 0.8], [3, 2, 1], [1, 2, 3])
        >>> table.through(np.abs).positive.tolist()
        [3.0, 3.0]
        """
        return ScoreTable.from_counts(function(self.scores), *self._columns())

    def coarse_to_fine(
        self, fit: Callable[[ScoreTable, Array | None], Array], cells: int = 500
    ) -> Array:
        """Parameters found by ``fit(table, start)``: on a pooled table first where that is far
        smaller, and from there on the whole one."""
        start = fit(self.pool(cells), None) if len(self) > 10 * cells else None
        return fit(self, start)

    def _merged(self, starts: Index) -> ScoreTable:
        n0, n1, q0, q1 = (np.add.reduceat(column, starts) for column in self._columns())
        first, last = self.scores[starts], self.scores[np.append(starts[1:], len(self)) - 1]
        size = float(np.abs(self.scores[[0, -1]]).max()) or 1.0  # a sum of scores could overflow
        moment = self.scores / size
        moment *= self.weight
        mean = np.clip(np.add.reduceat(moment, starts) / (n0 + n1) * size, first, last)
        error = float(np.max(np.maximum(mean - first, last - mean)))
        return replace(
            ScoreTable(own(mean), own(n0), own(n1), own(q0), own(q1)),
            error=max(error, self.error, np.finfo(float).tiny),
            made=f"{len(mean):,} cells of {self.made or f'{len(self):,} scores'}",
        ).part_of(*self.ends)

    def __repr__(self) -> str:
        if not len(self):
            return "ScoreTable(empty)"
        pooled = f", pooled with error {self.error:.3g}" if self.error else ""
        plural = "s" if len(self) != 1 else ""
        return (
            f"ScoreTable({len(self)} score{plural} from {self.scores[0]:g} to {self.scores[-1]:g}, "
            f"weight {self.total:g}: {self.total_positive:g} positive, "
            f"{self.total_negative:g} negative{pooled})"
        )
