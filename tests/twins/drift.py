"""Slow, obvious twin of the test of drift. It imports nothing of ours.

Rows are (score, label 0/1, is new 0/1); every row has weight one. The common curve is one
coefficient per distinct score, so nothing is said about splines.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.stats import chi2

#: hardly a prior: it keeps the iterations from wandering
FLAT = 1e-9


def probability(eta):
    return 1.0 / (1.0 + np.exp(-eta))


def irls(columns, offset, y, prior):
    """Logistic regression by iterated weighted least squares, rows one by one."""
    theta = np.zeros(columns.shape[1])
    for _ in range(500 if len(theta) else 0):
        p = probability(offset + columns @ theta)
        gradient = columns.T @ (y - p) - prior * theta
        hessian = np.diag(prior).astype(float)
        for row, q in zip(columns, p, strict=True):
            hessian += q * (1.0 - q) * np.outer(row, row)
        step = np.linalg.solve(hessian, gradient)
        theta = theta + step / max(1.0, float(np.abs(step).max()) / 2.0)
        if np.abs(step).max() < 1e-13:
            break
    return theta, probability(offset + columns @ theta)


def log_likelihood(y, p):
    return sum(math.log(q) if a else math.log1p(-q) for a, q in zip(y, p, strict=True))


def rao(columns, tested, y, p):
    """Rao's score statistic: U'I⁻¹U of the larger model, at the smaller one's fit."""
    both = np.column_stack((columns, tested))
    information = np.zeros((both.shape[1], both.shape[1]))
    for row, q in zip(both, p, strict=True):
        information += q * (1.0 - q) * np.outer(row, row)
    k = columns.shape[1]
    inner, cross, outer = information[:k, :k], information[:k, k:], information[k:, k:]
    inverse = np.linalg.inv(inner) if k else np.zeros((0, 0))
    left = outer - cross.T @ inverse @ cross
    score = tested.T @ (y - p) - cross.T @ inverse @ (columns.T @ (y - p))
    return float(score @ np.linalg.solve(left, score))


def bends(z, p):
    """Legendre's polynomials of degree 2 to 4 in the share of rows below, both classes alike."""
    ones, zeros = p / p.sum(), (1.0 - p) / (1.0 - p).sum()
    mass = (ones + zeros) / 2.0
    t = np.array([2.0 * (mass[z < a].sum() + mass[z == a].sum() / 2.0) - 1.0 for a in z])
    return np.column_stack(
        ((3 * t**2 - 1) / 2, (5 * t**3 - 3 * t) / 2, (35 * t**4 - 30 * t**2 + 3) / 8)
    )


def ladder(z, y, new, offset):
    """Of intercept, slope and shape: statistic, df, p-value, and the coefficients of the change.

    Without an offset (None) the common curve has a free level for each score; else there is none.
    """
    if offset is None:
        curve, offset = np.array([[float(a == b) for b in np.unique(z)] for a in z]), 0.0 * z
    else:
        curve = np.empty((len(z), 0))
    _, p = irls(curve, offset, y, np.full(curve.shape[1], FLAT))
    terms = np.column_stack((np.ones(len(z)), z, bends(z, p))) * new[:, None]
    found, columns = [], curve
    for block in ([0], [1], [2, 3, 4]):
        tested = terms[:, block]
        larger = np.column_stack((columns, tested))
        theta, q = irls(larger, offset, y, np.full(larger.shape[1], FLAT))
        statistic = rao(columns, tested, y, p)
        if len(block) == 1:
            ratio = 2.0 * (log_likelihood(y, q) - log_likelihood(y, p))
            statistic = min(statistic, ratio)
        chance = float(chi2.sf(statistic, len(block)))
        found.append((statistic, len(block), chance, theta[curve.shape[1] :]))
        columns, p = larger, q
    return found


def weighted_intercept(p, y, w):
    """The statistic of an intercept beside right probabilities, rows weighing unequally.

    Σw² of a class is to its Σw as in all rows of the class; the likelihood ratio of weighted rows
    is brought to the same variance.
    """
    size = sum(w) ** 2 / sum(a * a for a in w)
    w = [a * size / sum(w) for a in w]
    spread = [
        sum(a * a for a, b in zip(w, y, strict=True) if b == label)
        / sum(a for a, b in zip(w, y, strict=True) if b == label)
        for label in (0, 1)
    ]
    rows = list(zip(p, y, w, strict=True))
    score = sum(a * (b - q) for q, b, a in rows)
    information = sum(a * q * (1 - q) for q, _, a in rows)
    variance = sum(a * q * (1 - q) * ((1 - q) * spread[1] + q * spread[0]) for q, _, a in rows)

    def loss(delta):
        moved = [probability(math.log(q / (1 - q)) + delta) for q in p]
        return -sum(a * math.log(q if b else 1 - q) for q, b, a in zip(moved, y, w, strict=True))

    low, high = -20.0, 20.0
    for _ in range(200):  # the loss is convex: the smaller of two inner places keeps the minimum
        first, second = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, second) if loss(first) < loss(second) else (first, high)
    ratio = 2 * (loss(0.0) - loss(low))
    return min(score**2 / variance, ratio * information / variance)


