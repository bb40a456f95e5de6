"""Estimated rates with their intervals, as values."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.result_tables import PlainFields


@dataclass(frozen=True)
class RateEstimate(PlainFields):
    """The result of `estimate_rate`.

    Attributes
    ----------
    rate : float
        The most likely rate of positives among the rows.
    low, high : float
        The ends of its interval.
    train_rate : float
        The rate at which the probabilities are calibrated.
    level : float
        The confidence of the interval.
    weight, effective_size : float
        Σw of the rows, and (Σw)² / Σw²: how many rows of equal weight they are worth.
    iterations : int
        How often the likelihood was evaluated for the rate.

    Examples
    --------
    >>> print(RateEstimate(0.031, 0.028, 0.034, 0.1, 0.95, 5000.0, 5000.0, 6))
    rate 0.031 (0.028 to 0.034 at 95 %) among rows of weight 5000; 0.1 in training
    """

    rate: float
    low: float
    high: float
    train_rate: float
    level: float
    weight: float
    effective_size: float
    iterations: int

    def __str__(self) -> str:
        return (
            f"rate {self.rate:.4g} ({self.low:.4g} to {self.high:.4g} at {100 * self.level:g} %) "
            f"among rows of weight {self.weight:g}; {self.train_rate:.4g} in training"
        )


@dataclass(frozen=True, eq=False)
class RateEstimates(PlainFields, Frozen):
    """The result of `estimate_rates`: as `RateEstimate`, with an entry for each class.

    Attributes
    ----------
    rate : array of shape (k,)
        The most likely rates of the classes among the rows; their sum is 1.
    low, high : array of shape (k,), or None
        The ends of the interval of each, one class at a time; None where none were wanted.
    train_rate : array of shape (k,)
        The rates at which the probabilities are calibrated.
    level : float or None
        The confidence of the intervals.
    weight, effective_size : float
    iterations : int

    Examples
    --------
    >>> import numpy as np
    >>> r = RateEstimates(np.array([0.2, 0.8]), None, None, np.array([0.5, 0.5]), None, 9.0, 9.0, 4)
    >>> r.to_dict()["rate"]
    [0.2, 0.8]
    """

    rate: Array
    low: Array | None
    high: Array | None
    train_rate: Array
    level: float | None
    weight: float
    effective_size: float
    iterations: int
