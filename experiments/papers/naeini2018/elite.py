"""Table 8: ELiTE against ENIR, by the median difference, Wilcoxon's test, and time."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.naeini2018.grids import LARGER, MAIN, grid
from experiments.papers.naeini2018.methods import MEASURES, PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS
from experiments.papers.published import figure

__all__ = ["PAIRS", "Difference", "difference", "printed", "seconds", "table_8"]


class Pair(NamedTuple):
    """ELiTE and ENIR, and whether a run's measure is the mean over folds."""

    elite: str
    enir: str
    suffix: str

    @property
    def words(self) -> str:
        return f"{self.elite} − {self.enir}{'' if self.suffix else ', folds together'}"


#: verdicts rest on the first
PAIRS = (
    Pair("ELiTE paper", MAIN.enir, MAIN.suffix),
    Pair("ELiTE paper", MAIN.enir, ""),
    Pair("ELiTE paper", "ENIR paper", MAIN.suffix),
    Pair("ELiTE", "ENIR", MAIN.suffix),
)
LEVEL = 0.05


class Difference(NamedTuple):
    """The median of ELiTE minus ENIR over the datasets, Wilcoxon's p, and where its ranks lean.

    A median of 0 says nothing of the side; where the ranks are not known, the median tells it.
    """

    median: float
    p: float
    lean: float | None = None

    def __str__(self) -> str:
        shown = f"{self.median:+.4f} (p = {self.p:.2g})"
        return f"**{shown}**" if self.p <= LEVEL else shown

    def verdict(self, measure: str) -> str:
        """What is shown of ELiTE."""
        if not self.p <= LEVEL:
            return "not shown"
        lean = self.median if self.lean is None else self.lean
        return "better" if (lean > 0) == (measure in LARGER) else "worse"


@lru_cache
def printed(model: str, measure: str) -> Difference:
    found = (
        figure("naeini2018", "8", model=model, measure=f"{measure} {word}")
        for word in ("median", "p")
    )
    return Difference(*found)


def difference(frame: pd.DataFrame, model: str, measure: str, pair: Pair = PAIRS[0]) -> Difference:
    """Over the datasets that are there."""
    found = grid(frame, model, (pair.elite, pair.enir), f"{measure}{pair.suffix}")
    told = cal.compare.wilcoxon(found[pair.elite], found[pair.enir])
    return Difference(told.median_difference, told.p_value, told.plus - told.minus)


def seconds(frame: pd.DataFrame, model: str, method: str) -> float:
    """Fit and prediction in ten folds of every dataset, once."""
    return float(grid(frame, model, (method,), "time")[method].sum())


def printed_times(model: str) -> tuple[float, float]:
    """Minutes of ENIR and of ELiTE."""
    words = {"model": model, "measure": "minutes"}
    enir, elite = (figure("naeini2018", "8", method=name, **words) for name in ("ENIR", "ELiTE"))
    return enir, elite


def _times(frame: pd.DataFrame, model: str) -> tuple[str, ...]:
    enir, elite = printed_times(model)
    ours = []
    for pair in PAIRS:
        slow, fast = (seconds(frame, model, name) for name in (pair.elite, pair.enir))
        ours.append(f"{fast:.1f} s / {slow:.1f} s: {slow / fast:.1f} times")
    there = f"{enir:.0f} min / {elite:.0f} min: {elite / enir:.1f} times"
    return ("time, ENIR / ELiTE", model, there, ours[0], "", *ours[1:])


def _line(frame: pd.DataFrame, measure: str, model: str) -> tuple[str, ...]:
    ours = [difference(frame, model, measure, pair) for pair in PAIRS]
    plain = measure.split(",", maxsplit=1)[0]
    if measure not in PAPERS_MEASURES:
        return (measure, model, "", f"{ours[0]}", "", *map(str, ours[1:]))
    there = printed(model, measure)
    same = "yes" if there.verdict(plain) == ours[0].verdict(plain) else "no"
    return (measure, model, f"{there}", f"{ours[0]}", same, *map(str, ours[1:]))


def table_8(frame: pd.DataFrame) -> str:
    """A line per measure and model, and the times of one run."""
    rows = [_line(frame, measure, model) for measure in MEASURES for model in MODELS]
    rows += [_times(frame, model) for model in MODELS]
    first, *others = (pair.words for pair in PAIRS)
    return table(("measure", "model", "published", first, "same verdict", *others), rows)