def distance(first, second):
    """Kolmogorov and Smirnov's, over every place where something can change."""
    places = [*first, *second]
    return max(
        abs(sum(a <= t for a in first) / len(first) - sum(b <= t for b in second) / len(second))
        for t in places
    )


# --- rows of any weight -------------------------------------------------------------------------

#: the precision of the prior on every coefficient
PRIOR = 0.01


def table_spreads(s, y, w, counts):
    """Weights of a table's rows in units of rows, and Σw²/Σw of each row's class and part.

    Parts hold whole scores: as many as the rarer class has twenty rows, at most 16, of equal weight
    up to and with the score (a part ends with the score that makes it full, up to rounding).
    """
    if counts:
        return np.array(w, float), np.ones(len(w)), np.ones(len(w))
    total, square = sum(w), sum(a * a for a in w)
    usual = square / total
    own = {label: [a for a, b in zip(w, y, strict=True) if b == label] for label in (0, 1)}
    rarest = min(sum(a) ** 2 / sum(v * v for v in a) if a else 0.0 for a in own.values())
    parts = min(max(rarest / 20.0, 1.0), 16.0)
    parts = int(parts)

    def part(score):
        upto = sum(a for t, a in zip(s, w, strict=True) if t <= score)
        return int(upto / total * parts * (1 - 1e-9))

    where = [part(score) for score in s]

    def spread(label, place):
        mine = [a for a, b, c in zip(w, y, where, strict=True) if (b, c) == (label, place)]
        mine = mine or own[label] or w
        return sum(a * a for a in mine) / sum(mine)

    found = [[spread(label, place) / usual for place in where] for label in (0, 1)]
    return np.array(w, float) / usual, np.array(found[0]), np.array(found[1])


def quantile(x, w, new, share):
    """Where x has a share of the weight below it, straight between the middles of the scores of
    either table, those of the reference first."""
    cells = [(a, side) for a in np.unique(x) for side in (0, 1) if ((x == a) & (new == side)).any()]
    places = np.array([a for a, _ in cells])
    mass = np.array([w[(x == a) & (new == side)].sum() for a, side in cells])
    return float(np.interp(share, (np.cumsum(mass) - mass / 2) / mass.sum(), places))


def spline(z, w, new, count):
    """The common curve of many scores: columns whose prior is that of level, slope and ∫f″².

    Cubics between ``count`` knots at quantiles of x, that is z drawn in where it is far out.
    """
    low, middle, high = (quantile(z, w, new, share) for share in (0.25, 0.5, 0.75))
    x = np.arcsinh((z - middle) / (2 * (high - low)))
    x = x - np.average(x, weights=w)
    x = x / math.sqrt(np.average(x**2, weights=w))
    wide = x.max() - x.min()
    knots = [x.min()]
    for knot in (quantile(x, w, new, j / (count - 1)) for j in range(1, count - 1)):
        if knots[-1] + 1e-3 * wide <= knot <= x.max() - 1e-3 * wide:
            knots.append(knot)
    powers = np.column_stack([x**k for k in range(4)] + [(x - t).clip(0) ** 3 for t in knots[1:]])
    ends = [*knots, x.max()]
    line = np.column_stack((np.ones(len(x)), x)).T @ (powers * w[:, None]) / w.sum()
    penalty = line.T @ line
    for a, b in pairwise(ends):
        for at in ((a + b) / 2 - (b - a) / math.sqrt(12), (a + b) / 2 + (b - a) / math.sqrt(12)):
            bend = np.array([0, 0, 2, 6 * at] + [6 * max(at - t, 0.0) for t in knots[1:]])
            penalty += (b - a) / 2 * np.outer(bend, bend)  # exact: f″² is a parabola there
    return powers @ np.linalg.inv(np.linalg.cholesky(penalty)).T


