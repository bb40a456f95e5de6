"""Figures, axes and their looks: what all diagrams share.

Figures are made without pyplot, so nothing global is touched, no window opens and none leaks.
"""

from __future__ import annotations

import functools
import hashlib
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError, ParameterError, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Okabe and Ito's colours, told apart by every kind of eye; markers differ too
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#767676"
PURPLE, ORANGE, SKY, BLACK = "#CC79A7", "#E69F00", "#56B4E9", "#222222"
SMALL, TINY = 8, 7
#: a colour and a marker for each of several lines; after six the lines are dashed
LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"))
DASHES = ("-", "--", ":")

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


def one_panel(
    name: str,
    place: tuple[float, float, float, float],
    draw: Callable[[Axes], None],
    ax: Axes | None,
    title: str | None,
    *,
    width: float = WIDTH,
    top: float = TOP,
    letters: int = COLUMN,
) -> Figure:
    """A figure of one panel at this place, which ``draw`` fills; with ``ax``, the figure of those
    axes, which somebody else made."""
    if ax is None:
        _, below, _, height = place
        figure, title = titled_figure(title, width, height, below, top=top, letters=letters)
        ax = axes_at(figure, place, name)
    draw(ax)
    set_title(ax, title)
    return ax.figure  # type: ignore[return-value]


def panel_with_legend(
    name: str,
    height: float,
    draw: Callable[[Axes], None],
    ax: Axes | None,
    title: str | None,
    *,
    entries: int,
    longest: int,
    digits: float = 0.0,
) -> Figure:
    """A figure of one panel, as `one_panel` makes it, with the legend below it, or in ``ax``.

    ``entries`` is how many labels the legend has, and ``longest`` the letters of the longest.
    ``digits`` is extra room, in inches, for the numbers of the y axis.
    """
    below, columns = legend_room(entries, longest > WIDEST)
    left, side = LEFT + digits, PANEL - digits
    figure = one_panel(name, (left, below, side, height), draw, ax, title)
    if ax is not None:
        legend_inside(ax)
        return figure
    panel = figure.axes[0]
    panel.yaxis.set_label_coords((EDGE - left) / side, 0.5)
    legend_below(figure, panel.get_legend_handles_labels()[0], columns)
    return figure


def look_of(number: int) -> tuple[str, str, str]:
    """Colour, marker and dashes of one of several lines; colours come again after the last."""
    again, place = divmod(number, len(LOOKS))
    color, marker = LOOKS[place]
    return color, marker, DASHES[min(again, len(DASHES) - 1)]


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
    """A figure as the bytes of a PNG, SVG or PDF file, the same for the same figure."""
    stream = io.BytesIO()
    no_date = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(stream, format=format, dpi=dpi, metadata=no_date.get(format))
    picture = stream.getvalue()
    return _with_steady_ids(picture) if format == "svg" else picture


def _with_steady_ids(svg: bytes) -> bytes:
    """The picture with ids that depend on its content alone.

    Matplotlib draws the ids of markers and clips at random. With these the same figure gives the
    same file, and two pictures on one page do not share ids.
    """
    names = list(dict.fromkeys(re.findall(rb'id="([a-z][0-9a-f]{10})"', svg)))
    for number, name in enumerate(names):
        svg = svg.replace(name, b"@%d@" % number)
    digest = hashlib.sha256(svg).hexdigest()[:10].encode()
    for number in range(len(names)):
        svg = svg.replace(b"@%d@" % number, b"c%s-%d" % (digest, number))
    return svg
