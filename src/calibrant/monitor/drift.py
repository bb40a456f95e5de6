"""Has P(y | score) changed? Two tables, or a table and a map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.columns import as_in_fit
from calibrant.data.documents import recorded_entries
from calibrant.data.door import Number
from calibrant.data.frozen import Frozen, read_only
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import SCALES
from calibrant.fitting.fitted import Fitted, FittedCalibrator, map_of, to_fitted_map
from calibrant.losses import logit
from calibrant.metrics.headlines import (
    ClassLook,
    ClassNames,
    FirstLook,
    LabelNames,
    class_look,
    first_look,
)
from calibrant.metrics.tables import (
    NOT_WHOLE,
    check_number,
    check_weights,
    class_table,
    holm_adjusted,
    take_cells,
)
from calibrant.monitor.change_models import (
    ComparedCells,
    Group,
    Remedy,
    cells_of_tables,
    change_terms,
    expected_rate,
    fit_change,
    information_mean_and_deviation,
    remedies_of,
    stepwise_tests,
)
from calibrant.monitor.prior import (
    FOLLOWS,
    effective_size,
    fit_information,
    known_base_rate,
    positive_number,
)
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    aligned,
    json_ready,
    shown_p,
    shown_percent,
    shown_value,
    sure_p,
)
from calibrant.rules.base import Map, VectorMap, in_blocks
from calibrant.rules.sigmoids import Identity

TESTS = ("intercept", "slope", "shape")
#: rows of the rarer class that each table must have for a test of the slope, and of the shape
SLOPE_CASES, SHAPE_CASES = 5.0, 10.0
#: the largest score; its square is still a float
LARGEST = 1e100


def check_drift(
    reference: Any,
    new: ScoreTable,
    *,
    calibrator: FittedCalibrator | Map | None = None,
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
    raise no alarm. Of the first two the likelihood ratio is computed as well, and the smaller of
    the statistics counts. If nothing has changed, the three are asymptotically independent, and
    each at 1 − (1 − level)^⅓ makes ``level`` together. The highest test that finds something says
    what to do. Intercept and slope are Cox's [2]_, the ladder of remedies is that of Davis et
    al. [3]_.

    The level is that of one check. With n independent checks, the chance of at least one false
    alarm is 1 − (1 − level)ⁿ: 79 % for 30 checks at 0.05. So give each of them level/n, and only
    rows that came since the last one; or use `Monitor`.

    Only scores within the range of both tables are compared. The slope is tested if the rarer class
    has five rows in each table (by (Σw)²/Σw²), the shape if it has ten. A test that is left out
    keeps its share of the level. Variances are Σw²p(1 − p), with the Σw² of each class in up to
    sixteen parts of the table. A Gaussian prior of deviation 10 on all coefficients keeps the fit
    of separable data finite.

    A calibrator as the reference was itself fitted to rows. So variances are multiplied by 1 +
    n_new/n_fit, where n is size·rate·(1 − rate), of the fit with half a row more in each class. The
    provenance has these figures: those of the fit count, or those of the last update if it had
    fewer rows. Without them, as with a bare map, the reference is taken as exact. Rows to which the
    map gives exactly 0 or 1 are left out. If the calibrator was fitted on probabilities, scores
    outside [0, 1] are refused. An isotonic map follows the rows of its fit too closely: against it
    only the intercept is tested.

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
        found = _cells_of_two_tables(reference, new, calibrator, scale, weights)
    elif calibrator is None:
        found = _cells_beside_map(reference, new, scale, weights)
    else:
        raise InputError(
            "calibrator= turns the scores of two tables into probabilities, but the reference is "
            f"{type(reference).__name__}. Leave calibrator out, or pass a ScoreTable as reference."
        )
    return _drift_of(found, level, least)


class _Compared(NamedTuple):
    """The cells to compare, and facts on both sides that are shown beside the tests.

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


def _cells_of_two_tables(
    reference: ScoreTable, new: ScoreTable, calibrator: Any, scale: str, weights: str
) -> _Compared:
    """The cells of two tables: of their scores, or of a calibrator's probabilities."""
    _check_table(reference, "reference")
    at = np.concatenate((reference.scores, new.scores))
    below = [
        np.append(0.0, np.cumsum(t.weight) / t.total)[np.searchsorted(t.scores, at, side="right")]
        for t in (reference, new)
    ]
    distance = float(np.abs(below[0] - below[1]).max())  # Kolmogorov and Smirnov
    if calibrator is not None:
        _refuse_raw_scale(scale)
        map_ = map_of_one_score(calibrator)
        _refuse_other_kind(calibrator, reference=reference, new=new)
        reference, new = reference.through(map_), new.through(map_)
    by_logit, notes = _reads_logits(reference, new, scale)
    first, second, more = cells_in_common(reference, new, by_logit, weights)
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


