"""What the tests of the studies share: the modules of experiments, and a small dataset."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pandas as pd
import pytest


def experiment(root, name):
    """A module of the folder experiments, which is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root), *sys.path])
        return importlib.import_module(f"experiments.{name}")


def write_toy(folder, seed):
    """A folder with one dataset: 900 rows, a number and a word."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=900)
    frame = pd.DataFrame(
        {
            "z": z.round(3),
            "word": np.where(z + rng.normal(size=900) > 0.5, "b", "a"),
            "label": np.where(rng.random(900) < 1 / (1 + np.exp(-2 * z)), "yes", "no"),
        }
    )
    frame.to_csv(folder / "toy.csv.gz", index=False)
    entry = {
        "name": "toy",
        "file": "toy.csv.gz",
        "rows": 900,
        "n_features": 2,
        "nominal": ["word"],
        "non_feature_columns": [],
        "label_counts": {"no": 450, "yes": 450},
        "tasks": [{"name": "toy", "positive": ["yes"]}],
    }
    (folder / "manifest.json").write_text(json.dumps({"datasets": [entry]}), encoding="utf-8")
