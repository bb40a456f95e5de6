"""All measures of some records, their intervals and their changes, for any number of classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.data.validation import check_word
from calibrant.errors import ParameterError
from calibrant.metrics.change_intervals import ChangeIntervals
from calibrant.metrics.evaluation_results import Changes, Spans
from calibrant.metrics.intervals import MeasureIntervals
from calibrant.metrics.measure import Measure

Records = Mapping[str, Measure]

#: the group of measures that are found where none are asked for, and the word for all of them
STANDARD, ALL = "standard", "all"


def chosen_records(records: Records, measures: Any = None) -> dict[str, Measure]:
    """The records of some names and groups, in the order of the registry.

    >>> from calibrant.metrics.registry import MEASURES
    >>> list(chosen_records(MEASURES, ["auc", "brier"]))
    ['brier', 'auc']
    """
    wanted = [STANDARD] if measures is None else measures
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, Iterable) or not (words := list(wanted)):
        raise ParameterError(
            "measures must be a name of a measure or of a group, or a list of such, but "
            f"{measures!r} came."
        )
    groups = dict.fromkeys(group for record in records.values() for group in record.groups)
    for word in words:
        check_word("each of measures", word, (*groups, ALL, *records))
    return {
        name: record
        for name, record in records.items()
        if name in words or ALL in words or not set(words).isdisjoint(record.groups)
    }


def measure_all(records: Records, facts: Any) -> tuple[dict[str, float], list[str]]:
    """The value of every measure that the facts allow, in order, and notes on them."""
    values, notes = {}, []
    for name, measure in records.items():
        if measure.needs_table and facts.table is None:
            notes.append(f"{name} was left out: {measure.needs_table}")
            continue
        value, note = measure.found(facts)
        if value is not None:
            values[name] = value
        if note and note not in notes:
            notes.append(note)
    return values, notes


def interval_fields(
    records: Records,
    new: MeasureIntervals | None,
    old: MeasureIntervals | None,
    changes: ChangeIntervals | None,
) -> tuple[Any, ...]:
    """The last fields of an evaluation: level, intervals, those before, and the changes."""
    if new is None:
        return ()
    spans = _intervals(records, new)
    if old is None:
        return new.level, spans
    moved = _changes(records, new.values, old.values, changes if spans else None)
    return new.level, spans, _intervals(records, old), moved


def _intervals(records: Records, of: MeasureIntervals) -> Spans:
    """An interval for each measure that can have one, in the order of the values."""
    found: Spans = {}
    if not of.enough:
        return found
    for name, value in of.values.items():
        measure = records[name]
        if measure.interval is not None and math.isfinite(value):
            span = measure.around(value, measure.interval(of))
            if span is not None:
                found[name] = span
    return found


def _changes(
    records: Records,
    new: dict[str, float],
    old: dict[str, float],
    changes: ChangeIntervals | None,
) -> Changes:
    """The difference of every measure that is finite on both sides, with its interval."""
    found: Changes = {}
    for name, value in new.items():
        difference = value - old.get(name, math.nan)
        if not math.isfinite(difference):
            continue
        interval = records[name].change
        span = None if changes is None or interval is None else interval(changes)
        if span is None:
            found[name] = (difference, None, None)
        else:
            found[name] = (difference, min(span[0], difference), max(span[1], difference))
    return found


def merge_notes(before: list[str], after: list[str]) -> list[str]:
    """Notes that hold for both once, the others with their side."""
    common = [note for note in after if note in before]
    sides = (("before", before), ("after", after))
    return common + [f"{side}: {n}" for side, notes in sides for n in notes if n not in common]
