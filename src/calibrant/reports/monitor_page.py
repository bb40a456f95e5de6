"""The page of a monitor: the alarm, the evidence, calibration over time, segments, batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibrant.diagrams.monitor_curve import MonitorCurve
from calibrant.reports.axes import PageAxis, PlotArea, linear_axis, numbered, ticks
from calibrant.reports.charts import common_axis, small
from calibrant.reports.markup import Markup, element
from calibrant.reports.monitor_value import MonitorReport, Period
from calibrant.reports.page_parts import (
    Column,
    Word,
    explained,
    fact_section,
    figure,
    folded,
    page_section,
    page_table,
    recipe_section,
    tile_row,
    verdict_section,
    whole_page,
)
from calibrant.reports.svg_parts import (
    area_between,
    chart_frame,
    chart_text,
    line_through,
    look,
    picture,
    told_points,
)
from calibrant.result_tables import counted, shown_percent

#: batches that the page shows at once; all others are folded away
SHOWN = 10
#: segments that the page shows
MOST_SEGMENTS = 50
#: the size of a picture, and where its field is
WIDTH, HEIGHT, LEFT, TOP, FIELD, TALL = 560, 312, 84, 14, 452, 250
#: how much room a word beside a line takes
ROOM = 60
#: the most ticks of evidence
TICKS = 6
#: with more points they are drawn smaller
MANY = 40
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def to_html(report: MonitorReport) -> str:
    """The page as text; whatever comes from data is escaped."""
    sections = (
        verdict_section(report.verdict, _tiles(report), report.how),
        _over_time(report.curve, report.counted_as),
        _periods(report.periods, report.counted_as),
        _segments(report),
        _batches(report.curve, report.counted_as),
        recipe_section("How to go on", report.recipes),
        fact_section(report.facts),
    )
    caution = report.reading.alarm is not None
    return whole_page(report.title, sections, report.to_dict(), caution=caution)


def evidence_words(value: float) -> str:
    """Evidence in two or three digits.

    >>> evidence_words(0.0312), evidence_words(1234.0), evidence_words(math.inf)
    ('0.031', '1,234', '∞')
    """
    if not math.isfinite(value):
        return "∞"
    if value >= 1e6:
        return f"{value:.1e}".replace("e+", "e")
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.2g}"


def _tiles(report: MonitorReport) -> Markup:
    """A few figures: since the change, if there is one."""
    changed = [period for period in report.periods if period.changed]
    own = changed or report.periods
    weight = sum(period.weight for period in own)
    came, expected = (
        shown_percent(sum(p.weight * getattr(p, name) for p in own) / weight)
        for name in ("came", "expected")
    )
    since = " since the change" if changed else ""
    enough = f"alarm at {evidence_words(report.curve.enough)}"
    return tile_row(
        (
            (f"Share of positives{since}", came, f"expected {expected}"),
            ("Evidence", evidence_words(report.reading.evidence), enough),
            ("Batches", f"{report.batches:,}", report.curve.whole_time),
            ("Rows", f"{report.rows:,}", ""),
        )
    )


def _over_time(curve: MonitorCurve, counted_as: str) -> Markup:
    charts = (
        ("Share of positives, expected and observed", _share_chart(curve, counted_as)),
        ("Evidence against the probabilities", _evidence_chart(curve)),
    )
    figures = (figure("large", title, chart) for title, chart in charts)
    told = (
        "Dots are the shares observed in each window. The grey line is the share expected. Its "
        "band holds 95 of 100 windows if the probabilities are right and rows have the same "
        "weight: some always lie outside. The evidence adds up over all windows, and decides."
    )
    if curve.evidence.max(initial=0.0) > curve.drawn_evidence.max(initial=0.0):
        told += f" It is drawn up to {evidence_words(float(curve.drawn_evidence.max()))}."
    if curve.alarm is not None:
        told += " The dotted line is where the change probably began, the full one the alarm."
    both = element("div", *figures, class_="pair")
    return page_section("time", "Over time", both, explained(told))


def _periods(periods: Sequence[Period], counted_as: str) -> Markup:
    several = any(period.changed for period in periods)
    axis = common_axis(period.curve for period in periods)
    figures, names = [], []
    for period in periods:
        title = batch_words(period.first, period.last)
        names.append(f"{title[0].upper()}{title[1:]}")
        drawn = (period.curve, 0 if several and not period.changed else 1)
        figures.append(figure("few", names[-1], small([drawn], f"Reliability of {title}", axis)))
    columns = (
        Column("period", names, ""),
        Column("when", [period.time or "–" for period in periods], "when"),
        Column(counted_as, [counted(period.weight) for period in periods]),
        Column("expected", [shown_percent(period.expected) for period in periods]),
        Column("observed", [shown_percent(period.came) for period in periods]),
    )
    told = (
        "Across: the probability that was given; up: how often the event happened. Points on the "
        "dashed diagonal are right; bands are 95 % intervals."
    )
    told += " Blue is since the change." if several else ""
    return page_section(
        "periods",
        "Calibration in periods",
        element("div", *figures, class_="grid"),
        explained(told),
        page_table("Periods", columns),
    )


def _segments(report: MonitorReport) -> Markup:
    if not report.segments:
        return Markup()
    shown = report.segments[:MOST_SEGMENTS]
    parts = [
        "all" if one.part == (0.0, 1.0) else f"{one.part[0]:.2g} to {one.part[1]:.2g}"
        for one in shown
    ]
    words = [Word("alarm", "worse") if one.alarm else Word("no alarm", "same") for one in shown]
    columns = (
        Column("segment", [str(one.segment) for one in shown], ""),
        Column("most evidence", [evidence_words(one.evidence) for one in shown]),
        Column("alarm of its own at", [evidence_words(one.enough) for one in shown]),
        Column("log-odds moved by", [f"{one.shift:+.2g}".replace("-", "−") for one in shown]),
        Column("for probabilities", parts),
        Column("", words, ""),
    )
    told = (
        "The most evidence that a segment has had so far, and what its likeliest change does. "
        "Where there is no alarm, that change may be noise."
    )
    more = len(report.segments) - MOST_SEGMENTS
    told += f" {more:,} more segments have less evidence." if more > 0 else ""
    return page_section("segments", "Segments", page_table("Segments", columns), explained(told))


def _batches(curve: MonitorCurve, counted_as: str) -> Markup:
    """The newest windows, and all of them folded away."""
    came, expected, low, high = _percents(curve)
    columns = (
        Column("batch", [name.split(" ", 1)[1] for name in _batch_names(curve)], ""),
        Column("when", [time or "–" for time in curve.times], "when"),
        Column(counted_as, [counted(weight) for weight in curve.weight.tolist()]),
        Column("expected", expected),
        Column("observed", came),
        Column("95 % of windows", [f"{a} to {b}" for a, b in zip(low, high, strict=True)]),
        Column("", [_side(curve, i) for i in range(len(curve))], ""),
        Column("evidence after it", [evidence_words(value) for value in curve.evidence.tolist()]),
    )
    newest = [column._replace(cells=column.cells[::-1]) for column in columns]
    parts = [page_table("The newest batches", newest, most=SHOWN)]
    if len(curve) > SHOWN:
        parts.append(folded(f"All {len(curve)} windows", page_table("All windows", newest)))
    return page_section("batches", "Batches, newest first", *parts)


def _side(curve: MonitorCurve, i: int) -> Word:
    """Whether the share of a window lies in its band."""
    low, high, came = curve.low[i], curve.high[i], curve.came[i]
    word = "inside" if low <= came <= high else "above" if came > high else "below"
    return Word(word, "same")


def _batch_names(curve: MonitorCurve) -> list[str]:
    return list(map(batch_words, curve.first.tolist(), curve.last.tolist()))


def _percents(curve: MonitorCurve) -> list[list[str]]:
    """What came, what was expected, and the two ends of its band, window by window."""
    columns = (curve.came, curve.expected, curve.low, curve.high)
    return [[shown_percent(share) for share in column.tolist()] for column in columns]


# --- pictures -----------------------------------------------------------------------------------


def _share_chart(curve: MonitorCurve, counted_as: str) -> Markup:
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
    expected = (area_between(edges, lower, upper, place), line_through(edges, mean, place))
    return _picture(
        "Share of positives in each window",
        place,
        "share of positives",
        element("g", *expected, class_=look(0)),
        *_alarm_lines(curve, place),
        element(
            "g",
            told_points(x, y, _window_words(curve, counted_as), 0),
            class_=f"series {look(1)}{' many' * (len(curve) > MANY)}",
            role="group",
            aria_label=f"shares observed: {len(curve)} points",
        ),
    )


def _evidence_chart(curve: MonitorCurve) -> Markup:
    """The evidence after each window, and the line at which the alarm is raised."""
    value = np.log10(np.append(1.0, curve.drawn_evidence))
    enough = math.log10(curve.enough)
    place = _field(curve, _powers(float(value.min()), max(float(value.max()), enough)))
    at = np.append(curve.edges[0], curve.last.astype(np.float64))
    level = float(place.down(enough))
    flat = element("path", class_="alarm dashed", d=f"M{LEFT} {level:.1f}h{FIELD}")
    said = chart_text(LEFT + 6, level - 6, f"alarm at {curve.enough:,.4g}", "start")
    return _picture(
        "Evidence against the probabilities",
        place,
        "evidence",
        flat,
        *_alarm_lines(curve, place, named=True),
        element("g", line_through(at, value, place), class_=f"series {look(1)}"),
        element("g", said, class_="alarm-words"),
    )


def _window_words(curve: MonitorCurve, counted_as: str) -> list[Sequence[str]]:
    """What the point of each window says."""
    columns = (_batch_names(curve), curve.times, *_percents(curve), curve.weight.tolist())
    return [
        (
            f"{name} ({time})" if time else name,
            f"observed {came}",
            f"expected {expected}",
            f"95 % of windows: {low} to {high}",
            f"{counted_as} {counted(weight)}",
        )
        for name, time, came, expected, low, high, weight in zip(*columns, strict=True)
    ]


def batch_words(first: int, last: int) -> str:
    """The batches of a window.

    >>> batch_words(3, 3), batch_words(3, 5)
    ('batch 3', 'batches 3 to 5')
    """
    return f"batch {first:,}" if first == last else f"batches {first:,} to {last:,}"


def _picture(name: str, place: PlotArea, left: str, *parts: Markup) -> Markup:
    below = chart_text(LEFT + FIELD / 2, HEIGHT - 6, "batch", "middle")
    return picture("chart", name, (WIDTH, HEIGHT), chart_frame(place, left), below, *parts)


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
        parts.append(element("path", class_=kind, d=f"M{x:.1f} {TOP}v{TALL}"))
        if named:  # outside of the two lines, as far as there is room
            left = x > LEFT + ROOM if line == 0 else x > LEFT + FIELD - ROOM
            y = (TOP + 18, TOP + TALL - 8)[line]  # right of an alarm the curve is high
            text = chart_text(x + (-6 if left else 6), y, word, "end" if left else "start")
            parts.append(element("g", text, class_="alarm-words"))
    return parts
