"""The trials of a learning curve: methods, measures, and draws of rows to fit to and judge on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any

import numpy as np

from calibrant import metrics
from calibrant.array_types import Array, Index
from calibrant.data.frozen import own
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.errors import InputError, ParameterError
from calibrant.maps import Map
from calibrant.metrics.arguments import check_whole
from calibrant.metrics.measure import Measure
from calibrant.metrics.prediction_facts import TableFacts
from calibrant.metrics.registry import MEASURES
from calibrant.other_words import did_you_mean

#: a size that leaves a smaller part of the rows to test on is dropped
SMALLEST_TEST = 0.05


# --- measures -----------------------------------------------------------------------------------


#: bins of ECE and MCE
BINS = 10


def _value(measure: Measure, table: ScoreTable) -> float:
    """A measure of a table whose scores may be margins."""
    value, reason = measure.found(TableFacts(table, BINS))
    if value is None:
        raise InputError(
            f"{reason} in the rows left to test on. Pass smaller sizes, or another measure."
        )
    return value


@dataclass(frozen=True)
class Judge:
    """A measure: what it is called, which way is better, and how it is found.

    ``of_table`` reads a table of predictions; without it ``of_rows`` reads labels, predictions and
    weights. A measure that only ``ranks`` takes margins as they are.
    """

    label: str
    better: str
    of_table: Callable[[ScoreTable], float] | None = None
    of_rows: Callable[..., Any] | None = None
    ranks: bool = False


def judge_of(measure: Any, larger_is_better: Any = None) -> Judge:
    """The judge for a name, or for a function of rows.

    >>> judge_of("auc").better, judge_of(max, True).label
    ('larger', 'max')
    """
    if larger_is_better not in (None, True, False):
        raise ParameterError(
            f"larger_is_better must be True, False or None, but {larger_is_better!r} came."
        )
    word = next((n for n in MEASURES if measure is getattr(metrics, n, MEASURES)), measure)
    if isinstance(word, str) and word in MEASURES:
        known = MEASURES[word]
        if larger_is_better not in (None, known.better == "larger"):
            raise ParameterError(
                f"larger_is_better must be left out for {word!r}, of which {known.good} is "
                f"good, but {larger_is_better!r} came."
            )
        if known.better == "closer":  # a mean of values on both sides of the target says nothing
            label = f"|{known.label} − {known.target:g}|" if known.target else f"|{known.label}|"
            return Judge(label, "smaller", lambda table: known.badness(_value(known, table)))
        return Judge(known.label, known.better, partial(_value, known), ranks=known.ranks)
    if not callable(measure):
        allowed = ", ".join(repr(name) for name in MEASURES)
        raise ParameterError(
            f"measure must be one of {allowed}, or a function (y, p, sample_weight=), but "
            f"{measure!r} came.{did_you_mean(measure, MEASURES)}"
        )
    label = getattr(measure, "__name__", type(measure).__name__)
    return Judge(label, "larger" if larger_is_better else "smaller", of_rows=measure)


# --- sizes --------------------------------------------------------------------------------------


def checked_sizes(sizes: Iterable[int], n: int) -> tuple[list[int], list[int]]:
    """The sizes that leave enough rows to test on, ascending, and those that do not."""
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise ParameterError(f"sizes must be whole numbers, such as (32, 64), but {sizes!r} came.")
    wanted = sorted({check_whole("each of sizes", size, 1) for size in sizes})
    if not wanted:
        raise ParameterError("sizes must be at least one whole number, but none came.")
    most = n - max(1, math.ceil(SMALLEST_TEST * n))
    kept = [size for size in wanted if size <= most]
    if not kept:
        raise InputError(
            f"sizes must leave rows to test on: of {n} rows at most {most} can be drawn, but the "
            f"smallest size is {wanted[0]}. Bring more rows, or pass smaller sizes."
        )
    return kept, wanted[len(kept) :]


# --- trials -------------------------------------------------------------------------------------


class Trials:
    """Methods judged on the rows that a draw leaves, after they are fitted to those drawn.

    Rows are sorted once: those that are left become a table without another sort. None among the
    ``methods`` stands for the scores as they came.
    """

    def __init__(self, rows: Rows, methods: Sequence[Any], judge: Judge) -> None:
        self.rows, self.methods, self.judge = rows, methods, judge
        order = np.argsort(rows.scores, kind="stable")
        x = rows.scores[order]
        self.place = np.empty(len(x), dtype=np.intp)  # of each row in that order
        self.place[order] = np.arange(len(x))
        self.starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
        self.distinct = x[self.starts]
        weight = np.ones(len(x)) if rows.weight is None else rows.weight[order]
        self.positive = np.where(rows.positive[order], weight, 0.0)
        self.negative = weight - self.positive

    @cached_property
    def whole(self) -> ScoreTable:
        """The table of all rows."""
        return ScoreTable.from_rows(self.rows)

    @cached_property
    def as_they_are(self) -> Map:
        """The probabilities that scores stand for, read by those of all rows."""
        from calibrant.calibrators.uncalibrated import Uncalibrated

        return Uncalibrated().fit_table(self.whole).map_

    def values(self, drawn: Index) -> tuple[list[float], bool]:
        """The measure after each method that is fitted to the rows of these numbers, on the others.

        And whether all rows drawn have the same class.
        """
        table = ScoreTable.from_rows(self.rows.take(drawn)).part_of(*self.whole.ends)
        maps = [self._map_of(method, table) for method in self.methods]
        if self.judge.of_table is None:
            found = self._of_rows(maps, drawn)
        else:
            left, of_table = self._left(drawn), self.judge.of_table
            found = [of_table(_predicted(left, apply(left.scores))) for apply in maps]
        return found, not (table.total_positive and table.total_negative)

    def _map_of(self, method: Any, table: ScoreTable) -> Callable[[Array], Array]:
        if method is None:
            return _unchanged if self.judge.ranks else self.as_they_are
        fitted: Map = method.fit_table(table).map_
        return fitted

    def _of_rows(self, maps: Iterable[Callable[[Array], Array]], drawn: Index) -> list[float]:
        """The values of a measure that reads rows."""
        left = np.ones(len(self.rows.scores), dtype=bool)
        left[drawn] = False
        rows = self.rows.take(left)
        y, judge = rows.positive.astype(np.int64), self.judge
        values = []
        for apply in maps:
            found = judge.of_rows(y, apply(rows.scores), sample_weight=rows.weight)  # type: ignore[misc]
            if not isinstance(found, Real) or math.isnan(found):
                raise InputError(
                    f"measure must return a number, but {judge.label} returned {found!r} after "
                    f"calibration with {len(drawn)} rows."
                )
            values.append(float(found))
        return values

    def _left(self, drawn: Index) -> ScoreTable:
        """The table of all other rows. Σw² is not kept: measures do not read it."""
        keep = np.ones(len(self.place))
        keep[self.place[drawn]] = 0.0
        n0, n1 = self.negative * keep, self.positive * keep
        if len(self.starts) < len(keep):
            n0, n1 = np.add.reduceat(n0, self.starts), np.add.reduceat(n1, self.starts)
        some = n0 + n1 > 0
        n0, n1 = own(n0[some]), own(n1[some])
        return ScoreTable(own(self.distinct[some]), n0, n1, n0, n1)


def _unchanged(scores: Array) -> Array:
    return scores


def _predicted(table: ScoreTable, p: Array) -> ScoreTable:
    """The table with each score replaced by its prediction, equal ones joined."""
    if not (p[1:] >= p[:-1]).all():
        return ScoreTable.from_counts(p, table.negative, table.positive)
    starts = np.flatnonzero(np.append(True, p[1:] != p[:-1]))  # most maps rise: nothing to sort
    n0, n1 = table.negative, table.positive
    if len(starts) < len(p):
        p, n0, n1 = p[starts], np.add.reduceat(n0, starts), np.add.reduceat(n1, starts)
        n0, n1 = own(n0), own(n1)
    return ScoreTable(own(p), n0, n1, n0, n1)
