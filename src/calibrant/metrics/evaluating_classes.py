"""All measures of several classes at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.data.frozen import Frozen
from calibrant.data.labels import plain
from calibrant.data.matrix import ScoreMatrix, read_score_matrix, row_blocks
from calibrant.errors import InputError
from calibrant.metrics._classes import (
    Classes,
    class_tables,
    mean_surprise,
    see_classes,
    share_right,
    square_sum,
    surprises,
    top_table,
)
from calibrant.metrics.binned import group
from calibrant.metrics.intervals import How, changes, weight_note
from calibrant.metrics.intervals_classes import by_row, class_changes, class_intervals
from calibrant.metrics.multiclass import class_groups
from calibrant.metrics.printing import (
    Changes,
    Measure,
    Printed,
    Spans,
    plain_changes,
    plain_spans,
    plain_values,
)
from calibrant.metrics.ranking import area
from calibrant.metrics.windows import not_whole, window_error

__all__ = ["CLASS_MEASURES", "MulticlassEvaluation", "evaluate_classes"]

Columns = dict[str, tuple[float | None, ...]]

#: CalBin looks at every case of every class; above this many it would take longer than all else
MOST_WINDOWS = 50_000_000

#: every measure of several classes, in the order of the table
CLASS_MEASURES = {
    "log_loss": Measure("log loss", "smaller", "mean surprise, in nats"),
    "brier": Measure("Brier score", "smaller", "squared error, summed over the classes"),
    "rmse": Measure("RMSE", "smaller", "root of the Brier score per class"),
    "top_label_ece": Measure(
        "top-label ECE", "smaller", "mean |confidence − share of right predictions| over bins"
    ),
    "top_label_mce": Measure("top-label MCE", "smaller", "the largest of those distances"),
    "classwise_ece": Measure(
        "class-wise ECE", "smaller", "ECE of each class against the rest, averaged"
    ),
    "classwise_mce": Measure("class-wise MCE", "smaller", "the worst bin of the worst class"),
    "auc": Measure("AUC", "larger", "each class against the rest, averaged"),
    "accuracy": Measure("accuracy", "larger", "share of rows whose likeliest class came"),
    "calbin": Measure("CalBin", "smaller", "mean |p − frequency| over sliding windows and classes"),
}


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassEvaluation(Printed, Frozen):
    """The measures of probabilities of several classes, after calibration and perhaps before it.

    Attributes
    ----------
    after : dict of str to float
        Value of each measure, by name. A measure that the data do not allow is left out, and a
        note says why.
    before : dict of str to float, or None
        The same for the raw scores, if they were given.
    by_class : dict of str to tuple
        After calibration, for each class against the rest, in the order of ``labels``: its
        ``weight``, ``ece``, ``mce`` and ``auc`` (None for a class that did not come).
    weight : float
        Total weight (the number of rows, without weights).
    labels : tuple
        The class of each column.
    notes : tuple of str
        What deserves a look.
    level : float, or None
        The confidence of the intervals; None where none were wanted.
    intervals, intervals_before : dict of str to (float, float), or None
        The interval of each measure but ``calbin``. It holds the value itself.
    change : dict of str to (float, float or None, float or None), or None
        After − before, and the ends of its interval: for log loss, Brier score, RMSE, top-label ECE
        and accuracy; None for the others.

    Notes
    -----
    Larger is better for ``auc`` and ``accuracy``, smaller for all others.
    """

    after: dict[str, float]
    before: dict[str, float] | None
    by_class: Columns
    weight: float
    labels: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    level: float | None = None
    intervals: Spans | None = None
    intervals_before: Spans | None = None
    change: Changes | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite value is the string "inf", a date its text."""
        return {
            "after": plain_values(self.after),
            "before": None if self.before is None else plain_values(self.before),
            "by_class": {name: list(values) for name, values in self.by_class.items()},
            "weight": self.weight,
            "labels": [_for_json(label) for label in self.labels],
            "notes": list(self.notes),
            "level": self.level,
            "intervals": plain_spans(self.intervals),
            "intervals_before": plain_spans(self.intervals_before),
            "change": plain_changes(self.change),
        }

    @property
    def _measures(self) -> Mapping[str, Measure]:
        return CLASS_MEASURES

    def _below(self) -> list[str]:
        sizes = [value for value in self.by_class["weight"] if value is not None]
        spread = f"from {min(sizes):.10g} to {max(sizes):.10g} each"
        lines = [f"weight {self.weight:.10g}; {len(self.labels)} classes, {spread}"]
        errors = [value for value in self.by_class["ece"] if value is not None]
        worst = int(np.argmax(errors))
        lines.append(f"largest ECE of a class: {errors[worst]:.4f}, {self.labels[worst]!r}")
        return [*lines, *(f"note: {note}" for note in self.notes)]


def _for_json(label: Any) -> Any:
    """A label that JSON knows, or its text (a date, say)."""
    return label if isinstance(label, (str, int, float)) else str(label)


