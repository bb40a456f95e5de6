"""Slow, obvious twins of what an ONNX graph must give, one score at a time. Nothing of ours."""

from __future__ import annotations

import math
from fractions import Fraction


def step(cuts, values, score):
    """values[number of cuts at or below the score], compared as exact fractions."""
    return values[sum(Fraction(float(cut)) <= Fraction(float(score)) for cut in cuts)]


def line(x, left, right, score):
    """The point on the segment from (x_i, right_i) to (x_{i+1}, left_{i+1}), as a fraction."""
    s = Fraction(float(score))
    at = sum(Fraction(float(knot)) <= s for knot in x)
    if at == 0:
        return float(left[0])
    if at == len(x):
        return float(right[-1])
    begin, end = Fraction(float(x[at - 1])), Fraction(float(x[at]))
    low, high = Fraction(float(right[at - 1])), Fraction(float(left[at]))
    return float(low + (s - begin) / (end - begin) * (high - low))


def sigmoid(f):
    """1 / (1 + exp(−f))."""
    if f < -700:
        return math.exp(max(f, -745.2))
    return 1.0 / (1.0 + math.exp(-f))


def logistic_of_logit(intercept, terms, z):
    """σ(intercept + Σ c·φ) where p = σ(z) is never formed but for the term in p itself."""
    softplus = max(z, 0.0) + math.log1p(math.exp(-abs(z)))
    features = {
        "x": sigmoid(z),
        "z": z,
        "z2": z * z,
        "ln_p": z - softplus,
        "neg_ln_1mp": softplus,
    }
    return sigmoid(intercept + math.fsum(c * features[name] for name, c in terms))
