"""FeatureCalibrator: corrections from columns, kept only where rows held out say that they help."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.errors import AdviceWarning, InputError, MissingExtraError, ParameterError
from calibrant.losses import sigmoid

pytest.importorskip("lightgbm")


def world(n: int = 3000, seed: int = 0, shift: float = 1.5) -> tuple:
    """Scores that are right on average, but wrong in the north and above 45 years."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, n)
    region = np.array(["north", "south", "east", None], dtype=object)[rng.integers(0, 4, n)]
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40.0, 10.0, n))
    true = z + shift * (region == "north") - shift * (age > 45)
    y = rng.random(n) < sigmoid(true)
    return sigmoid(z), y, pd.DataFrame({"region": region, "age": age}), true


P, Y, X, TRUE = world()
FITTED = cal.FeatureCalibrator().fit(P, Y, features=X)


def excess(p: np.ndarray, true: np.ndarray) -> float:
    """The expected log loss beyond that of the true probabilities."""
    q = sigmoid(true)
    return float(np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))))


def test_it_corrects_groups_that_a_map_of_the_score_cannot():
    p, _, new, true = world(20_000, seed=1)
    after = FITTED.calibrate(p, features=new)
    assert FITTED.kept_ == "features"
    assert FITTED.rounds_ >= 1
    assert excess(after, true) < 0.2 * excess(cal.BLS().fit(P, Y).calibrate(p), true)
    assert set(list(FITTED.importances_)[:2]) == {"region", "age"}
    assert sum(FITTED.importances_.values()) == pytest.approx(1.0)
    assert FITTED.losses_["features"] < FITTED.losses_["BLS"]
    gain, low, high = FITTED.gains_["uncalibrated"]
    assert 0 < low < gain < high
    assert gain == pytest.approx(FITTED.losses_["uncalibrated"] - FITTED.losses_["features"])


def test_explain_says_how_much_from_which_columns_and_for_which_groups():
    told = FITTED.explain()
    assert told.startswith("The columns help: ")
    assert "region (" in told
    north = next(one for one in FITTED.groups_ if one.group == "north")
    assert abs(north.after - north.rate) < abs(north.before - north.rate)
    assert north.gain > 0
    assert f"region = north ({north.weight:,.0f} rows)" in told


@pytest.mark.parametrize("seed", range(3))
def test_scores_that_are_right_already_are_kept(seed):
    p, _, features, _ = world(1500, seed=seed)
    y = np.random.default_rng(seed + 10).random(1500) < p
    c = cal.FeatureCalibrator().fit(p, y, features=features)
    assert c.kept_ == "uncalibrated"
    assert c.rounds_ == 0
    assert np.array_equal(c.calibrate(p), p)  # and no features are needed
    assert "The columns do not help beyond noise, so the scores stay as they are." in c.explain()
    assert c.importances_ == {}
    assert c.groups_ == ()


def test_where_only_the_curve_helps_it_is_the_curve():
    p, _, features, _ = world(2000)
    y = np.random.default_rng(1).random(2000) < p**3
    c = cal.FeatureCalibrator().fit(p, y, features=features)
    assert c.kept_ == "BLS"
    assert np.array_equal(c.calibrate(p), cal.BLS().fit(p, y).calibrate(p))
    assert "a smooth curve of the score (BLS) is kept" in c.explain()


def test_the_gate_can_be_left_out_and_rounds_given():
    p, _, features, _ = world(1500)
    y = np.random.default_rng(3).random(1500) < p
    c = cal.FeatureCalibrator(gate=False, rounds=2).fit(p, y, features=features)
    assert c.kept_ == "features"
    assert c.rounds_ == 2
    assert c.losses_ is None
    assert "nothing was held out" in c.explain()


