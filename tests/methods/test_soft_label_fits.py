"""Soft labels in fit: a row of label q is q of a positive row and 1 − q of a negative one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import calibrant as cal
from calibrant import ScoreTable
from calibrant.errors import InputError
from calibrant.fitting.folds import TableFolds
from cases import CASES
from strategies import REAL, WHOLE, costly

# AutoCalibrator deals rows into folds: its tests are in tests/auto
EACH = pytest.mark.parametrize(
    "case", [case for case in CASES if case.name != "auto"], ids=lambda case: case.name
)
pytestmark = pytest.mark.filterwarnings("ignore:the relative duality gap")
EIGHTHS = st.integers(0, 8).map(lambda k: k / 8)  # floats add these, and their products, exactly
RNG = np.random.default_rng(5)
SCORES = RNG.random(200)
SHARES = np.clip(SCORES**2 + RNG.normal(0.0, 0.2, 200), 0.0, 1.0)


@st.composite
def soft_rows(draw, weight=WHOLE):
    """(scores, soft labels, weights) with ties, labels of 0 and 1, and at least one fraction."""
    n = draw(st.integers(1, 24))
    score = draw(st.sampled_from([EIGHTHS, st.integers(-6, 6).map(lambda k: k / 2)]))
    s, q, w = (draw(st.lists(each, min_size=n, max_size=n)) for each in (score, EIGHTHS, weight))
    q[0], w[0] = draw(st.integers(1, 7)) / 8, w[0] or 1.0
    return np.array(s), np.array(q), np.array(w)


def doubled(s, q, w):
    """The slow twin: every row twice, as a negative of weight w(1 − q) and a positive of wq."""
    scores, labels, weights = [], [], []
    for score, share, weight in zip(s, q, w, strict=True):
        scores += [score, score]
        labels += [0, 1]
        weights += [weight * (1 - share), weight * share]
    return scores, labels, weights


def named(case, **options):
    return clone(case.calibrator).set_params(classes=[0, 1], **options)


def counting(case):
    known = "weights" in case.calibrator.get_params()
    return named(case, **({"weights": "counts"} if known else {}))


@EACH
@costly
@given(data=soft_rows())
def test_weights_that_are_counts_give_the_map_of_doubled_rows(case, data):
    s, q, w = data
    assert counting(case).fit(s, q, w).map_ == counting(case).fit(*doubled(s, q, w)).map_


@EACH
@costly
@given(data=soft_rows(weight=st.just(1.0)))
def test_rows_without_weights_are_one_row_each(case, data):
    s, q, w = data
    assert named(case).fit(s, q).map_ == counting(case).fit(*doubled(s, q, w)).map_


@EACH
@costly
@given(data=soft_rows())
def test_weights_that_matter_are_those_of_doubled_rows_with_their_squares(case, data):
    s, q, w = data
    scores, y, half = (np.array(column) for column in doubled(s, q, w))
    zero, one = half * (1 - y), half * y
    whole = np.repeat(w, 2)
    table = ScoreTable.from_counts(scores, zero, one, whole * zero, whole * one)
    assert named(case).fit(s, q, w).map_ == named(case).fit_table(table).map_


@costly
@given(data=soft_rows(weight=REAL), shift=st.floats(0.0, 0.1))
def test_any_weights_and_labels_give_the_table_of_doubled_rows(data, shift):
    s, q, w = data
    q = np.minimum(q + shift, 1.0)
    found = ScoreTable.from_soft_labels(s, q, w)
    twin = ScoreTable.from_arrays(*doubled(s, q, w), classes=[0, 1])
    assert np.array_equal(found.scores, twin.scores)
    for one, two in ((found.negative, twin.negative), (found.positive, twin.positive)):
        assert one == pytest.approx(two, rel=1e-12, abs=1e-14)


@costly
@given(data=soft_rows(weight=REAL))
def test_the_number_of_rows_is_that_of_the_rows_themselves(data):
    s, q, w = data
    expected = w.sum() ** 2 / (w**2).sum()
    assert ScoreTable.from_soft_labels(s, q, w).effective_size == pytest.approx(expected, rel=1e-12)


def test_labels_of_zero_and_one_are_classes():
    y = (SHARES > 0.3).astype(float)
    c = cal.Platt().fit(SCORES, y)
    assert c.classes_.dtype == float
    assert "soft_labels" not in c.to_fitted().provenance


def test_what_is_kept_of_soft_labels():
    c = cal.Platt().fit(SCORES, SHARES)
    assert c.classes_.tolist() == [0, 1]
    assert c.pos_label_ == 1
    known = c.to_fitted().provenance
    assert known["rows"] == 200
    assert known["soft_labels"] == np.count_nonzero((SHARES > 0) & (SHARES < 1))
    weight = np.where(SHARES > 0.5, 0.0, 1.0)
    known = cal.Platt().fit(SCORES, SHARES, weight).to_fitted().provenance
    assert known["soft_labels"] == np.count_nonzero((SHARES > 0) & (SHARES <= 0.5))


def test_two_fractions_are_soft_labels_and_no_classes():
    share = np.where(SHARES > 0.3, 0.9, 0.1)
    c = cal.Histogram(bins=1).fit(SCORES, share)
    assert c.calibrate([0.5])[0] == pytest.approx(share.mean(), rel=1e-12)


@pytest.mark.parametrize("kind", ["float32", "list", "series", "column"])
def test_soft_labels_of_any_kind(kind):
    import pandas as pd

    share = np.round(SHARES * 8) / 8
    given_as = {
        "float32": share.astype(np.float32),
        "list": share.tolist(),
        "series": pd.Series(share),
        "column": pd.DataFrame({"y": share}),
    }
    assert cal.Beta().fit(SCORES, given_as[kind]).map_ == cal.Beta().fit(SCORES, share).map_


def test_two_columns_of_scores():
    pair = np.column_stack((1 - SCORES, SCORES))
    assert cal.Platt().fit(pair, SHARES).map_ == cal.Platt().fit(SCORES, SHARES).map_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pos_label": 0}, r"class 1.*pos_label=0 came.*whose probability"),
        ({"classes": ["no", "yes"]}, r"classes=\['no', 'yes'\] came"),
        ({"classes": ["no", "yes"], "pos_label": "yes"}, "classes="),
    ],
)
def test_names_that_leave_open_whose_probability_it_is(options, words):
    with pytest.raises(InputError, match=words):
        cal.Platt(**options).fit(SCORES, SHARES)


def test_names_that_say_what_is_so_anyway():
    plain = cal.Platt().fit(SCORES, SHARES)
    for options in ({"pos_label": 1}, {"classes": [1, 0]}, {"classes": [False, True]}):
        assert cal.Platt(**options).fit(SCORES, SHARES).map_ == plain.map_


BAD = {
    "above": ([0.2, 0.5, 1.5, 2.0], r"in \[0, 1\].*2 of 4 are outside.*row 2: 1.5"),
    "below": ([0.2, -0.5, 0.5, 1.0], r"1 of 4 are outside.*row 1: -0.5"),
    "percent": ([20.5, 50.0, 80.0, 90.0], "^Divide percentages by 100, and votes by their number"),
    "votes": (
        [0, 3, 5, 2],
        "at least three came.*shares: divide percent.*, and votes by their number",
    ),
    "missing": ([0.2, np.nan, 0.5, 1.0], "contains NaN.*row 1"),
    "infinite": ([0.2, np.inf, 0.5, 1.0], "contains infinity.*row 1"),
    "matrix": ([[0.2, 0.8]] * 4, r"shape is \(4, 2\).*probabilities of each class are not taken"),
}


@pytest.mark.parametrize(("y", "words"), BAD.values(), ids=BAD)
def test_labels_that_are_no_probabilities(y, words):
    with pytest.raises(InputError, match=words):
        cal.Platt().fit([0.1, 0.2, 0.7, 0.9], y)


@pytest.mark.parametrize("labels", [[0, 1, 1, 0], [False, True, True, False], [-1.0, 1.0, 1, -1]])
def test_swapped_arguments_are_noticed(labels):
    for one in (cal.Platt(), cal.AutoCalibrator()):
        with pytest.raises(InputError, match=r"are the two swapped\?.*fit\(scores, y\)"):
            one.fit(labels, [0.1, 0.8, 0.7, 0.3])
    c = cal.Histogram(bins=1, classes=[0, 1]).fit(labels, [0.1, 0.8, 0.7, 0.3])
    assert c.calibrate([0.0])[0] == pytest.approx(0.475, rel=1e-12)


def test_methods_of_several_classes_refuse_soft_labels():
    pair = np.column_stack((1 - SCORES, SCORES))
    for one in (cal.VectorScaling(), cal.CodedCalibrator(cal.Platt())):
        with pytest.raises(InputError, match="soft labels"):
            one.fit(pair, SHARES)
    three = np.column_stack((pair, np.zeros(len(pair))))
    with pytest.raises(InputError, match="soft labels"):
        cal.AutoCalibrator().fit(three, SHARES)


def test_folds_of_a_table_keep_the_halves_of_a_row_together():
    table = ScoreTable.from_soft_labels(SCORES, SHARES, RNG.integers(1, 4, 200).astype(float))
    deal = TableFolds(table, 5)
    seen = np.zeros(200)
    for fold in range(5):
        held = deal.held(fold)
        zero, one = held.negative / table.weight, held.positive / table.weight
        whole = zero + one
        assert set(np.round(whole, 12)) <= {0.0, 1.0}
        seen += whole
    assert np.allclose(seen, 1.0)
