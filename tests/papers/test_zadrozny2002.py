"""Zadrozny and Elkan 2002, run again: what its tables are made of, and what is kept of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import calibrant as cal
from studies import experiment

NAME = "papers.zadrozny2002"
PARTS = (
    "binning",
    "claims",
    "coding",
    "columns",
    "curves",
    "newsgroups",
    "pendigits",
    "profit",
    "scores",
    "two_class",
)


@pytest.fixture(scope="module")
def paper(root):
    return experiment(root, NAME).PAPER


@pytest.fixture(scope="module")
def parts(root):
    """The modules of the paper by name."""
    return {name: experiment(root, f"{NAME}.{name}") for name in PARTS}


@pytest.fixture(scope="module")
def kept(root, paper):
    return experiment(root, "papers.run").results(root / "experiments" / "results", paper)


# --- how rows are seen ----------------------------------------------------------------------------


def test_cuts_of_equal_width_and_of_equal_mass(parts):
    coding = parts["coding"]
    x, y = np.array([0.0, 1, 2, 3, 10]), np.zeros(5, dtype=int)
    assert coding.equal_width(x, y, 5).tolist() == [2, 4, 6, 8]
    assert coding.equal_mass(np.arange(10.0), y, 5).tolist() == [1.5, 3.5, 5.5, 7.5]
    gains = np.array([0.0] * 95 + [50, 60, 70, 80, 90])  # as capital gains: mostly nothing
    assert coding.equal_mass(gains, y, 5).tolist() == [25.0]
    assert coding.equal_mass(np.ones(9), y, 5).tolist() == []


def test_cuts_by_entropy_are_where_classes_change_and_nowhere_in_noise(parts):
    cut = parts["coding"].least_entropy
    x = np.arange(300.0)
    y = ((x >= 100) & (x < 200)).astype(int)
    assert cut(x, y).tolist() == [99.5, 199.5]
    rng = np.random.default_rng(0)
    assert len(cut(x, rng.integers(0, 2, 300))) == 0
    assert len(cut(x, np.zeros(300, dtype=int))) == 0


@pytest.fixture
def people(parts):
    """300 rows of a number and a word to learn from, 200 to judge on."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=500)
    word = np.where(z + rng.normal(size=500) > 0, "b", "a").astype(object)
    word[::50] = parts["coding"].MISSING
    X, y = pd.DataFrame({"z": z, "word": word}), (rng.random(500) < expit(2 * z)).astype(int)
    return parts["scores"].Rows(X[:300], y[:300], X[300:].reset_index(drop=True), y[300:])


def test_bins_are_learned_from_the_training_rows_only(parts, people):
    coding = parts["coding"]
    far = people.X_new.assign(z=[1e6, *people.X_new["z"][1:]])
    train, new = coding.binned(people.X, people.y, [far], "mass 5")
    again, _ = coding.binned(people.X, people.y, [people.X_new], "mass 5")
    pd.testing.assert_frame_equal(train, again)
    assert train["z"].value_counts().tolist() == [60] * 5
    assert new["z"][0] == "bin 4"
    same, _ = coding.binned(people.X, people.y, [people.X_new], "normal")
    pd.testing.assert_frame_equal(same, people.X)


def test_a_missing_or_new_word_has_no_column(parts):
    coding = parts["coding"]
    train = pd.DataFrame({"w": ["a", "b", coding.MISSING]})
    new = pd.DataFrame({"w": ["c", "b"]})
    A, B = coding.indicators([train, new])
    assert A.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert B.toarray().tolist() == [[0, 0], [0, 1]]


def test_training_rows_drawn_again_leave_the_test_rows(parts, people):
    drawn = parts["scores"].drawn
    assert drawn(people, 0) is people
    one, other = drawn(people, 1), drawn(people, 2)
    assert len(one.y) == 300
    assert set(one.X["z"]) < set(people.X["z"])
    assert one.X["z"].tolist() != other.X["z"].tolist()
    pairs = dict(zip(people.X["z"], people.y, strict=True))
    assert [pairs[z] for z in one.X["z"]] == one.y.tolist()
    assert one.X_new is people.X_new


def test_margins_are_rescaled_by_the_largest_of_the_training_rows(parts, people):
    found = parts["scores"].taken(people, "SVM", "quintiles, C=0.05")
    a = np.abs(found.train).max()
    np.testing.assert_allclose(found.base_train, (found.train + a) / (2 * a), atol=1e-12)
    np.testing.assert_allclose(found.base_new, np.clip((found.new + a) / (2 * a), 0, 1), atol=1e-12)
    assert ((found.base_new > 0.5) == (found.new > 0)).all()


