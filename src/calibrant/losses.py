"""Logits, log-probabilities and their like, without overflow or loss of digits."""

from __future__ import annotations

import math

import numpy as np

from calibrant.array_types import Array

SMALLEST = 5e-324
LARGEST = 1.0 - 2.0**-53
#: the largest number whose exponential is a double
LARGEST_EXPONENT = 709.782712893384


def plain_expit(f: Array) -> Array:
    """σ(f) by the C library's exp, one number after another: what SciPy does, bit for bit.

    Some ten times slower than SciPy, but all it takes is NumPy: a saved calibrator then gives the
    same bits where SciPy is not installed. (NumPy's own exp may differ in the last bit.)

    >>> plain_expit(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    values = -np.asarray(f, dtype=np.float64)
    beyond = values > LARGEST_EXPONENT
    powers = np.fromiter(
        map(math.exp, np.where(beyond, 0.0, values).ravel().tolist()), np.float64, values.size
    ).reshape(values.shape)
    return np.asarray(np.where(beyond, 0.0, 1.0 / (1.0 + powers)))


try:
    from scipy.special import expit
except ImportError:
    expit = plain_expit


def sigmoid(f: Array) -> Array:
    """σ(f) = 1 / (1 + exp(−f)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(expit(f), dtype=np.float64)


def logit(p: Array) -> Array:
    """ln p − ln(1 − p), with p first clipped to [5e-324, 1 − 2⁻⁵³]: always finite.

    >>> logit(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [-744.44, 0.0, 36.737]
    """
    q = np.clip(p, SMALLEST, LARGEST)
    return np.asarray(np.log(q) - np.log1p(-q), dtype=np.float64)


def log_p(p: Array) -> Array:
    """ln p, with p first clipped as in `logit`."""
    return np.asarray(np.log(np.clip(p, SMALLEST, LARGEST)), dtype=np.float64)


def minus_log_rest(p: Array) -> Array:
    """−ln(1 − p), with p first clipped as in `logit`."""
    return np.asarray(-np.log1p(-np.clip(p, SMALLEST, LARGEST)), dtype=np.float64)


def log_softmax(z: Array) -> Array:
    """ln softmax of each row, without overflow.

    >>> np.exp(log_softmax(np.array([[1000.0, 1000.0]]))).tolist()
    [[0.5, 0.5]]
    """
    below = z - z.max(axis=1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))


def softmax(z: Array) -> Array:
    """exp z / Σ exp z of each row, without overflow.

    >>> softmax(np.array([[1000.0, 1000.0]])).tolist()
    [[0.5, 0.5]]
    """
    power = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def softplus(f: Array) -> Array:
    """ln(1 + exp f), without overflow."""
    return np.asarray(np.logaddexp(0.0, f), dtype=np.float64)


def shift_odds(p: Array, factor: Array | float) -> Array:
    """p' with p' / (1 − p') = factor · p / (1 − p). 0 and 1 stay; p' rises wherever p does.

    >>> shift_odds(np.array([0.0, 0.5, 1.0]), 0.25).tolist()
    [0.0, 0.2, 1.0]
    """
    if np.ndim(factor) == 0 and factor == 1.0:
        return p.copy()
    with np.errstate(divide="ignore", over="ignore"):
        # every operation is monotone in p, so rounding cannot turn an order round
        return np.asarray(1.0 / (1.0 + (1.0 - p) / (p * factor)), dtype=np.float64)
