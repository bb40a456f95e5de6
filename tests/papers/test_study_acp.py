"""The study behind ACP at a size for tests, and its page."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from studies import experiment, write_toy


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "acp")


@pytest.fixture(scope="module")
def data(root):
    return experiment(root, "data")


@pytest.fixture
def quick(study, monkeypatch):
    """ABB's kernels take longer to compile than all else here takes to run."""
    monkeypatch.setitem(study.OTHERS, "ABB", cal.Histogram())


@pytest.fixture
def toy(tmp_path, monkeypatch):
    write_toy(tmp_path, seed=3)
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))


def test_a_small_study_runs_from_data_to_page(study, data, toy, quick):
    (task,) = data.tasks(600)
    results = study.one_task(task, 1)
    assert set(results["method"]) == set(study.METHODS)
    assert set(results["model"]) == set(study.BEST)
    assert set(results["n"]) == {200}
    assert np.isfinite(results[["Brier", "log loss", "ECE", "AUC"]]).all().all()
    chosen = results[results["method"] == study.CHOSEN].set_index("model")
    rows = results.set_index(["model", "method"])
    for model, name in chosen["chosen"].items():
        assert chosen.loc[model, "log loss"] == rows.loc[(model, f"{name} laplace"), "log loss"]
    page = study.summary(pd.concat([results, results.assign(task="copy")]), 1.0)
    for name in study.METHODS:
        assert f"| {name} |" in page
    assert "Random forest: what the bins hold" in page


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("level", [0.95, 0.3])
def test_other_levels_from_the_standard_deviation(study, scale, level):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    forest = RandomForestClassifier(10, random_state=0).fit(X[:200], y[:200])
    for model in (LogisticRegression().fit(X[:200], y[:200]), forest):
        first = cal.prediction_interval(model, X, scale=scale, train=(X[:200],))
        asked = cal.prediction_interval(model, X, level=level, scale=scale, train=(X[:200],))
        inner = (first.probability > 0) & (first.probability < 1)
        assert inner.any()
        for end, same in zip(study.at(first, level), asked, strict=True):
            np.testing.assert_allclose(end[inner], same[inner], atol=1e-12)


def _rows(study, y, scores):
    """Rows with an interval of ±.4 by the name of the first level and ±.03 by the last one's."""
    names = [name for name, (_, scale) in study.INTERVALS.items() if scale == "probability"]
    half = np.linspace(0.4, 0.03, len(names))
    ends = {name: (scores - h, scores + h) for name, h in zip(names, half, strict=True)}
    return study.Rows(scores, ends, y)


def test_folds_choose_narrow_intervals_where_the_shape_needs_them_and_wide_ones_for_noise(study):
    rng = np.random.default_rng(2)
    scores = rng.random(1000)
    teeth = (np.floor(scores * 8) % 2).astype(int)
    noise = (rng.random(1000) < 0.5).astype(int)
    assert study.by_folds(_rows(study, teeth, scores)) == "ACP 0.1"
    assert study.by_folds(_rows(study, noise, scores)) == "ACP 0.95"


def test_bins_are_counted(study):
    scores, y = np.arange(20) / 20, np.tile([0, 1], 10)
    fitted = cal.ACP().fit(scores, y)
    new = study.Rows(scores, {}, y)
    row = study.one_acp(fitted, new, scores - 0.051, scores + 0.051, 20)
    assert row["held"] == 3
    assert row["share"] == 0.15
    assert row["empty"] == 0
    assert row["under 10"] == 1
    assert row["width"] == pytest.approx(0.102)
    between = scores + 0.02
    row = study.one_acp(fitted, new, between, between + 0.001, 20)
    assert row["empty"] == 1
    assert row["held"] == 10.5  # inner scores have five on either side, and the last two tie


def test_groups_by_the_error_of_the_model(study):
    rows = [
        {"task": f"t{i}", "model": "m", "n": 200, "seed": 0, "method": name, "error": 0.01 * i}
        | {"log loss": loss, "Brier": loss}
        for i in range(1, 6)
        for name, loss in (("a", i / 10), ("b", 0.3))
    ]
    text = study.by_error(pd.DataFrame(rows), [("a", "b")])
    assert "| method | against | ECE of the model |" in text
    assert "| a | b | 0 to 0.02 | 1.00 | -0.1500 |" in text
    assert "| a | b | 0.02 to 0.04 | 0.25 | +0.0500 |" in text
    assert "| a | b | 0.04 to 1 | 0.00 | +0.2000 |" in text


def test_what_the_page_says_of_levels_holds_on_spambase(study, data, shared, quick):
    task = next(task for task in data.tasks(600) if task.name == "spambase")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = study.one_task(task, 1)
    brier = results.groupby(["model", "method"])["Brier"].mean()
    logistic, forest = brier[study.LOGISTIC], brier[study.FOREST]
    assert logistic["ACP 0.95"] < logistic["ACP 0.5"] < logistic["ACP 0.2"] < logistic["ACP 0.1"]
    assert forest["ACP 0.2"] < forest["none"] < forest["ACP 0.95"] < forest["ACP 0.95 logit"]


# --- the page -------------------------------------------------------------------------------------


def test_figures_of_the_page_are_those_of_theexperiment(root, study):
    found = pd.read_csv(root / "experiments" / "results" / "acp.csv")
    mean = found.groupby(["model", "method"])[["Brier", "log loss", "ECE"]].mean()
    text = (root / "docs" / "understand" / "methods" / "acp.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w. ]+?) \|((?: \.\d{4} \|){6})", text, flags=re.MULTILINE)
    assert len(rows) >= 8
    for name, cells in rows:
        figures = [float(cell) for cell in cells.split("|")[:-1]]
        asked = [*mean.loc[(study.LOGISTIC, name)], *mean.loc[(study.FOREST, name)]]
        assert figures == pytest.approx(asked, abs=6e-5), name
