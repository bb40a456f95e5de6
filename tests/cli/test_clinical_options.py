"""Clinical measures and decision curves on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.metrics.measures import MEASURES, chosen_records

RNG = np.random.default_rng(2)
P = RNG.beta(1.2, 4, 800).round(4).clip(0.001, 0.999)
Y = (RNG.random(800) < P).astype(int)
RAW = (1 / (1 + (1 / P - 1) ** 1.6)).round(5)
REGION = np.where(np.arange(800) % 3, "north", "south")
CLINICAL = list(chosen_records(MEASURES, "clinical"))


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line beside a file: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    columns = zip(P, RAW, Y, REGION, strict=True)
    lines = "".join(f"{p},{r},{y},{region}\n" for p, r, y, region in columns)
    Path("d.csv").write_text(f"p,raw,y,region\n{lines}", encoding="utf-8")

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


FILE = ("d.csv", "-p", "p", "-l", "y")


def test_evaluate_measures_what_is_asked_for(run):
    code, out, _ = run("evaluate", *FILE, "--measures", "clinical", "--raw", "raw", "--json")
    assert code == 0
    found, wanted = json.loads(out), cal.evaluate(Y, P, raw=RAW, measures="clinical")
    assert found["after"] == pytest.approx(wanted.after, rel=1e-9)
    assert found["intervals"]["ici"] == pytest.approx(wanted.intervals["ici"], rel=1e-6)
    assert run("evaluate", *FILE, "--measures", "ici, auc") == run(
        "evaluate", *FILE, "--measures", "ici", "--measures", "auc"
    )
    code, out, _ = run("evaluate", *FILE, "--measures", "ici", "--measures", "auc")
    assert code == 0
    assert "ICI" in out
    assert "Brier" not in out
    assert "Log loss is" not in out
    _, out, _ = run("evaluate", *FILE)
    assert "near 1" in out
    assert "Log loss is" in out


def test_segments_have_them_too(run):
    words = ("--segment", "region", "--measures", "calibration_slope")
    code, out, _ = run("evaluate", *FILE, *words)
    assert code == 0
    assert "calibration slope" in out
    assert "Brier" not in out
    _, out, _ = run("evaluate", *FILE, *words, "--json")
    found = json.loads(out)["segments"]["north"]["after"]
    north = REGION == "north"
    assert found == pytest.approx(
        {"calibration_slope": cal.metrics.cox(Y[north], P[north]).slope}, rel=1e-9
    )


def test_unknown_measures_are_refused(run):
    code, _, err = run("evaluate", *FILE, "--measures", "clinicl")
    assert code
    assert "Did you mean 'clinical'?" in " ".join(err.split())


def test_a_report_adds_them(run):
    words = ("-s", "raw", "-l", "y", "-m", "platt", "-o", "r.html", "--measures", "clinical")
    code, _, _ = run("report", "d.csv", *words)
    assert code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    for name in ("log_loss", *CLINICAL):
        assert f"{MEASURES[name].label}<br>" in page


def test_decision_curves_are_drawn(run):
    code, out, _ = run("plot", *FILE, "--raw", "raw", "--kind", "decision", "-o", "d.svg")
    assert code == 0
    assert "Decision curve written to d.svg" in out
    picture = Path("d.svg").read_text(encoding="utf-8")
    assert "net benefit" in picture
    words = ("--kind", "decision", "--thresholds", "0.05:0.4", "-o", "one.png")
    assert run("plot", *FILE, *words)[0] == 0
    assert Path("one.png").read_bytes().startswith(b"\x89PNG")
    _, out, _ = run("plot", *FILE, "-o", "r.png")
    assert "Reliability diagram written to r.png" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kind", "decisions"), "Did you mean 'decision'?"),
        (("--thresholds", "0.1:0.2"), "--thresholds goes with --kind decision"),
        (
            ("--kind", "decision", "--thresholds", "0.4:0.1"),
            "the smaller first, but '0.4:0.1' came",
        ),
        (("--kind", "decision", "--thresholds", "half"), "two numbers with a colon between them"),
        (("--kind", "decision", "--thresholds", "0:1"), "above 0 and below 1"),
    ],
)
def test_bad_options_are_refused(run, words, said):
    code, _, err = run("plot", *FILE, *words, "-o", "d.png")
    assert code
    assert said in " ".join(err.split())
    assert not Path("d.png").exists()
