"""Slow, obvious twins of the measures that clinical papers report. They import nothing of ours.

Rows are (label 0/1, probability, weight); a weight of zero means that the row is absent.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from scipy.stats import norm, t

SHARES = ((0.05, 0.275, 0.5, 0.725, 0.95), (0.05, 0.35, 0.65, 0.95), (0.1, 0.5, 0.9))


def present(y, p, w):
    """Rows with a weight, in ascending order of probability."""
    rows = zip(y, p, w, strict=True)
    return sorted(((int(a), float(b), float(c)) for a, b, c in rows if c > 0), key=lambda r: r[1])


def reached(pairs, share):
    """The first value at which a share of the weight is reached; pairs are (value, weight)."""
    total, upto = math.fsum(w for _, w in pairs), 0.0
    for value, weight in sorted(pairs):
        upto += weight
        if upto >= share * total * (1 - 1e-12):
            return value
    raise AssertionError


def quantile(pairs, share):
    """Midway between the first value that reaches the share and the first that exceeds it."""
    total = math.fsum(w for _, w in pairs)
    beyond = [(v, w) for v, w in pairs]
    low = reached(beyond, share)
    upto = 0.0
    for value, weight in sorted(beyond):
        upto += weight
        if upto > share * total * (1 + 1e-12):
            return (low + value) / 2
    return low


def basis(z, knots):
    """Harrell's restricted cubic spline at one place: 1, z, and a term for all knots but two."""
    if not knots:
        return [1.0, z]
    first, last, end = knots[0], knots[-2], knots[-1]

    def cube(x):
        return max(x, 0.0) ** 3

    terms = [
        cube(z - k)
        - cube(z - last) * (end - k) / (end - last)
        + cube(z - end) * (last - k) / (end - last)
        for k in knots[:-2]
    ]
    return [1.0, z, *(term / (end - first) ** 2 for term in terms)]


def spline_curve(y, p, w, knots=None):
    """The fitted curve as a function of p, by a general minimiser on rows."""
    rows = [row for row in present(y, p, w) if 0.0 < row[1] < 1.0]
    z = [(float(logit(b)), c) for _, b, c in rows]
    distinct = len({b for _, b, _ in rows})
    for shares in (*SHARES, ()) if knots is None else ():
        knots = [reached(z, share) for share in shares]
        if len(set(knots)) == len(knots) and distinct >= max(len(knots), 2):
            break
    u = np.array([basis(a, knots) for a, _ in z])
    labels, weight = np.array([a for a, _, _ in rows]), np.array([c for _, _, c in rows])
    root, back = np.linalg.qr(u)

    def loss(theta):
        eta = root @ theta
        q = expit(eta)
        value = weight @ np.logaddexp(0.0, np.where(labels, -eta, eta))
        return float(value), root.T @ (weight * (q - labels))

    found = minimize(loss, np.zeros(u.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10})
    theta = np.linalg.solve(back, found.x)
    return lambda b: float(expit(np.array(basis(float(logit(b)), knots)) @ theta))


def errors_in_r(y, p):
    """ICI, E50, E90 and Emax as R's packages have them, of rows without weights.

    The spline of `CalibrationCurves` (smooth="rcs") has its knots at R's default quantiles, and so
    have the distances theirs.
    """
    knots = np.quantile(logit(p), SHARES[0]).tolist()
    curve = spline_curve(y, p, np.ones(len(p)), knots)
    return summed_up(np.array([abs(b - curve(b)) for b in p]))


def errors_by_loess(y, p, span=0.75):
    """The same by R's loess(y ~ p): local parabolas, tricube weights, as Austin and Steyerberg."""
    near = math.floor(len(p) * span + 1e-5)
    gaps = []
    for b in p:
        far = np.abs(p - b)
        weight = np.clip(1 - (far / np.sort(far)[near - 1]) ** 3, 0, None) ** 3
        root = np.sqrt(weight)
        u = np.vander(p - b, 3, increasing=True)
        level = np.linalg.lstsq(u * root[:, None], y * root, rcond=None)[0][0]
        gaps.append(abs(b - min(max(level, 0.0), 1.0)))
    return summed_up(np.array(gaps))


