"""Do the methods differ at all? Friedman's test and its improvement by Iman and Davenport."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import chdtrc, fdtrc

from calibrant.compare.ranks import Ranks, ranks_of
from calibrant.compare.result_base import Result
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_flag


@dataclass(frozen=True, repr=False)
class FriedmanResult(Result):
    """The result of `friedman`.

    Attributes
    ----------
    statistic : float
        Friedman's χ².
    p_value : float
        The chance of at least this χ² if all methods are alike.
    df : int
        Degrees of freedom of χ²: k − 1.
    f_statistic : float
        F_F of Iman and Davenport; infinite where all datasets rank the methods alike.
    f_p_value : float
        The chance of at least this F_F if all methods are alike. The one to report.
    f_df : tuple of int
        Degrees of freedom of F_F: k − 1 and (k − 1)(N − 1).
    ranks : Ranks
        The mean ranks.
    correct_ties : bool
        Whether χ² was divided by the correction for ties.
    """

    statistic: float
    p_value: float
    df: int
    f_statistic: float
    f_p_value: float
    f_df: tuple[int, int]
    ranks: Ranks
    correct_ties: bool


def friedman(
    scores: Any, *, larger_is_better: bool, names: Any = None, correct_ties: bool = False
) -> FriedmanResult:
    """Whether any method is ranked differently from the others, over all datasets.

    A small p-value: the methods are not all alike. Which ones differ, `holm`, `nemenyi` and
    `wilcoxon_pairs` say.

    Parameters
    ----------
    scores, larger_is_better, names
        As in `average_ranks`; or `Ranks` in place of scores.
    correct_ties : bool, default=False
        Divide χ² by 1 − Σ(t³ − t)/(Nk(k² − 1)), t the sizes of the groups of equal scores within a
        dataset, as ``scipy.stats.friedmanchisquare`` does. Without it ties make the test cautious.

    Returns
    -------
    FriedmanResult

    Notes
    -----
    With N datasets, k methods and mean ranks R_j:
    χ² = 12N/(k(k + 1))·[Σ R_j² − k(k + 1)²/4], about χ² distributed with k − 1 degrees of freedom,
    but too cautious [2]_. Better is F_F = (N − 1)χ²/(N(k − 1) − χ²), about F distributed with k − 1
    and (k − 1)(N − 1). With ``correct_ties=True`` it is the F of an analysis of variance of the
    ranks. If all scores of every dataset are equal, χ² = F_F = 0 and both p-values are 1. If all
    datasets rank the methods alike, F_F is infinite; its p-value is never below k!^(1 − N), the
    chance of just that, which keeps two or three datasets from proving anything. Ties share ranks.
    O(Nk²). There are no weights.

    References
    ----------
    .. [1] M. Friedman, "The use of ranks to avoid the assumption of normality implicit in the
       analysis of variance", 1937, doi:10.1080/01621459.1937.10503522.
    .. [2] R. Iman, J. Davenport, "Approximations of the critical region of the Friedman
       statistic", 1980, doi:10.1080/03610928008827904.

    Examples
    --------
    >>> loss = [[0.3, 0.2, 0.1], [0.5, 0.4, 0.6], [0.9, 0.7, 0.5], [0.8, 0.6, 0.7]]
    >>> result = friedman(loss, larger_is_better=False)
    >>> round(result.statistic, 3), round(result.f_statistic, 3), round(result.f_p_value, 3)
    (3.5, 2.333, 0.178)
    """
    corrected = check_flag("correct_ties", correct_ties)
    ranks = ranks_of(scores, larger_is_better, names)
    n, k = ranks.datasets, len(ranks)
    # everything times Nk(k + 1): rank sums are halves, so that all is exact
    spread = 12.0 * sum((_rank_sum(mean, n) - n * (k + 1) / 2.0) ** 2 for mean in ranks.mean)
    most = float(n * n * k * (k * k - 1))
    if corrected:
        if ranks.tied is None:
            raise InputError(
                "correct_ties needs the sizes of the ties, but Ranks came without them. Pass the "
                "scores, or correct_ties=False."
            )
        most -= n * ranks.tied
    shares = most / (n * (k - 1.0))
    chi2 = spread / shares if shares > 0.0 else 0.0
    f = _ratio((n - 1.0) * spread, most - spread)
    f_df = (k - 1, (k - 1) * (n - 1))
    alike = math.exp((1 - n) * math.lgamma(k + 1))
    f_p = alike if math.isinf(f) else max(alike, float(fdtrc(*f_df, f)))
    return FriedmanResult(chi2, float(chdtrc(k - 1, chi2)), k - 1, f, f_p, f_df, ranks, corrected)


def _rank_sum(mean: float, n: int) -> float:
    """N times the mean: a half of a whole number, unless the mean was rounded."""
    total = mean * n
    half = round(2.0 * total) / 2.0
    return half if abs(total - half) < 1e-9 * n else total


def _ratio(above: float, below: float) -> float:
    if above == 0.0:
        return 0.0
    return above / below if below > 0.0 else math.inf
