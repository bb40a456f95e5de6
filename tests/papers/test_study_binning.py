"""The study behind the λ of the Bayesian binning methods, at a size for tests."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "binning_lambda")


@pytest.fixture
def data(root):
    return experiment(root, "data")


def test_missing_data_are_named(data, monkeypatch, tmp_path):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    with pytest.raises(data.DataMissingError, match=r"no manifest\.json.*CALIBRANT_DATA"):
        data.tasks(1)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A folder with one dataset: 900 rows, a number, a word, and an identifier."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=900)
    frame = pd.DataFrame(
        {
            "z": z.round(3),
            "word": np.where(rng.random(900) < 0.1, "", np.where(z > 0.5, "b", "a")),
            "id": np.arange(900),
            "label": np.where(rng.random(900) < 1 / (1 + np.exp(-2 * z)), "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "toy.csv.gz", index=False)
    entry = {
        "name": "toy",
        "file": "toy.csv.gz",
        "rows": 900,
        "n_features": 2,
        "nominal": ["word"],
        "non_feature_columns": ["id"],
        "label_counts": {"no": 450, "yes": 450},
        "tasks": [
            {"name": "toy", "positive": ["yes"]},
            {"name": "again", "positive": ["yes"]},
            {"name": "mirrored", "positive": ["no"]},
            {"name": "many classes"},
        ],
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"datasets": [entry]}), encoding="utf-8")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    return frame


def test_tasks_are_read_once_each(data, toy):
    (task,) = data.tasks(600)
    assert task.name == "toy"
    assert data.tasks(901) == []
    X, y = data.read(task, 5000)
    assert list(X.columns) == ["z", "word"]
    assert X["z"].tolist() == toy["z"].tolist()
    assert set(X["word"]) == {"a", "b", "(missing)"}
    assert y.tolist() == (toy["label"] == "yes").astype(int).tolist()
    some, labels = data.read(task, 100)
    assert len(some) == len(labels) == 100
    assert some.equals(data.read(task, 100)[0])


def test_a_small_study_runs_from_data_to_page(data, study, toy, monkeypatch):
    for name in ("random forest", "boosted trees"):
        monkeypatch.delitem(study.MODELS, name)
    (task,) = data.tasks(600)
    results = study.one_task(task, 1)
    assert results.groupby(study.CASE).ngroups == 3  # three models, 200 of the rows
    assert results.groupby("method").size().eq(3).all()
    assert np.isfinite(results[["log loss", "Brier"]]).all().all()
    fixed = ~results["method"].str.contains("empirical|average")
    assert results["log lambda"].isna().eq(fixed).all()
    page = study.summary(pd.concat([results, results.assign(task="copy")]), 1.0)
    for name in study.METHODS:
        assert f"| {name} |" in page


def test_standings_rank_and_compare(study):
    index = pd.MultiIndex.from_tuples([(f"t{i}", "m", 200) for i in range(8)], names=study.CASE)
    noise = np.random.default_rng(0).random(8) / 100
    grid = pd.DataFrame({"good": noise, "bad": noise + 0.1, "mid": noise + 0.05}, index=index)
    found = study.standings(grid, "good")
    assert found["mean rank"].tolist() == [1, 3, 2]
    assert found["win rate"].tolist() == [1, 0, 0.5]
    assert found["best"].tolist() == [1, 0, 0]
    assert found["above the best"].tolist() == pytest.approx([0, 0.1, 0.05])
    p = found["p against good"]
    assert math.isnan(p["good"])
    assert p["bad"] == pytest.approx(2 / 2**8)  # eight of eight, two-sided


def test_committed_results_are_of_this_study(root, study):
    """The results in experiments/results speak of the methods and sizes that the code has."""
    table = pd.read_csv(root / "experiments" / "results" / "binning_lambda.csv")
    assert set(table["method"]) == set(study.METHODS)
    assert set(table["n"]) == set(study.SIZES)
    assert table[["log loss", "Brier"]].notna().all().all()
