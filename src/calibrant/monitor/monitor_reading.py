"""What a monitor says of its state: as values, and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.data.segment_keys import Key
from calibrant.monitor.monitor_state import BY_SEGMENT, Alarm, MonitorState
from calibrant.result_tables import sure_p

#: what to do about each kind of change
REMEDIES = {"shift": "intercept", "slope": "refit", "part": "new map"}
#: and what to do it with
TODO = {
    "intercept": "Add one number to the log-odds: {doer} does.",
    "refit": "Correct the log-odds by a line: {doer} does.",
    "new map": "Fit a calibrator to new rows: no shift or line follows this.",
}


@dataclass(frozen=True, repr=False)
class MonitorReading:
    """What a monitor says now.

    Attributes
    ----------
    alarm : Alarm, or None
        The batch at which the alarm was raised; it stays.
    evidence : float
        How many times its stake a bet against the probabilities is worth now. If they are right,
        this is 1 on average at most. Infinite once something came that had probability 0.
    p_value : float
        The chance that the evidence ever gets as large as it has been, if the probabilities are
        right. It may be looked at whenever you like.
    since, since_when : int and str
        The batch with which the likeliest change began, and when that was. 0 before any batch.
    change : {"shift", "slope", "part"}
        What it did to the log-odds: all moved alike, were stretched or squeezed, or moved in one
        part of the scale.
    part : (float, float)
        The probabilities that the likeliest change is about.
    shift : float
        What the likeliest change adds to the log-odds there.
    confidence : float
        The share of the evidence that speaks for this kind of change.
    recommendation : {"none", "intercept", "refit", "new map"}
        As in `Drift`; "none" as long as there is no alarm.
    segments : tuple
        Segments with an alarm of their own.
    """

    alarm: Alarm | None
    evidence: float
    p_value: float
    since: int
    since_when: str
    change: str
    part: tuple[float, float]
    shift: float
    confidence: float
    recommendation: str
    segments: tuple[Key, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; infinite evidence is None."""
        return {
            **asdict(self),
            "evidence": self.evidence if math.isfinite(self.evidence) else None,
            "part": list(self.part),
            "segments": list(self.segments),
        }

    def __str__(self) -> str:
        return " ".join(in_words(self))

    __repr__ = __str__


def reading_of(state: MonitorState) -> MonitorReading:
    """What the state of a monitor says."""
    if state.watched is None:
        return MonitorReading(None, 1.0, 1.0, 0, "", "shift", (0.0, 1.0), 0.0, 0.0, "none")
    worst = 0.0 if state.impossible else math.exp(-state.peak)
    alternatives = state.watched.alternatives()
    kinds = alternatives.kinds
    leader = state.evidence.leader(alternatives.prior)
    kind, since = str(kinds[leader]), int(state.evidence.since[leader])
    return MonitorReading(
        alarm=state.alarm,
        evidence=math.inf if state.impossible else _times(state.total),
        p_value=min(1.0, worst * state.shared_by),
        since=since,
        since_when=next((w.since for w in state.windows if w.last >= since), ""),
        change=kind,
        part=alternatives.part(leader),
        shift=float(alternatives.shift[leader]),
        confidence=float(state.evidence.shares()[kinds == kind].sum()),
        recommendation=_remedy(state, kind),
        segments=tuple(one.segment for one in segment_readings(state) if one.alarm),
    )


def _times(evidence: float) -> float:
    """How many times its stake a bet is worth, from the ln of that; at most e⁷⁰⁰, still a float."""
    return math.exp(min(evidence, 700.0))


def _remedy(state: MonitorState, kind: str) -> str:
    if state.alarm is None:
        return "none"
    return "new map" if state.impossible else REMEDIES[kind]  # 0 and 1 have no log-odds to move


@dataclass(frozen=True)
class SegmentReading:
    """What a monitor says of one segment.

    Attributes
    ----------
    segment : str or int
    evidence : float
        The largest evidence in the segment so far.
    enough : float
        The evidence with which the segment has an alarm of its own.
    alarm : bool
        Whether it has one.
    since : int
        The batch of this segment's rows with which the likeliest change began, counted from the
        segment's first.
    part : (float, float)
        The probabilities that the likeliest change is about.
    shift : float
        What it adds to the log-odds there.
    """

    segment: Key
    evidence: float
    enough: float
    alarm: bool
    since: int
    part: tuple[float, float]
    shift: float


def segment_readings(state: MonitorState) -> tuple[SegmentReading, ...]:
    """What the state of a monitor says of each segment, in the order in which they came.

    A segment has an alarm of its own if its share of the evidence has been enough by itself.
    """
    if state.watched is None:
        return ()
    alternatives = state.watched.alternatives(only_shifts=True)
    found = []
    for key, one in state.segments.items():
        leader = one.evidence.leader(alternatives.prior)
        needed = state.enough - math.log(BY_SEGMENT * one.share)
        found.append(
            SegmentReading(
                segment=key,
                evidence=_times(one.evidence.peak),
                enough=_times(needed),
                alarm=one.evidence.peak >= needed,
                since=int(one.evidence.since[leader]),
                part=alternatives.part(leader),
                shift=float(alternatives.shift[leader]),
            )
        )
    return tuple(found)


# --- words ----------------------------------------------------------------------------------------


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


def taken(batches: int, rows: int) -> str:
    """How many batches and rows came."""
    counts = ((batches, "batch", "batches"), (rows, "row", "rows"))
    return ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts)


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
