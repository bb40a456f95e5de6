"""Whether a local calibrator says more than the scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.arrays import Array, Index
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
from calibrant.local.tree_rule import TreeRounds
from calibrant.maps import Map, Softmax, VectorMap

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
    the Brier score, summed over several classes: a few rows of one class give a probability of
    exactly 0 or 1, whose log loss can be infinite. The rule is kept only if it is ahead of both by
    more than two standard errors. The curve of several classes is one temperature.
    """
    several = len(rows.classes) > 2
    if _too_few(rows, several):
        return BEFORE
    splits = row_splits(rows, FOLDS, groups, 0)
    smooth = FACTOR if several else SMOOTH

    def curve(train: Index, test: Index) -> Array:
        return _score_map(smooth, rows, weights, train)(rows.scores[test])

    held, found = _held_out(splits, {smooth: curve, name: predict})
    before = _score_map(BEFORE, rows, weights)(rows.scores[held])
    true: Array = np.equal.outer(rows.codes[held], np.arange(len(rows.classes))).astype(float)
    true = true if several else true[:, 1]
    # the losses are squares, of which none is infinite
    judged = {
        n: HeldOutP(p, np.square(p - true).reshape(len(held), -1).sum(axis=1), certain=False)
        for n, p in {BEFORE: before, **found}.items()
    }
    sample = held_out_sample(rows, splits, held, weights)
    if several:
        return choose(judged, sample, errors=CLASS_ERRORS, demanding=(name,))[0]
    right = chance_for_rows(before, true == 1.0, sample, weights)
    return choose(judged, sample, right=right, demanding=(name,))[0]


def score_rule(name: str, rows: LocalRows, weights: str | None) -> TreeRounds | ClassScores:
    """The rule that looks at the scores alone: a map of that name, fitted to all rows."""
    found = _score_map(name, rows, weights)
    return ClassScores(found) if isinstance(found, VectorMap) else TreeRounds.of_map(found)


def _too_few(rows: LocalRows, several: bool) -> bool:
    counts = np.bincount(rows.codes, minlength=2)
    return bool(np.count_nonzero(counts >= FOLDS) < 2 if several else counts.min() < 2)


def _score_map(name: str, rows: LocalRows, weights: str | None, some: Index | None = None) -> Map:
    """A map of the scores alone, fitted to all rows or some of them."""
    if len(rows.classes) == 2:
        return map_of(name, table_of(rows, some), weights)
    part = slice(None) if some is None else some
    matrix = ScoreMatrix(np.ascontiguousarray(rows.scores[part]), rows.codes[part])
    if name == BEFORE:
        return Softmax.unchanged(matrix.n_classes, matrix.kind())
    one = calibrator_of(name).set_params(classes=list(range(matrix.n_classes)))
    fitted: Map = one.fit(matrix.scores, matrix.codes, rows.given[part]).map_
    return fitted


def _held_out(
    splits: RowSplits, candidates: Mapping[str, Callable[[Index, Index], Array]]
) -> tuple[Index, dict[str, Array]]:
    """The rows that are held out, fold after fold, and what each candidate gives them."""
    found = {
        name: np.concatenate([predict(train, test) for train, test in splits.pairs])
        for name, predict in candidates.items()
    }
    return np.concatenate([test for _, test in splits.pairs]), found
