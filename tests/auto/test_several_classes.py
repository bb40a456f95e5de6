"""The mixture for several classes: its shares, what its members see, and sets of every kind."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone

import calibrant as cal
from calibrant.auto import auto as room
from calibrant.auto.auto import MemberView, members_for
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.fitting import held_out as parts
from calibrant.fitting.held_out import HeldOutMatrix
from calibrant.maps import Softmax, VectorMixture
from calibrant.rules.softmax import seen_by_members
from calibrant.solvers.weights import mixture_weights
from twins import auto as naive


def draw(n=300, k=3, factor=2.5, seed=0, shift=0.0):
    """Logits of which y's are ``factor`` times smaller, and all shifted towards the last class."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    y = (z + shift * (np.arange(k) == k - 1) + rng.gumbel(size=z.shape)).argmax(axis=1)
    return factor * z, y


def folds(n, count=4):
    fold = np.arange(n) % count
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(count)]


# --- shares -------------------------------------------------------------------------------------


def by_general_optimiser(likelihood, weight, pseudo=1.0):
    """The same shares, by a general method in the logarithms of shares that need not sum to one."""
    m = likelihood.shape[1]

    def below(logs):
        shares = softmax(logs)
        return -naive.mixture_likelihood(likelihood, weight, shares, pseudo)

    found = minimize(below, np.zeros(m), method="BFGS", options={"gtol": 1e-8, "maxiter": 2000})
    return softmax(found.x)


@given(st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.3, 1.0]), st.integers(0, 10_000))
@example(4, 1, 0.3, 0)
def test_shares_against_a_general_optimiser(m, n, pseudo, seed):
    rng = np.random.default_rng(seed)
    likelihood = rng.random((n, m)) ** 3 + 1e-12
    weight = rng.gamma(1.0, size=n) + 1e-3
    found = mixture_weights(likelihood, weight, pseudo)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert found == pytest.approx(by_general_optimiser(likelihood, weight, pseudo), abs=2e-4)


@given(st.integers(1, 6), st.integers(1, 60), st.integers(0, 10_000))
@example(3, 40, 1)
def test_shares_stay_where_one_step_of_em_puts_them(m, n, seed):
    """EM's fixed point: each share is its part of all rows, with one pseudo-row for each member."""
    rng = np.random.default_rng(seed)
    likelihood = rng.random((n, m)) ** rng.choice([1, 5, 50])
    likelihood[rng.random(likelihood.shape) < 0.2] = 0.0
    weight = rng.gamma(0.3, size=n) * rng.choice([1e-3, 1.0, 1e3])
    shares = mixture_weights(likelihood, weight)
    assert shares.min() > 0
    counts = [1.0] * m
    for row, w in zip(likelihood, weight, strict=True):
        whole = sum(s * p for s, p in zip(shares, row, strict=True))
        for j in range(m):
            counts[j] += w * shares[j] * row[j] / whole if whole > 0 else 0.0
    assert shares == pytest.approx(np.array(counts) / sum(counts), abs=1e-9)


def test_shares_without_anything_to_go_by():
    assert mixture_weights(np.zeros((3, 2)), np.ones(3)).tolist() == [0.5, 0.5]
    assert mixture_weights(np.empty((0, 4)), np.empty(0)).tolist() == [0.25] * 4
    equal = mixture_weights(np.full((5, 3), 1e-310), np.ones(5))
    assert equal == pytest.approx(1 / 3)


# --- the figures --------------------------------------------------------------------------------


