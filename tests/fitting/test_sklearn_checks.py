"""The scikit-learn contract: every calibrator and the wrapper, under scikit-learn's own checks.

scikit-learn runs nearly none of its checks on estimators of 1-d input, so each calibrator is
derived into an adapter whose score is the first column of X.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.metrics import brier_score_loss, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.model.calibrated import CalibratedClassifier

PUBLIC = [getattr(cal, name) for name in cal.__all__]
CALIBRATORS = [
    one
    for one in PUBLIC
    if isinstance(one, type) and issubclass(one, cal.Calibrator) and one is not cal.Calibrator
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny fits spend their time in waiting threads, if the linear algebra may start any."""
    with threadpool_limits(1):
        yield


def has_fixed_middle(calibrator):
    """Whether some score keeps its probability whatever the labels, so that the base rate stays."""
    kinds = (cal.Uncalibrated, cal.Temperature, cal.AutoCalibrator)
    return isinstance(calibrator, kinds) or getattr(calibrator, "kind", None) in ("ab", "minmax")


def adapt(base):
    """The calibrator as a classifier of 2-d X whose score is the first column."""

    class Adapter(base):
        def fit(self, X, y, sample_weight=None):
            return super().fit(validate_data(self, X)[:, 0], y, sample_weight)

        def _score(self, X):
            check_is_fitted(self, "map_")
            return validate_data(self, X, reset=False)[:, 0]

        def calibrate(self, X, *, on_range="error"):
            return super().calibrate(self._score(X), on_range=on_range)

        def predict_proba(self, X, *, on_range="error"):
            return super().predict_proba(self._score(X), on_range=on_range)

        def predict(self, X, *, on_range="error"):
            return super().predict(self._score(X), on_range=on_range)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.one_d_array = False
            tags.input_tags.two_d_array = True
            tags.classifier_tags.poor_score = True
            return tags

    Adapter.__name__ = Adapter.__qualname__ = f"{base.__name__}Adapter"
    globals()[Adapter.__name__] = Adapter  # where pickle looks for it
    return Adapter


