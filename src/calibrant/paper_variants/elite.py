"""ELiTE of steps (degree 0) and of parabolas (degree 2); the paper found broken lines better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant.array_types import Array
from calibrant.kernels.paper_variants.fused_steps import FusedFit, FusedPoints
from calibrant.kernels.paper_variants.parabolas import Curves, ParabolaFit
from calibrant.kernels.simplify import simplify
from calibrant.maps import Piecewise

#: how far a map of parabolas is from them at most: half by drawing it, half by thinning it
CURVE_ERROR = 1e-5


class MapMaker(Protocol):
    """How fits become maps: the scores of the cells, the bounds of p, and what is read."""

    @property
    def x(self) -> Array: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    @property
    def input(self) -> str: ...
    def polygon(self, x: Array, value: Array) -> Piecewise: ...


class TrendKind(NamedTuple):
    """A degree of ELiTE: its solver, how a fit is drawn, and what is done with the average."""

    degree: int
    points: Callable[[Array, Array, Array], Any]
    draw: Callable[[Any, Any, Any], Piecewise]
    finish: Callable[[Any, Piecewise], Piecewise] = lambda _, average: average


def _draw_steps(make: MapMaker, _: FusedPoints, fit: FusedFit) -> Piecewise:
    """Steps halfway between neighbouring cells."""
    low, high = make.x[fit.at[1:] - 1], make.x[fit.at[1:]]
    half = low / 2 + high / 2
    cuts = np.where(half > low, half, high)
    return Piecewise.step(cuts, np.clip(fit.value, *make.bounds), make.input)


def _draw_curve(make: MapMaker, points: Curves, fit: ParabolaFit) -> Piecewise:
    place, value = points.polygon(fit, CURVE_ERROR / 2)
    x = make.x[0] * (1.0 - place) + make.x[-1] * place
    _, first = np.unique(x, return_index=True)
    return make.polygon(x[first], value[first])


def _thinned(make: MapMaker, average: Piecewise) -> Piecewise:
    """An average of polygons, with the knots that it needs."""
    x = average.x / max(float(np.abs(average.x).max()), 5e-324)  # widths could overflow
    kept = simplify(x, average.left, CURVE_ERROR / 2)
    return Piecewise.linear(average.x[kept], average.left[kept], input=make.input)


STEPS = TrendKind(0, FusedPoints, _draw_steps)
PARABOLAS = TrendKind(2, Curves, _draw_curve, _thinned)
