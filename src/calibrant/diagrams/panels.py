"""Reliability curves side by side: over steps of boosting, or before and after calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.array_types import Index
from calibrant.data.columns import column_names, plain, reorder_columns, to_column
from calibrant.data.door import check_lengths
from calibrant.data.frozen import Frozen
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import read_segments, segment_titles
from calibrant.diagrams.curve import (
    Curve,
    CurveOptions,
    Panels,
    curve_of,
    frame_of,
    panels_of,
    read_several,
    rows_by_name,
    span_of,
)
from calibrant.errors import InputError, ParameterError, refuse_foreign_names
from calibrant.metrics.tables import (
    Bins,
    LabelledMatrix,
    check_flag,
    class_table,
    read_classes,
    read_raw_classes,
    top_table,
)

#: the steps of the paper's first figure
STEPS = (1, 4, 8, 32, 128, 1024)


@refuse_foreign_names
def reliability_panels(
    y: Any,
    predictions: Mapping[str, Any],
    *,
    maps: Mapping[str, Any] | None = None,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "mass",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Panels:
    """Reliability curves and histograms of several predictions of the same rows, side by side.

    Parameters
    ----------
    y : array-like of shape (n,), or None
        Labels, any two values; None where the predictions are tables.
    predictions : dict of name to array-like of shape (n,), (n, 1) or (n, 2), or to ScoreTable
        Probabilities of the same rows, one column of the figure each, in this order.
    maps : dict of name to Map, Fitted or fitted calibrator, optional
        The map fitted to predictions of that name, to be drawn over their points.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
    sample_weight, pos_label
        As in `reliability_curve`.

    Returns
    -------
    Panels
        `panel_diagram` draws it.

    Notes
    -----
    [1]_ shows this for boosted trees: the raw predictions with the sigmoid and the isotonic
    function fitted to other rows, and the predictions after either. O(N log N) per prediction.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> import calibrant as cal
    >>> platt = cal.Platt().fit([0.2, 0.4, 0.5, 0.8], [0, 1, 0, 1])
    >>> test, labels = [0.1, 0.3, 0.6, 0.7], [0, 0, 1, 1]
    >>> predictions = {"raw": test, "Platt": platt.calibrate(test)}
    >>> panels = reliability_panels(labels, predictions, maps={"raw": platt}, band=None)
    >>> panels["raw"].fraction.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    tables = read_several(y, predictions, sample_weight, pos_label)
    return panels_of(tables, rule, maps=_checked_maps(maps, predictions))


@refuse_foreign_names
def boosting_panels(
    model: Any,
    X: Any,
    y: Any,
    *,
    steps: Sequence[int] | None = None,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "mass",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sample_weight: Any = None,
) -> Panels:
    """What boosting does to predictions, step by step: they leave 0 and 1 and crowd in the middle.

    Parameters
    ----------
    model : fitted AdaBoost
        Or anything with ``staged_raw_score(X, steps=steps)``, which gives predictions in [0, 1].
    X, y : rows that the model was not trained on, and their labels
    steps : whole numbers, optional
        After how many steps; by default 1, 4, 8, 32, 128 and 1024, or the model's last step
        where it has fewer.
    curve, bins, binning, band, bands, level, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    Panels
        `panel_diagram` draws it.

    Notes
    -----
    The first figure of [1]_. The model is gone through once, whatever the number of steps, and a
    prediction is its raw score, Σαh/Σα with votes h of 0 and 1. O(N log N) per step besides.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> from calibrant.methods.boosting import AdaBoost
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = AdaBoost(n_estimators=8, random_state=0).fit(X, y)
    >>> boosting_panels(model, X, y)
    Panels(1 step, 4 steps, 8 steps; weight 6)
    """
    if not hasattr(model, "staged_raw_score"):
        raise InputError(
            "model must be a fitted AdaBoost, with staged_raw_score, but "
            f"{type(model).__name__} came. For other models pass the predictions of each step to "
            "reliability_panels."
        )
    if steps is None:
        last = max(1, getattr(model, "n_steps_", STEPS[-1]))
        steps = sorted({*(step for step in STEPS if step < last), min(last, STEPS[-1])})
    staged = zip(steps, model.staged_raw_score(X, steps=steps), strict=True)
    predictions = {f"{step} step{'s' if step != 1 else ''}": f for step, f in staged}
    rule = CurveOptions(bins, binning, band, level, curve=curve, bands=bands)
    return panels_of(read_several(y, predictions, sample_weight, model.classes_[1]), rule)


# --- reading ------------------------------------------------------------------------------------


