"""--direction: credit scores, of which a low one means the positive label."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.app import app

RUN = CliRunner()


@pytest.fixture
def loans(tmp_path):
    random = np.random.default_rng(2)
    risk = random.beta(1, 4, 800)
    frame = pd.DataFrame(
        {
            "credit_score": np.round(1000 * (1 - risk)).astype(int),
            "default": np.where(random.random(800) < risk, "yes", "no"),
            "country": np.array(["de", "fr"])[random.integers(0, 2, 800)],
        }
    )
    frame.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


def run(*words, code=0):
    done = RUN.invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def test_the_error_offers_the_option(loans, tmp_path):
    told = run("fit", loans, "-o", tmp_path / "c.json", "-m", "platt", "--json", code=0)
    assert json.loads(told.stdout)["method"] == "Platt"  # a sigmoid turns round by itself
    told = run("fit", loans, "-o", tmp_path / "c.json", "-m", "isotonic", code=2)
    assert "Do low scores mean 'yes', as credit scores do? Say --direction falling." in " ".join(
        told.stderr.split()
    )


@pytest.mark.parametrize("direction", ["falling", "auto"])
def test_fit_and_apply(loans, tmp_path, direction):
    words = ("-m", "isotonic", "--direction", direction, "-o", tmp_path / "c.json")
    told = run("fit", loans, *words, "--json")
    document = json.loads(told.stdout)
    assert document["params"]["direction"] == "falling"
    assert "low scores mean 'yes': they are read as −score" in " ".join(told.stderr.split())
    frame = pd.read_csv(loans)
    wanted = cal.Isotonic(direction="falling").fit(frame["credit_score"], frame["default"])
    run("apply", tmp_path / "c.json", loans, "-o", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")["probability"]
    assert (found == wanted.calibrate(frame["credit_score"].to_numpy())).all()
    saved = cal.load(tmp_path / "c.json")
    assert (saved.score_range.low, saved.pos_label) == (wanted.score_range_.low, "yes")


def test_segments_fall_too(loans, tmp_path):
    words = ("--segment", "country", "-o", tmp_path / "c.json", "--direction", "falling")
    run("fit", loans, *words, "-m", "platt", "--json")
    fitted = cal.load(tmp_path / "c.json")
    low, high = fitted.predict_proba([200, 900], segments=["de", "de"])[:, 1]
    assert low > 0.5 > high


def test_compare(loans):
    done = run("compare", loans, "-m", "platt", "--direction", "falling", "--json")
    told = json.loads(done.stdout)
    assert told["leaderboard"]["rows"][0]["auc"] > 0.6


@pytest.mark.parametrize("words", [("-m", "platt"), ("-m", "auto"), ("--segment", "country")])
def test_reports(loans, tmp_path, words):
    """A page on falling scores tells of them as they came: the command's own, and that of fit."""
    page, saved = tmp_path / "r.html", tmp_path / "c.json"
    if "-m" in words:
        run("fit", loans, *words, "--direction", "falling", "-o", saved, "--report", page)
        assert "low means &#x27;yes&#x27;" in page.read_text(encoding="utf-8")
    more = ("-o", page, "--save", saved, "--direction", "falling", "--json")
    told = json.loads(run("report", loans, *words, *more).stdout)
    assert told["direction"] == "falling"
    assert "log loss fell" in told["verdict"][1]
    assert "wrong way" not in page.read_text(encoding="utf-8")
    assert not any("-" in line for line in told["advice"])  # no mirrored score is named
    low, high = cal.load(saved).calibrate([200, 900])
    assert low > 0.5 > high


def test_who_turns_scores_that_rise_is_told_so(loans, tmp_path):
    page = ("-o", tmp_path / "r.html", "--pos-label", "no", "--direction", "falling")
    told = run("report", loans, *page).stdout
    assert "run the wrong way" in told
    assert "Are the labels or the scores turned round?" in told


def test_refusals(loans, tmp_path):
    told = run("fit", loans, "--direction", "down", "-o", tmp_path / "c.json", code=2)
    assert "--direction must be 'rising' or 'falling' or 'auto'" in " ".join(told.stderr.split())
    features = ("--features", "country", "-o", tmp_path / "c.json")
    told = run("fit", loans, "--direction", "falling", *features, code=2)
    assert "is for one column of scores" in told.stderr


def test_a_constant_is_called_one_rate_for_all_rows(loans, tmp_path):
    """By fit, compare and check, with AUC ½."""
    one = tmp_path / "one.json"
    said = run("fit", loans, "--pos-label", "yes", "-o", one).stdout
    assert "All rows get one rate." in said
    checked = run("check", loans, "-c", one).stdout
    assert "The calibrator gives one rate for all rows, 0." in checked
    assert "say nothing" not in checked
    told = json.loads(run("compare", loans, "-m", "isotonic", "--json").stdout)
    assert {row["auc"] for row in told["leaderboard"]["rows"]} == {0.5}
    assert "All rows get one rate." in told["verdict"]
    for words in (said, checked, told["verdict"]):
        assert "kept" not in words
