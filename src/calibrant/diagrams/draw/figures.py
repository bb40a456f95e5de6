"""Figures, axes and styles of lines: what all diagrams share.

Figures are made without pyplot, so nothing global is touched, no window opens and none leaks.
"""

from __future__ import annotations

import functools
import hashlib
import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from calibrant.diagrams.curve import Curve, Frame, MapCurve, tick_words
from calibrant.errors import InputError, ParameterError, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Okabe and Ito's colours, told apart by every kind of eye; markers differ too
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#767676"
PURPLE, ORANGE, SKY, BLACK = "#CC79A7", "#E69F00", "#56B4E9", "#222222"
SMALL, TINY = 8, 7
#: a colour and a marker for each of several lines; a fitted map is green, so that comes last
COLORS = ((BLUE, "o"), (VERMILION, "s"), (PURPLE, "^"), (ORANGE, "D"), (SKY, "v"), (GREEN, "P"))
#: their dashes differ, too, so that any one of the three is enough
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))

#: inches; the width is one column of a printed page
WIDTH, LEFT, PANEL, TOP, BOTTOM, ROW = 3.3, 0.62, 2.52, 0.1, 0.44, 0.14
#: extra room for tick figures of many digits
DIGITS = 0.2
#: where the labels of the upright axes stand
EDGE = 0.2
DPI = 150
CLOSE: dict[str, Any] = {"borderpad": 0.3, "labelspacing": 0.25}
#: labels of more letters do not fit beside each other in a legend
WIDEST = 21
#: letters of a title that fit a column
COLUMN = 44


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that draws without a display and shows itself in notebooks."""
    import_extra("matplotlib", extra="cli")
    figures = import_extra("matplotlib.figure", extra="cli")
    agg = import_extra("matplotlib.backends.backend_agg", extra="cli")
    figure = figures.Figure(figsize=(width, height), dpi=DPI)
    agg.FigureCanvasAgg(figure)
    # a Figure made without pyplot has no picture of its own in IPython
    figure._repr_png_ = functools.partial(render, figure)
    return figure  # type: ignore[no-any-return]


def axes_at(figure: Figure, place: tuple[float, float, float, float], name: str) -> Axes:
    """Axes at a place (left, bottom, width, height) in inches."""
    w, h = figure.get_size_inches()
    left, bottom, width, height = place
    return figure.add_axes((left / w, bottom / h, width / w, height / h), label=name)


def plain_words(name: str, letters: int = 48) -> str:
    """A name from the data, as matplotlib shows it unchanged.

    Dollar signs begin no formula, and neither an empty name nor a leading underscore hides it from
    the legend. A name that is too long for a column is cut.

    >>> plain_words("$5 to $6"), plain_words("_new"), plain_words("x" * 60)[-3:]
    ('\\\\$5 to \\\\$6', ' _new', 'xx…')
    """
    short = " ".join(name.split())
    short = short if len(short) <= letters else short[: letters - 1] + "…"
    short = short.replace("$", r"\$")
    return f" {short}" if short.startswith("_") or not short else short


def set_title(ax: Axes, title: str | None) -> None:
    """A title above the axes, if there is one."""
    if title is not None:
        ax.set_title(title, fontsize=SMALL)


def label_axes(ax: Axes, across: str, up: str) -> None:
    """What stands along the axes."""
    ax.set_xlabel(across, fontsize=SMALL)
    ax.set_ylabel(up, fontsize=SMALL)


def legend_inside(ax: Axes) -> None:
    """A legend where the axes have room for it, for axes that somebody else made.

    What several diagrams on the same axes share, such as the diagonal, is named once.
    """
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    style: dict[str, Any] = {"fontsize": TINY, "framealpha": 0.6, "handlelength": 1.6, **CLOSE}
    ax.legend(entries.values(), entries.keys(), **style)


def legend_below(figure: Figure, handles: list[Any], columns: int, middle: float = 0.5) -> None:
    """A legend at the bottom of a figure, around the middle (a part of its width)."""
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(middle, 0.0),
        ncols=columns,
        fontsize=TINY,
        frameon=False,
        columnspacing=1.2,
        **CLOSE,
    )


def legend_room(entries: int, wide: bool) -> tuple[float, int]:
    """The inches below a panel for its axis and a legend, and the columns of the legend.

    ``wide`` labels stand in one column, others in two.
    """
    rows = entries if wide else -(-entries // 2)
    return BOTTOM + ROW * rows + 0.04, 1 if wide else 2


def titled_figure(
    title: str | None,
    width: float,
    *heights: float,
    top: float = TOP,
    letters: int = COLUMN,
) -> tuple[Figure, str | None]:
    """A figure with room for its title above parts of these heights; and the title in lines.

    A line of the title has so many letters.
    """
    height = top
    if title is not None:
        title = "\n".join(textwrap.fill(part, letters) for part in title.split("\n"))
        height += 0.12 + 0.13 * (1 + title.count("\n"))
    for part in heights:
        height += part
    return new_figure(width, height), title


@contextmanager
def one_panel(
    name: str,
    place: tuple[float, float, float, float],
    ax: Axes | None,
    title: str | None,
    *,
    width: float = WIDTH,
    top: float = TOP,
    letters: int = COLUMN,
) -> Iterator[tuple[Figure, Axes]]:
    """A figure and its one panel at this place, to be drawn into; with ``ax``, these axes, which
    somebody else made, and their figure."""
    if ax is None:
        _, below, _, height = place
        figure, title = titled_figure(title, width, height, below, top=top, letters=letters)
        ax = axes_at(figure, place, name)
    yield cast("Figure", ax.figure), ax
    set_title(ax, title)


@contextmanager
def panel_with_legend(
    name: str,
    height: float,
    ax: Axes | None,
    title: str | None,
    *,
    entries: int,
    longest: int,
    digits: float = 0.0,
) -> Iterator[tuple[Figure, Axes]]:
    """A figure and its panel, as `one_panel` makes them; then the legend below it, or in ``ax``.

    ``entries`` is how many labels the legend has, and ``longest`` the letters of the longest.
    ``digits`` is extra room, in inches, for the numbers of the y axis.
    """
    below, columns = legend_room(entries, longest > WIDEST)
    left, side = LEFT + digits, PANEL - digits
    with one_panel(name, (left, below, side, height), ax, title) as (figure, panel):
        yield figure, panel
    if ax is not None:
        legend_inside(ax)
    else:
        panel.yaxis.set_label_coords((EDGE - left) / side, 0.5)
        legend_below(figure, panel.get_legend_handles_labels()[0], columns)


def line_style(number: int) -> tuple[str, str, Any]:
    """Colour, marker and dashes of one of several lines: all differ up to thirty lines."""
    return *COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]


def round_ticks(axis: Any, most: int, steps: Sequence[float] = (1, 2, 5, 10)) -> None:
    """About ``most`` ticks at round numbers, written without needless digits."""
    ticker = import_extra("matplotlib.ticker", extra="cli")
    axis.set_major_locator(ticker.MaxNLocator(nbins=most, steps=list(steps)))
    axis.set_major_formatter("{x:g}")


def plain_ticks(ax: Axes) -> None:
    """Small figures along two sides, and no frame on the other two."""
    ax.tick_params(labelsize=TINY, length=2.5)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def refuse_other_axes(ax: Any) -> None:
    """Refuse anything but matplotlib Axes or None; an error if matplotlib is missing."""
    import_extra("matplotlib", extra="cli")
    axes = import_extra("matplotlib.axes", extra="cli")
    if ax is not None and not isinstance(ax, axes.Axes):
        raise ParameterError(f"ax must be matplotlib Axes or None, but {type(ax).__name__} came.")


def refuse_other(value: Any, kind: type, maker: str, ax: Any) -> None:
    """Refuse other axes, and what is not of the kind that a diagram shows and ``maker`` makes."""
    refuse_other_axes(ax)
    if not isinstance(value, kind):
        raise InputError(
            f"a {kind.__name__} must come, but {type(value).__name__} came. Make one with {maker}."
        )


# --- files --------------------------------------------------------------------------------------


def render(figure: Figure, format: str = "png", dpi: float = DPI) -> bytes:
    """A figure as the bytes of a PNG, SVG or PDF file, the same for the same figure.

    Matplotlib draws the ids of markers and clips of an SVG at random. Here they depend on its
    content alone, so that two pictures on one page do not share ids.
    """
    stream = io.BytesIO()
    no_date = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(stream, format=format, dpi=dpi, metadata=no_date.get(format))
    picture = stream.getvalue()
    if format != "svg":
        return picture
    names = list(dict.fromkeys(re.findall(rb'id="([a-z][0-9a-f]{10})"', picture)))
    for number, name in enumerate(names):
        picture = picture.replace(name, b"@%d@" % number)
    digest = hashlib.sha256(picture).hexdigest()[:10].encode()
    for number in range(len(names)):
        picture = picture.replace(b"@%d@" % number, b"c%s-%d" % (digest, number))
    return picture


# --- Curves, bands, histograms and axes of all diagrams of reliability ----------------------------


#: what the legend calls the diagonal, and one that is not seen
IDEAL, NO_IDEAL = "ideal", "_ideal"
#: bins of fewer rows are points without a line, hollow ones
FEW = 10
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
    """How a curve is drawn; a curve of higher ``order`` is in front of others.

    ``line`` are other keywords of its line, as matplotlib spells them in full.
    """

    name: str
    color: str
    marker: str
    dashes: Any
    order: float
    line: Mapping[str, Any] = field(default_factory=dict)


def curve_styles(names: Sequence[str], used: int = 0) -> tuple[CurveStyle, ...]:
    """A style for each name, the first in front; so many of the first may be ``used`` already."""
    return tuple(
        CurveStyle(plain_words(name), *line_style(used + place), order=4 - place / len(names))
        for place, name in enumerate(names)
    )


def _draw_points(ax: Axes, curve: Curve, style: CurveStyle, frame: Frame) -> None:
    """A curve's points, joined, over the bars of its band."""
    x, y = frame.inside(curve.x), frame.inside(curve.y)
    if curve.lower is not None and curve.upper is not None:
        # one line with gaps, which a legend that styles for a free place takes into account
        ends, gap = (frame.inside(curve.lower), frame.inside(curve.upper)), np.full(len(x), np.nan)
        at, bars = (np.column_stack((*pair, gap)).ravel() for pair in ((x, x), ends))
        options: dict[str, Any] = {"lw": 2.5, "alpha": 0.35, "solid_capstyle": "butt", "zorder": 2}
        ax.plot(at, bars, color=style.color, label="_band", **options)
    few = _few_rows(curve)
    options = {"marker": style.marker, "markersize": 3.5, "color": style.color}
    options |= {"linestyle": style.dashes, "linewidth": 0.9, "zorder": style.order, **style.line}
    ax.plot(x, np.where(few, np.nan, y), label=style.name, **options)
    if few.any():
        hollow = {"linestyle": "", "markerfacecolor": "white", "label": "_few"}
        ax.plot(x[few], y[few], **options | hollow)


