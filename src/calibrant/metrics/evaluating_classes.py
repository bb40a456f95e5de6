"""All measures of several classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.data.distributions import row_blocks
from calibrant.data.score_matrix import ScoreMatrix, read_score_matrix
from calibrant.data.to_numpy import plain
from calibrant.errors import InputError
from calibrant.metrics.all_measures import (
    Records,
    chosen_records,
    interval_fields,
    measure_all,
    merge_notes,
)
from calibrant.metrics.bin_sweep import Bins, bins_note
from calibrant.metrics.class_intervals import ClassChangeIntervals, ClassIntervals
from calibrant.metrics.class_look import class_look
from calibrant.metrics.evaluation_results import Columns, MulticlassEvaluation, with_look
from calibrant.metrics.intervals import IntervalOptions, weight_note
from calibrant.metrics.prediction_facts import ClassFacts
from calibrant.metrics.probability_matrix import LabelledMatrix, read_classes
from calibrant.metrics.registry import CLASS_MEASURES


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


# --- the scores before --------------------------------------------------------------------------


def read_raw_classes(
    y: Any, seen: LabelledMatrix, raw: Any, sample_weight: Any, classes: Any
) -> tuple[ScoreMatrix, bool]:
    """The raw scores as distributions, and whether they had to be made into such."""
    if isinstance(y, ScoreMatrix):
        if not isinstance(raw, ScoreMatrix):
            raise InputError(
                f"raw must be a ScoreMatrix beside a matrix, but {type(raw).__name__} came."
            )
        same = np.array_equal(raw.codes, y.codes) and raw.total == y.total
        if not same:
            raise InputError("raw must be the matrix of the same rows, but its labels differ.")
        scores, linked = _as_distributions(raw.scores)
        return ScoreMatrix(scores, y.codes, y.weight), linked
    scores = read_score_matrix(raw, seen.matrix.n_classes, name="raw", classes=seen.labels)
    scores, linked = _as_distributions(scores)
    return read_classes(y, scores, sample_weight, classes, name="raw").matrix, linked


def _as_distributions(raw: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    blocks = list(row_blocks(*raw.shape))
    if all(raw[rows].min() >= 0.0 and raw[rows].max() <= 1.0 for rows in blocks):
        return raw, False
    p = np.empty_like(raw)
    for rows in blocks:
        p[rows] = softmax(raw[rows].astype(np.float64), axis=1)
    return p, True
