"""All measures of a lazy frame: sums where the data are, and the hull in a second pass.

While there are few different predictions, their exact table is fetched and measured as usual.
Beyond that, rows are grouped by cell and by fine bin. Losses and bins are sums over rows and stay
exact. The blocks of isotonic regression need the scores of a few cells, which are fetched one by
one (`calibrant.data.refine`). Only the AUC does not see the order inside the other cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy

from calibrant.data.cells import Cells, fine_cells_for
from calibrant.data.grouped import Grouped, columns_of
from calibrant.data.lazy import LazyRows, lazy_frame, read_lazy
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.refine import matters, rows_of_cells
from calibrant.data.table import ScoreTable
from calibrant.errors import InputError
from calibrant.losses import sigmoid
from calibrant.metrics.binned import Groups
from calibrant.metrics.decompose import spread
from calibrant.metrics.evaluating import Measured, alone, compared, measured
from calibrant.metrics.evaluation import Evaluation
from calibrant.metrics.hull import FlachMatsubara
from calibrant.metrics.intervals import How
from calibrant.metrics.proper import infinite_because
from calibrant.metrics.ranking import area, one_class

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["OutsideError", "evaluate_frame", "evaluate_rows", "measure_rows", "refuse_frames"]

Array = NDArray[np.float64]

#: at least so many fine bins: sums of (p − the bin's border)² then lose no digits
FINE = 256
APART = "the change has no intervals: predictions and raw scores were grouped apart, not as pairs"


class OutsideError(InputError):
    """Predictions that are no probabilities."""


def evaluate_frame(
    y: Any,
    columns: tuple[Any, ...],
    labels: tuple[Any, Any],
    bins: int,
    how: How | None,
    cells: Any,
) -> Evaluation:
    """`evaluate` of the columns p, label, raw and sample_weight of a frame; ``labels`` are the
    positive one and the classes, if they are given."""
    lazy = lazy_frame(y)
    if lazy is None:
        raise InputError(
            "label names a column, so y must be a frame (DuckDB, Polars, Spark, Ibis, pandas, "
            f"Arrow), but {type(y).__name__} came. Pass a frame, or leave label out."
        )
    for role, name in zip(("p", "label", "raw", "sample_weight"), columns, strict=True):
        if not isinstance(name, str) and (name is not None or role in ("p", "label")):
            raise InputError(
                f"{role} must be the name of a column of the frame, but {type(name).__name__} "
                "came. Name a column; arrays go with an array of labels in place of y."
            )
    p, label, raw, weight = columns
    pos_label, classes = labels
    new = read_lazy(lazy, Names(p, label, weight), pos_label=pos_label, classes=classes)
    old = None if raw is None else read_lazy(lazy, Names(raw, label, weight), coding=new.coding)
    return evaluate_rows(new, old, bins, how, cells)


def refuse_frames(y: Any, p: Any, cells: Any) -> None:
    """Without ``label`` there are no frames of any size, no names of columns and no cells."""
    import narwhals as nw

    if isinstance(p, str) or isinstance(nw.from_native(y, pass_through=True), nw.LazyFrame):
        raise InputError(
            "label must name the column of labels where y is a lazy frame or p names a column: "
            'evaluate(frame, "probability", label="y").'
        )
    if not isinstance(cells, str) or cells != "auto":
        raise InputError(f"cells goes with a frame and label=, but {cells!r} came without them.")


def evaluate_rows(
    rows: LazyRows, raw: LazyRows | None, bins: int, how: How | None, cells: CellsOption = "auto"
) -> Evaluation:
    """The evaluation of rows whose scores are probabilities, beside those of raw scores."""
    new = measure_rows(rows, bins, cells, probabilities=True)
    if raw is None:
        return alone(new, bins, how)
    return compared(new, measure_rows(raw, bins, cells), None, bins, how, APART)


def measure_rows(
    rows: LazyRows, bins: int, cells: CellsOption = "auto", *, probabilities: bool = False
) -> Measured:
    """All measures of one column; OutsideError if it must hold ``probabilities`` and does not."""
    fine = bins * max(math.ceil(FINE / bins), 1)
    fine *= 1 + fine % 2  # even, so that ½ is a border
    same = {field.name: getattr(rows, field.name) for field in fields(rows)}
    asked = _Rows(**same, fine=fine, probabilities=probabilities)
    grouped = asked.grouped(cells, fine_cells_for)
    if grouped.cells is None:
        x = grouped.columns["x"]
        if probabilities and (x[0] < 0.0 or x[-1] > 1.0):
            asked.refuse_outside()
        return measured(grouped.table(), bins)
    groups = _Sums.of(grouped, fine)
    hull = rows.checked(lambda: _refined(rows, grouped, groups))
    values, notes = _measures(groups, *hull, fine, bins)
    notes.append(
        f"rows were grouped into {grouped.cells} ({len(groups.x):,} in use): they were counted in "
        "place of distinct predictions, and intervals are from their means"
    )
    table = ranked = groups.at(groups.mean)
    if grouped.cells.centre is not None:
        ranked = groups.at(groups.x)
    return Measured(values, notes, table, ranked, counted=False)


# --- the first pass -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows(LazyRows):
    """Rows that are grouped by cell and fine bin, with the sums of all measures."""

    fine: int = FINE
    probabilities: bool = False

    @np.errstate(over="ignore")  # of frames in memory
    def by_cell(self, cells: Cells, frame: nw.LazyFrame[Any] | None = None) -> Grouped:
        import narwhals as nw

        rows = self.rows() if frame is None else frame
        x, w0, w1, d = (nw.col(name) for name in ("x", "w0", "w1", "d"))
        prediction = x
        if cells.centre is not None:
            if self.refuse_outside():
                prediction = 1.0 / (1.0 + (x * -1.0).exp())
            else:  # only rows without weight lie outside
                cells = Cells(cells.count)
                prediction = _choose((x < 0.0, nw.lit(0.0)), (x > 1.0, nw.lit(1.0)), last=x)
        rows = _with_losses(_with_bins(rows.with_columns(p=prediction), self.fine))
        weight = w0 + w1
        present = nw.when(weight > 0.0).then(x) if self.names.weight else x
        rows = rows.with_columns(at=present, d0=w0 * d, d1=w1 * d, e=weight * d * d)
        loss = nw.col("loss")
        rows = rows.with_columns(loss=weight * loss)
        rows = rows.with_columns(part=(loss * 4096.0).floor() * 2.0**-12)  # its sums are exact
        rows = rows.with_columns(loss=loss - nw.col("part"))
        sums = {name: nw.col(name).sum() for name in ("d0", "d1", "e", "loss", "part")}
        sums |= {"low": nw.col("at").min(), "high": nw.col("at").max(), **self.sums()}
        return Grouped(cells, self.group(cells.add_to(rows, "x", "k"), ["f", "k"], sums))

    def refuse_outside(self) -> bool:
        """OutsideError for predictions that are no probabilities; of other scores, whether any
        that has weight lies outside [0, 1]."""
        import narwhals as nw

        x, count = nw.col("x"), nw.col("w0") + nw.col("w1") > 0.0
        wrong = (x < 0.0) | (x > 1.0)
        facts = {"n": wrong, "counting": wrong & count}
        sums = [nw.when(fact).then(1).otherwise(0).sum().alias(n) for n, fact in facts.items()]
        ends = (x.min().alias("low"), x.max().alias("high"), nw.len().alias("rows"))
        n, counting, low, high, rows = self.fetch(self.rows().select(*sums, *ends)).row(0)
        if not self.probabilities:
            return bool(counting)
        name = (self.said or self.names).score
        raise OutsideError(
            f"column {name!r} must be probabilities in [0, 1]: {int(n):,} of {rows:,} are not "
            f"(they run from {low:g} to {high:g}). Divide percentages by 100; calibrate "
            "margins or logits first."
        )


def _choose(*cases: tuple[nw.Expr, nw.Expr], last: nw.Expr) -> nw.Expr:
    """The value of the first condition that holds."""
    import narwhals as nw

    for condition, value in reversed(cases):
        last = nw.when(condition).then(value).otherwise(last)
    return last


def _with_bins(rows: nw.LazyFrame[Any], fine: int) -> nw.LazyFrame[Any]:
    """The fine bin f of each p (−1 and ``fine`` are p = 0 and p = 1), and p's distance d from the
    border of it that is nearer to 0 or 1."""
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

    p, w1, u, ln = nw.col("p"), nw.col("w1"), nw.col("u"), nw.col("loss")
    rows = rows.with_columns(u=nw.when(w1 > 0.0).then(p).otherwise(1.0 - p))
    rows = rows.with_columns(u=nw.when(u > 0.0).then(u).otherwise(1.0))  # no ln 0
    rows = rows.with_columns(loss=u.log() * -1.0)
    rest = 1.0 - u
    spared = nw.when(rest > 0.0).then(rest).otherwise(1.0)  # no division by 0
    certain = nw.when(p < 0.5).then(p).otherwise(0.0)
    exact = nw.when(rest > 0.0).then(ln * (p / spared)).otherwise(certain)
    return rows.with_columns(loss=nw.when(w1 > 0.0).then(ln).otherwise(exact))


class _Sums(NamedTuple):
    """Sums of groups of rows, in the order of their scores.

    ``x`` is the smallest score, ``low`` and ``high`` are the ends as probabilities, ``c`` is the
    point that distances are taken from: ``d0`` and ``d1`` are Σw(p − c) of negatives and positives,
    ``e`` is Σw(p − c)². ``single``: all scores of the group are equal.
    """

    k: NDArray[np.int64]
    f: NDArray[np.int64]
    x: Array
    single: NDArray[np.bool_]
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
    def of(cls, grouped: Grouped, fine: int) -> _Sums:
        """The groups that have weight; a group of one prediction needs no sums."""
        found = grouped.columns
        order = np.lexsort((found["f"], found["k"]))
        sums = columns_of(found)
        order = order[(sums[0] + sums[1])[order] > 0]
        n0, n1, q0, q1 = (column[order] for column in sums)
        names = ("low", "high", "d0", "d1", "e", "loss")
        x, top, d0, d1, e, loss = (np.asarray(found[n], np.float64)[order] for n in names)
        k, f = (np.asarray(found[name][order], np.int64) for name in ("k", "f"))
        low, high = (_link(grouped)(ends) for ends in (x, top))
        for at, p in ((f < 0, 0.0), (f >= fine, 1.0)):
            low, high = np.where(at, p, low), np.where(at, p, high)
        one = low == high
        exact = -(xlogy(n1, low) + xlog1py(n0, -low))
        border = np.clip(f + (f >= fine / 2), 0, fine) / fine
        c, loss = np.where(one, low, border), np.where(one, exact, loss + found["part"][order])
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


def _link(grouped: Grouped) -> Callable[[Array], Array]:
    """Scores to probabilities."""
    margins = grouped.cells is not None and grouped.cells.centre is not None
    return sigmoid if margins else np.asarray


# --- the second pass ----------------------------------------------------------------------------


def _refined(
    rows: LazyRows, grouped: Grouped, g: _Sums
) -> tuple[FlachMatsubara, ScoreTable, float]:
    """Fetch the scores of cells that may hold a corner of the ROC hull.

    The Brier score split on it, the scores in their order, and the AUC that is hidden in cells.
    """
    # a cell is fetched whole, and scores that the sigmoid made equal stay together
    apart = np.append(True, (g.k[1:] != g.k[:-1]) & (g.low[1:] > g.high[:-1]))
    starts = np.flatnonzero(apart)
    n0, n1 = np.add.reduceat(g.n0, starts), np.add.reduceat(g.n1, starts)
    inside = matters(n0, n1) & (g.low[starts] < g.high[np.append(starts[1:], len(g.k)) - 1])
    unit = np.cumsum(apart) - 1
    torn = inside[unit]
    x, m0, m1 = _scores(rows, grouped, np.unique(g.k[torn]))
    p, none = _link(grouped)(x), np.zeros(len(x))
    kept = ~torn
    pairs = (
        (g.low[starts][unit], p),
        (g.c, p), (g.n0, m0), (g.n1, m1), (g.d0, none), (g.d1, none), (g.e, none),
    )  # fmt: skip
    columns = [np.concatenate((old[kept], new)) for old, new in pairs]
    order = np.argsort(columns[0], kind="stable")
    parts = _split(*(column[order] for column in columns))
    ranked = ScoreTable.from_counts(np.concatenate((g.x[kept], x)), columns[2], columns[3])
    hidden = kept & ~g.single
    share0, share1 = (n[hidden] / (n.sum() or 1.0) for n in (g.n0, g.n1))
    return parts, ranked, float(share0 @ share1) / 2


def _scores(
    rows: LazyRows, grouped: Grouped, cells: NDArray[np.int64]
) -> tuple[Array, Array, Array]:
    """Each score of some cells, with the weight of its negatives and of its positives."""
    if grouped.cells is None or not len(cells):
        return np.empty(0), np.empty(0), np.empty(0)
    few = rows_of_cells(rows, grouped.cells, cells)
    found = few.group(few.rows(), ["x"], few.sums())
    n0, n1, _, _ = columns_of(found)
    there = n0 + n1 > 0
    return np.asarray(found["x"], np.float64)[there], n0[there], n1[there]


def _split(
    key: Array, c: Array, n0: Array, n1: Array, d0: Array, d1: Array, e: Array
) -> FlachMatsubara:
    """`flach_matsubara` of sums, of which those with an equal key are one prediction."""
    n, d = n0 + n1, d0 + d1
    total = float(n.sum())
    starts = np.flatnonzero(np.append(True, key[1:] > key[:-1]))
    weight, positive = np.add.reduceat(n, starts), np.add.reduceat(n1, starts)
    first = isotonic_regression(positive / weight, weights=weight).blocks[:-1]
    size = np.add.reduceat(weight, first)
    rate = np.add.reduceat(positive, first) / size
    fit = spread(rate, starts[first], len(n))
    within = np.maximum(e - d * (d / n), 0.0)  # rounding
    ordering = 2.0 * float(((c - fit) * (n * fit - n1) + fit * d - d1).sum()) / total
    return FlachMatsubara(
        float((n * (c - fit + d / n) ** 2 + within).sum()) / total,
        max(ordering, 0.0),  # rounding
        float(size @ (rate * (1.0 - rate))) / total,
    )


def _measures(
    g: _Sums, parts: FlachMatsubara, order: ScoreTable, hidden: float, fine: int, bins: int
) -> tuple[dict[str, float], list[str]]:
    """All measures but CalBin, in order, and what to say about them."""
    total = float(g.n.sum())
    rest = 1.0 - g.c
    square = g.e + 2.0 * (g.c * g.d0 - rest * g.d1) + g.c**2 * g.n0 + rest**2 * g.n1
    groups, upper = _bins(g, fine, bins), g.f >= fine // 2
    values = {"log_loss": float(g.loss.sum()) / total + 0.0, "brier": float(square.sum()) / total}
    values |= {"ece": groups.mean_gap(), "mce": groups.largest_gap()}
    values["rmse"] = math.sqrt(values["brier"])
    notes = ["calbin was left out: it looks at case after case, which groups do not show"]
    if math.isinf(values["log_loss"]):
        notes.append(f"log loss is infinite: {infinite_because(g.at(g.mean))}")
    if reason := one_class(order):
        notes.append(reason)
    else:
        values["auc"] = area(order)
        if hidden:  # a little more, so that two digits are never too few
            notes.append(f"auc is from cells: within {1.05 * hidden:.2g} of the exact one")
    values["accuracy"] = float(g.n0[~upper].sum() + g.n1[upper].sum()) / total
    values["calibration_loss"] = parts.calibration
    values["miscalibration"] = parts.calibration + parts.ordering
    rate = float(g.n1.sum()) / total
    values["discrimination"] = max(rate * (1.0 - rate) - parts.refinement, 0.0)  # rounding
    return values, notes


def _bins(g: _Sums, fine: int, bins: int) -> Groups:
    """The sums of each bin of equal width."""
    number = np.clip(g.f, 0, fine - 1) // (fine // bins)
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(number[order]) > 0))
    columns = (g.n, g.n1, g.c * g.n + g.d0 + g.d1)
    return Groups(*(np.add.reduceat(column[order], starts) for column in columns))
