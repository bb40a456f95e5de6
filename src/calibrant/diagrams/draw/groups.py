"""Groups of rows where predictions are wrong, drawn: each difference with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.diagrams.draw.figures import (
    BLACK,
    BLUE,
    BOTTOM,
    GREY,
    SMALL,
    TINY,
    WIDTH,
    one_panel,
    plain_ticks,
    plain_words,
    refuse_other,
    round_ticks,
)
from calibrant.metrics.group_results import Multicalibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: inches: a group, what is left free at either side, and a second line under the axis
EACH, SIDE, LINE = 0.3, 0.15, 0.14
#: letters of a name that fit a column
LETTERS = 52


def group_diagram(found: Multicalibration, *, ax: Any = None, title: str | None = None) -> Figure:
    """Where predictions are wrong: observed − predicted in the worst groups, with intervals.

    Right of the line predictions are too low, left of it too high. Groups that are off beyond
    chance are blue, others grey.

    Parameters
    ----------
    found : Multicalibration
        From `calibrant.metrics.multicalibration`, or ``evaluate(..., features=frame).groups``.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    The groups are those of the printed table, in its order. The intervals hold together at the
    level of the result. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import multicalibration
    >>> rng = np.random.default_rng(0)
    >>> city, p = rng.choice(["Bonn", "Rome"], (500, 1)), rng.random(500)
    >>> found = multicalibration(rng.random(500) < p, p, features=city)
    >>> group_diagram(found).axes[0].get_xlabel()
    'observed − predicted (95 % intervals)\\nleft of 0: predicted too high, right: too low'
    """
    refuse_other(found, Multicalibration, "metrics.multicalibration", ax)
    place = (SIDE, BOTTOM + LINE, WIDTH - 2 * SIDE, EACH * len(found.shown) + 0.05)
    return one_panel("groups", place, lambda axes: _panel(axes, found), ax, title)


def _panel(ax: Axes, found: Multicalibration) -> None:
    groups = found.shown
    low, high = min(0.0, *(g.low for g in groups)), max(0.0, *(g.high for g in groups))
    room = 0.04 * ((high - low) or 1.0)
    ax.axvline(0.0, color=BLACK, lw=0.8, zorder=1)
    for place, one in enumerate(groups):
        color = BLUE if one.wrong else GREY
        ax.plot([one.low, one.high], [place, place], color=color, lw=1.4, zorder=2)
        ax.plot([one.difference], [place], color=color, marker="o", ms=4, ls="", zorder=3)
        text = plain_words(one.name, LETTERS)
        ax.text(low - room, place - 0.28, text, fontsize=TINY, va="bottom", ha="left", zorder=4,
                bbox={"facecolor": "white", "alpha": 0.7, "pad": 0.3, "lw": 0})  # fmt: skip
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(len(groups) - 0.6, -0.95)
    ax.set_yticks([])
    round_ticks(ax.xaxis, 6)
    words = f"observed − predicted ({100 * found.level:g} % intervals)"
    ax.set_xlabel(f"{words}\nleft of 0: predicted too high, right: too low", fontsize=SMALL)
    plain_ticks(ax)
    ax.spines["left"].set_visible(False)
