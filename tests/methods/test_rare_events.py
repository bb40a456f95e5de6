"""Few positives among many rows: every fit ends at its optimum."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.errors import ConvergenceError
from calibrant.methods.splines import bls as bls_members
from calibrant.solvers.logistic import LogisticProblem, fit_logistic, smoothed_targets
from calibrant.solvers.newton import descend
from twins import rare

#: small ones of every kind, and those that a pooled table misleads most
FEW = [*rare.settings([6_000], [30, 300]), (100_000, 100, "top", "uniform")]
FULL = rare.settings([10_000, 100_000, 500_000], [30, 100, 300, 1_000])


def coordinates(s, kind):
    """ln p, −ln(1 − p) and their sum."""
    if kind == "logits":
        return -np.logaddexp(0, -s), np.logaddexp(0, s), s
    return np.log(s), -np.log1p(-s), np.log(s) - np.log1p(-s)


def platt_targets(y):
    n1, n0 = y.sum(), (1 - y).sum()
    t1 = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    return 1 - t1, t1


def check_beta(setting):
    s, y = rare.rows(*setting)
    low, high, _ = coordinates(s, setting[3])
    n1 = y.astype(float)
    c = cal.Beta().fit(s, y)
    eta = c.c_ + c.a_ * low + c.b_ * high
    spreads = np.array([low.std(), high.std()])
    own = rare.loss_of(eta, 1 - n1, n1) + 0.5e-6 * np.sum((np.array([c.a_, c.b_]) * spreads) ** 2)
    models = [rare.least(columns, 1 - n1, n1, 1e-6) for columns in ([low, high], [low], [high], [])]
    best = min(loss for loss, slopes in models if (slopes >= 0).all())
    assert own <= best * (1 + 1e-9)
    assert expit(eta).sum() == pytest.approx(y.sum(), rel=1e-9)
    # its sub-model, with the ridge that it has here, and a constant without any
    straight = cal.Beta(parameters="am").fit(s, y)
    along = straight.c_ + straight.a_ * (low + high)
    held = 0.5e-6 * np.sum((straight.a_ * spreads) ** 2)
    assert own <= (rare.loss_of(along, 1 - n1, n1) + held) * (1 + 1e-9)
    assert expit(along).sum() == pytest.approx(y.sum(), rel=1e-9)
    assert rare.loss_of(eta, 1 - n1, n1) <= models[-1][0] * (1 + 1e-9)


def check_sigmoids(setting):
    s, y = rare.rows(*setting)
    z = coordinates(s, setting[3])[2]
    t0, t1 = platt_targets(y)
    platt = cal.Platt().fit(s, y)
    eta = -platt.a_ * z - platt.b_
    assert rare.loss_of(eta, t0, t1) <= rare.least([z], t0, t1)[0] * (1 + 1e-9)
    assert expit(eta).sum() == pytest.approx(t1.sum(), rel=1e-9)
    x = (z - z.mean()) / z.std()
    bent = cal.Quadratic().fit(s, y)
    eta = bent.c_ + bent.a_ * z + bent.b_ * z * z
    bend = bent.b_ * z.var()
    slope = bent.a_ * z.std() + 2 * bent.b_ * z.mean() * z.std()
    best = _least_parabola(x, t0, t1)
    assert rare.loss_of(eta, t0, t1) + 0.5e-6 * (bend**2 + slope**2) <= best * (1 + 1e-9)
    assert expit(eta).sum() == pytest.approx(t1.sum(), rel=1e-9)
    rms, size = np.sqrt(np.mean(z * z)), len(z)
    ridge = 1e-7 * size
    factor = rms / cal.Temperature().fit(s, y).temperature_
    best, (slope,) = rare.least([z], 1.0 - y, 1.0 * y, ridge, intercept=False)
    if slope > 1e-3:
        own = rare.loss_of(factor * z / rms, 1.0 - y, 1.0 * y) + 0.5 * ridge * factor**2
        assert own <= best * (1 + 1e-9)
    else:
        assert factor == pytest.approx(1e-3)


def _least_parabola(x, t0, t1):
    """With a ridge on the coefficients of x and x² − 1 as they are."""
    bend = x * x - 1
    size = bend.std()
    # `least` standardises: the ridge of the second column is given in its units
    columns = np.array([np.ones(len(x)), x, bend])
    pull = np.array([0.0, 1e-6, 1e-6])
    theta = np.zeros(3)
    _, found = rare.least([x, bend], t0, t1, 1e-6)
    theta[1:] = found[0], found[1] / size
    theta[0] = np.log(t1.sum() / t0.sum())
    for _ in range(100):  # Newton's method from nearby, to the ridge as it is
        eta = theta @ columns
        p = expit(eta)
        gradient = columns @ ((t0 + t1) * p - t1) + pull * theta
        hessian = (columns * ((t0 + t1) * p * (1 - p))) @ columns.T + np.diag(pull)
        step = np.linalg.solve(hessian, gradient)
        theta = theta - step * min(1.0, 1.0 / np.abs(step @ columns).max())
    return rare.loss_of(theta @ columns, t0, t1) + 0.5 * pull @ theta**2


def check_spline_and_bls(setting, monkeypatch):
    """The Newton decrement at the end of each fit inside."""
    s, y = rare.rows(*setting)

    def smooth(problem, *starts, cone=None):
        found = least(problem, *starts, cone=cone)
        left = found.gradient @ np.linalg.solve(found.hessian, found.gradient)
        assert left <= 1e-12 * found.objective
        _, t1 = smoothed_targets(problem.n0, problem.n1, problem.smoothing)
        assert abs(found.gradient[0]) <= 1e-9 * t1.sum()  # Σp = Σt
        return found

    def member(design, mean, sd, n0, n1, start=None):
        found = fit_posterior(design, mean, sd, n0, n1, start)
        p, u = expit(design.times(found.theta)), (found.theta - mean) / sd
        gradient = u + sd * design.back((n0 + n1) * p - n1)
        hessian = design.gram((n0 + n1) * p * (1 - p)) * sd * sd[:, None] + np.eye(len(u))
        assert gradient @ np.linalg.solve(hessian, gradient) < 1e-9
        return found

    least, fit_posterior = LogisticProblem.least, bls_members.fit_posterior
    with monkeypatch.context() as patch:
        patch.setattr(LogisticProblem, "least", smooth)
        cal.Spline().fit(s, y)
        patch.setattr(bls_members, "fit_posterior", member)
        cal.BLS().fit(s, y)


@pytest.mark.parametrize("method", [cal.Platt, cal.Beta, cal.Quadratic, cal.Spline])
def test_scores_that_differ_by_rounding_are_one(method):
    s, y = np.repeat([0.3, 0.1 + 0.2], 1000), np.zeros(2000, int)
    y[:100] = y[1000:1300] = 1
    assert np.allclose(method().fit(s, y).calibrate([0.29, 0.3, 0.1 + 0.2, 0.31]), 0.2, rtol=1e-3)


@pytest.mark.parametrize("setting", FEW, ids=str)
def test_beta_ends_at_its_optimum(setting):
    check_beta(setting)


@pytest.mark.parametrize("setting", FEW, ids=str)
def test_sigmoids_end_at_their_optima(setting):
    check_sigmoids(setting)


@pytest.mark.parametrize("setting", FEW[::5], ids=str)
def test_splines_and_members_of_bls_end_at_their_optima(setting, monkeypatch):
    check_spline_and_bls(setting, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("setting", FULL, ids=str)
def test_all_settings(setting, monkeypatch):
    check_beta(setting)
    check_sigmoids(setting)
    check_spline_and_bls(setting, monkeypatch)


def test_a_bad_start_is_left_aside():
    s, y = rare.rows(20_000, 50, "top", "uniform")
    low, high, _ = coordinates(s, "uniform")
    n1 = y.astype(float)
    cold = fit_logistic([low, high], 1 - n1, n1, ridge=1e-6)
    for start in ([1e4, 1e4, 1e4], [-1e6, 0.0, 1e6], [0.0, -50.0, 900.0]):
        warm = fit_logistic([low, high], 1 - n1, n1, ridge=1e-6, start=np.array(start))
        assert np.allclose(warm.coefficients, cold.coefficients, rtol=1e-7)
        assert warm.steps <= cold.steps


def test_what_does_not_converge_raises():
    class Point:
        def __init__(self, theta):
            self.theta, self.objective = theta, float(np.exp(-theta).sum()) + 1.0
            self.gradient = -np.exp(-theta)

    found = descend(Point, Point(np.zeros(1)), lambda here: np.ones(1) * 1e-3, 1.0, max_steps=5)
    assert not found.converged
    with pytest.raises(ConvergenceError, match="after 5 steps the log loss could still fall by"):
        found.required()
    assert isinstance(ConvergenceError(), cal.errors.InputError)


@pytest.mark.parametrize("kind", ["abm", "am", "ab"])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_with_fractional_weights_in_any_order(kind, label):
    rng = np.random.default_rng(3)
    s, w = rng.random(50), rng.random(50)
    found = []
    for _ in range(10):
        order = rng.permutation(50)
        c = cal.Beta(parameters=kind, weights="counts", classes=[0, 1])
        with pytest.warns(cal.errors.AdviceWarning):
            c.fit(s[order], np.full(50, label), w[order])
        found.append(c.calibrate([0.1, 0.5, 0.9]))
    assert np.ptp(found, axis=0).max() < 1e-12
    if kind != "ab":  # the odds of the weights, with half a case of the class that is absent
        rate = (label * w.sum() + 0.5) / (w.sum() + 1.0)
        assert np.allclose(found[0], rate, rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "of_none", "of_one", "of_ten"),
    [
        (cal.BLS, 0.1, 1.05, 10),
        (cal.Platt, 1.0, 1.7, 10.2),
        (cal.Beta, 0.5, 1.0, 10),
        (cal.Isotonic, 0.0, 1.0, 10),
        (cal.VennAbers, 12, 13, 23),
    ],
)
def test_few_events_sum_to_what_the_page_says(root, method, of_none, of_one, of_ten):
    page = (root / "docs" / "howto" / "rare_events.md").read_text(encoding="utf-8")
    (line,) = (one for one in page.splitlines() if one.startswith(f"| `{method.__name__}`"))
    assert [float(cell) for cell in line.strip("| ").split(" | ")[1:]] == [of_none, of_one, of_ten]
    rng = np.random.default_rng(0)
    s = rng.random(300_000)
    for events, expected in ((0, of_none), (1, of_one), (10, of_ten)):
        y = np.zeros(300_000, int)
        y[rng.choice(300_000, events, replace=False, p=s / s.sum())] = 1
        total = method(classes=[0, 1]).fit(s, y).calibrate(s).sum()
        assert total == pytest.approx(expected, rel=0.06, abs=0.03)


def test_the_page_shows_the_results(root):
    """A table of all methods: losses on every signal with 30 events."""
    page = (root / "docs" / "howto" / "rare_events.md").read_text(encoding="utf-8")
    made = (root / "benchmarks" / "results" / "rare_independent.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in made.splitlines() if line.startswith("| ")]
    results = pd.DataFrame(lines[1:], columns=lines[0])
    assert len(results) > 10
    tables = re.findall(r"^\| method \| .*, 30 \|.*(?:\n\|.*)+", page, flags=re.MULTILINE)
    assert len(tables) == 1
    columns, _, *rows = (line.strip("| ").split(" | ") for line in tables[0].splitlines())
    assert rows == results[columns].to_numpy().tolist()
