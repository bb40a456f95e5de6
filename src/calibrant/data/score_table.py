"""Score tables: each distinct score with the weight of both classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import (
    Rows,
    check_lengths,
    read_binary,
    read_number_column,
    read_probabilities,
    read_scores,
    read_weight,
    to_numbers,
)
from calibrant.data.frozen import Frozen, read_only
from calibrant.data.scale import PERCENT, ScoreScale, percent_ends
from calibrant.errors import InputError, ParameterError
from calibrant.losses import LARGEST, SMALLEST, sigmoid

if TYPE_CHECKING:
    import narwhals as nw


class CellColumns(NamedTuple):
    """Σw and Σw² of the negatives and of the positives in each cell of equal scores."""

    negative: Array
    positive: Array
    negative_sq: Array
    positive_sq: Array

    @property
    def filled(self) -> Flags:
        """Flags of the cells with weight above 0."""
        return np.asarray((self.negative > 0.0) | (self.positive > 0.0))

    def take(self, cells: Any) -> CellColumns:
        """Some of the cells."""
        return CellColumns(*(column[cells] for column in self))

    def minus(self, others: CellColumns) -> CellColumns:
        """These sums minus the sums of other rows, cell by cell, and never below 0."""
        return CellColumns(*(np.maximum(a - b, 0.0) for a, b in zip(self, others, strict=True)))


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
    whole : ScoreScale, optional
        Of a part of a table, such as the rest of a fold: what the scores of the whole are. See
        `part_of`.

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
    whole: ScoreScale | None = None

    # --- building -------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        classes: Any = None,
    ) -> ScoreTable:
        """The table of rows: any two labels, weights ≥ 0 (zero: the row is absent)."""
        rows = read_binary(scores, y, sample_weight, pos_label=pos_label, classes=classes)
        return cls.from_rows(rows)

    @classmethod
    def from_rows(cls, rows: Rows) -> ScoreTable:
        """The table of rows that were read and checked before. O(N log N)."""
        if rows.share is not None:
            columns = _group_by_share(rows.scores, rows.share, rows.weight)
        elif rows.weight is not None:
            there = rows if rows.weight.all() else rows.without_weightless()
            columns = _group_by_share(there.scores, there.positive, there.weight)
        else:
            columns = _group_unweighted(rows.scores, rows.positive)
        table = cls(*columns)
        return table if rows.scale is None else table.part_of(rows.scale)

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
        n0, n1 = read_number_column(negative, "negative"), read_number_column(positive, "positive")
        q0 = n0 if negative_sq is None else read_number_column(negative_sq, "negative_sq")
        q1 = n1 if positive_sq is None else read_number_column(positive_sq, "positive_sq")
        x = read_number_column(scores, "scores", signed=True) + 0.0
        for name, column in (("negative", n0), ("positive", n1), ("Σw²", q0), ("Σw²", q1)):
            if len(column) != len(x):
                raise InputError(
                    f"scores and counts must have one entry per cell: {len(x)} scores came with "
                    f"{len(column)} entries of {name}. Pass arrays of one length."
                )
        return cls(*sum_by_score(x, (n0, n1, q0, q1)))

    @classmethod
    def from_soft_labels(
        cls, scores: ArrayLike, share: Any, sample_weight: ArrayLike | None = None
    ) -> ScoreTable:
        """The table of rows with a probability of the positive class, ``share``, as their label.

        A row of share q counts q as a positive and 1 − q as a negative, and stays one row: its Σw²
        is divided alike. Fit it with ``fit_table``, measure it with `evaluate`. The fit of a
        calibrator makes this table of labels that are fractions.

        >>> ScoreTable.from_soft_labels([0.2, 0.7, 0.7], [0.1, 0.8, 1.0])
        ScoreTable(2 scores from 0.2 to 0.7, weight 3: 1.9 positive, 1.1 negative)
        """
        clean, labels = read_scores(scores), to_numbers(share, "share")
        if labels.ndim != 1:
            raise InputError(
                "share must be 1-d, the probability of the positive class for each row, but its "
                f"shape is {labels.shape}. Pass one column."
            )
        q = read_probabilities(labels, name="share")
        check_lengths(scores=len(clean), share=len(q))
        return cls(*_group_by_share(clean, q, read_weight(sample_weight, len(q))))

    @classmethod
    def empty(cls) -> ScoreTable:
        """The table of no data: the neutral element of ``+``."""
        none = read_only(np.empty(0))
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
        table = cls(*sum_by_score(mean, columns))
        error = float(np.max(np.maximum(mean - low, high - mean), initial=0.0))
        if not error:
            return table
        # means of cells lie inside the range of the scores, which says how these are read
        whole = ScoreScale(float(low.min()), float(high.max()))
        return replace(table, error=error, made=made).part_of(whole)

    @classmethod
    def gather(cls, tables: Iterable[ScoreTable]) -> ScoreTable:
        """The table of all rows of several tables. Pooled tables are allowed, unlike with ``+``.

        >>> a = ScoreTable.from_counts([1, 2], [2, 0], [0, 1])
        >>> ScoreTable.gather([a, a]) == a + a
        True
        """
        parts = [table for table in tables if table]
        if not parts:
            return cls.empty()
        columns = tuple(map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))
        if all(part.negative is part.negative_sq for part in parts):  # unit weights: Σw² is Σw
            columns = (columns[0], columns[1], columns[0], columns[1])
        scores = np.concatenate([part.scores for part in parts])
        table = cls(*sum_by_score(scores, columns))
        worst = max(parts, key=lambda part: part.error)
        whole = ScoreScale.of_parts(part.scale for part in parts)
        return replace(table, error=worst.error, made=worst.made).part_of(whole)

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

    @property
    def columns(self) -> CellColumns:
        """Σw and Σw² of the negatives and of the positives at each score."""
        return CellColumns(self.negative, self.positive, self.negative_sq, self.positive_sq)

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
        """Σw of the negatives."""
        return float(self.negative.sum())

    @property
    def total_positive(self) -> float:
        """Σw of the positives."""
        return float(self.positive.sum())

    @property
    def total(self) -> float:
        """Σw of all rows."""
        return self.total_negative + self.total_positive

    @property
    def effective_size(self) -> float:
        """(Σw)² / Σw² (Kish): how many rows of equal weight carry as much information."""
        return kish_size(self.total, float(self.negative_sq.sum() + self.positive_sq.sum()))

    @property
    def rarest(self) -> float:
        """The effective size of the rarer class: (Σw)² / Σw² over its rows.

        >>> ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 1, 0]).rarest
        1.0
        """
        columns = ((self.negative, self.negative_sq), (self.positive, self.positive_sq))
        return min(kish_size(float(w.sum()), float(q.sum())) for w, q in columns)

    @property
    def is_whole(self) -> bool:
        """Whether all weights in it are whole numbers (up to 2⁵³), as numbers of rows are."""
        columns = (self.negative, self.positive)
        return self.total < 2.0**53 and all(bool((c == np.floor(c)).all()) for c in columns)

    @property
    def scale(self) -> ScoreScale:
        """The scale of the scores; of a part, that of the whole."""
        if self.whole is not None:
            return self.whole
        if not len(self):
            return ScoreScale(0.0, 1.0)
        return ScoreScale(float(self.scores[0]), float(self.scores[-1]))

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether all scores lie in [0, 1]; of a part, all scores of the whole."""
        return self.scale.probabilities

    @property
    def inner_interval(self) -> tuple[float, float] | None:
        """The interval that scores are clipped to before their logit is taken; None for margins.

        Forests and nearest neighbours often give 0 and 1, whose logits would be −744 and 37: a
        single wrong one would outweigh all other rows. The interval ends halfway between 0 and the
        smallest score above 0, and halfway between 1 and the largest score below 1 (at ¼ and ¾ if
        all scores are 0 or 1).
        """
        if not self.scale.probabilities:
            return None
        least, most = self._inner_scores(1.0)
        return max(0.5 * least, SMALLEST), min(1.0 - 0.5 * (1.0 - most), LARGEST)

    @property
    def percent_ends(self) -> tuple[float, float]:
        """The limits that percentages are clipped to before they are divided by 100.

        >>> ScoreTable.from_arrays([0, 1, 97], [0, 1, 1]).percent_ends
        (0.5, 98.5)
        """
        return percent_ends(*self._inner_scores(PERCENT[1]))

    def _inner_scores(self, top: float) -> tuple[float, float]:
        """The smallest score above 0 and the largest score below ``top``. If no score lies between,
        both are top/2."""
        first, end = np.searchsorted(self.scores, 0.0, "right"), np.searchsorted(self.scores, top)
        inside = self.scores[first:end]
        return (float(inside[0]), float(inside[-1])) if len(inside) else (0.5 * top, 0.5 * top)

    def probability_of(self, scores: Array) -> Array:
        """Scores on the scale of this table, read as probabilities.

        Percentages are divided by 100, and margins pass through the sigmoid. Points are refused.

        >>> table = ScoreTable.from_arrays([0, 1, 97], [0, 1, 1])
        >>> table.probability_of(table.scores).tolist()
        [0.005, 0.01, 0.97]
        """
        kind = self.scale.kind
        if kind == "points":
            raise ValueError("points stand for no probability")
        if kind == "percentages":
            return np.asarray(np.clip(scores, *self.percent_ends) / 100.0)
        return sigmoid(scores) if kind == "margins" else scores

    def as_probabilities(self) -> ScoreTable | None:
        """The table with its scores read as probabilities (see `probability_of`); None for
        points."""
        kind = self.scale.kind
        if kind in ("probabilities", "points"):
            return self if kind == "probabilities" else None
        return self.through(self.probability_of)

    def cuts(self, after: Index) -> Array:
        """A cut above each of the scores with these indices: x_i < cut ≤ x_{i+1}.

        The cut lies halfway. Between two neighbouring floats it is the upper one.

        >>> ScoreTable.from_counts([0, 1, 4], [1, 1, 1], [1, 1, 1]).cuts(np.array([0, 1])).tolist()
        [0.5, 2.5]
        """
        low, high = self.scores[after], self.scores[after + 1]
        half = low / 2 + high / 2  # the sum could overflow
        return np.where(half > low, half, high)

    # --- deriving -------------------------------------------------------------------------------

    def part_of(self, whole: ScoreScale) -> ScoreTable:
        """The same table, with its scores read on the scale of the whole.

        Folds and segments must read scores as the whole does. If a single score lies outside
        [0, 1], all are margins, also in a part without that score.

        >>> from calibrant.data.scale import ScoreScale
        >>> part = ScoreTable.from_counts([0.1, 0.9], [3, 1], [1, 3])
        >>> part.scale.kind, part.part_of(ScoreScale(0.1, 1.7)).scale.kind
        ('probabilities', 'margins')
        """
        same = not self or whole.probabilities or self.scale == whole
        return self if same else replace(self, whole=whole)

    def pool(self, max_cells: int) -> ScoreTable:
        """A table of at most ``max_cells`` cells, each at the weighted mean of its scores.

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
        low, high = float(self.scores[0]), float(self.scores[-1])
        by_width = np.searchsorted(self.scores, low * (1 - inner) + high * inner)
        del mass
        starts = np.unique(np.concatenate(([0], by_mass, by_width)))
        starts = starts[starts < len(self)]
        n0, n1, q0, q1 = (np.add.reduceat(column, starts) for column in self.columns)
        first, last = self.scores[starts], self.scores[np.append(starts[1:], len(self)) - 1]
        size = max(abs(low), abs(high)) or 1.0  # a sum of scores could overflow
        moment = self.scores / size
        moment *= self.weight
        mean = np.clip(np.add.reduceat(moment, starts) / (n0 + n1) * size, first, last)
        error = float(np.max(np.maximum(mean - first, last - mean)))
        return replace(
            ScoreTable(read_only(mean), read_only(n0), read_only(n1), read_only(q0), read_only(q1)),
            error=max(error, self.error, np.finfo(float).tiny),
            made=f"{len(mean):,} cells of {self.made or f'{len(self):,} scores'}",
        ).part_of(self.scale)

    def through(self, function: Callable[[Array], Array]) -> ScoreTable:
        """The table with transformed scores, such as the probabilities that a map gives.

        Cells whose scores become equal are joined.

        >>> table = ScoreTable.from_counts([-0.5, 0.5, 0.8], [3, 2, 1], [1, 2, 3])
        >>> table.through(np.abs).positive.tolist()
        [3.0, 3.0]
        """
        return ScoreTable.from_counts(function(self.scores), *self.columns)

    def mirrored(self) -> ScoreTable:
        """The table of reversed scores: 1 − p, 100 − s or −s (see `ScoreScale.centre`).

        >>> ScoreTable.from_counts([0.25, 0.75], [1, 3], [3, 1]).mirrored()
        ScoreTable(2 scores from 0.25 to 0.75, weight 8: 4 positive, 4 negative)
        >>> ScoreTable.from_counts([300, 850], [1, 3], [3, 1]).mirrored().scores.tolist()
        [-850.0, -300.0]
        """
        scale = self.scale
        turned = self.through(lambda scores: scale.centre - scores)
        return replace(turned, error=self.error, made=self.made).part_of(scale.mirrored)

    def coarse_to_fine(
        self, fit: Callable[[ScoreTable, Array | None], Array], cells: int = 500
    ) -> Array:
        """The parameters that ``fit(table, start)`` finds for this table.

        A large table is first pooled to so many ``cells``, and the fit to these gives the start.
        """
        start = fit(self.pool(cells), None) if len(self) > 10 * cells else None
        return fit(self, start)

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


# --- What weights mean, said once: how much rows matter, or how often they were repeated ----------
# ``weights="importance"``, the default everywhere: only ratios of weights matter. They are divided
# by Σw²/Σw, so that their sum is (Σw)²/Σw², the number of rows of equal weight that carry as much
# information (Kish). Equal weights, whatever their size, are then as none. ``weights="counts"``: a
# row of weight w is w equal rows, so that the sum of weights is the number of rows, at most 2⁵³.
# None: weights as they came, for methods to which only their ratios matter.


#: how far from equal, or from a whole number, sums of equal weights may be: they are rounded
ROUNDING = 1e-9
#: what ``weights=`` may say
WEIGHTS = ("importance", "counts")
#: the most rows that counts may stand for: floats hold every whole number up to here
MOST_ROWS = 2.0**53


def table_in_rows(table: ScoreTable, weights: str | None) -> ScoreTable:
    """The table with its weights in units of rows. O(D).

    >>> seven = ScoreTable.from_arrays([0.2, 0.7, 0.2], [0, 1, 1], [7, 7, 7])
    >>> table_in_rows(seven, "importance")
    ScoreTable(2 scores from 0.2 to 0.7, weight 3: 2 positive, 1 negative)
    >>> table_in_rows(seven, "counts").effective_size
    21.0
    """
    if weights is None:
        return table
    n0, n1, q0, q1 = table.columns
    if weights == "counts":
        _check_counts(table.total)
        return replace(table, negative_sq=n0, positive_sq=n1)
    if not table or (n0 is q0 and n1 is q1):
        return table
    unit = float(q0.sum() + q1.sum()) / table.total
    if not unit > 0.0:  # squares too small for floats
        return replace(table, negative_sq=n0, positive_sq=n1)
    rows, squares = (n0 / unit, n1 / unit), (q0 / unit / unit, q1 / unit / unit)
    whole = np.rint(rows[0]), np.rint(rows[1])
    # all weights are equal if sums are whole up to rounding; a light row is no absent one
    pairs = zip((*rows, *squares), (*whole, *whole), strict=True)
    if all(bool((np.abs(sums - near) <= ROUNDING * near).all()) for sums, near in pairs):
        n0, n1 = map(read_only, whole)
        return replace(table, negative=n0, positive=n1, negative_sq=n0, positive_sq=n1)
    if abs(unit - 1.0) <= 1e-12:  # in units of rows already
        return table
    n0, n1, q0, q1 = map(read_only, (*rows, *squares))
    return replace(table, negative=n0, positive=n1, negative_sq=q0, positive_sq=q1)


def kish_size(weight: float, squares: float) -> float:
    """The effective number of rows (Σw)² / Σw², rounded if it is whole up to rounding errors.

    Limits are whole numbers of rows. Rows of equal weight must reach them, whatever that weight is.

    >>> kish_size(0.1 + 0.1 + 0.1, 0.01 + 0.01 + 0.01)
    3.0
    """
    size = weight**2 / squares if squares else 0.0
    nearest = float(np.rint(size))
    return nearest if math.isclose(size, nearest, rel_tol=1e-9) else size


def rows_count_once(table: ScoreTable) -> bool:
    """Whether every row of a table has weight one: Σw² equals Σw in all cells."""
    n, squares = (table.negative, table.positive), (table.negative_sq, table.positive_sq)
    return all(map(np.array_equal, n, squares))


def row_sizes(rows: Rows, weights: str | None) -> Array:
    """The weight of each row in units of rows (see `weight_in_rows`). It is 1 where no weights
    came."""
    size = weight_in_rows(rows.weight, weights)
    return np.ones(len(rows.scores)) if size is None else size


def weight_in_rows(weight: Array | None, weights: str | None) -> Array | None:
    """Weights ≥ 0 of rows, in units of rows; None where all rows count once.

    >>> weight_in_rows(np.array([2.0, 2.0]), "importance") is None
    True
    >>> weight_in_rows(np.array([1.0, 3.0, 0.0]), "importance").round(3).tolist()
    [0.4, 1.2, 0.0]
    >>> weight_in_rows(np.array([1.0, 3.0]), "counts").tolist()
    [1.0, 3.0]
    """
    if weight is None or weights is None:
        return weight
    if weights == "counts":
        _check_counts(float(weight.sum()))
        return weight
    least, most = float(weight.min()), float(weight.max())
    if least == most:
        return None
    share = weight / most  # squares of very small or large weights would leave the range of floats
    return np.asarray(share / (float(share @ share) / float(share.sum())))


def _check_counts(total: float) -> None:
    """Refuse weights that count rows if their sum is too large for exact counting."""
    if total > MOST_ROWS:
        raise InputError(
            f'weights="counts" reads weights as numbers of rows, so their sum must be at most '
            f"2⁵³ ≈ {MOST_ROWS:.3g} (beyond that, floats cannot tell one row more), but it is "
            f'{total:.3g}. Weights that say how much a row matters go with weights="importance".'
        )


# --- Cells of scores: the same cell for the same score in NumPy and in every database -------------


Frame = TypeVar("Frame", "nw.LazyFrame[Any]", "nw.DataFrame[Any]")

#: Σw and Σw² of negatives and positives, as the columns of grouped rows are called
SUMS = ("negative", "positive", "negative_sq", "positive_sq")
#: a cell of margins is crowded if it holds more than the share CROWDED of the weight, and more than
#: DUE times what an average cell holds
CROWDED, DUE = 1 / 16, 8

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
    """Numbered cells of the line of scores: a larger score is never in a cell of smaller number.

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
        return np.asarray(np.floor(self.positions(scores)), dtype=np.int64)

    def positions(self, scores: Array) -> Array:
        """The cell of each score plus the position in it, from 0 to 1; see `add_positions`.

        It is computed in one array: new ones for each step would cost more than the roots.
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
        """The frame with one more column: the cell of each score (finite doubles or NULL)."""
        import narwhals as nw

        cell = nw.col(into).floor()
        if not frame.implementation.is_pandas_like():  # where integers cannot be missing
            cell = cell.cast(nw.Int32)
        return self.add_positions(frame, score, into).with_columns(cell.alias(into))

    def add_positions(self, frame: Frame, score: str, into: str) -> Frame:
        """The frame with one more column: the cell of each score plus the position in it.

        The steps are those of `positions`, one column after another: SQL would repeat an expression
        at each use. Twice as many cells have positions twice as large, to the last bit, so each
        half of a cell is one of theirs.
        """
        import narwhals as nw

        from calibrant.data.lazy import with_ln_or_sqrt

        s, step = nw.col(score), nw.col(into)
        if self.centre is None:
            lower = nw.when(s > 0.0).then(s).otherwise(0.0)
            upper = nw.when(s >= 1.0).then(0.0).otherwise(1.0 - s)  # NULL for NULL
            frame = frame.with_columns(nw.when(s < 0.5).then(lower).otherwise(upper).alias(into))
            for _ in range(3):
                if isinstance(frame, nw.LazyFrame) and frame.implementation.is_ibis():
                    frame = with_ln_or_sqrt(frame, "sqrt", {into: into})
                else:
                    frame = frame.with_columns(step.sqrt())
            side, low, high = s < 0.5, step - HALF - LEAST, HALF - step
        else:
            frame = frame.with_columns(((s - self.centre) * (1.0 / self.spread)).alias(into))
            far = 1.0 / (1.0 + step.abs())
            side, low, high = step < 0.0, far - 1.0 - LEAST, 1.0 - far
        place = nw.when(side).then(low).otherwise(high) * self._scale
        return frame.with_columns(place.alias(into))

    def table(self, found: Mapping[str, NDArray[Any]]) -> ScoreTable:
        """The score table of rows that were grouped by these cells."""
        sums = sums_of(found)
        present = sums.filled  # a cell of rows without weight has no ends
        low, high, moment = (found[name][present] + 0.0 for name in ("low", "high", "moment"))
        return ScoreTable.from_cells(low, high, moment, sums.take(present), str(self))

    def crowd(self, found: Mapping[str, NDArray[Any]]) -> float:
        """The share of the weight that lies in crowded cells with more than one score."""
        crowded, share = self._crowded(found)
        return float(share[crowded].sum())

    def closer(self, found: Mapping[str, NDArray[Any]]) -> Cells | None:
        """Cells that are finest inside the most crowded cell; None if no cell is crowded."""
        crowded, share = self._crowded(found)
        if not crowded.any():
            return None
        worst = found["k"] == found["k"][np.argmax(np.where(crowded, share, 0.0))]
        low, high = float(np.nanmin(found["low"][worst])), float(np.nanmax(found["high"][worst]))
        return Cells(self.count, low / 2 + high / 2, max(high / 2 - low / 2, 1e-300))

    def _crowded(self, found: Mapping[str, NDArray[Any]]) -> tuple[Flags, Array]:
        """Flags of the groups in crowded cells, and the share of the weight in each group."""
        n0, n1, _, _ = sums_of(found)
        share = (n0 + n1) / (n0 + n1).sum()
        if self.centre is None:
            return np.zeros(len(share), dtype=bool), share
        _, place = np.unique(found["k"], return_inverse=True)
        held = np.bincount(place, share)[place]
        mixed = np.bincount(place, found["low"] < found["high"])[place] > 0
        return mixed & (held > max(CROWDED, DUE / self.count)), share

    @property
    def _scale(self) -> float:
        """The factor from u to positions: about half of the number of cells."""
        if self.centre is not None:
            return self.count / 2
        scale = self.count / 2 / HALF
        # rounded down, or 0 and 1 would be one cell too far out
        return scale if scale * HALF <= self.count / 2 else math.nextafter(scale, 0.0)

    def __str__(self) -> str:
        scale = "even in the logit" if self.centre is None else "finest in the middle"
        return f"{self.count:,} cells, {scale}"


def sums_of(found: Mapping[str, NDArray[Any]]) -> CellColumns:
    """Σw and Σw² of both classes in each group of rows; without weights Σw² is Σw."""
    known = SUMS if SUMS[2] in found else (*SUMS[:2], *SUMS[:2])
    return CellColumns(*(np.asarray(found[name], dtype=np.float64) for name in known))


def cells_for(rows: float) -> int:
    """The number of cells for a table of so many rows: a power of two, about 3.3·√rows.

    So the width of a cell shrinks as fast as the noise of a fit. The error made by cells goes with
    the square of their width, and shrinks faster.

    >>> [cells_for(n) for n in (1e6, 1e7, 1e8, 1e10)]
    [16384, 16384, 32768, 262144]
    """
    return min(max(_nearest_power_of_two(3.3 * math.sqrt(rows)), FEWEST), MOST)


def fine_cells_for(rows: float) -> int:
    """The number of cells where some will be divided again: about one for fifty rows.

    >>> [fine_cells_for(n) for n in (1e6, 1e7, 1e8)]
    [16384, 262144, 524288]
    """
    return min(max(_nearest_power_of_two(rows / 50), FEWEST), FINEST)


def segment_cells_for(segments: float) -> int:
    """The number of cells for each of so many segments.

    >>> [segment_cells_for(n) for n in (10, 200, 5000)]
    [16384, 4096, 1024]
    """
    return min(max(_nearest_power_of_two(TOGETHER / max(segments, 1.0)), OWN[0]), OWN[1])


def _nearest_power_of_two(count: float) -> int:
    """The power of two that is nearest by ratio."""
    power: int = 2 ** round(math.log2(max(count, 1.0)))
    return power


def pooling_facts(table: ScoreTable) -> dict[str, Any]:
    """Facts about the pooling of a table's scores; empty for an exact table."""
    return {"cells": table.made, "moved_by_at_most": table.error} if table.error else {}


