"""The papers' datasets: from a folder, from OpenML (by a stand-in), or named as missing."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def data(root):
    return experiment(root, "data")


@pytest.fixture(scope="module")
def openml(root):
    return experiment(root, "data_openml")


# --- from a folder --------------------------------------------------------------------------------

ROWS = pd.DataFrame(
    {
        "number": [0.5, None, 2.0, 3.0, 4.5, 5.0],
        "code": ["1", "2", "", "1", "2", "1"],
        "id": [10, 11, 12, 13, 14, 15],
        "label": ["b", "a", "c", "b", "c", "b"],
        "split": ["train", "train", "test", "test", "dropped", "train"],
    }
)
TASKS = [
    {"name": "toy_b", "positive": ["b"]},
    {"name": "toy_known", "positive": ["c"], "only_split": ["train", "test"]},
    {"name": "toy_train", "positive": ["b"], "only_split": "train"},
    {"name": "toy_multi", "rule": "multiclass: predict label"},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of six rows, counts that are no features' table, arrays, and a file that is away."""
    ROWS.to_csv(tmp_path / "toy.csv.gz", index=False)
    pd.DataFrame({"x": [1, 2, 3], "label": [0, 1, 2]}).to_csv(tmp_path / "count.csv.gz")
    np.savez(tmp_path / "net.npz", logits=np.eye(2))
    toy = {
        "name": "toy",
        "file": "toy.csv.gz",
        "rows": 6,
        "n_features": 2,
        "nominal": ["code"],
        "non_feature_columns": ["id"],
        "label_counts": {"a": 1, "b": 3, "c": 2},
        "tasks": TASKS,
    }
    count = {
        **toy,
        "name": "count",
        "file": "count.csv.gz",
        "rows": 3,
        "nominal": "all",
        "non_feature_columns": [],
        "label_counts": None,
        "tasks": [{"name": "many", "gt": 0}],
    }
    sources = {"name": "sonar", "file": "sonar.csv.gz", "source": "a repository", "sha256": "0"}
    away = {**toy, **sources, "tasks": [{"name": "sonar", "positive": ["Mine"]}]}
    net = {"name": "net", "file": "net.npz", "rows": 2, "n_features": None, "tasks": []}
    every = [toy, count, away, net]
    for entry in every:
        path = tmp_path / entry["file"]
        if path.is_file():
            entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    text = json.dumps({"datasets": every})
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    return tmp_path


def test_a_task_is_read_in_the_order_of_the_file(data, folder):
    X, y = data.read(data.task("toy_b"), None)
    assert list(X.columns) == ["number", "code"]
    np.testing.assert_array_equal(X["number"], [0.5, np.nan, 2.0, 3.0, 4.5, 5.0])
    assert X["code"].tolist() == ["1", "2", "(missing)", "1", "2", "1"]
    assert y.tolist() == [1, 0, 0, 1, 0, 1]


def test_a_task_may_take_a_part_of_the_split(data, folder):
    X, y = data.read(data.task("toy_known"), None)
    assert y.tolist() == [0, 0, 1, 0, 0]
    assert data.read_split("toy_known").tolist() == ["train", "train", "test", "test", "train"]
    assert data.read(data.task("toy_train"), None)[1].tolist() == [1, 0, 1]
    assert data.read_split("toy").tolist() == ROWS["split"].tolist()
    assert len(X) == 5
    with pytest.raises(ValueError, match="count has no split"):
        data.read_split("count")


def test_some_rows_are_drawn_by_seed(data, folder):
    task = data.task("toy_b")
    first, again, other = (data.read(task, 3, seed)[0] for seed in (0, 0, 1))
    assert len(first) == 3
    assert first.equals(again)
    assert not first.equals(other)


def test_a_label_above_a_number_is_positive(data, folder):
    assert data.read(data.task("many"), None)[1].tolist() == [0, 1, 1]


def test_a_dataset_by_its_own_name(data, folder):
    assert data.task("toy").name == "toy_b"
    assert data.task("count").name == "many"
    with pytest.raises(ValueError, match="toy_multi has no two classes: read it by read_classes"):
        data.task("toy_multi")


@pytest.mark.parametrize("name", ["toy", "toy_multi", "toy_known"])
def test_every_label_is_a_class(data, folder, name):
    X, y = data.read_classes(name)
    assert y.tolist() == [1, 0, 2, 1, 2, 1]
    assert X.equals(data.read(data.task("toy_b"), None)[0])
    assert len(data.read_classes(name, most=4)[1]) == 4


def test_arrays_are_read(data, folder):
    found = data.read_arrays("net")
    np.testing.assert_array_equal(found["logits"], np.eye(2))
    with pytest.raises(data.DataMissingError, match=r"put words\.npz.*OpenML|OpenML.*words\.npz"):
        data.read_arrays("words")


