"""What scores look like, and how they are read as probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.score_kinds import as_probabilities, kind_of, probability_of


def table(*scores):
    return cal.ScoreTable.from_arrays(np.array(scores, float), np.arange(len(scores)) % 2)


@pytest.mark.parametrize(
    ("scores", "kind"),
    [
        ((0.0, 1.0), "probabilities"),
        ((0.0, 10.0), "margins"),
        ((0.0, 10.5), "percentages"),
        ((0.0, 100.0), "percentages"),
        ((-0.5, 100.0), "margins"),
        ((0.0, 100.5), "points"),
        ((300.0, 850.0), "points"),
        ((-101.0, 5.0), "points"),
        ((-3.0, 4.0), "margins"),
    ],
)
def test_kinds(scores, kind):
    assert kind_of(table(*scores)) == kind
    assert (as_probabilities(table(*scores)) is None) == (kind == "points")


def test_a_rounded_percentage_is_no_certainty():
    whole = table(0, 1, 50, 98, 100)
    assert as_probabilities(whole).scores.tolist() == [0.005, 0.01, 0.5, 0.98, 0.99]
    assert cal.Uncalibrated().fit_table(whole).calibrate(whole.scores) == pytest.approx(
        probability_of(whole.scores, whole), abs=1e-15
    )
    assert as_probabilities(table(0, 100)).scores.tolist() == [0.25, 0.75]


def test_points_stand_for_no_probability():
    points = table(300, 400, 850)
    with pytest.raises(ValueError, match="no probability"):
        probability_of(points.scores, points)
    assert cal.Uncalibrated().fit_table(points).calibrate([300, 850]).tolist() == [1 / 3, 1 / 3]


@pytest.mark.parametrize("cells", ["auto", 64])
@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_raw_scores_of_another_scale_have_no_infinite_loss(scale, cells):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 2000)
    y = rng.random(2000) < p
    frame = pl.DataFrame({"p": p, "s": scale * p, "y": y})
    found = cal.evaluate(frame, "p", raw="s", label="y", cells=cells, level=None)
    assert found.before["auc"] == pytest.approx(cal.metrics.auc(y, p), abs=0.01)
    if scale == 100.0:
        assert found.before["brier"] == pytest.approx(found.after["brier"], abs=1e-9)
        assert any("look like percentages" in note for note in found.notes)
    else:
        assert set(found.before) == {"auc"}
        assert any("points, not probabilities" in note for note in found.notes)
    rows = cal.evaluate(y, p, raw=scale * p, level=None)
    for name, value in found.before.items():
        assert rows.before[name] == pytest.approx(value, abs=0.01)


def test_rows_without_weight_do_not_make_percentages():
    pl = pytest.importorskip("polars")
    p = np.linspace(0.1, 0.9, 50)
    frame = pl.DataFrame(
        {
            "p": np.append(p, 0.5),
            "s": np.append(p, 50.0),
            "y": np.arange(51) % 2,
            "w": 50 * [1] + [0],
        }
    )
    options = {"raw": "s", "label": "y", "sample_weight": "w", "level": None}
    found = cal.evaluate(frame, "p", cells=16, **options)
    assert found.before["brier"] == pytest.approx(found.after["brier"], abs=1e-9)
    assert not any("percentages" in note for note in found.notes)
