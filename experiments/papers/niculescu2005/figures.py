"""What is measured of predictions: cross-entropy in bits and squared error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

__all__ = ["CLIP", "FITTED", "MEASURES", "PAPER", "WORDS", "measured", "percent"]

PAPER = "niculescu2005"

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: no prediction is nearer to 0 or 1 than this in the cross-entropy; the paper says that it does
#: so, but not how near
CLIP = 1e-6
MEASURES: dict[str, Callable[[Index, Array], float]] = {
    "bits": lambda y, p: cal.metrics.log_loss(y, p, base=2, clip=CLIP),
    "squared": cal.metrics.brier,
}
#: what the measures are called
WORDS = {"bits": "cross-entropy", "squared": "squared error"}
#: the paper's two fitted methods: a sigmoid of the raw score, and steps (f_i, f_j]
FITTED: dict[str, Callable[[], Any]] = {
    "Platt": lambda: cal.Platt(scale="raw"),
    "isotonic": lambda: cal.Isotonic(cut="right"),
}


def measured(name: str, part: str, y: Index, p: Array) -> dict[str, float]:
    """Both measures of predictions, as columns such as "Platt 512 bits test"."""
    return {f"{name} {measure} {part}": f(y, p) for measure, f in MEASURES.items()}


def percent(value: float) -> str:
    """A relative change.

    >>> percent(-0.284), percent(0.001)
    ('−28 %', '0 %')
    """
    shown = round(100 * value)
    return f"{shown:+d} %".replace("-", "−") if shown else "0 %"