def _cells_beside_map(calibrator: Any, new: ScoreTable, scale: str, weights: str) -> _Compared:
    """The cells of one table, beside the probabilities that a calibrator gives."""
    _refuse_raw_scale(scale)
    map_ = map_of_one_score(calibrator)
    _refuse_other_kind(calibrator, new=new)
    group, notes = cells_on_map_logits(new, map_, weights)
    fitted = to_fitted_map(calibrator)
    learned = None if fitted is None else fit_information(fitted.provenance)
    rate, weight, inflation, cases = None, None, 1.0, group.rarer
    if fitted is None or learned is None:
        notes.append("how many rows the map was fitted to is not known: it is taken as exact.")
    else:
        rate, weight = known_base_rate(fitted), positive_number(fitted.provenance.get("weight"))
        inflation += group.information / learned
    chosen = "" if fitted is None else fitted.provenance.get("chosen", fitted.method)
    if str(chosen).lower() == "isotonic":
        cases = 0.0
        notes.append(FOLLOWS)
    cells = len(group.z)  # their z are the logits of the map, so that no curve is left to fit
    return _Compared(
        ComparedCells(group, np.ones(cells), group.z, np.empty((0, cells)), inflation),
        cases,
        (None if rate is None else float(rate), new.total_positive / new.total),
        (weight, new.total),
        first_look(new.through(map_), weights),
        notes,
    )


# --- the answer ---------------------------------------------------------------------------------


def _drift_of(found: _Compared, level: float, least: float) -> Drift:
    """The result of the comparison: tests, remedies, and what to do."""
    cells = found.cells
    count = 1 + (found.cases >= SLOPE_CASES) + (found.cases >= SHAPE_CASES)
    first = fit_change(cells, cells.curve)
    steps = change_terms(cells, first.p, count)
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
    untested = [] if FOLLOWS in found.notes else _untested_note(len(outcomes), count)
    theta = outcomes[-1].model.theta[: len(cells.curve)]
    curve = cells.offset + theta @ cells.curve  # the logit of the reference in every cell
    remedies = remedies_of(cells, curve, steps, outcomes)
    shift = float(outcomes[0].model.theta[-1])
    line = shift, 0.0
    if len(outcomes) > 1:  # a + b·z by the second model
        mean, deviation = information_mean_and_deviation(cells, first.p)
        level_of_mean, slope = outcomes[1].model.theta[-2:].tolist()
        line = level_of_mean - slope * mean / deviation, slope / deviation
    return Drift(
        recommendation=_recommendation(tests, remedies, level, least),
        p_value=-math.expm1(len(TESTS) * math.log1p(-smallest)) if smallest < 1.0 else 1.0,
        tests=tests,
        remedies=remedies,
        shift=shift,
        shift_error=math.sqrt(float(outcomes[0].covariance[0, 0])),
        line=line,
        rates=Rates(found.rates[0], expected_rate(cells, curve), found.rates[1]),
        distance=found.distance,
        weights=found.weights,
        size=float(cells.weight @ cells.new),
        level=level,
        least=least,
        scale=found.scale,
        calibrated=found.calibrated,
        notes=(*found.notes, *untested),
        look=found.look,
    )


def _recommendation(
    tests: tuple[DriftTest, ...], remedies: tuple[Remedy, ...], level: float, least: float
) -> str:
    """The name of the remedy for the largest kind of change that was found.

    A smaller one is enough if it leaves less than ``least``.
    """
    each = -math.expm1(math.log1p(-level) / len(TESTS))
    highest = max((at for at, test in enumerate(tests, start=1) if test.p_value <= each), default=0)
    for remedy in remedies[:highest]:
        if remedy.leaves < least:
            return remedy.name
    return remedies[highest].name


def _untested_note(done: int, count: int) -> list[str]:
    """A note on why slope or shape was not tested; nothing where all were."""
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
    """Refuse scores outside [0, 1] for a calibrator of probabilities."""
    fitted = to_fitted_map(calibrator)
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
    """Refuse anything but a table with rows."""
    if not isinstance(table, ScoreTable):
        raise InputError(
            f"{name} must be a ScoreTable, but {type(table).__name__} came. Make one by "
            "ScoreTable.from_arrays(scores, y), or by calibrant.score_table of a frame or of files."
        )
    if not table:
        raise InputError(f"the {name} table must hold at least one score, but it is empty.")


