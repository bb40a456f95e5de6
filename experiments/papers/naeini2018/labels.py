"""Future work: ENIR where a row may have several labels, one map for each.

Few of the papers' datasets have several labels. Two are made so (scene, solar flares); of three
others, some of the columns are asked for at once: policies of a household, votes of a member of
Congress, four facts of a census.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.data import read_labels
from experiments.papers.bella2009.summaries import by_dataset
from experiments.papers.cells import Cell, Table, repeated
from experiments.papers.several_classes import BASE, CLIP, REFERENCES, standings
from experiments.study import MODELS as EVERY_MODEL
from experiments.study import encode

__all__ = ["DATASETS", "LABELS_TABLE", "METHODS"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

SEEDS = 5
#: rows used of a dataset at most, a random draw; of them, trained and calibrated on
MOST, TRAIN, HOLD = 6000, 0.4, 0.3
MODELS = ("naive Bayes", "logistic regression", "random forest")
METHODS: dict[str, Callable[[], Any]] = {"ENIR": cal.ENIR, "ABB": cal.ABB, **REFERENCES}
MEASURES = ("log loss", "Brier", "ECE")


class Source(NamedTuple):
    """The columns that are labels, when a row has one, and columns that would give it away."""

    labels: dict[str, Callable[[pd.Series], pd.Series]]
    hidden: tuple[str, ...] = ()
    prefix: str = ""


def _yes(column: pd.Series) -> pd.Series:
    return column.isin(["1", "y"])


def _some(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column) > 0


DATASETS: dict[str, Source] = {
    "scene": Source(
        dict.fromkeys(("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"), _yes)
    ),
    "solar-flare": Source(
        dict.fromkeys(("C_class_flares", "M_class_flares"), _some), ("X_class_flares",)
    ),
    "coil2000": Source(
        dict.fromkeys(("AWAPART", "APERSAUT", "ABROM", "ALEVEN", "ABRAND"), _some), prefix="M"
    ),
    "vote": Source(
        dict.fromkeys(
            (
                "el-salvador-aid",
                "mx-missile",
                "immigration",
                "education-spending",
                "duty-free-exports",
            ),
            _yes,
        )
    ),
    "adult": Source(
        {
            "label": lambda column: column == ">50K",
            "marital_status": lambda column: column == "Married-civ-spouse",
            "sex": lambda column: column == "Female",
            "hours_per_week": lambda column: pd.to_numeric(column) > 40,
        },
        ("relationship",),
    ),
}


@lru_cache(maxsize=2)
def rows_of(dataset: str) -> tuple[pd.DataFrame, Array]:
    """Features, and rows × labels: 1, 0, or NaN where the source does not say."""
    source = DATASETS[dataset]
    X, found = read_labels(dataset, list(source.labels), MOST)
    X = X.drop(columns=[name for name in source.hidden if name in X])
    if source.prefix:
        X = X[[name for name in X if name.startswith(source.prefix)]]
    columns = [
        np.where(found[name] == "", np.nan, rule(found[name]).astype(float))
        for name, rule in source.labels.items()
    ]
    return X, np.column_stack(columns)


def scores_of(
    X: pd.DataFrame, Y: Array, model: str, parts: tuple[Rows, Rows, Rows], seed: int
) -> tuple[Array, Array]:
    """A model for each label; its probabilities of the rows to calibrate and to test on."""
    train, hold, test = parts
    coder = encode(X.iloc[train])
    A, B, C = (coder.transform(X.iloc[part]) for part in parts)
    held, new = np.empty((len(hold), Y.shape[1])), np.empty((len(test), Y.shape[1]))
    for j in range(Y.shape[1]):
        known = ~np.isnan(Y[train, j])
        fitted = EVERY_MODEL[model](seed).fit(A[known], Y[train, j][known].astype(int))
        held[:, j], new[:, j] = (fitted.predict_proba(part)[:, 1] for part in (B, C))
    return held, new


def measured(name: str, Y: Array, P: Array) -> dict[str, float]:
    """Means over the labels, each of the rows that it is known of."""
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for j in range(Y.shape[1]):
        known = ~np.isnan(Y[:, j])
        y, p = Y[known, j].astype(int), P[known, j]
        found["log loss"].append(cal.metrics.log_loss(y, p, clip=CLIP, classes=[0, 1]))
        found["Brier"].append(cal.metrics.brier(y, p, classes=[0, 1]))
        found["ECE"].append(cal.metrics.ece(y, p, binning="mass", classes=[0, 1]))
    return {f"{name} {measure}": round(float(np.mean(v)), 6) for measure, v in found.items()}


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """Trained on 40 % of the rows, calibrated on 30 %, tested on 30 %."""
    X, Y = rows_of(dataset)
    order = np.random.default_rng(seed).permutation(len(Y))
    cuts = [round(TRAIN * len(Y)), round((TRAIN + HOLD) * len(Y))]
    train, hold, test = np.split(order, cuts)
    held, new = scores_of(X, Y, model, (train, hold, test), seed)
    row = measured(BASE, Y[test], new)
    for name, make in METHODS.items():
        fitted = cal.MultiLabelCalibrator(make()).fit(held, Y[hold])
        row |= measured(name, Y[test], fitted.predict_proba(new))
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(1 if quick else SEEDS, dataset=DATASETS, model=MODELS)


TEXT = """No figures are published. A model for each label, and a map for each
(`cal.MultiLabelCalibrator`), fitted to held-out rows: 40 % of the rows to train, 30 % to calibrate,
30 % to test, at most {most:,} of a dataset. Means over labels, models ({models}) and {seeds}
repetitions. ECE in ten groups of equal mass, ties together; log loss counts 0 as {clip:g}. The
labels: {labels}. With five datasets Wilcoxon's p is .062 at the least, so that no difference can be
beyond chance at 5 %.

{standings}

Log loss by dataset:

{losses}"""


def page(frame: pd.DataFrame) -> str:
    found = by_dataset(frame, "log loss")[[BASE, *METHODS]]
    lines = [
        (name, *(f"**{v:.4f}**" if v == row.min() else f"{v:.4f}" for v in row))
        for name, row in zip(found.index, found.to_numpy(), strict=True)
    ]
    labels = "; ".join(f"{name}: {', '.join(one.labels)}" for name, one in DATASETS.items())
    return TEXT.format(
        most=MOST,
        models=", ".join(MODELS),
        seeds=frame["seed"].nunique(),
        clip=CLIP,
        labels=labels,
        standings=standings(frame, list(METHODS), MEASURES),
        losses=table(("dataset", BASE, *METHODS), lines),
    )


LABELS_TABLE = Table("multilabel", "Future work: several labels at once", cells, run, page)
