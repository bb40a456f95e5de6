"""Niculescu-Mizil and Caruana (2005), at a size for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from studies import experiment

HOME = "papers.niculescu2005"


@pytest.fixture(scope="module")
def paper(root):
    return experiment(root, HOME).PAPER


@pytest.fixture(scope="module")
def part(root):
    """A module of the paper's package."""
    return lambda name: experiment(root, f"{HOME}.{name}")


@pytest.fixture(scope="module")
def rows(part):
    """200 rows to train on, 100 to select on, 300 to test on; two columns and noise."""
    problems = part("problems")
    random = np.random.default_rng(5)
    X = random.normal(size=(600, 4))
    odds = 2.0 * X[:, 0] + X[:, 1] ** 2 - 1.0
    y = (random.random(600) < 1 / (1 + np.exp(-odds))).astype(int)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["d"] = np.where(X[:, 3] > 0, "up", "down")
    places = problems.split(600, 0, 200, 100)
    return problems.Rows(*(problems.Part(X[p], frame.iloc[p], y[p]) for p in places))


@pytest.fixture
def toy(part, rows, monkeypatch):
    """Every problem is the toy, wherever rows are asked for."""
    for name in ("table2", "figure1", "figure2", "figure5", "figure6"):
        monkeypatch.setattr(part(name), "rows_of", lambda dataset, seed: rows)
    monkeypatch.setattr(part("figure5"), "SIZES", (32, 64, 128))


# --- cells --------------------------------------------------------------------------------------


def test_a_quick_run_is_a_part_of_the_full_one_and_has_every_table(paper):
    for table in paper.tables:
        quick, full = ([tuple(c.items()) for c in table.cells(q)] for q in (True, False))
        assert quick
        assert set(quick) < set(full)
        assert len(set(full)) == len(full)
        assert all([key for key, _ in cell] == table.keys for cell in full)


def test_all_styles_and_steps_of_the_paper_are_in_the_full_run(paper):
    found = pd.DataFrame(paper.table("2").cells(False))
    styles = found.groupby("learner")["style"].nunique()
    assert styles["stumps"] == 5
    assert styles["trees"] == 10
    assert found.groupby("learner")["steps"].max().to_dict() == {
        "stumps": 8192,
        "trees": 2048,
        "two levels": 2048,
    }


