"""A measure: one record with all that the rest of the package has to know about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calibrant.result_tables import shown_value

if TYPE_CHECKING:
    from calibrant.array_types import Array
    from calibrant.metrics.interval_formulas import Span
    from calibrant.metrics.multilabel import LabelColumns
    from calibrant.metrics.redrawn_tables import RedrawnTable
    from calibrant.metrics.smooth_curve import CurveGaps


Verdict = Literal["better", "worse", "unclear", "same", "lower", "higher"]

#: an order of scores is called kept if AUC moves by less than this
SAME_ORDER = 5e-4


class ValueWithNote(NamedTuple):
    """A value with a note about it; None where the data do not allow one, and the note says why."""

    value: float | None
    note: str


#: what the function of a measure returns
Found = float | ValueWithNote
#: a measure of distances from smooth curves, one value for each curve
OfCurve = Callable[["CurveGaps"], "Array"]


@dataclass(frozen=True)
class Measure:
    """A measure of predicted probabilities. A new measure is one more record in `registry`.

    Attributes
    ----------
    name : str
        The key of its value in results.
    label, meaning : str
        What people read in tables, and the line that explains it.
    better : {"smaller", "larger", "closer"}
        Which values are better; ``"closer"``: those nearer to the ``target``.
    target : float
        The best value, where closer is better.
    groups : tuple of str
        The sets of measures that it belongs to, which `evaluate` takes by name: those of
        ``"standard"`` are measured where nothing else is asked for.
    range : pair of float
        The smallest and the largest value that is possible; intervals are cut to it.
    headline : str
        Its title among the few figures at the top of a report; empty: it is not there.
    brief : bool
        Whether it is shown where there is room for few measures.
    ranks : bool
        Whether it looks at the order of scores alone: margins are then not made probabilities.
    of : function of PredictionFacts, or None
        The value for two classes. What it asks of the facts decides where it can be computed:
        all facts but the table itself are known of rows that were grouped in an engine, too.
    needs_table : str
        Why groups of rows are not enough, if they are not.
    interval : function of TableIntervals, optional
        The interval before it is cut to the range, or None where the data allow none. It is asked
        for where the value is finite. Left out where tables or curves drawn again tell it.
    change : function of RowChangeIntervals, optional
        The interval of after − before on the same rows, or None.
    of_redrawn : function of RedrawnTable, optional
        The value of a table drawn again, for measures whose interval comes from such tables.
    of_curve : function of CurveGaps, optional
        The values for curves drawn again, for measures whose interval comes from such curves.
    of_columns : function of LabelColumns, optional
        The value for several yes/no labels thrown together; None where it is undefined.
    of_classes : mapping of str to Any, optional
        What differs where the measure is of several classes, by the name of the field: ``of`` is
        then a function of ClassFacts, ``interval`` of ClassIntervals, ``change`` of
        ClassChangeIntervals. Without a mapping it is a measure of two classes only.
    """

    name: str
    label: str
    meaning: str
    better: Literal["smaller", "larger", "closer"]
    range: tuple[float, float] = (0.0, 1.0)
    target: float = 0.0
    groups: tuple[str, ...] = ("standard",)
    headline: str = ""
    brief: bool = False
    ranks: bool = False
    of: Callable[[Any], Found] | None = None
    needs_table: str = ""
    interval: Callable[[Any], Span | None] | None = None
    change: Callable[[Any], Span | None] | None = None
    of_redrawn: Callable[[RedrawnTable], float] | None = None
    of_curve: OfCurve | None = None
    of_columns: Callable[[LabelColumns], float | None] | None = None
    of_classes: Mapping[str, Any] | None = None

    def for_classes(self) -> Measure | None:
        """The record of the same measure for several classes, if there is one."""
        if self.of_classes is None:
            return None
        return replace(self, needs_table="", **self.of_classes)

    def found(self, facts: Any) -> ValueWithNote:
        """The value, with what there is to say about it."""
        if self.of is None:
            raise ValueError(f"{self.name} is a measure of several classes")
        found = self.of(facts)
        return found if isinstance(found, ValueWithNote) else ValueWithNote(found, "")

    @property
    def good(self) -> str:
        """Which values are good, in a word or two.

        >>> Measure("slope", "slope", "", "closer", target=1.0).good
        'near 1'
        """
        return f"near {self.target:g}" if self.better == "closer" else self.better

    def badness(self, value: float) -> float:
        """What is smaller for the better of two values: the one place that knows the sense."""
        if self.better == "closer":
            return abs(value - self.target)
        return value if self.better == "smaller" else -value

    def around(self, value: float, span: Span) -> Span:
        """The interval cut to the range of the measure, and widened to hold the value itself."""
        low, high = max(span[0], self.range[0]), min(span[1], self.range[1])
        return min(low, value), max(high, value)

    def verdict(
        self,
        before: float,
        after: float,
        *,
        change: Span | None = None,
        sides: tuple[Span, Span] | None = None,
        judged: bool = True,
    ) -> Verdict:
        """Which way it went, as far as the intervals support a word: the one place that says so.

        "same" where what is shown is equal; else "better" or "worse" if the interval of the
        ``change`` leaves out 0. Where there is none, the intervals of both ``sides`` must be apart,
        which supports the word however the two depend on each other; "unclear" if they are not, or
        not there. Where values are good near a target, all pairs of values that the intervals allow
        must agree about which is nearer. Where nothing is to be ``judged``, for no intervals were
        wanted, the word is "lower" or "higher". An infinite loss was seen to be so, and needs no
        interval.

        >>> auc = Measure("a", "A", "", "larger")
        >>> auc.verdict(0.5, 0.6, change=(0.02, 0.18)), auc.verdict(0.5, 0.6, change=(-0.1, 0.3))
        ('better', 'unclear')
        >>> auc.verdict(0.5, 0.6, sides=((0.4, 0.6), (0.5, 0.7))), auc.verdict(0.5, 0.6)
        ('unclear', 'unclear')
        >>> auc.verdict(0.5, 0.6, judged=False)
        'higher'
        >>> slope = Measure("s", "slope", "", "closer", target=1.0)
        >>> slope.verdict(0.6, 1.1, sides=((0.5, 0.7), (1.0, 1.2)))  # at most 0.2 off, before 0.3
        'better'
        >>> slope.verdict(0.6, 1.1, sides=((0.5, 0.7), (0.8, 1.4)), change=(0.3, 0.7))
        'unclear'
        """
        close = math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12)
        kept = self.ranks and abs(after - before) < SAME_ORDER
        if close or kept or shown_value(before) == shown_value(after):
            return "same"
        if math.isfinite(after - before):
            if not judged:
                return "lower" if after < before else "higher"
            moved = self._moved(change, sides)
            if moved is None or moved[0] <= 0.0 <= moved[1]:
                return "unclear"
        return "better" if self.badness(after) < self.badness(before) else "worse"

    def _moved(self, change: Span | None, sides: tuple[Span, Span] | None) -> Span | None:
        """The least and the largest change of the badness that the intervals allow.

        Where closer is better, that is over all pairs of values within both sides whose difference
        is within the change. The distance has its kinks at the target, so one of the places where
        two borders of this region or the target meet has the extreme.
        """
        if sides is not None and (change is None or self.better == "closer"):
            old, new = sides
            widest = new[0] - old[1], new[1] - old[0]
            if self.better == "closer":
                return _change_of_distance(self.target, old, new, change or widest)
            change = widest
        if change is None or self.better == "closer":
            return None
        ends = self.badness(change[0]), self.badness(change[1])
        return min(ends), max(ends)


def _change_of_distance(target: float, old: Span, new: Span, change: Span) -> Span:
    """The ends of |new − target| − |old − target| over all values that the intervals allow.

    >>> _change_of_distance(1.0, (0.5, 0.75), (0.75, 1.25), (0.125, 0.625))
    (-0.5, 0.0)
    """
    pairs = [(a, b) for a in (*new, target) for b in (*old, target)]
    pairs += [(a, a - c) for a in (*new, target) for c in change]
    pairs += [(b + c, b) for b in (*old, target) for c in change]
    slack = 1e-9 * max(abs(end) for end in (*old, *new, *change))
    moved = [
        abs(a - target) - abs(b - target)
        for a, b in pairs
        if new[0] - slack <= a <= new[1] + slack
        and old[0] - slack <= b <= old[1] + slack
        and change[0] - slack <= a - b <= change[1] + slack
    ]
    return (min(moved), max(moved)) if moved else (-math.inf, math.inf)
