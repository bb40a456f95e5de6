"""--features of evaluate and report: in which groups of rows are predictions wrong?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli import main

RNG = np.random.default_rng(5)
N = 1500
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(18, 90, N)),
        "country": RNG.choice(["de", "fr", "it"], N),
        "p": RNG.random(N).round(4).clip(0.001, 0.999),
    }
)
FRAME["score"] = (2.0 * np.log(FRAME["p"] / (1 - FRAME["p"]))).round(3)
TRUTH = np.where(FRAME["country"] == "it", FRAME["p"] ** 2, FRAME["p"])
FRAME["y"] = np.where(RNG.random(N) < TRUTH, "yes", "no")
FILE = ("d.csv", "-p", "p", "-l", "y")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line beside files: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("d.csv", index=False)
    FRAME.to_parquet("d.parquet")

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


@pytest.mark.parametrize("file", ["d.csv", "d.parquet"])
def test_evaluate_tells_where_it_is_wrong(run, file):
    code, out, _ = run(
        "evaluate", file, "-p", "p", "-l", "y", "--features", "age,country", "--json"
    )
    assert code == 0
    found = json.loads(out)["groups"]
    features = FRAME[["age", "country"]]
    wanted = cal.evaluate(FRAME["y"], FRAME["p"], features=features).groups
    assert found == json.loads(json.dumps(wanted.to_dict()))
    assert found["groups"][0]["name"] == "country = it"


def test_evaluate_prints_the_worst_groups(run):
    code, out, _ = run("evaluate", *FILE, "--features", "country", "--features", "age")
    assert code == 0
    assert "Where is it wrong?" in out
    assert "country = it" in out
    assert "features:" not in out  # the table says it
    code, out, _ = run("evaluate", *FILE)
    assert "Where is it wrong?" not in out


def test_decimal_commas_and_missing_words_are_numbers(run):
    lines = [
        f"{str(age).replace('.', ',')};{p};{y}"
        for age, p, y in zip(FRAME["age"], FRAME["p"], FRAME["y"], strict=True)
    ]
    Path("semi.csv").write_text("age;p;y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    words = ("evaluate", "semi.csv", "-p", "p", "-l", "y", "--features", "age", "--json")
    code, out, _ = run(*words)
    assert code == 0
    names = [one["name"] for one in json.loads(out)["groups"]["groups"]]
    assert "age missing" in names
    assert any(name.startswith("age 18 to ") for name in names)


def test_the_report_has_the_section(run):
    words = ("report", "d.csv", "-s", "score", "-l", "y", "-m", "platt", "-o", "r.html")
    code, out, _ = run(*words, "--features", "age,country")
    assert code == 0
    assert "Where is it wrong?" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Where is it wrong?" in page
    assert "country = it" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--features", "contry"), "Did you mean 'country'?"),
        (("--features", "age", "--segment", "country"), "--segment goes without --features"),
        (("--features", "age", "--engine", "spark"), "read by DuckDB only"),
    ],
    ids=str,
)
def test_what_cannot_be_looked_at_is_refused(run, words, message, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "nowhere")  # no Spark is started to say so
    code, _, err = run("evaluate", *FILE, *words)
    assert code != 0
    assert message in err


def test_several_classes_are_refused(run):
    FRAME.assign(p_a=0.2, p_b=0.3, p_c=0.5).to_csv("k.csv", index=False)
    code, _, err = run("evaluate", "k.csv", "-p", "p_*", "-l", "country", "--features", "age")
    assert code != 0
    assert "--features is for one column of scores" in err


def test_dates_are_refused(run):
    FRAME.assign(day=pd.Timestamp("2026-01-01")).to_parquet("t.parquet")
    code, _, err = run("evaluate", "t.parquet", "-p", "p", "-l", "y", "--features", "day")
    assert code != 0
    assert "feature column 'day' must hold numbers or words" in err


def test_a_report_tells_whether_one_map_fits_all_segments(run):
    words = ("report", "d.csv", "-s", "p", "-l", "y", "-m", "platt", "-o", "r.html", "--json")
    code, out, _ = run(*words, "--segment", "country")
    assert code == 0
    page = json.loads(out)
    assert sorted(panel["name"] for panel in page["panels"]) == ["de", "fr", "it"]
    assert any("segments stay miscalibrated" in line for line in page["advice"])
    assert "Segments" in Path("r.html").read_text(encoding="utf-8")
    wanted = cal.calibration_report(
        FRAME["p"],
        FRAME["y"],
        calibrator=cal.AutoCalibrator(candidates={"platt": cal.Platt()}, cv=5),
        segments=FRAME["country"],
    )
    for found, panel in zip(page["panels"], wanted.panels, strict=True):
        assert found["name"] == panel.name
        assert found["figures"] == pytest.approx(dict(panel.figures))
    assert page["advice"] == list(wanted.advice)
