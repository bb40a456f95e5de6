"""Tests over datasets: Wilcoxon, Friedman, Nemenyi, Holm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc, stdtrit

from calibrant.array_types import Array
from calibrant.compare.scores import (
    Ranks,
    Result,
    Tabular,
    percent,
    place_of,
    rank_error,
    ranks_of,
    read_pair,
    read_scores,
    shown_number,
)
from calibrant.data.door import check_word
from calibrant.errors import InputError
from calibrant.metrics.tables import check_flag, check_number, holm_adjusted

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
    """Wilcoxon's test of two columns."""
    with np.errstate(over="ignore"):  # an infinite difference is ranked last
        difference = first - second
    noise = ROUNDINGS * np.finfo(float).eps * np.maximum(np.abs(first), np.abs(second))
    some = np.abs(difference) > noise
    size = np.where(some, np.abs(difference), 0.0)
    ranked = some if zeros == "drop" else np.ones(len(some), dtype=bool)
    all_ranks, known = _ranks_of_sizes(size[ranked], noise[ranked]), some[ranked]
    ranks, more = all_ranks[known], difference[some] > 0.0
    plus, minus = float(ranks[more].sum()), float(ranks[~more].sum())
    exact = len(ranks) <= EXACT
    p = (_exact_p_value if exact else _normal_p_value)(ranks, min(plus, minus))
    if zeros == "split":
        half = float(all_ranks[~known].sum()) / 2.0
        plus, minus = plus + half, minus + half
    n, median = int(some.sum()), float(np.median(difference))
    return WilcoxonResult(median, p, min(plus, minus), plus, minus, n, len(some) - n, exact)


def _ranks_of_sizes(size: Array, noise: Array) -> Array:
    """The ranks of sizes, from 1; those that are equal up to rounding share a mean rank."""
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


def _exact_p_value(ranks: Array, smaller: float) -> float:
    """The two-sided p-value of a rank sum, over all signs of the ranks."""
    steps = np.rint(2.0 * ranks).astype(int)  # ranks are halves
    chance = np.zeros(int(steps.sum()) + 1)
    chance[0] = 1.0
    for step in steps:
        chance *= 0.5
        chance[step:] += chance[:-step].copy()
    return min(1.0, 2.0 * float(chance[: round(2.0 * smaller) + 1].sum()))


def _normal_p_value(ranks: Array, smaller: float) -> float:
    """The two-sided p-value of a rank sum, by the normal distribution."""
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


# --- How much was gained, relative to a base, with an interval of the mean ------------------------


@dataclass(frozen=True, repr=False)
class RelativeGain(Result):
    """The result of `relative_gain`; all figures are shares of the base: 0.1 is 10 %.

    Attributes
    ----------
    mean, low, high : float
        The mean relative gain and the ends of its interval.
    sd : float
        Standard deviation over the datasets.
    n : int
        Datasets that entered.
    dropped : int
        Datasets left out because the base is 0 there.
    level : float
    """

    mean: float
    low: float
    high: float
    sd: float
    n: int
    dropped: int
    level: float

    def __str__(self) -> str:
        shown = [
            f"{100 * value:+.1f}".replace("-", "−") for value in (self.mean, self.low, self.high)
        ]
        left = f", {self.dropped} with base 0 left out" if self.dropped else ""
        return (
            f"{shown[0]} % ({100 * self.level:g} % interval {shown[1]} to {shown[2]} %), "
            f"{self.n} datasets{left}"
        )


