"""Other base rates: the adjustment of probabilities, and the rate estimated without labels.

A row's likelihood is m = Σ_c π'_c · p_c / π_c, up to a factor that has no π' in it. Its logarithm
is concave in π', so that the optimum, which is the fixed point of the EM algorithm, is found by
Newton's method in a few passes over the rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.data.columns import to_matrix
from calibrant.data.documents import brief, recorded_entries
from calibrant.data.door import Number, check_distributions, read_probabilities, read_weight
from calibrant.data.frozen import Frozen
from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.fitting.fitted import Fitted, refuse_models
from calibrant.losses import LARGEST, logit, shift_odds, sigmoid
from calibrant.metrics.chance import normal_quantile
from calibrant.metrics.tables import check_number
from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    shown_percent,
)
from calibrant.rules.base import Map, VectorMap

#: a value and its slope, as functions of the logit of a rate
Sloped = Callable[[float], tuple[float, float]]

#: between these logits a rate has digits, and ratios to it are finite; beyond, it counts as 0 or 1
LEAST, MOST = -700.0, 36.0
#: Newton's method on the logit scale: a step below the first number is the last (what is left is
#: about its square); the longest step; and the most steps
CLOSE, FARTHEST, ROUNDS = 1e-10, 3.0, 200
#: rates of classes are found once the gradient, per unit of weight, is below this; the most rounds
GRADIENT, SIMPLEX_ROUNDS = 1e-13, 500
#: classes that nobody can tell apart make the Hessian singular, so at least this share of the trace
#: is added to its diagonal; and the factor by which that grows or shrinks
RIDGE, MORE = 1e-13, 100.0
#: a step must bring this share of the gain that it promises; a gain below the second number is
#: hidden by rounding; after the third number of such steps the search ends
ARMIJO, HIDDEN, HIDDEN_STEPS = 1e-4, 1e-12, 3


# --- one rate -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BinaryLikelihood:
    """The log-likelihood of a rate t of positives: Σ w·ln(t·r + (1 − t)·q), with r = p/π and q = (1
    − p)/(1 − π)."""

    r: Array
    q: Array
    w: Array

    def at(self, s: float) -> tuple[float, float, float]:
        """The log-likelihood at the rate t = σ(s), its slope by t, and minus its second
        derivative."""
        t, u = _sigmoid_pair(s)
        m = u * self.q + t * self.r
        with np.errstate(over="ignore"):
            ratio = (self.r - self.q) / m
            return float(self.w @ np.log(m)), float(self.w @ ratio), float(self.w @ ratio**2)

    def __call__(self, s: float) -> tuple[float, float]:
        """The log-likelihood at the rate σ(s), and its slope by s."""
        value, slope, _ = self.at(s)
        return value, slope * math.prod(_sigmoid_pair(s))


def rate_of_logit(s: float) -> float:
    """The rate σ(s); exactly 0 and 1 at the ends of the search.

    >>> rate_of_logit(LEAST), rate_of_logit(0.0), rate_of_logit(MOST)
    (0.0, 0.5, 1.0)
    """
    return _sigmoid_pair(s)[0] if LEAST < s < MOST else float(s > 0.0)


def most_likely_logit(two: BinaryLikelihood, start: float) -> tuple[float, int]:
    """The logit of the most likely rate, and how many evaluations that took."""
    evaluations = 0

    def slope(s: float) -> tuple[float, float]:
        nonlocal evaluations
        evaluations += 1
        _, first, second = two.at(s)
        return first, -second * math.prod(_sigmoid_pair(s))

    if not slope(LEAST)[0] > 0.0:
        return LEAST, evaluations
    if not slope(MOST)[0] < 0.0:
        return MOST, evaluations
    return _root_of_falling(slope, LEAST, MOST, start), evaluations


def rate_interval(
    likelihood: Sloped, s: float, curve: tuple[float, float], drop: float
) -> tuple[float, float]:
    """The rates on both sides of the best at which the log-likelihood has fallen by ``drop``.

    ``curve`` is the slope by the rate, and minus the curvature, from which the search begins. An
    end is 0 or 1 where ln L is not yet so low there.
    """
    target = likelihood(s)[0] - drop

    def above(x: float, sign: float = 1.0) -> tuple[float, float]:
        value, slope = likelihood(x)
        return sign * (value - target), sign * slope

    def crosses(beyond: float, border: float) -> bool:
        # ln L falls on its way to the border, where it is costly to evaluate
        return above(beyond)[0] < 0.0 or above(border)[0] < 0.0

    guess, beyond = (_guessed_ends(s, curve, fall) for fall in (drop, 4.0 * drop))
    below = partial(above, sign=-1.0)
    low = _root_of_falling(below, LEAST, s, guess[0]) if crosses(beyond[0], LEAST) else LEAST
    high = _root_of_falling(above, s, MOST, guess[1]) if crosses(beyond[1], MOST) else MOST
    return rate_of_logit(low), rate_of_logit(high)


def logit_of(rate: float) -> float:
    """The logit of a rate, cut to the ends of the search."""
    return min(max(float(logit(np.array(rate))), LEAST), MOST)


def _guessed_ends(s: float, curve: tuple[float, float], drop: float) -> tuple[float, float]:
    """A first guess of the interval's ends, as logits, by a parabola."""
    t = _sigmoid_pair(s)[0]
    slope, bend = curve
    if not 0.0 < bend < 1e200:
        return s - 1.0, s + 1.0
    half = math.sqrt(slope * slope + 2.0 * bend * drop)
    low, high = t - (half - slope) / bend, t + (half + slope) / bend
    ends = logit(np.array([max(low, t / 10), min(high, 1.0 - (1.0 - t) / 10)])).tolist()
    return ends[0], ends[1]


