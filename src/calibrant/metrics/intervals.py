"""The interval of each measure of one set of predictions, and the options of all intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibrant.arrays import Array
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import table_in_rows
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_number, check_whole
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.cox_line import CoxLine, OffsetIntercept, cox_line, offset_intercept
from calibrant.metrics.interval_formulas import (
    Binned,
    Moments,
    Span,
    area_interval,
    bin_sums,
    brier_losses,
    gap_interval,
    largest_gap_interval,
    log_losses,
    mean_interval,
    moments,
    share_interval,
)
from calibrant.metrics.measure import OfCurve
from calibrant.metrics.redrawn_tables import FEWEST, Chance, OfRedrawn, chance_of
from calibrant.metrics.smooth_curve import chance_of_curve
from calibrant.metrics.weighted_cells import check_weights, class_columns, class_sizes

#: the total weight and the effective number of rows may differ by this factor without a note
WORTH_SAYING = 1.25


class IntervalOptions(NamedTuple):
    """What intervals are asked for."""

    level: float
    replicates: int
    weights: str
    seed: int | None

    @property
    def rng(self) -> np.random.Generator:
        """A new generator with the same seed for every table."""
        return np.random.default_rng(self.seed)


def read_interval_options(
    level: Any, replicates: Any, weights: Any, random_state: Any
) -> IntervalOptions | None:
    """The options within their limits; None where no intervals are wanted."""
    check_weights(weights)
    replicates = check_whole("replicates", replicates, 100)
    seed = None if random_state is None else check_whole("random_state", random_state, 0)
    if level is None:
        return None
    if isinstance(level, str):
        raise ParameterError(f"level must be a number such as 0.95, or None, but {level!r} came.")
    return IntervalOptions(check_number("level", level, 0.0, 1.0), replicates, weights, seed)


class MeasureIntervals:
    """The intervals of one set of predictions: a method for each measure, by name.

    Subclasses know how the two mean losses vary, and add the measures that only they have.

    Attributes
    ----------
    values : dict of str to float
        The measures themselves.
    size : float
        How many rows of equal weight carry as much information.
    notes : list of str
        Which intervals are missing, and why.
    """

    #: how many columns the squared error of a row is summed over, and the largest such sum
    columns = 1
    largest_square = 1.0

    def __init__(
        self, values: dict[str, float], size: float, bins: Bins, options: IntervalOptions
    ) -> None:
        self.values, self.size, self.bins, self.options = values, size, bins, options
        self.level = options.level
        self.notes: list[str] = []
        if not self.enough:
            self.notes.append(f"no intervals: {size:.3g} rows are too few")

    @property
    def enough(self) -> bool:
        """Whether there are at least two rows, without which there is no interval."""
        return self.size >= 2.0 - 1e-9

    @property
    def log_moments(self) -> Moments:
        """Mean, error and skewness of the log loss."""
        raise NotImplementedError

    @property
    def square_moments(self) -> Moments:
        """Mean, error and skewness of the Brier score."""
        raise NotImplementedError

    def log_loss(self) -> Span:
        """Student's interval, corrected for skewness."""
        return mean_interval(self.log_moments, self.level)

    def brier(self) -> Span:
        """Student's interval, corrected for skewness."""
        return mean_interval(self.square_moments, self.level)

    def rmse(self) -> Span:
        """The roots of the ends for the Brier score."""
        low, high = self.brier()
        high = min(high, self.largest_square)
        return math.sqrt(max(low, 0.0) / self.columns), math.sqrt(high / self.columns)

    def accuracy(self) -> Span:
        """Wilson's interval."""
        return share_interval(self.values["accuracy"], self.size, self.level)


class TableIntervals(MeasureIntervals):
    """The intervals of a table of predictions of two classes.

    ``table`` holds the predictions as probabilities, ``ranked`` the scores as they came, and
    ``sample`` the table with its weights in units of rows. ``redrawn`` names the measures
    whose intervals come from tables drawn again, ``of_curve`` those of curves drawn again;
    ``chance`` is what chance does to each of them.
    """

    def __init__(
        self,
        table: ScoreTable,
        ranked: ScoreTable,
        values: dict[str, float],
        bins: Bins,
        options: IntervalOptions,
        redrawn: Mapping[str, OfRedrawn],
        of_curve: Mapping[str, OfCurve] | None = None,
    ) -> None:
        self.table, self.ranked = table, ranked
        self.sample = table_in_rows(table, options.weights)
        super().__init__(values, self.sample.effective_size, bins, options)
        self.chance: dict[str, Chance] = {}
        of_curve = of_curve or {}
        drawn = [name for name in (*redrawn, *of_curve) if name in values]
        if not self.enough or not drawn:
            return
        reason = _too_few(self.sample)
        drawing = (options.weights, options.level, options.replicates)
        if reason:
            without = ", ".join(drawn)
            self.notes.append(f"no interval for {without}: {reason}; the others may be too narrow")
        else:
            if redrawn:
                self.chance = chance_of(redrawn, table, *drawing, options.rng)
            if of_curve:
                self.chance |= chance_of_curve(of_curve, table, *drawing, options.rng)

    @cached_property
    def log_moments(self) -> Moments:
        return self._moments(log_losses(self.sample.scores))

    @cached_property
    def square_moments(self) -> Moments:
        return self._moments(brier_losses(self.sample.scores))

    def _moments(self, losses: tuple[Array, Array]) -> Moments:
        return moments(self.sample.scores, class_columns(self.sample), losses)

    @cached_property
    def binned(self) -> Binned:
        """The sums of each bin."""
        return bin_sums(self.sample, self.bins)

    def ece(self) -> Span:
        """The interval from the normal distribution of the bins' gaps."""
        return gap_interval(self.binned, self.level)

    def mce(self) -> Span:
        """The interval from the binomial limits of all bins."""
        b = self.binned
        return largest_gap_interval(b.size, b.rate, b.predicted, self.level)

    def auc(self) -> Span:
        """Wilson's interval, with DeLong's variance."""
        return area_interval(table_in_rows(self.ranked, self.options.weights), self.level)

    @cached_property
    def line(self) -> CoxLine:
        """Cox's line, with its variance."""
        return cox_line(self.sample)

    @cached_property
    def offset(self) -> OffsetIntercept:
        """The intercept at slope 1, with its error."""
        return offset_intercept(self.sample)

    def redrawn(self, name: str) -> Span | None:
        """The interval from what was drawn again, if there is one.

        The bias is taken off the lower end only, so that both ends are safe.
        """
        if name not in self.chance:
            return None
        value, (bias, half, _) = self.values[name], self.chance[name]
        return value - bias - half, value + half


def _too_few(sample: ScoreTable) -> str:
    """Why measures that need drawn tables get no interval; empty if they do."""
    negatives, positives = class_sizes(sample)
    for word, size in (("positives", positives), ("negatives", negatives)):
        if size < FEWEST - 1e-9:
            return f"it takes {FEWEST:g} {word} or more, and {size:.3g} came"
    return ""


def weight_note(data: ScoreTable | ScoreMatrix, weights: str) -> list[str]:
    """A note where weights that are not repetitions would make intervals too narrow or wide."""
    total, size = data.total, data.effective_size
    if weights != "counts" or total / WORTH_SAYING <= size <= total * WORTH_SAYING:
        return []
    return [
        f"intervals take weights for numbers of rows, {total:.4g} in all; if each row is one "
        f'observation they are worth {size:.4g}: then pass weights="importance"'
    ]
