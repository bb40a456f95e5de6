"""Slow, obvious twins of the combiners, one row at a time. They import nothing of ours."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import nnls


def demands(r, code, weights):
    """One row √n_b·((1−r_b) on the positives, −r_b on the negatives) per column."""
    rows = np.where(code.T > 0, (1 - r)[:, None], np.where(code.T < 0, -r[:, None], 0.0))
    return np.sqrt(weights)[:, None] * rows


def squares(p, r, code, weights):
    """Σ n_b((1−r_b)Σ_I p − r_bΣ_J p)²."""
    return float(((demands(r, code, weights) @ p) ** 2).sum())


def least_squares_by_supports(r, code, weights):
    """Every set of classes that may be positive, solved with Σp = 1; the best that is ≥ 0."""
    rows, k = demands(r, code, weights), len(code)
    best, least = None, np.inf
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            a = rows[:, support]
            system = np.block(
                [[a.T @ a, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
            )
            found = np.linalg.lstsq(system, np.r_[np.zeros(size), 1.0], rcond=None)[0][:size]
            if found.min() < -1e-12 or abs(found.sum() - 1) > 1e-9:
                continue
            p = np.zeros(k)
            p[list(support)] = found
            value = ((rows @ p) ** 2).sum()
            if value < least - 1e-15:
                best, least = p, value
    return best


def least_squares_by_nnls(r, code, weights):
    """scipy's non-negative least squares; on a ray y = tp the best t leaves −1/(2(value + 1))."""
    rows, k = demands(r, code, weights), len(code)
    stacked = np.vstack((rows, np.ones((1, k))))
    y, _ = nnls(stacked, np.r_[np.zeros(len(rows)), 1.0])
    return y / y.sum()


def divergence(p, r, code, weights):
    """Σ n_b KL(r_b ‖ r̂_b), with 0·ln 0 = 0."""
    total = 0.0
    for b, n in enumerate(weights):
        up, down = p[code[:, b] > 0].sum(), p[code[:, b] < 0].sum()
        for target, part in ((r[b], up), (1 - r[b], down)):
            if n > 0 and target > 0:
                total += n * target * (np.log(target) - np.log(part) + np.log(up + down))
    return total


def scaled_gradient(p, r, code, weights):
    """p_c·∂/∂p_c of the divergence; a column without any probability left asks for nothing."""
    v = np.zeros(len(p))
    for b, n in enumerate(weights):
        plus, minus = code[:, b] > 0, code[:, b] < 0
        up, down = p[plus].sum(), p[minus].sum()
        if up + down == 0:
            continue
        v[plus | minus] += n * p[plus | minus] / (up + down)
        for side, part, target in ((plus, up, r[b]), (minus, down, 1 - r[b])):
            v[side] -= n * target * (p[side] / part if part > 0 else 1 / side.sum())
    return v


def coupling_by_steps(r, code, weights, tol=1e-13, most=400_000):
    """The multiplicative step of the generalised Bradley–Terry model, until nothing moves."""
    p = np.full(len(code), 1 / len(code))
    for _ in range(most):
        up, down = (code > 0).T @ p, (code < 0).T @ p
        gain = (code > 0) @ (weights * r / up) + (code < 0) @ (weights * (1 - r) / down)
        new = p * gain / ((code != 0) @ (weights / (up + down)))
        new /= new.sum()
        moved = np.abs(new - p).max()
        p = new
        if moved <= tol:
            return p
    raise RuntimeError("the multiplicative steps did not settle")


def coupling_as_printed(r, code, weights, steps):
    """p_c·[Σ n r + Σ n(1−r)]/[Σ n r̂ + Σ n(1−r̂)], as printed for any code."""
    p = np.full(len(code), 1 / len(code))
    for _ in range(steps):
        up, down = (code > 0).T @ p, (code < 0).T @ p
        share = up / (up + down)
        asked = (code > 0) @ (weights * r) + (code < 0) @ (weights * (1 - r))
        new = p * asked / ((code > 0) @ (weights * share) + (code < 0) @ (weights * (1 - share)))
        p = new / new.sum()
    return p


def coupling_by_cones(r, code, weights):
    """A conic solver, for codes without zeros: max Σ n(r·s + (1−r)·t), s ≤ ln A, t ≤ ln B."""
    import clarabel
    from scipy import sparse

    k, columns = code.shape
    size = k + 2 * columns
    rows, offset = [], []
    for b in range(columns):
        for side, sign in ((0, 1), (1, -1)):
            log, one, part = np.zeros(size), np.zeros(size), np.zeros(size)
            log[k + 2 * b + side] = -1.0
            part[:k] = np.where(code[:, b] == sign, -1.0, 0.0)
            rows += [log, one, part]
            offset += [0.0, 1.0, 0.0]
    total = np.r_[np.ones(k), np.zeros(2 * columns)]
    bounds = np.hstack((-np.eye(k), np.zeros((k, 2 * columns))))
    a = sparse.csc_matrix(np.vstack((total, bounds, np.array(rows))))
    cost = np.zeros(size)
    cost[k::2], cost[k + 1 :: 2] = -weights * r, -weights * (1 - r)
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)]
    cones += [clarabel.ExponentialConeT()] * (2 * columns)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), cost, a, np.r_[1.0, np.zeros(k), offset], cones, settings
    )
    p = np.maximum(np.array(solver.solve().x[:k]), 0.0)
    return p / p.sum()


def pairwise_by_system(r, code, weights):
    """Wu, Lin and Weng's second method: their linear system, with r_ij looked up pair by pair."""
    k = len(code)
    q = np.zeros((k, k))
    for b, n in enumerate(weights):
        i, j = int(np.argmax(code[:, b])), int(np.argmin(code[:, b]))
        r_ij, r_ji = r[b], 1 - r[b]
        q[i, i] += n * r_ji**2
        q[j, j] += n * r_ij**2
        q[i, j] -= n * r_ji * r_ij
        q[j, i] -= n * r_ji * r_ij
    system = np.block([[q, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.r_[np.zeros(k), 1.0])[:k]
