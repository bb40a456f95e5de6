"""Measures of probabilities: every function takes labels and probabilities, or a score table."""

from typing import Any

from calibrant.errors import measure_hint
from calibrant.lazy_names import lazy_names

_named, __dir__, __all__ = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _named(name)
    hint = "" if name.startswith("_") else measure_hint(name, __all__)
    raise AttributeError(f"module 'calibrant.metrics' has no attribute {name!r}.{hint}")
