"""Evaluation where the data are: the same measures as in memory, from a few sums."""

from __future__ import annotations

import math
import re
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibrant import metrics
from calibrant.data.lazy import Names, lazy_frame, read_lazy, run_steps
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.evaluating import evaluate_rows
from calibrant.metrics.frames import OutsideError, _first_pass, _measure
from calibrant.metrics.measures import MEASURES, REDRAWN, chosen_records
from lazy_frames import KINDS
from lazy_frames import frame as frame_of
from strategies import MARGINS, PROBABILITIES, REAL, WHOLE, costly, rows

duckdb = pytest.importorskip("duckdb")

RNG = np.random.default_rng(11)
N = 4_000
P = RNG.beta(0.7, 3.0, N)
Y = (RNG.random(N) < P**1.3).astype(int)
W = RNG.gamma(2.0, 1.0, N)
MARGIN = 1.7 * np.log(P / (1 - P)) - 0.4
FRAME = pl.DataFrame({"p": P, "y": Y, "w": W, "s": MARGIN})
CELLS = st.sampled_from([16, 30, 128, 1024])
GROUPED = [name for name, one in chosen_records(MEASURES).items() if not one.needs_table]


def in_duckdb(frame: pl.DataFrame):
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    return connection.sql("SELECT * FROM held")


def doubt(e, side="") -> float:
    """How far from the exact AUC a note says that it may be."""
    pattern = re.compile(rf"(?:{side}: )?auc is from cells: within (\S+) of the exact one")
    said = [float(found[1]) for note in e.notes if (found := pattern.fullmatch(note))]
    return said[0] if said else 0.0


def same(found: dict, wanted: dict, auc: float) -> None:
    """All measures but CalBin and the AUC are sums over rows, whatever the cells."""
    assert list(found) == [name for name in GROUPED if name in wanted]
    for name, value in found.items():
        within = auc + 1e-14 if name == "auc" else 2e-15
        assert value == pytest.approx(wanted[name], rel=1e-12, abs=within), name


# --- equal to memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("cells", [16, 65_536])
@pytest.mark.parametrize(
    "kind", [pl.DataFrame.lazy, in_duckdb, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow]
)
def test_cells_give_the_measures_of_the_rows(kind, cells, weight):
    e = metrics.evaluate(
        kind(FRAME), "p", label="y", raw="s", sample_weight=weight, cells=cells, level=None
    )
    w = None if weight is None else W
    plain = metrics.evaluate(Y, P, raw=MARGIN, sample_weight=w, level=None)
    same(e.after, plain.after, doubt(e, "after"))
    same(e.before, plain.before, doubt(e, "before"))
    assert e.weight == pytest.approx(plain.weight, rel=1e-12)
    assert e.positive_weight == pytest.approx(plain.positive_weight, rel=1e-12)


@given(rows(PROBABILITIES, max_size=60), CELLS, st.sampled_from([1, 3, 10, 37, 300]))
def test_any_probabilities_with_whole_weights(data, cells, bins):
    s, y, w = data
    frame = pl.LazyFrame({"p": s, "y": y, "w": w})
    e = metrics.evaluate(
        frame, "p", label="y", sample_weight="w", bins=bins, cells=cells, classes=[0, 1], level=None
    )
    plain = metrics.evaluate(y, s, sample_weight=w, bins=bins, classes=[0, 1], level=None)
    same(e.after, plain.after, doubt(e))
    assert e.weight == plain.weight
    infinite = [note for note in plain.notes if note.startswith("log loss is infinite")]
    assert [note for note in e.notes if note.startswith("log loss is infinite")] == infinite


@given(rows(PROBABILITIES, REAL, max_size=60), CELLS, st.sampled_from([1.0, 1e90, 1e-90]))
def test_any_probabilities_with_real_weights(data, cells, scale):
    s, y, w = data
    frame = pl.LazyFrame({"p": s, "y": y, "w": w * scale})
    options = {"classes": [0, 1], "level": None}
    e = metrics.evaluate(frame, "p", label="y", sample_weight="w", cells=cells, **options)
    plain = metrics.evaluate(y, s, sample_weight=w * scale, **options)
    same(e.after, plain.after, doubt(e))


