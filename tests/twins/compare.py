"""Slow and obvious twins of ``calibrant.compare``; nothing of ours is imported here."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def ranks_of_row(row, larger_is_better):
    """1 for the best; equals share the mean of the places that they take."""
    ranks = []
    for score in row:
        better = sum(other > score if larger_is_better else other < score for other in row)
        equal = sum(other == score for other in row)
        ranks.append(Fraction(2 * better + equal + 1, 2))
    return ranks


def mean_ranks(scores, larger_is_better):
    table = [ranks_of_row(row, larger_is_better) for row in scores]
    return [sum(column) / len(table) for column in zip(*table, strict=True)]


def friedman(scores, larger_is_better):
    """χ² and F_F by the textbook's formulas, in fractions; F_F None where it is infinite."""
    means = mean_ranks(scores, larger_is_better)
    n, k = len(scores), len(means)
    square = sum(mean**2 for mean in means)
    chi2 = Fraction(12 * n, k * (k + 1)) * (square - Fraction(k * (k + 1) ** 2, 4))
    below = n * (k - 1) - chi2
    return chi2, None if below == 0 else (n - 1) * chi2 / below


def tie_factor(scores):
    """What Friedman's χ² is divided by."""
    n, k = len(scores), len(scores[0])
    tied = 0
    for row in scores:
        for value in set(row):
            t = sum(other == value for other in row)
            tied += t**3 - t
    return 1 - Fraction(tied, n * k * (k * k - 1))


def holm_rejects(p_values, level):
    """Step down from the smallest: stop at the first that is too large."""
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for step, place in enumerate(order):
        if p_values[place] > level / (len(p_values) - step):
            break
        rejected[place] = True
    return rejected


def cliques(ranks, difference):
    """All largest sets of two or more ranks that lie less than the difference apart."""
    places = range(len(ranks))
    near = [
        set(some)
        for size in range(2, len(ranks) + 1)
        for some in itertools.combinations(places, size)
        if max(ranks[i] for i in some) - min(ranks[i] for i in some) < difference
    ]
    return {frozenset(some) for some in near if not any(some < other for other in near)}


def wilcoxon(differences, zeros):
    """Both rank sums and the two-sided p-value, over all 2ⁿ signs."""
    known = [d for d in differences if d != 0] if zeros == "drop" else list(differences)
    ranks = ranks_of_row([abs(d) for d in known], larger_is_better=False)
    signed = [(r, d) for r, d in zip(ranks, known, strict=True) if d != 0]
    idle = [r for r, d in zip(ranks, known, strict=True) if d == 0]
    plus = sum((r for r, d in signed if d > 0), Fraction(0))
    minus = sum((r for r, d in signed if d < 0), Fraction(0))
    smaller, cases = min(plus, minus), 0
    for signs in itertools.product((0, 1), repeat=len(signed)):
        cases += sum(r for (r, _), sign in zip(signed, signs, strict=True) if sign) <= smaller
    p = min(Fraction(1), Fraction(2 * cases, 2 ** len(signed)))
    half = sum(idle, Fraction(0)) / 2 if zeros == "split" else 0
    return plus + half, minus + half, p


def relative_gain(new, base, quantile):
    """Mean and half the interval's width; quantile(df) is Student's."""
    gains = [(a - b) / b for a, b in zip(new, base, strict=True) if b != 0]
    n = len(gains)
    mean = sum(gains) / n
    sd = math.sqrt(sum((x - mean) ** 2 for x in gains) / (n - 1))
    return mean, quantile(n - 1) * sd / math.sqrt(n)
