"""Labels that are probabilities, given as a table."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant import ScoreTable
from calibrant.errors import InputError

RNG = np.random.default_rng(3)
SCORES = np.repeat(np.linspace(0.1, 0.9, 9), 8)
POSITIVE = np.tile(np.arange(8), 9) < np.repeat([0, 1, 2, 2, 4, 4, 6, 7, 8], 8)
SHARES = np.repeat(np.array([0, 1, 2, 2, 4, 4, 6, 7, 8]) / 8, 8)


def test_rows_of_a_share_are_the_table_of_as_many_positives():
    soft = ScoreTable.from_soft_labels(SCORES, SHARES)
    assert soft == ScoreTable.from_arrays(SCORES, POSITIVE)
    weight = np.repeat(RNG.integers(1, 5, 9), 8).astype(float)
    soft = ScoreTable.from_soft_labels(SCORES, SHARES, weight)
    assert soft == ScoreTable.from_arrays(SCORES, POSITIVE, weight)


def test_labels_are_shares_of_zero_and_one():
    labels = ScoreTable.from_arrays(SCORES, POSITIVE)
    assert ScoreTable.from_soft_labels(SCORES, POSITIVE.astype(float)) == labels


def test_a_row_stays_one_row():
    share = RNG.random(50)
    table = ScoreTable.from_soft_labels(RNG.random(50), share)
    assert table.effective_size == pytest.approx(50, rel=1e-12)
    assert table.total_positive == pytest.approx(share.sum(), rel=1e-12)


@pytest.mark.parametrize(
    "method", [cal.Platt(), cal.Isotonic(), cal.Beta(), cal.BLS(), cal.Histogram(bins=5)]
)
def test_fits_see_what_the_labels_would_give(method):
    soft = method.fit_table(ScoreTable.from_soft_labels(SCORES, SHARES)).map_
    assert soft == method.fit(SCORES, POSITIVE).map_


def test_segments_take_soft_tables():
    tables = {
        name: ScoreTable.from_soft_labels(SCORES, np.clip(SHARES + by, 0, 1))
        for name, by in (("a", 0.0), ("b", 0.2))
    }
    c = cal.SegmentedCalibrator(shrinkage=0.0).fit_tables(tables)
    a, b = c.calibrate([0.5, 0.5], ["a", "b"])
    assert a < b


def test_the_brier_score_is_the_expected_one():
    p, q = RNG.random(40), RNG.random(40)
    found = cal.evaluate(ScoreTable.from_soft_labels(p, q), level=None)
    expected = np.mean(q * (1 - p) ** 2 + (1 - q) * p**2)
    assert found.after["brier"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("share", "weight", "word"),
    [
        ([0.1, 1.2], None, r"share must be probabilities in \[0, 1\]"),
        ([0.1, np.nan], None, "share must be finite"),
        ([[0.1, 0.9], [0.2, 0.8]], None, "share must be 1-d"),
        ([0.1], None, "scores has 2 and share"),
        (["0.1", "0.2"], None, "share must be numbers"),
        ([0.1, 0.2], [1.0, -1.0], "sample_weight must be at least 0"),
    ],
)
def test_bad_shares_are_refused(share, weight, word):
    with pytest.raises(InputError, match=word):
        ScoreTable.from_soft_labels([0.3, 0.4], share, weight)


def test_fractions_are_refused_with_the_way_out_where_labels_must_be_classes():
    segments = np.zeros(len(SCORES), dtype=int)
    for call in (
        lambda: cal.evaluate(SHARES, SCORES),
        lambda: ScoreTable.from_arrays(SCORES, SHARES),
        lambda: cal.advise(SCORES, SHARES),
        lambda: cal.SegmentedCalibrator().fit(SCORES, SHARES, segments=segments),
        lambda: cal.AutoCalibrator().fit(SCORES, SHARES, features=SCORES[:, None]),
    ):
        with pytest.raises(
            InputError, match=r"swapped\?.*as floats\. For evaluate and reports, pass Score"
        ):
            call()
