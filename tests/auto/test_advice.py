"""Advice: every known mistake is found, with its figures, and clean data are left in peace."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import calibrant as cal
from calibrant.advice import advise_table, trained_on


def calibrated(n=4000, seed=0, low=0.0, high=1.0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, high, n)
    return p, (rng.random(n) < p).astype(int)


def codes(advice):
    return [one.code for one in advice]


def only(advice, code):
    (found,) = [one for one in advice if one.code == code]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_clean_data_are_left_in_peace(seed):
    p, y = calibrated(seed=seed)
    segments = np.random.default_rng(seed + 1000).integers(0, 8, len(p))
    assert cal.advise(p, y, cal.Platt().fit(p, y), segments=segments) == ()
    rare, y = calibrated(seed=seed, high=0.1)
    assert cal.advise(rare, y, cal.BLS().fit(rare, y), segments=segments) == ()


def test_few_events():
    p, y = calibrated(60, high=0.2)
    text = only(cal.advise(p, y, cal.Isotonic()), "few_events").text
    assert f"but {y.sum()} came" in text
    assert "at least 100 rows of the rarer class" in text
    low, high = binomtest(y.sum(), 60).proportion_ci(0.9) / y.mean()
    assert f"may be {low:.2g} to {high:.2g} times the one seen" in text
    alone = only(cal.advise(p, 0 * y, cal.BLS(classes=[0, 1])), "one_class")
    assert alone.text.startswith("There is one class only: every row is 0.")
    with pytest.warns(cal.errors.CalibrationWarning, match="at least 100 rows of the rarer class"):
        cal.Isotonic().fit(p, y)
    heavy = np.full(60, 100.0)  # weights are not rows
    found = only(cal.advise(p, y, cal.Isotonic(), sample_weight=heavy), "few_events")
    assert found.figures["found"] == pytest.approx(y.sum())


def test_a_clear_warning_only_where_it_is_due(recwarn):
    p, y = calibrated(4000)
    cal.Isotonic().fit(p, y)
    cal.Uncalibrated().fit(p[:4], y[:4])
    assert not recwarn


def test_scores_that_know_too_much():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    s = np.clip(y + rng.normal(0, 0.1, 400), 0.001, 0.999)
    found = only(cal.advise(s, y), "trained_on_these_rows")
    assert found.figures["auc"] > 0.999
    p, y_new = calibrated(1000, seed=1)
    found = only(cal.advise(s, y, held_out=(p, y_new)), "trained_on_these_rows")
    assert found.figures["held_out"] == pytest.approx(cal.metrics.auc(y_new, p))
    assert "held-out" in found.text
    q, z = calibrated(1000, seed=2)
    assert "trained_on_these_rows" not in codes(cal.advise(q, z, held_out=(p, y_new)))
    with pytest.raises(cal.errors.InputError, match="pair"):
        cal.advise(q, z, held_out=p)


def test_zero_or_one_and_lost_order():
    p, y = calibrated(300)
    with pytest.warns(cal.errors.CalibrationWarning) if y.sum() < 100 else _nothing():
        steps = cal.Isotonic().fit(p, y)
    found = only(cal.advise(p, y, steps), "zero_or_one")
    ends = np.isin(steps.calibrate(p), (0.0, 1.0))
    assert found.figures["share"] == pytest.approx(ends.mean())
    assert f"{100 * ends.mean():.3g} %" in found.text
    coarse = cal.Histogram(bins=2, smoothing="laplace").fit(p, y)
    found = only(cal.advise(p, y, coarse), "auc_lost")
    assert found.figures["before"] == pytest.approx(cal.metrics.auc(y, p))
    assert found.figures["after"] == pytest.approx(cal.metrics.auc(y, coarse.calibrate(p)))
    assert found.figures["values"] == 2


class _nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return False


def test_prior_shift_suggests_the_very_correction():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.0, 0.2, 20_000)
    y = (rng.random(20_000) < truth).astype(int)
    s = expit(logit(np.clip(truth, 1e-9, None)) + 2.0)  # trained on undersampled negatives
    for calibrator in (None, cal.BLS().fit(s, y)):
        found = only(cal.advise(s, y, calibrator), "prior_shift")
        assert found.figures["shift"] == pytest.approx(-2.0, abs=0.1)
    call = found.text.split(": ")[-1].removesuffix(".")
    fixed = eval(call, {"calibrant": cal, "p": s})
    assert fixed.mean() == pytest.approx(y.mean(), rel=1e-5)
    with pytest.warns(cal.errors.CalibrationWarning, match="another base rate"):
        cal.AutoCalibrator().fit(s, y)


def test_more_than_a_shift_is_not_called_one():
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000)
    y = (rng.random(20_000) < expit(z - 1)).astype(int)
    s = expit(4 * z + 1)
    assert "prior_shift" not in codes(cal.advise(s, y, cal.BLS().fit(s, y)))


def test_a_truth_that_falls():
    rng = np.random.default_rng(0)
    s = rng.random(6000)
    truth = np.where(s < 0.5, 2 * s, 2 - 2 * s) * 0.8 + 0.1
    y = (rng.random(6000) < truth).astype(int)
    found = only(cal.advise(s, y), "falling_truth")
    assert found.figures["high"] > 0.8
    assert found.figures["low"] < 0.25
    assert 0.4 < found.figures["from"] < 0.6
    assert found.figures["to"] > 0.9
    assert "falling_truth" in codes(cal.advise(20 * (s - 0.5), y))


@pytest.mark.full
def test_falls_are_rarely_seen_where_there_are_none():
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = rng.random(1500)
        y = (rng.random(1500) < 0.3).astype(int)  # flat: the hardest rising truth
        found += "falling_truth" in codes(cal.advise(s, y))
    assert found <= 1


def test_rows_of_few_values_are_not_known_again():
    """New rows of four yes-or-no columns are all among the old ones, by chance."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 4)) < 0.5).astype(float)
    y = (rng.random(400) < 0.2 + 0.6 * X[:, 0]).astype(int)
    for model in (SVC(), KNeighborsClassifier()):
        assert trained_on(model.fit(X[:200], y[:200]), X[200:]) == ""
    X = rng.normal(size=(400, 4))
    for model in (SVC(), KNeighborsClassifier()):
        assert trained_on(model.fit(X[:200], y[:200]), X[:200]) != ""


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_forest_knows_its_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (rng.random(400) < expit(X[:, 0])).astype(int)
    model = kind(5, random_state=0).fit(X[:200], y[:200])
    assert "leaves" in trained_on(model, X[:200])
    assert trained_on(model, X[200:]) == ""
    assert trained_on(model, X) == ""


