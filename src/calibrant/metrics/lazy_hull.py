"""The Brier score split on the ROC hull of rows that were grouped elsewhere, and their order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.arrays import Array, Flags
from calibrant.data.cells import Cells
from calibrant.data.grouped_sums import Grouped, columns_of
from calibrant.data.passes import Steps
from calibrant.data.refine import narrowed, ties
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.cell_runs import to_cells
from calibrant.metrics.hull import FlachMatsubara, hull_blocks
from calibrant.metrics.lazy_sums import Sums, link_of, predicted


class Hull(NamedTuple):
    """The Brier score split on the ROC hull (``parts``), and the table of the scores in order.

    Inside some groups the order is not known: the AUC may be off by ``hidden``.
    """

    parts: FlachMatsubara
    ranked: ScoreTable
    hidden: float


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

    within = float(_variation(g.e[stays], first.d, g.n[stays]).sum())
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


def _variation(e: Array, d: Array, n: Array) -> Array:
    """Σw(p − mean)² of sums about another point."""
    return np.asarray(np.maximum(e - d * (d / n), 0.0))  # rounding


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
