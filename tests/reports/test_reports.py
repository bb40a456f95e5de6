"""The report as a value: what it says, that it is honest, and that nothing in it is markup by
accident."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

import calibrant as cal
from calibrant.fitting.fitted import Fitted
from calibrant.maps import (
    Chain,
    Interval,
    Logistic,
    Mixture,
    Piecewise,
    Segmented,
)
from calibrant.metrics.evaluating import in_words
from calibrant.reports.kit import (
    Recipe,
    element,
    join,
    linear_axis,
    logit_axis,
    path_data,
    script_json,
    source_facts,
    ticks,
)
from calibrant.reports.page import Method, Report, recipes_for, verdict_of
from calibrant.reports.report import calibration_report, report_of

NASTY = (
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "\"><img src=x onerror=alert(1)>'",
    "&amp;<b>",
    "</style></svg></title>",
    "a\x00b\ud800c\u2028d",
    "${x}`{{ y }}%s",
)


@pytest.fixture(scope="module")
def data():
    """An overconfident model."""
    rng = np.random.default_rng(1)
    z = rng.normal(-0.5, 1.8, 3000)
    y = np.where(rng.random(3000) < 1 / (1 + np.exp(-z)), "yes", "no")
    return 1 / (1 + np.exp(-2.5 * z)), y


@pytest.fixture(scope="module")
def many(data):
    methods = {"Platt": cal.Platt(), "steps": cal.Isotonic(), "bins": cal.Histogram(bins=20)}
    return calibration_report(
        *data, calibrator=methods, segments=np.arange(3000) % 3, source="scores.csv"
    )


# --- what it says -------------------------------------------------------------------------------


def test_one_calibrator_is_judged_out_of_fold(data):
    from held_out import out_of_fold

    p, y = data
    r = calibration_report(p, y, calibrator=cal.Platt(), pos_label="yes")
    table = cal.ScoreTable.from_arrays(p, y, pos_label="yes")
    oof = out_of_fold(cal.Platt(), table)
    assert r.chosen.name == "Platt"
    assert r.chosen.log_loss == pytest.approx(cal.metrics.log_loss(oof), rel=1e-12)
    assert r.raw.log_loss == pytest.approx(cal.metrics.log_loss(table), rel=1e-12)
    assert r.chosen.brier == pytest.approx(cal.metrics.brier(oof), rel=1e-12)
    assert r.chosen.gain == pytest.approx(r.raw.log_loss - r.chosen.log_loss, rel=1e-9)
    assert r.chosen.gain_low < r.chosen.gain < r.chosen.gain_high
    assert r.evaluation.after["log_loss"] == pytest.approx(r.chosen.log_loss, rel=1e-12)
    assert r.fitted.map == cal.Platt().fit(p, y).map_
    assert (r.fitted.classes, r.fitted.pos_label) == (("no", "yes"), "yes")


def test_the_verdict_says_what_to_do_and_how_much_better(data):
    first, second = calibration_report(*data, calibrator=cal.Platt()).verdict
    assert (
        first == "Calibrate these scores with a sigmoid (Platt) before using them as probabilities."
    )
    assert re.fullmatch(
        r"On rows it had not seen, log loss fell from 0\.\d+ to 0\.\d+, 0\.\d+ better \(95 % "
        r"interval 0\.\d+ to 0\.\d+\); the ranking is kept \(AUC 0\.\d+\)\.",
        second,
    )


def test_good_scores_are_kept():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    r = calibration_report(p, y, calibrator=[cal.Platt(), cal.Histogram(bins=4)])
    assert r.chosen is r.raw
    assert r.verdict[0] == "Keep the scores as they are: no method improves on them beyond noise."
    assert "against" in r.verdict[1]
    assert r.evaluation.before is None
    assert r.map_curve is None
    assert [recipe.title for recipe in r.recipes] == ["Nothing to do"]
    alone = calibration_report(p, y, calibrator=cal.Histogram(bins=4))
    assert alone.chosen.name == "Histogram"
    assert alone.verdict[0] == "Keep the scores as they are: Histogram is worse."
    assert " worse (95 % interval" in alone.verdict[1]


def test_no_difference_is_called_so():
    rng = np.random.default_rng(8)
    p = rng.random(300)
    r = calibration_report(p, (rng.random(300) < p).astype(int), calibrator=cal.Temperature())
    assert "shows no gain beyond noise" in r.verdict[0]


def test_the_automatic_choice_is_the_default(data):
    p, y = data
    r = calibration_report(p[:400], y[:400])
    auto = cal.AutoCalibrator(classes=["no", "yes"]).fit(p[:400], y[:400])
    assert r.chosen.name == auto.chosen_
    board = {row.name: row for row in auto.leaderboard_.rows}
    assert r.chosen.log_loss == board[auto.chosen_].log_loss
    assert r.raw.log_loss == board["uncalibrated"].log_loss
    assert {m.name for m in r.methods[1:]} == {*board} - {"uncalibrated"}
    assert (r.fitted.calibrate(p[:50]) == auto.calibrate(p[:50])).all()


def test_the_page_says_what_the_automatic_choice_did():
    """Between one standard error and the interval the scores are calibrated, and it says so."""
    seen = set()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.beta(1, 3, 150)
        y, s = rng.random(150) < p, p**1.4 / (p**1.4 + (1 - p) ** 1.4)
        auto = cal.AutoCalibrator().fit_table(cal.ScoreTable.from_arrays(s, y))
        first = calibration_report(s, y).verdict[0]
        assert first.startswith("Keep") == (auto.chosen_ == "uncalibrated")
        seen.add((auto.chosen_, auto.leaderboard_["BLS"].gain_low > 0, "may be noise" in first))
    assert ("BLS", False, True) in seen


def test_folds_in_time_reach_the_page(data):
    s, y = data
    made = calibration_report(s, y, calibrator=cal.AutoCalibrator(cv=TimeSeriesSplit(3)))
    auto = cal.AutoCalibrator(cv=TimeSeriesSplit(3)).fit(s, y)
    assert made.chosen.log_loss == auto.leaderboard_.chosen.log_loss
    assert made.evaluation.weight == auto.leaderboard_.weight == 2250
    assert "3 folds" in made.how
    other = calibration_report(s, y, pos_label="no", calibrator=cal.AutoCalibrator(cv=0.25))
    assert "1 fold)" in other.how
    assert other.fitted.pos_label == "no"


def test_the_order_is_that_within_folds(data):
    """Maps of several folds thrown together tie and swap rows that no map ties or swaps."""
    e = calibration_report(*data, calibrator=cal.Platt()).evaluation
    assert e.after["auc"] == pytest.approx(e.before["auc"], abs=1e-12)
    assert e.change["auc"][0] == pytest.approx(0, abs=1e-12)
    assert e.distinct == e.distinct_before
    for spans, values in ((e.intervals, e.after), (e.intervals_before, e.before)):
        assert spans["auc"][0] < values["auc"] < spans["auc"][1]
    assert not any("share one" in note for note in e.notes)
    steps = calibration_report(*data, calibrator=cal.Histogram(bins=5)).evaluation
    assert steps.distinct == 5
    assert any("become 5 predictions" in note for note in steps.notes)


def test_what_was_judged_already_is_not_judged_again(data, monkeypatch):
    p, y = data
    auto = cal.AutoCalibrator(candidates=[cal.Platt()]).fit(p[:400], y[:400])
    whole = calibration_report(
        p[:400], y[:400], calibrator=cal.AutoCalibrator(candidates=[cal.Platt()])
    )
    monkeypatch.setattr(cal.Platt, "_fit", lambda self, table: 1 / 0)
    table = cal.ScoreTable.from_arrays(p[:400], y[:400])
    made = report_of(auto, table, source="a.csv")
    assert made.methods == whole.methods
    assert made.verdict == whole.verdict
    assert made.facts["source"] == "a.csv"
    with pytest.raises(cal.errors.InputError, match="fitted and could be judged"):
        report_of(cal.AutoCalibrator(), table)


def test_the_first_method_is_the_scores_and_the_others_are_best_first(many):
    assert many.methods[0].name == "scores as they are"
    losses = [m.log_loss for m in many.methods[1:]]
    assert losses == sorted(losses)
    assert sum(m.chosen for m in many.methods) == 1
    assert [m.gain is None for m in many.methods] == [True, False, False, False]


def test_a_fitted_calibrator_is_judged_as_it_is(data):
    p, y = data
    fitted = cal.Platt().fit(p[:1500], y[:1500]).to_fitted()
    r = calibration_report(p[1500:], y[1500:], calibrator=fitted)
    assert r.chosen.name == "Platt"
    assert r.fitted is fitted
    expected = cal.metrics.log_loss(y[1500:], fitted.calibrate(p[1500:]), pos_label="yes")
    assert r.chosen.log_loss == pytest.approx(expected, rel=1e-12)
    assert "On these rows" in r.verdict[1]
    assert "must be other rows" in r.how
    table = cal.ScoreTable.from_arrays(p[1500:], y[1500:])
    again = calibration_report(table, calibrator=fitted)
    assert again.chosen.gain == pytest.approx(r.chosen.gain, rel=1e-9)
    assert again.chosen.gain_low == pytest.approx(r.chosen.gain_low, rel=1e-9)


def test_probabilities_made_elsewhere_are_judged_row_by_row(data):
    p, y = data
    rng = np.random.default_rng(0)
    made = np.clip(p * rng.uniform(0.9, 1.0, len(p)), 0.01, 0.99)  # no function of the score
    r = calibration_report(p, y, calibrator={"mine": made})
    hit = y == "yes"
    gains = np.log(np.where(hit, made, 1 - made)) - np.log(np.where(hit, p, 1 - p))
    assert r.chosen.gain == pytest.approx(gains.mean(), rel=1e-9)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    assert r.chosen.gain_high - r.chosen.gain == pytest.approx(1.96 * error, rel=0.01)
    assert r.fitted is None
    assert r.recipes == ()
    assert "How to apply" not in r.to_html()


def test_weights_and_row_order(data):
    p, y = data
    w = np.random.default_rng(5).integers(0, 4, len(p))
    one = calibration_report(p, y, sample_weight=w, calibrator=cal.Platt())
    order = np.random.default_rng(6).permutation(len(p))
    two = calibration_report(p[order], y[order], sample_weight=w[order], calibrator=cal.Platt())
    assert one == two
    assert one.to_html() == two.to_html()
    assert one.facts["rows"] == f"{(w > 0).sum():,}"
    assert one.facts["weight"] == f"{w.sum():,}"
    heavy = calibration_report(
        p, y, sample_weight=np.full(len(p), 100.0), calibrator=cal.Temperature()
    )
    light = calibration_report(p, y, calibrator=cal.Temperature())
    assert heavy.chosen.gain_low == pytest.approx(light.chosen.gain_low, rel=1e-6)
    for name, ends in light.evaluation.intervals.items():
        if name in heavy.evaluation.intervals:
            assert heavy.evaluation.intervals[name] == pytest.approx(ends, rel=0.02, abs=2e-4)


def test_a_table_gives_the_same_report_as_its_rows(data):
    p, y = data
    table = cal.ScoreTable.from_arrays(p, y)
    one = calibration_report(
        table, classes=["no", "yes"], calibrator=cal.Isotonic(interpolation="centred")
    )
    two = calibration_report(p, y, calibrator=cal.Isotonic(interpolation="centred"))
    assert one.methods == two.methods
    assert one.verdict == two.verdict
    assert one.facts["fingerprint of the data"] == two.facts["fingerprint of the data"]


def test_margins_are_compared_with_their_sigmoid(data):
    p, y = data
    z = np.log(p) - np.log1p(-p)
    r = calibration_report(z, y, calibrator=cal.Platt())
    q = 1 / (1 + np.exp(-z))
    assert r.raw.log_loss == pytest.approx(cal.metrics.log_loss(y, q, pos_label="yes"), rel=1e-9)
    assert r.map_curve.domain == "score"
    assert any("margins" in note for note in r.evaluation.notes)
    assert "margins" in r.to_html()


def test_surely_wrong_probabilities_have_no_interval():
    p = np.array([0.0, 0.0, 0.2, 0.8, 1.0, 1.0] * 20)
    y = np.array([0, 1, 0, 1, 1, 1] * 20)
    r = calibration_report(p, y, calibrator=cal.Platt())
    assert r.raw.log_loss == np.inf
    assert r.chosen.gain == np.inf
    assert "since a probability of 0 or 1 was wrong" in r.verdict[1]
    assert r.verdict[0].startswith("Calibrate these scores")
    document = json.dumps(r.to_dict(), allow_nan=False)
    assert '"inf"' in document
    assert "∞" in r.to_html()


def test_segments_show_where_one_map_does_not_fit():
    rng = np.random.default_rng(2)
    n = 6000
    z = rng.normal(0, 1.5, n)
    south = rng.random(n) < 0.3
    y = (rng.random(n) < 1 / (1 + np.exp(-z + 1.2 * south))).astype(int)
    where = np.where(south, "South", "North")
    r = calibration_report(1 / (1 + np.exp(-z)), y, calibrator=cal.Platt(), segments=where)
    assert [panel.name for panel in r.panels] == ["North", "South"]
    for panel in r.panels:
        f = panel.figures
        rows = where == panel.name
        assert f["weight"] == rows.sum()
        assert f["observed"] == pytest.approx(y[rows].mean())
        assert f["low"] < f["observed"] < f["high"]
        assert f["after"] == pytest.approx(
            r.fitted.calibrate(1 / (1 + np.exp(-z[rows]))).mean(), rel=1e-9
        )
    page = r.to_html()
    assert "too high" in page
    assert "too low" in page


def test_advice_is_given_with_figures():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 4000)
    y = (rng.random(4000) < p / 3).astype(int)
    odd = np.array(["a", 7, "<b>"], dtype=object)[np.arange(4000) % 3]
    y[odd == 7] = 0
    r = calibration_report(p, y, calibrator=cal.Platt(), segments=odd)
    assert any(line.startswith("The scores expect") for line in r.advice)
    assert any("'7'" in line for line in r.advice)
    assert "What deserves a look" in r.to_html()
    assert {panel.name for panel in r.panels} == {"a", "7", "<b>"}
    few = calibration_report(p[:80], y[:80], calibrator=cal.Isotonic())
    assert any("exactly 0 or 1" in line for line in few.advice)


def test_labels_that_are_probabilities_are_named_on_the_page():
    """Tests and intervals take each of them as a class that was drawn."""
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    share = p**1.5
    words = "Some labels are probabilities"
    for table in (
        cal.ScoreTable.from_soft_labels(p, share),
        cal.ScoreTable.from_soft_labels(p.round(1), share.round(1)),
        cal.ScoreTable.from_soft_labels(p, share, rng.integers(1, 4, 1500)),
    ):
        made = calibration_report(table, calibrator=cal.Platt())
        assert words in made.how
        assert words in made.to_html()
    auto = cal.AutoCalibrator().fit(p, share)
    assert words in report_of(auto, cal.ScoreTable.from_soft_labels(p, share)).how
    weight = rng.random(1500) + 0.1
    y = rng.random(1500) < share
    hard = calibration_report(p, y, sample_weight=weight, calibrator=cal.Platt())
    assert words not in hard.how


def test_one_rate_for_scores_that_run_the_wrong_way_is_not_offered():
    """It would be no calibration: every row gets the same probability."""
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    y = np.where(rng.random(1500) < p, "no", "yes")
    for calibrator in (None, cal.Isotonic()):
        made = calibration_report(p, y, calibrator=calibrator)
        assert made.verdict[0].startswith("These scores run the wrong way")
        assert len(set(made.fitted.calibrate(p).round(9))) == 1
        (only,) = made.recipes
        assert only.title == "Nothing to apply"
        assert not only.code
        assert "pos_label='no'" in only.note
        assert "cal.load" not in made.to_html()
    falling = calibration_report(p, y, calibrator=cal.BLS(monotone=False))
    assert falling.recipes[0].title == "Python"


def test_segments_of_a_table_are_tables(data):
    p, y = data[:2]
    part = np.arange(len(p)) % 40
    rows = calibration_report(p, y, calibrator=cal.Platt(), segments=part)
    tables = {k: cal.ScoreTable.from_arrays(p[part == k], y[part == k]) for k in range(40)}
    whole = cal.ScoreTable.from_arrays(p, y)
    found = calibration_report(whole, calibrator=cal.Platt(), segments=tables)
    assert [panel.name for panel in found.panels] == [panel.name for panel in rows.panels]
    for one, other in zip(found.panels, rows.panels, strict=True):
        assert dict(one.figures) == pytest.approx(dict(other.figures))
    assert found.advice == rows.advice


def test_very_many_segments_are_put_together(data):
    p, y = data
    r = calibration_report(p, y, calibrator=cal.Platt(), segments=np.arange(3000) % 200)
    assert len(r.panels) == 24
    assert "all others" in {panel.name for panel in r.panels}
    assert sum(panel.figures["weight"] for panel in r.panels) == 3000


# --- several classes ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five():
    rng = np.random.default_rng(13)
    z = rng.normal(0, 1.5, (1500, 4))
    true = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    codes = (true.cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1)
    return 1.8 * z, np.array(["ant", "bee", "<cat>", "dog"])[codes]


def test_several_classes(five):
    z, y = five
    r = calibration_report(z, y, calibrator=[cal.Temperature(), cal.VectorScaling()])
    assert {m.name for m in r.methods[1:]} == {"Temperature", "VectorScaling"}
    assert r.chosen.gain_low > 0
    assert [panel.name for panel in r.panels] == sorted(set(y))
    assert r.evaluation.after["log_loss"] == pytest.approx(r.chosen.log_loss, rel=1e-9)
    assert r.fitted.predict_proba(z).shape == (1500, 4)
    page = r.to_html()
    assert "confidence of the top label" in page
    assert r.evaluation.level == 0.95
    assert "&lt;cat&gt;" in page
    assert "<cat>" not in page
    json.dumps(r.to_dict(), allow_nan=False)


def test_the_name_of_the_scores_as_they_are_is_taken(five):
    z, y = five
    with pytest.raises(cal.errors.ParameterError, match="'uncalibrated': it is always there"):
        calibration_report(z, y, calibrator={"uncalibrated": np.full((1500, 4), 0.25)})


def test_several_classes_made_elsewhere(five):
    z, y = five
    fitted = cal.Temperature().fit(z[:700], y[:700]).to_fitted()
    r = calibration_report(z[700:], y[700:], calibrator=fitted)
    p = fitted.predict_proba(z[700:])
    assert r.chosen.log_loss == pytest.approx(cal.metrics.log_loss(y[700:], p), rel=1e-12)
    s = calibration_report(z[700:], y[700:], calibrator={"mine": p})
    assert s.chosen.gain == pytest.approx(r.chosen.gain, rel=1e-12)
    with pytest.raises(cal.errors.InputError, match="must be probabilities"):
        calibration_report(z[700:], y[700:], calibrator={"mine": z[700:]})
    with pytest.raises(cal.errors.InputError, match="segments are for scores of two classes"):
        calibration_report(z, y, segments=y)


def test_scores_of_pairs_of_classes_are_refused():
    """They have no column for each class, so that there is nothing to compare a calibrator with."""
    rng = np.random.default_rng(3)
    for k in (3, 4):
        z = rng.normal(size=(400, k))
        y = np.array(list("abcd"))[(z + rng.gumbel(size=z.shape)).argmax(axis=1)]
        first, second = np.triu_indices(k, 1)
        pairs = z[:, first] - z[:, second]
        coded = cal.CodedCalibrator(cal.Platt(), code="all_pairs")
        fitted = cal.CodedCalibrator(cal.Platt(), code="all_pairs").fit(pairs, y)
        auto = cal.AutoCalibrator(candidates=[coded])
        for one in (coded, {"pairs": coded}, [coded, cal.Temperature()], auto, fitted.to_fitted()):
            with pytest.raises(cal.errors.InputError, match="a column of scores for each class"):
                calibration_report(pairs, y, calibrator=one)
        assert calibration_report(fitted.predict_proba(pairs), y, calibrator=cal.Temperature())
    own = cal.CodedCalibrator(cal.Platt(), code=2 * np.eye(4) - 1)
    assert calibration_report(z, y, calibrator=own).chosen.name == "CodedCalibrator"


# --- the value ----------------------------------------------------------------------------------


def test_it_is_a_value(many):
    assert pickle.loads(pickle.dumps(many)) == many
    assert hash(many) == hash(pickle.loads(pickle.dumps(many)))
    with pytest.raises(AttributeError):
        many.title = "other"
    with pytest.raises(TypeError):
        many.facts["rows"] = "1"
    with pytest.raises(cal.errors.InputError, match="exactly one"):
        Report("t", ("a", "b"), "", (), many.evaluation)
    assert repr(many) == "Report('Calibration of score', 3 methods, 'Platt' chosen)"
    assert str(many) == " ".join(many.verdict)


def test_notebooks_show_the_verdict_and_the_measures(many):
    short = many._repr_html_()
    assert "Calibrate these scores with a sigmoid (Platt)" in short
    assert "<table>" in short
    assert len(short) < 20_000


def test_json_holds_what_the_page_shows(many):
    document = json.loads(json.dumps(many.to_dict(), allow_nan=False))
    assert [m["name"] for m in document["methods"]] == [m.name for m in many.methods]
    assert document["methods"][0]["curve"]["mean_p"] == many.raw.curve.mean_p.tolist()
    assert document["evaluation"]["after"] == many.evaluation.to_dict()["after"]
    assert document["fitted"]["map"] == many.fitted.map.to_dict()
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', many.to_html())
    assert json.loads(inside[1]) == document


def test_save_writes_the_page_whole_or_not_at_all(many, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert many.save(path) == path
    assert path.read_text(encoding="utf-8") == many.to_html()
    monkeypatch.setattr(Report, "to_html", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        many.save(path)
    assert path.stat().st_size > 10_000
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(cal.errors.InputError, match="is a folder"):
        many.save(tmp_path)
    with pytest.raises(cal.errors.InputError, match="does not exist"):
        many.save(tmp_path / "no" / "r.html")


def test_output_writes_it_at_once(data, tmp_path):
    r = calibration_report(*data, calibrator=cal.Platt(), output=tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == r.to_html()


def test_the_same_data_give_the_same_page(data):
    pages = {calibration_report(*data, calibrator=cal.Isotonic()).to_html() for _ in range(2)}
    assert len(pages) == 1


def test_a_date_stands_there_only_if_given(data):
    made = calibration_report(
        *data, calibrator=cal.Platt(), source={"file": "a.csv", "date": "2026-03-01"}
    )
    assert made.facts["date"] == "2026-03-01"
    assert not re.search(
        r"20[2-9]\d-\d\d", calibration_report(*data, calibrator=cal.Platt()).to_html()
    )
    assert source_facts(["a", "b"]) == {"source": "a, b"}


@pytest.mark.full
def test_many_methods_stay_below_one_and_a_half_megabytes():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p**2).astype(int)
    named = {f"bins {k}": cal.Histogram(bins=k, binning="width") for k in range(1, 41)}
    named["steps"] = cal.Isotonic()
    page = calibration_report(p, y, calibrator=named, segments=rng.integers(0, 50, 3000)).to_html()
    assert 100_000 < len(page.encode()) < 1_500_000


def test_no_extra_is_needed(tmp_path):
    """Neither drawing nor a database nor a template engine."""
    import subprocess
    import sys

    code = """
