"""What the study of mixtures for several classes is about: models' distributions, and fits to them.

Six kinds of model on eight datasets, two on 20 Newsgroups, and the outputs of two networks on
CIFAR-10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

import calibrant as cal
from experiments.data import read_arrays, read_classes
from experiments.study import encode

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: rows used of a dataset; to train on, to test on and to calibrate on, at most
MOST, TRAIN, TEST, POOL = 12_000, 2000, 3000, 5000
SIZES = (300, 1000)
#: numbers in the largest matrix to calibrate on
LARGEST = 60_000

TABLES = ("balance", "car", "covtype", "letter", "pageblocks", "pendigits", "satimage", "splice")
NEWS = "newsgroups"
NETWORKS = ("cifar-resnet", "cifar-vgg")
DATA = tuple(sorted((*TABLES, NEWS, *NETWORKS)))
#: constants may be chosen by the second, fourth, ... of the datasets in the order of their names
TUNED = DATA[1::2]
JUDGED = DATA[0::2]

MODELS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda seed: GaussianNB(),
    "logistic regression": lambda seed: LogisticRegression(max_iter=500),
    "random forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, random_state=seed
    ),
    "neighbours": lambda seed: KNeighborsClassifier(15),
    "network": lambda seed: MLPClassifier((50,), max_iter=200, random_state=seed),
}
NEWS_MODELS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda seed: MultinomialNB(alpha=0.1),
    "logistic regression": lambda seed: SGDClassifier(loss="log_loss", random_state=seed),
}


class Rows(NamedTuple):
    """Distributions (or logits) and labels to calibrate on, and others to judge on."""

    scores: Array
    y: Labels
    new: Array
    y_new: Labels

    def some(self, n: int, seed: int) -> Rows:
        """The same with n of the rows to calibrate on."""
        if n >= len(self.y):
            return self
        rows = np.random.default_rng(seed).permutation(len(self.y))[:n]
        return self._replace(scores=self.scores[rows], y=self.y[rows])

    @property
    def classes(self) -> list[int]:
        return list(range(self.scores.shape[1]))


# --- the data -------------------------------------------------------------------------------------


def read_table(name: str) -> tuple[pd.DataFrame, Labels]:
    """Features and class codes of at most `MOST` rows of a dataset."""
    return read_classes(name, MOST)


def split(y: Labels, seed: int) -> tuple[Labels, Labels, Labels]:
    """Rows to train on, to calibrate on and to test on: a quarter, a half and a quarter, or less.

    Every class is in each.
    """
    quarter = len(y) // 4
    index = np.arange(len(y))
    train, rest = train_test_split(
        index, train_size=min(TRAIN, quarter), stratify=y, random_state=seed
    )
    pool, test = train_test_split(
        rest, test_size=min(TEST, quarter), stratify=y[rest], random_state=seed
    )
    return train, pool[:POOL], test


def of_models(name: str, seed: int) -> Iterator[tuple[str, Rows]]:
    """The distributions of each kind of model trained on a dataset."""
    if name == NEWS:
        data = read_arrays("20newsgroups-19997")
        X: Any = csr_matrix((data["data"].astype(np.float64), data["indices"], data["indptr"]))
        y, models = data["label"].astype(np.intp), NEWS_MODELS
        train, pool, test = split(y, seed)
        parts = tuple(np.log1p(X[rows]) for rows in (train, pool, test))
    else:
        X, y = read_table(name)
        models = MODELS
        train, pool, test = split(y, seed)
        coder = encode(X.iloc[train])
        parts = tuple(coder.transform(X.iloc[rows]) for rows in (train, pool, test))
    for kind, make in models.items():
        model = make(seed).fit(parts[0], y[train])
        p, q = (model.predict_proba(part) for part in parts[1:])
        yield kind, Rows(p, y[pool], q, y[test])


def of_network(name: str, seed: int) -> Iterator[tuple[str, Rows]]:
    """Logits of a ResNet-50 in the split of its source; probabilities of a VGG-16 in halves."""
    if name == "cifar-resnet":
        data = read_arrays("nn-cifar10-resnet50-logits")
        z, y, new, y_new = (
            data[f"{part}_{what}"] for part in ("val", "test") for what in ("logits", "labels")
        )
        yield (
            "ResNet-50",
            Rows(z.astype(float), y.astype(int), new.astype(float), y_new.astype(int)),
        )
        return
    data = read_arrays("nn-cifar10-vgg16-probs")
    p, y = data["test_probs"].astype(np.float64), data["test_labels"].astype(np.intp)
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = order[: len(y) // 2], order[len(y) // 2 :]
    yield "VGG-16", Rows(p[fit], y[fit], p[test], y[test])


def cases(seeds: range, names: tuple[str, ...] = DATA) -> Iterator[tuple[dict[str, Any], Rows]]:
    """All cases: data, model, seed and number of rows to calibrate on."""
    for seed in seeds:
        for name in names:
            made = of_network if name in NETWORKS else of_models
            for model, rows in made(name, seed):
                pool = len(rows.y)
                sizes = {str(n): n for n in SIZES if n <= pool}
                if pool >= 1.5 * max(sizes.values()) and rows.scores.size <= LARGEST:
                    sizes["all"] = pool
                for word, n in sizes.items():
                    yield (
                        {"data": name, "model": model, "seed": seed, "size": word},
                        rows.some(n, seed),
                    )


# --- what is fitted -------------------------------------------------------------------------------


def structured(strength: float, structure: str = "matrix") -> cal.StructuredScaling:
    """Structured scaling with all its ridges at a strength."""
    return cal.StructuredScaling(
        structure=structure,
        lambda_intercept=strength,
        lambda_diagonal=strength,
        lambda_off_diagonal=strength,
        gate=False,
    )


#: what a mixture may be made of
MEMBERS: dict[str, Any] = {
    "temperature": cal.Temperature(),
    "structured ×0.01": structured(0.01),
    "structured ×0.1": structured(0.1),
    "structured ×1": structured(1.0),
    "structured ×10": structured(10.0),
    "structured vector": structured(1.0, "vector"),
    "vector, no gate": cal.VectorScaling(gate=False),
    "one-vs-rest isotonic": cal.CodedCalibrator(cal.Isotonic(smoothing="laplace")),
    "one-vs-rest BLS": cal.CodedCalibrator(cal.BLS()),
}
#: what is fitted to the scores as they came, and only judged on the test rows
OTHERS: dict[str, Any] = {
    "vector": cal.VectorScaling(),
    "matrix": cal.MatrixScaling(),
    "Dirichlet": cal.Dirichlet(),
    "structured, with gate": cal.StructuredScaling(),
    "one-vs-rest Platt": cal.CodedCalibrator(cal.Platt()),
}
#: what the mixture was made of when the study began
FIRST = ("temperature", "structured ×0.1", "structured ×1", "one-vs-rest BLS")
#: other bounds of the floor, and three folds, are tried where it is not too dear
FLOORS = (1e-12, 1e-4)
CHEAP = tuple(name for name in TUNED if name != "letter")


def probabilities(scores: Array, factor: float = 1.0) -> Array:
    """Distributions, or the softmax of logits, with their logarithms times a factor."""
    inside = (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3)
    if inside and factor == 1.0:
        return scores
    with np.errstate(divide="ignore"):
        logs = np.log(scores) if inside else scores
    return softmax(factor * logs, axis=1)


def raised(p: Array, q: Array, least: float = 1e-7) -> tuple[Array, Array]:
    """Entries raised to half the smallest of p, kept in [least, .01]; rows divided by sums."""
    floor = float(np.clip(0.5 * p[p > 0].min(), least, min(1e-2, 0.5 / p.shape[1])))
    high = (np.maximum(part, floor) for part in (p, q))
    first, second = (part / part.sum(axis=1, keepdims=True) for part in high)
    return first, second


def fold_of(rows: Rows, count: int) -> Labels:
    """The fold of each row: sorted by scores, dealt in turn."""
    fold = np.empty(len(rows.y), dtype=np.intp)
    fold[np.lexsort((rows.y, *rows.scores.T))] = np.arange(len(rows.y)) % count
    return fold


def fitted(method: Any, p: Array, y: Labels) -> Any:
    """A clone of the method, fitted; all columns are classes."""
    return clone(method).set_params(classes=list(range(p.shape[1]))).fit(p, y)


def held_out(method: Any, p: Array, y: Labels, fold: Labels) -> Array:
    """What a method says of each fold, fitted to the others."""
    result = np.empty_like(p)
    for f in np.unique(fold):
        held = fold == f
        result[held] = fitted(method, p[~held], y[~held]).predict_proba(p[held])
    return result


def fits(case: dict[str, Any], rows: Rows) -> dict[str, Array]:
    """All that is fitted in a case: predictions out of fold ("held ..."), and of the test rows."""
    y, fold = rows.y, fold_of(rows, 5)
    warm = fitted(cal.Temperature(), rows.scores, y).temperature_
    before = probabilities(rows.scores), probabilities(rows.new)
    soft = [probabilities(part, min(1.0, 1.0 / warm)) for part in (rows.scores, rows.new)]
    p, q = raised(*soft)
    found = {"y": y, "y_new": rows.y_new, "fold": fold, "temperature": np.array(warm)}
    found |= {"new identity": before[1], "held identity": before[0]}

    def add(names: tuple[str, ...], p: Array, q: Array, word: str = "") -> None:
        for name in names:
            found[f"held {name}{word}"] = held_out(MEMBERS[name], p, y, fold)
            found[f"new {name}{word}"] = fitted(MEMBERS[name], p, y).predict_proba(q)

    add(tuple(MEMBERS), p, q)
    if warm > 1:
        add(FIRST, *raised(*before), ", floor only")
    if case["data"] in CHEAP:
        found["fold of 3"] = fold_of(rows, 3)
        for name in FIRST:
            found[f"held {name}, 3 folds"] = held_out(MEMBERS[name], p, y, found["fold of 3"])
        for least in FLOORS if case["size"] != "all" else ():
            a, b = raised(*soft, least)
            if not np.array_equal(a, p):
                add(FIRST, a, b, f", floor {least:g}")
    for name, method in OTHERS.items():
        found[f"new {name}"] = fitted(method, rows.scores, y).predict_proba(rows.new)
    return found
