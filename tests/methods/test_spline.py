"""The quadratic and the spline: optima, evidence, tails, pooling, and what they do at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

import calibrant as cal
from calibrant.methods.splines import spline as module
from calibrant.solvers.knots import Cubic, spline_basis
from calibrant.solvers.logistic import LogisticProblem, Prior
from strategies import REAL, TAME_MARGINS, TAME_PROBABILITIES, rows
from twins import spline as smooth

TABLES = st.one_of(
    rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4),
    rows(score=TAME_MARGINS, both_classes=True, min_size=4),
    rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4, weight=REAL),
)
LAMBDAS = st.sampled_from([1e-4, 1e-2, 0.3, 1.0, 30.0, 1e4, 1e9])


def distinct(s, w):
    """How many scores there are; neighbouring floats may have the same log-odds."""
    kept = s[w > 0]
    return len(np.unique(log_odds(kept) if kept.min() > 0 and kept.max() < 1 else kept))


def log_odds(p):
    return np.log(p) - np.log1p(-p)


def curved(n, seed=0):
    """Uniform scores whose rate is a wave."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < 0.5 + 0.3 * np.sin(12 * s)).astype(int)


# --- the spline's optimum and its evidence ------------------------------------------------------


@given(data=TABLES, lam=LAMBDAS)
def test_evidence_and_optimum_equal_the_twin(data, lam):
    s, y, w = data
    if distinct(s, w) < 2:
        return
    twin = smooth.Model(s, y, w)
    theta = twin.fit(lam)
    ours = cal.Spline(penalty=lam, weights="counts").fit(s, y, w)
    assert ours.log_evidence_ == pytest.approx(twin.evidence(theta, lam), abs=2e-6)
    assert ours.knots_ == pytest.approx(twin.m + twin.sd * twin.knots, abs=1e-9)
    assert np.abs(ours.calibrate(s) - twin.predict(theta, s, "flat")).max() < 1.1e-5
    assert 2 - 1e-6 <= ours.effective_df_ <= len(twin.x) + 1e-6


@pytest.mark.parametrize("seed", range(24))
def test_chosen_penalty_is_the_twins_or_as_good(seed):
    rng = np.random.default_rng(seed)
    n = 5 + seed
    s = np.round(0.05 + 0.9 * rng.random(n), 2) if seed % 2 else np.round(rng.normal(0, 2, n), 3)
    y = (rng.random(n) < 0.5 + 0.4 * np.sin(3 * s)).astype(int)
    w = rng.integers(1, 20, n).astype(float)
    twin = smooth.Model(s, y, w)
    ours, best = cal.Spline(weights="counts").fit(s, y, w), twin.best()
    evidence = [twin.evidence(twin.fit(lam), lam) for lam in (ours.penalty_, best)]
    assert evidence[0] >= evidence[1] - 1e-4  # what the twin's optimiser leaves at λ = 1e10
    assert ours.criteria_.max() == pytest.approx(ours.log_evidence_, abs=1e-6)
    assert (np.diff(ours.penalties_) < 0).all()


@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0, 1e4])
def test_textbook_p_spline_has_the_same_fit_reml_and_df(lam):
    rng = np.random.default_rng(4)
    s = rng.normal(0, 2, 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-np.sin(2 * s) - s / 3))).astype(int)
    ours = cal.Spline(penalty=lam, knots=12).fit(s, y)
    x = (np.sort(s) - s.mean()) / s.std()
    n1 = y[np.argsort(s)].astype(float)
    knots = (ours.knots_ - s.mean()) / s.std()
    p, reml, df = smooth.b_spline_reference(x, *smooth.platt_targets(1 - n1, n1), knots, lam)
    assert np.abs(ours.calibrate(np.sort(s)) - p).max() < 1.1e-5
    assert ours.log_evidence_ == pytest.approx(reml, abs=1e-4)
    assert ours.effective_df_ == pytest.approx(df, abs=1e-4)


