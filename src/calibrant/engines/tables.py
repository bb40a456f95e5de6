"""Frames and files of any size → score tables, grouped where the data are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from calibrant.data.columns import segment_columns_of
from calibrant.data.door import check_word
from calibrant.data.isotonic_blocks import SMOOTHING, isotonic_blocks, isotonic_cuts
from calibrant.data.lazy import (
    CellsOption,
    Coding,
    Columns,
    LazyRows,
    Names,
    check_label_apart,
    grouped_table,
    grouped_tables,
    lazy_frame,
    read_lazy,
    row_count,
)
from calibrant.data.refine import refined_table
from calibrant.data.score_table import WEIGHTS, Cells, ScoreTable
from calibrant.engines.open_engine import check_rows, open_engine
from calibrant.errors import InputError
from calibrant.fitting.fitted import Fitted
from calibrant.rules.piecewise import Piecewise
from calibrant.version import __version__

T = TypeVar("T")


def score_table(
    frame: Any,
    *,
    score: str,
    label: str,
    weight: str | None = None,
    cells: CellsOption = "auto",
    pos_label: Any = None,
) -> ScoreTable:
    """The score table of a lazy frame or of files, by a GROUP BY that runs where the data are.

    Parameters
    ----------
    frame : lazy frame, path or glob, or a list of paths
        A DuckDB relation, Polars LazyFrame, PySpark or Dask DataFrame, or Ibis table (also pandas,
        Polars and Arrow tables in memory). Files (CSV, TSV, JSON lines, also .gz, and Parquet) are
        read by DuckDB.
    score, label, weight : names of columns
        Any two labels; weights ≥ 0, and a row of weight zero is as if absent.
    cells : "auto", "exact" or even int, default="auto"
        "exact" keeps every distinct score. A number puts the scores into at most that many cells
        (and one), each at the weighted mean of its scores. "auto" is exact up to a million distinct
        scores; beyond, it takes 16,384 cells for ten million rows, and more like √rows.
    pos_label : label, default: the larger class
        What a high score means.

    Returns
    -------
    ScoreTable
        For ``fit_table`` of any calibrator of one score, and for `evaluate`. ``made`` says what was
        done to the scores (empty: nothing), ``error`` how far any was moved.

    Notes
    -----
    One pass over the rows. Before it, "auto" looks at the first 1.25 million rows, and cells need a
    pass over the scores (margins: two). Memory in this process: O(distinct scores or cells). Cells
    of probabilities are nearly even in the logit, and the same in every engine. Cells of margins
    are finest at the mean. If a few far scores crowd all others into few cells, another pass makes
    the cells finest where most scores are.
    Missing and infinite scores, missing labels and weights, and negative weights are errors that
    say how many there are.

    Examples
    --------
    >>> import polars as pl
    >>> import calibrant as cal
    >>> frame = pl.LazyFrame({"p": [0.2, 0.7, 0.2], "bought": ["no", "yes", "yes"]})
    >>> cal.score_table(frame, score="p", label="bought")
    ScoreTable(2 scores from 0.2 to 0.7, weight 3: 2 positive, 1 negative)
    """
    names = Names(score, label, weight)
    return grouped_table(*_grouped(frame, names, cells, pos_label))


def segment_tables(
    frame: Any,
    *,
    score: str,
    label: str,
    segment: str | Sequence[str],
    weight: str | None = None,
    cells: CellsOption = "auto",
    pos_label: Any = None,
) -> dict[Any, ScoreTable]:
    """The score table of each segment, by one GROUP BY (segment, score or cell).

    Parameters
    ----------
    frame, score, label, weight, cells, pos_label : see `score_table`
        "auto" is exact up to a million pairs of segment and score; beyond, it takes 1,024 to 16,384
        cells, fewer with more segments.
    segment : name of a column of words or whole numbers, or a list of names
        Several from coarse to fine: the segments are then tuples.

    Returns
    -------
    dict of segment to ScoreTable
        For ``SegmentedCalibrator.fit_tables``.

    Notes
    -----
    As for `score_table`; O(segments · cells) groups at most, and no more than there are rows.

    Examples
    --------
    >>> import polars as pl
    >>> import calibrant as cal
    >>> frame = pl.LazyFrame({"p": [0.2, 0.7, 0.2], "y": [0, 1, 1], "land": ["fr", "de", "fr"]})
    >>> tables = cal.segment_tables(frame, score="p", label="y", segment="land")
    >>> {name: t.total for name, t in tables.items()}
    {'de': 1.0, 'fr': 2.0}
    """
    listed = segment_columns_of(segment)
    names = Names(score, label, weight, listed if len(listed) > 1 else listed[0])
    return grouped_tables(*_grouped(frame, names, cells, pos_label))


def _grouped(
    frame: Any, names: Names, cells: CellsOption, pos_label: Any
) -> tuple[Cells | None, Columns]:
    """The rows by score or by cell, each of them counted."""
    return ask(
        frame,
        names,
        lambda rows: rows.grouped(cells),
        pos_label=pos_label,
        count=lambda grouped: row_count(grouped[1]),
    )[0]


# --- frames and files ---------------------------------------------------------------------------


def ask(
    frame: Any,
    names: Names,
    question: Callable[[LazyRows], T],
    *,
    pos_label: Any = None,
    count: Callable[[T], int] | None = None,
) -> tuple[T, Coding, dict[str, Any]]:
    """The answer of all rows of a frame, or of files; how the labels were read for it, and facts
    worth remembering.

    ``count`` says of how many rows an answer is: files must hold as many.
    """
    check_label_apart(names)
    files = list(frame) if isinstance(frame, (list, tuple)) else [frame]
    if files and all(isinstance(file, (str, os.PathLike)) for file in files):
        with open_engine() as engine:
            rows = engine.rows(files, names)
            answer, coding = rows.ask(question, pos_label)
        if count is not None:
            check_rows(count(answer), rows.expected, rows.file_names[0])
        return answer, coding, rows.facts(None)
    lazy = lazy_frame(frame)
    if lazy is None:
        raise InputError(
            "frame must be a lazy frame (DuckDB, Polars, Spark, Dask, Ibis), a frame in memory, or "
            f"the path of a file, but {type(frame).__name__} came."
        )
    found = read_lazy(lazy, names, pos_label=pos_label)
    return question(found), found.coding, names.facts()


# --- Exact isotonic regression of data that do not fit into memory --------------------------------


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
        return table, rows.mean_row_weight() if matters else 1.0

    (table, unit), coding, facts = ask(frame, names, question, pos_label=pos_label)
    starts, values = isotonic_blocks(table, pseudo * unit)
    if len(starts) == 1:
        fitted_map = Piecewise.constant(float(values[0]))
    else:
        fitted_map = Piecewise.step(isotonic_cuts(table, starts[1:] - 1), values)
    provenance = {
        "calibrant": __version__,
        "weight": table.total,
        "positive_weight": table.total_positive,
        **facts,
    }
    asked = None if pos_label is None else coding.pos_label
    params = {
        "interpolation": "step",
        "smoothing": smoothing,
        "cut": "mid",
        "direction": "rising",
        "y_min": None,
        "y_max": None,
        "weights": weights,
        "pos_label": asked,
        "classes": None,
    }
    return Fitted(fitted_map, coding.classes, coding.pos_label, "Isotonic", params, provenance)
