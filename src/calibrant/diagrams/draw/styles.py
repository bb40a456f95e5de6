"""How curves, bands, histograms and axes look; one place for all diagrams of reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calibrant.diagrams.axes_view import Frame, tick_words
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.draw.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PANEL,
    PURPLE,
    SKY,
    VERMILION,
    axes_at,
    plain_ticks,
    plain_words,
)
from calibrant.diagrams.map_lines import MapCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: colours, markers and dashes all differ, so that one of them is enough
COLORS = (BLUE, VERMILION, PURPLE, ORANGE, BLACK, SKY)
MARKERS = ("o", "s", "^", "D", "v", "X", "P")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))
#: what the legend calls the diagonal
IDEAL = "ideal"
#: what stands along the upright axis
UP = "fraction of positives"


class PanelSize(NamedTuple):
    """The measures of a panel with a histogram below it, in inches, and what fits its axes.

    ``room`` is the part of the frame that is left free beyond its ends, and ``map_order`` says how
    far in front a map is drawn.
    """

    side: float
    histogram: float
    gap: float
    room: float
    logit_ticks: int
    ticks: int
    map_order: float


LARGE_PANEL = PanelSize(PANEL, 0.62, 0.12, 0.02, 7, 6, 2.5)
SMALL_PANEL = PanelSize(1.2, 0.5, 0.1, 0.03, 4, 4, 4.5)


@dataclass(frozen=True)
class CurveStyle:
    """How a curve is drawn; a curve of higher ``order`` is in front of others."""

    name: str
    color: str
    marker: str
    dashes: Any
    order: float


def looks_of(names: Sequence[str], used: int = 0) -> tuple[CurveStyle, ...]:
    """A look for each name, the first in front; the first looks may be in use already."""
    return tuple(
        CurveStyle(
            plain_words(name),
            COLORS[(used + place) % len(COLORS)],
            MARKERS[(used + place) % len(MARKERS)],
            DASHES[(used + place) % len(DASHES)],
            4 - place / len(names),
        )
        for place, name in enumerate(names)
    )


def name_of_band(curve: Curve) -> str:
    """What the legend calls the band: bars stand for intervals, areas for bands."""
    level = f"{100 * (curve.level or 0.0):g} %"
    everywhere = curve.bands == "simultaneous"
    if curve.band in ("exact", "bootstrap"):
        return f"{level} interval ({curve.band}{', all bins' if everywhere else ''})"
    return f"{level} {curve.band}, {'whole curve' if everywhere else 'at each place'}"


def draw_curves(
    ax: Axes, curves: Sequence[Curve], looks: Sequence[CurveStyle], frame: Frame
) -> None:
    """The diagonal, then each curve over its band."""
    ends = [frame.low, frame.high]
    ax.plot(ends, ends, color=GREY, lw=0.8, ls=":", zorder=1, label=IDEAL)
    for place, (curve, look) in enumerate(zip(curves, looks, strict=True)):
        if curve.curve == "binned" or len(curve.x) == 1:  # a line of one point cannot be seen
            _points(ax, curve, look, frame)
        else:
            every = (0.1 / len(curves) * (1 + 2 * place), 0.2) if len(curves) > 1 else None
            _line(ax, curve, look, frame, every)


def _points(ax: Axes, curve: Curve, look: CurveStyle, frame: Frame) -> None:
    """A curve's points, joined, over the bars of its band."""
    x, y = frame.inside(curve.x), frame.inside(curve.y)
    if curve.lower is not None and curve.upper is not None:
        # one line with gaps, which a legend that looks for a free place takes into account
        gap = float("nan")
        ends = zip(x, frame.inside(curve.lower), frame.inside(curve.upper), strict=True)
        at, bars = zip(
            *(pair for m, a, b in ends for pair in ((m, a), (m, b), (gap, gap))), strict=True
        )
        style: dict[str, Any] = {"lw": 2.5, "alpha": 0.35, "solid_capstyle": "butt", "zorder": 2}
        ax.plot(at, bars, color=look.color, label="_band", **style)
    style = {"marker": look.marker, "ls": look.dashes, "lw": 0.9, "ms": 3.5, "zorder": look.order}
    ax.plot(x, y, color=look.color, label=look.name, **style)


def _line(ax: Axes, curve: Curve, look: CurveStyle, frame: Frame, every: Any) -> None:
    """A line over the area of its band, with a marker here and there to tell it from others."""
    x = frame.inside(curve.x)
    if curve.lower is not None and curve.upper is not None:
        lower, upper = frame.inside(curve.lower), frame.inside(curve.upper)
        style: dict[str, Any] = {"alpha": 0.2, "lw": 0, "zorder": 1.5, "label": "_band"}
        ax.fill_between(x, lower, upper, color=look.color, **style)
    style = {"ls": look.dashes, "lw": 1.2, "zorder": look.order, "solid_joinstyle": "round"}
    if every is not None:
        style |= {"marker": look.marker, "ms": 3.5, "markevery": every}
    ax.plot(x, frame.inside(curve.y), color=look.color, label=look.name, **style)


