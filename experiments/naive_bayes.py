"""Naive Bayes on rows of numbers and words, as WEKA's: missing values are simply not counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: the least standard deviation, as a share of the range of the attribute
NARROWEST = 1e-3


class MixedNaiveBayes:
    """Normal densities for numbers, Laplace-smoothed frequencies for words; two classes 0 and 1."""

    def fit(self, X: pd.DataFrame, y: NDArray[np.intp]) -> MixedNaiveBayes:
        self.prior = np.log((np.bincount(y, minlength=2) + 1.0) / (len(y) + 2.0))
        self.numbers: dict[str, tuple[Array, Array]] = {}
        self.words: dict[str, pd.DataFrame] = {}
        for name in X.columns:
            column = X[name]
            if pd.api.types.is_numeric_dtype(column):
                spread = float(column.max() - column.min()) or 1.0
                groups = column.groupby(y)
                mean = groups.mean().reindex([0, 1]).fillna(column.mean()).fillna(0.0)
                sd = groups.std(ddof=0).reindex([0, 1]).fillna(0.0)
                wide = np.maximum(sd.to_numpy(), NARROWEST * spread)
                self.numbers[name] = mean.to_numpy(), wide
            else:
                codes, values = pd.factorize(column)  # missing is −1
                counts = np.ones((len(values), 2))
                np.add.at(counts, (codes[codes >= 0], y[codes >= 0]), 1.0)
                self.words[name] = pd.DataFrame(np.log(counts / counts.sum(axis=0)), index=values)
        return self

    def predict_proba(self, X: pd.DataFrame) -> Array:
        total = np.tile(self.prior, (len(X), 1))
        for name, (mean, sd) in self.numbers.items():
            z = (X[name].to_numpy(dtype=float)[:, None] - mean) / sd
            total += np.nan_to_num(-0.5 * z**2 - np.log(sd))  # a missing value says nothing
        for name, known in self.words.items():
            total += known.reindex(X[name]).fillna(0.0).to_numpy()
        total -= total.max(axis=1, keepdims=True)
        p = np.exp(total)
        normalised: Array = p / p.sum(axis=1, keepdims=True)
        return normalised