@given(rows(MARGINS, st.one_of(WHOLE, REAL), max_size=60), CELLS)
@example((np.array([36.0, 36.5, 37.0, 40.0, 80.0]), np.array([0, 1, 0, 1, 1]), np.ones(5)), 16)
@example((np.array([36.72, 36.76, 40.0]), np.array([0, 0, 1]), np.ones(3)), 16)
@example((np.array([0.2, 0.7, 0.4, 9.0]), np.array([0, 1, 1, 0]), np.array([1.0, 1, 1, 0])), 16)
@example((np.array([-800.0, -750.0, -740.0, 3.0]), np.array([0, 1, 0, 1]), np.ones(4)), 16)
def test_any_raw_scores(data, cells):
    """σ makes large margins equal, and rows without weight do not make scores margins."""
    s, y, w = data
    p = np.where(y == 1, 0.75, 0.25)
    frame = pl.LazyFrame({"p": p, "s": s, "y": y, "w": w})
    options = {"classes": [0, 1], "level": None}
    e = metrics.evaluate(frame, "p", label="y", raw="s", sample_weight="w", cells=cells, **options)
    plain = metrics.evaluate(y, p, raw=s, sample_weight=w, **options)
    same(e.before, plain.before, doubt(e, "before"))
    margins = "raw scores lie outside [0, 1] and were read as margins, through the sigmoid"
    assert (margins in e.notes) == (margins in plain.notes)


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, in_duckdb])
@pytest.mark.parametrize(
    ("s", "w"),
    [
        ([0, 11, 0], [1, 1, 0]),  # a percentage of 0 is no certainty
        ([0, 100, 12, 11, 0], [1, 1, 1, 1, 1]),
        ([0, 100, 12, 11], [1, 1, 0, 0]),  # the limits know nothing of rows without weight
        ([0, 50, 101, -3, 0.1], [1, 1, 0, 0, 0]),
        ([2, 5, 101, -3, 0.1], [1, 1, 0, 0, 0]),
        ([0, 0.5, 500, -3], [1, 1, 0, 0]),
        ([200, 50, 101, -3], [1, 1, 0, 0]),
    ],
)
def test_raw_scores_in_cells_are_read_as_in_memory(kind, s, w):
    s, w, y = np.array(s, float), np.array(w, float), np.arange(len(s)) % 2
    p = np.where(y == 1, 0.75, 0.25)
    frame = kind(pl.DataFrame({"p": p, "s": s, "y": y, "w": w}))
    options = {"classes": [0, 1], "level": None}
    e = metrics.evaluate(frame, "p", label="y", raw="s", sample_weight="w", cells=16, **options)
    plain = metrics.evaluate(y, p, raw=s, sample_weight=w, **options)
    same(e.before, plain.before, doubt(e, "before"))
    assert [n for n in e.notes if n.startswith("raw")] == [
        n for n in plain.notes if n.startswith("raw")
    ]


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, in_duckdb])
@pytest.mark.parametrize("wrong", [None, math.inf])
def test_wrong_percentages_in_cells_are_refused(kind, wrong):
    frame = kind(pl.DataFrame({"p": [0.1, 0.2, 0.3], "s": [0.0, 50.0, wrong], "y": [0, 1, 1]}))
    with pytest.raises(InputError, match="score column 's' must be finite"):
        metrics.evaluate(frame, "p", label="y", raw="s", cells=16)


