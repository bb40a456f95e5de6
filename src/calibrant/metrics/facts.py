"""Rows of predictions grouped where they are: the sums that all measures are made of.

Rows are grouped by cell and by fine bin. Losses and bins are sums over rows and stay exact, however
wide the cells are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from calibrant.array_types import Array, Flags
from calibrant.data.columns import first_row
from calibrant.data.lazy import APART, FEW_CELLS, Columns, LazyRows
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import Cells, ScoreTable, sums_of
from calibrant.errors import InputError
from calibrant.losses import sigmoid
from calibrant.metrics.arguments import (
    class_tables,
    infinite_for_classes,
    mean_log_loss_of_classes,
    share_right,
    square_sum,
    top_table,
)
from calibrant.metrics.cells import Bins, Groups, class_groups, group
from calibrant.metrics.point_measures import (
    FlachMatsubara,
    area,
    infinite_because,
    mean_log_loss,
    mean_square,
    not_whole,
    one_class,
    share_correct,
    split_on_hull,
    too_many,
    window_error,
)
from calibrant.metrics.smooth_curve import CurveGaps, OfCurve, curve_gaps, smooth_curve
from calibrant.metrics.tests import Coefficient, CoxLine, cox_line, offset_intercept, uncertain
from calibrant.result_tables import shown_value

if TYPE_CHECKING:
    import narwhals as nw

    from calibrant.metrics.formulas import Span
    from calibrant.metrics.multilabel import LabelColumns
    from calibrant.metrics.redraws import RedrawnTables


#: the fewest fine bins; with them, sums of (p − the bin's border)² lose no digits
FINE = 256


class OutsideError(InputError):
    """Predictions that are no probabilities."""


@dataclass
class CellSums:
    """The sums of all measures, asked of rows by cell and fine bin.

    ``inside``: the scores are probabilities, and those outside [0, 1] have no weight.
    """

    cells: Cells
    fine: int = FINE
    inside: bool = False
    sums: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: LazyRows, cells: Cells, fine: int, probabilities: bool) -> Self:
        """For cells of some rows; OutsideError if those must be ``probabilities`` and are not."""
        if cells.centre is not None and not refuse_outside(rows, probabilities):
            return cls(Cells(cells.count), fine, inside=True)
        return cls(cells, fine)

    # --- where the rows are ---------------------------------------------------------------------

    @np.errstate(over="ignore")  # of frames in memory
    def ask(self, rows: LazyRows) -> Columns:
        import narwhals as nw

        x, d, f, loss = (nw.col(name) for name in ("x", "d", "f", "loss"))
        prediction = predicted(x, self.cells)
        if self.inside:
            prediction = _choose((x < 0.0, nw.lit(0.0)), (x > 1.0, nw.lit(1.0)), last=x)
        frame = _with_bins(rows.coded().with_columns(p=prediction), self.fine)
        frame = _with_losses(frame.with_columns(e=d * d))
        if rows.names.weight:
            weight = nw.col("w")
            frame = frame.with_columns(e=weight * nw.col("e"), loss=weight * loss)
        frame = frame.with_columns(part=(loss * 4096.0).floor() * 2.0**-12)  # sums of it are exact
        frame = frame.with_columns(loss=loss - nw.col("part"))
        key, bins = nw.col("k"), f + 1.0  # one number for cell and bin
        if not frame.implementation.is_pandas_like():
            key, bins = key.cast(nw.Int64), bins.cast(nw.Int64)
        frame = self.cells.add_to(frame, "x", "k").with_columns(k=key * (self.fine + 2) + bins)
        found = rows.by_key(frame, ("d", "d"), ("e", "loss", "part"))
        found["k"], found["f"] = np.divmod(found["k"], self.fine + 2)
        found["f"] -= 1
        return found

    # --- here, batch by batch -------------------------------------------------------------------

    @property
    def few(self) -> bool:
        return self.cells.count <= FEW_CELLS

    def _place(self, x: Array) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """Predictions, their cells and their fine bins."""
        p = np.clip(x, 0.0, 1.0) if self.inside else link_of(self.cells)(x)
        f = (p * float(self.fine)).astype(np.int64)
        borders = np.arange(self.fine + 2) / self.fine
        f -= p < borders[f]  # p·n is rounded, f/n is the very border that `ece` has
        f += p >= borders[1:][f]
        f -= p <= 0.0
        return p, self.cells(x), f

    def add(self, x: Array, y: NDArray[np.int64], w: Array | None) -> None:
        p, group, f = self._place(x)
        group += f  # both only grow with x, so their sum tells both
        group += self.cells.count // 2 + 1
        if not self.sums:
            self._begin(weighted=w is not None)
        self._add("weight", group, 1.0 if w is None else w, y)
        value = p - _border(f, self.fine)
        self._add("d", group, value if w is None else w * value, y)
        value *= value
        self._add("e", group, value if w is None else w * value)
        value = _losses(p, y) if w is None else w * _losses(p, y)
        part = np.floor(value * 4096.0)
        part *= 2.0**-12  # sums of it are exact
        self._add("part", group, part)
        value -= part
        self._add("loss", group, value)
        if w is not None:
            self._add("square", group, w * w, y)
            self._add("rows", group, 1.0)
            x, group = x[w > 0.0], group[w > 0.0]
        np.minimum.at(self.sums["low"], group, x)
        np.maximum.at(self.sums["high"], group, x)

    def _add(
        self, name: str, group: NDArray[np.int64], values: Any, y: NDArray[np.int64] | None = None
    ) -> None:
        """Increase a sum of each group, or of each group and class."""
        if y is not None:
            group = group * 2
            group += y
        np.add.at(self.sums[name], group, values)

    def _begin(self, weighted: bool) -> None:
        """Sums of no rows."""
        count = self.cells.count + self.fine + 3
        more = ("square", "rows") if weighted else ()
        for name in ("weight", "d", "e", "loss", "part", *more):
            self.sums[name] = np.zeros(count * len(APART.get(name, (name,))))
        self.sums |= {"low": np.full(count, np.inf), "high": np.full(count, -np.inf)}

    def found(self) -> Columns | None:
        if not self.sums or not self.sums["weight"].any():
            return None
        held = np.flatnonzero(self.sums["low"] <= self.sums["high"])
        columns: Columns = {}
        for name, values in self.sums.items():
            names = APART.get(name, (name,))
            for own, column in zip(names, values.reshape(-1, len(names)).T, strict=True):
                columns[own] = column[held]
        (_, k, f), (_, top, last) = self._place(columns["low"]), self._place(columns["high"])
        if (k != top).any() or (f != last).any():  # a sigmoid that falls somewhere
            return None
        return {**columns, "k": k, "f": f}


def refuse_outside(rows: LazyRows, probabilities: bool = True) -> bool:
    """OutsideError if the scores must be ``probabilities`` and are not.

    Otherwise, whether any score of a row with weight lies outside [0, 1].
    """
    import narwhals as nw

    x, count = nw.col("x"), nw.col("w0") + nw.col("w1") > 0.0
    wrong = (x < 0.0) | (x > 1.0)
    facts = {"n": wrong, "counting": wrong & count}
    sums = [nw.when(fact).then(1).otherwise(0).sum().alias(n) for n, fact in facts.items()]
    ends = (x.min().alias("low"), x.max().alias("high"), nw.len().alias("rows"))
    n, counting, low, high, all_rows = first_row(rows.fetch(rows.rows().select(*sums, *ends)))
    if not probabilities:
        return bool(counting)
    name = rows.names.score
    raise OutsideError(
        f"column {name!r} must be probabilities in [0, 1]: {int(n):,} of {all_rows:,} are not "
        f"(they run from {low:g} to {high:g}). Divide percentages by 100; calibrate "
        "margins or logits first."
    )


# --- rows where they are ------------------------------------------------------------------------


def _choose(*cases: tuple[nw.Expr, nw.Expr], last: nw.Expr) -> nw.Expr:
    """The value of the first condition that holds."""
    import narwhals as nw

    for condition, value in reversed(cases):
        last = nw.when(condition).then(value).otherwise(last)
    return last


def _with_bins(rows: nw.LazyFrame[Any], fine: int) -> nw.LazyFrame[Any]:
    """The fine bin f of each p, and p's distance d from the border of f that is nearer to 0 or 1.

    p = 0 and p = 1 have the bins −1 and ``fine`` of their own.
    """
    import narwhals as nw

    p, f, n = nw.col("p"), nw.col("f"), nw.col("n")
    first, last = nw.lit(-1.0), nw.lit(float(fine))
    # the number as a column: an engine may multiply by 1/n in place of dividing by a constant
    rows = rows.with_columns(f=(p * float(fine)).floor(), n=p * 0.0 + float(fine))
    # p·n is rounded, f/n is the very border that `ece` has
    rows = rows.with_columns(f=_choose((f / n > p, f - 1.0), ((f + 1.0) / n <= p, f + 1.0), last=f))
    rows = rows.with_columns(f=_choose((p <= 0.0, first), (p >= 1.0, last), last=f))
    border = _choose((f < 0.0, nw.lit(0.0)), (f < fine / 2, f), (f < fine, f + 1.0), last=last)
    return rows.with_columns(d=p - border / n)


def _with_losses(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """−ln of the probability of what came; 0 where that was impossible.

    ln(1 − p) = ln(u)·p/(1 − u) with u = 1 − p as rounded: full accuracy, as log1p has it.
    """
    import narwhals as nw

    from calibrant.data.lazy import with_ln_or_sqrt

    p, y, u, ln = nw.col("p"), nw.col("y"), nw.col("u"), nw.col("loss")
    rows = rows.with_columns(u=nw.when(y > 0).then(p).otherwise(1.0 - p))
    rows = rows.with_columns(u=nw.when(u > 0.0).then(u).otherwise(1.0))  # no ln 0
    if rows.implementation.is_ibis():  # see `with_ln_or_sqrt`
        rows = with_ln_or_sqrt(rows, "ln", {"u": "loss"}).with_columns(loss=ln * -1.0)
    else:
        rows = rows.with_columns(loss=u.log() * -1.0)
    rest = 1.0 - u
    spared = nw.when(rest > 0.0).then(rest).otherwise(1.0)  # no division by 0
    certain = nw.when(p < 0.5).then(p).otherwise(0.0)
    exact = nw.when(rest > 0.0).then(ln * (p / spared)).otherwise(certain)
    return rows.with_columns(loss=nw.when(y > 0).then(ln).otherwise(exact))


# --- rows that are here -------------------------------------------------------------------------


def _border(f: NDArray[np.int64], fine: int) -> Array:
    """The border of a fine bin that is nearer to 0 or 1."""
    bins = np.arange(-1, fine + 1)
    borders = np.clip(bins + (bins >= fine / 2), 0, fine) / fine
    return np.asarray(borders[f + 1])


def _losses(p: Array, y: NDArray[np.int64]) -> Array:
    """−ln of the probability of what came; 0 where that was impossible."""
    loss = np.where(p < 1.0, p, 0.0)
    np.negative(loss, out=loss)
    np.log1p(loss, out=loss)
    at = np.flatnonzero(y)
    loss[at] = np.log(np.where(p[at] > 0.0, p[at], 1.0))
    return np.negative(loss, out=loss)


# --- what is made of them -----------------------------------------------------------------------


class Sums(NamedTuple):
    """Sums of groups of rows, in the order of their scores.

    ``x`` is the smallest score, ``low`` and ``high`` are the ends as probabilities, ``c`` is the
    point that distances are taken from: ``d0`` and ``d1`` are Σw(p − c) of negatives and positives,
    ``e`` is Σw(p − c)². ``single``: all scores of the group are equal.
    """

    k: NDArray[np.int64]
    f: NDArray[np.int64]
    x: Array
    single: Flags
    low: Array
    high: Array
    c: Array
    n0: Array
    n1: Array
    q0: Array
    q1: Array
    d0: Array
    d1: Array
    e: Array
    loss: Array

    @classmethod
    def of(cls, cells: Cells, found: Columns, fine: int) -> Sums:
        """The groups that have weight; a group of one prediction needs no sums."""
        order = np.lexsort((found["f"], found["k"]))
        sums = sums_of(found)
        order = order[(sums[0] + sums[1])[order] > 0]
        n0, n1, q0, q1 = (column[order] for column in sums)
        names = ("low", "high", "d0", "d1", "e", "loss")
        x, top, d0, d1, e, loss = (np.asarray(found[n], np.float64)[order] for n in names)
        k, f = (np.asarray(found[name][order], np.int64) for name in ("k", "f"))
        low, high = (link_of(cells)(ends) for ends in (x, top))
        for at, p in ((f < 0, 0.0), (f >= fine, 1.0)):
            low, high = np.where(at, p, low), np.where(at, p, high)
        one = low == high
        exact = -(xlogy(n1, low) + xlog1py(n0, -low))
        c, loss = (
            np.where(one, low, _border(f, fine)),
            np.where(one, exact, loss + found["part"][order]),
        )
        d0, d1, e = (np.where(one, 0.0, column) for column in (d0, d1, e))
        return cls(k, f, x, x == top, low, high, c, n0, n1, q0, q1, d0, d1, e, loss)

    @property
    def n(self) -> Array:
        return self.n0 + self.n1

    @property
    def mean(self) -> Array:
        """The mean prediction of each group."""
        return np.clip(self.c + (self.d0 + self.d1) / self.n, self.low, self.high)

    def at(self, scores: Array) -> ScoreTable:
        """The table that has each group at one score."""
        return ScoreTable.from_counts(scores, self.n0, self.n1, self.q0, self.q1)


def link_of(cells: Cells) -> Callable[[Array], Array]:
    """Scores to probabilities."""
    return np.asarray if cells.centre is None else sigmoid


def predicted(x: nw.Expr, cells: Cells) -> nw.Expr:
    """The probability of a score, as an expression for the place where the rows are."""
    return x if cells.centre is None else 1.0 / (1.0 + (x * -1.0).exp())


# --- What measures are made of: facts of a table, of groups of rows, or of several classes --------


class TableFacts:
    """The facts of a table, each computed when it is first asked for."""

    hidden_area = 0.0

    def __init__(self, ranked: ScoreTable, bins: Bins) -> None:
        self.ranked = ranked
        self.bins = bins

    @cached_property
    def table(self) -> ScoreTable:
        """The predictions as probabilities; points, which are none, as they are."""
        return self.ranked.as_probabilities() or self.ranked

    @cached_property
    def log_loss(self) -> float:
        return mean_log_loss(self.table)

    def why_infinite(self) -> str:
        return infinite_because(self.table)

    @cached_property
    def square(self) -> float:
        return mean_square(self.table)

    @cached_property
    def groups(self) -> Groups:
        return group(self.table, self.bins)

    @cached_property
    def share_correct(self) -> float:
        return share_correct(self.table)

    @cached_property
    def hull(self) -> FlachMatsubara:
        return split_on_hull(self.table)

    @property
    def base_rate(self) -> float:
        return self.table.total_positive / self.table.total

    @cached_property
    def line(self) -> CoxLine:
        return cox_line(self.table)

    @cached_property
    def offset(self) -> Coefficient:
        return offset_intercept(self.table)

    @cached_property
    def certain(self) -> float:
        """The weight of predictions of exactly 0 or 1."""
        return uncertain(self.table)[1]

    @cached_property
    def curve_gaps(self) -> CurveGaps:
        return curve_gaps(self.table, smooth_curve(self.table))


class Hull(NamedTuple):
    """The Brier score split on the ROC hull (``parts``), and the table of the scores in order.

    Inside some groups the order is not known: the AUC may be off by ``hidden``.
    """

    parts: FlachMatsubara
    ranked: ScoreTable
    hidden: float


class GroupFacts:
    """The facts of rows that were grouped where they are (`calibrant.metrics.evaluating`).

    They are those of a table but for the ``table`` itself, all predictions one by one, and for what
    is fitted to it. ``hidden_area`` says by how much the AUC of ``ranked`` may be off, since the
    order in groups is not known.
    """

    table: None = None

    def __init__(self, g: Sums, hull: Hull, fine: int, bins: Bins) -> None:
        self.hull, self.ranked, self.hidden_area = hull
        self.groups = _bins(g, fine, bins)
        total, positive = float(g.n.sum()), float(g.n1.sum())
        self.base_rate = positive / total
        self.log_loss = float(g.loss.sum()) / total + 0.0
        rest = 1.0 - g.c
        square = g.e + 2.0 * (g.c * g.d0 - rest * g.d1) + g.c**2 * g.n0 + rest**2 * g.n1
        self.square = float(square.sum()) / total
        upper = g.f >= fine // 2
        self.share_correct = float(g.n0[~upper].sum() + g.n1[upper].sum()) / total
        self._sums = g

    def why_infinite(self) -> str:
        return infinite_because(self._sums.at(self._sums.mean))


def _bins(g: Sums, fine: int, bins: Bins) -> Groups:
    """The sums of each bin of equal width; for ``"auto"``, groups of rows count as ties."""
    if isinstance(bins, str):
        return group(g.at(g.mean), bins)
    number = np.clip(g.f, 0, fine - 1) // (fine // bins)
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(number[order]) > 0))
    columns = (g.n, g.n1, g.c * g.n + g.d0 + g.d1)
    return Groups(*(np.add.reduceat(column[order], starts) for column in columns))


#: what a measure of two classes is made of
PredictionFacts = TableFacts | GroupFacts


# --- several classes ----------------------------------------------------------------------------


class ClassColumns(NamedTuple):
    """AUC (``areas``) and CalBin (``windows``) of each class against the rest.

    The AUC of a class that did not come is None. Where there is no CalBin ``no_windows`` says why.
    """

    areas: list[float | None]
    windows: list[float]
    no_windows: str


class ClassFacts:
    """The facts of a matrix of probabilities, each computed when it is first asked for."""

    def __init__(self, matrix: ScoreMatrix, bins: Bins) -> None:
        self.matrix = matrix
        self.bins = bins

    @cached_property
    def log_loss(self) -> float:
        return mean_log_loss_of_classes(self.matrix)

    def why_infinite(self) -> str:
        return infinite_for_classes(self.matrix)

    @property
    def share_correct(self) -> float:
        return share_right(self.matrix)

    @cached_property
    def square(self) -> float:
        """The mean over rows of Σ_j (y_j − p_j)²."""
        return square_sum(self.matrix)

    @cached_property
    def top(self) -> Groups:
        """The bins of the probability of each row's most probable class."""
        return group(top_table(self.matrix), self.bins)

    @cached_property
    def each(self) -> list[Groups]:
        """The bins of each class against the rest."""
        return class_groups(self.matrix, self.bins)

    @cached_property
    def columns(self) -> ClassColumns:
        """AUC and CalBin of each class, in one pass over the columns: each has to be sorted."""
        areas: list[float | None] = []
        windows: list[float] = []
        reason = too_many(self.matrix.total * self.matrix.n_classes)
        for table in class_tables(self.matrix):
            areas.append(None if one_class(table) else area(table))
            reason = reason or not_whole(table)
            if not reason:
                windows.append(window_error(table))
        return ClassColumns(areas, windows, reason)


# --- A measure: one record with all that the rest of the package has to know about it -------------


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
    of_redrawn : function of RedrawnTables, optional
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
    of_redrawn: Callable[[RedrawnTables], Array] | None = None
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
