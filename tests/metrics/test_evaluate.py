"""All measures at once: values, notes, and how the result looks."""

from __future__ import annotations

import io
import json
import math
import pickle
import warnings

import numpy as np
import pytest
from rich.console import Console

from calibrant import ScoreTable, metrics
from calibrant.errors import InputError
from calibrant.metrics import point_measures as windows
from calibrant.metrics.evaluating import Evaluation
from calibrant.metrics.measures import MEASURES, chosen_records

STANDARD = chosen_records(MEASURES)
RNG = np.random.default_rng(5)
MARGIN = RNG.normal(0, 2, 300)
P = 1 / (1 + np.exp(-MARGIN))
Y = (RNG.random(300) < P).astype(int)
Q = P.round(1).clip(0.05, 0.95)


def test_values_are_those_of_the_functions():
    e = metrics.evaluate(Y, P, raw=Q, bins=7)
    for values, p in ((e.after, P), (e.before, Q)):
        assert values["log_loss"] == metrics.log_loss(Y, p)
        assert values["brier"] == metrics.brier(Y, p)
        assert values["ece"] == metrics.ece(Y, p, bins=7)
        assert values["mce"] == metrics.mce(Y, p, bins=7)
        assert values["rmse"] == metrics.rmse(Y, p)
        assert values["auc"] == metrics.auc(Y, p)
        assert values["accuracy"] == metrics.accuracy(Y, p)
        assert values["calbin"] == metrics.calbin(Y, p)
        assert values["calibration_loss"] == metrics.calibration_loss(Y, p)
        parts = metrics.corp(Y, p)
        assert values["miscalibration"] == pytest.approx(parts.miscalibration, abs=1e-14)
        assert values["discrimination"] == pytest.approx(parts.discrimination, abs=1e-14)
        line = metrics.cox(Y, p)
        assert values["calibration_slope"] == pytest.approx(line.slope, rel=1e-12)
        ratio = line.observed_expected
        assert values["observed_expected"] == pytest.approx(ratio, rel=1e-12)
        assert list(values) == list(STANDARD)
    assert (e.weight, e.positive_weight) == (300, Y.sum())
    assert (e.distinct, e.distinct_before) == (300, len(np.unique(Q)))
    assert e.notes == ()
    assert e.level == 0.95


def test_without_raw_scores_there_is_no_before():
    e = metrics.evaluate(Y, P)
    assert e.before is None
    assert e.distinct_before is None


def test_tables_give_the_same_evaluation():
    table, raw = ScoreTable.from_arrays(Q, Y), ScoreTable.from_arrays(MARGIN, Y)
    plain = metrics.evaluate(table, raw=raw, level=None)
    assert plain == metrics.evaluate(Y, Q, raw=MARGIN, level=None)
    e, rows = metrics.evaluate(table, raw=raw), metrics.evaluate(Y, Q, raw=MARGIN)
    assert metrics.evaluate(table) == metrics.evaluate(Y, Q)
    assert (e.intervals, e.intervals_before) == (rows.intervals, rows.intervals_before)
    assert (e.after, e.before) == (rows.after, rows.before)


def test_margins_are_read_through_the_sigmoid_and_ranked_as_they_are():
    e = metrics.evaluate(Y, P, raw=MARGIN)
    assert any("through the sigmoid" in note for note in e.notes)
    assert e.before["brier"] == pytest.approx(e.after["brier"], rel=1e-12)
    steep = MARGIN * (99 / abs(MARGIN).max())  # σ is exactly 0 or 1: ranks would be lost
    e = metrics.evaluate(Y, P, raw=steep)
    assert e.before["auc"] == e.after["auc"] == metrics.auc(Y, P)
    assert e.before["log_loss"] == math.inf
    assert any(note.startswith("before: log loss is infinite") for note in e.notes)
    assert not any(note.startswith("after:") for note in e.notes)


