"""What every calibrator promises, on data sets of every kind."""

from __future__ import annotations

import pickle
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone

import calibrant as cal
from cases import CASES, each
from strategies import MARGINS, PROBABILITIES, REAL, TAME_MARGINS, TAME_PROBABILITIES, costly, rows
from twins import rare

ALL = each()
# a gap that scores of very different spacing leave open is told by a warning, as it should be
pytestmark = pytest.mark.filterwarnings("ignore:the relative duality gap")
QUERY = np.array([-1.7e308, -50.0, -1.0, 0.0, 1e-300, 0.2, 0.5, 0.77, 1.0, 3.0, 700.0, 1.7e308])


def queries(s):
    """Training scores, their neighbours and far away ones."""
    with np.errstate(over="ignore"):
        around = np.concatenate((s, np.nextafter(s, np.inf), np.nextafter(s, -np.inf), QUERY))
    return np.unique(around[np.isfinite(around)])


def fit(case, s, y, w=None):
    return clone(case.calibrator).set_params(classes=[0, 1]).fit(s, y, w)


def fit_counts(case, s, y, w):
    """Fitted to rows of which each was seen w times; w may be a fraction."""
    calibrator = clone(case.calibrator).set_params(classes=[0, 1])
    if "weights" in calibrator.get_params():
        calibrator.set_params(weights="counts")
    return calibrator.fit(s, y, w)


def assert_same(one, two, s):
    """To the last bit; to rounding where only ratios of weights matter, so that sums differ."""
    if "weights" in one.get_params():
        assert one.map_ == two.map_
    else:
        assert np.abs(one.calibrate(s) - two.calibrate(s)).max() < 1e-12


@ALL
@given(data=st.one_of(rows(), rows(weight=REAL)))
@example(data=(np.array([0.5]), np.array([1]), np.array([1.0])))
@example(data=(np.array([0.0, 1.0]), np.array([0, 1]), np.array([1.0, 1.0])))
@example(data=(np.array([-1.7e308, 1.7e308]), np.array([0, 1]), np.array([1.0, 1.0])))
@example(data=(np.array([1.7e308, -1.7e308, 0.0]), np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0])))
def test_probabilities_are_finite_and_in_range(case, data):
    s, y, w = data
    p = fit(case, s, y, w).calibrate(queries(s), on_range="allow")
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert p.max() <= 1


@ALL
@given(data=rows())
def test_monotone(case, data):
    if not case.monotone:
        pytest.skip("does not promise to be monotone")
    s, y, w = data
    p = fit(case, s, y, w).calibrate(queries(s), on_range="allow")
    # lines and steps are monotone to the last bit, sigmoids to rounding
    slack = 0.0 if isinstance(case.calibrator, cal.Isotonic | cal.Rescale) else 1e-12
    assert (np.diff(p) >= -slack).all()


@ALL
@given(data=rows())
def test_counts_are_repetitions(case, data):
    s, y, w = data
    times = w.astype(int)
    weighted = fit_counts(case, s, y, w)
    many = np.repeat(s, times), np.repeat(y, times)
    assert weighted.map_ == fit(case, *many).map_
    table = cal.ScoreTable.from_counts(s, w * (y == 0), w * (y == 1))
    assert clone(case.calibrator).fit_table(table).map_ == weighted.map_


@ALL
@given(data=rows(), weight=st.sampled_from([0.1, 1 / 3, 7.0, 1e-3, 1e6, 1e-90]))
@costly
def test_equal_weights_are_no_weights(case, data, weight):
    s, y, _ = data
    assert_same(fit(case, s, y, np.full(len(s), weight)), fit(case, s, y), s)


@ALL
@given(data=rows(weight=REAL))
@costly
def test_a_power_of_two_on_all_weights_changes_no_bit(case, data):
    s, y, w = data
    present = s[w > 0]  # absent rows may have scores of another range
    for power in (-20, -1, 3):
        assert_same(fit(case, s, y, w * 2.0**power), fit(case, s, y, w), present)