@pytest.mark.parametrize("lam", [0.3, 3.0, 30.0])
def test_evidence_equals_the_integral_that_it_approximates(lam):
    table = cal.ScoreTable.from_counts([-2, -1, 0.5, 2], [300, 260, 100, 40], [60, 100, 160, 200])
    c = cal.Spline(penalty=lam, knots=2).fit_table(table)
    z, n = table.scores, table.weight
    x = (z - np.average(z, weights=n)) / np.sqrt(np.cov(z, fweights=n.astype(int), ddof=0))
    basis = spline_basis(x, n, x[[0, -1]])
    t0, t1 = smooth.platt_targets(table.negative, table.positive)
    prior = Prior(np.zeros(4), np.array([0, 0, lam, lam]))
    best = LogisticProblem(lambda part: basis.columns[:, part], t0, t1, prior).least(np.zeros(4))
    # 4-d Gauss–Hermite in the coordinates of the posterior
    nodes, weights = hermegauss(15)
    grid = np.array(np.meshgrid(*[nodes] * 4)).reshape(4, -1)
    mass = np.prod(np.meshgrid(*[weights] * 4), axis=0).ravel()
    root = np.linalg.inv(np.linalg.cholesky(best.hessian)).T
    theta = best.theta[:, None] + root @ grid
    eta = basis.columns.T @ theta
    value = t1 @ np.logaddexp(0, -eta) + t0 @ np.logaddexp(0, eta)
    value += 0.5 * lam * (theta[2:] ** 2).sum(axis=0)
    integral = mass @ np.exp(best.objective - value + (grid**2).sum(axis=0) / 2)
    exact = math.log(integral * abs(np.linalg.det(root))) - best.objective
    exact += math.log(lam / (2 * math.pi))  # the prior's density on the two bends
    assert c.log_evidence_ == pytest.approx(exact, abs=0.02)


def test_basis_is_cubic_and_its_penalty_is_the_integral():
    rng = np.random.default_rng(0)
    x, w = np.sort(rng.normal(size=50)), rng.random(50)
    x = (x - np.average(x, weights=w)) / np.sqrt(np.cov(x, aweights=w, ddof=0))
    knots = np.array([x[0], -0.3, 0.1, 0.9, x[-1]])
    basis = spline_basis(x, w, knots)
    theta = rng.normal(size=7)
    f = basis.spline(theta)
    assert f(x) == pytest.approx(theta @ basis.columns)
    fine = np.linspace(x[0], x[-1], 200_001)
    assert np.trapezoid(np.interp(fine, knots, f.bend) ** 2, fine) == pytest.approx(
        theta[2:] @ theta[2:], rel=1e-6
    )
    h = fine[1] - fine[0]
    assert np.interp(knots, fine, np.gradient(f(fine), h, edge_order=2)) == pytest.approx(
        f.slope, abs=1e-3
    )
    rows_of = basis.rising()
    theta[1] -= (rows_of @ theta).min()  # each row has a 1 there: the least becomes 0
    assert (rows_of @ theta).min() == pytest.approx(0, abs=1e-12)
    assert (np.diff(basis.spline(theta)(fine)) >= -1e-12).all()


@given(data=TABLES, lam=st.sampled_from([0.01, 1.0, 100.0]))
def test_monotone_optimum_equals_a_general_solver(data, lam):
    s, y, w = data
    if distinct(s, w) < 3:
        return
    twin = smooth.Model(s, y, w)
    theirs = twin.fit(lam, monotone=True)
    basis = spline_basis(twin.x, twin.n0 + twin.n1, twin.knots)
    size = len(basis.columns)
    prior = Prior(np.zeros(size), np.append([0.0, 0.0], np.full(size - 2, lam)))
    start = np.zeros(size)
    problem = LogisticProblem(lambda part: basis.columns[:, part], twin.t0, twin.t1, prior)
    ours = problem.least(start, cone=basis.rising())
    assert (basis.rising() @ ours.theta >= -1e-9).all()
    assert ours.objective <= twin.objective(theirs, lam) + 1e-7
    feasible = (twin.rising() @ theirs >= -1e-9).all()
    assert not feasible or ours.objective >= twin.objective(theirs, lam) - 1e-5
    fitted = cal.Spline(penalty=lam, monotone=True, weights="counts").fit(s, y, w)
    at_scores = 1 / (1 + np.exp(-(ours.theta @ basis.columns)))
    assert np.abs(fitted.calibrate(twin.scores) - at_scores).max() < 1.1e-5


# --- what the penalty does ----------------------------------------------------------------------


