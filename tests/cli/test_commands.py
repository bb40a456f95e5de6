"""The command line as people meet it: what it prints, writes, refuses and leaves behind."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.cli.app import COMMANDS as LINES
from calibrant.cli.app import Bar, parser
from calibrant.cli.demo import example
from calibrant.fitting.registry import METHODS, OF_CLASSES
from calibrant.metrics import evaluate
from calibrant.metrics.evaluating import in_words
from file_jobs import read_table
from held_out import out_of_fold

COMMANDS = (
    *("fit", "compare", "report", "apply", "evaluate", "plot", "export", "check", "monitor"),
    *("methods", "show", "demo"),
)


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch, tmp_path):
    """Eighty columns, no colours, an empty folder to work in."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def scores(tmp_path_factory) -> Path:
    """The example's folder, before anything is fitted."""
    folder = tmp_path_factory.mktemp("example")
    for name, text in zip(("scores.csv", "new.csv"), example(), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def calibrator(run, scores, tmp_path) -> Path:
    path = tmp_path / "calibrator.json"
    code, _, err = run("fit", scores / "scores.csv", "-s", "score", "-l", "churned", "-o", path)
    assert (code, err) == (0, "")
    return path


def shell(*words: object, **options) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "calibrant.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


# --- the main job -------------------------------------------------------------------------------


def test_fit_says_what_improved_where_it_is_and_how_to_go_on(run, scores):
    code, out, err = run("fit", scores / "scores.csv", "--score", "score", "--label", "churned")
    assert (code, err) == (0, "")
    assert out.startswith("AutoCalibrator fitted to 4,000 rows of scores.csv: ")
    assert "smooth curve (BLS) was chosen." in out
    assert "→ predicted   ↑ share of positives   (o before, x after, * both)" in out
    assert re.search(r"Log loss fell from 0\.\d+ to 0\.\d+ \(−\d+ %\)", out)
    assert "out of fold (5 folds)" in out
    assert "Apply it: calibrant apply calibrator.json NEW.csv -o OUT.csv" in out
    fitted = cal.load("calibrator.json")
    assert fitted.classes == ("no", "yes")
    assert fitted.provenance["score_column"] == "score"
    assert fitted.provenance["label_column"] == "churned"
    assert fitted.provenance["files"] == ("scores.csv",)
    assert fitted.provenance["rows"] == 4000


def test_fit_equals_the_library(run, scores):
    path = scores / "scores.csv"
    table = read_table([path], score="score", label="churned").data
    for name, (cls, _) in METHODS.items():
        code, _, err = run(
            "fit", path, "-s", "score", "-l", "churned", "-m", name, "-o", "c.json", "--cv", 0
        )
        assert (code, err) == (0, ""), name
        ours = getattr(cal, cls)().fit_table(table)
        assert cal.load("c.json").map == ours.map_


def test_fit_out_of_fold_figures_are_those_of_the_library(run, scores):
    path = scores / "scores.csv"
    arguments = ("-s", "score", "-l", "churned", "-m", "isotonic", "--param", "smoothing=laplace")
    _, out, _ = run("fit", path, *arguments, "--cv", 4, "--json")
    table = read_table([path], score="score", label="churned").data
    after = out_of_fold(cal.Isotonic(smoothing="laplace"), table, 4)
    found, expected = json.loads(out)["evaluation"], evaluate(after, raw=table, level=None)
    for side in ("before", "after"):
        figures = dict(getattr(expected, side))
        assert found[side].keys() == figures.keys()
        assert found[side].pop("auc") == pytest.approx(figures.pop("auc"), abs=0.01)
        assert found[side] == pytest.approx(figures, rel=1e-12)
    assert found["distinct_before"] == len(table)


def test_fit_of_a_strictly_rising_map_keeps_the_ranking(run, scores):
    """Folds have a map each, and none of them swaps or ties rows."""
    path = scores / "scores.csv"
    for method in ("platt", "auto"):
        out = run("fit", path, "-s", "score", "-l", "churned", "-m", method)[1]
        assert "The ranking is kept" in out
        assert "AUC moved" not in out


def test_folds_are_given_by_their_own_option(run, scores):
    path = scores / "scores.csv"
    code, _, err = run("fit", path, "-s", "score", "-l", "churned", "--param", "cv=3")
    assert code == 2
    assert "but 'cv' came" in err


def test_fit_says_how_many_folds_there_were(run):
    rows = "".join(f"{i / 50},{int(i in (30, 45))}\n" for i in range(50))
    Path("two.csv").write_text("s,y\n" + rows)
    assert (
        "The figures after are out of fold (2 folds)"
        in run("fit", "two.csv", "-s", "s", "-l", "y")[1]
    )


def test_apply_needs_no_column_and_keeps_the_rows(run, scores, calibrator):
    code, out, err = run("apply", calibrator, scores / "new.csv", "-o", "calibrated.csv")
    assert (code, err) == (0, "")
    assert "3,000 rows written to calibrated.csv" in out
    assert "Column 'probability' is the probability of 'yes'." in out
    old = (scores / "new.csv").read_text(encoding="utf-8").splitlines()
    new = Path("calibrated.csv").read_text(encoding="utf-8").splitlines()
    assert [line.rsplit(",", 1)[0] for line in new] == old
    fitted = cal.load(calibrator)
    given = [float(line.split(",")[-2]) for line in old[1:]]
    assert [float(line.rsplit(",", 1)[1]) for line in new[1:]] == fitted.calibrate(given).tolist()


def test_evaluate_and_plot(run, scores, calibrator):
    run("apply", calibrator, scores / "new.csv", "-o", "c.parquet")
    columns = ("-p", "probability", "-l", "churned", "--raw", "score")
    code, out, err = run("evaluate", "c.parquet", *columns)
    assert (code, err) == (0, "")
    assert "log loss" in out
    assert "Log loss fell" in out
    for name, start in (("r.png", b"\x89PNG"), ("r.svg", b"<?xml"), ("r.pdf", b"%PDF")):
        code, out, err = run("plot", "c.parquet", *columns, "-o", name, "--title", "Churn & co")
        assert (code, err) == (0, "")
        assert name in out
        assert Path(name).read_bytes().startswith(start)


def test_plots_have_other_curves(run):
    rows = "".join(f"{(i + 0.5) / 60},{int(i * 37 % 60 < i)}\n" for i in range(60))
    Path("p.csv").write_text("p,y\n" + rows)
    words = ("plot", "p.csv", "-p", "p", "-l", "y", "-o", "c.svg")
    for curve in ("isotonic", "smooth", "belt"):
        assert run(*words, "--curve", curve)[0] == 0
    assert "80 % and 95 % confidence" in Path("c.svg").read_text(encoding="utf-8")
    for wrong, message in (
        (("--curve", "bell"), "--curve must be"),
        (("--curve", "belt", "--bins", "5"), "has no bins"),
        (("--curve", "belt", "--kind", "decision"), "of a reliability diagram"),
    ):
        code, _, err = run(*words, *wrong)
        assert code == 2
        assert message in err


def test_weights_and_the_positive_label(run):
    Path("w.csv").write_text("s,y,w\n" + "".join(f"0.{i},{'ab'[i % 2]},2\n" for i in range(1, 9)))
    Path("r.csv").write_text("s,y\n" + "".join(f"0.{i},{'ab'[i % 2]}\n" * 2 for i in range(1, 9)))
    run("fit", "w.csv", "-s", "s", "-l", "y", "-w", "w", "--pos-label", "a", "-o", "w.json")
    run("fit", "r.csv", "-s", "s", "-l", "y", "--pos-label", "a", "-o", "r.json")
    weighted, repeated = cal.load("w.json"), cal.load("r.json")
    assert weighted.pos_label == "a"
    assert weighted.map == repeated.map
    assert weighted.provenance["weight_column"] == "w"


def test_margins_are_read_through_the_sigmoid_and_that_is_said(run):
    rows = "".join(f"{i / 5},{int(i % 3 > 0)}\n" for i in range(-40, 40))
    Path("m.csv").write_text("margin,y\n" + rows)
    code, out, _ = run("fit", "m.csv", "-s", "margin", "-l", "y", "--plot", "m.png")
    assert code == 0
    assert "read as margins" in " ".join(out.split())
    assert Path("m.png").stat().st_size > 10_000


def test_report_and_plot_of_a_fit(run, scores):
    arguments = ("-s", "score", "-l", "churned", "--plot", "p.svg", "--report", "r.html")
    code, out, err = run("fit", scores / "scores.csv", *arguments)
    assert (code, err) == (0, "")
    assert "p.svg" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Leaderboard" in page
    assert "<td" in page
    assert "calibrant apply calibrator.json" in page
    assert "http" not in page.replace("http-equiv", "")  # nothing is fetched


def test_compare_ranks_methods_beside_doing_nothing(run, scores):
    words = ("compare", scores / "scores.csv", "-s", "score", "-l", "churned")
    code, out, err = run(*words, "-m", "platt", "-m", "temperature")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("BLS", "uncalibrated", "platt", "temperature", "log loss"))
    assert "was chosen." in out
    found = json.loads(run(*words, "-m", "platt", "--json")[1])
    names = [row["name"] for row in found["leaderboard"]["rows"]]
    assert sorted(names) == ["BLS", "platt", "uncalibrated"]
    assert found["chosen"] in names
    losses = [row["log_loss"] for row in found["leaderboard"]["rows"]]
    assert losses == sorted(losses)
    table = read_table([scores / "scores.csv"], score="score", label="churned").data
    auto = cal.AutoCalibrator(candidates={"platt": cal.Platt()}).fit_table(table)
    assert losses == [row.log_loss for row in auto.leaderboard_.rows]
    code, _, err = run(*words, "-m", "plat")
    assert code == 2
    assert "Did you mean 'platt'?" in err


