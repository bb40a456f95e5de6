"""Out-of-fold estimates are honest: on noise nothing can be gained, whatever the weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.fitting.folds import TableFolds
from held_out import out_of_fold
from strategies import REAL, rows


def log_loss(table):
    p = np.clip(table.scores, 1e-12, 1 - 1e-12)
    return -(table.positive @ np.log(p) + table.negative @ np.log1p(-p)) / table.total


@given(st.one_of(rows(), rows(weight=REAL)), st.integers(2, 7))
def test_folds_add_up_to_the_table(data, k):
    table = cal.ScoreTable.from_arrays(*data, classes=[0, 1])
    held = [TableFolds(table, k).held(fold) for fold in range(k)]
    columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
    for column, parts in zip(columns, zip(*held, strict=True), strict=True):
        assert np.allclose(sum(parts), column, rtol=1e-12, atol=0)


def test_rows_of_equal_weight_are_dealt_whole():
    rng = np.random.default_rng(0)
    s, y = rng.random(200), rng.integers(0, 2, 200)
    table = cal.ScoreTable.from_arrays(s, y, np.full(200, 100.0))
    deal = TableFolds(table, 5)
    for fold in range(5):
        held = deal.held(fold)
        assert set(np.unique(np.append(held.negative, held.positive))) == {0.0, 100.0}
        assert held.negative.sum() + held.positive.sum() == pytest.approx(4000, abs=200)


def test_cells_of_many_rows_are_divided_about_equally():
    table = cal.ScoreTable.from_counts([0.2, 0.7], [10**9, 3], [10**6, 5])
    shares = np.array([TableFolds(table, 5).held(fold).negative[0] for fold in range(5)]) / 1e9
    assert np.abs(shares - 0.2).max() < 1e-3


@pytest.mark.full
@pytest.mark.parametrize(
    "calibrator",
    [
        cal.Histogram(bins=20, smoothing="laplace"),
        cal.Isotonic(smoothing="laplace"),
        cal.SBB(lambda_=50),
        cal.Platt(),
    ],
    ids=str,
)
@pytest.mark.parametrize("weight", [None, 1.0, 3.0, 100.0, "random"], ids=str)
def test_noise_shows_no_gain(calibrator, weight):
    """On pure noise the mean out-of-fold loss is at least ln 2, and near that of new data."""
    losses, fresh = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        s, y = rng.random(200), rng.integers(0, 2, 200)
        w = rng.uniform(0.5, 2, 200) if weight == "random" else weight and np.full(200, weight)
        table = cal.ScoreTable.from_arrays(s, y, w)
        losses.append(log_loss(out_of_fold(calibrator, table, 5)))
        p = np.clip(type(calibrator)(**calibrator.get_params()).fit(s, y, w).calibrate(s), 1e-9, 1)
        fresh.append(np.mean(-0.5 * (np.log(p) + np.log1p(-np.minimum(p, 1 - 1e-9)))))
    assert np.mean(losses) > np.log(2)
    error = np.std(losses) / 5
    assert np.mean(losses) > np.mean(fresh) - 4 * error - 0.02


def test_weights_keep_their_effective_size():
    rng = np.random.default_rng(0)
    s, y = rng.random(400), rng.integers(0, 2, 400)
    table = cal.ScoreTable.from_arrays(s, y, np.full(400, 100.0))
    after = out_of_fold(cal.Platt(), table, 5)
    assert after.effective_size == pytest.approx(400)
    assert after.total == pytest.approx(table.total)


def test_automatic_bins_are_few_on_noise():
    chosen = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chosen.append(
            cal.Histogram(bins="auto").fit(rng.random(1000), rng.integers(0, 2, 1000)).bins_
        )
    assert np.median(chosen) <= 4


def test_two_folds_at_least():
    table = cal.ScoreTable.from_arrays([0.1, 0.9], [0, 1])
    with pytest.raises(cal.errors.ParameterError, match="at least 2"):
        out_of_fold(cal.Platt(), table, 1)
