"""Slow, obvious boosting: loops over rows, given what each learner voted."""

from __future__ import annotations

import math


def row_weights(y, F, sample, loss):
    """Of rows with labels ±1, scaled to the sum of the sample weights."""
    weights = []
    for label, score, s in zip(y, F, sample, strict=True):
        margin = label * score
        weights.append(s * (math.exp(-margin) if loss == "exponential" else _logistic(-margin)))
    scale = sum(sample) / sum(weights)
    return [scale * w for w in weights]


def _logistic(t):
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(t) / (1 + math.exp(t))


def alpha(y, h, weights, n):
    """By halving the interval where the slope of Σ w·exp(−α·y·h) changes its sign."""
    votes = [vote if abs(vote) > 2**-40 else 0.0 for vote in h]
    pairs = [(label * vote, w) for label, vote, w in zip(y, votes, weights, strict=True)]
    if all(agree >= 0 for agree, _ in pairs):
        most = max(agree for agree, _ in pairs)
        pseudo = sum(weights) / (2 * max(n, 1))
        pairs += [(most, pseudo), (-most, pseudo)]

    def slope(a):
        return -sum(w * agree * math.exp(-a * agree) for agree, w in pairs)

    low, high = 0.0, 1.0
    while slope(high) < 0:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def boost(y, votes, sample, loss):
    """Weights and α of each round, and F after the last."""
    F = [0.0] * len(y)
    seen, alphas = [], []
    for h in votes:
        weights = row_weights(y, F, sample, loss)
        a = alpha(y, h, weights, sum(sample))
        F = [score + a * vote for score, vote in zip(F, h, strict=True)]
        seen.append(weights)
        alphas.append(a)
    return seen, alphas, F


def raw_score(votes, alphas, row):
    """Eq. 4 for one row: the share of the votes, weighted by α."""
    share = sum(a * (1 + h[row]) / 2 for a, h in zip(alphas, votes, strict=True))
    return share / sum(alphas)


def probability(score, loss):
    return _logistic(2 * score if loss == "exponential" else score)
