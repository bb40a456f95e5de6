"""AutoCalibrator with the columns of rows as one more candidate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.losses import sigmoid

pytest.importorskip("lightgbm")


def world(n: int, shift: float) -> tuple:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 1.5, n)
    region = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    y = rng.random(n) < sigmoid(z + shift * (region == "north"))
    return sigmoid(z), y, pd.DataFrame({"region": region, "x": rng.normal(size=n)})


def test_columns_are_chosen_where_they_help(tmp_path):
    p, y, X = world(3000, 1.5)
    auto = cal.AutoCalibrator(candidates=["platt"]).fit(p, y, features=X)
    assert auto.chosen_ == "features"
    assert not hasattr(auto, "map_")
    names = [row.name for row in auto.leaderboard_.rows]
    assert names[0] == "features"
    assert set(names) == {"features", "BLS", "uncalibrated", "Platt"}
    local = auto.feature_calibrator_
    assert auto.leaderboard_["features"].log_loss == pytest.approx(local.losses_["features"])
    assert auto.leaderboard_["BLS"].log_loss == pytest.approx(local.losses_["BLS"])
    told = auto.explain()
    assert told.startswith("A correction by columns (features) was chosen.")
    assert "region" in told
    q = auto.calibrate(p, features=X)
    assert np.array_equal(q, local.calibrate(p, features=X))
    assert np.array_equal(auto.predict_proba(p, features=X)[:, 1], q)
    assert np.array_equal(auto.predict(p, features=X), q > 0.5)
    with pytest.raises(InputError, match="features must be passed"):
        auto.calibrate(p)
    cal.save(auto, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert sorted(loaded.rule.needs) == ["features"]
    assert loaded.provenance["chosen"] == "features"
    assert np.array_equal(loaded.calibrate(p, features=X), q)


def test_columns_that_say_nothing_leave_a_map_of_the_score():
    p, y, X = world(1400, 0.0)
    auto = cal.AutoCalibrator().fit(p, y, features=X)
    assert auto.chosen_ == "uncalibrated"
    assert np.array_equal(auto.calibrate(p), p)
    assert np.array_equal(auto.calibrate(p, features=X), p)
    assert isinstance(auto.to_fitted(), cal.Fitted)
    again = auto.fit(p, y)
    assert again.feature_calibrator_ is None


def test_features_with_several_classes_or_without_rows_to_hold_out():
    p, y, X = world(300, 0.0)
    with pytest.raises(InputError, match="two classes only"):
        cal.AutoCalibrator().fit(np.column_stack([p, p, p]), y, features=X)
    few = np.zeros(300, dtype=int)
    few[0] = 1
    auto = cal.AutoCalibrator().fit(p, few, features=X)
    assert auto.chosen_ == "uncalibrated"
    assert auto.leaderboard_ is None


def test_groups_and_splitters_are_used_for_all_candidates():
    from sklearn.model_selection import TimeSeriesSplit

    p, y, X = world(1500, 1.5)
    splits = list(TimeSeriesSplit(3).split(p))
    auto = cal.AutoCalibrator(cv=iter(splits)).fit(p, y, features=X)
    assert auto.leaderboard_.folds == 3
    grouped = cal.AutoCalibrator().fit(p, y, features=X, groups=np.repeat(np.arange(150), 10))
    assert grouped.leaderboard_.folds == 5
    assert grouped.leaderboard_["features"].log_loss == pytest.approx(
        grouped.feature_calibrator_.losses_["features"]
    )
