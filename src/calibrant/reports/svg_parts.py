"""What pictures are drawn with: frames, words, lines, areas, and points that can be asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.array_types import Array
from calibrant.reports.axes import PlotArea, path_of
from calibrant.reports.markup import Markup, element, join

#: colours and dashes by number: 0 is for the scores as they are, 1 for what was chosen
COLOURS, DASHES = 7, 4
#: outlines of the markers, around the origin
MARKS = (
    "M-4.2 0A4.2 4.2 0 1 1 4.2 0A4.2 4.2 0 1 1 -4.2 0Z",
    "M-3.8-3.8H3.8V3.8H-3.8Z",
    "M0-5L4.8 3.6H-4.8Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.8-3.6H-4.8Z",
    "M-4.5-1.5H-1.5V-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5Z",
)


def look(number: int) -> str:
    """The classes of a series: its colour, and from the eighth on another dash."""
    if number < 2:
        return f"c{number} d0"
    turn, colour = divmod(number - 2, COLOURS - 2)
    return f"c{colour + 2} d{(turn + 1) % DASHES}"


def swatch(number: int) -> Markup:
    """A piece of a series' line with its marker, for legends."""
    line = element("path", class_="line", d="M1 8H31")
    mark = element("path", class_="mark", d=mark_of(number), transform="translate(16 8)")
    kind = f"swatch {look(number)}"
    return element("svg", line, mark, class_=kind, viewBox="0 0 32 16", aria_hidden="true")


def mark_of(number: int) -> str:
    """The outline of the marker of a series."""
    return MARKS[number % len(MARKS)]


def picture(
    kind: str, name: str, size: tuple[float, float], *parts: Markup, role: str = "group"
) -> Markup:
    """A picture of this width and height; ``name`` is what it is called where it is not seen."""
    box = f"0 0 {size[0]} {size[1]}"
    return element("svg", *parts, class_=kind, viewBox=box, role=role, aria_label=name)


def chart_frame(place: PlotArea, left: str = "") -> Markup:
    """The square: grid and diagonal, and, where the upright axis has a name, numbers along it."""
    bottom = place.top + place.height
    parts = []
    for value in place.x.ticks:
        at = float(place.across(value))
        parts.append(element("path", class_="grid", d=f"M{at:.1f} {place.top}v{place.height}"))
        if left:
            parts.append(chart_text(at, bottom + 18, place.x.said(value), "middle"))
    for value in place.y.ticks:
        at = float(place.down(value))
        parts.append(element("path", class_="grid", d=f"M{place.left} {at:.1f}h{place.width}"))
        if left:
            parts.append(chart_text(place.left - 8, at + 4, place.y.said(value), "end"))
    if place.x == place.y:
        ends = np.array([place.x.low, place.x.high])
        d = path_of(place.across(ends), place.down(ends))
        parts.append(element("path", class_="diagonal", d=d))
    size = {"width": place.width, "height": place.height}
    parts.append(element("rect", class_="box", x=place.left, y=place.top, **size))
    if left:
        parts.append(upright_text(round(place.top + place.height / 2), left))
    return element("g", *parts, aria_hidden="true")


def chart_text(x: float, y: float, words: str, anchor: str) -> Markup:
    """Words at a place of a picture."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def upright_text(y: float, words: str) -> Markup:
    """Words along the left side of a picture, read from below."""
    turned = f"translate(16 {y}) rotate(-90)"
    return element("text", words, transform=turned, text_anchor="middle")


def area_between(x: Array, lower: Array, upper: Array, place: PlotArea) -> Markup:
    """The area of a band: along its lower end, and back along the upper one."""
    across = place.across(np.concatenate((x, x[::-1])))
    d = path_of(across, place.down(np.concatenate((lower, upper[::-1]))), closed=True)
    return element("path", class_="band", d=d)


def line_through(x: Array, y: Array, place: PlotArea) -> Markup:
    """A line through points."""
    return element("path", class_="line", d=path_of(place.across(x), place.down(y)))


def told_points(x: Array, y: Array, words: Sequence[Sequence[str]], number: int) -> Markup:
    """Markers at places of a picture; each says its words under the mouse and to the keyboard."""
    points = []
    for across, down, lines in zip(x.tolist(), y.tolist(), words, strict=True):
        point = element(
            "g",
            element("title", "\n".join(lines)),
            element("circle", class_="reach", r="11"),
            element("path", class_="mark", d=mark_of(number)),
            class_="point",
            transform=f"translate({across:.1f} {down:.1f})",
            tabindex="0",
            role="img",
            aria_label=", ".join(lines),
        )
        points.append(point)
    return join(points)