def test_report_of_files(run, scores):
    words = ("report", scores / "scores.csv", "-s", "score", "-l", "churned")
    code, out, err = run(*words, "-m", "platt", "-o", "r.html", "--save", "c.json", "--title", "T<")
    assert (code, err) == (0, "")
    assert "r.html" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<title>T&lt;</title>" in page
    assert "scores.csv" in page
    fitted = cal.load("c.json")
    assert fitted.provenance["score_column"] == "score"
    found = json.loads(run(*words, "-m", "platt", "-o", "q.html", "--json")[1])
    assert found["output"] == "q.html"
    assert len(found["verdict"]) == 2
    code, _, err = run(*words, "-o", "r.txt")
    assert code == 2
    assert ".html" in err


def test_fit_keeps_what_needs_no_mending_and_says_so(run):
    rng = np.random.default_rng(1)  # one seed in twenty gives labels that refute right scores
    p = rng.random(3000)
    rows = "".join(f"{s:.6f},{int(t)}\n" for s, t in zip(p, rng.random(3000) < p, strict=True))
    Path("fine.csv").write_text("p,y\n" + rows)
    code, out, _ = run("fit", "fine.csv", "-s", "p", "-l", "y")
    assert code == 0
    assert "The scores are kept as they are" in out
    assert cal.load("calibrator.json").calibrate([0.25]).tolist() == [0.25]
    found = json.loads(run("fit", "fine.csv", "-s", "p", "-l", "y", "--json")[1])
    assert found["chosen"] == "uncalibrated"
    assert "kept as they are" in found["refused"]
    assert found["advice"] == []


