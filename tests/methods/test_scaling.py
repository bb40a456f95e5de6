"""Temperature, vector, matrix, Dirichlet and structured scaling against slow twins and promises."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import calibrant as cal
from calibrant.data import door as matrix_module
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.errors import ConvergenceError
from calibrant.fitting import base as vector_base
from calibrant.fitting.folds import deal_by_scores
from calibrant.maps import Softmax, map_from_dict
from calibrant.methods import scaling as affine
from calibrant.methods.scaling import (
    Dirichlet,
    MatrixScaling,
    StructuredScaling,
    VectorScaling,
)
from calibrant.solvers import softmax as kernel
from calibrant.solvers import softmax as temperature
from strategies import costly
from twins import scaling as naive

#: fits alone: no folds, so that weights are repetitions and classes have no order
PLAIN = {
    "temperature": cal.Temperature(),
    "vector": VectorScaling(gate=False),
    "matrix": MatrixScaling(lambda_=0.05, gate=False),
    "matrix-mu": MatrixScaling(lambda_=0.05, mu=0.5, label_smoothing=0.1, gate=False),
    "dirichlet": Dirichlet(lambda_=0.05, gate=False),
    "structured": StructuredScaling(gate=False),
    "structured-vector": StructuredScaling(structure="vector", gate=False),
}
#: as they come
WHOLE = {
    "temperature": cal.Temperature(),
    "vector": VectorScaling(),
    "matrix": MatrixScaling(),
    "dirichlet": Dirichlet(),
    "structured": StructuredScaling(),
    "structured-vector": StructuredScaling(structure="vector"),
}
SHIFT_FREE = ("temperature", "dirichlet", "structured", "structured-vector")


def several(method):
    """Parametrise by the methods of a dict."""
    return pytest.mark.parametrize("method", method.values(), ids=method)


def probabilities(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def draw_rows(n, k, seed, factor=0.5):
    """Logits that are too sure by 1/factor, and their labels; every class occurs."""
    rng = np.random.default_rng(seed)
    z = 2.0 * rng.normal(size=(n, k))
    y = (factor * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    y[:k] = np.arange(k)
    return z, y


def fit_all(method, z, y, w=None):
    return clone(method).set_params(classes=list(range(z.shape[1]))).fit(z, y, w)


def fit_logits(method, z, y, w=None):
    """As `fit_all`, also where the rows of a tiny table happen to be distributions."""
    return fit_all(clone(method).set_params(scale="raw"), z, y, w)


def log_loss(p, y, w=None):
    kept = np.ones(len(y), dtype=bool) if w is None else w > 0
    own = p[np.arange(len(y)), y][kept]
    return float(np.average(-np.log(own), weights=None if w is None else w[kept]))


@st.composite
def tables(draw, extreme=False, min_rows=3):
    """(logits, labels, weights ≥ 0) of three or four classes, some perhaps absent."""
    value = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4).map(lambda v: round(v, 2)))
    if extreme:
        huge = st.sampled_from([0.0, 1e-300, 700.0, -1e5, 1e30, -1.7e308, 1.7e308])
        value = st.one_of(value, huge)
    n, k = draw(st.integers(min_rows, 12)), draw(st.integers(3, 4))
    z = draw(st.lists(st.lists(value, min_size=k, max_size=k), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    w = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    w[0] = w[0] or 1
    return np.array(z), np.array(y), np.array(w, dtype=float)


# --- twins --------------------------------------------------------------------------------------


@given(tables())
def test_temperature_is_the_least_of_the_naive_objective(table):
    z, y, w = table
    fitted = fit_logits(cal.Temperature(), z, y, w)
    kept = w > 0
    # the twin's ridge is 1e-6, ours 1e-7·Σw
    twin = naive.temperature(z[kept], y[kept], 1e-6 / temperature.RIDGE * w[kept] / w.sum())
    p, q = fitted.predict_proba(z), np.exp(naive.log_softmax(twin * z))
    assert fitted.temperature_ > 0
    assert np.allclose(p, q, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_temperature_of_two_classes_is_that_of_their_difference(seed):
    z, y = draw_rows(60, 2, seed)
    w = np.random.default_rng(seed).random(60) + 0.1
    sums = temperature.BlockSums(lambda: iter([(z, y, w)]))
    found = temperature.fit_temperature(sums, smoothing=0.2)
    binary = cal.Temperature(scale="raw", label_smoothing=0.2).fit(z[:, 1] - z[:, 0], y, w)
    assert found == pytest.approx(1.0 / binary.temperature_, rel=1e-8)


def natural(fitted, z):
    """(W, b) and the features they multiply."""
    m = fitted.map_
    return m.weights, m.bias, m.features(z)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_vector_scaling_is_the_least_of_the_naive_objective(smoothing):
    z, y = draw_rows(80, 3, 1)
    w = np.random.default_rng(2).random(80) + 0.2
    fitted = VectorScaling(gate=False, label_smoothing=smoothing).fit(z, y, w)
    theta = np.concatenate((fitted.factors_, fitted.offsets_))

    def objective(t):
        return naive.vector_objective(t, z, y, w, smoothing)

    assert np.abs(naive.slope(objective, theta)).max() < 1e-6
    least, there = naive.least(objective, np.r_[np.ones(3), np.zeros(3)])
    assert objective(theta) <= least + 1e-8
    v, b = np.split(there, 2)
    assert np.allclose(fitted.predict_proba(z), np.exp(naive.scaled(z, np.diag(v), b)), atol=1e-4)


@pytest.mark.parametrize("kind", [MatrixScaling, Dirichlet])
@pytest.mark.parametrize(("lam", "mu", "smoothing"), [(0.1, None, 0.0), (0.02, 0.7, 0.2)])
def test_ridges_are_the_least_of_the_naive_objective(kind, lam, mu, smoothing):
    z, y = draw_rows(70, 3, 3)
    w = np.random.default_rng(3).random(70) + 0.2
    how = {"label_smoothing": smoothing, "gate": False, "weights": "counts"}
    fitted = kind(lambda_=lam, mu=mu, **how).fit(z, y, w)
    matrix, b, x = natural(fitted, z)
    if kind is Dirichlet:
        assert np.allclose(x, naive.log_softmax(z))
    theta = np.r_[matrix.ravel(), b]

    def objective(t):
        return naive.ridge_objective(t, x, y, w, lam, lam if mu is None else mu, smoothing)

    assert np.abs(naive.slope(objective, theta)).max() < 1e-6
    least, there = naive.least(objective, np.r_[np.eye(3).ravel(), np.zeros(3)])
    assert objective(theta) <= least + 1e-8
    q = np.exp(naive.scaled(x, there[:9].reshape(3, 3), there[9:]))
    assert np.allclose(fitted.predict_proba(z), q, atol=1e-4)


@pytest.mark.parametrize("kind", ["matrix", "vector"])
def test_structured_scaling_is_the_published_two_steps(kind):
    z, y = draw_rows(70, 3, 4)
    w = np.random.default_rng(4).random(70) + 0.2
    strengths = {"lambda_intercept": 0.5, "lambda_diagonal": 2.0, "lambda_off_diagonal": 0.3}
    fitted = StructuredScaling(structure=kind, gate=False, weights="counts", **strengths)
    fitted.fit(z, y, w)
    t = naive.temperature(z, y, w)
    assert fitted.temperature_ == pytest.approx(1.0 / t, rel=1e-6)
    x = naive.log_softmax(t * z)
    on_m = strengths["lambda_off_diagonal"] if kind == "matrix" else 1e9

    def objective(theta):
        return naive.structured_objective(theta, x, y, w, 0.5, 2.0, on_m)

    theta = np.r_[fitted.matrix_.ravel(), fitted.offsets_]
    assert np.allclose(np.exp(naive.scaled(x, fitted.matrix_, fitted.offsets_)), fitted.map_(z))
    free = np.ones(12, dtype=bool)
    if kind == "vector":
        free[:9] = np.eye(3, dtype=bool).ravel()
        assert (theta[~free] == 0).all()
    assert np.abs(naive.slope(objective, theta)[free]).max() < 1e-6


@pytest.mark.parametrize("full", [True, False])
@given(table=tables())
def test_the_gradient_vanishes_where_a_fit_ends(full, table):
    z, y, w = table
    k = z.shape[1]
    centre = np.column_stack((np.eye(k) if full else np.ones(k), np.zeros(k)))
    ridge = np.full(centre.shape, 1e-3)
    problem = kernel.SoftmaxProblem(lambda: iter([(z, y, w)]), ridge, centre, 0.0, float(w.sum()))
    found = kernel.fit_softmax(problem, centre)
    last = kernel._evaluate(problem, found.theta, False)
    assert np.abs(last.gradient).max() < 1e-7 * w.sum()
    assert last.objective <= kernel.softmax_objective(problem, centre)
    slope = naive.slope(
        lambda t: kernel.softmax_objective(problem, t.reshape(centre.shape)), found.theta.ravel()
    )
    assert np.abs(slope).max() < 1e-6 * w.sum()


@pytest.mark.parametrize("full", [True, False])
def test_gradient_hessian_and_products_are_those_of_the_objective(full):
    z, y = draw_rows(20, 3, 5)
    rng = np.random.default_rng(5)
    w, shape = rng.random(20), (3, 4 if full else 2)
    problem = kernel.SoftmaxProblem(
        lambda: iter([(z[:7], y[:7], w[:7]), (z[7:], y[7:], w[7:])]),
        rng.random(shape),
        rng.normal(size=shape),
        0.1,
        float(w.sum()),
    )
    theta = rng.normal(size=shape)
    here = kernel._evaluate(problem, theta, True)
    slope = naive.slope(
        lambda t: kernel.softmax_objective(problem, t.reshape(shape)), theta.ravel()
    )
    assert np.allclose(here.gradient.ravel(), slope, atol=1e-6)
    for j in range(theta.size):
        away = np.zeros(theta.size)
        away[j] = 1.0
        column = kernel._product(problem, theta, away.reshape(shape)).ravel()
        assert np.allclose(column, here.hessian[:, j], atol=1e-12)
        step = 1e-5 * away.reshape(shape)
        above, below = (kernel._evaluate(problem, theta + s, False).gradient for s in (step, -step))
        assert np.allclose((above - below).ravel() / 2e-5, column, atol=1e-6)
    sparse = kernel._evaluate(problem, theta, False)
    assert np.allclose(sparse.diagonal.ravel(), np.diag(here.hessian))
    if not full:
        assert np.allclose(sparse.between, np.diag(here.hessian, 1)[::2])
    shares = kernel._shares(problem, theta)
    assert np.allclose(
        kernel._product(problem, theta, theta, shares), kernel._product(problem, theta, theta)
    )


@pytest.mark.parametrize("structure", ["vector", "matrix"])
def test_few_products_with_the_hessian_lead_to_the_optimum(structure, monkeypatch):
    """Scaled by the diagonal alone, conjugate gradients take 18 and 46 products."""
    z, y = draw_rows(3000, 60, 4)
    count = []
    real = kernel._product
    monkeypatch.setattr(kernel, "_product", lambda *given: count.append(1) or real(*given))
    StructuredScaling(structure=structure, gate=False).fit(z, y)
    assert 3 <= len(count) <= {"vector": 12, "matrix": 28}[structure]


@pytest.mark.parametrize("name", ["vector", "matrix", "structured"])
def test_conjugate_gradients_reach_what_the_formed_hessian_does(name, monkeypatch):
    z, y = draw_rows(150, 4, 6)
    dense = fit_all(PLAIN[name], z, y)
    monkeypatch.setattr(kernel, "DENSE", 0)
    sparse = fit_all(PLAIN[name], z, y)
    assert sparse.converged_
    assert np.allclose(dense.predict_proba(z), sparse.predict_proba(z), atol=1e-7)


# --- promises -----------------------------------------------------------------------------------


@several(PLAIN)
@given(table=tables())
def test_weights_are_repetitions_and_zero_is_absent(method, table):
    z, y, w = table
    counting = clone(method)
    if "weights" in counting.get_params():
        counting.set_params(weights="counts")
    weighted = fit_logits(counting, z, y, w)
    times = w.astype(int)
    repeated = fit_logits(method, np.repeat(z, times, axis=0), np.repeat(y, times))
    assert np.allclose(weighted.predict_proba(z), repeated.predict_proba(z), atol=1e-5)


@several(PLAIN)
@given(table=tables(), seed=st.integers(0, 100))
def test_classes_have_no_order(method, table, seed):
    z, y, w = table
    turn = np.random.default_rng(seed).permutation(z.shape[1])
    place = np.argsort(turn)
    straight = fit_logits(method, z, y, w).predict_proba(z)
    turned = fit_logits(method, z[:, turn], place[y], w).predict_proba(z[:, turn])
    assert np.allclose(straight[:, turn], turned, atol=1e-5)


@pytest.mark.parametrize("name", SHIFT_FREE)
@given(table=tables(), shift=st.floats(-50, 50))
def test_a_constant_added_to_a_row_changes_nothing(name, table, shift):
    z, y, w = table
    moved = z + shift * np.arange(len(z))[:, None]
    p, q = (fit_logits(PLAIN[name], x, y, w) for x in (z, moved))
    assert np.allclose(p.predict_proba(z), q.predict_proba(moved), atol=1e-5)


@several(WHOLE)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_plays_no_part(method, seed):
    z, y = draw_rows(60, 3, seed)
    z = z.round(0)  # ties
    turn = np.random.default_rng(seed).permutation(60)
    p, q = fit_all(method, z, y), fit_all(method, z[turn], y[turn])
    assert np.allclose(p.predict_proba(z), q.predict_proba(z), atol=1e-7)


@several({**WHOLE, **{f"plain-{name}": method for name, method in PLAIN.items()}})
@given(table=tables(extreme=True, min_rows=1))
@costly
def test_any_finite_logits_give_distributions(method, table):
    z, y, w = table
    try:
        fitted = fit_logits(method, z, y, w)
    except ConvergenceError:  # logits of 1e30 beside 0: an optimum, or a word
        assert np.abs(z).max() > 1e4
        return
    p = fitted.predict_proba(z)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert np.allclose(p.sum(axis=1), 1.0)
    assert not hasattr(fitted, "temperature_") or 0 < fitted.temperature_ < np.inf


@several(PLAIN)
@given(table=tables())
def test_the_fit_is_no_worse_than_the_identity_on_its_own_rows(method, table):
    z, y, w = table
    if method.label_smoothing:
        return  # then the objective is another
    before = log_loss(probabilities(z), y, w)
    assert log_loss(fit_logits(method, z, y, w).predict_proba(z), y, w) <= before + 1e-4


@several(PLAIN)
def test_fits_converge_on_separable_rows_and_absent_classes(method):
    z = np.diag([5.0, 5.0, 5.0, 5.0])
    fitted = clone(method).set_params(classes=[0, 1, 2, 3]).fit(np.vstack((z, z)), [0, 1, 2, 0] * 2)
    assert getattr(fitted, "converged_", True)
    assert np.isfinite(fitted.predict_proba(1e3 * z)).all()
    separable = clone(method).fit(z, [0, 1, 2, 3])
    assert getattr(separable, "converged_", True)
    assert (separable.predict(z) == np.arange(4)).all()


def test_a_temperature_is_positive_where_labels_ask_for_the_reverse():
    z, _ = draw_rows(50, 3, 7)
    fitted = cal.Temperature().fit(z, z.argmin(axis=1))
    size = np.sqrt(naive.mean_square_difference(z, np.ones(50)))
    assert fitted.temperature_ == pytest.approx(1000.0 * size)
    assert np.allclose(fitted.predict_proba(z), 1 / 3, atol=0.01)


# --- how scores are read ------------------------------------------------------------------------


@several(PLAIN)
def test_probabilities_are_read_by_their_logarithm(method):
    z, y = draw_rows(60, 3, 8)
    p = probabilities(z)
    fitted = fit_all(method, p, y)
    assert fitted.map_.input == "probability"
    logs = fit_all(method, np.log(p), y)
    assert logs.map_.input == "logit"
    assert np.allclose(fitted.predict_proba(p), logs.predict_proba(np.log(p)), atol=1e-7)
    with pytest.raises(cal.errors.InputError, match=r"3 of 4 are not \(first at row 1"):
        fitted.predict_proba(np.vstack((p[:1], z[:3] + 9)))


def test_zeros_are_read_as_half_the_smallest_probability():
    votes = np.array([[10, 0, 0], [7, 3, 0], [2, 8, 0], [0, 9, 1], [1, 0, 9], [0, 5, 5]]) / 10
    fitted = cal.Temperature().fit(votes, [0, 0, 1, 1, 2, 1])
    assert fitted.map_.floor == 0.05
    x = np.log(np.maximum(votes, 0.05))
    assert np.allclose(fitted.predict_proba(votes), probabilities(x / fitted.temperature_))


@pytest.mark.parametrize("name", PLAIN)
def test_scale_says_what_scores_are(name):
    p = probabilities(draw_rows(40, 3, 9)[0])
    y = np.arange(40) % 3
    method = clone(PLAIN[name])
    assert fit_all(method.set_params(scale="raw"), p, y).map_.input == "logit"
    with pytest.raises(cal.errors.InputError, match="must be probabilities"):
        fit_all(method.set_params(scale="logit"), 2 * p, y)
    with pytest.raises(cal.errors.ParameterError, match="'auto' or 'logit' or 'raw'"):
        fit_all(method.set_params(scale="probability"), p, y)


def test_two_columns_are_two_classes():
    z, y = draw_rows(80, 2, 10)
    fitted = VectorScaling(gate=False).fit(z, np.array(["no", "yes"])[y])
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.predict_proba(z).shape == (80, 2)
    both = cal.Temperature().fit(probabilities(z), y)
    one = cal.Temperature(scale="raw").fit(z[:, 1] - z[:, 0], y)
    assert both.temperature_ == pytest.approx(one.temperature_)


@pytest.mark.parametrize(
    ("scores", "y", "options", "message"),
    [
        ([[0.1, np.nan, 1.0], [1, 2, 3]], [0, 1], {}, "1 of 2 rows hold NaN or infinity .first at"),
        ([[1.0, 2.0, np.inf]], [0], {"classes": [0, 1, 2]}, "row 0, column 2: infinity"),
        ([[1, 2, 3], [3, 2, 1]], ["a", "b"], {}, "3 columns, but y holds 2 classes .'a', 'b'"),
        ([[1, 2, 3], [3, 2, 1]], [3, 3], {}, "only one class, 3"),
        ([[1, 2, 3], [3, 2, 1]], [0, 7], {"classes": [0, 1, 2]}, "7 came"),
        ([[1, 2, 3]], [0], {"classes": [0, 1]}, "3 columns of the scores, but .0, 1. came"),
        ([[1, 2, 3]], ["a"], {"classes": ["a", "a", "b"]}, "a different class for each"),
        ([["a", "b", "c"]], [0], {"classes": [0, 1, 2]}, "must be numbers"),
        ([[1, 2, 3], [3, 2, 1]], [0], {"classes": [0, 1, 2]}, "one entry per row"),
        (np.empty((0, 3)), [], {"classes": [0, 1, 2]}, "at least one row"),
        ([[1, 2, 3]], None, {}, "requires y"),
        ([1.0, 2.0, 3.0], [0, 1, 2], {}, "one column for each"),
    ],
)
def test_refusals_say_what_to_do(scores, y, options, message):
    with pytest.raises(cal.errors.InputError, match=message):
        VectorScaling(**options).fit(scores, y)


def test_refusals_of_temperature():
    z, y = draw_rows(20, 3, 0)
    with pytest.raises(cal.errors.InputError, match="pos_label must be None"):
        cal.Temperature(pos_label=1).fit(z, y)
    fitted = cal.Temperature().fit(z, y)
    with pytest.raises(cal.errors.InputError, match="use predict_proba"):
        fitted.calibrate(z)
    with pytest.raises(cal.errors.InputError, match="must have 3 columns"):
        fitted.predict_proba(z[:, :2])
    with pytest.raises(cal.errors.InputError, match="at least 0"):
        fitted.fit(z, y, -np.ones(20))
    binary = fitted.fit(z[:, 0], y > 0)  # the same object, fitted to two classes
    assert binary.predict_proba(z[:, 0]).shape == (20, 2)


# --- the gate and the strength ------------------------------------------------------------------


def test_rows_are_dealt_evenly_and_whatever_their_order():
    z, y = draw_rows(103, 3, 11)
    m, _ = read_matrix(z, y)
    fold = deal_by_scores(m, 5)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    assert (
        deal_by_scores(read_matrix(z, np.roll(y, 7))[0], 5) == fold
    ).all()  # labels play no part
    turn = np.random.default_rng(0).permutation(103)
    assert (deal_by_scores(read_matrix(z[turn], y[turn])[0], 5) == fold[turn]).all()


@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet", "structured"])
def test_the_gate_keeps_scores_that_are_right(name):
    z, y = draw_rows(400, 3, 12, factor=1.0)
    fitted = fit_all(WHOLE[name], z, y)
    assert fitted.kept_ == "identity"
    assert np.allclose(fitted.predict_proba(z), probabilities(z))
    assert fit_all(clone(WHOLE[name]).set_params(gate=False), z, y).kept_ == "fit"


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_the_gate_falls_back_to_a_temperature(name):
    z, y = draw_rows(60, 8, 13, factor=0.3)
    fitted = fit_all(WHOLE[name], z, y)
    assert fitted.kept_ == "temperature"
    alone = fit_all(cal.Temperature(), z, y)
    assert np.allclose(fitted.predict_proba(z), alone.predict_proba(z))


def held_out_naively(method, z, y):
    """Refits on the rows of the other folds; per row: loss, and gain over the scores."""
    fold, loss = deal_by_scores(read_matrix(z, y)[0], 5), np.zeros(len(y))
    for j in range(5):
        fitted = fit_all(method, z[fold != j], y[fold != j])
        p = fitted.predict_proba(z[fold == j])
        loss[fold == j] = -np.log(p[np.arange(len(p)), y[fold == j]])
    return loss, -np.log(probabilities(z)[np.arange(len(y)), y]) - loss


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_gain_is_that_of_refits(name):
    z, y = draw_rows(300, 3, 14)
    fitted = fit_all(clone(PLAIN[name]).set_params(gate=True), z, y)
    _, gain = held_out_naively(PLAIN[name], z, y)
    assert fitted.gain_ == pytest.approx(gain.mean(), abs=1e-6)
    assert fitted.gain_error_ == pytest.approx(gain.std(ddof=1) / np.sqrt(300), rel=1e-4)


def test_the_strength_is_the_best_on_rows_held_out():
    z, y = draw_rows(300, 3, 15)
    fitted = fit_all(MatrixScaling(), z, y)
    assert fitted.lambda_used_ == min(fitted.held_out_, key=fitted.held_out_.get)
    assert fitted.mu_used_ == fitted.lambda_used_
    for value in list(fitted.held_out_)[::3]:
        loss, _ = held_out_naively(MatrixScaling(lambda_=value, gate=False), z, y)
        assert fitted.held_out_[value] == pytest.approx(loss.mean(), abs=1e-5)


def test_the_strength_follows_the_data():
    rng = np.random.default_rng(16)
    z = 2 * rng.normal(size=(2000, 3))
    noise = rng.gumbel(size=z.shape)
    plain = MatrixScaling().fit(z, (0.5 * z + noise).argmax(axis=1))
    mixed = z @ np.array([[1, 0.8, 0], [-0.8, 1, 0], [0, 0, 1]])
    turned = MatrixScaling().fit(z, (mixed + noise).argmax(axis=1))
    assert turned.lambda_used_ < 0.1 < plain.lambda_used_


@pytest.mark.parametrize("name", ["matrix", "vector"])
def test_of_many_rows_some_are_enough_to_judge(name, monkeypatch):
    rng = np.random.default_rng(27)
    z = 2 * rng.normal(size=(900, 3))
    mixed = z @ np.array([[1, 0.8, 0], [-0.8, 0.2, 0], [0, 0, 0.5]])
    y = (mixed + rng.gumbel(size=z.shape)).argmax(axis=1)
    monkeypatch.setattr(affine, "MOST_ROWS", 300)
    fitted = fit_all(WHOLE[name], z, y)
    assert fitted.kept_ == "fit"
    turn = np.random.default_rng(1).permutation(900)
    again = fit_all(WHOLE[name], z[turn], y[turn])
    assert np.allclose(fitted.predict_proba(z), again.predict_proba(z), atol=1e-7)
    assert fitted.gain_ == pytest.approx(again.gain_, abs=1e-9)
    if name == "matrix":  # chosen on a third of the rows, so a third of it for all
        tried = min(fitted.held_out_, key=fitted.held_out_.get)
        assert fitted.lambda_used_ == pytest.approx(tried / 3)
        direct = fit_all(MatrixScaling(lambda_=tried / 3, gate=False), z, y)
        assert np.allclose(fitted.predict_proba(z), direct.predict_proba(z), atol=1e-7)


def test_many_classes_take_the_published_strength():
    z, y = draw_rows(200, 30, 17)
    fitted = Dirichlet(gate=False).fit(z, y)
    assert fitted.converged_
    assert (fitted.lambda_used_, fitted.mu_used_) == ((30 * 29) ** 2 / 200, 900 / 200)
    structured = StructuredScaling(gate=False).fit(z, y)
    m = fitted.map_(z), structured.map_(z)
    assert np.abs(m[0] - m[1]).mean() < 0.1


@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet", "structured"])
@pytest.mark.parametrize("k", [10, 30, 60])
@pytest.mark.full
def test_few_rows_of_many_classes_do_no_harm(name, k):
    """Scores that are right: the default loses less on new rows than their loss is known to."""

    def sample(n, seed):
        rng = np.random.default_rng(seed)
        z = 2.0 * rng.normal(size=(n, k))
        return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)

    new, labels = sample(2000, 999)
    losses = -np.log(probabilities(new)[np.arange(2000), labels])
    noise = losses.std() / np.sqrt(2000)

    def excess(method):
        fits = [fit_all(method, *sample(3 * k, seed)) for seed in range(120 // k)]
        return np.mean([log_loss(c.map_(new), labels) for c in fits]) - losses.mean()

    assert excess(WHOLE[name]) <= noise
    if name == "vector":  # without the gate there is something to lose
        assert excess(clone(WHOLE[name]).set_params(gate=False)) > 4 * noise


@pytest.mark.parametrize("name", ["vector", "matrix", "structured"])
def test_where_folds_are_too_dear_one_part_judges_a_fit_to_the_others(name, monkeypatch):
    monkeypatch.setattr(affine, "DENSE_WORK", 0)
    monkeypatch.setattr(affine, "MOST_HELD", 30)
    z, y = draw_rows(300, 3, 14)
    fitted = fit_all(clone(PLAIN[name]).set_params(gate=True), z, y)
    held = deal_by_scores(read_matrix(z, y)[0], 10) == 0
    assert held.sum() == 30
    p = fit_all(PLAIN[name], z[~held], y[~held]).predict_proba(z[held])
    own = np.arange(30), y[held]
    gain = np.log(p[own]) - np.log(probabilities(z[held])[own])
    assert fitted.gain_ == pytest.approx(gain.mean(), abs=1e-6)
    assert fitted.gain_error_ == pytest.approx(gain.std(ddof=1) / np.sqrt(30), rel=1e-4)
    right = fit_all(clone(PLAIN[name]).set_params(gate=True), *draw_rows(300, 3, 12, factor=1.0))
    assert right.kept_ == "identity"


def test_the_strength_is_chosen_on_fewer_rows_and_judged_on_all(monkeypatch):
    rng = np.random.default_rng(27)
    z = 2 * rng.normal(size=(900, 3))
    mixed = z @ np.array([[1, 0.8, 0], [-0.8, 0.2, 0], [0, 0, 0.5]])
    y = (mixed + rng.gumbel(size=z.shape)).argmax(axis=1)
    monkeypatch.setattr(affine, "DENSE_WORK", 300 * 12**2)
    fitted = fit_all(MatrixScaling(), z, y)
    tried = min(fitted.held_out_, key=fitted.held_out_.get)
    assert fitted.lambda_used_ == pytest.approx(tried / 3)
    assert fitted.kept_ == "fit"
    fixed = fit_all(MatrixScaling(lambda_=fitted.lambda_used_), z, y)  # judged by the same part
    assert fixed.gain_ == pytest.approx(fitted.gain_, abs=1e-7)


def test_rows_for_choosing_shrink_as_classes_grow():
    def budget(k, full):
        read = vector_base.read_as(ScoreMatrix(np.eye(k), np.arange(k)), "raw")
        return affine.AffineFit(read, full=full, smoothing=0.0).budget

    found = [budget(k, True) for k in (3, 10, 16, 20, 24)]
    assert found[:2] == [20_000, 20_000]
    assert found == sorted(found, reverse=True)
    assert all(
        rows * (k * (k + 1)) ** 2 <= 5e8 for k, rows in zip((16, 20, 24), found[2:], strict=True)
    )
    assert budget(100, False) > budget(290, False)


@pytest.mark.parametrize("name", ["temperature", "vector", "matrix", "dirichlet"])
@pytest.mark.parametrize("rows", ["mixed", "separable"])
def test_the_scale_of_weights_plays_no_part(name, rows):
    z, y = draw_rows(90, 3, 28)
    y = y if rows == "mixed" else z.argmax(axis=1)
    method = clone(WHOLE[name]).set_params(scale="raw")
    fits = [fit_all(method, z, y, np.full(90, s)) for s in (1.0, 1e-8, 1e8)]
    if rows == "mixed" and name != "temperature":
        assert fits[0].kept_ != "identity"
    for other in fits[1:]:
        assert np.allclose(other.predict_proba(z), fits[0].predict_proba(z), rtol=0, atol=1e-8)
        if name != "temperature":
            assert other.kept_ == fits[0].kept_
            assert other.gain_ == pytest.approx(fits[0].gain_, rel=1e-6)
            assert other.gain_error_ == pytest.approx(fits[0].gain_error_, rel=1e-6)


@pytest.mark.parametrize("separable", [False, True])
def test_the_scale_of_weights_plays_no_part_in_two_classes(separable):
    z, y = draw_rows(90, 2, 29)
    s = z[:, 1] - z[:, 0]
    y = s > 0 if separable else y
    found = [cal.Temperature().fit(s, y, np.full(90, w)).temperature_ for w in (1.0, 1e-8, 1e8)]
    assert found[1:] == pytest.approx(found[:1] * 2, rel=1e-7)


# --- size ---------------------------------------------------------------------------------------


@several(PLAIN)
@pytest.mark.parametrize("scale", ["raw", "logit"])
def test_chunks_give_what_the_whole_gives(method, scale, monkeypatch):
    z, y = draw_rows(101, 3, 18)
    z = z if scale == "raw" else probabilities(z)
    w = np.random.default_rng(18).random(101)
    method = clone(method).set_params(scale=scale)
    whole = fit_all(method, z, y, w)
    p = whole.predict_proba(z)
    monkeypatch.setattr(matrix_module, "BLOCK", 20)
    monkeypatch.setattr(vector_base, "KEPT", 0)
    monkeypatch.setattr(affine, "KEPT", 0)
    parts = fit_all(method, z, y, w)
    assert np.allclose(parts.predict_proba(z), p, rtol=0, atol=1e-12)
    assert (parts.predict(z) == whole.predict(z)).all()


@pytest.mark.parametrize("name", ["vector", "structured"])
def test_the_gate_works_in_chunks(name, monkeypatch):
    z, y = draw_rows(101, 3, 19)
    whole = fit_all(WHOLE[name], z, y)
    monkeypatch.setattr(matrix_module, "BLOCK", 20)
    monkeypatch.setattr(vector_base, "KEPT", 0)
    parts = fit_all(WHOLE[name], z, y)
    assert parts.gain_ == pytest.approx(whole.gain_, abs=1e-9)


def test_a_rough_start_ends_at_the_same_temperature(monkeypatch):
    z, y = draw_rows(500, 4, 20)
    whole = cal.Temperature().fit(z, y)
    monkeypatch.setattr("calibrant.fitting.base.ROUGH", 200)
    assert cal.Temperature().fit(z, y).temperature_ == pytest.approx(whole.temperature_, rel=1e-9)


@pytest.mark.full
def test_a_memory_map_is_never_copied_as_a_whole(tmp_path):
    n, k = 200_000, 50
    path = tmp_path / "logits.dat"
    z = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, k))
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    for start in range(0, n, 10_000):
        block = rng.normal(size=(10_000, k)).astype(np.float32)
        block[np.arange(10_000), y[start : start + 10_000]] += 2
        z[start : start + 10_000] = block
    z = np.memmap(path, dtype=np.float32, mode="r", shape=(n, k))
    out = np.memmap(tmp_path / "out.dat", dtype=np.float32, mode="w+", shape=(n, k))
    tracemalloc.start()
    fitted = cal.Temperature().fit(z, y)
    fitted.map_(z, out=out)
    labels = fitted.predict(z)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * k * 4  # less than even the float32 matrix
    some = np.asarray(z[:3000], dtype=np.float64)
    assert np.allclose(out[:3000], fitted.predict_proba(some), atol=1e-6)
    assert (labels[:3000] == some.argmax(axis=1)).all()


def test_float32_is_fitted_as_the_same_numbers_in_float64():
    z, y = draw_rows(80, 3, 21)
    single = z.astype(np.float32)
    for method in PLAIN.values():
        a, b = fit_all(method, single, y), fit_all(method, single.astype(np.float64), y)
        assert a.map_ == b.map_


# --- the matrix, the map and the files ----------------------------------------------------------


def test_a_matrix_is_a_value_that_cannot_change():
    z, y = draw_rows(9, 3, 22)
    m, classes = read_matrix(z, y, np.arange(9.0))
    assert len(m) == 8  # the row of weight zero is absent
    assert classes.tolist() == [0, 1, 2]
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert other == m
        assert hash(other) == hash(m)
        for array in (other.scores, other.codes, other.weight):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    assert m != read_matrix(z, y)[0]
    assert m.total == 36
    assert m.effective_size == pytest.approx(36**2 / (np.arange(9.0) ** 2).sum())
    assert m.class_weight.tolist() == np.bincount(y, np.arange(9.0)).tolist()
    with pytest.raises(cal.errors.InputError, match="places of the 3 columns"):
        ScoreMatrix(z, y + 1)
    with pytest.raises(cal.errors.InputError, match="float32 or float64"):
        ScoreMatrix(z.astype(int), y)


@pytest.mark.parametrize("size", [1e-140, 1.0, 1e90])
def test_the_effective_size_knows_no_scale(size):
    z, y = draw_rows(9, 3, 22)
    m, _ = read_matrix(z, y, size * np.arange(9.0))
    assert m.effective_size == pytest.approx(36**2 / (np.arange(9.0) ** 2).sum())


def test_rows_of_weight_zero_are_left_out_and_float32_stays():
    z, y = draw_rows(9, 3, 22)
    z = z.astype(np.float32)
    assert np.shares_memory(read_matrix(z, y, np.ones(9))[0].scores, z)
    m, _ = read_matrix(z, y, np.arange(9.0))
    assert m.scores.dtype == np.float32
    assert np.array_equal(m.scores, z[1:])


def test_columns_of_a_matrix_are_tables():
    z, y = draw_rows(30, 3, 23)
    w = np.arange(30.0)
    m, _ = read_matrix(z, y, w)
    table = m.table(2, np.array([0, -1, 1]))
    used = y > 0
    assert table == cal.ScoreTable.from_arrays(z[used, 2], y[used] == 2, w[used])
    assert not m.take(m.codes == 0).table(0, np.array([0, 1, -1]))


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, list], ids=["pandas", "polars", "list"]
)
def test_frames_and_lists_are_read(frame):
    z, y = draw_rows(40, 3, 24)
    given = z.tolist() if frame is list else frame(dict(zip("abc", z.T, strict=True)))
    for method in PLAIN.values():
        fitted = clone(method).fit(given, list(np.array(["x", "y", "z"])[y]))
        assert np.allclose(fitted.predict_proba(given), fit_all(method, z, y).predict_proba(z))
        assert set(fitted.predict(given)) <= {"x", "y", "z"}


@several(WHOLE)
def test_fits_are_saved_and_loaded(method, tmp_path):
    z, y = draw_rows(60, 3, 25)
    fitted = clone(method).fit(z, np.array(["a", "b", "c"])[y])
    cal.save(fitted, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded.classes == ("a", "b", "c")
    assert loaded.method == type(method).__name__
    assert (loaded.predict_proba(z) == fitted.predict_proba(z)).all()
    assert (loaded.predict(z) == fitted.predict(z)).all()
    again = pickle.loads(pickle.dumps(fitted))
    assert again.map_ == fitted.map_


def test_the_map_follows_its_definition():
    rng = np.random.default_rng(26)
    z, matrix, bias = rng.normal(size=(7, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    p = probabilities(z)
    expected = {
        (None, "logit"): (z, naive.scaled(z, matrix, bias)),
        (1.7, "logit"): (z, naive.scaled(naive.log_softmax(1.7 * z), matrix, bias)),
        (None, "probability"): (p, naive.scaled(np.log(np.maximum(p, 0.1)), matrix, bias)),
        (0.4, "probability"): (
            p,
            naive.scaled(naive.log_softmax(0.4 * np.log(np.maximum(p, 0.1))), matrix, bias),
        ),
    }
    for (inner, read), (scores, log_p) in expected.items():
        m = Softmax(matrix, bias, read, 0.1, inner)
        assert np.allclose(m(scores), np.exp(log_p))
        assert map_from_dict(m.to_dict()) == m
        out = np.empty((7, 3), dtype=np.float32)
        assert m(scores, out=out) is out
        assert np.allclose(out, m(scores), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Softmax(1.0, [0.0, 0.0], "logit", 0.0), "above 0"),
        (lambda: Softmax(1e200, [0.0, 0.0]), "at most 1e"),
        (lambda: Softmax(1.0, [0.0, 0.0])([[1.0, 2.0]], out=np.empty((2, 2))), "out must be"),
        (lambda: Softmax(1.0, [0.0, 0.0])([[1.0, 2.0]], out=np.empty((1, 2), int)), "out must be"),
    ],
)
def test_the_map_refuses(make, message):
    with pytest.raises(cal.errors.InputError, match=message):
        make()


# --- on a network's logits ----------------------------------------------------------------------


def test_on_the_logits_of_a_network(shared):
    data = np.load(shared / "data" / "nn-cifar10-resnet50-logits.npz")
    z, y, new, labels = (
        data[name] for name in ("val_logits", "val_labels", "test_logits", "test_labels")
    )
    before = log_loss(probabilities(new.astype(float)), labels)
    after = {
        name: log_loss(clone(WHOLE[name]).fit(z, y).predict_proba(new), labels)
        for name in ("temperature", "vector", "structured")
    }
    assert after["structured"] < after["vector"] < after["temperature"] < before
    assert after["structured"] == pytest.approx(0.1685, abs=5e-5)
    assert after["temperature"] == pytest.approx(0.1738, abs=5e-5)


def test_strengths_that_are_tried_stay_within_the_range_that_is_documented():
    """Scores that say nothing want the strongest ridge."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 400)
    y = rng.integers(0, 3, 400)
    for scaling in (cal.Dirichlet(gate=False), cal.MatrixScaling(gate=False)):
        scaling.fit(p, y)
        assert max(scaling.held_out_) == 1000.0
        assert min(scaling.held_out_) >= 1e-6
        assert 1e-6 <= scaling.lambda_used_ <= 1000.0
