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


def test_the_pages_quote_what_the_study_says(root):
    result = (root / "experiments" / "results" / "shares.md").read_text(encoding="utf-8")
    halves = re.split("## The half", result)[1:]

    def lost(half, words):
        """What a rule costs right scores, with 50, 200 and 1,000 rows."""
        line = next(line for line in half.splitlines() if words in line)
        return [float(number) for number in line.split("|")[3].split("/")]

    always, taken = ([lost(half, words) for half in halves] for words in ("BLS always", "(taken)"))
    page = (root / "docs" / "understand" / "methods" / "bls.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    assert f"BLS alone loses {always[0][1]:.0f} · 10⁻⁴ in log loss on one half" in text
    assert f"{always[1][1]:.0f} · 10⁻⁴ on the other" in text
    assert {f"{half[2]:.0f}" for half in always} == {"2"}
    assert "and 2 · 10⁻⁴ with 1,000 rows" in text
    low, high = sorted(half[1] for half in taken)
    assert f"The default loses {low:.0f} to {high:.0f} · 10⁻⁴ there" in text
    assert max(half[2] for half in taken) < 1
    rule = (root / "docs" / "understand" / "methods" / "auto.md").read_text(encoding="utf-8")
    assert f"0.000{low:.0f} to 0.000{high:.0f} in log loss with 200 rows" in " ".join(rule.split())
