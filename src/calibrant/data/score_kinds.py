"""What scores look like: probabilities, percentages, margins, or points of some scale."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.losses import sigmoid

Kind = Literal["probabilities", "percentages", "margins", "points"]

#: scores that are never negative, and whose largest is above the first number and at most the
#: second, look like percentages
PERCENT = (10.0, 100.0)
#: how scores are read as probabilities, in a legend
IN_SHORT = {
    "margins": "through σ",
    "percentages": "divided by 100",
    "points": "one rate for all rows",
}
#: no margin is a log-odds further from 0 than this
FURTHEST = 100.0


def kind_of(table: ScoreTable) -> Kind:
    """What the scores of a table look like, by their smallest and their largest (of a part, by
    those of the whole).

    In [0, 1]: probabilities. From 0 to more than 10 and at most 100: percentages. Further from 0
    than 100: points of some scale, which no formula makes probabilities. All others: margins.

    >>> [kind_of(ScoreTable.from_arrays([low, high], [0, 1]))
    ...  for low, high in ((0.1, 0.9), (0, 97), (-3, 4), (300, 850))]
    ['probabilities', 'percentages', 'margins', 'points']
    """
    if not table:
        return "probabilities"
    return kind_between(*table.ends)


def kind_between(low: float, high: float) -> Kind:
    """What scores look like whose smallest and largest are these."""
    if low >= 0.0 and high <= 1.0:
        return "probabilities"
    if low >= 0.0 and PERCENT[0] < high <= PERCENT[1]:
        return "percentages"
    return "points" if max(-low, high) > FURTHEST else "margins"


def percent_ends(table: ScoreTable) -> tuple[float, float]:
    """The ends that percentages are moved to before they are divided by 100.

    A percentage of 0 or 100 was mostly rounded, and is no certainty: the ends are halfway between 0
    and the smallest score above it, and between 100 and the largest below.

    >>> percent_ends(ScoreTable.from_arrays([0, 1, 97], [0, 1, 1]))
    (0.5, 98.5)
    """
    scores = table.scores
    inside = scores[np.searchsorted(scores, 0.0, "right") : np.searchsorted(scores, 100.0, "left")]
    if not len(inside):
        return 25.0, 75.0
    return 0.5 * float(inside[0]), 50.0 + 0.5 * float(inside[-1])


def probability_of(scores: Array, table: ScoreTable) -> Array:
    """The probability that each score stands for, where scores are read as those of the table:
    percentages are divided by 100, margins pass through the sigmoid. Points stand for none.

    >>> table = ScoreTable.from_arrays([0, 1, 97], [0, 1, 1])
    >>> probability_of(table.scores, table).tolist()
    [0.005, 0.01, 0.97]
    """
    kind = kind_of(table)
    if kind == "points":
        raise ValueError("points stand for no probability")
    if kind == "percentages":
        return np.asarray(np.clip(scores, *percent_ends(table)) / 100.0)
    return sigmoid(scores) if kind == "margins" else scores


def as_probabilities(table: ScoreTable) -> ScoreTable | None:
    """The table of the probabilities that its scores stand for; None where they stand for none."""
    kind = kind_of(table)
    if kind in ("probabilities", "points"):
        return table if kind == "probabilities" else None
    return table.through(lambda scores: probability_of(scores, table))


def reading_between(low: float, high: float) -> str:
    """How scores between these ends are read as probabilities, in words; nothing where they are
    probabilities.

    >>> reading_between(0, 97)
    'go from 0 to 97, look like percentages and were divided by 100'
    """
    ends = f"from {low:.4g} to {high:.4g}"
    return {
        "probabilities": "",
        "percentages": f"go {ends}, look like percentages and were divided by 100",
        "margins": "lie outside [0, 1] and were read as margins, through the sigmoid",
        "points": f"go {ends}: points, not probabilities, so that only their order is judged",
    }[kind_between(low, high)]
