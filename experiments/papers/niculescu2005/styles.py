"""What is boosted: stand-ins for the stumps and trees of the IND package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from experiments import table
from experiments.papers.niculescu2005.exact_trees import exact_trees
from experiments.papers.niculescu2005.problems import Part, folds

__all__ = [
    "LEARNERS",
    "Learner",
    "Style",
    "boosted",
    "pooled_scores",
    "steps_to",
    "styles_table",
]

Array = NDArray[np.float64]


class Style(NamedTuple):
    """Options of `cal.boosting.AdaBoost`, and what they stand for."""

    options: dict[str, Any]
    stands_for: str


class Learner(NamedTuple):
    """A kind of learner: its styles, and the steps of a full and of a quick run."""

    estimator: str
    styles: dict[str, Style]
    most: int
    quick_styles: tuple[str, ...]
    quick_most: int


_soft = {"votes": "soft"}
_laplace = {**_soft, "leaf_smoothing": "laplace"}
_bayes = {**_soft, "leaf_smoothing": "m-estimate"}

STUMPS = {
    "gini": Style({}, "the Gini index (twoing is the same for two classes)"),
    "entropy": Style({"criterion": "entropy"}, "information gain"),
    "gini soft": Style({**_soft}, "no criterion of IND: votes by probability"),
    "entropy Laplace": Style(
        {"criterion": "entropy", **_laplace}, "no criterion of IND: votes by smoothed probability"
    ),
    "entropy large leaves": Style(
        {"criterion": "entropy", "min_samples_leaf": 40},
        "no criterion of IND: no splits that part few rows from the rest",
    ),
}
TREES = {
    "ID3": Style({}, "ID3: entropy, not pruned, but at least 2 rows in a leaf"),
    "CART": Style({"criterion": "gini", "ccp_alpha": 1e-3}, "CART: Gini, pruned by cost"),
    "CART0": Style({"criterion": "gini", "ccp_alpha": 3e-4}, "CART0: the same, pruned less"),
    "C4.5": Style({"ccp_alpha": 5e-4}, "C4.5: entropy, pruned a little"),
    "MML": Style({"ccp_alpha": 2e-3, **_bayes}, "MML: few leaves, their probabilities smoothed"),
    "SMML": Style({"min_samples_leaf": 20, **_bayes}, "SMML: large leaves, smoothed"),
    "BAYES": Style({"min_samples_leaf": 5, **_bayes}, "BAYES: smoothed, not pruned"),
    "C4.5 Laplace": Style({**_laplace}, "unpruned C4.5 with Laplacian smoothing"),
    "C4.5 Bayes": Style({**_bayes}, "unpruned C4.5 with Bayesian smoothing"),
    "MML Laplace": Style({"ccp_alpha": 2e-3, **_laplace}, "MML with Laplacian smoothing"),
}
TWO_LEVELS = {
    "entropy": Style({"max_depth": 2}, "information gain"),
    "gini": Style({"max_depth": 2, "criterion": "gini"}, "the Gini index"),
}

LEARNERS = {
    "stumps": Learner("stump", STUMPS, 8192, ("gini", "entropy Laplace"), 1024),
    "trees": Learner("tree", TREES, 2048, ("ID3", "MML Laplace"), 128),
    "two levels": Learner("tree", TWO_LEVELS, 2048, ("entropy",), 256),
}


def boosted(
    train: Part, learner: str, style: str, steps: int, seed: int, loss: str = "exponential"
) -> cal.boosting.AdaBoost:
    """A booster of so many steps, fitted; fewer of them are its stages."""
    kind = LEARNERS[learner]
    options = kind.styles[style].options
    model = cal.boosting.AdaBoost(
        kind.estimator, loss=loss, n_estimators=steps, random_state=seed, **options
    )
    with exact_trees():
        return model.fit(train.X, train.y)


def steps_to(most: int) -> list[int]:
    """2, 4, 8, … as far as they go."""
    return [2**k for k in range(1, most.bit_length()) if 2**k <= most]


def pooled_scores(train: Part, learner: str, style: str, steps: Sequence[int], seed: int) -> Array:
    """Raw scores of each training row by the booster of the other two folds, steps × rows."""
    found = np.empty((len(steps), len(train.y)))
    for inside, outside in folds(train.y, seed):
        part = Part(train.X[inside], train.frame.iloc[inside], train.y[inside])
        model = boosted(part, learner, style, max(steps), seed)
        for i, scores in enumerate(model.staged_raw_score(train.X[outside], steps=steps)):
            found[i, outside] = scores
    return found


def styles_table() -> str:
    """Which style stands for what."""
    rows = [
        (learner, name, _words(style.options), style.stands_for)
        for learner, kind in LEARNERS.items()
        for name, style in kind.styles.items()
    ]
    return table(("learner", "style", "`cal.boosting.AdaBoost` options", "stands for"), rows)


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in options.items()) or "defaults"