def test_fit_says_what_deserves_a_look(run):
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    rows = "".join(f"{s:.6f},{int(t)}\n" for s, t in zip(p, rng.random(3000) < p / 9, strict=True))
    Path("few.csv").write_text("p,y\n" + rows)
    code, out, err = run("fit", "few.csv", "-s", "p", "-l", "y", "-m", "isotonic")
    assert (code, err) == (0, "")
    assert "look: " in out
    assert "exactly 0 or 1" in " ".join(out.split())


def test_a_page_escapes_what_comes_from_data(run):
    name = "<script>alert(1)</script>"
    Path("x.csv").write_text(f'"{name}",y\n' + "0.1,0\n0.9,1\n0.2,0\n0.8,1\n")
    code, *_ = run("fit", "x.csv", "-s", name, "-l", "y", "--report", "r.html")
    assert code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert "<script>alert" not in page


def test_many_distinct_scores_are_pooled_for_the_estimate(run, monkeypatch, scores):
    from calibrant.cli import fitting

    monkeypatch.setattr(fitting, "MOST_CELLS", 100)
    monkeypatch.setattr(fitting, "POOLED_CELLS", 50)
    _, out, _ = run("fit", scores / "scores.csv", "-s", "score", "-l", "churned", "--json")
    document = json.loads(out)
    assert any("pooled" in note for note in document["evaluation"]["notes"])
    assert document["provenance"]["distinct_scores"] > 3000  # the fit itself is exact


def test_few_rows_get_no_estimate_and_that_is_said(run):
    Path("t.csv").write_text("s,y\n0.1,0\n0.2,0\n0.9,1\n")
    code, out, _ = run("fit", "t.csv", "-s", "s", "-l", "y")
    assert code == 0
    assert "no estimate for new rows" in out
    code, _, err = run("fit", "t.csv", "-s", "s", "-l", "y", "--report", "r.html")
    assert code == 2
    assert "at least two rows of each class" in err


# --- machines -----------------------------------------------------------------------------------


