"""What a monitor says of its state."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.data.segment_keys import Key
from calibrant.monitor.monitor_state import BY_SEGMENT, Alarm, MonitorState

#: what to do about each kind of change
REMEDIES = {"shift": "intercept", "slope": "refit", "part": "new map"}


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
        from calibrant.monitor.monitor_words import in_words

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
