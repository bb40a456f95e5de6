"""ELiTE: optimal, certified, averaged as stated, and at home on awkward scores."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.losses import logit
from calibrant.methods.near_isotonic import elite
from calibrant.methods.near_isotonic._kernel_paper import curvatures, fused, fused_lambda
from calibrant.methods.near_isotonic.elite import Curves, FusedPoints, TrendPoints
from strategies import REAL, rows
from twins import trend as naive

FALLS = ("free", "priced", "forbidden")


def made(n, seed=0, weights=False):
    """Points that wiggle: x on [0, 1], w, z."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(n) ** 2)
    x = (x - x[0]) / (x[-1] - x[0])
    w = rng.random(n) * 5 + 0.1 if weights else rng.integers(1, 4, n).astype(float)
    z = rng.binomial(4, 0.5 + 0.4 * np.sin(7 * x)) / 4
    return x, w, z


def values(line, x):
    return np.interp(x, x[line.at], line.value)


@pytest.mark.parametrize("mu", [0.0, 0.3, 3.0, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_lines_are_those_of_an_independent_convex_solver(mu, seed):
    x, w, z = made(int(10 + 12 * seed), seed, weights=seed % 2 == 1)
    points = TrendPoints(x, w, z)
    top, line = points.largest_lambda(mu), None
    for lam in top * np.array([1.1, 0.7, 0.1, 1e-2, 1e-3, 1e-4]):
        line = points.best_fit(lam, mu, line, 1e-9)
        p, twin = values(line, x), naive.solve(x, w, z, lam, mu)
        ours, theirs = (naive.objective(x, w, z, lam, mu, v) for v in (p, twin))
        assert line.gap <= 1e-8
        assert ours <= theirs * (1 + 1e-7) + 1e-9
        # the objective is strongly convex: what the twin loses says how far off it may be
        assert theirs - ours <= 2e-5 * theirs + 1e-8
        assert 0.5 * (w * (p - twin) ** 2).sum() <= theirs - ours + 1e-6 * theirs
        if np.isinf(mu):
            assert np.diff(p).min() >= -1e-12


@given(data=rows(weight=REAL, min_size=3, max_size=60, both_classes=True), level=st.floats(0, 1))
def test_the_gap_is_what_the_residuals_say(data, level):
    s, y, w = data
    table = cal.ScoreTable.from_arrays(s, y, w)
    cells = elite.TrendCells.of(table.scores, table)
    if len(cells.place) < 3:
        return
    weight = cells.n0 + cells.n1
    x, z = cells.place, cells.n1 / weight
    points = TrendPoints(x, weight, z)
    top = points.largest_lambda(0.0)
    assert top == pytest.approx(naive.steepest(x, weight, z), rel=1e-6, abs=1e-11 * weight.sum())
    if top <= 1e-9 * weight.sum():
        return
    lam = top * 10 ** (-4 * level)
    line = points.best_fit(lam, 0.0, None, 1e-9)
    p = values(line, x)
    assert line.gap <= 1e-7
    # prices summed up from residuals are as good as p only where residuals are not rounding
    if naive.objective(x, weight, z, lam, 0.0, p) > 1e-2 * weight.sum():
        assert naive.dual_gap(x, weight, z, lam, p) <= 1e-6


def test_blocks_and_points_give_the_same_line():
    """Long stretches are passed over block by block: the same result as on a few points."""
    _, w, z = made(5000, 3)
    x = np.linspace(0, 1, 5000)  # so that the twin's second differences are not rounding
    points = TrendPoints(x, w, z)
    for share in (0.5, 0.05, 0.005):
        lam = share * points.largest_lambda(0.0)
        line = points.best_fit(lam, 0.0, None, 1e-10)
        assert naive.dual_gap(x, w, z, lam, values(line, x)) <= 1e-8


def reference(shared, name):
    path = shared / "golden" / name
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize(
    "name",
    ["c01_n20", "c02_n100", "c03_n500", "c05_ties_n500", "c09_clustered_n800", "c11_nonmono_n1000",
     "e01_separable_n60", "e03_n5", "e05_antimono_n100", "s003_lin_r0", "s003_quad_r0",
     "sample_quad"],
)  # fmt: skip
def test_reference_path(shared, name):
    """λ_max to 1e-8 of the reference, and at each of its λ an objective not above its own."""
    golden = reference(shared, f"{name}.json.gz")
    theirs = golden["elite"]["sorted"]
    x, y, w = (np.array(theirs[key], dtype=float) for key in ("x", "y", "weights"))
    place, width = (x - x[0]) / (x[-1] - x[0]), x[-1] - x[0]
    points = TrendPoints(place, w, y)
    assert points.largest_lambda(0.0) * width == pytest.approx(theirs["lambda"][0], rel=1e-8)
    exact = golden.get("trend_filter_exact")
    line = None
    for k, lam in enumerate(exact["lambda_"] if exact else theirs["lambda"]):
        line = points.best_fit(lam / width, 0.0, line, 1e-9)
        assert line.gap <= 1e-7
        ours = naive.objective(place, w, y, lam / width, 0.0, values(line, place))
        if exact:
            assert ours <= exact["obj_ref"][k] * (1 + 1e-9)
            assert ours == pytest.approx(exact["obj_exact"][k], rel=1e-6)


@pytest.mark.parametrize("falls", FALLS)
@pytest.mark.parametrize("scale", ["raw", "logit"])
def test_the_map_is_the_weighted_average_of_the_models(falls, scale):
    rng = np.random.default_rng(5)
    s = rng.random(400)
    y = rng.random(400) < 0.5 + 0.4 * np.sin(5 * s)
    c = cal.ELiTE(falls=falls, scale=scale).fit(s, y)
    assert len(c.models_) == len(c.weights_) == len(c.lambdas_) == len(c.mus_) == len(c.df_)
    assert c.weights_.sum() == pytest.approx(1)
    at = np.concatenate((s, rng.random(200), [0.0, 1.0]))
    average = sum(w * m(at) for w, m in zip(c.weights_, c.models_, strict=True))
    assert np.abs(c.calibrate(at) - average).max() < 1e-12
    p = np.array([m(s) for m in c.models_])
    logs = np.where(y, np.log(p), np.log1p(-p)).sum(axis=1)
    assert np.abs(c.log_likelihoods_ - logs).max() < 1e-7
    room = 400 - c.df_ - 1
    aicc = 2 * c.df_ - 2 * logs + 2 * c.df_ * (c.df_ + 1) / room
    assert np.abs(c.criteria_ - aicc).max() < 1e-6
    share = np.exp(-0.5 * (aicc - aicc.min()))
    assert np.abs(c.weights_ - share / share.sum()).max() < 1e-6
    if falls == "forbidden":
        assert np.diff(c.calibrate(np.sort(at))).min() >= 0


def test_degrees_of_freedom_are_two_and_the_bends():
    rng = np.random.default_rng(6)
    s = np.sort(rng.random(300))
    y = rng.random(300) < 0.5 + 0.4 * np.sin(6 * s)
    c = cal.ELiTE(clip="paper", scale="raw").fit(s, y)
    assert c.df_[0] == 2
    for model, df in zip(c.models_, c.df_, strict=True):
        inside = (model.left > 0) & (model.left < 1)
        if inside.all():  # no knots from clipping
            slopes = np.diff(model.left) / np.diff(model.x)
            assert df == 2 + np.count_nonzero(np.abs(np.diff(slopes)) > 1e-7)
    assert (np.diff(c.df_) >= -3).all()  # bends come far more often than they go


RUNS = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from((0.0, 0.5, 1.0))), min_size=2, max_size=9
)


