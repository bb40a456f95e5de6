"""Methods by the names that the command line knows them by."""

from __future__ import annotations

import difflib
import importlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.data.table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.registry import METHODS

if TYPE_CHECKING:
    from calibrant.base import Calibrator

__all__ = [
    "ALWAYS",
    "COMPARED",
    "REPORTED",
    "check_methods",
    "make_calibrator",
    "parameters",
]

#: parameters that the command line fills in itself (--folds is cv), or that are no plain values
OWN = ("pos_label", "classes", "cv", "candidates", "progress")
#: what every comparison holds without being asked
ALWAYS = ("auto", "identity", "bls")
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


def calibrator_class(method: str) -> type[Calibrator]:
    """The class behind a name on the command line."""
    name = method.strip().lower().replace("_", "-")
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"the method must be one of {', '.join(METHODS)}, but {method!r} came.{hint}"
        )
    module, cls, _ = METHODS[name]
    found: type[Calibrator] = getattr(importlib.import_module(module), cls)
    return found


def parameters(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    defaults = calibrator_class(method)().get_params(deep=False)
    return {name: value for name, value in defaults.items() if name not in OWN}


def make_calibrator(method: str, settings: Sequence[str]) -> Calibrator:
    """An unfitted calibrator from its name and ``key=value`` words.

    >>> make_calibrator("isotonic", ["kind=centred"])
    Isotonic(kind='centred')
    """
    from sklearn.base import clone

    known = parameters(method)
    chosen = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"a parameter must be written key=value, but {setting!r} came.")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            allowed = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise ParameterError(f"{method} {allowed}, but {key!r} came.{hint}")
        chosen[key] = _value(value)
    calibrator = calibrator_class(method)(**chosen)
    # a trial on two scores refuses a wrong value now, not after hours of reading
    clone(calibrator).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
    return calibrator


def _value(word: str) -> Any:
    """A number, true, false or null as JSON has it; all else is a word."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def check_methods(methods: Sequence[str]) -> list[str]:
    """The names of methods as the registry has them, or an error before anything is read."""
    for name in methods:
        calibrator_class(name)
    return [name.strip().lower().replace("_", "-") for name in methods]