def test_a_file_that_is_away_is_named_and_the_others_are_read(data, folder):
    assert [task.name for task in data.tasks(4)] == ["sonar", "toy_b", "toy_known"]
    with pytest.raises(data.DataMissingError) as caught:
        data.read(data.task("sonar"), None)
    text = str(caught.value)
    assert f"put sonar.csv.gz into {folder}" in text
    assert "It came from a repository." in text
    assert "OpenML, where it is 'sonar' (40)" in text


def test_a_damaged_file_is_refused(data, folder):
    path = folder / "toy.csv.gz"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ValueError, match=rf"checksum of {path} must be \w+ .* Replace it"):
        data.read(data.task("toy_b"), None)


def test_a_checksum_is_computed_once(data, folder, monkeypatch):
    asked = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: asked.append(1) or digest(*a))
    for _ in range(3):
        data.read(data.task("toy_b"), None)
    assert len(asked) == 1


def test_a_folder_without_manifest_is_no_folder(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    for ask in (lambda: data.tasks(1), data.data_folder, lambda: data.task("adult")):
        with pytest.raises(data.DataMissingError, match=r"no manifest\.json.*CALIBRANT_DATA"):
            ask()
    for ask in (data.task, data.read_classes, data.read_split, data.read_arrays):
        with pytest.raises(data.DataMissingError, match=r"^spect is missing: .*CALIBRANT_DATA"):
            ask("spect")


def test_a_variable_set_to_nothing_is_not_set(data, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "ROOT", tmp_path / "project")
    monkeypatch.setenv("CALIBRANT_DATA", "")
    assert data.task("spect").entry["openml"][1] == "SPECT"


# --- from OpenML ----------------------------------------------------------------------------------


def labor(good=37, rows=57):
    """What scikit-learn gives for as_frame: categories and numbers, both with missing values."""
    kind = pd.Categorical([None, *["none", "full"] * rows][:rows])
    wage = np.where(np.arange(rows) == 3, np.nan, np.linspace(2, 7, rows))
    frame = pd.DataFrame({"wage": wage, "pension": kind})
    target = pd.Series(pd.Categorical(np.where(np.arange(rows) < good, "good", "bad")))
    return SimpleNamespace(data=frame, target=target)


@pytest.fixture
def online(data, tmp_path, monkeypatch):
    """No folder anywhere; answers of OpenML are put into the dict that this yields."""
    answers, asked = {}, []

    def stand_in(*, data_id, as_frame, parser):
        asked.append(data_id)
        assert as_frame
        if isinstance(answers[data_id], Exception):
            raise answers[data_id]
        return answers[data_id]

    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setattr(data, "ROOT", tmp_path / "project")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", stand_in)
    data._fetched.cache_clear()
    data._IN_VAIN.clear()
    yield SimpleNamespace(answers=answers, asked=asked)
    data._fetched.cache_clear()
    data._IN_VAIN.clear()


def test_rows_come_from_openml(data, online):
    online.answers[4] = labor()
    X, y = data.read(data.task("labor"), None)
    assert y.tolist() == [1] * 37 + [0] * 20
    assert X["pension"].tolist()[:3] == ["(missing)", "none", "full"]
    assert X["wage"].isna().sum() == 1
    some, labels = data.read(data.task("labor"), 10)
    assert len(some) == len(labels) == 10
    assert data.read_classes("labor")[1].tolist() == [1] * 37 + [0] * 20
    assert online.asked == [4]


def test_without_a_network_the_dataset_is_named(data, online):
    online.answers[4] = OSError("no route")
    for _ in range(2):
        with pytest.raises(data.DataMissingError) as caught:
            data.read(data.task("labor"), None)
    text = str(caught.value)
    assert "'labor' (4), but that failed (OSError: no route)" in text
    assert "labor.csv.gz" in text
    assert online.asked == [4]  # not again for each cell of a table


@pytest.mark.parametrize(
    ("came", "said"),
    [
        (labor(rows=56), "labor has 56 rows there, but 57 are meant"),
        (labor(good=20), "labor has 20 rows of good there, but 37 are meant"),
    ],
)
def test_another_version_of_a_dataset_is_refused(data, online, came, said):
    online.answers[4] = came
    with pytest.raises(data.DataMissingError, match=said):
        data.read(data.task("labor"), None)


def test_openml_knows_no_splits(data, online):
    online.answers[4] = labor()
    with pytest.raises(data.DataMissingError, match="OpenML does not say how labor was split"):
        data.read_split("labor")
    with pytest.raises(data.DataMissingError, match=r"put splice\.csv\.gz into") as caught:
        data.task("splice_libsvm")
    assert "fetched" not in str(caught.value)  # it has been tried


def test_tasks_are_listed_without_asking_openml(data, online):
    names = [task.name for task in data.tasks(1)]
    assert {"adult", "letter_p1", "letter_p2", "covtype_class1", "diabetes"} <= set(names)
    assert not {"ijcnn1", "australian", "letter_unbalanced", "diabetes_libsvm"} & set(names)
    assert len(names) == len(set(names))
    assert all(task.rows >= 10_000 for task in data.tasks(10_000))
    assert data.task("diabetes_libsvm").rule["positive"] == ["tested_negative"]
    assert online.asked == []


def test_what_openml_does_not_have_is_named(data, online, tmp_path):
    for name in ("ijcnn1", "tic"):
        with pytest.raises(data.DataMissingError, match=rf"put \w+\.csv\.gz into {tmp_path}"):
            data.task(name)
    with pytest.raises(data.DataMissingError, match=r"put 20newsgroups-bydate\.npz"):
        data.read_arrays("20newsgroups-bydate")


# --- the names ------------------------------------------------------------------------------------


def test_private_data_are_called_so(data, online):
    with pytest.raises(data.DataMissingError, match=r"cap is not at hand: .* private"):
        data.task("cap")
    with pytest.raises(ValueError, match=r"adlt is no task of the papers\. Is it adult\?"):
        data.task("adlt")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("adult", "positive is >50K, income above $50,000 (11,687 of 48,842 rows), as Naeini 2015"),
        ("letter_p2", "positive is A to M (9,940 of 20,000 rows), as Niculescu-Mizil 2005 says"),
        ("car34", "positive is good or vgood (134 of 1,728 rows); no paper says so"),
        ("scene", "positive is a label above 1, more than one scene (177 of 2,407 rows); no paper"),
        ("pendigits_multi", "each label is a class (10,992 rows), as Zadrozny 2002 says"),
    ],
)
def test_definitions_need_no_data(data, online, name, said):
    assert data.definition(name).startswith(f"{name}: {said}")


