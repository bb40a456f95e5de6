"""Pakdaman Naeini and Cooper 2018, reproduced: the logic on toy data, the pages on what is kept."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from studies import experiment


@pytest.fixture(scope="module")
def part(root):
    """A module of the paper's package, by name."""
    return lambda name: experiment(root, f"papers.naeini2018.{name}")


@pytest.fixture(scope="module")
def paper(root):
    return experiment(root, "papers").paper("naeini2018")


@pytest.fixture(scope="module")
def kept(root, paper):
    """The committed results of every table."""
    return experiment(root, "papers.run").results(root / "experiments" / "results", paper)


# --- cells ----------------------------------------------------------------------------------------


def test_a_quick_run_is_part_of_the_full_one(paper):
    for table in paper.tables:
        quick, full = ([tuple(c.items()) for c in table.cells(q)] for q in (True, False))
        assert set(quick) <= set(full), table.name
        assert len(set(full)) == len(full)
        assert {tuple(c) for c in table.cells(False)} == {tuple(table.keys)}


def test_the_full_run_is_the_papers(part, paper):
    cells = paper.table("3-6").cells(False)
    assert len(cells) == 38 * 4 * 10
    datasets = part("datasets")
    names = [*datasets.DATASETS, *datasets.MISSING]
    assert len(set(names)) == len(names) == 40


def test_committed_results_hold_every_quick_cell(root, paper):
    run = experiment(root, "papers.run")
    for table in paper.tables:
        journal = run.journal(root / "experiments" / "results", paper, table)
        assert journal.todo(table.cells(True)) == [], table.name


# --- simulated data -------------------------------------------------------------------------------


def test_kernel_and_data_are_the_papers(part):
    simulated = part("simulated")
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 3)), rng.normal(size=(4, 3))
    d = u @ v.T
    np.testing.assert_allclose(simulated.quadratic(u, v), d + d**2)
    X, y = simulated.circular(rng)
    radius = np.hypot(*X.T)
    assert y.sum() == simulated.ROWS / 2
    assert ((radius > 2) == (y == 1)).all()
    assert radius[y == 0].mean() == pytest.approx(1, abs=0.1)  # uniform in radius, not in area


#: methods that need no compiling: enough to see that a cell is what it says
QUICK = ("none", "Isotonic")


def test_methods_are_what_their_names_say(part):
    made = {name: make().get_params() for name, make in part("methods").METHODS.items()}
    variants = [made[name]["variant"] for name in ("ENIR paper", "ENIR authors", "ENIR")]
    assert variants == ["paper", "authors", "default"]
    assert (made["ELiTE paper"]["scale"], made["ELiTE paper"]["clip"]) == ("raw", "paper")
    assert made["ELiTE near"]["falls"] == "priced"
    assert made["ELiTE"] == cal.ELiTE().get_params()


def test_a_cell_of_table_1_is_what_is_kept(part, kept, monkeypatch):
    simulated = part("simulated")
    few = {name: simulated.METHODS[name] for name in QUICK}
    monkeypatch.setattr(simulated, "METHODS", few)
    frame = kept["1"].set_index(["problem", "seed"])
    cell = {"problem": simulated.SOFT, "seed": 1}
    for name, value in simulated.run(**cell).items():
        assert value == pytest.approx(frame.loc[tuple(cell.values()), name], rel=1e-4), name


@pytest.mark.parametrize("method", ["Isotonic", "BBQ", "ENIR paper", "ENIR authors", "ENIR"])
def test_table_1a_is_reproduced(part, kept, method):
    simulated = part("simulated")
    for measure, row in simulated.groups(kept["1"], simulated.LINEAR).items():
        assert row[method].within, measure
        if measure != "MCE":  # a spread that would let anything pass is no evidence
            assert row[method].sd < 0.025


def test_table_1b_needs_a_smaller_cost_than_1(part, kept):
    simulated = part("simulated")
    soft, sharp = (simulated.groups(kept["1"], name) for name in (simulated.SOFT, simulated.SHARP))
    assert all(row["none"].within for row in soft.values())
    assert not any(sharp[name]["none"].within for name in ("RMSE", "ECE"))


