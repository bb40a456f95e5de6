"""Table 1 (a) and (b): two problems that no line separates, with a logistic regression as model.

Its scores are useless as a ranking, but the positives sit where the scores are extreme (or in the
middle), so a calibrator that may go up and down recovers most of what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from experiments.papers.cells import Cell
from experiments.papers.naeini2015.methods import (
    Array,
    Labels,
    Rows,
    by_intervals,
    calibrated,
    row,
)

ROWS = 600
#: how far from a diagonal (degrees) the fitted direction may be for an XOR draw to count as near
NEAR = 15.0
QUICK, FULL = 40, 200
DIRECTION = "off diagonal"


def xor(rows: int, rng: np.random.Generator) -> tuple[Array, Labels]:
    """Gaussian blobs of sd ½ around (±1, ±1); positive where the signs differ."""
    sign = rng.choice([-1.0, 1.0], size=(rows, 2))
    return sign + 0.5 * rng.standard_normal((rows, 2)), (sign[:, 0] != sign[:, 1]).astype(np.intp)


def circular(rows: int, rng: np.random.Generator) -> tuple[Array, Labels]:
    """A disc of radius 2 (negative) in a ring up to 4 (positive), uniform in radius and angle."""
    y = rng.permutation(np.arange(rows) % 2)
    radius, angle = rng.uniform(0, 2, rows) + 2.0 * y, rng.uniform(0, 2 * np.pi, rows)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y


Problem = Callable[[int, np.random.Generator], tuple[Array, Labels]]
PROBLEMS: dict[str, Problem] = {"XOR": xor, "circular": circular}


class Draw(NamedTuple):
    """Rows to train, to calibrate and to test, and the model of the first."""

    train: Rows
    known: Rows
    test: Rows
    model: LogisticRegression

    def scores(self, part: Rows) -> Array:
        found: Array = self.model.predict_proba(part.X)[:, 1]
        return found


def draw(problem: str, seed: int) -> Draw:
    """600 rows each to train, to calibrate and to test."""
    rng = np.random.default_rng(seed)
    train, known, test = (Rows(*PROBLEMS[problem](ROWS, rng)) for _ in range(3))
    return Draw(train, known, test, LogisticRegression(C=1e6).fit(train.X, train.y))


def from_diagonal(direction: Array) -> float:
    """Degrees between a direction in the plane and the nearer diagonal, 0 to 45."""
    angle = math.degrees(math.atan2(abs(direction[1]), abs(direction[0])))
    return abs(angle - 45.0)


def run(problem: str, seed: int) -> dict[str, float]:
    """One draw of a problem: all measures of all methods."""
    data = draw(problem, seed)
    found = {
        **calibrated(data.scores(data.known), data.known.y, data.scores(data.test)),
        **by_intervals(data.model, data.train, data.known, data.test.X),
    }
    return {DIRECTION: from_diagonal(data.model.coef_[0]), **row(data.test.y, found)}


def run_xor(seed: int) -> dict[str, float]:
    return run("XOR", seed)


def run_circular(seed: int) -> dict[str, float]:
    return run("circular", seed)


def cells(quick: bool) -> list[Cell]:
    return [{"seed": seed} for seed in range(QUICK if quick else FULL)]


def near_diagonal(results: pd.DataFrame) -> pd.DataFrame:
    """The draws whose fitted direction is near a diagonal."""
    return results[results[DIRECTION] <= NEAR] if len(results) else results