def chord_distances(x, p):
    """How far the middle one of every three points is from the line through the other two."""
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    return np.abs(p[1:-1] - p[:-2] * (1 - share) - p[2:] * share)


@given(runs=RUNS, level=st.integers(1, 49), mu=st.sampled_from([0.0, 0.3, np.inf]))
@example(runs=[(14, 0.0), (6, 1.0), (1, 0.0), (5, 1.0), (1, 0.0), (7, 1.0)], level=31, mu=0.0)
@example(runs=[(10, 0.0), (1, 1.0), (9, 0.0), (10, 1.0)], level=19, mu=0.0)
def test_a_point_without_a_bend_is_no_degree_of_freedom(runs, level, mu):
    """Runs of equal rates are fitted exactly by lines that need no bend inside."""
    z = np.repeat([rate for _, rate in runs], [size for size, _ in runs])
    assume(len(z) >= 4)
    x, w = np.linspace(0, 1, len(z)), np.ones(len(z))
    points = TrendPoints(x, w, z)
    top = points.largest_lambda(mu)
    assume(top > 1e-6)
    lam, line = top, None
    for k in range(level + 1):  # as `ELiTE` does, from one λ to the next
        lam = top * 1e-4 ** (k / 49)
        line = points.best_fit(lam, mu, line, 1e-8)
    away, fall = chord_distances(x, values(line, x)), np.diff(values(line, x))
    bends, flats = away > 1e-9, np.abs(fall) <= 1e-9 if mu else np.zeros(len(fall), dtype=bool)
    runs_of_flat = np.count_nonzero(np.diff(np.append(0, flats)) > 0)
    assert line.df == 2 + bends.sum() - runs_of_flat
    p = naive.solve(x, w, z, lam, mu)
    assert not (bends & (chord_distances(x, p) < 1e-9)).any()
    assert not (~bends & (chord_distances(x, p) > 1e-4)).any()


