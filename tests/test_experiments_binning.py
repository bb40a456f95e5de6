"""The studies behind the Bayesian binning methods, at a size for tests."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def simulated(root):
    return experiment(root, "binning_simulated")


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "binning_lambda")


@pytest.fixture
def data(root):
    return experiment(root, "data")


@pytest.fixture(scope="module")
def xor(simulated):
    return simulated.draws("XOR", 45, ("LR", "Hist", "ABB"))


@pytest.fixture(scope="module")
def circular(simulated):
    return simulated.draws("circular", 25, ("LR", "IsoReg", "ABB", *simulated.ACP))


def _of(summary, method):
    return summary[summary["method"] == method].set_index("measure")


@pytest.mark.parametrize("measure", ["AUC", "ACC", "RMSE"])
def test_abb_on_xor_is_within_the_spread_of_the_published_figures(simulated, xor, measure):
    near = simulated.near_diagonal(xor)
    assert near["seed"].nunique() >= 12
    row = _of(simulated.beside_published("XOR", near), "ABB").loc[measure]
    assert row["sd"] < 0.03  # a spread that would let anything pass is no evidence
    assert abs(row["published"] - row["mean"]) <= 2.5 * row["sd"]
    assert row["within"]


@pytest.mark.parametrize("measure", ["AUC", "ACC", "RMSE"])
def test_abb_on_rings_is_within_the_spread_of_the_published_figures(simulated, circular, measure):
    row = _of(simulated.beside_published("circular", circular), "ABB").loc[measure]
    assert row["sd"] < 0.03
    assert abs(row["published"] - row["mean"]) <= 2.5 * row["sd"]


def test_xor_depends_on_the_direction_of_the_draw(simulated, xor):
    """Far from a diagonal no function of the score tells the classes apart."""
    near = simulated.near_diagonal(xor)
    far = xor[xor["off diagonal"] > 35]
    for method in ("Hist", "ABB"):
        best, worst = (part[part["method"] == method]["AUC"].mean() for part in (near, far))
        assert best > 0.9
        assert worst < 0.7


def test_isotonic_cannot_follow_the_rings(circular):
    mean = circular.groupby("method")["AUC"].mean()
    assert mean["LR"] < 0.55
    assert mean["IsoReg"] < 0.7
    assert mean["ABB"] > 0.8


def test_every_published_figure_has_a_measure_beside_it(simulated, xor):
    names = set(xor.columns)
    for figures in simulated.PUBLISHED.values():
        assert set(figures) <= names
        for row in figures.values():
            assert set(row) == {*simulated.METHODS, *simulated.ACP}
            assert all(0 < figure < 1 for figure in row.values())


def test_a_figure_outside_the_spread_is_called_so(simulated):
    draws = pd.DataFrame({"method": "ABB", "AUC": [0.50, 0.51, 0.52], "ECE": [0.06, 0.07, 0.05]})
    row = _of(simulated.beside_published("XOR", draws), "ABB")
    assert not row.loc["AUC", "within"]
    assert row.loc["AUC", "apart"] == pytest.approx((0.941 - 0.51) / 0.01)
    assert row.loc["ECE", "within"]
    assert "| ABB | AUC | 0.510 ± 0.010 | 0.941 | +43.1 | no |" in simulated.as_table(
        row.reset_index()
    )


@pytest.mark.parametrize(
    ("direction", "degrees"), [((1, 1), 0), ((-2, 2), 0), ((1, 0), 45), ((0, -3), 45)]
)
def test_angle_from_the_diagonal(simulated, direction, degrees):
    assert simulated.from_diagonal(np.array(direction, float)) == pytest.approx(degrees)


def test_published_reading_of_ece_is_the_root_of_a_tenth(simulated):
    rng = np.random.default_rng(1)
    p = rng.random(400)  # no ties: both readings sort alike
    found = simulated.measures((rng.random(400) < p).astype(int), p)
    assert found["ECE"] == pytest.approx(math.sqrt(found["ECE, plain"] / 10))
    assert found["MCE"] == pytest.approx(found["MCE, ties together"])


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


def test_committed_results_are_of_these_studies(root, simulated, study):
    """The pages in experiments/results speak of the methods and measures that the code has."""
    page = (root / "experiments" / "results" / "binning_simulated.md").read_text(encoding="utf-8")
    for method in simulated.METHODS:
        assert f"| {method} | AUC |" in page
    table = pd.read_csv(root / "experiments" / "results" / "binning_lambda.csv")
    assert set(table["method"]) == set(study.METHODS)
    assert set(table["n"]) == set(study.SIZES)
    assert table[["log loss", "Brier"]].notna().all().all()


@pytest.mark.parametrize("measure", ["AUC", "ACC", "RMSE", "MCE", "ECE"])
def test_narrow_intervals_give_the_published_figures_of_acp(simulated, circular, measure):
    summary = simulated.beside_published("circular", circular)
    row = _of(summary, "ACP, 10 % intervals").loc[measure]
    assert row["within"]
    assert row["sd"] < 0.1
    assert not _of(summary, "ACP").loc["RMSE", "within"]  # 95 % intervals average the shape away