def test_two_columns_and_other_labels():
    words, pair = np.array(["bad", "good"])[Y], np.column_stack((1 - P, P))
    flipped = metrics.evaluate(words, pair, raw=-MARGIN, pos_label="bad")
    assert flipped.positive_weight == 300 - Y.sum()
    assert flipped.after["brier"] == pytest.approx(metrics.brier(Y, P), rel=1e-12)
    assert flipped.before["auc"] == pytest.approx(metrics.auc(Y, MARGIN * 0 + P), rel=1e-12)
    both = metrics.evaluate(words, pair, raw=pair, pos_label="bad")
    assert both.before == both.after


def test_new_ties_are_noted_with_the_auc():
    e = metrics.evaluate(Y, Q, raw=P)
    before, after = metrics.auc(Y, P), metrics.auc(Y, Q)
    assert e.notes == (
        f"300 different scores became {e.distinct} predictions: some now share one, AUC moved "
        f"from {before:.4g} to {after:.4g}",
    )


def test_new_ties_that_cost_nothing_are_noted_without_the_auc():
    e = metrics.evaluate([0, 0, 1], [0.2, 0.2, 0.7], raw=[0.1, 0.2, 0.7], level=None)
    assert e.notes == (
        "calibration_slope was left out: a threshold tells the classes apart",
        "3 different scores became 2 predictions: some now share one",
    )


def test_infinite_log_loss_is_noted_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = metrics.evaluate([1, 1, 0, 1], [0.0, 0.0, 0.1, 0.9])
    assert e.after["log_loss"] == math.inf
    assert "log_loss" not in e.intervals
    assert e.notes[0] == "log loss is infinite: 2 positives were given probability 0"


def test_what_the_data_do_not_allow_is_left_out_and_said():
    e = metrics.evaluate([1, 1], [0.5, 0.6], raw=[0.4, 0.5], sample_weight=[0.5, 1.0], level=None)
    assert set(STANDARD) - set(e.after) == {"auc", "calbin", "calibration_slope"}
    assert set(e.before) == set(e.after)
    assert e.notes == (
        "auc needs both classes, but only positives came",
        "calbin needs whole weights (a window counts cases), but fractions came",
        "calibration_slope needs both classes, but only positives came",
    )
    assert not any(math.isnan(value) for value in (*e.after.values(), *e.before.values()))


def test_calbin_is_left_out_of_endless_data(monkeypatch):
    monkeypatch.setattr(windows, "MOST_WINDOWS", 299)
    e = metrics.evaluate(Y, P)
    assert "calbin" not in e.after
    assert "calbin was left out: it looks at each of 300 cases" in e.notes[0]


def test_a_pooled_table_says_so():
    pooled = ScoreTable.from_arrays(P, Y).pool(20)
    e = metrics.evaluate(pooled)
    assert any("pooled" in note for note in e.notes)
    assert e.after["brier"] == pytest.approx(metrics.brier(Y, P), abs=1e-2)


@pytest.mark.parametrize(
    ("y", "p", "raw", "message"),
    [
        (Y, P, MARGIN[:299], "y has 300 and raw has 299"),
        (Y, P, np.where(MARGIN > 4, np.nan, MARGIN), "raw must be finite"),
        (Y, P, ["x"] * 300, "raw must be numbers"),
        (Y, P, ScoreTable.from_arrays(P, Y), "raw must be a column"),
        (ScoreTable.from_arrays(P, Y), None, MARGIN, "raw must be a ScoreTable"),
        (ScoreTable.from_arrays(P, Y), None, ScoreTable.from_arrays(P[1:], Y[1:]), "same rows"),
    ],
)
def test_bad_raw_scores_are_refused(y, p, raw, message):
    with pytest.raises(InputError, match=message):
        metrics.evaluate(y, p, raw=raw)


# --- looks --------------------------------------------------------------------------------------


