"""Tables 4 to 6: average ranks of IsoRegC, BBQ and ENIR, F_F, and Holm's step-down."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.beside import order_kept
from experiments.papers.naeini2018.grids import LARGER, MAIN, READINGS, Reading, grid
from experiments.papers.naeini2018.methods import BASE, MEASURES, METHODS, PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS
from experiments.papers.published import figure

__all__ = [
    "COLUMNS",
    "TABLES",
    "Ranking",
    "artefact",
    "everything",
    "followed",
    "nearness",
    "printed",
    "ranking",
    "table_of_ranks",
    "table_of_readings",
]

#: the table of a model
TABLES = {"LR": "4", "SVM": "5", "NB": "6"}
COLUMNS = ("IsoRegC", "BBQ", "ENIR")
LEVEL = 0.05
#: of the paper
DATASETS = 40
#: what the paper puts beside a method that ENIR is better or worse than
MARKS = {"worse": "*", "better": "⊛", "not shown": ""}


class Ranking(NamedTuple):
    """Average ranks by column, the markers beside them, and F_F with its p."""

    ranks: dict[str, float]
    marks: dict[str, str]
    statistic: float
    p: float

    def text(self, name: str) -> str:
        best = min(self.ranks.values())
        mark = self.marks.get(name, "")
        shown = f"{self.ranks[name]:.3f}{mark}"
        return f"**{shown}**" if self.ranks[name] == best else shown

    @property
    def short(self) -> str:
        """The three ranks in one cell."""
        return " / ".join(self.text(name) for name in COLUMNS)

    def holding(self, mark: str) -> tuple[str, ...]:
        """The methods with a marker."""
        return tuple(name for name, found in self.marks.items() if found == mark)


def _tested(told: cal.compare.Ranks) -> Ranking:
    """F_F first; Holm's markers only where it rejects."""
    omnibus = cal.compare.friedman(told, larger_is_better=False)
    held = cal.compare.holm(told, control="ENIR", larger_is_better=False, level=LEVEL)
    apart = omnibus.f_p_value <= LEVEL
    marks = {name: MARKS[held.verdict(name)] if apart else "" for name in COLUMNS[:2]}
    ranks = dict(zip(told.names, told.mean, strict=True))
    return Ranking(ranks, marks, omnibus.f_statistic, omnibus.f_p_value)


def ranking(frame: pd.DataFrame, model: str, measure: str, reading: Reading = MAIN) -> Ranking:
    """Ours, under the paper's names of the columns."""
    methods = ("Isotonic", "BBQ", reading.enir)
    found = grid(frame, model, methods, f"{measure}{reading.suffix}").set_axis(
        list(COLUMNS), axis=1
    )
    better = measure in LARGER
    return _tested(cal.compare.average_ranks(found, larger_is_better=better))


@lru_cache
def printed(model: str, measure: str) -> Ranking:
    """As the paper has it: its ranks and markers, and F_F and p as its ranks give them."""
    where = {"paper": "naeini2018", "table": TABLES[model], "model": model}
    ranks = {name: figure(**where, method=name, measure=f"{measure} rank") for name in COLUMNS}
    superior = {
        name: figure(**where, method=name, measure=f"{measure} ENIR superior")
        for name in COLUMNS[:2]
    }
    told = _tested(cal.compare.Ranks(COLUMNS, [ranks[name] for name in COLUMNS], DATASETS))
    marks = {name: MARKS["worse"] if yes else "" for name, yes in superior.items()}
    return told._replace(ranks=ranks, marks=marks)


@lru_cache
def follows(model: str, measure: str) -> bool:
    """Whether the published markers are what the tests say of the published ranks."""
    there = printed(model, measure)
    again = _tested(cal.compare.Ranks(COLUMNS, [there.ranks[name] for name in COLUMNS], DATASETS))
    return again.marks == there.marks


def followed() -> str:
    """A sentence on the paper's own consistency."""
    pairs = [(model, measure) for model in TABLES for measure in PAPERS_MEASURES]
    wrong = [f"{measure} with {model}" for model, measure in pairs if not follows(model, measure)]
    rest = f" All but these: {', '.join(wrong)}." if wrong else ""
    return (
        f"The published markers are what F_F and Holm's step-down give for the published ranks of "
        f"{DATASETS} datasets in {len(pairs) - len(wrong)} of {len(pairs)} rows.{rest}"
    )


