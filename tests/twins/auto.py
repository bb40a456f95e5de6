"""The slow, obvious reading of a leaderboard: plain loops over rows and folds."""

from __future__ import annotations

import math


def losses(y, p):
    log = [-math.log(q) if t else -math.log1p(-q) for t, q in zip(y, p, strict=True)]
    square = [(t - q) ** 2 for t, q in zip(y, p, strict=True)]
    return log, square


def mean_and_error(values, weight):
    """Weighted mean and its standard error; a row's part in the variance goes by w²."""
    total = sum(weight)
    mean = sum(w * v for w, v in zip(weight, values, strict=True)) / total
    size = total**2 / sum(w * w for w in weight)
    spread = sum((w * (v - mean)) ** 2 for w, v in zip(weight, values, strict=True))
    return mean, math.sqrt(spread / (1 - 1 / size)) / total


def clustered_error(values, weight, cluster):
    total = sum(weight)
    mean = sum(w * v for w, v in zip(weight, values, strict=True)) / total
    sums, sizes = {}, {}
    for v, w, c in zip(values, weight, cluster, strict=True):
        sums[c] = sums.get(c, 0.0) + w * (v - mean)
        sizes[c] = sizes.get(c, 0.0) + w
    count = total**2 / sum(s * s for s in sizes.values())
    return math.sqrt(sum(s * s for s in sums.values()) / (1 - 1 / count)) / total


def taken(named_losses, weight, right):
    """The first unless one is ahead of it, by luck or by a test at 5 %; then the second."""
    means = {name: mean_and_error(loss, weight)[0] for name, loss in named_losses.items()}
    best = min(means, key=means.get)
    first, second = list(named_losses)[:2]

    def ahead(one, other):
        """By how many standard errors."""
        gain = [b - a for a, b in zip(named_losses[one], named_losses[other], strict=True)]
        mean, error = mean_and_error(gain, weight)
        return 0.0 if one == other or mean <= 0.0 else mean / error

    enough = 0.0 if right <= 0.05 else 1.64
    if ahead(best, first) <= enough:
        return first
    return second if ahead(second, first) > enough and ahead(best, second) <= 2.0 else best


def pairs_in_order(y, p, weight):
    """Weighted share of (positive, negative) pairs in the right order, half for ties; and pairs."""
    right = total = 0.0
    for ti, pi, wi in zip(y, p, weight, strict=True):
        for tj, pj, wj in zip(y, p, weight, strict=True):
            if ti and not tj:
                total += wi * wj
                right += wi * wj * (1.0 if pi > pj else 0.5 if pi == pj else 0.0)
    return right, total


def mixture_likelihood(likelihood, weight, shares, pseudo=1.0):
    """What EM with pseudo-counts climbs: Σ w ln Σ share·p + pseudo·Σ ln share."""
    rows = zip(likelihood, weight, strict=True)
    fit = sum(w * math.log(sum(s * q for s, q in zip(shares, p, strict=True))) for p, w in rows)
    return fit + pseudo * sum(math.log(s) for s in shares)