def evaluate_classes(
    y: Any, p: Any, raw: Any, bins: int, sample_weight: Any, classes: Any, how: How | None
) -> MulticlassEvaluation:
    """All measures of an (n, k) matrix of probabilities, and of the raw scores if they came."""
    seen = see_classes(y, p, sample_weight, classes)
    after, by_class, notes = _measured(seen, bins)
    before, old, said = None, None, list(notes)
    if raw is not None:
        old, linked = _raw_classes(y, seen, raw, sample_weight, classes)
        before, _, old_notes = _measured(old, bins)
        common = [note for note in notes if note in old_notes]
        said = ["raw scores are no distributions and were read as logits, through softmax"] * linked
        said += common + [f"before: {note}" for note in old_notes if note not in common]
        said += [f"after: {note}" for note in notes if note not in common]
    labels = tuple(plain(label) for label in seen.labels)
    intervals: tuple[Any, ...] = ()
    if how is not None:
        intervals = _intervals(seen, old, (after, before), bins, how)
        said += _interval_notes(seen.matrix, after, how)
    return MulticlassEvaluation(
        after, before, by_class, seen.matrix.total, labels, tuple(said), *intervals
    )


def _intervals(
    seen: Classes,
    old: Classes | None,
    values: tuple[dict[str, float], dict[str, float] | None],
    bins: int,
    how: How,
) -> tuple[Any, ...]:
    """The last four fields of an evaluation."""
    rows = by_row(seen.matrix, how)
    spans = class_intervals(seen.matrix, rows, values[0], bins, how)
    if old is None or values[1] is None:
        return how.level, spans
    old_rows = by_row(old.matrix, how)
    old_spans = class_intervals(old.matrix, old_rows, values[1], bins, how)
    moved = class_changes(rows, old_rows, seen.matrix.n_classes, bins, how) if spans else {}
    return how.level, spans, old_spans, changes(values[0], values[1], moved)


def _interval_notes(matrix: ScoreMatrix, values: dict[str, float], how: How) -> list[str]:
    size = matrix.total if how.weights == "counts" else matrix.effective_size
    if size < 2.0 - 1e-9:
        return [f"no intervals: {size:.3g} rows are too few"]
    notes = ["calbin has no interval for several classes"] if "calbin" in values else []
    return notes + weight_note(matrix.total, matrix.effective_size, how.weights)


def _measured(seen: Classes, bins: int) -> tuple[dict[str, float], Columns, list[str]]:
    """All measures of a matrix, in order, those of each class, and what to say about them."""
    matrix, notes = seen.matrix, []
    values = {"log_loss": mean_surprise(matrix)}
    if math.isinf(values["log_loss"]):
        notes.append(f"log loss is infinite: {surprises(matrix)}")
    square = square_sum(matrix)
    top = group(top_table(matrix), bins)
    each = class_groups(matrix, bins)
    values |= {"brier": square, "rmse": math.sqrt(square / matrix.n_classes)}
    values |= {"top_label_ece": top.mean_gap(), "top_label_mce": top.largest_gap()}
    errors, worst = [g.mean_gap() for g in each], [g.largest_gap() for g in each]
    values |= {"classwise_ece": float(np.mean(errors)), "classwise_mce": max(worst)}
    areas, windows, reason = _by_column(matrix)
    absent = sum(value is None for value in areas)
    if absent:
        notes.append(f"{absent} of {len(areas)} classes did not come: auc is over the others")
    if absent < len(areas) - 1:
        values["auc"] = float(np.mean([value for value in areas if value is not None]))
    else:
        notes[-1] = "auc needs two classes, but only one came"
    values["accuracy"] = share_right(matrix)
    if reason:
        notes.append(reason)
    else:
        values["calbin"] = float(np.mean(windows))
    weight = tuple(matrix.class_weight.tolist())
    by_class: Columns = {"weight": weight, "ece": tuple(errors), "mce": tuple(worst)}
    return values, by_class | {"auc": tuple(areas)}, notes


def _by_column(matrix: ScoreMatrix) -> tuple[list[float | None], list[float], str]:
    """AUC and CalBin of each class; and why there is no CalBin, if there is none."""
    areas: list[float | None] = []
    windows: list[float] = []
    reason = ""
    cases = matrix.total * matrix.n_classes
    if cases > MOST_WINDOWS:
        reason = f"calbin was left out: it looks at each of {cases:.3g} cases; call calbin for it"
    for table in class_tables(matrix):
        both = table.total_positive > 0 and table.total_negative > 0
        areas.append(area(table) if both else None)
        reason = reason or not_whole(table)
        if not reason:
            windows.append(window_error(table))
    return areas, windows, reason


def _raw_classes(
    y: Any, seen: Classes, raw: Any, sample_weight: Any, classes: Any
) -> tuple[Classes, bool]:
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
        return Classes(ScoreMatrix(scores, y.codes, y.weight), seen.labels), linked
    scores = read_score_matrix(raw, seen.matrix.n_classes, name="raw")
    scores, linked = _as_distributions(scores)
    return see_classes(y, scores, sample_weight, classes, name="raw"), linked


def _as_distributions(raw: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    blocks = list(row_blocks(*raw.shape))
    if all(raw[rows].min() >= 0.0 and raw[rows].max() <= 1.0 for rows in blocks):
        return raw, False
    p = np.empty_like(raw)
    for rows in blocks:
        p[rows] = softmax(raw[rows].astype(np.float64), axis=1)
    return p, True
