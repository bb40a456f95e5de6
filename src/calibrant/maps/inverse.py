"""Where a map reaches a probability: as a score, and as a map of 0 and 1; to the exact double."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.piecewise import Piecewise
from calibrant.plan.borders import LARGEST_DOUBLE, first_beyond, number, on_stretches, rank
from calibrant.plan.map_input import PlanTarget, stretches

DECISION = PlanTarget("a decision", "Compare what calibrate gives with the threshold.")


class ScoreAt(NamedTuple):
    """Where a map reaches a probability.

    Attributes
    ----------
    score : float
        The threshold: scores from here on (of a falling map: up to here) have at least that
        probability, and no others.
    low, high : float
        The scores with exactly that probability, where the map is flat; else both are ``score``.
    probability : float
        What the map gives at ``score``: more than was asked for where it jumps over that.
    rising : bool
        Whether the map rises with the score.
    """

    score: float
    low: float
    high: float
    probability: float
    rising: bool = True


def score_at(map_: Map, probability: Any) -> ScoreAt:
    """The score at which a monotone map reaches a probability, in 64 evaluations twice.

    >>> from calibrant.maps import Identity, Piecewise
    >>> score_at(Identity(), 0.05).score
    0.05
    >>> found = score_at(Piecewise.step([0.3, 0.7], [0.1, 0.5, 0.9]), 0.5)
    >>> found.low, round(found.high, 9), found.probability
    (0.3, 0.7, 0.5)
    """
    p = read_probability(probability, "the probability")
    least, most = probability_range(map_)
    if not least <= p <= most:
        raise InputError(
            f"the calibrator gives probabilities from {least:.6g} to {most:.6g}, so that no score "
            f"has {p:g}. Ask for one between."
        )
    start, beyond = (_first_beyond(map_, at) for at in (p, math.nextafter(p, math.inf)))
    # where the map falls: the last score with at least p, and the first that has no more than p
    score, edge = (start, beyond - 1) if map_.trend > 0 else (start - 1, beyond)
    found, other = number(np.array([score, edge])).tolist()
    reached = float(map_(np.array([found]))[0])
    low, high = (found, found) if reached != p else (min(found, other), max(found, other))
    return ScoreAt(found, low, high, reached, map_.trend > 0)


def _first_beyond(map_: Map, p: float) -> int:
    """The first rank of scores at which the map has passed p; one beyond the last if it never has.

    A rising map has passed p where it is at least p, a falling one where it is below.
    """
    low, high = (rank(np.array([end])) for end in _ends(map_))
    return int(first_beyond(np.array([p]), map_, np.array(map_.trend < 0), low, high + 1)[0])


def probability_range(map_: Map) -> tuple[float, float]:
    """The smallest and the largest probability of a map that rises or falls throughout."""
    if isinstance(map_, VectorMap):
        raise InputError("a calibrator of several classes has no single score for a probability.")
    if map_.segments is not None:
        raise InputError(
            "a calibrator of segments has a score for each of them. Ask the map of one: "
            "map.maps[i], or map.default."
        )
    if not map_.trend:
        raise InputError(
            "the map must rise or fall throughout, but this one may do both: then several scores "
            "have the same probability. Fit a method that keeps the order of scores, such as BLS, "
            "Platt or Isotonic."
        )
    least, most = sorted(map_(np.array(_ends(map_))).tolist())
    return least, most


def _ends(map_: Map) -> tuple[float, float]:
    """The smallest and the largest score that the map takes."""
    return (0.0, 1.0) if map_.takes_probabilities else (-LARGEST_DOUBLE, LARGEST_DOUBLE)


def read_probability(value: Any, name: str) -> float:
    """A number in [0, 1]; ``name`` is what an error calls it."""
    fine = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not fine or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"{name} must be in [0, 1], but {value!r} came.")
    return float(value)


def decided_by(
    map_: Map, threshold: float, function: Callable[[Array], Array] | None = None
) -> Piecewise | None:
    """Steps of 0 and 1 on the raw score: 1 where the map gives at least ``threshold``.

    None where it is not known on which intervals the map rises and falls. ``function`` is what
    computes the probabilities, if that is not the map itself.

    >>> decided_by(Piecewise.linear([0.0, 0.5, 1.0], [0.0, 0.8, 0.0]), 0.4)([0.2, 0.25, 0.75, 0.8])
    array([0., 1., 1., 0.])
    """
    found = stretches(map_.plan(DECISION))
    if found is None:
        return None
    low, _, piece = on_stretches(np.array([threshold]), function or map_, found)
    changes = np.flatnonzero(np.diff(piece)) + 1
    values = piece[np.append(0, changes)].astype(np.float64)
    return Piecewise.step(low[changes], values)
