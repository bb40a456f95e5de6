"""Predictions of rows that a calibrator has not seen, written as plainly as possible."""

from __future__ import annotations

from sklearn.base import clone

from calibrant import ScoreTable
from calibrant.fitting.folds import TableFolds


def out_of_fold(calibrator, table, k=5):
    """The table of calibrated probabilities, each from a map that was fitted without its fold."""
    parts = []
    for rest, held in TableFolds(table, k).parts():
        fitted = clone(calibrator).fit_table(rest or table)
        parts.append(ScoreTable.from_counts(fitted.map_(table.scores), *held))
    return ScoreTable.gather(parts)
