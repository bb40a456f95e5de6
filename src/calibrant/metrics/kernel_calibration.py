"""The squared kernel calibration error: no bins, any number of classes, and a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.arguments import (
    check_number,
    check_whole,
    read_generator,
    read_predictions,
)
from calibrant.metrics.kernel_pairs import MatrixPairs, Pairs, TablePairs
from calibrant.metrics.probability_matrix import LabelledMatrix
from calibrant.metrics.redrawn_labels import share_as_far
from calibrant.other_words import in_our_words
from calibrant.result_tables import Readable

#: equal values of the statistic may differ by this part of its spread from rounding
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class SKCETest(Readable):
    """The result of `skce_test`.

    Attributes
    ----------
    value : float
        The squared kernel calibration error, as `skce` gives it.
    quantile : float
        Its ``level`` quantile if the predictions are right. (Its mean is then 0.)
    p_value : float
        The chance of at least this value if the predictions are right.
    bandwidth : float
        The distance at which the kernel has fallen to 1/e.
    level : float
        Which quantile.
    replicates : int
        How many times the labels were redrawn.
    """

    value: float
    quantile: float
    p_value: float
    bandwidth: float
    level: float
    replicates: int


@in_our_words
def skce(
    y: Any,
    p: Any = None,
    *,
    bandwidth: float | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> float:
    """Squared kernel calibration error (SKCE): do rows of near predictions err in one direction?

    Smaller is better. 0 is expected of right predictions, so that about half of all values are
    then below 0; at most 2.

    Parameters
    ----------
    y : array-like of shape (n,), ScoreTable or ScoreMatrix
        Labels; or a table or matrix of the probabilities with their labels (then p is left out).
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    bandwidth : float, optional
        The distance between predictions at which the kernel has fallen to 1/e. Default: the median
        distance between distinct predictions (of at most 1,000 of them).
    random_state : int, Generator or None, default=0
        The seed of blocks; it plays no part for two classes, nor while all pairs are taken.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, or as a number of equal rows.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Notes
    -----
    The mean over all pairs i ≠ j of exp(−d(pᵢ, pⱼ)/γ)·⟨e_{yᵢ} − pᵢ, e_{yⱼ} − pⱼ⟩ (with weights: of
    wᵢwⱼ times that), where e_y is 1 at the class that came, d is the total variation ½ Σ_c |p_c −
    p'_c|, and γ the bandwidth. This is the unbiased quadratic estimate of [1]_ with a Laplacian
    kernel times the identity. For two classes the product is 2(y − p)(y' − p') and d = |p − p'|.
    It asks for calibration of the whole distribution, where `top_label_ece` asks for that of its
    largest entry and `classwise_ece` for that of its columns.

    Two classes: all pairs in O(D) after the table. k ≥ 3: O(n²k) up to n = 4,000; beyond, rows
    are put by chance into blocks of 1.6·10⁷/n rows, at least 50, and the mean is over pairs within
    blocks, which is unbiased too, and less precise. At most a block's kernel is in memory
    (128 MB). Rows of p are divided by their sums.

    It misleads as a number: it is on no scale that people know, depends on the bandwidth, and is
    the square of an error, so that 0.001 may be much. Use it in `skce_test`.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten, D. Zachariah, "Calibration tests in multi-class classification:
       a unifying framework", 2019, arXiv:1910.11385.

    Examples
    --------
    >>> skce([1, 1, 0, 0], [0.25, 0.25, 0.25, 0.75], bandwidth=1e-9)
    0.0625
    >>> p = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
    >>> skce(["a", "b"], p, classes=["a", "b", "c"]), skce(["b", "b"], p, classes=["a", "b", "c"])
    (-0.375, 0.875)
    """
    random, bandwidth = read_generator(random_state), _read_bandwidth(bandwidth)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    return _pairs(seen, weights, bandwidth, random).value()


@in_our_words
def skce_test(
    y: Any,
    p: Any = None,
    *,
    bandwidth: float | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> SKCETest:
    """Are the predictions right, for two or more classes? A test by the kernel calibration error.

    A value near 0 (a large p-value) is good.

    Parameters
    ----------
    y, p, bandwidth, sample_weight, weights, pos_label, classes : see `skce`
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
    level : float, default=0.95
        Which quantile of the redrawn value to return.
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.

    Notes
    -----
    Labels are redrawn from their rows of p, which is what "the predictions are right" means, and
    `skce` of each redrawing is compared with that of the data: p-value = (1 + #{SKCE* ≥ SKCE})/
    (R + 1), valid for every n, k and distribution of p. (The bandwidth and the blocks look at p
    only.) [1]_ takes limits for many rows instead, which few rows and many classes are far from.

    Two classes: O(R·D), about 2 s for 10⁵ rows and 20 s for 10⁶. k ≥ 3: O(R·n²) up to 4,000 rows,
    which take about 4 s, as do those in blocks until these are of 50 rows; then in proportion to n.
    Something that happened at probability 0 could never be redrawn: the p-value is then 0. For two
    classes, importance weights of three or more tied rows are redrawn as in `ece_test`.

    It misleads where the error sits in few rows that are near no others, or changes sign within a
    bandwidth: products of both signs cancel. And with much data every model is found wrong.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten, D. Zachariah, "Calibration tests in multi-class classification:
       a unifying framework", 2019, arXiv:1910.11385.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.dirichlet([1, 1, 1], 300)
    >>> right = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> skce_test(right, p).p_value > 0.05
    True
    >>> wrong = np.where(rng.random(300) < 0.3, 0, right)
    >>> skce_test(wrong, p).p_value < 0.01
    True
    """
    replicates = check_whole("replicates", replicates, 1)
    level = check_number("level", level, 0.0, 1.0)
    random, bandwidth = read_generator(random_state), _read_bandwidth(bandwidth)
    seen = read_predictions(y, p, sample_weight, pos_label, classes)
    pairs = _pairs(seen, weights, bandwidth, random)
    value, null = pairs.value(), pairs.redrawn(replicates, random)
    slack = ROUNDING * float(np.abs(null).max())
    return SKCETest(
        value,
        float(np.quantile(null, level)),
        0.0 if pairs.impossible else share_as_far(null, value, slack),
        pairs.bandwidth,
        level,
        replicates,
    )


def _read_bandwidth(bandwidth: Any) -> float | None:
    return None if bandwidth is None else check_number("bandwidth", bandwidth, 0.0)


def _pairs(
    seen: ScoreTable | LabelledMatrix,
    weights: str,
    bandwidth: float | None,
    random: np.random.Generator,
) -> Pairs:
    if isinstance(seen, ScoreTable):
        return TablePairs(seen, weights, bandwidth)
    return MatrixPairs(seen.matrix, weights, bandwidth, random)
