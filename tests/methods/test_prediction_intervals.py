"""Intervals around a model's probabilities: formulas, coverage, invariances, refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.special import expit, ndtri
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from calibrant.errors import InputError, ParameterError
from calibrant.methods.acp.intervals import (
    Intervals,
    PredictionInterval,
    prediction_interval,
)
from twins import acp as naive_acp

TIGHT = {"tol": 1e-10, "max_iter": 10_000}


def draw(n, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    eta = -0.4 + X @ np.linspace(1.2, -0.8, columns)
    return X, (rng.random(n) < expit(eta)).astype(int), eta


@pytest.fixture(scope="module")
def data():
    return draw(300)[:2]


def with_one(X):
    return np.column_stack((np.ones(len(X)), X))


def sd_logit(model, X, **options):
    return prediction_interval(model, X, scale="logit", **options).sd


# --- the delta method ---------------------------------------------------------------------------


@pytest.mark.parametrize("C", [np.inf, 1.0, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_delta_is_the_textbook_formula(data, C, weighted):
    X, y = data
    w = np.random.default_rng(1).exponential(size=len(y)) if weighted else np.ones(len(y))
    model = LogisticRegression(C=C, **TIGHT).fit(X, y, w)
    penalty = np.append(0.0, np.full(3, 1 / C))
    expected = naive_acp.delta_sd(with_one(X), model.decision_function(X), w, penalty, with_one(X))
    found = prediction_interval(model, X, train=(X, y, w), scale="logit")
    np.testing.assert_allclose(found.sd, expected, rtol=1e-10)
    eta, z = model.decision_function(X), ndtri(0.975)
    np.testing.assert_allclose(found.lower, expit(eta - z * expected), rtol=1e-9)
    np.testing.assert_allclose(found.upper, expit(eta + z * expected), rtol=1e-9)
    plain = prediction_interval(model, X, train=(X, y, w))
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(plain.sd, p * (1 - p) * expected, rtol=1e-9)
    np.testing.assert_allclose(plain.lower, np.maximum(p - z * plain.sd, 0), atol=1e-12)
    np.testing.assert_allclose(plain.upper, np.minimum(p + z * plain.sd, 1), atol=1e-12)
    np.testing.assert_array_equal(plain.probability, p)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("lbfgs", {"C": 0.5}),
        ("lbfgs", {"C": 0.5, "fit_intercept": False}),
        ("lbfgs", {"C": np.inf}),
        ("newton-cholesky", {"C": 2.0}),
        ("liblinear", {"C": 0.5}),
        ("liblinear", {"C": 0.2, "intercept_scaling": 3.0}),
        ("liblinear", {"C": 0.5, "fit_intercept": False}),
    ],
)
def test_delta_is_the_curvature_of_what_the_solver_minimises(data, solver, options):
    """The fit is where the gradient of the stated objective vanishes, and sd is its curvature."""
    X, y = data
    w = np.random.default_rng(2).exponential(size=len(y))
    model = LogisticRegression(solver=solver, **options, **TIGHT).fit(X, y, w)
    strength = 1 / options["C"]
    free = options.get("fit_intercept", True)
    inner = with_one(X) if free else X
    beta = np.append(model.intercept_, model.coef_) if free else model.coef_[0]
    first = strength / options.get("intercept_scaling", 1.0) ** 2 if solver == "liblinear" else 0.0
    penalty = np.append(first, np.full(3, strength)) if free else np.full(3, strength)

    def loss(beta):
        return naive_acp.penalised_loss(beta, inner, y, w, penalty)

    steps = 1e-5 * np.eye(len(beta))
    gradient = [(loss(beta + e) - loss(beta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(gradient, 0, atol=5e-3)
    H = naive_acp.finite_hessian(loss, beta)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", inner, np.linalg.inv(H), inner))
    np.testing.assert_allclose(sd_logit(model, X, train=(X, y, w)), expected, rtol=1e-4)


def test_coverage_of_the_true_probability():
    new, _, eta = draw(100, seed=99)
    hits = {"probability": [], "logit": []}
    for seed in range(150):
        X, y, _ = draw(400, seed=1000 + seed)
        model = LogisticRegression(C=np.inf, solver="newton-cholesky").fit(X, y)
        for scale, covered in hits.items():
            lower, upper = prediction_interval(model, new, train=(X,), scale=scale)
            covered.append(np.mean((lower <= expit(eta)) & (expit(eta) <= upper)))
    for covered in hits.values():
        assert 0.92 < np.mean(covered) < 0.98


def test_coverage_under_the_penalty_is_that_of_the_posterior():
    """Coefficients from the penalty's own prior: the interval of the shrunk fit covers them."""
    rng = np.random.default_rng(8)
    new = rng.normal(size=(100, 10))
    hits, narrow = [], []
    for _ in range(150):
        beta = rng.normal(0, np.sqrt(0.1), 10)
        X = rng.normal(size=(60, 10))
        y = (rng.random(60) < expit(X @ beta)).astype(int)
        model = LogisticRegression(C=0.1, solver="newton-cholesky").fit(X, y)
        truth, eta = new @ beta, model.decision_function(new)
        sd = sd_logit(model, new, train=(X,))
        hits.append(np.mean(np.abs(eta - truth) < 1.96 * sd))
        # the sampling covariance alone
        inner, s = with_one(X), model.predict_proba(X)[:, 1]
        F = inner.T @ (inner * (s * (1 - s))[:, None])
        S = np.linalg.inv(F + np.diag(np.append(0, np.full(10, 10.0))))
        sampling = np.sqrt(np.einsum("ij,jk,ik->i", with_one(new), S @ F @ S, with_one(new)))
        narrow.append(np.mean(np.abs(eta - truth) < 1.96 * sampling))
    assert 0.92 < np.mean(hits) < 0.98
    assert np.mean(narrow) < 0.92


