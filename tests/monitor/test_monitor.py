"""The monitor: fair bets, what it finds, what it refuses, and its file."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import fingerprint
from calibrant.metrics.chance import RisingBand
from calibrant.monitor import Monitor
from calibrant.monitor.monitor import (
    Alternatives,
    Evidence,
    NullBounds,
    batch_gains,
    starting_share,
)

BORDERS = np.array([0.0, 0.02, 0.1, 0.4, 0.9, 2.0])
CHANGES = {
    "up": lambda p: _moved(p, 0.5),
    "down": lambda p: _moved(p, -0.5),
    "squeezed": lambda p: _moved(p, -1.0, 0.5),
    "top": lambda p: np.where(p >= np.quantile(p, 0.8), _moved(p, 1.0), p),
}


def _moved(p, shift, slope=1.0):
    z = np.log(p / (1.0 - p))
    return 1.0 / (1.0 + np.exp(-(slope * z + shift)))


def _days(rng, days, rows=400, change=None, at=0):
    for day in range(days):
        p = rng.beta(1.0, 5.0, rows)
        true = p if change is None or day < at else change(p)
        yield rng.random(rows) < true, p


# --- bets are fair ------------------------------------------------------------------------------


@given(
    p=st.floats(1e-12, 1.0 - 1e-12),
    width=st.sampled_from([0.0, 0.001, 0.1]),
    place=st.floats(0.0, 1.0),
    centre=st.floats(-5.0, 5.0),
)
def test_no_truth_that_is_allowed_lets_a_bet_win(p, width, place, centre):
    bounds = NullBounds(*(np.array([end]) for end in (p, max(p - width, 0.0), min(p + width, 1.0))))
    true = float(bounds.low[0] + place * (bounds.high[0] - bounds.low[0]))
    alternatives = Alternatives.of(BORDERS)
    one, none = np.ones(1), np.zeros(1)
    won = np.exp(batch_gains(alternatives, centre, bounds, none, one))
    lost = np.exp(batch_gains(alternatives, centre, bounds, one, none))
    expected = true * won + (1.0 - true) * lost
    assert (expected <= 1.0 + 1e-9).all()
    if not width:
        np.testing.assert_allclose(expected, 1.0, rtol=1e-9)


def test_all_stakes_together_are_one():
    alternatives = Alternatives.of(BORDERS)
    assert alternatives.prior.sum() == pytest.approx(1.0)
    assert sum(map(starting_share, range(1, 100_000))) < 1.0
    evidence = Evidence.none(len(alternatives.prior))
    for _ in range(50):  # nothing is won or lost
        evidence = evidence.after(np.zeros(len(alternatives.prior)), alternatives.prior)
    assert evidence.total == pytest.approx(0.0, abs=1e-12)


def test_evidence_is_the_mean_over_all_beginnings():
    rng = np.random.default_rng(0)
    prior, gains = np.array([0.3, 0.7]), rng.normal(size=(6, 2))
    evidence = Evidence.none(2)
    for row in gains:
        evidence = evidence.after(row, prior)
    total = 1.0 - sum(starting_share(t) for t in range(1, 7))
    for begin in range(6):
        total += starting_share(begin + 1) * (prior @ np.exp(gains[begin:].sum(axis=0)))
    assert evidence.total == pytest.approx(math.log(total))
    for k in range(2):
        sums = [math.log(starting_share(b + 1)) + gains[b:, k].sum() for b in range(6)]
        assert evidence.since[k] == 1 + int(np.argmax(sums))
        assert evidence.best[k] == pytest.approx(max(sums))


@pytest.mark.full
def test_right_probabilities_rarely_raise_an_alarm():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(30):
        monitor = Monitor(alpha=0.2)
        for y, p in _days(rng, 20, rows=100):
            monitor.update(y, p)
        alarms += monitor.alarm is not None
    assert alarms <= 12  # 30 · 0.2 + 2.7 deviations; a check each day would raise nearly all


@given(seed=st.integers(0, 2**32 - 1))
def test_the_band_of_old_rows_is_never_crossed_by_its_own_share(seed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=200), rng.integers(0, 3))
    table = cal.ScoreTable.from_arrays(scores, rng.random(200) < 0.3)
    band = RisingBand.of(table, 0.05)
    assert (np.diff(band.low) >= 0.0).all()
    assert (np.diff(band.high) >= 0.0).all()
    assert (band.low <= band.p).all()
    assert (band.p <= band.high).all()
    assert [len(one) for one in band.at(rng.normal(size=50))] == [50] * 3


def test_the_band_holds_a_rising_curve():
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(60):
        scores = rng.random(500)
        table = cal.ScoreTable.from_arrays(scores, rng.random(500) < scores**2)
        at = np.linspace(0.0, 1.0, 300)
        _, low, high = RisingBand.of(table, 0.1).at(at)
        missed += bool(((at**2 < low) | (at**2 > high)).any())
    assert missed <= 6


# --- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"), [("up", "shift"), ("down", "shift"), ("squeezed", "slope"), ("top", "part")]
)
def test_changes_are_found_and_told_apart(name, kind):
    rng = np.random.default_rng(3)
    monitor = Monitor()
    for day, (y, p) in enumerate(_days(rng, 40, change=CHANGES[name], at=20)):
        reading = monitor.update(y, p, when=f"day {day + 1}")
    assert 20 < monitor.alarm.batch <= 40
    assert reading.change == kind
    assert abs(reading.since - 21) <= 3
    assert reading.since_when == f"day {reading.since}"
    assert reading.p_value <= 0.05
    if name == "top":
        assert reading.part[0] > 0.1
    assert "Alarm since batch" in str(reading)


def test_the_drift_since_then_mends_the_calibrator():
    rng = np.random.default_rng(4)
    monitor = Monitor(cal.maps.Identity())
    for y, p in _days(rng, 30, rows=1000, change=CHANGES["up"], at=10):
        monitor.update(y, p)
    drift = monitor.drift()
    assert drift.recommendation == "intercept"
    assert drift.shift == pytest.approx(0.5, abs=0.1)
    assert drift.update(cal.maps.Identity()).calibrate([0.3])[0] == pytest.approx(
        _moved(np.array([0.3]), drift.shift)[0]
    )


def test_small_changes_are_none_with_least():
    rng = np.random.default_rng(5)
    strict, lenient = Monitor(), Monitor(least=0.05)
    for y, p in _days(rng, 30, rows=1000, change=lambda p: np.clip(p + 0.02, 0, 1)):
        strict.update(y, p)
        lenient.update(y, p)
    assert strict.alarm is not None
    assert lenient.alarm is None


def test_scores_go_through_the_calibrator():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=2000)
    fitted = cal.Platt().fit(scores, np.where(rng.random(2000) < 0.3, "yes", "no"))
    by_scores, by_p = Monitor(fitted), Monitor(fitted)
    y = np.where(rng.random(300) < 0.3, "yes", "no")
    by_scores.update(y, scores=scores[:300])
    by_p.update(y, fitted.calibrate(scores[:300]))
    assert by_scores.to_dict() == by_p.to_dict()


def test_old_rows_as_the_reference():
    rng = np.random.default_rng(7)
    old = rng.random(5000)
    monitor = Monitor(cal.ScoreTable.from_arrays(old, rng.random(5000) < old**2))
    for day in range(40):
        s = rng.random(500)
        monitor.update(rng.random(500) < (s**2 if day < 20 else np.sqrt(s)), scores=s)
        if day == 19:
            assert monitor.alarm is None
    assert monitor.alarm.batch > 20


def test_a_segment_is_named():
    rng = np.random.default_rng(8)
    monitor = Monitor(by_segment=True)
    for _ in range(30):
        p, where = rng.beta(1, 5, 600), rng.integers(6, size=600)
        true = np.where(where == 4, _moved(p, 1.2), p)
        reading = monitor.update(rng.random(600) < true, p, segments=where)
    assert reading.segments == (4,)
    assert "4" in str(reading)


def test_impossible_events_are_an_alarm_at_once():
    monitor = Monitor()
    reading = monitor.update([0, 1], [0.2, 0.0])
    assert str(monitor).startswith("Monitor(1 batch, 2 rows)")
    assert monitor.alarm.batch == 1
    assert reading.p_value == 0.0
    assert Monitor.from_dict(json.loads(json.dumps(monitor.to_dict()))).reading == reading
    assert reading.recommendation == "new map"  # no shift moves a probability of 0
    assert "given probability 0" in str(reading)
    assert "log-odds" not in str(reading)
    assert "given probability 0" in cal.monitor_report(monitor).to_html()


# --- weights ------------------------------------------------------------------------------------


def test_a_common_factor_on_weights_changes_nothing():
    rng = np.random.default_rng(9)
    y, p, w = rng.random(200) < 0.4, rng.random(200), rng.random(200)
    found = []
    for factor in (1.0, 1024.0):
        monitor = Monitor()
        monitor.update(y, p, sample_weight=factor * w)
        found.append(monitor.reading.evidence)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_counts_are_repetitions():
    rng = np.random.default_rng(10)
    y, p, w = rng.random(100) < 0.4, rng.random(100), rng.integers(0, 4, 100)
    weighted, repeated = Monitor(weights="counts"), Monitor(weights="counts")
    weighted.update(y, p, sample_weight=w)
    repeated.update(np.repeat(y, w), np.repeat(p, w))
    assert weighted.reading.evidence == pytest.approx(repeated.reading.evidence, rel=1e-12)


@pytest.mark.parametrize("weight", [0.5, 1e16])
def test_counts_that_are_no_numbers_of_rows_are_refused(weight):
    monitor = Monitor(weights="counts")
    with pytest.raises(InputError, match="numbers of rows"):
        monitor.update([0, 1], [0.2, 0.4], sample_weight=[weight, 1.0])
    assert monitor.batches == 0


def test_the_order_of_rows_plays_no_part():
    rng = np.random.default_rng(11)
    y, p, w = rng.random(200) < 0.4, rng.random(200), rng.random(200)
    order = rng.permutation(200)
    one, other = Monitor(), Monitor()
    one.update(y, p, sample_weight=w)
    other.update(y[order], p[order], sample_weight=w[order])
    assert one.to_dict() == other.to_dict()


def test_tables_are_rows():
    rng = np.random.default_rng(15)
    scores = rng.random(300)
    y, w = rng.random(300) < scores, rng.integers(1, 4, 300).astype(float)
    fitted = cal.Platt().fit(scores, y)
    table = cal.ScoreTable.from_arrays(scores, y)
    for monitor, other, of_scores in (
        (Monitor(), Monitor(), False),
        (Monitor(fitted), Monitor(fitted), True),
        (Monitor(table), Monitor(table), True),
    ):
        monitor.update(y[:200], **{"scores" if of_scores else "p": scores[:200]})
        part = cal.ScoreTable.from_arrays(scores[:200], y[:200])
        other.update_table(part, scores=of_scores)
        assert other.reading.evidence == pytest.approx(monitor.reading.evidence, rel=1e-12)
        assert other.rows == monitor.rows == 200
    weighted = Monitor()
    weighted.update_table(cal.ScoreTable.from_arrays(scores, y, w))
    assert 0.0 < weighted.reading.evidence < math.inf
    with pytest.raises(InputError, match="scores=True"):
        Monitor(table).update_table(table)
    with pytest.raises(InputError, match="probabilities"):
        Monitor().update_table(cal.ScoreTable.from_arrays([-2.0, 3.0], [0, 1]))


# --- what is refused ----------------------------------------------------------------------------


def test_the_same_batch_twice_is_noticed():
    rng = np.random.default_rng(12)
    monitor = Monitor()
    y, p = rng.random(50) < 0.3, rng.random(50)
    monitor.update(y, p)
    before = monitor.to_dict()
    with pytest.raises(InputError, match="same as batch 1"):
        monitor.update(y[::-1], p[::-1])
    assert monitor.to_dict() == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (((0, 1), (0.2, 1.5)), "probabilities"),
        (((0, 1), (0.2, math.nan)), "NaN|missing|finite"),
        (((0, 1, 1), (0.2, 0.3)), "rows"),
        (((0, 2), (0.2, 0.3)), "2"),
        (((), ()), "at least one row"),
    ],
)
def test_bad_rows_leave_the_monitor_as_it_was(rows, words):
    monitor = Monitor(classes=(0, 1))
    monitor.update([0, 1, 0], [0.1, 0.6, 0.3])
    before = monitor.to_dict()
    with pytest.raises(InputError, match=words):
        monitor.update(*rows)
    assert monitor.to_dict() == before


def test_what_must_come_together():
    monitor = Monitor()
    with pytest.raises(InputError, match="either"):
        monitor.update([0, 1])
    with pytest.raises(InputError, match="has none"):
        monitor.update([0, 1], scores=[0.1, 0.2])
    with pytest.raises(InputError, match="by_segment"):
        monitor.update([0, 1], [0.1, 0.2], segments=["a", "b"])
    with pytest.raises(InputError, match="none came"):
        Monitor(by_segment=True).update([0, 1], [0.1, 0.2])
    with pytest.raises(ParameterError, match="alpha"):
        Monitor(alpha=1.5)
    with pytest.raises(ParameterError, match="least"):
        Monitor(least=-0.1)
    weighted = cal.ScoreTable.from_arrays([0.1, 0.9], [0, 1], [0.5, 2.0])
    with pytest.raises(InputError, match="no weights"):
        Monitor(weighted)


# --- threads ------------------------------------------------------------------------------------


@pytest.fixture
def eager_switches():
    """Python goes to another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_may_share_a_monitor(eager_switches):
    rng = np.random.default_rng(15)
    p = rng.random((100, 40))
    y = rng.random((100, 40)) < p
    shared, alone = Monitor(), Monitor()
    for day in range(100):
        alone.update(y[day], p[day], when=str(day))

    def give(day):
        if day % 2:
            return shared.update(y[day], p[day], when=str(day))
        table = cal.ScoreTable.from_arrays(p[day], y[day])
        return shared.update_table(table, when=str(day))

    with ThreadPoolExecutor(4) as pool:
        readings = list(pool.map(give, range(100)))
    assert shared.batches == len({reading.evidence for reading in readings}) == 100
    assert shared.rows == alone.rows
    assert {window.since for window in shared.windows} == set(map(str, range(100)))
    together = math.fsum(window.positive.sum() for window in shared.windows)
    assert together == math.fsum(window.positive.sum() for window in alone.windows)


