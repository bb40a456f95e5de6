"""What a file remembers of a fit: how much, when and how well, and never the data."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.cli.jobs import time_stamp
from calibrant.data.documents import evaluation_facts, read_period
from calibrant.maps import Identity
from saved import fit_all, saved, simulate, simulate_classes, simulate_features

SIZES = {"few": 60, "more": 150}


@pytest.fixture
def fitted():
    return cal.Platt().fit(*simulate(80))


# --- every calibrator -----------------------------------------------------------------------------


@pytest.mark.full
def test_every_calibrator_says_how_much_data_it_had():
    positive, codes = simulate(60)[1].sum(), simulate_classes(60)[1]
    fitted = {name: one for name, one in saved().items() if not name.startswith("hand-")}
    for name, one in fitted.items():
        facts = one.provenance
        assert one.method, name
        assert facts["calibrant"] == cal.__version__, name
        assert (facts["rows"], facts["weight"]) == (60, 60.0), name
        assert facts["effective_size"] == pytest.approx(60.0), name
        if one.pos_label is not None:
            assert facts["positive_weight"] == positive, name
        elif name != "multilabel":  # whose labels do not exclude each other
            assert facts["class_weights"] == tuple(np.bincount(codes).astype(float)), name


def test_weights_and_absent_rows():
    scores, y = simulate(50)
    weight = np.arange(50) % 3 * 1.5
    country = np.array(["de", "fr"])[np.arange(50) % 2]
    makers = (
        lambda: cal.Isotonic().fit(scores, y, weight),
        lambda: cal.AutoCalibrator(cv=0.3).fit(scores, y, weight),
        lambda: cal.SegmentedCalibrator(cal.Platt(), shrinkage=1.0).fit(
            scores, y, weight, segments=country
        ),
        lambda: cal.ACP().fit(scores, y, weight),
    )
    for make in makers:
        facts = make().to_fitted().provenance
        assert facts["rows"] == np.count_nonzero(weight)
        assert facts["weight"] == pytest.approx(weight.sum())
        assert facts["positive_weight"] == pytest.approx(weight @ y)
        assert facts["effective_size"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


# --- never the data -------------------------------------------------------------------------------


def leaves(value, name=""):
    """(the name it has, value) of everything in a document that holds nothing else."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else ((name, item) for item in value)
        for key, item in items:
            yield from leaves(item, key)
    else:
        yield name, value


@pytest.fixture(scope="module")
def documents():
    """Of every calibrator, fitted to few rows and to more, what the JSON file holds."""
    found = {}
    for size, n in SIZES.items():
        for name, one in fit_all(n).items():
            found[name, size] = one.to_fitted().to_dict()
    return found


def test_no_score_and_no_label_of_the_data_is_in_a_file(documents):
    data = {}
    for size, n in SIZES.items():
        rows = simulate_classes(n)[0]
        numbers = [row[0] for row in simulate_features(n)]
        data[size] = {*simulate(n)[0].tolist(), *rows.ravel().tolist(), *numbers}
    knots = set()
    for (name, size), document in documents.items():
        beside = {key: part for key, part in document.items() if key != "map"}
        assert not data[size] & {v for _, v in leaves(beside) if isinstance(v, float)}, name
        found = leaves(document.get("map", {}))
        knots |= {key for key, v in found if isinstance(v, float) and v in data[size]}
    assert knots <= {"x", "clip"}  # the knots of steps and lines may be scores


def test_what_is_beside_the_map_does_not_grow_with_the_data(documents):
    for (name, size), document in documents.items():
        few, more = document, documents[name, "more"]
        if size == "few":
            sizes = [len(list(leaves({**d, "map": None}))) for d in (few, more)]
            assert abs(sizes[0] - sizes[1]) <= 2, name  # a note more or less
            assert sizes[0] < 150, name


# --- what the maker says --------------------------------------------------------------------------


