"""Slow, obvious twins of near-isotonic regression and its ensemble. They import nothing of ours.

A path is (bins at λ = 0, [(λ, bins), …]) and a bin is (first cell, one past its last, S, W, value),
in rational arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

NOTHING = Fraction(0)


def group(s, y, w):
    """Ascending scores, and the weights of negatives and positives at each."""
    cells = {}
    for score, label, weight in zip(s, y, w, strict=True):
        if weight > 0:
            cells.setdefault(float(score) + 0.0, [0.0, 0.0])[int(label)] += float(weight)
    ordered = sorted(cells.items())
    return [x for x, _ in ordered], [c[0] for _, c in ordered], [c[1] for _, c in ordered]


def _join(bins, same):
    """Neighbours of equal value become one bin."""
    joined = []
    for b in bins:
        if joined and abs(joined[-1][4] - b[4]) <= same * abs(joined[-1][4]):
            a = joined[-1]
            joined[-1] = (a[0], b[1], a[2] + b[2], a[3] + b[3], a[4])
        else:
            joined.append(b)
    return joined


def path(n0, n1, same_value=NOTHING, same_lambda=NOTHING):
    """The paper's Algorithm 1 (mPAVA): all bins move, the first to meet are merged. O(N·T).

    With tolerances, values and breakpoints that close (relatively) count as equal.
    """
    cells = [(Fraction(b), Fraction(a) + Fraction(b)) for a, b in zip(n0, n1, strict=True)]
    bins = _join([(i, i + 1, s, w, s / w) for i, (s, w) in enumerate(cells)], same_value)
    begin, models, now = bins, [], NOTHING
    while True:
        falls = [0, *(int(a[4] > b[4]) for a, b in pairwise(bins)), 0]
        slope = [(falls[i] - falls[i + 1]) / b[3] for i, b in enumerate(bins)]
        waits = [
            (bins[i][4] - bins[i + 1][4]) / (slope[i + 1] - slope[i])
            for i in range(len(bins) - 1)
            if slope[i] != slope[i + 1]
        ]
        waits = [wait for wait in waits if wait > 0]
        if not waits:
            return begin, models
        wait = min(waits)
        now += wait
        moved = [(*b[:4], b[4] + a * wait) for a, b in zip(slope, bins, strict=True)]
        bins = _join(moved, same_value)
        if models and now <= models[-1][0] * (1 + same_lambda):
            models[-1] = (models[-1][0], bins)
        else:
            models.append((now, bins))


def values(bins):
    """The value at every cell."""
    return np.concatenate([np.full(b[1] - b[0], float(b[4])) for b in bins])


def log_likelihood(bins):
    total = 0.0
    for _, _, s, w, p in bins:
        total += float(s) * math.log(p) if s > 0 else 0.0
        total += float(w - s) * math.log(1 - p) if w > s else 0.0
    return total


def criterion(name, log, df, total, authors=False):
    if name == "bic":
        return -2 * log + df * (math.log(total) + (math.log(2 * math.pi) if authors else 0))
    if name == "aic":
        return -2 * log + 2 * df
    return -2 * log + 2 * df + 2 * df * (df + 1) / (total - df - 1) if total > df + 1 else math.inf


def choose(scores, models):
    """Weights ∝ exp(−score/2), of all models, of those before the elbow, or of the best."""
    if all(score == math.inf for score in scores):
        return np.eye(len(scores))[-1]
    raw = np.array([math.exp((min(scores) - score) / 2) for score in scores])
    order = sorted(range(len(raw)), key=lambda i: -raw[i])
    kept = len(raw)
    if models == "best":
        kept = 1
    if models == "elbow":
        kept = 1
        limit = 0.005 * np.var(raw, ddof=1) if len(raw) > 1 else 0.0
        while kept + 1 < len(raw) and raw[order[kept]] - raw[order[kept + 1]] > limit:
            kept += 1
    raw[order[kept:]] = 0.0
    return raw / raw.sum()


def average(n0, n1, pseudo=0, name="bic", penalty="bic", models="all", exact=False):
    """The ensemble's value at every cell, by going through every model: O(N·T)."""
    close = (NOTHING, NOTHING) if exact else (Fraction(1, 10**13), Fraction(1, 10**12))
    begin, steps = path(n0, n1, *close)
    fits = [bins for _, bins in steps] or [begin]
    total = sum(n0) + sum(n1)
    scores = [
        criterion(name, log_likelihood(bins), len(bins), total, penalty == "authors")
        for bins in fits
    ]
    result = np.zeros(len(n0))
    for weight, bins in zip(choose(scores, models), fits, strict=True):
        for first, last, _, w, p in bins:
            result[first:last] += weight * (float(p * w) + pseudo) / (float(w) + 2 * pseudo)
    return result


