"""The paper's future work: nearer rows and telling attributes count more, k from the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.bella2009.models import MODELS
from experiments.papers.bella2009.repetition import DATASETS, rows_of, splits
from experiments.papers.bella2009.summaries import by_dataset, differs
from experiments.papers.cells import Cell, repeated

__all__ = ["VARIANTS", "cells", "page", "run"]

#: repetitions; there are no published figures to come near to
SEEDS, QUICK = 20, 3

VARIANTS: dict[str, Callable[..., Any]] = {
    "SBA": lambda **more: cal.SimilarityBinning(gate=False, **more),
    "nearer count more": lambda **more: cal.SimilarityBinning(
        gate=False, neighbour_weights="distance", **more
    ),
    "attributes by information": lambda **more: cal.SimilarityBinning(
        gate=False, attribute_weights="mutual_info", **more
    ),
    "both": lambda **more: cal.SimilarityBinning(
        gate=False, neighbour_weights="distance", attribute_weights="mutual_info", **more
    ),
    "k by leave-one-out": lambda **more: cal.SimilarityBinning(gate=False, k="auto", **more),
}
MEASURES = {"MSE": cal.metrics.brier, "CalBin": cal.metrics.calbin}


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """Each variant of similarity binning in both settings."""
    X, y = rows_of(dataset)
    row = {}
    for setting, (train, hold, test) in splits(y, seed).items():
        fitted = MODELS[model]()
        fitted.fit(X.take(train), y[train])
        known, X_new = X.take(hold), X.take(test)
        scores, new = (fitted.predict_proba(part)[:, 1] for part in (known, X_new))
        for name, make in VARIANTS.items():
            rule = make(nominal=X.nominal, classes=[0, 1])
            rule.fit(scores, y[hold], features=known.coded)
            p = rule.calibrate(new, features=X_new.coded)
            for measure, function in MEASURES.items():
                row[f"{name} {setting} {measure}"] = round(function(y[test], p), 5)
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(QUICK if quick else SEEDS, dataset=DATASETS, model=MODELS)


TEXT = """Means over datasets, models and repetitions, smaller is better; in brackets, on how many
datasets the variant is better than plain similarity binning, and Wilcoxon's two-sided p over
datasets. CalBin with ties together. What is positive: as in Tables 2 and 3."""


def page(frame: pd.DataFrame) -> str:
    """The variants beside plain similarity binning."""
    columns = [(measure, setting) for setting in ("T", "V") for measure in MEASURES]
    rows = []
    for name in VARIANTS:
        texts = []
        for measure, setting in columns:
            found = by_dataset(frame, measure)
            ours, plain = found[f"{name} {setting}"], found[f"SBA {setting}"]
            beside = "" if name == "SBA" else f" ({differs(ours, plain)})"
            texts.append(f"{ours.mean():.4f}{beside}")
        rows.append((name, *texts))
    head = ("variant", *(f"{measure} {setting}" for measure, setting in columns))
    return f"{TEXT}\n\n{table(head, rows)}"
