"""Series in, series out; and calibrators as steps of pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import calibrant as cal

RNG = np.random.default_rng(0)
S = RNG.random(200)
Y = RNG.random(200) < S**2
INDEX = np.arange(200)[::-1] * 3
SEGMENTS = np.where(np.arange(200) % 2, "north", "south")


def one_score():
    return cal.Platt().fit(S, Y), {}


def of_segments():
    return cal.SegmentedCalibrator(cal.Platt()).fit(S, Y, segments=SEGMENTS), {"segments": SEGMENTS}


def with_features():
    fitted = cal.SimilarityBinning(gate=False, k=5).fit(S, Y, features=S[:, None])
    return fitted, {"features": S[:, None]}


def one_or_many():
    return cal.Temperature().fit(S, Y), {}


@pytest.fixture(params=[one_score, of_segments, with_features, one_or_many])
def fitted(request):
    return request.param()


# --- series -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "Float64", "float32"])
@pytest.mark.parametrize("name", ["score", None, 3])
def test_a_pandas_series_keeps_its_index_and_name(fitted, kind, name):
    calibrator, beside = fitted
    given = pd.Series(S, index=INDEX, name=name).astype(kind)
    for one in (calibrator, calibrator.to_fitted()):
        found = one.calibrate(given, **beside)
        expected = one.calibrate(given.to_numpy(), **beside)
        pd.testing.assert_series_equal(found, pd.Series(expected, index=INDEX, name=name))


def test_a_polars_series_gives_a_polars_series(fitted):
    calibrator, beside = fitted
    for one in (calibrator, calibrator.to_fitted()):
        found = one.calibrate(pl.Series("score", S), **beside)
        assert isinstance(found, pl.Series)
        assert found.name == "score"
        assert np.array_equal(found.to_numpy(), one.calibrate(S, **beside))


@pytest.mark.parametrize(
    "given", [S.tolist(), tuple(S), S[:, None], pa.array(S), pd.DataFrame({"s": S})], ids=type
)
def test_anything_else_gives_an_array(fitted, given):
    calibrator, beside = fitted
    for one in (calibrator, calibrator.to_fitted()):
        assert type(one.calibrate(given, **beside)) is np.ndarray


@pytest.mark.parametrize(
    "given", [pd.Series(S, index=INDEX), pl.Series(S)], ids=["pandas", "polars"]
)
def test_predictions_are_arrays_as_in_scikit_learn(fitted, given):
    calibrator, beside = fitted
    for one in (calibrator, calibrator.to_fitted()):
        for method in (one.predict_proba, one.predict):
            found = method(given, **beside)
            assert type(found) is np.ndarray
            assert np.array_equal(found, method(S, **beside))


# --- steps of pipelines -------------------------------------------------------------------------

X, LABELS = make_classification(300, random_state=0)


def test_a_calibrator_ends_a_pipeline_of_scores():
    pipe = make_pipeline(LinearDiscriminantAnalysis(), cal.Platt()).fit(X, LABELS)
    scores = pipe[0].transform(X)
    alone = cal.Platt().fit(scores, LABELS)
    assert np.array_equal(pipe.predict_proba(X), alone.predict_proba(scores))
    assert np.array_equal(pipe.predict(X), alone.predict(scores))
    assert np.array_equal(pipe.transform(X), alone.calibrate(scores)[:, None])
    assert pipe.get_feature_names_out().tolist() == ["probability"]


def test_a_calibrator_stands_before_another_model():
    frame = pd.DataFrame({"a": 1 / (1 + np.exp(-X[:, 0])), "b": X[:, 1]})
    columns = make_column_transformer((cal.Isotonic(), ["a"]), (cal.Platt(), ["b"]))
    made = columns.fit_transform(frame, LABELS)
    assert np.array_equal(made[:, 1], cal.Platt().fit(frame["b"], LABELS).calibrate(frame["b"]))
    assert columns.get_feature_names_out().tolist() == [
        "isotonic__probability",
        "platt__probability",
    ]
    search = GridSearchCV(
        make_pipeline(columns, LogisticRegression()),
        {"columntransformer__isotonic__interpolation": ["step", "linear"]},
    ).fit(frame, LABELS)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output_names_the_container_of_transform(library, kind):
    given = pd.Series(S, index=INDEX, name="score")
    calibrator = cal.Platt().set_output(transform=library).fit(given, Y)
    found = calibrator.transform(given)
    assert isinstance(found, kind)
    assert list(found.columns) == ["probability"]
    assert np.array_equal(found.to_numpy()[:, 0], calibrator.calibrate(S))
    if library == "pandas":
        assert found.index.tolist() == INDEX.tolist()
    assert type(calibrator.predict_proba(given)) is np.ndarray
    with sklearn.config_context(transform_output=library):
        assert isinstance(cal.Platt().fit(S, Y).transform(S), kind)
        assert isinstance(cal.Platt().fit_transform(S, Y), kind)


@pytest.mark.parametrize(
    "calibrator",
    [cal.Temperature(), cal.VectorScaling(), cal.CodedCalibrator(cal.Platt())],
    ids=lambda c: type(c).__name__,
)
def test_several_classes_have_a_column_each(calibrator):
    p = RNG.dirichlet([1.0, 1.0, 1.0], 90)
    y = np.array(["ant", "bee", "cat"])[np.arange(90) % 3]
    calibrator.fit(p, y).set_output(transform="pandas")
    found = calibrator.transform(p)
    assert list(found.columns) == ["probability_ant", "probability_bee", "probability_cat"]
    assert np.array_equal(found.to_numpy(), calibrator.predict_proba(p))


def test_steps_that_are_not_fitted_say_so():
    for method in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(cal.Platt(), method)(S)


def test_scores_of_another_kind_are_refused_by_transform_too():
    with pytest.raises(cal.errors.InputError, match="probabilities"):
        cal.Platt().fit(S, Y).transform([-3.0, 2.0])


def test_weights_are_routed_to_a_step_in_the_middle():
    weight = RNG.integers(1, 4, len(LABELS)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            LinearDiscriminantAnalysis(),
            cal.Platt().set_fit_request(sample_weight=True),
            LogisticRegression().set_fit_request(sample_weight=False),
        ).fit(X, LABELS, sample_weight=weight)
    scores = pipe[0].transform(X)
    assert pipe[1].map_ == cal.Platt().fit(scores, LABELS, weight).map_
    assert pipe[1].map_ != cal.Platt().fit(scores, LABELS).map_
