"""AutoCalibrator: judged by rows that were held out, and free to do nothing."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit, softmax
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, TimeSeriesSplit

import calibrant as cal
from calibrant.auto import why as explain
from calibrant.data.score_table import CellColumns
from calibrant.fitting.held_out import HeldOutCells, Sample, Standing, choose
from calibrant.solvers.weights import mixture_weights
from twins import auto as naive


def rows(n=600, seed=0, bend=2.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    return p, (rng.random(n) < p**bend).astype(int)


def splits(n, k=4):
    fold = np.arange(n) % k
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(k)]


# --- the figures --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_leaderboard_against_plain_loops(weighted):
    s, y = rows(160)
    w = np.random.default_rng(1).gamma(1.0, size=len(y)) if weighted else np.ones(len(y))
    pairs = splits(len(y))
    candidates = {"platt": cal.Platt(), "steps": cal.Isotonic(smoothing="laplace")}
    auto = cal.AutoCalibrator(candidates=candidates, cv=pairs)
    auto.fit(s, y, w if weighted else None)
    kinds = {"uncalibrated": cal.Uncalibrated(), "BLS": cal.BLS(), **candidates}
    order = np.concatenate([test for _, test in pairs])
    log, square, right, made = {}, {}, {}, {}
    weight = w[order].tolist()
    for name, kind in kinds.items():
        p, concordant = [], [0.0, 0.0]
        for train, test in pairs:
            known = w[train] if weighted else None
            held = kind.fit(s[train], y[train], known).calibrate(s[test])
            p += held.tolist()
            for i, part in enumerate(naive.pairs_in_order(y[test], held, w[test])):
                concordant[i] += part
        made[name] = np.array(p)
        if name == "BLS":
            share = naive.share(made["uncalibrated"], p, y[order], weight)
            assert share == 1.0 == pytest.approx(auto.share_)
        log[name], square[name] = naive.losses(y[order], p)
        right[name] = concordant[0] / concordant[1]
    for row in auto.leaderboard_.rows:
        expected = naive.mean_and_error(log[row.name], weight)
        assert (row.log_loss, row.log_loss_se) == pytest.approx(expected, rel=1e-9)
        expected = naive.mean_and_error(square[row.name], weight)
        assert (row.brier, row.brier_se) == pytest.approx(expected, rel=1e-9)
        gain = [a - b for a, b in zip(log["uncalibrated"], log[row.name], strict=True)]
        assert row.gain == pytest.approx(naive.mean_and_error(gain, weight)[0], abs=1e-12)
        whole = cal.metrics.auc(y, s, sample_weight=w)
        change = right[row.name] - right["uncalibrated"]
        assert row.auc == pytest.approx(whole + change, abs=1e-12)
        assert row.auc_change == pytest.approx(right[row.name] - right["uncalibrated"], abs=1e-12)
        assert row.gain_low <= row.gain <= row.gain_high
    assert auto.chosen_ == naive.taken(made, log, y[order], weight)
    losses = [row.log_loss for row in auto.leaderboard_.rows]
    assert losses == sorted(losses)


def test_groups_are_held_out_together_and_counted():
    s, y = rows(300)
    groups = np.arange(300) // 6
    auto = cal.AutoCalibrator(cv=GroupKFold(5)).fit(s, y, groups=groups)
    folds = list(GroupKFold(5).split(s, y, groups))
    log = {"uncalibrated": [], "BLS": []}
    cluster, order = [], []
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        for kind in (cal.Uncalibrated(), cal.BLS()):
            name = {"Uncalibrated": "uncalibrated"}.get(type(kind).__name__, "BLS")
            p = kind.fit(s[train], y[train]).calibrate(s[test])
            log[name] += naive.losses(y[test], p)[0]
        cluster += groups[test].tolist()
        order += test.tolist()
    for name, loss in log.items():
        row = auto.leaderboard_[name]
        assert row.log_loss == pytest.approx(np.mean(loss), rel=1e-9)
        error = naive.clustered_error(loss, [1.0] * 300, cluster)
        assert row.log_loss_se == pytest.approx(error, rel=1e-9)
    by_number = cal.AutoCalibrator(cv=5).fit(s, y, groups=groups)
    assert by_number.leaderboard_.folds == 5


def test_folds_in_time_and_repeated_folds():
    s, y = rows(400)
    auto = cal.AutoCalibrator(cv=TimeSeriesSplit(4)).fit(s, y)
    assert auto.leaderboard_.weight == 4 * 80
    once = cal.AutoCalibrator(cv=RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=0))
    once.fit(s, y)
    assert once.leaderboard_.weight == pytest.approx(400)
    plain = cal.AutoCalibrator(cv=4).fit(s, y)
    error = once.leaderboard_["uncalibrated"].log_loss_se
    assert error == pytest.approx(plain.leaderboard_["uncalibrated"].log_loss_se, rel=0.01)


def test_a_fraction_holds_out_once():
    s, y = rows(400)
    auto = cal.AutoCalibrator(cv=0.25).fit(s, y)
    assert auto.leaderboard_.folds == 1
    assert auto.leaderboard_.weight == 100


@given(st.data())
def test_folds_of_a_table_add_up(data):
    n = data.draw(st.integers(2, 60))
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    scores, y = rng.integers(0, 12, n) / 11, rng.integers(0, 2, n)
    table = cal.ScoreTable.from_arrays(scores, y, rng.integers(1, 4, n), classes=[0, 1])
    held = HeldOutCells.of_table(table, data.draw(st.integers(2, 6)), seed=0)
    rarer = min(n - y.sum(), y.sum())
    if rarer >= 4:
        assert held.folds >= 2
    if not held.folds:
        return
    whole = cal.ScoreTable.from_counts(held.scores, *held.columns)
    assert whole.scores.tolist() == table.scores.tolist()
    for one, other in zip(whole.columns, table.columns, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    for rest, here in zip(held.rests, held.cells, strict=True):
        negative, positive, _, _ = held.columns.take(here)
        assert rest.total + negative.sum() + positive.sum() == pytest.approx(table.total)


def test_whole_weights_by_rows():
    sample = Sample(np.array([2.0, 1.0]), np.array([4.0, 1.0]))
    assert sample.size == pytest.approx(9 / 5)
    alone = Sample(np.array([3.0]), np.array([9.0]))
    assert alone.error(np.array([1.0])) == np.inf
    assert alone.interval(1.0, np.inf, 0.95) == (-np.inf, np.inf)


# --- do no harm ---------------------------------------------------------------------------------


def test_calibrated_scores_are_kept():
    kept = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        auto = cal.AutoCalibrator().fit(p, rng.random(500) < p)
        if auto.chosen_ == "uncalibrated":
            kept += 1
            assert auto.calibrate([0.123456789]).tolist() == [0.123456789]
            assert "kept as they are" in auto.refused_
            assert f"{auto.leaderboard_['BLS'].log_loss:.4f}" in auto.refused_
            assert auto.explain().startswith(auto.refused_)
    assert kept >= 7


def test_what_is_clearly_wrong_is_mended():
    s, y = rows(800, bend=4.0)
    auto = cal.AutoCalibrator().fit(s, y)
    assert auto.refused_ is None
    assert auto.chosen_ == "BLS"
    assert auto.leaderboard_.chosen.gain_low > 0
    assert "smooth curve (BLS) was chosen" in auto.explain()
    assert isinstance(auto.calibrator_, cal.BLS)


def test_exact_zeros_that_were_wrong_are_no_reason_to_keep_the_scores():
    s = np.array([0.0, 1.0] * 100)
    y = np.array([0, 1] * 90 + [1, 0] * 10)
    auto = cal.AutoCalibrator().fit(s, y)
    assert auto.chosen_ == "BLS"
    assert auto.leaderboard_["uncalibrated"].log_loss == np.inf
    assert auto.leaderboard_["BLS"].gain == np.inf
    assert "infinite" in auto.explain()
    assert "inf" in json.dumps(auto.leaderboard_.to_dict())


def test_scores_with_exact_zeros_are_not_kept_even_if_all_were_right():
    """Luck so far: the first wrong one costs an infinite log loss."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, 600)
    y = (rng.random(600) < p).astype(int)
    p = np.where(p < 0.02, 0.0, np.where(p > 0.98, 1.0, p))
    right = (p > 0) | (y == 0)
    right &= (p < 1) | (y == 1)
    s, y = p[right], y[right]
    auto = cal.AutoCalibrator().fit(s, y)
    assert auto.leaderboard_["uncalibrated"].certain
    assert np.isfinite(auto.leaderboard_["uncalibrated"].log_loss)
    assert auto.chosen_ == "BLS"
    assert not auto.leaderboard_["BLS"].certain
    assert "exact 0 or 1" in auto.explain()
    assert "uncalibrated gives exact 0 or 1" in str(auto.leaderboard_)
    assert 0 < auto.calibrate([0.0])[0] < auto.calibrate([1.0])[0] < 1
    step = cal.AutoCalibrator(candidates=[cal.Isotonic()]).fit(s, y)
    assert step.leaderboard_["Isotonic"].certain
    assert step.chosen_ == "BLS"


