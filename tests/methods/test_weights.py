"""What weights mean, where more than a table is fitted: rows, several classes, segments, models.

Calibrators of one score keep the same promises in `test_promises`.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant.data.score_table import table_in_rows, weight_in_rows

RNG = np.random.default_rng(11)
N = 160
LOGITS = RNG.normal(size=(N, 3)) * 2
CLASSES = (LOGITS * 0.4 + RNG.gumbel(size=(N, 3))).argmax(axis=1)
SCORES = RNG.random(N)
LABELS = (RNG.random(N) < SCORES**2).astype(int)
FEATURES = RNG.normal(size=(N, 2)).round(1)
SEGMENTS = RNG.choice(["a", "b"], N)
WEIGHT = RNG.gamma(2.0, 1.0, N)
TIMES = RNG.integers(1, 4, N)
FACTORS = (20.0, 1e-3, 1.0 / WEIGHT.sum())


def several(c, rows, w):
    return c.fit(LOGITS[rows], CLASSES[rows], w).predict_proba(LOGITS)


def many_labels(c, rows, w):
    Y = np.column_stack((CLASSES == 0, CLASSES == 1))
    return c.fit(LOGITS[rows, :2], Y[rows], w).predict_proba(LOGITS[:, :2])


def by_segment(c, rows, w):
    c.fit(SCORES[rows], LABELS[rows], w, segments=SEGMENTS[rows])
    return c.calibrate(SCORES, SEGMENTS)


def similar(c, rows, w):
    c.fit(SCORES[rows], LABELS[rows], features=FEATURES[rows], sample_weight=w)
    return c.calibrate(SCORES, features=FEATURES)


def inside(c, rows, w):
    c.fit(SCORES[rows], LABELS[rows], w)
    return c.calibrate(SCORES, lower=SCORES - 0.1, upper=SCORES + 0.1)


def boosted(c, rows, w):
    return c.fit(FEATURES[rows], LABELS[rows], w).predict_proba(FEATURES)


#: an instance, how it is fitted and applied, and whether counts are repetitions exactly (a row that
#: is held out to choose something stays whole in its fold)
USES = {
    "structured": (cal.StructuredScaling(gate=False), several, True),
    "ensemble temperature": (cal.EnsembleTemperature(), several, True),
    "matrix": (cal.MatrixScaling(lambda_=0.1, gate=False), several, True),
    "dirichlet": (cal.Dirichlet(lambda_=0.1, gate=False), several, True),
    "vector": (cal.VectorScaling(gate=False), several, True),
    "temperature": (cal.Temperature(), several, True),
    "coded": (cal.CodedCalibrator(cal.Platt()), several, True),
    "all pairs": (cal.CodedCalibrator("platt", code="all_pairs"), several, True),
    "several, auto": (cal.AutoCalibrator(cv=2), several, False),
    "labels": (cal.MultiLabelCalibrator(cal.BLS()), many_labels, True),
    "segments": (cal.SegmentedCalibrator(shrinkage=20.0), by_segment, True),
    "segments, Platt": (cal.SegmentedCalibrator(cal.Platt(), shrinkage=20.0), by_segment, True),
    "similarity": (cal.SimilarityBinning(gate=False, k=7, smoothing="ibk"), similar, True),
    "similarity, auto": (cal.SimilarityBinning(gate=False, k="auto"), similar, True),
    "acp": (cal.ACP(smoothing="laplace"), inside, True),
    "boosting": (cal.boosting.AdaBoost(n_estimators=5, random_state=0), boosted, True),
}
EVERYONE = np.arange(N)
ALL = pytest.mark.parametrize("name", USES)
# few rows of a class are warned of, as they should be
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")


def counting(c):
    names = [name for name in c.get_params() if name.split("__")[-1] == "weights"]
    return c.set_params(**dict.fromkeys(names, "counts"))


def made(name):
    """A fresh copy, with a named calibrator as an instance so that its options can be set."""
    c = clone(USES[name][0])
    if isinstance(c.get_params().get("calibrator"), str):
        c.set_params(calibrator=cal.Platt())
    return c


@ALL
@pytest.mark.parametrize("factor", FACTORS)
def test_a_factor_on_all_weights_changes_nothing(name, factor):
    use = USES[name][1]
    one, two = (use(made(name), EVERYONE, w) for w in (WEIGHT, factor * WEIGHT))
    assert np.abs(one - two).max() < 1e-8


@ALL
@pytest.mark.parametrize("weight", [0.1, 1.0 / N, 20.0])
def test_equal_weights_are_no_weights(name, weight):
    use = USES[name][1]
    one, two = use(made(name), EVERYONE, np.full(N, weight)), use(made(name), EVERYONE, None)
    assert np.abs(one - two).max() < 1e-9


@pytest.mark.parametrize("name", [name for name, (_, _, exact) in USES.items() if exact])
def test_counts_are_repetitions(name):
    use = USES[name][1]
    one = use(counting(made(name)), EVERYONE, TIMES.astype(float))
    two = use(made(name), np.repeat(EVERYONE, TIMES), None)
    assert np.abs(one - two).max() < 1e-6


def test_weights_of_sum_one_do_not_swamp_priors():
    """Platt's targets and the prior of BLS count rows, not what their weights sum to."""
    s, y = RNG.random(2000), RNG.random(2000) < 0.02
    for c in (cal.Platt(), cal.BLS()):
        p = c.fit(s, y, np.full(2000, 1 / 2000)).calibrate(s)
        assert p.sum() == pytest.approx(y.sum(), rel=0.02)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_rows_scored_several_times_are_still_one_row_each(weight):
    X, y = make_classification(N, random_state=1)
    many = RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0)
    model = cal.CalibratedClassifier(GaussianNB(), cal.Platt(), cv=many)
    model.fit(X, y, weight)
    size = N if weight is None else weight.sum() ** 2 / (weight @ weight)
    assert model.calibrator_._provenance["weight"] == pytest.approx(size)
    assert model.calibrator_.weights == "importance"
    scaled = clone(model).fit(X, y, np.full(N, 5.0) if weight is None else 5.0 * weight)
    assert np.abs(scaled.predict_proba(X) - model.predict_proba(X)).max() < 1e-12