def test_weights_are_repetitions(data):
    X, y = data
    w = np.random.default_rng(5).integers(0, 4, len(y))
    model = LogisticRegression(**TIGHT).fit(X, y, w)
    many = np.repeat(X, w, axis=0)
    np.testing.assert_allclose(
        sd_logit(model, X, train=(X, None, w)), sd_logit(model, X, train=(many,)), rtol=1e-12
    )


def test_large_c_is_no_penalty(data):
    X, y = data
    free = LogisticRegression(C=np.inf, **TIGHT).fit(X, y)
    large = LogisticRegression(C=1e12, **TIGHT).fit(X, y)
    np.testing.assert_allclose(
        sd_logit(large, X, train=(X,)), sd_logit(free, X, train=(X,)), rtol=1e-6
    )


class Twin(LogisticRegression):
    """A logistic regression whose coefficients are given, in other columns."""

    def given(self, model, coef, intercept):
        self.__dict__.update(model.__dict__)
        self.coef_, self.intercept_ = coef, intercept
        return self


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_units_and_parameters_do_not_matter(data, C):
    X, y = data
    model = LogisticRegression(C=C, **TIGHT).fit(X, y)
    expected = sd_logit(model, X, train=(X,))
    if np.isinf(C):  # the penalty depends on units, the likelihood does not
        units = np.array([1e-9, 1.0, 1e12])
        other = Twin().given(model, model.coef_ / units, model.intercept_)
        found = sd_logit(other, X * units, train=(X * units,))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        A = np.array([[2.0, 1, 0], [0, 1, -1], [1, 0, 3]])
        mixed = Twin().given(model, np.linalg.solve(A, model.coef_.T).T, model.intercept_)
        np.testing.assert_allclose(sd_logit(mixed, X @ A, train=(X @ A,)), expected, rtol=1e-9)
    shift = np.array([1e6, -50.0, 0.0])
    moved = Twin().given(model, model.coef_, model.intercept_ - model.coef_ @ shift)
    np.testing.assert_allclose(sd_logit(moved, X + shift, train=(X + shift,)), expected, rtol=1e-8)


