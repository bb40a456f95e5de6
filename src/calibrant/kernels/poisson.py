"""The Poisson prior on bin boundaries: gaps between scores, and the λ to use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant.array_types import Array
from calibrant.kernels.abb import log_evidence, quadrature
from calibrant.kernels.model_weights import shares

#: the λ that are averaged: half a decade apart, of equal prior weight
GRID = 10.0 ** np.arange(-1.0, 4.25, 0.5)
#: λ with less weight than this are left out of the average
LEAST = 1e-4


def unit_gaps(scores: Array) -> Array:
    """(x_{k+1} − x_k) / (x_D − x_1), safe from overflow.

    >>> unit_gaps(np.array([0.0, 1.0, 4.0])).tolist()
    [0.25, 0.75]
    """
    with np.errstate(over="ignore"):
        span = scores[-1] - scores[0]
    if np.isinf(span):
        return np.asarray(np.diff(scores / 2.0) / (scores[-1] / 2.0 - scores[0] / 2.0))
    return np.asarray(np.diff(scores) / span)


def is_whole(*columns: Array) -> bool:
    """Whether all weights are whole numbers, so that factorials can be looked up."""
    return all(bool((column == np.floor(column)).all()) for column in columns)


def choose_lambda(wanted: float | str, scores: Array, n0: Array, n1: Array) -> tuple[Array, Array]:
    """The λ to use and their weights: the one given, the likeliest, or those of the grid."""
    if not isinstance(wanted, str):
        return np.array([float(wanted)]), np.ones(1)
    nodes, weight = quadrature(float(n0.sum() + n1.sum()), is_whole(n0, n1), 1e-4)
    gaps = unit_gaps(scores)

    def evidence(value: float) -> float:
        return log_evidence(n0, n1, gaps * value, nodes, weight)

    logs = np.array([evidence(float(value)) for value in GRID])
    return CHOICES[wanted](evidence, logs)


def _average(evidence: Callable[[float], float], logs: Array) -> tuple[Array, Array]:
    weights = shares(-2.0 * logs)
    kept = weights >= LEAST
    return GRID[kept], weights[kept] / weights[kept].sum()


def _empirical(evidence: Callable[[float], float], logs: Array) -> tuple[Array, Array]:
    """The grid's best, then Brent's method between its neighbours."""
    best = int(np.argmax(logs))
    low, high = np.log10(GRID[max(best - 1, 0)]), np.log10(GRID[min(best + 1, len(GRID) - 1)])
    found = minimize_scalar(
        lambda exponent: -evidence(float(10.0**exponent)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-3},
    )
    value = 10.0**found.x if -found.fun >= logs[best] else GRID[best]
    return np.array([float(value)]), np.ones(1)


CHOICES = {"average": _average, "empirical": _empirical}
