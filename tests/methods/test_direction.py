"""Scores that run the other way: a low one means the positive label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant.errors import CalibrationWarning, InputError, ParameterError
from calibrant.fitting.base import Calibrator

RANDOM = np.random.default_rng(5)
SCORES = RANDOM.random(300)
LABELS = (RANDOM.random(300) < (1 - SCORES) ** 1.5).astype(int)
#: scores of each kind, and what they are turned round
KINDS = {
    "probabilities": (SCORES, 1.0),
    "percentages": (100 * SCORES, 100.0),
    "margins": (6 * SCORES - 3, 0.0),
    "points": (np.round(1000 * SCORES), 0.0),
}
ONE_SCORE = sorted(
    name
    for name in dir(cal)
    if isinstance(getattr(cal, name), type)
    and issubclass(getattr(cal, name), Calibrator)
    and name != "Calibrator"
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ONE_SCORE)
def test_a_falling_fit_is_the_fit_of_mirrored_scores(name, kind, tmp_path):
    """The map takes scores as they came: predictions, files and exports agree."""
    scores, centre = KINDS[kind]
    make = getattr(cal, name)
    turned = make().fit(centre - scores, LABELS)
    if (name, kind) == ("Beta", "percentages"):
        with pytest.raises(InputError, match="Divide percentages by 100"):
            make(direction="falling").fit(scores, LABELS)
        return
    falling = make(direction="falling").fit(scores, LABELS)
    new = np.unique(np.concatenate([scores[:60], scores[100:160] * 0.999]))
    wanted = turned.calibrate(centre - new)
    assert falling.direction_ == "falling"
    assert np.abs(falling.calibrate(new) - wanted).max() < 1e-11
    cal.save(falling, tmp_path / "c.json")
    assert (cal.load(tmp_path / "c.json").calibrate(new) == falling.calibrate(new)).all()
    namespace: dict = {}
    exec(cal.to_python(falling), namespace)
    told = [namespace["calibrate"](float(s)) for s in new]
    assert np.abs(told - wanted).max() < 1e-9
    assert clone(falling).direction == "falling"


@pytest.mark.parametrize("name", ["Platt", "Isotonic", "BLS", "AutoCalibrator"])
def test_auto_takes_the_side_that_the_labels_show(name):
    make = getattr(cal, name)
    for scores, side in ((SCORES, "falling"), (1 - SCORES, "rising")):
        auto = make(direction="auto").fit(scores, LABELS)
        assert auto.direction_ == side
        said = make(direction=side).fit(scores, LABELS)
        assert (auto.calibrate(scores) == said.calibrate(scores)).all()


def test_auto_warns_where_the_labels_show_no_side():
    with pytest.warns(CalibrationWarning, match='direction="rising" or "falling"'):
        cal.Isotonic(direction="auto").fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 0])


def test_a_table_falls_like_its_rows():
    table = cal.ScoreTable.from_arrays(1000 * SCORES, LABELS)
    by_table = cal.BLS(direction="falling").fit_table(table)
    by_rows = cal.BLS(direction="falling").fit(1000 * SCORES, LABELS)
    assert (by_table.calibrate(1000 * SCORES) == by_rows.calibrate(1000 * SCORES)).all()


def test_the_automatic_choice_of_falling_scores():
    """The choice, its leaderboard, its groups and what it took are those of mirrored scores."""
    auto = cal.AutoCalibrator(direction="falling").fit(SCORES, LABELS)
    turned = cal.AutoCalibrator().fit(1 - SCORES, LABELS)
    for ours, theirs in zip(auto.leaderboard_.rows, turned.leaderboard_.rows, strict=True):
        assert (ours.name, ours.log_loss, ours.auc) == (theirs.name, theirs.log_loss, theirs.auc)
    assert auto.explain() == turned.explain()
    assert (auto.calibrator_.calibrate(SCORES) == auto.calibrate(SCORES)).all()
    groups = np.arange(300) // 3
    auto = cal.AutoCalibrator(direction="falling").fit(SCORES, LABELS, groups=groups)
    turned = cal.AutoCalibrator().fit(1 - SCORES, LABELS, groups=groups)
    assert np.allclose(auto.calibrate(SCORES), turned.calibrate(1 - SCORES), rtol=0, atol=1e-11)
    assert auto.score_range_.low == pytest.approx(SCORES.min(), abs=0.01)


def test_right_scores_that_fall_are_not_kept_as_they_are():
    scores = RANDOM.random(2000)
    auto = cal.AutoCalibrator(direction="falling").fit(scores, RANDOM.random(2000) < 1 - scores)
    assert auto.chosen_ == "uncalibrated"
    said = "Low scores mean True: they are read as 1 − score. So read, they are kept: "
    assert auto.explain().startswith(said)
    assert np.allclose(auto.calibrate(scores), 1 - scores)
    (points,) = (one.text for one in cal.advise(1000 * SCORES, LABELS, cal.Platt(direction="auto")))
    assert "go from -" not in points


def test_what_cannot_fall():
    with pytest.raises(ParameterError, match="direction of Platt must be"):
        cal.Platt(direction="down").fit(SCORES, LABELS)
    several = RANDOM.normal(size=(60, 3))
    for name in ("Temperature", "AutoCalibrator"):
        with pytest.raises(InputError, match='direction must be "rising" for scores of several'):
            getattr(cal, name)(direction="falling").fit(several, np.arange(60) % 3)
    with pytest.raises(ParameterError, match="where features are given"):
        cal.AutoCalibrator(direction="falling").fit(
            SCORES, LABELS, features=RANDOM.normal(size=(300, 2))
        )
