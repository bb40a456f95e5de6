"""Exact isotonic regression of data that do not fit into memory."""

from __future__ import annotations

from typing import Any

from calibrant.data.isotonic_blocks import SMOOTHING, isotonic_blocks, isotonic_cuts
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.lazy_rows import LazyRows
from calibrant.data.refine import refined_table
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_word
from calibrant.data.weighing import WEIGHTS
from calibrant.engines.score_tables import ask
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Piecewise
from calibrant.version import __version__


def fit_isotonic(
    frame: Any,
    *,
    score: str,
    label: str,
    weight: str | None = None,
    smoothing: str = "none",
    weights: str = "importance",
    cells: CellsOption = "auto",
    pos_label: Any = None,
) -> Fitted:
    """The isotonic map of a lazy frame or of files, exact, in a few passes where the data are.

    Parameters
    ----------
    frame : lazy frame or file
        As for `score_table`.
    score, label, weight : names of columns
    smoothing : {"none", "laplace", "jeffreys"}, default="none"
        Adds 1 or ½ of each class to every block, so that 0 and 1 are never returned.
    weights : {"importance", "counts"}, default="importance"
        What a weight says beside ``smoothing``: see `Calibrator`.
    cells : "auto", "exact" or int
        Cells of the first pass. Their number changes the work of the other passes, never the
        result.
    pos_label : label, default: the larger class

    Returns
    -------
    Fitted
        As from ``Isotonic(smoothing=...)`` on the rows; `save` and
        `add_probabilities` take it.

    Notes
    -----
    First the rows are grouped by cell. Then it is known which cells may hold a corner of the fit:
    those where, with all negatives of the cell put first, the cumulative diagram would go below the
    convex minorant of the cells' borders. These cells are divided while they hold more than a
    million rows in all, and then their scores are fetched one by one: two passes for a million
    rows, four for a hundred million. O(cells) memory in this process; exact up to the order of
    additions (1e-12).

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(10_000)
    >>> frame = pl.LazyFrame({"s": s, "y": rng.random(10_000) < s**2})
    >>> far = cal.fit_isotonic(frame, score="s", label="y", cells=256)
    >>> near = cal.Isotonic().fit(s, frame.collect()["y"])
    >>> bool(np.abs(far.calibrate(s) - near.calibrate(s)).max() < 1e-12)
    True
    """
    check_word("smoothing", smoothing, SMOOTHING)
    check_word("weights", weights, WEIGHTS)
    names = Names(score, label, weight)
    pseudo = SMOOTHING[smoothing]
    matters = pseudo > 0.0 and weights == "importance"  # else only ratios of weights do

    def question(rows: LazyRows) -> tuple[ScoreTable, float]:
        table = refined_table(rows, cells)
        return table, rows.weight_of_a_row() if matters else 1.0

    told = ask(frame, names, question, pos_label=pos_label)
    (table, unit), coding = told.answer, told.coding
    starts, values = isotonic_blocks(table, pseudo * unit)
    if len(starts) == 1:
        fitted_map = Piecewise.constant(float(values[0]))
    else:
        fitted_map = Piecewise.step(isotonic_cuts(table, starts[1:] - 1), values)
    provenance = {
        "calibrant": __version__,
        "weight": table.total,
        "positive_weight": table.total_positive,
        **told.facts,
    }
    asked = None if pos_label is None else coding.pos_label
    params = {
        "interpolation": "step",
        "smoothing": smoothing,
        "cut": "mid",
        "increasing": True,
        "y_min": None,
        "y_max": None,
        "weights": weights,
        "pos_label": asked,
        "classes": None,
    }
    return Fitted(fitted_map, coding.classes, coding.pos_label, "Isotonic", params, provenance)
