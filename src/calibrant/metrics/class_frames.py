"""Measures of several classes of a lazy frame, which has a column of probabilities for each.

Losses are sums over the rows, made where they are. The other measures are those of tables: of each
class against the rest, and of the most probable class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.columns import as_double, first_row, is_finite, plain
from calibrant.data.door import HEAVIEST, read_class_labels, sum_tolerance
from calibrant.data.lazy import (
    CellsOption,
    Coding,
    Lazy,
    LazyRows,
    Names,
    check_columns,
    distinct_labels,
    frame_beside_label,
    grouped_table,
    is_one_of,
    json_number,
    refuse_flagged,
    refuse_labels,
    refuse_nested,
    refuse_streams,
    with_ln_or_sqrt,
    with_safe_names,
)
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics.point_measures import (
    ClassColumns,
    class_columns,
    given_zero,
    why_too_many,
)
from calibrant.metrics.tables import Bins, Groups, group


def run_now(ask: Callable[[], Any]) -> Any:
    """Run a query, without a progress bar."""
    return ask()


class ClassSums(NamedTuple):
    """Sums over all rows of a frame of several classes: weights, losses, and rows of probability
    0."""

    weight: float
    log_loss: float
    square: float
    correct: float
    zero: float
    zero_rows: float
    classes: Array


class ClassFrame:
    """What measures of several classes are made of, in a lazy frame; for rows in memory it is
    `ClassFacts`.

    Parameters
    ----------
    source : narwhals LazyFrame
        p0, p1, …: probabilities; code: the number of the class that came; weight.
    names : the user's names of the columns of probabilities
    label, weight : the user's names of the other columns
    labels : array of the classes in the order of the columns
    bins, cells : as `evaluate` has them
    """

    def __init__(
        self,
        source: Lazy,
        names: Sequence[str],
        label: str,
        weight: str | None,
        labels: NDArray[Any],
        bins: Bins,
        cells: CellsOption,
    ) -> None:
        self.source, self.names, self.label, self.weight = source, names, label, weight
        self.labels, self.bins, self.cells = labels, bins, cells

    @cached_property
    def sums(self) -> ClassSums:
        """The sums over all rows, by one pass over them."""
        k, w = len(self.names), nw.col("weight")
        own, square = nw.col("p0"), nw.lit(0.0)
        _, hit = self._most_probable()
        for j in range(1, k):
            own = nw.when(nw.col("code") == j).then(nw.col(f"p{j}")).otherwise(own)
        for j in range(k):
            came = nw.when(nw.col("code") == j).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            square = square + (nw.col(f"p{j}") - came) * (nw.col(f"p{j}") - came)
        ones = nw.when(hit).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        rows = self.source.with_columns(own.alias("own"), square.alias("square"), ones.alias("hit"))
        above = nw.when(nw.col("own") > 0.0).then(nw.col("own")).otherwise(nw.lit(1.0))
        rows = with_ln_or_sqrt(rows.with_columns(above.alias("given")), "ln", {"given": "ln"})
        zero = nw.when(nw.col("own") > 0.0).then(nw.lit(0.0)).otherwise(nw.lit(1.0))
        present = nw.when(w > 0.0).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        terms = [w, w * nw.col("ln"), w * nw.col("square"), w * nw.col("hit"), w * zero]
        terms.append(present * zero)
        terms += [nw.when(nw.col("code") == j).then(w).otherwise(nw.lit(0.0)) for j in range(k)]
        each = [f"t{i}" for i in range(len(terms))]
        made = rows.select(*(own.alias(name) for name, own in zip(each, terms, strict=True)))
        found = first_row(made.select(*(nw.col(name).sum() for name in each)).collect())
        values = [float(value or 0.0) for value in found]
        weight, loss, squares, correct, zeros, zero_rows = values[:6]
        of_classes = np.array(values[6:])
        return ClassSums(weight, loss, squares, correct, zeros, zero_rows, of_classes)

    def log_loss(self) -> float:
        """Mean −ln p of the class that came; infinite where p is 0."""
        sums = self.sums
        return math.inf if sums.zero else -sums.log_loss / sums.weight + 0.0

    def why_infinite(self) -> str:
        """How many rows make the log loss infinite."""
        return given_zero(self.sums.zero_rows, None if self.weight is None else self.sums.zero)

    @property
    def square(self) -> float:
        """The mean over rows of Σ_j (y_j − p_j)²."""
        return self.sums.square / self.sums.weight

    @property
    def root_of_square(self) -> float:
        """The root of the mean over rows and classes of (y_j − p_j)²."""
        return math.sqrt(self.square / len(self.names))

    @property
    def share_correct(self) -> float:
        """The share of the weight of rows whose most probable class came."""
        return self.sums.correct / self.sums.weight

    @cached_property
    def top(self) -> Groups:
        """The bins of the confidence, the probability of each row's most probable class."""
        return group(self._table(*self._most_probable()), self.bins)

    @cached_property
    def tables(self) -> list[ScoreTable]:
        """The table of each class against the rest."""
        return [self._table(nw.col(f"p{j}"), nw.col("code") == j) for j in range(len(self.names))]

    @cached_property
    def each(self) -> list[Groups]:
        """The bins of each class against the rest."""
        return [group(table, self.bins) for table in self.tables]

    @cached_property
    def columns(self) -> ClassColumns:
        """AUC and CalBin of each class."""
        reason = why_too_many(self.sums.weight * len(self.names))
        if any(table.made for table in self.tables):
            reason = "it needs each different prediction"
        return class_columns(self.tables, reason)

    def _table(self, score: nw.Expr, hit: nw.Expr) -> ScoreTable:
        """The table of a score, given as an expression, and of a condition that marks positives."""
        came = nw.when(hit).then(nw.lit(1)).otherwise(nw.lit(0))
        columns = [(score + 0.0).alias("score"), came.alias("label")]
        columns += [nw.col("weight")] * (self.weight is not None)
        names = Names("probability", self.label, self.weight)
        coding = Coding((0, 1), 1, (0,), (1,))
        rows = LazyRows(self.source.select(*columns), names, coding, run_now)
        return grouped_table(*rows.grouped(self.cells))

    def _most_probable(self) -> tuple[nw.Expr, nw.Expr]:
        """The largest probability of each row, and whether its class came. Of equals, the first
        counts."""
        top, hit = nw.col("p0"), nw.col("code") == 0
        for j in range(1, len(self.names)):
            own = nw.col(f"p{j}")
            hit = ((own > top) & (nw.col("code") == j)) | ((own <= top) & hit)
            top = nw.when(own > top).then(own).otherwise(top)
        return top, hit


