"""Trees on columns as ONNX and as Python: made by hand, so that no LightGBM is needed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.data.attributes import Attribute, Schema
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Identity
from calibrant.methods.features.rule import TreeRounds
from saved import fixed_trees

COLOURS = ["blue", "green", "red", "white", "pink", None]


def some_rows(n: int) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    age = np.where(rng.random(n) < 0.2, np.nan, rng.normal(0.5, 1.0, n))
    colour = np.array(COLOURS, dtype=object)[rng.integers(0, len(COLOURS), n)]
    return rng.random(n), pd.DataFrame({"age": age, "colour": colour})


def fitted(labels: tuple = ("no", "yes")) -> Fitted:
    return Fitted(fixed_trees(), labels, "yes", "FeatureCalibrator")


def run_onnx(model, scores, X):
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    words = X[["colour"]].fillna("").to_numpy(dtype=object)
    fed = {"score": scores, "numbers": X[["age"]].to_numpy(), "categories": words}
    return session.run(None, {one.name: fed[one.name] for one in session.get_inputs()})[0]


def test_onnx_gives_the_same():
    onnx = pytest.importorskip("onnx")
    scores, X = some_rows(2000)
    model = cal.to_onnx(fitted())
    onnx.checker.check_model(model, full_check=True)
    got = run_onnx(model, scores, X)
    assert np.abs(got - fitted().calibrate(scores, features=X)).max() < 1e-12
    facts = {one.key: one.value for one in model.metadata_props}
    assert facts["calibrant.numbers"] == '["age"]'
    assert facts["calibrant.categories"] == '["colour"]'
    assert set(json.loads(facts["calibrant.words"])[0]) <= set(COLOURS)
    assert np.isnan(run_onnx(model, np.full(1, np.nan), X[:1])).all()
    with pytest.raises(ParameterError, match="in double only"):
        cal.to_onnx(fitted(), float=32)


@pytest.mark.parametrize("numbers", [(0, 1, 2), (0.0, 1.0, 2.0), (-7, 30, 2**40)])
def test_onnx_takes_whole_numbers_that_are_categories_without_a_point(numbers):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    s, code = rng.random(3000), rng.integers(0, 3, 3000)
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(-(np.log(s / (1 - s)) + 2.0 * code - 2.0)))
    shop = pd.Categorical(np.array(numbers)[code])
    X = pd.DataFrame({"shop": shop})
    fitted = cal.FeatureCalibrator(gate=False, rounds=1).fit(s, y, features=X)
    words = np.array([str(int(n)) for n in numbers], dtype=object)[code]
    session = ort.InferenceSession(cal.to_onnx(fitted).SerializeToString())
    got = session.run(None, {"score": s, "categories": words[:, None]})[0]
    assert np.abs(got - fitted.calibrate(s, features=X)).max() < 1e-12


def with_categories(categories: tuple) -> Fitted:
    """The trees by hand, with other categories in the place of the colours."""
    rule = fixed_trees()
    schema = Schema((Attribute("age"), Attribute("colour", categories)), named=True)
    trees = replace(rule.trees, sets=((0,), (1,)))
    made = TreeRounds(rule.start, schema, trees, rule.sizes, rule.factors)
    return Fitted(made, (0, 1), 1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (False, ("False", "false", "FALSE", "0", "0.0")),
        (True, ("True", "true", "TRUE", "1", "1.0")),
    ],
)
@pytest.mark.parametrize("categories", [(False, True), (0, 1), (0.0, 1.0)])
def test_onnx_takes_truth_values_in_all_usual_spellings(categories, value, words):
    one = with_categories(categories)
    expected = one.calibrate([0.4], features=pd.DataFrame({"age": [0.0], "colour": [value]}))
    unknown = one.calibrate([0.4], features=pd.DataFrame({"age": [0.0], "colour": [None]}))
    assert expected != unknown
    model = cal.to_onnx(one)
    for word in words:
        X = pd.DataFrame({"age": [0.0], "colour": [word]})
        assert abs(run_onnx(model, np.array([0.4]), X) - expected).max() < 1e-12, word
    X = pd.DataFrame({"age": [0.0], "colour": ["tRuE"]})
    assert abs(run_onnx(model, np.array([0.4]), X) - unknown).max() < 1e-12
    facts = {one.key: one.value for one in model.metadata_props}
    assert {*words} < set(json.loads(facts["calibrant.words"])[0])
    assert facts["calibrant.other_words"] == "count as missing categories"


def test_a_word_that_is_a_category_itself_stays_one():
    one = with_categories((True, "true"))
    for value, word in ((True, "TRUE"), ("true", "true")):
        expected = one.calibrate([0.4], features=pd.DataFrame({"age": [1.0], "colour": [value]}))
        X = pd.DataFrame({"age": [1.0], "colour": [word]})
        assert abs(run_onnx(cal.to_onnx(one), np.array([0.4]), X) - expected).max() < 1e-12


def test_python_refuses_words_where_truth_values_are_known_as_calibrate_does():
    one = with_categories((False, True))
    module: dict = {}
    exec(cal.to_python(one), module)
    expected = one.calibrate([0.4], features=pd.DataFrame({"age": [1.0], "colour": [True]}))
    for value in (True, np.True_, 1, 1.0):
        p = module["calibrate"](0.4, {"age": 1.0, "colour": value})
        assert p == pytest.approx(expected[0], abs=1e-15)
    with pytest.raises(ValueError, match="'colour' must be a number or a truth value or None"):
        module["calibrate"](0.4, {"age": 1.0, "colour": "true"})
    with pytest.raises(InputError, match="must hold numbers or truth values"):
        one.calibrate([0.4], features=pd.DataFrame({"age": [1.0], "colour": ["true"]}))
    exec(cal.to_python(fitted()), module)
    with pytest.raises(ValueError, match="'colour' must be text or None, but 3 came"):
        module["calibrate"](0.4, {"age": 1.0, "colour": 3})


def test_onnx_trees_are_laid_out_as_old_runtimes_need_them():
    """ONNX Runtime before 1.30 adds up wrong leaves otherwise: no leaf on the left of a split, and
    no leaf that two ways lead to."""
    onnx = pytest.importorskip("onnx")
    model = cal.to_onnx(fitted())
    found = [node for node in model.graph.node if node.op_type == "TreeEnsemble"]
    assert found
    for node in found:
        told = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        sides = list(zip(told["nodes_trueleafs"], told["nodes_falseleafs"], strict=True))
        assert (1, 0) not in sides
        ends = [*zip(told["nodes_truenodeids"], told["nodes_trueleafs"], strict=True)]
        ends += zip(told["nodes_falsenodeids"], told["nodes_falseleafs"], strict=True)
        leaves = [place for place, leaf in ends if leaf]
        assert sorted(leaves) == list(range(len(told["leaf_targetids"])))


def test_python_gives_the_same():
    scores, X = some_rows(500)
    module: dict = {}
    text = cal.to_python(fitted(), name="risk")
    exec(text, module)
    expected = fitted().calibrate(scores, features=X)
    got = [module["risk"](s, row) for s, row in zip(scores, X.to_dict("records"), strict=True)]
    assert np.abs(np.array(got) - expected).max() < 1e-12
    assert "It looks at 'age', 'colour'." in text
    assert "import calibrant" not in text
    with pytest.raises(ValueError, match="must have 'age'"):
        module["risk"](0.5, {"colour": "red"})
    with pytest.raises(ValueError, match="finite number or None"):
        module["risk"](0.5, {"colour": "red", "age": "old"})
    with pytest.raises(ValueError, match="a score must be a finite number"):
        module["risk"](None, {"colour": "red", "age": 1})
    with pytest.raises(ParameterError, match="threshold must be None"):
        cal.to_python(fitted(), threshold=0.5)


def test_columns_without_names_are_places():
    rule = fixed_trees()
    colour = rule.schema.attributes[1].categories
    schema = Schema((Attribute("column 0"), Attribute("column 1", colour)), named=False)
    one = Fitted(TreeRounds(rule.start, schema, rule.trees, rule.sizes, rule.factors), (0, 1), 1)
    module: dict = {}
    exec(cal.to_python(one), module)
    p = one.calibrate([0.4], features=[[1.0, "red"]])
    assert module["calibrate"](0.4, [1.0, "red"]) == pytest.approx(p[0], abs=1e-15)


def test_sql_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"cannot be written as SQL. Export it as ONNX or Python"):
        cal.to_sql(fitted(), column="p")


def test_without_trees_it_is_a_map_for_every_export():
    one = Fitted(fixed_trees().of_rounds(Identity(), Schema((), True), [], []), (0, 1), 1)
    assert "CASE" in cal.to_sql(one, column="p") or "p" in cal.to_sql(one, column="p")
    module: dict = {}
    exec(cal.to_python(one), module)
    assert module["calibrate"](0.3) == 0.3


def test_categories_that_are_spelled_alike_are_refused_for_onnx():
    rule = fixed_trees()
    schema = Schema((Attribute("age"), Attribute("colour", (1, "1", "2"))), named=True)
    one = Fitted(TreeRounds(rule.start, schema, rule.trees, rule.sizes, rule.factors), (0, 1), 1)
    with pytest.raises(InputError, match="spelled alike"):
        cal.to_onnx(one)
