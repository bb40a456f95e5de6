"""What a monitor says to people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from calibrant.result_tables import sure_p

if TYPE_CHECKING:
    from calibrant.monitor.monitor import Monitor
    from calibrant.monitor.monitor_reading import MonitorReading


TODO = {
    "intercept": "Add one number to the log-odds: {doer} does.",
    "refit": "Correct the log-odds by a line: {doer} does.",
    "new map": "Fit a calibrator to new rows: no shift or line follows this.",
}


def in_words(
    reading: MonitorReading, doer: str = "monitor.drift().update(calibrator)"
) -> list[str]:
    """What was found, since when and where, and what to do; ``doer`` is what does it."""
    if not reading.since:
        return ["No rows have come yet."]
    sure = sure_p(reading.p_value)
    if reading.alarm is None:
        return [f"No alarm ({sure}): the probabilities may still be right."]
    batch, when = reading.alarm.batch, reading.alarm.when
    first = f"Alarm since batch {batch}{f' ({when})' if when else ''}, {sure}."
    began = f"batch {reading.since}{f' ({reading.since_when})' if reading.since_when else ''}"
    said = [first, f"The change probably began with {began}: {_change(reading)}."]
    if math.isinf(reading.evidence):
        said[1] = "Something came that had been given probability 0."
    if reading.segments:
        said.append(f"Segments with an alarm of their own: {_listed(reading.segments)}.")
    return [*said, TODO[reading.recommendation].format(doer=doer)]


def _listed(segments: tuple[object, ...], most: int = 10) -> str:
    shown = ", ".join(map(str, segments[:most]))
    return shown if len(segments) <= most else f"{shown} and {len(segments) - most:,} more"


def _change(reading: MonitorReading) -> str:
    way = "up" if reading.shift > 0 else "down"
    if reading.change == "shift":
        return f"all log-odds went {way} by about {abs(reading.shift):g}"
    if reading.change == "slope":
        return "the log-odds were stretched or squeezed"
    low, high = reading.part
    return (
        f"log-odds of probabilities from {low:.2g} to {high:.2g} went {way} by about "
        f"{abs(reading.shift):g}"
    )


def taken(monitor: Monitor) -> str:
    """How many batches and rows came."""
    counts = ((monitor.batches, "batch", "batches"), (monitor.rows, "row", "rows"))
    return ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts)


def described(monitor: Monitor) -> str:
    """The monitor in two lines."""
    return f"Monitor({taken(monitor)})\n" + " ".join(in_words(monitor.reading))
