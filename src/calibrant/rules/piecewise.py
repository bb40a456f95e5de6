"""Steps, lines, any mixture of both; smooth maps approximated by lines, and inverses."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array, Flags
from calibrant.errors import InputError, ParameterError
from calibrant.losses import logit, shift_odds, sigmoid
from calibrant.rules.base import (
    Map,
    VectorMap,
    check_probabilities,
    in_blocks,
    numbers_field,
    word_field,
)
from calibrant.rules.plan.nodes import (
    FIRST,
    LARGEST_DOUBLE,
    LAST,
    MapInput,
    Node,
    Pieces,
    PlanTarget,
    Sigmoid,
    double_at,
    double_rank,
    first_rank_beyond,
    regions_on_stretches,
    stretches,
)
from calibrant.rules.sigmoids import WIDEST, rising_line

#: the largest logit at a knot: differences of two must not overflow
LARGEST_LOGIT = 1e300


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(Map):
    """Linear pieces between knots, with jumps allowed at the knots and flat ends.

    On [x_i, x_{i+1}) the map runs from right_i to left_{i+1}; below x_0 it is left_0, from the last
    knot on it is the last right. A step map has flat pieces, a continuous one has left = right.

    Parameters
    ----------
    x : array of shape (m,)
        Strictly ascending knots, at least one.
    left, right : arrays of shape (m,)
        The limit from below and the value at each knot.
    input : {"score", "logit"}
        Whether the knots are on the scale of the score or of its logit.
    output : {"probability", "logit"}
        Whether left and right are probabilities, or logits to pass through the sigmoid.

    Notes
    -----
    A query costs one binary search, O(log m). Within a piece the result never leaves the values
    at its ends, so a monotone description is monotone to the last bit.

    Examples
    --------
    >>> step = Piecewise.step([0.5], [0.1, 0.8])
    >>> step([0.2, 0.5, 0.9]).tolist()
    [0.1, 0.8, 0.8]
    >>> Piecewise.linear([0.0, 1.0], [0.2, 0.6])([-1.0, 0.5, 2.0]).tolist()
    [0.2, 0.4, 0.6]
    """

    kind: ClassVar[str] = "piecewise"

    x: Array = field(metadata=numbers_field("piecewise x"))
    left: Array = field(metadata=numbers_field("piecewise left"))
    right: Array = field(metadata=numbers_field("piecewise right"))
    input: str = field(default="score", metadata=word_field("piecewise input", "score", "logit"))
    output: str = field(
        default="probability", metadata=word_field("piecewise output", "probability", "logit")
    )

    def _check(self) -> None:
        """Refuse knots that do not ascend, and columns of other lengths or values."""
        if not len(self.x) == len(self.left) == len(self.right) > 0:
            raise InputError(
                "a piecewise map needs at least one knot and a left and right value for each, but "
                f"{len(self.x)} knots, {len(self.left)} left and {len(self.right)} right came."
            )
        falls = self.x[1:] <= self.x[:-1]
        if falls.any():
            i = int(np.argmax(falls)) + 1
            raise InputError(
                "the knots of a piecewise map must be strictly ascending, but knot "
                f"{i} ({float(self.x[i])!r}) follows {float(self.x[i - 1])!r}."
            )
        for name, values in (("left", self.left), ("right", self.right)):
            if self.output == "probability":
                check_probabilities(values, f"piecewise {name}")
            elif np.abs(values).max() > LARGEST_LOGIT:
                raise InputError(f"piecewise {name} must be logits of at most {LARGEST_LOGIT:g}.")

    @classmethod
    def constant(cls, p: float) -> Piecewise:
        """The map that gives the same probability for every score."""
        return cls(np.zeros(1), np.full(1, p), np.full(1, p))

    @classmethod
    def step(cls, cuts: ArrayLike, values: ArrayLike, input: str = "score") -> Piecewise:
        """The map with values[i] on [cuts[i−1], cuts[i]): one value more than there are cuts."""
        x, v = np.asarray(cuts, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if not len(x):
            return cls(np.zeros(1), v[:1], v[:1], input)
        return cls(x, v[:-1], v[1:], input)

    @classmethod
    def linear(
        cls, x: ArrayLike, values: ArrayLike, input: str = "score", output: str = "probability"
    ) -> Piecewise:
        """The map of straight lines between (x, value) points, flat beyond them."""
        v = np.asarray(values, dtype=np.float64)
        return cls(np.asarray(x, dtype=np.float64), v, v, input, output)

    @property
    def is_step(self) -> bool:
        """Whether every piece is flat."""
        return self.pieces.is_step

    @functools.cached_property
    def pieces(self) -> Pieces:
        """The table of its pieces, before the links."""
        return Pieces(self.x, self.left, self.right)

    def __call__(self, scores: ArrayLike) -> Array:
        return in_blocks(self._evaluate, np.asarray(scores, dtype=np.float64))

    def _evaluate(self, scores: Array) -> Array:
        s = logit(scores) if self.input == "logit" else scores
        value = self.pieces.value(s)
        return sigmoid(value) if self.output == "logit" else value

    def limits(self, at: Array) -> tuple[Array, Array]:
        """The limit from below and the value of the map (before the output link) at points.

        >>> below, value = Piecewise.step([0.5], [0.1, 0.8]).limits(np.array([0.5, 0.7]))
        >>> below.tolist(), value.tolist()
        ([0.1, 0.8], [0.8, 0.8])
        """
        return self.pieces.limits(at)

    def of_logit(self, z: Array) -> Array:
        if self.input == "score":
            return self(sigmoid(z))
        return replace(self, input="score")(z)

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def takes_probabilities(self) -> bool:
        return self.input == "logit"

    @property
    def looks_like_probabilities(self) -> bool:
        inside = bool(self.x[0] >= 0.0 and self.x[-1] <= 1.0)
        return self.input == "logit" or (inside and len(self.x) > 1)

    @property
    def trend(self) -> int:
        return self.pieces.trend

    @property
    def size(self) -> int:
        return len(self.x)

    @property
    def span(self) -> tuple[float, float]:
        """[0, 1] for probabilities; otherwise the range of the knots and a tenth of it on both
        sides."""
        first, last = float(self.x[0]), float(self.x[-1])
        if self.input == "logit" or (first >= 0.0 and last <= 1.0):
            return 0.0, 1.0
        margin = 0.1 * last - 0.1 * first or 1.0
        return max(first - margin, -WIDEST), min(last + margin, WIDEST)

    def knots(self, low: float, high: float) -> Array:
        return sigmoid(self.x) if self.input == "logit" else self.x

    def lowered(self, axis: MapInput) -> Node:
        """The node of a table of steps or of lines. Values that are logits go through the
        sigmoid."""
        if self.is_step:
            low = self.pieces.low
            values = sigmoid(low) if self.output == "logit" else low
            return axis.steps(self.x, values, self.input)
        lines = axis.lines(self.pieces, self.input)
        return Sigmoid(lines) if self.output == "logit" else lines

    # --- other maps made of it --------------------------------------------------------------------

    def then(self, later: Map) -> Piecewise:
        """The map later(this(s)) for a map of steps: ``later`` is applied to the values of the
        steps."""
        link = sigmoid if self.output == "logit" else np.asarray
        return Piecewise(self.x, later(link(self.left)), later(link(self.right)), self.input)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        """The map with corrected values if they are logits or steps; else a chain of the map and a
        correction."""
        line = rising_line(intercept, slope)
        if self.output == "logit":

            def on_line(values: Array) -> Array:
                return np.clip(intercept + slope * values, -LARGEST_LOGIT, LARGEST_LOGIT)

            return replace(self, left=on_line(self.left), right=on_line(self.right))
        if self.is_step:
            return replace(self, left=line(self.left), right=line(self.right))
        return super().corrected(intercept, slope)  # a line of probabilities is no line after it

    def shifted(self, factor: Array) -> Map:
        """The map with shifted values if they are probabilities of steps; 0 and 1 stay."""
        if self.output == "probability" and self.is_step:  # value by value: 0 and 1 stay
            left, right = (shift_odds(values, factor) for values in (self.left, self.right))
            return replace(self, left=left, right=right)
        return super().shifted(factor)

    def mirrored(self, centre: float) -> Map:
        """The map of reversed scores, with its pieces in the other order.

        A jump lies where centre − s, which is rounded, passes the knot. So the same rows are on the
        same side of it.
        """
        if self.input == "logit":  # 1 − s has the logit −z
            centre = 0.0
        knots = self.x[::-1]
        ends = (np.full(len(knots), end) for end in (FIRST, LAST))
        falling = np.ones(len(knots), dtype=bool)
        passed = double_at(first_rank_beyond(knots, lambda s: centre - s, falling, *ends))
        x = np.where((self.left != self.right)[::-1], passed, centre - knots)
        starts = np.flatnonzero(np.append(True, x[1:] > x[:-1]))  # centre − s may round two to one
        last = np.append(starts[1:], len(x)) - 1
        left, right = self.right[::-1][starts], self.left[::-1][last]
        return replace(self, x=x[starts], left=left, right=right)

    def scaled(self, share: float) -> Map:
        """The map with values multiplied by a share if they are probabilities; else a mixture."""
        if self.output == "probability":
            return replace(self, left=share * self.left, right=share * self.right)
        return super().scaled(share)

    def __repr__(self) -> str:
        shape = "steps" if self.is_step else "lines"
        links = "" if self.input == "score" else ", of the logit"
        links += "" if self.output == "probability" else ", on the logit scale"
        span = f"{self.x[0]:g}" if len(self.x) == 1 else f"{self.x[0]:g} to {self.x[-1]:g}"
        return f"Piecewise({len(self.x)} knots at {span}, {shape}{links})"


def flat_runs(scores: Array, starts: NDArray[Any], values: Array) -> Piecewise:
    """The map that is flat on each run of ascending scores, and straight between the runs.

    Run j holds the scores from index starts[j] to before starts[j+1].

    >>> flat_runs(np.arange(3.0), np.array([0, 2]), np.array([0.2, 0.8]))([0, 1, 1.5, 2]).tolist()
    [0.2, 0.2, 0.5, 0.8]
    """
    ends = np.append(starts[1:], len(scores)) - 1
    index = np.column_stack((starts, ends)).ravel()
    new = np.append(True, index[1:] != index[:-1])  # a run of one score has one knot
    return Piecewise.linear(scores[index[new]], np.repeat(values, 2)[new])


# --- Where a map reaches a probability, to the exact double: a score, or a map of 0 and 1 ---------


DECISION = PlanTarget("a decision", "Compare what calibrate gives with the threshold.")


class ScoreAt(NamedTuple):
    """Where a map reaches a probability.

    Attributes
    ----------
    score : float
        The threshold: scores from here on (of a falling map: up to here) have at least that
        probability, and no others.
    low, high : float
        The scores with exactly that probability, where the map is flat; else both are ``score``.
    probability : float
        What the map gives at ``score``: more than was asked for where it jumps over that.
    rising : bool
        Whether the map rises with the score.
    """

    score: float
    low: float
    high: float
    probability: float
    rising: bool = True


def score_at(map_: Map, probability: Any) -> ScoreAt:
    """The score at which a monotone map reaches a probability, found in twice 64 evaluations.

    >>> from calibrant.maps import Identity, Piecewise
    >>> score_at(Identity(), 0.05).score
    0.05
    >>> found = score_at(Piecewise.step([0.3, 0.7], [0.1, 0.5, 0.9]), 0.5)
    >>> found.low, round(found.high, 9), found.probability
    (0.3, 0.7, 0.5)
    """
    p = read_probability(probability, "the probability")
    least, most = probability_range(map_)
    if not least <= p <= most:
        raise InputError(
            f"the calibrator gives probabilities from {least:.6g} to {most:.6g}, so that no score "
            f"has {p:g}. Ask for one between."
        )
    # a rising map has passed p where it is at least p, a falling one where it is below
    passed = np.array([p, math.nextafter(p, math.inf)])
    low, high = (double_rank(np.full(2, end)) for end in _score_limits(map_))
    falls = np.array(map_.trend < 0)
    start, beyond = first_rank_beyond(passed, map_, falls, low, high + 1).tolist()
    # where the map falls: the last score with at least p, and the first that has no more than p
    score, edge = (start, beyond - 1) if map_.trend > 0 else (start - 1, beyond)
    found, other = double_at(np.array([score, edge])).tolist()
    reached = float(map_(np.array([found]))[0])
    ends = (found, found) if reached != p else (min(found, other), max(found, other))
    return ScoreAt(found, *ends, reached, map_.trend > 0)


def probability_range(map_: Map) -> tuple[float, float]:
    """The smallest and the largest probability of a map that rises or falls throughout."""
    if isinstance(map_, VectorMap):
        raise InputError("a calibrator of several classes has no single score for a probability.")
    if map_.segments is not None:
        raise InputError(
            "a calibrator of segments has a score for each of them. Ask the map of one: "
            "map.maps[i], or map.default."
        )
    if not map_.trend:
        raise InputError(
            "the map must rise or fall throughout, but this one may do both: then several scores "
            "have the same probability. Fit a method that keeps the order of scores, such as BLS, "
            "Platt or Isotonic."
        )
    least, most = sorted(map_(np.array(_score_limits(map_))).tolist())
    return least, most


def _score_limits(map_: Map) -> tuple[float, float]:
    """The smallest and the largest score that a map takes."""
    return (0.0, 1.0) if map_.takes_probabilities else (-LARGEST_DOUBLE, LARGEST_DOUBLE)


def read_probability(value: Any, name: str) -> float:
    """A checked number in [0, 1]; ``name`` is what an error calls it."""
    fine = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not fine or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"{name} must be in [0, 1], but {value!r} came.")
    return float(value)


def decision_steps(
    map_: Map, threshold: float, function: Callable[[Array], Array] | None = None
) -> Piecewise | None:
    """A map of steps that is 1 where a map gives at least ``threshold``, and 0 elsewhere.

    None if the intervals on which the map rises and falls are not known. ``function`` computes the
    probabilities, if that is not the map itself.

    >>> hill = Piecewise.linear([0.0, 0.5, 1.0], [0.0, 0.8, 0.0])
    >>> decision_steps(hill, 0.4)([0.2, 0.25, 0.75, 0.8])
    array([0., 1., 1., 0.])
    """
    found = stretches(map_.plan(DECISION))
    if found is None:
        return None
    low, _, piece = regions_on_stretches(np.array([threshold]), function or map_, found)
    changes = np.flatnonzero(np.diff(piece)) + 1
    values = piece[np.append(0, changes)].astype(np.float64)
    return Piecewise.step(low[changes], values)


# --- Any piecewise smooth function as straight lines, to a stated tolerance -----------------------


#: where a piece is probed: an asymmetric set, so that no smooth error vanishes at all of them
PROBES = np.array([0.11, 0.27, 0.5, 0.69, 0.87])


def refined_lines(
    function: Callable[[Array], Array],
    x: Array,
    left: Array,
    right: Array,
    tol: float,
    max_knots: int = 1_000_000,
    doubtful: Flags | None = None,
) -> tuple[Array, Array, Array]:
    """Knots with left and right values whose straight pieces stay within ``tol`` of the function.

    Every piece is probed at five inner points and halved until the largest error there is at most
    tol/2; the half left over covers what lies between the probes. The function must be smooth
    between the knots given; ``left`` and ``right`` are its limits there, so jumps are kept. Only
    the pieces marked in ``doubtful`` (all by default) are probed; ``max_knots`` counts new knots.

    >>> ends = np.array([0.0, 1.0])
    >>> x, _, value = refined_lines(np.square, ends, ends, ends, 1e-4)
    >>> t = np.linspace(0, 1, 1001)
    >>> bool(np.abs(np.interp(t, x, value) - t**2).max() <= 1e-4)
    True
    """
    if not tol > 0:
        raise ParameterError(f"tol must be above 0, but {tol!r} came.")
    open_ = np.ones(len(x) - 1, dtype=bool) if doubtful is None else doubtful.copy()
    most = len(x) + max_knots
    while open_.any():
        piece = np.flatnonzero(open_)
        low, high = x[piece], x[piece + 1]
        start, rise = right[piece], left[piece + 1] - right[piece]
        inside = low[:, None] * (1.0 - PROBES) + high[:, None] * PROBES
        # in a narrow piece rounding moves the points, so where they lie is computed
        width = np.maximum(high / 2 - low / 2, 5e-324)[:, None]
        line = start[:, None] + rise[:, None] * ((inside / 2 - low[:, None] / 2) / width)
        error = np.abs(function(inside.ravel()).reshape(inside.shape) - line).max(axis=1)
        middle = low / 2 + high / 2
        split = (error > tol / 2) & (middle > low) & (middle < high)
        if len(x) + split.sum() > most:
            raise ParameterError(
                f"tol={tol:g} would need more than {max_knots} knots; choose a larger tolerance."
            )
        after, new = piece[split], middle[split]
        value = function(new)
        x, left, right = (
            np.insert(old, after + 1, added)
            for old, added in ((x, new), (left, value), (right, value))
        )
        open_ = np.zeros(len(open_), dtype=bool)
        open_[after] = True
        open_ = np.insert(open_, after, True)
    return x, left, right
