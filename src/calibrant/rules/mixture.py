"""A weighted average of maps, and its collapse into one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.errors import ParameterError
from calibrant.losses import logit, sigmoid
from calibrant.rules.base import Map, check_weights, in_blocks, maps_field, numbers_field
from calibrant.rules.chain import Chain, Interval
from calibrant.rules.piecewise import Piecewise, refined_lines
from calibrant.rules.plan.nodes import Clip, Linear, MapInput, Node
from calibrant.rules.sigmoids import Identity, Logistic

#: points on the logit axis from the logit of 0 to that of 1, closest together where sigmoids bend
GRID = np.concatenate((np.arange(-744.0, -40.0, 4.0), np.arange(-40.0, 36.5, 0.125)))


@dataclass(frozen=True, eq=False)
class Mixture(Map):
    """Σ weight · member(score): the average of the members' probabilities.

    Parameters
    ----------
    weights : array of shape (m,)
        Non-negative, of sum 1 (to 1e-9).
    members : tuple of m maps

    Examples
    --------
    >>> a, b = Piecewise.step([0.3], [0.0, 0.5]), Piecewise.step([0.6], [0.1, 0.9])
    >>> m = Mixture([0.5, 0.5], (a, b))
    >>> m([0.1, 0.4, 0.7]).tolist()
    [0.05, 0.3, 0.7]
    >>> m.collapse()
    Piecewise(2 knots at 0.3 to 0.6, steps)
    """

    kind: ClassVar[str] = "mixture"

    weights: Array = field(metadata=numbers_field("mixture weights"))
    members: tuple[Map, ...] = field(metadata=maps_field("the members of a mixture"))

    def _check(self) -> None:
        check_weights(self.weights, self.members)

    def __call__(self, scores: ArrayLike) -> Array:
        average = functools.partial(_average, self.weights, self.members)
        return in_blocks(average, np.asarray(scores, dtype=np.float64))

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def _used(self) -> list[tuple[float, Map]]:
        """The members of positive weight, each with its weight."""
        pairs = zip(self.weights.tolist(), self.members, strict=True)
        return [(weight, member) for weight, member in pairs if weight > 0.0]

    @property
    def takes_probabilities(self) -> bool:
        return any(member.takes_probabilities for _, member in self._used)

    @property
    def looks_like_probabilities(self) -> bool:
        return all(member.looks_like_probabilities for member in self.members)

    @property
    def trend(self) -> int:
        trends = {member.trend for _, member in self._used}
        return trends.pop() if len(trends) == 1 else 0

    @property
    def size(self) -> int:
        whole = self.collapsed
        return sum(member.size for member in self.members) if whole is None else whole.size

    @property
    def span(self) -> tuple[float, float]:
        """The range that covers those of all members."""
        spans = [member.span for member in self.members]
        return min(low for low, _ in spans), max(high for _, high in spans)

    def knots(self, low: float, high: float) -> Array:
        """The knots of all members."""
        return np.concatenate([member.knots(low, high) for member in self.members])

    # --- other maps made of it --------------------------------------------------------------------

    @functools.cached_property
    def simple(self) -> Map:
        """One table of pieces if the mixture equals one exactly; else a mixture of simpler
        members."""
        opened = Mixture(self.weights, tuple(member.simple for member in self.members))
        return opened.collapsed or opened

    def lowered(self, axis: MapInput) -> Node:
        """The plan of one table if the mixture equals one exactly; else the weighted sum of the
        members' plans."""
        whole = self.simple
        if not isinstance(whole, Mixture):
            return whole.lowered(axis)
        terms = tuple((weight, member.lowered(axis)) for weight, member in self._used)
        return Clip(Linear(0.0, terms), 0.0, 1.0)

    def mirrored(self, centre: float) -> Map:
        return replace(self, members=tuple(member.mirrored(centre) for member in self.members))

    def of_logit(self, z: Array) -> Array:
        return _average(self.weights, [member.of_logit for member in self.members], z)

    @functools.cached_property
    def collapsed(self) -> Piecewise | None:
        """The mixture as one piecewise map if it equals one exactly; else None."""
        weights, members = _flat_members(self)
        pieces = [m for m in members if isinstance(m, Piecewise) and m.output == "probability"]
        if len(pieces) < len(members) or len({piece.input for piece in pieces}) > 1:
            return None
        x = np.unique(np.concatenate([piece.x for piece in pieces]))
        left, right = np.zeros(len(x)), np.zeros(len(x))
        for weight, piece in zip(weights, pieces, strict=True):
            below, value = piece.limits(x)
            left += weight * below
            right += weight * value
        return Piecewise(x, np.clip(left, 0, 1), np.clip(right, 0, 1), pieces[0].input)

    def collapse(self, tol: float | None = None) -> Piecewise:
        """One piecewise map instead of many members.

        Exact (to rounding) and without ``tol`` when all members are Piecewise maps of the same
        input that give probabilities; otherwise ``tol`` bounds the largest difference. Costs
        O(K log K) for K knots together. The tolerance is checked at points an eighth of a logit
        apart or closer, so a member must not oscillate faster than that.

        >>> from calibrant.maps import Logistic
        >>> mix = Mixture([0.5, 0.5], (Logistic(0.0, (("x", 1.0),)), Piecewise.step([0], [0, 1])))
        >>> one = mix.collapse(tol=1e-6)
        >>> s = np.linspace(-30, 30, 10001)
        >>> bool(np.abs(one(s) - mix(s)).max() <= 1e-6)
        True
        """
        if self.collapsed is not None:
            return self.collapsed
        if tol is None:
            raise ParameterError(
                "only a mixture of piecewise maps of the same input, giving probabilities, "
                "collapses exactly. Say how far the result may differ: collapse(tol=1e-6)."
            )
        return _approximate(*_flat_members(self), tol)


