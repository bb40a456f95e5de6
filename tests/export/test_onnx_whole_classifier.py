"""A model and its calibrator as one ONNX model: the numbers of predict_proba."""

from __future__ import annotations

import importlib
import json

import lightgbm
import numpy as np
import onnx
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import calibrant as cal
from onnx_sessions import run


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def sample(k, n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, 4)) + y[:, None] * [0.9, -0.6, 0.3, 0.0]
    return X.astype(np.float32), y


NEW = sample(3, seed=1)[0]
MODELS = {
    "logistic regression": LogisticRegression(),
    "random forest": RandomForestClassifier(20, min_samples_leaf=5, random_state=0),
    "LightGBM": lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1),
    "XGBoost": xgboost.XGBClassifier(n_estimators=10, n_jobs=1),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "margins": LinearSVC(),
    "margins of a pipeline": make_pipeline(StandardScaler(), LinearSVC()),
    "margins of kernels": SVC(),
}


def agrees(classifier, rows=NEW, **options):
    model = cal.to_onnx(classifier, **options)
    assert [value.name for value in model.graph.input] == ["X"]
    found = run(model, X=rows)
    assert list(found) == ["label", "probabilities"]
    expected = classifier.predict_proba(rows)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-5)
    assert found["probabilities"].dtype == np.float32
    top = np.sort(expected, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-4
    assert clear.mean() > 0.9
    labels = classifier.predict(rows)
    assert found["label"][clear].tolist() == labels[clear].tolist()
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ensemble", [False, True], ids=["one", "ensemble"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", MODELS)
def test_the_whole_classifier_gives_the_numbers_of_predict_proba(model, k, ensemble):
    X, y = sample(k)
    calibrated = cal.CalibratedClassifier(MODELS[model], "platt", cv=3, ensemble=ensemble)
    agrees(calibrated.fit(X, y))


