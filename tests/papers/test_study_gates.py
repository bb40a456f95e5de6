"""The study of gates: its samples, what it sees of them, and what its page says."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def study(root):
    return experiment(root, "gates")


@pytest.fixture(scope="module")
def toy(study):
    rows = []
    for source, error in (("simulated", "right"), ("simulated", "shift .4"), ("real", "x")):
        for seed in range(3):
            kind = "shift .4" if source == "real" else error
            one = study.simulated("tune", "uniform", kind, 200, seed)
            found = study.seen(one)
            rows.append(
                {"source": source, "kind": "t/m", "error": error, "n": 200, "seed": 0, **found}
            )
    return pd.DataFrame(rows)


def test_the_rule_that_is_taken_is_that_of_the_default(study):
    """The share that the study gives is the share of AutoCalibrator."""
    for seed in range(4):
        for error in ("right", "shift .4"):
            one = study.simulated("tune", "uniform", error, 200, seed)
            found = pd.DataFrame([study.shared(one)])
            share = study.RULES[study.RULE_TAKEN](found).to_numpy()
            auto = study.cal.AutoCalibrator().fit(one.scores, one.y)
            assert auto.share_ == pytest.approx(share[0], abs=1e-9)
            expected = study.loss(one.truth, auto.calibrate(one.new))
            assert study.loss_of_shares(found, share)[0] == pytest.approx(expected, abs=2e-4)


def test_rules_of_shares(study):
    rows = [
        {"kind": "uniform", "error": error, "n": n, **study.shared(one)}
        for n in study.SHARE_SIZES
        for error in ("right", "shift .4")
        for seed in range(2)
        for one in [study.simulated("tune", "uniform", error, n, seed)]
    ]
    found = pd.DataFrame(rows)
    for rule in study.RULES.values():
        share = rule(found)
        assert ((share >= 0) & (share <= 1)).all()
    text = study.share_figures(found)
    assert all(f"| {name} |" in text for name in study.RULES)


def test_samples_are_right_or_wrong_as_they_say(study):
    for half, kinds in study.DISTRIBUTIONS.items():
        for kind in kinds:
            one = study.simulated(half, kind, "right", 5000, 0)
            assert one.truth == pytest.approx(one.new)
            expected = np.sqrt((one.scores * (1 - one.scores)).sum())
            assert abs(one.y.sum() - one.scores.sum()) < 4.5 * expected
            for error in study.ERRORS[half]:
                wrong = study.simulated(half, kind, error, 200, 0)
                assert np.abs(wrong.truth - wrong.new).max() > 0.01
    assert not set(study.DISTRIBUTIONS["tune"]) & set(study.DISTRIBUTIONS["judge"])
    assert not set(study.ERRORS["tune"]) & set(study.ERRORS["judge"])


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_losses_behind_a_gate(study, toy):
    always = study.passed(toy, "never (BLS always)")
    assert always == pytest.approx(toy["loss BLS"])
    certain = toy.assign(certain=1.0)
    assert study.passed(certain, study.GATE_TAKEN) == pytest.approx(toy["loss BLS"])
    text = study.figures(toy)
    assert all(f"| {gate} |" in text for gate in study.GATES)


def test_the_pages_quote_what_the_study_says(root, study):
    result = (root / "experiments" / "results" / "gates.md").read_text(encoding="utf-8")
    judged = result.partition("## The half *judge*")[2]
    line = next(line for line in judged.splitlines() if study.GATE_TAKEN in line)
    always = next(line for line in judged.splitlines() if "BLS always" in line)
    page = (root / "docs" / "understand" / "methods" / "bls.md").read_text(encoding="utf-8")
    gate = page.partition("**The default is BLS beside")[2].partition("What mattered")[0]
    for row, loss in (("mean log loss", r"0(\.\d{4}), "), ("made worse", r"([\d.]+ %)")):
        shown = next(text for text in gate.splitlines() if text.startswith(f"| {row}"))
        for size in (-2, -3):
            cells = [one.split("|")[size] for one in (always, line)]
            for cell in cells:
                assert re.search(loss, cell)[1] in shown
    losses = [one.split("|")[3].strip() for one in (line, always)]
    assert f"loses {float(losses[0]):.0f} · 10⁻⁴" in gate
    assert f"BLS loses {float(losses[1]):.0f} · 10⁻⁴" in gate
