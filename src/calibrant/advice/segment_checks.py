"""Segments that stay miscalibrated under a map for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibrant.advice.piece import Advice
from calibrant.array_types import Array, Flags, Index

#: the probability that any segment is named if all are calibrated
ALPHA = 0.01
#: the least error of a segment's mean prediction, as a share of its rate, and its fewest rows
LEAST_SHARE, LEAST_ROWS = 0.1, 20.0
NAMED = 5


def segment_gaps(
    p: Array,
    positive: Flags,
    weight: Array | None,
    names: list[Any],
    code: Index,
) -> Iterator[Advice]:
    """Segments whose share of positives is not what was predicted, by Holm's procedure.

    ``names`` and ``code`` as `read_segments` gives them; z = Σw(y − p) / √Σw²p(1 − p) in each.
    """
    w = np.ones(len(p)) if weight is None else weight
    total, squares, missed, spread, ones, expected = (
        np.bincount(code, values, minlength=len(names))
        for values in (
            w,
            w * w,
            w * (positive - p),
            w * w * p * (1.0 - p),
            w * positive,
            w * p,
        )
    )
    size = total**2 / np.where(squares > 0, squares, 1.0)
    enough = (size >= LEAST_ROWS) & (spread > 0)
    z = np.where(enough, missed / np.sqrt(np.where(enough, spread, 1.0)), 0.0)
    chance = 2.0 * ndtr(-np.abs(z))
    order = np.argsort(chance)
    tests = int(enough.sum())
    found = []
    for rank, i in enumerate(order[:tests]):
        if chance[i] * (tests - rank) > ALPHA:
            break
        if abs(missed[i]) > LEAST_SHARE * max(ones[i], expected[i]):
            found.append(int(i))
    if not found:
        return
    gaps = [
        {
            "name": names[i],
            "predicted": float(expected[i] / total[i]),
            "came": float(ones[i] / total[i]),
            "weight": float(total[i]),
        }
        for i in found
    ]
    shown = "; ".join(
        f"{gap['name']!r}: predicted {gap['predicted']:.3g}, observed {gap['came']:.3g} "
        f"(weight {gap['weight']:.6g})"
        for gap in gaps[:NAMED]
    )
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    yield Advice(
        "segments",
        f"{len(found)} of {len(names)} segments stay miscalibrated under the one map: {shown}"
        f"{more}. Calibrate them by themselves, if each has rows enough.",
        {"segments": gaps},
    )
