"""The automatic choice with soft labels: rows are held out whole, and only the gain counts."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant import ScoreTable
from calibrant.data.door import read_binary
from calibrant.fitting.held_out import HeldOutCells

RNG = np.random.default_rng(8)
N = 300
P = RNG.uniform(0.05, 0.95, N)
Q = np.clip(P**2 + RNG.normal(0.0, 0.15, N), 0.0, 1.0)
W = RNG.integers(0, 4, N).astype(float)
GROUPS = np.arange(N) // 3
NOTE = "labels are probabilities"


@pytest.fixture(scope="module")
def auto():
    return cal.AutoCalibrator(candidates=[cal.Platt()], cv=3).fit(P, Q)


def losses(p, q):
    return -q * np.log(p) - (1 - q) * np.log1p(-p)


def error_of(values, weight):
    """The standard error of a weighted mean of independent rows."""
    mean, size = weight @ values / weight.sum(), weight.sum() ** 2 / (weight @ weight)
    squares = (weight**2) @ (values - mean) ** 2
    return np.sqrt(squares / (1 - 1 / size)) / weight.sum()


@pytest.mark.parametrize("weight", [None, W])
def test_losses_are_those_of_rows_and_so_are_their_errors(weight, auto):
    found = auto if weight is None else cal.AutoCalibrator(cv=3).fit(P, Q, weight)
    size = np.ones(N) if weight is None else weight
    before = found.leaderboard_["uncalibrated"]
    one = losses(P, Q)
    assert before.log_loss == pytest.approx(size @ one / size.sum(), rel=1e-12)
    assert before.log_loss_se == pytest.approx(error_of(one, size), rel=1e-12)
    brier = Q * (1 - P) ** 2 + (1 - Q) * P**2
    assert before.brier_se == pytest.approx(error_of(brier, size), rel=1e-12)


def test_what_is_chosen_is_fitted_to_all_rows(auto):
    assert auto.chosen_ != "uncalibrated"
    whole = type(auto.calibrator_)().fit(P, Q)
    assert auto.map_ == whole.map_
    assert auto.oof_[auto.chosen_].total_positive == pytest.approx(Q.sum(), rel=1e-12)
    assert auto.to_fitted().provenance["soft_labels"] == np.count_nonzero((Q > 0) & (Q < 1))


def test_it_is_said_that_labels_are_soft(auto):
    assert NOTE in auto.explain()
    assert NOTE in str(auto.leaderboard_).replace("\n", " ")
    hard = cal.AutoCalibrator(cv=3).fit(P, Q > 0.5)
    assert NOTE not in hard.explain()


def test_scores_that_are_right_are_kept():
    share = np.clip(P + RNG.choice([-0.05, 0.05], N), 0.0, 1.0)
    found = cal.AutoCalibrator(cv=3).fit(P, share)
    assert found.chosen_ == "uncalibrated"
    assert NOTE in found.explain()


def test_counts_of_soft_labels():
    s, share, w = np.repeat([0.2, 0.4, 0.6, 0.8], 10), np.repeat([0.25, 0.25, 0.5, 1.0], 10), 4.0
    found = cal.AutoCalibrator(cv=2, weights="counts").fit(s, share, np.full(40, w))
    assert found.leaderboard_.weight == 160.0


def test_the_order_of_rows_does_not_matter():
    share, weight = np.round(Q, 1), np.where(W > 1, 2.0, 1.0)
    score = np.round(P, 1)  # many rows of one score, of different labels and weights
    one = cal.AutoCalibrator(cv=3).fit(score, share, weight)
    order = RNG.permutation(N)
    two = cal.AutoCalibrator(cv=3).fit(score[order], share[order], weight[order])
    for row in one.leaderboard_.rows:
        assert row.log_loss == pytest.approx(two.leaderboard_[row.name].log_loss, rel=1e-12)
    assert np.abs(one.calibrate(score) - two.calibrate(score)).max() < 1e-12


@pytest.mark.parametrize(("cv", "groups"), [(4, None), (4, GROUPS), (0.3, None), (0.3, GROUPS)])
def test_both_halves_of_a_row_are_in_one_fold(cv, groups):
    rows = read_binary(P, Q, W, soft=True)
    held_out = HeldOutCells.of_rows(rows, cv, groups, 0)
    assert ScoreTable.from_rows(rows) == ScoreTable.from_soft_labels(P, Q, W)
    place = {score: row for row, score in enumerate(P)}  # all scores are different
    for rest, here in zip(held_out.rests, held_out.cells, strict=True):
        held = np.array([place[score] for score in held_out.scores[here]])
        negative, positive, _, _ = held_out.columns.take(here)
        assert positive == pytest.approx(W[held] * Q[held], rel=1e-12)
        assert negative == pytest.approx(W[held] * (1 - Q[held]), rel=1e-12)
        learned = np.array([place[score] for score in rest.scores])
        assert not set(held) & set(learned)
        assert rest == ScoreTable.from_soft_labels(P[learned], Q[learned], W[learned])
        if groups is not None:
            assert not set(groups[held]) & set(groups[learned])
    if cv == 4:
        assert sorted(held_out.scores) == sorted(P[W > 0])


def test_fewer_folds_for_a_rare_class_and_none_for_a_single_row():
    share = np.zeros(N)
    share[:20] = 0.125  # two and a half rows
    few = cal.AutoCalibrator(cv=5).fit(P, share)
    assert few.leaderboard_.folds == 2
    share[12:] = 0.0
    none = cal.AutoCalibrator(cv=5).fit(P, share)
    assert none.leaderboard_ is None
    assert "fewer than two positives" in none.refused_


def test_a_candidate_that_reads_scores_the_other_way_is_refused():
    wrong = cal.AutoCalibrator(candidates=[cal.Platt(pos_label=0)])
    with pytest.raises(cal.errors.ParameterError, match="pos_label of Platt is 0"):
        wrong.fit(P, Q)
