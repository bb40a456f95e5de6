"""Saving and loading: whole or not at all, versioned, and never executed."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import stat
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.maps import Coded, Identity, Piecewise, Softmax


@pytest.fixture
def fitted():
    return cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])


def test_labels_keep_their_json_type(tmp_path):
    for labels in (["0", "1"], [0, 1], [False, True], [0.0, 1.0], ["é", "日本"]):
        c = cal.Isotonic().fit([0.1, 0.9], labels)
        cal.save(c, tmp_path / "c.json")
        loaded = cal.load(tmp_path / "c.json")
        assert list(loaded.classes) == labels
        assert [type(v) for v in loaded.classes] == [type(v) for v in labels]
        assert type(loaded.pos_label) is type(labels[1])
        assert loaded.predict([0.95]).tolist() == [labels[1]]


def test_other_labels_are_refused_on_save(tmp_path):
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    c = cal.Isotonic().fit([0.1, 0.9], days)
    with pytest.raises(cal.errors.InputError, match="strings, numbers or booleans"):
        cal.save(c, tmp_path / "c.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(cal.errors.InputError, match="only a fitted calibrator"):
        cal.save("calibrator", tmp_path / "c.json")


def test_unfitted_calibrators_cannot_be_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        cal.save(cal.Platt(), tmp_path / "c.json")


def test_the_file_is_small_readable_json(fitted, tmp_path):
    path = tmp_path / "c.json"
    cal.save(fitted, path)
    document = json.loads(path.read_text())
    assert document["format"] == "calibrant"
    assert document["version"] == 2
    assert document["method"] == "Platt"
    params = {"classes": None, "direction": "rising", "pos_label": None, "scale": "auto"}
    params |= {"weights": "importance"}
    assert document["params"] == params
    assert document["map"]["kind"] == "logistic"
    assert document["provenance"]["weight"] == 4.0
    assert document["provenance"]["calibrant"] == cal.__version__
    cal.save(fitted, path)
    cal.save(cal.load(path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_an_interrupted_write_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text("precious")

    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        cal.save(fitted, path)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]


def damage(document, *keys, value):
    changed = json.loads(json.dumps(document))
    target = changed
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    return json.dumps(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: "", "not a calibrator file"),
        (lambda d: "{", "not a calibrator file"),
        (lambda d: "[]", "not a calibrant calibrator"),
        (lambda d: '{"a": 1}', "not a calibrant calibrator"),
        (lambda d: "[" * 100_000, "not a calibrator file"),
        (lambda d: damage(d, "format", value="other"), "not a calibrant calibrator"),
        (lambda d: damage(d, "version", value=3), "version 3.*Upgrade"),
        (lambda d: damage(d, "version", value="1"), "format version"),
        (lambda d: damage(d, "classes", value=None), "'classes' is missing"),
        (lambda d: damage(d, "classes", value=[0, 1, 2]), "two labels"),
        (lambda d: damage(d, "classes", value=[0, {}]), "labels must be"),
        (lambda d: damage(d, "pos_label", value=True), "pos_label among them"),
        (lambda d: damage(d, "params", value=[]), "'params'"),
        (lambda d: damage(d, "map", value={}), "kind"),
        (lambda d: damage(d, "map", "kind", value="pickle"), "unknown kind"),
        (lambda d: damage(d, "map", "version", value=9), "format version 9"),
        (lambda d: damage(d, "map", "intercept", value="0"), "must be a number"),
        (lambda d: damage(d, "map", "intercept", value="?").replace('"?"', "1e999"), "finite"),
        (lambda d: json.dumps(d).replace('"intercept": ', '"intercept": NaN, "x": '), "finite"),
    ],
)
def test_foreign_newer_and_corrupt_files_are_refused(fitted, tmp_path, change, message):
    path = tmp_path / "c.json"
    path.write_text(change(fitted.to_fitted().to_dict()))
    with pytest.raises(cal.errors.InputError, match=message):
        cal.load(path)


def test_binary_and_missing_files(tmp_path, monkeypatch):
    (tmp_path / "b").write_bytes(b"\x80\x04\x95pickle\xff")
    with pytest.raises(cal.errors.InputError, match="not a calibrator file"):
        cal.load(tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        cal.load(tmp_path / "none")
    monkeypatch.setattr("calibrant.data.documents.LARGEST_FILE", 3)
    with pytest.raises(cal.errors.InputError, match="larger than"):
        cal.load(tmp_path / "b")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3),
    max_leaves=8,
)


@given(
    junk=JSON,
    where=st.sampled_from(
        [
            ("map",),
            ("map", "kind"),
            ("map", "version"),
            ("map", "x"),
            ("map", "left"),
            ("map", "input"),
            ("map", "x", 0),
            ("classes",),
            ("pos_label",),
            ("version",),
            ("method",),
            ("params",),
            ("provenance",),
        ]
    ),
)
def test_fuzzed_files_load_or_are_refused(junk, where, tmp_path_factory):
    document = cal.Isotonic().fit([0.1, 0.2, 0.8], [0, 1, 1]).to_fitted().to_dict()
    path = tmp_path_factory.mktemp("fuzz") / "c.json"
    path.write_text(damage(document, *where, value=junk))
    try:
        loaded = cal.load(path)
    except cal.errors.InputError:
        return
    p = loaded.calibrate([0.0, 0.5, 1.0])
    assert np.isfinite(p).all()
    assert all(math.isfinite(v) and 0 <= v <= 1 for v in p)


def test_vector_maps_give_distributions():
    coded = cal.Fitted(Coded.one_vs_rest((Identity(),) * 3), ("a", "b", "c"), None)
    assert np.allclose(coded.predict_proba([[0.2, 0.2, 0.4]]), [[0.25, 0.25, 0.5]])
    assert coded.predict([[0.2, 0.2, 0.4]]).tolist() == ["c"]
    with pytest.raises(cal.errors.InputError, match="predict_proba"):
        coded.calibrate([0.1])
    again = cal.Fitted.from_dict(json.loads(json.dumps(coded.to_dict())))
    assert again == coded
    soft = cal.Fitted(Softmax(1.0, [0.0, 0.0]), (0, 1), None)
    assert hash(soft) != hash(coded)


def test_impossible_fitted_values():
    with pytest.raises(cal.errors.InputError, match="must be a Map"):
        cal.Fitted("map", (0, 1), 1)
    with pytest.raises(cal.errors.InputError, match="two labels"):
        cal.Fitted(Piecewise.constant(0.5), (0, 1), "1")


def test_nothing_in_a_fitted_value_can_be_changed(fitted):
    facts = {"measures": {"after": {"auc": 0.5}}, "files": ["a.csv", {"b": 1}]}
    value = replace(fitted.to_fitted(), provenance=facts)
    facts["measures"]["after"]["auc"] = 1.0  # whoever made it keeps his own
    inner = value.provenance["measures"]["after"]
    for mapping in (value.params, value.provenance, inner, value.provenance["files"][1]):
        with pytest.raises(TypeError):
            mapping["note"] = 1
    assert inner["auc"] == 0.5
    assert value.provenance["files"][0] == "a.csv"
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert twin == value
        assert hash(twin) == hash(value)
        with pytest.raises(TypeError):
            twin.params["scale"] = "raw"
        with pytest.raises(TypeError):
            twin.provenance["measures"]["after"]["auc"] = 1.0
    document = value.to_dict()
    document["provenance"]["measures"]["after"]["auc"] = 1.0  # a copy for the reader
    assert inner["auc"] == 0.5
    assert cal.Fitted.from_dict(document) != value
    assert cal.Fitted.from_dict(value.to_dict()) == value


def test_equal_values_have_equal_hashes():
    def make(provenance):
        return cal.Fitted(Identity(), (0, 1), 1, provenance=provenance)

    one, other = make({"a": {"b": [1, 2]}, "c": 0.0}), make({"c": -0.0, "a": {"b": (1, 2)}})
    assert one == other
    assert hash(one) == hash(other)
    assert make({"a": 1}) != make({"a": True})
    assert make({"a": [1]}) != make({"a": [1, 1]})
    assert make({"a": 1}) != make({"b": 1})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"a": object()}, r"provenance\['a'\] must hold text, numbers.* of type object"),
        ({"a": {"b": {1, 2}}}, r"provenance\['a'\]\['b'\]"),
        ({1: 2}, "keys of provenance must be text, but 1 came"),
        ({"a": 2**1100}, "must hold text, numbers"),
        ({"a": np.zeros(3)}, "of type ndarray"),
        ("facts", "provenance must be facts by name"),
    ],
)
def test_facts_are_what_json_can_hold(facts, message):
    with pytest.raises(cal.errors.InputError, match=message):
        cal.Fitted(Identity(), (0, 1), 1, provenance=facts)


def test_facts_are_made_plain():
    facts = {
        "number": np.float64(1.5),
        "count": np.int64(3),
        "far": -math.inf,
        "unknown": math.nan,
        "day": date(2024, 2, 29),
        "name": "b\udcffd.csv",
        "none": None,
    }
    value = cal.Fitted(Identity(), (0, 1), 1, provenance=facts)
    assert dict(value.provenance) == {
        "number": 1.5,
        "count": 3,
        "far": "-inf",
        "unknown": "nan",
        "day": "2024-02-29",
        "name": "b\\udcffd.csv",
        "none": None,
    }
    deep = {}
    for _ in range(50):
        deep = {"deep": deep}
    with pytest.raises(cal.errors.InputError, match="at most 20 deep"):
        cal.Fitted(Identity(), (0, 1), 1, provenance=deep)


def test_a_class_and_a_method_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(cal.errors.InputError, match="the class Isotonic came"):
        cal.save(cal.Isotonic, tmp_path / "c.json")
    with pytest.raises(cal.errors.InputError, match="method must be text"):
        cal.Fitted(Piecewise.constant(0.5), (0, 1), 1, None)
    half = cal.Fitted(Piecewise.constant(0.5), (0, 1), 1, "\ud800")
    cal.save(half, tmp_path / "c.json")
    assert cal.load(tmp_path / "c.json") == half


@pytest.mark.parametrize("kind", ["one score", "several classes", "rows"])
def test_a_loaded_calibrator_is_told_in_five_lines(tmp_path, kind):
    rng = np.random.default_rng(0)
    s = rng.random(60)
    y = np.array(["<no>", "yes"])[(rng.random(60) < s).astype(int)]
    made = {
        "one score": lambda: cal.Isotonic().fit(s, y),
        "several classes": lambda: cal.VectorScaling().fit(rng.random((60, 9)), np.arange(60) % 9),
        "rows": lambda: cal.SimilarityBinning(gate=False).fit(s, y, features=rng.random((60, 2))),
    }[kind]()
    cal.save(made, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert 3 <= len(repr(loaded).splitlines()) <= 5
    assert max(map(len, repr(loaded).splitlines())) <= 165
    assert "60 rows" in repr(loaded)
    page = loaded._repr_html_()
    assert page.startswith("<div><b>")
    assert "<no>" not in page
