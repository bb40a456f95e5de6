"""The shares of a mixture that make rows likeliest."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array

#: added to the curvature, as a share of the weight of all rows: members that give every row the
#: same probability have no curvature between them
RIDGE = 1e-12


def mixture_weights(likelihood: Array, weight: Array, pseudo: float = 1.0) -> Array:
    """The shares of m members that make n rows likeliest, with a pseudo-count for each member.

    With c = ``pseudo`` and W = Σw, the shares s maximise Σ w·ln(L·s) + c·Σ ln s − (W + c·m)·Σ s.
    This is concave, and at its maximum the shares sum to one. Newton's method in ln s, with steps
    halved until the value rises, needs a handful of passes over the rows, where EM needs a
    thousand. Rows to which no member gave any probability do not count. With c = 0 shares may end
    next to zero, and members that are all alike share in any way.

    >>> p = np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]])
    >>> mixture_weights(p, np.ones(3)).round(3).tolist()
    [0.482, 0.518]
    >>> mixture_weights(p[:2], np.ones(2), 0.0).round(3).tolist()
    [1.0, 0.0]
    """
    m = int(likelihood.shape[1])
    largest = likelihood.max(axis=1, initial=0.0)
    some = largest > 0
    scaled, w = likelihood[some] / largest[some, None], weight[some]
    total = float(w.sum()) + pseudo * m

    def height(shares: Array) -> float:
        rows = float(w @ np.log(scaled @ shares))
        prior = pseudo * float(np.log(shares).sum()) if pseudo else 0.0
        return rows + prior - total * float(shares.sum())

    shares = np.full(m, 1.0 / m)
    before = height(shares)
    for _ in range(100):
        part = scaled * shares / (scaled @ shares)[:, None]
        slope = w @ part + pseudo - total * shares
        curve = (part.T * w) @ part + (pseudo + RIDGE * total) * np.eye(m)
        move = np.linalg.solve(curve, slope)
        longest = size = min(1.0, 0.9 / max(-float(move.min()), 0.9))  # shares stay positive
        while height(shares * (1.0 + size * move)) < before and size > 1e-9 * longest:
            size *= 0.5
        new = shares * (1.0 + size * move)
        if np.abs(new - shares).max() < 1e-12 or size <= 1e-9 * longest:
            break
        shares, before = new, height(new)
    return np.asarray(shares / shares.sum())
