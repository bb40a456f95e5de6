"""Methods by the names that the command line knows them by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.estimators.registry import METHODS, calibrator_class, method_name
from calibrant.other_words import did_you_mean, our_parameter

if TYPE_CHECKING:
    from calibrant.estimators.base import Calibrator

__all__ = [
    "ALWAYS",
    "COMPARED",
    "REPORTED",
    "check_methods",
    "make_calibrator",
    "parameters",
    "read_value",
]

#: parameters that the command line fills in itself, or that are no plain values
OWN = ("pos_label", "classes", "candidates", "progress")
#: the method whose own folds are those of the estimate, --cv
JUDGES = "auto"
#: what every comparison holds without being asked
ALWAYS = ("auto", "uncalibrated", "bls")
#: and what one holds by default: fast methods of each kind
COMPARED = (
    "platt",
    "beta",
    "quadratic",
    "temperature",
    "spline",
    "isotonic",
    "venn-abers",
    "histogram",
    "bbq",
    "enir",
    "elite",
)
#: and what a page shows beside them
REPORTED = ("platt", "beta", "isotonic", "venn-abers", "enir")


def offered(method: str) -> str:
    """The registered name of a method that calibrates one score, as all here do."""
    name = method_name(method)
    if name not in METHODS:
        raise ParameterError(
            f"the method must calibrate one score, but {name!r} takes more. Use one of "
            f"{', '.join(METHODS)}."
        )
    return name


def parameters(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    name = offered(method)
    own = (*OWN, "cv") if name == JUDGES else OWN
    defaults = calibrator_class(name)().get_params(deep=False)
    return {key: value for key, value in defaults.items() if key not in own}


def make_calibrator(method: str, settings: Sequence[str]) -> Calibrator:
    """An unfitted calibrator from its name and ``key=value`` words.

    >>> make_calibrator("isotonic", ["interpolation=centred"])
    Isotonic(interpolation='centred')
    """
    from sklearn.base import clone

    known = parameters(method)
    chosen = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"a parameter must be written key=value, but {setting!r} came.")
        if key not in known:
            ours = our_parameter(key, known, read_value(value))
            hint = f" {ours[0].upper()}{ours[1:]}" if ours else did_you_mean(key, known)
            allowed = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise ParameterError(f"{method} {allowed}, but {key!r} came.{hint}")
        chosen[key] = read_value(value)
    calibrator: Calibrator = calibrator_class(method)(**chosen)
    # a trial on two scores refuses a wrong value now, not after hours of reading
    clone(calibrator).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
    return calibrator


def read_value(word: str) -> Any:
    """A number, true, false or null as JSON has it; all else is a word."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def check_methods(methods: Sequence[str]) -> list[str]:
    """The names of methods as the registry has them, or an error before anything is read."""
    return [offered(name) for name in methods]