def check_least(least: Any, most: float = 1.0) -> float:
    """The least change that matters, a number from 0 to ``most``; others are refused."""
    limit = Number(0.0, most)
    if not limit.allows(least):
        raise ParameterError(f"least must be {limit}, but {least!r} came.")
    return float(least)


def _refuse_raw_scale(scale: str) -> None:
    """Refuse scale="raw" where probabilities are compared."""
    if scale == "raw":
        raise ParameterError(
            "with a calibrator its probabilities are compared, so scale must be 'auto' or 'logit', "
            "but 'raw' came."
        )


def _reads_logits(reference: ScoreTable, new: ScoreTable, scale: str) -> tuple[bool, list[str]]:
    """Whether logits are compared, or the scores themselves; and a note where the tables differ in
    kind."""
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


# --- Has a calibrator of several classes changed? Each class against the rest, and all together ---


@dataclass(frozen=True, eq=False, repr=False)
class ClassDrift(PrintsAsTable, Frozen):
    """Whether a calibrator of several classes is still right. Prints as a table.

    Attributes
    ----------
    recommendation : {"none", "new map"}
        Keep the calibrator, or fit another to new rows.
    classes : tuple of labels
    drifts : tuple of Drift
        The check of each class against the rest, each at the level that Holm's method gives it.
    adjusted : tuple of float
        Holm's p-value of each class.
    level : float
        The chance of an alarm in any class if nothing has changed.
    look : ClassLook or None
        Whether the calibrator's probabilities say anything of the new rows, and whether columns
        look swapped.
    """

    recommendation: str
    classes: tuple[Any, ...]
    drifts: tuple[Drift, ...]
    adjusted: tuple[float, ...]
    level: float
    look: ClassLook | None = None

    @property
    def found(self) -> tuple[Any, ...]:
        """The classes in which a change was found, however small."""
        pairs = zip(self.classes, self.adjusted, strict=True)
        return tuple(label for label, p in pairs if p <= self.level)

    def in_words(self, names: ClassNames | None = None) -> tuple[str, str]:
        """What was found, and what to do, in two sentences."""
        found, todo = self._change_in_words()
        if self.look is None or not self.look.useless:
            return found, todo
        first = self.look.headline(names or ClassNames.of(self.classes, face="check"))
        if self.recommendation != "none":
            todo = "Find out why before anything is fitted."
        return f"{first} {found}", todo

    def _change_in_words(self) -> tuple[str, str]:
        """What was found, and what to do, if the scores themselves are sound."""
        k, changed = len(self.classes), self.found
        smallest = f"smallest {sure_p(min(self.adjusted))}, by Holm's step-down"
        if not changed:
            return (
                f"No change was found in any of the {k} classes ({smallest}): what differs is "
                "within chance.",
                "Keep the calibrator.",
            )
        shown = ", ".join(map(repr, changed[:8])) + (", …" if len(changed) > 8 else "")
        said = f"A change was found in {len(changed)} of {k} classes: {shown} ({smallest})."
        if self.recommendation == "none":
            return f"{said} It is smaller than what matters here.", "Keep the calibrator."
        return said, "Fit a calibrator anew to new rows."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        rows = zip(self.classes, self.adjusted, self.drifts, strict=True)
        return {
            "recommendation": self.recommendation,
            "level": self.level,
            "correction": "holm",
            "found": list(self.found),
            "look": None if self.look is None else json_ready(self.look),
            "by_class": [
                {"class": label, "p_adjusted": p, **drift.to_dict()} for label, p, drift in rows
            ],
        }

    def _table(self) -> ResultTable:
        """A line for each class."""
        titles = ("expected", "observed", "shift", "p-value", "Holm's p")
        columns = [TableColumn("class", "left"), *map(TableColumn, titles)]
        columns.append(TableColumn("change", "left"))
        rows = []
        for label, drift, p in zip(self.classes, self.drifts, self.adjusted, strict=True):
            rates = map(shown_percent, (drift.rates.expected, drift.rates.new))
            shift = f"{drift.shift:+.3f} ± {2 * drift.shift_error:.3f}".replace("-", "−")
            changed = "–" if p > self.level else _CHANGES[drift.recommendation]
            tests = (shown_p(drift.p_value), shown_p(p))
            rows.append(TableRow((str(label), *rates, shift, *tests, changed)))
        below = "each class against the rest; shift: of its log-odds, ± two standard errors"
        return ResultTable(columns, rows, [below, *self._notes()])

    def _notes(self) -> list[str]:
        """The notes of all classes, those in common once."""
        said: dict[str, list[str]] = {}
        for label, drift in zip(self.classes, self.drifts, strict=True):
            for note in drift.notes:
                said.setdefault(f"{note.split('. ')[0].rstrip('.')}.", []).append(repr(label))
        everyone = len(self.classes)
        return [
            f"note: {'' if len(who) == everyone else ', '.join(who[:8]) + ': '}{note}"
            for note, who in said.items()
        ]