def test_only_a_method_that_may_fall_recovers_what_the_linear_score_hides(part, kept):
    frame = kept["1"]
    mean = frame[frame["problem"] == part("simulated").LINEAR].mean(numeric_only=True)
    assert mean["none AUC"] < 0.56
    assert mean["Isotonic AUC"] < 0.7
    assert min(mean["BBQ AUC"], mean["ENIR AUC"], mean["ELiTE AUC"]) > 0.82


def test_large_ece_of_isotonic_is_made_by_the_order_of_ties(part, kept):
    frame = kept["1"]
    mean = frame[frame["problem"] == part("simulated").LINEAR].mean(numeric_only=True)
    assert mean["Isotonic ECE"] > 0.3
    assert mean["Isotonic ECE, ties together"] < 0.05
    assert mean["Isotonic ECE, equal width"] < 0.05


def test_a_published_mean_of_ten_is_held_against_the_error_of_the_difference(part):
    simulated = part("simulated")
    auc = [0.80 + 0.01 * (-1) ** seed for seed in range(12)]
    frame = pd.DataFrame({"problem": simulated.LINEAR, "ENIR AUC": auc, "ENIR RMSE": 0.381})
    found = simulated.groups(frame, simulated.LINEAR)
    assert not found["AUC"]["ENIR"].within  # .85 is five standard deviations of a run away
    assert found["RMSE"]["ENIR"].within  # .38 after rounding
    nearer = frame.assign(**{"ENIR AUC": np.array(auc) + 0.03})
    cell = simulated.groups(nearer, simulated.LINEAR)["AUC"]["ENIR"]
    assert cell.within_a_run
    assert not cell.within
    assert cell._replace(mean=0.85).within