def test_blocks_of_rows_do_not_matter(data, monkeypatch):
    X, y = data
    model = LogisticRegression(**TIGHT).fit(X, y)
    expected = sd_logit(model, X, train=(X,))
    monkeypatch.setattr("calibrant.methods.acp.intervals.BLOCK", 7)
    np.testing.assert_allclose(sd_logit(model, X, train=(X,)), expected, rtol=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
def test_sparse_rows(data, solver):
    X, y = data
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = LogisticRegression(solver=solver, **TIGHT).fit(X, y)
    expected = prediction_interval(model, X, train=(X,))
    for kind in (csr_matrix, csr_array):
        found = prediction_interval(model, kind(X), train=(kind(X),))
        np.testing.assert_allclose(found.lower, expected.lower, atol=1e-12)
        np.testing.assert_allclose(found.upper, expected.upper, atol=1e-12)


def test_collinear_columns_without_a_penalty(data):
    X, y = data
    two = X[:, :2]
    wide = np.column_stack((two, two.sum(axis=1), np.full(len(X), 7.0)))
    free, base = (LogisticRegression(C=np.inf, **TIGHT).fit(Z, y) for Z in (wide, two))
    found = prediction_interval(free, wide, train=(wide,))
    expected = prediction_interval(base, two, train=(two,))
    np.testing.assert_allclose(found.lower, expected.lower, atol=1e-6)
    np.testing.assert_allclose(found.upper, expected.upper, atol=1e-6)
    outside = wide[:3].copy()
    outside[0, 2] += 0.5  # no longer the sum
    outside[1, 3] = 7.1  # no longer the constant
    for scale in ("probability", "logit"):
        lower, upper = prediction_interval(free, outside, train=(wide,), scale=scale)
        assert lower[:2].tolist() == [0, 0]
        assert upper[:2].tolist() == [1, 1]
        assert upper[2] - lower[2] < 0.5
    # a penalty knows something of every direction
    ridge = LogisticRegression(C=0.1).fit(wide, y)
    lower, upper = prediction_interval(ridge, outside, train=(wide,))
    assert (upper - lower < 0.6).all()


def test_a_constant_column_with_rounding_noise_is_constant(data):
    X, y = data
    noise = 7.0 * (1.0 + 2e-14 * np.random.default_rng(0).normal(size=len(X)))
    base = LogisticRegression(C=np.inf, **TIGHT).fit(X, y)
    twin = Twin().given(base, np.append(base.coef_, 0.0)[None], base.intercept_)
    twin.n_features_in_ = 4
    wide = np.column_stack((X, noise))
    expected = sd_logit(base, X, train=(X,))
    np.testing.assert_allclose(sd_logit(twin, wide, train=(wide,)), expected, rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e8])
def test_collinear_columns_with_large_means(data, offset):
    X, y = data
    a, b = X[:, 0] + offset, X[:, 1] - 2 * offset
    wide, two = np.column_stack((a, b, a + b)), X[:, :2]
    base = LogisticRegression(C=np.inf, **TIGHT).fit(two, y)
    coef = np.append(base.coef_, 0.0)[None]
    twin = Twin().given(base, coef, base.intercept_ - coef[0, :2] @ [offset, -2 * offset])
    twin.n_features_in_ = 3
    expected = sd_logit(base, two, train=(two,))
    np.testing.assert_allclose(sd_logit(twin, wide, train=(wide,)), expected, rtol=1e-5)
    outside = wide[:1] + np.array([0, 0, 1.0])
    assert np.isinf(sd_logit(twin, outside, train=(wide,))).all()


def test_fewer_rows_than_columns_with_a_penalty():
    X, y, _ = draw(20, columns=40, seed=6)
    model = LogisticRegression(C=0.3, **TIGHT).fit(X, y)
    new = draw(5, columns=40, seed=7)[0]
    penalty = np.append(0.0, np.full(40, 1 / 0.3))
    expected = naive_acp.delta_sd(
        with_one(X), model.decision_function(X), np.ones(20), penalty, with_one(new)
    )
    np.testing.assert_allclose(sd_logit(model, new, train=(X,)), expected, rtol=1e-9)