def test_json_is_all_there_is_on_stdout(run, scores, calibrator):
    path = scores / "scores.csv"
    calls = {
        "fit": ("fit", path, "-s", "score", "-l", "churned", "-o", "c.json"),
        "compare": ("compare", path, "-s", "score", "-l", "churned", "-m", "platt"),
        "report": ("report", path, "-s", "score", "-l", "churned", "-m", "platt", "-o", "r.html"),
        "apply": ("apply", calibrator, path, "-o", "o.csv"),
        "evaluate": ("evaluate", "o.csv", "-p", "probability", "-l", "churned", "--raw", "score"),
        "plot": ("plot", "o.csv", "-p", "probability", "-l", "churned", "-o", "p.png"),
        "export": ("export", calibrator, "--to", "python", "-o", "c.py"),
        "check": ("check", path, "-c", calibrator),
        "monitor": ("monitor", "state.json", path, "-c", calibrator),
        "methods": ("methods",),
        "show": ("show", calibrator),
        "demo": ("demo", "d"),
    }
    assert set(calls) == set(COMMANDS)
    found = {}
    for name, words in calls.items():
        code, out, err = run(*words, "--json")
        assert (code, err) == (0, ""), name
        found[name] = json.loads(out)
    assert found["fit"]["evaluation"]["after"]["log_loss"] < 0.6
    assert found["fit"]["calibrator"] == "c.json"
    assert found["apply"] == {
        "output": "o.csv",
        "rows": 4000,
        "score": "score",
        "column": "probability",
        "pos_label": "yes",
    }
    assert found["evaluate"]["rows"] == 4000
    assert [method["name"] for method in found["methods"]] == list(METHODS | OF_CLASSES)
    (steps,) = (one for one in found["methods"] if one["name"] == "isotonic")
    assert steps["params"]["interpolation"] == "step"
    assert found["show"] == cal.load(calibrator).to_dict()
    assert set(found["demo"]["files"]) == {path.name for path in Path("d").iterdir()}


def test_an_infinite_loss_is_still_json(run):
    Path("p.csv").write_text("p,y\n0,1\n1,1\n0.5,0\n")
    code, out, _ = run("evaluate", "p.csv", "-p", "p", "-l", "y", "--json")
    assert code == 0
    assert json.loads(out)["after"]["log_loss"] == "inf"
    code, out, _ = run("evaluate", "p.csv", "-p", "p", "-l", "y")
    assert "Log loss is ∞" in out


def test_evaluate_has_intervals(run):
    rows = "".join(f"{i / 80},{int(i * 37 % 80 < i)},100\n" for i in range(80))
    Path("p.csv").write_text("p,y,w\n" + rows)
    words = ("evaluate", "p.csv", "-p", "p", "-l", "y", "--json")
    redrawn = ("--replicates", 100)

    def spans(*more):
        code, out, err = run(*words, *more)
        assert (code, err) == (0, "")
        return json.loads(out)

    found = spans("--level", 0.9, *redrawn)
    assert found["level"] == 0.9
    assert set(found["intervals"]) == set(found["after"])
    low, high = found["intervals"]["brier"]
    assert low < found["after"]["brier"] < high
    code, out, _ = run(*words, "--level", 0)
    assert (code, json.loads(out)["intervals"]) == (0, None)
    one = spans("-w", "w", "--level", 0.9)["intervals"]["brier"]
    assert one == pytest.approx([low, high])
    many = spans("-w", "w", "--weights", "counts", "--level", 0.9, *redrawn)
    assert many["intervals"]["brier"][1] < high
    assert "importance" in many["notes"][-1]
    code, out, err = run(*words, "-w", "w", *redrawn)
    assert (code, out) == (2, "")
    assert "has an interval from random draws, so --replicates would change nothing" in err
    code, out, err = run(*words, "--weights", "sizes")
    assert (code, out) == (2, "")
    assert "weights must be 'importance' or 'counts'" in err


def test_errors_leave_stdout_empty_also_with_json(run):
    code, out, err = run("fit", "none.csv", "-s", "a", "-l", "b", "--json")
    assert (code, out) == (2, "")
    assert err == "error: there is no file none.csv.\n"


# --- names --------------------------------------------------------------------------------------


def test_methods_fit_eighty_columns(run):
    code, out, _ = run("methods")
    assert code == 0
    lines = out.splitlines()
    for name, (_, line) in METHODS.items():
        assert any(shown.startswith(name) and line in shown for shown in lines)


def test_show_prints_what_is_in_a_file(run, calibrator):
    code, out, _ = run("show", calibrator)
    assert code == 0
    for words in ("AutoCalibrator", "cv=5", "'no' and 'yes'", "Piecewise(", "scores.csv", "4,000"):
        assert words in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_name_real_options(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    examples = re.findall(r"(?m)^\s+(calibrant .*?)\s*$", out.split("Examples:")[1])
    assert any(line.startswith(f"calibrant {name}") for line in examples)
    for option in set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(examples))):
        assert option in out or name == "methods", option


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert run("--version")[1] == f"calibrant {cal.__version__}\n"
    assert set(parser().list_commands(None)) == set(COMMANDS)


