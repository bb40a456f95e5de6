"""Several classes: similarity binning at once, against PAV question by question and combined."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.data import read_classes
from experiments.papers.bella2009.models import MODELS_OF_MANY, Rows, coded
from experiments.papers.bella2009.repetition import splits
from experiments.papers.bella2009.summaries import by_dataset, complete, differs
from experiments.papers.cells import Cell, repeated

__all__ = ["CODED", "DATASETS", "METHODS", "cells", "page", "pair_scores", "run"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

DATASETS = ("balance", "car", "splice", "satimage", "pendigits", "letter", "covtype")
SEEDS, QUICK = 10, 2
#: rows used of a dataset at most, a random draw
MOST = 11_000

#: code and combiner of the calibrated questions
CODED = {
    "PAV, normalised": ("one_vs_rest", "normalize"),
    "PAV, least squares": ("one_vs_rest", "least_squares"),
    "PAV, coupled": ("one_vs_rest", "coupling"),
    "PAV of pairs, least squares": ("all_pairs", "least_squares"),
    "PAV of pairs, coupled": ("all_pairs", "coupling"),
}
METHODS = ("model", "10-NN", "SBA", *CODED)
#: the methods of each setting: 10-NN is the model of that name, trained on all 75 %
SETTINGS = {"T": METHODS, "V": tuple(name for name in METHODS if name != "10-NN")}
RIVALS = tuple(name for name in METHODS if name != "SBA")


@lru_cache(maxsize=2)
def rows_of(dataset: str) -> tuple[Rows, Labels]:
    X, y = read_classes(dataset, MOST)
    return coded(X), y


def pair_scores(P: Array, code: cal.multiclass.Code) -> Array:
    """The share of each column's positives among its classes; ½ where the model rules out both."""
    positive, negative = P @ (code.matrix > 0), P @ (code.matrix < 0)
    total = positive + negative
    found: Array = np.where(total > 0, positive / np.where(total > 0, total, 1.0), 0.5)
    return found


def calibrated(
    P: Array, y: Labels, X: Rows, P_new: Array, X_new: Rows
) -> Iterator[tuple[str, Array]]:
    """Each method's distributions of the new rows, but for 10-NN."""
    k = P.shape[1]
    yield "model", P_new
    rule = cal.SimilarityBinning(gate=False, nominal=X.nominal, classes=range(k))
    yield "SBA", rule.fit(P, y, features=X.coded).predict_proba(P_new, features=X_new.coded)
    codes = {"one_vs_rest": cal.multiclass.one_vs_rest(k), "all_pairs": cal.multiclass.all_pairs(k)}
    for name, (code, combine) in CODED.items():
        scores, new = (pair_scores(part, codes[code]) for part in (P, P_new))
        many = cal.CodedCalibrator(cal.Isotonic(), code=code, combine=combine, classes=range(k))
        yield name, many.fit(scores, y).predict_proba(new)


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """A model of several classes on one draw, in both settings."""
    X, y = rows_of(dataset)
    row = {}
    for setting, (train, hold, test) in splits(y, seed).items():
        fitted = MODELS_OF_MANY[model]()
        fitted.fit(X.take(train), y[train])
        known, X_new = X.take(hold), X.take(test)
        P, P_new = (fitted.predict_proba(part) for part in (known, X_new))
        for method, p in calibrated(P, y[hold], known, P_new, X_new):
            found = {
                "MSE": cal.metrics.brier(
                    y[test], p, normalise="mean_over_classes", classes=range(p.shape[1])
                ),
                "CalBin": cal.metrics.calbin(y[test], p, classes=range(p.shape[1])),
                "error": 1.0 - cal.metrics.accuracy(y[test], p, classes=range(p.shape[1])),
            }
            row |= {f"{method} {setting} {name}": round(v, 6) for name, v in found.items()}
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(QUICK if quick else SEEDS, dataset=DATASETS, model=MODELS_OF_MANY)


TEXT = """No figures are published. One model of all classes per repetition; similarity binning sees
its whole distribution, PAV one question at a time: each class against the rest, or one class
against another, of whose share in the pair it is told. Means over models and repetitions. MSE is
divided by rows and classes. 10-NN is the model of that name. The datasets are our choice; each
label is a class, and of more than {most:,} rows so many are drawn. In bold, the smallest figure of
a line."""
DUELS = """Similarity binning against each of the others: datasets with the smaller figure, and
Wilcoxon's two-sided p over datasets, which with seven of them is .016 at the least."""


def page(frame: pd.DataFrame) -> str:
    """Methods by dataset, in both settings, and similarity binning against the others."""
    full = complete(frame)
    parts = [TEXT.format(most=MOST)]
    for measure in ("MSE", "CalBin"):
        found = by_dataset(full, measure)
        for setting, names in SETTINGS.items():
            part = found[[f"{name} {setting}" for name in names]]
            lines = [
                (name, *_bold(row)) for name, row in zip(part.index, part.to_numpy(), strict=True)
            ]
            lines.append(("mean", *_bold(part.mean().to_numpy())))
            said = table(("dataset", *names), lines)
            parts.append(f"### {measure}, setting {setting}\n\n{said}")
    return "\n\n".join([*parts, "### Against the others", DUELS, _duels(full)])


def _bold(values: Array) -> list[str]:
    least = np.nanmin(values)
    return [f"**{v:.4f}**" if v == least else f"{v:.4f}" for v in values]


def _duels(full: pd.DataFrame) -> str:
    rows = []
    for measure in ("MSE", "CalBin", "error"):
        found = by_dataset(full, measure)
        for setting in SETTINGS:
            ours = found[f"SBA {setting}"]
            others = [found.get(f"{name} {setting}") for name in RIVALS]
            told = ("" if other is None else differs(ours, other) for other in others)
            rows.append((measure, setting, *told))
    return table(("measure", "setting", *RIVALS), rows)
