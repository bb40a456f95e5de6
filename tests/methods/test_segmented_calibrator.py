"""A map for each segment: shrunk as promised, the same by rows and by tables, one small file."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, RepeatedStratifiedKFold, StratifiedKFold

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.maps import Identity, Logistic, Map, Piecewise, Segmented
from calibrant.methods.segments import (
    OFFSET,
    SLOPE,
    Segment,
    SegmentedCalibrator,
    SegmentMethod,
    SegmentTables,
    deal_segment_folds,
    fit_sigmoids,
    try_shrinkages,
)
from strategies import REAL, TAME_PROBABILITIES, WHOLE, rows
from studies import experiment
from twins import segment as naive

PLACES = np.linspace(0.02, 0.98, 13)
#: tests that ask for segments which a fit has not seen, on purpose
also_new = pytest.mark.filterwarnings("ignore:.*has not seen:calibrant.errors.CalibrationWarning")


def simulate(seed, segments=20, size=150, spread=0.6, rate_shift=-1.0):
    """Scores that are too sure, in segments whose logits are off by a normal amount."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(segments), rng.integers(size // 3, 2 * size, segments))
    z = rng.normal(rate_shift, 1.5, len(g))
    off = rng.normal(0, spread, segments)
    p = 1 / (1 + np.exp(-(0.7 * z + off[g])))
    return 1 / (1 + np.exp(-z)), (rng.random(len(g)) < p).astype(int), g, p


@st.composite
def segmented_rows(draw, weight=WHOLE, **options):
    s, y, w = draw(rows(score=TAME_PROBABILITIES, weight=weight, **options))
    g = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=len(s), max_size=len(s)))
    return s, y, w, np.array(g)


def fixed(**options):
    return SegmentedCalibrator(cal.Platt(), min_rows=0, classes=[0, 1], **options)


# --- what it computes ---------------------------------------------------------------------------


@also_new
@given(segmented_rows(weight=REAL), st.sampled_from([0, 0.7, 20.0]), st.sampled_from([0, 3]))
def test_segments_are_the_naive_mixture(data, kappa, minimum):
    s, y, w, g = data
    c = fixed(shrinkage=kappa).set_params(min_rows=minimum, min_events=minimum / 3)
    c.fit(s, y, w, segments=g)

    def fit(s, y, w):
        return cal.Platt(classes=[0, 1]).fit(s, y, w).map_

    p = naive.mixed(fit, s, y, w, g.tolist(), kappa, minimum, minimum / 3)
    for key in ("a", "b", "c", "d"):
        found = c.calibrate(PLACES, [key] * len(PLACES))
        assert found == pytest.approx([p(v, key) for v in PLACES], abs=1e-9)


@also_new
@given(rows(score=TAME_PROBABILITIES), st.sampled_from([cal.Platt(), cal.Isotonic(), cal.Beta()]))
def test_one_segment_without_shrinkage_is_the_calibrator(data, calibrator):
    s, y, w = data
    plain = clone(calibrator).set_params(classes=[0, 1]).fit(s, y, w)
    c = SegmentedCalibrator(calibrator, shrinkage=0, min_rows=0, classes=[0, 1])
    c.fit(s, y, w, segments=np.full(len(s), 7))
    assert c.map_.maps == (plain.map_,)
    assert (c.calibrate(PLACES, [7] * 13) == plain.calibrate(PLACES)).all()
    assert (c.calibrate(PLACES, [8] * 13) == plain.calibrate(PLACES)).all()


@pytest.mark.full
def test_segments_that_do_not_differ_have_the_map_of_all_rows():
    s, y, g, _ = simulate(3, spread=0.0)
    for c in (SegmentedCalibrator(), SegmentedCalibrator(cal.Platt())):
        c.fit(s, y, segments=g)
        assert c.shrinkage_ == math.inf
        assert c.map_.keys == ()
        assert {(one.share, one.reason) for one in c.segments_} == {(0.0, "segments hardly differ")}
        assert (c.calibrate(s, g) == c.map_.default(s)).all()
    plain = cal.BLS().fit(s, y)
    assert (
        np.abs(
            SegmentedCalibrator().fit(s, y, segments=g).calibrate(s, g) - plain.calibrate(s)
        ).max()
        < 1e-12
    )


