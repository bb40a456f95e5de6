"""A monitor over time, drawn: what came beside what was expected, and the evidence below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.diagrams.draw.figures import (
    BLUE,
    BOTTOM,
    GREY,
    LEFT,
    PANEL,
    ROW,
    SMALL,
    VERMILION,
    WIDTH,
    axes_at,
    label_axes,
    legend_below,
    plain_ticks,
    set_title,
    titled_figure,
)
from calibrant.diagrams.monitor_curve import MonitorCurve, monitor_curve
from calibrant.errors import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.monitor.monitor import Monitor


#: inches
RATES, EVIDENCE, GAP = 1.7, 1.2, 0.16


def monitor_diagram(monitor: Monitor, *, title: str | None = None) -> Figure:
    """What came in each window of time, beside what was expected; and the evidence that adds up.

    The band is where 95 of 100 windows lie if the probabilities are right, one window at a time: it
    is left now and then. The evidence below it is what the alarm is about.

    Parameters
    ----------
    monitor : Monitor
        With at least one batch.
    title : str, optional

    Returns
    -------
    matplotlib Figure

    Notes
    -----
    Windows are batches, and older ones joined. Each has Σwy/Σw, Σwp/Σw, and the deviation
    √Σwp(1 − p)/Σw of rows of one weight. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> from calibrant.monitor import Monitor
    >>> monitor = Monitor()
    >>> _ = monitor.update([0, 1, 0, 1], [0.2, 0.6, 0.4, 0.7])
    >>> [axes.get_ylabel() for axes in monitor_diagram(monitor).axes]
    ['evidence', 'share of positives']
    """
    curve = monitor_curve(monitor)
    below = BOTTOM + ROW
    figure, title = titled_figure(title, WIDTH, RATES, GAP, EVIDENCE, below)
    evidence = axes_at(figure, (LEFT, below, PANEL, EVIDENCE), "evidence")
    rates = axes_at(figure, (LEFT, below + EVIDENCE + GAP, PANEL, RATES), "rates")
    _rates(rates, curve)
    _evidence(evidence, curve)
    rates.set_xlim(evidence.get_xlim())
    rates.tick_params(labelbottom=False)
    figure.align_ylabels([rates, evidence])
    legend_below(figure, rates.get_legend_handles_labels()[0], 3)
    set_title(rates, title)
    return figure


def _rates(ax: Axes, curve: MonitorCurve) -> None:
    low, high = (np.append(end, end[-1]) for end in (curve.low, curve.high))
    ax.fill_between(
        curve.edges, low, high, step="post", color=GREY, alpha=0.35, lw=0, label="95 % of windows"
    )
    ax.stairs(curve.expected, curve.edges, baseline=None, color=GREY, lw=1.1, label="expected")
    ax.plot(curve.middle, curve.came, "o", color=BLUE, ms=2.6, zorder=3, label="observed")
    label_axes(ax, "", "share of positives")
    ax.set_ylim(max(0.0, ax.get_ylim()[0]), min(1.0, ax.get_ylim()[1]))
    ticker = import_extra("matplotlib.ticker", extra="cli")
    ax.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, symbol=" %"))
    _mark_alarm(ax, curve)
    plain_ticks(ax)


def _evidence(ax: Axes, curve: MonitorCurve) -> None:
    value, enough = curve.drawn_evidence, curve.enough
    ax.plot([curve.edges[0], *curve.last], [1.0, *value], color=BLUE, lw=1.1)
    ax.axhline(enough, color=VERMILION, lw=1.0, ls="--")
    ax.annotate(
        f"alarm at {enough:g}",
        (0.01, enough),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        fontsize=SMALL - 1,
        color=VERMILION,
    )
    ax.set_yscale("log")
    ax.set_ylim(min(*value, 0.1) / 2.0, max(*value, enough) * 4.0)
    ax.set_xlim(curve.edges[0], curve.edges[-1])
    ax.xaxis.set_major_locator(
        import_extra("matplotlib.ticker", extra="cli").MaxNLocator(nbins=8, integer=True)
    )
    time = f"({curve.whole_time})" if curve.whole_time else ""
    label_axes(ax, f"batch {time}".strip(), "evidence")
    _mark_alarm(ax, curve)
    plain_ticks(ax)


def _mark_alarm(ax: Any, curve: MonitorCurve) -> None:
    """A line where the alarm came, and one where the change probably began."""
    if curve.alarm is None or curve.change is None:
        return
    ax.axvline(curve.alarm, color=VERMILION, lw=1.0)
    ax.axvline(curve.change - 0.5, color=VERMILION, lw=0.9, ls=":")
