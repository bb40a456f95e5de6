"""A small reliability diagram made of letters."""

from __future__ import annotations

import math

from calibrant.data.score_kinds import as_probabilities
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.curves import reliability_curve

WIDTH, HEIGHT = 49, 13
#: the curves' letters: before, after, both in one place
BEFORE, AFTER, BOTH = "o", "x", "*"
#: where the axes may end
ENDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def reliability_text(after: ScoreTable, before: ScoreTable | None = None, bins: int = 10) -> str:
    """Mean prediction (across) against fraction of positives (up), in bins of equal mass.

    ``o`` is before, ``x`` after, ``*`` both; the dots are where they should be.

    >>> t = ScoreTable.from_counts([0.1, 0.5, 0.9], [90, 50, 10], [10, 50, 90])
    >>> print(reliability_text(t).splitlines()[0].replace(" ", ""))
    1.0│···
    """
    curves = {AFTER: reliability_curve(after, bins=bins, binning="mass", band=None)}
    before = None if before is None else as_probabilities(before)  # points are none
    if before is not None:
        old = reliability_curve(before, bins=bins, binning="mass", band=None)
        curves = {BEFORE: old, **curves}
    end = _end([*curves.values()])
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for column in range(WIDTH):
        row = round(column / (WIDTH - 1) * (HEIGHT - 1))
        grid[row][column] = "·"
    for letter, curve in curves.items():
        for x, y in zip(curve.mean_p, curve.fraction, strict=True):
            row, column = _place(y, HEIGHT, end), _place(x, WIDTH, end)
            taken = grid[row][column] in curves and grid[row][column] != letter
            grid[row][column] = BOTH if taken else letter
    digits = 1 - math.floor(math.log10(end)) if end < 1 else 1
    marks = {0: 0.0, (HEIGHT - 1) // 2: end / 2, HEIGHT - 1: end}
    wide = max(len(f"{mark:.{digits}f}") for mark in marks.values()) + 1
    lines = [
        f"{_mark(marks, row, digits):>{wide}} │{''.join(grid[row])}".rstrip()
        for row in reversed(range(HEIGHT))
    ]
    lines.append(f"{'':>{wide}} └{'─' * WIDTH}")
    foot = f"{0.0:.{digits}f}".ljust(WIDTH // 2 - 1) + f"{end / 2:.{digits}f}"
    lines.append(f"{'':>{wide}}  {foot.ljust(WIDTH - digits - 2)}{end:.{digits}f}")
    names = (
        f"{BEFORE} before, {AFTER} after, {BOTH} both" if before is not None else f"{AFTER} after"
    )
    lines.append(f"{'':>{wide}}  → predicted   ↑ share of positives   ({names})")
    return "\n".join(lines)


def _end(curves: list[Curve]) -> float:
    """The least end of the axes that leaves nothing outside."""
    largest = max(max(float(c.mean_p.max()), float(c.fraction.max())) for c in curves)
    return min((end for end in ENDS if end >= largest), default=1.0)


def _place(value: float, cells: int, end: float) -> int:
    return min(max(round(float(value) / end * (cells - 1)), 0), cells - 1)


def _mark(marks: dict[int, float], row: int, digits: int) -> str:
    return f"{marks[row]:.{digits}f}" if row in marks else ""