def test_json_keeps_everything_and_writes_infinity_as_a_word():
    e = metrics.evaluate([1, 0, 1], [0.0, 0.5, 0.7], raw=[0.2, 0.5, 0.7])
    back = json.loads(json.dumps(e.to_dict(), allow_nan=False))
    assert back["after"]["log_loss"] == "inf"
    assert back["before"] == e.before
    assert back["after"]["brier"] == e.after["brier"]
    assert (back["weight"], back["positive_weight"], back["distinct"]) == (3, 2, 3)
    assert back["distinct_before"] == 3
    assert back["notes"] == list(e.notes)
    assert back["level"] == 0.95
    assert "log_loss" not in back["intervals"]
    assert "log_loss" not in back["change"]
    assert tuple(back["intervals"]["brier"]) == e.intervals["brier"]
    assert tuple(back["intervals_before"]["ece"]) == e.intervals_before["ece"]
    assert tuple(back["change"]["brier"].values()) == e.change["brier"]
    assert back["change"]["mce"]["low"] is None
    plain = metrics.evaluate([1, 0], [0.2, 0.5], level=None).to_dict()
    assert [plain[key] for key in ("level", "intervals", "intervals_before", "change")] == [
        None
    ] * 4


def test_an_evaluation_is_a_value():
    one, other = metrics.evaluate(Y, P, raw=Q), metrics.evaluate(Y, P, raw=Q)
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != metrics.evaluate(Y, P)
    with pytest.raises(AttributeError):
        one.weight = 3.0


def test_plain_text_is_aligned():
    lines = str(metrics.evaluate(Y, Q, raw=P, level=None, measures="standard")).splitlines()
    rule = lines[1]
    starts = [i for i, c in enumerate(rule) if c == "─" and (i == 0 or rule[i - 1] == " ")]
    table = lines[: 2 + len(STANDARD)]
    for line in table:
        padded = line.ljust(len(rule))
        assert all(padded[i - 2 : i] == "  " for i in starts[1:])
        assert line == line.rstrip()
    assert table[0].split() == ["measure", "good", "is", "before", "after", "change"]
    assert {line.split()[-1] for line in table[2:]} <= {"lower", "higher", "same"}
    assert lines[-1].startswith("note: 300 different scores became")


def test_plain_text_with_intervals_fits_a_hundred_columns():
    e = metrics.evaluate(Y, Q, raw=P, level=0.9, measures="standard")
    lines = str(e).splitlines()
    table = lines[: 2 + len(STANDARD)]
    assert max(map(len, table)) <= 100
    words = "measure good is before after 90 % interval change by"
    assert table[0].split() == words.split()
    low, high = e.intervals["brier"]
    brier = next(line for line in table if line.startswith("Brier"))
    assert f"{low:.4f} to {high:.4f}" in brier
    assert next(line for line in table if line.startswith("MCE")).endswith("–")
    alone = str(metrics.evaluate(Y, Q)).splitlines()
    assert alone[0].split() == ["measure", "good", "is", "value", "95", "%", "interval"]


def test_five_measures_are_shown_where_none_were_asked_for():
    e = metrics.evaluate(Y, Q, raw=P, level=None)
    lines = str(e).splitlines()
    assert [line.split("  ")[0] for line in lines[2:7]] == [
        "log loss",
        "Brier score",
        "ECE",
        "AUC",
        "calibration slope",
    ]
    assert lines[8] == '8 more measures: measures="all"'
    assert list(e.after) == list(e.to_dict()["after"]) == list(STANDARD)
    assert "brief" not in e.to_dict()
    everything = str(metrics.evaluate(Y, Q, raw=P, level=None, measures="all"))
    assert "Emax" in everything
    assert "more measures" not in everything


def test_notes_on_measures_that_are_not_shown_are_left_out():
    y, p = [0, 1, 0, 1], [0.2, 0.8, 0.4, 0.6]
    weight = [1.5, 1.0, 1.0, 1.0]
    e = metrics.evaluate(y, p, sample_weight=weight, level=None)
    assert any("calbin" in note for note in e.notes)
    assert "calbin" not in str(e)
    assert "calbin" in str(metrics.evaluate(y, p, sample_weight=weight, level=None, measures="all"))