def enir(s, y, w, query, interpolation="step", **options):
    """The calibrated probabilities of the queries."""
    x, n0, n1 = group(s, y, w)
    p = average(n0, n1, **options)
    if interpolation == "linear":
        return np.interp(query, x, p)
    cuts = [a / 2 + b / 2 if a / 2 + b / 2 > a else b for a, b in pairwise(x)]
    return p[np.searchsorted(cuts, query, side="right")]


# --- the authors' program -------------------------------------------------------------------------


def authors_path(n0, n1):
    """λ and the fit at each, before that λ's merges, in floating point with their order of work."""
    n = len(n0)
    rate = [b / (a + b) for a, b in zip(n0, n1, strict=True)]
    falls = [0, *(int(a > b) for a, b in pairwise(rate)), 0]
    # a bin: age, value and λ when made, weight, d, number of cells
    bins = [(i, rate[i], 0.0, n0[i] + n1[i], falls[i] - falls[i + 1], 1) for i in range(n)]
    found = []  # (λ, when found, age of the left bin, age of the right bin)

    def at(b, now):
        return b[1] + b[4] / b[3] * (now - b[2])

    def meet(a, b, now):
        apart, closing = at(a, now) - at(b, now), b[4] / b[3] - a[4] / a[3]
        if abs(apart) <= 1e-10:
            found.append((now, len(found), a[0], b[0]))
        elif closing != 0 and apart / closing >= 0:
            found.append((now + apart / closing, len(found), a[0], b[0]))

    for a, b in pairwise(bins):
        meet(a, b, 0.0)
    lambdas, fits, now, age = [0.0], [np.array(rate)], 0.0, n
    while True:
        pairs = {(a[0], b[0]): k for k, (a, b) in enumerate(pairwise(bins))}
        ahead = [event for event in found if event[2:] in pairs]
        if not ahead:
            return lambdas, fits
        when, _, *pair = min(ahead)
        now = max(now, when)
        if now != lambdas[-1]:
            lambdas.append(now)
            fits.append(np.concatenate([np.full(b[5], at(b, now)) for b in bins]))
        k = pairs[tuple(pair)]
        a, b = bins[k], bins[k + 1]
        value = at(min(a, b), now)
        bins[k : k + 2] = [(age, value, now, a[3] + b[3], a[4] + b[4], a[5] + b[5])]
        age += 1
        if k:
            meet(bins[k - 1], bins[k], now)
        if k + 1 < len(bins):
            meet(bins[k], bins[k + 1], now)


def authors(s, y, w, query, name="bic", models="all"):
    query = np.asarray(query, float)
    used = [v for v, a in zip(s, w, strict=True) if a > 0]
    if min(used) < 0 or max(used) > 1:
        s, query = 1 / (1 + np.exp(-np.asarray(s))), 1 / (1 + np.exp(-query))
    x, n0, n1 = (np.array(column) for column in group(s, y, w))
    lambdas, fits = authors_path(n0.tolist(), n1.tolist())
    last = len(lambdas) - 1
    chosen = range(1, last + 1)
    if last >= 100:
        chosen = [t for t in np.round(np.arange(100) / 99 * last).astype(int) if t]
    total, scores, curves = n0.sum() + n1.sum(), [], []
    for t in list(chosen) or [0]:
        p = np.clip(np.round(fits[t], 6), 0, 1)
        log = sum(
            (b * (math.log(v) if v > 0 else -math.inf) if b else 0)
            + (a * (math.log1p(-v) if v < 1 else -math.inf) if a else 0)
            for a, b, v in zip(n0, n1, p, strict=True)
        )
        runs = np.split(np.arange(len(p)), np.flatnonzero(np.diff(p)) + 1)
        scores.append(criterion(name, log, len(runs), total, authors=True))
        curve = np.empty(len(p))
        for run in runs:
            count = (n0 + n1)[run].sum()
            mean = ((n0 + n1) * x)[run].sum() / count
            c = abs(n1[run].sum() / count - mean)
            curve[run] = (p[run[0]] * count + mean * (1 - c)) / (count + 1 - c)
        curves.append(curve)
    return np.interp(query, x, choose(scores, models) @ np.array(curves))
