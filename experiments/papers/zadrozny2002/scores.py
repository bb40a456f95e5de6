"""Naive Bayes and a linear support vector machine: their scores on the training and test rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.svm import LinearSVC

import calibrant as cal
from experiments.data import read, read_split, task
from experiments.naive_bayes import MixedNaiveBayes
from experiments.papers.zadrozny2002.coding import NUMBERS, Array, Labels, binned, indicators
from experiments.study import encode

HINGE = {"loss": "hinge", "dual": True}
BALANCED = {"class_weight": "balanced"}
#: how the machine sees rows, and what is not LinearSVC's default
MACHINES: dict[str, tuple[str, dict[str, Any]]] = {
    "quintiles, C=0.05": ("quintiles", HINGE | {"C": 0.05}),
    "quintiles, C=1": ("quintiles", HINGE | {"C": 1.0}),
    "quintiles, squared hinge, C=0.05": ("quintiles", {"C": 0.05, "dual": False}),
    "standardised, C=0.05": ("standardised", HINGE | {"C": 0.05}),
    "standardised, C=1": ("standardised", HINGE | {"C": 1.0}),
    "quintiles, balanced, C=0.05": ("quintiles", HINGE | BALANCED | {"C": 0.05}),
    "quintiles, balanced, C=0.001": ("quintiles", HINGE | BALANCED | {"C": 0.001}),
}
#: what is tried on each dataset
CODINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "adult": {"NB": tuple(NUMBERS), "SVM": tuple(MACHINES)[:5]},
    "tic": {
        "NB": ("normal", "width 10", "mass 10"),
        "SVM": (
            "quintiles, C=0.05",
            "quintiles, squared hinge, C=0.05",
            "quintiles, balanced, C=0.05",
            "quintiles, balanced, C=0.001",
        ),
    },
}
#: the codings of the figures and of binning. On Adult those nearest to the published table; on TIC
#: a machine that weighs the classes equally, since all margins of the plain one are nearly −1
DRAWN = {
    ("adult", "NB"): "width 30",
    ("adult", "SVM"): "quintiles, C=0.05",
    ("tic", "NB"): "width 10",
    ("tic", "SVM"): "quintiles, balanced, C=0.001",
}


class Rows(NamedTuple):
    """The source's training rows and test rows."""

    X: pd.DataFrame
    y: Labels
    X_new: pd.DataFrame
    y_new: Labels


class Scores(NamedTuple):
    """Scores of the training and the test rows, and the same taken for probabilities."""

    train: Array
    new: Array
    base_train: Array
    base_new: Array
    y: Labels
    y_new: Labels


@lru_cache(maxsize=2)
def rows(dataset: str) -> Rows:
    """Adult or TIC as their sources split them."""
    X, y = read(task(dataset), None)
    train = read_split(dataset) == "train"
    X_train, X_new = (X[part].reset_index(drop=True) for part in (train, ~train))
    return Rows(X_train, y[train], X_new, y[~train])


def drawn(given: Rows, seed: int) -> Rows:
    """With seed 0 the rows themselves, else as many training rows drawn with replacement."""
    if seed == 0:
        return given
    n = len(given.y)
    index = np.random.default_rng(seed).integers(0, n, n)
    return given._replace(X=given.X.iloc[index].reset_index(drop=True), y=given.y[index])


def naive_bayes(given: Rows, coding: str) -> tuple[Array, Array]:
    """Log-odds of both parts: probabilities near 1 would round to it."""
    X, X_new = binned(given.X, given.y, [given.X_new], coding)
    model = MixedNaiveBayes().fit(X, given.y)
    parts = (np.log(np.maximum(model.predict_proba(part), 1e-300)) for part in (X, X_new))
    train, new = (part[:, 1] - part[:, 0] for part in parts)
    return train, new


def machine(given: Rows, coding: str) -> tuple[Array, Array]:
    """Margins of both parts."""
    how, settings = MACHINES[coding]
    if how == "quintiles":
        X, X_new = indicators(binned(given.X, given.y, [given.X_new], "mass 5"))
    else:
        coder = encode(given.X)
        X, X_new = coder.transform(given.X), coder.transform(given.X_new)
    model = LinearSVC(max_iter=20_000, random_state=0, **settings)
    model.fit(X, given.y)
    return model.decision_function(X), model.decision_function(X_new)


def probabilities(odds: Array) -> Array:
    """σ of log-odds, finite for any."""
    return np.exp(-np.logaddexp(0.0, -odds))


def taken(given: Rows, model: str, coding: str) -> Scores:
    """NB's probabilities are its scores; the machine's margins are rescaled to be taken for some.

    (f + a)/2a, a = max|f| over the training rows.
    """
    if model == "NB":
        train, new = (probabilities(part) for part in naive_bayes(given, coding))
        return Scores(train, new, train, new, given.y, given.y_new)
    train, new = machine(given, coding)
    scale = cal.Rescale(formula="symmetric").fit(train, given.y)
    base, base_new = scale.calibrate(train), scale.calibrate(new)
    return Scores(train, new, base, base_new, given.y, given.y_new)


@lru_cache(maxsize=4)
def scores(dataset: str, model: str, coding: str, seed: int = 0) -> Scores:
    """Scores of one model, kept for the cells that come next."""
    return taken(drawn(rows(dataset), seed), model, coding)


#: what becomes of the scores; the sigmoid is fitted to the scores themselves, as in the paper
METHODS: dict[str, Callable[[], cal.Calibrator]] = {
    "Sigmoid": lambda: cal.Platt(scale="raw"),
    "PAV": cal.Isotonic,
    "Sigmoid of log-odds": lambda: cal.Platt(scale="logit"),  # not the paper's, and only for NB
}
USED = {"NB": tuple(METHODS), "SVM": ("Sigmoid", "PAV")}


def fitted(method: str, found: Scores) -> cal.Calibrator:
    """A calibrator fitted to the training rows, which the model has seen too: as in the paper."""
    return METHODS[method]().fit(found.train, found.y)
