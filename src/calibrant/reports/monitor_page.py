"""The page of a monitor: the alarm, the evidence, calibration over time, segments, batches."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import Curve, reliability_curve
from calibrant.diagrams.monitor_curve import MonitorCurve, monitor_curve, time_words
from calibrant.errors import shell_quoted
from calibrant.monitor.monitor import (
    Monitor,
    MonitorReading,
    SegmentReading,
    Window,
    joined_windows,
    reading_in_words,
)
from calibrant.reports.kit import (
    Column,
    Markup,
    PageAxis,
    PageValue,
    PlotArea,
    Recipe,
    Word,
    area_between,
    chart_frame,
    chart_text,
    check_output,
    check_texts,
    collapsed,
    common_axis,
    element,
    explanation,
    fact_section,
    figure,
    labelled_points,
    line_through,
    linear_axis,
    page_section,
    page_table,
    picture,
    recipe_section,
    series_class,
    small_chart,
    source_facts,
    tick_text,
    ticks,
    tile_row,
    verdict_section,
    version_facts,
    whole_page,
)
from calibrant.result_tables import PlainFields, format_count, shown_percent

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


def _time_section(curve: MonitorCurve, counted_as: str) -> Markup:
    """The shares of positives and the evidence, window by window."""
    charts = (
        ("Share of positives, expected and observed", _share_chart(curve, counted_as)),
        ("Evidence against the probabilities", _evidence_chart(curve)),
    )
    figures = (figure("large", title, chart) for title, chart in charts)
    text = (
        "Dots are the shares observed in each window. The grey line is the share expected. Its "
        "band holds 95 of 100 windows if the probabilities are right and rows have the same "
        "weight: some always lie outside. The evidence adds up over all windows, and decides."
    )
    if curve.evidence.max(initial=0.0) > curve.drawn_evidence.max(initial=0.0):
        text += f" It is drawn up to {evidence_words(float(curve.drawn_evidence.max()))}."
    if curve.alarm is not None:
        text += " The dotted line is where the change probably began, the full one the alarm."
    both = element("div", *figures, class_="pair")
    return page_section("time", "Over time", both, explanation(text))


def _periods_section(periods: Sequence[Period], counted_as: str) -> Markup:
    several = any(period.changed for period in periods)
    axis = common_axis(period.curve for period in periods)
    figures, names = [], []
    for period in periods:
        title = batch_words(period.first, period.last)
        names.append(f"{title[0].upper()}{title[1:]}")
        drawn = (period.curve, 0 if several and not period.changed else 1)
        figures.append(
            figure("few", names[-1], small_chart([drawn], f"Reliability of {title}", axis))
        )
    columns = (
        Column("period", names, ""),
        Column("when", [period.time or "–" for period in periods], "when"),
        Column(counted_as, [format_count(period.weight) for period in periods]),
        Column("expected", [shown_percent(period.expected) for period in periods]),
        Column("observed", [shown_percent(period.came) for period in periods]),
    )
    text = (
        "Across: the probability that was given; up: how often the event happened. Points on the "
        "dashed diagonal are right; bands are 95 % intervals."
    )
    text += " Blue is since the change." if several else ""
    return page_section(
        "periods",
        "Calibration in periods",
        element("div", *figures, class_="grid"),
        explanation(text),
        page_table("Periods", columns),
    )


def _segments_section(report: MonitorReport) -> Markup:
    """The segments with most evidence, as a table; nothing without segments."""
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
    text = (
        "The most evidence that a segment has had so far, and what its likeliest change does. "
        "Where there is no alarm, that change may be noise."
    )
    more = len(report.segments) - MOST_SEGMENTS
    text += f" {more:,} more segments have less evidence." if more > 0 else ""
    return page_section("segments", "Segments", page_table("Segments", columns), explanation(text))


def _batches_section(curve: MonitorCurve, counted_as: str) -> Markup:
    """The newest windows, and all of them folded away."""
    came, expected, low, high = _shares_in_percent(curve)
    words = np.where(curve.came > curve.high, "above", "inside")
    words[curve.came < curve.low] = "below"
    columns = (
        Column("batch", [name.split(" ", 1)[1] for name in _batch_names(curve)], ""),
        Column("when", [time or "–" for time in curve.times], "when"),
        Column(counted_as, [format_count(weight) for weight in curve.weight.tolist()]),
        Column("expected", expected),
        Column("observed", came),
        Column("95 % of windows", [f"{a} to {b}" for a, b in zip(low, high, strict=True)]),
        Column("", [Word(word, "same") for word in words.tolist()], ""),
        Column("evidence after it", [evidence_words(value) for value in curve.evidence.tolist()]),
    )
    newest = [column._replace(cells=column.cells[::-1]) for column in columns]
    parts = [page_table("The newest batches", newest, most=SHOWN)]
    if len(curve) > SHOWN:
        parts.append(collapsed(f"All {len(curve)} windows", page_table("All windows", newest)))
    return page_section("batches", "Batches, newest first", *parts)


def _batch_names(curve: MonitorCurve) -> list[str]:
    return list(map(batch_words, curve.first.tolist(), curve.last.tolist()))


def _shares_in_percent(curve: MonitorCurve) -> list[list[str]]:
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
    up = linear_axis(max(0.0, low - room), min(1.0, high + room))
    percents = tuple(f"{tick_text(round(100.0 * tick, 8))} %" for tick in up.ticks)
    place = _plot_area(curve, replace(up, words=percents))
    edges = np.repeat(curve.edges, 2)[1:-1]
    lower, upper, mean = (np.repeat(c, 2) for c in (curve.low, curve.high, curve.expected))
    x, y = place.across(curve.middle), place.down(curve.came)
    texts = (_batch_names(curve), curve.times, *_shares_in_percent(curve), curve.weight.tolist())
    words = [
        (
            f"{name} ({time})" if time else name,
            f"observed {came}",
            f"expected {expected}",
            f"95 % of windows: {low} to {high}",
            f"{counted_as} {format_count(weight)}",
        )
        for name, time, came, expected, low, high, weight in zip(*texts, strict=True)
    ]
    expected = (area_between(edges, lower, upper, place), line_through(edges, mean, place))
    return _chart(
        "Share of positives in each window",
        place,
        "share of positives",
        element("g", *expected, class_=series_class(0)),
        *_alarm_lines(curve, place),
        element(
            "g",
            labelled_points(x, y, words, 0),
            class_=f"series {series_class(1)}{' many' * (len(curve) > MANY)}",
            role="group",
            aria_label=f"shares observed: {len(curve)} points",
        ),
    )


def _evidence_chart(curve: MonitorCurve) -> Markup:
    """The evidence after each window, and the line at which the alarm is raised."""
    value = np.log10(np.append(1.0, curve.drawn_evidence))
    enough = math.log10(curve.enough)
    # powers of ten, from below 1 to above all evidence
    low = math.floor(min(float(value.min()), -0.5))
    high = math.ceil(max(float(value.max()), enough) + 0.2)
    powers = [k for k in range(low, high + 1) if k % -(-(high - low) // TICKS) == 0]
    words = (f"{10.0**k:,g}" if -3 <= k <= 3 else f"10{str(k).translate(RAISED)}" for k in powers)
    up = PageAxis(float(low), float(high), tuple(map(float, powers)), words=tuple(words))
    place = _plot_area(curve, up)
    at = np.append(curve.edges[0], curve.last.astype(np.float64))
    level = float(place.down(enough))
    flat = element("path", class_="alarm dashed", d=f"M{LEFT} {level:.1f}h{FIELD}")
    said = chart_text(LEFT + 6, level - 6, f"alarm at {curve.enough:,.4g}", "start")
    return _chart(
        "Evidence against the probabilities",
        place,
        "evidence",
        flat,
        *_alarm_lines(curve, place, named=True),
        element("g", line_through(at, value, place), class_=f"series {series_class(1)}"),
        element("g", said, class_="alarm-words"),
    )


def batch_words(first: int, last: int) -> str:
    """The batches of a window.

    >>> batch_words(3, 3), batch_words(3, 5)
    ('batch 3', 'batches 3 to 5')
    """
    return f"batch {first:,}" if first == last else f"batches {first:,} to {last:,}"


def _chart(name: str, place: PlotArea, left: str, *parts: Markup) -> Markup:
    """A picture with batches along its lower side, and ``left`` beside the upright axis."""
    below = chart_text(LEFT + FIELD / 2, HEIGHT - 6, "batch", "middle")
    return picture("chart", name, (WIDTH, HEIGHT), chart_frame(place, left), below, *parts)


def _plot_area(curve: MonitorCurve, up: PageAxis) -> PlotArea:
    """The field of a picture, with an axis of batches."""
    first, last = float(curve.edges[0]), float(curve.edges[-1])
    whole = tuple(t for t in ticks(first, last) if t == int(t) and t >= 1.0)
    across = PageAxis(first, last, whole or (float(curve.first[0]),))
    return PlotArea(LEFT, TOP, FIELD, TALL, across, up)


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


# --- The report of a monitor, from the monitor ----------------------------------------------------


#: the most periods before a change, and from then on; and the groups of each one's curve
PERIODS, BINS = 3, 5
#: of the bands
LEVEL = 0.95


def monitor_report(
    monitor: Monitor,
    *,
    title: str | None = None,
    source: Any = None,
    saved_as: str = "state.json",
    output: str | os.PathLike[str] | None = None,
) -> MonitorReport:
    """Is there an alarm, since when, and what to do: the state of a monitor on one page.

    Parameters
    ----------
    monitor : Monitor
        With at least one batch.
    title : str, optional
        What the page calls itself.
    source : str, path, list of such, or mapping of words to values, optional
        Where the rows come from, for the last section.
    saved_as : str, default="state.json"
        The name of the monitor's file in the lines that tell how to go on.
    output : path, optional
        Where to write the page; none of the files that ``source`` names, nor ``saved_as``.

    Returns
    -------
    MonitorReport
        Frozen; ``to_html()``, ``save(path)``, ``to_dict()``.

    Notes
    -----
    Windows are batches, and older ones joined. Periods are stretches of about as many batches each:
    up to three before the change and three since, or six if there is no alarm. Their curves have
    five groups of equal weight with 95 % Clopper–Pearson intervals, made of the 22 cells of the
    scale that the monitor keeps. The same state gives the same page, byte for byte. O(windows).

    Examples
    --------
    >>> from calibrant.monitor import Monitor
    >>> monitor = Monitor()
    >>> _ = monitor.update([0, 1, 0, 1], [0.2, 0.6, 0.4, 0.7], when="monday")
    >>> r = monitor_report(monitor)
    >>> r
    MonitorReport('Monitor', 1 batch, no alarm)
    >>> r.verdict[0]
    'No alarm (p = 1): the probabilities may still be right.'
    """
    check_texts(title=title or "", saved_as=saved_as)
    check_output(output, source, saved_as)
    monitor = copy.copy(monitor)  # as it is now: other threads may go on with it
    curve, reading, options = monitor_curve(monitor), monitor.reading, monitor.to_dict()
    how = (
        "The chance that this monitor ever raises a false alarm is at most "
        f"{shown_percent(options['alpha'])}, however often it is asked."
    )
    if options["least"]:
        how += f" Changes of a probability by less than {options['least']:g} are no change."
    first, *rest = reading_in_words(reading)
    made = MonitorReport(
        title=title or "Monitor",
        verdict=(first, " ".join(rest) or "There is nothing to do. Go on with the next rows."),
        how=how,
        reading=reading,
        curve=curve,
        periods=_periods_of(monitor.windows, curve.change),
        segments=tuple(sorted(monitor.segments, key=lambda one: -one.evidence / one.enough)),
        batches=monitor.batches,
        rows=monitor.rows,
        facts=source_facts(source) | _facts(monitor, options) | version_facts(),
        recipes=_recipes(reading.recommendation, saved_as),
    )
    if output is not None:
        made.save(output)
    return made


# --- periods --------------------------------------------------------------------------------------


def _periods_of(windows: Sequence[Window], change: int | None) -> tuple[Period, ...]:
    """A few stretches of windows; where there is a change, they end there and begin anew."""
    if change is None:
        parts = [(list(windows), 2 * PERIODS, False)]
    else:
        before = [window for window in windows if window.last < change]
        parts = [(before, PERIODS, False), (list(windows[len(before) :]), PERIODS, True)]
    periods = []
    for own, most, changed in parts:
        groups: dict[int, list[Window]] = {}  # at most so many, of about as many batches each
        for window in own:
            batches, of = (one.last - own[0].first + 1 for one in (window, own[-1]))
            groups.setdefault(-(-most * batches // of), []).append(window)
        for joined in map(joined_windows, groups.values()):
            weight = float(joined.weight.sum())
            period = Period(
                first=joined.first,
                last=joined.last,
                time=time_words(joined.since, joined.until),
                changed=changed,
                weight=weight,
                came=float(joined.positive.sum()) / weight,
                expected=float(joined.predicted.sum()) / weight,
                curve=reliability_curve(joined.table(), bins=BINS, binning="mass", level=LEVEL),
            )
            periods.append(period)
    return tuple(periods)


# --- facts and recipes ----------------------------------------------------------------------------


def _facts(monitor: Monitor, known: Mapping[str, Any]) -> dict[str, str]:
    """What is watched, with which options."""
    claim = "probabilities"
    if known["fingerprint"]:
        claim = f"the calibrator of fingerprint {known['fingerprint']}"
    elif known["band"] is not None:
        claim = "scores, against old rows"
    facts = {"watches": claim}
    if known["classes"]:
        positive = known["pos_label"]
        other = next(label for label in known["classes"] if label != positive)
        facts["label"] = f"{positive!r} against {other!r}"
    facts["batches"], facts["rows"] = f"{monitor.batches:,}", f"{monitor.rows:,}"
    facts["chance of a false alarm, ever"] = shown_percent(known["alpha"])
    facts["changes below"] = (
        f"{known['least']:g} are none" if known["least"] else "none are ignored"
    )
    if known["heaviest"] not in (0.0, 1.0):
        facts["weights"] = known["weights"]
    return facts


def _recipes(recommendation: str, saved_as: str) -> tuple[Recipe, ...]:
    """What to run next: another batch, or what mends the calibrator."""
    if recommendation == "none":
        again = f"calibrant monitor {shell_quoted(saved_as)} NEW.csv --report monitor.html"
        note = "Name the columns, or the calibrator, as before. Give it each row once."
        return (Recipe("The next batch", again, note),)
    anew = "Then start a new monitor: this one has found its change."
    if recommendation == "new map":
        fit = "calibrant fit NEW.csv --output calibrator.json"
        return (Recipe("Fit a calibrator to new rows", fit, anew),)
    lines = (
        "import calibrant as cal",
        "",
        f"drift = cal.Monitor.load({saved_as!r}).drift()",
        "print(drift)  # what the rows since the change say",
        'cal.save(drift.update(cal.load("calibrator.json")), "mended.json")',
    )
    return (Recipe("Mend the calibrator", "\n".join(lines), anew),)


# --- What the report of a monitor is: a frozen value that holds all that its page shows -----------


@dataclass(frozen=True, eq=False)
class Period(Frozen):
    """Some batches that came one after another, judged together.

    Attributes
    ----------
    first, last : int
        The numbers of the batches.
    time : str
        When they were; empty if the user did not say.
    changed : bool
        Whether they came after the change that an alarm is about.
    weight, came, expected : float
        How much came, the share of positives, and the mean of the probabilities.
    curve : Curve
        The reliability curve, with a band.
    """

    first: int
    last: int
    time: str
    changed: bool
    weight: float
    came: float
    expected: float
    curve: Curve


@dataclass(frozen=True, eq=False, repr=False)
class MonitorReport(PlainFields, PageValue):
    """Everything that the page of a monitor shows; the same state gives the same page.

    Attributes
    ----------
    title : str
    verdict : pair of str
        Whether there is an alarm and since when; where the change is, and what to do.
    how : str
        What the alarm promises.
    reading : MonitorReading
    curve : MonitorCurve
        The share of positives and the evidence, window by window.
    periods : tuple of Period
        Calibration in a few longer stretches of time.
    segments : tuple of SegmentReading
        Those with the most evidence for a change first.
    batches, rows : int
        How many have come.
    facts : mapping of str to str
        What is watched, with which options, and what computed it.
    recipes : tuple of Recipe
        How to go on.
    """

    title: str
    verdict: tuple[str, str]
    how: str
    reading: MonitorReading
    curve: MonitorCurve
    periods: tuple[Period, ...]
    segments: tuple[SegmentReading, ...]
    batches: int
    rows: int
    facts: Mapping[str, str] = field(default_factory=dict)
    recipes: tuple[Recipe, ...] = ()

    @property
    def counted_as(self) -> str:
        """What the weight of a window is: "rows" where each row counts once, else "weight"."""
        return "rows" if float(self.curve.weight.sum()) == self.rows else "weight"

    def to_html(self) -> str:
        """The page: one file that needs no other and no network."""
        sections = (
            verdict_section(self.verdict, _tiles(self), self.how),
            _time_section(self.curve, self.counted_as),
            _periods_section(self.periods, self.counted_as),
            _segments_section(self),
            _batches_section(self.curve, self.counted_as),
            recipe_section("How to go on", self.recipes),
            fact_section(self.facts),
        )
        caution = self.reading.alarm is not None
        return whole_page(self.title, sections, self.to_dict(), caution=caution)

    def __repr__(self) -> str:
        found = "no alarm" if self.reading.alarm is None else "alarm"
        plural = "es" if self.batches != 1 else ""
        return f"MonitorReport({self.title!r}, {self.batches:,} batch{plural}, {found})"
