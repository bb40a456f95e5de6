"""A measure: one record with all that the rest of the package has to know about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calibrant.result_tables import shown_value

if TYPE_CHECKING:
    from calibrant.metrics.interval_formulas import Span
    from calibrant.metrics.multilabel import LabelColumns
    from calibrant.metrics.redrawn_tables import RedrawnTable

__all__ = ["SAME_ORDER", "Found", "Measure", "OfClasses", "ValueWithNote", "Verdict"]

Verdict = Literal["better", "worse", "unclear", "same", "lower", "higher"]

#: an order of scores is called kept if AUC moves by less than this
SAME_ORDER = 5e-4


class ValueWithNote(NamedTuple):
    """A value with a note about it; None where the data do not allow one, and the note says why."""

    value: float | None
    note: str


#: what the function of a measure returns
Found = float | ValueWithNote


@dataclass(frozen=True)
class OfClasses:
    """What differs where a measure is of several classes.

    Attributes
    ----------
    of : function of ClassFacts
    interval : function of ClassIntervals, optional
    change : function of ClassChangeIntervals, optional
    meaning, range : as in `Measure`
        Left out where they are those of two classes.
    """

    of: Callable[[Any], Found]
    interval: Callable[[Any], Span | None] | None = None
    change: Callable[[Any], Span | None] | None = None
    meaning: str = ""
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Measure:
    """A measure of predicted probabilities. A new measure is one more record in `registry`.

    Attributes
    ----------
    name : str
        The key of its value in results.
    label, meaning : str
        What people read in tables, and the line that explains it.
    better : {"smaller", "larger"}
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
        for where the value is finite.
    change : function of RowChangeIntervals, optional
        The interval of after − before on the same rows, or None.
    of_redrawn : function of RedrawnTable, optional
        The value of a table drawn again, for measures whose interval comes from such tables.
    of_columns : function of LabelColumns, optional
        The value for several yes/no labels thrown together; None where it is undefined.
    of_classes : OfClasses, optional
        The measure for several classes.
    """

    name: str
    label: str
    meaning: str
    better: Literal["smaller", "larger"]
    range: tuple[float, float] = (0.0, 1.0)
    headline: str = ""
    brief: bool = False
    ranks: bool = False
    of: Callable[[Any], Found] | None = None
    needs_table: str = ""
    interval: Callable[[Any], Span | None] | None = None
    change: Callable[[Any], Span | None] | None = None
    of_redrawn: Callable[[RedrawnTable], float] | None = None
    of_columns: Callable[[LabelColumns], float | None] | None = None
    of_classes: OfClasses | None = None

    def for_classes(self) -> Measure | None:
        """The record of the same measure for several classes, if there is one."""
        several = self.of_classes
        if several is None:
            return None
        return replace(
            self,
            of=several.of,
            needs_table="",
            interval=several.interval,
            change=several.change,
            meaning=several.meaning or self.meaning,
            range=several.range or self.range,
        )

    def found(self, facts: Any) -> ValueWithNote:
        """The value, with what there is to say about it."""
        if self.of is None:
            raise ValueError(f"{self.name} is a measure of several classes")
        found = self.of(facts)
        return found if isinstance(found, ValueWithNote) else ValueWithNote(found, "")

    def around(self, value: float, span: Span | None) -> Span | None:
        """The interval cut to the range of the measure, and widened to hold the value itself."""
        if span is None:
            return None
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
        not there. Where nothing is to be ``judged``, for no intervals were wanted, the word is
        "lower" or "higher". An infinite loss was seen to be so, and needs no interval.

        >>> auc = Measure("a", "A", "", "larger")
        >>> auc.verdict(0.5, 0.6, change=(0.02, 0.18)), auc.verdict(0.5, 0.6, change=(-0.1, 0.3))
        ('better', 'unclear')
        >>> auc.verdict(0.5, 0.6, sides=((0.4, 0.6), (0.5, 0.7))), auc.verdict(0.5, 0.6)
        ('unclear', 'unclear')
        >>> auc.verdict(0.5, 0.6, judged=False)
        'higher'
        """
        close = math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12)
        kept = self.ranks and abs(after - before) < SAME_ORDER
        if close or kept or shown_value(before) == shown_value(after):
            return "same"
        if math.isfinite(after - before):
            if not judged:
                return "lower" if after < before else "higher"
            if change is None and sides is not None:  # the least and the largest possible change
                old, new = sides
                change = new[0] - old[1], new[1] - old[0]
            if change is None or change[0] <= 0.0 <= change[1]:
                return "unclear"
        return "better" if (after < before) == (self.better == "smaller") else "worse"
