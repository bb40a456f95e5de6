"""The problems of the paper that are at hand: 4,000 rows to train on, 1,000 to select on.

The paper does not say how many rows it trained on; these are the numbers of the authors' companion
papers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from experiments.data import read, task
from experiments.study import encode

__all__ = ["OTHER", "PROBLEMS", "TASKS", "Part", "Rows", "folds", "rows_of", "split"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: rows to train on, to select on, and to test on at most
TRAIN, VALIDATION, TEST = 4000, 1000, 20_000
#: COV_TYPE by its other reading: class 1, of the share of positives that the authors' companion
#: papers print, instead of "the largest class"
OTHER = "COV_TYPE (class 1)"
TASKS = {
    "COV_TYPE": "covtype_largest",
    "ADULT": "adult",
    "LETTER.P1": "letter_p1",
    "LETTER.P2": "letter_p2",
    OTHER: "covtype_class1",
}
#: those that means are taken over
PROBLEMS = tuple(name for name in TASKS if name != OTHER)


class Part(NamedTuple):
    """Rows as numbers, as they came, and their labels."""

    X: Array
    frame: pd.DataFrame
    y: Index


class Rows(NamedTuple):
    """A problem in three parts."""

    train: Part
    validation: Part
    test: Part


@lru_cache
def _everything(problem: str) -> tuple[pd.DataFrame, Index]:
    return read(task(TASKS[problem]), TRAIN + VALIDATION + TEST)


def split(n: int, seed: int, train: int = TRAIN, validation: int = VALIDATION) -> list[Index]:
    """Places of the rows to train on, to select on and to test on, in a random order."""
    order = np.random.default_rng(seed).permutation(n)
    return np.split(order, [train, train + validation])


@lru_cache(maxsize=2)
def rows_of(problem: str, seed: int) -> Rows:
    """The rows of a problem; words are made numbers as the training rows have them."""
    X, y = _everything(problem)
    parts = split(len(y), seed)
    coder = encode(X.iloc[parts[0]])
    return Rows(*(Part(coder.transform(X.iloc[part]), X.iloc[part], y[part]) for part in parts))


def folds(y: Index, seed: int) -> list[tuple[Index, Index]]:
    """Three folds, as Platt takes them: places to train on and places to score."""
    cut = StratifiedKFold(3, shuffle=True, random_state=seed)
    return list(cut.split(np.zeros((len(y), 1)), y))