@pytest.mark.parametrize(("seed", "level"), [(22, 26), (30, 27)])
def test_a_candidate_without_a_bend_does_not_hide_behind_its_neighbour(seed, level):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(300))
    x = (x - x[0]) / (x[-1] - x[0])
    z = (rng.random(300) < np.clip(3 * x - 1, 0, 1)).astype(float)
    points = TrendPoints(
        x, rng.integers(1, 3, 300).astype(float) if seed == 30 else np.ones(300), z
    )
    line = None
    for k in range(level + 1):
        line = points.best_fit(points.largest_lambda(0.0) * 1e-4 ** (k / 49), 0.0, line, 1e-8)
    assert line.df == 2 + np.count_nonzero(chord_distances(x, values(line, x)) > 1e-9)


def test_a_price_on_falls_lies_between_none_and_forbidding_them():
    rng = np.random.default_rng(7)
    s = np.sort(rng.random(500))
    y = rng.random(500) < 0.5 + 0.3 * np.sin(9 * s)
    falls = []
    for mu in (1e-9, 0.3, 1.0, 3.0, 1e6):
        c = cal.ELiTE(falls="priced", mu=mu, criterion="aic", scale="raw").fit(s, y)
        line = c.models_[30](s)
        falls.append(np.maximum(-np.diff(line), 0).sum())
    assert (np.diff(falls) <= 1e-6).all()
    assert falls[0] > 0.1
    assert falls[-1] < 1e-9
    free, near, strict, hard = (
        cal.ELiTE(falls=falls, mu=mu, scale="raw").fit(s, y)
        for falls, mu in (("free", 1.0), ("priced", 1e-9), ("forbidden", 1.0), ("priced", 1e6))
    )
    assert np.abs(free.models_[30](s) - near.models_[30](s)).max() < 1e-5
    assert np.abs(strict.models_[30](s) - hard.models_[30](s)).max() < 1e-5


def test_lines_in_the_logit():
    rng = np.random.default_rng(8)
    s = 1 / (1 + np.exp(-rng.normal(0, 4, 500)))
    y = rng.random(500) < s**2
    on_logit = cal.ELiTE(scale="logit").fit(s, y)
    on_margin = cal.ELiTE().fit(logit(s), y)
    assert np.abs(on_logit.calibrate(s) - on_margin.calibrate(logit(s))).max() < 1e-9
    assert cal.ELiTE(scale="auto").fit(s, y).map_ == on_logit.map_
    assert cal.ELiTE(scale="auto").fit(logit(s), y).map_ == on_margin.map_


