"""Has a calibrator of several classes changed? Each class against the rest, and all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.data.naming import as_in_fit
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.map_given import fitted_of
from calibrant.maps import Identity, VectorMap
from calibrant.metrics.arguments import check_number
from calibrant.metrics.class_look import ClassLook, ClassNames, class_look
from calibrant.metrics.multiplicity import holm_adjusted
from calibrant.metrics.probability_matrix import class_table
from calibrant.monitor.drift_check import check_drift
from calibrant.monitor.drift_value import Drift
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    json_ready,
    shown_p,
    shown_percent,
    sure_p,
)


@dataclass(frozen=True, eq=False, repr=False)
class ClassDrift(PrintsAsTable, Frozen):
    """Whether the classes still come as often as a calibrator says. Prints as a table.

    Attributes
    ----------
    recommendation : {"none", "new map"}
        Keep the calibrator, or fit another to new rows.
    classes : tuple of labels
    drifts : tuple of Drift
        The check of each class against the rest, each at the level that Holm's method gives it.
    adjusted : tuple of float
        Holm's p-value of each class.
    level : float
        The chance of an alarm in any class if nothing has changed.
    look : ClassLook or None
        Whether the calibrator's probabilities say anything of the new rows, and whether columns
        look swapped.
    """

    recommendation: str
    classes: tuple[Any, ...]
    drifts: tuple[Drift, ...]
    adjusted: tuple[float, ...]
    level: float
    look: ClassLook | None = None

    @property
    def found(self) -> tuple[Any, ...]:
        """The classes in which a change was found, however small."""
        pairs = zip(self.classes, self.adjusted, strict=True)
        return tuple(label for label, p in pairs if p <= self.level)

    def in_words(self, names: ClassNames | None = None) -> tuple[str, str]:
        """What was found, and what to do; what is wrong with the scores themselves comes first."""
        found, todo = self._changes()
        if self.look is None or not self.look.useless:
            return found, todo
        first = self.look.headline(names or ClassNames.of(self.classes, face="check"))
        if self.recommendation != "none":
            todo = "Find out why before anything is fitted."
        return f"{first} {found}", todo

    def _changes(self) -> tuple[str, str]:
        k, changed = len(self.classes), self.found
        smallest = f"smallest {sure_p(min(self.adjusted))}, by Holm's step-down"
        if not changed:
            return (
                f"No change was found in any of the {k} classes ({smallest}): what differs is "
                "within chance.",
                "Keep the calibrator.",
            )
        shown = ", ".join(map(repr, changed[:8])) + (", …" if len(changed) > 8 else "")
        said = f"A change was found in {len(changed)} of {k} classes: {shown} ({smallest})."
        if self.recommendation == "none":
            return f"{said} It is smaller than what matters here.", "Keep the calibrator."
        return said, "Fit a calibrator anew to new rows."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        rows = zip(self.classes, self.adjusted, self.drifts, strict=True)
        return {
            "recommendation": self.recommendation,
            "level": self.level,
            "correction": "holm",
            "found": list(self.found),
            "look": None if self.look is None else json_ready(self.look),
            "by_class": [
                {"class": label, "p_adjusted": p, **drift.to_dict()} for label, p, drift in rows
            ],
        }

    def _table(self) -> ResultTable:
        titles = ("expected", "observed", "shift", "p-value", "Holm's p")
        columns = [TableColumn("class", "left"), *map(TableColumn, titles)]
        columns.append(TableColumn("change", "left"))
        rows = zip(self.classes, self.drifts, self.adjusted, strict=True)
        below = [
            "each class against the rest; shift: of its log-odds, ± two standard errors",
            *self._notes(),
        ]
        return ResultTable(columns, [TableRow(self._cells(*row)) for row in rows], below)

    def _notes(self) -> list[str]:
        """Notes on some classes or on all; only first sentences, as the rest is for one score."""
        pairs = zip(self.classes, self.drifts, strict=True)
        said: dict[str, list[str]] = {}
        for label, drift in pairs:
            for note in drift.notes:
                said.setdefault(f"{note.split('. ')[0].rstrip('.')}.", []).append(repr(label))
        everyone = len(self.classes)
        return [
            f"note: {'' if len(who) == everyone else ', '.join(who[:8]) + ': '}{note}"
            for note, who in said.items()
        ]

    def _cells(self, label: Any, drift: Drift, p: float) -> tuple[str, ...]:
        rates = map(shown_percent, (drift.rates.expected, drift.rates.new))
        shift = f"{drift.shift:+.3f} ± {2 * drift.shift_error:.3f}".replace("-", "−")
        changed = "–" if p > self.level else _CHANGES[drift.recommendation]
        return (str(label), *rates, shift, shown_p(drift.p_value), shown_p(p), changed)


#: what kind of change a recommendation for one class stands for
_CHANGES = {
    "none": "too small to matter",
    "intercept": "a shift",
    "refit": "a slope",
    "new map": "the shape",
}


def check_class_drift(
    calibrator: Any,
    scores: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    level: float = 0.05,
    least: float = 0.0,
    weights: str = "importance",
) -> ClassDrift:
    """Do the classes still come as often as a calibrator of several classes says?

    Parameters
    ----------
    calibrator : fitted calibrator or Fitted
        Its probabilities are what should come.
    scores : array-like of shape (n, k)
        Scores of now, a column for each of the calibrator's classes.
    y : array-like of shape (n,)
        Labels of now.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    level : float, default=0.05
        The chance of an alarm in any class if nothing has changed.
    least, weights
        As in `check_drift`.

    Returns
    -------
    ClassDrift

    Notes
    -----
    If the calibrator is right, class c comes in a share p_c of the rows with this p_c, however the
    scores move. So `check_drift` compares the p_c of each class with how often that class came. The
    calibrator has an error of its own, which is known from the weight of the class in its fit.
    Holm's step-down holds ``level`` for all classes together, however they depend on each other.
    Old rows are no reference here: what one column means depends on the others, so that scores
    which only moved would raise an alarm. O(n log n) for each class.

    The error of the calibrator is allowed for as if new rows were like those of its fit. This was
    simulated at the level 0.05 with vector and matrix scaling, 150 to 300 runs each. There were
    alarms in 4 to 8 % of the runs with as many new rows as the fit had. With four times as many,
    and scores that moved far, there were alarms in 9 to 11 %.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 4000)
    >>> y = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> c = cal.VectorScaling().fit(p[:2000], y[:2000])
    >>> drift = check_class_drift(c, p[2000:], y[2000:])
    >>> drift.recommendation, drift.found
    ('none', ())
    >>> later = np.where(rng.random(2000) < 0.2, 2, y[2000:])  # the last class comes more often
    >>> check_class_drift(c, p[2000:], later).found
    (0, 1, 2)
    """
    level = check_number("level", level, 0.0, 1.0)
    fitted = fitted_of(calibrator)
    if fitted is None or not isinstance(fitted.map, VectorMap) or not fitted.map.distribution:
        raise InputError(
            "the calibrator must be one of several classes, fitted or loaded, but "
            f"{type(calibrator).__name__} came. For one score use check_drift."
        )
    scores = as_in_fit(scores, fitted.provenance, fitted.classes)
    new, _ = read_matrix(scores, y, sample_weight, list(fitted.classes))
    matrix = ScoreMatrix(fitted.predict_proba(new.scores), new.codes, new.weight)

    def checked(column: int, at: float) -> Drift:
        reference, table = _reference(fitted, column), class_table(matrix, column)
        return check_drift(reference, table, level=at, least=least, weights=weights)

    drifts = [checked(column, level) for column in range(matrix.n_classes)]
    adjusted = holm_adjusted([drift.p_value for drift in drifts])
    order = sorted(range(len(drifts)), key=lambda column: drifts[column].p_value)
    for rank, column in enumerate(order):
        if adjusted[column] <= level:
            drifts[column] = checked(column, level / (len(drifts) - rank))
    pairs = zip(drifts, adjusted, strict=True)
    todo = any(p <= level and drift.recommendation != "none" for drift, p in pairs)
    recommendation = "new map" if todo else "none"
    look = class_look(matrix, weights)
    return ClassDrift(recommendation, fitted.classes, tuple(drifts), adjusted, level, look)


def _reference(fitted: Fitted, column: int) -> Fitted:
    """A calibrator that keeps one class's probability, with the facts of the fit of that class."""
    facts = fitted.provenance
    known = {name: facts[name] for name in ("weight", "effective_size") if name in facts}
    classes = facts.get("class_weights")
    if isinstance(classes, tuple) and len(classes) == len(fitted.classes):
        known["positive_weight"] = classes[column]
    # where each class has an isotonic map against the rest, it is tested as one
    told = f"{facts.get('chosen', '')} {fitted.params.get('calibrator', '')}".lower()
    method = "Isotonic" if "isotonic" in told else fitted.method
    return Fitted(Identity(), (0, 1), 1, method, {}, known)
