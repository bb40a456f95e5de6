"""ENIR as the authors' program computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.kernels.paper_variants.authors_path import authors_models


class AuthorsAverage(NamedTuple):
    """The average at each score, the weight of each λ of the path, and how many models it has."""

    values: Array
    weights: Array
    n_models: int


def authors_average(
    table: ScoreTable, lambdas: Array, weigh: Callable[[Array, Array], Array]
) -> AuthorsAverage:
    """The average over the authors' models of a table of probabilities.

    ``lambdas`` are the breakpoints of the exact path, to which the program's own are rounded.
    ``weigh`` gives the models' weights for their log-likelihoods and numbers of bins.
    """
    found, models = authors_models(table.scores, table.negative, table.positive)
    logs = np.array([model.log_likelihood for model in models])
    weights = weigh(logs, np.array([len(model.starts) for model in models]))
    nearest = np.searchsorted((lambdas[1:] + lambdas[:-1]) / 2.0, found)
    of_path = np.bincount(nearest, weights, minlength=len(lambdas)).astype(np.float64)
    values = np.zeros(len(table))
    for weight, model in zip(weights, models, strict=True):
        values += weight * model.value
    return AuthorsAverage(np.clip(values, 0.0, 1.0), of_path, len(models))
