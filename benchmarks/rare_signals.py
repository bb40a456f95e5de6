"""Populations of rare events whose truth is known.

A population is a grid of places, finer towards the top, with a score, a share of the rows and the
probability of an event at each: so a billion rows cost as much as a thousand. ``u`` is the place
of a row in the order of scores, from 0 to 1.

The signals of `TUNED` were looked at while BLS was made. Those of `INDEPENDENT` were written down
and committed before any method ran on them, and no method was changed after their results were
seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri, xlogy
from scipy.stats import beta

Array = np.ndarray
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Population:
    """Scores, the share of rows at each, and P(event | score)."""

    scores: Array
    share: Array
    truth: Array

    @property
    def rate(self) -> float:
        """The share of rows that are events."""
        return float(self.share @ self.truth)

    def drawn(self, rows: float, rng: Rng) -> tuple[Array, Array]:
        """Negatives and positives at each score; at least one positive."""
        while True:
            n = rng.multinomial(round(rows), self.share / self.share.sum())
            n1 = rng.binomial(n, self.truth)
            if n1.sum() > 0:
                return (n - n1).astype(float), n1.astype(float)

    def excess(self, p: Array) -> float:
        """Expected log loss of these probabilities beyond that of the truth, in nats an event."""
        p, t = np.clip(p, 1e-300, 1.0 - 2.0**-53), self.truth
        beyond = xlogy(t, t) - xlogy(t, p) + xlogy(1.0 - t, 1.0 - t) - (1.0 - t) * np.log1p(-p)
        return float(self.share @ beyond) / self.rate


def at_rate(log_odds: Array, share: Array, rate: float) -> Array:
    """Probabilities of these log-odds, all shifted so that their mean is the rate."""
    shift = brentq(lambda d: share @ expit(log_odds + d) - rate, -60.0, 60.0, xtol=1e-12)
    return np.asarray(expit(log_odds + shift))


def grid(rate: float) -> tuple[Array, Array]:
    """Places u and the share of rows at each: even steps, and finer ones towards 1."""
    fine = 1.0 - np.geomspace(0.1, rate / 50.0, 1500)
    edges = np.unique(np.concatenate((np.linspace(0.0, 0.9, 1501), fine, [1.0])))
    return (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)


Signal = Callable[[float], Population]


def of_log_odds(score: Callable[[Array], Array], log_odds: Callable[[Array], Array]) -> Signal:
    """Log-odds as a function of the score, shifted to the rate."""

    def made(rate: float) -> Population:
        u, share = grid(rate)
        s = score(u)
        return Population(s, share, at_rate(log_odds(s), share, rate))

    return made


def uniform(u: Array) -> Array:
    """Scores that are evenly spread from 0 to 1."""
    return u


# --- looked at while BLS was made -----------------------------------------------------------------


def steep(rate: float) -> Population:
    """A third of the top 3·rate, and next to nothing below."""
    u, share = grid(rate)
    return Population(u, share, np.where(u > 1.0 - 3.0 * rate, 1.0 / 3.0, rate * 1e-6))


TUNED: dict[str, Signal] = {
    "smooth": of_log_odds(uniform, lambda s: 4.0 * s),
    "strong": of_log_odds(uniform, lambda s: 2.0 * logit(s)),
    "steep": steep,
}

# --- written down before any method ran on them ---------------------------------------------------


def skewed(u: Array) -> Array:
    """Scores like those of a fraud model: Beta(0.5, 20), half of them below 0.012."""
    return np.asarray(beta.ppf(u, 0.5, 20.0))


def bent_logit(s: Array) -> Array:
    """A logit with slope 0.6 that grows to 1.6 around the 90th percentile."""
    z = logit(s)
    return np.asarray(0.6 * z + np.logaddexp(0.0, z - logit(skewed(np.array(0.9)))))


def floor(rate: float) -> Population:
    """Half of the events are spread evenly over all rows (wrong labels, say); half are at the
    top, where they thin out like exp(−(1 − u)/(2·rate))."""
    u, share = grid(rate)
    top = np.exp(-(1.0 - u) / (2.0 * rate))
    return Population(u, share, 0.5 * rate + 0.5 * rate * top / float(share @ top))


def margins(u: Array) -> Array:
    """Probabilities of normal log-odds with mean −4 and standard deviation 2."""
    return np.asarray(expit(2.0 * ndtri(u) - 4.0))


def level_top(s: Array) -> Array:
    """1.5 times the logit up to the 99th percentile, and level above."""
    return np.asarray(1.5 * logit(np.minimum(s, margins(np.array(0.99)))))


INDEPENDENT: dict[str, Signal] = {
    "skewed": of_log_odds(skewed, bent_logit),
    "floor": floor,
    "level top": of_log_odds(margins, level_top),
    "step": of_log_odds(uniform, lambda s: np.where(s > 0.5, np.log(9.0), 0.0)),
    "concave": of_log_odds(uniform, lambda s: 6.0 * np.sqrt(s)),
}