CELLS = {
    "2": {"learner": "stumps", "style": "gini", "steps": 8},
    "figure1": {"style": "BAYES", "steps": 4},
    "figure2": {"style": "BAYES", "steps": 4},
    "figure5": {"style": "ID3", "steps": 4},
    "figure6": {"learner": "BST-DT", "style": "ID3", "steps": 4},
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_the_same_again(paper, toy, name):
    cell = {"dataset": "COV_TYPE", **CELLS[name], "seed": 0}
    assert set(cell) == set(paper.table(name).keys)
    first, again = (paper.table(name).run(**cell) for _ in range(2))
    assert first == again
    assert np.isfinite(list(first.values())).all()


@pytest.mark.parametrize("learner", ["SVM", "RF", "BAG-DT", "ANN", "KNN", "DT", "LOGREG", "NB"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_other_learner_beats_the_base_rate_once_calibrated(part, rows, learner):
    figure6, others = part("figure6"), part("others")
    style = next(iter(others.OTHERS[learner]))
    found = others.scores_of(learner, style, rows, 0)
    row = figure6.calibrated(rows, (found.validation, found.test), 1, found.margins)
    rate = rows.train.y.mean()
    assert row["Platt 1 squared test"] < rate * (1 - rate)
    assert found.margins == (learner == "SVM")


# --- Table 2 ------------------------------------------------------------------------------------


def test_fewer_steps_are_the_stages_of_more(part, rows):
    """So a longer run repeats the figures of a shorter one."""
    short, long = (part("table2").staged_figures(rows, "trees", "ID3", n, 0) for n in (4, 8))
    assert short.items() <= long.items()
    assert len(long) == 3 * len(part("table2").METHODS) * 4  # steps, methods, measures and parts


def test_the_figures_are_those_of_the_one_line_protocol(part, rows):
    """Three pooled folds, as `CalibratedClassifier` has them."""
    row = part("table2").staged_figures(rows, "stumps", "gini", 8, 0)
    folds = part("problems").folds(rows.train.y, 0)
    booster = cal.boosting.AdaBoost("stump", n_estimators=8, random_state=0)
    model = cal.CalibratedClassifier(booster, cal.Platt(scale="raw"), cv=folds)
    p = model.fit(rows.train.X, rows.train.y).calibrate(rows.test.X)
    assert row["Platt 8 squared test"] == pytest.approx(cal.metrics.brier(rows.test.y, p), rel=1e-9)
    plain = booster.fit(rows.train.X, rows.train.y)
    p = cal.LogisticCorrection().fit(plain.decision_function(rows.train.X), rows.train.y)
    bits = cal.metrics.log_loss(
        rows.test.y, p.calibrate(plain.decision_function(rows.test.X)), base=2
    )
    assert row["logistic correction 8 bits test"] == pytest.approx(bits, rel=1e-9)


def test_splits_have_no_row_in_common(part):
    places = part("problems").split(50, 3, 20, 10)
    assert [len(p) for p in places] == [20, 10, 20]
    assert sorted(np.concatenate(places)) == list(range(50))
    assert not np.array_equal(places[0], part("problems").split(50, 4, 20, 10)[0])


def _line(seed, style, figures, steps=4, dataset="ADULT"):
    """A row of Table 2; figures are step → (validation, test)."""
    row = {"dataset": dataset, "learner": "trees", "style": style, "steps": steps, "seed": seed}
    for step, (validation, test) in figures.items():
        row |= {f"raw {step} bits validation": validation, f"raw {step} bits test": test}
    return row


def test_selection_looks_at_validation_and_reports_the_test(part):
    frame = pd.DataFrame(
        [_line(0, "a", {2: (0.5, 0.1), 4: (0.4, 0.9)}), _line(0, "b", {2: (0.3, 0.7)}, 2)]
    )
    (best,) = part("selection").chosen(frame).to_dict("records")
    assert (best["style"], best["step"], best["test"]) == ("b", 2, 0.7)


def test_selection_is_among_what_the_first_two_seeds_share(part):
    lines = [
        _line(0, "a", {2: (0.5, 0.1), 4: (0.4, 0.2)}),
        _line(1, "a", {2: (0.5, 0.3)}, 2),
        _line(0, "b", {2: (0.1, 0.9)}),  # of one seed only
        _line(2, "b", {2: (0.1, 0.9)}),  # this seed lacks style a
        _line(3, "a", {2: (0.6, 0.4), 4: (0.1, 0.5)}),
    ]
    best = part("selection").chosen(pd.DataFrame(lines)).set_index("seed")
    assert best["test"].to_dict() == {0: 0.1, 1: 0.3, 3: 0.4}
    assert set(best["step"]) == {2}


def test_means_need_every_problem(part):
    selection = part("selection")
    lines = [_line(0, "a", {2: (0.5, v)}, dataset=d) for d, v in (("x", 0.2), ("y", 0.4))]
    best = selection.chosen(pd.DataFrame([*lines, _line(1, "a", {2: (0.5, 0.6)}, dataset="x")]))
    means = selection.mean_of_problems(best, ("x", "y"))["trees", "bits", "raw"]
    assert means[0] == pytest.approx(0.3)
    assert np.isnan(means[1])


def test_published_means_are_of_the_four_problems(root, part):
    """The mean of eight is printed, too; that of the four problems at hand is another one."""
    frame = experiment(root, "papers.published").published("niculescu2005", "2")
    raw = frame[(frame["model"] == "stumps") & (frame["method"] == "raw")].set_index("dataset")
    four = raw.loc[["COV_TYPE", "ADULT", "LETTER.P1", "LETTER.P2"], "value"].mean()
    found = part("table2_page").printed("stumps", "raw", part("selection").MEAN)
    assert found == pytest.approx(four)
    assert found != pytest.approx(raw.loc["MEAN", "value"], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "holds"),
    [(-0.23, True), (-0.18, True), (-0.16, False), (-0.30, True), (-0.32, False), (0.23, False)],
)
def test_a_change_holds_by_sign_and_size(part, change, holds):
    assert part("claims").as_claimed(change, -0.23) == holds


@pytest.mark.parametrize(
    ("value", "text"), [(-0.284, "−28 %"), (0.016, "+2 %"), (-0.001, "0 %"), (0.001, "0 %")]
)
def test_nothing_has_no_sign(part, value, text):
    assert part("claims").percent(value) == text


# --- figures ------------------------------------------------------------------------------------


def test_shapes_are_read_as_they_were_written(part):
    drawing, figure1 = part("drawing"), part("figure1")
    y, p = np.array([0, 0, 1, 1, 1]), np.array([0.0, 0.3, 0.34, 0.7, 1.0])
    found = drawing.read_shape(drawing.shape("raw", y, p), "raw")
    assert found["cell"][[0, 6, 14, 19]].tolist() == [1, 2, 1, 1]
    assert found["n"].tolist() == [1, 0, 0, 2, 0, 0, 0, 1, 0, 1]
    assert found["mean"][3] == pytest.approx(0.32)
    assert found["fraction"][3] == pytest.approx(0.5)
    assert np.isnan(found["mean"][1])
    assert figure1.near_ends(found) == pytest.approx(0.4)
    low, high = figure1.bend(found)
    assert low == pytest.approx((0.5 - 0.32) * 2 / 3)
    assert high == pytest.approx(0.15)


def test_predictions_leave_the_ends_with_more_steps(part, toy):
    row = part("figure1").run("COV_TYPE", "BAYES", 32, 0)
    drawing, figure1 = part("drawing"), part("figure1")
    first, last = (figure1.near_ends(drawing.read_shape(row, s)) for s in ("1", "32"))
    assert last < first


@pytest.mark.parametrize(
    ("platt", "isotonic", "size"),
    [([3, 2, 2], [4, 1, 1], 64), ([1, 1, 1], [2, 2, 2], None), ([2, 2, 2], [1, 3, 1], 128)],
)
def test_crossing_is_where_isotonic_stays_better(part, toy, platt, isotonic, size):
    assert part("figure5").crossing(np.array(platt), np.array(isotonic)) == size


def test_margins_are_scaled_by_the_rows_to_select_on(part, rows):
    calibrated = part("figure6").calibrated
    f = [10.0 * part.X[:, 0] for part in rows[1:]]
    row = calibrated(rows, tuple(f), 1, margins=True)
    low, high = f[0].min(), f[0].max()
    p = np.clip((f[1] - low) / (high - low), 0, 1)
    assert row["raw 1 squared test"] == pytest.approx(np.mean((rows.test.y - p) ** 2))


def test_numbers_become_words_by_the_training_rows(part, rows):
    found = part("others").in_bins(rows.train, rows.test, bins=4)
    edges = np.quantile(rows.train.frame["a"], [0.25, 0.5, 0.75])
    assert found["a"].tolist() == [str(int((edges <= v).sum())) for v in rows.test.frame["a"]]
    assert found["d"].tolist() == rows.test.frame["d"].tolist()


# --- pages --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def committed(root, paper):
    return experiment(root, "papers.run").results(root / "experiments" / "results", paper)


def test_pages_and_claims_are_made_of_the_committed_results(paper, committed, part):
    for table in paper.tables:
        text = table.page(committed[table.name])
        assert "nan" not in text
        for name in part("problems").PROBLEMS if table.name != "figure1" else ("BAYES",):
            assert name in text
    found = paper.claims(committed)
    assert len(found) == 30
    assert {claim.tables for claim in found} == {(table.name,) for table in paper.tables}
    assert all("nan" not in claim.ours for claim in found)
    assert {claim.holds for claim in found} == {True, False}


def test_claims_wait_for_all_problems(paper, committed):
    some = {name: frame[frame["dataset"] != "ADULT"] for name, frame in committed.items()}
    assert all("COV_TYPE" in claim.text for claim in paper.claims(some))


def test_pictures_are_drawn_small_and_legible(paper, committed, tmp_path):
    for table in paper.tables:
        if table.figures is not None:
            for name in table.figures(committed[table.name], tmp_path):
                size = (tmp_path / name).stat().st_size
                assert 5_000 < size < 150_000


def test_real_rows_are_split_as_the_notes_say(part, shared):
    rows = part("problems").rows_of("LETTER.P1", 0)
    assert [len(p.y) for p in rows] == [4000, 1000, 15_000]
    assert 0.03 < rows.test.y.mean() < 0.045
    assert rows.train.X.mean(axis=0) == pytest.approx(np.zeros(16), abs=1e-9)