@pytest.mark.parametrize("coding", ["normal", "width 10", "entropy"])
def test_scores_of_naive_bayes_are_its_probabilities(parts, people, root, coding):
    found = parts["scores"].taken(people, "NB", coding)
    X, X_new = parts["coding"].binned(people.X, people.y, [people.X_new], coding)
    model = experiment(root, "naive_bayes").MixedNaiveBayes().fit(X, people.y)
    np.testing.assert_allclose(found.new, model.predict_proba(X_new)[:, 1], atol=1e-12)
    assert found.base_new is found.new
    assert cal.metrics.auc(people.y_new, found.new) > 0.75


# --- two classes ----------------------------------------------------------------------------------


@pytest.fixture
def simple(parts, people, monkeypatch):
    """The same scores for whatever is asked."""
    found = {model: parts["scores"].taken(people, model, c) for model, c in TOY.items()}
    for name in ("two_class", "curves", "binning"):
        given = lambda dataset, model, coding, seed=0: found[model]  # noqa: E731
        monkeypatch.setattr(parts[name], "scores", given)
    return found


TOY = {"NB": "width 10", "SVM": "quintiles, C=0.05"}


def test_a_row_of_the_table_is_what_the_calibrators_make(parts, simple):
    row, found = parts["two_class"].run("toy", "SVM", "any", 0), simple["SVM"]
    p = cal.Platt(scale="raw").fit(found.train, found.y).calibrate(found.new)
    assert row["Sigmoid MSE test"] == pytest.approx(2 * np.mean((p - found.y_new) ** 2))
    q = cal.Isotonic().fit(found.train, found.y).calibrate(found.train)
    assert row["PAV error training"] == pytest.approx(np.mean((q >= 0.5) != found.y))
    wrong = np.mean((found.new >= 0) != found.y_new)
    assert row["base error test"] == pytest.approx(wrong)
    assert "Sigmoid of log-odds MSE test" not in row
    assert "Sigmoid of log-odds MSE test" in parts["two_class"].run("toy", "NB", "any", 0)


def test_the_nearest_coding_is_found_and_judged_by_the_spread(parts):
    two = parts["two_class"]
    told = two.told("NB")
    lines = []
    for coding, off, wide in (("width 10", 0.01, 1.0), ("width 20", 0.001, 0.1)):
        for seed in range(13):
            noise = 0 if seed == 0 else wide * 0.001 * (seed % 3 - 1)
            row = {f"{n} {m}": told[m][n] + off + noise for m in two.MEASURES for n in two.PRINTED}
            lines.append({"model": "NB", "coding": coding, "seed": seed, **row})
    frame = pd.DataFrame(lines)
    assert two.apart(frame, "NB") == pytest.approx({"width 10": 0.01, "width 20": 0.001})
    assert two.within(frame, "NB", "width 10") == "0 of 12"
    assert two.within(frame, "NB", "width 20") == "0 of 12"
    frame.loc[frame["coding"] == "width 20", "PAV MSE test"] = [
        told["MSE test"]["PAV"],
        *np.linspace(0.1, 0.3, 12),
    ]
    assert two.within(frame, "NB", "width 20") == "1 of 12"


def test_bins_of_the_figures_hold_every_test_row_once(parts, simple):
    curves = parts["curves"]
    sizes = {panel[:2]: curves.bins(panel) for f in curves.FIGURES.values() for panel in f}
    assert sizes == {("adult", "NB"): 10, ("tic", "NB"): 7, ("adult", "SVM"): 13, ("tic", "SVM"): 7}
    for panel in curves.FIGURES["figure1"] + curves.FIGURES["figure2"]:
        rows = [curves.in_bin(panel, place) for place in range(curves.bins(panel))]
        found = simple[panel.model]
        assert sum(row["rows"] for row in rows) == len(found.y_new)
        positives = sum(row["rows"] * row["probability"] for row in rows if row["rows"])
        assert positives == pytest.approx(found.y_new.sum())
        width = curves.WIDTHS[panel[:2]]
        for place, row in enumerate(rows):
            if row["rows"]:
                assert place * width <= row["rescaled"] <= (place + 1) * width


def test_a_score_on_a_border_belongs_to_the_bin_above(parts, monkeypatch):
    scores = np.array([0.3, 0.6, 0.7, 1.0])  # 0.3 / 0.1 < 3 in floating point
    found = parts["scores"].Scores(scores, scores, scores, scores, *[np.array([0, 1, 0, 1])] * 2)
    monkeypatch.setattr(parts["curves"], "scores", lambda *_: found)
    panel = parts["curves"].Panel("adult", "NB")
    counts = [parts["curves"].in_bin(panel, place)["rows"] for place in range(10)]
    assert counts == [0, 0, 0, 1, 0, 0, 1, 1, 0, 1]


