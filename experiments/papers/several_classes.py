"""Binary calibrators for several classes: one against the rest, calibrated, and normalised.

Both papers of Naeini name it as future work, for SBB and ABB (2015) and for ENIR (2018). The rows,
models and parts are those of the multiclass study of Bella 2009, in the setting with held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.papers.bella2009.classes import DATASETS, rows_of
from experiments.papers.bella2009.models import MODELS_OF_MANY
from experiments.papers.bella2009.repetition import splits
from experiments.papers.bella2009.summaries import by_dataset, differs
from experiments.papers.cells import Cell, Table, repeated

__all__ = ["BASE", "REFERENCES", "classes_table", "measured", "standings"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Methods = Mapping[str, Callable[[], Any]]

SEEDS = 3
#: log loss counts a probability of 0 as this
CLIP = 1e-6
BASE = "model"
#: what the new methods are held against, in the papers and here
REFERENCES: Methods = {"isotonic": cal.Isotonic, "Platt": cal.Platt}
MEASURES = ("log loss", "MSE", "ECE", "error")


def measured(name: str, y: Labels, p: Array) -> dict[str, float]:
    """A method's four measures; ECE is that of each class against the rest, averaged."""
    k = p.shape[1]
    each = [cal.metrics.ece((y == j).astype(int), p[:, j], binning="mass") for j in range(k)]
    found = {
        "log loss": cal.metrics.log_loss(y, p, clip=CLIP, classes=range(k)),
        "MSE": cal.metrics.brier(y, p, normalise="mean_over_classes", classes=range(k)),
        "ECE": float(np.mean(each)),
        "error": 1.0 - cal.metrics.accuracy(y, p, classes=range(k)),
    }
    return {f"{name} {measure}": round(float(value), 6) for measure, value in found.items()}


def run(methods: Methods, dataset: str, model: str, seed: int) -> dict[str, float]:
    """A model trained on 56 % of the rows, calibrated on 19 %, tested on 25 %."""
    X, y = rows_of(dataset)
    train, hold, test = splits(y, seed)["V"]
    fitted = MODELS_OF_MANY[model]()
    fitted.fit(X.take(train), y[train])
    P, new = (fitted.predict_proba(X.take(part)) for part in (hold, test))
    row = measured(BASE, y[test], new)
    for name, make in methods.items():
        many = cal.CodedCalibrator(make(), classes=range(P.shape[1])).fit(P, y[hold])
        row |= measured(name, y[test], many.predict_proba(new))
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(1 if quick else SEEDS, dataset=DATASETS, model=MODELS_OF_MANY)


# --- pages ----------------------------------------------------------------------------------------


def standings(frame: pd.DataFrame, names: list[str], measures: tuple[str, ...]) -> str:
    """Means over datasets, and each method against the references: datasets won, Wilcoxon's p."""
    rows = []
    for measure in measures:
        found = by_dataset(frame, measure)
        for name in (BASE, *names):
            told = (
                "" if name in (BASE, other) else differs(found[name], found[other])
                for other in REFERENCES
            )
            rows.append((measure, name, f"{found[name].mean():.4f}", *told))
    return table(("measure", "method", "mean", *(f"against {r}" for r in REFERENCES)), rows)


def losses(frame: pd.DataFrame, names: list[str]) -> str:
    """Log loss by dataset, the smallest of a line in bold."""
    found = by_dataset(frame, "log loss")[[BASE, *names]]
    rows = []
    for dataset, line in zip(found.index, found.to_numpy(), strict=True):
        shown = (f"**{v:.4f}**" if v == line.min() else f"{v:.4f}" for v in line)
        rows.append((dataset, *shown))
    return table(("dataset", BASE, *names), rows)


TEXT = """No figures are published. Each class against the rest, calibrated on held-out rows by
itself, then normalised (`cal.CodedCalibrator`). Seven datasets, four kinds of model, {seeds}
repetitions; means over models and repetitions. MSE is divided by rows and classes, ECE is the mean
over classes (ten groups of equal mass, ties together), log loss counts 0 as {clip:g}. In the
columns "against": datasets with the smaller figure, and Wilcoxon's two-sided p, which with seven
datasets is .016 at the least.

{standings}

Log loss by dataset:

{losses}"""


def page(methods: Methods, frame: pd.DataFrame) -> str:
    names = list(methods)
    return TEXT.format(
        seeds=frame["seed"].nunique(),
        clip=CLIP,
        standings=standings(frame, names, MEASURES),
        losses=losses(frame, names),
    )


def classes_table(methods: Methods) -> Table:
    """The future work of a paper: its methods, beside coded isotonic regression and Platt."""
    every = {**methods, **REFERENCES}
    return Table(
        "multiclass",
        "Future work: several classes",
        cells,
        partial(run, every),
        partial(page, every),
    )
