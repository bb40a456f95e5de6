"""Wilcoxon's signed-rank test of two methods over datasets, exact for up to 100 datasets."""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.compare.method_scores import read_pair, read_scores
from calibrant.compare.result_base import Result, Tabular, percent
from calibrant.data.validation import check_word
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_flag, check_number
from calibrant.metrics.multiplicity import holm_adjusted

#: up to this many differences the p-value is exact
EXACT = 100
#: what ``zeros=`` may say
ZEROS = ("drop", "pratt", "split")
#: differences count as equal within this many roundings of the figures they come from
ROUNDINGS = 4.0


@dataclass(frozen=True, repr=False)
class WilcoxonResult(Result):
    """The result of `wilcoxon`.

    Attributes
    ----------
    median_difference : float
        Median of a − b over all datasets, those without a difference among them.
    p_value : float
        Two-sided: the chance of at least so uneven a pair of rank sums if a and b are alike.
    statistic : float
        The smaller of the two rank sums.
    plus, minus : float
        Sums of the ranks of the datasets where a is larger, and where b is.
    n : int
        Datasets with a difference.
    zeros : int
        Datasets without one.
    exact : bool
        Whether the p-value is exact, rather than from the normal distribution.
    """

    median_difference: float
    p_value: float
    statistic: float
    plus: float
    minus: float
    n: int
    zeros: int
    exact: bool


@dataclass(frozen=True, repr=False)
class WilcoxonPair(Result):
    """Two methods in `WilcoxonPairs`.

    Attributes
    ----------
    first, second : str
    median_difference : float
        Median of first − second.
    p_value, adjusted : float
        Alone, and after Holm's step-down over all pairs.
    better : str or None
        The better of the two, where the adjusted p-value is at most the level.
    """

    first: str
    second: str
    median_difference: float
    p_value: float
    adjusted: float
    better: str | None


@dataclass(frozen=True, repr=False)
class WilcoxonPairs(Tabular):
    """The result of `wilcoxon_pairs`; prints as a table.

    Attributes
    ----------
    pairs : tuple of WilcoxonPair
        In the order of the columns.
    level : float
    datasets : int
    larger_is_better : bool
    """

    pairs: tuple[WilcoxonPair, ...]
    level: float
    datasets: int
    larger_is_better: bool

    def _head(self) -> tuple[str, ...]:
        return ("first", "second", "median difference", "p", "Holm's p", "better")

    def _rows(self) -> list[tuple[Any, ...]]:
        return [astuple(pair) for pair in self.pairs]

    def _below(self) -> list[str]:
        better = "larger" if self.larger_is_better else "smaller"
        return [
            f"{self.datasets} datasets, {better} is better; Wilcoxon's signed ranks, "
            f"Holm over {len(self.pairs)} pair{'s' * (len(self.pairs) != 1)} at "
            f"{percent(self.level)}"
        ]


def wilcoxon(a: Any, b: Any, *, zeros: str = "drop") -> WilcoxonResult:
    """The median difference of two methods over datasets, and whether it is more than chance.

    Parameters
    ----------
    a, b : array-like of shape (datasets,)
        The same measure of two methods on the same datasets.
    zeros : {"drop", "pratt", "split"}, default="drop"
        What becomes of datasets without a difference: they are left out before ranking; or ranked
        and then left out; or ranked, and half of their ranks given to either side.

    Returns
    -------
    WilcoxonResult

    Notes
    -----
    The |aᵢ − bᵢ| are ranked, ties sharing the mean of their ranks; plus and minus are the sums of
    the ranks of either sign. If a and b are alike, each rank r has either sign with chance ½: the
    p-value is exact under that, given the ranks, ties or not, with at most 100 differences, and
    beyond that from the normal distribution with variance Σr²/4, without a correction for
    continuity. ``"pratt"`` and ``"split"`` have the same p-value; only the sums differ. Without
    any difference it is 1. Differences count as equal (or zero) within a few roundings of a and b,
    so that 0.8 − 0.7 ties with 0.3 − 0.2. The test assumes that the differences are symmetric about
    their median and comparable between datasets. O(n log n), and O(n³) for the exact p-value. There
    are no weights.

    References
    ----------
    .. [1] F. Wilcoxon, "Individual comparisons by ranking methods", 1945, doi:10.2307/3001968.
    .. [2] J. Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", 1959,
       doi:10.1080/01621459.1959.10501526.

    Examples
    --------
    >>> a, b = [0.80, 0.75, 0.93, 0.62, 0.71, 0.88], [0.78, 0.70, 0.90, 0.63, 0.71, 0.80]
    >>> result = wilcoxon(a, b)
    >>> result.plus, result.minus, result.zeros, result.p_value
    (14.0, 1.0, 1, 0.125)
    >>> round(result.median_difference, 4)
    0.025
    """
    check_word("zeros", zeros, ZEROS)
    first, second = read_pair(a, b, ("a", "b"))
    if len(first) < 2:
        raise InputError(f"at least 2 datasets must come, but {len(first)} came.")
    return _signed_ranks(first, second, zeros)


