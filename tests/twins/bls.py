"""Slow, obvious BLS: dense designs, a general optimiser, determinants of whole matrices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtri


def log_odds(p):
    q = np.clip(p, 5e-324, 1 - 2.0**-53)
    return np.log(q) - np.log1p(-q)


def even(z):
    """Log-odds, with logarithms beyond ±15."""
    out = []
    for value in z:
        size = abs(value)
        out.append(np.sign(value) * (size if size <= 15 else 15 + np.log(1 + size - 15)))
    return np.array(out)


def one_where_rounding_differs(s):
    """Scores within some last bits of one below them, or of equal log-odds, are that one."""
    on_logit = s.min() >= 0 and s.max() <= 1
    kept, found = [], {}
    for v in np.unique(s):
        size = v if on_logit else max(abs(s.min()), abs(s.max()))
        same = kept and v - kept[-1] <= 2.0**-48 * size
        if not same and not (kept and on_logit and log_odds(v) == log_odds(kept[-1])):
            kept.append(v)
        found[v] = kept[-1]
    return np.array([found[v] for v in s])


class Data:
    """Distinct scores with counts, and both coordinates as functions of the score."""

    def __init__(self, s, y, w):
        s, y, w = (np.asarray(v, dtype=float) for v in (s, y, w))
        s = one_where_rounding_differs(s)
        self.scores = np.unique(s[w > 0])
        self.n1 = np.array([w[(s == v) & (y == 1)].sum() for v in self.scores])
        self.n0 = np.array([w[(s == v) & (y == 0)].sum() for v in self.scores])
        self.size = self.n0.sum() + self.n1.sum()
        share = (self.n0 + self.n1) / self.size
        self.mid = np.array([share[:i].sum() + share[i] / 2 for i in range(len(share))])
        self.normal = ndtri(self.mid)
        self.probabilities = bool(self.scores[0] >= 0 and self.scores[-1] <= 1)
        plain = self.linear(self.scores)
        self.mean = plain @ share
        self.sd = np.sqrt(((plain - self.mean) ** 2) @ share)
        self.sd = max(self.sd, 0.25) if self.probabilities else self.sd or 1.0
        bowl = self.bare_bowl(self.scores)
        self.bowl_mean = bowl @ share
        self.bowl_sd = max(np.sqrt(((bowl - self.bowl_mean) ** 2) @ share), 0.05)

    def linear(self, s):
        low, high = self.scores[0], self.scores[-1]
        if not self.probabilities:
            place = (s - low) / (high - low) if high > low else np.zeros(len(s))
            return np.clip(place, -1, 2)
        inside = [v for v in self.scores if 0 < v < 1] or [0.5]
        first, last = inside[0] / 2, 1 - (1 - inside[-1]) / 2
        # exact 0 and 1 are half as far from the end; the others go on for 3
        least = log_odds(min(max(low, first), last)) - 3 * (low > 0)
        most = log_odds(min(max(high, first), last)) + 3 * (high < 1)
        return np.clip(log_odds(s), max(least, -15), min(most, 15))

    def x(self, s):
        return (self.linear(s) - self.mean) / self.sd

    def bare_bowl(self, s):
        half = (self.linear(s) if self.probabilities else self.x(s)) / 2
        return np.log(np.exp(half) + np.exp(-half))

    def bowl(self, s):
        return (self.bare_bowl(s) - self.bowl_mean) / self.bowl_sd

    def rank(self, s):
        if self.probabilities:
            return np.interp(even(log_odds(s)), even(log_odds(self.scores)), self.normal)
        return np.interp(s, self.scores, self.normal)


def without_neighbours(nodes):
    nodes = sorted(nodes)
    low, high = nodes[0], nodes[-1]
    if high - low <= 1e-6:
        return [low - 0.5, low + 0.5]
    kept = [low]
    for node in nodes[1:-1]:
        if min(node - kept[-1], high - node) > 1e-6 * (high - low):
            kept.append(node)
    return [*kept, high]


def event_knots(data, x, knots):
    """√events quantiles of the rarer class, where three or more lie between the same two knots."""
    rare = data.n1 if data.n1.sum() < data.n0.sum() else data.n0
    rows = [(at, count) for at, count in zip(x, rare, strict=True) if count > 0]
    if not rows or data.n0.sum() == data.n1.sum():
        return []
    at, share = np.array(rows).T
    total = share.sum()
    mid = [(share[:i].sum() + share[i] / 2) / total for i in range(len(share))]
    count = int(min(np.sqrt(total), 30))
    more = [np.interp(k / (count + 1), mid, at) for k in range(1, count + 1)]
    gaps = [sum(knot < place for knot in knots) for place in more]
    return [place for place, gap in zip(more, gaps, strict=True) if gaps.count(gap) >= 3]


def bending(data, place):
    """Design, and the prior variance of each bend, of lines that bend at quantiles."""
    x = place(data.scores)
    count = int(min(8 + np.sqrt(data.size) / 2, 60))
    knots = [np.interp(k / (count + 1), data.mid, x) for k in range(1, count + 1)]
    nodes = without_neighbours([x[0], *knots, *event_knots(data, x, knots), x[-1]])

    def design(s):
        t = place(s)
        columns = [np.ones(len(t)), t]
        for k in nodes[1:-1]:
            above = min(max((k + 0.1) / 0.2, 0), 1)  # the share of the bend above the knot
            columns.append(above * np.maximum(t - k, 0) + (1 - above) * np.maximum(k - t, 0))
        return np.column_stack(columns)

    inner = range(1, len(nodes) - 1)
    return design, np.array([(nodes[i + 1] - nodes[i - 1]) / 2 for i in inner])


def rough(data, place):
    """The same of lines with a slope of their own between any two scores."""
    nodes = without_neighbours(place(data.scores))
    pieces = list(pairwise(nodes))

    def design(s):
        t = place(s)
        columns = [np.ones(len(t)), t]
        for i, (low, high) in enumerate(pieces):
            # the outermost pieces go on for ever
            a = -np.inf if i == 0 else low
            b = np.inf if i == len(pieces) - 1 else high
            columns.append(np.clip(t, a, b) - np.clip(0, low, high))
        return np.column_stack(columns)

    return design, np.array([1 / (high - low) for low, high in pieces])


def members(data):
    """(name, design, prior mean, prior sd) of all but the identity."""
    base = np.log((data.n1.sum() + 0.5) / (data.n0.sum() + 0.5))
    unknown = [base, 1.5]
    known = [data.mean, data.sd] if data.probabilities else unknown

    def line(*extra):
        return lambda s: np.column_stack(
            [np.ones(len(s)), data.x(s), *(column(s) for column in extra)]
        )

    if data.probabilities:
        yield "near identity", line(), known, [0.3, 0.2 * data.sd]
    yield "platt", line(), known, [4, 4]
    yield "quadratic", line(lambda s: data.x(s) ** 2 - 1), [*known, 0], [4, 4, 1]
    yield "beta", line(data.bowl), [*known, 0], [4, 4, 2]
    for place, centre in ((data.x, known), (data.rank, unknown)):
        for bend in (0.25, 0.5, 1, 2, 4):
            design, variance = bending(data, place)
            prior = [*centre, *np.zeros(len(variance))], [4, 4, *(bend * np.sqrt(variance))]
            yield f"bending {bend}", design, *prior
    for step in (0.5, 1, 2):
        design, variance = rough(data, data.rank)
        prior = [*unknown, *np.zeros(len(variance))], [4, 4, *(step * np.sqrt(variance))]
        yield f"rough {step}", design, *prior


def fit(phi, n0, n1, mean, sd):
    """The posterior mode, the inverse Hessian there, and Laplace's evidence."""
    mean, precision = np.array(mean, dtype=float), np.diag(1 / np.array(sd, dtype=float) ** 2)

    def minus_log(theta):
        f = phi @ theta
        likelihood = n1 @ np.logaddexp(0, -f) + n0 @ np.logaddexp(0, f)
        return likelihood + (theta - mean) @ precision @ (theta - mean) / 2

    def gradient(theta):
        return phi.T @ ((n0 + n1) * expit(phi @ theta) - n1) + precision @ (theta - mean)

    def hessian(theta):
        p = expit(phi @ theta)
        return phi.T @ np.diag((n0 + n1) * p * (1 - p)) @ phi + precision

    theta = minimize(
        minus_log, mean, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-7}
    ).x
    for _ in range(3):  # the optimiser stops early; near the optimum Newton's steps are safe
        theta = theta - np.linalg.solve(hessian(theta), gradient(theta))
    H = hessian(theta)
    logs = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(H)[1]
    return theta, np.linalg.inv(H), -minus_log(theta) + logs / 2


