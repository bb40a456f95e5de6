"""One piece of advice, and how to warn of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from calibrant.errors import AdviceWarning, caller_level


@dataclass(frozen=True)
class Advice:
    """A possible mistake that was found.

    Attributes
    ----------
    code : str
        A short name for it, for programs.
    text : str
        What was found, with the figures, and what to do.
    figures : mapping of str to numbers
    """

    code: str
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return Advice, (self.code, self.text, dict(self.figures))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"code": self.code, "text": self.text, "figures": dict(self.figures)}


def warn_of(advice: Iterable[Advice]) -> None:
    """Each piece as an AdviceWarning (a CalibrationWarning), at the user's line."""
    for one in advice:
        warnings.warn(one.text, AdviceWarning, stacklevel=caller_level())
