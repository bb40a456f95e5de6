"""The axes of the page's pictures: where a probability stands, and which numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibrant.array_types import Array
from calibrant.diagrams.bins import CORNER, window
from calibrant.losses import logit, sigmoid

#: probabilities that may be ticks of a log-odds axis
LOGIT_TICKS = tuple(
    sorted(
        {float(f"1e-{k}") for k in range(2, 10)}
        | {0.1, 0.25, 0.5, 0.75, 0.9}
        | {1.0 - float(f"1e-{k}") for k in range(2, 10)}
    )
)
#: a log-odds axis goes from this probability to 1 − this at most
FURTHEST = 1e-9


@dataclass(frozen=True)
class PageAxis:
    """A scale from ``low`` to ``high``, either as they are or by their logit, with its ticks.

    ``words`` are what stands at the ticks, where that is not their number.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    logit: bool = False
    words: tuple[str, ...] = ()

    def said(self, tick: float) -> str:
        """What stands at a tick."""
        return self.words[self.ticks.index(tick)] if self.words else numbered(tick)

    def part(self, values: Array | float) -> Array:
        """How far along the axis values are, from 0 to 1; what lies beyond stands at the end."""
        ends = np.array([self.low, self.high])
        at = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.logit:
            ends, at = logit(ends), logit(at)
        return np.asarray((at - ends[0]) / (ends[1] - ends[0]))


def numbered(value: float) -> str:
    """A number without needless digits, and with a true minus.

    >>> numbered(0.001), numbered(0.2), numbered(-1e-9)
    ('0.001', '0.2', '−1e−9')
    """
    if value == 0.0:
        return "0"
    text = f"{value:.10g}" if abs(value) >= 1e-4 else f"{value:.3g}"
    if "e" in text:
        digits, power = text.split("e")
        text = f"{digits}e{int(power)}"
    return text.replace("-", "−")


def ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Round numbers between low and high, about as many as asked for.

    >>> ticks(0.0, 1.0), ticks(-3.0, 9.0)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (-2.0, 0.0, 2.0, 4.0, 6.0, 8.0))
    """
    wide = (high / count) - (low / count)
    if not wide > 0 or not math.isfinite(wide):
        return (low,)
    power = 10.0 ** math.floor(math.log10(wide))
    spans = {m * power: _multiples(low, high, m * power) for m in (1, 2, 5, 10)}
    step, (first, last) = min(spans.items(), key=lambda item: abs(item[1][1] - item[1][0] - count))
    places = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(i * step, places) + 0.0 for i in range(first, last + 1))


def _multiples(low: float, high: float, step: float) -> tuple[int, int]:
    """The first and the last multiple of the step between low and high."""
    return math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)


def linear_axis(low: float, high: float) -> PageAxis:
    """An axis of plain numbers."""
    return PageAxis(low, high, ticks(low, high))


def probability_axis(columns: Iterable[Array]) -> PageAxis:
    """[0, 1], or the corner of it that holds all of the values."""
    low, high = _ends(columns)
    if low >= 0.0 and CORNER < high <= 0.5:
        return linear_axis(0.0, next(end for end in (0.3, 0.4, 0.5) if high <= end))
    return linear_axis(*window(low, high))


def logit_axis(columns: Iterable[Array]) -> PageAxis:
    """An axis of log-odds around all values inside (0, 1); 0 and 1 stand at its ends.

    >>> logit_axis([0.02, 0.4]).ticks
    (0.01, 0.1, 0.25, 0.5)
    """
    values = np.concatenate([np.atleast_1d(np.asarray(c, dtype=np.float64)) for c in columns])
    inside = values[(values > 0.0) & (values < 1.0)]
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.1, 0.9)
    z = logit(np.clip([low, high], FURTHEST, 1.0 - FURTHEST))
    reach = max(float(z[1] - z[0]), 1.0)
    outer = sigmoid(np.array([z[0] - 0.08 * reach, z[1] + 0.08 * reach]))
    below = [w for w in LOGIT_TICKS if w <= outer[0]]
    above = [w for w in LOGIT_TICKS if w >= outer[1]]
    # the axis ends at the next tick if that is near
    first = below[-1] if below and logit(np.array(below[-1])) > z[0] - 1.2 else float(outer[0])
    last = above[0] if above and logit(np.array(above[0])) < z[1] + 1.2 else float(outer[1])
    written = tuple(w for w in LOGIT_TICKS if first <= w <= last)
    if len(written) > 8:  # quarters make way for powers of ten
        written = tuple(w for w in written if w not in (0.25, 0.75))
    return PageAxis(first, last, written, logit=True)


def _ends(columns: Iterable[Array]) -> tuple[float, float]:
    ends = [(float(np.min(c)), float(np.max(c))) for c in columns if len(c)]
    return min(low for low, _ in ends), max(high for _, high in ends)


@dataclass(frozen=True)
class PlotArea:
    """A rectangle of a picture, in its units, with the axes along it."""

    left: float
    top: float
    width: float
    height: float
    x: PageAxis
    y: PageAxis

    def across(self, values: Array | float) -> Array:
        return np.asarray(self.left + self.width * self.x.part(values))

    def down(self, values: Array | float) -> Array:
        return np.asarray(self.top + self.height * (1.0 - self.y.part(values)))


def path_of(x: Array, y: Array, *, closed: bool = False) -> str:
    """The d of an SVG path through points, to a tenth of a unit, without points that add nothing.

    >>> path_of(np.array([0, 5, 5.01, 10]), np.array([0, 5, 5, 0.25]))
    'M0 0L5 5L10 .2'
    """
    points = np.column_stack((x, y)).round(1)
    kept = [tuple(points[0])]
    for i in range(1, len(points)):
        now = tuple(points[i])
        if now == kept[-1]:
            continue
        flat = len(kept) > 1 and (
            kept[-1][1] == kept[-2][1] == now[1] or kept[-1][0] == kept[-2][0] == now[0]
        )
        between = flat and _between(kept[-2], kept[-1], now)
        if between:
            kept[-1] = now
        else:
            kept.append(now)
    words = (f"{_short(a)} {_short(b)}" for a, b in kept)
    return f"M{'L'.join(words)}{'Z' if closed else ''}"


def _between(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> bool:
    return all(min(p, r) <= q <= max(p, r) for p, q, r in zip(a, b, c, strict=True))


def _short(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith("0.") else text
