"""All measures, in the order in which tables show them. A new measure is one record here.

`evaluate` for arrays, frames and several classes, intervals, multilabel measures, reports, the
command line and learning curves read these records and know no measure by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter

import numpy as np

from calibrant.array_types import Array
from calibrant.metrics.facts import (
    ClassFacts,
    Found,
    Measure,
    PredictionFacts,
    TableFacts,
    ValueWithNote,
)
from calibrant.metrics.formulas import Span
from calibrant.metrics.intervals import (
    ChangeIntervals,
    MeasureIntervals,
    RowChangeIntervals,
    RowPredictions,
    TableIntervals,
    against_curve,
    curve_against_base,
)
from calibrant.metrics.point_measures import area, not_whole, one_class, too_many, window_error
from calibrant.metrics.redraws import RedrawnTables
from calibrant.metrics.smooth_curve import CurveGaps, OfCurve
from calibrant.metrics.tests import Coefficient, ratio_interval

# --- The measures that clinical papers report, as records of the registry -------------------------


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


# --- All measures, in the order in which tables show them. A new measure is one record here -------


# --- values that come with a note ---------------------------------------------------------------


def _log_loss(facts: PredictionFacts | ClassFacts) -> Found:
    if math.isinf(facts.log_loss):
        return ValueWithNote(facts.log_loss, f"log loss is infinite: {facts.why_infinite()}")
    return facts.log_loss


def _auc(facts: PredictionFacts) -> Found:
    if reason := one_class(facts.ranked):
        return ValueWithNote(None, reason)
    value, hidden = area(facts.ranked), facts.hidden_area
    if not hidden:
        return value
    # a little more than the bound, so that its two digits are never too few
    return ValueWithNote(value, f"auc is from cells: within {1.05 * hidden:.2g} of the exact one")


def _class_auc(facts: ClassFacts) -> Found:
    areas = facts.columns.areas
    came = [value for value in areas if value is not None]
    absent = len(areas) - len(came)
    if len(came) < 2:
        return ValueWithNote(None, "auc needs two classes, but only one came")
    value = float(np.mean(came))
    if not absent:
        return value
    return ValueWithNote(
        value, f"{absent} of {len(areas)} classes did not come: auc is over the others"
    )


def _calbin(facts: PredictionFacts) -> Found:
    table = facts.table
    if table is None:
        raise ValueError("CalBin needs the table")
    if reason := not_whole(table) or too_many(table.total):
        return ValueWithNote(None, reason)
    return window_error(table)


def _class_calbin(facts: ClassFacts) -> Found:
    _, windows, reason = facts.columns
    return ValueWithNote(None, reason) if reason else float(np.mean(windows))


def _discrimination(facts: PredictionFacts) -> float:
    rate = facts.base_rate
    return max(rate * (1.0 - rate) - facts.hull.refinement, 0.0)  # rounding


# --- the records --------------------------------------------------------------------------------

RECORDS = (
    Measure(
        "log_loss",
        "log loss",
        "mean surprise, in nats",
        "smaller",
        range=(0.0, math.inf),
        headline="Log loss",
        brief=True,
        of=_log_loss,
        interval=MeasureIntervals.log_loss,
        change=ChangeIntervals.log_loss,
        of_columns=lambda columns: columns.mean("log_loss"),
        of_classes={},
    ),
    Measure(
        "brier",
        "Brier score",
        "mean squared error, mean (y − p)²",
        "smaller",
        brief=True,
        of=lambda facts: facts.square,
        interval=MeasureIntervals.brier,
        change=ChangeIntervals.brier,
        of_columns=lambda columns: columns.mean("brier"),
        of_classes={"meaning": "squared error, summed over the classes", "range": (0.0, 2.0)},
    ),
    Measure(
        "ece",
        "ECE",
        "mean |prediction − frequency| over bins",
        "smaller",
        headline="Calibration error",
        brief=True,
        of=lambda facts: facts.groups.mean_gap(),
        interval=TableIntervals.ece,
        change=RowChangeIntervals.ece,
        of_columns=lambda columns: columns.mean_gap(),
    ),
    Measure(
        "mce",
        "MCE",
        "the largest of those distances",
        "smaller",
        of=lambda facts: facts.groups.largest_gap(),
        interval=TableIntervals.mce,
    ),
    Measure(
        "rmse",
        "RMSE",
        "root of the Brier score",
        "smaller",
        of=lambda facts: math.sqrt(facts.square),
        interval=MeasureIntervals.rmse,
        change=ChangeIntervals.rmse,
        of_classes={
            "of": lambda facts: math.sqrt(facts.square / facts.matrix.n_classes),
            "meaning": "root of the Brier score per class",
        },
    ),
    Measure(
        "top_label_ece",
        "top-label ECE",
        "mean |confidence − share of right predictions| over bins",
        "smaller",
        headline="Top-label error",
        of_classes={
            "of": lambda facts: facts.top.mean_gap(),
            "interval": lambda intervals: intervals.top.intervals.ece(),
            "change": lambda changes: changes.top.ece(),
        },
    ),
    Measure(
        "top_label_mce",
        "top-label MCE",
        "the largest of those distances",
        "smaller",
        of_classes={
            "of": lambda facts: facts.top.largest_gap(),
            "interval": lambda intervals: intervals.top.intervals.mce(),
        },
    ),
    Measure(
        "classwise_ece",
        "class-wise ECE",
        "ECE of each class against the rest, averaged",
        "smaller",
        of_classes={
            "of": lambda facts: float(np.mean([groups.mean_gap() for groups in facts.each])),
            "interval": lambda intervals: intervals.over_classes("classwise_ece"),
        },
    ),
    Measure(
        "classwise_mce",
        "class-wise MCE",
        "the worst bin of the worst class",
        "smaller",
        of_classes={
            "of": lambda facts: max(groups.largest_gap() for groups in facts.each),
            "interval": lambda intervals: intervals.over_classes("classwise_mce"),
        },
    ),
    Measure(
        "auc",
        "AUC",
        "chance that a positive ranks above a negative",
        "larger",
        headline="Ranking (AUC)",
        brief=True,
        ranks=True,
        of=_auc,
        interval=TableIntervals.auc,
        change=ChangeIntervals.auc,
        of_columns=lambda columns: columns.area,
        of_classes={
            "of": _class_auc,
            "interval": lambda intervals: intervals.over_classes("auc"),
            "meaning": "each class against the rest, averaged",
        },
    ),
    Measure(
        "accuracy",
        "accuracy",
        "share of right decisions at p ≥ ½",
        "larger",
        headline="Accuracy",
        of=lambda facts: facts.share_correct,
        interval=MeasureIntervals.accuracy,
        change=ChangeIntervals.accuracy,
        of_classes={"meaning": "share of rows whose likeliest class came"},
    ),
    Measure(
        "calbin",
        "CalBin",
        "mean |p − frequency| over sliding windows",
        "smaller",
        of=_calbin,
        needs_table="it looks at case after case, which groups do not show",
        of_redrawn=RedrawnTables.calbin,
        of_classes={
            "of": _class_calbin,
            "meaning": "mean |p − frequency| over sliding windows and classes",
        },
    ),
    Measure(
        "calibration_loss",
        "calibration loss",
        "mean squared distance from the frequency on the ROC hull",
        "smaller",
        of=lambda facts: facts.hull.calibration,
        change=lambda changes: changes.curve("calibration_loss", against_curve),
        of_redrawn=RedrawnTables.calibration_loss,
    ),
    Measure(
        "miscalibration",
        "miscalibration",
        "part of the Brier score that an increasing map could remove",
        "smaller",
        of=lambda facts: facts.hull.calibration + facts.hull.ordering,
        change=lambda changes: changes.curve("miscalibration", against_curve),
        of_redrawn=RedrawnTables.miscalibration,
    ),
    Measure(
        "discrimination",
        "discrimination",
        "Brier score gained over the base rate if well calibrated",
        "larger",
        range=(0.0, 0.25),  # the Brier score of a base rate of ½
        of=_discrimination,
        # chance adds as much to it as to miscalibration
        change=lambda changes: changes.curve(
            "discrimination", curve_against_base, "miscalibration"
        ),
        of_redrawn=RedrawnTables.discrimination,
    ),
    *CLINICAL,
)

#: the measures of two classes by name
MEASURES = {record.name: record for record in RECORDS if record.of is not None}
#: those whose intervals come from tables drawn again
REDRAWN = {
    name: record.of_redrawn for name, record in MEASURES.items() if record.of_redrawn is not None
}
#: those whose intervals come from smooth curves drawn again
OF_CURVE = {
    name: record.of_curve for name, record in MEASURES.items() if record.of_curve is not None
}
#: the measures of several yes/no labels
LABEL_MEASURES = {
    name: record for name, record in MEASURES.items() if record.of_columns is not None
}

#: the measures of several classes by name
CLASS_MEASURES = {
    record.name: several for record in RECORDS if (several := record.for_classes()) is not None
}
