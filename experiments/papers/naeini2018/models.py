"""The paper's three classifiers, trained on some rows and asked about others.

The paper does not give their settings. Here: logistic regression with scikit-learn's ridge (C = 1),
a support vector machine with a linear kernel (LIBSVM, C = 1) through σ(decision), and naive Bayes
with normal densities for numbers and frequencies for words. The first two see numbers
standardised, missing ones as the median, and words as one column per value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.naive_bayes import NARROWEST, MixedNaiveBayes
from experiments.study import encode

__all__ = ["EXTRA", "MODELS", "PLAIN", "Asked", "NaiveBayes", "ask"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


#: of LIBSVM at most: a margin that separates nothing (coil2000) would take millions
STEPS = 100_000


class Asked(NamedTuple):
    """Scores of a model in [0, 1], on the rows it was trained on and on new ones."""

    own: Array
    new: Array


class NaiveBayes:
    """As `MixedNaiveBayes`, with thousands of numbers at once; two-valued numbers are words."""

    def fit(self, X: pd.DataFrame, y: Labels) -> NaiveBayes:
        number = [pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes]
        self.numbers = list(X.columns[number])
        N = X[self.numbers].to_numpy(dtype=float)
        spread = np.nan_to_num(np.nanmax(N, axis=0) - np.nanmin(N, axis=0))
        floor = NARROWEST * np.where(spread > 0, spread, 1.0)
        self.mean = np.stack([np.nan_to_num(np.nanmean(N[y == k], axis=0)) for k in (0, 1)])
        sd = np.stack([np.nan_to_num(np.nanstd(N[y == k], axis=0)) for k in (0, 1)])
        self.sd = np.maximum(sd, floor)
        self.words = MixedNaiveBayes().fit(X.drop(columns=self.numbers), y)
        return self

    def probability(self, X: pd.DataFrame) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(self.words.predict_proba(X.drop(columns=self.numbers)))
        N = X[self.numbers].to_numpy(dtype=float)
        for k in (0, 1):
            z = (N - self.mean[k]) / self.sd[k]
            logs[:, k] += np.nan_to_num(-0.5 * z**2 - np.log(self.sd[k])).sum(axis=1)
        p: Array = expit(logs[:, 1] - logs[:, 0])
        return p


def two_valued_as_words(X: pd.DataFrame) -> pd.DataFrame:
    """A number that takes two values is a word: a normal density does not suit it."""
    numbers = X.columns[[pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes]]
    N = X[numbers].to_numpy(dtype=float)
    low, high = np.nanmin(N, axis=0), np.nanmax(N, axis=0)
    pairs = numbers[((low == N) | (high == N) | np.isnan(N)).all(axis=0)]
    return X.drop(columns=pairs).join(X[pairs].astype(str))


def matrices(X: pd.DataFrame, train: Labels, test: Labels) -> tuple[Array, Array]:
    """Numbers standardised and words one-hot, as learned from the training rows."""
    plain = all(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
    if plain and not X.isna().to_numpy().any():  # the same, without a frame of thousands of columns
        N = X.to_numpy(dtype=float)
        scaler = StandardScaler().fit(N[train])
        return scaler.transform(N[train]), scaler.transform(N[test])
    coder = encode(X.iloc[train])
    return coder.transform(X.iloc[train]), coder.transform(X.iloc[test])


def logistic_regression(
    X: pd.DataFrame, y: Labels, train: Labels, test: Labels, C: float = 1.0
) -> Asked:
    A, B = matrices(X, train, test)
    model = LogisticRegression(C=C, max_iter=2000).fit(A, y[train])
    return Asked(*(model.predict_proba(part)[:, 1] for part in (A, B)))


def support_vectors(X: pd.DataFrame, y: Labels, train: Labels, test: Labels) -> Asked:
    A, B = matrices(X, train, test)
    model = SVC(kernel="linear", C=1.0, cache_size=500, max_iter=STEPS).fit(A, y[train])
    return Asked(*(expit(model.decision_function(part)) for part in (A, B)))


def naive_bayes(X: pd.DataFrame, y: Labels, train: Labels, test: Labels) -> Asked:
    words = two_valued_as_words(X)
    model = NaiveBayes().fit(words.iloc[train], y[train])
    return Asked(*(model.probability(words.iloc[part]) for part in (train, test)))


MODELS: dict[str, Callable[[pd.DataFrame, Labels, Labels, Labels], Asked]] = {
    "LR": logistic_regression,
    "SVM": support_vectors,
    "NB": naive_bayes,
}


#: logistic regression without its ridge: what becomes of Table 3 if the paper's had none
PLAIN = "LR, no ridge"
EXTRA = {PLAIN: partial(logistic_regression, C=np.inf)}


def ask(model: str, X: pd.DataFrame, y: Labels, train: Labels, test: Labels) -> Asked:
    """A model trained on some rows, asked about these and about others."""
    return {**MODELS, **EXTRA}[model](X, y, train, test)
