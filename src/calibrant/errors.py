"""What can go wrong, by name. An error says what must be, what came, and what to do."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "AdviceWarning",
    "CalibrationWarning",
    "InputError",
    "MissingExtraError",
    "ParameterError",
]


class InputError(ValueError):
    """The data (scores, labels, weights, a file) cannot be used as they came."""


class ParameterError(ValueError):
    """A parameter of a method is outside its limits."""


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""


class CalibrationWarning(UserWarning):
    """The result is usable, but something about it deserves a look."""


class AdviceWarning(CalibrationWarning):
    """The data or the choice look like a known mistake; see `calibrant.advise`."""


def import_extra(module: str, extra: str) -> Any:
    """Import an optional module, or say which extra brings it.

    >>> import_extra("math", extra="cli").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        package = module.split(".", maxsplit=1)[0]
        raise MissingExtraError(
            f"this feature needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'calibrant[{extra}]'"
        ) from missing