#: what kind of change a recommendation for one class stands for
_CHANGES = {
    "none": "too small to matter",
    "intercept": "a shift",
    "refit": "a slope",
    "new map": "the shape",
}


def check_class_drift(
    calibrator: Any,
    scores: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    level: float = 0.05,
    least: float = 0.0,
    weights: str = "importance",
) -> ClassDrift:
    """Do the classes still come as often as a calibrator of several classes says?

    Parameters
    ----------
    calibrator : fitted calibrator or Fitted
        Its probabilities are what should come.
    scores : array-like of shape (n, k)
        Scores of now, a column for each of the calibrator's classes.
    y : array-like of shape (n,)
        Labels of now.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    level : float, default=0.05
        The chance of an alarm in any class if nothing has changed.
    least, weights
        As in `check_drift`.

    Returns
    -------
    ClassDrift

    Notes
    -----
    If the calibrator is right, class c comes in a share p_c of the rows with this p_c, however the
    scores move. So `check_drift` compares the p_c of each class with how often that class came. The
    calibrator has an error of its own, which is known from the weight of the class in its fit.
    Holm's step-down holds ``level`` for all classes together, however they depend on each other.
    Old rows are no reference here: what one column means depends on the others, so that scores
    which only moved would raise an alarm. O(n log n) for each class.

    The error of the calibrator is allowed for as if new rows were like those of its fit. This was
    simulated at the level 0.05 with vector and matrix scaling, 150 to 300 runs each. There were
    alarms in 4 to 8 % of the runs with as many new rows as the fit had. With four times as many,
    and scores that moved far, there were alarms in 9 to 11 %.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 4000)
    >>> y = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> c = cal.VectorScaling().fit(p[:2000], y[:2000])
    >>> drift = check_class_drift(c, p[2000:], y[2000:])
    >>> drift.recommendation, drift.found
    ('none', ())
    >>> later = np.where(rng.random(2000) < 0.2, 2, y[2000:])  # the last class comes more often
    >>> check_class_drift(c, p[2000:], later).found
    (0, 1, 2)
    """
    level = check_number("level", level, 0.0, 1.0)
    fitted = to_fitted_map(calibrator)
    if fitted is None or not isinstance(fitted.map, VectorMap) or not fitted.map.distribution:
        raise InputError(
            "the calibrator must be one of several classes, fitted or loaded, but "
            f"{type(calibrator).__name__} came. For one score use check_drift."
        )
    scores = as_in_fit(scores, fitted.provenance, fitted.classes)
    new, _ = read_matrix(scores, y, sample_weight, list(fitted.classes))
    matrix = ScoreMatrix(fitted.predict_proba(new.scores), new.codes, new.weight)

    def checked(column: int, at: float) -> Drift:
        reference, table = _reference_of_class(fitted, column), class_table(matrix, column)
        return check_drift(reference, table, level=at, least=least, weights=weights)

    drifts = [checked(column, level) for column in range(matrix.n_classes)]
    adjusted = holm_adjusted([drift.p_value for drift in drifts])
    order = sorted(range(len(drifts)), key=lambda column: drifts[column].p_value)
    for rank, column in enumerate(order):
        if adjusted[column] <= level:
            drifts[column] = checked(column, level / (len(drifts) - rank))
    pairs = zip(drifts, adjusted, strict=True)
    todo = any(p <= level and drift.recommendation != "none" for drift, p in pairs)
    recommendation = "new map" if todo else "none"
    look = class_look(matrix, weights)
    return ClassDrift(recommendation, fitted.classes, tuple(drifts), adjusted, level, look)


