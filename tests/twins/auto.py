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


def evidence(p, q, y, weight):
    """The score test: by how many standard errors a step from p to q lowers the log loss."""
    total = variance = 0.0
    for pi, qi, yi, wi in zip(p, q, y, weight, strict=True):
        step = math.log(qi / (1 - qi)) - math.log(pi / (1 - pi))
        total += wi * (yi - pi) * step
        variance += wi**2 * pi * (1 - pi) * step**2
    return total / math.sqrt(variance) if variance > 0 else 0.0


def share(*rows):
    """How much q counts beside p."""
    return min(max((evidence(*rows) - 1) / 2, 0.0), 1.0)


def taken(predictions, named_losses, y, weight):
    """The best if it is clearly better than the first, or the second if that is so, too, and near
    the best. Otherwise the second for any share, or the first."""
    means = {name: mean_and_error(loss, weight)[0] for name, loss in named_losses.items()}
    best = min(means, key=means.get)
    first, second = list(named_losses)[:2]

    def counts(name):
        return share(predictions[first], predictions[name], y, weight)

    def behind(one, other):
        """By how many standard errors."""
        gap = [a - b for a, b in zip(named_losses[one], named_losses[other], strict=True)]
        mean, error = mean_and_error(gap, weight)
        return 0.0 if one == other or mean <= 0.0 else mean / error

    def better(name):
        return behind(first, name) > 1.0 and counts(name) >= 0.5

    if better(best):
        return second if better(second) and behind(second, best) <= 2.0 else best
    return second if counts(second) > 0.0 else first


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