def test_the_first_of_two_threads_says_the_labels(eager_switches):
    for _ in range(20):
        monitor, refused = Monitor(), []

        def give(labels, monitor=monitor, refused=refused):
            try:
                monitor.update(labels, [0.2, 0.7, 0.4])
            except InputError as wrong:
                refused.append(wrong)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(give, (["no", "yes", "no"], ["bad", "good", "bad"])))
        assert (len(refused), monitor.batches) == (1, 1)


def test_what_is_said_is_of_one_moment(eager_switches):
    rng = np.random.default_rng(16)
    monitor = Monitor()
    monitor.update([0, 1], [0.2, 0.6])

    def go_on():
        for _ in range(60):
            monitor.update(rng.random(20) < 0.4, rng.random(20))

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_on)
        while not going.done():
            report = cal.monitor_report(monitor)
            assert report.batches == report.curve.last[-1]
    going.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_during_an_update_has_a_lock_of_its_own():
    monitor, begun, end = Monitor(), threading.Event(), threading.Event()

    class Slow(list):
        def __iter__(self):
            begun.set()
            assert end.wait(60.0)
            return super().__iter__()

        def __array__(self, dtype=None, copy=None):
            return np.array(list(self), dtype=dtype)

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(monitor.update, Slow([0, 1]), [0.2, 0.6])
        assert begun.wait(60.0)
        child = os.fork()
        if not child:  # where a lock that is held for ever ends in SIGALRM
            signal.alarm(20)
            monitor.update([1, 0, 0], [0.7, 0.3, 0.1])
            os._exit(0 if (monitor.batches, monitor.rows) == (1, 3) else 1)
        end.set()
        assert os.waitpid(child, 0)[1] == 0
        assert going.result() == monitor.reading
    assert (monitor.batches, monitor.rows) == (1, 2)


