"""Intervals around a model's probabilities, and what ACP makes of their spread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import qr, svd
from scipy.special import expit, logit, ndtri
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from calibrant.array_types import Array
from calibrant.data.columns import plain
from calibrant.data.door import Limit, Number, OneOf, check_lengths, read_weight
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.model_scores import last_model, model_scores
from calibrant.rules.base import RowInputs

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
    check_interval_model(model)
    rows: TrainingRows | None = None
    if train is not None:
        if not isinstance(train, (tuple, list)) or not 1 <= len(train) <= 3:
            several = isinstance(train, (tuple, list))
            came = f"{len(train)} values" if several else type(train).__name__
            raise InputError(
                "train must be the rows that the model was fitted on, as (X,), (X, y) or "
                f"(X, y, sample_weight), but {came} came."
            )
        inner, y, weight = (*train, None, None)[:3]
        n = _num_samples(inner)
        if y is not None:
            check_lengths(X=n, y=_num_samples(y))
        rows = inner, read_weight(weight, n)
    return Intervals.of(model, rows, level=level, scale=scale)(X)


# --- From a fitted model to a picklable function of rows ------------------------------------------


#: what to do where a model's intervals cannot be found
OWN_INTERVALS = (
    "Pass intervals of your own (lower= and upper=, or ACP(interval=...) with a function), or put "
    "the model into a BaggingClassifier, whose members are many copies of it."
)
#: the rows that a model was fitted on, and their weights
TrainingRows = tuple[Any, Array | None]


@dataclass(frozen=True, eq=False)
class Intervals:
    """A picklable function from rows to their intervals."""

    spread: Delta | Members
    level: float
    scale: str

    @classmethod
    def of(cls, model: Any, train: TrainingRows | None, *, level: float, scale: str) -> Intervals:
        """The function for a fitted model. It computes once what it needs of the training rows, and
        keeps none of them."""
        check_interval_model(model)
        if is_logistic(model):
            return cls(Delta.of(model, train), level, scale)
        last = last_model(model)[0]
        members: Any = getattr(last, "estimators_", None)
        several = isinstance(members, (list, tuple)) and len(members) > 1
        if several and all(hasattr(member, "predict_proba") for member in members):
            return cls(Members(model), level, scale)
        raise InputError(
            f"there is no rule for the intervals of {type(last).__name__}: it is "
            "neither a LogisticRegression nor made of members that give probabilities. "
            f"{OWN_INTERVALS}"
        )

    def __call__(self, X: Any) -> PredictionInterval:
        """The interval around the probability of each row."""
        estimate = self.spread(X)
        z = float(ndtri(0.5 + self.level / 2.0))
        p, sd = estimate.probability, estimate.sd
        lower, upper = p - z * sd, p + z * sd
        if self.scale == "logit":
            finite = np.isfinite(estimate.logit)
            centre = np.where(finite, estimate.logit, 0.0)
            sd = estimate.sd_logit
            lower = np.where(finite, expit(centre - z * sd), lower)
            upper = np.where(finite, expit(centre + z * sd), upper)
        lower = np.clip(lower, 0.0, p)  # rounding must not put the probability outside
        upper = np.clip(upper, p, 1.0)
        return PredictionInterval(p, lower, upper, sd, self.level, self.scale, self.spread.name)


@dataclass(frozen=True, eq=False)
class IntervalsOfModel:
    """A function from rows to intervals around the probability of the positive class."""

    intervals: Callable[[Any], Any]
    flip: bool

    def __call__(self, X: Any) -> RowInputs:
        interval = self.intervals(X)
        try:
            lower, upper = interval
        except (TypeError, ValueError) as wrong:
            raise InputError(
                "the function interval must return (lower, upper), but "
                f"{type(interval).__name__} came."
            ) from wrong
        if self.flip:
            lower, upper = 1.0 - np.asarray(upper), 1.0 - np.asarray(lower)
        return RowInputs(lower=lower, upper=upper)


@dataclass(frozen=True)
class NoInputs:
    """The `companion` of a calibrator that kept a map of the score: new rows need no inputs."""

    def __call__(self, X: Any) -> RowInputs:
        return RowInputs()


def check_interval_model(model: Any) -> None:
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


class Estimate(NamedTuple):
    """Probabilities, their logits (±inf for 0 and 1), and the standard deviations of both."""

    probability: Array
    logit: Array
    sd: Array
    sd_logit: Array


def probability(model: Any, X: Any) -> Array:
    """A model's probability of ``classes_[1]`` for each row."""
    return model_scores(model, X, model.classes_, 1, "predict_proba")


