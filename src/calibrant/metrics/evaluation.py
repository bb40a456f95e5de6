"""What `evaluate` returns: a value that prints as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.metrics.printing import (
    Changes,
    Measure,
    Printed,
    Spans,
    plain_changes,
    plain_spans,
    plain_values,
)

__all__ = ["MEASURES", "Evaluation", "Measure"]

#: every measure of an evaluation, in the order of the table
MEASURES = {
    "log_loss": Measure("log loss", "smaller", "mean surprise, in nats"),
    "brier": Measure("Brier score", "smaller", "mean squared error, mean (y − p)²"),
    "ece": Measure("ECE", "smaller", "mean |prediction − frequency| over bins of equal width"),
    "mce": Measure("MCE", "smaller", "the largest of those distances"),
    "rmse": Measure("RMSE", "smaller", "root of the Brier score"),
    "auc": Measure("AUC", "larger", "chance that a positive ranks above a negative"),
    "accuracy": Measure("accuracy", "larger", "share of right decisions at p ≥ ½"),
    "calbin": Measure("CalBin", "smaller", "mean |p − frequency| over sliding windows"),
    "calibration_loss": Measure(
        "calibration loss", "smaller", "mean squared distance from the frequency on the ROC hull"
    ),
    "miscalibration": Measure(
        "miscalibration", "smaller", "part of the Brier score that an increasing map could remove"
    ),
    "discrimination": Measure(
        "discrimination", "larger", "Brier score gained over the base rate if well calibrated"
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Printed, Frozen):
    """The measures of a set of probabilities, after calibration and perhaps before it.

    Attributes
    ----------
    after : dict of str to float
        Value of each measure, by name. A measure that the data do not allow is left out, and a
        note says why.
    before : dict of str to float, or None
        The same for the raw scores, if they were given.
    weight, positive_weight : float
        Total weight (the number of rows, without weights), and that of the positives.
    distinct, distinct_before : int
        Different predictions, and different raw scores (None if they were not given).
    notes : tuple of str
        What deserves a look.
    level : float, or None
        The confidence of the intervals; None where none were wanted.
    intervals, intervals_before : dict of str to (float, float), or None
        The interval of each measure that has one. It holds the value itself.
    change : dict of str to (float, float or None, float or None), or None
        After − before, and the ends of its interval (None where it cannot be told), for each
        measure that is finite on both sides.

    Notes
    -----
    Smaller is better for ``log_loss``, ``brier``, ``ece``, ``mce``, ``rmse``, ``calbin``,
    ``calibration_loss`` and ``miscalibration``; larger is better for ``auc``, ``accuracy`` and
    ``discrimination``.
    """

    after: dict[str, float]
    before: dict[str, float] | None
    weight: float
    positive_weight: float
    distinct: int
    distinct_before: int | None
    notes: tuple[str, ...] = ()
    level: float | None = None
    intervals: Spans | None = None
    intervals_before: Spans | None = None
    change: Changes | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite value is the string "inf"."""
        return {
            "after": plain_values(self.after),
            "before": None if self.before is None else plain_values(self.before),
            "weight": self.weight,
            "positive_weight": self.positive_weight,
            "distinct": self.distinct,
            "distinct_before": self.distinct_before,
            "notes": list(self.notes),
            "level": self.level,
            "intervals": plain_spans(self.intervals),
            "intervals_before": plain_spans(self.intervals_before),
            "change": plain_changes(self.change),
        }

    @property
    def _measures(self) -> Mapping[str, Measure]:
        return MEASURES

    def _below(self) -> list[str]:
        """The lines under the table."""
        distinct = f"{self.distinct} distinct prediction{'s' if self.distinct != 1 else ''}"
        if self.distinct_before is not None:
            distinct += f", {self.distinct_before} before"
        weights = f"weight {self.weight:.10g}, of it {self.positive_weight:.10g} positive"
        return [f"{weights}; {distinct}", *(f"note: {note}" for note in self.notes)]
