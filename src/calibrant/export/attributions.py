"""Attributions of scores, such as SHAP values, moved through a calibrator: they still add up."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import check_word
from calibrant.errors import InputError
from calibrant.fitting.fitted import FittedCalibrator, map_of, to_fitted_map
from calibrant.losses import logit
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.sigmoids import Logistic

LINKS = ("identity", "sigmoid")
OUTPUTS = ("log_odds", "probability")
#: scores that differ by less, as a share of their size, are one: the slope of the map counts there
SAME = 1e-9
#: half the step over which the slope is taken, as a share of the score
STEP = 1e-6


class Attributions(NamedTuple):
    """The result of `calibrate_attributions` for arrays.

    Attributes
    ----------
    values : array of shape (n, d)
        What each feature adds to the calibrated output.
    base_values : array of shape (n,)
        The output at the base score.
    """

    values: Array
    base_values: Array


def calibrate_attributions(
    attributions: Any,
    calibrator: FittedCalibrator | Map,
    *,
    base_values: Any = None,
    link: str = "identity",
    output: str = "log_odds",
) -> Any:
    """Attributions of a model's score as attributions of the calibrated output.

    SHAP values add up to the score of the model; after calibration the output is another. These add
    up to it: exactly the attributions of the calibrated model where the map is a line on the scale
    of the output, and otherwise shared out along the way from the base score to the score.

    Parameters
    ----------
    attributions : array-like of shape (n, d), or shap.Explanation
        φ: what each feature adds to the score. Of an explanation ``values`` and ``base_values`` are
        read; of several outputs pass that of the positive class, ``explanation[:, :, 1]``.
    calibrator : fitted calibrator, Fitted or Map
        Of one score.
    base_values : float or array-like of shape (n,), optional
        f₀: the base score, where an array of attributions comes. f = f₀ + Σφ is the row's score.
    link : {"identity", "sigmoid"}, default="identity"
        What the calibrator takes: f itself, or σ(f), for a model that is explained in log-odds and
        was calibrated by its probabilities.
    output : {"log_odds", "probability"}, default="log_odds"
        What the new attributions add up to.

    Returns
    -------
    Attributions or shap.Explanation
        As they came: arrays for an array, and a copy of the explanation for an explanation.

    Notes
    -----
    With g(f) the calibrated output, log-odds or probability, the new base value is g(f₀), and
    φᵢ' = φᵢ·(g(f) − g(f₀))/(f − f₀): Aumann and Shapley's ∫₀¹ φᵢ·g'(f₀ + t(f − f₀)) dt, whose
    integral has this closed form since g depends on the sum alone. So Σφᵢ' = g(f) − g(f₀), and
    features that add nothing still add nothing. If g is a line a + b·f (`Temperature`, and `Platt`
    of what it was fitted to), φᵢ' = b·φᵢ are the Shapley values themselves. Where f = f₀ the slope
    of g stands for the quotient. O(n·d), and three readings of the map.

    References
    ----------
    .. [1] R. Aumann, L. Shapley, "Values of non-atomic games", 1974.
    .. [2] M. Sundararajan, A. Taly, Q. Yan, "Axiomatic attribution for deep networks", 2017,
       arXiv:1703.01365.

    Examples
    --------
    >>> from calibrant.maps import Logistic, Piecewise
    >>> phi = [[1.0, -0.5], [0.25, 0.25]]  # adds up to log-odds of -0.5 and 0.5 beside the base
    >>> new = calibrate_attributions(phi, Logistic(0.5, (("x", 2.0),)), base_values=-1.0)
    >>> new.values.tolist(), new.base_values.tolist()
    ([[2.0, -1.0], [0.5, 0.5]], [-1.5, -1.5])
    >>> bent = Piecewise.linear([-2.0, 0.0, 2.0], [0.1, 0.2, 0.8])
    >>> new = calibrate_attributions(phi, bent, base_values=-1.0, output="probability")
    >>> (new.values.sum(axis=1) + new.base_values).round(6).tolist()
    [0.175, 0.175]
    """
    check_word("link", link, LINKS)
    check_word("output", output, OUTPUTS)
    phi, base = _read_attributions(attributions, base_values)
    map_ = map_of(calibrator)
    if isinstance(map_, VectorMap) or map_.segments is not None:
        raise InputError(
            "the calibrator must take one score and nothing else, but one of several classes or "
            "of segments came. Move the attributions of each class or segment by its own map."
        )
    line = _line_of_log_odds(map_, link) if output == "log_odds" else None
    if line is not None:
        intercept, slope = line
        return _as_they_came(attributions, slope * phi, intercept + slope * base)
    reading = _CalibratedOutput(calibrator, map_, link, output)
    score = base + phi.sum(axis=1)
    end, begin = reading(score), reading(base)
    same = np.abs(score - base) <= SAME * np.maximum(1.0, np.abs(base))
    factor = np.divide(end - begin, score - base, out=np.zeros(len(base)), where=~same)
    factor[same] = reading.slope(base[same])
    values = phi * factor[:, None]
    return _as_they_came(attributions, values, np.where(same, end - values.sum(axis=1), begin))


class _CalibratedOutput(NamedTuple):
    """The calibrated log-odds, or probability, as a function of the score that attributions add up
    to."""

    calibrator: Any
    map_: Map
    link: str
    output: str

    def __call__(self, score: Array) -> Array:
        fitted = to_fitted_map(self.calibrator)
        if self.link == "sigmoid":
            p = self.map_.of_logit(score)
        else:
            p = np.asarray(self.map_(score) if fitted is None else fitted.calibrate(score))
        if self.output == "probability":
            return p
        certain = (p <= 0.0) | (p >= 1.0)
        if certain.any():
            raise InputError(
                f"{int(certain.sum())} of the scores get a probability of 0 or 1, which has no "
                'log-odds. Pass output="probability".'
            )
        return logit(p)

    def slope(self, score: Array) -> Array:
        """The slope of the function at some scores, by a small step to either side."""
        step = STEP * np.maximum(1.0, np.abs(score))
        low, high = score - step, score + step
        if self.link == "identity" and ((score >= 0.0) & (score <= 1.0)).all():
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        if not len(score):
            return score
        return np.asarray((self(high) - self(low)) / (high - low))


def _line_of_log_odds(map_: Map, link: str) -> tuple[float, float] | None:
    """Intercept and slope, if the map's log-odds are a straight line of the score; else None.

    >>> of_logits = Logistic(1.0, (("z", 2.0),))
    >>> _line_of_log_odds(of_logits, "sigmoid"), _line_of_log_odds(of_logits, "identity")
    ((1.0, 2.0), None)
    """
    inner = map_.simple
    if not isinstance(inner, Logistic) or inner.clip is not None:
        return None
    straight = {"identity": "x", "sigmoid": "z"}[link]
    if any(name != straight for name, c in inner.terms if c):
        return None
    return inner.intercept, sum(c for _, c in inner.terms)


def _read_attributions(attributions: Any, base_values: Any) -> tuple[Array, Array]:
    """The attributions as a matrix, and the base score of each row."""
    values, base = attributions, base_values
    if hasattr(attributions, "base_values"):
        if base_values is not None:
            raise InputError("base_values must be left out: the explanation has its own.")
        values, base = attributions.values, attributions.base_values
    if base is None:
        raise InputError("base_values must be given beside an array: f₀, to which φ adds.")
    phi, base = np.asarray(values, dtype=np.float64), np.asarray(base, dtype=np.float64)
    if phi.ndim != 2:
        raise InputError(
            f"attributions must have the shape (n, d), but {phi.shape} came. Of several outputs "
            "take that of the positive class: explanation[:, :, 1]."
        )
    if base.ndim > 1 or base.size not in (1, len(phi)):
        raise InputError(
            f"base_values must be a number or one for each of {len(phi)} rows, but the shape "
            f"{base.shape} came."
        )
    if not (np.isfinite(phi).all() and np.isfinite(base).all()):
        raise InputError("attributions and base_values must be finite.")
    return phi, np.broadcast_to(base.reshape(-1), (len(phi),))


def _as_they_came(attributions: Any, values: Array, base_values: Array) -> Any:
    """The new attributions in the form of the old ones: arrays, or an explanation of shap."""
    if not hasattr(attributions, "base_values"):
        return Attributions(values, base_values)
    found = copy.copy(attributions)
    found.values, found.base_values = values, base_values
    return found