def test_the_list_of_commands_has_the_first_lines_of_their_help():
    group = parser()
    for name, (_, line) in LINES.items():
        assert group.get_command(None, name).help.split("\n")[0] == line


# --- refusals -----------------------------------------------------------------------------------

GOOD = "score,label\n" + "0.1,0\n0.4,1\n0.35,0\n0.8,1\n" * 3
FIT = ("fit", "good.csv", "-s", "score", "-l", "label")

REFUSED = {
    "unknown column": (("fit", "good.csv", "-s", "scor", "-l", "label"), "Did you mean 'score'?"),
    "lists columns": (("fit", "good.csv", "-s", "x", "-l", "label"), "are 'score', 'label'."),
    "unknown method": ((*FIT, "-m", "isotonik"), "Did you mean 'isotonic'?"),
    "parameter": (
        (*FIT, "-m", "platt", "--param", "scales=raw"),
        "platt takes scale, weights, but 'scales' came. Did you",
    ),
    "no parameters": (
        (*FIT, "-m", "uncalibrated", "--param", "a=1"),
        "uncalibrated takes no parameters",
    ),
    "not key=value": ((*FIT, "--param", "raw"), "must be written key=value"),
    "its value": (
        (*FIT, "-m", "platt", "--param", "scale=log"),
        "must be 'auto' or 'logit' or 'raw'",
    ),
    "positive label": ((*FIT, "--pos-label", "yes"), "must be one of [0, 1]"),
    "cv": ((*FIT, "--cv", "1"), "cv must be at least 2"),
    "plot without folds": ((*FIT, "--cv", "0", "--plot", "p.png"), "cv must not be 0"),
    "picture's ending": ((*FIT, "--plot", "p.bmp"), "p.bmp must end in .png or .svg or .pdf"),
    "output's folder": ((*FIT, "-o", "no/c.json"), "folder no does not exist"),
    "output is a folder": ((*FIT, "-o", "."), "is a folder"),
    "memory limit": ((*FIT, "--memory-limit", "lots"), "--memory-limit must be a size"),
    "empty file": (("fit", "empty.csv", "-s", "s", "-l", "y"), "empty.csv is empty"),
    "missing file": (("fit", "godo.csv", "-s", "s", "-l", "y"), "Did you mean good.csv?"),
    "corrupt parquet": (("fit", "bad.parquet", "-s", "s", "-l", "y"), "bad.parquet"),
    "percentages": (("evaluate", "pct.csv", "-p", "p", "-l", "y"), "Divide percentages by 100"),
    "not a calibrator": (("show", "good.csv"), "good.csv looks like a file of data"),
    "foreign json": (("show", "foreign.json"), "is not a calibrant calibrator"),
    "no calibrator": (("apply", "no.json", "good.csv", "-o", "o.csv"), "No such file"),
    "folder for a calibrator": (("show", "."), ". is a folder"),
    "unwritable": (
        ("plot", *FIT[1:2], "-p", "score", "-l", "label", "-o", "no/p.png"),
        "no does not",
    ),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_one_line_and_code_2(run, words, message):
    Path("good.csv").write_text(GOOD)
    Path("empty.csv").touch()
    Path("bad.parquet").write_bytes(b"PAR1 no PAR1")
    Path("pct.csv").write_text("p,y\n10,0\n90,1\n")
    Path("foreign.json").write_text('{"a": 1}')
    before = sorted(Path().iterdir())
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    "words", [("fit",), ("frobnicate",), ("methods", "--frob"), (*FIT, "--threads", "none")]
)
def test_bad_usage_is_code_2(run, words):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "calibrant" in err


def test_a_calibrator_from_python_needs_the_column(run):
    cal.save(cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), "c.json")
    Path("good.csv").write_text(GOOD)
    code, _, err = run("apply", "c.json", "good.csv", "-o", "o.csv")
    assert code == 2
    assert "Name it with --score COL." in err
    assert run("apply", "c.json", "good.csv", "-o", "o.csv", "--score", "score")[0] == 0


def test_mistakes_of_the_program_are_not_hidden(monkeypatch, scores):
    from calibrant.cli import jobs

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(jobs, "make_calibrator", broken)
    with pytest.raises(ZeroDivisionError):
        main(["fit", str(scores / "scores.csv"), "-s", "score", "-l", "churned"])


# --- processes ----------------------------------------------------------------------------------


def test_the_console_script_is_main():
    (script,) = entry_points(group="console_scripts", name="calibrant")
    assert script.load() is main


