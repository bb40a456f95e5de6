"""``python -m experiments all --check``: some of the committed cells, computed again.

A random part of each table is computed into an empty folder and held against the committed
figures. With the kernels of linear algebra that a cell was made with, every figure must come out
again. With other kernels figures differ where a model hardly converges or scores tie but for
rounding: each learner has its tolerance.
"""

from __future__ import annotations

import math
import random
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from experiments import RESULTS, say, table
from experiments.papers.cells import RUN, SECONDS, Cell, Paper, Row, Table, texts
from experiments.papers.made_with import KERNELS, Stale, kernels, known_runs, record, stale
from experiments.papers.run import Journal, ProgressBar, Workers, journal, run_cell

__all__ = [
    "TOLERANCES",
    "Difference",
    "Tolerance",
    "check",
    "differences",
    "draw",
    "learner",
    "stale_words",
    "tolerances_table",
]

#: with the kernels of the committed results, and at the last of six digits
SAME = 2e-5
#: figures this near to each other are the same, whatever their size
TINY = 1e-6


class Tolerance(NamedTuple):
    """How far figures may be from the committed ones with other kernels, and why.

    ``share`` of the cells of a table may have figures that are farther than ``relative``.
    """

    relative: float
    share: float
    why: str


#: by what trained the model; see docs/evidence/papers/README.md for what was seen
TOLERANCES = {
    "naive Bayes, trees, neighbours": Tolerance(
        1e-3, 0.05, "sums in another order, and a tie in the last digit now and then"
    ),
    "logistic regression": Tolerance(
        1e-3, 0.5, "hardly penalised: the solver stops at another point of a flat loss"
    ),
    "support vectors": Tolerance(
        1e-3, 0.75, "products round differently: equal scores come apart, and ranks with them"
    ),
    "boosting, networks": Tolerance(
        0.1, 0.5, "many steps carry a difference of rounding on; counts near a border move"
    ),
}
REST = next(iter(TOLERANCES))
#: words of models and learners that tell them; all others are the first
LEARNERS = {
    "LR": "logistic regression",
    "LR, no ridge": "logistic regression",
    "LOGREG": "logistic regression",
    "logistic regression": "logistic regression",
    "SVM": "support vectors",
    "max margin, margins": "support vectors",
    "max margin, marginals": "support vectors",
    "random field": "logistic regression",
    **dict.fromkeys(("ANN", "stumps", "trees", "two levels"), "boosting, networks"),
    **dict.fromkeys(("BST-DT", "BST-STMP", "boosted NB", "boosted"), "boosting, networks"),
}
#: tables of one learner, which no key of their cells tells
OF_TABLES = {
    "naeini2015": {
        **dict.fromkeys(("1d", "1g"), "SVM"),
        **dict.fromkeys(("1a", "1b", "1e", "1h"), "LR"),
    },
    "naeini2018": {"1": "SVM", "figure3": "SVM"},
    "niculescu2005": dict.fromkeys(("figure1", "figure2", "figure5"), "boosted"),
}


class Difference(NamedTuple):
    """A figure that did not come out again, and how far apart, relative to the larger one."""

    cell: Cell
    figure: str
    committed: str
    found: str
    apart: float


def tolerances_table() -> str:
    """The tolerances with other kernels, for people."""
    rows = [
        (name, f"{one.relative:.1%}", f"{one.share:.0%}", one.why)
        for name, one in TOLERANCES.items()
    ]
    return table(
        (
            "what trained the model",
            "a figure may be off by",
            "more, in so many of a table's cells",
            "why",
        ),
        rows,
    )


def stale_words(listed: Mapping[tuple[str, str], Stale]) -> str:
    """What of the committed results is of older code, in words."""
    start = "`experiments/results/stale.csv` lists committed figures that are of older code"
    if not listed:
        return f"{start}: none now."
    said = "; ".join(
        f"{paper}, table {table}, columns of {one.figures} ({one.why})"
        for (paper, table), one in listed.items()
    )
    return (
        f"{start}: {said}. `python -m experiments all --stale` computes them anew. The other "
        "columns of these tables come out again."
    )


def learner(paper: str, table_name: str, cell: Cell) -> str:
    """What trained the model of a cell, as `TOLERANCES` calls it."""
    words = [*map(str, cell.values()), OF_TABLES.get(paper, {}).get(table_name, "")]
    words += [word.split(" ")[-1] for word in words]  # "Adult LR" of the tables of Naeini 2015
    return next((LEARNERS[word] for word in words if word in LEARNERS), REST)


def draw(part: Table, committed: Journal, told: Namespace) -> list[Cell]:
    """The cells of a table that are computed again: a random share, none that takes too long."""
    seconds = {committed.name(row): float(row[SECONDS]) for row in committed.rows}
    cells = [
        cell
        for cell in part.cells(False)
        if seconds.get(committed.name(cell), math.inf) <= told.longest
    ]
    number = min(len(cells), max(1, math.ceil(told.share * len(cells))))
    return random.Random(f"{told.seed} {committed.path.name}").sample(cells, number)


