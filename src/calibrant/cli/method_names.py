"""Methods by the names that the command line knows them by."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, ParameterError
from calibrant.estimators.registry import METHODS, OF_CLASSES, calibrator_class, method_name
from calibrant.other_words import did_you_mean, our_parameter

if TYPE_CHECKING:
    from calibrant.estimators.base import Calibrator


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
#: what a comparison of several classes holds by default, beside the mixture and its members
COMPARED_CLASSES = ("vector", "dirichlet", "platt", "beta", "isotonic")
#: and what a page on them shows
REPORTED_CLASSES = ("vector", "dirichlet", "isotonic")


def offered(method: str, *, several: bool = False) -> str:
    """The registered name of a method that calibrates one score, or those of ``several`` classes.

    Methods of one score take several classes as well, each against the rest.
    """
    name = method_name(method)
    known = METHODS | OF_CLASSES if several else METHODS
    if name in OF_CLASSES and not several:
        raise ParameterError(
            f"the method must calibrate one score, but {name!r} is for several classes. Name a "
            f"column of scores for each of them, or use one of {', '.join(known)}."
        )
    if name not in known:
        raise ParameterError(
            f"the method must look at scores alone, but {name!r} takes more. Use one of "
            f"{', '.join(known)}."
        )
    return name


def parameters(method: str, *, several: bool = False) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    name = offered(method, several=several)
    own = (*OWN, "cv") if name == JUDGES else OWN
    defaults = calibrator_class(name)().get_params(deep=False)
    return {key: value for key, value in defaults.items() if key not in own}


def make_calibrator(method: str, settings: Sequence[str]) -> Calibrator:
    """An unfitted calibrator from its name and ``key=value`` words.

    >>> make_calibrator("isotonic", ["interpolation=centred"])
    Isotonic(interpolation='centred')
    """
    from sklearn.base import clone

    calibrator: Calibrator = calibrator_class(method)(**_settings(method, settings))
    # a trial on two scores refuses a wrong value now, not after hours of reading
    clone(calibrator).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
    return calibrator


def make_class_calibrator(method: str, settings: Sequence[str]) -> Any:
    """The same for scores of several classes; a method of one score takes each against the rest.

    >>> make_class_calibrator("platt", [])
    CodedCalibrator(calibrator=Platt())
    """
    from sklearn.base import clone

    from calibrant.estimators.base import Calibrator
    from calibrant.multiclass.coded_calibrator import CodedCalibrator

    made = calibrator_class(method)(**_settings(method, settings, several=True))
    if isinstance(made, Calibrator) and not made.multiclass:
        made = CodedCalibrator(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        clone(made).fit([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 4, [0, 1, 2] * 4)
    return made


def _settings(method: str, settings: Sequence[str], *, several: bool = False) -> dict[str, Any]:
    """The parameters that ``key=value`` words set."""
    known = parameters(method, several=several)
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
    return chosen


def read_value(word: str) -> Any:
    """A number, true, false or null as JSON has it; all else is a word."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def check_methods(methods: Sequence[str], *, several: bool = False) -> list[str]:
    """The names of methods as the registry has them, or an error before anything is read."""
    return [offered(name, several=several) for name in methods]