def read_class_frame(
    frame: Any,
    p: Sequence[str] | Mapping[Any, str],
    label: str,
    sample_weight: str | None,
    classes: Any,
    bins: Bins,
    cells: CellsOption,
) -> ClassFrame:
    """A frame with a column of probabilities for each class, checked and ready to be measured.

    ``p`` names them in the order of the classes, or by class.
    """
    lazy = frame_beside_label(frame)
    refuse_streams(lazy)
    if isinstance(p, Mapping):
        classes, p = list(p), list(p.values())
    names = list(p)
    for name in names:
        check_columns(lazy.collect_schema(), Names(name, label, sample_weight))
    if len(set(names)) != len(names) or len(names) < 3:
        raise InputError(
            "p must name a different column for each of three or more classes, but "
            f"{names[:20]} came. Of two classes name one column."
        )
    source, called = with_safe_names(lazy)
    columns = [as_double(source, called[name]).alias(f"p{j}") for j, name in enumerate(names)]
    columns.append(nw.col(called[label]).alias("label"))
    if sample_weight is not None:
        columns.append(as_double(source, called[sample_weight]).alias("weight"))
    source = source.select(*columns)
    found = distinct_labels(source, run_now)
    if not found:
        refuse_labels(source, label, run_now)
    known = [json_number(value) for value in found]
    refuse_nested(known, label)
    labels, codes = read_class_labels(known, classes, len(names), "p")
    if len(labels) != len(names):
        shown = ", ".join(repr(plain(one)) for one in labels[:5])
        raise InputError(
            f"label column {label!r} must hold as many classes as p has columns, but p has "
            f"{len(names)} and the column {len(labels)} ({shown}). Name them all, in the order of "
            "the columns, with classes=[...]."
        )
    _refuse_rows(source, names, label, sample_weight)
    code: nw.Expr = nw.lit(0)
    for j in range(1, len(names)):
        own = [value for value, at in zip(found, codes, strict=True) if at == j]
        code = nw.when(is_one_of(nw.col("label"), own)).then(nw.lit(j)).otherwise(code)
    weight = nw.col("weight") if sample_weight is not None else nw.lit(1.0).alias("weight")
    kept = [nw.col(f"p{j}") for j in range(len(names))]
    coded = source.select(*kept, code.alias("code"), weight)
    return ClassFrame(coded, names, label, sample_weight, labels, bins, cells)


def _refuse_rows(source: Lazy, names: Sequence[str], label: str, weight: str | None) -> None:
    """Refuse rows without a label, with a wrong weight, or whose probabilities do not sum to 1."""

    refuse_labels(source, label, run_now)
    if weight is not None:
        w = nw.col("weight")
        good = is_finite(w) & (w >= 0.0) & (w <= HEAVIEST)
        must = f"weight column {weight!r} must be from 0 to {HEAVIEST:g}"
        flags = {"missing or something else": w.is_null() | ~good}
        refuse_flagged(source, must, flags, "Correct or drop those rows.", run_now)
    columns = [nw.col(f"p{j}") for j in range(len(names))]
    total, wrong = nw.lit(0.0), columns[0].is_null()
    for own in columns:
        wrong = wrong | own.is_null() | ~is_finite(own) | (own < 0.0) | (own > 1.0)
        total = total + own
    far = (total - 1.0).abs() > sum_tolerance(len(names))
    shown = ", ".join(map(repr, names[:6]))
    must = f"p ({shown}) must be probabilities, each row in [0, 1] with the sum 1"
    refuse_flagged(source, must, {"not": wrong | far}, "For logits use softmax first.", run_now)
