"""AdaBoost with the exponential or the log loss, and all of its scores."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from calibrant.array_types import Array
from calibrant.boosting.learners import SMOOTHINGS, Learner, make_learner
from calibrant.boosting.rounds import VOTE_WEIGHTS, boost
from calibrant.data.labels import read_many
from calibrant.data.to_numpy import plain
from calibrant.data.validation import check_lengths, read_weight
from calibrant.data.weighing import weight_in_rows
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.estimators.base import WEIGHTS
from calibrant.estimators.fit_params import take
from calibrant.estimators.limits import Limit, Number, OneOf, check_parameters
from calibrant.losses import sigmoid

#: for each loss, what turns F into the probability at which its expectation is least (Friedman,
#: Hastie and Tibshirani 2000)
LINKS: Mapping[str, Callable[[Array], Array]] = {
    "exponential": lambda F: sigmoid(2.0 * F),
    "log": sigmoid,
}


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

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "votes": (OneOf(tuple(VOTE_WEIGHTS)),),
        "on_perfect": (OneOf(("continue", "stop")),),
        "resample": (OneOf((True, False)),),
        "loss": (OneOf(tuple(LINKS)),),
        "n_estimators": (Number(1, whole=True),),
        "criterion": (OneOf((None, "gini", "entropy", "log_loss")),),
        "max_depth": (OneOf((None,)), Number(1, whole=True)),
        "ccp_alpha": (Number(0.0),),
        "min_samples_leaf": (OneOf((None,)), Number(1, whole=True)),
        "leaf_smoothing": (OneOf(tuple(SMOOTHINGS)),),
        "m": (Number(0.0, open=True),),
        "weights": (WEIGHTS,),
    }

    classes_: NDArray[Any]
    estimators_: list[Any]
    alphas_: Array
    n_steps_: int
    stopped_: str | None

    def __init__(
        self,
        estimator: Any = "stump",
        *,
        votes: str = "hard",
        on_perfect: str = "continue",
        resample: bool = False,
        loss: str = "exponential",
        n_estimators: int = 100,
        criterion: str | None = None,
        max_depth: int | None = None,
        ccp_alpha: float = 0.0,
        min_samples_leaf: int | None = None,
        leaf_smoothing: str = "none",
        m: float = 2.0,
        weights: str = "importance",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.votes = votes
        self.on_perfect = on_perfect
        self.resample = resample
        self.loss = loss
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.ccp_alpha = ccp_alpha
        self.min_samples_leaf = min_samples_leaf
        self.leaf_smoothing = leaf_smoothing
        self.m = m
        self.weights = weights
        self.random_state = random_state

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
        classes, codes = read_many(y)
        _check_two(classes, len(classes))
        learner = make_learner(self, classes)
        X = learner.read(self, X, reset=True)
        check_lengths(X=_num_samples(X), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        if weight is None:
            weight = np.ones(len(codes))
        elif not weight.all():
            rows = np.flatnonzero(weight)
            X, codes, weight = take(X, rows), codes[rows], weight[rows]
            _check_two(classes[codes[:1]], len(np.unique(codes)))
        size = weight_in_rows(weight, self.weights)
        size = np.ones(len(codes)) if size is None else size
        done = boost(self, learner, X, codes, size)
        self.estimators_, self.alphas_, self.stopped_ = done
        self.n_steps_, self.classes_ = len(self.alphas_), classes
        # scores need what was fitted, and parameters may be changed later
        self._fitted = (learner, self.loss, int(self.n_estimators))
        if self.stopped_ is not None:
            warnings.warn(self.stopped_, CalibrationWarning, stacklevel=caller_level())
        return self

    # --- scores -----------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """F = Σ αₜhₜ, shape (n,)."""
        return self._last(X)[1]

    def raw_score(self, X: Any) -> Array:
        """f = Σ αₜ(1+hₜ)/2 / Σ αₜ, the weighted share of votes, in [0, 1] (½ without learners)."""
        return _share(*self._last(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities by the link of the loss, shape (n, 2), columns as ``classes_``."""
        return self._link(self._last(X)[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that F speaks for; the first in sorted order where F = 0."""
        F = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[(F > 0.0).astype(np.intp)]
        return labels

    def staged_decision_function(
        self, X: Any, *, steps: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """F after some steps of boosting, one array for each, in one pass over the learners.

        Parameters
        ----------
        X : rows
        steps : ascending whole numbers from 1 to ``n_estimators``, default: 1, …, ``n_steps_``
            A step gives what ``n_estimators=step`` would have given. Steps after boosting stopped
            give its last state.
        """
        return (F.copy() for _, F in self._stages(X, steps))

    def staged_raw_score(self, X: Any, *, steps: Sequence[int] | None = None) -> Iterator[Array]:
        """`raw_score` after some steps: see `staged_decision_function`."""
        return (_share(total, F) for total, F in self._stages(X, steps))

    def staged_predict_proba(
        self, X: Any, *, steps: Sequence[int] | None = None
    ) -> Iterator[Array]:
        """`predict_proba` after some steps: see `staged_decision_function`."""
        return (self._link(F) for _, F in self._stages(X, steps))

    def _last(self, X: Any) -> tuple[float, Array]:
        check_is_fitted(self, "alphas_")
        ((total, F),) = self._stages(X, [max(1, self.n_steps_)])
        return total, F

    def _stages(self, X: Any, steps: Sequence[int] | None) -> Iterator[tuple[float, Array]]:
        """Σα and F after each of the steps; the next one changes F in place."""
        check_is_fitted(self, "alphas_")
        learner, _, rounds = self._fitted
        wanted = range(1, self.n_steps_ + 1) if steps is None else _read_steps(steps, rounds)
        return self._accumulate(learner, learner.read(self, X, reset=False), wanted)

    def _accumulate(
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


def _share(total: float, F: Array) -> Array:
    """Eq. 4 of [1]_: Σ α(1+h)/2 / Σ α = (1 + F/Σα)/2."""
    if total == 0.0:
        return np.full(len(F), 0.5)
    return np.clip(0.5 + 0.5 * (F / total), 0.0, 1.0)


def _read_steps(steps: Any, rounds: int) -> list[int]:
    """Ascending whole numbers from 1 to ``rounds``."""
    given = list(steps) if isinstance(steps, Iterable) else [steps]
    whole = all(Number(1, high=rounds, whole=True).allows(step) for step in given)
    if not whole or any(b <= a for a, b in pairwise(given)):
        raise ParameterError(
            f"steps must be ascending whole numbers from 1 to n_estimators, that is {rounds}, but "
            f"{steps!r} came. A model boosted for more rounds gives all earlier steps, too."
        )
    return [int(step) for step in given]


def _check_two(classes: NDArray[Any], k: int) -> None:
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
