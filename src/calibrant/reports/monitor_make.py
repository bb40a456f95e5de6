"""The report of a monitor, from the monitor."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

from calibrant.diagrams.curves import reliability_curve
from calibrant.diagrams.monitor_curve import monitor_curve, time_words
from calibrant.monitor.monitor import Monitor
from calibrant.monitor.monitor_reading import in_words
from calibrant.monitor.monitor_state import Window, joined
from calibrant.reports.key_facts import check_output, check_texts, source_facts, version_facts
from calibrant.reports.monitor_value import MonitorReport, Period
from calibrant.reports.report_value import Recipe
from calibrant.result_tables import shown_percent
from calibrant.shell_words import quoted

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
    curve, reading = monitor_curve(monitor), monitor.reading
    first, *rest = in_words(reading)
    made = MonitorReport(
        title=title or "Monitor",
        verdict=(first, " ".join(rest) or "There is nothing to do. Go on with the next rows."),
        how=_how(monitor),
        reading=reading,
        curve=curve,
        periods=_periods(monitor.windows, curve.change),
        segments=tuple(sorted(monitor.segments, key=lambda one: -one.evidence / one.enough)),
        batches=monitor.batches,
        rows=monitor.rows,
        facts=source_facts(source) | _facts(monitor) | version_facts(),
        recipes=_recipes(reading.recommendation, saved_as),
    )
    if output is not None:
        made.save(output)
    return made


def _how(monitor: Monitor) -> str:
    options = monitor.to_dict()
    said = (
        f"The chance that this monitor ever raises a false alarm is at most "
        f"{shown_percent(options['alpha'])}, however often it is asked."
    )
    if options["least"]:
        said += f" Changes of a probability by less than {options['least']:g} are no change."
    return said


# --- periods --------------------------------------------------------------------------------------


def _periods(windows: Sequence[Window], change: int | None) -> tuple[Period, ...]:
    """A few stretches of windows; where there is a change, they end there and begin anew."""
    if change is None:
        parts = [(list(windows), 2 * PERIODS, False)]
    else:
        before = [window for window in windows if window.last < change]
        parts = [(before, PERIODS, False), (list(windows[len(before) :]), PERIODS, True)]
    return tuple(
        _period(joined(group), changed)
        for own, most, changed in parts
        for group in _alike(own, most)
    )


def _alike(windows: Sequence[Window], most: int) -> list[list[Window]]:
    """At most so many groups of windows, of about as many batches each."""
    groups: dict[int, list[Window]] = {}
    for window in windows:
        batches, of = (one.last - windows[0].first + 1 for one in (window, windows[-1]))
        groups.setdefault(-(-most * batches // of), []).append(window)
    return list(groups.values())


def _period(window: Window, changed: bool) -> Period:
    weight = float(window.weight.sum())
    return Period(
        first=window.first,
        last=window.last,
        time=time_words(window.since, window.until),
        changed=changed,
        weight=weight,
        came=float(window.positive.sum()) / weight,
        expected=float(window.predicted.sum()) / weight,
        curve=reliability_curve(window.table(), bins=BINS, binning="mass", level=LEVEL),
    )


# --- facts and recipes ----------------------------------------------------------------------------


def _facts(monitor: Monitor) -> dict[str, str]:
    known = monitor.to_dict()
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
        again = f"calibrant monitor {quoted(saved_as)} NEW.csv --report monitor.html"
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
