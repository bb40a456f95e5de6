"""The kernels against general-purpose solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.solvers import softmax
from calibrant.solvers.logistic import (
    LogisticProblem,
    Prior,
    fit_logistic,
    platt_smoothing,
    smoothed_targets,
)
from calibrant.solvers.newton import newton_step


def logistic_newton(features, n0, n1, start, ridge=0.0, max_steps=100):
    prior = Prior(np.zeros(len(features)), np.full(len(features), ridge))
    problem = LogisticProblem(lambda part: features[:, part], n0, n1, prior)
    return problem.descend(problem.at(start), max_steps=max_steps)


def objective(theta, features, n0, n1, ridge):
    eta = theta @ features
    return n1 @ np.logaddexp(0, -eta) + n0 @ np.logaddexp(0, eta) + ridge / 2 * theta @ theta


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.0, 1e-3, 1.0]))
def test_newton_finds_the_minimum(seed, m, ridge):
    rng = np.random.default_rng(seed)
    features = np.vstack((np.ones(40), rng.normal(size=(m, 40))))
    n0, n1 = rng.random((2, 40)) + 0.01
    fit = logistic_newton(features, n0, n1, rng.normal(size=m + 1) * 5, ridge)
    assert fit.converged
    reference = minimize(
        objective, np.zeros(m + 1), (features, n0, n1, ridge), method="BFGS", options={"gtol": 1e-9}
    )
    assert fit.point.objective <= reference.fun + 1e-9
    p = 1 / (1 + np.exp(-(fit.theta @ features)))
    gradient = features @ ((n0 + n1) * p - n1) + ridge * fit.theta
    assert np.abs(gradient).max() < 1e-8


def test_blocks_do_not_matter():
    rng = np.random.default_rng(1)
    x = rng.normal(size=30_000)
    n1 = rng.random(30_000)
    whole = fit_logistic([x], 1 - n1, n1)
    order = rng.permutation(30_000)
    assert np.allclose(
        whole.coefficients, fit_logistic([x[order]], 1 - n1[order], n1[order]).coefficients
    )


def test_start_and_units():
    rng = np.random.default_rng(2)
    x = rng.normal(size=500) * 1e-6 + 5.0
    n1 = (rng.random(500) < 1 / (1 + np.exp(-(x - 5.0) * 1e6))).astype(float)
    cold = fit_logistic([x], 1 - n1, n1)
    warm = fit_logistic([x], 1 - n1, n1, start=cold.coefficients)
    assert warm.steps <= 2 < cold.steps
    assert np.allclose(cold.coefficients, warm.coefficients, rtol=1e-6)
    slope = fit_logistic([x - 5.0], 1 - n1, n1, intercept=False, ridge=1e-9)
    again = fit_logistic(
        [x - 5.0], 1 - n1, n1, intercept=False, ridge=1e-9, start=slope.coefficients
    )
    assert np.allclose(slope.coefficients, again.coefficients)


def test_separable_data_need_the_ridge_and_stop_either_way():
    x = np.array([-1.0, 1.0])
    n1 = np.array([0.0, 1.0])
    bounded = logistic_newton(np.vstack((np.ones(2), x)), 1 - n1, n1, np.zeros(2), 1e-6)
    assert bounded.converged
    assert 5 < bounded.theta[1] < 50
    free = logistic_newton(np.vstack((np.ones(2), x)), 1 - n1, n1, np.zeros(2), 0.0)
    assert np.isfinite(free.theta).all()


def test_a_step_that_would_overshoot_is_halved():
    x = np.array([[1.0, 1.0]])
    n0, n1 = np.array([1.0, 0.0]), np.array([0.0, 3.0])
    fit = logistic_newton(x, n0, n1, np.array([-30.0]))
    assert fit.converged
    assert fit.theta[0] == pytest.approx(np.log(3.0))
    assert not logistic_newton(x, n0, n1, np.array([-30.0]), max_steps=1).converged


def test_singular_hessians_are_shifted():
    direction = newton_step(np.zeros((2, 2)), np.array([1.0, 2.0]))
    assert np.isfinite(direction).all()
    assert direction @ np.array([1.0, 2.0]) < 0
    assert np.isfinite(newton_step(np.array([[-1e-18, 0.0], [0.0, 1.0]]), np.ones(2))).all()
    assert np.isfinite(newton_step(-np.eye(2), np.ones(2))).all()


@pytest.mark.parametrize("weight", [1e6, 1e10, 1e12, 1e15])
def test_heavy_rows_that_separate_end_at_the_optimum_in_few_steps(monkeypatch, weight):
    """Platt's smoothing is 1e-15 of such weights: it must not drown in differences."""
    looks = []
    plain = LogisticProblem.at

    def counted(self, theta):
        looks.append(theta)
        return plain(self, theta)

    monkeypatch.setattr(LogisticProblem, "at", counted)
    x = np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0]])
    n0, n1 = np.array([weight, 0.0, 0.0]), np.array([0.0, weight, weight])
    smoothing = platt_smoothing(weight, 2.0 * weight)
    t0, t1 = smoothed_targets(n0, n1, smoothing)
    np.testing.assert_allclose(t0[1:], weight / (2.0 * weight + 2.0), rtol=1e-15)
    flat = Prior(np.zeros(2), np.zeros(2))
    found = LogisticProblem(lambda part: x[:, part], n0, n1, flat, smoothing).least(np.zeros(2))
    assert len(looks) < 60
    eta = found.theta @ x
    # the score equations, of numbers near 1 each
    residual = t0 * expit(eta) - t1 * expit(-eta)
    np.testing.assert_allclose(x @ residual, 0.0, atol=1e-6)


def test_a_descent_at_the_floor_of_rounding_ends_at_once():
    """Three rows that separate, up to a tiny ridge, once took 200 steps and 5,000 looks."""
    rng = np.random.default_rng(3)
    x, codes, w = rng.normal(0.0, 1.5, (3, 3)), np.arange(3), np.array([2.45, 2.46, 1.59])
    steps = []
    for ridge in 10.0 ** np.arange(-7.0, 0.0):
        problem = softmax.SoftmaxProblem(
            lambda: [(x, codes, w)], np.full((3, 2), ridge), np.zeros((3, 2)), 0.0, float(w.sum())
        )
        steps.append(softmax.fit_softmax(problem, np.ones((3, 2))).steps)
    assert max(steps) < 40
