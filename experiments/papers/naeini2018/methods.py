"""The calibrators of the paper, and its measures in the readings that are possible."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

__all__ = ["BASE", "COLUMN", "MEASURES", "METHODS", "PAPERS_MEASURES", "measures", "warm"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: the model's own probabilities
BASE = "none"
#: "paper" is the text to the letter, "authors" their program, and no word the library's default
METHODS: dict[str, Callable[[], Any]] = {
    BASE: cal.Uncalibrated,
    "Isotonic": cal.Isotonic,
    "BBQ": cal.BBQ,
    "ENIR paper": lambda: cal.ENIR(variant="paper"),
    "ENIR authors": lambda: cal.ENIR(variant="authors"),
    "ENIR": cal.ENIR,
    "ELiTE paper": lambda: cal.ELiTE(scale="raw", clip="paper", tails="linear"),
    "ELiTE": cal.ELiTE,
    "ELiTE near": lambda: cal.ELiTE(falls="priced"),
}
#: the paper's name of what a method stands beside
COLUMN = {
    BASE: "base",
    "Isotonic": "IsoRegC",
    "BBQ": "BBQ",
    "ENIR paper": "ENIR",
    "ENIR authors": "ENIR",
    "ENIR": "ENIR",
}


def area(table: cal.ScoreTable) -> float:
    """The larger of AUC and 1 − AUC, as the authors' program; NaN where there is one class only."""
    if not (table.positive.any() and table.negative.any()):
        return math.nan
    found = cal.metrics.auc(table)
    return max(found, 1.0 - found)


PAPERS_MEASURES = ("AUC", "ACC", "RMSE", "ECE", "MCE")
#: every measure, and how it is read off a table of probabilities
MEASURES: dict[str, Callable[[cal.ScoreTable], float]] = {
    "AUC": area,
    "ACC": cal.metrics.accuracy,
    "RMSE": cal.metrics.rmse,
    "ECE": lambda table: cal.metrics.ece(table, binning="mass", ties="labels"),
    "MCE": lambda table: cal.metrics.mce(table, binning="mass", ties="labels"),
    "ECE, ties together": lambda table: cal.metrics.ece(table, binning="mass"),
    "MCE, ties together": lambda table: cal.metrics.mce(table, binning="mass"),
    "ECE, equal width": cal.metrics.ece,
    "MCE, equal width": cal.metrics.mce,
}


def measures(y: Labels, p: Array) -> dict[str, float]:
    """The paper's five as its authors' programs have them, then ECE and MCE in two other ways."""
    table = cal.ScoreTable.from_arrays(p, y)
    return {name: float(measure(table)) for name, measure in MEASURES.items()}


@lru_cache
def warm() -> None:
    """Compile what is compiled at first use, which is no part of the time of a fit."""
    scores = np.linspace(0.05, 0.95, 40)
    y = (np.arange(40) * 7 % 40 < 16).astype(np.intp)
    for make in METHODS.values():
        make().fit(scores, y).calibrate(scores)
