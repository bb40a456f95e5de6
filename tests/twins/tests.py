"""Slow, obvious twins of the tests of calibration. They import nothing of ours.

Rows are (label 0/1, probability, weight); a weight of zero means that the row is absent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.stats import norm, t

from twins import metrics as naive_metrics


def present(y, p, w):
    """Rows with a weight, in ascending order of probability."""
    rows = zip(y, p, w, strict=True)
    return sorted(((int(a), float(b), float(c)) for a, b, c in rows if c > 0), key=lambda r: r[1])


def repeated(rows):
    """Whole weights as so many rows of weight one."""
    return [(a, b, 1.0) for a, b, c in rows for _ in range(int(c))]


def meant(y, p, w, weights):
    rows = present(y, p, w)
    return repeated(rows) if weights == "counts" else rows


def can_be(rows):
    return not any((a == 1 and b == 0.0) or (a == 0 and b == 1.0) for a, b, _ in rows)


# --- all possible labels ------------------------------------------------------------------------


def all_labels(y, p, w, weights, bins, binning):
    """The ECE of the labels that came, and [(chance, ECE)] of all labels that could have come."""
    rows = meant(y, p, w, weights)
    p, w = [r[1] for r in rows], [r[2] for r in rows]
    seen = naive_metrics.ece([r[0] for r in rows], p, w, bins=bins, binning=binning)
    outcomes = []
    for labels in product((0, 1), repeat=len(rows)):
        chance = math.prod(q if a else 1 - q for a, q in zip(labels, p, strict=True))
        if chance:
            outcomes.append((chance, naive_metrics.ece(labels, p, w, bins=bins, binning=binning)))
    return seen, outcomes


# --- smooth ECE ---------------------------------------------------------------------------------


def smoothed(rows, sigma, points):
    """∫ |Σ w(y − p) K(t, p)| dt / Σw by the trapezoidal rule, with four images on either side."""
    at = np.arange(points + 1) / points
    height = np.zeros(points + 1)
    for a, b, c in rows:
        for turn in range(-4, 5):
            for image in (b + 2 * turn, -b + 2 * turn):
                height += c * (a - b) * np.exp(-(((at - image) / sigma) ** 2) / 2)
    area = np.abs(height).sum() - (abs(height[0]) + abs(height[-1])) / 2
    return area / points / sigma / math.sqrt(2 * math.pi) / sum(c for _, _, c in rows)


def smooth_ece(y, p, w, points=1000):
    """The σ at which smECE_σ = σ, by halving."""
    rows = present(y, p, w)
    low, high = 0.0, 1.0
    for _ in range(22):
        middle = (low + high) / 2
        if smoothed(rows, middle, points) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# --- cumulative differences ---------------------------------------------------------------------


def ecce(y, p, w, weights):
    """Range, maximum, σ and mean; F is looked at after the last row of each tie."""
    rows = meant(y, p, w, weights)
    total = math.fsum(c for _, _, c in rows)
    path = [0.0]
    for cut in sorted({b for _, b, _ in rows}):
        path.append(math.fsum(c * (a - b) for a, b, c in rows if b <= cut) / total)
    sigma = math.sqrt(math.fsum(c * c * b * (1 - b) for _, b, c in rows)) / total
    heights = dict(zip(sorted({b for _, b, _ in rows}), path[1:], strict=True))
    mean = math.fsum(c * abs(heights[b]) for _, b, c in rows) / total
    return max(path) - min(path), max(map(abs, path)), sigma, mean


def range_beyond(x):
    """1 − the distribution function of the range of a Brownian motion, by its theta series.

    Beyond 12 that cancels, and the chance is below 1e-30.
    """
    if x > 12:
        return 0.0
    total = []
    for m in range(1, 600, 2):
        total.append((8 / x**2 + 8 / (math.pi * m) ** 2) * math.exp(-((m * math.pi / x) ** 2) / 2))
    return 1 - math.fsum(total)


def maximum_beyond(x):
    """The same of its maximum."""
    if x > 12:
        return 0.0
    terms = (
        4 / math.pi * (-1) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8)
        for k in range(300)
    )
    return 1 - math.fsum(terms)


# --- Spiegelhalter, Hosmer and Lemeshow ---------------------------------------------------------


def spiegelhalter(y, p, w, weights):
    """Z, p-value, Brier score and its expectation."""
    rows = meant(y, p, w, weights)
    total = math.fsum(c for _, _, c in rows)
    exact = [(a, Fraction(b), Fraction(c)) for a, b, c in rows]
    excess = sum(c * (a - b) * (1 - 2 * b) for a, b, c in exact)
    variance = sum(c * c * (1 - 2 * b) ** 2 * b * (1 - b) for _, b, c in exact)
    # the square of z may be beyond all floats
    z = math.sqrt(excess**2 / variance / 10**200) * 1e100 if variance else 0.0
    z = math.copysign(z, excess)
    z = z if can_be(rows) else math.inf
    brier = math.fsum(c * (a - b) ** 2 for a, b, c in rows) / total
    promised = math.fsum(c * b * (1 - b) for _, b, c in rows) / total
    return z, 2 * norm.sf(abs(z)), brier, promised


# --- grades -------------------------------------------------------------------------------------


def halved(function, wanted):
    """Where a rising function on [0, 1] is what is wanted, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
    return (low + high) / 2


