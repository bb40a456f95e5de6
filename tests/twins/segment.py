"""Segments the slow and obvious way, row by row; nothing of the library is used."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize


def effective(weights):
    """(Σw)² / Σw²."""
    return sum(weights) ** 2 / sum(w * w for w in weights) if any(weights) else 0.0


def mixed(fit, s, y, w, g, kappa, min_rows=0.0, min_events=0.0):
    """p(score, segment), each segment's map shrunk by n / (n + κ); ``fit(s, y, w)`` is a map."""
    common = fit(s, y, w)
    maps, shares = {}, {}
    for key in set(g):
        rows = [i for i in range(len(s)) if g[i] == key and w[i] > 0]
        n = effective([w[i] for i in rows])
        rare = min(effective([w[i] for i in rows if y[i] == label]) for label in (0, 1))
        if not rows or n < min_rows - 1e-6 or rare < min_events - 1e-6:
            continue
        maps[key] = fit(s[rows], y[rows], w[rows])
        shares[key] = 1.0 if kappa == 0 else n / (n + kappa)

    def p(score, key):
        d = float(common(np.array([score]))[0])
        if key not in maps:
            return d
        return shares[key] * float(maps[key](np.array([score]))[0]) + (1 - shares[key]) * d

    return p


def out_of_fold(fit, s, y, g, fold, kappas):
    """Mean log loss of each κ on rows left out, every row of weight one."""
    losses = {kappa: [] for kappa in kappas}
    for f in sorted(set(fold)):
        train = [i for i in range(len(s)) if fold[i] != f]
        common = fit(s[train], y[train])
        for key in set(g):
            own_rows = [i for i in train if g[i] == key]
            own = fit(s[own_rows], y[own_rows]) if own_rows else common
            n = len(own_rows)
            for i in [i for i in range(len(s)) if fold[i] == f and g[i] == key]:
                a, b = float(own(s[[i]])[0]), float(common(s[[i]])[0])
                for kappa in kappas:
                    share = 0.0 if n == 0 or math.isinf(kappa) else n / (n + kappa)
                    p = share * a + (1 - share) * b
                    losses[kappa].append(-math.log(p) if y[i] else -math.log(1 - p))
    return {kappa: sum(found) / len(found) for kappa, found in losses.items()}


def sigmoid_of_common(p, y, w, offset_sd=1.0, slope_sd=0.3):
    """Intercept and slope of the most probable sigmoid of logit p, with a prior at no change."""
    unit = effective(w) / sum(w)
    z = np.log(p) - np.log1p(-p)
    centre = float(np.average(z, weights=w))

    def loss(theta):
        eta = z + theta[0] + theta[1] * (z - centre)
        surprise = np.logaddexp(0, np.where(y == 1, -eta, eta))
        prior = 0.5 * (theta[0] / offset_sd) ** 2 + 0.5 * (theta[1] / slope_sd) ** 2
        return float(unit * (w @ surprise)) + prior

    a, c = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x
    return a - c * centre, 1 + c