def test_tables_in_units_of_rows():
    table = cal.ScoreTable.from_arrays(SCORES.round(1), LABELS, WEIGHT)
    rows = table_in_rows(table, "importance")
    assert rows.total == pytest.approx(table.effective_size)
    assert rows.effective_size == pytest.approx(table.effective_size)
    assert table_in_rows(rows, "importance") == rows
    assert table_in_rows(table, None) is table
    counted = table_in_rows(table, "counts")
    assert counted.effective_size == pytest.approx(table.total)
    plain = cal.ScoreTable.from_arrays(SCORES.round(1), LABELS)
    for weight in (0.1, 1 / 3, 1e-90, 7.0):
        even = cal.ScoreTable.from_arrays(SCORES.round(1), LABELS, np.full(N, weight))
        assert table_in_rows(even, "importance") == plain
    assert weight_in_rows(WEIGHT, "counts") is WEIGHT
    assert weight_in_rows(WEIGHT, "importance").sum() == pytest.approx(table.effective_size)


@pytest.mark.parametrize(
    "fit",
    [
        lambda w: cal.Isotonic(weights="counts").fit(SCORES, LABELS, w),
        lambda w: cal.Spline(weights="counts").fit(SCORES, LABELS, w),
        lambda w: cal.Dirichlet(weights="counts").fit(LOGITS, CLASSES, w),
        lambda w: cal.SegmentedCalibrator(cal.Platt(weights="counts"), weights="counts").fit(
            SCORES, LABELS, segments=SEGMENTS, sample_weight=w
        ),
    ],
    ids=["Isotonic", "Spline", "Dirichlet", "SegmentedCalibrator"],
)
def test_more_rows_than_floats_can_count_are_refused(fit):
    with pytest.raises(cal.errors.InputError, match="sum must be at most 2⁵³"):
        fit(np.full(N, 1e50))
    fit(np.full(N, 1e13))


@pytest.mark.parametrize("weight", [1e6, 1e10, 1e12, 1e15])
@pytest.mark.parametrize("penalty", ["evidence", "cv"])
def test_heavy_counts_that_separate_give_the_rates_of_the_targets(penalty, weight):
    """Each score has one class: its probability is that of Platt's target."""
    c = cal.Spline(weights="counts", penalty=penalty).fit([0.2, 0.5, 0.8], [0, 1, 1], [weight] * 3)
    p = c.calibrate([0.2, 0.5, 0.8])
    assert p[0] == pytest.approx(1.0 / weight, rel=0.5)
    np.testing.assert_allclose(p[1:], 1.0, atol=5.0 / weight + 1e-15)


@pytest.mark.parametrize("one_class", [False, True], ids=["two classes", "one class"])
@pytest.mark.parametrize(
    "calibrator",
    [cal.Beta(), cal.Platt(), cal.Isotonic(), cal.ENIR(), cal.Spline(), cal.BLS(), cal.Quadratic()],
    ids=lambda c: type(c).__name__,
)
def test_the_order_of_rows_does_not_matter(calibrator, one_class):
    """Fractional weights: sums differ by rounding. Whole counts are summed exactly."""
    scores, labels = SCORES.round(1), np.where(one_class, 1, LABELS)
    counted = clone(calibrator).set_params(weights="counts")
    for c, weight, most in ((calibrator, WEIGHT, 1e-9), (counted, TIMES, 0.0)):
        first = clone(c).fit(scores, labels, weight).calibrate(SCORES)
        for seed in range(4):
            rows = np.random.default_rng(seed).permutation(N)
            again = clone(c).fit(scores[rows], labels[rows], weight[rows]).calibrate(SCORES)
            np.testing.assert_allclose(again, first, rtol=most, atol=0.0)


def test_a_very_light_row_is_not_taken_for_an_absent_one():
    table = cal.ScoreTable.from_arrays([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], [1.0, 1.0, 1.0, 1e-10])
    rows = table_in_rows(table, "importance")
    np.testing.assert_allclose(rows.positive, [0.0, 1.0, 0.0, 1e-10], rtol=1e-6)


@pytest.mark.parametrize("weight", [1e-12, 1e6, 1e12, 1e13])
def test_segments_take_light_and_heavy_counts(weight):
    c = cal.SegmentedCalibrator(weights="counts")
    c.fit(SCORES, LABELS, segments=SEGMENTS, sample_weight=np.full(N, weight))
    p = c.calibrate(SCORES, segments=SEGMENTS)
    assert ((p >= 0.0) & (p <= 1.0)).all()
