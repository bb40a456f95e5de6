"""Holm's test of all methods against a control, at one level for all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from calibrant.compare.method_scores import place_of
from calibrant.compare.ranks import rank_error, ranks_of
from calibrant.compare.result_base import Tabular, percent, shown_number
from calibrant.metrics.arguments import check_number
from calibrant.metrics.multiplicity import holm_adjusted


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