@costly
@given(rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=60), CELLS)
def test_any_probabilities_in_duckdb(data, cells):
    s, y, w = data
    frame = in_duckdb(pl.DataFrame({"p": s, "y": y, "w": w}))
    options = {"classes": [0, 1], "level": None}
    e = metrics.evaluate(frame, "p", label="y", sample_weight="w", cells=cells, **options)
    same(e.after, metrics.evaluate(y, s, sample_weight=w, **options).after, doubt(e))


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, in_duckdb])
@pytest.mark.parametrize("p", [1e-10, 1e-17, 1e-300, 3e-6])
def test_tiny_probabilities_lose_no_digits(kind, p):
    """ln(1 − p) as SQL has it would be wrong in the sixth digit for p = 1e-10."""
    s = p * (1.0 + RNG.random(500))
    frame = kind(pl.DataFrame({"p": s, "y": np.zeros(500, dtype=int)}))
    e = metrics.evaluate(frame, "p", label="y", cells=16, level=None)
    assert e.after["log_loss"] == pytest.approx(-np.log1p(-s).mean(), rel=1e-13, abs=0.0)
    assert e.after["brier"] == pytest.approx((s**2).mean(), rel=1e-13, abs=0.0)
    assert e.after["calibration_loss"] == pytest.approx((s**2).mean(), rel=1e-13, abs=0.0)


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, in_duckdb])
def test_small_losses_keep_their_digits_near_one_too(kind):
    s = 1.0 - RNG.random(2_000) * 1e-6
    y = (RNG.random(2_000) < 0.999).astype(int)
    e = metrics.evaluate(kind(pl.DataFrame({"p": s, "y": y})), "p", label="y", cells=64, level=None)
    same(e.after, metrics.evaluate(y, s, level=None).after, doubt(e))


def test_predictions_on_borders_are_in_the_bin_of_the_door():
    """p·bins is rounded: 0.29·100 is below 29, and 0.29 is in bin 29 all the same."""
    s = np.repeat(np.arange(101) / 100, 3)
    for near in (s, np.nextafter(s, 0.0), np.nextafter(s, 1.0)):
        y = (RNG.random(len(s)) < 0.5).astype(int)
        frame = pl.LazyFrame({"p": near, "y": y})
        for bins in (7, 10, 100):
            e = metrics.evaluate(frame, "p", label="y", bins=bins, cells=16, level=None)
            same(e.after, metrics.evaluate(y, near, bins=bins, level=None).after, doubt(e))


def test_one_value_for_many_rows_is_summed_without_error():
    """Adding the same loss again and again is what rounds worst."""
    s = np.where(np.arange(200_000) % 4 == 0, RNG.random(200_000), 0.1)
    y = (np.arange(200_000) % 7 == 0).astype(int)
    frame = in_duckdb(pl.DataFrame({"p": s, "y": y}))
    e = metrics.evaluate(frame, "p", label="y", cells=4096, level=None)
    loss = math.fsum(np.where(y == 1, -np.log(s), -np.log1p(-s))) / len(s)
    assert e.after["log_loss"] == pytest.approx(loss, rel=1e-13, abs=0.0)


def test_few_predictions_are_measured_as_their_table():
    """With a million different predictions or fewer nothing is left out."""
    assert metrics.evaluate(FRAME.lazy(), "p", label="y") == metrics.evaluate(Y, P)
    table = metrics.evaluate(Y, P, level=None)
    for frame in (FRAME, FRAME.to_pandas(), FRAME.to_arrow(), in_duckdb(FRAME)):
        for cells in ("auto", "exact"):
            assert metrics.evaluate(frame, "p", label="y", cells=cells, level=None) == table
    compared = metrics.evaluate(FRAME.lazy(), "p", label="y", raw="s", level=None)
    assert compared == metrics.evaluate(Y, P, raw=MARGIN, level=None)


def test_one_side_from_cells_and_the_other_exact(monkeypatch):
    monkeypatch.setattr("calibrant.data.lazy.EXACT", 100)
    frame = FRAME.with_columns(q=pl.col("p").round(1))
    e = metrics.evaluate(frame.lazy(), "q", label="y", raw="p", level=None)
    plain = metrics.evaluate(Y, P.round(1), raw=P, level=None)
    assert e.after == plain.after
    assert e.distinct == plain.distinct == len(np.unique(P.round(1)))
    same(e.before, plain.before, doubt(e, "before"))
    assert any(f"became {e.distinct:,} predictions: some now share one" in n for n in e.notes)
    back = metrics.evaluate(frame.lazy(), "p", label="y", raw="q", level=None)
    same(back.after, plain.before, doubt(back, "after"))
    assert back.before == plain.after
    assert not any("share one" in note for note in back.notes)