def test_an_interruption_in_this_process(run, monkeypatch, scores):
    from calibrant.cli import jobs

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "make_calibrator", interrupted)
    code, out, err = run("fit", scores / "scores.csv", "-s", "score", "-l", "churned")
    assert (code, out) == (130, "")
    assert err == "interrupted: no partial output was left behind.\n"


@pytest.mark.full
def test_a_process_of_its_own(scores, tmp_path):
    words = ("fit", scores / "scores.csv", "-s", "score", "-l", "churned", "-o", "c.json")
    done = shell(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = shell("apply", "c.json", scores / "new.csv", "-o", "o.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = shell("apply", "c.json", scores / "new.csv", "-o", "o.csv", "-s", "region", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: score column 'region' must be numbers: 3,000 of 3,000")
    assert done.stderr.count("\n") == 1  # the database says nothing of its own at exit


@pytest.mark.full
def test_a_terminal_of_few_letters(scores, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    words = ("fit", scores / "scores.csv", "-s", "score", "-l", "churned")
    done = shell(*words, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Log loss fell" in done.stdout


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("typer", ["methods"]),
        ("rich", ["methods"]),
        ("duckdb", ["fit", "good.csv", "-s", "score", "-l", "label"]),
        ("pyarrow", ["apply", "c.json", "good.csv", "-o", "o.csv", "-s", "score"]),
        ("matplotlib", ["plot", "good.csv", "-p", "score", "-l", "label", "-o", "p.png"]),
    ],
)
@pytest.mark.full
def test_a_missing_package_is_named_with_its_cure(tmp_path, module, words):
    (tmp_path / "good.csv").write_text(GOOD)
    cal.save(cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), tmp_path / "c.json")
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"from calibrant.cli import main\nmain({words!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{module}', which is not installed" in done.stderr
    assert "pip install 'calibrant[cli]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.full
