"""The rerun of similarity binning's tables at a size for tests, and what it is made of."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import calibrant as cal
from studies import experiment


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "similarity_binning")


@pytest.fixture(scope="module")
def bayes(root):
    return experiment(root, "naive_bayes").MixedNaiveBayes


# --- naive Bayes ----------------------------------------------------------------------------------


@pytest.fixture
def labels():
    return np.random.default_rng(1).integers(0, 2, 200)


def test_naive_bayes_on_numbers_is_scikit_learns(bayes, labels):
    X = np.random.default_rng(2).normal(labels[:, None] * [1.0, 0.2, 0.0], [1.0, 3.0, 0.5])
    frame = pd.DataFrame(X, columns=list("abc"))
    ours = bayes().fit(frame, labels)
    theirs = GaussianNB(priors=np.exp(ours.prior), var_smoothing=0.0).fit(X, labels)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(X), rtol=1e-9)


def test_naive_bayes_on_words_is_scikit_learns(bayes, labels):
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, 3, 200), (labels + rng.integers(0, 2, 200)) % 4])
    frame = pd.DataFrame(np.array(list("wxyz"), dtype=object)[codes], columns=list("ab"))
    ours = bayes().fit(frame, labels)
    theirs = CategoricalNB(alpha=1.0, class_prior=np.exp(ours.prior)).fit(codes, labels)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(codes), rtol=1e-9)


def test_naive_bayes_leaves_out_what_is_missing(bayes, labels):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "number": rng.normal(labels),
            "word": np.where(rng.random(200) < 0.3 + 0.4 * labels, "a", "b").astype(object),
        }
    )
    gaps = frame.copy()
    gaps.loc[:, "word"] = None
    both = bayes().fit(frame, labels)
    one = bayes().fit(frame[["number"]], labels)
    np.testing.assert_allclose(both.predict_proba(gaps), one.predict_proba(frame), rtol=1e-12)
    gaps = frame.assign(number=np.nan)
    other = bayes().fit(frame[["word"]], labels)
    np.testing.assert_allclose(both.predict_proba(gaps), other.predict_proba(frame), rtol=1e-12)
    # in the rows to fit on, a gap is a row less
    half = frame.assign(number=frame["number"].where(np.arange(200) < 100))
    few = bayes().fit(frame[:100], labels[:100])
    np.testing.assert_allclose(bayes().fit(half, labels).numbers["number"], few.numbers["number"])


def test_naive_bayes_takes_unknown_words_and_constant_numbers(bayes, labels):
    frame = pd.DataFrame({"word": ["a", "b"] * 100, "one": 1.0})
    model = bayes().fit(frame, labels)
    p = model.predict_proba(pd.DataFrame({"word": ["c", None], "one": [1.0, 1.0]}))
    np.testing.assert_allclose(p, [np.exp(model.prior)] * 2)


# --- the parts of the study -----------------------------------------------------------------------


def test_splits_are_the_papers(study):
    y = np.repeat([0, 1], [700, 300])
    settings = study.splits(y, seed=3)
    learn, again, test = settings["T"]
    part, hold, same = settings["V"]
    assert learn is again
    assert test is same
    assert [len(rows) for rows in (learn, part, hold, test)] == [750, 562, 188, 250]
    assert sorted([*learn, *test]) == list(range(1000))
    assert sorted([*part, *hold]) == sorted(learn)
    for rows in (learn, part, hold, test):
        assert y[rows].mean() == pytest.approx(0.3, abs=0.005)


def test_ties_by_label_fill_windows_with_one_class(study):
    rng = np.random.default_rng(0)
    p, y = rng.random(53), rng.integers(0, 2, 53)
    order = np.argsort(p)
    windows = [order[a : a + 5] for a in range(49)]
    expected = np.mean([abs(p[w] - y[w].mean()).mean() for w in windows])
    assert study.calbin_by_label(y, p) == pytest.approx(expected, abs=1e-12)
    assert cal.calbin(y, p) == pytest.approx(expected, abs=1e-12)  # no ties, no difference
    # 20 cases that are alike, in windows of two: 11 of one class, 1 mixed, 7 of the other
    alike, same = np.repeat([1, 0], [12, 8]), np.full(20, 0.6)
    assert study.calbin_by_label(alike, same) == pytest.approx((11 * 0.4 + 0.1 + 7 * 0.6) / 19)
    assert study.calbin_by_label(alike[::-1], same) == study.calbin_by_label(alike, same)
    assert cal.calbin(alike, same) == pytest.approx(0.0, abs=1e-12)


def test_measures_are_those_of_the_library(study):
    y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9])
    found = study.measures(y, p)
    assert found["MSE"] == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    assert found["AUC"] == pytest.approx(0.75)
    assert found["CalBin"] == cal.calbin(y, p)
    assert list(found) == study.MEASURES


def test_reference_is_a_model_and_a_calibrator_alike(study):
    """The paper's 10-NN is the model 10-NN, whatever the scores are."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame({"a": rng.random(80), "b": rng.choice(["u", "v"], 80)})
    y = (rng.random(80) < X["a"]).to_numpy().astype(int)
    model = study.NearestTen().fit(X[:60], y[:60]).predict_proba(X[60:])[:, 1]
    reference = study.LOCAL["10-NN"]().fit(rng.random(60), y[:60], features=X[:60])
    np.testing.assert_array_equal(reference.calibrate(rng.random(20), features=X[60:]), model)


