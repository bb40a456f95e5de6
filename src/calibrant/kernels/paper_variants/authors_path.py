"""The models of the authors' program (Naeini and Cooper 2018), with its roundings.

Where several pairs of bins meet at one λ, rounding makes the program see breakpoints that differ
in the last bits, and its ensemble then counts one model several times. To repeat its figures, its
order of operations is repeated: a bin is stored by its value and slope at the λ where it was made;
meetings are taken in the order (λ, found first); a merged bin takes its value from its older part;
and values within 1e-10 meet at once. This was inferred from the program's figures, which it gives
to the last bit except for a few λ in a hundred (β to 2⁻⁵³). For all else there is `merge_path`.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index

#: values closer than this meet at once
NEAR = 1e-10
#: the most models that the program uses
MOST = 100


class AuthorsPath(NamedTuple):
    """λ = 0 and all breakpoints, and all bins.

    At lambdas[t], before the merges there, bin i has the value value + slope·(λ − made) for
    birth[i] < t ≤ death[i].
    """

    lambdas: Array
    first: Index
    value: Array
    slope: Array
    made: Array
    birth: Index
    death: Index

    def at(self, t: int, size: int) -> Array:
        """The fit at lambdas[t], per cell."""
        alive = np.flatnonzero((self.birth < t) & (t <= self.death))
        alive = alive[np.argsort(self.first[alive])]
        value = self.value[alive] + self.slope[alive] * (self.lambdas[t] - self.made[alive])
        return np.repeat(value, np.diff(np.append(self.first[alive], size)))


class _Walk:
    """The bins and the meetings to come, in plain Python: it need not be fast."""

    def __init__(self, n0: Array, n1: Array) -> None:
        weight = n0 + n1
        rate = n1 / weight
        falls = np.concatenate(([0], rate[:-1] > rate[1:], [0])).astype(int)
        n = len(rate)
        self.value: list[float] = rate.tolist()
        self.weight: list[float] = weight.tolist()
        self.rise: list[int] = (falls[:-1] - falls[1:]).tolist()
        self.slope: list[float] = [d / w for d, w in zip(self.rise, self.weight, strict=True)]
        self.made, self.first = [0.0] * n, list(range(n))
        self.before, self.after = list(range(-1, n - 1)), [*range(1, n), -1]
        self.birth, self.death = [-1] * n, [-1] * n
        self.alive = [True] * n
        self.heap: list[tuple[float, int, int, int]] = []
        self.found = 0
        for i in range(n - 1):
            self.meet(i, i + 1, 0.0)

    def at(self, i: int, now: float) -> float:
        return self.value[i] + self.slope[i] * (now - self.made[i])

    def meet(self, a: int, b: int, now: float) -> None:
        """Note when neighbours a, b meet, if they do (eq. 8)."""
        if a < 0 or b < 0:
            return
        apart, closing = self.at(a, now) - self.at(b, now), self.slope[b] - self.slope[a]
        wait = 0.0
        if abs(apart) > NEAR:
            if closing == 0.0 or apart / closing < 0.0:
                return
            wait = apart / closing
        heapq.heappush(self.heap, (now + wait, self.found, a, b))
        self.found += 1

    def merge(self, a: int, b: int, now: float, model: int) -> None:
        new = len(self.value)
        self.value.append(self.at(min(a, b), now))
        self.weight.append(self.weight[a] + self.weight[b])
        self.rise.append(self.rise[a] + self.rise[b])
        self.slope.append(self.rise[new] / self.weight[new])
        self.made.append(now)
        self.first.append(self.first[a])
        self.birth.append(model)
        self.death.append(-1)
        self.alive.append(True)
        self.alive[a] = self.alive[b] = False
        self.death[a] = self.death[b] = model
        low, high = self.before[a], self.after[b]
        self.before.append(low)
        self.after.append(high)
        if low >= 0:
            self.after[low] = new
        if high >= 0:
            self.before[high] = new
        self.meet(low, new, now)
        self.meet(new, high, now)


def authors_path(n0: Array, n1: Array) -> AuthorsPath:
    """The path of cells with these weights of negatives and positives. O(D log D)."""
    walk, lambdas = _Walk(n0, n1), [0.0]
    while walk.heap:
        now, _, a, b = heapq.heappop(walk.heap)
        if not (walk.alive[a] and walk.alive[b]):
            continue
        now = max(now, lambdas[-1])
        if now != lambdas[-1]:
            lambdas.append(now)
        walk.merge(a, b, now, len(lambdas) - 1)
    death = np.where(walk.alive, len(lambdas), walk.death)
    return AuthorsPath(
        np.array(lambdas),
        np.array(walk.first),
        np.array(walk.value),
        np.array(walk.slope),
        np.array(walk.made),
        np.array(walk.birth),
        death,
    )


class AuthorsModel(NamedTuple):
    """A model: the value at each cell, where its bins begin, and their log-likelihood."""

    value: Array
    starts: Index
    log_likelihood: float


def authors_models(x: Array, n0: Array, n1: Array) -> tuple[Array, list[AuthorsModel]]:
    """At most 100 of the breakpoints, spread evenly by rank, and their models. O(100·D)."""
    path = authors_path(n0, n1)
    last = len(path.lambdas) - 1
    spread = np.round(np.arange(MOST) / (MOST - 1) * last).astype(int)
    chosen = [t for t in (spread if last >= MOST else range(last + 1)) if t] or [0]
    models = [_model(np.clip(np.round(path.at(t, len(x)), 6), 0.0, 1.0), x, n0, n1) for t in chosen]
    return path.lambdas[chosen], models


def _model(beta: Array, x: Array, n0: Array, n1: Array) -> AuthorsModel:
    """Score a fit, and move each bin towards its mean score.

    The closer the mean score is to the rate of the bin, the further the bin moves.
    """
    starts = np.append(0, np.flatnonzero(np.diff(beta)) + 1)
    log = -np.inf
    if not (((beta == 0.0) & (n1 > 0.0)) | ((beta == 1.0) & (n0 > 0.0))).any():
        up, down = np.where(n1 > 0.0, beta, 1.0), np.where(n0 > 0.0, beta, 0.0)
        log = float(np.sum(n1 * np.log(up) + n0 * np.log1p(-down)))
    count = np.add.reduceat(n0 + n1, starts)
    score = np.add.reduceat((n0 + n1) * x, starts) / count
    rate = np.add.reduceat(n1, starts) / count
    trust = 1.0 - np.abs(rate - score)
    value = (beta[starts] * count + score * trust) / (count + trust)
    return AuthorsModel(np.repeat(value, np.diff(np.append(starts, len(x)))), starts, log)
