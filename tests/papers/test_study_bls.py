"""The study of BLS: its protocol on a toy dataset, and the page that is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from studies import experiment, write_toy


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "bls")


@pytest.fixture(scope="module")
def toy(root, study, tmp_path_factory):
    """Results of three methods on the toy dataset, and the folder of their parts."""
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, seed=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALIBRANT_DATA", str(folder))
        tasks = experiment(root, "data").tasks(600)
        results = study.study(tasks, 1, folder / "parts", ["BLS", "Identity", "BLS gated"])
        again = study.study(tasks, 1, folder / "parts", ["BLS", "Identity", "BLS gated"])
    return results, again


def test_what_is_done_is_not_done_again(study, toy):
    results, again = toy
    assert results.equals(again)
    assert results["seconds"].equals(again["seconds"])
    assert set(results["model"]) == set(study.MODELS)
    assert set(results["n"]) == {"200"}


def test_gate_keeps_or_calibrates(toy):
    loss = toy[0].pivot(index="model", columns="method", values="log loss")
    kept = np.isclose(loss["BLS gated"], loss["Identity"])
    done = np.isclose(loss["BLS gated"], loss["BLS"])
    assert (kept | done).all()
    assert done.any()
    assert loss.loc["overfitted boosting", "BLS"] < loss.loc["overfitted boosting", "Identity"]


def test_tables_count_wins_and_harm(study):
    rows = [
        ("a", "m", "200", 0, method, loss, loss)
        for method, loss in (("Identity", 0.5), ("BLS", 0.4), ("Platt", 0.6))
    ]
    columns = ["task", "model", "n", "seed", "method", "log loss", "Brier"]
    results = pd.DataFrame(rows, columns=columns)
    assert study.made_worse(results, "Platt") == 1.0
    assert study.made_worse(results, "BLS") == 0.0
    wins = study.pairwise(study.losses(results, "log loss", ["BLS", "Identity", "Platt"]))
    assert wins.to_dict() == {"BLS": 1.0, "Identity": 0.5, "Platt": 0.0}


def test_halves_share_no_dataset(root, study, shared):
    tasks = experiment(root, "data").tasks(600)
    halves = [{t.entry["name"] for t in tasks if study.is_judged(t) == half} for half in (0, 1)]
    assert not halves[0] & halves[1]
    assert min(len(half) for half in halves) >= 10


def test_committed_results_are_of_this_study(root, study):
    folder = root / "experiments" / "results"
    kept = pd.read_csv(folder / "bls.csv")
    assert set(kept["method"]) == set(study.METHODS)
    assert kept[["log loss", "Brier", "AUC"]].notna().all().all()
    page = (folder / "bls.md").read_text(encoding="utf-8")
    for name in study.METHODS:
        assert f"| {name} |" in page
