"""When the scores are kept as they are, and how much they count where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.special import logit as log_odds
from sklearn.model_selection import GroupKFold

import calibrant as cal
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import CellColumns
from calibrant.fitting.held_out import HeldOutCells, HeldOutMatrix, choose
from twins import auto as naive


def held_of(y, weight=None, cluster=None):
    """Rows in a single fold, to judge predictions."""
    w = np.ones(len(y)) if weight is None else weight
    zero, one = w * (1 - y), w * y
    columns = CellColumns(zero, one, zero * w, one * w)
    pairs = [(np.arange(0), np.arange(len(y)))]
    cells = np.arange(len(y)) / len(y), columns, [len(y)]
    return HeldOutCells(*cells, cluster=cluster, pairs=pairs)


def splits(n, k=5):
    fold = np.arange(n) % k
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(k)]


def drawn(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return p, (rng.random(n) < p**power).astype(int)


# --- the evidence, and the share that comes of it -------------------------------------------------


@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_evidence_is_the_score_test(seed, weighted):
    rng = np.random.default_rng(seed)
    p, y = drawn(60, seed)
    q = expit(log_odds(p) * rng.uniform(0.5, 1.5) + rng.normal(scale=0.5))
    w = rng.gamma(2.0, size=60) if weighted else np.ones(60)
    held = held_of(y, w)
    before, after = held.trial(p), held.trial(q)
    expected = naive.evidence(p, q, y, w)
    assert held.evidence(before, after) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert held.share(before, after) == pytest.approx(naive.share(p, q, y, w), abs=1e-9)
    # the length of the step does not matter, and neither do units of weight or the other class
    half = held.trial(expit((log_odds(p) + log_odds(q)) / 2))
    assert held.evidence(before, half) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    other = held_of(1 - y, 7.0 * w)
    turned = other.evidence(other.trial(1 - p), other.trial(1 - q))
    assert turned == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert held.evidence(before, before) == 0.0


def test_right_scores_have_no_evidence_on_average():
    found = []
    for seed in range(400):
        p, y = drawn(100, seed)
        held = held_of(y)
        found.append(held.evidence(held.trial(p), held.trial(p**1.3)))
    assert abs(np.mean(found)) < 0.15
    assert np.std(found) == pytest.approx(1.0, abs=0.1)


def test_the_share_rises_from_one_to_three_standard_errors(monkeypatch):
    held = held_of(np.array([0, 1]))
    one = held.trial(np.array([0.4, 0.6]))
    for count, share in ((-2, 0), (0, 0), (1, 0), (1.5, 0.25), (2, 0.5), (3, 1), (9, 1)):
        monkeypatch.setattr(HeldOutCells, "evidence", lambda *_, count=count: count)
        assert held.share(one, one) == share


def test_groups_are_judged_by_the_variance_between_groups():
    p, y = drawn(90, 3, power=2.0)
    group = np.arange(90) // 3
    held = held_of(y, cluster=group)
    before, after = held.trial(p), held.trial(p**2)
    slope = (y - p) * (log_odds(p**2) - log_odds(p))
    error = naive.clustered_error(slope, np.ones(90), group)
    assert held.evidence(before, after) == pytest.approx(slope.mean() / error, rel=1e-9)


def test_several_classes_have_the_evidence_of_two():
    p, y = drawn(400, 5, power=1.2)
    matrix = ScoreMatrix(np.column_stack([1 - p, p]), y.astype(np.intp))
    held = HeldOutMatrix(matrix, splits(400))
    p, y = p[held.rows], y[held.rows]
    two = held_of(y)
    expected = two.evidence(two.trial(p), two.trial(p**1.1))
    pair = (held.trial(np.column_stack([1 - q, q])) for q in (p, p**1.1))
    assert held.evidence(*pair) == pytest.approx(expected, rel=1e-9)


# --- the map --------------------------------------------------------------------------------------


def test_the_map_is_the_average_of_log_odds():
    seen = set()
    grid = np.linspace(0.001, 0.999, 200)
    for seed in range(30):
        p, y = drawn(200, seed, power=1.15)
        auto = cal.AutoCalibrator().fit(p, y)
        bls = cal.BLS().fit(p, y).calibrate(grid)
        expected = (1 - auto.share_) * log_odds(grid) + auto.share_ * log_odds(bls)
        assert log_odds(auto.calibrate(grid)) == pytest.approx(expected, abs=1e-9)
        assert (auto.chosen_ == "uncalibrated") == (auto.share_ == 0) == (auto.refused_ is not None)
        if auto.share_ == 0:
            assert np.array_equal(auto.calibrate(grid), grid)
        assert (np.diff(auto.calibrate(grid)) >= 0).all()
        seen.add("all" if auto.share_ == 1 else "part" if auto.share_ > 0 else "none")
    assert seen == {"all", "part", "none"}


@pytest.mark.filterwarnings("ignore::calibrant.errors.AdviceWarning")
def test_nothing_jumps():
    """While the weight of some rows grows, evidence and map change in small steps."""
    p, y = drawn(150, 8)
    grid = np.linspace(0.05, 0.95, 19)
    maps, shares = [], []
    for weight in np.linspace(1.0, 3.0, 41):
        auto = cal.AutoCalibrator(cv=splits(150)).fit(p, y, np.where(y == 1, weight, 1.0))
        maps.append(log_odds(auto.calibrate(grid)))
        shares.append(auto.share_)
    assert (min(shares), max(shares)) == (0.0, 1.0)
    assert np.abs(np.diff(shares)).max() < 0.1
    assert np.abs(np.diff(maps, axis=0)).max() < 0.15


@pytest.mark.parametrize("kind", ["percentages", "margins", "points"])
def test_other_scores_are_drawn_towards_what_they_are_read_as(kind):
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        z = rng.normal(0, 1.5, 150)
        strength = 0.3 if kind == "points" else 0.8
        y = (rng.random(150) < expit(strength * z)).astype(int)
        made = {"percentages": np.round(100 * expit(z)), "margins": z, "points": 600 + 50 * z}
        scores = made[kind]
        auto = cal.AutoCalibrator().fit(scores, y)
        assert auto.scores_are_ == kind
        if not 0 < auto.share_ < 1:
            continue
        seen.add(seed)
        new = np.linspace(scores.min(), scores.max(), 50)
        before, after = (
            log_odds(one.fit(scores, y).calibrate(new)) for one in (cal.Uncalibrated(), cal.BLS())
        )
        expected = (1 - auto.share_) * before + auto.share_ * after
        assert log_odds(auto.calibrate(new)) == pytest.approx(expected, abs=2e-3)
    assert seen


def test_what_is_between_is_saved_and_said(tmp_path):
    for seed in range(30):
        p, y = drawn(200, seed, power=1.15)
        auto = cal.AutoCalibrator().fit(p, y)
        if 0.1 < auto.share_ < 0.9:
            break
    cal.save(auto, tmp_path / "c.json")
    assert np.array_equal(cal.load(tmp_path / "c.json").calibrate(p), auto.calibrate(p))
    assert "and the scores as they are the rest" in auto.explain()
    turned = cal.AutoCalibrator(direction="falling").fit(1 - p, y)
    assert turned.share_ == pytest.approx(auto.share_, abs=1e-6)
    assert turned.calibrate(1 - p) == pytest.approx(auto.calibrate(p), abs=1e-6)


# --- cases ----------------------------------------------------------------------------------------


def test_counts_are_rows():
    p, y = drawn(300, 4, power=1.2)
    p, times = p.round(2), np.random.default_rng(4).integers(1, 4, 300)
    auto = cal.AutoCalibrator(weights="counts", cv=splits(300)).fit(p, y, times)
    fold = np.repeat(np.arange(300) % 5, times)
    pairs = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    repeated = cal.AutoCalibrator(cv=pairs).fit(np.repeat(p, times), np.repeat(y, times))
    assert auto.share_ == pytest.approx(repeated.share_, abs=1e-6)
    assert auto.calibrate(p) == pytest.approx(repeated.calibrate(p), abs=1e-6)


def test_one_row_that_could_hardly_happen_refutes_the_scores():
    """The gain is that of a single row, so that its standard error is as large. But the scores had
    said that such a row comes once in a million."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.2, 0.8, 300), np.full(100, 1e-7)])
    y = np.concatenate([rng.random(300) < p[:300], np.arange(100) == 0]).astype(int)
    auto = cal.AutoCalibrator().fit(p, y)
    standing = auto.leaderboard_["BLS"]
    assert standing.gain_low < 0.0 < standing.gain
    assert (auto.chosen_, auto.share_) == ("BLS", 1.0)


