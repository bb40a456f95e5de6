"""Whether a local calibrator says more than the scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.estimators.held_out_choice import choose
from calibrant.estimators.named_methods import BEFORE
from calibrant.local.base import LocalRows
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

__all__ = ["kept_of_three"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


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
    held = np.concatenate([test for _, test in splits.pairs])
    found: dict[str, list[Array]] = {SMOOTH: [], name: []}
    for train, test in splits.pairs:
        found[SMOOTH].append(map_of(SMOOTH, table_of(rows, train), weights)(rows.scores[test]))
        found[name].append(predict(train, test))
    before = map_of(BEFORE, table_of(rows), weights)(rows.scores[held])
    given = {BEFORE: before, **{n: np.concatenate(parts) for n, parts in found.items()}}
    positive = (rows.codes[held] == 1).astype(float)
    # the losses are squares, of which none is infinite
    judged = {n: HeldOutP(p, np.square(p - positive), certain=False) for n, p in given.items()}
    sample = held_out_sample(rows, splits, held, weights)
    right = chance_for_rows(before, positive == 1.0, sample, weights)
    return choose(judged, sample, right=right, demanding=(name,))[0]
