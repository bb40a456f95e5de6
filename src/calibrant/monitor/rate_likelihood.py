"""The likelihood of rates, given calibrated probabilities of unlabelled rows.

A row's likelihood is m = Σ_c π'_c · p_c / π_c, up to a factor that has no π' in it. Its logarithm
is concave in π', so that the optimum, which is the fixed point of the EM algorithm, is found by
Newton's method in a few passes over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant.array_types import Array
from calibrant.losses import logit, sigmoid

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
    """ln L of the rate t of positives: Σ w·ln(t·r + (1 − t)·q), r = p/π and q = (1 − p)/(1 − π)."""

    r: Array
    q: Array
    w: Array

    @classmethod
    def of(cls, p: Array, w: Array, train: float) -> BinaryLikelihood:
        """The likelihood of probabilities that are calibrated at the rate ``train``."""
        return cls(p / train, (1.0 - p) / (1.0 - train), w)

    def at(self, s: float) -> tuple[float, float, float]:
        """ln L at t = σ(s), its derivative by t, and minus the second one."""
        t, u = _both(s)
        m = u * self.q + t * self.r
        with np.errstate(over="ignore"):
            ratio = (self.r - self.q) / m
            return float(self.w @ np.log(m)), float(self.w @ ratio), float(self.w @ ratio**2)

    def __call__(self, s: float) -> tuple[float, float]:
        """ln L at σ(s) and its derivative by s."""
        value, slope, _ = self.at(s)
        return value, slope * math.prod(_both(s))


def rate_at(s: float) -> float:
    """σ(s), and 0 and 1 themselves at the ends.

    >>> rate_at(LEAST), rate_at(0.0), rate_at(MOST)
    (0.0, 0.5, 1.0)
    """
    return _both(s)[0] if LEAST < s < MOST else float(s > 0.0)


def most_likely(two: BinaryLikelihood, start: float) -> tuple[float, int]:
    """The logit of the rate at which the likelihood is largest, and the evaluations it took."""
    evaluations = 0

    def slope(s: float) -> tuple[float, float]:
        nonlocal evaluations
        evaluations += 1
        _, first, second = two.at(s)
        return first, -second * math.prod(_both(s))

    if not slope(LEAST)[0] > 0.0:
        return LEAST, evaluations
    if not slope(MOST)[0] < 0.0:
        return MOST, evaluations
    return _root(slope, LEAST, MOST, start), evaluations


def interval(
    likelihood: Sloped, s: float, curve: tuple[float, float], drop: float
) -> tuple[float, float]:
    """The rates on both sides of σ(s) at which ln L is ``drop`` below its largest value.

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

    guess, beyond = (_guesses(s, curve, fall) for fall in (drop, 4.0 * drop))
    below = partial(above, sign=-1.0)
    low = _root(below, LEAST, s, guess[0]) if crosses(beyond[0], LEAST) else LEAST
    high = _root(above, s, MOST, guess[1]) if crosses(beyond[1], MOST) else MOST
    return rate_at(low), rate_at(high)


def logit_of(rate: float) -> float:
    """The inverse of `rate_at`, cut to its ends."""
    return min(max(float(logit(np.array(rate))), LEAST), MOST)


def _guesses(s: float, curve: tuple[float, float], drop: float) -> tuple[float, float]:
    """Where the parabola through the optimum has fallen by ``drop``, as logits."""
    t = _both(s)[0]
    slope, bend = curve
    if not 0.0 < bend < 1e200:
        return s - 1.0, s + 1.0
    half = math.sqrt(slope * slope + 2.0 * bend * drop)
    low, high = t - (half - slope) / bend, t + (half + slope) / bend
    ends = logit(np.array([max(low, t / 10), min(high, 1.0 - (1.0 - t) / 10)])).tolist()
    return ends[0], ends[1]


def _both(s: float) -> tuple[float, float]:
    """σ(s) and 1 − σ(s), each to full precision."""
    t, u = sigmoid(np.array([s, -s])).tolist()
    return t, u


def _root(function: Sloped, low: float, high: float, start: float) -> float:
    """Where a falling function crosses zero: Newton's method inside a shrinking bracket.

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
    """Σ w·ln(ratio @ t) of the rates t of k classes, ratio = p/π of shape (n, k), Σw = 1."""

    ratio: Array
    w: Array

    def best(self, start: Array) -> tuple[Array, int]:
        """The rates of the largest likelihood, and the rounds it took.

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
            step = self._step(t, gradient, v, ridge)
            if gradient @ step > -HIDDEN:
                t, hidden = np.maximum(t + step, 0.0), hidden + 1
            else:
                t, length = self._along(t, gradient, step)
                ridge = max(ridge / MORE, RIDGE) if length == 1.0 else ridge * MORE
        return t / t.sum(), rounds

    def _step(self, t: Array, gradient: Array, v: Array, ridge: float) -> Array:
        """Newton's step; rates that are held near 0 go straight to 0."""
        held = (gradient > 0.0) & (t <= np.minimum(1e-9, gradient))
        free = ~held
        part = v[:, free]
        hessian = (part * self.w[:, None]).T @ part
        hessian[np.diag_indices_from(hessian)] += ridge * hessian.trace()
        step = -t
        step[free] = -np.linalg.solve(hessian, gradient[free])
        return step

    def _along(self, t: Array, gradient: Array, step: Array) -> tuple[Array, float]:
        """The first of ever shorter steps that brings enough of its promised gain, and its length.

        If none of ten does, there is no step.
        """
        value = self._objective(t)
        for halvings in range(10):
            length = 0.5**halvings
            new = np.maximum(t + length * step, 0.0)
            promise = float(gradient @ (new - t))
            if promise <= 0.0 and self._objective(new) <= value + ARMIJO * promise:
                return new, length
        return t, 0.0

    def _objective(self, t: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(t.sum() - self.w @ np.log(self.ratio @ t))


class ProfileLikelihood:
    """ln L of one class's rate, at the likeliest rates of the others; a function of its logit."""

    def __init__(self, classes: ClassLikelihood, column: int, size: float, rates: Array) -> None:
        self.own = classes.ratio[:, column]
        self.rest = np.delete(classes.ratio, column, axis=1)
        self.w, self.size = classes.w, size
        self.shares = _inside(np.delete(rates, column))

    def __call__(self, s: float) -> tuple[float, float]:
        t, u = _both(s)
        ratio = t * self.own[:, None] + u * self.rest
        shares, _ = ClassLikelihood(ratio, self.w).best(self.shares)
        self.shares = _inside(shares)  # where the next search starts
        m = ratio @ shares
        slope = self.w @ ((self.own - self.rest @ shares) / m)
        return self.size * float(self.w @ np.log(m)), self.size * float(slope) * t * u

    def curve(self, s: float) -> tuple[float, float]:
        """Slope and minus curvature by the rate, the shares of all others unchanged."""
        return BinaryLikelihood(self.own, self.rest @ self.shares, self.size * self.w).at(s)[1:]


def _inside(shares: Array) -> Array:
    """Shares moved off the border, at which a search must not start."""
    off = shares + 1e-9 * max(float(shares.sum()), 1e-9)
    return np.asarray(off / off.sum())
