"""Limits of parameters: declared once, checked once, and used to word the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from calibrant.data.columns import plain
from calibrant.errors import ParameterError, did_you_mean


@dataclass(frozen=True)
class OneOf:
    """The limits of a parameter that is a word from a short list."""

    words: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        value = plain(value)
        return any(type(value) is type(word) and value == word for word in self.words)

    def __str__(self) -> str:
        return " or ".join(repr(word) for word in self.words)


@dataclass(frozen=True)
class Number:
    """The limits of a number: at least ``low`` (above it if ``open``), at most ``high``."""

    low: float
    high: float = float("inf")
    whole: bool = False
    open: bool = False

    def allows(self, value: Any) -> bool:
        kind = Integral if self.whole else Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
            return False
        number = float(value)
        above = number > self.low if self.open else number >= self.low
        return above and number <= self.high and abs(number) != float("inf")

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        bound = f"{kind} {'above' if self.open else 'of at least'} {self.low:g}"
        return bound if self.high == float("inf") else f"{bound} and at most {self.high:g}"


@dataclass(frozen=True)
class Each:
    """The limits of a parameter that is a tuple or list, possibly empty, of such values."""

    limit: Number

    def allows(self, value: Any) -> bool:
        return isinstance(value, (tuple, list)) and all(self.limit.allows(v) for v in value)

    def __str__(self) -> str:
        return f"a tuple, each of its entries {self.limit}"


class Limit(Protocol):
    """What a parameter may be."""

    def allows(self, value: Any) -> bool:
        """Whether it may be this."""

    def __str__(self) -> str:
        """What it must be, for an error."""


def check_parameters(estimator: Any, limits: Mapping[str, tuple[Limit, ...]]) -> None:
    """Raise a ParameterError for a parameter that is within none of its limits."""
    for name, allowed in limits.items():
        value = getattr(estimator, name)
        if not any(limit.allows(value) for limit in allowed):
            words = [w for limit in allowed if isinstance(limit, OneOf) for w in limit.words]
            raise ParameterError(
                f"{name} of {type(estimator).__name__} must be "
                f"{', or '.join(str(limit) for limit in allowed)}, but {value!r} came."
                f"{did_you_mean(value, words)}"
            )
