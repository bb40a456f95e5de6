"""The near-isotonic path and its ensemble: against rational arithmetic, a convex solver, the
optimality conditions, the authors' figures, and the theory of ROC curves."""

from __future__ import annotations

import gzip
import json
import math
import pickle

import clarabel
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

import calibrant as cal
from calibrant.methods.near_isotonic._kernel import (
    bins_at,
    log_likelihoods,
    merge_path,
    pool_equal,
)
from calibrant.methods.near_isotonic.enir import part_near_best
from strategies import REAL, WHOLE, rows
from twins import near_isotonic as naive


def random_cells(rng, most):
    """Weights of negatives and positives: labels, small counts, eighths, or real numbers."""
    size, kind = int(rng.integers(1, most + 1)), int(rng.integers(4))
    if kind == 0:
        n1 = (rng.random(size) < rng.random()).astype(float)
        return 1 - n1, n1
    if kind == 1:
        return rng.random(size) + 0.01, rng.random(size) * (rng.random(size) < 0.7)
    n0, n1 = rng.integers(0, 4 * kind - 4, (2, size)) / (1 if kind == 2 else 8)
    n0[n0 + n1 == 0] = 1.0
    return n0, n1


def table_of(n0, n1):
    return cal.ScoreTable.from_counts(np.arange(len(n0)), n0, n1)


def noisy(n, seed=0, shape=lambda s: 0.2 + 2.4 * (s - 0.5) ** 2):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < shape(s)).astype(int)


# --- the path -------------------------------------------------------------------------------------