def test_mixture_against_plain_steps():
    """Members fitted one by one, shares by the general optimiser, a fold by the other folds'."""
    z, y = draw(240, factor=3.0, shift=1.0)
    pairs = folds(240)
    auto = cal.AutoCalibrator(cv=pairs).fit(z, y)
    t = cal.Temperature().fit(z, y).temperature_
    assert t > 1
    p = softmax(z / t, axis=1)
    floor = min(max(p.min() / 2, 1e-7), 1e-2)
    p = np.maximum(p, floor) / np.maximum(p, floor).sum(axis=1, keepdims=True)
    order = np.concatenate([test for _, test in pairs])
    fold = np.repeat(range(4), 60)
    own = []
    for member in members_for(3, rows=300).values():
        held = [clone(member).fit(p[a], y[a]).predict_proba(p[b]) for a, b in pairs]
        own.append(np.concatenate(held)[np.arange(240), y[order]])
        one = auto.leaderboard_[list(members_for(3, rows=300))[len(own) - 1]]
        assert one.log_loss == pytest.approx(-np.log(own[-1]).mean(), rel=1e-9)
    own = np.column_stack(own)
    loss = np.empty(240)
    for f in range(4):
        here = fold == f
        loss[here] = -np.log(
            own[here] @ by_general_optimiser(own[~here], np.ones(180), room.PSEUDO)
        )
    expected = naive.mean_and_error(loss.tolist(), [1.0] * 240)
    row = auto.leaderboard_["mixture"]
    assert (row.log_loss, row.log_loss_se) == pytest.approx(expected, rel=1e-4)


def test_only_the_ratios_of_weights_count_for_shares_and_judgement():
    z, y = draw(200)
    matrix = ScoreMatrix(z, y, np.full(200, 1e-6))
    pairs = HeldOutMatrix.of_matrix(matrix, np.arange(3), 4).pairs
    light, whole = (HeldOutMatrix(one, pairs) for one in (matrix, ScoreMatrix(z, y)))
    one, other = (
        room.judge_classes({}, held, progress=False)["temperature"].log_loss
        for held in (light, whole)
    )
    assert light.sample.mean(one) == pytest.approx(whole.sample.mean(other))
    assert light.sample.error(one) == pytest.approx(whole.sample.error(other))


def test_the_order_of_rows_plays_no_part():
    z, y = draw(150)
    shuffled = np.random.default_rng(1).permutation(150)
    one, other = (cal.AutoCalibrator().fit(z[i], y[i]) for i in (np.arange(150), shuffled))
    for row in one.leaderboard_.rows:
        assert row.log_loss == pytest.approx(other.leaderboard_[row.name].log_loss, rel=1e-7)
    assert one.chosen_ == other.chosen_


def test_many_rows_are_judged_by_some_of_them(monkeypatch):
    z, y = draw(900)
    monkeypatch.setattr(parts, "MOST_JUDGED", 300)
    auto = cal.AutoCalibrator().fit(z, y)
    assert auto.leaderboard_.weight == 300
    monkeypatch.undo()
    all_rows = cal.AutoCalibrator().fit(z, y)
    assert all_rows.leaderboard_.weight == 900
    for name in ("uncalibrated", "temperature", "mixture"):
        one, other = auto.leaderboard_[name], all_rows.leaderboard_[name]
        assert abs(one.log_loss - other.log_loss) < 4 * one.log_loss_se
    folds = HeldOutMatrix.of_matrix(ScoreMatrix(z, y), np.arange(3), 5)
    kept = [np.concatenate(pair) for pair in folds.pairs]
    assert all(sorted(rows) == list(range(900)) for rows in kept)


# --- what members see ---------------------------------------------------------------------------


def test_the_size_of_logits_changes_nothing():
    """Logits a million times too large are as good as any: their order is kept."""
    z, y = draw(300, factor=5.0)
    boards = [cal.AutoCalibrator().fit(c * z, y).leaderboard_ for c in (1.0, 40.0, 1e6)]
    for name in ("temperature", "structured", "one-vs-rest BLS", "mixture"):
        losses = [board[name].log_loss for board in boards]
        assert losses == pytest.approx([losses[0]] * 3, rel=1e-4)
    alone = cal.Temperature().fit(z, y)
    plain = cal.metrics.log_loss(y, alone.predict_proba(z))
    assert boards[2]["temperature"].log_loss == pytest.approx(plain, abs=0.02)


def test_probabilities_of_naive_bayes_are_told_apart_below_the_floor():
    z, y = draw(400, factor=60.0)
    p = softmax(z, axis=1)
    assert (p < 1e-12).mean() > 0.3
    auto = cal.AutoCalibrator().fit(p, y)
    raw = cal.AutoCalibrator().fit(z / 60.0, y)
    assert auto.leaderboard_["mixture"].log_loss < raw.leaderboard_["uncalibrated"].log_loss + 0.02