# --- Rows → the columns of a score table: each distinct score once, with Σw and Σw² of classes ----


#: distinct ascending scores; Σw of the negatives and of the positives; Σw² of both
Columns = tuple[Array, Array, Array, Array, Array]


def _group_by_share(scores: Array, share: NDArray[Any], weight: Array | None) -> Columns:
    """The columns of rows whose labels are shares of the positive class: soft labels, or flags.

    A row of share q and weight w gives w·q to the positives and w·(1 − q) to the negatives. It
    stays one row: w² is divided alike.
    """
    if weight is None:
        n0 = 1.0 - share
        return sum_by_score(scores, (n0, share, n0, share))
    n0, n1 = weight * (1.0 - share), weight * share
    return sum_by_score(scores, (n0, n1, weight * n0, weight * n1))


def run_starts(x: NDArray[Any]) -> Index:
    """The first index of each run of equal values in a sorted array."""
    return np.flatnonzero(np.append(True, x[1:] != x[:-1])[: len(x)])


def _group_unweighted(scores: Array, positive: Flags) -> Columns:
    """The columns of rows of weight one."""
    # each class is sorted by itself (values only: cheaper than an argsort of all), then both merge
    x = np.empty(len(scores))
    negatives = len(x) - int(np.count_nonzero(positive))
    x[:negatives], x[negatives:] = scores[~positive], scores[positive]
    x[:negatives].sort()
    x[negatives:].sort()
    order = np.argsort(x, kind="stable")  # two ascending runs: a linear merge
    x = x[order]
    n1 = (order >= negatives).astype(np.float64)
    del order
    starts = run_starts(x)
    if len(starts) == len(x):  # all scores are different
        n0 = 1.0 - n1
    else:
        n1 = np.add.reduceat(n1, starts)
        n0 = np.diff(starts, append=len(x)) - n1
        x = x[starts]
    n0, n1 = read_only(n0), read_only(n1)
    return read_only(x), n0, n1, n0, n1


def sum_by_score(scores: Array, columns: tuple[Array, ...]) -> Columns:
    """Distinct scores, and the sum of each column over rows of equal score.

    Scores without weight are left out.
    """
    order = np.argsort(scores, kind="stable")
    x = scores[order]
    starts = run_starts(x)
    distinct = x[starts]
    shared = columns[0] is columns[2] and columns[1] is columns[3]
    sums = [
        np.add.reduceat(c[order], starts) if len(x) else c for c in columns[: 2 if shared else 4]
    ]
    present = (sums[0] + sums[1]) > 0
    if not present.all():
        distinct, sums = distinct[present], [s[present] for s in sums]
    n0, n1, q0, q1 = [read_only(s) for s in sums] * (2 if shared else 1)
    return read_only(distinct), n0, n1, q0, q1