@given(data=st.one_of(TABLES, rows(both_classes=True)))
def test_a_heavy_penalty_is_platt(data):
    s, y, w = data
    s, y, w = s[w > 0], y[w > 0], w[w > 0]
    heavy, platt = cal.Spline(penalty=1e12).fit(s, y, w), cal.Platt().fit(s, y, w)
    if len(heavy.knots_) > 1 and np.abs(s).max() < 100:
        assert np.abs(heavy.calibrate(s) - platt.calibrate(s)).max() < 1e-5
        assert heavy.effective_df_ == pytest.approx(2, abs=1e-3)


def test_straight_data_get_a_line_and_waves_a_wave():
    rng = np.random.default_rng(1)
    s = rng.random(3000)
    line = cal.Spline().fit(s, rng.random(3000) < s)
    assert line.effective_df_ < 3.5
    s, y = curved(3000)
    wave = cal.Spline().fit(s, y)
    assert 6 < wave.effective_df_ < 25
    at = np.linspace(0.02, 0.98, 200)
    truth = 0.5 + 0.3 * np.sin(12 * at)
    error = {c: np.abs(c.calibrate(at) - truth).mean() for c in (wave, cal.Platt().fit(s, y))}
    assert error[wave] < 0.03
    assert max(error.values()) > 0.15


def test_penalty_on_folds_is_near_that_of_the_evidence():
    s, y = curved(3000, seed=2)
    evidence, folds = cal.Spline().fit(s, y), cal.Spline(penalty="cv").fit(s, y)
    assert folds.penalty_ in folds.penalties_
    assert folds.criteria_.max() == folds.criteria_[folds.penalties_ == folds.penalty_][0]
    assert abs(math.log10(folds.penalty_ / evidence.penalty_)) < 2
    assert np.abs(folds.calibrate(s) - evidence.calibrate(s)).mean() < 0.02


def test_cross_validated_loss_is_an_honest_estimate():
    new_s, new_y = curved(20000, seed=100)
    gaps = []
    for seed in range(8):
        c = cal.Spline(penalty="cv", knots=10).fit(*curved(1000, seed))
        p = c.calibrate(new_s)
        fresh = -np.mean(np.where(new_y == 1, np.log(p), np.log1p(-p)))
        gaps.append(-c.criteria_.max() - fresh)
    assert abs(np.mean(gaps)) < 0.02  # of 0.60; a leak would show as optimism


def test_scaling_and_shifting_margins_changes_nothing():
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, 500)
    y = (rng.random(500) < 1 / (1 + np.exp(-np.sin(2 * z) - z))).astype(int)
    for make in (cal.Spline, cal.Quadratic):
        one = make().fit(z, y).calibrate(z)
        for scale, shift in ((1e-6, 0.0), (1e8, 0.0), (1e3, 1e6)):
            two = make().fit(scale * z + shift, y).calibrate(scale * z + shift)
            assert np.abs(one - two).max() < 1e-5


# --- the map ------------------------------------------------------------------------------------


@pytest.mark.parametrize("margins", [False, True])
def test_tails_are_straight_or_flat(margins):
    s, y = curved(2000)
    s = 0.1 + 0.7 * s
    fitted_on = 3 * log_odds(s) if margins else s
    straight = cal.Spline(tails="linear").fit(fitted_on, y)
    flat = cal.Spline().fit(fitted_on, y)
    inside = np.linspace(fitted_on.min(), fitted_on.max(), 500)
    assert np.abs(straight.calibrate(inside) - flat.calibrate(inside)).max() < 1e-12
    for end, sign in ((fitted_on.min(), -1), (fitted_on.max(), 1)):
        z = end if margins else log_odds(end)
        steps = z + sign * np.array([0.0, 0.5, 1.0, 2.0, 4.0])
        at = steps if margins else 1 / (1 + np.exp(-steps))
        f = log_odds(straight.calibrate(at))
        slopes = np.diff(f) / np.diff(steps)
        assert slopes == pytest.approx(np.full(4, slopes[0]), rel=1e-6)
        assert abs(slopes[0]) > 1e-3
        assert flat.calibrate(at) == pytest.approx(flat.calibrate(at[:1])[0], abs=1e-12)


def test_scores_of_zero_and_one_count_as_the_clipped_ones():
    rng = np.random.default_rng(8)
    s = np.round(rng.beta(0.5, 0.5, 2000), 1)
    y = (rng.random(2000) < 0.1 + 0.8 * s).astype(int)
    p = cal.Spline(tails="linear").fit(s, y).calibrate([0.0, 0.05, 0.1, 0.9, 0.95, 1.0])
    assert 0.05 < p[0] < 0.2
    assert 0.8 < p[-1] < 0.95
    assert p[0] == p[1]  # 0 stands for half of the smallest score inside
    assert p[-1] == p[-2]