def test_exact_zeros_of_several_classes_are_not_kept():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.3, 0.3, 0.3], 600)
    y = np.array([rng.choice(3, p=row) for row in p])
    p[(p < 0.02) & (np.arange(3) != y[:, None])] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    auto = cal.AutoCalibrator().fit(p, y)
    assert auto.leaderboard_["uncalibrated"].certain
    assert auto.chosen_ != "uncalibrated"
    assert auto.predict_proba(p).min() > 0


def test_a_candidate_of_infinite_loss_is_never_taken():
    s, y = rows(60, seed=3)
    auto = cal.AutoCalibrator(candidates=[cal.Isotonic()]).fit(s, y)
    row = auto.leaderboard_["Isotonic"]
    assert (row.log_loss, row.gain, row.tied, row.chosen) == (np.inf, -np.inf, False, False)
    assert "∞" in str(auto.leaderboard_)


def test_a_constant_truth_is_found_by_a_candidate():
    rng = np.random.default_rng(0)
    s, y = rng.random(3000), (rng.random(3000) < 0.5).astype(int)
    auto = cal.AutoCalibrator(candidates={"flat": cal.Histogram(bins=1)}).fit(s, y)
    assert auto.chosen_ in ("BLS", "flat")
    assert np.ptp(auto.calibrate([0.01, 0.99])) < 0.1


