"""Published figures beside ours: is each as near as chance lets it be, is the order kept?

A published figure of one run is held against the prediction interval of one more run of ours. One
that is a mean of several runs is held against the interval of the difference of the two means. Both
are Student's, so that a perfect replication falls within as often with three runs as with two
hundred, if runs are normal; with few runs the intervals are wide, and what lies within says little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from experiments import table
from experiments.data import definition
from experiments.papers.published import NOT_LEGIBLE

__all__ = [
    "FEW",
    "LEVEL",
    "MOST",
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
    "told_within",
    "wide",
]

#: the share of perfect replications whose figure lies within
LEVEL = 0.99
#: with fewer runs figures that lie outside say something, those within do not
FEW = 10
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
    def reach(self) -> float:
        """How far from our mean the published figure may lie.

        Where the paper prints no standard deviation, its runs are taken to vary as ours do.
        """
        if self.repetitions < 2:
            return self.reach_of_a_run
        if math.isnan(self.published_sd):
            freedom, unit = self.runs - 1, self.sd * math.sqrt(1 / self.runs + 1 / self.repetitions)
        else:
            ours, theirs = self.sd**2 / self.runs, self.published_sd**2 / self.repetitions
            unit = math.sqrt(ours + theirs)
            parts = ours**2 / (self.runs - 1) + theirs**2 / (self.repetitions - 1)
            freedom = unit**4 / parts if parts > 0 else self.runs - 1
        return _quantile(freedom) * unit

    @property
    def reach_of_a_run(self) -> float:
        """How far from our mean one more run may lie."""
        if self.runs < 2:
            return math.nan
        return _quantile(self.runs - 1) * self.sd * math.sqrt(1 + 1 / self.runs)

    @property
    def within(self) -> bool | None:
        """None where there is nothing to stand beside, or no spread to judge by."""
        return self._is_near(self.reach)

    @property
    def within_a_run(self) -> bool | None:
        """The same by the interval of one run, whatever the published figure is the mean of."""
        return self._is_near(self.reach_of_a_run)

    def _is_near(self, reach: float) -> bool | None:
        if math.isnan(self.published) or self.runs < 2:
            return None
        gap = max(abs(self.published - self.mean) - 0.5 * 10.0**-self.digits, 0.0)
        return bool(gap <= reach)

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


@lru_cache
def _quantile(freedom: float) -> float:
    """Student's quantile of an interval that holds `LEVEL`."""
    return float(student.ppf(0.5 + LEVEL / 2, freedom))


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
    return "within the interval of a difference of means" if means else "within"


def told_within(cells: Iterable[Beside]) -> str:
    """What "within" is in a table: the interval, its width, and what it says of a replication."""
    judged = [cell for cell in cells if cell.within is not None]
    runs = sorted({cell.runs for cell in judged})
    if not runs:
        return ""
    far = sorted({_quantile(n - 1) * math.sqrt(1 + 1 / n) for n in runs})
    number, width = (
        f"{form.format(found[0])}" + (f" to {form.format(found[-1])}" if len(found) > 1 else "")
        for form, found in (("{}", runs), ("{:.1f}", far))
    )
    what = f"{LEVEL:.0%} prediction interval of a run ({number} runs: mean ± {width} sd)"
    if any(cell.repetitions > 1 for cell in judged):
        what = f"{LEVEL:.0%} interval of the difference of two means ({number} runs of ours)"
    said = f"Within: in the {what}. A figure of a perfect replication is within in {LEVEL:.0%}"
    few = " of cases, but so are many others: with so few runs only what lies outside says much"
    return f"{said}{few if runs[0] < FEW else ' of cases'}."


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
    """Both counts of published means: by the difference of means, and by one run."""
    run = [cell.within_a_run for cell in cells if cell.within_a_run is not None]
    return (
        f"{count(cells)} within the {LEVEL:.0%} interval of the difference of means "
        f"({sum(run)} of {len(run)} within that of one run)"
    )


def is_repeated(cells: Iterable[Beside]) -> bool | None:
    """Whether enough of the published figures are near; None where that cannot be judged.

    With few runs of ours, figures that lie outside refute, but those within do not confirm.
    """
    judged = [cell for cell in cells if cell.within is not None]
    if not judged:
        return None
    near = bool(np.mean([cell.within for cell in judged]) >= MOST)
    return None if near and min(cell.runs for cell in judged) < FEW else near


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
