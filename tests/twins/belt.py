"""The calibration belt the slow way. It imports nothing of ours.

Polynomials are in t = (z − mean)/spread of the log-odds z, so that searches are well-conditioned.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

K = chi2.ppf(0.95, 1)


def scaled(p, w):
    z = np.log(p / (1 - p))
    middle = np.average(z, weights=w)
    spread = math.sqrt(np.average((z - middle) ** 2, weights=w))
    return (z - middle) / spread, middle, spread


def loss(beta, y, t, w):
    eta = sum(b * t**j for j, b in enumerate(beta))
    return float(np.sum(w * (np.logaddexp(0, eta) - y * eta)))


def best(degree, y, t, w, push=0.0, tilt=None):
    """The β of least loss − push·(tilt·β), by a general search."""
    tilt = np.zeros(degree + 1) if tilt is None else tilt

    def gradient(beta):
        eta = sum(b * t**j for j, b in enumerate(beta))
        left = w * (1 / (1 + np.exp(-eta)) - y)
        return np.array([left @ t**j for j in range(degree + 1)]) - push * tilt

    start = np.zeros(degree + 1)
    return minimize(
        lambda beta: loss(beta, y, t, w) - push * float(tilt @ beta),
        start,
        jac=gradient,
        method="BFGS",
        options={"gtol": 1e-8, "maxiter": 2000},
    ).x


def belt(y, p, w, begin=1, highest=4):
    """The degree, the statistic, and the curve's coefficients in t."""
    t, middle, spread = scaled(p, w)
    right = loss([middle, spread], y, t, w)
    degree = begin
    beta = best(degree, y, t, w)
    while degree < highest:
        further = best(degree + 1, y, t, w)
        if 2 * (loss(beta, y, t, w) - loss(further, y, t, w)) <= K:
            break
        degree, beta = degree + 1, further
    return degree, 2 * (right - loss(beta, y, t, w)), beta


def furthest(place, degree, fall, y, p, w, side):
    """The highest (side 1) or lowest (−1) probability at a place, of all polynomials of the degree
    whose loss is ``fall`` above the least, by a search for how hard to push."""
    t, middle, spread = scaled(p, w)
    at = (math.log(place / (1 - place)) - middle) / spread
    tilt = side * at ** np.arange(degree + 1)
    least = loss(best(degree, y, t, w), y, t, w)

    def above(push):
        return loss(best(degree, y, t, w, push, tilt), y, t, w) - least - fall

    top = 1.0
    while above(top) < 0:
        top *= 1.5
    push = brentq(above, 0.0, top, xtol=1e-6)
    beta = best(degree, y, t, w, push, tilt)
    return 1 / (1 + math.exp(-side * float(tilt @ beta)))


def beyond(t, free, taken):
    """P(χ²_free + the sum of ``taken`` χ²₁ above K each ≥ t), by one integral in another."""
    if not taken:
        return float(chi2.sf(t, free)) if free else 1.0
    if t <= taken * K:
        return 1.0
    end = t - (taken - 1) * K  # d = end − x² makes what is integrated smooth there
    inner, _ = quad(
        lambda x: 2 * x * beyond(t - end + x * x, free, taken - 1) * chi2.pdf(end - x * x, 1),
        0.0,
        math.sqrt(end - K),
        epsabs=1e-12,
        epsrel=1e-9,
    )
    return (inner + float(chi2.sf(t - (taken - 1) * K, 1))) / 0.05
