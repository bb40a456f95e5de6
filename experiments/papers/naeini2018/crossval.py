"""Ten runs of ten-fold cross-validation of every calibrator: what Tables 3 to 6 and 8 rest on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.papers.cells import Cell
from experiments.papers.naeini2018.datasets import CAP, DATASETS, rows
from experiments.papers.naeini2018.methods import MEASURES, METHODS, measures, warm
from experiments.papers.naeini2018.models import EXTRA, MODELS, ask

__all__ = ["FOLDS", "IN_FOLDS", "RUNS", "cells", "cross_validated", "run"]

FOLDS, RUNS = 10, 10
#: what the mean over folds is called, beside the figure of all folds' predictions together
IN_FOLDS = ", folds"
#: of Table 1, and of the further methods (`union`)
LEFT_OUT = {"ELiTE near"}
CALIBRATORS = {name: make for name, make in METHODS.items() if name not in LEFT_OUT}


def cells(quick: bool) -> list[Cell]:
    seeds = range(1 if quick else RUNS)
    return [
        {"dataset": dataset, "model": model, "seed": seed}
        for seed in seeds
        for dataset in DATASETS
        for model in (*MODELS, *EXTRA)
    ]


def run(dataset: str, model: str, seed: int) -> dict[str, float]:
    """Every method of the paper's tables."""
    return cross_validated(dataset, model, seed, CALIBRATORS)


def cross_validated(
    dataset: str, model: str, seed: int, methods: Mapping[str, Callable[[], Any]]
) -> dict[str, float]:
    """Each method's measures and its processor time, calibrated on the model's training rows."""
    warm()
    X, y = rows(dataset, CAP, seed)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y)
    p = {name: np.empty(len(y)) for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    tests = []
    for train, test in splits:
        tests.append(test)
        own, new = ask(model, X, y, train, test)
        for name, make in methods.items():
            start = time.process_time()
            p[name][test] = make().fit(own, y[train]).calibrate(new)
            seconds[name] += time.process_time() - start
    row: dict[str, float] = {}
    for name, found in p.items():
        row |= {f"{name} {measure}": value for measure, value in measures(y, found).items()}
        row |= {
            f"{name} {measure}{IN_FOLDS}": v for measure, v in in_folds(y, found, tests).items()
        }
        row[f"{name} time"] = seconds[name]
    return row


def in_folds(y: np.ndarray, p: np.ndarray, tests: list[np.ndarray]) -> dict[str, float]:
    """The mean over the folds; one without both classes has no AUC and is left out of it."""
    found = [measures(y[test], p[test]) for test in tests]
    return {name: float(np.nanmean([row[name] for row in found])) for name in MEASURES}
