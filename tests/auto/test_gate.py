"""When the scores are kept as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import calibrant as cal
from calibrant.fitting.held_out import Sample, Trial, choose


def judged_of(losses):
    return {name: Trial(loss, loss, loss, certain=False) for name, loss in losses.items()}


@pytest.mark.parametrize("weighted", [False, True])
def test_the_p_value_is_that_of_the_test_of_calibration(weighted):
    rng = np.random.default_rng(4)
    p = rng.random(600).round(3)
    y = (rng.random(600) < p**1.1).astype(int)
    weight = rng.integers(1, 4, 600) if weighted else None
    auto = cal.AutoCalibrator(random_state=7).fit(p, y, weight)
    expected = cal.metrics.calibration_test(
        y, p, sample_weight=weight, replicates=199, random_state=7
    )
    assert auto.p_value_ == expected.p_value


def test_counts_are_rows():
    rng = np.random.default_rng(4)
    p = rng.random(300).round(2)
    y = (rng.random(300) < p).astype(int)
    times = rng.integers(1, 4, 300)
    auto = cal.AutoCalibrator(weights="counts").fit(p, y, times)
    repeated = cal.AutoCalibrator().fit(np.repeat(p, times), np.repeat(y, times))
    assert auto.p_value_ == pytest.approx(repeated.p_value_, abs=0.1)


def test_one_row_that_could_hardly_happen_refutes_the_scores():
    """The gain is that of a single row, so that its standard error is as large: no evidence by
    itself. But the scores had said that such a row comes once in a million."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.2, 0.8, 300), np.full(100, 1e-7)])
    y = np.concatenate([rng.random(300) < p[:300], np.arange(100) == 0]).astype(int)
    auto = cal.AutoCalibrator().fit(p, y)
    standing = auto.leaderboard_["BLS"]
    assert standing.gain_low < 0.0 < standing.gain
    assert auto.p_value_ == pytest.approx(0.005)
    assert auto.chosen_ == "BLS"


def test_groups_and_points_go_by_standard_errors():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    y = rng.random(400) < p
    grouped = cal.AutoCalibrator(cv=GroupKFold(5)).fit(p, y, groups=np.arange(400) // 4)
    assert grouped.p_value_ is None
    points = rng.integers(300, 850, 800)
    auto = cal.AutoCalibrator().fit(points, rng.random(800) < (points - 300) / 550)
    assert auto.p_value_ is None
    assert auto.chosen_ == "BLS"
    before = rng.random(400)
    noise = rng.normal(size=400)
    noise -= noise.mean()
    sample = Sample(np.ones(400), np.ones(400))
    error = sample.error(noise)
    for ahead, chosen in ((1.5, "uncalibrated"), (1.8, "BLS")):
        losses = {"uncalibrated": before, "BLS": before - ahead * error + noise}
        assert choose(judged_of(losses), sample)[0] == chosen


def test_a_test_or_the_gain_itself_refutes_the_scores():
    rng = np.random.default_rng(3)
    before, noise = rng.random(50), rng.normal(size=50)
    noise -= noise.mean()
    sample = Sample(np.ones(50), np.ones(50))
    error = sample.error(noise)
    cases = ((-0.1, 0.005, False), (0.1, 0.005, True), (1.5, 0.055, False), (1.8, 0.055, True))
    for ahead, right, changed in cases:
        losses = {"uncalibrated": before, "BLS": before - ahead * error + noise}
        chosen = choose(judged_of(losses), sample, p_value=right)[0]
        assert chosen == ("BLS" if changed else "uncalibrated")


def test_a_refusal_says_why():
    rng = np.random.default_rng(11)
    said = set()
    for _ in range(14):
        p = rng.random(150)
        auto = cal.AutoCalibrator().fit(p, rng.random(150) < p)
        if auto.refused_ is None:
            continue
        shown = "nothing shows that they are wrong" in auto.refused_
        assert shown == (auto.leaderboard_["BLS"].gain > 0)
        said.add(shown)
        if auto.p_value_ <= 0.05:
            assert not shown
    assert said == {True, False}


@pytest.mark.full
def test_scores_that_are_right_are_changed_in_one_of_twenty_samples_at_most():
    rng = np.random.default_rng(2)
    changed = 0
    for _ in range(200):
        p = rng.beta(1, 3, 200)
        changed += cal.AutoCalibrator().fit(p, rng.random(200) < p).chosen_ != "uncalibrated"
    assert changed <= 20  # 5 % are 10; 20 or more come once in 400 such runs


def test_a_wrong_zero_is_seen_among_many_scores():
    """Above 200,000 distinct scores the folds are of pooled cells, where a 0 is no longer one."""
    rng = np.random.default_rng(0)
    p = rng.random(210_000)
    y = (rng.random(210_000) < p).astype(int)
    p[0], y[0] = 0.0, 1
    auto = cal.AutoCalibrator().fit(p, y)
    assert auto.p_value_ == 0.0
    assert auto.chosen_ == "BLS"


def test_a_table_forgets_what_was_fitted_before():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    few = cal.ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 0, 1])
    auto = cal.AutoCalibrator().fit(p, rng.random(200) < p, features=rng.normal(size=(200, 2)))
    assert auto.p_value_ is not None
    auto.fit_table(few)
    assert auto.p_value_ is None
    assert auto.feature_calibrator_ is None
    assert "fewer than two positives" in auto.explain()
    fresh = cal.AutoCalibrator().fit_table(few)
    assert fresh.p_value_ is None
    assert fresh.explain() == auto.explain()


