"""One test of calibration from three, with an exact level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.arguments import check_whole, read_generator, read_table
from calibrant.metrics.binned import group_starts
from calibrant.metrics.cox_line import score_directions
from calibrant.metrics.goodness import RiskGroups
from calibrant.metrics.redrawn_labels import EXACT, CellRows, redraw, redrawn_residuals
from calibrant.metrics.weighted_cells import (
    chance_variance,
    deviation,
    impossible,
    residuals,
    table_for_test,
)
from calibrant.result_tables import Readable

#: where it is only asked whether p is at most 5 %: how many redrawings, and the most single draws
FEW, FEW_DRAWS = 199, 2_000_000
#: groups of risk
GROUPS = 10
#: a table that is too large to be redrawn cell by cell is redrawn in so many runs of neighbours
RUNS = 200
#: a larger statistic counts as this
LARGEST = 1e300
#: values of a statistic that differ by this part of the largest are equal but for rounding
ROUNDING = 1e-10


@dataclass(frozen=True, repr=False)
class CalibrationTest(Readable):
    """The result of `calibration_test`.

    Attributes
    ----------
    p_value : float
        The chance of evidence as strong as this, of all three together, if the predictions are
        right.
    cox, spiegelhalter, hosmer_lemeshow : float
        The p-value of each alone. The smallest says what kind of error it is; they are no verdict
        by themselves, since three were asked.
    replicates : int
        How many times the labels were redrawn.
    """

    p_value: float
    cox: float
    spiegelhalter: float
    hosmer_lemeshow: float
    replicates: int


def calibration_test(
    y: Any,
    p: Any = None,
    *,
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> CalibrationTest:
    """Are the predictions right? One answer from the tests of Cox, Spiegelhalter and Hosmer.

    A small p-value says that the predictions are not right. The one to use if you use one: its
    level is exact, and it finds wrong rates, wrong slopes and local errors.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    replicates : int, default=1000
        How many times labels are redrawn from p; the p-value is at least 1/(replicates + 1).
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
    The statistics are those of `cox` (a wrong rate or slope), `spiegelhalter` (too extreme or too
    timid) and `hosmer_lemeshow` (ten groups of equal weight; anything else). Labels are redrawn
    y*ᵢ ~ Bernoulli(pᵢ), R times. The data and the R redrawings are R + 1 samples that no order
    tells apart if the predictions are right; so the rank of each of them in each statistic gives
    it three p-values. They are combined as Σ cot(π·p-value) [1]_, and the rank of the data in this
    sum is the p-value: valid for every n and distribution of p, however the three depend on each
    other.

    Up to R·D = 2·10⁷ (20,000 distinct predictions) everything is drawn cell by cell. Beyond, cells
    are taken together to about 200 runs of neighbours, in the data and in the redrawings alike, and
    the sums of runs are drawn as in `ece_test`: Cox's and Spiegelhalter's statistics then see the
    mean of each run. Something that happened at probability 0 (or did not at 1) makes all p-values
    0. Ties are never split.

    It misleads where p was fitted to these rows, and with much data, where every model is found
    wrong, by however little: ``ece_test(...).debiased`` says by how much.

    References
    ----------
    .. [1] Y. Liu, J. Xie, "Cauchy combination test: a powerful test with analytic p-value
       calculation under arbitrary dependency structures", 2020,
       doi:10.1080/01621459.2018.1554485.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> p = rng.random(400)
    >>> calibration_test(rng.random(400) < p, p).p_value > 0.05
    True
    >>> calibration_test(rng.random(400) < p**2, p).p_value < 0.01
    True
    """
    replicates = check_whole("replicates", replicates, 1)
    random = read_generator(random_state)
    given = read_table(y, p, sample_weight, pos_label)
    return _tested(given, weights, replicates, random, EXACT)


def chance_that_right(
    table: ScoreTable, *, grouped: bool = False, weights: str = "importance", seed: int = 0
) -> float | None:
    """The p-value of `calibration_test` in steps of ½ %, at a small cost for tables of any size.

    The scores of the table are probabilities. None where the test cannot tell: of rows that come in
    groups, of a single prediction for all rows, and of counts that are not whole.
    """
    if grouped or len(table) < 2 or (weights == "counts" and not table.is_whole):
        return None
    random = np.random.default_rng(seed)
    return _tested(table, weights, FEW, random, FEW_DRAWS).p_value


def _tested(
    given: ScoreTable, weights: str, replicates: int, random: np.random.Generator, most_draws: int
) -> CalibrationTest:
    table = table_for_test(given, weights)
    if impossible(table):
        return CalibrationTest(0.0, 0.0, 0.0, 0.0, replicates)
    three = _Statistics.of(given, table, one_by_one=replicates * len(table) <= most_draws)
    drawn: Iterable[Array] = redrawn_residuals(table, replicates, random)
    if len(three.starts) < len(table):
        drawn = [redraw(CellRows.of(table), three.starts, replicates, random)]
    seen = np.concatenate([three.statistics(left) for left in (three.left(table), *drawn)])
    each = np.column_stack([_ranked(column) for column in seen.T])
    # from the middle of the steps, so that no p-value is 1
    together = (1.0 / np.tan(np.pi * (each - 0.5 / (replicates + 1)))).sum(axis=1)
    cox, spiegelhalter, grouped = each[0].tolist()
    return CalibrationTest(float(_ranked(together)[0]), cox, spiegelhalter, grouped, replicates)


class _Statistics(NamedTuple):
    """How residuals, of cells or of runs of cells, become three statistics.

    ``starts`` are the first cells of the runs; ``lines`` has a column for each direction of Cox's
    test, then one for Spiegelhalter's; ``groups`` begin at some of the runs.
    """

    starts: Index
    lines: Array
    groups: RiskGroups

    @classmethod
    def of(cls, given: ScoreTable, table: ScoreTable, *, one_by_one: bool) -> _Statistics:
        deciles = group_starts(given, GROUPS, "mass")
        starts = np.arange(len(table))
        if not one_by_one:
            starts = np.union1d(group_starts(given, RUNS, "mass"), deciles)
        tilt = 1.0 - 2.0 * table.scores
        spread = deviation(table, tilt)
        tilt = tilt / spread if spread > 0.0 else np.zeros(len(table))
        lines = np.column_stack((*score_directions(table), tilt))
        variance = chance_variance(table)
        whole = np.add.reduceat(variance, starts)[:, None]
        summed = np.add.reduceat(variance[:, None] * lines, starts)
        lines = np.divide(summed, whole, out=np.zeros_like(summed), where=whole > 0.0)
        groups = RiskGroups.of(table, deciles)
        return cls(starts, lines, groups._replace(starts=np.searchsorted(starts, deciles)))

    def left(self, table: ScoreTable) -> Array:
        """Σ w(y − p) of each run of the data, as a single sample."""
        return np.add.reduceat(residuals(table), self.starts)[None, :]

    def statistics(self, left: Array) -> Array:
        """The three of each sample: shape (samples, 3)."""
        along = left @ self.lines
        grouped = self.groups.parts(np.add.reduceat(left, self.groups.starts, axis=1))
        with np.errstate(over="ignore"):
            line = (along[:, :-1] ** 2).sum(axis=1)
        found = np.column_stack((line, np.abs(along[:, -1]), grouped.sum(axis=1)))
        return np.asarray(np.minimum(found, LARGEST))


def _ranked(values: Array) -> Array:
    """The share of samples whose value is at least as large as that of each sample.

    >>> _ranked(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [0.5, 1.0, 0.5, 0.75]
    """
    largest = float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))
    steps = np.rint(values / (largest or 1.0) / ROUNDING)
    smaller = np.searchsorted(np.sort(steps), steps)
    return np.asarray((len(values) - smaller) / len(values))  # 10 of 200 are 0.05, to the bit
