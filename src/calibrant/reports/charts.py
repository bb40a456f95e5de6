"""The page's pictures: SVG written from curves. Colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from calibrant.diagrams.curve_value import Curve
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
from calibrant.reports.markup import Markup, element
from calibrant.reports.report_value import Method, PredictionSpread
from calibrant.reports.svg_parts import (
    area_between,
    chart_frame,
    chart_text,
    line_through,
    look,
    mark_of,
    picture,
    told_points,
    upright_text,
)

#: the picture of reliability: its size, and where its square and its histogram are
WIDTH, SIDE, LEFT, TOP, HIST_TOP, HIST, HEIGHT = 560, 470, 66, 14, 524, 64, 616


def common_axis(curves: Iterable[Curve], *, odds: bool = False) -> PageAxis:
    """An axis of probabilities, or of log-odds, that holds the points of all curves."""
    columns = [column for curve in curves for column in (curve.mean_p, curve.fraction)]
    return logit_axis(columns) if odds else probability_axis(columns)


# --- the large picture --------------------------------------------------------------------------


def reliability(
    methods: Sequence[Method], order: Sequence[int], words: tuple[str, str], *, odds: bool
) -> Markup:
    """Curves of all methods in one picture, each a group that can be hidden; histograms below.

    ``order`` gives the look of each method; ``words`` are the names of both axes.
    """
    axis = common_axis((method.curve for method in methods), odds=odds)
    place = PlotArea(LEFT, TOP, SIDE, SIDE, axis, axis)
    spreads = [m.logit_spread if odds else m.spread for m in methods]
    tallest = max(float(s.share.max(initial=0.0)) for s in spreads) or 1.0
    below = PlotArea(LEFT, HIST_TOP, SIDE, HIST, axis, linear_axis(0.0, tallest))
    series = []
    for place_of, (method, spread, number) in enumerate(zip(methods, spreads, order, strict=True)):
        group = element(
            "g",
            _histogram(spread, below),
            _band(method.curve, place),
            line_through(method.curve.mean_p, method.curve.fraction, place),
            _points(method, place, number),
            class_=f"series series-{place_of} {look(number)}",
            role="group",
            aria_label=f"{method.name}: {len(method.curve)} points",
        )
        series.append(group)
    # what was chosen lies on top
    series.sort(key=lambda group: "c1 d0" in group)
    return picture(
        "chart",
        f"Reliability diagram, {'log-odds axes' if odds else 'probability axes'}",
        (WIDTH, HEIGHT),
        chart_frame(place, words[1]),
        chart_text(LEFT + SIDE / 2, HEIGHT - 4, words[0], "middle"),
        upright_text(HIST_TOP + HIST / 2, "share"),
        element("path", class_="axis", d=f"M{LEFT} {HIST_TOP + HIST}h{SIDE}"),
        *series,
    )


def _histogram(spread: PredictionSpread, place: PlotArea) -> Markup:
    """The outline of a histogram, from the ground up and down again."""
    edges, share = np.repeat(spread.edges, 2), np.repeat(spread.share, 2)
    y = np.concatenate(([0.0], share, [0.0]))
    d = path_of(place.across(edges), place.down(y))
    return element("path", class_="histogram", d=d)


def _band(curve: Curve, place: PlotArea) -> Markup:
    if curve.lower is None or curve.upper is None:
        return Markup()
    if len(curve) > 1:
        return area_between(curve.mean_p, curve.lower, curve.upper, place)
    ends = np.concatenate((curve.lower, curve.upper))
    d = path_of(place.across(np.repeat(curve.mean_p, 2)), place.down(ends))
    return element("path", class_="whisker", d=d)


def _points(method: Method, place: PlotArea, number: int) -> Markup:
    curve = method.curve
    x, y = place.across(curve.mean_p), place.down(curve.fraction)
    words = [(method.name, *_point_words(curve, i)) for i in range(len(curve))]
    return told_points(x, y, words, number)


def _point_words(curve: Curve, i: int) -> tuple[str, ...]:
    """What a point says."""
    places = 3 if curve.histogram_edges[-1] - curve.histogram_edges[0] > 0.2 else 5
    words = [
        f"predicted {curve.mean_p[i]:.{places}f}",
        f"observed {curve.fraction[i]:.{places}f}",
    ]
    if curve.lower is not None and curve.upper is not None and curve.level is not None:
        ends = f"{curve.lower[i]:.{places}f} to {curve.upper[i]:.{places}f}"
        words.append(f"{100 * curve.level:g} % interval {ends}")
    return (*words, f"weight {curve.weight[i]:,.10g}")


# --- small pictures -----------------------------------------------------------------------------


def small(curves: Sequence[tuple[Curve, int]], name: str, axis: PageAxis | None = None) -> Markup:
    """Curves in a small square, for one method, segment, class or time; by default on an axis of
    their own."""
    axis = axis or common_axis([curve for curve, _ in curves])
    place = PlotArea(34, 6, 160, 160, axis, axis)
    shown = PageAxis(axis.low, axis.high, (axis.low, axis.high))
    series = []
    for curve, number in curves:
        x, y = place.across(curve.mean_p), place.down(curve.fraction)
        marks = (
            element("path", class_="mark", d=mark_of(number), transform=f"{at} scale(.7)")
            for at in (f"translate({a:.1f} {b:.1f})" for a, b in zip(x, y, strict=True))
        )
        line = line_through(curve.mean_p, curve.fraction, place)
        kind = f"series {look(number)}"
        series.append(element("g", _band(curve, place), line, *marks, class_=kind))
    return picture(
        "small",
        name,
        (208, 190),
        chart_frame(replace(place, x=shown, y=shown)),
        chart_text(30, 14, numbered(axis.high), "end"),
        chart_text(30, 168, numbered(axis.low), "end"),
        chart_text(194, 182, numbered(axis.high), "end"),
        chart_text(34, 182, numbered(axis.low), "start"),
        *series,
        role="img",
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
        element("path", class_="zero", d=f"M{zero:.1f} 0v20"),
        element("path", class_="line", d=f"M{first:.1f} 10H{last:.1f}"),
        element("circle", class_="dot", cx=f"{at:.1f}", cy="10", r="4"),
        class_=f"forest {kind}",
        viewBox="0 0 160 20",
        aria_hidden="true",
    )


def map_picture(curve: MapCurve) -> Markup:
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
        parts.append(area_between(curve.x, curve.lower, curve.upper, place))
    parts.append(line_through(curve.x, curve.p, place))
    if 0 < len(curve.knots) <= 200:
        at = place.across(curve.knots)
        d = "".join(f"M{a:.1f} {TOP + SIDE}v-7" for a in at)
        parts.append(element("path", class_="knots", d=d))
    return picture(
        "chart",
        "The map from score to calibrated probability",
        (WIDTH, 532),
        chart_frame(place, "calibrated probability"),
        chart_text(LEFT + SIDE / 2, 526, "score", "middle"),
        element("g", *parts, class_=f"series {look(1)}"),
        role="img",
    )
