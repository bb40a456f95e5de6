"""What scores look like, and how they are read as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

import calibrant as cal
from calibrant.data.scale import ScoreScale


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
    assert table(*scores).scale.kind == kind
    assert (table(*scores).as_probabilities() is None) == (kind == "points")


def test_a_rounded_percentage_is_no_certainty():
    whole = table(0, 1, 50, 98, 100)
    assert whole.as_probabilities().scores.tolist() == [0.005, 0.01, 0.5, 0.98, 0.99]
    assert cal.Uncalibrated().fit_table(whole).calibrate(whole.scores) == pytest.approx(
        whole.probability_of(whole.scores), abs=1e-15
    )
    assert table(0, 100).as_probabilities().scores.tolist() == [0.25, 0.75]


def test_points_stand_for_no_probability():
    points = table(300, 400, 850)
    with pytest.raises(ValueError, match="no probability"):
        points.probability_of(points.scores)
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


# --- one score outside [0, 1]: the whole decides, folds and segments follow -----------------------

#: the scales that fits have taken
SEEN: list[str] = []


class Watched(cal.Platt):
    """Platt, which remembers what its scores looked like."""

    def _fit(self, table):
        map_ = super()._fit(table)
        SEEN.append(self.scale_)
        return map_


@pytest.fixture
def one_beyond():
    SEEN.clear()
    rng = np.random.default_rng(5)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    p[7], y[7] = 1.7, 1
    return p, y


def scales_of(calibrator, *rows, **options):
    calibrator.fit(*rows, **options)
    return set(SEEN), len(SEEN)


def test_folds_read_scores_as_the_whole_does(one_beyond):
    found, count = scales_of(cal.AutoCalibrator(candidates=[Watched()]), *one_beyond)
    assert found == {"raw"}
    assert count > 5


def test_folds_by_groups_read_scores_as_the_whole_does(one_beyond):
    one = cal.AutoCalibrator(candidates=[Watched()])
    found, count = scales_of(one, *one_beyond, groups=np.arange(400) // 4)
    assert found == {"raw"}
    assert count > 5


def test_segments_and_their_folds_read_scores_as_the_whole_does(one_beyond):
    segments = np.arange(400) % 4
    one = cal.SegmentedCalibrator(Watched(), min_rows=10, min_events=5)
    found, count = scales_of(one, *one_beyond, segments=segments)
    assert found == {"raw"}
    assert count > 5


class FirstColumns(ClassifierMixin, BaseEstimator):
    """A model whose scores are the first columns of its rows: one, or one for each of 3 classes."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X[:, :3]


@pytest.mark.parametrize("ensemble", [True, False])
def test_members_of_a_classifier_read_scores_as_the_whole_does(one_beyond, ensemble):
    p, y = one_beyond
    one = cal.CalibratedClassifier(FirstColumns(), Watched(), cv=4, ensemble=ensemble)
    found, count = scales_of(one, p[:, None], y)
    assert found == {"raw"}
    assert count == (4 if ensemble else 1)


@pytest.mark.parametrize("ensemble", [True, False])
def test_members_of_segments_or_several_classes_read_scores_as_the_whole_does(one_beyond, ensemble):
    p, y = one_beyond
    more = {"cv": 4, "ensemble": ensemble}
    own = cal.SegmentedCalibrator(Watched(), min_rows=10, min_events=5)
    by_segment = cal.CalibratedClassifier(FirstColumns(), own, segments=1, **more)
    found, count = scales_of(by_segment, np.column_stack((p, np.arange(400) % 2)), y)
    assert found == {"raw"}
    assert count > 5
    SEEN.clear()
    of_classes = cal.CalibratedClassifier(FirstColumns(), Watched(), **more)
    scores = np.column_stack((p, 1.0 - p / 2, p / 2))
    found = scales_of(of_classes, scores, np.where(p < 0.3, 2, y))
    assert found == ({"raw"}, 12 if ensemble else 3)


def test_columns_of_classes_read_scores_as_the_whole_does(one_beyond):
    p, y = one_beyond
    classes = np.where(p < 0.3, 2, y)
    scores = np.column_stack((p, 1 - p / 2, p / 2))
    assert scales_of(cal.CodedCalibrator(Watched()), scores, classes) == ({"raw"}, 3)


class WatchedRows(cal.VectorScaling):
    """Vector scaling, which remembers what its rows were read as."""

    def _fit(self, matrix):
        map_ = super()._fit(matrix)
        SEEN.append(map_.reads)
        return map_


@pytest.fixture
def one_row_beyond():
    """Distributions of three classes, but for one row."""
    SEEN.clear()
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 1, 1], 400)
    y = np.array([rng.choice(3, p=row) for row in p])
    p[7] = [1.7, 0.2, 0.1]
    return p, y


@pytest.mark.parametrize("cv", [4, 0.25, KFold(3)], ids=str)
def test_folds_of_several_classes_read_rows_as_the_whole_does(one_row_beyond, cv):
    cal.AutoCalibrator(candidates=[WatchedRows()], cv=cv).fit(*one_row_beyond)
    assert set(SEEN) == {"logit"}
    assert len(SEEN) > 1


def test_the_gate_of_neighbours_reads_rows_as_the_whole_does(one_row_beyond, monkeypatch):
    monkeypatch.setattr("calibrant.methods.uncalibrated.to_calibrator", lambda name: WatchedRows())
    scores, y = one_row_beyond
    cal.SimilarityBinning().fit(scores, y, features=scores[:, :1])
    assert set(SEEN) == {"logit"}
    assert len(SEEN) >= 5


@pytest.mark.parametrize("ensemble", [True, False])
def test_members_read_rows_of_several_classes_as_the_whole_does(one_row_beyond, ensemble):
    scores, y = one_row_beyond
    cal.CalibratedClassifier(FirstColumns(), WatchedRows(), cv=4, ensemble=ensemble).fit(scores, y)
    assert ["logit"] * (4 if ensemble else 1) == SEEN


def test_members_with_neighbours_read_scores_as_the_whole_does(one_beyond, monkeypatch):
    p, y = one_beyond
    monkeypatch.setattr(
        "calibrant.methods.uncalibrated.to_calibrator",
        lambda name: cal.Uncalibrated() if name == "uncalibrated" else Watched(),
    )
    X = np.column_stack((p, np.arange(400) % 7))
    cal.CalibratedClassifier(FirstColumns(), cal.SimilarityBinning(), cv=4, ensemble=True).fit(X, y)
    assert set(SEEN) == {"raw"}


def test_pooled_cells_read_scores_as_the_whole_does(one_beyond):
    whole = cal.ScoreTable.from_arrays(*one_beyond)
    few = whole.pool(4)
    assert few.scores[-1] < 1.0
    assert not few.looks_like_probabilities
    assert cal.ScoreTable.gather([few, few]).scale == whole.scale
    assert not cal.Platt().fit_table(few).score_range_.probabilities


def test_parts_of_percentages_and_points_are_percentages_and_points():
    part = table(0.1, 0.4, 0.9)
    assert part.part_of(ScoreScale(0.0, 97.0)).scale.kind == "percentages"
    assert part.part_of(ScoreScale(0.0, 850.0)).scale.kind == "points"
    assert part.part_of(ScoreScale(0.0, 1.0)) is part
