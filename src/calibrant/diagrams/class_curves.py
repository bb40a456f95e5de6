"""Reliability curves of several classes: of the most probable one, and of each against the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant.array_types import Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain, to_column
from calibrant.diagrams.axes_view import span_of
from calibrant.diagrams.bins import window
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.curves import curve_of
from calibrant.diagrams.panels import Panels
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.arguments import check_flag
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.probability_matrix import (
    LabelledMatrix,
    class_table,
    read_classes,
    read_raw_classes,
    top_table,
)
from calibrant.other_words import in_our_words

#: the name of the panel that shows the most probable class of each row
TOP = "top label"


@in_our_words
def class_reliability(
    y: Any,
    p: Any,
    *,
    classes: Any = None,
    show: Any = None,
    top_label: bool = True,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "width",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    raw: Any = None,
) -> Panels:
    """Reliability curves of a multiclass model, side by side: the top label, then every class.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any kind.
    p : array-like of shape (n, k)
        Predicted probabilities, a distribution in each row (sums within 0.001 of 1). Column j is
        the j-th class in sorted order.
    classes : array-like of k labels, optional
        The class of each column, where y lacks some or the columns have another order.
    show : array-like of labels, optional
        Only these classes, in this order; by default all. ``[]`` for none.
    top_label : bool, default=True
        Whether the first panel shows the confidence, the probability of the most probable class,
        against how often that class came.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state, sample_weight
        As in `reliability_curve`.
    raw : array-like of shape (n, k), optional
        The scores of the same rows before calibration; logits go through the softmax.

    Returns
    -------
    Panels
        `panel_diagram` draws it; `class_diagram` does both. The panel of a class has its label as
        name, the first one is called "top label".

    Notes
    -----
    A class's curve is that of its column against "this class came" [1]_; all histograms share their
    cells. The top label's can lie on the diagonal while classes are off it in opposite directions:
    look at both. O(n log n) per panel, a column at a time, plus O(nk) for the top label.

    References
    ----------
    .. [1] M. Kull, M. Perello Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
       calibration", 2019, arXiv:1910.12656.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    >>> panels = class_reliability(["ape", "bee", "cat", "bee"], p, band=None)
    >>> panels
    Panels(top label, ape, bee, cat; weight 4)
    >>> panels["top label"].fraction.tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    return classes_by(rule, y, p, classes, show, top_label, sample_weight, raw)


def classes_by(
    rule: CurveOptions,
    y: Any,
    p: Any,
    classes: Any,
    show: Any,
    top_label: bool,
    sample_weight: Any,
    raw: Any,
) -> Panels:
    """The curves of the top label and of each class, with these options."""
    top_label = check_flag("top_label", top_label)
    seen = read_classes(y, p, sample_weight, classes)
    columns = _shown(seen, show)
    if not len(columns) and not top_label:
        raise ParameterError("show must name a class where top_label is False, but none came.")
    names = [TOP] * top_label + [str(plain(seen.labels[column])) for column in columns]
    # one table at a time: many classes of many rows would not fit into memory together
    sides, linked = [seen.matrix], False
    if raw is not None:
        before, linked = read_raw_classes(y, seen, raw, sample_weight, classes)
        sides.append(before)
    spans = [_common_span(one, columns, top_label, rule) for one in sides]
    span = min(low for low, _ in spans), max(high for _, high in spans)
    after, *others = (
        tuple(curve_of(table, rule, span) for table in _tables(one, columns, top_label))
        for one in sides
    )
    reading = "through softmax" if linked else ""
    return Panels(tuple(names), after, (), others[0] if others else (), reading)


def _shown(seen: LabelledMatrix, show: Any) -> Index:
    """The columns of the classes to be shown."""
    known = [plain(label) for label in seen.labels]
    if show is None:
        return np.arange(len(known))
    wanted = [plain(label) for label in to_column(show, "show")]
    for label in wanted:
        if label not in known:
            listed = ", ".join(map(repr, known[:20]))
            raise InputError(f"show must hold classes among {listed}, but {label!r} came.")
    return np.array([known.index(label) for label in wanted], dtype=np.intp)


def _common_span(
    matrix: ScoreMatrix, columns: Index, top_label: bool, rule: CurveOptions
) -> tuple[float, float]:
    """The part of the axis that holds the predictions shown."""
    if rule.axes == "logit":
        return span_of(_tables(matrix, columns, top_label), rule.axes)
    scores = matrix.scores
    ends = [(scores[:, column].min(), scores[:, column].max()) for column in columns]
    if top_label:
        confidence = top_table(matrix).scores
        ends.append((confidence[0], confidence[-1]))
    return window(float(min(low for low, _ in ends)), float(max(high for _, high in ends)))


def _tables(matrix: ScoreMatrix, columns: Index, top_label: bool) -> Iterator[ScoreTable]:
    if top_label:
        yield top_table(matrix)
    for column in columns:
        yield class_table(matrix, int(column))