def _reference_of_class(fitted: Fitted, column: int) -> Fitted:
    """A calibrator of one class's probability, with facts on the fit of that class."""
    facts = fitted.provenance
    known = {name: facts[name] for name in ("weight", "effective_size") if name in facts}
    classes = facts.get("class_weights")
    if isinstance(classes, tuple) and len(classes) == len(fitted.classes):
        known["positive_weight"] = classes[column]
    # where each class has an isotonic map against the rest, it is tested as one
    told = f"{facts.get('chosen', '')} {fitted.params.get('calibrator', '')}".lower()
    method = "Isotonic" if "isotonic" in told else fitted.method
    return Fitted(Identity(), (0, 1), 1, method, {}, known)


# --- What `check_drift` returns: a value that prints as a table and two sentences -----------------


class DriftTest(NamedTuple):
    """The test of intercept, slope or shape."""

    name: str
    statistic: float
    df: int
    p_value: float


class Rates(NamedTuple):
    """Shares of positives: of the reference, expected in the new table, and seen in it.

    ``reference`` is that of the reference (None if not known), ``expected`` what the new table
    would have if only its scores had changed, and ``new`` what it has.
    """

    reference: float | None
    expected: float
    new: float


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Frozen):
    """Whether P(y | score) has changed, by how much, and what to do.

    Attributes
    ----------
    recommendation : {"none", "intercept", "refit", "new map"}
        Keep the map; add `shift` to its logit; correct its logit by a line; fit another map.
    p_value : float
        The chance of at least this evidence if nothing has changed: 1 − (1 − smallest p)³.
    tests : tuple of DriftTest
        Those of intercept, slope and shape that the data allow. Each raises the alarm at
        1 − (1 − level)^⅓.
    remedies : tuple of Remedy
        What each would save and leave.
    shift, shift_error : float
        What was added to the logit if nothing else changed, and its standard error.
    line : (float, float)
        What was added to the logit if the change is a line: a + b·z. Here z is the logit of what
        was compared (on the raw scale the score itself). b is 0 if the slope was not tested.
    rates : Rates
    distance : float, or None
        How far the scores themselves moved: the largest difference of the two distribution
        functions (Kolmogorov and Smirnov). It has no part in the tests.
    weights : (float or None, float)
        Total weight of the reference and of the new table.
    size : float
        How many rows of equal weight the new rows that were compared are worth.
    level, least : float
        As given to `check_drift`.
    scale : {"logit", "raw"}
    calibrated : bool
        Whether a calibrator's probabilities were compared; else whatever the tables hold.
    notes : tuple of str
        What deserves a look.
    look : FirstLook or None
        Which way the new scores run (or the calibrator's probabilities), and whether they say
        anything.
    """

    recommendation: str
    p_value: float
    tests: tuple[DriftTest, ...]
    remedies: tuple[Remedy, ...]
    shift: float
    shift_error: float
    line: tuple[float, float]
    rates: Rates
    distance: float | None
    weights: tuple[float | None, float]
    size: float
    level: float
    least: float
    scale: str
    calibrated: bool
    notes: tuple[str, ...] = ()
    look: FirstLook | None = None

    @property
    def wrong_way(self) -> bool:
        """Whether the new scores run the wrong way, or mending them would turn them round."""
        turned = self.look is not None and self.look.found == "wrong way"
        falls = self.calibrated and self.recommendation == "refit" and self.line[1] <= -1.0
        return turned or falls

    @property
    def found(self) -> bool:
        """Whether a change was found, however small."""
        return self.p_value <= self.level

    @property
    def change(self) -> float:
        """The root mean square change of the probability over the new table's scores."""
        return self.remedies[0].leaves

    def update(self, calibrator: Any) -> Fitted:
        """The calibrator, changed as recommended: by ``"intercept"`` or ``"refit"``.

        Its map is followed by σ(a + b·logit p). If the map is a sigmoid of a line, a map of steps,
        or ends in an earlier update, its own numbers are changed instead. So a calibrator does not
        grow with its updates. It is saved and exported like any other.

        Parameters
        ----------
        calibrator : fitted calibrator, Fitted or Map
            The one that the check was about.

        Returns
        -------
        Fitted
            The calibrator as it came if nothing is to be done. ``provenance["updated"]`` keeps a
            record of this and all earlier updates: what was done, why, and on how much data.

        Notes
        -----
        An intercept is the same whatever was compared, so it can follow any calibrator that was
        right for the reference. A slope belongs to the logit that it was found on. So it is refused
        if the check did not know the calibrator (as the reference or as ``calibrator=``), and if
        it is not above 0. A new map cannot be made of these figures: fit one to new rows. O(1).

        Examples
        --------
        >>> import calibrant as cal
        >>> from calibrant.monitor import check_drift
        >>> from calibrant.maps import Identity
        >>> new = cal.ScoreTable.from_counts([0.2, 0.5, 0.8], [600, 300, 100], [400, 700, 900])
        >>> drift = check_drift(Identity(), new)
        >>> drift.recommendation
        'intercept'
        >>> drift.update(Identity()).calibrate([0.2, 0.5, 0.8]).round(1).tolist()
        [0.4, 0.7, 0.9]
        """
        map_ = map_of_one_score(calibrator)
        fitted = to_fitted_map(calibrator) or Fitted(map_, (0, 1), 1)
        added = {"intercept": (self.shift, 0.0), "refit": self.line, "none": None}
        if self.recommendation not in added:
            raise InputError(
                "the shape of P(y | score) has changed, which no shift or slope of the logit "
                "follows. Fit a calibrator to new rows, and save that."
            )
        if self.recommendation == "refit" and not self.calibrated:
            raise InputError(
                "a slope belongs to the logit that it was found on, and two tables do not say "
                "whether they hold this calibrator's probabilities. Check again with "
                "calibrator=..., or refit the calibrator to new rows."
            )
        line = added[self.recommendation]
        if line is None:
            return fitted
        if self.wrong_way:
            raise InputError(
                "the calibrator's probabilities must still rise with the truth, but the slope that "
                f"mends them is {1.0 + line[1]:.3g}: the scores run the wrong way, upside down. "
                "Find out why before anything is fitted."
            )
        facts = fitted.provenance
        note = {
            "remedy": self.recommendation,
            "intercept": line[0],
            "slope": 1.0 + line[1],
            "weight": self.weights[1],
            "effective_size": self.size,
            "rate": self.rates.new,
            "p_value": self.p_value,
            "after_adjustments": len(recorded_entries(facts, "prior")),
        }
        return replace(
            fitted,
            rule=map_.corrected(line[0], 1.0 + line[1]),
            provenance={**facts, "updated": [*recorded_entries(facts, "updated"), note]},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "recommendation": self.recommendation,
            "found": self.found,
            "p_value": self.p_value,
            "level": self.level,
            "least": self.least,
            "change": self.change,
            "tests": [test._asdict() for test in self.tests],
            "remedies": [remedy._asdict() for remedy in self.remedies],
            "shift": self.shift,
            "shift_error": self.shift_error,
            "line": list(self.line),
            "rates": self.rates._asdict(),
            "distance": self.distance,
            "weights": dict(zip(("reference", "new"), self.weights, strict=True)),
            "size": self.size,
            "scale": self.scale,
            "calibrated": self.calibrated,
            "notes": list(self.notes),
            "look": None if self.look is None else json_ready(self.look),
            "wrong_way": self.wrong_way,
        }

    def __str__(self) -> str:
        return "\n".join((*drift_table(self), *drift_facts(self), *drift_in_words(self)))

    __repr__ = __str__


