"""The names of methods, wherever one is asked for: module, class, and one line on each."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from calibrant.errors import ParameterError

__all__ = [
    "DEFAULT",
    "METHODS",
    "calibrator_class",
    "calibrator_of",
    "calibrators_of",
    "method_name",
]

#: what `calibrant fit` uses unless told otherwise: any shape, safe on few rows, and it keeps the
#: scores as they are where nothing is better
DEFAULT = "auto"

METHODS: dict[str, tuple[str, str, str]] = {
    "auto": (
        "calibrant.auto",
        "AutoCalibrator",
        "BLS if it helps, else the scores as they are: the default",
    ),
    "bls": (
        "calibrant.calibrators.bls",
        "BLS",
        "many smooth maps, averaged by evidence: few rows or many",
    ),
    "platt": (
        "calibrant.calibrators.platt",
        "Platt",
        "a sigmoid, two parameters: safe on few rows",
    ),
    "isotonic": (
        "calibrant.calibrators.isotonic",
        "Isotonic",
        "the best rising steps: any shape, wants a thousand rows",
    ),
    "venn-abers": (
        "calibrant.calibrators.venn_abers",
        "VennAbers",
        "two isotonic fits: a lower and an upper probability, merged",
    ),
    "beta": (
        "calibrant.calibrators.beta",
        "Beta",
        "three parameters: bends each end of the scale alone",
    ),
    "quadratic": (
        "calibrant.calibrators.quadratic",
        "Quadratic",
        "a sigmoid with a bend, three parameters",
    ),
    "spline": (
        "calibrant.calibrators.spline",
        "Spline",
        "a smooth curve, as bent as the data ask for",
    ),
    "histogram": (
        "calibrant.calibrators.histogram",
        "Histogram",
        "the fraction of positives in each of a few bins",
    ),
    "bbq": (
        "calibrant.calibrators.bbq",
        "BBQ",
        "histograms of many sizes, averaged by their evidence",
    ),
    "sbb": (
        "calibrant.calibrators.sbb",
        "SBB",
        "the most probable of all binnings, found exactly",
    ),
    "abb": (
        "calibrant.calibrators.abb",
        "ABB",
        "the average over all binnings: smooth, for small data",
    ),
    "enir": (
        "calibrant.calibrators.enir",
        "ENIR",
        "steps that may fall at a price, averaged over all prices",
    ),
    "elite": (
        "calibrant.calibrators.elite",
        "ELiTE",
        "broken lines of many smoothnesses, averaged: no steps",
    ),
    "temperature": (
        "calibrant.scaling.temperature",
        "Temperature",
        "one factor on the logit: mends overconfidence only",
    ),
    "logistic-correction": (
        "calibrant.calibrators.logistic_correction",
        "LogisticCorrection",
        "1/(1+exp(-2F)) of boosting's scores F; fits nothing",
    ),
    "rescale": (
        "calibrant.calibrators.rescale",
        "Rescale",
        "squeezes margins into [0, 1]; looks at no labels",
    ),
    "uncalibrated": (
        "calibrant.calibrators.uncalibrated",
        "Uncalibrated",
        "the scores as they are: the baseline to beat",
    ),
}

#: calibrators of more than one score, which the command line does not offer
OF_MORE: dict[str, tuple[str, str]] = {
    "vector": ("calibrant.scaling.vector", "VectorScaling"),
    "matrix": ("calibrant.scaling.matrix", "MatrixScaling"),
    "dirichlet": ("calibrant.scaling.dirichlet", "Dirichlet"),
    "structured": ("calibrant.scaling.structured", "StructuredScaling"),
    "similarity-binning": ("calibrant.local.sba", "SimilarityBinning"),
    "acp": ("calibrant.local.acp", "ACP"),
}
#: other words for a method: scikit-learn's, and the name of the map
ALSO = {"sigmoid": "platt", "identity": "uncalibrated"}


def method_name(given: str) -> str:
    """The registered name that a word stands for: case, dashes and class names do not matter.

    >>> method_name("VennAbers"), method_name("venn_abers"), method_name("sigmoid")
    ('venn-abers', 'venn-abers', 'platt')
    """
    known = {**METHODS, **OF_MORE}
    words = {_bare(name): name for name in known} | {_bare(v[1]): n for n, v in known.items()}
    name = words.get(_bare(given), ALSO.get(_bare(given)))
    if name is None:
        near = difflib.get_close_matches(given.lower(), [*known, *ALSO], n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"the method must be one of {', '.join(known)}, but {given!r} came.{hint}"
        )
    return name


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())


def calibrator_class(name: str) -> type[Any]:
    """The class that a name stands for, imported when it is asked for."""
    module, cls = {**METHODS, **OF_MORE}[method_name(name)][:2]
    found: type[Any] = getattr(importlib.import_module(module), cls)
    return found


def calibrator_of(given: Any) -> Any:
    """A calibrator with its default options for a name; anything else as it came.

    >>> calibrator_of("isotonic"), calibrator_of("sigmoid")
    (Isotonic(), Platt())
    >>> calibrator_of("isotonik")
    Traceback (most recent call last):
    ...
    calibrant.errors.ParameterError: the method must be one of ... Did you mean 'isotonic'?
    """
    return calibrator_class(given)() if isinstance(given, str) else given


def calibrators_of(given: Any) -> Any:
    """The same for one calibrator, a list of them, or a dict of names."""
    if isinstance(given, Mapping):
        return {name: calibrator_of(one) for name, one in given.items()}
    return (
        [*map(calibrator_of, given)] if isinstance(given, (list, tuple)) else calibrator_of(given)
    )
