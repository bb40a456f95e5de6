"""Whether a local calibrator says more than the scores: judged on rows that were held out."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.door import Rows
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.fitting.folds import FOLDS, split_present
from calibrant.fitting.held_out import (
    CLASS_ERRORS,
    ONE_SIDED,
    Fit,
    HeldOutCells,
    HeldOutMatrix,
    Trial,
    choose,
    fit_bare,
    try_all,
    unchanged,
)
from calibrant.fitting.registry import BEFORE, calibrator_of
from calibrant.methods.uncalibrated import as_they_came
from calibrant.metrics.tests import chance_that_right
from calibrant.rules.base import Map

#: what may be kept beside the scores as they came: a smooth curve; of several classes one factor
SMOOTH, FACTOR = "BLS", "temperature"


def kept_of_three(rows: Rows, weights: str, name: str, fit: Fit, groups: Any) -> str:
    """What is kept: the local rule (its ``name``), a smooth curve of the score, or the score.

    ``fit`` fits the rule to the rows of some numbers, and gives a function of other numbers. All
    three are judged by the Brier score, summed over several classes: a few rows of one class give a
    probability of exactly 0 or 1, whose log loss can be infinite. The rule is kept only if it is
    ahead of both by more than two standard errors. The curve of several classes is one temperature.
    ``weights`` is as in `Calibrator`.
    """
    several = len(rows.classes) > 2
    counts = np.bincount(rows.codes, minlength=2)
    if np.count_nonzero(counts >= FOLDS) < 2 if several else counts.min() < 2:
        return BEFORE
    held: HeldOutMatrix | HeldOutCells
    if several:
        matrix = _matrix_of(rows)
        pairs, cluster = split_present(FOLDS, matrix, rows.classes, rows.kept, groups, 0)
        held = HeldOutMatrix(matrix, pairs, weights, cluster)
        trials, right, smooth, errors = {BEFORE: held.unchanged()}, None, FACTOR, CLASS_ERRORS
    else:
        held = HeldOutCells.of_rows(rows, FOLDS, groups, 0, counts=weights == "counts")
        trials, right = before_of(rows, weights, held)
        smooth, errors = SMOOTH, ONE_SIDED
    trials |= try_all({smooth: fit_bare(calibrator_of(smooth))}, held)
    trials |= try_all({name: fit}, held, by_rows=True)
    kept, _ = choose(trials, held.sample, right=right, errors=errors, demanding=(name,), by="brier")
    return kept


def before_of(
    rows: Rows, weights: str, held: HeldOutCells
) -> tuple[dict[str, Trial], float | None]:
    """The scores of two classes as they came, and the p-value of the test that they are right."""
    trial = as_they_came(ScoreTable.from_rows(rows), held)
    grouped = held.sample.cluster is not None
    right = chance_that_right(held.predictions(trial), grouped=grouped, weights=weights)
    return {BEFORE: trial}, right


def _matrix_of(rows: Rows) -> ScoreMatrix:
    """The rows of several classes."""
    return ScoreMatrix(np.ascontiguousarray(rows.scores), rows.codes, rows.weight, rows.scale)


def score_map(name: str, rows: Rows, weights: str) -> Map:
    """A map of the scores alone, by the name of its method, fitted to all rows."""
    if len(rows.classes) == 2:
        table = ScoreTable.from_rows(rows)
        data: Any = table_in_rows(table, "counts") if weights == "counts" else table
    else:
        data = _matrix_of(rows)
        if name == BEFORE:
            return unchanged(data)
    fitted: Map = fit_bare(calibrator_of(name))(data).map_
    return fitted