def test_a_signal_leaves_nothing_behind(tmp_path, stop, code):
    n = 3_000_000
    pq.write_table(
        pa.table({"s": np.linspace(0, 1, n), "id": np.arange(n)}), tmp_path / "in.parquet"
    )
    cal.save(cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), tmp_path / "c.json")
    (tmp_path / "spill").mkdir()
    words = ["apply", "c.json", "in.parquet", "-o", "out.csv.gz", "-s", "s", "--threads", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant.cli", *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "spill")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(tmp_path.glob(".out.csv.gz.*")):
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(stop)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert err == ("interrupted: no partial output was left behind.\n" if code == 130 else "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json", "in.parquet", "spill"]
    assert list((tmp_path / "spill").iterdir()) == []


STOPPED = {
    "report": ["report", "../s.csv", "-s", "p", "-l", "y", "-m", "platt", "-o", "out.html"],
    "fit": ["fit", "../s.csv", "-s", "p", "-l", "y", "-o", "out.json"],
    "apply": ["apply", "../c.json", "../s.csv", "-s", "p", "-o", "out.csv"],
    "evaluate": ["evaluate", "../s.csv", "-p", "p", "-l", "y"],
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    "runs", [pytest.param(6, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.slow)]
)
def test_a_signal_at_any_time_ends_a_command(tmp_path, runs):
    rng = random.Random()
    p = np.random.default_rng(0).random(400)
    rows = [f"{one:.6f},{int(one > (i % 10) / 10)}" for i, one in enumerate(p)]
    (tmp_path / "s.csv").write_text("\n".join(["p,y", *rows]))
    cal.save(cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), tmp_path / "c.json")

    def start(place, command):
        (place / "tmp").mkdir(parents=True)
        code = f"from calibrant.cli import main; print('up', flush=True); main({STOPPED[command]})"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=place,
            env={**os.environ, "TMPDIR": str(place / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "up\n"
        return process, time.monotonic()

    longest = {}
    for command in STOPPED:
        process, began = start(tmp_path / command, command)
        assert process.communicate()[1] == ""
        longest[command] = time.monotonic() - began
    for run in range(runs):
        command, stop = rng.choice([*STOPPED]), rng.choice([signal.SIGINT, signal.SIGTERM])
        place, delay = tmp_path / str(run), rng.uniform(0.02, longest[command])
        process, _ = start(place, command)
        time.sleep(delay)
        process.send_signal(stop)
        try:
            out, err = process.communicate(timeout=20 + 3 * longest[command])
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{command}: {stop!r} after {delay} s: it hangs") from None
        told = (run, command, stop, delay, process.returncode, out, err)
        done = [*place.glob("out.*")] or "log loss" in out
        # Python itself dies of a signal that comes when all is done
        assert process.returncode in ({0, 128 + stop, -stop} if done else {128 + stop}), told
        assert "Traceback" not in err, told
        assert not [*(place / "tmp").iterdir(), *place.glob(".*")], told


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.full
def test_an_interrupt_in_code_that_was_a_text_keeps_the_exit_code(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "import calibrant.cli.app as cli\n"
        "def run(**_):\n"
        "    exec('raise KeyboardInterrupt')\n"
        "cli.parser = lambda: run\n"
        "from calibrant.cli import main\n"
        "main(['methods'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe without a reader is told otherwise")
@pytest.mark.parametrize("words", [["methods"], ["methods", "--json"], ["--version"], ["--help"]])
def test_a_reader_that_went_away_has_an_exit_code_of_its_own(words):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *words],
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.full
def test_a_reader_that_goes_away_is_no_error_message(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m calibrant.cli methods --json | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout == "[\n"
    assert done.stderr == ""


IMPORTED = """
import sys
from calibrant.cli import main
try:
    main(sys.argv[2:])
except SystemExit as end:
    assert not end.code
sys.exit(" ".join(set(sys.argv[1].split()) & set(sys.modules)) or 0)
"""


def imported(which, *words, cwd=None):
    """Which of these modules a command imports."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, which, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    return done.stderr if done.returncode else ""


def test_help_is_quick_because_little_is_imported():
    heavy = "numpy scipy sklearn numba pandas matplotlib duckdb pyarrow calibrant.cli.fitting"
    assert imported(heavy, "--help") == ""


def test_apply_imports_nothing_that_fits_or_measures(scores, tmp_path):
    rows = str(scores / "scores.csv")
    words = ("fit", rows, "-s", "score", "-l", "churned", "-m", "platt", "--cv", "0")
    assert shell(*words, cwd=tmp_path).returncode == 0
    heavy = "sklearn numba matplotlib calibrant.metrics calibrant.cli.reading"
    assert imported(heavy, "apply", "calibrator.json", rows, "-o", "out.csv", cwd=tmp_path) == ""


# --- progress -----------------------------------------------------------------------------------


def test_the_bar_is_for_terminals_and_for_long_jobs(monkeypatch, capsys):
    with Bar("reading") as bar:
        bar.started -= 60
        bar(0.5)
    assert capsys.readouterr() == ("", "")  # stderr is no terminal here
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bar("reading") as bar:
        bar(0.5)
        assert bar.progress is None  # too soon
        bar.started -= 60
        bar(0.5)
        bar(0.75)
        assert bar.progress is not None
        assert bar.progress.tasks[0].completed == 0.75
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading" in err
    with Bar("reading", quiet=True) as bar:
        bar.started -= 60
        bar(0.5)
    assert capsys.readouterr() == ("", "")


# --- the demonstration --------------------------------------------------------------------------


def test_demo_does_the_whole_job(run, root):
    code, out, err = run("demo", "look here")
    assert (code, err) == (0, "")
    front = (root / "docs" / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"(?s)```text\n(.*?)```", front)[0].splitlines()
    assert all(line in out for line in shown if line != "…")
    folder = Path("look here")
    names = {"scores.csv", "new.csv", "calibrator.json", "calibrated.csv", "reliability.png"}
    assert {path.name for path in folder.iterdir()} == {*names, "report.html"}
    assert all(name in out for name in (*names, "report.html"))
    assert "Log loss fell" in out
    assert "The ranking is kept" in out
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run("demo", "look here")[0] == 2
    (folder / "scores.csv").write_text("mine")
    assert run("demo", "look here", "--force")[0] == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


@pytest.mark.full
def test_what_demo_says_to_type_can_be_typed(run, monkeypatch):
    _, out, _ = run("demo")
    typed = [shlex.split(line) for line in out.split("The same by hand:")[1].strip().splitlines()]
    assert typed[0] == ["cd", "calibrant-demo"]
    monkeypatch.chdir(typed[0][1])
    for words in typed[1:]:
        assert words[0] == "calibrant"
        assert run(*words[1:])[0] == 0


@pytest.mark.full
def test_the_commands_of_the_guide_work(run, root, scores):
    """Every command of docs/reference/cli.md, in order, in one folder."""
    guide = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for name in ("scores.csv", "new.csv"):
        Path(name).write_bytes((scores / name).read_bytes())
    (makes_classes,) = re.findall(r"(?s)```python\n(.*?)```", guide)
    exec(makes_classes, {})
    commands = re.findall(
        r"(?m)^calibrant .*$", "\n".join(re.findall(r"(?s)```sh\n(.*?)```", guide))
    )
    assert {shlex.split(line)[1] for line in commands} >= set(COMMANDS)
    for line in commands:
        words = shlex.split(line, comments=True)
        code, _, err = run(*words[1:])
        assert code == 0, (line, err)


def test_the_guide_has_every_option(root):
    """The site puts a table of a command's options in the place of its mark; each has words."""
    guide = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    found = {name: parser().get_command(None, name) for name in COMMANDS}
    own = {name for name in COMMANDS if f"<!-- options {name} -->" in guide}
    assert set(COMMANDS) - own == {"methods", "show", "demo"}  # in words
    assert "<!-- options many -->" in guide
    for command in found.values():
        for option in command.params:
            assert option.opts[0][0] != "-" or option.help


# --- words --------------------------------------------------------------------------------------


def test_words_are_honest():
    y = [0, 0, 1, 1]
    worse = in_words(evaluate(y * 9, [0.6, 0.6, 0.4, 0.4] * 9, raw=[0.1, 0.2, 0.8, 0.9] * 9))
    assert "Log loss rose" in worse
    assert "This made the scores worse" in worse
    assert "AUC moved from 1.000 to 0.000" in worse
    same = in_words(evaluate(y, [0.1, 0.2, 0.8, 0.9], raw=[0.1, 0.2, 0.8, 0.9]))
    assert "Log loss stayed at 0.164" in same
    infinite = in_words(evaluate(y, [0.1, 1.0, 0.8, 0.9], raw=[0.1, 0.2, 0.8, 0.9]))
    assert "from 0.164 to ∞" in infinite
    assert "A probability of 0 or 1 was wrong" in infinite
    alone = in_words(evaluate([1, 1], [0.5, 0.5], raw=[0.4, 0.5]))
    assert "AUC" not in alone


@pytest.mark.full
def test_long_fits_say_so_on_a_terminal(monkeypatch):
    """After two seconds (here: none) a person sees a line; a pipe or --json does not."""
    import io
    import time

    from calibrant.cli import app as console

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(console, "PATIENCE", 0.0)
    for quiet in (False, True):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        assert console.run_with_status(lambda: time.sleep(1.2) or 7, "fitting abb", quiet) == 7
        assert ("fitting abb" in screen.getvalue()) is not quiet
    with pytest.raises(ZeroDivisionError):
        console.run_with_status(lambda: 1 / 0, "failing")


def test_which_score_has_a_probability(tmp_path, run):
    steps = cal.Fitted(cal.maps.Piecewise.step([0.25, 0.75], [0.1, 0.5, 0.9]), (0, 1), 1)
    cal.save(steps, tmp_path / "c.json")
    show = ("show", tmp_path / "c.json", "--at")
    assert "from 0.25 to 0.7" in run(*show, 0.5)[1]
    assert "No score has probability 0.3" in run(*show, 0.3)[1]
    assert run(*show, "50 %")[1] == run(*show, 0.5)[1]
    assert "such as 0.2 or 20%" in run(*show, "half")[2]
    assert json.loads(run(*show, 0.3, "--json")[1])["score"] == 0.25
    code, _, err = run(*show, 0.95)
    assert (code, "no score" in err) == (2, True)


def test_a_person_is_told_that_kernels_are_compiled_once(monkeypatch):
    import io

    from calibrant.cli import app as console

    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(console, "PATIENCE", 0.0)
    for compiling in (True, False):
        screen = Screen()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setattr(console, "is_compiling", lambda now=compiling: now)
        console.run_with_status(lambda: time.sleep(0.7), "fitting elite")
        assert ("compiling, once" in screen.getvalue()) is compiling


def test_bins_that_the_data_choose(run):
    rows = "".join(f"{i / 400},{int(i * 37 % 400 < i)}\n" for i in range(400))
    Path("p.csv").write_text("p,y\n" + rows)
    words = ("evaluate", "p.csv", "-p", "p", "-l", "y", "--level", 0)
    code, out, err = run(*words, "--bins", "auto")
    assert (code, err) == (0, "")
    assert 'bins="auto": ECE and MCE are over' in out
    p, y = np.arange(400) / 400, np.arange(400) * 37 % 400 < np.arange(400)
    found = json.loads(run(*words, "--bins", "auto", "--json")[1])["after"]
    assert found["ece"] == pytest.approx(cal.metrics.ece(y, p, bins="auto"))
    assert json.loads(run(*words, "--bins", 4, "--json")[1])["after"]["ece"] == pytest.approx(
        cal.metrics.ece(y, p, bins=4)
    )
    assert run("plot", "p.csv", "-p", "p", "-l", "y", "--bins", "auto", "-o", "r.png")[0] == 0
    for wrong in ("many", "0", "-3"):
        code, _, err = run(*words, "--bins", wrong)
        assert code == 2
        assert "whole number of at least 1" in err