def weighted_fit(columns, offset, y, w):
    """The penalised logistic regression of weighted rows: coefficients, probabilities, loss."""
    theta = np.zeros(columns.shape[1])
    objective = np.inf
    for _ in range(300):
        eta = offset + columns @ theta
        p = probability(eta)
        gradient = columns.T @ (w * (p - y)) + PRIOR * theta
        hessian = (columns * (w * p * (1 - p))[:, None]).T @ columns + PRIOR * np.eye(len(theta))
        step = np.linalg.solve(hessian, gradient) if len(theta) else theta
        size = 1.0

        def cost(at):
            line = offset + columns @ at
            return float(w @ (np.logaddexp(0, line) - y * line)) + PRIOR / 2 * float(at @ at)

        objective = cost(theta)
        while cost(theta - size * step) > objective + 1e-12 * abs(objective) and size > 1e-9:
            size /= 2
        theta = theta - size * step
        if not len(theta) or np.abs(step).max() < 1e-12:
            break
    eta = offset + columns @ theta
    return theta, probability(eta), float(w @ (np.logaddexp(0, eta) - y * eta))


def weighted_ladder(z, y, w, new, spreads, offset=None, inflation=1.0, steps=3):
    """Statistic, df and p-value of intercept, slope and shape for rows of any weight.

    ``spreads`` are Σw²/Σw of negatives and positives around each row. Without an offset two tables
    share a curve: a level for each of few scores, else a spline.
    """
    curve = np.empty((len(z), 0))
    if offset is None:
        n0, n1 = float(w @ (1 - y)), float(w @ y)
        count = int(np.clip(round(2 * min(n0, n1) ** 0.25), 3, 40))
        own = [np.unique(z[new == side]) for side in (0, 1)]
        levels, shared = np.unique(z), np.intersect1d(*own)
        if len(levels) <= min(count + 2, 2 * len(shared)):
            curve = np.array([[float(a == b) for b in levels] for a in z])
        else:
            curve = spline(z, w * ((1 - y) / n0 + y / n1), new, count)
        offset = np.full(len(z), math.log((w @ y) / (w @ (1 - y))))
    _, p, loss = weighted_fit(curve, offset, y, w)
    information = w * p * (1 - p)
    mean = float(information @ z / information.sum())
    deviation = math.sqrt(float(information @ (z - mean) ** 2 / information.sum())) or 1.0
    mass = (w * p / (w @ p) + w * (1 - p) / (w @ (1 - p))) / 2
    t = np.array([2 * (mass[z < a].sum() + mass[z == a].sum() / 2) - 1 for a in z])
    shapes = ((3 * t**2 - 1) / 2, (5 * t**3 - 3 * t) / 2, (35 * t**4 - 30 * t**2 + 3) / 8)
    terms = np.column_stack((np.ones(len(z)), (z - mean) / deviation, *shapes)) * new[:, None]
    found, columns = [], curve
    for block in ([0], [1], [2, 3, 4])[:steps]:
        larger = np.column_stack((columns, terms[:, block]))
        _, q, after = weighted_fit(larger, offset, y, w)
        weight = w * p * (1 - p)
        rest = terms[:, block].copy()
        if columns.shape[1]:
            inner = (columns * weight[:, None]).T @ columns + PRIOR * np.eye(columns.shape[1])
            rest -= columns @ np.linalg.solve(inner, (columns * weight[:, None]).T @ rest)
        own = (rest * weight[:, None]).T @ rest
        size = np.sqrt((terms[:, block] ** 2 * weight[:, None]).sum(axis=0).clip(1e-300))
        values, vectors = np.linalg.eigh(own / np.outer(size, size))
        kept = (vectors / size[:, None])[:, values > 1e-6]
        if not kept.shape[1]:
            break
        rest = rest @ kept
        score = rest.T @ (w * (y - p))
        spread = inflation * ((1 - p) * spreads[1] + p * spreads[0])
        variance = (rest * (weight * spread)[:, None]).T @ rest
        statistic = float(score @ np.linalg.solve(variance, score))
        if kept.shape[1] == 1:
            share = float((kept.T @ own @ kept)[0, 0]) / float(variance[0, 0])
            statistic = min(statistic, 2 * max(loss - after, 0.0) * share)
        found.append((statistic, kept.shape[1], float(chi2.sf(statistic, kept.shape[1]))))
        columns, p, loss = larger, q, after
    return found


def rarer(y, w, spreads):
    """How many rows of equal weight the rarer class is worth."""
    sizes = []
    for label in (0, 1):
        mine = y == label
        bottom = float(w[mine] @ spreads[label][mine])
        sizes.append(w[mine].sum() ** 2 / bottom if bottom else 0.0)
    return min(sizes)
