"""A fitted map as a line to draw: sampled between its knots, with its jumps as jumps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import AXES, Frame, one_of, round_odds
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.losses import logit, sigmoid
from calibrant.metrics.arguments import check_whole
from calibrant.result_tables import PlainFields
from calibrant.rules.base import Map, Rule, VectorMap

NONE = np.empty(0)

#: log-odds axes show at least this
ODDS = (0.001, 0.999)
#: a smaller jump at a knot is only rounding
BEND = 1e-6
#: of more knots, which no picture could show, only every second, third, … is kept
MOST_KNOTS = 5000
#: the map is read on both sides of a knot, this part of the range away from it: closer values
#: may be the same after the rounding of a link
ASIDE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class MapCurve(PlainFields, Frozen):
    """A fitted map as a polygon over the axis of its scores.

    Attributes
    ----------
    x : array of shape (m,)
        Ascending scores; a knot stands twice, once for either side.
    p : array of shape (m,)
        The map there; at a jump first the value before, then the value after it.
    lower, upper : arrays of shape (m,), or None
        The band of an `Interval` map.
    level : float or None
        The level of that band, where it has one.
    knots : array of shape (k,)
        Where the pieces of a piecewise map meet, inside the range shown.
    domain : {"probability", "score"}
        Whether the map reads probabilities, or scores on an axis of their own.
    axes : {"probability", "logit"}
        The scale on which the points are spread evenly.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> line = map_curve(Piecewise.step([0.5], [0.25, 0.75]), n=2)
    >>> line
    MapCurve(probability from 0 to 1, 1 knot)
    >>> line.x.tolist(), line.p.tolist()
    ([0.0, 0.5, 0.5, 1.0], [0.25, 0.25, 0.75, 0.75])
    """

    x: Array
    p: Array
    lower: Array | None
    upper: Array | None
    level: float | None
    knots: Array
    domain: str
    axes: str = "probability"

    @property
    def frame(self) -> Frame:
        """The probabilities to show: all of them, or on log-odds axes the range of the map."""
        if self.axes == "probability":
            return Frame(0.0, 1.0)
        heights = self.p[(self.p > 0) & (self.p < 1)]
        ends = self.x[[0, -1]] if self.domain == "probability" else NONE
        seen = np.concatenate((heights, ends))
        low, high = (seen.min(), seen.max()) if len(seen) else (0.5, 0.5)
        return Frame(*round_odds(float(low), float(high)), "logit")

    @property
    def corners(self) -> tuple[Array, Array]:
        """The knots where the map bends and does not jump, as points."""
        at = np.searchsorted(self.x, self.knots)
        bends = np.abs(self.p[at] - self.p[np.minimum(at + 1, len(self.p) - 1)]) <= BEND
        return self.knots[bends], self.p[at[bends]]

    def __repr__(self) -> str:
        plural = "s" if len(self.knots) != 1 else ""
        band = ", with a band" if self.lower is not None else ""
        return (
            f"MapCurve({self.domain} from {self.x[0]:g} to {self.x[-1]:g}, "
            f"{len(self.knots)} knot{plural}{band})"
        )


def map_curve(
    fitted: Any,
    *,
    lo: float | None = None,
    hi: float | None = None,
    n: int = 512,
    axes: str = "probability",
) -> MapCurve:
    """The line of a fitted map: what probability it gives to which score.

    Parameters
    ----------
    fitted : Map, Fitted, or anything with ``map_``
        A map of one score.
    lo, hi : float, optional
        The range of scores; by default [0, 1] for maps of probabilities, and where the map moves
        for others (the knots, or σ from −6 to 6).
    n : int, default=512
        Number of points besides the knots, closer together near the ends.
    axes : {"probability", "logit"}, default="probability"
        With ``"logit"`` the points of a map of probabilities are spread evenly over the log-odds,
        by default from 0.001 to 0.999, or further where there are knots.

    Returns
    -------
    MapCurve

    Notes
    -----
    A map is taken to read probabilities if it reads logits of its score or if its knots lie in
    [0, 1]; a bare sigmoid of the score is taken to read margins. ``lo`` and ``hi`` overrule the
    range. A `Segmented` map is shown by its default. Above 5000 knots only every second, third, …
    is kept. O((n + k)·c) for k knots and a cost of c per score.

    Examples
    --------
    >>> import calibrant as cal
    >>> c = cal.Isotonic().fit([-2.0, -1.0, 1.0, 2.0], [0, 1, 0, 1])
    >>> map_curve(c)
    MapCurve(score from -1.8 to 1.8, 2 knots)
    """
    one_of("axes", axes, AXES)
    fitted_map = map_of(fitted)
    start, end = fitted_map.span
    domain = "probability" if start >= 0.0 and end <= 1.0 else "score"
    odds = axes == "logit" and domain == "probability"
    if odds:
        start, end = _span_of_odds(fitted_map)
    low, high = _range(start if lo is None else lo, end if hi is None else hi)
    n = check_whole("n", n, 2)
    knots = np.unique(fitted_map.knots(low, high))
    knots = knots[(knots > low) & (knots < high)]
    knots = knots[:: len(knots) // MOST_KNOTS + 1]
    x, at, order = _places(knots, (_grid_of_odds if odds else _grid)(low, high, n))
    lower = upper = level = None
    if fitted_map.band is not None:
        low_map, high_map, level = fitted_map.band
        lower, upper = low_map(at)[order], high_map(at)[order]
    return MapCurve(x, fitted_map(at)[order], lower, upper, level, knots, domain, axes)


def map_of(fitted: Any) -> Map:
    """The map of one score inside a Map, a Fitted or anything with ``map_``."""
    inner = fitted.rule if isinstance(fitted, Fitted) else getattr(fitted, "map_", fitted)
    if isinstance(inner, VectorMap):
        raise InputError(
            f"only a map of one score can be drawn, but {type(inner).__name__} maps one score per "
            "class. Draw its members, or the reliability diagram of one class."
        )
    if hasattr(fitted, "rule_") or (isinstance(inner, Rule) and not isinstance(inner, Map)):
        raise InputError(
            f"only a map of one score can be drawn, but {type(fitted).__name__} looks at more than "
            "the score. Draw the reliability diagram of its probabilities."
        )
    if not isinstance(inner, Map):
        raise InputError(
            "a Map, a Fitted or a fitted calibrator (with map_) must come, but "
            f"{type(fitted).__name__} came. Fit it first."
        )
    return inner


def _range(lo: Any, hi: Any) -> tuple[float, float]:
    for name, value in (("lo", lo), ("hi", hi)):
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ParameterError(f"{name} must be a finite number or None, but {value!r} came.")
    if not lo < hi:
        raise ParameterError(f"lo must be below hi, but {lo:g} and {hi:g} came.")
    return float(lo), float(hi)


# --- sampling -----------------------------------------------------------------------------------


def _grid(lo: float, hi: float, n: int) -> Array:
    """n points from lo to hi, dense near both ends, where maps of logits are steep."""
    part = (1 - np.cos(np.linspace(0.0, np.pi, n))) / 2
    return np.clip(lo * (1 - part) + hi * part, lo, hi)


def _grid_of_odds(lo: float, hi: float, n: int) -> Array:
    """n points from lo to hi, evenly over their log-odds."""
    if not 0.0 < lo < hi < 1.0:
        raise ParameterError(
            f"lo and hi must lie between 0 and 1 on log-odds axes, but {lo:g} and {hi:g} came."
        )
    ends = logit(np.array([lo, hi]))
    grid = sigmoid(np.linspace(ends[0], ends[1], n))
    return np.clip(grid, lo, hi)


def _span_of_odds(fitted_map: Map) -> tuple[float, float]:
    knots = fitted_map.knots(0.0, 1.0)
    knots = knots[(knots > 0.0) & (knots < 1.0)]
    low, high = ODDS
    if len(knots):
        low, high = min(low, float(knots.min())), max(high, float(knots.max()))
    return round_odds(low, high)


def _places(knots: Array, grid: Array) -> tuple[Array, Array, Index]:
    """The scores of the line, ascending; where the map is read; and the order that sorts this.

    A knot stands twice, and is read on both of its sides.
    """
    lo, hi = grid[0], grid[-1]
    aside = np.maximum(8 * np.spacing(np.abs(knots)), ASIDE * (hi / 2 - lo / 2))
    x = np.concatenate((knots, knots, grid))
    order = np.argsort(x, kind="stable")
    at = np.concatenate((knots - aside, knots + aside, grid))
    return x[order], np.clip(at, lo, hi), order
