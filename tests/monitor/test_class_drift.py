"""Drift of several classes: each against the rest, all at one level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant.errors import InputError
from calibrant.monitor import check_class_drift, check_drift


def rows(n: int, seed: int, k: int = 3, moved: float = 0.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) + moved * np.arange(k)
    p = softmax(z, axis=1)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return softmax(1.5 * z, axis=1), y


@pytest.fixture(scope="module")
def calibrator():
    return cal.VectorScaling().fit(*rows(1500, 0))


def test_each_class_is_checked_as_one_score_is(calibrator):
    p, y = rows(1500, 1)
    found = check_class_drift(calibrator, p, y)
    facts = calibrator.to_fitted().provenance
    out = calibrator.predict_proba(p)
    for column, drift in enumerate(found.drifts):
        known = {
            "weight": facts["weight"],
            "effective_size": facts["effective_size"],
            "positive_weight": facts["class_weights"][column],
        }
        one = cal.Fitted(cal.maps.Identity(), (0, 1), 1, provenance=known)
        table = cal.ScoreTable.from_arrays(out[:, column], y == column)
        assert drift.p_value == check_drift(one, table).p_value


def test_holm_holds_the_level_for_all_classes(calibrator):
    p, y = rows(1500, 1)
    found = check_class_drift(calibrator, p, y)
    alone = [drift.p_value for drift in found.drifts]
    order = np.argsort(alone)
    want = np.maximum.accumulate(np.sort(alone) * [3, 2, 1]).clip(max=1)
    assert np.asarray(found.adjusted)[order] == pytest.approx(want)
    assert found.recommendation == "none"
    assert found.found == ()
    assert "No change was found in any of the 3 classes" in found.in_words()[0]


def test_a_change_is_found_where_it_is(calibrator):
    p, y = rows(3000, 2)
    rng = np.random.default_rng(0)
    swapped = np.where((y == 1) & (rng.random(3000) < 0.4), 0, y)  # 2 is left alone
    found = check_class_drift(calibrator, p, swapped)
    assert found.found == (0, 1)
    assert found.recommendation == "new map"
    assert found.to_dict()["by_class"][0]["p_adjusted"] <= 0.05
    assert "2 of 3 classes: 0, 1" in found.in_words()[0]
    # one that was found is judged at its own level
    assert {drift.level for drift in found.drifts} <= {0.05, 0.05 / 3, 0.05 / 2}
    quiet = check_class_drift(calibrator, p, swapped, least=0.9)
    assert quiet.recommendation == "none"
    assert "smaller than what matters" in quiet.in_words()[0]
    assert "Holm's p" in str(found)


def test_scores_that_only_moved_raise_no_alarm(calibrator):
    p, y = rows(1500, 5, moved=0.7)
    assert check_class_drift(calibrator, p, y).found == ()


def test_isotonic_maps_of_classes_are_tested_as_such():
    isotonic = cal.CodedCalibrator(cal.Isotonic(smoothing="laplace")).fit(*rows(1500, 0))
    found = check_class_drift(isotonic, *rows(1500, 1))
    assert [len(drift.tests) for drift in found.drifts] == [1, 1, 1]
    text = str(found)
    assert text.count("slope and shape: not tested, since an isotonic map") == 1
    assert "compare with old rows" not in text


def test_labels_weights_and_calibrators_are_checked(calibrator):
    p, y = rows(300, 1)
    weighted = check_class_drift(calibrator, p, y, sample_weight=np.full(300, 7.0))
    assert weighted.adjusted == pytest.approx(check_class_drift(calibrator, p, y).adjusted)
    with pytest.raises(InputError, match="only the classes"):
        check_class_drift(calibrator, p, y + 1)
    with pytest.raises(InputError, match="one of several classes"):
        check_class_drift(cal.Platt().fit(p[:, 0], y == 0), p, y)
    with pytest.raises(InputError, match="check_class_drift"):
        check_drift(calibrator, cal.ScoreTable.from_arrays(p[:, 0], y == 0))
