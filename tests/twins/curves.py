"""Slow, obvious twins of the reliability curve. They import nothing of ours."""

from __future__ import annotations

import math
from fractions import Fraction


def naive_bins(p, bins, binning, weights):
    """Lists of row numbers, one per non-empty bin."""
    rows = [i for i in range(len(p)) if weights[i] > 0]
    if binning == "width":
        members = []
        for k in range(bins):
            last = k == bins - 1
            members.append(
                [i for i in rows if k / bins <= p[i] and (last or p[i] < (k + 1) / bins)]
            )
        return [group for group in members if group]
    total = sum(Fraction(weights[i]) for i in rows)
    groups, current, mass, filled = [], [], Fraction(0), 0
    for value in sorted({p[i] for i in rows}):
        tie = [i for i in rows if p[i] == value]
        current += tie
        mass += sum(Fraction(weights[i]) for i in tie)
        if mass * bins >= (filled + 1) * total:
            filled = math.floor(mass * bins / total)
            groups.append(current)
            current = []
    return groups + ([current] if current else [])


def naive_curve(positive, p, bins, binning="width", weights=None):
    """One dict per non-empty bin: mean_p, fraction, weight, effective."""
    weights = [1.0] * len(p) if weights is None else weights
    points = []
    for group in naive_bins(p, bins, binning, weights):
        weight = math.fsum(weights[i] for i in group)
        points.append(
            {
                "mean_p": math.fsum(weights[i] * p[i] for i in group) / weight,
                "fraction": math.fsum(weights[i] for i in group if positive[i]) / weight,
                "weight": weight,
                "effective": weight**2 / math.fsum(weights[i] ** 2 for i in group),
            }
        )
    return points


def naive_clopper_pearson(k, n, level):
    """The q at which k or more, and k or fewer, of n successes have probability (1 − level)/2."""
    tail = (1 - level) / 2

    def at_least(q):
        return math.fsum(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(k, n + 1))

    def at_most(q):
        return math.fsum(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(k + 1))

    lower = 0.0 if k == 0 else _bisect(lambda q: at_least(q) >= tail)
    upper = 1.0 if k == n else _bisect(lambda q: at_most(q) <= tail)
    return lower, upper


def _bisect(true_from):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if true_from(middle) else (middle, high)
    return high