# --- The spread of an ensemble's members ----------------------------------------------------------


#: how far the mean of the members may be from the model's own probability
AGREEMENT = 1e-6


@dataclass(frozen=True, eq=False)
class Members:
    """The standard deviation over the members of a bagged model or a forest.

    It is the spread of **one** member, not of their average, which is what the model predicts.
    """

    name: ClassVar[str] = "spread"
    model: Any

    def __call__(self, X: Any) -> Estimate:
        p = probability(self.model, X)
        last, inner = last_model(self.model, X)
        mean, sd = _mean_and_sd(_member_probabilities(last, inner))
        off = np.abs(mean - p) > AGREEMENT
        if off.any():
            row = int(np.argmax(off))
            raise InputError(
                f"the probability of {type(last).__name__} must be the mean of its members', but "
                f"it is not ({p[row]:.4g} against {mean[row]:.4g} at row {row}): its "
                f"members are weighted or build on each other. {OWN_INTERVALS}"
            )
        # of the logit to first order: sd / (p(1−p)), and 0 where sd is 0
        slope = p * (1.0 - p)
        ratio = np.divide(sd, slope, out=np.full(len(p), np.inf), where=slope > 0.0)
        return Estimate(p, logit(p), sd, np.where(sd > 0.0, ratio, 0.0))


def _member_probabilities(model: Any, X: Any) -> Iterator[Array]:
    """Each member's probability of the model's second class."""
    # what the members call the model's second class: mostly its code 1, else its label
    told = {label for member in model.estimators_ for label in member.classes_.tolist()}
    own = set(model.classes_.tolist())
    if not (told <= {0, 1} or told <= own):
        raise InputError(
            f"the members of {type(model).__name__} must know its classes "
            f"{model.classes_.tolist()}, but they know {sorted(map(str, told))[:20]}. "
            f"{OWN_INTERVALS}"
        )
    second = 1 if told <= {0, 1} else model.classes_[1]
    bare = X if hasattr(X, "tocsr") else np.asarray(X)
    everything = slice(None)
    columns = getattr(model, "estimators_features_", [everything] * len(model.estimators_))
    for member, chosen in zip(model.estimators_, columns, strict=True):
        # members fitted inside an ensemble have mostly seen arrays, whatever the ensemble saw
        rows = X if hasattr(member, "feature_names_in_") else bare
        whole = isinstance(chosen, slice) or np.array_equal(chosen, np.arange(bare.shape[1]))
        p = np.asarray(member.predict_proba(rows if whole else rows[:, chosen]), dtype=np.float64)
        column = np.flatnonzero(member.classes_ == second)
        yield p[:, column[0]] if len(column) else np.zeros(len(p))


def _mean_and_sd(probabilities: Iterable[Array]) -> tuple[Array, Array]:
    """Mean and standard deviation (n − 1) of each row, by Welford's formula: memory O(rows)."""
    mean = square = np.zeros(1)
    count = 0
    for count, p in enumerate(probabilities, start=1):
        step = p - mean
        mean = mean + step / count
        square = square + step * (p - mean)
    return mean, np.sqrt(square / max(count - 1, 1))


# --- The uncertainty of a logistic regression by the delta method ---------------------------------


