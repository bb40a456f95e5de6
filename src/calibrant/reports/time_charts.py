"""The page's pictures of a monitor: shares over time with their bands, and the evidence."""

from __future__ import annotations

import math

import numpy as np

from calibrant.diagrams.monitor_curve import MonitorCurve, time_words
from calibrant.reports.axes import PageAxis, PlotArea, linear_axis, numbered, ticks
from calibrant.reports.markup import Markup, element
from calibrant.reports.svg_parts import (
    area_between,
    chart_frame,
    chart_text,
    line_through,
    look,
    told_points,
)
from calibrant.result_tables import counted, shown_percent

#: the size of a picture, and where its field is
WIDTH, HEIGHT, LEFT, TOP, FIELD, TALL = 560, 312, 84, 14, 452, 250
#: how much room a word beside a line takes
ROOM = 60
#: the most ticks of evidence
TICKS = 6
#: with more points they are drawn smaller
MANY = 40
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def share_chart(curve: MonitorCurve, counted_as: str) -> Markup:
    """The share of positives in each window, beside what was expected.

    ``counted_as`` says what the weight of a window is: rows, or weight.
    """
    columns = (curve.came, curve.low, curve.high)
    low, high = (float(end(c)) for end, c in ((np.min, columns), (np.max, columns)))
    room = 0.06 * (high - low) or 0.01
    place = _field(curve, _shares(max(0.0, low - room), min(1.0, high + room)))
    edges = np.repeat(curve.edges, 2)[1:-1]
    lower, upper, mean = (np.repeat(c, 2) for c in (curve.low, curve.high, curve.expected))
    x, y = place.across(curve.middle), place.down(curve.came)
    words = [window_words(curve, i, counted_as) for i in range(len(curve))]
    expected = (area_between(edges, lower, upper, place), line_through(edges, mean, place))
    return _picture(
        "Share of positives in each window",
        place,
        "share of positives",
        element("g", {"class": look(0)}, *expected),
        *_alarm_lines(curve, place),
        element(
            "g",
            {
                "class": f"series {look(1)}{' many' * (len(curve) > MANY)}",
                "role": "group",
                "aria-label": f"shares observed: {len(curve)} points",
            },
            told_points(x, y, words, 0),
        ),
    )


def evidence_chart(curve: MonitorCurve) -> Markup:
    """The evidence after each window, and the line at which the alarm is raised."""
    value = np.log10(np.append(1.0, curve.drawn_evidence))
    enough = math.log10(curve.enough)
    place = _field(curve, _powers(float(value.min()), max(float(value.max()), enough)))
    at = np.append(curve.edges[0], curve.last.astype(np.float64))
    level = float(place.down(enough))
    flat = element("path", {"class": "alarm dashed", "d": f"M{LEFT} {level:.1f}h{FIELD}"})
    said = chart_text(LEFT + 6, level - 6, f"alarm at {curve.enough:,.4g}", "start")
    return _picture(
        "Evidence against the probabilities",
        place,
        "evidence",
        flat,
        *_alarm_lines(curve, place, named=True),
        element("g", {"class": f"series {look(1)}"}, line_through(at, value, place)),
        element("g", {"class": "alarm-words"}, said),
    )


def window_words(curve: MonitorCurve, i: int, counted_as: str) -> tuple[str, ...]:
    """What the point of a window says."""
    time = time_words(curve.since[i], curve.until[i])
    ends = f"{shown_percent(float(curve.low[i]))} to {shown_percent(float(curve.high[i]))}"
    return (
        batch_words(int(curve.first[i]), int(curve.last[i])) + (f" ({time})" if time else ""),
        f"observed {shown_percent(float(curve.came[i]))}",
        f"expected {shown_percent(float(curve.expected[i]))}",
        f"95 % of windows: {ends}",
        f"{counted_as} {counted(float(curve.weight[i]))}",
    )


def batch_words(first: int, last: int) -> str:
    """The batches of a window.

    >>> batch_words(3, 3), batch_words(3, 5)
    ('batch 3', 'batches 3 to 5')
    """
    return f"batch {first:,}" if first == last else f"batches {first:,} to {last:,}"


# --- parts ----------------------------------------------------------------------------------------


def _picture(name: str, place: PlotArea, left: str, *parts: Markup) -> Markup:
    options = {"class": "chart", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "group"}
    below = chart_text(LEFT + FIELD / 2, HEIGHT - 6, "batch", "middle")
    return element("svg", options | {"aria-label": name}, chart_frame(place, left), below, *parts)


def _field(curve: MonitorCurve, up: PageAxis) -> PlotArea:
    """The field of a picture, with an axis of batches."""
    first, last = float(curve.edges[0]), float(curve.edges[-1])
    whole = tuple(t for t in ticks(first, last) if t == int(t) and t >= 1.0)
    across = PageAxis(first, last, whole or (float(curve.first[0]),))
    return PlotArea(LEFT, TOP, FIELD, TALL, across, up)


def _shares(low: float, high: float) -> PageAxis:
    plain = linear_axis(low, high)
    words = tuple(f"{numbered(round(100.0 * tick, 8))} %" for tick in plain.ticks)
    return PageAxis(low, high, plain.ticks, words=words)


def _powers(low: float, high: float) -> PageAxis:
    """An axis of powers of ten, from below 1 to above all evidence."""
    first, last = math.floor(min(low, -0.5)), math.ceil(high + 0.2)
    step = -(-(last - first) // TICKS)
    found = [k for k in range(first, last + 1) if k % step == 0]
    words = (f"{10.0**k:,g}" if -3 <= k <= 3 else f"10{str(k).translate(RAISED)}" for k in found)
    return PageAxis(float(first), float(last), tuple(map(float, found)), words=tuple(words))


def _alarm_lines(curve: MonitorCurve, place: PlotArea, *, named: bool = False) -> list[Markup]:
    """A line where the alarm came, and one where the change probably began."""
    if curve.alarm is None or curve.change is None:
        return []
    parts = []
    both = ((curve.change - 0.5, "alarm dotted", "change"), (float(curve.alarm), "alarm", "alarm"))
    for line, (at, kind, word) in enumerate(both):
        x = float(place.across(at))
        parts.append(element("path", {"class": kind, "d": f"M{x:.1f} {TOP}v{TALL}"}))
        if named:  # outside of the two lines, as far as there is room
            left = x > LEFT + ROOM if line == 0 else x > LEFT + FIELD - ROOM
            y = (TOP + 18, TOP + TALL - 8)[line]  # right of an alarm the curve is high
            text = chart_text(x + (-6 if left else 6), y, word, "end" if left else "start")
            parts.append(element("g", {"class": "alarm-words"}, text))
    return parts
