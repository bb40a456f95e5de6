"""The automatic choice for many classes: its members, what they cost, and what it says."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant.auto import auto as room
from calibrant.auto.auto import members_for, reasons_left_out
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.fitting import folds
from calibrant.fitting.folds import count_large_parts
from calibrant.fitting.held_out import HeldOutMatrix
from calibrant.solvers.weights import mixture_weights


def draw(n, k, seed=0, dtype=np.float32):
    """Logits that are too sure, with classes that need different factors."""
    rng = np.random.default_rng(seed)
    z = (2.0 * rng.normal(size=(n, k))).astype(dtype)
    y = (z * rng.uniform(0.3, 0.8, k) + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, y


def test_few_classes_have_the_members_that_were_studied():
    names = ["temperature", "structured, weak ridge", "structured", "one-vs-rest BLS"]
    for k in (3, 20, 26, room.FEW_CLASSES):
        assert list(members_for(k, rows=10)) == names
        assert reasons_left_out(k, 10) == ()
        assert count_large_parts(ScoreMatrix(np.zeros((9, k)), np.zeros(9, dtype=int)), 5) == 0


@pytest.mark.parametrize(
    ("rows", "k", "vector", "matrix"),
    [(5000, 100, True, True), (25_000, 1000, True, False), (1000, 128_000, False, False)],
)
def test_many_classes_have_members_by_their_cost(rows, k, vector, matrix):
    members = members_for(k, rows=rows)
    assert ("structured vector" in members, "structured" in members) == (vector, matrix)
    assert {"ensemble temperature", "top-label BLS"} <= set(members)
    assert "one-vs-rest BLS" not in members
    large = rows * k > room.FOLDED_NUMBERS
    assert ("temperature" in members) != large
    assert len(reasons_left_out(k, rows)) == 1 + large + (not vector) + (not matrix)
    assert all(not one.gate for one in members.values() if hasattr(one, "gate"))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_it_helps_and_says_what_was_left_out(kind, tmp_path):
    z, y = draw(3000, 40, dtype=np.float64)
    scores = z if kind == "logits" else softmax(z, axis=1)
    auto = cal.AutoCalibrator().fit(scores[:1500], y[:1500])
    assert len(auto.leaderboard_) == 7
    assert auto.leaderboard_.folds == 5
    assert "Left out: one-vs-rest BLS, which fits a curve to each of the 40 classes" in (
        auto.explain()
    )
    assert "left out: one-vs-rest BLS" in str(auto.leaderboard_)
    assert auto.leaderboard_.to_dict()["left_out"] == list(reasons_left_out(40, 1500))
    p = auto.predict_proba(scores[1500:], on_range="allow")
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    before, after = (
        cal.metrics.log_loss(y[1500:], q, classes=list(range(40)))
        for q in (softmax(z[1500:], axis=1), p)
    )
    assert after < before - 0.05
    cal.save(auto, tmp_path / "a.json")
    loaded = cal.load(tmp_path / "a.json")
    assert loaded.predict_proba(scores[1500:], on_range="allow").tolist() == p.tolist()


def test_a_large_matrix_holds_out_a_single_part(monkeypatch):
    z, y = draw(600, 40)
    matrix = ScoreMatrix(z, y)
    assert HeldOutMatrix.of_matrix(matrix, np.arange(40), 5).folds == 5
    monkeypatch.setattr(folds, "FOLDED_NUMBERS", 1000)
    held = HeldOutMatrix.of_matrix(matrix, np.arange(40), 5)
    [(train, test)] = held.pairs
    assert held.groups is None
    assert len(test) == 120
    assert sorted([*train, *test]) == list(range(600))
    monkeypatch.setattr(folds, "HELD_NUMBERS", 2400)
    monkeypatch.setattr(folds, "LEAST_HELD", 50)
    [(train, test)] = HeldOutMatrix.of_matrix(matrix, np.arange(40), 5).pairs
    assert len(test) == 60
    auto = cal.AutoCalibrator().fit(z, y)
    assert auto.leaderboard_.folds == 1
    assert auto.leaderboard_.weight == 60
    assert {len(held) for held in auto.oof_.values()} == {60}
    assert sorted(auto.oof_) == sorted(row.name for row in auto.leaderboard_.rows)


def test_the_mixture_of_a_single_part_is_judged_by_halves(monkeypatch):
    """Shares found on the very rows that they are judged on would flatter the mixture."""
    monkeypatch.setattr(folds, "FOLDED_NUMBERS", 1000)
    z, y = draw(800, 40)
    auto = cal.AutoCalibrator().fit(z, y)
    oof = {name: one.scores.astype(float) for name, one in auto.oof_.items()}
    members = list(members_for(40, rows=800))
    codes = auto.oof_["mixture"].codes
    rows = np.arange(len(codes))
    own = np.column_stack([oof[name][rows, codes] for name in members])
    want = np.empty(len(rows))
    for half in (0, 1):
        here = rows % 2 == half
        want[here] = own[here] @ mixture_weights(own[~here], np.ones((~here).sum()), 0.3)
    assert oof["mixture"][rows, codes] == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("name", ["top-label BLS", "ensemble temperature", "structured vector"])
def test_whatever_is_chosen_is_saved(name, tmp_path, monkeypatch):
    z, y = draw(300, 35)
    monkeypatch.setattr("calibrant.auto.auto.choose", lambda judged, sample, **_: (name, {name}))
    auto = cal.AutoCalibrator().fit(z, y)
    cal.save(auto, tmp_path / "a.json")
    want = auto.predict_proba(z).tolist()
    assert cal.load(tmp_path / "a.json").predict_proba(z).tolist() == want


def test_hardly_a_row():
    z, y = draw(4, 50)
    p = cal.AutoCalibrator().fit(z, y).predict_proba(z)
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.full
def test_memory_is_three_matrices_at_most():
    z, y = draw(30_000, 400)  # more than is kept as features between passes
    cal.AutoCalibrator().fit(z[:300], y[:300])  # what is made once is made
    tracemalloc.start()
    try:
        auto = cal.AutoCalibrator().fit(z, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert auto.leaderboard_.folds == 1
    assert peak < 3 * z.nbytes
