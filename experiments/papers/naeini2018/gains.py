"""Table 3: 95 % intervals of ENIR's relative gain over the base classifier."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.naeini2018.grids import LARGER, MAIN, READINGS, Reading, grid
from experiments.papers.naeini2018.methods import BASE, MEASURES, PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS, PLAIN
from experiments.papers.published import figure

__all__ = ["Interval", "gain", "printed", "table_3"]

SHOWN = READINGS[:4]


class Interval(NamedTuple):
    """Ends of an interval of relative gain, and the datasets without one (a base of 0)."""

    low: float
    high: float
    dropped: int = 0

    def __str__(self) -> str:
        mark = f" ({self.dropped} left out)" if self.dropped else ""
        return f"[{self.low:.3f}, {self.high:.3f}]{mark}"

    def verdict(self, measure: str) -> str:
        """Whether the interval leaves out 0, and on which side."""
        if self.low <= 0.0 <= self.high:
            return "no difference"
        return "better" if (self.low > 0) == (measure in LARGER) else "worse"

    def meets(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high


@lru_cache
def printed(model: str, measure: str) -> Interval:
    """As the paper has it."""
    ends = (
        figure("naeini2018", "3", model=model, method=f"ENIR {end}", measure=measure)
        for end in ("low", "high")
    )
    return Interval(*ends)


def gain(frame: pd.DataFrame, model: str, measure: str, reading: Reading = MAIN) -> Interval:
    """Over the datasets that are there."""
    found = grid(frame, model, (BASE, reading.enir), f"{measure}{reading.suffix}")
    told = cal.compare.relative_gain(found[reading.enir], found[BASE])
    return Interval(told.low, told.high, told.dropped)


def _line(frame: pd.DataFrame, measure: str, model: str) -> tuple[str, ...]:
    ours = [gain(frame, model, measure, reading) for reading in SHOWN]
    words = ours[0].verdict(measure.split(",", maxsplit=1)[0])
    if measure not in PAPERS_MEASURES:
        return (measure, model, "", "", f"{ours[0]}", words, "", *map(str, ours[1:]))
    there = printed("LR" if model == PLAIN else model, measure)
    meets = "yes" if there.meets(ours[0]) else "no"
    told = there.verdict(measure)
    return (measure, model, f"{there}", told, f"{ours[0]}", words, meets, *map(str, ours[1:]))


def table_3(frame: pd.DataFrame) -> str:
    """A line per measure and model: the published interval and ours, in several readings."""
    plain = frame["model"] == PLAIN
    models = [*MODELS, *([PLAIN] if frame[plain]["dataset"].nunique() > 1 else [])]
    rows = [_line(frame, measure, model) for measure in MEASURES for model in models]
    others = (reading.words for reading in SHOWN[1:])
    head = ("measure", "model", "published", "that is", MAIN.words, "that is", "overlap")
    return table((*head, *others), rows)
