"""Errors over bins and chance: which error is asked for, without what chance adds, and a test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_word
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import (
    check_flag,
    check_number,
    check_whole,
    read_generator,
    read_table,
)
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.binned import (
    BINNINGS,
    as_table,
    check_bins,
    group,
    group_starts,
    mass_borders,
)
from calibrant.metrics.redrawn_labels import CellRows, redraw, share_as_far
from calibrant.metrics.weighted_cells import (
    check_weights,
    impossible,
    residuals,
    squared_residuals,
    squares,
    table_for_test,
    to_cells,
)
from calibrant.other_words import in_our_words
from calibrant.result_tables import Readable

#: equal errors may differ by this much from rounding
ROUNDING = 1e-12


class Places:
    """Which cells lie in one bin, and how the others are shared between bins.

    ``first`` is the bin in which each cell begins. ``whole`` are the numbers of the cells that end
    in it, too, ``shared`` those of the others, and ``shares`` how much of these lies in each bin.
    """

    def __init__(self, table: ScoreTable, bins: Bins, binning: str) -> None:
        if binning == "mass" and not isinstance(bins, str):
            self.bins = bins
            self._by_mass(table)
            return
        starts = group_starts(table, bins)
        self.bins = len(starts)
        self.first = to_cells(np.arange(self.bins), starts, len(table))
        self.whole, self.shared = np.arange(len(table)), np.arange(0)
        self.shares = np.zeros((0, self.bins))

    def _by_mass(self, table: ScoreTable) -> None:
        """Bins of equal mass: a cell that a border divides is shared in proportion."""
        mass = np.append(0.0, np.cumsum(table.weight))
        borders = mass_borders(mass[-1], table.is_whole, self.bins)
        last = np.searchsorted(borders, mass[1:], side="left") - 1
        self.first = np.minimum(np.searchsorted(borders, mass[:-1], side="right") - 1, last)
        self.whole, self.shared = (
            np.flatnonzero(at) for at in (self.first == last, self.first < last)
        )
        low, high = mass[self.shared, None], mass[self.shared + 1, None]
        inside = np.minimum(borders[1:], high) - np.maximum(borders[:-1], low)
        self.shares = np.maximum(inside, 0.0) / (high - low)

    def sums(self, column: Array, power: int = 1) -> Array:
        """The sum of a column of cells over each bin; a shared cell counts with its share^power."""
        sums = np.bincount(self.first[self.whole], column[self.whole], minlength=self.bins)
        return np.asarray(sums + column[self.shared] @ self.shares**power, dtype=np.float64)

    def gaps(self, table: ScoreTable) -> Array:
        """Each bin's share |Σ w(y − p)|/n of the ECE."""
        return np.asarray(np.abs(self.sums(residuals(table))) / table.total)


class ErrorRule(NamedTuple):
    """Which error over bins is asked for: see `calibrant.metrics.ece`."""

    bins: Bins
    binning: str
    ties: str
    norm: int
    debias: bool
    weights: str

    def checked(self) -> ErrorRule:
        """The rule itself, if there is such an error; else it is refused."""
        check_bins(self.bins, self.binning, self.ties)
        check_weights(self.weights)
        if isinstance(self.norm, (bool, str)) or self.norm not in (1, 2):
            raise ParameterError(_norm_error(self.norm))
        check_flag("debias", self.debias)
        if self.debias and self.ties != "together":
            raise ParameterError(
                f'ties must be "together" beside debias=True, but {self.ties!r} came: what chance '
                "adds is known only where the order inside a tie plays no part."
            )
        return self

    def mean_power(self, seen: ScoreTable | Rows) -> float:
        """The mean |gap|^norm over the cases, without what chance adds if that is asked for."""
        if not self.debias:
            return group(seen, self.bins, self.binning, self.ties).mean_power(self.norm)
        share, gap, variance = _gaps(as_table(seen), self)
        if self.norm == 2:
            return float(share @ (gap**2 - variance))
        return float(share @ (2.0 * gap - folded_mean(gap, np.sqrt(np.maximum(variance, 0.0)))))

    def root(self, mean_power: float) -> float:
        """The error; what was debiased may have fallen below 0, and is 0 then."""
        power = max(mean_power, 0.0)
        return power if self.norm == 1 else math.sqrt(power)


