"""The report of a monitor: its values against plain sums, and its page in a real browser."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.reports.monitor_page import monitor_report
from chromium import BROWSER, Browser

needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium on the PATH")
NASTY = "<script>alert(1)</script>\"'&"


def watched(days=40, change=25, *, segments=None, when="day {}", rows=300, **options):
    """A monitor of daily batches; from a day on, twice the odds come."""
    rng = np.random.default_rng(7)
    monitor = cal.Monitor(by_segment=segments is not None, **options)
    came = []
    for day in range(1, days + 1):
        p = rng.beta(1, 5, rows)
        odds = p / (1 - p) * (2.0 if day > change else 1.0)
        y = (rng.random(rows) < odds / (1 + odds)).astype(int)
        more = {} if segments is None else {"segments": rng.choice(segments, rows)}
        monitor.update(y, p, when=when.format(day), **more)
        came.append((y.mean(), p.mean()))
    return monitor, np.array(came)


@pytest.fixture(scope="module")
def alarmed():
    return watched(segments=["North", "South"])


# --- the value ------------------------------------------------------------------------------------


def test_the_verdict_says_the_alarm_since_when_and_what_to_do(alarmed):
    monitor, _ = alarmed
    report = monitor_report(monitor, title="Who leaves?")
    assert report.verdict[0].startswith(f"Alarm since batch {monitor.alarm.batch} (day ")
    since = monitor.reading.since
    assert abs(since - 26) <= 1
    assert f"The change probably began with batch {since} (day {since})" in report.verdict[1]
    assert "Add one number to the log-odds" in report.verdict[1]
    assert "at most 5 %" in report.how
    assert repr(report) == "MonitorReport('Who leaves?', 40 batches, alarm)"
    assert "drift()" in report.recipes[0].code
    assert str(report) == " ".join(report.verdict)


def test_the_curve_is_that_of_the_rows(alarmed):
    monitor, came = alarmed
    curve = monitor_report(monitor).curve
    assert curve.came == pytest.approx(came[:, 0])
    assert curve.expected == pytest.approx(came[:, 1])
    assert ((curve.low < curve.expected) & (curve.expected < curve.high)).all()
    assert (curve.alarm, curve.change) == (monitor.alarm.batch, monitor.reading.since)
    assert curve.evidence[-1] == pytest.approx(monitor.reading.evidence)
    assert curve.enough == pytest.approx(20.0)


def test_periods_end_at_the_change_and_hold_all_rows(alarmed):
    monitor, came = alarmed
    periods = monitor_report(monitor).periods
    assert [period.changed for period in periods] == [False] * 3 + [True] * 3
    assert periods[3].first == monitor.reading.since
    assert [a.last + 1 for a in periods[:-1]] == [b.first for b in periods[1:]]
    assert (periods[0].first, periods[-1].last) == (1, 40)
    assert sum(period.weight for period in periods) == monitor.rows
    first = came[periods[0].first - 1 : periods[0].last]
    assert periods[0].came == pytest.approx(first[:, 0].mean())
    assert periods[0].time == f"day 1 to day {periods[0].last}"


def test_long_times_are_cut_into_as_many_batches_each():
    monitor, _ = watched(days=250, change=999, rows=20)
    periods = monitor_report(monitor).periods
    assert len(periods) == 6
    lengths = [period.last - period.first + 1 for period in periods]
    assert max(lengths) <= 250 / 6 + 32  # older windows hold up to 32 batches
    assert sum(lengths) == 250


def test_segments_with_most_evidence_first():
    rng = np.random.default_rng(3)
    monitor = cal.Monitor(by_segment=True)
    for _ in range(30):
        p, where = rng.beta(1, 4, 400), rng.choice(["calm", "moved"], 400)
        odds = p / (1 - p) * np.where(where == "moved", 2.0, 1.0)
        monitor.update(rng.random(400) < odds / (1 + odds), p, segments=where)
    first, second = monitor_report(monitor).segments
    assert (first.segment, first.alarm, first.shift > 0) == ("moved", True, True)
    assert (second.segment, second.alarm) == ("calm", False)
    assert first.evidence >= first.enough > second.evidence
    assert monitor.reading.segments == ("moved",)


def test_no_alarm_a_single_batch_and_one_row():
    for days, rows in ((1, 50), (1, 1), (3, 1)):
        monitor, _ = watched(days=days, change=99, rows=rows, when="")
        report = monitor_report(monitor)
        assert report.verdict[0].startswith("No alarm")
        assert "nothing to do" in report.verdict[1]
        assert "No alarm" in report.to_html()
        assert report.recipes[0].title == "The next batch"


def test_an_event_that_was_impossible():
    monitor = cal.Monitor()
    monitor.update([1, 0, 1], [0.0, 0.5, 0.5])
    report = monitor_report(monitor)
    assert "∞" in report.to_html()
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))


def test_old_rows_weights_and_least():
    rng = np.random.default_rng(0)
    s = rng.normal(size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-s))).astype(int)
    monitor = cal.Monitor(cal.ScoreTable.from_arrays(s, y), least=0.02)
    monitor.update(y[:500], scores=s[:500])
    report = monitor_report(monitor)
    assert report.facts["watches"] == "scores, against old rows"
    assert "less than 0.02" in report.how
    assert report.counted_as == "rows"
    weighted = cal.Monitor()
    weighted.update(y[:500], rng.random(500), sample_weight=rng.random(500))
    report = monitor_report(weighted)
    assert (report.counted_as, report.facts["weights"]) == ("weight", "importance")


def test_the_same_state_gives_the_same_page(alarmed, tmp_path):
    monitor, _ = alarmed
    monitor.save(tmp_path / "state.json")
    again = cal.Monitor.load(tmp_path / "state.json")
    report, other = monitor_report(monitor), monitor_report(again)
    assert report.to_html() == other.to_html()
    document = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert document["batches"] == 40
    assert len(document["periods"]) == 6
    assert monitor_report(monitor, output=tmp_path / "page.html") == report
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.to_html()


def test_bad_wishes(alarmed, tmp_path, monkeypatch):
    monitor, _ = alarmed
    with pytest.raises(InputError, match="at least one batch must come, but an empty one"):
        monitor_report(cal.Monitor())
    with pytest.raises(InputError, match="but dict came"):
        monitor_report({})
    with pytest.raises(ParameterError, match="title must be a str"):
        monitor_report(monitor, title=3)
    monkeypatch.chdir(tmp_path)
    monitor.save("state.json")
    before = (tmp_path / "state.json").read_bytes()
    with pytest.raises(InputError, match=r"state\.json"):
        monitor_report(monitor, saved_as="state.json", output="state.json")
    assert (tmp_path / "state.json").read_bytes() == before


def test_nothing_from_data_becomes_markup():
    monitor, _ = watched(segments=[NASTY, "b"], when=NASTY + " {}")
    text = monitor_report(monitor, title=NASTY, saved_as=NASTY, source=NASTY).to_html()
    assert "<script>alert" not in text
    assert html.escape(NASTY) in text
    assert not re.search(r"""(?:src|href|action)\s*=|url\(|@import|https?://""", text)


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def file(alarmed, tmp_path_factory):
    report = monitor_report(alarmed[0], title="Who leaves?")
    return report.save(tmp_path_factory.mktemp("page") / "monitor.html")


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_runs_out_of_the_page(browser, file, width):
    page = browser.open(file, width=width, height=800)
    assert page.run("document.documentElement.scrollWidth") <= width
    wide = "Array.from(document.querySelectorAll('svg.chart text, svg.small text'))"
    right = page.run(f"Math.max(...{wide}.map(e => e.getBoundingClientRect().right))")
    left = page.run(f"Math.min(...{wide}.map(e => e.getBoundingClientRect().left))")
    assert 0 <= left < right <= width
    assert page.problems() == []
    page.close()


@needs_browser
def test_names_of_axes_stand_beside_their_numbers(browser, file):
    for width in (320, 390, 1200):
        page = browser.open(file, width=width, height=800)
        overlaps = page.run(
            "Array.from(document.querySelectorAll('svg.chart')).flatMap(svg => {"
            "const texts = Array.from(svg.querySelectorAll('g[aria-hidden] text'));"
            "const name = texts.find(t => t.hasAttribute('transform')).getBoundingClientRect();"
            "return texts.filter(t => t.getAttribute('text-anchor') === 'end')"
            ".map(t => t.getBoundingClientRect()).filter(b => b.left < name.right)"
            ".map(b => b.left);})"
        )
        assert overlaps == []
        page.close()


@needs_browser
def test_sections_and_what_points_say(browser, file, alarmed):
    page = browser.open(file)
    text = page.run("document.body.innerText")
    heads = ["Over time", "Calibration in periods", "Segments", "Batches, newest first"]
    heads += ["How to go on", "Where this comes from"]
    places = [text.index("Alarm since batch"), *(text.index(f"\n{head}\n") for head in heads)]
    assert places == sorted(places)
    assert page.run("document.querySelectorAll('#batches table')[0].tBodies[0].rows.length") == 10
    assert page.run("document.querySelectorAll('#batches table')[1].tBodies[0].rows.length") == 40
    page.point_at("#time .series .point")
    lines = page.run("document.getElementById('tip').innerText").split("\n")
    came, expected = alarmed[1][0]
    assert lines[:3] == [
        "batch 1 (day 1)",
        f"observed {100 * came:.3g} %",
        f"expected {100 * expected:.3g} %",
    ]
    assert page.run("getComputedStyle(document.body).getPropertyValue('--good')") == page.run(
        "getComputedStyle(document.body).getPropertyValue('--ink')"
    )
    assert page.problems() == []
    page.close()


@needs_browser
def test_it_prints_and_works_without_scripts(browser, file):
    page = browser.open(file, dark=True)
    page.media("print", dark=True)
    page.resize(673, 900)  # a sheet of A4 between its margins
    assert page.run("document.documentElement.scrollWidth") <= 673
    sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf()))
    assert 1 <= sheets <= 5
    page.close()
    plain = browser.open(file, scripts=False)
    assert "Alarm since batch" in file.read_text(encoding="utf-8")
    plain.close()
