"""Reliability diagrams, drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant.array_types import Array
from calibrant.data.columns import plain
from calibrant.data.door import read_class_pair
from calibrant.diagrams.curve import (
    ONLY,
    Curve,
    CurveOptions,
    MapCurve,
    Panels,
    check_choice,
    compare_curves,
    frame_of,
    panels_of,
    read_several,
    reliability_curve,
    with_map,
)
from calibrant.diagrams.draw.figures import (
    BOTTOM,
    DIGITS,
    EDGE,
    IDEAL,
    LARGE_PANEL,
    LEFT,
    NO_IDEAL,
    ROW,
    SMALL,
    SMALL_PANEL,
    TOP,
    UP,
    WIDTH,
    CurveDrawing,
    CurveStyle,
    PanelCurves,
    axes_at,
    band_key,
    curve_styles,
    label_axes,
    legend_below,
    legend_inside,
    legend_room,
    refuse_other_axes,
    render,
    set_title,
    titled_figure,
    x_words,
)
from calibrant.diagrams.draw.others import draw_map
from calibrant.diagrams.panels import Segments, classes_by, segments_by
from calibrant.errors import InputError, ParameterError, import_extra, refuse_foreign_names
from calibrant.metrics.tables import Bins, check_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


#: names of more letters do not fit beside each other
WIDEST = 18
#: the parts of matplotlib that know the keywords of lines
_PARTS = ("cbook", "lines")


@refuse_foreign_names
def reliability_diagram(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    segments: Any = None,
    layout: str = "panels",
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
    fitted_map: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    ax: Any = None,
    title: str | None = None,
    names: tuple[str, str] | None = None,
) -> Figure:
    """Predicted probabilities against what happened, with a band.

    A curve below the diagonal: the model promises more than happens; above: less. The histogram
    below shows how often each prediction is made.

    Parameters
    ----------
    y, p, curve, bins, binning, band, bands, level, sigma, replicates, random_state
    sample_weight, pos_label
        As in `reliability_curve`. ``p`` may also be a dict of names to predictions of the same
        rows, and ``y`` a dict of names to tables: a curve for each.
    raw : array-like of the same rows, or ScoreTable, optional
        The scores before calibration, drawn beside; margins (any outside [0, 1]) go through σ.
    segments : array-like of shape (n,), or several columns, optional
        The segment of each row: a curve for each of them, or for each combination.
    layout : {"panels", "overlay"}, default="panels"
        Whether segments get a panel each, or are drawn over one another.
    axes : {"probability", "logit"}, default="probability"
        ``"logit"`` gives rare events room: both axes and the histogram show log-odds. Points at 0
        and 1 are drawn at the edge.
    fitted_map : Map, Fitted, or anything with ``map_``, optional
        The map that turned ``raw`` into ``p``, drawn as a line over the predictions before. A map
        of margins has no place on that axis and gets a panel of its own.
    ax : matplotlib Axes, optional
        Draw the reliability panel into these axes, without the histogram. Curves that are there
        already stay, and the new one styles different. For panels of segments a list of axes, one
        for each.
    title : str, optional
    names : two str, optional
        What the legend calls the curve of ``p`` and that of ``raw``; by default "calibrated" and
        "before", or "predictions" where there is no ``raw``.

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it. With ``ax``, the figure of those axes.

    Notes
    -----
    Where all points and bands, and 99.5 % of the predictions, lie in one half of [0, 1], only
    that corner is shown. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] T. Dimitriadis, T. Gneiting, A. Jordan, "Stable reliability diagrams for probabilistic
       classifiers", 2021, doi:10.1073/pnas.2016191118.

    Examples
    --------
    >>> figure = reliability_diagram([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    >>> [axes.get_label() for axes in figure.axes]
    ['reliability', 'histogram']
    """
    check_choice("layout", layout, ("panels", "overlay"))
    apart = segments is not None and layout == "panels"
    if not apart:
        refuse_other_axes(ax)
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    if segments is not None:
        _refuse_beside("segments", raw=raw, names=names, fitted_map=fitted_map)
        found = segments_by(rule, y, p, segments, sample_weight, pos_label)
        if apart:
            return panel_diagram(found, ax=ax, title=title)
        shown = found.overlaid
    elif isinstance(p, Mapping) or isinstance(y, Mapping):
        _refuse_beside("several predictions", raw=raw, names=names)
        predictions, labels = (y, None) if p is None else (p, y)
        tables = read_several(labels, predictions, sample_weight, pos_label)
        shown = panels_of(tables, rule)
    else:
        both = compare_curves(
            y,
            p,
            raw=raw,
            fitted_map=fitted_map,
            rule=rule,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        return comparison_diagram(both, names, ax=ax, title=title)
    return _one_panel(with_map(shown, fitted_map), curve_styles(shown.names), ax, title)


def comparison_diagram(
    both: Panels,
    names: tuple[str, str] | None,
    *,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Curves after and before calibration, drawn as `reliability_diagram` says."""
    if names is not None and (isinstance(names, str) or len(names) != 2):
        raise ParameterError(f"names must be two strings, but {names!r} came.")
    used = 0 if ax is None else len(_diagonals(ax))
    return _one_panel(both, _styles_of(both, names, used), ax, title)


def _styles_of(
    panels: Panels, names: tuple[str, str] | None = None, used: int = 0
) -> tuple[CurveStyle, ...]:
    """The styles of a prediction and of the scores before calibration."""
    if names is None:
        names = ("calibrated" if panels.before else "predictions", "before")
    before = f"{names[1]}, {panels.reading}" if panels.reading else names[1]
    return curve_styles((names[0], before), used)[: 2 if panels.before else 1]


def _refuse_beside(what: str, **given: Any) -> None:
    """Refuse options that only a single prediction has."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"{name} must not be given beside {what}. Pass a dict of names to predictions."
            )


# --- what is drawn ------------------------------------------------------------------------------


def _one_panel(
    shown: Panels,
    styles: tuple[CurveStyle, ...],
    ax: Any,
    title: str | None,
    *,
    diagonal: bool = True,
) -> Figure:
    """Curves over one another, and the map over them or in a panel of its own."""
    curves = (*shown.curves, *shown.before)
    panel = PanelCurves(None, curves, shown.lines[0])
    frame = frame_of(curves)
    drawing = CurveDrawing((panel,), styles, frame, LARGE_PANEL, diagonal)
    if ax is None:
        return _large_figure(drawing, shown.beside, title)
    if shown.beside is not None:
        raise ParameterError(
            "fitted_map must be a map of probabilities where ax is given, but this one reads "
            "margins and needs a panel of its own. Draw it with map_diagram(..., ax=)."
        )
    there = ax.get_xlim() if _diagonals(ax) else ()
    drawing.draw(ax, panel)
    band_key(ax, drawing.first)
    ax.set_aspect("equal", adjustable="box")
    ends = sorted((*there, *ax.get_xlim()))
    ax.set_xlim(ends[0], ends[-1])
    ax.set_ylim(ends[0], ends[-1])
    label_axes(ax, x_words(drawing.first, frame), UP)
    legend_inside(ax)
    set_title(ax, title)
    return ax.figure  # type: ignore[no-any-return]


def _diagonals(ax: Axes) -> list[Any]:
    """One line for each reliability diagram that the axes hold already."""
    return [line for line in ax.lines if line.get_label() in (IDEAL, NO_IDEAL)]


def _large_figure(drawing: CurveDrawing, beside: MapCurve | None, title: str | None) -> Figure:
    """Reliability above, histogram and legend below, and a map of margins beside them."""
    frame, size = drawing.frame, drawing.size
    wide = max(len(style.name) for style in drawing.styles) > WIDEST
    below, columns = legend_room(drawing.entries, wide)
    digits = DIGITS if frame.has_long_ticks(0.005) else 0.0
    left, side = LEFT + digits, size.side - 1.25 * digits
    width = WIDTH if beside is None else 2 * WIDTH
    figure, title = titled_figure(title, width, side, size.gap, size.histogram, below)
    panel, under = drawing.add(figure, drawing.panels[0], left, below, side)
    band_key(panel, drawing.first)
    panel.set_aspect("equal", adjustable="box")
    label_axes(panel, "", UP)
    label_axes(under, x_words(drawing.first, frame), "share, %")
    for axes in (panel, under):  # one below the other, whatever the numbers beside them
        axes.yaxis.set_label_coords((EDGE - left) / side, 0.5)
    middle = 0.5 if beside is None else 0.25
    legend_below(figure, panel.get_legend_handles_labels()[0], columns, middle)
    if beside is not None:
        place = (WIDTH + LEFT, below + size.histogram + size.gap, side, side)
        draw_map(axes_at(figure, place, "map"), beside)
    set_title(panel, title)
    return figure


# --- A reliability diagram of a fitted model, made as scikit-learn's displays are -----------------


class ReliabilityDisplay:
    """A reliability diagram with its axes and its numbers, called as scikit-learn's displays are.

    Make one with `from_estimator` or `from_predictions`, as with scikit-learn's
    ``CalibrationDisplay``. A notebook shows it. `reliability_diagram` has more options.

    Parameters
    ----------
    curve : Curve
        From `reliability_curve`; `plot` draws it.
    estimator_name : str, optional
        What the legend calls it; default: "predictions".
    pos_label : label, optional
        The class whose probability is shown.

    Attributes
    ----------
    curve_ : Curve
        The numbers: ``curve_.mean_p`` and ``curve_.fraction`` of each bin, and the band.
    prob_pred, prob_true : arrays of shape (m,)
        The same two, as scikit-learn calls them.
    estimator_name, pos_label
        As they came.
    line_ : matplotlib Line2D
        The curve, from here on after `plot`, which the class methods call.
    ax_ : matplotlib Axes
        The panel with the curve.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = ReliabilityDisplay.from_predictions(y, p, name="forest", bins=2, color="red")
    >>> display.prob_true.round(2).tolist(), display.line_.get_color()
    ([0.33, 0.67], 'red')
    >>> again = display.plot(name="the same in another figure", linewidth=2)
    """

    curve_: Curve
    estimator_name: str | None
    pos_label: Any
    line_: Line2D
    ax_: Axes
    figure_: Figure

    def __init__(
        self, curve: Curve, *, estimator_name: str | None = None, pos_label: Any = None
    ) -> None:
        self.curve_, self.estimator_name, self.pos_label = curve, estimator_name, pos_label

    @property
    def prob_true(self) -> Array:
        """The fraction of positives of each bin."""
        return self.curve_.fraction

    @property
    def prob_pred(self) -> Array:
        """The mean prediction of each bin."""
        return self.curve_.mean_p

    def plot(
        self,
        *,
        ax: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        title: str | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the curve, into these axes or into a figure of its own with the histogram below.

        Parameters
        ----------
        ax, title
            As in `reliability_diagram`.
        name : str, default: ``estimator_name``
        ref_line : bool, default=True
            Whether the diagonal is drawn.
        **kwargs
            Keywords of the line for matplotlib's ``plot``, such as ``color`` or ``lw``. The band
            and the histogram take its colour.

        Returns
        -------
        ReliabilityDisplay
            Itself, with ``line_``, ``ax_`` and ``figure_``.
        """
        refuse_other_axes(ax)
        cbook, lines = (import_extra(f"matplotlib.{part}", extra="cli") for part in _PARTS)
        line = cbook.normalize_kwargs(kwargs, lines.Line2D)
        called = line.pop("label", name or self.estimator_name or ONLY)
        panels = Panels((ONLY,), (self.curve_,))
        (style,) = _styles_of(panels, (called, ""), 0 if ax is None else len(_diagonals(ax)))
        style = replace(style, color=line.pop("color", style.color), line=line)
        self.figure_ = _one_panel(panels, (style,), ax, title, diagonal=ref_line)
        self.ax_ = self.figure_.axes[0] if ax is None else ax
        self.line_ = next(
            line for line in reversed(self.ax_.lines) if line.get_label() == style.name
        )
        return self

    @classmethod
    @refuse_foreign_names
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        bins: Bins = 10,
        binning: str = "mass",
        curve: str = "binned",
        band: str | None = "auto",
        bands: str = "auto",
        axes: str = "probability",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        ax: Any = None,
        title: str | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """The diagram of a fitted classifier's probabilities for the rows X.

        Parameters
        ----------
        estimator : fitted classifier of two classes with ``predict_proba``
        X : rows that it was not fitted on
        y : array-like of shape (n,)
            Their labels.
        pos_label : label, default: the larger class
            The class whose probability is shown.
        name : str, default: the name of the estimator's class
        bins, binning, curve, band, bands, axes, sample_weight
            As in `reliability_curve`.
        ref_line, ax, title, **kwargs
            As in `plot`.
        """
        from calibrant.fitting.model_scores import model_classes, model_scores

        if not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                f"estimator must have predict_proba, but {type(estimator).__name__} has not. "
                "Calibrate its scores first, such as with CalibratedClassifier."
            )
        classes, _ = model_classes(y, estimator)
        if len(classes) != 2:
            raise InputError(
                f"estimator must know two classes, but {len(classes)} came. Use "
                "calibrant.diagrams.class_diagram(y, estimator.predict_proba(X))."
            )
        known, label = read_class_pair([plain(c) for c in classes], pos_label)
        positive = int(known[1] == label)
        return cls.from_predictions(
            y,
            model_scores(estimator, X, known, positive, "predict_proba"),
            bins=bins,
            binning=binning,
            curve=curve,
            band=band,
            bands=bands,
            axes=axes,
            sample_weight=sample_weight,
            pos_label=label,
            name=type(estimator).__name__ if name is None else name,
            ref_line=ref_line,
            ax=ax,
            title=title,
            **kwargs,
        )

    @classmethod
    @refuse_foreign_names
    def from_predictions(
        cls,
        y: Any,
        p: Any,
        *,
        bins: Bins = 10,
        binning: str = "mass",
        curve: str = "binned",
        band: str | None = "auto",
        bands: str = "auto",
        axes: str = "probability",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        ax: Any = None,
        title: str | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """The diagram of probabilities that exist already.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels: any two values.
        p : array-like of shape (n,)
            The probability of ``pos_label`` for each row.
        name : str, default: "predictions"
        bins, binning, curve, band, bands, axes, sample_weight, pos_label
            As in `reliability_curve`.
        ref_line, ax, title, **kwargs
            As in `plot`.
        """
        refuse_other_axes(ax)
        made = reliability_curve(
            y,
            p,
            curve=curve,
            bins=bins,
            binning=binning,
            band=band,
            bands=bands,
            axes=axes,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        display = cls(made, estimator_name=name, pos_label=pos_label)
        return display.plot(ax=ax, ref_line=ref_line, title=title, **kwargs)

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows; figures of pyplot are shown by pyplot itself."""
        return render(self.figure_) if self.figure_.canvas.manager is None else None


# --------------------------------------------------------------------------------------------------
# Reliability panels, drawn: a column for each prediction, segment or class, with its histogram


#: inches: the gap beside a panel, and room for its name
BESIDE, NAME = 0.11, 0.14
#: letters of a title to the inch
TO_THE_INCH = 11.5
#: columns beside each other; more are broken into rows of equal length
MOST = 6


def panel_diagram(
    panels: Panels | Segments,
    *,
    across: int | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Reliability panels side by side, the histogram of each prediction below its curve.

    Parameters
    ----------
    panels : Panels or Segments
        From `reliability_panels`, `boosting_panels`, `class_reliability` or
        `reliability_segments`.
    across : int, optional
        How many panels stand beside each other; by default up to six. Two fit a column of a
        printed page.
    ax : list of matplotlib Axes, optional
        Draw the reliability panels into these axes, one for each, without histograms.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it. With ``ax``, the figure of those axes.

    Notes
    -----
    All columns have the same axes, so that they can be compared; above six they are broken into
    rows. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> from calibrant.diagrams.panels import reliability_panels
    >>> panels = reliability_panels([0, 1, 1], {"old": [0.2, 0.6, 0.7], "new": [0.1, 0.8, 0.9]})
    >>> [axes.get_label() for axes in panel_diagram(panels).axes]
    ['reliability old', 'histogram old', 'reliability new', 'histogram new']
    """
    if not isinstance(panels, (Panels, Segments)):
        raise InputError(
            f"Panels must come, but {type(panels).__name__} came. Make them with "
            "reliability_panels."
        )
    if across is not None:
        check_whole("across", across, 1)
    drawing = _drawing_of(panels)
    if ax is not None:
        return _draw_panels_into(ax, drawing, title)
    count = len(drawing.panels)
    if across is None:  # rows of about equal length
        across = -(-count // -(-count // MOST))
    return _figure_of_panels(drawing, min(across, count), title)


@refuse_foreign_names
def class_diagram(
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
    across: int | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Reliability diagrams of a multiclass model: the top label first, then every class.

    Parameters
    ----------
    y, p, classes, show, top_label, sample_weight, raw
        As in `class_reliability`, which computes what is drawn.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
        As in `reliability_curve`.
    across, ax, title
        As in `panel_diagram`.

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it. With ``ax``, the figure of those axes.

    Notes
    -----
    All panels have the same axes; above six they are broken into rows, so for many classes name
    some with ``show=``. Needs matplotlib: ``pip install 'calibrant[cli]'``. O(n log n) per panel.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    >>> figure = class_diagram(["ape", "bee", "cat", "bee"], p, show=["bee"])
    >>> [axes.get_label() for axes in figure.axes[::2]]
    ['reliability top label', 'reliability bee']
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    panels = classes_by(rule, y, p, classes, show, top_label, sample_weight, raw)
    return panel_diagram(panels, across=across, ax=ax, title=title)


# --- what is drawn ------------------------------------------------------------------------------


def _drawing_of(panels: Panels | Segments) -> CurveDrawing:
    """What is drawn of panels, and how: a column for each prediction, class or segment."""
    if isinstance(panels, Segments):
        styles, curves = curve_styles(panels.predictions), panels.curves
        pairs = zip(panels.names, panels.panels, strict=True)
        columns = [PanelCurves(name, inner.curves) for name, inner in pairs]
    else:
        styles = _styles_of(panels)
        curves = (*panels.curves, *panels.before)
        sides = [panels.curves, panels.before] if panels.before else [panels.curves]
        triples = zip(panels.names, zip(*sides, strict=True), panels.lines, strict=True)
        columns = [PanelCurves(name, own, line) for name, own, line in triples]
    return CurveDrawing(tuple(columns), styles, frame_of(curves), SMALL_PANEL)


# --- figures ------------------------------------------------------------------------------------


def _draw_panels_into(ax: Any, drawing: CurveDrawing, title: str | None) -> Figure:
    """Panels in axes that the caller made, one for each, in a list or an array of any shape."""
    axes = list(getattr(ax, "flat", ax if isinstance(ax, (list, tuple)) else [ax]))
    for each in axes:
        refuse_other_axes(each)
    count = len(drawing.panels)
    if len(axes) != count or None in axes:
        raise ParameterError(
            f"ax must be a list of {count} axes, one for each panel, but {len(axes)} came."
        )
    for panel, own in zip(drawing.panels, axes, strict=True):
        drawing.draw(own, panel)
        own.set_title(str(panel.name).replace("$", r"\$"), fontsize=SMALL, pad=3)  # no formula
        label_axes(own, x_words(drawing.first, drawing.frame, short=True), UP)
    band_key(axes[0], drawing.first)
    legend_inside(axes[0])
    figure = axes[0].figure
    if title is not None:
        figure.suptitle(title, fontsize=SMALL + 1)
    return figure  # type: ignore[no-any-return]


def _figure_of_panels(drawing: CurveDrawing, across: int, title: str | None) -> Figure:
    """Panels in rows; words and numbers stand beside the first of each: all have the same axes."""
    panels, frame, size = drawing.panels, drawing.frame, drawing.size
    rows = -(-len(panels) // across)
    names = [textwrap.fill(str(panel.name), 22).replace("$", r"\$") for panel in panels]
    above = NAME * (1 + max(name.count("\n") for name in names))
    beside = min(across if across < 3 else 4, drawing.entries)
    below = BOTTOM + ROW * -(-drawing.entries // beside) + 0.06
    tall = size.side + size.gap + size.histogram + above
    step = tall + BOTTOM + 0.04
    digits = DIGITS if frame.has_long_ticks(0.05) else 0.0
    start, stride = LEFT + digits, size.side + BESIDE + digits
    width = start + across * stride + 0.05
    heights = ((rows - 1) * step, tall, below)
    figure, title = titled_figure(title, width, *heights, letters=int(TO_THE_INCH * width))
    highest = 100 * max(float(c.share.max()) for panel in panels for c in panel.curves)
    for number, panel in enumerate(panels):
        row, place = divmod(number, across)
        left, bottom = start + place * stride, below + (rows - 1 - row) * step
        square, under = drawing.add(figure, panel, left, bottom, size.side)
        under.set_ylim(0, 1.05 * highest)
        square.set_title(names[number], fontsize=SMALL, pad=3)
        under.set_xlabel(x_words(drawing.first, frame, short=True), fontsize=SMALL)
        for axes, words in ((square, UP), (under, "share, %")):
            axes.tick_params(labelleft=place == 0)
            if place == 0:
                axes.set_ylabel(words, fontsize=SMALL)
                axes.yaxis.set_label_coords((EDGE - start) / size.side, 0.5)
    band_key(figure.axes[0], drawing.first)
    found: dict[str, Any] = {}  # every entry of the legend that any of them has
    for axes in figure.axes[::2]:
        handles, labels = axes.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    legend_below(figure, list(found.values()), beside)
    if title is not None:
        top = 1 - TOP / figure.get_figheight()
        figure.text(0.5, top, title, ha="center", va="top", fontsize=SMALL + 1)
    return figure