def test_the_boundary_is_where_the_decision_turns(part):
    class Ellipse:
        def decision_function(self, X):
            return np.hypot(X[:, 0] / 1.5, X[:, 1] / 3.0) - 1.0

    radius = part("simulated").boundary(Ellipse(), angles=4)
    np.testing.assert_allclose(radius, [1.5, 3.0, 1.5, 3.0], atol=0.011)


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """A number with gaps, a word, a number of two values, and labels that all of them bear on."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 160)
    z = rng.normal(size=160) + y
    X = pd.DataFrame(
        {
            "z": np.where(rng.random(160) < 0.1, np.nan, z),
            "flat": 2.0,
            "word": np.where(rng.random(160) < 0.3 + 0.4 * y, "b", "a"),
            "two": (rng.random(160) < 0.2 + 0.5 * y).astype(float),
        }
    )
    return X, y


def test_naive_bayes_of_many_numbers_is_the_same_naive_bayes(root, part, mixed):
    X, y = mixed
    X = X.assign(w=np.random.default_rng(1).normal(size=len(y)) - 0.5 * y)
    slow = experiment(root, "naive_bayes").MixedNaiveBayes().fit(X[:120], y[:120])
    fast = part("models").NaiveBayes().fit(X[:120], y[:120])
    np.testing.assert_allclose(fast.probability(X), slow.predict_proba(X)[:, 1], rtol=1e-9)


def test_naive_bayes_takes_two_valued_numbers_for_words(part, mixed):
    words = part("models").two_valued_as_words(mixed[0])
    numbers = [name for name in words if pd.api.types.is_numeric_dtype(words[name])]
    assert numbers == ["z"]
    assert mixed[0]["two"].dtype == float  # the frame that came is left alone


def test_complete_numbers_are_standardised_as_the_studies_do(root, part):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(3.0, 2.0, (30, 4)), columns=list("abcd"))
    train, test = np.arange(20), np.arange(20, 30)
    A, B = part("models").matrices(X, train, test)
    coder = experiment(root, "study").encode(X.iloc[train])
    np.testing.assert_allclose(A, coder.transform(X.iloc[train]))
    np.testing.assert_allclose(B, coder.transform(X.iloc[test]))


@pytest.mark.parametrize("model", ["LR", "SVM", "NB"])
def test_models_know_nothing_of_the_test_rows(part, mixed, model):
    X, y = mixed
    ask = part("models").ask
    train, test = np.arange(100), np.arange(100, 160)
    asked = ask(model, X, y, train, test)
    assert ((asked.own >= 0) & (asked.own <= 1)).all()
    assert (len(asked.own), len(asked.new)) == (100, 60)
    assert cal.metrics.auc(y[test], asked.new) > 0.7
    other = X.copy()
    other.loc[110:, "z"] = 1e3  # other test rows, and other labels of them
    again = ask(model, other, np.where(np.arange(160) < 100, y, 1 - y), train, test)
    np.testing.assert_array_equal(again.own, asked.own)
    np.testing.assert_array_equal(again.new[:10], asked.new[:10])


# --- cross-validation -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(7)
    y = (np.arange(150) % 3 == 0).astype(int)
    X = pd.DataFrame(rng.normal(size=(150, 3)) + y[:, None], columns=list("abc"))
    return X, y


@pytest.fixture
def crossval(part, toy, monkeypatch):
    module = part("crossval")
    monkeypatch.setattr(module, "rows", lambda dataset, most, seed: toy)
    monkeypatch.setattr(module, "warm", lambda: None)
    few = {name: module.CALIBRATORS[name] for name in QUICK}
    monkeypatch.setattr(module, "CALIBRATORS", few)
    return module


def test_a_run_is_deterministic_and_judges_left_out_rows(crossval, toy):
    row = crossval.run("toy", "LR", 4)
    again = crossval.run("toy", "LR", 4)
    figures = [name for name in row if not name.endswith(" time")]
    assert {name: again[name] for name in figures} == {name: row[name] for name in figures}
    assert all(row[f"{name} time"] >= 0 for name in crossval.CALIBRATORS)
    X, y = toy
    splits = StratifiedKFold(10, shuffle=True, random_state=4)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    p = cross_val_predict(model, X, y, cv=splits, method="predict_proba")[:, 1]
    assert row["none RMSE"] == pytest.approx(cal.metrics.rmse(y, p))
    assert row["none ECE, equal width"] == pytest.approx(cal.metrics.ece(y, p))
    areas = [cal.metrics.auc(y[test], p[test]) for _, test in splits.split(X, y)]
    assert row["none AUC, folds"] == pytest.approx(np.mean(np.maximum(areas, 1 - np.array(areas))))


def test_calibrators_are_fitted_to_the_training_rows(crossval, toy):
    """As in the paper; what it does to isotonic regression is seen in its test error."""
    X, y = toy
    row = crossval.run("toy", "SVM", 0)
    total = 0.0
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        own, new = crossval.ask("SVM", X, y, train, test)
        p = cal.Isotonic().fit(own, y[train]).calibrate(new)
        total += float(np.sum((p - y[test]) ** 2))
    assert row["Isotonic RMSE"] == pytest.approx(math.sqrt(total / len(y)))


def test_a_fold_of_one_class_has_no_area(crossval):
    y = np.array([0, 1, 1, 0, 0, 0])
    p = np.array([0.1, 0.9, 0.8, 0.2, 0.3, 0.4])
    found = crossval.in_folds(y, p, [np.arange(3), np.arange(3, 6)])
    assert found["AUC"] == 1.0
    assert found["ACC"] == 1.0
    parts = [cal.metrics.rmse(y[:3], p[:3]), math.sqrt(np.mean(p[3:] ** 2))]
    assert found["RMSE"] == pytest.approx(np.mean(parts))


# --- tables of the runs ---------------------------------------------------------------------------


def _runs(datasets=20, **columns):
    """Two runs of some datasets; a column is a figure per dataset, the same for all models."""
    rows = [
        {"dataset": f"d{i}", "model": model, "seed": seed}
        | {name.replace("_", " "): values[i] for name, values in columns.items()}
        for seed in range(2)
        for i in range(datasets)
        for model in ("LR", "SVM", "NB")
    ]
    return pd.DataFrame(rows)


def test_runs_are_averaged_and_noise_is_no_difference(part):
    frame = pd.DataFrame(
        {
            "dataset": ["b", "b", "a", "a"],
            "model": ["LR", "LR", "LR", "NB"],
            "BBQ AUC": [0.7, 0.8, 0.6, 0.1],
            "ENIR AUC": [0.75, 0.75 + 1e-9, 0.6, 0.1],
        }
    )
    found = part("grids").grid(frame, "LR", ("BBQ", "ENIR"), "AUC")
    assert list(found.index) == ["b", "a"]
    assert found.loc["b"].tolist() == [0.75, 0.75]


def test_gains_are_relative_and_say_which_side_of_zero(part):
    gains = part("gains")
    base = np.linspace(0.1, 0.4, 20)
    frame = _runs(**{"none_ECE": base, "ENIR paper_ECE": 0.8 * base, "BBQ_ECE": base * 1.5})
    pooled = part("grids").Reading("ENIR paper", "", "")
    found = gains.gain(frame, "SVM", "ECE", pooled)
    assert found.low == pytest.approx(-0.2, abs=1e-4)
    assert found.high == pytest.approx(-0.2, abs=1e-4)
    assert found.verdict("ECE") == "better"
    assert found.verdict("ACC") == "worse"
    assert gains.gain(frame, "SVM", "ECE", pooled._replace(enir="BBQ")).verdict("ECE") == "worse"
    interval = gains.Interval
    assert interval(-0.1, 0.2).verdict("AUC") == "no difference"
    assert interval(-0.1, 0.2).meets(interval(0.2, 0.3))
    assert not interval(-0.1, 0.2).meets(interval(0.21, 0.3))
    assert str(interval(-0.1, 0.2, 3)) == "[-0.100, 0.200] (3 left out)"


def test_published_markers_follow_from_published_ranks(part):
    """The paper's own ranks, through our F_F and Holm, give its thirty markers."""
    ranks = part("ranks")
    for model in ranks.TABLES:
        for measure in ("AUC", "ACC", "RMSE", "ECE", "MCE"):
            assert ranks.follows(model, measure), (model, measure)
    marks = [
        mark
        for model in ranks.TABLES
        for measure in ("AUC", "ACC", "RMSE", "ECE", "MCE")
        for mark in ranks.printed(model, measure).marks.values()
    ]
    assert (marks.count("*"), marks.count("")) == (12, 18)


