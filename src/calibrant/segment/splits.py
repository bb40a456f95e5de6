"""Folds of the cells of all segments: dealt from their tables, or as a splitter says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.arrays import Array, Index
from calibrant.data.segment_keys import SegmentKey
from calibrant.data.validation import Rows
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.splits import split_present
from calibrant.estimators.table_folds import HeldOutCells, possible_folds
from calibrant.segment.segment_cells import SegmentCells


class SegmentFold(NamedTuple):
    """What maps are fitted to, and what they are judged on."""

    rest: SegmentCells
    held: HeldOutCells


#: makes the folds of the segments' cells
MakeFolds = Callable[[SegmentCells], list[SegmentFold]]


def dealt(stack: SegmentCells, k: int, seed: int) -> list[SegmentFold]:
    """k folds, rows dealt class by class; fewer where a class has fewer rows, none below two."""
    k = possible_folds(k, stack.whole().rarest)
    return [SegmentFold(stack.without(held), held) for held in stack.folds(k, seed)] if k else []


def folds_of_rows(
    stack: SegmentCells,
    rows: Rows,
    keys: list[SegmentKey],
    codes: Index,
    *,
    cv: Any,
    groups: Any,
    seed: int,
    counts: bool,
) -> list[SegmentFold]:
    """Folds as a splitter, groups or a fraction ask for, in the cells of the segments' tables.

    ``codes`` says which of the segments ``keys`` each row is in; with ``counts`` weights are
    numbers of rows. A row that is held out r times counts 1/r each time.
    """
    weight = np.ones(len(rows.scores)) if rows.weight is None else rows.weight
    present = weight > 0.0
    cell = _cells(stack, rows.scores, keys, codes)[present]
    weight, positive = weight[present], rows.positive[present]
    labels = positive.astype(np.intp)
    data = ModelRows(rows.scores[present], labels, weight, np.array([False, True]), 1, "auto")
    splits = split_present(cv, data, present, groups, seed)
    square = weight if counts else weight**2

    def sums(part: Index, share: Array) -> HeldOutCells:
        columns = [
            np.bincount(cell[part], (values * share * side)[part], minlength=len(stack.scores))
            for values in (weight, square)
            for side in (~positive, positive)
        ]
        return HeldOutCells(*(column.astype(np.float64) for column in columns))

    every = np.ones(len(cell))
    return [
        SegmentFold(replace(stack, counts=sums(train, every)), sums(test, splits.share))
        for train, test in splits.pairs
    ]


def _cells(stack: SegmentCells, scores: Array, keys: list[SegmentKey], codes: Index) -> Index:
    """The cell of each row."""
    place = {key: i for i, key in enumerate(stack.keys)}
    cell = np.zeros(len(codes), dtype=np.intp)
    for key, mine in rows_by_segment(keys, codes):
        if key in place:
            part = stack.cells(place[key])
            found = np.searchsorted(stack.scores[part], scores[mine])
            cell[mine] = part.start + np.minimum(found, part.stop - part.start - 1)
    return cell


def rows_by_segment(keys: list[SegmentKey], codes: Index) -> Iterator[tuple[SegmentKey, Index]]:
    """The rows of each segment, in their order."""
    order = np.argsort(codes.astype(np.min_scalar_type(len(keys))), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return zip(keys, np.split(order, ends[:-1]), strict=True)
