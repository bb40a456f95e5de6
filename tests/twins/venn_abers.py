"""Venn–Abers by the definition: an isotonic regression for every query and either label.

It imports nothing of ours; the fits are by pooling adjacent violators in rational arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def isotonic_at(cells, query):
    """The isotonic fit's value at a score of {score: [weight of negatives, of positives]}."""
    blocks = []
    for score in sorted(cells):
        n0, n1 = cells[score]
        blocks.append([[score], Fraction(n0), Fraction(n1)])
        while len(blocks) > 1 and _rate(blocks[-2]) >= _rate(blocks[-1]):
            scores, n0, n1 = blocks.pop()
            blocks[-1][0] += scores
            blocks[-1][1] += n0
            blocks[-1][2] += n1
    return next(_rate(block) for block in blocks if query in block[0])


def _rate(block):
    return block[2] / (block[1] + block[2])


def bounds(s, y, w, query):
    """p0 and p1 of every query, as fractions."""
    lower, upper = [], []
    for q in query:
        for label, out in ((0, lower), (1, upper)):
            cells = {}
            for score, case, weight in zip(s, y, w, strict=True):
                if weight > 0:
                    cell = cells.setdefault(float(score) + 0.0, [Fraction(0), Fraction(0)])
                    cell[int(case)] += Fraction(float(weight))
            cells.setdefault(float(q) + 0.0, [Fraction(0), Fraction(0)])[label] += 1
            out.append(isotonic_at(cells, float(q) + 0.0))
    return lower, upper


def inductive(s, y, w, query, merge="log"):
    lower, upper = bounds(s, y, w, query)
    if merge == "log":
        merged = [b / (1 - a + b) for a, b in zip(lower, upper, strict=True)]
    else:
        merged = [b + a * a / 2 - b * b / 2 for a, b in zip(lower, upper, strict=True)]
    return np.array([float(p) for p in merged])


def cross(parts, query, merge="log"):
    """From a list of calibration sets (s, y, w): lower, upper and merged of every query."""
    pairs = [bounds(*part, query) for part in parts]
    out = []
    for i in range(len(query)):
        p0 = [float(lower[i]) for lower, _ in pairs]
        p1 = [float(upper[i]) for _, upper in pairs]
        k = len(pairs)
        if merge == "brier":
            p = sum(b + a * a / 2 - b * b / 2 for a, b in zip(p0, p1, strict=True)) / k
        else:
            yes, no = _geometric(p1), _geometric([1 - p for p in p0])
            p = yes / (no + yes)
        out.append((min(sum(p0) / k, p), max(sum(p1) / k, p), p))
    return np.array(out).T


def _geometric(values):
    return math.prod(values) ** (1 / len(values))
