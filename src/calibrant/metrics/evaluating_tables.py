"""All measures of tables of two classes at once, with intervals, before and after."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.data.score_kinds import kind_of, probability_of, reading_between
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.all_measures import (
    Records,
    chosen_records,
    interval_fields,
    measure_all,
    merge_notes,
)
from calibrant.metrics.bin_sweep import Bins, bins_note
from calibrant.metrics.change_intervals import PairedCells, RowChangeIntervals, RowPredictions
from calibrant.metrics.evaluation_results import Evaluation, with_look
from calibrant.metrics.first_look import first_look
from calibrant.metrics.intervals import IntervalOptions, TableIntervals, weight_note
from calibrant.metrics.notes import CHANGE, TIES, Note
from calibrant.metrics.prediction_facts import TableFacts
from calibrant.metrics.registry import MEASURES, OF_CURVE, REDRAWN


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


def measured(ranked: ScoreTable, bins: Bins, records: Records | None = None) -> Measured:
    """Measures of a table, in order: those of the records, or the standard ones.

    Percentages and margins are read as probabilities; of points only the order is measured.
    """
    facts = TableFacts(ranked, bins)
    wanted = chosen_records(MEASURES) if records is None else records
    if kind_of(ranked) == "points":
        wanted = {name: measure for name, measure in wanted.items() if measure.ranks}
    values, notes = measure_all(wanted, facts)
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
            changes = None if pair is None else _changes(pair, found, before)
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


def _changes(pair: PairedCells, new: TableIntervals, old: TableIntervals) -> RowChangeIntervals:
    """The intervals of after − before; of points only the order is compared."""
    points = kind_of(old.ranked) == "points"
    p = pair.before if points else probability_of(pair.before, old.ranked)
    return RowChangeIntervals(
        RowPredictions(new, pair.after, pair.after, pair.positive),
        RowPredictions(old, p, pair.before, pair.positive),
        pair.rows(new.options.weights),
    )
