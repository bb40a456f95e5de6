"""Evidence against probabilities that adds up over time, and may be looked at after every row.

If probabilities are right, nobody can expect to win by betting against them. An alternative, such
as "all log-odds are 0.2 higher", makes a probability q of each p and bets: its wealth is multiplied
by q/p where the event came and by (1 − q)/(1 − p) where it did not. Before the row is known the
expected factor is 1, whatever came before. So the mean wealth of many alternatives, which start
with 1 in all, is a martingale, and the chance that it ever reaches 1/α is at most α (Ville 1939).

Each alternative starts anew with every batch, with a share of the first 1 that is set aside for
that batch. So a change that comes late is not hidden by what was lost before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from calibrant.array_types import Array

#: how much an alternative adds to the log-odds
SHIFTS = (0.1, 0.2, 0.4, 0.8, 1.6)
#: by what an alternative multiplies the distance of the log-odds from the centre
SLOPES = (0.5, 0.7, 0.85, 1.2, 1.5, 2.0)
#: this many parts at each end of the scale are also watched together
TAILS = (2, 3, 5)
#: shares of the first 1: changes of all rows alike, of the slope (with or without a shift), of
#: one part of the scale
ALL, TURNED, PART = 0.5, 0.25, 0.25
#: Σ 1/(n·ln²n) over n ≥ 2, rounded up
SERIES = 2.10975
#: distinct probabilities that are worked on at a time
BLOCK = 4096


class Alternatives(NamedTuple):
    """What may have happened to the log-odds, one alternative in each place of the arrays.

    For probabilities in [low, high) the log-odds z become centre + slope·(z − centre) + shift;
    others stay. ``prior`` is the share of the first 1 that each starts with.
    """

    shift: Array
    slope: Array
    low: Array
    high: Array
    prior: Array

    @classmethod
    def of(cls, borders: Array, *, only_shifts: bool = False) -> Self:
        """Shifts of all rows, turns of the line, and shifts of the parts between some borders."""
        both = [sign * size for size in SHIFTS for sign in (1.0, -1.0)]
        found = [(shift, 1.0, 0.0, math.inf, ALL) for shift in both]
        if not only_shifts:
            found += [(s, b, 0.0, math.inf, TURNED) for b in SLOPES for s in (0.0, *both)]
            found += [(s, 1.0, low, high, PART) for low, high in _parts(borders) for s in both]
        columns = np.array(found, dtype=np.float64).T
        shares = columns[-1]
        for share in np.unique(shares):
            columns[-1, shares == share] /= (shares == share).sum()
        columns[-1] /= columns[-1].sum()
        return cls(*columns)

    def part(self, place: int) -> tuple[float, float]:
        """The probabilities that one of them is about."""
        return float(self.low[place]), min(float(self.high[place]), 1.0)

    @property
    def kinds(self) -> NDArray[np.str_]:
        """What each is about: all rows alike ("shift"), the "slope", or a "part" of the scale."""
        whole = np.isinf(self.high)
        return np.where(whole, np.where(self.slope == 1.0, "shift", "slope"), "part")


def _parts(borders: Array) -> list[tuple[float, float]]:
    """Each part between two borders, and the last and first two, three and five of them."""
    found: list[tuple[float, float]] = list(pairwise(borders.tolist()))
    for many in TAILS:
        if many < len(found):
            found += [(borders[-1 - many], borders[-1]), (borders[0], borders[many])]
    return list(dict.fromkeys((float(low), float(high)) for low, high in found))


class NullBounds(NamedTuple):
    """The probabilities of a batch that are claimed, and how far the truth may be from them."""

    p: Array
    low: Array
    high: Array

    @classmethod
    def exactly(cls, p: Array) -> Self:
        """The truth must be p itself."""
        return cls(p, p, p)

    def widened(self, least: float) -> Self:
        """All that is within ``least`` of these bounds."""
        low, high = np.maximum(self.low - least, 0.0), np.minimum(self.high + least, 1.0)
        return self._replace(low=low, high=high)

    def impossible(self, negative: Array, positive: Array) -> bool:
        """Whether something came that has no probability under any allowed truth."""
        return bool(positive[self.high <= 0.0].any() or negative[self.low >= 1.0].any())


def batch_gains(
    alternatives: Alternatives, centre: float, bounds: NullBounds, negative: Array, positive: Array
) -> Array:
    """By how much ln(wealth) of each alternative grows with a batch.

    The truth may be anything from low to high. An alternative above that range bets against high,
    one below it bets against low, and one inside does not bet. So no alternative can expect to win,
    whatever the truth is. O(K·D) for K alternatives and D probabilities.
    """
    found = np.zeros(len(alternatives.prior))
    for first in range(0, len(negative), BLOCK):
        at = slice(first, first + BLOCK)
        won, lost = _log_factors(alternatives, centre, NullBounds(*(b[at] for b in bounds)))
        found += won @ positive[at] + lost @ negative[at]
    return found


def _log_factors(
    alternatives: Alternatives, centre: float, bounds: NullBounds
) -> tuple[Array, Array]:
    """ln of the factors for an event that came, and for one that did not, each (K, D)."""
    shift, slope, low, high, _ = (column[:, None] for column in alternatives)
    p = bounds.p
    with np.errstate(divide="ignore"):
        z = np.log(p) - np.log1p(-p)
        least, not_least = np.log(bounds.low), np.log1p(-bounds.low)
        most, not_most = np.log(bounds.high), np.log1p(-bounds.high)
    moved = np.where((p >= low) & (p < high), centre + slope * (z - centre) + shift, z)
    rest = np.log1p(np.exp(-np.abs(moved)))
    q, not_q = np.minimum(moved, 0.0) - rest, -np.maximum(moved, 0.0) - rest  # ln q and ln(1 − q)
    above, below = q > most, q < least
    with np.errstate(invalid="ignore"):  # −∞ − −∞ where nothing is bet
        won = np.where(above, q - most, np.where(below, q - least, 0.0))
        lost = np.where(above, not_q - not_most, np.where(below, not_q - not_least, 0.0))
    return won, lost


def share_of_start(batch: int) -> float:
    """The share of the first 1 that is set aside for alternatives that begin with a batch.

    It is 1/((t + 1)·ln²(t + 1)), scaled to a sum of 1 over all t ≥ 1. Half goes to the first batch.
    The thousandth starts with so little that it costs no more than 13 in ln(wealth).

    >>> round(share_of_start(1), 3), round(sum(map(share_of_start, range(1, 10_000))), 3)
    (0.493, 0.949)
    """
    return 1.0 / (SERIES * (batch + 1) * math.log(batch + 1) ** 2)


@dataclass(frozen=True)
class Evidence:
    """The wealth of all alternatives after some batches.

    Attributes
    ----------
    wealth : array
        ln of the wealth of each alternative, whenever it began.
    best : array
        ln of the wealth of the one beginning that won most, without the alternative's own share.
    since : array of int
        The number of the batch, from 1 on, with which that one began.
    waiting : float
        What is left of the first 1 for later beginnings.
    batches : int
    peak : float
        The largest ln of all wealth together that there has been.
    """

    wealth: Array
    best: Array
    since: NDArray[np.int64]
    waiting: float = 1.0
    batches: int = 0
    peak: float = 0.0

    @classmethod
    def none(cls, count: int) -> Self:
        """Before the first batch."""
        nothing = np.full(count, -np.inf)
        return cls(nothing, nothing, np.zeros(count, np.int64))

    def after(self, gains: Array, prior: Array) -> Self:
        """With one more batch, which multiplied the wealth of each alternative by exp(gains)."""
        batch = self.batches + 1
        share = share_of_start(batch)
        begun = np.logaddexp(self.wealth, np.log(share * prior))
        anew = self.best < math.log(share)
        made = replace(
            self,
            wealth=begun + gains,
            best=np.where(anew, math.log(share), self.best) + gains,
            since=np.where(anew, batch, self.since),
            waiting=max(self.waiting - share, 0.0),
            batches=batch,
        )
        return replace(made, peak=max(self.peak, made.total))

    @property
    def total(self) -> float:
        """ln of all wealth: 0 at first."""
        with np.errstate(divide="ignore"):
            return float(logsumexp(np.append(self.wealth, np.log(self.waiting))))

    def shares(self) -> Array:
        """How the wealth is spread over the alternatives: what speaks for each."""
        return np.exp(self.wealth - logsumexp(self.wealth)) if self.batches else np.exp(self.wealth)

    def leader(self, prior: Array) -> int:
        """The alternative whose best beginning explains most."""
        return int(np.argmax(self.best + np.log(prior)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON. A wealth of 0, whose ln is −∞, is None."""
        wealth, best = (
            [value if math.isfinite(value) else None for value in values.tolist()]
            for values in (self.wealth, self.best)
        )
        columns = {"wealth": wealth, "best": best, "since": self.since.tolist()}
        return vars(self) | columns