def test_period_evaluation_and_notes_are_kept(fitted, tmp_path):
    scores, y = simulate(200, seed=5)
    evaluation = cal.evaluate(y, fitted.calibrate(scores), raw=scores)
    path = tmp_path / "c.json"
    period = (date(2024, 1, 1), datetime(2024, 3, 31, 12, 30))
    cal.save(fitted, path, period=period, evaluation=evaluation, notes="for the audit")
    facts = cal.load(path).provenance
    assert facts["period"] == ("2024-01-01", "2024-03-31T12:30:00")
    assert facts["notes"] == "for the audit"
    measures = facts["measures"]
    assert dict(measures["after"]) == evaluation.after
    assert dict(measures["before"]) == evaluation.before
    assert measures["intervals"]["brier"] == tuple(evaluation.intervals["brier"])
    assert measures["change"]["brier"]["difference"] == evaluation.change["brier"][0]
    assert (measures["weight"], measures["level"]) == (200.0, 0.95)
    assert "saved" in measures["how"]
    assert facts["rows"] == 80  # those of the fit
    assert cal.load(path).map == fitted.map_
    cal.save(cal.load(path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    cal.save(cal.load(path), path, notes=["one", "two"])
    assert cal.load(path).provenance["notes"] == ("one", "two")
    assert cal.load(path).provenance["period"] == facts["period"]


def test_evaluations_of_all_kinds_are_kept(tmp_path):
    scores, y = simulate_classes(90)
    c = cal.Temperature().fit(scores, y)
    evaluation = cal.evaluate(y, c.predict_proba(scores))
    cal.save(c, tmp_path / "c.json", evaluation=evaluation)
    measures = cal.load(tmp_path / "c.json").provenance["measures"]
    assert dict(measures["after"]) == evaluation.after
    assert "before" not in measures
    assert not {"labels", "by_class", "notes"} & set(measures)
    local = cal.ACP().fit(*simulate(60))
    cal.save(local, tmp_path / "l.json", period="2024", evaluation=evaluation)
    assert cal.load(tmp_path / "l.json").provenance["period"] == "2024"
    Y = np.column_stack((y == 0, y == 1)).astype(int)
    several = cal.metrics.multilabel_measures(Y, c.predict_proba(scores)[:, :2])
    kept = evaluation_facts(several, "on the rows of May")
    assert set(kept) == {"how", "micro", "macro"}


def test_dates_of_all_kinds():
    pd = pytest.importorskip("pandas")
    days = ("2024-01-01", date(2024, 1, 1), np.datetime64("2024-01-01"))
    for day in days:
        assert read_period((day, "2024-01-01")) == ["2024-01-01", "2024-01-01"]
    later = pd.Timestamp("2024-02-01", tz="UTC")
    assert read_period([days[0], later]) == ["2024-01-01", "2024-02-01T00:00:00+00:00"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": ""}, "period must be text, or a pair"),
        ({"period": 2024}, "but 2024 came"),
        ({"period": ("2024-01-01",)}, "a pair of dates"),
        ({"period": ("2024-01-01", "yesterday")}, "date or its ISO text.*'yesterday' came"),
        ({"period": ("2024-01-01", None)}, "None came"),
        ({"period": ("2024-03-01", "2024-02-01")}, "begin before it ends"),
        ({"evaluation": {"after": 1}}, "what calibrant.evaluate returns, but dict came"),
        ({"evaluation": Identity()}, "but Identity came"),
        ({"notes": 7}, "text or a list of texts, but 7 came"),
        ({"notes": ["a", 7]}, "list of texts"),
    ],
)
def test_what_cannot_be_kept_is_refused(fitted, tmp_path, options, message):
    with pytest.raises(cal.errors.ParameterError, match=message):
        cal.save(fitted, tmp_path / "c.json", **options)
    assert not list(tmp_path.iterdir())


# --- the automatic choice -------------------------------------------------------------------------


def test_the_automatic_choice_keeps_its_measures():
    scores, y = simulate(400)
    bent = cal.AutoCalibrator(cv=3).fit(scores, y)
    straight = cal.AutoCalibrator(cv=3).fit(scores, np.random.default_rng(0).random(400) < scores)
    rows, codes = simulate_classes(200)
    several = cal.AutoCalibrator(cv=2).fit(rows, codes)
    for auto in (bent, straight, several):
        board, measures = auto.leaderboard_, auto.to_fitted().provenance["measures"]
        assert measures["how"].startswith("out of fold")
        assert (measures["folds"], measures["level"]) == (board.folds, 0.95)
        assert measures["before"]["log_loss"] == board["uncalibrated"].log_loss
        assert measures["after"]["brier"] == board.chosen.brier
        change = measures["change"]["log_loss"]
        assert change["difference"] == pytest.approx(-board.chosen.gain)
        assert change["low"] <= change["difference"] <= change["high"]
    assert bent.chosen_ == "BLS"
    assert measures["weight"] == 200.0
    kept = straight.to_fitted().provenance
    assert kept["chosen"] == "uncalibrated"
    assert kept["measures"]["before"] == kept["measures"]["after"]
    assert "measures" not in cal.AutoCalibrator().fit([0.1, 0.9], [0, 1]).to_fitted().provenance


def test_an_infinite_loss_is_a_word():
    auto = cal.AutoCalibrator(cv=2).fit([0.0, 1.0] * 20, [0, 1, 1, 0] + [0, 1] * 18)
    measures = auto.to_fitted().provenance["measures"]
    assert measures["before"]["log_loss"] == "inf"
    assert measures["change"]["log_loss"]["difference"] == "-inf"


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in a folder with a file of scores: what it prints."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.chdir(tmp_path)
    scores, y = simulate(120)
    lines = [f"{s},{label},{1 + label}" for s, label in zip(scores, y, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(("p,y,w", *lines)) + "\n")

    def go(*words, code=0):
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (left.value.code or 0) == code, err
        return err if code else out

    return go


def test_fit_writes_a_record(run, tmp_path):
    for output in ("a.json", "b.json"):
        run("fit", tmp_path / "s.csv", "-s", "p", "-l", "y", "-m", "platt", "-o", output,
            "--cv", 3, "--period", "spring of 2024")  # fmt: skip
    text = (tmp_path / "a.json").read_text()
    assert text == (tmp_path / "b.json").read_text()
    assert str(tmp_path) not in text  # names of files, but not where they lay
    facts = cal.load("a.json").provenance
    assert facts["files"] == ("s.csv",)
    assert facts["period"] == "spring of 2024"
    assert facts["fitted_at"] == "2023-11-14T22:13:20Z"
    assert (facts["rows"], facts["weight"]) == (120, 120.0)
    measures = facts["measures"]
    assert measures["folds"] == 3
    assert measures["how"].startswith("out of fold")
    assert measures["after"]["brier"] != measures["before"]["brier"]
    run("fit", "s.csv", "-s", "p", "-l", "y", "-m", "platt", "-o", "c.json", "--cv", 0)
    bare = cal.load("c.json").provenance
    assert not {"measures", "period"} & set(bare)


def test_a_report_saves_its_calibrator_with_a_record(run):
    run("report", "s.csv", "-s", "p", "-l", "y", "-m", "platt", "-o", "r.html", "--save", "c.json")
    facts = cal.load("c.json").provenance
    assert facts["fitted_at"] == "2023-11-14T22:13:20Z"
    assert facts["measures"]["folds"] == 5
    assert facts["files"] == ("s.csv",)


def test_the_machine_gets_the_record_too(run):
    command = ("fit", "s.csv", "-s", "p", "-l", "y", "-w", "w", "-m", "platt", "--json")
    printed = json.loads(run(*command))
    document = json.loads(run("show", "calibrator.json", "--json"))
    assert printed["provenance"] == document["provenance"]
    assert document["provenance"]["measures"]["after"] == printed["evaluation"]["after"]
    assert document["provenance"]["weight_column"] == "w"


def test_show_prints_the_record(run):
    run("fit", "s.csv", "-s", "p", "-l", "y", "-w", "w", "-m", "platt", "--period", "May")
    shown = dict(line.split("  ", 1) for line in run("show", "calibrator.json").splitlines()
                 if "  " in line.strip() and not line.startswith(" "))  # fmt: skip
    shown = {key: value.strip() for key, value in shown.items()}
    assert shown["rows are from"] == "May"
    assert shown["fitted at"] == "2023-11-14T22:13:20Z"
    assert shown["rows"] == "120"
    assert shown["measured"] == "out of fold, 5 folds"
    assert "weight" in shown
    text = run("show", "calibrator.json")
    assert "  log loss" in text
    assert " before, " in text


def test_show_knows_all_kinds(run):
    for name in ("similarity-classes", "coded-coupling", "auto", "segmented", "acp"):
        cal.save(saved()[name], "c.json", period=("2024-01-01", "2024-01-31"), notes=["a", "b"])
        text = run("show", "c.json")
        assert "2024-01-01 to 2024-01-31" in text
        assert "a, b" in text
        assert "None" not in text.split("probability of")[-1].split("\n")[0]


def test_show_keeps_the_terminal_as_it_is(run):
    evil = {"notes": "\x1b[2J\x07gone\nrows  9", "\x1b[31m": {"x": [1, {"y": None}]}}
    cal.save(cal.Fitted(Identity(), (0, "\x1b"), 0, "\x1b[1A", provenance=evil), "c.json")
    text = run("show", "c.json")
    assert "\x1b" not in text
    assert "\\x1b[2J\\x07gone\\nrows  9" in text
    odd = {"measures": {"before": 7, "after": {"auc": "inf", "x": None}, "how": 3, "folds": []}}
    cal.save(cal.Fitted(Identity(), (0, 1), 1, provenance=odd), "c.json")
    assert "inf" in run("show", "c.json")


def test_bad_records_are_refused_before_the_work(run, monkeypatch):
    assert "period must be text" in run(
        "fit", "gone.csv", "-s", "p", "-l", "y", "--period", " ", code=2
    )
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert "SOURCE_DATE_EPOCH must be a whole number of seconds" in run(
        "fit", "gone.csv", "-s", "p", "-l", "y", code=2
    )


def test_time_is_told_in_utc(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    told = datetime.fromisoformat(time_stamp())
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60
