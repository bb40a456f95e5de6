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
import pandas as pd
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

from benchmarks.arena.methods import FEATURES, MARGINS, Rows
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
    """A model's probabilities of all classes on rows to calibrate on and on rows to test on.

    And what is beside them: the model's margins, if it has any, and the features of the rows.
    """

    p: Array
    y: Labels
    new: Array
    y_new: Labels
    margins: Array | None = None
    new_margins: Array | None = None
    features: pd.DataFrame | None = None
    new_features: pd.DataFrame | None = None

    def some(self, n: int) -> Scored:
        """The same with n of the rows to calibrate on, as many of each class as there should be."""
        if n >= len(self.y):
            return self
        rows = np.arange(len(self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, _ = train_test_split(rows, train_size=n, stratify=self.y, random_state=0)
        p, margins, features = Rows(self.p, self.margins, self.features).take(rows)
        return self._replace(p=p, y=self.y[rows], margins=margins, features=features)

    def known(self, reads: str) -> Rows:
        """A copy of what a method may read of the rows to calibrate on."""
        return _copied(self.p, self.margins, self.features, reads)

    def unseen(self, reads: str) -> Rows:
        """A copy of what a method may read of the rows to test on."""
        return _copied(self.new, self.new_margins, self.new_features, reads)


def _copied(p: Array, margins: Array | None, features: pd.DataFrame | None, reads: str) -> Rows:
    return Rows(
        p.copy(),
        margins.copy() if margins is not None and reads == MARGINS else None,
        features.copy() if features is not None and reads == FEATURES else None,
    )


def probabilities(model: Any, X: Any) -> Array:
    """A row sums to 1. Margins go through the logistic function, or through softmax."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
        return found / found.sum(axis=1, keepdims=True)
    margin = np.asarray(model.decision_function(X), dtype=np.float64)
    if margin.ndim == 1:
        return np.column_stack([expit(-margin), expit(margin)])
    return np.asarray(softmax(margin, axis=1), dtype=np.float64)


def margins(model: Any, X: Any) -> Array | None:
    """What scikit-learn calibrates a model by, if it has it: one column of two classes."""
    if not hasattr(model, "decision_function"):
        return None
    return np.asarray(model.decision_function(X), dtype=np.float64)


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
    beside = {"features": columns(X.iloc[pool]), "new_features": columns(X.iloc[test])}
    found = {}
    for name in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models that have not quite converged are scores too
            model = MODELS[name]().fit(A, y[learn])
            p, q = probabilities(model, B), probabilities(model, C)
            said = margins(model, B), margins(model, C)
        found[name] = Scored(p, y[pool], q, y[test], *said, **beside)
    return found


def columns(X: pd.DataFrame) -> pd.DataFrame:
    """Features as numbers and words, the numbers first; their names are places."""
    is_number = [pd.api.types.is_numeric_dtype(X[name]) for name in X]
    numbers = X.loc[:, is_number].astype(np.float64)
    words = X.loc[:, [not yes for yes in is_number]].astype(str)
    found = pd.concat([numbers, words], axis=1).reset_index(drop=True)
    found.columns = [f"x{i}" for i in range(found.shape[1])]
    return found


# --- kept in files --------------------------------------------------------------------------------


def file_of(folder: Path, task: str) -> Path:
    return folder / "scores" / f"{task}.npz"


#: what the files hold: those of another layout are made again
LAYOUT = 2
TABLES = ("features", "new_features")


def keep(folder: Path, task: str, found: dict[str, Scored]) -> None:
    """Write what a task's models say: the whole file or none."""
    path = file_of(folder, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
    arrays: dict[str, Any] = {"layout": np.array(LAYOUT), "models": np.array(list(found))}
    for i, scored in enumerate(found.values()):
        fields = scored._asdict()
        frames = {name: fields.pop(name) for name in TABLES}  # the same for all models
        arrays |= {f"{name}{i}": values for name, values in fields.items() if values is not None}
    for name, frame in frames.items():
        if frame is not None:
            numbers = frame.select_dtypes("number")
            arrays[f"{name} numbers"] = numbers.to_numpy(np.float64)
            arrays[f"{name} words"] = frame.drop(columns=numbers.columns).to_numpy(str)
    try:
        np.savez_compressed(part, **arrays)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def kept_models(folder: Path, task: str) -> list[str]:
    """The models whose probabilities are kept, in files of today's layout."""
    path = file_of(folder, task)
    if not path.is_file():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        if "layout" not in arrays or arrays["layout"] != LAYOUT:
            return []
        return [str(name) for name in arrays["models"]]


@lru_cache(maxsize=4)
def load(path: Path) -> dict[str, Scored]:
    """What `keep` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        frames = {name: _frame(arrays, name) for name in TABLES}
        return {
            str(name): Scored(
                **frames,
                **{
                    field: arrays[f"{field}{i}"]
                    for field in Scored._fields
                    if f"{field}{i}" in arrays
                },
            )
            for i, name in enumerate(arrays["models"])
        }


def _frame(arrays: Any, name: str) -> pd.DataFrame | None:
    if f"{name} numbers" not in arrays:
        return None
    numbers, words = arrays[f"{name} numbers"], arrays[f"{name} words"]
    found = pd.concat([pd.DataFrame(numbers), pd.DataFrame(words.astype(object))], axis=1)
    found.columns = [f"x{i}" for i in range(found.shape[1])]
    return found