def agrees(n0, n1):
    path = cal.calibrators.near_isotonic_path(table_of(n0, n1))
    begin, models = naive.path(n0, n1)
    if not models:
        assert path.lambdas.tolist() == [0.0]
        assert path.df.tolist() == [len(begin)]
        assert np.abs(path.at(0) - naive.values(begin)).max() < 1e-12
        return
    assert len(path) == len(models)
    lambdas = np.array([float(value) for value, _ in models])
    assert np.allclose(path.lambdas, lambdas, rtol=1e-12, atol=0)
    assert path.df.tolist() == [len(bins) for _, bins in models]
    for value, bins in [models[0], models[len(models) // 2], models[-1]]:
        assert np.abs(path.at(float(value) * (1 + 1e-15)) - naive.values(bins)).max() < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_the_path_equals_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        agrees(*random_cells(rng, 30))


@pytest.mark.parametrize("seed", range(4))
def test_long_paths_equal_rational_arithmetic(seed):
    rng = np.random.default_rng(100 + seed)
    labels = (rng.random(200) < 0.2 + 0.6 * rng.random()).astype(float)
    agrees(1 - labels, labels)
    agrees(rng.integers(1, 5, 120) / 4, rng.integers(0, 9, 120) / 8)


@given(data=st.one_of(rows(weight=WHOLE), rows(weight=REAL)))
def test_the_path_of_any_table(data):
    s, y, w = data
    table = cal.ScoreTable.from_arrays(s, y, w, classes=[0, 1])
    path = cal.calibrators.near_isotonic_path(table)
    assert (np.diff(path.lambdas) > 0).all()
    assert (np.diff(path.df) < 0).all()
    assert np.array_equal(path.at(0), np.clip(path.at(0), 0, 1))
    isotonic = cal.Isotonic().fit_table(table).calibrate(table.scores)
    for beyond in (path.lambdas[-1], 10 * path.lambdas[-1] + 1, math.inf):
        assert np.abs(path.at(beyond) - isotonic).max() < 1e-9
    assert len(path.parent) <= 2 * len(table) - 1


@given(data=st.one_of(rows(weight=WHOLE), rows(weight=REAL)), share=st.floats(0, 1.2))
def test_optimality_conditions(data, share):
    """The running sums u of w(z − p) are the duals: 0 where p rises and λ where it falls."""
    s, y, w = data
    table = cal.ScoreTable.from_arrays(s, y, w, classes=[0, 1])
    path = cal.calibrators.near_isotonic_path(table)
    nearest = path.lambdas[int(np.argmin(np.abs(path.lambdas - share * path.lambdas[-1])))]
    for value in (share * path.lambdas[-1], nearest):
        p = path.at(value)
        u = np.cumsum(table.weight * (table.rate - p))
        close = 1e-9 * max(1.0, table.total)
        assert abs(u[-1]) < close
        assert (u[:-1] > -close).all()
        assert (u[:-1] < value + close).all()
        change = np.diff(p)
        assert np.abs(u[:-1][change > 1e-9]).max(initial=0.0) < close
        assert np.abs(u[:-1][change < -1e-9] - value).max(initial=0.0) < close


def solver(rate, weight, lambda_):
    """The same problem as a quadratic programme in (p, t): t ≥ p_i − p_{i+1}, t ≥ 0."""
    n = len(rate)
    quadratic = sparse.diags(np.append(weight, np.zeros(n - 1))).tocsc()
    linear = np.append(-weight * rate, np.full(n - 1, lambda_))
    fall = sparse.diags([np.ones(n - 1), -np.ones(n - 1)], [0, 1], shape=(n - 1, n))
    above = sparse.hstack([fall, -sparse.eye(n - 1)])
    positive = sparse.hstack([sparse.csc_matrix((n - 1, n)), -sparse.eye(n - 1)])
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    problem = clarabel.DefaultSolver(
        quadratic,
        linear,
        sparse.vstack([above, positive]).tocsc(),
        np.zeros(2 * (n - 1)),
        [clarabel.NonnegativeConeT(2 * (n - 1))],
        options,
    )
    return np.array(problem.solve().x)[:n]


@pytest.mark.parametrize("seed", range(6))
def test_a_convex_solver_agrees(seed):
    rng = np.random.default_rng(seed)
    n0, n1 = rng.random((2, 40)) * rng.integers(1, 5, 40)
    table = table_of(n0, n1)
    path = cal.calibrators.near_isotonic_path(table)
    for share in (0.01, 0.1, 0.4, 1.1):
        value = share * path.lambdas[-1]
        assert np.abs(path.at(value) - solver(table.rate, table.weight, value)).max() < 1e-6


def test_the_fit_at_a_single_lambda_is_a_point_of_the_path():
    rng = np.random.default_rng(3)
    for _ in range(200):
        start = pool_equal(*random_cells(rng, 300))
        tree = merge_path(start)
        below = bins_at(start, 0.3 * tree.lambdas[-1] * rng.random() + 1e-9)
        bins = bins_at(below, below.lambda_ + tree.lambdas[-1] * rng.random())
        t = np.searchsorted(tree.lambdas, bins.lambda_, side="right") - 1
        alive = np.flatnonzero((tree.birth <= t) & (t < tree.death))
        alive = alive[np.argsort(tree.first[alive])]
        assert np.array_equal(tree.first[alive], bins.first)
        assert np.array_equal(tree.d[alive], bins.d)
        assert np.allclose(tree.s[alive], bins.s)


def test_likelihoods_of_all_models_at_once():
    rng = np.random.default_rng(4)
    tables = [random_cells(rng, 1500) for _ in range(30)]
    rare = (rng.random(4000) < 0.01).astype(float)
    tables += [(1 - rare, rare), (1 - rare + 1e-3, rare * rng.random(4000))]
    for n0, n1 in tables:
        path = cal.calibrators.near_isotonic_path(table_of(n0, n1))
        chosen = np.unique(np.linspace(0, len(path) - 1, 40).astype(int))
        expected = [log_likelihood(path.at(path.lambdas[t]), n0, n1) for t in chosen]
        scale = 1 + np.abs(expected).max()
        assert np.abs(path.log_likelihood[chosen] - expected).max() < 1e-12 * scale
        assert (np.diff(path.log_likelihood) < 1e-9 * scale).all()
        bic = -2 * path.log_likelihood + path.df * np.log((n0 + n1).sum())
        assert np.array_equal(path.bic, bic)
        some = log_likelihoods(
            path.positive,
            path.weight,
            path.direction,
            np.searchsorted(chosen, path.birth),
            np.searchsorted(chosen, path.death),
            path.lambdas[chosen],
        )
        assert np.abs(some - expected).max() < 1e-12 * scale


def log_likelihood(p, n0, n1):
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            np.where(n1 > 0, n1 * np.log(p), 0).sum() + np.where(n0 > 0, n0 * np.log1p(-p), 0).sum()
        )


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 7.0, 1e-250, 1e250])
def test_equal_weights_only_scale_the_path(weight):
    rng = np.random.default_rng(9)
    labels = (rng.random(800) < 0.4).astype(float)
    plain = cal.calibrators.near_isotonic_path(table_of(1 - labels, labels))
    scaled = cal.calibrators.near_isotonic_path(table_of(weight * (1 - labels), weight * labels))
    assert np.allclose(scaled.lambdas, weight * plain.lambdas, rtol=1e-11, atol=0)
    assert np.array_equal(scaled.df, plain.df)
    assert np.abs(scaled.at(weight * 0.7) - plain.at(0.7)).max() < 1e-9