def _sigmoid_pair(s: float) -> tuple[float, float]:
    """σ(s) and 1 − σ(s), each to full precision."""
    t, u = sigmoid(np.array([s, -s])).tolist()
    return t, u


def _root_of_falling(function: Sloped, low: float, high: float, start: float) -> float:
    """The zero of a falling function, by Newton's method within a bracket.

    The bracket is halved whenever Newton would leave it or its steps grow.
    """
    x = start if low < start < high else (low + high) / 2
    last = math.inf
    for _ in range(ROUNDS):
        value, slope = function(x)
        low, high = (x, high) if value > 0.0 else (low, x)
        move = min(max(-value / slope, -FARTHEST), FARTHEST) if slope < 0.0 else math.nan
        if abs(move) <= CLOSE:
            return x + move
        if not (low < x + move < high and abs(move) <= last):  # also if it is NaN
            move = (low + high) / 2 - x
        last = abs(move)
        x += move
        if high - low <= CLOSE:
            break
    return x


# --- several classes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassLikelihood:
    """The log-likelihood of the rates of k classes."""

    ratio: Array
    w: Array

    def most_likely(self, start: Array) -> tuple[Array, int]:
        """The most likely rates, and how many rounds the search took.

        With −ln L + Σt in place of −ln L the optimum sums to one by itself, so that t ≥ 0 is the
        only condition left (Kim, Carbonetto, Stephens and Anitescu 2020). Newton's method runs on
        the rates that are not held at 0, projected (Bertsekas 1982). A step is halved until it
        brings what it should.
        """
        t, ridge, hidden, rounds = start, RIDGE, 0, 0
        while rounds < SIMPLEX_ROUNDS:
            rounds += 1
            v = self.ratio / (self.ratio @ t)[:, None]
            gradient = 1.0 - self.w @ v
            if np.abs(np.minimum(gradient, t)).max() <= GRADIENT or hidden == HIDDEN_STEPS:
                break
            # rates that are held near 0 go straight to 0
            free = ~((gradient > 0.0) & (t <= np.minimum(1e-9, gradient)))
            part = v[:, free]
            hessian = (part * self.w[:, None]).T @ part
            hessian[np.diag_indices_from(hessian)] += ridge * hessian.trace()
            step = -t
            step[free] = -np.linalg.solve(hessian, gradient[free])
            if gradient @ step > -HIDDEN:
                t, hidden = np.maximum(t + step, 0.0), hidden + 1
            else:
                t, length = self._shortened_step(t, gradient, step)
                ridge = max(ridge / MORE, RIDGE) if length == 1.0 else ridge * MORE
        return t / t.sum(), rounds

    def _shortened_step(self, t: Array, gradient: Array, step: Array) -> tuple[Array, float]:
        """The rates after the longest of ten steps that helps enough, and its length; length 0 if
        none does."""
        value = self._objective(t)
        for halvings in range(10):
            length = 0.5**halvings
            new = np.maximum(t + length * step, 0.0)
            promise = float(gradient @ (new - t))
            if promise <= 0.0 and self._objective(new) <= value + ARMIJO * promise:
                return new, length
        return t, 0.0

    def _objective(self, t: Array) -> float:
        """What is minimised: Σt − ln L."""
        with np.errstate(divide="ignore"):
            return float(t.sum() - self.w @ np.log(self.ratio @ t))


class ProfileLikelihood:
    """The log-likelihood of one class's rate, with the likeliest rates for all others."""

    def __init__(self, classes: ClassLikelihood, column: int, size: float, rates: Array) -> None:
        self.own = classes.ratio[:, column]
        self.rest = np.delete(classes.ratio, column, axis=1)
        self.w, self.size = classes.w, size
        self.shares = _off_the_border(np.delete(rates, column))

    def __call__(self, s: float) -> tuple[float, float]:
        t, u = _sigmoid_pair(s)
        ratio = t * self.own[:, None] + u * self.rest
        shares, _ = ClassLikelihood(ratio, self.w).most_likely(self.shares)
        self.shares = _off_the_border(shares)  # where the next search starts
        m = ratio @ shares
        slope = self.w @ ((self.own - self.rest @ shares) / m)
        return self.size * float(self.w @ np.log(m)), self.size * float(slope) * t * u

    def curve(self, s: float) -> tuple[float, float]:
        """The slope and minus the curvature by the rate, if the others' shares stay."""
        return BinaryLikelihood(self.own, self.rest @ self.shares, self.size * self.w).at(s)[1:]


def _off_the_border(shares: Array) -> Array:
    """The shares with those of 0 moved above 0, since a search cannot start there."""
    off = shares + 1e-9 * max(float(shares.sum()), 1e-9)
    return np.asarray(off / off.sum())


# --- Probabilities and calibrators for data with another base rate --------------------------------


#: what is given back as it came
Moved = TypeVar("Moved", Map, Fitted)