# --- cells that are divided ---------------------------------------------------------------------

#: what may be fetched score by score, rows of a piece, pieces of a pass: so small that a few rows
#: are divided as a hundred million are
DIVIDED = {"FEW": 3, "EACH": 2, "MOST": 64}


def divided(**limits):
    return mock.patch.multiple("calibrant.data.refine", **{**DIVIDED, **limits})


@given(
    rows(PROBABILITIES, st.one_of(WHOLE, REAL), max_size=60),
    CELLS,
    st.sampled_from([0, 3, 10]),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([1, 2, 4]),
)
def test_any_probabilities_of_divided_cells(data, cells, few, each, passes):
    s, y, w = data
    frame = pl.LazyFrame({"p": s, "y": y, "w": w})
    options = {"classes": [0, 1], "level": None}
    with divided(FEW=few, EACH=each, PASSES=passes):
        e = metrics.evaluate(frame, "p", label="y", sample_weight="w", cells=cells, **options)
    same(e.after, metrics.evaluate(y, s, sample_weight=w, **options).after, doubt(e))


@given(rows(MARGINS, st.one_of(WHOLE, REAL), max_size=60), CELLS, st.sampled_from([0, 3, 10]))
@example((np.array([36.0, 36.5, 37.0, 40.0, 80.0]), np.array([0, 1, 0, 1, 1]), np.ones(5)), 16, 0)
@example((np.array([36.72, 36.76, 40.0]), np.array([0, 0, 1]), np.ones(3)), 16, 0)
@example((np.array([0.2, 0.7, 0.4, 9.0]), np.array([0, 1, 1, 0]), np.array([1.0, 1, 1, 0])), 16, 0)
def test_any_raw_scores_of_divided_cells(data, cells, few):
    s, y, w = data
    p = np.where(y == 1, 0.75, 0.25)
    frame = pl.LazyFrame({"p": p, "s": s, "y": y, "w": w})
    options = {"classes": [0, 1], "level": None, "raw": "s", "sample_weight": "w"}
    with divided(FEW=few):
        e = metrics.evaluate(frame, "p", label="y", cells=cells, **options)
    plain = metrics.evaluate(y, p, **{**options, "raw": s, "sample_weight": w})
    same(e.before, plain.before, doubt(e, "before"))


@pytest.mark.full
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("kind", KINDS)
def test_divided_cells_in_every_engine(kind, weight):
    columns = {"p": P, "s": MARGIN, "y": Y, "w": W}
    options = {"label": "y", "sample_weight": weight, "cells": 64, "level": None}
    with divided(FEW=200, EACH=4, MOST=10_000):
        e = metrics.evaluate(frame_of(kind, columns), "p", raw="s", **options)
    w = None if weight is None else W
    plain = metrics.evaluate(Y, P, raw=MARGIN, sample_weight=w, level=None)
    same(e.after, plain.after, doubt(e, "after"))
    same(e.before, plain.before, doubt(e, "before"))


def test_scores_next_to_one_half_are_divided_too():
    """The place of the last score below ½ in its cell is 1 as rounded."""
    s = 0.5 + np.arange(-300, 300) * 2.0**-54
    y = (RNG.random(600) < np.linspace(0.3, 0.7, 600)).astype(int)
    with divided():
        e = metrics.evaluate(pl.LazyFrame({"p": s, "y": y}), "p", label="y", cells=16, level=None)
    same(e.after, metrics.evaluate(y, s, level=None).after, doubt(e))


