"""The page of a monitor: the alarm, the evidence, calibration over time, segments, batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.diagrams.monitor_curve import MonitorCurve, time_words
from calibrant.reports.charts import common_axis, small
from calibrant.reports.markup import Markup, element
from calibrant.reports.monitor_value import MonitorReport, Period
from calibrant.reports.page_parts import (
    Word,
    explained,
    fact_section,
    figure,
    page_section,
    page_table,
    recipe_section,
    tile_row,
    verdict_section,
    whole_page,
)
from calibrant.reports.time_charts import batch_words, evidence_chart, share_chart
from calibrant.result_tables import counted, shown_percent

#: batches that the page shows at once; all others are folded away
SHOWN = 10
#: segments that the page shows
MOST_SEGMENTS = 50


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
        ("Share of positives, expected and observed", share_chart(curve, counted_as)),
        ("Evidence against the probabilities", evidence_chart(curve)),
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
    return page_section(
        "time",
        "Over time",
        element("div", {"class": "pair"}, *figures),
        explained(told),
    )


def _periods(periods: Sequence[Period], counted_as: str) -> Markup:
    several = any(period.changed for period in periods)
    axis = common_axis(period.curve for period in periods)
    figures, rows = [], []
    for period in periods:
        title = batch_words(period.first, period.last)
        words = f"{title[0].upper()}{title[1:]}"
        name = f"Reliability of {title}"
        look = 0 if several and not period.changed else 1
        figures.append(figure("few", words, small([(period.curve, look)], name, axis)))
        came, expected = shown_percent(period.came), shown_percent(period.expected)
        rows.append((words, period.time or "–", counted(period.weight), expected, came))
    columns = [
        ("period", ""),
        ("when", "when"),
        (counted_as, "n"),
        ("expected", "n"),
        ("observed", "n"),
    ]
    told = (
        "Across: the probability that was given; up: how often the event happened. Points on the "
        "dashed diagonal are right; bands are 95 % intervals."
    )
    told += " Blue is since the change." if several else ""
    return page_section(
        "periods",
        "Calibration in periods",
        element("div", {"class": "grid"}, *figures),
        explained(told),
        page_table(columns, rows, "Periods"),
    )


def _segments(report: MonitorReport) -> Markup:
    if not report.segments:
        return Markup()
    columns = [
        ("segment", ""),
        ("most evidence", "n"),
        ("alarm of its own at", "n"),
        ("log-odds moved by", "n"),
        ("for probabilities", "n"),
        ("", ""),
    ]
    rows = []
    for one in report.segments[:MOST_SEGMENTS]:
        low, high = one.part
        rows.append(
            (
                str(one.segment),
                evidence_words(one.evidence),
                evidence_words(one.enough),
                f"{one.shift:+.2g}".replace("-", "−"),
                "all" if (low, high) == (0.0, 1.0) else f"{low:.2g} to {high:.2g}",
                Word("alarm", "worse") if one.alarm else Word("no alarm", "same"),
            )
        )
    told = (
        "The most evidence that a segment has had so far, and what its likeliest change does. "
        "Where there is no alarm, that change may be noise."
    )
    more = len(report.segments) - MOST_SEGMENTS
    told += f" {more:,} more segments have less evidence." if more > 0 else ""
    return page_section(
        "segments",
        "Segments",
        page_table(columns, rows, "Segments"),
        explained(told),
    )


def _batches(curve: MonitorCurve, counted_as: str) -> Markup:
    """The newest windows, and all of them folded away."""
    columns = [
        ("batch", ""),
        ("when", "when"),
        (counted_as, "n"),
        ("expected", "n"),
        ("observed", "n"),
        ("95 % of windows", "n"),
        ("", ""),
        ("evidence after it", "n"),
    ]
    rows = []
    for i in reversed(range(len(curve))):
        low, high, came = (float(c[i]) for c in (curve.low, curve.high, curve.came))
        word = "inside" if low <= came <= high else "above" if came > high else "below"
        number = batch_words(int(curve.first[i]), int(curve.last[i]))
        rows.append(
            (
                number.split(" ", 1)[1],
                time_words(curve.since[i], curve.until[i]) or "–",
                counted(float(curve.weight[i])),
                shown_percent(float(curve.expected[i])),
                shown_percent(came),
                f"{shown_percent(low)} to {shown_percent(high)}",
                Word(word, "same"),
                evidence_words(float(curve.evidence[i])),
            )
        )
    parts = [page_table(columns, rows[:SHOWN], "The newest batches")]
    if len(rows) > SHOWN:
        title = element("summary", None, f"All {len(rows)} windows")
        parts.append(element("details", None, title, page_table(columns, rows, "All windows")))
    return page_section("batches", "Batches, newest first", *parts)
