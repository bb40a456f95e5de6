"""Classifier and calibrator as one ONNX model."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.export.onnx import compose_onnx
from calibrant.fitting.fitted import Fitted
from calibrant.losses import sigmoid
from calibrant.maps import Coded, Columns, Identity, Logistic, Piecewise, Segmented, Softmax
from onnx_sessions import run

X, Y = make_classification(400, 5, n_informative=4, n_redundant=0, random_state=0)
X = X.astype(np.float32)
THREE = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
LABELS = {"numbers": np.array([0, 1, 2]), "words": np.array(["high", "low", "mid"])}
STEP = Piecewise.step([0.5], [0.1, 0.8])
PLATT = Logistic(0.3, (("x", 2.0),))
TEMPERATURE = Logistic(0.0, (("z", 0.5),))


def net(*outputs, nodes=None, inputs=(("x", ["n", 2]),), opset=15, ir=8, kind=TensorProto.FLOAT):
    """A model whose outputs, by default one, are what its nodes give of x."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes or [helper.make_node("Neg", ["x"], [outputs[0][0]])],
        "net",
        [info(name, kind, shape) for name, shape in inputs],
        [info(name, *([kind] if len(rest) == 1 else []), *rest) for name, *rest in outputs],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def names(values):
    return [value.name for value in values]


# --- converters' models ---------------------------------------------------------------------------

CALIBRATORS = {
    2: {"platt": cal.Platt(), "isotonic": cal.Isotonic(), "first": cal.Isotonic(pos_label="high")},
    3: {"dirichlet": cal.Dirichlet(), "coded": cal.CodedCalibrator(cal.Isotonic())},
}
MODELS = {
    "logistic": LogisticRegression(),
    "bayes": GaussianNB(),
    "boosting": GradientBoostingClassifier(n_estimators=5),
}


def converted(model, zipmap):
    """By skl2onnx, whose own warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        skl2onnx = pytest.importorskip("skl2onnx")
        return skl2onnx.to_onnx(
            model, X[:1], options={"zipmap": zipmap}, target_opset={"": 17, "ai.onnx.ml": 3}
        )


def check(model, converted_, calibrator, y):
    """Composed, it gives what the calibrator makes of the model's probabilities."""
    p = model.predict_proba(X)
    if len(model.classes_) == 2:
        p = p[:, list(model.classes_).index(calibrator.pos_label or model.classes_[1])]
    calibrator.fit(p, y)
    both = compose_onnx(converted_, calibrator)
    assert names(both.graph.input) == names(converted_.graph.input)
    got = run(both, **{both.graph.input[0].name: X})
    label, probabilities = got.values()
    assert probabilities.dtype == np.float32
    assert list(got)[1] == "probabilities"
    # models are computed in float32: next to a step, few rows may be on its other side
    wrong = np.abs(probabilities - calibrator.predict_proba(p)).max(axis=1) > 1e-5
    assert wrong.mean() <= 0.005
    assert (label == calibrator.predict(p))[~wrong].all()


@pytest.mark.parametrize("zipmap", [True, False], ids=["zipmap", "tensor"])
@pytest.mark.parametrize("words", LABELS)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_scikit_learn(name, k, words, zipmap):
    y = LABELS[words][Y if k == 2 else THREE]
    model = MODELS[name].fit(X, y)
    onnx_model = converted(model, zipmap)
    for kind, calibrator in CALIBRATORS[k].items():
        if kind != "first" or words == "words":
            check(model, onnx_model, calibrator, y)