def draw_axes(ax: Axes, frame: Frame, size: PanelSize) -> None:
    """Limits, scale and ticks of a square panel."""
    set_scale(ax, frame, ("x", "y"), size)
    ax.set_xlim(*frame.ends(size.room))
    ax.set_ylim(*frame.ends(size.room))
    plain_ticks(ax)


def set_scale(ax: Axes, frame: Frame, axes: Sequence[Literal["x", "y"]], size: PanelSize) -> None:
    """The frame's scale, probabilities or log-odds, along the x axis, the y axis or both."""
    for name in axes:
        axis = getattr(ax, f"{name}axis")
        if frame.is_logit:
            ticks = frame.ticks(size.logit_ticks)
            ax.set(**{f"{name}scale": "logit"})
            axis.set_ticks(ticks, [tick_words(tick) for tick in ticks])
        else:
            ax.locator_params(name, nbins=size.ticks, steps=[1, 2, 5, 10])
            axis.set_major_formatter("{x:g}")
    if frame.is_logit:
        ax.minorticks_off()


@dataclass(frozen=True)
class PanelCurves:
    """Curves over one another, and a map over them; a panel that stands alone has no name."""

    name: str | None
    curves: tuple[Curve, ...]
    line: MapCurve | None = None


@dataclass(frozen=True)
class CurveDrawing:
    """Panels of curves, with the looks, the part of the axes and the size that they share."""

    panels: tuple[PanelCurves, ...]
    looks: tuple[CurveStyle, ...]
    frame: Frame
    size: PanelSize

    @property
    def first(self) -> Curve:
        return self.panels[0].curves[0]

    @property
    def entries(self) -> int:
        """How many entries the legend has."""
        mapped = any(panel.line is not None for panel in self.panels)
        return 1 + len(self.looks) + mapped + (self.first.level is not None)

    def draw(self, ax: Axes, panel: PanelCurves) -> None:
        """The curves of a panel, the map over them, and their axes."""
        frame, line = self.frame, panel.line
        draw_curves(ax, panel.curves, self.looks, frame)
        if line is not None:
            style: dict[str, Any] = {"lw": 1.1, "zorder": self.size.map_order}
            x, p = frame.inside(line.x), frame.inside(line.p)
            ax.plot(x, p, color=GREEN, label="fitted map", **style)
        draw_axes(ax, frame, self.size)

    def draw_histogram(self, ax: Axes, panel: PanelCurves) -> None:
        """The share of the predictions in each cell: an area, or outlines of several."""
        curves = panel.curves
        for place, (curve, look) in enumerate(zip(curves, self.looks, strict=True)):
            filled = place == 0 and len(curves) < 3
            style = {"fill": True, "alpha": 0.45} if filled else {"lw": 0.9, "ls": look.dashes}
            order = 2 - place / len(curves) if len(curves) > 2 else 1 + place
            percent, edges = 100 * curve.share, curve.histogram_edges
            ax.stairs(percent, edges, color=look.color, label=look.name, zorder=order, **style)
        set_scale(ax, self.frame, ("x",), self.size)
        ax.set_xlim(*self.frame.ends(self.size.room))
        ax.set_ylim(0, None)
        ax.locator_params(axis="y", nbins=3)
        plain_ticks(ax)

    def add(
        self, figure: Figure, panel: PanelCurves, left: float, bottom: float, side: float
    ) -> tuple[Axes, Axes]:
        """New axes for a panel, a square, and for the histogram below it."""
        size, name = self.size, "" if panel.name is None else f" {panel.name}"
        square = (left, bottom + size.histogram + size.gap, side, side)
        above = axes_at(figure, square, f"reliability{name}")
        under = axes_at(figure, (left, bottom, side, size.histogram), f"histogram{name}")
        self.draw(above, panel)
        self.draw_histogram(under, panel)
        above.tick_params(labelbottom=False)
        return above, under


def band_key(ax: Axes, curve: Curve) -> None:
    """An entry of the legend for all bands."""
    if curve.level is None:
        return
    name = name_of_band(curve)
    if curve.curve == "binned":
        style: dict[str, Any] = {"marker": "|", "ms": 7, "mew": 2.5, "ls": ""}
        ax.plot([], [], color=GREY, alpha=0.6, label=name, **style)
    else:
        ax.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=name)


def x_words(curve: Curve, frame: Frame, short: bool = False) -> str:
    """What stands along the axis of predictions."""
    mean = "" if curve.curve == "isotonic" else "mean "
    if short:
        return f"{mean}prediction"
    return f"{mean}predicted probability{', log-odds scale' if frame.is_logit else ''}"
