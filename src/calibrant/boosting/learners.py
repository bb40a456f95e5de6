"""The learners that are boosted: scikit-learn's trees, or any classifier.

Each kind reads rows, fits one learner, and turns a learner into votes. Rows for trees are checked
once, not in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from calibrant.array_types import Array, Index
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fit_params import weight_argument
from calibrant.estimators.model_folds import model_scores, refuse_dispatched

#: seeds are drawn as scikit-learn's ensembles draw them
SEEDS = np.iinfo(np.int32).max

#: the trees that have a name, and what they are unless options say otherwise
TREES: Mapping[str, Mapping[str, Any]] = {
    "stump": {"criterion": "gini", "max_depth": 1, "min_samples_leaf": 1},
    "tree": {"criterion": "entropy", "max_depth": None, "min_samples_leaf": 2},
}
#: the options for trees, with their defaults
TREE_OPTIONS: Mapping[str, Any] = {
    "criterion": None,
    "max_depth": None,
    "ccp_alpha": 0.0,
    "min_samples_leaf": None,
    "leaf_smoothing": "none",
    "m": 2.0,
}

#: a leaf's probability from the weight of its positives, its weight, the whole tree's share of
#: positives, and m
SMOOTHINGS: Mapping[str, Callable[[Array, Array, float, float], Array]] = {
    "none": lambda positive, n, rate, m: positive / n,
    "laplace": lambda positive, n, rate, m: (positive + 1.0) / (n + 2.0),
    "m-estimate": lambda positive, n, rate, m: (positive + m * rate) / (n + m),
}


@dataclass(frozen=True)
class Trees:
    """Decision trees on float32 rows that were checked once."""

    criterion: str
    max_depth: int | None
    min_samples_leaf: int
    ccp_alpha: float
    votes: str
    leaf_smoothing: str
    m: float

    def read(self, model: Any, X: Any, *, reset: bool) -> Any:
        """The rows as this kind takes them.

        ``model`` remembers their columns if ``reset``; otherwise they must be those it remembers.
        """
        return _checked(
            model,
            X,
            dtype=np.float32,
            order="F" if self.max_depth == 1 else "C",  # one split reads whole columns
            accept_sparse="csr",
            accept_large_sparse=False,
            reset=reset,
        )

    def arrange(self, X: Any, codes: Index) -> tuple[Any, NDArray[Any]]:
        """Rows and labels in the form that is the fastest to fit, once for all rounds."""
        # each tree sorts its labels to find the classes: short ones sort faster
        labels = codes.astype(np.int8)
        if not issparse(X):
            return X, labels
        columns = X.tocsc()
        columns.sort_indices()
        return columns, labels

    def fit(self, X: Any, y: NDArray[Any], weight: Array | None, random: Any) -> Any:
        """One learner, fitted on arranged rows."""
        tree = DecisionTreeClassifier(
            criterion=self.criterion,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            ccp_alpha=self.ccp_alpha,
            random_state=random.randint(SEEDS),
        )
        return tree.fit(X, y, sample_weight=weight, check_input=False)

    def vote(self, fitted: Any, X: Any) -> Array:
        """h of each row, in [−1, 1]; 1 speaks for the second class."""
        tree = fitted.tree_
        votes: Array = self._leaves(tree)[tree.apply(X)]
        return votes

    def _leaves(self, tree: Any) -> Array:
        """h of every node."""
        share = tree.value[:, 0, :]
        if self.votes == "hard":
            return np.where(share[:, 1] > share[:, 0], 1.0, -1.0)
        n = np.asarray(tree.weighted_n_node_samples)
        positive, rate = n * share[:, 1], float(share[0, 1])
        p = SMOOTHINGS[self.leaf_smoothing](positive, n, rate, self.m)
        return np.asarray(2.0 * p - 1.0, dtype=np.float64)


@dataclass(frozen=True)
class Models:
    """Any classifier, with the methods of `Trees`.

    Frames reach it as they are, everything else as an array.
    """

    estimator: Any
    classes: NDArray[Any]
    votes: str
    resample: bool

    def __post_init__(self) -> None:
        name = type(self.estimator).__name__
        if not self.resample and weight_argument(self.estimator) is None:
            raise ParameterError(
                f"estimator must take sample_weight, but fit of {name} does not. Use "
                "resample=True, which draws rows by their weights instead."
            )
        if self.votes == "soft" and not hasattr(self.estimator, "predict_proba"):
            raise ParameterError(
                f'votes="soft" needs an estimator with predict_proba, but {name} has none. Use '
                'votes="hard".'
            )

    def read(self, model: Any, X: Any, *, reset: bool) -> Any:
        if hasattr(X, "columns"):
            return _checked(model, X, skip_check_array=True, reset=reset)
        # missing values are for the estimator to take or to refuse
        return _checked(
            model,
            X,
            dtype=None,
            accept_sparse=["csr", "csc"] if get_tags(model).input_tags.sparse else False,
            ensure_all_finite=False,
            reset=reset,
        )

    def arrange(self, X: Any, codes: Index) -> tuple[Any, NDArray[Any]]:
        return X, self.classes[codes]

    def fit(self, X: Any, y: NDArray[Any], weight: Array | None, random: Any) -> Any:
        one = clone(self.estimator)
        seeds = {
            name: random.randint(SEEDS)
            for name in sorted(one.get_params(deep=True))
            if name == "random_state" or name.endswith("__random_state")
        }
        one.set_params(**seeds)
        name = None if weight is None else weight_argument(one)
        return one.fit(X, y, **({} if name is None else {name: weight}))

    def vote(self, fitted: Any, X: Any) -> Array:
        if self.votes == "soft":
            p = model_scores(fitted, X, self.classes, method="predict_proba")
            return np.asarray(2.0 * p - 1.0, dtype=np.float64)
        return np.where(np.asarray(fitted.predict(X)) == self.classes[1], 1.0, -1.0)


#: a kind of learner that can be boosted
Learner = Trees | Models


def make_learner(model: Any, classes: NDArray[Any]) -> Learner:
    """What the parameters of an AdaBoost ask for; options that have no effect are refused."""
    estimator, options = model.estimator, {name: getattr(model, name) for name in TREE_OPTIONS}
    if isinstance(estimator, str) and estimator in TREES:
        return _make_trees(estimator, options, model.votes)
    able = all(hasattr(estimator, name) for name in ("fit", "predict"))
    if isinstance(estimator, type) or not able or is_regressor(estimator):
        raise ParameterError(
            f"estimator of AdaBoost must be {' or '.join(map(repr, TREES))}, or an instance of a "
            f"classifier, but {estimator!r} came."
        )
    for name, default in TREE_OPTIONS.items():
        if options[name] != default:
            raise ParameterError(
                f"{name} is an option of the trees that have a name ({', '.join(TREES)}), but "
                f"estimator is a {type(estimator).__name__} and {name}={options[name]!r} came. Set "
                "what it has on the instance itself."
            )
    return Models(estimator, classes, model.votes, model.resample)


def _make_trees(name: str, options: Mapping[str, Any], votes: str) -> Trees:
    if name == "stump" and options["max_depth"] is not None:
        raise ParameterError(
            f"max_depth of a stump is 1, but max_depth={options['max_depth']!r} came. Use "
            'estimator="tree" for deeper trees.'
        )
    if votes == "hard" and options["leaf_smoothing"] != "none":
        raise ParameterError(
            f'leaf_smoothing={options["leaf_smoothing"]!r} needs votes="soft": hard votes do not '
            "look at the probability of a leaf."
        )
    if options["m"] != TREE_OPTIONS["m"] and options["leaf_smoothing"] != "m-estimate":
        raise ParameterError(
            f'm={options["m"]!r} needs leaf_smoothing="m-estimate", but '
            f"leaf_smoothing={options['leaf_smoothing']!r} came."
        )
    own = {key: value for key, value in options.items() if value is not None}
    return Trees(votes=votes, **{**TREES[name], **own})


def _checked(model: Any, X: Any, **options: Any) -> Any:
    """X as scikit-learn checks it, its refusals as InputError."""
    refuse_dispatched(X, model)
    try:
        return validate_data(model, X, **options)
    except ValueError as wrong:
        raise InputError(str(wrong)) from wrong