@pytest.mark.parametrize("raw", [None, "s"])
def test_few_rows_are_fetched_of_good_predictions(raw):
    """Rates that rise with the scores put a corner near every cell; few are where rows are."""
    n = 300_000
    p = RNG.random(n)
    frame = pl.DataFrame({"p": p, "s": np.log(p / (1 - p)), "y": RNG.random(n) < p})
    fetched = []

    def run(ask):
        answer = ask()
        fetched.append(len(answer))
        return answer

    made = read_lazy(lazy_frame(frame.lazy()), Names(raw or "p", "y"), run=run)
    with divided(FEW=2**14, EACH=32, MOST=2**14):
        (e,) = run_steps(
            (made, _measure(made, _first_pass(made, 2**10), 10, chosen_records(MEASURES)))
        )
    assert max(fetched) < 0.1 * n
    assert len(fetched) <= (9 if raw else 6)
    plain = metrics.evaluate(frame["y"], p, raw=frame["s"], level=None)
    same(e.values, plain.before if raw else plain.after, 2e-5)


# --- intervals and notes ------------------------------------------------------------------------


@pytest.mark.full
def test_intervals_are_those_of_the_rows_but_for_the_width_of_cells():
    options = {"weights": "importance", "replicates": 1000}
    e = metrics.evaluate(
        FRAME.lazy(), "p", label="y", raw="s", sample_weight="w", cells=65_536, **options
    )
    plain = metrics.evaluate(Y, P, raw=MARGIN, sample_weight=W, **options)
    sides = (
        (e.intervals, plain.intervals, e.after),
        (e.intervals_before, plain.intervals_before, e.before),
    )
    for found, wanted, values in sides:
        assert list(found) == list(values)
        for name, (low, high) in found.items():
            assert low <= values[name] <= high
            # by formula, or drawn from tables that are not quite alike
            part = 0.1 if name in REDRAWN else 1e-3
            within = part * (wanted[name][1] - wanted[name][0])
            assert (low, high) == pytest.approx(wanted[name], rel=0.0, abs=within), name
    assert e.change["brier"] == (e.after["brier"] - e.before["brier"], None, None)


def test_notes_say_what_was_done():
    e = metrics.evaluate(FRAME.lazy(), "p", label="y", cells=1024)
    assert "calbin" not in e.after
    assert any(note.startswith("calbin was left out") for note in e.notes)
    assert any(note.startswith("rows were grouped into 1,024 cells") for note in e.notes)
    assert 0.0 < doubt(e) < 1e-3
    assert abs(e.after["auc"] - metrics.auc(Y, P)) <= doubt(e)
    compared = metrics.evaluate(FRAME.lazy(), "p", label="y", raw="s", cells=1024)
    assert any(note.startswith("the change has no intervals") for note in compared.notes)


def test_an_auc_that_cells_do_not_hide_is_exact():
    s = (np.arange(400) % 20 + 0.5) / 20
    e = metrics.evaluate(
        pl.LazyFrame({"p": s, "y": Y[:400]}), "p", label="y", cells=1024, level=None
    )
    assert e.after["auc"] == metrics.auc(Y[:400], s)
    assert not doubt(e)


def test_one_class_has_no_auc():
    frame = pl.LazyFrame({"p": P, "y": np.zeros(N, dtype=int)})
    e = metrics.evaluate(frame, "p", label="y", cells=256, level=None)
    assert "auc" not in e.after
    assert "auc needs both classes, but only negatives came" in e.notes


def test_an_impossible_event_makes_the_log_loss_infinite():
    s = np.append(P, [0.0, 0.0, 1.0])
    y = np.append(Y, [1, 1, 0])
    e = metrics.evaluate(pl.LazyFrame({"p": s, "y": y}), "p", label="y", cells=256)
    assert e.after["log_loss"] == math.inf
    assert "log_loss" not in e.intervals
    reason = "2 positives were given probability 0 and 1 negative was given probability 1"
    assert f"log loss is infinite: {reason}" in e.notes


# --- labels, files and engines ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [(("no", "yes"), None), ((True, False), False), ((-1, 1), None), ((2, 1), 1)],
)
def test_any_two_labels(labels, pos_label):
    y = [labels[k] for k in Y]
    frame = pl.LazyFrame({"p": P, "y": y})
    e = metrics.evaluate(frame, "p", label="y", pos_label=pos_label, cells=256, level=None)
    same(e.after, metrics.evaluate(Y, P, level=None).after, doubt(e))