@pytest.mark.parametrize("falls", FALLS)
@pytest.mark.parametrize(
    "scores",
    [
        np.concatenate((np.zeros(40), np.ones(40), [0.5])),
        np.concatenate((1e-12 * np.arange(40), 1 - 1e-12 * np.arange(40))),
        10.0 ** -np.linspace(0, 12, 81),
        np.concatenate((np.linspace(0, 1e-9, 40), np.linspace(0, 1, 41))),
        np.array([1e-300, 1e-200, 1e-100, 1.0] * 20),
        np.array([-1.7e308, 1.7e308, 0.0, 5e-324] * 20),
        np.linspace(0, 1e-320, 81),
    ],
    ids=["ends", "clusters", "decades", "two scales", "tiny", "huge", "subnormal"],
)
def test_awkward_scores(falls, scores):
    rng = np.random.default_rng(9)
    y = rng.random(len(scores)) < 0.3 + 0.4 * (scores > np.median(scores))
    n = len(scores)
    for scale in ("raw", "auto"):  # a gap above 1e-7 would warn, and so fail
        p = cal.ELiTE(falls=falls, scale=scale).fit(scores, y).calibrate(np.sort(scores))
        assert 1 / (n + 2) - 1e-15 <= p.min()
        assert p.max() <= 1 - 1 / (n + 2) + 1e-15
        assert abs(p.mean() - y.mean()) < 0.1


def test_few_scores():
    assert cal.ELiTE().fit([0.3] * 8, [0, 1, 1, 1] * 2).calibrate([0.0, 1.0]).tolist() == [0.75] * 2
    c = cal.ELiTE(scale="raw").fit([0.2] * 20 + [0.6] * 20, [0] * 15 + [1] * 5 + [0] * 4 + [1] * 16)
    assert np.allclose(c.calibrate([0.0, 0.2, 0.4, 0.6, 0.9]), [0.25, 0.25, 0.525, 0.8, 0.8])
    one = cal.ELiTE(classes=[0, 1]).fit(np.linspace(0, 1, 18), np.zeros(18))
    assert np.allclose(one.calibrate([0.5]), 1 / 20)
    two = cal.ELiTE(scale="raw").fit([0.1, 0.9], [0, 1])
    assert np.allclose(two.calibrate([0.0, 0.5, 1.0]), [0.25, 0.5, 0.75])


def test_ends_drawn_on():
    s = np.linspace(0.2, 0.8, 200)
    y = np.random.default_rng(1).random(200) < s
    flat, drawn = (cal.ELiTE(tails=tails, scale="raw").fit(s, y) for tails in ("flat", "linear"))
    inside = np.linspace(0.2, 0.8, 50)
    assert np.abs(flat.calibrate(inside) - drawn.calibrate(inside)).max() < 1e-12
    assert flat.calibrate([0.0]) == flat.calibrate([0.2])
    assert drawn.calibrate([0.1]) < drawn.calibrate([0.2])
    assert np.allclose(drawn.calibrate([-9.0, 9.0], on_range="allow"), [1 / 202, 1 - 1 / 202])


def test_choice_of_models_and_criterion():
    rng = np.random.default_rng(2)
    s = rng.random(600)
    y = rng.random(600) < s**2
    every = cal.ELiTE().fit(s, y)
    best = cal.ELiTE(models="best").fit(s, y)
    assert best.map_(s).tolist() == best.models_[int(np.argmin(every.criteria_))](s).tolist()
    elbow = cal.ELiTE(models="elbow").fit(s, y)
    assert 1 <= np.count_nonzero(elbow.weights_) <= np.count_nonzero(every.weights_)
    bic = cal.ELiTE(criterion="bic").fit(s, y)
    assert bic.weights_ @ bic.df_ <= every.weights_ @ every.df_


