"""Predictions out of fold: all measures, AUC as one map has it, and the map's values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.all_measures import chosen_records, evaluation_of, measured
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.evaluation_results import (
    TIES,
    Changes,
    Evaluation,
    MulticlassEvaluation,
    Note,
    Spans,
    topic_of,
)
from calibrant.metrics.intervals import IntervalOptions
from calibrant.metrics.registry import MEASURES

E = TypeVar("E", Evaluation, MulticlassEvaluation)

#: bins as `evaluate` has them; tables drawn again are fewer, since people wait for a fit
BINS, REPLICATES = 10, 400
_HOW = "AUC after is measured within each fold, because each fold has a calibrator of its own"


def evaluate_held_out(
    after: ScoreTable,
    before: ScoreTable | None,
    pair: PairedCells | None,
    *,
    level: float,
    aucs: tuple[float | None, float | None] | None,
    scores: int,
    values: int,
    measures: Any = None,
) -> Evaluation:
    """The evaluation of predictions for rows that were held out, beside that of the scores.

    Predictions of several folds come from as many maps. Thrown together they are in an order that
    none of the maps has made, and one score has several values. So AUC is that of the scores over
    all pairs and, after, that plus its change within folds (the intervals keep their width); and
    values are counted for the map fitted to all rows.

    Parameters
    ----------
    after : ScoreTable
        Predictions out of fold.
    before : ScoreTable or None
        The scores as they came; None where they are what was chosen.
    pair : PairedCells or None
        Both for the same rows, without which the changes have no intervals.
    level : float
        Confidence of the intervals.
    aucs : pair of float or None, or None
        AUC before and after; None for predictions of a single map.
    scores, values : int
        Distinct scores, and what they become under the map fitted to all rows.
    measures : str or list of str, optional
        As in `evaluate`.
    """
    options = IntervalOptions(level, REPLICATES, "importance", 0)
    records = chosen_records(MEASURES, measures)
    old = None if before is None else measured(before, BINS, records)
    made = evaluation_of(measured(after, BINS, records), old, BINS, options, pair)
    return made if aucs is None else _of_one_map(made, aucs, scores, values)


def _of_one_map(
    made: Evaluation, aucs: tuple[float | None, float | None], scores: int, values: int
) -> Evaluation:
    (old, new), before = aucs, made.before
    if new is not None and values == 1:
        new = 0.5  # one rate for all rows ranks nothing
    if before is None:
        if new is None or "auc" not in made.after:
            return made
        by = new - made.after["auc"]
        ranked = {**made.after, "auc": new}
        return replace(made, after=ranked, intervals=_moved(made.intervals, by))
    # ties of the folds' maps are not those of the one map
    notes = [note for note in made.notes if topic_of(note) != TIES]
    if values < scores:
        many = f"{values:,} prediction{'s' * (values != 1)}"
        said = f"{scores:,} different scores become {many}, so that some scores share one"
        notes.append(Note(said, TIES))
    made = replace(made, distinct=values, distinct_before=scores, notes=tuple(notes))
    found = with_auc_within_folds(made, old, new)
    return replace(found, notes=made.notes) if values == 1 else found


def with_auc_within_folds(made: E, old: float | None, new: float | None) -> E:
    """An evaluation of predictions out of fold, with AUC before and after as one map has it.

    Its intervals keep their width.
    """
    before = made.before
    if before is None or old is None or new is None or "auc" not in made.after.keys() & before:
        return made
    return replace(
        made,
        after={**made.after, "auc": new},
        before={**before, "auc": old},
        intervals=_moved(made.intervals, new - made.after["auc"]),
        intervals_before=_moved(made.intervals_before, old - before["auc"]),
        change=_changed(made.change, new - old),
        notes=(*made.notes, _HOW),
    )


def _moved(spans: Spans | None, by: float) -> Spans | None:
    if spans is None or "auc" not in spans:
        return spans
    low, high = spans["auc"]
    return {**spans, "auc": (min(max(low + by, 0.0), 1.0), min(max(high + by, 0.0), 1.0))}


def _changed(changes: Changes | None, value: float) -> Changes | None:
    if changes is None or "auc" not in changes:
        return changes
    old, low, high = changes["auc"]
    by = value - old
    ends = (value, None if low is None else low + by, None if high is None else high + by)
    return {**changes, "auc": ends}