def test_ranks_and_markers_of_runs(part):
    ranks = part("ranks")
    pooled = part("grids").Reading("ENIR paper", "", "")
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, (2, 20))
    base = np.linspace(0.2, 0.3, 20)
    frame = _runs(
        **{
            "Isotonic_RMSE": base + noise[0],
            "BBQ_RMSE": base + 0.1,
            "ENIR paper_RMSE": base + noise[1],
        }
    )
    found = ranks.ranking(frame, "NB", "RMSE", pooled)
    assert found.ranks["BBQ"] == 3.0
    assert found.marks == {"IsoRegC": "", "BBQ": "*"}
    assert found.holding("*") == ("BBQ",)
    assert found.text("BBQ") == "3.000*"
    best = min(found.ranks, key=found.ranks.get)
    assert found.text(best).startswith("**")
    turned = frame.rename(columns=lambda name: name.replace("RMSE", "ACC"))
    found = ranks.ranking(turned, "NB", "ACC", pooled)  # more is better: ENIR is now behind BBQ
    assert found.ranks["BBQ"] == 1.0
    assert found.holding("⊛") == ("BBQ",)
    alike = frame.assign(**{"BBQ RMSE": frame["ENIR paper RMSE"]})
    assert ranks.ranking(alike, "NB", "RMSE", pooled).holding("*") == ()


def test_difference_of_elite_and_enir(part):
    elite = part("elite")
    base = np.linspace(0.5, 0.9, 20)
    gain = np.full(20, 0.002) + np.linspace(0, 1e-4, 20)
    columns = {"ENIR paper_AUC": base, "ELiTE paper_AUC": base + gain}
    times = {"ENIR paper_time": np.full(20, 0.1), "ELiTE paper_time": np.full(20, 0.9)}
    frame = _runs(**columns, **times)
    found = elite.difference(frame, "LR", "AUC", elite.Pair("ELiTE paper", "ENIR paper", ""))
    assert found.median == pytest.approx(0.00205, abs=1e-5)
    assert found.p < 1e-4
    assert (found.verdict("AUC"), found.verdict("MCE")) == ("better", "worse")
    assert str(found).startswith("**+0.002")
    assert elite.seconds(frame, "LR", "ELiTE paper") == pytest.approx(18.0)
    assert elite.Difference(0.1, 0.2).verdict("AUC") == "not shown"
    many = np.where(np.arange(20) < 11, 0.0, 0.01 + base / 1e3)  # the median is 0
    tied = _runs(**{"ENIR paper_ACC": base, "ELiTE paper_ACC": base + many})
    found = elite.difference(tied, "LR", "ACC", elite.Pair("ELiTE paper", "ENIR paper", ""))
    assert (found.median, found.verdict("ACC")) == (0.0, "better")


