"""What candidates learn from and what they are judged on, fold by fold."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import to_column
from calibrant.data.validation import Rows, check_lengths
from calibrant.data.weighing import table_in_rows
from calibrant.errors import ParameterError
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.splits import SPLITTING, cv_kind, row_pairs
from calibrant.estimators.table_folds import HeldOutCells, TableFolds

__all__ = [
    "Fold",
    "Splits",
    "cluster_of",
    "for_present",
    "parts_of_rows",
    "parts_of_table",
    "table_cv",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: candidates are judged on the cells of a pooled table where there are more scores than this
MOST_CELLS = 200_000
POOLED_CELLS = 100_000


@dataclass(frozen=True)
class Fold:
    """One fold: the table that is left, and the cells (or rows) that are held out."""

    rest: ScoreTable
    scores: Array
    held: HeldOutCells
    cluster: Index | None = None


class Splits:
    """The limits of ``cv``: a number of folds, a fraction, a splitter or splits."""

    def allows(self, value: Any) -> bool:
        if isinstance(value, (str, bool, np.bool_)) or (
            isinstance(value, (list, tuple)) and not value
        ):
            return False
        try:
            return cv_kind(value) in SPLITTING
        except ParameterError:
            return False

    def __str__(self) -> str:
        return (
            "a number of folds of at least 2, a fraction between 0 and 1 to hold out, a splitter "
            "or an iterable of splits"
        )


def table_cv(cv: Any) -> bool:
    """Whether folds can be dealt from a table, without its rows."""
    return cv is None or isinstance(cv, Integral)


def parts_of_table(table: ScoreTable, folds: int, seed: int) -> tuple[list[Fold], tuple[str, ...]]:
    """Folds of a table's rows, dealt at random, and what to say of them.

    Fewer where a class has fewer rows, none below two. Of more than `MOST_CELLS` scores, folds of a
    pooled table.
    """
    notes: tuple[str, ...] = ()
    folds = min(folds, int(table.rarest + 1e-6))
    if folds < 2:
        return [], notes
    if len(table) > MOST_CELLS:
        notes = (f"judged on {POOLED_CELLS:,} cells of {len(table):,} distinct scores",)
        table = table.pool(POOLED_CELLS)
    deal = TableFolds(table, folds, seed=seed)
    columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
    parts = []
    for fold in range(folds):
        held = _whole(deal.held(fold)) if table.is_whole else deal.held(fold)
        left = (np.maximum(a - b, 0.0) for a, b in zip(columns, held, strict=True))
        rest = ScoreTable.from_counts(table.scores, *left)
        some = (held.negative > 0) | (held.positive > 0)
        if rest and some.any():
            few = HeldOutCells(*(column[some] for column in held))
            parts.append(Fold(rest, table.scores[some], few))
    return parts, notes


def _whole(held: HeldOutCells) -> HeldOutCells:
    """Numbers of rows without the rounding of their shares."""
    near = [np.rint(column) for column in held]
    return HeldOutCells(
        *(np.where(np.abs(c - r) < 1e-9 * (1.0 + r), r, c) for c, r in zip(held, near, strict=True))
    )


def for_present(cv: Any, present: NDArray[np.bool_]) -> Any:
    """Splits given as indices or masks of all rows, as indices of the rows that are present."""
    if present.all() or cv is None or isinstance(cv, Real) or hasattr(cv, "split"):
        return cv
    position = np.cumsum(present) - 1

    def kept(rows: Any) -> Index:
        chosen = np.arange(len(present))[np.asarray(rows)]
        return np.asarray(position[chosen[present[chosen]]])

    return [(kept(train), kept(test)) for train, test in cv]


def parts_of_rows(
    rows: Rows, cv: Any, groups: Any, random_state: Any, *, counts: bool
) -> tuple[ScoreTable, list[Fold]]:
    """The table of all rows, and folds as a splitter, groups or a fraction ask for."""
    weight = np.ones(len(rows.scores)) if rows.weight is None else rows.weight
    here = weight > 0
    present = np.flatnonzero(here)
    codes = rows.positive.astype(np.intp)
    clusters = None
    if groups is not None:
        column = to_column(groups, "groups")
        check_lengths(scores=len(codes), groups=len(column))
        groups = column[present]
        clusters = np.unique(groups, return_inverse=True)[1].reshape(-1)
    weight = weight[present]
    some = Rows(rows.scores[present], rows.positive[present], weight, rows.classes, rows.pos_label)
    data = ModelRows(some.scores, codes[present], weight, rows.classes, 1, "auto")
    cv = for_present(cv, here)
    pairs = row_pairs(cv, data, groups, random_state, complete=False)
    clusters = cluster_of(pairs, clusters)
    seen = np.concatenate([test for _, test in pairs])
    weight = weight / np.maximum(np.bincount(seen, minlength=len(present)), 1)
    parts = [
        _part(some, train, test, weight, clusters, counts) for train, test in pairs if len(train)
    ]
    return ScoreTable.from_rows(some), parts


def cluster_of(pairs: list[tuple[Index, Index]], clusters: Index | None) -> Index | None:
    """Which rows belong together: groups, or rows that are held out more than once."""
    if clusters is not None:
        return clusters
    seen = np.concatenate([test for _, test in pairs])
    return None if len(np.unique(seen)) == len(seen) else np.arange(int(seen.max()) + 1)


def _part(
    rows: Rows, train: Index, test: Index, weight: Array, clusters: Index | None, counts: bool
) -> Fold:
    """``weight`` is that of rows held out: a row that is held out twice counts half each time."""
    left = Rows(
        rows.scores[train],
        rows.positive[train],
        None if rows.weight is None else rows.weight[train],
        rows.classes,
        rows.pos_label,
    )
    one = np.where(rows.positive[test], weight[test], 0.0)
    zero = weight[test] - one
    squares = (zero, one) if counts else (zero * zero, one * one)
    cluster = None if clusters is None else clusters[test]
    rest = ScoreTable.from_rows(left)
    held = HeldOutCells(zero, one, *squares)
    if counts:
        rest = table_in_rows(rest, "counts")
    return Fold(rest, rows.scores[test], held, cluster)
