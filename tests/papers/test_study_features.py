"""The study of calibrators that look at columns: its page, and what the documentation quotes."""

from __future__ import annotations

import importlib
import re

import pandas as pd
import pytest


@pytest.fixture(scope="module")
def study(root):
    pytest.importorskip("lightgbm")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        yield importlib.import_module("experiments.features")


@pytest.fixture(scope="module")
def results(root):
    return pd.read_csv(root / "experiments" / "results" / "features_cases.csv")


def test_the_page_is_made_of_the_kept_cases(root, study, results):
    page = (root / "experiments" / "results" / "features.md").read_text(encoding="utf-8")
    assert page.strip() == study.summary(results).strip()
    assert results["task"].nunique() >= 12
    assert set(results["model"]) == set(study.BASES)


def test_the_documentation_quotes_the_page(root, results):
    text = (root / "docs" / "howto" / "feature_calibration.md").read_text(encoding="utf-8")
    means = results.groupby("method")["log loss"].mean()
    by_model = results.groupby(["method", "model"])["log loss"].mean()
    quoted = {
        "BLS": "`BLS`",
        "MCGrad": "MCGrad",
        "SimilarityBinning": "`SimilarityBinning(gate=False)`",
        "FeatureCalibrator": "**`FeatureCalibrator`**",
    }
    for method, title in quoted.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"| {title} |"))
        cells = [float(re.sub(r"[*%]", "", cell)) for cell in line.split("|")[2:7]]
        wanted = [means[method]]
        wanted += [
            by_model[method, model]
            for model in ("weak", "strong", "overconfident", "fewer columns")
        ]
        assert cells == pytest.approx(wanted, abs=0.00051)


def test_a_case_is_played_by_every_method(study):
    import numpy as np

    rng = np.random.default_rng(0)
    columns = pd.DataFrame({"x": rng.normal(size=900), "kind": rng.choice(list("abc"), 900)})
    p = rng.random(900)
    y = (rng.random(900) < p).astype(int)
    known = study.Rows(p[:600], columns[:600].reset_index(drop=True), y[:600])
    new = study.Rows(p[600:], columns[600:].reset_index(drop=True), y[600:])
    names = [name for name in study.METHODS if name != "MCGrad"]
    rows = study.compare(known, new, names)
    assert [row["method"] for row in rows] == names
    assert not any(row["failed"] for row in rows)
