"""One rule after another, and the rule for intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.rules.base import Map, map_field, maps_field, number_field
from calibrant.rules.piecewise import Piecewise
from calibrant.rules.plan.nodes import Let, MapInput, Node, Variable
from calibrant.rules.sigmoids import Logistic


@dataclass(frozen=True, eq=False)
class Chain(Map):
    """Maps applied one after another: steps[-1](… steps[0](score)). The first is often a link.

    >>> from calibrant.maps import Logistic, Piecewise
    >>> margin = Logistic(0.0, (("x", 1.0),))
    >>> Chain((margin, Piecewise.step([0.5], [0.1, 0.9])))([-3.0, 3.0]).tolist()
    [0.1, 0.9]
    """

    kind: ClassVar[str] = "chain"

    steps: tuple[Map, ...] = field(metadata=maps_field("the steps of a chain"))

    def _check(self) -> None:
        if not self.steps:
            raise InputError("a chain must be a non-empty sequence of maps of one score.")

    def __call__(self, scores: ArrayLike) -> Array:
        value = np.asarray(scores, dtype=np.float64)
        for step in self.steps:
            value = step(value)
        return value

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def takes_probabilities(self) -> bool:
        return self.steps[0].takes_probabilities

    @property
    def looks_like_probabilities(self) -> bool:
        return self.steps[0].looks_like_probabilities

    @property
    def trend(self) -> int:
        return int(np.prod([step.trend for step in self.steps]))

    @property
    def size(self) -> int:
        return sum(step.size for step in self.steps)

    @property
    def span(self) -> tuple[float, float]:
        return self.steps[0].span

    def knots(self, low: float, high: float) -> Array:
        """The knots of the first step, and the scores at which the chain reaches knots of later
        steps."""
        first, *rest = self.steps
        found = first.knots(low, high)
        if not rest:
            return found
        inner = Chain(tuple(rest)).knots(0.0, 1.0)
        return np.concatenate((found, _preimage(first, inner, low, high)))

    # --- other maps made of it --------------------------------------------------------------------

    @property
    def simple(self) -> Map:
        """Without chains in chains. Steps, and all that follows them, become one table of steps.

        >>> step, shift = Piecewise.step([0.5], [0.25, 0.75]), Logistic(1.0, (("z", 1.0),))
        >>> Chain((step, shift)).simple
        Piecewise(1 knots at 0.5, steps)
        """
        steps: list[Map] = []
        for step in self.steps:
            steps.extend(_steps_of(step.simple))
        for i, step in enumerate(steps[:-1]):
            if isinstance(step, Piecewise) and step.is_step:
                steps[i:] = [step.then(Chain(tuple(steps[i + 1 :])))]
                break
        return _chain_of(steps)

    @property
    def stages(self) -> tuple[Map, ...]:
        return tuple(stage for step in self.steps for stage in step.stages)

    def lowered(self, axis: MapInput) -> Node:
        """A plan in which each map reads the variable set by the map before it. Maps after steps
        only change the values of the steps."""
        variables: list[Variable] = []
        node: Node = axis.score.node
        stages = self.stages
        for i, stage in enumerate(stages):
            own, later = stage.simple, stages[i + 1 :]
            if later and isinstance(own, Piecewise) and own.is_step:
                node = own.then(Chain(later)).lowered(axis)
                break
            node = own.lowered(axis)
            if later:
                variables.append(Variable(node))
                axis = axis.after(variables[-1], stage)
        for variable in reversed(variables):
            node = Let(variable, node)
        return node

    def of_logit(self, z: Array) -> Array:
        """The first step takes the logits, and the others what comes out."""
        first, *rest = self.steps
        value = first.of_logit(z)
        return Chain(tuple(rest))(value) if rest else value

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        """The chain with its last step corrected; it may get one step more."""
        *first, last = self._merged()
        return _chain_of([*first, *_steps_of(last.corrected(intercept, slope))])

    def shifted(self, factor: Array) -> Map:
        """The chain with its last step shifted if that is a table of steps; else the chain with a
        correction."""
        *first, last = self.steps
        if isinstance(last, Piecewise) and last.output == "probability" and last.is_step:
            return Chain((*first, last.shifted(factor)))
        return super().shifted(factor)

    def mirrored(self, centre: float) -> Map:
        return Chain((self.steps[0].mirrored(centre), *self.steps[1:]))

    def _merged(self) -> list[Map]:
        """The steps without chains in chains. A correction is merged into the formula before it."""
        merged: list[Map] = []
        for step in self.steps:
            for one in step._merged() if isinstance(step, Chain) else [step]:
                line = one.as_line if isinstance(one, Logistic) else None
                before = merged[-1] if merged else None
                if line is not None and isinstance(before, Logistic):
                    merged[-1:] = _steps_of(before.corrected(*line))
                else:
                    merged.append(one)
        return merged


def _steps_of(map_: Map) -> tuple[Map, ...]:
    """The steps of a chain; any other map is one step."""
    return map_.steps if isinstance(map_, Chain) else (map_,)


def _chain_of(steps: list[Map]) -> Map:
    """A chain of some steps; a single one as it is."""
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def _preimage(function: Callable[[Array], Array], values: Array, lo: float, hi: float) -> Array:
    """The points between lo and hi where a monotone function passes some values, by bisection."""
    ends = function(np.array([lo, hi]))
    sign = 1.0 if ends[1] >= ends[0] else -1.0
    values = values[(values > ends.min()) & (values <= ends.max())]
    low, high = np.full(len(values), lo), np.full(len(values), hi)
    for _ in range(80):
        middle = low / 2 + high / 2
        reached = sign * function(middle) >= sign * values
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def after_sigmoid(later: Map) -> Chain:
    """A map of margins, from a map of probabilities: margins pass through σ first."""
    return Chain((Logistic(0.0, (("x", 1.0),)), later))


# --- A map with a band around it ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Interval(Map):
    """A point map between a lower and an upper one (Venn–Abers, credible bands).

    Parameters
    ----------
    lower, upper, point : maps of one score
    level : float or None
        The probability that the band is meant to hold, if it has one.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> c = Piecewise.constant
    >>> band = Interval(c(0.1), c(0.4), c(0.2), 0.9)
    >>> band([7.0]).tolist(), [b.tolist() for b in band.bounds([7.0])]
    ([0.2], [[0.1], [0.4]])
    """

    kind: ClassVar[str] = "interval"

    lower: Map = field(metadata=map_field("lower, upper and point"))
    upper: Map = field(metadata=map_field("lower, upper and point"))
    point: Map = field(metadata=map_field("lower, upper and point"))
    level: float | None = field(default=None, metadata=number_field("level"))

    def _check(self) -> None:
        if self.level is not None and not 0 < self.level < 1:
            raise InputError(f"level must lie between 0 and 1, but {self.level:g} came.")

    def __call__(self, scores: ArrayLike) -> Array:
        return self.point(scores)

    @property
    def band(self) -> tuple[Map, Map, float | None]:
        return self.lower, self.upper, self.level

    @property
    def main(self) -> Map:
        return self.point

    def knots(self, low: float, high: float) -> Array:
        return np.concatenate([child.knots(low, high) for child in self.children])

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        low, high, at = (child.corrected(intercept, slope) for child in self.children)
        return Interval(low, high, at, self.level)

    def shifted(self, factor: Array) -> Map:
        low, high, at = (child.shifted(factor) for child in self.children)
        return Interval(low, high, at, self.level)

    def mirrored(self, centre: float) -> Map:
        low, high, at = (child.mirrored(centre) for child in self.children)
        return Interval(low, high, at, self.level)

    def bounds(self, scores: ArrayLike) -> tuple[Array, Array]:
        """The lower and the upper probability of each score; the point is never outside."""
        s = np.asarray(scores, dtype=np.float64)
        p = self.point(s)
        return np.minimum(self.lower(s), p), np.maximum(self.upper(s), p)
