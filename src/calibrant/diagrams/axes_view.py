"""Which part of the axes a diagram shows, on which scale, and where the ticks are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.bins import window
from calibrant.diagrams.curve_value import Curve
from calibrant.losses import logit, sigmoid

#: the part of the weight at each end that a log-odds axis may leave out
BEYOND = 0.005
#: DECADES are the ticks of log-odds axes, STOPS the places where these axes may end
DECADES = tuple(float(f"1e-{k}") for k in range(9, 0, -1))
DECADES = (*DECADES, 0.5, *(1 - tick for tick in reversed(DECADES)))
HALVES = sorted(float(f"{digit}e-{k}") for k in range(1, 10) for digit in (1, 2, 5))
STOPS = (*HALVES, *(1 - stop for stop in reversed(HALVES[:-1])))
#: 1 − x is rounded, so ends and ticks are compared with this tolerance
SLACK = 1e-10
#: the most ticks along an axis
MOST_TICKS = 7
#: the most letters of a tick's figure, on average
LETTERS = 4.6


@dataclass(frozen=True)
class Frame:
    """A part of both axes, from ``low`` to ``high``, as probabilities or as their log-odds."""

    low: float
    high: float
    axes: str = "probability"

    def ends(self, room: float) -> tuple[float, float]:
        """The ends, moved outwards by ``room``, a part of the frame's length."""
        if self.is_logit:
            low, high = logit(np.array([self.low, self.high]))
            more = room * (high - low)
            wide = sigmoid(np.array([low - more, high + more]))
            return float(wide[0]), float(wide[1])
        more = room * (self.high - self.low)
        return self.low - more, self.high + more

    def inside(self, values: Array) -> Array:
        """The values; on log-odds axes those beyond the frame (such as 0 and 1) at its edge."""
        return np.clip(values, self.low, self.high) if self.is_logit else values

    def has_long_ticks(self, short: float) -> bool:
        """Whether ticks have many digits: on probability axes, if these are shorter."""
        if self.is_logit:
            return max(map(len, map(tick_words, self.ticks()))) > 5
        return self.high - self.low < short

    @property
    def is_logit(self) -> bool:
        return self.axes == "logit"

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        """The ticks of log-odds axes, at most so many.

        >>> Frame(0.001, 0.99, "logit").ticks()
        [0.001, 0.01, 0.1, 0.5, 0.9, 0.99]
        >>> Frame(0.001, 0.02, "logit").ticks()
        [0.001, 0.002, 0.005, 0.01, 0.02]
        """
        shown = self._among(DECADES)
        shown = self._among(STOPS) if len(shown) < 3 else shown
        middle = shown.index(0.5) if 0.5 in shown else 0
        for step in range(-(-len(shown) // most), len(shown) + 1):
            kept = [tick for place, tick in enumerate(shown) if (place - middle) % step == 0]
            if sum(len(tick_words(tick)) for tick in kept) <= LETTERS * most:
                return kept
        return shown[:1]

    def _among(self, ticks: Sequence[float]) -> list[float]:
        return [t for t in ticks if self.low * (1 - SLACK) <= t <= self.high * (1 + SLACK)]


def tick_words(tick: float) -> str:
    """A tick's figure, as short as it can be.

    >>> [tick_words(t) for t in (2e-5, 0.001, 0.5, 0.99, 1 - 1e-4, 1 - 1e-8)]
    ['2e-5', '0.001', '0.5', '0.99', '0.9999', '1-1e-8']
    """
    if tick < 0.5:
        return f"{tick:g}" if tick > 9e-4 else f"{tick:.0e}".replace("e-0", "e-")
    return f"{tick:.5g}" if tick < 1 - 5e-5 else "1-" + tick_words(1.0 - tick)


def span_of(tables: Iterable[ScoreTable], axes: str) -> tuple[float, float]:
    """The part of the axis that the histogram of all these predictions covers."""
    if axes == "probability":
        ends = [(float(table.scores[0]), float(table.scores[-1])) for table in tables]
    else:
        ends = [_bulk(table) for table in tables]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return window(low, high) if axes == "probability" else round_odds(low, high)


def cell_edges(low: float, high: float, count: int, *, odds: bool) -> Array:
    """The edges of cells from low to high, of equal width as they are or as log-odds."""
    part = np.arange(count + 1) / count
    if not odds:
        return low + (high - low) * part
    first, last = logit(np.array([low, high]))
    edges = sigmoid(first + (last - first) * part)
    edges[0], edges[-1] = low, high
    return np.asarray(edges)


def frame_of(curves: Sequence[Curve]) -> Frame:
    """The frame that holds all points, all bands and nearly all predictions."""
    first = curves[0]
    if first.axes == "probability":
        columns = [
            column
            for c in curves
            for column in (c.bulk, c.x, c.y, c.lower, c.upper)
            if column is not None
        ]
        return Frame(*window(min(map(min, columns)), max(map(max, columns))))
    low = min(c.histogram_edges[0] for c in curves)
    high = max(c.histogram_edges[-1] for c in curves)
    heights = np.concatenate([_known(c) for c in curves])
    if len(heights):
        low, high = min(low, heights.min()), max(high, heights.max())
    return Frame(*round_odds(float(low), float(high)), "logit")


def _known(curve: Curve) -> Array:
    """The fractions of groups that hold at least half an effective row of each class."""
    rarer = np.minimum(curve.fraction, 1 - curve.fraction)
    return curve.fraction[curve.effective * rarer >= 0.5]


def _bulk(table: ScoreTable) -> tuple[float, float]:
    """The scores between which all but 0.5 % of the weight at either end lies."""
    mass = np.cumsum(table.weight)
    first, last = np.searchsorted(mass, mass[-1] * np.array([BEYOND, 1 - BEYOND]))
    return float(table.scores[first]), float(table.scores[min(last, len(mass) - 1)])


def round_odds(low: float, high: float) -> tuple[float, float]:
    """The ends moved outwards to 1, 2 or 5 times a power of ten, counted from 0 or from 1.

    >>> round_odds(0.0003, 0.13), round_odds(0.0, 0.93), round_odds(0.5, 0.5)
    ((0.0002, 0.2), (1e-09, 0.95), (0.2, 0.8))
    """
    start = int(np.searchsorted(STOPS, low * (1 + SLACK), side="right")) - 1
    end = int(np.searchsorted(STOPS, high * (1 - SLACK)))
    start, end = max(start, 0), min(end, len(STOPS) - 1)
    if end - start < 2:
        start, end = max(start - 1, 0), min(end + 1, len(STOPS) - 1)
    return float(STOPS[start]), float(STOPS[end])
