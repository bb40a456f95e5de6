"""Whether a local calibrator says more than the scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.estimators.held_out_choice import CLASS_ERRORS, choose
from calibrant.estimators.named_methods import BEFORE
from calibrant.estimators.registry import calibrator_of
from calibrant.estimators.splits import RowSplits
from calibrant.local.base import LocalRows
from calibrant.local.class_scores import ClassScores
from calibrant.local.feature_judging import (
    FOLDS,
    SMOOTH,
    HeldOutP,
    chance_for_rows,
    held_out_sample,
    map_of,
    row_splits,
    table_of,
)
from calibrant.maps import Softmax

__all__ = ["class_rule", "kept_of_classes", "kept_of_three"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: what may be kept of several classes beside the scores as they came
FACTOR = "temperature"


def kept_of_three(
    rows: LocalRows,
    name: str,
    predict: Callable[[Index, Index], Array],
    groups: Any,
    weights: str | None,
) -> str:
    """What is kept: the local rule (its ``name``), a smooth curve of the score, or the score.

    ``predict`` fits the rule to some rows and gives the probabilities of others. They are judged by
    the Brier score: a few rows of one class give a probability of exactly 0 or 1, whose log loss
    can be infinite. The rule is kept only if it is ahead of both by more than two standard errors.
    """
    if np.bincount(rows.codes, minlength=2).min() < 2:
        return BEFORE
    splits = row_splits(rows, FOLDS, groups, 0)

    def curve(train: Index, test: Index) -> Array:
        return map_of(SMOOTH, table_of(rows, train), weights)(rows.scores[test])

    held, found = _held_out(splits, {SMOOTH: curve, name: predict})
    before = map_of(BEFORE, table_of(rows), weights)(rows.scores[held])
    positive = (rows.codes[held] == 1).astype(float)
    # the losses are squares, of which none is infinite
    judged = {
        n: HeldOutP(p, np.square(p - positive), certain=False)
        for n, p in {BEFORE: before, **found}.items()
    }
    sample = held_out_sample(rows, splits, held, weights)
    right = chance_for_rows(before, positive == 1.0, sample, weights)
    return choose(judged, sample, right=right, demanding=(name,))[0]


def kept_of_classes(
    rows: LocalRows,
    name: str,
    predict: Callable[[Index, Index], Array],
    groups: Any,
    weights: str | None,
) -> str:
    """The same of several classes, whose curve is one temperature.

    The Brier score is the sum of the squared errors of all classes.
    """
    if np.count_nonzero(np.bincount(rows.codes) >= FOLDS) < 2:
        return BEFORE
    splits = row_splits(rows, FOLDS, groups, 0)

    def factor(train: Index, test: Index) -> Array:
        return class_rule(FACTOR, rows, train).map(rows.scores[test])

    held, found = _held_out(splits, {FACTOR: factor, name: predict})
    before = class_rule(BEFORE, rows).map(rows.scores[held])
    true = np.arange(len(rows.classes)) == rows.codes[held, None]
    judged = {
        n: HeldOutP(p, np.square(p - true).sum(axis=1), certain=False)
        for n, p in {BEFORE: before, **found}.items()
    }
    sample = held_out_sample(rows, splits, held, weights)
    return choose(judged, sample, errors=CLASS_ERRORS, demanding=(name,))[0]


def class_rule(name: str, rows: LocalRows, some: Index | None = None) -> ClassScores:
    """A rule that looks at the scores of several classes alone, fitted to rows or some of them."""
    part = slice(None) if some is None else some
    matrix = ScoreMatrix(np.ascontiguousarray(rows.scores[part]), rows.codes[part])
    if name == BEFORE:
        return ClassScores(Softmax.unchanged(matrix.n_classes, matrix.kind()))
    one = calibrator_of(name).set_params(classes=list(range(len(rows.classes))))
    return ClassScores(one.fit(matrix.scores, matrix.codes, rows.given[part]).map_)


def _held_out(
    splits: RowSplits, candidates: Mapping[str, Callable[[Index, Index], Array]]
) -> tuple[Index, dict[str, Array]]:
    """The rows that are held out, fold after fold, and what each candidate gives them."""
    found = {
        name: np.concatenate([predict(train, test) for train, test in splits.pairs])
        for name, predict in candidates.items()
    }
    return np.concatenate([test for _, test in splits.pairs]), found
