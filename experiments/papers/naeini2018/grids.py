"""Datasets × methods of a measure: what the tests of Tables 3 to 6 and 8 take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from experiments.papers.naeini2018.crossval import IN_FOLDS

__all__ = ["LARGER", "MAIN", "READINGS", "Reading", "grid"]

#: the measures of which more is better
LARGER = frozenset({"AUC", "ACC"})
#: figures are kept to six digits; below that, they differ by the noise of arithmetic
DIGITS = 6


class Reading(NamedTuple):
    """Which ENIR, and whether a run's measure is of all predictions or the mean over folds."""

    enir: str
    suffix: str
    words: str


def _reading(enir: str, suffix: str) -> Reading:
    return Reading(enir, suffix, f"{enir}, {'mean over folds' if suffix else 'folds together'}")


#: verdicts rest on the first: the authors' program, and means over folds, since the ranks of those
#: come nearer to the published ones
READINGS = tuple(
    _reading(*each)
    for each in (
        ("ENIR authors", IN_FOLDS),
        ("ENIR paper", IN_FOLDS),
        ("ENIR authors", ""),
        ("ENIR paper", ""),
        ("ENIR", IN_FOLDS),
        ("ENIR", ""),
    )
)
MAIN = READINGS[0]


def grid(frame: pd.DataFrame, model: str, methods: Sequence[str], measure: str) -> pd.DataFrame:
    """Datasets × methods for one model: means over the runs that there are."""
    columns = [f"{name} {measure}" for name in methods]
    part = frame.loc[frame["model"] == model, ["dataset", *columns]]
    found = part.groupby("dataset", sort=False).mean().round(DIGITS)
    return found.set_axis(list(methods), axis=1)
