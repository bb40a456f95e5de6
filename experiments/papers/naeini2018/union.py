"""What the paper leaves out of Tables 3 to 8: near-isotonic and piecewise linear at once, and ABB.

The union of both constraints is its future work. ABB it leaves out because "even for small size
datasets, we have observed that ABB performs similar to BBQ", of which it prints no figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.cells import Cell, Table
from experiments.papers.naeini2018.crossval import cross_validated
from experiments.papers.naeini2018.datasets import DATASETS
from experiments.papers.naeini2018.elite import Difference
from experiments.papers.naeini2018.grids import LARGER, MAIN, grid
from experiments.papers.naeini2018.methods import BASE, METHODS, PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS

__all__ = ["CHOSEN", "SMALL", "UNION", "UNION_TABLE", "against", "small"]

#: the library's name of what is near-isotonic and piecewise linear
UNION = "ELiTE near"
BESIDE = (BASE, "Isotonic", "BBQ", MAIN.enir, "ENIR", "ELiTE", UNION)
CHOSEN: dict[str, Callable[[], Any]] = {name: METHODS[name] for name in BESIDE} | {"ABB": cal.ABB}
#: rows up to which a dataset is small: ABB was too slow for "more than a couple of thousand"
SMALL = 2000
SHOWN = (*PAPERS_MEASURES, "ECE, ties together")


def cells(quick: bool) -> list[Cell]:
    return [
        {"dataset": dataset, "model": model, "seed": 0} for dataset in DATASETS for model in MODELS
    ]


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """The same folds as in Tables 3 to 6."""
    return cross_validated(dataset, model, seed, CHOSEN)


def small(frame: pd.DataFrame, sizes: dict[str, int]) -> pd.DataFrame:
    """The runs on small datasets."""
    return frame[frame["dataset"].map(sizes) <= SMALL]


def against(frame: pd.DataFrame, model: str, measure: str, pair: tuple[str, str]) -> Difference:
    """The first method minus the second over the datasets: median, and Wilcoxon's p."""
    found = grid(frame, model, pair, f"{measure}{MAIN.suffix}")
    told = cal.compare.wilcoxon(found[pair[0]], found[pair[1]])
    return Difference(told.median_difference, told.p_value, told.plus - told.minus)


def ranks(frame: pd.DataFrame) -> str:
    """Average ranks of all methods, by model and measure."""
    columns = {}
    for model in MODELS:
        for measure in SHOWN:
            found = grid(frame, model, tuple(CHOSEN), f"{measure}{MAIN.suffix}")
            told = cal.compare.average_ranks(found, larger_is_better=measure in LARGER)
            columns[f"{model}: {measure}"] = told
    rows = [(name, *(f"{told[name]:.2f}" for told in columns.values())) for name in CHOSEN]
    shown = [("base" if name == BASE else name, *rest) for name, *rest in rows]
    return table(("method", *columns), shown)


def differences(frame: pd.DataFrame) -> str:
    """Table 8 for the union: minus ELiTE, minus ENIR, minus isotonic regression."""
    rows = [
        (
            measure,
            model,
            *(str(against(frame, model, measure, (UNION, name))) for name in RIVALS),
        )
        for measure in SHOWN
        for model in MODELS
    ]
    return table(("measure", "model", *(f"{UNION} − {name}" for name in RIVALS)), rows)


RIVALS = ("ELiTE", "ENIR", MAIN.enir, "Isotonic")
TEXT = """One run of ten-fold cross-validation, the folds of Tables 3 to 6 (their first run),
measures as means over folds. "{union}" is near-isotonic and piecewise linear: ELiTE with a price
on every fall, `ELiTE(falls="priced")`.

### Average ranks, {datasets} datasets

{ranks}

### Table 8 for the union: median difference and Wilcoxon's p

{differences}"""


def page(frame: pd.DataFrame) -> str:
    if frame["dataset"].nunique() < 2:
        return "*Fewer than two datasets have been run.*"
    return TEXT.format(
        union=UNION,
        datasets=frame["dataset"].nunique(),
        ranks=ranks(frame),
        differences=differences(frame),
    )


UNION_TABLE = Table(
    "union", "Tables 3 to 8 for the union of both, and for ABB", cells, run, page, times=(" time",)
)
