"""Scores of twelve kinds of model on the papers' datasets, made once and kept.

Models learn on up to 2,000 rows of a task; their scores on the other rows are what calibrators are
fitted to and judged on (see `experiments.bls`). Files are kept in a folder, so that a study that is
broken off goes on where it was.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from experiments import study
from experiments.data import Task, read
from experiments.study import MOST, TEST, TRAIN, Scored, encode

#: five models of the other studies, and seven more
MODELS: dict[str, Callable[[int], Any]] = {
    **study.MODELS,
    "RBF SVM": lambda seed: SVC(),
    "15 neighbours": lambda seed: KNeighborsClassifier(15),
    "decision tree": lambda seed: DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(100, min_samples_leaf=3, random_state=seed),
    "AdaBoost": lambda seed: AdaBoostClassifier(random_state=seed),
    "neural network": lambda seed: MLPClassifier((50,), max_iter=300, random_state=seed),
    "overfitted boosting": lambda seed: HistGradientBoostingClassifier(
        learning_rate=0.3, max_iter=300, min_samples_leaf=5, random_state=seed
    ),
}
FOLDER = Path(tempfile.gettempdir()) / "calibrant-study"


def is_judged(task: Task) -> bool:
    """Whether a task is of the half that is looked at only to judge; all tasks of one dataset are
    in one half."""
    return name_judges(task.entry["name"])


def name_judges(dataset: str) -> bool:
    """Whether a dataset only judges, as a checksum of its name decides."""
    return hashlib.sha256(dataset.encode()).digest()[0] % 2 == 0


def scored(task: Task, seed: int, folder: Path = FOLDER) -> Iterator[tuple[str, Scored]]:
    """Per model: its scores on a pool of rows to calibrate on, and on test rows."""
    path = folder / f"{task.name}-{seed}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = _train(task, seed)
        part = path.with_suffix(".part.npz")
        np.savez(part, **found)
        part.rename(path)
    with np.load(path) as kept:
        for k, name in enumerate(MODELS):
            yield name, Scored(kept[f"pool{k}"], kept["y"], kept[f"test{k}"], kept["y_new"])


def _train(task: Task, seed: int) -> dict[str, NDArray[Any]]:
    X, y = read(task, MOST)
    train_rows, test_rows = min(TRAIN, int(0.3 * len(y))), min(TEST, int(0.35 * len(y)))
    index = np.arange(len(y))
    train, rest = train_test_split(index, train_size=train_rows, stratify=y, random_state=seed)
    pool, test = train_test_split(rest, test_size=test_rows, stratify=y[rest], random_state=seed)
    coder = encode(X.iloc[train])
    A, B, C = (coder.transform(X.iloc[rows]) for rows in (train, pool, test))
    found: dict[str, NDArray[Any]] = {"y": y[pool], "y_new": y[test]}
    for k, make in enumerate(MODELS.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            model = make(seed).fit(A, y[train])
            for name, part in (("pool", B), ("test", C)):
                if hasattr(model, "predict_proba"):
                    found[f"{name}{k}"] = model.predict_proba(part)[:, 1]
                else:
                    found[f"{name}{k}"] = model.decision_function(part)
    return found