def test_rows_that_are_watched():
    """Whoever brings rows may run the queries: two passes and a look, and nothing per row."""
    asked = []

    def run(ask):
        answer = ask()
        asked.append(len(answer))
        return answer

    made = read_lazy(lazy_frame(FRAME.lazy()), Names("p", "y", "w"), run=run)
    asked.clear()
    e = evaluate_rows(made, None, 10, None, 256)
    same(e.after, metrics.evaluate(Y, P, sample_weight=W, level=None).after, doubt(e))
    assert len(asked) == 3
    assert max(asked) < N


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", ["auto", 256])
@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, in_duckdb])
@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"p": 100 * P}, "must be probabilities in \\[0, 1\\]: [0-9,]+ of 4,000 are not"),
        ({"p": np.where(np.arange(N) == 7, np.nan, P)}, "must be finite: 1 of 4,000 is NaN"),
        ({"p": [None, *P[1:]]}, "must be finite: 1 of 4,000 is missing"),
        ({"p": np.where(np.arange(N) == 7, np.inf, P)}, "must be finite: 1 of 4,000 is infinite"),
        ({"y": [None, *Y[1:]]}, "label column 'y' must be complete: 1 of 4,000 is missing"),
        ({"w": -W}, "weight column 'w' must be from 0 to"),
        ({"w": 0.0 * W}, "weight column 'w' must be positive for at least one row"),
        ({"p": ["a"] * N}, "score column 'p' must be numbers"),
        ({"y": np.arange(N) % 3}, "two"),
    ],
)
def test_bad_rows_are_refused(kind, cells, column, said):
    made = {name: pl.Series(values) for name, values in column.items()}
    frame = kind(FRAME.with_columns(**made))
    with pytest.raises(InputError, match=said):
        metrics.evaluate(frame, "p", label="y", sample_weight="w", cells=cells, level=None)


def test_rows_without_weight_must_be_probabilities_too():
    frame = pl.LazyFrame({"p": [0.2, 0.7, 7.0], "y": [0, 1, 1], "w": [1.0, 1.0, 0.0]})
    for cells in ("auto", 16):
        with pytest.raises(OutsideError, match="1 of 3"):
            metrics.evaluate(frame, "p", label="y", sample_weight="w", cells=cells)


def test_misuse_is_told():
    lazy = FRAME.lazy()
    for arguments, options, said in (
        ((lazy, "q"), {"label": "y"}, "no column 'q'"),
        ((lazy, "p"), {"label": "Y"}, "Did you mean 'y'"),
        ((lazy, "p"), {"label": "y", "raw": "margin"}, "no column 'margin'"),
        ((lazy, "p"), {}, "label must name the column of labels"),
        ((FRAME, "p"), {}, "label must name the column of labels"),
        ((lazy, P), {}, "label must name the column of labels"),
        ((Y, P), {"label": "y"}, "y must be a frame"),
        ((lazy, P), {"label": "y"}, "p must be the name of a column"),
        ((lazy,), {"label": "y"}, "p must be the name of a column"),
        ((lazy, "p"), {"label": "y", "raw": MARGIN}, "raw must be the name of a column"),
        ((lazy, "p"), {"label": "y", "sample_weight": W}, "sample_weight must be the name"),
        ((lazy.head(0), "p"), {"label": "y"}, "it is empty"),
        ((Y, P), {"cells": 256}, "cells goes with a frame"),
    ):
        with pytest.raises(InputError, match=said):
            metrics.evaluate(*arguments, **options)
    with pytest.raises(ParameterError, match='cells must be "auto"'):
        metrics.evaluate(lazy, "p", label="y", cells=3)


def test_a_frame_of_labels_is_still_a_column():
    plain = metrics.evaluate(Y, P, level=None)
    assert metrics.evaluate(FRAME.select("y"), P, level=None) == plain
