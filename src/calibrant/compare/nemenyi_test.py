"""All pairs of methods by their mean ranks: Nemenyi's test and its critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.compare.ranks import Ranks, rank_error, ranks_of
from calibrant.compare.result_base import Result
from calibrant.metrics.arguments import check_number


@dataclass(frozen=True, repr=False)
class CriticalDifference(Result):
    """The result of `nemenyi`, which `critical_difference_diagram` draws.

    Attributes
    ----------
    names : tuple of str
        The methods, in the order of the columns.
    ranks : tuple of float
        Their mean ranks; 1 is the best.
    critical_difference : float
        Mean ranks that are at least so far apart differ beyond chance.
    q : float
        The quantile of the studentized range, divided by √2.
    level : float
    groups : tuple of tuple of str
        The largest sets of two or more methods of which no two differ, the best first.
    p_values : tuple of tuple of float
        For each pair, adjusted for all of them; 1 along the diagonal.
    datasets : int
    larger_is_better : bool
        Of the scores that were ranked.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    critical_difference: float
    q: float
    level: float
    groups: tuple[tuple[str, ...], ...]
    p_values: tuple[tuple[float, ...], ...]
    datasets: int
    larger_is_better: bool

    def differ(self, first: str, second: str) -> bool:
        """Whether two methods' mean ranks are at least the critical difference apart."""
        rank = dict(zip(self.names, self.ranks, strict=True))
        return abs(rank[first] - rank[second]) >= self.critical_difference

    def spans(self) -> list[tuple[float, float]]:
        """The best and the worst mean rank of each group."""
        rank = dict(zip(self.names, self.ranks, strict=True))
        return [(rank[group[0]], rank[group[-1]]) for group in self.groups]


def nemenyi(
    scores: Any, *, larger_is_better: bool, level: float = 0.05, names: Any = None
) -> CriticalDifference:
    """Which of all pairs of methods differ beyond chance, and which groups do not.

    Parameters
    ----------
    scores, larger_is_better, names
        As in `average_ranks`; or `Ranks` in place of scores.
    level : float, default=0.05
        The chance that any pair is called different if all methods are alike.

    Returns
    -------
    CriticalDifference

    Notes
    -----
    Two methods differ if their mean ranks are at least CD = q·√(k(k + 1)/6N) apart, where q is the
    (1 − level) quantile of the range of k standard normal variables, divided by √2; the p-value of
    a pair is the chance of a range above √2·|R_i − R_j|/√(k(k + 1)/6N). Not to differ is no proof
    of being alike, and it does not carry over: a may not differ from b, nor b from c, while a and c
    do. So groups overlap. The test is cautious, the more so the more methods there are; if the
    question is about one of them, ask `holm`. Ties share ranks. O(Nk²). No weights.

    References
    ----------
    .. [1] P. Nemenyi, "Distribution-free multiple comparisons", PhD thesis, Princeton, 1963.
    .. [2] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> loss = {"a": [0.1, 0.2, 0.1, 0.3] * 3, "b": [0.3, 0.1, 0.2, 0.4] * 3, "c": [0.5] * 12}
    >>> result = nemenyi(loss, larger_is_better=False)
    >>> result.groups, round(result.critical_difference, 3)
    ((('a', 'b'),), 0.957)
    """
    level = check_number("level", level, 0.0, 1.0)
    ranks = ranks_of(scores, larger_is_better, names)
    # scipy.stats takes most of a second to import
    from scipy.stats import studentized_range

    k, error = len(ranks), rank_error(ranks)
    q = float(studentized_range.ppf(1.0 - level, k, np.inf)) / math.sqrt(2.0)
    mean = np.array(ranks.mean)
    apart = np.abs(mean[:, None] - mean[None, :])
    chance = np.clip(studentized_range.sf(math.sqrt(2.0) * apart / error, k, np.inf), 0.0, 1.0)
    chance = np.where(apart == 0.0, 1.0, chance)
    return CriticalDifference(
        ranks.names,
        ranks.mean,
        q * error,
        q,
        level,
        _groups(ranks, q * error),
        tuple(tuple(row) for row in chance.tolist()),
        ranks.datasets,
        bool(larger_is_better),
    )


def _groups(ranks: Ranks, difference: float) -> tuple[tuple[str, ...], ...]:
    """Runs of the ordered ranks that span less than the difference and lie in no longer run."""
    order = ranks.order
    groups, reached = [], 0
    for start, first in enumerate(order):
        end = start + 1
        while end < len(order) and ranks.mean[order[end]] - ranks.mean[first] < difference:
            end += 1
        if end > reached and end - start > 1:
            groups.append(tuple(ranks.names[column] for column in order[start:end]))
        reached = max(reached, end)
    return tuple(groups)


def stacked_levels(spans: Sequence[tuple[float, float]], gap: float) -> list[int]:
    """A level for each span, from 0 on, so that spans on one level are more than a gap apart.

    >>> stacked_levels([(1, 2), (1.5, 3), (2.5, 4)], gap=0.1)
    [0, 1, 0]
    """
    ends: list[float] = []
    levels = []
    for low, high in spans:
        free = [level for level, end in enumerate(ends) if low - end > gap]
        level = free[0] if free else len(ends)
        ends[level : level + 1] = [high]
        levels.append(level)
    return levels