def boosted(package, y, zipmap):
    """A small model of XGBoost or LightGBM, and its conversion by onnxmltools."""
    library, tools = pytest.importorskip(package), pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    types = [("X", FloatTensorType([None, X.shape[1]]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if package == "xgboost":
            model = library.XGBClassifier(n_estimators=5, n_jobs=1).fit(X, y)
            return model, tools.convert_xgboost(model, initial_types=types, target_opset=15)
        model = library.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(X, y)
        return model, tools.convert_lightgbm(
            model, initial_types=types, target_opset=15, zipmap=zipmap
        )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("package", "zipmap"), [("xgboost", False), ("lightgbm", False), ("lightgbm", True)]
)
def test_boosted_trees(package, zipmap, k):
    y = Y if k == 2 else THREE
    model, onnx_model = boosted(package, y, zipmap)
    for name in {2: ("platt", "isotonic"), 3: ("dirichlet", "coded")}[k]:
        check(model, onnx_model, CALIBRATORS[k][name], y)


# --- scores of every shape ------------------------------------------------------------------------

F = Fitted(PLATT, ("no", "yes"), "yes", "Platt")
ROWS = np.array([[0.2, -0.8], [-0.5, -0.5], [0.3, 1.5]], dtype=np.float32)


@pytest.mark.parametrize(
    ("shape", "column"), [(["n"], None), (["n", 1], 0), (["n", 2], 1)], ids=["n", "n1", "n2"]
)
def test_margins(shape, column):
    rows = (
        ROWS
        if len(shape) == 2 and shape[1] == 2
        else ROWS[:, :1]
        if len(shape) == 2
        else ROWS[:, 0]
    )
    both = compose_onnx(net(("margin", shape), inputs=[("x", shape)]), F)
    got = run(both, x=rows)["probabilities"]
    score = -rows.astype(float) if column is None else -rows[:, column].astype(float)
    np.testing.assert_allclose(got, F.predict_proba(score), rtol=0, atol=1e-7)


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_column_of_pos_label_is_the_score(positive):
    fitted = Fitted(PLATT, ("no", "yes"), positive, "Platt")
    got = run(compose_onnx(net(("p", ["n", 2])), fitted), x=ROWS)["probabilities"]
    want = fitted.predict_proba(-ROWS[:, ["no", "yes"].index(positive)].astype(float))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-7)


def test_a_bare_map_takes_the_last_column():
    got = run(compose_onnx(net(("p", ["n", 2])), PLATT), x=ROWS)["probabilities"]
    np.testing.assert_allclose(got[:, 1], PLATT(-ROWS[:, 1].astype(float)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("shape", [["n"], ["n", 2]], ids=["n", "n2"])
def test_a_net_of_logits_under_a_calibrator_of_probabilities(shape):
    rows = ROWS * 50 if len(shape) == 2 else ROWS[:, 1] * 50
    both = compose_onnx(
        net(("logit", shape), inputs=[("x", shape)]), TEMPERATURE, input="logit", float=64
    )
    z = (rows[:, 0] - rows[:, 1] if len(shape) == 2 else -rows).astype(float)
    got = run(both, x=rows)["probabilities"]
    np.testing.assert_allclose(got[:, 1], sigmoid(0.5 * z), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [(TensorProto.FLOAT16, 1e-3), (TensorProto.FLOAT, 1e-7), (TensorProto.DOUBLE, 1e-15)],
)
def test_the_type_of_the_scores_stays(kind, tolerance):
    rows = ROWS.astype(helper.tensor_dtype_to_np_dtype(kind))
    got = run(compose_onnx(net(("p", ["n", 2]), kind=kind), PLATT), x=rows)["probabilities"]
    assert got.dtype == rows.dtype
    want = PLATT(-rows[:, 1].astype(float))
    np.testing.assert_allclose(got[:, 1].astype(float), want, rtol=0, atol=tolerance)


def test_doubles_inside_round_once():
    rows = np.linspace(-3, 3, 500, dtype=np.float32)
    model = net(("p", ["n"]), inputs=[("x", ["n"])])
    got = run(compose_onnx(model, PLATT, float=64), x=rows)["probabilities"]
    want = PLATT(-rows.astype(float))
    assert np.abs(got[:, 1].astype(float) - want).max() <= 2.0**-25


@pytest.mark.parametrize("opset", [7, 9, 12, 13, 18, 21])
@pytest.mark.parametrize("name", ["softmax", "coded", "pairs"])
def test_old_and_new_operators(name, opset):
    """Axes are attributes before opset 18; older models than 13 are converted."""
    code = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1.0]])
    map_ = {
        "softmax": Softmax(0.5, np.zeros(3)),
        "coded": Coded.one_vs_rest((PLATT, STEP, Identity())),
        "pairs": Coded(code, (PLATT,) * 3, "coupling"),
    }[name]
    model = net(("p", ["n", 3]), inputs=[("x", ["n", 3])], opset=opset, ir=4)
    rows = np.array([[0.2, -0.8, 0.1], [0.9, 0.3, 0.4]], dtype=np.float32)
    got = run(compose_onnx(model, map_, float=64), x=rows)["probabilities"]
    np.testing.assert_allclose(got, map_(-rows.astype(float)), rtol=0, atol=1e-7)


