"""The interval of each measure of two classes, and the options that all intervals share."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_number, check_whole, check_word
from calibrant.metrics.interval_formulas import (
    SampleCells,
    Span,
    area_interval,
    brier_losses,
    gap_interval,
    largest_gap_interval,
    log_losses,
    mean_interval,
    moments,
    share_interval,
    weighing,
    width_bins,
)
from calibrant.metrics.redrawn_tables import Chance

__all__ = ["IntervalCase", "IntervalOptions", "read_interval_options", "weight_note"]

#: how far the total weight may be from the effective number of rows without a word
WORTH_SAYING = 1.25


class IntervalOptions(NamedTuple):
    """How intervals are wanted."""

    level: float
    replicates: int
    weights: str
    seed: int | None

    @property
    def rng(self) -> np.random.Generator:
        """The same numbers for every table."""
        return np.random.default_rng(self.seed)


def read_interval_options(
    level: Any, replicates: Any, weights: Any, random_state: Any
) -> IntervalOptions | None:
    """The options within their limits; None where no intervals are wanted."""
    check_word("weights", weights, weighing)
    replicates = check_whole("replicates", replicates, 100)
    seed = None if random_state is None else check_whole("random_state", random_state, 0)
    if level is None:
        return None
    if isinstance(level, str):
        raise ParameterError(f"level must be a number such as 0.95, or None, but {level!r} came.")
    return IntervalOptions(check_number("level", level, 0.0, 1.0), replicates, weights, seed)


class IntervalCase(NamedTuple):
    """What the interval of a measure may be made of, and a method for each way to make one.

    ``value`` is that of the measure, ``chance`` what chance does to it, if tables were drawn again.
    ``table`` holds the predictions, ``ranked`` the scores as they came, ``sample`` the cells of the
    table with weights as they are meant.
    """

    sample: SampleCells
    table: ScoreTable
    ranked: ScoreTable
    bins: int
    options: IntervalOptions
    value: float
    chance: Chance | None

    def log_loss(self) -> Span:
        """Student's, moved for skewness."""
        return mean_interval(moments(self.sample, log_losses(self.sample.p)), self.options.level)

    def brier(self) -> Span:
        """Student's, moved for skewness."""
        return mean_interval(moments(self.sample, brier_losses(self.sample.p)), self.options.level)

    def rmse(self) -> Span:
        """The roots of the ends for the Brier score."""
        low, high = self.brier()
        return math.sqrt(max(low, 0.0)), math.sqrt(min(high, 1.0))

    def ece(self) -> Span:
        """From the normal distribution of the bins' gaps."""
        return gap_interval(width_bins(self.table, self.sample, self.bins), self.options.level)

    def mce(self) -> Span:
        """From the binomial limits of all bins."""
        return largest_gap_interval(
            width_bins(self.table, self.sample, self.bins), self.options.level
        )

    def auc(self) -> Span:
        """Wilson's, with DeLong's variance."""
        return area_interval(weighing[self.options.weights](self.ranked), self.options.level)

    def accuracy(self) -> Span:
        """Wilson's."""
        return share_interval(self.value, self.sample.size, self.options.level)

    def redrawn(self) -> Span | None:
        """The value less its bias below, and with it above, so that both ends are safe."""
        if self.chance is None:
            return None
        bias, half, _ = self.chance
        return self.value - bias - half, self.value + half


def weight_note(total: float, size: float, weights: str) -> list[str]:
    """A word where weights that are not repetitions would make intervals too narrow or wide."""
    if weights != "counts" or total / WORTH_SAYING <= size <= total * WORTH_SAYING:
        return []
    return [
        f"intervals take weights for numbers of rows, {total:.4g} in all; if each row is one "
        f'observation they are worth {size:.4g}: then pass weights="importance"'
    ]
