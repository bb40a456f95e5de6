"""Decision curves, drawn: the net benefit of each model between treating all and none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.diagrams.decision import DecisionCurve
from calibrant.diagrams.draw.figures import (
    BLACK,
    GREY,
    label_axes,
    look_of,
    panel_with_legend,
    plain_ticks,
    plain_words,
    refuse_other,
    round_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: inches
HEIGHT = 2.1
#: the part of the axis below 0, where no model should be
BELOW = 0.25


def decision_diagram(curve: DecisionCurve, *, ax: Any = None, title: str | None = None) -> Figure:
    """Net benefit against the threshold: where is acting on a model of use?

    A model is of use where its line is above both others: treating all (grey) and none (black).

    Parameters
    ----------
    curve : DecisionCurve
        From `decision_curve`.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    The axis ends a little below 0: how bad acting on all is at thresholds where nobody would is
    not shown. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Vickers, E. Elkin, "Decision curve analysis: a novel method for evaluating prediction
       models", 2006, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> from calibrant.diagrams.decision import decision_curve
    >>> curve = decision_curve([0, 0, 1, 1] * 25, [0.2, 0.4, 0.6, 0.8] * 25)
    >>> decision_diagram(curve).axes[0].get_xlabel()
    'threshold'
    """
    refuse_other(curve, DecisionCurve, "decision_curve", ax)
    return panel_with_legend(
        "decision",
        HEIGHT,
        lambda axes: _panel(axes, curve),
        ax,
        title,
        entries=len(curve.names) + 2 + (curve.level is not None),
        longest=max(map(len, map(plain_words, curve.names))),
    )


def _panel(ax: Axes, curve: DecisionCurve) -> None:
    x = curve.thresholds
    marker = "o" if len(x) == 1 else ""  # a line of one point would not be seen
    for number, name in enumerate(curve.names):
        color, _, dashes = look_of(number)
        if curve.lower is not None and curve.upper is not None:
            ends = curve.lower[number], curve.upper[number]
            ax.fill_between(x, *ends, color=color, alpha=0.18, lw=0, zorder=2)
        style: dict[str, Any] = {"color": color, "ls": dashes, "marker": marker, "ms": 3.5}
        ax.plot(x, curve.net_benefit[number], lw=1.3, zorder=4, label=plain_words(name), **style)
    ax.plot(x, curve.treat_all, color=GREY, lw=1.0, ls="--", zorder=3, marker=marker, ms=2.5,
            label="treat all")  # fmt: skip
    ax.plot(x, 0.0 * x, color=BLACK, lw=0.8, zorder=3, marker=marker, ms=2.5, label="treat none")
    if curve.level is not None:
        label = f"{100 * curve.level:g} % band, at each threshold"
        ax.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=label)
    seen = [curve.net_benefit, curve.treat_all, *([] if curve.upper is None else [curve.upper])]
    top = max(1.05 * max(float(part.max()) for part in seen), 1e-9)
    ax.set_ylim(-BELOW * top, top)
    round_ticks(ax.yaxis, 6)
    label_axes(ax, "threshold", "net benefit (larger is better)")
    plain_ticks(ax)
