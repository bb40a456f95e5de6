"""Fitted maps, drawn: which score becomes which probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.diagrams.draw.figures import (
    BOTTOM,
    CLOSE,
    GREEN,
    GREY,
    LEFT,
    PANEL,
    TINY,
    label_axes,
    one_panel,
    plain_ticks,
    refuse_other_axes,
)
from calibrant.diagrams.draw.styles import LARGE_PANEL, draw_axes, set_scale
from calibrant.diagrams.map_lines import MapCurve, map_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: more knots would only darken the line that they stand on
MOST_KNOTS = 100
MOST_DOTS = 40


def map_diagram(
    fitted: Any,
    *,
    lo: float | None = None,
    hi: float | None = None,
    n: int = 512,
    axes: str = "probability",
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """The fitted map: which score becomes which probability.

    Steps are drawn as jumps, knots as ticks along the bottom (a dot where the map bends there), and
    the band of an `Interval` map shaded.

    Parameters
    ----------
    fitted, lo, hi, n, axes
        As in `map_curve`. On ``"logit"`` axes a straight line of slope one half is a temperature
        of two; the axis of a map of margins stays as it is.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> map_diagram(Piecewise.step([0.5], [0.1, 0.8])).axes[0].get_xlabel()
    'score'
    """
    refuse_other_axes(ax)
    line = map_curve(fitted, lo=lo, hi=hi, n=n, axes=axes)
    place = (LEFT, BOTTOM, PANEL, PANEL)
    return one_panel("map", place, lambda axes: map_panel(axes, line), ax, title)


def map_panel(ax: Axes, line: MapCurve) -> None:
    """A map's line, band and knots."""
    frame, square = line.frame, line.domain == "probability"
    inside = frame.inside
    x = inside(line.x) if square else line.x
    if square:
        ends = [frame.low, frame.high]
        ax.plot(ends, ends, color=GREY, lw=0.8, ls=":", zorder=1, label="no change")
    if line.lower is not None and line.upper is not None:
        name = "band" if line.level is None else f"{100 * line.level:g} % band"
        style: dict[str, Any] = {"color": GREEN, "alpha": 0.25, "lw": 0, "label": name}
        ax.fill_between(x, inside(line.lower), inside(line.upper), **style)
    ax.plot(x, inside(line.p), color=GREEN, lw=1.2, zorder=3, label="fitted map")
    if square and frame.is_logit:
        draw_axes(ax, frame, LARGE_PANEL)
    else:
        if frame.is_logit:
            set_scale(ax, frame, ("y",), LARGE_PANEL)
        room = LARGE_PANEL.room * (line.x[-1] - line.x[0])
        ax.set_xlim(line.x[0] - room, line.x[-1] + room)
        ax.set_ylim(*frame.ends(LARGE_PANEL.room))
        plain_ticks(ax)
    _knots(ax, line)
    if line.lower is not None:
        ax.legend(fontsize=TINY, frameon=False, **CLOSE)
    label_axes(ax, "score", "calibrated probability")


def _knots(ax: Axes, line: MapCurve) -> None:
    if not 0 < len(line.knots) <= MOST_KNOTS:
        return
    bottom = [line.frame.low] * len(line.knots)
    ax.plot(line.knots, bottom, "|", color=GREY, ms=5, mew=0.8, label="knots")
    if len(line.knots) <= MOST_DOTS:
        style: dict[str, Any] = {"color": GREEN, "ls": "", "marker": "o", "ms": 2.6, "zorder": 3.5}
        x, p = line.corners
        ax.plot(x, line.frame.inside(p), label="_corners", **style)
