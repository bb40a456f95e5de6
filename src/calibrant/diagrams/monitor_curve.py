"""What a chart of a monitor shows, computed: shares with their bands, and the evidence."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.monitor.monitor import Monitor


Index = NDArray[np.int64]

#: how wide the band of each window is, in deviations: about 95 % of windows stay inside
DEVIATIONS = 1.96
#: evidence is kept, and drawn, up to e to the power of these
KEPT, DRAWN = 700.0, 50.0


@dataclass(frozen=True, eq=False)
class MonitorCurve(Frozen):
    """A monitor over time, an entry for each window.

    Attributes
    ----------
    first, last : array of int
        The numbers of its batches.
    since, until : tuple of str
        When they were, as the user said.
    weight : array
    came, expected : array
        The share of positives, and the mean of the probabilities.
    low, high : array
        Between these, 95 of 100 windows have their share if the probabilities are right.
    evidence : array
        After the last of its batches.
    enough : float
        The evidence that raises the alarm.
    alarm, change : int or None
        The batch of the alarm, and the one with which the change probably began.
    """

    first: Index
    last: Index
    since: tuple[str, ...]
    until: tuple[str, ...]
    weight: Array
    came: Array
    expected: Array
    low: Array
    high: Array
    evidence: Array
    enough: float
    alarm: int | None = None
    change: int | None = None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def edges(self) -> Array:
        """Where windows begin and end on an axis of batches."""
        return np.append(self.first[0] - 0.5, self.last + 0.5)

    @property
    def middle(self) -> Array:
        """The middle of each window on an axis of batches."""
        return (self.edges[1:] + self.edges[:-1]) / 2.0

    @property
    def drawn_evidence(self) -> Array:
        """The evidence, at most e⁵⁰: more would hide the line of the alarm."""
        return np.minimum(self.evidence, math.exp(DRAWN))

    @property
    def times(self) -> list[str]:
        """When each window was, if the user said so."""
        return [time_words(*ends) for ends in zip(self.since, self.until, strict=True)]

    @property
    def whole_time(self) -> str:
        """From when to when, if the user said so.

        >>> import calibrant as cal
        >>> monitor = cal.Monitor()
        >>> _ = monitor.update([0, 1], [0.2, 0.6], when="monday")
        >>> monitor_curve(monitor).whole_time
        'monday'
        """
        return time_words(self.since[0], self.until[-1])


def time_words(since: str, until: str) -> str:
    """A time from its two ends; empty if either is not known."""
    if not since or not until:
        return ""
    return since if since == until else f"{since} to {until}"


def monitor_curve(monitor: Monitor) -> MonitorCurve:
    """The shares and the evidence of a monitor with at least one batch.

    Windows are batches, and older ones joined. Each has Σwy/Σw, Σwp/Σw, and the deviation
    √Σwp(1 − p)/Σw of rows of one weight.
    """
    from calibrant.monitor.monitor import Monitor

    if not isinstance(monitor, Monitor) or not monitor.windows:
        came = "an empty one" if isinstance(monitor, Monitor) else type(monitor).__name__
        raise InputError(f"a Monitor with at least one batch must come, but {came} came.")
    monitor = copy.copy(monitor)  # as it is now: other threads may go on with it
    windows = monitor.windows
    weight, positive, predicted, variance = (
        np.array([getattr(window, name).sum() for window in windows])
        for name in ("weight", "positive", "predicted", "variance")
    )
    mean, half = predicted / weight, DEVIATIONS * np.sqrt(variance) / weight
    reading = monitor.reading
    return MonitorCurve(
        first=np.array([window.first for window in windows], dtype=np.int64),
        last=np.array([window.last for window in windows], dtype=np.int64),
        since=tuple(window.since for window in windows),
        until=tuple(window.until for window in windows),
        weight=weight,
        came=positive / weight,
        expected=mean,
        low=np.clip(mean - half, 0.0, 1.0),
        high=np.clip(mean + half, 0.0, 1.0),
        evidence=np.exp(np.minimum([window.evidence for window in windows], KEPT)),
        enough=math.exp(monitor.enough),
        alarm=None if reading.alarm is None else reading.alarm.batch,
        change=None if reading.alarm is None else reading.since,
    )
