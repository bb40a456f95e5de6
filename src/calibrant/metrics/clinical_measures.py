"""The measures that clinical papers report, as records of the registry."""

from __future__ import annotations

import math
from functools import partial

from calibrant.arrays import Array
from calibrant.metrics.change_intervals import RowChangeIntervals
from calibrant.metrics.cox_line import CoxLine, ratio_interval
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


def _of_line(name: str, which: int, facts: TableFacts) -> Found:
    line = facts.line
    if line.known:
        return _said(line.value(which), facts)
    if reason := one_class(facts.table, name):
        return ValueWithNote(None, reason)
    if math.isinf(line.slope):
        return ValueWithNote(None, f"{name} was left out: a threshold tells the classes apart")
    return ValueWithNote(None, f"{name} needs two different predictions between 0 and 1")


def _in_the_large(facts: TableFacts) -> Found:
    name, value = "calibration_in_the_large", facts.offset.value
    if math.isfinite(value):
        return _said(value, facts)
    if reason := one_class(facts.table, name):
        return ValueWithNote(None, reason)
    return ValueWithNote(None, f"{name} needs both classes at predictions between 0 and 1")


def _said(value: float, facts: TableFacts) -> Found:
    """The value, with a note where some predictions have no log-odds: one for all such measures."""
    if not facts.certain:
        return value
    share = 100.0 * facts.certain / facts.table.total
    return ValueWithNote(
        value,
        f"calibration slope and intercepts leave out predictions of exactly 0 or 1, {share:.3g} % "
        "of all, which have no log-odds",
    )


def _line_interval(which: int, intervals: TableIntervals) -> Span | None:
    line = intervals.facts.line
    return line.interval(which, intervals.level) if line.known else None


def _line_change(name: str, which: int, changes: RowChangeIntervals) -> Span | None:
    lines = [side.intervals.facts.line for side in (changes.after, changes.before)]
    if not all(line.known for line in lines):
        return None

    def pull(side: RowPredictions) -> Array:
        line: CoxLine = side.intervals.facts.line
        return line.pull(which, side.p, side.positive, side.intervals.sample.total)

    return changes.moved(name, pull)


def _offset_pull(side: RowPredictions) -> Array:
    return side.intervals.facts.offset.pull(side.p, side.positive, side.intervals.sample.total)


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
    Measure(
        "calibration_slope",
        "calibration slope",
        "slope of the log-odds that came on those predicted: 1 is right; below 1, predictions are "
        "too extreme",
        "closer",
        target=1.0,
        range=(-math.inf, math.inf),
        groups=("standard", "clinical"),
        of=partial(_of_line, "calibration_slope", 1),
        needs_table=FITTED,
        interval=partial(_line_interval, 1),
        change=partial(_line_change, "calibration_slope", 1),
    ),
    Measure(
        "line_intercept",
        "line intercept",
        "intercept beside that slope",
        "closer",
        range=(-math.inf, math.inf),
        groups=("clinical",),
        of=partial(_of_line, "line_intercept", 0),
        needs_table=FITTED,
        interval=partial(_line_interval, 0),
        change=partial(_line_change, "line_intercept", 0),
    ),
    Measure(
        "calibration_in_the_large",
        "in the large",
        "what the log-odds lack on average; above 0: too little is predicted",
        "closer",
        range=(-math.inf, math.inf),
        groups=("clinical",),
        of=_in_the_large,
        needs_table=FITTED,
        interval=lambda intervals: intervals.facts.offset.interval(intervals.level),
        change=lambda changes: changes.moved("calibration_in_the_large", _offset_pull),
    ),
    _curve_measure("ici", "ICI", "mean |p − smooth calibration curve|", CurveGaps.mean),
    _curve_measure("e50", "E50", "median of those distances", _median),
    _curve_measure("e90", "E90", "the distance that 90 % of cases do not exceed", _ninth_decile),
    _curve_measure("emax", "Emax", "the largest of those distances", CurveGaps.largest),
)