# --- every kind of data -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_rows_are_kept(n):
    auto = cal.AutoCalibrator().fit([0.2, 0.7, 0.9][:n], [0, 1, 1][:n])
    assert auto.chosen_ == "uncalibrated"
    assert auto.leaderboard_ is None
    assert "fewer than two" in auto.explain()
    assert auto.calibrate([0.25]).tolist() == [0.25]


def test_twenty_rows():
    s, y = rows(20, seed=2)
    auto = cal.AutoCalibrator(candidates=[cal.Platt(), cal.Beta()]).fit(s, y)
    assert len(auto.leaderboard_) == 4
    p = auto.calibrate(np.linspace(0, 1, 50))
    assert ((p >= 0) & (p <= 1)).all()


def test_margins_are_compared_with_their_sigmoid():
    s, y = rows(900)
    margins = 5 * (s - 0.7)
    auto = cal.AutoCalibrator().fit(margins, y)
    plain = cal.AutoCalibrator().fit(expit(margins), y)
    ours, theirs = (a.leaderboard_["uncalibrated"].log_loss for a in (auto, plain))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert auto.chosen_ == "BLS"


def test_huge_margins_do_not_lose_their_order():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=400) * 1e4
    y = (margins + 1e4 * rng.normal(size=400) > 0).astype(int)
    auto = cal.AutoCalibrator().fit(margins, y)
    assert auto.chosen_ == "BLS"
    assert abs(auto.leaderboard_["BLS"].auc_change) < 0.02
    assert auto.leaderboard_["BLS"].auc > 0.8


