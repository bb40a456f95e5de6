"""What the report of a monitor is: a frozen value that holds all that its page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.monitor_curve import MonitorCurve
from calibrant.monitor.monitor_reading import MonitorReading, SegmentReading
from calibrant.reports.report_value import PageValue, Recipe
from calibrant.result_tables import PlainFields


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
        from calibrant.reports.monitor_page import to_html

        return to_html(self)

    def __repr__(self) -> str:
        found = "no alarm" if self.reading.alarm is None else "alarm"
        plural = "es" if self.batches != 1 else ""
        return f"MonitorReport({self.title!r}, {self.batches:,} batch{plural}, {found})"
