"""Reliability diagrams and fitted maps, drawn: curves are read and laid out, no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.diagrams.curves import Comparison, Curve, compare_curves
from calibrant.diagrams.draw.sheet import (
    BLUE,
    BOTTOM,
    CLOSE,
    DIGITS,
    EDGE,
    GAP,
    GREEN,
    GREY,
    HISTOGRAM,
    LEFT,
    PANEL,
    ROW,
    SMALL,
    TINY,
    TOP,
    VERMILION,
    WIDTH,
    axes_at,
    new_figure,
    plain_ticks,
    refuse_other_axes,
    title_height,
    wrapped,
)
from calibrant.diagrams.lines import MapCurve, map_curve
from calibrant.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Look", "draw_points", "map_diagram", "reliability_diagram"]


@dataclass(frozen=True)
class Look:
    """How one curve is drawn; the one of the higher order in front."""

    name: str
    color: str
    marker: str
    dashes: str
    order: float


def reliability_diagram(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    bins: int = 10,
    kind: str = "width",
    band: str | None = "exact",
    level: float = 0.95,
    sample_weight: Any = None,
    pos_label: Any = None,
    fitted_map: Any = None,
    ax: Any = None,
    title: str | None = None,
    names: tuple[str, str] | None = None,
) -> Figure:
    """Predicted probabilities against what happened, with a band for each point.

    Points below the diagonal: the model promises more than happens; above: less. The histogram on
    top shows how often each prediction is made.

    Parameters
    ----------
    y, p, bins, kind, band, level, sample_weight, pos_label
        As in `reliability_curve`.
    raw : array-like of the same rows, or ScoreTable, optional
        The scores before calibration, drawn beside; margins (any outside [0, 1]) go through σ.
    fitted_map : Map, Fitted, or anything with ``map_``, optional
        The map that turned ``raw`` into ``p``, drawn as a line over the predictions before. A map
        of margins has no place on that axis and gets a panel of its own.
    ax : matplotlib Axes, optional
        Draw the reliability panel into these axes, without the histogram.
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

    Examples
    --------
    >>> figure = reliability_diagram([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    >>> [axes.get_label() for axes in figure.axes]
    ['reliability', 'histogram']
    """
    refuse_other_axes(ax)
    both = compare_curves(
        y,
        p,
        raw=raw,
        bins=bins,
        kind=kind,
        band=band,
        level=level,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    looks = _looks(both, names)
    line, apart = _line(both, fitted_map)
    if ax is not None:
        if apart:
            raise ParameterError(
                "fitted_map must be a map of probabilities where ax is given, but this one reads "
                "margins and needs a panel of its own. Draw it with map_diagram(..., ax=)."
            )
        _reliability_panel(ax, both, looks, line)
        ax.legend(fontsize=TINY, framealpha=0.6, handlelength=1.6, **CLOSE)
        if title is not None:
            ax.set_title(title, fontsize=SMALL)
        return ax.figure  # type: ignore[no-any-return]
    return _sheet(both, looks, line, apart, title)


def map_diagram(
    fitted: Any,
    *,
    lo: float | None = None,
    hi: float | None = None,
    n: int = 512,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """The fitted map: which score becomes which probability.

    Steps are drawn as jumps, knots as ticks along the bottom, the band of an `Interval` map shaded.

    Parameters
    ----------
    fitted, lo, hi, n
        As in `map_curve`.
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
    line = map_curve(fitted, lo, hi, n)
    if ax is None:
        title = wrapped(title)
        figure = new_figure(WIDTH, TOP + title_height(title) + PANEL + BOTTOM)
        ax = axes_at(figure, (LEFT, BOTTOM, PANEL, PANEL), "map")
    else:
        figure = ax.figure
    _map_panel(ax, line)
    if title is not None:
        ax.set_title(title, fontsize=SMALL)
    return figure


# --- figures ------------------------------------------------------------------------------------


def _sheet(
    both: Comparison,
    looks: tuple[Look, ...],
    line: MapCurve | None,
    apart: bool,
    title: str | None,
) -> Figure:
    """Histogram above, reliability below, legend under both, and a map of margins beside them."""
    entries = 1 + len(looks) + (both.after.level is not None) + (line is not None and not apart)
    wide = max(len(look.name) for look in looks) > 18
    rows = entries if wide else -(-entries // 2)
    below = BOTTOM + ROW * rows + 0.04
    title = wrapped(title)
    digits = DIGITS if both.frame[1] - both.frame[0] < 0.005 else 0.0
    left, side = LEFT + digits, PANEL - 1.25 * digits
    height = TOP + title_height(title) + HISTOGRAM + GAP + side + below
    figure = new_figure(2 * WIDTH if apart else WIDTH, height)
    panel = axes_at(figure, (left, below, side, side), "reliability")
    top = axes_at(figure, (left, below + side + GAP, side, HISTOGRAM), "histogram")
    _reliability_panel(panel, both, looks, None if apart else line)
    _histogram_panel(top, both, looks)
    for axes in (panel, top):  # one below the other, whatever the numbers beside them
        axes.yaxis.set_label_coords((EDGE - left) / side, 0.5)
    figure.legend(
        handles=panel.get_legend_handles_labels()[0],
        loc="lower center",
        bbox_to_anchor=(0.25 if apart else 0.5, 0.0),
        ncols=1 if wide else 2,
        fontsize=TINY,
        frameon=False,
        columnspacing=1.2,
        **CLOSE,
    )
    if line is not None and apart:
        _map_panel(axes_at(figure, (WIDTH + LEFT, below, side, side), "map"), line)
    if title is not None:
        top.set_title(title, fontsize=SMALL)
    return figure


def _looks(both: Comparison, names: tuple[str, str] | None) -> tuple[Look, ...]:
    if names is None:
        names = ("predictions" if both.before is None else "calibrated", "before")
    if isinstance(names, str) or len(names) != 2:
        raise ParameterError(f"names must be two strings, but {names!r} came.")
    after = Look(names[0], BLUE, "o", "-", 4)
    if both.before is None:
        return (after,)
    name = f"{names[1]}, through σ" if both.linked else names[1]
    return after, Look(name, VERMILION, "s", "--", 3)


def _line(both: Comparison, fitted_map: Any) -> tuple[MapCurve | None, bool]:
    """The fitted map over the range of the scores before, and whether it needs its own panel."""
    if fitted_map is None:
        return None, False
    if both.linked and both.raw_range is not None and both.raw_range[0] < both.raw_range[1]:
        return map_curve(fitted_map, *both.raw_range), True
    if both.linked or (both.before is None and map_curve(fitted_map, n=2).domain == "score"):
        return map_curve(fitted_map), True
    return map_curve(fitted_map, *both.frame), False


# --- panels -------------------------------------------------------------------------------------


def _reliability_panel(
    ax: Axes, both: Comparison, looks: tuple[Look, ...], line: MapCurve | None
) -> None:
    low, high = both.frame
    room = 0.02 * (high - low)
    ax.plot([low, high], [low, high], color=GREY, lw=0.8, ls=":", zorder=1, label="ideal")
    for curve, look in zip(both.curves, looks, strict=True):
        draw_points(ax, curve, look)
    if line is not None:
        ax.plot(line.x, line.p, color=GREEN, lw=1.1, zorder=2.5, label="fitted map")
    level = both.after.level
    if level is not None:
        name = f"{100 * level:g} % interval ({both.after.band})"
        ax.plot([], [], color=GREY, alpha=0.6, marker="|", ms=7, mew=2.5, ls="", label=name)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel("mean predicted probability", fontsize=SMALL)
    ax.set_ylabel("fraction of positives", fontsize=SMALL)
    ax.locator_params(nbins=6, steps=[1, 2, 5, 10])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    plain_ticks(ax)


def draw_points(ax: Axes, curve: Curve, look: Look) -> None:
    """A curve's points, joined, over the bars of its band."""
    color, order = look.color, look.order
    if curve.lower is not None and curve.upper is not None:
        # one line with gaps, which a legend that looks for a free place takes into account
        gap = float("nan")
        ends = zip(curve.mean_p, curve.lower, curve.upper, strict=True)
        x, bars = zip(
            *(pair for m, a, b in ends for pair in ((m, a), (m, b), (gap, gap))), strict=True
        )
        style: dict[str, Any] = {"lw": 2.5, "alpha": 0.35, "solid_capstyle": "butt", "zorder": 2}
        ax.plot(x, bars, color=color, label="_band", **style)
    style = {"marker": look.marker, "ls": look.dashes, "lw": 0.9, "ms": 3.5, "zorder": order}
    ax.plot(curve.mean_p, curve.fraction, color=color, label=look.name, **style)


def _histogram_panel(ax: Axes, both: Comparison, looks: tuple[Look, ...]) -> None:
    styles: tuple[dict[str, Any], ...] = ({"fill": True, "alpha": 0.45}, {"lw": 0.9, "zorder": 2})
    for curve, look, style in zip(both.curves, looks, styles, strict=False):
        percent = 100 * curve.share
        ax.stairs(percent, curve.histogram_edges, color=look.color, label=look.name, **style)
    low, high = both.frame
    room = 0.02 * (high - low)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(0, None)
    ax.set_ylabel("share, %", fontsize=SMALL)
    ax.locator_params(axis="y", nbins=3)
    plain_ticks(ax)
    ax.tick_params(labelbottom=False)


def _map_panel(ax: Axes, line: MapCurve) -> None:
    low, high = line.x[0], line.x[-1]
    room = 0.02 * (high - low)
    if line.domain == "probability":
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", zorder=1, label="no change")
    if line.lower is not None and line.upper is not None:
        name = "band" if line.level is None else f"{100 * line.level:g} % band"
        ax.fill_between(line.x, line.lower, line.upper, color=GREEN, alpha=0.25, lw=0, label=name)
    ax.plot(line.x, line.p, color=GREEN, lw=1.2, zorder=3, label="fitted map")
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(-0.02, 1.02)
    if 0 < len(line.knots) <= 100:
        bottom = [0.0] * len(line.knots)
        ax.plot(line.knots, bottom, "|", color=GREY, ms=5, mew=0.8, label="knots")
    if line.lower is not None:
        ax.legend(fontsize=TINY, frameon=False, **CLOSE)
    ax.set_xlabel("score", fontsize=SMALL)
    ax.set_ylabel("calibrated probability", fontsize=SMALL)
    plain_ticks(ax)