def test_impossible_models_are_left_out_without_clipping():
    s = np.concatenate((np.linspace(0, 0.4, 50), np.linspace(0.6, 1, 50)))
    y = (s > 0.5).astype(int)
    y[0] = 1
    c = cal.ELiTE(clip="paper", scale="raw").fit(s, y)
    assert np.isfinite(c.log_likelihoods_).any()
    assert (c.weights_[np.isinf(c.log_likelihoods_)] == 0).all()


def test_a_gap_left_open_is_told(monkeypatch):
    monkeypatch.setattr(elite, "WARN", 0.0)
    rng = np.random.default_rng(0)
    s = rng.random(100)
    with pytest.warns(cal.errors.CalibrationWarning, match="relative duality gap of a model is"):
        cal.ELiTE().fit(s, rng.random(100) < s)


# --- steps and parabolas ------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 0.1, 1.0, np.inf])
def test_steps_are_those_of_an_independent_convex_solver(mu):
    rng = np.random.default_rng(0)
    for case in range(40):
        n = int(rng.integers(2, 40))
        w = rng.random(n) * 3 + 0.1
        z = rng.random(n) if case % 2 else (rng.random(n) < 0.5).astype(float)
        lam = 10 ** rng.uniform(-3, 1)
        p, twin = fused(w, z, lam, lam + mu), naive.steps(w, z, lam, lam + mu)
        ours, theirs = (naive.steps_objective(w, z, lam, lam + mu, v) for v in (p, twin))
        assert ours <= theirs * (1 + 1e-9) + 1e-12
        assert np.isfinite(mu) or np.diff(p).min() >= 0
        top = fused_lambda(w, z, mu)
        assert np.ptp(fused(w, z, top * 1.001 + 1e-9, top * 1.001 + 1e-9 + mu)) < 1e-9
        assert top < 1e-9 or np.ptp(fused(w, z, top * 0.99, top * 0.99 + mu)) > 0


def test_a_step_of_rounding_is_no_degree_of_freedom():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        w, z = rng.integers(1, 5, 40).astype(float), rng.choice([0.0, 0.5, 1.0], 40)
        points = FusedPoints(np.linspace(0, 1, 40), w, z)
        for mu in (0.0, 0.5, np.inf):
            top = max(points.largest_lambda(mu), 0.1)
            for lam in top * np.geomspace(1, 1e-4, 9):
                fit = points.best_fit(lam, mu, None, 0.0)
                assert fit.df == 1 + np.count_nonzero(np.abs(np.diff(fit.value)) > 1e-9)
                assert np.abs(points.values(fit) - fused(w, z, lam, lam + mu)).max() < 1e-11


@pytest.mark.parametrize("n", [4, 8, 20, 40])
def test_parabolas_are_those_of_an_independent_convex_solver(n):
    x, w, z = made(n, n)
    x = np.sqrt(x)
    curves = Curves(x, w, z)
    top, fit = curves.largest_lambda(0.0), None
    for lam in top * np.array([1.01, 0.5, 0.1, 1e-2, 1e-3]):
        fit = curves.best_fit(lam, 0.0, fit, 1e-9)
        p = curves.values(fit)
        penalty = lam * np.abs(np.diff(curvatures(x[fit.at], fit.value))).sum()
        twin, theirs = naive.curve(x, w, z, lam)
        ours = 0.5 * (w * (p - z) ** 2).sum() + penalty
        assert fit.gap <= 1e-8
        assert ours <= theirs * (1 + 1e-7) + 1e-9
        # the objective is strongly convex: what the twin loses says how far off it may be
        assert 0.5 * (w * (p - twin) ** 2).sum() <= theirs - ours + 1e-6 * theirs
    assert curves.best_fit(1.01 * top, 0.0, None, 1e-9).df == 3
    place, value = curves.polygon(fit, 1e-6)
    assert np.abs(np.interp(x, place, value) - p).max() <= 1e-6


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_degrees(degree):
    rng = np.random.default_rng(4)
    s = np.sort(rng.random(2000))
    truth = 0.5 + 0.4 * np.sin(5 * s)
    y = rng.random(2000) < truth
    c = cal.ELiTE(degree=degree, criterion="bic" if degree == 0 else "aicc").fit(s, y)
    assert c.df_[0] == degree + 1
    assert np.abs(c.calibrate(s) - truth).mean() < 0.05
    average = sum(w * m(s) for w, m in zip(c.weights_, c.models_, strict=True))
    assert np.abs(c.calibrate(s) - average).max() < (1e-12 if degree < 2 else 5e-6)
    assert c.map_.is_step == (degree == 0)
    tiny = cal.ELiTE(degree=degree).fit([0.1, 0.9], [0, 1])  # as high a degree as two points bear
    assert np.isfinite(tiny.calibrate([0.0, 0.5, 1.0])).all()