import sys
for name in ("matplotlib", "duckdb", "jinja2", "rich", "typer", "pyarrow"):
    sys.modules[name] = None
import calibrant as cal
from calibrant.reports.report import calibration_report
scores, y = [0.1, 0.2, 0.7, 0.9] * 9, [0, 0, 1, 0] * 9
calibration_report(scores, y, calibrator=cal.Platt(), output="r.html")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "r.html").stat().st_size > 30_000


# --- refusals -----------------------------------------------------------------------------------


def test_refusals(data):
    p, y = data
    table = cal.ScoreTable.from_arrays(p, y)
    with pytest.raises(cal.errors.InputError, match="y must be given"):
        calibration_report(p)
    with pytest.raises(cal.errors.InputError, match="y must not be given beside a ScoreTable"):
        calibration_report(table, y)
    with pytest.raises(cal.errors.InputError, match="empty"):
        calibration_report(cal.ScoreTable.empty())
    with pytest.raises(cal.errors.InputError, match="segments need the rows"):
        calibration_report(table, calibrator=cal.Platt(), segments=y)
    with pytest.raises(cal.errors.InputError, match="segments"):
        calibration_report(p, y, calibrator=cal.Platt(), segments=y[:5])
    with pytest.raises(cal.errors.InputError, match="at least two rows of each class"):
        calibration_report([0.1, 0.2, 0.9], [0, 0, 1], calibrator=cal.Platt())
    with pytest.raises(cal.errors.ParameterError, match="calibrator must be one calibrator"):
        calibration_report(p, y, calibrator=7)
    with pytest.raises(cal.errors.ParameterError, match="the class Platt"):
        calibration_report(p, y, calibrator={"a": cal.Platt})
    with pytest.raises(cal.errors.ParameterError, match="both came"):
        calibration_report(p, y, calibrator={"a": cal.Platt(), "b": p})
    with pytest.raises(cal.errors.InputError, match="which has no rows"):
        calibration_report(table, calibrator={"b": p})
    with pytest.raises(cal.errors.ParameterError, match="title must be a str"):
        calibration_report(p, y, calibrator=cal.Platt(), title=7)
    with pytest.raises(cal.errors.InputError, match="source must be"):
        calibration_report(p, y, calibrator=cal.Platt(), source=7)
    fitted = cal.Platt().fit(p, y == "yes").to_fitted()
    with pytest.raises(cal.errors.InputError, match="gives the probability of True"):
        calibration_report(p, y, calibrator=fitted)