@ALL
def test_a_factor_on_all_weights_changes_nothing(case):
    rng = np.random.default_rng(7)
    s = rng.random(300)
    y, w = rng.random(300) < s**2, rng.gamma(2.0, 1.0, 300)
    expected = fit(case, s, y, w).calibrate(s)
    for factor in (20.0, 1e-3, 1.0 / w.sum()):
        assert np.abs(fit(case, s, y, factor * w).calibrate(s) - expected).max() < 1e-12


@ALL
@given(data=rows(weight=REAL, score=TAME_PROBABILITIES), seed=st.integers(0, 9))
@costly
def test_order_of_rows_does_not_matter(case, data, seed):
    s, y, w = data
    order = np.random.default_rng(seed).permutation(len(s))
    if case.stable:
        one, two = fit(case, s, y, w), fit(case, s[order], y[order], w[order])
        assert (
            np.abs(
                one.calibrate(QUERY, on_range="allow") - two.calibrate(QUERY, on_range="allow")
            ).max()
            < case.tol
        )
    plain_one, plain_two = fit(case, s, y), fit(case, s[order], y[order])
    assert plain_one.map_ == plain_two.map_


@ALL
@given(data=rows(), at=st.integers(0, 30))
@costly
def test_merged_tables_are_concatenated_rows(case, data, at):
    s, y, w = data
    at = min(at, len(s))
    parts = [
        cal.ScoreTable.from_arrays(s[i], y[i], w[i], classes=[0, 1])
        for i in (slice(0, at), slice(at, None))
        if w[i].any()
    ]
    merged = sum(parts[1:], parts[0])
    assert clone(case.calibrator).fit_table(merged).map_ == fit(case, s, y, w).map_


@ALL
def test_round_trips(case, tmp_path):
    rng = np.random.default_rng(3)
    s = rng.random(300)
    y = np.where(rng.random(300) < s**2, "yes", "no")
    fitted = clone(case.calibrator).fit(s, y)
    again = clone(case.calibrator).fit(s, y)
    assert fitted.map_ == again.map_, "not deterministic"
    assert hash(fitted.map_) == hash(again.map_)
    for twin in (pickle.loads(pickle.dumps(fitted)), deepcopy(fitted)):
        assert twin.map_ == fitted.map_
        assert (twin.predict_proba(s) == fitted.predict_proba(s)).all()
    assert clone(fitted).get_params() == fitted.get_params()
    cal.save(fitted, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded == fitted.to_fitted()
    assert loaded.classes == ("no", "yes")
    assert (loaded.calibrate(s) == fitted.calibrate(s)).all()
    assert (loaded.predict_proba(s) == fitted.predict_proba(s)).all()
    assert (loaded.predict(s) == fitted.predict(s)).all()


@ALL
@given(
    data=st.one_of(
        rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4),
        rows(score=TAME_MARGINS, both_classes=True, min_size=4),
        rows(score=TAME_PROBABILITIES, both_classes=True, min_size=4, weight=REAL),
    )
)
def test_equals_its_slow_twin(case, data):
    if case.twin is None:
        pytest.skip("has no twin of its own; its parts are tested elsewhere")
    s, y, w = data
    query = np.linspace(min(s.min(), 0), max(s.max(), 1), 23)
    query = np.concatenate((query, s))
    if case.exact:
        expected = case.twin(s, y, w, query)
        assume(expected is not None)  # two answers are equally good
        assert (
            np.abs(fit_counts(case, s, y, w).calibrate(query, on_range="allow") - expected).max()
            < case.tol
        )
        return
    keep = w > 0
    s, y, w = s[keep], y[keep], w[keep]
    # where classes separate the unsmoothed optimum is at infinity and no twin can be had
    low, high = s[y == 1], s[y == 0]
    assume(low.min() < high.max() and low.max() > high.min())
    # compared at the scores themselves: with few of them the parameters are not determined
    ours, expected = fit_counts(case, s, y, w).calibrate(s), case.twin(s, y, w, s)
    assert np.abs(ours - expected).max() < 2e-4
    # Platt's targets are smoothed
    slack = 1e-3 if isinstance(case.calibrator, cal.Platt) else 1e-7
    assert log_loss(y, w, ours) <= log_loss(y, w, expected) + slack