def test_separated_rows_say_nothing():
    X, y = np.array([[-1.0], [-0.9], [0.9], [1.0]]), np.array([0, 0, 1, 1])
    model = LogisticRegression(C=np.inf).fit(X, y)
    model.coef_, model.intercept_ = np.array([[5000.0]]), np.array([0.0])
    for scale in ("probability", "logit"):
        found = prediction_interval(model, [[0.0], [2.0]], train=(X,), scale=scale)
        assert found.lower.tolist() == [0, 0]
        assert found.upper.tolist() == [1, 1]


def test_saturated_probabilities_stay_inside(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    far = np.array([[800.0, 0, 0], [-800.0, 0, 0], [1e6, 0, 0]])
    for scale in ("probability", "logit"):
        found = prediction_interval(model, far, train=(X,), scale=scale)
        assert ((found.lower >= 0) & (found.lower <= found.probability)).all()
        assert ((found.probability <= found.upper) & (found.upper <= 1)).all()


@pytest.mark.parametrize("size", [1e155, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_rows_that_are_absurdly_far_out(data, size, C):
    X, y = data
    wide = np.column_stack((X, X[:, 0] - X[:, 1]))
    model = LogisticRegression(C=C, **TIGHT).fit(wide, y)
    model.coef_ = np.clip(model.coef_, -0.1, 0.1)  # so that the model itself does not overflow
    far = np.array([[size, 0, 0, size], [-size, size, 0, 0], [0, 0, -size, 0]])
    for scale in ("probability", "logit"):
        found = prediction_interval(model, far, train=(wide,), scale=scale)
        assert not np.isnan(found.sd).any()
        assert (found.lower <= found.probability).all()
        assert (found.probability <= found.upper).all()
        if np.isinf(C):  # the second is outside the span: nothing is known of it
            assert (found.lower[1], found.upper[1]) == (0.0, 1.0)


# --- through pipelines and searches -------------------------------------------------------------


def test_pipelines_and_searches_are_looked_into(data):
    import pandas as pd

    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    steps = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler())
    model = make_pipeline(steps, LogisticRegression(C=0.3, **TIGHT)).fit(frame, y)
    inner = steps.transform(frame)
    expected = prediction_interval(model[-1], inner, train=(inner,))
    found = prediction_interval(model, frame, train=(frame,))
    np.testing.assert_allclose(found.lower, expected.lower, atol=1e-12)
    search = GridSearchCV(model, {"logisticregression__C": [0.3]}, cv=2).fit(frame, y)
    again = prediction_interval(search, frame, train=(frame,))
    np.testing.assert_allclose(again.lower, expected.lower, atol=1e-6)


def test_the_chosen_c_is_taken_as_given(data):
    X, y = data
    for legacy in (True, False):
        model = LogisticRegressionCV(
            Cs=[0.02],
            cv=2,
            l1_ratios=(0,),
            scoring="neg_log_loss",
            use_legacy_attributes=legacy,
            **TIGHT,
        ).fit(X, y)
        plain = LogisticRegression(C=0.02, **TIGHT).fit(X, y)
        np.testing.assert_allclose(
            sd_logit(model, X, train=(X,)), sd_logit(plain, X, train=(X,)), rtol=1e-5
        )
    model.set_params(refit=False)
    with pytest.raises(InputError, match="refit=False"):
        sd_logit(model, X, train=(X,))


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", None])
def test_older_names_of_penalties(data, penalty):
    X, y = data
    share = {"l1": 1.0, "elasticnet": 0.5}.get(penalty, 0.0)
    model = LogisticRegression(penalty=penalty, l1_ratio=share, C=1.0, solver="saga", max_iter=5000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    if share:
        with pytest.raises(InputError, match="L1 or elastic-net"):
            sd_logit(model, X, train=(X,))
    else:
        twin = LogisticRegression(C=np.inf if penalty is None else 1.0, **TIGHT).fit(X, y)
        np.testing.assert_allclose(
            sd_logit(model, X, train=(X,)), sd_logit(twin, X, train=(X,)), rtol=1e-3
        )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"l1_ratio": 1.0, "solver": "liblinear"}, "L1 or elastic-net"),
        ({"l1_ratio": 0.5, "solver": "saga", "max_iter": 5000}, "L1 or elastic-net"),
        ({"class_weight": "balanced"}, "class_weight"),
    ],
)
def test_what_the_delta_method_is_not_right_for(data, options, reason):
    X, y = data
    model = LogisticRegression(**options).fit(X, y)
    with pytest.raises(InputError, match=f"{reason}.*a BaggingClassifier"):
        prediction_interval(model, X, train=(X, y))
    bag = BaggingClassifier(model, 3, random_state=0).fit(X, y)
    assert prediction_interval(bag, X).method == "spread"


