"""The slow, obvious twin of calibration over many groups of rows. It imports nothing of ours."""

from __future__ import annotations

import math
from itertools import combinations, product

from scipy.optimize import brentq


def masks(columns, crossings=True, fewest=1):
    """The rows of each group by name: columns are lists of words, one for each row by column name.

    A crossing with the rows of one of its groups is left out.
    """
    n = len(next(iter(columns.values())))
    single = {}
    for name, values in columns.items():
        for value in sorted(set(values)):
            single[name, value] = {i for i in range(n) if values[i] == value}
    found = {frozenset(): set(range(n))}
    found |= {frozenset([key]): rows for key, rows in single.items()}
    if crossings:
        for (a, rows), (b, others) in combinations(single.items(), 2):
            both = rows & others
            if a[0] != b[0] and both not in (rows, others):
                found[frozenset([a, b])] = both
    return {key: rows for key, rows in found.items() if len(rows) >= fewest or not key}


def divergence(a, b):
    """KL of two shares."""
    total = 0.0
    for x, y in ((a, b), (1.0 - a, 1.0 - b)):
        if x > 0.0:
            total += math.inf if y <= 0.0 else x * math.log(x / y)
    return max(total, 0.0)


def sums(rows, y, p, w):
    weight = math.fsum(w[i] for i in rows)
    predicted = math.fsum(w[i] * p[i] for i in rows) / weight
    observed = math.fsum(w[i] * y[i] for i in rows) / weight
    chance = math.fsum(w[i] ** 2 * p[i] * (1 - p[i]) for i in rows)
    return weight, predicted, observed, chance


def statistic(rows, y, p, w):
    """|signed root of the deviance|."""
    weight, predicted, observed, chance = sums(rows, y, p, w)
    if chance == 0.0:
        return math.inf if abs(observed - predicted) > 1e-12 else 0.0
    trials = weight**2 * predicted * (1 - predicted) / chance
    return math.sqrt(2 * trials * divergence(min(observed, 1.0), predicted))


def p_values(groups, y, p, w):
    """The chance of a largest statistic of at least each group's own, over all possible labels."""
    own = {key: statistic(rows, y, p, w) for key, rows in groups.items()}
    beyond = dict.fromkeys(groups, 0.0)
    for labels in product((0, 1), repeat=len(p)):
        chance = math.prod(q if a else 1 - q for a, q in zip(labels, p, strict=True))
        if chance == 0.0:
            continue
        largest = max(statistic(rows, labels, p, w) for rows in groups.values())
        for key, value in own.items():
            beyond[key] += chance * (largest >= value * (1 - 1e-6))
    return beyond


def interval(rows, y, p, w, critical):
    """Where the deviance with the larger of two variances is critical, around the prediction."""
    weight, predicted, observed, chance = sums(rows, y, p, w)
    gap = observed - predicted
    spread = math.fsum(w[i] ** 2 * (y[i] - p[i] - gap) ** 2 for i in rows)
    trials = weight**2 * predicted * (1 - predicted) / chance
    if 0 < observed < 1 and spread > 0:
        trials = min(trials, weight**2 * observed * (1 - observed) / spread)

    def above(share):
        return math.sqrt(2 * trials * divergence(observed, share)) - critical

    tiny = 1e-13
    low = brentq(above, tiny, observed, xtol=1e-13) if observed > tiny else 0.0
    high = brentq(above, observed, 1 - tiny, xtol=1e-13) if observed < 1 - tiny else 1.0
    return low - predicted, high - predicted
