"""Predictions out of fold: AUC within the folds, and the values of the map of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from calibrant.metrics.evaluation_results import Changes, Evaluation, MulticlassEvaluation, Spans
from calibrant.metrics.notes import TIES, Note, topic_of

__all__ = ["with_auc_within_folds", "within_folds"]

E = TypeVar("E", Evaluation, MulticlassEvaluation)

_HOW = "AUC counts the pairs within folds"


def within_folds(
    evaluation: Evaluation,
    auc_before: float | None,
    auc_after: float | None,
    *,
    scores: int,
    values: int,
) -> Evaluation:
    """An evaluation of predictions out of fold, with the AUC and the values of a single map.

    Predictions of several folds come from as many maps. Thrown together they are in an order that
    none of the maps has made, and one score has several values. So AUC is that of the pairs within
    folds (its intervals keep their width), and values are those of the map fitted to all rows.

    Parameters
    ----------
    evaluation : Evaluation
        Of predictions out of fold, with the raw scores beside them.
    auc_before, auc_after : float or None
        Shares of pairs in the right order within the folds; None where there are none.
    scores, values : int
        Distinct scores, and what they become under the map fitted to all rows.
    """
    if evaluation.before is None:
        return evaluation
    # ties of the folds' maps are not those of the one map
    notes = [note for note in evaluation.notes if topic_of(note) != TIES]
    if values < scores:
        said = f"{scores} distinct scores become {values} distinct predictions: ties are new"
        notes.append(Note(said, TIES))
    made = replace(evaluation, distinct=values, distinct_before=scores, notes=tuple(notes))
    return with_auc_within_folds(made, auc_before, auc_after)


def with_auc_within_folds(evaluation: E, auc_before: float | None, auc_after: float | None) -> E:
    """An evaluation of predictions out of fold, with the AUC of the pairs within folds.

    Its intervals keep their width.
    """
    after, before = evaluation.after, evaluation.before
    if before is None or auc_before is None or auc_after is None or "auc" not in after:
        return evaluation
    return replace(
        evaluation,
        after={**after, "auc": auc_after},
        before={**before, "auc": auc_before},
        intervals=_moved(evaluation.intervals, auc_after - after["auc"]),
        intervals_before=_moved(evaluation.intervals_before, auc_before - before["auc"]),
        change=_changed(evaluation.change, auc_after - auc_before),
        notes=(*evaluation.notes, _HOW),
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
