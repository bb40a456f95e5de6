"""What is remembered of a fit for those who audit it: when, on how much, and how well. No data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from calibrant.data.json_facts import shown
from calibrant.data.to_numpy import plain
from calibrant.errors import ParameterError

#: how measures came about, in their own words
OUT_OF_FOLD = "out of fold: no row was judged by a calibrator that had seen it"
#: what is kept of an evaluation: its numbers, but neither labels nor curves
KEPT = (
    "weight",
    "positive_weight",
    "before",
    "after",
    "micro",
    "macro",
    "level",
    "intervals_before",
    "intervals",
    "change",
)


def measures_of(evaluation: Any, how: str, folds: int | None = None) -> dict[str, Any]:
    """The numbers and intervals of an evaluation, and how they came about.

    Parameters
    ----------
    evaluation : what `evaluate` returns
        Or anything else whose ``to_dict()`` has measures by name under ``"after"``.
    how : str
        On which rows, in words.
    folds : int, optional
        How often rows were held out.

    Notes
    -----
    O(measures).

    Examples
    --------
    >>> class Half:
    ...     def to_dict(self):
    ...         return {"after": {"brier": 0.25}, "before": None, "labels": ["a", "b"]}
    >>> measures_of(Half(), "on the rows of June")
    {'how': 'on the rows of June', 'after': {'brier': 0.25}}
    """
    document = evaluation.to_dict() if hasattr(evaluation, "to_dict") else None
    if not isinstance(document, Mapping) or not {"after", "micro"} & set(document):
        raise ParameterError(
            "evaluation must be what calibrant.evaluate returns, but "
            f"{type(evaluation).__name__} came."
        )
    told: dict[str, Any] = {"how": how} | ({} if folds is None else {"folds": folds})
    return told | {name: document[name] for name in KEPT if document.get(name) is not None}


def read_period(period: Any) -> str | list[str]:
    """The time that the data are from: text as it is, or the first and the last day in ISO form.

    >>> from datetime import date
    >>> read_period((date(2024, 1, 1), "2024-03-31")), read_period("first quarter of 2024")
    (['2024-01-01', '2024-03-31'], 'first quarter of 2024')
    """
    if isinstance(period, str) and period.strip():
        return period
    if not isinstance(period, (tuple, list)) or len(period) != 2:
        raise ParameterError(
            "period must be text, or a pair of dates or of their ISO texts, such as "
            f"('2024-01-01', '2024-03-31'), but {shown(period)} came."
        )
    (first, begin), (last, end) = (_day(value) for value in period)
    if first > last:
        raise ParameterError(f"period must begin before it ends, but it is {begin} to {end}.")
    return [begin, end]


def _day(value: Any) -> tuple[date, str]:
    """The day of a date, or of ISO text, and the text."""
    value = plain(value)
    text = value.isoformat() if isinstance(value, date) else value  # a datetime is one, too
    try:
        return datetime.fromisoformat(text).date(), text
    except (TypeError, ValueError):
        raise ParameterError(
            "each end of a period must be a date or its ISO text, such as '2024-03-31', but "
            f"{shown(value)} came. Text of another form can be the whole period: period='...'."
        ) from None


def records(facts: Mapping[str, Any], name: str) -> list[Any]:
    """What a provenance has recorded under a name, the earliest first.

    >>> records({"prior": ({"kept": 0.1},)}, "prior"), records({}, "prior")
    ([{'kept': 0.1}], [])
    """
    found = facts.get(name, [])
    return list(found) if isinstance(found, (list, tuple)) else [found]


def read_notes(notes: Any) -> str | list[str]:
    """Text, or a list of texts, for whoever reads the file.

    >>> read_notes(["approved by risk", "refit in May"])
    ['approved by risk', 'refit in May']
    """
    if isinstance(notes, str):
        return notes
    if isinstance(notes, (list, tuple)) and all(isinstance(note, str) for note in notes):
        return list(notes)
    raise ParameterError(f"notes must be text or a list of texts, but {shown(notes)} came.")
