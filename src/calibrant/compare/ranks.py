"""The mean rank of each method over the datasets; 1 is the best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.compare.method_scores import check_names, read_scores
from calibrant.compare.result_base import Result
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_flag

#: how far the mean of published ranks, which are rounded, may be off
ROUNDED = 0.01


@dataclass(frozen=True, repr=False)
class Ranks(Result):
    """Mean ranks of methods over datasets: from `average_ranks`, or as a paper printed them.

    The rank tests take it in place of scores, so that a published table of mean ranks can be
    tested without the figures behind it.

    Parameters
    ----------
    names : sequence of str
        The methods.
    mean : sequence of float
        The mean rank of each; 1 is the best. They sum to k(k + 1)/2, but for rounding.
    datasets : int
        How many datasets were ranked.
    tied : int, optional
        Σ(t³ − t) over all groups of t equal scores of a dataset; only the correction of `friedman`
        for ties asks for it.
    best : sequence of int, optional
        On how many datasets each method is the best, or among the best.

    Notes
    -----
    O(k).

    Examples
    --------
    >>> printed = Ranks(["Isotonic", "BBQ", "ENIR"], [1.95, 2.6, 1.45], 40)
    >>> printed["ENIR"]
    1.45
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    datasets: int
    tied: int | None = None
    best: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        count = self.datasets
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 2:
            raise InputError(f"datasets must be a whole number of at least 2, but {count!r} came.")
        try:
            mean = tuple(float(rank) for rank in self.mean)
        except (TypeError, ValueError) as wrong:
            raise InputError(f"mean must be a list of numbers, but {self.mean!r} came.") from wrong
        if len(mean) < 2:
            raise InputError(f"ranks of at least 2 methods are needed, but {len(mean)} came.")
        k = len(mean)
        if not all(1.0 - ROUNDED <= rank <= k + ROUNDED for rank in mean):
            raise InputError(f"mean ranks of {k} methods must lie in [1, {k}], but {mean} came.")
        if not math.isclose(sum(mean) / k, (k + 1) / 2, abs_tol=ROUNDED, rel_tol=0.0):
            raise InputError(
                f"mean ranks of {k} methods must sum to {k * (k + 1) / 2:g}, but they sum to "
                f"{sum(mean):g}. Give all methods that were ranked together."
            )
        object.__setattr__(self, "names", check_names(self.names, k))
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "datasets", int(count))
        if self.tied is not None:
            _check_whole("tied", self.tied, int(count) * (k**3 - k))
            object.__setattr__(self, "tied", int(self.tied))
        if self.best is not None:
            if len(self.best) != k:
                raise InputError(f"best must have {k} entries, but {len(self.best)} came.")
            for wins in self.best:
                _check_whole("best", wins, int(count))
            object.__setattr__(self, "best", tuple(int(wins) for wins in self.best))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> float:
        """The mean rank of a method."""
        if name not in self.names:
            raise KeyError(name)
        return self.mean[self.names.index(name)]

    @property
    def order(self) -> tuple[int, ...]:
        """The columns, the best first; equal ranks in the order they came."""
        return tuple(sorted(range(len(self.mean)), key=self.mean.__getitem__))


def _check_whole(name: str, value: Any, most: int) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not 0 <= int(value) <= most:
        raise InputError(f"{name} must be whole, from 0 to {most}, but {value!r} came.")


def average_ranks(scores: Any, *, larger_is_better: bool, names: Any = None) -> Ranks:
    """The mean rank of each method: 1 if it was the best on every dataset. Smaller is better.

    Parameters
    ----------
    scores : array-like of shape (datasets, methods), frame, or mapping of name to column
        One figure per dataset and method, already averaged over repetitions.
    larger_is_better : bool
        True for accuracy and AUC, False for errors and losses. There is no default.
    names : sequence of str, optional
        The methods, where the scores are an array; default: "method 1", "method 2", …

    Returns
    -------
    Ranks

    Notes
    -----
    Within each dataset the best method has rank 1, the next rank 2, and so on. Ties: t equal
    scores share the mean of the t ranks. Equal means equal to the last bit: round figures that
    differ by the noise of arithmetic only. Infinite scores are ranked, missing ones refused.
    O(Nk²) for N datasets and k methods. There are no weights: every dataset counts once.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> auc = {"tree": [0.80, 0.71, 0.90], "forest": [0.85, 0.71, 0.93]}
    >>> average_ranks(auc, larger_is_better=True)["forest"]
    1.1666666666666667
    """
    larger = check_flag("larger_is_better", larger_is_better)
    values, called = read_scores(scores, names)
    ranks, same = rank_rows(-values if larger else values)
    tied = int((same * same - 1).sum())  # each of t equal scores adds t² − 1
    best = (values == (values.max if larger else values.min)(axis=1)[:, None]).sum(axis=0)
    mean = ranks.sum(axis=0) / len(ranks)
    return Ranks(called, tuple(mean.tolist()), len(ranks), tied, tuple(best.tolist()))


def rank_rows(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Ranks within each row, 1 for the smallest and shared by equals; and how many are equal."""
    less = np.count_nonzero(values[:, None, :] < values[:, :, None], axis=2)
    same = np.count_nonzero(values[:, None, :] == values[:, :, None], axis=2)
    return less + (same + 1) / 2.0, same


def ranks_of(scores: Any, larger_is_better: bool, names: Any) -> Ranks:
    """The ranks of scores; Ranks are returned as they are."""
    if not isinstance(scores, Ranks):
        return average_ranks(scores, larger_is_better=larger_is_better, names=names)
    check_flag("larger_is_better", larger_is_better)
    if names is not None:
        raise InputError("names are for arrays, but Ranks came, which have their own.")
    return scores


def rank_error(ranks: Ranks) -> float:
    """√(k(k + 1)/6N): the standard error of a difference of mean ranks if methods are alike."""
    k = len(ranks)
    return math.sqrt(k * (k + 1) / (6.0 * ranks.datasets))
