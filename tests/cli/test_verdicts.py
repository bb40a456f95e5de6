"""What the commands say of all sorts of scores: what matters first, and the same everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.metrics.measures import MEASURES, chosen_records


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in this process: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


ROWS = 3000
RNG = np.random.default_rng(1)
TRUTH = RNG.beta(1.5, 4, ROWS)
CHURNED = np.where(RNG.random(ROWS) < TRUTH, "yes", "no")
SURE = 1 / (1 + (1 / TRUTH - 1) ** 1.8 * np.exp(-0.4))
NOISE = RNG.random(ROWS)
SCORES = {
    "good": SURE.round(4),
    "wrong": (1 - SURE).round(4),
    "noise": NOISE.round(4),
    "percent": np.rint(100 * SURE).astype(int),
    "points": np.rint(1000 * SURE).astype(int),
    "fractions": (300 + 550 * SURE).round(2),
}
COLUMNS = ("-s", "score", "-l", "churned")


def written(name, scores, labels=CHURNED):
    rows = "".join(f"{s},{y}\n" for s, y in zip(scores, labels, strict=True))
    Path(name).write_text(f"score,churned\n{rows}", encoding="utf-8")


def column(out, title):
    """A column of the printed table of measures, by measure."""
    lines = [re.split("[│┃]", line) for line in out.splitlines() if "│" in line or "┃" in line]
    titles = next(parts for parts in lines if any("measure" in part for part in parts))
    place = [part.strip() for part in titles].index(title)
    rows = [parts for parts in lines if len(parts) == len(titles) and parts is not titles]
    return {parts[1].strip(): parts[place].strip() for parts in rows}


# --- direction and separation -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "platt"])
def test_scores_that_run_the_wrong_way(run, method):
    written("w.csv", SCORES["wrong"])
    asked = ("--pos-label", "yes") if method == "auto" else ()  # else a constant is refused
    code, out, _ = run("fit", "w.csv", *COLUMNS, "-m", method, *asked)
    assert code == 0
    assert out.startswith("These scores run the wrong way: AUC 0.2")
    assert (
        "Say --direction falling. Is it 'no' that is meant? Say --pos-label no."
        in out.splitlines()[0]
    )
    assert "gains" not in out
    assert out.count("run the wrong way") == 1
    _, out, _ = run("fit", "w.csv", *COLUMNS, "--pos-label", "no", "-m", method)
    assert "wrong way" not in out


def test_scores_that_say_nothing(run):
    written("n.csv", SCORES["noise"])
    for command in ("fit", "compare"):
        _, out, _ = run(command, "n.csv", *COLUMNS)
        assert out.startswith("These scores say nothing about `churned`: AUC 0.5"), command
        assert "gains" not in out
    _, out, _ = run("fit", "n.csv", *COLUMNS, "--json")
    assert json.loads(out)["headline"].startswith("These scores say nothing about `churned`")
    _, out, _ = run("evaluate", "n.csv", "-p", "score", "-l", "churned")
    assert out.startswith("These scores say nothing about `churned`")
    _, out, _ = run("report", "n.csv", *COLUMNS, "-o", "n.html", "-m", "platt")
    assert out.startswith("These scores say nothing about `churned`")


def test_a_page_on_scores_that_say_nothing_is_not_green(run):
    written("n.csv", SCORES["noise"])
    run("report", "n.csv", *COLUMNS, "-o", "n.html", "-m", "platt")
    page = Path("n.html").read_text(encoding="utf-8")
    assert '<body class="caution">' in page
    assert "Calibrate these scores" not in page
    written("g.csv", SCORES["good"])
    run("report", "g.csv", *COLUMNS, "-o", "g.html", "-m", "platt")
    assert '<body class="caution">' not in Path("g.html").read_text(encoding="utf-8")


def test_check_says_it_and_updates_nothing(run):
    written("g.csv", SCORES["good"])
    run("fit", "g.csv", *COLUMNS, "-o", "g.json")
    for name, words in (("wrong", "run the wrong way"), ("noise", "say nothing about `churned`")):
        written("new.csv", SCORES[name])
        _, out, _ = run("check", "new.csv", "-c", "g.json", "--update", "new.json")
        assert words in out
        assert "Find out why before anything is fitted" in out
        assert "Correct the logit" not in out
        assert "pos-label" not in out  # a calibrator has its own
        assert not Path("new.json").exists()
    _, out, _ = run("check", "new.csv", "-c", "g.json", "--json")
    assert json.loads(out)["look"]["found"] == "nothing"


# --- one class, few of a class ------------------------------------------------------------------


def test_one_class_is_refused_unless_allowed(run):
    written("one.csv", SCORES["good"], np.zeros(ROWS, int))
    code, _, err = run("fit", "one.csv", *COLUMNS)
    assert code == 2
    assert "one class only: every row is 0" in err
    assert "--allow-one-class" in err
    code, out, _ = run("fit", "one.csv", *COLUMNS, "--allow-one-class")
    assert code == 0
    assert out.startswith("There is one class only: every row is 0.")
    written("word.csv", SCORES["good"], ["stayed"] * ROWS)  # what the other is called is not known
    code, _, err = run("fit", "word.csv", *COLUMNS, "--allow-one-class")
    assert code == 2
    assert (
        "only one class came: 'stayed', and nothing tells whether that is the positive label" in err
    )


def test_fewer_than_ten_of_a_class(run):
    few = CHURNED.copy()
    few[np.flatnonzero(few == "yes")[4:]] = "no"
    written("few.csv", SCORES["good"], few)
    for command in ("fit", "compare"):
        _, out, _ = run(command, "few.csv", *COLUMNS)
        assert out.startswith("Only 4 rows are 'yes': fewer than 10 of a class are too few"), (
            command
        )


# --- scores of 0 to 100, and of 0 to 1000 -------------------------------------------------------


def test_percentages_are_judged_as_such(run):
    written("p.csv", SCORES["percent"])
    _, out, _ = run("fit", "p.csv", *COLUMNS)
    before = column(out, "before")
    assert "∞" not in out
    expected = cal.evaluate(CHURNED == "yes", np.clip(SCORES["percent"] / 100, 0.005, 0.995))
    assert float(before["Brier score"]) == pytest.approx(expected.after["brier"], abs=1e-3)
    assert "look like percentages" in out


@pytest.mark.parametrize("name", ["points", "fractions"])
def test_of_points_only_the_order_is_judged(run, name):
    written("p.csv", SCORES[name])
    _, out, _ = run("fit", "p.csv", *COLUMNS)
    before = column(out, "before")
    assert "∞" not in out
    assert before["log loss"] == "–"
    assert float(before["AUC"]) == pytest.approx(cal.metrics.auc(CHURNED == "yes", SURE), abs=2e-3)
    assert "points, not probabilities" in out
    assert "over one rate for all rows" in out
    _, out, _ = run("report", "p.csv", *COLUMNS, "-o", "p.html", "-m", "platt")
    assert "against points (one rate for all rows)" in out
    assert "∞" not in Path("p.html").read_text(encoding="utf-8").split("<script")[0]


# --- the same word, the same figure -------------------------------------------------------------


def test_the_command_line_python_and_the_page_say_the_same(run):
    scores, y = SCORES["good"], CHURNED == "yes"
    written("g.csv", scores)
    _, out, _ = run(
        "fit", "g.csv", *COLUMNS, "-m", "platt", "--report", "g.html", "--measures", "standard"
    )
    told = column(out, "change")
    report = cal.calibration_report(scores, CHURNED, calibrator="platt")
    for name, measure in chosen_records(MEASURES).items():
        word = report.evaluation.verdict(name)
        assert told[measure.label] == word, name
    page = Path("g.html").read_text(encoding="utf-8")
    words = re.findall(r'<td class="word (\w+)">', page)
    assert words == list(told.values())
    assert {"unclear", "better"} <= set(words)
    p = cal.Platt().fit(scores, y).calibrate(scores)
    rows = "".join(f"{a},{b!r},{c}\n" for a, b, c in zip(scores, p.tolist(), CHURNED, strict=True))
    Path("both.csv").write_text(f"score,p,churned\n{rows}", encoding="utf-8")
    _, out, _ = run(
        "evaluate",
        "both.csv",
        "-p",
        "p",
        "-l",
        "churned",
        "--raw",
        "score",
        "--measures",
        "standard",
    )
    python = cal.evaluate(CHURNED, p, raw=scores, pos_label="yes")
    told = column(out, "change")
    for name, measure in chosen_records(MEASURES).items():
        assert told[measure.label] == python.verdict(name), name
    assert python.verdict("accuracy") == "unclear"


def test_the_auc_of_card_table_and_headline_is_one(run):
    small = slice(0, 120)
    y = CHURNED[small] == "yes"
    report = cal.calibration_report(SCORES["good"][small], y, calibrator=cal.AutoCalibrator())
    auc = cal.metrics.auc(y, SCORES["good"][small])
    assert report.raw.auc == pytest.approx(auc, abs=1e-12)
    assert report.chosen.auc == report.evaluation.after["auc"]
    page = report.to_html()
    card = re.search(r"Ranking \(AUC\)</dt><dd>(.*?)</dd>", page)[1]
    assert f"{report.chosen.auc:.3f}" in card


def test_no_percentage_is_a_power_of_ten(run):
    p = np.where(np.arange(2000) < 1000, 1e-9, 1 - 1e-9)
    y = np.arange(2000) % 2
    auto = cal.AutoCalibrator().fit(p, y)
    assert "e+" not in auto.explain()
    assert "e+" not in cal.AutoCalibrator().fit(SURE**40, CHURNED).explain()


# --- one rate for all rows ----------------------------------------------------------------------


def test_one_rate_for_all_rows_is_not_called_the_scores(run):
    """Points that run the wrong way give one rate: it ranks nothing, and no score is kept."""
    points = (700 - SCORES["points"] / 2).round()
    written("p.csv", points)
    code, out, _ = run("fit", "p.csv", *COLUMNS, "--pos-label", "yes", "-o", "p.json")
    assert code == 0
    assert "All rows get one rate." in out
    assert "kept" not in out
    assert "within each fold" not in out
    before, after, change = (column(out, title)["AUC"] for title in ("before", "after", "change"))
    assert float(before) == pytest.approx(
        cal.metrics.auc(CHURNED == "yes", points / 1000), abs=1e-4
    )
    assert (after, change) == ("0.5000", "higher")
    measures = cal.load("p.json").provenance["measures"]
    assert measures["before"]["auc"] == pytest.approx(
        cal.metrics.auc(CHURNED == "yes", points / 1000)
    )
    assert measures["after"]["auc"] == 0.5
    run("report", "p.csv", *COLUMNS, "--pos-label", "yes", "-o", "p.html", "-m", "auto")
    page = Path("p.html").read_text(encoding="utf-8")
    assert "cores as they are" not in page
    assert re.search(r">0\.5000<", page)


def test_words_of_one_rate_where_nothing_is_better_and_where_something_is():
    rng = np.random.default_rng(3)
    points, y = rng.integers(300, 850, 60), rng.random(60) < 0.4
    auto = cal.AutoCalibrator().fit(points, y)
    assert auto.chosen_ == "uncalibrated"
    board = auto.leaderboard_
    assert board["uncalibrated"].auc == 0.5
    assert board["uncalibrated"].scores_auc == pytest.approx(cal.metrics.auc(y, points / 1000))
    page = cal.calibration_report(points, y)
    assert page.raw.auc == page.evaluation.after["auc"] == 0.5
    few = cal.AutoCalibrator().fit([300, 500, 700, 800], [0, 0, 0, 1])
    assert few.refused_.startswith("All rows get one rate: there are fewer than two positives")
    sure = cal.calibration_report(1000 * SURE, CHURNED == "yes", calibrator="platt")
    auc = cal.metrics.auc(CHURNED == "yes", SURE)
    assert f"the ranking is kept (AUC {auc:.3f})" in sure.verdict[1]
    noise = cal.calibration_report(1000 * NOISE[:500], CHURNED[:500], calibrator="histogram")
    assert "scores as they are" not in " ".join(noise.verdict)


@pytest.mark.parametrize("k", [2, 3])
def test_kept_scores_have_no_calibrators_of_folds(run, k):
    """No note speaks of them."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(k), 1500).clip(1e-3)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((1500, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    shown = p[:, 1:] if k == 2 else p
    head = ",".join(f"p_{i}" for i in range(shown.shape[1]))
    rows = np.column_stack([shown, y])
    np.savetxt("kept.csv", rows, fmt="%.15g", delimiter=",", header=f"{head},y", comments="")
    words = ("kept.csv", "-l", "y", "-s", "p_0" if k == 2 else "p_*")
    code, out, _ = run("fit", *words, "--report", "k.html")
    assert code == 0
    assert "The scores are kept as they are" in out
    assert "within each fold" not in out + Path("k.html").read_text(encoding="utf-8")