def log_loss(y, w, p):
    p = np.clip(p, 1e-300, 1 - 1e-16)
    return -np.average(np.where(y == 1, np.log(p), np.log1p(-p)), weights=w)


@ALL
@pytest.mark.parametrize(
    "data",
    [
        ([0.4], [1]),
        ([0.4], [0]),
        ([0.4, 0.4], [0, 1]),
        ([0.1, 0.9], [1, 1]),
        ([0.1, 0.9], [0, 1]),
        ([0.1, 0.9], [1, 0]),
        ([3.0], [1]),
        ([-1.0, 5.0], [0, 0]),
        ([0.0, 0.0, 1.0], [0, 0, 1]),
    ],
    ids=str,
)
def test_degenerate_tables_fit(case, data):
    p = fit(case, *data).calibrate(QUERY, on_range="allow")
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()


@ALL
def test_any_two_labels_give_the_same_map(case):
    rng = np.random.default_rng(5)
    s = rng.random(200)
    y = (rng.random(200) < s).astype(int)
    expected = clone(case.calibrator).fit(s, y)
    for low, high in [(-1, 1), (1, 2), (False, True), ("neg", "pos"), (0.0, 1.0), (-5, 77)]:
        labels = np.where(y == 1, high, low)
        c = clone(case.calibrator).fit(s, labels)
        assert c.map_ == expected.map_
        assert c.classes_.tolist() == [low, high]
        assert (c.predict_proba(s) == expected.predict_proba(s)).all()
        turned = clone(case.calibrator).set_params(pos_label=low).fit(1 - s, labels)
        assert turned.pos_label_ == low
        assert (turned.predict_proba(1 - s)[:, 0] == turned.calibrate(1 - s)).all()


@ALL
@given(s=st.lists(st.one_of(PROBABILITIES, MARGINS), min_size=1, max_size=20))
@costly
def test_shapes_of_scores(case, s):
    s = np.clip(np.array(s), 0, 1)
    c = fit(case, [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    expected = c.calibrate(s)
    assert (c.calibrate(s[:, None]) == expected).all()
    assert (c.calibrate(np.column_stack((1 - s, s))) == expected).all()
    assert (c.calibrate(s.tolist()) == expected).all()


@pytest.mark.parametrize("weight", [0.3, 0.1, 1 / 3, 7.0])
def test_constant_weights_do_not_move_the_bins(weight):
    s, y = np.arange(100) / 100, np.arange(100) % 2
    for c in (cal.Histogram(), cal.Histogram(bins=7), cal.Histogram(binning="width")):
        plain, weighted = clone(c).fit(s, y), clone(c).fit(s, y, np.full(100, weight))
        assert np.array_equal(plain.map_.x, weighted.map_.x)


def test_margins_of_hardly_any_size():
    c = cal.Temperature().fit([-1e-300, 1e-300], [0, 1])
    assert np.isfinite(c.calibrate([-1e-300, 0.0, 1e-300], on_range="allow")).all()
    assert cal.ABB(lambda_=3, cache=100).fit([1e15, 1e15 + 1, 1e15 + 2], [0, 1, 1]).map_


@ALL
@pytest.mark.parametrize("weight", [1e-149, 1e99, 1e100])
def test_extreme_weights_give_probabilities_or_a_reason(case, weight):
    rng = np.random.default_rng(3)
    s = rng.random(60)
    y, w = rng.random(60) < s, rng.integers(1, 3, 60) * 0.5 * weight
    try:
        c = clone(case.calibrator).fit(s, y, w * (s < 0.9))
    except cal.errors.InputError:
        return
    p = c.calibrate([0.0, 0.3, 0.9, 7.0], on_range="allow")
    assert ((p >= 0.0) & (p <= 1.0)).all()


@each([case for case in CASES if case.keeps_rate])
@pytest.mark.parametrize("kind", ["uniform", "logits"])
def test_probabilities_of_rare_events_sum_to_the_events(case, kind):
    for events, signal in product((30, 300), ("top", "flat", "middle", "reversed")):
        s, y = rare.rows(6_000, events, signal, kind)
        p = clone(case.calibrator).fit(s, y).calibrate(s)
        assert p.sum() == pytest.approx(events, rel=0.01)