def test_the_fingerprint_of_a_calibrator_is_taken_once(tmp_path, monkeypatch):
    taken = []

    def counted(map_):
        taken.append(map_)
        return fingerprint(map_)

    monkeypatch.setattr("calibrant.monitor.monitor.fingerprint", counted)
    rng = np.random.default_rng(17)
    scores = rng.random((4, 100))
    fitted = cal.Platt().fit(scores[0], rng.random(100) < scores[0])
    monitor = Monitor(fitted)
    for batch in scores:
        monitor.update(rng.random(100) < batch, scores=batch)
        monitor.save(tmp_path / "state.json")
    assert len(taken) == 1
    Monitor.load(tmp_path / "state.json", fitted).update([0, 1], scores=[0.2, 0.7])
    assert len(taken) == 2


def test_a_monitor_can_be_copied_and_pickled():
    monitor = Monitor()
    monitor.update([0, 1, 0], [0.1, 0.6, 0.3])
    for made in (copy.copy(monitor), copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        made.update([0, 1], [0.2, 0.7])
        assert (made.batches, monitor.batches) == (2, 1)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "calibrator", "old rows", "segments"])
def test_a_saved_monitor_goes_on_as_if_nothing_had_happened(tmp_path, kind):
    rng = np.random.default_rng(13)
    scores = rng.random(500)
    fitted = cal.Platt().fit(scores, rng.random(500) < scores)
    table = cal.ScoreTable.from_arrays(scores, rng.random(500) < scores)
    reference = {"calibrator": fitted, "old rows": table}.get(kind)
    going = Monitor(reference, by_segment=kind == "segments")
    saved = Monitor(reference, by_segment=kind == "segments")
    for day in range(130):  # more than the windows that are kept
        x = rng.random(30)
        rows = {"p" if kind in ("plain", "segments") else "scores": x}
        if kind == "segments":
            rows["segments"] = rng.integers(3 + day // 50, size=30)
        y = rng.random(30) < x
        going.update(y, when=str(day), **rows)
        saved.update(y, when=str(day), **rows)
        if day % 40 == 5:
            saved.save(tmp_path / "state.json")
            known = fitted if kind == "calibrator" else None
            saved = Monitor.load(tmp_path / "state.json", known)
    assert saved.to_dict() == going.to_dict()
    assert saved.reading == going.reading
    assert len(going.windows) <= 120
    assert sum(window.weight.sum() for window in going.windows) == pytest.approx(130 * 30)


def test_the_state_of_another_calibrator_is_refused(tmp_path):
    rng = np.random.default_rng(14)
    scores = rng.random(100)
    one, other = (cal.Platt().fit(scores, rng.random(100) < scores) for _ in range(2))
    Monitor(one).save(tmp_path / "state.json")
    with pytest.raises(InputError, match="another calibrator"):
        Monitor.load(tmp_path / "state.json", other)


def test_damaged_states_are_refused(tmp_path):
    monitor = Monitor()
    monitor.update([0, 1, 0], [0.1, 0.6, 0.3])
    good = json.loads(json.dumps(monitor.to_dict()))
    assert Monitor.from_dict(good).to_dict() == good
    for name in good:
        for bad in (None, "x", -1, [None], {"batch": 1}):
            if good[name] == bad:
                continue
            try:
                made = Monitor.from_dict({**good, name: bad})
                made.update([1, 0, 1], [0.2, 0.4, 0.5])
            except InputError:
                continue
    watched = Monitor(by_segment=True)
    watched.update([0, 1, 0], [0.1, 0.6, 0.3], segments=["a", "a", "b"])
    good = json.loads(json.dumps(watched.to_dict()))
    (window,), (one, other) = good["windows"], good["segments"]
    none = {**one["evidence"], "wealth": [], "best": [], "since": []}
    for bad in (
        {"alpha": 0},
        {"weights": "x"},
        {"weights": []},
        {"by_segment": 1},
        {"fingerprint": None},
        {"pos_label": []},
        {"pos_label": 2},
        {"segments": []},
        {"segments": [{**one, "share": 0}, other]},
        {"segments": [{**one, "evidence": none}, other]},
        {"windows": []},
        {"windows": [{**window, "since": 3}]},
        {"windows": [{**window, "variance": [-1.0, *window["variance"][1:]]}]},
    ):
        with pytest.raises(InputError, match="damaged"):
            Monitor.from_dict({**good, **bad})
    path = tmp_path / "state.json"
    path.write_text('{"format": "calibrant-calibrator"}')
    with pytest.raises(InputError, match="state of a monitor"):
        Monitor.load(path)


@pytest.mark.parametrize("rate", [0.002, 0.17, 0.6])
def test_the_diagram_says_the_numbers_that_it_shows(rate):
    rng = np.random.default_rng(16)
    monitor = Monitor()
    for _ in range(30):
        p = rng.beta(5 * rate, 5 * (1 - rate), 400)
        monitor.update(rng.random(400) < p, p)
    figure = cal.diagrams.monitor_diagram(monitor)
    figure.canvas.draw()
    axes = next(axes for axes in figure.axes if axes.get_ylabel() == "share of positives")
    for value, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True):
        assert float(label.get_text().removesuffix(" %")) == pytest.approx(100 * value, abs=1e-6)


def test_a_monitor_takes_one_column_of_segments():
    y, p = [0, 1, 0, 1], [0.2, 0.6, 0.4, 0.7]
    monitor = Monitor(by_segment=True)
    for wrong in ([["a"] * 4, ["b"] * 4], {"x": ["a"] * 4, "y": ["b"] * 4}, [("a", "b")] * 4):
        with pytest.raises(InputError, match="must be one column here"):
            monitor.update(y, p, segments=wrong)
    table = cal.ScoreTable.from_arrays(p, y)
    with pytest.raises(InputError, match="must be one column here"):
        monitor.update_table(table, segments={("a", "b"): table})
    assert monitor.batches == 0


def test_an_update_within_an_update_is_an_error():
    """It would wait for itself for ever."""
    monitor = Monitor()

    class Late:
        def __array__(self, dtype=None, copy=None):
            monitor.update([0, 1], [0.2, 0.7])
            return np.array([0.1, 0.8])

    with pytest.raises(InputError, match="one after another"):
        monitor.update([0, 1], Late())
    monitor.update([0, 1], [0.3, 0.6])
    assert monitor.rows == 2