@pytest.mark.parametrize(
    ("low", "high", "at"),
    [
        (-0.5, 1.5, [-90.0, -30.0, -3.0, 0.5, 3.0, 6.0, 10.0, 30.0]),
        (8.0, 14.0, [0.0, 1.0, 10.0, 50.0, 90.0, 100.0]),
        (0.2, 0.6, [0.0, 1e-30, 1e-9, 0.01, 0.4, 0.9, 1.0 - 1e-9]),
    ],
)
def test_scores_far_beyond_those_of_the_fit_are_averaged_too(low, high, at):
    drawn = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        s = rng.uniform(low, high, 300)
        right = expit(0.7 * s) if low < 0 else 1.2 * s / (100 if high > 1 else 1)
        y = rng.random(300) < right
        auto = cal.AutoCalibrator().fit(s, y)
        drawn += 0 < auto.share_ < 1
        if 0 < auto.share_ < 1:
            p, before, curve = (
                logit(one.fit(s, y).calibrate(at, on_range="allow"))
                for one in (auto, cal.Uncalibrated(), cal.BLS())
            )
            expected = (1 - auto.share_) * np.clip(before, -36, 36) + auto.share_ * curve
            np.testing.assert_allclose(expit(p), expit(expected), rtol=1e-3)
            np.testing.assert_allclose(p, expected, atol=0.02 if low < 0 else 1e-3)
    assert drawn >= 2


def test_the_rest_of_a_share_is_one_rate_where_scores_are_points():
    rng = np.random.default_rng(0)
    s = np.round(600 + 80 * rng.standard_normal(150))
    auto = cal.AutoCalibrator().fit(s, rng.random(150) < expit((s - 600) / 200))
    assert 0 < auto.share_ < 1
    told = auto.explain()
    assert "and one rate for all rows the rest" in told
    assert "the scores as they are" not in told


def test_labels_of_any_kind_and_pos_label():
    s, y = rows(400)
    words = np.where(y == 1, "bad", "good")
    auto = cal.AutoCalibrator(pos_label="bad").fit(s, words)
    plain = cal.AutoCalibrator().fit(s, y)
    assert auto.calibrate(s) == pytest.approx(plain.calibrate(s))
    assert auto.predict_proba(s)[:, 0] == pytest.approx(plain.calibrate(s))
    with pytest.raises(cal.errors.ParameterError, match="pos_label"):
        cal.AutoCalibrator(
            pos_label="bad", candidates=[cal.Platt(pos_label="good")], cv=splits(400)
        ).fit(s, words)


def test_only_ratios_of_importance_weights_matter():
    s, y = rows(800)
    w = np.random.default_rng(1).integers(1, 5, len(y)).astype(float)
    one, many, share = (cal.AutoCalibrator().fit(s, y, w * f) for f in (1.0, 2.0**20, 2.0**-20))
    for other in (many, share):
        np.testing.assert_allclose(other.calibrate(s), one.calibrate(s), rtol=1e-4)
        assert other.leaderboard_["BLS"].gain == pytest.approx(one.leaderboard_["BLS"].gain, 1e-4)


def test_our_own_method_is_not_taken_where_it_does_not_help_itself():
    rng = np.random.default_rng(0)
    n = 400
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < expit(logit(p) + 0.5)).astype(int)
    columns = CellColumns(*(x.astype(float) for x in (1 - y, y, 1 - y, y)))
    held = HeldOutCells(p, columns, [n], pairs=[(np.arange(0), np.arange(n))])
    luck = {"uncalibrated": p, "BLS": expit(logit(p) - 0.05), "other": expit(logit(p) + 0.5)}
    judged = {name: held.trial(q) for name, q in luck.items()}
    assert choose(judged, held)[0] == "other"


def test_folds_of_whole_tables_are_whole():
    table = cal.ScoreTable.from_counts([0.2, 0.3, 0.7], [1157, 49, 97], [343, 51, 103])
    for column in HeldOutCells.of_table(table, 5, 0).columns:
        assert (column == np.rint(column)).all()


def test_zero_weights_are_absent():
    s, y = rows(300)
    w = np.ones(300)
    w[::3] = 0.0
    some = w > 0
    for cv in (5, TimeSeriesSplit(3)):
        one = cal.AutoCalibrator(cv=cv).fit(s, y, w)
        other = cal.AutoCalibrator(cv=cv).fit(s[some], y[some])
        assert one.leaderboard_.weight == other.leaderboard_.weight
    assert one.map_ == other.map_


