"""What pictures are drawn with: frames, words, lines, areas, and points that can be asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.arrays import Array
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
    line = element("path", {"class": "line", "d": "M1 8H31"})
    mark = element("path", {"class": "mark", "d": mark_of(number), "transform": "translate(16 8)"})
    options = {"class": f"swatch {look(number)}", "viewBox": "0 0 32 16", "aria-hidden": "true"}
    return element("svg", options, line, mark)


def mark_of(number: int) -> str:
    """The outline of the marker of a series."""
    return MARKS[number % len(MARKS)]


def chart_frame(place: PlotArea, left: str, *, labels: bool = True) -> Markup:
    """The square: grid, numbers, diagonal, and the name of the upright axis."""
    parts = []
    for axis, upright in ((place.x, False), (place.y, True)):
        for value in axis.ticks:
            at = float(place.down(value) if upright else place.across(value))
            grid = f"M{at:.1f} {place.top}v{place.height}"
            if upright:
                grid = f"M{place.left} {at:.1f}h{place.width}"
            parts.append(element("path", {"class": "grid", "d": grid}))
            if labels and upright:
                parts.append(chart_text(place.left - 8, at + 4, axis.said(value), "end"))
            elif labels:
                parts.append(
                    chart_text(at, place.top + place.height + 18, axis.said(value), "middle")
                )
    both = np.array([max(place.x.low, place.y.low), min(place.x.high, place.y.high)])
    if place.x == place.y:
        line = path_of(place.across(both), place.down(both))
        parts.append(element("path", {"class": "diagonal", "d": line}))
    box = {"class": "box", "x": place.left, "y": place.top}
    parts.append(element("rect", box | {"width": place.width, "height": place.height}))
    if labels:
        middle = place.top + place.height / 2
        parts.append(chart_text(0, 0, left, "middle", f"translate(16 {middle:.0f}) rotate(-90)"))
    return element("g", {"aria-hidden": "true"}, *parts)


def chart_text(x: float, y: float, words: str, anchor: str, transform: str | None = None) -> Markup:
    """Words at a place of a picture, or where a transformation puts them."""
    place = {"transform": transform} if transform else {"x": f"{x:.1f}", "y": f"{y:.1f}"}
    return element("text", {**place, "text-anchor": anchor}, words)


def area_between(x: Array, lower: Array, upper: Array, place: PlotArea) -> Markup:
    """The area of a band: along its lower end, and back along the upper one."""
    across = place.across(np.concatenate((x, x[::-1])))
    d = path_of(across, place.down(np.concatenate((lower, upper[::-1]))), closed=True)
    return element("path", {"class": "band", "d": d})


def line_through(x: Array, y: Array, place: PlotArea) -> Markup:
    """A line through points."""
    return element("path", {"class": "line", "d": path_of(place.across(x), place.down(y))})


def told_points(x: Array, y: Array, words: Sequence[Sequence[str]], number: int) -> Markup:
    """Markers at places of a picture; each says its words under the mouse and to the keyboard."""
    points = []
    for across, down, lines in zip(x.tolist(), y.tolist(), words, strict=True):
        options = {
            "class": "point",
            "transform": f"translate({across:.1f} {down:.1f})",
            "tabindex": "0",
            "role": "img",
            "aria-label": ", ".join(lines),
        }
        shape = element("path", {"class": "mark", "d": mark_of(number)})
        reach = element("circle", {"class": "reach", "r": "11"})
        points.append(element("g", options, element("title", None, "\n".join(lines)), reach, shape))
    return join(points)