def test_groups_and_points():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    y = rng.random(400) < p**3
    groups = np.arange(400) // 4
    auto = cal.AutoCalibrator(cv=GroupKFold(5)).fit(p, y, groups=groups)
    assert (auto.chosen_, auto.share_) == ("BLS", 1.0)
    points = rng.integers(300, 850, 800)
    auto = cal.AutoCalibrator().fit(points, rng.random(800) < (points - 300) / 550)
    assert (auto.chosen_, auto.share_) == ("BLS", 1.0)


def test_candidates_are_taken_whole_or_not_at_all():
    """From two standard errors on, where the best is not ours and ours is far behind it."""
    p, y = drawn(2000, 0, power=1.3)
    held = held_of(y)
    trials = {"uncalibrated": held.trial(p), "BLS": held.trial(p**1.01)}
    trials["other"] = held.trial(p**1.3)
    assert choose(trials, held)[0] == choose(trials, held, partly=True)[0] == "other"
    near = {**trials, "BLS": held.trial(p**1.28)}
    assert choose(near, held)[0] == "BLS"
    # between one and two: ours in part, others not at all
    some = np.arange(2000) < 200
    few = held_of(y[some])
    for power in (1.1, 1.3):
        pair = {"uncalibrated": few.trial(p[some]), "BLS": few.trial(p[some] ** power)}
        share = few.share(*pair.values())
        assert choose(pair, few)[0] == ("BLS" if share >= 0.5 else "uncalibrated")
        assert choose(pair, few, partly=True)[0] == ("BLS" if share > 0 else "uncalibrated")


