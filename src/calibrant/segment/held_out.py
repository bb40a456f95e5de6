"""Predictions of a calibrator of segments for rows that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.change_intervals import PairedCells
from calibrant.segment.calibrator import SegmentedCalibrator
from calibrant.segment.segment_cells import dealt, read_tables, stack_of


def held_out(
    calibrator: SegmentedCalibrator, tables: Mapping[Any, ScoreTable], folds: int, seed: int = 0
) -> tuple[ScoreTable, PairedCells | None, int]:
    """The table of predictions out of fold, these beside the scores of the same rows, and the
    number of folds; empty and None where none can be made.

    Rows are dealt class by class over all segments; each fold fits everything anew to the others,
    the choice of shrinkage included.

    >>> t = ScoreTable.from_counts([0.2, 0.8], [30, 10], [10, 30])
    >>> after, _, folds = held_out(SegmentedCalibrator(shrinkage=10.0), {"a": t, "b": t}, 2)
    >>> after.total, folds
    (160.0, 2)
    """
    stack = stack_of(read_tables(tables))
    names = np.empty(len(stack), dtype=object)
    for i, key in enumerate(stack.keys):  # at once, tuples would become a matrix
        names[i] = key
    segments = names[np.repeat(np.arange(len(stack)), stack.sizes)]
    parts, pairs = [], []
    for rest, held in dealt(stack, folds, seed):
        left = {key: rest.table(i) for i, key in enumerate(stack.keys)}
        fitted = clone(calibrator).fit_tables(left)
        p = fitted.map_(stack.scores, segments)
        parts.append(ScoreTable.from_counts(p, *held))
        pairs.append((p, stack.scores, *held))
    if not parts:
        return ScoreTable.gather(parts), None, 0
    after, before, *columns = (np.concatenate(column) for column in zip(*pairs, strict=True))
    n0, n1, q0, q1 = columns
    pair = PairedCells.of_counts(after, before, (n0, n1, q0, q1))
    return ScoreTable.gather(parts), pair, len(parts)
