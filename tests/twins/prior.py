"""Prior shift the slow and obvious way; nothing of the library is used."""

from __future__ import annotations

import math
from fractions import Fraction


def adjusted(p, train, target):
    """p·a / (p·a + (1 − p)·b) with a = π'/π and b = (1 − π')/(1 − π), in exact arithmetic."""
    p, train, target = Fraction(p), Fraction(train), Fraction(target)
    up, down = p * target / train, (1 - p) * (1 - target) / (1 - train)
    return float(up / (up + down))


def shift_to_mean(p, w, target):
    """The shift of log-odds at which the mean is the target, by halving."""

    def mean(shift):
        factor = Fraction(math.exp(shift))
        moved = (Fraction(a) * factor / (Fraction(a) * factor + 1 - Fraction(a)) for a in p)
        rows = list(zip(moved, map(Fraction, w), strict=True))
        return sum(q * v for q, v in rows) / sum(v for _, v in rows)

    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < Fraction(target) else (low, middle)
    return (low + high) / 2


def adjusted_row(p, train, target):
    """p_c · π'_c/π_c, divided by the sum."""
    rows = zip(p, train, target, strict=True)
    parts = [Fraction(a) * Fraction(c) / Fraction(b) for a, b, c in rows]
    return [float(part / sum(parts)) for part in parts]


def em(p, w, train, rounds=20_000, tol=1e-15):
    """The rates of k classes: each row's classes by Bayes' rule, and their mean, in turn."""
    rates = list(train)
    for _ in range(rounds):
        sums = [0.0] * len(rates)
        for row, weight in zip(p, w, strict=True):
            parts = [a * c / b for a, b, c in zip(row, train, rates, strict=True)]
            whole = math.fsum(parts)
            for c, part in enumerate(parts):
                sums[c] += weight * part / whole
        new = [s / math.fsum(w) for s in sums]
        moved = max(abs(a - b) for a, b in zip(new, rates, strict=True))
        rates = new
        if moved < tol:
            break
    return rates


def gap(p, w, train, rates):
    """How much larger Σ w·ln L may be anywhere: its steepest rise from the rates to one class.

    The logarithm is concave, so that no class and no mixture of them can promise more.
    """
    rises = [0.0] * len(rates)
    for row, weight in zip(p, w, strict=True):
        parts = [a / b for a, b in zip(row, train, strict=True)]
        inside = math.fsum(part * rate for part, rate in zip(parts, rates, strict=True))
        for c, part in enumerate(parts):
            rises[c] += weight * (part / inside - 1)
    return max(rises)


def log_likelihood(p, w, train, rates):
    """Σ w·ln Σ_c π'_c·p_c/π_c."""
    total = []
    for row, weight in zip(p, w, strict=True):
        inside = math.fsum(a * c / b for a, b, c in zip(row, train, rates, strict=True))
        if weight > 0 and inside <= 0:
            return -math.inf
        total.append(weight * math.log(inside) if weight > 0 else 0.0)
    return math.fsum(total)