def test_parabolas_know_no_price_on_falls():
    with pytest.raises(
        cal.errors.ParameterError, match="falls of ELiTE must be 'free' with degree=2"
    ):
        cal.ELiTE(degree=2, falls="priced").fit([0.1, 0.9], [0, 1])


def test_strict_steps_are_isotonic_regression_shrunk():
    """With a vanishing λ, steps that may not fall are the isotonic fit."""
    rng = np.random.default_rng(3)
    s = rng.random(300)
    y = rng.random(300) < s
    table = cal.ScoreTable.from_arrays(s, y)
    p = fused(table.weight, table.rate, 1e-12, np.inf)
    assert np.abs(p - cal.Isotonic().fit(s, y).calibrate(table.scores)).max() < 1e-9


# --- found in review ----------------------------------------------------------------------------


def test_a_constant_model_averages_with_steps_of_the_logit():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    c = cal.ELiTE(degree=0, scale="logit", criterion="bic").fit(p, rng.random(300) < 0.3)
    assert np.isfinite(c.calibrate(p)).all()


def test_a_line_that_rises_a_little_is_not_taken_for_flat():
    table = cal.ScoreTable.from_counts(
        [0, 0.23, 0.49, 1.0], [63463.0, 102379.0, 30.0, 0.0], [0, 0, 0, 3.4e-4]
    )
    free, strict = (
        cal.ELiTE(falls=m, n_lambdas=5).fit_table(table).models_[-1]([1.0])
        for m in ("free", "forbidden")
    )
    assert abs(free - strict) < 1e-3


@pytest.mark.parametrize("mu", [0.5, np.inf])
def test_the_gap_is_that_of_the_line_returned(mu):
    x = np.arange(21) / 20
    z = np.array([int(d) for d in "000001001001011111111"], dtype=float)
    w = np.ones(21)
    points = TrendPoints(x, w, z)
    line = None
    for share in (1, 0.3, 0.05, 0.003):
        lam = share * points.largest_lambda(mu)
        line = points.best_fit(lam, mu, line, 1e-8)
        best = naive.objective(x, w, z, lam, mu, naive.solve(x, w, z, lam, mu))
        ours = naive.objective(x, w, z, lam, mu, values(line, x))
        assert ours <= best * (1 + 1e-7)
        assert line.gap <= 1e-7


def test_models_that_are_one_count_once():
    rng = np.random.default_rng(1)
    s = rng.random(2000)
    c = cal.ELiTE(falls="forbidden").fit(s, rng.random(2000) > s)  # falling: a constant is best
    assert len(c.models_) < 5
    assert c.df_[0] == 1


def test_parabolas_over_subnormal_scores():
    s = np.arange(4) * 5e-324
    c = cal.ELiTE(degree=2, scale="raw").fit(s, [1, 1, 0, 1])
    average = sum(w * m(s) for w, m in zip(c.weights_, c.models_, strict=True))
    assert np.abs(c.calibrate(s) - average).max() < 1e-5
