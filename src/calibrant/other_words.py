"""What people may have meant: words of scikit-learn for things of ours, and words misspelt."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from calibrant.errors import ParameterError

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
#: what papers and other libraries call a measure, and how it is called here
MEASURES = {
    "ace": 'classwise_ece(y, p, binning="mass"), or ece(y, p, binning="mass") for two classes',
    "adaptive_ece": 'ece(y, p, binning="mass")',
    "adaptive_calibration_error": 'classwise_ece(y, p, binning="mass")',
    "brier_score": "brier(y, p)",
    "brier_score_loss": "brier(y, p)",
    "confidence_ece": "top_label_ece(y, p)",
    "debiased_ece": "ece(y, p, debias=True)",
    "ece_sweep": 'ece(y, p, bins="auto")',
    "expected_calibration_error": "ece(y, p)",
    "kce": "skce(y, p)",
    "marginal_calibration_error": "classwise_ece(y, p, norm=2)",
    "maximum_calibration_error": "mce(y, p)",
    "multicalibration_error": "multicalibration(y, p, features=frame).largest",
    "multiaccuracy": "multicalibration(y, p, features=frame).largest",
    "rms_calibration_error": "ece(y, p, norm=2)",
    "rmsce": "ece(y, p, norm=2)",
    "roc_auc_score": "auc(y, p)",
    "sce": "classwise_ece(y, p)",
    "smece": "smooth_ece(y, p)",
    "static_calibration_error": "classwise_ece(y, p)",
}


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """A question to put at the end of an error, with the known word that is nearest; or nothing.

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


def our_measure(name: str, known: Iterable[str]) -> str:
    """What to call instead of a measure of another name; or the known name that is nearest.

    >>> our_measure("sce", ["classwise_ece"]), our_measure("brir", ["brier"])
    (' Here it is classwise_ece(y, p).', " Did you mean 'brier'?")
    """
    ours = MEASURES.get(name.lower())
    return f" Here it is {ours}." if ours else did_you_mean(name, known)


def our_parameter(name: str, known: Iterable[str], value: Any = None) -> str:
    """What to write instead of a parameter of scikit-learn; nothing where there is no such one.

    >>> our_parameter("strategy", ["bins", "binning"], "quantile")
    "scikit-learn's strategy is called binning here: write binning='mass'."
    """
    ours = PARAMETERS.get(name)
    if ours is None or ours not in known:
        return ""
    shown = VALUES.get(value, value) if isinstance(value, str) else value
    said = f"scikit-learn's {name} is called {ours} here"
    return f"{said}: write {ours}={shown!r}." if isinstance(shown, (str, int)) else f"{said}."


def in_our_words(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which refuses scikit-learn's words for its parameters and says its own.

    >>> @in_our_words
    ... def count(*, bins=10):
    ...     return bins
    >>> count(n_bins=5)
    Traceback (most recent call last):
        ...
    calibrant.errors.ParameterError: count has no parameter 'n_bins': scikit-learn's n_bins is \
called bins here: write bins=5.
    """
    known = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        _refuse(function, kwargs, known)
        return function(*args, **kwargs)

    return asked


def _refuse(function: Callable[..., Any], given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known and (ours := our_parameter(name, known, given[name])):
            called = function.__qualname__.removesuffix(".__init__")
            raise ParameterError(f"{called} has no parameter {name!r}: {ours}")
