"""The state of a monitor as plain values, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.json_facts import shown
from calibrant.data.segment_keys import segment_key
from calibrant.data.weighing import WEIGHTS
from calibrant.errors import InputError
from calibrant.estimators.fitted import check_version
from calibrant.estimators.saved_labels import Label, check_label, check_labels
from calibrant.metrics.arguments import check_number
from calibrant.metrics.rising_band import RisingBand
from calibrant.monitor.evidence import Evidence
from calibrant.monitor.monitor_state import (
    EDGES,
    Alarm,
    MonitorState,
    SegmentEvidence,
    Watched,
    Window,
)
from calibrant.result_tables import json_ready, plain_fields

FORMAT, VERSION = "calibrant-monitor", 1


# --- out ----------------------------------------------------------------------------------------


def document_of(state: MonitorState) -> dict[str, Any]:
    """All that a monitor knows, as values that JSON can hold: the fields of the state by name."""
    band, segments = state.band, state.segments
    if band is not None:
        band = band._replace(scores=band.scores[1:])  # the first is −∞
    return {
        "format": FORMAT,
        "version": VERSION,
        **plain_fields(replace(state, band=None, segments={})),
        "band": band and json_ready(band._asdict()),
        "segments": [{"segment": key, **plain_fields(one)} for key, one in segments.items()],
    }


# --- in -----------------------------------------------------------------------------------------


def state_of(document: Any) -> MonitorState:
    """The state that `document_of` wrote; anything else is refused with a reason."""
    check_version(document, FORMAT, VERSION, "the state of a monitor")
    try:
        return _state(document)
    except InputError:
        raise
    except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as wrong:
        raise InputError(
            f"the state of the monitor is damaged: {type(wrong).__name__}: {wrong}. Go on from an "
            "earlier copy, or start a new monitor."
        ) from wrong


def _state(document: Mapping[str, Any]) -> MonitorState:
    watched, alarm, band = (document[name] for name in ("watched", "alarm", "band"))
    classes = document["classes"]
    state = MonitorState(
        alpha=check_number("alpha", document["alpha"], 0.0, 1.0),
        least=_number(document["least"], 0.0, 0.5),
        weights=_one_of(document["weights"], tuple(WEIGHTS)),
        by_segment=_one_of(document["by_segment"], (True, False)),
        fingerprint=_text(document["fingerprint"]),
        band=None if band is None else _read_band(band),
        classes=None if classes is None else check_labels(classes),
        pos_label=_positive(document["pos_label"], classes),
        watched=None
        if watched is None
        else Watched(_column(watched["borders"]), _number(watched["centre"])),
        heaviest=_number(document["heaviest"], 0.0),
        rows=_count(document["rows"]),
        evidence=_read_evidence(document["evidence"]),
        peak=_number(document["peak"], 0.0),
        segments={
            segment_key(one["segment"]): SegmentEvidence(
                check_number("share", one["share"], 0.0, 1.0), _read_evidence(one["evidence"])
            )
            for one in document["segments"]
        },
        first_segments=_count(document["first_segments"]),
        windows=tuple(_read_window(window) for window in document["windows"]),
        marks=tuple((_count(number), str(mark)) for number, mark in document["marks"]),
        alarm=None if alarm is None else Alarm(_count(alarm["batch"]), str(alarm["when"])),
        impossible=_count(document["impossible"]),
    )
    _check_counts(state)
    return state


def _check_counts(state: MonitorState) -> None:
    """The parts of a state must fit together."""
    count = 0 if state.watched is None else len(state.watched.alternatives().prior)
    if len(state.evidence.wealth) != count or (state.batches > 0) != (count > 0):
        raise InputError(
            f"the state of the monitor is damaged: {len(state.evidence.wealth)} alternatives came "
            f"where {count} are watched."
        )
    count = 0 if state.watched is None else len(state.watched.alternatives(only_shifts=True).prior)
    lengths = {len(one.evidence.wealth) for one in state.segments.values()}
    if not lengths <= {count} or state.first_segments > len(state.segments):
        raise InputError("the state of the monitor is damaged: its segments are not whole.")
    if (state.batches > 0) != bool(state.windows):
        raise InputError("the state of the monitor is damaged: it has batches without windows.")


def _read_band(band: Mapping[str, Any]) -> RisingBand:
    scores = np.append(-np.inf, _column(band["scores"]))
    columns = [_column(band[name]) for name in ("p", "low", "high")]
    if any(len(column) != len(scores) for column in columns):
        raise ValueError("the columns of the band differ in length")
    return RisingBand(scores, *columns)


def _read_evidence(given: Mapping[str, Any]) -> Evidence:
    wealth, best = (
        np.array([-np.inf if value is None else _number(value) for value in given[name]])
        for name in ("wealth", "best")
    )
    since = np.array([_count(value) for value in given["since"]], dtype=np.int64)
    if not len(wealth) == len(best) == len(since):
        raise ValueError("the columns of the evidence differ in length")
    return Evidence(
        wealth,
        best,
        since,
        _number(given["waiting"], 0.0, 1.0),
        _count(given["batches"]),
        _number(given["peak"], 0.0),
    )


def _read_window(given: Mapping[str, Any]) -> Window:
    names = ("weight", "positive", "predicted", "variance")
    columns = [_column(given[name], 0.0) for name in names]
    if any(len(column) != len(EDGES) + 1 for column in columns):
        raise ValueError("a window has another number of cells")
    return Window(
        _count(given["first"]),
        _count(given["last"]),
        _text(given["since"]),
        _text(given["until"]),
        _number(given["evidence"]),
        *columns,
    )


def _column(values: Any, low: float = -math.inf) -> Array:
    return np.array([_number(value, low) for value in values], dtype=np.float64)


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(one) and value == one for one in allowed):
        raise ValueError(f"one of {allowed} must be there, but {shown(value)} is")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"a text must be there, but {shown(value)} is")
    return value


def _positive(value: Any, classes: Any) -> Label | None:
    """The positive label: one of the classes, if they are known."""
    if value is None:
        return None
    return check_label(value if classes is None else _one_of(value, tuple(classes)))


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fine or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"a number from {low:g} to {high:g} must be there, but {shown(value)} is")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a count must be there, but {shown(value)} is")
    return value