def test_what_it_gives_is_what_lightgbm_gives():
    import lightgbm

    from calibrant.methods.features.calibrator import Growth
    from calibrant.methods.features.rule import sum_of_leaves

    rng = np.random.default_rng(0)
    M = rng.normal(size=(6000, 4))
    M[:, 1] = rng.integers(0, 12, 6000)
    M[rng.random(6000) < 0.2, 2] = np.nan
    M[rng.random(6000) < 0.1, 1] = np.nan
    y = (rng.random(6000) < sigmoid(M[:, 3] + (M[:, 1] > 6) - 0.5 * np.isnan(M[:, 2]))).astype(
        float
    )
    options = {"objective": "binary", "num_leaves": 5, "min_data_in_leaf": 50, "max_bin": 63}
    options |= {"min_gain_to_split": 0.15, "deterministic": True, "verbosity": -1, "seed": 0}
    trees, _ = Growth(M, y, np.ones(6000), [1], 20, options).grow_trees()
    told = {"num_threads": 1, **options}
    data = lightgbm.Dataset(M, y, init_score=M[:, 3].copy(), categorical_feature=[1], params=told)
    booster = lightgbm.train(told, data, 20)
    expected = booster.predict(M, raw_score=True)
    assert np.array_equal(sum_of_leaves(trees.layout, M), expected)
    assert (trees.subset >= 0).any()


def test_saved_and_loaded_it_gives_the_same_bits(tmp_path):
    cal.save(FITTED, tmp_path / "c.json")
    assert len(list(tmp_path.iterdir())) == 1
    loaded = cal.load(tmp_path / "c.json")
    assert np.array_equal(loaded.calibrate(P, features=X), FITTED.calibrate(P, features=X))
    assert loaded.provenance["kept"] == "features"


def test_frames_arrays_and_orders_give_the_same():
    expected = FITTED.calibrate(P, features=X)
    assert np.array_equal(FITTED.calibrate(P, features=X[["age", "region"]]), expected)
    assert np.array_equal(FITTED.calibrate(P, features=X.to_numpy(dtype=object)), expected)
    assert np.array_equal(FITTED.calibrate(P, features=pl.from_pandas(X)), expected)
    again = cal.FeatureCalibrator().fit(P, Y, features=X.to_numpy(dtype=object))
    assert np.array_equal(again.calibrate(P, features=X.to_numpy(dtype=object)), expected)
    assert np.array_equal(FITTED.predict_proba(P, features=X)[:, 1], expected)
    assert set(FITTED.predict(P, features=X)) == {False, True}


def test_new_categories_count_as_missing():
    rows = pd.DataFrame({"region": ["west", None], "age": [30.0, 30.0]})
    a, b = FITTED.calibrate([0.4, 0.4], features=rows)
    assert a == b


def test_labels_and_the_other_class_turn_round():
    words = np.where(Y, "good", "bad")
    c = cal.FeatureCalibrator(pos_label="bad").fit(1.0 - P, words, features=X)
    assert (
        np.abs(c.calibrate(1.0 - P, features=X) + FITTED.calibrate(P, features=X) - 1).max() < 0.1
    )
    assert c.predict_proba(1.0 - P, features=X)[:, 0] == pytest.approx(
        c.calibrate(1.0 - P, features=X)
    )


def test_weights_of_zero_are_rows_that_are_absent():
    more = np.append(P, [0.5] * 50)
    y = np.append(Y, [True] * 50)
    rows = pd.concat([X, pd.DataFrame({"region": ["nowhere"] * 50, "age": [9e9] * 50})])
    weight = np.append(np.ones(len(P)), np.zeros(50))
    c = cal.FeatureCalibrator().fit(more, y, features=rows, sample_weight=weight)
    assert np.array_equal(c.calibrate(P, features=X), FITTED.calibrate(P, features=X))


