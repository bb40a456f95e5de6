"""Published figures beside ours: is each as near as chance lets it be, is the order kept?

A published figure of one run is judged by the spread of one run of ours. One that is a mean of
several runs is judged by the standard error of the difference between the two means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments import table
from experiments.data import definition
from experiments.papers.published import NOT_LEGIBLE

__all__ = [
    "SPREAD",
    "Beside",
    "beside",
    "count",
    "counted",
    "is_repeated",
    "order_kept",
    "orders",
    "pick",
    "positives",
    "tall",
    "wide",
]

#: how many standard deviations of a run, or standard errors of a difference, count as within
SPREAD = 2.5
#: share of the published figures that must be within for a table to be called repeated
MOST = 0.95


class Beside(NamedTuple):
    """A published figure, and the mean and standard deviation of so many runs of ours.

    ``digits`` of the published figure say how far its rounding reaches; ``published_sd`` is the
    standard deviation that the paper prints with it, if it does; ``repetitions`` the number of
    runs that it is the mean of.
    """

    published: float
    mean: float
    sd: float
    runs: int
    digits: int = 3
    published_sd: float = math.nan
    repetitions: int = 1

    @property
    def error(self) -> float:
        """What the distance is measured by: the sd of a run, or the error of a difference of means.

        Where the paper prints no standard deviation, its runs are taken to vary as ours do.
        """
        if self.repetitions < 2:
            return self.sd
        theirs = self.sd if math.isnan(self.published_sd) else self.published_sd
        return math.sqrt(self.sd**2 / self.runs + theirs**2 / self.repetitions)

    @property
    def apart(self) -> float:
        """Distance of the published figure from our mean, beyond its rounding, in such units."""
        return self._units(self.error)

    @property
    def within(self) -> bool | None:
        """None where there is nothing to stand beside, or no spread to judge by."""
        return self._is_near(self.error)

    @property
    def within_a_run(self) -> bool | None:
        """The same by the spread of one run, whatever the published figure is the mean of."""
        return self._is_near(self.sd)

    def _units(self, unit: float) -> float:
        gap = max(abs(self.published - self.mean) - 0.5 * 10.0**-self.digits, 0.0)
        return gap / unit if unit > 0 else (0.0 if gap == 0 else math.inf)

    def _is_near(self, unit: float) -> bool | None:
        if math.isnan(self.published) or self.runs < 2:
            return None
        return bool(self._units(unit) <= SPREAD)

    @property
    def ours(self) -> str:
        spread = f" ± {self.sd:.{self.digits}f}" if self.runs > 1 else ""
        return f"{self.mean:.{self.digits}f}{spread}"

    @property
    def printed(self) -> str:
        if math.isnan(self.published):
            return NOT_LEGIBLE
        spread = self.published_sd
        told = "" if math.isnan(spread) else f" ± {spread:.{self.digits}f}"
        return f"{self.published:.{self.digits}f}{told}"

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "no", None: "–"}[self.within]


def beside(
    published: float, found: Iterable[float], digits: int = 3, repetitions: int = 1
) -> Beside:
    """A published figure beside the figures of our runs (missing ones left out)."""
    published = float(published)
    values = np.asarray([value for value in found if not pd.isna(value)], dtype=float)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    mean = float(values.mean()) if len(values) else math.nan
    return Beside(published, mean, sd, len(values), digits, repetitions=repetitions)


def order_kept(published: Mapping[str, float], ours: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of methods are in the published order, of those that the paper tells apart."""
    names = [name for name in published if name in ours]
    known = [name for name in names if not math.isnan(published[name] + ours[name])]
    signs = [
        (np.sign(published[a] - published[b]), np.sign(ours[a] - ours[b]))
        for a, b in combinations(known, 2)
    ]
    apart = [(p, o) for p, o in signs if p != 0]
    return sum(bool(p == o) for p, o in apart), len(apart)


def orders(cells: Mapping[str, Beside]) -> str:
    """The order of the methods in words: pairs kept, and whether the best one is the same."""
    published = {name: cell.published for name, cell in cells.items()}
    kept, pairs = order_kept(published, {name: cell.mean for name, cell in cells.items()})
    return f"{kept} of {pairs} pairs" if pairs else "–"


def tall(groups: Mapping[str, Mapping[str, Beside]], first: str = "measure") -> str:
    """A line per figure: published, ours, verdict; and the order of the methods, once a group.

    ``groups`` is measure → method → figure; the order of methods is looked at within a measure.
    """
    rows = []
    for group, cells in groups.items():
        kept = orders(cells)
        for i, (name, cell) in enumerate(cells.items()):
            label = (group, kept) if i == 0 else ("", "")
            rows.append((label[0], name, cell.printed, cell.ours, cell.verdict, label[1]))
    every = [cell for cells in groups.values() for cell in cells.values()]
    columns = (first, "method", "published", "ours", _within_what(every), "order kept")
    return table(columns, rows)


def _within_what(cells: Iterable[Beside]) -> str:
    means = any(cell.repetitions > 1 for cell in cells)
    return f"within {SPREAD:g} standard errors" if means else "within the spread"


def wide(groups: Mapping[str, Mapping[str, Beside]], first: str = "dataset") -> str:
    """A line per group, a column per method: "published / ours ± sd", and the order kept.

    † marks a published figure farther from ours than chance explains.
    """
    methods = list(dict.fromkeys(name for cells in groups.values() for name in cells))
    rows = []
    for group, cells in groups.items():
        texts = [_short(cells[name]) if name in cells else "" for name in methods]
        rows.append((group, *texts, orders(cells)))
    return table((first, *methods, "order kept"), rows)


def _short(cell: Beside) -> str:
    mark = " †" if cell.within is False else ""
    return f"{cell.printed} / {cell.ours}{mark}"


def count(cells: Iterable[Beside]) -> str:
    """How many of the published figures are as near as chance lets them be, in words."""
    judged = [cell.within for cell in cells if cell.within is not None]
    return f"{sum(judged)} of {len(judged)}"


def counted(cells: Sequence[Beside]) -> str:
    """Both counts of published means: by the error of the difference, and by the sd of a run."""
    run = [cell.within_a_run for cell in cells if cell.within_a_run is not None]
    return (
        f"{count(cells)} within {SPREAD:g} standard errors of the difference of means "
        f"({sum(run)} of {len(run)} within {SPREAD:g} standard deviations of one run)"
    )


def is_repeated(cells: Iterable[Beside]) -> bool | None:
    """Whether enough of the published figures are near; None where none can be judged."""
    judged = [cell.within for cell in cells if cell.within is not None]
    return bool(np.mean(judged) >= MOST) if judged else None


def positives(tasks: Iterable[str]) -> str:
    """The footnote of a table: what is positive in each task, and which paper says so."""
    silent, told = "; no paper says so: the usual reading", [definition(task) for task in tasks]
    said = [f"{text}." for text in told if not text.endswith(silent)]
    others = [text.removesuffix(silent) for text in told if text.endswith(silent)]
    if others:
        words = "; ".join(text.replace(": positive is ", ": ", 1) for text in others)
        said.append(f"What is positive, which no paper says, in the usual reading: {words}.")
    return " ".join(said)


def pick(frame: pd.DataFrame, method: str, measure: str) -> Sequence[float]:
    """The runs of a column "method measure", none if it is not there yet."""
    name = f"{method} {measure}"
    return frame[name].to_list() if name in frame else []
