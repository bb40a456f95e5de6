"""Probabilities of several classes as columns of frames: the same as predict_proba gives."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Coded, Identity, Logistic, Softmax, TopLabel, VectorMixture
from lazy_frames import KINDS, frame

TOL = 1e-12
FRAMES = ("polars", "duckdb", "pandas")
RNG = np.random.default_rng(5)


def distributions(n: int, k: int) -> np.ndarray:
    z = RNG.normal(size=(n, k)) * 3
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def as_polars(made: object) -> pl.DataFrame:
    if isinstance(made, pl.LazyFrame):
        return made.collect()
    if hasattr(made, "to_pyarrow"):
        return pl.from_arrow(made.to_pyarrow())
    if hasattr(made, "to_arrow_table"):
        return pl.from_arrow(made.to_arrow_table())
    return pl.DataFrame(made) if hasattr(made, "schema") else pl.from_pandas(made)


def applied(kind: str, calibrator: object, scores: np.ndarray, **options: object) -> np.ndarray:
    """The new columns, in the order of the rows."""
    columns = {f"s{j}": scores[:, j] for j in range(scores.shape[1])}
    given = frame(kind, {"id": np.arange(len(scores)), **columns})
    options = {"on_range": "allow", "into": "p", **options}
    made = cal.add_probabilities(calibrator, given, score=list(columns), **options)
    found = as_polars(made).sort("id")
    new = [name for name in found.columns if name.startswith("p_")]
    assert found.columns == ["id", *columns, *new]
    return found.select(new).to_numpy()


FULL = Softmax([[1.2, 0.1, 0.0], [-0.3, 0.9, 0.2], [0.0, 0.0, 1.0]], [0.1, -0.2, 0.0])
SIGMOID = Logistic(-0.2, (("z", 0.8),))
LOGITS = {
    "temperature": Softmax(0.6, [0.0, 0.0, 0.0]),
    "vector": Softmax([0.5, 1.0, 1.5], [0.3, 0.0, -0.3]),
    "matrix": FULL,
    "structured": Softmax(FULL.matrix, FULL.bias, "logit", inner=0.8),
}
PROBABILITIES = {
    "dirichlet": Softmax(FULL.matrix, FULL.bias, "probability"),
    "floor": Softmax(1.0, FULL.bias, "probability", 1e-3),
    "one against rest": Coded.one_vs_rest((SIGMOID, Identity(), SIGMOID)),
    "mixture": VectorMixture([0.25, 0.75], (Softmax(2.0, [0, 0, 0], "probability"), FULL)),
    "mixture of powers": VectorMixture([1.0], (FULL,), "probability", 0.01, 0.5),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", LOGITS)
def test_maps_of_logits_on_all_frames(kind, name):
    scores = np.concatenate([RNG.normal(size=(40, 3)) * 4, [[800.0, -800.0, 0.0], [0.0, 0.0, 0.0]]])
    found = applied(kind, LOGITS[name], scores)
    assert np.abs(found - LOGITS[name](scores)).max() <= TOL


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", PROBABILITIES)
def test_maps_of_probabilities_on_all_frames(kind, name):
    scores = np.concatenate([distributions(40, 3), np.eye(3), [[0.5, 0.5, 0.0]]])
    found = applied(kind, PROBABILITIES[name], scores)
    assert np.abs(found - PROBABILITIES[name](scores)).max() <= TOL


FITTED = {
    "isotonic": cal.CodedCalibrator(cal.Isotonic()),
    "bls": cal.CodedCalibrator(cal.BLS()),
    "beta": cal.CodedCalibrator(cal.Beta()),
    "top label": cal.TopLabelCalibrator(cal.Isotonic()),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["polars", "duckdb"])
@pytest.mark.parametrize("name", FITTED)
def test_calibrators_of_many_classes_on_lazy_frames(kind, name):
    k = 12
    p = distributions(1500, k)
    y = np.array([RNG.choice(k, p=row) for row in p])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = FITTED[name].fit(p, y)
    found = applied(kind, c, p[:300], on_range="error")
    assert np.abs(found - c.predict_proba(p[:300])).max() <= TOL


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
@pytest.mark.full
def test_fifty_classes(kind):
    k = 50
    scores = RNG.normal(size=(60, k))
    full = Softmax(np.eye(k) + 0.05 * RNG.normal(size=(k, k)), RNG.normal(size=k))
    assert np.abs(applied(kind, full, scores) - full(scores)).max() <= TOL
    p = distributions(60, k)
    members = tuple(Logistic(0.01 * j, (("z", 0.9),)) for j in range(k))
    coded = Coded.one_vs_rest(members)
    assert np.abs(applied(kind, coded, p) - coded(p)).max() <= TOL


# --- names, missing values, refusals -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_score_are_refused_or_get_no_probability(kind):
    scores = RNG.normal(size=(6, 3))
    scores[1, 2], scores[4, 0] = np.nan, np.inf
    with pytest.raises(InputError, match=r"finite"):
        applied(kind, FULL, scores)
    found = applied(kind, FULL, scores, on_missing="null")
    assert np.isnan(found[[1, 4]]).all()
    rest = [0, 2, 3, 5]
    assert np.abs(found[rest] - FULL(scores[rest])).max() <= TOL


@pytest.mark.parametrize("kind", ["polars", "duckdb", "pandas"])
def test_columns_by_class_and_names_of_the_new_ones(kind):
    z = RNG.normal(size=(90, 3))
    y = np.array(["ape", "bee", "cat"])[(z + RNG.gumbel(size=z.shape)).argmax(axis=1)]
    c = cal.VectorScaling().fit(z, y)
    given = frame(kind, {"C": z[:, 2], "A": z[:, 0], "B": z[:, 1]})
    named = {"bee": "B", "cat": "C", "ape": "A"}
    found = as_polars(cal.add_probabilities(c, given, score=named))
    new = ["probability_ape", "probability_bee", "probability_cat"]
    assert found.columns == ["C", "A", "B", *new]
    assert np.abs(found.select(new).to_numpy() - c.predict_proba(z)).max() <= TOL


@pytest.mark.parametrize("kind", ["polars", "duckdb", "pandas"])
def test_rows_that_are_no_distributions_are_refused(kind):
    p = distributions(80, 3)
    y = np.array([RNG.choice(3, p=row) for row in p])
    c = cal.Temperature().fit(p, y)
    wrong = p.copy()
    wrong[3] *= 0.5
    with pytest.raises(InputError, match=r"sum"):
        applied(kind, c, wrong, on_range="error")
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        applied(kind, c, p * 100, on_range="error")


@pytest.mark.parametrize(
    ("score", "word"),
    [
        ("a", "reads 3 columns"),
        (["a", "b"], "reads 3 columns"),
        (["a", "b", "b"], "must come once"),
        ({"x": "a", "y": "b"}, "for each of the classes"),
        (["a", "b", "nothing"], "nothing"),
        (["a", "b", "word"], "must be numbers"),
    ],
)
def test_wrong_columns_are_refused(score, word):
    given = pl.LazyFrame({"a": [0.1], "b": [0.2], "c": [0.3], "word": ["x"]})
    with pytest.raises(InputError, match=word):
        cal.add_probabilities(FULL, given, score=score)


def test_a_column_that_exists_and_rules_that_iterate_are_refused():
    given = pl.LazyFrame({"a": [0.1], "b": [0.2], "c": [0.3], "p_1": [0.0]})
    with pytest.raises(InputError, match="already has a column 'p_1'"):
        cal.add_probabilities(FULL, given, score=["a", "b", "c"], into="p")
    with pytest.raises(InputError, match="the calibrator has one map"):
        cal.add_probabilities(FULL, given, score=["a", "b", "c"], segment="p_1")
    p = distributions(60, 3)
    c = cal.CodedCalibrator(cal.Platt(), combine="least_squares").fit(p, p.argmax(axis=1))
    with pytest.raises(InputError, match="found by iteration"):
        cal.add_probabilities(c, given, score=["a", "b", "c"], on_missing="null", on_range="allow")


@pytest.mark.parametrize("kind", FRAMES)
def test_the_others_share_what_the_largest_leaves_however_small_they_are(kind):
    map_ = TopLabel(SIGMOID, 3)
    logits = [[0, 0, 0], [-402, -307, 425], [0, -707.9, -708.1], [0, -720, -720.5], [1, 1, 0]]
    logits += [[0, -1000, -2000], [-400, -400, 425], [5, 4, 3]]
    rows = np.array(logits, dtype=float)
    found = applied(kind, Fitted(map_, ("a", "b", "c"), None), rows)
    np.testing.assert_allclose(found, map_(rows), rtol=0, atol=TOL)
