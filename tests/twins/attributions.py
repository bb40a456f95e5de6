"""Attributions the slow way. They import nothing of ours."""

from __future__ import annotations

import math
from itertools import permutations


def aumann_shapley(phi, base, g, steps=4000):
    """All features grow together, a step at a time; each is credited with what its part adds."""
    score, credited = base, [0.0] * len(phi)
    for _ in range(steps):
        here = g(score)
        for i, each in enumerate(phi):
            credited[i] += g(score + each / steps) - here
        score += math.fsum(phi) / steps
    return credited


def shapley(phi, base, g):
    """What a feature adds, averaged over all orders in which features may come."""
    orders = list(permutations(range(len(phi))))
    credited = [0.0] * len(phi)
    for order in orders:
        score = base
        for i in order:
            credited[i] += (g(score + phi[i]) - g(score)) / len(orders)
            score += phi[i]
    return credited