def test_ranks_are_among_datasets_that_all_models_have(part):
    frame = _runs(3, x=np.zeros(3)).query("not (dataset == 'd1' and model == 'NB')")
    assert set(part("real").complete(frame)["dataset"]) == {"d0", "d2"}


# --- liver-disorders ------------------------------------------------------------------------------


def test_first_bins_out_of_order_at_either_end(part):
    liver = part("liver")
    rows = [[0.1, 0.2, 0.5, 0.7, 0.6], [0.3, 0.2, 0.5, 0.7, 0.8]]
    columns = [f"new rows frequency {i}" for i in range(1, 6)]
    frame = pd.DataFrame(rows, columns=columns)
    assert liver.violated(frame, "new rows", "class 2 positive").tolist() == [False, True]
    assert liver.violated(frame, "new rows", "class 1 positive").tolist() == [True, False]


def test_bins_of_liver_disorders_are_of_equal_frequency(part, shared, kept):
    liver = part("liver")
    row = liver.run("LR", 0)
    rate = np.mean([row[f"new rows frequency {i}"] for i in range(1, 6)])
    assert rate == pytest.approx(200 / 345)  # 345 rows in five bins of 69
    frame = kept["figure2"].set_index(["model", "seed"])
    for name, value in row.items():
        assert value == pytest.approx(frame.loc[("LR", 0), name], rel=1e-4)


# --- datasets -------------------------------------------------------------------------------------


def test_every_dataset_is_known_and_complete_rows_are_complete(root, part, shared):
    datasets = part("datasets")
    data = experiment(root, "data")
    for name, found in datasets.DATASETS.items():
        assert data.task(found.task).rows > 40, name
    X, y = datasets.rows("breast cancer", 100, 0)
    assert len(y) == 683
    assert not X.isna().any().any()
    assert len(datasets.rows("breast", 10**6, 0)[1]) == 699
    assert len(datasets.rows("pageblocks", 300, 0)[1]) == 300


def test_quartiles_are_the_middles_of_halves(part):
    found = part("datasets").five(pd.Series([1.0, 2.0, 4.0, 8.0]))
    assert list(found.values()) == [1.0, 1.5, 3.0, 6.0, 8.0]


# --- what is shown --------------------------------------------------------------------------------


def test_pages_and_claims_of_what_is_kept(paper, kept):
    for table in paper.tables:
        page = table.page(kept[table.name])
        assert not re.search(r"\bnan\b", page), table.name
        assert "| " in page
    claims = paper.claims(kept)
    assert len(claims) > 20
    future = [claim for claim in claims if claim.published == "left as future work"]
    assert [claim.tables for claim in future] == [("union",), ("multiclass",), ("multilabel",)]
    assert {claim.holds for claim in claims if claim not in future} == {True, False}
    assert all(claim.tables for claim in claims)
    for claim in claims:
        assert not re.search(r"\bnan\b", claim.ours + claim.published)


def test_claims_without_results_are_left_out(paper, kept):
    none = {name: frame[:0] for name, frame in kept.items()}
    assert paper.claims(none) == []
    assert "Fewer than two" in paper.table("3-6").page(kept["3-6"][:1])


def test_pictures_are_drawn_and_small(paper, kept, tmp_path):
    drawn = [
        name
        for table in paper.tables
        if table.figures
        for name in table.figures(kept[table.name], tmp_path)
    ]
    assert len(drawn) == 5
    for name in drawn:
        assert 5_000 < (tmp_path / name).stat().st_size < 150_000