def test_maps_are_drawn_from_end_to_end(parts, simple):
    curves, found = parts["curves"], simple["NB"]
    panel = curves.FIGURES["figure5"][0]
    first, last = (curves.run("figure5", "adult", "NB", "map", i) for i in (0, curves.PLACES))
    assert (first["score"], last["score"]) == (found.train.min(), found.train.max())
    map_ = cal.Isotonic().fit(found.train, found.y)
    assert first["probability"] == map_.calibrate([found.train.min()])[0]
    point = curves.run("figure5", "adult", "NB", "test", 9)
    inside = found.new >= 0.9
    assert point["map"] == pytest.approx(map_.calibrate(found.new[inside]).mean())
    assert "map" not in curves.in_bin(curves.Panel("adult", "NB"), 9)
    assert panel.method == "PAV"


def test_points_off_the_line_and_falling_steps_are_counted(parts):
    curves = parts["curves"]
    frame = pd.DataFrame(
        {
            "dataset": "adult",
            "model": "NB",
            "what": "test",
            "place": range(4),
            "rows": [400, 0, 400, 400],
            "rescaled": [0.1, np.nan, 0.5, 0.9],
            "probability": [0.1, np.nan, 0.3, 0.2],
        }
    )
    part = curves.points(frame, curves.Panel("adult", "NB"))
    assert part["off"].tolist() == [False, True, True]
    assert curves.mean_gap(part) == pytest.approx((0 + 0.2 + 0.7) / 3)
    assert curves.rising(part) == (1, 2)  # from 0.3 to 0.2 is three standard errors
    few = part.assign(rows=4)
    assert curves.rising(few) == (2, 2)


def test_binning_is_compared_row_by_row(parts, simple):
    binning, found = parts["binning"], simple["NB"]
    assert binning.how_many("bins", 7, 300) == 7
    assert binning.how_many("rows in a bin", 7, 300) == 43
    row = binning.run("NB", "bins", 5)
    p = cal.Histogram(bins=5).fit(found.train, found.y).calibrate(found.new)
    assert row["MSE"] == pytest.approx(2 * np.mean((p - found.y_new) ** 2))
    assert row["above"] == pytest.approx(row["MSE"] - row["PAV MSE"])
    assert row["standard error"] > 0


# --- several classes ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flowers(parts):
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(0, 1, X.shape)  # not too easy
    return parts["columns"].Rows(X[::2], y[::2], X[1::2], y[1::2])


def test_split_takes_four_fifths_of_each_class(parts):
    split = parts["newsgroups"].split
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [100, 50, 997]))
    train, test = split(y, 3)
    assert np.bincount(y[train]).tolist() == [80, 40, 798]
    assert sorted([*train, *test]) == list(range(len(y)))
    again, _ = split(y, 3)
    np.testing.assert_array_equal(train, again)
    assert set(split(y, 4)[0]) != set(train)


def test_words_are_counted_or_only_there(parts):
    as_words = parts["newsgroups"].as_words
    X = csr_matrix(np.array([[0.0, 3.0], [1.0, 0.0]]))
    assert as_words(X, "counts") is X
    assert as_words(X, "presence").toarray().tolist() == [[0, 1], [1, 0]]


def test_scores_are_log_odds_or_the_share_of_votes(parts, flowers):
    columns = parts["columns"]
    side = (flowers.y == 1).astype(int)
    model = GaussianNB().fit(flowers.X, side)
    p = model.predict_proba(flowers.X_new)[:, 1]
    np.testing.assert_allclose(expit(columns.score(model, flowers.X_new)), p, atol=1e-12)
    votes = columns.boosted(GaussianNB(), 4).fit(flowers.X, side)
    share = columns.score(votes, flowers.X_new)
    assert 0 <= share.min() < share.max() <= 1
    order = np.argsort(votes.decision_function(flowers.X_new))
    assert (np.diff(share[order]) > -1e-12).all()


def test_log_odds_are_told_apart_where_probabilities_are_one(parts):
    rng = np.random.default_rng(1)
    X = csr_matrix(rng.poisson(np.repeat([[5.0, 1.0], [1.0, 5.0]], 50, axis=0)) * 20.0)
    model = MultinomialNB().fit(X, np.repeat([0, 1], 50))
    p, s = model.predict_proba(X)[:, 1], parts["columns"].score(model, X)
    assert len(np.unique(p[p > 0.9])) < len(np.unique(s[p > 0.9])) / 2


