"""Tables dealt into folds, and what a calibrator does on the folds it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.base import Calibrator
from calibrant.data.table import ScoreTable

__all__ = ["Deal", "out_of_fold", "table_folds"]

Array = NDArray[np.float64]


class Deal:
    """A table dealt into k folds.

    The cases of each class are dealt in ascending order of score like cards, one to each fold in
    turn, the positives going on where the negatives ended. So folds are stratified by class and by
    score, are of equal size, and depend on nothing but the table: not on the order of rows, and
    not on whether weight 2 or two equal rows were given. Weights that are not whole are dealt in
    portions of their mean, Σw²/Σw, so that their scale does not matter.

    Attributes
    ----------
    negative, positive : arrays of shape (D + 1,)
        The weight of each class before every score, and in all.
    """

    def __init__(self, table: ScoreTable, k: int) -> None:
        self.k = k
        squares = float(table.negative_sq.sum() + table.positive_sq.sum())
        mean = squares / table.total if squares else 1.0
        self._portions = [
            1.0 if bool((weight == np.floor(weight)).all()) else mean
            for weight in (table.negative, table.positive)
        ]
        self.negative, self.positive = np.zeros(len(table) + 1), np.zeros(len(table) + 1)
        np.cumsum(table.negative, out=self.negative[1:])
        np.cumsum(table.positive, out=self.positive[1:])

    def held(self, fold: int, at: Any = slice(None)) -> tuple[Array, Array]:
        """As ``negative`` and ``positive``, of one fold alone, at some or all indices."""
        (small0, small1), k = self._portions, self.k
        begun = self.negative[-1] / small0 % k  # the fold at which the positives begin
        zero = _dealt(self.negative[at] / small0, fold, k) * small0
        one = _dealt(self.positive[at] / small1 + begun, fold, k) - _dealt(begun, fold, k)
        return zero, one * small1


def _dealt(upto: Array | np.float64, fold: int, k: int) -> Array:
    """Of the first ``upto`` cards: one per full round, and the fold's part of the last round."""
    rounds, rest = np.divmod(upto, k)
    return np.asarray(rounds + np.clip(rest - fold, 0.0, 1.0))


def table_folds(table: ScoreTable, k: int) -> Iterator[tuple[Array, Array]]:
    """The k folds of a `Deal`: the weight of negatives and of positives at each score.

    >>> t = ScoreTable.from_counts([0.1, 0.5], [3, 1], [0, 2])
    >>> [(n0.tolist(), n1.tolist()) for n0, n1 in table_folds(t, 2)]
    [([2.0, 0.0], [0.0, 1.0]), ([1.0, 1.0], [0.0, 1.0])]
    """
    deal = Deal(table, k)
    for fold in range(k):
        zero, one = deal.held(fold)
        yield np.minimum(np.diff(zero), table.negative), np.minimum(np.diff(one), table.positive)


def out_of_fold(calibrator: Calibrator, table: ScoreTable, k: int = 5) -> ScoreTable:
    """The table of calibrated probabilities, each from a map that was fitted without its fold.

    >>> from calibrant import Isotonic
    >>> t = ScoreTable.from_arrays([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> out_of_fold(Isotonic(), t, k=3).total
    6.0
    """
    total = ScoreTable.empty()
    for n0, n1 in table_folds(table, k):
        if not (n0.any() or n1.any()):
            continue
        rest = ScoreTable.from_counts(table.scores, table.negative - n0, table.positive - n1)
        fitted = clone(calibrator).fit_table(rest if rest else table)
        total = total + ScoreTable.from_counts(fitted.map_(table.scores), n0, n1)
    return total