# --- nothing is markup by accident --------------------------------------------------------------


class Reader(HTMLParser):
    """The elements of a page, with their attributes and texts."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def nasty_report(data):
    p, y = data
    labels = np.where(y == "yes", NASTY[0], NASTY[3])
    named = {name: cal.Platt() for name in NASTY[:4]} | {NASTY[4]: cal.Histogram()}
    return calibration_report(
        p,
        labels,
        calibrator=named,
        segments=np.array(NASTY, dtype=object)[np.arange(len(p)) % len(NASTY)],
        title=NASTY[5],
        score_name=NASTY[0],
        label_name=NASTY[1],
        source={NASTY[0]: NASTY[6], "files": list(NASTY)},
        saved_as=NASTY[3],
    )


def test_user_strings_never_become_markup(data):
    made = nasty_report(data)
    page = made.to_html()
    page.encode("utf-8")
    reader, plain = read(page), read(calibration_report(*data, calibrator=cal.Platt()).to_html())
    assert reader.tags.count("script") == plain.tags.count("script") == 2
    assert reader.tags.count("style") == 1
    assert reader.tags.count("title") == 1 + 2 * sum(len(m.curve) for m in made.methods)
    assert "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert page.count("<!--") == 0
    assert made.title in "".join(reader.texts)
    inside = re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert json.loads(inside[1])["title"] == NASTY[5]


def test_user_strings_stay_inside_the_lines_to_copy(data):
    import shlex

    made = nasty_report(data)
    python, shell, sql = (recipe.code for recipe in made.recipes)
    compile(python, "recipe", "exec")
    words = shlex.split(shell)
    assert words[2] == NASTY[3]
    assert words[-1] == NASTY[0]
    own = NASTY[0].replace('"', '""')
    assert f'"{own}"' in sql
    assert made.recipes[0].note == f"The calibrator is the file {NASTY[3]}."
    unsaved = recipes_for(made.fitted, NASTY[0])[0]
    assert unsaved.note.startswith("The calibrator is in no file yet.")
    assert unsaved.note.endswith("calibrant report ... --save calibrator.json")
    broken = cal.Platt().fit(data[0], np.where(data[1] == "yes", "b\nx = 1 #", "a")).to_fitted()
    for recipe in recipes_for(broken, "s\n; DROP", "c'\".json"):
        assert "\nx = 1" not in recipe.code
    compile(recipes_for(broken, "s", "c'\".json")[0].code, "recipe", "exec")


@given(st.text(max_size=30), st.text(max_size=30))
def test_elements_read_back_as_what_they_hold(text, value):
    reader = read(element("p", text, title=value))
    assert reader.tags == ["p"]
    found = "".join(reader.texts)
    want = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)
    normal = want.replace("\r\n", "\n").replace("\r", "\n")
    assert found.replace("\r\n", "\n").replace("\r", "\n") == normal
    assert reader.attributes[0][0] == "title"


@given(st.recursive(st.text(max_size=20) | st.integers(), lambda x: st.lists(x, max_size=3)))
def test_json_in_a_script_cannot_end_it(value):
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&") & set(text)


def test_join_escapes_what_is_not_markup():
    assert join(["<", element("b", "&")], "|") == "&lt;|<b>&amp;</b>"


# --- SQL ----------------------------------------------------------------------------------------

MAPS = [
    Logistic(0.3, (("x", 1.7),)),
    Logistic(-0.2, (("z", 0.6),), clip=(1e-6, 1.0)),
    Logistic(0.1, (("z", 0.6), ("z2", -0.05))),
    Logistic(0.1, (("ln_p", 0.8), ("neg_ln_1mp", 1.3))),
    Piecewise.step([0.2, 0.5, 0.7], [0.1, 0.3, 0.4, 0.9]),
    Piecewise.linear([0.1, 0.4, 0.8], [0.05, 0.5, 0.7]),
    Piecewise([0.3, 0.6], [0.1, 0.5], [0.2, 0.8]),
    Piecewise.linear([-3.0, 0.0, 3.0], [-1.0, 0.2, 2.0], input="logit", output="logit"),
    Piecewise.constant(0.25),
    Interval(Piecewise.constant(0.1), Piecewise.constant(0.9), Piecewise.step([0.5], [0.2, 0.6])),
    Mixture([0.25, 0.75], (Piecewise.step([0.4], [0, 1]), Piecewise.step([0.6], [0.1, 0.8]))),
    Chain((Logistic(0.0, (("x", 1.0),)), Piecewise.step([0.5, 0.6], [0.1, 0.4, 0.9]))),
]


def sql_recipe(fitted, name="s"):
    """What a report says of SQL."""
    *_, sql = recipes_for(Fitted(fitted, (0, 1), 1, "Some"), name, "c.json")
    assert sql.title == "SQL"
    return sql


def through_sql(fitted, name, x):
    """What a database makes of scores with the query of a map."""
    duckdb = pytest.importorskip("duckdb")
    own = name.replace('"', '""')
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE scores (i INTEGER, "{own}" DOUBLE)')
        connection.executemany("INSERT INTO scores VALUES (?, ?)", list(enumerate(x)))
        query = f"SELECT probability FROM ({sql_recipe(fitted, name).code}) ORDER BY i"
        return [row[0] for row in connection.execute(query).fetchall()]


@pytest.mark.parametrize("fitted", MAPS, ids=lambda m: repr(m)[:40])
def test_sql_equals_the_map(fitted):
    x = np.concatenate((np.linspace(0, 1, 101), [0.2, 0.5, 0.7, 1e-9, 1 - 1e-9], -np.arange(3)))
    found = through_sql(fitted, 'my "score"; --', x.tolist())
    np.testing.assert_allclose(found, fitted(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("fitted", MAPS, ids=lambda m: repr(m)[:40])
def test_sql_gives_nothing_for_what_is_no_score(fitted):
    assert through_sql(fitted, "s", [None, np.nan, np.inf, -np.inf]) == [None] * 4


@pytest.mark.parametrize(
    ("fitted", "more"),
    [
        (Piecewise.linear(np.arange(300.0), np.arange(300) / 300), ""),
        (Segmented(MAPS[0], ("a",), (MAPS[0],)), " --segment SEGMENT"),
    ],
    ids=["long", "segments"],
)
def test_sql_is_a_command_where_it_would_be_long(fitted, more):
    sql = sql_recipe(fitted, "my score")
    command = f"calibrant export c.json --to sql --score 'my score'{more} --dialect DIALECT"
    assert sql.code == command
    assert "NULL" in sql.note


def test_sql_that_cannot_be_is_told_why():
    assert "control characters" in sql_recipe(MAPS[1], "a\nb").note
    assert not sql_recipe(MAPS[1], "a\nb").code


# --- axes ---------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_inside_and_are_few(low, width):
    high = low + width
    found = ticks(low, high)
    assert 1 <= len(found) <= 21
    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= t <= high + slack for t in found)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_log_odds_hold_all_points(values):
    axis = logit_axis([np.array(values)])
    part = axis.position(np.array(values))
    assert np.isfinite(part).all()
    assert part.min() >= 0
    assert part.max() <= 1
    assert axis.low < axis.high
    order = np.argsort(values)
    assert (np.diff(part[order]) >= 0).all()


def test_paths_keep_their_shape():
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0])
    y = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 1.0, 1.0])
    assert path_data(x, y) == "M0 0L1 0L1 5L3 5L3 1L2 1"
    assert linear_axis(0.0, 1.0).position(2.0) == 1.0


# --- words --------------------------------------------------------------------------------------


def method(many, **changes):
    from dataclasses import replace

    return replace(many.methods[0], **changes)


def test_words_for_every_outcome(many):
    raw = method(many, chosen=False)
    sure = {"log_loss": 0.4, "gain": 0.1, "gain_low": 0.05, "gain_high": 0.15}
    better = method(many, name="X", chosen=True, auc=None, **sure)
    assert "the ranking cannot be judged" in verdict_of((raw, better))[1]
    moved = method(many, name="X", chosen=True, **sure | {"auc": raw.auc - 0.1})
    assert "AUC moved from" in verdict_of((raw, moved))[1]
    only = method(many, chosen=True)
    assert verdict_of((only,))[1].startswith("Their log loss is")
    unknown = method(many, name="X", chosen=True, gain=0.2)
    assert verdict_of((raw, unknown))[0].startswith("Calibrate")


def test_in_words_is_the_one_of_before():
    y = [0, 0, 1, 1]
    e = cal.evaluate(y * 9, [0.6, 0.6, 0.4, 0.4] * 9, raw=[0.1, 0.2, 0.8, 0.9] * 9)
    assert "This made the scores worse" in in_words(e)
    e = cal.evaluate(y, [0.2, 0.3, 0.6, 0.7], raw=[0.1, 0.2, 0.8, 0.9])
    assert "may be chance" in in_words(e)
    assert in_words(cal.evaluate(y, [0.1, 0.2, 0.8, 0.9])).startswith("Log loss is")
    same = cal.evaluate(y, [0.1, 0.2, 0.8, 0.9], raw=[0.1, 0.2, 0.8, 0.9])
    assert in_words(same).startswith("Log loss stayed at 0.164 and ECE at 0.150.")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((0.486, 0.029), (0.486, 0.026), "stayed at 0.486, and ECE went from 0.029 to 0.026."),
        ((0.5, 0.03), (0.4, 0.02), "fell from 0.500 to 0.400 (−20 %) and ECE from 0.030 to 0.020."),
        ((0.5, 0.02), (0.4, 0.03), "fell from 0.500 to 0.400 (−20 %), and ECE went from 0.020 to"),
        ((0.5, 0.03), (0.4, 0.03), "fell from 0.500 to 0.400 (−20 %), and ECE stayed at 0.030."),
        ((0.5, 0.03), (np.inf, 0.02), "went from 0.500 to ∞ and ECE from 0.030 to 0.020."),
    ],
)
def test_every_measure_in_words_has_its_verb(before, after, said):
    e = cal.evaluate([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], raw=[0.2, 0.2, 0.8, 0.8])
    names = ("log_loss", "ece")
    changed = {
        side: dict(zip(names, values, strict=True))
        for side, values in (("before", before), ("after", after))
    }
    assert in_words(dataclasses.replace(e, **changed)).startswith(f"Log loss {said}")


def test_public_pieces():
    assert Recipe("SQL", "SELECT 1").note == ""
    assert Method.__dataclass_fields__["gain"].default is None


# --- scores of which a low one means the positive label -------------------------------------------


FALLING = {
    "automatic": cal.AutoCalibrator(),
    "one": cal.Platt(),
    "several": [cal.Platt(), cal.Isotonic()],
}


@pytest.mark.parametrize("by_table", [True, False], ids=["table", "rows"])
@pytest.mark.parametrize("kind", ["probabilities", "margins", "points"])
@pytest.mark.parametrize("given", FALLING)
def test_a_page_on_falling_scores_is_that_of_scores_turned_round(given, kind, by_table):
    rng = np.random.default_rng(4)
    risk = rng.beta(1, 3, 900).round(3)
    y = (rng.random(900) < risk**1.3).astype(int)
    came = {"probabilities": 1 - risk, "margins": 4 - 8 * risk, "points": 1000 * (1 - risk)}[kind]
    turned = risk if kind == "probabilities" else -came

    def page(scores, **options):
        data = (cal.ScoreTable.from_arrays(scores, y),) if by_table else (scores, y)
        region = None if by_table else np.arange(900) % 2
        return calibration_report(*data, calibrator=FALLING[given], segments=region, **options)

    falling, rising = page(came, direction="falling"), page(turned)
    assert falling.chosen.name == rising.chosen.name
    for ours, theirs in zip(falling.methods, rising.methods, strict=True):
        if theirs.log_loss_se is not None:
            assert ours.log_loss == pytest.approx(theirs.log_loss, abs=2e-3)
            assert ours.auc == pytest.approx(theirs.auc, abs=2e-3)
    raw = falling.raw.name
    assert raw == {"probabilities": "1 − score", "margins": "sigmoid of −score"}.get(
        kind, rising.raw.name
    )
    assert falling.evaluation.before["auc"] > 0.6
    p = falling.fitted.calibrate(came)
    assert np.allclose(p, rising.fitted.calibrate(turned), atol=2e-3)
    if falling.map_curve is not None:
        assert falling.map_curve.x[0] <= came.min() < came.max() <= falling.map_curve.x[-1]
    for ours, theirs in zip(falling.panels, rising.panels, strict=True):
        assert ours.figures["before"] == pytest.approx(theirs.figures["before"])
        assert ours.figures["after"] == pytest.approx(theirs.figures["after"], abs=2e-3)


def test_the_direction_is_that_of_the_calibrator_unless_it_is_said():
    rng = np.random.default_rng(5)
    risk = rng.beta(1, 3, 600)
    y = rng.random(600) < risk
    for one in (cal.AutoCalibrator(direction="falling"), [cal.Platt(direction="falling")]):
        assert calibration_report(1 - risk, y, calibrator=one).raw.name == "1 − score"
    known = cal.Platt(direction="falling").fit(1 - risk[:300], y[:300]).to_fitted()
    made = calibration_report(1 - risk[300:], y[300:], calibrator=known)
    assert made.fitted is known
    assert made.evaluation.before["auc"] > 0.6
    right = calibration_report(1 - risk, y, direction="auto")
    assert right.verdict[0] == "Use 1 − score: no method improves on it beyond noise."
    with pytest.raises(cal.errors.ParameterError, match="direction must be 'rising' or 'falling'"):
        calibration_report(risk, y, direction="down")
    with pytest.raises(cal.errors.InputError, match="direction is for scores of two classes"):
        calibration_report(rng.dirichlet([1, 1, 1], 9), [0, 1, 2] * 3, direction="falling")


# --- what acting is worth -------------------------------------------------------------------------


def test_the_decision_curve_is_that_of_rows_held_out(data):
    s, y = data
    report = calibration_report(s, y, calibrator=["platt", "isotonic"])
    auto = {"scores as they are": report.raw, report.chosen.name: report.chosen}
    assert report.decision.names == tuple(auto)
    assert report.decision.rate == pytest.approx((y == "yes").mean())
    wanted = cal.diagrams.decision_curve(y, s, thresholds=report.decision.thresholds, level=None)
    assert np.allclose(report.decision.net_benefit[0], wanted.net_benefit[0])
    page = report.to_html()
    assert "What acting on them is worth" in page
    assert "Decision curve: net benefit against the threshold of acting" in page
    assert json.loads(json.dumps(report.to_dict()))["decision"]["names"] == list(auto)


def test_no_decision_curve_where_it_says_nothing(data):
    rng = np.random.default_rng(7)
    right = rng.random(2000)
    kept = calibration_report(right, rng.random(2000) < right)
    useless = calibration_report(right, rng.random(2000) < 0.3, calibrator="platt")
    several = calibration_report(rng.dirichlet([1, 1, 1], 90), np.arange(90) % 3)
    for report in (kept, useless, several):
        assert report.decision is None
        assert "What acting" not in report.to_html()
    points = calibration_report(1000 * right, rng.random(2000) < right)
    assert points.decision.names == ("BLS",)  # one rate for all rows is all or none


def test_a_curve_that_counts_in_part_is_said_to():
    random = np.random.default_rng(0)
    scores = random.random(300)
    labels = (random.random(300) < scores**1.15).astype(int)
    auto = cal.AutoCalibrator().fit(scores, labels)
    assert 0.0 < auto.share_ < 1.0
    verdict = cal.calibration_report(scores, labels).verdict
    assert f"It counts {100 * auto.share_:.0f} %, and the scores as they are the rest" in verdict[1]
    assert auto.to_fitted().provenance["share"] == auto.share_
    wrong = cal.AutoCalibrator().fit(scores, random.random(300) < scores**4)
    assert wrong.share_ == 1.0
    assert "share" not in wrong.to_fitted().provenance
