"""Intervals around a model's probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.data.to_numpy import plain
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.limits import Limit, Number, OneOf
from calibrant.local.delta_method import Delta
from calibrant.local.rule import RowInputs
from calibrant.local.spreads import (
    OWN_INTERVALS,
    Estimate,
    Members,
    Spread,
    TrainingRows,
    unwrap,
)

LEVEL = Number(0.0, 0.9999, open=True)
SCALE = OneOf(("probability", "logit"))


@dataclass(frozen=True, eq=False, repr=False)
class PredictionInterval(Frozen):
    """An interval around the probability of each row; unpacks as ``lower, upper``.

    Parameters
    ----------
    probability : array of shape (n,)
        The model's probability of ``classes_[1]``.
    lower, upper : arrays of shape (n,)
        The ends, inside [0, 1], around the probability.
    sd : array of shape (n,)
        The standard deviation that they come from, on their scale; infinite where the model's rows
        say nothing.
    level : float
    scale : {"probability", "logit"}
    method : {"delta", "spread"}

    Examples
    --------
    >>> p, low, high, sd = np.array([[0.5], [0.4], [0.7], [0.1]])
    >>> half = PredictionInterval(p, low, high, sd)
    >>> half
    PredictionInterval(1 row, 95% on the probability scale by delta, mean width 0.3)
    >>> lower, upper = half.other()
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.3], [0.6])
    """

    probability: Array
    lower: Array
    upper: Array
    sd: Array
    level: float = 0.95
    scale: str = "probability"
    method: str = "delta"

    def __iter__(self) -> Iterator[Array]:
        return iter((self.lower, self.upper))

    def other(self) -> PredictionInterval:
        """The same of the other class: [1 − upper, 1 − lower]."""
        ends = (1.0 - self.probability, 1.0 - self.upper, 1.0 - self.lower)
        return PredictionInterval(*ends, self.sd, self.level, self.scale, self.method)

    def __repr__(self) -> str:
        n = len(self.lower)
        width = float(np.mean(self.upper - self.lower)) if n else 0.0
        return (
            f"PredictionInterval({n} row{'' if n == 1 else 's'}, {100 * self.level:g}% on the "
            f"{self.scale} scale by {self.method}, mean width {width:.3g})"
        )


def prediction_interval(
    model: Any,
    X: Any,
    *,
    level: float = 0.95,
    scale: str = "probability",
    train: tuple[Any, ...] | None = None,
) -> PredictionInterval:
    """An interval around a model's probability of ``classes_[1]``, row by row.

    It says how well the model knows that probability, not what the row's outcome will be. It covers
    the chance in the choice of training rows only, not a model of the wrong form.

    Parameters
    ----------
    model : fitted classifier of two classes, with predict_proba
        A LogisticRegression, or a bagged model or forest. Pipelines and searches are looked into.
        Their earlier steps and choices are taken as given.
    X : rows, as the model takes them
    level : float in (0, 0.9999], default=0.95
        Probability that the normal distribution puts inside; z is its quantile, 1.96 for 0.95.
    scale : {"probability", "logit"}, default="probability"
        p ± z·sd(p) cut to [0, 1], or σ(logit p ± z·sd(logit p)), which needs no cutting and is
        the better interval near 0 and 1.
    train : (X,), (X, y) or (X, y, sample_weight)
        The rows that a LogisticRegression was fitted on; other models need none. Of these X is
        needed, and the weights if there were any; y may be None. A weight is a number of equal
        rows.

    Returns
    -------
    PredictionInterval
        With ``probability``, ``lower``, ``upper`` and ``sd``; unpacks as ``lower, upper``.

    Notes
    -----
    **Delta**, for a LogisticRegression. The linear predictor is η = xᵀβ, where x has a leading 1.
    Then sd(η) = √(xᵀΣx) and sd(p) = p(1−p)·sd(η), with Σ = (XᵀWX + P)⁻¹ and W = w·p(1−p) at the
    training rows. P is the Hessian of the penalty: 1/C for each coefficient, and 0 for the
    intercept. (The solver "liblinear" has 1/(C·intercept_scaling²) there.) Without penalty (C = ∞)
    Σ is the inverse Fisher information [1]_. With the L2 penalty, which is the logarithm of a
    Gaussian prior, it is the covariance of the posterior to second order [2]_. So it allows for the
    shrinkage, and its intervals cover the truth well on average over the rows [3]_. Weights count
    as repetitions: if yours are not, divide them by their mean. L1 and elastic-net penalties, class
    weights and more than two classes are refused. The C that a LogisticRegressionCV chose is taken
    as given.

    Columns are centred and scaled first, so that units do not matter. If columns are collinear and
    nothing is penalised, rows outside the span of the training rows get [0, 1]. Costs
    O(n_train·c² + n·c²) for c columns. Rows are worked on, and sparse ones made dense, in blocks.

    **Spread**, for bagged models and forests. sd(p) is that of the members' probabilities (divisor
    m − 1). This is the spread of **one** member. The model is their average and less uncertain than
    that, so the interval is wider than a confidence interval. Fully grown trees mostly say 0 or 1,
    so that theirs spans nearly everything. sd(logit p) = sd(p)/(p(1−p)). O(n) for each member.

    Other models can be put into a BaggingClassifier, whose members are copies of the model that are
    fitted to rows drawn with replacement: their spread is that of the bootstrap.

    References
    ----------
    .. [1] D. Hosmer, S. Lemeshow, R. Sturdivant, "Applied logistic regression", 2013,
       doi:10.1002/9781118548387.
    .. [2] D. MacKay, "The evidence framework applied to classification networks", 1992,
       doi:10.1162/neco.1992.4.5.720.
    .. [3] D. Nychka, "Bayesian confidence intervals for smoothing splines", 1988,
       doi:10.1080/01621459.1988.10478711.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> model = LogisticRegression().fit(X, y)
    >>> found = prediction_interval(model, X[[0, 2]], train=(X,))
    >>> found.probability.round(2).tolist()
    [0.13, 0.41]
    >>> lower, upper = found
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.0, 0.0], [0.49, 0.88])
    >>> prediction_interval(model, X, scale="logit", train=(X,))
    PredictionInterval(6 rows, 95% on the logit scale by delta, mean width 0.767)
    """
    limits: dict[str, tuple[Any, Limit]] = {
        "level": (level, LEVEL),
        "scale": (scale, SCALE),
    }
    for name, (value, limit) in limits.items():
        if not limit.allows(value):
            raise ParameterError(
                f"{name} of prediction_interval must be {limit}, but {value!r} came."
            )
    check_model(model)
    rows = None if train is None else TrainingRows.read(train)
    return Intervals.of(model, rows, level=level, scale=scale)(X)


# --- from a model to a function of rows ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Intervals:
    """A picklable function from rows to their intervals."""

    spread: Spread
    level: float
    scale: str

    @classmethod
    def of(cls, model: Any, train: TrainingRows | None, *, level: float, scale: str) -> Intervals:
        """What an interval needs is computed here, once; the training rows are not kept."""
        check_model(model)
        kind = next((kind for kind in (Delta, Members) if kind.suits(model)), None)
        if kind is None:
            raise InputError(
                f"there is no rule for the intervals of {type(unwrap(model)[0]).__name__}: it is "
                "neither a LogisticRegression nor made of members that give probabilities. "
                f"{OWN_INTERVALS}"
            )
        return cls(kind.of(model, train), level, scale)

    def __call__(self, X: Any) -> PredictionInterval:
        return ends(self.spread(X), self.level, self.scale, self.spread.name)


@dataclass(frozen=True)
class NoInputs:
    """A map of the score needs nothing else."""

    def __call__(self, X: Any) -> RowInputs:
        return RowInputs()


@dataclass(frozen=True, eq=False)
class CustomIntervals:
    """A function of the user's own for the intervals of a model."""

    model: Any
    interval: Callable[[Any, Any], Any]

    def __call__(self, X: Any) -> tuple[Any, Any]:
        found = self.interval(self.model, X)
        try:
            lower, upper = found
        except (TypeError, ValueError) as wrong:
            raise InputError(
                "the function interval must return (lower, upper), but "
                f"{type(found).__name__} came."
            ) from wrong
        return lower, upper


