"""What `evaluate` returns: values that print as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from calibrant.data.frozen import Frozen
from calibrant.errors import InputError
from calibrant.metrics.class_look import ClassLook
from calibrant.metrics.first_look import FirstLook
from calibrant.metrics.group_results import Multicalibration
from calibrant.metrics.measure import Measure, Verdict
from calibrant.metrics.registry import CLASS_MEASURES, MEASURES
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    json_ready,
    rows_in_words,
    shown_value,
)

#: why a change is not called better
NO_PRAISE = (
    "no change is called better here, only lower or higher: something is wrong with the scores "
    "themselves, and even one constant for all rows would have smaller losses"
)

# --- notes --------------------------------------------------------------------------------------

Topic = Literal["change", "ties"]

#: why the change from before to after has no intervals
CHANGE: Topic = "change"
#: that different scores became equal predictions
TIES: Topic = "ties"


class Note(str):
    """A line of text that knows what it is about.

    >>> note = Note("ties are new", TIES)
    >>> note == "ties are new", note.topic
    (True, 'ties')
    """

    topic: Topic

    def __new__(cls, text: str, topic: Topic) -> Note:
        note = super().__new__(cls, text)
        note.topic = topic
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, Topic]]:
        return Note, (str(self), self.topic)


def topic_of(note: str) -> Topic | None:
    """What a note is about, if it says so."""
    return note.topic if isinstance(note, Note) else None


# --- tables -------------------------------------------------------------------------------------

Spans = dict[str, tuple[float, float]]
Changes = dict[str, tuple[float, float | None, float | None]]
Columns = dict[str, tuple[float | None, ...]]


class EvaluationTable(PrintsAsTable, Frozen):
    """The table of an evaluation: measures before and after, their intervals, and lines below."""

    after: dict[str, float]
    before: dict[str, float] | None
    intervals: Spans | None
    intervals_before: Spans | None
    change: Changes | None
    level: float | None
    notes: tuple[str, ...]
    praise: bool
    look: Any
    #: the measures by name, in the order of the table
    _measures: ClassVar[Mapping[str, Measure]]

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite value is the string "inf", a date its text."""
        return {name: _FORMS.get(name, json_ready)(value) for name, value in self._items()}

    def verdict(self, name: str) -> Verdict:
        """Which way a measure went: "better", "worse", "unclear" or "same".

        "unclear" is what may be chance: the interval of the change holds 0 or, where the change has
        none, the intervals before and after overlap. Where no intervals were wanted it is "lower"
        or "higher", and so is what is not to be praised (``praise``).
        """
        if self.before is None or name not in self.before or name not in self.after:
            raise InputError(f"{name} must be known before and after to have changed.")
        old, new = (self.intervals_before or {}).get(name), (self.intervals or {}).get(name)
        word = self._measures[name].verdict(
            self.before[name],
            self.after[name],
            change=self._change_of(name),
            sides=None if old is None or new is None else (old, new),
            judged=self.level is not None,
        )
        if self.praise or word != "better":
            return word
        return "lower" if self.after[name] < self.before[name] else "higher"

    def _shown_notes(self) -> list[str]:
        """The notes as lines, after what is wrong with the predictions themselves."""
        first = [self.look.headline()] if self.look is not None and self.look.useless else []
        return [f"note: {note}" for note in [*first, *self.notes]]

    def _change_of(self, name: str) -> tuple[float, float] | None:
        """The interval of the change, where it has one."""
        _, low, high = (self.change or {}).get(name, (0.0, None, None))
        return None if low is None or high is None else (low, high)

    @property
    def _paired(self) -> bool:
        """Whether any change has an interval."""
        return any(low is not None for _, low, _ in (self.change or {}).values())

    def _table(self) -> ResultTable:
        meaning = {name: measure.meaning for name, measure in self._measures.items()}
        rows = [TableRow(cells, meaning[name]) for name, cells in self._rows().items()]
        return ResultTable(self._columns(), rows, self._below())

    def _columns(self) -> list[TableColumn]:
        # a narrow terminal leaves out the interval of the change, then which way is good
        good = TableColumn("good is", "left", may_break=False, expendable=1)
        named = [TableColumn("measure", "left", may_break=False), good]
        ends = [TableColumn(f"{100 * (self.level or 0):g} % interval", expendable=2)]
        ends *= self.intervals is not None
        if self.before is None:
            return [*named, TableColumn("value", may_break=False), *ends]
        values = [TableColumn(title, may_break=False) for title in ("before", "after")]
        verdict = TableColumn("change", "left", may_break=False, coloured=True)
        return [*named, *values, *ends, verdict, *[TableColumn("by", expendable=0)] * self._paired]

    def _rows(self) -> dict[str, tuple[str, ...]]:
        """The cells of the table by measure: label, which way is good, values, the verdict."""
        return {
            name: (measure.label, measure.good, *self._cells(measure))
            for name, measure in self._measures.items()
            if name in self.after
        }

    def _cells(self, measure: Measure) -> list[str]:
        name = measure.name
        value = self.after[name]
        cells = [shown_value(value)]
        if self.intervals is not None:
            cells.append(_shown_span(self.intervals.get(name)))
        if self.before is None:
            return cells
        old = self.before.get(name)
        if old is None:  # only the predictions came with a table
            return ["–", *cells, "–", *["–"] * self._paired]
        cells = [shown_value(old), *cells, self.verdict(name)]
        return [*cells, _shown_span(self._change_of(name))] if self._paired else cells


