"""What is held out of the cells of all segments: dealt from their tables, or as a splitter says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.auto.folds import for_present
from calibrant.data.segment_keys import Key
from calibrant.data.to_numpy import to_column
from calibrant.data.validation import Rows, check_lengths
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.splits import row_pairs
from calibrant.estimators.table_folds import HeldOutCells
from calibrant.segment.segment_cells import SegmentCells

__all__ = ["RowSplits", "SegmentFold", "dealt"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class SegmentFold(NamedTuple):
    """What maps are fitted to, and what they are judged on."""

    rest: SegmentCells
    held: HeldOutCells


def dealt(stack: SegmentCells, k: int, seed: int) -> list[SegmentFold]:
    """k folds, rows dealt class by class; fewer where a class has fewer rows, none below two."""
    k = min(k, int(stack.whole().rarest + 1e-6))
    if k < 2:
        return []
    return [SegmentFold(stack.without(held), held) for held in stack.folds(k, seed)]


@dataclass(frozen=True)
class RowSplits:
    """Rows with their segments, and how they are split.

    Parameters
    ----------
    rows : Rows
    keys, codes : the segments, and which of them each row is in
    cv : splitter, splits, fraction, or number of folds
    groups : array-like or None
    seed : int
    counts : bool
        Whether weights are numbers of rows.
    """

    rows: Rows
    keys: list[Key]
    codes: Index
    cv: Any
    groups: Any
    seed: int
    counts: bool

    def folds(self, stack: SegmentCells) -> list[SegmentFold]:
        """The folds in the cells of the segments' tables; a row held out r times counts 1/r."""
        rows = self.rows
        weight = np.ones(len(rows.scores)) if rows.weight is None else rows.weight
        present = np.flatnonzero(weight > 0.0)
        groups = self.groups
        if groups is not None:
            groups = to_column(groups, "groups")
            check_lengths(scores=len(weight), groups=len(groups))
            groups = groups[present]
        codes = rows.positive[present].astype(np.intp)
        classes = np.array([False, True])
        data = ModelRows(rows.scores[present], codes, weight[present], classes, 1, "auto")
        cv = for_present(self.cv, weight > 0.0)
        pairs = row_pairs(cv, data, groups, self.seed, complete=False)
        cell, weight = self._cells(stack)[present], weight[present]
        times = np.bincount(np.concatenate([test for _, test in pairs]), minlength=len(cell))
        share = 1.0 / np.maximum(times, 1)
        count = len(stack.scores)

        def sums(part: Index, share: Array) -> HeldOutCells:
            square = weight if self.counts else weight**2
            columns = [
                np.asarray(
                    np.bincount(
                        cell[part], (values * share * (codes == code))[part], minlength=count
                    ),
                    dtype=np.float64,
                )
                for values in (weight, square)
                for code in (0, 1)
            ]
            return HeldOutCells(*columns)

        everyone = np.ones(len(cell))
        return [
            SegmentFold(replace(stack, counts=sums(train, everyone)), sums(test, share))
            for train, test in pairs
            if len(train)
        ]

    def _cells(self, stack: SegmentCells) -> Index:
        """The cell of each row."""
        place = {key: i for i, key in enumerate(stack.keys)}
        cell = np.zeros(len(self.codes), dtype=np.intp)
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.keys)))
        for key, mine in zip(self.keys, np.split(order, ends[:-1]), strict=True):
            if key in place:
                part = stack.cells(place[key])
                found = np.searchsorted(stack.scores[part], self.rows.scores[mine])
                cell[mine] = part.start + np.minimum(found, part.stop - part.start - 1)
        return cell