def test_timid_rows_are_seen_as_they_are():
    z, y = draw(400, factor=0.3)
    view = MemberView.best_for(ScoreMatrix(softmax(z, axis=1), y))
    assert view.factor == 1.0
    seen = view.of(ScoreMatrix(softmax(z, axis=1), y)).scores
    assert seen == pytest.approx(softmax(z, axis=1), abs=1e-12)
    over = MemberView.best_for(ScoreMatrix(softmax(20 * z, axis=1), y))
    assert over.factor == pytest.approx(1 / cal.Temperature().fit(20 * z, y).temperature_, rel=1e-3)


@given(st.floats(0.01, 1.0), st.floats(0.0, 0.2), st.integers(0, 1000))
def test_a_softmax_or_its_logits_are_seen_alike(factor, floor, seed):
    z = 5 * np.random.default_rng(seed).normal(size=(6, 4))
    one = seen_by_members(z, "logit", floor, factor)
    other = seen_by_members(softmax(z, axis=1), "probability", floor, factor)
    assert one == pytest.approx(other, abs=1e-9)
    assert one.sum(axis=1) == pytest.approx(1.0)
    assert one.min() >= floor / (1.0 + 4 * floor) - 1e-15


def test_seen_rows_that_are_no_distributions_are_finite():
    zeros = np.zeros((2, 3))
    for factor in (1.0, 0.5):
        assert seen_by_members(zeros, "probability", 0.0, factor).tolist() == zeros.tolist()
        assert seen_by_members(zeros, "probability", 0.1, factor) == pytest.approx(1 / 3)
    assert np.isfinite(seen_by_members(np.array([[1e308, -1e308]]), "logit", 0.0, 0.5)).all()


def test_maps_are_values_and_refuse_what_makes_no_sense():
    member = Softmax(1.0, [0.0, 0.0, 0.0], "probability")
    a = VectorMixture([1.0], (member,), "logit", 1e-3, 0.25)
    assert a == VectorMixture.from_dict(a.to_dict())
    assert a != VectorMixture([1.0], (member,), "logit", 1e-3, 0.5)
    p = a([[40.0, 0.0, 0.0]])
    assert p.max() == pytest.approx(1.0 / (1.0 + 2e-3), abs=1e-3)
    for factor in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(cal.errors.InputError, match="factor"):
            VectorMixture([1.0], (member,), "logit", 1e-3, factor)
    with pytest.raises(cal.errors.InputError, match="floor"):
        VectorMixture([1.0], (member,), "logit", 0.5)


# --- sets of every kind -------------------------------------------------------------------------


def check(auto, scores):
    p = auto.predict_proba(scores)
    assert p.shape == np.shape(scores)
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    assert auto.chosen_ == auto.leaderboard_.chosen.name
    assert (auto.refused_ is None) == (auto.chosen_ != "uncalibrated")
    return p


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_a_class_with_one_row(kind):
    z, y = draw(90)
    y = np.minimum(y, 1)
    y[40] = 2
    scores = z if kind == "logits" else softmax(z, axis=1)
    p = check(cal.AutoCalibrator().fit(scores, y), scores)
    assert p[:, 2].mean() < 0.4


def test_a_class_without_rows():
    z, y = draw(120, k=4, factor=8.0)
    y = np.minimum(y, 2)
    auto = cal.AutoCalibrator(classes=[0, 1, 2, 3]).fit(z, y)
    p = check(auto, z)
    assert 0 < p[:, 3].mean() < softmax(z, axis=1)[:, 3].mean()


@pytest.mark.parametrize("n", [2, 20])
@pytest.mark.full
def test_thirty_classes_and_hardly_a_row(n):
    z, y = draw(n, k=30)
    auto = cal.AutoCalibrator(classes=list(range(30)), cv=2).fit(z, y)
    assert len(auto.leaderboard_) == 6
    check(auto, z)


def test_twenty_rows_of_three_classes_are_not_made_much_worse():
    worse = []
    new, y_new = draw(4000, factor=1.0, seed=99)
    for seed in range(3):
        z, y = draw(20, factor=1.0, seed=seed)
        auto = cal.AutoCalibrator(classes=[0, 1, 2]).fit(z, y)
        before, after = (
            cal.metrics.log_loss(y_new, p) for p in (softmax(new, axis=1), auto.predict_proba(new))
        )
        worse.append(after - before)
    assert np.mean(worse) < 0.02
    assert max(worse) < 0.15


