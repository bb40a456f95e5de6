"""The rerun of the multiclass tables at a size for tests, and what it is made of."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import calibrant as cal
from studies import experiment


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "multiclass")


@pytest.fixture(scope="module")
def flowers(study):
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(0, 1, X.shape)  # not too easy
    return study.Rows(X[::2], y[::2], X[1::2], y[1::2])


# --- the parts of the study -----------------------------------------------------------------------


def test_split_takes_four_fifths_of_each_class(study):
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [100, 50, 997]))
    train, test = study.split(y, 3)
    assert np.bincount(y[train]).tolist() == [80, 40, 798]
    assert sorted([*train, *test]) == list(range(len(y)))
    again, _ = study.split(y, 3)
    np.testing.assert_array_equal(train, again)
    assert set(study.split(y, 4)[0]) != set(train)


def test_scores_are_log_odds_or_the_share_of_votes(study, flowers):
    side = (flowers.y == 1).astype(int)
    model = GaussianNB().fit(flowers.X, side)
    p = model.predict_proba(flowers.X_new)[:, 1]
    np.testing.assert_allclose(expit(study.score(model, flowers.X_new)), p, atol=1e-12)
    votes = study.boosted(GaussianNB(), 4).fit(flowers.X, side)
    share = study.score(votes, flowers.X_new)
    assert 0 <= share.min() < share.max() <= 1
    order = np.argsort(votes.decision_function(flowers.X_new))
    assert (np.diff(share[order]) > -1e-12).all()


def test_log_odds_are_told_apart_where_probabilities_are_one(study):
    rng = np.random.default_rng(1)
    X = csr_matrix(rng.poisson(np.repeat([[5.0, 1.0], [1.0, 5.0]], 50, axis=0)) * 20.0)
    model = MultinomialNB().fit(X, np.repeat([0, 1], 50))
    p, s = model.predict_proba(X)[:, 1], study.score(model, X)
    assert len(np.unique(p[p > 0.9])) < len(np.unique(s[p > 0.9])) / 2


@pytest.mark.parametrize("k", [3, 4, 10])
def test_printed_iteration_ends_where_it_is_said_to(study, k):
    r = np.random.default_rng(k).uniform(0.02, 0.98, (30, k))
    p, n = np.full(r.shape, 1 / k), k - 1 - r.sum(axis=1, keepdims=True) + 2 * r
    for _ in range(20_000):
        p *= n / (k - 2 + 2 * p)
        p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(study.as_printed(r), p, atol=1e-4)
    inside = (study.as_printed(r) > 1e-3).all(axis=1)
    np.testing.assert_allclose(study.as_printed(r)[inside], p[inside], atol=1e-9)


def test_printed_iteration_is_right_where_answers_agree_and_elsewhere_another(study):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    np.testing.assert_allclose(study.as_printed(p), p, atol=1e-12)
    r = np.array([[0.9, 0.6, 0.1, 0.0]])
    assert np.abs(study.as_printed(r) - cal.multiclass.coupling(r, np.eye(4) * 2 - 1)).max() > 0.02
    ends = study.as_printed(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(ends, [[1 / 3] * 3, [1 / 3] * 3, [0.5, 0.5, 0.0]], atol=1e-12)


@pytest.mark.parametrize("code", ["one_vs_rest", "all_pairs", "ecoc"])
def test_columns_combined_are_the_classifier(study, flowers, code):
    """Models are trained once for all combiners; each must be what the public class makes."""
    words = {"Norm": "normalize", "LS": "least_squares", "Coup": "coupling"}
    chosen = tuple(study.CALIBRATIONS) if code == "one_vs_rest" else ("PAV",)
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for calibration, matrix, r in study.probabilities(flowers, GaussianNB(), code, chosen):
            for combine, p in study.combined(r, matrix, flowers.y):
                if combine == study.PRINTED:
                    continue
                model = cal.CodedClassifier(
                    GaussianNB(),
                    code=code,
                    combine=words[combine],
                    calibrator=cal.Isotonic() if calibration else None,
                    cv=study.CALIBRATIONS.get(calibration, 3),
                    method=study.score if calibration else "auto",
                ).fit(flowers.X, flowers.y)
                np.testing.assert_allclose(p, model.predict_proba(flowers.X_new), atol=1e-7)
                checked += 1
    assert checked == (9 if code == "one_vs_rest" else 4)


def test_lines_tell_mean_squares_errors_and_ties(study, flowers):
    found = pd.DataFrame(study.lines(flowers, GaussianNB(), "one_vs_rest", {"model": "NB"}))
    assert len(found) == 3 * 4
    cells = found.set_index(["calibration", "combine"])
    model = cal.CodedClassifier(GaussianNB(), calibrator=None).fit(flowers.X, flowers.y)
    p = model.predict_proba(flowers.X_new)
    square = ((p - np.eye(3)[flowers.y_new]) ** 2).sum(axis=1).mean()
    assert cells.loc[("", "Norm"), "MSE"] == pytest.approx(square, rel=1e-9)
    wrong = (p.argmax(axis=1) != flowers.y_new).mean()
    assert cells.loc[("", "Norm"), "error"] == pytest.approx(wrong)
    assert (found["tied"] <= 1).all()


def test_words_are_counted_or_only_there(study):
    X = csr_matrix(np.array([[0.0, 3.0], [1.0, 0.0]]))
    assert study.as_words(X, "counts") is X
    assert study.as_words(X, "presence").toarray().tolist() == [[0, 1], [1, 0]]


def test_published_table_is_that_of_the_text(study):
    assert len(study.PUBLISHED) == 6
    mse = {pair: cell[0][0] for pair, cell in study.PUBLISHED.items()}
    assert all(mse["PAV", how] < mse["", how] for how in ("Norm", "LS", "Coup"))
    assert min(mse, key=mse.get) == ("PAV", "Norm")


# --- the tables, at a size for tests --------------------------------------------------------------


def test_calibration_helps_on_pendigits(study, shared):
    """Table 4: lower MSE and error with any combiner, and less depends on the combiner."""
    rows = study.pendigits("Gaussian")
    assert (len(rows.y), len(rows.y_new)) == (7494, 3498)
    found = pd.DataFrame(study.lines(rows, GaussianNB(), "one_vs_rest", {}))
    mse = found.pivot(index="combine", columns="calibration", values="MSE")
    assert (mse["PAV"] < mse[""] - 0.06).all()
    assert np.ptp(mse.loc[["Norm", "LS", "Coup"], "PAV"]) < np.ptp(mse.loc[["Norm", "LS"], ""])
    error = found.pivot(index="combine", columns="calibration", values="error")
    assert (error["PAV"] < error[""]).all()


def test_calibration_helps_on_newsgroups(study, shared):
    """Table 5, one split: PAV lowers the MSE, normalisation most; printed coupling is near LS."""
    X, y, test = study.newsgroups("19997")
    assert test is None
    assert X.shape == (19997, 60498)
    train, new = study.split(y, 0)
    rows = study.Rows(X[train], y[train], X[new], y[new])
    case = {"calibrations": ("PAV",)}
    found = pd.DataFrame(study.lines(rows, MultinomialNB(), "one_vs_rest", case))
    mse = found.pivot(index="combine", columns="calibration", values="MSE") / 20
    assert (mse["PAV"] < mse[""]).all()
    assert mse["PAV"].idxmin() == "Norm"
    gap = abs(mse.loc[study.PRINTED, "PAV"] - mse.loc["LS", "PAV"])
    assert gap < 0.0002 < mse.loc["LS", "PAV"] - mse.loc["Coup", "PAV"]


def test_the_dated_file_has_its_own_split(study, shared):
    X, y, test = study.newsgroups("bydate")
    assert (test.sum(), len(y), X.shape[1]) == (7505, 18774, 61188)
    assert len(np.unique(y)) == 20


# --- what is kept ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(root):
    return pd.read_csv(root / "experiments" / "results" / "multiclass.csv").fillna("")


def test_committed_results_are_of_this_study(study, root, kept):
    assert not kept.duplicated(study.CELL).any()
    assert np.isfinite(kept[study.MEASURES]).all().all()
    assert set(kept["data"]) == {"pendigits", "19997", "bydate"}
    assert set(kept["calibration"]) == {"", *study.CALIBRATIONS}
    news = kept[kept["data"] == "19997"]
    assert set(news["split"]) == set(range(study.SPLITS))
    assert set(news["kind"]) == {f"{kind}, {alpha:g}" for kind, alpha in study.WORDS}
    assert set(kept[kept["data"] == "pendigits"]["code"]) == {"one_vs_rest", "all_pairs", "ecoc"}
    page = (root / "experiments" / "results" / "multiclass.md").read_text(encoding="utf-8")
    assert page == study.page(kept) + "\n"


def test_committed_results_are_run_again(study, kept, shared):
    """Pendigits in bins, one against the rest, figure by figure."""
    rows = study.pendigits("ten bins")
    case = {"data": "pendigits", "kind": "ten bins", "model": "NB", "split": 0}
    model = study.CategoricalNB(min_categories=10)
    again = pd.DataFrame(study.lines(rows, model, "one_vs_rest", case))
    both = again.merge(kept, on=study.CELL, suffixes=("", " kept"))
    assert len(both) == len(again) == 12
    for measure in study.MEASURES:
        np.testing.assert_allclose(both[measure], both[f"{measure} kept"], atol=2e-6)


def test_examples_of_the_docs_run(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (root / "docs" / "multiclass.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 6
    names = {}
    for code in blocks:
        exec(code, names)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}
