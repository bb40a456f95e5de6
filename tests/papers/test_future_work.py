"""What the papers left to do: chains, several classes, several labels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def chains(root):
    return experiment(root, "chains")


def _every(theta, equal):
    """All labellings of a chain and their scores."""
    labels = np.array(list(product((0, 1), repeat=len(theta))))
    same = (labels[:, 1:] == labels[:, :-1]).sum(axis=1)
    return labels, labels @ theta + equal * same


def test_marginals_are_those_of_all_labellings(chains):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(4, 6))
    for equal in (-0.7, 0.0, 1.3):
        sums, best = chains.marginals(theta, equal), chains.max_marginals(theta, equal)
        first = chains.best_labels(theta, equal)
        for i, one in enumerate(theta):
            labels, scores = _every(one, equal)
            weights = np.exp(scores) / np.exp(scores).sum()
            assert sums[i] == pytest.approx(weights @ labels)
            gaps = [
                scores[labels[:, t] == 1].max() - scores[labels[:, t] == 0].max() for t in range(6)
            ]
            assert best[i] == pytest.approx(gaps)
            assert first[i].tolist() == labels[scores.argmax()].tolist()


def _drawn(chains, rng, count):
    """Chains from a random field whose weights are known."""
    X = rng.normal(size=(count, 8, 2))
    truth = chains.Chain(np.array([1.5, -0.5]), 0.3, 1.0)
    y = np.empty((count, 8), dtype=int)
    for i, theta in enumerate(truth.nodes(X)):
        labels, scores = _every(theta, truth.equal)
        weights = np.exp(scores - scores.max())
        y[i] = labels[rng.choice(len(labels), p=weights / weights.sum())]
    return X, y


def test_a_field_is_fitted_to_its_maximum_and_a_margin_labels_as_well(chains):
    X, y = _drawn(chains, np.random.default_rng(1), 400)
    field, margin = chains.fit_field(X, y), chains.fit_margin(X, y)
    assert field.weights == pytest.approx([1.5, -0.5], abs=0.2)
    assert field.equal == pytest.approx(1.0, abs=0.2)
    p = chains.marginals(field.nodes(X), field.equal)
    assert p.mean() == pytest.approx(y.mean(), abs=1e-3)  # the intercept's equation
    wrong = [np.mean(chains.best_labels(one.nodes(X), one.equal) != y) for one in (field, margin)]
    assert wrong[1] < wrong[0] + 0.02 < 0.3


def test_several_classes_are_run_and_shown(root, shared, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(shared / "data"))
    table = experiment(root, "papers").paper("naeini2015").table("multiclass")
    row = table.run(dataset="balance", model="logistic regression", seed=0)
    kept = pd.read_csv(root / "experiments" / "results" / "naeini2015_multiclass.csv")
    same = kept.query("dataset == 'balance' and model == 'logistic regression' and seed == 0")
    for name, value in row.items():
        assert value == pytest.approx(float(same[name].iloc[0]), abs=1e-4), name
    assert "against isotonic" in table.page(kept)


def test_labels_that_are_not_known_are_left_out(root, shared, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(shared / "data"))
    labels = experiment(root, "papers.naeini2018.labels")
    X, Y = labels.rows_of("vote")
    assert Y.shape == (435, 5)
    assert np.isnan(Y).sum(axis=0).tolist() == [15, 22, 7, 31, 28]
    assert not set(labels.DATASETS["vote"].labels) & set(X)
    row = labels.run(dataset="vote", model="logistic regression", seed=0)
    assert row["ENIR log loss"] < 0.7
    X, Y = labels.rows_of("solar-flare")
    assert "X_class_flares" not in X
    assert Y.sum(axis=0).tolist() == [218, 68]


def test_a_joint_model_gives_the_figures_that_are_kept(root, shared, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(shared / "data"))
    joint = experiment(root, "papers.naeini2015.joint")
    (train, y), (hold, _), (test, _) = joint.drawn(0)
    assert train.shape == (30, 30, 16)
    assert (len(hold), len(test)) == (50, 300)
    assert np.mean(y[:, 1:] == y[:, :-1]) == pytest.approx(0.8, abs=0.05)
    row = joint.run("max margin, margins", 0)
    kept = pd.read_csv(root / "experiments" / "results" / "naeini2015_joint.csv")
    same = kept.query("model == 'max margin, margins' and seed == 0")
    for name in ("model log loss", "ABB log loss", "error"):
        assert row[name] == pytest.approx(float(same[name].iloc[0]), abs=1e-3), name
    assert joint.better(kept, "max margin, margins", "ABB", "log loss") == (20, 20)


def test_abb_beside_bbq_and_the_union(root):
    folder = root / "experiments" / "results"
    union, beyond = (experiment(root, f"papers.naeini2018.{n}") for n in ("union", "beyond"))
    frame, sizes = (pd.read_csv(folder / f"naeini2018_{n}.csv") for n in ("union", "2"))
    rows = dict(zip(sizes["dataset"], sizes["rows"], strict=True))
    part = union.small(frame, rows)
    assert 0 < part["dataset"].nunique() < frame["dataset"].nunique()
    assert max(rows[name] for name in part["dataset"]) <= union.SMALL
    frames = {"union": frame, "2": sizes}
    (claim,) = beyond.left_out(frames)
    assert claim.holds is not None
    alike = frame.assign(**{
        name: frame[name.replace("ABB", "BBQ", 1)] for name in frame if name.startswith("ABB ")
    })  # fmt: skip
    (same,) = beyond.left_out({**frames, "union": alike})
    assert same.holds
    assert "beyond chance: none" in same.ours
    far = frame.assign(**{name: frame[name] + 0.1 for name in frame if name.startswith("ABB ")})
    (apart,) = beyond.left_out({**frames, "union": far})
    assert not apart.holds