def _checked_maps(maps: Any, predictions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The maps by the names of predictions, which they must have."""
    if maps is None:
        return {}
    known = ", ".join(repr(name) for name in predictions)
    if not isinstance(maps, Mapping):
        raise ParameterError(
            f"maps must be a dict whose names are among {known}, but {type(maps).__name__} came."
        )
    for name in maps:
        if name not in predictions:
            raise ParameterError(f"the names of maps must be among {known}, but {name!r} came.")
    return {str(name): fitted for name, fitted in maps.items()}


# --------------------------------------------------------------------------------------------------
# Reliability curves of parts of the rows: is each region, product or year calibrated by itself?


#: the most segments that one picture can show
MOST = 24


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Frozen):
    """Reliability curves of each segment, of one or several predictions, on common cells.

    Attributes
    ----------
    names : tuple of str
        The segments, sorted.
    panels : tuple of Panels
        The curves of each segment, one per prediction.

    Examples
    --------
    >>> found = reliability_segments([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], ["n", "n", "s", "s"])
    >>> found
    Segments(n, s; predictions)
    >>> found["s"].fraction.tolist()
    [0.0, 1.0]
    """

    names: tuple[str, ...]
    panels: tuple[Panels, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Curve:
        """The curve of that segment, for the first prediction."""
        return self.overlaid[name]

    @property
    def predictions(self) -> tuple[str, ...]:
        """The names of the predictions."""
        return self.panels[0].names

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The curves of all predictions, segment by segment."""
        return tuple(curve for panels in self.panels for curve in panels.curves)

    @property
    def frame(self) -> tuple[float, float]:
        """The part of [0, 1] that holds all points, all bands and nearly all predictions."""
        frame = frame_of(self.curves)
        return frame.low, frame.high

    @property
    def overlaid(self) -> Panels:
        """The segments as curves of one panel, for the first prediction."""
        return Panels(self.names, tuple(panels.curves[0] for panels in self.panels))

    def to_dict(self) -> dict[str, Any]:
        """The panels of each segment, by name, ready for JSON."""
        pairs = zip(self.names, self.panels, strict=True)
        return {name: panels.to_dict() for name, panels in pairs}

    def __repr__(self) -> str:
        return f"Segments({', '.join(self.names)}; {', '.join(self.predictions)})"

    def __str__(self) -> str:
        pairs = zip(self.names, self.panels, strict=True)
        return "\n\n".join(f"{name}: {panels}" for name, panels in pairs)


@refuse_foreign_names
def reliability_segments(
    y: Any,
    p: Any,
    segments: Any,
    *,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "mass",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Segments:
    """Reliability curves of each segment: a map that is right on the whole may be wrong in parts.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, any two values.
    p : array-like of shape (n,), (n, 1) or (n, 2), or dict of name to such
        Predicted probabilities, or several of them by name.
    segments : array-like of shape (n,), or several columns
        The segment of each row: strings, numbers or anything else that can be told apart, with
        at most 24 different values.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
    sample_weight, pos_label
        As in `reliability_curve`.

    Returns
    -------
    Segments
        `panel_diagram` draws it, a panel for each segment.

    Notes
    -----
    The curve of a segment is that of its rows alone; a segment without weight is left out.
    O(n log n).

    Examples
    --------
    >>> found = reliability_segments([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], [2025, 2026, 2025, 2026])
    >>> found.names
    ('2025', '2026')
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    return segments_by(rule, y, p, segments, sample_weight, pos_label)


def segments_by(
    rule: CurveOptions, y: Any, p: Any, segments: Any, sample_weight: Any, pos_label: Any
) -> Segments:
    """The curves of each segment, with these options."""
    if isinstance(y, ScoreTable) or (isinstance(p, Mapping) and not p):
        came = "a ScoreTable" if isinstance(y, ScoreTable) else "no prediction"
        raise InputError(
            f"labels y and predictions p of rows must come with segments, but {came} came."
        )
    values, codes = read_segments(segments)
    if len(values) > MOST:
        raise InputError(
            f"segments must have at most {MOST} different values, but {len(values)} came. Group "
            "rare ones together, or cut numbers into ranges."
        )
    predictions = rows_by_name(y, p, sample_weight, pos_label)
    for rows in predictions.values():
        check_lengths(segments=len(codes), y=len(rows.positive))
    tables = {}
    for code, name in enumerate(segment_titles(values)):
        here = codes == code
        own = {called: ScoreTable.from_rows(r.take(here)) for called, r in predictions.items()}
        if all(own.values()):  # a segment without weight is left out
            tables[name] = own
    span = span_of([table for own in tables.values() for table in own.values()], rule.axes)
    panels = tuple(panels_of(own, rule, span=span) for own in tables.values())
    return Segments(tuple(tables), panels)


# --------------------------------------------------------------------------------------------------
# Reliability curves of several classes: of the most probable one, and of each against the rest


#: the name of the panel that shows the most probable class of each row
TOP = "top label"


@refuse_foreign_names
def class_reliability(
    y: Any,
    p: Any,
    *,
    classes: Any = None,
    show: Any = None,
    top_label: bool = True,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "mass",
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
    columns = _columns_shown(seen, show)
    if not len(columns) and not top_label:
        raise ParameterError("show must name a class where top_label is False, but none came.")
    names = [TOP] * top_label + [str(plain(seen.labels[column])) for column in columns]
    # one table at a time: many classes of many rows would not fit into memory together
    sides, linked = [seen.matrix], False
    if raw is not None:
        raw = reorder_columns(raw, column_names(p))
        before, linked = read_raw_classes(y, seen, raw, sample_weight, classes)
        sides.append(before)
    spans = [span_of(_tables_of_panels(one, columns, top_label), rule.axes) for one in sides]
    span = min(low for low, _ in spans), max(high for _, high in spans)
    after, *others = (
        tuple(curve_of(table, rule, span) for table in _tables_of_panels(one, columns, top_label))
        for one in sides
    )
    reading = "through softmax" if linked else ""
    return Panels(tuple(names), after, (), others[0] if others else (), reading)


def _columns_shown(seen: LabelledMatrix, show: Any) -> Index:
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


def _tables_of_panels(matrix: ScoreMatrix, columns: Index, top_label: bool) -> Iterator[ScoreTable]:
    """The table of the top label, if it is shown, and that of each class, one at a time."""
    if top_label:
        yield top_table(matrix)
    for column in columns:
        yield class_table(matrix, int(column))
