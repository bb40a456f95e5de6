"""Predictions of rows that a calibrator has not seen, written as plainly as possible."""

from __future__ import annotations

from sklearn.base import clone

from calibrant import ScoreTable
from calibrant.fitting.folds import TableFolds


def out_of_fold(calibrator, table, k=5):
    """The table of calibrated probabilities, each from a map that was fitted without its fold."""
    deal = TableFolds(table, k)
    parts = []
    for fold in range(k):
        held = deal.held(fold)
        fitted = clone(calibrator).fit_table(deal.rest(held) or table)
        parts.append(ScoreTable.from_counts(fitted.map_(table.scores), *held))
    return ScoreTable.gather(parts)