def _signed_ranks(first: Array, second: Array, zeros: str) -> WilcoxonResult:
    with np.errstate(over="ignore"):  # an infinite difference is ranked last
        difference = first - second
    noise = ROUNDINGS * np.finfo(float).eps * np.maximum(np.abs(first), np.abs(second))
    some = np.abs(difference) > noise
    size = np.where(some, np.abs(difference), 0.0)
    ranked = some if zeros == "drop" else np.ones(len(some), dtype=bool)
    all_ranks, known = _ranks(size[ranked], noise[ranked]), some[ranked]
    ranks, more = all_ranks[known], difference[some] > 0.0
    plus, minus = float(ranks[more].sum()), float(ranks[~more].sum())
    exact = len(ranks) <= EXACT
    p = (_exact if exact else _normal)(ranks, min(plus, minus))
    if zeros == "split":
        half = float(all_ranks[~known].sum()) / 2.0
        plus, minus = plus + half, minus + half
    n, median = int(some.sum()), float(np.median(difference))
    return WilcoxonResult(median, p, min(plus, minus), plus, minus, n, len(some) - n, exact)


def _ranks(size: Array, noise: Array) -> Array:
    """Ranks from 1; sizes within their noise of the next are equal and share a mean rank."""
    order = np.argsort(size, kind="stable")
    near, known = size[order], noise[order]
    new = np.ones(len(size), dtype=bool)
    new[1:] = np.diff(near) > known[1:] + known[:-1]
    new[1:] |= (near[:-1] == 0.0) & (near[1:] > 0.0)  # zeros keep to themselves
    group = np.cumsum(new) - 1
    place = np.arange(1.0, len(size) + 1.0)
    shared = np.bincount(group, place) / np.bincount(group) if len(size) else place
    ranks = np.empty(len(size))
    ranks[order] = shared[group] if len(size) else place
    return ranks


def _exact(ranks: Array, smaller: float) -> float:
    """Twice the chance of a rank sum of at most the smaller one, over all signs."""
    steps = np.rint(2.0 * ranks).astype(int)  # ranks are halves
    chance = np.zeros(int(steps.sum()) + 1)
    chance[0] = 1.0
    for step in steps:
        chance *= 0.5
        chance[step:] += chance[:-step].copy()
    return min(1.0, 2.0 * float(chance[: round(2.0 * smaller) + 1].sum()))


def _normal(ranks: Array, smaller: float) -> float:
    z = (smaller - float(ranks.sum()) / 2.0) / (float(np.linalg.norm(ranks)) / 2.0)
    return min(1.0, math.erfc(abs(z) / math.sqrt(2.0)))


def wilcoxon_pairs(
    scores: Any,
    *,
    larger_is_better: bool,
    level: float = 0.05,
    zeros: str = "drop",
    names: Any = None,
) -> WilcoxonPairs:
    """Wilcoxon's signed ranks for every pair of methods, at a level that holds for all of them.

    Unlike mean ranks, a pair's verdict does not depend on which other methods were compared, but
    for Holm's step-down over the number of pairs.

    Parameters
    ----------
    scores, larger_is_better, names
        As in `average_ranks`; infinite scores are refused here, as their differences say nothing.
    level : float, default=0.05
        The chance that any of the verdicts is wrong if all methods are alike.
    zeros : {"drop", "pratt", "split"}, default="drop"
        As in `wilcoxon`.

    Returns
    -------
    WilcoxonPairs

    Notes
    -----
    k(k − 1)/2 tests as in `wilcoxon`, and Holm's step-down over their p-values as in `holm`. The
    better of a pair is the one with the larger rank sum on its side. O(k²·N³) with at most 100
    datasets, O(k²·N log N) beyond. Ties share ranks; there are no weights.

    References
    ----------
    .. [1] A. Benavoli, G. Corani, F. Mangili, "Should we really use post-hoc tests based on
       mean-ranks?", Journal of Machine Learning Research 17, 2016.

    Examples
    --------
    >>> auc = {"tree": [0.80, 0.71, 0.90, 0.66, 0.75, 0.81], "forest": [0.85] * 3 + [0.9] * 3}
    >>> print(wilcoxon_pairs(auc, larger_is_better=True))
    first  second  median difference      p  Holm's p     better
    ─────  ──────  ─────────────────  ─────  ────────  ─────────
    tree   forest            −0.1150  0.094     0.094  not shown
    6 datasets, larger is better; Wilcoxon's signed ranks, Holm over 1 pair at 5 %
    """
    larger = check_flag("larger_is_better", larger_is_better)
    level = check_number("level", level, 0.0, 1.0)
    check_word("zeros", zeros, ZEROS)
    values, called = read_scores(scores, names, finite=True)
    both = list(itertools.combinations(range(len(called)), 2))
    results = [_signed_ranks(values[:, i], values[:, j], zeros) for i, j in both]
    adjusted = holm_adjusted([result.p_value for result in results])
    pairs = []
    for (i, j), result, p in zip(both, results, adjusted, strict=True):
        ahead = called[i] if (result.plus > result.minus) == larger else called[j]
        better = ahead if p <= level and result.plus != result.minus else None
        median = result.median_difference
        pairs.append(WilcoxonPair(called[i], called[j], median, result.p_value, p, better))
    return WilcoxonPairs(tuple(pairs), level, len(values), larger)