@pytest.mark.parametrize("seed", range(3))
def test_map_is_within_its_stated_error_of_the_spline(seed):
    s, y = curved(3000, seed)
    c = cal.Spline(penalty=0.01).fit(s, y)
    axis, cells = module._Axis.of(cal.ScoreTable.from_arrays(s, y))
    x = axis.x(cells.scores)
    knots = axis.x(c.knots_)
    basis = spline_basis(x, cells.weight, knots)
    smoothing = module._Smoothing(basis, cells.negative, cells.positive)
    f = basis.spline(smoothing.fit(0.01, smoothing.flat()).theta)
    at = np.linspace(knots[0], knots[-1], 100_001)
    score = 1 / (1 + np.exp(-axis.z(at)))
    error = np.abs(c.calibrate(score) - 1 / (1 + np.exp(-f(at)))).max()
    assert error <= c.map_error_ * 1.001
    assert c.map_error_ <= 1e-5
    assert error > 0.1 * c.map_error_, "the bound is far too large"


def test_places_of_a_line_need_no_extra_knots():
    line = Cubic(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([2.0, 2.0]), np.zeros(2))
    at, error = line.places(1e-9, 100)
    assert at.tolist() == [0.0, 1.0]
    assert error == 0.0


@pytest.mark.parametrize("kind", ["wave", "tails", "rare"])
def test_pooling_changes_far_less_than_the_noise(kind, monkeypatch):
    n = 20_000
    rng = np.random.default_rng(7)
    s = {
        "wave": rng.random(n),
        "tails": 1 / (1 + np.exp(-rng.normal(0, 6, n))),
        "rare": np.exp(-rng.exponential(3, n) - 4),
    }[kind]
    rate = {"wave": 0.5 + 0.3 * np.sin(12 * s), "tails": s**2, "rare": 0.3 * s**0.7}[kind]
    y = (rng.random(n) < rate).astype(int)
    pooled = cal.Spline().fit(s, y)
    p = pooled.calibrate(s)
    monkeypatch.setattr(module, "CELLS", n)
    whole = cal.Spline(penalty=pooled.penalty_).fit(s, y)
    q = whole.calibrate(s)
    loss = np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))
    assert loss < 1e-3 * whole.effective_df_ / n  # the noise of the fit itself is about df/2n
    assert len(pooled.map_.x) < 2000


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [cal.Spline, cal.Quadratic], ids=lambda c: c.__name__)
class TestEdges:
    def test_one_score_gives_the_smoothed_rate(self, make):
        c = make().fit([0.3] * 10, [1] * 4 + [0] * 6)
        high, low = 5 / 6, 1 / 8
        assert c.calibrate([0.0, 0.3, 0.9]) == pytest.approx((4 * high + 6 * low) / 10, abs=1e-6)

    def test_one_class_gives_its_smoothed_rate(self, make):
        c = make(classes=[0, 1]).fit([0.1, 0.4, 0.8], [1, 1, 1])
        assert c.calibrate([0.1, 0.4, 0.8]) == pytest.approx(4 / 5, abs=1e-5)

    def test_separable_data_stay_away_from_the_ends(self, make):
        s = np.linspace(0.05, 0.95, 40)
        p = make().fit(s, s > 0.5).calibrate(s)
        assert p.min() > 1e-4
        assert p.max() < 1 - 1e-4
        assert p[5] < 0.1
        assert p[-5] > 0.9

    def test_two_rows(self, make):
        c = make().fit([0.2, 0.9], [0, 1])
        assert c.calibrate([0.2, 0.9]) == pytest.approx([1 / 3, 2 / 3], abs=1e-5)

    def test_scores_that_run_the_wrong_way(self, make):
        rng = np.random.default_rng(0)
        s = rng.random(500)
        y = rng.random(500) < 1 - s
        p = make(monotone=True).fit(s, y).calibrate([0.1, 0.5, 0.9])
        assert p == pytest.approx(y.mean(), abs=0.01)
        turned = make().fit(s, y).calibrate([0.1, 0.5, 0.9])
        assert (np.diff(turned) < -0.2).all()


# --- quadratic ----------------------------------------------------------------------------------


