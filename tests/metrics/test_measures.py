"""The registry of measures: what every record promises, and that a new one is known everywhere."""

from __future__ import annotations

import io
import json
import math
import pickle

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy import stats

import calibrant as cal
from calibrant.cli.judging import segment_table
from calibrant.metrics.chance import clopper_pearson
from calibrant.metrics.evaluating import TiesNote
from calibrant.metrics.measures import (
    CLASS_MEASURES,
    LABEL_MEASURES,
    MEASURES,
    RECORDS,
    REDRAWN,
    Measure,
    ValueWithNote,
)
from calibrant.result_tables import ResultTable, TableColumn, TableRow

RNG = np.random.default_rng(8)
P = RNG.random(400).round(3)
Y = (RNG.random(400) < P**1.5).astype(int)
Q = np.round(P**1.5, 2)
FRAME = pl.DataFrame({"p": P, "q": Q, "y": Y})


# --- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_says_all_there_is_to_know(record):
    assert record.label
    assert record.meaning
    assert record.better in ("smaller", "larger", "closer")
    assert record.groups
    assert record.target == 0.0 or record.better == "closer"
    assert record.range[0] < record.range[1]
    assert record.of is not None or record.of_classes is not None


def test_names_differ_and_every_value_and_interval_lies_in_its_range():
    assert len({record.name for record in RECORDS}) == len(RECORDS)
    logits = RNG.normal(size=(300, 3))
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = RNG.integers(0, 3, 300)
    for e, known in (
        (cal.evaluate(Y, P, replicates=100, measures="all"), MEASURES),
        (cal.evaluate(codes, softmax), CLASS_MEASURES),
    ):
        assert list(e.after) == list(known)
        for name, value in e.after.items():
            low, high = known[name].range
            assert low <= value <= high
            if name in e.intervals:
                assert low <= e.intervals[name][0] <= value <= e.intervals[name][1] <= high


def test_the_measures_of_labels_and_of_drawn_tables_are_measures_of_two_classes():
    assert list(LABEL_MEASURES) == ["log_loss", "brier", "ece", "auc"]
    assert set(LABEL_MEASURES) | set(REDRAWN) <= set(MEASURES)
    found = cal.metrics.multilabel_measures(
        np.column_stack((Y, 1 - Y)), np.column_stack((P, 1 - P))
    )
    assert list(found.micro) == list(found.macro) == list(LABEL_MEASURES)


@pytest.mark.parametrize(
    ("before", "after", "options", "word"),
    [
        (0.5, 0.4, {}, "unclear"),
        (0.4, 0.5, {"judged": False}, "higher"),
        (0.5, 0.4, {"judged": False}, "lower"),
        (0.5, 0.50001, {}, "same"),
        (0.5, 0.4, {"change": (-0.2, 0.1)}, "unclear"),
        (0.5, 0.4, {"change": (-0.2, -0.1)}, "better"),
        (0.4, 0.5, {"change": (0.1, 0.2)}, "worse"),
        (0.5, 0.4, {"sides": ((0.46, 0.55), (0.3, 0.45))}, "better"),
        (0.5, 0.4, {"sides": ((0.44, 0.55), (0.3, 0.45))}, "unclear"),
        (math.inf, 0.4, {}, "better"),
        (math.inf, math.inf, {}, "same"),
    ],
)
def test_verdicts_of_a_measure_of_which_smaller_is_better(before, after, options, word):
    assert MEASURES["brier"].verdict(before, after, **options) == word
    turned = {"better": "worse", "worse": "better"}.get(word, word)
    assert MEASURES["auc"].verdict(before, after, **options) == turned


# --- a new record -------------------------------------------------------------------------------


def _mean_error(facts):
    groups = facts.groups
    return abs(float(groups.predicted.sum() / groups.weight.sum()) - facts.base_rate)


def _widest(facts):
    if len(facts.table) < 3:
        return ValueWithNote(None, "widest needs three predictions")
    return float(np.diff(facts.table.scores).max())


@pytest.fixture
def new(monkeypatch):
    """Two records more: one that sums are enough for, and one that needs the table."""
    words = ("mean error", "|mean prediction − base rate|", "smaller")
    everywhere = Measure(
        "mean_error",
        *words,
        brief=True,
        of=_mean_error,
        interval=lambda found: (found.values["mean_error"] - 0.01, 2.0),
        change=lambda pairs: (-0.5, 0.5),
    )
    table_only = Measure(
        "widest", "widest", "the widest step", "larger", of=_widest, needs_table="it looks at steps"
    )
    for record in (everywhere, table_only):
        monkeypatch.setitem(MEASURES, record.name, record)


