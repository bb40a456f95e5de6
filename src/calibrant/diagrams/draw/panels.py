"""Reliability panels, drawn: a column for each prediction, its histogram above its curve."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from calibrant.diagrams.curves import Curve
from calibrant.diagrams.draw.reliability import Look, draw_points
from calibrant.diagrams.draw.sheet import (
    BLUE,
    BOTTOM,
    CLOSE,
    DIGITS,
    EDGE,
    GREEN,
    GREY,
    LEFT,
    ROW,
    SMALL,
    TINY,
    TOP,
    axes_at,
    new_figure,
    plain_ticks,
    title_height,
    wrapped,
)
from calibrant.diagrams.lines import MapCurve
from calibrant.diagrams.panels import Panels
from calibrant.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["panel_diagram"]

#: inches: a column's square, its histogram, the gaps beside and between, and room for names
SIDE, HISTOGRAM, BESIDE, BETWEEN, NAME = 1.28, 0.55, 0.12, 0.1, 0.14
#: letters of a title to the inch
LETTERS = 11.5
#: columns beside each other; more are broken into rows of equal length
MOST = 6


def panel_diagram(panels: Panels, *, title: str | None = None) -> Figure:
    """Reliability panels side by side, the histogram of each prediction above its curve.

    Parameters
    ----------
    panels : Panels
        From `reliability_panels` or `boosting_panels`.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it.

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
    if not isinstance(panels, Panels):
        raise InputError(
            f"Panels must come, but {type(panels).__name__} came. Make them with "
            "reliability_panels."
        )
    rows = -(-len(panels) // MOST)
    across = -(-len(panels) // rows)
    names = [textwrap.fill(name, 22) for name in panels.names]
    above = NAME * (1 + max(name.count("\n") for name in names))
    entries = _entries(panels)
    below = BOTTOM + ROW * -(-entries // _beside(across)) + 0.06
    tall = SIDE + BETWEEN + HISTOGRAM + above
    step = tall + BOTTOM + 0.04
    digits = DIGITS if panels.frame[1] - panels.frame[0] < 0.05 else 0.0
    start, stride = LEFT + digits, SIDE + BESIDE + digits
    width = start + across * stride + 0.05
    title = wrapped(title, int(LETTERS * width))
    head = TOP + title_height(title)
    figure = new_figure(width, head + (rows - 1) * step + tall + below)
    for number, curve in enumerate(panels.curves):
        row, column = divmod(number, across)
        left = start + column * stride
        bottom = below + (rows - 1 - row) * step
        name = panels.names[number]
        panel = axes_at(figure, (left, bottom, SIDE, SIDE), f"reliability {name}")
        top = axes_at(figure, (left, bottom + SIDE + BETWEEN, SIDE, HISTOGRAM), f"histogram {name}")
        _reliability(panel, curve, panels.lines[number], panels.frame)
        _histogram(top, curve, panels)
        top.set_title(names[number], fontsize=SMALL, pad=3)
        _labels(panel, top, (EDGE - start) / SIDE if column == 0 else None)
    _legend(figure, panels, min(_beside(across), entries))
    if title is not None:
        figure.text(
            0.5, 1 - TOP / figure.get_figheight(), title, ha="center", va="top", fontsize=SMALL + 1
        )
    return figure


def _reliability(ax: Axes, curve: Curve, line: MapCurve | None, frame: tuple[float, float]) -> None:
    low, high = frame
    room = 0.03 * (high - low)
    ax.plot([low, high], [low, high], color=GREY, lw=0.8, ls=":", zorder=1, label="ideal")
    draw_points(ax, curve, Look("predictions", BLUE, "o", "-", 4))
    if line is not None:
        ax.plot(line.x, line.p, color=GREEN, lw=1.1, zorder=4.5, label="fitted map")
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.locator_params(nbins=4, steps=[1, 2, 5, 10])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    plain_ticks(ax)


def _histogram(ax: Axes, curve: Curve, panels: Panels) -> None:
    low, high = panels.frame
    room = 0.03 * (high - low)
    ax.stairs(100 * curve.share, curve.histogram_edges, color=BLUE, fill=True, alpha=0.45)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(0, 105 * max(each.share.max() for each in panels.curves))
    ax.locator_params(axis="y", nbins=3)
    plain_ticks(ax)
    ax.tick_params(labelbottom=False)


def _labels(panel: Axes, top: Axes, edge: float | None) -> None:
    """Words and numbers beside the first column only: the others have the same axes."""
    panel.set_xlabel("mean prediction", fontsize=SMALL)
    for axes, words in ((panel, "fraction of positives"), (top, "share, %")):
        axes.tick_params(labelleft=edge is not None)
        if edge is not None:
            axes.set_ylabel(words, fontsize=SMALL)
            axes.yaxis.set_label_coords(edge, 0.5)


def _entries(panels: Panels) -> int:
    """How many entries the legend has."""
    mapped = any(line is not None for line in panels.lines)
    return 2 + mapped + (panels.curves[0].level is not None)


def _beside(across: int) -> int:
    """How many entries of the legend find room beside each other."""
    return across if across < 3 else 4


def _legend(figure: Figure, panels: Panels, beside: int) -> None:
    """One for all columns: the ideal, the predictions, and what any of them has besides."""
    first = panels.curves[0]
    if first.level is not None:
        style: dict[str, Any] = {"color": GREY, "alpha": 0.6, "marker": "|", "ms": 7, "mew": 2.5}
        name = f"{100 * first.level:g} % interval ({first.band})"
        figure.axes[0].plot([], [], ls="", label=name, **style)
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    figure.legend(
        handles=list(found.values()),
        loc="lower center",
        ncols=beside,
        fontsize=TINY,
        frameon=False,
        columnspacing=1.2,
        **CLOSE,
    )
