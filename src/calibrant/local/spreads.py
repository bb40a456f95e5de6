"""How uncertain a model is of each row's probability.

Each is a frozen, picklable function of rows, made once from a fitted model of two classes (and,
where needed, from the rows it was fitted on). It speaks of the model's ``classes_[1]``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import _num_samples

from calibrant.array_types import Array, Index
from calibrant.data.validation import check_lengths, read_weight
from calibrant.errors import InputError
from calibrant.estimators.fit_params import take, weight_argument
from calibrant.estimators.model_folds import ModelRows, model_scores

#: how far the mean of the members may be from the model's own probability
AGREEMENT = 1e-6
#: what to do where a model's intervals cannot be found
OWN_INTERVALS = (
    "Pass intervals of your own (lower= and upper=, or ACP(interval=...) with a function), or put "
    "the model into a BaggingClassifier, whose members are many copies of it."
)


class Estimate(NamedTuple):
    """Probabilities, their logits (±inf for 0 and 1), and the standard deviations of both."""

    probability: Array
    logit: Array
    sd: Array
    sd_logit: Array


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a model was fitted on."""

    X: Any
    weight: Array | None = None

    @staticmethod
    def read(train: Any) -> TrainingRows:
        """From a tuple (X,), (X, y) or (X, y, sample_weight)."""
        if not isinstance(train, (tuple, list)) or not 1 <= len(train) <= 3:
            came = (
                f"{len(train)} values" if isinstance(train, (tuple, list)) else type(train).__name__
            )
            raise InputError(
                "train must be the rows that the model was fitted on, as (X,), (X, y) or "
                f"(X, y, sample_weight), but {came} came."
            )
        X, y, weight = (*train, None, None)[:3]
        n = _num_samples(X)
        if y is not None:
            check_lengths(X=n, y=_num_samples(y))
        return TrainingRows(X, read_weight(weight, n))

    @staticmethod
    def of(model: Any, data: ModelRows, rows: Index | None) -> TrainingRows:
        """From what a wrapped model was fitted on, with weights only if the model used them."""
        weight = data.weight if weight_argument(model) is not None else None
        return TrainingRows(take(data.X, rows), take(weight, rows))


@dataclass(frozen=True, eq=False)
class Spread:
    """A function from rows to probabilities and their standard deviations."""

    name: ClassVar[str]
    model: Any

    @staticmethod
    @abstractmethod
    def suits(model: Any) -> bool:
        """Whether this is the way to find the intervals of a model."""

    @classmethod
    @abstractmethod
    def of(cls, model: Any, train: TrainingRows | None) -> Spread:
        """The spread of a fitted model; others are refused with a reason."""

    @abstractmethod
    def __call__(self, X: Any) -> Estimate:
        """The estimate for each row of X."""


def probability(model: Any, X: Any) -> Array:
    """What a model says of ``classes_[1]``."""
    return model_scores(model, X, model.classes_, 1, "predict_proba")


def unwrap(model: Any, X: Any = None) -> tuple[Any, Any]:
    """The model at the end of pipelines and searches, and the rows X (if given) as it sees them."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            if X is not None and len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model.steps[-1][1]
        else:
            return model, X


# --- the spread of an ensemble's members --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Members(Spread):
    """The standard deviation over the members of a bagged model or a forest.

    It is the spread of **one** member, not of their average, which is what the model predicts.
    """

    name: ClassVar[str] = "spread"

    @staticmethod
    def suits(model: Any) -> bool:
        """Whether a model has fitted members that give probabilities of their own."""
        members = getattr(unwrap(model)[0], "estimators_", None)
        if not isinstance(members, (list, tuple)) or len(members) < 2:
            return False
        return all(hasattr(member, "predict_proba") for member in members)

    @classmethod
    def of(cls, model: Any, train: TrainingRows | None) -> Members:
        return cls(model)

    def __call__(self, X: Any) -> Estimate:
        p = probability(self.model, X)
        last, inner = unwrap(self.model, X)
        mean, sd = _moments(_member_probabilities(last, inner))
        off = np.abs(mean - p) > AGREEMENT
        if off.any():
            row = int(np.argmax(off))
            raise InputError(
                f"the probability of {type(last).__name__} must be the mean of its members', but "
                f"it is not ({p[row]:.4g} against {mean[row]:.4g} at row {row}): its "
                f"members are weighted or build on each other. {OWN_INTERVALS}"
            )
        return Estimate(p, logit(p), sd, _by_delta_rule(sd, p))


def _member_probabilities(model: Any, X: Any) -> Iterator[Array]:
    """Each member's probability of the model's second class."""
    labels = _second_label(model)
    bare = X if hasattr(X, "tocsr") else np.asarray(X)
    everything = slice(None)
    columns = getattr(model, "estimators_features_", [everything] * len(model.estimators_))
    for member, chosen in zip(model.estimators_, columns, strict=True):
        # members fitted inside an ensemble have mostly seen arrays, whatever the ensemble saw
        rows = X if hasattr(member, "feature_names_in_") else bare
        whole = isinstance(chosen, slice) or np.array_equal(chosen, np.arange(bare.shape[1]))
        p = np.asarray(member.predict_proba(rows if whole else rows[:, chosen]), dtype=np.float64)
        found = np.flatnonzero(member.classes_ == labels)
        yield p[:, found[0]] if len(found) else np.zeros(len(p))


def _second_label(model: Any) -> Any:
    """What the members call the model's second class: mostly its code 1, else its label."""
    seen = {label for member in model.estimators_ for label in member.classes_.tolist()}
    for name, known in ((1, {0, 1}), (model.classes_[1], set(model.classes_.tolist()))):
        if seen <= known:
            return name
    raise InputError(
        f"the members of {type(model).__name__} must know its classes {model.classes_.tolist()}, "
        f"but they know {sorted(map(str, seen))[:20]}. {OWN_INTERVALS}"
    )


def _moments(probabilities: Iterable[Array]) -> tuple[Array, Array]:
    """Mean and standard deviation (n − 1) of each row, by Welford's formula: memory O(rows)."""
    mean = square = np.zeros(1)
    count = 0
    for count, p in enumerate(probabilities, start=1):
        step = p - mean
        mean = mean + step / count
        square = square + step * (p - mean)
    return mean, np.sqrt(square / max(count - 1, 1))


def _by_delta_rule(sd: Array, p: Array) -> Array:
    """The standard deviation of logit(p) to first order: sd / (p(1−p)), and 0 where sd is 0."""
    slope = p * (1.0 - p)
    usable = slope > 0.0
    ratio = np.divide(sd, slope, out=np.full(len(p), np.inf), where=usable)
    return np.where(sd > 0.0, ratio, 0.0)
