"""Reliability diagrams, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.diagrams.axes_view import Frame, frame_of
from calibrant.diagrams.curve_options import CurveOptions, one_of
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.curves import ComparedCurves, compare_curves
from calibrant.diagrams.draw.figures import (
    DIGITS,
    EDGE,
    LEFT,
    WIDTH,
    axes_at,
    label_axes,
    legend_below,
    legend_inside,
    legend_room,
    refuse_other_axes,
    set_title,
    titled_figure,
)
from calibrant.diagrams.draw.maps import map_panel
from calibrant.diagrams.draw.panels import panel_diagram
from calibrant.diagrams.draw.styles import (
    IDEAL,
    LARGE_PANEL,
    UP,
    CurveDrawing,
    CurveStyle,
    PanelCurves,
    band_key,
    looks_of,
    x_words,
)
from calibrant.diagrams.map_lines import MapCurve, map_curve
from calibrant.diagrams.panels import panels_of
from calibrant.diagrams.predictions import read_several
from calibrant.diagrams.segment_curves import segments_by
from calibrant.errors import ParameterError
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: names of more letters do not fit beside each other
WIDEST = 18


@in_our_words
def reliability_diagram(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    segments: Any = None,
    layout: str = "panels",
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
        already stay, and the new one looks different. For panels of segments a list of axes, one
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
    Where all points and bands, and 99.5 % of the predictions, lie within 0.2 of 0 or of 1, only
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
    one_of("layout", layout, ("panels", "overlay"))
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
            y, p, raw=raw, rule=rule, sample_weight=sample_weight, pos_label=pos_label
        )
        return comparison_diagram(both, names, fitted_map, ax=ax, title=title)
    return _drawn(shown.curves, looks_of(shown.names), fitted_map, None, ax, title)


def comparison_diagram(
    both: ComparedCurves,
    names: tuple[str, str] | None,
    fitted_map: Any = None,
    *,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Curves after and before calibration, drawn as `reliability_diagram` says."""
    if names is None:
        names = ("predictions" if both.before is None else "calibrated", "before")
    if isinstance(names, str) or len(names) != 2:
        raise ParameterError(f"names must be two strings, but {names!r} came.")
    before = f"{names[1]}, {both.reading}" if both.reading else names[1]
    used = 0 if ax is None else len(_diagonals(ax))
    looks = looks_of((names[0], before), used)[: len(both.curves)]
    return _drawn(both.curves, looks, fitted_map, both, ax, title)


def _refuse_beside(what: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"{name} must not be given beside {what}. Pass a dict of names to predictions."
            )


# --- what is drawn ------------------------------------------------------------------------------


def _drawn(
    curves: tuple[Curve, ...],
    looks: tuple[CurveStyle, ...],
    fitted_map: Any,
    both: ComparedCurves | None,
    ax: Any,
    title: str | None,
) -> Figure:
    """Curves over one another, and the map over them or in a panel of its own."""
    frame = frame_of(curves)
    line, apart = _line_of(fitted_map, frame, both)
    panel = PanelCurves(None, curves, None if apart else line)
    drawing = CurveDrawing((panel,), looks, frame, LARGE_PANEL)
    if ax is None:
        return _sheet(drawing, line if apart else None, title)
    if apart:
        raise ParameterError(
            "fitted_map must be a map of probabilities where ax is given, but this one reads "
            "margins and needs a panel of its own. Draw it with map_diagram(..., ax=)."
        )
    return _into(ax, drawing, title)


def _line_of(
    fitted_map: Any, frame: Frame, both: ComparedCurves | None
) -> tuple[MapCurve | None, bool]:
    """The fitted map over the range of the scores before, and whether it needs its own panel."""
    if fitted_map is None:
        return None, False
    if both is not None and both.linked:
        low, high = both.raw_range or (0.0, 0.0)
        lo, hi = (low, high) if low < high else (None, None)
        return map_curve(fitted_map, lo=lo, hi=hi), True
    alone = both is None or both.before is None
    if alone and map_curve(fitted_map, n=2).domain == "score":
        return map_curve(fitted_map), True
    return map_curve(fitted_map, lo=frame.low, hi=frame.high, axes=frame.axes), False


# --- figures ------------------------------------------------------------------------------------


def _into(ax: Axes, drawing: CurveDrawing, title: str | None) -> Figure:
    """The reliability panel in axes that somebody else made."""
    shown = ax.get_xlim() if _diagonals(ax) else ()
    drawing.draw(ax, drawing.panels[0])
    _finish(ax, drawing)
    ends = sorted((*shown, *ax.get_xlim()))
    ax.set_xlim(ends[0], ends[-1])
    ax.set_ylim(ends[0], ends[-1])
    label_axes(ax, x_words(drawing.first, drawing.frame), UP)
    legend_inside(ax)
    set_title(ax, title)
    return ax.figure  # type: ignore[return-value]


def _diagonals(ax: Axes) -> list[Any]:
    """One line for each reliability diagram that the axes hold already."""
    return [line for line in ax.lines if line.get_label() == IDEAL]


def _sheet(drawing: CurveDrawing, beside: MapCurve | None, title: str | None) -> Figure:
    """Reliability above, histogram and legend below, and a map of margins beside them."""
    frame, size = drawing.frame, drawing.size
    wide = max(len(look.name) for look in drawing.looks) > WIDEST
    below, columns = legend_room(drawing.entries, wide)
    digits = DIGITS if frame.has_long_ticks(0.005) else 0.0
    left, side = LEFT + digits, size.side - 1.25 * digits
    width = WIDTH if beside is None else 2 * WIDTH
    figure, title = titled_figure(title, width, side, size.gap, size.histogram, below)
    panel, under = drawing.add(figure, drawing.panels[0], left, below, side)
    _finish(panel, drawing)
    label_axes(panel, "", UP)
    label_axes(under, x_words(drawing.first, frame), "share, %")
    for axes in (panel, under):  # one below the other, whatever the numbers beside them
        axes.yaxis.set_label_coords((EDGE - left) / side, 0.5)
    handles = panel.get_legend_handles_labels()[0]
    legend_below(figure, handles, columns, 0.5 if beside is None else 0.25)
    if beside is not None:
        place = (WIDTH + LEFT, below + size.histogram + size.gap, side, side)
        map_panel(axes_at(figure, place, "map"), beside)
    set_title(panel, title)
    return figure


def _finish(ax: Axes, drawing: CurveDrawing) -> None:
    """The band in the legend, and axes of equal length."""
    band_key(ax, drawing.first)
    ax.set_aspect("equal", adjustable="box")