def differences(
    cell: Cell, committed: Mapping[str, str], row: Row, part: Table, relative: float
) -> list[Difference]:
    """The figures of a cell that are farther from the committed ones than the tolerance."""
    found = texts(row)
    wanted = {
        name: text
        for name, text in committed.items()
        if name not in {*part.keys, RUN, SECONDS} and text != ""
    }
    apart = [
        Difference(cell, name, wanted.get(name, ""), found.get(name, ""), far)
        for name in dict.fromkeys([*wanted, *found])
        if not name.endswith(part.times or ("\n",))
        and (far := _apart(wanted.get(name, ""), found.get(name, ""))) > relative
    ]
    return sorted(apart, key=lambda one: -one.apart)


def _apart(committed: str, found: str) -> float:
    """The distance of two figures, relative to the larger one; infinite where one is missing."""
    if committed == found or {committed, found} <= {"", "nan"}:
        return 0.0
    try:
        a, b = float(committed or "nan"), float(found or "nan")
    except ValueError:
        return math.inf
    if math.isnan(a) or math.isnan(b):
        return math.inf
    gap = abs(a - b)
    return 0.0 if gap <= TINY else gap / max(abs(a), abs(b))


class Checked(NamedTuple):
    """A table computed again: cells, those that differ, what may differ, the worst figures.

    Cells that differ in figures listed as stale alone are counted by themselves.
    """

    name: str
    computed: int
    differ: int
    allowed: int
    worst: list[Difference]
    problems: list[str]
    old: int
    listed: Stale | None

    @property
    def holds(self) -> bool:
        return self.differ <= self.allowed and not self.problems

    @property
    def verdict(self) -> str:
        if not self.holds:
            return "**no**"
        if self.old and self.listed is not None:
            return (
                f"yes, but {self.old} in {self.listed.figures}, listed as stale: {self.listed.why}"
            )
        return "yes" if self.computed else "none is that short"


def check_table(
    paper: Paper, part: Table, told: Namespace, workers: Workers, folder: Path
) -> Checked:
    """Compute some cells of a table again and hold them against the committed ones."""
    runs, here = known_runs(RESULTS), kernels()
    listed, old = stale(RESULTS).get((paper.name, part.name)), 0
    committed, again = journal(RESULTS, paper, part), journal(folder, paper, part)
    rows = {committed.name(row): row for row in committed.rows}
    cells, run = draw(part, committed, told), record(folder)
    worst, problems, allowed, differ, computed = [], [], 0.0, 0, 0
    with ProgressBar(f"{paper.name} {part.name}", len(cells)) as progress:
        for cell, found in workers.computed(partial(run_cell, paper.name, part.name), cells):
            progress.step()
            if isinstance(found, BaseException):
                problems.append(f"{cell}: {type(found).__name__}: {found}")
            elif found.row is None:
                problems.append(found.missing)
            else:
                again.add(cell, found.row, found.seconds, run)
                computed += 1
                row = rows[committed.name(cell)]
                made_in = runs.get(row.get(RUN, ""), {"kernels": KERNELS})
                relative, share = SAME, 0.0
                if made_in["kernels"] != here:
                    relative, share, _ = TOLERANCES[learner(paper.name, part.name, cell)]
                allowed += share
                apart = differences(cell, row, found.row, part, relative)
                new = [one for one in apart if not _is_listed(one, listed, row)]
                differ += bool(new)
                old += bool(apart) and not new
                worst += (new or apart)[:1]
    worst.sort(key=lambda one: -one.apart)
    may = math.ceil(allowed)
    name = f"{paper.name} {part.name}"
    return Checked(name, computed, differ, may, worst[:3], problems, old, listed)


def _is_listed(one: Difference, listed: Stale | None, row: Mapping[str, str]) -> bool:
    """Whether a figure is known to be of older code."""
    if listed is None or row.get(RUN, "") not in listed.runs:
        return False
    return one.figure.startswith(listed.figures)


def check(papers: list[Paper], told: Namespace) -> int:
    """Compute a part of the committed cells again; 0 if all come out again, 1 if not."""
    say(
        f"Kernels of linear algebra: {kernels()}. Figures that were made with the same ones must "
        "come out again; others may be as far off as the tolerance of their learner says.\n"
    )
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own) if told.into.resolve() == RESULTS.resolve() else told.into
        if list(folder.glob("*.csv")):
            say(f"{folder} must be empty, but holds results already: name another folder by --into")
            return 2
        with Workers(told.jobs) as workers:
            checked = [
                check_table(paper, part, told, workers, folder)
                for paper in papers
                for part in paper.tables
                if told.table in (None, part.name) and not workers.stopping
            ]
    rows = [(one.name, one.computed, one.differ, one.allowed, one.verdict) for one in checked]
    say(table(("table", "cells computed again", "differ", "may differ", "holds"), rows))
    for one in checked:
        for far in one.worst:
            where = ", ".join(f"{key} {value}" for key, value in far.cell.items())
            say(f"{one.name}: {where}: {far.figure} was {far.committed}, is {far.found}")
        for text in dict.fromkeys(one.problems[:3]):
            say(f"{one.name}: {text}")
    return 130 if workers.stopping else int(not all(one.holds for one in checked))