def map_of_one_score(calibrator: Any) -> Map:
    """The map of a calibrator of one score; a calibrator of anything else is refused."""
    if not isinstance(calibrator, Map) and not hasattr(calibrator, "to_fitted"):
        raise InputError(
            "the calibrator must be fitted, what load returns, or a map, but "
            f"{type(calibrator).__name__} came."
        )
    map_ = map_of(calibrator)
    if map_.segments is not None:
        raise InputError(
            "a calibrator of segments has a map for each of them. Check each segment's table by "
            "itself, against its own map."
        )
    if isinstance(map_, VectorMap):
        raise InputError(
            "a calibrator of several classes has no table of one score. Use check_class_drift, "
            "which checks each class against the rest."
        )
    return map_


# --- words ----------------------------------------------------------------------------------------

HEAD = ("what changes", "statistic", "df", "p-value", "remedy", "saves (nats/row)", "leaves (RMS)")
LEFT = ("what changes", "remedy")


def drift_table(drift: Drift) -> list[str]:
    """The lines of a drift's table: a test and its remedy in each."""
    changes = [("nothing", "", "", "")]
    for test in drift.tests:
        figures = (f"{test.statistic:.2f}", str(test.df), shown_p(test.p_value))
        changes.append((test.name, *figures))
    rows = [
        (*change, name, shown_value(saves), shown_value(leaves))
        for change, (name, saves, leaves) in zip(changes, drift.remedies, strict=True)
    ]
    return aligned([HEAD, *rows], ["left" if title in LEFT else "right" for title in HEAD])