def relative_gain(new: Any, base: Any, *, level: float = 0.95) -> RelativeGain:
    """The mean of (new − base)/base over datasets, with a confidence interval.

    Above 0: the measure grew, which is good or bad as the measure has it. An interval that leaves
    out 0: the change is more than chance.

    Parameters
    ----------
    new, base : array-like of shape (datasets,)
        A measure of a method and of what it is held against, on the same datasets.
    level : float, default=0.95

    Returns
    -------
    RelativeGain

    Raises
    ------
    InputError
        If a base is negative, where a relative gain has no meaning, if fewer than two datasets have
        a base above 0, or if a base is so tiny that its gain is no finite number.

    Notes
    -----
    X = (new − base)/base per dataset, and mean(X) ± t·sd(X)/√N with Student's t of N − 1 degrees of
    freedom. Datasets with base 0 have no X: they are dropped, and counted in ``dropped``. A tiny
    base makes a huge X, and few such datasets decide the mean and widen the interval: look at
    `wilcoxon` beside it. O(N). Ties play no part; there are no weights.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.

    Examples
    --------
    >>> print(relative_gain([0.10, 0.18, 0.27, 0.1], [0.2, 0.2, 0.3, 0.0]))
    −23.3 % (95 % interval −80.7 to +34.0 %), 3 datasets, 1 with base 0 left out
    """
    level = check_number("level", level, 0.0, 1.0)
    after, before = read_pair(new, base, ("new", "base"))
    if (before < 0.0).any():
        first = int((before < 0.0).argmax())
        raise InputError(
            f"base must be at least 0 for a relative gain, but row {first} holds "
            f"{before[first]:g}. Use wilcoxon, which asks for differences only."
        )
    kept = before > 0.0
    n = int(kept.sum())
    if n < 2:
        raise InputError(
            f"at least 2 datasets with a base above 0 are needed for an interval, but {n} of "
            f"{len(before)} have one."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        gain = (after[kept] - before[kept]) / before[kept]
        mean, sd = float(gain.mean()), float(gain.std(ddof=1))
    if not math.isfinite(mean + sd):
        raise InputError(
            f"gains must be finite numbers, but the smallest base above 0, {before[kept].min():g}, "
            "makes one that is beyond them. Set such a base to 0, and it is left out."
        )
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * sd / math.sqrt(n)
    return RelativeGain(mean, mean - half, mean + half, sd, n, len(before) - n, level)


# --- All pairs of methods by their mean ranks: Nemenyi's test and its critical difference ---------


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
        _groups_alike(ranks, q * error),
        tuple(tuple(row) for row in chance.tolist()),
        ranks.datasets,
        bool(larger_is_better),
    )


