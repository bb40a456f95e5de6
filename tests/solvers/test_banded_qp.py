"""The banded programme behind ELiTE: optimal against a solver made by others, and never NaN."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from calibrant.methods.near_isotonic._kernel_lines import (
    least_squares,
    row_values,
    solve_for_signs,
    solve_rows,
)
from twins import trend as naive


def problem(n, seed, low=None):
    """A random banded programme: H tridiagonal, rows of two and three coefficients."""
    rng = np.random.default_rng(seed)
    off = rng.uniform(-0.4, 0.4, n - 1)
    hess = np.column_stack((rng.random(n) + 1.0, np.append(0.0, off)))
    rows = 2 * n - 3
    coef, start = np.zeros((rows, 3)), np.append(np.arange(n - 2), np.arange(n - 1))
    coef[: n - 2] = rng.normal(size=(n - 2, 3))
    coef[n - 2 :, :2] = -1.0, 1.0
    high = rng.random(rows) * 10 ** rng.uniform(-3, 1, rows)
    cost = rng.random(rows) * 10 ** rng.uniform(-3, 1, rows)
    if low is not None:
        cost[n - 2 :] = low
    return hess, rng.normal(size=n), coef, start.astype(np.intp), cost, high


def dense(hess, coef, start):
    n = len(hess)
    H = np.diag(hess[:, 0]) + np.diag(hess[1:, 1], 1) + np.diag(hess[1:, 1], -1)
    R = np.zeros((len(start), n))
    for r, first in enumerate(start):
        for k in range(min(3, n - first)):
            R[r, first + k] = coef[r, k]
    return H, R


def objective(H, g, R, low, high, f):
    t = R @ f
    down = np.where(np.isfinite(low), low, 0.0) * np.maximum(-t, 0)
    return 0.5 * f @ H @ f - g @ f + (high * np.maximum(t, 0) + down).sum()


def reference(H, g, R, low, high):
    n, m = len(g), len(R)
    finite = np.isfinite(low)
    P = sp.block_diag([H, sp.csc_matrix((2 * m, 2 * m))])
    q = np.concatenate([-g, high, np.where(finite, low, 0.0)])
    rows = [
        sp.hstack([R, -sp.eye(m), sp.eye(m)]),
        sp.hstack([sp.csc_matrix((2 * m, n)), -sp.eye(2 * m)]),
        sp.hstack([sp.csc_matrix((int((~finite).sum()), n + m)), sp.eye(m).tocsr()[~finite]]),
    ]
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * m)]
    cones.append(clarabel.ZeroConeT(int((~finite).sum())))
    return naive.minimise(P, q, sp.vstack(rows), cones)[:n]


@pytest.mark.parametrize("low", [None, 0.0, np.inf])
@pytest.mark.parametrize("seed", range(12))
def test_programme_is_solved(low, seed):
    n = int([3, 5, 12, 40][seed % 4])
    hess, g, coef, start, cost, high = problem(n, seed, low)
    if low == 0.0:
        cost[n - 2 :] = 0.3
        high[n - 2 :] = 0.0
    f, y, up, down, room = solve_rows(hess, g, coef, start, cost, high, 100.0, 1e-13)
    H, R = dense(hess, coef, start)
    twin = reference(H, g, R, cost, high)
    ours, theirs = (objective(H, g, R, cost, high, v) for v in (f, twin))
    assert ours <= theirs + 1e-8
    assert np.abs(H @ f - g + R.T @ y).max() < 1e-8  # stationary
    assert (y <= high + 1e-9).all()
    assert (y >= -cost - 1e-9).all()
    assert np.abs(R @ f - up + down).max() < 1e-8
    assert room.min() >= 0
    if low == np.inf:
        assert np.diff(f).min() > -1e-8


def test_linear_systems():
    hess, g, coef, start, _cost, _high = problem(9, 1)
    H, R = dense(hess, coef, start)
    assert np.allclose(H @ least_squares(hess, g), g)
    f = np.arange(9.0) ** 1.5
    assert np.allclose(row_values(coef, start, f), R @ f)


def test_settled_where_no_row_is_zero():
    hess, g, coef, start, cost, high = problem(8, 2)
    coef, start, cost, high = coef[:6], start[:6], cost[:6] * 1e-3, high[:6] * 1e-3
    f, _y, _, _, room = solve_rows(hess, g, coef, start, cost, high, 100.0, 1e-14)
    assert room.max() < 1e-8  # all prices are at a bound
    better, good = solve_for_signs(hess, g, coef, start, cost, high, row_values(coef, start, f))
    assert good.all()
    assert np.abs(better - f).max() < 1e-7
    _, wrong = solve_for_signs(hess, g, coef, start, cost, high, -row_values(coef, start, f))
    assert not wrong.any()


def test_dependent_rows_do_not_break_it():
    """Everything is held at zero slope by rows that say the same thing many times."""
    n = 30
    hess = np.column_stack((np.ones(n), np.zeros(n)))
    coef, start = np.zeros((3 * (n - 1), 3)), np.tile(np.arange(n - 1), 3)
    coef[:, :2] = -1.0, 1.0
    bound = np.full(len(start), 1e6)
    g = np.linspace(0, 1, n)
    f, *_ = solve_rows(hess, g, coef, start, bound, bound, float(g @ g), 1e-12)
    assert np.abs(f - g.mean()).max() < 1e-7