def test_paths_are_values():
    s, y = noisy(300)
    table = cal.ScoreTable.from_arrays(s, y)
    path = cal.calibrators.near_isotonic_path(table)
    again = pickle.loads(pickle.dumps(path))
    assert path == again
    assert hash(path) == hash(again)
    assert path != cal.calibrators.near_isotonic_path(cal.ScoreTable.from_arrays(s, 1 - y))
    assert repr(path).startswith(f"NearIsotonicPath({len(path)} fits of 300 scores, λ from ")
    for array in (path.lambdas, again.positive, path.bic, path.log_likelihood):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("wrong", [None, [0.1, 0.2], np.zeros(3), "table"])
def test_only_tables_have_a_path(wrong):
    with pytest.raises(cal.errors.InputError, match="table must be a ScoreTable, but"):
        cal.calibrators.near_isotonic_path(wrong)


@pytest.mark.parametrize("wrong", [-1, math.nan, "1", None, True])
def test_lambda_is_a_number(wrong):
    path = cal.calibrators.near_isotonic_path(table_of(np.ones(3), np.ones(3)))
    with pytest.raises(cal.errors.InputError, match="lambda_ must be a number of at least 0"):
        path.at(wrong)
    with pytest.raises(cal.errors.InputError, match="at least one score"):
        cal.calibrators.near_isotonic_path(cal.ScoreTable.empty())


# --- the ensemble ---------------------------------------------------------------------------------


def go_through_all(table, pseudo=0.0, criterion="bic", models="all"):
    """Every model of the whole path, scored and averaged one by one: O(N·T)."""
    path = cal.calibrators.near_isotonic_path(table)
    fits = [path.at(value) for value in path.lambdas]
    n0, n1 = table.negative, table.positive
    scores = [
        naive.criterion(criterion, log_likelihood(p, n0, n1), int(df), table.total)
        for p, df in zip(fits, path.df, strict=True)
    ]
    result = np.zeros(len(table))
    for weight, p in zip(naive.choose(scores, models), fits, strict=True):
        starts = np.append(0, np.flatnonzero(np.abs(np.diff(p)) > 1e-12) + 1)
        total = np.add.reduceat(table.weight, starts)
        sums = np.add.reduceat(table.weight * p, starts)
        length = np.diff(np.append(starts, len(p)))
        result += weight * np.repeat((sums + pseudo) / (total + 2 * pseudo), length)
    return result, len(path)


SHAPES = {
    "bowl": lambda s: 0.2 + 2.4 * (s - 0.5) ** 2,
    "rising": lambda s: s**2,
    "falling": lambda s: 0.9 - 0.8 * s,
    "noise": lambda s: np.full(len(s), 0.3),
    "rare": lambda s: 0.02 * s,
}


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", ["unit", "ties", "real", "heavy"])
def test_skipping_models_changes_nothing(shape, weighted):
    rng = np.random.default_rng(len(shape) + 10 * len(weighted))
    s = rng.random(2500)
    s = np.round(s, 3) if weighted == "ties" else s
    y = (rng.random(2500) < SHAPES[shape](s)).astype(int)
    real = {"real": rng.exponential(size=2500), "heavy": np.exp(rng.normal(0, 3, 2500))}
    table = cal.ScoreTable.from_arrays(s, y, real.get(weighted))
    for options, arguments in [
        ({}, {"pseudo": 0.5}),
        ({"variant": "paper"}, {}),
        ({"criterion": "aicc", "smoothing": "none"}, {"criterion": "aicc"}),
        ({"criterion": "aic", "smoothing": "laplace"}, {"criterion": "aic", "pseudo": 1}),
        ({"models": "best", "variant": "paper"}, {"models": "best"}),
    ]:
        c = cal.ENIR(**options, weights="counts").fit_table(table)
        expected, count = go_through_all(table, **arguments)
        assert np.abs(c.calibrate(table.scores) - expected).max() < 1e-9
        assert c.weights_.shape == c.path_.lambdas.shape
        assert c.weights_.sum() == pytest.approx(1.0)
        assert c.n_models_scored_ <= count
        if not options and shape != "rare":
            assert c.n_models_scored_ < count / 2


