"""The ECE beside what chance alone would make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import Array
from calibrant.data.validation import check_word
from calibrant.metrics.arguments import check_number, check_whole, read_generator, read_table
from calibrant.metrics.binned import BINNINGS, group
from calibrant.metrics.debiased import Places, without_chance
from calibrant.metrics.redrawn_labels import CellRows, redraw, share_as_far
from calibrant.metrics.weighted_cells import impossible, table_for_test
from calibrant.other_words import in_our_words
from calibrant.result_tables import Readable


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
