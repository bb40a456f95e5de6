"""How much was gained, relative to a base, with an interval of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from calibrant.compare.method_scores import read_pair
from calibrant.compare.result_base import Result
from calibrant.errors import InputError
from calibrant.metrics.arguments import check_number


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
