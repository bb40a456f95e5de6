"""The intervals of a model's predictions, as functions of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.local.rule import RowInputs


@dataclass(frozen=True)
class NoInputs:
    """A map of the score needs nothing else."""

    def __call__(self, X: Any) -> RowInputs:
        return RowInputs()


@dataclass(frozen=True, eq=False)
class CustomIntervals:
    """A function of the user's own for the intervals of a model."""

    model: Any
    interval: Callable[[Any, Any], Any]

    def __call__(self, X: Any) -> tuple[Any, Any]:
        found = self.interval(self.model, X)
        try:
            lower, upper = found
        except (TypeError, ValueError) as wrong:
            raise InputError(
                "the function interval must return (lower, upper), but "
                f"{type(found).__name__} came."
            ) from wrong
        return lower, upper


@dataclass(frozen=True, eq=False)
class IntervalsOfModel:
    """A function from rows to intervals around the probability of the positive class."""

    intervals: Callable[[Any], Any]
    flip: bool

    def __call__(self, X: Any) -> RowInputs:
        lower, upper = self.intervals(X)
        if self.flip:
            lower, upper = 1.0 - np.asarray(upper), 1.0 - np.asarray(lower)
        return RowInputs(lower=lower, upper=upper)
