"""Calibrators that are judged side by side: their names, and the class that they speak of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.data.validation import Rows
from calibrant.errors import ParameterError
from calibrant.estimators.registry import calibrators_of

#: the name of the scores as they came
BEFORE = "uncalibrated"


def named_methods(
    calibrators: Any,
    *,
    kinds: tuple[type, ...] | None = None,
    word: str = "calibrators",
    taken: str = BEFORE,
) -> dict[str, Any]:
    """Calibrators by name, from one calibrator, a list or a dict; each may be the name of a method.

    In a list a calibrator is called by its class, or by class and options if several share a class.
    All must be of the ``kinds`` (by default calibrators of one score), and none may have the name
    ``taken``. ``word`` is the parameter that errors speak of.
    """
    from calibrant.estimators.base import Calibrator  # needs scikit-learn, drawing does without

    kinds = (Calibrator,) if kinds is None else kinds
    calibrators = calibrators_of(calibrators)
    if isinstance(calibrators, kinds):
        calibrators = [calibrators]
    if isinstance(calibrators, Mapping):
        named = {str(name): calibrator for name, calibrator in calibrators.items()}
    elif isinstance(calibrators, (list, tuple)):
        names = [type(c).__name__ for c in calibrators]
        pairs = zip(names, calibrators, strict=True)
        told = [name if names.count(name) == 1 else _in_full(c) for name, c in pairs]
        named = dict(zip(told, calibrators, strict=True))
    else:
        named = {word: calibrators}
    for name, calibrator in named.items():
        if not isinstance(calibrator, kinds):
            came = f"the class {calibrator.__name__}" if isinstance(calibrator, type) else None
            raise ParameterError(
                f"{word} must be one calibrator of scores, a list of them, or a dict of names, "
                f"such as [Platt(), 'isotonic'], but {came or type(calibrator).__name__} came"
                f"{f' as {name!r}' if isinstance(calibrators, Mapping) else ''}."
            )
    if not named or len(named) != len(calibrators) or taken in named:
        raise ParameterError(
            f"{word} must be at least one, of different names, none of them {taken!r}, but "
            f"{len(calibrators)} came. Name them in a dict."
        )
    return named


def _in_full(calibrator: Any) -> str:
    """The class and the options given, on one line."""
    return " ".join(repr(calibrator).split()).removesuffix("()")


def bare(calibrator: Any) -> Any:
    """A clone with the labels 0 and 1, as tables have them."""
    from sklearn.base import clone

    return clone(calibrator).set_params(pos_label=None, classes=None)


def check_orientation(named: Mapping[str, Any], rows: Rows) -> None:
    """Refuse a method whose own pos_label is not what high scores are read as."""
    for name, calibrator in named.items():
        given = calibrator.pos_label
        if given is not None and given != rows.pos_label:
            raise ParameterError(
                f"pos_label of {name} is {given!r}, but high scores are read as "
                f"{rows.pos_label!r} here. Pass pos_label={given!r} beside the scores, too."
            )