def test_definition_of_other_peoples_tasks(data, folder):
    assert data.definition(data.task("toy_b")).startswith("toy_b: positive is b; no paper says so")
    assert data.definition(data.task("many")).startswith("many: positive is above 0; no paper")
    with pytest.raises(ValueError, match="toy_b is no task of the papers"):
        data.definition("toy_b")


def test_the_table_of_names_is_that_of_the_manifest(data, openml, shared):
    """What is positive is written down twice: for those who have the files, and who do not."""
    text = (shared / "data" / "manifest.json").read_text(encoding="utf-8")
    seen = {}
    for entry in json.loads(text)["datasets"]:
        for rule in entry["tasks"] if data._is_table(entry) else ():
            seen[rule["name"]] = one = openml.known()[rule["name"]]
            assert one.dataset == entry["name"]
            assert list(one.positive) == [str(label) for label in rule.get("positive", [])]
            assert one.above == rule.get("gt")
            if "only_split" not in rule:
                assert (one.rows, one.n_pos) == (entry["rows"], rule.get("n_pos"))
    assert seen == openml.known()
    assert not set(seen) & set(openml.PRIVATE)
    assert {paper for one in seen.values() for paper in one.stated_by} <= set(data.PAPERS)


def test_an_openml_number_belongs_to_one_dataset(openml):
    pairs = {(one.dataset, one.openml_id) for one in openml.known().values() if one.openml_id}
    assert len(pairs) == len({dataset for dataset, _ in pairs}) == len({n for _, n in pairs})
    assert len(pairs) >= 25


@pytest.mark.parametrize("name", ["spectf_train80", "splice_libsvm", "labor", "scene", "solar_m0"])
def test_real_files_hold_what_is_said(data, openml, shared, monkeypatch, name):
    monkeypatch.setenv("CALIBRANT_DATA", str(shared / "data"))
    _, y = data.read(data.task(name), None)
    assert (len(y), y.sum()) == (openml.known()[name].rows, openml.known()[name].n_pos)


def test_real_split_is_that_of_the_source(data, shared, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(shared / "data"))
    split = data.read_split("pendigits_multi")
    X, y = data.read_classes("pendigits_multi")
    assert np.unique(split, return_counts=True)[1].tolist() == [3498, 7494]
    assert X.shape == (10992, 16)
    assert np.bincount(y).tolist()[:3] == [1143, 1143, 1144]


# --- what the documentation says ------------------------------------------------------------------


@pytest.fixture(scope="module")
def readme(root):
    return (root / "docs" / "evidence" / "papers" / "README.md").read_text(encoding="utf-8")


def test_commands_of_the_documentation_are_understood(root, readme, monkeypatch):
    main = experiment(root, "__main__")
    lines = re.findall(r"^python -m experiments(.*?)(?: #.*)?$", readme, flags=re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        monkeypatch.setattr(sys, "argv", ["experiments", *line.split()])
        told = main.arguments()
        if told.table is not None:
            main.paper(told.paper).table(told.table)


def test_documentation_counts_the_datasets_of_openml(openml, readme):
    assert f"the OpenML number of\n{len(openml.entries())} of the datasets" in readme