def _norm_error(norm: Any) -> str:
    wanted = f"norm must be 1 (mean) or 2 (root mean square), but {norm!r} came."
    largest = norm in ("max", "inf") or (isinstance(norm, float) and math.isinf(norm))
    return f"{wanted} The largest error of a bin is mce." if largest else wanted


def _gaps(table: ScoreTable, rule: ErrorRule) -> tuple[Array, Array, Array]:
    """For each bin its share of the weight, |mean of y − p|, and the variance of that mean.

    A row that a border divides counts in each bin with its part of the weight. With such weights a
    and d = y − p, (Σad)² − Σa²d² has the expectation ((Σa)² − Σa²)·(E d)²: from that the variance
    is unbiased (and may be below 0 where weights differ). A bin of one row tells nothing of it:
    the square of its gap is taken for chance.
    """
    places, sample = Places(table, rule.bins, rule.binning), table_for_test(table, rule.weights)
    weight, apart = places.sums(sample.weight), places.sums(residuals(sample))
    square, noise = places.sums(squares(sample), 2), places.sums(squared_residuals(sample), 2)
    some = weight > 0.0
    weight, gap = weight[some], np.abs(apart[some]) / weight[some]
    single, noise = square[some] / weight**2, noise[some] / weight**2
    rest = 1.0 - single
    known = rest > 1e-9
    variance = np.where(known, (noise - gap**2 * single) / np.where(known, rest, 1.0), gap**2)
    return weight / weight.sum(), gap, variance


def folded_mean(mean: Array, sd: Array) -> Array:
    """E|m + σZ| = m·erf(m/σ√2) + σ√(2/π)·exp(−m²/2σ²), Z standard normal and m ≥ 0.

    >>> folded_mean(np.array([0.0, 3.0, 2.0]), np.array([1.0, 0.0, 1.0])).round(4).tolist()
    [0.7979, 3.0, 2.017]
    """
    some = sd > 0.0
    far = np.where(some, np.minimum(mean, 100.0 * sd), 1.0) / np.where(some, sd, 1e-2)
    tail = np.exp(-0.5 * far**2)  # beyond 100 σ it adds nothing
    return np.asarray(mean * erf(far / math.sqrt(2.0)) + sd * math.sqrt(2.0 / math.pi) * tail)


def without_chance(value: float, gaps: Array, chance: Array) -> float:
    """The error without what chance adds: c·error, c between 0 and 1.

    c is such that true gaps of c times those seen, blurred by chance, would on average give the
    error seen. ``gaps`` and ``chance`` are each bin's part of the error, and of the mean error of
    redrawn labels. Chance is taken to be normal, with the standard deviation chance·√(π/2).
    """
    if value <= chance.sum() * (1.0 + ROUNDING):  # taking the root would turn 1e-16 into 1e-7
        return 0.0
    some = chance > 0.0
    fixed, g, e = gaps[~some].sum(), gaps[some], chance[some]

    def above(scale: float) -> float:
        blurred = folded_mean(scale * g, e * np.sqrt(np.pi / 2.0))
        return float(blurred.sum() + scale * fixed - value)

    return float(value * brentq(above, 0.0, 1.0)) if above(1.0) > 0.0 else value


# --- a test -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ECETest(Readable):
    """The result of `ece_test`.

    Attributes
    ----------
    value : float
        The ECE itself, as `ece` gives it.
    expected : float
        Its mean if the predictions are right: what chance alone makes of it.
    quantile : float
        Its ``level`` quantile if the predictions are right.
    p_value : float
        The chance of at least this ECE if the predictions are right.
    debiased : float
        An estimate of the ECE without what chance adds to it, between 0 and ``value``.
    level : float
        Which quantile.
    replicates : int
        How many times the labels were redrawn.
    """

    value: float
    expected: float
    quantile: float
    p_value: float
    debiased: float
    level: float
    replicates: int