def _few_rows(curve: Curve) -> NDArray[np.bool_]:
    """Which bins hold too few rows to be joined by a line."""
    return (curve.curve == "binned") & (curve.effective < FEW - 1e-9)


def _draw_line(ax: Axes, curve: Curve, style: CurveStyle, frame: Frame, every: Any) -> None:
    """A line over the area of its band, with a marker here and there to tell it from others."""
    x = frame.inside(curve.x)
    if curve.lower is not None and curve.upper is not None:
        lower, upper = frame.inside(curve.lower), frame.inside(curve.upper)
        options: dict[str, Any] = {"alpha": 0.2, "lw": 0, "zorder": 1.5, "label": "_band"}
        ax.fill_between(x, lower, upper, color=style.color, **options)
        if curve.inner_lower is not None and curve.inner_upper is not None:
            lower, upper = frame.inside(curve.inner_lower), frame.inside(curve.inner_upper)
            ax.fill_between(x, lower, upper, color=style.color, **options)
    options = {"linestyle": style.dashes, "linewidth": 1.2, "solid_joinstyle": "round"}
    options |= {"color": style.color, "zorder": style.order}
    if every is not None:
        options |= {"marker": style.marker, "markersize": 3.5, "markevery": every}
    ax.plot(x, frame.inside(curve.y), label=style.name, **options | dict(style.line))


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
    """Panels of curves, with the styles, the part of the axes and the size that they share."""

    panels: tuple[PanelCurves, ...]
    styles: tuple[CurveStyle, ...]
    frame: Frame
    size: PanelSize
    diagonal: bool = True

    @property
    def first(self) -> Curve:
        """The first curve: all have its kind, its level and its bands."""
        return self.panels[0].curves[0]

    @property
    def entries(self) -> int:
        """How many entries the legend has."""
        mapped = any(panel.line is not None for panel in self.panels)
        few = any(_few_rows(curve).any() for panel in self.panels for curve in panel.curves)
        return self.diagonal + len(self.styles) + mapped + few + (self.first.level is not None)

    def draw(self, ax: Axes, panel: PanelCurves) -> None:
        """The diagonal, the curves of a panel over their bands, the map over them, and the axes."""
        frame, line, curves = self.frame, panel.line, panel.curves
        ends = [frame.low, frame.high]
        name = IDEAL if self.diagonal else NO_IDEAL
        style: dict[str, Any] = {"color": GREY, "lw": 0.8, "ls": ":", "zorder": 1}
        ax.plot(ends, ends, label=name, visible=self.diagonal, **style)
        for place, (curve, look) in enumerate(zip(curves, self.styles, strict=True)):
            if curve.curve == "binned" or len(curve.x) == 1:  # a line of one point cannot be seen
                _draw_points(ax, curve, look, frame)
            else:
                every = (0.1 / len(curves) * (1 + 2 * place), 0.2) if len(curves) > 1 else None
                _draw_line(ax, curve, look, frame, every)
        if line is not None:
            x, p, order = frame.inside(line.x), frame.inside(line.p), self.size.map_order
            ax.plot(x, p, color=GREEN, lw=1.1, zorder=order, label="fitted map")
        if any(_few_rows(curve).any() for curve in curves):
            hollow: dict[str, Any] = {"marker": "o", "ms": 3.5, "ls": "", "mfc": "white"}
            ax.plot([], [], color=GREY, label=f"bin of fewer than {FEW} rows", **hollow)
        draw_axes(ax, frame, self.size)

    def draw_histogram(self, ax: Axes, panel: PanelCurves) -> None:
        """The share of the predictions in each cell: an area, or outlines of several."""
        curves = panel.curves
        for place, (curve, style) in enumerate(zip(curves, self.styles, strict=True)):
            filled = place == 0 and len(curves) < 3
            options = {"fill": True, "alpha": 0.45} if filled else {"lw": 0.9, "ls": style.dashes}
            order = 2 - place / len(curves) if len(curves) > 2 else 1 + place
            percent, edges = 100 * curve.share, curve.histogram_edges
            ax.stairs(percent, edges, color=style.color, label=style.name, zorder=order, **options)
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
    """An entry of the legend for all bands: bars stand for intervals, areas for bands."""
    if curve.level is None:
        return
    level, everywhere = f"{100 * curve.level:g} %", curve.bands == "simultaneous"
    if curve.band in ("exact", "bootstrap"):
        name = f"{level} interval ({curve.band}{', all bins' if everywhere else ''})"
    else:
        inner = "" if curve.inner_lower is None else "80 % and "
        name = f"{inner}{level} {curve.band}, {'whole curve' if everywhere else 'at each place'}"
    if curve.curve == "binned":
        options: dict[str, Any] = {"marker": "|", "ms": 7, "mew": 2.5, "ls": ""}
        ax.plot([], [], color=GREY, alpha=0.6, label=name, **options)
    else:
        ax.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=name)


def x_words(curve: Curve, frame: Frame, short: bool = False) -> str:
    """What stands along the axis of predictions."""
    mean = "" if curve.curve in ("isotonic", "belt") else "mean "
    if short:
        return f"{mean}prediction"
    return f"{mean}predicted probability{', log-odds scale' if frame.is_logit else ''}"
