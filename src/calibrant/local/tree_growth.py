"""Rounds of trees: how they are grown, and how many of them help on rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibrant.arrays import Array, Index
from calibrant.kernels.logistic import LogisticProblem, Prior
from calibrant.local.lightgbm_trees import TreeOptions, grow
from calibrant.local.tree_rule import MOST_ROUNDS, STEEPEST
from calibrant.local.trees import SmallTrees, sum_of_leaves
from calibrant.losses import LOG


@dataclass(frozen=True)
class TrainingMatrix:
    """Rows as trees see them (the logit last), 1.0 for the positive class, and weights."""

    matrix: Array
    positive: Array
    weight: Array
    nominal: list[int]

    def take(self, rows: Index) -> TrainingMatrix:
        """Some of the rows, as a copy."""
        return TrainingMatrix(
            np.asfortranarray(self.matrix[rows]),
            self.positive[rows],
            self.weight[rows],
            self.nominal,
        )


@dataclass
class Growth:
    """Rounds of trees grown on some rows, and applied to the rows ``held``, if there are any."""

    rows: TrainingMatrix
    options: TreeOptions
    held: Array | None = None
    rounds: list[SmallTrees] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gains = np.zeros(self.rows.matrix.shape[1])

    def go_on(self) -> bool:
        """Grow one more round; False, with nothing changed, if no tree finds anything to split."""
        rows = self.rows
        grown = grow(rows.matrix, rows.positive, rows.weight, rows.nominal, self.options)
        if not len(grown.trees):
            return False
        z = rows.matrix[:, -1] + sum_of_leaves(grown.trees.layout, rows.matrix)
        factor = best_factor(z, rows.positive, rows.weight)
        rows.matrix[:, -1] = factor * z
        if self.held is not None:
            total = sum_of_leaves(grown.trees.layout, self.held)
            self.held[:, -1] = factor * (self.held[:, -1] + total)
        self.gains += grown.gains
        self.rounds.append(grown.trees)
        self.factors.append(factor)
        return True


def best_factor(z: Array, positive: Array, weight: Array) -> float:
    """The factor on logits z of least log loss, from 0.1 to 10; a weak prior draws it to 1."""
    one = np.ones(1)
    n1 = weight * positive
    problem = LogisticProblem(lambda part: z[None, part], weight - n1, n1, Prior(one, one))
    found = float(problem.least(one).theta[0])
    return min(max(found, 1.0 / STEEPEST), STEEPEST)


@dataclass(frozen=True)
class HeldOutRounds:
    """The logits of rows held out after 0, 1, 2 … rounds, and which number of rounds is best.

    Attributes
    ----------
    losses : tuple of float
        The mean log loss after 0, 1, 2 … rounds.
    best : int
        The number of rounds with the least loss, or the number that was asked for.
    logits : array of shape (m,)
        The logit of each row, after the number of rounds that is best for the rows outside its
        part. So the choice does not flatter the result.
    """

    losses: tuple[float, ...]
    best: int
    logits: Array


def rounds_held_out(
    growths: list[Growth],
    positive: Array,
    weight: Array,
    part: Index,
    *,
    rounds: int | None = None,
    patience: int = 1,
) -> HeldOutRounds:
    """Grow rounds on the rows outside each fold until more no longer help on the rows held out.

    ``positive``, ``weight`` and ``part`` are those of the rows held out, fold after fold. If
    ``rounds`` is given, so many are grown, and nothing is chosen.
    """
    history = [_logits(growths)]
    losses = [LOG.value(positive, history[0])]
    means = [float(weight @ losses[0]) / float(weight.sum())]
    most = MOST_ROUNDS if rounds is None else rounds
    while len(history) <= most:
        went_on = [one.go_on() for one in growths]
        if not any(went_on):
            break
        history.append(_logits(growths))
        losses.append(LOG.value(positive, history[-1]))
        means.append(float(weight @ losses[-1]) / float(weight.sum()))
        if rounds is None and len(means) - 1 - int(np.argmin(means)) > patience:
            break
    fixed = None if rounds is None else len(history) - 1
    best = int(np.argmin(means)) if fixed is None else fixed
    logits = np.empty(len(positive))
    for own in np.unique(part):
        inside = part == own
        chosen = best
        if fixed is None and not inside.all():
            chosen = int(np.argmin([weight[~inside] @ loss[~inside] for loss in losses]))
        logits[inside] = history[chosen][inside]
    return HeldOutRounds(tuple(means), best, logits)


def _logits(growths: list[Growth]) -> Array:
    return np.concatenate([one.held[:, -1] for one in growths if one.held is not None])