def _average(weights: Array, functions: Sequence[Callable[[Array], Array]], at: Array) -> Array:
    """The weighted sum of functions at some points, clipped to [0, 1], which rounding may leave."""
    total = np.zeros(at.shape)
    for weight, function in zip(weights, functions, strict=True):
        total += weight * function(at)
    return np.clip(total, 0.0, 1.0)


def _flat_members(mixture: Mixture) -> tuple[Array, list[Map]]:
    """Weights and members of a mixture, without mixtures among them and without members of weight
    0.

    `Identity` becomes a line, and steps of logits become steps of probabilities.
    """
    weights: list[float] = []
    members: list[Map] = []
    for weight, member in zip(mixture.weights, mixture.members, strict=True):
        leaf = member.point if isinstance(member, Interval) else member
        if isinstance(leaf, Identity):
            leaf = Piecewise.linear([0.0, 1.0], [0.0, 1.0])
        elif isinstance(leaf, Piecewise) and leaf.output == "logit" and leaf.is_step:
            leaf = Piecewise(leaf.x, sigmoid(leaf.left), sigmoid(leaf.right), leaf.input)
        if isinstance(leaf, Mixture):
            inner, leaves = _flat_members(leaf)
            weights.extend(weight * inner)
            members.extend(leaves)
        elif weight > 0:
            weights.append(float(weight))
            members.append(leaf)
    return np.array(weights), members


# --- A mixture of any maps as lines, to a stated tolerance ----------------------------------------


class _Profile(NamedTuple):
    """A member on the working axis: its knots with both limits, and the function between them."""

    knots: Array
    left: Array
    right: Array
    function: Callable[[Array], Array]


def _reads_logit(member: Map) -> bool:
    """Whether a member reads the logit of the score."""
    if isinstance(member, Piecewise):
        return member.input == "logit"
    if isinstance(member, Logistic):
        return member.looks_like_probabilities
    return isinstance(member, Chain) and _reads_logit(member.steps[0])


