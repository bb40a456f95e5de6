"""Published figures beside ours: does each lie within the spread of our runs, is the order kept?"""

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
    "order_kept",
    "orders",
    "pick",
    "positives",
    "tall",
    "wide",
]

#: how many standard deviations of a run from our mean count as within the spread
SPREAD = 2.5


class Beside(NamedTuple):
    """A published figure, and the mean and standard deviation of so many runs of ours.

    ``digits`` of the published figure say how far its rounding reaches; ``published_sd`` is the
    standard deviation that the paper prints with it, if it does.
    """

    published: float
    mean: float
    sd: float
    runs: int
    digits: int = 3
    published_sd: float = math.nan

    @property
    def apart(self) -> float:
        """Standard deviations of a run between the published figure and our mean."""
        gap = max(abs(self.published - self.mean) - 0.5 * 10.0**-self.digits, 0.0)
        return gap / self.sd if self.sd > 0 else (0.0 if gap == 0 else math.inf)

    @property
    def within(self) -> bool | None:
        """None where there is nothing to stand beside, or no spread to judge by."""
        if math.isnan(self.published) or self.runs < 2:
            return None
        return bool(self.apart <= SPREAD)

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


def beside(published: float, found: Iterable[float], digits: int = 3) -> Beside:
    """A published figure beside the figures of our runs (missing ones left out)."""
    published = float(published)
    values = np.asarray([value for value in found if not pd.isna(value)], dtype=float)
    if not len(values):
        return Beside(published, math.nan, math.nan, 0, digits)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Beside(published, float(values.mean()), sd, len(values), digits)


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
    columns = (first, "method", "published", "ours", "within the spread", "order kept")
    return table(columns, rows)


def wide(groups: Mapping[str, Mapping[str, Beside]], first: str = "dataset") -> str:
    """A line per group, a column per method: "published / ours ± sd", and the order kept.

    † marks a published figure outside the spread of our runs.
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
    """How many of the published figures lie within the spread, in words."""
    judged = [cell.within for cell in cells if cell.within is not None]
    return f"{sum(judged)} of {len(judged)}"


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
