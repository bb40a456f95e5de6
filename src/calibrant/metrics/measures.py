"""All measures, in the order in which tables show them. A new measure is one record here.

`evaluate` for arrays, frames and several classes, intervals, multilabel measures, reports, the
command line and learning curves read these records and know no measure by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import check_word
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.metrics.chance import IntervalOptions, RedrawnTables, Span
from calibrant.metrics.intervals import (
    ChangeIntervals,
    MeasureIntervals,
    RowPredictions,
    TableIntervals,
    discrimination_influence,
    miscalibration_influence,
)
from calibrant.metrics.point_measures import (
    ClassFacts,
    TableFacts,
    area,
    one_class,
    why_not_whole,
    why_too_many,
    window_error,
)
from calibrant.metrics.smooth_curve import CurveGaps, OfCurve
from calibrant.metrics.tables import (
    Bins,
    bins_note,
)
from calibrant.metrics.tests import (
    Coefficient,
    ratio_interval,
)
from calibrant.result_tables import shown_value

#: what a measure of two classes is made of
PredictionFacts: TypeAlias = "TableFacts | GroupFacts"

if TYPE_CHECKING:
    from calibrant.metrics.frames import GroupFacts
    from calibrant.metrics.multilabel import LabelColumns

# --- A measure: one record with all that the rest of the package has to know about it -------------


Verdict = Literal["better", "worse", "unclear", "same", "lower", "higher"]

#: an order of scores is called kept if AUC moves by less than this
SAME_ORDER = 5e-4


class ValueWithNote(NamedTuple):
    """A value and a note on it. The value is None where the data allow none; then the note says
    why."""

    value: float | None
    note: str


#: what the function of a measure returns
Found = float | ValueWithNote


@dataclass(frozen=True)
class Measure:
    """A measure of predicted probabilities, with all that the package knows of it. A new measure is
    one more record in `RECORDS`.

    Attributes
    ----------
    name : str
        The key of its value in results.
    label, meaning : str
        What people read in tables, and the line that explains it.
    better : {"smaller", "larger", "closer"}
        Which values are better; ``"closer"``: those nearer to the ``target``.
    target : float
        The best value, where closer is better.
    groups : tuple of str
        The sets of measures that it belongs to, which `evaluate` takes by name: those of
        ``"standard"`` are measured where nothing else is asked for.
    range : pair of float
        The smallest and the largest value that is possible; intervals are cut to it.
    headline : str
        Its title among the few figures at the top of a report; empty: it is not there.
    brief : bool
        Whether the table shows it where no measures were asked for.
    ranks : bool
        Whether it looks at the order of scores alone: margins are then not made probabilities.
    of : function of PredictionFacts, or None
        The value for two classes. What it asks of the facts decides where it can be computed:
        all facts but the table itself are known of rows that were grouped in an engine, too.
    needs_table : str
        Why groups of rows are not enough, if they are not.
    interval : function of TableIntervals, optional
        The interval before it is cut to the range, or None where the data allow none. It is asked
        for where the value is finite. Left out where tables or curves drawn again tell it.
    change : function of ChangeIntervals, optional
        The interval of after − before on the same rows, or None.
    of_redrawn : function of RedrawnTables, optional
        The value of a table drawn again, for measures whose interval comes from such tables.
    of_curve : function of CurveGaps, optional
        The values for curves drawn again, for measures whose interval comes from such curves.
    of_columns : function of LabelColumns, optional
        The value for several yes/no labels thrown together; None where it is undefined.
    of_classes : mapping of str to Any, optional
        What differs where the measure is of several classes, by the name of the field: ``of`` is
        then a function of ClassFacts, ``interval`` of ClassIntervals, ``change`` of
        ClassChangeIntervals. Without a mapping it is a measure of two classes only.
    """

    name: str
    label: str
    meaning: str
    better: Literal["smaller", "larger", "closer"]
    range: tuple[float, float] = (0.0, 1.0)
    target: float = 0.0
    groups: tuple[str, ...] = ("standard",)
    headline: str = ""
    brief: bool = False
    ranks: bool = False
    of: Callable[[Any], Found] | None = None
    needs_table: str = ""
    interval: Callable[[Any], Span | None] | None = None
    change: Callable[[Any], Span | None] | None = None
    of_redrawn: Callable[[RedrawnTables], Array] | None = None
    of_curve: OfCurve | None = None
    of_columns: Callable[[LabelColumns], float | None] | None = None
    of_classes: Mapping[str, Any] | None = None

    def for_classes(self) -> Measure | None:
        """The same measure for several classes; None if there is none."""
        if self.of_classes is None:
            return None
        return replace(self, needs_table="", **self.of_classes)

    def value_of(self, facts: Any) -> ValueWithNote:
        """The value for these facts, and a note on it."""
        if self.of is None:
            raise ValueError(f"{self.name} is a measure of several classes")
        found = self.of(facts)
        return found if isinstance(found, ValueWithNote) else ValueWithNote(found, "")

    @property
    def good(self) -> str:
        """Which values are good, in one or two words.

        >>> Measure("slope", "slope", "", "closer", target=1.0).good
        'near 1'
        """
        return f"near {self.target:g}" if self.better == "closer" else self.better

    def badness(self, value: float) -> float:
        """A number that is smaller for the better of two values."""
        if self.better == "closer":
            return abs(value - self.target)
        return value if self.better == "smaller" else -value

    def cut_span(self, value: float, span: Span) -> Span:
        """The interval, cut to the range of the measure and widened to hold the value."""
        low, high = max(span[0], self.range[0]), min(span[1], self.range[1])
        return min(low, value), max(high, value)

    def verdict(
        self,
        before: float,
        after: float,
        *,
        change: Span | None = None,
        sides: tuple[Span, Span] | None = None,
        judged: bool = True,
    ) -> Verdict:
        """Did the measure get better? The answer is as sure as the intervals allow.

        "same" where what is shown is equal; else "better" or "worse" if the interval of the
        ``change`` leaves out 0. Where there is none, the intervals of both ``sides`` must be apart,
        which supports the word however the two depend on each other; "unclear" if they are not, or
        not there. Where values are good near a target, all pairs of values that the intervals allow
        must agree about which is nearer. Where nothing is to be ``judged``, for no intervals were
        wanted, the word is "lower" or "higher". An infinite loss was seen to be so, and needs no
        interval.

        >>> auc = Measure("a", "A", "", "larger")
        >>> auc.verdict(0.5, 0.6, change=(0.02, 0.18)), auc.verdict(0.5, 0.6, change=(-0.1, 0.3))
        ('better', 'unclear')
        >>> auc.verdict(0.5, 0.6, sides=((0.4, 0.6), (0.5, 0.7))), auc.verdict(0.5, 0.6)
        ('unclear', 'unclear')
        >>> auc.verdict(0.5, 0.6, judged=False)
        'higher'
        >>> slope = Measure("s", "slope", "", "closer", target=1.0)
        >>> slope.verdict(0.6, 1.1, sides=((0.5, 0.7), (1.0, 1.2)))  # at most 0.2 off, before 0.3
        'better'
        >>> slope.verdict(0.6, 1.1, sides=((0.5, 0.7), (0.8, 1.4)), change=(0.3, 0.7))
        'unclear'
        """
        close = math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12)
        kept = self.ranks and abs(after - before) < SAME_ORDER
        if close or kept or shown_value(before) == shown_value(after):
            return "same"
        if math.isfinite(after - before):
            if not judged:
                return "lower" if after < before else "higher"
            moved = self._badness_change(change, sides)
            if moved is None or moved[0] <= 0.0 <= moved[1]:
                return "unclear"
        return "better" if self.badness(after) < self.badness(before) else "worse"

    def _badness_change(self, change: Span | None, sides: tuple[Span, Span] | None) -> Span | None:
        """The least and the largest change of `badness` that the intervals allow; None where they
        are not known.

        Where closer is better, that is over all pairs of values within both sides whose difference
        is within the change. The distance has its kinks at the target, so one of the places where
        two borders of this region or the target meet has the extreme.
        """
        if sides is not None and (change is None or self.better == "closer"):
            old, new = sides
            widest = new[0] - old[1], new[1] - old[0]
            if self.better == "closer":
                return _change_of_distance(self.target, old, new, change or widest)
            change = widest
        if change is None or self.better == "closer":
            return None
        ends = self.badness(change[0]), self.badness(change[1])
        return min(ends), max(ends)


def _change_of_distance(target: float, old: Span, new: Span, change: Span) -> Span:
    """The least and the largest change of the distance from a target, over all values that the
    intervals allow.

    >>> _change_of_distance(1.0, (0.5, 0.75), (0.75, 1.25), (0.125, 0.625))
    (-0.5, 0.0)
    """
    pairs = [(a, b) for a in (*new, target) for b in (*old, target)]
    pairs += [(a, a - c) for a in (*new, target) for c in change]
    pairs += [(b + c, b) for b in (*old, target) for c in change]
    slack = 1e-9 * max(abs(end) for end in (*old, *new, *change))
    moved = [
        abs(a - target) - abs(b - target)
        for a, b in pairs
        if new[0] - slack <= a <= new[1] + slack
        and old[0] - slack <= b <= old[1] + slack
        and change[0] - slack <= a - b <= change[1] + slack
    ]
    return (min(moved), max(moved)) if moved else (-math.inf, math.inf)


# --- The measures that clinical papers report, as records of the registry -------------------------


#: a mean prediction below this is 0: a ratio to it would leave the floats
NOTHING = 1e-290
FITTED = "it is fitted to the predictions one by one, which groups do not show"


# --- observed by expected -----------------------------------------------------------------------


def _observed_expected(facts: PredictionFacts) -> Found:
    """The positives that came, divided by those that were predicted."""
    groups = facts.groups
    expected = float(groups.predicted.sum())
    if not expected > NOTHING * float(groups.weight.sum()):
        return ValueWithNote(None, "observed_expected needs predictions above 0")
    return float(groups.positive.sum()) / expected


def _ratio_influence(side: RowPredictions) -> Array:
    """How far each row moves observed/expected."""
    table = side.intervals.sample
    expected = float(table.weight @ table.scores)
    ratio = side.intervals.values["observed_expected"]
    return (side.positive - ratio * side.p) * (table.total / expected)


# --- the line -----------------------------------------------------------------------------------


Fit = Callable[[TableFacts], Coefficient]


def _coefficient_measure(
    name: str,
    label: str,
    meaning: str,
    fit: Fit,
    target: float = 0.0,
    groups: tuple[str, ...] = ("clinical",),
    *,
    brief: bool = False,
) -> Measure:
    """The record of a measure that is a fitted coefficient, such as the calibration slope.

    The note on predictions without log-odds is the same for all such measures.
    """

    def value(facts: TableFacts) -> Found:
        found, certain = fit(facts), facts.certain
        if not math.isfinite(found.value):
            return ValueWithNote(None, one_class(facts.table, name) or f"{name} {found.missing}")
        if not certain:
            return found.value
        share = f"{100.0 * certain / facts.table.total:.3g} % of all"
        return ValueWithNote(
            found.value,
            f"calibration slope and intercepts leave out predictions of exactly 0 or 1, {share}, "
            "which have no log-odds",
        )

    def interval(intervals: TableIntervals) -> Span | None:
        found = fit(intervals.facts)
        return found.interval(intervals.level) if math.isfinite(found.value) else None

    def change(changes: ChangeIntervals) -> Span | None:
        both = (fit(side.intervals.facts).value for side in (changes.after, changes.before))
        return changes.mean_change(name, influence) if all(map(math.isfinite, both)) else None

    def influence(side: RowPredictions) -> Array:
        of = side.intervals
        return fit(of.facts).influence(side.p, side.positive, of.sample.total)

    unlimited = (-math.inf, math.inf)
    fields: dict[str, Any] = {"of": value, "interval": interval, "change": change}
    fields |= {"target": target, "groups": groups, "range": unlimited, "needs_table": FITTED}
    fields |= {"brief": brief}
    return Measure(name, label, meaning, "closer", **fields)


# --- the smooth curve ---------------------------------------------------------------------------


def _curve_measure(name: str, label: str, meaning: str, of: OfCurve) -> Measure:
    """The record of a measure of the distances from the smooth curve, such as ICI."""
    return Measure(
        name,
        label,
        meaning,
        "smaller",
        groups=("clinical",),
        of=lambda facts: float(of(facts.curve_gaps)[0]),
        needs_table=FITTED,
        of_curve=of,
    )


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
        change=lambda changes: changes.mean_change("observed_expected", _ratio_influence),
    ),
    _coefficient_measure(
        "calibration_slope",
        "calibration slope",
        "slope of the log-odds that came on those predicted: 1 is right; below 1, predictions are "
        "too extreme",
        attrgetter("line.slope"),
        target=1.0,
        groups=("standard", "clinical"),
        brief=True,
    ),
    _coefficient_measure(
        "line_intercept",
        "line intercept",
        "intercept beside that slope",
        attrgetter("line.intercept"),
    ),
    _coefficient_measure(
        "calibration_in_the_large",
        "in the large",
        "what the log-odds lack on average; above 0: too little is predicted",
        attrgetter("offset"),
    ),
    _curve_measure("ici", "ICI", "mean |p − smooth calibration curve|", CurveGaps.mean),
    _curve_measure("e50", "E50", "median of those distances", lambda gaps: gaps.quantile(0.5)),
    _curve_measure(
        "e90",
        "E90",
        "the distance that 90 % of cases do not exceed",
        lambda gaps: gaps.quantile(0.9),
    ),
    _curve_measure("emax", "Emax", "the largest of those distances", CurveGaps.largest),
)


# --- All measures, in the order in which tables show them. A new measure is one record here -------


# --- values that come with a note ---------------------------------------------------------------


def _log_loss(facts: PredictionFacts | ClassFacts) -> Found:
    """The log loss, with a note where it is infinite."""
    loss = facts.log_loss()
    if math.isinf(loss):
        return ValueWithNote(loss, f"log loss is infinite: {facts.why_infinite()}")
    return loss


def _auc(facts: PredictionFacts) -> Found:
    """The AUC, or a note where there is none."""
    if reason := one_class(facts.ranked):
        return ValueWithNote(None, reason)
    value, hidden = area(facts.ranked), facts.hidden_area
    if not hidden:
        return value
    # a little more than the bound, so that its two digits are never too few
    return ValueWithNote(value, f"auc is from cells: within {1.05 * hidden:.2g} of the exact one")


def _class_auc(facts: ClassFacts) -> Found:
    """The mean AUC of the classes that came."""
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
    """CalBin, or a note where there is none."""
    table = facts.table
    if table is None:
        raise ValueError("CalBin needs the table")
    if reason := why_not_whole(table) or why_too_many(table.total):
        return ValueWithNote(None, reason)
    return window_error(table)


def _class_calbin(facts: ClassFacts) -> Found:
    """The mean CalBin of the classes, or a note where there is none."""
    _, windows, reason = facts.columns
    return ValueWithNote(None, reason) if reason else float(np.mean(windows))


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
        change=ChangeIntervals.ece,
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
        of=lambda facts: facts.root_of_square,
        interval=MeasureIntervals.rmse,
        change=ChangeIntervals.rmse,
        of_classes={"meaning": "root of the Brier score per class"},
    ),
    Measure(
        "top_label_ece",
        "top-label ECE",
        "mean |confidence − share of right predictions| over bins",
        "smaller",
        headline="Top-label error",
        brief=True,
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
        brief=True,
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
        change=lambda changes: changes.curve("calibration_loss", miscalibration_influence),
        of_redrawn=RedrawnTables.calibration_loss,
    ),
    Measure(
        "miscalibration",
        "miscalibration",
        "part of the Brier score that an increasing map could remove",
        "smaller",
        of=lambda facts: facts.hull.calibration + facts.hull.ordering,
        change=lambda changes: changes.curve("miscalibration", miscalibration_influence),
        of_redrawn=RedrawnTables.miscalibration,
    ),
    Measure(
        "discrimination",
        "discrimination",
        "Brier score gained over the base rate if well calibrated",
        "larger",
        range=(0.0, 0.25),  # the Brier score of a base rate of ½
        of=lambda facts: max(
            facts.base_rate * (1.0 - facts.base_rate) - facts.hull.refinement, 0.0
        ),  # rounding
        # chance adds as much to it as to miscalibration
        change=lambda changes: changes.curve(
            "discrimination", discrimination_influence, "miscalibration"
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


# --- All measures at once, of two classes and of several: with intervals, before and after --------


Records = Mapping[str, Measure]

#: the group of measures that are found where none are asked for, and the word for all of them
STANDARD, ALL = "standard", "all"


def chosen_records(records: Records, measures: Any = None) -> dict[str, Measure]:
    """The records that are meant by names of measures and of groups, in the order of the registry.

    >>> from calibrant.metrics.measures import MEASURES
    >>> list(chosen_records(MEASURES, ["auc", "brier"]))
    ['brier', 'auc']
    """
    wanted = [STANDARD] if measures is None else measures
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, Iterable) or not (words := list(wanted)):
        raise ParameterError(
            "measures must be a name of a measure or of a group, or a list of such, but "
            f"{measures!r} came."
        )
    groups = dict.fromkeys(group for record in records.values() for group in record.groups)
    for word in words:
        check_word("each of measures", word, (*groups, ALL, *records))
    return {
        name: record
        for name, record in records.items()
        if name in words or ALL in words or not set(words).isdisjoint(record.groups)
    }


def measure_all(records: Records, facts: Any) -> tuple[dict[str, float], list[str]]:
    """The value of each measure that the facts allow, by name, and notes on them."""
    values, notes = {}, []
    for name, measure in records.items():
        if measure.needs_table and facts.table is None:
            notes.append(f"{name} was left out: {measure.needs_table}")
            continue
        value, note = measure.value_of(facts)
        if value is not None:
            values[name] = value
        if note and note not in notes:
            notes.append(note)
    return values, notes


# --- two classes --------------------------------------------------------------------------------


class Measured(NamedTuple):
    """The measures of a set of predictions, with notes and the tables that intervals need.

    ``table`` holds the predictions as probabilities, ``ranked`` as they came: the sigmoid may have
    merged large margins. ``counted``: the scores of the table are all those that came.
    ``scale`` is that of the scores as they came.
    """

    values: dict[str, float]
    notes: list[str]
    table: ScoreTable
    ranked: ScoreTable
    scale: ScoreScale
    counted: bool = True

    def intervals(self, bins: Bins, options: IntervalOptions) -> TableIntervals:
        """The intervals of these measures."""
        redrawn = {name: of for name, of in REDRAWN.items() if name in self.values}
        curves = {name: of for name, of in OF_CURVE.items() if name in self.values}
        return TableIntervals(self.table, self.ranked, self.values, bins, options, redrawn, curves)


def measure_table(ranked: ScoreTable, bins: Bins, records: Records) -> Measured:
    """The measures of a table of scores.

    Percentages and margins are read as probabilities; of points only the order is measured.
    """
    facts = TableFacts(ranked, bins)
    if ranked.scale.kind == "points":
        records = {name: measure for name, measure in records.items() if measure.ranks}
    values, notes = measure_all(records, facts)
    table = facts.table
    if isinstance(bins, str) and "ece" in values:
        notes.append(bins_note(len(facts.groups.weight)))
    if table.error:
        notes.append(f"the table was pooled: predictions were moved by up to {table.error:.3g}")
    return Measured(values, notes, table, ranked, ranked.scale)
