"""Slow, obvious twins of the measures of several classes. They import nothing of ours.

Codes are the column of each row's own class. A weight of zero means that the row is absent.
"""

from __future__ import annotations

import math
from fractions import Fraction

from twins import metrics as binary


def rows_of(codes, p, w):
    w = [1] * len(codes) if w is None else w
    return [(int(c), list(map(float, q)), float(v)) for c, q, v in zip(codes, p, w, strict=True)]


def mean(pairs):
    pairs = [(Fraction(value), Fraction(weight)) for value, weight in pairs if weight > 0]
    return sum(v * w for v, w in pairs) / sum(w for _, w in pairs)


def log_loss(codes, p, w=None, clip=None):
    loss = total = 0.0
    for c, q, v in rows_of(codes, p, w):
        if v == 0:
            continue
        own = q[c] if clip is None else min(max(q[c], clip), 1 - clip)
        if own == 0:
            return math.inf
        loss -= v * math.log(own)
        total += v
    return loss / total


def brier(codes, p, w=None):
    """Summed over the classes."""
    pairs = []
    for c, q, v in rows_of(codes, p, w):
        square = Fraction(0)
        for j, value in enumerate(q):
            square += (Fraction(value) - (1 if j == c else 0)) ** 2
        pairs.append((square, v))
    return float(mean(pairs))


def predicted(q):
    best = 0
    for j, value in enumerate(q):
        if value > q[best]:
            best = j
    return best


def accuracy(codes, p, w=None):
    return float(mean([(int(predicted(q) == c), v) for c, q, v in rows_of(codes, p, w)]))


def top_label(codes, p):
    """(whether the most probable class came, its probability) of each row, as two columns."""
    hits, confidence = [], []
    for c, q, _ in rows_of(codes, p, None):
        best = predicted(q)
        hits.append(int(best == c))
        confidence.append(q[best])
    return hits, confidence


def one_against_rest(codes, p):
    """(whether the class came, its probability) of each row, for each class."""
    return [([int(c == j) for c in codes], [float(q[j]) for q in p]) for j in range(len(p[0]))]


def over_classes(measure, codes, p, w=None, **options):
    """A binary measure of each class against the rest."""
    return [measure(y, q, w, **options) for y, q in one_against_rest(codes, p)]


def auc(codes, p, w=None, average="macro"):
    w = [1] * len(codes) if w is None else w
    areas = over_classes(binary.auc, codes, p, w)
    size = [
        sum(Fraction(float(v)) for c, v in zip(codes, w, strict=True) if c == j)
        for j in range(len(areas))
    ]
    if average == "macro":
        size = [1] * len(areas)
    return float(sum(a * s for a, s in zip(areas, size, strict=True)) / sum(size))


def multilabel(labels, p, w=None, bins=10):
    """{measure: (per column, micro, macro)}; labels are 0, 1 or None."""
    n, k = len(labels), len(labels[0])
    w = [1.0] * n if w is None else w
    columns = []
    for j in range(k):
        known = [i for i in range(n) if labels[i][j] is not None and w[i] > 0]
        columns.append(
            (
                [labels[i][j] for i in known],
                [float(p[i][j]) for i in known],
                [float(w[i]) for i in known],
            )
        )
    everything = tuple([v for column in columns for v in column[part]] for part in range(3))
    found = {}
    for name in ("log_loss", "brier", "ece", "auc"):
        options = {"bins": bins} if name == "ece" else {}
        each = [_measured(name, column, options) for column in columns]
        defined = [value for value in each if value is not None]
        macro = sum(defined) / len(defined) if defined else None
        found[name] = (each, _measured(name, everything, options), macro)
    return found


def _measured(name, column, options):
    y, q, v = column
    if not y or (name == "auc" and len(set(y)) < 2):
        return None
    return getattr(binary, name)(y, q, v, **options)