@overload
def adjust_prior(
    calibrator_or_p: Moved,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    target_mean: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Moved: ...
@overload
def adjust_prior(
    calibrator_or_p: Any,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    target_mean: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Any: ...
def adjust_prior(
    calibrator_or_p: Any,
    *,
    train_rate: Any = None,
    target_rate: Any = None,
    target_mean: Any = None,
    kept: Any = None,
    positive_weight: Any = None,
) -> Any:
    """Move calibrated probabilities, or what makes them, to data with another base rate.

    logit p' = logit p + logit π' − logit π, where π is the rate of positives at which p is
    calibrated, and π' the rate where p' is used. For several classes p'_c ∝ p_c · π'_c / π_c. This
    is exact if only the rates differ: within each class, rows must be alike in both places.

    Parameters
    ----------
    calibrator_or_p : fitted calibrator, Fitted, Map, or array-like of probabilities
        Probabilities are (n,) or (n, 1) of the positive class, or (n, k) of all classes. If rates
        are numbers, the second of two columns is the positive class. For a `CalibratedClassifier`
        pass what it predicts, or its ``to_fitted()``.
    train_rate, target_rate : number, or one for each class
        π and π', rates of ``pos_label``. By default ``train_rate`` is the rate of the rows to which
        the calibrator was fitted, or the rate after the last adjustment or update (`Drift.update`).
        ``target_rate`` may be the result of `estimate_rate` or `estimate_rates`, which knows its
        train_rate. For several classes, or labels that do not exclude each other, rates are arrays
        in the order of the classes, or dictionaries by label.
    target_mean : number, or MeanShift
        Instead of rates: what the mean of the probabilities shall be, to the last digits. For a
        calibrator or a map, whose probabilities depend on the rows, pass the result of
        `shift_to_mean` for the rows of the portfolio.
    kept : number, pair, or one for each class
        Instead of rates: the share of the negatives that was kept when the training rows were
        undersampled, or the shares of (negatives, positives), or of each class.
    positive_weight : number, or one for each label
        Instead of rates: by what the weight of positives was multiplied in training, such as
        XGBoost's ``scale_pos_weight``.

    Returns
    -------
    ndarray, Map or Fitted
        Probabilities of the same shape, a map for a map, and a `Fitted` for all else: the same
        labels, and a record of this and all earlier adjustments in ``provenance["prior"]``.

    Notes
    -----
    Costs O(n) for n probabilities and O(m) for a map of m parameters. An intercept or the values of
    steps change, or a last step on the logit scale is added. So the map is saved and exported like
    any other. A last step takes a probability of 1, which has no logit, as 1 − 2⁻⁵³; elsewhere 0
    and 1 stay what they are. Averages of several distributions, and codes combined other than by
    ``"normalize"``, have no such map: adjust their probabilities. With ``"normalize"``, a row to
    which every column gives 0 keeps the uniform distribution.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002, https://doi.org/10.1162/089976602753284446.
    A. Dal Pozzolo et al., "Calibrating probability with undersampling for unbalanced
    classification", 2015, https://doi.org/10.1109/SSCI.2015.33.

    Examples
    --------
    >>> import calibrant as cal
    >>> adjust_prior([0.2, 0.5], train_rate=0.5, target_rate=0.1).round(4).tolist()
    [0.027, 0.1]
    >>> adjust_prior([0.5], kept=0.1).round(4).tolist()
    [0.0909]
    >>> adjust_prior([0.02, 0.05, 0.2], target_mean=0.1).round(4).tolist()
    [0.0226, 0.0564, 0.221]
    >>> c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> f = adjust_prior(c, target_rate=0.1)
    >>> f.provenance["prior"][0]["train_rate"], f.provenance["prior"][0]["target_rate"]
    (0.5, 0.1)
    """
    if isinstance(calibrator_or_p, (type, ScoreTable)):
        came = "a ScoreTable came. Move its probabilities: adjust_prior(table.scores, ...)."
        if isinstance(calibrator_or_p, type):
            came = f"the class {calibrator_or_p.__name__} came. Fit one first."
        raise InputError(
            "only a fitted calibrator, what load returns, a map, or probabilities can be moved to "
            f"another rate, but {came}"
        )
    given = GivenShift(train_rate, target_rate, target_mean, kept, positive_weight)
    if isinstance(calibrator_or_p, Map):
        return _adjust_map(calibrator_or_p, read_prior_shift(given, _kind_of_map(calibrator_or_p)))
    if hasattr(calibrator_or_p, "to_fitted"):
        return _adjust_fitted(calibrator_or_p, given)
    return _adjust_probabilities(calibrator_or_p, given)


def _adjust_map(map_: Map, shift: Shift) -> Map:
    """The map after a shift."""
    if (shift.factor == 1.0).all():
        return map_
    return map_.shifted(shift.factor)


def _kind_of_map(
    map_: Map, labels: tuple[Any, ...] | None = None, rate: Any = None
) -> ProbabilityKind:
    """What the probabilities of a map are: of one class, of several, or of labels."""
    if not isinstance(map_, VectorMap):
        return ProbabilityKind(rate=rate)
    return ProbabilityKind(map_.n_classes, map_.distribution, labels, rate)


def _adjust_fitted(calibrator: Any, given: GivenShift) -> Fitted:
    """The fitted calibrator after a shift, with a record of it."""
    refuse_models(calibrator)
    fitted: Fitted = calibrator.to_fitted()
    if not isinstance(fitted.rule, Map):
        raise InputError(
            f"{fitted.method} is no function of the score alone, so that it cannot be adjusted as "
            "a map. Adjust what it gives: adjust_prior(calibrator.predict_proba(...), ...)."
        )
    kind = _kind_of_map(fitted.map, fitted.classes, known_base_rate(fitted))
    shift = read_prior_shift(given, kind)
    facts = fitted.provenance
    return replace(
        fitted,
        rule=_adjust_map(fitted.map, shift),
        provenance={**facts, "prior": [*recorded_entries(facts, "prior"), shift.record]},
    )


def _adjust_probabilities(p: Any, given: GivenShift) -> Array:
    """Probabilities after a shift."""
    matrix = to_matrix(p, "p")
    columns = matrix.shape[1] if matrix.ndim == 2 else 1
    target = getattr(given.target_rate, "rate", given.target_rate)
    rates_of_classes = target is not None and np.ndim(target) > 0
    if columns > 2 or (columns == 2 and rates_of_classes):
        shift = read_prior_shift(given, ProbabilityKind(columns, distribution=True))
        return shift_class_probabilities(read_distributions(matrix), shift.factor)
    clean = read_probabilities(matrix)
    if given.target_mean is not None and not isinstance(given.target_mean, MeanShift):
        given = given._replace(target_mean=shift_to_mean(clean, given.target_mean))
    moved = shift_odds(clean, read_prior_shift(given, ProbabilityKind()).factor)
    return np.column_stack((1.0 - moved, moved)) if columns == 2 else moved.reshape(matrix.shape)


# --------------------------------------------------------------------------------------------------
# What a calibrator's provenance says of the rows of its fit, and of what was done to it later


FOLLOWS = (
    "slope and shape: not tested, since an isotonic map follows the rows of its fit so closely "
    "that its steps are too far apart, which would look like a change. To test them, compare with "
    "old rows: check_drift(old, new, calibrator=...)."
)
#: what a fit remembers of its rows
FACTS = ("weight", "positive_weight", "effective_size")


def fit_information(facts: Mapping[str, Any]) -> float | None:
    """How much the rows of the fit, or of the last update, tell of an intercept: n·rate·(1 − rate).
    None where it is not known.

    An update has learned its shift from its own rows, however many the fit had.
    """
    weight, ones, size = (positive_number(facts.get(name)) for name in FACTS)
    if weight is None or ones is None or size is None or ones > weight:
        return None
    found = [(size, ones / weight)]
    for note in recorded_entries(facts, "updated")[-1:]:
        told: Mapping[str, Any] = note if isinstance(note, Mapping) else {}
        later, rate = positive_number(told.get("effective_size")), told.get("rate")
        if later is not None and rate is not None and Number(0.0, 1.0).allows(rate):
            found.append((later, float(rate)))
    # half a row more in each class: one may have been absent
    smoothed = [(n, (n * rate + 0.5) / (n + 1.0)) for n, rate in found]
    return min(max(n, 1.0) * rate * (1.0 - rate) for n, rate in smoothed)


def positive_number(value: Any) -> float | None:
    """The value as a float if it is a number above 0, else None."""
    return float(value) if Number(0.0, open=True).allows(value) else None


def known_base_rate(fitted: Fitted) -> Any:
    """The base rate of a calibrator's probabilities; None where it is not known."""
    facts, many = fitted.provenance, isinstance(fitted.map, VectorMap)
    adjusted, updated = recorded_entries(facts, "prior"), recorded_entries(facts, "updated")
    last, update = (entries[-1] if entries else None for entries in (adjusted, updated))
    if isinstance(update, Mapping) and update.get("after_adjustments") == len(adjusted):
        last = update  # see `Drift.update`
    try:
        if last is not None:
            rate = np.asarray(last["rate"], dtype=np.float64)
        elif many:
            weights = np.asarray(facts["class_weights"], dtype=np.float64)
            rate = weights / (weights.sum() or 1.0)
        else:
            rate = np.asarray(float(facts["positive_weight"]) / float(facts["weight"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):  # there are no such numbers
        return None
    fits = rate.ndim == int(many) and bool(((rate > 0.0) & (rate < 1.0)).all())
    return rate if fits else None


# --- The base rate of unlabelled rows, from their calibrated probabilities ------------------------


def estimate_rate(
    p: ArrayLike | ScoreTable,
    *,
    train_rate: float,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> RateEstimate:
    """The rate of positives among unlabelled rows, by maximum likelihood.

    It is the rate π' that maximises Σ w·ln(π'·p/π + (1 − π')·(1 − p)/(1 − π)), if p is calibrated
    at the rate π. It supposes that only the rates differ: within each class, rows must be alike in
    training and here. If instead other rows come (more old customers, say) and p stays right, take
    the mean of p: this estimate would then be wrong.

    Parameters
    ----------
    p : array-like of probabilities, or ScoreTable
        Calibrated probabilities of the positive class, of new rows. The scores of a table must be
        such probabilities; its weights count, its labels do not. See `score_table` for frames and
        files of any size.
    train_rate : float
        π: the rate of positives at which p is calibrated.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0. The interval counts the rows as (Σw)² / Σw².
    level : float, default=0.95
        The confidence of the interval. It holds the rates whose likelihood is not too far below
        the largest.

    Returns
    -------
    RateEstimate
        With ``rate``, ``low`` and ``high``; `adjust_prior` takes it as ``target_rate``.

    Warns
    -----
    CalibrationWarning
        Where all p are equal, since they hardly tell anything.

    Notes
    -----
    The likelihood is concave, and its optimum the fixed point of the EM algorithm of Saerens et al.
    Newton's method finds it in about six passes, each O(n), where EM needs tens to thousands. The
    rate is 0 or 1 if the likelihood is largest there. The interval does not allow for the error of
    p itself: fit the calibrator to many more rows than are needed here.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002, https://doi.org/10.1162/089976602753284446.
    A. Alexandari, A. Kundaje and A. Shrikumar, "Maximum likelihood with bias-corrected calibration
    is hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> p = [0.1] * 80 + [0.9] * 20  # in training, half were positive
    >>> print(estimate_rate(p, train_rate=0.5))
    rate 0.125 (0.03719 to 0.2318 at 95 %) among rows of weight 100; 0.5 in training
    """
    train = float(check_base_rates(train_rate, "train_rate", ProbabilityKind()))
    z = normal_quantile(check_number("level", level, 0.0, 1.0))
    if not isinstance(p, ScoreTable):
        clean = read_probabilities(p)
        weight = _row_weights(sample_weight, len(clean))
        present = weight > 0.0
        clean, weight, size = clean[present], weight[present], _size_of_weights(weight)
    elif sample_weight is not None:
        raise InputError("sample_weight must not be given with a table, which has its own weights.")
    elif not p:
        raise InputError("the table must hold at least one probability, but it is empty.")
    else:
        size = effective_size(p)
        clean, weight = read_probabilities(p.scores), p.weight
    if clean.min() == clean.max():
        _warn_of_equal_rows(f"{clean[0]:g}")
    total = float(weight.sum())
    ratios = clean / train, (1.0 - clean) / (1.0 - train)
    two = BinaryLikelihood(*ratios, weight * (size / total))
    if (two.r == two.q).all():
        return RateEstimate(train, 0.0, 1.0, train, level, total, size, 0)
    s, iterations = most_likely_logit(two, logit_of(float(weight @ clean) / total))
    rate = rate_of_logit(s)
    low, high = rate_interval(two, s, two.at(s)[1:], z * z / 2)
    ends = min(low, rate), max(high, rate)
    return RateEstimate(rate, *ends, train, level, total, size, iterations)


def estimate_rates(
    p: ArrayLike,
    *,
    train_rate: Any,
    sample_weight: ArrayLike | None = None,
    level: float | None = 0.95,
) -> RateEstimates:
    """The rate of each class among unlabelled rows, by maximum likelihood.

    They are the rates π' that maximise Σ w·ln Σ_c π'_c·p_c/π_c; all else is as in `estimate_rate`.

    Parameters
    ----------
    p : array-like of shape (n, k)
        Calibrated distributions over the classes, of new rows.
    train_rate : array-like of shape (k,)
        π: the rates of the classes at which p is calibrated, in the order of the columns.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0.
    level : float or None, default=0.95
        The confidence of the interval of each class. None for no intervals.

    Returns
    -------
    RateEstimates

    Warns
    -----
    CalibrationWarning
        Where all rows are equal.

    Notes
    -----
    A round of Newton's method costs O(n·k²), and about ten are needed. The interval of a class
    holds the rates whose likelihood, with the best rates of all other classes, is not too far below
    the largest. All intervals together cost about 10·k times as much as the rates.

    Examples
    --------
    >>> p = [[0.8, 0.1, 0.1]] * 60 + [[0.1, 0.8, 0.1]] * 30 + [[0.1, 0.1, 0.8]] * 30
    >>> estimate_rates(p, train_rate=[1 / 3, 1 / 3, 1 / 3]).rate.round(4).tolist()
    [0.5714, 0.2143, 0.2143]
    """
    clean = read_distributions(p)
    n, k = clean.shape
    train = check_base_rates(train_rate, "train_rate", ProbabilityKind(k, distribution=True))
    z = None if level is None else normal_quantile(check_number("level", level, 0.0, 1.0))
    weight = _row_weights(sample_weight, n)
    if (clean == clean[0]).all():
        _warn_of_equal_rows(str(clean[0].tolist()[:6]))
    total, size = float(weight.sum()), _size_of_weights(weight)
    present = weight > 0.0
    classes = ClassLikelihood(clean[present] / train, weight[present] / total)
    rates, rounds = classes.most_likely(train / train.sum())
    low = high = None
    if z is not None:
        ends = np.empty((k, 2))
        for column, rate in enumerate(rates.tolist()):
            s, profile = logit_of(rate), ProfileLikelihood(classes, column, size, rates)
            ends[column] = rate_interval(profile, s, profile.curve(s), z * z / 2)
        low, high = np.minimum(ends[:, 0], rates), np.maximum(ends[:, 1], rates)
    return RateEstimates(rates, low, high, train, level, total, size, rounds)


# --- The shift at which the mean of a portfolio is what is wanted ---------------------------------


def shift_to_mean(
    p: ArrayLike | ScoreTable, target_mean: float, *, sample_weight: ArrayLike | None = None
) -> MeanShift:
    """The shift on log-odds at which the mean of probabilities is ``target_mean``, exactly.

    It is the δ with Σ w·σ(logit p + δ) = target_mean·Σw: the central tendency of a bank's
    portfolio, say. Every row's odds are multiplied by e^δ, so that ranks stay. `adjust_prior` with
    a ``target_rate`` is right where the base rate of the rows changes; this one takes no rate of
    the training, and promises nothing but the mean.

    Parameters
    ----------
    p : array-like of probabilities, or ScoreTable
        Probabilities of the portfolio's rows, or a table whose scores they are.
    target_mean : float
        The mean that is wanted: above the share of rows with p = 1, and below that of p > 0.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0, such as exposures.

    Returns
    -------
    MeanShift
        The shift, and the probabilities before and after in figures; `adjust_prior` takes it as
        ``target_mean``, and keeps it in ``provenance["prior"]``.

    Notes
    -----
    The mean rises with δ, so that there is one solution; Newton's method inside a bracket finds it
    in about six passes, each O(n). Probabilities of 0 and 1 stay.

    Examples
    --------
    >>> print(shift_to_mean([0.01, 0.02, 0.05], 0.031))
             before   after
    ───────  ──────  ──────
    mean     2.67 %   3.1 %
    least       1 %  1.17 %
    median      2 %  2.33 %
    largest     5 %   5.8 %
    shift of log-odds 0.1569, odds times 1.17
    """
    if isinstance(p, ScoreTable):
        if sample_weight is not None:
            raise InputError(
                "sample_weight must not be given with a table, which has its own weights."
            )
        clean, weight = read_probabilities(p.scores), p.weight
    else:
        clean = read_probabilities(p)
        weight = _row_weights(sample_weight, len(clean))
        clean, weight = clean[weight > 0.0], weight[weight > 0.0]
    target = float(_read_rates(target_mean, "target_mean", (0,), ProbabilityKind(), RATES))
    share = weight / float(weight.sum())
    least, most = float(share[clean == 1.0].sum()), float(share[clean > 0.0].sum())
    if not least < target < most:
        raise ParameterError(
            f"target_mean must lie between {least:g} and {most:g}, the shares of rows with p = 1 "
            f"and with p > 0, which no shift changes, but {target:g} came."
        )

    def lacking(shift: float) -> tuple[float, float]:
        moved = shift_odds(clean, math.exp(shift))
        return target - float(share @ moved), -float(share @ (moved * (1.0 - moved)))

    near = float(logit(np.array(target)) - logit(np.array(float(share @ clean))))
    shift = _root_of_falling(lacking, -FARTHEST_SHIFT, FARTHEST_SHIFT, near)
    after = shift_odds(clean, math.exp(shift))
    figures = (_summary_figures(values, share) for values in (clean, after))
    return MeanShift(shift, math.exp(shift), target, *figures)


def _summary_figures(p: Array, share: Array) -> dict[str, float]:
    """Mean, least, median and largest of some probabilities."""
    order = np.argsort(p, kind="stable")
    middle = int(np.searchsorted(np.cumsum(share[order]), 0.5 - 1e-12))
    ends = float(p[order[0]]), float(p[order[min(middle, len(p) - 1)]]), float(p[order[-1]])
    return dict(zip(("mean", "least", "median", "largest"), (float(share @ p), *ends), strict=True))


# --- reading --------------------------------------------------------------------------------------


def _row_weights(sample_weight: Any, n: int) -> Array:
    """Weights of rows, checked; 1 for each where none came."""
    weight = read_weight(sample_weight, n)
    return np.ones(n) if weight is None else weight


def _size_of_weights(weight: Array) -> float:
    """How many rows of equal weight some weights are worth."""
    share = weight / weight.max()  # squares of tiny weights would vanish
    return float(share.sum() ** 2 / (share @ share))


def _warn_of_equal_rows(value: str) -> None:
    """Warn that all probabilities are equal, and so tell little of a rate."""
    warnings.warn(
        f"all p are equal ({value}), so that they hardly tell how the rate has changed. Take rows "
        "whose probabilities differ.",
        CalibrationWarning,
        stacklevel=caller_level(),
    )


# --- Probabilities and weights of rows, checked ---------------------------------------------------


ADVICE = "Calibrate logits first; take labels that do not exclude each other one column at a time."


def read_distributions(p: Any) -> Array:
    """A matrix of probabilities as float64; rows that do not sum to 1 are refused.

    >>> read_distributions([[0.5, 0.25, 0.25]]).tolist()
    [[0.5, 0.25, 0.25]]
    """
    clean = read_score_matrix(p, name="p").astype(np.float64, copy=False)
    check_distributions(clean, "p", advice=ADVICE)
    return clean


def effective_size(table: ScoreTable) -> float:
    """How many rows of equal weight a table is worth; refused if that is no number."""
    size = table.effective_size
    if not 0.0 < size < np.inf:
        raise InputError(
            "weights must be of a size whose squares are floats, but the sum of those that came is "
            f"{table.total:.3g}. Rescale them: their scale plays no part."
        )
    return size


# --- How a shift of the prior is given, and the factors that follow from it -----------------------
# For one probability, or each of several labels, the odds are multiplied by a factor. For a
# distribution over classes, each p_c is multiplied by a factor of its own, and all are divided by
# their sum. Every refusal of a parameter is worded here.


#: limits of rates, shares and weights, so that products and ratios of them stay finite
SMALLEST_RATE, LARGEST_RATE = 1e-100, LARGEST
LARGEST_WEIGHT = 1e100
RATES = SMALLEST_RATE, LARGEST_RATE
#: no shift of log-odds is larger, so that the factor of the odds is a float
FARTHEST_SHIFT = 700.0
#: how far rates of classes may be from the sum 1
SUM_TOLERANCE = 1e-6


class GivenShift(NamedTuple):
    """The shift as the caller gave it."""

    train_rate: Any = None
    target_rate: Any = None
    target_mean: Any = None
    kept: Any = None
    positive_weight: Any = None


@dataclass(frozen=True)
class ProbabilityKind:
    """What probabilities are: of one class, of k classes, or of k labels; and their base rate."""

    columns: int = 0  # 0: one probability for each row
    distribution: bool = False
    labels: tuple[Any, ...] | None = None
    rate: Any = None  # the rate at which they are calibrated, if that is known


@dataclass(frozen=True)
class Shift:
    """A shift to another base rate: factors of the odds, and a record for the provenance."""

    factor: Array
    record: dict[str, Any]


def shift_class_probabilities(p: Array, factor: Array) -> Array:
    """Distributions after a shift of the class rates: p'_c ∝ factor_c · p_c in each row.

    >>> shift_class_probabilities(np.array([[0.5, 0.25, 0.25]]), np.array([1.0, 1.0, 2.0])).tolist()
    [[0.4, 0.2, 0.4]]
    """
    scaled = p * (factor / factor.max())
    return np.asarray(scaled / scaled.sum(axis=-1, keepdims=True))


def read_prior_shift(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The shift that is given, in exactly one of the four ways."""
    ways = {
        "target_rate": given.target_rate is not None or given.train_rate is not None,
        "target_mean": given.target_mean is not None,
        "kept": given.kept is not None,
        "positive_weight": given.positive_weight is not None,
    }
    said = [name for name, is_said in ways.items() if is_said]
    if len(said) != 1:
        came = " and ".join(said) if said else "none of them"
        raise ParameterError(
            "the shift must be given in exactly one of four ways: target_rate (with train_rate), "
            f"target_mean, kept, or positive_weight; but {came} came."
        )
    return WAYS[said[0]](given, kind)


# --- the four ways -------------------------------------------------------------------------------


def _shift_by_rates(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The shift from one rate to another."""
    target_rate, train_rate = given.target_rate, given.train_rate
    if target_rate is None:
        raise ParameterError(
            "target_rate must be given with train_rate: the rate where the probabilities will be "
            "used. Where it is not known, estimate_rate estimates it from unlabelled rows."
        )
    extra: dict[str, Any] = {}
    if isinstance(target_rate, (RateEstimate, RateEstimates)):
        rates = np.asarray(target_rate.rate)
        if (rates <= 0.0).any() or (rates >= 1.0).any():
            raise ParameterError(
                f"target_rate must lie between 0 and 1, but the estimate is "
                f"{brief(rates.tolist())}: at such a rate probabilities are 0 or 1. Pass a rate "
                "inside its interval instead, such as the middle of low and high, with train_rate."
            )
        train_rate = target_rate.train_rate if train_rate is None else train_rate
        extra = {"estimated": target_rate.to_dict()}
        target_rate = target_rate.rate
    if train_rate is None and kind.rate is None:
        raise ParameterError(
            "train_rate must be given: the rate of positives (or of each class) in the data at "
            "which these probabilities are calibrated is not known here."
        )
    train = check_base_rates(kind.rate if train_rate is None else train_rate, "train_rate", kind)
    target = check_base_rates(target_rate, "target_rate", kind)
    factor = target / train
    if not kind.distribution:
        factor = factor / ((1.0 - target) / (1.0 - train))
    record = {"train_rate": train.tolist(), "target_rate": target.tolist(), **extra}
    return _shift_and_record(factor, record, target)


def _shift_by_mean(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The shift at which the mean of a portfolio is what is wanted."""
    if kind.columns:
        raise ParameterError(
            "target_mean must not be given for several classes or labels: it is the mean of one "
            "probability. Pass target_rate, a rate for each."
        )
    shift = given.target_mean
    if not isinstance(shift, MeanShift):
        raise ParameterError(
            "target_mean must be the result of shift_to_mean for a map or a calibrator, whose mean "
            f"depends on the rows, but {brief(shift)} came. Pass "
            "shift_to_mean(calibrator.calibrate(scores), mean)."
        )
    factor = np.array(shift.factor)
    record = {"target_mean": shift.target_mean, "portfolio": shift.to_dict()}
    return _shift_and_record(factor, record, _shifted_rate(kind, factor))


def _shift_by_kept_rows(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The shift that makes up for rows left out of the training."""
    if kind.columns and not kind.distribution:
        raise ParameterError(
            "kept must not be given for several labels at once: rows that are left out change the "
            "rates of all labels. Pass train_rate and target_rate, a rate for each label."
        )
    sizes = (kind.columns,) if kind.columns else (0, 2)
    share = _read_rates(given.kept, "kept", sizes, kind, (SMALLEST_RATE, 1.0))
    factor = 1.0 / share if kind.columns else share
    if share.ndim and not kind.columns:  # of negatives and positives
        factor = share[0] / share[1]
    return _shift_and_record(factor, {"kept": share.tolist()}, _shifted_rate(kind, factor))


def _shift_by_weight(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The shift that makes up for a weight of positives in the training."""
    if kind.distribution:
        raise ParameterError(
            "positive_weight must not be given for several classes. For class weights w pass "
            "kept=w / max(w), a share for each class: only their ratios count."
        )
    sizes = (0, kind.columns) if kind.columns else (0,)
    ends = 1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT
    weight = _read_rates(given.positive_weight, "positive_weight", sizes, kind, ends)
    factor = 1.0 / weight
    if kind.columns:
        factor = np.broadcast_to(factor, (kind.columns,))
    return _shift_and_record(
        factor, {"positive_weight": weight.tolist()}, _shifted_rate(kind, factor)
    )


WAYS = {
    "target_rate": _shift_by_rates,
    "target_mean": _shift_by_mean,
    "kept": _shift_by_kept_rows,
    "positive_weight": _shift_by_weight,
}


def _shifted_rate(kind: ProbabilityKind, factor: Array) -> Array | None:
    """The base rate after the shift; None where it was not known."""
    if kind.rate is None:
        return None
    rate = check_base_rates(kind.rate, "the rate in the provenance", kind)
    return (
        shift_class_probabilities(rate, factor) if kind.distribution else shift_odds(rate, factor)
    )


def _shift_and_record(factor: Array, record: dict[str, Any], rate: Array | None) -> Shift:
    """A shift, and what is recorded of it."""
    factor = np.asarray(factor, dtype=np.float64)
    known = {} if rate is None else {"rate": rate.tolist()}
    return Shift(factor, {**record, "factor": factor.tolist(), **known})


# --- the checks -----------------------------------------------------------------------------------


def check_base_rates(value: Any, name: str, kind: ProbabilityKind) -> Array:
    """Rates between 0 and 1, checked; those of classes must sum to 1."""
    rates = _read_rates(value, name, (kind.columns,), kind, (SMALLEST_RATE, LARGEST_RATE))
    if kind.distribution and abs(float(rates.sum()) - 1.0) > SUM_TOLERANCE:
        raise ParameterError(
            f"{name} must have the sum 1 over the {kind.columns} classes, but it is "
            f"{rates.sum():g}. Divide the rates by their sum."
        )
    return rates


def _read_rates(
    value: Any, name: str, sizes: tuple[int, ...], kind: ProbabilityKind, ends: tuple[float, float]
) -> Array:
    """One number or several, by label or in order, all between two ends.

    A mapping of labels to numbers is read in the order of the labels.
    """
    labels = kind.labels
    if isinstance(value, Mapping):
        if labels is None:
            raise ParameterError(
                f"{name} must be numbers in the order of the columns, but a mapping came, and the "
                "labels are not known here. Labels are known to a fitted calibrator of several "
                "classes; one of two classes takes a number, the rate of pos_label."
            )
        if set(value) != set(labels):
            raise ParameterError(
                f"{name} must have an entry for each of the labels {brief(list(labels))}, but "
                f"{brief(list(value))} came."
            )
        value = [value[label] for label in labels]
    try:
        array = np.asarray(value)
    except ValueError as wrong:  # lists of different lengths
        raise ParameterError(f"{name} must be numbers: {wrong}") from wrong
    wanted = " or ".join("a number" if not size else f"{size} numbers" for size in sizes)
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{name} must be {wanted}, but {brief(value)} came.")
    if array.shape not in [(size,) if size else () for size in sizes]:
        shape = f"an array of shape {array.shape}" if array.ndim else f"the number {value}"
        raise ParameterError(f"{name} must be {wanted}, but {shape} came.")
    values, (least, most) = array.astype(np.float64), ends
    if not ((values >= least) & (values <= most)).all():
        above = "at most 1" if most == 1.0 else "below 1" if most < 1.0 else f"at most {most:g}"
        raise ParameterError(
            f"{name} must be above 0 (at least {least:g}) and {above}, but "
            f"{brief(values.tolist())} came."
        )
    return values


# --- A shift to a mean, and estimated rates with their intervals, as values ----------------------


@dataclass(frozen=True, repr=False)
class MeanShift(PlainFields, PrintsAsTable):
    """The result of `shift_to_mean`: a report of a portfolio before and after.

    Attributes
    ----------
    shift, factor : float
        What is added to all log-odds, and e to that power: by what odds are multiplied.
    target_mean : float
        The mean that was wanted.
    before, after : dict
        The mean, the least, the median and the largest of the probabilities.
    """

    shift: float
    factor: float
    target_mean: float
    before: dict[str, float]
    after: dict[str, float]

    def _table(self) -> ResultTable:
        columns = [TableColumn("", "left"), TableColumn("before"), TableColumn("after")]
        rows = [
            TableRow((name, shown_percent(value), shown_percent(self.after[name])))
            for name, value in self.before.items()
        ]
        below = f"shift of log-odds {self.shift:.4g}, odds times {self.factor:.4g}"
        return ResultTable(columns, rows, [below])


@dataclass(frozen=True)
class RateEstimate(PlainFields):
    """The result of `estimate_rate`.

    Attributes
    ----------
    rate : float
        The most likely rate of positives among the rows.
    low, high : float
        The ends of its interval.
    train_rate : float
        The rate at which the probabilities are calibrated.
    level : float
        The confidence of the interval.
    weight, effective_size : float
        Σw of the rows, and (Σw)² / Σw²: how many rows of equal weight they are worth.
    iterations : int
        How often the likelihood was evaluated for the rate.

    Examples
    --------
    >>> print(RateEstimate(0.031, 0.028, 0.034, 0.1, 0.95, 5000.0, 5000.0, 6))
    rate 0.031 (0.028 to 0.034 at 95 %) among rows of weight 5000; 0.1 in training
    """

    rate: float
    low: float
    high: float
    train_rate: float
    level: float
    weight: float
    effective_size: float
    iterations: int

    def __str__(self) -> str:
        return (
            f"rate {self.rate:.4g} ({self.low:.4g} to {self.high:.4g} at {100 * self.level:g} %) "
            f"among rows of weight {self.weight:g}; {self.train_rate:.4g} in training"
        )


@dataclass(frozen=True, eq=False)
class RateEstimates(PlainFields, Frozen):
    """The result of `estimate_rates`: as `RateEstimate`, with an entry for each class.

    Attributes
    ----------
    rate : array of shape (k,)
        The most likely rates of the classes among the rows; their sum is 1.
    low, high : array of shape (k,), or None
        The ends of the interval of each, one class at a time; None where none were wanted.
    train_rate : array of shape (k,)
        The rates at which the probabilities are calibrated.
    level : float or None
        The confidence of the intervals.
    weight, effective_size : float
    iterations : int

    Examples
    --------
    >>> import numpy as np
    >>> r = RateEstimates(np.array([0.2, 0.8]), None, None, np.array([0.5, 0.5]), None, 9.0, 9.0, 4)
    >>> r.to_dict()["rate"]
    [0.2, 0.8]
    """

    rate: Array
    low: Array | None
    high: Array | None
    train_rate: Array
    level: float | None
    weight: float
    effective_size: float
    iterations: int