def test_given_splits_speak_of_all_rows():
    s, y = rows(300)
    w = np.ones(300)
    w[::3] = 0.0
    fold = np.arange(300) % 4
    given = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    masks = [(fold != f, fold == f) for f in range(4)]
    some = w > 0
    own = [(np.flatnonzero(fold[some] != f), np.flatnonzero(fold[some] == f)) for f in range(4)]
    expected = cal.AutoCalibrator(cv=own).fit(s[some], y[some]).leaderboard_["BLS"].log_loss
    for cv in (given, masks):
        auto = cal.AutoCalibrator(cv=cv).fit(s, y, w)
        assert auto.leaderboard_["BLS"].log_loss == pytest.approx(expected, rel=1e-9)
    z, y = classes(300)
    expected = cal.AutoCalibrator(cv=own).fit(z[some], y[some]).leaderboard_["mixture"].log_loss
    found = cal.AutoCalibrator(cv=given).fit(z, y, w).leaderboard_["mixture"].log_loss
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_table_gives_the_same_as_its_rows():
    s, y = rows(500)
    by_rows = cal.AutoCalibrator().fit(s, y)
    by_table = cal.AutoCalibrator().fit_table(cal.ScoreTable.from_arrays(s, y))
    assert by_rows.map_ == by_table.map_
    shuffled = np.random.default_rng(3).permutation(500)
    again = cal.AutoCalibrator().fit(s[shuffled], y[shuffled])
    assert again.map_ == by_rows.map_
    with pytest.raises(
        cal.errors.ParameterError, match="cv of AutoCalibrator must be a number of folds"
    ):
        cal.AutoCalibrator(cv=0.3).fit_table(cal.ScoreTable.from_arrays(s, y))


def test_many_scores_are_judged_on_cells(monkeypatch):
    from calibrant.fitting import held_out as parts

    monkeypatch.setattr(parts, "MOST_CELLS", 500)
    monkeypatch.setattr(parts, "POOLED_CELLS", 300)
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    y = rng.random(4000) < s**2
    auto = cal.AutoCalibrator().fit(s, y)
    assert any("cells" in note for note in auto.leaderboard_.notes)
    monkeypatch.undo()
    exact = cal.AutoCalibrator().fit(s, y)
    assert not exact.leaderboard_.notes
    for name in ("uncalibrated", "BLS"):
        one, other = auto.leaderboard_[name], exact.leaderboard_[name]
        assert one.log_loss == pytest.approx(other.log_loss, abs=2e-3)
    assert auto.map_ == exact.map_


# --- what it leaves behind ----------------------------------------------------------------------


def test_out_of_fold_tables():
    s, y = rows(300)
    auto = cal.AutoCalibrator(candidates=[cal.Platt()]).fit(s, y)
    assert set(auto.oof_) == {"uncalibrated", "BLS", "Platt"}
    for name, table in auto.oof_.items():
        assert table.total == 300
        assert cal.metrics.log_loss(table) == pytest.approx(auto.leaderboard_[name].log_loss)


def test_save_and_load(tmp_path):
    s, y = rows(300)
    auto = cal.AutoCalibrator(candidates=[cal.Platt()]).fit(s, y)
    for name in ("a.json", "b.json"):
        cal.save(auto.fit(s, y), tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    loaded = cal.load(tmp_path / "a.json")
    assert loaded.calibrate(s).tolist() == auto.calibrate(s).tolist()
    assert loaded.provenance["chosen"] == auto.chosen_
    assert loaded.provenance["leaderboard"]["rows"][0]["name"] == auto.leaderboard_.rows[0].name


def test_leaderboard_prints_everywhere():
    from rich.console import Console

    s, y = rows(300)
    board = cal.AutoCalibrator(candidates={"<b>": cal.Platt()}).fit(s, y).leaderboard_
    assert "BLS *" in str(board) or "<b> *" in str(board)
    assert "&lt;b&gt;" in board._repr_html_()
    assert "<b>" not in board._repr_html_()
    for width in (60, 80, 140):
        console = Console(width=width, file=io.StringIO())
        console.print(board)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)
        assert any("gain" in line for line in lines)
    assert "Brier" in console.file.getvalue()
    assert "values" in console.file.getvalue()