@pytest.mark.parametrize("seed", range(10))
def test_the_ensemble_equals_its_rational_twin(seed):
    rng = np.random.default_rng(50 + seed)
    for _ in range(150):
        n0, n1 = random_cells(rng, 16)
        ours = cal.ENIR(variant="paper").fit_table(table_of(n0, n1)).calibrate(np.arange(len(n0)))
        assert np.abs(ours - naive.average(n0.tolist(), n1.tolist())).max() < 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_skipping_equals_the_rational_twin(seed):
    s, y = noisy(900, seed)
    c = cal.ENIR(variant="paper").fit(s, y)
    assert c.path_.start > 0, "too few bins to skip any"
    table = cal.ScoreTable.from_arrays(s, y)
    expected = naive.average(table.negative.tolist(), table.positive.tolist(), exact=True)
    assert np.abs(c.calibrate(table.scores) - expected).max() < 1e-9


@pytest.mark.parametrize("block", [1, 2, 7, 20])
@pytest.mark.parametrize("uneven", [False, True])
def test_many_bins_that_meet_at_once(block, uneven):
    """Here the saturated fit at λ = 0, which is no model, has a better BIC than any model."""
    length = np.arange(4000) // block % (3 if uneven else 1) + block
    labels = np.repeat(np.arange(4000) % 2, length)[:4000]
    table = table_of(1.0 - labels, labels.astype(float))
    c = cal.ENIR(smoothing="laplace").fit_table(table)
    path = cal.calibrators.near_isotonic_path(table)
    assert np.isin(c.path_.lambdas, path.lambdas).all()
    assert np.abs(c.calibrate(table.scores) - go_through_all(table, pseudo=1)[0]).max() < 1e-9


def test_the_part_that_matters_holds_every_good_model():
    def criterion(log, df):
        return -2 * log + df * math.log(total)

    rng = np.random.default_rng(8)
    narrower = 0
    for trial in range(40):
        n = int(rng.integers(1500, 4000))
        p = 0.5 + 0.4 * np.sin(rng.random() * 20 * np.arange(n) / n)
        w = np.exp(rng.normal(0, trial % 4, n))
        n1 = w * (rng.random(n) < p)
        total, start = w.sum(), pool_equal(w - n1, n1)
        part = part_near_best(start, criterion, 30.0)
        path = cal.calibrators.near_isotonic_path(table_of(w - n1, n1))
        good = path.lambdas[path.bic <= path.bic.min() + 30.0]
        assert part.begin.lambda_ <= good[0]
        assert good[-1] <= part.end
        assert part.best >= path.bic.min() - 1e-6
        narrower += part.begin.lambda_ > 0 or part.end < np.inf
    assert narrower > 30


def test_the_path_of_a_large_fit_is_a_part():
    s, y = noisy(20_000, shape=SHAPES["rising"])
    table = cal.ScoreTable.from_arrays(s, y)
    c, path = cal.ENIR().fit(s, y), cal.calibrators.near_isotonic_path(table)
    inner = c.path_
    assert inner.start > path.lambdas[0]
    assert path.start == 0
    assert np.isin(inner.lambdas, path.lambdas).all()
    middle = (inner.lambdas[0] + inner.lambdas[-1]) / 2
    assert np.abs(inner.at(middle) - path.at(middle)).max() < 1e-12
    with pytest.raises(cal.errors.InputError, match="near_isotonic_path"):
        inner.at(inner.start / 2)
    at = np.searchsorted(path.lambdas, inner.lambdas)
    assert np.abs(inner.bic - path.bic[at]).max() < 1e-6
    best = cal.ENIR(models="best").fit(s, y)
    assert best.path_.lambdas[best.weights_ == 1] == path.lambdas[path.bic.argmin()]
    assert sum(getattr(path, name).nbytes for name in ARRAYS) < 100 * len(table)


ARRAYS = ("lambdas", "df", "first", "positive", "weight", "direction", "birth", "death", "parent")


def test_weights_of_enormous_range():
    rng = np.random.default_rng(2)
    s, y = rng.random(3000), rng.integers(0, 2, 3000)
    for w in (np.exp(rng.normal(0, 40, 3000)), 10.0 ** rng.integers(-200, 100, 3000)):
        for options in ({}, {"variant": "paper"}, {"criterion": "aicc"}, {"variant": "authors"}):
            p = cal.ENIR(**options).fit(s, y, w).calibrate(s)
            assert np.isfinite(p).all()
            assert ((p >= 0) & (p <= 1)).all()
    light = cal.ENIR(smoothing="none", weights="counts")
    plain = cal.ENIR(smoothing="none")
    light.fit(s, y, np.full(3000, 1e-6))  # ln N < 0: more bins are no worse
    assert light.n_models_scored_ == len(light.path_) >= plain.fit(s, y).n_models_scored_