def test_five_percent_is_five_percent():
    sample = Sample(np.ones(4), np.ones(4))
    losses = {"uncalibrated": np.array([1.0, 2, 3, 4]), "BLS": np.array([1.0, 2, 3, 3.9])}
    assert choose(judged_of(losses), sample, p_value=10 / 200)[0] == "BLS"
    assert choose(judged_of(losses), sample, p_value=11 / 200)[0] == "uncalibrated"
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(100):
        p = rng.random(60)
        test = cal.metrics.calibration_test(rng.random(60) < p, p, replicates=199)
        found.add(test.p_value)
    assert all(p * 200 == round(p * 200) or p == round(p * 200) / 200 for p in found)


def test_equal_losses_do_not_differ_by_rounding():
    loss = np.random.default_rng(0).random(1000)
    shifted = (loss + 1.0) - 1.0 - 1e-17
    sample = Sample(np.ones(1000), np.ones(1000))
    losses = {"uncalibrated": loss, "BLS": loss, "features": shifted}
    assert choose(judged_of(losses), sample, demanding=("features",))[0] == "uncalibrated"


def test_counts_that_are_not_whole_are_judged_by_the_gain():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    auto = cal.AutoCalibrator(weights="counts").fit(
        p, rng.random(300) < p**3, rng.random(300) + 0.5
    )
    assert auto.p_value_ is None
    assert auto.chosen_ == "BLS"


def test_a_candidate_may_not_be_called_features():
    with pytest.raises(cal.errors.ParameterError, match="other names than 'features'"):
        cal.AutoCalibrator(candidates={"features": cal.Platt()}).fit([0.1, 0.2, 0.8], [0, 1, 1])


def test_a_refusal_names_a_candidate_that_could_have_been_taken():
    """Histogram gives exact 0 and 1, and so is none, however much it gains."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        p = rng.random(60)
        auto = cal.AutoCalibrator(candidates=[cal.Histogram(bins=10)]).fit(p, rng.random(60) < p)
        if auto.refused_ is not None and auto.leaderboard_["Histogram"].certain:
            assert "the best candidate, BLS," in auto.refused_
            assert ("nothing shows" in auto.refused_) <= (auto.p_value_ > 0.05)


def test_the_reason_is_told_where_the_gain_alone_may_be_noise():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    found = cal.AutoCalibrator().fit(p, rng.random(300) < p**1.2)
    assert found.leaderboard_.chosen.gain_low < 0 < found.leaderboard_.chosen.gain
    assert f"a test says that the scores are wrong (p = {found.p_value_:.2g})" in found.explain()
    rng = np.random.default_rng(0)
    rounded = np.clip(rng.random(3000) * 1.002 - 0.001, 0.0, 1.0).round(3)
    exact = cal.AutoCalibrator().fit(rounded, rng.random(3000) < rounded)
    assert exact.leaderboard_.chosen.gain_low < 0
    assert "the scores hold exact 0 or 1" in exact.explain()
    clear = cal.AutoCalibrator().fit(p, rng.random(300) < p**4)
    assert "may be noise" not in clear.explain()
