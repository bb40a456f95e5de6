"""What can go wrong, by name. An error says what must be, what came, and what to do."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping
from typing import Any

from calibrant.shell_words import quoted

__all__ = [
    "AdviceWarning",
    "CalibrationWarning",
    "ConvergenceError",
    "InputError",
    "MissingExtraError",
    "ParameterError",
    "RangeWarning",
]

#: where this package lies
PACKAGE = os.path.dirname(__file__) + os.sep
#: libraries that call this package on behalf of a user, or stand between two of its functions
BETWEEN = {"concurrent", "contextlib", "functools", "joblib", "numpy", "sklearn", "threading"}


class InputError(ValueError):
    """The data (scores, labels, weights, a file) cannot be used as they came."""


class ConvergenceError(InputError):
    """A fit did not reach its optimum on these data."""


class ParameterError(ValueError):
    """A parameter of a method is outside its limits."""


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""


class CalibrationWarning(UserWarning):
    """The result is usable, but something about it deserves a look."""


class AdviceWarning(CalibrationWarning):
    """The data or the choice look like a known mistake; see `calibrant.advise`."""


class RangeWarning(CalibrationWarning):
    """Most scores lie beyond those that the calibrator was fitted on."""


def caller_level() -> int:
    """The ``stacklevel`` for a warning of the calling function that points at the user's line.

    That is the first function, going up, which lies outside of this package and of libraries such
    as scikit-learn that call it for a user. In a thread of theirs it is the first outside of this
    package.

    >>> caller_level()
    1
    """
    frame, level, outside = inspect.currentframe(), 0, 0
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            outside = outside or level
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in BETWEEN:
                return level
        frame, level = frame.f_back, level + 1
    return outside or level


def how_many(counts: Mapping[str, int], total: int) -> str:
    """How many of a total are what, in words; nothing is said of zeros.

    >>> how_many({"missing": 1, "NaN": 0, "infinite": 2}, 4000)
    '1 of 4,000 is missing and 2 of 4,000 are infinite'
    """
    return " and ".join(
        f"{count:,} of {total:,} {'is' if count == 1 else 'are'} {word}"
        for word, count in counts.items()
        if count
    )


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
            f"Install it with: pip install {quoted(f'calibrant[{extra}]')}"
        ) from missing
