"""The benchmarks are run by hand; here they are only looked at."""

from __future__ import annotations

import importlib
import sys


def test_every_measurement_can_be_imported_and_is_listed(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root))
    try:
        main = importlib.import_module("benchmarks.__main__")
        names = {path.stem for path in (root / "benchmarks").glob("*.py")}
        for name in names:
            if name != "__main__":
                importlib.import_module(f"benchmarks.{name}")
        listed = {run.__module__.removeprefix("benchmarks.") for run in main.MEASUREMENTS.values()}
        measuring = {
            name for name in names if hasattr(sys.modules.get(f"benchmarks.{name}"), "run")
        }
        assert measuring == listed
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
            del sys.modules[name]