@given(data=TABLES, shrink=st.sampled_from([None, 0.3, 1.0]))
def test_monotone_quadratic_equals_a_general_solver(data, shrink):
    s, y, w = data
    options = {} if shrink is None else {"shrinkage": shrink}
    c = cal.Quadratic(monotone=True, weights="counts", **options).fit(s, y, w)
    at = np.linspace(s.min(), s.max(), 50)
    assert (np.diff(c.calibrate(at)) >= -1e-12).all()
    expected = smooth.quadratic(s, y, w, s, shrink=shrink, monotone=True)
    assert np.abs(c.calibrate(s) - expected).max() < 2e-4


def test_monotone_is_the_free_fit_where_that_rises():
    rng = np.random.default_rng(2)
    s = rng.random(2000)
    y = rng.random(2000) < s
    assert cal.Quadratic().fit(s, y).map_ == cal.Quadratic(monotone=True).fit(s, y).map_


def test_shrinking_goes_from_the_data_to_the_identity():
    rng = np.random.default_rng(2)
    s = 0.05 + 0.9 * rng.random(300)
    y = rng.random(300) < s**2
    tight, loose = cal.Quadratic(shrinkage=1e-6).fit(s, y), cal.Quadratic(shrinkage=1e4).fit(s, y)
    assert tight.calibrate(s) == pytest.approx(s, abs=1e-9)
    assert (tight.a_, tight.b_, tight.c_) == pytest.approx((1, 0, 0), abs=1e-8)
    assert loose.calibrate(s) == pytest.approx(cal.Quadratic().fit(s, y).calibrate(s), abs=0.02)
    one, named = (
        cal.Quadratic(shrinkage=1.0).fit(s, y),
        cal.Quadratic(shrinkage="identity").fit(s, y),
    )
    assert one.map_ == named.map_


def test_coefficients_are_those_of_the_formula():
    rng = np.random.default_rng(9)
    z = rng.normal(0.5, 2, 20_000)
    y = rng.random(20_000) < 1 / (1 + np.exp(-(0.3 + 0.8 * z - 0.2 * z**2)))
    s = 1 / (1 + np.exp(-z))
    for scores in (s, z):
        c = cal.Quadratic().fit(scores, y)
        assert (c.c_, c.a_, c.b_) == pytest.approx((0.3, 0.8, -0.2), abs=0.06)
        f = c.c_ + c.a_ * z + c.b_ * z**2
        assert c.calibrate(scores) == pytest.approx(1 / (1 + np.exp(-f)), abs=1e-9)


def test_beyond_the_margins_the_parabola_is_not_followed():
    c = cal.Quadratic().fit([-3.0, -1.0, 0.0, 1.0, 2.0, 5.0], [1, 0, 0, 0, 1, 1])
    ends = c.calibrate([-3.0, 5.0])
    assert c.calibrate([-1e6, 1e6]) == pytest.approx(ends, abs=1e-12)


def test_one_margin_gives_a_flat_map():
    c = cal.Quadratic(shrinkage=2.0).fit([2.0] * 4, [0, 1, 1, 1])
    assert np.ptp(c.calibrate([-9.0, 0.0, 2.0, 9.0])) == 0.0
    assert 0.5 < c.calibrate([2.0])[0] < 0.75


def test_narrow_scores_get_no_bend():
    s = 0.01 + 1e-9 * np.arange(6)
    c = cal.Quadratic().fit(s, [0, 0, 1, 0, 1, 1])
    assert c.b_ == 0.0
    assert cal.Platt().fit(s, [0, 0, 1, 0, 1, 1]).calibrate(s) == pytest.approx(
        c.calibrate(s), abs=1e-4
    )


@pytest.mark.parametrize("near", [1e-3, 1e-7, 1e-9, 1e-10, 1e-11, 0.0])
@pytest.mark.parametrize("monotone", [False, True])
def test_a_fold_of_scores_that_are_all_but_equal_shows_a_rate_and_no_slope(near, monotone):
    """Beside a score that is far away, two others are one place: no fit finds a slope there."""
    table = cal.ScoreTable.from_counts([0.0, near * 1e25, 1e25], [1, 1, 1], [1, 0, 0])
    c = cal.Spline(penalty="cv", knots=6, monotone=monotone).fit_table(table)
    assert np.isfinite(c.criteria_).all()
    assert c.calibrate([0.0, 1e25]).max() < 0.6