def summed_up(gaps):
    """Mean, median, 90 % quantile and largest."""
    return gaps.mean(), *np.quantile(gaps, (0.5, 0.9)), gaps.max()


def curve_errors(y, p, w):
    """ICI, E50, E90 and Emax; predictions of exactly 0 or 1 against their own frequency."""
    rows = present(y, p, w)
    curve = spline_curve(y, p, w)
    gaps = []
    for _, b, c in rows:
        if 0.0 < b < 1.0:
            gaps.append((abs(b - curve(b)), c))
        else:
            tied = [(a, e) for a, d, e in rows if d == b]
            rate = math.fsum(a * e for a, e in tied) / math.fsum(e for _, e in tied)
            gaps.append((abs(b - rate), c))
    total = math.fsum(c for _, c in gaps)
    mean = math.fsum(g * c for g, c in gaps) / total
    return mean, quantile(gaps, 0.5), quantile(gaps, 0.9), max(g for g, _ in gaps)


def net_benefit(y, p, w, threshold):
    """TP/n − FP/n·t/(1 − t), row by row."""
    rows = present(y, p, w)
    total = math.fsum(c for _, _, c in rows)
    price = threshold / (1 - threshold)
    return math.fsum(c * (1 if a else -price) for a, b, c in rows if b >= threshold) / total


def net_benefit_interval(y, p, w, threshold, level):
    """Student's interval of a mean of rows, moved for skewness, the error at least as promised."""
    rows = present(y, p, w)
    scale = math.fsum(c for _, _, c in rows) / math.fsum(c * c for _, _, c in rows)
    rows = [(a, b, c * scale) for a, b, c in rows]
    total = math.fsum(c for _, _, c in rows)
    size = total**2 / math.fsum(c * c for _, _, c in rows)
    price = threshold / (1 - threshold)
    mean = net_benefit(y, p, w, threshold)
    brought = [((1 if a else -price) if b >= threshold else 0.0, c) for a, b, c in rows]
    second = math.fsum((c * (x - mean)) ** 2 for x, c in brought) * size / (size - 1)
    third = math.fsum((c * (x - mean)) ** 3 for x, c in brought)
    acted = [(b, c) for _, b, c in rows if b >= threshold]
    promised = math.fsum(c * c * b * (1 - b) * (1 + price) ** 2 for b, c in acted)
    if promised > second:
        second = promised
        third = math.fsum(c**3 * b * (1 - b) * (1 - 2 * b) * (1 + price) ** 3 for b, c in acted)
    q = float(t.ppf(0.5 + level / 2, max(size - 1, 0.5)))
    skew = third / second**1.5 if second > 0 else 0.0
    move = min(max(skew * (1 / 6 + q * q / 3), -q / 2), q / 2)
    error = math.sqrt(second) / total
    return mean + error * (move - q), mean + error * (move + q)


def ratio_interval(y, p, w, level):
    """The ratios at which the score test of rates r·p is at its limit, by bisection."""
    rows = present(y, p, w)
    scale = math.fsum(c for _, _, c in rows) / math.fsum(c * c for _, _, c in rows)
    rows = [(a, b, c * scale) for a, b, c in rows]
    observed = math.fsum(a * c for a, _, c in rows)
    expected = math.fsum(b * c for _, b, c in rows)
    ratio = observed / expected

    def variance(r):
        return math.fsum(c * c * r * b * (1 - min(r, 1.0) * b) for _, b, c in rows)

    seen = math.fsum((c * (a - ratio * b)) ** 2 for a, b, c in rows)
    factor = max(seen / variance(ratio), 1.0) if variance(ratio) > 0 else 1.0
    limit = float(norm.ppf(0.5 + level / 2)) ** 2 * factor

    def beyond(r):
        return (observed - r * expected) ** 2 - limit * variance(r)

    low = float(brentq(beyond, 0.0, ratio, xtol=1e-14)) if ratio > 0 else 0.0
    high = ratio + 1e-12 * (1 + ratio)
    while beyond(high) < 0:
        high = 2 * high + 1e-6
    start = ratio if ratio > 0 else high / 1e6
    return low, float(brentq(beyond, start, high, xtol=1e-14))
