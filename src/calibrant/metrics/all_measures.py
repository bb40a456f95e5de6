"""All measures at once, of two classes and of several: with intervals, before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from calibrant.data.score_kinds import kind_of, probability_of, reading_between
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain
from calibrant.data.validation import check_word
from calibrant.errors import ParameterError
from calibrant.metrics.bin_sweep import Bins, bins_note
from calibrant.metrics.change_intervals import (
    ChangeIntervals,
    ClassChangeIntervals,
    PairedCells,
    RowChangeIntervals,
)
from calibrant.metrics.class_look import class_look
from calibrant.metrics.evaluation_results import (
    CHANGE,
    TIES,
    Changes,
    Columns,
    Evaluation,
    MulticlassEvaluation,
    Note,
    Spans,
    with_look,
)
from calibrant.metrics.first_look import first_look
from calibrant.metrics.intervals import (
    ClassIntervals,
    IntervalOptions,
    MeasureIntervals,
    RowPredictions,
    TableIntervals,
    weight_note,
)
from calibrant.metrics.measure import Measure
from calibrant.metrics.prediction_facts import ClassFacts, TableFacts
from calibrant.metrics.probability_matrix import read_classes, read_raw_classes
from calibrant.metrics.registry import CLASS_MEASURES, MEASURES, OF_CURVE, REDRAWN

Records = Mapping[str, Measure]

#: the group of measures that are found where none are asked for, and the word for all of them
STANDARD, ALL = "standard", "all"


def chosen_records(records: Records, measures: Any = None) -> dict[str, Measure]:
    """The records of some names and groups, in the order of the registry.

    >>> from calibrant.metrics.registry import MEASURES
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
    """The value of every measure that the facts allow, in order, and notes on them."""
    values, notes = {}, []
    for name, measure in records.items():
        if measure.needs_table and facts.table is None:
            notes.append(f"{name} was left out: {measure.needs_table}")
            continue
        value, note = measure.found(facts)
        if value is not None:
            values[name] = value
        if note and note not in notes:
            notes.append(note)
    return values, notes


def interval_fields(
    records: Records,
    new: MeasureIntervals | None,
    old: MeasureIntervals | None,
    changes: ChangeIntervals | None,
) -> tuple[Any, ...]:
    """The last fields of an evaluation: level, intervals, those before, and the changes."""
    if new is None:
        return ()
    spans = _intervals(records, new)
    if old is None:
        return new.level, spans
    moved = _changes(records, new.values, old.values, changes if spans else None)
    return new.level, spans, _intervals(records, old), moved


def _intervals(records: Records, of: MeasureIntervals) -> Spans:
    """An interval for each measure that can have one, in the order of the values."""
    found: Spans = {}
    if not of.enough:
        return found
    for name, value in of.values.items():
        measure = records[name]
        if math.isfinite(value):
            span = of.redrawn(name) if measure.interval is None else measure.interval(of)
            if span is not None:
                found[name] = measure.around(value, span)
    return found


def _changes(
    records: Records,
    new: dict[str, float],
    old: dict[str, float],
    changes: ChangeIntervals | None,
) -> Changes:
    """The difference of every measure that is finite on both sides, with its interval."""
    found: Changes = {}
    for name, value in new.items():
        difference = value - old.get(name, math.nan)
        if not math.isfinite(difference):
            continue
        interval = records[name].change
        span = None if changes is None or interval is None else interval(changes)
        ends = (
            (None, None) if span is None else (min(span[0], difference), max(span[1], difference))
        )
        found[name] = (difference, *ends)
    return found


def merge_notes(before: list[str], after: list[str]) -> list[str]:
    """Notes that hold for both once, the others with their side."""
    common = [note for note in after if note in before]
    sides = (("before", before), ("after", after))
    return common + [f"{side}: {n}" for side, notes in sides for n in notes if n not in common]


# --- two classes --------------------------------------------------------------------------------


