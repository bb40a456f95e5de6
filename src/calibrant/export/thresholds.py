"""Where to act: the threshold on the score that costs least."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.fitting.fitted import FittedCalibrator, map_of, to_fitted_map
from calibrant.rules.base import Map
from calibrant.rules.piecewise import probability_range, score_at


class Threshold(NamedTuple):
    """The result of `best_threshold`.

    Attributes
    ----------
    score : float
        Act on scores from here on (for a falling map: up to here). −∞ or ∞ where acting on all
        rows, or on none, is best whatever the score.
    probability : float
        The same on the scale of probabilities: cost_fp / (cost_fp + cost_fn).
    expected_cost : float, or None
        Per row of the scores that came, if the probabilities are right.
    cost_of_all, cost_of_none : float, or None
        Per row, of acting on all of them, and on none.
    """

    score: float
    probability: float
    expected_cost: float | None = None
    cost_of_all: float | None = None
    cost_of_none: float | None = None


def best_threshold(
    calibrator: FittedCalibrator | Map,
    *,
    cost_fp: float,
    cost_fn: float,
    scores: ArrayLike | ScoreTable | None = None,
) -> Threshold:
    """The score from which on acting costs less than not acting.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted or Map
        Of one score, rising or falling throughout.
    cost_fp : float
        What it costs to act on a negative.
    cost_fn : float
        What it costs not to act on a positive.
    scores : array-like of shape (n,) or ScoreTable, optional
        Scores of the rows that will be decided on, for the expected cost.

    Returns
    -------
    Threshold

    Notes
    -----
    Acting costs cost_fp·(1 − p) on average, not acting cost_fn·p: act where p ≥ t with
    t = cost_fp/(cost_fp + cost_fn). The score of t is found to the exact double
    (`Fitted.score_at`). The expected cost is the mean of the smaller of the two, so it is right as
    far as the probabilities are. O(1), and O(n) with scores.

    References
    ----------
    .. [1] C. Elkan, "The foundations of cost-sensitive learning", 2001.

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> found = best_threshold(Identity(), cost_fp=1.0, cost_fn=9.0, scores=[0.05, 0.2, 0.5])
    >>> found.score, round(found.expected_cost, 3), round(found.cost_of_none, 3)
    (0.1, 0.583, 2.25)
    """
    cost_fp, cost_fn = _read_cost("cost_fp", cost_fp), _read_cost("cost_fn", cost_fn)
    map_, fitted = map_of(calibrator), to_fitted_map(calibrator)
    unit = 1.0 if cost_fp + cost_fn < np.inf else 0.25  # their sum may leave the floats
    t = cost_fp * unit / (cost_fp * unit + cost_fn * unit)
    least, most = probability_range(map_)
    if least <= t <= most:
        score = score_at(map_, t).score
    else:  # one side of t holds all probabilities
        score = np.inf if (t > most) == (map_.trend > 0) else -np.inf
    if scores is None:
        return Threshold(score, t)
    if isinstance(scores, ScoreTable):
        p, weight = map_(scores.scores), scores.weight
    else:
        p = np.asarray(map_(scores) if fitted is None else fitted.calibrate(scores))
        weight = np.ones(len(p))
    share = weight / weight.sum()
    acting, waiting = cost_fp * (1.0 - p), cost_fn * p
    costs = (float(share @ cost) for cost in (np.minimum(acting, waiting), acting, waiting))
    return Threshold(score, t, *costs)


def _read_cost(name: str, cost: Any) -> float:
    """A checked cost above 0."""
    fine = isinstance(cost, Real) and not isinstance(cost, (bool, np.bool_))
    if not fine or not 0.0 < cost < np.inf:
        raise ParameterError(f"{name} must be a finite number above 0, but {cost!r} came.")
    return float(cost)