@pytest.mark.parametrize("variant", ["default", "paper", "authors"])
def test_data_that_need_no_ensemble(variant):
    s = np.arange(60) / 60
    separable = cal.ENIR(variant=variant).fit(s, s >= 0.5)
    assert separable.path_.lambdas.tolist() == [0.0]
    assert separable.weights_.tolist() == [1.0]
    p = separable.calibrate(s)
    assert (np.diff(p) >= -1e-12).all()
    assert p[:30].max() < 0.5 < p[30:].min()
    one = cal.ENIR(variant=variant, classes=[0, 1]).fit(s, np.zeros(60)).calibrate(s)
    assert np.ptp(one[1:-1]) < 0.02
    assert one.max() < 0.03
    tied = cal.ENIR(variant=variant).fit(np.full(50, 0.3), np.arange(50) % 2).calibrate([0.1, 0.9])
    assert np.abs(tied - 0.5).max() < 0.005


def test_the_default_has_a_finite_log_loss_where_the_paper_has_not():
    rng = np.random.default_rng(1)
    infinite = 0
    for _ in range(30):
        s = rng.random(80)
        y = (rng.random(80) < s).astype(int)
        new, truth = np.array([0.0, 1.0]), np.array([1, 0])
        assert np.isfinite(cal.metrics.log_loss(truth, cal.ENIR().fit(s, y).calibrate(new)))
        p = cal.ENIR(variant="paper").fit(s, y).calibrate(new)
        infinite += p[0] == 0 or p[1] == 1
    assert infinite > 20


def test_lines_and_steps_agree_at_the_scores():
    s, y = noisy(500)
    step, line = (cal.ENIR(interpolation=drawn).fit(s, y) for drawn in ("step", "linear"))
    assert np.abs(step.calibrate(s) - line.calibrate(s)).max() < 1e-12
    assert step.map_.is_step
    assert not line.map_.is_step
    assert len(line.map_.x) < 500
    assert step.path_ == line.path_
    assert np.array_equal(step.weights_, line.weights_)


