"""The nine base models of the arena, and their probabilities on rows they have not seen.

What a task's models say is kept in one file, so that calibrators can be compared again and again.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.mixture_cases import LARGEST
from experiments.study import encode
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from benchmarks.arena.tasks import Labels, Task, read

Array = NDArray[np.float64]

#: rows to train on, to calibrate on and to test on, at most; and their shares. Rows × classes to
#: calibrate on are at most `LARGEST`, too
TRAIN, POOL, TEST = 4000, 8000, 6000
SHARES = (0.3, 0.35, 0.35)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=0)


#: all with their packages' defaults, but for what makes them converge or keeps them to one thread
MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "logistic regression": lambda: LogisticRegression(max_iter=2000),
    "linear SVM": lambda: LinearSVC(dual=False, max_iter=5000, random_state=0),
    "random forest": lambda: RandomForestClassifier(100, random_state=0),
    "AdaBoost": lambda: AdaBoostClassifier(random_state=0),
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "MLP": lambda: MLPClassifier(max_iter=300, random_state=0),
    "k-NN": lambda: KNeighborsClassifier(15),
}


class Scored(NamedTuple):
    """A model's probabilities of all classes on rows to calibrate on and on rows to test on."""

    p: Array
    y: Labels
    new: Array
    y_new: Labels

    def some(self, n: int) -> Scored:
        """The same with n of the rows to calibrate on, as many of each class as there should be."""
        if n >= len(self.y):
            return self
        rows = np.arange(len(self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, _ = train_test_split(rows, train_size=n, stratify=self.y, random_state=0)
        return self._replace(p=self.p[rows], y=self.y[rows])


def probabilities(model: Any, X: Any) -> Array:
    """A row sums to 1. Margins go through the logistic function, or through softmax."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
        return found / found.sum(axis=1, keepdims=True)
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    if margin.ndim == 1:
        return np.column_stack([expit(-margin), expit(margin)])
    return np.asarray(softmax(margin, axis=1), dtype=np.float64)


def parts(y: Labels) -> tuple[Labels, Labels, Labels]:
    """Rows to train on, to calibrate on and to test on; every class in each."""
    train, rest = train_test_split(
        np.arange(len(y)),
        train_size=min(TRAIN, int(SHARES[0] * len(y))),
        stratify=y,
        random_state=0,
    )
    most = min(TEST, int(SHARES[2] * len(y)))
    pool, test = train_test_split(rest, test_size=most, stratify=y[rest], random_state=0)
    return train, pool[: min(POOL, LARGEST // len(np.unique(y)))], test


def train(task: Task, models: tuple[str, ...]) -> dict[str, Scored]:
    """Each model's probabilities on a task."""
    X, y = read(task)
    learn, pool, test = parts(y)
    coder = encode(X.iloc[learn])
    A, B, C = (coder.transform(X.iloc[rows]) for rows in (learn, pool, test))
    found = {}
    for name in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            model = MODELS[name]().fit(A, y[learn])
            p, q = probabilities(model, B), probabilities(model, C)
        found[name] = Scored(p, y[pool], q, y[test])
    return found


# --- kept in files --------------------------------------------------------------------------------


def file_of(folder: Path, task: str) -> Path:
    return folder / "scores" / f"{task}.npz"


def keep(folder: Path, task: str, found: dict[str, Scored]) -> None:
    """Write what a task's models say: the whole file or none."""
    path = file_of(folder, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
    arrays: dict[str, Any] = {"models": np.array(list(found))}
    for i, scored in enumerate(found.values()):
        arrays |= {f"{name}{i}": values for name, values in scored._asdict().items()}
    try:
        np.savez_compressed(part, **arrays)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def kept_models(folder: Path, task: str) -> list[str]:
    """The models whose probabilities are kept."""
    path = file_of(folder, task)
    if not path.is_file():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        return [str(name) for name in arrays["models"]]


@lru_cache(maxsize=4)
def load(path: Path) -> dict[str, Scored]:
    """What `keep` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        return {
            str(name): Scored(*(arrays[f"{field}{i}"] for field in Scored._fields))
            for i, name in enumerate(arrays["models"])
        }