def _shown_span(span: tuple[float, float] | None) -> str:
    return "–" if span is None else f"{shown_value(span[0])} to {shown_value(span[1])}"


def _named_ends(changes: Changes | None) -> dict[str, dict[str, float | None]] | None:
    """Changes for JSON; an end that is not known is null."""
    if changes is None:
        return None
    words = ("difference", "low", "high")
    return {name: dict(zip(words, parts, strict=True)) for name, parts in changes.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(EvaluationTable):
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
    look : FirstLook, or None
        Whether the predictions say anything, and which way they run.
    praise : bool
        Whether a change may be called better. Scores that are worth nothing have smaller losses as
        a constant, and nothing is won: the word is then "lower" or "higher", not "better".
    groups : Multicalibration, or None
        Where predictions are wrong, if ``features`` were given.

    Notes
    -----
    Smaller is better for ``log_loss``, ``brier``, ``ece``, ``mce``, ``rmse``, ``calbin``,
    ``calibration_loss``, ``miscalibration``, ``ici``, ``e50``, ``e90`` and ``emax``; larger is
    better for ``auc``, ``accuracy`` and ``discrimination``. ``observed_expected`` and
    ``calibration_slope`` are best at 1, ``line_intercept`` and ``calibration_in_the_large`` at 0.
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
    look: FirstLook | None = None
    praise: bool = True
    groups: Multicalibration | None = None
    _measures = MEASURES

    def _below(self) -> list[str]:
        distinct = f"{self.distinct:,} different prediction{'s' if self.distinct != 1 else ''}"
        if self.distinct_before is not None:
            distinct += f", {self.distinct_before:,} before"
        weights = sizes_in_words(self.weight, self.positive_weight)
        where = [] if self.groups is None else [f"features: {self.groups.summary()}"]
        return [f"{weights}; {distinct}", *where, *self._shown_notes()]


def sizes_in_words(weight: float, positive: float) -> str:
    """How many rows there are, and positives among them; weights where those are not whole.

    >>> sizes_in_words(2000.0, 477.0), sizes_in_words(10.5, 2.25)
    ('2,000 rows, 477 of them positive', 'rows of weight 10.5 in all, positive ones of weight 2.25')
    """
    if float(weight).is_integer() and float(positive).is_integer():
        return f"{weight:,.0f} row{'s' * (weight != 1)}, {positive:,.0f} of them positive"
    return f"rows of weight {weight:.10g} in all, positive ones of weight {positive:.10g}"


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassEvaluation(EvaluationTable):
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
        After − before, and the ends of its interval: for log loss, Brier score, RMSE, top-label
        ECE, AUC and accuracy; None for the others.
    look : ClassLook, or None
        Whether the predictions say anything, and whether a class's column is the right one.
    praise : bool
        As in `Evaluation`.

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
    look: ClassLook | None = None
    praise: bool = True
    _measures = CLASS_MEASURES

    def _below(self) -> list[str]:
        sizes = [value for value in self.by_class["weight"] if value is not None]
        spread = f"from {min(sizes):.10g} to {max(sizes):.10g} each"
        whole = all(float(value).is_integer() for value in (self.weight, *sizes))
        total = rows_in_words(self.weight) if whole else f"weight {self.weight:.10g}"
        lines = [f"{total}; {len(self.labels)} classes, {spread}"]
        errors = [value for value in self.by_class["ece"] if value is not None]
        worst = int(np.argmax(errors))
        lines.append(f"largest ECE of a class: {errors[worst]:.4f}, {self.labels[worst]!r}")
        return [*lines, *self._shown_notes()]


E = TypeVar("E", bound=EvaluationTable)


def without_praise(given: E) -> E:
    """The evaluation where the scores themselves are worth nothing: no change is called better."""
    made: Any = given
    if made.before is None or not made.praise:
        return given
    praised = any(made.verdict(name) == "better" for name in made.before.keys() & made.after.keys())
    notes = (*made.notes, NO_PRAISE) if praised else made.notes
    return replace(made, praise=False, notes=notes)  # type: ignore[no-any-return]


def with_look(given: E, look: Any) -> E:
    """The evaluation with what the predictions themselves show."""
    made: Any = given
    made = replace(made, look=look)
    return without_praise(made) if look.useless else made  # type: ignore[no-any-return]


def _plain_labels(labels: tuple[Any, ...]) -> list[Any]:
    """Labels that JSON knows, or their text (a date, say)."""
    return [label if isinstance(label, (str, int, float)) else str(label) for label in labels]


#: fields that JSON has in a form of their own
_FORMS: dict[str, Callable[[Any], Any]] = {"change": _named_ends, "labels": _plain_labels}