def average(s, y, w, query, power=0.5, moderation=0.25):
    """The averaged curve at the query, without a monotone step or shift; the log evidences; and by
    Bayes' rule the weight of the members at the identity."""
    data = Data(s, y, w)
    base = np.log((data.n1.sum() + 0.5) / (data.n0.sum() + 0.5))
    evidences, curves, prior = [], [], []
    if data.probabilities:
        f = data.linear(data.scores)
        evidences.append(-(data.n1 @ np.logaddexp(0, -f) + data.n0 @ np.logaddexp(0, f)))
        curves.append(expit(data.linear(query)))
        prior.append(2.0)
    for name, design, mean, sd in members(data):
        theta, covariance, evidence = fit(design(data.scores), data.n0, data.n1, mean, sd)
        phi = design(query)
        v = np.array([row @ covariance @ row for row in phi])
        drawn = (phi @ theta - base) / np.sqrt(1 + moderation * np.pi * v / 8)
        curves.append(expit(base + drawn))
        evidences.append(evidence)
        prior.append(2.0 if name == "near identity" else 1.0)
    evidences = np.array(evidences)
    prior, ratio = np.array(prior), evidences - evidences.max()
    weight, by_bayes = (prior * np.exp(k * ratio) for k in (power, 1.0))
    right = by_bayes[prior > 1].sum() / by_bayes.sum()
    return (weight / weight.sum()) @ np.array(curves), evidences, right


def bls(s, y, w, query):
    """The average, all log-odds shifted so that the fitted rows have the base rate, unless the
    scores may be right."""
    s, y, w, query = (np.asarray(v, dtype=float) for v in (s, y, w, query))
    at_rows, _, right = average(s, y, w, s)
    plain = average(s, y, w, s, moderation=0.0)[0]
    seen, events = w @ y, min(w @ y, w @ (1 - y))
    wanted = seen + max((3 / (3 + events)) ** 2, right) * (w @ plain - seen)

    def excess(shift):
        return w @ expit(log_odds(at_rows) + shift) - wanted

    shift = brentq(excess, -72, 72, xtol=1e-12)
    return expit(log_odds(average(s, y, w, query)[0]) + shift)