#: how many numbers there are in a block of rows
BLOCK = 1 << 21
#: the most columns: the factor holds the square of this many numbers
WIDEST = 10_000
#: a row that is this many standard deviations off the span of the training rows is outside it
OUTSIDE = 1e-8
EPS = float(np.finfo(float).eps)
#: the share of the L1 penalty under the older names of penalties
L1_SHARE = {"l2": 0.0, "l1": 1.0}


def is_logistic(model: Any) -> bool:
    """Whether a model, or the last step of its pipeline, is a logistic regression."""
    return isinstance(last_model(model)[0], LogisticRegression)


@dataclass(frozen=True, eq=False)
class Delta:
    """sd(η) = √(xᵀΣx) for the linear predictor η of a logistic regression, sd(p) = p(1−p)·sd(η).

    Σ = (X̃ᵀWX̃ + P)⁻¹, where W = w·p(1−p) and P is the Hessian of the penalty. A factor of Σ is
    kept. Its columns are scaled, and centred if there is a free intercept, so that units do not
    matter.
    """

    name: ClassVar[str] = "delta"
    model: Any
    constant: float  # the penalised column that stands for the intercept has this value; 0: none
    centre: Array
    scale: Array
    factor: Array
    unknown: Array  # directions that the training rows say nothing about
    base: float  # variance of the free intercept
    tolerance: float

    @classmethod
    def of(cls, model: Any, train: TrainingRows | None) -> Delta:
        if train is None:
            raise InputError(
                "the delta method needs the rows that the model was fitted on, since the fitted "
                "model does not hold its Fisher information. Pass train=(X_train,), or "
                "train=(X_train, y_train, sample_weight) if it was fitted with weights."
            )
        X, weight = train
        strength = _ridge_strength(last_model(model)[0])
        last, inner = last_model(model, X)
        eta = np.asarray(last.decision_function(inner), dtype=np.float64)
        w = expit(eta) * expit(-eta) * (1.0 if weight is None else weight)
        rows = _float_matrix(inner)
        free = last.fit_intercept and last.solver != "liblinear"
        constant = float(last.intercept_scaling) if last.fit_intercept and not free else 0.0
        p = rows.shape[1] + (constant != 0.0)
        total = float(w.sum())
        centre, scale = np.zeros(p), np.ones(p)
        if not total > 0.0:  # separated so far that the rows carry no information at all
            nothing = np.zeros((p, 0)), np.eye(p), np.inf, OUTSIDE
            return cls(model, constant, centre, scale, *nothing)
        w = w / total
        if free:
            for _ in range(2):  # the second round takes out the rounding of large means
                centre = centre + _weighted_power_sums(rows, constant, w, centre, power=1)
        scale = np.sqrt(_weighted_power_sums(rows, constant, w, centre, power=2))
        size = np.abs(centre)
        flat = scale <= 1e3 * EPS * size
        scale = np.where(flat, np.where(size > 0.0, size, 1.0), scale)
        R = np.zeros((0, p))
        root, row = np.sqrt(w), 0
        for block in _dense_blocks(rows, constant):
            z = (block - centre) / scale
            z[:, flat] = 0.0
            z *= root[row : row + len(z), None]
            row += len(z)
            R = qr(np.vstack((R, z)), mode="r", overwrite_a=True, check_finite=False)[0][:p]
        if strength > 0.0:
            penalty = np.diag(np.sqrt(strength / total) / scale)
            R = qr(np.vstack((R, penalty)), mode="r", check_finite=False)[0][:p]
        _, s, Vt = svd(R, full_matrices=True, check_finite=False)
        rounding = EPS * (p + 10) * (1.0 + float((size / scale).max(initial=0.0)))
        rank = int((s > (0.0 if strength else rounding * s.max(initial=0.0))).sum())
        factor = Vt[:rank].T / (s[:rank] * np.sqrt(total))
        base, tolerance = (1.0 / total if free else 0.0), max(OUTSIDE, 100.0 * rounding)
        return cls(model, constant, centre, scale, factor, Vt[rank:].T, base, tolerance)

    def __call__(self, X: Any) -> Estimate:
        last, inner = last_model(self.model, X)
        eta = np.asarray(last.decision_function(inner), dtype=np.float64)
        blocks = _dense_blocks(_float_matrix(inner), self.constant)
        sd_logit = np.sqrt(np.concatenate([self._variance(block) for block in blocks]))
        known = np.isfinite(sd_logit)
        slope = expit(eta) * expit(-eta)
        sd = np.where(known, slope * np.where(known, sd_logit, 0.0), np.inf)
        return Estimate(probability(self.model, X), eta, sd, sd_logit)

    def _variance(self, block: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # rows so far out that nothing is known
            z = (block - self.centre) / self.scale
            size = np.maximum(np.abs(z).max(axis=1, initial=0.0), 1.0)
            z = z / size[:, None]  # so that squares do not overflow
            variance: Array = self.base + np.square(size * np.linalg.norm(z @ self.factor, axis=1))
        if self.unknown.shape[1]:
            away = np.linalg.norm(z @ self.unknown, axis=1)
            variance[away > self.tolerance * (1.0 / size + np.linalg.norm(z, axis=1))] = np.inf
        return np.where(np.isnan(variance), np.inf, variance)


def _weighted_power_sums(X: Any, constant: float, w: Array, centre: Array, power: int) -> Array:
    """Σ w·(x − centre)^power over the rows, for each column."""
    total, row = np.zeros(len(centre)), 0
    for block in _dense_blocks(X, constant):
        total += w[row : row + len(block)] @ (block - centre) ** power
        row += len(block)
    return total


def _float_matrix(X: Any) -> Any:
    return check_array(X, accept_sparse="csr", dtype=np.float64)


def _dense_blocks(X: Any, constant: float) -> Iterator[Array]:
    """The rows as dense blocks. A column for the intercept is added if the intercept is
    penalised."""
    height = max(1, BLOCK // max(X.shape[1], 1))
    for first in range(0, X.shape[0], height):
        block = X[first : first + height]
        dense = block.toarray() if hasattr(block, "toarray") else block
        yield np.pad(dense, ((0, 0), (0, 1)), constant_values=constant) if constant else dense


def _ridge_strength(model: Any) -> float:
    """The factor 1/C of ½|β|²; a model for which the method is not right is refused."""
    # the penalty as older versions name it (None: no penalty); later ones use C and l1_ratio
    penalty = getattr(model, "penalty", "deprecated")
    share = L1_SHARE.get(penalty, _chosen_parameter(model, "l1_ratio"))
    penalised = penalty is not None and np.isfinite(_chosen_parameter(model, "C"))
    columns = model.coef_.shape[1]
    reasons = {
        "is not right with an L1 or elastic-net penalty, which has a kink at zero: coefficients "
        "set to zero would count as known exactly.": penalised and share > 0.0,
        "is not right with class_weight: the weighted likelihood is not that of the data, and its "
        "curvature not the information.": model.class_weight is not None,
        "needs the coefficients of one fit, but refit=False averages those of the folds.": (
            isinstance(model, LogisticRegressionCV) and not model.refit
        ),
        'is for the binary likelihood, but multi_class="multinomial" came.': (
            getattr(model, "multi_class", None) == "multinomial"
        ),
        f"keeps a matrix of columns × columns, which is too large for {columns} columns (at most "
        f"{WIDEST}).": columns > WIDEST,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(f"the delta method {reason} {OWN_INTERVALS}")
    return 0.0 if penalty is None else 1.0 / _chosen_parameter(model, "C")


def _chosen_parameter(model: Any, name: str) -> float:
    """The value of a parameter that was used; for LogisticRegressionCV the value that it chose."""
    own = f"{name}_" if isinstance(model, LogisticRegressionCV) else name
    value = np.ravel(getattr(model, own))[0]
    return 0.0 if value is None else float(value)
