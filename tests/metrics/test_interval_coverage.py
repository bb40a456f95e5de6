"""Intervals hold the truth as often as they say: a glance always, a study by hand (-m slow)."""

from __future__ import annotations

import math

import pytest

from studies import experiment


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "coverage")


def least(runs: int, level: float = 0.95) -> float:
    """Three standard deviations of chance below the level, in percent."""
    return 100 * (level - 3 * math.sqrt(level * (1 - level) / runs))


#: weak spots, as the page on measures has them: few positives, uneven weights, or both
WEAK = {
    ("rare", "none", 200): 0.91,
    ("common", "importance", 200): 0.91,
    ("rare", "importance", 200): 0.86,
}


def check(tallies, runs, level=0.95):
    for what, found in tallies.items():
        for name, tally in found.items():
            if tally.runs > runs / 2:
                assert tally.held >= least(tally.runs, level), (what, name, tally.held)


@pytest.mark.full
def test_a_glance_at_the_coverage(study):
    tallies = study.coverage("common", "none", 200, 120, 100)
    assert {len(found) for found in tallies.values()} == {13, 11}
    check(tallies, 120)


@pytest.mark.full
def test_a_glance_at_importance_weights(study):
    check(study.coverage("common", "importance", 300, 40, 100), 40)


@pytest.mark.full
@pytest.mark.parametrize("world", ["overconfident", "skewed"])
def test_a_glance_at_the_clinical_measures(root, world):
    clinical = experiment(root, "coverage_clinical")
    tallies = clinical.coverage(world, "importance", 300, 30, 100)
    assert [len(found) for found in tallies.values()] == [9, 4, 4]
    check(tallies, 30)


@pytest.mark.full
def test_weights_taken_for_rows_would_not_hold_the_truth(study, monkeypatch):
    """The study can fail: weights around 100 make intervals far too narrow as counts."""
    evaluate = study.cal.evaluate
    monkeypatch.setattr(
        study.cal, "evaluate", lambda *a, **o: evaluate(*a, **(o | {"weights": "counts"}))
    )
    tallies = study.coverage("common", "importance", 300, 30, 100)
    assert tallies["right"]["brier"].held < 50


def test_the_page_shows_what_was_found(study):
    found = {("common", "none", 200): study.coverage("common", "none", 200, 3, 100)}
    text = study.page(found, "# Title")
    assert text.startswith("# Title")
    assert text.count("| `ece` |") == 3
    assert "| `mce` | – |" in text  # no interval of its change


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2_000, 20_000])
@pytest.mark.parametrize("weights", ["none", "importance"])
@pytest.mark.parametrize("world", ["common", "rare"])
def test_coverage(study, world, weights, n):
    runs = 300 if n < 20_000 else 100
    tallies = study.coverage(world, weights, n, runs, 100, seed=1)
    check(tallies, runs, WEAK.get((world, weights, n), 0.95))


@pytest.mark.full
@pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("factor", [1.0, 2.0], ids=["right", "too sure"])
def test_intervals_of_several_classes(root, factor, runs):
    found = experiment(root, "coverage_classes").coverage(factor, 300, runs, 100)
    assert min(found.values()) >= least(runs), found
