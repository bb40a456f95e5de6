# ruff: noqa: F811  (fixtures of another file)
"""calibrant monitor: a nightly job whose state is a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from cli.test_commands import plain_terminal, run  # noqa: F401


def day(number: int, shift: float = 0.0, rows: int = 400) -> str:
    """A file of one day, and its name."""
    rng = np.random.default_rng(number)
    p = np.round(rng.beta(1, 4, rows), 6)
    odds = p / (1 - p) * np.exp(shift)
    came = np.where(rng.random(rows) < odds / (1 + odds), "yes", "no")
    where = rng.choice(["north", "south"], rows)
    lines = [f"{a},{b},{c}" for a, b, c in zip(p, came, where, strict=True)]
    Path(f"day-{number}.csv").write_text("\n".join(["p,left,region", *lines]) + "\n")
    return f"day-{number}.csv"


def test_a_nightly_job(run):
    for number in range(1, 6):
        code, out, err = run(
            "monitor",
            "state.json",
            day(number),
            "--prob",
            "p",
            "--label",
            "left",
            "--when",
            f"night {number}",
            "--exit-code",
        )
        assert code == 0, err
        assert "No alarm" in out
    codes = []
    for number in range(6, 12):
        words = ("--prob", "p", "--label", "left", "--when", f"night {number}", "--exit-code")
        code, out, _ = run("monitor", "state.json", day(number, shift=1.0), *words)
        codes.append(code)
    assert codes[-1] == 3
    assert "Alarm since batch" in out
    assert "calibrant check with --update does" in " ".join(out.split())
    code, _, err = run("monitor", "state.json", day(12), *words[:4], "--segment", "region")
    assert code == 2
    assert "--segment, from the first call on" in " ".join(err.split())
    watching = cal.Monitor.load("state.json")
    assert watching.batches == 11
    assert abs(watching.reading.since - 6) <= 1
    assert watching.reading.recommendation == "intercept"


def test_it_is_the_library(run):
    named = ("--prob", "p", "--label", "left")
    for number in (1, 2):
        code, _, err = run("monitor", "state.json", day(number), *named)
        assert code == 0, err
    expected = cal.Monitor()
    for number in (1, 2):
        lines = [line.split(",") for line in Path(f"day-{number}.csv").read_text().split()[1:]]
        expected.update([line[1] for line in lines], [float(line[0]) for line in lines])
    found = cal.Monitor.load("state.json")
    assert found.reading.evidence == pytest.approx(expected.reading.evidence, rel=1e-12)
    assert found.to_dict()["classes"] == ["no", "yes"]


def test_a_calibrator_segments_a_picture_and_json(run):
    run("fit", day(1), "-s", "p", "-l", "left", "-o", "c.json")
    words = ("-c", "c.json", "--segment", "region", "--alpha", 0.1, "--least", 0.02)
    code, out, err = run("monitor", "state.json", day(2), *words, "--plot", "m.png", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["batches"], told["rows_in_all"], told["segments"]) == (1, 400, [])
    assert told["label_column"] == "left"
    assert Path("m.png").read_bytes()[:4] == b"\x89PNG"
    state = json.loads(Path("state.json").read_text())
    assert (state["alpha"], state["least"]) == (0.1, 0.02)
    assert {one["segment"] for one in state["segments"]} == {"north", "south"}
    code, _, err = run("monitor", "state.json", day(3), *words)
    assert (code, "new monitor" in err) == (2, True)
    run("fit", day(4, shift=2.0), "-s", "p", "-l", "left", "-o", "other.json")
    code, _, err = run("monitor", "state.json", day(3), "-c", "other.json", "--segment", "region")
    assert (code, "another calibrator" in err) == (2, True)


def test_what_goes_wrong_leaves_the_state(run):
    named = ("--prob", "p", "--label", "left")
    run("monitor", "state.json", day(1), *named)
    before = Path("state.json").read_text()
    code, _, err = run("monitor", "state.json", "day-1.csv", *named)
    assert (code, "same as batch 1" in err) == (2, True)
    Path("bad.csv").write_text("p,left\n0.5,yes\n1.5,no\n")
    code, _, err = run("monitor", "state.json", "bad.csv", *named)
    assert (code, "[0, 1]" in err) == (2, True)
    Path("words.csv").write_text("p,left\n0.5,ja\n0.4,nein\n")
    code, _, err = run("monitor", "state.json", "words.csv", *named)
    assert (code, "labels must be those of the monitor" in err) == (2, True)
    code, _, err = run("monitor", "day-1.csv", "day-1.csv", *named)
    assert code == 2
    assert Path("state.json").read_text() == before


def test_a_page(run):
    named = ("--prob", "p", "--label", "left", "--segment", "region", "--report", "page.html")
    code, out, err = run("monitor", "state.json", day(1), *named, "--when", "monday")
    assert code == 0, err
    assert "The page: page.html" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "No alarm" in page
    assert "monday" in page
    assert "calibrant monitor state.json NEW.csv --report monitor.html" in page
    code, out, _ = run("monitor", "state.json", day(2), *named, "--json")
    assert json.loads(out)["report"] == "page.html"
    assert Path("page.html").read_text(encoding="utf-8") != page
    code, _, err = run("monitor", "state.json", day(3), *named[:-1], "page.txt")
    assert (code, "page.txt must end in .html or .htm" in err) == (2, True)


def test_a_page_that_fails_leaves_the_state(run, monkeypatch):
    named = ("--prob", "p", "--label", "left", "--report", "page.html")

    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr("calibrant.reports.monitor_page.monitor_report", fail)
    code, _, _ = run("monitor", "state.json", day(1), *named)
    assert code != 0
    assert not Path("state.json").exists()
    monkeypatch.undo()
