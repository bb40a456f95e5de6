"""All measures of tables of two classes at once, with intervals, before and after."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.losses import sigmoid
from calibrant.metrics.change_intervals import Pairs, Side
from calibrant.metrics.evaluation_results import Changes, Evaluation, Spans
from calibrant.metrics.interval_formulas import SampleCells, row_weights, weighing
from calibrant.metrics.intervals import IntervalCase, IntervalOptions, weight_note
from calibrant.metrics.notes import CHANGE, TIES, Note
from calibrant.metrics.prediction_facts import PredictionFacts, TableFacts
from calibrant.metrics.redrawn_tables import FEWEST, Chance, chance_of
from calibrant.metrics.registry import MEASURES, REDRAWN

__all__ = [
    "Measured",
    "alone",
    "compared",
    "differences",
    "measure_all",
    "measured",
    "merge_notes",
]


class Measured(NamedTuple):
    """The measures of a set of predictions, what to say about them, and what intervals need.

    ``table`` holds the predictions as probabilities, ``ranked`` as they came: σ may have merged
    large margins. ``counted``: each score of the table is one that came, and none is missing.
    """

    values: dict[str, float]
    notes: list[str]
    table: ScoreTable
    ranked: ScoreTable
    counted: bool = True

    @property
    def margins(self) -> bool:
        """Whether the scores were read through the sigmoid."""
        return self.table is not self.ranked


def measured(ranked: ScoreTable, bins: int) -> Measured:
    """All measures of a table, in order; margins are read through the sigmoid."""
    facts = TableFacts(ranked, bins)
    values, notes = measure_all(facts)
    table = facts.table
    if table.error:
        notes.append(f"the table was pooled: predictions were moved by up to {table.error:.3g}")
    return Measured(values, notes, table, ranked)


def measure_all(facts: PredictionFacts) -> tuple[dict[str, float], list[str]]:
    """All measures that the facts allow, in order, and what to say about them."""
    missing = [m for m in MEASURES.values() if m.needs_table and facts.table is None]
    notes = [f"{measure.name} was left out: {measure.needs_table}" for measure in missing]
    values = {}
    for name, measure in MEASURES.items():
        if measure in missing:
            continue
        value, note = measure.found(facts)
        if value is not None:
            values[name] = value
        if note:
            notes.append(note)
    return values, notes


# --- one side, and two --------------------------------------------------------------------------


def alone(new: Measured, bins: int, options: IntervalOptions | None) -> Evaluation:
    """One side, with intervals if they are wanted."""
    table, notes = new.table, list(new.notes)
    facts = (table.total, table.total_positive, len(table))
    if options is None:
        return Evaluation(new.values, None, *facts, None, tuple(notes))
    found = _side_intervals(new, bins, options)
    notes += [*found.notes, *weight_note(table.total, table.effective_size, options.weights)]
    return Evaluation(new.values, None, *facts, None, tuple(notes), options.level, found.intervals)


def compared(
    new: Measured,
    old: Measured,
    pair: tuple[Rows, Rows] | None,
    bins: int,
    options: IntervalOptions | None,
    apart: str = "two tables do not tell which rows belong together",
) -> Evaluation:
    """After and before; ``pair`` are the rows of both, if there are rows.

    ``apart`` says why the change has no intervals where there are none.
    """
    table, notes, old_notes = new.table, list(new.notes), list(old.notes)
    facts = (table.total, table.total_positive, len(table))
    said = ["raw scores lie outside [0, 1] and were read as margins, through the sigmoid"]
    said *= old.margins
    intervals: tuple[Any, ...] = ()
    last: list[str] = []
    if options is not None:
        found = _side_intervals(new, bins, options)
        before = _side_intervals(old, bins, options)
        notes += found.notes
        old_notes += before.notes
        spans: Spans = {}
        if pair is None:
            last.append(Note(f"the change has no intervals: {apart}", CHANGE))
        elif found.intervals:  # else too few rows, as a note says
            spans = _change_intervals(pair, (new, old), (found, before), bins, options)
        last += weight_note(table.total, table.effective_size, options.weights)
        change = differences(new.values, old.values, spans)
        intervals = (options.level, found.intervals, before.intervals, change)
    said += merge_notes(old_notes, notes)
    if new.counted and len(table) < len(old.ranked):
        said.append(Note(_ties_note(new, old), TIES))
    notes = [*said, *last]
    return Evaluation(new.values, old.values, *facts, len(old.ranked), tuple(notes), *intervals)


def merge_notes(before: list[str], after: list[str]) -> list[str]:
    """Notes that hold for both once, the others with their side."""
    common = [note for note in after if note in before]
    sides = (("before", before), ("after", after))
    return common + [f"{side}: {n}" for side, notes in sides for n in notes if n not in common]


def _ties_note(new: Measured, old: Measured) -> str:
    many = f"{'' if old.counted else 'at least '}{len(old.ranked)}"
    note = f"{many} distinct scores became {len(new.table)} distinct predictions: ties are new"
    before, after = old.values, new.values
    if "auc" not in after or before["auc"] == after["auc"]:
        return note
    return f"{note}, AUC moved from {before['auc']:.4g} to {after['auc']:.4g}"


# --- intervals ----------------------------------------------------------------------------------


class _SideIntervals(NamedTuple):
    """The intervals of one side, and what those of a change need besides."""

    intervals: Spans
    sample: SampleCells
    chance: dict[str, Chance]
    notes: list[str]


def _side_intervals(side: Measured, bins: int, options: IntervalOptions) -> _SideIntervals:
    """An interval for each measure that can have one, in the order of the values."""
    values, table = side.values, side.table
    sample = weighing[options.weights](table)
    if sample.size < 2.0 - 1e-9:
        few = f"no intervals: {sample.size:.3g} rows are too few"
        return _SideIntervals({}, sample, {}, [few])
    notes, chance = [], {}
    reason = _too_few(sample)
    if reason:
        without = ", ".join(name for name in REDRAWN if name in values)
        notes.append(f"no interval for {without}: {reason}; the others may be too narrow")
    else:
        drawing = (options.weights, options.level, options.replicates, options.rng)
        chance = chance_of(REDRAWN, table, *drawing)
    found = {}
    for name, value in values.items():
        measure = MEASURES[name]
        if measure.interval is None or not math.isfinite(value):
            continue
        of = IntervalCase(sample, table, side.ranked, bins, options, value, chance.get(name))
        span = measure.around(value, measure.interval(of))
        if span is not None:
            found[name] = span
    return _SideIntervals(found, sample, chance, notes)


def _too_few(sample: SampleCells) -> str:
    """Why curves and windows get no interval, or nothing."""
    for word, n, q in (
        ("positives", sample.positive, sample.positive_sq),
        ("negatives", sample.negative, sample.negative_sq),
    ):
        size = float(n.sum()) ** 2 / float(q.sum()) if n.any() else 0.0
        if size < FEWEST - 1e-9:
            return f"it takes {FEWEST:g} {word} or more, and {size:.3g} came"
    return ""


def _change_intervals(
    rows: tuple[Rows, Rows],
    sides: tuple[Measured, Measured],
    found: tuple[_SideIntervals, _SideIntervals],
    bins: int,
    options: IntervalOptions,
) -> Spans:
    """The interval of after − before, for each measure for which it can be told."""
    after, before = rows
    new, old = sides
    kept = slice(None) if after.weight is None else after.weight > 0
    hit = after.positive[kept]
    given = None if after.weight is None else after.weight[kept]
    weight, squares = row_weights(given, len(hit), options.weights)
    old_p = sigmoid(before.scores) if old.margins else before.scores
    pairs = Pairs(
        _side(after.scores[kept], after.scores[kept], hit, new, found[0]),
        _side(old_p[kept], before.scores[kept], hit, old, found[1]),
        weight,
        squares,
        bins,
        options.level,
    )
    spans = {}
    for name, measure in MEASURES.items():
        ends = (new.values.get(name, math.inf), old.values.get(name, math.inf))
        if measure.change is not None and all(map(math.isfinite, ends)):
            span = measure.change(pairs)
            if span is not None:
                change = ends[0] - ends[1]
                spans[name] = (min(span[0], change), max(span[1], change))
    return spans


def _side(p: Any, rank: Any, hit: Any, of: Measured, found: _SideIntervals) -> Side:
    return Side(p, rank, hit, of.table, of.ranked, found.sample, of.values, found.chance)


def differences(new: dict[str, float], old: dict[str, float], spans: Spans) -> Changes:
    """The difference of every measure that both have and that is finite, with its interval."""
    found: Changes = {}
    for name, value in new.items():
        difference = value - old.get(name, math.nan)
        if math.isfinite(difference):
            low, high = spans.get(name, (None, None))
            found[name] = (difference, low, high)
    return found
