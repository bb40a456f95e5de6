"""What a calibrator's provenance says of the rows of its fit, and of what was done to it later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.data.provenance import records
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.limits import Number
from calibrant.maps import VectorMap

FOLLOWS = (
    "slope and shape: not tested, since an isotonic map follows the rows of its fit so closely "
    "that its steps are too far apart, which would look like a change. To test them, compare with "
    "old rows: check_drift(old, new, calibrator=...)."
)
#: what a fit remembers of its rows
FACTS = ("weight", "positive_weight", "effective_size")


def follows_its_rows(fitted: Fitted) -> bool:
    """Whether the map is isotonic: its steps are further apart than the true probabilities."""
    chosen = str(fitted.provenance.get("chosen", fitted.method))
    return chosen.lower() == "isotonic"


def learned_from(facts: Mapping[str, Any]) -> float | None:
    """n·rate·(1 − rate) of the rows of the fit, or of the last update if they were fewer.

    An update has learned its shift from its own rows, however many the fit had.
    """
    weight, ones, size = (known_count(facts.get(name)) for name in FACTS)
    if weight is None or ones is None or size is None or ones > weight:
        return None
    found = [(size, ones / weight)]
    for note in records(facts, "updated")[-1:]:
        told: Mapping[str, Any] = note if isinstance(note, Mapping) else {}
        later, rate = known_count(told.get("effective_size")), told.get("rate")
        if later is not None and rate is not None and Number(0.0, 1.0).allows(rate):
            found.append((later, float(rate)))
    # half a row more in each class: one may have been absent
    smoothed = [(n, (n * rate + 0.5) / (n + 1.0)) for n, rate in found]
    return min(max(n, 1.0) * rate * (1.0 - rate) for n, rate in smoothed)


def known_count(value: Any) -> float | None:
    """A number above 0; None for anything else that a file may hold."""
    return float(value) if Number(0.0, open=True).allows(value) else None


def known_rate(fitted: Fitted) -> Any:
    """The rate at which the probabilities are calibrated, if the provenance tells it."""
    facts, many = fitted.provenance, isinstance(fitted.map, VectorMap)
    last = _last_move(facts)
    try:
        if last is not None:
            rate = np.asarray(last["rate"], dtype=np.float64)
        elif many:
            weights = np.asarray(facts["class_weights"], dtype=np.float64)
            rate = weights / (weights.sum() or 1.0)
        else:
            rate = np.asarray(float(facts["positive_weight"]) / float(facts["weight"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):  # there are no such numbers
        return None
    fits = rate.ndim == int(many) and bool(((rate > 0.0) & (rate < 1.0)).all())
    return rate if fits else None


def _last_move(facts: Mapping[str, Any]) -> Any:
    """The record of the adjustment or update (see `Drift.update`) that came last, if any did."""
    adjusted, updated = records(facts, "prior"), records(facts, "updated")
    newest: Any = updated[-1] if updated else None
    if isinstance(newest, Mapping) and newest.get("after_adjustments") == len(adjusted):
        return newest
    return adjusted[-1] if adjusted else None
