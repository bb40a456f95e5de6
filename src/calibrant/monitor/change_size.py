"""How large a change is, and what each remedy would gain."""

from __future__ import annotations

import math

import numpy as np

from calibrant.arrays import Array
from calibrant.losses import sigmoid
from calibrant.monitor.change_models import (
    ChangeFit,
    ComparedCells,
    Outcome,
    fit,
    information_of,
)
from calibrant.monitor.drift_value import Remedy

#: the remedies, each with one step more than the one before
NAMES = ("none", "intercept", "refit", "new map")


def reference_curve(cells: ComparedCells, model: ChangeFit) -> Array:
    """The logit of the reference in every cell, by the model with all terms."""
    return np.asarray(cells.offset + model.theta[: len(cells.curve)] @ cells.curve)


def expected_rate(cells: ComparedCells, reference: Array) -> float:
    """The share of positives in the new table, had nothing changed."""
    weight = cells.weight * cells.new
    return float(weight @ sigmoid(reference)) / float(weight.sum())


def remedies_of(
    cells: ComparedCells, reference: Array, steps: list[Array], outcomes: list[Outcome]
) -> tuple[Remedy, ...]:
    """What each remedy saves and leaves. Each is fitted to the new table, from the reference on.

    What it saves is the fall of the mean log loss. Fitting to these rows makes that look better
    than it will be on others, by tr J⁻¹V in all. This is taken off. What it leaves is the root mean
    square distance from the model with all terms, without what chance adds to it.
    """
    alone = cells.only_new(reference)
    columns = np.concatenate([step[:, cells.new > 0.0] for step in steps[: len(outcomes)]])
    sizes = [0, *np.cumsum([len(step) for step in steps[: len(outcomes)]]).tolist()]
    fits = [fit(alone, columns[:size]) for size in sizes]
    total, best = float(alone.weight.sum()), outcomes[-1].covariance
    found = []
    for name, size, here, outcome in zip(NAMES, sizes, fits, [None, *outcomes], strict=False):
        known = np.zeros_like(best)
        if outcome is not None:
            known[:size, :size] = outcome.covariance
        saved = fits[0].loss - here.loss - _optimism(alone, columns[:size], here)
        left = _distance(alone, columns, (here.p, fits[-1].p), best - known)
        found.append(Remedy(name, saved / total, left if here is not fits[-1] else 0.0))
    return tuple(found)


def _optimism(cells: ComparedCells, columns: Array, here: ChangeFit) -> float:
    """tr J⁻¹V. Where all rows have the same weight, this is the number of parameters."""
    information = information_of(cells, columns, here.p)
    variance = (columns * cells.variance(here.p)) @ columns.T
    return float(np.trace(np.linalg.solve(information, variance)))


def _distance(
    cells: ComparedCells, columns: Array, pair: tuple[Array, Array], covariance: Array
) -> float:
    """The root mean square of a difference of probabilities, without what chance adds."""
    weight, p = cells.weight, pair[1]
    spread = np.einsum("ij,ik,kj->j", columns, covariance, columns) * (p * (1.0 - p)) ** 2
    square = float(weight @ ((pair[1] - pair[0]) ** 2 - spread)) / float(weight.sum())
    return math.sqrt(max(square, 0.0))