def drift_facts(drift: Drift) -> list[str]:
    """The lines below a drift's table: sizes, rates, and notes."""
    old, new = drift.weights
    rates = drift.rates
    sizes = f"weight {new:,.10g}" if old is None else f"weight {old:,.10g} then, {new:,.10g} now"
    then = "" if rates.reference is None else f"{shown_percent(rates.reference)} then, "
    expected, came = shown_percent(rates.expected), shown_percent(rates.new)
    shares = f"positive: {then}{expected} expected now, {came} came"
    lines = [f"{sizes}; {shares}"]
    if drift.distance is not None:
        lines.append(
            f"the scores themselves moved by {drift.distance:.3f} (KS); no part of the test"
        )
    return lines + [f"note: {note}" for note in drift.notes]


def drift_in_words(
    drift: Drift, doer: str = "drift.update(calibrator)", names: LabelNames | None = None
) -> tuple[str, str]:
    """What was found, and what to do, in two sentences. ``doer`` is the call or command that does
    it.

    Scores that run the wrong way, or say nothing, come first: nothing is to be fitted then.
    """
    found, todo = _change_in_words(drift, doer)
    first = ""
    if drift.look is not None and drift.look.useless:
        first = drift.look.headline(names or LabelNames(face="check"))
    elif drift.wrong_way:
        first = (
            "These scores run the wrong way: the slope that would mend them is "
            f"{1.0 + drift.line[1]:.3g}."
        )
    if not first:
        return found, todo
    if drift.recommendation != "none":
        todo = "Find out why before anything is fitted or updated."
    return f"{first} {found}", todo


def _change_in_words(drift: Drift, doer: str) -> tuple[str, str]:
    """What was found, and what to do, if the scores themselves are sound."""
    sure, moved = sure_p(drift.p_value), f"{drift.change:.2g}"
    if drift.recommendation == "none" and not drift.found:
        found = f"No change was found ({sure}): what differs is within chance."
        return found, "Keep the calibrator."
    if drift.recommendation == "none":
        return (
            f"A change was found ({sure}), but it is small: it moves probabilities by {moved} "
            f"(root mean square), less than the {drift.least:g} that matter here.",
            "Keep the calibrator.",
        )
    if drift.recommendation == "intercept":
        return (
            f"The log-odds of all rows have moved alike ({sure}), by {drift.shift:+.3f} ± "
            f"{2 * drift.shift_error:.3f}; probabilities by {moved}.",
            f"Add {drift.shift:.3f} to the logit: {doer} does.",
        )
    if drift.recommendation == "new map":
        return (
            f"The shape of P(y | score) has changed ({sure}): probabilities by {moved} (root mean "
            f"square), and a line on the logit would leave {drift.remedies[2].leaves:.2g}.",
            "Fit a calibrator anew to new rows; one that may bend, such as BLS or Spline.",
        )
    a, b = drift.line
    z = "logit(score)" if drift.scale == "logit" else "score"
    todo = "Refit the calibrator to new rows; the same method will do."
    if drift.calibrated:
        z = "logit(p)"
        todo = f"Correct the logit by a line, {a:.3g} + {1 + b:.3g}·logit(p): {doer} does."
    found = f"The log-odds have moved by {a:+.3f} {b:+.3f}·{z} ({sure}); probabilities by {moved}"
    return f"{found} (root mean square).", todo


# --- Two tables on one axis: the cells that a test of drift looks at ------------------------------


#: cells that a larger table is pooled to
CELLS = 2000
#: there is no answer if more than this share of the new rows lies beyond the reference's scores
BEYOND = 0.5
#: a table is cut into parts, since weights may differ in size from one part to another: the most
#: parts, and the effective number of rows of the rarer class that each must have
PARTS, CASES = 16, 20.0
#: shares of weight are equal up to rounding of this size
SAME = 1e-9


