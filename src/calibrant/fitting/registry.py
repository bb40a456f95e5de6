"""The names of methods, as commands and arguments take them: the class and one line on each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from calibrant.data.door import Rows
from calibrant.errors import METHODS_ALSO, ParameterError, did_you_mean

#: what `calibrant fit` uses unless told otherwise: any shape, safe on few rows, and it keeps the
#: scores as they are where nothing is better
DEFAULT = "auto"

#: the name of each method, its public class, and one line on it
METHODS: dict[str, tuple[str, str]] = {
    "auto": ("AutoCalibrator", "BLS if it helps, else the scores as they are: the default"),
    "bls": ("BLS", "many smooth maps, averaged by evidence: few rows or many"),
    "platt": ("Platt", "a sigmoid, two parameters: safe on few rows"),
    "isotonic": ("Isotonic", "the best rising steps: any shape, wants a thousand rows"),
    "venn-abers": ("VennAbers", "two isotonic fits: a lower and an upper probability, merged"),
    "beta": ("Beta", "three parameters: bends each end of the scale alone"),
    "quadratic": ("Quadratic", "a sigmoid with a bend, three parameters"),
    "spline": ("Spline", "a smooth curve, as bent as the data ask for"),
    "histogram": ("Histogram", "the fraction of positives in each of a few bins"),
    "bbq": ("BBQ", "histograms of many sizes, averaged by their evidence"),
    "sbb": ("SBB", "the most probable of all binnings, found exactly"),
    "abb": ("ABB", "the average over all binnings: smooth, for small data"),
    "enir": ("ENIR", "steps that may fall at a price, averaged over all prices"),
    "elite": ("ELiTE", "broken lines of many smoothnesses, averaged: no steps"),
    "temperature": ("Temperature", "one factor on the logit: mends overconfidence only"),
    "logistic-correction": (
        "LogisticCorrection",
        "1/(1+exp(-2F)) of boosting's scores F; fits nothing",
    ),
    "rescale": ("Rescale", "squeezes margins into [0, 1]; looks at no labels"),
    "uncalibrated": ("Uncalibrated", "the scores as they are: the baseline to beat"),
}

#: methods that need a column of scores for each of several classes
OF_CLASSES: dict[str, tuple[str, str]] = {
    "vector": ("VectorScaling", "a factor and a shift for each class: a thousand rows"),
    "matrix": ("MatrixScaling", "a matrix on the logits, held back by ridges"),
    "dirichlet": ("Dirichlet", "the same on the logarithms of probabilities"),
    "structured": ("StructuredScaling", "as many parameters as the rows allow"),
    "ensemble-temperature": ("EnsembleTemperature", "a temperature, mixed with even odds (ETS)"),
    "top-label": ("TopLabelCalibrator", "a smooth curve for the largest: any number of classes"),
}

#: calibrators that look at more than scores, which the command line does not offer
OF_MORE: dict[str, str] = {
    "similarity-binning": "SimilarityBinning",
    "acp": "ACP",
    "features": "FeatureCalibrator",
}


#: the kind of map that a method fits, in everyday words
PLAIN: dict[str, str] = {
    "BLS": "a smooth curve",
    "Platt": "a sigmoid",
    "Isotonic": "rising steps",
    "VennAbers": "rising steps",
    "Beta": "a curve of three numbers",
    "Quadratic": "a bent sigmoid",
    "Spline": "a smooth curve",
    "Histogram": "a few bins",
    "BBQ": "an average of bins",
    "SBB": "the best bins",
    "ABB": "an average of bins",
    "ENIR": "an average of steps",
    "ELiTE": "an average of broken lines",
    "Temperature": "one factor for all",
    "EnsembleTemperature": "one factor for all, mixed with even odds",
    "mixture": "an average of several methods",
    "features": "a correction by columns",
}


def describe_method(name: str) -> str:
    """A method in everyday words, with its name in brackets. Unknown names stay as they are.

    >>> describe_method("BLS"), describe_method("one-vs-rest BLS"), describe_method("mine")
    ('a smooth curve (BLS)', 'one-vs-rest BLS', 'mine')
    """
    known = {_letters(cls): words for cls, words in PLAIN.items()}
    words = known.get(_letters(name))
    return name if words is None else f"{words} ({name})"


def method_name(given: str) -> str:
    """The registered name of a method, from a name in any spelling or from the name of its class.

    >>> method_name("VennAbers"), method_name("venn_abers"), method_name("sigmoid")
    ('venn-abers', 'venn-abers', 'platt')
    """
    known = _classes()
    words = {_letters(name): name for name in known} | {
        _letters(cls): n for n, cls in known.items()
    }
    name = words.get(_letters(given), METHODS_ALSO.get(_letters(given)))
    if name is None:
        hint = did_you_mean(given, [*known, *METHODS_ALSO])
        raise ParameterError(
            f"the method must be one of {', '.join(known)}, but {given!r} came.{hint}"
        )
    return name


def _letters(word: str) -> str:
    """The letters and digits of a word, in lower case."""
    return "".join(letter for letter in word.lower() if letter.isalnum())


def _classes() -> dict[str, str]:
    """The name of the public class of each method."""
    return {name: cls for name, (cls, _) in (METHODS | OF_CLASSES).items()} | OF_MORE


def calibrator_class(name: str) -> type[Any]:
    """The class of a method, by its name in any spelling."""
    cls = _classes()[method_name(name)]
    found: type[Any] = getattr(importlib.import_module("calibrant"), cls)
    return found


def to_calibrator(given: Any) -> Any:
    """The calibrator of this name, with default options; anything but a name is returned as it
    came.

    >>> to_calibrator("isotonic"), to_calibrator("sigmoid")
    (Isotonic(), Platt())
    >>> to_calibrator("isotonik")
    Traceback (most recent call last):
    ...
    calibrant.errors.ParameterError: the method must be one of ... Did you mean 'isotonic'?
    """
    return calibrator_class(given)() if isinstance(given, str) else given


def to_calibrators(given: Any) -> Any:
    """One calibrator, or a list or dict of calibrators, with names replaced by calibrators."""
    if isinstance(given, Mapping):
        return {name: to_calibrator(one) for name, one in given.items()}
    if isinstance(given, (list, tuple)):
        return [to_calibrator(one) for one in given]
    return to_calibrator(given)


# --- Calibrators that are judged side by side -----------------------------------------------------


#: the name of the scores as they came
BEFORE = "uncalibrated"


def named_methods(
    calibrators: Any,
    *,
    kinds: tuple[type, ...] | None = None,
    word: str = "calibrators",
) -> dict[str, Any]:
    """Calibrators by name, from one calibrator, a list or a dict; each may be the name of a method.

    In a list a calibrator is called by its class, or by class and options if several share a class.
    All must be of the ``kinds`` (by default calibrators of one score), and none may have the name
    of the scores as they came. ``word`` is the parameter that errors speak of.
    """
    from calibrant.fitting.base import Calibrator  # needs scikit-learn, drawing does without

    kinds = (Calibrator,) if kinds is None else kinds
    calibrators = to_calibrators(calibrators)
    if isinstance(calibrators, kinds):
        calibrators = [calibrators]
    if isinstance(calibrators, Mapping):
        named = {str(name): calibrator for name, calibrator in calibrators.items()}
    elif isinstance(calibrators, (list, tuple)):
        names = [type(c).__name__ for c in calibrators]
        pairs = zip(names, calibrators, strict=True)
        named = {
            name if names.count(name) == 1 else " ".join(repr(c).split()).removesuffix("()"): c
            for name, c in pairs
        }
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
    if not named or len(named) != len(calibrators) or BEFORE in named:
        raise ParameterError(
            f"{word} must be at least one, of different names, none of them {BEFORE!r}, but "
            f"{len(calibrators)} came. Name them in a dict."
        )
    return named


def copy_for_tables(calibrator: Any) -> Any:
    """An unfitted copy of a calibrator for the labels 0 and 1, which tables have."""
    from sklearn.base import clone

    return clone(calibrator).set_params(pos_label=None, classes=None)


def check_pos_labels(named: Mapping[str, Any], rows: Rows) -> None:
    """Refuse a calibrator whose ``pos_label`` is not the positive class of the rows."""
    for name, calibrator in named.items():
        given = calibrator.pos_label
        if given is not None and given != rows.pos_label:
            raise ParameterError(
                f"pos_label of {name} is {given!r}, but high scores are read as "
                f"{rows.pos_label!r} here. Pass pos_label={given!r} beside the scores, too."
            )
