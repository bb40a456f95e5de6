"""Slow, obvious twins of isotonic and smooth reliability curves. They import nothing of ours."""

from __future__ import annotations

import math


def naive_blocks(positive, p, weights):
    """Pool adjacent violators over distinct predictions: (first, last, mean, fraction) each."""
    blocks = []
    for value in sorted({x for x, w in zip(p, weights, strict=True) if w > 0}):
        rows = [i for i in range(len(p)) if p[i] == value and weights[i] > 0]
        weight = math.fsum(weights[i] for i in rows)
        hits = math.fsum(weights[i] for i in rows if positive[i])
        blocks.append([value, value, weight * value, hits, weight])
        while len(blocks) > 1 and blocks[-2][3] / blocks[-2][4] >= blocks[-1][3] / blocks[-1][4]:
            _, last, moment, hits, weight = blocks.pop()
            blocks[-1][1] = last
            for place, more in ((2, moment), (3, hits), (4, weight)):
                blocks[-1][place] += more
    return [(a, b, moment / w, hits / w) for a, b, moment, hits, w in blocks]


def naive_smooth(positive, p, weights, sigma, at):
    """Mean prediction, mean label and effective size under a kernel that is put on log-odds."""

    def odds(x):
        x = min(max(x, 1e-9), 1 - 1e-9)
        return math.log(x) - math.log1p(-x)

    kernels = [
        w * math.exp(-0.5 * ((odds(at) - odds(x)) / sigma) ** 2)
        for x, w in zip(p, weights, strict=True)
    ]
    total = math.fsum(kernels)
    mean = math.fsum(k * x for k, x in zip(kernels, p, strict=True)) / total
    rate = math.fsum(k for k, hit in zip(kernels, positive, strict=True) if hit) / total
    return mean, rate, total**2 / math.fsum(k**2 for k in kernels)


def naive_consistency(p, level, draws, curve, random):
    """Percentiles of a curve of labels that are drawn row by row with p as probabilities."""
    seen = sorted(curve([random.random() < x for x in p]) for _ in range(draws))
    tail = (1 - level) / 2
    return seen[int(tail * draws)], seen[int((1 - tail) * draws)]
