"""AdaBoost of stumps, trees or any classifier, with all of its scores."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from calibrant.array_types import Array, Index
from calibrant.data.columns import plain
from calibrant.data.door import (
    Limit,
    Number,
    OneOf,
    check_lengths,
    check_parameters,
    read_sorted_classes,
    read_weight,
)
from calibrant.data.score_table import weight_in_rows
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.fitting.base import WEIGHTS
from calibrant.fitting.model_scores import (
    last_model,
    model_scores,
    refuse_array_api,
    take_rows,
    weight_argument,
)
from calibrant.losses import sigmoid


@dataclass(eq=False, repr=False)
class AdaBoost(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Boosting of stumps, trees or any classifier, with the exponential or the log loss.

    F(x) = Σ αₜhₜ(x), where the votes hₜ are −1 or 1, or between them. Each learner is fitted to the
    rows weighted by how badly F does on them. High F speaks for ``classes_[1]``. There are three
    scores, each with a staged version. `decision_function` is F. `raw_score` is the weighted share
    of votes for ``classes_[1]``, in [0, 1]. `predict_proba` is the link of the loss: σ(2F) for the
    exponential loss, σ(F) for the log loss.

    The probabilities are good for weak learners such as stumps. Those of full trees are far too
    near to 0 and 1 and need a calibrator: ``CalibratedClassifier(AdaBoost("tree"), Platt())``.

    Parameters
    ----------
    estimator : {"stump", "tree"} or classifier, default="stump"
        ``"stump"`` is a tree with one split, ``"tree"`` a full tree by entropy with at least 2 rows
        per leaf. A classifier must take ``sample_weight`` (a pipeline: in its last step), unless
        ``resample=True``.
    votes : {"hard", "soft"}, default="hard"
        h = ±1 by the learner's decision, or h = 2p − 1 by its probability p.
    on_perfect : {"continue", "stop"}, default="continue"
        What to do after a learner that is never wrong. Its α is made finite (see Notes).
    resample : bool, default=False
        Whether each learner gets rows drawn by their weights, instead of all rows with weights. As
        many are drawn as there are, with replacement. Boosting stops after ten draws in a row
        without a learner that is better than chance.
    loss : {"exponential", "log"}, default="exponential"
    n_estimators : int, default=100
        The number of rounds.
    criterion : {None, "gini", "entropy", "log_loss"}, default=None
        What trees split by; None: gini for stumps, entropy for trees.
    max_depth : int or None, default=None
        Levels of ``"tree"``; None: no limit.
    ccp_alpha : float, default=0.0
        Prune trees by cost complexity, as in scikit-learn's `DecisionTreeClassifier`.
    min_samples_leaf : int or None, default=None
        Rows per leaf at least; None: 1 for stumps, 2 for trees.
    leaf_smoothing : {"none", "laplace", "m-estimate"}, default="none"
        The probability of a leaf of weight n, of which n₁ is positive: n₁/n, (n₁+1)/(n+2), or
        (n₁+mb)/(n+m), where b is the share of positives in the weighted rows of the tree. Only with
        soft votes: it seldom changes a hard one.
    m : float, default=2.0
        The m of the m-estimate.
    weights : {"importance", "counts"}, default="importance"
        What ``sample_weight`` says: see `Calibrator`.
    random_state : int, RandomState or None, default=None
        Seeds the learners (trees break ties between splits at random) and draws rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    n_steps_ : int
        How many learners there are.
    estimators_ : list
        The learners. Trees with a name know the classes as 0 and 1.
    alphas_ : ndarray of shape (n_steps_,)
        The weights α of their votes, all positive.
    stopped_ : str or None
        Why boosting stopped before ``n_estimators`` rounds; None if it did not.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Start with F = 0. In each round the rows have weights ∝ s·exp(−yF), or s·1/(1+exp(yF)) for the
    log loss [2]_, where y = ±1 and s is the sample weight. The learner gets them scaled to the sum
    of the sample weights. It is right on the weight W_c = Σ w(1+yh)/2 and wrong on
    W_e = Σ w(1−yh)/2. If W_c ≤ W_e it is no better than chance: it is dropped and boosting stops,
    with a `CalibrationWarning`. If it was the first learner, F = 0 and all probabilities are ½.
    Otherwise F grows by αh with

    - hard votes: α = ½ ln(W_c / W_e). For a perfect learner (W_e = 0) it is ½ ln((1+ε)/ε) with
      ε = 1/(2n), where n is the sum of the sample weights, but at least 1;
    - soft votes: the α that minimises Σ w·exp(−αyh). This is the exponential loss along h. For the
      log loss it is an upper bound, which also gives the formula for hard votes [2]_. If no vote is
      wrong there is no minimum: a right and a wrong vote of weight ε are added.

    A perfect learner changes all weights by one factor. So the next learner is the same, but for
    ties, and F grows without changing the order of rows: ``on_perfect="stop"`` saves that time.

    Weights are in units of rows, except that ``min_samples_leaf`` counts rows. A row of weight zero
    is as if absent. Learners get weights that are rounded to multiples of 2⁻³⁰ of the mean weight,
    and are at least that; α is computed from the exact weights.

    Costs as much as the learners, plus O(N) per round. Staged scores run each learner once,
    O(N·rounds) in all, and keep O(N) numbers.

    ``"stump"`` and ``"tree"`` take numbers, dense or sparse, without missing values. A classifier
    of your own gets frames as they come, and missing values if it takes them.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] M. Collins, R. E. Schapire, Y. Singer, "Logistic regression, AdaBoost and Bregman
       distances", 2002, doi:10.1023/A:1013912006537.
    .. [3] J. Friedman, T. Hastie, R. Tibshirani, "Additive logistic regression: a statistical view
       of boosting", 2000, doi:10.1214/aos/1016218223.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(400, n_informative=5, flip_y=0.1, random_state=0)
    >>> model = AdaBoost(n_estimators=64, random_state=0).fit(X[:300], y[:300])
    >>> model.decision_function(X[300:303]).round(2).tolist()
    [0.38, 1.2, 1.7]
    >>> model.raw_score(X[300:303]).round(2).tolist()
    [0.52, 0.57, 0.59]
    >>> model.predict_proba(X[300:303])[:, 1].round(2).tolist()
    [0.68, 0.92, 0.97]
    >>> [float(f[0].round(2)) for f in model.staged_raw_score(X[300:], steps=[2, 4, 8, 16, 32, 64])]
    [0.65, 0.63, 0.53, 0.56, 0.51, 0.52]
    """

    estimator: Any = "stump"
    _: KW_ONLY
    votes: str = "hard"
    on_perfect: str = "continue"
    resample: bool = False
    loss: str = "exponential"
    n_estimators: int = 100
    criterion: str | None = None
    max_depth: int | None = None
    ccp_alpha: float = 0.0
    min_samples_leaf: int | None = None
    leaf_smoothing: str = "none"
    m: float = 2.0
    weights: str = "importance"
    random_state: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "votes": (OneOf(("hard", "soft")),),
        "on_perfect": (OneOf(("continue", "stop")),),
        "resample": (OneOf((True, False)),),
        "loss": (OneOf(("exponential", "log")),),
        "n_estimators": (Number(1, whole=True),),
        "criterion": (OneOf((None, "gini", "entropy", "log_loss")),),
        "max_depth": (OneOf((None,)), Number(1, whole=True)),
        "ccp_alpha": (Number(0.0),),
        "min_samples_leaf": (OneOf((None,)), Number(1, whole=True)),
        "leaf_smoothing": (OneOf(("none", "laplace", "m-estimate")),),
        "m": (Number(0.0, open=True),),
        "weights": (WEIGHTS,),
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Boost for ``n_estimators`` rounds, or until a learner is no better than chance.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, features)
        y : array-like of shape (n,)
            Labels: any two values.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        check_parameters(self, self._limits)
        if y is None:
            raise InputError("this classifier requires y to be passed, but the target y is None.")
        classes, codes = read_sorted_classes(y)
        _check_two_classes(classes)
        learner = make_learner(self, classes)
        X = learner.read(self, X, reset=True)
        check_lengths(X=_num_samples(X), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        if weight is None:
            weight = np.ones(len(codes))
        elif not weight.all():
            rows = np.flatnonzero(weight)
            X, codes, weight = take_rows(X, rows), codes[rows], weight[rows]
            _check_two_classes(classes[np.unique(codes)])
        size = weight_in_rows(weight, self.weights)
        size = np.ones(len(codes)) if size is None else size
        self.estimators_, self.alphas_, self.stopped_ = boost_rounds(self, learner, X, codes, size)
        self.n_steps_, self.classes_ = len(self.alphas_), classes
        # scores need what was fitted, and parameters may be changed later
        self._fitted = (learner, self.loss, int(self.n_estimators))
        if self.stopped_ is not None:
            warnings.warn(self.stopped_, CalibrationWarning, stacklevel=caller_level())
        return self

    # --- scores -----------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """F = Σ αₜhₜ, shape (n,)."""
        return self._final_votes(X)[1]

    def raw_score(self, X: Any) -> Array:
        """f = Σ αₜ(1+hₜ)/2 / Σ αₜ, the weighted share of votes, in [0, 1] (½ without learners)."""
        return share_of_votes(*self._final_votes(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities by the link of the loss, shape (n, 2), columns as ``classes_``."""
        return self._link(self._final_votes(X)[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the higher F; the first in sorted order if F = 0."""
        F = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[(F > 0.0).astype(np.intp)]
        return labels

    def staged_decision_function(
        self, X: Any, *, steps: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """F after each of some steps of boosting, one array for each step, in one pass over the
        learners.

        Parameters
        ----------
        X : rows
        steps : ascending whole numbers from 1 to ``n_estimators``, default: 1, …, ``n_steps_``
            A step gives what ``n_estimators=step`` would have given. Steps after boosting stopped
            give its last state.
        """
        return (F.copy() for _, F in self._staged_votes(X, steps))

    def staged_raw_score(self, X: Any, *, steps: Sequence[int] | None = None) -> Iterator[Array]:
        """`raw_score` after each of some steps; see `staged_decision_function`."""
        return (share_of_votes(total, F) for total, F in self._staged_votes(X, steps))

    def staged_predict_proba(
        self, X: Any, *, steps: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """`predict_proba` after each of some steps; see `staged_decision_function`."""
        return (self._link(F) for _, F in self._staged_votes(X, steps))

    def _final_votes(self, X: Any) -> tuple[float, Array]:
        check_is_fitted(self, "alphas_")
        ((total, F),) = self._staged_votes(X, [max(1, self.n_steps_)])
        return total, F

    def _staged_votes(self, X: Any, steps: Sequence[int] | None) -> Iterator[tuple[float, Array]]:
        """Σα and F after each of the steps. F is one array that each later step overwrites."""
        check_is_fitted(self, "alphas_")
        learner, _, rounds = self._fitted
        wanted: Sequence[int] = range(1, self.n_steps_ + 1)
        if steps is not None:
            given: list[Any] = list(steps) if isinstance(steps, Iterable) else [steps]
            whole = all(Number(1, high=rounds, whole=True).allows(step) for step in given)
            if not whole or any(b <= a for a, b in pairwise(given)):
                raise ParameterError(
                    "steps must be ascending whole numbers from 1 to n_estimators, that is "
                    f"{rounds}, but {steps!r} came. A model boosted for more rounds gives all "
                    "earlier steps, too."
                )
            wanted = [int(step) for step in given]
        return self._add_votes(learner, learner.read(self, X, reset=False), wanted)

    def _add_votes(
        self, learner: Learner, X: Any, wanted: Iterable[int]
    ) -> Iterator[tuple[float, Array]]:
        total, F, done = 0.0, np.zeros(_num_samples(X)), 0
        for step in wanted:
            for t in range(done, min(step, self.n_steps_)):
                alpha = float(self.alphas_[t])
                total += alpha
                F += alpha * learner.vote(self.estimators_[t], X)
            done = step
            yield total, F

    def _link(self, F: Array) -> Array:
        link = LINKS[self._fitted[1]]
        return np.column_stack((link(-F), link(F)))  # 1 − p would lose small probabilities

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "alphas_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, str):
            tags.input_tags.sparse = True
        elif isinstance(self.estimator, BaseEstimator):
            tags.input_tags = copy.copy(get_tags(self.estimator).input_tags)
        tags.classifier_tags.multi_class = False
        return tags


def share_of_votes(total: float, F: Array) -> Array:
    """The weighted share of votes for the second class, (1 + F/Σα)/2 (eq. 4 of Niculescu-Mizil and
    Caruana 2005)."""
    if total == 0.0:
        return np.full(len(F), 0.5)
    return np.clip(0.5 + 0.5 * (F / total), 0.0, 1.0)


def _check_two_classes(classes: NDArray[Any]) -> None:
    k = len(classes)
    if k > 2:
        raise InputError(
            "Only binary classification is supported. The type of the target is multiclass: y must "
            f"hold two classes, but {k} came. For several classes boost one model per column of a "
            "code matrix: CodedClassifier(AdaBoost(), code=...) with one class against the rest, "
            "all pairs, or an error-correcting code."
        )
    if k < 2:
        raise InputError(
            "y must hold two classes (in rows of positive weight), but only one class came: "
            f"{plain(classes[0])!r}. There is nothing to tell apart."
        )


#: for each loss, what turns F into the probability at which its expectation is least (Friedman,
#: Hastie and Tibshirani 2000)
LINKS: Mapping[str, Callable[[Array], Array]] = {
    "exponential": lambda F: sigmoid(2.0 * F),
    "log": sigmoid,
}


# --- The rounds: weights of the rows from their margins, a learner, and its α ---------------------

#: differences up to this are taken for rounding: the weight that a learner is right on must exceed
#: the weight that it is wrong on by more than this, and soft votes up to this count as 0
NOISE = 2.0**-40
#: the largest α·max|h|: ½·ln(1/W_e) for the smallest positive W_e
STRONGEST = 0.5 * 745.0

#: learners get weights of mean one; per unit of sample weight they are multiples of this
GRAIN = 2.0**-30
#: the sum of the weights that a learner gets lies between 2 to the power −60 and 2 to the power 60
FARTHEST = 60
#: boosting stops after this many draws of rows without a learner that is better than chance
DRAWS = 10


def boost_rounds(
    model: AdaBoost, learner: Learner, X: Any, codes: Index, size: Array
) -> tuple[list[Any], Array, str | None]:
    """Run the rounds of boosting for a model. The result: the learners, the weights of their votes,
    and why boosting stopped early (None if it did not).

    X are the rows as the learner reads them, ``codes`` their classes (0 or 1), and ``size`` their
    weights, all above 0.
    """
    # multiplied by a power of two if the square of their sum is no float
    exponent = math.frexp(float(size.sum()))[1]
    near = np.ldexp(size, min(max(exponent, -FARTHEST), FARTHEST) - exponent)
    data = (*learner.arrange(X, codes), np.maximum(near, np.finfo(np.float64).tiny))
    random = check_random_state(model.random_state)
    sign = 2.0 * codes - 1.0
    epsilon = 0.5 / max(float(size.sum()), 1.0)
    weight_of = hard_weight if model.votes == "hard" else soft_weight
    F = np.zeros(len(sign))
    estimators: list[Any] = []
    alphas: list[float] = []
    stopped, rounds = None, int(model.n_estimators)
    for left in reversed(range(rounds)):
        weights = row_weights(sign * F, size, model.loss)
        verdict = LearnerWeight(0.0, False, 0.5, 0.5)  # where no draw has rows of both classes
        for fitted in _learners_of_round(learner, data, weights, model.resample, random):
            h = learner.vote(fitted, X)
            verdict = weight_of(weights, sign * h, epsilon)
            if verdict.alpha > 0.0:
                break
        else:
            resampled = f"none of {DRAWS} learners from new draws of rows was"
            stopped = (
                f"{resampled if model.resample else 'the next learner was no'} better than chance "
                f"on the weighted rows (right on {verdict.right:.4g} of the weight, wrong on "
                f"{verdict.wrong:.4g})"
            )
            break
        estimators.append(fitted)
        alphas.append(verdict.alpha)
        F += verdict.alpha * h
        if verdict.perfect and model.on_perfect == "stop" and left:
            stopped = 'the last learner was never wrong (on_perfect="stop")'
            break
    if stopped is not None:
        nothing = "" if alphas else " Nothing was learnt: F is 0 and every probability ½."
        stopped = f"boosting stopped after {len(alphas)} of {rounds} rounds: {stopped}.{nothing}"
    return estimators, np.array(alphas), stopped


def _learners_of_round(
    learner: Learner,
    data: tuple[Any, NDArray[Any], Array],
    weights: Array,
    resample: bool,
    random: np.random.RandomState,
) -> Iterator[Any]:
    """The learners of a round: one with weights, or one for each of several draws of rows."""
    X, y, sample = data
    if not resample:
        yield learner.fit(X, y, rounded_weights(weights, sample), random)
        return
    for _ in range(DRAWS):
        drawn = random.choice(len(y), len(y), p=weights)
        labels = y[drawn]
        if (labels != labels[0]).any():
            yield learner.fit(take_rows(X, drawn), labels, None, random)


#: ln of the weight that a loss gives to a row of margin yF
LOG_WEIGHTS: Mapping[str, Callable[[Array], Array]] = {
    "exponential": np.negative,
    "log": lambda margin: -np.logaddexp(0.0, margin),
}


def row_weights(margin: Array, sample: Array, loss: str) -> Array:
    """Weights of rows with margins yF and sample weights, summing to one.

    They are computed from the margins anew in each round, in logarithms. The row of the largest
    loss is scaled to one before the exponential is taken, so that the sum cannot underflow.

    >>> row_weights(np.array([0.0, 1e6]), np.ones(2), "log").tolist()
    [1.0, 0.0]
    """
    logs = LOG_WEIGHTS[loss](margin)
    weights = sample * np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def rounded_weights(weights: Array, sample: Array) -> Array:
    """The weights of rows, rounded for the learner; their sum is that of the sample weights.

    Per unit of sample weight they are multiples of 2⁻³⁰, and at least 2⁻³⁰: trees could not tell
    smaller ones from rounding. So their sums are exact in any order if sample weights are whole,
    and a tie between two splits stays a tie. Neither the order of rows nor repeating a row in place
    of a weight changes it.

    >>> rounded_weights(np.array([0.5, 0.5, 0.0]), np.array([1.0, 2.0, 1.0])).round(6).tolist()
    [2.0, 2.0, 0.0]
    """
    units = float(sample.sum()) * weights / sample
    return np.asarray(sample * (GRAIN * np.maximum(np.rint(units / GRAIN), 1.0)), dtype=np.float64)


class LearnerWeight(NamedTuple):
    """The weight α of a learner's votes, which is zero if the learner is no better than chance.

    ``right`` and ``wrong`` are W_c and W_e: the weight of the rows that it classifies rightly and
    wrongly. They sum to one. A learner is perfect if no row with weight is wrong.
    """

    alpha: float
    perfect: bool
    right: float
    wrong: float


def hard_weight(weights: Array, agree: Array, epsilon: float) -> LearnerWeight:
    """α = ½ ln(W_c / W_e) for votes that agree (1) or disagree (−1) with the label.

    >>> round(hard_weight(np.array([0.5, 0.25, 0.25]), np.array([1.0, 1.0, -1.0]), 0.1).alpha, 4)
    0.5493
    """
    wrong = float(weights @ (agree < 0.0))
    right = float(weights @ (agree > 0.0))
    perfect = wrong == 0.0
    extra = epsilon if perfect else 0.0
    better = right - wrong > NOISE
    alpha = 0.5 * math.log((right + extra) / (wrong + extra)) if better else 0.0
    return LearnerWeight(alpha, perfect, right, wrong)


def soft_weight(weights: Array, agree: Array, epsilon: float) -> LearnerWeight:
    """The α that minimises Z(α) = Σ w·exp(−α·y·h) for real votes, given y·h in [−1, 1].

    If no vote is wrong, Z has no minimum. Then a right and a wrong vote are added, each of weight ε
    and as large as the largest vote. For votes of ±1 this gives α = ½ ln((W_c + ε) / (W_e + ε)).

    >>> v = soft_weight(np.array([0.5, 0.25, 0.25]), np.array([1.0, 1.0, -1.0]), 0.1)
    >>> round(v.alpha, 4)
    0.5493
    """
    present = weights > 0.0
    weights, agree = weights[present], agree[present]
    agree = np.where(np.abs(agree) > NOISE, agree, 0.0)  # a leaf of ½ must not count as wrong
    edge = float(weights @ agree)
    right, wrong = 0.5 * (1.0 + edge), 0.5 * (1.0 - edge)
    perfect = bool((agree >= 0.0).all())
    if edge <= NOISE:
        return LearnerWeight(0.0, perfect, right, wrong)
    size = float(np.abs(agree).max())
    unit = agree / size
    if perfect:
        unit = np.concatenate((unit, (1.0, -1.0)))
        weights = np.concatenate((weights, (epsilon, epsilon)))
    return LearnerWeight(_best_alpha(weights, unit) / size, perfect, right, wrong)


def _best_alpha(weights: Array, agree: Array) -> float:
    """The α that minimises ln Σ w·exp(−α·a) for agreements a in [−1, 1].

    Newton's steps inside a bracket; where a step would leave the bracket, the bracket is halved.
    """
    low, high = 0.0, STRONGEST
    mean = float(weights @ agree) / float(weights.sum())
    beta = math.atanh(min(mean, 0.999))  # exact for votes of ±1
    for _ in range(200):
        exponent = -beta * agree
        tilted = weights * np.exp(exponent - exponent.max())
        tilted /= tilted.sum()
        mean = float(tilted @ agree)  # minus the slope; falls as β grows
        variance = float(tilted @ (agree - mean) ** 2)
        low, high = (beta, high) if mean > 0.0 else (low, beta)
        step = mean / variance if variance > 0.0 else math.inf
        if abs(step) <= 1e-13 * (1.0 + beta) or high - low <= 1e-15 * (1.0 + high):
            break
        inside = low < beta + step < high
        beta = beta + step if inside else 0.5 * (low + high)
    return beta


# --- The learners that are boosted: scikit-learn's trees, or any classifier -----------------------
# Each kind reads rows, fits one learner, and turns a learner into votes. Rows for trees are checked
# once, not in every round.

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
LEAF_SMOOTHING: Mapping[str, Callable[[Array, Array, float, float], Array]] = {
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

    @classmethod
    def named(cls, name: str, options: Mapping[str, Any], votes: str) -> Self:
        """The trees of this name; options without effect are refused."""
        if name == "stump" and options["max_depth"] is not None:
            raise ParameterError(
                f"max_depth of a stump is 1, but max_depth={options['max_depth']!r} came. Use "
                'estimator="tree" for deeper trees.'
            )
        if votes == "hard" and options["leaf_smoothing"] != "none":
            raise ParameterError(
                f'leaf_smoothing={options["leaf_smoothing"]!r} needs votes="soft": hard votes do '
                "not look at the probability of a leaf."
            )
        if options["m"] != TREE_OPTIONS["m"] and options["leaf_smoothing"] != "m-estimate":
            raise ParameterError(
                f'm={options["m"]!r} needs leaf_smoothing="m-estimate", but '
                f"leaf_smoothing={options['leaf_smoothing']!r} came."
            )
        own = {key: value for key, value in options.items() if value is not None}
        return cls(votes=votes, **{**TREES[name], **own})

    def read(self, model: Any, X: Any, *, reset: bool) -> Any:
        """The rows, checked, as this kind of learner takes them.

        With ``reset`` the ``model`` remembers their columns. Otherwise the columns must be those it
        remembers.
        """
        return _validated_rows(
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
        """The vote h of a learner for each row, in [−1, 1]; 1 is the second class."""
        tree = fitted.tree_
        share = tree.value[:, 0, :]  # of every node
        if self.votes == "hard":
            nodes = np.where(share[:, 1] > share[:, 0], 1.0, -1.0)
        else:
            n = np.asarray(tree.weighted_n_node_samples)
            positive, rate = n * share[:, 1], float(share[0, 1])
            p = LEAF_SMOOTHING[self.leaf_smoothing](positive, n, rate, self.m)
            nodes = np.asarray(2.0 * p - 1.0, dtype=np.float64)
        votes: Array = nodes[tree.apply(X)]
        return votes


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
            return _validated_rows(model, X, skip_check_array=True, reset=reset)
        # missing values are for the estimator to take or to refuse
        return _validated_rows(
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
    """The learner that an AdaBoost's parameters describe; options without effect are refused."""
    estimator, options = model.estimator, {name: getattr(model, name) for name in TREE_OPTIONS}
    if isinstance(estimator, str) and estimator in TREES:
        return Trees.named(estimator, options, model.votes)
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


def _validated_rows(model: Any, X: Any, **options: Any) -> Any:
    """X as scikit-learn checks it, its refusals as InputError."""
    refuse_array_api(X, model)
    try:
        return validate_data(model, X, **options)
    except ValueError as wrong:
        raise InputError(str(wrong)) from wrong


# --- The additive score F of a boosted model, ours or scikit-learn's ------------------------------


def boosting_score(model: Any, X: Any) -> Array:
    """F = Σ αₜhₜ of a boosted model, the score that `LogisticCorrection` takes. F = 0 is undecided.

    Parameters
    ----------
    model : fitted AdaBoost, or scikit-learn's AdaBoostClassifier
        Of two classes; also as the last step of a pipeline, or as what a search found.
    X : rows
        Whatever the model takes.

    Returns
    -------
    ndarray of shape (n,)
        High values speak for the model's ``classes_[1]``.

    Notes
    -----
    scikit-learn divides its ``decision_function`` by the sum of its ``estimator_weights_``, so that
    it lies in [−2, 2] however many learners there are, and its weights are 2α. This is undone:
    F = ¼ · Σ estimator_weights_ · decision_function. Its ``predict_proba`` is a sigmoid of the
    divided score, too, and no logistic correction. Its perfect learners have α = ½.

    `LogisticCorrection` is for the exponential loss, also scikit-learn's: σ(2F). An
    ``AdaBoost(loss="log")`` has σ(F), which its ``predict_proba`` gives.

    Cost: that of the model's decision_function.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> X, y = make_classification(200, random_state=0)
    >>> model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> model.decision_function(X[:2]).round(3).tolist()
    [-1.19, -1.306]
    >>> boosting_score(model, X[:2]).round(3).tolist()
    [-3.399, -3.73]
    """
    booster, _ = last_model(model)
    if not isinstance(booster, AdaBoost | AdaBoostClassifier):
        raise InputError(
            "model must be a fitted AdaBoost, or an AdaBoostClassifier of scikit-learn, possibly "
            f"at the end of a pipeline, but {type(booster).__name__} came. Other models have no "
            "score of the form Σαh: calibrate their decision_function or predict_proba with a "
            "fitted method such as Platt."
        )
    check_is_fitted(booster)
    if len(booster.classes_) != 2:
        raise InputError(
            f"model must know two classes, but it knows {len(booster.classes_)}: the score Σαh is "
            "one number per row only for two."
        )
    ours = isinstance(booster, AdaBoost)
    scale = 1.0 if ours else 0.25 * float(booster.estimator_weights_.sum())
    return np.asarray(scale * model.decision_function(X), dtype=np.float64)