@pytest.mark.parametrize("backend", [None, "pandas", "polars", "pyarrow"])
def test_leaderboard_as_a_frame(backend):
    s, y = rows(300)
    frame = cal.AutoCalibrator().fit(s, y).leaderboard_.to_frame(backend=backend)
    assert len(frame) == 2
    assert "gain_low" in (frame.column_names if backend == "pyarrow" else list(frame.columns))


def test_progress(capsys):
    s, y = rows(100)
    cal.AutoCalibrator(progress=True).fit(s, y)
    printed = capsys.readouterr()
    assert "calibrators" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"cv": "prefit"}, "cv of AutoCalibrator must be a number of folds"),
        ({"cv": 1}, "cv of AutoCalibrator"),
        ({"cv": []}, "cv of AutoCalibrator"),
        ({"candidates": [7]}, "candidates of AutoCalibrator must be a list of calibrators"),
        ({"candidates": cal.Platt}, "candidates of AutoCalibrator"),
        ({"candidates": {"BLS": cal.Platt()}}, "other names than 'BLS'"),
        ({"candidates": {"uncalibrated": cal.Platt()}}, "none of them 'uncalibrated'"),
        ({"candidates": [cal.Platt(), cal.Platt()]}, "of different names"),
        ({"candidates": [cal.VectorScaling()]}, "candidates must be one calibrator of scores"),
        ({"level": 1.5}, "level of AutoCalibrator"),
    ],
)
def test_bad_options(options, match):
    s, y = rows(50)
    with pytest.raises(cal.errors.ParameterError, match=match):
        cal.AutoCalibrator(**options).fit(s, y)


def test_bad_groups():
    s, y = rows(50)
    with pytest.raises(cal.errors.InputError, match="groups"):
        cal.AutoCalibrator().fit(s, y, groups=[1, 2])


# --- several classes ----------------------------------------------------------------------------


def classes(n=900, k=3, factor=2.5, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return factor * z, np.array(["ape", "bee", "cat", "dog"])[y]


def test_classes_over_confident():
    z, y = classes()
    auto = cal.AutoCalibrator(candidates=[cal.VectorScaling(), cal.Platt()]).fit(z, y)
    names = {row.name for row in auto.leaderboard_.rows}
    assert {"uncalibrated", "mixture", "temperature", "VectorScaling", "Platt"} <= names
    assert auto.leaderboard_.chosen.gain_low > 0
    p = auto.predict_proba(z)
    assert p.shape == (900, 3)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert set(auto.predict(z)) == {"ape", "bee", "cat"}
    with pytest.raises(cal.errors.InputError, match="predict_proba"):
        auto.calibrate(z)
    new, y_new = classes(seed=1)
    before, after = (
        cal.metrics.log_loss(y_new, q) for q in (softmax(new, axis=1), auto.predict_proba(new))
    )
    assert after < before


def test_classes_that_are_calibrated_are_kept():
    z, y = classes(factor=1.0, seed=4)
    p = softmax(z, axis=1)
    auto = cal.AutoCalibrator().fit(p, y)
    assert auto.chosen_ == "uncalibrated"
    assert auto.predict_proba(p) == pytest.approx(p, abs=1e-12)
    assert "mixture" in auto.leaderboard_.to_frame()["name"].tolist()


def test_classes_figures_against_plain_loops():
    z, y = classes(240)
    pairs = splits(240)
    auto = cal.AutoCalibrator(candidates=[cal.VectorScaling()], cv=pairs).fit(z, y)
    order = np.concatenate([test for _, test in pairs])
    codes = np.searchsorted(["ape", "bee", "cat"], y)
    loss, square = [], []
    for train, test in pairs:
        p = cal.VectorScaling().fit(z[train], y[train]).predict_proba(z[test])
        for row, code in zip(p, codes[test], strict=True):
            loss.append(-np.log(row[code]))
            square.append(sum((q - (j == code)) ** 2 for j, q in enumerate(row)))
    found = auto.leaderboard_["VectorScaling"]
    assert len(order) == 240
    expected = naive.mean_and_error(loss, [1.0] * 240)
    assert (found.log_loss, found.log_loss_se) == pytest.approx(expected, rel=1e-9)
    expected = naive.mean_and_error(square, [1.0] * 240)
    assert (found.brier, found.brier_se) == pytest.approx(expected, rel=1e-9)


def test_classes_groups_weights_missing_classes_and_files(tmp_path):
    z, y = classes(300)
    w = np.random.default_rng(0).integers(0, 3, 300)
    groups = np.arange(300) // 3
    auto = cal.AutoCalibrator(classes=["ape", "bee", "cat"]).fit(z, y, w, groups=groups)
    assert auto.leaderboard_.weight == w.sum()
    few = cal.AutoCalibrator(classes=["ape", "bee", "cat", "dog"])
    few.fit(np.column_stack([z, z[:, 0]]), y)
    assert few.predict_proba(np.column_stack([z, z[:, 0]])).shape == (300, 4)
    cal.save(auto, tmp_path / "c.json")
    assert cal.load(tmp_path / "c.json").predict_proba(z).tolist() == auto.predict_proba(z).tolist()
    with pytest.raises(cal.errors.InputError, match="pos_label"):
        cal.AutoCalibrator(pos_label="ape").fit(z, y)


def test_zeros_of_several_classes_are_raised():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.02] * 3, size=300)
    p[:5] = [1.0, 0.0, 0.0]
    y = rng.integers(0, 3, 300)
    auto = cal.AutoCalibrator().fit(p, y)
    assert auto.chosen_ != "uncalibrated"
    q = auto.predict_proba([[1.0, 0.0, 0.0]])
    assert q.min() > 1e-3
    with pytest.raises(cal.errors.InputError, match=r"probabilities in \[0, 1\]"):
        auto.predict_proba([[1.0, 2.0, 0.0]])


