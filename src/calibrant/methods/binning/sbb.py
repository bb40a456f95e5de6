"""Selection over Bayesian binnings: the best of all partitions of the scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import WEIGHTS, Calibrator
from calibrant.fitting.limits import Limit, Number, OneOf
from calibrant.methods.binning._kernel import best_binning, choose_lambda, log_factorials, unit_gaps
from calibrant.rules.base import Map
from calibrant.rules.mixture import Mixture
from calibrant.rules.piecewise import Piecewise


class Binning(NamedTuple):
    """The bins of a binning: bin j is [edges[j], edges[j+1]), with its counts and its value."""

    edges: Array
    negative: Array
    positive: Array
    value: Array


class SBB(Calibrator):
    """The binning of highest posterior probability among all 2^(D−1), found exactly for each λ.

    Parameters
    ----------
    lambda_ : float, "empirical" or "average", default="average"
        λ, the expected number of bin boundaries between the lowest and the highest score; a number
        gives one binning, as in the paper. ``"empirical"`` takes the λ of the largest evidence
        (summed over all binnings). ``"average"`` averages the best binnings of a grid of λ,
        weighted by evidence, which beats any single λ out of sample.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    bins_ : Binning
        Edges, counts and values of the bins (of the heaviest λ for ``"average"``). The outer edges
        are the lowest and the highest score.
    log_score_ : float
        ln of the score of that binning (eq. 2.7).
    lambdas_, lambda_weights_ : ndarrays
        The λ used, and their weights.

    Notes
    -----
    A boundary lies between x_k and x_{k+1} with probability 1 − exp(−λ(x_{k+1}−x_k)/(x_D−x_1)), and
    a bin with n₀ negatives and n₁ positives has the marginal likelihood n₀!n₁!/(n+1)! (with Γ for
    weights that are not whole) [1]_. The bin's value is (n₁+1)/(n+2), so 0 and 1 are never
    returned. Cuts lie halfway between scores; ties are never split. Weights count in units of rows.

    The dynamic programme of the paper is O(D²); branch and bound finds the same optimum in time
    close to O(D log D), O(D) memory.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, "Binary classifier calibration using a
       Bayesian non-parametric approach", 2015, doi:10.1137/1.9781611974010.24.

    Examples
    --------
    >>> s = [0.1, 0.15, 0.2, 0.25, 0.3, 0.6, 0.7, 0.75, 0.8, 0.9]
    >>> c = SBB(lambda_=2).fit(s, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    >>> c.bins_.edges.round(3).tolist(), c.bins_.value.round(3).tolist()
    ([0.1, 0.45, 0.9], [0.143, 0.857])
    """

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "lambda_": (Number(0, open=True), OneOf(("empirical", "average"))),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        lambda_: float | str = "average",
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.lambda_ = lambda_
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        gaps = unit_gaps(table.scores)
        small = table.pool(2000)  # the evidence of λ hardly depends on the exact scores
        self.lambdas_, self.lambda_weights_ = choose_lambda(
            self.lambda_, small.scores, small.negative, small.positive
        )
        found = [_best(table, gaps * value) for value in self.lambdas_]
        heaviest = int(np.argmax(self.lambda_weights_))
        self.bins_, self.log_score_ = found[heaviest]
        maps = tuple(Piecewise.step(bins.edges[1:-1], bins.value) for bins, _ in found)
        return maps[0] if len(maps) == 1 else Mixture(self.lambda_weights_, maps).collapse()


def _best(table: ScoreTable, gaps: Array) -> tuple[Binning, float]:
    with np.errstate(divide="ignore"):
        log_cut = np.log(-np.expm1(-gaps))
    lookup = table.is_whole and table.total < 1e6 + 20 * len(table)
    factorials = log_factorials(table.total) if lookup else np.empty(0)
    starts, score = best_binning(table.negative, table.positive, gaps, log_cut, factorials)
    n0, n1 = np.add.reduceat(table.negative, starts), np.add.reduceat(table.positive, starts)
    cuts = table.cuts(starts[1:] - 1)
    edges = np.concatenate((table.scores[:1], cuts, table.scores[-1:]))
    return Binning(edges, n0, n1, (n1 + 1.0) / (n0 + n1 + 2.0)), float(score)
