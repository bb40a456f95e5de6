"""Slow, obvious trend filtering: the whole problem given to a general convex solver."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp


def bends(x):
    """The matrix of slope changes."""
    n = len(x)
    D = np.zeros((max(n - 2, 0), n))
    for i in range(n - 2):
        a, b = x[i + 1] - x[i], x[i + 2] - x[i + 1]
        D[i, i : i + 3] = 1 / a, -1 / a - 1 / b, 1 / b
    return D


def objective(x, w, z, lam, mu, p):
    """½Σw(p − z)² + λΣ|slope change| + μΣ falls; falls that μ = ∞ forbids are not looked at."""
    value = 0.5 * (w * (p - z) ** 2).sum() + lam * np.abs(bends(x) @ p).sum()
    return value + (mu * np.maximum(-np.diff(p), 0).sum() if np.isfinite(mu) else 0.0)


def solve(x, w, z, lam, mu):
    """p by an interior-point solver made by others."""
    n = len(x)
    S, D = bends(x), np.diff(np.eye(n), axis=0)
    k, m = len(S), n - 1
    # unknowns: p, |slope changes|, falls
    P = sp.block_diag([sp.diags(w), sp.csc_matrix((k + m, k + m))]).tocsc()
    price = mu if np.isfinite(mu) else 0.0
    q = np.concatenate([-w * z, np.full(k, lam), np.full(m, price)])
    eye, none = sp.eye(k), sp.csc_matrix((k, m))
    rows = [
        sp.hstack([S, -eye, none]),
        sp.hstack([-S, -eye, none]),
        sp.hstack([-D, sp.csc_matrix((m, k)), -sp.eye(m)]),
        sp.hstack([sp.csc_matrix((m, n + k)), -sp.eye(m)]),
    ]
    cones = [clarabel.NonnegativeConeT(2 * k + 2 * m)]
    if np.isinf(mu):
        rows.append(sp.hstack([sp.csc_matrix((m, n + k)), sp.eye(m)]))
        cones.append(clarabel.ZeroConeT(m))
    A = sp.vstack(rows).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings)
    return np.array(solver.solve().x)[:n]


def dual_gap(x, w, z, lam, p):
    """The relative duality gap of p without a price on falls, from the prices u of slope changes:
    second sums of the residuals, scaled down to ±λ."""
    r = w * (z - p)
    h = np.diff(x)
    u = np.cumsum(h * np.cumsum(r)[:-1])[:-1]
    share = min(1.0, lam / max(np.abs(u).max(), 1e-300))
    primal = objective(x, w, z, lam, 0.0, p)
    # the dual point has p_d = z − share·(z − p), up to the two moments that rounding leaves
    dual = 0.5 * (w * (z**2 - (z - share * (z - p)) ** 2)).sum()
    return (primal - dual) / primal


def steepest(x, w, z):
    """λ_max from the weighted straight line."""
    X = np.column_stack([np.ones(len(x)), x])
    line = X @ np.linalg.solve(X.T @ (w[:, None] * X), X.T @ (w * z))
    r = w * (z - line)
    return np.abs(np.cumsum(np.diff(x) * np.cumsum(r)[:-1])[:-1]).max()


def minimise(P, q, A, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    P, A = sp.csc_matrix(P), sp.csc_matrix(A)
    solver = clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings)
    return np.array(solver.solve().x)


def steps_objective(w, z, rise, fall, p):
    d = np.diff(p)
    falls = fall * np.maximum(-d, 0).sum() if np.isfinite(fall) else 0.0
    return 0.5 * (w * (p - z) ** 2).sum() + rise * np.maximum(d, 0).sum() + falls


def steps(w, z, rise, fall):
    """p with a price on rises and on falls (infinite: forbidden)."""
    n, m = len(z), len(z) - 1
    D = np.diff(np.eye(n), axis=0)
    P = sp.block_diag([sp.diags(w), sp.csc_matrix((2 * m, 2 * m))])
    finite = np.isfinite(fall)
    q = np.concatenate([-w * z, np.full(m, rise), np.full(m, fall if finite else 0.0)])
    rows = [
        sp.hstack([D, -sp.eye(m), sp.eye(m)]),
        sp.hstack([sp.csc_matrix((2 * m, n)), -sp.eye(2 * m)]),
    ]
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * m)]
    if not finite:
        rows.append(sp.hstack([sp.csc_matrix((m, n + m)), sp.eye(m)]))
        cones.append(clarabel.ZeroConeT(m))
    return minimise(P, q, sp.vstack(rows), cones)[:n]


def curve(x, w, z, lam):
    """p and the objective for parabolas with a price on jumps of the curvature, on truncated
    powers."""
    n, k = len(x), len(x) - 2
    powers = [np.maximum(x - x[j], 0) ** 2 / 2 for j in range(1, n - 1)]
    B = np.column_stack([np.ones(n), x, x**2, *powers])
    P = sp.block_diag([B.T @ (w[:, None] * B), sp.csc_matrix((k, k))])
    q = np.concatenate([-B.T @ (w * z), np.full(k, lam)])
    jumps = sp.hstack([sp.csc_matrix((k, 3)), sp.eye(k)])
    A = sp.vstack([sp.hstack([jumps, -sp.eye(k)]), sp.hstack([-jumps, -sp.eye(k)])])
    b = minimise(P, q, A, [clarabel.NonnegativeConeT(2 * k)])[: 3 + k]
    p = B @ b
    return p, 0.5 * (w * (p - z) ** 2).sum() + lam * np.abs(b[3:]).sum()
