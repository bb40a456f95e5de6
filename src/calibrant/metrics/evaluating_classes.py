"""All measures of several classes at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.data.labels import plain
from calibrant.data.score_matrix import ScoreMatrix, read_score_matrix, row_blocks
from calibrant.errors import InputError
from calibrant.metrics.class_facts import ClassFacts
from calibrant.metrics.class_intervals import ClassIntervalCase, ClassPairs, by_row
from calibrant.metrics.evaluating_tables import differences, merge_notes
from calibrant.metrics.evaluation_results import Columns, MulticlassEvaluation, Spans
from calibrant.metrics.intervals import IntervalOptions, weight_note
from calibrant.metrics.measure import taken
from calibrant.metrics.probability_matrix import LabelledMatrix, read_classes
from calibrant.metrics.registry import CLASS_MEASURES, OF_CLASSES

__all__ = ["evaluate_classes"]


def evaluate_classes(
    y: Any,
    p: Any,
    raw: Any,
    bins: int,
    sample_weight: Any,
    classes: Any,
    options: IntervalOptions | None,
) -> MulticlassEvaluation:
    """All measures of an (n, k) matrix of probabilities, and of the raw scores if they came."""
    seen = read_classes(y, p, sample_weight, classes)
    facts = ClassFacts(seen.matrix, bins)
    after, notes = _measured(facts)
    before, old, said = None, None, notes
    if raw is not None:
        old, linked = _raw_classes(y, seen, raw, sample_weight, classes)
        before, old_notes = _measured(ClassFacts(old.matrix, bins))
        said = ["raw scores are no distributions and were read as logits, through softmax"] * linked
        said += merge_notes(old_notes, notes)
    labels = tuple(plain(label) for label in seen.labels)
    intervals: tuple[Any, ...] = ()
    if options is not None:
        intervals = _intervals(seen, old, (after, before), bins, options)
        said += _interval_notes(seen.matrix, after, options)
    return MulticlassEvaluation(
        after, before, _by_class(facts), seen.matrix.total, labels, tuple(said), *intervals
    )


def _measured(facts: ClassFacts) -> tuple[dict[str, float], list[str]]:
    """All measures of a matrix, in order, and what to say about them."""
    values, notes = {}, []
    for name, measure in OF_CLASSES.items():
        value, note = taken(measure.value(facts))
        if value is not None:
            values[name] = value
        if note:
            notes.append(note)
    return values, notes


def _by_class(facts: ClassFacts) -> Columns:
    """Weight, ECE, MCE and AUC of each class against the rest."""
    return {
        "weight": tuple(facts.matrix.class_weight.tolist()),
        "ece": tuple(groups.mean_gap() for groups in facts.each),
        "mce": tuple(groups.largest_gap() for groups in facts.each),
        "auc": tuple(facts.columns.areas),
    }


# --- intervals ----------------------------------------------------------------------------------


def _intervals(
    seen: LabelledMatrix,
    old: LabelledMatrix | None,
    values: tuple[dict[str, float], dict[str, float] | None],
    bins: int,
    options: IntervalOptions,
) -> tuple[Any, ...]:
    """The last four fields of an evaluation."""
    rows = by_row(seen.matrix, options)
    spans = _class_intervals(ClassIntervalCase(seen.matrix, rows, values[0], bins, options))
    if old is None or values[1] is None:
        return options.level, spans
    old_rows = by_row(old.matrix, options)
    case = ClassIntervalCase(old.matrix, old_rows, values[1], bins, options)
    moved = {}
    if spans:
        pairs = ClassPairs(rows, old_rows, seen.matrix.n_classes, bins, options.level)
        moved = _class_changes(pairs)
    return options.level, spans, _class_intervals(case), differences(values[0], values[1], moved)


def _class_intervals(case: ClassIntervalCase) -> Spans:
    """An interval for each measure that can have one, in order. O(nk log n)."""
    if case.rows.size < 2.0 - 1e-9:
        return {}
    spans = {}
    for name, value in case.values.items():
        interval = OF_CLASSES[name].interval
        if interval is not None and math.isfinite(value):
            span = CLASS_MEASURES[name].around(value, interval(case))
            if span is not None:
                spans[name] = span
    return spans


def _class_changes(pairs: ClassPairs) -> Spans:
    """The interval of after − before on the same rows, where it can be told."""
    found = {}
    for name, measure in OF_CLASSES.items():
        span = None if measure.change is None else measure.change(pairs)
        if span is not None:
            found[name] = span
    return found


def _interval_notes(
    matrix: ScoreMatrix, values: dict[str, float], options: IntervalOptions
) -> list[str]:
    size = matrix.total if options.weights == "counts" else matrix.effective_size
    if size < 2.0 - 1e-9:
        return [f"no intervals: {size:.3g} rows are too few"]
    without = [name for name in values if OF_CLASSES[name].interval is None]
    notes = [f"{name} has no interval for several classes" for name in without]
    return notes + weight_note(matrix.total, matrix.effective_size, options.weights)


# --- the scores before --------------------------------------------------------------------------


def _raw_classes(
    y: Any, seen: LabelledMatrix, raw: Any, sample_weight: Any, classes: Any
) -> tuple[LabelledMatrix, bool]:
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
        return LabelledMatrix(ScoreMatrix(scores, y.codes, y.weight), seen.labels), linked
    scores = read_score_matrix(raw, seen.matrix.n_classes, name="raw", classes=seen.labels)
    scores, linked = _as_distributions(scores)
    return read_classes(y, scores, sample_weight, classes, name="raw"), linked


def _as_distributions(raw: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    blocks = list(row_blocks(*raw.shape))
    if all(raw[rows].min() >= 0.0 and raw[rows].max() <= 1.0 for rows in blocks):
        return raw, False
    p = np.empty_like(raw)
    for rows in blocks:
        p[rows] = softmax(raw[rows].astype(np.float64), axis=1)
    return p, True