@also_new
@pytest.mark.parametrize("calibrator", [None, cal.Platt(), cal.Isotonic()])
@pytest.mark.parametrize("shrinkage", ["cv", 50.0])
def test_unseen_segments_have_the_map_of_all_rows(calibrator, shrinkage):
    s, y, g, _ = simulate(0, segments=8, spread=1.0)
    c = SegmentedCalibrator(calibrator, shrinkage=shrinkage).fit(s, y, segments=g)
    p = c.calibrate(s, g)
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert (c.calibrate(s, np.full(len(s), 999)) == c.map_.default(s)).all()
    assert (p != c.map_.default(s)).mean() > 0.9
    for key in (0, 5, 999):
        assert np.abs(c.map_.member(key)(PLACES) - c.calibrate(PLACES, [key] * 13)).max() < 1e-15


def test_the_path_is_the_naive_log_loss_out_of_fold():
    s, y, g, _ = simulate(1, segments=4, size=30)
    tables = {int(k): ScoreTable.from_arrays(s[g == k], y[g == k]) for k in set(g)}
    stack = SegmentTables(tables)
    path = try_shrinkages(
        SegmentMethod(cal.Platt()), stack, deal_segment_folds(stack, 3, 0), set(tables)
    )
    fold = np.empty(len(s), dtype=int)
    for f, (_, held) in enumerate(deal_segment_folds(stack, 3, 0)):
        for i, key in enumerate(stack.keys):
            cells = stack.cells(i)
            out = (held.negative + held.positive)[cells] > 0
            fold[(g == key) & np.isin(s, stack.scores[cells][out])] = f

    def fit(s, y):
        return cal.Platt(classes=[0, 1]).fit(s, y).map_

    kappas = [step.shrinkage for step in path]
    assert kappas[:3] == [0.0, 0.5, 1.0]
    assert kappas[-1] == math.inf
    expected = naive.out_of_fold(fit, s, y, g.tolist(), fold.tolist(), kappas)
    assert [step.log_loss for step in path] == pytest.approx(list(expected.values()), abs=1e-12)
    assert min(step.behind for step in path) == 0.0


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3, 1.0])
def test_the_largest_shrinkage_within_an_error_is_taken(spread):
    s, y, g, _ = simulate(5, segments=8, spread=spread)
    c = SegmentedCalibrator(cal.Platt()).fit(s, y, segments=g)
    assert c.shrinkage_ == max(one.shrinkage for one in c.path_ if one.behind <= one.error)


def test_without_folds_all_segments_have_the_map_of_all_rows():
    c = SegmentedCalibrator(cal.Platt()).fit([0.1, 0.9, 0.8], [0, 1, 1], segments=[0, 0, 1])
    assert (c.path_, c.shrinkage_) == ((), math.inf)


