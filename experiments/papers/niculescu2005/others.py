"""The learning methods that boosting is compared with, each with a small grid of settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from experiments import table
from experiments.naive_bayes import MixedNaiveBayes
from experiments.papers.niculescu2005.problems import Part, Rows
from experiments.papers.niculescu2005.styles import boosted

__all__ = ["OTHERS", "QUICK", "Scores", "grids_table", "in_bins", "scores_of"]

Array = NDArray[np.float64]


class Scores(NamedTuple):
    """What a model says of the rows to select on and to test on; and whether these are margins."""

    validation: Array
    test: Array
    margins: bool = False


Model = Callable[[Rows, int], Scores]


def _classifier(make: Callable[[int], Any]) -> Model:
    """A model of scikit-learn, by its probabilities."""

    def scores(rows: Rows, seed: int) -> Scores:
        model = make(seed).fit(rows.train.X, rows.train.y)
        return Scores(*(model.predict_proba(part.X)[:, 1] for part in rows[1:]))

    return scores


def _margins(make: Callable[[], Any]) -> Model:
    def scores(rows: Rows, seed: int) -> Scores:
        model = make().fit(rows.train.X, rows.train.y)
        return Scores(*(model.decision_function(part.X) for part in rows[1:]), margins=True)

    return scores


def _rbf(gamma: float, C: float) -> Model:
    return _margins(lambda: SVC(gamma=gamma, C=C, cache_size=500))


def _tree(style: str) -> Model:
    """One tree: a booster of one step, whose raw score is the probability of the leaf."""

    def scores(rows: Rows, seed: int) -> Scores:
        model = boosted(rows.train, "trees", style, 1, seed)
        return Scores(*(model.raw_score(part.X) for part in rows[1:]))

    return scores


def _bayes(prepare: Callable[[Part, Part], pd.DataFrame]) -> Model:
    def scores(rows: Rows, seed: int) -> Scores:
        model = MixedNaiveBayes().fit(prepare(rows.train, rows.train), rows.train.y)
        return Scores(*(model.predict_proba(prepare(rows.train, p))[:, 1] for p in rows[1:]))

    return scores


def in_bins(train: Part, part: Part, bins: int = 10) -> pd.DataFrame:
    """Numbers made words: which of ten bins of equal mass in the training rows they fall in."""
    found = part.frame.copy()
    for name in found.columns:
        if pd.api.types.is_numeric_dtype(found[name]):
            inner = np.arange(1, bins) / bins
            cuts = np.unique(np.nanquantile(train.frame[name], inner))
            places = np.searchsorted(cuts, found[name].to_numpy(float), side="right")
            found[name] = pd.Series(places, index=found.index).astype(str)
    return found


def _network(units: int, epochs: int) -> Model:
    return _classifier(
        lambda seed: MLPClassifier((units,), max_iter=epochs, alpha=1e-3, random_state=seed)
    )


def _bagged(leaf: int) -> Model:
    def make(seed: int) -> BaggingClassifier:
        tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=leaf)
        return BaggingClassifier(tree, 100, random_state=seed)

    return _classifier(make)


def _forest(features: int) -> Model:
    return _classifier(
        lambda seed: RandomForestClassifier(256, max_features=features, random_state=seed)
    )


def _near(k: int, weights: str) -> Model:
    return _classifier(lambda seed: KNeighborsClassifier(k, weights=weights))


#: by the paper's names; the first settings are those of a quick run
OTHERS: dict[str, dict[str, Model]] = {
    "SVM": {
        f"γ {gamma}, C {C}": _rbf(gamma, C)
        for gamma, C in ((0.1, 10), (0.02, 10), (0.1, 1), (0.02, 1), (0.3, 10), (0.3, 1),
                         (0.02, 100), (0.005, 10), (0.005, 100))
    },
    "RF": {f"{k} features": _forest(k) for k in (4, 8, 2, 12, 16)},
    "BAG-DT": {f"≥ {leaf} rows in a leaf": _bagged(leaf) for leaf in (1, 5, 2, 10)},
    "ANN": {
        f"{units} units, {epochs} epochs": _network(units, epochs)
        for units, epochs in ((32, 50), (128, 50), (128, 200), (8, 50), (32, 200), (32, 20))
    },
    "KNN": {
        f"k {k}, {weights}": _near(k, weights)
        for weights in ("uniform", "distance")
        for k in (5, 25, 125, 1, 11, 55, 275)
    },
    "DT": {style: _tree(style) for style in ("BAYES", "SMML", "MML", "MML Laplace",
                                             "C4.5 Laplace", "C4.5 Bayes")},
    "LOGREG": {
        f"C {C}": _classifier(lambda seed, C=C: LogisticRegression(C=C, max_iter=2000))
        for C in (1.0, 0.01, 0.1, 10.0, 0.001, 100.0)
    },
    "NB": {
        "normal densities": _bayes(lambda train, part: part.frame),
        "ten bins": _bayes(in_bins),
    },
}  # fmt: skip
#: how many settings a quick run tries
QUICK = {"SVM": 4, "RF": 2, "BAG-DT": 2, "ANN": 3, "KNN": 3, "DT": 4, "LOGREG": 3, "NB": 2}


def scores_of(name: str, setting: str, rows: Rows, seed: int) -> Scores:
    return OTHERS[name][setting](rows, seed)


def grids_table() -> str:
    """Which settings are tried."""
    rows = [
        (name, "; ".join(list(grid)[: QUICK[name]]), "; ".join(list(grid)[QUICK[name] :]) or "–")
        for name, grid in OTHERS.items()
    ]
    return table(("method", "settings of a quick run", "further ones of the full run"), rows)