def test_a_refusal_says_why():
    said = set()
    for seed in range(14):
        p, y = drawn(150, seed)
        auto = cal.AutoCalibrator().fit(p, y)
        if auto.refused_ is None:
            continue
        noise = "which may be noise" in auto.refused_
        assert noise == (auto.leaderboard_["BLS"].gain > 0)
        said.add(noise)
    assert False in said


@pytest.mark.full
def test_scores_that_are_right_are_changed_by_little():
    rng = np.random.default_rng(2)
    changed, harm = 0, []
    for _ in range(200):
        p, new = rng.beta(1, 3, 200), rng.beta(1, 3, 4000)
        auto = cal.AutoCalibrator().fit(p, rng.random(200) < p)
        q = auto.calibrate(new)
        divergence = new * np.log(new / q) + (1 - new) * np.log((1 - new) / (1 - q))
        harm.append(divergence.mean())
        changed += auto.share_ > 0
    assert changed <= 70  # evidence above one standard error: 16 % by the normal law, and some more
    assert np.mean(harm) < 8e-4


def test_a_wrong_zero_is_seen_among_many_scores():
    """Above 200,000 distinct scores the folds are of pooled cells, where a 0 is no longer one."""
    rng = np.random.default_rng(0)
    p = rng.random(210_000)
    y = (rng.random(210_000) < p).astype(int)
    p[0], y[0] = 0.0, 1
    auto = cal.AutoCalibrator().fit(p, y)
    assert (auto.chosen_, auto.share_) == ("BLS", 1.0)


def test_a_table_forgets_what_was_fitted_before():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    few = cal.ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 0, 1])
    auto = cal.AutoCalibrator().fit(p, rng.random(200) < p**3, features=rng.normal(size=(200, 2)))
    assert auto.share_ == 1.0
    auto.fit_table(few)
    assert auto.share_ == 0.0
    assert auto.feature_calibrator_ is None
    assert "fewer than two positives" in auto.explain()
    fresh = cal.AutoCalibrator().fit_table(few)
    assert fresh.share_ == 0.0
    assert fresh.explain() == auto.explain()


def test_equal_losses_do_not_differ_by_rounding():
    p, y = drawn(1000, 0)
    held = held_of(y)
    one = held.trial(p)
    trials = {"uncalibrated": one, "BLS": one, "features": held.trial((p + 1.0) - 1.0)}
    assert choose(trials, held, demanding=("features",))[0] == "uncalibrated"


def test_counts_that_are_not_whole():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    auto = cal.AutoCalibrator(weights="counts").fit(
        p, rng.random(300) < p**3, rng.random(300) + 0.5
    )
    assert (auto.chosen_, auto.share_) == ("BLS", 1.0)


def test_a_candidate_may_not_be_called_features():
    with pytest.raises(cal.errors.ParameterError, match="other names than 'features'"):
        cal.AutoCalibrator(candidates={"features": cal.Platt()}).fit([0.1, 0.2, 0.8], [0, 1, 1])


def test_a_refusal_names_a_candidate_that_could_have_been_taken():
    """Histogram gives exact 0 and 1, and so is none, however much it gains."""
    for seed in range(12):
        p, y = drawn(60, seed)
        auto = cal.AutoCalibrator(candidates=[cal.Histogram(bins=10)]).fit(p, y)
        if auto.refused_ is not None and auto.leaderboard_["Histogram"].certain:
            assert "the best candidate, BLS," in auto.refused_


def test_the_reason_is_told_where_the_scores_are_never_kept():
    rng = np.random.default_rng(0)
    rounded = np.clip(rng.random(3000) * 1.002 - 0.001, 0.0, 1.0).round(3)
    exact = cal.AutoCalibrator().fit(rounded, rng.random(3000) < rounded)
    assert exact.leaderboard_.chosen.gain_low < 0
    assert "the scores hold exact 0 or 1" in exact.explain()
    p = rng.random(300)
    clear = cal.AutoCalibrator().fit(p, rng.random(300) < p**4)
    assert "may be noise" not in clear.explain()
