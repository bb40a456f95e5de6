"""ABB as its paper has it: highest scores in place of sums, and results stored in cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.kernels.paper_variants.highest_scores import average_of_maxima
from calibrant.maps import Piecewise


def average_by_highest_scores(
    table: ScoreTable, gaps: Iterable[Array], weights: Array
) -> Piecewise:
    """Eq. 2.9 with the highest scores of sub-binnings in place of their sums. O(D²) for each λ.

    ``gaps`` are the expected boundaries between neighbouring scores for each λ, and ``weights`` are
    the weights of the λ.
    """
    parts = [average_of_maxima(table.negative, table.positive, gap) for gap in gaps]
    value = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    return Piecewise.linear(table.scores, np.clip(value, 0.0, 1.0))


def stored_in_cells(point: Piecewise, scores: Array, cells: int) -> tuple[Piecewise, float]:
    """The values of a map in the middle of equal-width cells (§2.4), and the largest error that
    this makes at the scores.

    The cells divide [0, 1], or the range of the scores where these leave it.
    """
    low, high = 0.0, 1.0
    if scores[0] < 0.0 or scores[-1] > 1.0:
        low, high = float(scores[0]), float(scores[-1])
    if low == high:
        return point, 0.0
    shares = np.arange(cells + 1) / cells
    edges = np.unique(low * (1.0 - shares) + high * shares)  # cells may be finer than floats
    step = Piecewise.step(edges[1:-1], point(edges[1:] / 2 + edges[:-1] / 2))
    return step, float(np.abs(step(scores) - point(scores)).max())
