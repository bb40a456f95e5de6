"""The cells of a table as tests of calibration read them: what a weight means to their variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_word

__all__ = ["NOT_WHOLE", "WEIGHTS", "WeightedCells", "cells_of", "impossible"]

Array = NDArray[np.float64]

NOT_WHOLE = (
    'weights="counts" reads weights as numbers of rows, but they are not whole. Pass '
    'weights="importance" if each row was seen once and its weight says how much it matters.'
)


class WeightedCells(NamedTuple):
    """Per distinct prediction: p, Σw, Σwy, and the Σw² of its rows as the weights mean it."""

    p: Array
    weight: Array
    positive: Array
    square: Array

    @property
    def residual(self) -> Array:
        """Σ w(y − p); the smaller of the two expectations is the more precise."""
        negative = self.weight - self.positive
        return np.where(
            self.p < 0.5,
            self.positive - self.weight * self.p,
            self.weight * (1.0 - self.p) - negative,
        )

    def deviation(self, tilt: Array | float = 1.0) -> float:
        """√Σ tilt² p(1 − p)Σw²: the standard deviation of Σ tilt·wy if the predictions are right.

        Roots come first: 10⁻³⁰⁰ squared is 0.
        """
        each = np.sqrt(self.square) * np.sqrt(self.p) * np.sqrt(1.0 - self.p) * np.abs(tilt)
        largest = float(each.max())
        return largest * float(np.linalg.norm(each / largest)) if largest > 0.0 else 0.0


def cells_of(table: ScoreTable, weights: str) -> WeightedCells:
    """The cells of a table, with weights that count rows, or that say how much a row matters."""
    check_word("weights", weights, WEIGHTS)
    return WEIGHTS[weights](table)


def _counts(table: ScoreTable) -> WeightedCells:
    if not table.is_whole:
        raise InputError(NOT_WHOLE)
    return WeightedCells(table.scores, table.weight, table.positive, table.weight)


def _importance(table: ScoreTable) -> WeightedCells:
    """Scaled by a power of two, so that no product of weights leaves the range of floats."""
    power = -int(np.frexp(table.weight.max())[1])
    weight = np.ldexp(table.weight, power)
    square = np.ldexp(table.negative_sq + table.positive_sq, 2 * power)
    return WeightedCells(
        table.scores,
        weight,
        np.ldexp(table.positive, power),
        np.where(square > 0.0, np.minimum(square, weight**2), weight**2),  # 1e-200² is 0
    )


#: what ``weights=`` may say
WEIGHTS: dict[str, Callable[[ScoreTable], WeightedCells]] = {
    "counts": _counts,
    "importance": _importance,
}


def impossible(cells: WeightedCells) -> bool:
    """Whether something happened that had been given probability 0."""
    never, always = cells.p == 0.0, cells.p == 1.0
    return bool(cells.positive[never].any() or (cells.weight > cells.positive)[always].any())
