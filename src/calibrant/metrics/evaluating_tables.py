"""All measures of tables of two classes at once, with intervals, before and after."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.losses import sigmoid
from calibrant.metrics.all_measures import interval_fields, measure_all, merge_notes
from calibrant.metrics.change_intervals import RowChangeIntervals, RowPredictions
from calibrant.metrics.evaluation_results import Evaluation
from calibrant.metrics.interval_formulas import RowWeights
from calibrant.metrics.intervals import IntervalOptions, TableIntervals, weight_note
from calibrant.metrics.notes import CHANGE, TIES, Note
from calibrant.metrics.prediction_facts import TableFacts
from calibrant.metrics.registry import MEASURES, REDRAWN

__all__ = ["Measured", "evaluation_of", "measured"]


class Measured(NamedTuple):
    """The measures of a set of predictions, notes on them, and what intervals need.

    ``table`` holds the predictions as probabilities, ``ranked`` as they came: the sigmoid may have
    merged large margins. ``counted``: the scores of the table are all those that came.
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

    def intervals(self, bins: int, options: IntervalOptions) -> TableIntervals:
        """The intervals of the measures."""
        return TableIntervals(self.table, self.ranked, self.values, bins, options, REDRAWN)


def measured(ranked: ScoreTable, bins: int) -> Measured:
    """All measures of a table, in order; margins are read through the sigmoid."""
    facts = TableFacts(ranked, bins)
    values, notes = measure_all(MEASURES, facts)
    table = facts.table
    if table.error:
        notes.append(f"the table was pooled: predictions were moved by up to {table.error:.3g}")
    return Measured(values, notes, table, ranked)


def evaluation_of(
    new: Measured,
    old: Measured | None,
    bins: int,
    options: IntervalOptions | None,
    pair: tuple[Rows, Rows] | None = None,
    apart: str = "two tables do not tell which rows belong together",
) -> Evaluation:
    """After, and perhaps before, with intervals if there are options.

    ``pair`` are the rows of both, if there are rows. ``apart`` says why the change has no intervals
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
            changes = None if pair is None else _changes(*pair, found, before, old.margins)
    if old is not None:
        notes = _notes_on_both(new, old, merge_notes(old_notes, notes))
        if found is not None and changes is None:
            notes.append(Note(f"the change has no intervals: {apart}", CHANGE))
    if options is not None:
        notes += weight_note(new.table, options.weights)
    return Evaluation(
        new.values,
        None if old is None else old.values,
        new.table.total,
        new.table.total_positive,
        len(new.table),
        None if old is None else len(old.ranked),
        tuple(notes),
        *interval_fields(MEASURES, found, before, changes),
    )


def _notes_on_both(new: Measured, old: Measured, notes: list[str]) -> list[str]:
    """The notes on either side, with those on both of them around."""
    if old.margins:
        read = "raw scores lie outside [0, 1] and were read as margins, through the sigmoid"
        notes = [read, *notes]
    if not new.counted or len(new.table) >= len(old.ranked):
        return notes
    many = f"{'' if old.counted else 'at least '}{len(old.ranked)}"
    ties = f"{many} distinct scores became {len(new.table)} distinct predictions: ties are new"
    before, after = old.values.get("auc"), new.values.get("auc")
    if before is not None and after is not None and before != after:
        ties = f"{ties}, AUC moved from {before:.4g} to {after:.4g}"
    return [*notes, Note(ties, TIES)]


def _changes(
    after: Rows, before: Rows, new: TableIntervals, old: TableIntervals, margins: bool
) -> RowChangeIntervals:
    """The intervals of after − before; ``margins``: scores before are read through the sigmoid."""
    kept = slice(None) if after.weight is None else after.weight > 0
    positive = after.positive[kept]
    p, scores = after.scores[kept], before.scores[kept]
    given = None if after.weight is None else after.weight[kept]
    return RowChangeIntervals(
        RowPredictions(new, p, p, positive),
        RowPredictions(old, sigmoid(scores) if margins else scores, scores, positive),
        RowWeights.of(given, len(p), new.options.weights),
    )