def test_too_many_columns_for_a_matrix(data, monkeypatch):
    X, y = data
    monkeypatch.setattr("calibrant.methods.acp.intervals.WIDEST", 2)
    with pytest.raises(InputError, match="too large for 3 columns"):
        prediction_interval(LogisticRegression().fit(X, y), X, train=(X,))


# --- members ------------------------------------------------------------------------------------


def member_sd(model, X, columns=None, second=1):
    columns = [slice(None)] * len(model.estimators_) if columns is None else columns
    p = [
        m.predict_proba(X[:, c])[:, list(m.classes_).index(second)]
        if second in m.classes_
        else 0 * X[:, 0]
        for m, c in zip(model.estimators_, columns, strict=True)
    ]
    return np.std(p, axis=0, ddof=1)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_spread_of_a_forest(data, kind):
    import pandas as pd

    X, y = data
    names = np.where(y == 1, "yes", "no")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = kind(30, min_samples_leaf=10, random_state=0).fit(frame, names)
    found = prediction_interval(model, frame)
    p = model.predict_proba(frame)[:, 1]
    sd = member_sd(model, X.astype(np.float32))
    np.testing.assert_allclose(found.sd, sd, atol=1e-12)
    np.testing.assert_allclose(found.lower, np.maximum(p - ndtri(0.975) * sd, 0), atol=1e-12)
    np.testing.assert_allclose(found.upper, np.minimum(p + ndtri(0.975) * sd, 1), atol=1e-12)
    np.testing.assert_allclose(found.probability, p)
    assert found.method == "spread"
    np.testing.assert_allclose(sd_logit(model, frame), sd / (p * (1 - p)), rtol=1e-9)


def test_spread_of_bagging_with_chosen_columns_and_one_class_members():
    X, y, _ = draw(80, columns=6, seed=9)
    y = y * (np.arange(80) < 8)  # few positives: some members see none
    base = KNeighborsClassifier(
        3, algorithm="brute"
    )  # takes no weights, so that members see only rows drawn
    model = BaggingClassifier(base, 8, max_features=0.5, max_samples=12, random_state=1).fit(
        X, y + 5
    )
    assert {len(m.classes_) for m in model.estimators_} == {1, 2}
    found = prediction_interval(model, X)
    np.testing.assert_allclose(found.sd, member_sd(model, X, model.estimators_features_))
    np.testing.assert_allclose(prediction_interval(model, csr_matrix(X)).sd, found.sd, atol=1e-12)


def test_spread_of_members_that_know_the_labels(data):
    import pandas as pd

    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    members = [("a", GaussianNB()), ("b", LogisticRegression())]
    model = VotingClassifier(members, voting="soft").fit(frame, y)
    np.testing.assert_allclose(
        prediction_interval(model, frame).sd,
        np.std([m.predict_proba(frame)[:, 1] for m in model.estimators_], axis=0, ddof=1),
    )
    for member in model.estimators_:
        member.classes_ = np.array([5, 6])
    with pytest.raises(InputError, match="must know its classes"):
        prediction_interval(model, frame)
    model.classes_ = np.array([5, 6])
    prediction_interval(model, frame)