@dataclass(frozen=True, eq=False)
class IntervalsOfModel:
    """A function from rows to intervals around the probability of the positive class."""

    intervals: Callable[[Any], Any]
    flip: bool

    def __call__(self, X: Any) -> RowInputs:
        lower, upper = self.intervals(X)
        if self.flip:
            lower, upper = 1.0 - np.asarray(upper), 1.0 - np.asarray(lower)
        return RowInputs(lower=lower, upper=upper)


def ends(estimate: Estimate, level: float, scale: str, method: str) -> PredictionInterval:
    """The interval of level ``level`` around each estimate."""
    z = float(ndtri(0.5 + level / 2.0))
    p = estimate.probability
    lower, upper, sd = p - z * estimate.sd, p + z * estimate.sd, estimate.sd
    if scale == "logit":
        finite = np.isfinite(estimate.logit)
        centre = np.where(finite, estimate.logit, 0.0)
        sd = estimate.sd_logit
        lower = np.where(finite, expit(centre - z * sd), lower)
        upper = np.where(finite, expit(centre + z * sd), upper)
    lower = np.clip(lower, 0.0, p)  # rounding must not put the probability outside
    upper = np.clip(upper, p, 1.0)
    return PredictionInterval(p, lower, upper, sd, level, scale, method)


def check_model(model: Any) -> None:
    """Refuse what is not a fitted classifier of two classes that gives probabilities."""
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "an interval is one around a probability, so the model must have predict_proba, but "
            f"{name} has not. Calibrate its decision_function to probabilities first, or pass "
            "intervals of your own on the scale of its scores."
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise InputError(
            f"the model must be a fitted classifier, but this {name} has no classes_. Call fit "
            "first."
        )
    if len(classes) != 2 or np.ndim(classes[0]):
        raise InputError(
            f"the model must tell two classes apart, but {name} knows "
            f"{[plain(c) for c in classes][:20]}."
        )
