"""The rounds of boosting: weights of the rows from their margins, a learner, and its α."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from calibrant.array_types import Array, Index
from calibrant.boosting.learners import Learner
from calibrant.estimators.fit_params import take

if TYPE_CHECKING:
    from calibrant.boosting.adaboost import AdaBoost

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

#: ln of the weight that a loss gives to a row of margin yF
LOG_WEIGHTS: Mapping[str, Callable[[Array], Array]] = {
    "exponential": np.negative,
    "log": lambda margin: -np.logaddexp(0.0, margin),
}


class LearnerWeight(NamedTuple):
    """What a learner's votes are worth: α, which is zero if it is no better than chance.

    ``right`` and ``wrong`` are W_c and W_e, the weight that it is right and wrong on; they sum to
    one. A learner is perfect if it is wrong on no row that has weight.
    """

    alpha: float
    perfect: bool
    right: float
    wrong: float


#: before any learner was tried
NOTHING = LearnerWeight(0.0, False, 0.5, 0.5)


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


def seen_weights(weights: Array, sample: Array) -> Array:
    """The weights as a learner gets them; their sum is that of the sample weights.

    Per unit of sample weight they are multiples of 2⁻³⁰, and at least 2⁻³⁰: trees could not tell
    less from rounding. So sums are exact in any order if sample weights are whole. Then a tie
    between two splits stays a tie, whatever the order of rows, and also if rows are repeated in
    place of a weight.

    >>> seen_weights(np.array([0.5, 0.5, 0.0]), np.array([1.0, 2.0, 1.0])).round(6).tolist()
    [2.0, 2.0, 0.0]
    """
    units = float(sample.sum()) * weights / sample
    return np.asarray(sample * (GRAIN * np.maximum(np.rint(units / GRAIN), 1.0)), dtype=np.float64)


def within_reach(sample: Array) -> Array:
    """Sample weights, multiplied by a power of two if the square of their sum is no float."""
    exponent = math.frexp(float(sample.sum()))[1]
    near = np.ldexp(sample, min(max(exponent, -FARTHEST), FARTHEST) - exponent)
    return np.maximum(near, np.finfo(np.float64).tiny)


def hard_vote(weights: Array, agree: Array, epsilon: float) -> LearnerWeight:
    """α = ½ ln(W_c / W_e) for votes that agree (1) or disagree (−1) with the label.

    >>> round(hard_vote(np.array([0.5, 0.25, 0.25]), np.array([1.0, 1.0, -1.0]), 0.1).alpha, 4)
    0.5493
    """
    wrong = float(weights @ (agree < 0.0))
    right = float(weights @ (agree > 0.0))
    perfect = wrong == 0.0
    extra = epsilon if perfect else 0.0
    better = right - wrong > NOISE
    alpha = 0.5 * math.log((right + extra) / (wrong + extra)) if better else 0.0
    return LearnerWeight(alpha, perfect, right, wrong)


def soft_vote(weights: Array, agree: Array, epsilon: float) -> LearnerWeight:
    """The α that minimises Z(α) = Σ w·exp(−α·y·h) for real votes, given y·h in [−1, 1].

    If no vote is wrong, Z has no minimum. Then a right and a wrong vote are added, each of weight ε
    and as large as the largest vote. For votes of ±1 this gives α = ½ ln((W_c + ε) / (W_e + ε)).

    >>> v = soft_vote(np.array([0.5, 0.25, 0.25]), np.array([1.0, 1.0, -1.0]), 0.1)
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
    return LearnerWeight(_least(weights, unit) / size, perfect, right, wrong)


def _least(weights: Array, agree: Array) -> float:
    """The β of the least ln Σ w·exp(−β·a), −1 ≤ a ≤ 1: Newton's steps inside a bracket.

    Where a step would leave the bracket, the bracket is halved.
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


#: the weight of a learner, by its kind of votes
VOTE_WEIGHTS: Mapping[str, Callable[[Array, Array, float], LearnerWeight]] = {
    "hard": hard_vote,
    "soft": soft_vote,
}


def boost(
    model: AdaBoost, learner: Learner, X: Any, codes: Index, size: Array
) -> tuple[list[Any], Array, str | None]:
    """Run the rounds that a model asks for.

    X are the rows as the learner reads them, ``codes`` their classes (0 or 1) and ``size`` their
    weights, all positive. The result: learners, the weights of their votes, and why boosting
    stopped early (None: it did not).
    """
    data = (*learner.arrange(X, codes), within_reach(size))
    random = check_random_state(model.random_state)
    sign = 2.0 * codes - 1.0
    epsilon = 0.5 / max(float(size.sum()), 1.0)
    F = np.zeros(len(sign))
    estimators: list[Any] = []
    alphas: list[float] = []
    stopped, rounds = None, int(model.n_estimators)
    for left in reversed(range(rounds)):
        weights = row_weights(sign * F, size, model.loss)
        verdict = NOTHING
        for fitted in _fits(learner, data, weights, model.resample, random):
            h = learner.vote(fitted, X)
            verdict = VOTE_WEIGHTS[model.votes](weights, sign * h, epsilon)
            if verdict.alpha > 0.0:
                break
        else:
            stopped = _chance(verdict, model.resample)
            break
        estimators.append(fitted)
        alphas.append(verdict.alpha)
        F += verdict.alpha * h
        if verdict.perfect and model.on_perfect == "stop" and left:
            stopped = 'the last learner was never wrong (on_perfect="stop")'
            break
    return estimators, np.array(alphas), _sentence(stopped, len(alphas), rounds)


def _fits(
    learner: Learner,
    data: tuple[Any, NDArray[Any], Array],
    weights: Array,
    resample: bool,
    random: np.random.RandomState,
) -> Iterator[Any]:
    """The learners of a round: one with weights, or one for each of several draws of rows."""
    X, y, sample = data
    if not resample:
        yield learner.fit(X, y, seen_weights(weights, sample), random)
        return
    for _ in range(DRAWS):
        drawn = random.choice(len(y), len(y), p=weights)
        labels = y[drawn]
        if (labels != labels[0]).any():
            yield learner.fit(take(X, drawn), labels, None, random)


def _chance(verdict: LearnerWeight, resample: bool) -> str:
    one = "the next learner was no"
    who = f"none of {DRAWS} learners from new draws of rows was" if resample else one
    return (
        f"{who} better than chance on the weighted rows (right on {verdict.right:.4g} of the "
        f"weight, wrong on {verdict.wrong:.4g})"
    )


def _sentence(reason: str | None, done: int, rounds: int) -> str | None:
    if reason is None:
        return None
    nothing = "" if done else " Nothing was learnt: F is 0 and every probability ½."
    return f"boosting stopped after {done} of {rounds} rounds: {reason}.{nothing}"
