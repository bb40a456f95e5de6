"""ELiTE against Platt's method, which the paper says it leads, on the folds of Tables 3 to 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.cells import Cell, Table
from experiments.papers.naeini2018.crossval import cross_validated
from experiments.papers.naeini2018.datasets import DATASETS
from experiments.papers.naeini2018.elite import PAIRS, Pair, difference
from experiments.papers.naeini2018.grids import MAIN
from experiments.papers.naeini2018.methods import BASE, METHODS, PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS

__all__ = ["AGAINST", "PLATT_TABLE"]

PLATT = "Platt"
#: the first is the paper's, the second the library's default
AGAINST = tuple(Pair(name, PLATT, MAIN.suffix) for name in (PAIRS[0].elite, "ELiTE"))
CHOSEN: dict[str, Callable[[], Any]] = {
    PLATT: lambda: cal.Platt(scale="raw"),
    **{name: METHODS[name] for name in (BASE, *(pair.elite for pair in AGAINST))},
}


def cells(quick: bool) -> list[Cell]:
    return [
        {"dataset": dataset, "model": model, "seed": 0} for dataset in DATASETS for model in MODELS
    ]


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """The same folds as in Tables 3 to 6."""
    return cross_validated(dataset, model, seed, CHOSEN)


def page(frame: pd.DataFrame) -> str:
    if frame["dataset"].nunique() < 2:
        return "*Fewer than two datasets have been run.*"
    rows = [
        (measure, model, *(str(difference(frame, model, measure, pair)) for pair in AGAINST))
        for measure in (*PAPERS_MEASURES, "ECE, ties together")
        for model in MODELS
    ]
    head = ("measure", "model", *(pair.words for pair in AGAINST))
    return (
        f"{frame['dataset'].nunique()} datasets, one run of ten-fold cross-validation, the first "
        "of Tables 3 to 6. Platt's sigmoid is of the probabilities as "
        "they are. Median difference over the datasets and Wilcoxon's p, bold where it is at most "
        f"5 %; measures as means over folds.\n\n{table(head, rows)}"
    )


PLATT_TABLE = Table("platt", "ELiTE against Platt's method", cells, run, page, times=(" time",))
