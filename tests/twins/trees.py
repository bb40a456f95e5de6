"""Rounds of trees, row by row: slow and obvious. It reads the JSON that `save` writes."""

from __future__ import annotations

import math
from typing import Any


def leaf_of(trees: dict[str, Any], root: int, row: list[float]) -> float:
    """The value of the leaf that a row reaches."""
    node = root
    while node >= 0:
        x, subset = row[trees["column"][node]], trees["subset"][node]
        if subset >= 0:
            left = not math.isnan(x) and int(x) in trees["sets"][subset]
        elif math.isnan(x):
            left = trees["missing_left"][node] == 1
        else:
            left = x <= trees["threshold"][node]
        node = trees["left" if left else "right"][node]
    return trees["leaves"][-1 - node]


def logit_of(state: dict[str, Any], row: list[float], z: float) -> float:
    """The logit after all rounds; a row holds numbers and category codes, NaN for missing."""
    trees, first = state["trees"], 0
    for size, factor in zip(state["sizes"], state["factors"], strict=True):
        total = 0.0
        for root in trees["roots"][first : first + size]:
            total += leaf_of(trees, root, [*row, z])
        z, first = factor * (z + total), first + size
    return z
