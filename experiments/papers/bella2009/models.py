"""The four models that are calibrated: stand-ins for WEKA's, with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import calibrant as cal
from experiments.naive_bayes import NARROWEST, MixedNaiveBayes
from experiments.papers.bella2009.tree import C45

__all__ = [
    "MODELS",
    "MODELS_OF_MANY",
    "Encoded",
    "ManyBayes",
    "Model",
    "NearestTen",
    "Rows",
    "coded",
]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: WEKA's ridge of 1e-8, the factor of Σβ², as scikit-learn counts: 1/(2·ridge)
C = 0.5e8


class Rows(NamedTuple):
    """Rows twice: as they are, and with words as numbers, since many columns are read slowly."""

    frame: pd.DataFrame
    coded: Array
    #: which columns are words
    nominal: tuple[int, ...]

    def take(self, rows: Labels) -> Rows:
        return Rows(self.frame.iloc[rows], self.coded[rows], self.nominal)


def coded(frame: pd.DataFrame) -> Rows:
    """Numbers as they are, words by their number among those of the column; missing is NaN."""
    words = [not pd.api.types.is_numeric_dtype(frame[name]) for name in frame]
    columns = [
        pd.Categorical(frame[name]).codes if word else frame[name].to_numpy(dtype=np.float64)
        for name, word in zip(frame, words, strict=True)
    ]
    values = np.column_stack(columns).astype(np.float64)
    values[:, words] = np.where(values[:, words] < 0, np.nan, values[:, words])
    return Rows(frame, values, tuple(np.flatnonzero(words).tolist()))


class Model(Protocol):
    """What is learned from rows of numbers and words."""

    def fit(self, X: Rows, y: Labels) -> Any: ...
    def predict_proba(self, X: Rows) -> Array: ...


class Coder:
    """Rows as numbers: gaps filled by mean or most frequent word, words one-hot, all learned."""

    def __init__(self, X: Rows) -> None:
        self.words = {j: np.unique(X.coded[_known(X.coded[:, j]), j]) for j in X.nominal}
        self.fill = np.array([_usual(X.coded[:, j], j in self.words) for j in _columns(X)])
        self.numbers = [j for j in _columns(X) if j not in self.words]
        values = self.filled(X)[:, self.numbers]
        self.mean, sd = values.mean(axis=0), values.std(axis=0)
        self.sd = np.where(sd > 0, sd, 1.0)

    def filled(self, X: Rows) -> Array:
        """Without gaps, words as their numbers."""
        found: Array = np.where(np.isnan(X.coded), self.fill, X.coded)
        return found

    def __call__(self, X: Rows) -> Array:
        values = self.filled(X)
        hot = [values[:, [j]] == known for j, known in self.words.items()]
        return np.concatenate([(values[:, self.numbers] - self.mean) / self.sd, *hot], axis=1)


def _columns(X: Rows) -> range:
    return range(X.coded.shape[1])


def _known(column: Array) -> NDArray[np.bool_]:
    return ~np.isnan(column)


def _usual(column: Array, word: bool) -> float:
    """What stands for a gap: the mean, or the most frequent word (of several, the first)."""
    known = column[_known(column)]
    if not len(known):
        return 0.0
    return float(np.argmax(np.bincount(known.astype(np.intp)))) if word else float(known.mean())


class Framed:
    """A model of frames."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Rows, y: Labels) -> Framed:
        self.model.fit(X.frame, y)
        return self

    def predict_proba(self, X: Rows) -> Array:
        found: Array = self.model.predict_proba(X.frame)
        return found


class Encoded:
    """A model of numbers, on rows with words."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Rows, y: Labels) -> Encoded:
        self.coder = Coder(X)
        self.model.fit(self.coder(X), y)
        return self

    def predict_proba(self, X: Rows) -> Array:
        found: Array = self.model.predict_proba(self.coder(X))
        return found


class Tree:
    """C4.5, gaps filled."""

    def fit(self, X: Rows, y: Labels) -> Tree:
        self.coder = Coder(X)
        self.tree = C45(X.nominal).fit(self.coder.filled(X), y)
        return self

    def predict_proba(self, X: Rows) -> Array:
        return self.tree.predict_proba(self.coder.filled(X))


class NearestTen:
    """Ten nearest neighbours as WEKA's IBk finds them, as a model."""

    def fit(self, X: Rows, y: Labels) -> NearestTen:
        self.classes = int(y.max()) + 1
        rule = cal.SimilarityBinning(
            gate=False, use_scores=False, smoothing="ibk", nominal=X.nominal
        )
        self.rule = rule.fit(self._nothing(len(y)), y, features=X.coded)
        return self

    def _nothing(self, rows: int) -> Array:
        """Scores that say nothing, and are not used."""
        return np.full((rows, self.classes), 1.0 / self.classes)

    def predict_proba(self, X: Rows) -> Array:
        found: Array = self.rule.predict_proba(self._nothing(len(X.coded)), features=X.coded)
        return found


class ManyBayes:
    """Naive Bayes of several classes: normal densities for numbers, Laplace's counts for words.

    For rows without gaps.
    """

    def fit(self, X: Rows, y: Labels) -> ManyBayes:
        self.words = list(X.nominal)
        self.numbers = [j for j in _columns(X) if j not in self.words]
        self.prior = np.log(np.bincount(y) / len(y))
        self.parts: list[tuple[Any, Callable[[Rows], Any]]] = []
        if self.numbers:
            spread = np.ptp(X.coded[:, self.numbers], axis=0)
            self.scale = np.where(spread > 0, spread, 1.0)
            normal = GaussianNB(var_smoothing=0.0).fit(self._values(X), y)
            normal.var_ = np.maximum(normal.var_, NARROWEST**2)
            self.parts.append((normal, self._values))
        if self.words:
            self.most = X.coded[:, self.words].max(axis=0)
            self.parts.append((CategoricalNB().fit(self._codes(X), y), self._codes))
        return self

    def _values(self, X: Rows) -> Array:
        scaled: Array = X.coded[:, self.numbers] / self.scale
        return scaled

    def _codes(self, X: Rows) -> Labels:
        """Words by number; those after the last known one count as it."""
        return np.minimum(X.coded[:, self.words], self.most).astype(np.intp)

    def predict_proba(self, X: Rows) -> Array:
        joint = self.prior + sum(
            model.predict_joint_log_proba(see(X)) - self.prior for model, see in self.parts
        )
        p = np.exp(joint - joint.max(axis=1, keepdims=True))
        found: Array = p / p.sum(axis=1, keepdims=True)
        return found


MODELS: dict[str, Callable[[], Model]] = {
    "naive Bayes": lambda: Framed(MixedNaiveBayes()),
    "tree": Tree,
    "10-NN": NearestTen,
    "logistic regression": lambda: Encoded(LogisticRegression(C=C, max_iter=1000)),
}
MODELS_OF_MANY = MODELS | {"naive Bayes": ManyBayes}