def test_groups_are_held_out_together():
    groups = np.repeat(np.arange(300), 10)
    c = cal.FeatureCalibrator().fit(P, Y, features=X, groups=groups)
    cluster = c.trial_.sample.cluster
    assert cluster is not None
    sizes = [len(P) // c.trial_.folds] * c.trial_.folds
    folds = np.split(cluster, np.cumsum(sizes)[:-1])
    assert sum(len(set(fold)) for fold in folds) <= 300 + 2 * c.trial_.folds


def test_the_number_of_rounds_is_chosen_by_other_rows():
    from calibrant.methods.features.calibrator import Growth, rounds_held_out

    class Told(Growth):
        """Rounds whose effect on the rows held out is known beforehand."""

        def __init__(self, logits: list[list[float]]) -> None:
            self.rest, self.held = [np.array(z) for z in logits[1:]], np.array([logits[0]]).T

        def add_round(self) -> bool:
            if not self.rest:
                return False
            self.held = self.rest.pop(0)[:, None]
            return True

    # one round is right for the first fold and wrong for the second, and worse for both in sum
    first, second = Told([[0.0], [2.0]]), Told([[0.0], [-4.0]])
    logits, best, _ = rounds_held_out(
        [first, second], np.array([1.0, 1.0]), np.ones(2), np.array([0, 1])
    )
    assert best == 0
    assert logits.tolist() == [0.0, -4.0]  # each by what is best for the other


def test_a_constant_column_and_a_leak_are_told():
    rng = np.random.default_rng(0)
    leaky = X.assign(one=1, answer=np.where(Y, 5.0, 1.0) + 0.01 * rng.normal(size=len(Y)))
    with pytest.warns(AdviceWarning) as warned:
        c = cal.FeatureCalibrator().fit(P, Y, features=leaky)
    texts = [str(one.message) for one in warned]
    assert any("single value and are left out: one" in text for text in texts)
    assert any("answer alone tells the classes apart" in text for text in texts)
    assert c.notes_ == tuple(texts)
    assert "leaks the label" in c.explain()
    names = np.array([f"row {i}" for i in range(len(P))])
    named = cal.FeatureCalibrator().fit(P, Y, features=X.assign(name=names))
    assert named.notes_ == ()  # a name of one row each says nothing of the next row


def test_few_rows_keep_the_scores_or_the_curve():
    c = cal.FeatureCalibrator().fit(P[:60], Y[:60], features=X[:60])
    assert c.kept_ != "features"
    y = np.zeros(30, dtype=int)
    y[0] = 1
    c = cal.FeatureCalibrator().fit(P[:30], y, features=X[:30])
    assert c.kept_ == "uncalibrated"
    assert "fewer than two rows of a class" in c.explain()


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="features must be passed"):
        cal.FeatureCalibrator().fit(P, Y)
    with pytest.raises(InputError, match="age must be finite or missing"):
        cal.FeatureCalibrator().fit(P, Y, features=X.assign(age=np.inf))
    with pytest.raises(InputError, match="is for two classes"):
        cal.FeatureCalibrator().fit(P, np.arange(len(P)) % 3, features=X)
    with pytest.raises(ParameterError, match="rounds of FeatureCalibrator must be"):
        cal.FeatureCalibrator(rounds=0).fit(P, Y, features=X)


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"calibrant\[features\]"):
        cal.FeatureCalibrator().fit(P, Y, features=X)


@pytest.mark.full
def test_around_a_model():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    M = rng.normal(size=(3000, 3))
    y = rng.random(3000) < sigmoid(M[:, 0] + 2.0 * (np.abs(M[:, 1]) > 1))
    c = cal.CalibratedClassifier(LogisticRegression(), cal.FeatureCalibrator(), cv=3).fit(M, y)
    loss = cal.metrics.log_loss
    plain = LogisticRegression().fit(M[:2000], y[:2000]).predict_proba(M[2000:])[:, 1]
    assert loss(y[2000:], c.predict_proba(M[2000:])[:, 1]) < loss(y[2000:], plain) - 0.03


def test_trees_that_split_on_the_score_alone_need_no_columns():
    rng = np.random.default_rng(4)
    p = rng.random(3000)
    y = rng.random(3000) < np.where(p > 0.5, 0.9, 0.1)
    frame = pd.DataFrame({"nothing": np.zeros(3000)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = cal.FeatureCalibrator(gate=False, rounds=2).fit(p, y, features=frame)
    assert c.kept_ == "features"
    assert c.rule_.used == ()
    wanted = c.calibrate(p, features=frame)
    assert np.array_equal(c.calibrate(p, features=frame[[]]), wanted)
    assert len(set(wanted.tolist())) > 1


def test_explain_says_that_trees_found_nothing_where_nothing_was_held_out():
    c = cal.FeatureCalibrator(gate=False, rounds=2).fit(P[:40], Y[:40], features=X[:40])
    assert c.kept_ == "BLS"
    assert c.explain().startswith("A smooth curve of the score (BLS) is kept: the trees found")