def counting(estimator):
    """To scikit-learn a row of weight two is two rows, to ours only if told so."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "weights"]
    return estimator.set_params(**dict.fromkeys(names, "counts"))


ADAPTERS = {base: adapt(base) for base in CALIBRATORS}
INSTANCES = [base(**({"cv": 2} if base is cal.AutoCalibrator else {})) for base in CALIBRATORS]
ADAPTED = {
    repr(adapted): adapted
    for adapted in (counting(ADAPTERS[type(c)](**c.get_params(deep=False))) for c in INSTANCES)
}


def expected_failures(estimator):
    """A map that keeps scores, or one of them, cannot be the constant that one class asks for."""
    if has_fixed_middle(estimator):
        return {"check_classifiers_one_label": "its map has a fixed middle"}
    if isinstance(estimator, cal.VennAbers):
        given = "the check sets cv to a list of folds, and tables are dealt into a number of them"
        return {"check_sample_weight_equivalence_on_dense_data": given}
    return {}


@parametrize_with_checks(list(ADAPTED.values()), expected_failed_checks=expected_failures)
def test_adapter_passes_every_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("base", CALIBRATORS, ids=lambda base: base.__name__)
def test_a_subclass_may_call_the_scores_otherwise(base):
    """Metadata are what is left of the arguments: neither the scores, nor what is X here."""
    with sklearn.config_context(enable_metadata_routing=True):
        mine, own = (get_routing_for_object(one()) for one in (ADAPTERS[base], base))
        for requests in (mine, own):
            for method in (requests.fit, requests.predict, requests.predict_proba):
                assert not {"scores", "on_range"} & set(method.requests)
        assert mine.fit.requests == {"sample_weight": None}


@parametrize_with_checks(list(ADAPTED.values()), expected_failed_checks=expected_failures)
@pytest.mark.full
def test_adapter_passes_every_check_with_metadata_routing(estimator, check):
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)


WRAPPED = [
    CalibratedClassifier(calibrator=cal.Platt()),
    CalibratedClassifier(calibrator=cal.Platt(), ensemble=True),
    CalibratedClassifier(calibrator=cal.Platt(), cv="train"),
    CalibratedClassifier(calibrator=cal.Platt(), cv=0.25),
    CalibratedClassifier(calibrator=cal.Isotonic(), response_method="decision_function"),
    CalibratedClassifier(calibrator=cal.AutoCalibrator(cv=2)),
]


@parametrize_with_checks([counting(wrapper) for wrapper in WRAPPED])
@pytest.mark.full
def test_wrapper_passes_every_check(estimator, check):
    check(estimator)
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)


def test_adapters_meet_far_more_checks_than_the_calibrators_themselves():
    with pytest.warns(sklearn.exceptions.SkipTestWarning, match="Can't test estimator Platt"):
        assert len(list(estimator_checks_generator(cal.Platt()))) < 5
    assert len(list(estimator_checks_generator(ADAPTERS[cal.Platt]()))) > 50


def test_there_is_an_adapter_for_every_public_calibrator():
    names = {base.__name__ for base in CALIBRATORS}
    assert names >= {
        *("Platt", "LogisticCorrection", "Isotonic", "Histogram"),
        *("Beta", "Temperature", "Rescale", "Uncalibrated"),
    }


# --- the calibrators themselves, on 1-d scores --------------------------------------------------


def sample(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.9, n)
    return p, rng.random(n) < p**1.7, rng.integers(0, 4, n).astype(float)


@pytest.fixture(params=CALIBRATORS, ids=lambda c: c.__name__)
def calibrator(request):
    return request.param()


def test_one_class_keeps_the_formula_where_the_base_rate_is_fixed():
    s = np.array([0.2, 0.4, 0.9])
    assert cal.Uncalibrated().fit(s, [1, 1, 1]).calibrate(s).tolist() == s.tolist()
    assert cal.Rescale(formula="minmax").fit(s, [1, 1, 1]).calibrate([0.2, 0.9]).tolist() == [0, 1]
    assert cal.Temperature().fit(s, [1, 1, 1]).calibrate([0.5]).tolist() == [0.5]


def test_clone_has_the_parameters_and_nothing_fitted(calibrator):
    s, y, _ = sample()
    calibrator.set_params(pos_label=False, classes=[False, True]).fit(s, y)
    twin = clone(calibrator)
    assert twin.get_params() == calibrator.get_params()
    assert not hasattr(twin, "map_")
    assert twin.fit(s, y).map_ == calibrator.map_


def test_set_params_refuses_what_is_not_a_parameter(calibrator):
    assert {"pos_label", "classes"} <= set(calibrator.get_params())
    with pytest.raises(ValueError, match="Invalid parameter"):
        calibrator.set_params(no_such_thing=1)


def test_pickle_keeps_the_fit(calibrator):
    s, y, w = sample()
    calibrator.fit(s, y, w)
    twin = pickle.loads(pickle.dumps(calibrator))
    assert twin.map_ == calibrator.map_
    assert np.array_equal(twin.predict_proba(s), calibrator.predict_proba(s))


def test_tags_say_binary_classifier_of_one_dimension(calibrator):
    tags = get_tags(calibrator)
    assert is_classifier(calibrator)
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert not tags.classifier_tags.multi_class


def test_unfitted_is_refused_by_every_method(calibrator):
    for method in ("predict", "predict_proba", "calibrate"):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            getattr(calibrator, method)([0.5])


@pytest.mark.full
def test_cross_val_predict_equals_a_loop(calibrator):
    s, y, _ = sample()
    folds = StratifiedKFold(4)
    found = cross_val_predict(calibrator, s, y, cv=folds, method="predict_proba")
    for train, test in folds.split(s, y):
        expected = clone(calibrator).fit(s[train], y[train]).predict_proba(s[test])
        assert np.array_equal(found[test], expected)


def test_grid_search_finds_the_parameter_that_a_loop_finds():
    s, y, _ = sample(900)
    grid = [2, 5, 20, 100]
    search = GridSearchCV(
        cal.Histogram(smoothing="laplace"), {"bins": grid}, scoring="neg_log_loss", cv=5
    ).fit(s, y)
    losses = [
        np.mean(
            [
                log_loss(
                    y[test],
                    cal.Histogram(bins=bins, smoothing="laplace")
                    .fit(s[train], y[train])
                    .calibrate(s[test]),
                )
                for train, test in StratifiedKFold(5).split(s, y)
            ]
        )
        for bins in grid
    ]
    assert search.best_params_ == {"bins": grid[int(np.argmin(losses))]}
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], losses, rtol=1e-12)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2), (False, True), ("no", "yes")], ids=str)
@pytest.mark.parametrize("high", [0, 1])
def test_scorers_agree_with_direct_computation_for_either_pos_label(calibrator, labels, high):
    s, y, w = sample()
    s = 0.02 + 0.96 * s  # away from 0 and 1, whose log loss scikit-learn clips
    pos_label = labels[high]
    named = np.where(y, pos_label, labels[1 - high])
    if isinstance(calibrator, cal.Isotonic | cal.Histogram):
        calibrator.set_params(smoothing="laplace")
    if "weights" in calibrator.get_params():  # whole sums keep ties that rounding would break
        calibrator.set_params(weights="counts")
    calibrator.set_params(pos_label=pos_label).fit(s, named, w)
    p, n = calibrator.calibrate(s), w.sum()

    def score(name):
        return get_scorer(name)(calibrator, s, named, sample_weight=w)

    assert score("neg_log_loss") == pytest.approx(
        w @ np.where(y, np.log(p), np.log1p(-p)) / n, rel=1e-9
    )
    assert score("roc_auc") == pytest.approx(roc_auc_score(y, p, sample_weight=w), rel=1e-12)
    if labels[0] in (0, -1):  # scikit-learn's Brier scorer asks for pos_label otherwise
        assert score("neg_brier_score") == pytest.approx(-(w @ (p - y) ** 2) / n, rel=1e-9)
    assert brier_score_loss(named, p, sample_weight=w, pos_label=pos_label) == pytest.approx(
        w @ (p - y) ** 2 / n, rel=1e-9
    )
    chosen = (p > 0.5) | ((p == 0.5) & (high == 0))  # ties go to the first class
    assert score("accuracy") == pytest.approx(w @ (chosen == y) / n, rel=1e-12)


# --- metadata routing ---------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_routing_offers_weights_and_not_scores(calibrator):
    requests = calibrator.get_metadata_routing()
    more = {"groups", "features"} if isinstance(calibrator, cal.AutoCalibrator) else set()
    assert set(requests.fit.requests) == {"sample_weight"} | more
    assert set(requests.predict.requests) == more - {"groups"}
    assert set(requests.predict_proba.requests) == more - {"groups"}
    with pytest.raises(TypeError, match="scores"):
        calibrator.set_fit_request(scores=True)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_cross_validate():
    s, y, w = sample()
    weighted = cal.Platt().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    found = cross_validate(
        weighted, s, y, cv=StratifiedKFold(3), params={"sample_weight": w}, return_estimator=True
    )
    for (train, test), fitted, score in zip(
        StratifiedKFold(3).split(s, y), found["estimator"], found["test_score"], strict=True
    ):
        expected = cal.Platt().fit(s[train], y[train], w[train])
        assert fitted.map_ == expected.map_
        assert fitted.map_ != cal.Platt().fit(s[train], y[train]).map_
        assert score == expected.score(s[test], y[test], w[test])


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_grid_search():
    s, y, w = sample()
    weighted = cal.Beta().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(weighted, {"parameters": ["abm", "am"]}, cv=3).fit(s, y, sample_weight=w)
    parameters = search.best_params_["parameters"]
    assert search.best_estimator_.map_ == cal.Beta(parameters=parameters).fit(s, y, w).map_


@pytest.mark.usefixtures("routing")
def test_weights_and_groups_are_routed_into_the_wrapper():
    s, y, w = sample()
    X, groups = np.column_stack((s, s**2)), np.arange(len(s)) // 4
    model = CalibratedClassifier(cv=3)
    own = model.get_metadata_routing()._self_request  # as CalibratedClassifierCV's
    assert set(own.fit.requests) == {"sample_weight", "groups"}
    model.set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=False)
    search = GridSearchCV(model, {"calibrator": [cal.Platt(), cal.Beta()]}, cv=3)
    search.fit(X, y, sample_weight=w, groups=groups)
    best = clone(search.best_estimator_).fit(X, y, w, groups=groups)
    assert search.best_estimator_.calibrator_.map_ == best.calibrator_.map_
    plain = clone(search.best_estimator_).fit(X, y, w)
    assert search.best_estimator_.calibrator_.map_ != plain.calibrator_.map_
