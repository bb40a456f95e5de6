"""The studies behind ENIR and ELiTE, at a size for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from studies import experiment, write_toy


@pytest.fixture(scope="module")
def common(root):
    return experiment(root, "study")


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "near_isotonic")


@pytest.fixture(scope="module")
def path_study(root):
    return experiment(root, "near_isotonic_path")


# --- the study on real data -----------------------------------------------------------------------


@pytest.fixture
def toy(tmp_path, monkeypatch):
    write_toy(tmp_path, seed=5)
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))


def test_a_small_study_runs_from_data_to_page(study, common, root, toy, monkeypatch):
    for name in ("random forest", "boosted trees", "logistic regression"):
        monkeypatch.delitem(common.MODELS, name)
    (task,) = experiment(root, "data").tasks(common.LEAST)
    results = common.one_task(task, 1, study.compare)
    assert results.groupby(common.CASE).ngroups == 2  # two models, 200 of the rows
    assert set(results["method"]) == set(study.METHODS)
    assert np.isfinite(results[study.MEASURES]).all().all()
    loss = results.pivot(index="model", columns="method", values="log loss")
    for monotone in study.MONOTONE:
        same = loss[f"ELiTE {monotone} raw"] == loss[f"ELiTE {monotone} auto"]
        assert same["linear SVM"]  # margins have no logit
        assert not same["naive Bayes"]
    page = study.summary(pd.concat([results, results.assign(task="copy")]), 1.0)
    for name in study.METHODS:
        assert f"| {name} |" in page


def test_the_defaults_are_the_winners_of_the_study(study):
    rng = np.random.default_rng(2)
    scores = rng.random(300)
    y = rng.random(300) < scores
    assert cal.ENIR().fit(scores, y).map_ == study.BINS[study.ENIR].fit(scores, y).map_
    assert cal.ELiTE().scale == "auto"
    paper = cal.ENIR(variant="paper").fit(scores, y)
    assert paper.map_ == study.BINS["ENIR step none"].fit(scores, y).map_


def test_infinite_log_losses_are_counted(study, common):
    y = np.tile([0, 1], 60)
    scores = np.where(y == 1, 0.8, 0.2)
    scores[:2] = scores[1::-1]  # one mistake of each kind is far from the rest
    data = common.Scored(scores[2:], y[2:], scores, y)
    rows = {row["method"]: row for row in study.compare(data)}
    assert rows["Isotonic"]["infinite"] == 1.0
    assert rows["ENIR step none"]["infinite"] == 1.0
    assert rows[study.ENIR]["infinite"] == 0.0
    assert np.isfinite(rows["Isotonic"]["log loss"])  # clipped


def _grid(**methods):
    """Results of methods on eight tasks: the loss of each in every case."""
    rows = [
        {"task": f"t{i}", "model": "m", "n": 200, "seed": 0, "method": name, "log loss": loss[i]}
        for name, loss in methods.items()
        for i in range(8)
    ]
    return pd.DataFrame(rows).assign(Brier=lambda frame: frame["log loss"] ** 2)


def test_differences_count_wins_and_ties(study):
    base = np.arange(1, 9) / 10
    change = np.array([-0.01, -0.02, -0.03, -0.04, -0.05, -0.06, 0.0, 0.01])
    results = _grid(a=base + change, b=base)
    text = study.differences(results, [("a", "b")], "n")
    assert "| a | b | all | 0.81 | -0.0250 |" in text
    assert "| a | b | 200 | 0.81 | -0.0250 |" in text
    same = study.differences(_grid(a=base, b=base), [("a", "b")], "n")
    assert "| a | b | all | 0.50 | +0.0000 | – | 0.50 | +0.0000 | – |" in same


def test_mean_ranks_have_a_column_for_each_size(common):
    results = pd.concat(
        [
            _grid(a=np.zeros(8), b=np.ones(8)),
            _grid(a=np.ones(8), b=np.zeros(8)).assign(n=1000),
        ]
    )
    text = common.mean_ranks(common.losses(results, "log loss", ["a", "b"]), "n")
    assert "| method | n = 200 | n = 1000 |" in text
    assert "| a | 1.00 | 2.00 |" in text


def test_some_rows_keep_the_share_of_positives(common):
    y = np.repeat([0, 1], [300, 100])
    data = common.Scored(np.arange(400.0), y, np.arange(2.0), np.array([0, 1]))
    some = data.some(100, seed=1)
    assert len(some.scores) == 100
    assert some.y.sum() == 25
    assert (some.y == (some.scores >= 300)).all()
    assert data.some(400, seed=1) is data


# --- along the path -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows_along(path_study, common):
    rng = np.random.default_rng(8)
    scores = rng.random(2000).round(3)
    y = (rng.random(2000) < 0.2 + 0.6 * scores).astype(int)
    data = common.Scored(scores[:1000], y[:1000], scores[1000:], y[1000:])
    return data, pd.DataFrame(path_study.along(data)).set_index("fit")


def test_in_sample_ranking_falls_to_the_isotonic_fit(path_study, rows_along):
    data, found = rows_along
    shares = found.loc[[f"{share:g}" for share in path_study.SHARES]]
    assert (np.diff(shares["AUC in sample"]) <= 1e-12).all()
    assert (np.diff(shares["bins"]) <= 0).all()
    isotonic = cal.Isotonic().fit(data.scores, data.y)
    area = cal.metrics.auc(data.y, isotonic.calibrate(data.scores))
    assert found.loc["1", "AUC in sample"] == pytest.approx(area, abs=1e-12)
    assert found.loc["1", "Brier"] == pytest.approx(
        cal.metrics.brier(data.y_new, isotonic.calibrate(data.new)), abs=1e-12
    )
    assert found.loc["scores", "AUC in sample"] <= area


def test_steps_of_a_fit_give_back_the_fit(path_study):
    rng = np.random.default_rng(4)
    table = cal.ScoreTable.from_arrays(rng.random(80), rng.integers(0, 2, 80))
    path = cal.calibrators.near_isotonic_path(table)
    for lambda_ in (0.0, float(path.lambdas[len(path) // 2]), float(path.lambdas[-1])):
        fit = path.at(lambda_)
        np.testing.assert_array_equal(path_study.step(table, fit)(table.scores), fit)


def test_only_the_chosen_number_of_rows_is_followed(path_study, common):
    y = np.tile([0, 1], 100)
    assert path_study.along(common.Scored(np.arange(200.0), y, np.arange(200.0), y)) == []


def test_path_page_has_a_row_for_each_fit(path_study, rows_along):
    _, found = rows_along
    results = found.reset_index().assign(task="toy", model="m", n=1000, seed=0)
    page = path_study.summary(results, 1.0)
    for name in found.index:
        assert f"| {name} |" in page


# --- what is kept ---------------------------------------------------------------------------------


def test_committed_results_are_of_these_studies(root, study, path_study):
    """The pages in experiments/results speak of the methods and measures that the code has."""
    folder = root / "experiments" / "results"
    kept = pd.read_csv(folder / "near_isotonic.csv")
    assert set(kept["method"]) == set(study.METHODS)
    assert kept[[*study.MEASURES, "infinite"]].notna().all().all()
    assert f'"{study.ENIR}"\nthe default' in (folder / "near_isotonic.md").read_text(
        encoding="utf-8"
    )
    kept = pd.read_csv(folder / "near_isotonic_path.csv", dtype={"fit": str})
    assert set(kept["task"]) == set(path_study.TASKS)
    assert {f"{share:g}" for share in path_study.SHARES} <= set(kept["fit"])
