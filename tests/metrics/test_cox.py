"""Cox's slope and intercept: definitions, weights, ends, and how often the test is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2

import calibrant as cal
from calibrant.metrics import cox

RNG = np.random.default_rng(0)


def naive(y, p, w):
    """Slope and intercepts by a general minimiser, the test by matrices."""
    z = logit(p)

    def loss(theta, line):
        eta = theta[0] + line(theta) * z
        return float((w * np.logaddexp(0.0, np.where(y, -eta, eta))).sum())

    both = minimize(loss, [0.0, 1.0], args=(lambda t: t[1],), method="BFGS", options={"gtol": 1e-9})
    one = minimize(loss, [0.0], args=(lambda t: 1.0,), method="BFGS", options={"gtol": 1e-9})
    u = np.column_stack((np.ones(len(z)), z))
    score = u.T @ (w * (y - p))
    variance = (u.T * (w**2 * p * (1.0 - p))) @ u
    return both.x[1], one.x[0], float(score @ np.linalg.solve(variance, score))


@pytest.mark.parametrize("seed", range(6))
def test_equals_a_general_minimiser(seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1, 3, 400), 3).clip(0.001, 0.999)
    y = rng.random(400) < expit(0.5 + 0.7 * logit(p))
    w = rng.random(400) + 0.1 if seed % 2 else np.ones(400)
    slope, intercept, statistic = naive(y, p, w / w.mean())
    found = cox(y, p, sample_weight=w)
    assert found.slope == pytest.approx(slope, abs=1e-5)
    assert found.intercept == pytest.approx(intercept, abs=1e-5)
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.p_value == pytest.approx(chi2.sf(statistic, 2), rel=1e-6)
    assert found.observed_expected == pytest.approx(
        np.average(y, weights=w) / np.average(p, weights=w)
    )


@given(seed=st.integers(0, 2**32 - 1), factor=st.sampled_from([2.0**-30, 3.0, 1e6]))
def test_weights(seed, factor):
    rng = np.random.default_rng(seed)
    p, w = rng.random(40).clip(0.01, 0.99), rng.integers(0, 4, 40)
    y = rng.random(40) < p
    assume(y[w > 0].any() and not y[w > 0].all())
    counted = cox(y, p, sample_weight=w, weights="counts")
    repeated = cox(np.repeat(y, w), np.repeat(p, w))
    for name in ("slope", "intercept", "observed_expected", "statistic"):
        expected = getattr(repeated, name)
        assert getattr(counted, name) == pytest.approx(expected, rel=1e-6, abs=1e-8)
        one, other = cox(y, p, sample_weight=w + 0.5), cox(y, p, sample_weight=factor * (w + 0.5))
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6, abs=1e-8)


def test_intervals_hold_the_truth():
    rng = np.random.default_rng(1)
    held = np.zeros(3)
    for _ in range(300):
        p = rng.beta(1, 3, 500).clip(1e-6, 1 - 1e-6)
        found = cox(rng.random(500) < p, p)
        for i, (low, high) in enumerate(
            (found.slope_interval, found.intercept_interval, found.observed_expected_interval)
        ):
            true = 0.0 if i == 1 else 1.0
            held[i] += low <= true <= high
    assert (held >= 300 * 0.95 - 14).all(), held


@pytest.mark.full
def test_false_alarms_and_power():
    rng = np.random.default_rng(2)
    false, found = 0, 0
    for _ in range(400):
        p = expit(rng.normal(-1.0, 1.0, 500))
        false += cox(rng.random(500) < p, p).p_value <= 0.05
        found += cox(rng.random(500) < expit(1.5 * logit(p)), p).p_value <= 0.05
    assert 7 <= false <= 34
    assert found >= 300


def test_ends():
    separated = cox([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9])
    assert separated.slope == math.inf
    assert cox([1, 1, 0, 0], [0.1, 0.2, 0.7, 0.9]).slope == -math.inf
    constant = cox([0, 1, 1, 0], [0.3] * 4)
    assert math.isnan(constant.slope)
    assert constant.df == 1
    assert constant.intercept == pytest.approx(logit(0.5) - logit(0.3))
    assert cox([0, 1, 1], [0.2, 0.0, 0.6]).p_value == 0.0  # what was impossible came
    certain = cox([0, 1, 0, 1], [0.0, 1.0, 0.4, 0.5])
    assert certain.left_out == 2.0
    assert certain.p_value > 0.05
    assert cox([0, 1], [0.0, 1.0]).p_value == 1.0
    assert cox([0, 1], [1.0, 0.0]).p_value == 0.0  # all are certain, and wrong
    assert cox([0, 1, 0], [0.0] * 3).p_value == 0.0
    one = cox([0, 0, 0], [0.1, 0.2, 0.3])
    assert (one.intercept, one.observed_expected) == (-math.inf, 0.0)
    tiny = cox([0, 0, 1], [1e-300, 0.5, 1 - 1e-16])
    assert math.isfinite(tiny.statistic)


def test_a_table_in_place_of_labels():
    y, p = RNG.random(100) < 0.4, RNG.random(100)
    assert cox(cal.ScoreTable.from_arrays(p, y)) == cox(y, p)
    assert "slope=" in repr(cox(y, p))


def test_what_was_all_but_impossible_is_no_overflow():
    assert cal.metrics.cox([1], [5e-324]).p_value == 0.0