def test_scores_of_the_other_label():
    p, y = calibrated()
    found = only(cal.advise(1 - p, y), "upside_down")
    assert "pos_label" in found.text
    assert found.figures["auc"] == pytest.approx(1 - cal.metrics.auc(y, p))
    assert "falling_truth" not in codes(cal.advise(1 - p, y))  # said once
    assert "upside_down" not in codes(cal.advise(1 - p, y, pos_label=0))
    few = np.random.default_rng(0).random(12)
    assert codes(cal.advise(few, np.arange(12) % 2)) == ["few_events"]  # may be chance


def test_a_shift_is_advised_only_where_it_mends_as_much():
    """Scores of 0 and 1 do not move: both losses are infinite, and nothing is mended."""
    rng = np.random.default_rng(3)
    truth = rng.beta(1.2, 3, 3000)
    s = expit(3 * logit(truth) - 0.5)
    s = np.where(s < 0.2, 0.0, np.where(s > 0.8, 1.0, s))
    y = rng.random(3000) < truth
    bls = cal.BLS().fit(s, y)
    assert cal.metrics.ece(y, bls.calibrate(s)) < 0.1 * cal.metrics.ece(y, s)
    assert "prior_shift" not in codes(cal.advise(s, y, bls))
    assert "prior_shift" not in codes(cal.advise(s, y))
    undersampled = truth / (truth + 0.2 * (1 - truth))
    found = only(cal.advise(undersampled, y), "prior_shift")
    assert found.figures["mended"] > 0.9
    assert found.figures["shift"] == pytest.approx(np.log(0.2), abs=0.15)
    few = np.flatnonzero(y)[9:]  # nine events measure nothing
    assert "prior_shift" not in codes(cal.advise(np.delete(s, few), np.delete(y, few)))


def test_scores_that_may_be_percentages():
    p, y = calibrated()
    assert "percentages" in codes(cal.advise(100 * p, y))
    for other in (p, logit(p), 100 * p - 1, 850 * p, 5 * p):
        assert "percentages" not in codes(cal.advise(other, y))
    assert "points" in codes(cal.advise(850 * p, y))


def test_segments():
    p, y = calibrated(9000)
    segments = np.array(["north", "south", "east"])[np.arange(9000) % 3]
    off = (segments == "south") & (np.random.default_rng(1).random(9000) < 0.3)
    y = np.where(off, 1, y)
    found = only(cal.advise(p, y, segments=segments), "segments")
    assert [one["name"] for one in found.figures["segments"]] == ["south"]
    (one,) = found.figures["segments"]
    south = segments == "south"
    assert one["predicted"] == pytest.approx(p[south].mean())
    assert one["came"] == pytest.approx(y[south].mean())
    assert "'south'" in found.text
    margins = cal.advise(logit(np.clip(p, 1e-9, 1 - 1e-9)), y, segments=segments)
    assert "segments" in codes(margins)
    with pytest.raises(cal.errors.InputError, match="segments"):
        cal.advise(p, y, segments=segments[:-1])


def test_weights_of_segments_are_not_rows():
    p, y = calibrated(600)
    segments = np.arange(600) % 3
    w = np.full(600, 1000.0)
    assert "segments" not in codes(cal.advise(p, y, sample_weight=w, segments=segments))


def test_a_table_is_enough():
    p, y = calibrated(300)
    table = cal.ScoreTable.from_arrays(p, y)
    fitted = cal.Isotonic().fit_table(table)
    assert set(codes(advise_table(table, fitted))) >= {"zero_or_one"}
    assert set(codes(advise_table(table, fitted.to_fitted()))) >= {"zero_or_one"}
    with pytest.raises(cal.errors.InputError, match="empty"):
        advise_table(cal.ScoreTable.empty())


def test_advice_is_a_value():
    p, y = calibrated(60, high=0.2)
    (one, *_) = cal.advise(p, y, cal.Isotonic())
    for twin in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin == one
    assert one.to_dict()["code"] == "few_events"
    assert str(one) == one.text
    with pytest.raises(TypeError):
        one.figures["found"] = 3


def test_labels_and_a_fitted_calibrator_s_pos_label():
    p, y = calibrated(300)
    words = np.where(y == 1, "bad", "good")
    c = cal.Isotonic(pos_label="bad").fit(p, words)
    assert codes(cal.advise(p, words, c)) == codes(cal.advise(p, y, cal.Isotonic().fit(p, y)))


def test_what_cannot_be_told():
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    assert trained_on(LogisticRegression().fit(X, y), X) == ""
    assert trained_on(lambda rows: rows, X) == ""
    assert trained_on(LogisticRegression().fit(X, y), ["text", "rows"]) == ""
