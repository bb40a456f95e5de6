"""The measures that clinical papers report, as records of the registry."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from calibrant.array_types import Array
from calibrant.metrics.change_intervals import RowChangeIntervals
from calibrant.metrics.cox_line import Coefficient, ratio_interval
from calibrant.metrics.interval_formulas import Span
from calibrant.metrics.intervals import RowPredictions, TableIntervals
from calibrant.metrics.measure import Found, Measure, OfCurve, ValueWithNote
from calibrant.metrics.prediction_facts import PredictionFacts, TableFacts
from calibrant.metrics.ranking import one_class
from calibrant.metrics.smooth_curve import CurveGaps

#: a mean prediction below this is 0: a ratio to it would leave the floats
NOTHING = 1e-290
FITTED = "it is fitted to the predictions one by one, which groups do not show"


# --- observed by expected -----------------------------------------------------------------------


def _observed_expected(facts: PredictionFacts) -> Found:
    groups = facts.groups
    expected = float(groups.predicted.sum())
    if not expected > NOTHING * float(groups.weight.sum()):
        return ValueWithNote(None, "observed_expected needs predictions above 0")
    return float(groups.positive.sum()) / expected


def _ratio_pull(side: RowPredictions) -> Array:
    table = side.intervals.sample
    expected = float(table.weight @ table.scores)
    ratio = side.intervals.values["observed_expected"]
    return (side.positive - ratio * side.p) * (table.total / expected)


# --- the line -----------------------------------------------------------------------------------


Fit = Callable[[TableFacts], Coefficient]


def _of_fit(name: str, fit: Fit, facts: TableFacts) -> Found:
    """A coefficient, with a note where some predictions have no log-odds: one for all of them."""
    found = fit(facts)
    if not math.isfinite(found.value):
        return ValueWithNote(None, one_class(facts.table, name) or f"{name} {found.missing}")
    if not facts.certain:
        return found.value
    share = 100.0 * facts.certain / facts.table.total
    return ValueWithNote(
        found.value,
        f"calibration slope and intercepts leave out predictions of exactly 0 or 1, {share:.3g} % "
        "of all, which have no log-odds",
    )


def _fit_interval(fit: Fit, intervals: TableIntervals) -> Span | None:
    found = fit(intervals.facts)
    return found.interval(intervals.level) if math.isfinite(found.value) else None


def _fit_change(name: str, fit: Fit, changes: RowChangeIntervals) -> Span | None:
    def pull(side: RowPredictions) -> Array:
        return fit(side.intervals.facts).pull(side.p, side.positive, side.intervals.sample.total)

    both = (fit(side.intervals.facts).value for side in (changes.after, changes.before))
    return changes.moved(name, pull) if all(map(math.isfinite, both)) else None


def _fit_measure(
    name: str,
    label: str,
    meaning: str,
    fit: Fit,
    target: float = 0.0,
    groups: tuple[str, ...] = ("clinical",),
) -> Measure:
    return Measure(
        name,
        label,
        meaning,
        "closer",
        target=target,
        range=(-math.inf, math.inf),
        groups=groups,
        of=partial(_of_fit, name, fit),
        needs_table=FITTED,
        interval=partial(_fit_interval, fit),
        change=partial(_fit_change, name, fit),
    )


# --- the smooth curve ---------------------------------------------------------------------------


def _of_gaps(of: OfCurve, facts: TableFacts) -> float:
    return float(of(facts.curve_gaps)[0])


def _curve_measure(name: str, label: str, meaning: str, of: OfCurve) -> Measure:
    return Measure(
        name,
        label,
        meaning,
        "smaller",
        groups=("clinical",),
        of=partial(_of_gaps, of),
        needs_table=FITTED,
        of_curve=of,
    )


def _median(gaps: CurveGaps) -> Array:
    return gaps.quantile(0.5)


def _ninth_decile(gaps: CurveGaps) -> Array:
    return gaps.quantile(0.9)


# --- the records --------------------------------------------------------------------------------

CLINICAL = (
    Measure(
        "observed_expected",
        "observed/expected",
        "positives that came for each that was predicted",
        "closer",
        target=1.0,
        range=(0.0, math.inf),
        groups=("standard", "clinical"),
        of=_observed_expected,
        interval=lambda intervals: ratio_interval(intervals.sample, intervals.level),
        change=lambda changes: changes.moved("observed_expected", _ratio_pull),
    ),
    _fit_measure(
        "calibration_slope",
        "calibration slope",
        "slope of the log-odds that came on those predicted: 1 is right; below 1, predictions are "
        "too extreme",
        attrgetter("line.slope"),
        target=1.0,
        groups=("standard", "clinical"),
    ),
    _fit_measure(
        "line_intercept",
        "line intercept",
        "intercept beside that slope",
        attrgetter("line.intercept"),
    ),
    _fit_measure(
        "calibration_in_the_large",
        "in the large",
        "what the log-odds lack on average; above 0: too little is predicted",
        attrgetter("offset"),
    ),
    _curve_measure("ici", "ICI", "mean |p − smooth calibration curve|", CurveGaps.mean),
    _curve_measure("e50", "E50", "median of those distances", _median),
    _curve_measure("e90", "E90", "the distance that 90 % of cases do not exceed", _ninth_decile),
    _curve_measure("emax", "Emax", "the largest of those distances", CurveGaps.largest),
)
