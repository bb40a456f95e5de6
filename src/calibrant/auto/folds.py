"""Folds: what candidates learn from, and what they are judged on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.data.weighing import table_in_rows
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.splits import FOLDS, split_present
from calibrant.estimators.table_folds import HeldOutCells, TableFolds, possible_folds

#: a table with more scores than this is pooled to so many cells before candidates are judged
MOST_CELLS = 200_000
POOLED_CELLS = 100_000


@dataclass(frozen=True)
class Fold:
    """One fold: the table to learn from, and the cells or rows that are held out.

    ``cluster`` says which of these belong together.
    """

    rest: ScoreTable
    scores: Array
    held: HeldOutCells
    cluster: Index | None = None


def table_cv(cv: Any) -> bool:
    """Whether folds can be dealt from a table, without its rows."""
    return cv is None or isinstance(cv, Integral)


def parts_of_table(table: ScoreTable, folds: int, seed: int) -> tuple[list[Fold], tuple[str, ...]]:
    """Folds of a table's rows, dealt at random, and notes for the leaderboard.

    There are fewer folds where a class has fewer rows, and none below two. A table of more than
    `MOST_CELLS` scores is pooled first.
    """
    notes: tuple[str, ...] = ()
    folds = possible_folds(folds, table.rarest)
    if not folds:
        return [], notes
    if len(table) > MOST_CELLS:
        notes = (f"judged on {POOLED_CELLS:,} cells of {len(table):,} distinct scores",)
        table = table.pool(POOLED_CELLS)
    deal = TableFolds(table, folds, seed=seed)
    parts = []
    for fold in range(folds):
        held = deal.held(fold)
        rest, filled = deal.rest(held), held.filled
        if rest and filled.any():
            parts.append(Fold(rest, table.scores[filled], held.take(filled)))
    return parts, notes


def parts_of_rows(
    rows: Rows, cv: Any, groups: Any, random_state: Any, *, counts: bool
) -> tuple[ScoreTable, list[Fold]]:
    """The table of all rows, and folds as a splitter, groups or a fraction ask for.

    Of soft labels, both halves of a row are in one fold, and they are one unit where errors are
    estimated (unless weights are counts: then a row may be many). Of a number of folds without
    groups there may be fewer, or none, as in `parts_of_table`.
    """
    present = None if rows.weight is None else rows.weight > 0
    if present is not None:
        rows = rows.take(np.flatnonzero(present))
    table = ScoreTable.from_rows(rows)
    codes = rows.positive.astype(np.intp)
    data = ModelRows(rows.scores, codes, rows.weight, rows.classes, 1, "auto")
    if rows.share is not None and table_cv(cv) and groups is None:
        folds = possible_folds(FOLDS if cv is None else int(cv), table.rarest)
        if not folds:
            return table, []
        cv, present = _deal(rows, folds, random_state), None
    splits = split_present(cv, data, present, groups, random_state)
    weight = splits.share if rows.weight is None else splits.share * rows.weight
    positive = rows.positive if rows.share is None else rows.share
    cluster = splits.cluster
    if cluster is None and rows.share is not None and not counts:
        cluster = np.arange(len(rows.scores))
    parts = []
    for train, test in splits.pairs:
        rest = ScoreTable.from_rows(rows.take(train)).part_of(*table.ends)
        zero, one = weight[test] * (1.0 - positive[test]), weight[test] * positive[test]
        squares = (zero, one) if counts else (zero * zero, one * one)
        parts.append(
            Fold(
                table_in_rows(rest, "counts") if counts else rest,
                rows.scores[test],
                HeldOutCells(zero, one, *squares),
                None if cluster is None else cluster[test],
            )
        )
    return table, parts


def _deal(rows: Rows, folds: int, seed: int) -> list[tuple[Index, Index]]:
    """Rows with soft labels dealt into folds at random, those of ½ and more apart from the others.

    Whatever their order is, rows of the same score, label and weight fall to the same folds.
    """
    keys = (rows.scores, rows.share, rows.weight, rows.positive)  # the last one goes first
    order = np.lexsort([key for key in keys if key is not None])
    fold = np.empty(len(order), dtype=np.intp)
    rng = np.random.default_rng(seed)
    low = int(np.count_nonzero(~rows.positive))
    for some in (order[:low], order[low:]):
        fold[some] = rng.permutation(np.arange(len(some)) % folds)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(folds)]