def _results(**loss):
    """Results of methods on datasets 1 to 3: the loss of each, in every model and setting."""
    rows = [
        {"dataset": i, "model": model, "setting": setting, "method": method}
        | dict.fromkeys(("CalBin", "CalBin, ties by label", "MSE", "AUC"), value + i / 100)
        for i in (1, 2, 3)
        for model in ("naive Bayes", "tree", "10-NN", "logistic regression")
        for setting in "TV"
        for method, value in loss.items()
    ]
    return pd.DataFrame(rows).assign(repeats=7)


def test_page_tells_means_and_wins(study):
    names = [*study.PAPER, *study.LOCAL]
    page = study.page(_results(**dict.fromkeys(names, 0.2) | {"SBA": 0.1, "SBA, both": 0.05}))
    cells = " | ".join(["0.2200"] * 5 + ["0.1200"] + ["0.2200"] * 3 + ["0.1200"])
    assert page.count(f"| **mean** | {cells} |") == 2
    assert "| MSE | V | PAV | 3 of 3 | 16 | -0.1000 | -0.0102 |" in page
    assert "| SBA, both |" + " 0.0700 (3, 0.25) |" * 4 in page
    assert "| SBA, nearer count more |" + " 0.2200 (0, 0.25) |" * 4 in page
    assert "| T | SBA |" + " 0.1200 (0.120) |" * 4 in page
    assert "\n7 repetitions" in page


def test_published_figures_are_complete(study):
    for measure, settings in study.PUBLISHED.items():
        assert set(settings["T"]) == set(study.PAPER)
        assert set(settings["V"]) == set(study.PAPER[2:])
        for setting, row in settings.items():
            rivals = study.PUBLISHED_WINS[measure][setting]
            assert set(rivals) == set(row) - {"SBA"}
            assert row["SBA"] == min(row.values())


def test_an_interrupted_run_is_taken_up(study, tmp_path, monkeypatch):
    ran = []

    def one_dataset(X, y, repeats):
        ran.append((len(y), repeats))
        return (
            _results(SBA=0.3).query("dataset == 1").drop(columns="dataset").assign(repeats=repeats)
        )

    monkeypatch.setattr(study, "one_dataset", one_dataset)
    monkeypatch.setattr(study, "tasks", lambda least: [_Named(n) for n in study.DATASETS.values()])
    monkeypatch.setattr(study, "rows_of", lambda task: (None, np.zeros(len(task.name))))
    path = tmp_path / "kept.csv"
    assert study.kept_before(path, 7) is None
    for results in study.study([2, 3], 7):
        results.to_csv(path, index=False)
    assert ran == [(len("breast-w"), 7), (len("kr-vs-kp"), 2)]
    assert study.kept_before(path, 6)["dataset"].unique().tolist() == [3]  # 6 // 3 is 2 as well
    *_, results = study.study([2, 3, 14], 7, study.kept_before(path, 7))
    assert ran[2:] == [(len("monks1"), 7)]
    assert results["dataset"].unique().tolist() == [2, 3, 14]


class _Named:
    def __init__(self, name):
        self.name = name


# --- the tables, at a size for tests --------------------------------------------------------------

SEEDS = 2
#: the quick ones of the models; these gain more than the others, of which the kept results tell
SIMPLE = ("naive Bayes", "tree")
RIVALS = ["binning", "PAV", "Platt"]


