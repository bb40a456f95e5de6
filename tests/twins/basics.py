"""Slow, obvious twins of the fast code. They import nothing of ours.

Every twin takes rows (scores, labels 0/1, weights) and query scores, and returns probabilities.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize, minimize_scalar


def group(s, y, w):
    """{score: [weight of negatives, weight of positives]} in ascending order of score."""
    cells = {}
    for score, label, weight in zip(s, y, w, strict=True):
        if weight > 0:
            cells.setdefault(float(score) + 0.0, [0.0, 0.0])[int(label)] += float(weight)
    return dict(sorted(cells.items()))


def sigmoid(f):
    return np.array([1 / (1 + math.exp(-v)) if v > -700 else math.exp(v) for v in np.atleast_1d(f)])


def logit(p):
    out = []
    for v in np.atleast_1d(p):
        c = min(max(v, 5e-324), 1 - 2.0**-53)
        out.append(math.log(c) - math.log1p(-c))
    return np.array(out)


def inner(s, w, query):
    """Scores and queries, kept from the ends by half the distance of the nearest score inside."""
    present = [v for v, a in zip(s, w, strict=True) if a > 0]
    if min(present) < 0 or max(present) > 1:
        return np.asarray(s, float), np.asarray(query, float)
    between = [v for v in present if 0 < v < 1] or [0.5]
    low, high = max(min(between) / 2, 5e-324), min(1 - (1 - max(between)) / 2, 1 - 2.0**-53)
    return np.clip(s, low, high), np.clip(query, low, high)


def as_probability(s, query):
    """Scores outside [0, 1] at fit are logits; then all pass through the sigmoid."""
    if min(s) < 0 or max(s) > 1:
        return sigmoid(s), sigmoid(query)
    return np.asarray(s, float), np.clip(query, 0, 1)


def _minimum(loss, start, bounds=None):
    best = None
    for method in ("L-BFGS-B",):
        found = minimize(
            loss,
            start,
            method=method,
            bounds=bounds,
            jac="3-point",
            options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000},
        )
        best = found if best is None or found.fun < best.fun else best
    return best.x


def _log_loss(eta, n0, n1):
    return float(n1 @ np.logaddexp(0, -eta) + n0 @ np.logaddexp(0, eta))


def platt(s, y, w, query, scale="auto"):
    s, y, w = np.asarray(s, float), np.asarray(y), np.asarray(w, float)
    on_logit = scale == "logit" or (scale == "auto" and s[w > 0].min() >= 0 and s[w > 0].max() <= 1)
    inside, queried = inner(s, w, query)
    f, q = (logit(inside), logit(queried)) if on_logit else (s, np.asarray(query, float))
    plus, minus = w[y == 1].sum(), w[y == 0].sum()
    target = np.where(y == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))
    centre = np.average(f, weights=w)
    width = math.sqrt(np.average((f - centre) ** 2, weights=w)) or 1.0
    u = (f - centre) / width
    theta = _minimum(
        lambda t: _log_loss(t[0] + t[1] * u, w * (1 - target), w * target) / w.sum(), np.zeros(2)
    )
    return sigmoid(theta[0] + theta[1] * (q - centre) / width)


def logistic_correction(s, y, w, query):
    return sigmoid(2 * np.asarray(query, float))


def identity(s, y, w, query):
    seen = sorted(v for v, a in zip(s, w, strict=True) if a > 0)
    q = np.asarray(query, float)
    if seen[0] >= 0 and 10 < seen[-1] <= 100:  # percentages; 0 and 100 were rounded
        inside = [v for v in seen if 0 < v < 100] or [50.0]
        return np.array([min(max(v, inside[0] / 2), (100 + inside[-1]) / 2) / 100 for v in q])
    if max(-seen[0], seen[-1]) > 100:  # points
        return np.full(len(q), np.dot(w, y) / np.sum(w))
    return as_probability(seen, query)[1]


def rescale(s, y, w, query, formula="sigmoid"):
    s = np.array([v for v, a in zip(s, w, strict=True) if a > 0], float)
    q = np.asarray(query, float)
    if formula == "sigmoid":
        return sigmoid(q)
    low, high = (s.min(), s.max()) if formula == "minmax" else (-abs(s).max(), abs(s).max())
    return np.full(len(q), 0.5) if low == high else np.clip((q - low) / (high - low), 0, 1)


def pav(cells):
    """Isotonic values by the max-min formula, in rational arithmetic."""
    n0 = [Fraction(c[0]) for c in cells.values()]
    n1 = [Fraction(c[1]) for c in cells.values()]
    size = len(n0)

    def mean(a, b):
        return sum(n1[a : b + 1]) / (sum(n0[a : b + 1]) + sum(n1[a : b + 1]))

    return [max(min(mean(a, b) for b in range(i, size)) for a in range(i + 1)) for i in range(size)]


def _blocks(cells, pseudo):
    """[scores, n0, n1] of maximal runs of equal isotonic value."""
    blocks = []
    values = pav(cells)
    for (score, (a, b)), value in zip(cells.items(), values, strict=True):
        if blocks and blocks[-1][3] == value:
            blocks[-1][0].append(score)
            blocks[-1][1] += Fraction(a)
            blocks[-1][2] += Fraction(b)
        else:
            blocks.append([[score], Fraction(a), Fraction(b), value])
    if pseudo:
        for block in blocks:
            block[1] += Fraction(pseudo)
            block[2] += Fraction(pseudo)
        again = pav({i: (block[1], block[2]) for i, block in enumerate(blocks)})
        merged = []
        for block, value in zip(blocks, again, strict=True):
            if merged and merged[-1][3] == value:
                merged[-1][0] = merged[-1][0] + block[0]
            else:
                merged.append([list(block[0]), None, None, value])
        blocks = merged
    return blocks


def isotonic(s, y, w, query, interpolation="step", cut="mid", pseudo=0.0):
    cells = group(s, y, w)
    blocks = _blocks(cells, pseudo)
    values = [float(b[3]) for b in blocks]
    out = []
    for q in query:
        if interpolation == "step":
            j = 0
            while j + 1 < len(blocks):
                a, b = blocks[j][0][-1], blocks[j + 1][0][0]
                if cut == "mid":
                    up = q >= a / 2 + b / 2
                else:
                    up = q >= b if cut == "left" else q > a
                if not up:
                    break
                j += 1
            out.append(values[j])
            continue
        if interpolation == "linear":
            x = [e for b in blocks for e in dict.fromkeys((b[0][0], b[0][-1]))]
            v = [
                value
                for b, value in zip(blocks, values, strict=True)
                for _ in dict.fromkeys((b[0][0], b[0][-1]))
            ]
        else:
            x = [
                float(
                    sum(Fraction(e) * Fraction(sum(cells[e])) for e in b[0])
                    / sum(Fraction(sum(cells[e])) for e in b[0])
                )
                for b in blocks
            ]
            v = values
        out.append(float(np.interp(q, x, v)))
    return np.array(out)


def histogram(s, y, w, query, bins=10, binning="mass", pseudo=0.0):
    if binning == "width":
        kept = [v for v, a in zip(s, w, strict=True) if a > 0]
        low, high = min(kept), max(kept)
        if low < 0 or high > 1:
            s, query = sigmoid(s), sigmoid(query)
    cells = group(s, y, w)
    scores = list(cells)
    total = sum(Fraction(sum(c)) for c in cells.values())
    groups, upto = [[]], Fraction(0)
    for score in scores:
        upto_new = upto + Fraction(sum(cells[score]))
        if binning == "mass":
            groups[-1].append(score)
            done = sum(1 for k in range(1, bins) if upto_new >= k * total / bins)
            before = sum(1 for k in range(1, bins) if upto >= k * total / bins)
            if done > before:
                groups.append([])
        else:
            number = min(sum(1 for k in range(1, bins) if score >= k / bins), bins - 1)
            if groups[-1] and groups[-1][0][1] != number:
                groups.append([])
            groups[-1].append((score, number))
        upto = upto_new
    groups = [g for g in groups if g]
    cuts, values = [], []
    for i, g in enumerate(groups):
        inside = [c[0] for c in g] if binning == "width" else g
        n1 = sum(cells[c][1] for c in inside) + pseudo
        n = sum(sum(cells[c]) for c in inside) + 2 * pseudo
        values.append(n1 / n)
        if i:
            if binning == "mass":
                cuts.append(groups[i - 1][-1] / 2 + inside[0] / 2)
            else:
                cuts.append(((groups[i - 1][0][1] + 1) / bins + g[0][1] / bins) / 2)
    return np.array([values[sum(1 for c in cuts if q >= c)] for q in query])


def beta(s, y, w, query, parameters="abm"):
    p, q = as_probability(*inner(s, w, query))
    p, q = (np.clip(v, 5e-324, 1 - 2.0**-53) for v in (p, q))
    y, w = np.asarray(y), np.asarray(w, float)
    shift = math.log(2) if parameters == "ab" else 0.0

    def columns(v):
        return np.log(v) + shift, -np.log1p(-v) - shift

    lo, hi = columns(p)

    def eta(t, a, b):
        if parameters == "am":
            return t[0] + t[1] * (a + b)
        return (0.0 if parameters == "ab" else t[0]) + t[1] * a + t[2] * b

    slopes = [lo + hi] if parameters == "am" else [lo, hi]
    middle = 0.0 if parameters == "ab" else 1.0
    centred = [x - middle * np.average(x, weights=w) for x in slopes]
    squares = np.array([np.average(x * x, weights=w) for x in centred])

    def loss(t):  # with a ridge of 1e-6 on the slopes of standardised columns
        ridge = 0.5e-6 * np.sum(squares * t[1:] ** 2)
        return (_log_loss(eta(t, lo, hi), w * (y == 0), w * (y == 1)) + ridge) / w.sum()

    size = 2 if parameters == "am" else 3
    bounds = [(None, None)] + [(0, None)] * (size - 1)
    theta = _minimum(loss, np.append(0.0, np.ones(size - 1)), bounds)
    return sigmoid(eta(theta, *columns(q)))


def temperature(s, y, w, query):
    on_logit = min(s) >= 0 and max(s) <= 1
    inside, queried = inner(s, w, query)
    z, q = (
        (logit(inside), logit(queried)) if on_logit else (np.asarray(s, float), np.asarray(query))
    )
    y, w = np.asarray(y), np.asarray(w, float)
    rms = math.sqrt(np.average(z * z, weights=w)) or 1.0
    found = minimize_scalar(
        lambda b: _log_loss(b * z / rms, w * (y == 0), w * (y == 1)) / w.sum() + 0.5e-7 * b * b,
        bounds=(1e-3, 50),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return sigmoid(found.x * q / rms)


# --- binnings -----------------------------------------------------------------------------------


def _marginal(n0, n1):
    return math.lgamma(n0 + 1) + math.lgamma(n1 + 1) - math.lgamma(n0 + n1 + 2)


def _gaps(scores, lam):
    span = scores[-1] - scores[0] if len(scores) > 1 else 1.0
    return [lam * (b - a) / span for a, b in pairwise(scores)]


def all_binnings(cells, lam):
    """Every binning as (list of bins, each (first, last + 1)) with its log score, eq. 2.7.

    cells: [(score, n0, n1)] in order; a query is a cell without weight.
    """
    h = _gaps([c[0] for c in cells], lam)
    size = len(cells)
    for mask in range(1 << (size - 1)):
        score, start, bins = 0.0, 0, []
        for i in range(size):
            last = i == size - 1
            if last or mask >> i & 1:
                n0 = sum(c[1] for c in cells[start : i + 1])
                n1 = sum(c[2] for c in cells[start : i + 1])
                score += _marginal(n0, n1) + (0.0 if last else math.log(-math.expm1(-h[i])))
                bins.append((start, i + 1, n0, n1))
                start = i + 1
            else:
                score -= h[i]
        yield bins, score


def best_binning_dense(n0, n1, gaps):
    """The O(D²) dynamic programme: starts of the bins, the log score, and whether there are other
    binnings that are as good."""
    size = len(n0)
    sum0, sum1 = np.append(0, np.cumsum(n0)), np.append(0, np.cumsum(n1))
    height = np.append(0, np.cumsum(gaps))
    log_cut = np.log(-np.expm1(-np.asarray(gaps)))
    from scipy.special import gammaln

    value, back, best = np.full(size, -np.inf), np.zeros(size + 1, int), 0.0
    value[0], as_good = 0.0, np.zeros(size + 1, bool)
    for u in range(1, size + 1):
        a, b = sum0[u] - sum0[:u], sum1[u] - sum1[:u]
        total = value[:u] + gammaln(a + 1) + gammaln(b + 1) - gammaln(a + b + 2)
        back[u] = int(np.argmax(total))
        as_good[u] = (total >= total.max() - 1e-9).sum() > 1
        best = total[back[u]] - height[u - 1]
        if u < size:
            value[u] = best + log_cut[u - 1] + height[u]
    starts, u, tied = [], size, False
    while u:
        tied |= bool(as_good[u])
        starts.append(int(back[u]))
        u = int(back[u])
    return starts[::-1], best, tied


def sbb(s, y, w, query, lam):
    cells = group(s, y, w)
    scores = list(cells)
    n0, n1 = (np.array([c[k] for c in cells.values()]) for k in (0, 1))
    starts, _, tied = best_binning_dense(n0, n1, _gaps(scores, lam))
    if tied:
        return None
    ends = [*starts[1:], len(scores)]
    values = [
        (n1[a:b].sum() + 1) / (n0[a:b].sum() + n1[a:b].sum() + 2)
        for a, b in zip(starts, ends, strict=True)
    ]
    cuts = [scores[a - 1] / 2 + scores[a] / 2 for a in starts[1:]]
    return np.array([values[sum(1 for c in cuts if q >= c)] for q in query])


def average_dense(n0, n1, gaps):
    """Eq. 2.8 by log-sum-exp over all bins, O(D²): P at every cell, and the log evidence."""
    from scipy.special import gammaln, logsumexp

    size = len(n0)
    sum0, sum1 = np.append(0, np.cumsum(n0)), np.append(0, np.cumsum(n1))
    height = np.append(0.0, np.cumsum(gaps))
    cut = np.append(np.log(-np.expm1(-np.asarray(gaps, float))), 0.0)  # above cell u − 1
    whole = bool((sum0 == np.floor(sum0)).all() and (sum1 == np.floor(sum1)).all())
    table = gammaln(np.arange(sum0[-1] + sum1[-1] + 3) + 1) if whole else None

    def factorial(v):
        return gammaln(v + 1) if table is None else table[v.astype(int)]

    def bins(low, high):
        a, b = sum0[high] - sum0[low], sum1[high] - sum1[low]
        return factorial(a) + factorial(b) - factorial(a + b + 1) - (height[high - 1] - height[low])

    left, right = np.full(size + 1, -np.inf), np.full(size + 1, -np.inf)
    left[0] = right[size] = 0.0
    for u in range(1, size + 1):
        left[u] = logsumexp(left[:u] + bins(np.arange(u), u)) + cut[u - 1]
    for low in range(size - 1, -1, -1):
        u = np.arange(low + 1, size + 1)
        right[low] = logsumexp(right[u] + bins(low, u) + cut[u - 1])
    above, below = np.zeros(size + 1), np.zeros(size + 1)
    for low in range(size):
        u = np.arange(low + 1, size + 1)
        weight = np.exp(left[low] + bins(low, u) + cut[u - 1] + right[u] - left[size])
        n1_in, n0_in = sum1[u] - sum1[low], sum0[u] - sum0[low]
        value = weight * (n1_in + 1) / (n0_in + n1_in + 2)
        above[low] += value.sum()
        below[low] += weight.sum()
        above[u] -= value
        below[u] -= weight
    return np.cumsum(above)[:size] / np.cumsum(below)[:size], left[size]


def abb(s, y, w, query, lam):
    """Each query as a cell without weight, among the others."""
    cells = group(s, y, w)
    scores = list(cells)
    out = []
    for wanted in query:
        q = min(max(wanted, scores[0]), scores[-1])
        with_query = sorted({*scores, q})
        n0, n1 = (np.array([cells.get(x, (0.0, 0.0))[k] for x in with_query]) for k in (0, 1))
        p, _ = average_dense(n0, n1, _gaps(with_query, lam))
        out.append(p[with_query.index(q)])
    return np.array(out)


def bbq(s, y, w, query, models="all"):
    kept = [v for v, a in zip(s, w, strict=True) if a > 0]
    margins = min(kept) < 0 or max(kept) > 1
    cells = group(s, y, w)
    p_at = {x: float(sigmoid(np.array([x]))[0]) if margins else x for x in cells}
    scores = list(cells)
    total = sum(sum(c) for c in cells.values())
    whole = all(v == int(v) for c in cells.values() for v in c)
    low = max(1, int(total ** (1 / 3) / 10 + 1e-9))
    high = max(low, int(min(math.ceil(total / 5), math.ceil(10 * total ** (1 / 3) - 1e-9))))
    found = []
    for count in range(low, high + 1):
        size = total // count if whole else total / count
        bins, current, upto, k = [], [], 0.0, 1
        for x in scores:
            current.append(x)
            upto += sum(cells[x])
            if k < count and upto >= k * size * (1 - 1e-12):
                while k < count and upto >= k * size * (1 - 1e-12):
                    k += 1
                bins.append(current)
                current = []
        if current:
            bins.append(current)
        edges = [0.0, *(p_at[a[-1]] / 2 + p_at[b[0]] / 2 for a, b in pairwise(bins)), 1.0]
        cuts = [a[-1] / 2 + b[0] / 2 for a, b in pairwise(bins)]
        score, values = 0.0, []
        for inside, a, b in zip(bins, edges, edges[1:], strict=False):
            n0, n1 = (sum(cells[x][k] for x in inside) for k in (0, 1))
            middle = (a + b) / 2
            p = min(max(middle, 0.005), 0.995)
            score += (
                math.lgamma(n1 + 2 * p) + math.lgamma(n0 + 2 * (1 - p)) - math.lgamma(n0 + n1 + 2)
            )
            score -= math.lgamma(2 * p) + math.lgamma(2 * (1 - p))
            prior = (sum(cells[x][1] * p_at[x] for x in inside) + middle) / (n1 + 1)
            values.append((n1 + prior) / (n0 + n1 + 1))
        found.append((score, cuts, values))
    best = max(f[0] for f in found)
    weights = [math.exp(f[0] - best) for f in found]
    if models == "best":
        weights = [float(i == weights.index(max(weights))) for i in range(len(weights))]
    out = []
    for q in query:
        inner = [v[sum(1 for c in cuts if q >= c)] for _, cuts, v in found]
        out.append(sum(a * b for a, b in zip(weights, inner, strict=True)) / sum(weights))
    return np.array(out)