@pytest.mark.parametrize("option", [{"interpolation": "step"}, {"smoothing": "none"}])
def test_the_authors_variant_has_its_own_bins(option):
    with pytest.raises(
        cal.errors.ParameterError, match=r"of ENIR must be 'auto' with variant='authors'"
    ):
        cal.ENIR(variant="authors", **option).fit([0.1, 0.2, 0.3], [0, 1, 0])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"variant": "text"}, "'default' or 'paper' or 'authors'"),
        ({"criterion": "dic"}, "'bic' or 'aic' or 'aicc'"),
        ({"models": "some"}, "'all' or 'elbow' or 'best'"),
        ({"interpolation": "spline"}, "'auto' or 'step' or 'linear'"),
        ({"smoothing": 1}, "'auto' or 'none' or 'laplace' or 'jeffreys'"),
        ({"penalty": "none"}, "'auto' or 'bic' or 'authors'"),
    ],
)
def test_bad_parameters_name_what_is_allowed(option, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        cal.ENIR(**option).fit([0.1, 0.9], [0, 1])


# --- the authors' figures -------------------------------------------------------------------------


def golden(shared):
    for file in sorted((shared / "golden").glob("[ces]*.json.gz")):
        with gzip.open(file) as stream:
            case = json.load(stream)
        data = case["input"]
        columns = (np.array(data[key], float) for key in ("train_y", "train_z", "test_y"))
        yield file.name, case, *columns


def test_the_path_equals_the_authors(shared):
    compared = 0
    for name, case, s, y, _ in golden(shared):
        table = cal.ScoreTable.from_arrays(s, y.astype(int), classes=[0, 1])
        path, figures = cal.calibrators.near_isotonic_path(table), case["enir"]["neariso"]
        lambdas = np.atleast_1d(figures["lambda_all"])
        # their rounding splits some breakpoints in several
        distinct = lambdas[np.append(True, np.diff(lambdas) > 1e-9)]
        ours = path.lambdas if path.lambdas[0] == 0 else np.append(0.0, path.lambdas)
        assert ours.shape == distinct.shape, name
        assert np.abs(ours - distinct).max() < 1e-9
        used = np.atleast_1d(figures["lambda_used"])
        if "df_rounded" in figures:
            t = np.searchsorted(path.lambdas, used[1:] - 1e-9)
            assert np.array_equal(path.df[t], figures["df_rounded"][1:])
            compared += 1
        beta = np.array(case.get("neariso_beta", []))
        if beta.ndim == 2:
            assert np.array_equal(beta[:, 0], table.scores)
            for value, fit in zip(used, beta[:, 1:].T, strict=True):
                near = path.lambdas[np.abs(path.lambdas - value).argmin()] if value else 0.0
                assert np.abs(path.at(near) - fit).max() < 1e-9, name
    assert compared >= 12


def test_the_ensemble_equals_the_authors(shared):
    compared = 0
    kinds = {"all": "pred_MA", "elbow": "pred_MA_pruned", "best": "pred_MS_intended"}
    for name, case, s, y, query in golden(shared):
        for criterion in ("BIC", "AIC", "AICc"):
            expected = case["enir"][f"enir_{criterion}"]
            for models, key in kinds.items():
                c = cal.ENIR(
                    variant="authors", criterion=criterion.lower(), models=models, classes=[0, 1]
                )
                p = c.fit(s, y.astype(int)).calibrate(query)
                assert np.isfinite(p).all()
                if "build_error" in expected:
                    continue
                assert np.abs(p - expected[key]).max() < 1e-9, (name, criterion, models)
                compared += 1
                if models == "all":
                    weights = np.array(expected["SV"]) / np.sum(expected["SV"])
                    assert c.weights_.max() >= weights.max() - 1e-9
                    assert c.n_models_scored_ == np.size(expected["SV"])
    assert compared >= 100


# --- ranking --------------------------------------------------------------------------------------


def area(p, n0, n1):
    """AUC, ties counted by half, from its definition."""
    above, tied = p[:, None] > p + 1e-12, np.abs(p[:, None] - p) <= 1e-12
    return float(n1 @ (above + 0.5 * tied) @ n0) / (n0.sum() * n1.sum())


def hull_area(n0, n1):
    """The area under the convex hull of the ROC curve, by trying every pair of its points."""
    x = np.append(0.0, np.cumsum(n0[::-1])) / n0.sum()
    y = np.append(0.0, np.cumsum(n1[::-1])) / n1.sum()
    top = y.copy()
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            inside = (x >= x[i]) & (x <= x[j])
            if x[j] > x[i]:
                line = y[i] + (y[j] - y[i]) * (x[inside] - x[i]) / (x[j] - x[i])
                top[inside] = np.maximum(top[inside], line)
    return float(np.sum(np.diff(x) * (top[1:] + top[:-1]) / 2))


BOTH = {"both_classes": True, "min_size": 2, "max_size": 20}


@given(data=st.one_of(rows(**BOTH), rows(weight=REAL, **BOTH)))
@example(data=(np.array([0.1, 0.2, 0.3]), np.array([1, 0, 1]), np.ones(3)))
def test_isotonic_regression_ranks_as_well_as_the_hull_of_the_roc_curve(data):
    table = cal.ScoreTable.from_arrays(*data, classes=[0, 1])
    n0, n1 = table.negative, table.positive
    p = cal.Isotonic().fit_table(table).calibrate(table.scores)
    assert area(p, n0, n1) == pytest.approx(hull_area(n0, n1), abs=1e-9)
    assert area(p, n0, n1) >= area(np.arange(len(n0)), n0, n1) - 1e-9


@given(data=st.one_of(rows(**BOTH), rows(weight=REAL, **BOTH)))
def test_ranking_gets_worse_along_the_path_but_never_worse_than_isotonic(data):
    """For two bins of rates r, p_a − p_b = r_a − r_b + λ(slope_a − slope_b); so where they meet,
    cross or part, the one that falls behind has the higher rate."""
    table = cal.ScoreTable.from_arrays(*data, classes=[0, 1])
    n0, n1 = table.negative, table.positive
    path = cal.calibrators.near_isotonic_path(table)
    between = np.append(path.lambdas[1:], 2 * path.lambdas[-1]) / 2 + path.lambdas / 2
    places = np.append(0.0, np.column_stack((path.lambdas, between)).ravel())
    areas = [area(path.at(value), n0, n1) for value in places]
    assert (np.diff(areas) <= 1e-9).all()
    assert areas[0] == pytest.approx(area(table.rate, n0, n1), abs=1e-9)
    assert areas[-1] == pytest.approx(hull_area(n0, n1), abs=1e-9)