class Measured(NamedTuple):
    """The measures of a set of predictions, notes on them, and what intervals need.

    ``table`` holds the predictions as probabilities, ``ranked`` as they came: the sigmoid may have
    merged large margins. ``counted``: the scores of the table are all those that came. ``extent``:
    the smallest and the largest score that came, where the table does not tell.
    """

    values: dict[str, float]
    notes: list[str]
    table: ScoreTable
    ranked: ScoreTable
    counted: bool = True
    extent: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest score that came."""
        return self.extent or (float(self.ranked.scores[0]), float(self.ranked.scores[-1]))

    def intervals(self, bins: Bins, options: IntervalOptions) -> TableIntervals:
        """The intervals of the measures."""
        redrawn = {name: of for name, of in REDRAWN.items() if name in self.values}
        curves = {name: of for name, of in OF_CURVE.items() if name in self.values}
        return TableIntervals(self.table, self.ranked, self.values, bins, options, redrawn, curves)


def measured(ranked: ScoreTable, bins: Bins, records: Records) -> Measured:
    """The measures of a table, in order.

    Percentages and margins are read as probabilities; of points only the order is measured.
    """
    facts = TableFacts(ranked, bins)
    if kind_of(ranked) == "points":
        records = {name: measure for name, measure in records.items() if measure.ranks}
    values, notes = measure_all(records, facts)
    table = facts.table
    if isinstance(bins, str) and "ece" in values:
        notes.append(bins_note(len(facts.groups.weight)))
    if table.error:
        notes.append(f"the table was pooled: predictions were moved by up to {table.error:.3g}")
    return Measured(values, notes, table, ranked)


def evaluation_of(
    new: Measured,
    old: Measured | None,
    bins: Bins,
    options: IntervalOptions | None,
    pair: PairedCells | None = None,
    apart: str = "two tables do not tell which rows belong together",
) -> Evaluation:
    """After, and perhaps before, with intervals if there are options.

    ``pair`` are the rows of both, if they are known. ``apart`` says why the change has no intervals
    where there are none.
    """
    notes, old_notes = list(new.notes), [] if old is None else list(old.notes)
    found = before = changes = None
    if options is not None:
        found = new.intervals(bins, options)
        notes += found.notes
        if old is not None:
            before = old.intervals(bins, options)
            old_notes += before.notes
            changes = None if pair is None else _row_changes(pair, found, before)
    if old is not None:
        notes = _notes_on_both(new, old, merge_notes(old_notes, notes))
        if found is not None and changes is None:
            notes.append(Note(f"the change has no intervals: {apart}", CHANGE))
    if options is not None:
        notes += weight_note(new.table, options.weights)
    made = Evaluation(
        new.values,
        None if old is None else old.values,
        new.table.total,
        new.table.total_positive,
        len(new.table),
        None if old is None else len(old.ranked),
        tuple(notes),
        *interval_fields(MEASURES, found, before, changes),
    )
    weights = "importance" if options is None else options.weights
    return with_look(made, first_look(new.ranked, weights))


def _notes_on_both(new: Measured, old: Measured, notes: list[str]) -> list[str]:
    """The notes on either side, with those on both of them around."""
    if read := reading_between(*old.ends):
        notes = [f"raw scores {read}", *notes]
    if not new.counted or len(new.table) >= len(old.ranked):
        return notes
    many = f"{'' if old.counted else 'at least '}{len(old.ranked):,}"
    ties = f"{many} different scores became {len(new.table):,} predictions: some now share one"
    before, after = old.values.get("auc"), new.values.get("auc")
    if before is not None and after is not None and before != after:
        ties = f"{ties}, AUC moved from {before:.4g} to {after:.4g}"
    return [*notes, Note(ties, TIES)]


def _row_changes(pair: PairedCells, new: TableIntervals, old: TableIntervals) -> RowChangeIntervals:
    """The intervals of after − before; of points only the order is compared."""
    points = kind_of(old.ranked) == "points"
    p = pair.before if points else probability_of(pair.before, old.ranked)
    return RowChangeIntervals(
        RowPredictions(new, pair.after, pair.after, pair.positive),
        RowPredictions(old, p, pair.before, pair.positive),
        pair.rows(new.options.weights),
    )


# --- several classes ----------------------------------------------------------------------------


def evaluate_classes(
    y: Any,
    p: Any,
    raw: Any,
    bins: Bins,
    sample_weight: Any,
    classes: Any,
    options: IntervalOptions | None,
    records: Records | None = None,
) -> MulticlassEvaluation:
    """The measures of an (n, k) matrix of probabilities, and of the raw scores if they came."""
    seen = read_classes(y, p, sample_weight, classes)
    matrix = seen.matrix
    facts = ClassFacts(matrix, bins)
    wanted = chosen_records(CLASS_MEASURES) if records is None else records
    values, notes = measure_all(wanted, facts)
    if isinstance(bins, str) and "top_label_ece" in values:
        notes.append(bins_note(len(facts.top.weight), "top-label ECE is"))
    found = None if options is None else ClassIntervals(matrix, values, bins, options)
    old_values = before = changes = None
    if raw is not None:
        old, linked = read_raw_classes(y, seen, raw, sample_weight, classes)
        old_values, old_notes = measure_all(wanted, ClassFacts(old, bins))
        notes = merge_notes(old_notes, notes)
        if linked:
            read = "raw scores are no distributions and were read as logits, through softmax"
            notes = [read, *notes]
        if options is not None and found is not None:
            before = ClassIntervals(old, old_values, bins, options)
            changes = ClassChangeIntervals(found, before)
    if found is not None:
        notes += _interval_notes(found)
    made = MulticlassEvaluation(
        values,
        old_values,
        _by_class(facts),
        matrix.total,
        tuple(plain(label) for label in seen.labels),
        tuple(notes),
        *interval_fields(CLASS_MEASURES, found, before, changes),
    )
    weights = "importance" if options is None else options.weights
    return with_look(made, class_look(matrix, weights))


def _by_class(facts: ClassFacts) -> Columns:
    """Weight, ECE, MCE and AUC of each class against the rest."""
    return {
        "weight": tuple(facts.matrix.class_weight.tolist()),
        "ece": tuple(groups.mean_gap() for groups in facts.each),
        "mce": tuple(groups.largest_gap() for groups in facts.each),
        "auc": tuple(facts.columns.areas),
    }


def _interval_notes(of: ClassIntervals) -> list[str]:
    if not of.enough:
        return of.notes
    without = [name for name in of.values if CLASS_MEASURES[name].interval is None]
    notes = [f"{name} has no interval for several classes" for name in without]
    return notes + weight_note(of.matrix, of.options.weights)