@in_our_words
def ece_test(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    binning: str = "width",
    replicates: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> ECETest:
    """Is the ECE larger than chance makes it when predictions are right? With a debiased ECE.

    A small value near ``expected`` (a large p-value) is good.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    bins : int, default=10
    binning : {"width", "mass"}, default="width"
        As for `ece`.
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
    level : float, default=0.95
        Which quantile of the redrawn ECE to return.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Labels are redrawn y*ᵢ ~ Bernoulli(pᵢ), which is what "the predictions are right" means, and the
    ECE of each redrawing compared with that of the data: p-value = (1 + #{ECE* ≥ ECE})/(R + 1),
    valid for every n, distribution of p and number of bins. Only the sums of the bins are needed.
    Up to 2·10⁷ single draws they are drawn cell by cell (binomial), exactly. Beyond, a bin whose
    sum has variance σ² ≥ 100 is drawn from the refined normal approximation [3]_ (with skewness,
    and rounded where weights are counts): its distribution function is within 0.0125/σ² ≤ 0.00013
    of the true one in the most skewed case, that of a Poisson variable. (For importance weights the
    condition is Σw³p(1 − p) ≤ σ³/10, of which that is a case.) Other bins are drawn exactly, by
    thinning a Poisson process. Cost O(D + R·min(D, 300·bins)): about a second for 10⁶ rows.
    Something that happened at probability 0 (or did not at 1) could never be redrawn: the p-value
    is then 0.

    ``debiased`` is c·ECE with the c ∈ [0, 1] for which gaps of c times the ones seen, blurred by
    the chance that redrawing shows in each bin, would on average give the ECE seen. It is 0 where
    the ECE is at most ``expected``, and the ECE itself where that is far above. An absolute value
    near 0 has no unbiased estimate. In simulations this one takes away two thirds of what chance
    adds to the ECE of right predictions, where the bootstrap correction of [1]_ takes 40 %; for
    predictions that are wrong nearly everywhere both are right on average to about a sixth of the
    ECE with 500 rows, this one with the larger spread; of an error in one bin of ten both keep much
    of what chance adds in the others. To subtract ``expected`` would go below the truth by half of
    it in the first case.

    Ties: as in `ece`; a tie divided between groups of equal mass is redrawn as one. Importance
    weights of tied rows are known only by Σw and Σw², and are redrawn as one row of some weight
    and others of equal weight with the same sums: exact for one or two rows.

    It misleads: a small ECE is easily had by bins that hide errors of opposite sign; and with much
    data every model is found wrong, by however little: then ``debiased`` is the answer to look at.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma, "Verified uncertainty calibration", 2019, arXiv:1909.10155.
    .. [2] J. Bröcker, L. Smith, "Increasing the reliability of reliability diagrams", 2007,
       doi:10.1175/WAF993.1.
    .. [3] Y. Hong, "On computing the distribution function for the Poisson binomial distribution",
       2013, doi:10.1016/j.csda.2012.10.006.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.random(400)
    >>> right = ece_test(rng.random(400) < p, p)
    >>> right.p_value > 0.05, right.value < right.quantile
    (True, True)
    >>> ece_test(rng.random(400) < p**2, p).p_value < 0.01
    True
    """
    check_whole("bins", bins, 1)
    check_word("binning", binning, BINNINGS)
    replicates = check_whole("replicates", replicates, 1)
    level = check_number("level", level, 0.0, 1.0)
    random = read_generator(random_state)
    table = read_table(y, p, sample_weight, pos_label)
    in_rows = table_for_test(table, weights)
    places = Places(table, bins, binning)
    drawn = np.abs(_redrawn(places, CellRows.of(in_rows), replicates, random)) / in_rows.total
    null = drawn.sum(axis=1)
    value = group(table, bins, binning).mean_gap()
    return ECETest(
        value,
        float(null.mean()),
        float(np.quantile(null, level)),
        0.0 if impossible(table) else share_as_far(null, value),
        without_chance(value, places.gaps(table), drawn.mean(axis=0)),
        level,
        replicates,
    )


def _redrawn(places: Places, rows: CellRows, replicates: int, random: np.random.Generator) -> Array:
    """Σ w(y* − p) of each bin in each redrawing, shape (replicates, bins)."""
    gaps = np.zeros((replicates, places.bins))
    if len(places.whole):
        inside = places.first[places.whole]
        starts = np.flatnonzero(np.diff(inside, prepend=-1))
        gaps[:, inside[starts]] = redraw(rows.part(places.whole), starts, replicates, random)
    if len(places.shared):
        each = np.arange(len(places.shared))
        drawn = redraw(rows.part(places.shared), each, replicates, random)
        gaps += drawn @ places.shares
    return gaps
