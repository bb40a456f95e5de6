"""Rounds of trees as a value: evaluation, columns, files. No LightGBM is needed for any of it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.data.attributes import read_attributes
from calibrant.errors import InputError
from calibrant.fitting.fitted import Fitted
from calibrant.losses import logit
from calibrant.maps import Identity
from calibrant.methods.features import rule as tree_module
from calibrant.methods.features.rule import TreeRounds, matrix_for_trees, sum_of_leaves
from calibrant.rules.base import RowInputs, rule_from_dict
from saved import fixed_trees
from twins.trees import logit_of

RULE = fixed_trees()
COLOURS = ["blue", "green", "red", "white", "pink", None]


def some_rows(n: int, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.2, np.nan, rng.normal(0.5, 1.0, n))
    colour = np.array(COLOURS, dtype=object)[rng.integers(0, len(COLOURS), n)]
    return rng.random(n), pd.DataFrame({"age": age, "colour": colour})


def fitted() -> Fitted:
    return Fitted(RULE, ("no", "yes"), "yes")


@pytest.mark.parametrize("n", [7, 6000])
def test_the_rule_is_its_twin_row_by_row(n):
    scores, X = some_rows(n)
    state = RULE.to_dict()
    assert [name for name, _ in state["attributes"]] == ["age", "colour"]
    codes = {c: float(i) for i, c in enumerate(state["attributes"][1][1])}
    p = fitted().calibrate(scores, features=X)
    z = logit(RULE.start(scores))
    rows = zip(X["age"], X["colour"], strict=True)
    for i, (age, colour) in list(enumerate(rows))[:200]:
        expected = logit_of(state, [age, codes.get(colour, np.nan)], float(z[i]))
        assert abs(p[i] - 1.0 / (1.0 + np.exp(-expected))) < 1e-15


def test_kernel_and_numpy_agree_to_the_bit():
    scores, X = some_rows(tree_module.MANY_ROWS)
    columns = RULE.schema.floats(RULE.schema.arrange(read_attributes(X)))
    matrix = matrix_for_trees(RULE.schema, len(X), enumerate(columns))
    matrix[:, -1] = logit(scores)
    few = np.concatenate([sum_of_leaves(RULE.trees.layout, m) for m in np.array_split(matrix, 3)])
    assert np.array_equal(sum_of_leaves(RULE.trees.layout, matrix), few)


def test_categories_that_no_tree_names_are_forgotten():
    colour = RULE.schema.attributes[1]
    assert colour.categories == ("blue", "green", "red")  # white is in no set
    p = fitted().calibrate([0.3] * 3, features=[[1.0, "white"], [1.0, "new"], [1.0, None]])
    assert len(set(p.tolist())) == 1


def test_frames_go_by_name_and_need_no_other_columns():
    scores, X = some_rows(50)
    expected = fitted().calibrate(scores, features=X)
    turned = X[["colour", "age"]].assign(when=pd.Timestamp("2024-01-01"), other=1)
    assert np.array_equal(fitted().calibrate(scores, features=turned), expected)
    by_place = fitted().calibrate(scores, features=X.to_numpy(dtype=object))
    assert np.array_equal(by_place, expected)
    with pytest.raises(InputError, match="'age' missing"):
        fitted().calibrate(scores, features=X[["colour"]])
    with pytest.raises(InputError, match="must have 2 columns"):
        fitted().calibrate(scores, features=np.zeros((50, 1)))
    with pytest.raises(InputError, match="age must hold numbers"):
        fitted().calibrate(scores, features=X.assign(age="old"))
    with pytest.raises(InputError, match="colour must hold words"):
        fitted().calibrate(scores, features=X.assign(colour=pd.Categorical([1] * 50)))
    with pytest.raises(InputError, match="features must be passed"):
        fitted().calibrate(scores)
    with pytest.raises(InputError, match=r"length|rows"):
        fitted().calibrate(scores[:9], features=X)


def test_without_rounds_the_map_is_the_rule():
    rule = TreeRounds.of_rounds(Identity(), RULE.schema, [], [])
    assert rule == Identity()
    state = RULE.to_dict() | {"attributes": [], "sizes": [], "factors": []}
    state["trees"] = {name: [] for name in state["trees"]}
    assert rule_from_dict(state) == RULE.start


def test_it_is_saved_as_one_json_file_and_loaded(tmp_path):
    scores, X = some_rows(200)
    path = tmp_path / "c.json"
    cal.save(fitted(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]
    found = cal.load(path)
    assert found == fitted()
    assert hash(found.rule) == hash(RULE)
    assert np.array_equal(
        found.calibrate(scores, features=X), fitted().calibrate(scores, features=X)
    )
    assert pickle.loads(pickle.dumps(RULE)) == RULE
    assert copy.deepcopy(RULE) is RULE
    with pytest.raises(ValueError, match="read-only"):
        found.rule.trees.leaves[0] = 1.0


def test_saving_over_a_pair_of_files_removes_the_arrays(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.random(40)
    rows = cal.SimilarityBinning(gate=False, k=5).fit(s, rng.random(40) < s, features=s[:, None])
    cal.save(rows, tmp_path / "c.json")
    assert len(list(tmp_path.iterdir())) == 2
    cal.save(fitted(), tmp_path / "c.json")
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_loading_needs_neither_lightgbm_nor_scikit_learn(tmp_path):
    cal.save(fitted(), tmp_path / "c.json")
    code = (
        "import sys\n"
        "for name in ('lightgbm', 'sklearn', 'numba', 'pandas'): sys.modules[name] = None\n"
        "import calibrant as cal\n"
        f"c = cal.load({str(tmp_path / 'c.json')!r})\n"
        "print(c.calibrate([0.3, 0.9], features=[[1.0, 'red'], [None, 'x']]).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = fitted().calibrate([0.3, 0.9], features=[[1.0, "red"], [None, "x"]])
    assert json.loads(out.stdout) == expected.tolist()


WRONG = {
    "a tree that leads back": ("left", [0, -1, -4, 4, -6], "lead nowhere"),
    "a leaf that is not there": ("left", [1, -1, -4, 4, -99], "lead nowhere"),
    "a column that is not there": ("column", [0, 1, 7, 1, 0], "columns that there are not"),
    "a set that is not there": ("subset", [-1, 9, -1, 1, -1], "sets that there are not"),
    "numbers split as categories": ("subset", [0, 0, -1, 1, -1], "numbers and categories"),
    "an infinite leaf": ("leaves", [1e300] * 9, "out of range"),
    "words": ("threshold", ["a"] * 5, "must hold numbers"),
    "fractions": ("column", [0.5] * 5, "must hold whole numbers"),
    "sizes": ("threshold", [1.0], "do not fit together"),
    "codes of no category": ("sets", [[0, 9], [1]], "numbers and categories"),
    "sets of another type": ("sets", 3, "sets of categories"),
    "a set that no tree names": ("sets", [[0, 2], [1], [2**30]], "no tree names"),
    "two ways to one split": ("right", [1, -2, -5, -8, -7], "must follow one other"),
    "a side that is none": ("missing_left", [0, 7, 0, 0, 0], "must hold 0 and 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_damaged_trees_are_refused(what):
    field, value, message = WRONG[what]
    document = json.loads(json.dumps(fitted().to_dict()))
    document["map"]["trees"][field] = value
    with pytest.raises(InputError, match=message):
        Fitted.from_dict(document)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sizes", [1, 2], "do not fit together"),
        ("sizes", None, "rounds are missing"),
        ("sizes", [0, 4], "do not fit together"),
        ("factors", [1.0, 1e9], "factors of rounds"),
        ("factors", [1.0], "do not fit together"),
        ("start", {"kind": "softmax"}, "must carry a format version"),
        ("trees", None, "trees are missing"),
        ("attributes", [["age", None]], "columns|categories"),
    ],
)
def test_damaged_rounds_are_refused(field, value, message):
    document = json.loads(json.dumps(fitted().to_dict()))
    document["map"][field] = value
    with pytest.raises(InputError, match=message):
        Fitted.from_dict(document)


@pytest.mark.parametrize("splits", [255, 256])
def test_trees_of_more_leaves_than_are_grown_are_refused(splits):
    document = json.loads(json.dumps(fitted().to_dict()))
    state = document["map"]
    chain = {name: [0] * splits for name in ("column", "missing_left")}
    chain |= {"threshold": [float(i) for i in range(splits)], "subset": [-1] * splits}
    chain |= {"left": [-1] * splits, "right": [*range(1, splits), -2]}
    state["trees"] = chain | {"leaves": [0.5, -0.5], "roots": [0], "sets": []}
    state |= {"sizes": [1], "factors": [1.0]}
    if splits == 256:
        with pytest.raises(InputError, match="at most 256 leaves"):
            Fitted.from_dict(document)
        return
    loaded = Fitted.from_dict(document)
    assert loaded.calibrate([0.3], features=[[999.0, "red"]])[0] < 0.5
    pytest.importorskip("onnx")
    assert cal.to_onnx(loaded).graph.node


def test_one_row_of_a_list_is_read():
    assert RULE(np.array([0.5]), RowInputs(features=[[0.0, "red"]])).shape == (1,)


@pytest.mark.parametrize("n", [4, 6000])
def test_codes_beyond_all_sets_are_in_none(n):
    matrix = np.full((n, 3), np.nan)
    matrix[:, 0] = 1.0
    few = matrix.copy()
    matrix[:, 1] = 10.0**6
    layout = RULE.trees.layout
    assert np.array_equal(sum_of_leaves(layout, matrix), sum_of_leaves(layout, few))