@pytest.mark.parametrize("k", [3, 4, 10])
def test_printed_iteration_ends_where_it_is_said_to(parts, k):
    as_printed = parts["columns"].as_printed
    r = np.random.default_rng(k).uniform(0.02, 0.98, (30, k))
    p, n = np.full(r.shape, 1 / k), k - 1 - r.sum(axis=1, keepdims=True) + 2 * r
    for _ in range(20_000):
        p *= n / (k - 2 + 2 * p)
        p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(as_printed(r), p, atol=1e-4)
    inside = (as_printed(r) > 1e-3).all(axis=1)
    np.testing.assert_allclose(as_printed(r)[inside], p[inside], atol=1e-9)


def test_printed_iteration_is_right_where_answers_agree_and_elsewhere_another(parts):
    as_printed = parts["columns"].as_printed
    p = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    np.testing.assert_allclose(as_printed(p), p, atol=1e-12)
    r = np.array([[0.9, 0.6, 0.1, 0.0]])
    assert np.abs(as_printed(r) - cal.multiclass.coupling(r, np.eye(4) * 2 - 1)).max() > 0.02
    ends = as_printed(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(ends, [[1 / 3] * 3, [1 / 3] * 3, [0.5, 0.5, 0.0]], atol=1e-12)


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize(
    ("code", "on"),
    [("one_vs_rest", "train"), ("one_vs_rest", "folds"), ("all_pairs", "folds"), ("ecoc", "train")],
)
def test_columns_combined_are_the_classifier(parts, flowers, code, on):
    """Models are trained once for all combiners; each must be what the public class makes."""
    columns = parts["columns"]
    words = {"Norm": "normalize", "LS": "least_squares", "Coup": "coupling"}
    checked = 0
    for calibration, matrix, r in columns.probabilities(flowers, GaussianNB(), code, on):
        for combine, p in columns.combined(r, matrix, flowers.y):
            if combine == columns.PRINTED:
                continue
            model = cal.CodedClassifier(
                GaussianNB(),
                code=code,
                combine=words[combine],
                calibrator={"raw": None, "PAV": cal.Isotonic()}[calibration],
                cv=columns.CALIBRATED_ON[on],
                response_method={"raw": "auto", "PAV": columns.score}[calibration],
            ).fit(flowers.X, flowers.y)
            np.testing.assert_allclose(p, model.predict_proba(flowers.X_new), atol=1e-7)
            checked += 1
    assert checked == (6 if code == "one_vs_rest" else 4)


def test_figures_are_mean_squares_errors_and_ties(parts, flowers):
    row = parts["columns"].figures(flowers, GaussianNB(), "one_vs_rest", "train", divide=3)
    assert len(row) == 2 * (4 * 2 + 1)
    model = cal.CodedClassifier(GaussianNB(), calibrator=None).fit(flowers.X, flowers.y)
    p = model.predict_proba(flowers.X_new)
    square = ((p - np.eye(3)[flowers.y_new]) ** 2).mean()
    assert row["raw Norm MSE"] == pytest.approx(square, rel=1e-9)
    assert row["raw Norm error"] == pytest.approx((p.argmax(axis=1) != flowers.y_new).mean())
    assert 0 <= row["PAV tied"] <= 1


# --- donors ---------------------------------------------------------------------------------------


def test_donors_give_as_often_as_their_probability_says(parts):
    profit = parts["profit"]
    found = profit.donors(100_000, np.random.default_rng(0))
    assert found.y.mean() == pytest.approx(0.05, abs=0.003)
    assert abs(cal.metrics.spiegelhalter(found.y, found.p).statistic) < 4
    assert np.corrcoef(found.p, np.log(found.amount))[0, 1] < -0.2
    assert (found.amount > 0).all()


def test_profit_is_that_of_the_policy(parts):
    row = parts["profit"].run("NB", 1)
    _, new = parts["profit"].scored("NB", 1)
    mailed = new.p * new.amount > 1
    assert row["true profit"] == pytest.approx((new.amount * new.y - 1)[mailed].sum())
    assert row["true mailed"] == pytest.approx(mailed.mean())
    assert row["everyone profit"] == pytest.approx((new.amount * new.y - 1).sum())
    ways = {name: row[f"{name} profit"] for name in ("base", "Sigmoid", "PAV", "true")}
    assert max(ways, key=ways.get) == "true"
    assert all(value < row["donors profit"] for value in ways.values())


# --- cells, pages and claims ----------------------------------------------------------------------


def test_a_quick_run_is_part_of_the_full_one(paper):
    names = [table.name for table in paper.tables]
    assert len(set(names)) == len(names) == 10
    for table in paper.tables:
        quick, full = table.cells(True), table.cells(False)
        assert all(cell in full for cell in quick)
        assert {tuple(cell) for cell in full} == {tuple(table.keys)}
        assert len({tuple(cell.values()) for cell in full}) == len(full)


def test_every_quick_cell_is_kept(paper, kept):
    for table in paper.tables:
        done = {tuple(map(str, line)) for line in kept[table.name][table.keys].to_numpy()}
        assert {tuple(map(str, cell.values())) for cell in table.cells(True)} <= done


def test_kept_cells_are_run_again(paper, kept, shared):
    """One of each kind, figure by figure; the first of Adult also a second time."""
    chosen = {
        "adult": {"model": "NB", "coding": "width 30", "seed": 0},
        "figure1": {"dataset": "adult", "model": "NB", "what": "test", "place": 4},
        "binning": {"model": "NB", "reading": "bins", "size": 20},
        "4": {"numbers": "ten bins", "code": "one_vs_rest", "model": "NB", "on": "train"},
        "5": {"data": "bydate", "words": "counts, 1", "model": "NB", "on": "train", "seed": 0},
        "profit": {"model": "NB", "seed": 0},
    }
    for name, cell in chosen.items():
        frame = kept[name]
        same = [frame[key].astype(str) == str(value) for key, value in cell.items()]
        line = frame[np.logical_and.reduce(same)]
        assert len(line) == 1, name
        row = paper.table(name).run(**cell)
        for key, value in row.items():
            assert line[key].iloc[0] == pytest.approx(value, rel=1e-5, abs=1e-9), (name, key)
        if name == "adult":
            assert paper.table(name).run(**cell) == row


def test_sources_rows_are_those_of_the_paper(parts, shared):
    adult, digits = parts["scores"].rows("adult"), parts["pendigits"].rows("Gaussian")
    assert (len(adult.y), len(adult.y_new)) == (32561, 16281)
    assert (adult.y.sum(), adult.y_new.sum()) == (7841, 3846)
    assert (len(digits.y), len(digits.y_new)) == (7494, 3498)
    X, y, test = parts["newsgroups"].messages("bydate")
    assert (test.sum(), len(y), X.shape[1]) == (7505, 18774, 61188)


def test_figures_are_drawn_with_the_codings_nearest_to_the_published(parts, kept):
    for model in ("NB", "SVM"):
        near = parts["two_class"].apart(kept["adult"], model)
        assert min(near, key=near.get) == parts["scores"].DRAWN["adult", model]


def test_pages_say_what_is_not_legible(paper, kept):
    pages = {table.name: table.page(kept[table.name]) for table in paper.tables}
    assert pages["4"].count("not legible in our copy") == 24
    assert "not legible" in pages["tic"]
    assert pages["adult"].count("| yes |") + pages["adult"].count("| no |") == 24
    assert all("nan" not in page for page in pages.values())


def test_pages_can_do_with_a_part_of_the_cells(paper, kept):
    for table in paper.tables:
        frame = kept[table.name]
        assert table.page(frame.head(max(3, len(frame) // 2)))
    empty = {t.name: pd.DataFrame(columns=t.keys) for t in paper.tables}
    assert {claim.holds for claim in paper.claims(empty)} == {None}


def test_claims_are_judged_by_the_results(paper, kept):
    found = {claim.text: claim for claim in paper.claims(kept)}
    assert len(found) == len(paper.claims(kept)) >= 18
    assert sum(claim.holds is None for claim in found.values()) == 2
    frame = kept["adult"].copy()
    first, last = "base MSE test", "PAV MSE test"
    frame[[first, last]] = frame[[last, first]].to_numpy()
    other = {claim.text: claim for claim in paper.claims({**kept, "adult": frame})}
    turned = [text for text in found if found[text].holds is True and other[text].holds is False]
    assert any("naive Bayes" in text and "MSE" in text for text in turned)
    assert any("SVM" in text and "MSE" in text for text in turned)
    binning = kept["binning"].assign(above=kept["binning"]["above"] + 1)
    texts = [c for c in paper.claims({**kept, "binning": binning}) if "binning" in c.text]
    assert all(claim.holds for claim in texts)
    assert not math.isnan(kept["binning"]["above"].min())


def test_pictures_are_drawn(paper, kept, tmp_path):
    drawn = [name for t in paper.tables if t.figures for name in t.figures(kept[t.name], tmp_path)]
    assert len(drawn) == 5
    assert all(10_000 < (tmp_path / name).stat().st_size < 150_000 for name in drawn)
