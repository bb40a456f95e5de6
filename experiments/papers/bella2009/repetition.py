"""One repetition: rows drawn, a model trained, and ten ways to calibrate it, in two settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import calibrant as cal
from experiments.data import read, task
from experiments.papers.bella2009.models import MODELS, Rows, coded
from experiments.papers.cells import Cell, repeated

__all__ = [
    "BY_LABEL", "DATASETS", "MEASURES", "METHODS", "UNIVARIATE", "calbin_of_rows",
    "calibrators", "cells", "measures", "rows_of", "run", "run_sizes", "sizes_cells", "splits",
]  # fmt: skip

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: in the paper's order
DATASETS = (
    "breast-cancer", "breast-w", "kr-vs-kp", "colic", "credit-a", "credit-g", "diabetes",
    "haberman", "heart-statlog", "hepatitis", "vote", "ionosphere", "labor", "monks1", "mushroom",
    "sick", "sonar", "spambase", "spectf_train80", "tic-tac-toe",
)  # fmt: skip
#: columns left out: the paper counts 8 squares, and its figures need a corner to be gone
LEFT_OUT = {"tic-tac-toe": ["bottom-right-square"]}
#: repetitions of the full run (the paper's number) and of a quick one
SEEDS, QUICK = 100, 10

#: the columns of the paper's tables; its 10-NN is the model 10-NN, which is not computed twice
METHODS = (
    "model T", "10-NN T", "binning T", "PAV T", "Platt T", "SBA T",
    "binning V", "PAV V", "Platt V", "SBA V",
)  # fmt: skip
BY_LABEL = "CalBin by label"
MEASURES = ("MSE", "CalBin", BY_LABEL, "CalBin as sorted", "AUC")
#: calibrators of the score alone
UNIVARIATE: dict[str, Callable[[], Any]] = {
    "binning": lambda: cal.Histogram(bins=10, binning="mass", classes=[0, 1]),
    "PAV": lambda: cal.Isotonic(classes=[0, 1]),
    "Platt": lambda: cal.Platt(scale="raw", classes=[0, 1]),
}


# --- rows -----------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def rows_of(dataset: str) -> tuple[Rows, Labels]:
    """The rows of a dataset, with missing words as missing."""
    X, y = read(task(dataset), None)
    X = X.drop(columns=LEFT_OUT.get(dataset, [])).replace("(missing)", None)
    return coded(X), y


def splits(y: Labels, seed: int) -> dict[str, tuple[Labels, Labels, Labels]]:
    """Rows to train, calibrate and test on, by setting; the test rows are the same in both."""
    index = np.arange(len(y))
    learn, test = train_test_split(index, test_size=0.25, stratify=y, random_state=seed)
    part, hold = train_test_split(learn, test_size=0.25, stratify=y[learn], random_state=seed)
    return {"T": (learn, learn, test), "V": (part, hold, test)}


# --- measures -------------------------------------------------------------------------------------


def calbin_of_rows(y: Labels, p: Array, tie: Labels) -> float:
    """CalBin of rows one by one; those of equal p in the order of ``tie``."""
    s = max(1, len(y) // 10)
    order = np.lexsort((tie, p))
    windows, labels = (sliding_window_view(a[order], s) for a in (p, y))
    return float(np.abs(windows - labels.mean(axis=1, keepdims=True)).mean())


def measures(y: Labels, p: Array) -> dict[str, float]:
    """The paper's measures, CalBin with three orders of ties, and AUC.

    The two classes sort the other way round: each order of ties is taken in both directions.
    """
    place = np.arange(len(y))
    found = (
        cal.metrics.brier(y, p),
        cal.metrics.calbin(y, p),
        (calbin_of_rows(y, p, y) + calbin_of_rows(y, p, -y)) / 2,
        (calbin_of_rows(y, p, place) + calbin_of_rows(y, p, -place)) / 2,
        cal.metrics.auc(y, p),
    )
    return dict(zip(MEASURES, found, strict=True))


# --- methods --------------------------------------------------------------------------------------


def calibrators(
    scores: Array, known: Rows, y: Labels
) -> Iterator[tuple[str, Callable[[Array, Rows], Array]]]:
    """Each method, fitted to a model's scores of some rows.

    It turns the model's scores of new rows, and these rows, into probabilities.
    """
    yield "model", lambda new, X: new
    for name, make in UNIVARIATE.items():
        fitted = make().fit(scores, y)
        yield name, lambda new, X, fitted=fitted: fitted.calibrate(new)
    rule = cal.SimilarityBinning(gate=False, nominal=known.nominal, classes=[0, 1])
    rule.fit(scores, y, features=known.coded)
    yield "SBA", lambda new, X: rule.calibrate(new, features=X.coded)


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """A model on one draw of a dataset, in both settings: every method by every measure."""
    X, y = rows_of(dataset)
    row = {}
    for setting, (train, hold, test) in splits(y, seed).items():
        fitted = MODELS[model]()
        fitted.fit(X.take(train), y[train])
        known, X_new = X.take(hold), X.take(test)
        scores, new = (fitted.predict_proba(part)[:, 1] for part in (known, X_new))
        for method, predict in calibrators(scores, known, y[hold]):
            found = measures(y[test], predict(new, X_new))
            row |= {f"{method} {setting} {name}": round(v, 5) for name, v in found.items()}
    return row


def cells(quick: bool) -> list[Cell]:
    """Repetitions of four models on 20 datasets; the same rows for all models."""
    return repeated(QUICK if quick else SEEDS, dataset=DATASETS, model=MODELS)


# --- Table 1 --------------------------------------------------------------------------------------


def sizes_cells(quick: bool) -> list[Cell]:
    return [{"dataset": dataset} for dataset in DATASETS]


def run_sizes(dataset: str) -> dict[str, float]:
    """Rows, and attributes of words and of numbers."""
    X, y = rows_of(dataset)
    words = len(X.nominal)
    return {"size": len(y), "nominal": words, "numeric": X.coded.shape[1] - words}