def test_rows_that_are_all_alike():
    y = np.array([0, 1, 1, 2] * 150)
    auto = cal.AutoCalibrator().fit(np.full((600, 3), 1 / 3), y)
    p = check(auto, np.full((2, 3), 1 / 3))
    assert auto.chosen_ != "uncalibrated"
    assert p[0] == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    assert p[0].tolist() == p[1].tolist()


def test_certain_and_always_right():
    y = np.arange(60) % 3
    auto = cal.AutoCalibrator().fit(np.eye(3)[y], y)
    assert auto.leaderboard_["uncalibrated"].certain
    assert auto.chosen_ != "uncalibrated"  # right so far; but the first wrong one would cost all
    p = auto.predict_proba(np.eye(3))
    assert p == pytest.approx(np.eye(3), abs=0.02)
    assert p.min() > 0


def test_certain_and_sometimes_wrong():
    y = np.arange(120) % 3
    said = np.where(np.arange(120) % 10 == 0, (y + 1) % 3, y)
    auto = cal.AutoCalibrator().fit(np.eye(3)[said], y)
    assert auto.leaderboard_["uncalibrated"].log_loss == np.inf
    p = check(auto, np.eye(3))
    assert np.diag(p) == pytest.approx(0.9, abs=0.05)


def test_one_zero_that_was_wrong_is_enough():
    """One row of which the scores said never: however good the others, they cannot be kept."""
    z, y = draw(150, factor=1.0, seed=4)
    p = softmax(z, axis=1)
    p[7] = 0.5 * (np.arange(3) != y[7])
    auto = cal.AutoCalibrator().fit(p, y)
    assert auto.leaderboard_["uncalibrated"].log_loss == np.inf
    assert auto.chosen_ != "uncalibrated"
    assert check(auto, p)[7, y[7]] > 1e-4


def test_float32_and_rows_on_disk(tmp_path):
    z, y = draw(200)
    small = z.astype(np.float32)
    path = tmp_path / "z.dat"
    np.memmap(path, np.float32, "w+", shape=small.shape)[:] = small
    on_disk = np.memmap(path, np.float32, "r", shape=small.shape)
    one, other = cal.AutoCalibrator().fit(small, y), cal.AutoCalibrator().fit(on_disk, y)
    assert one.map_ == other.map_
    wide = cal.AutoCalibrator().fit(small.astype(np.float64), y)
    assert one.predict_proba(small) == pytest.approx(wide.predict_proba(small), abs=1e-9)


def test_absent_rows_and_weights():
    z, y = draw(180)
    w = np.tile([0.0, 1.0, 2.0], 60)
    some = w > 0
    one = cal.AutoCalibrator().fit(z, y, w)
    other = cal.AutoCalibrator().fit(z[some], y[some], w[some])
    assert one.map_ == other.map_
    heavy = np.where(y == 0, 8.0, 1.0)
    p = cal.AutoCalibrator().fit(z, y, heavy).predict_proba(z)
    assert p[:, 0].mean() > 1.5 * cal.AutoCalibrator().fit(z, y).predict_proba(z)[:, 0].mean()


@pytest.mark.parametrize("name", ["temperature", "structured", "one-vs-rest BLS", "mixture"])
def test_whatever_is_chosen_is_saved(name, tmp_path, monkeypatch):
    z, y = draw(120, factor=30.0)
    monkeypatch.setattr("calibrant.auto.auto.choose", lambda judged, sample, **_: (name, {name}))
    auto = cal.AutoCalibrator().fit(z, y)
    cal.save(auto, tmp_path / "a.json")
    assert cal.load(tmp_path / "a.json").predict_proba(z).tolist() == check(auto, z).tolist()


@pytest.mark.full
def test_memory_is_a_few_matrices():
    """One prediction out of fold for each of six candidates, and what a fit needs."""
    z, y = draw(1500, k=4)
    cal.AutoCalibrator().fit(z[:100], y[:100])  # what is made once is made
    tracemalloc.start()
    try:
        cal.AutoCalibrator().fit(z, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * z.nbytes
