"""All measures of a lazy frame: sums where the data are, and the hull in a few more passes.

While there are few different predictions, their exact table is fetched and measured as usual.
Beyond that, rows are grouped by cell and by fine bin. Losses and bins are sums over rows and stay
exact (`lazy_sums`). The blocks of isotonic regression need the scores of a few cells, which are
fetched one by one. Only the AUC does not see the order inside the other cells.
Predictions and raw scores go side by side, in the same passes where rows can be read here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.cells import Cells, fine_cells_for
from calibrant.data.doubles import first_row
from calibrant.data.grouped_sums import Grouped, columns_of, zoomed
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.lazy_rows import EXACT, LazyRows, lazy_frame, read_lazy
from calibrant.data.passes import Steps, together
from calibrant.data.refine import narrowed, ties
from calibrant.data.score_kinds import kind_between
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import is_lazy
from calibrant.errors import InputError
from calibrant.metrics.all_measures import (
    Measured,
    Records,
    chosen_records,
    evaluation_of,
    measure_all,
    measured,
)
from calibrant.metrics.bin_sweep import Bins, bins_note
from calibrant.metrics.binned import group_starts
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.decompose import FlachMatsubara, hull_blocks
from calibrant.metrics.evaluation_results import Evaluation
from calibrant.metrics.intervals import IntervalOptions
from calibrant.metrics.lazy_sums import FINE, CellSums, Sums, link_of, predicted, refuse_outside
from calibrant.metrics.prediction_facts import GroupFacts, Hull
from calibrant.metrics.registry import MEASURES
from calibrant.metrics.weighted_cells import to_cells

#: the most cells of the first pass; later passes divide those that matter
MOST = 2**16
APART = "predictions and raw scores were grouped apart, not as pairs"


def read_frame(
    frame: Any, p: Any, label: Any, raw: Any, sample_weight: Any, pos_label: Any, classes: Any
) -> LazyRows:
    """The rows of a frame; p, label, raw and sample_weight name its columns."""
    lazy = lazy_frame(frame)
    if lazy is None:
        raise InputError(
            "label names a column, so y must be a frame (DuckDB, Polars, Spark, Ibis, pandas, "
            f"Arrow), but {type(frame).__name__} came. Pass a frame, or leave label out."
        )
    names = {"p": p, "label": label, "raw": raw, "sample_weight": sample_weight}
    for role, name in names.items():
        if not isinstance(name, str) and (name is not None or role in ("p", "label")):
            raise InputError(
                f"{role} must be the name of a column of the frame, but {type(name).__name__} "
                "came. Name a column; arrays go with an array of labels in place of y."
            )
    asked = Names(p, label, sample_weight, raw=raw)
    return read_lazy(lazy, asked, pos_label=pos_label, classes=classes)


def refuse_frames(y: Any, p: Any, cells: Any) -> None:
    """Refuse lazy frames, names of columns and ``cells`` where ``label`` is not given."""
    if isinstance(p, str) or is_lazy(y):
        raise InputError(
            "label must name the column of labels where y is a lazy frame or p names a column: "
            'evaluate(frame, "probability", label="y").'
        )
    if not isinstance(cells, str) or cells != "auto":
        raise InputError(f"cells goes with a frame and label=, but {cells!r} came without them.")


def evaluate_rows(
    rows: LazyRows,
    raw: LazyRows | None,
    bins: Bins,
    options: IntervalOptions | None,
    cells: CellsOption = "auto",
    records: Records | None = None,
) -> Evaluation:
    """The evaluation of rows whose scores are probabilities, and of raw scores if they came.

    It has the measures of the records, or the standard ones.
    """
    wanted = chosen_records(MEASURES) if records is None else records
    after = rows, _measuring(rows, _start(rows, cells), bins, wanted, probabilities=True)
    if raw is None:
        (new,) = together(after)
        return evaluation_of(new, None, bins, options)
    scored, start, percent = raw, _start(raw, cells), False
    if isinstance(start, Cells) and start.centre is not None:
        percent = kind_between(*_extent(raw)) == "percentages"
        if percent:
            scored, start = _divided(raw), Cells(start.count)
    new, old = together(after, (scored, _measuring(scored, start, bins, wanted, percent=percent)))
    pair = None
    if options is not None and new.counted and old.counted:
        pair = _pairs(rows, raw)
    return evaluation_of(new, old, bins, options, pair, apart=APART)


def _pairs(rows: LazyRows, raw: LazyRows) -> PairedCells | None:
    """Each prediction with the raw score of the same rows; None where there are too many pairs."""
    import narwhals as nw

    both = rows.rows(nw.col(raw.score).alias("z"))
    found = rows.group(both, ["z", "x"], rows.sums(), EXACT)
    if "z" not in found:
        return None
    return PairedCells.of_counts(found["x"], found["z"] + 0.0, columns_of(found))


def _start(rows: LazyRows, cells: CellsOption) -> Grouped | Cells:
    """One column by score where it has few, else the cells to begin with."""

    def count(weight: float) -> int:
        return min(fine_cells_for(weight), MOST)

    return rows.checked(lambda: rows.by_score_or_cells(cells, count))


def _extent(rows: LazyRows) -> tuple[float, float]:
    """The smallest and the largest score of rows with weight."""
    import narwhals as nw

    weight = nw.col("w0") + nw.col("w1")
    present = rows.rows().filter(weight > 0.0)
    ends = nw.col("x").min().alias("low"), nw.col("x").max().alias("high")
    low, high = first_row(rows.fetch(present.select(*ends)))
    return (0.0, 1.0) if low is None else (float(low), float(high))  # bad rows are refused later


def _divided(rows: LazyRows) -> LazyRows:
    """Percentages as probabilities."""
    import narwhals as nw

    return replace(rows, source=rows.source.with_columns(nw.col(rows.score) * 0.01))


def _measuring(
    rows: LazyRows,
    start: Grouped | Cells,
    bins: Bins,
    records: Records,
    *,
    probabilities: bool = False,
    percent: bool = False,
) -> Steps[Measured]:
    """The measures of one column; ``percent``: its scores were divided by 100.

    OutsideError if the column must hold ``probabilities`` and does not.
    """
    if isinstance(start, Grouped):
        x = start.columns["x"]
        if probabilities and (x[0] < 0.0 or x[-1] > 1.0):
            refuse_outside(rows)
        return measured(start.table(), bins, records)
    whole = 1 if isinstance(bins, str) else bins
    fine = whole * max(math.ceil(FINE / whole), 1)
    fine *= 1 + fine % 2  # even, so that ½ is a border
    search = zoomed(start)
    asked = CellSums.of(rows, next(search), fine, probabilities)
    while True:
        try:
            closer = search.send(Grouped(asked.cells, (yield asked)))
        except StopIteration as end:
            grouped = end.value
            break
        asked = CellSums.of(rows, closer, fine, probabilities)
    groups = Sums.of(grouped.cells, grouped.columns, fine)
    hull = yield from hull_of(grouped, groups)
    values, notes = measure_all(records, GroupFacts(groups, hull, fine, bins))
    notes.append(
        f"rows were grouped into {grouped.cells} ({len(groups.x):,} in use): they were counted in "
        "place of distinct predictions, and intervals are from their means"
    )
    table = ranked = groups.at(groups.mean)
    if grouped.cells.centre is not None:
        ranked = groups.at(groups.x)
    unit = 100.0 if percent else 1.0
    low, high = np.nanmin(grouped.columns["low"]), np.nanmax(grouped.columns["high"])
    ends = unit * float(low), unit * float(high)
    if kind_between(*ends) == "points":
        values = {name: value for name, value in values.items() if records[name].ranks}
        notes = [note for note in notes if not note.startswith("log loss")]
    if isinstance(bins, str) and "ece" in values:
        notes.append(bins_note(len(group_starts(table, bins))))
    return Measured(values, notes, table, ranked, False, ends)


# --- the hull -----------------------------------------------------------------------------------


class _Points(NamedTuple):
    """Groups of rows, in columns as in `Sums`; groups with an equal ``key`` are one prediction.

    ``x`` is the smallest score of a group. ``hidden``: the order inside the group is not known.
    """

    key: Array
    x: Array
    c: Array
    n0: Array
    n1: Array
    d: Array
    hidden: Flags


def hull_of(grouped: Grouped, g: Sums) -> Steps[Hull]:
    """Look into the cells that may hold a corner of the hull (`calibrant.data.refine`).

    Pieces of a cell come with Σw and Σwp only. The parts of the Brier score need Σwp² and Σwpy
    only as sums over all blocks, so the sums of whole cells are enough.
    """
    cells = _cells(grouped)
    link = link_of(cells)
    kept, scores = yield from narrowed(grouped, link, lambda x: predicted(x, cells))
    whole = kept["depth"] == 0
    starts, unit = ties(link(kept["low"]), link(kept["high"]))
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
    m0, m1, _, _ = columns_of(scores)
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
    return Hull(_split(points, within, product), ranked, float(share0 @ share1) / 2)


def _cells(grouped: Grouped) -> Cells:
    if grouped.cells is None:
        raise ValueError("the rows must be in cells")
    return grouped.cells


def _split(points: _Points, within: float, product: float) -> FlachMatsubara:
    """`flach_matsubara` of points, with Σw(p − mean)² inside all of them and Σwy(p − c)."""
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