@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 1000))
def test_mixture_weights_are_the_best(m, n, seed):
    rng = np.random.default_rng(seed)
    p, w = rng.random((n, m)) + 1e-3, rng.random(n) + 0.1
    found = mixture_weights(p, w)
    assert found.sum() == pytest.approx(1.0)
    best = naive.mixture_likelihood(p, w, found)
    for _ in range(20):
        other = 0.9 * found + 0.1 * rng.dirichlet(np.ones(m))
        assert naive.mixture_likelihood(p, w, other) <= best + 1e-6


def test_around_a_model():
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(400, 2)), 3, axis=1) + 0.1 * rng.normal(size=(400, 6))
    y = (X[:, 0] + X[:, 3] + rng.normal(size=400) > 0).astype(int)
    model = cal.CalibratedClassifier(GaussianNB(), cal.AutoCalibrator(), cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (400, 2)
    third = np.where(X[:, 1] > 1, 2, y)
    model = cal.CalibratedClassifier(GaussianNB(), cal.AutoCalibrator(), cv=3).fit(X, third)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (-0.0008, "The ranking is kept: AUC 0.743."),  # 0.7434 before: the same three digits
        (-0.0018, "AUC fell from 0.744 to 0.743."),
        (0.0018, "AUC rose from 0.741 to 0.743."),
    ],
)
def test_an_auc_that_reads_the_same_has_not_moved(change, words):
    row = Standing("BLS", 0.5, 0.0, 0.2, 0.0, 0.1, 0.0, 0.2, 0.7426, change, 9, 0.0)
    assert explain._ranking_in_words(row) == words


def test_why_the_default_is_preferred_to_a_smaller_loss_stands_in_words_and_on_the_page():
    rng = np.random.default_rng(3)
    p = rng.random(1500)
    y = rng.random(1500) < p**2 / (p**2 + (1 - p) ** 2)
    auto = cal.AutoCalibrator(candidates=["platt", "beta"]).fit(p, y)
    assert auto.leaderboard_.rows[0].name == "Platt"
    assert auto.chosen_ == "BLS"
    rule = "BLS is preferred unless another is ahead by more than two standard errors"
    assert rule in auto.explain()
    assert rule in cal.calibration_report(p, y, calibrator=auto).how
