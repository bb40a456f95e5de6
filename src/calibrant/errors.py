"""Errors and warnings, and the words that errors share.

An error says what must be, what came, and what to do.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

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
BETWEEN = {
    *("concurrent", "contextlib", "functools", "joblib", "narwhals", "numpy", "pandas", "polars"),
    *("sklearn", "threading"),
}


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
    """The ``stacklevel`` with which a warning points at the user's line.

    It is that of the first function, going up, outside of this package and of libraries that call
    it for a user, such as scikit-learn. In a thread of such a library it is the first outside of
    this package.

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


def counts_in_words(counts: Mapping[str, int], total: int) -> str:
    """A phrase with the counts of a total that are not zero.

    >>> counts_in_words({"missing": 1, "NaN": 0, "infinite": 2}, 4000)
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
            f"Install it with: pip install {shell_quoted(f'calibrant[{extra}]')}"
        ) from missing


# --- What people may have meant: words of scikit-learn for things of ours, and words misspelt -----


P = ParamSpec("P")
R = TypeVar("R")

#: other words for a method, which are taken as such: scikit-learn's, and the name of the map
METHODS_ALSO = {"sigmoid": "platt", "identity": "uncalibrated", "ets": "ensemble-temperature"}

#: what scikit-learn calls a parameter, and what it is called here
PARAMETERS = {
    "n_bins": "bins",
    "strategy": "binning",
    "method": "calibrator",
    "base_estimator": "estimator",
    "y_true": "y",
    "y_prob": "p",
    "y_proba": "p",
    "y_pred": "p",
}
#: and its words for their values
VALUES = {"uniform": "width", "quantile": "mass", **METHODS_ALSO}


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """A question with the most similar known word, for the end of an error; empty if none is
    similar.

    >>> did_you_mean("isotnic", ["isotonic", "platt"]), did_you_mean("quantile", ["width", "mass"])
    (" Did you mean 'isotonic'?", " Did you mean 'mass'?")
    >>> did_you_mean("zzz", ["isotonic"]), did_you_mean(3, ["isotonic"])
    ('', '')
    """
    if not isinstance(word, str):
        return ""
    words = {name.lower(): name for name in known if isinstance(name, str)}
    said = word.lower().strip()
    near = [VALUES.get(said, said), *difflib.get_close_matches(said, words, n=1, cutoff=0.5)]
    return next((f" Did you mean {words[one]!r}?" for one in near if one in words), "")


def parameter_hint(name: str, known: Iterable[str], value: Any = None) -> str:
    """A hint at the name of our parameter for one of scikit-learn's; empty if it has no other name.

    >>> parameter_hint("strategy", ["bins", "binning"], "quantile")
    "scikit-learn's strategy is called binning here: write binning='mass'."
    """
    ours = PARAMETERS.get(name)
    if ours is None or ours not in known:
        return ""
    shown = VALUES.get(value, value) if isinstance(value, str) else value
    said = f"scikit-learn's {name} is called {ours} here"
    return f"{said}: write {ours}={shown!r}." if isinstance(shown, (str, int)) else f"{said}."


def refuse_foreign_names(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator that refuses scikit-learn's names of parameters, with a hint at ours.

    >>> @refuse_foreign_names
    ... def count(*, bins=10):
    ...     return bins
    >>> count(n_bins=5)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    calibrant.errors.ParameterError: count has no parameter 'n_bins': scikit-learn's n_bins is
    called bins here: write bins=5.

    Of a class, those of its constructor are refused.
    """
    if isinstance(function, type):
        function.__init__ = refuse_foreign_names(function.__init__)  # type: ignore[misc]
        return function
    known = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in kwargs.items():
            if name not in known and (ours := parameter_hint(name, known, value)):
                called = function.__qualname__.removesuffix(".__init__")
                raise ParameterError(f"{called} has no parameter {name!r}: {ours}")
        return function(*args, **kwargs)

    return asked


# --- Words of a command, quoted for the shell -----------------------------------------------------


WINDOWS = os.name == "nt"
#: what neither cmd nor PowerShell takes for anything but itself
_PLAIN = re.compile(r"[A-Za-z0-9_+=:./\\-]+")


def shell_quoted(word: str) -> str:
    """A word of a command, quoted where the shell needs it.

    Windows has two shells, and only double quotes mean the same to both.

    >>> shell_quoted("calibrator.json")
    'calibrator.json'
    """
    if not WINDOWS:
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    # backslashes before a quote, and before the closing one, count twice
    inner = re.sub(r'(\\*)"', r'\1\1\\"', word)
    return '"' + re.sub(r"(\\+)$", r"\1\1", inner) + '"'