def exact_interval(n, d, tail):
    """The rates at which d or more, and d or fewer, of n rows have the chance ``tail``."""

    def chance(rate, counts):
        return math.fsum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in counts)

    low = halved(lambda rate: chance(rate, range(d, n + 1)), tail) if d else 0.0
    high = halved(lambda rate: -chance(rate, range(d + 1)), -tail) if d < n else 1.0
    return low, high


def jeffreys_interval(n, d, tail, steps=200_000):
    """Quantiles of the density x^(d − ½)(1 − x)^(n − d − ½), summed over sin² of even angles."""
    angle = (np.arange(steps) + 0.5) * np.pi / 2 / steps
    logs = 2 * d * np.log(np.sin(angle)) + 2 * (n - d) * np.log(np.cos(angle))
    upto = np.cumsum(np.exp(logs - logs.max()))
    low, high = (np.sin(np.interp(end, upto / upto[-1], angle)) ** 2 for end in (tail, 1 - tail))
    return (float(low) if d else 0.0), (float(high) if d < n else 1.0)


# --- kernel calibration error -------------------------------------------------------------------


def total_variation(p, q):
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def median_distance(p):
    """Of the distinct rows; 1 where there is one."""
    rows = sorted(set(map(tuple, p)))
    apart = sorted(total_variation(a, b) for i, a in enumerate(rows) for b in rows[:i])
    if not apart:
        return 1.0
    return (apart[(len(apart) - 1) // 2] + apart[len(apart) // 2]) / 2


def skce(codes, p, w, bandwidth, places=None):
    """One pair of different rows after the other; p: a distribution for each row.

    ``places`` has the distances of the distributions, where those of p are rounded.
    """
    products, pairs = [], []
    places = p if places is None else places
    for i, (c, q, v) in enumerate(zip(codes, p, w, strict=True)):
        for j, (d, r, u) in enumerate(zip(codes, p, w, strict=True)):
            if i != j:
                near = math.exp(-total_variation(places[i], places[j]) / bandwidth)
                inner = sum(
                    ((c == m) - a) * ((d == m) - b)
                    for m, (a, b) in enumerate(zip(q, r, strict=True))
                )
                products.append(v * u * near * inner)
                pairs.append(v * u)
    return math.fsum(products) / math.fsum(pairs)


def all_skce(p, w, bandwidth):
    """[(chance, SKCE)] of all labels that could have come."""
    outcomes = []
    for labels in product(range(len(p[0])), repeat=len(p)):
        chance = math.prod(row[label] for row, label in zip(p, labels, strict=True))
        if chance:
            outcomes.append((chance, skce(labels, p, w, bandwidth)))
    return outcomes


# --- differences --------------------------------------------------------------------------------


def loss(kind, label, p):
    """Of the probabilities of all classes."""
    if kind == "brier":
        return sum((q - (j == label)) ** 2 for j, q in enumerate(p))
    return -math.log(p[label]) if p[label] > 0 else math.inf


def difference(kind, y, p, q, w, weights, groups=None, level=0.95):
    """Mean difference, standard error, ends of the interval and p-value; p, q: one row per case."""
    scale = 0.5 if kind == "brier" and len(p[0]) == 2 else 1.0
    d = [scale * (loss(kind, a, b) - loss(kind, a, c)) for a, b, c in zip(y, p, q, strict=True)]
    groups = list(range(len(d))) if groups is None else list(groups)
    rows = [(x, v, g) for x, v, g in zip(d, w, groups, strict=True) if v > 0]
    total = math.fsum(v for _, v, _ in rows)
    mean = math.fsum(x * v for x, v, _ in rows) / total
    if weights == "counts":
        variance = math.fsum(v * (x - mean) ** 2 for x, v, _ in rows) / total / (total - 1)
        df = total - 1
    else:
        names = {g for _, _, g in rows}
        sums = [math.fsum(v * (x - mean) for x, v, g in rows if g == name) for name in names]
        m = total**2 / math.fsum(v * v for _, v, _ in rows)
        m = len(names) if weights == "groups" else m
        variance = m / (m - 1) * math.fsum(s * s for s in sums) / total**2
        df = m - 1
    error = math.sqrt(variance)
    reach = t.ppf((1 + level) / 2, df) * error
    p_value = 2 * t.sf(abs(mean) / error, df) if error else float(mean == 0)
    return mean, error, mean - reach, mean + reach, p_value
