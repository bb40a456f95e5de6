"""Measures of a lazy frame: sums where the rows are, and the hull in a few more passes.

While there are few different predictions, their exact table is fetched and measured as usual.
Beyond that, rows are grouped by cell and by fine bin. Losses and bins are sums over rows and stay
exact, however wide the cells are. The blocks of isotonic regression need the scores of a few cells,
which are fetched one by one. Only the AUC does not see the order inside the other cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from calibrant.array_types import Array, Flags
from calibrant.data.columns import first_row, is_finite
from calibrant.data.lazy import (
    APART,
    EXACT,
    CellsOption,
    Columns,
    LazyRows,
    Question,
    Steps,
    grouped_table,
    run_steps,
    zoomed,
)
from calibrant.data.refine import narrowed, unit_starts
from calibrant.data.scale import PERCENT, ScoreScale, percent_ends
from calibrant.data.score_table import Cells, ScoreTable, fine_cells_for, sums_of
from calibrant.errors import InputError
from calibrant.losses import sigmoid
from calibrant.metrics.intervals import PairedCells
from calibrant.metrics.measures import Measured, Records, measure_all, measure_table
from calibrant.metrics.point_measures import FlachMatsubara, TableFacts, hull_blocks
from calibrant.metrics.tables import Bins, Groups, bins_note, group, group_starts, to_cells

if TYPE_CHECKING:
    import narwhals as nw


#: the most cells of the first pass; later passes divide those that matter
MOST = 2**16


def measured_rows(
    rows: LazyRows, raw: LazyRows | None, bins: Bins, records: Records, cells: CellsOption
) -> tuple[Measured, Measured | None]:
    """The measures of probabilities in an engine, and of raw scores if they came.

    Predictions and raw scores go side by side, in the same passes where rows can be read here.
    """
    first = _first_pass(rows, cells)
    if isinstance(first, Cells):
        outside = first.centre is not None
    else:
        outside = bool(first["x"][0] < 0.0 or first["x"][-1] > 1.0)
    if outside:
        refuse_outside(rows)
    after = (rows, _measure(rows, first, bins, records))
    if raw is None:
        return run_steps(after)[0], None
    start, scale = _first_pass(raw, cells), None
    if isinstance(start, Cells) and start.centre is not None:
        scale, raw = as_probabilities(raw)
        if scale is not None and scale.kind in ("probabilities", "percentages"):
            start = Cells(start.count)
    new, old = run_steps(after, (raw, _measure(raw, start, bins, records, scale)))
    return new, old


def _first_pass(rows: LazyRows, cells: CellsOption) -> Columns | Cells:
    """Sums by distinct score where these are few; else the cells to group by."""

    def count(weight: float) -> int:
        return min(fine_cells_for(weight), MOST)

    return rows.checked(lambda: rows.by_score_or_cells(cells, count))


def as_probabilities(rows: LazyRows) -> tuple[ScoreScale | None, LazyRows]:
    """The scale of scores, None where no row is right, and the rows with percentages divided by
    100.

    As in `ScoreTable`, rows without weight do not count, and percentages of 0 and 100 are moved
    inwards. Scores outside [0, 1] that have no weight are moved into it.
    """
    import narwhals as nw

    x, inner, weight = nw.col("x"), nw.col("inner"), nw.col("w0") + nw.col("w1")
    present = rows.rows().filter(weight > 0.0)
    present = present.with_columns(inner=nw.when((x > 0.0) & (x < PERCENT[1])).then(x))
    ends = {"low": x.min(), "high": x.max(), "least": inner.min(), "most": inner.max()}
    found = first_row(rows.fetch(present.select(*(end.alias(name) for name, end in ends.items()))))
    if found[0] is None:
        return None, rows  # which are refused later
    low, high, least, most = (50.0 if end is None else float(end) for end in found)
    scale = ScoreScale(low, high)
    top, unit = 1.0, 1.0
    if scale.kind == "percentages":
        low, high = percent_ends(least, most)
        top = unit = PERCENT[1]
    elif scale.kind == "probabilities":
        low, high = 0.0, 1.0
    else:
        return scale, rows
    x = nw.col(rows.score)
    moved = _first_true((x <= 0.0, nw.lit(low)), (x >= top, nw.lit(high)), last=x) / unit
    probability = nw.when(is_finite(x)).then(moved).otherwise(x)
    return scale, replace(rows, source=rows.source.with_columns(probability.alias(rows.score)))


def _measure(
    rows: LazyRows,
    start: Columns | Cells,
    bins: Bins,
    records: Records,
    scale: ScoreScale | None = None,
) -> Steps[Measured]:
    """The measures of one column, in steps. ``scale`` is that of its scores, where they were
    divided."""
    if not isinstance(start, Cells):
        return measure_table(grouped_table(None, start), bins, records)
    whole = 1 if isinstance(bins, str) else bins
    fine = whole * max(math.ceil(FINE / whole), 1)
    fine *= 1 + fine % 2  # even, so that ½ is a border
    cells, grouped = yield from zoomed(start, lambda cells: CellSums(cells, fine))
    groups = GroupedSums.of(cells, grouped, fine)
    hull = yield from hull_of(cells, grouped, groups)
    values, notes = measure_all(records, GroupFacts(groups, hull, fine, bins))
    notes.append(
        f"rows were grouped into {cells} ({len(groups.x):,} in use): they were counted in "
        "place of distinct predictions, and intervals are from their means"
    )
    table = ranked = groups.at(groups.mean)
    if cells.centre is not None:
        ranked = groups.at(groups.x)
    if scale is None:
        low, high = np.nanmin(grouped["low"]), np.nanmax(grouped["high"])
        scale = ScoreScale(float(low), float(high))
    if scale.kind == "points":
        values = {name: value for name, value in values.items() if records[name].ranks}
        notes = [note for note in notes if not note.startswith("log loss")]
    if isinstance(bins, str) and "ece" in values:
        notes.append(bins_note(len(group_starts(table, bins))))
    return Measured(values, notes, table, ranked, scale, counted=False)


def paired_cells(rows: LazyRows, raw: LazyRows) -> PairedCells | None:
    """Each prediction with the raw score of the same rows; None where there are too many pairs."""
    import narwhals as nw

    both = rows.rows(nw.col(raw.score).alias("z"))
    found = rows.group(both, ["z", "x"], rows.sums(), EXACT)
    if "z" not in found:
        return None
    return PairedCells.of_counts(found["x"], found["z"] + 0.0, sums_of(found))


# --- the hull -----------------------------------------------------------------------------------


class _Points(NamedTuple):
    """Groups of rows, in columns. Those of an equal ``key`` have the same prediction.

    ``x`` is the smallest score of a group. ``hidden``: the order inside the group is not known.
    """

    key: Array
    x: Array
    c: Array
    n0: Array
    n1: Array
    d: Array
    hidden: Flags


def hull_of(cells: Cells, grouped: Columns, g: GroupedSums) -> Steps[Hull]:
    """The ROC hull of grouped rows. Cells that may hold a corner of it are divided, and their
    scores fetched.

    How they are found is in `calibrant.data.refine`.

    Pieces of a cell come with Σw and Σwp only. The parts of the Brier score need Σwp² and Σwpy
    only as sums over all blocks, so the sums of whole cells are enough.
    """
    link = link_function(cells)
    kept, scores = yield from narrowed(
        cells, grouped, link, lambda x: probability_expression(x, cells)
    )
    whole = kept["depth"] == 0
    starts, unit = unit_starts(link(kept["low"]), link(kept["high"]))
    key = link(kept["low"])[starts][unit]

    stays = np.isin(g.k, kept["k"][whole])
    cell = np.searchsorted(kept["k"][whole], g.k[stays])
    first = _Points(
        key[whole][cell], g.x[stays], g.c[stays], g.n0[stays], g.n1[stays],
        (g.d0 + g.d1)[stays], ~g.single[stays],
    )  # fmt: skip
    own = g.c[np.searchsorted(g.k, g.k)]  # one reference point for all groups of a cell
    n0, n1, low, moment = (kept[name][~whole] for name in ("negative", "positive", "low", "moment"))
    about = own[np.searchsorted(g.k, cells(low))]
    apart = moment - about * (n0 + n1)
    piece = _Points(key[~whole], low, about, n0, n1, apart, low < kept["high"][~whole])
    m0, m1, _, _ = sums_of(scores)
    there = m0 + m1 > 0
    x, m0, m1 = np.asarray(scores["x"], np.float64)[there], m0[there], m1[there]
    p = link(x)
    single = _Points(p, x, p, m0, m1, np.zeros(len(x)), np.zeros(len(x), bool))

    spread = g.e[stays] - first.d * (first.d / g.n[stays])  # Σw(p − mean)² of each group
    within = float(np.maximum(spread, 0.0).sum())  # rounding
    product = float(g.d1[stays].sum())
    if len(low):  # all other cells were divided: add what their pieces and scores leave out
        shift = (g.c - own)[~stays]
        d, e, n, d1 = ((column)[~stays] for column in (g.d0 + g.d1, g.e, g.n, g.d1))
        far = p - own[np.searchsorted(g.k, cells(x))]
        square = (e + 2.0 * shift * d + shift**2 * n).sum() - ((m0 + m1) * far**2).sum()
        within += max(float(square - (apart * (apart / (n0 + n1))).sum()), 0.0)  # rounding
        product += float((d1 + shift * g.n1[~stays]).sum() - (m1 * far).sum())
    points = _Points(
        *(np.concatenate(columns) for columns in zip(first, piece, single, strict=True))
    )
    del first, piece, single, kept, scores, key, starts, unit  # there may be millions of them
    share0, share1 = (n[points.hidden] / (n.sum() or 1.0) for n in (points.n0, points.n1))
    ranked = ScoreTable.from_counts(points.x, points.n0, points.n1)
    return Hull(_split_brier(points, within, product), ranked, float(share0 @ share1) / 2)


def _split_brier(points: _Points, within: float, product: float) -> FlachMatsubara:
    """The Brier score split along the ROC hull, from sums of groups."""
    order = np.argsort(points.key, kind="stable")
    key, c, n0, n1, d = (
        column[order] for column in (points.key, points.c, points.n0, points.n1, points.d)
    )
    n = n0 + n1
    total = float(n.sum())
    starts = np.flatnonzero(np.append(True, key[1:] > key[:-1]))
    weight, positive = np.add.reduceat(n, starts), np.add.reduceat(n1, starts)
    first, size, rate = hull_blocks(weight, positive)
    fit = to_cells(rate, starts[first], len(n))
    ordering = float(((c - fit) * (n * fit - n1) + fit * d).sum()) - product
    return FlachMatsubara(
        (float((n * (c - fit + d / n) ** 2).sum()) + within) / total,
        max(2.0 * ordering / total, 0.0),  # rounding
        float(size @ (rate * (1.0 - rate))) / total,
    )


#: the fewest fine bins; with them, sums of (p − the bin's border)² lose no digits
FINE = 256


class OutsideError(InputError):
    """Predictions that are no probabilities."""


@dataclass
class CellSums(Question):
    """Asks rows for the sums of every measure, by cell and fine bin."""

    cells: Cells
    fine: int = FINE
    sums: dict[str, Array] = field(default_factory=dict)

    # --- where the rows are ---------------------------------------------------------------------

    @np.errstate(over="ignore")  # of frames in memory
    def ask(self, rows: LazyRows) -> Columns:
        """The sums of each cell and fine bin, computed by the engine."""
        import narwhals as nw

        x, d, f, loss = (nw.col(name) for name in ("x", "d", "f", "loss"))
        frame = _with_fine_bins(
            rows.coded().with_columns(p=probability_expression(x, self.cells)), self.fine
        )
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

    def _locate(self, x: Array) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """The probability, the cell and the fine bin of each score."""
        p = link_function(self.cells)(x)
        f = (p * float(self.fine)).astype(np.int64)
        borders = np.arange(self.fine + 2) / self.fine
        f -= p < borders[f]  # p·n is rounded, f/n is the very border that `ece` has
        f += p >= borders[1:][f]
        f -= p <= 0.0
        return p, self.cells(x), f

    def add(self, x: Array, y: NDArray[np.int64], w: Array | None) -> None:
        """Add a batch of rows to the sums, in this process."""
        p, group, f = self._locate(x)
        group += f  # both only grow with x, so their sum tells both
        group += self.cells.count // 2 + 1
        if not self.sums:
            self._start_sums(weighted=w is not None)
        self._add("weight", group, 1.0 if w is None else w, y)
        value = p - _nearer_border(f, self.fine)
        self._add("d", group, value if w is None else w * value, y)
        value *= value
        self._add("e", group, value if w is None else w * value)
        value = _log_losses(p, y) if w is None else w * _log_losses(p, y)
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
        """Add values to a sum, each in its group; with y, in its group and class."""
        if y is not None:
            group = group * 2
            group += y
        np.add.at(self.sums[name], group, values)

    def _start_sums(self, weighted: bool) -> None:
        """Set all sums to zero."""
        count = self.cells.count + self.fine + 3
        more = ("square", "rows") if weighted else ()
        for name in ("weight", "d", "e", "loss", "part", *more):
            self.sums[name] = np.zeros(count * len(APART.get(name, (name,))))
        self.sums |= {"low": np.full(count, np.inf), "high": np.full(count, -np.inf)}

    def found(self) -> Columns | None:
        """The sums of all batches; None where there were no rows, or where rounding made groups
        overlap."""
        if not self.sums or not self.sums["weight"].any():
            return None
        held = np.flatnonzero(self.sums["low"] <= self.sums["high"])
        columns: Columns = {}
        for name, values in self.sums.items():
            names = APART.get(name, (name,))
            for own, column in zip(names, values.reshape(-1, len(names)).T, strict=True):
                columns[own] = column[held]
        (_, k, f), (_, top, last) = (self._locate(columns["low"]), self._locate(columns["high"]))
        if (k != top).any() or (f != last).any():  # a sigmoid that falls somewhere
            return None
        return {**columns, "k": k, "f": f}


def refuse_outside(rows: LazyRows) -> NoReturn:
    """Refuse predictions that are no probabilities."""
    import narwhals as nw

    x = nw.col("x")
    wrong = nw.when((x < 0.0) | (x > 1.0)).then(1).otherwise(0).sum().alias("n")
    ends = (x.min().alias("low"), x.max().alias("high"), nw.len().alias("rows"))
    n, low, high, all_rows = first_row(rows.fetch(rows.rows().select(wrong, *ends)))
    name = rows.names.score
    raise OutsideError(
        f"column {name!r} must be probabilities in [0, 1]: {int(n):,} of {all_rows:,} are not "
        f"(they run from {low:g} to {high:g}). Divide percentages by 100; calibrate "
        "margins or logits first."
    )


# --- rows where they are ------------------------------------------------------------------------


def _first_true(*cases: tuple[nw.Expr, nw.Expr], last: nw.Expr) -> nw.Expr:
    """An expression: the value that belongs to the first condition that holds."""
    import narwhals as nw

    for condition, value in reversed(cases):
        last = nw.when(condition).then(value).otherwise(last)
    return last


def _with_fine_bins(rows: nw.LazyFrame[Any], fine: int) -> nw.LazyFrame[Any]:
    """The rows with the fine bin f of p, and the distance d of p from the bin's border nearer to 0
    or 1.

    p = 0 and p = 1 have the bins −1 and ``fine`` of their own.
    """
    import narwhals as nw

    p, f, n = nw.col("p"), nw.col("f"), nw.col("n")
    first, last = nw.lit(-1.0), nw.lit(float(fine))
    # the number as a column: an engine may multiply by 1/n in place of dividing by a constant
    rows = rows.with_columns(f=(p * float(fine)).floor(), n=p * 0.0 + float(fine))
    # p·n is rounded, f/n is the very border that `ece` has
    rows = rows.with_columns(
        f=_first_true((f / n > p, f - 1.0), ((f + 1.0) / n <= p, f + 1.0), last=f)
    )
    rows = rows.with_columns(f=_first_true((p <= 0.0, first), (p >= 1.0, last), last=f))
    border = _first_true((f < 0.0, nw.lit(0.0)), (f < fine / 2, f), (f < fine, f + 1.0), last=last)
    return rows.with_columns(d=p - border / n)


def _with_losses(rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The rows with the log loss of each, and 0 where the loss is infinite.

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


def _nearer_border(f: NDArray[np.int64], fine: int) -> Array:
    """The border of a fine bin that is nearer to 0 or 1."""
    bins = np.arange(-1, fine + 1)
    borders = np.clip(bins + (bins >= fine / 2), 0, fine) / fine
    return np.asarray(borders[f + 1])


def _log_losses(p: Array, y: NDArray[np.int64]) -> Array:
    """The log loss of each row, and 0 where it is infinite."""
    loss = np.where(p < 1.0, p, 0.0)
    np.negative(loss, out=loss)
    np.log1p(loss, out=loss)
    at = np.flatnonzero(y)
    loss[at] = np.log(np.where(p[at] > 0.0, p[at], 1.0))
    return np.negative(loss, out=loss)


# --- what is made of them -----------------------------------------------------------------------


class GroupedSums(NamedTuple):
    """The sums of groups of rows, in columns, in the order of their scores.

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
    def of(cls, cells: Cells, found: Columns, fine: int) -> GroupedSums:
        """The groups that have weight, from the sums of an engine."""
        order = np.lexsort((found["f"], found["k"]))
        sums = sums_of(found)
        order = order[(sums[0] + sums[1])[order] > 0]
        n0, n1, q0, q1 = (column[order] for column in sums)
        names = ("low", "high", "d0", "d1", "e", "loss")
        x, top, d0, d1, e, loss = (np.asarray(found[n], np.float64)[order] for n in names)
        k, f = (np.asarray(found[name][order], np.int64) for name in ("k", "f"))
        low, high = (link_function(cells)(ends) for ends in (x, top))
        for at, p in ((f < 0, 0.0), (f >= fine, 1.0)):
            low, high = np.where(at, p, low), np.where(at, p, high)
        one = low == high
        exact = -(xlogy(n1, low) + xlog1py(n0, -low))
        c, loss = (
            np.where(one, low, _nearer_border(f, fine)),
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
        """A table with a cell for each group, at the given scores."""
        return ScoreTable.from_counts(scores, self.n0, self.n1, self.q0, self.q1)


def link_function(cells: Cells) -> Callable[[Array], Array]:
    """The function that turns the scores in these cells into probabilities."""
    return np.asarray if cells.centre is None else sigmoid


def probability_expression(x: nw.Expr, cells: Cells) -> nw.Expr:
    """The probability of a score, as an expression of the frame."""
    return x if cells.centre is None else 1.0 / (1.0 + (x * -1.0).exp())


class Hull(NamedTuple):
    """The Brier score split along the ROC hull, and the table that ranks the scores.

    Inside some groups the order is not known: the AUC may be off by ``hidden``.
    """

    parts: FlachMatsubara
    ranked: ScoreTable
    hidden: float


class GroupFacts:
    """What measures are made of, for rows that an engine has grouped; for a table it is
    `TableFacts`.

    There is all but the ``table`` itself, all predictions one by one, and what is fitted to it.
    ``hidden_area`` says by how much the AUC of ``ranked`` may be off, since the order inside groups
    is not known.
    """

    table: None = None

    def __init__(self, g: GroupedSums, hull: Hull, fine: int, bins: Bins) -> None:
        self.hull, self.ranked, self.hidden_area = hull
        self.groups = _sums_of_bins(g, fine, bins)
        total, positive = float(g.n.sum()), float(g.n1.sum())
        self.base_rate = positive / total
        rest = 1.0 - g.c
        square = g.e + 2.0 * (g.c * g.d0 - rest * g.d1) + g.c**2 * g.n0 + rest**2 * g.n1
        self.square = float(square.sum()) / total
        self.root_of_square = math.sqrt(self.square)
        upper = g.f >= fine // 2
        self.share_correct = float(g.n0[~upper].sum() + g.n1[upper].sum()) / total
        self._sums = g

    def log_loss(self) -> float:
        return float(self._sums.loss.sum()) / float(self._sums.n.sum()) + 0.0

    def why_infinite(self) -> str:
        return TableFacts(self._sums.at(self._sums.mean)).why_infinite()


def _sums_of_bins(g: GroupedSums, fine: int, bins: Bins) -> Groups:
    """The sums of each bin, made of groups of rows."""
    if isinstance(bins, str):
        return group(g.at(g.mean), bins)
    number = np.clip(g.f, 0, fine - 1) // (fine // bins)
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(number[order]) > 0))
    columns = (g.n, g.n1, g.c * g.n + g.d0 + g.d1)
    return Groups(*(np.add.reduceat(column[order], starts) for column in columns))