def cells_of(e):
    """The cells of the table of an evaluation, by measure."""
    names = [name for name in MEASURES if name in e.after]
    return {name: row.cells for name, row in zip(names, e._table().rows, strict=True)}


def test_verdicts():
    values = dict.fromkeys(STANDARD, 0.5)
    up = dict.fromkeys(STANDARD, 0.6)
    rows = cells_of(Evaluation(up, values, 9, 4, 3, 3))
    assert {row[-1] for row in rows.values()} == {"higher"}  # no intervals, so no judgement
    sides = (dict.fromkeys(STANDARD, (0.58, 0.62)), dict.fromkeys(STANDARD, (0.4, 0.55)))
    rows = cells_of(Evaluation(up, values, 9, 4, 3, 3, (), 0.95, *sides))
    for name, measure in STANDARD.items():
        assert rows[name][-1] == ("worse" if measure.better == "smaller" else "better")
    sides[1]["auc"] = (0.4, 0.59)  # they overlap
    assert Evaluation(up, values, 9, 4, 3, 3, (), 0.95, *sides).verdict("auc") == "unclear"
    rows = cells_of(Evaluation(values, values, 9, 4, 3, 3))
    assert {row[-1] for row in rows.values()} == {"same"}
    fixed = cells_of(Evaluation(values, values | {"log_loss": math.inf}, 9, 4, 3, 3))["log_loss"]
    assert fixed[2:] == ("∞", "0.5000", "better")


def test_a_change_that_may_be_none_is_unclear():
    values, up = {"brier": 0.5, "auc": 0.5, "mce": 0.5}, {"brier": 0.6, "auc": 0.6, "mce": 0.6}
    change = {"brier": (0.1, -0.1, 0.3), "auc": (0.1, 0.05, 0.15), "mce": (0.1, None, None)}
    spans = {"brier": (0.4, 0.8)}
    rows = cells_of(Evaluation(up, values, 9, 4, 3, 3, (), 0.95, spans, spans, change))
    assert rows["brier"][4:] == ("0.4000 to 0.8000", "unclear", "−0.1000 to 0.3000")
    assert rows["auc"][4:] == ("–", "better", "0.0500 to 0.1500")
    assert rows["mce"][4:] == ("–", "unclear", "–")


def test_a_measure_that_only_one_side_has_is_shown_without_a_verdict():
    e = Evaluation({"brier": 0.2, "calbin": 0.1}, {"brier": 0.3}, 9, 4, 3, 3)
    assert cells_of(e)["calbin"][2:] == ("–", "0.1000", "–")
    assert "CalBin" in str(e)


def test_small_values_keep_their_digits():
    e = Evaluation({"brier": 1.234e-5, "ece": 0.0}, None, 9, 4, 3, None)
    assert "1.23e-05" in str(e)
    assert "0.0000" in str(e)


def test_rich_table():
    out = io.StringIO()
    e = metrics.evaluate(Y, Q, raw=P, measures="standard")
    Console(file=out, width=100, no_color=True).print(e)
    text = out.getvalue()
    assert "…" not in text
    for measure in STANDARD.values():
        assert measure.label in text
    assert "unclear" in text
    assert "300 different scores became" in text


def test_html_is_escaped_and_complete():
    e = Evaluation({"brier": 0.25}, None, 4, 2, 3, None, ("p < q & <script>",))
    page = e._repr_html_()
    assert "<script>" not in page
    assert "p &lt; q &amp; &lt;script&gt;" in page
    assert "Brier score" in page
    assert "0.2500" in page
    full = metrics.evaluate(Y, Q, raw=P, measures="standard")._repr_html_()
    assert full.count("<tr") == 1 + len(STANDARD)
    assert full.count("<td") == 7 * len(STANDARD)