def _groups_alike(ranks: Ranks, difference: float) -> tuple[tuple[str, ...], ...]:
    """The largest groups of methods whose mean ranks lie within the critical difference."""
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
    """A level for each span, so that spans on one level do not touch.

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


# --- Holm's test of all methods against a control, at one level for all of them together ----------


@dataclass(frozen=True, repr=False)
class HolmResult(Tabular):
    """The result of `holm`; prints as a table.

    Attributes
    ----------
    control : str
        The method that all others are held against.
    names : tuple of str
        The others, in the order of the columns; the tuples below are in the same order.
    ranks : tuple of float
        Their mean ranks.
    control_rank : float
        That of the control.
    z : tuple of float
        Above 0 where the control has the better (smaller) mean rank.
    p_values, adjusted : tuple of float
        Two-sided, alone and after Holm's step-down.
    rejected : tuple of bool
        Whether the adjusted p-value is at most the level.
    level : float
    datasets : int
    """

    control: str
    names: tuple[str, ...]
    ranks: tuple[float, ...]
    control_rank: float
    z: tuple[float, ...]
    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]
    rejected: tuple[bool, ...]
    level: float
    datasets: int

    @property
    def superior(self) -> tuple[str, ...]:
        """The methods that the control is better than, beyond chance."""
        return self._rejected(1.0)

    @property
    def inferior(self) -> tuple[str, ...]:
        """The methods that the control is worse than, beyond chance."""
        return self._rejected(-1.0)

    def _rejected(self, sign: float) -> tuple[str, ...]:
        rows = zip(self.names, self.rejected, self.z, strict=True)
        return tuple(name for name, sure, z in rows if sure and sign * z > 0.0)

    def verdict(self, name: str) -> str:
        """What a method is against the control: "better", "worse" or "not shown"."""
        if name not in self.names:
            raise KeyError(name)
        words = dict.fromkeys(self.superior, "worse") | dict.fromkeys(self.inferior, "better")
        return words.get(name, "not shown")

    def _head(self) -> tuple[str, ...]:
        return ("method", "mean rank", "z", "p", "Holm's p", f"than {self.control}")

    def _rows(self) -> list[tuple[Any, ...]]:
        words = [self.verdict(name) for name in self.names]
        columns = (self.names, self.ranks, self.z, self.p_values, self.adjusted, words)
        return list(zip(*columns, strict=True))

    def _below(self) -> list[str]:
        return [
            f"control: {self.control}, mean rank {shown_number(self.control_rank)}; "
            f"{self.datasets} datasets, Holm at {percent(self.level)}"
        ]


def holm(
    scores: Any, *, control: Any, larger_is_better: bool, level: float = 0.05, names: Any = None
) -> HolmResult:
    """Which methods are better or worse than one of them, the control, beyond chance.

    More powerful than comparing all pairs, if the question is about one method: fewer questions.

    Parameters
    ----------
    scores, larger_is_better, names
        As in `average_ranks`; or `Ranks` in place of scores.
    control : str or int
        The method to hold the others against: its name, or its column from 0.
    level : float, default=0.05
        The chance that any of the verdicts is wrong if all methods are alike.

    Returns
    -------
    HolmResult

    Notes
    -----
    z = (R_i − R_c)/√(k(k + 1)/6N) on the mean ranks of method and control, with a two-sided
    p-value of the normal distribution. Holm's step-down orders the m = k − 1 p-values and rejects
    as long as p_(i) ≤ level/(m − i + 1); the adjusted p-values max_{j≤i} min(1, (m − j + 1)p_(j))
    say the same of any level. Run `friedman` first: `compare` does, and calls nothing different
    unless F_F rejects. Ties share ranks, which makes z a little cautious. O(Nk²). No weights.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
       of Statistics 6, 1979.
    .. [2] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    Mean ranks over 40 datasets, as a paper may print them:

    >>> from calibrant.compare import Ranks
    >>> printed = Ranks(["Isotonic", "BBQ", "ENIR"], [1.95, 2.6, 1.45], 40)
    >>> print(holm(printed, control="ENIR", larger_is_better=False))
    method    mean rank     z        p  Holm's p  than ENIR
    ────────  ─────────  ────  ───────  ────────  ─────────
    Isotonic      1.950  2.24    0.025     0.025      worse
    BBQ           2.600  5.14  2.7e-07   5.4e-07      worse
    control: ENIR, mean rank 1.450; 40 datasets, Holm at 5 %
    """
    level = check_number("level", level, 0.0, 1.0)
    ranks = ranks_of(scores, larger_is_better, names)
    place = place_of(control, ranks.names)
    others = [column for column in range(len(ranks)) if column != place]
    error = rank_error(ranks)
    z = tuple((ranks.mean[column] - ranks.mean[place]) / error for column in others)
    p_values = tuple(math.erfc(abs(value) / math.sqrt(2.0)) for value in z)
    adjusted = holm_adjusted(p_values)
    return HolmResult(
        ranks.names[place],
        tuple(ranks.names[column] for column in others),
        tuple(ranks.mean[column] for column in others),
        ranks.mean[place],
        z,
        p_values,
        adjusted,
        tuple(p <= level for p in adjusted),
        level,
        ranks.datasets,
    )


# --- Do the methods differ at all? Friedman's test and its improvement by Iman and Davenport ------


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
    spread = 12.0 * sum((_exact_rank_sum(mean, n) - n * (k + 1) / 2.0) ** 2 for mean in ranks.mean)
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
    above, below = (n - 1.0) * spread, most - spread
    f = above / below if below > 0.0 else math.inf if above else 0.0
    f_df = (k - 1, (k - 1) * (n - 1))
    alike = math.exp((1 - n) * math.lgamma(k + 1))
    f_p = alike if math.isinf(f) else max(alike, float(fdtrc(*f_df, f)))
    return FriedmanResult(chi2, float(chdtrc(k - 1, chi2)), k - 1, f, f_p, f_df, ranks, corrected)


def _exact_rank_sum(mean: float, n: int) -> float:
    """The sum of the ranks behind a mean rank, free of rounding."""
    total = mean * n
    half = round(2.0 * total) / 2.0
    return half if abs(total - half) < 1e-9 * n else total
