"""The page's pictures: SVG written from curves. Colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.diagrams.curves import Curve
from calibrant.diagrams.map_lines import MapCurve
from calibrant.reports.axes import (
    PageAxis,
    PlotArea,
    linear_axis,
    logit_axis,
    numbered,
    path_of,
    probability_axis,
)
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.report_value import Method, PredictionSpread

__all__ = ["forest", "map_picture", "reliability", "small", "swatch"]

Array = NDArray[np.float64]

#: the picture of reliability: its size, and where its square and its histogram are
WIDTH, SIDE, LEFT, TOP, HIST_TOP, HIST, HEIGHT = 560, 470, 66, 14, 524, 64, 616
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
    mark = element("path", {"class": "mark", "d": _mark(number), "transform": "translate(16 8)"})
    options = {"class": f"swatch {look(number)}", "viewBox": "0 0 32 16", "aria-hidden": "true"}
    return element("svg", options, line, mark)


def _mark(number: int) -> str:
    return MARKS[number % len(MARKS)]


# --- the large picture --------------------------------------------------------------------------


def reliability(
    methods: Sequence[Method], order: Sequence[int], words: tuple[str, str, str], *, odds: bool
) -> Markup:
    """Curves of all methods in one picture, each a group that can be hidden; histograms below.

    ``order`` gives the look of each method; ``words`` are the names of both axes and of what is
    counted.
    """
    columns = [c for m in methods for c in (m.curve.mean_p, m.curve.fraction)]
    make = logit_axis if odds else probability_axis
    axis = make(columns)
    place = PlotArea(LEFT, TOP, SIDE, SIDE, axis, axis)
    spreads = [m.logit_spread if odds else m.spread for m in methods]
    tallest = max(float(s.share.max(initial=0.0)) for s in spreads) or 1.0
    below = PlotArea(LEFT, HIST_TOP, SIDE, HIST, axis, linear_axis(0.0, tallest))
    series = []
    for place_of, (method, spread, number) in enumerate(zip(methods, spreads, order, strict=True)):
        series.append(
            element(
                "g",
                {
                    "class": f"series series-{place_of} {look(number)}",
                    "role": "group",
                    "aria-label": f"{method.name}: {len(method.curve)} points",
                },
                _histogram(spread, below),
                _band(method.curve, place),
                _line(method.curve.mean_p, method.curve.fraction, place),
                _points(method, place, number, words[2]),
            )
        )
    # what was chosen lies on top
    series.sort(key=lambda group: "c1 d0" in group)
    name = f"Reliability diagram, {'log-odds axes' if odds else 'probability axes'}"
    return element(
        "svg",
        {"class": "chart", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "group", "aria-label": name},
        _frame(place, words[1]),
        _text(LEFT + SIDE / 2, HEIGHT - 4, words[0], "middle"),
        _text(0, 0, "share", "middle", f"translate(16 {HIST_TOP + HIST / 2}) rotate(-90)"),
        element("path", {"class": "axis", "d": f"M{LEFT} {HIST_TOP + HIST}h{SIDE}"}),
        *series,
    )


def _frame(place: PlotArea, left: str, *, labels: bool = True) -> Markup:
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
                parts.append(_text(place.left - 8, at + 4, numbered(value), "end"))
            elif labels:
                parts.append(_text(at, place.top + place.height + 18, numbered(value), "middle"))
    both = np.array([max(place.x.low, place.y.low), min(place.x.high, place.y.high)])
    if place.x == place.y:
        line = path_of(place.across(both), place.down(both))
        parts.append(element("path", {"class": "diagonal", "d": line}))
    box = {"class": "box", "x": place.left, "y": place.top}
    parts.append(element("rect", box | {"width": place.width, "height": place.height}))
    if labels:
        middle = place.top + place.height / 2
        parts.append(_text(0, 0, left, "middle", f"translate(16 {middle:.0f}) rotate(-90)"))
    return element("g", {"aria-hidden": "true"}, *parts)


def _text(x: float, y: float, words: str, anchor: str, transform: str | None = None) -> Markup:
    place = {"transform": transform} if transform else {"x": f"{x:.1f}", "y": f"{y:.1f}"}
    return element("text", {**place, "text-anchor": anchor}, words)


def _histogram(spread: PredictionSpread, place: PlotArea) -> Markup:
    """The outline of a histogram, from the ground up and down again."""
    edges, share = np.repeat(spread.edges, 2), np.repeat(spread.share, 2)
    y = np.concatenate(([0.0], share, [0.0]))
    d = path_of(place.across(edges), place.down(y))
    return element("path", {"class": "histogram", "d": d})


def _band(curve: Curve, place: PlotArea) -> Markup:
    if curve.lower is None or curve.upper is None:
        return Markup()
    if len(curve) > 1:
        return _area(curve.mean_p, curve.lower, curve.upper, place)
    ends = np.concatenate((curve.lower, curve.upper))
    d = path_of(place.across(np.repeat(curve.mean_p, 2)), place.down(ends))
    return element("path", {"class": "whisker", "d": d})


def _area(x: Array, lower: Array, upper: Array, place: PlotArea) -> Markup:
    """The area of a band: along its lower end, and back along the upper one."""
    across = place.across(np.concatenate((x, x[::-1])))
    d = path_of(across, place.down(np.concatenate((lower, upper[::-1]))), closed=True)
    return element("path", {"class": "band", "d": d})


def _line(x: Array, y: Array, place: PlotArea) -> Markup:
    return element("path", {"class": "line", "d": path_of(place.across(x), place.down(y))})


def _points(method: Method, place: PlotArea, number: int, counted: str) -> Markup:
    curve = method.curve
    x, y = place.across(curve.mean_p), place.down(curve.fraction)
    points = []
    for i in range(len(curve)):
        words = (method.name, *point_words(curve, i, counted))
        options = {
            "class": "point",
            "transform": f"translate({x[i]:.1f} {y[i]:.1f})",
            "tabindex": "0",
            "role": "img",
            "aria-label": ", ".join(words),
        }
        shape = element("path", {"class": "mark", "d": _mark(number)})
        reach = element("circle", {"class": "reach", "r": "11"})
        points.append(element("g", options, element("title", None, "\n".join(words)), reach, shape))
    return join(points)


def point_words(curve: Curve, i: int, counted: str) -> tuple[str, ...]:
    """What a point says."""
    places = 3 if curve.histogram_edges[-1] - curve.histogram_edges[0] > 0.2 else 5
    words = [
        f"predicted {curve.mean_p[i]:.{places}f}",
        f"came {curve.fraction[i]:.{places}f}",
    ]
    if curve.lower is not None and curve.upper is not None and curve.level is not None:
        ends = f"{curve.lower[i]:.{places}f} to {curve.upper[i]:.{places}f}"
        words.append(f"{100 * curve.level:g} % interval {ends}")
    return (*words, f"{counted} {curve.weight[i]:,.10g}")


# --- small pictures -----------------------------------------------------------------------------


def small(curves: Sequence[tuple[Curve, int]], name: str) -> Markup:
    """Curves in a small square, for one method, segment or class."""
    axis = probability_axis([c for curve, _ in curves for c in (curve.mean_p, curve.fraction)])
    place = PlotArea(34, 6, 160, 160, axis, axis)
    shown = PageAxis(axis.low, axis.high, (axis.low, axis.high))
    series = []
    for curve, number in curves:
        x, y = place.across(curve.mean_p), place.down(curve.fraction)
        marks = [
            element(
                "path",
                {
                    "class": "mark",
                    "d": _mark(number),
                    "transform": f"translate({a:.1f} {b:.1f}) scale(.7)",
                },
            )
            for a, b in zip(x, y, strict=True)
        ]
        line = _line(curve.mean_p, curve.fraction, place)
        group = (_band(curve, place), line, *marks)
        series.append(element("g", {"class": f"series {look(number)}"}, *group))
    return element(
        "svg",
        {"class": "small", "viewBox": "0 0 208 190", "role": "img", "aria-label": name},
        _frame(replace(place, x=shown, y=shown), "", labels=False),
        _text(30, 14, numbered(axis.high), "end"),
        _text(30, 168, numbered(axis.low), "end"),
        _text(194, 182, numbered(axis.high), "end"),
        _text(34, 182, numbered(axis.low), "start"),
        *series,
    )


def forest(method: Method, ends: tuple[float, float]) -> Markup:
    """The gain of a method with its interval, beside the line of no gain."""
    low, high = method.gain_low, method.gain_high
    if method.gain is None or low is None or high is None or not np.isfinite([low, high]).all():
        return Markup()
    axis = linear_axis(*ends)
    place = PlotArea(6, 4, 148, 12, axis, linear_axis(0.0, 1.0))
    zero, at = float(place.across(0.0)), float(place.across(method.gain))
    first, last = place.across(np.array([low, high]))
    kind = "good" if low > 0 else "bad" if high < 0 else "even"
    return element(
        "svg",
        {"class": f"forest {kind}", "viewBox": "0 0 160 20", "aria-hidden": "true"},
        element("path", {"class": "zero", "d": f"M{zero:.1f} 0v20"}),
        element("path", {"class": "line", "d": f"M{first:.1f} 10H{last:.1f}"}),
        element("circle", {"class": "dot", "cx": f"{at:.1f}", "cy": "10", "r": "4"}),
    )


def map_picture(curve: MapCurve, words: tuple[str, str]) -> Markup:
    """The chosen map: from scores to probabilities, with its band and its knots if they are few."""
    low, high = float(curve.x[0]), float(curve.x[-1])
    across = linear_axis(low, high)
    columns = [c for c in (curve.p, curve.lower, curve.upper) if c is not None]
    up = probability_axis(columns)
    if curve.domain == "probability" and (low, high) == (0.0, 1.0):
        up = across
    place = PlotArea(LEFT, TOP, SIDE, SIDE, across, up)
    parts = []
    if curve.lower is not None and curve.upper is not None:
        parts.append(_area(curve.x, curve.lower, curve.upper, place))
    parts.append(_line(curve.x, curve.p, place))
    if 0 < len(curve.knots) <= 200:
        at = place.across(curve.knots)
        d = "".join(f"M{a:.1f} {TOP + SIDE}v-7" for a in at)
        parts.append(element("path", {"class": "knots", "d": d}))
    name = f"The map from {words[0]} to {words[1]}"
    return element(
        "svg",
        {"class": "chart", "viewBox": f"0 0 {WIDTH} 532", "role": "img", "aria-label": name},
        _frame(place, words[1]),
        _text(LEFT + SIDE / 2, 526, words[0], "middle"),
        element("g", {"class": f"series {look(1)}"}, *parts),
    )
