"""What is said of the scores of several classes before anything else, and how often it is wrong."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import calibrant as cal
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.metrics.headlines import ClassAreas, ClassLook, ClassNames, class_look

NAMES = ClassNames.of(["ape", "bee", "cat"], "kind", ["p_a", "p_b", "p_c"], "command line")


def drawn(rng, n, k, shift, shares=None, *, weighted=False, round_to=None):
    """Distributions that favour the class that came by a shift of its logit."""
    y = rng.choice(k, n, p=shares)
    z = rng.normal(size=(n, k))
    z[np.arange(n), y] += shift
    if round_to is not None:
        z = np.rint(z / round_to) * round_to
    return softmax(z, axis=1), y, rng.lognormal(0.0, 0.5, n) if weighted else None


def shares_of(n, k, shift, *, count, columns=None, **options):
    """How often each is found, in percent."""
    rng = np.random.default_rng(3)
    found = Counter()
    for _ in range(count):
        p, y, w = drawn(rng, n, k, shift, **options)
        found[class_look(ScoreMatrix(p if columns is None else p[:, columns], y, w)).found] += 1
    return {name: 100 * n / count for name, n in found.items()}


# --- error rates --------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(60, 3), (600, 3), (300, 10)])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"round_to": 1.0}])
def test_worthless_scores_are_seldom_called_anything_else(sizes, options):
    found = shares_of(*sizes, 0.0, count=400, **options)
    assert found.get("wrong way", 0) + found.get("swapped", 0) <= 1.5
    assert found.get("something", 0) <= 1.5
    assert found.get("no order", 0) <= 0.75


@pytest.mark.full
def test_a_rare_class_raises_no_more_false_words():
    found = shares_of(600, 3, 0.0, count=400, shares=[0.7, 0.27, 0.03])
    assert found.get("wrong way", 0) + found.get("swapped", 0) <= 2.0


def test_useful_scores_are_never_called_worthless_or_swapped():
    assert shares_of(1500, 3, 0.3, count=100) == {"something": 100}
    assert set(shares_of(200, 5, 0.6, count=100)) <= {"something", "not told"}


@pytest.mark.parametrize(
    ("k", "columns"), [(3, [1, 0, 2]), (3, [1, 2, 0]), (6, [0, 1, 2, 3, 5, 4])]
)
def test_swapped_columns_are_found(k, columns):
    assert shares_of(600, k, 1.5, count=40, columns=columns) == {"swapped": 100}


def test_many_rows_that_say_nothing_are_told():
    assert shares_of(4000, 3, 0.0, count=60)["nothing"] > 90


# --- what is found ------------------------------------------------------------------------------


def test_areas_are_those_of_each_column_for_each_class():
    rng = np.random.default_rng(0)
    p, y, w = drawn(rng, 200, 4, 0.8, weighted=True, round_to=0.5)
    seen = ClassAreas(ScoreMatrix(p, y, w), "importance")
    for c in range(4):
        for j in range(4):
            expected = cal.metrics.auc((y == c).astype(int), p[:, j], sample_weight=w)
            assert seen.cross[j][c] == pytest.approx(expected, rel=1e-12)
    assert seen.areas == pytest.approx([seen.cross[c][c] for c in range(4)])


def test_turned_round_scores_run_the_wrong_way_and_are_not_called_swapped():
    rng = np.random.default_rng(0)
    for k in (3, 4, 8):
        p, y, _ = drawn(rng, 900, k, 1.5)
        look = class_look(ScoreMatrix(-np.log(p), y))
        assert (look.found, look.whole) == ("wrong way", True)
        assert look.headline(NAMES).startswith("These scores run the wrong way: AUC 0.")


def test_one_class_that_runs_the_wrong_way_is_named():
    rng = np.random.default_rng(0)
    p, y, _ = drawn(rng, 2000, 3, 1.5)
    p = np.column_stack([p[:, 0].max() - p[:, 0], p[:, 1:]])
    look = class_look(ScoreMatrix(p / p.sum(axis=1, keepdims=True), y))
    assert (look.found, look.classes) == ("wrong way", (0,))
    said = look.headline(NAMES)
    assert said.startswith("The scores of class 'ape' run the wrong way: AUC 0.")
    assert "lower scores in `p_a` than other rows" in said


def test_swapped_columns_are_named_and_the_way_out():
    rng = np.random.default_rng(0)
    p, y, _ = drawn(rng, 500, 3, 1.5)
    two = class_look(ScoreMatrix(p[:, [1, 0, 2]], y))
    assert (two.classes, two.belongs) == ((0, 1), (1, 0))
    assert two.headline(NAMES) == (
        "Columns look swapped: `p_a` goes with 'bee', `p_b` goes with 'ape'. Say which is which: "
        "--score CLASS=COLUMN."
    )
    assert "in the order of the classes (sorted, or as classes= names them)" in two.headline(
        ClassNames.of("abc")
    )
    three = class_look(ScoreMatrix(p[:, [1, 2, 0]], y))
    assert three.headline(NAMES).startswith("Columns look mixed up: `p_a` goes with 'bee'")


def test_logits_are_looked_at_as_probabilities():
    rng = np.random.default_rng(0)
    p, y, _ = drawn(rng, 400, 3, 1.0)
    per_row = 50 * rng.normal(size=(400, 1))  # as log-likelihoods have
    a, b = class_look(ScoreMatrix(p, y)), class_look(ScoreMatrix(log_softmax(p) + per_row, y))
    assert a.found == b.found == "something"
    c = class_look(ScoreMatrix(np.log(p) + per_row, y))
    assert c.auc == pytest.approx(a.auc, abs=1e-9)


def test_other_columns_that_tell_are_no_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=6000)
    z = rng.normal(size=(6000, 3))
    z[:, 2] += 0.8 * (y == 0) - 0.8 * (y == 1)  # tells 0 from 1, and says nothing about 2
    z = np.exp(z - 2)
    look = class_look(ScoreMatrix(np.column_stack([z, 20 - z.sum(axis=1)]) / 20, y))
    assert look.found in ("no order", "wrong way", "swapped", "something")
    assert look.found != "nothing"


def test_one_class_only():
    look = class_look(ScoreMatrix(np.full((5, 3), 1 / 3), np.full(5, 1)))
    assert look == ClassLook("one class", None, None, None, (1,))
    assert look.headline(NAMES).startswith("There is one class only: every row is 'bee'.")


def test_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    p, y, w = drawn(rng, 300, 3, 0.2, weighted=True)
    looks = [class_look(ScoreMatrix(p, y, w * unit)) for unit in (1e-200, 1.0, 1e100)]
    assert looks[0].low == pytest.approx(looks[1].low) == pytest.approx(looks[2].low)


# --- who says it --------------------------------------------------------------------------------


def test_auto_calibrator_evaluate_report_and_drift_say_it_first():
    rng = np.random.default_rng(0)
    p, y, _ = drawn(rng, 600, 3, 1.5)
    labels = np.array(["ape", "bee", "cat"])[y]
    mixed = p[:, [1, 0, 2]]
    with pytest.warns(cal.errors.AdviceWarning, match="Columns look swapped"):
        auto = cal.AutoCalibrator().fit(mixed, labels)
    assert auto.look_.found == "swapped"
    assert [one.code for one in auto.advice_] == ["columns_swapped"]
    assert auto.explain().startswith("Columns look swapped")
    assert "gains" not in auto.explain()
    made = cal.evaluate(labels, mixed)
    assert made.look.found == "swapped"
    assert "note: Columns look swapped" in str(made)
    page = cal.calibration_report(mixed, labels, calibrator=cal.Temperature())
    assert page.verdict[0].startswith("Columns look swapped")
    assert page.caution
    good = cal.Temperature().fit(p, labels)
    drift = cal.monitor.check_class_drift(good, mixed, labels)
    assert drift.in_words()[0].startswith("Columns look swapped")
    assert drift.in_words()[1] == "Find out why before anything is fitted."
    assert drift.to_dict()["look"]["found"] == "swapped"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sound = cal.AutoCalibrator().fit(p, labels)
    assert sound.look_.sound
    assert sound.advice_ == ()


def test_a_worthless_score_is_not_praised_for_becoming_a_constant():
    rng = np.random.default_rng(0)
    p, y, _ = drawn(rng, 4000, 3, 0.0)
    sure = softmax(4 * np.log(p), axis=1)
    page = cal.calibration_report(sure, y, calibrator=cal.Temperature())
    assert page.verdict[0].startswith("These scores say nothing about")
    assert page.evaluation.verdict("log_loss") == "lower"
    html = page.to_html()
    assert ">better<" not in html
    assert "something is wrong with the scores themselves" in html
    two = cal.calibration_report(rng.random(9000), rng.random(9000) < 0.2, calibrator=cal.Platt())
    assert two.evaluation.verdict("brier") == "lower"
    assert ">better<" not in two.to_html()
