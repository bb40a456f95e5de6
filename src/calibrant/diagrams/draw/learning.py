"""Learning curves, drawn: the mean over draws with its band, against the number of rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from calibrant.diagrams.draw.figures import (
    DIGITS,
    GREY,
    label_axes,
    look_of,
    panel_with_legend,
    plain_ticks,
    plain_words,
    refuse_other,
    round_ticks,
)
from calibrant.diagrams.learning import LearningCurve, in_short
from calibrant.errors import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: inches
HEIGHT = 1.9


def learning_diagram(curve: LearningCurve, *, ax: Any = None, title: str | None = None) -> Figure:
    """A measure against the number of calibration rows: how much calibration data is enough?

    The shaded bands are those of the means; the dashed line is the model before calibration, level
    but for the change of the test rows. The legend gives the values at the largest size.

    Parameters
    ----------
    curve : LearningCurve
        From `learning_curve`.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    A size at which a mean is infinite has no point. Needs matplotlib:
    ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.diagrams.learning import learning_curve
    >>> scores, y = [0.2, 0.4, 0.6, 0.8] * 25, [0, 1, 0, 1] * 25
    >>> curve = learning_curve(cal.Platt(), scores, y, sizes=[16, 32])
    >>> learning_diagram(curve).axes[0].get_ylabel()
    'Brier score (smaller is better)'
    """
    refuse_other(curve, LearningCurve, "learning_curve", ax)
    labels = [*_labels(curve), _band(curve)]
    return panel_with_legend(
        "learning",
        HEIGHT,
        lambda axes: _panel(axes, curve),
        ax,
        title,
        entries=len(labels),
        longest=max(map(len, labels)),
        digits=DIGITS if all(value < 0.01 for value in _seen(curve.high.ravel())) else 0.0,
    )


def _panel(ax: Axes, curve: LearningCurve) -> None:
    columns = zip(_labels(curve), curve.mean, curve.low, curve.high, strict=True)
    for number, (label, mean, low, high) in enumerate(columns):
        color, marker, dashes = _look(number)
        style: dict[str, Any] = {"marker": marker, "ms": 3.5, "lw": 1.1, "ls": dashes}
        lower, upper = _seen(low), _seen(high)
        ax.fill_between(curve.sizes, lower, upper, color=color, alpha=0.2, lw=0, zorder=2)
        if len(curve.sizes) == 1:  # a line of one point would not be seen
            style["marker"] = marker or "_"
            ax.vlines(curve.sizes, lower, upper, color=color, alpha=0.4, lw=3, zorder=2)
        ax.plot(curve.sizes, _seen(mean), color=color, zorder=3, label=label, **style)
    ax.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=_band(curve))
    ax.set_xscale("log", base=2)
    ticker = import_extra("matplotlib.ticker", extra="cli")
    ax.xaxis.set_major_locator(ticker.LogLocator(base=2, numticks=7))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(ticker.LogLocator(base=2, numticks=99))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    round_ticks(ax.yaxis, 7, (1, 2, 2.5, 5, 10))
    label_axes(ax, "calibration rows", f"{curve.measure} ({curve.better} is better)")
    plain_ticks(ax)


def _labels(curve: LearningCurve) -> list[str]:
    """Each method with its value at the largest size."""
    before, *names = curve.names
    called = [f"{before}, {curve.reading}" if curve.linked else before, *names]
    pairs = zip(map(plain_words, called), curve.mean, strict=True)
    return [f"{name}: {in_short(m[-1])}" for name, m in pairs]


def _band(curve: LearningCurve) -> str:
    return f"{100 * curve.level:g} % band of the mean"


def _look(number: int) -> tuple[str, str, str]:
    """Colour, marker and dashes of a method; the first is the scores as they came."""
    if number == 0:
        return GREY, "", "--"
    return look_of(number - 1)


def _seen(values: Any) -> list[float]:
    """Infinite values as gaps."""
    return [float(value) if math.isfinite(value) else math.nan for value in values]
