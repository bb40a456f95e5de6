"""The interval of each measure's change, from two sets of predictions for the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_table import ScoreTable
from calibrant.metrics.binned import group_starts
from calibrant.metrics.interval_formulas import (
    Moments,
    SampleCells,
    Span,
    binned,
    brier_losses,
    log_losses,
    mean_interval,
    moments,
    normal,
    row_error,
    without_chance,
)
from calibrant.metrics.redrawn_tables import Chance, isotonic_curve

__all__ = ["Pairs", "Side", "against_curve", "curve_against_base", "placements", "share_change"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Side(NamedTuple):
    """The predictions of one side, row by row, and what was found for the whole of it."""

    p: Array
    rank: Array  # scores as they came: σ may have merged large margins
    hit: Flags
    table: ScoreTable
    ranked: ScoreTable
    sample: SampleCells  # the table's cells, weights as they are meant
    values: dict[str, float]
    chance: dict[str, Chance]


class Pairs(NamedTuple):
    """Both sides of the same rows, and a method for each way to make the interval of a change.

    ``weight`` and ``squares`` are the rows' w and w² as the weights are meant.
    """

    after: Side
    before: Side
    weight: Array
    squares: Array
    bins: int
    level: float

    def standard_error(self, influence: Array) -> float:
        """Of a quantity that each row moves by its influence."""
        return row_error(influence, self.weight, self.squares)

    def _moments(self, losses: tuple[Array, Array]) -> Moments:
        """Of the mean of what each row loses if it is a negative, and if it is a positive."""
        hit = self.after.hit
        columns = (np.where(at, w, 0.0) for w in (self.weight, self.squares) for at in (~hit, hit))
        return moments(SampleCells(self.after.p, *columns), losses)

    def _mean(self, losses: Callable[[Array], tuple[Array, Array]]) -> Span:
        """Student's, of the differences row by row."""
        new, old = losses(self.after.p), losses(self.before.p)
        with np.errstate(invalid="ignore"):  # ∞ − ∞, where it did not come
            first, second = (
                np.where(np.isfinite(a - b), a - b, 0.0) for a, b in zip(new, old, strict=True)
            )
        return mean_interval(self._moments((first, second)), self.level)

    def log_loss(self) -> Span:
        """Student's, of the differences row by row."""
        return self._mean(log_losses)

    def brier(self) -> Span:
        """Student's, of the differences row by row."""
        return self._mean(brier_losses)

    def rmse(self) -> Span | None:
        """By the slope of the root: each row moves it by its loss / 2√(mean loss)."""
        sides = (self.after, self.before)
        roots = [side.values["rmse"] for side in sides]
        if not all(roots):
            return None
        new, old = (brier_losses(side.p) for side in sides)
        first, second = (
            a / (2 * roots[0]) - b / (2 * roots[1]) for a, b in zip(new, old, strict=True)
        )
        m = self._moments((first, second))
        low, high = mean_interval(m._replace(mean=roots[0] - roots[1]), self.level)
        return max(low, -1.0), min(high, 1.0)

    def accuracy(self) -> Span:
        """Bonett and Price's."""
        new, old = ((side.p >= 0.5) == side.hit for side in (self.after, self.before))
        return share_change(new, old, self.weight, self.squares, self.level)

    def auc(self) -> Span:
        """DeLong's interval for correlated areas."""
        sides = (self.after, self.before)
        new, old = (placements(s.ranked, s.rank, s.hit, s.values["auc"]) for s in sides)
        half = normal(self.level) * self.standard_error(new - old)
        change = self.after.values["auc"] - self.before.values["auc"]
        return max(change - half, -1.0), min(change + half, 1.0)

    def ece(self) -> Span:
        """The chance part is taken off one side and left on the other, for each end."""
        (full, pure, pull), (old_full, old_pure, old_pull) = (
            _gap_parts(side, self.bins) for side in (self.after, self.before)
        )
        half = normal(self.level) * self.standard_error(pull - old_pull)
        return max(pure - old_full - half, -1.0), min(full - old_pure + half, 1.0)

    def curve(
        self, name: str, influence: Callable[[Side], Array], noise_of: str = ""
    ) -> Span | None:
        """Of a measure behind isotonic regression: each end takes the bias off one side.

        ``influence`` says how far each row moves the measure; ``noise_of`` is the measure that
        tells how much chance alone moves it, if that is another one.
        """
        sides = (self.after, self.before)
        if not all(name in side.chance for side in sides):
            return None
        new, old = (influence(side) for side in sides)
        bias = [side.chance[name].bias for side in sides]
        noise = [side.chance[noise_of or name].noise for side in sides]
        error = math.hypot(self.standard_error(new - old), *noise)
        half = normal(self.level) * error
        change = self.after.values[name] - self.before.values[name]
        return max(change - bias[0] - half, -1.0), min(change + bias[1] + half, 1.0)


def share_change(new: Flags, old: Flags, weight: Array, squares: Array, level: float) -> Span:
    """Bonett and Price's interval (2012): one case more in each direction, so that no change in
    few rows is no certainty."""
    total = float(weight.sum())
    size = total**2 / float(squares.sum())
    gained, lost = (size * float(weight[at].sum()) / total for at in (new & ~old, old & ~new))
    up, down = (gained + 1.0) / (size + 2.0), (lost + 1.0) / (size + 2.0)
    half = normal(level) * math.sqrt((up + down - (up - down) ** 2) / (size + 2.0))
    return max(up - down - half, -1.0), min(up - down + half, 1.0)


def placements(table: ScoreTable, rank: Array, hit: Flags, area: float) -> Array:
    """How far each row moves the AUC.

    A positive by the negatives below it, a negative by the positives above it.
    """
    n0, n1 = table.negative, table.positive
    cell = np.searchsorted(table.scores, rank)
    below = (np.cumsum(n0) - n0 / 2) / table.total_negative
    above = 1.0 - (np.cumsum(n1) - n1 / 2) / table.total_positive
    share1 = table.total_positive / table.total
    return np.where(hit, (below[cell] - area) / share1, (above[cell] - area) / (1.0 - share1))


def _gap_parts(side: Side, bins: int) -> tuple[float, float, Array]:
    """ECE, ECE without its chance part, and how far each row moves it."""
    starts = group_starts(side.table, bins, "width")
    b = binned(side.sample, starts)
    borders = side.table.scores[starts[1:]]
    sign = np.sign(b.gap)[np.searchsorted(borders, side.p, side="right")]
    pure = float(without_chance(b.gap, b.error).sum())
    return float(np.abs(b.gap).sum()), max(pure, 0.0), sign * (side.p - side.hit)


def against_curve(side: Side) -> Array:
    """How far each row moves the distance of the predictions from the curve."""
    curve = isotonic_curve(side.sample, side.p)
    return (side.p - side.hit) ** 2 - (curve - side.hit) ** 2


def curve_against_base(side: Side) -> Array:
    """How far each row moves what the curve gains over the base rate."""
    curve = isotonic_curve(side.sample, side.p)
    base = side.table.total_positive / side.table.total
    return (base - side.hit) ** 2 - (curve - side.hit) ** 2