def test_shrinkage_by_bayes_is_refused_but_its_files_are_read(tmp_path):
    s, y, g, _ = simulate(4, segments=3)
    with pytest.raises(cal.errors.ParameterError, match="must be 'cv', or a number of at least 0"):
        SegmentedCalibrator(shrinkage="bayes").fit(s, y, segments=g)
    c = SegmentedCalibrator(shrinkage=5.0).fit(s, y, segments=g)
    cal.save(c, tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    document["params"]["shrinkage"] = "bayes"
    document["provenance"]["shrinkage"] = 0.48
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = cal.load(tmp_path / "old.json")
    assert (old.calibrate(s, segments=g) == c.calibrate(s, segments=g)).all()


@given(segmented_rows(weight=REAL, min_size=3))
def test_sigmoids_of_the_common_map_are_the_naive_ones(data):
    s, y, w, g = data
    here = w > 0
    s, y, w, g = s[here], y[here], w[here], g[here]
    tables = {
        k: ScoreTable.from_arrays(s[g == k], y[g == k], w[g == k], classes=[0, 1]) for k in set(g)
    }
    stack = SegmentTables(tables)
    z = np.log(stack.scores) - np.log1p(-stack.scores)
    intercept, slope = fit_sigmoids(stack, stack.counts, z)
    for i, key in enumerate(stack.keys):
        mine = g == key
        a, b = naive.sigmoid_of_common(s[mine], y[mine], w[mine])
        assert slope[i] == pytest.approx(b, abs=1e-4)
        assert intercept[i] == pytest.approx(a, abs=1e-4)


def test_extreme_scores_are_solved():
    z = np.array([-744.0, -700.0, 36.0, 36.7, 0.0, 0.0])
    table = ScoreTable.from_counts(np.arange(6.0), [1e6, 0, 3, 0, 5, 1], [1, 1e6, 0, 9, 0, 7])
    intercept, slope = fit_sigmoids(SegmentTables({"a": table}), table.columns, z)
    n0, n1 = table.negative, table.positive
    centre = np.average(z, weights=n0 + n1)
    apart = z - centre

    def objective(theta):
        eta = z + theta[0] + theta[1] * apart
        prior = theta[0] ** 2 / OFFSET**2 + theta[1] ** 2 / SLOPE**2
        return n1 @ np.logaddexp(0, -eta) + n0 @ np.logaddexp(0, eta) + prior / 2

    theta = np.array([intercept[0] + (slope[0] - 1) * centre, slope[0] - 1])
    best = minimize(objective, theta, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    assert objective(theta) <= best.fun * (1 + 1e-12)
    assert objective(theta) < 0.01 * objective(np.zeros(2))


# --- what must not matter -----------------------------------------------------------------------


@also_new
@given(segmented_rows(min_size=8, max_size=40), st.randoms(use_true_random=False))
def test_neither_order_nor_names_matter(data, random):
    s, y, w, g = data
    order = list(range(len(s)))
    random.shuffle(order)
    names = dict(zip("abc", random.sample(["z", "y", "x"], 3), strict=True))
    renamed = np.array([names[k] for k in g])
    c = fixed(cv=3).fit(s, y, w, segments=g)
    d = clone(c).fit(s[order], y[order], w[order], segments=renamed[order])
    assert d.shrinkage_ == c.shrinkage_
    assert d.path_ == c.path_
    for key, name in names.items():
        assert (c.calibrate(PLACES, [key] * 13) == d.calibrate(PLACES, [name] * 13)).all()


@given(segmented_rows(min_size=8), st.sampled_from(["cv", 5.0]))
def test_counts_are_repetitions(data, shrinkage):
    s, y, w, g = data
    many = w.astype(int)
    c = fixed(shrinkage=shrinkage, weights="counts").fit(s, y, w, segments=g)
    d = clone(c).fit(np.repeat(s, many), np.repeat(y, many), segments=np.repeat(g, many))
    assert c.map_ == d.map_
    assert c.segments_ == d.segments_
    assert c.path_ == d.path_


def test_importance_weights_matter_by_their_ratios_only():
    s, y, g, _ = simulate(6, segments=6)
    w = np.random.default_rng(0).random(len(s)) + 0.5
    for shrinkage in ("cv", 30.0):
        c = SegmentedCalibrator(shrinkage=shrinkage).fit(s, y, w, segments=g)
        d = clone(c).fit(s, y, 64 * w, segments=g)
        assert np.abs(c.calibrate(s, g) - d.calibrate(s, g)).max() < 1e-9
        assert max(one.rows for one in d.segments_) < len(s)


@given(segmented_rows(min_size=4), st.sampled_from(["cv", 5.0]))
def test_tables_are_as_good_as_rows(data, shrinkage):
    s, y, w, g = data
    c = fixed(shrinkage=shrinkage).fit(s, y, w, segments=g)
    tables = {
        k: ScoreTable.from_arrays(s[g == k], y[g == k], w[g == k], classes=[0, 1])
        for k in sorted(set(g))
        if w[g == k].any()
    }
    d = clone(c).fit_tables({**tables, "empty": ScoreTable.empty()})
    assert d.map_ == c.map_
    assert d.segments_ == c.segments_
    fitted = c.to_fitted()
    known = {name: fact for name, fact in fitted.provenance.items() if name != "rows"}
    assert d.to_fitted() == replace(fitted, provenance=known)  # tables know no rows


@pytest.mark.full
def test_pooled_tables():
    s, y, g, p = simulate(7, segments=5, size=4000)
    tables = {int(k): ScoreTable.from_arrays(s[g == k], y[g == k]).pool(200) for k in set(g)}
    assert min(table.error for table in tables.values()) > 0
    exact, pooled = SegmentedCalibrator(), SegmentedCalibrator()
    exact.fit(s, y, segments=g)
    pooled.fit_tables(tables)
    assert np.abs(exact.calibrate(s, g) - pooled.calibrate(s, g)).max() < 0.01
    assert np.abs(pooled.calibrate(s, g) - p).mean() < 0.02


@pytest.mark.full
def test_large_tables_are_pooled_for_the_choice(monkeypatch):
    import calibrant.methods.segments as home

    s, y, g, _ = simulate(8, segments=5, size=2000)
    whole = SegmentedCalibrator(cal.Platt()).fit(s, y, segments=g)
    monkeypatch.setattr(home, "MOST_CELLS", 1000)
    small = SegmentedCalibrator(cal.Platt()).fit(s, y, segments=g)
    assert small.path_ != whole.path_
    assert small.path_[-1].log_loss == pytest.approx(whole.path_[-1].log_loss, abs=0.003)
    assert small.map_.maps == whole.map_.maps


# --- minimum counts and hard cases --------------------------------------------------------------


def test_small_segments_have_the_map_of_all_rows():
    s, y, g, _ = simulate(2, segments=6, size=60)
    g = np.append(g, [90, 90, 91])
    s, y = np.append(s, [0.2, 0.3, 0.4]), np.append(y, [0, 1, 1])
    c = SegmentedCalibrator(shrinkage=1.0, min_rows=3, min_events=2).fit(s, y, segments=g)
    small = [one for one in c.segments_ if one.reason]
    assert [one.key for one in small] == [90, 91]
    assert small[0] == Segment(90, 2.0, 1.0, 2.0, 1.0, 0.0, "too few rows")
    assert c.map_.keys == tuple(range(6))
    assert [one.key for one in c.segments_] == [*range(6), 90, 91]
    one = SegmentedCalibrator(shrinkage=1.0, min_rows=0).fit(s, y, segments=g)
    assert 91 in one.map_.keys


def test_margins_that_look_like_probabilities_by_chance():
    rng = np.random.default_rng(0)
    s = rng.normal(0, 3, 900)
    g = np.repeat([0, 1, 2], 300)
    s[g == 2] = rng.random(300)
    y = (rng.random(900) < 1 / (1 + np.exp(-s))).astype(int)
    c = SegmentedCalibrator(cal.Platt(), shrinkage=0).fit(s, y, segments=g)
    assert c.map_.keys == (0, 1, 2)
    assert [own.terms[0][0] for own in c.map_.maps] == ["x", "x", "x"]
    assert SegmentedCalibrator(shrinkage=0).fit(s, y, segments=g).map_.keys == (0, 1, 2)


@pytest.mark.parametrize("shrinkage", ["cv", 0, 3.0])
@pytest.mark.parametrize("calibrator", [None, cal.Platt(), cal.Isotonic()])
def test_degenerate_data(shrinkage, calibrator):
    c = SegmentedCalibrator(calibrator, shrinkage=shrinkage, min_rows=0)
    for s, y, g in (
        ([0.4], [1], ["a"]),
        ([0.4, 0.4], [0, 1], ["a", "b"]),
        ([0.1, 0.2, 0.9], [0, 0, 0], ["a", "b", "b"]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 1, 0], [1, 1, 2, 2]),
    ):
        p = c.fit(s, y, segments=g).calibrate(s, g)
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()


def test_rows_of_weight_zero_are_absent():
    s, y, g, _ = simulate(5, segments=3)
    w = np.where(g == 2, 0.0, 1.0)
    c = SegmentedCalibrator(shrinkage=5.0).fit(s, y, w, segments=g)
    d = SegmentedCalibrator(shrinkage=5.0).fit(s[g < 2], y[g < 2], segments=g[g < 2])
    assert [one.key for one in c.segments_] == [0, 1]
    assert c.map_ == d.map_


def test_floats_that_cannot_tell_segments_apart_are_refused():
    c = SegmentedCalibrator(cal.Platt(), shrinkage=0, min_rows=0)
    far = np.array([2**53 + 1, 2**53 + 2, 5])
    c.fit([0.1, 0.9, 0.4], [0, 1, 1], segments=far)
    assert c.map_.keys == (5, 2**53 + 1, 2**53 + 2)
    for floats in (far.astype(float), [1, 2**63 + 5], np.array([1.0, 1e300], dtype=object)):
        with pytest.raises(cal.errors.InputError, match="beyond 2⁵³"):
            c.map_([0.5] * len(floats), floats)


@pytest.mark.full
def test_thousands_of_segments():
    rng = np.random.default_rng(0)
    g = rng.integers(0, 4000, 60_000)
    s = rng.beta(1, 3, 60_000)
    off = rng.normal(0, 1.0, 4000)
    y = rng.random(60_000) < 1 / (1 + np.exp(-(np.log(s / (1 - s)) + off[g])))
    c = SegmentedCalibrator(min_rows=5).fit(s, y, segments=g.astype(str))
    assert len(c.segments_) == 4000
    assert len(c.map_.keys) > 3900
    text = json.dumps(c.to_fitted().to_dict())
    assert len(text) < 2_000_000  # the map of all rows is there once
    again = cal.Fitted.from_dict(json.loads(text))
    assert again.map == c.map_
    keys = g.astype(str)
    p = again.calibrate(s, segments=keys)
    assert (p == c.calibrate(s, keys)).all()
    assert cal.metrics.log_loss(y, p) < cal.metrics.log_loss(y, c.map_.default(s)) - 0.02


# --- labels, keys and refusals ------------------------------------------------------------------


def test_labels_of_any_kind():
    s, y, g, _ = simulate(9, segments=4)
    words = np.where(y == 1, "bad", "good")
    c = SegmentedCalibrator(shrinkage=20.0, pos_label="bad").fit(s, words, segments=g)
    plain = SegmentedCalibrator(shrinkage=20.0).fit(s, y, segments=g)
    p = c.calibrate(s, g)
    assert (p == plain.calibrate(s, g)).all()
    assert c.classes_.tolist() == ["bad", "good"]
    assert c.pos_label_ == "bad"
    both = c.predict_proba(s, g)
    assert (both[:, 0] == p).all()
    assert np.allclose(both.sum(axis=1), 1)
    assert (c.predict(s, g) == np.where(p >= 0.5, "bad", "good")).all()
    pairs = np.column_stack((s, 1 - s))  # the column of "bad" comes first
    assert np.abs(c.calibrate(pairs, g) - p).max() == 0


def test_a_file_is_all_that_is_needed(tmp_path):
    s, y, g, _ = simulate(10, segments=5, spread=1.0)
    c = SegmentedCalibrator(cal.Isotonic(), shrinkage="cv").fit(s, y, segments=g)
    cal.save(c, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded == c.to_fitted()
    assert loaded.method == "SegmentedCalibrator"
    assert loaded.provenance["segments"] == 5
    assert (loaded.calibrate(s, segments=g) == c.calibrate(s, g)).all()
    assert (loaded.predict_proba(s, segments=g) == c.predict_proba(s, g)).all()
    assert (loaded.predict(s, segments=g) == c.predict(s, g)).all()
    s, y, g, _ = simulate(3, spread=0.0)
    alike = SegmentedCalibrator().fit(s, y, segments=g)
    cal.save(alike, tmp_path / "c.json")
    assert alike.shrinkage_ == math.inf
    assert cal.load(tmp_path / "c.json").provenance["shrinkage"] is None


def test_files_of_the_first_version_load():
    description = {
        "kind": "segmented",
        "version": 1,
        "default": Piecewise.constant(0.5).to_dict(),
        "keys": ["fr", 7],
        "maps": [Piecewise.constant(0.1).to_dict(), Piecewise.constant(0.2).to_dict()],
    }
    m = Map.from_dict(json.loads(json.dumps(description)))
    assert m([0.3] * 4, ["fr", 7, "7", "it"]).tolist() == [0.1, 0.2, 0.5, 0.5]
    assert m.weights is None
    assert m.to_dict()["version"] == 3
    assert Map.from_dict(m.to_dict()) == m


def test_keys_match_whatever_their_type():
    import pandas as pd
    import polars as pl

    c = Piecewise.constant
    m = Segmented(c(0.5), (1, "1", 0), (c(0.1), c(0.2), c(0.3)), [1.0, 0.5, 1.0])
    number, word, none = 0.1, 0.5 * 0.2 + 0.5 * 0.5, 0.5
    s = [0.0, 0.0, 0.0]
    for segments in (
        [1, 0, 2],
        np.array([1, 0, 2], dtype=np.uint8),
        np.array([1.0, 0.0, 2.0]),
        np.array([1, 0, 2], dtype=object),
        pd.Series([1, 0, 2], dtype="Int64"),
        pl.Series([1, 0, 2]),
    ):
        assert m(s, segments).tolist() == [number, 0.3, none]
    for segments in (
        ["1", "0", "2"],
        np.array(["1", "0", "2"]),
        pd.Series(["1", "0", "2"], dtype="category"),
        pl.Series(["1", "0", "2"]),
    ):
        assert m(s, segments).tolist() == [word, none, none]
    assert m(s, [1, "1", 1.0]).tolist() == [number, word, number]
    assert m(s, np.array([True, False, True])).tolist() == [number, 0.3, number]


@pytest.mark.parametrize("how", ["fit", "map"])
@pytest.mark.parametrize(
    ("segments", "words"),
    [
        (["a", None, "b", "b"], "complete: 1 of 4 is missing"),
        ([1.0, float("nan"), 2.0, 2.0], "1 of 4 are not .first at row 1"),
        ([0.5, 1.0, 1.5, 2.0], "2 of 4 are not .first at row 0: 0.5"),
        ([1, "a", 2.5, "b"], "whole numbers"),
        (np.array(["2020-01-01"] * 4, dtype="M8[D]"), "strings or whole numbers, but .*date"),
        ([b"a"] * 4, "strings or whole numbers, but b'a' of type bytes"),
        ([("a", 1.5)] * 4, "segments"),
        ([["a"], ["b"], ["a"], ["b"]], "segments"),
        (np.array([[1], [2], [1], [2]]), "1-d"),
        (["a", "b", "a"], "segments"),
        ("a", "segments"),
    ],
)
def test_segments_that_cannot_be(how, segments, words):
    s, y = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
    m = Segmented(Identity(), ("a", 1), (Identity(), Identity()))
    doors = {
        "fit": lambda: SegmentedCalibrator().fit(s, y, segments=segments),
        "map": lambda: m(s, segments),
    }
    with pytest.raises(cal.errors.InputError, match=words):
        doors[how]()


def test_segments_must_be_given_where_there_are_any():
    s, y, g, _ = simulate(11, segments=3)
    with pytest.raises(cal.errors.InputError, match="requires segments"):
        SegmentedCalibrator().fit(s, y)
    with pytest.raises(NotFittedError):
        SegmentedCalibrator().calibrate(s, g)
    c = SegmentedCalibrator(shrinkage=1.0).fit(s, y, segments=g)
    fitted = c.to_fitted()
    ours, saved = ((one.calibrate, one.predict_proba, one.predict) for one in (c, fitted))
    for method in (*ours, *saved):
        with pytest.raises(cal.errors.InputError, match="a map for each segment"):
            method(s)
    plain = cal.Platt().fit(s, y).to_fitted()
    for method in (plain.calibrate, plain.predict_proba, plain.predict):
        with pytest.raises(cal.errors.InputError, match="segments must not be given"):
            method(s, segments=g)
    with pytest.raises(
        cal.errors.InputError, match=r"segments must be numbers.*but text came \(such as '0'"
    ):
        c.calibrate(s, g.astype(str))
    with pytest.raises(cal.errors.InputError, match="must be text, as the 1 known"):
        Segmented(Identity(), ("0",), (Identity(),))([0.1], [0])
    with pytest.raises(cal.errors.InputError, match="one segment per score"):
        c.calibrate(s, g[:-1])


def test_wrong_tables():
    table = ScoreTable.from_arrays([0.1, 0.9], [0, 1])
    for tables, words in (
        ([table], "dict from segments"),
        ({"a": [0.1]}, "'a' must be a ScoreTable"),
        ({1.5: table}, "strings or whole numbers"),
        ({(1, 2.5): table}, "strings or whole numbers"),
        ({None: table}, "strings or whole numbers"),
        ({}, "at least one row"),
        ({"a": ScoreTable.empty()}, "at least one row"),
    ):
        with pytest.raises(cal.errors.InputError, match=words):
            SegmentedCalibrator().fit_tables(tables)


@pytest.mark.parametrize("parameter", sorted(SegmentedCalibrator._limits))
def test_limits_are_declared_and_kept(parameter):
    words = ("no such word",) if parameter != "calibrator" else ()  # a name: its own error
    for wrong in (*words, -1, None, [], float("nan"), float("inf"), cal.Platt):
        if any(limit.allows(wrong) for limit in SegmentedCalibrator._limits[parameter]):
            continue
        with pytest.raises(
            cal.errors.ParameterError, match=f"{parameter} of SegmentedCalibrator must be"
        ):
            SegmentedCalibrator(**{parameter: wrong}).fit([0.1, 0.9], [0, 1], segments=[1, 2])


def test_it_is_an_estimator_like_the_others():
    inner = cal.Platt(scale="raw")
    c = SegmentedCalibrator(inner, shrinkage=3.0, classes=["n", "y"])
    twin = clone(c)
    assert twin.calibrator is not inner
    assert twin.get_params()["calibrator__scale"] == "raw"
    twin.set_params(calibrator__scale="logit")
    assert inner.scale == "raw"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin.fit([0.1, 0.4, 0.6, 0.9], ["n", "y", "n", "y"], segments=[1, 1, 2, 2])
    assert not hasattr(twin.calibrator, "map_")  # clones are fitted, not the given one
    assert twin.to_fitted().params["shrinkage"] == 3.0


# --- is it worth it? ----------------------------------------------------------------------------


def excess(truth, p):
    """Mean divergence from the truth: log loss beyond that of the true probabilities."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(np.mean(truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))))


@pytest.mark.full
def test_shrinkage_pays_where_segments_differ_and_costs_little_where_not():
    gains = []
    for spread in (0.5, 0.0):
        found = []
        for seed in range(4):
            s, y, g, p = simulate(seed, segments=30, size=80, spread=spread)
            c = SegmentedCalibrator().fit(s, y, segments=g)
            alone = SegmentedCalibrator(shrinkage=0).fit(s, y, segments=g)
            places = (c.calibrate(s, g), c.map_.default(s), alone.calibrate(s, g))
            found.append([excess(p, q) for q in places])
        gains.append(np.mean(found, axis=0))
    (shrunk, common, alone), (shrunk_same, common_same, alone_same) = gains
    assert shrunk < 0.6 * common
    assert shrunk < 0.95 * alone
    # what is lost where there is nothing to gain, as a share of what no shrinkage would lose
    assert shrunk_same - common_same < 0.05 * (alone_same - common_same)


@pytest.mark.full
def test_a_shared_shape_needs_fewer_rows():
    """Bent maps: sigmoids of the score cannot bend, those of the common map need not."""
    rng = np.random.default_rng(0)
    g = np.repeat(np.arange(20), 300)
    z = rng.normal(0, 1.5, len(g))
    p = 1 / (1 + np.exp(-(np.where(z < 0, 0.3 * z, 2.0 * z) + rng.normal(0, 0.5, 20)[g])))
    y, s = rng.random(len(g)) < p, 1 / (1 + np.exp(-z))
    default = SegmentedCalibrator().fit(s, y, segments=g)
    platt = SegmentedCalibrator(cal.Platt()).fit(s, y, segments=g)
    assert default.map_.input == "default"
    assert all(isinstance(member, Logistic) for member in default.map_.maps)
    assert excess(p, default.calibrate(s, g)) < 0.5 * excess(p, platt.calibrate(s, g))


@pytest.mark.full
def test_the_study_tells_the_ways_apart(root):
    study = experiment(root, "segments")
    differ = study.trial(study.SETTINGS["offsets, 100 rows"], 0)
    found = dict(zip(["scores", "one map", *study.WAYS], differ, strict=True))
    assert len(found) == 7
    assert min(found.values()) > 0
    assert found["`cv`"] < 0.5 * found["one map"] < 0.5 * found["scores"]
    assert found["`cv`"] < found["each alone"] < found["Platt, each alone"]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def tables_of(text):
    """Of each table in Markdown, a dict for each of its rows."""
    for part in re.findall(r"(?:^\|.*\|\n?)+", text, flags=re.MULTILINE):
        head, _, *body = part.strip().splitlines()
        yield [dict(zip(cells(head), cells(line), strict=True)) for line in body]


def test_the_page_of_segments_says_what_is_true(root):
    """Its figures are those of the study."""
    text = (root / "docs" / "howto" / "segments.md").read_text(encoding="utf-8")
    kept = (root / "experiments" / "results" / "segments.md").read_text(encoding="utf-8")
    study, choices = tables_of(kept)
    (quoted,) = [table for table in tables_of(text) if "each alone" in table[0]]
    assert [row["segments"] for row in quoted] == [row["segments"] for row in study]
    assert all(row.items() <= whole.items() for row, whole in zip(quoted, study, strict=True))
    assert {"one map (BLS)", "each alone", "`cv`"} < set(quoted[0])
    assert choices[0]["`cv`: κ < ∞"] == "0 of 10"
    assert "in all 10 sets" in text
    for row in quoted:
        cv, one = float(row["`cv`"]), float(row["one map (BLS)"])
        assert cv == one if row["segments"].startswith("alike") else cv < 0.36 * one


# --- folds of rows --------------------------------------------------------------------------------


def of_segments(n=1500, seed=4):
    rng = np.random.default_rng(seed)
    s, g = np.round(rng.random(n), 2), rng.choice(["a", "b", "c"], n)
    y = rng.random(n) < np.where(g == "c", s**3, s)
    return s, y, g, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("cv", [None, 0.3, "splitter", "repeated", "splits"])
@pytest.mark.parametrize("weights", ["importance", "counts"])
def test_any_kind_of_splits_chooses_the_shrinkage(cv, weights):
    s, y, g, w = of_segments()
    if isinstance(cv, str):
        cv = {
            "splitter": KFold(4),
            "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
            "splits": [
                (np.arange(700), np.arange(700, 1500)),
                (np.arange(900, 1500), np.arange(9)),
            ],
        }[cv]
    c = cal.SegmentedCalibrator(cal.Platt(), cv=cv, weights=weights).fit(s, y, w, segments=g)
    assert np.isfinite(c.shrinkage_)
    assert len(c.path_) > 5
    assert np.isfinite([step.log_loss for step in c.path_]).all()


def test_losses_of_a_splitter_are_those_of_a_loop():
    s, y, g, _ = of_segments()
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    path = cal.SegmentedCalibrator(cal.Platt(), cv=splitter, min_rows=0).fit(s, y, segments=g).path_
    total = dict.fromkeys((step.shrinkage for step in path), 0.0)
    for train, test in splitter.split(s, y):
        for kappa in total:
            if np.isfinite(kappa):
                c = cal.SegmentedCalibrator(cal.Platt(), shrinkage=kappa, min_rows=0)
                p = c.fit(s[train], y[train], segments=g[train]).calibrate(s[test], g[test])
            else:
                p = cal.Platt().fit(s[train], y[train]).calibrate(s[test])
            total[kappa] -= float(np.log(np.where(y[test], p, 1.0 - p)).sum())
    for step in path:
        assert step.log_loss == pytest.approx(total[step.shrinkage] / len(s), rel=1e-9)


def test_groups_are_held_out_together():
    s, y, g, _ = of_segments()
    groups = np.arange(len(s)) // 3
    first = cal.SegmentedCalibrator(cal.Platt(), cv=GroupKFold(3))
    second = cal.SegmentedCalibrator(cal.Platt(), cv=list(GroupKFold(3).split(s, y, groups)))
    one = first.fit(s, y, segments=g, groups=groups)
    assert one.path_ == second.fit(s, y, segments=g).path_


def test_tables_have_no_rows_to_split():
    table = cal.ScoreTable.from_arrays([0.1, 0.9], [0, 1])
    with pytest.raises(
        cal.errors.ParameterError, match="cv of SegmentedCalibrator must be a number"
    ):
        cal.SegmentedCalibrator(cv=KFold(2)).fit_tables({"a": table})
