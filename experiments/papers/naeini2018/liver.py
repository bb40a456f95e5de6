"""Figure 2: reliability of three classifiers on liver-disorders, five bins of equal frequency."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from experiments import table
from experiments.papers.beside import beside
from experiments.papers.cells import Cell, Table
from experiments.papers.naeini2018.datasets import CAP, rows
from experiments.papers.naeini2018.models import MODELS, ask

__all__ = ["ENDS", "FIGURE_2", "KINDS", "violated"]

BINS, FOLDS = 5, 10
QUICK, RUNS = 10, 100
#: which predictions: of rows left out, or of the rows the model was trained on
KINDS = ("new rows", "own rows")


def run(model: str, seed: int) -> dict[str, float]:
    """Mean prediction and frequency of each bin, for predictions of new rows and of own rows."""
    X, y = rows("liver disorders", CAP, 0)
    p = {kind: np.empty(len(y)) for kind in KINDS}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        p["new rows"][test] = ask(model, X, y, train, test).new
    whole = np.arange(len(y))
    p["own rows"] = ask(model, X, y, whole, whole).own
    row: dict[str, float] = {}
    for kind in KINDS:
        row[f"{kind} AUC"] = cal.metrics.auc(y, p[kind])
        order = np.argsort(p[kind], kind="stable")
        for i, part in enumerate(np.array_split(order, BINS), start=1):
            row[f"{kind} predicted {i}"] = float(p[kind][part].mean())
            row[f"{kind} frequency {i}"] = float(y[part].mean())
    return row


def cells(quick: bool) -> list[Cell]:
    seeds = range(QUICK if quick else RUNS)
    return [{"model": model, "seed": seed} for model in MODELS for seed in seeds]


#: the first two bins: as they are, or as they would be if the other class were the positive one
ENDS = {"class 2 positive": (1, 2), "class 1 positive": (BINS - 1, BINS)}


def violated(frame: pd.DataFrame, kind: str, end: str) -> pd.Series:
    """Per run: whether the frequencies of the first two bins are in the wrong order."""
    low, high = ENDS[end]
    return frame[f"{kind} frequency {high}"] < frame[f"{kind} frequency {low}"]


def page(frame: pd.DataFrame) -> str:
    """Frequencies of the bins, and how often the first two are in the wrong order."""
    lines = []
    for kind in KINDS:
        for model, part in frame.groupby("model", sort=False):
            columns = ["AUC", *(f"frequency {i}" for i in range(1, BINS + 1))]
            texts = (beside(math.nan, part[f"{kind} {name}"]).ours for name in columns)
            wrong = (violated(part, kind, end) for end in ENDS)
            counts = (f"{int(found.sum())} of {len(found)}" for found in wrong)
            lines.append((model, kind, *texts, *counts))
    bins = (f"bin {i}" for i in range(1, BINS + 1))
    orders = (f"bins {low} and {high} out of order, runs" for low, high in ENDS.values())
    return table(("model", "predictions of", "AUC", *bins, *orders), lines)


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    from experiments.papers.naeini2018.drawing import reliability

    return [reliability(frame, KINDS, BINS, folder / "naeini2018_figure2.png")]


FIGURE_2 = Table(
    "figure2",
    "Figure 2: liver-disorders in five bins of equal frequency",
    cells,
    run,
    page,
    figures=draw,
)
