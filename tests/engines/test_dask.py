"""Dask: tables where the rows are, and probabilities partition by partition, when computed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.errors import CalibrationWarning, InputError

dd = pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'dask[dataframe]'")

# Dask looks at the names of all types
pytestmark = pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")

RNG = np.random.default_rng(0)
S = RNG.random(800)
Y, W = (RNG.random(800) < S**2).astype(int), RNG.integers(1, 4, 800).astype(float)
LAND = RNG.choice(["de", "fr", "it"], 800)
P = RNG.dirichlet([1, 1, 1], 800)
KIND = (P.cumsum(axis=1) < RNG.random((800, 1))).sum(axis=1)
MEMORY = pd.DataFrame(
    {"s": S, "y": Y, "w": W, "land": LAND, "p0": P[:, 0], "p1": P[:, 1], "p2": P[:, 2]}
)


@pytest.fixture(scope="module")
def there():
    return dd.from_pandas(MEMORY, npartitions=3)


def test_tables(there):
    for options in ({}, {"cells": 64}):
        found = cal.score_table(there, score="s", label="y", weight="w", **options)
        wanted = cal.score_table(MEMORY, score="s", label="y", weight="w", **options)
        assert found.scores == pytest.approx(wanted.scores, rel=1e-14)
        assert np.array_equal(found.positive, wanted.positive)
    found = cal.segment_tables(there, score="s", label="y", segment="land")
    assert found == cal.segment_tables(MEMORY, score="s", label="y", segment="land")


def test_isotonic_regression_and_measures(there):
    found = cal.fit_isotonic(there, score="s", label="y", cells=64)
    assert np.abs(found.calibrate(S) - cal.Isotonic().fit(S, Y).calibrate(S)).max() < 1e-12
    measured = cal.evaluate(there, "s", label="y", sample_weight="w")
    wanted = cal.evaluate(MEMORY, "s", label="y", sample_weight="w")
    for name in ("log_loss", "auc", "brier", "ece"):
        assert measured.after[name] == pytest.approx(wanted.after[name], rel=1e-12)


@pytest.mark.parametrize("method", [cal.Platt, cal.BLS, cal.Isotonic, cal.ENIR])
def test_probabilities(there, method):
    c = method().fit(S, Y)
    made = cal.add_probabilities(c, there, score="s")
    assert made.npartitions == 3
    assert list(made.columns) == [*MEMORY.columns, "probability"]
    assert np.array_equal(made.compute()["probability"], c.calibrate(S))


def test_probabilities_of_segments_and_of_classes(there):
    c = cal.SegmentedCalibrator().fit(S, Y, segments=LAND)
    made = cal.add_probabilities(c, there, score="s", segment="land").compute()
    assert np.array_equal(made["probability"], c.calibrate(S, segments=LAND))
    several = cal.Temperature().fit(P, KIND)
    made = cal.add_probabilities(several, there, score=["p0", "p1", "p2"]).compute()
    found = made[[f"probability_{k}" for k in range(3)]].to_numpy()
    assert np.array_equal(found, several.predict_proba(P))


def test_nothing_is_read_before_it_is_asked_for():
    def fail(part):
        raise RuntimeError("read")

    frame = dd.from_pandas(MEMORY, npartitions=3).map_partitions(fail, meta=MEMORY.iloc[:0])
    c = cal.Platt().fit(S, Y)
    made = cal.add_probabilities(c, frame, score="s", on_missing="null", on_range="allow")
    with pytest.raises(RuntimeError, match="read"):
        made.compute()


def test_wrong_rows_are_counted_over_all_partitions_and_refused_at_once():
    c = cal.Platt().fit(S, Y)
    wrong = MEMORY.assign(s=np.where(np.arange(800) % 300 == 0, np.nan, S))
    frame = dd.from_pandas(wrong, npartitions=3)
    with pytest.raises(InputError, match="3 of 800"):
        cal.add_probabilities(c, frame, score="s")
    made = cal.add_probabilities(c, frame, score="s", on_missing="null").compute()
    assert made["probability"].isna().sum() == 3
    far = dd.from_pandas(MEMORY.assign(s=S * 2), npartitions=3)
    with pytest.raises(InputError, match=r"in \[0, 1\]"):
        cal.add_probabilities(c, far, score="s")
    made = cal.add_probabilities(c, far, score="s", on_range="clip").compute()
    assert np.array_equal(made["probability"], c.calibrate(np.minimum(S * 2, 1.0)))


def test_new_segments_are_counted_over_all_partitions():
    c = cal.SegmentedCalibrator().fit(S, Y, segments=LAND)
    frame = dd.from_pandas(MEMORY.assign(land="DE"), npartitions=3)
    with pytest.warns(CalibrationWarning, match="800"):
        made = cal.add_probabilities(c, frame, score="s", segment="land")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        made.compute()
    with pytest.raises(InputError, match="800"):
        cal.add_probabilities(c, frame, score="s", segment="land", on_new_segment="error")