@pytest.fixture(scope="module")
def rerun(study, shared):
    """Five of the datasets, two models, the first seeds; of the local methods only SBA."""
    known = {task.name: task for task in study.tasks(0)}
    parts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "LOCAL", {"SBA": study.LOCAL["SBA"]})
        for number in study.QUICK:
            X, y = study.rows_of(known[study.DATASETS[number]])
            parts.append(study.one_dataset(X, y, SEEDS, SIMPLE).assign(dataset=number))
    return pd.concat(parts)


def _gaps(study, rerun, measure, setting):
    """SBA less each rival: datasets × rivals."""
    found = study.grid(rerun, measure)[setting]
    return found[RIVALS].sub(found["SBA"], axis=0).mul(-1)


def test_similarity_binning_has_the_smaller_error(study, rerun):
    """Table 3: by far where training rows calibrate, and still on held-out rows."""
    same = _gaps(study, rerun, "MSE", "T")
    assert (same < 0).all(axis=None)
    assert (same.mean() < -0.03).all()
    held = _gaps(study, rerun, "MSE", "V")
    assert ((held < 0).sum() >= 4).all()
    assert (held.mean() < -0.004).all()


def test_calbin_is_smaller_with_ties_by_label_only(study, rerun):
    """Table 2: it depends on the order of ties whether the advantage is there on held-out rows."""
    for setting in "TV":
        gap = _gaps(study, rerun, "CalBin, ties by label", setting).mean()
        assert (gap < -0.004).all()
    same = _gaps(study, rerun, "CalBin", "T").mean()
    assert (same < 0).all()
    held = _gaps(study, rerun, "CalBin", "V").mean()
    assert held["PAV"] > 0.01


def test_similarity_binning_ranks_better_where_the_model_missed_something(study, rerun):
    """Naive Bayes sees attributes one by one, and maps of its score can add little."""
    bayes = rerun[(rerun["model"] == "naive Bayes") & (rerun["setting"] == "T")]
    auc = bayes.pivot(index="dataset", columns="method", values="AUC").loc[[14, 20]]
    for other in ["model", *RIVALS]:
        assert (auc["SBA"] > auc[other] + 0.1).all()


def test_a_corner_of_the_board_is_left_out(study, shared):
    (task,) = (task for task in study.tasks(0) if task.name == "tic-tac-toe")
    assert study.rows_of(task)[0].shape == (958, 8)
    (other,) = (task for task in study.tasks(0) if task.name == "vote")
    X = study.rows_of(other)[0]
    assert X.isna().sum().sum() == 392  # missing words are missing, no word of their own
    assert "(missing)" not in set(X.to_numpy().ravel())


# --- what is kept ---------------------------------------------------------------------------------


def test_committed_results_are_of_this_study(study, root):
    folder = root / "experiments" / "results"
    kept = pd.read_csv(folder / "similarity_binning.csv")
    assert set(kept["dataset"]) == set(study.DATASETS)
    assert set(kept["method"]) == {"model", *study.UNIVARIATE, *study.LOCAL}
    assert set(kept["model"]) == set(study.MODELS)
    assert not kept.duplicated(study.CELL).any()
    assert kept[study.MEASURES].notna().all().all()
    page = (folder / "similarity_binning.md").read_text(encoding="utf-8")
    assert page == study.page(kept) + "\n"


def test_committed_results_tell_of_models_that_do_not_gain(study, root):
    """On held-out rows trees gain by similarity binning, and neighbours lose by it."""
    kept = pd.read_csv(root / "experiments" / "results" / "similarity_binning.csv")
    held = kept[kept["setting"] == "V"].groupby(["model", "method"])["MSE"].mean().unstack()
    assert held.loc["tree", "SBA"] < held.loc["tree", RIVALS].min()
    assert held.loc["10-NN", "SBA"] > held.loc["10-NN", RIVALS].max()
    assert held.loc["logistic regression", "SBA"] > held.loc["logistic regression", "Platt"]


def test_examples_of_the_docs_run(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    scores = rng.random(300)
    names = {
        "X": X,
        "X_new": X[:5],
        "scores": scores,
        "new": scores[:5],
        "y": rng.integers(0, 2, 300),
        "y_test": np.array([0, 1, 0, 1, 1]),
    }
    text = (root / "docs" / "similarity_binning.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 6
    for code in blocks:
        exec(code, names)
    files = sorted(path.suffix for path in tmp_path.iterdir())
    assert files == [".json", ".npz"]