# --- names and outputs ----------------------------------------------------------------------------


def test_other_outputs_stay_and_names_do_not_clash():
    nodes = [
        helper.make_node("Neg", ["x"], ["margin"]),
        helper.make_node("Abs", ["x"], ["probabilities"]),
        helper.make_node("Add", ["probabilities", "margin"], ["calibrant_1/x"]),
        helper.make_node("Exp", ["calibrant_1/x"], ["extra"]),
    ]
    outputs = [(name, ["n", 2]) for name in ("margin", "probabilities", "extra")]
    both = compose_onnx(net(*outputs, nodes=nodes), F, output="margin")
    got = run(both, x=ROWS)
    assert list(got) == ["probabilities", "uncalibrated_probabilities", "extra"]
    np.testing.assert_array_equal(got["uncalibrated_probabilities"], np.abs(ROWS))
    np.testing.assert_allclose(got["extra"], np.exp(np.abs(ROWS) - ROWS), rtol=1e-6)
    np.testing.assert_allclose(
        got["probabilities"], F.predict_proba(-ROWS[:, 1].astype(float)), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("inside", ["used", "made"])
def test_names_inside_branches_are_followed(inside):
    scores, flipped = ("probabilities", "flipped") if inside == "used" else ("p", "probabilities")
    branch = helper.make_graph(
        [helper.make_node("Neg", [scores], [flipped])],
        "branch",
        [],
        [helper.make_tensor_value_info(flipped, TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Neg", ["x"], [scores]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "most"], ["never"]),
        helper.make_node("If", ["never"], ["extra"], then_branch=branch, else_branch=branch),
    ]
    outputs = [(scores, ["n", 2]), ("extra", ["n", 2])]
    both = compose_onnx(net(*outputs, nodes=nodes), F, output=scores)
    got = run(both, x=ROWS)
    np.testing.assert_array_equal(got["extra"], ROWS)


def test_a_second_calibrator_on_top_of_the_first():
    shift = Fitted(Logistic(1.0, (("z", 1.0),)), ("no", "yes"), "yes", "shift")
    both = compose_onnx(compose_onnx(net(("p", ["n", 2])), F), shift)
    got = run(both, x=ROWS)["probabilities"]
    want = shift.calibrate(F.calibrate(-ROWS[:, 1].astype(float)))
    np.testing.assert_allclose(got[:, 1], want, rtol=0, atol=2e-7)
    facts = {entry.key: entry.value for entry in both.metadata_props}
    assert facts["calibrant.method"] == "shift"


def test_what_nobody_needs_any_more_is_gone():
    model = LogisticRegression().fit(X, Y)
    calibrator = cal.Platt().fit(model.predict_proba(X)[:, 1], Y)
    both = compose_onnx(converted(model, zipmap=True), calibrator)
    assert not {"ZipMap"} & {node.op_type for node in both.graph.node}


def test_labels_that_do_not_exclude_each_other():
    nodes = [
        helper.make_node("Neg", ["x"], ["p"]),
        helper.make_node("Cast", ["x"], ["label"], to=TensorProto.INT64),
    ]
    model = net(("p", ["n", 2]), ("label", TensorProto.INT64, ["n", 2]), nodes=nodes)
    fitted = Fitted(Columns((STEP, PLATT)), (0, 1), None)
    got = run(compose_onnx(model, fitted), x=ROWS)
    np.testing.assert_array_equal(got["label"], fitted.predict(-ROWS.astype(float)))


@pytest.mark.parametrize("classes", [("a", "b"), (3, 5), (False, True), (0.5, 1.5)])
def test_labels_are_those_of_the_calibrator(classes):
    nodes = [
        helper.make_node("Neg", ["x"], ["p"]),
        helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0),
    ]
    model = net(("p", ["n", 2]), ("label", TensorProto.INT64, ["n"]), nodes=nodes)
    fitted = Fitted(PLATT, classes, classes[0])
    got = run(compose_onnx(model, fitted), x=ROWS)
    assert list(got) == ["label", "probabilities"]
    want = fitted.predict(-ROWS[:, 0].astype(float))
    assert got["label"].tolist() == want.tolist()


def test_segments_are_an_input_of_the_composed_model():
    fitted = Fitted(Segmented(PLATT, ("de",), (STEP,)), (0, 1), 1)
    both = compose_onnx(net(("p", ["n", 2])), fitted)
    segment = np.array(["de", "fr", "de"], dtype=object)
    got = run(both, x=ROWS, segment=segment)["probabilities"]
    want = fitted.predict_proba(-ROWS[:, 1].astype(float), segments=segment)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-7)


# --- ways in, and refusals ------------------------------------------------------------------------


def test_a_path_and_bytes_are_models_too(tmp_path):
    model = net(("p", ["n", 2]))
    onnx.save(model, tmp_path / "model.onnx")
    want = compose_onnx(model, F)
    assert compose_onnx(tmp_path / "model.onnx", F) == want
    assert compose_onnx(str(tmp_path / "model.onnx"), F) == want
    assert compose_onnx(model.SerializeToString(), F) == want
    assert model == net(("p", ["n", 2]))


@pytest.mark.parametrize("ending", ["json", "txt", "onnxtxt", "onnx"])
def test_a_file_that_is_no_model_is_refused_whatever_its_name(tmp_path, ending):
    (tmp_path / f"c.{ending}").write_text('{"format": "calibrant"}')
    with pytest.raises(InputError, match="must be an ONNX model"):
        compose_onnx(tmp_path / f"c.{ending}", F)


TWO = [helper.make_node(op, ["x"], [name]) for op, name in (("Neg", "a"), ("Abs", "b"))]
REFUSED = {
    "no model": (lambda: b"\x08", {}, "must be an ONNX model"),
    "an estimator": (LogisticRegression, {}, "Convert it first"),
    "two scores": (lambda: net(("a", ["n", 2]), ("b", ["n", 2]), nodes=TWO), {}, "several came"),
    "no scores": (lambda: net(("a", ["n", 2, 2])), {}, "none came"),
    "another name": (lambda: net(("a", ["n", 2])), {"output": "z"}, "but 'z' came"),
    "three columns": (lambda: net(("a", ["n", 3])), {}, "takes 1 or 2 column"),
    "unknown columns": (lambda: net(("a", ["n", "k"]), inputs=[("x", ["n", "k"])]), {}, "known"),
    "a bad name": (
        lambda: net(
            ("a", ["n", 2]),
            inputs=[("probabilities", ["n", 2])],
            nodes=[helper.make_node("Neg", ["probabilities"], ["a"])],
        ),
        {},
        "no input called",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_cannot_be_composed(name):
    make, options, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        compose_onnx(make(), F, **options)


def test_the_outputs_are_listed_where_none_can_be_chosen():
    with pytest.raises(InputError, match=r"'a' \(float32 \['\?', 2\]\), 'b' \(float32"):
        compose_onnx(net(("a", ["n", 2]), ("b", ["n", 2]), nodes=TWO), F)


def test_calibrators_that_do_not_fit_the_model():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InputError, match="must be those of the model"):
        compose_onnx(converted(model, zipmap=True), F)
    with pytest.raises(InputError, match="a bare map knows no classes"):
        compose_onnx(converted(model, zipmap=False), PLATT)
    with pytest.raises(InputError, match="takes 3 column"):
        compose_onnx(net(("p", ["n", 2])), Softmax(1.0, np.zeros(3)))
    with pytest.raises(InputError, match="all strings or all numbers"):
        compose_onnx(converted(model, zipmap=False), Fitted(PLATT, (1, "1"), 1))
    nodes, inputs = [helper.make_node("Neg", ["segment"], ["p"])], [("segment", ["n", 2])]
    taken = net(("p", ["n", 2]), inputs=inputs, nodes=nodes)
    with pytest.raises(InputError, match="'segment'"):
        compose_onnx(taken, Segmented(PLATT, ("de",), (STEP,)))
    with pytest.raises(ParameterError, match="float must be"):
        compose_onnx(net(("p", ["n", 2])), F, float=16)
