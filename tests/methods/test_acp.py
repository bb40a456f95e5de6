"""ACP: its twin, exactness, errors, saving, and what CalibratedClassifier asks of it."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import calibrant as cal
from calibrant.data.door import Rows
from calibrant.errors import CalibrationWarning, InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.methods.acp.acp import ACP
from calibrant.methods.acp.intervals import prediction_interval
from calibrant.rules.base import RowInputs, rule_from_dict
from strategies import MARGINS, PROBABILITIES, REAL, WHOLE, rows
from twins import acp as naive

SMOOTHING = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}


@st.composite
def problems(draw, weight, score=None):
    """Calibration rows and queries: intervals of all kinds, many of them empty."""
    kind = draw(st.sampled_from([PROBABILITIES, MARGINS])) if score is None else score
    s, y, w = draw(rows(score=kind, weight=weight))
    one_class = draw(st.booleans())
    y = np.zeros_like(y) if one_class else y
    ends = st.one_of(kind, st.sampled_from(s.tolist()), st.sampled_from([-np.inf, np.inf]))
    queries = draw(st.lists(st.one_of(kind, st.sampled_from(s.tolist())), min_size=1, max_size=8))
    pairs = []
    for query in queries:
        pairs.append(
            draw(
                st.one_of(
                    st.just((-np.inf, np.inf)),
                    st.just((query, query)),
                    st.tuples(ends, ends).map(sorted),
                    ends.map(lambda point: (point, point)),
                )
            )
        )
    lower, upper = np.array(pairs, dtype=float).T
    return s, y, w, np.array(queries), lower, upper


def check_twin(problem, smoothing, **tolerance):
    s, y, w, queries, lower, upper = problem
    c = ACP(smoothing=smoothing, weights="counts").fit(s, y, w)
    found = c.bins(queries, lower=lower, upper=upper, on_range="allow")
    p, weight, empty = naive.acp(s, y, w, queries, lower, upper, SMOOTHING[smoothing])
    np.testing.assert_array_equal(found.empty, empty)
    np.testing.assert_allclose(found.weight, weight, **tolerance)
    np.testing.assert_allclose(found.probability, p, **tolerance)
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
    return found


def settled(problem):
    """Not on the edge of a tie, where rounding decides."""
    return not naive.on_the_edge(problem[0], problem[2], problem[3])


@given(problems(WHOLE).filter(settled), st.sampled_from(sorted(SMOOTHING)))
def test_twin_with_whole_weights_is_met_to_the_last_bit(problem, smoothing):
    check_twin(problem, smoothing, rtol=0, atol=0)


@given(problems(REAL).filter(settled), st.sampled_from(sorted(SMOOTHING)))
def test_twin_with_fractional_weights(problem, smoothing):
    check_twin(problem, smoothing, rtol=1e-14, atol=0)


@given(problems(st.sampled_from([1e-12, 1e-3, 1.0, 0.1, 1e12, 1e14])).filter(settled))
def test_small_weights_beside_large_ones_do_not_cancel(problem):
    check_twin(problem, "none", rtol=1e-14, atol=0)


@given(problems(st.floats(0.01, 0.3), score=st.floats(0, 1)), st.integers(0, 1))
def test_one_class_gives_exactly_zero_or_one(problem, label):
    s, _, w, queries, lower, upper = problem
    c = ACP(classes=[0, 1]).fit(s, np.full(len(s), label), w)
    found = c.bins(queries, lower=lower, upper=upper, on_range="allow")
    assert (found.probability == label).all()


@pytest.mark.full
def test_twin_on_many_rows_with_ties_and_fractions():
    rng = np.random.default_rng(4)
    s, w = np.round(rng.random(300), 2), rng.exponential(size=300) * 0.4
    s[:60] = rng.random(60)
    y = (rng.random(300) < s).astype(int)
    queries = np.round(rng.random(100), 3)
    half = rng.choice([0.0, 1e-4, 0.01, 0.2], 100)
    found = check_twin((s, y, w, queries, queries - half, queries + half), "none", rtol=1e-13)
    assert found.empty.any()
    assert not found.empty.all()


@pytest.mark.parametrize(
    ("s", "query", "expected"),
    [
        ([0.1, 0.3], 0.2, 20),  # 0.2 − 0.1 and 0.3 − 0.2 differ in the last bit
        ([0.0, 1.0 + 4e-13], 0.5, 20),
        ([-4e-13, 1.0], 0.5, 20),
        ([0.0, 1.0 + 4e-12], 0.5, 10),
        ([-4e-12, 1.0], 0.5, 10),
        ([0.0, 1e-300, 2e-300, 1.0], 0.5, 40),
        ([1e9 - 2e-6, 1e9 + 2e-6, 1e9 + 3e-6], 1e9, 20),
        ([-1.7e308, 1.5e308, 1.6e308], -1.7e308 + 1e300, 10),
        ([1.6e308, 1.6e308 * (1 + 1e-14)], -1.7e308, 20),
    ],
)
def test_nearest_ties_as_similarity_binning_does(s, query, expected):
    y, w = np.arange(len(s)) % 2, np.full(len(s), 10.0)
    found = check_twin((s, y, w, [query], [0.4], [0.4]), "none", rtol=0)
    assert found.weight.tolist() == [expected]


@pytest.mark.parametrize(
    ("s", "w", "query", "expected"),
    [
        ([0.0, 5e-324, 1e300], [5, 5, 5], 5e-324, 10.0),  # 0 is nearer than 1e300
        ([0.0, 5e-324, 1.7e308], [5, 5, 5], 1.7e308, 15.0),  # 0 is as far as 5e-324
        ([5e-324, 1e-323, 2.1e300], [4, 6, 5], 1e300, 10.0),  # 2.1e300 is further than both
        ([0.0, 1e-323, 2e300], [6, 4, 5], 1e300, 15.0),  # 0 and 2e300 tie
        ([-1.7e308, 0.0, 1.7e308], [5, 5, 5], 1.2e308, 10.0),
        ([1.5 * 2.0**1023, 1.625 * 2.0**1023, 1.75 * 2.0**1023], [5, 5, 5], 1.625 * 2.0**1023, 15),
        ([1.25 * 2.0**1023, 1.5 * 2.0**1023, 1.625 * 2.0**1023], [5, 5, 5], 1.5 * 2.0**1023, 10),
    ],
)
def test_nearest_among_the_smallest_and_largest_numbers(s, w, query, expected):
    found = check_twin((s, [0, 1, 1], w, [query], [-2.0], [-1.0]), "none", rtol=0)
    assert found.weight.tolist() == [expected]


def test_all_scores_where_they_weigh_less_than_ten():
    found = ACP().fit([0.1, 0.2, 0.9], [0, 1, 1]).bins([0.5], lower=[0.4], upper=[0.6])
    assert (found.weight[0], found.probability[0], found.empty[0]) == (3.0, 2 / 3, True)


def test_weights_count_as_repetitions_and_order_does_not_matter():
    rng = np.random.default_rng(0)
    s, w = np.round(rng.random(60), 1), rng.integers(0, 4, 60)
    y = rng.integers(0, 2, 60)
    weighted = ACP(weights="counts").fit(s, y, w)
    order = rng.permutation(w.sum())
    assert weighted.rule_ == ACP().fit(np.repeat(s, w)[order], np.repeat(y, w)[order]).rule_


# --- warnings and errors ------------------------------------------------------------------------


def test_empty_intervals_are_flagged_and_warned_of():
    c = ACP().fit(np.linspace(0, 1, 101), np.arange(101) % 2)
    query = {
        "scores": [0.5, 0.503, 0.507],
        "lower": [0.4, 0.502, 0.506],
        "upper": [0.6, 0.504, 0.507],
    }
    with pytest.warns(CalibrationWarning, match=r"2 of 3 intervals hold no .* \(first at row 1\)"):
        p = c.predict_proba(**query)
    found = c.bins(**query)
    assert found.empty.tolist() == [False, True, True]
    assert found.weight.tolist() == [21.0, 10.0, 10.0]
    np.testing.assert_array_equal(p[:, 1], found.probability)
    assert repr(found) == (
        "RowBins(3 rows, 2 of them with an empty interval, weights from 10 to 21, median 10)"
    )


def test_every_way_to_predict_warns_once():
    c = ACP().fit([0.1, 0.9], [0, 1])
    fitted = c.to_fitted()
    for call in (c.predict_proba, c.calibrate, c.predict, fitted.predict_proba, fitted.predict):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call([0.5], lower=[0.4], upper=[0.6])
        assert len(caught) == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c.predict_proba([0.5], lower=[0.4], upper=[0.6])
        c.bins([0.5], lower=[0.4], upper=[0.6])
    assert [warning.filename for warning in caught] == [__file__]


def test_warnings_point_to_the_caller_whichever_way_it_came(data):
    X, y = data
    acp = ACP().fit([0.1, 0.9], [0, 1])
    fitted = acp.to_fitted()
    narrow = ACP(gate=False, interval=lambda _, X: (np.full(len(X), 2.0), np.full(len(X), 2.0)))
    model = cal.CalibratedClassifier(LogisticRegression(), narrow).fit(X, y)
    ends = {"lower": [0.4], "upper": [0.6]}
    calls = [
        (call, ([0.5],), ends)
        for owner in (acp, fitted)
        for call in (owner.predict_proba, owner.calibrate, owner.predict)
    ]
    calls += [(call, (X,), {}) for call in (model.predict_proba, model.calibrate, model.predict)]
    for call, arguments, options in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(*arguments, **options)
        assert [warning.filename for warning in caught] == [__file__]
        assert [warning.category for warning in caught] == [CalibrationWarning]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ({}, r"lower and upper did not come.*prediction_interval"),
        ({"lower": [0.1, 0.2]}, "upper did not come"),
        ({"lower": [0.1, np.nan], "upper": [0.5, 0.5]}, r"lower must not be NaN: 1 of 2.*row 1"),
        ({"lower": [0.1, 0.2], "upper": [np.nan] * 2}, r"upper must not be NaN: 2 of 2.*row 0"),
        ({"lower": [0.1, 0.6], "upper": [0.5, 0.5]}, r"1 of 2 are above .*row 1: 0.6 > 0.5"),
        ({"lower": [0.1], "upper": [0.5, 0.5]}, "scores has 2 and lower has 1"),
        ({"lower": [0.1, 0.1], "upper": [0.5] * 3}, "scores has 2 and upper has 3"),
        ({"lower": ["a", "b"], "upper": [0.5, 0.5]}, "lower must be one number per row"),
        ({"lower": [0.1, None], "upper": [0.5, 0.5]}, "lower must be complete: 1 of 2"),
        ({"lower": np.zeros((2, 2)), "upper": [0.5, 0.5]}, "lower must be one number per row"),
        ({"lower": 0.1, "upper": 0.5}, "lower must be 1-d"),
    ],
)
def test_bad_intervals_are_refused(ends, message):
    c = ACP().fit([0.1, 0.9], [0, 1])
    for call in (c.predict_proba, c.calibrate, c.predict, c.bins, c.to_fitted().calibrate):
        with pytest.raises(InputError, match=message):
            call([0.2, 0.3], **ends)


def test_more_than_two_classes_are_refused():
    with pytest.raises(InputError, match=r"ACP is for two classes .* \['a', 'b', 'c'\]") as told:
        ACP().fit([0.1, 0.2, 0.3], ["a", "b", "c"])
    assert "CalibratedClassifier" not in str(told.value)
    with pytest.raises(InputError, match="soft labels"):
        ACP().fit([0.1, 0.2, 0.3], [0.5, 0.2, 0.3])
    with pytest.raises(InputError, match="only one class came"):
        ACP().fit([0.1, 0.2, 0.3], ["a", "a", "a"])
    with pytest.raises(InputError, match="3 columns"):
        ACP().fit(np.full((2, 3), 1 / 3), [0, 1])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("level", (0, 1, 1.5, "high", None, np.nan)),
        ("scale", ("margin", None, 1)),
        ("interval", ("bootstrap", None, 3)),
        ("smoothing", ("ibk", None)),
    ],
)
def test_limits_of_parameters(name, values):
    for value in values:
        with pytest.raises(ParameterError, match=f"{name} of ACP must be"):
            ACP(**{name: value}).fit([0.1, 0.9], [0, 1])
    ACP(interval=lambda m, X: X).fit([0.1, 0.9], [0, 1])


# --- labels, frames, values ---------------------------------------------------------------------


def test_labels_of_any_kind_and_either_positive():
    s, y = [0.1, 0.2, 0.3, 0.7], np.array(["no", "yes", "no", "yes"])
    ends = {"lower": [0.0, 0.25], "upper": [0.25, 0.8]}
    high = ACP().fit(s, y)
    np.testing.assert_array_equal(high.predict_proba([0.1, 0.7], **ends), [[0.5, 0.5]] * 2)
    low = ACP(pos_label="no").fit(s, y)
    assert low.pos_label_ == "no"
    assert low.classes_.tolist() == ["no", "yes"]
    ends = {"lower": [0.15, 0.25], "upper": [0.35, 0.31]}
    p = low.predict_proba([0.1, 0.7], **ends)
    np.testing.assert_array_equal(p, [[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_array_equal(low.calibrate([0.1, 0.7], **ends), p[:, 0])
    assert low.predict([0.1, 0.7], **ends).tolist() == ["no", "no"]


def test_two_columns_and_frames():
    import pandas as pd
    import polars as pl

    rng = np.random.default_rng(2)
    s, y = rng.random(50), rng.integers(0, 2, 50)
    plain = ACP().fit(s, y)
    expected = plain.calibrate(s, lower=s - 0.2, upper=s + 0.2)
    for frame in (pd.Series, pl.Series, list):
        c = ACP().fit(frame(s), frame(y))
        ends = {"lower": frame(s - 0.2), "upper": frame(s + 0.2)}
        np.testing.assert_array_equal(c.calibrate(frame(s), **ends), expected)
    pair = np.column_stack((1 - s, s))
    np.testing.assert_array_equal(
        ACP().fit(pair, y).calibrate(pair, lower=s - 0.2, upper=s + 0.2), expected
    )


def test_scores_may_be_on_any_scale():
    rng = np.random.default_rng(5)
    s, y = rng.random(80) * 0.98 + 0.01, rng.integers(0, 2, 80)
    z = np.log(s / (1 - s))
    low, high = np.clip(s - 0.1, 1e-9, 1), np.clip(s + 0.1, 0, 1 - 1e-9)
    on_logits = (
        ACP().fit(z, y).calibrate(z, lower=np.log(low / (1 - low)), upper=np.log(high / (1 - high)))
    )
    np.testing.assert_array_equal(on_logits, ACP().fit(s, y).calibrate(s, lower=low, upper=high))


def test_rule_is_a_value():
    c = ACP(smoothing="jeffreys", weights="counts").fit([0.1, 0.4, 0.8], [0, 1, 1], [1, 0.5, 2])
    c.bins([0.2], lower=[0.0], upper=[1.0])  # with its sums in place
    for twin in (pickle.loads(pickle.dumps(c.rule_)), copy.deepcopy(c.rule_), c.rule_):
        assert twin == c.rule_
        assert hash(twin) == hash(c.rule_)
        assert not twin.scores.flags.writeable
    assert repr(c.rule_) == (
        "Bins(3 scores from 0.1 to 0.8, weight 3.5: 2.5 positive, 1 negative, pseudo-count 0.5)"
    )
    assert clone(c).get_params() == c.get_params()
    again = pickle.loads(pickle.dumps(c))
    assert again.rule_ == c.rule_


@given(problems(REAL))
def test_parts_round_trip(problem):
    s, y, w, queries, lower, upper = problem
    c = ACP(smoothing="laplace").fit(s, y, w)
    arrays = {name: array.copy() for name, array in c.rule_.arrays.items()}
    assert rule_from_dict(c.rule_.to_dict(), arrays) == c.rule_
    fitted = c.to_fitted()
    assert Fitted.from_dict(fitted.to_dict(), arrays) == fitted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        np.testing.assert_array_equal(
            fitted.predict_proba(queries, lower=lower, upper=upper, on_range="allow"),
            c.predict_proba(queries, lower=lower, upper=upper, on_range="allow"),
        )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("scores", np.array([0.4, 0.1, 0.8]), "ascending"),
        ("scores", np.array([0.1, 0.1, 0.8]), "ascending"),
        ("scores", np.array([0.1, 0.4, np.inf]), "finite"),
        ("scores", np.array([0.1, np.nan, 0.8]), "finite"),
        ("scores", np.array([0.1, 0.4]), "one length"),
        ("scores", np.array([[0.1, 0.4, 0.8]]), "one length"),
        ("scores", np.array(["a", "b", "c"]), "float64"),
        ("negative", np.array([1.0, -1.0, 0.0]), "at least 0"),
        ("positive", np.array([0.0, 1.0, np.nan]), "finite"),
        ("positive", np.array([0.0, 1.0, 0.0]), "must have a weight"),
        ("pseudo", -1.0, "pseudo must be"),
        ("pseudo", "1", "pseudo must be"),
        ("pseudo", True, "pseudo must be"),
        ("pseudo", float("inf"), "pseudo must be"),
    ],
)
def test_damaged_parts_are_refused(name, value, message):
    fitted = ACP().fit([0.1, 0.4, 0.8], [0, 1, 1]).to_fitted()
    document, arrays = fitted.to_dict(), fitted.rule.arrays
    if name == "pseudo":
        document["map"]["pseudo"] = value
    else:
        arrays = {**arrays, name: value}
    with pytest.raises(InputError, match=message):
        Fitted.from_dict(document, arrays)
    empty = {key: np.empty(0) for key in arrays}
    with pytest.raises(InputError, match="damaged"):
        Fitted.from_dict(document, empty)
    with pytest.raises(InputError, match="damaged"):
        Fitted.from_dict(document, {})


# --- the intervals of a model -------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = (rng.random(400) < 1 / (1 + np.exp(-X[:, 0] + 0.5 * X[:, 1]))).astype(int)
    return X, y


def model_rows(X, y, weight=None):
    classes, codes = np.unique(y, return_inverse=True)
    return Rows.unscored(X, codes, weight, classes)


def test_companion_gives_the_intervals_of_the_models_training_rows(data):
    X, y = data
    train = np.arange(250)
    w = np.random.default_rng(0).exponential(size=400)
    rows = model_rows(X, y, w)
    model = LogisticRegression().fit(X[train], y[train], w[train])
    acp = ACP(level=0.8, scale="logit")
    found = acp.companion(model, rows, train)(X[250:])
    expected = prediction_interval(
        model, X[250:], level=0.8, scale="logit", train=(X[train], None, w[train])
    )
    np.testing.assert_array_equal(found.lower, expected.lower)
    np.testing.assert_array_equal(found.upper, expected.upper)
    assert found.features is None
    whole = acp.companion(model, model_rows(X[train], y[train], w[train]), None)(X[250:])
    np.testing.assert_array_equal(whole.lower, expected.lower)


def test_companion_of_the_other_class(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)
    acp = ACP(pos_label=0).fit(p, y)
    assert acp.pos_label_ == 0
    found = acp.companion(model, model_rows(X, y), None)(X)
    lower, upper = prediction_interval(model, X, train=(X,))
    np.testing.assert_array_equal(found.lower, 1 - upper)
    np.testing.assert_array_equal(found.upper, 1 - lower)
    assert ((found.lower <= p[:, 0]) & (p[:, 0] <= found.upper)).mean() > 0.99
    # the class that is called positive makes no difference to what is said of the rows
    other = ACP().fit(p, y).predict_proba(p, lower=lower, upper=upper)
    np.testing.assert_allclose(acp.predict_rows(p, found), other, atol=0.02)


def test_companion_is_picklable_and_holds_no_training_rows(data):
    X, y = data
    many = np.tile(X, (50, 1)), np.tile(y, 50)
    model = LogisticRegression().fit(*many)
    companion = ACP().companion(model, model_rows(*many), None)
    stored = pickle.dumps(companion)
    assert len(stored) < 10_000
    np.testing.assert_array_equal(pickle.loads(stored)(X).lower, companion(X).lower)


def test_companion_of_a_forest_needs_no_training_rows(data):
    X, y = data
    model = RandomForestClassifier(20, min_samples_leaf=20, random_state=0).fit(X, y)
    found = ACP().companion(model, None, None)(X)
    lower, upper = prediction_interval(model, X)
    np.testing.assert_array_equal(found.lower, lower)
    np.testing.assert_array_equal(found.upper, upper)


def test_companion_of_a_model_without_a_rule(data):
    X, y = data
    rows = model_rows(X, y)
    with pytest.raises(InputError, match=r"neither a LogisticRegression.*ACP\(interval="):
        ACP().companion(GaussianNB().fit(X, y), rows, None)
    # what it advises works
    bag = BaggingClassifier(GaussianNB(), 5, random_state=0).fit(X, y)
    assert len(ACP().companion(bag, rows, None)(X).lower) == len(y)


def test_companion_of_a_function_of_ones_own(data):
    X, y = data
    model = LogisticRegression().fit(X, y)

    def own(model, X):
        return prediction_interval(model, X, train=(data[0],))

    lower, upper = own(model, X)
    found = ACP(interval=own).companion(model, None, None)(X)
    np.testing.assert_array_equal(found.lower, lower)
    flipped = ACP(interval=own, pos_label=0).companion(model, None, None)(X)
    np.testing.assert_array_equal(flipped.lower, 1 - upper)
    wrong = ACP(interval=lambda model, X: 3).companion(model, None, None)
    with pytest.raises(InputError, match=r"must return \(lower, upper\)"):
        wrong(X)
    bare = ACP(interval=lambda model, X: (model(X) - 1, model(X) + 1), pos_label=0)
    score = X[:, 0]
    np.testing.assert_array_equal(
        bare.companion(lambda rows: rows[:, 0], None, None)(X).lower, score - 1
    )


def test_companion_refuses_what_it_cannot_know(data):
    X, y = data
    logistic = LogisticRegression().fit(X, y)
    with pytest.raises(ParameterError, match=r"comes already fitted.*ACP\(interval="):
        ACP().companion(logistic, None, None)
    # what it advises works
    advised = ACP(interval=lambda model, X: prediction_interval(model, X, train=(X, y)))
    assert len(advised.companion(logistic, None, None)(X).lower) == len(y)
    svm = LinearSVC().fit(X, y)
    with pytest.raises(ParameterError, match="scored by decision_function"):
        ACP().companion(svm, model_rows(X, y), None)
    with pytest.raises(ParameterError, match="scored by decision_function"):
        ACP().companion(logistic, model_rows(X, y), None, "decision_function")
    with pytest.raises(ParameterError, match="scored by decision_function"):
        ACP().companion(svm, None, None)
    with pytest.raises(ParameterError, match="scored by a function"):
        ACP().companion(lambda rows: rows[:, 0], None, None)
    margins = ACP().fit(logistic.decision_function(X), y)
    with pytest.raises(ParameterError, match="scored by another method"):
        margins.companion(logistic, model_rows(X, y), None)


def test_fit_rows_needs_no_rows():
    plain = ACP().fit([0.1, 0.9], [0, 1])
    assert ACP().fit_rows([0.1, 0.9], [0, 1], None).rule_ == plain.rule_
    assert ACP().fit_rows([0.1, 0.9], [0, 1], None, groups=[0, 0]).rule_ == plain.rule_


def test_a_circle_that_no_monotone_map_can_mend():
    """Positives all around: the score is no better than chance, the frequencies around it are."""
    rng = np.random.default_rng(7)

    def draw(n):
        y = rng.integers(0, 2, n)
        radius = rng.uniform(0, 2, n) + 2 * y
        angle = rng.uniform(0, 2 * np.pi, n)
        return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y

    (A, a), (B, b), (T, t) = draw(600), draw(600), draw(2000)
    model = LogisticRegression(C=np.inf).fit(A, a)
    raw = model.predict_proba(T)[:, 1]
    acp = ACP(level=0.1).fit(model.predict_proba(B)[:, 1], b)
    rows = acp.companion(model, model_rows(A, a), None)(T)
    p = acp.bins(raw, lower=rows.lower, upper=rows.upper).probability
    assert np.mean((raw - t) ** 2) > 0.24
    assert np.mean((p - t) ** 2) < 0.18
    assert isinstance(rows, RowInputs)


def test_bins_take_the_scores_that_calibrate_takes():
    c = ACP().fit([0.1, 0.2, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1, 1])
    with pytest.raises(InputError, match=r"probabilities in \[0, 1\].* 1 of 1 is not"):
        c.bins([50.0], lower=[40.0], upper=[60.0])
    clipped = c.bins([50.0], lower=[0.5], upper=[60.0], on_range="clip")
    wanted = c.calibrate([50.0], lower=[0.5], upper=[60.0], on_range="clip")
    assert clipped.probability.tolist() == wanted.tolist() == [1.0]
    allowed = c.bins([50.0], lower=[40.0], upper=[60.0], on_range="allow")
    assert allowed.empty.tolist() == [True]
    with pytest.raises(ParameterError, match="on_range must be 'error' or 'clip' or 'allow'"):
        c.bins([0.5], lower=[0.4], upper=[0.6], on_range="cut")


# --- the gate -------------------------------------------------------------------------------------


def test_the_gate_keeps_scores_that_bins_do_not_better(tmp_path):
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    ends = {"lower": p - 0.03, "upper": p + 0.03}
    right = cal.ACP(gate=True).fit(p, rng.random(3000) < p, **ends)
    assert right.kept_ == "uncalibrated"
    assert right.calibrate(p, **ends).tolist() == p.tolist()
    with pytest.raises(InputError, match="no bins"):
        right.bins(p, **ends)
    cal.save(right, tmp_path / "c.json")
    assert cal.load(tmp_path / "c.json").calibrate(p, **ends).tolist() == p.tolist()
    y = rng.random(3000) < 0.5 + 0.45 * np.sin(9.0 * p)
    bent = cal.ACP(gate=True).fit(p, y, **ends)
    assert bent.kept_ == "bins"
    plain = cal.ACP(gate=False).fit(p, y, **ends)
    assert plain.kept_ == "bins"
    assert bent.calibrate(p, **ends).tolist() == plain.calibrate(p, **ends).tolist()


def test_the_gate_needs_the_intervals_of_the_fit():
    p = np.linspace(0.1, 0.9, 40)
    with pytest.raises(
        InputError, match=r"lower and upper did not come\. Pass fit\(scores, y, lower=\.\.\."
    ):
        cal.ACP(gate=True).fit(p, np.arange(40) % 2)
    with pytest.raises(InputError, match="lower"):
        cal.ACP(gate=True).fit(p, np.arange(40) % 2, lower=p[:5], upper=p)
    ends = {"lower": np.where(np.arange(40) == 33, np.nan, p), "upper": p}
    with pytest.raises(InputError, match=r"1 of 40.*row 33"):
        cal.ACP().fit(p, np.arange(40) % 2, **ends)
    with pytest.raises(InputError, match="but upper did not come"):
        cal.ACP().fit(p, np.arange(40) % 2, lower=p)
    assert cal.ACP().fit(p, np.arange(40) % 2).kept_ == "bins"  # nothing to judge by


@pytest.mark.filterwarnings("ignore:.*interval.*no calibration score")
@pytest.mark.parametrize("options", [{}, {"cv": 0.5}, {"ensemble": True}])
def test_the_wrapper_keeps_the_scores_of_a_model_that_is_right(options):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 2))
    y = rng.random(4000) < 1.0 / (1.0 + np.exp(-X[:, 0]))
    model = cal.CalibratedClassifier(LogisticRegression(), cal.ACP(), random_state=0, **options)
    model.fit(X, y)
    assert {member.calibrator.kept_ for member in model.members_} == {"uncalibrated"}
    for member in model.members_:
        right = member.estimator.predict_proba(X)
        assert np.allclose(member.predict_proba(X), right, atol=1e-15)
    bins = clone(model).set_params(calibrator__gate=False).fit(X, y)
    assert {member.calibrator.kept_ for member in bins.members_} == {"bins"}


def test_the_gate_of_the_wrapper_sees_the_intervals_of_the_models_that_scored_the_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 1))
    y = rng.random(300) < 1.0 / (1.0 + np.exp(-X[:, 0]))
    asked = []

    def around(model, rows):
        p = model.predict_proba(rows)[:, 1]
        asked.append((float(model.coef_[0, 0]), len(rows)))
        return p - 0.1, p + 0.1

    cal.CalibratedClassifier(LogisticRegression(), ACP(interval=around), cv=3).fit(X, y)
    slopes = [slope for slope, _ in asked]
    assert [rows for _, rows in asked] == [100, 100, 100]
    assert len(set(slopes)) == 3
    assert float(LogisticRegression().fit(X, y).coef_[0, 0]) not in slopes
