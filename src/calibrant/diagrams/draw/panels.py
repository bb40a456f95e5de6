"""Reliability panels, drawn: a column for each prediction, segment or class, with its histogram."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from calibrant.diagrams.axes_view import frame_of
from calibrant.diagrams.class_curves import classes_by
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.draw.figures import (
    BOTTOM,
    DIGITS,
    EDGE,
    LEFT,
    ROW,
    SMALL,
    TOP,
    label_axes,
    legend_below,
    legend_inside,
    refuse_other_axes,
    titled_figure,
)
from calibrant.diagrams.draw.styles import (
    SMALL_PANEL,
    UP,
    CurveDrawing,
    PanelCurves,
    band_key,
    looks_of,
    x_words,
)
from calibrant.diagrams.panels import Panels
from calibrant.diagrams.segment_curves import Segments
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.arguments import check_whole
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    drawing = _drawing(panels)
    count = len(drawing.panels)
    if ax is not None:
        return _into(_checked(ax, count), drawing, title)
    return _sheet(drawing, _even(count, MOST) if across is None else across, title)


@in_our_words
def class_diagram(
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


def _drawing(panels: Panels | Segments) -> CurveDrawing:
    if isinstance(panels, Segments):
        looks, curves = looks_of(panels.predictions), panels.curves
        pairs = zip(panels.names, panels.panels, strict=True)
        columns = [PanelCurves(name, inner.curves) for name, inner in pairs]
    else:
        before = f"before, {panels.reading}" if panels.reading else "before"
        looks = looks_of(["calibrated", before] if panels.before else ["predictions"])
        curves = (*panels.curves, *panels.before)
        sides = [panels.curves, panels.before] if panels.before else [panels.curves]
        triples = zip(panels.names, zip(*sides, strict=True), panels.lines, strict=True)
        columns = [PanelCurves(name, own, line) for name, own, line in triples]
    return CurveDrawing(tuple(columns), looks, frame_of(curves), SMALL_PANEL)


def _unset(name: str) -> str:
    """A name in which dollar signs begin no formula."""
    return name.replace("$", r"\$")


def _even(count: int, most: int) -> int:
    """How many panels stand side by side, so that the rows are about equally long."""
    return -(-count // -(-count // most))


def _checked(ax: Any, count: int) -> list[Axes]:
    """The axes that the caller made, one for each panel, from a list or an array of any shape."""
    given = list(getattr(ax, "flat", ax if isinstance(ax, (list, tuple)) else [ax]))
    for each in given:
        refuse_other_axes(each)
    if len(given) != count or None in given:
        raise ParameterError(
            f"ax must be a list of {count} axes, one for each panel, but {len(given)} came."
        )
    return given


# --- figures ------------------------------------------------------------------------------------


def _into(axes: list[Axes], drawing: CurveDrawing, title: str | None) -> Figure:
    for panel, ax in zip(drawing.panels, axes, strict=True):
        drawing.draw(ax, panel)
        ax.set_title(_unset(str(panel.name)), fontsize=SMALL, pad=3)
        label_axes(ax, x_words(drawing.first, drawing.frame, short=True), UP)
    band_key(axes[0], drawing.first)
    legend_inside(axes[0])
    figure = axes[0].figure
    if title is not None:
        figure.suptitle(title, fontsize=SMALL + 1)
    return figure  # type: ignore[return-value]


def _sheet(drawing: CurveDrawing, across: int, title: str | None) -> Figure:
    panels, frame, size = drawing.panels, drawing.frame, drawing.size
    across = min(across, len(panels))
    rows = -(-len(panels) // across)
    names = [_unset(textwrap.fill(str(panel.name), 22)) for panel in panels]
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
        _words(square, under, (EDGE - start) / size.side if place == 0 else None)
    _legend(figure, drawing, beside)
    if title is not None:
        top = 1 - TOP / figure.get_figheight()
        figure.text(0.5, top, title, ha="center", va="top", fontsize=SMALL + 1)
    return figure


def _words(panel: Axes, under: Axes, edge: float | None) -> None:
    """Words and numbers beside the first column only: the others have the same axes."""
    for axes, words in ((panel, UP), (under, "share, %")):
        axes.tick_params(labelleft=edge is not None)
        if edge is not None:
            axes.set_ylabel(words, fontsize=SMALL)
            axes.yaxis.set_label_coords(edge, 0.5)


def _legend(figure: Figure, drawing: CurveDrawing, beside: int) -> None:
    """One legend for all columns: every entry that any of them has."""
    band_key(figure.axes[0], drawing.first)
    found: dict[str, Any] = {}
    for axes in figure.axes[::2]:
        handles, labels = axes.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    legend_below(figure, list(found.values()), beside)