def cells_in_common(
    reference: ScoreTable, new: ScoreTable, by_logit: bool, weights: str
) -> tuple[Group, Group, list[str]]:
    """The cells of two tables in the range of scores that both have, and notes on rows that are
    left out."""
    tables = [reference, new]
    if by_logit:
        ends = [table.inner_interval or (0.0, 1.0) for table in tables]
        clip = min(end[0] for end in ends), max(end[1] for end in ends)
        tables = [_table_of_logits(table, clip) for table in tables]
    low = max(float(table.scores[0]) for table in tables)
    high = min(float(table.scores[-1]) for table in tables)
    if low > high:
        said = [f"{t.scores[0]:g} to {t.scores[-1]:g}" for t in (reference, new)]
        raise InputError(
            "the scores of both tables must overlap, but the reference has "
            f"{said[0]} and the new table {said[1]}: there is nothing to compare. Make sure that "
            "both hold scores of one kind."
        )
    inside = [take_cells(t, (t.scores >= low) & (t.scores <= high)) for t in tables]
    notes = []
    for name, whole, part in zip(("reference", "new"), tables, inside, strict=True):
        if not part:
            raise InputError(
                f"the scores of both tables must overlap, but no {name} row lies where the other "
                "table has scores: there is nothing to compare."
            )
        left_out = 1.0 - part.total / whole.total
        if name == "new" and left_out > BEYOND:
            raise InputError(
                f"most new scores must lie within the reference's, but {shown_percent(left_out)} "
                "lie beyond them, so that nothing can be said of most rows. Make sure that both "
                "tables hold scores of one kind, or take a reference that covers the new rows."
            )
        if left_out > 0.01:
            notes.append(
                f"{shown_percent(left_out)} of the {name} rows lie beyond the other table's "
                "scores, and are not compared."
            )
    first, second = (_group_of_table(part.pool(CELLS), weights) for part in inside)
    return first, second, notes


def cells_on_map_logits(new: ScoreTable, map_: Map, weights: str) -> tuple[Group, list[str]]:
    """The cells of a table by the logit of a map's probability, and notes on rows that are left
    out."""
    table = new.through(map_)
    notes = []
    if map_.looks_like_probabilities and not new.looks_like_probabilities:
        notes.append(
            "the map seems to be one of scores in [0, 1], but some new scores are not in it: make "
            "sure that they are of its kind (percentages must be divided by 100)."
        )
    sure = (table.scores == 0.0) | (table.scores == 1.0)
    if sure.any():
        wrong = float(table.positive[table.scores == 0.0].sum())
        wrong += float(table.negative[table.scores == 1.0].sum())
        weight = float(table.weight[sure].sum())
        notes.append(
            f"to {shown_percent(weight / table.total)} of the new rows the map gives exactly 0 or "
            f"1, and {shown_percent(wrong / weight)} of them came otherwise: they are not "
            "compared, and no shift of the logit can mend them."
        )
        if sure.all():
            raise InputError(
                "the map must give some new row a probability between 0 and 1, but it gives all "
                "of them 0 or 1: there is nothing to compare. Fit a calibrator anew."
            )
    kept = _table_of_logits(take_cells(table, ~sure), (0.0, 1.0))
    return _group_of_table(kept.pool(CELLS), weights), notes


# --- tables -------------------------------------------------------------------------------------


def _table_of_logits(table: ScoreTable, clip: tuple[float, float]) -> ScoreTable:
    """The table with logits for scores, the scores first clipped to an interval."""
    return replace(
        table, scores=read_only(in_blocks(lambda s: logit(np.clip(s, *clip)), table.scores))
    )


# --- weights ------------------------------------------------------------------------------------


def _group_of_table(table: ScoreTable, weights: str) -> Group:
    """The cells of a table, with weights in units of rows.

    The spread Σw²/Σw of each class is found in parts of equal weight. A part without rows of a
    class gets the figure of the whole class. A class without rows gets that of all rows.
    """
    if weights == "counts":
        if not table.is_whole:
            raise InputError(NOT_WHOLE)
        one = np.ones(len(table))  # Σw²/Σw, where each row counts once
        return Group(table.scores, table.negative, table.positive, one, one)
    usual = table.total / effective_size(table)
    upto = np.cumsum(table.weight)
    count = int(np.clip(table.rarest / CASES, 1, PARTS))
    part = ((1.0 - SAME) * count * upto / upto[-1]).astype(np.intp)
    spreads = (
        _spread_of_class(table.negative, table.negative_sq, part, usual),
        _spread_of_class(table.positive, table.positive_sq, part, usual),
    )
    scale = 1.0 / usual
    n0, n1 = scale * table.negative, scale * table.positive
    return Group(table.scores, n0, n1, *(scale * spread for spread in spreads))


def _spread_of_class(weight: Array, square: Array, part: Index, usual: float) -> Array:
    """Σw²/Σw of a class, for each cell by the part of the table it is in."""
    total = float(weight.sum())
    whole = float(square.sum()) / total if total else usual
    top, bottom = np.bincount(part, square), np.bincount(part, weight)
    ratio: Array = np.divide(top, bottom, out=np.full(len(top), whole), where=bottom > 0.0)
    return ratio[part]