@pytest.mark.usefixtures("new")
def test_a_new_record_is_known_to_evaluate():
    e = cal.evaluate(Y, Q, raw=P, replicates=100)
    assert e.after["mean_error"] == pytest.approx(abs(Q.mean() - Y.mean()))
    assert e.after["widest"] == pytest.approx(np.diff(np.unique(Q)).max())
    assert e.intervals["mean_error"][1] == 1.0  # cut to the range
    assert "widest" not in e.intervals
    assert e.change["mean_error"][1:] == (-0.5, 0.5)
    lines = str(e).splitlines()
    assert next(line for line in lines if line.startswith("mean error")).split()[2] == "smaller"
    assert "|mean prediction − base rate|" in e._repr_html_()
    assert json.loads(json.dumps(e.to_dict()))["after"]["widest"] == e.after["widest"]
    few = cal.evaluate([0, 1], [0.2, 0.7], level=None)
    assert "widest" not in few.after
    assert "widest needs three predictions" in few.notes


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize("frame", [FRAME.lazy(), duckdb.from_arrow(FRAME.to_arrow())])
def test_a_new_record_is_known_where_rows_are_grouped(frame):
    e = cal.evaluate(frame, "q", label="y", cells=16, level=None)
    assert e.after["mean_error"] == pytest.approx(abs(Q.mean() - Y.mean()), abs=1e-12)
    assert "widest" not in e.after
    assert "widest was left out: it looks at steps" in e.notes
    exact = cal.evaluate(frame, "q", label="y", level=None)
    assert exact.after["widest"] == pytest.approx(np.diff(np.unique(Q)).max())


@pytest.mark.usefixtures("new")
def test_a_new_record_is_known_to_the_report_the_command_line_and_learning_curves():
    report = cal.calibration_report(P, Y, calibrator=cal.Platt())
    assert "mean error<br><small>|mean prediction − base rate|</small>" in report.to_html()
    e = cal.evaluate(Y, P, level=None)
    assert "mean error" in [column.header for column in segment_table({"a": e}, "s").columns]
    curve = cal.learning_curve(
        cal.Platt(), P, Y, sizes=(50,), repeats=2, measure="mean_error", random_state=0
    )
    assert curve.measure == "mean error"
    with pytest.raises(
        cal.errors.InputError, match="widest needs three predictions in the rows left"
    ):
        cal.learning_curve(
            cal.Histogram(bins=1), P, Y, sizes=(50,), repeats=2, measure="widest", random_state=0
        )


# --- notes --------------------------------------------------------------------------------------


def test_notes_on_ties_are_known_as_such():
    e = cal.evaluate(cal.ScoreTable.from_arrays(Q, Y), raw=cal.ScoreTable.from_arrays(P, Y))
    assert any(note.startswith("the change has no intervals") for note in e.notes)
    (ties,) = (note for note in e.notes if isinstance(note, TiesNote))
    assert "some now share one" in ties
    again = pickle.loads(pickle.dumps(e))
    assert again == e
    assert [type(note) for note in again.notes] == [type(note) for note in e.notes]


def test_the_changes_of_a_page_have_intervals():
    report = cal.calibration_report(P, Y, calibrator=cal.Isotonic())
    assert not any("the change has no" in note for note in report.evaluation.notes)
    _, low, high = report.evaluation.change["brier"]
    assert low < high
    page = report.to_html()
    shown = next(note for note in report.evaluation.notes if isinstance(note, TiesNote))
    assert f"<li>{shown}</li>" in page


def test_a_report_on_a_saved_calibrator_takes_margins():
    margins = np.log(np.clip(P, 0.01, 0.99) / (1 - np.clip(P, 0.01, 0.99)))
    report = cal.calibration_report(margins, Y, calibrator=cal.Platt().fit(margins, Y).to_fitted())
    assert report.raw.auc == pytest.approx(
        cal.metrics.auc(Y, 1 / (1 + np.exp(-margins))), abs=1e-12
    )


# --- what is written once -----------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "rows"), [(0, 7), (3, 10), (10, 10), (1, 1000)])
def test_clopper_pearson_is_the_exact_interval(hits, rows):
    low, high = clopper_pearson(np.array([float(rows)]), np.array([hits / rows]), 0.05)
    exact = stats.binomtest(hits, rows).proportion_ci(0.9, method="exact")
    assert (low[0], high[0]) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_clopper_pearson_of_endless_rows_is_finite():
    low, high = clopper_pearson(np.array([1e300]), np.array([0.3]), 0.025)
    assert low[0] == pytest.approx(0.3, abs=1e-5)
    assert high[0] == pytest.approx(0.3, abs=1e-5)


def test_a_narrow_terminal_leaves_out_what_is_expendable():
    columns = [
        TableColumn("name", "left", widest=4),
        TableColumn("first", expendable=1),
        TableColumn("second", expendable=0),
        TableColumn("third"),
    ]
    table = ResultTable(columns, [TableRow(("a long name", "1", "2", "3"))])
    titles = {width: table.fitted_to(width).lines[0] for width in (80, 33, 32, 24, 23, 1)}
    assert titles[80] == titles[33] == ("name", "first", "second", "third")
    assert titles[32] == titles[24] == ("name", "first", "third")
    assert titles[23] == titles[1] == ("name", "third")
    assert table.fitted_to(32).rows[0].cells == ("a long name", "1", "3")


def test_names_of_segments_are_no_markup():
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(segment_table({"[bold]a[/bold]": cal.evaluate(Y, P, level=None)}, "s"))
    assert "[bold]a[/bold]" in console.export_text()
