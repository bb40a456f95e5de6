"""No calibration: the baseline that every other method must beat, and the gate that asks for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.data.door import Limit, OneOf, Rows
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.fitting.base import DIRECTIONS, Calibrator
from calibrant.fitting.folds import FOLDS, split_rows_with_weight
from calibrant.fitting.held_out import (
    ERRORS_AHEAD,
    ERRORS_AHEAD_OF_CLASSES,
    Fit,
    HeldOutCells,
    HeldOutMatrix,
    Trial,
    choose,
    fit_copies,
    try_all,
    unchanged,
)
from calibrant.fitting.registry import BEFORE, to_calibrator
from calibrant.metrics.tests import chance_that_right
from calibrant.rules.base import Map
from calibrant.rules.piecewise import Piecewise
from calibrant.rules.sigmoids import Identity, Logistic


@dataclass(kw_only=True, eq=False, repr=False)
class Uncalibrated(Calibrator):
    """The scores as they are: probabilities unchanged, percentages divided by 100, margins through
    the sigmoid.

    Parameters
    ----------
    direction, pos_label, classes : see `Calibrator`

    Notes
    -----
    Scores that all lie in [0, 1] are kept (later ones clipped to it). Scores from 0 to more than 10
    and at most 100 are read as percentages, of which 0 and 100 are taken for rounded. Points (any
    score further from 0 than 100) stand for no probability: every row gets the share of positives.
    All others are read as logits and pass through σ. Cost O(1).

    Examples
    --------
    >>> Uncalibrated().fit([0.2, 0.9], [0, 1]).calibrate([0.3]).tolist()
    [0.3]
    >>> Uncalibrated().fit([-4.0, 3.0], [0, 1]).calibrate([0.0]).tolist()
    [0.5]
    >>> Uncalibrated().fit([12, 97], [0, 1]).calibrate([40]).tolist()
    [0.4]
    """

    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"direction": (DIRECTIONS,)}

    def _fit(self, table: ScoreTable) -> Map:
        kind = table.scale.kind
        if kind == "percentages":
            ends = np.array(table.percent_ends)
            return Piecewise.linear(ends, ends / 100.0)
        if kind == "points":
            # equal weights are no weights, and counts are repetitions, to the bit
            rows = table if table.is_whole else table_in_rows(table, "importance")
            return Piecewise.constant(rows.total_positive / rows.total)
        return Identity() if kind == "probabilities" else Logistic(0.0, (("x", 1.0),))


# --- The papers' rescalings of margins to [0, 1], by name -----------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class Rescale(Calibrator):
    """Squeeze scores into [0, 1] without looking at the labels.

    Parameters
    ----------
    formula : {"sigmoid", "minmax", "symmetric"}, default="sigmoid"
        ``"sigmoid"``: σ(f). ``"minmax"``: (f − min)/(max − min) [1]_. ``"symmetric"``:
        (f + a)/2a with a = max|f| [2]_.
    direction, pos_label, classes : see `Calibrator`

    Notes
    -----
    Extremes come from the fit data, results are clipped to [0, 1]. This is a change of scale, not
    a calibration: the result need not be a probability. A constant score maps to ½ under
    ``"minmax"``. Cost O(1) after the table.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> Rescale(formula="symmetric").fit([-2.0, 1.0], [0, 1]).calibrate([-2, 0, 1]).tolist()
    [0.0, 0.5, 0.75]
    """

    formula: str = "sigmoid"
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "formula": (OneOf(("sigmoid", "minmax", "symmetric")),),
        "direction": (DIRECTIONS,),
    }

    def _fit(self, table: ScoreTable) -> Map:
        if self.formula == "sigmoid":
            return Logistic(0.0, (("x", 1.0),))
        ends = table.scores[[0, -1]]
        if self.formula == "symmetric":
            a = float(np.abs(ends).max())
            ends = np.array([-a, a])
        return Piecewise.linear(ends, [0.0, 1.0]) if ends[0] < ends[1] else Piecewise.constant(0.5)


# --- The scores as they came on rows held out, and the gate of calibrators that see more ----------


def unchanged_trial(table: ScoreTable, held: HeldOutCells) -> Trial:
    """A trial of the scores as they came, on the cells held out of a table.

    How they are read depends on the whole table, not on a fold.
    """
    start = time.perf_counter()
    one = Uncalibrated().fit_table(table)
    seconds = time.perf_counter() - start
    trial = held.trial(one.map_(held.scores), ranks=True)
    maps = (one.map_,) * held.folds
    return replace(trial, map=one.map_, fitted=one, seconds=seconds, maps=maps)


#: what may be kept beside the scores as they came: a smooth curve; of several classes one factor
SMOOTH, FACTOR = "BLS", "temperature"


def choose_by_gate(rows: Rows, weights: str, name: str, fit: Fit, groups: Any) -> str:
    """The name of what is kept: the local rule, a smooth curve of the score, or the score itself.

    ``fit`` takes the numbers of the rows to learn from. It returns a function from the numbers of
    other rows to their probabilities. All three are judged by the Brier score, summed over
    several classes: a few rows of one class give a probability of exactly 0 or 1, whose log
    loss can be infinite. The rule is kept only if it is ahead of both by more than two standard
    errors. The curve of several classes is one temperature. ``weights`` is as in `Calibrator`.
    """
    several = len(rows.classes) > 2
    counts = np.bincount(rows.codes, minlength=2)
    if np.count_nonzero(counts >= FOLDS) < 2 if several else counts.min() < 2:
        return BEFORE
    held: HeldOutMatrix | HeldOutCells
    if several:
        matrix = _score_matrix(rows)
        held = HeldOutMatrix(matrix, *split_rows_with_weight(FOLDS, rows, groups, 0), weights)
        trials, p_value = {BEFORE: held.unchanged()}, None
        smooth, errors = FACTOR, ERRORS_AHEAD_OF_CLASSES
    else:
        held = HeldOutCells.of_rows(rows, FOLDS, groups, 0, counts=weights == "counts")
        trials, p_value = trial_before(rows, weights, held)
        smooth, errors = SMOOTH, ERRORS_AHEAD
    trials |= try_all({smooth: fit_copies(to_calibrator(smooth))}, held)
    trials |= try_all({name: fit}, held, by_rows=True)
    kept, _ = choose(
        trials, held.sample, p_value=p_value, errors=errors, demanding=(name,), by="brier"
    )
    return kept


def trial_before(
    rows: Rows, weights: str, held: HeldOutCells
) -> tuple[dict[str, Trial], float | None]:
    """The trial of scores as they came, and the p-value of the test that they are right."""
    trial = unchanged_trial(ScoreTable.from_rows(rows), held)
    grouped = held.sample.cluster is not None
    p_value = chance_that_right(held.predictions(trial), grouped=grouped, weights=weights)
    return {BEFORE: trial}, p_value


def _score_matrix(rows: Rows) -> ScoreMatrix:
    """The matrix of rows of several classes."""
    return ScoreMatrix(np.ascontiguousarray(rows.scores), rows.codes, rows.weight, rows.scale)


def fit_score_map(name: str, rows: Rows, weights: str) -> Map:
    """A map of the scores alone, fitted to all rows by the method of this name."""
    if len(rows.classes) == 2:
        table = ScoreTable.from_rows(rows)
        data: Any = table_in_rows(table, "counts") if weights == "counts" else table
    else:
        data = _score_matrix(rows)
        if name == BEFORE:
            return unchanged(data)
    fitted: Map = fit_copies(to_calibrator(name))(data).map_
    return fitted