def _line(frame: pd.DataFrame, model: str, measure: str) -> tuple[str, ...]:
    ours = ranking(frame, model, measure)
    last = (f"{ours.statistic:.2f}", f"{ours.p:.2g}")
    shown = tuple(ours.text(name) for name in COLUMNS)
    if measure not in PAPERS_MEASURES:
        return (measure, "", "", "", *shown, *last, "", "")
    there = printed(model, measure)
    kept, pairs = order_kept(there.ranks, ours.ranks)
    same = sum(there.marks[name] == ours.marks[name] for name in there.marks)
    verdicts = (f"{kept} of {pairs} pairs", f"{same} of {len(there.marks)}")
    return (measure, *(there.text(name) for name in COLUMNS), *shown, *last, *verdicts)


def table_of_ranks(frame: pd.DataFrame, model: str) -> str:
    """Published and ours, then ours in the other readings."""
    there = (f"{name}, published" for name in COLUMNS)
    ours = ("Isotonic", "BBQ", MAIN.words)
    head = ("measure", *there, *ours, "F_F", "p", "order kept", "markers kept")
    main = table(head, [_line(frame, model, measure) for measure in MEASURES])
    rows = [
        (reading.words, *(ranking(frame, model, name, reading).short for name in MEASURES))
        for reading in READINGS[1:]
    ]
    return (
        f"{main}\n\nIsotonic / BBQ / ENIR in other readings:\n\n{table(('ENIR', *MEASURES), rows)}"
    )


def nearness(frame: pd.DataFrame, reading: Reading) -> tuple[float, int, int, int, int]:
    """How far from the published ranks; pairs in their order, of how many; markers, of how many."""
    gaps, kept, pairs, same, marks = [], 0, 0, 0, 0
    for model in TABLES:
        for measure in PAPERS_MEASURES:
            there, ours = printed(model, measure), ranking(frame, model, measure, reading)
            gaps += [abs(there.ranks[name] - ours.ranks[name]) for name in COLUMNS]
            order = order_kept(there.ranks, ours.ranks)
            kept, pairs = kept + order[0], pairs + order[1]
            same += sum(there.marks[name] == ours.marks[name] for name in there.marks)
            marks += len(there.marks)
    return float(np.mean(gaps)), kept, pairs, same, marks


def table_of_readings(frame: pd.DataFrame) -> str:
    """Which reading comes nearest to the published ranks."""
    rows = []
    for reading in READINGS:
        gap, kept, pairs, same, marks = nearness(frame, reading)
        rows.append((reading.words, f"{gap:.3f}", f"{kept} of {pairs}", f"{same} of {marks}"))
    head = ("reading", "mean distance of ranks", "pairs in the published order", "markers kept")
    return table(head, rows)


def artefact(frame: pd.DataFrame) -> str:
    """ECE averaged over datasets: ties ordered by label, kept together, and in equal widths."""
    measures = ("ECE", "ECE, ties together", "ECE, equal width")
    methods = [name for name in METHODS if f"{name} ECE" in frame]
    found = {
        (model, measure): grid(frame, model, methods, f"{measure}{MAIN.suffix}").mean()
        for model in MODELS
        for measure in measures
    }
    rows = [(name, *(f"{mean[name]:.4f}" for mean in found.values())) for name in methods]
    return table(("method", *(f"{model}: {measure}" for model, measure in found)), rows)


def everything(frame: pd.DataFrame) -> str:
    """Average ranks of all methods together."""
    measures = ("AUC", "ACC", "RMSE", "ECE, ties together")
    methods = [name for name in METHODS if f"{name} ECE" in frame]
    columns = {}
    for model in MODELS:
        for measure in measures:
            found = grid(frame, model, methods, measure)
            told = cal.compare.average_ranks(found, larger_is_better=measure in LARGER)
            columns[f"{model}: {measure}"] = told
    rows = [(name, *(f"{told[name]:.2f}" for told in columns.values())) for name in methods]
    shown = [("base" if name == BASE else name, *rest) for name, *rest in rows]
    return table(("method", *columns), shown)
