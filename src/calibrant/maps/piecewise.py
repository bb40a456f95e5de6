"""Steps, lines, and any mixture of both."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.losses import logit, shift_odds, sigmoid
from calibrant.maps.base import Map
from calibrant.maps.checks import in_blocks, in_unit, numbers, word
from calibrant.maps.logistic import WIDEST, rising_line
from calibrant.plan.line_pieces import Pieces
from calibrant.plan.map_input import MapInput
from calibrant.plan.nodes import Node, Sigmoid

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

    x: Array = field(metadata=numbers("piecewise x"))
    left: Array = field(metadata=numbers("piecewise left"))
    right: Array = field(metadata=numbers("piecewise right"))
    input: str = field(default="score", metadata=word("piecewise input", "score", "logit"))
    output: str = field(
        default="probability", metadata=word("piecewise output", "probability", "logit")
    )

    def _check(self) -> None:
        if not len(self.x) == len(self.left) == len(self.right) > 0:
            raise InputError(
                "a piecewise map needs at least one knot and a left and right value for each, but "
                f"{len(self.x)} knots, {len(self.left)} left and {len(self.right)} right came."
            )
        _check_ascending(self.x)
        for name, values in (("left", self.left), ("right", self.right)):
            if self.output == "probability":
                in_unit(values, f"piecewise {name}")
            elif np.abs(values).max() > LARGEST_LOGIT:
                raise InputError(f"piecewise {name} must be logits of at most {LARGEST_LOGIT:g}.")

    @classmethod
    def constant(cls, p: float) -> Piecewise:
        """The same probability for every score."""
        return cls(np.zeros(1), np.full(1, p), np.full(1, p))

    @classmethod
    def step(cls, cuts: ArrayLike, values: ArrayLike, input: str = "score") -> Piecewise:
        """values[i] on [cuts[i−1], cuts[i]): one value more than there are cuts."""
        x, v = np.asarray(cuts, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if not len(x):
            return cls(np.zeros(1), v[:1], v[:1], input)
        return cls(x, v[:-1], v[1:], input)

    @classmethod
    def linear(
        cls, x: ArrayLike, values: ArrayLike, input: str = "score", output: str = "probability"
    ) -> Piecewise:
        """Straight lines between (x, value) points, flat beyond them."""
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
        first, last = float(self.x[0]), float(self.x[-1])
        if self.input == "logit" or (first >= 0.0 and last <= 1.0):
            return 0.0, 1.0
        margin = 0.1 * last - 0.1 * first or 1.0
        return max(first - margin, -WIDEST), min(last + margin, WIDEST)

    def knots(self, low: float, high: float) -> Array:
        return sigmoid(self.x) if self.input == "logit" else self.x

    def lowered(self, axis: MapInput) -> Node:
        if self.is_step:
            low = self.pieces.low
            values = sigmoid(low) if self.output == "logit" else low
            return axis.steps(self.x, values, self.input)
        lines = axis.lines(self.pieces, self.input)
        return Sigmoid(lines) if self.output == "logit" else lines

    # --- other maps made of it --------------------------------------------------------------------

    def then(self, later: Map) -> Piecewise:
        """later(steps(s)) as steps: later sees only the few values that steps take."""
        link = sigmoid if self.output == "logit" else np.asarray
        return Piecewise(self.x, later(link(self.left)), later(link(self.right)), self.input)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        line = rising_line(intercept, slope)
        if self.output == "logit":

            def moved(values: Array) -> Array:
                return np.clip(intercept + slope * values, -LARGEST_LOGIT, LARGEST_LOGIT)

            return replace(self, left=moved(self.left), right=moved(self.right))
        if self.is_step:
            return replace(self, left=line(self.left), right=line(self.right))
        return super().corrected(intercept, slope)  # a line of probabilities is no line after it

    def shifted(self, factor: Array) -> Map:
        if self.output == "probability" and self.is_step:  # value by value: 0 and 1 stay
            left, right = (shift_odds(values, factor) for values in (self.left, self.right))
            return replace(self, left=left, right=right)
        return super().shifted(factor)

    def scaled(self, share: float) -> Map:
        if self.output == "probability":
            return replace(self, left=share * self.left, right=share * self.right)
        return super().scaled(share)

    def __repr__(self) -> str:
        shape = "steps" if self.is_step else "lines"
        links = "" if self.input == "score" else ", of the logit"
        links += "" if self.output == "probability" else ", on the logit scale"
        span = f"{self.x[0]:g}" if len(self.x) == 1 else f"{self.x[0]:g} to {self.x[-1]:g}"
        return f"Piecewise({len(self.x)} knots at {span}, {shape}{links})"


def _check_ascending(x: Array) -> None:
    wrong = x[1:] <= x[:-1]
    if wrong.any():
        i = int(np.argmax(wrong)) + 1
        raise InputError(
            "the knots of a piecewise map must be strictly ascending, but knot "
            f"{i} ({float(x[i])!r}) follows {float(x[i - 1])!r}."
        )


def flat_runs(scores: Array, starts: NDArray[Any], values: Array) -> Piecewise:
    """Flat on each run of ascending scores, straight between the runs.

    Run j holds the scores from index starts[j] to before starts[j+1].

    >>> flat_runs(np.arange(3.0), np.array([0, 2]), np.array([0.2, 0.8]))([0, 1, 1.5, 2]).tolist()
    [0.2, 0.2, 0.5, 0.8]
    """
    ends = np.append(starts[1:], len(scores)) - 1
    index = np.column_stack((starts, ends)).ravel()
    new = np.append(True, index[1:] != index[:-1])  # a run of one score has one knot
    return Piecewise.linear(scores[index[new]], np.repeat(values, 2)[new])
