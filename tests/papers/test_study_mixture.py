"""The study of mixtures for several classes: its parts, the protocol, and what it found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant.auto.auto import PSEUDO, members_for
from calibrant.solvers.weights import mixture_weights
from studies import experiment, write_toy


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "mixture")


@pytest.fixture(scope="module")
def parts(root):
    return experiment(root, "mixture_cases")


@pytest.fixture(scope="module")
def rows(parts):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 3))
    y = (z + (np.arange(3) == 2) + rng.gumbel(size=z.shape)).argmax(axis=1)
    return parts.Rows(3 * z[:200], y[:200], 3 * z[200:], y[200:])


@pytest.fixture(scope="module")
def found(parts, rows):
    return parts.fits({"data": "toy", "size": "300"}, rows)


# --- the parts of the study -----------------------------------------------------------------------


def test_constants_are_chosen_on_other_data_than_judge(parts):
    assert not set(parts.TUNED) & set(parts.JUDGED)
    assert sorted(parts.TUNED + parts.JUDGED) == list(parts.DATA)
    assert list(parts.TUNED) == list(parts.DATA)[1::2]
    assert len(parts.DATA) == 11


def test_the_last_mixture_is_that_of_the_library(study, parts):
    ours = [one.get_params() for one in members_for(5, rows=100).values()]
    theirs = [parts.MEMBERS[name].get_params() for name in study.LAST]
    for one, other in zip(ours, theirs, strict=True):
        assert {k: repr(v) for k, v in one.items()} == {k: repr(v) for k, v in other.items()}
    assert study.LAST_PSEUDO == PSEUDO


@pytest.mark.parametrize("pseudo", [0.1, 1.0, 5.0])
def test_shares_are_those_of_the_library(study, pseudo):
    rng = np.random.default_rng(1)
    likelihood = rng.random((50, 4)) ** 4 + 1e-9
    found = study.shares(likelihood, pseudo)
    assert found == pytest.approx(mixture_weights(likelihood, np.ones(50), pseudo), abs=1e-7)


def test_the_mixture_and_the_choice_are_those_of_the_library(study, rows, found):
    """Built from public parts alone: the same figures out of fold, the same predictions."""
    mine = study.mixed(found, study.LAST, study.LAST_PSEUDO)
    auto = cal.AutoCalibrator().fit(rows.scores, rows.y)
    board = auto.leaderboard_
    assert -np.log(mine.held).mean() == pytest.approx(board["mixture"].log_loss, rel=1e-6)
    y = rows.y
    losses = {
        "identity": -np.log(found["held identity"][np.arange(len(y)), y]),
        "mixture": -np.log(mine.held),
    }
    names = zip(study.LAST, members_for(3, rows=100), strict=True)
    for name, ours in names:
        losses[ours] = -np.log(found[f"held {name}"][np.arange(len(y)), y])
        assert losses[ours].mean() == pytest.approx(board[ours].log_loss, rel=1e-6)
    assert study.choose(losses) == auto.chosen_
    assert auto.chosen_ == "mixture"
    assert auto.predict_proba(rows.new) == pytest.approx(mine.new, abs=1e-6)


def test_lines_tell_log_loss_and_brier(study, rows, found):
    lines = pd.DataFrame(
        study.judged({"data": "toy", "model": "m", "seed": 0, "size": "300"}, found)
    )
    assert not lines.duplicated("method").any()
    one = lines.set_index("method").loc["identity"]
    p = softmax(rows.new, axis=1)
    assert one["log loss"] == pytest.approx(cal.metrics.log_loss(rows.y_new, p), abs=1e-6)
    assert one["Brier"] == pytest.approx(
        cal.metrics.brier(rows.y_new, p, normalise="sum"), abs=1e-6
    )
    assert {"gate of 0", "gate of 1", "first mixture", "equal shares", "Dirichlet"} <= set(
        lines["method"]
    )


def test_choice_keeps_the_first_unless_another_is_ahead(study):
    rng = np.random.default_rng(0)
    a = rng.random(100)
    near, far = a - 0.001 * rng.normal(0.01, 1, 100), a - 0.5
    assert study.choose({"a": a, "b": near}) == "a"
    assert study.choose({"a": a, "b": far}) == "b"
    assert study.choose({"a": np.full(100, np.inf), "b": a}) == "b"
    assert study.choose({"a": a, "b": a.copy()}, 0.0) == "a"
    some = far - 0.01 * rng.normal(0.15, 1, 100)  # ahead, but by no more than two
    assert study.choose({"a": a, "b": far, "c": some, "d": far - 0.1 * a}) == "d"
    assert study.choose({"a": a, "b": far, "c": some}) == "b"


def test_rows_are_softened_and_raised(parts):
    z = np.array([[30.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    p = softmax(z, axis=1)
    assert parts.probabilities(z) == pytest.approx(p)
    assert parts.probabilities(p) is p
    assert parts.probabilities(p, 0.1) == pytest.approx(softmax(0.1 * z, axis=1))
    high, low = parts.raised(p, np.array([[1.0, 0.0, 0.0]]))
    assert high.min() == pytest.approx(1e-7, rel=1e-3)
    assert low[0, 1] == pytest.approx(1e-7, rel=1e-3)
    assert high.sum(axis=1) == pytest.approx(1.0)


def test_folds_and_splits(parts, rows):
    assert np.bincount(parts.fold_of(rows, 5)).tolist() == [40] * 5
    y = np.repeat([0, 1, 2], [400, 150, 50])
    train, pool, test = parts.split(y, 0)
    assert (len(train), len(pool), len(test)) == (150, 300, 150)
    assert sorted([*train, *pool, *test]) == list(range(600))
    assert len(rows.some(50, 1).y) == 50
    assert rows.some(5000, 1) is rows


def test_tables_are_read_with_all_their_classes(parts, tmp_path, monkeypatch):
    write_toy(tmp_path, 0)
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    X, y = parts.read_table("toy")
    assert list(X.columns) == ["z", "word"]
    assert set(y) == {0, 1}
    assert len(y) == 900


# --- what is kept ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(study, root):
    return study.read(root / "experiments" / "results" / "mixture.csv")


def test_committed_results_are_of_this_study(study, parts, root, kept):
    assert not kept.duplicated([*study.CASE, "method"]).any()
    assert np.isfinite(kept[list(study.MEASURES)]).all().all()
    assert set(kept["data"]) == set(parts.DATA)
    assert set(kept["size"]) == {"300", "1000", "all"}
    assert set(kept[kept["data"] == "car"]["model"]) == set(parts.MODELS)
    page = (root / "experiments" / "results" / "mixture.md").read_text(encoding="utf-8")
    assert page == study.page(kept) + "\n"


def test_results_are_written_and_read(study, kept, tmp_path):
    study.write(kept, tmp_path / "again.csv")
    again = study.read(tmp_path / "again.csv")
    keys = [*study.CASE, "method"]
    both = kept.merge(again, on=keys, suffixes=("", " again"))
    assert len(both) == len(kept) == len(again)
    for measure in study.MEASURES:
        assert both[measure].tolist() == both[f"{measure} again"].tolist()


def test_what_the_docs_say_is_in_the_results(study, parts, kept):
    """On the datasets that judge: ahead of all rivals, and next to never worse than nothing."""
    other = kept[kept["data"].isin(parts.JUDGED)]
    losses = study.grid(other, "log loss")
    rates = {name: study.won(losses, name) for name in study.SHOWN}
    assert min(rates["mixture"], rates[study.AUTO]) > max(rates[name] for name in study.RIVALS)
    means = losses.mean()
    assert means["mixture"] < means["first mixture"] < means["floor only"]
    assert means["mixture"] < means[study.AUTO] < min(means[name] for name in study.RIVALS)
    worse = losses[study.AUTO] > losses["identity"] + 1e-9
    assert worse.mean() < 0.02
    assert (losses["mixture"] > losses["identity"] + 1e-9).mean() > worse.mean()


def test_committed_results_are_run_again(study, parts, kept, shared):
    """A network's logits with 300 rows, figure by figure, of all that is made without BLS."""
    case = {"data": "cifar-resnet", "model": "ResNet-50", "seed": 0, "size": "300"}
    ((_, rows),) = parts.of_network("cifar-resnet", 0)
    rows = rows.some(300, 0)
    again = {"identity": parts.probabilities(rows.new)}
    for name in ("vector", "matrix", "structured, with gate", "one-vs-rest Platt"):
        again[name] = parts.fitted(parts.OTHERS[name], rows.scores, rows.y).predict_proba(rows.new)
    warm = cal.Temperature(classes=list(range(10))).fit(rows.scores, rows.y).temperature_
    soft = (parts.probabilities(z, min(1.0, 1.0 / warm)) for z in (rows.scores, rows.new))
    p, q = parts.raised(*soft)
    for name in ("temperature", "structured ×0.01", "structured ×1", "one-vs-rest isotonic"):
        again[name] = parts.fitted(parts.MEMBERS[name], p, rows.y).predict_proba(q)
    lines = kept[(kept[list(case)] == pd.Series(case)).all(axis=1)].set_index("method")
    for name, p in again.items():
        own = np.maximum(p[np.arange(len(p)), rows.y_new], study.CLIP)
        assert lines.loc[name, "log loss"] == pytest.approx(-np.log(own).mean(), abs=2e-5), name