def test_rows_on_which_all_members_agree():
    X, y = np.array([[0.0], [1.0]] * 20), np.array([0, 1] * 20)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    for scale in ("probability", "logit"):
        found = prediction_interval(model, X[:2], scale=scale)
        assert found.lower.tolist() == found.upper.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(n_estimators=5),
        VotingClassifier(
            [("a", GaussianNB()), ("b", LogisticRegression())], voting="soft", weights=[3, 1]
        ),
    ],
)
def test_members_that_are_not_averaged(data, model):
    X, y = data
    with pytest.raises(InputError, match="must be the mean of its members"):
        prediction_interval(model.fit(X, y), X)


@pytest.mark.parametrize("model", [GaussianNB(), GradientBoostingClassifier(n_estimators=5)])
def test_models_without_a_rule(data, model):
    X, y = data
    model.fit(X, y)
    with pytest.raises(InputError, match=r"neither a LogisticRegression.*a BaggingClassifier"):
        prediction_interval(model, X)


# --- refusals -----------------------------------------------------------------------------------


def test_training_rows_are_asked_for(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InputError, match=r"needs the rows.*train=\(X_train,\)"):
        prediction_interval(model, X)
    with pytest.raises(InputError, match="but ndarray came"):
        prediction_interval(model, X, train=X)
    for wrong in ((), (X, y, y, y)):
        with pytest.raises(InputError, match=f"but {len(wrong)} values came"):
            prediction_interval(model, X, train=wrong)
    with pytest.raises(InputError, match="X has 300 and y has 299"):
        prediction_interval(model, X, train=(X, y[1:]))
    with pytest.raises(InputError, match="sample_weight must be at least 0"):
        prediction_interval(model, X, train=(X, y, -np.ones(300)))


def test_models_that_cannot_have_an_interval(data):
    X, y = data
    with pytest.raises(InputError, match="LinearSVC has not"):
        prediction_interval(LinearSVC().fit(X, y), X)
    with pytest.raises(InputError, match=r"no classes_\. Call fit"):
        prediction_interval(LogisticRegression(), X)
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.raises(InputError, match=r"two classes apart, but .* knows \[0, 1, 2\]"):
        prediction_interval(LogisticRegression().fit(X, three), X, train=(X,))


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 1.0},
        {"level": 0},
        {"level": 95},
        {"scale": "log"},
    ],
)
def test_limits_of_options(data, wrong):
    X, y = data
    model = LogisticRegression().fit(X, y)
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"{name} of prediction_interval must be"):
        prediction_interval(model, X, train=(X,), **wrong)


# --- the value ----------------------------------------------------------------------------------


def test_the_value_unpacks_prints_and_turns_round(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    found = prediction_interval(model, X, level=0.9, train=(X,))
    lower, upper = found
    assert lower is found.lower
    assert upper is found.upper
    assert repr(found).startswith(
        "PredictionInterval(300 rows, 90% on the probability scale by delta"
    )
    other = found.other()
    np.testing.assert_array_equal(other.lower, 1 - upper)
    np.testing.assert_array_equal(other.upper, 1 - lower)
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(prediction_interval(model, X, level=0.9, train=(X,)))
    assert isinstance(found, PredictionInterval)
    wider = prediction_interval(model, X, level=0.99, train=(X,))
    assert ((wider.lower <= lower) & (wider.upper >= upper)).all()


@pytest.mark.parametrize(
    ("model", "method"),
    [(LogisticRegression(), "delta"), (BaggingClassifier(GaussianNB(), 5), "spread")],
)
def test_intervals_as_a_function_can_be_pickled(data, model, method):
    X, y = data
    model.fit(X, y)
    found = Intervals.of(model, (X, None), level=0.95, scale="logit")
    direct = prediction_interval(model, X, scale="logit", train=(X, y))
    again = pickle.loads(pickle.dumps(found))(X)
    np.testing.assert_allclose(again.lower, direct.lower, atol=1e-12)
    assert again.method == method
