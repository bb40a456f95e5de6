"""Boxes, arrows and words on a page of inches: pictures to be read on a phone and on paper."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

PICTURES = Path(__file__).parent.parent / "pictures"

#: inches; shown 390 pixels wide, a point is 1.4 pixels
WIDTH = 3.9
DARK, BLUE, GREEN, GREY = "#222222", "#0072B2", "#009E73", "#767676"
PALE_BLUE, PALE_GREEN, PALE_GREY, WHITE = "#DCEBF5", "#DDF1EA", "#F0F0F0", "#FFFFFF"


def new_page(height: float) -> tuple[Figure, Axes]:
    """A white page, with inches from the lower left corner as coordinates."""
    figure = Figure(figsize=(WIDTH, height), dpi=150, facecolor=WHITE)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.axis("off")
    return figure, axes


def box(
    axes: Axes,
    place: tuple[float, float, float, float],
    words: str,
    *,
    fill: str = WHITE,
    edge: str = GREY,
    size: float = 8.5,
    bold: bool = False,
    left: bool = False,
) -> None:
    """A box with words in its middle, or from its left; place: left, bottom, width, height."""
    x, y, width, height = place
    shape = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06",
        facecolor=fill, edgecolor=edge, linewidth=1.0,
    )  # fmt: skip
    axes.add_patch(shape)
    axes.text(
        x + (0.08 if left else width / 2),
        y + height / 2,
        words,
        fontsize=size,
        fontweight="bold" if bold else "normal",
        color=DARK,
        ha="left" if left else "center",
        va="center",
        linespacing=1.25,
    )


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    words: str = "",
    *,
    beside: tuple[float, float] = (0.0, 0.0),
) -> None:
    """An arrow with a word beside its middle."""
    style = {"arrowstyle": "-|>", "color": DARK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)
    if words:
        x, y = (start[0] + end[0]) / 2 + beside[0], (start[1] + end[1]) / 2 + beside[1]
        axes.text(x, y, words, fontsize=8, color=DARK, ha="center", va="center")


def save(figure: Figure, name: str) -> None:
    """The page as a small PNG, without the version of matplotlib."""
    from PIL import Image

    path = PICTURES / f"{name}.png"
    figure.savefig(path, metadata={"Software": None})
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