@pytest.mark.parametrize(
    "calibrator",
    [
        cal.Isotonic(),
        cal.BLS(),
        cal.Temperature(),
        cal.VectorScaling(),
        cal.Platt(pos_label="no"),
        cal.AutoCalibrator(),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_calibrator_of_scores_and_text_labels(calibrator):
    X, y = sample(2)
    names = np.array(["no", "yes"])[y]
    model = agrees(cal.CalibratedClassifier(GaussianNB(), calibrator).fit(X, names))
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(facts["calibrant.classes"]) == ["no", "yes"]


@pytest.mark.parametrize("cv", [0.3, "train", "prefit", "frozen"])
def test_every_kind_of_cv(cv):
    X, y = sample(2)
    model = GaussianNB()
    if cv in ("prefit", "frozen"):
        model.fit(X[:200], y[:200])
    if cv == "frozen":
        model, cv = FrozenEstimator(model), 3
    wrapped = cal.CalibratedClassifier(model, "isotonic", cv=cv, random_state=0)
    agrees(wrapped.fit(X[200:], y[200:]))


def test_bits_are_those_of_the_calibrator_inside():
    X, y = sample(2)
    classifier = cal.CalibratedClassifier(GaussianNB(), "platt").fit(X, y)
    wide, narrow = agrees(classifier), agrees(classifier, float=32)
    double = onnx.TensorProto.DOUBLE
    assert any(value.data_type == double for value in wide.graph.initializer)
    assert not any(value.data_type == double for value in narrow.graph.initializer)


# --- refusals -----------------------------------------------------------------------------------


def fitted(model=None, calibrator="platt", **options):
    X, y = sample(2)
    return cal.CalibratedClassifier(model, calibrator, **options).fit(X, y)


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize(
    ("model", "package"),
    [(LogisticRegression(), "skl2onnx"), (MODELS["LightGBM"], "onnxmltools")],
    ids=["sklearn", "lightgbm"],
)
def test_without_a_converter_the_error_says_what_is_needed(monkeypatch, model, package, ensemble):
    real = importlib.import_module

    def missing(name, *args):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *args)

    classifier = fitted(model, ensemble=ensemble)
    monkeypatch.setattr(importlib, "import_module", missing)
    whose = r"model\.members_\[i\]" if ensemble else "model"
    words = rf"pip install {package}\. .*compose_onnx\(onnx_model, {whose}\)"
    with pytest.raises(cal.errors.MissingExtraError, match=words):
        cal.to_onnx(classifier)


def test_what_no_converter_knows_is_said_with_the_way_out():
    class Own(GaussianNB):
        """A model that nobody converts."""

    with pytest.raises(
        cal.errors.InputError,
        match=r"cannot convert Own .*compose_onnx\(onnx_model, model\)",
    ):
        cal.to_onnx(fitted(Own()))


def test_what_a_converter_says_is_kept_in_whole_sentences():
    frame, y = everyday_frame()
    columns = make_column_transformer((FunctionTransformer(np.log), ["age", "visits"]))
    model = cal.CalibratedClassifier(make_pipeline(columns, GaussianNB()), ensemble=False)
    with pytest.raises(cal.errors.InputError) as told:
        cal.to_onnx(model.fit(frame, y))
    reason, _, advice = str(told.value).partition(" You can convert the model yourself, ")
    assert "cannot convert Pipeline with 6 columns: " in reason
    assert "compose_onnx(onnx_model, model)" in advice
    assert reason.endswith(".")


# --- columns of a frame by their names ------------------------------------------------------------


def everyday_frame(n=600, seed=0):
    """Columns of text, whole numbers, other numbers and truth values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], n),
            "age": rng.integers(18, 80, n),
            "income": rng.normal(30, 8, n),
            "member": rng.random(n) < 0.4,
            "visits": rng.integers(1, 4, n),
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
        }
    )
    p = 1 / (1 + np.exp(-(frame.income - 30) / 8 - 2 * (frame.region == "north") + 0.5))
    return frame, np.where(rng.random(n) < p, "yes", "no")


INPUTS = {
    "region": "tensor(string)",
    "age": "tensor(int64)",
    "income": "tensor(float)",
    "member": "tensor(float)",
    "visits": "tensor(int64)",
    "kind": "tensor(string)",
}
FEEDS = {"tensor(string)": object, "tensor(int64)": np.int64, "tensor(float)": np.float32}
WORDS = OneHotEncoder(handle_unknown="ignore")
BY_NAME = {
    "one-hot and scaled": make_column_transformer(
        (WORDS, ["region", "kind"]), (StandardScaler(), ["age", "income"])
    ),
    "numbers as categories": make_column_transformer(
        (WORDS, ["region", "visits", "member"]), remainder="drop"
    ),
    "the rest as it is": make_column_transformer(
        (OrdinalEncoder(), ["region", "kind"]), remainder="passthrough"
    ),
    "columns by their type": make_column_transformer(
        (WORDS, make_column_selector(dtype_include=["category", "object", "string"])),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    ),
    "numbers only": make_column_transformer((StandardScaler(), ["age", "income"])),
    "inside another": make_pipeline(
        make_column_transformer((WORDS, ["region"]), (StandardScaler(), ["income"])),
        StandardScaler(with_mean=False),
    ),
}


def feeds(frame):
    return {name: frame[[name]].astype(FEEDS[kind]).to_numpy() for name, kind in INPUTS.items()}


@pytest.mark.parametrize("ensemble", [False, True], ids=["one", "ensemble"])
@pytest.mark.parametrize("columns", BY_NAME)
def test_columns_by_name_are_inputs_of_their_own(columns, ensemble):
    frame, y = everyday_frame()
    model = make_pipeline(BY_NAME[columns], LogisticRegression())
    classifier = cal.CalibratedClassifier(model, "platt", ensemble=ensemble).fit(frame, y)
    whole = cal.to_onnx(classifier)
    kinds = {"string": onnx.TensorProto.STRING, "int64": onnx.TensorProto.INT64}
    for value in whole.graph.input:
        kind = INPUTS[value.name].removeprefix("tensor(").removesuffix(")")
        tensor = value.type.tensor_type
        assert tensor.elem_type == kinds.get(kind, onnx.TensorProto.FLOAT)
        assert [d.dim_value for d in tensor.shape.dim] == [0, 1]
    assert [value.name for value in whole.graph.input] == list(frame.columns)
    new, _ = everyday_frame(seed=1)
    found = run(whole, **feeds(new))
    np.testing.assert_allclose(found["probabilities"], classifier.predict_proba(new), atol=1e-5)
    assert (found["label"] == classifier.predict(new)).mean() > 0.99


def test_a_model_that_is_fitted_already_takes_columns_by_name_too():
    frame, y = everyday_frame()
    model = make_pipeline(BY_NAME["one-hot and scaled"], LogisticRegression()).fit(frame, y)
    other = frame[frame.columns[::-1]]  # columns in another order
    classifier = cal.CalibratedClassifier(FrozenEstimator(model), "isotonic").fit(other, y)
    found = run(cal.to_onnx(classifier), **feeds(frame))
    np.testing.assert_allclose(found["probabilities"], classifier.predict_proba(frame), atol=1e-5)


def test_columns_of_text_alone_are_one_input_of_text():
    frame, y = everyday_frame()
    frame = frame[["region", "kind"]].astype(object)
    classifier = cal.CalibratedClassifier(make_pipeline(WORDS, LogisticRegression()), "platt")
    classifier.fit(frame, y)
    found = run(cal.to_onnx(classifier), X=frame.to_numpy())
    np.testing.assert_allclose(found["probabilities"], classifier.predict_proba(frame), atol=1e-5)


def test_whole_numbers_with_gaps_are_numbers():
    frame, y = everyday_frame()
    frame["age"] = frame.age.astype("Int64").where(frame.visits > 1)
    columns = make_column_transformer((SimpleImputer(), ["age", "income"]))
    model = make_pipeline(columns, LogisticRegression())
    classifier = cal.CalibratedClassifier(model, "platt").fit(frame[["age", "income"]], y)
    numbers = frame[["age", "income"]].astype(np.float32)
    rows = {name: numbers[[name]].to_numpy() for name in numbers}
    found = run(cal.to_onnx(classifier), **rows)
    np.testing.assert_allclose(found["probabilities"], classifier.predict_proba(numbers), atol=1e-5)


@pytest.mark.parametrize("name", ["label", "probabilities"])
def test_a_column_may_not_have_the_name_of_an_output(name):
    frame, y = everyday_frame()
    frame = frame.rename(columns={"age": name})
    model = make_pipeline(make_column_transformer((WORDS, ["region"])), LogisticRegression())
    classifier = cal.CalibratedClassifier(model, "platt").fit(frame, y)
    with pytest.raises(cal.errors.InputError, match=f"may be called '{name}'.*Rename"):
        cal.to_onnx(classifier)


def test_compose_onnx_takes_each_member_of_an_ensemble():
    import skl2onnx

    classifier = fitted(GaussianNB(), ensemble=True)
    X = sample(2)[0]
    parts = [
        run(cal.compose_onnx(skl2onnx.to_onnx(member.estimator, X[:1]), member), X=NEW)
        for member in classifier.members_
    ]
    mean = np.mean([part["probabilities"] for part in parts], axis=0)
    np.testing.assert_allclose(mean, classifier.predict_proba(NEW), atol=1e-5)


def refused():
    X, y = sample(2)
    net = GaussianNB().fit(X, y)
    rows, many = sample(4)
    splits = [(np.flatnonzero(many != 3), np.arange(100)), (np.arange(100, 400), np.arange(100))]
    lacking = cal.CalibratedClassifier(GaussianNB(), "platt", cv=splits, ensemble=True)
    return {
        "a function": (
            fitted(lambda rows: net.predict_proba(rows)[:, 1], cv="prefit"),
            "those of function",
        ),
        "scores by a function": (
            fitted(net, cv="prefit", response_method=lambda m, rows: m.predict_proba(rows)),
            "those of function",
        ),
        "a local calibrator": (
            fitted(GaussianNB(), cal.SimilarityBinning(gate=False, k=5)),
            "no function of the score alone",
        ),
        "the model's decisions": (
            fitted(GaussianNB(), decision="model"),
            "decision='calibrated'",
        ),
        "margins for all classes": (
            fitted(LinearSVC(), cal.VectorScaling()),
            "calibrator of all classes' scores",
        ),
        "a fold that lacks a class": (lacking.fit(rows, many), "all 4 classes"),
    }


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_written_is_refused_with_the_reason():
    for classifier, words in refused().values():
        with pytest.raises(cal.errors.InputError, match=words):
            cal.to_onnx(classifier)


def test_logits_are_not_the_input_of_a_whole_model():
    with pytest.raises(cal.errors.ParameterError, match="input must be 'score'"):
        cal.to_onnx(fitted(GaussianNB()), input="logit")
