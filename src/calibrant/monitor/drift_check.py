"""Has P(y | score) changed? Two tables, or a table and a map."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import SCALES
from calibrant.estimators.limits import Number
from calibrant.export.map_given import fitted_of
from calibrant.metrics.arguments import check_number
from calibrant.metrics.first_look import FirstLook, first_look
from calibrant.metrics.weighted_cells import check_weights
from calibrant.monitor.change_models import (
    ComparedCells,
    Outcome,
    cells_of_map,
    cells_of_tables,
    expected_rate,
    fit,
    information_moments,
    reference_curve,
    remedies_of,
    stepwise_tests,
    terms_of,
)
from calibrant.monitor.common_cells import against_map, side_by_side
from calibrant.monitor.drift_value import Drift, DriftTest, Rates, Remedy, map_of_one_score
from calibrant.monitor.fit_facts import (
    FOLLOWS,
    follows_its_rows,
    known_count,
    known_rate,
    learned_from,
)

TESTS = ("intercept", "slope", "shape")
#: rows of the rarer class that each table must have for a test of the slope, and of the shape
SLOPE_CASES, SHAPE_CASES = 5.0, 10.0
#: the largest score; its square is still a float
LARGEST = 1e100


def check_drift(
    reference: Any,
    new: ScoreTable,
    *,
    calibrator: Any = None,
    level: float = 0.05,
    scale: str = "auto",
    least: float = 0.0,
    weights: str = "importance",
) -> Drift:
    """Has calibration changed since then, and what is to be done?

    Parameters
    ----------
    reference : ScoreTable, or a fitted calibrator, Fitted or Map
        Labelled scores from a time when all was well. If there are none, the calibrator: then its
        probabilities are what should come.
    new : ScoreTable
        Labelled scores of now, of the same kind: raw scores, or probabilities. See `score_table`
        for frames and files of any size.
    calibrator : fitted calibrator, Fitted or Map, optional
        Turns the scores of both tables into probabilities, and those are compared.
    level : float, default=0.05
        The chance of an alarm if nothing has changed.
    scale : {"auto", "logit", "raw"}, default="auto"
        What a slope multiplies: the logit of the score (by default if all scores are in [0, 1]),
        or the score itself. With a calibrator it is the logit of its probability.
    least : float, default=0.0
        The root mean square change of the probability that matters. With many rows anything is
        significant: the simplest remedy that leaves less than this is recommended.
    weights : {"importance", "counts"}, default="importance"
        Whether a weight says how much one row matters (then the scale of weights plays no part),
        or is a number of equal rows. Without weights both are the same.

    Returns
    -------
    Drift
        Prints as a table and two sentences. ``recommendation`` is "none", "intercept", "refit" or
        "new map"; ``update`` does the middle two.

    Notes
    -----
    The model is logit P(y = 1 | s) = g(s) + [row is new]·(δ₀ + δ₁z + Σ δ_j·b_j(s)). Both tables
    share g, a cubic spline of 3 to 40 knots (twice the fourth root of the rarer class); the b_j are
    three bends. There are three tests: δ₀ = 0; δ₁ = 0 given δ₀; δ_j = 0 given both. Each is
    Neyman's C(α) [1]_: an error in g counts only to second order, so that scores which only moved
    raise no alarm. If nothing has changed, the three are asymptotically independent, and each at
    1 − (1 − level)^⅓ makes ``level`` together. The highest test that finds something says what to
    do. Intercept and slope are Cox's [2]_, the ladder of remedies is that of Davis et al. [3]_.

    The level is that of one check. With n independent checks, the chance of at least one false
    alarm is 1 − (1 − level)ⁿ: 79 % for 30 checks at 0.05. So give each of them level/n, and only
    rows that came since the last one; or use `Monitor`.

    Only scores within the range of both tables are compared. The slope is tested if the rarer class
    has five rows in each table (by (Σw)²/Σw²), the shape if it has ten. A test that is left out
    keeps its share of the level. Variances are Σw²p(1 − p), with the Σw² of each class in up to
    sixteen parts of the table. A Gaussian prior of deviation 10 on all coefficients keeps the fit
    of separable data finite.

    A calibrator as the reference was itself fitted to rows. So variances are multiplied by
    1 + n_new/n_fit, where n is size·rate·(1 − rate). The provenance has these figures: those of the
    fit count, or those of the last update if it had fewer rows. Without them, as with a bare map,
    the reference is taken as exact. Rows to which the map gives exactly 0 or 1 are left out. If the
    calibrator was fitted on probabilities, scores outside [0, 1] are refused. An isotonic map
    follows the rows of its fit too closely: against it only the intercept is tested.

    Tables of more than 2,000 scores are pooled to that many cells. Costs O(m log m) for m scores,
    and O(cells·knots²) for each of a few dozen Newton steps.

    References
    ----------
    .. [1] J. Neyman, "Optimal asymptotic tests of composite statistical hypotheses", 1959.
    .. [2] D. Cox, "Two further applications of a model for binary regression", 1958,
       doi:10.1093/biomet/45.3-4.562.
    .. [3] S. Davis, R. Greevy, C. Fonnesbeck, T. Lasko, C. Walsh, M. Matheny, "A nonparametric
       updating method to correct clinical prediction model drift", 2019, doi:10.1093/jamia/ocz127.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 4, 20000)
    >>> old = ScoreTable.from_arrays(p, rng.random(20000) < p)
    >>> new = ScoreTable.from_arrays(p, rng.random(20000) < p / (p + 0.7 * (1 - p)))
    >>> drift = check_drift(old, new)
    >>> drift.recommendation, round(drift.shift, 2)  # the odds grew by 1/0.7
    ('intercept', 0.37)
    >>> check_drift(old, old).recommendation
    'none'
    """
    _check_table(new, "new")
    check_weights(weights)
    if not SCALES.allows(scale):
        raise ParameterError(f"scale must be {SCALES}, but {scale!r} came.")
    level, least = check_number("level", level, 0.0, 1.0), check_least(least)
    if isinstance(reference, ScoreTable):
        found = _two_tables(reference, new, calibrator, scale, weights)
    elif calibrator is None:
        found = _map_and_table(reference, new, scale, weights)
    else:
        raise InputError(
            "calibrator= turns the scores of two tables into probabilities, but the reference is "
            f"{type(reference).__name__}. Leave calibrator out, or pass a ScoreTable as reference."
        )
    return _drift(found, level, least)


class _Compared(NamedTuple):
    """The cells that are compared, and what is known of both sides beside them.

    ``cases`` are the rows of the rarer class that slope and shape can be tested with. Of pairs, the
    first entry is about the reference.
    """

    cells: ComparedCells
    cases: float
    rates: tuple[float | None, float]
    weights: tuple[float | None, float]
    look: FirstLook
    notes: list[str]
    scale: str = "logit"
    calibrated: bool = True
    distance: float | None = None


def _two_tables(
    reference: ScoreTable, new: ScoreTable, calibrator: Any, scale: str, weights: str
) -> _Compared:
    _check_table(reference, "reference")
    distance = _distance(reference, new)
    if calibrator is not None:
        _refuse_raw(scale)
        map_ = map_of_one_score(calibrator)
        _refuse_other_kind(calibrator, reference=reference, new=new)
        reference, new = reference.through(map_), new.through(map_)
    by_logit, notes = _axis(reference, new, scale)
    first, second, more = side_by_side(reference, new, by_logit, weights)
    groups = (first, second)
    if not (any(g.negative.sum() for g in groups) and any(g.positive.sum() for g in groups)):
        raise InputError(
            "both classes must occur where the tables have scores in common, but one never does: "
            "there is nothing to compare. Gather more rows."
        )
    return _Compared(
        cells_of_tables(first, second),
        min(first.rarer, second.rarer),
        (reference.total_positive / reference.total, new.total_positive / new.total),
        (reference.total, new.total),
        first_look(new, weights),
        notes + more,
        "logit" if by_logit else "raw",
        calibrator is not None,
        distance,
    )


def _map_and_table(calibrator: Any, new: ScoreTable, scale: str, weights: str) -> _Compared:
    _refuse_raw(scale)
    map_ = map_of_one_score(calibrator)
    _refuse_other_kind(calibrator, new=new)
    group, notes = against_map(new, map_, weights)
    fitted = fitted_of(calibrator)
    learned = None if fitted is None else learned_from(fitted.provenance)
    rate, weight, inflation, cases = None, None, 1.0, group.rarer
    if fitted is None or learned is None:
        notes.append("how many rows the map was fitted to is not known: it is taken as exact.")
    else:
        rate, weight = known_rate(fitted), known_count(fitted.provenance.get("weight"))
        inflation += group.information / learned
    if fitted is not None and follows_its_rows(fitted):
        cases = 0.0
        notes.append(FOLLOWS)
    return _Compared(
        cells_of_map(group, inflation),
        cases,
        (None if rate is None else float(rate), new.total_positive / new.total),
        (weight, new.total),
        first_look(new.through(map_), weights),
        notes,
    )


# --- the answer ---------------------------------------------------------------------------------


def _drift(found: _Compared, level: float, least: float) -> Drift:
    cells = found.cells
    count = 1 + (found.cases >= SLOPE_CASES) + (found.cases >= SHAPE_CASES)
    first = fit(cells, cells.curve)
    steps = terms_of(cells, first.p, count)
    outcomes = stepwise_tests(cells, first, steps)
    if not outcomes:
        raise InputError(
            "the scores of both tables must overlap, but they hardly do: what is new and what is a "
            "score cannot be told apart. Make sure that both hold scores of one kind."
        )
    tests = tuple(
        DriftTest(name, outcome.statistic, outcome.df, outcome.p_value)
        for name, outcome in zip(TESTS, outcomes, strict=False)
    )
    smallest = min(test.p_value for test in tests)
    curve = reference_curve(cells, outcomes[-1].model)
    remedies = remedies_of(cells, curve, steps, outcomes)
    return Drift(
        recommendation=_recommended(tests, remedies, level, least),
        p_value=-math.expm1(len(TESTS) * math.log1p(-smallest)) if smallest < 1.0 else 1.0,
        tests=tests,
        remedies=remedies,
        shift=float(outcomes[0].model.theta[-1]),
        shift_error=math.sqrt(float(outcomes[0].covariance[0, 0])),
        line=_line(cells, first.p, outcomes),
        rates=Rates(found.rates[0], expected_rate(cells, curve), found.rates[1]),
        distance=found.distance,
        weights=found.weights,
        size=float(cells.weight @ cells.new),
        level=level,
        least=least,
        scale=found.scale,
        calibrated=found.calibrated,
        notes=(*found.notes, *([] if FOLLOWS in found.notes else _left_out(len(outcomes), count))),
        look=found.look,
    )


def _recommended(
    tests: tuple[DriftTest, ...], remedies: tuple[Remedy, ...], level: float, least: float
) -> str:
    """The remedy for the highest step found, or the first one that leaves less than ``least``."""
    each = -math.expm1(math.log1p(-level) / len(TESTS))
    highest = max((at for at, test in enumerate(tests, start=1) if test.p_value <= each), default=0)
    for remedy in remedies[:highest]:
        if remedy.leaves < least:
            return remedy.name
    return remedies[highest].name


def _line(cells: ComparedCells, p: Array, outcomes: list[Outcome]) -> tuple[float, float]:
    """The line a + b·z of the second model; the shift alone where there is none."""
    if len(outcomes) < 2:
        return float(outcomes[0].model.theta[-1]), 0.0
    mean, deviation = information_moments(cells, p)
    level, slope = outcomes[1].model.theta[-2:].tolist()
    return level - slope * mean / deviation, slope / deviation


def _left_out(done: int, count: int) -> list[str]:
    """Why a test was left out."""
    if done == len(TESTS):
        return []
    names = " and ".join(TESTS[done:])
    if done < count:
        return [f"{names}: not tested, since the tables have too few different scores in common."]
    return [
        f"{names}: not tested, for want of rows of the rarer class (each table needs "
        f"{SLOPE_CASES:g} for the slope and {SHAPE_CASES:g} for the shape)."
    ]


# --- input --------------------------------------------------------------------------------------


def _refuse_other_kind(calibrator: Any, **tables: ScoreTable) -> None:
    """Refuse scores outside [0, 1] for a calibrator of probabilities; a bare map takes any."""
    fitted = fitted_of(calibrator)
    known = None if fitted is None else fitted.expects
    if known is None or not known.probabilities:
        return
    for name, table in tables.items():
        if not table.looks_like_probabilities:
            raise InputError(
                f"the scores of the {name} table must be probabilities in [0, 1], as those are "
                f"that the calibrator was fitted on ({known.low:.6g} to {known.high:.6g}), but "
                f"they are from {table.scores[0]:g} to {table.scores[-1]:g}. Divide percentages by "
                "100; if they are right, since the fit only happened to have none outside, pass "
                "the calibrator's map."
            )


def _check_table(table: Any, name: str) -> None:
    if not isinstance(table, ScoreTable):
        raise InputError(
            f"{name} must be a ScoreTable, but {type(table).__name__} came. Make one by "
            "ScoreTable.from_arrays(scores, y), or by calibrant.score_table of a frame or of files."
        )
    if not table:
        raise InputError(f"the {name} table must hold at least one score, but it is empty.")


def check_least(least: Any, most: float = 1.0) -> float:
    """The least change that matters, which must be a number from 0 to ``most``."""
    limit = Number(0.0, most)
    if not limit.allows(least):
        raise ParameterError(f"least must be {limit}, but {least!r} came.")
    return float(least)


def _refuse_raw(scale: str) -> None:
    if scale == "raw":
        raise ParameterError(
            "with a calibrator its probabilities are compared, so scale must be 'auto' or 'logit', "
            "but 'raw' came."
        )


def _axis(reference: ScoreTable, new: ScoreTable, scale: str) -> tuple[bool, list[str]]:
    """Whether to compare by the logit, and a note where the tables look different."""
    inside = [table.looks_like_probabilities for table in (reference, new)]
    if scale == "logit" and not all(inside):
        raise InputError(
            "for scale='logit' all scores must be in [0, 1], but some are not. Use scale='raw'."
        )
    if all(inside) and scale != "raw":
        return True, []
    largest = max(float(np.abs(table.scores[[0, -1]]).max()) for table in (reference, new))
    if largest > LARGEST:
        raise InputError(
            f"scores must be at most {LARGEST:g} in size to be compared, but {largest:g} came. "
            "Rescale those of both tables."
        )
    if scale == "raw" or not any(inside):
        return False, []
    return False, [
        "the scores of one table are all in [0, 1], those of the other are not: make sure that "
        "both are of one kind."
    ]


def _distance(first: ScoreTable, second: ScoreTable) -> float:
    """The largest difference of two distribution functions."""
    at = np.concatenate((first.scores, second.scores))
    return float(np.abs(_below(first, at) - _below(second, at)).max())


def _below(table: ScoreTable, at: Array) -> Array:
    share = np.cumsum(table.weight) / table.total
    return np.append(0.0, share)[np.searchsorted(table.scores, at, side="right")]