def _profile_of(member: Map, on_logit: bool) -> _Profile:
    """The knots of a member, its values there, and its function. Members whose knots are not known
    are refused."""
    if isinstance(member, Chain) and any(isinstance(step, Piecewise) for step in member.steps[1:]):
        raise ParameterError(
            "a mixture cannot collapse where steps or lines come after another map in a chain: "
            "the places of their knots are not known. Evaluate the mixture itself."
        )

    def function(u: Array) -> Array:
        if on_logit and isinstance(member, Logistic):
            return member.between_logits(u)
        return member(sigmoid(u) if on_logit else u)

    if not isinstance(member, Piecewise):
        seeds = _probe_points(member, on_logit)
        value = function(seeds)
        return _Profile(seeds, value, value, function)
    ends = (sigmoid if member.output == "logit" else np.asarray)(
        np.array([member.left, member.right])
    )
    if on_logit == (member.input == "logit"):
        return _Profile(member.x, ends[0], ends[1], member.of_logit if on_logit else member)
    if member.x[0] < 0.0 or member.x[-1] > 1.0:
        raise ParameterError(
            "a mixture cannot collapse where one member reads logits and another has knots outside "
            "[0, 1], where logits end. Evaluate the mixture itself."
        )
    # score knots on the logit axis; those outside [0, 1] are never crossed there
    inside = (member.x > 0) & (member.x < 1)
    return _Profile(logit(member.x[inside]), ends[0][inside], ends[1][inside], function)


def _probe_points(member: Map, on_logit: bool) -> Array:
    """Points so close together that a smooth member is almost straight between two of them."""
    if on_logit:
        return GRID
    slopes = [c for _, c in member.terms if c] if isinstance(member, Logistic) else []
    if isinstance(member, Logistic) and slopes:
        steps = np.linspace(-40.0, 40.0, 65)
        with np.errstate(over="ignore"):
            points = [(steps - member.intercept) / slope for slope in slopes]
        if [name for name, _ in member.terms] != ["x"]:
            points.append(steps)  # softplus bends at 0
        return np.unique([point for own in points for point in own if np.isfinite(point)])
    return np.empty(0)


def _approximate(weights: Array, members: list[Map], tol: float) -> Piecewise:
    """Lines that stay within ``tol`` of a mixture."""
    on_logit = any(_reads_logit(member) for member in members)
    profiles = [_profile_of(member, on_logit) for member in members]

    def function(u: Array) -> Array:
        return _average(weights, [profile.function for profile in profiles], u)

    ends: Array = logit(np.array([0.0, 1.0])) if on_logit else _ends_of_change(function, tol / 4)
    x: Array = np.unique(np.concatenate((ends, *(profile.knots for profile in profiles))))
    left, right = np.zeros(len(x)), np.zeros(len(x))
    for weight, profile in zip(weights, profiles, strict=True):
        value, at = profile.function(x), np.searchsorted(x, profile.knots)
        own_left, own_right = value.copy(), value.copy()
        own_left[at], own_right[at] = profile.left, profile.right
        left += weight * own_left
        right += weight * own_right
    left, right = np.clip(left, 0, 1), np.clip(right, 0, 1)
    x, left, right = refined_lines(function, x, left, right, tol)
    return Piecewise(x, left, right, "logit" if on_logit else "score")


def _ends_of_change(function: Callable[[Array], Array], tol: float) -> Array:
    """Two scores, one on each side, beyond which a function stays within ``tol`` of its limit."""
    radius: Array = np.ldexp(1.0, np.arange(-1000, 1000))
    ends = []
    for sign in (-1.0, 1.0):
        value = function(sign * radius)
        varies = np.flatnonzero(np.abs(value - value[-1]) > tol)
        ends.append(sign * radius[varies[-1] + 1] if len(varies) else sign)
    return np.array(ends)
