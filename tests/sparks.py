"""Spark for tests: whether it can run here, and frames of it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

__all__ = ["children", "no_spark", "rows", "to_spark"]


def no_spark() -> str:
    """Why Spark cannot run here; empty if it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "needs pyspark: pip install 'calibrant[test-spark]'"
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home) / "bin" / "java") if home else "java") is None:
        return "needs Java 17 or newer"
    return ""


needs_spark = pytest.mark.skipif(bool(no_spark()), reason=no_spark() or "it is there")


def rows(n: int, seed: int = 0, decimals: int | None = None) -> dict[str, Any]:
    """Scores, labels, weights and segments with a little of everything."""
    rng = np.random.default_rng(seed)
    s = rng.beta(0.7, 2.0, n)
    s = np.clip(s if decimals is None else s.round(decimals), 0.0, 1.0)
    return {
        "s": s,
        "y": (rng.random(n) < s**1.5).astype(np.int64),
        "w": rng.integers(0, 4, n).astype(np.float64),
        "g": np.array(["a", "b", "c", "rare"])[rng.choice(4, n, p=[0.5, 0.3, 0.199, 0.001])],
    }


def to_spark(session: Any, columns: dict[str, Any], parts: int = 3) -> Any:
    """A Spark DataFrame of columns, in a few partitions."""
    arrays = {name: value if isinstance(value, pa.Array) else pa.array(value)
              for name, value in columns.items()}  # fmt: skip
    return session.createDataFrame(pa.table(arrays)).repartition(parts)


def children(pid: int) -> list[int]:
    """All processes below one, as the kernel knows them."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            for child in task.read_text().split():
                found += [int(child), *children(int(child))]
    return found
