"""Slow, obvious twin of similarity binning, in exact fractions. It imports nothing of ours.

Rows are lists of attributes: numbers, or words, or None where missing. ``nominal`` says which
columns are words. Scores are one list per row: one score for two classes (it counts twice), else
one per class.
"""

from __future__ import annotations

import math
from fractions import Fraction

TIE = Fraction(1, 10**12)


def ranges(rows, nominal):
    """(lowest, highest) of every numeric column, None for the others."""
    found = []
    for j, words in enumerate(nominal):
        known = [Fraction(row[j]) for row in rows if row[j] is not None] if not words else []
        found.append((min(known), max(known)) if known else (Fraction(0), Fraction(0)))
    return found


def difference(a, b, word, low, high):
    if word:
        return Fraction(int(a is None or b is None or a != b))
    width = high - low

    def scaled(v):
        return (Fraction(v) - low) / width if width else Fraction(0)

    if a is None and b is None:
        return Fraction(1)
    if a is None or b is None:
        v = scaled(a if b is None else b)
        return max(v, 1 - v)
    return abs(scaled(a) - scaled(b))


def distance(a, b, nominal, spans, weights, metric):
    """The squared distance ("ibk"), or the distance itself ("manhattan")."""
    total = Fraction(0)
    for x, y, word, span, w in zip(a, b, nominal, spans, weights, strict=True):
        diff = difference(x, y, word, *span)
        total += Fraction(w) * (diff**2 if metric == "ibk" else diff)
    return total


def vote(near, k, classes, total, neighbour_weights, smoothing, metric, attributes):
    """Class shares from (distance, class, weight) triples: the nearest whose weights reach k."""
    near = sorted(near)
    mass = Fraction(0)
    for d, _, w in near:
        mass += Fraction(w)
        if mass >= k * (1 - TIE):
            radius = d
            break
    shares = [1 / total if smoothing == "ibk" else 0.0] * classes
    for d, label, w in near:
        if d <= radius * (1 + TIE):
            far = math.sqrt(d) if metric == "ibk" else float(d)
            near_by = 1 / (far / math.sqrt(attributes) + 0.001)
            pull = 1.0 if neighbour_weights == "uniform" else near_by
            shares[label] += float(w) * pull
    return [share / sum(shares) for share in shares]


def attach(rows, scores, use_scores):
    """Rows with their scores behind them, one score being there twice."""
    if not use_scores:
        return [list(row) for row in rows]
    return [
        [*row, *(list(s) * 2 if len(s) == 1 else s)] for row, s in zip(rows, scores, strict=True)
    ]


def similarity_binning(
    rows,
    scores,
    y,
    w,
    queries,
    query_scores,
    *,
    nominal,
    classes,
    k=10,
    neighbour_weights="uniform",
    metric="ibk",
    smoothing="none",
    use_scores=True,
    attribute_weights=None,
):
    """Class probabilities of the queries: (distance, class, weight) of all rows, then a vote."""
    full, asked = attach(rows, scores, use_scores), attach(queries, query_scores, use_scores)
    words = [*nominal, *[False] * (len(full[0]) - len(nominal))]
    spans = ranges([row for row, weight in zip(full, w, strict=True) if weight > 0], words)
    own = [1] * len(nominal) if attribute_weights is None else list(attribute_weights)
    own += [1] * (len(words) - len(own))
    own = [Fraction(v) * len(own) / sum(map(Fraction, own)) for v in own]  # their mean is 1
    result = []
    for query in asked:
        near = [
            (distance(query, row, words, spans, own, metric), label, weight)
            for row, label, weight in zip(full, y, w, strict=True)
            if weight > 0
        ]
        result.append(
            vote(near, k, classes, sum(w), neighbour_weights, smoothing, metric, float(sum(own)))
        )
    return result


def leave_one_out(rows, scores, y, *, nominal, classes, ks, neighbour_weights, metric, smoothing):
    """The Brier score of each k: every row predicted from all others (ranges from all)."""
    full = attach(rows, scores, True)
    words = [*nominal, *[False] * (len(full[0]) - len(nominal))]
    spans = ranges(full, words)
    ones = [1] * len(words)
    losses = dict.fromkeys(ks, 0.0)
    for i, query in enumerate(full):
        near = [
            (distance(query, row, words, spans, ones, metric), label, 1)
            for j, (row, label) in enumerate(zip(full, y, strict=True))
            if j != i
        ]
        for k in ks:
            p = vote(
                near, k, classes, len(near), neighbour_weights, smoothing, metric, float(len(ones))
            )
            losses[k] += sum((v - (c == y[i])) ** 2 for c, v in enumerate(p)) / len(full)
    return losses
